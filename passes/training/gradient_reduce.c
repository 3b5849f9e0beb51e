/* gradient_reduce.c: gradients of reductions, losses and normalisations. */
#include "passes/training/gradient.h"

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

/* (dy, x, weight, mean, rstd) -> d x in the dtype of x, d weight and d bias in the dtype of the weight: sums of a
 * 16-bit dy that end in f32. */
static bool norm(Backward *b, Opcode code, Val mean, Val rstd) {
    Val x = grad_operand(b, 0), w = grad_operand(b, 1);
    backward_wants(b, 0);
    Val dx = backward_emit(b, code, grad_type_of(b, 0), 5, b->dy, x, w, mean, rstd);
    const Op *o = ir_def(b->f, dx);
    for (int i = 1; i < o->n_out; i++) ir_value(b->f, o->out[i])->dtype = grad_type_of(b, 1);
    return grad_give_each(b, dx, 0);
}

static bool gradient_batch_norm(Backward *b) { return norm(b, OP_batch_norm_grad, b->op->out[1], b->op->out[3]); }
static bool gradient_layer_norm(Backward *b) { return norm(b, OP_layer_norm_grad, b->op->out[1], b->op->out[2]); }

/* ---- along one dimension ----------------------------------------------------------------------------------------- */

static bool of_y(Backward *b, Opcode code) {
    Op *o = backward_op(b, code, b->dy, grad_y(b));
    grad_copy_attr(b, o, "dim");
    return grad_give_first(b, o, grad_type_of(b, 0));
}

static bool gradient_softmax(Backward *b) { return of_y(b, OP_softmax_grad); }
static bool gradient_log_softmax(Backward *b) { return of_y(b, OP_log_softmax_grad); }

const Gradient gradient_reduce_ops[OP_COUNT] = {
    [OP_sum] = {gradient_sum},
    [OP_mean] = {gradient_mean},
    [OP_max] = {gradient_extreme},
    [OP_min] = {gradient_extreme},
    [OP_var] = {gradient_var},
    [OP_nll_loss] = {gradient_nll_loss},
    [OP_mse_loss] = {gradient_mse_loss, {"a", "b"}},
    [OP_bce_with_logits] = {gradient_bce_with_logits, {"logits", "targets"}},
    [OP_batch_norm] = {gradient_batch_norm, {"input", "weight", "bias"}},
    [OP_layer_norm] = {gradient_layer_norm, {"input", "weight", "bias"}},
    [OP_softmax] = {gradient_softmax},
    [OP_log_softmax] = {gradient_log_softmax},
};
