/* lower_optimizer.c: the formulas of PyTorch's fused optimizers (aten/src/ATen/native/cuda/fused_adam_utils.cuh,
 * FusedSgdKernel.cu), elementwise in f32; what depends on the step alone is a scalar, computed in f64 and shared by
 * all parameters with the same numbers. */
#include "passes/lower.h"

static Val add(Lowering *l, Val a, Val b) { return lower_binary(l, OP_add, a, b); }
static Val mul(Lowering *l, Val a, Val b) { return lower_binary(l, OP_mul, a, b); }
static Val scaled(Lowering *l, Val a, double factor) { return mul(l, a, lower_number(l, factor)); }

/* g + decay w */
static Val with_decay(Lowering *l, Val g, Val w, double decay) {
    return decay == 0 ? g : add(l, g, scaled(l, w, decay));
}

/* buf = momentum buf + g (buf starts as 0, so the first is g); w - lr (g + momentum buf), w - lr buf or w - lr g */
void lower_sgd(Lowering *l) {
    Val w = lower_operand(l, 0), g = with_decay(l, lower_operand(l, 1), w, lower_float(l, "weight_decay"));
    double momentum = lower_float(l, "momentum");
    Val buffer = NO_VAL;
    if (l->op->n_in == 4) {
        buffer = add(l, scaled(l, lower_operand(l, 3), momentum), g);
        g = lower_bool(l, "nesterov") ? add(l, g, scaled(l, buffer, momentum)) : buffer;
    }
    Val next = lower_binary(l, OP_sub, w, scaled(l, g, lower_float(l, "lr")));
    lower_give(l, 0, next);
    lower_give(l, 1, buffer.id ? buffer : next);
}

/* 1 - beta^step, in f64 */
static Val bias_correction(Lowering *l, double beta) {
    Op *power = ir_op_new(l->f, OP_power, &l->op->in[2], 1);
    ir_attr(power, "base")->f = beta;
    Val p = ir_make_results(l->f, power, AMP_DT_F64, NULL);
    return lower_binary(l, OP_sub, lower_number_of(l, 1.0, AMP_DT_F64), p);
}

/* lr / (1 - beta1^step) */
static Val step_size(Lowering *l) {
    double lr = lower_float(l, "lr"), beta1 = lower_float(l, "beta1");
    Val *shared = lower_memo(l, "step_size %u %a %a", l->op->in[2].id, lr, beta1);
    if (!shared->id) {
        Val rate = lower_number_of(l, lr, AMP_DT_F64);
        *shared = lower_cast(l, lower_binary(l, OP_div, rate, bias_correction(l, beta1)), AMP_DT_F32);
    }
    return *shared;
}

/* 1 / sqrt(1 - beta2^step): a factor, because an element's division costs more than all the rest of its update */
static Val inverse_root_correction(Lowering *l) {
    double beta2 = lower_float(l, "beta2");
    Val *shared = lower_memo(l, "inverse_root_correction %u %a", l->op->in[2].id, beta2);
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
    Val m = scaled(l, lower_operand(l, 3), beta1), v = scaled(l, lower_operand(l, 4), beta2);
    m = add(l, m, scaled(l, g, 1 - beta1));
    v = add(l, v, mul(l, scaled(l, g, 1 - beta2), g));
    Val denom = mul(l, lower_unary(l, OP_sqrt, v), inverse_root);
    denom = add(l, denom, lower_number(l, lower_float(l, "eps")));
    lower_give(l, 0, lower_binary(l, OP_sub, w, lower_binary(l, OP_div, mul(l, size, m), denom)));
    lower_give(l, 1, m);
    lower_give(l, 2, v);
}

void lower_adam(Lowering *l) {
    Val w = lower_operand(l, 0);
    adam(l, w, with_decay(l, lower_operand(l, 1), w, lower_float(l, "weight_decay")));
}

/* w (1 - lr decay) first: Loshchilov and Hutter 2019. */
void lower_adamw(Lowering *l) {
    Val w = lower_operand(l, 0);
    double decay = lower_float(l, "weight_decay");
    if (decay != 0) w = scaled(l, w, 1 - lower_float(l, "lr") * decay);
    adam(l, w, lower_operand(l, 1));
}
