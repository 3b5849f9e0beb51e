/* codegen.h: from a module after plan to C text, and to model.so by way of a C compiler. */
#ifndef AMP_CODEGEN_CODEGEN_H
#define AMP_CODEGEN_CODEGEN_H

#include "base/error.h"
#include "codegen/process.h"
#include "ir/kernel_facts.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct CodegenOptions {
    const char *c_compiler;         /* gcc 12 or clang 14, or newer; NULL: "cc" */
    const char *isa;                /* c_compiler_find_isa; NULL: all */
    const amp_allocator *allocator; /* of the bytes; NULL: malloc */
    bool object;                    /* an object file that is linked into a program, in place of model.so */
    ProcessCancel cancel;           /* of the C compilers */
} CodegenOptions;

struct CudaModule;         /* codegen/cuda/cuda.h */
typedef struct CudaImage { /* a function, compiled */
    int function;
    int arch; /* 90 of sm_90a; |suffix| 'a', 'f' or 0 */
    char suffix;
    bool is_cubin; /* machine code; else PTX */
    const void *data;
    size_t size;
    int registers, shared_bytes, spill_bytes, stack_bytes; /* -1: not known */
    double seconds;                                        /* that NVRTC took */
} CudaImage;
typedef struct CodegenCuda {       /* what a model gets for CUDA */
    const struct CudaModule *code; /* NULL: none */
    const CudaImage *images;       /* of its functions, compiled now */
    int image_count;
    const char *missing; /* where |code| is NULL: why */
} CodegenCuda;

/* Kernels of a module after plan for CUDA; everything lives in its arena.  AMP_UNSUPPORTED names the op that has no
 * CUDA code yet. */
amp_status codegen_cuda(const Module *m, const struct CudaModule **out, amp_error *err);
/* PassOptions.describe: what passes ask of kernels before they let them share a launch. */
amp_status codegen_cuda_describe(const Func *f, KernelFacts *out, amp_error *err);
const Module *codegen_cuda_module(const struct CudaModule *cuda);
/* The name of its function |function|: "train_step_k03". */
const char *codegen_cuda_entry(const struct CudaModule *cuda, int function);
/* What the machine code of each kernel needs: the lines of AMP_MODEL_CUDA_USES_SECTION. */
void codegen_cuda_uses(const CodegenCuda *cuda, Text *out);

/* How a kernel of tensor cores copies what it multiplies. */
enum { CODEGEN_COPIES = 2 }; /* of a product: A and B; of attention: queries and values */
typedef struct CodegenCopy {
    const char *func, *path; /* of the op of the graph, "fc1.linear" */
    Pos pos;
    int product;              /* which of the module, from 0 */
    int64_t run;              /* elements that are side by side, in every row: in memory or, of attention, of a head */
    int64_t padded;           /* as how many they are multiplied; more only of attention */
    int element_bytes, bytes; /* of an element where it is multiplied, and of a copy there: 16 at most */
} CodegenCopy;
typedef VEC(CodegenCopy) CodegenCopies;
/* Of each product and each attention of a module after plan for CUDA that tensor cores make.  They live in the
 * module's arena.  AMP_UNSUPPORTED as codegen_cuda. */
amp_status codegen_cuda_copies(const Module *m, CodegenCopies *out, amp_error *err);

typedef struct CodegenImages { /* of the functions of a module */
    CudaImage *data;
    int count, room;
    amp_allocator allocator;
} CodegenImages;

/* How far it is: called by the calling thread only, before a function that it compiles itself.  |index| of |count| are
 * done.  false: no more are compiled, AMP_CANCELLED. */
typedef struct CodegenProgress {
    bool (*begin)(void *user, const char *what, int index, int count); /* NULL: no progress is reported */
    void *user;
} CodegenProgress;

/* Compiles each function for each of |archs| ("sm_80,sm_90"): machine code and PTX, on all processors.  Free with
 * codegen_cuda_images_free, also what a jump of the arena left.  AMP_INVALID_ARGUMENT: no such list; AMP_NOT_FOUND: no
 * NVRTC; AMP_UNSUPPORTED: it does not know an architecture. */
amp_status codegen_cuda_images(const struct CudaModule *cuda, const char *archs, const CodegenProgress *progress,
                               const amp_allocator *allocator, CodegenImages *out, amp_error *err);
void codegen_cuda_images_free(CodegenImages *images); /* empty: a no-op */
/* All functions as one PTX text for the first of |archs|.  Free with amp_free(allocator, *bytes, *size). */
amp_status codegen_cuda_ptx(const struct CudaModule *cuda, const char *archs, const amp_allocator *allocator,
                            char **bytes, size_t *size, amp_error *err);
/* One .cu file for people. */
void codegen_cuda_text(const struct CudaModule *cuda, Text *out);

typedef struct CodegenForm {
    const char *symbol; /* the name of the model in a program that it is linked into; NULL: the model's and "_model" */
    bool no_ir;         /* the texts of the IR are left out */
} CodegenForm;

/* Appends one self-contained C file: kernels of every function, then the descriptor of amp/model_abi.h; its first
 * lines say how to compile it. AMP_UNSUPPORTED names the kernel and value that cannot be emitted;
 * AMP_INVALID_ARGUMENT: the module is not planned.  |cuda| NULL: for the CPU alone.  |form| NULL: all zeros. */
amp_status codegen_c(const Module *m, const CodegenCuda *cuda, const CodegenForm *form, Text *out, amp_error *err);

/* The bytes of model.so: the text of codegen_c compiled for each instruction set, linked, and marked with its SHA-256.
 * Works in a temporary folder that is removed again. Free with amp_free(allocator, *bytes, *size).  AMP_UNSUPPORTED:
 * no C compiler, or it failed (with its first message); AMP_IO. */
amp_status codegen_so(const Text *c, const CodegenOptions *options, char **bytes, size_t *size, amp_error *err);

#ifdef __cplusplus
}
#endif
#endif
