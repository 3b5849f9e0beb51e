/* operands.h: which operands of an op take part in the choice of its dtype, and which results have it. */
#ifndef AMP_PASSES_PRECISION_OPERANDS_H
#define AMP_PASSES_PRECISION_OPERANDS_H

#include "ir/ir.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Whether operand |i| takes part and may be cast: a float whose elements the op reads, in any float type, and that is
 * no constant; of batch norm the first alone, of its gradient that of the result and the first;
 * of a loss's gradient all but the scalar.
 * Constants are weak: they never decide a dtype and are never cast; a kernel computes with the f32 number, as PyTorch
 * does with a Python number. */
bool operand_is_castable(const Func *f, const Op *o, int i);

/* Of an op of the graph: whether its result |v| is of the type that the op has, not f32 or an integer whatever that is,
 * as the statistics of a norm. */
bool result_has_type_of_op(const Op *o, Val v);

#ifdef __cplusplus
}
#endif

#endif
