/* conv_rows.c: from where the rows of a tile of CONV and CONV_DATA are read.
 *
 * Result pixel (y, x) and tap (i, j) meet at (h + off_h(i), w + off_w(j)) of the image that is read:
 *   CONV       h = y * stride - padding,             off_h(i) = i * dilation
 *   CONV_DATA  h = floor((y + padding) / stride),    off_h(i) = (phase - i * dilation) / stride,
 *              phase = (y + padding) mod stride; taps where that does not divide do not meet the pixel
 * and likewise in w.  Pixels of one phase meet the same taps: they form a group, so nothing is multiplied by the zeros
 * between strides.
 *
 * Where the channels lie densely, the taps of a line of CONV's window are neighbours in memory, and a run is a whole
 * line of the window; lines that hang over the edge of the image are copied out.
 */
#include <string.h>

#include "runtime/device/cpu/product/conv_parts.h"

enum { MAX_RUNS = 256, LONGEST_LINE = 1024, MAX_EDGES = 1 << 16 };

static const uint32_t zeros[LONGEST_LINE / 4] __attribute__((aligned(64)));

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

static int64_t element_bytes(const amp_conv *c) { return conv_is_bf16(c) ? 2 : 4; }
static int64_t units(const amp_conv *c, int64_t channels) { return channels * element_bytes(c) / 4; }

/* ---- rows -------------------------------------------------------------------------------------------------------- */

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
    rows->rows = (int32_t)count;
    for (int64_t r = 0; r < count; r++) {
        image[r] = sample;
        if (s.data) {
            h[r] = (y + win->padding[0]) / win->stride[0];
            w[r] = (x + win->padding[1]) / win->stride[1];
            phase[r] = (y + win->padding[0]) % win->stride[0] * win->stride[1] + (x + win->padding[1]) % win->stride[1];
        } else {
            h[r] = y * win->stride[0] - win->padding[0];
            w[r] = x * win->stride[1] - win->padding[1];
        }
        if (++x < s.result_w) continue;
        x = 0;
        if (++y < s.result_h) continue;
        y = 0;
        sample++;
    }
    group_rows(rows, phase, win->stride[1]);
    for (int64_t i = 0; i < count; i++) {
        const int32_t r = rows->row[i];
        rows->h[i] = h[r];
        rows->w[i] = w[r];
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
static uint32_t inside(const int64_t *at, int32_t rows, int64_t offset, int64_t size) {
    uint32_t mask = 0;
    for (int32_t r = 0; r < rows; r++) mask |= (uint32_t)((uint64_t)(at[r] + offset) < (uint64_t)size) << r;
    return mask;
}

static uint32_t all_rows(int32_t rows) { return rows == 32 ? ~0u : (1u << rows) - 1; }

static void add_run(conv_table *t, conv_piece *p, int64_t first_k, int64_t length) {
    t->runs[t->run_count++] = (amp_gather_run){first_k, length};
    t->pointer_count += p->rows;
    p->runs++;
}

/* One block of channels of one tap. */
static void add_tap_block(conv_table *t, conv_piece *p, const conv_rows *rows, int64_t shift, uint32_t valid,
                          int64_t first_k, int64_t length) {
    const void **pointer = t->pointers + t->pointer_count;
    const uintptr_t *pixel = rows->pixel + p->first;
    for (int32_t r = 0; r < p->rows; r++) pointer[r] = (const void *)(pixel[r] + (uintptr_t)shift);
    for (uint32_t outside = all_rows(p->rows) & ~valid; outside; outside &= outside - 1)
        pointer[__builtin_ctz(outside)] = zeros;
    add_run(t, p, first_k, length);
}

/* The blocks of one tap from cursor->block on; false where the table is full before its end. */
static bool add_tap(conv_table *t, conv_piece *p, const amp_conv *c, const conv_rows *rows, const conv_group *g,
                    conv_cursor *cursor) {
    const amp_model_window *w = &c->window;
    const shape s = shape_of(w);
    int64_t off_h, off_w;
    if (!tap_offset(&s, w, 0, cursor->tap / w->kw, g->phase_h, &off_h)) return true;
    if (!tap_offset(&s, w, 1, cursor->tap % w->kw, g->phase_w, &off_w)) return true;
    const uint32_t valid =
        inside(rows->h + g->first, g->rows, off_h, s.h) & inside(rows->w + g->first, g->rows, off_w, s.w);
    if (!valid) return true;
    for (; cursor->block < conv_blocks(s.channels); cursor->block++) {
        if (t->run_count == t->capacity) return false;
        const int64_t channel = (int64_t)cursor->block * CONV_BLOCK;
        const int64_t shift = (off_h * s.w + off_w) * c->a.pixel_stride + cursor->block * c->a.block_stride;
        add_tap_block(t, p, rows, shift, valid, units(c, cursor->tap * s.channels + channel),
                      units(c, conv_min(CONV_BLOCK, s.channels - channel)));
    }
    return true;
}

/* ---- whole lines of the window ----------------------------------------------------------------------------------- */

static int64_t line_bytes(const amp_conv *c) { return c->window.kw * c->window.c * element_bytes(c); }

static bool has_whole_lines(const amp_conv *c) {
    const amp_model_window *w = &c->window;
    return w->kind == AMP_WINDOW_CONV && w->dilation[1] == 1 && w->c < CONV_BLOCK && line_bytes(c) <= LONGEST_LINE &&
           line_bytes(c) * w->kh * AMP_PRODUCT_ROWS <= MAX_EDGES && w->kh <= MAX_RUNS;
}

/* Line |tap| of the window of row |at|, which hangs over the left or right edge. */
static const void *copy_edge(conv_table *t, const amp_conv *c, const conv_rows *rows, int32_t at, int64_t line,
                             int64_t shift) {
    const int64_t first = conv_max(0, -rows->w[at]), last = conv_min(c->window.kw, c->window.w - rows->w[at]);
    char *edge = t->edges + (line * AMP_PRODUCT_ROWS + at) * line_bytes(c);
    memset(edge, 0, (size_t)line_bytes(c));
    if (first < last)
        memcpy(edge + first * c->a.pixel_stride,
               (const void *)(rows->pixel[at] + (uintptr_t)(shift + first * c->a.pixel_stride)),
               (size_t)((last - first) * c->a.pixel_stride));
    return edge;
}

static void add_line(conv_table *t, conv_piece *p, const amp_conv *c, const conv_rows *rows, int64_t line) {
    const amp_model_window *w = &c->window;
    const int64_t off_h = line * w->dilation[0], shift = off_h * w->w * c->a.pixel_stride;
    const uint32_t valid = inside(rows->h, rows->rows, off_h, w->h);
    const uint32_t whole =
        inside(rows->w, rows->rows, 0, w->w) & inside(rows->w, rows->rows, w->kw - 1, w->w); /* both ends */
    if (!valid) return;
    const void **pointer = t->pointers + t->pointer_count;
    for (int32_t r = 0; r < rows->rows; r++) pointer[r] = (const void *)(rows->pixel[r] + (uintptr_t)shift);
    for (uint32_t rest = all_rows(rows->rows) & ~(valid & whole); rest; rest &= rest - 1) {
        const int32_t r = __builtin_ctz(rest);
        pointer[r] = valid >> r & 1 ? copy_edge(t, c, rows, r, line, shift) : zeros;
    }
    add_run(t, p, units(c, line * w->kw * w->c), units(c, w->kw * w->c));
}

/* ---- the table --------------------------------------------------------------------------------------------------- */

static int64_t runs_of(const amp_conv *c) {
    const amp_model_window *w = &c->window;
    return conv_min(MAX_RUNS, (int64_t)w->kh * w->kw * conv_blocks(shape_of(w).channels));
}

static size_t run_bytes(int64_t runs) { return conv_align((size_t)runs * sizeof(amp_gather_run)); }
static size_t pointer_bytes(int64_t runs) { return conv_align((size_t)runs * AMP_PRODUCT_ROWS * sizeof(void *)); }

size_t conv_table_bytes(const amp_conv *c) {
    const size_t edges = has_whole_lines(c) ? conv_align((size_t)(c->window.kh * AMP_PRODUCT_ROWS * line_bytes(c))) : 0;
    return run_bytes(runs_of(c)) + pointer_bytes(runs_of(c)) + edges;
}

void conv_table_init(conv_table *t, const amp_conv *c, void *memory) {
    const int64_t runs = runs_of(c);
    t->capacity = (int32_t)runs;
    t->whole_lines = has_whole_lines(c) && c->a.pixel_stride == c->window.c * element_bytes(c);
    t->runs = memory;
    t->pointers = (const void **)((char *)memory + run_bytes(runs));
    t->edges = (char *)memory + run_bytes(runs) + pointer_bytes(runs);
}

static conv_piece *begin_piece(conv_table *t, const conv_group *g, bool accumulate) {
    conv_piece *p = &t->piece[t->piece_count++];
    *p = (conv_piece){g->first, g->rows, t->run_count, 0, t->pointer_count, accumulate};
    return p;
}

bool conv_table_fill(conv_table *t, const amp_conv *c, const conv_rows *rows, conv_cursor *cursor) {
    const int64_t taps = (int64_t)c->window.kh * c->window.kw;
    t->run_count = t->pointer_count = t->piece_count = 0;
    if (t->whole_lines) {
        conv_piece *p = begin_piece(t, &rows->group[0], false);
        for (int64_t line = 0; line < c->window.kh; line++) add_line(t, p, c, rows, line);
        return false;
    }
    for (; cursor->group < rows->group_count; cursor->group++) {
        const conv_group *g = &rows->group[cursor->group];
        conv_piece *p = begin_piece(t, g, cursor->accumulate);
        for (; cursor->tap < taps; cursor->tap++, cursor->block = 0) {
            if (add_tap(t, p, c, rows, g, cursor)) continue;
            cursor->accumulate = true;
            return true;
        }
        cursor->tap = 0;
        cursor->accumulate = false;
    }
    return false;
}
