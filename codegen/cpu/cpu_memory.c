/* cpu_memory.c: loads and stores of a kernel, in each layout (cpu_kernel.h).  A pointer b3 is operand 3, moved to the
 * kernel's first row and column; c counts from there. */
#include "codegen/cpu/cpu_kernel.h"

/* ---- layouts ----------------------------------------------------------------------------------------------------- */

/* R: padded rows; COLS, PADDED_COLS: constants of the kernel. */
static const LayoutText layout_text[] = {
    [LAYOUT_ROWS] = {"row0 * COLS + col0", NULL, NULL, NULL},
    [LAYOUT_PANELS] = {"col0 * R + row0 * 32", "(c & ~31) * R", NULL, NULL},
    [LAYOUT_PAIRS] = {"col0 * R + row0 * 32", "(c & ~31) * R", "write_pairs", "scatter_pairs"},
    [LAYOUT_PANELS_T] = {"row0 * PADDED_COLS + col0 * 32", "(c & ~31) * 32", "write_panels_t", "scatter_panels_t"},
    [LAYOUT_PAIRS_T] = {"row0 * PADDED_COLS + col0 * 32", "(c & ~31) * 32", "write_pairs_t", "scatter_pairs_t"},
};

const LayoutText *cpu_layout_of(const Walk *w, int operand) { return &layout_text[walk_operand(w, operand)->layout]; }

/* Where an element or W neighbours stand. */
static const char *address(const CpuKernel *ck, int operand, Span span) {
    Arena *a = ck->w->arena;
    const Buffer *b = walk_operand(ck->w, operand);
    bool panels = b->layout == LAYOUT_PANELS;
    switch (span) {
    case SPAN_ONE: return arena_printf(a, "b%d", operand);
    case SPAN_ROW: return arena_printf(a, panels ? "b%d + r * 32" : "b%d + r", operand);
    case SPAN_COLUMN: /* in panels: one row, which fills 32 */
        return arena_printf(a, panels && ck->w->by_row ? "b%d + (c & ~31) * 32 + (c & 31)" : "b%d + c", operand);
    default: break;
    }
    if (b->layout == LAYOUT_ROWS) return arena_printf(a, "b%d + r * COLS + c", operand);
    if (ck->w->by_row) return arena_printf(a, "b%d + (c & ~31) * R + r * 32 + (c & 31)", operand);
    return arena_printf(a, "b%d + r * 32 + c", operand);
}

/* ---- values of one element per segment and column: a row of their matrix is a segment ---------------------------- */

/* Of a segment's row, from the beginning; |row| is its number, RS the rows, rounded up. */
static const char *segment_offset(const Walk *w, Layout layout, const char *row) {
    static const char *const offsets[] = {
        [LAYOUT_ROWS] = "%s * COLS + col0",
        [LAYOUT_PANELS] = "col0 * RS + %s * 32",
        [LAYOUT_PAIRS] = "col0 * RS + %s / 2 * 64 + %s %% 2",
        [LAYOUT_PANELS_T] = "%s / 32 * 32 * PADDED_COLS + %s %% 32 + col0 * 32",
        [LAYOUT_PAIRS_T] = "%s / 32 * 32 * PADDED_COLS + %s %% 32 * 2 + col0 * 32",
    };
    return arena_printf(w->arena, offsets[layout], row, row);
}

const char *cpu_offset(const Walk *w, int operand, Span span) {
    static const char *const origin[][2] = {
        [SPAN_ONE] = {"0", "0"}, [SPAN_ROW] = {"row0", "row0 * 32"}, [SPAN_COLUMN] = {"col0", "col0 * 32"}};
    if (span == SPAN_FULL) return cpu_layout_of(w, operand)->offset;
    bool panels = walk_operand(w, operand)->layout == LAYOUT_PANELS;
    if (span != SPAN_COLUMN || !walk_is_per_segment(w, operand)) return origin[span][panels];
    const char *row = arena_printf(w->arena, "row0 / %s", emit_dim_factor(w->arena, w->segment));
    return segment_offset(w, walk_operand(w, operand)->layout, row);
}

/* Where rows are side by side, those past the last segment become zero. */
void cpu_clear_past_last_segment(CpuKernel *ck, const Sink *s) {
    Walk *w = ck->w;
    const Buffer *b = walk_operand(w, s->operand);
    const LayoutText *l = cpu_layout_of(w, s->operand);
    const char *element = emit_storage(w, s->operand)->element, *segments = emit_dim(w->arena, walk_segments(w));
    if (w->values[s->value.id].span != SPAN_COLUMN || !walk_is_per_segment(w, s->operand) || !l->scatter) return;
    emit_open(&ck->e, "for (int64_t s = %s; row0 + rows == %s && s < RS; s++)", segments, emit_dim(w->arena, w->rows));
    emit_line(&ck->e, "%s *const z = OPERAND(%s, %d, %s);", element, element, s->operand,
              segment_offset(w, b->layout, "s"));
    emit_line(&ck->e, "for (int64_t c = 0; c < 32; c += W) scatter_row_%s(z, splat_i(0), c);", l->scatter + 8);
    emit_close(&ck->e);
}

/* ---- loads and stores -------------------------------------------------------------------------------------------- */

/* Dense rows end where they end; panels have whole vectors. */
static bool in_parts(const CpuKernel *ck, int operand) {
    return ck->padded && walk_operand(ck->w, operand)->layout == LAYOUT_ROWS;
}

amp_status cpu_load(CpuKernel *ck, Val v) {
    const ValueWalk *x = &ck->w->values[v.id];
    const char *storage = emit_storage(ck->w, x->operand)->name, *at = address(ck, x->operand, x->span);
    Dtype t = ir_dtype(ck->w->f, v);
    bool vector = emit_is_vector(x->span);
    if (!emit_storage_holds(t, walk_operand(ck->w, x->operand)->storage) || !emit_type(t, vector))
        return amp_fail(ck->e.err, AMP_UNSUPPORTED, "%s: %%%s of type %s in a buffer of %s cannot be read elementwise",
                        walk_name(ck->w), ir_value(ck->w->f, v)->name, amp_dtype_name(t), storage);
    const char *type = emit_type(t, vector);
    int number = walk_number(ck->w, v);
    if (!vector) emit_line(&ck->e, "const %s v%d = get_%s(%s);", type, number, storage, at);
    else if (in_parts(ck, x->operand))
        emit_line(&ck->e, "const %s v%d = load_%s_part(%s, left);", type, number, storage, at);
    else emit_line(&ck->e, "const %s v%d = load_%s(%s);", type, number, storage, at);
    return AMP_OK;
}

/* A full value in a layout that is written tile by tile or scattered. */
static void store_in_tile(CpuKernel *ck, int operand, const char *value) {
    const char *storage = emit_storage(ck->w, operand)->name;
    const LayoutText *l = cpu_layout_of(ck->w, operand);
    if (ck->w->by_row)
        emit_line(&ck->e, "%s(b%d + %s, bits_%s(%s), r, c & 31);", l->scatter, operand, l->tile, storage, value);
    else emit_line(&ck->e, "store_i32(&t%d[r][c], bits_%s(%s));", operand, storage, value);
}

/* A watch or look buffer may be absent; the first task alone stores a value of a smaller span than its kernel's. */
static const char *store_condition(const CpuKernel *ck, const Sink *s) {
    KernelKind kind = ck->w->k->kind;
    Span span = ck->w->values[s->value.id].span;
    const char *first = NULL;
    if (span == SPAN_ONE && kind != KERNEL_SCALAR) first = "row0 == 0 && col0 == 0";
    if (span == SPAN_COLUMN && kind != KERNEL_COLUMN) first = ck->w->by_row ? "row0 + r == 0" : "row0 == 0";
    if (span == SPAN_ROW && kind != KERNEL_ROW) first = "col0 + c == 0";
    if (!buffer_is_optional(walk_operand(ck->w, s->operand)->kind)) return first;
    return first ? arena_printf(ck->w->arena, "b%d && %s", s->operand, first)
                 : arena_printf(ck->w->arena, "b%d", s->operand);
}

amp_status cpu_store(CpuKernel *ck, const Sink *s) {
    Walk *w = ck->w;
    const Buffer *b = walk_operand(w, s->operand);
    Span span = w->values[s->value.id].span;
    bool segments = span == SPAN_COLUMN && walk_is_per_segment(w, s->operand) && w->k->kind == KERNEL_COLUMN;
    bool vector = emit_is_vector(span), tiles = (span == SPAN_FULL || segments) && b->layout != LAYOUT_ROWS;
    bool by_tile = span == SPAN_FULL && cpu_layout_of(w, s->operand)->write;
    const char *value = emit_operand(&ck->e, s->value, vector), *at = address(ck, s->operand, span),
               *storage = emit_storage(w, s->operand)->name;
    Dtype t = ir_dtype(w->f, s->value);
    if (!emit_storage_holds(t, b->storage) || (by_tile && w->k->kind == KERNEL_COLUMN) ||
        (span != SPAN_FULL && b->layout != LAYOUT_ROWS && span != SPAN_ONE && !segments))
        return amp_fail(ck->e.err, AMP_UNSUPPORTED, "%s: %%%s of type %s cannot be stored in buffer %s", walk_name(w),
                        ir_value(w->f, s->value)->name, amp_dtype_name(t), b->name);
    if (tiles && ck->padded) value = arena_printf(w->arena, "keep_%s(%s, in)", emit_suffix(t, true), value);
    const char *condition = store_condition(ck, s);
    if (condition) emit_open(&ck->e, "if (%s)", condition);
    if (span == SPAN_ONE && b->layout != LAYOUT_ROWS) /* one tile, of one element */
        emit_line(&ck->e, "clear_tiles(b%d, 1024 * %d, 0, 1);", s->operand, emit_storage(w, s->operand)->bytes);
    if (by_tile) store_in_tile(ck, s->operand, value);
    else if (tiles && cpu_layout_of(w, s->operand)->scatter)
        emit_line(&ck->e, "scatter_row_%s(b%d, bits_%s(%s), c);", cpu_layout_of(w, s->operand)->scatter + 8, s->operand,
                  storage, value);
    else if (!vector) emit_line(&ck->e, "put_%s(%s, %s);", storage, at, value);
    else if (in_parts(ck, s->operand)) emit_line(&ck->e, "store_%s_part(%s, %s, left);", storage, at, value);
    else emit_line(&ck->e, "store_%s(%s, %s);", storage, at, value);
    if (condition) emit_close(&ck->e);
    return AMP_OK;
}

/* ---- what ops read from memory (codegen/indirect.h): the pointer m3 is the beginning of operand 3 ---------------- */

static const char *address_of(const Emitter *e, const Memory *m, const char *row, const char *column) {
    if (m->layout == LAYOUT_PANELS)
        return arena_printf(e->w->arena, "AT_PANELS(m%d, %s, %s, %s)", m->operand, row, column, m->rows);
    return arena_printf(e->w->arena, "AT_ROWS(m%d, %s, %s, %s)", m->operand, row, column, m->cols);
}

/* Dense rows end where they end. */
const char *cpu_vector_at(const Emitter *e, const Memory *m, const char *row, const char *column) {
    bool part = ((const CpuKernel *)e)->padded && m->layout == LAYOUT_ROWS;
    return arena_printf(e->w->arena, part ? "load_%s_part(%s, left)" : "load_%s(%s)", m->storage->name,
                        address_of(e, m, row, column));
}

const char *cpu_element_at(const Emitter *e, const Memory *m, const char *row, const char *column) {
    return arena_printf(e->w->arena, "get_%s(%s)", m->storage->name, address_of(e, m, row, column));
}

void cpu_choose_memory(Emitter *e, const Memory *m, const char *number) {
    emit_line(e, "const %s *const m%d = OPERAND(%s, %d + %s, 0);", m->storage->element, m->operand, m->storage->element,
              m->operand, number);
}

static const char *stride_text(const Walk *w, const Shape *s, int dim) {
    Dim stride = dim_const(1);
    for (int i = dim + 1; i < s->rank - 1; i++)
        if (!dim_mul(stride, s->d[i], &stride)) return NULL;
    return dim_is_one(stride) ? "" : arena_printf(w->arena, " / (uint64_t)(%s)", emit_dim(w->arena, stride));
}

/* `const int64_t i0 = ..., i1 = ...`: the coordinates of |row| along the leading dimensions of |s|; |name|: 'i', or 's'
 * for those that step from row to row. */
static void put_coordinates(CpuKernel *ck, const Shape *s, const char *row, char name) {
    Arena *a = ck->w->arena;
    const char *constant = name == 'i' ? "const " : "";
    for (int i = 0; i < s->rank - 1; i++) {
        const char *rest = i ? arena_printf(a, " %% (uint64_t)(%s)", emit_dim(a, s->d[i])) : "";
        const char *at = arena_printf(a, "(int64_t)((uint64_t)(%s)%s%s)", row, stride_text(ck->w, s, i), rest);
        emit_line(&ck->e, "MAYBE_UNUSED %sint64_t %c%d = %s;", constant, name, i, dim_is_one(s->d[i]) ? "0" : at);
    }
}

void cpu_put_steps(CpuKernel *ck, const char *row) { put_coordinates(ck, &ck->stepped, row, 's'); }

void cpu_step_coordinates(CpuKernel *ck) {
    int last = ck->stepped.rank - 2, open = 0;
    for (int i = last; i > 0; i--) {
        if (dim_is_one(ck->stepped.d[i])) continue;
        emit_open(&ck->e, "if (++s%d == %s)", i, emit_dim(ck->w->arena, ck->stepped.d[i]));
        emit_line(&ck->e, "s%d = 0;", i);
        open++;
    }
    if (last >= 0) emit_line(&ck->e, "s0++;");
    while (open--) emit_close(&ck->e);
}

Shape cpu_stepped_shape(const CpuKernel *ck) {
    const Walk *w = ck->w;
    for (int i = 0; i < w->k->count; i++) {
        const Op *o = walk_op(w, i);
        if (walk_is_indirect(w, o) && w->values[o->out[0].id].needed)
            return emit_matrix_shape(ir_shape(w->f, o->out[0]));
    }
    return (Shape){.rank = 0};
}

static bool has_same_rows(const Shape *a, const Shape *b) {
    bool same = a->rank == b->rank;
    for (int i = 0; i < a->rank - 1 && same; i++) same = dim_equal(a->d[i], b->d[i]);
    return same;
}

amp_status cpu_put_coordinates(Emitter *e, const Op *o) {
    CpuKernel *ck = (CpuKernel *)e;
    Shape s = emit_matrix_shape(ir_shape(e->w->f, o->out[0]));
    emit_line(e, "MAYBE_UNUSED const int64_t j = col0 + c;");
    emit_line(e, "MAYBE_UNUSED const uint64_t row = (uint64_t)(row0 + r);");
    if (!has_same_rows(&s, &ck->stepped)) put_coordinates(ck, &s, "row", 'i');
    else
        for (int i = 0; i < s.rank - 1; i++) emit_line(e, "MAYBE_UNUSED const int64_t i%d = s%d;", i, i);
    return AMP_OK;
}

void cpu_declare_memory(CpuKernel *ck) {
    Walk *w = ck->w;
    bool *declared = arena_array(w->arena, bool, w->operands.len + 1);
    for (int i = 0; i < w->k->count; i++) {
        const Op *o = walk_op(w, i);
        bool indirect = walk_is_indirect(w, o);
        if (!o->n_out || !walk_is_live(w, o) || (!indirect && !walk_is_inlined(w, o))) continue;
        for (int n = 0; n < o->n_in; n++) {
            if (!indirect && !walk_reads_inlined(w, o, n)) continue;
            int operand = walk_memory_operand(w, o, n);
            if (operand < 0 || declared[operand]) continue;
            declared[operand] = true;
            const char *element = emit_storage(w, operand)->element;
            emit_line(&ck->e, "const %s *const m%d = OPERAND(%s, %d, 0);", element, operand, element, operand);
        }
    }
}
