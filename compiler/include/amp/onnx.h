/* amp/onnx.h: autocast for ONNX models: an f32 graph in, a graph with f16 or bf16 and a reason for each node out.
 *
 *     amp_onnx_options options = {.struct_size = sizeof options, .output = "out.onnx"};
 *     amp_onnx_counts counts = {.struct_size = sizeof counts};
 *     amp_compile_result *report;
 *     amp_status status = amp_onnx_autocast("model.onnx", &options, &counts, &report, &err);
 *     puts(amp_compile_result_data(report, NULL));
 *     amp_compile_result_release(report);
 *
 * docs/onnx.md says what is decided, and what is not done.  Nothing is printed, and what amp/compile.h says of threads,
 * stacks and rounding modes holds here.
 */
#ifndef AMP_ONNX_H
#define AMP_ONNX_H

#include "amp/compile.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct amp_onnx_options {
    size_t struct_size;
    /* The file to write, with |output|.data beside it where the model has external data or is larger than 2 GB.  NULL:
     * nothing is written, and the report says what would be. */
    const char *output;
    int32_t force;         /* not 0: files that are there are replaced */
    int32_t json;          /* not 0: the report is JSON */
    int32_t all;           /* not 0: the report as text has a line for each node */
    int32_t keep_io;       /* not 0: inputs and outputs keep their types */
    const char *precision; /* "fp16" or "bf16"; NULL: "fp16" */
    const char *policy;    /* built-in name or file; NULL: the precision's default */
    /* What stays in f32: an op, "Softmax", or a glob on names of nodes, "*layer.3*". */
    const char *const *keep;
    size_t keep_count;
    /* "NAME=float16": the type of a value that has none otherwise, as an unknown op's result. */
    const char *const *assume;
    size_t assume_count;
    /* A file of JSON, {"VALUE": [SMALLEST, LARGEST], ...}: what values were measured to be.  NULL: weights alone are
     * looked at. */
    const char *ranges;
    int64_t opset;      /* of ai.onnx, to write the graph in: later than its own one; 0: its own */
    int64_t batch_hint; /* the size of dims that only have a name, where bytes are counted; 0: 32 */
    const amp_allocator *allocator;
    /* As in amp_compile_options. */
    void (*diagnostic)(void *user, const char *text, int32_t is_error);
    void (*dependency)(void *user, const char *path);
    void *user;
    int32_t html; /* not 0: the report is a page for a browser, one file that needs no network */
} amp_onnx_options;

typedef struct amp_onnx_counts {
    size_t struct_size;
    int64_t nodes, lowered, kept;              /* before; in the low type; in f32 by a reason */
    int64_t casts_before, casts;               /* between float types */
    int64_t weights, over, under;              /* converted; elements that became infinite, that became zero */
    int64_t weight_bytes_before, weight_bytes; /* of all weights */
    double moved_bytes_before, moved_bytes;    /* that nodes read and write, where sizes are known */
} amp_onnx_counts;

/* AMP_BAD_FILE: the model, or |ranges|; AMP_BAD_SOURCE: the policy has errors; AMP_UNSUPPORTED: an opset or a type that
 * is not known, or nothing was lowered, and the message says why; then nothing is written.  AMP_NOT_FOUND, AMP_IO,
 * AMP_OUT_OF_MEMORY, AMP_INVALID_ARGUMENT.  |counts| may be NULL.  The caller releases the report. */
AMP_API AMP_MUST_USE amp_status amp_onnx_autocast(const char *model, const amp_onnx_options *options,
                                                  amp_onnx_counts *counts, amp_compile_result **report, amp_error *err);

/* What differs between two models, such as before and after autocast: nodes that compute in another type, and why;
 * casts; types of weights.  Of |options| json, all, assume, batch_hint, allocator and diagnostic count. */
AMP_API AMP_MUST_USE amp_status amp_onnx_compare(const char *before, const char *after, const amp_onnx_options *options,
                                                 amp_compile_result **report, amp_error *err);

#ifdef __cplusplus
}
#endif

#endif
