/* walk.c: see walk.h. */
#include "codegen/walk.h"

enum { KEPT_BYTES = 64 << 10 }; /* of stack, for values that several phases of a row need */

void walk_init(Walk *w, const Func *f, Arena *a) {
    *w = (Walk){.f = f, .arena = a};
    w->values = arena_array(a, ValueWalk, f->values.len + 1);
}

const char *walk_name(const Walk *w) {
    return arena_printf(w->arena, "kernel %s of %s (%s)", w->k->name, w->f->name,
                        w->k->title ? w->k->title : "untitled");
}

Span walk_line_span(const Walk *w) { return w->by_row ? SPAN_ROW : SPAN_COLUMN; }

bool walk_is_inner(const Walk *w, Span s) { return s == SPAN_FULL || (s != SPAN_ONE && s != walk_line_span(w)); }

bool walk_reads(const Op *o, int n) {
    switch (o->code) {
    case OP_iota:
    case OP_extent:
    case OP_contract: return false; /* the runtime reads a product's operands */
    case OP_random:
    case OP_assign: return n != 0;    /* like; the state, which is written */
    case OP_broadcast: return n != 1; /* like */
    default: return true;
    }
}

static bool is_line_reduction(const Op *o) {
    return o->code == OP_reduce_sum || o->code == OP_reduce_max || o->code == OP_reduce_min;
}

/* ---- operands ---------------------------------------------------------------------------------------------------- */

const Buffer *walk_operand(const Walk *w, int i) { return w->f->buffers.data[w->operands.data[i] - 1]; }

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

/* Elementwise code reads rows and panels. */
static int find_readable(const Walk *w, Val v) {
    for (int i = 0; i < w->k->reads.len; i++) {
        const Buffer *b = walk_operand(w, i);
        if (b->value.id == v.id && (b->layout == LAYOUT_ROWS || b->layout == LAYOUT_PANELS)) return i;
    }
    return -1;
}

static bool is_write(const Walk *w, int operand) {
    for (int i = 0; i < w->k->writes.len; i++)
        if (w->k->writes.data[i] == w->operands.data[operand]) return true;
    return false;
}

/* ---- the space --------------------------------------------------------------------------------------------------- */

/* The larger of two matrices, as far as one value of each is enough to know. */
static void widen_space(Dim *rows, Dim *cols, const Shape *s) {
    Dim r, c;
    if (!shape_matrix(s, &r, &c)) return;
    if (dim_is_one(*rows)) *rows = r;
    if (dim_is_one(*cols)) *cols = c;
}

static amp_status find_space(Walk *w, amp_error *err) {
    Dim rows = dim_const(1), cols = dim_const(1);
    for (int i = 0; i < w->k->count && w->k->kind != KERNEL_SCALAR; i++) {
        const Op *o = walk_op(w, i);
        if (w->k->kind == KERNEL_PRODUCT ? o->code == OP_contract : is_line_reduction(o)) {
            widen_space(&rows, &cols, ir_shape(w->f, w->k->kind == KERNEL_PRODUCT ? o->out[0] : o->in[0]));
            break;
        }
        bool by_input = !o->n_out || o->code == OP_reduce_or;
        if (w->k->kind == KERNEL_TILE) widen_space(&rows, &cols, ir_shape(w->f, by_input ? o->in[0] : o->out[0]));
    }
    if (cols.n)
        return amp_fail(err, AMP_UNSUPPORTED, "%s: a last dimension that depends on N is not built yet", walk_name(w));
    w->rows = rows;
    w->cols = cols.mul;
    return AMP_OK;
}

/* ---- spans and levels -------------------------------------------------------------------------------------------- */

/* The span of a value of this shape beside a result of shape |beside|. */
static bool span_of(const Walk *w, const Shape *s, const Shape *beside, Span *out) {
    Dim r, c, all_cols = dim_const(w->cols);
    if (!shape_matrix(s, &r, &c)) return false;
    bool one_row = dim_is_one(r), one_col = dim_is_one(c);
    /* a product's result is a tile, even one of a single element */
    bool tile = w->k->kind == KERNEL_PRODUCT && s->rank == 2 && dim_is_one(w->rows) && w->cols == 1;
    if (one_row && one_col) *out = tile ? SPAN_FULL : SPAN_ONE;
    else if (w->by_row && s->rank == 1 && beside->rank <= 1 && dim_equal(s->d[0], w->rows))
        *out = SPAN_ROW; /* [R] without N */
    else if (dim_equal(r, w->rows) && dim_equal(c, all_cols)) *out = SPAN_FULL;
    else if (one_row && dim_equal(c, all_cols)) *out = SPAN_COLUMN;
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

/* The result of a reduction along the lines must be one element per line. */
static amp_status place_reduction(Walk *w, const Op *o, amp_error *err) {
    Dim count, lines = w->by_row ? w->rows : dim_const(w->cols);
    ValueWalk *x = &w->values[o->out[0].id];
    bool fits = shape_count(ir_shape(w->f, o->out[0]), &count) && dim_equal(count, lines);
    if (!fits || (w->k->kind != KERNEL_ROW && w->k->kind != KERNEL_COLUMN)) return misfit(w, o, o->out[0], err);
    x->span = walk_line_span(w);
    x->level = w->values[o->in[0].id].level + 1;
    return AMP_OK;
}

static amp_status place_op(Walk *w, const Op *o, amp_error *err) {
    Span span = SPAN_ONE;
    int level = 0;
    for (int n = 0; n < o->n_in; n++) {
        if (!walk_reads(o, n)) continue;
        AMP_TRY(place_input(w, o, o->in[n], err));
        span = join(span, w->values[o->in[n].id].span);
        if (level < w->values[o->in[n].id].level) level = w->values[o->in[n].id].level;
    }
    if (is_line_reduction(o)) return place_reduction(w, o, err);
    if (!o->n_out || o->code == OP_reduce_or) return AMP_OK;
    bool by_shape = o->code == OP_iota || o->code == OP_random || o->code == OP_broadcast || o->code == OP_contract;
    const Shape *s = ir_shape(w->f, o->out[0]);
    if (by_shape && !span_of(w, s, s, &span)) return misfit(w, o, o->out[0], err);
    w->values[o->out[0].id].span = span;
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
        if (b->value.id != holder.id || !is_write(w, i)) continue;
        add_sink(w, o->code == OP_reduce_or ? SINK_FLAG : SINK_STORE, o, v, i);
        stores++;
    }
    return stores;
}

static amp_status find_sinks(Walk *w, amp_error *err) {
    w->sinks.len = 0;
    for (int i = 0; i < w->k->count; i++) {
        const Op *o = walk_op(w, i);
        if (o->pred.id && o->pred.id != w->k->pred.id)
            return amp_fail(err, AMP_INTERNAL, "%s: %s has a predicate that is not the kernel's", walk_name(w),
                            ir_op_info[o->code].name);
        if (is_line_reduction(o)) add_sink(w, SINK_REDUCE, o, o->in[0], -1);
        if (o->code == OP_assign && !store_all(w, o, o->in[0], o->in[1]))
            return amp_fail(err, AMP_INTERNAL, "%s: it assigns %%%s but writes no buffer of it", walk_name(w),
                            ir_value(w->f, o->in[0])->name);
        if (o->code == OP_reduce_or) store_all(w, o, o->out[0], o->in[0]);
        else if (o->n_out) store_all(w, o, o->out[0], o->out[0]);
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

static void find_needed(Walk *w) {
    for (int i = 0; i < w->sinks.len; i++)
        if (w->sinks.data[i].kind != SINK_REDUCE) w->values[w->sinks.data[i].value.id].needed = true;
    for (int i = w->k->count - 1; i >= 0; i--) {
        const Op *o = walk_op(w, i);
        if (o->n_out && !w->values[o->out[0].id].needed) continue;
        for (int n = 0; n < o->n_in; n++)
            if (walk_reads(o, n)) w->values[o->in[n].id].needed = true;
    }
}

static void touch_nothing(Walk *w) {
    for (int i = 0; i < w->k->count; i++) {
        const Op *o = walk_op(w, i);
        for (int n = 0; n < o->n_in; n++) w->values[o->in[n].id].touched = false;
        for (int r = 0; r < o->n_out; r++) w->values[o->out[r].id].touched = false;
    }
}

void walk_phase(Walk *w, int p) {
    touch_nothing(w);
    for (int i = 0; i < w->sinks.len; i++) {
        const Sink *s = &w->sinks.data[i];
        bool wanted = s->kind != SINK_REDUCE || w->values[s->op->out[0].id].needed;
        if (s->level == p && wanted) w->values[s->value.id].touched = true;
    }
    for (int i = w->k->count - 1; i >= 0; i--) {
        const Op *o = walk_op(w, i);
        const ValueWalk *x = o->n_out ? &w->values[o->out[0].id] : NULL;
        if (!x || !x->touched || !walk_is_inner(w, x->span) || (x->kept && x->level < p)) continue;
        for (int n = 0; n < o->n_in; n++)
            if (walk_reads(o, n)) w->values[o->in[n].id].touched = true;
    }
}

/* The level of an inner value becomes the first phase that touches it. */
static void raise_levels(Walk *w) {
    for (int p = w->phases - 1; p >= 0; p--) {
        walk_phase(w, p);
        for (int i = 0; i < w->k->count; i++) {
            const Op *o = walk_op(w, i);
            ValueWalk *x = o->n_out ? &w->values[o->out[0].id] : NULL;
            if (x && x->touched && walk_is_inner(w, x->span)) x->level = p;
        }
    }
}

/* Made in one phase, read in a later one, and worth more than a load. */
static void keep(Walk *w, Val v, int reader_level, int64_t *bytes) {
    ValueWalk *x = &w->values[v.id];
    const Op *def = ir_def(w->f, v);
    if (!x->made || x->kept || x->span != SPAN_FULL || x->level >= reader_level) return;
    if (def->code == OP_iota || def->code == OP_broadcast) return;
    x->kept = true;
    *bytes += (w->cols + 31) / 32 * 32 * 4;
}

static void find_kept(Walk *w) {
    int64_t bytes = 0;
    if (!w->by_row || w->phases < 2) return;
    raise_levels(w);
    for (int i = 0; i < w->k->count; i++) {
        const Op *o = walk_op(w, i);
        int level = o->n_out && walk_is_inner(w, w->values[o->out[0].id].span) ? w->values[o->out[0].id].level : 0;
        for (int n = 0; n < o->n_in; n++)
            if (walk_reads(o, n)) keep(w, o->in[n], level, &bytes);
    }
    for (int i = 0; i < w->sinks.len; i++) keep(w, w->sinks.data[i].value, w->sinks.data[i].level, &bytes);
    if (bytes <= KEPT_BYTES) return;
    for (int i = 0; i < w->k->count; i++)
        if (walk_op(w, i)->n_out) w->values[walk_op(w, i)->out[0].id].kept = false;
}

int walk_number(const Walk *w, Val v) { return w->values[v.id].number; }

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
    for (int i = 0, last = 0; i < w->k->count; i++) {
        const Op *o = walk_op(w, i);
        for (int n = 0; n < o->n_in; n++) number_value(w, o->in[n], &last);
        for (int r = 0; r < o->n_out; r++) {
            number_value(w, o->out[r], &last);
            w->values[o->out[r].id].made = true;
        }
    }
}

amp_status walk_kernel(Walk *w, const Kernel *k, amp_error *err) {
    w->k = k;
    w->by_row = k->kind == KERNEL_ROW;
    forget_last_kernel(w);
    list_operands(w);
    AMP_TRY(find_space(w, err));
    for (int i = 0; i < k->count; i++) AMP_TRY(place_op(w, walk_op(w, i), err));
    AMP_TRY(find_sinks(w, err));
    place_sinks(w);
    find_needed(w);
    find_kept(w);
    return AMP_OK;
}
