/* emit.c: see emit.h. */
#include "codegen/emit.h"

#include <math.h>

#include "base/dtypes.h"
#include "base/hash.h"
#include "base/rounding.h"

/* C's names for what a kernel computes in. */
typedef struct TypeNames {
    const char *scalar, *scalar_suffix, *vector; /* vector NULL: scalars only */
} TypeNames;

static const TypeNames type_names[] = {
    [KIND_F32] = {"float", "f32", "vf"},    [KIND_I32] = {"int32_t", "i32", "vi"},
    [KIND_BOOL] = {"int32_t", "i32", "vi"}, [KIND_I64] = {"int64_t", "i64", NULL},
    [KIND_F64] = {"double", "f64", NULL},
};

static const Kind kinds[AMP_DTYPES] = {
#define DTYPE(id, name, class, kind, ...) [AMP_DT_##id] = KIND_##kind,
#include "base/dtypes.def"
};

Kind emit_kind(Dtype t) { return kinds[t]; }
bool emit_is_vector(Span s) { return s == SPAN_FULL || s == SPAN_COLUMN; }
const char *emit_type(Dtype t, bool vector) {
    return vector ? type_names[emit_kind(t)].vector : type_names[emit_kind(t)].scalar;
}
const char *emit_suffix(Dtype t, bool vector) {
    return vector ? type_names[emit_kind(t)].vector : type_names[emit_kind(t)].scalar_suffix;
}

const char *emit_literal(Arena *a, Dtype t, double v) {
    bool single = emit_kind(t) == KIND_F32;
    Text text;
    if (emit_kind(t) == KIND_BOOL) return v != 0.0 ? "1" : "0";
    if (!single && emit_kind(t) != KIND_F64)
        return arena_printf(a, emit_kind(t) == KIND_I64 ? "INT64_C(%lld)" : "%lld", (long long)v);
    if (single) v = (double)amp_round_dtype(t, (float)v);
    if (isnan(v)) return single ? "NOT_A_NUMBER" : "__builtin_nan(\"\")";
    if (isinf(v)) return single ? v < 0 ? "-INF" : "INF" : v < 0 ? "-__builtin_inf()" : "__builtin_inf()";
    text_init(&text, a);
    text_put_double(&text, v);
    if (single) text_putc(&text, 'f');
    return text_str(&text);
}

const char *emit_dim(Arena *a, Dim d) {
    static const char *const powers[][LARGEST_POWER + 1] = {
        {"", "t", "t * t"}, {"n", "n * t", "n * t * t"}, {"n * n", "n * n * t", "n * n * t * t"}};
    const char *power = powers[d.n][d.t];
    if (!dim_varies(d)) return arena_printf(a, "%lld", (long long)d.mul);
    if (d.mul != 1) power = arena_printf(a, "%lld * %s", (long long)d.mul, power);
    return d.div == 1 ? power : arena_printf(a, "%s / %lld", power, (long long)d.div);
}

const char *emit_dim_factor(Arena *a, Dim d) {
    const char *text = emit_dim(a, d);
    return strchr(text, ' ') ? arena_printf(a, "(%s)", text) : text;
}

const char *emit_offset(Emitter *e, int64_t offset) {
    if (!e->offsets) return arena_printf(e->w->arena, "%lld", (long long)offset);
    vec_push(e->w->arena, e->offsets, offset);
    return arena_printf(e->w->arena, "o%d", e->offsets->len - 1);
}

Shape emit_matrix_shape(const Shape *s) {
    Shape m = *s;
    if (s->rank == 0 || (s->rank == 1 && s->d[0].n)) m.d[m.rank++] = dim_const(1);
    return m;
}

const char *emit_operand(const Emitter *e, Val v, bool vector) {
    static const char *const splat[] = {
        [KIND_F32] = "splat_f(v%d)", [KIND_I32] = "splat_i(v%d)", [KIND_BOOL] = "splat_i(-v%d)"};
    Kind kind = emit_kind(ir_dtype(e->w->f, v));
    bool as_is = !vector || emit_is_vector(e->w->values[v.id].span);
    return arena_printf(e->w->arena, as_is || kind > KIND_BOOL ? "v%d" : splat[kind], walk_number(e->w, v));
}

/* ---- elements in memory ------------------------------------------------------------------------------------------ */

static const Storage storages[AMP_DTYPES] = {
#define DTYPE(id, name, class, kind, stored, file, memory) [AMP_DT_##id] = {#stored, #memory, sizeof(memory)},
#include "base/dtypes.def"
};

/* Bools are told by the value: a flag's storage may be called i32. */
const Storage *emit_storage(const Walk *w, int operand) {
    const Buffer *b = walk_operand(w, operand);
    bool is_bool = b->storage == AMP_DT_I32 && ir_dtype(w->f, b->value) == AMP_DT_BOOL;
    return &storages[is_bool ? AMP_DT_BOOL : b->storage];
}

bool emit_storage_holds(Dtype t, Dtype storage) {
    if (t == storage || (t == AMP_DT_BOOL && storage == AMP_DT_I32)) return true;
    return emit_kind(t) == KIND_F32 && (storage == AMP_DT_F32 || storage == AMP_DT_TF32);
}

/* ---- lines ------------------------------------------------------------------------------------------------------- */

static void put_line(Emitter *e, const char *fmt, va_list args, const char *end) {
    for (int i = 0; i < e->indent; i++) text_puts(e->out, "    ");
    text_vprintf(e->out, fmt, args);
    text_puts(e->out, end);
}

void emit_line(Emitter *e, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    put_line(e, fmt, args, "\n");
    va_end(args);
}

void emit_open(Emitter *e, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    put_line(e, fmt, args, " {\n");
    va_end(args);
    e->indent++;
}

void emit_block(Emitter *e) {
    emit_line(e, "{");
    e->indent++;
}

void emit_close(Emitter *e) {
    e->indent--;
    emit_line(e, "}");
}

/* ---- ops --------------------------------------------------------------------------------------------------------- */

static const char *fill_template(const Emitter *e, const Op *o, const char *template, bool vector) {
    Text t;
    text_init(&t, e->w->arena);
    for (const char *s = template; *s; s++) {
        if (*s != '$') text_putc(&t, *s);
        else if (*++s == 'n') text_puts(&t, ir_op_info[o->code].name);
        else if (*s == 't') text_puts(&t, emit_suffix(ir_dtype(e->w->f, o->in[o->n_in - 1]), vector));
        else text_puts(&t, emit_operand(e, o->in[*s - '0'], vector));
    }
    return text_str(&t);
}

const EmitEntry *emit_row(Opcode code) {
    const EmitEntry *row = &emit_rules[code];
    return row->vector || row->scalar || row->build || row->by_walk || row->by_memory ? row : &emit_function;
}

static const char *expression(Emitter *e, const Op *o, bool vector) {
    const bool is_near = e->spelling->is_near && e->spelling->is_near(e->w, o);
    const EmitEntry *entry = is_near ? &emit_near : emit_row(o->code);
    const char *template = vector ? entry->vector : entry->scalar;
    if (entry->build) return entry->build(e, o, vector);
    if (!template) return NULL;
    if (entry->kinds && !(entry->kinds & emit_kind(ir_dtype(e->w->f, o->in[o->n_in - 1])))) return NULL;
    return fill_template(e, o, template, vector);
}

/* i64 and f64 exist as scalars only. */
static bool types_fit(const Emitter *e, const Op *o, bool vector) {
    if (!vector) return true;
    for (int n = 0; n < o->n_in; n++)
        if (walk_reads(e->w, o, n) && o->code != OP_random && !emit_type(ir_dtype(e->w->f, o->in[n]), true))
            return false;
    return emit_type(ir_dtype(e->w->f, o->out[0]), true) != NULL;
}

amp_status emit_core_op(Emitter *e, const Op *o) {
    Val v = o->out[0];
    Dtype t = ir_dtype(e->w->f, v);
    bool vector = !e->per_thread && emit_is_vector(e->w->values[v.id].span);
    const char *text = types_fit(e, o, vector) ? expression(e, o, vector) : NULL;
    if (!text)
        return amp_fail(e->err, AMP_UNSUPPORTED, "%s: %s of %s %s is not supported (%%%s, %s)", walk_name(e->w),
                        ir_op_info[o->code].name, vector ? "vectors of" : "a scalar",
                        amp_dtype_name(o->n_in ? ir_dtype(e->w->f, o->in[o->n_in - 1]) : t), ir_value(e->w->f, v)->name,
                        o->path ? o->path : "no path");
    emit_line(e, "const %s v%d = %s;", emit_type(t, vector), walk_number(e->w, v), text);
    return AMP_OK;
}

/* ---- core op -> C expression ------------------------------------------------------------------------------------- */

/* The functions named here are defined in codegen/prelude/ and codegen/cpu/prelude/ and, for single elements, in
 * codegen/cuda/prelude/. */
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

static const char *build_dithered(Emitter *e, const Op *o, bool vector) {
    return arena_printf(e->w->arena, "dithered_%s_%s(%s, %s)", amp_dtype_name(ir_dtype(e->w->f, o->out[0])),
                        vector ? "vf" : "f32", emit_operand(e, o->in[0], vector), emit_operand(e, o->in[1], vector));
}

static const char *build_product(Emitter *e, const Op *o, bool vector) {
    (void)o;
    if (e->per_thread || (vector && e->sum)) return e->sum;
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
    const char *cols = emit_dim_factor(a, e->w->cols);
    switch (span) {
    case SPAN_ONE: return "0";
    case SPAN_ROW: return row;
    case SPAN_COLUMN:
        if (!e->w->segment.mul) return column;
        if (e->per_thread) return arena_printf(a, "s * %s + c", cols);
        return arena_printf(a, "row0 / %s * %s + %s", emit_dim_factor(a, e->w->segment), cols, column);
    default: break;
    }
    return e->per_thread ? e->element : arena_printf(a, "(row0 + r) * %s + col0 + c", cols);
}

/* A parameter of the kernel's function, which layers that differ by it alone share (cpu/cpu_kernels.c,
 * cuda/cuda_kernel.c). */
static const char *key_of(const Emitter *e, const Op *o) {
    int before = 0;
    for (int i = 0; walk_op(e->w, i) != o; i++) before += walk_op(e->w, i)->code == OP_random;
    if (!e->per_thread) return arena_printf(e->w->arena, "key%d", before);
    if (before < EMIT_MOST_KEYS) return arena_printf(e->w->arena, "(uint32_t)key%d", before);
    return arena_printf(e->w->arena, "0x%08Xu", amp_hash32(ir_attr(o, "key")->s));
}

/* What the parts from |from| to |end| of an index have in a number: the index times the last step, and for each part
 * before it index / inner times what its step differs from the parts after it.  "0": there are none. */
static const char *put_parts(Arena *a, const DrawNumbers *d, int from, int end, const char *index, bool per_thread) {
    if (from == end) return "0";
    const int64_t step = d->part[end - 1].stride;
    const char *text = step == 1 ? index : arena_printf(a, "(%s) * INT64_C(%lld)", index, (long long)step);
    for (int i = from; i < end - 1; i++) {
        const DrawPart *p = &d->part[i], *next = p + 1;
        const char *quotient =
            arena_printf(a, per_thread ? "quotient(%s, %s)" : "(%s) / %s", index, emit_dim_factor(a, p->inner));
        if (dim_is_sized(next->size) || p->stride != next->size.mul * next->stride)
            text = arena_printf(a, "%s + %s * (INT64_C(%lld) - %s * INT64_C(%lld))", text, quotient,
                                (long long)p->stride, emit_dim_factor(a, next->size), (long long)next->stride);
    }
    return text;
}

const char *emit_row_number(Arena *a, const DrawNumbers *d, const char *row, bool per_thread) {
    return put_parts(a, d, 0, d->rows, row, per_thread);
}

static const char *row_number(const Emitter *e, const DrawNumbers *d, Span span) {
    const char *row = e->per_thread ? "r" : "row0 + r";
    if (span == SPAN_COLUMN && !e->w->segment.mul) return "0";
    if (span == SPAN_COLUMN)
        row = e->per_thread ? "s" : arena_printf(e->w->arena, "row0 / %s", emit_dim_factor(e->w->arena, e->w->segment));
    return emit_row_number(e->w->arena, d, row, e->per_thread);
}

/* What is added to the numbers of the call: of a multiple of four a thread knows that it is one. */
static const char *numbers_before(const Emitter *e, const Op *o, const DrawNumbers *d) {
    if (o->n_in <= 4) return "";
    const bool fours = e->per_thread && d->each % 4 == 0;
    return arena_printf(e->w->arena, fours ? "(v%d & -4) + " : "v%d + ", walk_number(e->w, o->in[4]));
}

/* The numbers of a vector whose columns are not one part of step 1 are in an array. */
static const char *lane_numbers(Emitter *e, const DrawNumbers *d, int value, const char *row) {
    const char *columns = put_parts(e->w->arena, d, d->rows, d->count, "(col0 + c + l)", false);
    emit_line(e, "uint64_t at%d[W];", value);
    emit_line(e, "for (int l = 0; l < W; l++) at%d[l] = (uint64_t)(%s + %s);", value, row, columns);
    return arena_printf(e->w->arena, "at%d", value);
}

static bool has_steps_of_one(const DrawNumbers *d) {
    return d->rows == d->count || (d->rows + 1 == d->count && d->part[d->rows].stride == 1);
}

static const char *draw_number(Emitter *e, const Op *o, const DrawNumbers *d) {
    Arena *a = e->w->arena;
    const Span span = e->w->values[o->out[0].id].span;
    const char *first = numbers_before(e, o, d);
    if (d->in_order || span == SPAN_ONE) return arena_printf(a, "%s%s", first, element_number(e, span));
    const char *row = arena_printf(a, "%s%s", first, row_number(e, d, span));
    if (span == SPAN_ROW) return row;
    if (!e->per_thread && !has_steps_of_one(d)) return lane_numbers(e, d, walk_number(e->w, o->out[0]), row);
    return arena_printf(a, "%s + %s", row,
                        put_parts(a, d, d->rows, d->count, e->per_thread ? "c" : "col0 + c", e->per_thread));
}

/* Seed, iteration, micro-batch, key, number. */
static const char *drawn_at(Emitter *e, const Op *o, const DrawNumbers *d) {
    Arena *a = e->w->arena;
    const char *micro = o->n_in > 3 ? arena_printf(a, "v%d", walk_number(e->w, o->in[3])) : "0";
    return arena_printf(a, "v%d, v%d, %s, %s, %s", walk_number(e->w, o->in[1]), walk_number(e->w, o->in[2]), micro,
                        key_of(e, o), draw_number(e, o, d));
}

static bool draws_by_word(const Op *o) { return o->code == OP_random && ir_attr(o, "word")->i >= 0; }

/* The first op that draws another word of the same four: it is in the same loop where there is one alone. */
static const Op *first_of_words(const Emitter *e, const Op *o) {
    if (e->w->k->kind != KERNEL_PRODUCT && e->w->k->kind != KERNEL_TILE) return o;
    for (int i = 0; walk_op(e->w, i) != o; i++) {
        const Op *first = walk_op(e->w, i);
        bool same = draws_by_word(first) && first->n_in == o->n_in &&
                    !strcmp(ir_attr(first, "key")->s, ir_attr(o, "key")->s) &&
                    shape_equal(ir_shape(e->w->f, first->out[0]), ir_shape(e->w->f, o->out[0]));
        if (same) return first;
    }
    return o;
}

static const char *build_word(Emitter *e, const Op *o, const DrawNumbers *d, bool vector) {
    const Op *first = first_of_words(e, o);
    const int number = walk_number(e->w, first->out[0]);
    if (first == o) emit_line(e, "const RandomWords w%d = random_words(%s);", number, drawn_at(e, o, d));
    return arena_printf(e->w->arena, "uniform_%s(w%d.word[%lld])%s", e->per_thread ? "f32" : "vf", number,
                        (long long)ir_attr(o, "word")->i, vector || e->per_thread ? "" : "[0]");
}

static const char *build_random(Emitter *e, const Op *o, bool vector) {
    const DrawNumbers d = ir_draw_numbers(ir_shape(e->w->f, o->out[0]));
    if (draws_by_word(o)) return build_word(e, o, &d, vector);
    const char *vectors = d.in_order || has_steps_of_one(&d) || !vector ? "random_vf" : "random_lanes_vf";
    return arena_printf(e->w->arena, "%s(%s)%s", e->per_thread ? "random_f32" : vectors, drawn_at(e, o, &d),
                        vector || e->per_thread ? "" : "[0]");
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
    [OP_remainder] = EXPRESSION("remainder_$t($0, $1)", "remainder_$t($0, $1)", KIND_F32 | KIND_I32),
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
    [OP_dithered_cast] = {.build = build_dithered},
    [OP_reduce_sum] = {.by_walk = true},
    [OP_reduce_mean] = {.by_walk = true},
    [OP_reduce_prod] = {.by_walk = true},
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
    [OP_sum_parts] = {.by_memory = true},
    [OP_resample] = {.by_memory = true},
    [OP_resample_grad] = {.by_memory = true},
    [OP_batch_contract] = {.build = build_product, .by_memory = true},
    [OP_conv] = {.build = build_product, .by_memory = true},
    [OP_conv_data] = {.build = build_product, .by_memory = true},
    [OP_conv_weight] = {.build = build_product, .by_memory = true},
    [OP_scatter] = {.by_memory = true},
    [OP_distinct_rows] = {.by_memory = true},
};

const EmitEntry emit_near = {.scalar = "near_$n_$t($0)"};
const EmitEntry emit_function = {.vector = "$n_$t($0)", .scalar = "$n_$t($0)", .kinds = FLOATING | KIND_I32};

/* ---- strings inside generated C ---------------------------------------------------------------------------------- */

static bool is_plain(unsigned char c) { return c >= ' ' && c != 0x7F; }

/* Octal escapes, because they end after three digits. */
static void put_char(Text *t, char c) {
    if (c == '\n') text_puts(t, "\\n");
    else if (c == '"' || c == '\\') text_printf(t, "\\%c", c);
    else if (is_plain((unsigned char)c)) text_putc(t, c);
    else text_printf(t, "\\%03o", (unsigned char)c);
}

void c_string(Text *t, const char *s) {
    if (!s) {
        text_putc(t, '0');
        return;
    }
    text_putc(t, '"');
    for (; *s; s++) put_char(t, *s);
    text_putc(t, '"');
}

void c_long_string(Text *t, const char *s) {
    text_puts(t, "    \"");
    for (; *s; s++) {
        put_char(t, *s);
        if (*s == '\n' && s[1]) text_puts(t, "\"\n    \"");
    }
    text_putc(t, '"');
}

void c_comment(Text *t, const char *s) {
    for (; s && *s; s++) {
        text_putc(t, (unsigned char)*s < ' ' ? ' ' : *s);
        if (*s == '*' && s[1] == '/') text_putc(t, ' ');
    }
}

void c_identifier(Text *t, const char *s) {
    for (; *s; s++) {
        bool word = (*s >= 'a' && *s <= 'z') || (*s >= 'A' && *s <= 'Z') || (*s >= '0' && *s <= '9');
        text_putc(t, word ? *s : '_');
    }
}
