/* gradient.c: one small function per GradRule.  x, a, b: operands; y: result; dy: gradient of the result.
 *
 * Each backward op runs in the dtype that its forward op was given: dy has the dtype of y.  Formulas and the order of
 * operands' gradients are PyTorch's (tools/autograd/derivatives.yaml), because gradients of a value that several ops
 * read are added in the order in which they are made.
 */
#include "passes/gradient.h"
#include "passes/place.h"

static Val operand(const Backward *b, int i) { return b->op->in[i]; }
static Val result(const Backward *b) { return b->op->out[0]; }
static Dtype dtype(const Backward *b, Val v) { return ir_dtype(b->f, v); }

static bool not_built(Backward *b, const char *what) {
    place_error(b->context, b->op->pos, "%s: the gradient of %s is not built yet", b->op->path, what);
    return false;
}

/* ---- products ---------------------------------------------------------------------------------------------------- */

/* Factors of a product have one dtype; dy differs from theirs where they are tf32, or where the product was made to
 * return f32. */
static Val dy_as_factor(Backward *b) {
    bool needed = backward_wants(b, 0) || backward_wants(b, 1);
    return needed ? backward_dy_as(b, dtype(b, operand(b, 0))) : NO_VAL;
}

static Val product(Backward *b, int to, Val first, bool ta, Val second, bool tb) {
    Op *o = backward_op(b, OP_matmul, first, second);
    ir_attr(o, "ta")->b = ta;
    ir_attr(o, "tb")->b = tb;
    return backward_result(b, o, gradient_dtype(b->f, operand(b, to)));
}

/* Sums the rows: the gradient of a bias. */
static Val sum_rows(Backward *b, Val dy) {
    Op *o = backward_op(b, OP_sum, dy, NO_VAL);
    ir_attr(o, "dims")->dims = (Dims){ .count = 1, .at = { 0 } };
    return backward_result(b, o, dtype(b, dy));
}

/* y = x w^T + bias: dx = dy w, dw = dy^T x, dbias = sum of dy over its rows.
 * transposed, y = x w + bias: dx = dy w^T, dw = x^T dy. */
static bool linear(Backward *b) {
    Val x = operand(b, 0), w = operand(b, 1);
    bool transposed = ir_attr(b->op, "transposed")->b;
    if (ir_shape(b->f, x)->rank != 2) return not_built(b, "a linear layer whose input has a rank other than 2");
    Val factor = dy_as_factor(b);
    if (backward_wants(b, 0)) backward_give(b, 0, product(b, 0, factor, false, w, transposed));
    if (backward_wants(b, 1))
        backward_give(b, 1, transposed ? product(b, 1, x, true, factor, false) : product(b, 1, factor, true, x, false));
    if (backward_wants(b, 2)) backward_give(b, 2, sum_rows(b, b->dy));
    return true;
}

/* y = A B: dA = dy B^T, dB = A^T dy, where A is a or, with ta, a^T; the gradient of a is then dA^T. */
static bool matmul(Backward *b) {
    Val x = operand(b, 0), w = operand(b, 1), factor = dy_as_factor(b);
    bool ta = ir_attr(b->op, "ta")->b, tb = ir_attr(b->op, "tb")->b;
    if (backward_wants(b, 0))
        backward_give(b, 0, ta ? product(b, 0, w, tb, factor, true) : product(b, 0, factor, false, w, !tb));
    if (backward_wants(b, 1))
        backward_give(b, 1, tb ? product(b, 1, factor, true, x, ta) : product(b, 1, x, !ta, factor, false));
    return true;
}

/* ---- activations: one op of (dy, y) or (dy, x) ------------------------------------------------------------------- */

static void copy_attr(const Backward *b, Op *to, const char *name) { *ir_attr(to, name) = *ir_attr(b->op, name); }

/* dx = code(dy, v), with the forward op's attribute |attr| where there is one, in the dtype of x. */
static bool one_op(Backward *b, Opcode code, Val v, const char *attr) {
    Op *o = backward_op(b, code, b->dy, v);
    if (attr) copy_attr(b, o, attr);
    backward_give(b, 0, backward_result(b, o, gradient_dtype(b->f, operand(b, 0))));
    return true;
}

static bool relu(Backward *b) { return one_op(b, OP_relu_grad, result(b), NULL); }
static bool gelu(Backward *b) { return one_op(b, OP_gelu_grad, operand(b, 0), "approximate"); }
static bool sigmoid(Backward *b) { return one_op(b, OP_sigmoid_grad, result(b), NULL); }
static bool tanh_rule(Backward *b) { return one_op(b, OP_tanh_grad, result(b), NULL); }
static bool softmax(Backward *b) { return one_op(b, OP_softmax_grad, result(b), "dim"); }
static bool log_softmax(Backward *b) { return one_op(b, OP_log_softmax_grad, result(b), "dim"); }

/* The same mask: the same key at the same iteration. */
static bool dropout(Backward *b) {
    Op *o = backward_op(b, OP_dropout, b->dy, NO_VAL);
    const char *key = ir_attr(b->op, "key")->s;
    copy_attr(b, o, "p");
    ir_attr(o, "key")->s = key && *key ? key : b->op->path;
    backward_give(b, 0, backward_result(b, o, dtype(b, b->dy)));
    return true;
}

/* ---- reductions and losses --------------------------------------------------------------------------------------- */

static bool spread(Backward *b, bool mean) {
    Val x = operand(b, 0);
    Dtype t = gradient_dtype(b->f, x);
    Val dy = backward_dy_as(b, t);
    backward_wants(b, 0);
    Op *o = backward_op(b, OP_broadcast_to, dy, x);
    copy_attr(b, o, "dims");
    ir_attr(o, "mean")->b = mean;
    backward_give(b, 0, backward_result(b, o, t));
    return true;
}

static bool sum(Backward *b) { return spread(b, false); }
static bool mean(Backward *b) { return spread(b, true); }

static bool nll_loss(Backward *b) {
    Val logp = operand(b, 0);
    Val g = backward_emit(b, OP_nll_loss_grad, gradient_dtype(b->f, logp), 3, b->dy, logp, operand(b, 1));
    Op *o = ir_def(b->f, g);
    copy_attr(b, o, "label_smoothing");
    copy_attr(b, o, "ignore");
    backward_give(b, 0, g);
    return true;
}

/* ---- arithmetic -------------------------------------------------------------------------------------------------- */

static Val unary(Backward *b, Opcode code, Val v) { return backward_emit(b, code, dtype(b, b->dy), 1, v); }
static Val binary(Backward *b, Opcode code, Val v, Val w) { return backward_emit(b, code, dtype(b, b->dy), 2, v, w); }

/* The gradient of a cast is the reverse cast, which backward_give makes. */
static bool cast(Backward *b) {
    backward_give(b, 0, b->dy);
    return true;
}

static bool add(Backward *b) {
    if (backward_wants(b, 0)) backward_give(b, 0, b->dy);
    if (backward_wants(b, 1)) backward_give(b, 1, b->dy);
    return true;
}

static bool sub(Backward *b) {
    if (backward_wants(b, 0)) backward_give(b, 0, b->dy);
    if (backward_wants(b, 1)) backward_give(b, 1, unary(b, OP_neg, b->dy));
    return true;
}

static bool mul(Backward *b) {
    if (backward_wants(b, 0)) backward_give(b, 0, binary(b, OP_mul, b->dy, operand(b, 1)));
    if (backward_wants(b, 1)) backward_give(b, 1, binary(b, OP_mul, b->dy, operand(b, 0)));
    return true;
}

/* y = a / b: da = dy / b, db = -dy y / b */
static bool div_rule(Backward *b) {
    Val divisor = operand(b, 1);
    if (backward_wants(b, 0)) backward_give(b, 0, binary(b, OP_div, b->dy, divisor));
    if (backward_wants(b, 1))
        backward_give(b, 1, binary(b, OP_mul, unary(b, OP_neg, b->dy), binary(b, OP_div, result(b), divisor)));
    return true;
}

static bool neg(Backward *b) {
    backward_give(b, 0, unary(b, OP_neg, b->dy));
    return true;
}

/* dx = dy y */
static bool exp_rule(Backward *b) {
    backward_give(b, 0, binary(b, OP_mul, b->dy, result(b)));
    return true;
}

/* dx = dy / x */
static bool log_rule(Backward *b) {
    backward_give(b, 0, binary(b, OP_div, b->dy, operand(b, 0)));
    return true;
}

/* dx = dy / (2 y) */
static bool sqrt_rule(Backward *b) {
    Val two = backward_emit(b, OP_const, AMP_DT_F32, 0);
    ir_attr(ir_def(b->f, two), "value")->f = 2.0;
    backward_give(b, 0, binary(b, OP_div, b->dy, binary(b, OP_mul, result(b), two)));
    return true;
}

/* ---- the table --------------------------------------------------------------------------------------------------- */

static const Gradient rules[GRAD_RULE_COUNT] = {
    [GRAD_LINEAR] = { linear, { "input", "weight", "bias" } },
    [GRAD_MATMUL] = { matmul, { "a", "b" } },
    [GRAD_RELU] = { relu, { 0 } },
    [GRAD_GELU] = { gelu, { 0 } },
    [GRAD_SIGMOID] = { sigmoid, { 0 } },
    [GRAD_DROPOUT] = { dropout, { 0 } },
    [GRAD_SUM] = { sum, { 0 } },
    [GRAD_MEAN] = { mean, { 0 } },
    [GRAD_SOFTMAX] = { softmax, { 0 } },
    [GRAD_LOG_SOFTMAX] = { log_softmax, { 0 } },
    [GRAD_NLL_LOSS] = { nll_loss, { 0 } },
    [GRAD_CAST] = { cast, { 0 } },
    [GRAD_ADD] = { add, { "a", "b" } },
    [GRAD_SUB] = { sub, { "a", "b" } },
    [GRAD_MUL] = { mul, { "a", "b" } },
    [GRAD_DIV] = { div_rule, { "a", "b" } },
    [GRAD_NEG] = { neg, { 0 } },
    [GRAD_EXP] = { exp_rule, { 0 } },
    [GRAD_LOG] = { log_rule, { 0 } },
    [GRAD_SQRT] = { sqrt_rule, { 0 } },
    [GRAD_TANH] = { tanh_rule, { 0 } },
    [GRAD_NONE] = { NULL, { 0 } },
};

const Gradient *gradient_rule(GradRule rule) { return rule == GRAD_UNDEFINED ? NULL : &rules[rule]; }
