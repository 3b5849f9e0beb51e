/* cuda_product.c: kernels of matrix products: a block makes a tile of sums (prelude/product.cuh), then each thread does
 * the elementwise ops on its own sums, four neighbouring columns at a time.
 *
 *     typedef TensorSums<MmaF16, 64, 64, 2, 2, 64> Sums;
 *     typedef Product<Sums, TensorOperand<..>, TensorOperand<..>> Matrices;
 *     Matrices().run(sums, shared, b0, k, b1, COLS, row0, rows, col0, COLS, k);
 *     for each run of four columns, for each of its rows {
 *         sums.run(sum, down, across);
 *         elements
 *     }
 *
 * A block of a batched product makes a tile of one of its products, whose operands begin where their strides say; one
 * of a product in parts, a tile of one part, which is a sum over a chunk of k:
 *
 *     const int64_t part = blockIdx.x / 3, first_row = part * rows, chunk = .., begin = .., end = ..;
 *     Matrices().run(sums, shared, b0, rows, b1, COLS, row0, rows, col0, COLS, end, begin);
 */
#include "codegen/cuda/cuda_kernel.h"

/* ---- the plan of a product ---- */

/* Which instructions make a product, in which tiles, and how its operands come to shared memory.
 *
 * Nothing here depends on n, so that a kernel serves every n; the sum of an element does not depend on the tile
 * either: it is one chain over k, or over each part of it.  The gradient of a weight has few tiles and a long k: pass
 * fuse has split it where that leaves multiprocessors idle (passes/kernels/split_sums.c). */

/* The types that it names are those of prelude/product*.cuh. */
typedef struct ProductTile { /* what a block makes */
    int m, n, threads;
    int warps_m, warps_n; /* tensor cores */
    int min_blocks;       /* of a multiprocessor: bounds the registers */
    int step_bytes;       /* of k at a time, in tensor cores */
} ProductTile;

typedef struct ProductOperand { /* A or B */
    int operand;                /* of the kernel */
    const char *memory;         /* AsStored<uint16_t>, .. */
    bool k_inner;               /* k runs along its lines in memory */
    int bytes;                  /* of a copy: a line is a multiple of them */
    const char *first, *pitch;  /* its first element; elements from line to line */
} ProductOperand;

/* Of a batched product: where the result of one of its products is. */
typedef struct Batch {
    Dim dims[MAX_RANK]; /* of the batch */
    int rank;           /* 0: one product, no batch */
    Dim count;          /* of products */
    bool merged;        /* those of the last dim lie beside each other */
} Batch;

typedef struct ProductPlan {
    const Op *op;
    Batch batch;
    Dim rows, k;   /* of one product */
    int64_t parts; /* of k */
    int64_t cols;
    bool has_windows;            /* A holds a convolution's windows over images */
    const char *mma;             /* "MmaF16"; NULL: fused multiply-adds */
    int min_arch, element_bytes; /* in shared memory */
    ProductTile tile;
    int choices; /* larger tiles */
    ProductOperand a, b;
} ProductPlan;

/* ---- instructions ------------------------------------------------------------------------------------------------ */

typedef struct Instructions {
    Dtype dtype; /* of both operands */
    const char *mma;
    int min_arch;
    const char *element;
    int element_bytes;
    const char *rounded; /* how an operand in f32 is read that the product rounds (target_rounds_on_load) */
} Instructions;
static const Instructions instructions[] = {
    {AMP_DT_F16, "MmaF16", 75, "uint16_t", 2, "RoundedF16"},
    {AMP_DT_BF16, "MmaBf16", 80, "uint16_t", 2, "RoundedBf16"},
    {AMP_DT_TF32, "MmaTf32", 80, "float", 4, "RoundedTf32"},
    {AMP_DT_F32, NULL, 75, "float", 4, NULL},
};

static const Instructions *instructions_of(Dtype t) {
    for (size_t i = 0; i < sizeof instructions / sizeof instructions[0]; i++)
        if (instructions[i].dtype == t) return &instructions[i];
    return NULL;
}

/* ---- tiles ------------------------------------------------------------------------------------------------------- */

enum {
    MANY_BLOCKS = 128,  /* where n does not decide: about the multiprocessors of a large GPU */
    NARROW = 16,        /* columns */
    LONG_K_BYTES = 1024 /* so that the end of k is little of a step */
};

static const ProductTile large_tile = {128, 128, 256, 2, 4, 2, 64}, small_tile = {64, 64, 128, 2, 2, 3, 128},
                         narrow_tile = {64, 16, 128, 4, 1, 3, 128}, element_tile = {64, 64, 256, 2, 4, 1, 64};

/* Whether the result holds one matrix after the other: products of a batch, or parts of one product. */
static bool has_several(const ProductPlan *p) { return p->batch.rank || p->parts > 1; }

static int64_t blocks_of(const ProductPlan *p, const ProductTile *t) { /* where n does not decide */
    return p->parts * p->batch.count.mul * ((p->rows.mul + t->m - 1) / t->m) * ((p->cols + t->n - 1) / t->n);
}

/* The tiles that serve a product, the largest first; returns their number.  The last one serves any number of blocks,
 * the others where they have as many as the device has multiprocessors.
 *
 * Large tiles read less; small ones keep more multiprocessors busy, and leave registers for copies element by
 * element.  A convolution's windows hold a place for each copy of a thread: sixteen of them, which elements of two
 * bytes are for 128 threads, are more than it has registers for. */
static int list_tiles(const ProductPlan *p, const ProductTile *tiles[2]) {
    const bool n_decides = p->rows.n || p->batch.count.n;
    bool large = p->cols > small_tile.n && p->a.bytes == 16 && p->b.bytes == 16;
    int count = 0;
    tiles[0] = &small_tile;
    /* of 32-bit elements down the lines two narrow lines would be written to the same banks */
    if (p->cols <= NARROW && p->mma && (p->element_bytes == 2 || p->b.k_inner)) tiles[0] = &narrow_tile;
    else if (p->has_windows && p->mma && p->a.bytes <= 4) tiles[0] = &element_tile;
    if (tiles[0] != &small_tile) return 1;
    if (has_several(p) && !p->rows.n && p->rows.mul <= small_tile.m) large = false; /* half of a tile's rows */
    if (large && (n_decides || blocks_of(p, &large_tile) >= MANY_BLOCKS)) tiles[count++] = &large_tile;
    if (!count || n_decides) tiles[count++] = &small_tile;
    return count;
}

/* ---- operands ---------------------------------------------------------------------------------------------------- */

/* The largest access of shared memory that cuts |elements| evenly. */
static int copy_bytes(int64_t elements, int element_bytes, bool turned) {
    const int bytes = cuda_copy_bytes(elements, element_bytes);
    return turned && bytes < 16 ? element_bytes : bytes;
}

/* Whether B are the weights of conv, of which a data gradient needs the transpose. */
static bool reads_taps(const Op *o) { return o->code == OP_conv_data && ir_attr(o, "tb")->b; }

/* Whether operand |n| is multiplied as its transpose. */
static bool is_transposed(const Op *o, int n) {
    if (!ir_is_convolution(o)) return ir_attr(o, n ? "tb" : "ta")->b;
    return n ? reads_taps(o) : o->code == OP_conv_weight;
}

/* A window of one pixel at every pixel is the matrix itself: a line for each pixel, its channels along it. */
static bool has_windows(const Walk *w, const Op *o) {
    if (!ir_is_convolution(o)) return false;
    Windows g = ir_windows(w->f, o);
    return g.kh > 1 || g.kw > 1 || g.stride[0] > 1 || g.stride[1] > 1 || g.padding[0] || g.padding[1];
}

/* A convolution's A: windows over the images that |memory| holds. */
static const char *in_windows(const Walk *w, const Op *o, const char *memory) {
    Windows g = ir_windows(w->f, o);
    bool back = o->code == OP_conv_data;
    return arena_printf(
        w->arena, "Windows<%s, %lld, %lld, %lld, %lld, %lld, %lld, %lld, %lld, %lld, %lld, %lld, %lld, %s>", memory,
        (long long)(back ? g.oh : g.h), (long long)(back ? g.ow : g.w), (long long)(back ? g.oc : g.c),
        (long long)(back ? g.h : g.oh), (long long)(back ? g.w : g.ow), (long long)g.kw, (long long)g.stride[0],
        (long long)g.stride[1], (long long)g.padding[0], (long long)g.padding[1], (long long)g.dilation[0],
        (long long)g.dilation[1], back ? "true" : "false");
}

static const char *in_taps(const Walk *w, const Op *o, const char *memory) {
    const Windows g = ir_windows(w->f, o);
    return arena_printf(w->arena, "Taps<%s, %lld, %lld>", memory, (long long)g.c, (long long)g.oc);
}

/* Elements side by side in memory that a copy may take at once. */
static int64_t run_of(const Walk *w, const ProductPlan *p, int n, bool k_inner) {
    Dim rows, cols;
    if (n && reads_taps(p->op)) return ir_windows(w->f, p->op).oc;
    if (n) return k_inner ? p->k.mul : p->cols;
    shape_matrix(ir_shape(w->f, p->op->in[0]), &rows, &cols); /* of a convolution: the channels of a pixel */
    return cols.mul;
}

/* Where a matrix begins, and how far its lines are apart. */
static void place_matrix(const Walk *w, const ProductPlan *p, int n, ProductOperand *out) {
    out->first = arena_printf(w->arena, "b%d", out->operand);
    const int64_t pitch = walk_operand(w, out->operand)->pitch;
    if (pitch) out->pitch = arena_printf(w->arena, "%lld", (long long)pitch);
    else out->pitch = out->k_inner ? "k" : n ? "COLS" : "rows";
    out->bytes = copy_bytes(pitch ? pitch : run_of(w, p, n, out->k_inner), p->element_bytes, out->k_inner && !p->mma);
}

/* The same of each of a batch: aligned to |bytes| in all of them. */
static amp_status place_batch(const Walk *w, const ProductPlan *p, int n, ProductOperand *out, amp_error *err) {
    Strided at;
    Dim pitch;
    bool turned;
    Text first;
    if (!walk_strided(w, p->op->in[n], &at) || !ir_strided_matrix(&at, &turned, &pitch))
        return amp_fail(err, AMP_INTERNAL, "%s: operand %c has no strides", walk_name(w), "AB"[n]);
    out->k_inner = n == (int)(is_transposed(p->op, n) != turned);
    int64_t run = cuda_common_divisor(out->k_inner ? p->k.mul : n ? p->cols : p->rows.mul, pitch.mul);
    run = cuda_common_divisor(run, at.offset);
    text_init(&first, w->arena);
    text_printf(&first, "b%d", out->operand);
    if (at.offset) text_printf(&first, " + %lld", (long long)at.offset);
    for (int i = 0; i < p->batch.rank; i++) {
        run = cuda_common_divisor(run, at.stride[i].mul);
        if (at.stride[i].mul && !dim_is_one(p->batch.dims[i]))
            text_printf(&first, " + batch%d * %s", i, emit_dim_factor(w->arena, at.stride[i]));
    }
    out->first = text_str(&first);
    out->pitch = emit_dim(w->arena, pitch);
    out->bytes = copy_bytes(run, p->element_bytes, out->k_inner && !p->mma);
    return AMP_OK;
}

static amp_status plan_operand(const Walk *w, const ProductPlan *p, const Instructions *by, int n, ProductOperand *out,
                               amp_error *err) {
    const Value *read = ir_value(w->f, p->op->in[n]);
    out->operand = walk_memory_operand(w, p->op, n);
    if (out->operand < 0)
        return amp_fail(err, AMP_UNSUPPORTED, "%s: contract reads %%%s, which no buffer holds", walk_name(w),
                        read->name);
    const Buffer *buffer = walk_operand(w, out->operand);
    bool rounds = ir_dtype(w->f, buffer->value) != ir_dtype(w->f, p->op->in[n]);
    int bytes = emit_storage(w, out->operand)->bytes;
    if (rounds && buffer->storage == AMP_DT_F32) out->memory = by->rounded;
    else if (!rounds && bytes == by->element_bytes) out->memory = arena_printf(w->arena, "AsStored<%s>", by->element);
    if (!out->memory)
        return amp_fail(err, AMP_UNSUPPORTED, "%s: contract in %s of %%%s stored as %s is not built yet", walk_name(w),
                        amp_dtype_name(by->dtype), read->name, amp_dtype_name(buffer->storage));
    if (p->batch.rank) return place_batch(w, p, n, out, err);
    if (n == 0 && p->has_windows) out->memory = in_windows(w, p->op, out->memory);
    if (n == 1 && p->has_windows && reads_taps(p->op)) out->memory = in_taps(w, p->op, out->memory);
    out->k_inner = n == (int)is_transposed(p->op, n);
    place_matrix(w, p, n, out);
    return AMP_OK;
}

/* ---- the product ------------------------------------------------------------------------------------------------- */

static const Op *find_product(const Walk *w) {
    for (int i = 0; i < w->k->count; i++)
        if (ir_is_product(walk_op(w, i))) return walk_op(w, i);
    return NULL;
}

/* What an element of the result is a sum over. */
static Dim terms(const Walk *w, const Op *o) {
    int n = ir_is_convolution(o); /* a convolution's B is a matrix, of k rows */
    Dim rows, cols;
    const Windows g = reads_taps(o) ? ir_windows(w->f, o) : (Windows){0};
    if (reads_taps(o)) return dim_const(g.kh * g.kw * g.oc);
    shape_matrix(ir_shape(w->f, o->in[n]), &rows, &cols);
    return n == 1 || is_transposed(o, 0) ? rows : cols;
}

/* The batch, and of each of its products what |out| says of one. */
static void plan_batch(const Walk *w, ProductPlan *out) {
    const Op *o = out->op;
    const Shape *a = ir_shape(w->f, o->in[0]), *b = ir_shape(w->f, o->in[1]);
    const bool ta = is_transposed(o, 0), tb = is_transposed(o, 1);
    Batch *batch = &out->batch;
    *batch = (Batch){.rank = a->rank - 2, .count = dim_const(1), .merged = ir_attr(o, "merged")->b};
    for (int i = 0; i < batch->rank; i++) {
        batch->dims[i] = a->d[i];
        dim_mul(batch->count, a->d[i], &batch->count); /* fits: the result is rows x cols */
    }
    out->rows = a->d[a->rank - (ta ? 1 : 2)];
    out->k = a->d[a->rank - (ta ? 2 : 1)];
    out->cols = b->d[b->rank - (tb ? 2 : 1)].mul;
}

/* AMP_UNSUPPORTED names the op, or the operand, that has no code yet. */
static amp_status plan_product(const Walk *w, int choice, ProductPlan *out, amp_error *err) {
    const Op *o = find_product(w);
    if (!o) return amp_fail(err, AMP_INTERNAL, "%s: a product kernel without a product", walk_name(w));
    const Instructions *by = instructions_of(ir_dtype(w->f, o->in[0]));
    if (!by)
        return amp_fail(err, AMP_UNSUPPORTED, "%s: contract of %s is not built yet", walk_name(w),
                        amp_dtype_name(ir_dtype(w->f, o->in[0])));
    *out = (ProductPlan){.op = o,
                         .batch.count = dim_const(1),
                         .rows = w->rows,
                         .cols = w->cols.mul,
                         .k = terms(w, o),
                         .has_windows = has_windows(w, o),
                         .mma = by->mma,
                         .min_arch = by->min_arch,
                         .element_bytes = by->element_bytes};
    if (o->code == OP_batch_contract) plan_batch(w, out);
    out->parts = ir_parts(o);
    out->rows.mul /= out->parts; /* which are its first dimension */
    AMP_TRY(plan_operand(w, out, by, 0, &out->a, err));
    AMP_TRY(plan_operand(w, out, by, 1, &out->b, err));
    const ProductTile *tiles[2];
    out->choices = list_tiles(out, tiles) - 1;
    out->tile = *tiles[choice ? choice - 1 : out->choices];
    const bool elementwise = out->has_windows && out->a.bytes < 16; /* the places of what it copies take registers */
    const bool short_k = !out->k.n && out->k.mul / out->parts * out->element_bytes < LONG_K_BYTES;
    if (elementwise || short_k) out->tile.step_bytes = 64;
    if (elementwise) out->tile.min_blocks = 1;
    if (!out->mma) out->tile.min_blocks = out->tile.m == large_tile.m ? 1 : 2; /* so do f32 terms, and an epilogue */
    return AMP_OK;
}

/* ---- the kernel -------------------------------------------------------------------------------------------------- */

enum { RUN = 4 }; /* columns of a thread */

static const char *operand_type(const CudaKernel *ck, const ProductPlan *p, const ProductOperand *x, int extent) {
    const char *inner = x->k_inner ? "true" : "false";
    if (!p->mma)
        return arena_printf(ck->w->arena, "FmaOperand<%s, %s, %d, %d, %d>", x->memory, inner, extent, x->bytes,
                            p->tile.threads);
    return arena_printf(ck->w->arena, "TensorOperand<%s, %s, %d, %d, %d, %d>", x->memory, inner, extent,
                        p->tile.step_bytes, x->bytes, p->tile.threads);
}

static void declare_types(CudaKernel *ck, const ProductPlan *p) {
    const ProductTile *t = &p->tile;
    if (p->mma)
        emit_line(&ck->e, "typedef TensorSums<%s, %d, %d, %d, %d, %d> Sums;", p->mma, t->m, t->n, t->warps_m,
                  t->warps_n, t->step_bytes);
    else emit_line(&ck->e, "typedef FmaSums<%d, %d> Sums;", t->m, t->n);
    emit_line(&ck->e, "typedef %s A;", operand_type(ck, p, &p->a, t->m));
    emit_line(&ck->e, "typedef %s B;", operand_type(ck, p, &p->b, t->n));
    emit_line(&ck->e, "typedef Product<Sums, A, B> Matrices;");
}

/* Blocks follow one another along the rows of a matrix, then along the batch or the parts; where the rows depend on n,
 * their number is not known here, and the batch or the parts are the grid's third dimension. */
static bool are_along_rows(const ProductPlan *p) { return has_several(p) && !p->rows.n; }

static int64_t tiles_down(const ProductPlan *p) { return (p->rows.mul + p->tile.m - 1) / p->tile.m; }

static void emit_number(CudaKernel *ck, const ProductPlan *p, const char *name) {
    if (are_along_rows(p)) {
        emit_line(&ck->e, "const uint32_t tiles_down = (uint32_t)((rows + %d) / %d);", p->tile.m - 1, p->tile.m);
        emit_line(&ck->e, "const int64_t %s = blockIdx.x / tiles_down;", name);
    } else emit_line(&ck->e, "const int64_t %s = blockIdx.z;", name);
}

/* Which part a block makes, where it begins in the result, and over which elements of k it is (ir_part_size). */
static void emit_part(CudaKernel *ck, const ProductPlan *p) {
    emit_number(ck, p, "part");
    emit_line(&ck->e, "const int64_t first_row = part * rows, chunk = ((k + parts - 1) / parts + %d) / %d * %d;",
              PART_STEP - 1, PART_STEP, PART_STEP);
    emit_line(&ck->e, "const int64_t begin = part * chunk < k ? part * chunk : k;");
    emit_line(&ck->e, "const int64_t end = begin + chunk < k ? begin + chunk : k;");
}

/* Which product of the batch a block makes: its number, its place along each dim, and where its result begins. */
static void emit_batch(CudaKernel *ck, const ProductPlan *p) {
    const Batch *b = &p->batch;
    Arena *a = ck->w->arena;
    Dim inner = dim_const(1);
    emit_number(ck, p, "product");
    for (int i = b->rank - 1; i >= 0; i--) {
        const char *at = dim_is_one(inner) ? "product" : arena_printf(a, "product / %s", emit_dim_factor(a, inner));
        if (i) at = arena_printf(a, "%s %% %s", at, emit_dim_factor(a, b->dims[i]));
        emit_line(&ck->e, "MAYBE_UNUSED const int64_t batch%d = %s;", i, at);
        dim_mul(inner, b->dims[i], &inner);
    }
    const char *beside = b->merged ? emit_dim_factor(a, b->dims[b->rank - 1]) : NULL; /* products */
    if (beside)
        emit_line(&ck->e, "const int64_t first_row = product / %s * rows, first_column = product %% %s * WIDTH;",
                  beside, beside);
    else emit_line(&ck->e, "const int64_t first_row = product * rows;");
}

/* Columns of one product, of which the result's COLS are several where they are merged. */
static const char *columns_of(const ProductPlan *p) { return p->batch.merged ? "WIDTH" : "COLS"; }

/* Pitches are constants, so that the lines which a thread copies are at constant distances. */
static void emit_sums(CudaKernel *ck, const ProductPlan *p) {
    emit_line(&ck->e, "enum { COLS = %lld };", (long long)ck->w->cols.mul);
    if (!p->rows.n) emit_line(&ck->e, "const int64_t rows = %lld;", (long long)p->rows.mul);
    if (!p->k.n) emit_line(&ck->e, "const int64_t k = %lld;", (long long)p->k.mul);
    if (p->batch.merged) emit_line(&ck->e, "enum { WIDTH = %lld };", (long long)p->cols);
    if (p->batch.rank) emit_batch(ck, p);
    if (p->parts > 1) emit_part(ck, p);
    if (are_along_rows(p))
        emit_line(&ck->e,
                  "const int64_t row0 = (int64_t)(blockIdx.x %% tiles_down) * %d, col0 = (int64_t)blockIdx.y * %d;",
                  p->tile.m, p->tile.n);
    else
        emit_line(&ck->e, "const int64_t row0 = (int64_t)blockIdx.x * %d, col0 = (int64_t)blockIdx.y * %d;", p->tile.m,
                  p->tile.n);
    emit_line(&ck->e, "__shared__ __align__(128) char shared[Matrices::SHARED];");
    emit_line(&ck->e, "Sums sums;");
    emit_line(&ck->e, "sums.clear();");
    emit_line(&ck->e, "Matrices().run(sums, shared, %s, %s, %s, %s, row0, rows, col0, %s, %s);", p->a.first, p->a.pitch,
              p->b.first, p->b.pitch, columns_of(p), p->parts > 1 ? "end, begin" : "k");
}

/* Accesses of so many elements are aligned in every row. */
static int vector_of(int64_t cols) {
    int vector = RUN;
    while (cols % vector) vector /= 2;
    return vector;
}

/* The runs of a thread.  r and c0 are those of the whole result. */
static void open_runs(CudaKernel *ck, const ProductPlan *p) {
    emit_line(&ck->e, "UNROLL");
    emit_open(&ck->e, "for (int across = 0; across < Sums::RUNS_ACROSS; across++)");
    emit_line(&ck->e, "UNROLL");
    emit_open(&ck->e, "for (int down = 0; down < Sums::RUNS_DOWN; down++)");
    emit_line(&ck->e, "float sum[%d];", RUN);
    emit_line(&ck->e, "sums.run(sum, down, across);");
    const char *line = has_several(p) ? "line" : "r"; /* of its matrix */
    emit_line(&ck->e, "const int64_t %s = row0 + Sums::row(down);", line);
    emit_line(&ck->e, "UNROLL");
    emit_open(&ck->e, "for (int part = 0; part < %d; part += %d)", RUN, ck->vector);
    const char *column = p->batch.merged ? "element" : ck->column;
    emit_line(&ck->e, "const int32_t %s = (int32_t)col0 + Sums::column(across) + part;", column);
    emit_line(&ck->e, "if (%s >= rows || %s >= %s) continue;", line, column,
              p->batch.merged ? "WIDTH" : cuda_row_end(ck));
    cuda_put_left(ck);
    if (has_several(p)) emit_line(&ck->e, "const int64_t r = first_row + line;");
    if (p->batch.merged) emit_line(&ck->e, "const int32_t %s = (int32_t)first_column + element;", ck->column);
    if (ck->by_rows) ck->at = "r * COLS + c0";
    else emit_line(&ck->e, "const int64_t at = r * COLS + %s;", ck->column);
}

static void close_runs(CudaKernel *ck) {
    for (int i = 0; i < 3; i++) emit_close(&ck->e);
}

static void set_launch(const ProductPlan *p, CudaBody *out) {
    out->launch.extent[0] = p->rows; /* rows first: the blocks of one column of tiles, which run together, share B */
    out->launch.extent[1] = dim_const(p->cols);
    out->launch.extent[2] = dim_const(1);
    out->launch.per[0] = p->tile.m;
    out->launch.per[1] = p->tile.n;
    Dim several = p->parts > 1 ? dim_const(p->parts) : p->batch.count;
    if (are_along_rows(p)) dim_mul(several, dim_const(tiles_down(p) * p->tile.m), &out->launch.extent[0]);
    else if (has_several(p)) {
        out->launch.extent[2] = several;
        out->launch.per[2] = 1;
    }
    out->min_arch = p->min_arch;
    out->tensor_cores = p->mma != NULL;
    out->choices = p->choices;
}

static amp_status emit_product(CudaKernel *ck, const ProductPlan *p) {
    set_launch(p, ck->body);
    if (p->rows.n) cuda_add_size(ck, "rows", p->rows); /* else a constant, as a pitch should be: see emit_sums */
    if (p->k.n) cuda_add_size(ck, "k", p->k);
    if (p->parts > 1) cuda_add_size(ck, "parts", dim_const(p->parts));
    AMP_TRY(cuda_open_function(ck, p->tile.threads, 0));
    declare_types(ck, p);
    emit_sums(ck, p);
    AMP_TRY(cuda_emit_once(ck));
    open_runs(ck, p);
    AMP_TRY(cuda_emit_elements(ck, 0));
    close_runs(ck);
    AMP_TRY(cuda_finish_once(ck));
    cuda_close_function(ck);
    return AMP_OK;
}

amp_status cuda_emit_product(Walk *w, int choice, CudaBody *out, amp_error *err) {
    ProductPlan p = {.op = NULL};
    Text *text = arena_alloc(w->arena, sizeof *text);
    AMP_TRY(plan_product(w, choice, &p, err));
    text_init(text, w->arena);
    const int64_t pitch = walk_pitch(w);
    int vector = pitch ? RUN : vector_of(p.cols);
    bool one = vector == 1;
    CudaKernel ck = {
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
        .pitch = pitch,
        .by_rows = pitch,
        .min_blocks = p.tile.min_blocks,
        .halves_blocks = p.mma && p.tile.m == large_tile.m,
        .at = "at",
        .column = one ? "c" : "c0",
        .index = one ? "0" : "i",
        .slot = "",
        .reduce_shape = "",
        .first_phase = w->first_phase,
        .first_thread = "blockIdx.x + blockIdx.y + threadIdx.x == 0",
    };
    return emit_product(&ck, &p);
}
