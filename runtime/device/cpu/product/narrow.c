/* narrow.c: see narrow.h. */
#include "runtime/device/cpu/product/narrow.h"

#include <stdalign.h>
#include <stdbool.h>
#include <string.h>

enum {
    TILE = 32,
    UNIT = 4,
    PIECE = 64 /* units of k that are packed at a time: 8 KiB of each operand */
};

typedef uint32_t Packed[PIECE * TILE];

/* [count][width] in memory, dense. */
typedef struct Rows {
    const char *data;
    int64_t count, width, element;
} Rows;

static int64_t least(int64_t x, int64_t y) { return x < y ? x : y; }

static int64_t per_unit(const amp_product_kernels *kernels) { return kernels->operand == AMP_DT_BF16 ? 2 : 1; }

static const char *row_of(const Rows *m, int64_t row) { return m->data + row * m->width * m->element; }

/* How many of the first rows may be read as if they had 32 elements: the others are too close to the end. */
static int64_t wide_rows(const Rows *m) {
    const int64_t elements = m->count * m->width;
    return elements < TILE ? 0 : (elements - TILE) / m->width + 1;
}

/* A [m, k], k < 32, as |rows| rows of a block; the step that half a unit lacks is zero. */
static void pack_rows(const Rows *a, int64_t row0, int64_t rows, char *to) {
    const int64_t line = TILE * a->element, bytes = a->width * a->element, wide = wide_rows(a);
    for (int64_t r = row0; r < row0 + rows; r++, to += line) {
        memcpy(to, row_of(a, r), (size_t)(r < wide ? line : bytes));
        if (a->width < TILE) memset(to + bytes, 0, (size_t)a->element);
    }
}

/* Rows first .. first + count as steps of k: [units][32].  Columns past the width are anything. */
static void pack_steps(const amp_product_kernels *kernels, const Rows *m, int64_t first, int64_t count, uint32_t *to) {
    const int64_t wide = wide_rows(m);
    alignas(64) char part[TILE][TILE * UNIT] = {{0}};
    const void *rows[TILE];
    for (int64_t done = 0; done < count; done += TILE) {
        const int64_t steps = least(TILE, count - done);
        for (int64_t i = 0; i < steps; i++) {
            const char *row = row_of(m, first + done + i);
            rows[i] =
                first + done + i < wide ? (const void *)row : memcpy(part[i], row, (size_t)(m->width * m->element));
        }
        kernels->pack(rows, steps, to + done / per_unit(kernels) * TILE);
    }
}

/* Unit |unit| of A and where to find |tile->k| of them, packed in |packed| where that is needed. */
static void find_a(const amp_product_kernels *kernels, const amp_product *p, int64_t row0, int64_t unit,
                   amp_product_tile *tile, uint32_t *packed) {
    const int64_t per = per_unit(kernels), block = TILE / per;
    const Rows a = {p->a, p->form == AMP_PRODUCT_BLOCKED ? p->m : p->steps, p->a_row, UNIT / per};
    const char *whole = (const char *)p->a + row0 / TILE * p->a_tile_stride * UNIT;
    if (!p->a_row) {
        tile->a = whole + (p->form == AMP_PRODUCT_BLOCKED ? unit / block * p->a_block_stride : unit * TILE) * UNIT;
    } else if (p->form == AMP_PRODUCT_BLOCKED) {
        pack_rows(&a, row0, tile->rows, (char *)packed);
        tile->a = packed;
        tile->a_block_stride = 0;
    } else if (per == 1) {
        tile->a = row_of(&a, unit);
        tile->a_step = p->a_row;
    } else {
        pack_steps(kernels, &a, unit * per, least(tile->k * per, p->steps - unit * per), packed);
        tile->a = packed;
    }
}

void amp_narrow_tile(const amp_product_kernels *kernels, const amp_product *p, int64_t row0, int64_t panel,
                     amp_product_tile tile) {
    alignas(64) Packed a, b;
    const int64_t per = per_unit(kernels);
    const Rows b_rows = {p->b, p->steps, p->b_row, UNIT / per};
    const bool packs_a = p->a_row && p->form == AMP_PRODUCT_TRANSPOSED && per > 1;
    for (int64_t unit = 0; unit < p->k; unit += tile.k) {
        tile.k = least(packs_a || p->b_row ? PIECE : p->k, p->k - unit);
        tile.accumulate = unit > 0;
        tile.b = (const char *)p->b + (panel * p->b_panel_stride + unit * TILE) * UNIT;
        find_a(kernels, p, row0, unit, &tile, a);
        if (p->b_row) {
            pack_steps(kernels, &b_rows, unit * per, least(tile.k * per, p->steps - unit * per), b);
            tile.b = b;
        }
        kernels->tile(&tile);
        tile.prefetch_count = 0;
    }
    if (!p->b_row) return;
    for (int64_t r = 0; r < tile.rows; r++) /* neighbours were read as columns */
        memset(tile.c + r * AMP_PRODUCT_COLS + tile.cols, 0, (size_t)(AMP_PRODUCT_COLS - tile.cols) * sizeof *tile.c);
}
