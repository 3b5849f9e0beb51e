/* cpu_scatter.c: kernels that write rows of a table by their ids (KERNEL_SCATTER).  A task has 32 columns, and all
 * rows: what it makes does not depend on who works where. */
#include "codegen/cpu/cpu_kernel.h"

/* ---- sums of rows by id ------------------------------------------------------------------------------------------ */

/* Rows added up by id.  A task owns 32 columns of the result: it clears them, then adds every row in
 * order, so that the sums do not depend on who works where. */

static const char *padded_rows(Arena *a, Dim rows) {
    if (dim_varies(rows)) return arena_printf(a, "((%s + 31) / 32 * 32)", emit_dim_factor(a, rows));
    return arena_printf(a, "%lld", (long long)(rows.mul + 31) / 32 * 32);
}

typedef struct Target { /* a buffer of the result */
    int operand;
    const char *at, *rows; /* column c of row id; rows that exist in memory */
} Target;

static amp_status find_target(CpuKernel *ck, const Op *o, int operand, Target *out) {
    Walk *w = ck->w;
    const Buffer *b = walk_operand(w, operand);
    const Dim count = ir_shape(w->f, o->out[0])->d[0];
    const char *padded = padded_rows(w->arena, count);
    bool panels = b->layout == LAYOUT_PANELS;
    if ((!panels && b->layout != LAYOUT_ROWS) || emit_storage(w, operand)->bytes != 4)
        return amp_fail(ck->e.err, AMP_UNSUPPORTED, "%s: scatter into the layout of buffer %s is not supported",
                        walk_name(w), b->name);
    out->operand = operand;
    out->rows = panels ? padded : emit_dim(w->arena, count);
    out->at = panels ? arena_printf(w->arena, "b%d + col0 * %s + id * 32 + c", operand, padded)
                     : arena_printf(w->arena, "b%d + id * COLS + col0 + c", operand);
    return AMP_OK;
}

/* The vectors of a task's columns. */
static void open_columns(CpuKernel *ck) {
    emit_open(&ck->e, "for (int64_t c = 0; c < 32; c += W)");
    emit_line(&ck->e, "MAYBE_UNUSED const int64_t j = col0 + c, left = COLS - j;");
    emit_line(&ck->e, "MAYBE_UNUSED const vi in = first_lanes(left);");
}

static void emit_target(CpuKernel *ck, const Op *o, const Target *t) {
    Walk *w = ck->w;
    bool dense = ck->padded && walk_operand(w, t->operand)->layout == LAYOUT_ROWS;
    const char *part = dense ? "_part" : "", *left = dense ? ", left" : "";
    Memory dy = indirect_memory(&ck->e, o, 0), ids = indirect_memory(&ck->e, o, 1);
    bool watched = walk_operand(w, t->operand)->kind == BUFFER_WATCH;
    emit_line(&ck->e, "float *const b%d = %s(float, %d, 0);", t->operand, watched ? "OPTIONAL_OPERAND" : "OPERAND",
              t->operand);
    if (watched) emit_open(&ck->e, "if (b%d)", t->operand);
    emit_open(&ck->e, "for (int64_t id = 0; id < %s; id++)", t->rows);
    open_columns(ck);
    emit_line(&ck->e, "store_f32%s(%s, splat_f(0.0f)%s);", part, t->at, left);
    emit_close(&ck->e);
    emit_close(&ck->e);
    emit_open(&ck->e, "for (int64_t r = row0; r < row0 + rows; r++)");
    const char *row = arena_printf(w->arena, "r / %s", ids.cols), *column = arena_printf(w->arena, "r %% %s", ids.cols);
    emit_line(&ck->e, "const int64_t id = %s;", cpu_element_at(&ck->e, &ids, row, column));
    emit_line(&ck->e, "if (id < 0 || id >= %s) continue;", emit_dim(w->arena, ir_shape(w->f, o->out[0])->d[0]));
    open_columns(ck);
    const char *sum =
        arena_printf(w->arena, "load_f32%s(%s%s) + %s", part, t->at, left, cpu_vector_at(&ck->e, &dy, "r", "j"));
    if (ck->padded && !dense) sum = arena_printf(w->arena, "keep_vf(%s, in)", sum);
    emit_line(&ck->e, "store_f32%s(%s, %s%s);", part, t->at, sum, left);
    emit_close(&ck->e);
    emit_close(&ck->e);
    if (watched) emit_close(&ck->e);
}

static amp_status emit_sums(CpuKernel *ck, const Op *o) {
    Walk *w = ck->w;
    cpu_declare_memory(ck);
    for (int i = 0; i < w->operands.len; i++) {
        Target t = {0};
        if (walk_operand(w, i)->value.id != o->out[0].id) continue;
        AMP_TRY(find_target(ck, o, i, &t));
        emit_target(ck, o, &t);
    }
    return AMP_OK;
}

/* ---- distinct rows ----------------------------------------------------------------------------------------------- */

/* A pointer |name| to the result. */
static amp_status declare_numbers(CpuKernel *ck, const Op *o, int result, const char *name) {
    const int operand = walk_find_operand(ck->w, o->out[result], LAYOUT_ROWS, AMP_DT_I32);
    if (operand < 0) return amp_fail(ck->e.err, AMP_INTERNAL, "%s: a result has no buffer", walk_name(ck->w));
    emit_line(&ck->e, "int32_t *const %s = OPERAND(int32_t, %d, 0);", name, operand);
    return AMP_OK;
}

/* |seen| holds anything at first: it says where an id was seen if that is a place before this one that has the id. */
static amp_status emit_distinct(CpuKernel *ck, const Op *o) {
    static const char *const names[] = {"first", "row", "seen"};
    const Dim table = ir_shape(ck->w->f, o->in[1])->d[0];
    const Memory ids = indirect_memory(&ck->e, o, 0);
    cpu_declare_memory(ck);
    for (int i = 0; i < 3; i++) AMP_TRY(declare_numbers(ck, o, i, names[i]));
    emit_open(&ck->e, "for (int64_t k = 0; k < rows; k++)");
    emit_line(&ck->e, "const int64_t id = %s;", cpu_element_at(&ck->e, &ids, "k", "0"));
    emit_line(&ck->e, "const int is_row = id >= 0 && id < %s;", emit_dim(ck->w->arena, table));
    emit_line(&ck->e, "const int64_t at = is_row ? seen[id] : k;");
    emit_line(&ck->e, "const int again = at >= 0 && at < k && %s == id;", cpu_element_at(&ck->e, &ids, "at", "0"));
    emit_line(&ck->e, "if (is_row && !again) seen[id] = (int32_t)k;");
    emit_line(&ck->e, "first[k] = (int32_t)(again ? at : k);");
    emit_line(&ck->e, "row[k] = is_row && !again ? (int32_t)id : -1;");
    emit_close(&ck->e);
    return AMP_OK;
}

/* ---- rows of a state --------------------------------------------------------------------------------------------- */

static const char *row_at(CpuKernel *ck, const char *pointer, const Memory *m, const char *row) {
    const bool panels = m->layout == LAYOUT_PANELS;
    return arena_printf(ck->w->arena, "AT_%s(%s%d, %s, col0, %s)", panels ? "PANELS" : "ROWS", pointer, m->operand, row,
                        panels ? m->rows : m->cols);
}

static void declare_read(CpuKernel *ck, const Memory *m) {
    emit_line(&ck->e, "const %s *const m%d = OPERAND(%s, %d, 0);", m->storage->element, m->operand, m->storage->element,
              m->operand);
}

/* Of 32 columns both are side by side in rows and in panels. */
static amp_status emit_rows(CpuKernel *ck, const Op *o) {
    Walk *w = ck->w;
    const Memory from = indirect_memory(&ck->e, o, 1), ids = indirect_memory(&ck->e, o, 2);
    const Dim table = ir_shape(w->f, o->in[0])->d[0];
    Memory to = from;
    to.rows = padded_rows(w->arena, table);
    to.operand = walk_find_operand(w, o->in[0], LAYOUT_ROWS, walk_operand(w, from.operand)->storage);
    if (to.operand < 0)
        to.operand = walk_find_operand(w, o->in[0], LAYOUT_PANELS, walk_operand(w, from.operand)->storage);
    if (to.operand < 0)
        return amp_fail(ck->e.err, AMP_UNSUPPORTED, "%s: rows of %%%s cannot be stored in any of its buffers",
                        walk_name(w), ir_value(w->f, o->in[0])->name);
    to.layout = walk_operand(w, to.operand)->layout;
    declare_read(ck, &from);
    declare_read(ck, &ids);
    emit_line(&ck->e, "%s *const b%d = OPERAND(%s, %d, 0);", to.storage->element, to.operand, to.storage->element,
              to.operand);
    if (ck->padded) emit_line(&ck->e, "const size_t width = (size_t)(COLS - col0 < 32 ? COLS - col0 : 32);");
    else emit_line(&ck->e, "enum { width = 32 };"); /* known: no call */
    emit_open(&ck->e, "for (int64_t r = row0; r < row0 + rows; r++)");
    emit_line(&ck->e, "const int64_t id = get_i32(m%d + r);", ids.operand);
    emit_line(&ck->e, "if (id < 0 || id >= %s) continue;", emit_dim(w->arena, table));
    emit_line(&ck->e, "__builtin_memcpy(%s, %s, %d * width);", row_at(ck, "b", &to, "id"), row_at(ck, "m", &from, "r"),
              to.storage->bytes);
    emit_close(&ck->e);
    return AMP_OK;
}

amp_status cpu_emit_scatter(CpuKernel *ck) {
    Walk *w = ck->w;
    const Op *o;
    AMP_TRY(walk_own_op(w, &o, ck->e.err));
    if (!dim_varies(w->cols)) emit_line(&ck->e, "enum { COLS = %lld };", (long long)w->cols.mul);
    emit_line(&ck->e, "MAYBE_UNUSED const int64_t n = a->n, %srow0 = a->row0, col0 = a->col0, rows = a->rows;",
              cpu_length(w));
    if (dim_varies(w->cols)) emit_line(&ck->e, "const int64_t COLS = %s;", emit_dim(w->arena, w->cols));
    if (o->code == OP_distinct_rows) return emit_distinct(ck, o);
    return ir_is_row_assign(o) ? emit_rows(ck, o) : emit_sums(ck, o);
}
