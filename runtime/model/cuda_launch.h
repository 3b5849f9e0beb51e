/* cuda_launch.h: how a kernel for CUDA is launched for n samples (amp_model_cuda_kernel). */
#ifndef AMP_RUNTIME_MODEL_CUDA_LAUNCH_H
#define AMP_RUNTIME_MODEL_CUDA_LAUNCH_H

#include <stdbool.h>

#include "amp/model_abi.h"

#ifdef __cplusplus
extern "C" {
#endif

/* For people: kernels that wait for one another stand among products. */
static inline uint32_t amp_cuda_kind(const amp_model_cuda_kernel *kernel) {
    return kernel->parts.at->superstep ? (uint32_t)AMP_KERNEL_PRODUCT : kernel->parts.at->kind;
}

/* Whether the blocks of parts follow one another, and the function is told where they begin. */
static inline bool amp_cuda_places_parts(const amp_model_cuda_kernel *kernel) {
    return kernel->parts.count > 1 || kernel->parts.at->superstep;
}

/* Blocks along each axis. */
void amp_cuda_grid(const amp_model_cuda_grid *grid, int64_t n, int64_t blocks[3]);

/* What is launched on a device with a given number of multiprocessors. */
typedef struct amp_cuda_used {
    uint32_t index; /* of the choice */
    const amp_model_cuda_choice *choice;
    int64_t grid[3]; /* of parts: one that CUDA refuses, where they are more blocks than it allows */
} amp_cuda_used;
amp_cuda_used amp_cuda_launch_choose(const amp_model_cuda_kernel *kernel, int64_t n, int multiprocessors);

/* Where the blocks of a part stand in the grid of choice |choice|, which CUDA does not refuse: three parameters. */
typedef struct amp_cuda_part_place {
    int64_t first, x, y;
} amp_cuda_part_place;
amp_cuda_part_place amp_cuda_place_part(const amp_model_cuda_kernel *kernel, uint32_t choice, uint32_t part, int64_t n);

#ifdef __cplusplus
}
#endif

#endif
