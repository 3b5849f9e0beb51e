/* memory.c: loads and stores of a kernel (kernel.h).  Every operand is dense and begins at a multiple of 256 bytes, so that a vector of V elements stands at a
 * multiple of its bytes wherever the number of its first element is a multiple of V. */
#include "codegen/cuda/kernel.h"

enum { VECTOR_BYTES = 16, MAX_VECTOR = 8 };

static const CudaStorage storages[] = {
    [AMP_DT_F32] = {"f32", "float", 4},    [AMP_DT_TF32] = {"f32", "float", 4},
    [AMP_DT_F16] = {"f16", "uint16_t", 2}, [AMP_DT_BF16] = {"bf16", "uint16_t", 2},
    [AMP_DT_I32] = {"i32", "int32_t", 4},  [AMP_DT_BOOL] = {"bool", "int32_t", 4},
    [AMP_DT_U8] = {"u8", "uint8_t", 1},    [AMP_DT_I64] = {"i64", "int64_t", 8},
    [AMP_DT_F64] = {"f64", "double", 8},
};

/* Bools are told by the value: a flag's storage may be called i32. */
const CudaStorage *cuda_storage_of(const Walk *w, int operand) {
    const Buffer *b = walk_operand(w, operand);
    bool is_bool = b->storage == AMP_DT_I32 && ir_dtype(w->f, b->value) == AMP_DT_BOOL;
    return &storages[is_bool ? AMP_DT_BOOL : b->storage];
}

/* Whether elements of |storage| hold values of |t| without another rounding. */
static bool storage_holds(Dtype t, Dtype storage) {
    if (t == storage || (t == AMP_DT_BOOL && storage == AMP_DT_I32)) return true;
    return emit_kind(t) == KIND_F32 && (storage == AMP_DT_F32 || storage == AMP_DT_TF32);
}

static void widen(const Walk *w, int operand, int *bytes) {
    int b = cuda_storage_of(w, operand)->bytes;
    if (*bytes < b) *bytes = b;
}

int cuda_vector_width(const Walk *w) {
    int bytes = 0;
    for (int i = 0; i < w->k->count; i++) {
        const Op *o = walk_op(w, i);
        for (int n = 0; n < o->n_in; n++) {
            const ValueWalk *x = &w->values[o->in[n].id];
            if (walk_reads(w, o, n) && !x->made && x->needed && x->span == SPAN_FULL) widen(w, x->operand, &bytes);
        }
    }
    for (int i = 0; i < w->sinks.len; i++) {
        const Sink *s = &w->sinks.data[i];
        if (s->kind == SINK_STORE && w->values[s->value.id].span == SPAN_FULL) widen(w, s->operand, &bytes);
    }
    if (!bytes) return 1; /* nothing full */
    return VECTOR_BYTES / bytes < MAX_VECTOR ? VECTOR_BYTES / bytes : MAX_VECTOR;
}

bool cuda_is_array(const CudaKernel *k, Span span) {
    return span == SPAN_FULL || (span == SPAN_COLUMN && k->w->k->kind != KERNEL_COLUMN);
}

/* ---- addresses --------------------------------------------------------------------------------------------------- */

/* One row of its matrix per segment. */
static bool is_per_segment(const CudaKernel *k, int operand) {
    Dim rows, cols;
    return k->segment && shape_matrix(ir_shape(k->w->f, walk_operand(k->w, operand)->value), &rows, &cols) &&
           !dim_is_one(rows);
}

static const char *address(const CudaKernel *k, int operand, Span span) {
    Arena *a = k->w->arena;
    switch (span) {
    case SPAN_ONE: return arena_printf(a, "b%d", operand);
    case SPAN_ROW: return arena_printf(a, "b%d + r", operand);
    case SPAN_COLUMN:
        if (is_per_segment(k, operand)) return arena_printf(a, "b%d + %s * COLS + %s", operand, k->segment, k->column);
        return arena_printf(a, "b%d + %s", operand, k->column);
    default: return arena_printf(a, "b%d + %s", operand, k->at);
    }
}

/* ---- loads ------------------------------------------------------------------------------------------------------- */

/* In vectors: `float x1[4]`; for values that stay: `float x1[8][4]`. */
static bool is_vector(const CudaKernel *k, Val v) {
    return cuda_is_array(k, k->w->values[v.id].span) && (k->vector > 1 || k->first_phase[v.id]);
}

amp_status cuda_load(CudaKernel *k, Val v) {
    const ValueWalk *x = &k->w->values[v.id];
    const CudaStorage *s = cuda_storage_of(k->w, x->operand);
    Dtype t = ir_dtype(k->w->f, v);
    const char *type = emit_type(t, false), *at = address(k, x->operand, x->span);
    int number = walk_number(k->w, v);
    if (!storage_holds(t, walk_operand(k->w, x->operand)->storage))
        return amp_fail(k->e.err, AMP_UNSUPPORTED, "%s: %%%s of type %s in a buffer of %s cannot be read elementwise",
                        walk_name(k->w), ir_value(k->w->f, v)->name, amp_dtype_name(t), s->name);
    if (!is_vector(k, v)) {
        emit_line(&k->e, "const %s v%d = get_%s(%s);", type, number, s->name, at);
        return AMP_OK;
    }
    bool stays = k->first_phase[v.id];
    if (stays && k->first_phase[v.id] != k->phase + 1) return AMP_OK;
    if (!stays) emit_line(&k->e, "%s x%d[%d];", type, number, k->vector);
    emit_line(&k->e, "load_%s(x%d%s, %s%s);", s->name, number, stays ? k->slot : "", at,
              k->part && x->span == SPAN_FULL ? ", left" : "");
    return AMP_OK;
}

void cuda_take_element(CudaKernel *k, Val v) {
    int number = walk_number(k->w, v);
    if (is_vector(k, v))
        emit_line(&k->e, "const %s v%d = x%d%s[%s];", emit_type(ir_dtype(k->w->f, v), false), number, number,
                  k->first_phase[v.id] ? k->slot : "", k->index);
}

/* ---- stores ------------------------------------------------------------------------------------------------------ */

/* A watch buffer may be absent; a value of a smaller span is stored by one thread of those that have it. */
static const char *store_condition(const CudaKernel *k, const Sink *s) {
    KernelKind kind = k->w->k->kind;
    Span span = k->w->values[s->value.id].span;
    const char *one = NULL;
    if (span == SPAN_ONE) one = k->first_thread;
    else if (span == walk_line_span(k->w) && (kind == KERNEL_ROW || kind == KERNEL_COLUMN)) one = k->line_store;
    else if (span == SPAN_COLUMN) one = "r == 0";
    else if (span == SPAN_ROW) one = "c == 0";
    if (walk_operand(k->w, s->operand)->kind != BUFFER_WATCH) return one;
    return one ? arena_printf(k->w->arena, "b%d && %s", s->operand, one) : arena_printf(k->w->arena, "b%d", s->operand);
}

static void put_if(CudaKernel *k, const char *condition, const char *statement) {
    if (condition) emit_line(&k->e, "if (%s) %s", condition, statement);
    else emit_line(&k->e, "%s", statement);
}

static amp_status check_store(const CudaKernel *k, const Sink *s) {
    Dtype t = ir_dtype(k->w->f, s->value);
    const Buffer *b = walk_operand(k->w, s->operand);
    if (b->layout == LAYOUT_ROWS && storage_holds(t, b->storage)) return AMP_OK;
    return amp_fail(k->e.err, AMP_UNSUPPORTED, "%s: %%%s of type %s cannot be stored in buffer %s", walk_name(k->w),
                    ir_value(k->w->f, s->value)->name, amp_dtype_name(t), b->name);
}

/* Stored as a vector: behind the loop that fills it. */
static bool stores_vector(const CudaKernel *k, const Sink *s) {
    return k->vector > 1 && cuda_is_array(k, k->w->values[s->value.id].span);
}

static const char *put_element(const CudaKernel *k, const Sink *s) {
    return arena_printf(k->w->arena, "put_%s(%s, v%d);", cuda_storage_of(k->w, s->operand)->name,
                        address(k, s->operand, k->w->values[s->value.id].span), walk_number(k->w, s->value));
}

amp_status cuda_declare_store(CudaKernel *k, const Sink *s) {
    if (stores_vector(k, s))
        emit_line(&k->e, "%s y%d[%d];", emit_type(ir_dtype(k->w->f, s->value), false), s->operand, k->vector);
    return check_store(k, s);
}

void cuda_store_element(CudaKernel *k, const Sink *s) {
    if (stores_vector(k, s)) emit_line(&k->e, "y%d[%s] = v%d;", s->operand, k->index, walk_number(k->w, s->value));
    else put_if(k, store_condition(k, s), put_element(k, s));
}

void cuda_store_vector(CudaKernel *k, const Sink *s) {
    Span span = k->w->values[s->value.id].span;
    if (!stores_vector(k, s)) return;
    put_if(k, store_condition(k, s),
           arena_printf(k->w->arena, "store_%s(%s, y%d%s);", cuda_storage_of(k->w, s->operand)->name,
                        address(k, s->operand, span), s->operand, k->part && span == SPAN_FULL ? ", left" : ""));
}

amp_status cuda_store_one(CudaKernel *k, const Sink *s) {
    put_if(k, store_condition(k, s), put_element(k, s));
    return check_store(k, s);
}
