/* emit_rules.c: core op -> C expression.  Functions named here are those of codegen/cpu/prelude/ and,
 * for single elements, of codegen/cuda/prelude/. */
#include "codegen/emit.h"

#include "base/hash.h"

enum { NUMBER = KIND_F32 | KIND_I32 | KIND_I64 | KIND_F64, FLOATING = KIND_F32 | KIND_F64, LOGICAL = KIND_BOOL };

static const char *build_const(Emitter *e, const Op *o, bool vector) {
    (void)vector; /* always of SPAN_ONE */
    return emit_literal(e->w->arena, ir_dtype(e->w->f, o->out[0]), ir_attr(o, "value")->f);
}

/* A bool is 0 or -1 in a vector, 0 or 1 in a scalar. */
typedef struct CastRule {
    Kind from, to;
    const char *vector;
} CastRule;
static const CastRule vector_casts[] = {
    {KIND_F32, KIND_F32, "%s"},
    {KIND_F32, KIND_I32, "int_vf(%s)"},
    {KIND_F32, KIND_BOOL, "%s != 0.0f"},
    {KIND_I32, KIND_F32, "float_vi(%s)"},
    {KIND_I32, KIND_I32, "%s"},
    {KIND_I32, KIND_BOOL, "%s != 0"},
    {KIND_BOOL, KIND_F32, "float_mask(%s)"},
    {KIND_BOOL, KIND_I32, "-%s"},
    {KIND_BOOL, KIND_BOOL, "%s"},
};

static const char *cast_vector(const Emitter *e, const char *operand, Kind from, Kind to) {
    for (size_t i = 0; i < sizeof vector_casts / sizeof vector_casts[0]; i++)
        if (vector_casts[i].from == from && vector_casts[i].to == to)
            return arena_printf(e->w->arena, vector_casts[i].vector, operand);
    return NULL;
}

static const char *cast_scalar(const Emitter *e, const char *operand, Dtype from, Dtype to) {
    if (emit_kind(from) == emit_kind(to)) return operand;
    if (emit_kind(to) == KIND_BOOL) return arena_printf(e->w->arena, "%s != 0", operand);
    if (e->per_thread && emit_kind(from) == KIND_F32 && emit_kind(to) == KIND_I32)
        return arena_printf(e->w->arena, "i32_of_f32(%s)", operand);
    return arena_printf(e->w->arena, "(%s)%s", emit_type(to, false), operand);
}

/* Every float is an f32 in registers: widening is free, and what has the type already is not rounded again. */
static bool needs_rounding(Dtype from, Dtype to) {
    return from != to && (to == AMP_DT_F16 || to == AMP_DT_BF16 || to == AMP_DT_TF32);
}

static const char *build_cast(Emitter *e, const Op *o, bool vector) {
    Dtype from = ir_dtype(e->w->f, o->in[0]), to = ir_dtype(e->w->f, o->out[0]);
    const char *x = emit_operand(e, o->in[0], vector);
    x = vector ? cast_vector(e, x, emit_kind(from), emit_kind(to)) : cast_scalar(e, x, from, to);
    if (!x || !needs_rounding(from, to)) return x;
    return arena_printf(e->w->arena, "round_%s_%s(%s)", amp_dtype_name(to), vector ? "vf" : "f32", x);
}

static const char *build_product(Emitter *e, const Op *o, bool vector) {
    (void)o;
    if (e->per_thread) return e->sum;
    return vector && e->w->k->kind == KERNEL_PRODUCT ? "load_f32(a->acc + r * 32 + c)" : NULL;
}

/* The index along the last dimension is the column (where there are several), any other one a coordinate of the row. */
static const char *build_iota(Emitter *e, const Op *o, bool vector) {
    const Shape *s = ir_shape(e->w->f, o->out[0]);
    int64_t dim = ir_attr(o, "dim")->i;
    Span span = e->w->values[o->out[0].id].span;
    bool rows_only = s->rank == 1 && s->d[0].n; /* [N] is N rows of one column */
    if (dim < 0) dim += s->rank;
    if (span == SPAN_ONE || dim_is_one(s->d[dim])) return vector ? "splat_i(0)" : "0";
    if (dim == s->rank - 1 && span != SPAN_ROW && !rows_only) {
        if (e->per_thread) return "(int32_t)c";
        return vector ? "lane_index() + splat_i((int32_t)(col0 + c))" : NULL;
    }
    if (span == SPAN_COLUMN) return NULL;
    Dim stride = dim_const(1);
    for (int i = (int)dim + 1; i < s->rank - 1; i++)
        if (!dim_mul(stride, s->d[i], &stride)) return NULL;
    const char *at = e->per_thread ? "r" : "(row0 + r)";
    if (!dim_is_one(stride)) at = arena_printf(e->w->arena, "%s / (%s)", at, emit_dim(e->w->arena, stride));
    if (dim > 0) at = arena_printf(e->w->arena, "%s %% (%s)", at, emit_dim(e->w->arena, s->d[dim]));
    return arena_printf(e->w->arena, vector ? "splat_i((int32_t)(%s))" : "(int32_t)(%s)", at);
}

static const char *build_extent(Emitter *e, const Op *o, bool vector) {
    const Shape *like = ir_shape(e->w->f, o->in[0]);
    const Dims *dims = &ir_attr(o, "dims")->dims;
    Dim count = dim_const(1);
    (void)vector;
    for (int i = 0; i < (dims->count ? dims->count : like->rank); i++) {
        int64_t d = dims->count ? dims->at[i] : i;
        if (d < 0) d += like->rank;
        if (!dim_mul(count, like->d[d], &count)) return NULL;
    }
    return arena_printf(e->w->arena, "(float)(%s)", emit_dim(e->w->arena, count));
}

/* The element's number in its row-major tensor, in terms of the place in the kernel; |first|: of a vector. */
static const char *element_number(const Emitter *e, Span span) {
    Arena *a = e->w->arena;
    const char *column = e->per_thread ? "c" : "col0 + c", *row = e->per_thread ? "r" : "row0 + r";
    switch (span) {
    case SPAN_ONE: return "0";
    case SPAN_ROW: return row;
    case SPAN_COLUMN:
        if (!e->w->segment) return column;
        if (e->per_thread) return arena_printf(a, "s * %lld + c", (long long)e->w->cols);
        return arena_printf(a, "row0 / %lld * %lld + %s", (long long)e->w->segment, (long long)e->w->cols, column);
    default: break;
    }
    return e->per_thread ? e->element : arena_printf(a, "(row0 + r) * %lld + col0 + c", (long long)e->w->cols);
}

static const char *build_random(Emitter *e, const Op *o, bool vector) {
    Arena *a = e->w->arena;
    const char *micro = o->n_in > 3 ? arena_printf(a, "v%d", walk_number(e->w, o->in[3])) : "0";
    const char *number = element_number(e, e->w->values[o->out[0].id].span);
    const char *function = e->per_thread ? "random_f32" : "random_vf", *lane = vector || e->per_thread ? "" : "[0]";
    return arena_printf(a, "%s(v%d, v%d, %s, 0x%08Xu, %s)%s", function, walk_number(e->w, o->in[1]),
                        walk_number(e->w, o->in[2]), micro, amp_hash32(ir_attr(o, "key")->s), number, lane);
}

static const char *build_power(Emitter *e, const Op *o, bool vector) {
    if (vector) return NULL;
    return arena_printf(e->w->arena, "power_f64(%s, v%d)", emit_literal(e->w->arena, AMP_DT_F64, ir_attr(o, "base")->f),
                        walk_number(e->w, o->in[0]));
}

static const char *build_pow(Emitter *e, const Op *o, bool vector) {
    return arena_printf(e->w->arena, "pow_%s(%s, %s)", vector ? "vf" : "f32", emit_operand(e, o->in[0], vector),
                        emit_literal(e->w->arena, AMP_DT_F64, ir_attr(o, "e")->f));
}

#define EXPRESSION(v, s, k)                                                                                            \
    { .vector = (v), .scalar = (s), .kinds = (k) }
const EmitEntry emit_rules[OP_COUNT] = {
    [OP_increment] = EXPRESSION(NULL, "$0 + 1", KIND_I64 | KIND_I32),
    [OP_cast] = {.build = build_cast},
    [OP_assign] = {.by_walk = true},
    [OP_add] = EXPRESSION("$0 + $1", "$0 + $1", NUMBER),
    [OP_sub] = EXPRESSION("$0 - $1", "$0 - $1", NUMBER),
    [OP_mul] = EXPRESSION("$0 * $1", "$0 * $1", NUMBER),
    [OP_div] = EXPRESSION("$0 / $1", "$0 / $1", FLOATING),
    [OP_neg] = EXPRESSION("-$0", "-$0", NUMBER),
    [OP_const] = {.build = build_const},
    [OP_contract] = {.build = build_product},
    [OP_maximum] = EXPRESSION("max_$t($0, $1)", "max_$t($0, $1)", NUMBER),
    [OP_minimum] = EXPRESSION("min_$t($0, $1)", "min_$t($0, $1)", NUMBER),
    [OP_lt] = EXPRESSION("$0 < $1", "$0 < $1", NUMBER),
    [OP_le] = EXPRESSION("$0 <= $1", "$0 <= $1", NUMBER),
    [OP_eq] = EXPRESSION("$0 == $1", "$0 == $1", 0),
    [OP_and] = EXPRESSION("$0 & $1", "$0 & $1", LOGICAL),
    [OP_or] = EXPRESSION("$0 | $1", "$0 | $1", LOGICAL),
    [OP_not] = EXPRESSION("~$0", "!$0", LOGICAL),
    [OP_is_finite] = EXPRESSION("finite_vf($0)", "finite_$t($0)", FLOATING),
    [OP_select] = EXPRESSION("select_$t($0, $1, $2)", "$0 ? $1 : $2", 0),
    [OP_iota] = {.build = build_iota},
    [OP_broadcast] = EXPRESSION("$0", "$0", 0),
    [OP_extent] = {.build = build_extent},
    [OP_random] = {.build = build_random},
    [OP_reduce_sum] = {.by_walk = true},
    [OP_reduce_max] = {.by_walk = true},
    [OP_reduce_min] = {.by_walk = true},
    [OP_reduce_or] = {.by_walk = true},
    [OP_power] = {.build = build_power},
    [OP_pow] = {.build = build_pow, .kinds = KIND_F32},
    [OP_reshape] = {.vector = "$0", .scalar = "$0", .by_memory = true},
    [OP_expand] = {.vector = "$0", .scalar = "$0", .by_memory = true},
    [OP_permute] = {.by_memory = true},
    [OP_slice] = {.by_memory = true},
    [OP_pad] = {.by_memory = true},
    [OP_concat] = {.by_memory = true},
    [OP_gather] = {.by_memory = true},
    [OP_window_max] = {.by_memory = true},
    [OP_window_sum] = {.by_memory = true},
    [OP_window_max_grad] = {.by_memory = true},
    [OP_window_sum_grad] = {.by_memory = true},
    [OP_batch_contract] = {.by_memory = true},
    [OP_conv] = {.build = build_product, .by_memory = true},
    [OP_conv_data] = {.build = build_product, .by_memory = true},
    [OP_conv_weight] = {.build = build_product, .by_memory = true},
    [OP_scatter] = {.by_memory = true},
};

const EmitEntry emit_function = {.vector = "$n_$t($0)", .scalar = "$n_$t($0)", .kinds = FLOATING | KIND_I32};
