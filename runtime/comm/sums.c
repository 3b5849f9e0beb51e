/* sums.c: see sums.h. */
#include "runtime/comm/sums.h"

#include <string.h>

#include "base/float_bits.h"
#include "base/float_environment.h"

enum { BLOCK = 512 }; /* elements whose sums stay in the first cache */

bool amp_sums_have(amp_dtype dtype) {
    return dtype == AMP_DT_F32 || dtype == AMP_DT_F64 || dtype == AMP_DT_F16 || dtype == AMP_DT_BF16;
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

/* ---- blocks ------------------------------------------------------------------------------------------------------ */

/* |count| elements of each part, a block at most. */
typedef struct Parts {
    amp_dtype dtype;
    const char *at; /* of part 0 */
    size_t stride;  /* bytes from part to part */
    size_t count;
} Parts;

/* Sums of f64 are in |f64|, all others in |f32|; what is beyond |count| is computed and not used. */
typedef union Block {
    float f32[BLOCK];
    double f64[BLOCK];
} Block;

static void take(const Parts *p, int32_t part, Block *out) {
    const char *from = p->at + (size_t)part * p->stride;
    uint16_t block[BLOCK] = {0};
    if (p->count < BLOCK) memset(out, 0, sizeof *out);
    switch (p->dtype) {
    case AMP_DT_F32: memcpy(out->f32, from, p->count * sizeof *out->f32); break;
    case AMP_DT_F64: memcpy(out->f64, from, p->count * sizeof *out->f64); break;
    default:
        memcpy(block, from, p->count * sizeof *block);
        if (p->dtype == AMP_DT_F16) widen_f16(block, out->f32);
        else widen_bf16(block, out->f32);
    }
}

static void add(const Parts *p, Block *restrict sums, const Block *restrict more) {
    if (p->dtype == AMP_DT_F64)
        for (int i = 0; i < BLOCK; i++) sums->f64[i] += more->f64[i];
    else
        for (int i = 0; i < BLOCK; i++) sums->f32[i] += more->f32[i];
}

static void put(const Parts *p, const Block *sums, void *out) {
    uint16_t block[BLOCK];
    switch (p->dtype) {
    case AMP_DT_F32: memcpy(out, sums->f32, p->count * sizeof *sums->f32); break;
    case AMP_DT_F64: memcpy(out, sums->f64, p->count * sizeof *sums->f64); break;
    default:
        if (p->dtype == AMP_DT_F16) narrow_f16(sums->f32, block);
        else narrow_bf16(sums->f32, block);
        memcpy(out, block, p->count * sizeof *block);
    }
}

/* ---- orders ------------------------------------------------------------------------------------------------------ */

static void add_left(const Parts *p, int32_t ranks, Block *sums) {
    Block more;
    take(p, 0, sums);
    for (int32_t r = 1; r < ranks; r++) {
        take(p, r, &more);
        add(p, sums, &more);
    }
}

/* As deep as |ranks| has binary digits. */
static void add_tree(const Parts *p, int32_t first, int32_t ranks, Block *sums) {
    Block more;
    int32_t left = 1;
    if (ranks == 1) {
        take(p, first, sums);
        return;
    }
    while (left < ranks - left) left *= 2;
    add_tree(p, first, left, sums);
    add_tree(p, first + left, ranks - left, &more);
    add(p, sums, &more);
}

void amp_sums_add(amp_dtype dtype, amp_sums_order order, const void *parts, int32_t ranks, size_t count, void *out) {
    const size_t size = amp_dtype_size(dtype);
    Block sums;
    AMP_DEFAULT_FLOAT_ENVIRONMENT();
    for (size_t at = 0; at < count; at += BLOCK) {
        const Parts p = {dtype, (const char *)parts + at * size, count * size, count - at < BLOCK ? count - at : BLOCK};
        if (order == AMP_SUMS_TREE) add_tree(&p, 0, ranks, &sums);
        else add_left(&p, ranks, &sums);
        put(&p, &sums, (char *)out + at * size);
    }
}
