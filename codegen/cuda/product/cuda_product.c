/* cuda_product.c: kernels of matrix products: a block makes a tile of sums (prelude/product.cuh), then each thread does
 * the elementwise ops on runs of neighbouring columns, 16 bytes of the widest operand.
 *
 *     typedef TensorSums<MmaF16, 64, 64, 2, 2, 64> Sums;
 *     typedef Product<Sums, TensorOperand<..>, TensorOperand<..>> Matrices;
 *     Matrices matrices = Matrices();
 *     matrices.start(shared, b0, k, b1, COLS, row0, rows, col0, COLS, k);
 *     prefetches
 *     matrices.run(sums, shared);
 *     for each pass {
 *         Runs::put(sums, shared, pass);
 *         for a few runs of neighbouring columns at a time {
 *             loads of numbers of columns, once; of numbers of rows and of elements, for each run
 *             for each run {
 *                 Runs::take(sum, sums, shared, run);
 *                 elements
 *             }
 *         }
 *     }
 *
 * A block of a batched product makes a tile of one of its products, whose operands begin where their strides say; one
 * of a product in parts, a tile of one part, which is a sum over a chunk of k:
 *
 *     const int64_t part = blockIdx.x / 3, first_row = part * rows, chunk = .., begin = .., end = ..;
 *     matrices.start(shared, b0, rows, b1, COLS, row0, rows, col0, COLS, end, begin);
 */
#include "codegen/cuda/product/product_plan.h"

/* ---- the kernel -------------------------------------------------------------------------------------------------- */

/* Columns that a thread has side by side. */
static int run_width(const Walk *w, const ProductPlan *p) {
    enum { LEAST = 4 };
    const int vector = cuda_vector_width(w);
    return p->mma && vector > LEAST ? vector : LEAST;
}

static const char *operand_type(const CudaKernel *ck, const ProductPlan *p, const ProductOperand *x, int extent) {
    const char *inner = x->k_inner ? "true" : "false";
    if (!p->mma)
        return arena_printf(ck->w->arena, "FmaOperand<%s, %s, %d, %d, %d>", x->memory, inner, extent, x->bytes,
                            p->tile.threads);
    return arena_printf(ck->w->arena, "TensorOperand<%s, %s, %d, %d, %d, %d>", x->memory, inner, extent,
                        p->tile.step_bytes, x->bytes, p->tile.threads);
}

/* Tiles of 16-bit elements are without padding in shared memory, which holds three steps of them, two before sm_80. */
static bool has_three_stages(const ProductPlan *p) { return p->mma && p->element_bytes == 2; }

static void put_types(CudaKernel *ck, const ProductPlan *p) {
    const ProductTile *t = &p->tile;
    if (p->phases.images) emit_line(&ck->e, "typedef %s Images;", p->phases.images);
    if (p->mma)
        emit_line(&ck->e, "typedef TensorSums<%s, %d, %d, %d, %d, %d> Sums;", p->mma, t->m, t->n, t->warps_m,
                  t->warps_n, t->step_bytes);
    else emit_line(&ck->e, "typedef FmaSums<%d, %d, %d> Sums;", t->m, t->n, t->threads);
    emit_line(&ck->e, "typedef %s A;", operand_type(ck, p, &p->a, t->m));
    emit_line(&ck->e, "typedef %s B;", operand_type(ck, p, &p->b, t->n));
    emit_line(&ck->e, "typedef Product<Sums, A, B> Matrices;");
    if (has_three_stages(p)) emit_line(&ck->e, "static_assert(Matrices::STAGES == (HAS_ASYNC_COPIES ? 3 : 2), \"\");");
}

static const char *types_of(CudaKernel *ck, const ProductPlan *p) {
    Text types, *out = ck->e.out;
    text_init(&types, ck->w->arena);
    ck->e.out = &types;
    put_types(ck, p);
    ck->e.out = out;
    return text_str(&types);
}

/* Blocks follow one another along the rows of a matrix, then along the batch or the parts; where the rows depend on n,
 * their number is not known here, and the batch or the parts are the grid's third dimension. */
static bool are_along_rows(const ProductPlan *p) { return product_has_several(p) && !dim_varies(p->rows); }

static int64_t tiles_down(const ProductPlan *p) { return (p->rows.mul + p->tile.m - 1) / p->tile.m; }

static void emit_number(CudaKernel *ck, const ProductPlan *p, const char *name) {
    if (are_along_rows(p)) {
        emit_line(&ck->e, "const uint32_t tiles_down = (uint32_t)((rows + %d) / %d);", p->tile.m - 1, p->tile.m);
        emit_line(&ck->e, "const int64_t %s = %s.x / tiles_down;", name, ck->block);
    } else emit_line(&ck->e, "const int64_t %s = %s.z;", name, ck->block);
}

static bool has_row_gaps(const ProductPlan *p) { return p->gaps.per && p->op->code == OP_conv_weight; }

/* Rows of a part: |rows| without gaps. */
static const char *rows_of_part(const CudaKernel *ck, const ProductPlan *p) {
    if (!has_row_gaps(p)) return "rows";
    return arena_printf(ck->w->arena, "(rows / %lld * %lld)", (long long)p->gaps.per, (long long)p->gaps.run);
}

enum { OF_SUMS = 1, OF_RESULT = 2 }; /* what a block's place is written for */

/* Which part a block makes, where it begins in the result, and over which elements of k it is (ir_part_size). */
static void emit_part(CudaKernel *ck, const ProductPlan *p, int place) {
    emit_number(ck, p, "part");
    if (place & OF_RESULT) emit_line(&ck->e, "const int64_t first_row = part * %s;", rows_of_part(ck, p));
    if (!(place & OF_SUMS)) return;
    emit_line(&ck->e, "const int64_t chunk = ((k + parts - 1) / parts + %d) / %d * %d;", PART_STEP - 1, PART_STEP,
              PART_STEP);
    emit_line(&ck->e, "const int64_t begin = part * chunk < k ? part * chunk : k;");
    emit_line(&ck->e, "const int64_t end = begin + chunk < k ? begin + chunk : k;");
}

/* Which product of the batch a block makes: its number, its place along each dim, and where its result begins. */
static void emit_batch(CudaKernel *ck, const ProductPlan *p, int place) {
    const Batch *b = &p->batch;
    emit_number(ck, p, "product");
    if (place & OF_SUMS) cuda_declare_places(ck, b->dims, b->rank, "product");
    if (!(place & OF_RESULT)) return;
    const char *beside = b->merged ? emit_dim_factor(ck->w->arena, b->dims[b->rank - 1]) : NULL; /* products */
    if (beside)
        emit_line(&ck->e, "const int64_t first_row = product / %s * rows, first_column = product %% %s * WIDTH;",
                  beside, beside);
    else emit_line(&ck->e, "const int64_t first_row = product * rows;");
}

/* Columns of one product; if products are merged, the result's COLS hold several. */
static const char *columns_of(const ProductPlan *p) { return p->batch.merged ? "WIDTH" : "COLS"; }

/* The pixels that a block makes, and their phase: phases follow one another along the grid's second dimension. */
static void emit_phase(CudaKernel *ck, const ProductPlan *p) {
    emit_line(&ck->e, "const uint32_t across = (COLS + %d) / %d;", p->tile.n - 1, p->tile.n);
    emit_line(&ck->e, "const uint2 tile = tile_in_stripe(%s.x, %s.y %% across, (rows + %d) / %d, across);", ck->block,
              ck->block, p->tile.m - 1, p->tile.m);
    emit_line(&ck->e, "const int64_t row0 = (int64_t)tile.x * %d, col0 = (int64_t)tile.y * %d;", p->tile.m, p->tile.n);
    emit_line(&ck->e, "Images images;");
    emit_line(&ck->e, "images.set(%s, %s.y / across);", p->a.geometry, ck->block);
    emit_line(&ck->e, "const int64_t pixels = samples * images.phase.pixels();");
    emit_line(&ck->e, "RowsOfPhase<Images> in_result(images, row0);");
}

/* Which tile a block makes. */
static void emit_place(CudaKernel *ck, const ProductPlan *p, int place) {
    if (p->batch.rank) emit_batch(ck, p, place);
    if (p->parts > 1) emit_part(ck, p, place);
    if (p->phases.images) {
        emit_phase(ck, p);
        return;
    }
    if (are_along_rows(p) || ck->form.role == CUDA_IN_BAND) {
        const char *row = ck->form.role == CUDA_IN_BAND ? "" : " % tiles_down";
        emit_line(&ck->e, "const int64_t row0 = (int64_t)(%s.x%s) * %d, col0 = (int64_t)%s.y * %d;", ck->block, row,
                  p->tile.m, ck->block, p->tile.n);
        return;
    }
    emit_line(&ck->e, "const uint2 tile = tile_in_stripe(%s.x, %s.y, (rows + %d) / %d, (%s + %d) / %d);", ck->block,
              ck->block, p->tile.m - 1, p->tile.m, columns_of(p), p->tile.n - 1, p->tile.n);
    emit_line(&ck->e, "const int64_t row0 = (int64_t)tile.x * %d, col0 = (int64_t)tile.y * %d;", p->tile.m, p->tile.n);
}

/* Of results whose rows are where the block's are: one product without gaps. */
static void emit_prefetches(CudaKernel *ck, const ProductPlan *p) {
    if (product_has_several(p) || has_row_gaps(p)) return;
    for (int i = 0; i < ck->w->operands.len; i++) {
        if (!product_reads_beside(ck->w, i)) continue;
        const int bytes = emit_storage(ck->w, i)->bytes;
        const char *length = cuda_length_of(ck, i);
        if (p->phases.images)
            emit_line(&ck->e,
                      "prefetch_rows<%d, %d>(in_result, %s + col0, %s * %d, pixels - row0, (COLS - col0) * %d);",
                      p->tile.m, p->tile.n * bytes, cuda_operand(ck, i), length, bytes, bytes);
        else
            emit_line(&ck->e, "prefetch_tile<%d, %d>(%s + row0 * %s + col0, %s * %d, rows - row0, (COLS - col0) * %d);",
                      p->tile.m, p->tile.n * bytes, cuda_operand(ck, i), length, length, bytes, bytes);
    }
}

static void emit_run(CudaKernel *ck, const ProductPlan *p) {
    const bool has_phases = p->phases.images;
    emit_line(&ck->e, "Matrices matrices = Matrices();");
    if (has_phases) emit_line(&ck->e, "matrices.copy_a.memory = images;");
    else if (p->a.geometry) emit_line(&ck->e, "matrices.copy_a.memory.set(%s);", p->a.geometry);
    if (p->b.geometry) emit_line(&ck->e, "matrices.copy_b.memory.set(%s);", p->b.geometry);
    const char *k = p->parts > 1 ? "end, begin" : "k";
    if (has_phases)
        k = arena_printf(ck->w->arena, "row0 < pixels ? k / %lld * images.phase.taps() : 0", (long long)p->phases.taps);
    emit_line(&ck->e, "matrices.start(shared, %s, %s, %s, %s, row0, %s, col0, %s, %s);", p->a.first, p->a.pitch,
              p->b.first, p->b.pitch, has_phases ? "pixels" : "rows", columns_of(p), k);
    emit_prefetches(ck, p);
    emit_line(&ck->e, "matrices.run(sums, shared);");
}

static void emit_sums(CudaKernel *ck, const ProductPlan *p) {
    cuda_declare_columns(ck);
    if (p->batch.merged && dim_varies(p->cols))
        emit_line(&ck->e, "const int32_t WIDTH = (int32_t)(%s);", emit_dim(ck->w->arena, p->cols));
    else if (p->batch.merged) emit_line(&ck->e, "enum { WIDTH = %lld };", (long long)p->cols.mul);
    const bool is_part = ck->form.role, places_again = is_part || p->phases.images;
    if (!places_again) emit_place(ck, p, OF_SUMS | OF_RESULT);
    else if (!is_part) {
        emit_line(&ck->e, "const PlaceOfBlock place;");
        ck->block = "block";
    }
    if (!is_part) emit_line(&ck->e, "__shared__ __align__(128) char shared[Matrices::SHARED];");
    emit_line(&ck->e, "Sums sums;");
    emit_line(&ck->e, "sums.clear();");
    if (!places_again) {
        emit_run(ck, p);
        return;
    }
    emit_block(&ck->e); /* a block's place is computed again after the sums: it took registers that they need */
    emit_line(&ck->e, "const uint3 block = place.now();");
    emit_place(ck, p, OF_SUMS);
    emit_run(ck, p);
    emit_close(&ck->e);
    emit_line(&ck->e, "const uint3 block = place.now();");
    emit_place(ck, p, OF_RESULT);
}

/* The number of elements per access, at most |run|, that is aligned in every row. */
static int vector_of(int64_t cols, int run) {
    int vector = run;
    while (cols % vector) vector /= 2;
    return vector;
}

/* ---- the elements ------------------------------------------------------------------------------------------------ */

/* What a vector reads beside its sums: numbers of its columns; others. */
static bool is_of_columns(const Emitter *e, Val v) {
    return loop_is_step(e, v) && e->w->values[v.id].span == SPAN_COLUMN;
}

static bool is_of_rows(const Emitter *e, Val v) { return loop_is_step(e, v) && !is_of_columns(e, v); }

static int count_inputs(const CudaKernel *ck, PlaceFn here) {
    int count = 0;
    for (int i = 0; i < ck->w->k->count; i++) {
        const Op *o = walk_op(ck->w, i);
        for (int n = 0; n < o->n_in; n++) {
            const ValueWalk *x = &ck->w->values[o->in[n].id];
            if (walk_reads(ck->w, o, n) && !x->made && x->needed && here(&ck->e, o->in[n])) count++;
        }
    }
    return count;
}

/* More numbers of columns than a bias and another, as of batch norms, would take registers that runs need. */
static bool keeps_columns(const CudaKernel *ck) {
    const int count = count_inputs(ck, is_of_columns);
    return count > 0 && count <= 2;
}

static amp_status load(Emitter *e, Val v) { return cuda_load((CudaKernel *)e, v); }

static amp_status declare_columns(Emitter *e, Val v) {
    cuda_declare_rows((CudaKernel *)e, v, "PARTS");
    return AMP_OK;
}

static amp_status declare_rows(Emitter *e, Val v) {
    cuda_declare_rows((CudaKernel *)e, v, "TOGETHER * PARTS");
    return AMP_OK;
}

static amp_status recall_columns(Emitter *e, Val v) {
    cuda_recall_row((CudaKernel *)e, v, "u % PARTS");
    return AMP_OK;
}

static amp_status recall_rows(Emitter *e, Val v) {
    cuda_recall_row((CudaKernel *)e, v, "u");
    return AMP_OK;
}

/* The first column of vector |u|, in the whole result, and whether it is there, which |rows| says of its row. */
static void put_columns(CudaKernel *ck, const ProductPlan *p, const char *run, const char *rows) {
    const bool merged = p->batch.merged;
    const char *column = merged ? "element" : ck->column;
    emit_line(&ck->e, "MAYBE_UNUSED const int part = u %% PARTS * %d;", ck->vector);
    emit_line(&ck->e, "const int32_t %s = (int32_t)col0 + Runs::column(%s) + part;", column, run);
    emit_line(&ck->e, "const bool here = %s%s < %s;", rows, column, merged ? "WIDTH" : cuda_row_end(ck));
    if (merged) emit_line(&ck->e, "const int32_t %s = (int32_t)first_column + element;", ck->column);
    cuda_put_left(ck);
}

/* The same and its row. */
static void put_place(CudaKernel *ck, const ProductPlan *p) {
    const bool has_phases = p->phases.images;
    const char *line = product_has_several(p) ? "line" : "r"; /* of its matrix */
    const char *place = has_row_gaps(p) || has_phases ? "place" : line;
    const char *rows = arena_printf(ck->w->arena, "%s < %s && ", place, has_phases ? "pixels" : "rows");
    emit_line(&ck->e, "const int run = first + u / PARTS;");
    emit_line(&ck->e, "const int64_t %s = row0 + Runs::row(pass, run);", place);
    if (has_row_gaps(p)) {
        const long long run = p->gaps.run, per = p->gaps.per;
        emit_line(&ck->e, "const int64_t %s = place / %lld * %lld + place %% %lld;", line, per, run, per);
        rows = arena_printf(ck->w->arena, "place %% %lld < %lld && %s", per, run, rows);
    }
    if (has_phases) emit_line(&ck->e, "const int64_t r = in_result.row(Runs::row(pass, run));");
    if (product_has_several(p)) emit_line(&ck->e, "MAYBE_UNUSED const int64_t r = first_row + line;");
    put_columns(ck, p, "run", rows);
    if (ck->by_rows) ck->at = "r * COLS + c0";
    else emit_line(&ck->e, "MAYBE_UNUSED const int64_t at = r * COLS + %s;", ck->column);
}

/* Loads vector |u| of each of |inputs|, and closes the loop over u. */
static amp_status load_ahead(CudaKernel *ck, PlaceFn inputs) {
    ck->e.lanes_of_row = true;
    const amp_status status = loop_inputs(&ck->e, inputs, load);
    ck->e.lanes_of_row = false;
    emit_close(&ck->e);
    return status;
}

/* Loads of the runs from `first` on that are made together, without a use between them. */
static amp_status emit_loads(CudaKernel *ck, const ProductPlan *p) {
    if (keeps_columns(ck)) {
        AMP_TRY(loop_inputs(&ck->e, is_of_columns, declare_columns));
        emit_line(&ck->e, "UNROLL");
        emit_open(&ck->e, "for (int u = 0; u < PARTS; u++)");
        put_columns(
            ck, p, "first",
            arena_printf(ck->w->arena, "row0 + Runs::row(pass, first) < %s && ", p->phases.images ? "pixels" : "rows"));
        AMP_TRY(load_ahead(ck, is_of_columns));
    }
    if (!count_inputs(ck, is_of_rows)) return AMP_OK;
    AMP_TRY(loop_inputs(&ck->e, is_of_rows, declare_rows));
    emit_line(&ck->e, "UNROLL");
    emit_open(&ck->e, "for (int u = 0; u < TOGETHER * PARTS; u++)");
    put_place(ck, p);
    return load_ahead(ck, is_of_rows);
}

static amp_status emit_runs(CudaKernel *ck, const ProductPlan *p) {
    const bool ahead = count_inputs(ck, is_of_rows);
    emit_line(&ck->e, "typedef Sums::Runs<%d, Matrices::SHARED> Runs;", p->run);
    emit_line(&ck->e, "enum { PARTS = %d, TOGETHER = %s };", p->run / ck->vector,
              ahead ? "Runs::DOWN < 4 ? Runs::DOWN : 4" : "Runs::DOWN");
    /* written out, a pass has the registers of the sums before it */
    emit_line(&ck->e, ahead ? "UNROLL_UNLESS_LEAN" : "NO_UNROLL");
    emit_open(&ck->e, "for (int pass = 0; pass < Runs::PASSES; pass++)");
    emit_line(&ck->e, "Runs::put(sums, shared, pass);");
    emit_line(&ck->e, "UNROLL_UNLESS_LEAN");
    emit_open(&ck->e, "for (int first = 0; first < Runs::COUNT; first += TOGETHER)");
    AMP_TRY(emit_loads(ck, p));
    emit_line(&ck->e, "float sum[%d];", p->run);
    emit_line(&ck->e, ahead ? "UNROLL" : "UNROLL_UNLESS_LEAN"); /* what was loaded ahead stays in registers */
    emit_open(&ck->e, "for (int u = 0; u < TOGETHER * PARTS; u++)");
    put_place(ck, p);
    emit_line(&ck->e, "if (part == 0) Runs::take(sum, sums, shared, run);");
    emit_line(&ck->e, "if (!here) continue;");
    AMP_TRY(loop_inputs(&ck->e, is_of_columns, keeps_columns(ck) ? recall_columns : load));
    AMP_TRY(loop_inputs(&ck->e, is_of_rows, recall_rows));
    AMP_TRY(cuda_emit_loaded(ck, 0));
    for (int i = 0; i < 3; i++) emit_close(&ck->e);
    return AMP_OK;
}

static void set_launch(const ProductPlan *p, CudaBody *out) {
    out->launch.extent[0] = p->rows; /* tile_in_stripe has that order, column of tiles by column */
    const int64_t tiles = (p->cols.mul + p->tile.n - 1) / p->tile.n;
    out->launch.extent[1] = p->phases.images ? dim_const(p->phases.count * tiles * p->tile.n) : p->cols;
    out->launch.extent[2] = dim_const(1);
    out->launch.per[0] = p->tile.m;
    out->launch.per[1] = p->tile.n;
    Dim several = p->parts > 1 ? dim_const(p->parts) : p->batch.count;
    if (are_along_rows(p)) dim_mul(several, dim_const(tiles_down(p) * p->tile.m), &out->launch.extent[0]);
    else if (product_has_several(p)) {
        out->launch.extent[2] = several;
        out->launch.per[2] = 1;
    }
    out->min_arch = p->min_arch;
    out->tensor_cores = p->mma != NULL;
}

/* Products share a launch along the grid's third dimension, where they have no blocks along it themselves. */
static void set_batch(const Walk *w, const ProductPlan *p, CudaBody *out) {
    const bool is_free = !product_has_several(p) || are_along_rows(p);
    if (is_free && dim_times(w->rows, w->cols, &out->facts.elements)) out->facts.batch = BATCH_IN_LAYERS;
}

static const char *describe_tile(const CudaKernel *ck, const ProductPlan *p) {
    const ProductTile *t = &p->tile;
    Arena *a = ck->w->arena;
    if (!p->mma) return arena_printf(a, "multiply-adds, tiles of %d x %d", t->m, t->n);
    return arena_printf(a, "mma %s, tiles of %d x %d by %d of k%s", amp_dtype_name(ir_dtype(ck->w->f, p->op->in[0])),
                        t->m, t->n, t->step_bytes / p->element_bytes,
                        has_three_stages(p) ? ", 3 stages from sm_80 on" : "");
}

static amp_status emit_product(CudaKernel *ck, const ProductPlan *p) {
    set_launch(p, ck->body);
    set_batch(ck->w, p, ck->body);
    cuda_add_size(ck, "rows", p->rows);
    cuda_add_size(ck, "k", p->k);
    cuda_add_size(ck, "cols", ck->w->cols);
    if (p->phases.images) cuda_add_size(ck, "samples", p->phases.samples);
    if (p->has_windows) {
        cuda_add_size(ck, "height", dim_const(p->images.height));
        cuda_add_size(ck, "width", dim_const(p->images.width));
        cuda_add_size(ck, "out_height", dim_const(p->images.out_height));
        cuda_add_size(ck, "out_width", dim_const(p->images.out_width));
    }
    if (p->parts > 1) cuda_add_size(ck, "parts", dim_const(p->parts));
    ck->how = describe_tile(ck, p);
    if (ck->form.plan) return cuda_plan_function(ck, p->tile.threads);
    ck->types = types_of(ck, p);
    ck->body->takes_table = ck->form.role == CUDA_IN_CHAIN;
    AMP_TRY(cuda_open_function(ck, p->tile.threads));
    cuda_declare_operand(ck, p->a.operand);
    cuda_declare_operand(ck, p->b.operand);
    cuda_declare_looks(ck);
    emit_sums(ck, p);
    if (ck->form.role <= CUDA_BESIDE) emit_line(&ck->e, "admit_next_launch();");
    cuda_declare_operands(ck); /* the others take no registers in the loop */
    AMP_TRY(cuda_emit_once(ck));
    AMP_TRY(emit_runs(ck, p));
    AMP_TRY(cuda_finish_once(ck));
    cuda_close_function(ck);
    return AMP_OK;
}

amp_status cuda_emit_product(CudaKernel *ck) {
    Walk *w = ck->w;
    CudaBody *out = ck->body;
    ProductPlan p = {.op = NULL};
    AMP_TRY(product_plan(w, ck->form, &p, ck->e.err));
    if (!p.tile.threads) return AMP_OK;
    out->facts = p.facts;
    out->min_blocks = p.tile.min_blocks;
    out->halves_blocks = p.mma && p.tile.m == PRODUCT_LARGE_TILE;
    p.run = run_width(w, &p);
    ck->vector = vector_of(ck->pitch ? ck->pitch : cuda_multiple(w, p.cols), p.run);
    const bool one = ck->vector == 1;
    ck->e.element = one ? "at" : "r * COLS + c";
    ck->e.sum = one ? "sum[part]" : "sum[part + i]";
    ck->by_rows = ck->pitch;
    ck->at = "at";
    ck->column = one ? "c" : "c0";
    ck->index = one ? "0" : "i";
    ck->first_thread = arena_printf(w->arena, "%s.x + %s.y + threadIdx.x == 0", ck->block, ck->block);
    ck->late_operands = true;
    return emit_product(ck, &p);
}
