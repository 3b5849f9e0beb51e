/* sum_parts.c: in how many parts a target makes a product that has few results and sums over a long k: the gradient of
 * a weight, or many features of each row that become few (docs/design/kernels.md, "Sums in parts"). */
#include "targets/target.h"

enum {
    TILE = 64,        /* rows and columns of what a block of a product makes */
    LEAST_ROWS = 256, /* of k in a part of a product: a few steps of its main loop */
    LEAST_TERMS = 64, /* the same where each term is a multiply-add */
    MOST_PARTS = 132, /* the multiprocessors of an H100; the second sum is one chain over them */
    PARTS_SHARE = 2,  /* parts take at most 1 / this of the operands' bytes */
    WORTHWHILE = 4,   /* parts of a sum that is no weight's gradient: they cost a launch, in which nothing else is */
    ASSUMED_N = 64    /* where rows depend on n */
};

static int64_t assumed(Dim d) { return dim_assumed(d, ASSUMED_N); }

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

static int64_t blocks_of(int64_t size, int64_t of) { return (size + of - 1) / of; }

static int64_t bytes_of(const Func *f, Val v) {
    Dim count;
    if (!shape_count(ir_shape(f, v), &count)) return 0;
    return assumed(count) * (int64_t)amp_dtype_size(ir_dtype(f, v));
}

/* Whether |o| sums over the rows of both operands, as the gradient of a weight does. */
static bool sums_rows(const Op *o) {
    if (o->code == OP_conv_weight) return ir_attr(o, "groups")->i == 1;
    return o->code == OP_contract && ir_attr(o, "ta")->b && !ir_attr(o, "tb")->b;
}

/* The number of parts for about |wanted| blocks: each sums at least |shortest| of k, and the parts' results are small
 * beside the |read| bytes that the product reads. */
static int64_t choose_parts(const Func *f, const Op *o, int64_t wanted, int64_t shortest, int64_t read) {
    const int64_t k = assumed(ir_product_terms(f, o));
    Dim rows, cols;
    if (!shape_matrix(ir_shape(f, o->out[0]), &rows, &cols)) return 1;
    const int64_t tiles = blocks_of(assumed(rows), TILE) * blocks_of(assumed(cols), TILE),
                  part = bytes_of(f, o->out[0]);
    int64_t parts = (wanted + tiles / 2) / tiles;
    parts = least(parts, k / shortest);
    parts = least(parts, read / PARTS_SHARE / (part ? part : 1));
    return least(parts, MOST_PARTS);
}

static int64_t parts_of_gradient(const Func *f, const Op *o, int64_t wanted) {
    if (shape_batch_dims(ir_shape(f, o->out[0]))) return 1;
    return choose_parts(f, o, wanted, LEAST_ROWS, bytes_of(f, o->in[0]) + bytes_of(f, o->in[1]));
}

static bool is_sized(const Shape *s) {
    for (int i = 0; i < s->rank; i++)
        if (dim_is_sized(s->d[i])) return true;
    return false;
}

/* Rows that depend on n may be many: then what one reads counts alone, and not the weights that all of them do. */
static int64_t parts_of_rows(const Func *f, const Op *o, int64_t wanted) {
    const Dim k = ir_product_terms(f, o);
    if (dim_is_sized(k) || ir_shape(f, o->in[0])->rank < 2) return 1;
    const bool grows = is_sized(ir_shape(f, o->out[0]));
    const int64_t read = bytes_of(f, o->in[0]) + (grows ? 0 : bytes_of(f, o->in[1]));
    const int64_t shortest = ir_dtype(f, o->in[0]) == AMP_DT_F32 ? LEAST_TERMS : LEAST_ROWS;
    const int64_t parts = choose_parts(f, o, wanted, shortest, read);
    return parts < WORTHWHILE ? 1 : blocks_of(k.mul, ir_part_size(k.mul, parts)); /* none is empty */
}

int64_t target_parts(const Target *t, const Func *f, const Op *o) {
    if (!t->sum_blocks || !o->n_out || ir_shape(f, o->out[0])->rank >= MAX_RANK) return 1;
    int64_t parts = 1;
    if (sums_rows(o)) parts = parts_of_gradient(f, o, t->sum_blocks);
    else if (o->code == OP_contract) parts = parts_of_rows(f, o, t->sum_blocks);
    return parts > 1 ? parts : 1;
}
