/* protobuf.c: see protobuf.h. */
#include "tools/amprun/tensorboard/protobuf.h"

#include <stdlib.h>
#include <string.h>

#include "base/protobuf.h"
#include "base/text.h"

void message_clear(Message *m) {
    m->size = 0;
    m->failed = false;
}

void message_free(Message *m) {
    free(m->data);
    *m = (Message){0};
}

/* ---- bytes ------------------------------------------------------------------------------------------------------- */

static bool make_room(Message *m, size_t more) {
    const size_t needed = m->size + more;
    if (m->failed || needed <= m->room) return !m->failed;
    const size_t room = needed > 2 * m->room ? needed : 2 * m->room;
    unsigned char *data = realloc(m->data, room);
    m->failed = !data;
    if (!data) return false;
    m->data = data;
    m->room = room;
    return true;
}

static void put(Message *m, const void *data, size_t size) {
    if (!size || !make_room(m, size)) return;
    memcpy(m->data + m->size, data, size);
    m->size += size;
}

static void put_varint(Message *m, uint64_t value) {
    unsigned char bytes[AMP_VARINT_MOST];
    put(m, bytes, amp_varint_put(bytes, value));
}

static void put_little_endian(Message *m, uint64_t bits, size_t size) {
    unsigned char bytes[8];
    amp_little_endian_put(bytes, bits, size);
    put(m, bytes, size);
}

static void put_double(Message *m, double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    put_little_endian(m, bits, sizeof bits);
}

static void put_tag(Message *m, int field, amp_wire wire) { put_varint(m, amp_wire_tag((unsigned)field, wire)); }

/* ---- fields ------------------------------------------------------------------------------------------------------ */

void message_uint(Message *m, int field, uint64_t value) {
    put_tag(m, field, AMP_WIRE_VARINT);
    put_varint(m, value);
}

void message_int(Message *m, int field, int64_t value) { message_uint(m, field, (uint64_t)value); }

void message_float(Message *m, int field, float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    put_tag(m, field, AMP_WIRE_32);
    put_little_endian(m, bits, sizeof bits);
}

void message_double(Message *m, int field, double value) {
    put_tag(m, field, AMP_WIRE_64);
    put_double(m, value);
}

void message_doubles(Message *m, int field, const double *values, size_t count) {
    put_tag(m, field, AMP_WIRE_BYTES);
    put_varint(m, count * sizeof *values);
    for (size_t i = 0; i < count; i++) put_double(m, values[i]);
}

void message_text(Message *m, int field, const char *text) {
    static const char replacement[] = "\xEF\xBF\xBD";
    if (!text) return;
    const size_t at = message_begin(m, field);
    for (size_t left = strlen(text), n; left; text += n, left -= n) {
        const size_t good = utf8_char_len(text, left);
        n = good ? good : 1;
        put(m, good ? text : replacement, good ? good : sizeof replacement - 1);
    }
    message_end(m, at);
}

size_t message_begin(Message *m, int field) {
    put_tag(m, field, AMP_WIRE_BYTES);
    return m->size;
}

/* The length comes before what it counts. */
void message_end(Message *m, size_t at) {
    unsigned char length[AMP_VARINT_MOST];
    if (m->failed) return;
    const size_t inner = m->size - at, size = amp_varint_put(length, inner);
    if (!make_room(m, size)) return;
    memmove(m->data + at + size, m->data + at, inner);
    memcpy(m->data + at, length, size);
    m->size += size;
}
