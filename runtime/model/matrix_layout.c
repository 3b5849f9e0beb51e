/* matrix_layout.c: see matrix_layout.h. */
#include "runtime/model/matrix_layout.h"

#include <string.h>

#include "base/alloc.h"
#include "base/rounding.h"

enum { BLOCK = 32 };

static int64_t round_up(int64_t v, int64_t to) { return (v + to - 1) / to * to; }

bool amp_layout_bytes(uint32_t layout, uint32_t storage, int64_t rows, int64_t cols, size_t *out) {
    enum { DIM_LIMIT = 1 << 30 };
    if (rows < 0 || cols < 0 || rows > ((int64_t)DIM_LIMIT << 8) || cols > ((int64_t)DIM_LIMIT << 8)) return false;
    size_t r = (size_t)rows, c = (size_t)cols, count, bytes;
    if (layout != AMP_LAYOUT_ROWS) {
        r = (size_t)round_up(rows, BLOCK);
        c = (size_t)round_up(cols, BLOCK);
    }
    if (!amp_size_mul(r, c, &count) || !amp_size_mul(count, amp_storage_size(storage), &bytes)) return false;
    if (!amp_size_add(bytes, 127, &bytes)) return false;
    *out = bytes / 128 * 128;
    return true;
}

int64_t amp_layout_index(uint32_t layout, int64_t rows, int64_t cols, int64_t row, int64_t col) {
    int64_t r = round_up(rows, BLOCK), c = round_up(cols, BLOCK);
    switch (layout) {
    case AMP_LAYOUT_PANELS: return col / BLOCK * r * BLOCK + row * BLOCK + col % BLOCK;
    case AMP_LAYOUT_PAIRS: return col / BLOCK * r * BLOCK + row / 2 * 2 * BLOCK + col % BLOCK * 2 + row % 2;
    case AMP_LAYOUT_PANELS_T: return row / BLOCK * c * BLOCK + col * BLOCK + row % BLOCK;
    case AMP_LAYOUT_PAIRS_T: return row / BLOCK * c * BLOCK + col / 2 * 2 * BLOCK + row % BLOCK * 2 + col % 2;
    default: return row * cols + col;
    }
}

void amp_state_matrix(const amp_model_state *state, int64_t *rows, int64_t *cols) {
    if (state->hwio && state->rank == 4) {
        *rows = state->dims[1] * state->dims[2] * state->dims[3];
        *cols = state->dims[0];
        return;
    }
    *rows = 1;
    for (uint32_t i = 0; i + 1 < state->rank; i++) *rows *= state->dims[i];
    *cols = state->rank ? state->dims[state->rank - 1] : 1;
}

double amp_load_element(const void *data, uint32_t storage, int64_t index) {
    switch (storage) {
#define LOADED(id, memory, to_number)                                                                                  \
    case AMP_DT_##id:                                                                                                  \
        return (double)to_number(((const memory *)data)[index]);
#define DTYPE(id, name, class, kind, stored, file, memory) LOADED(id, memory, )
#define CODED_DTYPE(id, name, class, kind, stored, file, memory) LOADED(id, memory, amp_##name##_to_f32)
#include "base/dtypes.def"
    default: return 0;
    }
}

void amp_load_run(const void *data, uint32_t storage, int64_t index, int64_t count, float *to) {
    const uint16_t *halves = (const uint16_t *)data + index;
    switch (storage) {
    case AMP_DT_F16:
        for (int64_t i = 0; i < count; i++) to[i] = amp_f16_to_f32(halves[i]);
        break;
    case AMP_DT_BF16:
        for (int64_t i = 0; i < count; i++) to[i] = amp_bf16_to_f32(halves[i]);
        break;
    default: memcpy(to, (const float *)data + index, (size_t)count * sizeof *to);
    }
}

void amp_store_element(void *data, uint32_t storage, int64_t index, double value) {
    switch (storage) {
#define STORED(id, memory, of_number)                                                                                  \
    case AMP_DT_##id:                                                                                                  \
        ((memory *)data)[index] = of_number;                                                                           \
        break;
#define DTYPE(id, name, class, kind, stored, file, memory) STORED(id, memory, (memory)value)
#define CODED_DTYPE(id, name, class, kind, stored, file, memory) STORED(id, memory, amp_f32_to_##name((float)value))
#include "base/dtypes.def"
    default: break;
    }
}

void amp_layout_from_f32(void *memory, uint32_t layout, uint32_t storage, int64_t rows, int64_t cols,
                         const float *from) {
    size_t bytes;
    if (amp_layout_bytes(layout, storage, rows, cols, &bytes)) memset(memory, 0, bytes);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < cols; c++)
            amp_store_element(memory, storage, amp_layout_index(layout, rows, cols, r, c), from[r * cols + c]);
}

void amp_layout_to_f32(const void *memory, uint32_t layout, uint32_t storage, int64_t rows, int64_t cols, float *to) {
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < cols; c++)
            to[r * cols + c] = (float)amp_load_element(memory, storage, amp_layout_index(layout, rows, cols, r, c));
}
