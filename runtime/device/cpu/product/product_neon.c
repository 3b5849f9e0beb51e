/* product_neon.c: products for AArch64, whose vector instructions every processor has: 32 registers of 4 lanes. */
#if defined(__aarch64__)
#include <arm_neon.h>

#include "runtime/device/cpu/product/kernels.h"
#include "runtime/device/cpu/product/micro_kernel.h"

#define LANES 4

typedef float32x4_t vec;
typedef int32x4_t vec_lanes;

static inline vec vec_zero(void) { return vdupq_n_f32(0); }
static inline vec vec_load(const float *p) { return vld1q_f32(p); }
static inline void vec_store(float *p, vec v) { vst1q_f32(p, v); }
static inline vec vec_fma(vec a, vec b, vec c) { return vfmaq_f32(c, a, b); }
static inline vec vec_of_bits(uint32_t x) { return vreinterpretq_f32_u32(vdupq_n_u32(x)); }
static inline vec vec_pick(vec v, vec_lanes from) { return (vec){v[from[0]], v[from[1]], v[from[2]], v[from[3]]}; }
static inline vec vec_widen(const uint16_t *p) { return vreinterpretq_f32_u32(vshll_n_u16(vld1_u16(p), 16)); }

/* ---- f32: 8 x 2 sums, 2 of B, 1 of A ---- */

typedef vec f32_a_unit, f32_b_units;

static inline vec f32_load_a(const unit *p) { return vld1q_dup_f32((const f32_unit *)p); }
static inline vec f32_load_b(const unit *p) { return vld1q_f32((const float *)p); }
static inline vec f32_step(vec c, vec a, vec b) { return vfmaq_f32(c, a, b); }

#define NAME(x) f32_##x
#define MAX_ROWS 8
#define A_BLOCK 32
#define FOR_EACH_ROW_COUNT(X) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8)
#include "runtime/device/cpu/product/micro_kernel.inc"

/* ---- bf16, widened to f32: 8 x 2 sums, 4 of B, 2 of A ---- */

typedef struct bf16_pair {
    vec even, odd;
} bf16_pair;
typedef bf16_pair bf16_a_unit, bf16_b_units;

static inline bf16_pair bf16_widen(uint32x4_t v) {
    return (bf16_pair){vreinterpretq_f32_u32(vshlq_n_u32(v, 16)),
                       vreinterpretq_f32_u32(vandq_u32(v, vdupq_n_u32(0xffff0000u)))};
}

static inline bf16_pair bf16_load_a(const unit *p) { return bf16_widen(vdupq_n_u32(*p)); }
static inline bf16_pair bf16_load_b(const unit *p) { return bf16_widen(vld1q_u32((const uint32_t *)p)); }

static inline vec bf16_step(vec c, bf16_pair a, bf16_pair b) {
    return vfmaq_f32(vfmaq_f32(c, a.odd, b.odd), a.even, b.even);
}

#define NAME(x) bf16_##x
#define PACK_PAIRS
#define MAX_ROWS 8
#define A_BLOCK 16
#define FOR_EACH_ROW_COUNT(X) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8)
#include "runtime/device/cpu/product/micro_kernel.inc"

const amp_product_kernels amp_product_neon_f32 = {
    "neon",   AMP_DT_F32,    f32_tile,      f32_gather, f32_depthwise, f32_depthwise_weight,
    f32_pack, f32_transpose, &f32_winograd, NULL};
const amp_product_kernels amp_product_neon_bf16 = {
    "neon",    AMP_DT_BF16,   bf16_tile, bf16_gather, bf16_depthwise, bf16_depthwise_weight,
    bf16_pack, f32_transpose, NULL,      NULL};
#endif
