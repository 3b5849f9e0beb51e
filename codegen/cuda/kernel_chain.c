/* kernel_chain.c: products of equal text, each of which adds to what the one before it has made, in one launch:
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
#include "codegen/cuda/cuda.h"

/* Where a buffer's elements are: buffers of one place have them at the same addresses. */
static bool has_same_elements(const Func *f, const Buffer *a, const Buffer *b) {
    Dim rows[2], cols[2];
    if (!shape_matrix(ir_shape(f, a->value), &rows[0], &cols[0])) return false;
    if (!shape_matrix(ir_shape(f, b->value), &rows[1], &cols[1])) return false;
    return a->storage == b->storage && a->layout == b->layout && a->pitch == b->pitch && dim_equal(rows[0], rows[1]) &&
           dim_equal(cols[0], cols[1]);
}

/* Whether the elements of |b| that a block of |k| reads and writes are those of its tile. */
static bool is_own(const Func *f, const Kernel *k, const Buffer *b) {
    Dim rows[2], cols[2];
    bool found = false;
    if (!shape_matrix(ir_shape(f, b->value), &rows[0], &cols[0])) return false;
    for (int i = 0; i < k->count; i++) {
        const Op *o = ir_op_at(f, k->first + i);
        for (int n = 0; n < o->n_in; n++)
            if (ir_reads_memory(f, o, n) && ir_memory_source(f, o->in[n]).id == b->value.id) return false;
        if (!ir_is_product(o)) continue;
        if (found || !shape_matrix(ir_shape(f, o->out[0]), &rows[1], &cols[1])) return false;
        found = true;
    }
    return found && dim_equal(rows[0], rows[1]) && dim_equal(cols[0], cols[1]);
}

/* Of two kernels that touch buffers of one place, one of them by a write. */
static bool may_meet(const Func *f, const Kernel *first, uint32_t x, const Kernel *second, uint32_t y) {
    const Buffer *a = f->buffers.data[x - 1], *b = f->buffers.data[y - 1];
    const uint32_t place_a = a->place ? a->place : x, place_b = b->place ? b->place : y;
    if (place_a != place_b || a->kind == BUFFER_FLAG) return true;
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

bool cuda_is_next_in_chain(const Func *f, const Kernel *const *members, int count, const Kernel *next) {
    bool reads = false;
    if (next->kind != KERNEL_PRODUCT || next->pred.id) return false;
    for (int i = 0; i < count; i++) {
        if (members[i]->pred.id || !all_may_meet(f, members[i], next) || !all_may_meet(f, next, members[i]))
            return false;
        reads |= cuda_touches_written(f, members[i], next);
    }
    return reads;
}
