/* protobuf.h: the wire format of Protocol Buffers (protobuf.dev/programming-guides/encoding).  A message is fields:
 * a tag, which is a number and how the value is stored, and the value.  Readers and writers are made of these. */
#ifndef AMP_BASE_PROTOBUF_H
#define AMP_BASE_PROTOBUF_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum amp_wire {
    AMP_WIRE_VARINT = 0,
    AMP_WIRE_64 = 1,
    AMP_WIRE_BYTES = 2,
    AMP_WIRE_GROUP = 3, /* to AMP_WIRE_GROUP_END: no message of ours has one */
    AMP_WIRE_GROUP_END = 4,
    AMP_WIRE_32 = 5
} amp_wire;

enum { AMP_VARINT_MOST = 10 }; /* bytes */

/* Seven bits a byte, the lowest first; the top bit says that more follow.  How many bytes they are. */
static inline size_t amp_varint_put(unsigned char out[AMP_VARINT_MOST], uint64_t value) {
    size_t size = 0;
    for (; value > 0x7F; value >>= 7) out[size++] = (unsigned char)(value | 0x80);
    out[size++] = (unsigned char)value;
    return size;
}

static inline size_t amp_varint_size(uint64_t value) {
    size_t size = 1;
    for (; value > 0x7F; value >>= 7) size++;
    return size;
}

/* Bytes of the number at |data|, or 0 if it does not end there or has more than 64 bits. */
static inline size_t amp_varint_get(const unsigned char *data, size_t size, uint64_t *value) {
    *value = 0;
    for (size_t i = 0; i < size && i < AMP_VARINT_MOST; i++) {
        if (i == AMP_VARINT_MOST - 1 && data[i] > 1) return 0;
        *value |= (uint64_t)(data[i] & 0x7F) << 7 * i;
        if (data[i] < 0x80) return i + 1;
    }
    return 0;
}

static inline uint64_t amp_wire_tag(unsigned field, amp_wire wire) { return (uint64_t)field << 3 | wire; }

static inline void amp_little_endian_put(unsigned char *out, uint64_t bits, size_t size) {
    for (size_t i = 0; i < size; i++) out[i] = (unsigned char)(bits >> 8 * i);
}

static inline uint64_t amp_little_endian_get(const unsigned char *data, size_t size) {
    uint64_t bits = 0;
    for (size_t i = size; i; i--) bits = bits << 8 | data[i - 1];
    return bits;
}

#ifdef __cplusplus
}
#endif

#endif
