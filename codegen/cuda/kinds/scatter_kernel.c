/* scatter_kernel.c: rows added up by id, the gradient of a table.  A column of blocks has 32 columns of the result, and
 * each of its blocks the ids of a group (prelude/scatter.cuh). */
#include "codegen/cuda/cuda_kernel.h"
#include "targets/target.h"

enum {
    WIDTH = 32,
    THREADS = 512, /* SCATTER_THREADS */
    MOST_GROUPS = 64,
    MOST_LINES = 1 << 21 /* ids of a group, beside SCATTER_PLACES in 32 bits */
};

/* Enough blocks in all; each looks at all ids, so not more than that.  With a group for each id nothing is sorted. */
static int scatter_groups(int64_t column_blocks, int64_t count) {
    int64_t groups = 1;
    while (groups * column_blocks < target_cuda.sum_blocks && groups < MOST_GROUPS && groups < count) groups *= 2;
    while ((count + groups - 1) / groups >= MOST_LINES) groups *= 2;
    return (int)(groups < count ? groups : count);
}

static void emit_target(CudaKernel *ck, const Op *o, int operand) {
    const Memory dy = indirect_memory(&ck->e, o, 0), ids = indirect_memory(&ck->e, o, 1);
    emit_line(&ck->e, "scatter_rows<COUNT, GROUPS>(");
    ck->e.indent++;
    emit_line(&ck->e, "rows, group, b%d + ((int64_t)group * COLS + c), (int64_t)GROUPS * COLS, in,", operand);
    emit_line(&ck->e, "[=](int64_t r) { return get_%s(b%d + r); },", ids.storage->name, ids.operand);
    emit_line(&ck->e, "[=](int64_t r) { return %s; });", cuda_element_at(&ck->e, &dy, "r", "c"));
    ck->e.indent--;
}

static void put_place(CudaKernel *ck, int64_t count, int64_t blocks, int groups) {
    emit_line(&ck->e, "enum { COLS = %lld, GROUPS = %d };", (long long)ck->w->cols.mul, groups);
    emit_line(&ck->e, "constexpr int64_t COUNT = %lld;", (long long)count);
    emit_line(&ck->e, "const int64_t rows = %s;", emit_dim(ck->w->arena, ck->w->rows));
    emit_line(&ck->e, "const int group = %s.x / %lld;", ck->block, (long long)blocks);
    emit_line(&ck->e, "const int32_t column = %s.x %% %lld * %d + threadIdx.x %% %d;", ck->block, (long long)blocks,
              WIDTH, WIDTH);
    emit_line(&ck->e, "const bool in = column < COLS;");
    emit_line(&ck->e, "const int32_t c = in ? column : COLS - 1;");
}

amp_status cuda_emit_scatter(CudaKernel *ck) {
    Walk *w = ck->w;
    const Op *o;
    AMP_TRY(walk_own_op(w, &o, ck->e.err));
    const int64_t count = ir_shape(w->f, o->out[0])->d[0].mul, blocks = (w->cols.mul + WIDTH - 1) / WIDTH;
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
