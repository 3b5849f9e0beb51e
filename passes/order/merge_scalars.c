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
    KernelOrder o = kernel_order_open(f);
    for (int i = o.first, next; i >= 0 && (next = o.next[i]) >= 0;) {
        if (may_merge(&o.list.at.data[i], &o.list.at.data[next])) kernel_order_merge(&o, i, next);
        else i = next;
    }
    return kernel_order_close(&o);
}

bool pass_merge_scalars(PassContext *c) { return order_kernels(c, merge_scalars); }
