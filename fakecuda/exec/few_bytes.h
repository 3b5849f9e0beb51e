/* few_bytes.h: filling, copying and looking at what one access touches: most are of 1, 2, 4, 8 or 16 bytes, for which a
 * call of memset or memcpy takes longer than the rest. */
#ifndef FAKECUDA_EXEC_FEW_BYTES_H
#define FAKECUDA_EXEC_FEW_BYTES_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static inline void copy_few(uint8_t *to, const uint8_t *from, uint32_t size) {
    switch (size) {
    case 1: *to = *from; break;
    case 2: memcpy(to, from, 2); break;
    case 4: memcpy(to, from, 4); break;
    case 8: memcpy(to, from, 8); break;
    case 16: memcpy(to, from, 16); break;
    default: memcpy(to, from, size);
    }
}

static inline void fill_few(uint8_t *to, uint8_t value, uint32_t size) {
    switch (size) {
    case 1: *to = value; break;
    case 2: memset(to, value, 2); break;
    case 4: memset(to, value, 4); break;
    case 8: memset(to, value, 8); break;
    case 16: memset(to, value, 16); break;
    default: memset(to, value, size);
    }
}

/* Up to eight bytes as one number. */
static inline uint64_t few_as_number(const uint8_t *from, uint32_t size) {
    uint64_t v = 0;
    uint32_t four;
    uint16_t two;
    switch (size) {
    case 1: return *from;
    case 2: return memcpy(&two, from, 2), two;
    case 4: return memcpy(&four, from, 4), four;
    case 8: return memcpy(&v, from, 8), v;
    default: return memcpy(&v, from, size), v;
    }
}

/* The lowest |size| bytes of |v|, 8 at most. */
static inline void put_number(uint8_t *to, uint64_t v, uint32_t size) {
    const uint32_t four = (uint32_t)v;
    const uint16_t two = (uint16_t)v;
    switch (size) {
    case 1: *to = (uint8_t)v; break;
    case 2: memcpy(to, &two, 2); break;
    case 4: memcpy(to, &four, 4); break;
    default: memcpy(to, &v, 8);
    }
}

/* Whether all bytes are |value|. */
static inline bool all_are(const uint8_t *bytes, uint8_t value, uint32_t size) {
    const uint64_t eight = 0x0101010101010101 * value;
    for (; size > 8; bytes += 8, size -= 8)
        if (few_as_number(bytes, 8) != eight) return false;
    return few_as_number(bytes, size) == (size < 8 ? eight & ((1ull << 8 * size) - 1) : eight);
}

/* Whether some byte has one of the bits |bits|. */
static inline bool some_has(const uint8_t *bytes, uint8_t bits, uint32_t size) {
    const uint64_t eight = 0x0101010101010101 * bits;
    for (; size > 8; bytes += 8, size -= 8)
        if (few_as_number(bytes, 8) & eight) return true;
    return few_as_number(bytes, size) & eight;
}

#endif
