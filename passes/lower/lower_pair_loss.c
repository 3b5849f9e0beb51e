/* lower_pair_loss.c: losses of two tensors of one shape, and their gradients. */
#include "passes/lower/lower.h"

static Val zero(Lowering *l) { return lower_number(l, 0.0); }

static void all_dims(const Lowering *l, Val v, bool *all) {
    for (int i = 0; i < MAX_RANK; i++) all[i] = i < ir_shape(l->f, v)->rank;
}

/* What a loss divides by: the number of elements of |v|, or of samples where kl_div is told so. */
static Val divisor_of(Lowering *l, Val v) {
    const AttrValue *reduction = ir_attr(l->op, "reduction");
    bool folded[MAX_RANK];
    all_dims(l, v, folded);
    if (reduction && !strcmp(reduction->s, "batchmean")) /* the batch leads in every form */
        for (int i = 1; i < MAX_RANK; i++) folded[i] = false;
    return lower_count(l, v, folded);
}

static void give_mean(Lowering *l, Val like, Val terms) {
    Val total = lower_reduce_all(l, OP_reduce_sum, terms);
    lower_give(l, 0, lower_divide_by_count(l, total, divisor_of(l, like)));
}

/* g / count */
static Val share_of(Lowering *l, Val g, Val like) { return lower_divide_by_count(l, g, divisor_of(l, like)); }

/* ---- of the difference ------------------------------------------------------------------------------------------- */

typedef struct Pair {
    Val a, b, d; /* d = a - b */
} Pair;

static Pair pair_of(Lowering *l, int first) {
    Pair p = {.a = lower_operand(l, first)};
    p.b = lower_operand(l, first + 1);
    p.d = lower_sub(l, p.a, p.b);
    return p;
}

/* v times the slope of the loss by a, and its negative by b */
static void give_slopes(Lowering *l, Val da) {
    lower_give(l, 0, da);
    lower_give(l, 1, lower_unary(l, OP_neg, da));
}

static void lower_mse_loss(Lowering *l) {
    Pair p = pair_of(l, 0);
    give_mean(l, p.a, lower_mul(l, p.d, p.d));
}

/* g 2 (a - b) / count, and its negative */
static void lower_mse_loss_grad(Lowering *l) {
    Val g = lower_operand(l, 0), a = lower_operand(l, 1), b = lower_operand(l, 2);
    Val share = share_of(l, lower_scaled(l, g, 2.0), a);
    give_slopes(l, lower_mul(l, lower_sub(l, a, b), share));
}

static void lower_l1_loss(Lowering *l) {
    Pair p = pair_of(l, 0);
    give_mean(l, p.a, lower_unary(l, OP_abs, p.d));
}

static void lower_l1_loss_grad(Lowering *l) {
    Pair p = pair_of(l, 1);
    give_slopes(l, lower_signed_by(l, share_of(l, lower_operand(l, 0), p.a), p.d));
}

/* A parabola within |limit|, where NaN counts as well, and beyond it lines of slope |slope|. */
typedef struct Bend {
    double limit, slope;
} Bend;

static Bend bend_of(const Lowering *l) {
    bool is_huber = ir_attr(l->op, "delta") != NULL;
    double limit = lower_float(l, is_huber ? "delta" : "beta");
    return (Bend){limit, is_huber ? limit : 1.0};
}

static Val is_beyond(Lowering *l, Val distance, double limit) {
    return lower_binary(l, OP_le, lower_number(l, limit), distance);
}

/* slope (|d| - limit / 2), or d^2 slope / (2 limit) */
static void lower_bent_loss(Lowering *l) {
    Bend bend = bend_of(l);
    if (bend.limit == 0) {
        lower_l1_loss(l);
        return;
    }
    Pair p = pair_of(l, 0);
    Val distance = lower_unary(l, OP_abs, p.d);
    Val line = lower_scaled(l, lower_sub(l, distance, lower_number(l, bend.limit / 2)), bend.slope);
    Val square = lower_scaled(l, lower_mul(l, p.d, p.d), 0.5 * bend.slope / bend.limit);
    give_mean(l, p.a, lower_select(l, is_beyond(l, distance, bend.limit), line, square));
}

static void lower_bent_loss_grad(Lowering *l) {
    Bend bend = bend_of(l);
    if (bend.limit == 0) {
        lower_l1_loss_grad(l);
        return;
    }
    Pair p = pair_of(l, 1);
    Val share = share_of(l, lower_operand(l, 0), p.a);
    Val line = lower_signed_by(l, lower_scaled(l, share, bend.slope), p.d);
    Val inside = lower_mul(l, lower_scaled(l, p.d, bend.slope / bend.limit), share);
    Val beyond = is_beyond(l, lower_unary(l, OP_abs, p.d), bend.limit);
    give_slopes(l, lower_select(l, beyond, line, inside));
}

/* ---- of logits and probabilities --------------------------------------------------------------------------------- */

/* max(x, 0) - x t + log(1 + exp(-|x|)) */
static void lower_bce_with_logits(Lowering *l) {
    Val x = lower_operand(l, 0), t = lower_operand(l, 1);
    Val e = lower_unary(l, OP_exp, lower_unary(l, OP_neg, lower_unary(l, OP_abs, x)));
    Val tail = lower_log1p(l, e), positive = lower_binary(l, OP_maximum, x, lower_number(l, 0.0));
    Val linear = lower_sub(l, positive, lower_mul(l, x, t));
    give_mean(l, x, lower_add(l, linear, tail));
}

/* (sigmoid(x) - t) g / count, and -x g / count */
static void lower_bce_with_logits_grad(Lowering *l) {
    Val g = lower_operand(l, 0), x = lower_operand(l, 1), t = lower_operand(l, 2);
    Val share = share_of(l, g, x);
    Val error = lower_sub(l, lower_logistic(l, x), t);
    lower_give(l, 0, lower_mul(l, error, share));
    lower_give(l, 1, lower_mul(l, lower_unary(l, OP_neg, x), share));
}

/* log t, and 0 at 0 */
static Val log_of_target(Lowering *l, Val t) {
    Val is_zero = lower_binary(l, OP_eq, t, zero(l));
    return lower_select(l, is_zero, zero(l), lower_unary(l, OP_log, t));
}

/* t log t - t x */
static void lower_kl_div(Lowering *l) {
    Val x = lower_operand(l, 0), t = lower_operand(l, 1);
    Val entropy = lower_mul(l, t, log_of_target(l, t));
    give_mean(l, x, lower_sub(l, entropy, lower_mul(l, t, x)));
}

/* -t g / count, and (log t + t / t - x) g / count, which is NaN where t is 0, as in PyTorch */
static void lower_kl_div_grad(Lowering *l) {
    Val g = lower_operand(l, 0), x = lower_operand(l, 1), t = lower_operand(l, 2), share = share_of(l, g, x);
    lower_give(l, 0, lower_mul(l, lower_unary(l, OP_neg, t), share));
    Val rise = lower_add(l, log_of_target(l, t), lower_div(l, t, t));
    lower_give(l, 1, lower_mul(l, lower_sub(l, rise, x), share));
}

const LowerRow lower_pair_loss_ops[OP_COUNT] = {
    [OP_mse_loss] = {lower_mse_loss, TAKES_EITHER},
    [OP_mse_loss_grad] = {lower_mse_loss_grad, TAKES_EITHER},
    [OP_l1_loss] = {lower_l1_loss, TAKES_EITHER},
    [OP_l1_loss_grad] = {lower_l1_loss_grad, TAKES_EITHER},
    [OP_smooth_l1_loss] = {lower_bent_loss, TAKES_EITHER},
    [OP_smooth_l1_loss_grad] = {lower_bent_loss_grad, TAKES_EITHER},
    [OP_huber_loss] = {lower_bent_loss, TAKES_EITHER},
    [OP_huber_loss_grad] = {lower_bent_loss_grad, TAKES_EITHER},
    [OP_bce_with_logits] = {lower_bce_with_logits, TAKES_EITHER},
    [OP_bce_with_logits_grad] = {lower_bce_with_logits_grad, TAKES_EITHER},
    [OP_kl_div] = {lower_kl_div, TAKES_EITHER},
    [OP_kl_div_grad] = {lower_kl_div_grad, TAKES_EITHER},
};
