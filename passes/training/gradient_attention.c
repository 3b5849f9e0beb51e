/* gradient_attention.c: the gradient of attention. */
#include "passes/training/gradient.h"

/* An op that computes the softmax again, from the same operands and with the same dropout. */
static Op *again(Backward *b, Opcode code) {
    const Op *o = b->op;
    Val in[7] = {backward_dy_as(b, grad_type(b, o->in[0])), o->in[0], o->in[1], o->in[2], o->out[0], o->out[1]};
    int n = 6;
    if (o->n_in == 4) in[n++] = o->in[3];
    Op *made = backward_op_of(b, code, in, n);
    grad_copy_draw(b, made);
    return made;
}

static bool gradient_attention(Backward *b) {
    if (backward_wants(b, 0) || backward_wants(b, 1) || backward_wants(b, 2))
        grad_give_each(b, backward_result(b, again(b, OP_attention_grad), grad_type_of(b, 0)), 0);
    if (backward_wants(b, 3))
        backward_give(b, 3, backward_result(b, again(b, OP_attention_mask_grad), grad_type_of(b, 3)));
    return true;
}

const Gradient gradient_attention_ops[OP_COUNT] = {
    [OP_attention] = {gradient_attention, {"query", "key", "value", "mask"}},
};
