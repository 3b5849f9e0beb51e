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
static inline bool conv_is_bf16(const amp_conv *c) { return c->kernels->operand == AMP_DT_BF16; }

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
    int64_t h[AMP_PRODUCT_ROWS], w[AMP_PRODUCT_ROWS];
    uintptr_t pixel[AMP_PRODUCT_ROWS]; /* address of (h, w), which may lie outside */
    conv_group group[AMP_PRODUCT_ROWS];
} conv_rows;

void conv_rows_make(conv_rows *rows, const amp_conv *conv, int64_t row0, int64_t count);

/* A call of the gather kernel: rows of one group, some of their runs. */
typedef struct conv_piece {
    int32_t first, rows; /* in conv_rows */
    int32_t first_run, runs, first_pointer;
    bool accumulate;
} conv_piece;

/* Where the next piece begins. */
typedef struct conv_cursor {
    int32_t group;
    int64_t tap; /* or line of the window, where runs are lines */
    int32_t block;
    bool accumulate;
} conv_cursor;

enum { CONV_PIECES = AMP_PRODUCT_ROWS };

/* Pointers and runs of a tile, as many as fit. */
typedef struct conv_table {
    int32_t capacity, run_count, pointer_count, piece_count; /* capacity in runs */
    bool whole_lines;                                        /* runs are lines of the window (conv_rows.c) */
    conv_piece piece[CONV_PIECES];
    amp_gather_run *runs;
    const void **pointers;
    char *edges; /* whole_lines: lines that hang over the edge, with their zeros */
} conv_table;

size_t conv_table_bytes(const amp_conv *conv);
void conv_table_init(conv_table *table, const amp_conv *conv, void *memory);
/* Fills the table from |cursor| on, which begins as zeros; false when that was the end. */
bool conv_table_fill(conv_table *table, const amp_conv *conv, const conv_rows *rows, conv_cursor *cursor);

/* ---- conv_weight.c ---- */

size_t conv_weight_thread_bytes(const amp_conv *conv);
size_t conv_weight_shared_bytes(const amp_conv *conv);
int64_t conv_weight_tasks(const amp_conv *conv);
int64_t conv_weight_sum_tasks(const amp_conv *conv);
void conv_weight_task(const amp_conv *conv, int64_t task, void *scratch);

/* ---- conv_pack.c: operands of CONV_WEIGHT ---- */

/* Units of |pixels| pixels: pairs of bf16, or f32. */
int64_t conv_pack_units(const amp_conv *conv, int64_t pixels);
/* What pixels first .. first + count of y read of x, for rows row0 .. row0 + rows of C: [units][32]. */
void conv_pack_x(const amp_conv *conv, int64_t row0, int64_t rows, int64_t first, int64_t count, void *out);
/* Channels col0 .. col0 + 32 of those pixels of y: [units][32]. */
void conv_pack_dy(const amp_conv *conv, int64_t col0, int64_t first, int64_t count, void *out);

#endif
