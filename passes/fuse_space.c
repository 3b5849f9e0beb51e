/* fuse_space.c: which ops a kernel of a kind takes: the table of docs/design/kernels.md. */
#include "passes/fuse.h"

static bool matrix_is(const Func *f, Val v, Dim rows, Dim cols) {
    Dim r, c;
    return shape_matrix(ir_shape(f, v), &r, &c) && dim_equal(r, rows) && dim_equal(c, cols);
}

static bool is_elementwise(const Op *o) { return ir_op_info[o->code].flags & ELEMENTWISE && o->n_out == 1; }

bool fuse_is_scalar(const Func *f, const Op *o) {
    if (ir_op_info[o->code].flags & (REDUCE | PRODUCT)) return false;
    for (int i = 0; i < o->n_out; i++)
        if (ir_shape(f, o->out[i])->rank) return false;
    for (int i = 0; i < o->n_in; i++)
        if (reads_operand(o, i) && ir_shape(f, o->in[i])->rank) return false;
    return true;
}

/* [N] is rows of one column, [C] is one row. */
Fold fuse_fold(const Func *f, const Op *o) {
    if (!(ir_op_info[o->code].flags & REDUCE)) return FOLD_NONE;
    if (o->code == OP_reduce_or) return FOLD_FLAG;
    const Shape *s = ir_shape(f, o->in[0]);
    if (s->rank == 1) return s->d[0].n ? FOLD_COLUMN : FOLD_ROW;
    const Dims *dims = &ir_attr(o, "dims")->dims;
    return dims->count == 1 && dims->at[0] == s->rank - 1 ? FOLD_ROW : FOLD_COLUMN;
}

Group fuse_group_for(const Func *f, const Op *o) {
    static const KernelKind kinds[] = {KERNEL_TILE, KERNEL_ROW, KERNEL_COLUMN, KERNEL_TILE};
    Fold fold = fuse_fold(f, o);
    Group g = {.kind = kinds[fold]};
    Val space = fold || !o->n_out ? o->in[o->n_out ? 0 : 1] : o->out[0]; /* an assign walks its value */
    if (o->code == OP_contract) g.kind = KERNEL_PRODUCT;
    if (!ir_shape(f, space)->rank) g.kind = KERNEL_SCALAR;
    shape_matrix(ir_shape(f, space), &g.rows, &g.cols);
    return g;
}

/* ---- one function per kind --------------------------------------------------------------------------------------- */

/* A value of the kernel's own space, or one number per row or column where the kind has that. */
static bool has_space(const Func *f, const Group *g, Val v) {
    Dim one = dim_const(1);
    if (matrix_is(f, v, g->rows, g->cols)) return true;
    if (g->kind == KERNEL_ROW) return matrix_is(f, v, g->rows, one);
    if (g->kind == KERNEL_COLUMN) return matrix_is(f, v, one, g->cols);
    return false;
}

static bool tile_accepts(const Fuse *z, const Group *g, int index, const Op *o) {
    (void)index;
    return is_elementwise(o) && ir_shape(z->f, o->out[0])->rank && has_space(z->f, g, o->out[0]);
}

/* What the kernel itself makes, it has in registers by (r, c): a vector along the rows that is seen as one row stays
 * outside. */
static bool operands_in_space(const Fuse *z, const Group *g, int index, const Op *o) {
    for (int i = 0; i < o->n_in; i++) {
        const Op *def = reads_operand(o, i) ? fuse_behind(z, o->in[i], true) : NULL;
        if (def && fuse_node(z, def)->home == index && !has_space(z->f, g, o->in[i])) return false;
    }
    return true;
}

static bool row_accepts(const Fuse *z, const Group *g, int index, const Op *o) {
    if (fuse_fold(z->f, o) == FOLD_ROW) return matrix_is(z->f, o->in[0], g->rows, g->cols);
    return tile_accepts(z, g, index, o) && operands_in_space(z, g, index, o);
}

static bool reads_folded(const Fuse *z, int index, const Op *o) {
    for (int i = 0; i < o->n_in; i++) {
        const Op *def = reads_operand(o, i) ? fuse_behind(z, o->in[i], true) : NULL;
        if (def && fuse_node(z, def)->home == index && fuse_node(z, def)->folded) return true;
    }
    return false;
}

static bool is_wide_scalar(Dtype t) { return t == AMP_DT_F64 || t == AMP_DT_I64; }

/* i64 and f64 live in scalar kernels only. */
static bool has_wide_scalar(const Func *f, const Op *o) {
    for (int i = 0; i < o->n_in; i++)
        if (is_wide_scalar(ir_dtype(f, o->in[i]))) return true;
    return o->n_out && is_wide_scalar(ir_dtype(f, o->out[0]));
}

static bool column_accepts(const Fuse *z, const Group *g, int index, const Op *o) {
    if (fuse_fold(z->f, o) == FOLD_COLUMN)
        return matrix_is(z->f, o->in[0], g->rows, g->cols) && !reads_folded(z, index, o);
    if (!is_elementwise(o) || has_wide_scalar(z->f, o)) return false;
    if (reads_folded(z, index, o)) return matrix_is(z->f, o->out[0], dim_const(1), g->cols);
    return has_space(z->f, g, o->out[0]);
}

static bool scalar_accepts(const Fuse *z, const Group *g, int index, const Op *o) {
    (void)g, (void)index;
    return fuse_is_scalar(z->f, o);
}

typedef bool (*Accepts)(const Fuse *z, const Group *g, int index, const Op *o);
static const Accepts accepts[] = {
    [KERNEL_PRODUCT] = tile_accepts,  [KERNEL_TILE] = tile_accepts,     [KERNEL_ROW] = row_accepts,
    [KERNEL_COLUMN] = column_accepts, [KERNEL_SCALAR] = scalar_accepts,
};

/* A flag is complete when its kernel has ended. */
static bool reads_own_flag(const Fuse *z, int index, const Op *o) {
    for (int i = 0; i < o->n_in; i++) {
        const Op *def = ir_def(z->f, o->in[i]);
        if (def && def->code == OP_reduce_or && fuse_node(z, def)->home == index) return true;
    }
    return false;
}

bool fuse_accepts(const Fuse *z, const Group *g, int index, const Op *o) {
    if (o->code == OP_contract || reads_own_flag(z, index, o)) return false;
    if (fuse_fold(z->f, o) == FOLD_FLAG) return g->kind != KERNEL_SCALAR && has_space(z->f, g, o->in[0]);
    return accepts[g->kind](z, g, index, o);
}

/* A product reads its operands from memory, and the rows of a column kernel come before what there is one of per
 * column. */
bool fuse_may_feed(const Fuse *z, const Group *g, const Op *user, const Op *o) {
    if (user->code == OP_contract) return false;
    if (g->kind != KERNEL_COLUMN || !user->n_out || matrix_is(z->f, o->out[0], g->rows, g->cols)) return true;
    return !matrix_is(z->f, user->out[0], g->rows, g->cols);
}

bool fuse_accepts_assign(const Fuse *z, const Group *g, Val value) {
    bool scalar = !ir_shape(z->f, value)->rank;
    if (scalar || g->kind == KERNEL_SCALAR)
        return scalar && (g->kind == KERNEL_SCALAR || (g->kind == KERNEL_COLUMN && dim_is_one(g->cols)));
    if (g->kind == KERNEL_COLUMN) return matrix_is(z->f, value, dim_const(1), g->cols);
    return has_space(z->f, g, value);
}

bool fuse_convert(Fuse *z, int index, const Op *o) {
    Group *g = &z->groups.data[index];
    Fold fold = fuse_fold(z->f, o);
    if (g->kind != KERNEL_TILE || (fold != FOLD_ROW && fold != FOLD_COLUMN)) return false;
    if (!matrix_is(z->f, o->in[0], g->rows, g->cols)) return false;
    g->kind = fold == FOLD_ROW ? KERNEL_ROW : KERNEL_COLUMN;
    z->change++;
    return true;
}

bool fuse_is_folded(const Fuse *z, const Group *g, int index, const Op *o) {
    if (g->kind != KERNEL_COLUMN || !o->n_out) return false;
    return fuse_fold(z->f, o) == FOLD_COLUMN || reads_folded(z, index, o) ||
           !matrix_is(z->f, o->out[0], g->rows, g->cols);
}
