/* emit.c: see emit.h. */
#include "codegen/emit.h"

#include <math.h>

#include "base/rounding.h"

typedef struct TypeNames {
    Kind kind;
    const char *scalar, *scalar_suffix, *vector; /* vector NULL: scalars only */
} TypeNames;

static const TypeNames type_names[] = {
    [AMP_DT_F32] = {KIND_F32, "float", "f32", "vf"},     [AMP_DT_F16] = {KIND_F32, "float", "f32", "vf"},
    [AMP_DT_BF16] = {KIND_F32, "float", "f32", "vf"},    [AMP_DT_TF32] = {KIND_F32, "float", "f32", "vf"},
    [AMP_DT_F64] = {KIND_F64, "double", "f64", NULL},    [AMP_DT_I32] = {KIND_I32, "int32_t", "i32", "vi"},
    [AMP_DT_I64] = {KIND_I64, "int64_t", "i64", NULL},   [AMP_DT_U8] = {KIND_I32, "int32_t", "i32", "vi"},
    [AMP_DT_BOOL] = {KIND_BOOL, "int32_t", "i32", "vi"},
};

Kind emit_kind(Dtype t) { return type_names[t].kind; }
bool emit_is_vector(Span s) { return s == SPAN_FULL || s == SPAN_COLUMN; }
const char *emit_type(Dtype t, bool vector) { return vector ? type_names[t].vector : type_names[t].scalar; }
const char *emit_suffix(Dtype t, bool vector) { return vector ? type_names[t].vector : type_names[t].scalar_suffix; }

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
    if (!d.n) return arena_printf(a, "%lld", (long long)d.mul);
    if (d.mul == 1 && d.div == 1) return "n";
    return d.div == 1 ? arena_printf(a, "%lld * n", (long long)d.mul)
                      : arena_printf(a, "%lld * n / %lld", (long long)d.mul, (long long)d.div);
}

const char *emit_dim_factor(Arena *a, Dim d) {
    const char *text = emit_dim(a, d);
    return strchr(text, ' ') ? arena_printf(a, "(%s)", text) : text;
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

static const Storage storages[] = {
    [AMP_DT_F32] = {"f32", "float", 4},    [AMP_DT_TF32] = {"f32", "float", 4},
    [AMP_DT_F16] = {"f16", "uint16_t", 2}, [AMP_DT_BF16] = {"bf16", "uint16_t", 2},
    [AMP_DT_I32] = {"i32", "int32_t", 4},  [AMP_DT_BOOL] = {"bool", "int32_t", 4},
    [AMP_DT_U8] = {"u8", "uint8_t", 1},    [AMP_DT_I64] = {"i64", "int64_t", 8},
    [AMP_DT_F64] = {"f64", "double", 8},
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
    const EmitEntry *entry = emit_row(o->code);
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
        return amp_fail(e->err, AMP_UNSUPPORTED, "%s: %s of %s %s is not built yet (%%%s, %s)", walk_name(e->w),
                        ir_op_info[o->code].name, vector ? "vectors of" : "a scalar",
                        amp_dtype_name(o->n_in ? ir_dtype(e->w->f, o->in[o->n_in - 1]) : t), ir_value(e->w->f, v)->name,
                        o->path ? o->path : "no path");
    emit_line(e, "const %s v%d = %s;", emit_type(t, vector), walk_number(e->w, v), text);
    return AMP_OK;
}
