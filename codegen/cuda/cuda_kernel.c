/* cuda_kernel.c: what the kinds of kernels have in common: the function around them, what is CUDA's spelling
 * (codegen/emit.h) of what they hold, and the elements of a thread (cuda_kernel.h). */
#include "codegen/cuda/cuda_kernel.h"

/* ---- reductions along the line ----------------------------------------------------------------------------------- */

amp_status cuda_open_reductions(CudaKernel *k, int p) {
    for (int i = 0; i < k->w->sinks.len; i++) {
        const Sink *s = &k->w->sinks.data[i];
        if (!loop_reduces_in(k->w, s, p)) continue;
        AMP_TRY(loop_check_reduction(&k->e, s));
        emit_line(&k->e, "%s v%d = %s;", emit_type(ir_dtype(k->w->f, s->value), false),
                  walk_number(k->w, s->op->out[0]), loop_start(&k->e, s));
    }
    return AMP_OK;
}

static void step_reduction(CudaKernel *k, const Sink *s) {
    const char *type = emit_suffix(ir_dtype(k->w->f, s->value), false), *value = emit_operand(&k->e, s->value, false);
    int id = walk_number(k->w, s->op->out[0]);
    if (s->op->code == OP_reduce_sum) emit_line(&k->e, "v%d = v%d + %s;", id, id, value);
    else emit_line(&k->e, "v%d = %s_%s(v%d, %s);", id, loop_reduction(s)->function, type, id, value);
}

void cuda_close_reductions(CudaKernel *k, int p, const char *reduce) {
    for (int i = 0; i < k->w->sinks.len; i++) {
        const Sink *s = &k->w->sinks.data[i];
        if (!loop_reduces_in(k->w, s, p)) continue;
        int id = walk_number(k->w, s->op->out[0]);
        emit_line(&k->e, "v%d = %s<%s%s>(v%d);", id, reduce, loop_reduction(s)->functor, k->reduce_shape, id);
    }
}

/* ---- the spelling ------------------------------------------------------------------------------------------------ */

static amp_status load(Emitter *e, Val v) { return cuda_load((CudaKernel *)e, v); }
static amp_status store(Emitter *e, const Sink *s) { return cuda_store_one((CudaKernel *)e, s); }

static void or_flag(Emitter *e, const Sink *s) {
    const CudaKernel *k = (const CudaKernel *)e;
    bool part = k->part && k->w->values[s->value.id].span == SPAN_FULL;
    const char *value = emit_operand(e, s->value, false);
    if (part) emit_line(e, "any%d |= %s < left && %s;", s->operand, k->index, value);
    else emit_line(e, "any%d |= %s;", s->operand, value);
}

static void load_kept(Emitter *e, Val v) {
    const CudaKernel *k = (const CudaKernel *)e;
    int id = walk_number(e->w, v);
    emit_line(e, "const %s v%d = kept%d%s[%s];", emit_type(ir_dtype(e->w->f, v), false), id, id, k->slot, k->index);
}

static void keep(Emitter *e, Val v) {
    const CudaKernel *k = (const CudaKernel *)e;
    int id = walk_number(e->w, v);
    emit_line(e, "kept%d%s[%s] = v%d;", id, k->slot, k->index, id);
}

const Spelling cuda_spelling = {
    .name = " for CUDA",
    .row = "r",
    .column = "c",
    .lane = "c",
    .zero = "0.0f",
    .splat = "%s",
    .load = load,
    .store = store,
    .or_flag = or_flag,
    .load_kept = load_kept,
    .keep = keep,
    .put_coordinates = cuda_put_coordinates,
    .element_at = cuda_element_at,
    .vector_at = cuda_element_at,
};

/* ---- values outside of the elements ------------------------------------------------------------------------------ */

amp_status cuda_emit_once(CudaKernel *k) {
    bool *declared = arena_array(k->w->arena, bool, k->w->operands.len + 1);
    for (int i = 0; i < k->w->sinks.len; i++) {
        const Sink *s = &k->w->sinks.data[i];
        if (s->kind != SINK_FLAG || declared[s->operand]) continue;
        declared[s->operand] = true;
        emit_line(&k->e, "int32_t any%d = 0;", s->operand);
    }
    AMP_TRY(loop_inputs(&k->e, loop_is_one, load));
    return loop_ops(&k->e, loop_is_one, -1);
}

amp_status cuda_finish_once(CudaKernel *k) {
    AMP_TRY(loop_sinks(&k->e, loop_is_one, -1));
    bool *stored = arena_array(k->w->arena, bool, k->w->operands.len + 1);
    for (int i = 0; i < k->w->sinks.len; i++) {
        const Sink *s = &k->w->sinks.data[i];
        if (s->kind != SINK_FLAG || stored[s->operand]) continue;
        stored[s->operand] = true;
        emit_line(&k->e, "if (any%d) *b%d = 1;", s->operand, s->operand);
    }
    return AMP_OK;
}

amp_status cuda_load_line(CudaKernel *k) { return loop_inputs(&k->e, loop_is_line, load); }
amp_status cuda_emit_line_ops(CudaKernel *k, int level) { return loop_ops(&k->e, loop_is_line, level); }
amp_status cuda_store_line(CudaKernel *k) { return loop_sinks(&k->e, loop_is_line, -1); }

/* ---- results in the place of operands ---------------------------------------------------------------------------- */

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
    return s->kind != SINK_REDUCE && s->level == p && loop_is_step(&k->e, s->value);
}

/* Whether the text of the elements names c: not only in their places in memory. */
static bool names_column(const CudaKernel *k) {
    const Walk *w = k->w;
    for (int i = 0; i < w->k->count; i++) {
        const Op *o = walk_op(w, i);
        if (!o->n_out || !loop_is_step(&k->e, o->out[0])) continue;
        if (o->code == OP_iota || (o->code == OP_random && !k->flat) || walk_is_indirect(w, o)) return true;
    }
    for (int i = 0; i < w->sinks.len && !loop_has_lines(&k->e); i++)
        if (w->values[w->sinks.data[i].value.id].span == SPAN_ROW) return true;
    return false;
}

static amp_status take_element(Emitter *e, Val v) {
    cuda_take_element((CudaKernel *)e, v);
    return AMP_OK;
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
    AMP_TRY(loop_inputs(&k->e, loop_is_step, load));
    for (int i = 0; i < w->sinks.len; i++) {
        const Sink *s = &w->sinks.data[i];
        if (s->kind == SINK_STORE && sinks_here(k, s, p)) AMP_TRY(cuda_declare_store(k, s));
    }
    open_elements(k);
    AMP_TRY(loop_inputs(&k->e, loop_is_step, take_element));
    AMP_TRY(loop_step_ops(&k->e, p));
    for (int i = 0; i < w->sinks.len; i++) {
        const Sink *s = &w->sinks.data[i];
        if (loop_reduces_in(w, s, p)) step_reduction(k, s);
        else if (sinks_here(k, s, p) && s->kind == SINK_FLAG) or_flag(&k->e, s);
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
    return arena_printf(w->arena, "%s%s *", is_written(w, operand) ? "" : "const ", emit_storage(w, operand)->element);
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

/* One thread, scalars of any type. */
static amp_status emit_scalar(CudaKernel *k) {
    AMP_TRY(cuda_open_function(k, 1, 0));
    AMP_TRY(cuda_emit_once(k));
    AMP_TRY(cuda_finish_once(k));
    cuda_close_function(k);
    return AMP_OK;
}

amp_status cuda_emit_kernel(Walk *w, int members, CudaBody *out, amp_error *err) {
    Text *text = arena_alloc(w->arena, sizeof *text);
    *out = (CudaBody){.min_arch = 75};
    if (w->k->kind == KERNEL_PRODUCT) return cuda_emit_product(w, out, err);
    text_init(text, w->arena);
    CudaKernel k = {
        .e = {.w = w, .spelling = &cuda_spelling, .out = text, .indent = 1, .err = err, .per_thread = true},
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
    case KERNEL_SCALAR: return emit_scalar(&k);
    default: return cuda_emit_scatter(&k);
    }
}
