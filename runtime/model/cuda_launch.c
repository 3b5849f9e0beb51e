/* cuda_launch.c: see cuda_launch.h. */
#include "runtime/model/cuda_launch.h"

#include <string.h>

#include "runtime/model/model.h"

void amp_cuda_grid(const amp_model_cuda_grid *g, int64_t n, int64_t blocks[3]) {
    for (int axis = 0; axis < 3; axis++) {
        const int64_t per = g->per[axis], extent = per ? amp_model_dim_at(&g->extent[axis], n) : 1;
        blocks[axis] = per == 0 || extent < 1 ? 1 : (extent - 1) / per + 1;
    }
}

static double count(const int64_t grid[3]) { return (double)grid[0] * (double)grid[1] * (double)grid[2]; }

static void add_up_parts(const amp_model_cuda_kernel *k, uint32_t choice, int64_t n, int64_t grid[3]) {
    double blocks = 0;
    for (uint32_t i = 0; i < k->parts.count; i++) {
        amp_cuda_grid(&k->parts.at[i].grids[choice], n, grid);
        blocks += count(grid);
    }
    if (!amp_cuda_places_parts(k)) return;
    grid[0] = blocks <= INT32_MAX ? (int64_t)blocks : INT64_MAX;
    grid[1] = grid[2] = 1;
}

/* Of a part with larger tiles than in the last choice, a few blocks would be at work long after all others. */
static bool has_few_blocks(const amp_model_cuda_kernel *k, uint32_t choice, int64_t n, int multiprocessors) {
    int64_t grid[3];
    for (uint32_t i = 0; i < k->parts.count; i++) {
        const amp_model_cuda_grid *grids = k->parts.at[i].grids, *last = &grids[k->choices.count - 1];
        amp_cuda_grid(&grids[choice], n, grid);
        if (memcmp(last->per, grids[choice].per, sizeof last->per) != 0 && 4 * count(grid) < multiprocessors)
            return true;
    }
    return false;
}

/* Of another shape than in the last choice. */
static bool has_own_blocks(const amp_model_cuda_kernel *k, uint32_t choice) {
    for (uint32_t i = 0; i < k->parts.count; i++) {
        const amp_model_cuda_grid *grids = k->parts.at[i].grids;
        if (memcmp(grids[k->choices.count - 1].per, grids[choice].per, sizeof grids->per) != 0) return true;
    }
    return false;
}

bool amp_cuda_choice_fits(const amp_model_cuda_kernel *k, uint32_t choice, int32_t shared_bytes) {
    return choice + 1 == k->choices.count ||
           (int64_t)k->choices.at[choice].shared_bytes + AMP_CUDA_FIXED_SHARED <= shared_bytes;
}

amp_cuda_used amp_cuda_launch_choose(const amp_model_cuda_kernel *k, int64_t n, int32_t multiprocessors,
                                     int32_t shared_bytes) {
    if (!k) return (amp_cuda_used){0};
    for (uint32_t i = 0;; i++) {
        amp_cuda_used used = {.index = i, .choice = &k->choices.at[i]};
        add_up_parts(k, i, n, used.grid);
        if (i + 1 == k->choices.count) return used;
        const bool fills = count(used.grid) >= multiprocessors && !has_few_blocks(k, i, n, multiprocessors);
        if (amp_cuda_choice_fits(k, i, shared_bytes) && (fills || !has_own_blocks(k, i))) return used;
    }
}

amp_cuda_part_place amp_cuda_place_part(const amp_model_cuda_kernel *k, uint32_t choice, uint32_t part, int64_t n) {
    int64_t grid[3], first = 0;
    for (uint32_t i = 0; i < part; i++) {
        amp_cuda_grid(&k->parts.at[i].grids[choice], n, grid);
        first += grid[0] * grid[1] * grid[2];
    }
    amp_cuda_grid(&k->parts.at[part].grids[choice], n, grid);
    return (amp_cuda_part_place){first, grid[0], grid[1]};
}
