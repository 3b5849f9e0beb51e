/* pitch.c: rows that are longer in memory than they have columns, so that each begins at a multiple of 16 bytes.
 *
 *   buffer b5 temp %logits f16 rows   =>   buffer b5 temp %logits f16 rows pitch 50264
 *
 * The kernel that makes such a value writes zeros past its columns; so whoever reads 16 bytes at once reads nothing
 * else there.  Short rows stay dense: they would grow by a large part.
 */
#include "passes/kernels/layout.h"

static int64_t pitch_of(const Func *f, Val v) {
    const int64_t unit = target_of(f->module)->pitch_unit;
    Dim rows, cols;
    if (!shape_matrix(ir_shape(f, v), &rows, &cols) || dim_is_one(rows) || cols.n || cols.mul < LONG_ROW) return 0;
    return cols.mul % unit ? (cols.mul + unit - 1) / unit * unit : 0;
}

/* ---- values that must be dense ----------------------------------------------------------------------------------- */

/* Elements are found by their number: a space that is seen as another matrix (codegen/walk.h), and sums of parts, of
 * which a thread makes one element. */
static bool counts_elements(const Func *f, const Kernel *k) {
    for (int i = 0; i < k->count && k->kind == KERNEL_TILE; i++) {
        const Op *o = ir_op_at(f, k->first + i);
        if ((o->code == OP_reshape && !ir_is_view(f, o)) || o->code == OP_sum_parts) return true;
    }
    return false;
}

static bool is_batched(const Func *f, const Kernel *k) {
    for (int i = 0; i < k->count; i++)
        if (ir_op_at(f, k->first + i)->code == OP_batch_contract) return true;
    return false;
}

/* Whether the kernel writes what is past the columns. */
static bool fills_rows(const Func *f, const Kernel *k) {
    if (k->kind == KERNEL_PRODUCT) return !is_batched(f, k);
    return k->kind == KERNEL_ROW || (k->kind == KERNEL_TILE && !counts_elements(f, k));
}

static bool reads_pitch(const Func *f, const Kernel *k, const Op *o, int n) {
    if (k->kind == KERNEL_SCALAR || k->kind == KERNEL_ATTENTION || counts_elements(f, k)) return false;
    if (is_batched(f, k)) return false;                                  /* at strides of dense matrices */
    return !((o->code == OP_gather || o->code == OP_scatter) && n == 1); /* ids, by their number */
}

/* By value id. */
static bool *find_dense(const Func *f) {
    bool *dense = arena_array(f->module->arena, bool, f->values.len + 1);
    const int *maker = kernel_makers(f);
    for (int i = 0; i < f->kernels.len; i++) {
        const Kernel *k = f->kernels.data[i];
        const bool fills = fills_rows(f, k);
        for (int j = 0; j < k->count; j++) {
            const Op *o = ir_op_at(f, k->first + j);
            for (int r = 0; r < o->n_out && !fills; r++) dense[o->out[r].id] = true;
            for (int n = 0; n < o->n_in; n++) {
                Val v = ir_is_product(o) ? product_source(f, o->in[n], maker, i) : ir_memory_source(f, o->in[n]);
                if (!reads_pitch(f, k, o, n)) dense[v.id] = dense[o->in[n].id] = true;
            }
        }
    }
    return dense;
}

void choose_pitches(Func *f) {
    if (!target_of(f->module)->pitch_unit) return;
    const bool *dense = find_dense(f);
    for (int i = 0; i < f->buffers.len; i++) {
        Buffer *b = f->buffers.data[i];
        if (b->kind == BUFFER_TEMP && b->layout == LAYOUT_ROWS && !dense[b->value.id]) b->pitch = pitch_of(f, b->value);
    }
}
