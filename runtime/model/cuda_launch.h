/* cuda_launch.h: how a kernel for CUDA is launched for n samples; see amp_cuda_launch_choose. */
#ifndef AMP_RUNTIME_MODEL_CUDA_LAUNCH_H
#define AMP_RUNTIME_MODEL_CUDA_LAUNCH_H

#include <stdbool.h>

#include "amp/inspect.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Whether the blocks of parts follow one another, and the function is told where they begin. */
static inline bool amp_cuda_places_parts(const amp_model_cuda_kernel *kernel) {
    return kernel->parts.count > 1 || kernel->parts.at->superstep;
}

/* Whether a device whose blocks may have |shared_bytes| can launch choice |choice|; it can the last one. */
bool amp_cuda_choice_fits(const amp_model_cuda_kernel *kernel, uint32_t choice, int32_t shared_bytes);

/* Blocks along each axis. */
void amp_cuda_grid(const amp_model_cuda_grid *grid, amp_sizes sizes, int64_t blocks[3]);

/* Where the blocks of a part stand in the grid of choice |choice|, which CUDA does not refuse: three parameters. */
typedef struct amp_cuda_part_place {
    int64_t first, x, y;
} amp_cuda_part_place;
amp_cuda_part_place amp_cuda_place_part(const amp_model_cuda_kernel *kernel, uint32_t choice, uint32_t part,
                                        amp_sizes sizes);

#ifdef __cplusplus
}
#endif

#endif
