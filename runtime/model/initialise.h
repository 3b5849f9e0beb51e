/* initialise.h: the first values of states.
 *
 * Element e of a tensor is drawn from the Philox word of (seed, hash of the tensor's name, e), so it depends on nothing
 * else: the same seed gives the same bits on every machine.  All arithmetic is IEEE double without contraction; no
 * function of libm but sqrt, which IEEE 754 defines exactly.  Reference: docs/language, "Initialisers"; formulas are
 * PyTorch's (torch.nn.init).
 */
#ifndef AMP_RUNTIME_MODEL_INITIALISE_H
#define AMP_RUNTIME_MODEL_INITIALISE_H

#include "amp/model_abi.h"
#include "base/error.h"

/* That the state's initialiser exists and fits its shape.  The message does not name the state. */
amp_status amp_initialiser_check(const amp_model_state *state, amp_error *err);
/* All elements, row-major; the state passed amp_initialiser_check. */
void amp_initialise(const amp_model_state *state, uint64_t seed, float *out);

#endif
