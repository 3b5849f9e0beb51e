/* chain.c: products of equal code in one launch, if each adds to the result of the one before it:
 *
 *   k07 { %1 = contract(%dq, %wq; tb = true); %2 = add(%1, %r) }      a block makes its tile of %2,
 *   k08 { %3 = contract(%dk, %wk; tb = true); %4 = add(%3, %2) }      then of %4, then of %6
 *   k09 { %5 = contract(%dv, %wv; tb = true); %6 = add(%5, %4) }
 *
 * The gradients that meet in the input of attention, or of a cell that has several weights.  A block goes through the
 * members one after another.  Of what another member writes it touches the elements of its own tile alone, so that a
 * barrier of the block between two members is enough, and each member makes the bits that it makes in a launch of its
 * own.
 */
#include "passes/launch/share.h"

#include "ir/operands.h"
#include "ir/places.h"

/* Where a buffer's elements are: buffers of one place have them at the same addresses. */
static bool has_same_elements(const Func *f, const Buffer *a, const Buffer *b) {
    return a->storage == b->storage && a->layout == b->layout && a->pitch == b->pitch &&
           shape_same_matrix(ir_shape(f, a->value), ir_shape(f, b->value));
}

/* Whether a block of |k| reads and writes of |b| the elements of its tile alone. */
static bool is_own(const Func *f, const Kernel *k, const Buffer *b) {
    if (share_moves(f, k, b->value)) return false;
    for (int i = 0; i < k->count; i++) /* it has one product */
        if (ir_is_product(ir_op_at(f, k->first + i)))
            return shape_same_matrix(ir_shape(f, b->value), ir_shape(f, ir_op_at(f, k->first + i)->out[0]));
    return false;
}

/* Of two kernels that touch buffers of one place, one of them by a write. */
static bool may_meet(const Func *f, const Kernel *first, uint32_t x, const Kernel *second, uint32_t y) {
    const Buffer *a = f->buffers.data[x - 1], *b = f->buffers.data[y - 1];
    if (ir_place_of(f, x) != ir_place_of(f, y) || a->kind == BUFFER_FLAG) return true;
    return has_same_elements(f, a, b) && is_own(f, first, a) && is_own(f, second, b);
}

static bool all_may_meet(const Func *f, const Kernel *writer, const Kernel *other) {
    for (int i = 0; i < writer->writes.len; i++) {
        for (int j = 0; j < other->reads.len; j++)
            if (!may_meet(f, writer, writer->writes.data[i], other, other->reads.data[j])) return false;
        for (int j = 0; j < other->writes.len; j++)
            if (!may_meet(f, writer, writer->writes.data[i], other, other->writes.data[j])) return false;
    }
    return true;
}

/* Whether |next| may follow the kernels of |l| in each of its blocks, and reads what one of them writes. */
static bool may_follow(const Func *f, const Launch *l, const Kernel *next) {
    bool reads = false;
    if (next->kind != KERNEL_PRODUCT || next->pred.id) return false;
    for (int i = l->first; i < l->first + l->count; i++) {
        const Kernel *k = f->kernels.data[i];
        if (k->pred.id || !all_may_meet(f, k, next) || !all_may_meet(f, next, k)) return false;
        reads |= ir_touches(f, k, next, false);
    }
    return reads;
}

void chain_grow(Sharing *s, Launch *l) {
    const Func *f = s->f;
    if (l->count > 1 || f->kernels.data[l->first]->kind != KERNEL_PRODUCT) return;
    for (int k = l->first + 1; k < f->kernels.len; k++) {
        if (!may_follow(f, l, f->kernels.data[k]) || !share_is_same(&s->facts[l->first], &s->facts[k])) return;
        share_add(f, l, 0, PART_CHAIN, 0, k);
    }
}

bool pass_chain(PassContext *c) { return share_launches(c, chain_grow); }
