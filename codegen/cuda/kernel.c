/* kernel.c: what the kinds of kernels have in common: the function around them, and what stands in one place of the loop nest
 * (kernel.h; codegen/walk.h says what stands where). */
#include "codegen/cuda/kernel.h"

/* ---- reductions along the line ----------------------------------------------------------------------------------- */

typedef struct Reduction {
    Opcode code;
    const char *f32_start, *i32_start;
    const char *by; /* of prelude/reduce.cuh */
    const char *f32_step, *i32_step;
} Reduction;
static const Reduction reductions[] = {
    {OP_reduce_sum, "0.0f", "0", "Plus", "v%d = v%d + %s;", "v%d = v%d + %s;"},
    {OP_reduce_max, "-INF", "INT32_MIN", "Max", "v%d = max_f32(v%d, %s);", "v%d = max_i32(v%d, %s);"},
    {OP_reduce_min, "INF", "INT32_MAX", "Min", "v%d = min_f32(v%d, %s);", "v%d = min_i32(v%d, %s);"},
};

static const Reduction *reduction_of(const Op *o) {
    for (size_t i = 0; i < sizeof reductions / sizeof reductions[0]; i++)
        if (reductions[i].code == o->code) return &reductions[i];
    return NULL;
}

bool cuda_reduces_in(const CudaKernel *k, const Sink *s, int p) {
    return s->kind == SINK_REDUCE && s->level == p && k->w->values[s->op->out[0].id].needed;
}

amp_status cuda_open_reductions(CudaKernel *k, int p) {
    for (int i = 0; i < k->w->sinks.len; i++) {
        const Sink *s = &k->w->sinks.data[i];
        if (!cuda_reduces_in(k, s, p)) continue;
        Dtype t = ir_dtype(k->w->f, s->value);
        const Reduction *r = reduction_of(s->op);
        if (emit_kind(t) > KIND_I32)
            return amp_fail(k->e.err, AMP_UNSUPPORTED, "%s: %s of %s is not built yet", walk_name(k->w),
                            ir_op_info[s->op->code].name, amp_dtype_name(t));
        emit_line(&k->e, "%s v%d = %s;", emit_type(t, false), walk_number(k->w, s->op->out[0]),
                  emit_kind(t) == KIND_F32 ? r->f32_start : r->i32_start);
    }
    return AMP_OK;
}

static void step_reduction(CudaKernel *k, const Sink *s) {
    const Reduction *r = reduction_of(s->op);
    int id = walk_number(k->w, s->op->out[0]);
    bool is_float = emit_kind(ir_dtype(k->w->f, s->value)) == KIND_F32;
    emit_line(&k->e, is_float ? r->f32_step : r->i32_step, id, id, emit_operand(&k->e, s->value, false));
}

void cuda_close_reductions(CudaKernel *k, int p, const char *reduce) {
    for (int i = 0; i < k->w->sinks.len; i++) {
        const Sink *s = &k->w->sinks.data[i];
        if (!cuda_reduces_in(k, s, p)) continue;
        int id = walk_number(k->w, s->op->out[0]);
        emit_line(&k->e, "v%d = %s<%s%s>(v%d);", id, reduce, reduction_of(s->op)->by, k->reduce_shape, id);
    }
}

/* ---- what stands in one place of the loop nest ------------------------------------------------------------------- */

typedef bool (*PlaceFn)(const CudaKernel *k, Val v);

static bool has_lines(const CudaKernel *k) { return k->w->k->kind == KERNEL_ROW || k->w->k->kind == KERNEL_COLUMN; }
static bool is_one(const CudaKernel *k, Val v) { return k->w->values[v.id].span == SPAN_ONE; }
static bool is_line(const CudaKernel *k, Val v) {
    return has_lines(k) && k->w->values[v.id].span == walk_line_span(k->w);
}
static bool is_step(const CudaKernel *k, Val v) {
    const ValueWalk *x = &k->w->values[v.id];
    return has_lines(k) ? x->touched && walk_is_inner(k->w, x->span) : x->needed && x->span != SPAN_ONE;
}

typedef amp_status (*LoadFn)(CudaKernel *k, Val v);

/* Each input of needed ops for which |here| holds, once. */
static amp_status for_inputs(CudaKernel *k, PlaceFn here, LoadFn load) {
    k->place++;
    for (int i = 0; i < k->w->k->count; i++) {
        const Op *o = walk_op(k->w, i);
        for (int n = 0; n < o->n_in; n++) {
            ValueWalk *x = &k->w->values[o->in[n].id];
            if (!walk_reads(k->w, o, n) || x->made || !x->needed || !here(k, o->in[n]) || x->loaded == k->place)
                continue;
            x->loaded = k->place;
            AMP_TRY(load(k, o->in[n]));
        }
    }
    return AMP_OK;
}

static amp_status take_element(CudaKernel *k, Val v) {
    cuda_take_element(k, v);
    return AMP_OK;
}

static bool is_expression(const Op *o) { return o->n_out && !emit_rules[o->code].by_walk; }

static amp_status emit_op(CudaKernel *k, const Op *o) {
    return walk_is_indirect(k->w, o) ? cuda_emit_indirect(k, o) : emit_core_op(&k->e, o);
}

/* Ops that are expressions, of this place and level (-1: any). */
static amp_status emit_ops(CudaKernel *k, PlaceFn here, int level) {
    for (int i = 0; i < k->w->k->count; i++) {
        const Op *o = walk_op(k->w, i);
        if (!is_expression(o)) continue;
        const ValueWalk *x = &k->w->values[o->out[0].id];
        if (x->needed && here(k, o->out[0]) && (level < 0 || x->level == level)) AMP_TRY(emit_op(k, o));
    }
    return AMP_OK;
}

static void or_flag(CudaKernel *k, const Sink *s) {
    bool part = k->part && k->w->values[s->value.id].span == SPAN_FULL;
    const char *value = emit_operand(&k->e, s->value, false);
    if (part) emit_line(&k->e, "any%d |= %s < left && %s;", s->operand, k->index, value);
    else emit_line(&k->e, "any%d |= %s;", s->operand, value);
}

/* Stores and flags that all elements of a thread share. */
static amp_status emit_shared_sinks(CudaKernel *k, PlaceFn here) {
    for (int i = 0; i < k->w->sinks.len; i++) {
        const Sink *s = &k->w->sinks.data[i];
        if (s->kind == SINK_REDUCE || !here(k, s->value)) continue;
        if (s->kind == SINK_FLAG) or_flag(k, s);
        else AMP_TRY(cuda_store_one(k, s));
    }
    return AMP_OK;
}

amp_status cuda_emit_once(CudaKernel *k) {
    bool *declared = arena_array(k->w->arena, bool, k->w->operands.len + 1);
    for (int i = 0; i < k->w->sinks.len; i++) {
        const Sink *s = &k->w->sinks.data[i];
        if (s->kind != SINK_FLAG || declared[s->operand]) continue;
        declared[s->operand] = true;
        emit_line(&k->e, "int32_t any%d = 0;", s->operand);
    }
    AMP_TRY(for_inputs(k, is_one, cuda_load));
    return emit_ops(k, is_one, -1);
}

amp_status cuda_finish_once(CudaKernel *k) {
    AMP_TRY(emit_shared_sinks(k, is_one));
    bool *stored = arena_array(k->w->arena, bool, k->w->operands.len + 1);
    for (int i = 0; i < k->w->sinks.len; i++) {
        const Sink *s = &k->w->sinks.data[i];
        if (s->kind != SINK_FLAG || stored[s->operand]) continue;
        stored[s->operand] = true;
        emit_line(&k->e, "if (any%d) *b%d = 1;", s->operand, s->operand);
    }
    return AMP_OK;
}

amp_status cuda_load_line(CudaKernel *k) { return for_inputs(k, is_line, cuda_load); }
amp_status cuda_emit_line_ops(CudaKernel *k, int level) { return emit_ops(k, is_line, level); }
amp_status cuda_store_line(CudaKernel *k) { return emit_shared_sinks(k, is_line); }

/* ---- results in the place of operands ----------------------------------------------------------------------------- */

static bool loads_full(const CudaKernel *k, int p) {
    Walk *w = k->w;
    walk_phase(w, p);
    for (int i = 0; i < w->k->count; i++) {
        const Op *o = walk_op(w, i);
        for (int n = 0; n < o->n_in; n++) {
            const ValueWalk *x = &w->values[o->in[n].id];
            if (walk_reads(w, o, n) && !x->made && x->touched && x->span == SPAN_FULL) return true;
        }
    }
    return false;
}

void cuda_delay_stores(CudaKernel *k) {
    Walk *w = k->w;
    int last = w->phases - 1;
    while (last > 0 && !loads_full(k, last)) last--;
    for (int i = 0; i < w->sinks.len; i++) {
        Sink *s = &w->sinks.data[i];
        if (s->kind == SINK_STORE && w->values[s->value.id].span == SPAN_FULL && s->level < last) s->level = last;
    }
}

/* ---- the elements of a phase ------------------------------------------------------------------------------------- */

static bool sinks_here(const CudaKernel *k, const Sink *s, int p) {
    return s->kind != SINK_REDUCE && s->level == p && is_step(k, s->value);
}

bool cuda_has_phase(const CudaKernel *k, int p) {
    for (int i = 0; i < k->w->sinks.len; i++) {
        const Sink *s = &k->w->sinks.data[i];
        if (cuda_reduces_in(k, s, p)) return true;
        if (s->kind != SINK_REDUCE && s->level == p && walk_is_inner(k->w, k->w->values[s->value.id].span)) return true;
    }
    return false;
}

static amp_status emit_element_ops(CudaKernel *k, int p) {
    for (int i = 0; i < k->w->k->count; i++) {
        const Op *o = walk_op(k->w, i);
        if (!is_expression(o) || !is_step(k, o->out[0])) continue;
        const ValueWalk *x = &k->w->values[o->out[0].id];
        int id = walk_number(k->w, o->out[0]);
        if (x->kept && x->level < p) {
            emit_line(&k->e, "const %s v%d = kept%d%s[%s];", emit_type(ir_dtype(k->w->f, o->out[0]), false), id, id,
                      k->slot, k->index);
            continue;
        }
        AMP_TRY(emit_op(k, o));
        if (x->kept) emit_line(&k->e, "kept%d%s[%s] = v%d;", id, k->slot, k->index, id);
    }
    return AMP_OK;
}

/* Whether the text of the elements names c: not only in their places in memory. */
static bool names_column(const CudaKernel *k) {
    const Walk *w = k->w;
    for (int i = 0; i < w->k->count; i++) {
        const Op *o = walk_op(w, i);
        if (!o->n_out || !is_step(k, o->out[0])) continue;
        if (o->code == OP_iota || (o->code == OP_random && !k->flat) || walk_is_indirect(w, o)) return true;
    }
    for (int i = 0; i < w->sinks.len && !has_lines(k); i++)
        if (w->values[w->sinks.data[i].value.id].span == SPAN_ROW) return true;
    return false;
}

static void open_elements(CudaKernel *k) {
    if (k->vector == 1) return;
    emit_line(&k->e, "UNROLL");
    emit_open(&k->e, "for (int i = 0; i < %d; i++)", k->vector);
    if (names_column(k)) emit_line(&k->e, "MAYBE_UNUSED const int32_t c = c0 + i;");
}

amp_status cuda_emit_elements(CudaKernel *k, int p) {
    Walk *w = k->w;
    k->phase = p;
    AMP_TRY(for_inputs(k, is_step, cuda_load));
    for (int i = 0; i < w->sinks.len; i++) {
        const Sink *s = &w->sinks.data[i];
        if (s->kind == SINK_STORE && sinks_here(k, s, p)) AMP_TRY(cuda_declare_store(k, s));
    }
    open_elements(k);
    AMP_TRY(for_inputs(k, is_step, take_element));
    AMP_TRY(emit_element_ops(k, p));
    for (int i = 0; i < w->sinks.len; i++) {
        const Sink *s = &w->sinks.data[i];
        if (cuda_reduces_in(k, s, p)) step_reduction(k, s);
        else if (sinks_here(k, s, p) && s->kind == SINK_FLAG) or_flag(k, s);
        else if (sinks_here(k, s, p)) cuda_store_element(k, s);
    }
    if (k->vector > 1) emit_close(&k->e);
    for (int i = 0; i < w->sinks.len; i++) {
        const Sink *s = &w->sinks.data[i];
        if (s->kind == SINK_STORE && sinks_here(k, s, p)) cuda_store_vector(k, s);
    }
    return AMP_OK;
}

bool cuda_needs_coordinates(const CudaKernel *k) {
    const Walk *w = k->w;
    for (int i = 0; i < w->k->count; i++) {
        const Op *o = walk_op(w, i);
        if (!o->n_out || !w->values[o->out[0].id].needed) continue;
        if (o->code == OP_iota || walk_is_indirect(w, o)) return true;
        Span span = w->values[o->out[0].id].span;
        if (span == SPAN_ROW || span == SPAN_COLUMN) return true;
        for (int n = 0; n < o->n_in; n++) {
            span = w->values[o->in[n].id].span;
            if (walk_reads(w, o, n) && (span == SPAN_ROW || span == SPAN_COLUMN)) return true;
        }
    }
    return false;
}

/* ---- the function ------------------------------------------------------------------------------------------------ */

static bool is_written(const Walk *w, int operand) {
    for (int i = 0; i < w->k->writes.len; i++)
        if (w->k->writes.data[i] == w->operands.data[operand]) return true;
    return false;
}

static const char *pointer_type(const Walk *w, int operand) {
    return arena_printf(w->arena, "%s%s *", is_written(w, operand) ? "" : "const ",
                        cuda_storage_of(w, operand)->element);
}

static void put_parameters(CudaKernel *k) {
    Walk *w = k->w;
    for (int i = 0; i < w->operands.len; i++) text_printf(k->e.out, "%sb%d, ", pointer_type(w, i), i);
    if (w->k->pred.id) text_puts(k->e.out, "const int32_t *predicate, ");
}

/* Pointers out of a table, by member where there is a batch. */
static void declare_operands(CudaKernel *k, bool batch) {
    Walk *w = k->w;
    const char *from = batch ? "operand" : "operands";
    int count = w->operands.len + (w->k->pred.id != 0);
    if (batch) emit_line(&k->e, "void *const *const operand = operands + member * %d;", count);
    for (int i = 0; i < w->operands.len; i++)
        emit_line(&k->e, "MAYBE_UNUSED %sconst b%d = (%s)%s[%d];", pointer_type(w, i), i, pointer_type(w, i), from, i);
    if (w->k->pred.id) emit_line(&k->e, "const int32_t *const predicate = (const int32_t *)%s[%d];", from, count - 1);
}

amp_status cuda_open_function(CudaKernel *k, int threads, int members) {
    Walk *w = k->w;
    int count = w->operands.len + (w->k->pred.id != 0);
    bool table = members || count > CUDA_PARAM_OPERANDS;
    for (int i = 0; i < w->operands.len; i++)
        if (walk_operand(w, i)->layout != LAYOUT_ROWS)
            return amp_fail(k->e.err, AMP_UNSUPPORTED, "%s: buffer %s is not in rows", walk_name(w),
                            walk_operand(w, i)->name);
    k->body->operand_table = table;
    k->body->launch.block[0] = threads;
    k->body->launch.block[1] = k->body->launch.block[2] = 1;
    text_printf(k->e.out, "extern \"C\" __global__ void __launch_bounds__(%d", threads);
    if (k->min_blocks) text_printf(k->e.out, ", %d", k->min_blocks);
    text_puts(k->e.out, ") @(");
    if (table) text_puts(k->e.out, "void *const *operands, ");
    else put_parameters(k);
    text_puts(k->e.out, members ? "int64_t n, const int64_t *member_elements)\n{\n" : "int64_t n)\n{\n");
    if (members) {
        emit_line(&k->e, "int64_t block = blockIdx.x;");
        emit_line(&k->e, "const int member = find_member(member_elements, %d, %d, &block);", members,
                  threads * k->vector);
    }
    if (table) declare_operands(k, members > 0);
    if (w->k->pred.id) emit_line(&k->e, "if (!*predicate) return;");
    return AMP_OK;
}

void cuda_close_function(CudaKernel *k) {
    text_puts(k->e.out, "}\n");
    k->body->source = text_str(k->e.out);
}

/* ---- kinds ------------------------------------------------------------------------------------------------------- */

amp_status cuda_emit_kernel(Walk *w, int members, CudaBody *out, amp_error *err) {
    Text *text = arena_alloc(w->arena, sizeof *text);
    *out = (CudaBody){.min_arch = 75};
    if (w->k->kind == KERNEL_PRODUCT) return cuda_emit_product(w, out, err);
    text_init(text, w->arena);
    CudaKernel k = {
        .e = {.w = w, .out = text, .indent = 1, .err = err, .per_thread = true},
        .w = w,
        .body = out,
        .vector = 1,
        .index = "0",
        .slot = "",
        .reduce_shape = "",
        .first_phase = arena_array(w->arena, int, w->f->values.len + 1),
    };
    switch (w->k->kind) {
    case KERNEL_TILE: return cuda_emit_tile(&k, members);
    case KERNEL_ROW: return cuda_emit_row(&k);
    case KERNEL_COLUMN: return cuda_emit_column(&k);
    case KERNEL_SCALAR: return cuda_emit_scalar(&k);
    default: return cuda_emit_scatter(&k);
    }
}
