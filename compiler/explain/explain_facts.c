/* explain_facts.c: what planned modules tell about its ops: their kernels, where their casts happen, which roundings
 * were removed. Each fact is filed under the path or the value that is asked for, in one walk over a module. */
#include <stdio.h>
#include <string.h>

#include "compiler/explain/explain.h"

static const Func *explained_func(const Module *m) {
    static const ProgramKind kinds[] = {PROGRAM_TRAIN_STEP, PROGRAM_MICRO_STEP, PROGRAM_INFER};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (ir_program(m, kinds[i])) return ir_program(m, kinds[i]);
    return NULL;
}

/* Adds |number| to the list under |key|, once; makes the list if there is none. */
static void file_under(Arena *a, Table *t, const char *key, int number) {
    ExplainNumbers *list = table_get(t, key);
    if (!list) {
        list = arena_new(a, ExplainNumbers);
        *list = (ExplainNumbers){0};
        table_set(a, t, key, list);
    }
    if (!list->len || list->data[list->len - 1] != number) vec_push(a, list, number);
}

static const ExplainNumbers *find_under(const Table *t, const char *key) {
    static const ExplainNumbers none = {0};
    const ExplainNumbers *list = key ? table_get(t, key) : NULL;
    return list ? list : &none;
}

/* A cast by what it casts and to what: "fc1.weight f16". */
static const char *cast_key(Arena *a, const char *value, Dtype to) {
    return arena_printf(a, "%s %s", value, amp_dtype_name(to));
}

static void file_kernels(Arena *a, const Func *f, Table *by_path) {
    for (int i = 0; f && i < f->kernels.len; i++)
        for (int j = 0; j < f->kernels.data[i]->count; j++) {
            const Op *o = ir_op_at(f, f->kernels.data[i]->first + j);
            if (o->path) file_under(a, by_path, o->path, i);
        }
}

static void file_casts(ExplainFacts *x) {
    const Func *f = x->f;
    Arena *a = x->m->arena;
    for (int i = 0; f && i < f->kernels.len; i++)
        for (int j = 0; j < f->kernels.data[i]->count; j++) {
            const Op *o = ir_op_at(f, f->kernels.data[i]->first + j);
            if (o->code == OP_cast)
                file_under(a, &x->casts, cast_key(a, ir_value(f, o->in[0])->name, ir_dtype(f, o->out[0])), i);
        }
}

/* Lines of other functions, and damaged ones, are passed over. */
static void file_uses(ExplainFacts *x, const char *lines) {
    Arena *a = x->m->arena;
    for (const char *line = lines; line && *line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
        char func[64], kernel[64];
        ExplainUse use;
        int read = sscanf(line, "%63s %63s %15s registers %d shared %d spills %d stack %d", func, kernel, use.arch,
                          &use.registers, &use.shared_bytes, &use.spill_bytes, &use.stack_bytes);
        if (read != 7 || !x->cuda || strcmp(func, x->cuda->name)) continue;
        ExplainUses *list = table_get(&x->uses, kernel);
        if (!list) {
            list = arena_new(a, ExplainUses);
            *list = (ExplainUses){0};
            table_set(a, &x->uses, arena_strdup(a, kernel), list);
        }
        vec_push(a, list, use);
    }
}

/* A weight's copy in a low precision is a state of its own. */
static void file_copies(ExplainFacts *x) {
    for (int i = 0; i < x->m->states.len; i++) {
        const State *s = x->m->states.data[i];
        if (s->role == STATE_DERIVED && s->of)
            file_under(x->m->arena, &x->copies, cast_key(x->m->arena, s->of, s->dtype), i);
    }
}

/* A gradient's path is its op's path and ".grad...": filed under each path that this can mean. */
static void file_removed(ExplainFacts *x) {
    Arena *a = x->m->arena;
    for (int i = 0; i < x->m->removed.len; i++) {
        const Removed *r = &x->m->removed.data[i];
        const Func *f = ir_func_find(x->m, r->func);
        Val v = f ? ir_find(f, r->value) : NO_VAL;
        const Op *o = v.id ? ir_def(f, v) : NULL;
        const char *path = o ? o->path : NULL, *end = path ? strstr(path, ".grad") : NULL;
        for (; end; end = strstr(end + 1, ".grad"))
            file_under(a, &x->removed, arena_strndup(a, path, (size_t)(end - path)), i);
    }
}

/* By what they cast, and by the op that asked. */
static void file_graph_casts(ExplainFacts *x, const Module *graph) {
    Arena *a = x->m->arena;
    x->graph_casts = casts_of(graph);
    for (int i = 0; i < x->graph_casts.len; i++) {
        const Cast *c = &x->graph_casts.data[i];
        if (!table_get(&x->casts_of_value, cast_key(a, c->value, c->to)))
            file_under(a, &x->casts_of_value, cast_key(a, c->value, c->to), i);
        file_under(a, &x->casts_of_asker, c->asker, i);
    }
}

/* By the path of the op of the forward pass. */
static void file_cores(ExplainFacts *x, const Module *graph) {
    Arena *a = x->m->arena;
    const CodegenCopies *copies = &x->tensor_cores->copies;
    const Func *funcs[STEP_FUNCS + 1] = {NULL};
    if (!x->tensor_cores->is_known) return;
    casts_step_funcs(graph ? graph : x->tensor_cores->cuda, funcs);
    x->narrow_sizes = tensor_cores_narrow(a, funcs, copies);
    for (int i = 0; i < copies->len; i++)
        if (tensor_cores_is_of(funcs, &copies->data[i]))
            file_under(a, &x->cores, tensor_cores_forward_path(a, copies->data[i].path), i);
    for (int i = 0; i < x->narrow_sizes.len; i++) file_under(a, &x->narrow, x->narrow_sizes.data[i].path, i);
}

/* ---- layers ------------------------------------------------------------------------------------------------------ */

/* Ops that only keep a layer's statistics, the running mean and variance of batch_norm say: nothing but updates of
 * buffers reads what they make.  They are told of with the op that the layer is for, the last one before them that is
 * of the same layer at the same place: bn1.batch_norm of bn1.mul, bn1.add and bn1.increment. */

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
    bool *wanted = ir_results(f, a);
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

static void file_layers(ExplainFacts *x, const Module *graph) {
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
            file_under(a, &x->keepers, layer->path, i);
        }
    }
}

/* ---- all facts -------------------------------------------------------------------------------------------- */

ExplainFacts explain_facts(const ExplainSource *s) {
    ExplainFacts x = {.m = s->m,
                      .f = explained_func(s->m),
                      .cuda = s->cuda ? explained_func(s->cuda) : NULL,
                      .tensor_cores = &s->cores};
    file_kernels(s->m->arena, x.f, &x.kernels);
    file_kernels(s->m->arena, x.cuda, &x.cuda_kernels);
    file_uses(&x, s->cuda_uses);
    file_casts(&x);
    file_copies(&x);
    file_removed(&x);
    file_graph_casts(&x, s->graph);
    file_cores(&x, s->graph);
    file_layers(&x, s->graph);
    return x;
}

const ExplainNumbers *explain_kernels(const ExplainFacts *x, const char *path) { return find_under(&x->kernels, path); }

const ExplainNumbers *explain_cuda_kernels(const ExplainFacts *x, const char *path) {
    return find_under(&x->cuda_kernels, path);
}

const ExplainUses *explain_uses(const ExplainFacts *x, const Kernel *k) {
    static const ExplainUses none = {0};
    const ExplainUses *list = table_get(&x->uses, k->name);
    return list ? list : &none;
}

const ExplainNumbers *explain_removed(const ExplainFacts *x, const char *path) { return find_under(&x->removed, path); }

const char *explain_layer_of(const ExplainFacts *x, const char *path) { return table_get(&x->layer_of, path); }

const ExplainNumbers *explain_keepers(const ExplainFacts *x, const char *path) { return find_under(&x->keepers, path); }

/* ---- tensor cores ------------------------------------------------------------------------------------------------ */

const ExplainNumbers *explain_narrow(const ExplainFacts *x, const char *path) { return find_under(&x->narrow, path); }

CoresKind explain_cores(const ExplainFacts *x, const Decision *d) {
    const Opcode code = ir_opcode(d->op);
    if (!code || !(ir_op_info[code].flags & PRODUCT)) return CORES_NO_PRODUCT;
    if (!x->tensor_cores->is_known) return CORES_UNKNOWN;
    if (find_under(&x->cores, d->path)->len) return CORES_YES;
    return d->operands.len && d->operands.data[0] == AMP_DT_F32 ? CORES_FULL_PRECISION : CORES_NO;
}

const char *explain_cores_why(CoresKind kind) {
    switch (kind) {
    case CORES_FULL_PRECISION: return "its factors are f32; they multiply f16, bf16 and tf32";
    case CORES_NO: return "none of its kernels is made for them";
    default: return NULL;
    }
}

/* ---- casts ------------------------------------------------------------------------------------------------------- */

const Cast *explain_cast_of(const ExplainFacts *x, const CastNote *note) {
    const ExplainNumbers *found = find_under(&x->casts_of_value, cast_key(x->m->arena, note->value, note->to));
    return found->len ? &x->graph_casts.data[found->data[0]] : NULL;
}

const ExplainNumbers *explain_casts_for(const ExplainFacts *x, const char *path) {
    return find_under(&x->casts_of_asker, path);
}

/* Where the casts of an op's operands happen: autocast names them after it; what is cast may have lost its name. */
static const ExplainNumbers *find_casts(const ExplainFacts *x, const Decision *d, const char *key) {
    Arena *a = x->m->arena;
    const ExplainNumbers *found = find_under(&x->casts, key);
    for (int i = 0; !found->len && i < d->casts.len; i++)
        found = find_under(&x->kernels, arena_printf(a, i ? "%s.cast_%d" : "%s.cast", d->path, i));
    return found->len ? found : find_under(&x->kernels, d->path);
}

static CastPlace place_in(const ExplainFacts *x, const ExplainNumbers *kernels) {
    if (!kernels->len) return (CastPlace){x->f && x->f->kernels.len ? PLACE_NOWHERE : PLACE_UNKNOWN, NULL};
    const Kernel *k = x->f->kernels.data[kernels->data[0]];
    return (CastPlace){k->count == 1 ? PLACE_KERNEL : PLACE_FUSED, k->name};
}

/* By value, else by the cast's path; a cast that a product or a store makes has neither: then the op that asked. */
CastPlace explain_place(const ExplainFacts *x, const Cast *c) {
    const char *key = cast_key(x->m->arena, c->value, c->to);
    if (find_under(&x->copies, key)->len) return (CastPlace){PLACE_STATE, NULL};
    if (!x->f || strcmp(c->func, x->f->name)) return (CastPlace){PLACE_UNKNOWN, NULL};
    const ExplainNumbers *kernels = find_under(&x->casts, key);
    if (!kernels->len) kernels = find_under(&x->kernels, c->name);
    if (!kernels->len && !strcmp(c->phase, "forward")) kernels = find_under(&x->kernels, c->asker);
    return place_in(x, kernels);
}

CastPlace explain_note_place(const ExplainFacts *x, const Decision *d, const CastNote *note) {
    const Cast *c = explain_cast_of(x, note);
    if (c) return explain_place(x, c);
    const char *key = cast_key(x->m->arena, note->value, note->to);
    if (find_under(&x->copies, key)->len) return (CastPlace){PLACE_STATE, NULL};
    return place_in(x, find_casts(x, d, key));
}

const char *explain_place_text(const ExplainFacts *x, CastPlace place) {
    switch (place.kind) {
    case PLACE_STATE:
        return x->m->has_train ? "once a step, written by the optimizer" : "once, when the weights are loaded";
    case PLACE_KERNEL:
        if (!place.kernel) return "in kernels that do nothing else, once a call";
        return arena_printf(x->m->arena, "in kernel %s, once a call", place.kernel);
    case PLACE_FUSED:
        return place.kernel ? arena_printf(x->m->arena, "fused into kernel %s", place.kernel) : "fused into kernels";
    case PLACE_NOWHERE: return "nowhere: nothing needs it";
    default: return NULL;
    }
}

CastTotals explain_cast_totals(const ExplainFacts *x, const ExplainSelection *which) {
    CastTotals totals = {0};
    for (int i = 0; i < x->graph_casts.len; i++) {
        const Cast *c = &x->graph_casts.data[i];
        if (explain_selects_cast(which, c))
            casts_count(x->m->arena, &totals, c, explain_place(x, c).kind == PLACE_FUSED);
    }
    return totals;
}
