/* product_portable.c: products in GCC's vector extension, for any machine.
 *
 * Four lanes are a register on every 64-bit machine.  Compiled with -ffp-contract=off: the two roundings of a product
 * and a sum are part of the contract (product.h).
 */
#include <string.h>

#include "runtime/device/cpu/product/kernels.h"
#include "runtime/device/cpu/product/micro_kernel.h"

#define LANES 4

typedef float vec __attribute__((vector_size(4 * LANES)));
typedef uint32_t bits __attribute__((vector_size(4 * LANES)));
typedef int32_t vec_lanes __attribute__((vector_size(4 * LANES)));

static inline vec vec_zero(void) { return (vec){0}; }

static inline vec vec_load(const float *p) {
    vec v;
    memcpy(&v, p, sizeof v);
    return v;
}

static inline void vec_store(float *p, vec v) { memcpy(p, &v, sizeof v); }

static inline vec vec_fma(vec a, vec b, vec c) { return c + a * b; }
static inline vec vec_widen(const uint16_t *p) { return (vec)((bits){p[0], p[1], p[2], p[3]} << 16); }
static inline vec vec_of_bits(uint32_t x) { return (vec)((bits){0} + x); }
static inline vec vec_pick(vec v, vec_lanes from) { return (vec){v[from[0]], v[from[1]], v[from[2]], v[from[3]]}; }

/* ---- f32 ---- */

typedef vec f32_a_unit, f32_b_units;

static inline vec f32_load_a(const unit *p) { return vec_of_bits(*p); }
static inline vec f32_load_b(const unit *p) { return vec_load((const float *)p); }
static inline vec f32_step(vec c, vec a, vec b) { return c + a * b; }

#define NAME(x) f32_##x
#define MAX_ROWS 4
#define A_BLOCK 32
#define FOR_EACH_ROW_COUNT(X) X(1) X(2) X(3) X(4)
#include "runtime/device/cpu/product/micro_kernel.inc"

/* ---- bf16: a bf16 is the upper half of an f32 ---- */

typedef struct bf16_pair {
    vec even, odd;
} bf16_pair;
typedef bf16_pair bf16_a_unit, bf16_b_units;

static inline bf16_pair bf16_load_a(const unit *p) {
    return (bf16_pair){vec_of_bits(*p << 16), vec_of_bits(*p & 0xffff0000u)};
}

static inline bf16_pair bf16_load_b(const unit *p) {
    bits v;
    memcpy(&v, p, sizeof v);
    return (bf16_pair){(vec)(v << 16), (vec)(v & 0xffff0000u)};
}

static inline vec bf16_step(vec c, bf16_pair a, bf16_pair b) { return c + a.odd * b.odd + a.even * b.even; }

#define NAME(x) bf16_##x
#define PACK_PAIRS
#define MAX_ROWS 4
#define A_BLOCK 16
#define FOR_EACH_ROW_COUNT(X) X(1) X(2) X(3) X(4)
#include "runtime/device/cpu/product/micro_kernel.inc"

const amp_product_kernels amp_product_portable_f32 = {
    "portable",           AMP_DT_F32, f32_tile,      f32_gather,    f32_depthwise,
    f32_depthwise_weight, f32_pack,   f32_transpose, &f32_winograd, NULL};
const amp_product_kernels amp_product_portable_bf16 = {
    "portable", AMP_DT_BF16,   bf16_tile, bf16_gather, bf16_depthwise, bf16_depthwise_weight,
    bf16_pack,  f32_transpose, NULL,      NULL};
