/* rounding.h: exact rounding to the short float types: to nearest, ties to even, as IEEE 754 says; NaN stays NaN,
 * overflow gives infinity. */
#ifndef AMP_BASE_ROUNDING_H
#define AMP_BASE_ROUNDING_H

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

#ifdef __cplusplus
}
#endif

#endif
