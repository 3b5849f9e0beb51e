/* frame.h: messages on a stream: headers, of which Content-Length counts, an empty line, and JSON. */
#ifndef AMP_TOOLS_AMPC_LSP_FRAME_H
#define AMP_TOOLS_AMPC_LSP_FRAME_H

#include <stdio.h>

#include "base/arena.h"

typedef enum FrameKind {
    FRAME_MESSAGE,
    FRAME_WRONG, /* the headers say no usable length: |text| says why, and reading can go on */
    FRAME_END    /* of the stream, in the middle of a message too */
} FrameKind;

typedef struct Frame {
    FrameKind kind;
    const char *text; /* the JSON, or what is wrong; in the arena */
    size_t size;
} Frame;

Frame frame_read(FILE *from, Arena *a);
void frame_write(FILE *to, const char *json, size_t size);

#endif
