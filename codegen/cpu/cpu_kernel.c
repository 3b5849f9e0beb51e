/* cpu_kernel.c: the loops of a kernel, its loads and its stores (walk.h defines their order).
 *
 *     row kernel                                              any other
 *     for r in rows {                                         for c in the columns of the panel, W at a time {
 *         for c in all columns, 16 at a time, W at a time {       for r in rows {
 */
#include "codegen/cpu/cpu_kernel.h"

/* ---- reductions along the line ----------------------------------------------------------------------------------- */

/* The value with which an accumulator starts, and which lanes past the edge give. */
static const char *start_of(const CpuKernel *ck, const Sink *s) {
    bool is_float = emit_kind(ir_dtype(ck->w->f, s->value)) == KIND_F32;
    return arena_printf(ck->w->arena, is_float ? "splat_f(%s)" : "splat_i(%s)", loop_start(&ck->e, s));
}

/* Additions of a block to each partial sum.  What they lose adds up in ascending order itself: the fewer the better. */
enum { BLOCK = 256, BLOCK_COLUMNS = 16 * BLOCK };

/* Rows of a column, or columns of a row, of a block; whether there may be several. */
static int block_size(const Walk *w) { return w->by_row ? BLOCK_COLUMNS : BLOCK; }

static bool has_blocks(const Walk *w) {
    Dim length = w->by_row ? w->cols : w->segment.mul ? w->segment : w->rows;
    return dim_is_sized(length) || length.mul > block_size(w);
}

static bool is_kept_in(const Walk *w, const Sink *s, int p) {
    return loop_reduces_in(w, s, p) && loop_keeps_lost(w, s);
}

/* Whether the loop of phase |p| along the line is two: one over blocks, and one over what is in a block. */
static bool phase_has_blocks(const Walk *w, int p) {
    for (int i = 0; i < w->sinks.len && has_blocks(w); i++)
        if (is_kept_in(w, &w->sinks.data[i], p)) return true;
    return false;
}

/* The partial sums of a line or block, and what they lose. */
static void declare_kept(CpuKernel *ck, const char *sum, const char *lost, int id) {
    if (!ck->w->by_row) emit_line(&ck->e, "vf %s%d = splat_f(0.0f), %s%d = splat_f(0.0f);", sum, id, lost, id);
    else emit_line(&ck->e, "vf %s%d[16 / W] = {{0}}, %s%d[16 / W] = {{0}};", sum, id, lost, id);
}

static amp_status open_reduction(CpuKernel *ck, const Sink *s) {
    const char *type = emit_type(ir_dtype(ck->w->f, s->value), true);
    int id = walk_number(ck->w, s->op->out[0]);
    AMP_TRY(loop_check_reduction(&ck->e, s));
    if (loop_keeps_lost(ck->w, s)) declare_kept(ck, "sum", "lost", id);
    else if (!ck->w->by_row) emit_line(&ck->e, "%s v%d = %s;", type, id, start_of(ck, s));
    else {
        emit_line(&ck->e, "%s sum%d[16 / W];", type, id);
        emit_line(&ck->e, "for (int q = 0; q < 16 / W; q++) sum%d[q] = %s;", id, start_of(ck, s));
    }
    return AMP_OK;
}

static void step_reduction(CpuKernel *ck, const Sink *s) {
    const Walk *w = ck->w;
    const char *suffix = emit_suffix(ir_dtype(w->f, s->value), true), *combine = loop_reduction(s)->function;
    const char *value = emit_operand(&ck->e, s->value, true), *at = w->by_row ? "[q]" : "";
    int id = walk_number(w, s->op->out[0]);
    if (w->by_row && ck->padded)
        value = arena_printf(w->arena, "select_%s(in, %s, %s)", suffix, value, start_of(ck, s));
    if (loop_keeps_lost(w, s))
        emit_line(&ck->e, has_blocks(w) ? "plus_kept(&run%d%s, &less%d%s, %s);" : "plus_kept(&sum%d%s, &lost%d%s, %s);",
                  id, at, id, at, value);
    else if (w->by_row) emit_line(&ck->e, "sum%d[q] = %s_%s(sum%d[q], %s);", id, combine, suffix, id, value);
    else emit_line(&ck->e, "v%d = %s_%s(v%d, %s);", id, combine, suffix, id, value);
}

static void close_kept(CpuKernel *ck, const Sink *s) {
    const bool is_mean = s->op->code == OP_reduce_mean;
    int id = walk_number(ck->w, s->op->out[0]);
    if (ck->w->by_row)
        emit_line(&ck->e, "const float v%d = (float)%s(sum%d, lost%d)%s;", id, is_mean ? "(tree_kept" : "tree_kept", id,
                  id, is_mean ? " / (double)COLS)" : "");
    else
        emit_line(&ck->e, "const vf v%d = %s(sum%d, lost%d%s);", id, is_mean ? "mean_kept" : "sum_kept", id, id,
                  is_mean ? ", (double)rows" : "");
}

static void close_reduction(CpuKernel *ck, const Sink *s) {
    Dtype t = ir_dtype(ck->w->f, s->value);
    int id = walk_number(ck->w, s->op->out[0]);
    if (loop_keeps_lost(ck->w, s)) close_kept(ck, s);
    else if (ck->w->by_row)
        emit_line(&ck->e, "const %s v%d = tree_%s_%s(sum%d);", emit_type(t, false), id, loop_reduction(s)->function,
                  emit_suffix(t, true), id);
}

/* ---- the spelling ------------------------------------------------------------------------------------------------ */

static amp_status load(Emitter *e, Val v) { return cpu_load((CpuKernel *)e, v); }
static amp_status store(Emitter *e, const Sink *s) { return cpu_store((CpuKernel *)e, s); }

static void or_flag(Emitter *e, const Sink *s) {
    const CpuKernel *ck = (const CpuKernel *)e;
    const char *value = emit_operand(e, s->value, true);
    bool edge =
        ck->padded && ck->w->values[s->value.id].span != SPAN_ONE && !(ck->w->by_row && loop_is_line(e, s->value));
    emit_line(e, edge ? "any%d |= keep_vi(%s, in);" : "any%d |= %s;", s->operand, value);
}

static const char *kept_as(const Emitter *e, Val v) {
    return emit_kind(ir_dtype(e->w->f, v)) == KIND_F32 ? "f32" : "i32";
}

static void load_kept(Emitter *e, Val v) {
    int id = walk_number(e->w, v);
    emit_line(e, "const %s v%d = load_%s(kept%d + c);", emit_type(ir_dtype(e->w->f, v), true), id, kept_as(e, v), id);
}

static void keep(Emitter *e, Val v) {
    int id = walk_number(e->w, v);
    emit_line(e, "store_%s(kept%d + c, v%d);", kept_as(e, v), id, id);
}

static const Spelling spelling = {
    .name = "",
    .row = "(int64_t)row",
    .column = "j",
    .lane = "(j + l)",
    .zero = "splat_f(0.0f)",
    .splat = "splat_f(%s)",
    .load = load,
    .store = store,
    .or_flag = or_flag,
    .load_kept = load_kept,
    .keep = keep,
    .put_coordinates = cpu_put_coordinates,
    .element_at = cpu_element_at,
    .vector_at = cpu_vector_at,
    .choose_memory = cpu_choose_memory,
};

/* ---- a phase: one loop along the line ---------------------------------------------------------------------------- */

static void declare_edge(CpuKernel *ck) {
    if (!ck->padded) return;
    emit_line(&ck->e, "MAYBE_UNUSED const int64_t left = COLS - col0 - c;");
    emit_line(&ck->e, "MAYBE_UNUSED const vi in = first_lanes(left);");
}

static void open_blocks(CpuKernel *ck, int p) {
    const int size = block_size(ck->w);
    const char *end = !ck->w->by_row ? "rows" : ck->w->writes_tiles ? "PADDED_COLS" : "COLS";
    emit_open(&ck->e, "for (int64_t first = 0; first < %s; first += %d)", end, size);
    for (int i = 0; i < ck->w->sinks.len; i++) {
        const Sink *s = &ck->w->sinks.data[i];
        if (is_kept_in(ck->w, s, p)) declare_kept(ck, "run", "less", walk_number(ck->w, s->op->out[0]));
    }
    emit_line(&ck->e, "const int64_t past = %s - first < %d ? %s : first + %d;", end, size, end, size);
}

static void close_blocks(CpuKernel *ck, int p) {
    const char *at = ck->w->by_row ? "[q]" : "";
    for (int i = 0; i < ck->w->sinks.len; i++) {
        const Sink *s = &ck->w->sinks.data[i];
        if (!is_kept_in(ck->w, s, p)) continue;
        int id = walk_number(ck->w, s->op->out[0]);
        emit_line(&ck->e, "%splus_block(&sum%d%s, &lost%d%s, run%d%s, less%d%s);",
                  ck->w->by_row ? "for (int q = 0; q < 16 / W; q++) " : "", id, at, id, at, id, at, id, at);
    }
    emit_close(&ck->e);
}

static void open_rows(CpuKernel *ck, int p) {
    const bool blocks = phase_has_blocks(ck->w, p);
    emit_block(&ck->e); /* of the coordinates: each phase has its own */
    cpu_put_steps(ck, "row0");
    if (blocks) open_blocks(ck, p);
    emit_open(&ck->e, blocks ? "for (int64_t r = first; r < past; r++)" : "for (int64_t r = 0; r < rows; r++)");
}

static void open_steps(CpuKernel *ck, int p) {
    if (!ck->w->by_row) {
        open_rows(ck, p);
        return;
    }
    if (phase_has_blocks(ck->w, p)) {
        open_blocks(ck, p);
        emit_open(&ck->e, "for (int64_t c0 = first; c0 < past; c0 += 16)");
    } else emit_open(&ck->e, "for (int64_t c0 = 0; c0 < %s; c0 += 16)", ck->w->writes_tiles ? "PADDED_COLS" : "COLS");
    emit_line(&ck->e, "UNROLL");
    emit_open(&ck->e, "for (int q = 0; q < 16 / W; q++)");
    emit_line(&ck->e, "const int64_t c = c0 + q * W;");
    declare_edge(ck);
}

static void close_steps(CpuKernel *ck, int p) {
    if (!ck->w->by_row) cpu_step_coordinates(ck);
    emit_close(&ck->e);
    if (ck->w->by_row) emit_close(&ck->e); /* the loop over the vectors of 16 columns */
    if (phase_has_blocks(ck->w, p)) close_blocks(ck, p);
    if (!ck->w->by_row) emit_close(&ck->e); /* the block */
}

static amp_status emit_phase(CpuKernel *ck, int p) {
    Walk *w = ck->w;
    if (!loop_has_phase(w, p)) return AMP_OK;
    walk_phase(w, p);
    for (int i = 0; i < w->sinks.len; i++)
        if (loop_reduces_in(w, &w->sinks.data[i], p)) AMP_TRY(open_reduction(ck, &w->sinks.data[i]));
    open_steps(ck, p);
    AMP_TRY(loop_inputs(&ck->e, loop_is_step, load));
    AMP_TRY(loop_step_ops(&ck->e, p));
    for (int i = 0; i < w->sinks.len; i++)
        if (loop_reduces_in(w, &w->sinks.data[i], p)) step_reduction(ck, &w->sinks.data[i]);
    AMP_TRY(loop_sinks(&ck->e, loop_is_step, p));
    close_steps(ck, p);
    for (int i = 0; i < w->sinks.len; i++)
        if (loop_reduces_in(w, &w->sinks.data[i], p)) close_reduction(ck, &w->sinks.data[i]);
    return AMP_OK;
}

/* ---- the function ------------------------------------------------------------------------------------------------ */

/* Whether the last panel's padding need not be computed: narrow spaces whose values all lie in rows. */
static bool is_narrow(const Walk *w) { return !dim_varies(w->cols) && w->cols.mul < 32 && !w->writes_tiles; }

static void open_line(CpuKernel *ck) {
    if (ck->w->by_row) {
        emit_open(&ck->e, "for (int64_t r = 0; r < rows; r++)");
        cpu_put_steps(ck, "row0 + r");
        return;
    }
    emit_open(&ck->e, "for (int64_t c = 0; c < %s; c += W)", is_narrow(ck->w) ? "COLS" : "32");
    declare_edge(ck);
}

static amp_status emit_lines(CpuKernel *ck) {
    open_line(ck);
    AMP_TRY(loop_inputs(&ck->e, loop_is_line, load));
    for (int p = 0; p < ck->w->phases; p++) {
        AMP_TRY(loop_ops(&ck->e, loop_is_line, p));
        AMP_TRY(emit_phase(ck, p));
    }
    AMP_TRY(loop_ops(&ck->e, loop_is_line, ck->w->phases));
    AMP_TRY(loop_sinks(&ck->e, loop_is_line, -1));
    emit_close(&ck->e);
    return AMP_OK;
}

/* Operands that the function itself touches get a pointer. */
static void declare_operand(CpuKernel *ck, int operand, Span span) {
    const Buffer *b = walk_operand(ck->w, operand);
    const char *element = emit_storage(ck->w, operand)->element;
    const char *offset = cpu_offset(ck->w, operand, span);
    bool optional = buffer_is_optional(b->kind);
    emit_line(&ck->e, "%s *const b%d = %s(%s, %d, %s);", element, operand, optional ? "OPTIONAL_OPERAND" : "OPERAND",
              element, operand, offset);
}

static void declare_operands(CpuKernel *ck) {
    Walk *w = ck->w;
    for (int i = 0; i < w->operands.len; i++) {
        bool used = false;
        Span span = SPAN_ONE;
        for (int s = 0; s < w->sinks.len; s++) {
            if (w->sinks.data[s].operand != i) continue;
            used = true;
            if (walk_is_stored(&w->sinks.data[s])) span = w->values[w->sinks.data[s].value.id].span;
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
        if (used) declare_operand(ck, i, span);
    }
}

/* Where rows are side by side, a tile that ends at the last row starts as zero. */
static void clear_last_tile(CpuKernel *ck, int operand) {
    const Buffer *b = walk_operand(ck->w, operand);
    int bytes = emit_storage(ck->w, operand)->bytes;
    const char *optional = buffer_is_optional(b->kind) ? arena_printf(ck->w->arena, " && b%d", operand) : "";
    const char *stride = b->layout == LAYOUT_PAIRS ? "R" : "32", *count = ck->w->by_row ? "PADDED_COLS / 32" : "1";
    emit_line(&ck->e, "if (rows < 32%s) clear_tiles(b%d, 1024 * %d, %s * %d, %s);", optional, operand, bytes, stride,
              32 * bytes, count);
}

/* What is written from a Tile is written whole.  Rows past the last one of panels are never read. */
static void clear_last_tiles(CpuKernel *ck) {
    Walk *w = ck->w;
    for (int i = 0; i < w->sinks.len; i++) {
        const Sink *s = &w->sinks.data[i];
        if (!walk_is_stored(s) || w->values[s->value.id].span != SPAN_FULL) continue;
        const LayoutText *l = cpu_layout_of(w, s->operand);
        bool whole = l->write && !w->by_row;
        if (l->scatter && !whole) clear_last_tile(ck, s->operand);
    }
}

static void declare_locals(CpuKernel *ck) {
    Walk *w = ck->w;
    for (int i = 0; i < w->sinks.len; i++) {
        const Sink *s = &w->sinks.data[i];
        if (s->kind == SINK_FLAG) emit_line(&ck->e, "vi any%d = {0};", s->operand);
        bool tile =
            walk_is_stored(s) && w->values[s->value.id].span == SPAN_FULL && cpu_layout_of(w, s->operand)->write;
        if (tile && !w->by_row) emit_line(&ck->e, "Tile t%d;", s->operand);
    }
    for (int i = 0; i < w->k->count; i++) {
        const Op *o = walk_op(w, i);
        if (o->n_out && w->values[o->out[0].id].kept)
            emit_line(&ck->e, "%s kept%d[PADDED_COLS] __attribute__((aligned(64)));",
                      emit_kind(ir_dtype(w->f, o->out[0])) == KIND_F32 ? "float" : "int32_t",
                      walk_number(w, o->out[0]));
    }
}

static void emit_prologue(CpuKernel *ck) {
    Walk *w = ck->w;
    if (!dim_varies(w->cols))
        emit_line(&ck->e, "enum { COLS = %lld, PADDED_COLS = %lld };", (long long)w->cols.mul,
                  (long long)(w->cols.mul + 31) / 32 * 32);
    emit_line(&ck->e,
              "MAYBE_UNUSED const int64_t n = a->n, %srow0 = a->row0, col0 = a->col0, rows = a->rows, "
              "R = (%s + 31) / 32 * 32;",
              cpu_length(w), emit_dim(w->arena, w->rows));
    if (dim_varies(w->cols))
        emit_line(&ck->e, "MAYBE_UNUSED const int64_t COLS = %s, PADDED_COLS = (COLS + 31) / 32 * 32;",
                  emit_dim(w->arena, w->cols));
    if (w->segment.mul)
        emit_line(&ck->e, "MAYBE_UNUSED const int64_t RS = (%s + 31) / 32 * 32;", emit_dim(w->arena, walk_segments(w)));
    declare_operands(ck);
    cpu_declare_memory(ck);
    declare_locals(ck);
    clear_last_tiles(ck);
}

static amp_status emit_epilogue(CpuKernel *ck) {
    Walk *w = ck->w;
    for (int i = 0; i < w->sinks.len; i++)
        if (walk_is_stored(&w->sinks.data[i])) cpu_clear_past_last_segment(ck, &w->sinks.data[i]);
    for (int i = 0; i < w->sinks.len; i++) {
        const Sink *s = &w->sinks.data[i];
        bool tile =
            walk_is_stored(s) && w->values[s->value.id].span == SPAN_FULL && cpu_layout_of(w, s->operand)->write;
        if (tile && !w->by_row)
            emit_line(&ck->e, "%s(b%d, t%d, rows);", cpu_layout_of(w, s->operand)->write, s->operand, s->operand);
    }
    AMP_TRY(loop_sinks(&ck->e, loop_is_one, -1));
    for (int i = 0; i < w->sinks.len; i++) {
        const Sink *s = &w->sinks.data[i];
        if (s->kind == SINK_FLAG)
            emit_line(&ck->e, "if (any_vi(any%d)) __atomic_store_n(b%d, 1, __ATOMIC_RELAXED);", s->operand, s->operand);
    }
    return AMP_OK;
}

/* ---- what ranks add up ------------------------------------------------------------------------------------------- */

/* The runtime adds the copies up; of one rank they are the sums. */
static amp_status emit_collective(CpuKernel *ck) {
    emit_line(&ck->e, "const float *from = OPERAND(const float, 0, 0);");
    emit_line(&ck->e, "float *to = OPERAND(float, 1, 0);");
    emit_line(&ck->e, "for (int64_t i = 0; i < %lld; i++) to[i] = from[i];", (long long)ck->w->cols.mul);
    return AMP_OK;
}

/* ---- the whole -------------------------------------------------------------------------------------------------- */

static amp_status emit_attention(CpuKernel *ck) { return cpu_emit_attention(ck->w, ck->e.out, ck->e.err); }

static amp_status emit_loops(CpuKernel *ck) {
    ck->stepped = cpu_stepped_shape(ck);
    emit_prologue(ck);
    AMP_TRY(cpu_declare_sums(ck));
    AMP_TRY(loop_inputs(&ck->e, loop_is_one, load));
    AMP_TRY(loop_ops(&ck->e, loop_is_one, -1));
    if (ck->w->k->kind != KERNEL_SCALAR) AMP_TRY(emit_lines(ck));
    return emit_epilogue(ck);
}

/* NULL: emit_loops. */
static amp_status (*const emitters[KERNEL_KINDS])(CpuKernel *ck) = {
    [KERNEL_SCATTER] = cpu_emit_scatter,
    [KERNEL_ATTENTION] = emit_attention,
    [KERNEL_COLLECTIVE] = emit_collective,
};

amp_status cpu_emit_kernel(Walk *w, Text *out, Offsets *offsets, amp_error *err) {
    bool padded = (dim_varies(w->cols) || w->cols.mul % 32 != 0) && w->k->kind != KERNEL_SCALAR;
    CpuKernel ck = {
        .e = {.w = w,
              .spelling = &spelling,
              .out = out,
              .indent = 1,
              .err = err,
              .offsets = offsets,
              .lanes = padded ? "W && l < left" : "W"},
        .w = w,
        .padded = padded,
    };
    return (emitters[w->k->kind] ? emitters[w->k->kind] : emit_loops)(&ck);
}
