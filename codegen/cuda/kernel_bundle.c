/* kernel_bundle.c: kernels of different text in one launch (horizontal fusion): the blocks of one follow those of
 * another along the grid's first dimension.
 *
 *     struct @_part0 { ..; static INLINE void run(const PlaceInGrid &place, char *shared, ..) {..} };
 *     struct @_part1 {..};
 *
 *     extern "C" __global__ void __launch_bounds__(256, ..) @(.. *b0, .. *b1, .., int64_t n, int64_t size0, ..,
 *                                                             int64_t first0, int64_t x0, int64_t y0, ..)
 *     {
 *         __shared__ __align__(128) union {
 *             char part0[@_part0::SHARED], part1[@_part1::SHARED];
 *         } shared;
 *         if (blockIdx.x < (uint32_t)first1) {
 *             @_part0::run({first0, x0, y0}, shared.part0, b0, b1, b2, n, size0);
 *             return;
 *         }
 *         @_part1::run({first1, x1, y1}, shared.part1, b3, b4, b5, n);
 *     }
 *
 * Products are bundled with products, kernels of rows, of columns or of sums by id with their like, elementwise ones
 * with scalars too: what is bound by memory would have few blocks a multiprocessor beside a product.  A part does
 * what its kernel does alone: the same bits.  All blocks have as many threads, so that no barrier waits for a thread
 * that is not there; a product has tiles for either number (product_plan.c).
 *
 * A part may be a batch of kernels, but not of products.  Then, where they are too many for parameters, and where a
 * part reads each pointer only where it needs it (CudaBody.takes_table), all operands come out of a table.  Those of
 * a part begin there at a place that is known here, and so do the elements of its members:
 *
 *     @_part0::run({first0, x0, y0}, shared.part0, operands, n, size0, member_elements);
 *     @_part1::run({first1, x1, y1}, shared.part1, (const float *)operands[24], (float *)operands[25], n);
 *
 * Horizontal fusion: Li et al., "Automatic Horizontal Fusion for GPU Kernels", CGO 2022; there within a block. */
#include "codegen/cuda/cuda_kernel.h"

/* ---- the rule ---------------------------------------------------------------------------------------------------- */

bool cuda_same_sizes(const CudaBody *a, const CudaBody *b) {
    for (int i = 0; i < a->sizes.len; i++)
        if (!dim_equal(a->sizes.data[i], b->sizes.data[i])) return false;
    return a->sizes.len == b->sizes.len;
}

bool cuda_is_same_batch(const CudaBody *a, const CudaBody *b) {
    return !strcmp(a->source, b->source) && cuda_same_sizes(a, b);
}

static bool are_alike(KernelKind a, KernelKind b) {
    if (a == KERNEL_SCALAR) a = KERNEL_TILE;
    if (b == KERNEL_SCALAR) b = KERNEL_TILE;
    return a == b;
}

/* Whether their operands come out of a table. */
static bool have_table(const CudaBody *parts, const int *members, int count) {
    int operands = 0;
    for (int i = 0; i < count; i++) {
        if (members[i] > 1 || parts[i].takes_table) return true;
        operands += parts[i].pointers.len;
    }
    return operands > CUDA_PARAM_OPERANDS;
}

bool cuda_may_bundle(const CudaBody *alone, const int *members, int count) {
    int sizes = 0;
    for (int i = 0; i < count; i++) {
        sizes += alone[i].sizes.len;
        if (!alone[i].bundles || !are_alike(alone[i].kind, alone[0].kind)) return false;
        for (int j = 0; j < i; j++)
            if (cuda_is_same_batch(&alone[i], &alone[j])) return false;
    }
    const bool products = alone[0].kind == KERNEL_PRODUCT;
    if (products && (count > CUDA_MOST_PRODUCTS || have_table(alone, members, count))) return false;
    return sizes <= CUDA_MOST_SIZES;
}

/* A kernel of which some functions are for many blocks has those in the bundle too, whose blocks are more. */
int cuda_bundle_threads(const CudaBody *alone, int count, int threads[CUDA_MOST_FORMS]) {
    int forms = 1;
    memset(threads, 0, CUDA_MOST_FORMS * sizeof *threads);
    for (int i = 0; i < count; i++) {
        if (alone[i].launch.block[0] > threads[0]) threads[0] = alone[i].launch.block[0];
        if (alone[i].choices + 1 > forms) forms = alone[i].choices + 1;
    }
    for (int f = 1; f < forms; f++) {
        threads[f] = threads[0];
        for (int i = 0; i < count; i++)
            if (alone[i].threads[f] > threads[f]) threads[f] = alone[i].threads[f];
    }
    return forms;
}

/* ---- the text ---------------------------------------------------------------------------------------------------- */

typedef struct CallPlace { /* where a part's arguments begin among those of all */
    int operand, size, member;
} CallPlace;

static bool have_partials(const CudaBody *parts, int count) {
    for (int i = 0; i < count; i++)
        if (parts[i].partials) return true;
    return false;
}

static void put_parameters(Text *t, const CudaBody *parts, const int *members, int count) {
    const bool table = have_table(parts, members, count);
    int operands = 0, sizes = 0;
    if (table) text_puts(t, "void *const *operands, ");
    for (int i = 0; i < count && !table; i++)
        for (int o = 0; o < parts[i].pointers.len; o++)
            text_printf(t, "%sb%d, ", parts[i].pointers.data[o], operands++);
    text_puts(t, "int64_t n");
    for (int i = 0; i < count; i++)
        for (int s = 0; s < parts[i].sizes.len; s++) text_printf(t, ", int64_t size%d", sizes++);
    if (table) text_puts(t, ", const int64_t *member_elements");
    if (have_partials(parts, count)) text_puts(t, ", uint32_t *tickets, double *partials");
    for (int i = 0; i < count; i++) text_printf(t, ", int64_t first%d, int64_t x%d, int64_t y%d", i, i, i);
}

static void put_shared(Text *t, int count) {
    text_puts(t, "    __shared__ __align__(128) union {\n        char ");
    for (int i = 0; i < count; i++) text_printf(t, "%spart%d[@_part%d::SHARED]", i ? ", " : "", i, i);
    text_puts(t, ";\n    } shared;\n");
}

static void put_operands(Text *t, const CudaBody *part, int members, bool table, int operand) {
    if (members > 1 || part->takes_table) {
        text_printf(t, "operands + %d, ", operand);
        return;
    }
    for (int o = 0; o < part->pointers.len; o++) {
        if (table) text_printf(t, "(%s)operands[%d], ", part->pointers.data[o], operand + o);
        else text_printf(t, "b%d, ", operand + o);
    }
}

static void put_call(Text *t, const CudaBody *part, int number, int members, bool table, CallPlace at,
                     const char *indent) {
    text_printf(t, "%s@_part%d::run({first%d, x%d, y%d}, shared.part%d, ", indent, number, number, number, number,
                number);
    put_operands(t, part, members, table, at.operand);
    text_putc(t, 'n');
    for (int s = 0; s < part->sizes.len; s++) text_printf(t, ", size%d", at.size + s);
    if (members > 1) text_printf(t, ", member_elements + %d", at.member);
    if (part->partials) text_puts(t, ", tickets, partials");
    text_puts(t, ");\n");
}

static void put_calls(Text *t, const CudaBody *parts, const int *members, int count) {
    const bool table = have_table(parts, members, count);
    CallPlace at = {0};
    for (int i = 0; i < count; i++) {
        const bool last = i == count - 1;
        if (!last) text_printf(t, "    if (blockIdx.x < (uint32_t)first%d) {\n", i + 1);
        put_call(t, &parts[i], i, members[i], table, at, last ? "    " : "        ");
        if (!last) text_puts(t, "        return;\n    }\n");
        at.operand += parts[i].pointers.len * members[i];
        at.size += parts[i].sizes.len;
        at.member += members[i];
    }
}

/* What ptxas and the runtime are told: of the part that takes more. */
static void take_bounds(const CudaBody *part, CudaBody *out) {
    if (part->min_arch > out->min_arch) out->min_arch = part->min_arch;
    if (!out->min_blocks || part->min_blocks < out->min_blocks) out->min_blocks = part->min_blocks;
    out->halves_blocks |= part->halves_blocks;
    out->tensor_cores |= part->tensor_cores;
    out->partials |= part->partials;
}

void cuda_bundle(Arena *a, const CudaBody *parts, const int *members, int count, CudaBody *out) {
    Text t;
    text_init(&t, a);
    *out = (CudaBody){.kind = parts[0].kind,
                      .launch = {.block = {parts[0].launch.block[0], 1, 1}},
                      .operand_table = have_table(parts, members, count)};
    for (int i = 0; i < count; i++) {
        text_printf(&t, "%s\n", parts[i].source);
        take_bounds(&parts[i], out);
        for (int s = 0; s < parts[i].sizes.len; s++) vec_push(a, &out->sizes, parts[i].sizes.data[s]);
    }
    text_puts(&t, "extern \"C\" __global__ void ");
    cuda_put_bounds(&t, out->launch.block[0], out);
    text_puts(&t, " @(");
    put_parameters(&t, parts, members, count);
    text_puts(&t, ")\n{\n");
    put_shared(&t, count);
    put_calls(&t, parts, members, count);
    text_puts(&t, "}\n");
    out->source = text_str(&t);
}
