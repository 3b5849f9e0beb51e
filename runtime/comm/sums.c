/* sums.c: see sums.h. */
#include "runtime/comm/sums.h"

#include <string.h>

#include "base/float_environment.h"
#include "base/rounding.h"

enum { BLOCK = 512 }; /* elements whose sums stay in the first cache */

bool amp_sums_have(amp_dtype dtype) {
    return dtype == AMP_DT_F32 || dtype == AMP_DT_F64 || dtype == AMP_DT_F16 || dtype == AMP_DT_BF16;
}

static void add_f32(const float *parts, int32_t ranks, size_t stride, size_t count, float *out) {
    memcpy(out, parts, count * sizeof *out);
    for (int32_t r = 1; r < ranks; r++)
        for (size_t i = 0; i < count; i++) out[i] += parts[(size_t)r * stride + i];
}

static void add_f64(const double *parts, int32_t ranks, size_t stride, size_t count, double *out) {
    memcpy(out, parts, count * sizeof *out);
    for (int32_t r = 1; r < ranks; r++)
        for (size_t i = 0; i < count; i++) out[i] += parts[(size_t)r * stride + i];
}

static void add_f16(const uint16_t *parts, int32_t ranks, size_t stride, size_t count, uint16_t *out) {
    float sums[BLOCK];
    for (size_t i = 0; i < count; i++) sums[i] = amp_f16_to_f32(parts[i]);
    for (int32_t r = 1; r < ranks; r++)
        for (size_t i = 0; i < count; i++) sums[i] += amp_f16_to_f32(parts[(size_t)r * stride + i]);
    for (size_t i = 0; i < count; i++) out[i] = amp_f32_to_f16(sums[i]);
}

static void add_bf16(const uint16_t *parts, int32_t ranks, size_t stride, size_t count, uint16_t *out) {
    float sums[BLOCK];
    for (size_t i = 0; i < count; i++) sums[i] = amp_bf16_to_f32(parts[i]);
    for (int32_t r = 1; r < ranks; r++)
        for (size_t i = 0; i < count; i++) sums[i] += amp_bf16_to_f32(parts[(size_t)r * stride + i]);
    for (size_t i = 0; i < count; i++) out[i] = amp_f32_to_bf16(sums[i]);
}

void amp_sums_add(amp_dtype dtype, const void *parts, int32_t ranks, size_t count, void *out) {
    AMP_DEFAULT_FLOAT_ENVIRONMENT();
    for (size_t at = 0; at < count; at += BLOCK) {
        const size_t n = count - at < BLOCK ? count - at : BLOCK;
        switch (dtype) {
        case AMP_DT_F32: add_f32((const float *)parts + at, ranks, count, n, (float *)out + at); break;
        case AMP_DT_F64: add_f64((const double *)parts + at, ranks, count, n, (double *)out + at); break;
        case AMP_DT_F16: add_f16((const uint16_t *)parts + at, ranks, count, n, (uint16_t *)out + at); break;
        case AMP_DT_BF16: add_bf16((const uint16_t *)parts + at, ranks, count, n, (uint16_t *)out + at); break;
        default: break; /* amp_sums_have */
        }
    }
}
