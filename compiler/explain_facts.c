/* explain_facts.c: what a planned module tells about one op: its kernels, where its casts happen, which roundings were
 * removed. */
#include "compiler/explain.h"

const Func *explain_func(const Module *m) {
    const Func *f = ir_func_find(m, "train_step");
    return f ? f : ir_func_find(m, "infer");
}

bool explain_kernel_holds(const Func *f, const Kernel *k, const char *path) {
    for (int i = 0; i < k->count; i++) {
        const Op *o = ir_op_at(f, k->first + i);
        if (o->path && !strcmp(o->path, path)) return true;
    }
    return false;
}

/* ---- casts ----------------------------------------------------------------------------------- */

/* A weight's copy in a low precision is a state of its own. */
static bool is_kept_copy(const Module *m, const CastNote *c) {
    for (int i = 0; i < m->states.len; i++) {
        const State *s = m->states.data[i];
        if (s->role == STATE_DERIVED && s->dtype == c->to && !strcmp(s->of, c->value)) return true;
    }
    return false;
}

static bool is_cast_of(const Func *f, const Op *o, const CastNote *c) {
    return o->code == OP_cast && !strcmp(ir_value(f, o->in[0])->name, c->value) && ir_dtype(f, o->out[0]) == c->to;
}

const char *explain_cast_place(const Module *m, const CastNote *c) {
    const Func *f = explain_func(m);
    if (is_kept_copy(m, c))
        return m->has_train ? "once a step, written by the optimizer" : "once, when the weights are loaded";
    for (int i = 0; f && i < f->kernels.len; i++) {
        const Kernel *k = f->kernels.data[i];
        for (int j = 0; j < k->count; j++)
            if (is_cast_of(f, ir_op_at(f, k->first + j), c))
                return arena_printf(m->arena, k->count == 1 ? "in kernel %s, once a call" : "fused into kernel %s",
                                    k->name);
    }
    return NULL;
}

/* ---- removed roundings ----------------------------------------------------------------------- */

bool explain_removed_from(const Module *m, const Removed *r, const char *path) {
    static const char gradient[] = ".grad";
    const Func *f = ir_func_find(m, r->func);
    Val v = f ? ir_find(f, r->value) : NO_VAL;
    const Op *o = v.id ? ir_def(f, v) : NULL;
    size_t n = strlen(path);
    return o && o->path && !strncmp(o->path, path, n) && !strncmp(o->path + n, gradient, sizeof gradient - 1);
}
