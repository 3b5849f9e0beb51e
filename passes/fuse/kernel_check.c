/* kernel_check.c: see kernel_check.h.  Written from the document, not from the fuse pass, so that each finds the
 * other's mistakes. */
#include "passes/fuse/kernel_check.h"

#include "passes/common/common.h"
#include "passes/fuse/fuse.h"

typedef struct Check {
    const Func *f;
    int *maker;    /* by value id: its kernel, -1 for inputs and states */
    bool *reduced; /* by value id: in its column kernel, computed from a reduction */
    bool *inlined; /* by value id: pooling of its kernel computes it where it reads it */
    int k;         /* the kernel being checked */
    Dim rows, cols;
    Dim segment;        /* of the kernel; of mul 0: none */
    const bool *stored; /* by value id: by the kernel of attention (fuse_attention.c) */
    const char *wrong;
} Check;

static void fail(Check *x, const Op *o, const char *what) {
    if (x->wrong) return;
    const char *value = o && o->n_out ? ir_value(x->f, o->out[0])->name : "";
    x->wrong =
        arena_printf(x->f->module->arena, "%s: kernel %s: %s%s%s: %s", x->f->name, x->f->kernels.data[x->k]->name,
                     o ? ir_op_info[o->code].name : "", *value ? " %" : "", value, what);
}

static bool same_matrix(const Check *x, Val v, Dim rows, Dim cols) {
    return shape_is_matrix(ir_shape(x->f, v), rows, cols);
}

static bool is_whole(const Check *x, Val v) { return same_matrix(x, v, x->rows, x->cols); }
static bool is_per_row(const Check *x, Val v) { return same_matrix(x, v, x->rows, dim_const(1)); }
static bool is_scalar(const Check *x, Val v) { return ir_shape(x->f, v)->rank == 0; }

/* What only this kernel's product reads, as it loads it. */
static bool is_read_on_load(const Check *x, const Op *o) {
    if (target_rounds_on_load(x->f, o)) return true;
    if (!target_moves_on_load(x->f, o)) return false;
    const Kernel *k = x->f->kernels.data[x->k];
    for (int i = 0; i < k->count; i++) {
        const Op *p = ir_op_at(x->f, k->first + i);
        if (p->id.id == o->id.id) return true;
        if (ir_is_product(p) || ir_is_attention(p)) return false;
    }
    return false;
}

static bool loads(const Check *x) { return ir_kernel_info[x->f->kernels.data[x->k]->kind].traits & LOADS; }

/* The operand of a product or of attention, before what the kernel does as it loads it. */
static Val loaded_from(const Check *x, Val v) {
    for (const Op *o = ir_def(x->f, v); o && x->maker[v.id] == x->k && is_read_on_load(x, o); o = ir_def(x->f, v))
        v = o->in[0];
    return v;
}

static bool is_copy(const Check *x, const Op *o) {
    return o->code == OP_const || o->code == OP_iota || o->code == OP_extent || is_widening(x->f, o) ||
           ir_is_view(x->f, o) || (loads(x) && is_read_on_load(x, o));
}

static bool is_move(const Check *x, const Op *o) {
    return o->n_in && ir_reads_memory(x->f, o, 0) && ir_own_kind(o) == KERNEL_KINDS;
}

/* One number per segment and column. */
static bool is_per_segment(const Check *x, Val v) {
    Dim rows = dim_const(1);
    if (x->segment.mul) rows = dim_quotient(x->rows, x->segment);
    return same_matrix(x, v, rows, x->cols);
}

static bool is_own(const Check *x, Val v) { return x->maker[v.id] == x->k; }

/* ---- one function per kind: which ops it may hold, besides copies and assigns ----------------------------------- */

static bool fits_tile(Check *x, const Op *o) {
    return (ir_op_info[o->code].flags & ELEMENTWISE || is_move(x, o)) && is_whole(x, o->out[0]);
}

static bool fits_product(Check *x, const Op *o) {
    if (!ir_is_product(o)) return fits_tile(x, o) && !is_move(x, o);
    return is_whole(x, o->out[0]) && (ir_parts(o) == 1 || target_of(x->f->module)->sum_blocks);
}

static bool reduces_space(const Check *x, const Op *o) {
    return ir_op_info[o->code].flags & REDUCE && is_whole(x, o->in[0]);
}

static bool fits_row(Check *x, const Op *o) {
    if (reduces_space(x, o)) return true;
    if (is_move(x, o)) return is_whole(x, o->out[0]);
    return ir_op_info[o->code].flags & ELEMENTWISE && (is_whole(x, o->out[0]) || is_per_row(x, o->out[0]));
}

static bool reads_reduced(const Check *x, const Op *o) {
    for (int i = 0; i < o->n_in; i++)
        if (ir_reads_elements(o, i) && is_own(x, o->in[i]) && x->reduced[o->in[i].id]) return true;
    return false;
}

/* One number per segment alone has no place beside what there is of each segment and column. */
static bool has_place(const Check *x, Val v) {
    Dim rows, cols;
    return is_whole(x, v) || is_per_row(x, v) || is_per_segment(x, v) || same_matrix(x, v, dim_const(1), x->cols) ||
           (shape_matrix(ir_shape(x->f, v), &rows, &cols) && dim_is_one(rows) && dim_is_one(cols));
}

static bool operands_have_place(const Check *x, const Op *o) {
    for (int i = 0; i < o->n_in; i++)
        for (Val v = o->in[i]; ir_reads_elements(o, i); v = ir_def(x->f, v)->in[0]) {
            if (!has_place(x, v)) return false;
            if (!is_own(x, v) || !ir_is_view(x->f, ir_def(x->f, v))) break;
        }
    return true;
}

static bool fits_column(Check *x, const Op *o) {
    bool reduced = reads_reduced(x, o), again = x->segment.mul || target_repeats_columns(x->f, x->rows);
    if (!is_move(x, o) && !operands_have_place(x, o)) return false;
    if (reduces_space(x, o) && (!reduced || again)) {
        x->reduced[o->out[0].id] = true;
        return is_per_segment(x, o->out[0]);
    }
    x->reduced[o->out[0].id] = reduced;
    if (is_move(x, o)) return is_whole(x, o->out[0]);
    if (!(ir_op_info[o->code].flags & ELEMENTWISE)) return false;
    return is_per_segment(x, o->out[0]) || (is_whole(x, o->out[0]) && (!reduced || again));
}

static bool fits_scalar(Check *x, const Op *o) {
    for (int i = 0; i < o->n_in; i++)
        if (!is_scalar(x, o->in[i])) return false;
    return !ir_is_product(o) && is_scalar(x, o->out[0]);
}

/* Of kinds that hold one op and no other. */
static bool fits_alone(Check *x, const Op *o) { return ir_kernel_info[x->f->kernels.data[x->k]->kind].is_own(o); }

static bool fits_attention(Check *x, const Op *o) {
    for (int i = 0; i < o->n_in && !ir_is_attention(o); i++)
        if (!is_own(x, o->in[i])) return false;
    return ir_is_attention(o) || (o->n_out && x->stored[o->out[0].id]);
}

typedef bool (*Fits)(Check *x, const Op *o);
static const Fits fits[KERNEL_KINDS] = {
    [KERNEL_PRODUCT] = fits_product, [KERNEL_TILE] = fits_tile,     [KERNEL_ROW] = fits_row,
    [KERNEL_COLUMN] = fits_column,   [KERNEL_SCALAR] = fits_scalar, [KERNEL_ATTENTION] = fits_attention,
};

/* ---- the space of a kernel: of its product, of what it reduces, or of its first elementwise op ------------------ */

static Val space_of(const Check *x, const Kernel *k) {
    Val space = NO_VAL;
    for (int i = 0; i < k->count; i++) {
        const Op *o = ir_op_at(x->f, k->first + i);
        if (o->n_out && x->inlined[o->out[0].id]) continue;
        bool reduces = ir_op_info[o->code].flags & REDUCE && o->code != OP_reduce_or;
        const KernelKind own = ir_own_kind(o);
        if (own != KERNEL_KINDS) return ir_own_space(o);
        if (reduces && (k->kind == KERNEL_ROW || k->kind == KERNEL_COLUMN)) return o->in[0];
        if (o->code == OP_assign && !space.id) space = o->in[1];
        if (o->code == OP_reduce_or && !space.id) space = o->in[0];
        if (o->n_out && !is_copy(x, o) && o->code != OP_reduce_or) return o->out[0];
        if (o->n_out && o->n_in && is_copy(x, o)) space = o->out[0];
    }
    return space;
}

/* ---- inlined values: computed where pooling reads them ---------------------------------------------------------- */

/* Read by one window op only, or by an inlined op; elementwise, and the same wherever it is computed. */
static void mark_inlined(Check *x, const Kernel *k) {
    const Func *f = x->f;
    for (int i = k->count - 1; i >= 0; i--) {
        const Op *o = ir_op_at(f, k->first + i);
        bool pools = ir_takes_inlined(f, o);
        if (!pools && !(o->n_out && x->inlined[o->out[0].id])) continue;
        if (pools && !is_own(x, ir_memory_source(f, o->in[0]))) continue;
        for (int n = 0; n < o->n_in; n++) {
            Dim rows, cols;
            shape_matrix(ir_shape(f, pools ? o->in[0] : o->out[0]), &rows, &cols);
            x->inlined[o->in[n].id] = is_own(x, o->in[n]) && same_matrix(x, o->in[n], rows, cols);
        }
    }
}

static void check_inlined(Check *x, const Op *reader, Val v) {
    const Op *o = ir_def(x->f, v);
    bool pools = ir_takes_inlined(x->f, reader), simple = ir_op_info[o->code].flags & ELEMENTWISE || is_copy(x, o);
    if (x->f->kernels.data[x->k]->kind != KERNEL_TILE || !simple || ir_op_info[o->code].flags & RANDOM ||
        o->code == OP_iota || o->code == OP_broadcast)
        fail(x, o, "cannot be computed while pooling reads it");
    if (!pools && !(reader->n_out && x->inlined[reader->out[0].id]))
        fail(x, reader, "reads a value that only pooling may read");
}

/* ---- rules for every kernel -------------------------------------------------------------------------------------- */

static void check_inputs(Check *x, const Op *o) {
    for (int i = 0; i < o->n_in; i++) {
        const Op *def = ir_def(x->f, o->in[i]);
        if (!def || !ir_reads_elements(o, i)) continue;
        bool free_op = def->code == OP_const || def->code == OP_iota || def->code == OP_extent;
        if (is_own(x, o->in[i]) && def->code == OP_reduce_or) fail(x, o, "reads a flag of its own kernel");
        bool on_load = loads(x) && is_read_on_load(x, o);
        Val source = ir_is_product(o) || ir_is_attention(o) || on_load ? loaded_from(x, o->in[i])
                                                                       : ir_memory_source(x->f, o->in[i]);
        bool memory = ir_reads_memory(x->f, o, i) && !ir_is_segment_expand(x->f, o, x->segment);
        if (memory && is_own(x, source) && !x->inlined[o->in[i].id] && !(o->n_out && x->stored[o->out[0].id]))
            fail(x, o, "its operands must be in memory");
        if (x->inlined[o->in[i].id]) check_inlined(x, o, o->in[i]);
        if (!is_own(x, o->in[i]) && free_op) fail(x, o, "reads a const, iota or extent of another kernel");
        const Kernel *from = x->maker[o->in[i].id] >= 0 ? x->f->kernels.data[x->maker[o->in[i].id]] : NULL;
        if (from && from->pred.id && from->pred.id != x->f->kernels.data[x->k]->pred.id)
            fail(x, o, "reads a result of a kernel that may be skipped");
    }
}

static void check_assign(Check *x, const Kernel *k, const Op *o) {
    Val v = o->in[1];
    if (o->pred.id != k->pred.id) fail(x, o, "has another predicate than its kernel");
    if (k->kind == KERNEL_COLUMN   ? !is_per_segment(x, v)
        : k->kind == KERNEL_SCALAR ? !is_scalar(x, v)
                                   : !is_whole(x, v))
        fail(x, o, "its value does not have the shape of the kernel's space");
}

static void check_op(Check *x, const Kernel *k, const Op *o) {
    check_inputs(x, o);
    if (o->code == OP_assign) check_assign(x, k, o);
    else if (o->code == OP_reduce_or) return;
    else if (o->n_out && x->inlined[o->out[0].id]) return; /* see its reader */
    else if (!is_copy(x, o) && !(fits[k->kind] ? fits[k->kind] : fits_alone)(x, o))
        fail(x, o, "is not allowed in a kernel of this kind and space");
}

static void check_product(Check *x, const Kernel *k) {
    int contracts = 0;
    for (int i = 0; i < k->count; i++) {
        const Op *o = ir_op_at(x->f, k->first + i);
        if (ir_is_product(o) && contracts++) fail(x, o, "is the second product");
        bool operand = o->code == OP_const || is_read_on_load(x, o);
        if (!contracts && !operand) fail(x, o, "comes before the product");
    }
    if (!contracts) fail(x, NULL, "has no product");
}

/* Ops before attention say how it reads its operands; ops after it round its results and concatenate them. */
static void check_attention(Check *x, const Kernel *k) {
    bool found = false;
    for (int i = 0; i < k->count; i++) {
        const Op *o = ir_op_at(x->f, k->first + i);
        const bool after = fits_attention(x, o) || o->code == OP_const || is_widening(x->f, o);
        const bool fits = ir_is_attention(o) || (found ? after : is_read_on_load(x, o));
        if (!fits) fail(x, o, "shares a kernel with attention, which must be alone");
        found = found || ir_is_attention(o);
    }
    if (!found) fail(x, NULL, "has no attention");
}

/* ---- states ------------------------------------------------------------------------------------------------------ */

/* After the kernel that assigns a state, nothing reads its old value or casts of a parameter; in that kernel, no
 * product or movement does. */
static void check_states(Check *x) {
    const Func *f = x->f;
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
    for (x->k = 0; x->k < f->kernels.len; x->k++)
        for (int i = 0; i < f->kernels.data[x->k]->count; i++) {
            const Op *o = ir_op_at(f, f->kernels.data[x->k]->first + i);
            for (int n = o->code == OP_assign; n < o->n_in; n++) {
                int at = ir_reads_elements(o, n) ? assigned[root[o->in[n].id]] : 0;
                if (at && (x->k + 1 > at || (x->k + 1 == at && ir_reads_memory(f, o, n))))
                    fail(x, o, "reads a state, or a cast of it, that has been assigned");
            }
        }
}

const char *kernel_check(const Func *f) {
    Arena *a = f->module->arena;
    Check x = {.f = f};
    x.maker = arena_array(a, int, f->values.len + 1);
    x.reduced = arena_array(a, bool, f->values.len + 1);
    x.inlined = arena_array(a, bool, f->values.len + 1);
    x.stored = attention_stored(f, a);
    for (int i = 0; i < f->values.len; i++) x.maker[i] = -1;
    for (int k = 0; k < f->kernels.len; k++)
        for (int i = 0; i < f->kernels.data[k]->count; i++) {
            const Op *o = ir_op_at(f, f->kernels.data[k]->first + i);
            for (int r = 0; r < o->n_out; r++) x.maker[o->out[r].id] = k;
        }
    for (x.k = 0; x.k < f->kernels.len && !x.wrong; x.k++) {
        const Kernel *k = f->kernels.data[x.k];
        mark_inlined(&x, k);
        Val space = space_of(&x, k);
        x.segment = k->segment;
        if (space.id) shape_matrix(ir_shape(f, space), &x.rows, &x.cols);
        if (k->kind == KERNEL_PRODUCT) check_product(&x, k);
        if (k->kind == KERNEL_ATTENTION) check_attention(&x, k);
        for (int i = 0; i < k->count; i++) check_op(&x, k, ir_op_at(f, k->first + i));
        if (k->pred.id && x.maker[k->pred.id] >= x.k) fail(&x, NULL, "runs before its predicate is known");
    }
    if (!x.wrong) check_states(&x);
    return x.wrong;
}
