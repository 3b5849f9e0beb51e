/* join.c: which functions are so small that their kernels are joined in one launch, on a target that has such
 * launches (docs/design/cuda.md, "A whole step in one launch"): functions whose products have up to 128 columns, k and,
 * for weights, rows, as in perceptrons of few units.  Their kernels take less time than launches do.
 *
 *   func train_step {      =>   func train_step joined {
 *     kernel k00 ..               kernel k00 ..
 *
 * Then no result takes the memory of an operand: all buffers are live from the launch's beginning to its end, so that
 * what somebody reads after it (amp_session_options.observer) is what each kernel has made. */
#include "passes/launch/launch.h"

enum {
    MOST_COLUMNS = 128,
    MOST_ELEMENTS = 128 * 128, /* of what does not depend on n */
    MOST_KERNELS = 64,
    LEAST_KERNELS = 3
};

static bool is_small(const Func *f, Val v) {
    Dim rows, cols;
    if (!shape_matrix(ir_shape(f, v), &rows, &cols) || dim_varies(cols)) return false;
    return cols.mul <= MOST_COLUMNS && (dim_varies(rows) || rows.mul * cols.mul <= MOST_ELEMENTS);
}

static bool has_small_values(const Func *f, const Op *o) {
    for (int i = 0; i < o->n_in; i++)
        if (!is_small(f, o->in[i])) return false;
    for (int i = 0; i < o->n_out; i++)
        if (!is_small(f, o->out[i])) return false;
    return true;
}

/* A product that a block of 256 threads makes by tensor cores, in tiles of 64 x 64, each sum in one part. */
static bool is_small_product(const Func *f, const Op *o) {
    return o->code == OP_contract && ir_parts(o) == 1 && ir_dtype(f, o->in[0]) != AMP_DT_F32;
}

static bool is_small_kernel(const Func *f, const Kernel *k, int *products) {
    if (ir_kernel_info[k->kind].traits & APART) return false;
    for (int i = 0; i < k->count; i++) {
        const Op *o = ir_op_at(f, k->first + i);
        if (!has_small_values(f, o) || (ir_is_product(o) && !is_small_product(f, o))) return false;
        *products += ir_is_product(o);
    }
    return true;
}

bool may_be_joined(const Func *f) {
    int products = 0;
    if (!target_of(f->module)->joins_kernels) return false;
    if (f->kernels.len < LEAST_KERNELS || f->kernels.len > MOST_KERNELS) return false;
    for (int i = 0; i < f->kernels.len; i++)
        if (!is_small_kernel(f, f->kernels.data[i], &products)) return false;
    return products > 0;
}

bool pass_join(PassContext *c) {
    for (int i = 0; i < c->m->funcs.len && !c->m->plain[STAGE_FUSE]; i++)
        c->m->funcs.data[i]->joined = may_be_joined(c->m->funcs.data[i]);
    return true;
}
