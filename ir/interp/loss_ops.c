/* loss_ops.c: losses of two tensors of one shape, and folds that are more than one reduction: logsumexp, norm, prod. */
#include "ir/interp/ops.h"

#include <math.h>

/* ---- losses of two tensors --------------------------------------------------------------------------------------- */

/* Of one pair: its loss, and the slopes by a and b. */
typedef struct PairTerm {
    double loss, da, db;
} PairTerm;
typedef PairTerm (*PairFn)(const Running *r, double a, double b);

static double sign(double d) { return (d > 0) - (d < 0); }

static PairTerm of_difference(double loss, double slope) { return (PairTerm){loss, slope, -slope}; }

static PairTerm l1_term(const Running *r, double a, double b) {
    (void)r;
    return of_difference(fabs(a - b), sign(a - b));
}

/* Within beta a parabola; a difference of NaN is within it. */
static PairTerm smooth_l1_term(const Running *r, double a, double b) {
    double beta = interp_float(r, "beta"), d = a - b;
    if (beta == 0) return l1_term(r, a, b);
    bool outside = fabs(d) >= beta;
    return of_difference(outside ? fabs(d) - 0.5 * beta : 0.5 * d * d / beta, outside ? sign(d) : d / beta);
}

static PairTerm huber_term(const Running *r, double a, double b) {
    double delta = interp_float(r, "delta"), d = a - b;
    bool outside = fabs(d) >= delta;
    return of_difference(outside ? delta * (fabs(d) - 0.5 * delta) : 0.5 * d * d, outside ? delta * sign(d) : d);
}

/* t log t is 0 at 0; its slope there is NaN, as in PyTorch. */
static PairTerm kl_term(const Running *r, double x, double t) {
    (void)r;
    double log_t = t == 0 ? 0.0 : log(t);
    return (PairTerm){t * log_t - t * x, -t, log_t + t / t - x};
}

static double divisor_of(const Running *r, const InterpTensor *x) {
    const AttrValue *reduction = ir_attr(r->op, "reduction");
    return reduction && !strcmp(reduction->s, "batchmean") ? (double)x->dims[0] : (double)x->count;
}

static void pair_loss(Running *r, PairFn term) {
    double sum = 0.0;
    for (int64_t i = 0; i < r->in[0]->count; i++) sum += term(r, r->in[0]->data[i], r->in[1]->data[i]).loss;
    result(r)[0] = sum / divisor_of(r, r->in[0]);
}

/* (g, a, b) */
static void pair_loss_grad(Running *r, PairFn term) {
    double share = r->in[0]->data[0] / divisor_of(r, r->in[1]);
    FOR_EACH(r, i) {
        PairTerm t = term(r, r->in[1]->data[i], r->in[2]->data[i]);
        r->out[0]->data[i] = share * t.da;
        r->out[1]->data[i] = share * t.db;
    }
}

void interp_op_l1_loss(Running *r) { pair_loss(r, l1_term); }
void interp_op_smooth_l1_loss(Running *r) { pair_loss(r, smooth_l1_term); }
void interp_op_huber_loss(Running *r) { pair_loss(r, huber_term); }
void interp_op_kl_div(Running *r) { pair_loss(r, kl_term); }
void interp_op_l1_loss_grad(Running *r) { pair_loss_grad(r, l1_term); }
void interp_op_smooth_l1_loss_grad(Running *r) { pair_loss_grad(r, smooth_l1_term); }
void interp_op_huber_loss_grad(Running *r) { pair_loss_grad(r, huber_term); }
void interp_op_kl_div_grad(Running *r) { pair_loss_grad(r, kl_term); }

/* ---- folds ------------------------------------------------------------------------------------------------------- */

void interp_op_logsumexp(Running *r) {
    const InterpTensor *x = r->in[0];
    double *largest = interp_scratch(r, x->count);
    FOR_EACH(r, i) result(r)[i] = 0.0, largest[i] = -INFINITY;
    FOR_FOLDED(r, x, i, to) largest[to] = interp_larger(largest[to], x->data[i]);
    FOR_FOLDED(r, x, i, to) result(r)[to] += exp(x->data[i] - (isfinite(largest[to]) ? largest[to] : 0.0));
    FOR_EACH(r, i) result(r)[i] = log(result(r)[i]) + (isfinite(largest[i]) ? largest[i] : 0.0);
}

/* (dy, x, y) */
void interp_op_logsumexp_grad(Running *r) {
    const InterpTensor *x = r->in[1];
    FOR_FOLDED(r, x, i, to) result(r)[i] = r->in[0]->data[to] * exp(x->data[i] - r->in[2]->data[to]);
}

void interp_op_norm(Running *r) {
    const InterpTensor *x = r->in[0];
    double p = interp_float(r, "p");
    FOR_EACH(r, i) result(r)[i] = 0.0;
    if (p == 0.0 || isinf(p)) {
        FOR_FOLDED(r, x, i, to) {
            double *y = &result(r)[to];
            *y = p == 0.0 ? *y + (x->data[i] != 0) : interp_larger(*y, fabs(x->data[i]));
        }
        return;
    }
    FOR_FOLDED(r, x, i, to) result(r)[to] += pow(fabs(x->data[i]), p);
    FOR_EACH(r, i) result(r)[i] = pow(result(r)[i], 1.0 / p);
}

static bool is_largest(double x, double y) { return fabs(x) == y || isnan(x); }

/* (dy, x, y): dy sign(x), shared evenly by those whose |x| is y. */
static void largest_norm_grad(Running *r) {
    const InterpTensor *x = r->in[1];
    const double *y = r->in[2]->data;
    double *equals = interp_scratch(r, r->in[2]->count);
    FOR_FOLDED(r, x, i, to) equals[to] += is_largest(x->data[i], y[to]);
    FOR_FOLDED(r, x, i, to) {
        double share = is_largest(x->data[i], y[to]) ? r->in[0]->data[to] / equals[to] : 0.0;
        result(r)[i] = x->data[i] > 0 ? share : x->data[i] < 0 ? -share : 0.0;
    }
}

/* (dy, x, y): dy sign(x) (|x| / y)^(p - 1); 0 where x or y is */
void interp_op_norm_grad(Running *r) {
    const InterpTensor *x = r->in[1];
    double p = interp_float(r, "p");
    if (isinf(p)) {
        largest_norm_grad(r);
        return;
    }
    if (p == 0.0) {
        FOR_EACH(r, i) result(r)[i] = 0.0;
        return;
    }
    FOR_FOLDED(r, x, i, to) {
        double v = x->data[i], y = r->in[2]->data[to], dy = r->in[0]->data[to];
        double slope = p == 1 ? sign(v) : sign(v) * pow(fabs(v), p - 1.0) / pow(y, p - 1.0);
        result(r)[i] = v == 0 || (y == 0 && p != 1) ? 0.0 : isnan(v) && p != 1 ? NAN : dy * slope;
    }
}

void interp_op_prod(Running *r) {
    const InterpTensor *x = r->in[0];
    FOR_EACH(r, i) result(r)[i] = 1.0;
    FOR_FOLDED(r, x, i, to) result(r)[to] *= x->data[i];
}
INTERP_ALIKE(reduce_prod, prod)

/* (dy, x): dy times the product of the others */
void interp_op_prod_grad(Running *r) {
    const InterpTensor *x = r->in[1];
    double *rest = interp_scratch(r, x->count), *zeros = interp_scratch(r, x->count);
    for (int64_t i = 0; i < x->count; i++) rest[i] = 1.0;
    FOR_FOLDED(r, x, i, to) {
        zeros[to] += x->data[i] == 0;
        rest[to] *= x->data[i] == 0 ? 1.0 : x->data[i];
    }
    FOR_FOLDED(r, x, i, to) {
        double v = x->data[i];
        double others = v == 0 ? (zeros[to] == 1 ? rest[to] : 0.0) : zeros[to] > 0 ? 0.0 : rest[to] / v;
        result(r)[i] = r->in[0]->data[to] * others;
    }
}
