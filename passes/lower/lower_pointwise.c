/* lower_pointwise.c: casts, constants, arithmetic, comparisons, choices, powers, activations, dropout, and their
 * gradients.  The formulas of activations, down to the order of operations, follow PyTorch's CUDA kernels
 * (aten/src/ATen/native/cuda/Activation*.cu), which compute f16 and bf16 in f32 and round once. */
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

const LowerRow lower_same_op = {.lower = lower_elementwise, .form = TAKES_EITHER, .weights = WEIGHTS_ALIKE};

static const double SQRT_HALF = 0.70710678118654752440;      /* 1 / sqrt(2) */
static const double SQRT_2_OVER_PI = 0.79788456080286535588; /* sqrt(2 / pi) */
static const double INV_SQRT_2_PI = 0.39894228040143267794;  /* 1 / sqrt(2 pi) */
static const double GELU_CUBE = 0.044715;                    /* Hendrycks and Gimpel 2016 */

static Val one_plus(Lowering *l, Val a) { return lower_add(l, lower_number(l, 1.0), a); }
static Val one_minus(Lowering *l, Val a) { return lower_sub(l, lower_number(l, 1.0), a); }

/* max(x, 0): max hands NaN on. */
static void lower_relu(Lowering *l) {
    Val x = lower_operand(l, 0);
    lower_give(l, 0, lower_binary(l, OP_maximum, x, lower_number(l, 0.0)));
}

static void lower_relu_grad(Lowering *l) {
    Val dy = lower_operand(l, 0), zero = lower_number(l, 0.0);
    lower_give(l, 0, lower_select(l, lower_binary(l, OP_le, lower_operand(l, 1), zero), zero, dy));
}

static bool uses_tanh(const Lowering *l) { return !strcmp(ir_attr(l->op, "approximate")->s, "tanh"); }

/* tanh(sqrt(2/pi) (x + 0.044715 x^3)) */
static Val gelu_tanh(Lowering *l, Val x, Val square) {
    Val cube = lower_mul(l, square, x);
    return lower_unary(l, OP_tanh, lower_scaled(l, lower_add(l, x, lower_scaled(l, cube, GELU_CUBE)), SQRT_2_OVER_PI));
}

/* x Phi(x) */
static void lower_gelu(Lowering *l) {
    Val x = lower_operand(l, 0), half = lower_scaled(l, x, 0.5);
    Val inner =
        uses_tanh(l) ? gelu_tanh(l, x, lower_mul(l, x, x)) : lower_unary(l, OP_erf, lower_scaled(l, x, SQRT_HALF));
    lower_give(l, 0, lower_mul(l, half, one_plus(l, inner)));
}

/* Phi(x) + x phi(x), where Phi is written with erf. */
static Val gelu_erf_slope(Lowering *l, Val x) {
    Val cdf = lower_scaled(l, one_plus(l, lower_unary(l, OP_erf, lower_scaled(l, x, SQRT_HALF))), 0.5);
    Val pdf = lower_scaled(l, lower_unary(l, OP_exp, lower_mul(l, lower_scaled(l, x, -0.5), x)), INV_SQRT_2_PI);
    return lower_add(l, cdf, lower_mul(l, x, pdf));
}

/* 0.5 (1 + t) + 0.5 x (1 - t^2) sqrt(2/pi) (1 + 3 * 0.044715 x^2), where t is the tanh above. */
static Val gelu_tanh_slope(Lowering *l, Val x) {
    Val square = lower_mul(l, x, x), t = gelu_tanh(l, x, square);
    Val left = lower_scaled(l, one_plus(l, t), 0.5);
    Val inner = lower_scaled(l, one_plus(l, lower_scaled(l, square, 3 * GELU_CUBE)), SQRT_2_OVER_PI);
    Val half = lower_scaled(l, x, 0.5);
    return lower_add(l, left, lower_mul(l, lower_mul(l, half, one_minus(l, lower_mul(l, t, t))), inner));
}

static void lower_gelu_grad(Lowering *l) {
    Val dy = lower_operand(l, 0), x = lower_operand(l, 1);
    lower_give(l, 0, lower_mul(l, dy, uses_tanh(l) ? gelu_tanh_slope(l, x) : gelu_erf_slope(l, x)));
}

/* 1 + exp(-x) */
static Val one_plus_exp_minus(Lowering *l, Val x) {
    Val one = lower_number(l, 1.0), e = lower_unary(l, OP_exp, lower_unary(l, OP_neg, x));
    return lower_add(l, one, e);
}

Val lower_logistic(Lowering *l, Val x) {
    Val one = lower_number(l, 1.0), below = one_plus_exp_minus(l, x);
    return lower_div(l, one, below);
}

static void lower_sigmoid(Lowering *l) { lower_give(l, 0, lower_logistic(l, lower_operand(l, 0))); }

/* x / (1 + exp(-x)) */
static void lower_silu(Lowering *l) {
    Val x = lower_operand(l, 0);
    lower_give(l, 0, lower_div(l, x, one_plus_exp_minus(l, x)));
}

/* t log(u) / (u - 1), u = 1 + t: the rounding of u cancels (Goldberg 1991, theorem 4). */
Val lower_log1p(Lowering *l, Val t) {
    Val one = lower_number(l, 1.0), u = lower_add(l, one, t);
    Val product = lower_mul(l, t, lower_unary(l, OP_log, u)), quotient = lower_div(l, product, lower_sub(l, u, one));
    return lower_select(l, lower_binary(l, OP_eq, u, one), t, quotient);
}

/* log(1 + exp(x)) = max(x, 0) + log1p(exp(-|x|)), which overflows nowhere; x itself above 20. */
static void lower_softplus(Lowering *l) {
    Val x = lower_operand(l, 0);
    Val e = lower_unary(l, OP_exp, lower_unary(l, OP_neg, lower_unary(l, OP_abs, x)));
    Val tail = lower_log1p(l, e), positive = lower_binary(l, OP_maximum, x, lower_number(l, 0.0));
    Val y = lower_add(l, positive, tail);
    lower_give(l, 0, lower_select(l, lower_binary(l, OP_lt, lower_number(l, 20.0), x), x, y));
}

/* dy (1 - y) y */
static void lower_sigmoid_grad(Lowering *l) {
    Val dy = lower_operand(l, 0), y = lower_operand(l, 1);
    lower_give(l, 0, lower_mul(l, lower_mul(l, dy, one_minus(l, y)), y));
}

/* dy (1 - y^2) */
static void lower_tanh_grad(Lowering *l) {
    Val dy = lower_operand(l, 0), y = lower_operand(l, 1);
    lower_give(l, 0, lower_mul(l, dy, one_minus(l, lower_mul(l, y, y))));
}

/* i64: |each| times the samples of all micro-batches before this one, each as if it were full. */
static Val numbers_before(Lowering *l, int64_t each) {
    Val *shared = lower_memo(l, "numbers before, of %lld", (long long)each);
    if (shared->id) return *shared;
    Val micro = lower_counter(l, COUNTER_MICRO), full = lower_counter(l, COUNTER_FULL_BATCH);
    Val samples = ir_emit(l->f, OP_mul, AMP_DT_I64, NULL, 2, micro, full);
    Val of_sample = lower_number_of(l, (double)each, AMP_DT_I64);
    return *shared = ir_emit(l->f, OP_mul, AMP_DT_I64, NULL, 2, samples, of_sample);
}

int lower_place_in_step(Lowering *l, const DrawNumbers *d, bool of_batch, Val *in, int n) {
    if (!of_batch || !ir_step_is_divided(l->f->module)) return n;
    in[n++] = d->by_sample ? lower_number_of(l, 0, AMP_DT_I64) : lower_counter(l, COUNTER_MICRO);
    if (d->by_sample) in[n++] = numbers_before(l, d->each);
    return n;
}

/* A value of the shape |s|, which alone is read: |like| if it knows which of its dimensions are T = 1. */
static Val shaped(Lowering *l, Val like, const Shape *s) {
    bool same = true;
    for (int i = 0; i < s->rank; i++) same = same && s->d[i].sized == ir_shape(l->f, like)->d[i].sized;
    return same ? like : lower_expand(l, lower_number(l, 0.0), s);
}

Val lower_random(Lowering *l, Val like, const Shape *s, const char *key) {
    Val in[5] = {shaped(l, like, s), lower_counter(l, COUNTER_SEED), lower_counter(l, COUNTER_ITERATION)};
    const DrawNumbers numbers = ir_draw_numbers(s);
    const int n = lower_place_in_step(l, &numbers, shape_batch_dims(s), in, 3);
    Op *random = ir_op_new(l->f, OP_random, in, n);
    ir_attr(random, "key")->s = key && *key ? key : l->op->path;
    return ir_make_results(l->f, random, AMP_DT_F32, NULL);
}

/* For the elements of the graph value.  They are drawn by logical element, so where channels are last they are
 * permuted. */
static Val draw(Lowering *l) {
    const Shape plain = *ir_shape(l->f, l->op->out[0]);
    Val like = l->op->in[0];
    if (l->form == FORM_LAST) like = lower_expand(l, lower_number(l, 0.0), &plain); /* only its shape is read */
    return lower_to_form(l, lower_random(l, like, &plain, ir_attr(l->op, "key")->s));
}

/* x / (1 - p) where a uniform number is at least p, else 0.  Forward and backward draw the same number: the key is the
 * path of the forward op. */
static void lower_dropout(Lowering *l) {
    double p = lower_float(l, "p");
    Val x = lower_operand(l, 0), drawn = draw(l);
    Val keep = lower_binary(l, OP_le, lower_number(l, p), drawn);
    Val scaled_up = lower_scaled(l, x, 1.0 / (1.0 - p));
    lower_give(l, 0, lower_select(l, keep, scaled_up, lower_number(l, 0.0)));
}

/* Elements are numbered as they lie in memory: a convolution's weight as [KH, KW, I, O]. */
static void lower_stochastic_cast(Lowering *l) {
    const Shape s = *ir_shape(l->f, l->op->out[0]);
    Val x = lower_operand(l, 0), u = lower_random(l, x, &s, ir_attr(l->op, "key")->s);
    ir_attr(ir_def(l->f, u), "word")->i = lower_int(l, "word");
    lower_give(l, 0, ir_emit(l->f, OP_dithered_cast, ir_dtype(l->f, l->op->out[0]), NULL, 2, x, u));
}

const LowerRow lower_pointwise_ops[OP_COUNT] = {
    [OP_increment] = {lower_keep, TAKES_EITHER, .stays = true},
    [OP_cast] = {lower_keep, TAKES_EITHER, .stays = true},
    [OP_assign] = {lower_keep, TAKES_EITHER, .stays = true},
    [OP_distinct_rows] = {lower_keep, TAKES_PLAIN, .stays = true},
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
    [OP_relu] = {lower_relu, TAKES_EITHER},
    [OP_relu_grad] = {lower_relu_grad, TAKES_EITHER},
    [OP_gelu] = {lower_gelu, TAKES_EITHER},
    [OP_gelu_grad] = {lower_gelu_grad, TAKES_EITHER},
    [OP_sigmoid] = {lower_sigmoid, TAKES_EITHER},
    [OP_silu] = {lower_silu, TAKES_EITHER},
    [OP_softplus] = {lower_softplus, TAKES_EITHER},
    [OP_sigmoid_grad] = {lower_sigmoid_grad, TAKES_EITHER},
    [OP_tanh_grad] = {lower_tanh_grad, TAKES_EITHER},
    [OP_dropout] = {lower_dropout, TAKES_EITHER},
    [OP_stochastic_cast] = {lower_stochastic_cast, TAKES_PLAIN, WEIGHTS_ALIKE},
};
