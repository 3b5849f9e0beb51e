/* product_avx512_bf16.c: bf16 products with VDPBF16PS: two products a lane.  product_avx512.c has what else belongs to
 * these kernels. */
#if defined(__x86_64__)
#include <immintrin.h>

#include "runtime/device/cpu/product/kernels.h"
#include "runtime/device/cpu/product/micro_kernel.h"

#define LANES 16

typedef __m512 vec;

static inline vec vec_zero(void) { return _mm512_setzero_ps(); }
static inline vec vec_load(const float *p) { return _mm512_loadu_ps(p); }
static inline void vec_store(float *p, vec v) { _mm512_storeu_ps(p, v); }

/* 14 x 2 sums, 2 of B, 1 of A. */

typedef __m512bh bf16_a_unit, bf16_b_units;

static inline __m512bh bf16_load_a(const unit *p) { return (__m512bh)_mm512_set1_epi32((int)*p); }
static inline __m512bh bf16_load_b(const unit *p) { return (__m512bh)_mm512_loadu_si512(p); }
static inline vec bf16_step(vec c, __m512bh a, __m512bh b) { return _mm512_dpbf16_ps(c, a, b); }

#define NAME(x) bf16_##x
#define PACK_PAIRS
#define TILES_ONLY
#define MAX_ROWS 14
#define A_BLOCK 16
#define FOR_EACH_ROW_COUNT(X) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14)
#include "runtime/device/cpu/product/micro_kernel.inc"

void amp_product_avx512_bf16_tile(const amp_product_tile *tile) { bf16_tile(tile); }
void amp_product_avx512_bf16_gather(const amp_gather_tile *tile) { bf16_gather(tile); }
#endif
