/* gradient_pointwise.c: gradients of casts, arithmetic and activations. */
#include "passes/training/gradient.h"

/* ---- arithmetic -------------------------------------------------------------------------------------------------- */

static Val unary(Backward *b, Opcode code, Val v) { return backward_emit(b, code, grad_type(b, b->dy), 1, v); }
static Val binary(Backward *b, Opcode code, Val v, Val w) {
    return backward_emit(b, code, grad_type(b, b->dy), 2, v, w);
}

/* The gradient of a cast is the reverse cast, which backward_give makes. */
static bool gradient_cast(Backward *b) {
    backward_give(b, 0, b->dy);
    return true;
}

static bool gradient_add(Backward *b) {
    if (backward_wants(b, 0)) backward_give(b, 0, b->dy);
    if (backward_wants(b, 1)) backward_give(b, 1, b->dy);
    return true;
}

static bool gradient_sub(Backward *b) {
    Val second = backward_wants(b, 1) ? unary(b, OP_neg, b->dy) : NO_VAL;
    Val first = backward_wants(b, 0) ? b->dy : NO_VAL;
    grad_give_pair(b, first, second);
    return true;
}

static bool gradient_mul(Backward *b) {
    Val second = backward_wants(b, 1) ? binary(b, OP_mul, b->dy, grad_operand(b, 0)) : NO_VAL;
    Val first = backward_wants(b, 0) ? binary(b, OP_mul, b->dy, grad_operand(b, 1)) : NO_VAL;
    grad_give_pair(b, first, second);
    return true;
}

/* y = a / b: da = dy / b, db = -dy y / b */
static bool gradient_div(Backward *b) {
    Val divisor = grad_operand(b, 1), first = NO_VAL, second = NO_VAL;
    if (backward_wants(b, 1)) {
        Val quotient = binary(b, OP_div, grad_y(b), divisor);
        second = binary(b, OP_mul, unary(b, OP_neg, b->dy), quotient);
    }
    if (backward_wants(b, 0)) first = binary(b, OP_div, b->dy, divisor);
    grad_give_pair(b, first, second);
    return true;
}

/* y = a % b: da = dy, db = -dy floor(a / b), and that is (a - y) / b, rounded to the whole number that it is near */
static bool gradient_remainder(Backward *b) {
    Val divisor = grad_operand(b, 1), first = NO_VAL, second = NO_VAL;
    if (backward_wants(b, 1)) {
        Val quotient = binary(b, OP_div, binary(b, OP_sub, grad_operand(b, 0), grad_y(b)), divisor);
        Val half = ir_emit(b->f, OP_const, AMP_DT_F32, NULL, 0);
        ir_attr(ir_def(b->f, half), "value")->f = 0.5;
        Val whole = unary(b, OP_floor, binary(b, OP_add, quotient, half));
        second = binary(b, OP_mul, unary(b, OP_neg, b->dy), whole);
    }
    if (backward_wants(b, 0)) first = b->dy;
    grad_give_pair(b, first, second);
    return true;
}

static bool gradient_neg(Backward *b) {
    backward_give(b, 0, unary(b, OP_neg, b->dy));
    return true;
}

/* dx = dy y */
static bool gradient_exp(Backward *b) {
    backward_give(b, 0, binary(b, OP_mul, b->dy, grad_y(b)));
    return true;
}

/* dx = dy / x */
static bool gradient_log(Backward *b) {
    backward_give(b, 0, binary(b, OP_div, b->dy, grad_operand(b, 0)));
    return true;
}

/* dx = dy cos x */
static bool gradient_sin(Backward *b) {
    backward_give(b, 0, binary(b, OP_mul, b->dy, unary(b, OP_cos, grad_operand(b, 0))));
    return true;
}

/* dx = -dy sin x */
static bool gradient_cos(Backward *b) {
    backward_give(b, 0, binary(b, OP_mul, b->dy, unary(b, OP_neg, unary(b, OP_sin, grad_operand(b, 0)))));
    return true;
}

/* dx = dy / (2 y) */
static bool gradient_sqrt(Backward *b) {
    Val two = backward_emit(b, OP_const, AMP_DT_F32, 0);
    ir_attr(ir_def(b->f, two), "value")->f = 2.0;
    backward_give(b, 0, binary(b, OP_div, b->dy, binary(b, OP_mul, grad_y(b), two)));
    return true;
}

/* ---- one op of (dy, x) or (dy, y) -------------------------------------------------------------------------------- */

/* dx = OP_grad(dy, v), with the forward op's attributes, in the dtype of x. */
static bool one_op(Backward *b, Val v) {
    Op *o = backward_op(b, b->gradient_op, b->dy, v);
    grad_copy_attrs(b, o);
    return grad_give_first(b, o, grad_type_of(b, 0));
}

static bool gradient_by_x(Backward *b) { return one_op(b, grad_operand(b, 0)); }
static bool gradient_by_y(Backward *b) { return one_op(b, grad_y(b)); }

/* ---- extremes, steps and a weight for each channel --------------------------------------------------------------- */

static bool gradient_extremes(Backward *b) {
    if (!backward_wants(b, 0)) backward_wants(b, 1);
    Opcode code = b->op->code == OP_maximum ? OP_maximum_grad : OP_minimum_grad;
    Val da = backward_emit(b, code, grad_type(b, b->dy), 3, b->dy, grad_operand(b, 0), grad_operand(b, 1));
    return grad_give_each(b, da, 0);
}

/* A function of steps: zeros, not the lack of a gradient, so that optimizers go on with what comes before. */
static bool gradient_of_steps(Backward *b) {
    backward_give(b, 0, backward_zeros(b, grad_type_of(b, 0), grad_shape(b, grad_operand(b, 0))));
    return true;
}

static bool gradient_prelu(Backward *b) {
    Val x = grad_operand(b, 0), weight = grad_operand(b, 1);
    if (!backward_wants(b, 0)) backward_wants(b, 1);
    Val dx = backward_emit(b, OP_prelu_grad, grad_type_of(b, 0), 3, b->dy, x, weight);
    ir_value(b->f, ir_def(b->f, dx)->out[1])->dtype = grad_type_of(b, 1);
    return grad_give_each(b, dx, 0);
}

/* ---- others ------------------------------------------------------------------------------------------------------ */

static bool gradient_where(Backward *b) {
    Val to_a = backward_emit(b, OP_where_grad, grad_type(b, b->dy), 2, b->dy, grad_operand(b, 0));
    return grad_give_each(b, to_a, 1);
}

static bool gradient_dropout(Backward *b) {
    Op *o = backward_op(b, OP_dropout, b->dy, NO_VAL);
    grad_copy_draw(b, o);
    return grad_give_first(b, o, grad_type(b, b->dy));
}

const Gradient gradient_pointwise_ops[OP_COUNT] = {
    [OP_cast] = {gradient_cast},
    [OP_add] = {gradient_add, {"a", "b"}},
    [OP_sub] = {gradient_sub, {"a", "b"}},
    [OP_mul] = {gradient_mul, {"a", "b"}},
    [OP_div] = {gradient_div, {"a", "b"}},
    [OP_remainder] = {gradient_remainder, {"a", "b"}},
    [OP_neg] = {gradient_neg},
    [OP_exp] = {gradient_exp},
    [OP_log] = {gradient_log},
    [OP_sqrt] = {gradient_sqrt},
    [OP_sin] = {gradient_sin},
    [OP_cos] = {gradient_cos},
    [OP_relu] = {gradient_by_y, .op = OP_relu_grad},
    [OP_gelu] = {gradient_by_x, .op = OP_gelu_grad},
    [OP_sigmoid] = {gradient_by_y, .op = OP_sigmoid_grad},
    [OP_tanh] = {gradient_by_y, .op = OP_tanh_grad},
    [OP_silu] = {gradient_by_x, .op = OP_silu_grad},
    [OP_softplus] = {gradient_by_x, .op = OP_softplus_grad},
    [OP_abs] = {gradient_by_x, .op = OP_abs_grad},
    [OP_erf] = {gradient_by_x, .op = OP_erf_grad},
    [OP_rsqrt] = {gradient_by_y, .op = OP_rsqrt_grad},
    [OP_pow] = {gradient_by_x, .op = OP_pow_grad},
    [OP_clamp] = {gradient_by_x, .op = OP_clamp_grad},
    [OP_leaky_relu] = {gradient_by_x, .op = OP_leaky_relu_grad},
    [OP_elu] = {gradient_by_x, .op = OP_elu_grad},
    [OP_hard_sigmoid] = {gradient_by_x, .op = OP_hard_sigmoid_grad},
    [OP_hard_swish] = {gradient_by_x, .op = OP_hard_swish_grad},
    [OP_mish] = {gradient_by_x, .op = OP_mish_grad},
    [OP_prelu] = {gradient_prelu, {"input", "weight"}},
    [OP_reciprocal] = {gradient_by_y, .op = OP_reciprocal_grad},
    [OP_expm1] = {gradient_by_y, .op = OP_expm1_grad},
    [OP_log1p] = {gradient_by_x, .op = OP_log1p_grad},
    [OP_sign] = {gradient_of_steps},
    [OP_floor] = {gradient_of_steps},
    [OP_maximum] = {gradient_extremes, {"a", "b"}},
    [OP_minimum] = {gradient_extremes, {"a", "b"}},
    [OP_where] = {gradient_where, {"c", "a", "b"}},
    [OP_dropout] = {gradient_dropout},
};
