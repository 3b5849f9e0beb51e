/* places.c: see places.h. */
#include "ir/places.h"

uint32_t ir_place_of(const Func *f, uint32_t id) {
    const uint32_t place = f->buffers.data[id - 1]->place;
    return place ? place : id;
}

bool ir_is_among(const Func *f, const uint32_t *ids, int count, uint32_t id) {
    const uint32_t place = ir_place_of(f, id);
    for (int i = 0; i < count; i++)
        if (ir_place_of(f, ids[i]) == place) return true;
    return false;
}

bool ir_touches(const Func *f, const Kernel *a, const Kernel *b, bool flags) {
    for (int i = 0; i < a->writes.len; i++) {
        const uint32_t id = a->writes.data[i];
        const Buffer *written = f->buffers.data[id - 1];
        if (ir_is_among(f, b->reads.data, b->reads.len, id)) return true;
        if ((flags || written->kind != BUFFER_FLAG) && ir_is_among(f, b->writes.data, b->writes.len, id)) return true;
        if (b->pred.id && written->value.id == b->pred.id) return true;
    }
    return false;
}

bool ir_is_reshape_alone(const Func *f, const Kernel *k) {
    return k->kind == KERNEL_TILE && k->count == 1 && k->reads.len == 1 && k->writes.len == 1 &&
           ir_op_at(f, k->first)->code == OP_reshape;
}

bool ir_is_cut_alone(const Func *f, const Kernel *k) {
    const Opcode code = ir_op_at(f, k->first)->code;
    const bool joins = code == OP_concat && k->count == 1;
    for (int i = 0; i < k->count; i++)
        if (!joins && ir_op_at(f, k->first + i)->code != OP_slice) return false;
    return k->kind == KERNEL_TILE && k->reads.len && k->writes.len == k->count;
}

bool ir_is_still(const Func *f, const Kernel *k) {
    if (!ir_is_reshape_alone(f, k) && !ir_is_cut_alone(f, k)) return false;
    const uint32_t place = ir_place_of(f, k->reads.data[0]);
    for (int i = 1; i < k->reads.len; i++)
        if (ir_place_of(f, k->reads.data[i]) != place) return false;
    for (int i = 0; i < k->writes.len; i++)
        if (ir_place_of(f, k->writes.data[i]) != place) return false;
    return true;
}

bool ir_is_renamed(const Func *f, const Buffer *b) {
    if (b->place && b->is_part) return true;
    return b->place && b->first >= 0 && b->first < f->kernels.len && ir_is_still(f, f->kernels.data[b->first]);
}
