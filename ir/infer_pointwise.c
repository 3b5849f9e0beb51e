/* infer_pointwise.c: shapes of ops that work element by element, optimizers and assignment among them. */
#include "ir/infer.h"

/* ---- one shape --------------------------------------------------------------------------------------------------- */

const char *infer_same(Inferring *c) {
    const char *wrong = infer_check_dim(c);
    for (int i = 1; i < c->o->n_in; i++)
        if (!shape_equal(infer_in(c, 0), infer_in(c, i))) return infer_mismatch(c, "shapes differ");
    return wrong ? wrong : infer_result(c, infer_dtype(c, 0), *infer_in(c, 0));
}

/* By a scalar, the second operand. */
const char *infer_scaled(Inferring *c) {
    const char *wrong = infer_check_scalars(c, 1, 2);
    return wrong ? wrong : infer_result(c, infer_dtype(c, 0), *infer_in(c, 0));
}

const char *infer_same_new_dtype(Inferring *c) { return infer_result(c, c->t, *infer_in(c, 0)); }

/* ---- broadcasting ------------------------------------------------------------------------------------------------ */

static const char *broadcast_all(const Inferring *c, Shape *s) {
    *s = *infer_in(c, 0);
    for (int i = 1; i < c->o->n_in; i++) {
        Shape wider;
        if (!shape_broadcast(s, infer_in(c, i), &wider)) return infer_mismatch(c, "shapes do not broadcast");
        *s = wider;
    }
    return NULL;
}

const char *infer_broadcast(Inferring *c) {
    Shape s;
    const char *wrong = broadcast_all(c, &s);
    return wrong ? wrong : infer_result(c, infer_dtype(c, 0), s);
}

const char *infer_compare(Inferring *c) {
    Shape s;
    const char *wrong = broadcast_all(c, &s);
    return wrong ? wrong : infer_result(c, AMP_DT_BOOL, s);
}

const char *infer_select(Inferring *c) {
    Shape s;
    const char *wrong = broadcast_all(c, &s);
    return wrong ? wrong : infer_result(c, infer_dtype(c, 1), s);
}

/* (dy, c): c was broadcast to dy. */
const char *infer_where_grad(Inferring *c) {
    Shape s;
    if (!shape_broadcast(infer_in(c, 0), infer_in(c, 1), &s) || !shape_equal(&s, infer_in(c, 0)))
        return infer_mismatch(c, "the condition does not broadcast to the gradient");
    infer_result(c, infer_dtype(c, 0), s);
    return infer_result(c, infer_dtype(c, 0), s);
}

/* ---- training ---------------------------------------------------------------------------------------------------- */

const char *infer_update_scale(Inferring *c) {
    const char *wrong = infer_check_scalars(c, 0, c->o->n_in);
    if (wrong) return wrong;
    infer_result(c, AMP_DT_F32, shape_scalar());
    infer_result(c, AMP_DT_I32, shape_scalar());
    return infer_result(c, AMP_DT_I32, shape_scalar());
}

/* (w, gradient, step, lr, weight decay, moments...): each result looks like w. */
const char *infer_optimizer(Inferring *c) {
    for (int i = 1; i < c->o->n_in; i++) {
        bool is_scalar = i >= 2 && i < 5;
        if (is_scalar && infer_in(c, i)->rank) return infer_mismatch(c, "step, lr and weight decay are not scalars");
        if (!is_scalar && !shape_equal(infer_in(c, 0), infer_in(c, i))) return infer_mismatch(c, "shapes differ");
    }
    for (int i = 0; i < ir_op_arity(c->o->code).out; i++) infer_result(c, AMP_DT_F32, *infer_in(c, 0));
    return NULL;
}

const char *infer_nothing(Inferring *c) {
    return shape_equal(infer_in(c, 0), infer_in(c, 1)) ? NULL : infer_mismatch(c, "shapes differ");
}
