/* half.h: f16 and bf16 to f32 and back, in a form that vectorises.  NaN becomes the canonical one. */
#ifndef FAKECUDA_ALU_HALF_H
#define FAKECUDA_ALU_HALF_H

#include "fakecuda/alu/inside.h"

static inline uint32_t alu_half_to_f32_bits(uint32_t h) {
    uint32_t rest = h & 0x7fff, sign = (h & 0x8000) << 16;
    uint32_t normal = (rest << 13) + (112u << 23), small = alu_f32_bits((float)(int32_t)rest * 0x1p-24f);
    uint32_t x = rest < 0x400 ? small : rest >= 0x7c00 ? (rest << 13 | 0x7f800000u) : normal;
    return rest > 0x7c00 ? ALU_NAN_F32 : x | sign;
}

static inline uint32_t alu_f32_bits_to_half(uint32_t x) { /* nearest, ties to even */
    uint32_t rest = x & 0x7fffffff, sign = x >> 16 & 0x8000;
    uint32_t normal = (rest - (112u << 23) + 0xfff + (rest >> 13 & 1)) >> 13;
    /* Below the normal numbers the addition of 0.5 rounds at the last bit of a subnormal one. */
    uint32_t small = alu_f32_bits(alu_bits_f32(rest < 0x38800000u ? rest : 0) + 0.5f) - 0x3f000000u;
    uint32_t h = rest < 0x38800000u ? small : rest >= 0x47800000u ? 0x7c00u : normal;
    return rest > 0x7f800000u ? 0x7fffu : h | sign;
}

static inline uint32_t alu_bhalf_to_f32_bits(uint32_t h) {
    return (h & 0x7fff) > 0x7f80 ? ALU_NAN_F32 : (h & 0xffff) << 16;
}

static inline uint32_t alu_f32_bits_to_bhalf(uint32_t x) {
    uint32_t rounded = (x + 0x7fff + (x >> 16 & 1)) >> 16;
    return (x & 0x7fffffff) > 0x7f800000u ? 0x7fffu : rounded;
}

#endif
