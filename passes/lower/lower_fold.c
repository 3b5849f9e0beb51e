/* lower_fold.c: folds that are more than one reduction, logsumexp, norm, prod and cumsum, and their gradients. */
#include "passes/lower/lower.h"

#include <math.h>

static Val zero(Lowering *l) { return lower_number(l, 0.0); }

static Val sum(Lowering *l, const FoldedOperand *r, Val v, bool keep) {
    return lower_reduce(l, OP_reduce_sum, v, r->folded, keep);
}

/* (dy, x, y) of a gradient, dy and y with kept dims. */
typedef struct FoldedGradient {
    Val dy, x, y;
    bool folded[MAX_RANK];
} FoldedGradient;

static FoldedGradient gradient_of(Lowering *l) {
    FoldedGradient g = {.dy = lower_reduced_operand(l, 0), .x = lower_operand(l, 1)};
    if (l->op->n_in > 2) g.y = lower_reduced_operand(l, 2);
    lower_folded_dims(l, ir_shape(l->f, g.x)->rank, g.folded);
    return g;
}

/* ---- logsumexp --------------------------------------------------------------------------------------------------- */

/* max + log(sum(exp(x - max))); where the largest is infinite or NaN it says the rest by itself. */
static void lower_logsumexp(Lowering *l) {
    FoldedOperand r = lower_folded_operand(l);
    Val largest = lower_reduce(l, OP_reduce_max, r.x, r.folded, true);
    Val shift = lower_select(l, lower_unary(l, OP_is_finite, largest), largest, zero(l));
    Val total = sum(l, &r, lower_unary(l, OP_exp, lower_sub(l, r.x, shift)), r.keep);
    const Shape s = *ir_shape(l->f, total);
    lower_give_folded(l, &r, lower_add(l, lower_unary(l, OP_log, total), lower_reshape(l, shift, &s)));
}

static void lower_logsumexp_grad(Lowering *l) {
    FoldedGradient g = gradient_of(l);
    lower_give(l, 0, lower_mul(l, g.dy, lower_unary(l, OP_exp, lower_sub(l, g.x, g.y))));
}

/* ---- norms ------------------------------------------------------------------------------------------------------- */

static Val to_the(Lowering *l, Val v, double e) {
    if (e == 1.0) return v;
    if (e == 2.0) return lower_mul(l, v, v);
    if (e == 0.5) return lower_unary(l, OP_sqrt, v);
    Val y = lower_unary(l, OP_pow, v);
    ir_attr(ir_def(l->f, y), "e")->f = e;
    return y;
}

static Val sum_of_squares(Lowering *l, const FoldedOperand *r, double scale) {
    Val v = scale == 1.0 ? r->x : lower_scaled(l, r->x, scale);
    return sum(l, r, lower_mul(l, v, v), r->keep);
}

/* Of squares that f32 holds.  Below 2^-80 they may have lost digits, and above f32 they are infinite: then the result
 * comes from the squares of 2^96 or 2^-96 times the numbers, which are added up in the same loop. */
static Val root_of_squares(Lowering *l, const FoldedOperand *r) {
    static const double SCALE = 0x1p96;
    Val plain = sum_of_squares(l, r, 1.0), up = sum_of_squares(l, r, SCALE), down = sum_of_squares(l, r, 1 / SCALE);
    Val fits = lower_binary(l, OP_lt, plain, lower_number(l, INFINITY));
    Val is_tiny = lower_binary(l, OP_lt, plain, lower_number(l, 0x1p-80));
    Val squares = lower_select(l, is_tiny, up, lower_select(l, fits, plain, down));
    Val one = lower_number(l, 1.0), large = lower_number(l, SCALE), back = lower_select(l, fits, one, large);
    back = lower_select(l, is_tiny, lower_number(l, 1 / SCALE), back);
    return lower_mul(l, lower_unary(l, OP_sqrt, squares), back);
}

static void lower_norm(Lowering *l) {
    FoldedOperand r = lower_folded_operand(l);
    double p = lower_float(l, "p");
    if (p == 2.0) {
        lower_give_folded(l, &r, root_of_squares(l, &r));
        return;
    }
    if (p == 0.0) { /* a NaN is not 0 */
        Val one = lower_number(l, 1.0), is_zero = lower_binary(l, OP_eq, r.x, zero(l));
        lower_give_folded(l, &r, sum(l, &r, lower_select(l, is_zero, zero(l), one), r.keep));
        return;
    }
    if (isinf(p)) {
        Val size = lower_unary(l, OP_abs, r.x);
        lower_give_folded(l, &r, lower_reduce(l, OP_reduce_max, size, r.folded, r.keep));
        return;
    }
    Val size = to_the(l, lower_unary(l, OP_abs, r.x), p);
    lower_give_folded(l, &r, to_the(l, sum(l, &r, size, r.keep), 1.0 / p));
}

Val lower_signed_by(Lowering *l, Val v, Val x) {
    Val rest = lower_select(l, lower_binary(l, OP_lt, x, zero(l)), lower_unary(l, OP_neg, v), zero(l));
    return lower_select(l, lower_binary(l, OP_lt, zero(l), x), v, rest);
}

/* dy sign(x), shared evenly by those whose |x| is y; where y is NaN, by those that are NaN and have no sign. */
static void lower_largest_norm_grad(Lowering *l, const FoldedGradient *g) {
    Val one = lower_number(l, 1.0), equal = lower_binary(l, OP_eq, lower_unary(l, OP_abs, g->x), g->y);
    Val is_nan = lower_unary(l, OP_not, lower_binary(l, OP_eq, g->x, g->x));
    Val mask = lower_select(l, lower_binary(l, OP_or, equal, is_nan), one, zero(l));
    Val count = lower_reduce(l, OP_reduce_sum, mask, g->folded, true);
    lower_give(l, 0, lower_signed_by(l, lower_mul(l, mask, lower_div(l, g->dy, count)), g->x));
}

/* dy x / y; 0 where y is.  Where y is huge or tiny, so that dy / y may be nothing or infinite, x and y are brought near
 * 1 by a power of two. */
static Val root_slope(Lowering *l, const FoldedGradient *g) {
    static const double FAR = 0x1p64;
    Val far = lower_number(l, FAR), near = lower_number(l, 1 / FAR), one = lower_number(l, 1.0);
    Val is_huge = lower_binary(l, OP_lt, far, g->y), is_tiny = lower_binary(l, OP_lt, g->y, near);
    Val scale = lower_select(l, is_tiny, far, lower_select(l, is_huge, near, one));
    Val share = lower_div(l, g->dy, lower_mul(l, g->y, scale));
    share = lower_select(l, lower_binary(l, OP_eq, g->y, zero(l)), zero(l), share);
    return lower_mul(l, lower_mul(l, g->x, scale), share);
}

/* dy sign(x) (|x| / y)^(p - 1); 0 where x or y is */
static void lower_norm_grad(Lowering *l) {
    FoldedGradient g = gradient_of(l);
    double p = lower_float(l, "p");
    if (p == 0.0) {
        lower_give(l, 0, lower_expand(l, zero(l), ir_shape(l->f, g.x)));
        return;
    }
    if (isinf(p)) {
        lower_largest_norm_grad(l, &g);
        return;
    }
    if (p == 1.0) {
        lower_give(l, 0, lower_signed_by(l, g.dy, g.x));
        return;
    }
    if (p == 2.0) {
        lower_give(l, 0, root_slope(l, &g));
        return;
    }
    Val share = lower_div(l, g.dy, to_the(l, g.y, p - 1.0));
    share = lower_select(l, lower_binary(l, OP_eq, g.y, zero(l)), zero(l), share);
    Val size = to_the(l, lower_unary(l, OP_abs, g.x), p - 1.0);
    Val is_nan = lower_unary(l, OP_not, lower_binary(l, OP_eq, g.x, g.x));
    Val slope = lower_select(l, is_nan, g.x, lower_signed_by(l, size, g.x));
    lower_give(l, 0, lower_mul(l, slope, share));
}

/* ---- products ---------------------------------------------------------------------------------------------------- */

static void lower_prod(Lowering *l) {
    FoldedOperand r = lower_folded_operand(l);
    lower_give_folded(l, &r, lower_reduce(l, OP_reduce_prod, r.x, r.folded, r.keep));
}

/* dy times the product of the others: where the only 0 is, of all that are not 0, and 0 beside it. */
static void lower_prod_grad(Lowering *l) {
    FoldedGradient g = gradient_of(l);
    Val one = lower_number(l, 1.0), is_zero = lower_binary(l, OP_eq, g.x, zero(l));
    Val count = lower_reduce(l, OP_reduce_sum, lower_select(l, is_zero, one, zero(l)), g.folded, true);
    Val rest = lower_reduce(l, OP_reduce_prod, lower_select(l, is_zero, one, g.x), g.folded, true);
    Val of_one = lower_select(l, lower_binary(l, OP_eq, count, one), rest, zero(l));
    Val of_none = lower_select(l, lower_binary(l, OP_eq, count, zero(l)), rest, zero(l));
    Val others = lower_select(l, is_zero, of_one, lower_div(l, of_none, g.x));
    lower_give(l, 0, lower_mul(l, g.dy, others));
}

/* ---- running sums ------------------------------------------------------------------------------------------------ */

static Op *along(Lowering *l, Opcode code, Val v, int dim) {
    Op *o = lower_op_of(l, code, &v, 1);
    ir_attr(o, "dim")->i = dim;
    return o;
}

/* x moved by |step| places along |dim|, away from its start or with |reverse| from its end; zeros come in. */
static Val moved(Lowering *l, Val x, int dim, int64_t step, bool reverse) {
    const Shape whole = *ir_shape(l->f, x);
    int64_t size = whole.d[dim].mul;
    Shape part = whole;
    part.d[dim] = dim_const(size - step);
    Op *cut = along(l, OP_slice, x, dim);
    ir_attr(cut, "from")->i = reverse ? step : 0;
    ir_attr(cut, "to")->i = reverse ? size : size - step;
    Op *back = along(l, OP_pad, lower_result_of(l, cut, AMP_DT_F32, &part), dim);
    ir_attr(back, reverse ? "after" : "before")->i = step;
    return lower_result_of(l, back, AMP_DT_F32, &whole);
}

/* What the addition a + b = |sum| lost, exactly (D. E. Knuth, "The Art of Computer Programming", volume 2, 4.2.2). */
static Val lost_by(Lowering *l, Val a, Val b, Val sum) {
    Val of_b = lower_binary(l, OP_sub, sum, a);
    Val of_a = lower_binary(l, OP_sub, sum, of_b);
    return lower_add(l, lower_binary(l, OP_sub, a, of_a), lower_binary(l, OP_sub, b, of_b));
}

/* After round r each element is the sum of the 2^r that end there: log2(size) rounds over the whole tensor (W. D.
 * Hillis and G. L. Steele, "Data Parallel Algorithms", 1986).  What additions lose is summed up beside it: where
 * numbers cancel, sums of 10,000 would be a hundred roundings off.  Of an infinity nothing is lost: inf - inf. */
static void lower_cumsum(Lowering *l) {
    Val x = lower_operand(l, 0), lost = NO_VAL;
    int dim = ir_dim_attr(l->op, "dim", ir_shape(l->f, x)->rank);
    Dim size = ir_shape(l->f, x)->d[dim];
    const bool reverse = lower_bool(l, "reverse");
    if (dim_varies(size)) {
        lower_unsupported(l, size.n ? "the dimension depends on N" : "the dimension depends on T");
        return;
    }
    for (int64_t step = 1; step < size.mul; step *= 2) {
        Val other = moved(l, x, dim, step, reverse), sum = lower_add(l, x, other);
        Val now = lost_by(l, x, other, sum);
        lost = lost.id ? lower_add(l, lower_add(l, lost, moved(l, lost, dim, step, reverse)), now) : now;
        x = sum;
    }
    if (lost.id) x = lower_select(l, lower_binary(l, OP_eq, lost, lost), lower_add(l, x, lost), x);
    lower_give(l, 0, x);
}

const LowerRow lower_fold_ops[OP_COUNT] = {
    [OP_logsumexp] = {lower_logsumexp, TAKES_EITHER}, [OP_logsumexp_grad] = {lower_logsumexp_grad, TAKES_EITHER},
    [OP_norm] = {lower_norm, TAKES_EITHER},           [OP_norm_grad] = {lower_norm_grad, TAKES_EITHER},
    [OP_prod] = {lower_prod, TAKES_EITHER},           [OP_cumsum] = {lower_cumsum, TAKES_PLAIN},
    [OP_prod_grad] = {lower_prod_grad, TAKES_EITHER},
};
