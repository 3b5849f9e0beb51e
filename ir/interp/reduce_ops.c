/* reduce_ops.c: what the reductions of the whole language compute: extremes, variance, losses, metrics, norms of
 * gradients. */
#include "ir/interp/ops.h"

#include <math.h>

#define FOR_EACH(r, i) for (int64_t i = 0; i < (r)->out[0]->count; i++)

static double *result(const Running *r) { return r->out[0]->data; }
static const Dims *dims_of(const Running *r) { return &ir_attr(r->op, "dims")->dims; }

/* ---- extremes -------------------------------------------------------------------------------- */

/* NaN wins. */
static bool beats(double x, double best, bool largest) {
    return (isnan(x) && !isnan(best)) || (largest ? x > best : x < best);
}

static void extreme(Running *r, bool largest) {
    FOR_EACH(r, i) result(r)[i] = largest ? -INFINITY : INFINITY;
    for (int64_t i = 0; i < r->in[0]->count; i++) {
        double *best = &result(r)[interp_folded_index(r->in[0], dims_of(r), i)];
        if (beats(r->in[0]->data[i], *best, largest)) *best = r->in[0]->data[i];
    }
}

static void run_max(Running *r) { extreme(r, true); }
static void run_min(Running *r) { extreme(r, false); }

/* (dy, x, y) */
static void run_extreme_grad(Running *r) {
    const InterpTensor *dy = r->in[0], *x = r->in[1], *y = r->in[2];
    double *equals = interp_scratch(r, y->count);
    for (int64_t i = 0; i < x->count; i++) {
        int64_t to = interp_folded_index(x, dims_of(r), i);
        equals[to] += x->data[i] == y->data[to];
    }
    for (int64_t i = 0; i < x->count; i++) {
        int64_t to = interp_folded_index(x, dims_of(r), i);
        result(r)[i] = (double)(x->data[i] == y->data[to]) * (dy->data[to] / equals[to]); /* NaN where y is */
    }
}

static void run_argmax(Running *r) {
    const InterpTensor *x = r->in[0];
    for (int64_t l = 0; l < r->out[0]->count; l++) {
        Line line = interp_line(x, interp_int(r, "dim"), l);
        int64_t best = 0;
        for (int64_t j = 1; j < line.length; j++)
            if (beats(x->data[line.base + j * line.stride], x->data[line.base + best * line.stride], true)) best = j;
        result(r)[l] = (double)best;
    }
}

/* ---- variance -------------------------------------------------------------------------------- */

/* The mean of what folds into each element of a reduction over the op's dims. */
static double *folded_means(Running *r, const InterpTensor *x) {
    double count = (double)interp_folded_count(x, dims_of(r));
    double *means = interp_scratch(r, x->count);
    for (int64_t i = 0; i < x->count; i++) means[interp_folded_index(x, dims_of(r), i)] += x->data[i] / count;
    return means;
}

static double divisor(const Running *r, const InterpTensor *x) {
    return fmax((double)(interp_folded_count(x, dims_of(r)) - interp_int(r, "correction")), 0.0);
}

static void run_var(Running *r) {
    const InterpTensor *x = r->in[0];
    const double *means = folded_means(r, x);
    FOR_EACH(r, i) result(r)[i] = 0.0;
    for (int64_t i = 0; i < x->count; i++) {
        int64_t to = interp_folded_index(x, dims_of(r), i);
        result(r)[to] += (x->data[i] - means[to]) * (x->data[i] - means[to]);
    }
    FOR_EACH(r, i) result(r)[i] /= divisor(r, x);
}

/* (dy, x) */
static void run_var_grad(Running *r) {
    const InterpTensor *x = r->in[1];
    const double *means = folded_means(r, x);
    for (int64_t i = 0; i < x->count; i++) {
        int64_t to = interp_folded_index(x, dims_of(r), i);
        result(r)[i] = r->in[0]->data[to] * 2.0 * (x->data[i] - means[to]) / divisor(r, x);
    }
}

/* ---- losses and metrics ---------------------------------------------------------------------- */

static void run_mse_loss(Running *r) {
    const double *a = r->in[0]->data, *b = r->in[1]->data;
    double sum = 0.0, count = (double)r->in[0]->count;
    for (int64_t i = 0; i < r->in[0]->count; i++) sum += (a[i] - b[i]) * (a[i] - b[i]);
    result(r)[0] = sum / count;
}

static void run_mse_loss_grad(Running *r) {
    double g = r->in[0]->data[0], count = (double)r->in[1]->count;
    FOR_EACH(r, i) {
        double d = g * 2.0 * (r->in[1]->data[i] - r->in[2]->data[i]) / count;
        r->out[0]->data[i] = d;
        r->out[1]->data[i] = -d;
    }
}

static void run_bce_with_logits(Running *r) {
    double sum = 0.0;
    for (int64_t i = 0; i < r->in[0]->count; i++) {
        double x = r->in[0]->data[i], t = r->in[1]->data[i];
        sum += (x > 0 ? x : 0.0) - x * t + log1p(exp(-fabs(x)));
    }
    result(r)[0] = sum / (double)r->in[0]->count;
}

static void run_bce_with_logits_grad(Running *r) {
    double g = r->in[0]->data[0], count = (double)r->in[1]->count;
    FOR_EACH(r, i) {
        double x = r->in[1]->data[i], t = r->in[2]->data[i];
        r->out[0]->data[i] = g * (1.0 / (1.0 + exp(-x)) - t) / count;
        r->out[1]->data[i] = -g * x / count;
    }
}

/* Among the k largest: fewer than k logits stand before the target's.  A target that is no class, or whose logit
 * is NaN, is not. */
static bool is_in_top(const double *x, int64_t classes, double target, int64_t k) {
    if (!(target >= 0 && target < (double)classes)) return false;
    int64_t t = (int64_t)target, before = 0;
    if (isnan(x[t])) return false;
    for (int64_t c = 0; c < classes; c++) before += x[c] > x[t] || (x[c] == x[t] && c < t);
    return before < k;
}

static void run_top_k_accuracy(Running *r) {
    const InterpTensor *logits = r->in[0], *targets = r->in[1];
    int64_t classes = logits->dims[logits->rank - 1];
    double right = 0.0;
    for (int64_t i = 0; i < targets->count; i++)
        right += is_in_top(logits->data + i * classes, classes, targets->data[i], interp_int(r, "k"));
    result(r)[0] = right / (double)targets->count;
}

/* ---- norms of gradients ---------------------------------------------------------------------- */

static void run_global_norm(Running *r) {
    double sum = 0.0;
    for (int j = 0; j < r->op->n_in; j++)
        for (int64_t i = 0; i < r->in[j]->count; i++) sum += r->in[j]->data[i] * r->in[j]->data[i];
    result(r)[0] = sqrt(sum);
}

/* torch.nn.utils.clip_grad_norm_; a norm that is NaN makes the gradient NaN. */
static void run_clip_by_norm(Running *r) {
    double factor = interp_float(r, "max") / (r->in[1]->data[0] + 1e-6);
    if (factor > 1.0) factor = 1.0;
    FOR_EACH(r, i) result(r)[i] = r->in[0]->data[i] * factor;
}

const InterpFn interp_reduce_ops[OP_COUNT] = {
    [OP_max] = run_max,
    [OP_min] = run_min,
    [OP_extreme_grad] = run_extreme_grad,
    [OP_argmax] = run_argmax,
    [OP_var] = run_var,
    [OP_var_grad] = run_var_grad,
    [OP_mse_loss] = run_mse_loss,
    [OP_mse_loss_grad] = run_mse_loss_grad,
    [OP_bce_with_logits] = run_bce_with_logits,
    [OP_bce_with_logits_grad] = run_bce_with_logits_grad,
    [OP_top_k_accuracy] = run_top_k_accuracy,
    [OP_global_norm] = run_global_norm,
    [OP_clip_by_norm] = run_clip_by_norm,
};
