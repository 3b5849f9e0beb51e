/* conv.c: CONV and CONV_DATA as tasks, each some row tiles of some panels of C.
 *
 * Weights are read again for every row tile, so a task takes as many panels, and of long k as much at a time, as stay
 * in the second-level cache.
 *
 * Images of very few channels (the first layer of a network) would make runs of one or a few units: there the windows
 * of a row tile are laid out as rows of a matrix first, which takes less time than it saves.
 *
 * A window of one pixel makes a matrix product of the images as they lie.
 */
#include "runtime/device/cpu/product/conv_parts.h"

#include <string.h>

/* ---- how a product is divided ------------------------------------------------------------------------------------ */

/* A tile costs about 32 x k cycles where a step of 32 sums takes one. */
enum {
    CACHED_UNITS = 1 << 16, /* 256 KiB of B */
    FULL_TASK_K = 2048,     /* as in product.c */
    LEAST_TASK_K = 256,
    BALANCED_TASKS = 64,
    PIECE_PANELS = 2,   /* where k goes by in pieces */
    PIECE_TILES = 16,   /* tiles whose sums a task holds meanwhile */
    FEW_CHANNELS = 32,  /* fewer are laid out */
    MOST_WINDOW_K = 512 /* units: 64 KiB of windows */
};

typedef struct grid {
    int64_t k, inner; /* units; channels that are summed over */
    int64_t rows, columns, row_tiles, panels;
    int64_t group_rows, group_panels; /* tiles of a task */
    int64_t row_groups, panel_groups; /* tasks */
    int64_t runs, piece_runs;         /* runs of k, and of a piece */
    bool windows;                     /* laid out */
} grid;

static void divide_k(grid *g) {
    const int64_t panel_units = g->k * CONV_BLOCK;
    g->piece_runs = g->runs;
    g->group_panels = conv_min(g->panels, conv_max(1, CACHED_UNITS / panel_units));
    if (panel_units <= CACHED_UNITS || g->windows) return;
    g->group_panels = conv_min(g->panels, PIECE_PANELS);
    g->piece_runs = conv_max(1, g->runs * CACHED_UNITS / (panel_units * g->group_panels));
}

static void divide_rows(grid *g) {
    const int64_t k = g->k * g->group_panels, full = (FULL_TASK_K + k - 1) / k, least = (LEAST_TASK_K + k - 1) / k,
                  balanced = g->row_tiles * g->panel_groups / BALANCED_TASKS;
    g->group_rows = conv_max(least, conv_min(full, balanced));
    if (g->piece_runs < g->runs) g->group_rows = conv_min(PIECE_TILES / g->group_panels, conv_max(balanced, 1));
    g->group_rows = conv_min(conv_max(g->group_rows, 1), g->row_tiles);
    g->row_groups = (g->row_tiles + g->group_rows - 1) / g->group_rows;
}

static grid grid_of(const amp_conv *c) {
    const amp_model_window *w = &c->window;
    const bool data = w->kind == AMP_WINDOW_CONV_DATA;
    grid g = {.inner = data ? w->oc : w->c,
              .rows = c->n * (data ? (int64_t)w->h * w->w : (int64_t)w->oh * w->ow),
              .columns = data ? w->c : w->oc,
              .runs = conv_runs(c)};
    g.k = conv_max(1, (int64_t)w->kh * w->kw * g.inner * conv_element_bytes(c) / 4);
    g.row_tiles = conv_blocks(g.rows);
    g.panels = conv_blocks(g.columns);
    g.windows = !data && w->c < FEW_CHANNELS && g.k <= MOST_WINDOW_K;
    divide_k(&g);
    g.panel_groups = (g.panels + g.group_panels - 1) / g.group_panels;
    divide_rows(&g);
    return g;
}

/* ---- scratch ----------------------------------------------------------------------------------------------------- */

enum { TILE_BYTES = AMP_PRODUCT_ROWS * AMP_PRODUCT_COLS * sizeof(float) };

static int64_t held_tiles(const grid *g) { return g->piece_runs < g->runs ? PIECE_TILES : 1; }
static int64_t window_panels(const amp_conv *c, const grid *g) { return conv_blocks(g->k * 4 / conv_element_bytes(c)); }

/* Sums of tiles; then the table, or the windows. */
static size_t thread_bytes(const amp_conv *c) {
    const grid g = grid_of(c);
    const size_t more = g.windows ? (size_t)window_panels(c, &g) * TILE_BYTES : conv_table_bytes(g.piece_runs);
    return (size_t)held_tiles(&g) * TILE_BYTES + more;
}

/* ---- one task ---------------------------------------------------------------------------------------------------- */

typedef struct task {
    int64_t first_tile, last_tile, first_panel, last_panel; /* last: one past */
    char *sums, *more;
} task;

static const void *panel_of(const amp_conv *c, int64_t panel) {
    return (const char *)c->b + panel * c->b_panel_stride * (int64_t)sizeof(uint32_t);
}

static int64_t rows_of(const grid *g, int64_t tile) {
    return conv_min(AMP_PRODUCT_ROWS, g->rows - tile * AMP_PRODUCT_ROWS);
}

static int64_t columns_of(const grid *g, int64_t panel) {
    return conv_min(AMP_PRODUCT_COLS, g->columns - panel * AMP_PRODUCT_COLS);
}

static void finish(const amp_conv *c, const grid *g, const float *sums, int64_t tile, int64_t panel) {
    c->epilogue(c->ctx, sums, tile * AMP_PRODUCT_ROWS, rows_of(g, tile), panel * AMP_PRODUCT_COLS);
}

/* Runs first .. last of one row tile; the table serves all panels. */
static void run_piece(const amp_conv *c, const grid *g, const task *t, int64_t tile, int64_t first, int64_t last,
                      conv_table *table) {
    conv_rows rows;
    const conv_span whole = conv_whole(c);
    conv_rows_make(&rows, c, tile * AMP_PRODUCT_ROWS, rows_of(g, tile));
    conv_table_fill(table, c, &rows, &whole, first, last);
    for (int64_t panel = t->first_panel; panel < t->last_panel; panel++) {
        const int64_t held = (tile - t->first_tile) * (t->last_panel - t->first_panel) + panel - t->first_panel;
        float *sums = (float *)(t->sums + (g->piece_runs < g->runs ? held : 0) * TILE_BYTES);
        const void *address[AMP_PRODUCT_PREFETCH_MAX];
        const conv_tile product = {
            .weights = panel_of(c, panel),
            .sums = sums,
            .cols = columns_of(g, panel),
            .accumulate = first > 0,
            .prefetch_count = last == g->runs ? c->prefetch_count : 0,
            .prefetch = address,
        };
        amp_product_addresses(c->prefetch, product.prefetch_count, tile, panel, address);
        conv_table_run(table, c, &rows, &product);
        if (last == g->runs) finish(c, g, sums, tile, panel);
    }
}

static void gather_task(const amp_conv *c, const grid *g, const task *t) {
    conv_table table;
    conv_table_init(&table, g->piece_runs, t->more);
    for (int64_t first = 0; first < g->runs; first += g->piece_runs)
        for (int64_t tile = t->first_tile; tile < t->last_tile; tile++)
            run_piece(c, g, t, tile, first, conv_min(first + g->piece_runs, g->runs), &table);
}

static void windows_task(const amp_conv *c, const grid *g, const task *t) {
    const int64_t k = (int64_t)c->window.kh * c->window.kw * c->window.c,
                  block_bytes = AMP_PRODUCT_ROWS * CONV_BLOCK * conv_element_bytes(c);
    for (int64_t tile = t->first_tile; tile < t->last_tile; tile++) {
        for (int64_t at = 0; at < k; at += CONV_BLOCK)
            conv_pack_windows(c, at, conv_min(CONV_BLOCK, k - at), tile * AMP_PRODUCT_ROWS, rows_of(g, tile),
                              t->more + at / CONV_BLOCK * block_bytes);
        for (int64_t panel = t->first_panel; panel < t->last_panel; panel++) {
            const void *address[AMP_PRODUCT_PREFETCH_MAX];
            const amp_product_tile product = {
                .a = t->more,
                .b = panel_of(c, panel),
                .c = (float *)t->sums,
                .form = AMP_PRODUCT_BLOCKED,
                .a_block_stride = block_bytes / 4,
                .k = g->k,
                .rows = rows_of(g, tile),
                .cols = columns_of(g, panel),
                .prefetch_count = c->prefetch_count,
                .prefetch = address,
            };
            amp_product_addresses(c->prefetch, product.prefetch_count, tile, panel, address);
            c->kernels->tile(&product);
            finish(c, g, (float *)t->sums, tile, panel);
        }
    }
}

/* Rows first: neighbours read the same panels. */
static void run_task(const amp_conv *c, int64_t index, char *scratch) {
    const grid g = grid_of(c);
    task t = {.first_tile = index % g.row_groups * g.group_rows,
              .first_panel = index / g.row_groups * g.group_panels,
              .sums = scratch,
              .more = scratch + held_tiles(&g) * TILE_BYTES};
    t.last_tile = conv_min(t.first_tile + g.group_rows, g.row_tiles);
    t.last_panel = conv_min(t.first_panel + g.group_panels, g.panels);
    if (g.windows) windows_task(c, &g, &t);
    else gather_task(c, &g, &t);
}

/* ---- windows of one pixel ---------------------------------------------------------------------------------------- */

static bool has_one_pixel(const amp_model_window *w) {
    return w->groups <= 1 && w->kh == 1 && w->kw == 1 && w->stride[0] == 1 && w->stride[1] == 1 && !w->padding[0] &&
           !w->padding[1];
}

/* The image is in panels, which are the blocks of A. */
static bool is_matrix_product(const amp_conv *c) {
    return has_one_pixel(&c->window) && c->a.pixel_stride == CONV_BLOCK * conv_element_bytes(c) && c->a.block_stride;
}

static amp_product matrix_product(const amp_conv *c) {
    const amp_model_window *w = &c->window;
    const grid g = grid_of(c);
    amp_product product = {
        .a = c->a.data,
        .b = c->b,
        .form = AMP_PRODUCT_BLOCKED,
        .m = g.rows,
        .n = w->kind == AMP_WINDOW_CONV_DATA ? w->c : w->oc,
        .k = (g.inner * conv_element_bytes(c) + 3) / 4,
        .a_block_stride = c->a.block_stride / 4,
        .a_tile_stride = AMP_PRODUCT_ROWS * CONV_BLOCK * conv_element_bytes(c) / 4,
        .b_panel_stride = c->b_panel_stride,
        .epilogue = c->epilogue,
        .ctx = c->ctx,
        .prefetch_count = c->prefetch_count,
    };
    memcpy(product.prefetch, c->prefetch, sizeof product.prefetch);
    return product;
}

/* ---- the interface ----------------------------------------------------------------------------------------------- */

/* A way to compute a product; the last two may be missing. */
typedef struct way {
    size_t (*thread_bytes)(const amp_conv *);
    size_t (*shared_bytes)(const amp_conv *);
    int64_t (*tasks)(const amp_conv *);
    void (*task)(const amp_conv *, int64_t task, char *scratch);
    int64_t (*second_tasks)(const amp_conv *);
    void (*second_task)(const amp_conv *, int64_t task, char *scratch);
} way;

static size_t no_bytes(const amp_conv *c) {
    (void)c;
    return 0;
}

static int64_t gather_tasks(const amp_conv *c) {
    const grid g = grid_of(c);
    return g.row_groups * g.panel_groups;
}

static int64_t matrix_tasks(const amp_conv *c) {
    const amp_product product = matrix_product(c);
    return amp_product_tasks(&product);
}

static void matrix_task(const amp_conv *c, int64_t task, char *scratch) {
    const amp_product product = matrix_product(c);
    amp_product_task(c->kernels, &product, task, (float *)scratch);
}

static const way gathered = {thread_bytes, no_bytes, gather_tasks, run_task, NULL, NULL};
static const way matrix = {thread_bytes, no_bytes, matrix_tasks, matrix_task, NULL, NULL};
static const way grouped = {conv_group_thread_bytes, no_bytes, conv_group_tasks, conv_group_task, NULL, NULL};
static const way weight = {conv_weight_thread_bytes, conv_weight_shared_bytes, conv_weight_tasks,
                           conv_weight_task,         conv_weight_sum_tasks,    conv_weight_sum_task};
static const way grouped_weight = {conv_group_thread_bytes, conv_weight_shared_bytes, conv_weight_tasks,
                                   conv_weight_task,        conv_weight_sum_tasks,    conv_weight_sum_task};
static const way winograd = {conv_winograd_thread_bytes, conv_winograd_shared_bytes, conv_winograd_tasks,
                             conv_winograd_task,         conv_winograd_second_tasks, conv_winograd_second_task};
static const way winograd_weight = {conv_winograd_weight_thread_bytes, conv_winograd_weight_shared_bytes,
                                    conv_winograd_weight_tasks,        conv_winograd_weight_task,
                                    conv_winograd_weight_sum_tasks,    conv_winograd_weight_sum_task};

static const way *way_of(const amp_conv *c) {
    const bool is_weight = c->window.kind == AMP_WINDOW_CONV_WEIGHT;
    if (conv_is_winograd(c)) return is_weight ? &winograd_weight : &winograd;
    if (conv_groups(c) > 1) return is_weight ? &grouped_weight : &grouped;
    if (is_weight) return &weight;
    return is_matrix_product(c) ? &matrix : &gathered;
}

/* Where an image is matters to the way: without one, windows of one pixel are taken for gathered ones. */
size_t amp_conv_thread_bytes(const amp_conv *c) {
    const size_t bytes = way_of(c)->thread_bytes(c);
    return bytes < amp_product_scratch_bytes(c->kernels) ? amp_product_scratch_bytes(c->kernels) : bytes;
}

size_t amp_conv_shared_bytes(const amp_conv *c) { return way_of(c)->shared_bytes(c); }

int64_t amp_conv_tasks(const amp_conv *c) { return way_of(c)->tasks(c); }

void amp_conv_task(const amp_conv *c, int64_t task, void *thread_scratch) { way_of(c)->task(c, task, thread_scratch); }

int64_t amp_conv_second_tasks(const amp_conv *c) {
    const way *w = way_of(c);
    return w->second_tasks ? w->second_tasks(c) : 0;
}

void amp_conv_second_task(const amp_conv *c, int64_t task, void *thread_scratch) {
    way_of(c)->second_task(c, task, thread_scratch);
}
