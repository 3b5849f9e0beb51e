/* places.c: see places.h. */
#include "ir/places.h"

uint32_t ir_place_of(const Func *f, uint32_t id) {
    const uint32_t place = f->buffers.data[id - 1]->place;
    return place ? place : id;
}

bool ir_is_reshape_alone(const Func *f, const Kernel *k) {
    return k->kind == KERNEL_TILE && k->count == 1 && k->reads.len == 1 && k->writes.len == 1 &&
           ir_op_at(f, k->first)->code == OP_reshape;
}

bool ir_is_still(const Func *f, const Kernel *k) {
    return ir_is_reshape_alone(f, k) && ir_place_of(f, k->writes.data[0]) == ir_place_of(f, k->reads.data[0]);
}

bool ir_is_renamed(const Func *f, const Buffer *b) {
    return b->place && b->first >= 0 && b->first < f->kernels.len && ir_is_still(f, f->kernels.data[b->first]);
}
