/* rank_mean.c: the mean over all micro-batches of all ranks, however many samples or labels each has.
 *
 *   %d.loss  = grad_seed()                     =>   %d.loss  = grad_seed()
 *                                                   %all     = mul(%ranks, %k)          micro-batches of a step
 *                                                   %share   = div(%d.loss, %all)
 *                                                   %weight  = div(%count, %full)       1 where the micro-batch is full
 *                                                   %weighed = mul(%share, %weight)     replaces %d.loss
 *
 * A loss is a mean over a count: of labels that are not ignored, where every mean on the way to it is an nll_loss of
 * the same targets; else of samples.  So a rank adds the sum of what it has, divided by what all ranks have where all
 * their batches are full.  Where they are not, gradients are too small by the share that is missing, and apply_step
 * makes up for it, when it knows the counts of all:
 *
 *   result grad.w = %"w/sum"                   =>   %mean    = div(%all_full, %"count/sum")   1 where all are full
 *                                                   result grad.w = mul(%"w/sum", %mean)
 *                                                   result loss   = div(%"loss/sum", %"count/sum")
 *
 * Counts, and the sums of losses and metrics times their counts, are f64: exact up to 2^53 samples.
 */
#include "passes/training/rank_mean.h"

/* What a value is a mean of. */
typedef struct Counted {
    Val logp, targets, weight; /* NO_VAL: samples */
    int64_t ignore;
    Val count, full; /* f64: of the micro-batch, and of one that is full */
    Val weighed;     /* f32: count / full */
    const State *sum;
} Counted;

typedef VEC(Counted) CountedList;

struct RankMean {
    CountedList kinds;
    VEC(int) of_block; /* by train block: index into kinds */
    Val batches;       /* f32: the micro-batches of a step on all ranks; in micro_step */
};

/* ---- ops --------------------------------------------------------------------------------------------------------- */

static Val explained(Func *f, Val v, const char *path, const char *of) {
    Op *o = ir_def(f, v);
    o->path = path;
    o->reason = ir_reason(f->module, "distribute");
    o->reason->relation = of ? "of" : NULL;
    o->reason->neighbour = of;
    return v;
}

static Val number(Func *f, Dtype t, double value, const char *path) {
    Val v = ir_emit(f, OP_const, t, NULL, 0);
    ir_attr(ir_def(f, v), "value")->f = value;
    return explained(f, v, path, NULL);
}

static Val counter(Func *f, CounterKind kind) { return ir_use_state(f, ir_counter(f->module, kind, NO_BLOCK)); }

static Val two(Func *f, Opcode code, Dtype t, Val a, Val b, const char *path) {
    return explained(f, ir_emit(f, code, t, NULL, 2, a, b), path, NULL);
}

static Val cast(Func *f, Val v, Dtype t, const char *path) {
    return ir_dtype(f, v) == t ? v : explained(f, ir_emit(f, OP_cast, t, NULL, 1, v), path, NULL);
}

/* ---- what a loss is a mean of ------------------------------------------------------------------------------------ */

typedef struct Search {
    const Func *f;
    bool *seen; /* by value */
    const Op *nll;
    bool samples; /* something else is averaged, or several targets */
} Search;

static bool same_labels(const Op *a, const Op *b) {
    Val weight_a = a->n_in > 2 ? a->in[2] : NO_VAL, weight_b = b->n_in > 2 ? b->in[2] : NO_VAL;
    return a->in[1].id == b->in[1].id && weight_a.id == weight_b.id &&
           ir_attr(a, "ignore")->i == ir_attr(b, "ignore")->i;
}

/* From a loss towards the samples, up to the first op that averages over them. */
static void search(Search *s, Val v) {
    if (s->seen[v.id] || s->samples) return;
    s->seen[v.id] = true;
    const Op *o = ir_def(s->f, v);
    if (shape_batch_dims(ir_shape(s->f, v))) s->samples = true;
    else if (o && o->code == OP_nll_loss) {
        s->samples = s->nll && !same_labels(s->nll, o);
        s->nll = o;
    } else {
        for (int i = 0; o && i < o->n_in; i++) search(s, o->in[i]);
    }
}

static Counted counted_by(const Func *f, Val loss) {
    Search s = {.f = f, .seen = arena_array(f->module->arena, bool, f->values.len + 1)};
    search(&s, loss);
    if (!s.nll || s.samples) return (Counted){0};
    return (Counted){.logp = s.nll->in[0],
                     .targets = s.nll->in[1],
                     .weight = s.nll->n_in > 2 ? s.nll->in[2] : NO_VAL,
                     .ignore = ir_attr(s.nll, "ignore")->i};
}

static bool same_count(const Counted *a, const Counted *b) {
    return a->targets.id == b->targets.id && a->weight.id == b->weight.id && a->ignore == b->ignore;
}

/* The samples of a call: those of its first input. */
static Val samples(const Func *f) {
    for (int i = 0; i < f->inputs.len; i++)
        if (ir_value(f, f->inputs.data[i])->kind == VAL_INPUT && shape_batch_dims(ir_shape(f, f->inputs.data[i])))
            return f->inputs.data[i];
    return NO_VAL;
}

/* Labels of a sample. */
static double labels_of_sample(const Func *f, Val targets) {
    const Shape *s = ir_shape(f, targets);
    double count = 1;
    for (int i = 0; i < s->rank; i++) count *= (double)s->d[i].mul / (double)(s->d[i].div ? s->d[i].div : 1);
    return count;
}

static const char *count_name(const Split *s, const Counted *c) {
    if (!c->targets.id) return "samples";
    return arena_printf(s->m->arena, "labels.%d", s->mean->kinds.len);
}

static void emit_count(Split *s, Counted *c) {
    Func *f = s->micro_step;
    const char *name = count_name(s, c);
    Val full = cast(f, counter(f, COUNTER_FULL_BATCH), AMP_DT_F64, name);
    if (c->targets.id) {
        Val in[] = {c->logp, c->targets, c->weight};
        Op *o = ir_op_new(f, OP_count_labels, in, c->weight.id ? 3 : 2);
        ir_attr(o, "ignore")->i = c->ignore;
        c->count = ir_make_results(f, o, AMP_DT_F32, name);
        explained(f, c->count, name, NULL);
        ir_def(f, c->count)->reason->because = "losses are means over labels that are not ignored";
        Val each = number(f, AMP_DT_F64, labels_of_sample(f, c->targets), name);
        full = two(f, OP_mul, AMP_DT_F64, full, each, name);
    } else {
        c->count = explained(f, ir_emit(f, OP_count_samples, AMP_DT_F64, name, 1, samples(f)), name, NULL);
        ir_def(f, c->count)->reason->because = "losses and metrics are means over samples";
    }
    c->full = full;
    Val share = two(f, OP_div, AMP_DT_F64, c->count, full, name);
    c->weighed = cast(f, share, AMP_DT_F32, arena_printf(s->m->arena, "%s.weight", name));
    ir_def(f, c->weighed)->reason->because = "1 where the micro-batch is full";
    State *sum =
        ir_state_new(s->m, arena_printf(s->m->arena, "%s/sum", name), STATE_ACCUMULATOR, AMP_DT_F64, shape_scalar());
    sum->slot = "sum";
    c->sum = sum;
}

/* The index of what |v| is a mean of; counted where it was not. */
static int kind_of(Split *s, Val v) {
    Counted c = counted_by(s->micro_step, v);
    for (int i = 0; i < s->mean->kinds.len; i++)
        if (same_count(&s->mean->kinds.data[i], &c)) return i;
    emit_count(s, &c);
    vec_push(s->m->arena, &s->mean->kinds, c);
    return s->mean->kinds.len - 1;
}

static bool is_measured(const Result *r) {
    return r->kind == RESULT_LOSS || r->kind == RESULT_NAMED_LOSS || r->kind == RESULT_METRIC;
}

static int first_seed(const Func *f) {
    int at = 0;
    while (at < f->body.len && ir_op_at(f, at)->code != OP_grad_seed) at++;
    return at;
}

void rank_mean_count(Split *s) {
    Func *f = s->micro_step;
    int before = f->body.len, blocks = train_block_count(s->m);
    s->mean = arena_new(s->m->arena, RankMean);
    for (int i = 0; i < (blocks ? blocks : 1); i++) {
        const char *name = blocks ? train_block(s->m, i)->loss : amp_result_word(RESULT_LOSS);
        const Result *loss = ir_find_result(f, name);
        vec_push(s->m->arena, &s->mean->of_block, loss ? kind_of(s, loss->value) : 0);
    }
    for (int i = 0; i < f->results.len; i++)
        if (is_measured(&f->results.data[i])) kind_of(s, f->results.data[i].value);
    accumulate_move_last(f, f->body.len - before, first_seed(f));
}

/* ---- in the backward pass ---------------------------------------------------------------------------------------- */

Val rank_mean_batches(Split *s, Val k) {
    return two(s->micro_step, OP_mul, AMP_DT_F32, counter(s->micro_step, COUNTER_RANKS), k, "loss.all_batches");
}

static const Counted *counted_of_block(const Split *s, int block) {
    return &s->mean->kinds.data[s->mean->of_block.data[block < 0 ? 0 : block]];
}

Val rank_mean_share(Split *s, Val share, int block) {
    const Counted *c = counted_of_block(s, train_block_count(s->m) ? block : 0);
    return two(s->micro_step, OP_mul, AMP_DT_F32, share, c->weighed, "loss.weight");
}

Val rank_mean_of_ranks(Split *s, Val sum, const char *of) {
    Func *last = s->apply_step;
    return two(last, OP_div, AMP_DT_F32, sum, counter(last, COUNTER_RANKS), arena_printf(s->m->arena, "%s.mean", of));
}

/* ---- at the end of the step -------------------------------------------------------------------------------------- */

/* |v| times its count, added up; the sum is a result of apply_step divided by that of the counts. */
static const State *add_measure(Split *s, const Result *r, const Val *total) {
    Func *f = s->micro_step, *last = s->apply_step;
    Arena *a = s->m->arena;
    const int kind = kind_of(s, r->value);
    const char *path = arena_printf(a, "%s.sum", r->name);
    Val wide = cast(f, cast(f, r->value, AMP_DT_F32, path), AMP_DT_F64, path);
    Val sum = two(f, OP_mul, AMP_DT_F64, wide, s->mean->kinds.data[kind].count, path);
    State *state =
        ir_state_new(s->m, arena_printf(a, "%s/sum", r->name), STATE_ACCUMULATOR, AMP_DT_F64, shape_scalar());
    state->slot = "sum";
    Val all = accumulate_add(s, state, sum, path);
    Val mean = two(last, OP_div, AMP_DT_F64, all, total[kind], arena_printf(a, "%s.mean", r->name));
    ir_add_result(last, r->name, cast(last, mean, AMP_DT_F32, arena_printf(a, "%s.mean", r->name)));
    return state;
}

/* The counts of all ranks; 1 where there is nothing to count, as nll_loss has it. */
static Val total_of(Split *s, const Counted *c) {
    Func *last = s->apply_step;
    Val total = accumulate_add(s, c->sum, c->count, c->sum->name);
    Val zero = number(last, AMP_DT_F64, 0, c->sum->name), one = number(last, AMP_DT_F64, 1, c->sum->name);
    Val none = explained(last, ir_emit(last, OP_eq, AMP_DT_BOOL, NULL, 2, total, zero), c->sum->name, NULL);
    return explained(last, ir_emit(last, OP_where, AMP_DT_F64, NULL, 3, none, one, total), c->sum->name, NULL);
}

/* f32: what all ranks' full batches have, by what they had. */
static Val factor_of(Split *s, const Counted *c, Val total) {
    Func *last = s->apply_step;
    Val full = cast(last, counter(last, COUNTER_FULL_BATCH), AMP_DT_F64, "mean"),
        ranks = cast(last, counter(last, COUNTER_RANKS), AMP_DT_F64, "mean");
    double each = (double)s->m->accumulate * (c->targets.id ? labels_of_sample(s->micro_step, c->targets) : 1);
    Val all = two(last, OP_mul, AMP_DT_F64, two(last, OP_mul, AMP_DT_F64, full, ranks, "mean"),
                  number(last, AMP_DT_F64, each, "mean"), "mean");
    Val share = two(last, OP_div, AMP_DT_F64, all, total, "mean");
    Val factor = explained(last, ir_emit(last, OP_cast, AMP_DT_F32, "mean", 1, share), "mean", NULL);
    ir_def(last, factor)->reason->because = "1 where the batches of all ranks are full";
    return factor;
}

/* Gradients of the sum become those of the mean. */
static void scale_gradients(Split *s, const Val *total) {
    Func *last = s->apply_step;
    for (int i = 0; i < s->mean->of_block.len; i++) {
        const int block = train_block_count(s->m) ? i : NO_BLOCK;
        const ParamGradients gradients = train_gradients(last, block);
        const int kind = s->mean->of_block.data[i];
        Val factor = gradients.len ? factor_of(s, &s->mean->kinds.data[kind], total[kind]) : NO_VAL;
        for (int j = 0; j < gradients.len; j++) {
            Result *r = &last->results.data[gradients.data[j].result];
            r->value = two(last, OP_mul, AMP_DT_F32, r->value, factor, arena_printf(s->m->arena, "%s.mean", r->of));
        }
    }
}

StateList rank_mean_measures(Split *s) {
    Arena *a = s->m->arena;
    StateList sums = {0};
    const int results = s->micro_step->results.len, kinds = s->mean->kinds.len;
    Val *total = arena_array(a, Val, kinds + 1);
    for (int i = 0; i < kinds; i++) {
        total[i] = total_of(s, &s->mean->kinds.data[i]);
        vec_push(a, &sums, s->mean->kinds.data[i].sum);
    }
    scale_gradients(s, total);
    for (int i = 0; i < results; i++) {
        const Result r = s->micro_step->results.data[i];
        if (is_measured(&r)) vec_push(a, &sums, add_measure(s, &r, total));
    }
    return sums;
}
