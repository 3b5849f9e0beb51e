/* sum_parts.c: in how many parts a target makes a product that sums over many rows and has few results: the gradient of
 * a weight (docs/design/kernels.md, "Sums in parts"). */
#include "targets/target.h"

enum {
    TILE = 64,        /* rows and columns of what a block of a product makes */
    LEAST_ROWS = 256, /* in a part of a product: a few steps of its main loop */
    MOST_PARTS = 128, /* the second sum is one chain over them */
    PARTS_SHARE = 2,  /* parts take at most 1 / this of the operands' bytes */
    ASSUMED_N = 64    /* where rows depend on n */
};

static int64_t assumed(Dim d) { return dim_eval(d, ASSUMED_N); }

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

static int64_t blocks_of(int64_t size, int64_t of) { return (size + of - 1) / of; }

/* Whether |o| is a sum over the rows of both operands that may have parts. */
static bool sums_rows(const Func *f, const Op *o) {
    const Shape *s = o->n_out ? ir_shape(f, o->out[0]) : NULL;
    if (!s || s->rank >= MAX_RANK) return false;
    for (int i = 0; i < s->rank; i++)
        if (s->d[i].n) return false;
    if (o->code == OP_contract) return ir_attr(o, "ta")->b && !ir_attr(o, "tb")->b;
    return o->code == OP_conv_weight && ir_attr(o, "groups")->i == 1;
}

static int64_t bytes_of(const Func *f, Val v) {
    Dim count;
    if (!shape_count(ir_shape(f, v), &count)) return 0;
    return assumed(count) * (int64_t)amp_dtype_size(ir_dtype(f, v));
}

/* For about |wanted| blocks, of which none is short and all together are small beside what the product reads. */
static int64_t choose_parts(const Func *f, const Op *o, int64_t wanted) {
    Dim rows, cols, k, b_cols;
    if (!shape_matrix(ir_shape(f, o->out[0]), &rows, &cols)) return 1;
    if (!shape_matrix(ir_shape(f, o->in[1]), &k, &b_cols)) return 1;
    const int64_t tiles = blocks_of(rows.mul, TILE) * blocks_of(cols.mul, TILE), part = bytes_of(f, o->out[0]);
    int64_t parts = (wanted + tiles / 2) / tiles;
    parts = least(parts, assumed(k) / LEAST_ROWS);
    parts = least(parts, (bytes_of(f, o->in[0]) + bytes_of(f, o->in[1])) / PARTS_SHARE / (part ? part : 1));
    return least(parts, MOST_PARTS);
}

int64_t target_parts(const Target *t, const Func *f, const Op *o) {
    const int64_t parts = t->sum_blocks && sums_rows(f, o) ? choose_parts(f, o, t->sum_blocks) : 1;
    return parts > 1 ? parts : 1;
}
