/* accumulate.h: steps of several micro-batches. */
#ifndef AMP_PASSES_TRAINING_ACCUMULATE_H
#define AMP_PASSES_TRAINING_ACCUMULATE_H

#include "ir/ir.h"

#ifdef __cplusplus
extern "C" {
#endif

/* If the module's steps accumulate, `train_step`, which ends with gradients, becomes `micro_step` and
 * `apply_step`; the latter starts from the summed gradients. */
void accumulate_split(Module *m);

#ifdef __cplusplus
}
#endif

#endif
