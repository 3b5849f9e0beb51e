/* product.c: a whole product as tasks, each a group of neighbouring tiles of C.
 *
 * K is not blocked: a panel of B comes from the second-level cache fast enough (measured, README.md), and every sum
 * stays in a register from the first k to the last.  Within a task the row tiles of one panel follow each other, so
 * that the panel is read from memory once; tasks go along the panels first, so that the rows of A stay in the cache.
 */
#include "runtime/device/cpu/product/product.h"

#include "runtime/device/cpu/product/narrow.h"

enum { UNIT = 4 /* bytes */ };

#define DIV_UP(x, y) (((x) + (y)-1) / (y))

static int64_t min_of(int64_t x, int64_t y) { return x < y ? x : y; }
static int64_t max_of(int64_t x, int64_t y) { return x > y ? x : y; }

/* ---- how a product is divided ---- */

/* A tile costs about 32 x k cycles where a step of 32 sums takes one. */
enum {
    FULL_TASK_K = 2048,     /* k x tiles of a task that makes handing it out free: 16 us at 4 GHz */
    LEAST_TASK_K = 256,     /* and of one that is still worth it: 2 us */
    BALANCED_TASKS = 64,    /* for up to 64 threads */
    MANY_TASKS = 256,       /* as many balance well: grow them, for reuse of operands ... */
    LARGE_TASK = 16,        /* ... up to 16 tiles */
    GROUP_ROWS = 4,         /* row tiles of a task that share a panel of B */
    GROUP_A_UNITS = 1 << 17 /* 512 KiB: what they may take of A, for the second-level cache holds 1 MiB or more */
};

typedef struct grid {
    int64_t row_tiles, panels;        /* of C */
    int64_t group_rows, group_panels; /* tiles of a task */
    int64_t row_groups, panel_groups; /* tasks */
} grid;

static int64_t tiles_per_task(int64_t total, int64_t k) {
    int64_t full = min_of(DIV_UP(FULL_TASK_K, k), total / BALANCED_TASKS);
    int64_t least = DIV_UP(LEAST_TASK_K, k);
    int64_t reuse = min_of(LARGE_TASK, total / MANY_TASKS);
    return max_of(max_of(full, least), max_of(reuse, 1));
}

static grid grid_of(const amp_product *p) {
    const int64_t k = max_of(p->k, 1);
    grid g = {.row_tiles = DIV_UP(p->m, AMP_PRODUCT_ROWS), .panels = DIV_UP(p->n, AMP_PRODUCT_COLS)};
    const int64_t tiles = tiles_per_task(g.row_tiles * g.panels, k);
    const int64_t fit = max_of(GROUP_A_UNITS / (AMP_PRODUCT_ROWS * k), 1);
    g.group_rows = min_of(min_of(GROUP_ROWS, fit), min_of(tiles, max_of(g.row_tiles, 1)));
    g.group_panels = min_of(DIV_UP(tiles, g.group_rows), max_of(g.panels, 1));
    g.group_rows = max_of(g.group_rows, min_of(DIV_UP(tiles, g.group_panels), g.row_tiles)); /* few panels: more rows */
    g.row_groups = DIV_UP(g.row_tiles, g.group_rows);
    g.panel_groups = DIV_UP(g.panels, g.group_panels);
    return g;
}

int64_t amp_product_tasks(const amp_product *product) {
    grid g = grid_of(product);
    return g.row_groups * g.panel_groups;
}

/* ---- one task ---- */

typedef struct tile_at {
    int64_t row_tile, panel;
} tile_at;

static tile_at first_tile(const grid *g, int64_t task) {
    return (tile_at){task / g->panel_groups * g->group_rows, task % g->panel_groups * g->group_panels};
}

/* Tiles that follow each other down the rows of a panel, then down the next panel. */
typedef struct block {
    tile_at first, end;   /* end: one past, of both */
    const tile_at *after; /* what comes next, perhaps another thread's: it is in the shared cache at least; or NULL */
} block;

/* Its prefetches are for the tile that follows; |address| is where they are kept. */
static amp_product_tile tile_of(const amp_product *p, const block *b, tile_at at, const void **address, float *sums) {
    tile_at below = {at.row_tile + 1, at.panel}, beside = {b->first.row_tile, at.panel + 1};
    const tile_at *next = below.row_tile < b->end.row_tile ? &below : beside.panel < b->end.panel ? &beside : b->after;
    const int64_t count = next ? p->prefetch_count : 0;
    if (next) amp_product_addresses(p->prefetch, count, next->row_tile, next->panel, address);
    return (amp_product_tile){
        .a = (const char *)p->a + at.row_tile * p->a_tile_stride * UNIT,
        .b = (const char *)p->b + at.panel * p->b_panel_stride * UNIT,
        .c = sums,
        .form = p->form,
        .a_block_stride = p->a_block_stride,
        .k = p->k,
        .rows = min_of(AMP_PRODUCT_ROWS, p->m - at.row_tile * AMP_PRODUCT_ROWS),
        .cols = min_of(AMP_PRODUCT_COLS, p->n - at.panel * AMP_PRODUCT_COLS),
        .prefetch = address,
        .prefetch_count = count,
    };
}

static void finish(const amp_product *p, tile_at at, const amp_product_tile *tile) {
    p->epilogue(p->ctx, tile->c, at.row_tile * AMP_PRODUCT_ROWS, tile->rows, at.panel * AMP_PRODUCT_COLS);
}

static void run_block(const amp_product_kernels *kernels, const amp_product *p, const block *b, float *scratch) {
    const void *address[AMP_PRODUCT_PREFETCH_MAX];
    for (tile_at at = b->first; at.panel < b->end.panel; at.panel++)
        for (at.row_tile = b->first.row_tile; at.row_tile < b->end.row_tile; at.row_tile++) {
            const amp_product_tile tile = tile_of(p, b, at, address, scratch);
            if (amp_product_is_narrow(p)) amp_narrow_tile(kernels, p, at.row_tile * AMP_PRODUCT_ROWS, at.panel, tile);
            else kernels->tile(&tile);
            finish(p, at, &tile);
        }
}

/* ---- bf16 as f32 ---- */

/* What is widened serves all tiles of a block, a piece of k at a time, from the second-level cache. */
enum {
    WIDE_ROWS = 4,
    WIDE_PANELS = 4,
    WIDE_UNITS = 128,
    TILE = AMP_PRODUCT_ROWS * AMP_PRODUCT_COLS,
    WIDE_PIECE = 2 * WIDE_UNITS * AMP_PRODUCT_ROWS, /* of a panel, or of the rows of a tile */
    PAIR_BLOCK = AMP_PRODUCT_ROWS / 2               /* units of a row of A that are adjacent */
};

static bool is_widened(const amp_product_kernels *kernels, const amp_product *p) {
    return kernels->widening && p->m > AMP_PRODUCT_FEW_ROWS && !amp_product_is_narrow(p);
}

static void widen_a(const amp_widening *widening, const amp_product_tile *t, int64_t first, int64_t units, float *to) {
    const char *a = t->a;
    if (t->form == AMP_PRODUCT_TRANSPOSED) widening->steps(a + first * AMP_PRODUCT_ROWS * UNIT, units, 0, to);
    for (int64_t k = 0; t->form == AMP_PRODUCT_BLOCKED && k < units; k += PAIR_BLOCK, to += TILE)
        widening->rows(a + (first + k) / PAIR_BLOCK * t->a_block_stride * UNIT, t->rows * PAIR_BLOCK, to);
}

static void run_piece(const amp_widening *widening, const amp_product *p, const block *b, int64_t first,
                      float *scratch) {
    const int64_t units = min_of(WIDE_UNITS, p->k - first);
    const bool is_last = first + units == p->k;
    float *wide_b = scratch + WIDE_ROWS * WIDE_PANELS * TILE, *wide_a = wide_b + WIDE_PIECE;
    const void *address[AMP_PRODUCT_PREFETCH_MAX];
    for (tile_at at = b->first; at.panel < b->end.panel; at.panel++)
        for (at.row_tile = b->first.row_tile; at.row_tile < b->end.row_tile; at.row_tile++, scratch += TILE) {
            amp_product_tile tile = tile_of(p, b, at, address, scratch);
            float *a = wide_a + (at.row_tile - b->first.row_tile) * WIDE_PIECE;
            if (at.panel == b->first.panel) widen_a(widening, &tile, first, units, a);
            if (at.row_tile == b->first.row_tile)
                widening->steps((const char *)tile.b + first * AMP_PRODUCT_COLS * UNIT, units, 0, wide_b);
            tile.a = a, tile.b = wide_b;
            tile.a_block_stride = TILE;
            tile.k = 2 * units;
            tile.accumulate = first > 0;
            if (!is_last) tile.prefetch_count = 0;
            widening->f32->tile(&tile);
            if (is_last) finish(p, at, &tile);
        }
}

size_t amp_product_scratch_bytes(const amp_product_kernels *kernels) {
    const size_t wide = WIDE_ROWS * WIDE_PANELS * TILE + (WIDE_ROWS + 1) * WIDE_PIECE;
    return (kernels->widening ? wide : TILE) * sizeof(float);
}

/* ---- the interface ---- */

void amp_product_task(const amp_product_kernels *kernels, const amp_product *p, int64_t task, float *scratch) {
    const grid g = grid_of(p);
    const bool wide = is_widened(kernels, p), is_last_task = task + 1 == g.row_groups * g.panel_groups;
    const tile_at first = first_tile(&g, task), next_task = first_tile(&g, task + 1);
    const tile_at end = {min_of(first.row_tile + g.group_rows, g.row_tiles),
                         min_of(first.panel + g.group_panels, g.panels)};
    for (tile_at at = first, next; at.panel < end.panel; at = next) {
        block b = {at, end, &next};
        if (wide)
            b.end = (tile_at){min_of(at.row_tile + WIDE_ROWS, end.row_tile), min_of(at.panel + WIDE_PANELS, end.panel)};
        next = (tile_at){b.end.row_tile, at.panel};
        if (next.row_tile == end.row_tile) next = (tile_at){first.row_tile, b.end.panel};
        if (next.panel == end.panel) b.after = is_last_task ? NULL : &next_task;
        int64_t k = 0;
        if (!wide) run_block(kernels, p, &b, scratch);
        else do
                run_piece(kernels->widening, p, &b, k, scratch);
            while ((k += WIDE_UNITS) < p->k);
    }
}
