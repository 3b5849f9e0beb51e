/* lower_optimizer.c: the formulas of PyTorch's fused optimizers (aten/src/ATen/native/cuda/fused_adam_utils.cuh,
 * FusedSgdKernel.cu), elementwise in f32; what depends on the step alone is a scalar, computed in f64 and shared by
 * all parameters with the same numbers. */
#include "passes/lower/lower.h"

static Val add(Lowering *l, Val a, Val b) { return lower_binary(l, OP_add, a, b); }
static Val mul(Lowering *l, Val a, Val b) { return lower_binary(l, OP_mul, a, b); }
static Val scaled(Lowering *l, Val a, double factor) { return mul(l, a, lower_number(l, factor)); }

enum { STEP = 2, RATE = 3, DECAY = 4, FIRST_MOMENT = 5 };

/* Operand |i|, an f64 scalar, where it is a constant. */
static const double *constant(const Lowering *l, int i) {
    const Op *def = ir_def(l->f, l->op->in[i]);
    return def && def->code == OP_const ? &ir_attr(def, "value")->f : NULL;
}

/* Operand |i|, an f64 scalar, in f32. */
static Val number(Lowering *l, int i) {
    const double *value = constant(l, i);
    return value ? lower_number(l, *value) : lower_cast(l, l->op->in[i], AMP_DT_F32);
}

static bool is_zero(const Lowering *l, int i) { return constant(l, i) && *constant(l, i) == 0; }

/* g + decay w */
static Val with_decay(Lowering *l, Val g, Val w) {
    return is_zero(l, DECAY) ? g : add(l, g, mul(l, w, number(l, DECAY)));
}

/* buf = momentum buf + g (buf starts as 0, so the first is g); w - lr (g + momentum buf), w - lr buf or w - lr g */
static void lower_sgd(Lowering *l) {
    Val w = lower_operand(l, 0), g = with_decay(l, lower_operand(l, 1), w);
    double momentum = lower_float(l, "momentum");
    Val buffer = NO_VAL;
    if (l->op->n_in > FIRST_MOMENT) {
        buffer = add(l, scaled(l, lower_operand(l, FIRST_MOMENT), momentum), g);
        g = lower_bool(l, "nesterov") ? add(l, g, scaled(l, buffer, momentum)) : buffer;
    }
    Val next = lower_binary(l, OP_sub, w, mul(l, g, number(l, RATE)));
    lower_give(l, 0, next);
    lower_give(l, 1, buffer.id ? buffer : next);
}

/* 1 - beta^step, in f64 */
static Val bias_correction(Lowering *l, double beta) {
    Op *power = ir_op_new(l->f, OP_power, &l->op->in[STEP], 1);
    ir_attr(power, "base")->f = beta;
    Val p = ir_make_results(l->f, power, AMP_DT_F64, NULL);
    return lower_binary(l, OP_sub, lower_number_of(l, 1.0, AMP_DT_F64), p);
}

/* lr / (1 - beta1^step) */
static Val step_size(Lowering *l) {
    double beta1 = lower_float(l, "beta1");
    Val rate = l->op->in[RATE];
    const double *lr = constant(l, RATE);
    Val *shared = lower_memo(l, "step_size %u %u %a %a", l->op->in[STEP].id, lr ? 0 : rate.id, lr ? *lr : 0.0, beta1);
    if (!shared->id) {
        *shared = lower_cast(l, lower_binary(l, OP_div, rate, bias_correction(l, beta1)), AMP_DT_F32);
    }
    return *shared;
}

/* 1 / sqrt(1 - beta2^step): a factor, because an element's division costs more than all the rest of its update */
static Val inverse_root_correction(Lowering *l) {
    double beta2 = lower_float(l, "beta2");
    Val *shared = lower_memo(l, "inverse_root_correction %u %a", l->op->in[STEP].id, beta2);
    if (!shared->id) {
        Val root = lower_unary(l, OP_sqrt, bias_correction(l, beta2));
        *shared = lower_cast(l, lower_binary(l, OP_div, lower_number_of(l, 1.0, AMP_DT_F64), root), AMP_DT_F32);
    }
    return *shared;
}

/* m = beta1 m + (1 - beta1) g;  v = beta2 v + (1 - beta2) g g;  w - step_size m / (sqrt(v) inverse_root_correction +
 * eps) */
static void adam(Lowering *l, Val w, Val g) {
    double beta1 = lower_float(l, "beta1"), beta2 = lower_float(l, "beta2");
    Val size = step_size(l), inverse_root = inverse_root_correction(l);
    Val m = scaled(l, lower_operand(l, FIRST_MOMENT), beta1), v = scaled(l, lower_operand(l, FIRST_MOMENT + 1), beta2);
    m = add(l, m, scaled(l, g, 1 - beta1));
    v = add(l, v, mul(l, scaled(l, g, 1 - beta2), g));
    Val denom = mul(l, lower_unary(l, OP_sqrt, v), inverse_root);
    denom = add(l, denom, lower_number(l, lower_float(l, "eps")));
    lower_give(l, 0, lower_binary(l, OP_sub, w, lower_binary(l, OP_div, mul(l, size, m), denom)));
    lower_give(l, 1, m);
    lower_give(l, 2, v);
}

static void lower_adam(Lowering *l) {
    Val w = lower_operand(l, 0);
    adam(l, w, with_decay(l, lower_operand(l, 1), w));
}

/* 1 - lr decay, in f64, rounded once */
static Val kept_share(Lowering *l) {
    const double *lr = constant(l, RATE), *decay = constant(l, DECAY);
    if (lr && decay) return lower_number(l, 1 - *lr * *decay);
    Val *shared = lower_memo(l, "kept_share %u %u", l->op->in[RATE].id, l->op->in[DECAY].id);
    if (!shared->id) {
        Val one = lower_number_of(l, 1.0, AMP_DT_F64), lost = mul(l, l->op->in[RATE], l->op->in[DECAY]);
        *shared = lower_cast(l, lower_binary(l, OP_sub, one, lost), AMP_DT_F32);
    }
    return *shared;
}

/* w (1 - lr decay) first: Loshchilov and Hutter 2019. */
static void lower_adamw(Lowering *l) {
    Val w = lower_operand(l, 0);
    if (!is_zero(l, DECAY)) w = mul(l, w, kept_share(l));
    adam(l, w, lower_operand(l, 1));
}

const LowerRow lower_optimizer_ops[OP_COUNT] = {
    [OP_sgd] = {lower_sgd, TAKES_PLAIN},
    [OP_adam] = {lower_adam, TAKES_PLAIN},
    [OP_adamw] = {lower_adamw, TAKES_PLAIN},
};
