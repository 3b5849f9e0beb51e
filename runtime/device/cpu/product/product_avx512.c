/* product_avx512.c: products for x86-64-v4 (AVX-512): 32 registers of 16 lanes. */
#if defined(__x86_64__)
#include <immintrin.h>

#include "runtime/device/cpu/product/kernels.h"
#include "runtime/device/cpu/product/micro_kernel.h"

#define LANES 16

typedef __m512 vec;
typedef __m512i vec_lanes;

static inline vec vec_zero(void) { return _mm512_setzero_ps(); }
static inline vec vec_load(const float *p) { return _mm512_loadu_ps(p); }
static inline void vec_store(float *p, vec v) { _mm512_storeu_ps(p, v); }
static inline vec vec_fma(vec a, vec b, vec c) { return _mm512_fmadd_ps(a, b, c); }
static inline vec vec_of_bits(uint32_t x) { return _mm512_castsi512_ps(_mm512_set1_epi32((int)x)); }
static inline vec vec_pick(vec v, vec_lanes from) { return _mm512_permutexvar_ps(from, v); }
static inline vec vec_swap(vec v) { return _mm512_permute_ps(v, 0xb1); }
static inline vec vec_widen(const uint16_t *p) {
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)p)), 16));
}

/* ---- f32: 14 x 2 sums, 2 of B, 1 of A ---- */

typedef vec f32_a_unit, f32_b_units;

static inline vec f32_load_a(const unit *p) { return _mm512_set1_ps(*(const f32_unit *)p); }
static inline vec f32_load_b(const unit *p) { return _mm512_loadu_ps(p); }
static inline vec f32_step(vec c, vec a, vec b) { return _mm512_fmadd_ps(a, b, c); }

#define NAME(x) f32_##x
#define MAX_ROWS 14
#define A_BLOCK 32
#define FOR_EACH_ROW_COUNT(X) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14)
#include "runtime/device/cpu/product/micro_kernel.inc"

/* ---- bf16 of few rows or columns, widened to f32 in the loop: 8 x 2 sums, 4 of B, 2 of A, the mask ---- */

typedef struct bf16_pair {
    vec even, odd;
} bf16_pair;
typedef bf16_pair bf16_a_unit, bf16_b_units;

static inline bf16_pair bf16_widen(__m512i v) {
    const __m512i upper = _mm512_set1_epi32((int)0xffff0000u);
    return (bf16_pair){_mm512_castsi512_ps(_mm512_slli_epi32(v, 16)), _mm512_castsi512_ps(_mm512_and_si512(v, upper))};
}

static inline bf16_pair bf16_load_a(const unit *p) { return bf16_widen(_mm512_set1_epi32((int)*p)); }
static inline bf16_pair bf16_load_b(const unit *p) { return bf16_widen(_mm512_loadu_si512(p)); }

static inline vec bf16_step(vec c, bf16_pair a, bf16_pair b) {
    return _mm512_fmadd_ps(a.even, b.even, _mm512_fmadd_ps(a.odd, b.odd, c));
}

#define NAME(x) bf16_##x
#define PACK_PAIRS
#define WIDENED
#define MAX_ROWS 8 /* of one vector, too, they fill the pipeline */
#define A_BLOCK 16
#define FOR_EACH_ROW_COUNT(X) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8)
#include "runtime/device/cpu/product/micro_kernel.inc"

#include "runtime/device/cpu/product/widen_kernel.inc"

const amp_product_kernels amp_product_avx512_f32 = {
    "avx512", AMP_DT_F32,    f32_tile,      f32_gather, f32_depthwise, f32_depthwise_weight,
    f32_pack, f32_transpose, &f32_winograd, NULL};
static const amp_widening widening = {&amp_product_avx512_f32, widen_steps, widen_rows};
const amp_product_kernels amp_product_avx512_bf16_widened = {
    "avx512",  AMP_DT_BF16,   widened_tile,      widened_gather, bf16_depthwise, bf16_depthwise_weight,
    bf16_pack, f32_transpose, &widened_winograd, &widening};
/* What multiplies f32 that were bf16 has no use for VDPBF16PS. */
const amp_product_kernels amp_product_avx512_bf16 = {"avx512_bf16",
                                                     AMP_DT_BF16,
                                                     amp_product_avx512_bf16_tile,
                                                     amp_product_avx512_bf16_gather,
                                                     bf16_depthwise,
                                                     bf16_depthwise_weight,
                                                     bf16_pack,
                                                     f32_transpose,
                                                     NULL,
                                                     NULL};
#endif
