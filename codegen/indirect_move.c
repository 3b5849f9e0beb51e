/* indirect_move.c: reshape, permute, slice, pad, concat, expand, gather.  A coordinate of the operand is a coordinate
 * of the result, moved by a constant; where the operand's last one is the result's last one, neighbours stay
 * neighbours. */
#include "codegen/indirect.h"

enum { NOTHING = -1 };

typedef struct Coordinate { /* of the operand: the result's coordinate in dimension |from|, plus |offset|; NOTHING: 0 */
    int from;
    int64_t offset;
    const char *text; /* the offset as an expression; NULL: the number itself */
} Coordinate;

typedef struct Move { /* of one operand */
    Emitter *e;
    const Op *o;
    Memory m;
    Shape result;
    Coordinate at[MAX_RANK + 1];
} Move;

static Move move_of(Emitter *e, const Op *o, int operand) {
    Move v = {.e = e, .o = o, .m = indirect_memory(e, o, operand)};
    v.result = emit_matrix_shape(ir_shape(e->w->f, o->out[0]));
    for (int i = 0; i < v.m.shape.rank; i++) v.at[i].from = i;
    return v;
}

static int result_number(const Move *v) { return walk_number(v->e->w, v->o->out[0]); }
static Kind result_kind(const Move *v) { return emit_kind(ir_dtype(v->e->w->f, v->o->out[0])); }
static bool is_last(const Move *v, int operand_dim) { return v->at[operand_dim].from == v->result.rank - 1; }

/* "i1", "c"; |lane|: the column of lane l, else of the first. */
static const char *result_coordinate(const Move *v, int dim, bool lane) {
    if (dim == v->result.rank - 1) return lane ? v->e->spelling->lane : v->e->spelling->column;
    return arena_printf(v->e->w->arena, "i%d", dim);
}

static const char *coordinate(const Move *v, int i, bool lane) {
    Coordinate c = v->at[i];
    if (c.from == NOTHING) return "0";
    const char *base = result_coordinate(v, c.from, lane);
    if (c.text) return arena_printf(v->e->w->arena, "(%s + %s)", base, c.text);
    return c.offset ? arena_printf(v->e->w->arena, "(%s + %lld)", base, (long long)c.offset) : base;
}

static const char *row_of(const Move *v, bool lane) {
    Arena *a = v->e->w->arena;
    const char *row = "0";
    for (int i = 0; i < v->m.shape.rank - 1; i++) {
        const char *c = coordinate(v, i, lane);
        row = !strcmp(row, "0") ? c : arena_printf(a, "(%s * (%s) + %s)", row, emit_dim(a, v->m.shape.d[i]), c);
    }
    return row;
}

/* The result's vector, or its element. */
static const char *read_vector(const Move *v) {
    return indirect_read(v->e, &v->m, row_of(v, false), coordinate(v, v->m.shape.rank - 1, false));
}

static const char *element_of(const Move *v, bool lane) {
    return v->e->spelling->element_at(v->e, &v->m, row_of(v, lane), coordinate(v, v->m.shape.rank - 1, lane));
}

/* Whether a vector of the result is one of the operand. */
static bool is_contiguous(const Move *v) {
    int last = v->m.shape.rank - 1;
    return is_last(v, last) && (v->m.layout == LAYOUT_ROWS || v->at[last].offset % 32 == 0);
}

static bool has_last(const Move *v) {
    for (int i = 0; i < v->m.shape.rank; i++)
        if (is_last(v, i)) return true;
    return false;
}

/* ---- lanes of a vector that come from different places ----------------------------------------------------------- */

/* bool elements are 0 or 1, its lanes masks. */
static const char *const lane_loads[] = {[KIND_F32] = "f32", [KIND_I32] = "i32", [KIND_BOOL] = "bool"};

static const char *lane_type(const Emitter *e, const Op *o) {
    return emit_kind(ir_dtype(e->w->f, o->out[0])) == KIND_F32 ? "float" : "int32_t";
}

static void open_lanes(Emitter *e, const Op *o, const char *value) {
    int id = walk_number(e->w, o->out[0]);
    emit_line(e, "%s x%d[W];", lane_type(e, o), id);
    emit_line(e, "for (int64_t l = 0; l < W; l++) x%d[l] = %s;", id, value);
}

static void close_lanes(Emitter *e, const Op *o) {
    int id = walk_number(e->w, o->out[0]);
    emit_line(e, "v%d = load_%s(x%d);", id, lane_loads[emit_kind(ir_dtype(e->w->f, o->out[0]))], id);
}

/* All lanes: |element| in terms of l. */
static void fill_lanes(Emitter *e, const Op *o, const char *element) {
    int id = walk_number(e->w, o->out[0]);
    emit_line(e, "%s x%d[W] = {0};", lane_type(e, o), id);
    emit_line(e, "for (int64_t l = 0; l < %s; l++) x%d[l] = %s;", e->lanes, id, element);
    close_lanes(e, o);
}

/* Lanes whose coordinate is in [from, to) are the operand's. */
static void emit_lanes_between(const Move *v, int64_t from, int64_t to) {
    emit_line(v->e, "for (int64_t l = j < %lld ? %lld - j : 0; l < %s && j + l < %lld; l++) x%d[l] = %s;",
              (long long)from, (long long)from, v->e->lanes, (long long)to, result_number(v), element_of(v, true));
}

static void emit_splat(const Move *v, const char *element) {
    static const char *const splat[] = {
        [KIND_F32] = "v%d = splat_f(%s);", [KIND_I32] = "v%d = splat_i(%s);", [KIND_BOOL] = "v%d = splat_i(-%s);"};
    emit_line(v->e, splat[result_kind(v)], result_number(v), element);
}

/* v12 = |x|, in each lane. */
static void put_result(const Move *v, const char *x) {
    indirect_open_lanes(v->e, v->o);
    emit_line(v->e, "v%d = %s;", result_number(v), x);
    indirect_close_lanes(v->e);
}

/* Every element of the result is one of the operand. */
static void emit_whole(const Move *v) {
    if (v->e->per_thread || is_contiguous(v)) put_result(v, read_vector(v));
    else if (has_last(v)) fill_lanes(v->e, v->o, element_of(v, true));
    else emit_splat(v, element_of(v, false));
}

/* ---- the ops ----------------------------------------------------------------------------------------------------- */

/* The element's number in row-major order stays. */
static void emit_reshape(Emitter *e, const Op *o) {
    Arena *a = e->w->arena;
    Memory m = indirect_memory(e, o, 0);
    Dim rows = dim_const(1), cols = dim_const(1);
    shape_matrix(ir_shape(e->w->f, o->out[0]), &rows, &cols);
    const char *width = emit_dim_factor(a, cols);
    int id = walk_number(e->w, o->out[0]);
    if (e->per_thread) {
        m.cols = width;
        put_result(&(Move){.e = e, .o = o}, indirect_read(e, &m, "r", "c"));
        return;
    }
    emit_line(e, "const int64_t at = (int64_t)row * %s + j;", width);
    if (m.layout == LAYOUT_ROWS) {
        emit_line(e, "v%d = %s;", id, e->spelling->vector_at(e, &m, "0", "at"));
        return;
    }
    const char *row = arena_printf(a, "(at + l) / %s", m.cols), *col = arena_printf(a, "(at + l) %% %s", m.cols);
    fill_lanes(e, o, e->spelling->element_at(e, &m, row, col));
}

static void emit_permute(Emitter *e, const Op *o) {
    Move v = move_of(e, o, 0);
    const Dims *dims = &ir_attr(o, "dims")->dims;
    for (int i = 0; i < dims->count; i++) v.at[dims->at[i] < 0 ? dims->at[i] + dims->count : dims->at[i]].from = i;
    emit_whole(&v);
}

static void emit_expand(Emitter *e, const Op *o) {
    Move v = move_of(e, o, 0);
    int missing = v.result.rank - v.m.shape.rank;
    for (int i = 0; i < v.m.shape.rank; i++) v.at[i].from = dim_is_one(v.m.shape.d[i]) ? NOTHING : i + missing;
    emit_whole(&v);
}

/* The dimension along which an op cuts or joins. */
static int dim_of(const Move *v) { return ir_dim_attr(v->o, "dim", ir_shape(v->e->w->f, v->o->out[0])->rank); }

static void emit_slice(Emitter *e, const Op *o) {
    Move v = move_of(e, o, 0);
    int64_t from = ir_attr(o, "from")->i;
    int d = dim_of(&v);
    v.at[d].offset = from < 0 ? from + v.m.shape.d[d].mul : from;
    if (d < v.m.shape.rank - 1) v.at[d].text = emit_offset(e, v.at[d].offset);
    emit_whole(&v);
}

/* Whether the result's coordinate |d| says for the whole vector which operand it comes from. */
static bool is_decided_by(const Move *v, int d) { return v->e->per_thread || d < v->result.rank - 1; }

static void emit_pad(Emitter *e, const Op *o) {
    Move v = move_of(e, o, 0);
    int d = dim_of(&v);
    long long before = ir_attr(o, "before")->i, end = before + v.m.shape.d[d].mul;
    const char *value = emit_literal(e->w->arena, ir_dtype(e->w->f, o->out[0]), ir_attr(o, "value")->f);
    const char *at = result_coordinate(&v, d, false);
    v.at[d].offset = -before;
    if (e->per_thread) {
        put_result(&v, value);
        emit_open(e, "if (%s >= %lld && %s < %lld)", at, before, at, end);
        emit_whole(&v);
        emit_close(e);
    } else if (is_decided_by(&v, d)) {
        emit_open(e, "if (%s >= %lld && %s < %lld)", at, before, at, end);
        emit_whole(&v);
        emit_close(e);
        emit_open(e, "else");
        emit_splat(&v, value);
        emit_close(e);
    } else {
        open_lanes(e, o, value);
        emit_lanes_between(&v, before, end);
        close_lanes(e, o);
    }
}

/* What a concat joins: operand n's elements end at |ends[n]| of the result's, along the dimension d of |moves|. */
typedef struct Parts {
    Move *moves;
    int64_t *ends;
    const char *at; /* the result's coordinate d */
} Parts;

/* Operand |n| of those up to |last|, one after another. */
static void emit_part(const Parts *p, int first, int n, int last) {
    const Move *v = &p->moves[n];
    Emitter *e = v->e;
    const char *other = n > first ? "else " : "";
    const char *test = n == last ? "" : arena_printf(e->w->arena, "if (%s < %lld)", p->at, (long long)p->ends[n]);
    if (first == last) emit_block(e);
    else if (n == last) emit_open(e, "else");
    else emit_open(e, "%s%s", other, test);
    emit_whole(v);
    emit_close(e);
}

/* Operands first .. last: halves, so that many of them cost few comparisons. */
static void emit_parts(const Parts *p, int first, int last) {
    enum { FEW = 8 };
    Emitter *e = p->moves[first].e;
    if (last - first < FEW) {
        for (int n = first; n <= last; n++) emit_part(p, first, n, last);
        return;
    }
    int middle = (first + last) / 2;
    emit_open(e, "if (%s < %lld)", p->at, (long long)p->ends[middle]);
    emit_parts(p, first, middle);
    emit_close(e);
    emit_open(e, "else");
    emit_parts(p, middle + 1, last);
    emit_close(e);
}

/* Whether the parts differ in nothing but their pointers, which are neighbours among the kernel's operands. */
static bool are_alike(const Parts *p, int count, int d) {
    const Memory *first = &p->moves[0].m;
    for (int n = 1; n < count; n++) {
        const Memory *m = &p->moves[n].m;
        if (dim_varies(m->shape.d[d]) || m->operand != first->operand + n || m->layout != first->layout ||
            m->storage != first->storage || m->shape.d[d].mul != first->shape.d[d].mul)
            return false;
    }
    return true;
}

/* Of parts that are alike: the one that the coordinate is in, by its number. */
static void emit_part_of_many(const Parts *p, int d) {
    Move v = p->moves[0];
    Emitter *e = v.e;
    const long long size = (long long)v.m.shape.d[d].mul;
    emit_block(e);
    e->spelling->choose_memory(e, &v.m, arena_printf(e->w->arena, "%s / %lld", p->at, size));
    if (size == 1) v.at[d].from = NOTHING;
    v.at[d].text = arena_printf(e->w->arena, "-(%s / %lld * %lld)", p->at, size, size);
    emit_whole(&v);
    emit_close(e);
}

static void emit_concat(Emitter *e, const Op *o) {
    enum { MANY = 8 };
    Move first = move_of(e, o, 0);
    Parts p = {.moves = arena_array(e->w->arena, Move, o->n_in), .ends = arena_array(e->w->arena, int64_t, o->n_in)};
    int d = dim_of(&first);
    int64_t begin = 0;
    for (int n = 0; n < o->n_in; n++) {
        p.moves[n] = move_of(e, o, n);
        p.moves[n].at[d].offset = -begin;
        begin = p.ends[n] = begin + p.moves[n].m.shape.d[d].mul;
    }
    p.at = result_coordinate(&first, d, false);
    if (e->spelling->choose_memory && o->n_in > MANY && is_decided_by(&first, d) && are_alike(&p, o->n_in, d)) {
        emit_part_of_many(&p, d);
        return;
    }
    if (is_decided_by(&first, d)) {
        emit_parts(&p, 0, o->n_in - 1);
        return;
    }
    open_lanes(e, o, "0");
    for (int n = 0; n < o->n_in; n++) emit_lanes_between(&p.moves[n], n ? p.ends[n - 1] : 0, p.ends[n]);
    close_lanes(e, o);
}

/* The runtime has checked ids that a caller gave; those that the model computes stay inside the table as well. */
static void emit_gather(Emitter *e, const Op *o) {
    Arena *a = e->w->arena;
    Memory table = indirect_memory(e, o, 0), ids = indirect_memory(e, o, 1);
    const Dim rows = table.shape.d[0];
    const char *last = dim_varies(rows) ? arena_printf(a, "%s - 1", emit_dim(a, rows))
                                        : arena_printf(a, "%lld", (long long)rows.mul - 1);
    const char *row = "id";
    if (e->per_thread) {
        emit_line(e, "const int32_t id = get_%s(b%d + r);", ids.storage->name, ids.operand);
        row = arena_printf(a, "id < 0 ? 0 : id > %s ? %s : id", last, last);
    } else {
        const char *id_row = arena_printf(a, "row / %s", ids.cols), *column = arena_printf(a, "row %% %s", ids.cols);
        emit_line(e, "int64_t id = %s;", e->spelling->element_at(e, &ids, id_row, column));
        emit_line(e, "id = id < 0 ? 0 : id > %s ? %s : id;", last, last);
    }
    put_result(&(Move){.e = e, .o = o}, indirect_read(e, &table, row, e->spelling->column));
}

amp_status indirect_emit_move(Emitter *e, const Op *o) {
    switch (o->code) {
    case OP_reshape: emit_reshape(e, o); break;
    case OP_permute: emit_permute(e, o); break;
    case OP_slice: emit_slice(e, o); break;
    case OP_pad: emit_pad(e, o); break;
    case OP_concat: emit_concat(e, o); break;
    case OP_expand: emit_expand(e, o); break;
    default: emit_gather(e, o); break;
    }
    return AMP_OK;
}
