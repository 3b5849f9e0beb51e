/* number.cuh: roundings to f16, bf16 and tf32, and the bits of 16-bit elements.  Ties go to even; NaN stays NaN. */

INLINE float f32_of_f16(uint16_t h) {
    float x;
    asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(h));
    return x;
}

INLINE uint16_t f16_of_f32(float x) {
    uint16_t h;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(x));
    return h;
}

INLINE float round_f16_f32(float x) { return f32_of_f16(f16_of_f32(x)); }

/* Rounds to nearest even at bit |drop|: adds half a unit less one, plus the bit that decides ties.  A carry into the
 * exponent is the right result. */
#define ROUND_BITS(u, drop) (((u) + ((1u << ((drop)-1)) - 1) + (((u) >> (drop)) & 1)) & ~((1u << (drop)) - 1))

INLINE float f32_of_bf16(uint16_t h) { return float_of((uint32_t)h << 16); }

/* The upper half: of a value that is bf16 already. */
INLINE uint16_t bf16_bits(float x) { return (uint16_t)(bits_of(x) >> 16); }

INLINE float round_bf16_f32(float x) {
#if __CUDA_ARCH__ >= 800
    uint16_t h;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(h) : "f"(x));
    return f32_of_bf16(h);
#else
    return x != x ? float_of((bits_of(x) | 0x00400000u) & 0xFFFF0000u) : float_of(ROUND_BITS(bits_of(x), 16));
#endif
}

/* In integers on every architecture: cvt.rna rounds ties away from zero. */
INLINE float round_tf32_f32(float x) { return x != x ? x : float_of(ROUND_BITS(bits_of(x), 13)); }

/* Two f16 of one word, the first in the lower half. */
INLINE uint32_t pack_f16(float low, float high) {
#if __CUDA_ARCH__ >= 800
    uint32_t pair;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
    return pair;
#else
    return f16_of_f32(low) | (uint32_t)f16_of_f32(high) << 16;
#endif
}

/* Two values that are bf16 already. */
INLINE uint32_t pack_bf16(float low, float high) { return __byte_perm(bits_of(low), bits_of(high), 0x7632); }

/* Two values that are rounded to bf16. */
INLINE uint32_t pack_rounded_bf16(float low, float high) {
#if __CUDA_ARCH__ >= 800
    uint32_t pair;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
    return pair;
#else
    return pack_bf16(round_bf16_f32(low), round_bf16_f32(high));
#endif
}

/* What a conversion by the CPU gives: INT32_MIN where the number does not fit. */
INLINE int32_t i32_of_f32(float x) {
    return x >= -0x1p31f && x < 0x1p31f ? (int32_t)x : INT32_MIN;
}

/* ---- the words of functions.h, for single elements ---- */

INLINE float select_f32(bool mask, float a, float b) { return mask ? a : b; }
INLINE int32_t select_i32(bool mask, int32_t a, int32_t b) { return mask ? a : b; }
INLINE double select_f64(bool mask, double a, double b) { return mask ? a : b; }
INLINE bool any_i32(bool mask) { return mask; }
INLINE bool nan_f32(float x) { return x != x; }

INLINE float float_i32(int32_t x) { return (float)x; }
INLINE double double_f32(float x) { return x; }
INLINE float float_f64(double x) { return (float)x; }
INLINE int32_t int_i64(int64_t x) { return (int32_t)x; }
INLINE double double_i64(int64_t x) { return (double)x; }

INLINE int32_t int_bits(float x) { return __float_as_int(x); }
INLINE float float_bits(int32_t bits) { return __int_as_float(bits); }
INLINE int64_t long_bits(double x) { return __double_as_longlong(x); }
INLINE double double_bits(int64_t bits) { return __longlong_as_double(bits); }
INLINE int32_t magnitude_bits(float x) { return int_bits(x) & INT32_MAX; }
