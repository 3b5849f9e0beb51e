/* explain_layers.c: ops that only keep a layer's statistics, the running mean and variance of batch_norm say: nothing
 * but updates of buffers reads what they make.  They are told of with the op that the layer is for, the last one before
 * them that is of the same layer at the same place: bn1.batch_norm of bn1.mul, bn1.add and bn1.increment. */
#include <string.h>

#include "compiler/explain.h"

/* Whether |o| writes a state that a step keeps beside what it trains, or the last iteration that left it as it was. */
static bool updates_buffer(const Func *f, const Op *o) {
    const State *s = o->code == OP_assign ? ir_state_of(f, o->in[0]) : NULL;
    const bool counts = s && s->counter.kind == COUNTER_STATES_KEPT;
    return s && (s->role == STATE_BUFFER || s->role == STATE_STAGED || counts);
}

static bool is_wanted(const bool *wanted, const Op *o) {
    for (int i = 0; i < o->n_out; i++)
        if (wanted[o->out[i].id]) return true;
    return !o->n_out;
}

/* Paths of the ops of |f| whose results, by whatever way, end in buffers alone. */
static void find_keepers(Arena *a, const Func *f, Table *out) {
    bool *wanted = arena_array(a, bool, f->values.len);
    for (int i = 0; i < f->results.len; i++) wanted[f->results.data[i].value.id] = true;
    for (int i = f->body.len - 1; i >= 0; i--) {
        const Op *o = ir_op_at(f, i);
        if (updates_buffer(f, o)) continue;
        if (!is_wanted(wanted, o)) {
            if (o->path) table_set(a, out, o->path, out);
            continue;
        }
        for (int j = 0; j < o->n_in; j++) wanted[o->in[j].id] = true;
        if (o->pred.id) wanted[o->pred.id] = true;
    }
}

static size_t scope_length(const char *path) {
    const char *dot = strrchr(path, '.');
    return dot ? (size_t)(dot - path) : 0;
}

static bool is_same_layer(const Decision *a, const Decision *b) {
    const size_t length = scope_length(a->path);
    return b->layer && !strcmp(a->layer, b->layer) && length == scope_length(b->path) &&
           !strncmp(a->path, b->path, length);
}

void explain_file_layers(ExplainFacts *x, const Module *graph) {
    const Func *funcs[STEP_FUNCS + 1] = {NULL};
    Arena *a = x->m->arena;
    Table keepers = {0};
    const Decision *layer = NULL; /* the last that keeps nothing */
    if (graph) casts_step_funcs(graph, funcs);
    if (!funcs[0]) return;
    find_keepers(a, funcs[0], &keepers);
    for (int i = 0; i < x->m->decisions.len; i++) {
        const Decision *d = &x->m->decisions.data[i];
        if (!d->layer || !table_get(&keepers, d->path)) layer = d;
        else if (layer && is_same_layer(d, layer)) {
            table_set(a, &x->layer_of, d->path, (void *)layer->path);
            explain_file_under(a, &x->keepers, layer->path, i);
        }
    }
}

const char *explain_layer_of(const ExplainFacts *x, const char *path) { return table_get(&x->layer_of, path); }

const ExplainNumbers *explain_keepers(const ExplainFacts *x, const char *path) {
    return explain_find_under(&x->keepers, path);
}
