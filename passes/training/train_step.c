/* train_step.c: what the passes of a training step share: what a model's train blocks say about each parameter, and the
 * functions of a step. */
#include "passes/training/training.h"

/* ---- train blocks ------------------------------------------------------------------------------------------------ */

int train_block_count(const Module *m) { return m->trains.len; }

const Train *train_block(const Module *m, int block) { return &m->trains.data[block]; }

int train_block_of(const Module *m, const char *state) {
    for (int i = 0; i < m->trains.len; i++) {
        const char *only = m->trains.data[i].only;
        if (!only || text_glob_match(only, state)) return i;
    }
    return -1;
}

void train_explain_update(Module *m, const Train *block, Op *o, const char *of, const char *what) {
    o->path = arena_printf(m->arena, "%s.%s", of, what);
    o->pos = block->optimizer.pos;
    o->reason = ir_reason(m, "update");
    o->reason->relation = "of";
    o->reason->neighbour = of;
}

double train_number(const CallArg *arg, double otherwise) {
    return !arg ? otherwise : arg->type == ATTR_INT ? (double)arg->value.i : arg->value.f;
}

void train_set_attributes(const Call *call, Op *o) {
    const AttrSpec *specs = ir_op_info[o->code].attrs;
    for (int i = 0; i < MAX_ATTRS && specs[i].type != ATTR_END; i++) {
        const CallArg *arg = ir_call_arg(call, specs[i].name);
        if (!arg) continue;
        if (specs[i].type == ATTR_FLOAT) o->attr[i].f = train_number(arg, 0);
        else o->attr[i] = arg->value;
    }
}

ParamGradients train_gradients(const Func *f, int block) {
    const Module *m = f->module;
    ParamGradients list = {0};
    for (int i = 0; i < f->results.len; i++) {
        if (f->results.data[i].kind != RESULT_GRADIENT) continue;
        const State *s = ir_result_state(f, &f->results.data[i]);
        if (s && (block < 0 || train_block_of(m, s->name) == block)) vec_push(m->arena, &list, ((ParamGradient){s, i}));
    }
    return list;
}

/* ---- the functions of a step ------------------------------------------------------------------------------------- */

Func *train_last_function(const Module *m) {
    Func *f = ir_program(m, PROGRAM_APPLY_STEP);
    return f ? f : ir_program(m, PROGRAM_TRAIN_STEP);
}

Func *train_first_function(const Module *m) {
    Func *f = ir_program(m, PROGRAM_MICRO_STEP);
    return f ? f : ir_program(m, PROGRAM_TRAIN_STEP);
}
