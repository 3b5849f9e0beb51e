/* attention_parts.h: what attention.c and attention_grad.c share: places of rows, packed operands, tiles of scores. */
#ifndef AMP_RUNTIME_DEVICE_CPU_PRODUCT_ATTENTION_PARTS_H
#define AMP_RUNTIME_DEVICE_CPU_PRODUCT_ATTENTION_PARTS_H

#include "runtime/device/cpu/product/attention.h"
#include "runtime/device/cpu/product/pack.h"

enum {
    TILE = 32,
    UNIT = 4, /* bytes */
    TILE_FLOATS = TILE * TILE,
    HALF = TILE / 2,
    SPARE = HALF * 4, /* bytes after scores, which attention_multiply_scores may clear */
    ENOUGH_TASKS = 16 /* for a few threads */
};

static inline int64_t least(int64_t x, int64_t y) { return x < y ? x : y; }
static inline int64_t tiles_of(int64_t x) { return (x + TILE - 1) / TILE; }

/* Elements of a unit, and bytes of an element. */
static inline int64_t attention_per_unit(const amp_attention *a) { return a->kernels->operand == AMP_DT_BF16 ? 2 : 1; }
static inline int64_t attention_element(const amp_attention *a) { return UNIT / attention_per_unit(a); }
static inline int64_t attention_units(const amp_attention *a, int64_t count) {
    return (count + attention_per_unit(a) - 1) / attention_per_unit(a);
}

int64_t attention_heads(const amp_attention *a); /* of queries, of all samples */

/* Where the rows of head |head| of queries begin; |share|: how many heads of queries each of those rows' heads
 * serves. */
char *attention_rows_of(const amp_attention *a, const amp_attention_rows *x, int64_t head, int64_t share);

/* The mask of |keys| keys from |key| on and |queries| queries from |query| on, as [keys][32] in |to|; NULL: none. */
const void *attention_mask(const amp_attention *a, int64_t head, int64_t query, int64_t queries, int64_t key,
                           int64_t keys, char *to);

/* |count| rows of |width| elements at |pitch|: as steps of k, [panel][units of |most| rows][32]; or as rows of A, along
 * k, [panel][|most| rows][32 elements], zeros past |width|.  In f32 the two are the same. */
typedef struct attention_pack {
    const char *rows;
    int64_t pitch, count, width, most;
} attention_pack;
void attention_pack_steps(const amp_attention *a, const attention_pack *x, char *to);
void attention_pack_rows(const amp_attention *a, const attention_pack *x, char *to);
/* Bytes of a panel of either. */
static inline int64_t attention_panel(const amp_attention *a, int64_t most) {
    return attention_units(a, most) * TILE * UNIT;
}

/* c[panel] = A b[panel], or += where |accumulate|, for |rows| <= 32 rows of A in |form|; |units| steps of k.  Strides
 * between panels of A (BLOCKED) and of b are in bytes, between panels of c in floats. */
typedef struct attention_product {
    const void *a;
    const char *b;
    float *c;
    amp_product_form form;
    int accumulate;
    int64_t a_panel, b_panel, c_panel, units, rows, panels;
    int32_t cols; /* that are wanted; 0: all */
} attention_product;
void attention_multiply(const amp_attention *a, const attention_product *x);

/* A causal tile on the diagonal, of keys and queries from the same position on, is three quarters of a tile: its first
 * 16 queries do not see its last 16 keys.  There nothing is computed, written or read; amp_attention_tile passes
 * this on to the model's function. */

/* A tile of scores; |diagonal|: which is one of those. */
void attention_multiply_scores(const amp_attention *a, const attention_product *scores, bool diagonal);

/* Rows are queries, in form TRANSPOSED, and x->units covers |keys| keys; the tile from |diagonal| on of these keys
 * is one of those, if it is one of them. */
void attention_multiply_queries(const amp_attention *a, attention_product x, int64_t keys, int64_t diagonal);

/* Rows are keys, in form BLOCKED; |diagonal|: the first tile of |queries| queries is one of those. */
void attention_multiply_keys(const amp_attention *a, attention_product x, int64_t queries, bool diagonal);

/* Rows of heads that are needed soon: they are far apart, where no hardware prefetcher follows.  Each step asks for a
 * few of them, in their order; so waiting for memory overlaps with products. */
typedef struct attention_ahead {
    struct attention_ahead_rows {
        const char *row;
        int64_t pitch, count, bytes;
    } rows[8];
    int count, at;
} attention_ahead;

/* |count| rows from |first| on, of head |head|; nothing where x->data is NULL. */
void attention_ahead_add(attention_ahead *ahead, const amp_attention *a, const amp_attention_rows *x, int64_t head,
                         int64_t share, int64_t first, int64_t count, int64_t bytes);
/* Rows of k and of v. */
void attention_ahead_add_keys(attention_ahead *ahead, const amp_attention *a, int64_t head, int64_t first,
                              int64_t count);
void attention_ahead_step(attention_ahead *ahead);

/* Parts of a thread's scratch, one after another from |*end| on, each aligned to 64; returns its first byte. */
size_t attention_part(size_t *end, int64_t bytes);

/* ---- attention_grad.c ---- */

size_t attention_grad_thread_bytes(const amp_attention *a);
int64_t attention_grad_tasks(const amp_attention *a);
int64_t attention_grad_second_tasks(const amp_attention *a);
void attention_grad_task(const amp_attention *a, int64_t task, char *scratch);
void attention_grad_second_task(const amp_attention *a, int64_t task, char *scratch);

#endif
