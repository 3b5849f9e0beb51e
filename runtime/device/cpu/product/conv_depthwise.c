/* conv_depthwise.c: windows over each channel by itself, or over narrow groups of channels.
 *
 * Pixels that are neighbours in a line of the result read neighbours under each tap, as long as they are inside the
 * image for the same taps: such a stretch is one call of a kernel, with a pointer for each tap.  The gradient of a
 * strided convolution has no such stretches and takes a pointer for each pixel and tap.
 */
#include "runtime/device/cpu/product/conv_parts.h"

/* Result pixel (y, x) and tap (i, j) meet at (y * scale + base + i * step, ...) of the image that is read. */
typedef struct geometry {
    int64_t group;              /* channels */
    int64_t size[2], result[2]; /* of rows, of columns */
    int64_t scale[2], base[2], step[2];
} geometry;

static bool has_stretches(const amp_conv *c) {
    const amp_model_window *w = &c->window;
    return w->kind != AMP_WINDOW_CONV_DATA || (w->stride[0] == 1 && w->stride[1] == 1);
}

static geometry geometry_of(const amp_conv *c) {
    const amp_model_window *w = &c->window;
    const bool data = w->kind == AMP_WINDOW_CONV_DATA;
    const int64_t x[2] = {w->h, w->w}, y[2] = {w->oh, w->ow};
    geometry g = {.group = w->c / conv_groups(c)};
    for (int i = 0; i < 2; i++) {
        g.size[i] = data ? y[i] : x[i];
        g.result[i] = data ? x[i] : y[i];
        g.scale[i] = data ? 1 : w->stride[i];
        g.base[i] = data ? w->padding[i] : -w->padding[i];
        g.step[i] = data ? -w->dilation[i] : w->dilation[i];
    }
    return g;
}

typedef struct stretch {
    int64_t sample, y, x, end; /* pixels x .. end of a line of the result */
    int64_t runs;
} stretch;

/* Where the column that reads |at| stops to be inside, or outside before the image. */
static int64_t change_after(const geometry *g, int64_t x, int64_t at) {
    const int64_t distance = at < 0 ? -at : g->size[1] - at;
    return x + (distance + g->scale[1] - 1) / g->scale[1];
}

/* The taps that meet the image at (s->y, s->x), and how far they stay the same. */
static void find_taps(const amp_conv *c, const geometry *g, int64_t panel, stretch *s, conv_table *t) {
    const amp_model_window *w = &c->window;
    const char *image = (const char *)c->a.data + panel * c->a.block_stride;
    s->runs = 0;
    for (int64_t j = 0; j < w->kw; j++) {
        const int64_t at = s->x * g->scale[1] + g->base[1] + j * g->step[1];
        if (at < g->size[1]) s->end = conv_min(s->end, change_after(g, s->x, at));
    }
    for (int64_t i = 0; i < w->kh; i++) {
        const int64_t row = s->y * g->scale[0] + g->base[0] + i * g->step[0];
        if (row < 0 || row >= g->size[0]) continue;
        for (int64_t j = 0; j < w->kw; j++) {
            const int64_t at = s->x * g->scale[1] + g->base[1] + j * g->step[1];
            if (at < 0 || at >= g->size[1]) continue;
            t->runs[s->runs] = (amp_gather_run){(i * w->kw + j) * g->group, 0};
            t->pointers[s->runs++] = image + ((s->sample * g->size[0] + row) * g->size[1] + at) * c->a.pixel_stride;
        }
    }
}

/* The stretch that begins at result pixel |row| and ends before |last|. */
static stretch stretch_at(const amp_conv *c, const geometry *g, int64_t panel, int64_t row, int64_t last,
                          conv_table *t) {
    stretch s = {.x = row % g->result[1], .y = row / g->result[1] % g->result[0]};
    s.sample = row / g->result[1] / g->result[0];
    s.end = conv_min(g->result[1], s.x + last - row);
    find_taps(c, g, panel, &s, t);
    return s;
}

/* ---- CONV and CONV_DATA ------------------------------------------------------------------------------------------ */

static void tile_by_pixels(const amp_conv *c, int64_t group, int64_t panel, int64_t row0, int64_t count,
                           const void *weights, float *sums, conv_table *t) {
    const conv_span span = {panel, 1, group};
    conv_rows rows;
    conv_rows_make(&rows, c, row0, count);
    conv_table_fill(t, c, &rows, &span, 0, (int64_t)c->window.kh * c->window.kw);
    const conv_tile product = {.weights = weights, .sums = sums, .group = group};
    conv_table_run(t, c, &rows, &product);
}

void conv_depthwise_tile(const amp_conv *c, int64_t panel, int64_t row0, int64_t count, const void *weights,
                         float *sums, void *memory) {
    const geometry g = geometry_of(c);
    conv_table t;
    conv_table_init(&t, (int64_t)c->window.kh * c->window.kw, memory);
    if (!has_stretches(c)) {
        tile_by_pixels(c, g.group, panel, row0, count, weights, sums, &t);
        return;
    }
    for (int64_t row = row0, rows; row < row0 + count; row += rows) {
        const stretch s = stretch_at(c, &g, panel, row, row0 + count, &t);
        rows = s.end - s.x;
        const amp_gather_tile tile = {
            .a = t.pointers,
            .runs = t.runs,
            .run_count = s.runs,
            .rows = rows,
            .b = weights,
            .c = sums + (row - row0) * AMP_PRODUCT_COLS,
            .group = g.group,
        };
        c->kernels->depthwise(&tile, g.scale[1] * c->a.pixel_stride);
    }
}

/* ---- CONV_WEIGHT ------------------------------------------------------------------------------------------------- */

void conv_depthwise_weight(const amp_conv *c, int64_t panel, int64_t first, int64_t last, float *sums, void *memory) {
    const geometry g = geometry_of(c);
    const char *dy = (const char *)c->dy.data + panel * c->dy.block_stride;
    conv_table t;
    conv_table_init(&t, (int64_t)c->window.kh * c->window.kw, memory);
    for (int64_t row = first, rows; row < last; row += rows) {
        const stretch s = stretch_at(c, &g, panel, row, last, &t);
        rows = s.end - s.x;
        const amp_gather_tile tile = {
            .a = t.pointers,
            .runs = t.runs,
            .run_count = s.runs,
            .rows = rows,
            .b = dy + row * c->dy.pixel_stride,
            .c = sums,
            .group = g.group,
        };
        c->kernels->depthwise_weight(&tile, g.scale[1] * c->a.pixel_stride, c->dy.pixel_stride);
    }
}
