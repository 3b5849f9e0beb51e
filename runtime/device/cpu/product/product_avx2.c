/* product_avx2.c: products for x86-64-v3 (AVX2, FMA): 16 registers of 8 lanes. */
#if defined(__x86_64__)
#include <immintrin.h>

#include "runtime/device/cpu/product/kernels.h"
#include "runtime/device/cpu/product/micro_kernel.h"

#define LANES 8

typedef __m256 vec;
typedef __m256i vec_lanes;

static inline vec vec_zero(void) { return _mm256_setzero_ps(); }
static inline vec vec_load(const float *p) { return _mm256_loadu_ps(p); }
static inline void vec_store(float *p, vec v) { _mm256_storeu_ps(p, v); }
static inline vec vec_fma(vec a, vec b, vec c) { return _mm256_fmadd_ps(a, b, c); }
static inline vec vec_of_bits(uint32_t x) { return _mm256_castsi256_ps(_mm256_set1_epi32((int)x)); }
static inline vec vec_pick(vec v, vec_lanes from) { return _mm256_permutevar8x32_ps(v, from); }
static inline vec vec_swap(vec v) { return _mm256_permute_ps(v, 0xb1); }
static inline vec vec_widen(const uint16_t *p) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)p)), 16));
}

/* ---- f32: 6 x 2 sums, 2 of B, 1 of A ---- */

typedef vec f32_a_unit, f32_b_units;

static inline vec f32_load_a(const unit *p) { return _mm256_set1_ps(*(const f32_unit *)p); }
static inline vec f32_load_b(const unit *p) { return _mm256_loadu_ps((const float *)p); }
static inline vec f32_step(vec c, vec a, vec b) { return _mm256_fmadd_ps(a, b, c); }

#define NAME(x) f32_##x
#define MAX_ROWS 6
#define A_BLOCK 32
#define FOR_EACH_ROW_COUNT(X) X(1) X(2) X(3) X(4) X(5) X(6)
#include "runtime/device/cpu/product/micro_kernel.inc"

/* ---- bf16 of few rows or columns, widened to f32 in the loop: 4 x 2 sums, 4 of B, 2 of A ---- */

typedef struct bf16_pair {
    vec even, odd;
} bf16_pair;
typedef bf16_pair bf16_a_unit, bf16_b_units;

static inline bf16_pair bf16_widen(__m256i v) {
    const __m256i upper = _mm256_set1_epi32((int)0xffff0000u);
    return (bf16_pair){_mm256_castsi256_ps(_mm256_slli_epi32(v, 16)), _mm256_castsi256_ps(_mm256_and_si256(v, upper))};
}

static inline bf16_pair bf16_load_a(const unit *p) { return bf16_widen(_mm256_set1_epi32((int)*p)); }
static inline bf16_pair bf16_load_b(const unit *p) { return bf16_widen(_mm256_loadu_si256((const __m256i *)p)); }

static inline vec bf16_step(vec c, bf16_pair a, bf16_pair b) {
    return _mm256_fmadd_ps(a.even, b.even, _mm256_fmadd_ps(a.odd, b.odd, c));
}

#define NAME(x) bf16_##x
#define PACK_PAIRS
#define WIDENED
#define MAX_ROWS 4
#define A_BLOCK 16
#define FOR_EACH_ROW_COUNT(X) X(1) X(2) X(3) X(4)
#include "runtime/device/cpu/product/micro_kernel.inc"

#include "runtime/device/cpu/product/widen_kernel.inc"

const amp_product_kernels amp_product_avx2_f32 = {
    "avx2",   AMP_DT_F32,    f32_tile,      f32_gather, f32_depthwise, f32_depthwise_weight,
    f32_pack, f32_transpose, &f32_winograd, NULL};
static const amp_widening widening = {&amp_product_avx2_f32, widen_steps, widen_rows};
const amp_product_kernels amp_product_avx2_bf16 = {
    "avx2",    AMP_DT_BF16,   widened_tile,      widened_gather, bf16_depthwise, bf16_depthwise_weight,
    bf16_pack, f32_transpose, &widened_winograd, &widening};
#endif
