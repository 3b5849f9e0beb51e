/* lower_elementwise.c: casts, constants, arithmetic, comparisons, choices and powers. */
#include "passes/lower/lower.h"

#include <math.h>

/* Constants of f16 or bf16, and casts of a value whose channels are last: see lower.c. */
static void lower_keep(Lowering *l) {
    if (l->op->code == OP_cast) lower_give(l, 0, lower_cast(l, lower_given(l, 0), ir_dtype(l->f, l->op->out[0])));
    else lower_give(l, 0, lower_number(l, lower_float(l, "value")));
}

/* Widens the operands, emits the core op of the same name, rounds the result. */
static void lower_elementwise(Lowering *l) {
    Val a = lower_operand(l, 0);
    Val b = l->op->n_in == 2 ? lower_operand(l, 1) : NO_VAL;
    lower_give(l, 0, b.id ? lower_binary(l, l->op->code, a, b) : lower_unary(l, l->op->code, a));
}

/* a > b is b < a, also where either is NaN; a != b is true there, and so is the negation of ==. */
static void lower_compare(Lowering *l) {
    Val a = lower_operand(l, 0), b = lower_operand(l, 1);
    switch (l->op->code) {
    case OP_gt: lower_give(l, 0, lower_binary(l, OP_lt, b, a)); break;
    case OP_ge: lower_give(l, 0, lower_binary(l, OP_le, b, a)); break;
    case OP_ne: lower_give(l, 0, lower_unary(l, OP_not, lower_binary(l, OP_eq, a, b))); break;
    default: lower_give(l, 0, lower_binary(l, l->op->code, a, b)); break;
    }
}

static void lower_where(Lowering *l) {
    Val c = lower_operand(l, 0), a = lower_operand(l, 1), b = lower_operand(l, 2);
    lower_give(l, 0, lower_select(l, c, a, b));
}

static void lower_where_grad(Lowering *l) {
    Val dy = lower_operand(l, 0), c = lower_operand(l, 1), zero = lower_number(l, 0.0);
    lower_give(l, 0, lower_select(l, c, dy, zero));
    lower_give(l, 1, lower_select(l, c, zero, dy));
}

static void lower_clamp(Lowering *l) {
    Val x = lower_operand(l, 0);
    double low = lower_float(l, "low"), high = lower_float(l, "high");
    if (!isinf(low)) x = lower_binary(l, OP_maximum, x, lower_number(l, low));
    if (!isinf(high)) x = lower_binary(l, OP_minimum, x, lower_number(l, high));
    lower_give(l, 0, x);
}

static void lower_rsqrt(Lowering *l) {
    Val root = lower_unary(l, OP_sqrt, lower_operand(l, 0));
    lower_give(l, 0, lower_div(l, lower_number(l, 1.0), root));
}

/* ---- powers ------------------------------------------------------------------------------------------------------ */

/* sqrt, where C's pow differs: of -0, which gives 0, and of minus infinity, which gives infinity. */
static Val half_power(Lowering *l, Val x) {
    Val root = lower_unary(l, OP_sqrt, lower_add(l, x, lower_number(l, 0.0)));
    Val edge = lower_binary(l, OP_eq, x, lower_number(l, -INFINITY));
    return lower_select(l, edge, lower_number(l, INFINITY), root);
}

static Val general_power(Lowering *l, Val x, double e) {
    Val y = lower_unary(l, OP_pow, x);
    ir_attr(ir_def(l->f, y), "e")->f = e;
    return y;
}

/* x to the e: by multiplications, a quotient or a root where those are as accurate as pow. */
static Val power(Lowering *l, Val x, double e) {
    if (e == 1.0) return x;
    if (e == 2.0) return lower_mul(l, x, x);
    if (e == 3.0) return lower_mul(l, lower_mul(l, x, x), x);
    if (e == -1.0) return lower_div(l, lower_number(l, 1.0), x);
    if (e == 0.5) return half_power(l, x);
    if (e == -0.5) {
        Val root = half_power(l, x);
        return lower_div(l, lower_number(l, 1.0), root);
    }
    return general_power(l, x, e);
}

/* Every x to the 0 is 1, NaN too. */
static void lower_pow(Lowering *l) {
    double e = lower_float(l, "e");
    if (e != 0.0) {
        lower_give(l, 0, power(l, lower_operand(l, 0), e));
        return;
    }
    Shape s = lower_shape_in_form(l, ir_shape(l->f, l->op->out[0]));
    Val one = lower_cast(l, lower_number(l, 1.0), ir_dtype(l->f, l->op->out[0]));
    lower_give(l, 0, lower_expand(l, one, &s));
}

/* ---- gradients of unary ops -------------------------------------------------------------------------------------- */

static const double TWO_OVER_SQRT_PI = 1.12837916709551257390;

/* 0 at 0, and where x is NaN */
static void lower_abs_grad(Lowering *l) {
    Val dy = lower_operand(l, 0), x = lower_operand(l, 1);
    Val zero = lower_number(l, 0.0), minus = lower_unary(l, OP_neg, dy);
    Val rest = lower_select(l, lower_binary(l, OP_lt, x, zero), minus, zero);
    lower_give(l, 0, lower_select(l, lower_binary(l, OP_lt, zero, x), dy, rest));
}

/* dy s (1 + x (1 - s)), s = sigmoid(x) */
static void lower_silu_grad(Lowering *l) {
    Val dy = lower_operand(l, 0), x = lower_operand(l, 1);
    Val s = lower_logistic(l, x), one = lower_number(l, 1.0);
    Val slope = lower_add(l, one, lower_mul(l, x, lower_sub(l, one, s)));
    lower_give(l, 0, lower_mul(l, dy, lower_mul(l, s, slope)));
}

static void lower_softplus_grad(Lowering *l) {
    Val dy = lower_operand(l, 0), x = lower_operand(l, 1);
    Val linear = lower_binary(l, OP_lt, lower_number(l, 20.0), x);
    lower_give(l, 0, lower_select(l, linear, dy, lower_mul(l, dy, lower_logistic(l, x))));
}

/* dy 2 / sqrt(pi) exp(-x^2) */
static void lower_erf_grad(Lowering *l) {
    Val dy = lower_operand(l, 0), x = lower_operand(l, 1);
    Val e = lower_unary(l, OP_exp, lower_unary(l, OP_neg, lower_mul(l, x, x)));
    lower_give(l, 0, lower_mul(l, dy, lower_scaled(l, e, TWO_OVER_SQRT_PI)));
}

/* dy where low < x < high; a bound that is infinite is none. */
static void lower_clamp_grad(Lowering *l) {
    Val dy = lower_operand(l, 0), x = lower_operand(l, 1);
    double low = lower_float(l, "low"), high = lower_float(l, "high");
    Val zero = lower_number(l, 0.0);
    if (!isinf(low)) dy = lower_select(l, lower_binary(l, OP_lt, lower_number(l, low), x), dy, zero);
    if (!isinf(high)) dy = lower_select(l, lower_binary(l, OP_lt, x, lower_number(l, high)), dy, zero);
    lower_give(l, 0, dy);
}

/* dy e x^(e - 1), and 0 where e is 0 */
static void lower_pow_grad(Lowering *l) {
    Val dy = lower_operand(l, 0), x = lower_operand(l, 1);
    double e = lower_float(l, "e");
    const Shape s = *ir_shape(l->f, dy);
    if (e == 0.0) dy = lower_expand(l, lower_number(l, 0.0), &s);
    else if (e != 1.0) dy = lower_mul(l, dy, lower_scaled(l, power(l, x, e - 1.0), e));
    lower_give(l, 0, dy);
}

/* dy (-y^3 / 2) */
static void lower_rsqrt_grad(Lowering *l) {
    Val dy = lower_operand(l, 0), y = lower_operand(l, 1);
    Val cube = lower_mul(l, lower_mul(l, y, y), y);
    lower_give(l, 0, lower_mul(l, lower_scaled(l, dy, -0.5), cube));
}

const LowerRow lower_elementwise_ops[OP_COUNT] = {
    [OP_increment] = {lower_keep, TAKES_EITHER, .stays = true},
    [OP_cast] = {lower_keep, TAKES_EITHER, .stays = true},
    [OP_assign] = {lower_keep, TAKES_EITHER, .stays = true},
    [OP_const] = {lower_keep, TAKES_EITHER, .stays = true},
    [OP_ne] = {lower_compare, TAKES_EITHER},
    [OP_gt] = {lower_compare, TAKES_EITHER},
    [OP_ge] = {lower_compare, TAKES_EITHER},
    [OP_lt] = {lower_compare, TAKES_EITHER},
    [OP_le] = {lower_compare, TAKES_EITHER},
    [OP_eq] = {lower_compare, TAKES_EITHER},
    [OP_where] = {lower_where, TAKES_EITHER},
    [OP_where_grad] = {lower_where_grad, TAKES_EITHER},
    [OP_clamp] = {lower_clamp, TAKES_EITHER},
    [OP_rsqrt] = {lower_rsqrt, TAKES_EITHER},
    [OP_pow] = {lower_pow, TAKES_EITHER},
    [OP_abs_grad] = {lower_abs_grad, TAKES_EITHER},
    [OP_silu_grad] = {lower_silu_grad, TAKES_EITHER},
    [OP_softplus_grad] = {lower_softplus_grad, TAKES_EITHER},
    [OP_erf_grad] = {lower_erf_grad, TAKES_EITHER},
    [OP_clamp_grad] = {lower_clamp_grad, TAKES_EITHER},
    [OP_pow_grad] = {lower_pow_grad, TAKES_EITHER},
    [OP_rsqrt_grad] = {lower_rsqrt_grad, TAKES_EITHER},
};

const LowerRow lower_same_op = {.lower = lower_elementwise, .form = TAKES_EITHER};
