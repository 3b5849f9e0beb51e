/* indirect.c: one op that makes its result from memory, and sums of products that are no tiles of a matrix product:
 * batch_contract, and convolutions in groups; sums of parts.
 *
 *     vf v12;                                               float v12;
 *     {                                                     {
 *         const int64_t j = col0 + c;
 *         const uint64_t row = (uint64_t)(row0 + r);
 *         const int64_t i0 = row / 784, i1 = ..;                const int64_t i0 = quotient(r, 784), i1 = ..;
 *         v12 = load_f32(AT_PANELS(m3, ..));                    v12 = get_f32(b3 + ..);
 *     }                                                     }
 *
 * Where neighbours of the result are neighbours in the operand, a vector is loaded, else lane by lane.
 */
#include "codegen/indirect.h"

Memory indirect_memory(const Emitter *e, const Op *o, int n) {
    const Walk *w = e->w;
    const Shape *s = ir_shape(w->f, o->in[n]);
    Memory m = {.operand = walk_memory_operand(w, o, n)};
    Dim rows = dim_const(1), cols = dim_const(1);
    shape_matrix(s, &rows, &cols);
    m.layout = walk_operand(w, m.operand)->layout;
    m.storage = emit_storage(w, m.operand);
    m.shape = emit_matrix_shape(s);
    m.cols = emit_dim_factor(w->arena, cols);
    m.rows = arena_printf(w->arena, "(%s + 31) / 32 * 32", emit_dim(w->arena, rows));
    return m;
}

static const char *element_at(const Emitter *e, const Memory *m, const char *row, const char *column) {
    return e->spelling->element_at(e, m, row, column);
}

/* In the result's columns. */
static const char *read_columns(Emitter *e, const Memory *m, const char *row) {
    return indirect_read(e, m, row, e->spelling->column);
}

/* ---- sums of products: v12 = a chain over i, ascending, as in matrix products ------------------------------------ */

/* v12 += x y, in each lane. */
static void add_product(Emitter *e, const Op *o, const char *x, const char *y) {
    int sum = walk_number(e->w, o->out[0]);
    indirect_open_lanes(e, o);
    emit_line(e, "v%d = fma_%s(%s, %s, v%d);", sum, emit_suffix(AMP_DT_F32, !e->per_thread), x, y, sum);
    indirect_close_lanes(e);
}

static void open_sum(Emitter *e, const char *count) { emit_open(e, "for (int64_t i = 0; i < %s; i++)", count); }

static void close_sum(Emitter *e, const Op *o, const char *x, const char *y) {
    add_product(e, o, x, y);
    emit_close(e);
}

/* Element i of the rows of |m| that are numbered as the result's columns, from |batch| times |count| on. */
static const char *column_of_rows(Emitter *e, const Memory *m, const char *count) {
    if (e->per_thread) return element_at(e, m, arena_printf(e->w->arena, "batch * %s + c", count), "i");
    const char *row = arena_printf(e->w->arena, "(batch * %s + j + l)", count);
    emit_line(e, "float y[W] = {0};");
    emit_line(e, "for (int64_t l = 0; l < %s; l++) y[l] = %s;", e->lanes, element_at(e, m, row, "i"));
    return "load_f32(y)";
}

/* batch_contract: result [B.., M, N], row = b * M + m. */
static void emit_batch(Emitter *e, const Op *o) {
    Arena *a = e->w->arena;
    const Spelling *p = e->spelling;
    Memory x = indirect_memory(e, o, 0), y = indirect_memory(e, o, 1);
    bool ta = ir_attr(o, "ta")->b, tb = ir_attr(o, "tb")->b;
    const Shape *s = ir_shape(e->w->f, o->out[0]);
    const char *m = emit_dim(a, s->d[s->rank - 2]), *depth = emit_dim(a, x.shape.d[x.shape.rank - (ta ? 2 : 1)]);
    emit_line(e,
              e->per_thread ? "MAYBE_UNUSED const int64_t batch = quotient(r, %s), m = modulo(r, %s);"
                            : "MAYBE_UNUSED const int64_t batch = (int64_t)row / (%s), m = (int64_t)row %% (%s);",
              m, m);
    indirect_put_zero(e, o);
    open_sum(e, depth);
    const char *by_i = arena_printf(a, "batch * (%s) + i", depth);
    const char *left = ta ? element_at(e, &x, by_i, "m") : element_at(e, &x, p->row, "i");
    const char *right = tb ? column_of_rows(e, &y, emit_dim_factor(a, s->d[s->rank - 1])) : read_columns(e, &y, by_i);
    close_sum(e, o, arena_printf(a, p->splat, left), right);
}

/* Channel i of the group of each column, at `pixel` of |m|; groups have |width| columns each, and |depth| channels of
 * |m|. */
static const char *group_channel(Emitter *e, const Memory *m, long long width, long long depth) {
    Arena *a = e->w->arena;
    bool one_group = e->per_thread || width % 16 == 0; /* for all lanes */
    const char *from = one_group ? e->spelling->column : e->spelling->lane;
    const char *element = element_at(e, m, "pixel", arena_printf(a, "%s / %lld * %lld + i", from, width, depth));
    if (e->lane_count) return read_columns(e, m, "pixel");
    if (e->per_thread) return element;
    if (width == 1 && depth == 1) emit_line(e, "const vf x = %s;", read_columns(e, m, "pixel"));
    else if (one_group) emit_line(e, "const vf x = splat_f(%s);", element);
    else {
        emit_line(e, "float lanes[W] = {0};");
        emit_line(e, "for (int64_t l = 0; l < %s; l++) lanes[l] = %s;", e->lanes, element);
        emit_line(e, "const vf x = load_f32(lanes);");
    }
    return "x";
}

/* conv and conv_data: sums over taps and the channels of the group. */
static void emit_pixels(Emitter *e, const Op *o, const Windows *g) {
    Memory image = indirect_memory(e, o, 0), weights = indirect_memory(e, o, 1);
    bool forward = o->code == OP_conv;
    int64_t depth = (forward ? g->c : g->oc) / g->groups, width = (forward ? g->oc : g->c) / g->groups;
    const char *count = arena_printf(e->w->arena, "%lld", (long long)depth);
    const char *row = arena_printf(e->w->arena, "(kh * %lld + kw) * %lld + i", (long long)g->kw, (long long)depth);
    indirect_put_zero(e, o);
    emit_line(e, "for (int64_t kh = 0; kh < %lld; kh++)", (long long)g->kh);
    emit_open(e, "for (int64_t kw = 0; kw < %lld; kw++)", (long long)g->kw);
    if (forward) indirect_input_pixel(e, g, "i0", "i1", "i2");
    else indirect_output_pixel(e, g);
    open_sum(e, count);
    const char *channel = group_channel(e, &image, width, depth);
    close_sum(e, o, channel, read_columns(e, &weights, row));
    emit_close(e);
}

/* conv_weight: result [KH, KW, C / groups, O], row (kh, kw, i), summed over the pixels of y. */
static void emit_weights(Emitter *e, const Op *o, const Windows *g) {
    Memory image = indirect_memory(e, o, 0), dy = indirect_memory(e, o, 1);
    emit_line(e, e->lane_count ? "const int64_t kh = i0, kw = i1;" : "const int64_t kh = i0, kw = i1, i = i2;");
    indirect_put_zero(e, o);
    emit_line(e, "for (int64_t s = 0; s < %s; s++)", emit_dim(e->w->arena, image.shape.d[0]));
    emit_line(e, "for (int64_t oy = 0; oy < %lld; oy++)", (long long)g->oh);
    emit_open(e, "for (int64_t ox = 0; ox < %lld; ox++)", (long long)g->ow);
    indirect_input_pixel(e, g, "s", "oy", "ox");
    const char *row = arena_printf(e->w->arena, "(s * %lld + oy) * %lld + ox", (long long)g->oh, (long long)g->ow);
    const char *channel = group_channel(e, &image, g->oc / g->groups, g->c / g->groups);
    add_product(e, o, channel, read_columns(e, &dy, row));
    emit_close(e);
}

/* sum_parts: the same element of each part.  Only for targets whose threads make an element each: the others have no
 * parts.  The number of elements is not a constant if kernels of several counts share their text; kernels with a
 * pitch, which count elements past the columns too, share none. */
static amp_status emit_parts(Emitter *e, const Op *o) {
    Arena *a = e->w->arena;
    Memory parts = indirect_memory(e, o, 0);
    const int sum = walk_number(e->w, o->out[0]);
    Dim count;
    if (!e->per_thread || !shape_count(ir_shape(e->w->f, o->out[0]), &count))
        return amp_fail(e->err, AMP_UNSUPPORTED, "%s: sum_parts: its result is too large", walk_name(e->w));
    const bool is_counted = e->w->k->kind == KERNEL_TILE && !walk_pitch(e->w);
    parts.cols = is_counted ? "elements" : emit_dim_factor(a, count);
    emit_line(e, "v%d = %s;", sum, e->spelling->zero);
    emit_line(e, "_Pragma(\"unroll 16\")"); /* 16 loads in flight */
    emit_line(e, "for (int64_t part = 0; part < %lld; part++) v%d = v%d + %s;",
              (long long)ir_shape(e->w->f, o->in[0])->d[0].mul, sum, sum, element_at(e, &parts, "part", e->element));
    return AMP_OK;
}

static amp_status emit_sums(Emitter *e, const Op *o) {
    if (o->code == OP_batch_contract) {
        emit_batch(e, o);
        return AMP_OK;
    }
    Windows g = ir_windows(e->w->f, o);
    if (o->code == OP_conv_weight) emit_weights(e, o, &g);
    else emit_pixels(e, o, &g);
    return AMP_OK;
}

/* ---- one op ------------------------------------------------------------------------------------------------------ */

typedef amp_status (*EmitFn)(Emitter *e, const Op *o);

static EmitFn rule_of(Opcode code) {
    switch (code) {
    case OP_reshape:
    case OP_permute:
    case OP_slice:
    case OP_pad:
    case OP_concat:
    case OP_expand:
    case OP_gather: return indirect_emit_move;
    case OP_window_max:
    case OP_window_sum:
    case OP_window_max_grad:
    case OP_window_sum_grad: return indirect_emit_window;
    case OP_resample:
    case OP_resample_grad: return indirect_emit_resample;
    case OP_batch_contract:
    case OP_conv:
    case OP_conv_data:
    case OP_conv_weight: return emit_sums;
    case OP_sum_parts: return emit_parts;
    default: return NULL;
    }
}

/* The i64 and f64 of scalars have no vectors. */
static amp_status check_type(const Emitter *e, const Op *o, Val v) {
    if (emit_type(ir_dtype(e->w->f, v), !e->per_thread)) return AMP_OK;
    return amp_fail(e->err, AMP_UNSUPPORTED, "%s: %s of %s is not supported", walk_name(e->w), ir_op_info[o->code].name,
                    amp_dtype_name(ir_dtype(e->w->f, v)));
}

static void put_result_name(Emitter *e, Val v) {
    const char *type = emit_type(ir_dtype(e->w->f, v), !e->per_thread);
    const int id = walk_number(e->w, v);
    if (e->lanes_of_row && e->lane_count) emit_line(e, "%s(&x%d)[%d] = all%d[u];", type, id, e->lane_count, id);
    else if (e->lane_count) emit_line(e, "%s x%d[%d];", type, id, e->lane_count);
    else emit_line(e, "%s v%d;", type, id);
}

amp_status indirect_emit(Emitter *e, const Op *o) {
    EmitFn rule = rule_of(o->code);
    if (!rule)
        return amp_fail(e->err, AMP_UNSUPPORTED, "%s: %s is not supported%s", walk_name(e->w), ir_op_info[o->code].name,
                        e->spelling->name);
    for (int r = 0; r < o->n_out; r++) AMP_TRY(check_type(e, o, o->out[r]));
    for (int r = 0; r < o->n_out; r++) put_result_name(e, o->out[r]);
    emit_block(e);
    if (o->code != OP_sum_parts) AMP_TRY(e->spelling->put_coordinates(e, o));
    AMP_TRY(rule(e, o));
    emit_close(e);
    return AMP_OK;
}

/* ---- values that are made where they are read -------------------------------------------------------------------- */

typedef struct Inlined { /* at a row and column of their matrix */
    Emitter *e;
    const char *row, *column;
    bool *done;         /* by the value's number */
    const char **reads; /* of what has been read: the expression */
} Inlined;

static bool is_done(Inlined *in, Val v) {
    int number = walk_number(in->e->w, v);
    bool done = in->done[number];
    in->done[number] = true;
    return done;
}

/* Reads what |v| is made from: where vectors are read, before the lanes of the op that needs it. */
static amp_status read_inlined(Inlined *in, Val v) {
    const Emitter *e = in->e;
    const Op *o = ir_def(e->w->f, v);
    for (int n = 0; n < o->n_in; n++) {
        if (!walk_reads_inlined(e->w, o, n)) continue;
        if (e->w->values[o->in[n].id].made) {
            AMP_TRY(read_inlined(in, o->in[n]));
            continue;
        }
        const char **read = &in->reads[walk_number(e->w, o->in[n])];
        Memory m = indirect_memory(e, o, n);
        AMP_TRY(check_type(e, o, o->in[n]));
        if (!*read) *read = indirect_read(in->e, &m, in->row, in->column);
    }
    return AMP_OK;
}

/* What |o| needs besides, in registers: in lanes an element of each vector. */
static void take_lanes(Inlined *in, const Op *o) {
    Emitter *e = in->e;
    for (int n = 0; n < o->n_in && e->lane_count; n++) {
        Span span = e->w->values[o->in[n].id].span;
        if (!walk_reads(e->w, o, n) || !emit_is_vector(span) || is_done(in, o->in[n])) continue;
        int id = walk_number(e->w, o->in[n]);
        emit_line(e, "const %s v%d = x%d[l];", emit_type(ir_dtype(e->w->f, o->in[n]), false), id, id);
    }
}

/* |v|, and before it what it is made from, each once. */
static amp_status emit_inlined(Inlined *in, Val v) {
    Emitter *e = in->e;
    const Op *o = ir_def(e->w->f, v);
    if (is_done(in, v)) return AMP_OK;
    for (int n = 0; n < o->n_in; n++) {
        if (!walk_reads_inlined(e->w, o, n)) continue;
        if (e->w->values[o->in[n].id].made) AMP_TRY(emit_inlined(in, o->in[n]));
        else if (!is_done(in, o->in[n])) {
            int id = walk_number(e->w, o->in[n]);
            emit_line(e, "const %s v%d = %s;", emit_type(ir_dtype(e->w->f, o->in[n]), !e->per_thread), id,
                      in->reads[id]);
        }
    }
    take_lanes(in, o);
    return emit_core_op(e, o);
}

amp_status indirect_emit_inlined(Emitter *e, const Op *o, Val v, const char *row, const char *column) {
    const int numbers = walk_numbers(e->w);
    Inlined in = {.e = e, .row = row, .column = column};
    in.done = arena_array(e->w->arena, bool, numbers);
    in.reads = arena_array(e->w->arena, const char *, numbers);
    AMP_TRY(read_inlined(&in, v));
    indirect_open_lanes(e, o);
    return emit_inlined(&in, v);
}
