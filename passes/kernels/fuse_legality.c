/* fuse_legality.c: which ops a kernel of a kind takes: the table of docs/design/kernels.md. */
#include "passes/kernels/fuse.h"

static bool matrix_is(const Func *f, Val v, Dim rows, Dim cols) {
    Dim r, c;
    return shape_matrix(ir_shape(f, v), &r, &c) && dim_equal(r, rows) && dim_equal(c, cols);
}

static bool is_elementwise(const Op *o) { return ir_op_info[o->code].flags & ELEMENTWISE && o->n_out == 1; }

static bool is_move(const Func *f, const Op *o) {
    return !ir_is_product(o) && o->code != OP_scatter && o->n_in && ir_reads_memory(f, o, 0);
}

bool fuse_is_scalar(const Func *f, const Op *o) {
    if (ir_op_info[o->code].flags & (REDUCE | PRODUCT) || is_move(f, o)) return false;
    for (int i = 0; i < o->n_out; i++)
        if (ir_shape(f, o->out[i])->rank) return false;
    for (int i = 0; i < o->n_in; i++)
        if (ir_reads_elements(o, i) && ir_shape(f, o->in[i])->rank) return false;
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

/* The rows that a fold along columns takes together, where that is not all: [A.., M.., C] -> [A.., C]. */
static int64_t segment_of(const Func *f, const Op *o) {
    const Shape *s = ir_shape(f, o->in[0]);
    const Dims *dims = &ir_attr(o, "dims")->dims;
    Dim segment = dim_const(1), rows, cols;
    for (int i = 0; i < dims->count; i++) {
        int64_t d = dims->at[i] < 0 ? dims->at[i] + s->rank : dims->at[i];
        if (!dim_mul(segment, s->d[d], &segment)) return 0;
    }
    bool whole = !dims->count || segment.n || !shape_matrix(s, &rows, &cols) || dim_equal(rows, segment);
    return whole ? 0 : segment.mul;
}

Group fuse_group_for(const Func *f, const Op *o) {
    static const KernelKind kinds[] = {KERNEL_TILE, KERNEL_ROW, KERNEL_COLUMN, KERNEL_TILE};
    Fold fold = fuse_fold(f, o);
    Group g = {.kind = kinds[fold]};
    Val space = fold || !o->n_out ? o->in[o->n_out ? 0 : 1] : o->out[0]; /* an assign walks its value */
    if (fold == FOLD_COLUMN) g.segment = segment_of(f, o);
    if (ir_is_product(o)) g.kind = KERNEL_PRODUCT;
    else if (o->code == OP_scatter) g.kind = KERNEL_SCATTER;
    else if (!ir_shape(f, space)->rank && fuse_is_scalar(f, o)) g.kind = KERNEL_SCALAR;
    shape_matrix(ir_shape(f, space), &g.rows, &g.cols);
    return g;
}

/* ---- one function per kind --------------------------------------------------------------------------------------- */

/* One number per segment and column. */
static bool is_per_segment(const Func *f, const Group *g, Val v) {
    Dim rows = dim_const(1);
    if (g->segment && g->rows.n) rows = dim_n(g->rows.mul, g->rows.div * g->segment);
    else if (g->segment) rows = dim_const(g->rows.mul / g->segment);
    return matrix_is(f, v, rows, g->cols);
}

/* A value of the kernel's own space, or one number per row or column where the kind has that. */
static bool has_space(const Func *f, const Group *g, Val v) {
    Dim one = dim_const(1);
    if (matrix_is(f, v, g->rows, g->cols)) return true;
    if (g->kind == KERNEL_ROW) return matrix_is(f, v, g->rows, one);
    if (g->kind == KERNEL_COLUMN) return is_per_segment(f, g, v);
    return false;
}

/* What moves reads memory that an earlier kernel wrote, and makes full values. */
static bool accepts_move(const Fuse *z, const Group *g, int index, const Op *o) {
    if (g->kind != KERNEL_TILE && g->kind != KERNEL_ROW && g->kind != KERNEL_COLUMN) return false;
    for (int i = 0; i < o->n_in; i++) {
        const Op *def = fuse_behind(z, o->in[i], true);
        if (def && fuse_node(z, def)->home == index) return false;
    }
    return matrix_is(z->f, o->out[0], g->rows, g->cols);
}

static bool tile_accepts(const Fuse *z, const Group *g, int index, const Op *o) {
    (void)index;
    return is_elementwise(o) && ir_shape(z->f, o->out[0])->rank && has_space(z->f, g, o->out[0]);
}

/* What the kernel itself makes, it has in registers by (r, c): a vector along the rows that is seen as one row stays
 * outside. */
static bool operands_in_space(const Fuse *z, const Group *g, int index, const Op *o) {
    for (int i = 0; i < o->n_in; i++) {
        const Op *def = ir_reads_elements(o, i) ? fuse_behind(z, o->in[i], true) : NULL;
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
        const Op *def = ir_reads_elements(o, i) ? fuse_behind(z, o->in[i], true) : NULL;
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

/* The forms that products read are written tile by tile, which a walk down all rows is not. */
static bool is_kept_for_product(const Fuse *z, const Group *g, const Op *o) {
    Val v = o->out[0];
    return (int)v.id < z->value_count && z->product_reads[v.id] && matrix_is(z->f, v, g->rows, g->cols);
}

/* A kernel with segments may go over each of them again with what it folded (the mean, then the squares around it): they
 * are short, and many.  Where all rows are one segment that would leave too few tasks. */
static bool column_accepts(const Fuse *z, const Group *g, int index, const Op *o) {
    if (fuse_fold(z->f, o) == FOLD_COLUMN)
        return matrix_is(z->f, o->in[0], g->rows, g->cols) && segment_of(z->f, o) == g->segment &&
               (g->segment || !reads_folded(z, index, o));
    if (ir_is_segment_expand(z->f, o, g->segment)) return matrix_is(z->f, o->out[0], g->rows, g->cols);
    if (!is_elementwise(o) || has_wide_scalar(z->f, o)) return false;
    if (reads_folded(z, index, o) && !g->segment) return is_per_segment(z->f, g, o->out[0]);
    return has_space(z->f, g, o->out[0]) && !is_kept_for_product(z, g, o);
}

static bool scalar_accepts(const Fuse *z, const Group *g, int index, const Op *o) {
    (void)g, (void)index;
    return fuse_is_scalar(z->f, o);
}

static bool nothing_accepted(const Fuse *z, const Group *g, int index, const Op *o) {
    (void)z, (void)g, (void)index, (void)o;
    return false;
}

typedef bool (*Accepts)(const Fuse *z, const Group *g, int index, const Op *o);
static const Accepts accepts[] = {
    [KERNEL_PRODUCT] = tile_accepts,  [KERNEL_TILE] = tile_accepts,     [KERNEL_ROW] = row_accepts,
    [KERNEL_COLUMN] = column_accepts, [KERNEL_SCALAR] = scalar_accepts, [KERNEL_SCATTER] = nothing_accepted,
};

/* A flag is complete when its kernel has ended. */
static bool reads_own_flag(const Fuse *z, int index, const Op *o) {
    for (int i = 0; i < o->n_in; i++) {
        const Op *def = ir_def(z->f, o->in[i]);
        if (def && def->code == OP_reduce_or && fuse_node(z, def)->home == index) return true;
    }
    return false;
}

/* An update of a parameter that is left to the one kernel that updates them all. */
static bool is_apart(const Fuse *z, const Group *g, const Op *o) {
    if (!target_of(z->f->module)->batches_updates || !o->region) return false;
    const char *from = z->f->regions.data[o->region - 1].op;
    return g->kind != KERNEL_TILE && g->kind != KERNEL_SCALAR && ir_op_info[ir_opcode(from)].flags & OPTIMIZER;
}

bool fuse_accepts(const Fuse *z, const Group *g, int index, const Op *o) {
    if (ir_is_product(o) || o->code == OP_scatter || reads_own_flag(z, index, o) || is_apart(z, g, o)) return false;
    bool in_registers = g->kind == KERNEL_COLUMN && ir_is_segment_expand(z->f, o, g->segment);
    if (is_move(z->f, o) && !in_registers)
        return accepts_move(z, g, index, o) && !(g->kind == KERNEL_COLUMN && is_kept_for_product(z, g, o));
    if (fuse_fold(z->f, o) == FOLD_FLAG)
        return g->kind != KERNEL_SCALAR && g->kind != KERNEL_SCATTER && has_space(z->f, g, o->in[0]);
    return accepts[g->kind](z, g, index, o);
}

/* Products and moves read their operands from memory, and the rows of a column kernel come before what there is one of
 * per column. */
bool fuse_may_feed(const Fuse *z, const Group *g, const Op *user, const Op *o) {
    if (user->n_in && ir_reads_memory(z->f, user, 0)) return false;
    if (g->kind != KERNEL_COLUMN || !user->n_out || matrix_is(z->f, o->out[0], g->rows, g->cols)) return true;
    return !matrix_is(z->f, user->out[0], g->rows, g->cols);
}

bool fuse_accepts_assign(const Fuse *z, const Group *g, Val value) {
    bool scalar = !ir_shape(z->f, value)->rank;
    if (scalar || g->kind == KERNEL_SCALAR)
        return scalar && (g->kind == KERNEL_SCALAR || (g->kind == KERNEL_COLUMN && dim_is_one(g->cols)));
    if (g->kind == KERNEL_COLUMN) return is_per_segment(z->f, g, value);
    return g->kind != KERNEL_SCATTER && has_space(z->f, g, value);
}

bool fuse_convert(Fuse *z, int index, const Op *o) {
    Group *g = &z->groups.data[index];
    Fold fold = fuse_fold(z->f, o);
    if (g->kind != KERNEL_TILE || (fold != FOLD_ROW && fold != FOLD_COLUMN)) return false;
    if (!matrix_is(z->f, o->in[0], g->rows, g->cols)) return false;
    for (int i = 0; i < g->ops.len && fold == FOLD_COLUMN; i++) {
        const Op *made = ir_op(z->f, g->ops.data[i]);
        if (made->n_out && is_kept_for_product(z, g, made)) return false;
    }
    if (fold == FOLD_COLUMN) g->segment = segment_of(z->f, o);
    g->kind = fold == FOLD_ROW ? KERNEL_ROW : KERNEL_COLUMN;
    z->change++;
    return true;
}

bool fuse_is_folded(const Fuse *z, const Group *g, int index, const Op *o) {
    if (g->kind != KERNEL_COLUMN || !o->n_out) return false;
    return fuse_fold(z->f, o) == FOLD_COLUMN || reads_folded(z, index, o) ||
           !matrix_is(z->f, o->out[0], g->rows, g->cols);
}
