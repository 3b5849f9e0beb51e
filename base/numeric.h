/* numeric.h: rounding to the short float types, exactly, and the random numbers that everything draws from.
 *
 * Rounding is to nearest, ties to even, as IEEE 754 says; NaN stays NaN, overflow gives infinity.
 * Philox4x32-10: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
 */
#ifndef AMP_BASE_NUMERIC_H
#define AMP_BASE_NUMERIC_H

#include "amp/base.h"

#ifdef __cplusplus
extern "C" {
#endif

uint16_t amp_f32_to_f16(float x);
float amp_f16_to_f32(uint16_t h);
uint16_t amp_f32_to_bf16(float x);
float amp_bf16_to_f32(uint16_t h);
float amp_round_f16(float x);
float amp_round_bf16(float x);
float amp_round_tf32(float x);                   /* 10 mantissa bits kept */
float amp_round_dtype(amp_dtype dtype, float x); /* f32 and integer types: unchanged */

/* key = seed; counter = (path hash, iteration, micro-batch, element / 4): out[element % 4]. */
void amp_philox4x32(uint64_t key, const uint32_t counter[4], uint32_t out[4]);
/* 32-bit FNV-1a of a path, the first word of the counter. */
uint32_t amp_hash32(const char *path);
/* The random word of one element.  Elements 2^34 apart get the same one. */
uint32_t amp_random_u32(uint64_t seed, uint32_t path_hash, uint32_t iteration, uint32_t micro, uint64_t element);
/* In [0, 1): the top 24 bits of a word times 2^-24. */
float amp_random_unit(uint32_t word);

#ifdef __cplusplus
}
#endif

#endif
