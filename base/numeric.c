/* numeric.c: rounding to the short float types, exactly, and counter-based random numbers. */
#include "base/numeric.h"

#include <string.h>

/* IEEE 754 binary32: 1 sign, 8 exponent (bias 127), 23 mantissa bits; binary16: 1, 5 (bias 15), 10; bfloat16 is the
 * upper half of binary32. */
enum { F32_MANTISSA = 23, F16_MANTISSA = 10, F16_SHIFT = F32_MANTISSA - F16_MANTISSA, BIAS_DIFFERENCE = 127 - 15 };

static const uint32_t f32_magnitude = 0x7FFFFFFF, f32_infinity = 0x7F800000, f32_mantissa = 0x007FFFFF,
                      f32_implicit_one = 0x00800000;
static const uint32_t f16_infinity = 0x7C00, f16_quiet_nan = 0x7E00;

static uint32_t bits_of(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static float float_of(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Drops the low |shift| bits (1 to 31), to nearest, ties to even. */
static uint32_t shift_right_rounded(uint32_t v, int shift) {
    uint32_t odd = v >> shift & 1;
    return (v + ((1u << (shift - 1)) - 1) + odd) >> shift;
}

/* A carry out of the mantissa steps the exponent up, and out of the largest exponent it gives infinity: both are the
 * right results, because the fields lie next to each other. */
uint16_t amp_f32_to_f16(float x) {
    uint32_t bits = bits_of(x), magnitude = bits & f32_magnitude;
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
    if (magnitude >= f16_infinity) return float_of(sign | f32_infinity | (magnitude & 0x3FF) << F16_SHIFT);
    if (magnitude < 0x400) { /* subnormal: units of 2^-24, exact in float */
        float value = (float)magnitude * 0x1p-24f;
        return sign ? -value : value;
    }
    return float_of(sign | ((magnitude << F16_SHIFT) + ((uint32_t)BIAS_DIFFERENCE << F32_MANTISSA)));
}

uint16_t amp_f32_to_bf16(float x) {
    uint32_t bits = bits_of(x);
    if ((bits & f32_magnitude) > f32_infinity) return (uint16_t)(bits >> 16 | 0x0040); /* quiet, and not infinity */
    /* The sign rides along: a magnitude never carries into it. */
    return (uint16_t)shift_right_rounded(bits, 16);
}

float amp_bf16_to_f32(uint16_t h) { return float_of((uint32_t)h << 16); }

float amp_round_f16(float x) { return amp_f16_to_f32(amp_f32_to_f16(x)); }

float amp_round_bf16(float x) { return amp_bf16_to_f32(amp_f32_to_bf16(x)); }

float amp_round_tf32(float x) {
    uint32_t bits = bits_of(x);
    if ((bits & f32_magnitude) > f32_infinity) return x;
    return float_of(shift_right_rounded(bits, F16_SHIFT) << F16_SHIFT);
}

float amp_round_dtype(amp_dtype dtype, float x) {
    switch (dtype) {
    case AMP_DT_F16: return amp_round_f16(x);
    case AMP_DT_BF16: return amp_round_bf16(x);
    case AMP_DT_TF32: return amp_round_tf32(x);
    default: return x;
    }
}

/* Philox4x32 round and key schedule with the constants of Salmon et al., SC 2011, table 2 and section 3.3. */
enum { PHILOX_ROUNDS = 10 };
static const uint32_t philox_m0 = 0xD2511F53, philox_m1 = 0xCD9E8D57;
static const uint32_t philox_w0 = 0x9E3779B9, philox_w1 = 0xBB67AE85;

void amp_philox4x32(uint64_t key, const uint32_t counter[4], uint32_t out[4]) {
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
    for (int round = 0; round < PHILOX_ROUNDS; round++, k0 += philox_w0, k1 += philox_w1) {
        uint64_t p0 = (uint64_t)philox_m0 * c0, p1 = (uint64_t)philox_m1 * c2;
        c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c1 = (uint32_t)p1;
        c3 = (uint32_t)p0;
    }
    out[0] = c0, out[1] = c1, out[2] = c2, out[3] = c3;
}

/* Offset basis and prime of FNV (draft-eastlake-fnv, section 5). */
uint32_t amp_hash32(const char *path) {
    uint32_t hash = 0x811C9DC5;
    for (; *path; path++) hash = (hash ^ (uint8_t)*path) * 0x01000193u;
    return hash;
}

uint32_t amp_random_u32(uint64_t seed, uint32_t path_hash, uint32_t iteration, uint32_t micro, uint64_t element) {
    const uint32_t counter[4] = {path_hash, iteration, micro, (uint32_t)(element / 4)};
    uint32_t words[4];
    amp_philox4x32(seed, counter, words);
    return words[element % 4];
}

float amp_random_unit(uint32_t word) { return (float)(word >> 8) * 0x1p-24f; }
