/* lower_reduce.c: sums, means, softmax and its kin, and the gradients that spread or gather along dimensions. */
#include "passes/lower.h"

/* ---- sums -------------------------------------------------------------------------------------------------------- */

/* The dims of the op's attribute as flags; none given: all. */
static void folded_dims(const Lowering *l, int rank, bool *folded) {
    const Dims *dims = &ir_attr(l->op, "dims")->dims;
    for (int i = 0; i < rank; i++) folded[i] = !dims->count;
    for (int i = 0; i < dims->count; i++) folded[dims->at[i] < 0 ? dims->at[i] + rank : dims->at[i]] = true;
}

static Val sum(Lowering *l) {
    int rank = ir_shape(l->f, l->op->in[0])->rank;
    bool folded[MAX_RANK] = {0}, kept[MAX_RANK];
    folded_dims(l, rank, folded);
    for (int i = 0; i < rank; i++) kept[i] = lower_bool(l, "keep");
    return lower_reduce(l, OP_reduce_sum, lower_operand(l, 0), folded, kept);
}

void lower_sum(Lowering *l) { lower_give(l, 0, sum(l)); }

void lower_mean(Lowering *l) {
    Val total = sum(l);
    if (!total.id) return;
    Val count = lower_extent(l, l->op->in[0], &ir_attr(l->op, "dims")->dims);
    lower_give(l, 0, lower_binary(l, OP_div, total, count));
}

/* Sums the dims that `like` lacks, and those where it has size 1 and dy more. */
void lower_sum_to(Lowering *l) {
    const Shape *from = ir_shape(l->f, l->op->in[0]), *to = ir_shape(l->f, l->op->in[1]);
    bool folded[MAX_RANK] = {0}, kept[MAX_RANK] = {0};
    for (int i = 0, lacking = from->rank - to->rank; i < from->rank; i++) {
        kept[i] = i >= lacking;
        folded[i] = !kept[i] || (dim_is_one(to->d[i - lacking]) && !dim_is_one(from->d[i]));
    }
    lower_give(l, 0, lower_reduce(l, OP_reduce_sum, lower_operand(l, 0), folded, kept));
}

void lower_broadcast_to(Lowering *l) {
    const Dims *dims = &ir_attr(l->op, "dims")->dims;
    Val dy = lower_operand(l, 0), like = l->op->in[1];
    if (lower_bool(l, "mean")) dy = lower_binary(l, OP_div, dy, lower_extent(l, like, dims));
    lower_give(l, 0, lower_broadcast(l, dy, like, dims));
}

/* ---- softmax ----------------------------------------------------------------------------------------------------- */

/* x - max(x) along the row: exp of it cannot overflow. */
static Val shifted(Lowering *l) {
    Val x = lower_operand(l, 0);
    return lower_binary(l, OP_sub, x, lower_reduce_row(l, OP_reduce_max, x));
}

void lower_softmax(Lowering *l) {
    if (!lower_dim_is_last(l)) return;
    Val e = lower_unary(l, OP_exp, shifted(l));
    lower_give(l, 0, lower_binary(l, OP_div, e, lower_reduce_row(l, OP_reduce_sum, e)));
}

void lower_log_softmax(Lowering *l) {
    if (!lower_dim_is_last(l)) return;
    Val s = shifted(l), total = lower_reduce_row(l, OP_reduce_sum, lower_unary(l, OP_exp, s));
    lower_give(l, 0, lower_binary(l, OP_sub, s, lower_unary(l, OP_log, total)));
}

/* y (dy - sum(y dy)) */
void lower_softmax_grad(Lowering *l) {
    if (!lower_dim_is_last(l)) return;
    Val dy = lower_operand(l, 0), y = lower_operand(l, 1);
    Val dot = lower_reduce_row(l, OP_reduce_sum, lower_binary(l, OP_mul, y, dy));
    lower_give(l, 0, lower_binary(l, OP_mul, y, lower_binary(l, OP_sub, dy, dot)));
}

/* dy - exp(y) sum(dy) */
void lower_log_softmax_grad(Lowering *l) {
    if (!lower_dim_is_last(l)) return;
    Val dy = lower_operand(l, 0), p = lower_unary(l, OP_exp, lower_operand(l, 1));
    lower_give(l, 0, lower_binary(l, OP_sub, dy, lower_binary(l, OP_mul, p, lower_reduce_row(l, OP_reduce_sum, dy))));
}
