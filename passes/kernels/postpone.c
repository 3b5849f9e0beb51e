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
#include <string.h>

#include "passes/kernels/kernel_list.h"
#include "passes/kernels/layout.h"

/* By buffer, while kernels are visited from the last to the first: which of the later ones is the first to touch it,
 * and the first to write it; -1: none. */
typedef struct Next {
    int *touch, *write;
} Next;

/* Whether |k| writes temporaries alone, and reads none: wherever it runs, no memory becomes free. */
static bool can_wait(const Func *f, const Kernel *k) {
    if (k->pred.id || !k->writes.len) return false;
    for (int i = 0; i < k->reads.len; i++)
        if (f->buffers.data[k->reads.data[i] - 1]->kind == BUFFER_TEMP) return false;
    for (int i = 0; i < k->writes.len; i++)
        if (f->buffers.data[k->writes.data[i] - 1]->kind != BUFFER_TEMP) return false;
    return true;
}

static void sooner(int *kernel, int other) {
    if (other >= 0 && other < *kernel) *kernel = other;
}

/* The first later kernel that needs what |k| writes, or writes what it reads; |none|: there is none. */
static int needed_by(const Next *next, const Kernel *k, int none) {
    int kernel = none;
    for (int i = 0; i < k->writes.len; i++) sooner(&kernel, next->touch[k->writes.data[i]]);
    for (int i = 0; i < k->reads.len; i++) sooner(&kernel, next->write[k->reads.data[i]]);
    return kernel;
}

static void visit(const Func *f, Next *next, const int *flag_of, int at) {
    const Kernel *k = f->kernels.data[at];
    for (int i = 0; i < k->reads.len; i++) next->touch[k->reads.data[i]] = at;
    for (int i = 0; i < k->writes.len; i++) next->touch[k->writes.data[i]] = next->write[k->writes.data[i]] = at;
    if (k->pred.id) next->touch[flag_of[k->pred.id]] = at;
}

/* For each kernel the one before which it runs: itself, where it cannot wait. */
static int *find_places(const Func *f) {
    Arena *a = f->module->arena;
    int *place = arena_array(a, int, f->kernels.len + 1), *flag_of = arena_array(a, int, f->values.len + 1);
    Next next = {arena_array(a, int, f->buffers.len + 1), arena_array(a, int, f->buffers.len + 1)};
    for (int i = 0; i < f->buffers.len; i++) flag_of[f->buffers.data[i]->value.id] = i + 1;
    for (int i = 0; i <= f->buffers.len; i++) next.touch[i] = next.write[i] = -1;
    for (int i = f->kernels.len - 1; i >= 0; i--) {
        const Kernel *k = f->kernels.data[i];
        int by = can_wait(f, k) ? needed_by(&next, k, f->kernels.len) : i;
        place[i] = by == f->kernels.len ? i : by > i ? place[by] : i;
        visit(f, &next, flag_of, i);
    }
    return place;
}

bool postpone_kernels(Func *f) {
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
