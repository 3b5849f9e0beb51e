/* scalar_kernel.c: kernels of scalars of any type, which a single thread makes.
 *
 * Where there are many (counters of all batch norms, learning rates), one thread would wait for each load in turn, or
 * run out of registers.  Then a block of one thread makes each part of the results, with all that they need.  What
 * comes from a scalar that the kernel also writes is in one part with it, so no block reads what another writes. */
#include "codegen/cuda/cuda_kernel.h"

/* Operands of a part, and of a kernel that is not cut: their addresses and values fit into registers. */
enum { PART_OPERANDS = 32 };

typedef struct Node { /* a value by its number, or the memory of an operand */
    int parent;       /* of the set that it is in; itself: none */
    bool bound;       /* memory: read and written here; value: depends on such memory */
    int part;         /* of a set's root, from 1 */
} Node;

typedef struct Parts {
    const Walk *w;
    Node *values, *memory; /* one array: memory by position of the operand */
    int count;
} Parts;

/* ---- what belongs together --------------------------------------------------------------------------------------- */

static int find_root(Parts *p, int n) {
    while (p->values[n].parent != n) n = p->values[n].parent = p->values[p->values[n].parent].parent;
    return n;
}

static void join(Parts *p, int a, int b) { p->values[find_root(p, a)].parent = find_root(p, b); }

static int value_node(const Parts *p, Val v) { return walk_number(p->w, v); }
static int memory_node(const Parts *p, int operand) { return (int)(p->memory - p->values) + operand; }

/* Operands of one memory are one node. */
static void join_places(Parts *p) {
    const Walk *w = p->w;
    int *first = arena_array(w->arena, int, w->f->buffers.len + 1); /* by buffer: the operand there, from 1 */
    for (int i = 0; i < w->operands.len; i++) {
        const Buffer *b = walk_operand(w, i);
        uint32_t place = b->place ? b->place : w->operands.data[i];
        if (first[place]) join(p, memory_node(p, i), memory_node(p, first[place] - 1));
        else first[place] = i + 1;
    }
}

/* Of the memory that results are written to, what is read. */
static void bind_memory(Parts *p) {
    const Walk *w = p->w;
    bool *read = arena_array(w->arena, bool, p->count);
    for (int i = 0; i < w->k->count; i++) {
        const Op *o = walk_op(w, i);
        for (int n = 0; n < o->n_in; n++) {
            const ValueWalk *x = &w->values[o->in[n].id];
            if (walk_reads(w, o, n) && !x->made && x->needed) read[find_root(p, memory_node(p, x->operand))] = true;
        }
    }
    for (int i = 0; i < w->sinks.len; i++) {
        int memory = find_root(p, memory_node(p, w->sinks.data[i].operand));
        p->values[memory].bound = read[memory];
    }
}

static void join_input(Parts *p, const Op *o, int n) {
    const ValueWalk *x = &p->w->values[o->in[n].id];
    int v = value_node(p, o->in[n]);
    int memory = x->made ? 0 : find_root(p, memory_node(p, x->operand));
    if (memory && p->values[memory].bound && !p->values[v].bound) {
        p->values[v].bound = true;
        join(p, v, memory);
    }
}

static void join_values(Parts *p) {
    const Walk *w = p->w;
    for (int i = 0; i < w->k->count; i++) {
        const Op *o = walk_op(w, i);
        int bound = 0; /* an input that is */
        for (int n = 0; n < o->n_in; n++) {
            if (!walk_reads(w, o, n)) continue;
            join_input(p, o, n);
            int v = value_node(p, o->in[n]);
            if (!p->values[v].bound) continue;
            if (bound) join(p, v, bound);
            bound = v;
        }
        for (int r = 0; r < o->n_out && bound; r++) {
            p->values[value_node(p, o->out[r])].bound = true;
            join(p, value_node(p, o->out[r]), bound);
        }
    }
}

/* The set of a result: the set of its value, if that is bound, joined with the set of its memory. */
static int sink_root(Parts *p, const Sink *s) {
    int v = value_node(p, s->value), memory = memory_node(p, s->operand);
    if (p->values[v].bound) join(p, memory, v);
    return find_root(p, memory);
}

/* ---- parts ------------------------------------------------------------------------------------------------------- */

static Parts find_sets(const Walk *w) {
    const int numbers = walk_numbers(w);
    Parts p = {.w = w, .count = numbers + w->operands.len};
    p.values = arena_array(w->arena, Node, p.count);
    p.memory = p.values + numbers;
    for (int i = 0; i < p.count; i++) p.values[i].parent = i;
    join_places(&p);
    bind_memory(&p);
    join_values(&p);
    for (int i = 0; i < w->sinks.len; i++) sink_root(&p, &w->sinks.data[i]);
    return p;
}

/* Whole sets, in the order of their first result, as many as have PART_OPERANDS results and reads of them; returns how
 * many parts there are. */
static int number_parts(Parts *p) {
    const Walk *w = p->w;
    int parts = 0, room = 0;
    int *size = arena_array(w->arena, int, p->count); /* of a set: its results, and again as many for what they read */
    for (int i = 0; i < w->sinks.len; i++) size[sink_root(p, &w->sinks.data[i])] += 2;
    for (int i = 0; i < w->sinks.len; i++) {
        int root = sink_root(p, &w->sinks.data[i]);
        if (p->values[root].part) continue;
        if (!parts || room < size[root]) {
            parts++;
            room = PART_OPERANDS;
        }
        room -= size[root];
        p->values[root].part = parts;
    }
    return parts;
}

/* ---- the kernel -------------------------------------------------------------------------------------------------- */

/* What moves elements names pointers where none can be declared. */
static amp_status emit_results(CudaKernel *ck) {
    for (int i = 0; i < ck->w->k->count; i++)
        if (walk_is_indirect(ck->w, walk_op(ck->w, i))) cuda_declare_operands(ck);
    AMP_TRY(cuda_emit_once(ck));
    return cuda_finish_once(ck);
}

/* The results of part |number| are the only ones meanwhile. */
static amp_status emit_part(CudaKernel *ck, Parts *p, int number) {
    Walk *w = ck->w;
    Sink *all = w->sinks.data, *own = arena_array(w->arena, Sink, w->sinks.len);
    int count = w->sinks.len, kept = 0;
    for (int i = 0; i < count; i++)
        if (p->values[sink_root(p, &all[i])].part == number) own[kept++] = all[i];
    w->sinks.data = own;
    w->sinks.len = kept;
    walk_find_needed(w);
    ck->declared = arena_array(w->arena, bool, w->operands.len + 1);
    emit_open(&ck->e, "if (%s.x == %d)", ck->block, number - 1);
    amp_status status = emit_results(ck);
    emit_close(&ck->e);
    w->sinks.data = all;
    w->sinks.len = count;
    walk_find_needed(w);
    return status;
}

amp_status cuda_emit_scalar(CudaKernel *ck) {
    bool whole = ck->form.plan || ck->w->operands.len <= PART_OPERANDS;
    Parts p = {0};
    int parts = 1;
    if (!whole) {
        p = find_sets(ck->w);
        parts = number_parts(&p);
    }
    if (parts > 1) {
        ck->body->launch.extent[0] = dim_const(parts);
        ck->body->launch.per[0] = 1;
    }
    ck->body->facts.bundles = true;
    ck->body->takes_table = ck->form.role && ck->w->operands.len > CUDA_PART_OPERANDS;
    ck->late_operands = true;
    if (ck->form.plan) return cuda_plan_function(ck, 1);
    AMP_TRY(cuda_open_function(ck, ck->form.threads ? ck->form.threads : 1));
    if (ck->form.role) emit_line(&ck->e, "if (threadIdx.x) return;");
    if (parts == 1) AMP_TRY(emit_results(ck));
    for (int i = 1; i <= parts && parts > 1; i++) AMP_TRY(emit_part(ck, &p, i));
    cuda_close_function(ck);
    return AMP_OK;
}
