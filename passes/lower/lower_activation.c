/* lower_activation.c: activations with corners or a weight, reciprocals, signs and extremes of two, with their
 * gradients.  The formulas follow PyTorch's CUDA kernels (aten/src/ATen/native/cuda/Activation*.cu). */
#include "passes/lower/lower.h"

static Val zero(Lowering *l) { return lower_number(l, 0.0); }
static Val one(Lowering *l) { return lower_number(l, 1.0); }
static Val is_below(Lowering *l, Val a, Val b) { return lower_binary(l, OP_lt, a, b); }

/* ---- one corner -------------------------------------------------------------------------------------------------- */

/* v where x > 0, else v * factor */
static Val scaled_below(Lowering *l, Val x, Val v, Val factor) {
    Val positive = is_below(l, zero(l), x), scaled = lower_mul(l, v, factor);
    return lower_select(l, positive, v, scaled);
}

static void lower_leaky_relu(Lowering *l) {
    Val x = lower_operand(l, 0);
    lower_give(l, 0, scaled_below(l, x, x, lower_number(l, lower_float(l, "slope"))));
}

static void lower_leaky_relu_grad(Lowering *l) {
    Val dy = lower_operand(l, 0), x = lower_operand(l, 1);
    lower_give(l, 0, scaled_below(l, x, dy, lower_number(l, lower_float(l, "slope"))));
}

static Val is_positive_or_nan(Lowering *l, Val x) { return lower_unary(l, OP_not, lower_binary(l, OP_le, x, zero(l))); }

static void lower_elu(Lowering *l) {
    Val x = lower_operand(l, 0), stays = is_positive_or_nan(l, x);
    Val rest = lower_scaled(l, lower_unary(l, OP_expm1, x), lower_float(l, "alpha"));
    lower_give(l, 0, lower_select(l, stays, x, rest));
}

static void lower_elu_grad(Lowering *l) {
    Val dy = lower_operand(l, 0), x = lower_operand(l, 1), stays = is_positive_or_nan(l, x);
    Val slope = lower_scaled(l, lower_unary(l, OP_exp, x), lower_float(l, "alpha"));
    lower_give(l, 0, lower_select(l, stays, dy, lower_mul(l, dy, slope)));
}

/* ---- two corners ------------------------------------------------------------------------------------------------- */

/* min(max(x + 3, 0), 6) / 6 */
static Val hard_sigmoid(Lowering *l, Val x) {
    Val raised = lower_binary(l, OP_maximum, lower_add(l, x, lower_number(l, 3.0)), zero(l));
    return lower_scaled(l, lower_binary(l, OP_minimum, raised, lower_number(l, 6.0)), 1.0 / 6.0);
}

static void lower_hard_sigmoid(Lowering *l) { lower_give(l, 0, hard_sigmoid(l, lower_operand(l, 0))); }

static void lower_hard_swish(Lowering *l) {
    Val x = lower_operand(l, 0);
    lower_give(l, 0, lower_mul(l, x, hard_sigmoid(l, x)));
}

static void lower_hard_sigmoid_grad(Lowering *l) {
    Val dy = lower_operand(l, 0), x = lower_operand(l, 1);
    Val above = is_below(l, lower_number(l, -3.0), x), below = is_below(l, x, lower_number(l, 3.0));
    Val slope = lower_scaled(l, dy, 1.0 / 6.0);
    lower_give(l, 0, lower_select(l, lower_binary(l, OP_and, above, below), slope, zero(l)));
}

static void lower_hard_swish_grad(Lowering *l) {
    Val dy = lower_operand(l, 0), x = lower_operand(l, 1), three = lower_number(l, 3.0);
    Val slope = lower_add(l, lower_div(l, x, three), lower_number(l, 0.5));
    Val rest = lower_select(l, is_below(l, x, three), lower_mul(l, dy, slope), dy);
    lower_give(l, 0, lower_select(l, lower_binary(l, OP_le, x, lower_number(l, -3.0)), zero(l), rest));
}

/* ---- mish -------------------------------------------------------------------------------------------------------- */

static const double MISH_THRESHOLD = 20.0;

/* With e = exp(x) and n = e (e + 2):  tanh(log(1 + e)) = n / (n + 2), and its derivative is 4 e (1 + e) / (n + 2)^2. */
typedef struct Mish {
    Val e, n, below; /* below: n + 2 */
    Val linear;      /* x > 20, where no f32 is nearer than x */
} Mish;

static Mish mish_of(Lowering *l, Val x) {
    Val threshold = lower_number(l, MISH_THRESHOLD), two = lower_number(l, 2.0);
    Mish m = {.linear = is_below(l, threshold, x)};
    m.e = lower_unary(l, OP_exp, lower_binary(l, OP_minimum, x, threshold));
    m.n = lower_mul(l, m.e, lower_add(l, m.e, two));
    m.below = lower_add(l, m.n, two);
    return m;
}

static void lower_mish(Lowering *l) {
    Val x = lower_operand(l, 0);
    Mish m = mish_of(l, x);
    lower_give(l, 0, lower_select(l, m.linear, x, lower_mul(l, x, lower_div(l, m.n, m.below))));
}

static void lower_mish_grad(Lowering *l) {
    Val dy = lower_operand(l, 0), x = lower_operand(l, 1);
    Mish m = mish_of(l, x);
    Val t = lower_div(l, m.n, m.below);
    Val rise = lower_div(l, lower_scaled(l, m.e, 4.0), m.below); /* 4 e / (n + 2) */
    Val share = lower_div(l, lower_add(l, one(l), m.e), m.below);
    Val slope = lower_add(l, t, lower_mul(l, x, lower_mul(l, rise, share)));
    lower_give(l, 0, lower_select(l, m.linear, dy, lower_mul(l, dy, slope)));
}

/* ---- a weight for each channel ----------------------------------------------------------------------------------- */

/* Operand |i|, a vector, beside a value of the shape of |like| in the op's form. */
static Val beside_channels(Lowering *l, int i, Val like) {
    Val weight = lower_plain_operand(l, i);
    int rank = ir_shape(l->f, like)->rank;
    if (dim_is_one(ir_shape(l->f, weight)->d[0]) || l->form == FORM_LAST || rank <= 2) return weight;
    Shape s = shape_of(1, ir_shape(l->f, weight)->d);
    while (s.rank < rank - 1) s.d[s.rank++] = dim_const(1);
    return lower_reshape(l, weight, &s);
}

static void lower_prelu(Lowering *l) {
    Val x = lower_operand(l, 0);
    lower_give(l, 0, scaled_below(l, x, x, beside_channels(l, 1, x)));
}

static void lower_prelu_grad(Lowering *l) {
    Val dy = lower_operand(l, 0), x = lower_operand(l, 1), weight = beside_channels(l, 2, x);
    const Shape own = *ir_shape(l->f, l->op->out[1]);
    int rank = ir_shape(l->f, x)->rank;
    bool is_shared = dim_is_one(own.d[0]), folded[MAX_RANK] = {false};
    for (int i = 0; i < rank; i++) folded[lower_place_of(l, i, rank)] = is_shared || i != 1;
    lower_give(l, 0, scaled_below(l, x, dy, weight));
    Val part = lower_select(l, is_below(l, zero(l), x), zero(l), lower_mul(l, dy, x));
    Val total = lower_reduce(l, OP_reduce_sum, part, folded, false);
    lower_give_as(l, 1, lower_reshape(l, total, &own), FORM_PLAIN);
}

/* ---- reciprocals, exponentials, logarithms, signs ---------------------------------------------------------------- */

static void lower_reciprocal(Lowering *l) {
    Val x = lower_operand(l, 0);
    lower_give(l, 0, lower_div(l, one(l), x));
}

/* -dy y^2 */
static void lower_reciprocal_grad(Lowering *l) {
    Val dy = lower_unary(l, OP_neg, lower_operand(l, 0)), y = lower_operand(l, 1);
    lower_give(l, 0, lower_mul(l, dy, lower_mul(l, y, y)));
}

static void lower_expm1_grad(Lowering *l) {
    Val dy = lower_operand(l, 0), y = lower_operand(l, 1);
    lower_give(l, 0, lower_mul(l, dy, lower_add(l, y, one(l))));
}

static void lower_log1p_grad(Lowering *l) {
    Val dy = lower_operand(l, 0), x = lower_operand(l, 1);
    lower_give(l, 0, lower_div(l, dy, lower_add(l, x, one(l))));
}

/* 0 at NaN, too */
static void lower_sign(Lowering *l) {
    Val x = lower_operand(l, 0), negative = is_below(l, x, zero(l));
    Val rest = lower_select(l, negative, lower_number(l, -1.0), zero(l));
    lower_give(l, 0, lower_select(l, is_below(l, zero(l), x), one(l), rest));
}

/* ---- extremes of two --------------------------------------------------------------------------------------------- */

/* The loser gets nothing, equals one half each; beside a NaN none loses. */
static void lower_extremes_grad(Lowering *l) {
    bool largest = l->op->code == OP_maximum_grad;
    Val dy = lower_operand(l, 0), a = lower_operand(l, 1), b = lower_operand(l, 2);
    Val equal = lower_binary(l, OP_eq, a, b), share = lower_select(l, equal, lower_scaled(l, dy, 0.5), dy);
    Val a_below = is_below(l, a, b), b_below = is_below(l, b, a), none = zero(l);
    lower_give(l, 0, lower_select(l, largest ? a_below : b_below, none, share));
    lower_give(l, 1, lower_select(l, largest ? b_below : a_below, none, share));
}

const LowerRow lower_activation_ops[OP_COUNT] = {
    [OP_leaky_relu] = {lower_leaky_relu, TAKES_EITHER},
    [OP_leaky_relu_grad] = {lower_leaky_relu_grad, TAKES_EITHER},
    [OP_elu] = {lower_elu, TAKES_EITHER},
    [OP_elu_grad] = {lower_elu_grad, TAKES_EITHER},
    [OP_hard_sigmoid] = {lower_hard_sigmoid, TAKES_EITHER},
    [OP_hard_sigmoid_grad] = {lower_hard_sigmoid_grad, TAKES_EITHER},
    [OP_hard_swish] = {lower_hard_swish, TAKES_EITHER},
    [OP_hard_swish_grad] = {lower_hard_swish_grad, TAKES_EITHER},
    [OP_mish] = {lower_mish, TAKES_EITHER},
    [OP_mish_grad] = {lower_mish_grad, TAKES_EITHER},
    [OP_prelu] = {lower_prelu, TAKES_EITHER},
    [OP_prelu_grad] = {lower_prelu_grad, TAKES_EITHER},
    [OP_reciprocal] = {lower_reciprocal, TAKES_EITHER},
    [OP_reciprocal_grad] = {lower_reciprocal_grad, TAKES_EITHER},
    [OP_expm1_grad] = {lower_expm1_grad, TAKES_EITHER},
    [OP_log1p_grad] = {lower_log1p_grad, TAKES_EITHER},
    [OP_sign] = {lower_sign, TAKES_EITHER},
    [OP_maximum_grad] = {lower_extremes_grad, TAKES_EITHER},
    [OP_minimum_grad] = {lower_extremes_grad, TAKES_EITHER},
};
