/* indirect.c: ops that make their result from memory (docs/design/kernels.md): what they share.
 *
 *     float v12;
 *     {
 *         const int64_t i0 = quotient(r, 784), i1 = ..;      coordinates of the element along the leading dimensions
 *         v12 = get_f32(b3 + ..);
 *     }
 */
#include "codegen/cuda/kernel.h"

CudaMemory cuda_memory(const CudaKernel *k, const Op *o, int n) {
    const Shape *s = ir_shape(k->w->f, o->in[n]);
    CudaMemory m = {.operand = walk_memory_operand(k->w, o, n)};
    Dim rows = dim_const(1), cols = dim_const(1);
    shape_matrix(s, &rows, &cols);
    m.storage = cuda_storage_of(k->w, m.operand);
    m.shape = emit_matrix_shape(s);
    m.cols = emit_dim_factor(k->w->arena, cols);
    return m;
}

const char *cuda_element_at(const CudaKernel *k, const CudaMemory *m, const char *row, const char *column) {
    return arena_printf(k->w->arena, "get_%s(b%d + ((int64_t)(%s) * %s + (%s)))", m->storage->name, m->operand, row,
                        m->cols, column);
}

static const char *stride_text(const CudaKernel *k, const Shape *s, int dim) {
    Dim stride = dim_const(1);
    for (int i = dim + 1; i < s->rank - 1; i++)
        if (!dim_mul(stride, s->d[i], &stride)) return NULL;
    return dim_is_one(stride) ? "r" : arena_printf(k->w->arena, "quotient(r, %s)", emit_dim(k->w->arena, stride));
}

static amp_status put_coordinates(CudaKernel *k, const Op *o) {
    Shape s = emit_matrix_shape(ir_shape(k->w->f, o->out[0]));
    for (int i = 0; i < s.rank - 1; i++) {
        const char *at = stride_text(k, &s, i);
        if (!at)
            return amp_fail(k->e.err, AMP_UNSUPPORTED, "%s: %s: the shape of its result is not built yet for CUDA",
                            walk_name(k->w), ir_op_info[o->code].name);
        if (i) at = arena_printf(k->w->arena, "modulo(%s, %s)", at, emit_dim(k->w->arena, s.d[i]));
        emit_line(&k->e, "MAYBE_UNUSED const int64_t i%d = %s;", i, dim_is_one(s.d[i]) ? "0" : at);
    }
    return AMP_OK;
}

/* ---- one op ------------------------------------------------------------------------------------------------------ */

typedef amp_status (*EmitFn)(CudaKernel *k, const Op *o);

static EmitFn rule_of(Opcode code) {
    switch (code) {
    case OP_reshape:
    case OP_permute:
    case OP_slice:
    case OP_pad:
    case OP_concat:
    case OP_expand:
    case OP_gather: return cuda_emit_move;
    case OP_window_max:
    case OP_window_sum:
    case OP_window_max_grad:
    case OP_window_sum_grad: return cuda_emit_window;
    case OP_batch_contract:
    case OP_conv:
    case OP_conv_data:
    case OP_conv_weight: return cuda_emit_sums;
    default: return NULL;
    }
}

amp_status cuda_emit_indirect(CudaKernel *k, const Op *o) {
    EmitFn rule = rule_of(o->code);
    if (!rule)
        return amp_fail(k->e.err, AMP_UNSUPPORTED, "%s: %s is not built yet for CUDA", walk_name(k->w),
                        ir_op_info[o->code].name);
    for (int r = 0; r < o->n_out; r++)
        emit_line(&k->e, "%s v%d;", emit_type(ir_dtype(k->w->f, o->out[r]), false), walk_number(k->w, o->out[r]));
    emit_block(&k->e);
    AMP_TRY(put_coordinates(k, o));
    AMP_TRY(rule(k, o));
    emit_close(&k->e);
    return AMP_OK;
}

/* ---- values that are made where they are read --------------------------------------------------------------------- */

typedef VEC(Val) Vals;

/* |v|, and before it what it is made from, each once. */
static amp_status emit_inlined(CudaKernel *k, Val v, const char *row, const char *column, Vals *done) {
    const Op *o = ir_def(k->w->f, v);
    for (int i = 0; i < done->len; i++)
        if (done->data[i].id == v.id) return AMP_OK;
    vec_push(k->w->arena, done, v);
    for (int n = 0; n < o->n_in; n++) {
        if (!walk_reads_inlined(k->w, o, n)) continue;
        if (k->w->values[o->in[n].id].made) {
            AMP_TRY(emit_inlined(k, o->in[n], row, column, done));
            continue;
        }
        bool loaded = false;
        for (int i = 0; i < done->len; i++) loaded |= done->data[i].id == o->in[n].id;
        if (loaded) continue;
        vec_push(k->w->arena, done, o->in[n]);
        CudaMemory m = cuda_memory(k, o, n);
        emit_line(&k->e, "const %s v%d = %s;", emit_type(ir_dtype(k->w->f, o->in[n]), false),
                  walk_number(k->w, o->in[n]), cuda_element_at(k, &m, row, column));
    }
    return emit_core_op(&k->e, o);
}

amp_status cuda_emit_inlined(CudaKernel *k, Val v, const char *row, const char *column) {
    Vals done = {0};
    return emit_inlined(k, v, row, column, &done);
}
