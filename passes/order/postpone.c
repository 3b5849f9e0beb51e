/* postpone.c: kernels that read no temporary, such as a copy of an input or of a weight, run just before the first one
 * that needs them.
 *
 *   k01 { %x.nhwc = reshape(%x) }                   k40 { ... }
 *   k02 .. k40 { ... }                         =>   k41 { %x.nhwc = reshape(%x) }
 *   k41 { %dw = conv_weight(%x.nhwc, %dy) }         k42 { %dw = conv_weight(%x.nhwc, %dy) }
 *
 * Wherever such a kernel runs, no memory becomes free by it; so the later, the less is needed.  No bit depends on the
 * order.
 */
#include "passes/order/kernel_order.h"
#include <string.h>

/* While kernels are visited from the last to the first: by value, the first of the later ones that has it as an
 * operand, be it for its shape alone; by buffer, the first that writes it; -1: none. */
typedef struct Next {
    int *use, *write;
} Next;

/* Whether |k| writes temporaries alone, and reads none: wherever it runs, no memory becomes free. */
static bool can_wait(const Func *f, const Kernel *k) {
    if (k->pred.id || !k->writes.len || k->kind == KERNEL_COLLECTIVE) return false; /* ranks have one order of those */
    for (int i = 0; i < k->reads.len; i++)
        if (f->buffers.data[k->reads.data[i] - 1]->kind == BUFFER_TEMP) return false;
    for (int i = 0; i < k->writes.len; i++)
        if (f->buffers.data[k->writes.data[i] - 1]->kind != BUFFER_TEMP) return false;
    return true;
}

static void sooner(int *kernel, int other) {
    if (other >= 0 && other < *kernel) *kernel = other;
}

/* The first later kernel that needs what |k| makes, or writes what it reads; |none|: there is none. */
static int needed_by(const Func *f, const Next *next, const Kernel *k, int none) {
    int kernel = none;
    for (int i = 0; i < k->count; i++) {
        const Op *o = ir_op_at(f, k->first + i);
        for (int r = 0; r < o->n_out; r++) sooner(&kernel, next->use[o->out[r].id]);
    }
    for (int i = 0; i < k->reads.len; i++) sooner(&kernel, next->write[k->reads.data[i]]);
    return kernel;
}

static void visit(const Func *f, Next *next, int at) {
    const Kernel *k = f->kernels.data[at];
    for (int i = 0; i < k->count; i++) {
        const Op *o = ir_op_at(f, k->first + i);
        for (int n = 0; n < o->n_in; n++) next->use[o->in[n].id] = at;
    }
    for (int i = 0; i < k->writes.len; i++) next->write[k->writes.data[i]] = at;
    if (k->pred.id) next->use[k->pred.id] = at;
}

/* For each kernel the one before which it runs: itself, where it cannot wait. */
static int *find_places(const Func *f) {
    Arena *a = f->module->arena;
    int *place = arena_array(a, int, f->kernels.len + 1);
    Next next = {arena_array(a, int, f->values.len + 1), arena_array(a, int, f->buffers.len + 1)};
    for (int i = 0; i <= f->values.len; i++) next.use[i] = -1;
    for (int i = 0; i <= f->buffers.len; i++) next.write[i] = -1;
    for (int i = f->kernels.len - 1; i >= 0; i--) {
        const Kernel *k = f->kernels.data[i];
        int by = can_wait(f, k) ? needed_by(f, &next, k, f->kernels.len) : i;
        place[i] = by == f->kernels.len ? i : by > i ? place[by] : i;
        visit(f, &next, i);
    }
    return place;
}

static bool postpone(Func *f) {
    Arena *a = f->module->arena;
    const int *place = find_places(f);
    int *first = arena_array(a, int, f->kernels.len + 1), *after = arena_array(a, int, f->kernels.len + 1);
    bool any = false;
    for (int i = f->kernels.len - 1; i >= 0; i--) { /* from 1 on: 0 is none */
        if (place[i] == i) continue;
        after[i] = first[place[i]];
        first[place[i]] = i + 1;
        any |= place[i] > i + 1;
    }
    if (!any) return false;
    KernelList list = kernel_list_open(f);
    KernelOps *ordered = arena_array(a, KernelOps, list.at.len + 1);
    int count = 0;
    for (int i = 0; i < list.at.len; i++) {
        if (place[i] != i) continue;
        for (int w = first[i]; w; w = after[w - 1]) ordered[count++] = list.at.data[w - 1];
        ordered[count++] = list.at.data[i];
    }
    memcpy(list.at.data, ordered, (size_t)count * sizeof *ordered);
    kernel_list_close(&list);
    return true;
}

bool pass_postpone(PassContext *c) { return order_kernels(c, postpone); }
