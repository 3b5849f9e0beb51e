/* reader.h: reading messages, and what is checked of each (check.c). */
#ifndef AMP_ONNX_READER_H
#define AMP_ONNX_READER_H

#include "base/protobuf.h"
#include "onnx/fields.h"
#include "onnx/files.h"

typedef struct Reader {
    OnnxFiles *files;
    Arena *arena;
    amp_error *err;
} Reader;

/* A message that is being read, and those around it. */
typedef struct Frame {
    const struct Frame *up;
    const Message *type;
    void *message;
    const Field *field; /* of the message around */
    int index;          /* of several in that field */
    int depth;
    uint64_t at, end; /* bytes of the model */
} Frame;

/* AMP_BAD_FILE: "m.onnx: byte 77: model.graph.node[12] 'conv1': ...". */
amp_status onnx_reader_fail(const Reader *r, const Frame *frame, uint64_t at, const char *format, ...) AMP_PRINTF(4, 5);

/* The numbers of a packed field: how many; an error if they are no varints. */
amp_status onnx_count_varints(const Reader *r, const Frame *frame, uint64_t at, uint64_t end, uint64_t *count);

/* A message that has been read whole. */
amp_status onnx_check_message(Reader *r, const Frame *frame);

#endif
