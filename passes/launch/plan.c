/* plan.c: when each buffer is live, and which buffers take the memory of another.
 *
 *   buffer b5 temp %3 f32 panels   =>   buffer b5 temp %3 f32 panels live 2 to 7
 *   buffer b9 temp %6 f16 rows          buffer b9 temp %6 f16 rows   live 3 to 5 in b4
 *
 * A reshape that is a kernel by itself has the memory of its operand, and its kernel nothing to do.
 *
 * Sizes depend on the capacity N, which a session chooses, so the session computes the offsets from these intervals
 * when it is created.
 */
#include "passes/launch/launch.h"

#include "ir/places.h"

/* ---- when each buffer is live ----------------------------------------------------------------------------- */

static void touch(Buffer *b, int kernel) {
    if (b->first < 0) b->first = kernel;
    b->last = kernel;
}

/* Buffers by value: at[value id] is the first, next[buffer] the following one; 1-based, 0 ends the list. */
typedef struct BuffersByValue {
    uint32_t *at, *next;
} BuffersByValue;

static BuffersByValue index_buffers(const Func *f) {
    Arena *a = f->module->arena;
    BuffersByValue by = {arena_array(a, uint32_t, f->values.len + 1), arena_array(a, uint32_t, f->buffers.len + 1)};
    for (int b = f->buffers.len; b > 0; b--) {
        uint32_t value = f->buffers.data[b - 1]->value.id;
        by.next[b] = by.at[value];
        by.at[value] = (uint32_t)b;
    }
    return by;
}

static void touch_value(const Func *f, const BuffersByValue *by, Val v, int kernel) {
    for (uint32_t b = by->at[v.id]; v.id && b; b = by->next[b]) touch(f->buffers.data[b - 1], kernel);
}

static void find_intervals(Func *f) {
    BuffersByValue by = index_buffers(f);
    for (int i = 0; i < f->buffers.len; i++) f->buffers.data[i]->first = f->buffers.data[i]->last = -1;
    for (int i = 0; i < f->kernels.len; i++) {
        const Kernel *k = f->kernels.data[i];
        for (int j = 0; j < k->reads.len; j++) touch(f->buffers.data[k->reads.data[j] - 1], i);
        for (int j = 0; j < k->writes.len; j++) touch(f->buffers.data[k->writes.data[j] - 1], i);
        touch_value(f, &by, k->pred, i); /* read before the kernel starts */
    }
    /* a user reads results after the call, so they are live to its end */
    for (int i = 0; i < f->results.len; i++) touch_value(f, &by, f->results.data[i].value, f->kernels.len - 1);
}

/* ---- a row or tile kernel may write a result over an operand that no later kernel reads ------------------- */

static bool same_matrix(const Func *f, Val a, Val b) { return shape_same_matrix(ir_shape(f, a), ir_shape(f, b)); }

/* A value of the kernel's whole space, if every thread reads and writes only its own elements of it.  NO_VAL: there is
 * none, or some op reads other elements. */
static Val whole_value(const Func *f, const Kernel *k) {
    Val whole = NO_VAL;
    Dim rows, cols;
    if (k->kind != KERNEL_ROW && k->kind != KERNEL_TILE) return NO_VAL;
    for (int i = 0; i < k->count; i++) {
        const Op *o = ir_op_at(f, k->first + i);
        bool reduces = k->kind == KERNEL_ROW && ir_op_info[o->code].flags & REDUCE;
        for (int n = 0; n < o->n_in; n++)
            if (ir_reads_memory(f, o, n)) return NO_VAL;
        if (reduces) whole = o->in[0];
        else if (k->kind == KERNEL_TILE && ir_op_info[o->code].flags & ELEMENTWISE && !whole.id) whole = o->out[0];
    }
    bool one = !whole.id || !shape_matrix(ir_shape(f, whole), &rows, &cols) || (dim_is_one(rows) && dim_is_one(cols));
    return one ? NO_VAL : whole;
}

typedef struct Places { /* by buffer, from 1 */
    Func *f;
    bool *taken; /* some other buffer has been written over it */
    bool *named; /* it is a reshape's, under several names: its memory is its own */
} Places;

/* |kernel| is the last that reads |from|, in the form in which it writes |by|. */
static bool may_be_overwritten(const Places *p, uint32_t from, const Buffer *by, int kernel) {
    const Buffer *b = p->f->buffers.data[from - 1], *first = p->f->buffers.data[ir_place_of(p->f, from) - 1];
    return b->kind == BUFFER_TEMP && b->first < kernel && b->last == kernel && b->storage == by->storage &&
           b->layout == by->layout && b->pitch == by->pitch && same_matrix(p->f, b->value, by->value) &&
           same_matrix(p->f, first->value, by->value);
}

static void find_place(Places *p, const Kernel *k, int kernel, Buffer *b) {
    for (int i = 0; i < k->reads.len && !b->place; i++) {
        const uint32_t from = k->reads.data[i], place = ir_place_of(p->f, from), owner = p->named[place] ? place : from;
        if (p->taken[owner] || !may_be_overwritten(p, from, b, kernel)) continue;
        p->taken[owner] = true;
        b->place = place;
    }
}

static void write_over_operands(Places *p) {
    for (int i = 0; i < p->f->kernels.len; i++) {
        const Kernel *k = p->f->kernels.data[i];
        Val whole = whole_value(p->f, k);
        for (int j = 0; whole.id && j < k->writes.len; j++) {
            Buffer *b = p->f->buffers.data[k->writes.data[j] - 1];
            if (b->kind != BUFFER_TEMP || b->first != i || p->named[k->writes.data[j]]) continue;
            if (same_matrix(p->f, b->value, whole)) find_place(p, k, i, b);
        }
    }
}

/* ---- a reshape alone leaves its elements where they are ---------------------------------------------------- */

static bool is_dense_temp(const Buffer *b) { return b->kind == BUFFER_TEMP && b->layout == LAYOUT_ROWS && !b->pitch; }

static void rename_rows(Places *p, const Kernel *k, int kernel) {
    const Func *f = p->f;
    if (!ir_is_reshape_alone(f, k)) return;
    const uint32_t from = k->reads.data[0], to = k->writes.data[0];
    const Buffer *operand = f->buffers.data[from - 1];
    Buffer *b = f->buffers.data[to - 1];
    if (!is_dense_temp(operand) || !is_dense_temp(b) || b->storage != operand->storage) return;
    if (b->first != kernel || operand->first >= kernel) return;
    b->place = ir_place_of(f, from);
    p->named[b->place] = true;
}

/* All names of one memory live as long as any of them. */
static void join_intervals(Func *f) {
    for (int pass = 0; pass < 2; pass++) /* to the first of them, and from there to all */
        for (int i = 0; i < f->buffers.len; i++) {
            Buffer *b = f->buffers.data[i], *first = f->buffers.data[ir_place_of(f, (uint32_t)i + 1) - 1];
            Buffer *to = pass ? b : first, *from = pass ? first : b;
            if (to->last < from->last) to->last = from->last;
        }
}

static void find_places(Func *f) {
    Arena *a = f->module->arena;
    const int count = f->buffers.len + 1;
    Places p = {f, arena_array(a, bool, count), arena_array(a, bool, count)};
    for (int i = 0; i < f->buffers.len; i++) f->buffers.data[i]->place = 0;
    for (int i = 0; i < f->kernels.len; i++) rename_rows(&p, f->kernels.data[i], i);
    share_rows(f, p.named);
    join_intervals(f);
    if (!f->joined) write_over_operands(&p);
}

void plan_buffers(Func *f) {
    find_intervals(f);
    if (target_of(f->module)->reuses_operands) find_places(f);
}

bool pass_plan(PassContext *c) {
    for (int i = 0; i < c->m->funcs.len; i++) plan_buffers(c->m->funcs.data[i]);
    return true;
}
