/* origin.c: the first op, input or state that made what is not finite.
 *
 * From a result that is not finite the search goes back along operands that are not finite.  An op that has none is an
 * origin; of several the first in the order of execution is told.  Operands that are in no memory, because their op is
 * fused with its reader, are passed through.
 *
 * An infinity that the model's text writes (a mask of -inf) is meant to be there.  Where nothing else is found, the
 * origin is the first op that made a NaN of such.
 */
#include "compiler/trace/trace.h"

#include <math.h>

#include "base/dtypes.h"

TraceSearch trace_search_new(const Func *f) {
    Arena *a = f->module->arena;
    int operands = f->results.len;
    for (int i = 0; i < f->body.len; i++) operands += ir_op_at(f, i)->n_in;
    TraceSearch s = {.place = arena_array(a, int, f->ops.len + 1), .queued = arena_array(a, bool, f->values.len + 1)};
    s.visited = arena_array(a, bool, f->ops.len + 1);
    s.passed = arena_array(a, bool, f->ops.len + 1);
    s.pending = arena_array(a, Val, operands + 1);
    s.passing = arena_array(a, Val, operands + 1);
    for (int i = 0; i < f->body.len; i++) s.place[f->body.data[i].id] = i;
    return s;
}

static void start(const TraceValues *v, const TraceSearch *s) {
    memset(s->visited, 0, (size_t)(v->f->ops.len + 1) * sizeof *s->visited);
    memset(s->queued, 0, (size_t)(v->f->values.len + 1) * sizeof *s->queued);
}

static void queue(const TraceSearch *s, Val value, int *pending) {
    if (s->queued[value.id]) return;
    s->queued[value.id] = true;
    s->pending[(*pending)++] = value;
}

/* ---- operands ---------------------------------------------------------------------------------------------------- */

typedef struct Operands { /* of one op, those that are not in memory passed through */
    bool is_bad;          /* one is in memory and not finite, */
    bool has_nan;         /* one is a NaN, */
    bool has_infinity;    /* one is an infinity of the model's text */
} Operands;

static bool is_float(const Func *f, Val value) {
    const amp_dtype_class class = amp_class_of(ir_dtype(f, value));
    return class == AMP_CLASS_FLOAT || class == AMP_CLASS_DOUBLE;
}

/* As an f32, which it becomes. */
static bool is_written_infinity(const Op *o) {
    return (o->code == OP_const || o->code == OP_full) && !isfinite((float)ir_attr(o, "value")->f);
}

static void pass_operands(const TraceValues *v, const TraceSearch *s, const Op *o, int *count) {
    for (int i = 0; i < o->n_in; i++)
        if (ir_reads_elements(o, i) && is_float(v->f, o->in[i])) s->passing[(*count)++] = o->in[i];
}

static void note(const TraceValues *v, const TraceSearch *s, Val value, Operands *found, int *pending) {
    if (trace_is_finite(v, value)) return;
    found->is_bad = true;
    found->has_nan |= v->range[value.id].nans != 0;
    queue(s, value, pending);
}

/* Queues those that are not finite. */
static Operands follow(const TraceValues *v, const TraceSearch *s, const Op *o, int *pending) {
    Operands found = {0};
    int count = 0;
    memset(s->passed, 0, (size_t)(v->f->ops.len + 1) * sizeof *s->passed);
    pass_operands(v, s, o, &count);
    while (count) {
        const Val value = s->passing[--count];
        const Op *def = ir_def(v->f, value);
        if (trace_is_known(v, value)) note(v, s, value, &found, pending);
        else if (def && !s->passed[def->id.id]) {
            s->passed[def->id.id] = true;
            found.has_infinity |= is_written_infinity(def);
            pass_operands(v, s, def, &count);
        }
    }
    return found;
}

/* ---- results ----------------------------------------------------------------------------------------------------- */

static bool is_of_interest(const Result *r) {
    return r->kind == RESULT_LOSS || r->kind == RESULT_NAMED_LOSS || r->kind == RESULT_GRADIENT ||
           r->kind == RESULT_MODEL;
}

static bool is_bad(const TraceValues *v, Val value) {
    return trace_is_known(v, value) && v->is_written[value.id] && !trace_is_finite(v, value);
}

static bool is_buffer(const Func *f, Val state) {
    const StateRole role = ir_state_of(f, state)->role;
    return role == STATE_BUFFER || role == STATE_STAGED;
}

/* What would be assigned were it finite: a buffer then keeps its value. */
static Val new_value(const Func *f, const Op *assign) {
    const Op *choice = ir_def(f, assign->in[1]);
    return choice && choice->code == OP_select && is_buffer(f, assign->in[0]) ? choice->in[1] : assign->in[1];
}

/* Gradients and losses first; where all are finite, what an update would leave in a state. */
static int queue_bad_results(const TraceValues *v, const TraceSearch *s) {
    int pending = 0;
    for (int i = 0; i < v->f->results.len; i++)
        if (is_of_interest(&v->f->results.data[i]) && is_bad(v, v->f->results.data[i].value))
            queue(s, v->f->results.data[i].value, &pending);
    for (int i = 0; !pending && i < v->f->body.len; i++) {
        const Op *o = ir_op_at(v->f, i);
        if (o->code == OP_assign && is_bad(v, new_value(v->f, o))) queue(s, new_value(v->f, o), &pending);
    }
    return pending;
}

/* ---- the search -------------------------------------------------------------------------------------------------- */

typedef struct Candidates { /* the first of each kind, by its place */
    Val origin, made_nan;
    int origin_place, nan_place;
} Candidates;

static void propose(Val *best, int *best_place, Val value, int place) {
    if (best->id && *best_place <= place) return;
    *best = value;
    *best_place = place;
}

enum { BEFORE_ALL_OPS = -1 };

static void visit_op(const TraceValues *v, const TraceSearch *s, const Op *o, Val value, int *pending, Candidates *c) {
    const Operands found = follow(v, s, o, pending);
    const int place = s->place[o->id.id];
    if (!found.is_bad && !found.has_infinity && !is_written_infinity(o))
        propose(&c->origin, &c->origin_place, value, place);
    if (v->range[value.id].nans && !found.has_nan) propose(&c->made_nan, &c->nan_place, value, place);
}

Val trace_origin(const TraceValues *v, const TraceSearch *s) {
    Candidates c = {0};
    start(v, s);
    for (int pending = queue_bad_results(v, s); pending;) {
        const Val value = s->pending[--pending];
        const Op *o = ir_def(v->f, value);
        if (!o) propose(&c.origin, &c.origin_place, value, BEFORE_ALL_OPS);
        else if (!s->visited[o->id.id]) {
            s->visited[o->id.id] = true;
            visit_op(v, s, o, value, &pending, &c);
        }
    }
    return c.origin.id ? c.origin : c.made_nan;
}

/* ---- forward and backward ---------------------------------------------------------------------------------------- */

static bool is_forward_result(const Result *r) { return r->kind != RESULT_GRADIENT && r->kind != RESULT_OK; }

bool trace_is_forward(const TraceValues *v, const TraceSearch *s, Val value) {
    int pending = 0;
    start(v, s);
    for (int i = 0; i < v->f->results.len; i++)
        if (is_forward_result(&v->f->results.data[i])) queue(s, v->f->results.data[i].value, &pending);
    for (int i = 0; i < v->f->body.len; i++) {
        const Op *o = ir_op_at(v->f, i);
        if (o->code == OP_assign && is_buffer(v->f, o->in[0])) queue(s, o->in[1], &pending);
    }
    while (pending) {
        const Op *o = ir_def(v->f, s->pending[--pending]);
        for (int i = 0; o && i < o->n_in; i++) queue(s, o->in[i], &pending);
    }
    return s->queued[value.id];
}
