/* pitch.c: rows that are longer in memory than they have columns, so that each begins at a multiple of 16 bytes; and
 * pixels of few channels, of 8.
 *
 *   buffer b5 temp %logits f16 rows   =>   buffer b5 temp %logits f16 rows pitch 50264
 *   buffer b7 temp %x.nhwc f16 rows   =>   buffer b7 temp %x.nhwc f16 rows pitch 4
 *
 * The kernel that makes such a value writes zeros past its columns; so whoever reads 16 bytes at once reads nothing
 * else there.  Short rows stay dense, for they grow by a large part; but where the precision block says `pad = true`,
 * those that tensor cores read do not (target_pitch).
 */
#include "passes/layout/layout.h"

static int64_t pitch_of(const Func *f, Val v, RowReader by) {
    Dim rows, cols;
    if (!shape_matrix(ir_shape(f, v), &rows, &cols) || dim_is_one(rows) || dim_varies(cols)) return 0;
    return target_pitch(target_of(f->module), f->module, cols.mul, by);
}

/* ---- what values are used for ------------------------------------------------------------------------------------ */

/* What finds the elements of its operand by their number. */
static bool reads_by_number(const Func *f, const Op *o) {
    return (o->code == OP_reshape && !ir_is_view(f, o)) || o->code == OP_sum_parts;
}

/* So may whole tile kernels find all elements: a space that is seen as another matrix (codegen/walk.h), and sums of
 * parts, where a thread makes one element. */
static bool counts_elements(const Func *f, const Kernel *k) {
    for (int i = 0; i < k->count && k->kind == KERNEL_TILE; i++)
        if (reads_by_number(f, ir_op_at(f, k->first + i))) return true;
    return false;
}

static bool is_batched(const Func *f, const Kernel *k) {
    for (int i = 0; i < k->count; i++)
        if (ir_op_at(f, k->first + i)->code == OP_batch_contract) return true;
    return false;
}

/* Whether |v| has the elements that row kernel |k| goes over, and not one for each of its rows. */
static bool is_along_rows(const Func *f, const Kernel *k, Val v) {
    for (int i = 0; i < k->count; i++) {
        const Op *o = ir_op_at(f, k->first + i);
        if (!(ir_op_info[o->code].flags & REDUCE) || o->code == OP_reduce_or) continue;
        return shape_same_matrix(ir_shape(f, v), ir_shape(f, o->in[0]));
    }
    return false;
}

/* Whether the kernel writes what is past the columns of |v|. */
static bool fills_rows(const Func *f, const Kernel *k, Val v) {
    const Shape *s = ir_shape(f, v);
    const bool is_long = s->rank && s->d[s->rank - 1].mul >= LONG_ROW;
    if (k->kind == KERNEL_PRODUCT) return !is_batched(f, k);
    if (k->kind == KERNEL_ROW) return (is_long || f->module->pad) && is_along_rows(f, k, v);
    return k->kind == KERNEL_TILE && !counts_elements(f, k);
}

/* Whether rows of what it reads may be at any distance. */
static bool reads_by_rows(const Func *f, const Kernel *k, const Op *o, int n) {
    if (k->kind == KERNEL_SCALAR || k->kind == KERNEL_ATTENTION || counts_elements(f, k)) return false;
    if (reads_by_number(f, o)) return false;
    if (is_batched(f, k)) return false;                                  /* at strides of dense matrices */
    return !((o->code == OP_gather || o->code == OP_scatter) && n == 1); /* ids, by their number */
}

static bool reads_pitch(const Func *f, const Kernel *k, const Op *o, int n) {
    if (o->code == OP_conv_data && n == 0 && ir_attr(o, "tb")->b) return false; /* its weights' taps have no gaps */
    return reads_by_rows(f, k, o, n);
}

static bool writes_by_rows(const Func *f, const Kernel *k) {
    if (k->kind == KERNEL_PRODUCT) return !is_batched(f, k);
    return k->kind == KERNEL_ROW || k->kind == KERNEL_COLUMN || (k->kind == KERNEL_TILE && !counts_elements(f, k));
}

bool *values_at_any_pitch(const Func *f) {
    const int *maker = kernel_makers(f);
    bool *any = arena_array(f->module->arena, bool, f->values.len + 1);
    for (int i = 0; i < f->body.len; i++)
        for (int r = 0; r < ir_op_at(f, i)->n_out; r++) any[ir_op_at(f, i)->out[r].id] = true;
    for (int i = 0; i < f->kernels.len; i++) {
        const Kernel *k = f->kernels.data[i];
        for (int j = 0; j < k->count; j++) {
            const Op *o = ir_op_at(f, k->first + j);
            for (int r = 0; r < o->n_out && !writes_by_rows(f, k); r++) any[o->out[r].id] = false;
            for (int n = 0; n < o->n_in; n++) {
                const Val v = ir_is_product(o) ? product_source(f, o->in[n], maker, i) : ir_memory_source(f, o->in[n]);
                if (!reads_by_rows(f, k, o, n)) any[v.id] = any[o->in[n].id] = false;
            }
        }
        any[k->pred.id] = false;
    }
    for (int i = 0; i < f->results.len; i++) any[f->results.data[i].value.id] = false;
    return any;
}

typedef struct Uses { /* by value id */
    bool *dense;      /* something needs it so */
    RowReader *by;    /* a convolution that reads windows of it, else a product of tensor cores */
} Uses;

static void mark_product(const Func *f, const Op *o, int n, RowReader *by) {
    if (n == 0 && ir_is_convolution(o)) *by = READ_AS_PIXELS;
    else if (*by == READ_BY_ANY && ir_dtype(f, o->in[n]) != AMP_DT_F32) *by = READ_BY_TENSOR_CORES;
}

static void mark_uses(const Func *f, int kernel, const int *maker, Uses *uses) {
    const Kernel *k = f->kernels.data[kernel];
    for (int j = 0; j < k->count; j++) {
        const Op *o = ir_op_at(f, k->first + j);
        for (int r = 0; r < o->n_out; r++)
            if (!fills_rows(f, k, o->out[r])) uses->dense[o->out[r].id] = true;
        for (int n = 0; n < o->n_in; n++) {
            Val v = ir_is_product(o) ? product_source(f, o->in[n], maker, kernel) : ir_memory_source(f, o->in[n]);
            if (!reads_pitch(f, k, o, n)) uses->dense[v.id] = uses->dense[o->in[n].id] = true;
            if (ir_is_product(o)) mark_product(f, o, n, &uses->by[v.id]);
        }
    }
}

void choose_pitches(Func *f) {
    Arena *a = f->module->arena;
    if (!target_of(f->module)->pitch_unit) return;
    const int *maker = kernel_makers(f);
    Uses uses = {arena_array(a, bool, f->values.len + 1), arena_array(a, RowReader, f->values.len + 1)};
    for (int i = 0; i < f->kernels.len; i++) mark_uses(f, i, maker, &uses);
    for (int i = 0; i < f->results.len; i++) uses.dense[f->results.data[i].value.id] = true; /* as its reader has it */
    for (int i = 0; i < f->buffers.len; i++) {
        Buffer *b = f->buffers.data[i];
        const uint32_t v = b->value.id;
        if (b->kind == BUFFER_TEMP && b->layout == LAYOUT_ROWS && !uses.dense[v])
            b->pitch = pitch_of(f, b->value, uses.by[v]);
    }
}
