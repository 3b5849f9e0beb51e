/* codegen.h: from a module at stage plan to C text, and to model.so by way of a C compiler. */
#ifndef AMP_CODEGEN_CODEGEN_H
#define AMP_CODEGEN_CODEGEN_H

#include "base/error.h"
#include "ir/ir.h"

#ifdef __cplusplus
extern "C" {
#endif

#define CODEGEN_COMPILER_VERSION "0.1.0" /* what a model says it was compiled by */

typedef struct CodegenOptions {
    const char *c_compiler;         /* gcc 12 or clang 14, or newer; NULL: "cc" */
    const char *isa;                /* the largest instruction set to compile for: "portable", "v3", "v4"; NULL: "v4" */
    const amp_allocator *allocator; /* of the bytes; NULL: malloc */
} CodegenOptions;

/* Appends one self-contained C file: kernels of every function, then the descriptor of amp/model_abi.h; its first
 * lines say how to compile it. AMP_UNSUPPORTED names the kernel and value that cannot be emitted;
 * AMP_INVALID_ARGUMENT: the module is not at stage plan. */
amp_status codegen_c(const Module *m, Text *out, amp_error *err);

/* The bytes of model.so: the C file compiled for each instruction set, linked, and marked with its SHA-256.  Works
 * in a temporary folder that is removed again. Free with amp_free(allocator, *bytes, *size, 16).  AMP_UNSUPPORTED:
 * no C compiler, or it failed (with its first message); AMP_IO. */
amp_status codegen_so(const Module *m, const CodegenOptions *options, char **bytes, size_t *size, amp_error *err);

#ifdef __cplusplus
}
#endif
#endif
