/* keep.c: a state whose new value is not finite keeps the one that it has.
 *
 *   result update.avg = %next   =>   %ok = all_finite(%next) : bool
 *                                    %kept = where(%ok, %next, %avg)     because {keep, "a state stays finite"}
 *                                    result update.avg = %kept
 *
 * Gradients decide whether a step is skipped; a state may be made of what none of them passes.  All of a state is
 * kept, or nothing.  The statistics of a batch norm and what its block counts are kept together: they are of the same
 * batches.
 *
 * Each state of floats has a counter "states_kept.I", I its number among the buffers: the last iteration that left it
 * as it was, counted from 1.
 *
 *   %now = increment(%iteration)    assign(%states_kept.0, where(%ok, %states_kept.0, %now))
 */
#include "passes/training/training.h"

typedef struct Update { /* of one buffer */
    Result *result;
    const State *buffer;
    Val next;
    const State *unit; /* the running mean of the norm to which it belongs; the buffer, of others */
} Update;
typedef VEC(Update) Updates;

static const char *const RULE = "keep", *const FINITE = "finite", *const KEEP = "keep";

static Val explained(Func *f, Val v, const State *of, const char *what) {
    Op *o = ir_def(f, v);
    o->path = arena_printf(f->module->arena, "%s.%s", of->name, what);
    o->pos = of->pos;
    o->reason = ir_reason(f->module, RULE);
    o->reason->because = "a state stays finite";
    return v;
}

/* ---- what is kept together --------------------------------------------------------------------------------------- */

static size_t scope_length(const char *name) { return strrchr(name, '.') ? (size_t)(strrchr(name, '.') - name) : 0; }

static bool have_one_scope(const char *a, const char *b) {
    const size_t length = scope_length(a);
    return length == scope_length(b) && !strncmp(a, b, length);
}

enum { RUNNING_MEAN = 3 };

/* The running mean of a norm in whose block the buffer is. */
static const State *unit_of(const Func *f, const State *buffer) {
    for (int i = 0; i < f->body.len; i++) {
        const Op *o = ir_op_at(f, i);
        if (o->code != OP_batch_norm || ir_value(f, o->in[RUNNING_MEAN])->kind != VAL_STATE) continue;
        const State *mean = ir_state_of(f, o->in[RUNNING_MEAN]);
        if (have_one_scope(mean->name, buffer->name)) return mean;
    }
    return buffer;
}

static Updates find_updates(Func *f) {
    Updates list = {0};
    for (int i = 0; i < f->results.len; i++) {
        Result *r = &f->results.data[i];
        if (r->kind != RESULT_UPDATE) continue;
        const State *buffer = ir_result_state(f, r);
        Val next = r->value;
        if (ir_dtype(f, next) != buffer->dtype)
            next = explained(f, ir_emit(f, OP_cast, buffer->dtype, NULL, 1, next), buffer, "cast");
        vec_push(f->module->arena, &list, ((Update){r, buffer, next, unit_of(f, buffer)}));
    }
    return list;
}

/* ---- choosing ---------------------------------------------------------------------------------------------------- */

static Val is_finite(Func *f, const Update *u) {
    Val finite = ir_emit(f, OP_all_finite, AMP_DT_BOOL, NULL, 1, u->next);
    return explained(f, finite, u->buffer, FINITE);
}

/* bool: the new values of all that is kept together are finite; NO_VAL: they are whole numbers. */
static Val unit_is_finite(Func *f, const Updates *list, const State *unit) {
    Val all = NO_VAL;
    for (int i = 0; i < list->len; i++) {
        const Update *u = &list->data[i];
        if (u->unit != unit || !is_float(u->buffer->dtype)) continue;
        Val finite = is_finite(f, u);
        all = !all.id ? finite : explained(f, ir_emit(f, OP_and, AMP_DT_BOOL, NULL, 2, all, finite), unit, "together");
    }
    return all;
}

void keep_finite(Module *m) {
    Func *f = ir_program(m, PROGRAM_TRAIN_STEP);
    if (!f) return;
    Updates list = find_updates(f);
    Val *finite = arena_array(m->arena, Val, list.len + 1);
    for (int i = 0; i < list.len; i++) {
        const Update *u = &list.data[i];
        int first = 0;
        while (list.data[first].unit != u->unit) first++;
        if (first == i) finite[i] = unit_is_finite(f, &list, u->unit);
        if (!finite[first].id) continue;
        Val old = ir_use_state(f, u->buffer);
        Val kept = ir_emit(f, OP_where, u->buffer->dtype, NULL, 3, finite[first], u->next, old);
        u->result->value = explained(f, kept, u->buffer, KEEP);
    }
}

bool keep_made(const Op *o) { return o && o->reason && !strcmp(o->reason->rule, RULE) && o->code != OP_cast; }

/* ---- counting ---------------------------------------------------------------------------------------------------- */

/* Among the buffers of the module; -1: it has none of that name. */
static int number_of_buffer(const Module *m, const char *name) {
    for (int i = 0, number = 0; i < m->states.len; i++) {
        const State *s = m->states.data[i];
        if (s->role != STATE_BUFFER) continue;
        if (!strcmp(s->name, name)) return number;
        number++;
    }
    return -1;
}

static bool is_read(const Func *f, Val v) {
    for (int i = 0; i < f->results.len; i++)
        if (f->results.data[i].value.id == v.id) return true;
    for (int i = 0; i < f->body.len; i++)
        for (int j = 0; j < ir_op_at(f, i)->n_in; j++)
            if (ir_op_at(f, i)->in[j].id == v.id) return true;
    return false;
}

/* The op of this file that says so in its path. */
static const Op *find_made(const Func *f, const char *name, const char *what) {
    const char *path = arena_printf(f->module->arena, "%s.%s", name, what);
    for (int i = 0; i < f->body.len; i++) {
        const Op *o = ir_op_at(f, i);
        if (keep_made(o) && !strcmp(o->path, path)) return o;
    }
    return NULL;
}

static Val this_iteration(Func *f, const State *first) {
    Val iteration = ir_use_state(f, ir_counter(f->module, COUNTER_ITERATION, NO_BLOCK));
    return explained(f, ir_emit(f, OP_increment, AMP_DT_I64, NULL, 1, iteration), first, "now");
}

static void count(Func *f, const State *buffer, Val finite, Val now) {
    Module *m = f->module;
    Val kept = ir_use_state(f, ir_counter(m, COUNTER_STATES_KEPT, number_of_buffer(m, buffer->name)));
    Val next = explained(f, ir_emit(f, OP_where, AMP_DT_I64, NULL, 3, finite, kept, now), buffer, "kept");
    Op *o = ir_op_new(f, OP_assign, (Val[]){kept, next}, 2);
    o->path = arena_printf(m->arena, "%s.assign", ir_value(f, kept)->name);
    o->reason = ir_reason(m, RULE);
}

/* What is computed here may be moved to another function (statistics.c): then nothing reads it any more. */
static void count_in(Func *f) {
    Val now = NO_VAL;
    for (int i = 0; i < f->module->states.len; i++) {
        const State *buffer = f->module->states.data[i];
        if (buffer->role != STATE_BUFFER || !is_float(buffer->dtype)) continue;
        const Op *finite = find_made(f, buffer->name, FINITE), *kept = find_made(f, buffer->name, KEEP);
        if (!finite || !kept || !is_read(f, kept->out[0])) continue;
        if (!now.id) now = this_iteration(f, buffer);
        count(f, buffer, finite->out[0], now);
    }
}

void keep_count(Module *m) {
    static const ProgramKind kinds[] = {PROGRAM_TRAIN_STEP, PROGRAM_MICRO_STEP, PROGRAM_STATISTICS_STEP};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        Func *f = ir_program(m, kinds[i]);
        if (f) count_in(f);
    }
}
