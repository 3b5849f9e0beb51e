/* gather.c: kernels that may share a launch run one after the other.
 *
 *   k40 { update of fc1.weight }                    k40 { update of fc1.weight }
 *   k41 { update of fc1.bias }                 =>   k41 { update of fc2.weight }
 *   k42 { update of fc2.weight }                    k42 { update of fc1.bias }
 *
 * On a target that launches equal kernels as one, those that do the same with values whose shapes do not depend on N
 * (updates of parameters, norms of gradients) move up to the last one before them that does, and scalar kernels to the
 * last one with their predicate (merge_scalars.c).  Nothing between needs them, nor they it.  Whether they are equal in
 * all, code generation finds out; here it only matters that most are.
 */
#include "passes/kernels/kernel_list.h"
#include "passes/kernels/layout.h"

enum { FARTHEST = 1024 }; /* kernels that one is compared with on its way */

static bool has_fixed_shape(const Func *f, const Kernel *k) {
    for (int i = 0; i < k->count; i++) {
        const Op *o = ir_op_at(f, k->first + i);
        for (int r = 0; r < o->n_out; r++)
            for (int d = 0; d < ir_shape(f, o->out[r])->rank; d++)
                if (ir_shape(f, o->out[r])->d[d].n) return false;
    }
    return k->kind == KERNEL_TILE || k->kind == KERNEL_ROW || k->kind == KERNEL_SCALAR;
}

static void put_type(Text *t, const Func *f, Val v, bool shape) {
    text_printf(t, " %d", ir_dtype(f, v));
    for (int d = 0; shape && d < ir_shape(f, v)->rank; d++)
        text_printf(t, ",%lld", (long long)ir_shape(f, v)->d[d].mul);
}

/* What a kernel does, but for which values: ops and types, and the space of rows, which is part of their code. */
static const char *signature_of(const Func *f, const Kernel *k) {
    Text t;
    text_init(&t, f->module->arena);
    if (k->kind == KERNEL_SCALAR) return arena_printf(f->module->arena, "scalar %u", k->pred.id);
    text_printf(&t, "%d %d %d", k->kind, k->reads.len, k->writes.len);
    for (int i = 0; i < k->count; i++) {
        const Op *o = ir_op_at(f, k->first + i);
        text_printf(&t, " %d", o->code);
        for (int n = 0; n < o->n_in; n++) put_type(&t, f, o->in[n], k->kind == KERNEL_ROW);
        for (int r = 0; r < o->n_out; r++) put_type(&t, f, o->out[r], k->kind == KERNEL_ROW);
    }
    for (int i = 0; i < k->reads.len; i++) text_printf(&t, " %d", f->buffers.data[k->reads.data[i] - 1]->storage);
    for (int i = 0; i < k->writes.len; i++) text_printf(&t, " %d", f->buffers.data[k->writes.data[i] - 1]->storage);
    return text_str(&t);
}

/* Whether kernel |k| may run just after kernel |from|: it and those that follow do not need each other.  |next|: by
 * kernel, the one after it in the new order; -1: none. */
static bool may_move(const Func *f, const int *next, int from, const Kernel *k) {
    int steps = 0;
    for (int i = next[from]; i >= 0; i = next[i]) {
        const Kernel *between = f->kernels.data[i];
        if (++steps > FARTHEST || kernel_touches(f, k, between) || kernel_touches(f, between, k)) return false;
    }
    return true;
}

bool gather_kernels(Func *f) {
    Arena *a = f->module->arena;
    int *next = arena_array(a, int, f->kernels.len + 1);
    Table last = {0}; /* by signature: the last kernel that has it, from 1 */
    int end = -1;
    bool any = false;
    if (!target_of(f->module)->batches_updates) return false;
    for (int i = 0; i < f->kernels.len; i++) {
        const Kernel *k = f->kernels.data[i];
        const char *signature = has_fixed_shape(f, k) ? signature_of(f, k) : NULL;
        const int same = signature ? (int)(uintptr_t)table_get(&last, signature) - 1 : -1;
        const bool moves = same >= 0 && same != end && may_move(f, next, same, k);
        const int before = moves ? same : end;
        next[i] = before >= 0 ? next[before] : -1;
        if (before >= 0) next[before] = i;
        if (!moves) end = i;
        if (signature) table_set(a, &last, signature, (void *)(uintptr_t)(i + 1));
        any |= moves;
    }
    if (!any) return false;
    KernelList list = kernel_list_open(f);
    KernelOps *ordered = arena_array(a, KernelOps, list.at.len + 1);
    for (int i = 0, from = 0; i < list.at.len; i++, from = next[from]) ordered[i] = list.at.data[from];
    memcpy(list.at.data, ordered, (size_t)list.at.len * sizeof *ordered);
    kernel_list_close(&list);
    return true;
}
