/* matrix_layout.h: how matrices are stored in planned memory (docs/design/kernels.md), and copying them to and from
 * row-major arrays.
 */
#ifndef AMP_RUNTIME_MODEL_MATRIX_LAYOUT_H
#define AMP_RUNTIME_MODEL_MATRIX_LAYOUT_H

#include <stdbool.h>

#include "amp/model_abi.h"
#include "base/dtypes.h"
#include "base/error.h"

enum { AMP_MEMORY_ALIGN = 64 };

/* Bytes of a matrix, rounded up to 128; false on overflow. */
bool amp_layout_bytes(uint32_t layout, uint32_t storage, int64_t rows, int64_t cols, size_t *out);
/* Element number of (row, col), in elements of the storage type. */
int64_t amp_layout_index(uint32_t layout, int64_t rows, int64_t cols, int64_t row, int64_t col);
/* A state as a matrix: [] and [C] are one row; of a convolution, hwio: [KH * KW * I, O]. */
void amp_state_matrix(const amp_model_state *state, int64_t *rows, int64_t *cols);

/* One element as f32 (floats) or as a double (any type). */
double amp_load_element(const void *data, uint32_t storage, int64_t index);
/* The same of |count| elements side by side, which are f32, tf32, f16 or bf16. */
void amp_load_run(const void *data, uint32_t storage, int64_t index, int64_t count, float *to);
void amp_store_element(void *data, uint32_t storage, int64_t index, double value);

/* Where element |index| of [O, I, KH, KW], taps = KH * KW, is in the matrix [KH * KW * I, O]. */
static inline void amp_hwio_place(int64_t inputs, int64_t taps, int64_t index, int64_t *row, int64_t *col) {
    *row = index % taps * inputs + index / taps % inputs;
    *col = index / taps / inputs;
}

/* Where column |index| of a weight of flattened images is, whose columns are stored channels last. */
static inline int64_t amp_turned_column(int64_t channels, int64_t pixels, int64_t index) {
    return index % pixels * channels + index / pixels;
}

/* Row-major f32 to and from a matrix in memory; padding is written as zero. */
void amp_layout_from_f32(void *memory, uint32_t layout, uint32_t storage, int64_t rows, int64_t cols,
                         const float *from);
void amp_layout_to_f32(const void *memory, uint32_t layout, uint32_t storage, int64_t rows, int64_t cols, float *to);

#endif
