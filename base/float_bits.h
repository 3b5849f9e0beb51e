/* float_bits.h: a float as the bits that hold it (IEEE 754 binary32), and back. */
#ifndef AMP_BASE_FLOAT_BITS_H
#define AMP_BASE_FLOAT_BITS_H

#include <stdint.h>
#include <string.h>

static inline uint32_t amp_bits_of(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline float amp_float_of(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

#endif
