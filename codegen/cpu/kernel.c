/* kernel.c: the loops of a kernel, its loads and its stores (walk.h says what stands where).
 *
 *     row kernel                                              any other
 *     for r in rows {                                         for c in the columns of the panel, W at a time {
 *         for c in all columns, 16 at a time, W at a time {       for r in rows {
 */
#include "codegen/cpu/kernel.h"

/* ---- reductions along the line ----------------------------------------------------------------------------------- */

typedef struct Reduction {
    Opcode code;
    const char *f32_start, *i32_start;
    const char *combine, *tree; /* functions of prelude/math.h, less the type */
} Reduction;
static const Reduction reductions[] = {
    {OP_reduce_sum, "0.0f", "0", "plus", "tree_plus"},
    {OP_reduce_max, "-INF", "INT32_MIN", "max", "tree_max"},
    {OP_reduce_min, "INF", "INT32_MAX", "min", "tree_min"},
};

static const Reduction *reduction_of(const Op *o) {
    for (size_t i = 0; i < sizeof reductions / sizeof reductions[0]; i++)
        if (reductions[i].code == o->code) return &reductions[i];
    return NULL;
}

/* The value with which an accumulator starts, and which lanes past the edge give. */
static const char *start_of(const CpuKernel *k, const Sink *s) {
    const Reduction *r = reduction_of(s->op);
    bool is_float = emit_kind(ir_dtype(k->w->f, s->value)) == KIND_F32;
    return arena_printf(k->w->arena, is_float ? "splat_f(%s)" : "splat_i(%s)", is_float ? r->f32_start : r->i32_start);
}

static amp_status open_reduction(CpuKernel *k, const Sink *s) {
    Dtype t = ir_dtype(k->w->f, s->value);
    int id = walk_number(k->w, s->op->out[0]);
    if (emit_kind(t) > KIND_I32)
        return amp_fail(k->e.err, AMP_UNSUPPORTED, "%s: %s of %s is not built yet", walk_name(k->w),
                        ir_op_info[s->op->code].name, amp_dtype_name(t));
    if (!k->w->by_row) {
        emit_line(&k->e, "%s v%d = %s;", emit_type(t, true), id, start_of(k, s));
        return AMP_OK;
    }
    emit_line(&k->e, "%s sum%d[16 / W];", emit_type(t, true), id);
    emit_line(&k->e, "for (int q = 0; q < 16 / W; q++) sum%d[q] = %s;", id, start_of(k, s));
    return AMP_OK;
}

static void step_reduction(CpuKernel *k, const Sink *s) {
    const char *suffix = emit_suffix(ir_dtype(k->w->f, s->value), true), *combine = reduction_of(s->op)->combine;
    const char *value = emit_operand(&k->e, s->value, true);
    int id = walk_number(k->w, s->op->out[0]);
    if (!k->w->by_row) {
        emit_line(&k->e, "v%d = %s_%s(v%d, %s);", id, combine, suffix, id, value);
        return;
    }
    if (k->padded) value = arena_printf(k->w->arena, "select_%s(in, %s, %s)", suffix, value, start_of(k, s));
    emit_line(&k->e, "sum%d[q] = %s_%s(sum%d[q], %s);", id, combine, suffix, id, value);
}

static void close_reduction(CpuKernel *k, const Sink *s) {
    Dtype t = ir_dtype(k->w->f, s->value);
    int id = walk_number(k->w, s->op->out[0]);
    if (k->w->by_row)
        emit_line(&k->e, "const %s v%d = %s_%s(sum%d);", emit_type(t, false), id, reduction_of(s->op)->tree,
                  emit_suffix(t, true), id);
}

/* ---- what stands in one place of the loop nest ------------------------------------------------------------------- */

static amp_status load_once(CpuKernel *k, Val v) {
    int *loaded = &k->w->values[v.id].loaded;
    if (*loaded == k->place) return AMP_OK;
    *loaded = k->place;
    return cpu_load(k, v);
}

/* Inputs of needed ops and sinks for which |here| holds. */
typedef bool (*PlaceFn)(const CpuKernel *k, Val v);

static amp_status load_inputs(CpuKernel *k, PlaceFn here) {
    for (int i = 0; i < k->w->k->count; i++) {
        const Op *o = walk_op(k->w, i);
        for (int n = 0; n < o->n_in; n++) {
            const ValueWalk *x = &k->w->values[o->in[n].id];
            if (walk_reads(k->w, o, n) && !x->made && x->needed && here(k, o->in[n])) AMP_TRY(load_once(k, o->in[n]));
        }
    }
    return AMP_OK;
}

static bool is_one(const CpuKernel *k, Val v) { return k->w->values[v.id].span == SPAN_ONE; }
static bool is_line(const CpuKernel *k, Val v) { return k->w->values[v.id].span == walk_line_span(k->w); }
static bool is_step(const CpuKernel *k, Val v) {
    return k->w->values[v.id].touched && walk_is_inner(k->w, k->w->values[v.id].span);
}

static amp_status emit_op(CpuKernel *k, const Op *o) {
    return walk_is_indirect(k->w, o) ? cpu_emit_indirect(k, o) : emit_core_op(&k->e, o);
}

/* Ops that are expressions, of this place and level (-1: any). */
static amp_status emit_ops(CpuKernel *k, PlaceFn here, int level) {
    for (int i = 0; i < k->w->k->count; i++) {
        const Op *o = walk_op(k->w, i);
        if (!o->n_out || emit_rules[o->code].by_walk) continue;
        const ValueWalk *x = &k->w->values[o->out[0].id];
        if (x->needed && here(k, o->out[0]) && (level < 0 || x->level == level)) AMP_TRY(emit_op(k, o));
    }
    return AMP_OK;
}

static void or_flag(CpuKernel *k, const Sink *s) {
    const char *value = emit_operand(&k->e, s->value, true);
    bool edge = k->padded && k->w->values[s->value.id].span != SPAN_ONE && !(k->w->by_row && is_line(k, s->value));
    emit_line(&k->e, edge ? "any%d |= keep_vi(%s, in);" : "any%d |= %s;", s->operand, value);
}

/* Stores and flags of this place. */
static amp_status emit_sinks(CpuKernel *k, PlaceFn here, int level) {
    for (int i = 0; i < k->w->sinks.len; i++) {
        const Sink *s = &k->w->sinks.data[i];
        if (s->kind == SINK_REDUCE || !here(k, s->value) || (level >= 0 && s->level != level)) continue;
        if (s->kind == SINK_FLAG) or_flag(k, s);
        else AMP_TRY(cpu_store(k, s));
    }
    return AMP_OK;
}

/* ---- a phase: one loop along the line ---------------------------------------------------------------------------- */

static bool reduces_in(const CpuKernel *k, const Sink *s, int p) {
    return s->kind == SINK_REDUCE && s->level == p && k->w->values[s->op->out[0].id].needed;
}

static bool has_steps(const CpuKernel *k, int p) {
    for (int i = 0; i < k->w->sinks.len; i++) {
        const Sink *s = &k->w->sinks.data[i];
        if (reduces_in(k, s, p) ||
            (s->kind != SINK_REDUCE && s->level == p && walk_is_inner(k->w, k->w->values[s->value.id].span)))
            return true;
    }
    return false;
}

static void declare_edge(CpuKernel *k) {
    if (!k->padded) return;
    emit_line(&k->e, "MAYBE_UNUSED const int64_t left = COLS - col0 - c;");
    emit_line(&k->e, "MAYBE_UNUSED const vi in = first_lanes(left);");
}

static void open_steps(CpuKernel *k) {
    if (!k->w->by_row) {
        emit_block(&k->e); /* of the coordinates: each phase has its own */
        cpu_put_coordinates(k, &k->stepped, "row0", 's');
        emit_open(&k->e, "for (int64_t r = 0; r < rows; r++)");
        return;
    }
    emit_open(&k->e, "for (int64_t c0 = 0; c0 < %s; c0 += 16)", k->w->writes_tiles ? "PADDED_COLS" : "COLS");
    emit_line(&k->e, "UNROLL");
    emit_open(&k->e, "for (int q = 0; q < 16 / W; q++)");
    emit_line(&k->e, "const int64_t c = c0 + q * W;");
    declare_edge(k);
}

static void close_steps(CpuKernel *k) {
    if (!k->w->by_row) cpu_step_coordinates(k);
    emit_close(&k->e);
    emit_close(&k->e); /* the block, or the loop over the vectors of 16 columns */
}

/* Values of the phase: computed, or found again where an earlier phase kept them. */
static amp_status emit_steps(CpuKernel *k, int p) {
    AMP_TRY(load_inputs(k, is_step));
    for (int i = 0; i < k->w->k->count; i++) {
        const Op *o = walk_op(k->w, i);
        if (!o->n_out || !is_step(k, o->out[0]) || emit_rules[o->code].by_walk) continue;
        const ValueWalk *x = &k->w->values[o->out[0].id];
        Dtype t = ir_dtype(k->w->f, o->out[0]);
        const char *memory = emit_kind(t) == KIND_F32 ? "f32" : "i32";
        int id = walk_number(k->w, o->out[0]);
        if (x->kept && x->level < p) {
            emit_line(&k->e, "const %s v%d = load_%s(kept%d + c);", emit_type(t, true), id, memory, id);
            continue;
        }
        AMP_TRY(emit_op(k, o));
        if (x->kept) emit_line(&k->e, "store_%s(kept%d + c, v%d);", memory, id, id);
    }
    return AMP_OK;
}

static amp_status emit_phase(CpuKernel *k, int p) {
    Walk *w = k->w;
    if (!has_steps(k, p)) return AMP_OK;
    walk_phase(w, p);
    k->place++;
    for (int i = 0; i < w->sinks.len; i++)
        if (reduces_in(k, &w->sinks.data[i], p)) AMP_TRY(open_reduction(k, &w->sinks.data[i]));
    open_steps(k);
    AMP_TRY(emit_steps(k, p));
    for (int i = 0; i < w->sinks.len; i++)
        if (reduces_in(k, &w->sinks.data[i], p)) step_reduction(k, &w->sinks.data[i]);
    AMP_TRY(emit_sinks(k, is_step, p));
    close_steps(k);
    for (int i = 0; i < w->sinks.len; i++)
        if (reduces_in(k, &w->sinks.data[i], p)) close_reduction(k, &w->sinks.data[i]);
    return AMP_OK;
}

/* ---- the function ------------------------------------------------------------------------------------------------ */

/* Whether the last panel's padding need not be computed: narrow spaces whose values all lie in rows. */
static bool is_narrow(const Walk *w) { return w->cols < 32 && !w->writes_tiles; }

static void open_line(CpuKernel *k) {
    if (k->w->by_row) {
        emit_open(&k->e, "for (int64_t r = 0; r < rows; r++)");
        cpu_put_coordinates(k, &k->stepped, "row0 + r", 's');
        return;
    }
    emit_open(&k->e, "for (int64_t c = 0; c < %s; c += W)", is_narrow(k->w) ? "COLS" : "32");
    declare_edge(k);
}

static amp_status emit_lines(CpuKernel *k) {
    open_line(k);
    k->place++;
    AMP_TRY(load_inputs(k, is_line));
    for (int p = 0; p < k->w->phases; p++) {
        AMP_TRY(emit_ops(k, is_line, p));
        AMP_TRY(emit_phase(k, p));
    }
    AMP_TRY(emit_ops(k, is_line, k->w->phases));
    AMP_TRY(emit_sinks(k, is_line, -1));
    emit_close(&k->e);
    return AMP_OK;
}

/* Operands that the function itself touches get a pointer. */
static void declare_operand(CpuKernel *k, int operand, Span span) {
    const Buffer *b = walk_operand(k->w, operand);
    const char *element = cpu_storage_of(k->w, operand)->element;
    const char *offset = cpu_offset(k->w, operand, span);
    bool optional = b->kind == BUFFER_WATCH;
    emit_line(&k->e, "%s *const b%d = %s(%s, %d, %s);", element, operand, optional ? "OPTIONAL_OPERAND" : "OPERAND",
              element, operand, offset);
}

static void declare_operands(CpuKernel *k) {
    Walk *w = k->w;
    for (int i = 0; i < w->operands.len; i++) {
        bool used = false;
        Span span = SPAN_ONE;
        for (int s = 0; s < w->sinks.len; s++) {
            if (w->sinks.data[s].operand != i) continue;
            used = true;
            if (w->sinks.data[s].kind == SINK_STORE) span = w->values[w->sinks.data[s].value.id].span;
        }
        for (int j = 0; j < w->k->count; j++) {
            const Op *o = walk_op(w, j);
            for (int n = 0; n < o->n_in; n++) {
                const ValueWalk *x = &w->values[o->in[n].id];
                if (!walk_reads(w, o, n) || x->made || !x->needed || x->operand != i) continue;
                used = true;
                span = x->span;
            }
        }
        if (used) declare_operand(k, i, span);
    }
}

/* In tiles that end at the last row, what lies past it becomes zero: in panels that is the end of the tile (the rest
 * may be a state that is read first), in the other layouts rows lie side by side, and the whole tile starts as zero. */
static void clear_past_last_row(CpuKernel *k, int operand) {
    const Buffer *b = walk_operand(k->w, operand);
    int bytes = cpu_storage_of(k->w, operand)->bytes;
    bool panels = b->layout == LAYOUT_PANELS, along_columns = panels || b->layout == LAYOUT_PAIRS;
    const char *optional = b->kind == BUFFER_WATCH ? arena_printf(k->w->arena, " && b%d", operand) : "";
    const char *from = panels ? " + rows * 32" : "", *elements = panels ? "(32 - rows) * 32" : "1024";
    const char *stride = along_columns ? "R" : "32", *count = k->w->by_row ? "PADDED_COLS / 32" : "1";
    if (k->w->k->kind == KERNEL_COLUMN) { /* all rows, or those of a segment */
        emit_line(&k->e, "if (row0 + rows == %s%s) clear_tiles(b%d + rows * 32, (R - row0 - rows) * 32 * %d, 0, 1);",
                  emit_dim(k->w->arena, k->w->rows), optional, operand, bytes);
        return;
    }
    emit_line(&k->e, "if (rows < 32%s) clear_tiles(b%d%s, %s * %d, %s * %d, %s);", optional, operand, from, elements,
              bytes, stride, 32 * bytes, count);
}

/* What is written from a Tile is written whole. */
static void clear_last_tiles(CpuKernel *k) {
    Walk *w = k->w;
    for (int i = 0; i < w->sinks.len; i++) {
        const Sink *s = &w->sinks.data[i];
        if (s->kind != SINK_STORE || w->values[s->value.id].span != SPAN_FULL) continue;
        bool whole = cpu_layout_of(w, s->operand)->write && !w->by_row;
        if (walk_operand(w, s->operand)->layout != LAYOUT_ROWS && !whole) clear_past_last_row(k, s->operand);
    }
}

static void declare_locals(CpuKernel *k) {
    Walk *w = k->w;
    for (int i = 0; i < w->sinks.len; i++) {
        const Sink *s = &w->sinks.data[i];
        if (s->kind == SINK_FLAG) emit_line(&k->e, "vi any%d = {0};", s->operand);
        bool tile =
            s->kind == SINK_STORE && w->values[s->value.id].span == SPAN_FULL && cpu_layout_of(w, s->operand)->write;
        if (tile && !w->by_row) emit_line(&k->e, "Tile t%d;", s->operand);
    }
    for (int i = 0; i < w->k->count; i++) {
        const Op *o = walk_op(w, i);
        if (o->n_out && w->values[o->out[0].id].kept)
            emit_line(&k->e, "%s kept%d[PADDED_COLS] __attribute__((aligned(64)));",
                      emit_kind(ir_dtype(w->f, o->out[0])) == KIND_F32 ? "float" : "int32_t",
                      walk_number(w, o->out[0]));
    }
}

static void emit_prologue(CpuKernel *k) {
    Walk *w = k->w;
    emit_line(&k->e, "enum { COLS = %lld, PADDED_COLS = %lld };", (long long)w->cols, (long long)k->padded_cols);
    emit_line(
        &k->e,
        "MAYBE_UNUSED const int64_t n = a->n, row0 = a->row0, col0 = a->col0, rows = a->rows, R = (%s + 31) / 32 * 32;",
        emit_dim(w->arena, w->rows));
    if (w->segment)
        emit_line(&k->e, "MAYBE_UNUSED const int64_t RS = (%s + 31) / 32 * 32;", emit_dim(w->arena, walk_segments(w)));
    declare_operands(k);
    cpu_declare_memory(k);
    declare_locals(k);
    clear_last_tiles(k);
}

static amp_status emit_epilogue(CpuKernel *k) {
    Walk *w = k->w;
    for (int i = 0; i < w->sinks.len; i++)
        if (w->sinks.data[i].kind == SINK_STORE) cpu_clear_past_last_segment(k, &w->sinks.data[i]);
    for (int i = 0; i < w->sinks.len; i++) {
        const Sink *s = &w->sinks.data[i];
        bool tile =
            s->kind == SINK_STORE && w->values[s->value.id].span == SPAN_FULL && cpu_layout_of(w, s->operand)->write;
        if (tile && !w->by_row)
            emit_line(&k->e, "%s(b%d, t%d, rows);", cpu_layout_of(w, s->operand)->write, s->operand, s->operand);
    }
    AMP_TRY(emit_sinks(k, is_one, -1));
    for (int i = 0; i < w->sinks.len; i++) {
        const Sink *s = &w->sinks.data[i];
        if (s->kind == SINK_FLAG)
            emit_line(&k->e, "if (any_vi(any%d)) __atomic_store_n(b%d, 1, __ATOMIC_RELAXED);", s->operand, s->operand);
    }
    return AMP_OK;
}

amp_status cpu_emit_kernel(Walk *w, Text *out, amp_error *err) {
    CpuKernel k = {
        .e = {.w = w, .out = out, .indent = 1, .err = err},
        .w = w,
        .padded = w->cols % 32 != 0 && w->k->kind != KERNEL_SCALAR,
        .padded_cols = (w->cols + 31) / 32 * 32,
        .place = 1,
    };
    k.stepped = cpu_stepped_shape(&k);
    if (w->k->kind == KERNEL_SCATTER) return cpu_emit_scatter(&k);
    emit_prologue(&k);
    AMP_TRY(load_inputs(&k, is_one));
    AMP_TRY(emit_ops(&k, is_one, -1));
    if (w->k->kind != KERNEL_SCALAR) AMP_TRY(emit_lines(&k));
    return emit_epilogue(&k);
}
