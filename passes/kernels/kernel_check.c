/* kernel_check.c: see kernel_check.h.  Written from the document, not from the fuse pass, so that each finds the
 * other's mistakes. */
#include "passes/kernels/kernel_check.h"

#include "passes/common/rewrite.h"
#include "targets/target.h"

typedef struct Check {
    const Func *f;
    int *maker;    /* by value: kernel, -1 for inputs and states */
    bool *folded;  /* by value: in its column kernel, made from a fold */
    bool *inlined; /* by value: pooling of its kernel makes it where it reads it */
    int k;         /* the kernel being checked */
    Dim rows, cols;
    int64_t segment; /* of the kernel; 0: none */
    const char *wrong;
} Check;

static void fail(Check *c, const Op *o, const char *what) {
    if (c->wrong) return;
    const char *value = o && o->n_out ? ir_value(c->f, o->out[0])->name : "";
    c->wrong =
        arena_printf(c->f->module->arena, "%s: kernel %s: %s%s%s: %s", c->f->name, c->f->kernels.data[c->k]->name,
                     o ? ir_op_info[o->code].name : "", *value ? " %" : "", value, what);
}

static bool same_matrix(const Check *c, Val v, Dim rows, Dim cols) {
    Dim r, k;
    return shape_matrix(ir_shape(c->f, v), &r, &k) && dim_equal(r, rows) && dim_equal(k, cols);
}

static bool is_whole(const Check *c, Val v) { return same_matrix(c, v, c->rows, c->cols); }
static bool is_per_row(const Check *c, Val v) { return same_matrix(c, v, c->rows, dim_const(1)); }
static bool is_scalar(const Check *c, Val v) { return ir_shape(c->f, v)->rank == 0; }

static bool is_copy(const Check *c, const Op *o) {
    return o->code == OP_const || o->code == OP_iota || o->code == OP_extent || is_widening(c->f, o) ||
           ir_is_view(c->f, o) || (c->f->kernels.data[c->k]->kind == KERNEL_PRODUCT && target_rounds_on_load(c->f, o));
}

static bool is_move(const Check *c, const Op *o) {
    return o->n_in && ir_reads_memory(c->f, o, 0) && !ir_is_product(o) && o->code != OP_scatter;
}

/* One number per segment and column. */
static bool is_per_segment(const Check *c, Val v) {
    Dim rows = dim_const(1);
    if (c->segment)
        rows = c->rows.n ? dim_n(c->rows.mul, c->rows.div * c->segment) : dim_const(c->rows.mul / c->segment);
    return same_matrix(c, v, rows, c->cols);
}

static bool is_own(const Check *c, Val v) { return c->maker[v.id] == c->k; }

/* ---- one function per kind: which ops may stand there, besides copies and assigns -------------------------- */

static bool fits_tile(Check *c, const Op *o) {
    return (ir_op_info[o->code].flags & ELEMENTWISE || is_move(c, o)) && is_whole(c, o->out[0]);
}

static bool fits_product(Check *c, const Op *o) {
    return ir_is_product(o) ? is_whole(c, o->out[0]) : fits_tile(c, o) && !is_move(c, o);
}

static bool folds_rows(const Check *c, const Op *o) {
    return ir_op_info[o->code].flags & REDUCE && is_whole(c, o->in[0]);
}

static bool fits_row(Check *c, const Op *o) {
    if (folds_rows(c, o)) return true;
    if (is_move(c, o)) return is_whole(c, o->out[0]);
    return ir_op_info[o->code].flags & ELEMENTWISE && (is_whole(c, o->out[0]) || is_per_row(c, o->out[0]));
}

static bool reads_folded(const Check *c, const Op *o) {
    for (int i = 0; i < o->n_in; i++)
        if (ir_reads_elements(o, i) && is_own(c, o->in[i]) && c->folded[o->in[i].id]) return true;
    return false;
}

static bool fits_column(Check *c, const Op *o) {
    bool folded = reads_folded(c, o);
    if (folds_rows(c, o) && (!folded || c->segment)) {
        c->folded[o->out[0].id] = true;
        return is_per_segment(c, o->out[0]);
    }
    c->folded[o->out[0].id] = folded;
    if (is_move(c, o)) return is_whole(c, o->out[0]);
    if (!(ir_op_info[o->code].flags & ELEMENTWISE)) return false;
    return is_per_segment(c, o->out[0]) || (is_whole(c, o->out[0]) && (!folded || c->segment));
}

static bool fits_scalar(Check *c, const Op *o) {
    for (int i = 0; i < o->n_in; i++)
        if (!is_scalar(c, o->in[i])) return false;
    return !ir_is_product(o) && is_scalar(c, o->out[0]);
}

static bool fits_scatter(Check *c, const Op *o) {
    (void)c;
    return o->code == OP_scatter;
}

typedef bool (*Fits)(Check *c, const Op *o);
static const Fits fits[] = {
    [KERNEL_PRODUCT] = fits_product, [KERNEL_TILE] = fits_tile,     [KERNEL_ROW] = fits_row,
    [KERNEL_COLUMN] = fits_column,   [KERNEL_SCALAR] = fits_scalar, [KERNEL_SCATTER] = fits_scatter,
};

/* ---- the space of a kernel: that of its contract, of what it folds, or of its first elementwise op --------------- */

static Val space_of(const Check *c, const Kernel *k) {
    Val space = NO_VAL;
    for (int i = 0; i < k->count; i++) {
        const Op *o = ir_op_at(c->f, k->first + i);
        if (o->n_out && c->inlined[o->out[0].id]) continue;
        bool fold = ir_op_info[o->code].flags & REDUCE && o->code != OP_reduce_or;
        if (ir_is_product(o)) return o->out[0];
        if (o->code == OP_scatter) return o->in[0];
        if (fold && (k->kind == KERNEL_ROW || k->kind == KERNEL_COLUMN)) return o->in[0];
        if (o->code == OP_assign && !space.id) space = o->in[1];
        if (o->code == OP_reduce_or && !space.id) space = o->in[0];
        if (o->n_out && !is_copy(c, o) && o->code != OP_reduce_or) return o->out[0];
        if (o->n_out && o->n_in && is_copy(c, o)) space = o->out[0];
    }
    return space;
}

/* ---- values that pooling makes where it reads them ---------------------------------------------------------------- */

/* Read by one window op, and by what that makes it from; elementwise, and the same wherever it is computed. */
static void mark_inlined(Check *c, const Kernel *k) {
    const Func *f = c->f;
    for (int i = k->count - 1; i >= 0; i--) {
        const Op *o = ir_op_at(f, k->first + i);
        bool pools = ir_takes_inlined(f, o);
        if (!pools && !(o->n_out && c->inlined[o->out[0].id])) continue;
        if (pools && !is_own(c, ir_memory_source(f, o->in[0]))) continue;
        for (int n = 0; n < o->n_in; n++) {
            Dim rows, cols;
            shape_matrix(ir_shape(f, pools ? o->in[0] : o->out[0]), &rows, &cols);
            c->inlined[o->in[n].id] = is_own(c, o->in[n]) && same_matrix(c, o->in[n], rows, cols);
        }
    }
}

static void check_inlined(Check *c, const Op *reader, Val v) {
    const Op *o = ir_def(c->f, v);
    bool pools = ir_takes_inlined(c->f, reader), simple = ir_op_info[o->code].flags & ELEMENTWISE || is_copy(c, o);
    if (c->f->kernels.data[c->k]->kind != KERNEL_TILE || !simple || ir_op_info[o->code].flags & RANDOM ||
        o->code == OP_iota || o->code == OP_broadcast)
        fail(c, o, "may not be made where pooling reads it");
    if (!pools && !(reader->n_out && c->inlined[reader->out[0].id]))
        fail(c, reader, "reads what pooling makes where it reads it");
}

/* ---- rules for every kernel -------------------------------------------------------------------------------------- */

static void check_inputs(Check *c, const Op *o) {
    for (int i = 0; i < o->n_in; i++) {
        const Op *def = ir_def(c->f, o->in[i]);
        if (!def || !ir_reads_elements(o, i)) continue;
        bool free_op = def->code == OP_const || def->code == OP_iota || def->code == OP_extent;
        if (is_own(c, o->in[i]) && def->code == OP_reduce_or) fail(c, o, "reads a flag of its own kernel");
        Val source = !ir_is_product(o)                  ? ir_memory_source(c->f, o->in[i])
                     : target_rounds_on_load(c->f, def) ? def->in[0]
                                                        : o->in[i];
        bool memory = ir_reads_memory(c->f, o, i) && !ir_is_segment_expand(c->f, o, c->segment);
        if (memory && is_own(c, source) && !c->inlined[o->in[i].id]) fail(c, o, "its operands must be in memory");
        if (c->inlined[o->in[i].id]) check_inlined(c, o, o->in[i]);
        if (!is_own(c, o->in[i]) && free_op) fail(c, o, "reads a const, iota or extent of another kernel");
        const Kernel *from = c->maker[o->in[i].id] >= 0 ? c->f->kernels.data[c->maker[o->in[i].id]] : NULL;
        if (from && from->pred.id && from->pred.id != c->f->kernels.data[c->k]->pred.id)
            fail(c, o, "reads what a kernel makes that may be skipped");
    }
}

static void check_assign(Check *c, const Kernel *k, const Op *o) {
    Val v = o->in[1];
    if (o->pred.id != k->pred.id) fail(c, o, "has another predicate than its kernel");
    if (k->kind == KERNEL_COLUMN   ? !is_per_segment(c, v)
        : k->kind == KERNEL_SCALAR ? !is_scalar(c, v)
                                   : !is_whole(c, v))
        fail(c, o, "its value is not of the kernel's space");
}

static void check_op(Check *c, const Kernel *k, const Op *o) {
    check_inputs(c, o);
    if (o->code == OP_assign) check_assign(c, k, o);
    else if (o->code == OP_reduce_or) return;
    else if (o->n_out && c->inlined[o->out[0].id]) return; /* see its reader */
    else if (!is_copy(c, o) && !fits[k->kind](c, o)) fail(c, o, "may not stand in a kernel of this kind and space");
}

static void check_product(Check *c, const Kernel *k) {
    int contracts = 0;
    for (int i = 0; i < k->count; i++) {
        const Op *o = ir_op_at(c->f, k->first + i);
        if (ir_is_product(o) && contracts++) fail(c, o, "is the second product");
        bool operand = o->code == OP_const || target_rounds_on_load(c->f, o);
        if (!contracts && !operand) fail(c, o, "stands before the product");
    }
    if (!contracts) fail(c, NULL, "has no product");
}

/* ---- states ------------------------------------------------------------------------------------------------------ */

/* After the kernel that assigns a state nothing reads its old value, nor casts of a parameter; in that kernel no
 * product or move does. */
static void check_states(Check *c) {
    const Func *f = c->f;
    uint32_t *root = arena_array(f->module->arena, uint32_t, f->values.len + 1);
    int *assigned = arena_array(f->module->arena, int, f->values.len + 1);
    for (int i = 0; i < f->inputs.len; i++)
        if (ir_value(f, f->inputs.data[i])->kind == VAL_STATE) root[f->inputs.data[i].id] = f->inputs.data[i].id;
    for (int k = 0; k < f->kernels.len; k++)
        for (int i = 0; i < f->kernels.data[k]->count; i++) {
            const Op *o = ir_op_at(f, f->kernels.data[k]->first + i);
            if (o->code == OP_assign) assigned[o->in[0].id] = k + 1;
            uint32_t from = o->code == OP_cast ? root[o->in[0].id] : 0;
            if (from && ir_state_of(f, (Val){from})->role == STATE_PARAM) root[o->out[0].id] = from;
        }
    for (c->k = 0; c->k < f->kernels.len; c->k++)
        for (int i = 0; i < f->kernels.data[c->k]->count; i++) {
            const Op *o = ir_op_at(f, f->kernels.data[c->k]->first + i);
            for (int n = o->code == OP_assign; n < o->n_in; n++) {
                int at = ir_reads_elements(o, n) ? assigned[root[o->in[n].id]] : 0;
                if (at && (c->k + 1 > at || (c->k + 1 == at && ir_reads_memory(f, o, n))))
                    fail(c, o, "reads a state, or a cast of it, that has been assigned");
            }
        }
}

const char *kernel_check(const Func *f) {
    Arena *a = f->module->arena;
    Check c = {.f = f};
    c.maker = arena_array(a, int, f->values.len + 1);
    c.folded = arena_array(a, bool, f->values.len + 1);
    c.inlined = arena_array(a, bool, f->values.len + 1);
    for (int i = 0; i < f->values.len; i++) c.maker[i] = -1;
    for (int k = 0; k < f->kernels.len; k++)
        for (int i = 0; i < f->kernels.data[k]->count; i++) {
            const Op *o = ir_op_at(f, f->kernels.data[k]->first + i);
            for (int r = 0; r < o->n_out; r++) c.maker[o->out[r].id] = k;
        }
    for (c.k = 0; c.k < f->kernels.len && !c.wrong; c.k++) {
        const Kernel *k = f->kernels.data[c.k];
        mark_inlined(&c, k);
        Val space = space_of(&c, k);
        c.segment = k->segment;
        if (space.id) shape_matrix(ir_shape(f, space), &c.rows, &c.cols);
        if (k->kind == KERNEL_PRODUCT) check_product(&c, k);
        for (int i = 0; i < k->count; i++) check_op(&c, k, ir_op_at(f, k->first + i));
        if (k->pred.id && c.maker[k->pred.id] >= c.k) fail(&c, NULL, "runs before its predicate is known");
    }
    if (!c.wrong) check_states(&c);
    return c.wrong;
}
