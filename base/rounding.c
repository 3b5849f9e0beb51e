/* rounding.c: see rounding.h. */
#include "base/rounding.h"

#include "base/float_bits.h"

/* IEEE 754 binary32: 1 sign, 8 exponent (bias 127), 23 mantissa bits; binary16: 1, 5 (bias 15), 10; bfloat16 is the
 * upper half of binary32. */
enum { F32_MANTISSA = 23, F16_MANTISSA = 10, F16_SHIFT = F32_MANTISSA - F16_MANTISSA, BIAS_DIFFERENCE = 127 - 15 };

static const uint32_t f32_magnitude = 0x7FFFFFFF, f32_infinity = 0x7F800000, f32_mantissa = 0x007FFFFF,
                      f32_implicit_one = 0x00800000, f32_quiet = 0x00400000;
static const uint32_t f16_infinity = 0x7C00, f16_quiet_nan = 0x7E00;

/* Drops the low |shift| bits (1 to 31), to nearest, ties to even. */
static uint32_t shift_right_rounded(uint32_t v, int shift) {
    uint32_t odd = v >> shift & 1;
    return (v + ((1u << (shift - 1)) - 1) + odd) >> shift;
}

/* A carry out of the mantissa steps the exponent up, and out of the largest exponent it gives infinity: both are the
 * right results, because the fields are adjacent. */
uint16_t amp_f32_to_f16(float x) {
    uint32_t bits = amp_bits_of(x), magnitude = bits & f32_magnitude;
    uint16_t sign = (uint16_t)(bits >> 16 & 0x8000);
    int exponent = (int)(magnitude >> F32_MANTISSA) - BIAS_DIFFERENCE;
    if (magnitude > f32_infinity) return (uint16_t)(sign | f16_quiet_nan | (magnitude >> F16_SHIFT & 0x3FF));
    if (exponent > 30) return (uint16_t)(sign | f16_infinity);
    if (exponent > 0) {
        uint32_t rebiased = magnitude - ((uint32_t)BIAS_DIFFERENCE << F32_MANTISSA);
        return (uint16_t)(sign | shift_right_rounded(rebiased, F16_SHIFT));
    }
    /* Subnormal: the implicit one becomes explicit and moves right; below half the smallest value it is gone. */
    if (exponent < -F16_MANTISSA) return sign;
    uint32_t mantissa = (magnitude & f32_mantissa) | f32_implicit_one;
    return (uint16_t)(sign | shift_right_rounded(mantissa, F16_SHIFT + 1 - exponent));
}

float amp_f16_to_f32(uint16_t h) {
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, magnitude = h & 0x7FFF;
    if (magnitude >= f16_infinity) return amp_float_of(sign | f32_infinity | (magnitude & 0x3FF) << F16_SHIFT);
    if (magnitude < 0x400) { /* subnormal: units of 2^-24, exact in float */
        float value = (float)magnitude * 0x1p-24f;
        return sign ? -value : value;
    }
    return amp_float_of(sign | ((magnitude << F16_SHIFT) + ((uint32_t)BIAS_DIFFERENCE << F32_MANTISSA)));
}

uint16_t amp_f32_to_bf16(float x) {
    uint32_t bits = amp_bits_of(x);
    if ((bits & f32_magnitude) > f32_infinity) return (uint16_t)(bits >> 16 | 0x0040); /* quiet, and not infinity */
    /* The sign rides along: a magnitude never carries into it. */
    return (uint16_t)shift_right_rounded(bits, 16);
}

float amp_bf16_to_f32(uint16_t h) { return amp_float_of((uint32_t)h << 16); }

/* ---- 8 bits ------------------------------------------------------------------------------------------------------ */

enum { F8_SHIFT = F32_MANTISSA - 2, F8M_NAN = 127, F8M_BEFORE = 403, F8V_NAN = 255, F8V_BEFORE = 299 };

/* |before|: the upper bits of the f32 before the first number that is not zero. */
static uint32_t code_of(uint32_t magnitude, uint32_t before, uint32_t nan) {
    if (magnitude >= f32_infinity) return nan;
    const uint32_t upper = shift_right_rounded(magnitude, F8_SHIFT);
    return upper <= before ? 0 : upper - before < nan ? upper - before : nan - 1;
}

static float of_code(uint32_t code, uint32_t before, uint32_t nan) {
    if (code == nan) return amp_float_of(f32_infinity | f32_quiet);
    return code ? amp_float_of((code + before) << F8_SHIFT) : 0.0f;
}

uint8_t amp_f32_to_f8m(float x) {
    const uint32_t magnitude = amp_bits_of(x) & f32_magnitude, least = (uint32_t)(F8M_BEFORE + 1) << F8_SHIFT;
    const uint32_t half = least - f32_implicit_one; /* of the least number: an exponent less */
    const uint32_t code = magnitude < least ? magnitude > half : code_of(magnitude, F8M_BEFORE, F8M_NAN);
    return (uint8_t)(code | (amp_bits_of(x) >> 24 & 0x80));
}

float amp_f8m_to_f32(uint8_t code) {
    const float size = of_code(code & 0x7F, F8M_BEFORE, F8M_NAN);
    return amp_float_of(amp_bits_of(size) | (uint32_t)(code & 0x80) << 24);
}

uint8_t amp_f32_to_f8v(float x) {
    if (x <= 0.0f) return 0;
    const uint32_t code = code_of(amp_bits_of(x) & f32_magnitude, F8V_BEFORE, F8V_NAN);
    return (uint8_t)(code ? code : 1);
}

float amp_f8v_to_f32(uint8_t code) { return of_code(code, F8V_BEFORE, F8V_NAN); }

/* ---- by type ----------------------------------------------------------------------------------------------------- */

float amp_round_f16(float x) { return amp_f16_to_f32(amp_f32_to_f16(x)); }

float amp_round_bf16(float x) { return amp_bf16_to_f32(amp_f32_to_bf16(x)); }

float amp_round_tf32(float x) {
    uint32_t bits = amp_bits_of(x);
    if ((bits & f32_magnitude) > f32_infinity) return x;
    return amp_float_of(shift_right_rounded(bits, F16_SHIFT) << F16_SHIFT);
}

float amp_round_dtype(amp_dtype dtype, float x) {
    switch (dtype) {
#define DTYPE(...)
#define ROUNDED(id, to_code, to_f32)                                                                                   \
    case AMP_DT_##id:                                                                                                  \
        return to_f32(to_code(x));
#define CODED_DTYPE(id, name, ...) ROUNDED(id, amp_f32_to_##name, amp_##name##_to_f32)
#include "base/dtypes.def"
    case AMP_DT_TF32: return amp_round_tf32(x);
    default: return x;
    }
}
