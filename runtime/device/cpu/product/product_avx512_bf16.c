/* product_avx512_bf16.c: bf16 products with VDPBF16PS: two products a lane. */
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
static inline vec vec_widen(const uint16_t *p) {
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)p)), 16));
}

/* 14 x 2 sums, 2 of B, 1 of A. */

typedef __m512bh bf16_a_unit, bf16_b_units;

static inline __m512bh bf16_load_a(const unit *p) { return (__m512bh)_mm512_set1_epi32((int)*p); }
static inline __m512bh bf16_load_b(const unit *p) { return (__m512bh)_mm512_loadu_si512(p); }
static inline vec bf16_step(vec c, __m512bh a, __m512bh b) { return _mm512_dpbf16_ps(c, a, b); }

#define NAME(x) bf16_##x
#define PACK_PAIRS
#define MAX_ROWS 14
#define A_BLOCK 16
#define FOR_EACH_ROW_COUNT(X) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14)
#include "runtime/device/cpu/product/micro_kernel.inc"

const amp_product_kernels amp_product_avx512_bf16 = {
    "avx512_bf16",         AMP_DT_BF16, bf16_tile,      bf16_gather, bf16_depthwise,
    bf16_depthwise_weight, bf16_pack,   bf16_transpose, NULL,        NULL};
#endif
