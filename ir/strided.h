/* strided.h: values that are other values at strides: what reshape, permute, slice and expand do to addresses.
 *
 *     %q [N, T, 96]                 dense: strides (T * 96, 96, 1)
 *     reshape [N, T, 4, 24]         (T * 96, 96, 24, 1)
 *     permute (0, 2, 1, 3)          [N, 4, T, 24]: (T * 96, 24, 96, 1)
 *
 * So a product of matrices that are rows at a pitch reads %q where it is.
 */
#ifndef AMP_IR_STRIDED_H
#define AMP_IR_STRIDED_H

#include "ir/ir.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct Strided {
    Val source; /* dense, row-major */
    Shape shape;
    Dim stride[MAX_RANK]; /* elements of |source| */
    int64_t offset;
} Strided;

/* |v| itself; false: a stride depends on N more than once. */
bool ir_strided_dense(const Func *f, Val v, Strided *out);
/* Whether |o| is one of the ops that may be such. */
bool ir_moves_by_stride(const Op *o);
/* The result of |o|, whose operand is |x|; false: no strides give it. */
bool ir_strided_result(const Func *f, const Op *o, const Strided *x, Strided *out);

/* As if it were repeated to |shape|, which it broadcasts to: strides of 0 where it is. */
Strided ir_strided_repeat(const Strided *x, const Shape *shape);

/* The last two dims as a matrix whose rows are along memory: element (i, j) at i * pitch + j, or, transposed,
 * at j * pitch + i.  False: neither. */
bool ir_strided_matrix(const Strided *x, bool *transposed, Dim *pitch);

#ifdef __cplusplus
}
#endif

#endif
