/* pack.c: see pack.h. */
#include "runtime/device/cpu/product/pack.h"

#include <string.h>

enum { TILE = 32, UNIT = 4 };

static int64_t per_unit(const amp_product_kernels *kernels) { return kernels->operand == AMP_DT_BF16 ? 2 : 1; }

void amp_pack_steps(const amp_product_kernels *kernels, const char *from, int64_t pitch, int64_t count, int64_t width,
                    char *to) {
    const int64_t bytes = width * UNIT / per_unit(kernels);
    char whole[TILE][TILE * UNIT];
    if (width < TILE) memset(whole, 0, sizeof whole);
    for (int64_t k = 0; k < count; k += TILE, to += TILE / per_unit(kernels) * TILE * UNIT) {
        const void *rows[TILE];
        const int64_t steps = count - k < TILE ? count - k : TILE;
        for (int64_t i = 0; i < steps; i++) {
            const char *row = from + (k + i) * pitch;
            rows[i] = width < TILE ? memcpy(whole[i], row, (size_t)bytes) : row;
        }
        kernels->pack(rows, steps, to);
    }
}

void amp_pack_columns(const amp_product_kernels *kernels, const char *from, int64_t pitch, int64_t count, int64_t width,
                      char *to) {
    static const uint32_t zeros[AMP_PACK_UNITS];
    const void *rows[TILE];
    const int64_t whole = count / per_unit(kernels);
    for (int64_t j = 0; j < TILE; j++) rows[j] = j < width ? (const void *)(from + j * pitch) : zeros;
    kernels->transpose(rows, whole, to);
    if (whole * per_unit(kernels) == count) return;
    uint32_t last[TILE] = {0}; /* half a unit: zero for the step that is not there */
    for (int64_t j = 0; j < width; j++) {
        uint16_t element;
        memcpy(&element, (const char *)rows[j] + whole * UNIT, sizeof element);
        last[j] = element;
    }
    memcpy(to + whole * TILE * UNIT, last, sizeof last);
}
