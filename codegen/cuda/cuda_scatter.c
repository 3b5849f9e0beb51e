/* cuda_scatter.c: rows added up by id.  A block owns 32 columns of the result: it clears them, then each of its warps
 * adds the rows whose id is its own number modulo the warps, in ascending order: the sums do not depend on who works
 * where. */
#include "codegen/cuda/cuda_kernel.h"

enum { WIDTH = 32, WARPS = 8 };

static const Op *find_scatter(const Walk *w) {
    for (int i = 0; i < w->k->count; i++)
        if (walk_op(w, i)->code == OP_scatter) return walk_op(w, i);
    return NULL;
}

/* Each warp looks at 32 ids at a time, and takes those that are its own. */
static void emit_target(CudaKernel *k, const Op *o, int operand) {
    Memory dy = indirect_memory(&k->e, o, 0), ids = indirect_memory(&k->e, o, 1);
    emit_open(&k->e, "for (int64_t id = warp; in && id < COUNT; id += %d)", WARPS);
    emit_line(&k->e, "b%d[id * COLS + c] = 0.0f;", operand);
    emit_close(&k->e);
    emit_open(&k->e, "for (int64_t first = 0; first < rows; first += 32)");
    emit_line(&k->e, "const int32_t mine = first + lane < rows ? get_%s(b%d + first + lane) : -1;", ids.storage->name,
              ids.operand);
    emit_line(&k->e, "const bool own = mine >= 0 && mine < COUNT && mine %% %d == warp;", WARPS);
    emit_open(&k->e, "for (uint32_t left = __ballot_sync(0xFFFFFFFFu, own); left; left &= left - 1)");
    emit_line(&k->e, "const int32_t from = __ffs((int)left) - 1, id = __shfl_sync(0xFFFFFFFFu, mine, from);");
    emit_line(&k->e, "const int64_t r = first + from;");
    emit_line(&k->e, "if (in) b%d[(int64_t)id * COLS + c] = b%d[(int64_t)id * COLS + c] + %s;", operand, operand,
              cuda_element_at(&k->e, &dy, "r", "c"));
    emit_close(&k->e);
    emit_close(&k->e);
}

amp_status cuda_emit_scatter(CudaKernel *k) {
    Walk *w = k->w;
    const Op *o = find_scatter(w);
    if (!o) return amp_fail(k->e.err, AMP_INTERNAL, "%s: a scatter kernel without a scatter", walk_name(w));
    k->body->launch.extent[0] = dim_const((w->cols + WIDTH - 1) / WIDTH);
    k->body->launch.per[0] = 1;
    AMP_TRY(cuda_open_function(k, WIDTH * WARPS, 0));
    emit_line(&k->e, "enum { COLS = %lld, COUNT = %lld };", (long long)w->cols,
              (long long)ir_shape(w->f, o->out[0])->d[0].mul);
    emit_line(&k->e, "const int64_t rows = %s;", emit_dim(w->arena, w->rows));
    emit_line(&k->e, "const int32_t lane = threadIdx.x %% 32, warp = threadIdx.x / 32, c = blockIdx.x * 32 + lane;");
    emit_line(&k->e, "const bool in = c < COLS;");
    for (int i = 0; i < w->operands.len; i++) {
        const Buffer *b = walk_operand(w, i);
        if (b->value.id != o->out[0].id) continue;
        if (emit_storage(w, i)->bytes != 4)
            return amp_fail(k->e.err, AMP_UNSUPPORTED, "%s: scatter into buffer %s is not built yet for CUDA",
                            walk_name(w), b->name);
        bool watched = b->kind == BUFFER_WATCH;
        if (watched) emit_open(&k->e, "if (b%d)", i);
        emit_target(k, o, i);
        if (watched) emit_close(&k->e);
    }
    cuda_close_function(k);
    return AMP_OK;
}
