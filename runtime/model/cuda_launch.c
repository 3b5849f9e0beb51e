/* cuda_launch.c: see cuda_launch.h. */
#include "runtime/model/cuda_launch.h"

#include <string.h>

#include "runtime/model/model.h"

void amp_cuda_launch_grid(const amp_model_cuda_launch *l, int64_t n, int64_t grid[3]) {
    for (int axis = 0; axis < 3; axis++) {
        const int64_t per = l->per[axis], extent = per ? amp_model_dim_at(&l->extent[axis], n) : 1;
        grid[axis] = per == 0 || extent < 1 ? 1 : (extent - 1) / per + 1;
    }
}

static double count(const int64_t grid[3]) { return (double)grid[0] * (double)grid[1] * (double)grid[2]; }

static void add_up_parts(const amp_model_cuda_kernel *k, uint32_t form, int64_t n, int64_t grid[3]) {
    double blocks = 0;
    for (uint32_t i = 0; i < k->part_count; i++) {
        amp_cuda_launch_grid(&k->parts[i].launches[form], n, grid);
        blocks += count(grid);
    }
    grid[0] = blocks <= INT32_MAX ? (int64_t)blocks : INT64_MAX;
    grid[1] = grid[2] = 1;
}

static amp_cuda_used use(const amp_model_cuda_kernel *k, uint32_t form, int64_t n) {
    const amp_model_cuda_choice *choice = form ? &k->choices[form - 1] : NULL;
    amp_cuda_used used = {.form = form, .function = choice ? choice->function : k->function};
    used.launch = choice ? &choice->launch : &k->launch;
    if (k->part_count) add_up_parts(k, form, n, used.grid);
    else amp_cuda_launch_grid(used.launch, n, used.grid);
    return used;
}

/* Of a part with larger tiles than in the launch's own form, a few blocks would be at work long after all others. */
static bool has_few_blocks(const amp_model_cuda_kernel *k, uint32_t form, int64_t n, int multiprocessors) {
    int64_t grid[3];
    for (uint32_t i = 0; i < k->part_count; i++) {
        const amp_model_cuda_launch *own = &k->parts[i].launches[0], *other = &k->parts[i].launches[form];
        amp_cuda_launch_grid(other, n, grid);
        if (memcmp(own->per, other->per, sizeof own->per) != 0 && 4 * count(grid) < multiprocessors) return true;
    }
    return false;
}

amp_cuda_used amp_cuda_launch_choose(const amp_model_cuda_kernel *k, int64_t n, int multiprocessors) {
    for (uint32_t i = 0; i < k->choice_count; i++) {
        const amp_cuda_used used = use(k, i + 1, n);
        if (count(used.grid) >= multiprocessors && !has_few_blocks(k, i + 1, n, multiprocessors)) return used;
    }
    return use(k, 0, n);
}

amp_cuda_part_place amp_cuda_place_part(const amp_model_cuda_kernel *k, uint32_t form, uint32_t part, int64_t n) {
    int64_t grid[3], first = 0;
    for (uint32_t i = 0; i < part; i++) {
        amp_cuda_launch_grid(&k->parts[i].launches[form], n, grid);
        first += grid[0] * grid[1] * grid[2];
    }
    amp_cuda_launch_grid(&k->parts[part].launches[form], n, grid);
    return (amp_cuda_part_place){first, grid[0], grid[1]};
}
