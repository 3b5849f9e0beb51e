/* merge_scalars.c: scalar kernels that follow one another become one.
 *
 *   k10 { %a = increment(%bn1.num_batches_tracked) }        k10 { %a = increment(%bn1.num_batches_tracked)
 *   k11 { %b = increment(%bn2.num_batches_tracked) }   =>         %b = increment(%bn2.num_batches_tracked) }
 *
 * On a target where a launch costs more than what such a kernel does: the counters of all batch norms.
 */
#include "passes/order/kernel_order.h"

static bool may_merge(const KernelOps *a, const KernelOps *b) {
    return a->kernel->kind == KERNEL_SCALAR && b->kernel->kind == KERNEL_SCALAR &&
           a->kernel->pred.id == b->kernel->pred.id && a->ops.len + b->ops.len <= KERNEL_MAX_OPS;
}

static bool merge_scalars(Func *f) {
    Arena *a = f->module->arena;
    int kept = 0, count = 0; /* of kernels in the last one */
    KernelList l = kernel_list_open(f);
    const int before = l.at.len;
    for (int i = 0; i < before; i++) {
        const KernelOps *next = &l.at.data[i];
        KernelOps *last = kept ? &l.at.data[kept - 1] : NULL;
        if (!last || !may_merge(last, next)) {
            l.at.data[kept++] = *next;
            count = 1;
            continue;
        }
        for (int j = 0; j < next->ops.len; j++) vec_push(a, &last->ops, next->ops.data[j]);
        if (count++ == 1)
            last->kernel->title =
                arena_printf(a, "%s, and more", last->kernel->title ? last->kernel->title : last->kernel->name);
    }
    if (kept == before) return false;
    l.at.len = kept;
    kernel_list_close(&l);
    return true;
}

bool pass_merge_scalars(PassContext *c) { return order_kernels(c, merge_scalars); }
