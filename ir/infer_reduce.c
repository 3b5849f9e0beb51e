/* infer_reduce.c: shapes of reductions and of the ops that undo them. */
#include "ir/infer.h"

static const Dims *dims_of(const Inferring *c) { return &ir_attr(c->o, "dims")->dims; }

const char *infer_reduce(Inferring *c) {
    const char *wrong = NULL;
    Shape s = infer_without_dims(infer_in(c, 0), dims_of(c), ir_attr(c->o, "keep")->b, &wrong);
    return wrong ? infer_mismatch(c, "%s", wrong) : infer_result(c, infer_dtype(c, 0), s);
}

const char *infer_argmax(Inferring *c) {
    const Shape *x = infer_in(c, 0);
    if (x->rank == 0) return infer_mismatch(c, "needs a dimension to search");
    const char *wrong = infer_check_dim(c);
    Dims dims = {.count = 1, .at = {ir_attr(c->o, "dim")->i}};
    return wrong ? wrong : infer_result(c, AMP_DT_I32, infer_without_dims(x, &dims, false, &wrong));
}

/* Operand |i| is what a reduction of |x| over the op's dims gives, without or with kept dims. */
static const char *check_reduced(const Inferring *c, int i, const Shape *x, const char *what) {
    const char *wrong = NULL;
    Shape gone = infer_without_dims(x, dims_of(c), false, &wrong),
          kept = infer_without_dims(x, dims_of(c), true, &wrong);
    if (wrong) return infer_mismatch(c, "%s", wrong);
    bool fits = shape_equal(infer_in(c, i), &gone) || shape_equal(infer_in(c, i), &kept);
    return fits ? NULL : infer_mismatch(c, "%s", what);
}

/* sum_to, broadcast_to, broadcast, nll_loss_grad: the result looks like the second operand; which first operands fit
 * depends on the op. */
const char *infer_second(Inferring *c) {
    const Shape *first = infer_in(c, 0), *like = infer_in(c, 1);
    Shape wide;
    const char *wrong = NULL;
    if (ir_attr(c->o, "dims")) { /* broadcast_to, broadcast */
        wrong = check_reduced(c, 0, like, "the first is no reduction of the second");
    } else if (c->o->n_in == 2) { /* sum_to: like was broadcast to first */
        if (!shape_broadcast(like, first, &wide) || !shape_equal(&wide, first))
            wrong = infer_mismatch(c, "the second does not broadcast to the first");
    } else { /* nll_loss_grad: first is the scalar gradient of the loss */
        wrong = first->rank ? infer_mismatch(c, "the first is not a scalar") : infer_check_targets(c, 1);
    }
    if (wrong) return wrong;
    return infer_result(c, c->o->code == OP_broadcast ? ir_dtype(c->f, c->o->in[0]) : c->t, *like);
}

/* (dy, x, y) */
const char *infer_extreme_grad(Inferring *c) {
    const char *wrong = check_reduced(c, 0, infer_in(c, 1), "the gradient is no reduction of x");
    if (!wrong) wrong = check_reduced(c, 2, infer_in(c, 1), "y is no reduction of x");
    return wrong ? wrong : infer_result(c, c->t, *infer_in(c, 1));
}

/* (dy, x) */
const char *infer_var_grad(Inferring *c) {
    const char *wrong = check_reduced(c, 0, infer_in(c, 1), "the gradient is no reduction of x");
    return wrong ? wrong : infer_result(c, c->t, *infer_in(c, 1));
}
