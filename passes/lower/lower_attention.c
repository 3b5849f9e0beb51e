/* lower_attention.c: attention becomes attend and attend_grad where the target has kernels for them in the operands'
 * type, which never store the scores; else products, a softmax between them, and their gradients.  The gradient of a
 * mask is of the scores' size, so it is made of products everywhere.
 *
 * Of products: scores are [..., H, T, S].  The H / G heads of queries that share a head of keys are more rows of one
 * matrix, so keys and values are never repeated, and their gradients are sums over those rows.  Products round the
 * softmax, and the gradient of the scores, to the dtype of q, k and v; all else is f32.  The backward pass makes the
 * softmax again from the scores and the logarithm of each query's sum: nothing of the scores' size is kept. */
#include <math.h>

#include "passes/lower/lower.h"
#include "targets/target.h"

enum { WIDEST_HEAD = 256, MOST_BATCH_DIMS = 6 }; /* of amp_model_attention */

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

/* ---- kernels of attention ---------------------------------------------------------------------------------------- */

static bool is_long(const Shape *s, int from_end) { return dim_varies(s->d[s->rank - from_end]); }

static bool is_sized(const Shape *s, int from_end) { return dim_is_sized(s->d[s->rank - from_end]); }

/* Kernels take one length that depends on T, or two that are the same.  A T that has a number changes nothing: products
 * would add in another order. */
static bool has_lengths(const Shape *q, const Shape *k) {
    const Dim queries = q->d[q->rank - 2], keys = k->d[k->rank - 2];
    if (queries.n || keys.n) return false;
    return !is_sized(q, 2) || !is_sized(k, 2) || (dim_equal(queries, keys) && queries.sized == keys.sized);
}

static bool attends(const Lowering *l, const Attention *a) {
    const Target *target = target_with_sums(l->c->options->target, l->f->module);
    const Shape *q = ir_shape(l->f, a->q), *k = ir_shape(l->f, a->k), *v = ir_shape(l->f, a->v);
    const bool split = is_long(q, 3); /* heads that depend on N are one more leading dim, of one head each */
    return target->attends(a->factor) && has_lengths(q, k) && q->rank - 2 + split <= MOST_BATCH_DIMS &&
           q->d[q->rank - 1].mul <= WIDEST_HEAD && v->d[v->rank - 1].mul <= WIDEST_HEAD;
}

/* [..., N, T, D] as [..., N, 1, T, D], where heads depend on N. */
static Val with_heads(Lowering *l, const Attention *a, Val v) {
    const Shape *s = ir_shape(l->f, v);
    Shape to = *s;
    if (!is_long(ir_shape(l->f, a->q), 3) || s->rank < 3) return v;
    to.rank++;
    to.d[to.rank - 1] = s->d[s->rank - 1];
    to.d[to.rank - 2] = s->d[s->rank - 2];
    to.d[to.rank - 3] = dim_const(1);
    return lower_reshape(l, v, &to);
}

/* [..., T, H * E], in the dtype of result |i|, as that result, [..., H, T, E]. */
static void give_heads(Lowering *l, const Attention *a, int i, Val v) {
    const Value *result = ir_value(l->f, l->op->out[i]);
    const Shape shape = result->shape;
    Shape apart = shape;
    v = lower_cast(l, v, result->dtype);
    if (is_long(ir_shape(l->f, a->q), 3)) {
        lower_give(l, i, lower_reshape(l, v, &shape));
        return;
    }
    apart.d[apart.rank - 3] = shape.d[shape.rank - 2];
    apart.d[apart.rank - 2] = shape.d[shape.rank - 3];
    lower_give(l, i, lower_swap_dims(l, 2, lower_reshape(l, v, &apart)));
}

/* [..., H, T, E] as [..., T, H * E] */
static Val heads_together(Lowering *l, Val v) {
    v = lower_swap_dims(l, 2, v);
    Shape s = *ir_shape(l->f, v);
    dim_mul(s.d[s.rank - 2], s.d[s.rank - 1], &s.d[s.rank - 2]);
    s.rank--;
    return lower_reshape(l, v, &s);
}

/* Puts the mask at |in[n]|, if there is one: how many operands there are then; and counters after it. */
static int add_mask(Lowering *l, const Attention *a, Val *in, int n) {
    if (!a->mask.id) return n;
    const bool chooses = ir_dtype(l->f, a->mask) == AMP_DT_BOOL;
    in[n++] = with_heads(l, a, chooses ? a->mask : lower_cast(l, a->mask, AMP_DT_F32));
    return n;
}

static int add_mask_and_counters(Lowering *l, const Attention *a, Val *in, int n) {
    n = add_mask(l, a, in, n);
    if (a->p == 0.0) return n;
    in[n++] = lower_counter(l, COUNTER_SEED);
    in[n++] = lower_counter(l, COUNTER_ITERATION);
    const DrawNumbers queries = ir_draw_numbers_of_queries(ir_shape(l->f, a->q));
    return lower_place_in_step(l, &queries, shape_batch_dims(ir_shape(l->f, a->q)), in, n);
}

static Op *attend_op(Lowering *l, const Attention *a, Opcode code, const Val *in, int n) {
    Op *o = lower_op_of(l, code, in, n);
    ir_attr(o, "scale")->f = a->scale;
    ir_attr(o, "causal")->b = a->causal;
    ir_attr(o, "p")->f = a->p;
    ir_attr(o, "key")->s = a->p == 0.0 ? "" : a->key && *a->key ? a->key : l->op->path;
    ir_make_results(l->f, o, AMP_DT_F32, NULL);
    return o;
}

static void lower_to_attend(Lowering *l, const Attention *a) {
    Val in[9] = {with_heads(l, a, a->q), with_heads(l, a, a->k), with_heads(l, a, a->v)};
    const int n = add_mask_and_counters(l, a, in, 3);
    /* no dim says how many words of bits T keys take */
    const bool keeps = a->p > 0.0 && !is_long(ir_shape(l->f, a->k), 2) &&
                       target_with_sums(l->c->options->target, l->f->module)->keeps_dropout;
    const Op *o = attend_op(l, a, keeps ? OP_attend_drop : OP_attend, in, n);
    give_heads(l, a, 0, o->out[0]);
    lower_give(l, 1, lower_reshape(l, o->out[1], ir_shape(l->f, l->op->out[1])));
}

/* The bits of dropout that the op which made |sums| has kept; NO_VAL: it has not. */
static Val bits_beside(const Lowering *l, Val sums) {
    const Op *o = ir_def(l->f, sums);
    while (o && o->code == OP_reshape) o = ir_def(l->f, o->in[0]);
    return o && o->code == OP_attend_drop ? o->out[2] : NO_VAL;
}

static void lower_to_attend_grad(Lowering *l, const Attention *a) {
    Val in[12] = {with_heads(l, a, l->op->in[0]), with_heads(l, a, a->q), with_heads(l, a, a->k),
                  with_heads(l, a, a->v)};
    in[4] = heads_together(l, with_heads(l, a, l->op->in[4]));
    in[5] = with_heads(l, a, l->op->in[5]);
    const Val bits = bits_beside(l, in[5]);
    int n = bits.id ? add_mask(l, a, in, 6) : add_mask_and_counters(l, a, in, 6);
    if (bits.id) in[n++] = bits;
    const Op *o = attend_op(l, a, OP_attend_grad, in, n);
    for (int i = 0; i < 3; i++) give_heads(l, a, i, o->out[i]);
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
    Val drawn = lower_random(l, like, &a->scores, a->key), keep = lower_binary(l, OP_le, lower_number(l, a->p), drawn);
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
    if (attends(l, &a)) {
        lower_to_attend(l, &a);
        return;
    }
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
    if (attends(l, &a)) {
        lower_to_attend_grad(l, &a);
        return;
    }
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
