/* walk.c: see walk.h. */
#include "codegen/walk.h"

#include "ir/draw_numbers.h"
#include "ir/words.h"
#include "targets/target.h"

enum { KEPT_BYTES = 64 << 10 }; /* of stack, for values that several phases of a row need */

void walk_init(Walk *w, const Func *f, Arena *a) {
    *w = (Walk){.f = f, .arena = a};
    w->values = arena_array(a, ValueWalk, f->values.len + 1);
    w->first_phase = arena_array(a, int, f->values.len + 1);
}

const char *walk_name(const Walk *w) {
    return arena_printf(w->arena, "kernel %s of %s (%s)", w->k->name, w->f->name,
                        w->k->title ? w->k->title : "untitled");
}

Span walk_line_span(const Walk *w) { return w->by_row ? SPAN_ROW : SPAN_COLUMN; }

bool walk_is_inner(const Walk *w, Span s) { return s == SPAN_FULL || (s != SPAN_ONE && s != walk_line_span(w)); }

bool walk_is_indirect(const Walk *w, const Op *o) {
    bool moves = o->n_in && ir_reads_memory(w->f, o, 0) && !ir_is_product(o);
    return moves && !(w->flat && o->code == OP_reshape) && !ir_is_segment_expand(w->f, o, w->segment);
}

bool walk_is_inlined(const Walk *w, const Op *o) { return o->n_out && w->values[o->out[0].id].inlined; }

static bool same_matrix(const Walk *w, Val a, Val b) { return shape_same_matrix(ir_shape(w->f, a), ir_shape(w->f, b)); }

bool walk_reads_inlined(const Walk *w, const Op *o, int n) {
    return walk_is_inlined(w, o) && same_matrix(w, o->in[n], o->out[0]);
}

bool walk_reads(const Walk *w, const Op *o, int n) {
    if (walk_reads_inlined(w, o, n)) return false;
    if (walk_is_indirect(w, o) || ir_is_product(o)) return false; /* the runtime reads a product's operands */
    bool is_written = o->code == OP_assign && n == 0;
    return !is_written && ir_reads_elements(o, n);
}

bool walk_loads_full(const Walk *w, const Op *o, int n) {
    const ValueWalk *x = &w->values[o->in[n].id];
    return walk_reads(w, o, n) && !x->made && x->span == SPAN_FULL;
}

static bool is_line_reduction(const Op *o) { return ir_op_info[o->code].flags & REDUCE && o->code != OP_reduce_or; }

/* ---- operands ---------------------------------------------------------------------------------------------------- */

const Buffer *walk_operand(const Walk *w, int i) { return w->f->buffers.data[w->operands.data[i] - 1]; }

int64_t walk_pitch(const Walk *w) {
    for (int i = 0; i < w->operands.len; i++) {
        const Buffer *b = walk_operand(w, i);
        if (b->pitch && !b->is_part && shape_is_matrix(ir_shape(w->f, b->value), w->rows, w->cols)) return b->pitch;
    }
    return 0;
}

static void add_operand(Walk *w, uint32_t buffer) {
    for (int i = 0; i < w->operands.len; i++)
        if (w->operands.data[i] == buffer) return;
    vec_push(w->arena, &w->operands, buffer);
}

static void list_operands(Walk *w) {
    w->operands.len = 0;
    for (int i = 0; i < w->k->reads.len; i++) add_operand(w, w->k->reads.data[i]);
    for (int i = 0; i < w->k->writes.len; i++) add_operand(w, w->k->writes.data[i]);
}

int walk_find_operand(const Walk *w, Val v, Layout layout, Dtype storage) {
    for (int i = 0; i < w->operands.len; i++) {
        const Buffer *b = walk_operand(w, i);
        if (b->value.id == v.id && b->layout == layout && b->storage == storage) return i;
    }
    return -1;
}

const Op *walk_constant(const Walk *w, Val v) {
    const Op *o = ir_def(w->f, v);
    return o && o->code == OP_const ? o : NULL;
}

/* Elementwise code reads rows and panels. */
static int find_readable(const Walk *w, Val v) {
    for (int i = 0; i < w->k->reads.len; i++) {
        const Buffer *b = walk_operand(w, i);
        if (b->value.id == v.id && (b->layout == LAYOUT_ROWS || b->layout == LAYOUT_PANELS)) return i;
    }
    return -1;
}

/* The value in memory that |v| is a view of, or the value that the kernel makes it from. */
static Val behind_views(const Walk *w, Val v) {
    while (w->values[v.id].made && ir_is_seen_through(w->f, ir_def(w->f, v))) v = ir_def(w->f, v)->in[0];
    return v;
}

static bool is_made_in_registers(const Walk *w, Val v) { return w->values[behind_views(w, v).id].made; }

Val walk_product_source(const Walk *w, Val v) {
    while (w->values[v.id].made && target_moves_on_load(w->f, ir_def(w->f, v))) v = ir_def(w->f, v)->in[0];
    return v;
}

bool walk_strided(const Walk *w, Val v, Strided *out) {
    Strided operand;
    const Op *o = w->values[v.id].made ? ir_def(w->f, v) : NULL;
    if (!o || !target_moves_on_load(w->f, o)) return ir_strided_dense(w->f, v, out);
    return walk_strided(w, o->in[0], &operand) && ir_strided_result(w->f, o, &operand, out);
}

static bool has(const uint32_t *ids, int count, uint32_t id) {
    for (int i = 0; i < count; i++)
        if (ids[i] == id) return true;
    return false;
}

bool walk_is_per_segment(const Walk *w, int i) {
    Dim rows, cols;
    return w->segment.mul && shape_matrix(ir_shape(w->f, walk_operand(w, i)->value), &rows, &cols) && !dim_is_one(rows);
}

bool walk_is_read(const Walk *w, int i) { return has(w->k->reads.data, w->k->reads.len, w->operands.data[i]); }
bool walk_is_written(const Walk *w, int i) { return has(w->k->writes.data, w->k->writes.len, w->operands.data[i]); }

amp_status walk_own_op(const Walk *w, const Op **out, amp_error *err) {
    for (int i = 0; i < w->k->count; i++) {
        *out = walk_op(w, i);
        if (ir_own_kind(*out) == w->k->kind) return AMP_OK;
    }
    return amp_fail(err, AMP_INTERNAL, "%s: no op makes it a kernel of kind %s", walk_name(w),
                    ir_kernel_kind_names[w->k->kind]);
}

int walk_memory_operand(const Walk *w, const Op *o, int n) {
    Val v = o->in[n];
    if (!ir_is_product(o)) v = behind_views(w, v);
    else if (w->values[v.id].made && target_rounds_on_load(w->f, ir_def(w->f, v))) v = ir_def(w->f, v)->in[0];
    else v = walk_product_source(w, v);
    return w->values[v.id].made ? -1 : find_readable(w, v);
}

/* ---- the space --------------------------------------------------------------------------------------------------- */

/* The larger of two matrices, as far as one value of each is enough to know. */
static void widen_space(Dim *rows, Dim *cols, const Shape *s) {
    Dim r, c;
    if (!shape_matrix(s, &r, &c)) return;
    if (dim_is_one(*rows)) *rows = r;
    if (dim_is_one(*cols)) *cols = c;
}

bool walk_is_live(const Walk *w, const Op *o) {
    for (int r = 0; r < o->n_out; r++)
        if (w->values[o->out[r].id].live) return true;
    return !o->n_out;
}

/* The value that has the shape of the space; NO_VAL: it does not follow from the op. */
static Val space_of(const Walk *w, const Op *o) {
    const KernelInfo *info = &ir_kernel_info[w->k->kind];
    if (info->is_own) return info->is_own(o) ? ir_own_space(o) : NO_VAL;
    switch (w->k->kind) {
    case KERNEL_TILE:
        return !walk_is_live(w, o) || walk_is_inlined(w, o) ? NO_VAL
               : !o->n_out || o->code == OP_reduce_or       ? o->in[0]
                                                            : o->out[0];
    case KERNEL_SCALAR: return NO_VAL;
    default: return is_line_reduction(o) ? o->in[0] : NO_VAL;
    }
}

static void find_space(Walk *w) {
    Dim rows = dim_const(1), cols = dim_const(1);
    for (int i = 0; i < w->k->count; i++) {
        Val v = space_of(w, walk_op(w, i));
        if (!v.id) continue;
        widen_space(&rows, &cols, ir_shape(w->f, v));
        if (w->k->kind != KERNEL_TILE) break;
    }
    w->rows = rows;
    w->cols = cols;
}

/* ---- flat spaces ------------------------------------------------------------------------------------------------- */

enum { FLAT_COLUMNS = 256 };

/* One element, or dense and of as many elements as the space. */
static bool is_flat_operand(const Walk *w, const Buffer *b, Dim count) {
    Dim c;
    if (!shape_count(ir_shape(w->f, b->value), &c)) return false;
    return dim_is_one(c) || (b->layout == LAYOUT_ROWS && !b->pitch && dim_equal(c, count));
}

bool walk_draws_by_row(const Walk *w, const Op *o) {
    return o->code == OP_random && !ir_draw_numbers(ir_shape(w->f, o->out[0])).in_order;
}

static bool is_flat_op(const Walk *w, const Op *o) {
    Dim count;
    if (o->code == OP_expand) return shape_count(ir_shape(w->f, o->in[0]), &count) && dim_is_one(count);
    if (o->code == OP_iota || o->code == OP_broadcast || walk_draws_by_row(w, o)) return false;
    if (o->code == OP_reshape) return true;
    return ir_op_info[o->code].flags & (ELEMENTWISE | EFFECT) || o->code == OP_const || o->code == OP_extent ||
           o->code == OP_reduce_or || !walk_is_live(w, o);
}

/* [.., A, B] seen as [.., A * B], until there are columns enough; false: N or the front comes first. */
static bool flatten(const Shape *s, Dim *rows, int64_t *cols) {
    Dim all = dim_const(1);
    *cols = 1;
    int i = s->rank;
    while (i > 0 && !dim_varies(s->d[i - 1]) && *cols < FLAT_COLUMNS) *cols *= s->d[--i].mul;
    for (; i > 0; i--)
        if (!dim_mul(all, s->d[i - 1], &all)) return false;
    *rows = all;
    return true;
}

/* Tile kernels with few columns over dense values may as well see them with more. */
static void find_flat_space(Walk *w) {
    const Shape *shape = NULL;
    Dim count, rows;
    int64_t cols;
    w->flat = false;
    if (w->k->kind != KERNEL_TILE || dim_varies(w->cols) || w->cols.mul >= FLAT_COLUMNS || w->cols.mul % 32 == 0)
        return;
    for (int i = 0; i < w->k->count; i++) {
        const Op *o = walk_op(w, i);
        Val v = space_of(w, o);
        if (!is_flat_op(w, o)) return;
        if (v.id && shape_is_matrix(ir_shape(w->f, v), w->rows, w->cols)) shape = ir_shape(w->f, v);
    }
    if (!shape || !shape_count(shape, &count) || !flatten(shape, &rows, &cols) || cols <= w->cols.mul) return;
    for (int i = 0; i < w->operands.len; i++)
        if (!is_flat_operand(w, walk_operand(w, i), count)) return;
    w->flat = true;
    w->rows = rows;
    w->cols = dim_const(cols);
}

/* ---- spans and levels -------------------------------------------------------------------------------------------- */

Dim walk_segments(const Walk *w) {
    if (!w->segment.mul) return dim_const(1);
    return dim_quotient(w->rows, w->segment);
}

/* The span of a value of this shape beside a result of shape |beside|. */
static bool span_of(const Walk *w, const Shape *s, const Shape *beside, Span *out) {
    Dim r, c;
    bool along_rows = s->rank == 1 && s->d[0].n && beside->rank > 1 && beside->d[beside->rank - 1].n;
    if (along_rows || !shape_matrix(s, &r, &c)) return false; /* [N] beside [N, N] is written [1, N] */
    if (w->flat) {
        *out = dim_is_one(r) && dim_is_one(c) ? SPAN_ONE : SPAN_FULL;
        return true;
    }
    bool one_row = dim_is_one(r), one_col = dim_is_one(c);
    /* a product's result is a tile, even one of a single element */
    bool tile = w->k->kind == KERNEL_PRODUCT && s->rank >= 2 && dim_is_one(w->rows) && dim_is_one(w->cols);
    if (one_row && one_col) *out = tile ? SPAN_FULL : SPAN_ONE;
    else if (w->by_row && s->rank == 1 && beside->rank <= 1 && dim_equal(s->d[0], w->rows))
        *out = SPAN_ROW; /* [R] without N */
    else if (dim_equal(r, w->rows) && dim_equal(c, w->cols)) *out = SPAN_FULL;
    else if (one_row && dim_equal(c, w->cols)) *out = SPAN_COLUMN;
    else if (w->segment.mul && dim_equal(r, walk_segments(w)) && dim_equal(c, w->cols)) *out = SPAN_COLUMN;
    else if (one_col && dim_equal(r, w->rows)) *out = SPAN_ROW;
    else return false;
    return true;
}

static Span join(Span a, Span b) { return a == b || b == SPAN_ONE ? a : a == SPAN_ONE ? b : SPAN_FULL; }

static amp_status misfit(const Walk *w, const Op *o, Val v, amp_error *err) {
    Text t;
    text_init(&t, w->arena);
    type_print(&t, ir_dtype(w->f, v), ir_shape(w->f, v));
    return amp_fail(err, AMP_UNSUPPORTED, "%s: %s: %%%s is %s, which does not fit what the kernel walks", walk_name(w),
                    ir_op_info[o->code].name, ir_value(w->f, v)->name, text_str(&t));
}

/* A vector without N, one number per row of [R, C]. */
static bool is_along_columns(const Func *f, const Op *broadcast) {
    const Dims *dims = &ir_attr(broadcast, "dims")->dims;
    const Shape *like = ir_shape(f, broadcast->in[1]);
    return ir_shape(f, broadcast->in[0])->rank == 1 && like->rank == 2 && dims->count == 1 &&
           (dims->at[0] == 1 || dims->at[0] == -1);
}

static amp_status place_input(Walk *w, const Op *o, Val v, amp_error *err) {
    ValueWalk *x = &w->values[v.id];
    if (x->made) return AMP_OK;
    const Shape *beside = o->n_out ? ir_shape(w->f, o->out[0]) : ir_shape(w->f, v);
    if (o->code == OP_broadcast && is_along_columns(w->f, o)) x->span = SPAN_ROW;
    else if (!span_of(w, ir_shape(w->f, v), beside, &x->span)) return misfit(w, o, v, err);
    x->operand = find_readable(w, v);
    if (x->operand < 0)
        return amp_fail(err, AMP_UNSUPPORTED, "%s: %s reads %%%s, which no buffer holds in rows or panels",
                        walk_name(w), ir_op_info[o->code].name, ir_value(w->f, v)->name);
    return AMP_OK;
}

static bool is_one_per_line(const Walk *w, const Shape *s) {
    Dim count, lines = w->rows;
    if (!w->by_row && shape_is_matrix(s, walk_segments(w), w->cols)) return true;
    if (!w->by_row && !dim_mul(walk_segments(w), w->cols, &lines)) return false;
    return shape_count(s, &count) && dim_equal(count, lines);
}

/* The result of a reduction along the lines must be one element per line. */
static amp_status place_reduction(Walk *w, const Op *o, amp_error *err) {
    ValueWalk *x = &w->values[o->out[0].id];
    bool fits = is_one_per_line(w, ir_shape(w->f, o->out[0]));
    if (!fits || (w->k->kind != KERNEL_ROW && w->k->kind != KERNEL_COLUMN)) return misfit(w, o, o->out[0], err);
    x->span = walk_line_span(w);
    x->level = w->values[o->in[0].id].level + 1;
    return AMP_OK;
}

static amp_status place_in_memory(const Walk *w, const Op *o, int n, amp_error *err) {
    if (w->values[o->in[n].id].inlined || walk_memory_operand(w, o, n) >= 0) return AMP_OK;
    return amp_fail(err, AMP_UNSUPPORTED, "%s: %s reads %%%s, which no buffer holds in rows or panels", walk_name(w),
                    ir_op_info[o->code].name, ir_value(w->f, o->in[n])->name);
}

/* What an inlined op reads besides has its place in the loop nest. */
static amp_status place_inlined(Walk *w, const Op *o, amp_error *err) {
    for (int n = 0; n < o->n_in; n++) {
        if (walk_reads_inlined(w, o, n)) {
            AMP_TRY(place_in_memory(w, o, n, err));
            w->values[o->in[n].id].span = SPAN_FULL;
        } else if (walk_reads(w, o, n)) AMP_TRY(place_input(w, o, o->in[n], err));
    }
    w->values[o->out[0].id].span = SPAN_FULL;
    return AMP_OK;
}

/* What moves makes full values of what earlier kernels wrote. */
static amp_status place_indirect(Walk *w, const Op *o, amp_error *err) {
    for (int n = o->code == OP_assign; n < o->n_in; n++)
        if (ir_reads_elements(o, n)) AMP_TRY(place_in_memory(w, o, n, err));
    for (int r = 0; r < o->n_out; r++) {
        Span span;
        const Shape *s = ir_shape(w->f, o->out[r]);
        Dim count;
        bool fits = ir_kernel_info[w->k->kind].traits & BY_INPUT || shape_is_matrix(s, w->rows, w->cols) ||
                    (span_of(w, s, s, &span) && (span == SPAN_FULL || (shape_count(s, &count) && dim_is_one(count))));
        if (!fits || w->k->kind == KERNEL_SCALAR) return misfit(w, o, o->out[r], err);
        w->values[o->out[r].id].span = SPAN_FULL;
    }
    return AMP_OK;
}

static amp_status place_op(Walk *w, const Op *o, amp_error *err) {
    Span span = SPAN_ONE;
    int level = 0;
    if (!walk_is_live(w, o)) return AMP_OK;
    if (walk_is_indirect(w, o)) return place_indirect(w, o, err);
    if (walk_is_inlined(w, o)) return place_inlined(w, o, err);
    for (int n = 0; n < o->n_in; n++) {
        if (!walk_reads(w, o, n)) continue;
        AMP_TRY(place_input(w, o, o->in[n], err));
        span = join(span, w->values[o->in[n].id].span);
        if (level < w->values[o->in[n].id].level) level = w->values[o->in[n].id].level;
    }
    if (is_line_reduction(o)) return place_reduction(w, o, err);
    if (!o->n_out || o->code == OP_reduce_or) return AMP_OK;
    bool by_shape = o->code == OP_iota || o->code == OP_random || o->code == OP_broadcast || o->code == OP_expand ||
                    ir_is_product(o);
    const Shape *s = ir_shape(w->f, o->out[0]);
    Span shaped = span;
    if (by_shape && !span_of(w, s, s, &shaped)) return misfit(w, o, o->out[0], err);
    /* a single element of a reduced value is its line's */
    w->values[o->out[0].id].span = shaped == SPAN_ONE ? span : shaped;
    w->values[o->out[0].id].level = level;
    return AMP_OK;
}

/* ---- sinks ------------------------------------------------------------------------------------------------------- */

static void add_sink(Walk *w, SinkKind kind, const Op *o, Val v, int operand) {
    Sink s = {kind, o, v, operand, w->values[v.id].level};
    vec_push(w->arena, &w->sinks, s);
}

/* Every buffer of |holder| that the kernel writes takes |v|. */
static int store_all(Walk *w, const Op *o, Val holder, Val v) {
    int stores = 0;
    for (int i = 0; i < w->operands.len; i++) {
        const Buffer *b = walk_operand(w, i);
        if (b->value.id != holder.id || !walk_is_written(w, i)) continue;
        if (b->kind == BUFFER_LOOK) add_sink(w, SINK_LOOK, o, o->in[0], i);
        else add_sink(w, o->code == OP_reduce_or ? SINK_FLAG : SINK_STORE, o, v, i);
        stores++;
    }
    return stores;
}

static amp_status find_sinks(Walk *w, amp_error *err) {
    const bool by_input = ir_kernel_info[w->k->kind].traits & BY_INPUT;
    w->sinks.len = 0;
    for (int i = 0; i < w->k->count; i++) {
        const Op *o = walk_op(w, i);
        if (o->pred.id && o->pred.id != w->k->pred.id)
            return amp_fail(err, AMP_INTERNAL, "%s: %s has a predicate that is not the kernel's", walk_name(w),
                            ir_op_info[o->code].name);
        if (is_line_reduction(o)) add_sink(w, SINK_REDUCE, o, o->in[0], -1);
        if (o->code == OP_assign && !by_input && !store_all(w, o, o->in[0], o->in[1]))
            return amp_fail(err, AMP_INTERNAL, "%s: it assigns %%%s but writes no buffer of it", walk_name(w),
                            ir_value(w->f, o->in[0])->name);
        if (o->code == OP_reduce_or) store_all(w, o, o->out[0], o->in[0]);
        else
            for (int r = 0; r < o->n_out && !by_input; r++) store_all(w, o, o->out[r], o->out[r]);
    }
    return AMP_OK;
}

/* A state is written in the last phase, because earlier ones may read it again. */
static void place_sinks(Walk *w) {
    w->phases = 1;
    for (int i = 0; i < w->sinks.len; i++)
        if (walk_is_inner(w, w->values[w->sinks.data[i].value.id].span) || w->sinks.data[i].kind == SINK_REDUCE)
            if (w->phases <= w->sinks.data[i].level) w->phases = w->sinks.data[i].level + 1;
    w->writes_tiles = false;
    for (int i = 0; i < w->sinks.len; i++) {
        Sink *s = &w->sinks.data[i];
        bool full = s->kind == SINK_STORE && w->values[s->value.id].span == SPAN_FULL;
        if (s->op->code == OP_assign) s->level = w->phases - 1;
        if (full && walk_operand(w, s->operand)->layout != LAYOUT_ROWS) w->writes_tiles = true;
    }
}

/* ---- what is needed, what is kept -------------------------------------------------------------------------------- */

static void need_nothing(ValueWalk *x) { x->needed = false; }
static void touch_nothing(ValueWalk *x) { x->touched = false; }

static void for_values(Walk *w, void (*each)(ValueWalk *x)) {
    for (int i = 0; i < w->k->count; i++) {
        const Op *o = walk_op(w, i);
        for (int n = 0; n < o->n_in; n++) each(&w->values[o->in[n].id]);
        for (int r = 0; r < o->n_out; r++) each(&w->values[o->out[r].id]);
    }
}

void walk_find_needed(Walk *w) {
    for_values(w, need_nothing);
    for (int i = 0; i < w->sinks.len; i++)
        if (w->sinks.data[i].kind != SINK_REDUCE) w->values[w->sinks.data[i].value.id].needed = true;
    for (int i = w->k->count - 1; i >= 0; i--) {
        const Op *o = walk_op(w, i);
        for (int r = 1; r < o->n_out; r++)
            if (w->values[o->out[r].id].needed) w->values[o->out[0].id].needed = true;
        if (!o->n_out || (!w->values[o->out[0].id].needed && !walk_is_inlined(w, o))) continue; /* assign: its sink */
        for (int n = 0; n < o->n_in; n++)
            if (walk_reads(w, o, n)) w->values[o->in[n].id].needed = true;
    }
}

void walk_phase(Walk *w, int p) {
    for_values(w, touch_nothing);
    for (int i = 0; i < w->sinks.len; i++) {
        const Sink *s = &w->sinks.data[i];
        bool wanted = s->kind != SINK_REDUCE || w->values[s->op->out[0].id].needed;
        if (s->level == p && wanted) w->values[s->value.id].touched = true;
    }
    for (int i = w->k->count - 1; i >= 0; i--) {
        const Op *o = walk_op(w, i);
        ValueWalk *x = o->n_out ? &w->values[o->out[0].id] : NULL;
        for (int r = 1; r < o->n_out; r++)
            if (w->values[o->out[r].id].touched) x->touched = true;
        if (!x || !x->touched || !walk_is_inner(w, x->span) || (x->kept && x->level < p)) continue;
        for (int n = 0; n < o->n_in; n++)
            if (walk_reads(w, o, n)) w->values[o->in[n].id].touched = true;
    }
}

/* The level of an inner value becomes the first phase that touches it. */
static void raise_levels(Walk *w) {
    for (int p = w->phases - 1; p >= 0; p--) {
        walk_phase(w, p);
        for (int i = 0; i < w->k->count; i++) {
            const Op *o = walk_op(w, i);
            ValueWalk *x = o->n_out ? &w->values[o->out[0].id] : NULL;
            for (int r = 0; x && x->touched && walk_is_inner(w, x->span) && r < o->n_out; r++)
                w->values[o->out[r].id].level = p;
        }
    }
}

/* Made in one phase, read in a later one, and worth more than a load. */
static void keep(Walk *w, Val v, int reader_level, int64_t *bytes) {
    ValueWalk *x = &w->values[v.id];
    const Op *def = ir_def(w->f, v);
    if (!x->made || x->kept || x->span != SPAN_FULL || x->level >= reader_level || dim_varies(w->cols)) return;
    if (def->code == OP_iota || def->code == OP_broadcast || def->n_out > 1) return;
    x->kept = true;
    *bytes += (w->cols.mul + 31) / 32 * 32 * 4;
}

static void keep_nothing(Walk *w) {
    for (int i = 0; i < w->k->count; i++)
        if (walk_op(w, i)->n_out) w->values[walk_op(w, i)->out[0].id].kept = false;
}

void walk_find_kept(Walk *w) {
    int64_t bytes = 0;
    if (!w->by_row || w->phases < 2) return;
    keep_nothing(w);
    raise_levels(w);
    for (int i = 0; i < w->k->count; i++) {
        const Op *o = walk_op(w, i);
        int level = o->n_out && walk_is_inner(w, w->values[o->out[0].id].span) ? w->values[o->out[0].id].level : 0;
        for (int n = 0; n < o->n_in; n++)
            if (walk_reads(w, o, n)) keep(w, o->in[n], level, &bytes);
    }
    for (int i = 0; i < w->sinks.len; i++) keep(w, w->sinks.data[i].value, w->sinks.data[i].level, &bytes);
    if (bytes > KEPT_BYTES) keep_nothing(w);
}

int walk_number(const Walk *w, Val v) { return w->values[v.id].number; }

int walk_numbers(const Walk *w) {
    int numbers = 1;
    for (int i = 0; i < w->k->count; i++) numbers += walk_op(w, i)->n_in + walk_op(w, i)->n_out;
    return numbers;
}

static void number_value(Walk *w, Val v, int *last) {
    if (!w->values[v.id].number) w->values[v.id].number = ++*last;
}

static void forget_last_kernel(Walk *w) {
    static const ValueWalk fresh = {.operand = -1};
    for (int i = 0; i < w->k->count; i++) {
        const Op *o = walk_op(w, i);
        for (int n = 0; n < o->n_in; n++) w->values[o->in[n].id] = fresh;
        for (int r = 0; r < o->n_out; r++) w->values[o->out[r].id] = fresh;
    }
    for (int i = 0; i < w->k->writes.len; i++)
        w->values[w->f->buffers.data[w->k->writes.data[i] - 1]->value.id] = fresh;
    for (int i = 0, last = 0; i < w->k->count; i++) {
        const Op *o = walk_op(w, i);
        for (int n = 0; n < o->n_in; n++) number_value(w, o->in[n], &last);
        for (int r = 0; r < o->n_out; r++) {
            number_value(w, o->out[r], &last);
            w->values[o->out[r].id].made = true;
        }
    }
}

/* From the last op to the first.  Views and exact widenings of memory are read there as what they are. */
static void find_inlined(Walk *w) {
    for (int i = w->k->count - 1; i >= 0 && w->k->kind == KERNEL_TILE; i--) {
        const Op *o = walk_op(w, i);
        if (ir_takes_inlined(w->f, o)) w->values[o->in[0].id].inlined = is_made_in_registers(w, o->in[0]);
        for (int n = 0; n < o->n_in && walk_is_inlined(w, o); n++)
            if (w->values[o->in[n].id].made && same_matrix(w, o->in[n], o->out[0]))
                w->values[o->in[n].id].inlined = true;
    }
}

/* From the last op to the first: what is written, and what live ops read in registers. */
static void find_live(Walk *w) {
    for (int i = 0; i < w->k->writes.len; i++)
        w->values[w->f->buffers.data[w->k->writes.data[i] - 1]->value.id].live = true;
    for (int i = w->k->count - 1; i >= 0; i--) {
        const Op *o = walk_op(w, i);
        for (int n = 0; n < o->n_in && walk_is_live(w, o); n++)
            if (walk_reads(w, o, n) || w->values[o->in[n].id].inlined) w->values[o->in[n].id].live = true;
    }
}

amp_status walk_kernel(Walk *w, const Kernel *k, amp_error *err) {
    w->k = k;
    w->by_row = k->kind == KERNEL_ROW;
    w->segment = k->segment;
    w->flat = false;
    forget_last_kernel(w);
    list_operands(w);
    find_inlined(w);
    find_live(w);
    find_space(w);
    if (ir_kernel_info[k->kind].traits & RUNTIME) return AMP_OK;
    find_flat_space(w);
    if (w->flat) find_live(w); /* what a reshape moves is now read in registers */
    for (int i = 0; i < k->count; i++) AMP_TRY(place_op(w, walk_op(w, i), err));
    AMP_TRY(find_sinks(w, err));
    place_sinks(w);
    walk_find_needed(w);
    walk_find_kept(w);
    return AMP_OK;
}
