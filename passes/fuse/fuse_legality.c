/* fuse_legality.c: which ops a kernel of each kind accepts: the table of docs/design/kernels.md. */
#include "passes/fuse/fuse.h"

static bool matrix_is(const Func *f, Val v, Dim rows, Dim cols) { return shape_is_matrix(ir_shape(f, v), rows, cols); }

static bool is_elementwise(const Op *o) { return ir_op_info[o->code].flags & ELEMENTWISE && o->n_out == 1; }

static bool is_move(const Func *f, const Op *o) {
    return ir_own_kind(o) == KERNEL_KINDS && o->n_in && ir_reads_memory(f, o, 0);
}

bool fuse_is_scalar(const Func *f, const Op *o) {
    if (ir_op_info[o->code].flags & (REDUCE | PRODUCT | COLLECTIVE) || is_move(f, o)) return false;
    for (int i = 0; i < o->n_out; i++)
        if (ir_shape(f, o->out[i])->rank) return false;
    for (int i = 0; i < o->n_in; i++)
        if (ir_reads_elements(o, i) && ir_shape(f, o->in[i])->rank) return false;
    return true;
}

Reduction fuse_reduction(const Func *f, const Op *o) {
    if (!(ir_op_info[o->code].flags & REDUCE)) return REDUCTION_NONE;
    if (o->code == OP_reduce_or) return REDUCTION_FLAG;
    const Shape *s = ir_shape(f, o->in[0]);
    if (s->rank == 1) return s->d[0].n ? REDUCTION_COLUMN : REDUCTION_ROW;
    const Dims *dims = &ir_attr(o, "dims")->dims;
    return dims->count == 1 && dims->at[0] == s->rank - 1 ? REDUCTION_ROW : REDUCTION_COLUMN;
}

/* The number of rows that a column reduction takes together, if that is not all of them: [A.., M.., C] -> [A.., C]. */
static Dim segment_of(const Func *f, const Op *o) {
    const Shape *s = ir_shape(f, o->in[0]);
    const Dims *dims = &ir_attr(o, "dims")->dims;
    Dim segment = dim_const(1), rows, cols;
    for (int i = 0; i < dims->count; i++) {
        int64_t d = dims->at[i] < 0 ? dims->at[i] + s->rank : dims->at[i];
        if (!dim_mul(segment, s->d[d], &segment)) return (Dim){0};
    }
    bool whole = !dims->count || segment.n || !shape_matrix(s, &rows, &cols) || dim_equal(rows, segment);
    return whole ? (Dim){0} : segment;
}

Group fuse_group_for(const Func *f, const Op *o) {
    static const KernelKind kinds[] = {KERNEL_TILE, KERNEL_ROW, KERNEL_COLUMN, KERNEL_TILE};
    Reduction reduction = fuse_reduction(f, o);
    Group g = {.kind = kinds[reduction]};
    Val space = reduction || !o->n_out ? o->in[o->n_out ? 0 : 1] : o->out[0]; /* an assign walks its value */
    if (reduction == REDUCTION_COLUMN) g.segment = segment_of(f, o);
    const KernelKind own = ir_own_kind(o);
    if (own != KERNEL_KINDS) g.kind = own;
    else if (!ir_shape(f, space)->rank && fuse_is_scalar(f, o)) g.kind = KERNEL_SCALAR;
    shape_matrix(ir_shape(f, space), &g.rows, &g.cols);
    return g;
}

/* ---- the space of a group --------------------------------------------------------------------------------------- */

static bool is_whole(const Func *f, const Group *group, Val v) { return matrix_is(f, v, group->rows, group->cols); }

/* One number per segment and column.  Of a segment of one row, which a T of 1 makes, only the mark says which it is. */
static bool is_per_segment(const Func *f, const Group *group, Val v) {
    const Dim rows = group->segment.mul ? dim_quotient(group->rows, group->segment) : dim_const(1);
    Dim own, cols;
    return matrix_is(f, v, rows, group->cols) &&
           !(dim_equal(rows, group->rows) && shape_matrix(ir_shape(f, v), &own, &cols) && own.sized);
}

/* A value of the whole space, or one number per row or per column if the kind has those. */
static bool is_in_space(const Func *f, const Group *group, Val v) {
    if (is_whole(f, group, v)) return true;
    if (group->kind == KERNEL_ROW) return matrix_is(f, v, group->rows, dim_const(1));
    if (group->kind == KERNEL_COLUMN) return is_per_segment(f, group, v);
    return false;
}

static bool is_of_one_row_or_column(const Func *f, const Group *group, Val v) {
    Dim rows, cols;
    if (!shape_matrix(ir_shape(f, v), &rows, &cols)) return false;
    return dim_is_one(rows) ? dim_is_one(cols) || dim_equal(cols, group->cols)
                            : dim_is_one(cols) && dim_equal(rows, group->rows);
}

/* A column kernel reads what there is of the whole space, of each segment and column, or of a row or a column alone.
 * One number per segment has no place beside those: neither itself nor through a view that the kernel would copy. */
static bool operand_has_place(const Fuse *z, const Group *group, Val v) {
    for (;;) {
        if (!is_in_space(z->f, group, v) && !is_of_one_row_or_column(z->f, group, v)) return false;
        const Op *def = ir_def(z->f, v);
        if (!def || !fuse_node(z, def)->copied || !ir_is_view(z->f, def)) return true;
        v = def->in[0];
    }
}

static bool operands_have_place(const Fuse *z, const Group *group, const Op *o) {
    for (int i = 0; i < o->n_in; i++)
        if (ir_reads_elements(o, i) && !operand_has_place(z, group, o->in[i])) return false;
    return true;
}

/* The op that makes operand |i|, seen through copies, if the group itself computes it and |o| reads its elements. */
static const Op *own_operand(const Fuse *z, int g, const Op *o, int i) {
    const Op *def = ir_reads_elements(o, i) ? fuse_maker(z, o->in[i], true) : NULL;
    return def && fuse_node(z, def)->home == g ? def : NULL;
}

static bool reads_reduced(const Fuse *z, int g, const Op *o) {
    for (int i = 0; i < o->n_in; i++) {
        const Op *def = own_operand(z, g, o, i);
        if (def && fuse_node(z, def)->reduced) return true;
    }
    return false;
}

/* Products read tiles, and a kernel that goes down all rows of a column does not write tiles. */
static bool is_kept_for_product(const Fuse *z, const Group *group, const Op *o) {
    Val v = o->out[0];
    return (int)v.id < z->value_count && z->product_reads[v.id] && is_whole(z->f, group, v);
}

/* ---- one function per kind -------------------------------------------------------------------------------------- */

/* Movement reads memory that an earlier kernel wrote, and makes values of the whole space. */
static bool accepts_move(const Fuse *z, int g, const Op *o) {
    const Group *group = fuse_group(z, g);
    if (group->kind != KERNEL_TILE && group->kind != KERNEL_ROW && group->kind != KERNEL_COLUMN) return false;
    if (group->kind == KERNEL_COLUMN && is_kept_for_product(z, group, o)) return false;
    for (int i = 0; i < o->n_in; i++) {
        const Op *def = fuse_maker(z, o->in[i], true);
        if (def && fuse_node(z, def)->home == g) return false;
    }
    return is_whole(z->f, group, o->out[0]);
}

static bool tile_accepts(const Fuse *z, int g, const Op *o) {
    return is_elementwise(o) && ir_shape(z->f, o->out[0])->rank && is_in_space(z->f, fuse_group(z, g), o->out[0]);
}

/* Values that the kernel computes are in registers by row and column: such a value cannot be read as a vector along
 * another dimension. */
static bool operands_in_space(const Fuse *z, int g, const Op *o) {
    for (int i = 0; i < o->n_in; i++)
        if (own_operand(z, g, o, i) && !is_in_space(z->f, fuse_group(z, g), o->in[i])) return false;
    return true;
}

static bool row_accepts(const Fuse *z, int g, const Op *o) {
    if (fuse_reduction(z->f, o) == REDUCTION_ROW) return is_whole(z->f, fuse_group(z, g), o->in[0]);
    return tile_accepts(z, g, o) && operands_in_space(z, g, o);
}

static bool is_wide_scalar(Dtype t) { return t == AMP_DT_F64 || t == AMP_DT_I64; }

/* Only scalar kernels compute in i64 and f64. */
static bool has_wide_scalar(const Func *f, const Op *o) {
    for (int i = 0; i < o->n_in; i++)
        if (is_wide_scalar(ir_dtype(f, o->in[i]))) return true;
    return o->n_out && is_wide_scalar(ir_dtype(f, o->out[0]));
}

/* A kernel with segments may go over each segment again with what it has reduced (the mean, then the squares
 * around it): segments are short, and there are many.  If all rows are one segment, too few tasks would be left. */
static bool column_accepts(const Fuse *z, int g, const Op *o) {
    const Func *f = z->f;
    const Group *group = fuse_group(z, g);
    if (fuse_reduction(f, o) == REDUCTION_COLUMN)
        return is_whole(f, group, o->in[0]) && dim_equal(segment_of(f, o), group->segment) &&
               (group->segment.mul || !reads_reduced(z, g, o));
    if (!operands_have_place(z, group, o)) return false;
    if (ir_is_segment_expand(f, o, group->segment)) return is_whole(f, group, o->out[0]);
    if (!is_elementwise(o) || has_wide_scalar(f, o)) return false;
    if (reads_reduced(z, g, o) && !group->segment.mul) return is_per_segment(f, group, o->out[0]);
    return is_in_space(f, group, o->out[0]) && !is_kept_for_product(z, group, o);
}

static bool scalar_accepts(const Fuse *z, int g, const Op *o) {
    (void)g;
    return fuse_is_scalar(z->f, o);
}

/* After attention: ops that round its results or concatenate them, on a target that stores them so. */
static bool attention_accepts(const Fuse *z, int g, const Op *o) {
    const int results = o->code == OP_concat ? o->n_in : 1;
    if (!o->n_out || (int)o->out[0].id >= z->value_count || !z->stored[o->out[0].id]) return false;
    for (int i = 0; i < results; i++)
        if (!own_operand(z, g, o, i)) return false;
    return true;
}

/* NULL: nothing but the op that the kind is of. */
typedef bool (*Accepts)(const Fuse *z, int g, const Op *o);
static const Accepts accepts[KERNEL_KINDS] = {
    [KERNEL_PRODUCT] = tile_accepts,  [KERNEL_TILE] = tile_accepts,     [KERNEL_ROW] = row_accepts,
    [KERNEL_COLUMN] = column_accepts, [KERNEL_SCALAR] = scalar_accepts, [KERNEL_ATTENTION] = attention_accepts,
};

static bool takes_nothing(const Group *g) { return ir_kernel_info[g->kind].traits & APART; }

/* ---- questions -------------------------------------------------------------------------------------------------- */

/* A flag is complete only when its kernel has ended. */
static bool reads_own_flag(const Fuse *z, int g, const Op *o) {
    for (int i = 0; i < o->n_in; i++) {
        const Op *def = ir_def(z->f, o->in[i]);
        if (def && def->code == OP_reduce_or && fuse_node(z, def)->home == g) return true;
    }
    return false;
}

/* Where the target updates all parameters in one batched kernel, fusing an update into the tail of another kernel is
 * slower. */
static bool is_left_to_batch(const Fuse *z, const Group *group, const Op *o) {
    if (!target_of(z->f->module)->batches_updates || !o->region) return false;
    if (group->kind == KERNEL_TILE || group->kind == KERNEL_SCALAR) return false;
    return ir_op_info[ir_opcode(z->f->regions.data[o->region - 1].op)].flags & OPTIMIZER;
}

static bool moves_in(const Fuse *z, int g, const Op *o) {
    const Group *group = fuse_group(z, g);
    if (!is_move(z->f, o) || group->kind == KERNEL_ATTENTION) return false;
    return group->kind != KERNEL_COLUMN || !ir_is_segment_expand(z->f, o, group->segment); /* in registers */
}

FuseLoad fuse_load_of(const Fuse *z, int g, const Op *o) { return (FuseLoad){1, moves_in(z, g, o)}; }

bool fuse_has_room(const Fuse *z, int g, FuseLoad more) {
    const Group *group = fuse_group(z, g);
    for (int i = 0; i < group->ops.len && more.moves; i++) more.moves += is_move(z->f, fuse_group_op(z, g, i));
    return more.ops + group->ops.len <= z->kernel_ops && more.moves <= FUSE_MAX_MOVES;
}

bool fuse_accepts(const Fuse *z, int g, const Op *o) {
    const Group *group = fuse_group(z, g);
    if (ir_own_kind(o) != KERNEL_KINDS || !accepts[group->kind]) return false;
    if (reads_own_flag(z, g, o) || is_left_to_batch(z, group, o)) return false;
    if (moves_in(z, g, o)) return accepts_move(z, g, o);
    if (fuse_reduction(z->f, o) == REDUCTION_FLAG)
        return group->kind != KERNEL_SCALAR && !takes_nothing(group) && is_in_space(z->f, group, o->in[0]);
    return accepts[group->kind](z, g, o);
}

/* Products and movement read their operands from memory.  A column kernel walks all rows before it computes what
 * there is one of per column, so values of the latter kind cannot feed the walk. */
bool fuse_may_feed(const Fuse *z, int g, const Op *user, const Op *o) {
    const Group *group = fuse_group(z, g);
    if (user->n_in && ir_reads_memory(z->f, user, 0)) return false;
    if (group->kind != KERNEL_COLUMN || !user->n_out || is_whole(z->f, group, o->out[0])) return true;
    return !is_whole(z->f, group, user->out[0]);
}

bool fuse_accepts_assign(const Fuse *z, int g, Val value) {
    const Group *group = fuse_group(z, g);
    bool scalar = !ir_shape(z->f, value)->rank;
    if (scalar || group->kind == KERNEL_SCALAR)
        return scalar && (group->kind == KERNEL_SCALAR || (group->kind == KERNEL_COLUMN && dim_is_one(group->cols)));
    if (group->kind == KERNEL_COLUMN) return is_per_segment(z->f, group, value);
    return !takes_nothing(group) && is_in_space(z->f, group, value);
}

static bool keeps_for_product(const Fuse *z, const Group *group) {
    for (int i = 0; i < group->ops.len; i++) {
        const Op *made = ir_op(z->f, group->ops.data[i]);
        if (made->n_out && is_kept_for_product(z, group, made)) return true;
    }
    return false;
}

bool fuse_convert(Fuse *z, int g, const Op *o) {
    const Group *group = fuse_group(z, g);
    Reduction reduction = fuse_reduction(z->f, o);
    if (group->kind != KERNEL_TILE || (reduction != REDUCTION_ROW && reduction != REDUCTION_COLUMN)) return false;
    if (!is_whole(z->f, group, o->in[0])) return false;
    if (reduction == REDUCTION_ROW) fuse_set_kind(z, g, KERNEL_ROW, group->segment);
    else if (keeps_for_product(z, group)) return false;
    else fuse_set_kind(z, g, KERNEL_COLUMN, segment_of(z->f, o));
    return true;
}

bool fuse_is_reduced(const Fuse *z, int g, const Op *o) {
    const Group *group = fuse_group(z, g);
    if (group->kind != KERNEL_COLUMN || !o->n_out) return false;
    return fuse_reduction(z->f, o) == REDUCTION_COLUMN || reads_reduced(z, g, o) || !is_whole(z->f, group, o->out[0]);
}
