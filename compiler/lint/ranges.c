/* ranges.c: bounds of values, from the ops that make them: sigmoid is between 0 and 1, exp of what is at most 0 at most
 * 1.  What no op bounds may be anything.  In exact arithmetic: roundings are the checks' business. */
#include <math.h>
#include <string.h>

#include "compiler/lint/check.h"

static const Range anything = {-INFINITY, INFINITY, false};

typedef struct Ranger {
    const LintFunc *g;
    Range *of;
    int64_t batch;
} Ranger;

static Range input(const Ranger *x, const Op *o, int i) { return x->of[o->in[i].id]; }

static Range between(double low, double high) { return (Range){low, high, false}; }

static Range join(Range a, Range b) { return (Range){fmin(a.low, b.low), fmax(a.high, b.high), a.whole && b.whole}; }

/* 0 times infinity is 0: the bound is of finite numbers. */
static double times(double a, double b) { return a == 0.0 || b == 0.0 ? 0.0 : a * b; }

static Range product(Range a, Range b) {
    const double p = times(a.low, b.low), q = times(a.low, b.high), r = times(a.high, b.low), s = times(a.high, b.high);
    return (Range){fmin(fmin(p, q), fmin(r, s)), fmax(fmax(p, q), fmax(r, s)), a.whole && b.whole};
}

static Range sum(Range a, Range b) { return (Range){a.low + b.low, a.high + b.high, a.whole && b.whole}; }

static Range negated(Range a) { return (Range){-a.high, -a.low, a.whole}; }

/* f grows with x. */
static Range through(Range a, double (*f)(double)) { return between(f(a.low), f(a.high)); }

static Range magnitude(Range a) {
    const double least = a.low <= 0.0 && a.high >= 0.0 ? 0.0 : fmin(fabs(a.low), fabs(a.high));
    return (Range){least, range_largest(a), a.whole};
}

/* ---- pairs ------------------------------------------------------------------------------------------------------- */

/* x - max(x), x - logsumexp(x): at most 0. */
static bool is_below(const LintFunc *g, Val x, Val y) {
    const Op *top = lint_maker(g, y, NULL);
    return top && (top->code == OP_max || top->code == OP_logsumexp) && lint_is_same(g, top->in[0], x);
}

static Range of_add(const Ranger *x, const Op *o) { return sum(input(x, o, 0), input(x, o, 1)); }

static Range of_maximum(const Ranger *x, const Op *o) {
    const Range a = input(x, o, 0), b = input(x, o, 1);
    return between(fmax(a.low, b.low), fmax(a.high, b.high));
}

static Range of_minimum(const Ranger *x, const Op *o) {
    const Range a = input(x, o, 0), b = input(x, o, 1);
    return between(fmin(a.low, b.low), fmin(a.high, b.high));
}

static Range of_sub(const Ranger *x, const Op *o) {
    Range r = sum(input(x, o, 0), negated(input(x, o, 1)));
    if (is_below(x->g, o->in[0], o->in[1])) r.high = 0.0;
    return r;
}

static Range of_mul(const Ranger *x, const Op *o) {
    const Range a = input(x, o, 0);
    if (!lint_is_same(x->g, o->in[0], o->in[1])) return product(a, input(x, o, 1));
    const Range m = magnitude(a);
    return (Range){m.low * m.low, m.high * m.high, a.whole};
}

static Range of_div(const Ranger *x, const Op *o) {
    double by;
    if (!lint_number(x->g, o->in[1], &by) || by == 0.0) {
        const Range b = input(x, o, 1);
        return b.low > 0.0 ? product(input(x, o, 0), between(1.0 / b.high, 1.0 / b.low)) : anything;
    }
    return product(input(x, o, 0), between(1.0 / by, 1.0 / by));
}

static Range of_pow(const Ranger *x, const Op *o) {
    const double e = ir_attr(o, "e")->f;
    const Range m = magnitude(input(x, o, 0));
    if (e < 0.0) return anything;
    const bool even = fmod(e, 2.0) == 0.0;
    return between(even || input(x, o, 0).low >= 0.0 ? pow(m.low, e) : -pow(m.high, e), pow(m.high, e));
}

static Range of_total(const Ranger *x, const Op *o) {
    const double count = lint_reduced(x->g, o, x->batch);
    const Range a = input(x, o, 0);
    return between(times(a.low, count), times(a.high, count));
}

static Range of_clamp(const Ranger *x, const Op *o) {
    const Range a = input(x, o, 0);
    const double low = ir_attr(o, "low")->f, high = ir_attr(o, "high")->f;
    return between(fmin(fmax(a.low, low), high), fmin(fmax(a.high, low), high));
}

static Range of_dropout(const Ranger *x, const Op *o) {
    const double kept = 1.0 - ir_attr(o, "p")->f;
    return join(between(0.0, 0.0), product(input(x, o, 0), between(1.0 / kept, 1.0 / kept)));
}

/* ---- what hands numbers on --------------------------------------------------------------------------------------- */

static Range of_same(const Ranger *x, const Op *o) { return input(x, o, 0); }

static Range of_same_and_0(const Ranger *x, const Op *o) { return join(input(x, o, 0), between(0.0, 0.0)); }

static Range of_all(const Ranger *x, const Op *o) {
    const int first = o->code == OP_where; /* behind the condition */
    Range r = input(x, o, first);
    for (int i = first + 1; i < o->n_in; i++) r = join(r, input(x, o, i));
    return r;
}

/* ---- one operand, and none --------------------------------------------------------------------------------------- */

static double positive(double v) { return fmax(v, 0.0); }

static Range of_number(const Ranger *x, const Op *o) {
    double number;
    return lint_number(x->g, o->out[0], &number) ? between(number, number) : anything;
}

static Range of_arange(const Ranger *x, const Op *o) {
    return (Range){0.0, (double)dim_eval(ir_shape(x->g->f, o->out[0])->d[0], x->batch) - 1.0, true};
}

static Range of_neg(const Ranger *x, const Op *o) { return negated(input(x, o, 0)); }
static Range of_abs(const Ranger *x, const Op *o) { return magnitude(input(x, o, 0)); }
static Range of_exp(const Ranger *x, const Op *o) { return through(input(x, o, 0), exp); }
static Range of_relu(const Ranger *x, const Op *o) { return through(input(x, o, 0), positive); }
/* silu, gelu, ...: about x where that is positive, and a little below 0. */
static Range of_gate(const Ranger *x, const Op *o) { return between(-0.5, positive(input(x, o, 0).high)); }

/* ---- by the op alone --------------------------------------------------------------------------------------------- */

static Range of_share(const Ranger *x, const Op *o) { return (void)x, (void)o, between(0.0, 1.0); }
static Range of_wave(const Ranger *x, const Op *o) { return (void)x, (void)o, between(-1.0, 1.0); }
static Range of_positive(const Ranger *x, const Op *o) { return (void)x, (void)o, between(0.0, INFINITY); }
static Range of_negative(const Ranger *x, const Op *o) { return (void)x, (void)o, between(-INFINITY, 0.0); }

/* ---- the table --------------------------------------------------------------------------------------------------- */

/* By opcode; NULL: anything. */
static Range (*const rules[OP_COUNT])(const Ranger *x, const Op *o) = {
    [OP_cast] = of_same,
    [OP_reshape] = of_same,
    [OP_flatten] = of_same,
    [OP_transpose] = of_same,
    [OP_permute] = of_same,
    [OP_slice] = of_same,
    [OP_expand] = of_same,
    [OP_detach] = of_same,
    [OP_barrier] = of_same,
    [OP_max] = of_same,
    [OP_min] = of_same,
    [OP_mean] = of_same,
    [OP_max_pool2d] = of_same,
    [OP_upsample] = of_same,
    [OP_adaptive_avg_pool2d] = of_same,
    [OP_pad] = of_same_and_0,
    [OP_avg_pool2d] = of_same_and_0,
    [OP_global_avg_pool] = of_same,
    [OP_concat] = of_all,
    [OP_stack] = of_all,
    [OP_where] = of_all,
    [OP_const] = of_number,
    [OP_full] = of_number,
    [OP_arange] = of_arange,
    [OP_add] = of_add,
    [OP_sub] = of_sub,
    [OP_mul] = of_mul,
    [OP_div] = of_div,
    [OP_maximum] = of_maximum,
    [OP_minimum] = of_minimum,
    [OP_neg] = of_neg,
    [OP_abs] = of_abs,
    [OP_exp] = of_exp,
    [OP_pow] = of_pow,
    [OP_sum] = of_total,
    [OP_clamp] = of_clamp,
    [OP_relu] = of_relu,
    [OP_dropout] = of_dropout,
    [OP_silu] = of_gate,
    [OP_gelu] = of_gate,
    [OP_mish] = of_gate,
    [OP_hard_swish] = of_gate,
    [OP_sigmoid] = of_share,
    [OP_softmax] = of_share,
    [OP_hard_sigmoid] = of_share,
    [OP_tanh] = of_wave,
    [OP_erf] = of_wave,
    [OP_sin] = of_wave,
    [OP_cos] = of_wave,
    [OP_sign] = of_wave,
    [OP_softplus] = of_positive,
    [OP_sqrt] = of_positive,
    [OP_rsqrt] = of_positive,
    [OP_var] = of_positive,
    [OP_norm] = of_positive,
    [OP_log_softmax] = of_negative,
};

Range *lint_ranges(Arena *a, const LintFunc *g, int64_t batch) {
    Ranger x = {g, arena_array(a, Range, g->f->values.len), batch};
    for (int i = 0; i < g->f->values.len; i++) x.of[i] = anything;
    for (int i = 0; i < g->f->inputs.len; i++) {
        const Val v = g->f->inputs.data[i];
        if (ir_dtype(g->f, v) == AMP_DT_U8) x.of[v.id] = between(0.0, 255.0);
    }
    for (int i = 0; i < g->f->body.len; i++) {
        const Op *o = ir_op_at(g->f, i);
        if (!rules[o->code]) continue;
        const Range r = rules[o->code](&x, o);
        x.of[o->out[0].id] = isnan(r.low) || isnan(r.high) ? anything : r;
    }
    return x.of;
}
