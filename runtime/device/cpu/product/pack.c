/* pack.c: see pack.h. */
#include "runtime/device/cpu/product/pack.h"

#include <string.h>

enum { TILE = 32, UNIT = 4 };

static int64_t least(int64_t x, int64_t y) { return x < y ? x : y; }

static int64_t per_unit(const amp_product_kernels *kernels) { return kernels->operand == AMP_DT_BF16 ? 2 : 1; }

/* Up to 32 steps of 32 columns. */
static void pack_block(const amp_product_kernels *kernels, const char *from, int64_t pitch, int64_t steps,
                       int64_t width, char *to) {
    char part[TILE][TILE * UNIT];
    const void *rows[TILE];
    if (width < TILE) memset(part, 0, sizeof part);
    for (int64_t i = 0; i < steps; i++, from += pitch)
        rows[i] = width < TILE ? memcpy(part[i], from, (size_t)(width * UNIT / per_unit(kernels))) : from;
    kernels->pack(rows, steps, to);
}

void amp_pack_steps(const amp_product_kernels *kernels, const char *from, int64_t pitch, int64_t count, int64_t width,
                    char *to, int64_t panel) {
    const int64_t line = TILE * UNIT / per_unit(kernels); /* bytes of 32 elements */
    for (int64_t k = 0; k < count; k += TILE, from += TILE * pitch, to += TILE * line) {
        const int64_t next = k + TILE;
        for (int64_t c = 0; c < width; c += TILE) {
            const char *column = from + c / TILE * line;
            if (next < count) amp_prefetch_rows(column + TILE * pitch, pitch, least(TILE, count - next), line);
            pack_block(kernels, column, pitch, least(TILE, count - k), least(TILE, width - c), to + c / TILE * panel);
        }
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
