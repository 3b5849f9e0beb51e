/* gradient_norm.c: gradients of normalisations. */
#include "passes/training/gradient_rules.h"

/* (dy, x, weight, mean, rstd) -> d x in the dtype of x, d weight and d bias in the dtype of the weight: sums of a 16-bit
 * dy that end in f32. */
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

const Gradient gradient_norm_ops[OP_COUNT] = {
    [OP_batch_norm] = {gradient_batch_norm, {"input", "weight", "bias"}},
    [OP_layer_norm] = {gradient_layer_norm, {"input", "weight", "bias"}},
    [OP_softmax] = {gradient_softmax},
    [OP_log_softmax] = {gradient_log_softmax},
};
