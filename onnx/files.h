/* files.h: the bytes of a model: its file, by a window of it, and the files of external data beside it. */
#ifndef AMP_ONNX_FILES_H
#define AMP_ONNX_FILES_H

#include "base/file_reader.h"
#include "onnx/onnx.h"

enum { ONNX_WINDOW = 256 << 10, ONNX_PIECE = 16 << 10 };

struct OnnxFiles {
    const char *path;
    const uint8_t *memory; /* the whole model; NULL: in |model| */
    uint64_t size;         /* of the model */
    amp_file_reader model;
    amp_file_reader external; /* the last that was needed */
    const char *location;     /* of |external| */
    uint8_t *window;          /* of |model|; ONNX_WINDOW bytes */
    uint64_t window_at;
    size_t window_size;
};

/* Makes |model|->files. */
amp_status onnx_files_open(const char *path, Arena *arena, OnnxModel *model, amp_error *err);
void onnx_files_memory(const void *bytes, size_t size, const char *path, Arena *arena, OnnxModel *model);

/* Bytes of the model from |at| on: at least |wanted|, which is at most ONNX_WINDOW, or all that there are.  They hold
 * until the next call. */
amp_status onnx_files_look(OnnxFiles *f, uint64_t at, size_t wanted, const uint8_t **data, size_t *size,
                           amp_error *err);
/* |size| bytes of the model, which are there. */
amp_status onnx_files_copy(OnnxFiles *f, uint64_t at, void *to, size_t size, amp_error *err);
/* |size| bytes at |at| of the external file |location|, which were there when it was checked. */
amp_status onnx_files_external(OnnxFiles *f, const char *location, uint64_t at, void *to, size_t size, amp_error *err);

/* Opens the file |location| as |f|->external.  What a model may name is a regular file in or below its own folder, by a
 * way without links, and under no other name: everything else could be any file of the machine. */
amp_status onnx_external_open(OnnxFiles *f, const char *location, amp_error *err);

#endif
