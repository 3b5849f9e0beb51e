/* cuda_launch.c: see cuda_launch.h. */
#include "runtime/model/cuda_launch.h"

#include "runtime/model/model.h"

void amp_cuda_launch_grid(const amp_model_cuda_launch *l, int64_t n, int64_t grid[3]) {
    for (int axis = 0; axis < 3; axis++) {
        const int64_t per = l->per[axis], extent = per ? amp_model_dim_at(&l->extent[axis], n) : 1;
        grid[axis] = per == 0 || extent < 1 ? 1 : (extent - 1) / per + 1;
    }
}

static bool fills(const amp_model_cuda_launch *l, int64_t n, int multiprocessors) {
    int64_t grid[3];
    amp_cuda_launch_grid(l, n, grid);
    return (double)grid[0] * (double)grid[1] * (double)grid[2] >= multiprocessors;
}

amp_model_cuda_choice amp_cuda_launch_choose(const amp_model_cuda_kernel *k, int64_t n, int multiprocessors) {
    for (uint32_t i = 0; i < k->choice_count; i++)
        if (fills(&k->choices[i].launch, n, multiprocessors)) return k->choices[i];
    return (amp_model_cuda_choice){.function = k->function, .launch = k->launch};
}
