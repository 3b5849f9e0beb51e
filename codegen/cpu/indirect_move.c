/* indirect_move.c: reshape, permute, slice, pad, concat, expand, gather.  A coordinate of the operand is a coordinate of
 * the result, moved by a constant; where the operand's last one is the result's last one, neighbours stay neighbours. */
#include "codegen/cpu/kernel.h"

enum { NOTHING = -1 };

typedef struct Coordinate { /* of the operand: that of the result's dimension |from|, plus |offset|; NOTHING: 0 */
    int from;
    int64_t offset;
} Coordinate;

typedef struct Move { /* of one operand */
    CpuKernel *k;
    const Op *o;
    Memory m;
    Shape result;
    Coordinate at[MAX_RANK + 1];
} Move;

static Move move_of(CpuKernel *k, const Op *o, int operand) {
    Move v = {
        .k = k, .o = o, .m = cpu_memory(k, o, operand), .result = emit_matrix_shape(ir_shape(k->w->f, o->out[0]))};
    for (int i = 0; i < v.m.shape.rank; i++) v.at[i].from = i;
    return v;
}

static bool is_last(const Move *v, int operand_dim) { return v->at[operand_dim].from == v->result.rank - 1; }

/* |lane|: the column of lane l, else of the first. */
static const char *coordinate(const Move *v, int i, bool lane) {
    Arena *a = v->k->w->arena;
    Coordinate c = v->at[i];
    if (c.from == NOTHING) return "0";
    const char *base = !is_last(v, i) ? arena_printf(a, "i%d", c.from) : lane ? "(j + l)" : "j";
    return c.offset ? arena_printf(a, "(%s + %lld)", base, (long long)c.offset) : base;
}

static const char *row_of(const Move *v, bool lane) {
    Arena *a = v->k->w->arena;
    const char *row = "0";
    for (int i = 0; i < v->m.shape.rank - 1; i++) {
        const char *c = coordinate(v, i, lane);
        bool zero = !strcmp(row, "0");
        row = zero ? c : arena_printf(a, "(%s * (%s) + %s)", row, emit_dim(a, v->m.shape.d[i]), c);
    }
    return row;
}

static bool is_contiguous(const Move *v) {
    int last = v->m.shape.rank - 1;
    return is_last(v, last) && (v->m.layout == LAYOUT_ROWS || v->at[last].offset % 32 == 0);
}

/* The expression of lane l. */
static const char *lane_of(const Move *v) {
    return cpu_element_at(v->k, &v->m, row_of(v, true), coordinate(v, v->m.shape.rank - 1, true));
}

static bool has_last(const Move *v) {
    for (int i = 0; i < v->m.shape.rank; i++)
        if (is_last(v, i)) return true;
    return false;
}

static void emit_splat(const Move *v, const char *element) {
    static const char *const splat[] = {
        [KIND_F32] = "v%d = splat_f(%s);", [KIND_I32] = "v%d = splat_i(%s);", [KIND_BOOL] = "v%d = splat_i(-%s);"};
    Val out = v->o->out[0];
    emit_line(&v->k->e, splat[emit_kind(ir_dtype(v->k->w->f, out))], walk_number(v->k->w, out), element);
}

/* Every lane of the result is an element of the operand. */
static void emit_whole(const Move *v) {
    Val out = v->o->out[0];
    int last = v->m.shape.rank - 1;
    if (is_contiguous(v))
        emit_line(&v->k->e, "v%d = %s;", walk_number(v->k->w, out),
                  cpu_vector_at(v->k, &v->m, row_of(v, false), coordinate(v, last, false)));
    else if (has_last(v)) cpu_fill_lanes(v->k, out, lane_of(v));
    else emit_splat(v, cpu_element_at(v->k, &v->m, row_of(v, false), coordinate(v, last, false)));
}

/* ---- the ops ----------------------------------------------------------------------------------------------------- */

/* The element's number in row-major order stays. */
static void emit_reshape(CpuKernel *k, const Op *o) {
    Arena *a = k->w->arena;
    Memory m = cpu_memory(k, o, 0);
    Dim cols;
    Dim rows;
    shape_matrix(ir_shape(k->w->f, o->out[0]), &rows, &cols);
    emit_line(&k->e, "const int64_t at = (int64_t)row * %lld + j;", (long long)cols.mul);
    if (m.layout == LAYOUT_ROWS) {
        emit_line(&k->e, "v%d = %s;", walk_number(k->w, o->out[0]), cpu_vector_at(k, &m, "0", "at"));
        return;
    }
    const char *row = arena_printf(a, "(at + l) / %s", m.cols), *col = arena_printf(a, "(at + l) %% %s", m.cols);
    cpu_fill_lanes(k, o->out[0], cpu_element_at(k, &m, row, col));
}

static void emit_permute(CpuKernel *k, const Op *o) {
    Move v = move_of(k, o, 0);
    const Dims *dims = &ir_attr(o, "dims")->dims;
    for (int i = 0; i < dims->count; i++) {
        int64_t d = dims->at[i] < 0 ? dims->at[i] + dims->count : dims->at[i];
        v.at[d].from = i;
    }
    emit_whole(&v);
}

static void emit_expand(CpuKernel *k, const Op *o) {
    Move v = move_of(k, o, 0);
    int missing = v.result.rank - v.m.shape.rank;
    for (int i = 0; i < v.m.shape.rank; i++) v.at[i].from = dim_is_one(v.m.shape.d[i]) ? NOTHING : i + missing;
    emit_whole(&v);
}

/* The dimension along which an op cuts or joins. */
static int dim_of(const Move *v) { return ir_dim_attr(v->o, "dim", ir_shape(v->k->w->f, v->o->out[0])->rank); }

static void emit_slice(CpuKernel *k, const Op *o) {
    Move v = move_of(k, o, 0);
    int64_t from = ir_attr(o, "from")->i;
    int d = dim_of(&v);
    v.at[d].offset = from < 0 ? from + v.m.shape.d[d].mul : from;
    emit_whole(&v);
}

/* Lanes whose coordinate lies in [from, to) are the operand's. */
static void emit_lanes_between(const Move *v, int64_t from, int64_t to) {
    int id = walk_number(v->k->w, v->o->out[0]);
    emit_line(&v->k->e, "for (int64_t l = j < %lld ? %lld - j : 0; l < %s && j + l < %lld; l++) x%d[l] = %s;",
              (long long)from, (long long)from, cpu_lanes(v->k), (long long)to, id, lane_of(v));
}

static void open_lanes(CpuKernel *k, const Op *o, const char *value) {
    const char *type = emit_kind(ir_dtype(k->w->f, o->out[0])) == KIND_F32 ? "float" : "int32_t";
    emit_line(&k->e, "%s x%d[W];", type, walk_number(k->w, o->out[0]));
    emit_line(&k->e, "for (int64_t l = 0; l < W; l++) x%d[l] = %s;", walk_number(k->w, o->out[0]), value);
}

static void close_lanes(CpuKernel *k, const Op *o) {
    static const char *const loads[] = {[KIND_F32] = "f32", [KIND_I32] = "i32", [KIND_BOOL] = "bool"};
    int id = walk_number(k->w, o->out[0]);
    emit_line(&k->e, "v%d = load_%s(x%d);", id, loads[emit_kind(ir_dtype(k->w->f, o->out[0]))], id);
}

static void emit_pad(CpuKernel *k, const Op *o) {
    Move v = move_of(k, o, 0);
    int d = dim_of(&v);
    int64_t before = ir_attr(o, "before")->i, count = v.m.shape.d[d].mul;
    const char *value = emit_literal(k->w->arena, ir_dtype(k->w->f, o->out[0]), ir_attr(o, "value")->f);
    v.at[d].offset = -before;
    if (d < v.result.rank - 1) {
        emit_open(&k->e, "if (i%d >= %lld && i%d < %lld)", d, (long long)before, d, (long long)(before + count));
        emit_whole(&v);
        emit_close(&k->e);
        emit_open(&k->e, "else");
        emit_splat(&v, value);
        emit_close(&k->e);
        return;
    }
    open_lanes(k, o, value);
    emit_lanes_between(&v, before, before + count);
    close_lanes(k, o);
}

static void emit_concat_rows(CpuKernel *k, const Op *o, int d) {
    int64_t end = 0;
    for (int n = 0; n < o->n_in; n++) {
        Move v = move_of(k, o, n);
        v.at[d].offset = -end;
        end += v.m.shape.d[d].mul;
        if (o->n_in == 1) emit_block(&k->e);
        else if (n == o->n_in - 1) emit_open(&k->e, "else");
        else emit_open(&k->e, "%sif (i%d < %lld)", n ? "else " : "", d, (long long)end);
        emit_whole(&v);
        emit_close(&k->e);
    }
}

static void emit_concat(CpuKernel *k, const Op *o) {
    Move first = move_of(k, o, 0);
    int d = dim_of(&first);
    int64_t end = 0;
    if (d < first.result.rank - 1) {
        emit_concat_rows(k, o, d);
        return;
    }
    open_lanes(k, o, "0");
    for (int n = 0; n < o->n_in; n++) {
        Move v = move_of(k, o, n);
        v.at[d].offset = -end;
        emit_lanes_between(&v, end, end + v.m.shape.d[d].mul);
        end += v.m.shape.d[d].mul;
    }
    close_lanes(k, o);
}

/* The runtime has checked ids that a caller gave; those that the model computes stay inside the table as well. */
static void emit_gather(CpuKernel *k, const Op *o) {
    Arena *a = k->w->arena;
    Memory table = cpu_memory(k, o, 0), ids = cpu_memory(k, o, 1);
    const char *row = arena_printf(a, "row / %s", ids.cols), *column = arena_printf(a, "row %% %s", ids.cols);
    long long last = (long long)table.shape.d[0].mul - 1;
    emit_line(&k->e, "int64_t id = %s;", cpu_element_at(k, &ids, row, column));
    emit_line(&k->e, "id = id < 0 ? 0 : id > %lld ? %lld : id;", last, last);
    emit_line(&k->e, "v%d = %s;", walk_number(k->w, o->out[0]), cpu_vector_at(k, &table, "id", "j"));
}

amp_status cpu_emit_move(CpuKernel *k, const Op *o) {
    switch (o->code) {
    case OP_reshape: emit_reshape(k, o); break;
    case OP_permute: emit_permute(k, o); break;
    case OP_slice: emit_slice(k, o); break;
    case OP_pad: emit_pad(k, o); break;
    case OP_concat: emit_concat(k, o); break;
    case OP_expand: emit_expand(k, o); break;
    default: emit_gather(k, o); break;
    }
    return AMP_OK;
}
