/* gradient_reduce.c: gradients of reductions and losses. */
#include "passes/training/gradient_rules.h"

/* ---- reductions -------------------------------------------------------------------------------------------------- */

static bool spread(Backward *b, bool mean) {
    Dtype t = grad_type_of(b, 0);
    Val dy = backward_dy_as(b, t);
    backward_wants(b, 0);
    Op *o = backward_op(b, OP_broadcast_to, dy, grad_operand(b, 0));
    grad_copy_attr(b, o, "dims");
    ir_attr(o, "mean")->b = mean;
    return grad_give_first(b, o, t);
}

static bool gradient_sum(Backward *b) { return spread(b, false); }
static bool gradient_mean(Backward *b) { return spread(b, true); }

/* max and min */
static bool gradient_extreme(Backward *b) {
    Op *o = backward_op3(b, OP_extreme_grad, b->dy, grad_operand(b, 0), grad_y(b));
    grad_copy_attr(b, o, "dims");
    return grad_give_first(b, o, grad_type_of(b, 0));
}

static bool gradient_var(Backward *b) {
    Op *o = backward_op(b, OP_var_grad, b->dy, grad_operand(b, 0));
    grad_copy_attr(b, o, "dims");
    grad_copy_attr(b, o, "correction");
    return grad_give_first(b, o, grad_type_of(b, 0));
}

/* ---- losses ------------------------------------------------------------------------------------------------------ */

static bool gradient_nll_loss(Backward *b) {
    Op *o = backward_op3(b, OP_nll_loss_grad, b->dy, grad_operand(b, 0), grad_operand(b, 1));
    grad_copy_attr(b, o, "label_smoothing");
    grad_copy_attr(b, o, "ignore");
    return grad_give_first(b, o, grad_type_of(b, 0));
}

static bool pair_loss(Backward *b, Opcode code) {
    if (!backward_wants(b, 0)) backward_wants(b, 1);
    Val da = backward_emit(b, code, grad_type_of(b, 0), 3, b->dy, grad_operand(b, 0), grad_operand(b, 1));
    return grad_give_each(b, da, 0);
}

static bool gradient_mse_loss(Backward *b) { return pair_loss(b, OP_mse_loss_grad); }
static bool gradient_bce_with_logits(Backward *b) { return pair_loss(b, OP_bce_with_logits_grad); }

const Gradient gradient_reduce_ops[OP_COUNT] = {
    [OP_sum] = {gradient_sum},
    [OP_mean] = {gradient_mean},
    [OP_max] = {gradient_extreme},
    [OP_min] = {gradient_extreme},
    [OP_var] = {gradient_var},
    [OP_nll_loss] = {gradient_nll_loss},
    [OP_mse_loss] = {gradient_mse_loss, {"a", "b"}},
    [OP_bce_with_logits] = {gradient_bce_with_logits, {"logits", "targets"}},
};
