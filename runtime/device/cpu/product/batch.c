/* batch.c: see batch.h. */
#include "runtime/device/cpu/product/batch.h"

#include <stdbool.h>
#include <string.h>

#include "runtime/device/cpu/product/pack.h"

enum {
    TILE = 32,
    UNIT = 4,               /* bytes */
    GROUP = 8,              /* row tiles of a task, at most: they share a packed panel of B */
    CHUNK = AMP_PACK_UNITS, /* of k that are packed at a time: a panel of 64 KiB */
    CHUNK_PANELS = 4,       /* panels of a task where k has several chunks: their sums wait in scratch */
    MOST_AHEAD = 512,       /* bytes of a row that are prefetched for the next part */
    MOST_IN_PLACE = 256,    /* steps of k up to which columns of A in f32 are read where they are */
    ENOUGH_TASKS = 16,      /* for a few threads */
    SMALL_TASK = 8192       /* steps of a tile that are worth handing out */
};

static int64_t min_of(int64_t x, int64_t y) { return x < y ? x : y; }
static int64_t div_up(int64_t x, int64_t y) { return (x + y - 1) / y; }

/* Elements of a unit. */
static int64_t per_unit(const amp_batch *p) { return p->kernels->operand == AMP_DT_BF16 ? 2 : 1; }
static int64_t element_size(const amp_batch *p) { return UNIT / per_unit(p); }
static int64_t units_of(const amp_batch *p) { return div_up(p->k, per_unit(p)); }

/* ---- how it is divided ------------------------------------------------------------------------------------------- */

typedef struct grid {
    int64_t rows, cols;               /* of C */
    int64_t row_tiles, panels;        /* of C */
    int64_t group_rows, group_panels; /* tiles of a task */
    int64_t row_groups, panel_groups; /* tasks */
} grid;

/* Row tiles of a task: whole products where that is possible, or whole parts of one. */
static int64_t tiles_together(int64_t m) {
    int64_t tiles = 1; /* whose rows make up whole products */
    while (tiles < GROUP && tiles * TILE % m && m % (tiles * TILE)) tiles++;
    if (tiles * TILE % m == 0 || m % TILE) return tiles;
    const int64_t of_product = m / TILE;
    return div_up(of_product, div_up(of_product, GROUP));
}

static grid grid_of(const amp_batch *p) {
    grid g = {.rows = p->m, .cols = p->n};
    for (int32_t i = 0; i < p->rank; i++) *(p->in_columns && i + 1 == p->rank ? &g.cols : &g.rows) *= p->dims[i];
    g.row_tiles = div_up(g.rows, TILE);
    g.panels = div_up(g.cols, TILE);
    const bool chunked = units_of(p) > CHUNK;
    g.group_panels = chunked ? min_of(g.panels, CHUNK_PANELS) : g.panels;
    g.group_rows = min_of(tiles_together(p->m), g.row_tiles);
    while (g.group_rows * 2 <= GROUP && g.group_rows * g.group_panels * units_of(p) < SMALL_TASK / 2 &&
           g.row_tiles >= 4 * ENOUGH_TASKS * g.group_rows)
        g.group_rows *= 2;
    while (g.group_panels > 1 && div_up(g.row_tiles, g.group_rows) * div_up(g.panels, g.group_panels) < ENOUGH_TASKS)
        g.group_panels = div_up(g.group_panels, 2);
    while (g.group_rows > 1 && div_up(g.row_tiles, g.group_rows) * div_up(g.panels, g.group_panels) < ENOUGH_TASKS)
        g.group_rows = div_up(g.group_rows, 2);
    g.row_groups = div_up(g.row_tiles, g.group_rows);
    g.panel_groups = div_up(g.panels, g.group_panels);
    return g;
}

int64_t amp_batch_tasks(const amp_batch *batch) {
    const grid g = grid_of(batch);
    return g.row_groups * g.panel_groups;
}

/* ---- scratch of a task ------------------------------------------------------------------------------------------- */

enum { TILE_BYTES = TILE * TILE * 4, SEGMENTS = GROUP * TILE };

/* Rows of one product within one tile. */
typedef struct segment {
    int64_t a, b;       /* bytes from the operands' first product to this one, without that along the columns */
    int64_t m0;         /* its first row in the product */
    int32_t tile, at;   /* the tile of the task, and its first row there */
    int32_t rows, slot; /* where its rows of A are packed */
} segment;

/* What is packed: of the product at |from|, from |first| on (a row of A, a column of B), from step |k0| on. */
typedef struct packed {
    int64_t from, first, k0;
} packed;

typedef struct task_state {
    const amp_batch *p;
    int64_t units; /* of a chunk, at most */
    float *sums;   /* [panel][row tile] */
    float *part;   /* one tile, if only a part of it is wanted */
    char *b, *a;   /* a panel of B; rows of A by slot */
    packed b_is, a_is[GROUP];
    int32_t segment_count;
    segment segments[SEGMENTS];
    int64_t row0, end_col; /* of C: its first row, and where its columns end */
} task_state;

/* Whether a piece of A may have to be copied: is_read_by_columns and is_read_in_place say which. */
static bool packs_a(const amp_batch *p) {
    return p->kernels->operand == AMP_DT_BF16 || (p->a.transposed && (p->k > MOST_IN_PLACE || !p->a.pitch));
}

typedef struct parts { /* bytes from the beginning of the scratch */
    size_t sums, part, b, a, end, units;
} parts;

static parts parts_of(const amp_batch *p) {
    parts s = {.units = (size_t)min_of(units_of(p), CHUNK)};
    s.part = (size_t)(units_of(p) > CHUNK ? CHUNK_PANELS : 1) * GROUP * TILE_BYTES;
    s.b = s.part + TILE_BYTES;
    s.a = s.b + s.units * TILE * UNIT;
    s.end = s.a + (packs_a(p) ? GROUP * s.units * TILE * UNIT : 0);
    return s;
}

size_t amp_batch_thread_bytes(const amp_batch *batch) { return parts_of(batch).end; }

/* Bytes from the first product to product |index| of those along the rows. */
static int64_t offset_of(const amp_batch *p, const amp_batch_operand *x, int64_t index) {
    int64_t offset = 0;
    for (int32_t i = p->rank - (p->in_columns ? 1 : 0) - 1; i >= 0; index /= p->dims[i--])
        offset += index % p->dims[i] * x->stride[i];
    return offset;
}

static segment segment_at(const amp_batch *p, int64_t row) {
    const int64_t product = row / p->m, m0 = row % p->m;
    return (segment){.a = offset_of(p, &p->a, product), .b = offset_of(p, &p->b, product), .m0 = m0};
}

static void find_segments(task_state *s, int64_t row0, int64_t end) {
    const amp_batch *p = s->p;
    for (int64_t row = row0; row < end;) {
        const int64_t m0 = row % p->m;
        segment *to = &s->segments[s->segment_count];
        *to = segment_at(p, row);
        to->tile = (int32_t)((row - row0) / TILE);
        to->at = (int32_t)((row - row0) % TILE);
        to->rows = (int32_t)min_of(min_of(p->m - m0, TILE - to->at), end - row);
        to->slot = s->segment_count++ % GROUP;
        row += to->rows;
    }
}

/* ---- packing ----------------------------------------------------------------------------------------------------- */

static bool is_packed(packed *has, int64_t from, int64_t first, int64_t k0) {
    const bool same = has->from == from && has->first == first && has->k0 == k0;
    *has = (packed){from, first, k0};
    return same;
}

static void pack_b(task_state *s, int64_t from, int64_t n0, int64_t width, int64_t k0, int64_t steps) {
    const amp_batch *p = s->p;
    if (is_packed(&s->b_is, from, n0, k0)) return;
    const int64_t size = element_size(p);
    const char *data = p->b.data + from;
    if (p->b.transposed)
        amp_pack_columns(p->kernels, data + n0 * p->b.pitch + k0 * size, p->b.pitch, steps, width, s->b);
    else amp_pack_steps(p->kernels, data + k0 * p->b.pitch + n0 * size, p->b.pitch, steps, width, s->b, 0);
}

/* ---- one part of a tile ------------------------------------------------------------------------------------------ */

typedef struct piece {
    int64_t k0, steps; /* of this chunk of k */
    float *c;
    int accumulate;
    int64_t prefetch_count;
    const void *const *prefetch;
} piece;

static char *slot_of(const task_state *s, const segment *g) { return s->a + g->slot * s->units * TILE * UNIT; }

/* Columns of A may be read where they are, too, unless all are one: a tile has no step of 0. */
static bool is_read_by_columns(const amp_batch *p, const piece *x) {
    return per_unit(p) == 1 && x->steps <= MOST_IN_PLACE && p->a.pitch;
}

static void run_columns(task_state *s, const segment *g, int64_t from, const piece *x) {
    const amp_batch *p = s->p;
    const char *a = p->a.data + from + x->k0 * p->a.pitch + g->m0 * element_size(p);
    const bool in_place = is_read_by_columns(p, x);
    char *slot = in_place ? NULL : slot_of(s, g);
    if (slot && !is_packed(&s->a_is[g->slot], from, g->m0, x->k0))
        amp_pack_steps(p->kernels, a, p->a.pitch, x->steps, g->rows, slot, 0);
    const amp_product_tile tile = {
        .a = in_place ? a : slot,
        .a_step = in_place ? p->a.pitch / UNIT : 0,
        .b = s->b,
        .c = x->c,
        .form = AMP_PRODUCT_TRANSPOSED,
        .accumulate = x->accumulate,
        .k = div_up(x->steps, per_unit(p)),
        .rows = g->rows,
        .prefetch_count = x->prefetch_count,
        .prefetch = x->prefetch,
    };
    p->kernels->tile(&tile);
}

/* Whole units where they can be read as such: else copied, with zero for a step that is not there. */
static bool is_read_in_place(const amp_batch *p, const char *row, int64_t steps) {
    return per_unit(p) == 1 || (steps % 2 == 0 && p->a.pitch % UNIT == 0 && (uintptr_t)row % UNIT == 0);
}

static void run_rows(task_state *s, const segment *g, int64_t from, const piece *x) {
    static const int32_t in_order[TILE] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15,
                                           16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31};
    const amp_batch *p = s->p;
    const int64_t units = div_up(x->steps, per_unit(p));
    const char *row = p->a.data + from + g->m0 * p->a.pitch + x->k0 * element_size(p);
    const bool in_place = is_read_in_place(p, row, x->steps);
    const bool copy = !in_place && !is_packed(&s->a_is[g->slot], from, g->m0, x->k0);
    const void *rows[TILE];
    for (int32_t i = 0; i < g->rows; i++, row += p->a.pitch) {
        char *own = in_place ? NULL : slot_of(s, g) + i * units * UNIT;
        rows[i] = in_place ? row : own;
        if (!copy) continue;
        memset(own + (units - 1) * UNIT, 0, UNIT);
        memcpy(own, row, (size_t)(x->steps * element_size(p)));
    }
    const amp_gather_run run = {0, units};
    const amp_gather_tile tile = {
        .a = rows,
        .runs = &run,
        .run_count = 1,
        .rows = g->rows,
        .b = s->b,
        .c = x->c,
        .c_row = in_order,
        .accumulate = x->accumulate,
        .prefetch_count = x->prefetch_count,
        .prefetch = x->prefetch,
    };
    p->kernels->gather(&tile);
}

/* Columns of one product within one panel: |width| of them from |n0| on, in column |at| of the panel. */
typedef struct columns {
    int64_t product, n0, at, width;
    bool alone; /* in the panel */
} columns;

/* Bytes from the first product to the product of a segment and columns. */
static int64_t product_at(const amp_batch *p, const amp_batch_operand *x, int64_t segment, int64_t product) {
    return segment + (p->in_columns ? product * x->stride[p->rank - 1] : 0);
}

/* Where a panel has columns of several products, each is computed in the panel's first columns, and moved. */
static void run_part(task_state *s, const segment *g, const columns *j, piece x) {
    const amp_batch *p = s->p;
    const int64_t a = product_at(p, &p->a, g->a, j->product), b = product_at(p, &p->b, g->b, j->product);
    float *const c = x.c;
    pack_b(s, b, j->n0, j->width, x.k0, x.steps);
    if (!j->alone) {
        x.c = s->part;
        for (int32_t r = 0; x.accumulate && r < g->rows; r++)
            memcpy(s->part + r * TILE, c + r * TILE + j->at, (size_t)j->width * sizeof *c);
    }
    if (p->a.transposed) run_columns(s, g, a, &x);
    else run_rows(s, g, a, &x);
    for (int32_t r = 0; !j->alone && r < g->rows; r++)
        memcpy(c + r * TILE + j->at, s->part + r * TILE, (size_t)j->width * sizeof *c);
}

/* ---- what comes next --------------------------------------------------------------------------------------------- */

/* Of an operand whose rows in memory run along k, or whose rows are steps of k: the part that is needed first, |count|
 * rows or columns from |first| on. */
static void prefetch_operand(const amp_batch *p, const amp_batch_operand *x, bool along_k, int64_t from, int64_t first,
                             int64_t count, const piece *k) {
    const int64_t size = element_size(p);
    const char *row = x->data + from;
    if (along_k)
        amp_prefetch_rows(row + first * x->pitch + k->k0 * size, x->pitch, min_of(TILE, count),
                          min_of(k->steps * size, MOST_AHEAD));
    else
        amp_prefetch_rows(row + k->k0 * x->pitch + first * size, x->pitch, min_of(TILE, k->steps),
                          min_of(count * size, MOST_AHEAD));
}

/* The part after |g| and |j|: of this panel, the next panel or the next task. */
static void prefetch_next(const task_state *s, const grid *g, int32_t i, const columns *j, const piece *x) {
    const amp_batch *p = s->p;
    const bool same_columns = i + 1 < s->segment_count;
    const segment *at = &s->segments[same_columns ? i + 1 : 0];
    int64_t col = j->product * p->n + j->n0;
    segment of_next_task;
    if (!same_columns) col += j->width;
    if (col >= s->end_col) {
        const bool same_rows = col < g->cols;
        const int64_t row = same_rows ? s->row0 : s->row0 + g->group_rows * TILE;
        if (row >= g->rows) return;
        if (!same_rows) col = 0;
        of_next_task = segment_at(p, row);
        at = &of_next_task;
    }
    const int64_t product = col / p->n, n0 = col % p->n;
    const int64_t a = product_at(p, &p->a, at->a, product), b = product_at(p, &p->b, at->b, product);
    const packed *has = &s->a_is[at->slot];
    if (n0 == 0 && (has->from != a || has->first != at->m0))
        prefetch_operand(p, &p->a, !p->a.transposed, a, at->m0, min_of(p->m - at->m0, TILE), x);
    if (b != s->b_is.from || n0 != s->b_is.first)
        prefetch_operand(p, &p->b, p->b.transposed, b, n0, min_of(p->n - n0, TILE), x);
}

/* ---- a task ------------------------------------------------------------------------------------------------------ */

static void run_panel(task_state *s, const grid *g, int64_t row_tile, int64_t col0, float *sums, piece x) {
    const amp_batch *p = s->p;
    const int64_t end = min_of(col0 + TILE, g->cols);
    for (int64_t col = col0; col < end;) {
        columns j = {.product = col / p->n, .n0 = col % p->n, .at = col - col0};
        j.width = min_of(p->n - j.n0, end - col);
        j.alone = j.at == 0 && j.width == end - col0;
        for (int32_t i = 0; i < s->segment_count; i++) {
            const void *prefetch[AMP_PRODUCT_PREFETCH_MAX];
            x.c = sums + s->segments[i].tile * TILE * TILE + s->segments[i].at * TILE;
            x.prefetch = prefetch;
            x.prefetch_count = s->segments[i].at ? 0 : p->prefetch_count;
            amp_product_addresses(p->prefetch, x.prefetch_count, row_tile + s->segments[i].tile, col0 / TILE, prefetch);
            prefetch_next(s, g, i, &j, &x);
            run_part(s, &s->segments[i], &j, x);
        }
        col += j.width;
    }
}

static void finish_panel(const amp_batch *p, int64_t row0, int64_t end, int64_t col0, const float *sums) {
    for (int64_t row = row0; row < end; row += TILE, sums += TILE * TILE)
        p->epilogue(p->ctx, sums, row, min_of(TILE, end - row), col0);
}

void amp_batch_task(const amp_batch *batch, int64_t task, void *thread_scratch) {
    const grid g = grid_of(batch);
    const parts at = parts_of(batch);
    char *scratch = thread_scratch;
    task_state s = {.p = batch, .units = (int64_t)at.units, .b_is.k0 = -1};
    s.sums = (float *)(void *)scratch;
    s.part = (float *)(void *)(scratch + at.part);
    s.b = scratch + at.b;
    s.a = scratch + at.a;
    for (int i = 0; i < GROUP; i++) s.a_is[i].k0 = -1;
    const int64_t row0 = task / g.panel_groups * g.group_rows * TILE, end = min_of(row0 + g.group_rows * TILE, g.rows);
    const int64_t panel0 = task % g.panel_groups * g.group_panels,
                  last_panel = min_of(panel0 + g.group_panels, g.panels);
    const int64_t chunk = s.units * per_unit(batch), per_panel = chunk < batch->k ? g.group_rows * TILE * TILE : 0;
    s.row0 = row0;
    s.end_col = last_panel * TILE;
    find_segments(&s, row0, end);
    for (int64_t k0 = 0; k0 < batch->k; k0 += chunk)
        for (int64_t panel = panel0; panel < last_panel; panel++) {
            float *sums = s.sums + (panel - panel0) * per_panel;
            const piece x = {.k0 = k0, .steps = min_of(chunk, batch->k - k0), .accumulate = k0 > 0};
            run_panel(&s, &g, row0 / TILE, panel * TILE, sums, x);
            if (k0 + chunk >= batch->k) finish_panel(batch, row0, end, panel * TILE, sums);
        }
}
