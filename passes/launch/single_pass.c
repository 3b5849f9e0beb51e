/* single_pass.c: sums of sums in the launch of the first: a single-pass reduction (threadFenceReduction among NVIDIA's
 * samples; docs/design/cuda.md).
 *
 *   k07 { %1 = reduce_sum(%x; dims = (1)) : f32[N, 64] }   sums of each sample: a block for 32 columns of one
 *   k08 { %2 = reduce_sum(%1; dims = (0)) : f32[64] }      sums over samples, and what follows for each column
 *   =>
 *   launch by_columns { stage { part k07 } stage { part k08 } }
 *
 * Each block is one of the first stage.  It stores its sums and takes a ticket of its columns; the block that takes the
 * last of them makes the later stages of these columns.  It adds all samples in the order in which a launch of its own
 * would add them, so neither bits nor results depend on the order of blocks.
 */
#include "passes/launch/share.h"

#include "ir/places.h"

enum { MOST_PASSES = 4 }; /* one block makes all but the first */

/* Something of the first pass is read, and nothing but rows of the block's own columns. */
static bool reads_own_columns(const Func *f, const Kernel *first, const Kernel *k, const KernelFacts *space) {
    bool reads = false;
    for (int i = 0; i < k->reads.len; i++) {
        const Buffer *b = f->buffers.data[k->reads.data[i] - 1];
        if (!ir_is_among(f, first->writes.data, first->writes.len, k->reads.data[i])) continue;
        if (b->kind == BUFFER_FLAG || share_moves(f, k, b->value)) return false;
        if (!shape_is_matrix(ir_shape(f, b->value), space->rows, space->cols)) return false;
        reads = true;
    }
    return reads;
}

static bool is_next(const Sharing *s, const Launch *l, int next) {
    const Func *f = s->f;
    const Kernel *first = f->kernels.data[l->first], *k = f->kernels.data[next];
    const KernelFacts *a = &s->facts[l->first], *b = &s->facts[next];
    int sizes = b->sizes, operands = b->operands;
    if (l->count == MOST_PASSES || k->kind != KERNEL_COLUMN || k->segment.mul || k->pred.id != first->pred.id)
        return false;
    if (!dim_equal(a->rows, b->rows) || !dim_equal(a->cols, b->cols) || a->vector != b->vector) return false;
    if (dim_varies(a->cols)) return false;  /* there is a ticket for each block of columns */
    for (int i = l->first; i < next; i++) { /* other blocks may still read what it would write */
        const Kernel *before = f->kernels.data[i];
        if (ir_touches(f, k, before, false) || (i > l->first && ir_touches(f, before, k, false))) return false;
        sizes += s->facts[i].sizes;
        operands += s->facts[i].operands;
    }
    return sizes <= LAUNCH_SIZES && operands <= LAUNCH_OPERANDS && reads_own_columns(f, first, k, b);
}

void single_pass_grow(Sharing *s, Launch *l) {
    const Kernel *first = s->f->kernels.data[l->first];
    if (l->count > 1 || first->kind != KERNEL_COLUMN || !first->segment.mul) return;
    for (int k = l->first + 1; k < s->f->kernels.len && is_next(s, l, k); k++) {
        share_add(s->f, l, l->parts.len, PART_BATCH, l->parts.len, k);
        l->by_columns = true;
    }
}

bool pass_single_pass(PassContext *c) { return share_launches(c, single_pass_grow); }
