/* lower_scale.c: loss scaling.  Factors are applied in f64 and rounded once, as torch.amp.GradScaler does. */
#include <math.h>
#include "passes/lower/lower.h"

static void give_product(Lowering *l) {
    Val a = lower_operand(l, 0), b = lower_operand(l, 1);
    lower_give(l, 0, lower_binary(l, OP_mul, a, b));
}

static void lower_scale_loss(Lowering *l) { give_product(l); }

static void lower_unscale(Lowering *l) { give_product(l); }

/* f32(1 / f64(scale)) */
static void lower_inverse_scale(Lowering *l) {
    Val scale = lower_cast(l, l->op->in[0], AMP_DT_F64);
    lower_give(l, 0, lower_binary(l, OP_div, lower_number_of(l, 1.0, AMP_DT_F64), scale));
}

/* bool: |g| has an element that is infinite or NaN. */
static Val any_bad(Lowering *l, int i) {
    Val bad = lower_unary(l, OP_not, ir_emit(l->f, OP_is_finite, AMP_DT_BOOL, NULL, 1, lower_operand(l, i)));
    if (!ir_shape(l->f, bad)->rank) return bad;
    return ir_emit(l->f, OP_reduce_or, AMP_DT_BOOL, NULL, 1, bad);
}

static void lower_all_finite(Lowering *l) {
    Val bad = any_bad(l, 0);
    for (int i = 1; i < l->op->n_in; i++) bad = lower_binary(l, OP_or, bad, any_bad(l, i));
    lower_give(l, 0, lower_unary(l, OP_not, bad));
}

/* f32(f64(scale) * factor) */
static Val times(Lowering *l, Val scale64, double factor) {
    Val product = lower_binary(l, OP_mul, scale64, lower_number_of(l, factor, AMP_DT_F64));
    return lower_cast(l, product, AMP_DT_F32);
}

/* aten/src/ATen/native/cuda/AmpKernels.cu, amp_update_scale_cuda_kernel:
 *     not ok: scale = f32(f64(scale) * backoff); tracker = 0
 *     ok:     tracker + 1 == interval: grown = f32(f64(scale) * growth), scale = grown if finite; tracker = 0.  Else:
 *             tracker + 1
 * and then the bounds, which PyTorch lacks: backed off not below min, grown not above max.  The third result is 1
 * where not ok and already at min > 0. */
static void lower_update_scale(Lowering *l) {
    Val scale = l->op->in[0], tracker = l->op->in[1], ok = l->op->in[2];
    double min = lower_float(l, "min"), max = lower_float(l, "max");
    Val scale64 = lower_cast(l, scale, AMP_DT_F64);
    Val zero = lower_number_of(l, 0, AMP_DT_I32), one = lower_number_of(l, 1, AMP_DT_I32);

    Val backed_off = times(l, scale64, lower_float(l, "backoff"));
    Val lower = lower_binary(l, OP_maximum, backed_off, lower_number(l, min));
    Val grown = times(l, scale64, lower_float(l, "growth"));
    Val finite = ir_emit(l->f, OP_is_finite, AMP_DT_BOOL, NULL, 1, grown);
    Val higher = isinf(max) ? grown : lower_binary(l, OP_minimum, grown, lower_number(l, max));
    Val next = lower_binary(l, OP_add, tracker, one);
    Val due = lower_binary(l, OP_eq, next, lower_number_of(l, (double)ir_attr(l->op, "interval")->i, AMP_DT_I32));

    Val after_ok = lower_select(l, lower_binary(l, OP_and, due, finite), higher, scale);
    lower_give(l, 0, lower_select(l, ok, after_ok, lower));
    lower_give(l, 1, lower_select(l, ok, lower_select(l, due, zero, next), zero));
    Val hit = zero;
    if (min > 0) {
        Val at_floor = lower_binary(l, OP_le, scale, lower_number(l, min));
        Val bad = lower_unary(l, OP_not, ok);
        hit = lower_select(l, lower_binary(l, OP_and, bad, at_floor), one, zero);
    }
    lower_give(l, 2, hit);
}

const LowerRow lower_scale_ops[OP_COUNT] = {
    [OP_scale_loss] = {lower_scale_loss, TAKES_PLAIN},       [OP_unscale] = {lower_unscale, TAKES_PLAIN},
    [OP_inverse_scale] = {lower_inverse_scale, TAKES_PLAIN}, [OP_all_finite] = {lower_all_finite, TAKES_PLAIN},
    [OP_update_scale] = {lower_update_scale, TAKES_PLAIN},
};
