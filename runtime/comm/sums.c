/* sums.c: see sums.h. */
#include "runtime/comm/sums.h"

#include <string.h>

#include "base/float_bits.h"
#include "base/float_environment.h"

enum { BLOCK = 512 }; /* elements whose sums stay in the first cache */

bool amp_sums_have(amp_dtype dtype) {
    return dtype == AMP_DT_F32 || dtype == AMP_DT_F64 || dtype == AMP_DT_F16 || dtype == AMP_DT_BF16;
}

static void add_f32(const float *restrict parts, int32_t ranks, size_t stride, size_t count, float *restrict out) {
    memcpy(out, parts, count * sizeof *out);
    for (int32_t r = 1; r < ranks; r++)
        for (size_t i = 0; i < count; i++) out[i] += parts[(size_t)r * stride + i];
}

static void add_f64(const double *restrict parts, int32_t ranks, size_t stride, size_t count, double *restrict out) {
    memcpy(out, parts, count * sizeof *out);
    for (int32_t r = 1; r < ranks; r++)
        for (size_t i = 0; i < count; i++) out[i] += parts[(size_t)r * stride + i];
}

/* ---- 16 bits ----------------------------------------------------------------------------------------------------- */

/* The conversions of base/rounding.h have branches, which cost ten times the addition.  These are the same (the test
 * compares them for every number) over whole blocks, in a form that compilers make vectors of. */

/* All ones where |a| is greater, as signed numbers. */
static uint32_t greater(uint32_t a, uint32_t b) { return 0u - (uint32_t)((int32_t)a > (int32_t)b); }
static uint32_t select(uint32_t mask, uint32_t yes, uint32_t no) { return (mask & yes) | (~mask & no); }

/* The bits of a half, moved, are a float that is 2^112 times too small, also of subnormals; infinity and NaN get the
 * exponent that they have. */
static void widen_f16(const uint16_t *restrict from, float *restrict to) {
    for (int i = 0; i < BLOCK; i++) {
        const uint32_t h = from[i], magnitude = (h & 0x7fff) << 13, special = greater(magnitude, 0x0f7fffff);
        to[i] =
            amp_float_of(amp_bits_of(amp_float_of(magnitude) * 0x1p112f) | (special & 0x7f800000) | (h & 0x8000) << 16);
    }
}

static void widen_bf16(const uint16_t *restrict from, float *restrict to) {
    for (int i = 0; i < BLOCK; i++) to[i] = amp_float_of((uint32_t)from[i] << 16);
}

/* To nearest, ties to even: half of what is dropped, less one where the last bit that stays is even.  Subnormals are
 * rounded by the addition of a half, below which an f32 has as many bits as they have. */
static void narrow_f16(const float *restrict from, uint16_t *restrict to) {
    for (int i = 0; i < BLOCK; i++) {
        const uint32_t bits = amp_bits_of(from[i]), magnitude = bits & 0x7fffffff;
        const uint32_t normal = (magnitude - (112u << 23) + 0xfff + (magnitude >> 13 & 1)) >> 13;
        const uint32_t small = amp_bits_of(amp_float_of(magnitude) + 0.5f) - 0x3f000000;
        const uint32_t nan = 0x7e00 | (magnitude >> 13 & 0x3ff);
        uint32_t h = select(greater(113u << 23, magnitude), small, normal);
        h = select(greater(magnitude, 0x477fefff), 0x7c00, h); /* from 65520 on */
        h = select(greater(magnitude, 0x7f800000), nan, h);
        to[i] = (uint16_t)(h | (bits >> 16 & 0x8000));
    }
}

static void narrow_bf16(const float *restrict from, uint16_t *restrict to) {
    for (int i = 0; i < BLOCK; i++) {
        const uint32_t bits = amp_bits_of(from[i]), rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
        to[i] = (uint16_t)select(greater(bits & 0x7fffffff, 0x7f800000), bits >> 16 | 0x0040, rounded);
    }
}

static void add_block(float *restrict sums, const float *restrict more) {
    for (int i = 0; i < BLOCK; i++) sums[i] += more[i];
}

/* |count| elements, a block at most: what is beyond them is computed and not used. */
static void add_16(amp_dtype dtype, const uint16_t *parts, int32_t ranks, size_t stride, size_t count, uint16_t *out) {
    void (*const widen)(const uint16_t *, float *) = dtype == AMP_DT_F16 ? widen_f16 : widen_bf16;
    void (*const narrow)(const float *, uint16_t *) = dtype == AMP_DT_F16 ? narrow_f16 : narrow_bf16;
    uint16_t block[BLOCK] = {0};
    float sums[BLOCK], more[BLOCK];
    for (int32_t r = 0; r < ranks; r++) {
        memcpy(block, parts + (size_t)r * stride, count * sizeof *parts);
        widen(block, r ? more : sums);
        if (r) add_block(sums, more);
    }
    narrow(sums, block);
    memcpy(out, block, count * sizeof *out);
}

void amp_sums_add(amp_dtype dtype, const void *parts, int32_t ranks, size_t count, void *out) {
    AMP_DEFAULT_FLOAT_ENVIRONMENT();
    for (size_t at = 0; at < count; at += BLOCK) {
        const size_t n = count - at < BLOCK ? count - at : BLOCK;
        switch (dtype) {
        case AMP_DT_F32: add_f32((const float *)parts + at, ranks, count, n, (float *)out + at); break;
        case AMP_DT_F64: add_f64((const double *)parts + at, ranks, count, n, (double *)out + at); break;
        case AMP_DT_F16:
        case AMP_DT_BF16: add_16(dtype, (const uint16_t *)parts + at, ranks, count, n, (uint16_t *)out + at); break;
        default: break; /* amp_sums_have */
        }
    }
}
