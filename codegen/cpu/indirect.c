/* indirect.c: ops that make their result from memory (docs/design/kernels.md): what they share.
 *
 *     vf v12;
 *     {
 *         const int64_t j = col0 + c;                       column of the first lane
 *         const uint64_t row = (uint64_t)(row0 + r);
 *         const int64_t i0 = row / 784, i1 = row / 28 % 28; its coordinates along the leading dimensions
 *         v12 = load_f32(AT_PANELS(m3, ..));                neighbours in the operand where there are, else lane by lane
 *     }
 */
#include "codegen/cpu/kernel.h"

Memory cpu_memory(const CpuKernel *k, const Op *o, int n) {
    const Walk *w = k->w;
    const Shape *s = ir_shape(w->f, o->in[n]);
    Memory m = {.operand = walk_memory_operand(w, o, n), .dtype = ir_dtype(w->f, o->in[n])};
    Dim rows = dim_const(1), cols = dim_const(1);
    shape_matrix(s, &rows, &cols);
    m.layout = walk_operand(w, m.operand)->layout;
    m.storage = cpu_storage_of(w, m.operand);
    m.shape = emit_matrix_shape(s);
    m.cols = emit_dim_factor(w->arena, cols);
    m.rows = arena_printf(w->arena, "(%s + 31) / 32 * 32", emit_dim(w->arena, rows));
    return m;
}

const char *cpu_at(const CpuKernel *k, const Memory *m, const char *row, const char *column) {
    if (m->layout == LAYOUT_PANELS)
        return arena_printf(k->w->arena, "AT_PANELS(m%d, %s, %s, %s)", m->operand, row, column, m->rows);
    return arena_printf(k->w->arena, "AT_ROWS(m%d, %s, %s, %s)", m->operand, row, column, m->cols);
}

/* Dense rows end where they end. */
const char *cpu_vector_at(const CpuKernel *k, const Memory *m, const char *row, const char *column) {
    bool part = k->padded && m->layout == LAYOUT_ROWS;
    return arena_printf(k->w->arena, part ? "load_%s_part(%s, left)" : "load_%s(%s)", m->storage->name,
                        cpu_at(k, m, row, column));
}

const char *cpu_element_at(const CpuKernel *k, const Memory *m, const char *row, const char *column) {
    return arena_printf(k->w->arena, "get_%s(%s)", m->storage->name, cpu_at(k, m, row, column));
}

const char *cpu_lanes(const CpuKernel *k) { return k->padded ? "W && l < left" : "W"; }

/* bool elements are 0 or 1, its lanes masks. */
void cpu_fill_lanes(CpuKernel *k, Val v, const char *element) {
    static const char *const loads[] = {[KIND_F32] = "f32", [KIND_I32] = "i32", [KIND_BOOL] = "bool"};
    Kind kind = emit_kind(ir_dtype(k->w->f, v));
    int id = walk_number(k->w, v);
    emit_line(&k->e, "%s x%d[W] = {0};", kind == KIND_F32 ? "float" : "int32_t", id);
    emit_line(&k->e, "for (int64_t l = 0; l < %s; l++) x%d[l] = %s;", cpu_lanes(k), id, element);
    emit_line(&k->e, "v%d = load_%s(x%d);", id, loads[kind], id);
}

static const char *stride_text(const Walk *w, const Shape *s, int dim) {
    Dim stride = dim_const(1);
    for (int i = dim + 1; i < s->rank - 1; i++)
        if (!dim_mul(stride, s->d[i], &stride)) return NULL;
    return dim_is_one(stride) ? "" : arena_printf(w->arena, " / (uint64_t)(%s)", emit_dim(w->arena, stride));
}

void cpu_put_coordinates(CpuKernel *k, const Shape *s, const char *row, char name) {
    Arena *a = k->w->arena;
    const char *constant = name == 'i' ? "const " : "";
    for (int i = 0; i < s->rank - 1; i++) {
        const char *rest = i ? arena_printf(a, " %% (uint64_t)(%s)", emit_dim(a, s->d[i])) : "";
        const char *at = arena_printf(a, "(int64_t)((uint64_t)(%s)%s%s)", row, stride_text(k->w, s, i), rest);
        emit_line(&k->e, "MAYBE_UNUSED %sint64_t %c%d = %s;", constant, name, i, dim_is_one(s->d[i]) ? "0" : at);
    }
}

void cpu_step_coordinates(CpuKernel *k) {
    int last = k->stepped.rank - 2, open = 0;
    for (int i = last; i > 0; i--) {
        if (dim_is_one(k->stepped.d[i])) continue;
        emit_open(&k->e, "if (++s%d == %s)", i, emit_dim(k->w->arena, k->stepped.d[i]));
        emit_line(&k->e, "s%d = 0;", i);
        open++;
    }
    if (last >= 0) emit_line(&k->e, "s0++;");
    while (open--) emit_close(&k->e);
}

Shape cpu_stepped_shape(const CpuKernel *k) {
    const Walk *w = k->w;
    for (int i = 0; i < w->k->count; i++) {
        const Op *o = walk_op(w, i);
        if (walk_is_indirect(w, o) && w->values[o->out[0].id].needed)
            return emit_matrix_shape(ir_shape(w->f, o->out[0]));
    }
    return (Shape){.rank = 0};
}

static bool has_same_rows(const Shape *a, const Shape *b) {
    bool same = a->rank == b->rank;
    for (int i = 0; i < a->rank - 1 && same; i++) same = dim_equal(a->d[i], b->d[i]);
    return same;
}

/* ---- one op ------------------------------------------------------------------------------------------------------ */

typedef amp_status (*EmitFn)(CpuKernel *k, const Op *o);

static EmitFn rule_of(Opcode code) {
    switch (code) {
    case OP_reshape:
    case OP_permute:
    case OP_slice:
    case OP_pad:
    case OP_concat:
    case OP_expand:
    case OP_gather: return cpu_emit_move;
    case OP_window_max:
    case OP_window_sum:
    case OP_window_max_grad:
    case OP_window_sum_grad: return cpu_emit_window;
    case OP_batch_contract:
    case OP_conv:
    case OP_conv_data:
    case OP_conv_weight: return cpu_emit_sums;
    default: return NULL;
    }
}

/* The i64 and f64 of scalars have no vectors. */
static amp_status check_types(CpuKernel *k, const Op *o) {
    for (int r = 0; r < o->n_out; r++)
        if (!emit_type(ir_dtype(k->w->f, o->out[r]), true))
            return amp_fail(k->e.err, AMP_UNSUPPORTED, "%s: %s of %s is not built yet", walk_name(k->w),
                            ir_op_info[o->code].name, amp_dtype_name(ir_dtype(k->w->f, o->out[r])));
    return AMP_OK;
}

amp_status cpu_emit_indirect(CpuKernel *k, const Op *o) {
    EmitFn rule = rule_of(o->code);
    if (!rule)
        return amp_fail(k->e.err, AMP_UNSUPPORTED, "%s: %s is not built yet", walk_name(k->w),
                        ir_op_info[o->code].name);
    AMP_TRY(check_types(k, o));
    for (int r = 0; r < o->n_out; r++)
        emit_line(&k->e, "%s v%d;", emit_type(ir_dtype(k->w->f, o->out[r]), true), walk_number(k->w, o->out[r]));
    emit_block(&k->e);
    emit_line(&k->e, "MAYBE_UNUSED const int64_t j = col0 + c;");
    Shape s = emit_matrix_shape(ir_shape(k->w->f, o->out[0]));
    emit_line(&k->e, "MAYBE_UNUSED const uint64_t row = (uint64_t)(row0 + r);");
    if (!has_same_rows(&s, &k->stepped)) cpu_put_coordinates(k, &s, "row", 'i');
    else
        for (int i = 0; i < s.rank - 1; i++) emit_line(&k->e, "MAYBE_UNUSED const int64_t i%d = s%d;", i, i);
    AMP_TRY(rule(k, o));
    emit_close(&k->e);
    return AMP_OK;
}

/* ---- values that are made where they are read --------------------------------------------------------------------- */

typedef VEC(Val) Vals;

static amp_status load_inlined(CpuKernel *k, const Op *o, int n, const char *row, const char *column, Vals *done) {
    for (int i = 0; i < done->len; i++)
        if (done->data[i].id == o->in[n].id) return AMP_OK;
    vec_push(k->w->arena, done, o->in[n]);
    Memory m = cpu_memory(k, o, n);
    const char *type = emit_type(ir_dtype(k->w->f, o->in[n]), true);
    if (!type)
        return amp_fail(k->e.err, AMP_UNSUPPORTED, "%s: %s of %s is not built yet", walk_name(k->w),
                        ir_op_info[o->code].name, amp_dtype_name(ir_dtype(k->w->f, o->in[n])));
    emit_line(&k->e, "const %s v%d = %s;", type, walk_number(k->w, o->in[n]), cpu_vector_at(k, &m, row, column));
    return AMP_OK;
}

/* |v|, and before it what it is made from, each once. */
static amp_status emit_inlined(CpuKernel *k, Val v, const char *row, const char *column, Vals *done) {
    const Op *o = ir_def(k->w->f, v);
    for (int i = 0; i < done->len; i++)
        if (done->data[i].id == v.id) return AMP_OK;
    vec_push(k->w->arena, done, v);
    for (int n = 0; n < o->n_in; n++) {
        if (!walk_reads_inlined(k->w, o, n)) continue;
        if (k->w->values[o->in[n].id].made) AMP_TRY(emit_inlined(k, o->in[n], row, column, done));
        else AMP_TRY(load_inlined(k, o, n, row, column, done));
    }
    return emit_core_op(&k->e, o);
}

amp_status cpu_emit_inlined(CpuKernel *k, Val v, const char *row, const char *column) {
    Vals done = {0};
    return emit_inlined(k, v, row, column, &done);
}

void cpu_declare_memory(CpuKernel *k) {
    Walk *w = k->w;
    bool *declared = arena_array(w->arena, bool, w->operands.len + 1);
    for (int i = 0; i < w->k->count; i++) {
        const Op *o = walk_op(w, i);
        bool indirect = walk_is_indirect(w, o);
        if (!o->n_out || !w->values[o->out[0].id].live || (!indirect && !walk_is_inlined(w, o))) continue;
        for (int n = 0; n < o->n_in; n++) {
            if (!indirect && !walk_reads_inlined(w, o, n)) continue;
            int operand = walk_memory_operand(w, o, n);
            if (operand < 0 || declared[operand]) continue;
            declared[operand] = true;
            const char *element = cpu_storage_of(w, operand)->element;
            emit_line(&k->e, "const %s *const m%d = OPERAND(%s, %d, 0);", element, operand, element, operand);
        }
    }
}
