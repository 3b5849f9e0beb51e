/* protobuf.h: messages of Protocol Buffers, put together field by field, for files that other tools read.
 *
 * The encoding is that of protobuf.dev/programming-guides/encoding: each field is its number and how it is stored, then
 * its value.  Only what amprun writes is here; nothing is read.
 */
#ifndef AMP_TOOLS_AMPRUN_PROTOBUF_H
#define AMP_TOOLS_AMPRUN_PROTOBUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Zeroed: empty. */
typedef struct Message {
    unsigned char *data;
    size_t size, room;
    bool failed; /* memory ran out: what is there is not the whole message */
} Message;

void message_clear(Message *m); /* its memory is kept for the next one */
void message_free(Message *m);

void message_uint(Message *m, int field, uint64_t value);
void message_int(Message *m, int field, int64_t value); /* int32, int64 and enums; not sint64 */
void message_float(Message *m, int field, float value);
void message_double(Message *m, int field, double value);
void message_doubles(Message *m, int field, const double *values, size_t count); /* packed */
/* Bytes that are no UTF-8 become U+FFFD, as readers refuse them.  NULL: no field. */
void message_text(Message *m, int field, const char *text);

/* A message as a field: what is put between begin and end.  |at|: what begin returned. */
size_t message_begin(Message *m, int field);
void message_end(Message *m, size_t at);

#endif
