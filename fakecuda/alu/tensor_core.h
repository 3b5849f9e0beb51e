/* tensor_core.h: products of a 16 x K and a K x 8 matrix as tensor cores make them.
 *
 * The model (arXiv 2511.10909 and 2512.07004, bit for bit what recorded hardware gave): K is cut into blocks of the
 * architecture's length, lower first.  In a block the products, exact and not normalised, and the accumulator are
 * aligned to the largest exponent, cut off |bits| binary places below it, each toward zero, and added as integers.  The
 * sum becomes f32 by cutting it off (f16: to nearest) and is the next block's accumulator.  Subnormal numbers count as
 * they are; zeros have no exponent; the largest exponent is at least -126.  A sum of nothing but zeros is +0. */
#ifndef FAKECUDA_ALU_TENSOR_CORE_H
#define FAKECUDA_ALU_TENSOR_CORE_H

#include "fakecuda/alu/number.h"

enum { TENSOR_M = 16, TENSOR_N = 8, TENSOR_MAX_K = 16 };

/* Numbers in parts: significand, with its sign, in [1, 2), below 1 where subnormal, and exponent. */
typedef struct TensorTerms {
    float sig[TENSOR_MAX_K * TENSOR_M];
    int32_t exp[TENSOR_MAX_K * TENSOR_M];
    int32_t special[TENSOR_MAX_K * TENSOR_M]; /* infinite or NaN: its significand is 0 here */
} TensorTerms;

typedef struct TensorFormat {
    int bits, fraction_bits, emin; /* bits of the register that count, from its top for tf32 */
    int skipped;                   /* low bits that nobody reads */
} TensorFormat;
const TensorFormat *tensor_format(int type); /* PTX_F16, PTX_BF16, PTX_TF32, PTX_F32 */

typedef struct TensorTask {
    int k, block, bits;
    const TensorFormat *factor, *sum;
    const uint32_t *a; /* [TENSOR_M][TENSOR_MAX_K], bits */
    const uint32_t *b; /* [TENSOR_MAX_K][TENSOR_N] */
    uint32_t *c;       /* [TENSOR_M][TENSOR_N]: in and out */
} TensorTask;

void tensor_multiply(const TensorTask *t); /* by the model */
void tensor_multiply_exact(
    const TensorTask *
        t); /* exact sums over all of K, rounded once to nearest; NaN and infinities as in the sum of float64 numbers */

double tensor_value(const TensorFormat *f, uint32_t bits);
uint32_t
tensor_rounded(const TensorFormat *f,
               double exact); /* a sum that float64 holds: f32 cut off, beyond its range infinite; f16 to nearest */
#endif
