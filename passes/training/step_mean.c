/* step_mean.c: the mean over all micro-batches of a step, of all ranks, however many samples or labels each has.
 *
 *   result term.0.w = %d.w          =>   %all    = mul(%full, %k, %ranks)      what full micro-batches would have
 *   result count.term.0 = %labels        %weight = div(%labels, %all)          1 / k where the micro-batch is full
 *                                        %share  = mul(%d.w, %weight)          what %"w/sum" adds
 *
 * A gradient is made, in low types, of the mean of its own micro-batch, and weighed in f32.  The counts of all are
 * known at the end of the step, and apply_step makes up for those that are not full:
 *
 *   result grad.w = %"w/sum"        =>   %mean   = div(%all, %"labels/sum")    1 where all are full
 *                                        result grad.w = mul(%"w/sum", %mean)
 *                                        result loss   = div(%"loss/sum", %"labels/sum")
 *
 * A sum is added up as it is.  Where ranks add values up within the backward pass (sync.c), a rank's gradients belong
 * to the losses of all ranks; then each rank's seed is weighed, and not the gradients that follow from it.  The same
 * holds for any batch norm of a model that is divided over ranks.
 *
 * Counts, and the sums of losses and metrics times their counts, are f64: exact up to 2^53 samples.
 */
#include "passes/training/training.h"

#include <stdlib.h>

/* The count of a micro-batch without labels: enough that what its loss has besides them is not lost where no
 * micro-batch has any, and nothing beside one label. */
#define NO_LABELS 0x1p-60

/* What values are means over. */
typedef struct Counted {
    Val count;   /* the result of micro_step; NO_VAL: samples */
    bool sum;    /* what has it is a sum: nothing is divided, and nothing else is set */
    Val value;   /* f64, in micro_step: the count, or nearly nothing where that is 0 */
    Val guard;   /* bool: |value| is 0, and a mean over it may be no number; NO_VAL: never */
    double each; /* of a sample, in a full micro-batch */
    Val weight;  /* f32: |value| / (full * k * ranks) */
    Val total;   /* f64, in apply_step */
    const State *sums;
} Counted;

struct StepMean {
    VEC(Counted) kinds;
    VEC(int) of_term;  /* index into kinds */
    bool weighs_seeds; /* and not gradients */
};

/* ---- ops --------------------------------------------------------------------------------------------------------- */

static Val explained(Func *f, Val v, const char *path) {
    Op *o = ir_def(f, v);
    o->path = path;
    o->reason = ir_reason(f->module, "mean");
    return v;
}

static Val number(Func *f, Dtype t, double value, const char *path) {
    Val v = ir_emit(f, OP_const, t, NULL, 0);
    ir_attr(ir_def(f, v), "value")->f = value;
    return explained(f, v, path);
}

static Val counter(Func *f, CounterKind kind) { return ir_use_state(f, ir_counter(f->module, kind, NO_BLOCK)); }

static Val two(Func *f, Opcode code, Dtype t, Val a, Val b, const char *path) {
    return explained(f, ir_emit(f, code, t, NULL, 2, a, b), path);
}

static Val where(Func *f, Val condition, Val yes, Val no, const char *path) {
    return explained(f, ir_emit(f, OP_where, ir_dtype(f, no), NULL, 3, condition, yes, no), path);
}

static Val cast(Func *f, Val v, Dtype t, const char *path) {
    return ir_dtype(f, v) == t ? v : explained(f, ir_emit(f, OP_cast, t, NULL, 1, v), path);
}

/* ---- counting ---------------------------------------------------------------------------------------------------- */

/* What a sample has of it at most; 1 where that is not known. */
static double count_of_sample(const Func *f, Val count) {
    const Op *o = ir_def(f, count);
    double each = 1;
    if (o->code != OP_count_labels) return 1;
    const Shape *s = ir_shape(f, o->in[1]);
    for (int i = 0; i < s->rank; i++) {
        const Dim d = s->d[i];
        if (d.t || d.sized) each *= (double)dim_assumed(d, 1);
        else each *= (double)d.mul / (double)(d.div ? d.div : 1);
    }
    return each;
}

/* f64: |each| times the samples of a full micro-batch. */
static Val full_count(Func *f, double each, const char *path) {
    Val full = cast(f, counter(f, COUNTER_FULL_BATCH), AMP_DT_F64, path);
    return each == 1 ? full : two(f, OP_mul, AMP_DT_F64, full, number(f, AMP_DT_F64, each, path), path);
}

/* f64: the micro-batches of a step, on all ranks. */
static Val all_batches(const Split *s, Func *f, const char *path) {
    Val k = number(f, AMP_DT_F64, (double)s->m->accumulate, path);
    if (!s->m->distribution) return k;
    return two(f, OP_mul, AMP_DT_F64, cast(f, counter(f, COUNTER_RANKS), AMP_DT_F64, path), k, path);
}

static const char *count_name(const Split *s, const Func *f, Val count) {
    const char *what = !count.id ? "samples" : ir_def(f, count)->code == OP_count_labels ? "labels" : "weights";
    return count.id ? arena_printf(s->m->arena, "%s.%d", what, s->mean->kinds.len) : what;
}

/* Its weight, and the state that adds it up. */
static void weigh(Split *s, Counted *c, double each, const char *name) {
    Func *f = s->micro_step;
    c->each = each;
    Val all = two(f, OP_mul, AMP_DT_F64, full_count(f, each, name), all_batches(s, f, name), name);
    c->weight = cast(f, two(f, OP_div, AMP_DT_F64, c->value, all, name), AMP_DT_F32,
                     arena_printf(s->m->arena, "%s.weight", name));
    ir_def(f, c->weight)->reason->because = "what the micro-batch has of what all have that are full";
    State *sums =
        ir_state_new(s->m, arena_printf(s->m->arena, "%s/sum", name), STATE_ACCUMULATOR, AMP_DT_F64, shape_scalar());
    sums->slot = "sum";
    c->sums = sums;
}

/* |count|: f64, or NO_VAL for samples. */
static Counted new_count(Split *s, Val count) {
    Func *f = s->micro_step;
    const char *name = count_name(s, f, count);
    Counted c = {.value = count};
    if (!count.id) {
        c.value = explained(f, ir_emit(f, OP_count_samples, AMP_DT_F64, name, 1, mean_samples(f)), name);
        ir_def(f, c.value)->reason->because = "losses and metrics are means over samples";
    } else {
        Val none = two(f, OP_eq, AMP_DT_BOOL, count, number(f, AMP_DT_F64, 0, name), name);
        bool labels = ir_def(f, count)->code == OP_count_labels;
        if (labels) c.value = where(f, none, number(f, AMP_DT_F64, NO_LABELS, name), count, name);
        else c.guard = none;
    }
    weigh(s, &c, count.id ? count_of_sample(f, count) : 1, name);
    return c;
}

static Val result_named(const Func *f, Arena *a, ResultKind kind, const char *of) {
    return result_value(ir_find_result(f, amp_result_text(a, kind, NO_BLOCK, of)));
}

/* The index of what |name|, a result of micro_step, is a mean over; counted where it was not. */
static int kind_of(Split *s, const char *name) {
    Arena *a = s->m->arena;
    const bool sum = result_named(s->micro_step, a, RESULT_SUM, name).id;
    const Val count = result_named(s->micro_step, a, RESULT_COUNT, name);
    for (int i = 0; i < s->mean->kinds.len; i++)
        if (s->mean->kinds.data[i].sum == sum && s->mean->kinds.data[i].count.id == count.id) return i;
    Counted c = {.sum = true};
    if (!sum) c = new_count(s, count);
    c.count = count;
    vec_push(a, &s->mean->kinds, c);
    return s->mean->kinds.len - 1;
}

static bool is_measured(const Result *r) {
    return r->kind == RESULT_LOSS || r->kind == RESULT_NAMED_LOSS || r->kind == RESULT_METRIC || r->kind == RESULT_MEAN;
}

static int first_seed(const Func *f) {
    int at = 0;
    while (at < f->body.len && ir_op_at(f, at)->code != OP_grad_seed) at++;
    return at;
}

/* With batch norm, be it of all ranks or not: `sync` of a rank that trains alone changes no bit. */
static bool adds_ranks(const Split *s) {
    const Func *f = s->micro_step;
    for (int i = 0; s->m->distribution && i < f->body.len; i++) {
        const Opcode code = ir_op_at(f, i)->code;
        if (code == OP_sum_ranks || code == OP_batch_norm) return true;
    }
    return false;
}

/* Moves the counts of terms before the seeds, which may be what is weighed. */
void step_mean_count(Split *s) {
    Func *f = s->micro_step;
    const int before = f->body.len, results = f->results.len;
    int terms = 0;
    s->mean = arena_new(s->m->arena, StepMean);
    for (int i = 0; i < results; i++)
        if (f->results.data[i].kind == RESULT_TERM && atoi(f->results.data[i].of) >= terms)
            terms = atoi(f->results.data[i].of) + 1;
    for (int i = 0; i < terms; i++)
        vec_push(s->m->arena, &s->mean->of_term,
                 kind_of(s, arena_printf(s->m->arena, "%s.%d", amp_result_word(RESULT_TERM), i)));
    for (int i = 0; i < results; i++)
        if (is_measured(&f->results.data[i])) kind_of(s, f->results.data[i].name);
    s->mean->weighs_seeds = adds_ranks(s);
    if (s->mean->weighs_seeds) accumulate_move_last(f, f->body.len - before, first_seed(f));
}

/* ---- gradients --------------------------------------------------------------------------------------------------- */

static const Counted *counted_of_term(const Split *s, int term) {
    return &s->mean->kinds.data[s->mean->of_term.data[term]];
}

/* Later readers of the seed at |at| read what it is weighed to. */
static void weigh_seed(Split *s, int at, int term) {
    Func *f = s->micro_step;
    Val seed = ir_op_at(f, at)->out[0];
    const Counted *c = counted_of_term(s, term);
    if (c->sum) return;
    const int before = f->body.len;
    Val weighed = two(f, OP_mul, AMP_DT_F32, seed, c->weight, "loss.weight");
    for (int i = at + 1; i < before; i++) {
        Op *o = ir_op_at(f, i);
        for (int j = 0; j < o->n_in; j++)
            if (o->in[j].id == seed.id) o->in[j] = weighed;
    }
    for (int i = 0; i < f->results.len; i++)
        if (f->results.data[i].value.id == seed.id && f->results.data[i].kind == RESULT_TERM)
            f->results.data[i].value = weighed;
    accumulate_move_last(f, f->body.len - before, at + 1);
}

void step_mean_weigh_seeds(Split *s) {
    int term = 0;
    for (int i = 0; s->mean->weighs_seeds && i < s->micro_step->body.len; i++)
        if (ir_op_at(s->micro_step, i)->code == OP_grad_seed) weigh_seed(s, i, term++);
}

Val step_mean_weigh(Split *s, int term, Val gradient, const char *path) {
    const Counted *c = counted_of_term(s, term);
    if (c->sum || s->mean->weighs_seeds) return gradient;
    return accumulate_explain(s, ir_emit(s->micro_step, OP_mul, AMP_DT_F32, NULL, 2, gradient, c->weight), path);
}

Val step_mean_of_ranks(Split *s, Val sum, const char *of) {
    Func *last = s->apply_step;
    return two(last, OP_div, AMP_DT_F32, sum, counter(last, COUNTER_RANKS), arena_printf(s->m->arena, "%s.mean", of));
}

/* f32: what full micro-batches would have, by what all had; NO_VAL: of a sum. */
static Val factor_of(Split *s, const Counted *c) {
    Func *last = s->apply_step;
    if (c->sum) return NO_VAL;
    Val all = two(last, OP_mul, AMP_DT_F64, full_count(last, c->each, "mean"), all_batches(s, last, "mean"), "mean");
    Val share = two(last, OP_div, AMP_DT_F64, all, c->total, "mean");
    Val factor = explained(last, ir_emit(last, OP_cast, AMP_DT_F32, "mean", 1, share), "mean");
    ir_def(last, factor)->reason->because = "1 where all micro-batches are full";
    return factor;
}

/* The sums of the terms of a parameter become its gradient. */
static void finish_gradient(Split *s, int first, const Val *factor) {
    Func *last = s->apply_step;
    const Added *added = s->added.data;
    const char *path = arena_printf(s->m->arena, "%s.mean", added[first].param->name);
    Val whole = NO_VAL;
    for (int i = first; i < s->added.len; i++) {
        if (added[i].param != added[first].param) continue;
        Val mean = added[i].total, by = factor[s->mean->of_term.data[added[i].term]];
        if (by.id) mean = two(last, OP_mul, AMP_DT_F32, mean, by, path);
        whole = whole.id ? two(last, OP_add, AMP_DT_F32, whole, mean, path) : mean;
    }
    ir_add_result(last, amp_result_text(s->m->arena, RESULT_GRADIENT, NO_BLOCK, added[first].param->name), whole);
}

static void finish_gradients(Split *s) {
    Val *factor = arena_array(s->m->arena, Val, s->mean->kinds.len + 1);
    for (int i = 0; i < s->mean->of_term.len; i++) {
        const int kind = s->mean->of_term.data[i];
        if (!factor[kind].id) factor[kind] = factor_of(s, &s->mean->kinds.data[kind]);
    }
    for (int i = 0; i < s->added.len; i++)
        if (s->added.data[i].first) finish_gradient(s, i, factor);
}

/* ---- losses and metrics ------------------------------------------------------------------------------------------ */

/* The counts of all micro-batches of all ranks; 1 where there is nothing to count. */
static Val total_of(Split *s, const Counted *c) {
    Func *last = s->apply_step;
    const char *name = c->sums->name;
    Val total = accumulate_add(s, c->sums, c->value, name);
    if (!c->guard.id) return total;
    Val none = two(last, OP_eq, AMP_DT_BOOL, total, number(last, AMP_DT_F64, 0, name), name);
    return where(last, none, number(last, AMP_DT_F64, 1, name), total, name);
}

/* |v| times its count, added up: f64, in apply_step. */
static Val add_up(Split *s, const Counted *c, const Result *r, StateList *sums) {
    Func *f = s->micro_step;
    Arena *a = s->m->arena;
    const char *path = arena_printf(a, "%s.sum", r->name);
    Val sum = cast(f, cast(f, r->value, AMP_DT_F32, path), AMP_DT_F64, path);
    if (!c->sum) sum = two(f, OP_mul, AMP_DT_F64, sum, c->value, path);
    if (c->guard.id) sum = where(f, c->guard, number(f, AMP_DT_F64, 0, path), sum, path);
    State *state =
        ir_state_new(s->m, arena_printf(a, "%s/sum", r->name), STATE_ACCUMULATOR, AMP_DT_F64, shape_scalar());
    state->slot = "sum";
    vec_push(a, sums, state);
    return accumulate_add(s, state, sum, path);
}

/* The result |r| of one batch of all samples; f32, in apply_step. */
static Val measure(Split *s, const Result *r, StateList *sums) {
    Func *last = s->apply_step;
    const char *path = arena_printf(s->m->arena, "%s.mean", r->name);
    const Counted *c = &s->mean->kinds.data[kind_of(s, r->name)];
    Val all = add_up(s, c, r, sums);
    return cast(last, c->sum ? all : two(last, OP_div, AMP_DT_F64, all, c->total, path), AMP_DT_F32, path);
}

/* A loss or metric that is computed from means uses the means of all micro-batches. */
static void add_figures(Split *s, const Val *mean) {
    Func *last = s->apply_step;
    const Func *figures = ir_program(s->m, PROGRAM_FIGURES);
    Val *now = figures ? arena_array(s->m->arena, Val, figures->values.len + 1) : NULL;
    for (int i = 0; figures && i < figures->inputs.len; i++)
        now[figures->inputs.data[i].id] = mean[amp_result_name(ir_value(figures, figures->inputs.data[i])->name).block];
    for (int i = 0; figures && i < figures->body.len; i++) {
        const Op *o = ir_op_at(figures, i);
        Op *copy = op_like(last, o, o->in);
        for (int j = 0; j < o->n_in; j++) copy->in[j] = now[o->in[j].id];
        now[o->out[0].id] = ir_make_results(last, copy, AMP_DT_F32, NULL);
    }
    for (int i = 0; figures && i < figures->results.len; i++)
        ir_add_result(last, figures->results.data[i].name, now[figures->results.data[i].value.id]);
}

static bool is_of_figures(const Split *s, const Result *r) {
    const Func *figures = ir_program(s->m, PROGRAM_FIGURES);
    return figures && ir_find_result(figures, r->name);
}

/* Results that only say how others are added up are no results of micro_step from here on. */
static void drop_counts(Func *f) {
    int kept = 0;
    for (int i = 0; i < f->results.len; i++)
        if (!result_is_count(f->results.data[i].kind)) f->results.data[kept++] = f->results.data[i];
    f->results.len = kept;
}

StateList step_mean_finish(Split *s) {
    Arena *a = s->m->arena;
    StateList sums = {0};
    const int results = s->micro_step->results.len;
    Val *mean = arena_array(a, Val, results + 1);
    for (int i = 0; i < s->mean->kinds.len; i++) {
        Counted *c = &s->mean->kinds.data[i];
        if (c->sum) continue;
        c->total = total_of(s, c);
        vec_push(a, &sums, c->sums);
    }
    finish_gradients(s);
    for (int i = 0; i < results; i++) {
        const Result r = s->micro_step->results.data[i];
        if (!is_measured(&r) || is_of_figures(s, &r)) continue;
        Val v = measure(s, &r, &sums);
        if (r.kind == RESULT_MEAN) mean[r.block] = v;
        else ir_add_result(s->apply_step, r.name, v);
    }
    add_figures(s, mean);
    drop_counts(s->micro_step);
    return sums;
}
