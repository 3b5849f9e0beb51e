/* lower_elementwise.c: arithmetic, activations and dropout, and their gradients. The formulas, down to the order of
 * operations, are those of PyTorch's CUDA kernels (aten/src/ATen/native/cuda/Activation*.cu), which compute f16 and
 * bf16 in f32 and round once. */
#include "passes/lower.h"

static const double SQRT_HALF = 0.70710678118654752440;      /* 1 / sqrt(2) */
static const double SQRT_2_OVER_PI = 0.79788456080286535588; /* sqrt(2 / pi) */
static const double INV_SQRT_2_PI = 0.39894228040143267794;  /* 1 / sqrt(2 pi) */
static const double GELU_CUBE = 0.044715;                    /* Hendrycks and Gimpel 2016 */

static Val add(Lowering *l, Val a, Val b) { return lower_binary(l, OP_add, a, b); }
static Val sub(Lowering *l, Val a, Val b) { return lower_binary(l, OP_sub, a, b); }
static Val mul(Lowering *l, Val a, Val b) { return lower_binary(l, OP_mul, a, b); }
static Val scaled(Lowering *l, Val a, double factor) { return mul(l, a, lower_number(l, factor)); }
static Val one_plus(Lowering *l, Val a) { return add(l, lower_number(l, 1.0), a); }
static Val one_minus(Lowering *l, Val a) { return sub(l, lower_number(l, 1.0), a); }

/* Only constants of f16 or bf16 get here: see lower.c. */
void lower_keep(Lowering *l) { lower_give(l, 0, lower_number(l, lower_float(l, "value"))); }

void lower_elementwise(Lowering *l) {
    Val a = lower_operand(l, 0);
    lower_give(
        l, 0, l->op->n_in == 1 ? lower_unary(l, l->op->code, a) : lower_binary(l, l->op->code, a, lower_operand(l, 1)));
}

/* max(x, 0): max hands NaN on. */
void lower_relu(Lowering *l) {
    Val x = lower_operand(l, 0);
    lower_give(l, 0, lower_binary(l, OP_maximum, x, lower_number(l, 0.0)));
}

void lower_relu_grad(Lowering *l) {
    Val dy = lower_operand(l, 0), zero = lower_number(l, 0.0);
    lower_give(l, 0, lower_select(l, lower_binary(l, OP_le, lower_operand(l, 1), zero), zero, dy));
}

static bool uses_tanh(const Lowering *l) { return !strcmp(ir_attr(l->op, "approximate")->s, "tanh"); }

/* tanh(sqrt(2/pi) (x + 0.044715 x^3)) */
static Val gelu_tanh(Lowering *l, Val x, Val square) {
    Val cube = mul(l, square, x);
    return lower_unary(l, OP_tanh, scaled(l, add(l, x, scaled(l, cube, GELU_CUBE)), SQRT_2_OVER_PI));
}

/* x Phi(x) */
void lower_gelu(Lowering *l) {
    Val x = lower_operand(l, 0), half = scaled(l, x, 0.5);
    Val inner = uses_tanh(l) ? gelu_tanh(l, x, mul(l, x, x)) : lower_unary(l, OP_erf, scaled(l, x, SQRT_HALF));
    lower_give(l, 0, mul(l, half, one_plus(l, inner)));
}

/* Phi(x) + x phi(x), where Phi is written with erf. */
static Val gelu_erf_slope(Lowering *l, Val x) {
    Val cdf = scaled(l, one_plus(l, lower_unary(l, OP_erf, scaled(l, x, SQRT_HALF))), 0.5);
    Val pdf = scaled(l, lower_unary(l, OP_exp, mul(l, scaled(l, x, -0.5), x)), INV_SQRT_2_PI);
    return add(l, cdf, mul(l, x, pdf));
}

/* 0.5 (1 + t) + 0.5 x (1 - t^2) sqrt(2/pi) (1 + 3 * 0.044715 x^2), where t is the tanh above. */
static Val gelu_tanh_slope(Lowering *l, Val x) {
    Val square = mul(l, x, x), t = gelu_tanh(l, x, square);
    Val left = scaled(l, one_plus(l, t), 0.5);
    Val inner = scaled(l, one_plus(l, scaled(l, square, 3 * GELU_CUBE)), SQRT_2_OVER_PI);
    Val half = scaled(l, x, 0.5);
    return add(l, left, mul(l, mul(l, half, one_minus(l, mul(l, t, t))), inner));
}

void lower_gelu_grad(Lowering *l) {
    Val dy = lower_operand(l, 0), x = lower_operand(l, 1);
    lower_give(l, 0, mul(l, dy, uses_tanh(l) ? gelu_tanh_slope(l, x) : gelu_erf_slope(l, x)));
}

/* 1 / (1 + exp(-x)) */
void lower_sigmoid(Lowering *l) {
    Val one = lower_number(l, 1.0);
    Val e = lower_unary(l, OP_exp, lower_unary(l, OP_neg, lower_operand(l, 0)));
    lower_give(l, 0, lower_binary(l, OP_div, one, add(l, one, e)));
}

/* dy (1 - y) y */
void lower_sigmoid_grad(Lowering *l) {
    Val dy = lower_operand(l, 0), y = lower_operand(l, 1);
    lower_give(l, 0, mul(l, mul(l, dy, one_minus(l, y)), y));
}

/* dy (1 - y^2) */
void lower_tanh_grad(Lowering *l) {
    Val dy = lower_operand(l, 0), y = lower_operand(l, 1);
    lower_give(l, 0, mul(l, dy, one_minus(l, mul(l, y, y))));
}

/* A counter of the training session, which the model gets with its first random op. */
static Val counter(Lowering *l, const char *name) {
    Module *m = l->f->module;
    State *s = ir_state_find(m, name);
    if (!s) s = ir_state_new(m, name, STATE_COUNTER, AMP_DT_I64, shape_scalar());
    return ir_use_state(l->f, s);
}

/* x / (1 - p) where a uniform number is at least p, else 0.  Forward and backward draw the same number: the key is the
 * path of the forward op. */
void lower_dropout(Lowering *l) {
    Val x = lower_operand(l, 0);
    double p = lower_float(l, "p");
    const char *key = ir_attr(l->op, "key")->s;
    Val seed = counter(l, "seed"), iteration = counter(l, "iteration");
    Op *random = ir_op_new(l->f, OP_random, (Val[]){x, seed, iteration}, 3);
    ir_attr(random, "key")->s = key && *key ? key : l->op->path;
    Val drawn = ir_make_results(l->f, random, AMP_DT_F32, NULL);
    Val keep = lower_binary(l, OP_le, lower_number(l, p), drawn);
    Val scaled_up = scaled(l, x, 1.0 / (1.0 - p));
    lower_give(l, 0, lower_select(l, keep, scaled_up, lower_number(l, 0.0)));
}
