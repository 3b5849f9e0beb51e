/* roofline.h: a model of the time that a kernel takes on a GPU, from a model's tables alone (amp/model_abi.h).
 *
 *     time = launch + start
 *            + bytes / (copy * share * min(1, B / M))
 *            + operations / (rate * share * B / (M * ceil(B / M)))               for each kind of instruction
 *
 * A sum, because our kernels wait for memory before and after they compute more than they overlap the two; where B < M,
 * whose blocks have no others beside them, the larger of both.  B: blocks (of products twice, in the second line); M:
 * multiprocessors; start: of the kind of kernel.  Bytes: each operand once where it is read, and once where it is
 * written.  A kernel of few blocks has its share of the bandwidth, and the last wave of blocks takes as long as a full
 * one.  Kernels in one launch have the bytes and operations of all, each at its own rate, and their blocks together.
 * |share|: what our kernels reach of the rate, measured on an H200 (roofline.c).  Caches, registers, and what overlaps
 * with another kernel are left out: it is a model, not a measurement (docs/design/cuda.md). */
#ifndef AMP_TOOLS_ROOFLINE_H
#define AMP_TOOLS_ROOFLINE_H

#include <stdbool.h>
#include <stddef.h>

#include "amp/inspect.h"
#include "tools/roofline/gpus.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum Bound {
    BOUND_MEMORY,
    BOUND_TENSOR_CORES,
    BOUND_ARITHMETIC, /* instructions in f32 */
    BOUND_BLOCKS,     /* one of the three, but fewer blocks than multiprocessors */
    BOUND_LAUNCH,     /* and the start: longer than any of the three */
    BOUND_COUNT
} Bound;
extern const char *const bound_names[BOUND_COUNT]; /* "memory" */

/* In which types: those of the model; all products of tensor cores in TF32, or by f32 multiply-adds, where in both
 * what is stored in f16 or bf16 is stored in f32, and copies of weights in such types are not written. */
typedef enum Form { FORM_OWN, FORM_TF32, FORM_FP32 } Form;

typedef struct KernelTime {
    uint32_t instruction; /* AMP_INSTRUCTION_* of its products; PLAIN: it has none */
    amp_cuda_used used;   /* on that GPU */
    int64_t blocks;
    double flops, bytes, microseconds;
    double waves;       /* the share of all multiprocessors' time that blocks fill (amp_cuda_filled) */
    double other_tiles; /* the least microseconds of the kernel's other tiles; INFINITY: it has none */
    Bound bound;
} KernelTime;

typedef enum RooflineStatus {
    ROOFLINE_OK,
    ROOFLINE_UNKNOWN,       /* the model's tables do not say what the kernel computes */
    ROOFLINE_NO_INSTRUCTION /* the GPU lacks |instruction| */
} RooflineStatus;

/* The tables that a kernel's numbers point into: as the loader has checked them. */
typedef struct RooflineTables {
    const amp_model_buffer *buffers; /* of the program */
    const amp_model_state *states;
} RooflineTables;

/* "mma f16"; "-" for PLAIN. */
const char *instruction_name(uint32_t instruction);

/* AMP_KERNEL_*, for people: kernels that wait for one another are mostly products. */
static inline uint32_t cuda_kernel_kind(const amp_model_cuda_kernel *kernel) {
    return kernel->parts.at->superstep ? (uint32_t)AMP_KERNEL_PRODUCT : kernel->parts.at->kind;
}

double dim_at(const amp_model_dim *dim, amp_sizes sizes);

/* At |sizes|.  |out| is complete only with ROOFLINE_OK. */
RooflineStatus roofline_kernel(const Gpu *gpu, const RooflineTables *tables, const amp_model_cuda_kernel *kernel,
                               amp_sizes sizes, Form form, KernelTime *out);

#ifdef __cplusplus
}
#endif
#endif
