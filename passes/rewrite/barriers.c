/* barriers.c: an op that reads through a barrier says itself what it waits for.
 *
 *   %b = barrier(%x, %dy, %h)
 *   %y = relu(%b)                     =>   %y = relu(%x) after (%dy, %h)
 *
 * A barrier is no use of %x: passes that follow see the op that makes it.  Fuse puts %y in a kernel after those that
 * make %dy and %h; from then on the order of the kernels says it.
 */
#include "passes/common/common.h"

static const Op *barrier_of(const Func *f, Val v) {
    const Op *o = ir_def(f, v);
    return o && o->code == OP_barrier ? o : NULL;
}

/* What |v| is without the barriers; the last of these, which come in the order in which they open, or NULL. */
static Val without_barriers(const Func *f, Val v, const Op **last) {
    for (const Op *b = barrier_of(f, v); b; b = barrier_of(f, v)) {
        if (!*last || b->id.id > (*last)->id.id) *last = b;
        v = b->in[0];
    }
    return v;
}

static OpAfter *after_of(Arena *a, const Op *barrier) {
    OpAfter *after = arena_alloc(a, sizeof *after + sizeof(Val) * (size_t)(barrier->n_in - 1));
    after->count = barrier->n_in - 1;
    for (int i = 1; i < barrier->n_in; i++) after->at[i - 1] = barrier->in[i];
    return after;
}

static void take_barriers(Func *f) {
    const Op *ignored = NULL;
    int kept = 0;
    for (int i = 0; i < f->body.len; i++) {
        Op *o = ir_op_at(f, i);
        const Op *last = NULL;
        for (int n = 0; n < o->n_in; n++)
            o->in[n] = without_barriers(f, o->in[n], ir_reads_elements(o, n) ? &last : &ignored);
        o->pred = without_barriers(f, o->pred, &ignored);
        if (o->code == OP_barrier) continue;
        if (last) o->after = after_of(f->module->arena, last);
        f->body.data[kept++] = o->id;
    }
    f->body.len = kept;
    for (int i = 0; i < f->results.len; i++)
        f->results.data[i].value = without_barriers(f, f->results.data[i].value, &ignored);
}

bool pass_barriers(PassContext *c) { return each_func(c, take_barriers); }
