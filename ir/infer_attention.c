/* infer_attention.c: shapes of attention and its gradients.  Queries [B..., H, T, D], keys [B..., G, S, D], values
 * [B..., G, S, E]: each of the G heads of keys and values serves H / G heads of queries. */
#include "ir/infer.h"
#include "ir/operands.h"

typedef struct Heads {
    const Shape *q, *k, *v, *mask; /* mask: NULL where there is none */
} Heads;

/* Operands from |first| on: q, k, v; the mask is operand |mask|. */
static Heads heads_at(const Inferring *c, int first, int mask) {
    return (Heads){infer_in(c, first), infer_in(c, first + 1), infer_in(c, first + 2),
                   c->o->n_in > mask ? infer_in(c, mask) : NULL};
}

/* The dimension |from_end| places before the last one's end: 1 is the last. */
static Dim at(const Shape *s, int from_end) { return s->d[s->rank - from_end]; }

static Shape with_last(const Shape *like, Dim last) {
    Shape s = *like;
    s.d[s.rank - 1] = last;
    return s;
}

/* [B..., H, T, S] */
static Shape scores_of(const Heads *h) { return with_last(h->q, at(h->k, 2)); }

static bool is_multiple(Dim all, Dim part) {
    return dim_equal(all, part) || (!dim_varies(all) && !dim_varies(part) && part.mul > 0 && all.mul % part.mul == 0);
}

/* [B..., T, heads * last] */
static bool together(const Shape *of, Dim last, Shape *s) {
    *s = *of;
    s->rank--;
    s->d[s->rank - 2] = at(of, 2);
    return dim_mul(at(of, 3), last, &s->d[s->rank - 1]);
}

static const char *check_mask(const Inferring *c, const Heads *h) {
    Shape scores = scores_of(h), together;
    if (!h->mask || (shape_broadcast(&scores, h->mask, &together) && shape_equal(&scores, &together))) return NULL;
    return infer_mismatch(c, "the mask does not broadcast to the scores %s", shape_text(c->f->module->arena, &scores));
}

static const char *check(const Inferring *c, const Heads *h) {
    if (h->q->rank < 3 || h->k->rank != h->q->rank || h->v->rank != h->q->rank)
        return infer_mismatch(c, "needs queries, keys and values [..., heads, length, width] of one rank");
    for (int i = 0; i < h->q->rank - 3; i++) {
        if (!dim_equal(h->q->d[i], h->k->d[i])) return infer_differing(c, "leading dimensions", h->q->d[i], h->k->d[i]);
        if (!dim_equal(h->q->d[i], h->v->d[i])) return infer_differing(c, "leading dimensions", h->q->d[i], h->v->d[i]);
    }
    if (!dim_equal(at(h->k, 3), at(h->v, 3)))
        return infer_differing(c, "heads of keys and values", at(h->k, 3), at(h->v, 3));
    if (!is_multiple(at(h->q, 3), at(h->k, 3)))
        return infer_mismatch(c, "the number of query heads must be a multiple of the number of key heads");
    if (!dim_equal(at(h->q, 1), at(h->k, 1)))
        return infer_differing(c, "widths of queries and keys", at(h->q, 1), at(h->k, 1));
    if (!dim_equal(at(h->k, 2), at(h->v, 2)))
        return infer_differing(c, "lengths of keys and values", at(h->k, 2), at(h->v, 2));
    const Dim width = dim_varies(at(h->q, 1)) ? at(h->q, 1) : at(h->v, 1);
    if (dim_varies(width)) return infer_varies(c, width, "the width of a head");
    if (at(h->k, 2).n) return infer_mismatch(c, "the number of keys may not depend on N");
    return check_mask(c, h);
}

/* (q, k, v[, mask]) */
const char *infer_attention(Inferring *c) {
    Heads h = heads_at(c, 0, 3);
    const char *wrong = check(c, &h);
    if (wrong) return wrong;
    infer_result(c, c->t, with_last(h.q, at(h.v, 1)));
    return infer_result(c, AMP_DT_F32, with_last(h.q, dim_const(1)));
}

/* (dy, q, k, v, o, lse[, mask]) */
static const char *check_gradient(const Inferring *c, const Heads *h) {
    const char *wrong = check(c, h);
    if (wrong) return wrong;
    Shape y = with_last(h->q, at(h->v, 1)), rows = with_last(h->q, dim_const(1));
    wrong = infer_check_like(c, 0, "the gradient", &y);
    if (!wrong) wrong = infer_check_like(c, 4, "the result", &y);
    return wrong ? wrong : infer_check_like(c, 5, "the logarithm of the sums", &rows);
}

const char *infer_attention_grad(Inferring *c) {
    Heads h = heads_at(c, 1, 6);
    const char *wrong = check_gradient(c, &h);
    if (wrong) return wrong;
    infer_result(c, c->t, *h.q);
    infer_result(c, c->t, *h.k);
    return infer_result(c, c->t, *h.v);
}

const char *infer_attention_mask_grad(Inferring *c) {
    Heads h = heads_at(c, 1, 6);
    const char *wrong = check_gradient(c, &h);
    return wrong ? wrong : infer_result(c, c->t, scores_of(&h));
}

/* ---- core -------------------------------------------------------------------------------------------------------- */

static bool is_of(const Inferring *c, int i, Dtype t) { return i < c->o->n_in && ir_dtype(c->f, c->o->in[i]) == t; }

/* Heads as the core ops have them: after |mask| operands there may be a mask, then counters or bits. */
static Heads core_heads(const Inferring *c, int first, int mask) {
    Heads h = heads_at(c, first, mask);
    if (is_of(c, mask, AMP_DT_I64) || is_of(c, mask, AMP_DT_I32)) h.mask = NULL;
    return h;
}

/* A bit for each score. */
static Shape bits_of(const Heads *h) {
    Shape s = *h->q;
    s.d[s.rank - 2] = dim_const(ir_dropout_words(at(h->k, 2).mul));
    s.d[s.rank - 1] = at(h->q, 2);
    return s;
}

/* What kernels of tiles need: along B alone sizes depend on N, and heads are as many in every call. */
static const char *check_core(const Inferring *c, const Heads *h, int counters) {
    const char *wrong = check(c, h);
    const double p = ir_attr(c->o, "p")->f;
    if (wrong) return wrong;
    if (at(h->q, 2).n || dim_varies(at(h->q, 3)))
        return infer_mismatch(c, "queries may not depend on N, and heads not on N or T");
    if (p < 0.0 || p >= 1.0) return infer_mismatch(c, "p is a probability below 1");
    if (counters + (h->mask != NULL) < c->o->n_in && p == 0.0)
        return infer_mismatch(c, "has counters, which only p > 0 needs");
    if (counters + (h->mask != NULL) == c->o->n_in && p > 0.0)
        return infer_mismatch(c, "needs counters, since p is above 0");
    if (is_of(c, counters + (h->mask != NULL), AMP_DT_I32)) {
        const Shape bits = bits_of(h);
        return infer_check_like(c, counters + (h->mask != NULL), "the last operand", &bits);
    }
    return infer_check_scalars(c, counters + (h->mask != NULL), c->o->n_in);
}

/* (q, k, v[, mask][, counters]) */
const char *infer_attend(Inferring *c) {
    Heads h = core_heads(c, 0, 3);
    Shape y;
    const char *wrong = check_core(c, &h, 3);
    if (wrong) return wrong;
    if (!together(h.q, at(h.v, 1), &y)) return infer_mismatch(c, "the heads together are too wide");
    infer_result(c, AMP_DT_F32, y);
    return infer_result(c, AMP_DT_F32, with_last(h.q, dim_const(1)));
}

/* (q, k, v[, mask], counters) */
const char *infer_attend_drop(Inferring *c) {
    const Heads h = core_heads(c, 0, 3);
    const char *wrong = infer_attend(c);
    if (!wrong) wrong = infer_varies(c, at(h.k, 2), "the number of keys with bits of dropout");
    return wrong ? wrong : infer_result(c, AMP_DT_I32, bits_of(&h));
}

/* (dy, q, k, v, y, sums[, mask][, counters or bits]) */
const char *infer_attend_grad(Inferring *c) {
    Heads h = core_heads(c, 1, 6);
    Shape y, d[3];
    const char *wrong = check_core(c, &h, 6);
    if (wrong) return wrong;
    const Shape dy = with_last(h.q, at(h.v, 1)), rows = with_last(h.q, dim_const(1));
    if (!together(h.q, at(h.v, 1), &y) || !together(h.q, at(h.q, 1), &d[0]) || !together(h.k, at(h.k, 1), &d[1]) ||
        !together(h.v, at(h.v, 1), &d[2]))
        return infer_mismatch(c, "the heads together are too wide");
    wrong = infer_check_like(c, 0, "the gradient", &dy);
    if (!wrong) wrong = infer_check_like(c, 4, "the result", &y);
    if (!wrong) wrong = infer_check_like(c, 5, "the logarithm of the sums", &rows);
    for (int i = 0; i < 3 && !wrong; i++) wrong = infer_result(c, AMP_DT_F32, d[i]);
    return wrong;
}
