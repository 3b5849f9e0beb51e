/* cuda_launch.h: how a kernel for CUDA is launched for n samples (amp_model_cuda_launch, amp_model_cuda_choice,
 * amp_model_cuda_part). */
#ifndef AMP_RUNTIME_MODEL_CUDA_LAUNCH_H
#define AMP_RUNTIME_MODEL_CUDA_LAUNCH_H

#include "amp/model_abi.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Blocks along each axis. */
void amp_cuda_launch_grid(const amp_model_cuda_launch *launch, int64_t n, int64_t grid[3]);

/* The function and launch that are used on a device of so many multiprocessors. */
typedef struct amp_cuda_used {
    uint32_t form; /* 0: the kernel's own; i + 1: choice i */
    uint32_t function;
    const amp_model_cuda_launch *launch;
    int64_t grid[3]; /* of parts: one that CUDA refuses, where they are more blocks than it allows */
} amp_cuda_used;
amp_cuda_used amp_cuda_launch_choose(const amp_model_cuda_kernel *kernel, int64_t n, int multiprocessors);

/* Where the blocks of a part stand in the grid that |form| uses, which CUDA does not refuse: three parameters. */
typedef struct amp_cuda_part_place {
    int64_t first, x, y;
} amp_cuda_part_place;
amp_cuda_part_place amp_cuda_place_part(const amp_model_cuda_kernel *kernel, uint32_t form, uint32_t part, int64_t n);

#ifdef __cplusplus
}
#endif

#endif
