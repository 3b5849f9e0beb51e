/* product.c: kernels of matrix products: a block makes a tile of sums (prelude/product.cuh), then each thread does the
 * elementwise ops on its own sums, four neighbouring columns at a time.
 *
 *     typedef TensorSums<MmaF16, 64, 64, 2, 2, 64> Sums;
 *     typedef Product<Sums, TensorOperand<..>, TensorOperand<..>> Matrices;
 *     Matrices().run(sums, shared, b0, b1, row0, rows, col0, COLS, k);
 *     for each run of four columns, for each of its rows {
 *         sums.run(sum, down, across);
 *         elements
 *     }
 */
#include "codegen/cuda/product.h"

enum { STEP_BYTES = 64, RUN = 4 }; /* of k at a time, in tensor cores; columns of a thread */

static const char *operand_type(const CudaKernel *k, const ProductPlan *p, const ProductOperand *x, int extent) {
    const char *inner = x->k_inner ? "true" : "false";
    if (!p->mma)
        return arena_printf(k->w->arena, "FmaOperand<%s, %s, %d, %d, %d>", x->memory, inner, extent, x->bytes,
                            p->tile.threads);
    return arena_printf(k->w->arena, "TensorOperand<%s, %s, %d, %d, %d, %d>", x->memory, inner, extent, STEP_BYTES,
                        x->bytes, p->tile.threads);
}

static void declare_types(CudaKernel *k, const ProductPlan *p) {
    const ProductTile *t = &p->tile;
    if (p->mma)
        emit_line(&k->e, "typedef TensorSums<%s, %d, %d, %d, %d, %d> Sums;", p->mma, t->m, t->n, t->warps_m, t->warps_n,
                  STEP_BYTES);
    else emit_line(&k->e, "typedef FmaSums<%d, %d> Sums;", t->m, t->n);
    emit_line(&k->e, "typedef %s A;", operand_type(k, p, &p->a, t->m));
    emit_line(&k->e, "typedef %s B;", operand_type(k, p, &p->b, t->n));
    emit_line(&k->e, "typedef Product<Sums, A, B> Matrices;");
}

static void emit_sums(CudaKernel *k, const ProductPlan *p) {
    emit_line(&k->e, "enum { COLS = %lld };", (long long)p->cols);
    emit_line(&k->e, "const int64_t rows = %s, k = %s;", emit_dim(k->w->arena, p->rows), emit_dim(k->w->arena, p->k));
    emit_line(&k->e, "const int64_t row0 = (int64_t)blockIdx.x * %d, col0 = (int64_t)blockIdx.y * %d;", p->tile.m,
              p->tile.n);
    emit_line(&k->e, "__shared__ __align__(128) char shared[Matrices::SHARED];");
    emit_line(&k->e, "Sums sums;");
    emit_line(&k->e, "sums.clear();");
    emit_line(&k->e, "Matrices().run(sums, shared, b%d, b%d, row0, rows, col0, COLS, k);", p->a.operand, p->b.operand);
}

/* Accesses of so many elements are aligned in every row. */
static int vector_of(int64_t cols) {
    int vector = RUN;
    while (cols % vector) vector /= 2;
    return vector;
}

static void open_runs(CudaKernel *k) {
    emit_line(&k->e, "UNROLL");
    emit_open(&k->e, "for (int across = 0; across < Sums::RUNS_ACROSS; across++)");
    emit_line(&k->e, "UNROLL");
    emit_open(&k->e, "for (int down = 0; down < Sums::RUNS_DOWN; down++)");
    emit_line(&k->e, "float sum[%d];", RUN);
    emit_line(&k->e, "sums.run(sum, down, across);");
    emit_line(&k->e, "const int64_t r = row0 + Sums::row(down);");
    emit_line(&k->e, "UNROLL");
    emit_open(&k->e, "for (int part = 0; part < %d; part += %d)", RUN, k->vector);
    emit_line(&k->e, "const int32_t %s = (int32_t)col0 + Sums::column(across) + part;", k->column);
    emit_line(&k->e, "if (r >= rows || %s >= COLS) continue;", k->column);
    emit_line(&k->e, "const int64_t at = r * COLS + %s;", k->column);
}

static void close_runs(CudaKernel *k) {
    for (int i = 0; i < 3; i++) emit_close(&k->e);
}

static void set_launch(const ProductPlan *p, CudaBody *out) {
    out->launch.extent[0] = p->rows; /* rows first: the blocks of one column of tiles, which run together, share B */
    out->launch.extent[1] = dim_const(p->cols);
    out->launch.extent[2] = dim_const(1);
    out->launch.per[0] = p->tile.m;
    out->launch.per[1] = p->tile.n;
    out->min_arch = p->min_arch;
    out->tensor_cores = p->mma != NULL;
}

static amp_status emit_product(CudaKernel *k, const ProductPlan *p) {
    set_launch(p, k->body);
    AMP_TRY(cuda_open_function(k, p->tile.threads, 0));
    declare_types(k, p);
    emit_sums(k, p);
    AMP_TRY(cuda_emit_once(k));
    open_runs(k);
    AMP_TRY(cuda_emit_elements(k, 0));
    close_runs(k);
    AMP_TRY(cuda_finish_once(k));
    cuda_close_function(k);
    return AMP_OK;
}

amp_status cuda_emit_product(Walk *w, CudaBody *out, amp_error *err) {
    ProductPlan p;
    Text *text = arena_alloc(w->arena, sizeof *text);
    AMP_TRY(cuda_plan_product(w, &p, err));
    text_init(text, w->arena);
    int vector = vector_of(p.cols);
    bool one = vector == 1;
    CudaKernel k = {
        .e = {.w = w,
              .spelling = &cuda_spelling,
              .out = text,
              .indent = 1,
              .err = err,
              .per_thread = true,
              .element = one ? "at" : "r * COLS + c",
              .sum = one ? "sum[part]" : "sum[part + i]"},
        .w = w,
        .body = out,
        .vector = vector,
        .min_blocks = p.tile.min_blocks,
        .at = "at",
        .column = one ? "c" : "c0",
        .index = one ? "0" : "i",
        .slot = "",
        .reduce_shape = "",
        .first_phase = arena_array(w->arena, int, w->f->values.len + 1),
        .first_thread = "blockIdx.x + blockIdx.y + threadIdx.x == 0",
    };
    return emit_product(&k, &p);
}
