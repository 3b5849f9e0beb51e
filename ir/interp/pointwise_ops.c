/* pointwise_ops.c: what elementwise ops and their gradients compute. */
#include "base/dtypes.h"
#include "ir/interp/ops.h"

#include <math.h>

#include "base/hash.h"
#include "base/random.h"

/* M_SQRT1_2, M_2_SQRTPI and friends are not in C11. */
static const double SQRT_HALF = 0.70710678118654752440, SQRT_TWO_OVER_PI = 0.79788456080286535588,
                    INVERSE_SQRT_TWO_PI = 0.39894228040143267794, GELU_CUBE = 0.044715;

static const double TWO_OVER_SQRT_PI = 1.12837916709551257390, SOFTPLUS_THRESHOLD = 20.0;

/* ---- elementwise ------------------------------------------------------------------------------------------------- */

static double sub(double a, double b) { return a - b; }
static double mul(double a, double b) { return a * b; }
static double divide(double a, double b) { return a / b; }
static double less(double a, double b) { return a < b; }
static double less_or_equal(double a, double b) { return a <= b; }
static double equal(double a, double b) { return a == b; }
static double both(double a, double b) { return a != 0 && b != 0; }
static double negative(double a) { return -a; }
static double not(double a) { return a == 0; }
static double finite_number(double a) { return isfinite(a); }
static double plus_one(double a) { return a + 1; }

static void binary(Running *r, double (*f)(double, double)) {
    InterpTensor *out = r->out[0];
    for (int64_t i = 0; i < out->count; i++) out->data[i] = f(interp_at(r->in[0], out, i), interp_at(r->in[1], out, i));
}

static void unary(Running *r, double (*f)(double)) {
    for (int64_t i = 0; i < r->out[0]->count; i++) r->out[0]->data[i] = f(r->in[0]->data[i]);
}

#define BINARY(name, f)                                                                                                \
    void interp_op_##name(Running *r) { binary(r, f); }
#define UNARY(name, f)                                                                                                 \
    void interp_op_##name(Running *r) { unary(r, f); }
BINARY(add, interp_add)
BINARY(sub, sub)
BINARY(mul, mul)
BINARY(div, divide)
BINARY(maximum, interp_larger)
BINARY(minimum, interp_smaller)
BINARY(lt, less)
BINARY(le, less_or_equal)
BINARY(eq, equal)
BINARY(and, both)
BINARY(or, interp_either)
UNARY(neg, negative)
UNARY(exp, exp)
UNARY(log, log)
UNARY(sqrt, sqrt)
UNARY(expm1, expm1)
UNARY(log1p, log1p)
UNARY(floor, floor)
UNARY(tanh, tanh)
UNARY(erf, erf)
UNARY(sin, sin)
UNARY(cos, cos)
UNARY(not, not )
UNARY(is_finite, finite_number)
UNARY(increment, plus_one)

static double remainder_of(double a, double b) {
    const double rest = fmod(a, b);
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

static double whole_remainder(double a, double b) { return b == 0 ? 0 : remainder_of(a, b); }

void interp_op_remainder(Running *r) {
    binary(r, ir_dtype(r->f, r->op->out[0]) == AMP_DT_I32 ? whole_remainder : remainder_of);
}

void interp_op_select(Running *r) {
    InterpTensor *out = r->out[0];
    for (int64_t i = 0; i < out->count; i++)
        out->data[i] = interp_at(r->in[interp_at(r->in[0], out, i) != 0 ? 1 : 2], out, i);
}

/* The interpreter converts to the result's dtype: see finish_value in interp.c. */
void interp_op_cast(Running *r) {
    for (int64_t i = 0; i < r->out[0]->count; i++) r->out[0]->data[i] = r->in[0]->data[i];
}

void interp_op_const(Running *r) { r->out[0]->data[0] = interp_float(r, "value"); }

/* The interpreter writes states when the function has run. */
void interp_op_assign(Running *r) { (void)r; }

/* ---- activations ------------------------------------------------------------------------------------------------- */

void interp_op_relu(Running *r) { FOR_EACH(r, i) result(r)[i] = in(r, 0, i) < 0 ? 0.0 : in(r, 0, i); }

void interp_op_relu_grad(Running *r) { FOR_EACH(r, i) result(r)[i] = in(r, 1, i) <= 0 ? 0.0 : in(r, 0, i); }

static bool is_tanh(const Running *r) { return !strcmp(ir_attr(r->op, "approximate")->s, "tanh"); }

/* The argument of tanh and its derivative. */
static double gelu_inner(double x) { return SQRT_TWO_OVER_PI * (x + GELU_CUBE * x * x * x); }
static double gelu_inner_slope(double x) { return SQRT_TWO_OVER_PI * (1 + 3 * GELU_CUBE * x * x); }

void interp_op_gelu(Running *r) {
    FOR_EACH(r, i) {
        double x = in(r, 0, i);
        double cdf = is_tanh(r) ? 0.5 * (1 + tanh(gelu_inner(x))) : 0.5 * (1 + erf(x * SQRT_HALF));
        result(r)[i] = x * cdf;
    }
}

/* Phi(x) + x phi(x); the same by the chain rule where Phi is approximated. */
void interp_op_gelu_grad(Running *r) {
    FOR_EACH(r, i) {
        double x = in(r, 1, i), t = tanh(gelu_inner(x));
        double slope = is_tanh(r) ? 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * gelu_inner_slope(x)
                                  : 0.5 * (1 + erf(x * SQRT_HALF)) + x * INVERSE_SQRT_TWO_PI * exp(-0.5 * x * x);
        result(r)[i] = in(r, 0, i) * slope;
    }
}

void interp_op_sigmoid(Running *r) { FOR_EACH(r, i) result(r)[i] = 1 / (1 + exp(-in(r, 0, i))); }

void interp_op_sigmoid_grad(Running *r) { FOR_EACH(r, i) result(r)[i] = in(r, 0, i) * in(r, 1, i) * (1 - in(r, 1, i)); }

void interp_op_tanh_grad(Running *r) { FOR_EACH(r, i) result(r)[i] = in(r, 0, i) * (1 - in(r, 1, i) * in(r, 1, i)); }

/* The first number of a tensor, and the micro-batch that it is drawn by: as lower_place_in_step. */
static int64_t place_in_step(const Running *r, const Shape *s, const DrawNumbers *d, uint32_t *micro) {
    *micro = d->by_sample || !shape_batch_dims(s) ? 0 : (uint32_t)r->micro;
    return d->by_sample ? (int64_t)(r->micro * r->full_batch) * d->each : 0;
}

Dropout interp_dropout(const Running *r, const Shape *s) {
    const char *key = ir_attr(r->op, "key")->s;
    uint32_t hash = amp_hash32(key && *key ? key : r->op->path ? r->op->path : "");
    Dropout d = {.seed = r->seed, .key = hash, .iteration = (uint32_t)r->iteration, .p = interp_float(r, "p")};
    d.numbers = ir_draw_numbers(s);
    d.first = place_in_step(r, s, &d.numbers, &d.micro);
    return d;
}

double interp_kept(const Running *r, const Dropout *d, int64_t element) {
    if (d->p == 0.0) return 1.0;
    const uint64_t number = (uint64_t)(d->first + ir_draw_number(&d->numbers, element, r->at));
    uint32_t word = amp_random_u32(d->seed, d->key, d->iteration, d->micro, number);
    bool kept = amp_random_unit(word) >= interp_round(r->round, AMP_DT_F32, d->p);
    return kept ? interp_round(r->round, AMP_DT_F32, 1.0 / (1.0 - d->p)) : 0.0;
}

void interp_op_dropout(Running *r) {
    const Dropout d = interp_dropout(r, ir_shape(r->f, r->op->out[0]));
    FOR_EACH(r, i) {
        double kept = interp_kept(r, &d, i);
        result(r)[i] = kept == 0.0 ? 0.0 : in(r, 0, i) * kept; /* of inf and NaN, too */
    }
}

/* ---- stochastic rounding ---------------------------------------------------------------------------------------- */

/* Steps between neighbours of |x|: 2^(exponent of x - bits of the fraction), in the subnormals the smallest number. */
static double unit_at(Dtype t, double x) {
    const int digits = t == AMP_DT_F16 ? 11 : 8, smallest = t == AMP_DT_F16 ? -24 : -133;
    int exponent = smallest;
    if (x != 0.0) frexp(x, &exponent);
    return ldexp(1.0, exponent - digits > smallest ? exponent - digits : smallest);
}

/* The 8 bits of moments: base/rounding.h. */
static double dithered_f8(Dtype t, double x, double u) {
    const bool first = t == AMP_DT_F8M;
    const double least = first ? 0x1p-26 : 0x1p-52, largest = first ? 40.0 : 2560.0, size = fabs(x);
    if (!first && x <= 0.0) return 0.0;
    if (!isfinite(x)) return NAN;
    if (size < least) return first ? copysign(u < size / least ? least : 0.0, x) : least;
    int exponent;
    frexp(size, &exponent);
    const double unit = ldexp(1.0, exponent - 3), steps = size / unit, below = floor(steps);
    const double rounded = (u < steps - below ? below + 1 : below) * unit;
    return copysign(rounded < largest ? rounded : largest, x);
}

static double dithered(Dtype t, double x, double u) {
    if (amp_is_f8(t)) return dithered_f8(t, x, u);
    const double largest = t == AMP_DT_F16 ? 65504.0 : 0x1.FEp127;
    if (!isfinite(x)) return x;
    double unit = unit_at(t, x), steps = fabs(x) / unit, below = floor(steps);
    double size = (u < steps - below ? below + 1 : below) * unit;
    return copysign(size < largest ? size : largest, x);
}

void interp_op_dithered_cast(Running *r) {
    Dtype t = ir_dtype(r->f, r->op->out[0]);
    FOR_EACH(r, i) result(r)[i] = r->round ? dithered(t, in(r, 0, i), in(r, 1, i)) : in(r, 0, i);
}

void interp_op_stochastic_cast(Running *r) {
    Dtype t = ir_dtype(r->f, r->op->out[0]);
    const uint32_t key = amp_hash32(ir_attr(r->op, "key")->s);
    FOR_EACH(r, i) { /* of a parameter or a moment, which have no N */
        uint64_t element = (uint64_t)(4 * i + interp_int(r, "word"));
        uint32_t word = amp_random_u32(r->seed, key, (uint32_t)r->iteration, 0, element);
        result(r)[i] = r->round ? dithered(t, in(r, 0, i), amp_random_unit(word)) : in(r, 0, i);
    }
}

/* ---- functions and choices --------------------------------------------------------------------------------------- */

static double sigmoid(double x) { return 1.0 / (1.0 + exp(-x)); }

void interp_op_abs(Running *r) { FOR_EACH(r, i) result(r)[i] = fabs(in(r, 0, i)); }
void interp_op_silu(Running *r) { FOR_EACH(r, i) result(r)[i] = in(r, 0, i) / (1.0 + exp(-in(r, 0, i))); }
void interp_op_rsqrt(Running *r) { FOR_EACH(r, i) result(r)[i] = 1.0 / sqrt(in(r, 0, i)); }
void interp_op_pow(Running *r) { FOR_EACH(r, i) result(r)[i] = pow(in(r, 0, i), interp_float(r, "e")); }

void interp_op_softplus(Running *r) {
    FOR_EACH(r, i) {
        double x = in(r, 0, i);
        result(r)[i] = x > SOFTPLUS_THRESHOLD ? x : log1p(exp(x));
    }
}

void interp_op_clamp(Running *r) {
    double low = interp_float(r, "low"), high = interp_float(r, "high");
    FOR_EACH(r, i) {
        double x = in(r, 0, i), raised = x < low ? low : x;
        result(r)[i] = raised > high ? high : raised;
    }
}

void interp_op_where(Running *r) { FOR_EACH(r, i) result(r)[i] = in(r, in(r, 0, i) != 0 ? 1 : 2, i); }
void interp_op_ne(Running *r) { FOR_EACH(r, i) result(r)[i] = in(r, 0, i) != in(r, 1, i); }
void interp_op_gt(Running *r) { FOR_EACH(r, i) result(r)[i] = in(r, 0, i) > in(r, 1, i); }
void interp_op_ge(Running *r) { FOR_EACH(r, i) result(r)[i] = in(r, 0, i) >= in(r, 1, i); }

/* ---- gradients --------------------------------------------------------------------------------------------------- */

static double abs_slope(double x) { return x > 0 ? 1.0 : x < 0 ? -1.0 : 0.0; } /* 0 at NaN, as torch.sgn */
static double silu_slope(double x) { return sigmoid(x) * (1.0 + x * (1.0 - sigmoid(x))); }
static double softplus_slope(double x) { return x > SOFTPLUS_THRESHOLD ? 1.0 : sigmoid(x); }
static double erf_slope(double x) { return TWO_OVER_SQRT_PI * exp(-x * x); }
static double rsqrt_slope(double y) { return -0.5 * y * y * y; }

/* dy times the slope at the second operand. */
static void chain(Running *r, double (*slope)(double)) {
    FOR_EACH(r, i) result(r)[i] = in(r, 0, i) * slope(in(r, 1, i));
}

void interp_op_abs_grad(Running *r) { chain(r, abs_slope); }
void interp_op_silu_grad(Running *r) { chain(r, silu_slope); }
void interp_op_softplus_grad(Running *r) { chain(r, softplus_slope); }
void interp_op_erf_grad(Running *r) { chain(r, erf_slope); }
void interp_op_rsqrt_grad(Running *r) { chain(r, rsqrt_slope); }

void interp_op_pow_grad(Running *r) {
    double e = interp_float(r, "e");
    FOR_EACH(r, i) result(r)[i] = in(r, 0, i) * (e == 0 ? 0.0 : e * pow(in(r, 1, i), e - 1.0));
}

/* dy or nothing, not dy * 0, which is NaN where dy is infinite.  A bound that is infinite is none. */
void interp_op_clamp_grad(Running *r) {
    double low = interp_float(r, "low"), high = interp_float(r, "high");
    FOR_EACH(r, i) {
        double x = in(r, 1, i);
        bool passes = (x > low || low == -INFINITY) && (x < high || high == INFINITY);
        result(r)[i] = passes ? in(r, 0, i) : 0.0;
    }
}

void interp_op_where_grad(Running *r) {
    FOR_EACH(r, i) {
        bool first = in(r, 1, i) != 0;
        r->out[0]->data[i] = first ? in(r, 0, i) : 0.0;
        r->out[1]->data[i] = first ? 0.0 : in(r, 0, i);
    }
}
