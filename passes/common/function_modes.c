/* function_modes.c: see function_modes.h. */
#include "passes/common/function_modes.h"

#include "passes/common/rewrite.h"

typedef struct Making {
    const Func *from;
    Func *to;
    const Mode *mode;
    bool *live; /* by value id of |from| */
    Val *now;   /* by value id of |from|: the value of |to| */
} Making;

bool result_is_of_training(ResultKind kind) {
    return kind == RESULT_LOSS || kind == RESULT_NAMED_LOSS || kind == RESULT_METRIC || kind == RESULT_UPDATE;
}

Val result_value(const Result *r) { return r ? r->value : NO_VAL; }

static void find_live(Making *mk) {
    const Func *f = mk->from;
    for (int i = 0; i < f->results.len; i++)
        if (mk->mode->wants(f->results.data[i].kind)) mk->live[f->results.data[i].value.id] = true;
    for (int i = f->body.len - 1; i >= 0; i--) {
        const Op *o = ir_op_at(f, i);
        bool live = false;
        for (int r = 0; r < o->n_out; r++) live = live || mk->live[o->out[r].id];
        for (int j = 0; live && j < o->n_in; j++) mk->live[o->in[j].id] = true;
    }
}

static void copy_inputs(Making *mk) {
    for (int i = 0; i < mk->from->inputs.len; i++) {
        Val v = mk->from->inputs.data[i];
        const Value *value = ir_value(mk->from, v);
        if (!mk->live[v.id]) continue;
        mk->now[v.id] = value->kind == VAL_STATE ? ir_use_state(mk->to, ir_state_of(mk->from, v))
                                                 : ir_add_input(mk->to, value->name, value->dtype, value->shape);
    }
}

static Op *copy_op(Making *mk, const Op *o) {
    Op *copy = op_like(mk->to, o, o->in);
    for (int i = 0; i < o->n_in; i++) copy->in[i] = mk->now[o->in[i].id];
    for (int r = 0; r < o->n_out; r++) {
        const Value *value = ir_value(mk->from, o->out[r]);
        mk->now[o->out[r].id] = ir_result(mk->to, copy, value->name, value->dtype, value->shape);
    }
    return copy;
}

/* A random op of one operand is the identity in evaluation; if its class gave it another dtype, a cast remains. */
static void copy_as_identity(Making *mk, const Op *o) {
    Val x = mk->now[o->in[0].id];
    Dtype t = ir_dtype(mk->from, o->out[0]);
    if (ir_dtype(mk->to, x) != t) {
        x = ir_emit(mk->to, OP_cast, t, ir_value(mk->from, o->out[0])->name, 1, x);
        Op *cast = ir_def(mk->to, x);
        cast->path = o->path;
        cast->pos = o->pos;
        cast->reason = o->reason;
    }
    mk->now[o->out[0].id] = x;
}

/* Outside training y comes from the running statistics; the statistics of the batch, which only updates need, are
 * kept if something reads them. */
static void copy_by_running_statistics(Making *mk, const Op *o) {
    bool batch = false;
    for (int r = 1; r < o->n_out; r++) batch = batch || mk->live[o->out[r].id];
    if (batch) copy_op(mk, o);
    if (!mk->live[o->out[0].id]) return;
    Op y = *o;
    y.code = OP_batch_norm_eval;
    y.n_out = 1;
    copy_op(mk, &y);
}

static void copy_in_mode(Making *mk, const Op *o) {
    if (!mk->mode->training && o->code == OP_batch_norm) copy_by_running_statistics(mk, o);
    else if (!mk->mode->training && ir_op_info[o->code].flags & RANDOM) copy_as_identity(mk, o);
    else copy_op(mk, o);
}

Func *mode_make(const Func *f, const Mode *mode) {
    Arena *a = f->module->arena;
    Making mk = {
        .from = f,
        .to = ir_program_new(f->module, mode->kind),
        .mode = mode,
        .live = arena_array(a, bool, f->values.len),
        .now = arena_array(a, Val, f->values.len),
    };
    find_live(&mk);
    copy_inputs(&mk);
    for (int i = 0; i < f->body.len; i++) {
        const Op *o = ir_op_at(f, i);
        bool live = false;
        for (int r = 0; r < o->n_out; r++) live = live || mk.live[o->out[r].id];
        if (live) copy_in_mode(&mk, o);
    }
    for (int i = 0; i < f->results.len; i++) {
        const Result *r = &f->results.data[i];
        if (mode->wants(r->kind)) ir_add_result(mk.to, r->name, mk.now[r->value.id]);
    }
    return mk.to;
}
