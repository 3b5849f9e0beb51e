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

/* d f(x) / dx, from |v|: x, or y for rsqrt; a and b are f's constants. */
typedef double (*SlopeFn)(double v, double a, double b);

static double abs_slope(double x, double a, double b) {
    (void)a, (void)b;
    return x > 0 ? 1.0 : x < 0 ? -1.0 : 0.0; /* 0 at 0 and at NaN, as torch.sgn */
}

static double silu_slope(double x, double a, double b) {
    (void)a, (void)b;
    return sigmoid(x) * (1.0 + x * (1.0 - sigmoid(x)));
}

static double softplus_slope(double x, double a, double b) {
    (void)a, (void)b;
    return x > SOFTPLUS_THRESHOLD ? 1.0 : sigmoid(x);
}

static double erf_slope(double x, double a, double b) {
    (void)a, (void)b;
    return TWO_OVER_SQRT_PI * exp(-x * x);
}

/* 0 at an end itself; a bound that is infinite is none. */
static double clamp_slope(double x, double low, double high) {
    return (x > low || low == -INFINITY) && (x < high || high == INFINITY) ? 1.0 : 0.0;
}

static double pow_slope(double x, double e, double b) {
    (void)b;
    return e == 0 ? 0.0 : e * pow(x, e - 1.0);
}

static double rsqrt_slope(double y, double a, double b) {
    (void)a, (void)b;
    return -0.5 * y * y * y;
}

static const struct {
    const char *of;
    SlopeFn slope;
} slopes[] = {{"abs", abs_slope},     {"silu", silu_slope}, {"softplus", softplus_slope}, {"erf", erf_slope},
              {"clamp", clamp_slope}, {"pow", pow_slope},   {"rsqrt", rsqrt_slope}};

/* The shape rule has checked that there is one. */
static SlopeFn slope_of(const Running *r) {
    for (size_t i = 0; i < sizeof slopes / sizeof slopes[0]; i++)
        if (!strcmp(slopes[i].of, ir_attr(r->op, "of")->s)) return slopes[i].slope;
    return NULL;
}

static void run_unary_grad(Running *r) {
    SlopeFn slope = slope_of(r);
    double a = interp_float(r, "a"), b = interp_float(r, "b");
    bool is_choice = slope == clamp_slope; /* which passes dy or nothing: not 0 * infinity */
    FOR_EACH(r, i) {
        double s = slope(in(r, 1, i), a, b);
        result(r)[i] = is_choice && s == 0 ? 0.0 : in(r, 0, i) * s;
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
    [OP_unary_grad] = run_unary_grad,
    [OP_where_grad] = run_where_grad,
};
