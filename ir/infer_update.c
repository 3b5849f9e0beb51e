/* infer_update.c: shapes of loss scaling, optimizers and assignment. */
#include "ir/infer.h"

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
