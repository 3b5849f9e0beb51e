/* gradient_loss.c: gradients of losses, and of folds that are more than one reduction. */
#include "passes/training/gradient.h"

/* ---- losses ------------------------------------------------------------------------------------------------------ */

/* (dy, logp, targets[, weight]).  The weight of the classes has no gradient. */
static bool gradient_nll_loss(Backward *b) {
    Val in[4] = {b->dy};
    for (int i = 0; i < b->op->n_in; i++) in[i + 1] = grad_operand(b, i);
    if (!backward_wants(b, 0)) return true;
    Op *o = backward_op_of(b, OP_nll_loss_grad, in, b->op->n_in + 1);
    grad_copy_attrs(b, o);
    return grad_give_first(b, o, grad_type_of(b, 0));
}

/* (dy, a, b): d a, d b */
static bool pair_loss(Backward *b) {
    if (!backward_wants(b, 0)) backward_wants(b, 1);
    Op *o = backward_op3(b, b->gradient_op, b->dy, grad_operand(b, 0), grad_operand(b, 1));
    grad_copy_attrs(b, o);
    return grad_give_each(b, backward_result(b, o, grad_type_of(b, 0)), 0);
}

/* ---- folds ------------------------------------------------------------------------------------------------------- */

/* (dy, x, y) */
static bool fold(Backward *b) {
    Op *o = backward_op3(b, b->gradient_op, b->dy, grad_operand(b, 0), grad_y(b));
    grad_copy_attrs(b, o);
    return grad_give_first(b, o, grad_type_of(b, 0));
}

static bool gradient_prod(Backward *b) {
    Op *o = backward_op(b, OP_prod_grad, b->dy, grad_operand(b, 0));
    grad_copy_attrs(b, o);
    return grad_give_first(b, o, grad_type_of(b, 0));
}

/* Each element is in the sums from its own on. */
static bool gradient_cumsum(Backward *b) {
    Op *o = backward_op(b, OP_cumsum, b->dy, NO_VAL);
    grad_copy_attrs(b, o);
    ir_attr(o, "reverse")->b = !ir_attr(b->op, "reverse")->b;
    return grad_give_first(b, o, grad_type_of(b, 0));
}

const Gradient gradient_loss_ops[OP_COUNT] = {
    [OP_nll_loss] = {gradient_nll_loss},
    [OP_mse_loss] = {pair_loss, {"a", "b"}, OP_mse_loss_grad},
    [OP_l1_loss] = {pair_loss, {"a", "b"}, OP_l1_loss_grad},
    [OP_smooth_l1_loss] = {pair_loss, {"a", "b"}, OP_smooth_l1_loss_grad},
    [OP_huber_loss] = {pair_loss, {"a", "b"}, OP_huber_loss_grad},
    [OP_bce_with_logits] = {pair_loss, {"logits", "targets"}, OP_bce_with_logits_grad},
    [OP_kl_div] = {pair_loss, {"input", "target"}, OP_kl_div_grad},
    [OP_logsumexp] = {fold, .op = OP_logsumexp_grad},
    [OP_norm] = {fold, .op = OP_norm_grad},
    [OP_prod] = {gradient_prod},
    [OP_cumsum] = {gradient_cumsum},
};
