/* conv_pack.c: pixels laid out as operands of a matrix product.
 *
 * CONV_WEIGHT sums over pixels: a step of k is a pixel, or a pair of them in bf16, and holds 32 rows of the matrix
 * [taps * channels of x].  CONV of few channels has the same matrix on the other side.
 *
 * Rows of that matrix that are adjacent in x are a segment: channels of one tap; or, where pixels are dense, all that
 * a line of the window has.  Segments are copied for a line of pixels at a time.
 */
#include <string.h>

#include "runtime/device/cpu/product/conv_parts.h"

enum { STEP = 16 /* bytes of a vector on every machine */ };

/* ---- segments ---------------------------------------------------------------------------------------------------- */

typedef struct segment {
    int64_t off_h, off_w; /* of the first tap, padding included */
    int64_t taps;         /* neighbours along the line of the window */
    int64_t skip;         /* bytes of the first tap that are not part of it */
    int64_t source;       /* bytes from the pixel of the first tap */
    int64_t bytes;
    int64_t column; /* bytes into the row of the result */
} segment;

static bool is_dense(const amp_conv *c) { return c->a.pixel_stride == c->window.c * conv_element_bytes(c); }

static int32_t segments_of(const amp_conv *c, int64_t row0, int64_t rows, segment *out) {
    const amp_model_window *w = &c->window;
    const int64_t element = conv_element_bytes(c), last = row0 + rows;
    const bool lines = is_dense(c) && w->dilation[1] == 1;
    int32_t count = 0;
    for (int64_t row = row0, length; row < last; row += length) {
        const int64_t tap = row / w->c, channel = row % w->c, line = (int64_t)w->kw * w->c;
        if (lines) length = conv_min(last - row, line - row % line);
        else length = conv_min(last - row, conv_min(w->c - channel, CONV_BLOCK - channel % CONV_BLOCK));
        out[count++] = (segment){
            .off_h = tap / w->kw * w->dilation[0] - w->padding[0],
            .off_w = tap % w->kw * w->dilation[1] - w->padding[1],
            .taps = lines ? (channel + length + w->c - 1) / w->c : 1,
            .skip = lines ? channel * element : 0,
            .source =
                lines ? channel * element : channel / CONV_BLOCK * c->a.block_stride + channel % CONV_BLOCK * element,
            .bytes = length * element,
            .column = (row - row0) * element,
        };
    }
    return count;
}

/* ---- copying ----------------------------------------------------------------------------------------------------- */

/* |count| pieces of |bytes|, each |from_step| and |to_step| bytes after the last one. */
typedef struct copies {
    char *to;
    const char *from;
    int64_t count, to_step, from_step, bytes;
} copies;

static inline __attribute__((always_inline)) void copy_fixed(const copies *c, const size_t bytes) {
    char *to = c->to;
    const char *from = c->from;
    for (int64_t i = 0; i < c->count; i++, to += c->to_step, from += c->from_step) memcpy(to, from, bytes);
}

static void copy_exactly(const copies *c) {
    char *to = c->to;
    const char *from = c->from;
    for (int64_t i = 0; i < c->count; i++, to += c->to_step, from += c->from_step) {
        int64_t at = 0;
        for (; at + STEP <= c->bytes; at += STEP) memcpy(to + at, from + at, STEP);
        for (; at + 4 <= c->bytes; at += 4) memcpy(to + at, from + at, 4);
        for (; at < c->bytes; at += 2) memcpy(to + at, from + at, 2);
    }
}

/* One piece of zeros, or of bytes: too short for a call of memset or memcpy. */
static void put(char *to, const char *from, int64_t bytes) {
    const copies one = {.to = to, .from = from, .count = 1, .bytes = bytes};
    copy_exactly(&one);
}

static void put_zeros(char *to, int64_t bytes) {
    int64_t at = 0;
    for (; at + STEP <= bytes; at += STEP) memset(to + at, 0, STEP);
    for (; at + 4 <= bytes; at += 4) memset(to + at, 0, 4);
    for (; at < bytes; at += 2) memset(to + at, 0, 2);
}

/* |wide|: there may be read and written up to the next multiple of STEP. */
static void copy(const copies *c, bool wide) {
    const int64_t steps = (c->bytes + STEP - 1) / STEP;
    if (!wide && c->bytes % STEP) return copy_exactly(c);
    switch (steps) {
    case 1: return copy_fixed(c, STEP);
    case 2: return copy_fixed(c, 2 * STEP);
    case 3: return copy_fixed(c, 3 * STEP);
    case 4: return copy_fixed(c, 4 * STEP);
    case 5: return copy_fixed(c, 5 * STEP);
    case 6: return copy_fixed(c, 6 * STEP);
    case 7: return copy_fixed(c, 7 * STEP);
    default: return copy_fixed(c, 8 * STEP); /* 32 floats */
    }
}

/* ---- windows ----------------------------------------------------------------------------------------------------- */

/* Pixels x0 .. x1 of line |y| of a sample of y. */
typedef struct line {
    int64_t sample, y, x0, x1;
    char *out; /* row of x0 */
} line;

/* The part of a segment that is inside the image; taps before and after it are zeros. */
static void copy_edge(const amp_conv *c, const segment *s, const char *image_line, int64_t w, char *to) {
    const int64_t tap = c->window.c * conv_element_bytes(c);
    const int64_t first = conv_max(0, -w), last = conv_min(s->taps, c->window.w - w); /* taps inside */
    put_zeros(to, s->bytes);
    if (first >= last) return;
    const int64_t begin = s->taps == 1 ? 0 : conv_max(0, first * tap - s->skip),
                  end = s->taps == 1 ? s->bytes : conv_min(s->bytes, last * tap - s->skip);
    if (begin < end) put(to + begin, image_line + w * c->a.pixel_stride + s->source + begin, end - begin);
}

/* Reading on to a multiple of STEP stays inside x, and what it writes there is written again by later segments. */
static bool may_be_wide(const amp_conv *c, const segment *s, const char *last_read, int64_t row_bytes) {
    const int64_t wide = (s->bytes + STEP - 1) / STEP * STEP;
    if (s->column + wide > row_bytes) return false;
    if (!is_dense(c)) return s->source % c->a.pixel_stride + wide <= row_bytes;
    const int64_t pixels = c->n * c->window.h * c->window.w;
    return last_read + wide <= (const char *)c->a.data + pixels * c->a.pixel_stride;
}

static void pack_segment(const amp_conv *c, const segment *s, const line *l, int64_t row_bytes) {
    const amp_model_window *win = &c->window;
    const int64_t h = l->y * win->stride[0] + s->off_h, stride = win->stride[1];
    char *out = l->out + s->column;
    if (h < 0 || h >= win->h) {
        for (int64_t x = l->x0; x < l->x1; x++) put_zeros(out + (x - l->x0) * row_bytes, s->bytes);
        return;
    }
    const char *image_line = (const char *)c->a.data + (l->sample * win->h + h) * win->w * c->a.pixel_stride;
    /* w = x * stride + off_w >= 0, and w + taps <= image width */
    int64_t first = s->off_w < 0 ? (-s->off_w + stride - 1) / stride : 0;
    int64_t last = win->w - s->taps - s->off_w < 0 ? 0 : (win->w - s->taps - s->off_w) / stride + 1;
    first = conv_min(conv_max(first, l->x0), l->x1);
    last = conv_max(conv_min(last, l->x1), first);
    for (int64_t x = l->x0; x < first; x++)
        copy_edge(c, s, image_line, x * stride + s->off_w, out + (x - l->x0) * row_bytes);
    if (first < last) {
        const copies run = {
            .to = out + (first - l->x0) * row_bytes,
            .from = image_line + (first * stride + s->off_w) * c->a.pixel_stride + s->source,
            .count = last - first,
            .to_step = row_bytes,
            .from_step = stride * c->a.pixel_stride,
            .bytes = s->bytes,
        };
        copy(&run, may_be_wide(c, s, run.from + (run.count - 1) * run.from_step, row_bytes));
    }
    for (int64_t x = last; x < l->x1; x++)
        copy_edge(c, s, image_line, x * stride + s->off_w, out + (x - l->x0) * row_bytes);
}

static line line_of(const amp_conv *c, int64_t pixel) {
    const amp_model_window *w = &c->window;
    return (line){.sample = pixel / w->ow / w->oh, .y = pixel / w->ow % w->oh, .x0 = pixel % w->ow};
}

void conv_pack_windows(const amp_conv *c, int64_t row0, int64_t rows, int64_t first, int64_t count, void *out) {
    const amp_model_window *w = &c->window;
    const int64_t row_bytes = CONV_BLOCK * conv_element_bytes(c);
    segment segments[CONV_BLOCK];
    const int32_t segment_count = segments_of(c, row0, rows, segments);
    line l = line_of(c, first);
    l.out = out;
    for (int64_t done = 0; done < count;) {
        l.x1 = conv_min(w->ow, l.x0 + count - done);
        for (int32_t i = 0; i < segment_count; i++) pack_segment(c, &segments[i], &l, row_bytes);
        done += l.x1 - l.x0;
        l.out += (l.x1 - l.x0) * row_bytes;
        l.x0 = 0;
        if (++l.y < w->oh) continue;
        l.y = 0;
        l.sample++;
    }
}

/* ---- steps of k -------------------------------------------------------------------------------------------------- */

enum { MOST_ROWS = 64 /* whose addresses are found at a time; even */ };

static const uint32_t zeros[CONV_BLOCK] __attribute__((aligned(64)));

int64_t conv_pack_units(const amp_conv *c, int64_t pixels) { return conv_is_bf16(c) ? (pixels + 1) / 2 : pixels; }

static char *step_at(const amp_conv *c, void *out, int64_t pixel) {
    return (char *)out + conv_pack_units(c, pixel) * CONV_BLOCK * (int64_t)sizeof(uint32_t);
}

/* Rows of 32 elements that are |step| bytes apart. */
static void pack_rows(const amp_conv *c, const char *from, int64_t step, int64_t count, void *out) {
    const void *row[MOST_ROWS];
    for (int64_t first = 0; first < count; first += MOST_ROWS) {
        const int64_t rows = conv_min(MOST_ROWS, count - first);
        for (int64_t i = 0; i < rows; i++) row[i] = from + (first + i) * step;
        c->kernels->pack(row, rows, step_at(c, out, first));
    }
}

/* The 32 channels of one tap that pixels l->x0 .. l->x0 + count of a line of y read. */
static void find_rows(const amp_conv *c, const segment *s, const line *l, int64_t count, const void **row) {
    const amp_model_window *win = &c->window;
    const int64_t h = l->y * win->stride[0] + s->off_h, width = h < 0 || h >= win->h ? 0 : win->w;
    const char *sample = (const char *)c->a.data + l->sample * win->h * win->w * c->a.pixel_stride + s->source;
    int64_t w = l->x0 * win->stride[1] + s->off_w;
    for (int64_t i = 0; i < count; i++, w += win->stride[1])
        row[i] = w < 0 || w >= width ? (const void *)zeros : sample + (h * win->w + w) * c->a.pixel_stride;
}

static void pack_blocks(const amp_conv *c, const segment *s, line l, int64_t count, void *out) {
    const amp_model_window *w = &c->window;
    const void *row[MOST_ROWS];
    for (int64_t first = 0, rows = 0; first < count; first += rows, rows = 0) {
        while (rows < MOST_ROWS && first + rows < count) {
            const int64_t here = conv_min(conv_min(MOST_ROWS - rows, count - first - rows), w->ow - l.x0);
            find_rows(c, s, &l, here, row + rows);
            rows += here;
            l.x0 += here;
            if (l.x0 < w->ow) continue;
            l.x0 = 0;
            if (++l.y < w->oh) continue;
            l.y = 0;
            l.sample++;
        }
        c->kernels->pack(row, rows, step_at(c, out, first));
    }
}

void conv_pack_x(const amp_conv *c, int64_t row0, int64_t rows, int64_t first, int64_t count, void *out, void *work) {
    if (c->window.c % CONV_BLOCK == 0) {
        segment s;
        segments_of(c, row0, rows, &s);
        pack_blocks(c, &s, line_of(c, first), count, out);
    } else if (conv_is_bf16(c)) {
        conv_pack_windows(c, row0, rows, first, count, work);
        pack_rows(c, work, CONV_BLOCK * 2, count, out);
    } else {
        conv_pack_windows(c, row0, rows, first, count, out);
    }
}

/* Dense channels get their zeros first. */
void conv_pack_dy(const amp_conv *c, int64_t col0, int64_t first, int64_t count, void *out, void *work) {
    const int64_t row_bytes = CONV_BLOCK * conv_element_bytes(c), step = c->dy.pixel_stride;
    const char *from = (const char *)c->dy.data + col0 / CONV_BLOCK * c->dy.block_stride + first * step;
    if (step == row_bytes) {
        pack_rows(c, from, step, count, out);
        return;
    }
    char *padded = conv_is_bf16(c) ? work : out;
    for (int64_t p = 0; p < count; p++, padded += row_bytes) {
        memcpy(padded, from + p * step, (size_t)step);
        memset(padded + step, 0, (size_t)(row_bytes - step));
    }
    if (conv_is_bf16(c)) pack_rows(c, work, row_bytes, count, out);
}
