/* infer_norm.c: shapes of normalisations. */
#include "ir/infer.h"

/* Operands |first| .. |end| are vectors of |size|. */
static const char *check_vectors(const Inferring *c, int first, int end, Dim size) {
    for (int i = first; i < end && i < c->o->n_in; i++) {
        static const char *const names[] = {"", "operand 2", "operand 3", "operand 4", "operand 5"};
        Shape vector = shape_of(1, &size);
        const char *wrong = infer_check_like(c, i, names[i], &vector);
        if (wrong) return wrong;
    }
    return NULL;
}

static const char *channels_of(const Inferring *c, const Shape *x, Dim *channels) {
    if (x->rank < 2) return infer_mismatch(c, "needs x [N, C, ...]");
    *channels = x->d[1];
    return channels->n ? infer_mismatch(c, "the channels may not depend on N") : NULL;
}

static const char *last_of(const Inferring *c, const Shape *x, Dim *last) {
    if (x->rank < 1) return infer_mismatch(c, "needs x [..., C]");
    *last = x->d[x->rank - 1];
    return last->n ? infer_mismatch(c, "the last dimension may not depend on N") : NULL;
}

/* batch_norm also gives three statistics, batch_norm_eval only y. */
const char *infer_batch_norm(Inferring *c) {
    Dim channels;
    const char *wrong = channels_of(c, infer_in(c, 0), &channels);
    if (!wrong) wrong = check_vectors(c, 1, 5, channels);
    if (wrong) return wrong;
    infer_result(c, c->t, *infer_in(c, 0));
    for (int i = 1; i < ir_op_arity(c->o->code).out; i++) infer_result(c, AMP_DT_F32, shape_of(1, &channels));
    return NULL;
}

static Shape one_per_row(const Shape *x) {
    Shape s = *x;
    s.d[s.rank - 1] = dim_const(1);
    return s;
}

const char *infer_layer_norm(Inferring *c) {
    Dim last;
    const char *wrong = last_of(c, infer_in(c, 0), &last);
    if (!wrong) wrong = check_vectors(c, 1, 3, last);
    if (wrong) return wrong;
    Shape rows = one_per_row(infer_in(c, 0));
    infer_result(c, c->t, *infer_in(c, 0));
    infer_result(c, AMP_DT_F32, rows);
    return infer_result(c, AMP_DT_F32, rows);
}

/* (dy, x, weight, mean, rstd) of either: d x, d weight, d bias. */
const char *infer_norm_grad(Inferring *c) {
    const Shape *x = infer_in(c, 1);
    bool is_batch = c->o->code == OP_batch_norm_grad;
    Dim size;
    const char *wrong = is_batch ? channels_of(c, x, &size) : last_of(c, x, &size);
    if (!wrong) wrong = infer_check_like(c, 0, "the gradient", x);
    if (!wrong) wrong = check_vectors(c, 2, is_batch ? 5 : 3, size);
    for (int i = 3; i < 5 && !wrong && !is_batch; i++) {
        Shape rows = one_per_row(x);
        wrong = infer_check_like(c, i, i == 3 ? "the mean" : "the reciprocal deviation", &rows);
    }
    if (wrong) return wrong;
    infer_result(c, c->t, *x);
    infer_result(c, c->t, shape_of(1, &size));
    return infer_result(c, c->t, shape_of(1, &size));
}
