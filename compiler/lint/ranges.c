/* ranges.c: bounds of values, from the ops that make them: sigmoid is between 0 and 1, exp of what is at most 0 at most
 * 1.  What no op bounds may be anything.  In exact arithmetic: roundings are the checks' business. */
#include <math.h>
#include <string.h>

#include "compiler/lint/lint.h"

static const Range anything = {-INFINITY, INFINITY, {0.0, 0.0, NAN, false, false}};

typedef struct Ranger {
    const LintFunc *g;
    Range *of;
    Sizes at;
} Ranger;

/* Counts that the type of the operand does not hold were told of where they were rounded to it. */
static Range input(const Ranger *x, const Op *o, int i) {
    Range r = x->of[o->in[i].id];
    if (!grid_is_held(r.grid, ir_dtype(x->g->f, o->in[i]))) r.grid = grid_none();
    return r;
}

static Range between(double low, double high) { return (Range){low, high, grid_none()}; }

static Range number(double v) { return (Range){v, v, grid_one(v)}; }

static Range join(Range a, Range b) {
    return (Range){fmin(a.low, b.low), fmax(a.high, b.high), grid_join(a.grid, b.grid)};
}

/* 0 times infinity is 0: the bound is of finite numbers. */
static double times(double a, double b) { return a == 0.0 || b == 0.0 ? 0.0 : a * b; }

static Range product(Range a, Range b) {
    const double p = times(a.low, b.low), q = times(a.low, b.high), r = times(a.high, b.low), s = times(a.high, b.high);
    return (Range){fmin(fmin(p, q), fmin(r, s)), fmax(fmax(p, q), fmax(r, s)), grid_product(a.grid, b.grid)};
}

static Range sum(Range a, Range b) { return (Range){a.low + b.low, a.high + b.high, grid_sum(a.grid, b.grid)}; }

static Range negated(Range a) { return (Range){-a.high, -a.low, grid_negated(a.grid)}; }

static Range within(Range a, double low, double high) {
    return (Range){fmin(fmax(a.low, low), high), fmin(fmax(a.high, low), high), grid_clipped(a.grid, low, high)};
}

/* f grows with x. */
static Range through(Range a, double (*f)(double)) { return between(f(a.low), f(a.high)); }

static Range magnitude(Range a) {
    const double least = a.low <= 0.0 && a.high >= 0.0 ? 0.0 : fmin(fabs(a.low), fabs(a.high));
    return (Range){least, range_largest(a), grid_magnitude(a.grid)};
}

/* ---- pairs ------------------------------------------------------------------------------------------------------- */

/* x - max(x), x - logsumexp(x): at most 0. */
static bool is_below(const LintFunc *g, Val x, Val y) {
    const Op *top = lint_maker(g, y, NULL);
    return top && (top->code == OP_max || top->code == OP_logsumexp) && lint_is_same(g, top->in[0], x);
}

/* Counts along one and the same dimension: element k of one is beside element k of the other. */
static bool meet_in_order(const Ranger *x, Val a, Val b) {
    const Shape *s = ir_shape(x->g->f, a);
    int dims = 0;
    for (int i = 0; i < s->rank; i++) dims += dim_eval(s->d[i], x->at) > 1;
    return x->of[a.id].grid.in_order && x->of[b.id].grid.in_order && dims == 1 && shape_equal(s, ir_shape(x->g->f, b));
}

static Range added(const Ranger *x, const Op *o, Range a, Range b) {
    Range r = sum(a, b);
    if (meet_in_order(x, o->in[0], o->in[1])) r.grid = grid_sum_in_order(a.grid, b.grid);
    return r;
}

static Range of_add(const Ranger *x, const Op *o) {
    const Range a = input(x, o, 0);
    return lint_is_same(x->g, o->in[0], o->in[1]) ? product(a, number(2.0)) : added(x, o, a, input(x, o, 1));
}

static Range larger(Range a, Range b) {
    return (Range){fmax(a.low, b.low), fmax(a.high, b.high), grid_maximum(a.grid, b.grid)};
}

static Range of_maximum(const Ranger *x, const Op *o) { return larger(input(x, o, 0), input(x, o, 1)); }

static Range of_minimum(const Ranger *x, const Op *o) {
    return negated(larger(negated(input(x, o, 0)), negated(input(x, o, 1))));
}

static Range of_sub(const Ranger *x, const Op *o) {
    Range r = added(x, o, input(x, o, 0), negated(input(x, o, 1)));
    if (is_below(x->g, o->in[0], o->in[1])) r.high = 0.0;
    return r;
}

static Range of_mul(const Ranger *x, const Op *o) {
    const Range a = input(x, o, 0);
    if (!lint_is_same(x->g, o->in[0], o->in[1])) return product(a, input(x, o, 1));
    const Range m = magnitude(a);
    return (Range){m.low * m.low, m.high * m.high, grid_square(a.grid)};
}

static Range of_div(const Ranger *x, const Op *o) {
    double by;
    if (!lint_number(x->g, o->in[1], &by) || by == 0.0) {
        const Range b = input(x, o, 1);
        return b.low > 0.0 ? product(input(x, o, 0), between(1.0 / b.high, 1.0 / b.low)) : anything;
    }
    return product(input(x, o, 0), number(1.0 / by));
}

static Range of_remainder(const Ranger *x, const Op *o) {
    const Range by = input(x, o, 1);
    if (!(by.low > 0.0)) return anything;
    return between(0.0, ir_dtype(x->g->f, o->out[0]) == AMP_DT_I32 ? by.high - 1.0 : by.high);
}

static Range of_pow(const Ranger *x, const Op *o) {
    const double e = ir_attr(o, "e")->f;
    const Range m = magnitude(input(x, o, 0));
    if (e < 0.0) return anything;
    const bool even = fmod(e, 2.0) == 0.0;
    Range r = between(even || input(x, o, 0).low >= 0.0 ? pow(m.low, e) : -pow(m.high, e), pow(m.high, e));
    if (e == 1.0 || e == 2.0) r.grid = e == 1.0 ? input(x, o, 0).grid : grid_square(input(x, o, 0).grid);
    return r;
}

/* What `gather` and `one_hot` compare: each index with all positions along the last dimension; at most one
 * is equal. */
static bool is_one_place(const Ranger *x, Val v) {
    const Op *o = lint_maker(x->g, v, NULL);
    for (int i = 0; o && o->code == OP_eq && i < 2; i++) {
        const Op *places = lint_maker(x->g, o->in[i], NULL);
        const Shape *s = ir_shape(x->g->f, o->in[i]);
        if (places && places->code == OP_arange && s->rank && dim_eval(s->d[s->rank - 1], x->at) > 1) return true;
    }
    return false;
}

/* A sum in which one term is chosen and the others are 0. */
static bool is_choice(const Ranger *x, const Op *o) {
    const Op *a = lint_maker(x->g, o->in[0], NULL);
    const Dims *dims = &ir_attr(o, "dims")->dims;
    const int rank = ir_shape(x->g->f, o->in[0])->rank;
    double other = 1.0;
    if (!a || dims->count != 1 || (dims->at[0] != -1 && dims->at[0] != rank - 1)) return false;
    if (a->code == OP_where) return is_one_place(x, a->in[0]) && lint_number(x->g, a->in[2], &other) && other == 0.0;
    if (a->code == OP_mul) return is_one_place(x, a->in[0]) || is_one_place(x, a->in[1]);
    return is_one_place(x, o->in[0]);
}

static Range of_sum(const Ranger *x, const Op *o) {
    const double count = lint_reduced(x->g, o, x->at);
    const Range a = input(x, o, 0);
    if (is_choice(x, o)) return (Range){fmin(a.low, 0.0), fmax(a.high, 0.0), grid_unordered(a.grid)};
    return between(times(a.low, count), times(a.high, count));
}

static Range of_cumsum(const Ranger *x, const Op *o) {
    const Shape *s = ir_shape(x->g->f, o->in[0]);
    const double count = (double)dim_eval(s->d[ir_dim_attr(o, "dim", s->rank)], x->at);
    const Range a = input(x, o, 0);
    Grid g = grid_sums(a.grid, count);
    if (ir_attr(o, "reverse")->b) g = grid_unordered(g);
    return (Range){fmin(a.low, times(a.low, count)), fmax(a.high, times(a.high, count)), g};
}

static Range of_clamp(const Ranger *x, const Op *o) {
    return within(input(x, o, 0), ir_attr(o, "low")->f, ir_attr(o, "high")->f);
}

/* Of data that has bounds: whole numbers between these. */
static Range of_floor(const Ranger *x, const Op *o) {
    const Range a = input(x, o, 0);
    const Grid all = grid_counted(floor(a.low), floor(a.high), 1.0);
    return (Range){floor(a.low), floor(a.high), isnan(a.grid.step) ? grid_unordered(all) : grid_floor(a.grid)};
}

static Range of_dropout(const Ranger *x, const Op *o) {
    return join(number(0.0), product(input(x, o, 0), number(1.0 / (1.0 - ir_attr(o, "p")->f))));
}

/* ---- what hands numbers on --------------------------------------------------------------------------------------- */

static Range of_same(const Ranger *x, const Op *o) { return input(x, o, 0); }

static Range of_pad(const Ranger *x, const Op *o) { return join(input(x, o, 0), number(ir_attr(o, "value")->f)); }

static Range of_mean(const Ranger *x, const Op *o) { return between(input(x, o, 0).low, input(x, o, 0).high); }

static Range of_mean_and_0(const Ranger *x, const Op *o) { return join(of_mean(x, o), number(0.0)); }

static Range of_upsample(const Ranger *x, const Op *o) {
    return strcmp(ir_attr(o, "mode")->s, "nearest") ? of_mean(x, o) : input(x, o, 0);
}

/* Counts in order, one after the other along this dimension or another one; else it is not known which these are. */
static Range of_slice(const Ranger *x, const Op *o) {
    Range r = input(x, o, 0);
    const Shape *s = ir_shape(x->g->f, o->in[0]);
    const int dim = ir_dim_attr(o, "dim", s->rank);
    const double size = (double)dim_eval(s->d[dim], x->at), from = (double)ir_attr(o, "from")->i;
    const double count = (double)dim_eval(ir_shape(x->g->f, o->out[0])->d[dim], x->at);
    if (!r.grid.in_order || count == size) return r;
    const double counts = fabs(r.grid.last - r.grid.first) / r.grid.step + 1.0;
    bool along_another = false;
    for (int i = 0; i < s->rank; i++)
        along_another |= fabs((double)dim_eval(s->d[i], x->at) - counts) < 0.5 && i != dim;
    if (fabs(size - counts) < 0.5) r.grid = grid_sliced(r.grid, from < 0.0 ? from + size : from, count);
    else if (!along_another) r.grid = grid_none();
    return r;
}

static Range of_rows(const Ranger *x, const Op *o) {
    Range r = input(x, o, 1);
    return r.grid = grid_unordered(r.grid), r;
}

/* Largest or least: of counts some, but which is not known. */
static Range of_some(const Ranger *x, const Op *o) {
    Range r = input(x, o, 0);
    return r.grid = grid_unordered(r.grid), r;
}

static Range of_all(const Ranger *x, const Op *o) {
    Range r = input(x, o, 0);
    for (int i = 1; i < o->n_in; i++) r = join(r, input(x, o, i));
    return r;
}

/* What |where| takes of operand |i|, where the condition compares that with a number, or counts that it meets in order:
 * `where(place < 16, x, ...)`. */
static Range chosen(const Ranger *x, const Op *o, int i) {
    Range a = input(x, o, i);
    const Op *c = ir_def(x->g->f, o->in[0]);
    const bool down = c && (c->code == OP_lt || c->code == OP_le), up = c && (c->code == OP_gt || c->code == OP_ge);
    if ((!down && !up) || input(x, c, 1).grid.step != 0.0) return a;
    const Range on = input(x, c, 0);
    const bool below = down == (i == 1),
               without = below ? c->code == OP_lt || c->code == OP_ge : c->code == OP_le || c->code == OP_gt;
    const double by = input(x, c, 1).low, little = without && on.grid.step > 0.0 ? 1e-6 * on.grid.step : 0.0;
    const double low = below ? -INFINITY : by + little, high = below ? by - little : INFINITY;
    if (lint_is_same(x->g, c->in[0], o->in[i])) return within(a, low, high);
    if (!a.grid.in_order || !meet_in_order(x, o->in[i], c->in[0])) return a;
    const Grid met = grid_clipped(on.grid, low, high);
    const double first = on.grid.first < on.grid.last ? grid_low(met) : grid_high(met), step = on.grid.step;
    a.grid = grid_sliced(a.grid, fabs(first - on.grid.first) / step, fabs(met.last - met.first) / step + 1.0);
    return a;
}

static Range of_where(const Ranger *x, const Op *o) { return join(chosen(x, o, 1), chosen(x, o, 2)); }

/* ---- one operand, and none --------------------------------------------------------------------------------------- */

static double positive(double v) { return fmax(v, 0.0); }

static Range of_tensor(const Ranger *x, const Op *o) {
    const Numbers *numbers = ir_attr(o, "values")->numbers;
    Range r = number(numbers->at[0]);
    for (int i = 1; i < numbers->count; i++) r = join(r, number(numbers->at[i]));
    return (void)x, r;
}

static Range of_number(const Ranger *x, const Op *o) { return (void)x, number(ir_attr(o, "value")->f); }

/* 0 to before |count|. */
static Range counts(double count) { return (Range){0.0, count - 1.0, grid_counted(0.0, count - 1.0, 1.0)}; }

static Range of_arange(const Ranger *x, const Op *o) {
    return counts((double)dim_eval(ir_shape(x->g->f, o->out[0])->d[0], x->at));
}

static Range places_along(const Ranger *x, const Op *o) {
    const Shape *s = ir_shape(x->g->f, o->in[0]);
    Range r = counts((double)dim_eval(s->d[ir_dim_attr(o, "dim", s->rank)], x->at));
    return r.grid = grid_unordered(r.grid), r;
}

static Range of_neg(const Ranger *x, const Op *o) { return negated(input(x, o, 0)); }
static Range of_abs(const Ranger *x, const Op *o) { return magnitude(input(x, o, 0)); }
static Range of_exp(const Ranger *x, const Op *o) { return through(input(x, o, 0), exp); }
static Range of_relu(const Ranger *x, const Op *o) { return within(input(x, o, 0), 0.0, INFINITY); }
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
    [OP_slice] = of_slice,
    [OP_expand] = of_same,
    [OP_detach] = of_same,
    [OP_barrier] = of_same,
    [OP_max] = of_some,
    [OP_min] = of_some,
    [OP_mean] = of_mean,
    [OP_max_pool2d] = of_some,
    [OP_top_k] = of_some,
    [OP_argmax] = places_along,
    [OP_embedding] = of_rows,
    [OP_upsample] = of_upsample,
    [OP_adaptive_avg_pool2d] = of_mean,
    [OP_pad] = of_pad,
    [OP_avg_pool2d] = of_mean_and_0,
    [OP_global_avg_pool] = of_mean,
    [OP_concat] = of_all,
    [OP_stack] = of_all,
    [OP_where] = of_where,
    [OP_const] = of_number,
    [OP_full] = of_number,
    [OP_tensor] = of_tensor,
    [OP_arange] = of_arange,
    [OP_add] = of_add,
    [OP_sub] = of_sub,
    [OP_mul] = of_mul,
    [OP_div] = of_div,
    [OP_remainder] = of_remainder,
    [OP_maximum] = of_maximum,
    [OP_minimum] = of_minimum,
    [OP_neg] = of_neg,
    [OP_abs] = of_abs,
    [OP_exp] = of_exp,
    [OP_pow] = of_pow,
    [OP_sum] = of_sum,
    [OP_cumsum] = of_cumsum,
    [OP_floor] = of_floor,
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
    [OP_std] = of_positive,
    [OP_norm] = of_positive,
    [OP_log_softmax] = of_negative,
};

/* What the type of |v| says: bytes, bits, whole numbers; and one element is not several. */
static Range of_type(const Ranger *x, Val v, Range r) {
    const Dtype t = ir_dtype(x->g->f, v);
    Elements e;
    if (isnan(r.low) || isnan(r.high)) r = anything;
    if (t == AMP_DT_U8) r = between(0.0, 255.0);
    if (t == AMP_DT_BOOL) r = (Range){0.0, 1.0, grid_bits()};
    if ((t == AMP_DT_I32 || t == AMP_DT_I64) && isnan(r.grid.step))
        r.grid = grid_unordered(grid_counted(r.low, r.high, 1.0));
    const bool is_alone = shape_elements(ir_shape(x->g->f, v), &e) && !e.batches && e.mul == e.div;
    if (is_alone && r.grid.step > 0.0) r.grid = grid_none();
    return r;
}

Range *lint_ranges(Arena *a, const LintFunc *g, Sizes at) {
    Ranger x = {g, arena_array(a, Range, g->f->values.len), at};
    for (int i = 0; i < g->f->values.len; i++) x.of[i] = anything;
    for (int i = 0; i < g->f->inputs.len; i++)
        x.of[g->f->inputs.data[i].id] = of_type(&x, g->f->inputs.data[i], anything);
    for (int i = 0; i < g->f->body.len; i++) {
        const Op *o = ir_op_at(g->f, i);
        for (int n = 0; n < o->n_out; n++) {
            Range r = !n && rules[o->code] ? rules[o->code](&x, o) : anything;
            if (n && o->code == OP_top_k) r = places_along(&x, o);
            x.of[o->out[n].id] = of_type(&x, o->out[n], r);
        }
    }
    return x.of;
}
