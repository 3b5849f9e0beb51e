/* writer.h: writing a model: messages by their tables (write.c), elements of tensors (write_tensor.c). */
#ifndef AMP_ONNX_WRITER_H
#define AMP_ONNX_WRITER_H

#include "base/file.h"
#include "base/protobuf.h"
#include "onnx/fields.h"
#include "onnx/files.h"

enum { ONNX_OUT = 64 << 10 };

/* A file that is written, by pieces; bytes that are only counted have no file. */
typedef struct Out {
    amp_file_writer *file;
    char *buffer; /* ONNX_OUT bytes */
    size_t held;
    uint64_t at; /* bytes so far */
} Out;

amp_status onnx_put(Out *out, const void *data, size_t size, amp_error *err);
amp_status onnx_flush(Out *out, amp_error *err);

/* A model is gone through twice, by the same functions: once to count the bytes of each message, which its length is
 * written of before it, and once to write it. */
typedef struct Writer {
    const OnnxModel *model;
    Arena *arena;
    amp_error *err;
    bool is_counting;
    VEC(uint64_t) sizes; /* of messages, in the order of their beginnings */
    int next;            /* of sizes, when they are written */
    Out out, data;
    const char *location;  /* of external data that is written; NULL: none is */
    bool had_external;     /* a tensor of the model has */
    const char *data_path; /* is replaced, and may not be of the model; NULL */
} Writer;

/* A tensor as it is written: elements converted, and in the file in which they will be. */
typedef struct TensorPlan {
    OnnxTensor tensor; /* to be written */
    OnnxProp props[4]; /* of its external data */
    char texts[2][24];
    const OnnxTensor *from;
} TensorPlan;

/* |is_initializer|: only these and what is external already leave the model. */
amp_status onnx_plan_tensor(Writer *w, const OnnxTensor *from, bool is_initializer, TensorPlan *plan);
/* Elements of |plan|, as the field that it has them in, or counts them. */
amp_status onnx_put_elements(Writer *w, const TensorPlan *plan);

#endif
