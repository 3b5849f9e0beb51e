/* product.c: a whole product as tasks, each a group of neighbouring tiles of C.
 *
 * K is not blocked: a panel of B comes from the second-level cache fast enough (measured, README.md), and every sum
 * stays in a register from the first k to the last.  Within a task the row tiles of one panel follow each other, so
 * that the panel is read from memory once; tasks go along the panels first, so that the rows of A stay in the cache.
 */
#include "runtime/device/cpu/product/product.h"

#include "runtime/device/cpu/product/narrow.h"

#define DIV_UP(x, y) (((x) + (y)-1) / (y))

static int64_t min_of(int64_t x, int64_t y) { return x < y ? x : y; }
static int64_t max_of(int64_t x, int64_t y) { return x > y ? x : y; }

/* ---- how a product is divided ---- */

/* A tile costs about 32 x k cycles where a step of 32 sums takes one. */
enum {
    FULL_TASK_K = 2048,     /* k x tiles of a task that makes handing it out free: 16 us at 4 GHz */
    LEAST_TASK_K = 256,     /* and of one that is still worth it: 2 us */
    BALANCED_TASKS = 64,    /* for up to 64 threads */
    MANY_TASKS = 256,       /* so many balance well: grow them, for reuse of operands ... */
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

static void run_tile(const amp_product_kernels *kernels, const amp_product *p, tile_at at, const void *const *prefetch,
                     int64_t prefetch_count, float *scratch) {
    const int64_t row0 = at.row_tile * AMP_PRODUCT_ROWS;
    amp_product_tile tile = {
        .a = (const char *)p->a + at.row_tile * p->a_tile_stride * (int64_t)sizeof(uint32_t),
        .b = (const char *)p->b + at.panel * p->b_panel_stride * (int64_t)sizeof(uint32_t),
        .c = scratch,
        .form = p->form,
        .a_block_stride = p->a_block_stride,
        .k = p->k,
        .rows = min_of(AMP_PRODUCT_ROWS, p->m - row0),
        .cols = min_of(AMP_PRODUCT_COLS, p->n - at.panel * AMP_PRODUCT_COLS),
        .prefetch = prefetch,
        .prefetch_count = prefetch_count,
    };
    if (amp_product_is_narrow(p)) amp_narrow_tile(kernels, p, row0, at.panel, tile);
    else kernels->tile(&tile);
    p->epilogue(p->ctx, scratch, row0, tile.rows, at.panel * AMP_PRODUCT_COLS);
}

size_t amp_product_scratch_bytes(void) { return sizeof(float) * AMP_PRODUCT_ROWS * AMP_PRODUCT_COLS; }

void amp_product_task(const amp_product_kernels *kernels, const amp_product *product, int64_t task, float *scratch) {
    const grid g = grid_of(product);
    const tile_at first = first_tile(&g, task);
    const int64_t last_row_tile = min_of(first.row_tile + g.group_rows, g.row_tiles) - 1;
    const int64_t last_panel = min_of(first.panel + g.group_panels, g.panels) - 1;
    const int is_last_task = task + 1 == g.row_groups * g.panel_groups;

    for (tile_at at = first;;) {
        const int last = at.row_tile == last_row_tile && at.panel == last_panel;
        tile_at next = {at.row_tile + 1, at.panel};
        if (last)
            next = first_tile(&g, task + 1); /* perhaps another thread's; then it is in the shared cache at least */
        else if (at.row_tile == last_row_tile) next = (tile_at){first.row_tile, at.panel + 1};

        const void *address[AMP_PRODUCT_PREFETCH_MAX];
        const int64_t count = last && is_last_task ? 0 : product->prefetch_count;
        amp_product_addresses(product->prefetch, count, next.row_tile, next.panel, address);
        run_tile(kernels, product, at, address, count, scratch);
        if (last) return;
        at = next;
    }
}
