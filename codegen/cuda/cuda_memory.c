/* cuda_memory.c: loads and stores of a kernel (cuda_kernel.h).  Every operand begins at a multiple of 16 bytes, so
 * that a vector of V elements is at a multiple of its bytes wherever the number of its first element is a multiple of
 * V: in each row, where rows are multiples of V, or stored at a pitch that is one.  Of other rows elements are moved
 * one by one. */
#include "codegen/cuda/cuda_kernel.h"

enum { VECTOR_BYTES = 16, MAX_VECTOR = 8 };

static void widen(const Walk *w, int operand, int *bytes) {
    int b = emit_storage(w, operand)->bytes;
    if (*bytes < b) *bytes = b;
}

int cuda_copy_bytes(int64_t elements, int element_bytes) {
    int bytes = 16;
    while (elements * element_bytes % bytes) bytes /= 2;
    return bytes;
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
    const int moved = indirect_widest(w);
    if (bytes < moved) bytes = moved;
    return VECTOR_BYTES / bytes < MAX_VECTOR ? VECTOR_BYTES / bytes : MAX_VECTOR;
}

bool cuda_is_array(const CudaKernel *ck, Span span) {
    return span == SPAN_FULL || (span == SPAN_COLUMN && ck->w->k->kind != KERNEL_COLUMN);
}

int64_t cuda_multiple(const Walk *w, Dim d) {
    int64_t all = d.mul;
    for (int i = 0; i < d.t; i++) all *= w->f->module->length.unit;
    if (!dim_varies(d)) return all;
    return all % d.div ? 1 : all / d.div;
}

int64_t cuda_most(const Walk *w, Dim d) {
    return d.n ? INT64_MAX : dim_eval(d, (Sizes){1, d.t ? w->f->module->length.most : 1});
}

Dim cuda_row_length(const CudaKernel *ck) { return ck->pitch ? dim_const(ck->pitch) : ck->w->cols; }

const char *cuda_row_end(const CudaKernel *ck) {
    return ck->pitch ? arena_printf(ck->w->arena, "%lld", (long long)ck->pitch) : "COLS";
}

void cuda_put_left(CudaKernel *ck) {
    if (ck->by_rows) emit_line(&ck->e, "MAYBE_UNUSED const int32_t left = COLS - %s;", ck->column);
}

/* ---- addresses --------------------------------------------------------------------------------------------------- */

static bool has_pitch(const CudaKernel *ck, int operand) { return walk_operand(ck->w, operand)->pitch; }

int64_t cuda_padded_pitch(const Walk *w, int operand) {
    const Buffer *b = walk_operand(w, operand);
    return b->is_part ? 0 : b->pitch;
}

bool cuda_has_parts(const Walk *w) {
    for (int i = 0; i < w->operands.len; i++)
        if (walk_operand(w, i)->is_part) return true;
    return false;
}

const char *cuda_length_of(const CudaKernel *ck, int operand) {
    const int64_t pitch = walk_operand(ck->w, operand)->pitch;
    return pitch ? arena_printf(ck->w->arena, "%lld", (long long)pitch) : "COLS";
}

static const char *address(const CudaKernel *ck, int operand, Span span) {
    Arena *a = ck->w->arena;
    switch (span) {
    case SPAN_ONE: return arena_printf(a, "b%d", operand);
    case SPAN_ROW: return arena_printf(a, "b%d + r", operand);
    case SPAN_COLUMN:
        if (walk_is_per_segment(ck->w, operand))
            return arena_printf(a, "b%d + %s * %s + %s", operand, ck->segment, cuda_length_of(ck, operand), ck->column);
        return arena_printf(a, "b%d + %s", operand, ck->column);
    default:
        if (has_pitch(ck, operand))
            return arena_printf(a, "b%d + r * %s + %s", operand, cuda_length_of(ck, operand), ck->column);
        return arena_printf(a, "b%d + %s", operand, ck->at);
    }
}

/* How a vector of an operand is moved where its thread may have fewer elements. */
typedef struct Access {
    const char *each, *left; /* "each_": one by one; ", left" */
} Access;

static Access access_of(const CudaKernel *ck, int operand, Span span) {
    if (ck->by_rows) {
        if (span == SPAN_FULL && cuda_padded_pitch(ck->w, operand)) return (Access){"", ""};
        return (Access){span == SPAN_COLUMN || cuda_multiple(ck->w, ck->w->cols) % ck->vector == 0 ? "" : "each_",
                        ", left"};
    }
    return (Access){"", ck->part && span == SPAN_FULL ? ", left" : ""};
}

/* ---- loads ------------------------------------------------------------------------------------------------------- */

/* A row kernel reads what it has in shared memory there, as far as it goes. */
static const char *load_address(const CudaKernel *ck, int operand, Span span) {
    if (span != SPAN_FULL || !ck->held || !ck->held[operand]) return address(ck, operand, span);
    return arena_printf(ck->w->arena, "row%d + %s", operand, ck->column);
}

/* In vectors: `float x1[4]`; for values that stay: `float x1[8][4]`. */
static bool is_vector(const CudaKernel *ck, Val v) {
    return cuda_is_array(ck, ck->w->values[v.id].span) && (ck->vector > 1 || ck->first_phase[v.id]);
}

/* A product keeps what it loads of a matrix ahead as it is in memory: two numbers a register. */
static bool is_in_words(const CudaKernel *ck, Val v) {
    const ValueWalk *x = &ck->w->values[v.id];
    return ck->w->k->kind == KERNEL_PRODUCT && !x->made && x->span == SPAN_FULL && ck->vector > 1 &&
           emit_storage(ck->w, x->operand)->bytes == 2 && !*access_of(ck, x->operand, x->span).left;
}

amp_status cuda_load(CudaKernel *ck, Val v) {
    const ValueWalk *x = &ck->w->values[v.id];
    const Storage *s = emit_storage(ck->w, x->operand);
    Dtype t = ir_dtype(ck->w->f, v);
    const char *type = emit_type(t, false), *at = load_address(ck, x->operand, x->span);
    int number = walk_number(ck->w, v);
    if (!emit_storage_holds(t, walk_operand(ck->w, x->operand)->storage))
        return amp_fail(ck->e.err, AMP_UNSUPPORTED, "%s: %%%s of type %s in a buffer of %s cannot be read elementwise",
                        walk_name(ck->w), ir_value(ck->w->f, v)->name, amp_dtype_name(t), s->name);
    cuda_declare_operand(ck, x->operand);
    if (!is_vector(ck, v)) {
        if (ck->e.lanes_of_row) emit_line(&ck->e, "all%d[u] = here ? get_%s(%s) : 0;", number, s->name, at);
        else emit_line(&ck->e, "const %s v%d = get_%s(%s);", type, number, s->name, at);
        return AMP_OK;
    }
    bool stays = ck->first_phase[v.id];
    if (stays && ck->first_phase[v.id] != ck->phase + 1) return AMP_OK;
    const Access by = access_of(ck, x->operand, x->span);
    if (ck->e.lanes_of_row) {
        if (is_in_words(ck, v)) {
            emit_line(&ck->e, "load_words_if(all%d[u], %s, here);", number, at);
            return AMP_OK;
        }
        cuda_recall_row(ck, v, "u");
        if (*by.left) emit_line(&ck->e, "load_%s%s(x%d, %s, here ? left : 0);", by.each, s->name, number, at);
        else emit_line(&ck->e, "load_if_%s(x%d, %s, here);", s->name, number, at);
        return AMP_OK;
    }
    if (!stays) emit_line(&ck->e, "%s x%d[%d];", type, number, ck->vector);
    emit_line(&ck->e, "load_%s%s(x%d%s, %s%s);", by.each, s->name, number, stays ? ck->slot : "", at, by.left);
    return AMP_OK;
}

void cuda_take_element(CudaKernel *ck, Val v) {
    int number = walk_number(ck->w, v);
    if (is_vector(ck, v))
        emit_line(&ck->e, "%sconst %s v%d = x%d%s[%s];", ck->inlines ? "MAYBE_UNUSED " : "",
                  emit_type(ir_dtype(ck->w->f, v), false), number, number, ck->first_phase[v.id] ? ck->slot : "",
                  ck->index);
}

/* A vector of each row, or one number. */
static bool has_vectors(const CudaKernel *ck, Val v) { return ck->w->values[v.id].made || is_vector(ck, v); }

void cuda_declare_rows(CudaKernel *ck, Val v, const char *count) {
    const char *type = emit_type(ir_dtype(ck->w->f, v), false);
    const int number = walk_number(ck->w, v);
    if (is_in_words(ck, v)) emit_line(&ck->e, "uint32_t all%d[%s][%d];", number, count, ck->vector / 2);
    else if (has_vectors(ck, v)) emit_line(&ck->e, "%s all%d[%s][%d];", type, number, count, ck->vector);
    else emit_line(&ck->e, "%s all%d[%s];", type, number, count);
}

void cuda_recall_row(CudaKernel *ck, Val v, const char *which) {
    const char *type = emit_type(ir_dtype(ck->w->f, v), false);
    const int number = walk_number(ck->w, v);
    if (is_in_words(ck, v)) {
        emit_line(&ck->e, "%s x%d[%d];", type, number, ck->vector);
        emit_line(&ck->e, "numbers_%s(x%d, all%d[%s]);", emit_storage(ck->w, ck->w->values[v.id].operand)->name, number,
                  number, which);
    } else if (has_vectors(ck, v))
        emit_line(&ck->e, "%s(&x%d)[%d] = all%d[%s];", type, number, ck->vector, number, which);
    else emit_line(&ck->e, "const %s v%d = all%d[%s];", type, number, number, which);
}

/* ---- stores ------------------------------------------------------------------------------------------------------ */

/* A watch buffer may be absent; a value of a smaller span is stored by one thread of those that have it. */
static const char *store_condition(const CudaKernel *ck, const Sink *s) {
    KernelKind kind = ck->w->k->kind;
    Span span = ck->w->values[s->value.id].span;
    const char *one = NULL;
    if (span == SPAN_ONE) one = ck->first_thread;
    else if (span == walk_line_span(ck->w) && (kind == KERNEL_ROW || kind == KERNEL_COLUMN)) one = ck->line_store;
    else if (span == SPAN_COLUMN) one = "r == 0";
    else if (span == SPAN_ROW) one = "c == 0";
    if (!buffer_is_optional(walk_operand(ck->w, s->operand)->kind)) return one;
    const char *is_there = arena_printf(ck->w->arena, s->kind == SINK_LOOK ? "looks%d" : "b%d", s->operand);
    return one ? arena_printf(ck->w->arena, "%s && %s", is_there, one) : is_there;
}

static void put_if(CudaKernel *ck, const char *condition, const char *statement) {
    if (condition) emit_line(&ck->e, "if (%s) %s", condition, statement);
    else emit_line(&ck->e, "%s", statement);
}

static amp_status check_store(const CudaKernel *ck, const Sink *s) {
    Dtype t = ir_dtype(ck->w->f, s->value);
    const Buffer *b = walk_operand(ck->w, s->operand);
    if (b->layout == LAYOUT_ROWS && emit_storage_holds(t, b->storage)) return AMP_OK;
    return amp_fail(ck->e.err, AMP_UNSUPPORTED, "%s: %%%s of type %s cannot be stored in buffer %s", walk_name(ck->w),
                    ir_value(ck->w->f, s->value)->name, amp_dtype_name(t), b->name);
}

/* Stored as a vector: after the loop that fills it. */
static bool stores_vector(const CudaKernel *ck, const Sink *s) {
    return ck->vector > 1 && cuda_is_array(ck, ck->w->values[s->value.id].span);
}

void cuda_declare_looks(CudaKernel *ck) {
    for (int i = 0; i < ck->w->sinks.len; i++) {
        const Sink *s = &ck->w->sinks.data[i];
        if (s->kind != SINK_LOOK) continue;
        cuda_declare_operand(ck, s->operand);
        emit_line(&ck->e, "const bool looks%d = b%d->on;", s->operand, s->operand);
    }
}

/* The variable that is stored: a store of f16 rounds, so what is cast to it need not be rounded before.  Row and column
 * kernels may have kept only the result of the cast. */
static int stored_number(const CudaKernel *ck, const Sink *s) {
    const KernelKind kind = ck->w->k->kind;
    const Op *o = ir_def(ck->w->f, s->value);
    const bool rounds = s->kind == SINK_STORE && ir_dtype(ck->w->f, s->value) == AMP_DT_F16 &&
                        emit_storage(ck->w, s->operand)->bytes == 2 && o && o->code == OP_cast &&
                        ck->w->values[s->value.id].made && ir_dtype(ck->w->f, o->in[0]) == AMP_DT_F32;
    const bool is_here = rounds && (kind == KERNEL_PRODUCT || kind == KERNEL_TILE) &&
                         ck->w->values[o->in[0].id].span == SPAN_FULL && !ck->w->values[o->in[0].id].inlined;
    return walk_number(ck->w, is_here ? o->in[0] : s->value);
}

static const char *put_element(const CudaKernel *ck, const Sink *s) {
    if (s->kind == SINK_LOOK)
        return arena_printf(ck->w->arena, "look(b%d, v%d);", s->operand, walk_number(ck->w, s->value));
    return arena_printf(ck->w->arena, "put_%s(%s, v%d);", emit_storage(ck->w, s->operand)->name,
                        address(ck, s->operand, ck->w->values[s->value.id].span), stored_number(ck, s));
}

amp_status cuda_declare_store(CudaKernel *ck, const Sink *s) {
    if (stores_vector(ck, s))
        emit_line(&ck->e, "%s y%d[%d]%s;", emit_type(ir_dtype(ck->w->f, s->value), false), s->operand, ck->vector,
                  ck->by_rows ? " = {}" : "");
    return check_store(ck, s);
}

void cuda_store_element(CudaKernel *ck, const Sink *s) {
    if (stores_vector(ck, s)) emit_line(&ck->e, "y%d[%s] = v%d;", s->operand, ck->index, stored_number(ck, s));
    else put_if(ck, store_condition(ck, s), put_element(ck, s));
}

void cuda_store_vector(CudaKernel *ck, const Sink *s) {
    Span span = ck->w->values[s->value.id].span;
    if (!stores_vector(ck, s)) return;
    const Access by = access_of(ck, s->operand, span);
    const char *store =
        arena_printf(ck->w->arena, "store_%s%s(%s, y%d%s);", by.each, emit_storage(ck->w, s->operand)->name,
                     address(ck, s->operand, span), s->operand, by.left);
    if (s->kind == SINK_LOOK) /* by rows what is left out is zero */
        store = arena_printf(ck->w->arena, "look(b%d, y%d%s);", s->operand, s->operand, ck->by_rows ? "" : by.left);
    put_if(ck, store_condition(ck, s), store);
}

amp_status cuda_store_one(CudaKernel *ck, const Sink *s) {
    cuda_declare_operand(ck, s->operand);
    put_if(ck, store_condition(ck, s), put_element(ck, s));
    return check_store(ck, s);
}

/* ---- what ops read from memory (codegen/indirect.h) -------------------------------------------------------------- */

const char *cuda_place_of(const Emitter *e, const Memory *m, const char *row, const char *column) {
    const int64_t pitch = walk_operand(e->w, m->operand)->pitch;
    const char *length = pitch ? arena_printf(e->w->arena, "%lld", (long long)pitch) : m->cols;
    return arena_printf(e->w->arena, "%s + ((int64_t)(%s) * %s + (%s))",
                        cuda_operand((const CudaKernel *)e, m->operand), row, length, column);
}

const char *cuda_element_at(const Emitter *e, const Memory *m, const char *row, const char *column) {
    return arena_printf(e->w->arena, "get_%s(%s)", m->storage->name, cuda_place_of(e, m, row, column));
}

static const char *stride_text(const Emitter *e, const Shape *s, int dim) {
    Dim stride = dim_const(1);
    for (int i = dim + 1; i < s->rank - 1; i++)
        if (!dim_mul(stride, s->d[i], &stride)) return NULL;
    return dim_is_one(stride) ? "r" : arena_printf(e->w->arena, "quotient(r, %s)", emit_dim(e->w->arena, stride));
}

amp_status cuda_put_coordinates(Emitter *e, const Op *o) {
    Shape s = emit_matrix_shape(ir_shape(e->w->f, o->out[0]));
    if (e->lane_count) emit_line(e, "MAYBE_UNUSED const int32_t c = c0;");
    for (int i = 0; i < s.rank - 1; i++) {
        const char *at = stride_text(e, &s, i);
        if (!at)
            return amp_fail(e->err, AMP_UNSUPPORTED, "%s: %s: the shape of its result is not supported for CUDA",
                            walk_name(e->w), ir_op_info[o->code].name);
        if (i) at = arena_printf(e->w->arena, "modulo(%s, %s)", at, emit_dim(e->w->arena, s.d[i]));
        emit_line(e, "MAYBE_UNUSED const int64_t i%d = %s;", i, dim_is_one(s.d[i]) ? "0" : at);
    }
    return AMP_OK;
}
