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
} Instructions;
static const Instructions instructions[] = {
    {AMP_DT_F16, "MmaF16", 75, "uint16_t", 2},
    {AMP_DT_BF16, "MmaBf16", 80, "uint16_t", 2},
    {AMP_DT_TF32, "MmaTf32", 80, "float", 4},
    {AMP_DT_F32, NULL, 75, "float", 4},
};

/* The narrowest type that holds both: f16 and bf16 are tf32 numbers. */
static Dtype common_dtype(Dtype a, Dtype b) {
    if (a == b) return a;
    return a == AMP_DT_F32 || b == AMP_DT_F32 ? AMP_DT_F32 : AMP_DT_TF32;
}

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

/* Large tiles read less; small ones keep more multiprocessors busy, and leave registers for copies element by element. */
static ProductTile choose_tile(const ProductPlan *p) {
    int64_t assumed = p->rows.n ? p->rows.mul * ASSUMED_N / p->rows.div : p->rows.mul;
    int64_t blocks = (assumed + large_tile.m - 1) / large_tile.m * ((p->cols + large_tile.n - 1) / large_tile.n);
    bool whole_copies = p->a.bytes == 16 && p->b.bytes == 16;
    /* of 32-bit elements down the lines two narrow lines would be written to the same banks */
    if (p->cols <= NARROW && p->mma && (p->element_bytes == 2 || p->b.k_inner)) return narrow_tile;
    return blocks >= MANY_BLOCKS && p->cols > small_tile.n && whole_copies ? large_tile : small_tile;
}

/* ---- operands ---------------------------------------------------------------------------------------------------- */

typedef struct Widening {
    Dtype stored;
    const char *memory;
} Widening;
static const Widening widenings[] = {{AMP_DT_F16, "WidenedF16"}, {AMP_DT_BF16, "WidenedBf16"}};

/* The largest access of up to 16 bytes that cuts a line of |cols| elements evenly; single elements where each is
 * widened. */
static int copy_bytes(int64_t cols, int element_bytes, bool whole, bool turned) {
    int bytes = 16;
    while (cols * element_bytes % bytes) bytes /= 2;
    if (!whole || (turned && bytes < 16)) return element_bytes;
    return bytes;
}

static amp_status plan_operand(const Walk *w, const ProductPlan *p, const Instructions *by, int n, ProductOperand *out,
                               amp_error *err) {
    bool transposed = ir_attr(p->op, n ? "tb" : "ta")->i;
    out->operand = walk_memory_operand(w, p->op, n);
    if (out->operand < 0)
        return amp_fail(err, AMP_UNSUPPORTED, "%s: contract reads %%%s, which no buffer holds", walk_name(w),
                        ir_value(w->f, p->op->in[n])->name);
    Dtype stored = walk_operand(w, out->operand)->storage;
    const CudaStorage *storage = cuda_storage_of(w, out->operand);
    int64_t cols = n == (int)transposed ? p->k.mul : n ? p->cols : p->rows.mul;
    int element_bytes = by->element_bytes;
    bool whole = stored == by->dtype || (element_bytes == 4 && storage->bytes == 4);
    out->k_inner = n == (int)transposed;
    if (whole) out->memory = arena_printf(w->arena, "AsStored<%s>", by->element);
    for (size_t i = 0; !whole && element_bytes == 4 && i < sizeof widenings / sizeof widenings[0]; i++)
        if (widenings[i].stored == stored) out->memory = widenings[i].memory;
    if (!out->memory)
        return amp_fail(err, AMP_UNSUPPORTED, "%s: contract in %s of %%%s stored as %s is not built yet", walk_name(w),
                        amp_dtype_name(by->dtype), ir_value(w->f, p->op->in[n])->name, amp_dtype_name(stored));
    out->bytes = copy_bytes(cols, element_bytes, whole, out->k_inner && !by->mma);
    return AMP_OK;
}

/* ---- the product ------------------------------------------------------------------------------------------------- */

static const Op *find_product(const Walk *w) {
    for (int i = 0; i < w->k->count; i++)
        if (ir_is_product(walk_op(w, i))) return walk_op(w, i);
    return NULL;
}

amp_status cuda_plan_product(const Walk *w, ProductPlan *out, amp_error *err) {
    const Op *o = find_product(w);
    if (!o) return amp_fail(err, AMP_INTERNAL, "%s: a product kernel without a product", walk_name(w));
    if (o->code != OP_contract)
        return amp_fail(err, AMP_UNSUPPORTED, "%s: %s has no CUDA code yet", walk_name(w), ir_op_info[o->code].name);
    const Instructions *by = instructions_of(common_dtype(ir_dtype(w->f, o->in[0]), ir_dtype(w->f, o->in[1])));
    if (!by)
        return amp_fail(err, AMP_UNSUPPORTED, "%s: contract of %s is not built yet", walk_name(w),
                        amp_dtype_name(ir_dtype(w->f, o->in[0])));
    Dim a_rows, a_cols;
    shape_matrix(ir_shape(w->f, o->in[0]), &a_rows, &a_cols);
    *out = (ProductPlan){.op = o,
                         .rows = w->rows,
                         .cols = w->cols,
                         .k = ir_attr(o, "ta")->i ? a_rows : a_cols,
                         .mma = by->mma,
                         .min_arch = by->min_arch,
                         .element_bytes = by->element_bytes};
    AMP_TRY(plan_operand(w, out, by, 0, &out->a, err));
    AMP_TRY(plan_operand(w, out, by, 1, &out->b, err));
    out->tile = choose_tile(out);
    return AMP_OK;
}
