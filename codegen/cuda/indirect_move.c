/* indirect_move.c: reshape, permute, slice, pad, concat, expand, gather.  A coordinate of the operand is a coordinate of the
 * result, moved by a constant. */
#include "codegen/cuda/kernel.h"

enum { NOTHING = -1 };

typedef struct Coordinate { /* of the operand: that of the result's dimension |from|, plus |offset|; NOTHING: 0 */
    int from;
    int64_t offset;
} Coordinate;

typedef struct Move { /* of one operand */
    CudaKernel *k;
    const Op *o;
    CudaMemory m;
    Shape result;
    Coordinate at[MAX_RANK + 1];
} Move;

static Move move_of(CudaKernel *k, const Op *o, int operand) {
    Move v = {.k = k, .o = o, .m = cuda_memory(k, o, operand)};
    v.result = emit_matrix_shape(ir_shape(k->w->f, o->out[0]));
    for (int i = 0; i < v.m.shape.rank; i++) v.at[i].from = i;
    return v;
}

/* "i1", "c" */
static const char *result_coordinate(const Move *v, int dim) {
    return dim == v->result.rank - 1 ? "c" : arena_printf(v->k->w->arena, "i%d", dim);
}

static const char *coordinate(const Move *v, int i) {
    Coordinate c = v->at[i];
    if (c.from == NOTHING) return "0";
    const char *base = result_coordinate(v, c.from);
    return c.offset ? arena_printf(v->k->w->arena, "(%s + %lld)", base, (long long)c.offset) : base;
}

static const char *row_of(const Move *v) {
    Arena *a = v->k->w->arena;
    const char *row = "0";
    for (int i = 0; i < v->m.shape.rank - 1; i++) {
        const char *c = coordinate(v, i);
        row = !strcmp(row, "0") ? c : arena_printf(a, "(%s * (%s) + %s)", row, emit_dim(a, v->m.shape.d[i]), c);
    }
    return row;
}

/* `v12 = get_f32(..);`, where the condition holds */
static void put_value(const Move *v, const char *condition) {
    const char *element = cuda_element_at(v->k, &v->m, row_of(v), coordinate(v, v->m.shape.rank - 1));
    emit_line(&v->k->e, "%sv%d = %s;", condition, walk_number(v->k->w, v->o->out[0]), element);
}

/* ---- the ops ----------------------------------------------------------------------------------------------------- */

/* The element's number in row-major order stays. */
static void emit_reshape(CudaKernel *k, const Op *o) {
    CudaMemory m = cuda_memory(k, o, 0);
    Dim rows = dim_const(1), cols = dim_const(1);
    shape_matrix(ir_shape(k->w->f, o->out[0]), &rows, &cols);
    emit_line(&k->e, "v%d = get_%s(b%d + (r * %lld + c));", walk_number(k->w, o->out[0]), m.storage->name, m.operand,
              (long long)cols.mul);
}

static void emit_permute(CudaKernel *k, const Op *o) {
    Move v = move_of(k, o, 0);
    const Dims *dims = &ir_attr(o, "dims")->dims;
    for (int i = 0; i < dims->count; i++) v.at[dims->at[i] < 0 ? dims->at[i] + dims->count : dims->at[i]].from = i;
    put_value(&v, "");
}

static void emit_expand(CudaKernel *k, const Op *o) {
    Move v = move_of(k, o, 0);
    int missing = v.result.rank - v.m.shape.rank;
    for (int i = 0; i < v.m.shape.rank; i++) v.at[i].from = dim_is_one(v.m.shape.d[i]) ? NOTHING : i + missing;
    put_value(&v, "");
}

/* The dimension along which an op cuts or joins. */
static int dim_of(const Move *v) { return ir_dim_attr(v->o, "dim", ir_shape(v->k->w->f, v->o->out[0])->rank); }

static void emit_slice(CudaKernel *k, const Op *o) {
    Move v = move_of(k, o, 0);
    int64_t from = ir_attr(o, "from")->i;
    int d = dim_of(&v);
    v.at[d].offset = from < 0 ? from + v.m.shape.d[d].mul : from;
    put_value(&v, "");
}

static void emit_pad(CudaKernel *k, const Op *o) {
    Move v = move_of(k, o, 0);
    int d = dim_of(&v);
    long long before = ir_attr(o, "before")->i, end = before + v.m.shape.d[d].mul;
    const char *at = result_coordinate(&v, d);
    emit_line(&k->e, "v%d = %s;", walk_number(k->w, o->out[0]),
              emit_literal(k->w->arena, ir_dtype(k->w->f, o->out[0]), ir_attr(o, "value")->f));
    v.at[d].offset = -before;
    put_value(&v, arena_printf(k->w->arena, "if (%s >= %lld && %s < %lld) ", at, before, at, end));
}

static void emit_concat(CudaKernel *k, const Op *o) {
    int64_t end = 0;
    for (int n = 0; n < o->n_in; n++) {
        Move v = move_of(k, o, n);
        int d = dim_of(&v);
        v.at[d].offset = -end;
        end += v.m.shape.d[d].mul;
        const char *other = n ? "else " : "", *test = "";
        if (n < o->n_in - 1)
            test = arena_printf(k->w->arena, "if (%s < %lld) ", result_coordinate(&v, d), (long long)end);
        put_value(&v, arena_printf(k->w->arena, "%s%s", other, test));
    }
}

/* The runtime has checked ids that a caller gave; those that the model computes stay inside the table as well. */
static void emit_gather(CudaKernel *k, const Op *o) {
    CudaMemory table = cuda_memory(k, o, 0), ids = cuda_memory(k, o, 1);
    long long last = (long long)table.shape.d[0].mul - 1;
    emit_line(&k->e, "const int32_t id = get_%s(b%d + r);", ids.storage->name, ids.operand);
    emit_line(
        &k->e, "v%d = %s;", walk_number(k->w, o->out[0]),
        cuda_element_at(k, &table, arena_printf(k->w->arena, "id < 0 ? 0 : id > %lld ? %lld : id", last, last), "c"));
}

amp_status cuda_emit_move(CudaKernel *k, const Op *o) {
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
