/* unary_ops.c: what elementwise graph ops compute that came with the whole language, and their gradients. */
#include "ir/interp/ops.h"

#include <math.h>

static const double TWO_OVER_SQRT_PI = 1.12837916709551257390, SOFTPLUS_THRESHOLD = 20.0;

#define FOR_EACH(r, i) for (int64_t i = 0; i < (r)->out[0]->count; i++)

static double *result(const Running *r) { return r->out[0]->data; }
static double in(const Running *r, int operand, int64_t i) { return interp_at(r->in[operand], r->out[0], i); }

/* ---- values ---------------------------------------------------------------------------------- */

static double sigmoid(double x) { return 1.0 / (1.0 + exp(-x)); }

static void run_abs(Running *r) { FOR_EACH(r, i) result(r)[i] = fabs(in(r, 0, i)); }
static void run_silu(Running *r) { FOR_EACH(r, i) result(r)[i] = in(r, 0, i) / (1.0 + exp(-in(r, 0, i))); }
static void run_rsqrt(Running *r) { FOR_EACH(r, i) result(r)[i] = 1.0 / sqrt(in(r, 0, i)); }
static void run_pow(Running *r) { FOR_EACH(r, i) result(r)[i] = pow(in(r, 0, i), interp_float(r, "e")); }
static void run_cos(Running *r) { FOR_EACH(r, i) result(r)[i] = cos(in(r, 0, i)); }

static void run_softplus(Running *r) {
    FOR_EACH(r, i) {
        double x = in(r, 0, i);
        result(r)[i] = x > SOFTPLUS_THRESHOLD ? x : log1p(exp(x));
    }
}

static void run_clamp(Running *r) {
    double low = interp_float(r, "low"), high = interp_float(r, "high");
    FOR_EACH(r, i) {
        double x = in(r, 0, i), raised = x < low ? low : x;
        result(r)[i] = raised > high ? high : raised;
    }
}

static void run_where(Running *r) { FOR_EACH(r, i) result(r)[i] = in(r, in(r, 0, i) != 0 ? 1 : 2, i); }
static void run_ne(Running *r) { FOR_EACH(r, i) result(r)[i] = in(r, 0, i) != in(r, 1, i); }
static void run_gt(Running *r) { FOR_EACH(r, i) result(r)[i] = in(r, 0, i) > in(r, 1, i); }
static void run_ge(Running *r) { FOR_EACH(r, i) result(r)[i] = in(r, 0, i) >= in(r, 1, i); }

/* ---- gradients ------------------------------------------------------------------------------- */

static double abs_slope(double x) { return x > 0 ? 1.0 : x < 0 ? -1.0 : 0.0; } /* 0 at NaN, as torch.sgn */
static double silu_slope(double x) { return sigmoid(x) * (1.0 + x * (1.0 - sigmoid(x))); }
static double softplus_slope(double x) { return x > SOFTPLUS_THRESHOLD ? 1.0 : sigmoid(x); }
static double erf_slope(double x) { return TWO_OVER_SQRT_PI * exp(-x * x); }
static double rsqrt_slope(double y) { return -0.5 * y * y * y; }

/* dy times the slope at the second operand. */
static void chain(Running *r, double (*slope)(double)) {
    FOR_EACH(r, i) result(r)[i] = in(r, 0, i) * slope(in(r, 1, i));
}

static void run_abs_grad(Running *r) { chain(r, abs_slope); }
static void run_silu_grad(Running *r) { chain(r, silu_slope); }
static void run_softplus_grad(Running *r) { chain(r, softplus_slope); }
static void run_erf_grad(Running *r) { chain(r, erf_slope); }
static void run_rsqrt_grad(Running *r) { chain(r, rsqrt_slope); }

static void run_pow_grad(Running *r) {
    double e = interp_float(r, "e");
    FOR_EACH(r, i) result(r)[i] = in(r, 0, i) * (e == 0 ? 0.0 : e * pow(in(r, 1, i), e - 1.0));
}

/* dy or nothing, not dy * 0, which is NaN where dy is infinite.  A bound that is infinite is none. */
static void run_clamp_grad(Running *r) {
    double low = interp_float(r, "low"), high = interp_float(r, "high");
    FOR_EACH(r, i) {
        double x = in(r, 1, i);
        bool passes = (x > low || low == -INFINITY) && (x < high || high == INFINITY);
        result(r)[i] = passes ? in(r, 0, i) : 0.0;
    }
}

static void run_where_grad(Running *r) {
    FOR_EACH(r, i) {
        bool first = in(r, 1, i) != 0;
        r->out[0]->data[i] = first ? in(r, 0, i) : 0.0;
        r->out[1]->data[i] = first ? 0.0 : in(r, 0, i);
    }
}

const InterpFn interp_unary_ops[OP_COUNT] = {
    [OP_abs] = run_abs,
    [OP_silu] = run_silu,
    [OP_rsqrt] = run_rsqrt,
    [OP_pow] = run_pow,
    [OP_cos] = run_cos,
    [OP_softplus] = run_softplus,
    [OP_clamp] = run_clamp,
    [OP_where] = run_where,
    [OP_ne] = run_ne,
    [OP_gt] = run_gt,
    [OP_ge] = run_ge,
    [OP_abs_grad] = run_abs_grad,
    [OP_silu_grad] = run_silu_grad,
    [OP_softplus_grad] = run_softplus_grad,
    [OP_erf_grad] = run_erf_grad,
    [OP_rsqrt_grad] = run_rsqrt_grad,
    [OP_clamp_grad] = run_clamp_grad,
    [OP_pow_grad] = run_pow_grad,
    [OP_where_grad] = run_where_grad,
};
