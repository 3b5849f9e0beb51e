/* conv_pack.c: pixels of x and y as the operands of a matrix product: CONV_WEIGHT sums over pixels, so that a step of k
 * is a pixel, or a pair of them in bf16.
 *
 * A row of C is a tap and a channel of x; rows of one tap whose channels lie together are a segment.
 */
#include <string.h>

#include "runtime/device/cpu/product/conv_parts.h"

typedef struct segment {
    int64_t off_h, off_w;  /* of the tap, padding included */
    int64_t source, bytes; /* of the channels in a pixel of x; how many bytes they take */
    int64_t column;        /* among the 32 of the result */
} segment;

int64_t conv_pack_units(const amp_conv *c, int64_t pixels) { return conv_is_bf16(c) ? (pixels + 1) / 2 : pixels; }

static int64_t element_bytes(const amp_conv *c) { return conv_is_bf16(c) ? 2 : 4; }

static int32_t segments_of(const amp_conv *c, int64_t row0, int64_t rows, segment *out) {
    const amp_model_window *w = &c->window;
    int32_t count = 0;
    for (int64_t row = row0; row < row0 + rows;) {
        const int64_t tap = row / w->c, channel = row % w->c;
        const int64_t length = conv_min(conv_min(w->c - channel, CONV_BLOCK - channel % CONV_BLOCK), row0 + rows - row);
        out[count++] = (segment){
            .off_h = tap / w->kw * w->dilation[0] - w->padding[0],
            .off_w = tap % w->kw * w->dilation[1] - w->padding[1],
            .source = channel / CONV_BLOCK * c->a.block_stride + channel % CONV_BLOCK * element_bytes(c),
            .bytes = length * element_bytes(c),
            .column = row - row0,
        };
        row += length;
    }
    return count;
}

/* Columns of 32 elements of one pixel, as they come or between those of its partner. */
static void put(const amp_conv *c, void *out, int64_t index, int64_t column, const void *from, int64_t bytes) {
    if (!conv_is_bf16(c)) {
        memcpy((float *)out + index * CONV_BLOCK + column, from, (size_t)bytes);
        return;
    }
    uint16_t *to = (uint16_t *)out + (index / 2 * CONV_BLOCK + column) * 2 + index % 2;
    for (int64_t i = 0; i < bytes / 2; i++) memcpy(to + 2 * i, (const uint16_t *)from + i, sizeof *to);
}

static const uint32_t zeros[CONV_BLOCK];

/* The partner of the last pixel, where there is none. */
static void put_odd(const amp_conv *c, void *out, int64_t count) {
    if (conv_is_bf16(c) && count % 2) put(c, out, count, 0, zeros, CONV_BLOCK * 2);
}

void conv_pack_x(const amp_conv *c, int64_t row0, int64_t rows, int64_t first, int64_t count, void *out) {
    const amp_model_window *win = &c->window;
    segment segments[CONV_BLOCK];
    const int32_t segment_count = segments_of(c, row0, rows, segments);
    int64_t x = first % win->ow, y = first / win->ow % win->oh, sample = first / win->ow / win->oh;
    for (int64_t p = 0; p < count; p++) {
        for (int32_t i = 0; i < segment_count; i++) {
            const segment *s = &segments[i];
            const int64_t h = y * win->stride[0] + s->off_h, w = x * win->stride[1] + s->off_w;
            const bool inside = h >= 0 && h < win->h && w >= 0 && w < win->w;
            const void *from =
                inside ? (const char *)c->a.data + s->source + ((sample * win->h + h) * win->w + w) * c->a.pixel_stride
                       : (const char *)zeros;
            put(c, out, p, s->column, from, s->bytes);
        }
        if (++x < win->ow) continue;
        x = 0;
        if (++y < win->oh) continue;
        y = 0;
        sample++;
    }
    put_odd(c, out, count);
}

void conv_pack_dy(const amp_conv *c, int64_t col0, int64_t first, int64_t count, void *out) {
    const int64_t channels = conv_min(CONV_BLOCK, c->window.oc - col0);
    const char *from = (const char *)c->dy.data + col0 / CONV_BLOCK * c->dy.block_stride + first * c->dy.pixel_stride;
    for (int64_t p = 0; p < count; p++, from += c->dy.pixel_stride) {
        put(c, out, p, 0, from, channels * element_bytes(c));
        if (channels < CONV_BLOCK) {
            const int64_t padding = (CONV_BLOCK - channels) * element_bytes(c);
            put(c, out, p, channels, zeros, padding);
        }
    }
    put_odd(c, out, count);
}
