/* infer_loss.c: shapes of losses, metrics and other ops whose result is a scalar. */
#include "ir/infer.h"

const char *infer_nll_loss(Inferring *c) {
    const char *wrong = infer_check_targets(c, 0);
    return wrong ? wrong : infer_result(c, c->t, shape_scalar());
}

static const char *check_pair(const Inferring *c, int first) {
    bool fits = shape_equal(infer_in(c, first), infer_in(c, first + 1));
    return fits ? NULL : infer_mismatch(c, "shapes differ");
}

const char *infer_pair_loss(Inferring *c) {
    const char *wrong = check_pair(c, 0);
    return wrong ? wrong : infer_result(c, c->t, shape_scalar());
}

/* (g, a, b) */
const char *infer_pair_loss_grad(Inferring *c) {
    const char *wrong = infer_check_scalars(c, 0, 1);
    if (!wrong) wrong = check_pair(c, 1);
    if (wrong) return wrong;
    infer_result(c, c->t, *infer_in(c, 1));
    return infer_result(c, c->t, *infer_in(c, 2));
}

static const char *check_top_k(const Inferring *c) {
    int64_t k = ir_attr(c->o, "k")->i;
    return k < 1 ? infer_mismatch(c, "k must be at least 1") : infer_check_targets(c, 0);
}

static const char *check_dims(const Inferring *c) {
    const char *wrong = NULL;
    infer_without_dims(infer_in(c, 0), &ir_attr(c->o, "dims")->dims, false, &wrong);
    return wrong ? infer_mismatch(c, "%s", wrong) : NULL;
}

/* The metrics and extent read tensors, the others scalars. */
const char *infer_scalar(Inferring *c) {
    const char *wrong = c->o->code == OP_accuracy         ? infer_check_targets(c, 0)
                        : c->o->code == OP_top_k_accuracy ? check_top_k(c)
                        : c->o->code == OP_extent         ? check_dims(c)
                                                          : infer_check_scalars(c, 0, c->o->n_in);
    return wrong ? wrong : infer_result(c, c->t, shape_scalar());
}

/* all_finite, global_norm: operands of any shape. */
const char *infer_scalar_bool(Inferring *c) { return infer_result(c, AMP_DT_BOOL, shape_scalar()); }
const char *infer_scalar_f32(Inferring *c) { return infer_result(c, AMP_DT_F32, shape_scalar()); }

const char *infer_scalar_f64(Inferring *c) {
    const char *wrong = infer_check_scalars(c, 0, c->o->n_in);
    return wrong ? wrong : infer_result(c, AMP_DT_F64, shape_scalar());
}
