/* scatter_kernel.c: what goes by the ids of a table's rows.
 *
 * Rows added up by id, the gradient of a table: a column of blocks has 32 columns of the result, and each of its blocks
 * the ids of a group (prelude/scatter.cuh).  Which ids are distinct: one block.  Rows written to a state: a thread for
 * each element. */
#include "codegen/cuda/cuda_kernel.h"
#include "targets/target.h"

enum {
    WIDTH = 32,
    THREADS = 512, /* SCATTER_THREADS */
    ROW_THREADS = 256,
    MOST_GROUPS = 64,
    MOST_LINES = 1 << 21 /* ids of a group, beside SCATTER_PLACES in 32 bits */
};

/* Enough blocks in all; each looks at all ids, so not more than that.  With a group for each id nothing is sorted. */
static int scatter_groups(int64_t column_blocks, Dim lines) {
    const int64_t count = lines.mul;
    int64_t groups = 1;
    if (lines.n) return MOST_GROUPS; /* the most lines, as they are not known */
    while (groups * column_blocks < target_cuda.sum_blocks && groups < MOST_GROUPS && groups < count) groups *= 2;
    while ((count + groups - 1) / groups >= MOST_LINES) groups *= 2;
    return (int)(groups < count ? groups : count);
}

static void emit_target(CudaKernel *ck, const Op *o, int operand) {
    const Memory dy = indirect_memory(&ck->e, o, 0), ids = indirect_memory(&ck->e, o, 1);
    emit_line(&ck->e, "scatter_rows<GROUPS>(");
    ck->e.indent++;
    emit_line(&ck->e, "COUNT, rows, group, b%d + ((int64_t)group * COLS + c), (int64_t)GROUPS * COLS, in,", operand);
    emit_line(&ck->e, "[=](int64_t r) { return get_%s(b%d + r); },", ids.storage->name, ids.operand);
    emit_line(&ck->e, "[=](int64_t r) { return %s; });", cuda_element_at(&ck->e, &dy, "r", "c"));
    ck->e.indent--;
}

static void put_place(CudaKernel *ck, Dim count, int64_t blocks, int groups) {
    emit_line(&ck->e, "enum { COLS = %lld, GROUPS = %d };", (long long)ck->w->cols.mul, groups);
    emit_line(&ck->e, "const%s int64_t COUNT = %s;", dim_varies(count) ? "" : "expr", emit_dim(ck->w->arena, count));
    emit_line(&ck->e, "const int64_t rows = %s;", emit_dim(ck->w->arena, ck->w->rows));
    emit_line(&ck->e, "const int group = %s.x / %lld;", ck->block, (long long)blocks);
    emit_line(&ck->e, "const int32_t column = %s.x %% %lld * %d + threadIdx.x %% %d;", ck->block, (long long)blocks,
              WIDTH, WIDTH);
    emit_line(&ck->e, "const bool in = column < COLS;");
    emit_line(&ck->e, "const int32_t c = in ? column : COLS - 1;");
}

static amp_status emit_sums(CudaKernel *ck, const Op *o) {
    Walk *w = ck->w;
    const int64_t blocks = (w->cols.mul + WIDTH - 1) / WIDTH;
    const Dim count = ir_shape(w->f, o->out[0])->d[0];
    const int groups = scatter_groups(blocks, count);
    ck->body->launch.extent[0] = dim_const(blocks * groups);
    ck->body->launch.per[0] = 1;
    ck->body->min_blocks = 2;
    ck->body->facts.bundles = true;
    if (dim_mul(w->rows, w->cols, &ck->body->facts.elements)) ck->body->facts.batch = BATCH_SIDE_BY_SIDE;
    ck->how = "32 columns and some ids a block";
    if (ck->form.plan) return cuda_plan_function(ck, THREADS);
    AMP_TRY(cuda_open_function(ck, THREADS));
    put_place(ck, count, blocks, groups);
    for (int i = 0; i < w->operands.len; i++) {
        const Buffer *b = walk_operand(w, i);
        if (b->value.id != o->out[0].id) continue;
        if (emit_storage(w, i)->bytes != 4)
            return amp_fail(ck->e.err, AMP_UNSUPPORTED, "%s: scatter into buffer %s is not supported for CUDA",
                            walk_name(w), b->name);
        bool watched = b->kind == BUFFER_WATCH;
        if (watched) emit_open(&ck->e, "if (b%d)", i);
        emit_target(ck, o, i);
        if (watched) emit_close(&ck->e);
    }
    cuda_close_function(ck);
    return AMP_OK;
}

/* ---- distinct rows ----------------------------------------------------------------------------------------------- */

/* |seen| holds anything at first. */
static amp_status emit_distinct(CudaKernel *ck, const Op *o) {
    Walk *w = ck->w;
    const Memory ids = indirect_memory(&ck->e, o, 0);
    const int first = walk_find_operand(w, o->out[0], LAYOUT_ROWS, AMP_DT_I32);
    const int row = walk_find_operand(w, o->out[1], LAYOUT_ROWS, AMP_DT_I32);
    const int seen = walk_find_operand(w, o->out[2], LAYOUT_ROWS, AMP_DT_I32);
    ck->body->launch.extent[0] = dim_const(1);
    ck->body->launch.per[0] = 1;
    ck->how = "all ids in one block";
    if (ck->form.plan) return cuda_plan_function(ck, THREADS);
    if (first < 0 || row < 0 || seen < 0)
        return amp_fail(ck->e.err, AMP_INTERNAL, "%s: a result has no buffer", walk_name(w));
    AMP_TRY(cuda_open_function(ck, THREADS));
    emit_line(&ck->e, "distinct_rows(%s, %s, b%d, b%d, b%d, b%d);", emit_dim(w->arena, w->rows),
              emit_dim(w->arena, ir_shape(w->f, o->in[1])->d[0]), ids.operand, first, row, seen);
    cuda_close_function(ck);
    return AMP_OK;
}

/* ---- rows of a state --------------------------------------------------------------------------------------------- */

static amp_status emit_rows(CudaKernel *ck, const Op *o) {
    Walk *w = ck->w;
    const Memory from = indirect_memory(&ck->e, o, 1), ids = indirect_memory(&ck->e, o, 2);
    const int to = walk_find_operand(w, o->in[0], LAYOUT_ROWS, walk_operand(w, from.operand)->storage);
    const int threads = ck->form.threads ? ck->form.threads : ROW_THREADS;
    Dim elements;
    if (to < 0 || !dim_mul(w->rows, w->cols, &elements))
        return amp_fail(ck->e.err, AMP_UNSUPPORTED, "%s: rows of %%%s cannot be stored in any of its buffers",
                        walk_name(w), ir_value(w->f, o->in[0])->name);
    ck->body->launch.extent[0] = ck->body->facts.elements = elements;
    ck->body->launch.per[0] = threads;
    ck->body->facts.batch = BATCH_SIDE_BY_SIDE;
    ck->body->facts.bundles = true;
    ck->how = "an element a thread";
    cuda_add_size(ck, "elements", elements);
    if (ck->form.plan) return cuda_plan_function(ck, threads);
    AMP_TRY(cuda_open_function(ck, threads));
    emit_line(&ck->e, "enum { COLS = %lld };", (long long)w->cols.mul);
    emit_line(&ck->e, "const int64_t at = (int64_t)%s.x * %d + threadIdx.x;", ck->block, threads);
    emit_line(&ck->e, "if (at >= elements) return;");
    emit_line(&ck->e, "const int64_t id = b%d[at / COLS];", ids.operand);
    emit_line(&ck->e, "if (id < 0 || id >= %s) return;", emit_dim(w->arena, ir_shape(w->f, o->in[0])->d[0]));
    emit_line(&ck->e, "b%d[id * COLS + at %% COLS] = b%d[at];", to, from.operand);
    cuda_close_function(ck);
    return AMP_OK;
}

amp_status cuda_emit_scatter(CudaKernel *ck) {
    const Op *o;
    if (dim_varies(ck->w->cols))
        return amp_fail(
            ck->e.err, AMP_UNSUPPORTED,
            "%s: rows that are as long as N or T says cannot be scattered by CUDA kernels; compile the model "
            "for the CPU (--target cpu)",
            walk_name(ck->w));
    AMP_TRY(walk_own_op(ck->w, &o, ck->e.err));
    if (o->code == OP_distinct_rows) return emit_distinct(ck, o);
    return ir_is_row_assign(o) ? emit_rows(ck, o) : emit_sums(ck, o);
}
