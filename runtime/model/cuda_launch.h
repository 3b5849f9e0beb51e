/* cuda_launch.h: how a kernel for CUDA is launched for n samples (amp_model_cuda_launch, amp_model_cuda_choice). */
#ifndef AMP_RUNTIME_MODEL_CUDA_LAUNCH_H
#define AMP_RUNTIME_MODEL_CUDA_LAUNCH_H

#include "amp/model_abi.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Blocks along each axis. */
void amp_cuda_launch_grid(const amp_model_cuda_launch *launch, int64_t n, int64_t grid[3]);

/* The function and launch that are used on a device of so many multiprocessors. */
amp_model_cuda_choice amp_cuda_launch_choose(const amp_model_cuda_kernel *kernel, int64_t n, int multiprocessors);

#ifdef __cplusplus
}
#endif

#endif
