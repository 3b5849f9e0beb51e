/* product_tile.c: which instructions make a product, in which tiles, and how its operands come to shared memory.
 *
 * Nothing here depends on n, so that a kernel serves every n; the sum of an element does not depend on the tile
 * either: it is one chain over k.  The gradient of a weight has few tiles and a long k.  Splitting k among blocks would
 * need a second kernel that adds the parts in order; their number would have to follow from the shape.  Until there is
 * such a kernel it is one. */
#include "codegen/cuda/product.h"

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
    ASSUMED_N = 64,    /* where the rows depend on n */
    MANY_BLOCKS = 128, /* about the multiprocessors of a large GPU */
    NARROW = 16        /* columns */
};

static const ProductTile large_tile = {128, 128, 256, 2, 4, 1}, small_tile = {64, 64, 128, 2, 2, 3},
                         narrow_tile = {64, 16, 128, 4, 1, 3};

/* Large tiles read less; small ones keep more multiprocessors busy, and leave registers for copies element by
 * element. */
static ProductTile choose_tile(const ProductPlan *p) {
    int64_t assumed = p->rows.n ? p->rows.mul * ASSUMED_N / p->rows.div : p->rows.mul;
    int64_t blocks = (assumed + large_tile.m - 1) / large_tile.m * ((p->cols + large_tile.n - 1) / large_tile.n);
    bool whole_copies = p->a.bytes == 16 && p->b.bytes == 16;
    /* of 32-bit elements down the lines two narrow lines would be written to the same banks */
    if (p->cols <= NARROW && p->mma && (p->element_bytes == 2 || p->b.k_inner)) return narrow_tile;
    return blocks >= MANY_BLOCKS && p->cols > small_tile.n && whole_copies ? large_tile : small_tile;
}

/* ---- operands ---------------------------------------------------------------------------------------------------- */

/* The largest access of up to 16 bytes of shared memory that cuts a line of |cols| elements evenly. */
static int copy_bytes(int64_t cols, int element_bytes, bool turned) {
    int bytes = 16;
    while (cols * element_bytes % bytes) bytes /= 2;
    return turned && bytes < 16 ? element_bytes : bytes;
}

/* Whether operand |n| is multiplied as its transpose. */
static bool is_transposed(const Op *o, int n) {
    if (o->code == OP_contract) return ir_attr(o, n ? "tb" : "ta")->i;
    return o->code == OP_conv_weight && n == 0;
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

/* Elements side by side in memory that a copy may take at once. */
static int64_t run_of(const Walk *w, const ProductPlan *p, int n, bool transposed) {
    Dim rows, cols;
    if (n) return transposed ? p->k.mul : p->cols;
    shape_matrix(ir_shape(w->f, p->op->in[0]), &rows, &cols); /* of a convolution: the channels of a pixel */
    return cols.mul;
}

static amp_status plan_operand(const Walk *w, const ProductPlan *p, const Instructions *by, int n, ProductOperand *out,
                               amp_error *err) {
    bool transposed = is_transposed(p->op, n);
    const Value *read = ir_value(w->f, p->op->in[n]);
    out->operand = walk_memory_operand(w, p->op, n);
    if (out->operand < 0)
        return amp_fail(err, AMP_UNSUPPORTED, "%s: contract reads %%%s, which no buffer holds", walk_name(w),
                        read->name);
    const Buffer *buffer = walk_operand(w, out->operand);
    int64_t run = run_of(w, p, n, transposed);
    bool rounds = buffer->value.id != p->op->in[n].id;
    int bytes = emit_storage(w, out->operand)->bytes;
    out->k_inner = n == (int)transposed;
    if (rounds && buffer->storage == AMP_DT_F32) out->memory = by->rounded;
    else if (!rounds && bytes == by->element_bytes) out->memory = arena_printf(w->arena, "AsStored<%s>", by->element);
    if (!out->memory)
        return amp_fail(err, AMP_UNSUPPORTED, "%s: contract in %s of %%%s stored as %s is not built yet", walk_name(w),
                        amp_dtype_name(by->dtype), read->name, amp_dtype_name(buffer->storage));
    if (n == 0 && p->op->code != OP_contract) out->memory = in_windows(w, p->op, out->memory);
    out->bytes = copy_bytes(run, by->element_bytes, out->k_inner && !by->mma);
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
    int n = o->code == OP_contract ? 0 : 1; /* a convolution's B is a matrix, of k rows */
    Dim rows, cols;
    shape_matrix(ir_shape(w->f, o->in[n]), &rows, &cols);
    return n == 1 || is_transposed(o, 0) ? rows : cols;
}

amp_status cuda_plan_product(const Walk *w, ProductPlan *out, amp_error *err) {
    const Op *o = find_product(w);
    if (!o) return amp_fail(err, AMP_INTERNAL, "%s: a product kernel without a product", walk_name(w));
    const Instructions *by = instructions_of(ir_dtype(w->f, o->in[0]));
    if (!by)
        return amp_fail(err, AMP_UNSUPPORTED, "%s: contract of %s is not built yet", walk_name(w),
                        amp_dtype_name(ir_dtype(w->f, o->in[0])));
    *out = (ProductPlan){.op = o,
                         .rows = w->rows,
                         .cols = w->cols,
                         .k = terms(w, o),
                         .mma = by->mma,
                         .min_arch = by->min_arch,
                         .element_bytes = by->element_bytes};
    AMP_TRY(plan_operand(w, out, by, 0, &out->a, err));
    AMP_TRY(plan_operand(w, out, by, 1, &out->b, err));
    out->tile = choose_tile(out);
    if (o->code != OP_contract && out->a.bytes < 16)
        out->tile.min_blocks = 1; /* places of many small copies take registers */
    return AMP_OK;
}
