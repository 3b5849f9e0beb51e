/* plan: when each buffer is live, and which buffers take the memory of another.
 * needs: layout.  breaks: nothing.
 *
 *   buffer b5 temp %3 f32 panels   =>   buffer b5 temp %3 f32 panels live 2 to 7
 *   buffer b9 temp %6 f16 rows          buffer b9 temp %6 f16 rows   live 3 to 5 in b4
 *
 * Sizes depend on the capacity N, which a session chooses, so the session computes the offsets from these intervals
 * when it is created.
 */
#include "passes/passes.h"
#include "targets/target.h"

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

/* ---- reuse: a row or tile kernel may write a result over an operand that no later kernel reads ------------------ */

static bool same_matrix(const Func *f, Val a, Val b) { return shape_same_matrix(ir_shape(f, a), ir_shape(f, b)); }

/* A value of the kernel's whole space, of which every thread reads and writes only its own elements.  NO_VAL: there
 * is none, or some op reads other elements. */
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

static bool may_be_overwritten(const Func *f, const Buffer *from, const Buffer *by, int kernel) {
    return from->kind == BUFFER_TEMP && from->first < kernel && from->last == kernel && from->storage == by->storage &&
           from->layout == by->layout && same_matrix(f, from->value, by->value);
}

static void find_place(const Func *f, const Kernel *k, int kernel, Buffer *b, bool *taken) {
    for (int i = 0; i < k->reads.len && !b->place; i++) {
        uint32_t from = k->reads.data[i];
        const Buffer *operand = f->buffers.data[from - 1];
        if (taken[from] || !may_be_overwritten(f, operand, b, kernel)) continue;
        taken[from] = true;
        b->place = operand->place ? operand->place : from;
    }
}

static void find_places(Func *f) {
    bool *taken = arena_array(f->module->arena, bool, f->buffers.len + 1);
    for (int i = 0; i < f->buffers.len; i++) f->buffers.data[i]->place = 0;
    for (int i = 0; i < f->kernels.len; i++) {
        const Kernel *k = f->kernels.data[i];
        Val whole = whole_value(f, k);
        for (int j = 0; whole.id && j < k->writes.len; j++) {
            Buffer *b = f->buffers.data[k->writes.data[j] - 1];
            if (b->kind == BUFFER_TEMP && b->first == i && same_matrix(f, b->value, whole))
                find_place(f, k, i, b, taken);
        }
    }
}

bool pass_plan(PassContext *c) {
    for (int i = 0; i < c->m->funcs.len; i++) {
        find_intervals(c->m->funcs.data[i]);
        if (target_of(c->m)->reuses_operands) find_places(c->m->funcs.data[i]);
    }
    return true;
}
