/* cuda_writer.h: what the files that write all kernels of a module share: cuda_launches.c, part_launch.c. */
#ifndef AMP_CODEGEN_CUDA_CUDA_WRITER_H
#define AMP_CODEGEN_CUDA_CUDA_WRITER_H

#include "codegen/cuda/cuda_kernel.h"

typedef struct CudaTitle {    /* of kernels that are alike */
    const char *first, *last; /* their names */
    const char *text;         /* what follows the name */
    int count;
} CudaTitle;

typedef struct CudaWritten { /* while others may still turn out to be equal */
    const char *body, *entry;
    const char *comment; /* of the first that uses it */
    int min_arch;
    VEC(CudaTitle *) titles; /* of all that use it */
    Table by_text;           /* the titles */
} CudaWritten;

typedef struct CudaWriter {
    const Module *m;
    CudaModule *out;
    amp_error *err;
    VEC(CudaWritten *) functions;
    Table by_body;
    Func *own;   /* the function at hand; its last kernels are what follows calls of a library */
    int buffers; /* of the function; its further ones are other names, of |aliases| */
    VEC(uint32_t) aliases;
    Walk w;               /* of |own| */
    const int *buffer_of; /* by value: its first buffer, from 1; 0: none */
} CudaWriter;

/* Of kernel |k|, which |x->w| has analysed from then on. */
amp_status cuda_write_kernel(CudaWriter *x, const Kernel *k, CudaForm form, CudaBody *body);
/* The number of the function of that text; -1: there is none yet. */
int cuda_find_function(const CudaWriter *x, const CudaBody *body);
/* A new one, named after |k|; |choice|: of the kernel's, from 1; 0: its own.  |comment|: lines of one. */
int cuda_add_function(CudaWriter *x, const Kernel *k, const CudaBody *body, int choice, const char *comment);
/* part_launch.c: a launch and its functions.  Its operands are still to be added. */
amp_status cuda_write_launch(CudaWriter *x, const Launch *launch, CudaKernelEntry *entry);
/* library_calls.c: the products of a launch as calls of a library, in the order of its kernels, and the launch of
 * elements that follows them, whose kernels are added to |x->own|; no parts: nothing follows.  Returns NULL, or why
 * there are no calls: "" if the launch has no products. */
const char *cuda_find_calls(CudaWriter *x, const Launch *launch, CudaProducts *calls, Launch *rest);

#endif
