/* lower_attention.c: attention becomes products, a softmax between them, and their gradients.
 *
 * Scores are [..., H, T, S].  The H / G heads of queries that share a head of keys are more rows of one matrix, so keys
 * and values are never repeated, and their gradients are sums over those rows.  Products round the softmax, and the
 * gradient of the scores, to the dtype of q, k and v; all else is f32.  The backward pass makes the softmax again from
 * the scores and the logarithm of each query's sum: nothing of the scores' size is kept. */
#include <math.h>

#include "passes/lower/lower.h"

typedef struct Attention {
    Val q, k, v, mask; /* as they are given; mask: NO_VAL where there is none */
    Dtype factor;      /* of what products read */
    Shape scores;      /* [..., H, T, S] */
    Shape grouped;     /* [..., G, H / G * T, S]; the dims of q with G heads */
    double scale, p;
    bool causal;
    const char *key;
} Attention;

/* Operands from |first| on: q, k, v; the mask is operand |mask|. */
static Attention attention_of(Lowering *l, int first, int mask) {
    Attention a = {.q = l->op->in[first], .k = l->op->in[first + 1], .v = l->op->in[first + 2]};
    const Shape *q = ir_shape(l->f, a.q), *k = ir_shape(l->f, a.k);
    int rank = q->rank;
    if (l->op->n_in > mask) a.mask = l->op->in[mask];
    a.factor = ir_dtype(l->f, a.q);
    a.scores = a.grouped = *q;
    a.scores.d[rank - 1] = a.grouped.d[rank - 1] = k->d[rank - 2];
    a.grouped.d[rank - 3] = k->d[rank - 3];
    if (!dim_equal(q->d[rank - 3], k->d[rank - 3]))
        a.grouped.d[rank - 2].mul *= q->d[rank - 3].mul / k->d[rank - 3].mul;
    a.scale = lower_float(l, "scale");
    if (a.scale == 0.0) a.scale = 1.0 / sqrt((double)q->d[rank - 1].mul);
    a.p = lower_float(l, "p");
    a.causal = lower_bool(l, "causal");
    a.key = ir_attr(l->op, "key")->s;
    return a;
}

/* ---- products of each head --------------------------------------------------------------------------------------- */

/* [..., H, T, w] as [..., G, H / G * T, w] */
static Val as_group(Lowering *l, const Attention *a, Val v) {
    Shape s = a->grouped;
    s.d[s.rank - 1] = ir_shape(l->f, v)->d[s.rank - 1];
    return lower_reshape(l, v, &s);
}

static Val as_heads(Lowering *l, const Attention *a, Val v) {
    Shape s = a->scores;
    s.d[s.rank - 1] = ir_shape(l->f, v)->d[s.rank - 1];
    return lower_reshape(l, v, &s);
}

static Val factor(Lowering *l, const Attention *a, Val v) { return lower_cast(l, v, a->factor); }

/* ---- scores ------------------------------------------------------------------------------------------------------ */

static Val infinite(Lowering *l) { return lower_number(l, -INFINITY); }

static Val index_along(Lowering *l, Val like, int dim) {
    Op *o = ir_op_new(l->f, OP_iota, &like, 1);
    ir_attr(o, "dim")->i = dim;
    return ir_make_results(l->f, o, AMP_DT_I32, NULL);
}

/* A mask of bools says which keys are seen; others are added. */
static Val masked(Lowering *l, const Attention *a, Val s) {
    Val mask = lower_expand(l, lower_widen(l, a->mask), &a->scores);
    return ir_dtype(l->f, mask) == AMP_DT_BOOL ? lower_select(l, mask, s, infinite(l)) : lower_add(l, s, mask);
}

static Val scores(Lowering *l, const Attention *a) {
    Val s = lower_batch_product(l, as_group(l, a, a->q), false, a->k, true);
    s = lower_scaled(l, as_heads(l, a, s), a->scale);
    if (a->mask.id) s = masked(l, a, s);
    if (!a->causal) return s;
    Val column = index_along(l, s, a->scores.rank - 1), row = index_along(l, s, a->scores.rank - 2);
    Val seen = lower_binary(l, OP_le, column, row);
    return lower_select(l, seen, s, infinite(l));
}

/* 1 / (1 - p) or 0 by element, or NO_VAL where nothing is dropped. */
static Val kept(Lowering *l, const Attention *a, Val like) {
    if (a->p == 0.0) return NO_VAL;
    Val drawn = lower_random(l, like, a->key), keep = lower_binary(l, OP_le, lower_number(l, a->p), drawn);
    Val factor_of_kept = lower_number(l, 1.0 / (1.0 - a->p));
    return lower_select(l, keep, factor_of_kept, lower_number(l, 0.0));
}

static Val times(Lowering *l, Val v, Val by) { return by.id ? lower_mul(l, v, by) : v; }

/* ---- forward ----------------------------------------------------------------------------------------------------- */

/* Only a mask can leave a query without keys: its largest score and its sum are then taken as 0 and 1, so that the
 * softmax is 0 and not NaN. */
typedef struct RowSums {
    Val largest, sum;
} RowSums;

static Val instead_of(Lowering *l, Val v, double wrong, double right) {
    Val is_wrong = lower_binary(l, OP_eq, v, lower_number(l, wrong));
    return lower_select(l, is_wrong, lower_number(l, right), v);
}

static void lower_attention(Lowering *l) {
    Attention a = attention_of(l, 0, 3);
    Val s = scores(l, &a), largest = lower_reduce_row(l, OP_reduce_max, s);
    if (a.mask.id) largest = instead_of(l, largest, -INFINITY, 0.0);
    Val e = lower_unary(l, OP_exp, lower_sub(l, s, largest)), sum = lower_reduce_row(l, OP_reduce_sum, e);
    if (a.mask.id) sum = instead_of(l, sum, 0.0, 1.0);
    Val weights = times(l, lower_div(l, e, sum), kept(l, &a, s));
    Val y = lower_batch_product(l, as_group(l, &a, factor(l, &a, weights)), false, a.v, false);
    lower_give(l, 0, as_heads(l, &a, y));
    lower_give(l, 1, lower_add(l, largest, lower_unary(l, OP_log, sum)));
}

/* ---- backward ---------------------------------------------------------------------------------------------------- */

typedef struct Slopes {
    Val dropped; /* the softmax after dropout */
    Val scores;  /* d scores, before they are scaled */
} Slopes;

/* w = exp(scores - sums): d w = (dy v^T) kept, d scores = w (d w - sum(w d w)). */
static Slopes slopes_of(Lowering *l, const Attention *a) {
    Val s = scores(l, a), sums = lower_operand(l, 5);
    Val w = lower_unary(l, OP_exp, lower_sub(l, s, sums)), keep = kept(l, a, s);
    Val dw = lower_batch_product(l, as_group(l, a, l->op->in[0]), false, a->v, true);
    dw = times(l, as_heads(l, a, dw), keep);
    Val mean = lower_reduce_row(l, OP_reduce_sum, lower_mul(l, w, dw));
    Val ds = lower_mul(l, w, lower_sub(l, dw, mean));
    return (Slopes){times(l, w, keep), ds};
}

static void lower_attention_grad(Lowering *l) {
    Attention a = attention_of(l, 1, 6);
    Slopes d = slopes_of(l, &a);
    Val ds = as_group(l, &a, factor(l, &a, lower_scaled(l, d.scores, a.scale)));
    Val w = as_group(l, &a, factor(l, &a, d.dropped));
    Val dq = lower_batch_product(l, ds, false, a.k, false);
    lower_give(l, 0, lower_reshape(l, dq, ir_shape(l->f, a.q)));
    lower_give(l, 1, lower_batch_product(l, ds, true, as_group(l, &a, a.q), false));
    lower_give(l, 2, lower_batch_product(l, w, true, as_group(l, &a, l->op->in[0]), false));
}

static void lower_attention_mask_grad(Lowering *l) {
    Attention a = attention_of(l, 1, 6);
    lower_give(l, 0, slopes_of(l, &a).scores);
}

const LowerRow lower_attention_ops[OP_COUNT] = {
    [OP_attention] = {lower_attention, TAKES_PLAIN},
    [OP_attention_grad] = {lower_attention_grad, TAKES_PLAIN},
    [OP_attention_mask_grad] = {lower_attention_mask_grad, TAKES_PLAIN},
};
