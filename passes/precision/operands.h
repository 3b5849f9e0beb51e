/* operands.h: which operands of an op take part in the choice of its dtype. */
#ifndef AMP_PASSES_PRECISION_OPERANDS_H
#define AMP_PASSES_PRECISION_OPERANDS_H

#include "ir/ir.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Whether operand |i| takes part and may be cast: a float whose elements the op reads, in any float type, and that is
 * no constant; of batch norm the first alone, of its gradient that of the result and the first.
 * Constants are weak: they never decide a dtype and are never cast; a kernel computes with the f32 number, as PyTorch
 * does with a Python number. */
bool operand_is_castable(const Func *f, const Op *o, int i);

#ifdef __cplusplus
}
#endif

#endif
