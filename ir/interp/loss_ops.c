/* loss_ops.c: losses and metrics. */
#include "ir/interp/ops.h"

#include <math.h>

/* ---- losses and metrics of classes ------------------------------------------------------------------------------- */

static int64_t classes(const InterpTensor *logp) { return logp->dims[logp->rank - 1]; }

static bool is_counted(const Running *r, double target) { return target != (double)interp_int(r, "ignore"); }

static double counted_rows(const Running *r, const InterpTensor *targets) {
    double count = 0.0;
    for (int64_t i = 0; i < targets->count; i++) count += is_counted(r, targets->data[i]);
    return count;
}

/* The weight of class c in a row's loss: 1 - s at the target, and s / C everywhere. */
static double class_weight(const Running *r, const InterpTensor *logp, int64_t c, double target) {
    double smoothing = interp_float(r, "label_smoothing");
    return ((double)c == target ? 1.0 - smoothing : 0.0) + smoothing / (double)classes(logp);
}

static void run_nll_loss(Running *r) {
    const InterpTensor *logp = r->in[0], *targets = r->in[1];
    double loss = 0.0, count = counted_rows(r, targets);
    for (int64_t i = 0; i < logp->count; i++) {
        double target = targets->data[i / classes(logp)], weight = class_weight(r, logp, i % classes(logp), target);
        if (is_counted(r, target) && weight != 0) loss -= weight * logp->data[i]; /* not 0 * -inf */
    }
    result(r)[0] = count > 0 ? loss / count : 0.0;
}

static void run_nll_loss_grad(Running *r) {
    const InterpTensor *logp = r->in[1], *targets = r->in[2];
    double g = r->in[0]->data[0], count = counted_rows(r, targets);
    FOR_EACH(r, i) {
        double target = targets->data[i / classes(logp)];
        result(r)[i] = is_counted(r, target) ? -g * class_weight(r, logp, i % classes(logp), target) / count : 0.0;
    }
}

/* The index of the first largest; -1 where the row has a NaN. */
static int64_t first_largest(const double *x, int64_t count) {
    int64_t best = 0;
    for (int64_t i = 0; i < count; i++) {
        if (isnan(x[i])) return -1;
        if (x[i] > x[best]) best = i;
    }
    return best;
}

static void run_accuracy(Running *r) {
    const InterpTensor *logits = r->in[0], *targets = r->in[1];
    double right = 0.0;
    for (int64_t i = 0; i < targets->count; i++)
        right += (double)first_largest(logits->data + i * classes(logits), classes(logits)) == targets->data[i];
    result(r)[0] = right / (double)targets->count;
}

/* ---- of pairs, and top k ----------------------------------------------------------------------------------------- */

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

const InterpFn interp_loss_ops[OP_COUNT] = {
    [OP_nll_loss] = run_nll_loss,
    [OP_accuracy] = run_accuracy,
    [OP_nll_loss_grad] = run_nll_loss_grad,
    [OP_mse_loss] = run_mse_loss,
    [OP_mse_loss_grad] = run_mse_loss_grad,
    [OP_bce_with_logits] = run_bce_with_logits,
    [OP_bce_with_logits_grad] = run_bce_with_logits_grad,
    [OP_top_k_accuracy] = run_top_k_accuracy,
};
