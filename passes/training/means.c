/* means: says of each loss and metric what it is over all samples that count together: the micro-batches of a step, the
 * ranks, the batches of an evaluation.
 * needs: autocast.  breaks: nothing.
 *
 *   result loss = %loss                  =>   result loss         = %loss
 *   result metric.hits = %hits                result metric.hits  = %hits
 *   result metric.rmse = %root                result metric.rmse  = %root
 *                                             %labels = count_labels(%logp, %t) : f64
 *                                             result count.loss      = %labels    a mean over labels
 *                                             result sum.metric.hits = %hits      a sum
 *                                             result mean.0          = %squares   a mean over samples;
 *                                           func figures(%mean.0) {               a metric is a function
 *                                             %root = sqrt(%mean.0)
 *                                             result metric.rmse = %root
 *                                           }
 *
 * A result without any of these is a mean over samples.  Gradients follow the same counts: autodiff.c.
 */
#include "passes/training/training.h"

/* ---- what a value is --------------------------------------------------------------------------------------------- */

static bool is_rounding(const Func *f, const Op *o) {
    return o && o->code == OP_cast && is_float(ir_dtype(f, o->in[0])) && is_float(ir_dtype(f, o->out[0]));
}

Val mean_bare(const Func *f, Val v) {
    for (const Op *o = ir_def(f, v); is_rounding(f, o); o = ir_def(f, v)) v = o->in[0];
    return v;
}

bool mean_same_count(const Mean *a, const Mean *b) {
    if (a->kind != b->kind) return false;
    if (a->kind == MEAN_LABELS)
        return a->targets.id == b->targets.id && a->weight.id == b->weight.id && a->ignore == b->ignore;
    return a->kind != MEAN_VALUE || (a->divisor.id == b->divisor.id && a->divisor_mean == b->divisor_mean);
}

/* The sum of two: what is the same in all batches adds to a mean and leaves it one. */
static Mean added(const Mean *a, const Mean *b) {
    if (a->kind == MEAN_FIXED && b->kind != MEAN_SUM) return *b;
    if (b->kind == MEAN_FIXED && a->kind != MEAN_SUM) return *a;
    return mean_same_count(a, b) ? *a : (Mean){.kind = MEAN_MIXED};
}

static Mean multiplied(const Mean *a, const Mean *b) {
    if (a->kind == MEAN_FIXED) return *b;
    return b->kind == MEAN_FIXED ? *a : (Mean){.kind = MEAN_MIXED};
}

/* Where gradients are made: a number that is added to a sum so that it is not 0 is none beside it. */
#define LARGEST_EPS 1e-3

typedef struct Finding {
    const Func *f;
    Mean *means;
    bool of_gradients;
} Finding;

static bool is_fixed(const Finding *x, Val v) { return x->means[v.id].kind == MEAN_FIXED && !x->means[v.id].of_batch; }

/* Of max(sum, 1) and of a clamped sum, the sum.  Where that is below the bound there is nothing to divide. */
static Val unbounded(const Finding *x, Val v) {
    v = mean_bare(x->f, v);
    const Op *o = ir_def(x->f, v);
    if (o && o->code == OP_clamp) return mean_bare(x->f, o->in[0]);
    if (!o || o->code != OP_maximum) return v;
    for (int i = 0; i < 2; i++)
        if (is_fixed(x, o->in[i])) return mean_bare(x->f, o->in[1 - i]);
    return v;
}

/* Of sum / (sum + eps). */
static bool is_nearly(const Finding *x, Val v, MeanKind kind) {
    const Op *o = ir_def(x->f, v);
    if (!o || o->code != OP_add) return false;
    for (int i = 0; i < 2; i++) {
        const Op *eps = ir_def(x->f, mean_bare(x->f, o->in[i]));
        if (eps && eps->code == OP_const && ir_attr(eps, "value")->f <= LARGEST_EPS)
            return x->means[o->in[1 - i].id].kind == kind;
    }
    return false;
}

static Mean divided(const Finding *x, const Op *o) {
    const Mean *a = &x->means[o->in[0].id], *b = &x->means[o->in[1].id];
    if (b->kind == MEAN_FIXED) return *a;
    const Val by = x->of_gradients ? unbounded(x, o->in[1]) : o->in[1];
    const bool sums = a->kind == MEAN_SUM, divides = sums || a->kind == MEAN_SAMPLES;
    const bool fits = x->means[by.id].kind == a->kind || (x->of_gradients && is_nearly(x, by, a->kind));
    if (!divides || !fits || b->trained || ir_shape(x->f, by)->rank) return (Mean){.kind = MEAN_MIXED};
    return (Mean){.kind = MEAN_VALUE, .divisor = by, .divisor_mean = !sums};
}

static Mean of_labels(const Op *o) {
    return (Mean){.kind = MEAN_LABELS,
                  .logp = o->in[0],
                  .targets = o->in[1],
                  .weight = o->n_in > 2 ? o->in[2] : NO_VAL,
                  .ignore = ir_attr(o, "ignore")->i};
}

/* What the op at hand divides by the number of its labels. */
static bool counts_labels(const Op *o) {
    const bool metric = o->code == OP_accuracy || o->code == OP_top_k_accuracy;
    return o->code == OP_nll_loss || (metric && ir_attr(o, "ignore")->i != NO_LABEL);
}

/* Of samples that were added up, not averaged. */
static bool is_sum(const Func *f, const Op *o) {
    return o->code == OP_sum && shape_batch_dims(ir_shape(f, o->in[0])) == 1;
}

/* Ops whose result has as many elements, or is linear in each. */
static bool keeps_kind(Opcode code) {
    return code == OP_cast || code == OP_neg || code == OP_reshape || code == OP_detach || code == OP_sum ||
           code == OP_mean || code == OP_expand;
}

static Mean of_op(const Finding *x, const Op *o) {
    const Mean *means = x->means;
    bool fixed = true;
    for (int i = 0; i < o->n_in; i++) {
        const Mean *in = &means[o->in[i].id];
        if (in->of_batch && counts_labels(o)) return of_labels(o);
        if (in->of_batch) return (Mean){.kind = is_sum(x->f, o) ? MEAN_SUM : MEAN_SAMPLES};
        fixed = fixed && in->kind == MEAN_FIXED;
    }
    if (fixed) return (Mean){.kind = MEAN_FIXED};
    const Mean *a = &means[o->in[0].id], *b = o->n_in > 1 ? &means[o->in[1].id] : NULL;
    if (keeps_kind(o->code)) return *a;
    if (o->code == OP_add || o->code == OP_sub) return added(a, b);
    if (o->code == OP_mul) return multiplied(a, b);
    if (o->code == OP_div) return divided(x, o);
    return (Mean){.kind = MEAN_MIXED};
}

static bool is_trained(const Mean *means, const Op *o) {
    bool any = false;
    for (int i = 0; i < o->n_in && !(ir_op_info[o->code].flags & NO_GRADIENT); i++)
        any = any || means[o->in[i].id].trained;
    return any;
}

const Mean *means_of(const Func *f, bool of_gradients) {
    Mean *means = arena_array(f->module->arena, Mean, f->values.len + 1);
    const Finding x = {f, means, of_gradients};
    for (int i = 0; i < f->inputs.len; i++) {
        const Val v = f->inputs.data[i];
        means[v.id].of_batch = ir_value(f, v)->kind == VAL_INPUT && shape_batch_dims(ir_shape(f, v));
        means[v.id].trained = ir_value(f, v)->kind == VAL_STATE;
    }
    for (int i = 0; i < f->body.len; i++) {
        const Op *o = ir_op_at(f, i);
        for (int r = 0; r < o->n_out; r++) {
            Mean *mean = &means[o->out[r].id];
            if (shape_batch_dims(ir_shape(f, o->out[r]))) *mean = (Mean){.of_batch = true};
            else *mean = of_op(&x, o);
            mean->trained = is_trained(means, o);
        }
    }
    return means;
}

/* ---- counts ------------------------------------------------------------------------------------------------------ */

static Val explained(Func *f, Val v, const char *path, const char *because) {
    Op *o = ir_def(f, v);
    o->path = path;
    o->reason = ir_reason(f->module, "mean");
    o->reason->because = because;
    return v;
}

static Val find_count(const Func *f, const Mean *mean) {
    for (int i = 0; i < f->body.len; i++) {
        const Op *o = ir_op_at(f, i);
        if (o->code != OP_count_labels || o->in[1].id != mean->targets.id || ir_attr(o, "ignore")->i != mean->ignore)
            continue;
        if ((o->n_in > 2 ? o->in[2].id : NO_VAL.id) == mean->weight.id) return o->out[0];
    }
    return NO_VAL;
}

static Val count_labels(Func *f, const Mean *mean) {
    const Val there = find_count(f, mean), in[] = {mean->logp, mean->targets, mean->weight};
    if (there.id) return there;
    Op *o = ir_op_new(f, OP_count_labels, in, mean->weight.id ? 3 : 2);
    ir_attr(o, "ignore")->i = mean->ignore;
    return explained(f, ir_make_results(f, o, AMP_DT_F32, "labels"), "labels",
                     "means over labels that are not ignored");
}

Val mean_samples(const Func *f) {
    for (int i = 0; i < f->inputs.len; i++)
        if (ir_value(f, f->inputs.data[i])->kind == VAL_INPUT && shape_batch_dims(ir_shape(f, f->inputs.data[i])))
            return f->inputs.data[i];
    return NO_VAL;
}

static Val count_value(Func *f, const Mean *mean) {
    static const char because[] = "a mean over what the loss or metric is divided by";
    Val v = explained(f, ir_emit(f, OP_cast, AMP_DT_F64, "weights", 1, mean->divisor), "weights", because);
    if (!mean->divisor_mean) return v;
    Val n = explained(f, ir_emit(f, OP_count_samples, AMP_DT_F64, NULL, 1, mean_samples(f)), "weights", because);
    return explained(f, ir_emit(f, OP_mul, AMP_DT_F64, "weights", 2, v, n), "weights", because);
}

Val mean_count(Func *f, const Mean *mean) {
    if (mean->kind == MEAN_LABELS) return count_labels(f, mean);
    return mean->kind == MEAN_VALUE ? count_value(f, mean) : NO_VAL;
}

/* ---- terms of a loss --------------------------------------------------------------------------------------------- */

/* Whether |o| divides a gradient over its operands as over terms; a factor that is trained has a gradient of all. */
static bool is_linear(const Mean *means, const Op *o) {
    const Mean *a = &means[o->in[0].id], *b = o->n_in > 1 ? &means[o->in[1].id] : NULL;
    if (o->code == OP_div) return b->kind == MEAN_FIXED && !b->trained;
    if (o->code == OP_mul) return (a->kind == MEAN_FIXED && !a->trained) || (b->kind == MEAN_FIXED && !b->trained);
    return o->code == OP_add || o->code == OP_sub || keeps_kind(o->code);
}

/* |seen|: by value id, the values whose terms are in already. */
static bool add_terms(const Func *f, const Mean *means, Val v, bool *seen, TermList *out) {
    const Mean *mean = &means[v.id];
    const Op *o = ir_def(f, v);
    if (seen[v.id]) return true;
    seen[v.id] = true;
    if (mean->kind != MEAN_MIXED) {
        vec_push(f->module->arena, out, ((Term){v, *mean}));
        return true;
    }
    if (!is_linear(means, o)) return false;
    for (int i = 0; i < o->n_in; i++) {
        const bool factor = (o->code == OP_mul || o->code == OP_div) && means[o->in[i].id].kind == MEAN_FIXED;
        if (!factor && !add_terms(f, means, o->in[i], seen, out)) return false;
    }
    return true;
}

bool mean_terms(const Func *f, const Mean *means, Val loss, TermList *out) {
    return add_terms(f, means, loss, arena_array(f->module->arena, bool, f->values.len + 1), out);
}

/* ---- losses and metrics that are computed from means ------------------------------------------------------------- */

typedef struct Figures {
    Func *from;        /* forward, or its copy in f32 */
    const Mean *means; /* of |from| */
    Func *to;          /* figures; NULL where |from| is the copy in f32, which has the same ones */
    int count;         /* means that figures read, so far */
    Val *now;          /* by value id of |from|: the value of |to|, for one result; with |to| NULL: not 0 where it is */
} Figures;

/* A mean that figures read, by its number. */
static Val add_mean(Figures *x, Val v) {
    Arena *a = x->from->module->arena;
    const char *name = amp_result_text(a, RESULT_MEAN, x->count++, NULL);
    ir_add_result(x->from, name, v);
    return x->to ? ir_add_input(x->to, name, AMP_DT_F32, shape_scalar()) : v;
}

/* Says by results of |x->from| how the result |name| goes over batches. */
static void add_count(Func *f, const char *name, Val v, const Mean *mean) {
    Arena *a = f->module->arena;
    const Val count = mean_count(f, mean);
    if (count.id) ir_add_result(f, amp_result_text(a, RESULT_COUNT, NO_BLOCK, name), count);
    if (mean->kind == MEAN_SUM) ir_add_result(f, amp_result_text(a, RESULT_SUM, NO_BLOCK, name), v);
}

/* Whether figures can compute |v|: from scalars that are means, and numbers. */
static bool can_compute(const Func *f, const Mean *means, Val v, bool *seen) {
    v = mean_bare(f, v);
    if (seen[v.id]) return true;
    seen[v.id] = true;
    if (ir_shape(f, v)->rank) return false;
    const Op *o = ir_def(f, v);
    if (means[v.id].kind != MEAN_MIXED) return (o && o->code == OP_const) || ir_dtype(f, v) != AMP_DT_BOOL;
    for (int i = 0; i < o->n_in; i++)
        if (!can_compute(f, means, o->in[i], seen)) return false;
    return o->n_out == 1;
}

static Val compute(Figures *x, Val v) {
    v = mean_bare(x->from, v);
    if (x->now[v.id].id) return x->now[v.id];
    const Op *o = ir_def(x->from, v);
    const bool number = o && o->code == OP_const;
    if (x->means[v.id].kind != MEAN_MIXED && !number) {
        const int mean = x->count;
        Val wide = v;
        if (ir_dtype(x->from, v) != AMP_DT_F32)
            wide = explained(x->from, ir_emit(x->from, OP_cast, AMP_DT_F32, NULL, 1, v), "mean", NULL);
        x->now[v.id] = add_mean(x, wide);
        add_count(x->from, amp_result_text(x->from->module->arena, RESULT_MEAN, mean, NULL), wide, &x->means[v.id]);
        return x->now[v.id];
    }
    Val *in = arena_array(x->from->module->arena, Val, o->n_in + 1);
    for (int i = 0; i < o->n_in; i++) in[i] = compute(x, o->in[i]);
    if (!x->to) return x->now[v.id] = v;
    Op *copy = op_like(x->to, o, in);
    copy->reason = ir_reason(x->to->module, "metric");
    return x->now[v.id] = ir_make_results(x->to, copy, AMP_DT_F32, ir_value(x->from, v)->name);
}

static Func *figures_of(Module *m) {
    Func *f = ir_program(m, PROGRAM_FIGURES);
    return f ? f : ir_program_new(m, PROGRAM_FIGURES);
}

static void add_figure(Figures *x, const Result *r) {
    Arena *a = x->from->module->arena;
    if (ir_program(x->from->module, PROGRAM_FORWARD) == x->from) x->to = figures_of(x->from->module);
    x->now = arena_array(a, Val, x->from->values.len + 1);
    Val v = compute(x, r->value);
    if (x->to) ir_add_result(x->to, r->name, v);
}

static bool is_figure(const Result *r) {
    return r->kind == RESULT_LOSS || r->kind == RESULT_NAMED_LOSS || r->kind == RESULT_METRIC;
}

static void find_figures(Func *f) {
    Figures x = {.from = f, .means = means_of(f, false)};
    const int results = f->results.len, values = f->values.len;
    for (int i = 0; i < results; i++) {
        const Result r = f->results.data[i];
        if (!is_figure(&r)) continue;
        const Mean *mean = &x.means[r.value.id];
        bool *seen = arena_array(f->module->arena, bool, values + 1);
        if (mean->kind != MEAN_MIXED) add_count(f, r.name, r.value, mean);
        else if (can_compute(f, x.means, r.value, seen)) add_figure(&x, &r);
    }
}

bool pass_means(PassContext *c) {
    Func *forward = ir_program(c->m, PROGRAM_FORWARD), *in_f32 = ir_program(c->m, PROGRAM_FORWARD_FP32);
    if (!c->m->has_train || !forward) return true;
    find_figures(forward);
    if (in_f32) find_figures(in_f32);
    return true;
}
