/* cpu_scatter.c: rows added up by id.  A task owns 32 columns of the result: it clears them, then adds every row in
 * order, so that the sums do not depend on who works where. */
#include "codegen/cpu/cpu_kernel.h"

static const Op *find_scatter(const Walk *w) {
    for (int i = 0; i < w->k->count; i++)
        if (walk_op(w, i)->code == OP_scatter) return walk_op(w, i);
    return NULL;
}

typedef struct Target { /* a buffer of the result */
    int operand;
    const char *at, *rows; /* column c of row id; rows that exist in memory */
} Target;

static amp_status find_target(CpuKernel *k, const Op *o, int operand, Target *out) {
    Walk *w = k->w;
    const Buffer *b = walk_operand(w, operand);
    long long count = (long long)ir_shape(w->f, o->out[0])->d[0].mul, padded = (count + 31) / 32 * 32;
    bool panels = b->layout == LAYOUT_PANELS;
    if ((!panels && b->layout != LAYOUT_ROWS) || emit_storage(w, operand)->bytes != 4)
        return amp_fail(k->e.err, AMP_UNSUPPORTED, "%s: scatter into the layout of buffer %s is not built yet",
                        walk_name(w), b->name);
    out->operand = operand;
    out->rows = arena_printf(w->arena, "%lld", panels ? padded : count);
    out->at = panels ? arena_printf(w->arena, "b%d + col0 * %lld + id * 32 + c", operand, padded)
                     : arena_printf(w->arena, "b%d + id * COLS + col0 + c", operand);
    return AMP_OK;
}

static void emit_target(CpuKernel *k, const Op *o, const Target *t) {
    Walk *w = k->w;
    bool dense = k->padded && walk_operand(w, t->operand)->layout == LAYOUT_ROWS;
    const char *part = dense ? "_part" : "", *left = dense ? ", left" : "", *optional = "";
    Memory dy = indirect_memory(&k->e, o, 0), ids = indirect_memory(&k->e, o, 1);
    bool watched = walk_operand(w, t->operand)->kind == BUFFER_WATCH;
    if (watched) optional = arena_printf(w->arena, "b%d && ", t->operand);
    emit_line(&k->e, "float *const b%d = %s(float, %d, 0);", t->operand, watched ? "OPTIONAL_OPERAND" : "OPERAND",
              t->operand);
    emit_open(&k->e, "for (int64_t c = 0; %sc < 32; c += W)", optional);
    emit_line(&k->e, "const int64_t j = col0 + c;");
    emit_line(&k->e, "MAYBE_UNUSED const int64_t left = COLS - j;");
    emit_line(&k->e, "MAYBE_UNUSED const vi in = first_lanes(left);");
    emit_line(&k->e, "for (int64_t id = 0; id < %s; id++) store_f32%s(%s, splat_f(0.0f)%s);", t->rows, part, t->at,
              left);
    emit_open(&k->e, "for (int64_t r = row0; r < row0 + rows; r++)");
    const char *row = arena_printf(w->arena, "r / %s", ids.cols), *column = arena_printf(w->arena, "r %% %s", ids.cols);
    emit_line(&k->e, "const int64_t id = %s;", cpu_element_at(&k->e, &ids, row, column));
    emit_line(&k->e, "if (id < 0 || id >= %lld) continue;", (long long)ir_shape(w->f, o->out[0])->d[0].mul);
    const char *sum =
        arena_printf(w->arena, "load_f32%s(%s%s) + %s", part, t->at, left, cpu_vector_at(&k->e, &dy, "r", "j"));
    if (k->padded && !dense) sum = arena_printf(w->arena, "keep_vf(%s, in)", sum);
    emit_line(&k->e, "store_f32%s(%s, %s%s);", part, t->at, sum, left);
    emit_close(&k->e);
    emit_close(&k->e);
}

amp_status cpu_emit_scatter(CpuKernel *k) {
    Walk *w = k->w;
    const Op *o = find_scatter(w);
    if (!o) return amp_fail(k->e.err, AMP_INTERNAL, "%s: a scatter kernel without a scatter", walk_name(w));
    emit_line(&k->e, "enum { COLS = %lld };", (long long)w->cols);
    emit_line(&k->e, "MAYBE_UNUSED const int64_t n = a->n, row0 = a->row0, col0 = a->col0, rows = a->rows;");
    cpu_declare_memory(k);
    for (int i = 0; i < w->operands.len; i++) {
        Target t;
        if (walk_operand(w, i)->value.id != o->out[0].id) continue;
        AMP_TRY(find_target(k, o, i, &t));
        emit_target(k, o, &t);
    }
    return AMP_OK;
}
