/* conv_parts.h: what the files of conv share. */
#ifndef AMP_RUNTIME_DEVICE_CPU_PRODUCT_CONV_PARTS_H
#define AMP_RUNTIME_DEVICE_CPU_PRODUCT_CONV_PARTS_H

#include <stdbool.h>

#include "runtime/device/cpu/product/conv.h"

enum { CONV_BLOCK = 32 /* channels of a panel, rows and columns of a tile */, CONV_ALIGN = 64 };

static inline int64_t conv_min(int64_t x, int64_t y) { return x < y ? x : y; }
static inline int64_t conv_max(int64_t x, int64_t y) { return x > y ? x : y; }
static inline int64_t conv_blocks(int64_t x) { return (x + CONV_BLOCK - 1) / CONV_BLOCK; }
static inline size_t conv_align(size_t bytes) { return (bytes + CONV_ALIGN - 1) / CONV_ALIGN * CONV_ALIGN; }
static inline int64_t conv_groups(const amp_conv *c) { return c->window.groups > 1 ? c->window.groups : 1; }
/* |count| is a multiple of 32: the compiler makes vectors of a loop whose length it knows. */
static inline void conv_add_sums(float *restrict sums, const float *restrict more, int64_t count) {
    for (int64_t at = 0; at < count; at += CONV_BLOCK)
        for (int i = 0; i < CONV_BLOCK; i++) sums[at + i] += more[at + i];
}
static inline bool conv_is_bf16(const amp_conv *c) { return c->kernels->operand == AMP_DT_BF16; }
/* The kernels of a product of f32, which bf16 may be widened to. */
static inline const amp_product_kernels *conv_f32(const amp_conv *c) {
    return c->kernels->widening ? c->kernels->widening->f32 : c->kernels;
}
static inline int64_t conv_element_bytes(const amp_conv *c) { return conv_is_bf16(c) ? 2 : 4; }

/* ---- conv_rows.c: CONV and CONV_DATA ---- */

/* Rows of one tile that read the same taps (all, unless CONV_DATA has a stride). */
typedef struct conv_group {
    int32_t first, rows;
    int32_t phase_h, phase_w;
} conv_group;

/* The rows of a tile, ordered by group: where each one's window begins in the image that is read. */
typedef struct conv_rows {
    int32_t rows, group_count;
    int32_t row[AMP_PRODUCT_ROWS]; /* of the tile */
    int32_t h[AMP_PRODUCT_ROWS], w[AMP_PRODUCT_ROWS];
    uintptr_t pixel[AMP_PRODUCT_ROWS]; /* address of (h, w), which may be outside */
    conv_group group[AMP_PRODUCT_ROWS];
} conv_rows;

void conv_rows_make(conv_rows *rows, const amp_conv *conv, int64_t row0, int64_t count);

/* A call of the gather kernel: rows of one group, their runs. */
typedef struct conv_piece {
    int32_t first, rows; /* in conv_rows */
    int32_t first_run, runs, first_pointer;
} conv_piece;

/* The blocks of 32 channels that a tile reads of each tap, and the steps of k from a tap to the next one. */
typedef struct conv_span {
    int64_t first, blocks, tap_steps;
} conv_span;

conv_span conv_whole(const amp_conv *conv); /* all of them */

/* Runs first .. last of a tile: a run is a block of 32 channels of a tap, numbered tap * blocks + block. */
typedef struct conv_table {
    int32_t run_count, pointer_count, piece_count;
    conv_piece piece[AMP_PRODUCT_ROWS]; /* by group */
    amp_gather_run *runs;
    const void **pointers;
} conv_table;

int64_t conv_runs(const amp_conv *conv); /* of a tile */
/* Memory of a table of |runs| runs. */
size_t conv_table_bytes(int64_t runs);
void conv_table_init(conv_table *table, int64_t runs, void *memory);
void conv_table_fill(conv_table *table, const amp_conv *conv, const conv_rows *rows, const conv_span *span,
                     int64_t first, int64_t last);
/* What a tile's rows are multiplied by, and where their sums go. */
typedef struct conv_tile {
    const void *weights;
    float *sums;
    int64_t cols;
    bool accumulate; /* as in amp_gather_tile */
    int64_t prefetch_count;
    const void *const *prefetch; /* likewise */
    int64_t group;               /* 0: gather; else depthwise, as in amp_gather_tile */
} conv_tile;
void conv_table_run(const conv_table *table, const amp_conv *conv, const conv_rows *rows, const conv_tile *tile);

/* ---- conv_group.c: groups > 1 ---- */

size_t conv_group_thread_bytes(const amp_conv *conv);
int64_t conv_group_tasks(const amp_conv *conv); /* CONV and CONV_DATA */
void conv_group_task(const amp_conv *conv, int64_t task, char *scratch);
/* CONV_WEIGHT: the sums of a panel of 32 columns over pixels first .. last of y, in scratch: [taps * channels of x of a
 * group][32]. */
const float *conv_group_weight(const amp_conv *conv, int64_t panel, int64_t first, int64_t last, char *scratch);

/* ---- conv_depthwise.c: narrow groups ---- */

/* Rows row0 .. row0 + count (<= 32) of CONV or CONV_DATA, and 32 columns; weights: f32 [tap][channel of the group][32].
 * |memory|: a table of as many runs as there are taps. */
void conv_depthwise_tile(const amp_conv *conv, int64_t panel, int64_t row0, int64_t count, const void *weights,
                         float *sums, void *memory);
/* Adds what pixels first .. last of y give to sums [tap][channel of the group][32] of CONV_WEIGHT. */
void conv_depthwise_weight(const amp_conv *conv, int64_t panel, int64_t first, int64_t last, float *sums, void *memory);

/* ---- conv_weight.c ---- */

size_t conv_weight_thread_bytes(const amp_conv *conv);
size_t conv_weight_shared_bytes(const amp_conv *conv);
int64_t conv_weight_tasks(const amp_conv *conv);
int64_t conv_weight_sum_tasks(const amp_conv *conv);
void conv_weight_task(const amp_conv *conv, int64_t task, char *scratch);
void conv_weight_sum_task(const amp_conv *conv, int64_t task, char *scratch);

/* ---- conv_winograd.c: CONV and CONV_DATA ---- */

enum {
    WINOGRAD_NUMBERS = 16, /* of a transformed tile */
    WINOGRAD_TAPS = 9,
    WINOGRAD_APART = 32 /* floats between two of the 16 numbers' matrices, so that they do not share cache sets */
};

/* The 2 x 2 pixels of an image whose pixels are 2 * y, 2 * y + 1 and 2 * x, 2 * x + 1; the last ones may be outside. */
typedef struct conv_square {
    int64_t sample, y, x;
} conv_square;

/* An image whose squares are read: of |size| x |size| pixels, the first one |lead| lines and columns before the
 * square's own. */
typedef struct conv_squares {
    const amp_image *image;
    int64_t h, w;
    int64_t lead_h, lead_w;
    int32_t size;
} conv_squares;

/* The pixels of a square in the 32 channels of |block|, by lines; zeros outside the image. */
void conv_square_pixels(const conv_squares *from, const conv_square *at, int64_t block, const void **pixels);

bool conv_is_winograd(const amp_conv *conv); /* of any kind */
size_t conv_winograd_thread_bytes(const amp_conv *conv);
size_t conv_winograd_shared_bytes(const amp_conv *conv);
/* First the weights are transformed, then all is multiplied. */
int64_t conv_winograd_tasks(const amp_conv *conv);
void conv_winograd_task(const amp_conv *conv, int64_t task, char *scratch);
int64_t conv_winograd_second_tasks(const amp_conv *conv);
void conv_winograd_second_task(const amp_conv *conv, int64_t task, char *scratch);

/* ---- conv_winograd_weight.c: CONV_WEIGHT ---- */

size_t conv_winograd_weight_thread_bytes(const amp_conv *conv);
size_t conv_winograd_weight_shared_bytes(const amp_conv *conv);
int64_t conv_winograd_weight_tasks(const amp_conv *conv);
void conv_winograd_weight_task(const amp_conv *conv, int64_t task, char *scratch);
/* The splits in their order. */
int64_t conv_winograd_weight_sum_tasks(const amp_conv *conv);
void conv_winograd_weight_sum_task(const amp_conv *conv, int64_t task, char *scratch);

/* ---- conv_pack.c: pixels laid out as operands of a matrix product ---- */

/* What pixels first .. first + count of y read of x, for rows row0 .. row0 + rows (<= 32) of the matrix [taps *
 * channels]: [pixel][32] elements, row_bytes apart; those past |rows| are left as they are. */
void conv_pack_windows(const amp_conv *conv, int64_t row0, int64_t rows, int64_t first, int64_t count, void *out);
/* Units of |pixels| pixels as steps of k: f32, or pairs of bf16. */
int64_t conv_pack_units(const amp_conv *conv, int64_t pixels);
/* The same windows as steps of k, [units][32].  |work| takes |count| rows of 32 where operands are bf16. */
void conv_pack_x(const amp_conv *conv, int64_t row0, int64_t rows, int64_t first, int64_t count, void *out, void *work);
/* Channels col0 .. col0 + 32 of pixels of y as steps of k: [units][32]. */
void conv_pack_dy(const amp_conv *conv, int64_t col0, int64_t first, int64_t count, void *out, void *work);

#endif
