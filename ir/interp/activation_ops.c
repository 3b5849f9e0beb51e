/* activation_ops.c: activations with corners or a weight, reciprocals, signs and extremes of two, with their
 * gradients. */
#include "ir/interp/ops.h"

#include <math.h>

static double least(double a, double b) { return b < a ? b : a; }
static double greatest(double a, double b) { return b > a ? b : a; }
static double logistic(double x) { return 1.0 / (1.0 + exp(-x)); }

/* NaN stays NaN. */
static double hard_sigmoid(double x) { return least(greatest(x + 3.0, 0.0), 6.0) / 6.0; }
static double soft_tanh(double x) { return tanh(log1p(exp(x))); } /* of softplus */

enum { MISH_THRESHOLD = 20 };

/* ---- forward ----------------------------------------------------------------------------------------------------- */

void interp_op_leaky_relu(Running *r) {
    FOR_EACH(r, i) result(r)[i] = in(r, 0, i) * (in(r, 0, i) > 0 ? 1.0 : interp_float(r, "slope"));
}

void interp_op_elu(Running *r) {
    FOR_EACH(r, i) {
        double x = in(r, 0, i);
        result(r)[i] = x <= 0 ? interp_float(r, "alpha") * expm1(x) : x;
    }
}

void interp_op_hard_sigmoid(Running *r) { FOR_EACH(r, i) result(r)[i] = hard_sigmoid(in(r, 0, i)); }
void interp_op_hard_swish(Running *r) { FOR_EACH(r, i) result(r)[i] = in(r, 0, i) * hard_sigmoid(in(r, 0, i)); }

void interp_op_mish(Running *r) {
    FOR_EACH(r, i) {
        double x = in(r, 0, i);
        result(r)[i] = x > MISH_THRESHOLD ? x : x * soft_tanh(x);
    }
}

void interp_op_reciprocal(Running *r) { FOR_EACH(r, i) result(r)[i] = 1.0 / in(r, 0, i); }
void interp_op_sign(Running *r) { FOR_EACH(r, i) result(r)[i] = (in(r, 0, i) > 0) - (in(r, 0, i) < 0); }

/* Which weight element |i| of |x| has. */
static int64_t weight_of(const InterpTensor *x, const InterpTensor *weight, int64_t i) {
    int64_t inner = 1;
    for (int d = 2; d < x->rank; d++) inner *= x->dims[d];
    return weight->count == 1 ? 0 : i / inner % x->dims[1];
}

void interp_op_prelu(Running *r) {
    const InterpTensor *x = r->in[0], *weight = r->in[1];
    FOR_EACH(r, i) result(r)[i] = x->data[i] > 0 ? x->data[i] : x->data[i] * weight->data[weight_of(x, weight, i)];
}

/* ---- gradients --------------------------------------------------------------------------------------------------- */

void interp_op_leaky_relu_grad(Running *r) {
    FOR_EACH(r, i) result(r)[i] = in(r, 0, i) * (in(r, 1, i) > 0 ? 1.0 : interp_float(r, "slope"));
}

void interp_op_elu_grad(Running *r) {
    FOR_EACH(r, i) {
        double x = in(r, 1, i);
        result(r)[i] = in(r, 0, i) * (x <= 0 ? interp_float(r, "alpha") * exp(x) : 1.0);
    }
}

/* dy or nothing where the slope is 0, not dy * 0, which is NaN where dy is infinite. */
void interp_op_hard_sigmoid_grad(Running *r) {
    FOR_EACH(r, i) result(r)[i] = in(r, 1, i) > -3 && in(r, 1, i) < 3 ? in(r, 0, i) / 6.0 : 0.0;
}

void interp_op_hard_swish_grad(Running *r) {
    FOR_EACH(r, i) {
        double x = in(r, 1, i), dy = in(r, 0, i);
        result(r)[i] = x <= -3 ? 0.0 : x < 3 ? dy * (x / 3.0 + 0.5) : dy;
    }
}

void interp_op_mish_grad(Running *r) {
    FOR_EACH(r, i) {
        double x = in(r, 1, i), t = soft_tanh(x);
        result(r)[i] = in(r, 0, i) * (x > MISH_THRESHOLD ? 1.0 : t + x * logistic(x) * (1.0 - t * t));
    }
}

/* (dy, x, weight) */
void interp_op_prelu_grad(Running *r) {
    const InterpTensor *dy = r->in[0], *x = r->in[1], *weight = r->in[2];
    double *d_weight = r->out[1]->data;
    for (int64_t i = 0; i < weight->count; i++) d_weight[i] = 0.0;
    FOR_EACH(r, i) {
        int64_t w = weight_of(x, weight, i);
        result(r)[i] = dy->data[i] * (x->data[i] > 0 ? 1.0 : weight->data[w]);
        d_weight[w] += x->data[i] > 0 ? 0.0 : dy->data[i] * x->data[i];
    }
}

void interp_op_reciprocal_grad(Running *r) { FOR_EACH(r, i) result(r)[i] = -in(r, 0, i) * (in(r, 1, i) * in(r, 1, i)); }
void interp_op_expm1_grad(Running *r) { FOR_EACH(r, i) result(r)[i] = in(r, 0, i) * (in(r, 1, i) + 1.0); }
void interp_op_log1p_grad(Running *r) { FOR_EACH(r, i) result(r)[i] = in(r, 0, i) / (in(r, 1, i) + 1.0); }

/* (dy, a, b): the loser gets nothing, equals one half each; beside a NaN none loses. */
static void extremes_grad(Running *r, double sign) {
    FOR_EACH(r, i) {
        double dy = in(r, 0, i), a = sign * in(r, 1, i), b = sign * in(r, 2, i), share = a == b ? dy / 2.0 : dy;
        r->out[0]->data[i] = a < b ? 0.0 : share;
        r->out[1]->data[i] = a > b ? 0.0 : share;
    }
}

void interp_op_maximum_grad(Running *r) { extremes_grad(r, 1.0); }
void interp_op_minimum_grad(Running *r) { extremes_grad(r, -1.0); }
