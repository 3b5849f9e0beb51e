/* attention_parts.c: see attention_parts.h. */
#include "runtime/device/cpu/product/attention_parts.h"

#include <string.h>

#include "runtime/device/cpu/product/pack.h"

size_t attention_part(size_t *end, int64_t bytes) {
    const size_t begin = *end;
    *end += ((size_t)bytes + 63) / 64 * 64;
    return begin;
}

int64_t attention_heads(const amp_attention *a) {
    int64_t heads = 1;
    for (int32_t i = 0; i < a->rank; i++) heads *= a->dims[i];
    return heads;
}

char *attention_rows_of(const amp_attention *a, const amp_attention_rows *x, int64_t head, int64_t share) {
    int64_t offset = 0;
    for (int32_t i = a->rank - 1; i >= 0; head /= a->dims[i--]) {
        const int64_t at = head % a->dims[i];
        offset += (i == a->rank - 1 ? at / share : at) * x->stride[i];
    }
    return x->data + offset;
}

enum { LINE = 64, LINES_OF_STEP = 128 };

void attention_ahead_add(attention_ahead *ahead, const amp_attention *a, const amp_attention_rows *x, int64_t head,
                         int64_t share, int64_t first, int64_t count, int64_t bytes) {
    const int most = (int)(sizeof ahead->rows / sizeof *ahead->rows);
    if (!x->data || ahead->count == most) return;
    ahead->rows[ahead->count++] =
        (struct attention_ahead_rows){attention_rows_of(a, x, head, share) + first * x->pitch, x->pitch, count, bytes};
}

void attention_ahead_add_keys(attention_ahead *ahead, const amp_attention *a, int64_t head, int64_t first,
                              int64_t count) {
    attention_ahead_add(ahead, a, &a->k, head, a->share, first, count, a->width * attention_element(a));
    attention_ahead_add(ahead, a, &a->v, head, a->share, first, count, a->v_width * attention_element(a));
}

void attention_ahead_step(attention_ahead *ahead) {
    if (ahead->at == ahead->count) return;
    struct attention_ahead_rows *x = &ahead->rows[ahead->at];
    const int64_t count = least(x->count, (LINES_OF_STEP * LINE + x->bytes - 1) / x->bytes);
    amp_prefetch_rows(x->row, x->pitch, count, x->bytes);
    x->row += count * x->pitch;
    x->count -= count;
    if (x->count <= 0) ahead->at++;
}

/* One number for all queries, or for all keys, or for neither. */
const void *attention_mask(const amp_attention *a, int64_t head, int64_t query, int64_t queries, int64_t key,
                           int64_t keys, char *to) {
    static const uint32_t zeros[TILE];
    const int64_t pitch = a->mask.pitch;
    if (!a->mask.data) return NULL;
    const char *from = attention_rows_of(a, &a->mask, head, 1) + query * pitch + (a->mask_is_one ? 0 : key * UNIT);
    uint32_t(*out)[TILE] = (uint32_t(*)[TILE])(void *)to;
    if (a->mask_is_one) {
        for (int64_t j = 0; j < TILE; j++)
            for (int64_t i = 0; i < keys; i++) memcpy(&out[i][j], from + (j < queries ? j : 0) * pitch, UNIT);
    } else if (!pitch) {
        for (int64_t i = 0; i < keys; i++)
            for (int64_t j = 0; j < TILE; j++) memcpy(&out[i][j], from + i * UNIT, UNIT);
    } else {
        for (int64_t at = 0; at < keys; at += TILE) { /* missing queries have rows of zeros */
            const void *rows[TILE];
            for (int64_t j = 0; j < TILE; j++)
                rows[j] = j < queries ? from + j * pitch + at * UNIT : (const void *)zeros;
            a->kernels->transpose(rows, least(TILE, keys - at), out[at]);
        }
    }
    return to;
}

void attention_pack_steps(const amp_attention *a, const attention_pack *x, char *to) {
    amp_pack_steps(a->kernels, x->rows, x->pitch, x->count, x->width, to, attention_panel(a, x->most));
}

void attention_pack_rows(const amp_attention *a, const attention_pack *x, char *to) {
    const int64_t size = attention_element(a), bytes = TILE * size;
    for (int64_t c = 0; c < x->width; c += TILE, to += x->most * bytes) {
        const char *from = x->rows + c * size;
        char *row = to;
        if (x->width - c >= TILE && size == 4) {
            for (int64_t i = 0; i < x->count; i++, row += TILE * 4, from += x->pitch) memcpy(row, from, TILE * 4);
        } else if (x->width - c >= TILE) {
            for (int64_t i = 0; i < x->count; i++, row += TILE * 2, from += x->pitch) memcpy(row, from, TILE * 2);
        } else {
            const size_t part = (size_t)((x->width - c) * size);
            for (int64_t i = 0; i < x->count; i++, row += bytes, from += x->pitch) {
                memcpy(row, from, part);
                memset(row + part, 0, (size_t)bytes - part);
            }
        }
    }
}

void attention_multiply(const amp_attention *a, const attention_product *x) {
    for (int64_t p = 0; p < x->panels; p++) {
        const amp_product_tile tile = {.a = x->a,
                                       .b = x->b + p * x->b_panel,
                                       .c = x->c + p * x->c_panel,
                                       .form = x->form,
                                       .accumulate = x->accumulate,
                                       .a_block_stride = x->a_panel / UNIT,
                                       .k = x->units,
                                       .rows = x->rows,
                                       .cols = x->cols};
        a->kernels->tile(&tile);
    }
}

/* The last 16 columns alone: what clears the columns after them clears the first ones of the next row. */
void attention_multiply_scores(const amp_attention *a, const attention_product *scores, bool diagonal) {
    attention_product x = *scores;
    if (diagonal) x.rows = least(HALF, x.rows);
    attention_multiply(a, &x);
    if (x.rows == scores->rows) return;
    x.a = (const char *)x.a + HALF * TILE * attention_element(a);
    x.b += HALF * UNIT;
    x.c += HALF * TILE + HALF;
    x.rows = scores->rows - HALF;
    x.cols = HALF;
    attention_multiply(a, &x);
}

void attention_multiply_queries(const amp_attention *a, attention_product x, int64_t keys, int64_t diagonal) {
    const int64_t rows = x.rows;
    x.units = attention_units(a, keys);
    if (a->causal && diagonal + HALF < keys) {
        x.rows = least(HALF, rows);
        x.units = attention_units(a, diagonal + HALF);
    }
    attention_multiply(a, &x);
    if (x.rows == rows) return;
    x.a = (const char *)x.a + HALF * UNIT;
    x.c += HALF * TILE;
    x.rows = rows - HALF;
    x.units = attention_units(a, keys);
    attention_multiply(a, &x);
}

void attention_multiply_keys(const amp_attention *a, attention_product x, int64_t queries, bool diagonal) {
    const int64_t rows = x.rows;
    const char *const first = x.a, *const b = x.b;
    x.units = attention_units(a, queries);
    if (diagonal) x.rows = least(HALF, rows);
    attention_multiply(a, &x);
    if (x.rows == rows || queries <= HALF) return;
    x.rows = rows - HALF;
    x.c += HALF * TILE;
    x.a = first + HALF * TILE * attention_element(a) + HALF * attention_element(a);
    x.b = b + attention_units(a, HALF) * TILE * UNIT;
    x.units = attention_units(a, least(queries, TILE) - HALF);
    attention_multiply(a, &x);
    if (queries <= TILE) return;
    x.a = first + x.a_panel + HALF * TILE * attention_element(a);
    x.b = b + attention_units(a, TILE) * TILE * UNIT;
    x.units = attention_units(a, queries - TILE);
    attention_multiply(a, &x);
}
