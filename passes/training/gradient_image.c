/* gradient_image.c: gradients of pooling. */
#include "passes/training/gradient_rules.h"

static void copy_window(const Backward *b, Op *o) {
    static const char *const attrs[] = {"kernel", "stride", "padding"};
    for (size_t i = 0; i < sizeof attrs / sizeof *attrs; i++) grad_copy_attr(b, o, attrs[i]);
}

/* Which element each window chose is the forward op's second result. */
static bool gradient_max_pool2d(Backward *b) {
    Op *o = backward_op3(b, OP_max_pool2d_grad, b->dy, b->op->out[1], grad_operand(b, 0));
    copy_window(b, o);
    return grad_give_first(b, o, grad_type_of(b, 0));
}

static bool gradient_avg_pool2d(Backward *b) {
    Op *o = backward_op(b, OP_avg_pool2d_grad, b->dy, grad_operand(b, 0));
    copy_window(b, o);
    return grad_give_first(b, o, grad_type_of(b, 0));
}

static bool gradient_global_avg_pool(Backward *b) {
    Op *o = backward_op(b, OP_global_avg_pool_grad, b->dy, grad_operand(b, 0));
    return grad_give_first(b, o, grad_type_of(b, 0));
}

const Gradient gradient_image_ops[OP_COUNT] = {
    [OP_max_pool2d] = {gradient_max_pool2d},
    [OP_avg_pool2d] = {gradient_avg_pool2d},
    [OP_global_avg_pool] = {gradient_global_avg_pool},
};
