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
/* The 8 bits of first moments: a sign and a number k, 0 for zero, 127 for NaN, else the f32 whose bits are
 * (k + 403) << 21: from 2^-26 to 40, in steps of a quarter of a power of two.  What is larger becomes 40. */
uint8_t amp_f32_to_f8m(float x);
float amp_f8m_to_f32(uint8_t code);
/* The 8 bits of second moments, which are not negative: 0 for zero, 255 for NaN, else the f32 whose bits are
 * (k + 299) << 21: from 2^-52 to 2560.  What is smaller, but not zero, becomes 2^-52: a root of it is divided by. */
uint8_t amp_f32_to_f8v(float x);
float amp_f8v_to_f32(uint8_t code);
float amp_round_f16(float x);
float amp_round_bf16(float x);
float amp_round_tf32(float x);                   /* 10 mantissa bits kept */
float amp_round_dtype(amp_dtype dtype, float x); /* f32 and integer types: unchanged */

#ifdef __cplusplus
}
#endif

#endif
