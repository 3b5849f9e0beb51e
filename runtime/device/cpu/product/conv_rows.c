/* conv_rows.c: from where the rows of a tile of CONV and CONV_DATA are read.
 *
 * Result pixel (y, x) and tap (i, j) meet at (h + off_h(i), w + off_w(j)) of the image that is read:
 *   CONV       h = y * stride - padding,             off_h(i) = i * dilation
 *   CONV_DATA  h = floor((y + padding) / stride),    off_h(i) = (phase - i * dilation) / stride,
 *              phase = (y + padding) mod stride; taps where that does not divide do not meet the pixel
 * and likewise in w.  Pixels of one phase meet the same taps: they form a group, so nothing is multiplied by the zeros
 * between strides.
 */
#include "runtime/device/cpu/product/conv_parts.h"

static const uint32_t zeros[CONV_BLOCK] __attribute__((aligned(64)));

/* ---- geometry ---------------------------------------------------------------------------------------------------- */

/* The image that is read, and the result. */
typedef struct shape {
    int64_t h, w, channels;
    int64_t result_h, result_w;
    bool data;
} shape;

static shape shape_of(const amp_model_window *w) {
    if (w->kind == AMP_WINDOW_CONV_DATA) return (shape){w->oh, w->ow, w->oc, w->h, w->w, true};
    return (shape){w->h, w->w, w->c, w->oh, w->ow, false};
}

static int64_t units(const amp_conv *c, int64_t channels) { return channels * conv_element_bytes(c) / 4; }

/* Transposed weights have a panel for each 32 channels of x of a tap, whose steps are the channels of y, rounded up
 * to 32. */
conv_span conv_whole(const amp_conv *c) {
    const int64_t channels = shape_of(&c->window).channels, blocks = conv_blocks(channels);
    if (!c->b_transposed) return (conv_span){0, blocks, units(c, channels)};
    return (conv_span){0, blocks, units(c, blocks * CONV_BLOCK * conv_blocks(c->window.c))};
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

static void one_group(conv_rows *rows) {
    rows->group_count = 1;
    rows->group[0] = (conv_group){.first = 0, .rows = rows->rows};
    for (int32_t r = 0; r < rows->rows; r++) rows->row[r] = r;
}

/* Orders the rows by phase; |phase| is phase_h * stride_w + phase_w. */
static void group_rows(conv_rows *rows, const int64_t *phase, int64_t stride_w) {
    bool taken[AMP_PRODUCT_ROWS] = {0};
    int32_t placed = 0;
    rows->group_count = 0;
    for (int32_t r = 0; r < rows->rows; r++) {
        if (taken[r]) continue;
        conv_group *g = &rows->group[rows->group_count++];
        *g = (conv_group){placed, 0, (int32_t)(phase[r] / stride_w), (int32_t)(phase[r] % stride_w)};
        for (int32_t s = r; s < rows->rows; s++) {
            if (phase[s] != phase[r]) continue;
            taken[s] = true;
            rows->row[placed++] = s;
            g->rows++;
        }
    }
}

void conv_rows_make(conv_rows *rows, const amp_conv *conv, int64_t row0, int64_t count) {
    const amp_model_window *win = &conv->window;
    const shape s = shape_of(win);
    int64_t h[AMP_PRODUCT_ROWS], w[AMP_PRODUCT_ROWS], image[AMP_PRODUCT_ROWS], phase[AMP_PRODUCT_ROWS] = {0};
    int64_t x = row0 % s.result_w, y = row0 / s.result_w % s.result_h, sample = row0 / s.result_w / s.result_h;
    const bool strided = s.data && (win->stride[0] > 1 || win->stride[1] > 1); /* divides for every row */
    rows->rows = (int32_t)count;
    for (int64_t r = 0; r < count; r++) {
        image[r] = sample;
        if (strided) {
            h[r] = (y + win->padding[0]) / win->stride[0];
            w[r] = (x + win->padding[1]) / win->stride[1];
            phase[r] = (y + win->padding[0]) % win->stride[0] * win->stride[1] + (x + win->padding[1]) % win->stride[1];
        } else {
            h[r] = s.data ? y + win->padding[0] : y * win->stride[0] - win->padding[0];
            w[r] = s.data ? x + win->padding[1] : x * win->stride[1] - win->padding[1];
        }
        if (++x < s.result_w) continue;
        x = 0;
        if (++y < s.result_h) continue;
        y = 0;
        sample++;
    }
    if (strided) group_rows(rows, phase, win->stride[1]);
    else one_group(rows);
    for (int64_t i = 0; i < count; i++) {
        const int32_t r = rows->row[i];
        rows->h[i] = (int32_t)h[r];
        rows->w[i] = (int32_t)w[r];
        rows->pixel[i] =
            (uintptr_t)conv->a.data + (uintptr_t)(((image[r] * s.h + h[r]) * s.w + w[r]) * conv->a.pixel_stride);
    }
}

/* ---- taps -------------------------------------------------------------------------------------------------------- */

/* off_h or off_w of a tap; false where pixels of |phase| do not meet it. */
static bool tap_offset(const shape *s, const amp_model_window *w, int axis, int64_t tap, int64_t phase, int64_t *out) {
    const int64_t reach = tap * w->dilation[axis];
    *out = s->data ? (phase - reach) / w->stride[axis] : reach;
    return !s->data || (phase - reach) % w->stride[axis] == 0;
}

/* Bit r: row r is inside. */
static uint32_t inside(const int32_t *at, int32_t rows, int64_t offset, int64_t size) {
    uint32_t mask = 0;
    for (int32_t r = 0; r < rows; r++) mask |= (uint32_t)((uint64_t)(at[r] + offset) < (uint64_t)size) << r;
    return mask;
}

static uint32_t all_rows(int32_t rows) { return rows == 32 ? ~0u : (1u << rows) - 1; }

/* Where a tap is, and which rows of a group find it inside the image. */
typedef struct meeting {
    int64_t offset;
    uint32_t inside; /* 0: none, or the phase does not meet it */
} meeting;

static meeting meet(const conv_rows *rows, const conv_group *g, const shape *s, const amp_model_window *w, int axis,
                    int64_t tap) {
    meeting m = {0};
    if (tap_offset(s, w, axis, tap, axis ? g->phase_w : g->phase_h, &m.offset))
        m.inside = inside((axis ? rows->w : rows->h) + g->first, g->rows, m.offset, axis ? s->w : s->h);
    return m;
}

/* ---- the table --------------------------------------------------------------------------------------------------- */

enum { KNOWN_COLUMNS = 16 /* of taps: what was found for them serves every line of the window */ };

static void add_run(conv_table *t, conv_piece *p, const uintptr_t *pixel, int64_t shift, uint32_t valid,
                    amp_gather_run run) {
    const void **pointer = t->pointers + t->pointer_count;
    for (int32_t r = 0; r < p->rows; r++) pointer[r] = (const void *)(pixel[r] + (uintptr_t)shift);
    for (uint32_t outside = all_rows(p->rows) & ~valid; outside; outside &= outside - 1)
        pointer[__builtin_ctz(outside)] = zeros;
    t->runs[t->run_count++] = run;
    t->pointer_count += p->rows;
    p->runs++;
}

static void add_group(conv_table *t, const amp_conv *c, const conv_rows *rows, const conv_group *g,
                      const conv_span *span, int64_t first, int64_t last) {
    const amp_model_window *w = &c->window;
    const shape s = shape_of(w);
    const int64_t blocks = span->blocks;
    conv_piece *p = &t->piece[t->piece_count++];
    meeting line = {0}, column, known[KNOWN_COLUMNS];
    for (int64_t j = 0; j < conv_min(w->kw, KNOWN_COLUMNS); j++) known[j] = meet(rows, g, &s, w, 1, j);
    *p = (conv_piece){g->first, g->rows, t->run_count, 0, t->pointer_count};
    for (int64_t run = first, next; run < last; run = next) {
        const int64_t tap = run / blocks, i = tap / w->kw, j = tap % w->kw;
        next = conv_min(last, (tap + 1) * blocks);
        if (run == first || j == 0) line = meet(rows, g, &s, w, 0, i);
        if (!line.inside) continue;
        column = j < KNOWN_COLUMNS ? known[j] : meet(rows, g, &s, w, 1, j);
        const uint32_t valid = line.inside & column.inside;
        if (!valid) continue;
        const int64_t shift = (line.offset * s.w + column.offset) * c->a.pixel_stride;
        for (int64_t block = run % blocks; run < next; run++, block++) {
            const int64_t channel = (span->first + block) * CONV_BLOCK;
            add_run(t, p, rows->pixel + g->first, shift + (span->first + block) * c->a.block_stride, valid,
                    (amp_gather_run){tap * span->tap_steps + units(c, block * CONV_BLOCK),
                                     units(c, conv_min(CONV_BLOCK, s.channels - channel))});
        }
    }
}

void conv_table_fill(conv_table *t, const amp_conv *c, const conv_rows *rows, const conv_span *span, int64_t first,
                     int64_t last) {
    t->run_count = t->pointer_count = t->piece_count = 0;
    for (int32_t i = 0; i < rows->group_count; i++) add_group(t, c, rows, &rows->group[i], span, first, last);
}

void conv_table_run(const conv_table *t, const amp_conv *c, const conv_rows *rows, const conv_tile *tile) {
    for (int32_t i = 0; i < t->piece_count; i++) {
        const conv_piece *p = &t->piece[i];
        const amp_gather_tile piece = {
            .a = t->pointers + p->first_pointer,
            .runs = t->runs + p->first_run,
            .run_count = p->runs,
            .rows = p->rows,
            .b = tile->weights,
            .c = tile->sums,
            .c_row = rows->row + p->first,
            .cols = tile->cols,
            .accumulate = tile->accumulate,
            .prefetch_count = i ? 0 : tile->prefetch_count,
            .prefetch = tile->prefetch,
            .group = tile->group,
        };
        if (tile->group) c->kernels->depthwise(&piece, 0);
        else c->kernels->gather(&piece);
    }
}

int64_t conv_runs(const amp_conv *c) {
    return (int64_t)c->window.kh * c->window.kw * conv_blocks(shape_of(&c->window).channels);
}

static size_t run_bytes(int64_t runs) { return conv_align((size_t)runs * sizeof(amp_gather_run)); }

size_t conv_table_bytes(int64_t runs) {
    return run_bytes(runs) + conv_align((size_t)runs * AMP_PRODUCT_ROWS * sizeof(void *));
}

void conv_table_init(conv_table *t, int64_t runs, void *memory) {
    t->runs = memory;
    t->pointers = (const void **)((char *)memory + run_bytes(runs));
}
