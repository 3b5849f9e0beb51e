/* gradient_product.c: gradients of products, convolutions and pooling. */
#include "passes/training/gradient.h"

#include "passes/common/common.h"

/* Factors of a product have one dtype; dy differs from theirs where they are tf32, or where the product was made to
 * return f32. */
static Val dy_as_factor(Backward *b) {
    bool needed = backward_wants(b, 0) || backward_wants(b, 1);
    return needed ? backward_dy_as(b, grad_type(b, grad_operand(b, 0))) : NO_VAL;
}

static Val product(Backward *b, int to, Val first, bool ta, Val second, bool tb) {
    Op *o = backward_op(b, OP_matmul, first, second);
    ir_attr(o, "ta")->b = ta;
    ir_attr(o, "tb")->b = tb;
    return backward_result(b, o, grad_type_of(b, to));
}

static Val sum_over(Backward *b, Val dy, Dims dims) {
    Op *o = backward_op(b, OP_sum, dy, NO_VAL);
    ir_attr(o, "dims")->dims = dims;
    return backward_result(b, o, grad_type(b, dy));
}

/* ---- matrices ---------------------------------------------------------------------------------------------------- */

/* [..., C] as a matrix of all its rows, for what |operand| (or OUTPUT) is; what is a matrix stays. */
static Val as_matrix(Backward *b, Val v, int operand) {
    Dim rows, cols;
    if (!shape_matrix(grad_shape(b, v), &rows, &cols)) return v;
    b->operand = operand;
    return backward_reshape(b, v, shape_of(2, (Dim[]){rows, cols}));
}

static bool has_matrix_form(Backward *b, Val v) {
    Dim rows, cols;
    if (shape_matrix(grad_shape(b, v), &rows, &cols)) return true;
    place_error(b->context, b->op->pos, "%s: the number of rows of an operand is too large, or depends on N twice",
                b->op->path);
    return false;
}

/* From here on dy is a matrix of all its rows. */
static bool dy_becomes_matrix(Backward *b) {
    if (!has_matrix_form(b, grad_operand(b, 0)) || !has_matrix_form(b, b->dy)) return false;
    b->dy = as_matrix(b, b->dy, OUTPUT);
    return true;
}

/* y = x w or, with |tw|, x w^T, where x is [..., k] and w a matrix: the rows of x are one long batch.
 * dx = dy w^T and dw = x^T dy, or dx = dy w and dw = dy^T x. */
static Val row_gradient(Backward *b, bool tw, Val dy) {
    if (!backward_wants(b, 0)) return NO_VAL;
    Val dx = product(b, 0, dy, false, grad_operand(b, 1), !tw);
    return backward_reshape(b, dx, *grad_shape(b, grad_operand(b, 0)));
}

static Val matrix_gradient(Backward *b, bool tw, Val dy) {
    if (!backward_wants(b, 1)) return NO_VAL;
    Val rows = as_matrix(b, grad_operand(b, 0), 1);
    return tw ? product(b, 1, dy, true, rows, false) : product(b, 1, rows, true, dy, false);
}

/* PyTorch's addmm makes dx first, its mm dw. */
static bool rows_times_matrix(Backward *b, bool tw, bool rows_first) {
    if (!dy_becomes_matrix(b)) return false;
    Val dy = dy_as_factor(b), dx = rows_first ? row_gradient(b, tw, dy) : NO_VAL, dw = matrix_gradient(b, tw, dy);
    if (!rows_first) dx = row_gradient(b, tw, dy);
    grad_give_pair(b, dx, dw);
    return true;
}

static bool gradient_linear(Backward *b) {
    bool has_bias = b->op->n_in == 3;
    if (!rows_times_matrix(b, !ir_attr(b->op, "transposed")->b, has_bias)) return false;
    if (backward_wants(b, 2)) backward_give(b, 2, sum_over(b, b->dy, (Dims){.count = 1, .at = {0}}));
    return true;
}

/* y = A B: dA = dy B^T, dB = A^T dy, where A is a or, with ta, a^T; the gradient of a is then dA^T.  Leading dimensions
 * are a batch; those that were broadcast are summed away by backward_give. */
static bool gradient_matmul(Backward *b) {
    Val x = grad_operand(b, 0), w = grad_operand(b, 1), dx = NO_VAL, dw = NO_VAL;
    bool ta = ir_attr(b->op, "ta")->b, tb = ir_attr(b->op, "tb")->b;
    if (grad_shape(b, w)->rank == 2 && !ta) return rows_times_matrix(b, tb, false);
    Val dy = dy_as_factor(b);
    if (backward_wants(b, 1)) dw = tb ? product(b, 1, dy, true, x, ta) : product(b, 1, x, !ta, dy, false);
    if (backward_wants(b, 0)) dx = ta ? product(b, 0, w, tb, dy, true) : product(b, 0, dy, false, w, !tb);
    grad_give_pair(b, dx, dw);
    return true;
}

/* ---- images ------------------------------------------------------------------------------------------------------ */

/* The gradient of operand |to| from dy and the other factor, and |like|, which gives its shape alone. */
static void conv2d_factor(Backward *b, int to, Opcode code, Val dy, Val other, Val like) {
    static const char *const attrs[] = {"stride", "padding", "dilation", "groups"};
    Op *o = backward_op3(b, code, dy, other, like);
    for (size_t i = 0; i < sizeof attrs / sizeof *attrs; i++) grad_copy_attr(b, o, attrs[i]);
    backward_give(b, to, backward_result(b, o, grad_type_of(b, to)));
}

static bool gradient_conv2d(Backward *b) {
    Val x = grad_operand(b, 0), w = grad_operand(b, 1), factor = dy_as_factor(b);
    if (backward_wants(b, 0)) conv2d_factor(b, 0, OP_conv2d_input_grad, factor, w, x);
    if (backward_wants(b, 1)) conv2d_factor(b, 1, OP_conv2d_weight_grad, factor, x, w);
    if (backward_wants(b, 2)) backward_give(b, 2, sum_over(b, b->dy, (Dims){.count = 3, .at = {0, 2, 3}}));
    return true;
}

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

const Gradient gradient_product_ops[OP_COUNT] = {
    [OP_linear] = {gradient_linear, {"input", "weight", "bias"}},
    [OP_matmul] = {gradient_matmul, {"a", "b"}},
    [OP_conv2d] = {gradient_conv2d, {"input", "weight", "bias"}},
    [OP_max_pool2d] = {gradient_max_pool2d},
    [OP_avg_pool2d] = {gradient_avg_pool2d},
    [OP_global_avg_pool] = {gradient_global_avg_pool},
};
