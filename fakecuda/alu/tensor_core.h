/* tensor_core.h: products of a 16 x K and a K x 8 matrix as tensor cores make them, by the model of
 * codegen/cpu/prelude/device_block.h (arXiv 2511.10909 and 2512.07004, bit for bit what recorded hardware gave). */
#ifndef FAKECUDA_ALU_TENSOR_CORE_H
#define FAKECUDA_ALU_TENSOR_CORE_H

#include "fakecuda/alu/number.h"

enum { TENSOR_M = 16, TENSOR_N = 8, TENSOR_MAX_K = 16 };

typedef struct TensorTask {
    int k, block, bits;
    int factor, sum;                                               /* PTX_F16, PTX_BF16, PTX_TF32; PTX_F16, PTX_F32 */
    uint32_t a[TENSOR_MAX_K][TENSOR_M], b[TENSOR_MAX_K][TENSOR_N]; /* bits of the numbers */
    uint32_t c[TENSOR_M][TENSOR_N];                                /* in and out */
} TensorTask;

void tensor_multiply(TensorTask *t); /* by the model */
/* Exact sums over all of K, rounded once to nearest; NaN and infinities as in the sum of float64 numbers. */
void tensor_multiply_exact(TensorTask *t);
#endif
