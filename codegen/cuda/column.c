/* column.c: reductions over rows.  A block of WIDTH x HEIGHT threads owns WIDTH columns (of a segment): thread row y
 * adds the rows y, y + HEIGHT, ..  of its column in ascending order, then the thread rows are added pairwise
 * (prelude/reduce.cuh).  WIDTH and HEIGHT depend on the number of columns and the segment alone. */
#include "codegen/cuda/cuda_kernel.h"

enum { MAX_WIDTH = 32, THREADS = 512, SEGMENT_THREADS = 256, WARP = 32 };

static int power_above(int64_t count, int most) {
    int p = 1;
    while (p < count && p < most) p *= 2;
    return p;
}

/* Threads that go down the rows side by side. */
static int height_of(const Walk *w, int width) {
    int most = (w->segment ? SEGMENT_THREADS : THREADS) / width;
    int height = w->segment ? power_above(w->segment, most) : most;
    while (height * width < WARP) height *= 2;
    return height;
}

static void put_place(CudaKernel *k, int64_t blocks, int width) {
    Walk *w = k->w;
    const char *column = "blockIdx.x";
    emit_line(&k->e, "const int64_t rows = %s;", emit_dim(w->arena, w->rows));
    emit_line(&k->e, "const int32_t y = threadIdx.x / %d;", width);
    if (w->segment) {
        emit_line(&k->e, "const int64_t s = blockIdx.x / %lld;", (long long)blocks);
        emit_line(&k->e, "const int64_t first = s * %lld, last = first + %lld < rows ? first + %lld : rows;",
                  (long long)w->segment, (long long)w->segment, (long long)w->segment);
        column = arena_printf(w->arena, "blockIdx.x %% %lld", (long long)blocks);
    }
    emit_line(&k->e, "const int32_t column = (int32_t)(%s) * %d + threadIdx.x %% %d;", column, width, width);
    emit_line(&k->e, "const bool in = column < COLS;");
    emit_line(&k->e, "MAYBE_UNUSED const int32_t c = in ? column : COLS - 1;");
}

amp_status cuda_emit_column(CudaKernel *k) {
    Walk *w = k->w;
    int width = power_above(w->cols, MAX_WIDTH), height = height_of(w, width);
    int64_t blocks = (w->cols + width - 1) / width;
    k->column = "c";
    k->at = "r * COLS + c";
    k->e.element = k->at;
    k->segment = w->segment ? "s" : NULL;
    k->line_store = "in && y == 0";
    k->first_thread = "blockIdx.x == 0 && threadIdx.x == 0";
    k->reduce_shape = arena_printf(w->arena, ", %d, %d", width, height);
    if (!dim_mul(walk_segments(w), dim_const(blocks), &k->body->launch.extent[0]))
        return amp_fail(k->e.err, AMP_UNSUPPORTED, "%s: too many segments", walk_name(w));
    k->body->launch.per[0] = 1;
    cuda_delay_stores(k);
    AMP_TRY(cuda_open_function(k, width * height, 0));
    emit_line(&k->e, "enum { COLS = %lld };", (long long)w->cols);
    put_place(k, blocks, width);
    AMP_TRY(cuda_emit_once(k));
    AMP_TRY(cuda_load_line(k));
    for (int p = 0; p < w->phases; p++) {
        AMP_TRY(cuda_emit_line_ops(k, p));
        if (!loop_has_phase(w, p)) continue;
        walk_phase(w, p);
        AMP_TRY(cuda_open_reductions(k, p));
        emit_open(&k->e, "for (int64_t r = %sy; in && r < %s; r += %d)", w->segment ? "first + " : "",
                  w->segment ? "last" : "rows", height);
        AMP_TRY(cuda_emit_elements(k, p));
        emit_close(&k->e);
        cuda_close_reductions(k, p, "column_reduce");
    }
    AMP_TRY(cuda_emit_line_ops(k, w->phases));
    AMP_TRY(cuda_store_line(k));
    AMP_TRY(cuda_finish_once(k));
    cuda_close_function(k);
    return AMP_OK;
}
