/* conv_group.c: windows with groups: channels of the result meet the channels of their own group alone.
 *
 * 32 columns of the result meet a span of whole blocks of 32 channels.  Their weights are packed for it once a task,
 * with zeros where two groups do not meet: narrow groups cost what one of 32 channels costs, and no more.
 *
 * Narrow groups, of up to 16 channels on both sides, are multiplied channel by channel (conv_depthwise.c).
 */
#include <string.h>

#include "runtime/device/cpu/product/conv_parts.h"

enum {
    TILE_FLOATS = AMP_PRODUCT_ROWS * AMP_PRODUCT_COLS,
    TILE_BYTES = TILE_FLOATS * sizeof(float),
    ENOUGH_TASKS = 64,
    LEAST_TILES = 8, /* of a task, for which a panel is packed */
    MOST_TILES = 64,
    MOST_NARROW = 16,     /* channels of a group in f32, */
    MOST_NARROW_BF16 = 8, /* where a product of pairs is faster from 16 on */
    MOST_PIXELS = 128     /* of a chunk of CONV_WEIGHT; even */
};

/* ---- geometry ---------------------------------------------------------------------------------------------------- */

typedef struct group_shape {
    int64_t taps, inputs, outputs; /* channels of x and of y in a group */
    int64_t columns, per_column;   /* of the result, and of them in a group */
    int64_t inner, per_inner;      /* channels that are summed over: likewise */
    bool narrow;
} group_shape;

static group_shape shape_of(const amp_conv *c) {
    const amp_model_window *w = &c->window;
    const int64_t groups = conv_groups(c);
    const bool data = w->kind == AMP_WINDOW_CONV_DATA;
    group_shape s = {.taps = (int64_t)w->kh * w->kw, .inputs = w->c / groups, .outputs = w->oc / groups};
    s.columns = data ? w->c : w->oc;
    s.per_column = data ? s.inputs : s.outputs;
    s.inner = data ? w->oc : w->c;
    s.per_inner = data ? s.outputs : s.inputs;
    const int64_t most = conv_is_bf16(c) ? MOST_NARROW_BF16 : MOST_NARROW;
    s.narrow = s.inputs == s.outputs && s.inputs <= most && !(s.inputs & (s.inputs - 1)) && w->c >= CONV_BLOCK;
    return s;
}

static int64_t panel_columns(const group_shape *s, int64_t panel) {
    return conv_min(CONV_BLOCK, s->columns - panel * CONV_BLOCK);
}

static conv_span span_of(const amp_conv *c, const group_shape *s, int64_t panel) {
    const int64_t first = panel * CONV_BLOCK / s->per_column * s->per_inner,
                  last_column = panel * CONV_BLOCK + panel_columns(s, panel) - 1,
                  end = (last_column / s->per_column + 1) * s->per_inner;
    conv_span span = {.first = first / CONV_BLOCK, .blocks = conv_blocks(end) - first / CONV_BLOCK};
    span.tap_steps = span.blocks * CONV_BLOCK * conv_element_bytes(c) / 4;
    return span;
}

static int64_t most_blocks(const amp_conv *c, const group_shape *s) {
    int64_t most = 1;
    for (int64_t p = 0; p < conv_blocks(s->columns); p++) most = conv_max(most, span_of(c, s, p).blocks);
    return most;
}

/* ---- weights ----------------------------------------------------------------------------------------------------- */

/* Element (row, column) of the weights in panels of 32 columns. */
static const char *weight_at(const amp_conv *c, int64_t row, int64_t column) {
    const int64_t panel = column / CONV_BLOCK * c->b_panel_stride * (int64_t)sizeof(uint32_t);
    return (const char *)c->b + panel + (row * CONV_BLOCK + column % CONV_BLOCK) * conv_element_bytes(c);
}

/* Step |k| of column |column| of a panel: f32, or pairs of bf16. */
static char *step_at(const amp_conv *c, char *panel, int64_t k, int64_t column) {
    if (!conv_is_bf16(c)) return panel + (k * CONV_BLOCK + column) * (int64_t)sizeof(float);
    return panel + (k / 2 * CONV_BLOCK * 2 + column * 2 + k % 2) * (int64_t)sizeof(uint16_t);
}

/* What channel |i| of its group has for column |at| of the result under a tap. */
static const char *weight_of(const amp_conv *c, const group_shape *s, int64_t tap, int64_t i, int64_t at) {
    const int64_t group = at / s->per_column, within = at % s->per_column;
    if (c->window.kind != AMP_WINDOW_CONV_DATA) return weight_at(c, tap * s->inputs + i, at);
    return weight_at(c, tap * s->inputs + within, group * s->per_inner + i);
}

static void pack_column(const amp_conv *c, const group_shape *s, const conv_span *span, int64_t panel, int64_t column,
                        char *out) {
    const int64_t at = panel * CONV_BLOCK + column, group = at / s->per_column;
    const size_t bytes = (size_t)conv_element_bytes(c);
    for (int64_t tap = 0; tap < s->taps; tap++)
        for (int64_t i = 0; i < s->per_inner; i++) {
            const int64_t k = (tap * span->blocks - span->first) * CONV_BLOCK + group * s->per_inner + i;
            memcpy(step_at(c, out, k, column), weight_of(c, s, tap, i, at), bytes);
        }
}

static size_t panel_bytes(const amp_conv *c, const group_shape *s) {
    if (s->narrow) return (size_t)(s->taps * s->inputs) * CONV_BLOCK * sizeof(float);
    return (size_t)(s->taps * most_blocks(c, s) * CONV_BLOCK * CONV_BLOCK * conv_element_bytes(c));
}

/* [tap][channel of the group][32], f32: a bf16 is the upper half of one. */
static void widen_weights(const amp_conv *c, const group_shape *s, int64_t panel, char *out) {
    for (int64_t row = 0; row < s->taps * s->per_inner; row++)
        for (int64_t column = 0; column < panel_columns(s, panel); column++) {
            uint32_t bits = 0;
            uint16_t half;
            const char *from = weight_of(c, s, row / s->per_inner, row % s->per_inner, panel * CONV_BLOCK + column);
            if (conv_is_bf16(c)) memcpy(&half, from, sizeof half), bits = (uint32_t)half << 16;
            else memcpy(&bits, from, sizeof bits);
            memcpy(out + (row * CONV_BLOCK + column) * (int64_t)sizeof bits, &bits, sizeof bits);
        }
}

static void pack_panel(const amp_conv *c, const group_shape *s, const conv_span *span, int64_t panel, char *out) {
    memset(out, 0, panel_bytes(c, s));
    if (s->narrow) {
        widen_weights(c, s, panel, out);
        return;
    }
    for (int64_t column = 0; column < panel_columns(s, panel); column++) pack_column(c, s, span, panel, column, out);
}

/* ---- CONV and CONV_DATA: a task is some row tiles of a panel ----------------------------------------------------- */

typedef struct grid {
    int64_t rows, row_tiles, panels, group_rows, row_groups;
} grid;

static grid grid_of(const amp_conv *c, const group_shape *s) {
    const amp_model_window *w = &c->window;
    const bool data = w->kind == AMP_WINDOW_CONV_DATA;
    grid g = {.rows = c->n * (data ? (int64_t)w->h * w->w : (int64_t)w->oh * w->ow), .panels = conv_blocks(s->columns)};
    g.row_tiles = conv_blocks(g.rows);
    g.group_rows = conv_max(LEAST_TILES, conv_min(MOST_TILES, g.row_tiles * g.panels / ENOUGH_TASKS));
    g.row_groups = (g.row_tiles + g.group_rows - 1) / g.group_rows;
    return g;
}

int64_t conv_group_tasks(const amp_conv *c) {
    const group_shape s = shape_of(c);
    const grid g = grid_of(c, &s);
    return g.row_groups * g.panels;
}

static int64_t runs_of(const amp_conv *c, const group_shape *s) {
    return s->narrow ? s->taps : s->taps * most_blocks(c, s);
}

/* Scratch: the sums of a tile, a panel of weights, the table. */
void conv_group_task(const amp_conv *c, int64_t task, char *scratch) {
    const group_shape s = shape_of(c);
    const grid g = grid_of(c, &s);
    const int64_t panel = task / g.row_groups, first = task % g.row_groups * g.group_rows;
    const conv_span span = span_of(c, &s, panel);
    float *sums = (float *)(void *)scratch;
    char *weights = scratch + TILE_BYTES, *memory = weights + conv_align(panel_bytes(c, &s));
    conv_table table;
    conv_rows rows;
    const conv_tile product = {.weights = weights, .sums = sums, .cols = panel_columns(&s, panel)};
    pack_panel(c, &s, &span, panel, weights);
    conv_table_init(&table, runs_of(c, &s), memory);
    for (int64_t tile = first; tile < conv_min(first + g.group_rows, g.row_tiles); tile++) {
        const int64_t row0 = tile * AMP_PRODUCT_ROWS, count = conv_min(AMP_PRODUCT_ROWS, g.rows - row0);
        if (s.narrow) {
            conv_depthwise_tile(c, panel, row0, count, weights, sums, memory);
        } else {
            conv_rows_make(&rows, c, row0, count);
            conv_table_fill(&table, c, &rows, &span, 0, s.taps * span.blocks);
            conv_table_run(&table, c, &rows, &product);
        }
        c->epilogue(c->ctx, sums, row0, count, panel * CONV_BLOCK);
    }
}

/* ---- CONV_WEIGHT ------------------------------------------------------------------------------------------------- */

static size_t chunk_bytes(void) { return conv_align(MOST_PIXELS * CONV_BLOCK * sizeof(float)); }

/* Of the result, [taps * inputs][32]. */
static size_t result_bytes(const group_shape *s) {
    return conv_align((size_t)(s->taps * s->inputs) * CONV_BLOCK * sizeof(float));
}

/* The sums of whole blocks that meet a panel, [tap][block]; the groups are a part of them. */
static void add_chunk(const amp_conv *c, const group_shape *s, const conv_span *span, int64_t panel, int64_t first,
                      int64_t count, bool accumulate, char *chunks, float *sums) {
    char *x = chunks, *dy = x + chunk_bytes(), *work = dy + chunk_bytes();
    conv_pack_dy(c, panel * CONV_BLOCK, first, count, dy, work);
    for (int64_t i = 0; i < s->taps * span->blocks; i++) {
        const int64_t channel = (span->first + i % span->blocks) * CONV_BLOCK,
                      rows = conv_min(CONV_BLOCK, c->window.c - channel);
        conv_pack_x(c, i / span->blocks * c->window.c + channel, rows, first, count, x, work);
        const amp_product_tile tile = {
            .a = x,
            .b = dy,
            .c = sums + i * TILE_FLOATS,
            .form = AMP_PRODUCT_TRANSPOSED,
            .accumulate = accumulate,
            .k = conv_pack_units(c, count),
            .rows = rows,
            .cols = panel_columns(s, panel),
        };
        c->kernels->tile(&tile);
    }
}

/* What the group of each column has of them. */
static void take_groups(const group_shape *s, const conv_span *span, int64_t panel, const float *sums, float *result) {
    const int64_t columns = panel_columns(s, panel);
    for (int64_t row = 0; row < s->taps * s->inputs; row++)
        for (int64_t column = 0; column < columns; column++) {
            const int64_t group = (panel * CONV_BLOCK + column) / s->outputs,
                          channel = group * s->inputs + row % s->inputs - span->first * CONV_BLOCK,
                          tile = row / s->inputs * span->blocks + channel / CONV_BLOCK;
            result[row * CONV_BLOCK + column] = sums[tile * TILE_FLOATS + channel % CONV_BLOCK * CONV_BLOCK + column];
        }
}

/* Scratch: the result; for narrow groups the table, else sums, x, dy and room for packing. */
const float *conv_group_weight(const amp_conv *c, int64_t panel, int64_t first, int64_t last, char *scratch) {
    const group_shape s = shape_of(c);
    const conv_span span = span_of(c, &s, panel);
    float *result = (float *)(void *)scratch, *sums = (float *)(void *)(scratch + result_bytes(&s));
    memset(result, 0, result_bytes(&s));
    if (s.narrow) {
        conv_depthwise_weight(c, panel, first, last, result, sums);
        return result;
    }
    char *chunks = (char *)sums + (size_t)runs_of(c, &s) * TILE_BYTES;
    for (int64_t at = first; at < last; at += MOST_PIXELS)
        add_chunk(c, &s, &span, panel, at, conv_min(MOST_PIXELS, last - at), at > first, chunks, sums);
    take_groups(&s, &span, panel, sums, result);
    return result;
}

size_t conv_group_thread_bytes(const amp_conv *c) {
    const group_shape s = shape_of(c);
    const size_t table = conv_table_bytes(runs_of(c, &s));
    if (c->window.kind != AMP_WINDOW_CONV_WEIGHT) return TILE_BYTES + conv_align(panel_bytes(c, &s)) + table;
    return result_bytes(&s) + (s.narrow ? table : (size_t)runs_of(c, &s) * TILE_BYTES + 3 * chunk_bytes());
}
