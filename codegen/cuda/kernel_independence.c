/* kernel_independence.c: which kernels may run at the same time. */
#include "codegen/cuda/cuda.h"
#include "ir/places.h"

static bool contains(const Func *f, const uint32_t *ids, int count, uint32_t id) {
    for (int i = 0; i < count; i++)
        if (ir_place_of(f, ids[i]) == ir_place_of(f, id)) return true;
    return false;
}

bool cuda_touches_written(const Func *f, const Kernel *a, const Kernel *b) {
    for (int i = 0; i < a->writes.len; i++) {
        uint32_t id = a->writes.data[i];
        bool flag = f->buffers.data[id - 1]->kind == BUFFER_FLAG;
        if (contains(f, b->reads.data, b->reads.len, id)) return true;
        if (!flag && contains(f, b->writes.data, b->writes.len, id)) return true;
        if (b->pred.id && f->buffers.data[id - 1]->value.id == b->pred.id) return true;
    }
    return false;
}

bool cuda_is_independent(const Func *f, const CudaKernelEntry *batch, const Kernel *k) {
    if (ir_is_still(f, k)) return false; /* it is in no launch, and none goes on beyond it */
    for (int i = 0; i < batch->members.len; i++)
        if (cuda_touches_written(f, batch->members.data[i], k) || cuda_touches_written(f, k, batch->members.data[i]))
            return false;
    return true;
}
