/* cuda_kernel.c: what the kinds of kernels have in common: CUDA's spelling (codegen/emit.h) of what they hold, and the
 * elements of a thread (cuda_kernel.h). */
#include "codegen/cuda/cuda_kernel.h"

/* ---- reductions along the line ----------------------------------------------------------------------------------- */

/* Of a row one number, which becomes the result; of columns one for each that the thread has. */
static bool is_by_column(const CudaKernel *ck) { return ck->w->k->kind == KERNEL_COLUMN; }

static const char *repeated(const CudaKernel *ck, const char *text) {
    const char *all = text;
    for (int i = 1; i < ck->vector; i++) all = arena_printf(ck->w->arena, "%s, %s", all, text);
    return all;
}

const char *cuda_sum_type(const Walk *w, const Sink *s) {
    return loop_keeps_lost(w, s) ? "KeptSum" : emit_type(ir_dtype(w->f, s->value), false);
}

const char *cuda_sum_start(const CudaKernel *ck, const Sink *s) {
    return loop_keeps_lost(ck->w, s) ? "KeptSum{0.0f, 0.0f}" : loop_start(&ck->e, s);
}

const char *cuda_reduced(const CudaKernel *ck, const Sink *s, const char *sum) {
    const Walk *w = ck->w;
    if (!loop_keeps_lost(w, s)) return sum;
    if (s->op->code == OP_reduce_sum) return arena_printf(w->arena, "sum_kept(%s)", sum);
    const char *count = !is_by_column(ck) ? "COLS" : "rows";
    if (dim_varies(w->segment)) count = "segment";
    else if (w->segment.mul) count = arena_printf(w->arena, "%lld", (long long)w->segment.mul);
    return arena_printf(w->arena, "mean_kept(%s, (float)%s)", sum, count);
}

/* A sum of a row adds the neighbours of a thread to one another first. */
static bool adds_neighbours(const CudaKernel *ck, const Sink *s, int p) {
    return loop_reduces_in(ck->w, s, p) && loop_keeps_lost(ck->w, s) && !is_by_column(ck) && ck->vector > 1;
}

amp_status cuda_open_reductions(CudaKernel *ck, int p) {
    for (int i = 0; i < ck->w->sinks.len; i++) {
        const Sink *s = &ck->w->sinks.data[i];
        if (!loop_reduces_in(ck->w, s, p)) continue;
        AMP_TRY(loop_check_reduction(&ck->e, s));
        const char *type = cuda_sum_type(ck->w, s), *start = cuda_sum_start(ck, s);
        const int id = walk_number(ck->w, s->op->out[0]);
        if (is_by_column(ck)) emit_line(&ck->e, "%s s%d[%d] = {%s};", type, id, ck->vector, repeated(ck, start));
        else emit_line(&ck->e, "%s %c%d = %s;", type, loop_keeps_lost(ck->w, s) ? 's' : 'v', id, start);
    }
    return AMP_OK;
}

static void step_reduction(CudaKernel *ck, const Sink *s, int p) {
    const char *type = emit_suffix(ir_dtype(ck->w->f, s->value), false), *value = emit_operand(&ck->e, s->value, false);
    const int id = walk_number(ck->w, s->op->out[0]);
    const bool is_kept = loop_keeps_lost(ck->w, s);
    const char *sum = is_by_column(ck) ? arena_printf(ck->w->arena, "s%d[%s]", id, ck->index)
                                       : arena_printf(ck->w->arena, "%c%d", is_kept ? 's' : 'v', id);
    if (adds_neighbours(ck, s, p)) emit_line(&ck->e, "run%d = run%d + %s;", id, id, value);
    else if (is_kept) emit_line(&ck->e, "plus_kept(%s, %s);", sum, value);
    else if (s->op->code == OP_reduce_sum) emit_line(&ck->e, "%s = %s + %s;", sum, sum, value);
    else if (s->op->code == OP_reduce_prod) emit_line(&ck->e, "%s = %s * %s;", sum, sum, value);
    else emit_line(&ck->e, "%s = %s_%s(%s, %s);", sum, loop_reduction(s)->function, type, sum, value);
}

/* Before the elements of phase |p|, or after them. */
static void put_neighbours(CudaKernel *ck, int p, bool before) {
    for (int i = 0; i < ck->w->sinks.len; i++) {
        const Sink *s = &ck->w->sinks.data[i];
        if (!adds_neighbours(ck, s, p)) continue;
        const int id = walk_number(ck->w, s->op->out[0]);
        if (before) emit_line(&ck->e, "float run%d = 0.0f;", id);
        else emit_line(&ck->e, "plus_kept(s%d, run%d);", id, id);
    }
}

void cuda_close_reductions(CudaKernel *ck, int p, const char *reduce) {
    for (int i = 0; i < ck->w->sinks.len; i++) {
        const Sink *s = &ck->w->sinks.data[i];
        if (!loop_reduces_in(ck->w, s, p)) continue;
        const int id = walk_number(ck->w, s->op->out[0]);
        const char from = is_by_column(ck) || loop_keeps_lost(ck->w, s) ? 's' : 'v';
        const char *made = arena_printf(ck->w->arena, "%s<%s%s>(%c%d)", reduce, loop_reduction(s)->functor,
                                        ck->reduce_shape, from, id);
        const char *type = emit_type(ir_dtype(ck->w->f, s->value), false);
        if (is_by_column(ck)) emit_line(&ck->e, "%s a%d = %s;", cuda_sum_type(ck->w, s), id, made);
        else if (loop_keeps_lost(ck->w, s))
            emit_line(&ck->e, "const %s v%d = %s;", type, id, cuda_reduced(ck, s, made));
        else emit_line(&ck->e, "v%d = %s;", id, made);
    }
}

/* ---- the spelling ------------------------------------------------------------------------------------------------ */

static amp_status load(Emitter *e, Val v) { return cuda_load((CudaKernel *)e, v); }
static amp_status store(Emitter *e, const Sink *s) { return cuda_store_one((CudaKernel *)e, s); }

static void or_flag(Emitter *e, const Sink *s) {
    const CudaKernel *ck = (const CudaKernel *)e;
    bool part = ck->part && ck->w->values[s->value.id].span == SPAN_FULL;
    const char *value = emit_operand(e, s->value, false);
    if (part) emit_line(e, "any%d |= %s < left && %s;", s->operand, ck->index, value);
    else emit_line(e, "any%d |= %s;", s->operand, value);
}

static void load_kept(Emitter *e, Val v) {
    const CudaKernel *ck = (const CudaKernel *)e;
    int id = walk_number(e->w, v);
    emit_line(e, "const %s v%d = kept%d%s[%s];", emit_type(ir_dtype(e->w->f, v), false), id, id, ck->slot, ck->index);
}

static void keep(Emitter *e, Val v) {
    const CudaKernel *ck = (const CudaKernel *)e;
    int id = walk_number(e->w, v);
    emit_line(e, "kept%d%s[%s] = v%d;", id, ck->slot, ck->index, id);
}

static void take_lane(Emitter *e, Val v) { cuda_take_element((CudaKernel *)e, v); }

static const char *load_lanes(Emitter *e, const Memory *m, const char *row, const char *column) {
    const Dtype t = ir_dtype(e->w->f, walk_operand(e->w, m->operand)->value);
    const int read = ++e->lane_reads;
    emit_line(e, "%s m%d[%d];", emit_type(t, false), read, e->lane_count);
    emit_line(e, "load_%s(m%d, %s);", m->storage->name, read, cuda_place_of(e, m, row, column));
    return arena_printf(e->w->arena, "m%d[l]", read);
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
    .take_lane = take_lane,
    .load_lanes = load_lanes,
    .is_near = cuda_is_near,
};

/* ---- values outside of the elements ------------------------------------------------------------------------------ */

/* Of each flag of the kernel once: the thread's own, or its store. */
static void put_flags(CudaKernel *ck, bool stores) {
    bool *put = arena_array(ck->w->arena, bool, ck->w->operands.len + 1);
    for (int i = 0; i < ck->w->sinks.len; i++) {
        const Sink *s = &ck->w->sinks.data[i];
        if (s->kind != SINK_FLAG || put[s->operand]) continue;
        put[s->operand] = true;
        if (!stores) emit_line(&ck->e, "int32_t any%d = 0;", s->operand);
        if (!stores) continue;
        cuda_declare_operand(ck, s->operand);
        emit_line(&ck->e, "if (any%d) *b%d = 1;", s->operand, s->operand);
    }
}

void cuda_store_flags(CudaKernel *ck) { put_flags(ck, true); }

amp_status cuda_emit_once(CudaKernel *ck) {
    if (ck->w->k->kind != KERNEL_PRODUCT) cuda_declare_looks(ck);
    put_flags(ck, false);
    AMP_TRY(loop_inputs(&ck->e, loop_is_one, load));
    return loop_ops(&ck->e, loop_is_one, -1);
}

amp_status cuda_finish_once(CudaKernel *ck) {
    AMP_TRY(loop_sinks(&ck->e, loop_is_one, -1));
    cuda_store_flags(ck);
    return AMP_OK;
}

amp_status cuda_load_line(CudaKernel *ck) { return loop_inputs(&ck->e, loop_is_line, load); }
amp_status cuda_emit_line_ops(CudaKernel *ck, int level) { return loop_ops(&ck->e, loop_is_line, level); }
amp_status cuda_store_line(CudaKernel *ck) { return loop_sinks(&ck->e, loop_is_line, -1); }

/* ---- results in the place of operands ---------------------------------------------------------------------------- */

static bool loads_full(const CudaKernel *ck, int p) {
    Walk *w = ck->w;
    walk_phase(w, p);
    for (int i = 0; i < w->k->count; i++) {
        const Op *o = walk_op(w, i);
        for (int n = 0; n < o->n_in; n++) {
            if (walk_loads_full(w, o, n) && w->values[o->in[n].id].touched) return true;
        }
    }
    return false;
}

void cuda_delay_stores(CudaKernel *ck) {
    Walk *w = ck->w;
    int last = w->phases - 1;
    while (last > 0 && !loads_full(ck, last)) last--;
    for (int i = 0; i < w->sinks.len; i++) {
        Sink *s = &w->sinks.data[i];
        if (s->kind == SINK_STORE && w->values[s->value.id].span == SPAN_FULL && s->level < last) s->level = last;
    }
}

/* ---- the elements of a phase ------------------------------------------------------------------------------------- */

static bool sinks_here(const CudaKernel *ck, const Sink *s, int p) {
    return s->kind != SINK_REDUCE && s->level == p && loop_is_step(&ck->e, s->value);
}

/* Whether the text of the elements names c: not only in their places in memory. */
static bool names_column(const CudaKernel *ck) {
    const Walk *w = ck->w;
    for (int i = 0; i < w->k->count; i++) {
        const Op *o = walk_op(w, i);
        if (!o->n_out || !loop_is_step(&ck->e, o->out[0])) continue;
        if (o->code == OP_iota || (o->code == OP_random && !ck->flat) || walk_is_indirect(w, o)) return true;
    }
    for (int i = 0; i < w->sinks.len && w->k->kind != KERNEL_ROW; i++)
        if (w->values[w->sinks.data[i].value.id].span == SPAN_ROW) return true;
    return false;
}

static amp_status take_element(Emitter *e, Val v) {
    cuda_take_element((CudaKernel *)e, v);
    return AMP_OK;
}

/* Whether |o| makes its elements of the phase all at once. */
static bool is_by_lanes(const CudaKernel *ck, const Op *o) {
    return ck->vector > 1 && !ck->by_rows && o->n_out && loop_is_step(&ck->e, o->out[0]) &&
           indirect_has_vectors(ck->w, o, ck->vector);
}

/* x12 of each op that reads vectors from other places. */
static amp_status emit_lanes(CudaKernel *ck, int p) {
    Walk *w = ck->w;
    for (int i = 0; i < w->k->count; i++) {
        const Op *o = walk_op(w, i);
        const ValueWalk *x = o->n_out ? &w->values[o->out[0].id] : NULL;
        if (!is_by_lanes(ck, o) || (x->kept && x->level < p)) continue;
        ck->e.lane_count = ck->vector;
        ck->e.lane_reads = 0;
        AMP_TRY(indirect_emit(&ck->e, o));
        ck->e.lane_count = 0;
        for (int r = 0; r < o->n_out; r++) w->values[o->out[r].id].in_lanes = true;
        if (w->values[o->in[0].id].inlined) ck->inlines = true;
    }
    return AMP_OK;
}

/* A number of each column, which the elements of phase |p| read: of an input, or of what earlier phases reduced. */
static bool is_spread(const CudaKernel *ck, Val v, int p) {
    const ValueWalk *x = &ck->w->values[v.id];
    return ck->vector > 1 && is_by_column(ck) && x->span == SPAN_COLUMN && x->needed && (!x->made || x->level <= p);
}

static void for_spread(CudaKernel *ck, int p, void (*each)(CudaKernel *ck, Val v)) {
    const Walk *w = ck->w;
    bool *done = arena_array(w->arena, bool, walk_numbers(w));
    for (int i = 0; i < w->k->count; i++) {
        const Op *o = walk_op(w, i);
        if (!o->n_out || !(loop_is_step(&ck->e, o->out[0]) || w->values[o->out[0].id].inlined)) continue;
        for (int n = 0; n < o->n_in; n++) {
            if (!walk_reads(w, o, n) || !is_spread(ck, o->in[n], p) || done[walk_number(w, o->in[n])]) continue;
            done[walk_number(w, o->in[n])] = true;
            each(ck, o->in[n]);
        }
    }
    for (int i = 0; i < w->sinks.len; i++) {
        const Sink *s = &w->sinks.data[i];
        if (!loop_reduces_in(w, s, p) || !is_spread(ck, s->value, p) || done[walk_number(w, s->value)]) continue;
        done[walk_number(w, s->value)] = true;
        each(ck, s->value);
    }
}

static void spread(CudaKernel *ck, Val v) {
    const int id = walk_number(ck->w, v);
    emit_line(&ck->e, "%s x%d[%d];", emit_type(ir_dtype(ck->w->f, v), false), id, ck->vector);
    emit_line(&ck->e, "spread_columns<%d>(x%d, v%d);", ck->body->columns, id, id);
}

static void take_one(CudaKernel *ck, Val v) {
    const int id = walk_number(ck->w, v);
    emit_line(&ck->e, "const %s v%d = x%d[i];", emit_type(ir_dtype(ck->w->f, v), false), id, id);
}

void cuda_spread_columns(CudaKernel *ck, int p) { for_spread(ck, p, spread); }
static void take_spread(CudaKernel *ck, int p) { for_spread(ck, p, take_one); }

static void forget_lanes(CudaKernel *ck) {
    for (int i = 0; i < ck->w->k->count; i++) {
        const Op *o = walk_op(ck->w, i);
        for (int r = 0; r < o->n_out; r++) ck->w->values[o->out[r].id].in_lanes = false;
    }
}

static void open_elements(CudaKernel *ck) {
    if (ck->vector == 1) return;
    emit_line(&ck->e, "UNROLL");
    emit_open(&ck->e, "for (int i = 0; i < %d; i++)", ck->vector);
    if (ck->by_rows) emit_line(&ck->e, "if (i >= left) continue;");
    if (names_column(ck)) emit_line(&ck->e, "MAYBE_UNUSED const int32_t c = c0 + i;");
}

static amp_status declare_stores(CudaKernel *ck, int p) {
    for (int i = 0; i < ck->w->sinks.len; i++) {
        const Sink *s = &ck->w->sinks.data[i];
        if (walk_is_stored(s) && sinks_here(ck, s, p)) AMP_TRY(cuda_declare_store(ck, s));
    }
    return AMP_OK;
}

/* After what is loaded, or made from memory. */
static amp_status make_elements(CudaKernel *ck, int p) {
    Walk *w = ck->w;
    put_neighbours(ck, p, true);
    open_elements(ck);
    take_spread(ck, p);
    AMP_TRY(loop_inputs(&ck->e, loop_is_step, take_element));
    AMP_TRY(loop_step_ops(&ck->e, p));
    for (int i = 0; i < w->sinks.len; i++) {
        const Sink *s = &w->sinks.data[i];
        if (loop_reduces_in(w, s, p)) step_reduction(ck, s, p);
        else if (sinks_here(ck, s, p) && s->kind == SINK_FLAG) or_flag(&ck->e, s);
        else if (sinks_here(ck, s, p)) cuda_store_element(ck, s);
    }
    if (ck->vector > 1) emit_close(&ck->e);
    put_neighbours(ck, p, false);
    for (int i = 0; i < w->sinks.len; i++) {
        const Sink *s = &w->sinks.data[i];
        if (walk_is_stored(s) && sinks_here(ck, s, p)) cuda_store_vector(ck, s);
    }
    forget_lanes(ck);
    return AMP_OK;
}

amp_status cuda_emit_loaded(CudaKernel *ck, int p) {
    ck->phase = p;
    AMP_TRY(declare_stores(ck, p));
    AMP_TRY(emit_lanes(ck, p));
    return make_elements(ck, p);
}

amp_status cuda_emit_elements(CudaKernel *ck, int p) {
    ck->phase = p;
    AMP_TRY(loop_inputs(&ck->e, loop_is_step, load));
    return cuda_emit_loaded(ck, p);
}

/* ---- several rows of columns ------------------------------------------------------------------------------------- */

/* A thread's elements of the rows that it loads together: `float all1[4][2]`; x1 is the current row's. */
static void declare_rows_of(CudaKernel *ck, Val v) {
    cuda_declare_rows(ck, v, arena_printf(ck->w->arena, "%d", ck->rows));
}

static void recall_row_of(CudaKernel *ck, Val v) { cuda_recall_row(ck, v, "u"); }

static amp_status declare_rows(Emitter *e, Val v) {
    declare_rows_of((CudaKernel *)e, v);
    return AMP_OK;
}

static amp_status recall_row(Emitter *e, Val v) {
    recall_row_of((CudaKernel *)e, v);
    return AMP_OK;
}

/* |each| result of an op that reads vectors from other places. */
static void for_lanes(CudaKernel *ck, int p, void (*each)(CudaKernel *ck, Val v)) {
    for (int i = 0; i < ck->w->k->count; i++) {
        const Op *o = walk_op(ck->w, i);
        const ValueWalk *x = o->n_out ? &ck->w->values[o->out[0].id] : NULL;
        if (!is_by_lanes(ck, o) || (x->kept && x->level < p)) continue;
        for (int r = 0; r < o->n_out; r++) each(ck, o->out[r]);
    }
}

static bool has_lanes(const CudaKernel *ck, int p) {
    for (int i = 0; i < ck->w->k->count; i++) {
        const Op *o = walk_op(ck->w, i);
        if (is_by_lanes(ck, o) && !(ck->w->values[o->out[0].id].kept && ck->w->values[o->out[0].id].level < p))
            return true;
    }
    return false;
}

amp_status cuda_emit_rows_of_elements(CudaKernel *ck, int p) {
    ck->phase = p;
    if (ck->rows == 1) {
        emit_line(&ck->e, "MAYBE_UNUSED const int64_t r = row;");
        return cuda_emit_elements(ck, p);
    }
    AMP_TRY(loop_inputs(&ck->e, loop_is_step, declare_rows));
    for_lanes(ck, p, declare_rows_of);
    emit_line(&ck->e, "UNROLL");
    emit_open(&ck->e, "for (int u = 0; u < %d; u++)", ck->rows);
    emit_line(&ck->e, "const int64_t r = row + u * %d;", ck->row_step);
    emit_line(&ck->e, "MAYBE_UNUSED const bool here = r < last;");
    ck->e.lanes_of_row = true;
    AMP_TRY(loop_inputs(&ck->e, loop_is_step, load));
    if (has_lanes(ck, p)) {
        emit_open(&ck->e, "if (here)");
        AMP_TRY(emit_lanes(ck, p));
        emit_close(&ck->e);
    }
    ck->e.lanes_of_row = false;
    emit_close(&ck->e);
    emit_line(&ck->e, "UNROLL");
    emit_open(&ck->e, "for (int u = 0; u < %d; u++)", ck->rows);
    emit_line(&ck->e, "const int64_t r = row + u * %d;", ck->row_step);
    emit_line(&ck->e, "if (r >= last) break;");
    AMP_TRY(loop_inputs(&ck->e, loop_is_step, recall_row));
    for_lanes(ck, p, recall_row_of);
    AMP_TRY(declare_stores(ck, p));
    AMP_TRY(make_elements(ck, p));
    emit_close(&ck->e);
    return AMP_OK;
}

bool cuda_needs_coordinates(const CudaKernel *ck) {
    const Walk *w = ck->w;
    if (ck->pitch) return true;
    if (cuda_has_parts(w)) return true;
    for (int i = 0; i < w->k->count; i++) {
        const Op *o = walk_op(w, i);
        if (!o->n_out || !w->values[o->out[0].id].needed) continue;
        if (o->code == OP_iota || walk_draws_by_row(w, o) || (walk_is_indirect(w, o) && o->code != OP_sum_parts))
            return true;
        Span span = w->values[o->out[0].id].span;
        if (span == SPAN_ROW || span == SPAN_COLUMN) return true;
        for (int n = 0; n < o->n_in; n++) {
            span = w->values[o->in[n].id].span;
            if (walk_reads(w, o, n) && (span == SPAN_ROW || span == SPAN_COLUMN)) return true;
        }
    }
    return false;
}
