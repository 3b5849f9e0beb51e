/* cuda_launch.c: see cuda_launch.h. */
#include "runtime/model/cuda_launch.h"

#include <math.h>

#include "runtime/model/model.h"

void amp_cuda_grid(const amp_model_cuda_grid *g, amp_sizes sizes, int64_t blocks[3]) {
    for (int axis = 0; axis < 3; axis++) {
        const int64_t per = g->per[axis], extent = per ? amp_model_dim_at(&g->extent[axis], sizes) : 1;
        blocks[axis] = per == 0 || extent < 1 ? 1 : (extent - 1) / per + 1;
    }
}

static double count(const int64_t grid[3]) { return (double)grid[0] * (double)grid[1] * (double)grid[2]; }

static void add_up_parts(const amp_model_cuda_kernel *k, uint32_t choice, amp_sizes sizes, int64_t grid[3]) {
    double blocks = 0;
    for (uint32_t i = 0; i < k->parts.count; i++) {
        amp_cuda_grid(&k->parts.at[i].grids[choice], sizes, grid);
        blocks += count(grid);
    }
    if (!amp_cuda_places_parts(k)) return;
    grid[0] = blocks <= INT32_MAX ? (int64_t)blocks : INT64_MAX;
    grid[1] = grid[2] = 1;
}

/* ---- how long tiles take ----------------------------------------------------------------------------------------- */

/* What tiles reach of a rate.  Tensor cores: measured on an H200 (bench/results/2026-11-27-h200.md).  Multiply-adds: by
 * machine code, and smaller tiles less by the loads of shared memory for each of them, as the sizes of tiles say. */
typedef struct TileShares {
    int64_t side; /* of tiles that are no smaller; 0: of all others */
    double mma, fma;
} TileShares;
static const TileShares tile_shares[] = {{128, 0.78, 0.4}, {64, 0.5, 0.39}, {0, 0.5, 0.34}};

/* 0 if the tables are damaged. */
static double size_at(const amp_model_dim *d, amp_sizes sizes) {
    if (!amp_dim_varies(d)) return (double)d->mul;
    if (d->div <= 0) return 0;
    double size = (double)d->mul / (double)d->div;
    for (int i = 0; i < d->of_n; i++) size *= (double)sizes.n;
    for (int i = 0; i < d->of_t; i++) size *= (double)sizes.t;
    return size;
}

double amp_cuda_tile_share(const amp_model_cuda_grid *tiles, amp_sizes sizes, uint32_t instruction) {
    const TileShares *s = tile_shares;
    if (!tiles) return 0;
    while (s->side && (tiles->per[0] < s->side || tiles->per[1] < s->side)) s++;
    double inside = 1;
    for (int axis = 0; axis < 2; axis++) {
        const double tile = (double)tiles->per[axis], extent = size_at(&tiles->extent[axis], sizes);
        if (tile > 0 && extent >= 1) inside *= extent / tile / ceil(extent / tile);
    }
    return inside * (instruction == AMP_INSTRUCTION_FMA ? s->fma : s->mma);
}

double amp_cuda_filled(int64_t blocks, int32_t multiprocessors) {
    if (blocks < 1 || multiprocessors < 1) return 1;
    return (double)blocks / (double)multiprocessors / (double)((blocks - 1) / multiprocessors + 1);
}

/* A multiply-add of products, beside one of tensor cores in 16 bits: as peaks are apart, more or less. */
static double cost_of(uint32_t instruction) {
    return instruction == AMP_INSTRUCTION_FMA ? 8 : instruction == AMP_INSTRUCTION_MMA_TF32 ? 2 : 1;
}

/* Of a part whose work begins at |work|. */
static double time_of_sums(const amp_model_cuda_work *work, const amp_model_cuda_part *p, uint32_t choice,
                           amp_sizes sizes) {
    double all = 0;
    for (uint32_t i = 0; i < p->work_count; i++)
        if (work[i].instruction != AMP_INSTRUCTION_PLAIN)
            all += work[i].operations * size_at(&work[i].elements, sizes) * size_at(&work[i].terms, sizes) *
                   cost_of(work[i].instruction) / amp_cuda_tile_share(&p->grids[choice], sizes, work[i].instruction);
    return all;
}

typedef struct ChoiceTime {
    double time, blocks;
} ChoiceTime;

/* What the sums of a choice's products take, by the model of time (docs/design/cuda.md): blocks on one multiprocessor
 * share its rate, so the one that has most of them decides, or the longest block of all.  The rest of the launch takes
 * as long in all choices. */
static ChoiceTime time_of_choice(const amp_model_cuda_kernel *k, uint32_t choice, amp_sizes sizes,
                                 int32_t multiprocessors) {
    ChoiceTime all = {0};
    double sums = 0, blocks = 0, longest = 0;
    uint32_t work = 0;
    for (uint32_t i = 0; i < k->parts.count; i++) {
        const amp_model_cuda_part *p = &k->parts.at[i];
        const double of_part = time_of_sums(k->work.at + work, p, choice, sizes);
        int64_t grid[3];
        amp_cuda_grid(&p->grids[choice], sizes, grid);
        work += p->work_count;
        sums += of_part;
        blocks += count(grid);
        longest = fmax(longest, of_part / count(grid) * multiprocessors);
        if (i + 1 < k->parts.count && p->superstep == p[1].superstep) continue;
        all.blocks += blocks;
        all.time += fmax(longest, sums / amp_cuda_filled(blocks < 1e15 ? (int64_t)blocks : 0, multiprocessors));
        sums = blocks = longest = 0;
    }
    return all;
}

bool amp_cuda_choice_fits(const amp_model_cuda_kernel *k, uint32_t choice, int32_t shared_bytes) {
    return choice + 1 == k->choices.count ||
           (int64_t)k->choices.at[choice].shared_bytes + AMP_CUDA_FIXED_SHARED <= shared_bytes;
}

amp_cuda_used amp_cuda_launch_choose(const amp_model_cuda_kernel *k, amp_sizes sizes, int32_t multiprocessors,
                                     int32_t shared_bytes) {
    amp_cuda_used used = {0};
    double least = INFINITY, most = 0;
    for (uint32_t i = 0; k && i < k->choices.count; i++) {
        const ChoiceTime c = time_of_choice(k, i, sizes, multiprocessors);
        if (!amp_cuda_choice_fits(k, i, shared_bytes) || c.time > least || (c.time == least && c.blocks <= most))
            continue;
        used.index = i;
        least = c.time;
        most = c.blocks;
    }
    if (!k) return used;
    used.choice = &k->choices.at[used.index];
    add_up_parts(k, used.index, sizes, used.grid);
    return used;
}

amp_cuda_part_place amp_cuda_place_part(const amp_model_cuda_kernel *k, uint32_t choice, uint32_t part,
                                        amp_sizes sizes) {
    int64_t grid[3], first = 0;
    for (uint32_t i = 0; i < part; i++) {
        amp_cuda_grid(&k->parts.at[i].grids[choice], sizes, grid);
        first += grid[0] * grid[1] * grid[2];
    }
    amp_cuda_grid(&k->parts.at[part].grids[choice], sizes, grid);
    return (amp_cuda_part_place){first, grid[0], grid[1]};
}
