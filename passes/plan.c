/* plan: when each buffer is live.
 * needs: layout.  breaks: nothing.
 *
 *   buffer b5 temp %3 panels f32   =>   buffer b5 temp %3 panels f32 live 2..7
 *
 * Sizes depend on the capacity N, which a session chooses: it solves the offsets when it is created, exactly, from these intervals.
 */
#include "passes/passes.h"

static void touch(Buffer *b, int kernel) {
    if (b->first < 0) b->first = kernel;
    b->last = kernel;
}

/* Buffers by value: at[value id] is the first one, next[buffer] the following one; 1-based, 0 ends. */
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
    /* what a user reads after the call lives to its end */
    for (int i = 0; i < f->results.len; i++) touch_value(f, &by, f->results.data[i].value, f->kernels.len - 1);
}

bool pass_plan(PassContext *c) {
    for (int i = 0; i < c->m->funcs.len; i++) find_intervals(c->m->funcs.data[i]);
    c->m->stage = STAGE_PLAN;
    return true;
}
