/* product_plan.c: see product_plan.h. */
#include "codegen/cuda/product/product_plan.h"

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
    MANY_BLOCKS = 128,          /* where n does not decide: the multiprocessors of an H100 */
    NARROW = 16,                /* columns */
    LEAST_COLUMNS = 32,         /* of tiles of more */
    MOST_BLOCKS_ACROSS = 65535, /* of a grid */
    MOST_STEP_BYTES = 128,
    SEAMLESS_WINDOWS = 64, /* of an image: lines of a step at most */
    LONG_K_BYTES = 1024    /* so that the end of k is little of a step */
};

/* A warp makes 64 x 64 sums of a large tile, and reads shared memory 8 times for 32 mma instructions; one of 64 x 32,
 * which the wide one has, 6 times for 16. */
static const ProductTile large_tile = {PRODUCT_LARGE_TILE, PRODUCT_LARGE_TILE, 128, 2, 2, 2, 64},
                         small_tile = {64, 64, 128, 2, 2, 3, MOST_STEP_BYTES},
                         narrow_tile = {64, 16, 128, 4, 1, 3, MOST_STEP_BYTES},
                         element_tile = {64, 64, 256, 2, 4, 1, 64},
                         multiply_add_tile = {32, 32, 128, 0, 0, 4, 64}; /* a term takes long: more blocks take less */

/* The same tiles in blocks of more threads: for what holds many places in each, and for what is beside it in a
 * bundle. */
static const ProductTile large_wide_tile = {PRODUCT_LARGE_TILE, PRODUCT_LARGE_TILE, 256, 2, 4, 2, 64},
                         small_wide_tile = {64, 64, 256, 2, 4, 2, MOST_STEP_BYTES},
                         narrow_wide_tile = {128, 16, 256, 8, 1, 2, 64}, no_tile = {0};

bool product_has_several(const ProductPlan *p) { return p->batch.rank || p->parts > 1; }

static int64_t blocks_of_size(int64_t size, int64_t per) { return (size + per - 1) / per; }

static int64_t blocks_of(const ProductPlan *p, const ProductTile *t) { /* where n does not decide */
    return p->members * p->parts * p->batch.count.mul * p->phases.count * blocks_of_size(p->rows.mul, t->m) *
           blocks_of_size(p->cols.mul, t->n);
}

/* Whether four warps make a large tile.  Windows hold a place for each copy of a thread, terms of 32 bits take twice
 * the registers, and what the elements read beside the sums is waited for by all warps that there are: on an H200
 * products alone take 6 % less with four warps, with a residual and a mask to read 25 % more. */
static bool suits_few_warps(const ProductPlan *p) {
    return p->mma && p->element_bytes == 2 && !p->has_windows && !p->reads_beside;
}

bool product_reads_beside(const Walk *w, int operand) {
    for (int i = 0; i < w->k->count; i++) {
        const Op *o = walk_op(w, i);
        for (int n = 0; n < o->n_in; n++)
            if (walk_loads_full(w, o, n) && w->values[o->in[n].id].operand == operand) return true;
    }
    return false;
}

static bool reads_any_beside(const Walk *w) {
    for (int i = 0; i < w->operands.len; i++)
        if (product_reads_beside(w, i)) return true;
    return false;
}

static bool has_many_blocks(const ProductPlan *p, const ProductTile *t) { return blocks_of(p, t) >= MANY_BLOCKS; }

/* The tiles that serve a product, the largest first; returns their number.  The runtime takes the ones that are done
 * first (amp_cuda_launch_choose).
 *
 * Large tiles read less; small ones keep more multiprocessors busy, and leave registers for copies element by
 * element.  A convolution's windows hold a place for each copy of a thread: sixteen of them, which elements of two
 * bytes are for 128 threads, are more than it has registers for. */
static int list_tiles(const ProductPlan *p, const ProductTile *tiles[KERNEL_FORMS]) {
    const bool wide = dim_varies(p->cols), n_decides = wide || dim_varies(p->rows) || dim_varies(p->batch.count);
    bool large = (wide || p->cols.mul > small_tile.n) && p->a.bytes == 16 && p->b.bytes == 16;
    int count = 0;
    const ProductTile *largest = suits_few_warps(p) ? &large_tile : &large_wide_tile;
    tiles[0] = &small_tile;
    /* of 32-bit elements down the lines two narrow lines would be written to the same banks */
    if (!wide && p->cols.mul <= NARROW && p->mma && (p->element_bytes == 2 || p->b.k_inner)) tiles[0] = &narrow_tile;
    else if (p->has_windows && p->mma && p->a.bytes <= 4) tiles[0] = &element_tile;
    if (tiles[0] != &small_tile) return 1;
    if (product_has_several(p) && !dim_varies(p->rows) && p->rows.mul <= small_tile.m)
        large = false; /* half of a tile's rows */
    if (large && (n_decides || has_many_blocks(p, largest))) tiles[count++] = largest;
    if (n_decides || (!count && (p->mma || has_many_blocks(p, &small_tile)))) tiles[count++] = &small_tile;
    if (!p->mma && (n_decides || !count)) tiles[count++] = &multiply_add_tile;
    return count;
}

/* The tile with the same sums in blocks of |threads| threads, for a bundle. */
static const ProductTile *tile_of_threads(const ProductPlan *p, const ProductTile *tile, int threads) {
    if (tile->threads == threads) return tile;
    if (!p->mma || threads != large_wide_tile.threads) return &no_tile;
    if (tile == &large_tile) return &large_wide_tile;
    return tile == &small_tile ? &small_wide_tile : tile == &narrow_tile ? &narrow_wide_tile : &no_tile;
}

/* ---- operands ---------------------------------------------------------------------------------------------------- */

/* The largest access of shared memory that cuts |elements| evenly. */
static int copy_bytes(int64_t elements, int element_bytes, bool turned) {
    const int bytes = cuda_copy_bytes(elements, element_bytes);
    return turned && bytes < 16 ? element_bytes : bytes;
}

/* Whether B holds the weights of conv, which a data gradient reads transposed. */
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

static ProductImages images_of(const Walk *w, const Op *o) {
    const Windows g = ir_windows(w->f, o);
    if (o->code == OP_conv_data) return (ProductImages){g.oh, g.ow, g.h, g.w, {g.stride[0], g.stride[1]}};
    return (ProductImages){g.h, g.w, g.oh, g.ow, {1, 1}};
}

/* A number of elements that a template takes: 0 where a step has no more of them, and they are a parameter. */
static long long template_count(const ProductPlan *p, int64_t elements) {
    const bool steps_have_less = !p->mma || elements >= MOST_STEP_BYTES / p->element_bytes;
    return steps_have_less ? 0 : (long long)elements;
}

typedef struct TileImages { /* what a tile is at, at most; numbers that are to be below MOST_PLACES */
    double windows, rows_of_windows, pixels;
} TileImages;

static const double MOST_PLACES = 1u << 31;

/* Windows along an axis in a phase that has any, at least. */
static int64_t least_in_phase(int64_t windows, int64_t stride) { return windows > stride ? windows / stride : 1; }

static TileImages images_of_tile(const ProductImages *i) {
    const double windows = (double)i->out_height * (double)i->out_width;
    const int64_t least = least_in_phase(i->out_height, i->stride[0]) * least_in_phase(i->out_width, i->stride[1]);
    const double images = (PRODUCT_LARGE_TILE - 1) / (double)least + 2;
    return (TileImages){.windows = images * windows,
                        .rows_of_windows = images * (double)i->out_height,
                        .pixels = images * (double)i->height * (double)i->width};
}

/* What FEW of the prelude's Windows says. */
static bool has_few_windows(const ProductImages *i, int64_t channels) {
    const TileImages tile = images_of_tile(i);
    return tile.pixels * (double)channels < MOST_PLACES && tile.windows * (double)i->out_width < MOST_PLACES &&
           tile.rows_of_windows * (double)i->out_height < MOST_PLACES;
}

/* Pixels, and windows, of the images that a tile is at are counted in 31 bits. */
static amp_status check_images(const Walk *w, const ProductPlan *p, amp_error *err) {
    const ProductImages *i = &p->images;
    const TileImages tile = images_of_tile(i);
    if (p->phases.count > MOST_BLOCKS_ACROSS / blocks_of_size(p->cols.mul, LEAST_COLUMNS))
        return amp_fail(err, AMP_UNSUPPORTED,
                        "%s: strides of %lld x %lld are not supported for CUDA; compile the model for the CPU "
                        "(--target cpu)",
                        walk_name(w), (long long)i->stride[0], (long long)i->stride[1]);
    if (tile.windows < MOST_PLACES && tile.pixels < MOST_PLACES) return AMP_OK;
    return amp_fail(err, AMP_UNSUPPORTED,
                    "%s: images of %lld x %lld pixels are not supported for CUDA; compile the model for the CPU "
                    "(--target cpu)",
                    walk_name(w), (long long)i->height, (long long)i->width);
}

static bool is_seamless(const ProductImages *i, Windows g) {
    return i->height == i->out_height * g.stride[0] && i->out_height * i->out_width >= SEAMLESS_WINDOWS;
}

static bool has_phases(const ProductPlan *p) { return p->phases.count > 1; }

/* A convolution's A: windows over images, whose pixels have |channels| places, and as parts are further apart. */
static void set_windows(const Walk *w, ProductPlan *p, int64_t channels, ProductOperand *a) {
    const Op *o = p->op;
    const Windows g = ir_windows(w->f, o);
    const bool of_weight = o->code == OP_conv_weight; /* k runs down the pixels: no step goes over channels */
    const long long taps = (long long)(g.kh * g.kw);
    const Buffer *b = walk_operand(w, a->operand);
    const int64_t pixel = b->is_part ? b->pitch : 0;
    a->memory =
        arena_printf(w->arena, "Windows<%s, %lld, %lld, %lld, %lld, %lld, %lld, %lld, %lld, %lld, %s, %s, %s%s>",
                     a->memory, of_weight ? 0 : template_count(p, channels), (long long)g.kh, (long long)g.kw,
                     (long long)g.stride[0], (long long)g.stride[1], (long long)g.padding[0], (long long)g.padding[1],
                     (long long)g.dilation[0], (long long)g.dilation[1], o->code == OP_conv_data ? "true" : "false",
                     has_few_windows(&p->images, pixel ? pixel : channels) ? "true" : "false",
                     of_weight && is_seamless(&p->images, g) ? "true" : "false",
                     pixel ? arena_printf(w->arena, ", %lld", (long long)pixel) : "");
    a->geometry =
        arena_printf(w->arena, "height, width, %s / %lld, out_height, out_width", of_weight ? "rows" : "k", taps);
    if (!has_phases(p)) return;
    p->phases.taps = g.kh * g.kw;
    p->phases.images = a->memory;
    a->memory = "Images";
}

/* A data gradient's B: the weights, a tap after the other. */
static void set_taps(const Walk *w, const ProductPlan *p, ProductOperand *b) {
    const Windows g = ir_windows(w->f, p->op);
    b->memory = arena_printf(w->arena, "Taps<%s, %lld%s>", b->memory, template_count(p, g.oc),
                             has_phases(p) ? ", Images::Pixels" : "");
    b->geometry =
        arena_printf(w->arena, "COLS, k / %lld%s", (long long)(g.kh * g.kw), has_phases(p) ? ", images.phase" : "");
}

/* B of a convolution, k down its lines: |gaps|, or the taps of a phase. */
static void set_gaps(const Walk *w, const ProductPlan *p, ProductOperand *b) {
    const int64_t outputs = ir_windows(w->f, p->op).oc; /* of a tap of a data gradient */
    const long long run = p->gaps.per ? p->gaps.run : outputs, per = p->gaps.per ? p->gaps.per : outputs;
    if (!p->gaps.per && !has_phases(p)) return;
    b->memory = arena_printf(w->arena, "Gapped<%s, %lld, %lld%s>", b->memory, run, per,
                             has_phases(p) ? ", Images::Pixels" : "");
    if (has_phases(p)) b->geometry = "images.phase";
}

/* Of a matrix in memory: its columns, and the zeros that fill its rows. */
static int64_t row_length(const Walk *w, const ProductOperand *x) {
    const int64_t padded = cuda_padded_pitch(w, x->operand);
    Dim rows, cols;
    shape_matrix(ir_shape(w->f, walk_operand(w, x->operand)->value), &rows, &cols);
    return padded ? padded : cuda_multiple(w, cols);
}

/* Elements side by side in memory that a copy may take at once. */
static int64_t run_of(const Walk *w, const ProductPlan *p, int n, const ProductOperand *x) {
    const int64_t pitch = walk_operand(w, x->operand)->pitch;
    if (n && reads_taps(p->op)) return ir_windows(w->f, p->op).oc;
    if (pitch) return greatest_common_divisor(row_length(w, x), pitch);
    if (n == 0) return row_length(w, x); /* windows: the channels of a pixel */
    return cuda_multiple(w, x->k_inner ? p->k : p->cols);
}

/* Where a matrix begins, and how far its lines are apart. */
static void place_matrix(const Walk *w, const ProductPlan *p, int n, ProductOperand *out) {
    out->first = arena_printf(w->arena, "b%d", out->operand);
    const int64_t pitch = walk_operand(w, out->operand)->pitch;
    if (pitch) out->pitch = arena_printf(w->arena, "%lld", (long long)pitch);
    else out->pitch = out->k_inner ? "k" : n ? "COLS" : "rows";
    out->run = run_of(w, p, n, out);
    out->bytes = copy_bytes(out->run, p->element_bytes, out->k_inner && !p->mma);
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
    int64_t run = cuda_multiple(w, out->k_inner ? p->k : n ? p->cols : p->rows);
    run = greatest_common_divisor(run, cuda_multiple(w, pitch));
    run = greatest_common_divisor(run, at.offset);
    text_init(&first, w->arena);
    text_printf(&first, "b%d", out->operand);
    if (at.offset) text_printf(&first, " + %lld", (long long)at.offset);
    for (int i = 0; i < p->batch.rank; i++) {
        run = greatest_common_divisor(run, cuda_multiple(w, at.stride[i]));
        if (at.stride[i].mul && !dim_is_one(p->batch.dims[i]))
            text_printf(&first, " + batch%d * %s", i, emit_dim_factor(w->arena, at.stride[i]));
    }
    out->first = text_str(&first);
    out->pitch = emit_dim(w->arena, pitch);
    out->run = run;
    out->bytes = copy_bytes(run, p->element_bytes, out->k_inner && !p->mma);
    return AMP_OK;
}

static amp_status plan_operand(const Walk *w, ProductPlan *p, const Instructions *by, int n, ProductOperand *out,
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
        return amp_fail(err, AMP_UNSUPPORTED, "%s: contract in %s of %%%s stored as %s is not supported for CUDA",
                        walk_name(w), amp_dtype_name(by->dtype), read->name, amp_dtype_name(buffer->storage));
    if (p->batch.rank) return place_batch(w, p, n, out, err);
    if (p->has_windows && n == 0) set_windows(w, p, row_length(w, out), out);
    else if (p->has_windows && reads_taps(p->op)) set_taps(w, p, out);
    else if (p->has_windows && p->op->code != OP_conv_weight) set_gaps(w, p, out);
    out->k_inner = n == (int)is_transposed(p->op, n);
    place_matrix(w, p, n, out);
    return AMP_OK;
}

/* ---- the product ------------------------------------------------------------------------------------------------- */

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
    out->cols = b->d[b->rank - (tb ? 2 : 1)];
}

/* k, or rows, as windows of pixels at a pitch have them. */
static void plan_gaps(const Walk *w, ProductPlan *out) {
    const int operand = walk_memory_operand(w, out->op, 0);
    Dim pixels, channels, *with_gaps = out->op->code == OP_conv_weight ? &out->rows : &out->k;
    if (!out->has_windows || operand < 0 || !cuda_padded_pitch(w, operand)) return;
    shape_matrix(ir_shape(w->f, out->op->in[0]), &pixels, &channels);
    out->gaps = (Gaps){channels.mul, cuda_padded_pitch(w, operand)};
    with_gaps->mul = with_gaps->mul / out->gaps.run * out->gaps.per;
}

/* In a joined launch, which holds the shared memory of all its parts, and whose blocks make 64 rows. */
static void plan_joined_tile(ProductPlan *out) {
    out->tile = out->mma ? small_wide_tile : no_tile;
    out->tile.step_bytes = 64;
}

/* The tile of a form, among |count|: the default is the last one, which serves any number of blocks. */
static const ProductTile *tile_of_form(const ProductTile *const *tiles, int count, int choice) {
    const int larger = count > 1 ? count - 1 : 1;
    return tiles[!choice ? count - 1 : (choice < larger ? choice : larger) - 1];
}

/* k where it does not depend on n, of the phase that has the most taps. */
static int64_t longest_k(const Walk *w, const ProductPlan *p) {
    if (!has_phases(p)) return p->k.mul;
    const Windows g = ir_windows(w->f, p->op);
    const int64_t taps = blocks_of_size(g.kh, ir_tap_step(&g, 0)) * blocks_of_size(g.kw, ir_tap_step(&g, 1));
    return p->k.mul / (g.kh * g.kw) * taps;
}

/* Of each form the same sums. */
static void plan_tile(const Walk *w, CudaForm form, ProductPlan *out) {
    if (form.role >= CUDA_IN_TURN) {
        plan_joined_tile(out);
        return;
    }
    const ProductTile *tiles[KERNEL_FORMS];
    const int count = list_tiles(out, tiles);
    out->facts.choices = count - 1;
    for (int f = 0; f < KERNEL_FORMS; f++) {
        out->facts.threads[f] = tile_of_form(tiles, count, f)->threads;
        out->facts.widens[f] = tile_of_threads(out, tile_of_form(tiles, count, f), large_wide_tile.threads)->threads;
    }
    const ProductTile *tile = tile_of_form(tiles, count, form.choice);
    out->tile = form.threads ? *tile_of_threads(out, tile, form.threads) : *tile;
    const bool elementwise = out->has_windows && out->a.bytes < 16; /* the places of what it copies take registers */
    /* parts are whole steps, however short they are */
    const bool short_k =
        !dim_varies(out->k) && out->parts == 1 && longest_k(w, out) * out->element_bytes < LONG_K_BYTES;
    if (elementwise || short_k) out->tile.step_bytes = 64;
    if (elementwise) out->tile.min_blocks = 1;
    if (!out->mma && out->tile.m >= small_tile.m) /* so do f32 terms, and an epilogue */
        out->tile.min_blocks = out->tile.m == PRODUCT_LARGE_TILE ? 1 : 2;
}

/* false: the rows of the largest phase are too many to count. */
static bool plan_phases(const Walk *w, ProductPlan *out) {
    const ProductImages *i = &out->images;
    const bool few = i->stride[0] <= MOST_BLOCKS_ACROSS && i->stride[1] <= MOST_BLOCKS_ACROSS;
    out->phases.count = few ? i->stride[0] * i->stride[1] : MOST_BLOCKS_ACROSS + 1;
    if (!has_phases(out)) return true;
    out->phases.samples = ir_shape(w->f, out->op->out[0])->d[0];
    const int64_t down = blocks_of_size(i->out_height, i->stride[0]),
                  across = blocks_of_size(i->out_width, i->stride[1]);
    return dim_mul(out->phases.samples, dim_const(down * across), &out->rows);
}

amp_status product_plan(const Walk *w, CudaForm form, ProductPlan *out, amp_error *err) {
    const Op *o;
    AMP_TRY(walk_own_op(w, &o, err));
    const Instructions *by = instructions_of(ir_dtype(w->f, o->in[0]));
    if (!by)
        return amp_fail(err, AMP_UNSUPPORTED, "%s: contract of %s is not supported for CUDA", walk_name(w),
                        amp_dtype_name(ir_dtype(w->f, o->in[0])));
    *out = (ProductPlan){.op = o,
                         .batch.count = dim_const(1),
                         .phases.count = 1,
                         .rows = w->rows,
                         .cols = w->cols,
                         .k = ir_product_terms(w->f, o),
                         .has_windows = has_windows(w, o),
                         .mma = by->mma,
                         .min_arch = by->min_arch,
                         .element_bytes = by->element_bytes,
                         .members = form.members ? form.members : 1,
                         .reads_beside = reads_any_beside(w)};
    if (out->has_windows) {
        out->images = images_of(w, o);
        if (!plan_phases(w, out)) return amp_fail(err, AMP_INTERNAL, "%s: too many pixels", walk_name(w));
        AMP_TRY(check_images(w, out, err));
    }
    if (o->code == OP_batch_contract) plan_batch(w, out);
    out->parts = ir_parts(o);
    out->rows.mul /= out->parts; /* which are its first dimension */
    plan_gaps(w, out);
    AMP_TRY(plan_operand(w, out, by, 0, &out->a, err));
    AMP_TRY(plan_operand(w, out, by, 1, &out->b, err));
    out->facts.bundles = !dim_varies(w->cols);
    out->facts.sums_grow = dim_varies(out->k);
    plan_tile(w, form, out);
    return AMP_OK;
}
