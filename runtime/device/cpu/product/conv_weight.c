/* conv_weight.c: CONV_WEIGHT as tasks: some tiles of C, over the pixels of one split of the samples.
 *
 * Pixels go by in chunks: what a chunk reads of x and y is laid out as the operands of a matrix product (conv_pack.c),
 * small enough to stay in the cache, and every tile of the task takes it up before the next chunk.  The tiles hold
 * their sums between chunks.
 */
#include <string.h>

#include "runtime/device/cpu/product/conv_parts.h"

enum {
    TILE = AMP_PRODUCT_ROWS * AMP_PRODUCT_COLS,
    MOST_PANELS = 16, /* panels of a task */
    MOST_TILES = 32,  /* tiles of a task: 128 KiB of sums */
    ENOUGH_TASKS = 32,
    MOST_PIXELS = 128, /* of a chunk: 16 KiB an operand, so that two stay in the first-level cache */
    LEAST_PIXELS = 64,
    CHUNK = 2048 /* pixels x panels of a chunk: 256 KiB of y */
};

typedef struct plan {
    int64_t rows, row_tiles, panels;
    int64_t group_rows, group_panels; /* tiles of a task */
    int64_t row_groups, panel_groups;
    int64_t splits; /* tasks: splits * row_groups * panel_groups */
    int64_t pixels; /* of a chunk; even */
} plan;

static int64_t groups_of(plan *p) {
    p->row_groups = (p->row_tiles + p->group_rows - 1) / p->group_rows;
    p->panel_groups = (p->panels + p->group_panels - 1) / p->group_panels;
    return p->row_groups * p->panel_groups;
}

/* Large tasks read x and y seldom; small n and few tiles want small ones. */
static plan plan_of(const amp_conv *c) {
    const amp_model_window *w = &c->window;
    plan p = {.rows = (int64_t)w->kh * w->kw * (w->c / conv_groups(c)), .panels = conv_blocks(w->oc)};
    p.row_tiles = conv_blocks(p.rows);
    if (conv_groups(c) > 1) {
        p.group_rows = p.row_tiles, p.group_panels = 1;
        p.splits = conv_min(c->n, (ENOUGH_TASKS + p.panels - 1) / p.panels);
        return p;
    }
    p.group_panels = conv_min(p.panels, MOST_PANELS);
    p.group_rows = conv_min(p.row_tiles, MOST_TILES / p.group_panels);
    p.pixels = conv_max(LEAST_PIXELS, conv_min(MOST_PIXELS, CHUNK / p.group_panels / 2 * 2));
    const int64_t most_splits = conv_min(c->n, ENOUGH_TASKS);
    while (p.group_rows > 1 && groups_of(&p) * most_splits < ENOUGH_TASKS) p.group_rows = (p.group_rows + 1) / 2;
    while (p.group_panels > 1 && groups_of(&p) * most_splits < ENOUGH_TASKS) p.group_panels = (p.group_panels + 1) / 2;
    const int64_t groups = groups_of(&p);
    p.splits = conv_min(most_splits, (ENOUGH_TASKS + groups - 1) / groups);
    return p;
}

/* No second phase. */
static bool is_single(const amp_conv *c, const plan *p) { return p->splits == 1 && conv_groups(c) == 1; }

/* ---- scratch ---- */

static size_t chunk_bytes(const amp_conv *c, const plan *p) {
    return conv_align((size_t)(conv_pack_units(c, p->pixels) * CONV_BLOCK) * sizeof(uint32_t));
}

static size_t work_bytes(const amp_conv *c, const plan *p) {
    return conv_is_bf16(c) ? conv_align((size_t)p->pixels * CONV_BLOCK * sizeof(uint16_t)) : 0;
}

/* Sums of a task, chunk of x, chunk of y by panel.  For any n: the groups are at most these. */
size_t conv_weight_thread_bytes(const amp_conv *c) {
    const plan p = plan_of(c);
    const size_t chunks = 1 + (size_t)conv_min(p.panels, MOST_PANELS);
    return MOST_TILES * TILE * sizeof(float) + work_bytes(c, &p) + chunks * chunk_bytes(c, &p);
}

size_t conv_weight_shared_bytes(const amp_conv *c) {
    const plan p = plan_of(c);
    return is_single(c, &p) ? 0 : (size_t)(p.splits * p.row_tiles * p.panels) * TILE * sizeof(float);
}

/* Sums of a tile, where there are several splits. */
static float *partial_of(const amp_conv *c, const plan *p, int64_t split, int64_t row_tile, int64_t panel) {
    return c->shared + ((split * p->row_tiles + row_tile) * p->panels + panel) * TILE;
}

/* ---- first phase ---- */

typedef struct task {
    int64_t split, first_row, row_count, first_panel, panel_count; /* in tiles */
    float *sums;                                                   /* one split: [row_count][panel_count] tiles */
    char *work, *x, *dy;
} task;

static float *sums_of(const amp_conv *c, const plan *p, const task *t, int64_t row, int64_t panel) {
    if (p->splits > 1) return partial_of(c, p, t->split, t->first_row + row, t->first_panel + panel);
    return t->sums + (row * t->panel_count + panel) * TILE;
}

static int64_t tile_rows(const plan *p, int64_t row_tile) {
    return conv_min(AMP_PRODUCT_ROWS, p->rows - row_tile * AMP_PRODUCT_ROWS);
}

/* f32 of y in panels are an operand as they are. */
static const void *chunk_of_dy(const amp_conv *c, const plan *p, const task *t, int64_t panel, int64_t first,
                               int64_t count) {
    const int64_t at = t->first_panel + panel;
    if (!conv_is_bf16(c) && c->dy.pixel_stride == CONV_BLOCK * (int64_t)sizeof(float))
        return (const char *)c->dy.data + at * c->dy.block_stride + first * c->dy.pixel_stride;
    char *chunk = t->dy + panel * (int64_t)chunk_bytes(c, p);
    conv_pack_dy(c, at * CONV_BLOCK, first, count, chunk, t->work);
    return chunk;
}

/* Likewise f32 of x, where every pixel of y reads one pixel of x. */
static const void *chunk_of_x(const amp_conv *c, const task *t, int64_t row, int64_t rows, int64_t first,
                              int64_t count) {
    const amp_model_window *w = &c->window;
    const int64_t at = t->first_row + row;
    if (!conv_is_bf16(c) && w->kh == 1 && w->kw == 1 && w->h == w->oh && w->w == w->ow && w->stride[0] == 1 &&
        w->stride[1] == 1 && c->a.pixel_stride == CONV_BLOCK * (int64_t)sizeof(float))
        return (const char *)c->a.data + at * c->a.block_stride + first * c->a.pixel_stride;
    conv_pack_x(c, at * AMP_PRODUCT_ROWS, rows, first, count, t->x, t->work);
    return t->x;
}

static void add_chunk(const amp_conv *c, const plan *p, const task *t, int64_t first, int64_t count, bool accumulate) {
    const void *dy[MOST_PANELS];
    for (int64_t j = 0; j < t->panel_count; j++) dy[j] = chunk_of_dy(c, p, t, j, first, count);
    for (int64_t i = 0; i < t->row_count; i++) {
        const int64_t rows = tile_rows(p, t->first_row + i);
        const void *x = chunk_of_x(c, t, i, rows, first, count);
        for (int64_t j = 0; j < t->panel_count; j++) {
            const amp_product_tile tile = {
                .a = x,
                .b = dy[j],
                .c = sums_of(c, p, t, i, j),
                .form = AMP_PRODUCT_TRANSPOSED,
                .accumulate = accumulate,
                .k = conv_pack_units(c, count),
                .rows = rows,
                .cols = conv_min(AMP_PRODUCT_COLS, c->window.oc - (t->first_panel + j) * AMP_PRODUCT_COLS),
            };
            c->kernels->tile(&tile);
        }
    }
}

static task task_of(const amp_conv *c, const plan *p, int64_t index, char *scratch) {
    const int64_t row_group = index % p->row_groups, panel_group = index / p->row_groups % p->panel_groups;
    task t = {.split = index / (p->row_groups * p->panel_groups),
              .first_row = row_group * p->group_rows,
              .first_panel = panel_group * p->group_panels};
    t.row_count = conv_min(p->group_rows, p->row_tiles - t.first_row);
    t.panel_count = conv_min(p->group_panels, p->panels - t.first_panel);
    t.sums = (float *)scratch;
    t.work = scratch + MOST_TILES * TILE * sizeof(float);
    t.x = t.work + work_bytes(c, p);
    t.dy = t.x + chunk_bytes(c, p);
    return t;
}

static void finish(const amp_conv *c, const plan *p, const float *sums, int64_t row_tile, int64_t panel) {
    c->epilogue(c->ctx, sums, row_tile * AMP_PRODUCT_ROWS, tile_rows(p, row_tile), panel * AMP_PRODUCT_COLS);
}

/* A panel, over the pixels of a split. */
static void group_task(const amp_conv *c, const plan *p, int64_t index, char *scratch) {
    const int64_t panel = index % p->panels, split = index / p->panels, pixels = (int64_t)c->window.oh * c->window.ow;
    const float *sums = conv_group_weight(c, panel, split * c->n / p->splits * pixels,
                                          (split + 1) * c->n / p->splits * pixels, scratch);
    for (int64_t i = 0; i < p->row_tiles; i++) {
        const size_t bytes = (size_t)tile_rows(p, i) * AMP_PRODUCT_COLS * sizeof *sums;
        memcpy(partial_of(c, p, split, i, panel), sums + i * TILE, bytes);
    }
}

void conv_weight_task(const amp_conv *c, int64_t index, char *scratch) {
    const plan p = plan_of(c);
    if (conv_groups(c) > 1) {
        group_task(c, &p, index, scratch);
        return;
    }
    const task t = task_of(c, &p, index, scratch);
    const int64_t pixels = (int64_t)c->window.oh * c->window.ow;
    const int64_t begin = t.split * c->n / p.splits * pixels, end = (t.split + 1) * c->n / p.splits * pixels;
    for (int64_t first = begin; first < end; first += p.pixels)
        add_chunk(c, &p, &t, first, conv_min(p.pixels, end - first), first > begin);
    for (int64_t i = 0; p.splits == 1 && i < t.row_count; i++)
        for (int64_t j = 0; j < t.panel_count; j++)
            finish(c, &p, sums_of(c, &p, &t, i, j), t.first_row + i, t.first_panel + j);
}

int64_t conv_weight_tasks(const amp_conv *c) {
    plan p = plan_of(c);
    return p.splits * groups_of(&p);
}

/* ---- second phase: the splits in their order ---- */

int64_t conv_weight_sum_tasks(const amp_conv *c) {
    const plan p = plan_of(c);
    return is_single(c, &p) ? 0 : p.row_tiles * p.panels;
}

void conv_weight_sum_task(const amp_conv *c, int64_t index, char *scratch) {
    (void)scratch;
    const plan p = plan_of(c);
    const int64_t row_tile = index / p.panels, panel = index % p.panels;
    const int64_t count = tile_rows(&p, row_tile) * AMP_PRODUCT_COLS;
    float *sums = partial_of(c, &p, 0, row_tile, panel);
    for (int64_t split = 1; split < p.splits; split++)
        conv_add_sums(sums, partial_of(c, &p, split, row_tile, panel), count);
    finish(c, &p, sums, row_tile, panel);
}
