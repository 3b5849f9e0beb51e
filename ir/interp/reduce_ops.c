/* reduce_ops.c: reductions, what undoes them, and what is made by them: extremes, variance. */
#include "ir/interp/ops.h"

#include <math.h>

/* ---- reductions -------------------------------------------------------------------------------------------------- */

static void reduce(Running *r, double start, double (*f)(double, double)) {
    for (int64_t i = 0; i < r->out[0]->count; i++) r->out[0]->data[i] = start;
    for (int64_t i = 0; i < r->in[0]->count; i++) {
        double *to = &r->out[0]->data[interp_folded_index(r->in[0], dims_of(r), i)];
        *to = f(*to, r->in[0]->data[i]);
    }
}

static void run_reduce_sum(Running *r) { reduce(r, 0.0, interp_add); }
static void run_reduce_max(Running *r) { reduce(r, -INFINITY, interp_larger); }
static void run_reduce_min(Running *r) { reduce(r, INFINITY, interp_smaller); }
static void run_reduce_or(Running *r) { reduce(r, 0.0, interp_either); }

/* ---- sums and means ---------------------------------------------------------------------------------------------- */

static void run_sum(Running *r) {
    FOR_EACH(r, i) result(r)[i] = 0.0;
    for (int64_t i = 0; i < r->in[0]->count; i++)
        result(r)[interp_folded_index(r->in[0], dims_of(r), i)] += r->in[0]->data[i];
}

static void run_mean(Running *r) {
    run_sum(r);
    FOR_EACH(r, i) result(r)[i] /= (double)interp_folded_count(r->in[0], dims_of(r));
}

static void run_broadcast_to(Running *r) {
    double divisor = interp_bool(r, "mean") ? (double)interp_folded_count(r->out[0], dims_of(r)) : 1.0;
    FOR_EACH(r, i) result(r)[i] = r->in[0]->data[interp_folded_index(r->out[0], dims_of(r), i)] / divisor;
}

/* Every element of dy is added to the element of the result that it was broadcast from. */
static void run_sum_to(Running *r) {
    const InterpTensor *dy = r->in[0], *to = r->out[0];
    FOR_EACH(r, i) result(r)[i] = 0.0;
    for (int64_t i = 0; i < dy->count; i++) {
        int64_t index = 0, stride = 1, rest = i;
        for (int d = dy->rank - 1, own = to->rank - 1; own >= 0; d--, own--) {
            index += (to->dims[own] == 1 ? 0 : rest % dy->dims[d]) * stride;
            stride *= to->dims[own];
            rest /= dy->dims[d];
        }
        result(r)[index] += dy->data[i];
    }
}

/* ---- extremes ---------------------------------------------------------------------------------------------------- */

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

/* ---- variance ---------------------------------------------------------------------------------------------------- */

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

const InterpFn interp_reduce_ops[OP_COUNT] = {
    [OP_reduce_sum] = run_reduce_sum,
    [OP_reduce_max] = run_reduce_max,
    [OP_reduce_min] = run_reduce_min,
    [OP_reduce_or] = run_reduce_or,
    [OP_sum] = run_sum,
    [OP_mean] = run_mean,
    [OP_sum_to] = run_sum_to,
    [OP_broadcast_to] = run_broadcast_to,
    [OP_max] = run_max,
    [OP_min] = run_min,
    [OP_extreme_grad] = run_extreme_grad,
    [OP_argmax] = run_argmax,
    [OP_var] = run_var,
    [OP_var_grad] = run_var_grad,
};
