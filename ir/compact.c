/* compact.c: drops what is not needed and renumbers the remainder in order of appearance, so that the module in memory
 * equals the one that its text parses to. */
#include "ir/names.h"

/* Every pass ends in a compaction, and an arena takes nothing back: so each kind of array has two, which take turns. */
typedef struct Spare {
    void *data;
    size_t bytes;
} Spare;

struct FuncSpares {
    Spare values, ops, operands;
    Spare operands_now; /* where the operands and results of all ops lie since the last compaction */
};

/* What happens to one function.  Ids are old ids. */
typedef struct Compacting {
    Func *f;
    Arena *a;        /* for as long as this takes */
    bool *needed;    /* by value: somebody reads it */
    uint32_t *moved; /* by value: the new id; 0: dropped */
} Compacting;

/* The spare array, or a new one where that is too small. */
static Spare take_spare(const Compacting *c, Spare spare, size_t bytes) {
    return spare.bytes >= bytes ? spare : (Spare){arena_alloc(c->f->module->arena, bytes), bytes};
}

static void need(Compacting *c, Val v) {
    if (v.id < (uint32_t)c->f->values.len) c->needed[v.id] = true;
}

static Val moved(const Compacting *c, Val v) { return (Val){v.id < (uint32_t)c->f->values.len ? c->moved[v.id] : 0}; }

/* Once kernels have buffers, the program is fixed. */
static bool is_fixed(const Func *f) { return f->buffers.len > 0; }

static bool is_live(const Compacting *c, const Op *o) {
    if (is_fixed(c->f) || ir_op_info[o->code].flags & (EFFECT | COLLECTIVE)) return true;
    for (int i = 0; i < o->n_out; i++)
        if (c->needed[o->out[i].id]) return true;
    return false;
}

/* Backwards over the body, so that users come before what they use. */
static bool *find_live_ops(Compacting *c) {
    Func *f = c->f;
    bool *live = arena_array(c->a, bool, f->body.len + 1);
    for (int i = 0; i < f->results.len; i++) need(c, f->results.data[i].value);
    for (int i = 0; i < f->kernels.len; i++) need(c, f->kernels.data[i]->pred);
    for (int i = 0; i < f->buffers.len; i++) need(c, f->buffers.data[i]->value);
    for (int i = f->body.len - 1; i >= 0; i--) {
        const Op *o = ir_op_at(f, i);
        live[i] = is_live(c, o);
        if (!live[i]) continue;
        need(c, o->pred);
        for (int j = 0; j < o->n_in; j++) need(c, o->in[j]);
    }
    return live;
}

/* |live_before[i]|: live ops among body[0 .. i). */
static void shrink_kernels(Func *f, const int *live_before) {
    int kept = 0;
    for (int i = 0; i < f->kernels.len; i++) {
        Kernel *k = f->kernels.data[i];
        int first = live_before[k->first], end = live_before[k->first + k->count];
        k->first = first;
        k->count = end - first;
        if (k->count || is_fixed(f)) f->kernels.data[kept++] = k;
    }
    f->kernels.len = kept;
}

static void drop_dead_ops(Compacting *c) {
    Func *f = c->f;
    const bool *live = find_live_ops(c);
    int *live_before = arena_array(c->a, int, f->body.len + 1);
    int kept = 0;
    for (int i = 0; i < f->body.len; i++) {
        live_before[i] = kept;
        if (live[i]) f->body.data[kept++] = f->body.data[i];
    }
    live_before[f->body.len] = kept;
    shrink_kernels(f, live_before);
    f->body.len = kept;
}

static void drop_unread_states(Compacting *c) {
    Func *f = c->f;
    int kept = 0;
    for (int i = 0; i < f->inputs.len; i++) {
        Val v = f->inputs.data[i];
        if (ir_value(f, v)->kind == VAL_INPUT || c->needed[v.id]) f->inputs.data[kept++] = v;
    }
    f->inputs.len = kept;
}

static void move_after(const Compacting *c, OpAfter *after) {
    int kept = 0;
    for (int i = 0; after && i < after->count; i++) {
        const Val v = moved(c, after->at[i]);
        if (v.id) after->at[kept++] = v;
    }
    if (after) after->count = kept;
}

/* Inputs first, then results in the order of the body: the order in which the reader meets them. */
static void renumber_values(Compacting *c) {
    Func *f = c->f;
    int count = 1, at = 1;
    for (int i = 0; i < f->body.len; i++) count += ir_op_at(f, i)->n_out;
    count += f->inputs.len;
    Spare fresh = take_spare(c, f->spares->values, sizeof(Value *) * (size_t)count);
    Value **values = fresh.data;
    values[0] = NULL;
    for (int i = 0; i < f->inputs.len; i++) {
        c->moved[f->inputs.data[i].id] = (uint32_t)at;
        values[at++] = ir_value(f, f->inputs.data[i]);
    }
    for (int i = 0; i < f->body.len; i++) {
        const Op *o = ir_op_at(f, i);
        for (int j = 0; j < o->n_out; j++) {
            Value *value = ir_value(f, o->out[j]);
            value->def = (OpId){(uint32_t)i + 1};
            value->out = j;
            c->moved[o->out[j].id] = (uint32_t)at;
            values[at++] = value;
        }
    }
    for (int i = 0; i < f->inputs.len; i++) f->inputs.data[i] = moved(c, f->inputs.data[i]);
    for (int i = 0; i < f->results.len; i++) f->results.data[i].value = moved(c, f->results.data[i].value);
    for (int i = 0; i < f->kernels.len; i++) f->kernels.data[i]->pred = moved(c, f->kernels.data[i]->pred);
    for (int i = 0; i < f->buffers.len; i++) f->buffers.data[i]->value = moved(c, f->buffers.data[i]->value);
    for (int i = 0; i < f->body.len; i++) {
        ir_op_at(f, i)->pred = moved(c, ir_op_at(f, i)->pred);
        move_after(c, ir_op_at(f, i)->after);
    }
    f->spares->values = (Spare){f->values.data, sizeof(Value *) * (size_t)f->values.cap};
    f->values.data = values;
    f->values.cap = (int)(fresh.bytes / sizeof(Value *));
}

static Val *moved_list(const Compacting *c, Val **to, const Val *list, int n) {
    Val *first = *to;
    for (int i = 0; i < n; i++) *(*to)++ = moved(c, list[i]);
    return first;
}

/* Into an array that holds none of them yet: passes may let two ops share one. */
static void move_operands(const Compacting *c) {
    Func *f = c->f;
    struct FuncSpares *s = f->spares;
    size_t count = 0;
    for (int i = 0; i < f->body.len; i++) count += (size_t)ir_op_at(f, i)->n_in + (size_t)ir_op_at(f, i)->n_out;
    Spare fresh = take_spare(c, s->operands, sizeof(Val) * count);
    Val *to = fresh.data;
    for (int i = 0; i < f->body.len; i++) {
        Op *o = ir_op_at(f, i);
        o->in = moved_list(c, &to, o->in, o->n_in);
        o->out = moved_list(c, &to, o->out, o->n_out);
    }
    s->operands = s->operands_now;
    s->operands_now = fresh;
}

static void renumber_ops(Compacting *c) {
    Func *f = c->f;
    move_operands(c);
    size_t count = (size_t)f->body.len + 1;
    Spare fresh = take_spare(c, f->spares->ops, sizeof(Op *) * count);
    Op **ops = fresh.data;
    ops[0] = NULL;
    for (int i = 0; i < f->body.len; i++) {
        ops[i + 1] = ir_op_at(f, i);
        ops[i + 1]->id = (OpId){(uint32_t)i + 1};
    }
    for (int i = 0; i < f->body.len; i++) f->body.data[i] = (OpId){(uint32_t)i + 1};
    f->spares->ops = (Spare){f->ops.data, sizeof(Op *) * (size_t)f->ops.cap};
    f->ops.data = ops;
    f->ops.len = (int)count;
    f->ops.cap = (int)(fresh.bytes / sizeof(Op *));
}

static void renumber_regions(Compacting *c) {
    Func *f = c->f;
    uint32_t *number = arena_array(c->a, uint32_t, f->regions.len + 1);
    VEC(Region) regions = {0};
    for (int i = 0; i < f->body.len; i++) {
        Op *o = ir_op_at(f, i);
        const Region *r = ir_region(f, o->region);
        if (!r) continue;
        if (!number[o->region]) {
            vec_push(f->module->arena, &regions, *r);
            number[o->region] = (uint32_t)regions.len;
        }
        o->region = number[o->region];
    }
    f->regions.data = regions.data;
    f->regions.len = regions.len;
    f->regions.cap = regions.cap;
}

static void compact_func(Func *f) {
    Arena *a = arena_child(f->module->arena);
    Compacting c = {f, a, arena_array(a, bool, f->values.len), arena_array(a, uint32_t, f->values.len)};
    if (!f->spares) f->spares = arena_new(f->module->arena, struct FuncSpares);
    drop_dead_ops(&c);
    drop_unread_states(&c);
    renumber_values(&c);
    renumber_ops(&c);
    renumber_regions(&c);
    int live = 1;
    for (int i = 0; i < f->body.len; i++) live += ir_op_at(f, i)->n_out;
    f->values.len = live + f->inputs.len;
    names_rebuild(f);
    arena_free(a);
}

/* By index + 1: read by a function or held by a buffer. */
static bool *find_used_states(const Module *m) {
    bool *used = arena_array(m->arena, bool, m->states.len + 1);
    for (int i = 0; i < m->funcs.len; i++) {
        const Func *f = m->funcs.data[i];
        for (int j = 0; j < f->buffers.len; j++)
            if (f->buffers.data[j]->state <= (uint32_t)m->states.len) used[f->buffers.data[j]->state] = true;
        for (int j = 0; j < m->states.len; j++) {
            const Value *value = ir_value(f, ir_find(f, m->states.data[j]->name));
            if (value && value->kind == VAL_STATE) used[j + 1] = true;
        }
    }
    return used;
}

static void drop_unused_states(Module *m) {
    uint32_t *number = arena_array(m->arena, uint32_t, m->states.len + 1);
    const bool *used = find_used_states(m);
    int kept = 0;
    for (int i = 0; i < m->states.len; i++) {
        StateRole role = m->states.data[i]->role;
        if (!used[i + 1] && role != STATE_PARAM && role != STATE_BUFFER) continue;
        m->states.data[kept++] = m->states.data[i];
        number[i + 1] = (uint32_t)kept;
    }
    for (int i = 0; i < m->funcs.len; i++)
        for (int j = 0; j < m->funcs.data[i]->buffers.len; j++) {
            Buffer *b = m->funcs.data[i]->buffers.data[j];
            b->state = b->state <= (uint32_t)m->states.len ? number[b->state] : 0;
        }
    if (kept == m->states.len) return;
    m->states.len = kept;
    m->state_names = (Table){0};
    for (int i = 0; i < kept; i++) {
        State *s = m->states.data[i];
        if (!table_get(&m->state_names, s->name)) table_set(m->arena, &m->state_names, s->name, s);
    }
}

void ir_compact(Module *m) {
    for (int i = 0; i < m->funcs.len; i++) compact_func(m->funcs.data[i]);
    drop_unused_states(m);
}

int *ir_use_counts(const Func *f, Arena *a) {
    int *uses = arena_array(a, int, f->values.len);
    for (int i = 0; i < f->body.len; i++) {
        const Op *o = ir_op_at(f, i);
        for (int j = 0; j < o->n_in; j++) uses[o->in[j].id]++;
        uses[o->pred.id]++;
    }
    for (int i = 0; i < f->results.len; i++) uses[f->results.data[i].value.id]++;
    for (int i = 0; i < f->kernels.len; i++) uses[f->kernels.data[i]->pred.id]++;
    uses[0] = 0;
    return uses;
}

bool *ir_results(const Func *f, Arena *a) {
    bool *is_result = arena_array(a, bool, f->values.len + 1);
    for (int i = 0; i < f->results.len; i++) is_result[f->results.data[i].value.id] = true;
    return is_result;
}

OpIds ir_take_body(Func *f) {
    const OpIds body = f->body;
    f->body = (OpIds){0};
    return body;
}
