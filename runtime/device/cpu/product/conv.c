/* conv.c: CONV and CONV_DATA as tasks, each some row tiles of some panels of C. */
#include "runtime/device/cpu/product/conv_parts.h"

/* ---- how a product is divided ---- */

/* A tile costs about 32 x k cycles where a step of 32 sums takes one. */
enum {
    CACHED_UNITS = 1 << 17, /* 512 KiB of B stay in the second-level cache while rows go by */
    FULL_TASK_K = 2048,     /* as in product.c */
    LEAST_TASK_K = 256,
    BALANCED_TASKS = 64,
    REUSE_TILES = 16 /* row tiles that share panels of B which were read from further away */
};

typedef struct grid {
    int64_t k; /* units */
    int64_t rows, row_tiles, panels;
    int64_t group_rows, group_panels; /* tiles of a task */
    int64_t row_groups, panel_groups; /* tasks */
} grid;

static grid grid_of(const amp_conv *c) {
    const amp_model_window *w = &c->window;
    const bool data = w->kind == AMP_WINDOW_CONV_DATA;
    const int64_t cols = data ? w->c : w->oc, inner = data ? w->oc : w->c;
    grid g = {.k = conv_max(1, (int64_t)w->kh * w->kw * inner / (conv_is_bf16(c) ? 2 : 1)),
              .rows = c->n * (data ? (int64_t)w->h * w->w : (int64_t)w->oh * w->ow),
              .panels = conv_blocks(cols)};
    g.row_tiles = conv_blocks(g.rows);
    g.group_panels = conv_min(g.panels, conv_max(1, CACHED_UNITS / (g.k * CONV_BLOCK)));
    g.panel_groups = (g.panels + g.group_panels - 1) / g.group_panels;
    const int64_t row_k = g.k * g.group_panels, full = (FULL_TASK_K + row_k - 1) / row_k,
                  least = (LEAST_TASK_K + row_k - 1) / row_k, balanced = g.row_tiles * g.panel_groups / BALANCED_TASKS;
    g.group_rows = conv_max(least, conv_min(full, balanced));
    if (g.panel_groups > 1) g.group_rows = conv_max(g.group_rows, conv_min(REUSE_TILES, balanced));
    g.group_rows = conv_min(conv_max(g.group_rows, 1), g.row_tiles);
    g.row_groups = (g.row_tiles + g.group_rows - 1) / g.group_rows;
    return g;
}

/* ---- one task ---- */

static size_t tile_bytes(void) { return sizeof(float) * AMP_PRODUCT_ROWS * AMP_PRODUCT_COLS; }

static void run_pieces(const amp_conv *c, const conv_table *t, const conv_rows *rows, int64_t panel, float *sums) {
    for (int32_t i = 0; i < t->piece_count; i++) {
        const conv_piece *p = &t->piece[i];
        const amp_gather_tile tile = {
            .a = t->pointers + p->first_pointer,
            .runs = t->runs + p->first_run,
            .run_count = p->runs,
            .rows = p->rows,
            .b = (const char *)c->b + panel * c->b_panel_stride * (int64_t)sizeof(uint32_t),
            .c = sums,
            .c_row = rows->row + p->first,
            .accumulate = p->accumulate,
        };
        c->kernels->gather(&tile);
    }
}

/* The table of most tiles holds all their runs and serves every panel. */
static void run_row_tile(const amp_conv *c, const grid *g, int64_t row_tile, int64_t panel, int64_t last_panel,
                         float *sums, conv_table *t) {
    conv_rows rows;
    const int64_t row0 = row_tile * AMP_PRODUCT_ROWS;
    conv_rows_make(&rows, c, row0, conv_min(AMP_PRODUCT_ROWS, g->rows - row0));
    bool complete = false;
    for (; panel <= last_panel; panel++) {
        conv_cursor cursor = {0};
        bool more = false;
        do {
            if (!complete) {
                const bool from_start = !more;
                more = conv_table_fill(t, c, &rows, &cursor);
                complete = from_start && !more;
            }
            run_pieces(c, t, &rows, panel, sums);
        } while (more);
        c->epilogue(c->ctx, sums, row0, rows.rows, panel * AMP_PRODUCT_COLS);
    }
}

/* Rows first: neighbours read the same panels. */
static void window_task(const amp_conv *c, int64_t task, char *scratch) {
    const grid g = grid_of(c);
    const int64_t first_tile = task % g.row_groups * g.group_rows, first_panel = task / g.row_groups * g.group_panels;
    const int64_t last_tile = conv_min(first_tile + g.group_rows, g.row_tiles) - 1;
    const int64_t last_panel = conv_min(first_panel + g.group_panels, g.panels) - 1;
    conv_table table;
    conv_table_init(&table, c, scratch + tile_bytes());
    for (int64_t tile = first_tile; tile <= last_tile; tile++)
        run_row_tile(c, &g, tile, first_panel, last_panel, (float *)scratch, &table);
}

/* ---- the interface ---- */

static bool is_weight(const amp_conv *c) { return c->window.kind == AMP_WINDOW_CONV_WEIGHT; }

size_t amp_conv_thread_bytes(const amp_conv *c) {
    return is_weight(c) ? conv_weight_thread_bytes(c) : tile_bytes() + conv_table_bytes(c);
}

size_t amp_conv_shared_bytes(const amp_conv *c) { return is_weight(c) ? conv_weight_shared_bytes(c) : 0; }

int64_t amp_conv_tasks(const amp_conv *c) {
    if (is_weight(c)) return conv_weight_tasks(c);
    const grid g = grid_of(c);
    return g.row_groups * g.panel_groups;
}

void amp_conv_task(const amp_conv *c, int64_t task, void *thread_scratch) {
    if (is_weight(c)) conv_weight_task(c, task, thread_scratch);
    else window_task(c, task, thread_scratch);
}

int64_t amp_conv_sum_tasks(const amp_conv *c) { return is_weight(c) ? conv_weight_sum_tasks(c) : 0; }
