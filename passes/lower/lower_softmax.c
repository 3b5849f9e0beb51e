/* lower_softmax.c: what is computed along one dimension: softmax and its kin, argmax. */
#include "passes/lower/lower.h"

typedef struct Line {
    int rank, dim; /* in the op's form */
    bool folded[MAX_RANK];
} Line;

static Line line_of(const Lowering *l) {
    Line line = {.rank = lower_plain_shape(l, l->op->in[0]).rank};
    line.dim = lower_place_of(l, ir_dim_attr(l->op, "dim", line.rank), line.rank);
    line.folded[line.dim] = true;
    return line;
}

static Val along(Lowering *l, Opcode code, Val v) {
    Line line = line_of(l);
    return lower_reduce(l, code, v, line.folded, true);
}

/* ---- softmax ----------------------------------------------------------------------------------------------------- */

/* x - max(x): exp of it cannot overflow. */
static Val shifted(Lowering *l) {
    Val x = lower_operand(l, 0);
    return lower_sub(l, x, along(l, OP_reduce_max, x));
}

static void lower_softmax(Lowering *l) {
    Val e = lower_unary(l, OP_exp, shifted(l));
    lower_give(l, 0, lower_div(l, e, along(l, OP_reduce_sum, e)));
}

static void lower_log_softmax(Lowering *l) {
    Val s = shifted(l), total = along(l, OP_reduce_sum, lower_unary(l, OP_exp, s));
    lower_give(l, 0, lower_sub(l, s, lower_unary(l, OP_log, total)));
}

/* y (dy - sum(y dy)) */
static void lower_softmax_grad(Lowering *l) {
    Val dy = lower_operand(l, 0), y = lower_operand(l, 1);
    Val dot = along(l, OP_reduce_sum, lower_mul(l, y, dy));
    lower_give(l, 0, lower_mul(l, y, lower_sub(l, dy, dot)));
}

/* dy - exp(y) sum(dy) */
static void lower_log_softmax_grad(Lowering *l) {
    Val dy = lower_operand(l, 0), p = lower_unary(l, OP_exp, lower_operand(l, 1));
    lower_give(l, 0, lower_sub(l, dy, lower_mul(l, p, along(l, OP_reduce_sum, dy))));
}

/* ---- argmax ------------------------------------------------------------------------------------------------------ */

/* i32 that broadcasts to v: the index along the line. */
static Val index_along(Lowering *l, Val v, const Line *line) {
    const Dim size = ir_shape(l->f, v)->d[line->dim];
    if (line->dim == line->rank - 1) return lower_iota(l, v);
    Shape vector = shape_of(1, &size), s = {.rank = line->rank};
    for (int i = 0; i < line->rank; i++) s.d[i] = i == line->dim ? size : dim_const(1);
    Val index = lower_iota(l, lower_expand(l, lower_number_of(l, 0, AMP_DT_I32), &vector));
    return lower_reshape(l, index, &s);
}

/* The least index of those that equal the largest; a NaN makes the largest NaN, which equals nothing, and is itself
 * unequal to itself. */
static void lower_argmax(Lowering *l) {
    Line line = line_of(l);
    Val x = lower_operand(l, 0);
    const Dim size = ir_shape(l->f, x)->d[line.dim];
    Val largest = lower_binary(l, OP_eq, x, along(l, OP_reduce_max, x));
    Val is_nan = lower_unary(l, OP_not, lower_binary(l, OP_eq, x, x));
    Val index = index_along(l, x, &line), found = lower_binary(l, OP_or, largest, is_nan);
    Val none = lower_number_of(l, size.n ? INT32_MAX : (double)size.mul, AMP_DT_I32);
    Val first = lower_reduce(l, OP_reduce_min, lower_select(l, found, index, none), line.folded, true);
    const Shape s = *ir_shape(l->f, l->op->out[0]);
    lower_give_as(l, 0, lower_reshape(l, lower_from_form(l, first), &s), FORM_PLAIN);
}

const LowerRow lower_softmax_ops[OP_COUNT] = {
    [OP_softmax] = {lower_softmax, TAKES_EITHER},
    [OP_log_softmax] = {lower_log_softmax, TAKES_EITHER},
    [OP_softmax_grad] = {lower_softmax_grad, TAKES_EITHER},
    [OP_log_softmax_grad] = {lower_log_softmax_grad, TAKES_EITHER},
    [OP_argmax] = {lower_argmax, TAKES_EITHER},
};
