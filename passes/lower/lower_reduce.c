/* lower_reduce.c: sums, means, extremes and variances over dimensions, and the gradients that spread or gather along
 * them. */
#include "passes/lower/lower.h"

/* ---- results ----------------------------------------------------------------------------------------------------- */

/* The dims of a reduction's result, which stand in the order of the op's form, by their order in the graph. */
static Dims kept_order(const Lowering *l, int rank, const bool *folded) {
    Dims out = {.count = 0};
    int rest[MAX_RANK], kept = 0, from[MAX_RANK];
    for (int i = 0; i < rank; i++) rest[i] = 0;
    for (int d = 0; d < rank; d++) from[lower_place_of(l, d, rank)] = d;
    for (int i = 0; i < rank; i++)
        if (!folded[i]) rest[from[i]] = 1;
    for (int d = 0; d < rank; d++) rest[d] = rest[d] ? kept++ : -1;
    for (int i = 0; i < rank; i++)
        if (!folded[i]) out.at[out.count++] = rest[from[i]];
    return out;
}

/* |v| is the reduction of a value of rank |rank| in the op's form. */
static void give_reduced(Lowering *l, Val v, int rank, const bool *folded, bool keep) {
    if (keep || l->form == FORM_PLAIN) {
        lower_give(l, 0, v);
        return;
    }
    Dims order = kept_order(l, rank, folded), back = {.count = order.count};
    bool is_last = order.count >= 3 && order.at[0] == 0 && order.at[order.count - 1] == 1;
    for (int i = 1; i + 1 < order.count && is_last; i++) is_last = order.at[i] == i + 1;
    for (int i = 0; i < order.count; i++) back.at[order.at[i]] = i;
    if (is_last) lower_give_as(l, 0, v, FORM_LAST);
    else lower_give_as(l, 0, lower_permute(l, v, &back), FORM_PLAIN);
}

typedef struct Reduction {
    Val x;
    int rank;
    bool folded[MAX_RANK], keep;
} Reduction;

static Reduction reduction_of(Lowering *l) {
    Reduction r = {.x = lower_operand(l, 0), .keep = lower_bool(l, "keep")};
    r.rank = ir_shape(l->f, r.x)->rank;
    lower_folded_dims(l, r.rank, r.folded);
    return r;
}

static void give(Lowering *l, const Reduction *r, Val v) { give_reduced(l, v, r->rank, r->folded, r->keep); }

/* ---- reductions -------------------------------------------------------------------------------------------------- */

static void lower_sum(Lowering *l) {
    Reduction r = reduction_of(l);
    give(l, &r, lower_reduce(l, OP_reduce_sum, r.x, r.folded, r.keep));
}

static void lower_mean(Lowering *l) {
    Reduction r = reduction_of(l);
    give(l, &r, lower_mean_of(l, r.x, r.folded, r.keep));
}

static void lower_extreme(Lowering *l) {
    Reduction r = reduction_of(l);
    give(l, &r, lower_reduce(l, l->op->code == OP_max ? OP_reduce_max : OP_reduce_min, r.x, r.folded, r.keep));
}

/* max(count - correction, 0) */
static Val freedom(Lowering *l, Val x, const bool *folded) {
    double correction = (double)lower_int(l, "correction");
    Val count = lower_count(l, x, folded);
    const Op *o = ir_def(l->f, count);
    if (o->code == OP_const) {
        double rest = ir_attr(o, "value")->f - correction;
        return lower_number(l, rest > 0 ? rest : 0);
    }
    if (correction == 0) return count;
    Val zero = lower_number(l, 0.0);
    return lower_binary(l, OP_maximum, lower_sub(l, count, lower_number(l, correction)), zero);
}

/* x - mean(x): the differences are taken before squares, so that a large mean costs no digits. */
static Val centred(Lowering *l, Val x, const bool *folded) {
    return lower_sub(l, x, lower_mean_of(l, x, folded, true));
}

static void lower_var(Lowering *l) {
    Reduction r = reduction_of(l);
    Val d = centred(l, r.x, r.folded);
    Val total = lower_reduce(l, OP_reduce_sum, lower_mul(l, d, d), r.folded, r.keep);
    give(l, &r, lower_divide_by_count(l, total, freedom(l, r.x, r.folded)));
}

/* ---- gradients --------------------------------------------------------------------------------------------------- */

/* dy * 2 (x - mean) / (count - correction) */
static void lower_var_grad(Lowering *l) {
    Val dy = lower_reduced_operand(l, 0), x = lower_operand(l, 1);
    bool folded[MAX_RANK];
    lower_folded_dims(l, ir_shape(l->f, x)->rank, folded);
    Val count = freedom(l, x, folded), share = lower_divide_by_count(l, lower_scaled(l, dy, 2.0), count);
    lower_give(l, 0, lower_mul(l, share, centred(l, x, folded)));
}

/* dy / (how many equal y) where x equals y, else 0; where y is NaN nothing equals it, and all are NaN, as in
 * PyTorch. */
static void lower_extreme_grad(Lowering *l) {
    Val dy = lower_reduced_operand(l, 0), x = lower_operand(l, 1), y = lower_reduced_operand(l, 2);
    bool folded[MAX_RANK];
    lower_folded_dims(l, ir_shape(l->f, x)->rank, folded);
    Val zero = lower_number(l, 0), one = lower_number(l, 1), equal = lower_binary(l, OP_eq, x, y);
    Val mask = lower_select(l, equal, one, zero), count = lower_reduce(l, OP_reduce_sum, mask, folded, true);
    lower_give(l, 0, lower_mul(l, mask, lower_div(l, dy, count)));
}

/* Sums the dims that `like` lacks, and those where it has size 1 and dy more. */
static void lower_sum_to(Lowering *l) {
    const Shape from = lower_plain_shape(l, l->op->in[0]), to = *ir_shape(l->f, l->op->out[0]);
    bool folded[MAX_RANK] = {0};
    for (int i = 0, lacking = from.rank - to.rank; i < from.rank; i++)
        folded[lower_place_of(l, i, from.rank)] =
            i < lacking || (dim_is_one(to.d[i - lacking]) && !dim_is_one(from.d[i]));
    if (from.rank == to.rank) {
        lower_give(l, 0, lower_reduce(l, OP_reduce_sum, lower_operand(l, 0), folded, true));
        return;
    }
    if (to.rank == 1 && dim_equal(to.d[0], from.d[from.rank - 1])) {
        lower_give_as(l, 0, lower_reduce(l, OP_reduce_sum, lower_operand(l, 0), folded, false), FORM_PLAIN);
        return; /* a vector has one form, and what reads it can be in the sum's kernel */
    }
    Val sum = lower_from_form(l, lower_reduce(l, OP_reduce_sum, lower_operand(l, 0), folded, true));
    lower_give_as(l, 0, lower_reshape(l, sum, &to), FORM_PLAIN);
}

static void lower_broadcast_to(Lowering *l) {
    const Shape like = lower_shape_in_form(l, ir_shape(l->f, l->op->out[0]));
    const Dims *dims = &ir_attr(l->op, "dims")->dims;
    bool folded[MAX_RANK], flat = like.rank <= 2;
    lower_folded_dims(l, like.rank, folded);
    Val dy = flat ? lower_operand(l, 0) : lower_reduced_operand(l, 0);
    if (lower_bool(l, "mean")) dy = lower_divide_by_count(l, dy, lower_count(l, lower_given(l, 1), folded));
    lower_give(l, 0, flat ? lower_broadcast(l, dy, l->op->in[1], dims) : lower_expand(l, dy, &like));
}

Val lower_broadcast(Lowering *l, Val v, Val like, const Dims *dims) {
    Op *o = ir_op_new(l->f, OP_broadcast, (Val[]){v, like}, 2);
    ir_attr(o, "dims")->dims = *dims;
    return ir_make_results(l->f, o, ir_dtype(l->f, v), NULL);
}

const LowerRow lower_reduce_ops[OP_COUNT] = {
    [OP_sum] = {lower_sum, TAKES_EITHER},
    [OP_mean] = {lower_mean, TAKES_EITHER},
    [OP_max] = {lower_extreme, TAKES_EITHER},
    [OP_min] = {lower_extreme, TAKES_EITHER},
    [OP_var] = {lower_var, TAKES_EITHER},
    [OP_var_grad] = {lower_var_grad, TAKES_EITHER},
    [OP_extreme_grad] = {lower_extreme_grad, TAKES_EITHER},
    [OP_sum_to] = {lower_sum_to, TAKES_EITHER},
    [OP_broadcast_to] = {lower_broadcast_to, TAKES_EITHER},
};
