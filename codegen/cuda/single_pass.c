/* single_pass.c: sums of sums in the launch of the first: a single-pass reduction (threadFenceReduction among NVIDIA's
 * samples; docs/design/cuda.md).
 *
 *   k07 { %1 = reduce_sum(%x; dims = (1)) : f32[N, 64] }   sums of each sample: a block for 32 columns of one
 *   k08 { %2 = reduce_sum(%1; dims = (0)) : f32[64] }      sums over samples, and what follows for each column
 *
 * Both stay kernels of the module, in this order.  In their launch each block is one of the first pass.  It stores its
 * sums and takes a ticket of its columns; the block that takes the last of them makes the second pass of these columns.
 * It adds all samples in the order in which a launch of its own would add them, so neither bits nor results depend on
 * the order of blocks.
 */
#include "codegen/cuda/cuda_kernel.h"

enum { MOST_PASSES = 4 }; /* the last block makes all but the first, one after another */

/* ---- which kernels ----------------------------------------------------------------------------------------------- */

CudaPass cuda_first_pass(const Walk *w, const CudaBody *body) {
    return (CudaPass){.k = w->k,
                      .rows = walk_segments(w),
                      .cols = w->cols,
                      .threads = body->launch.block[0],
                      .operands = w->operands.len + (w->k->pred.id != 0),
                      .sizes = body->sizes.len};
}

static bool writes(const Kernel *k, uint32_t buffer) {
    for (int i = 0; i < k->writes.len; i++)
        if (k->writes.data[i] == buffer) return true;
    return false;
}

/* An op reads elements of |v| at other places than its own. */
static bool is_moved(const Walk *w, Val v) {
    for (int i = 0; i < w->k->count; i++) {
        const Op *o = walk_op(w, i);
        for (int n = 0; n < o->n_in; n++)
            if (ir_reads_memory(w->f, o, n) && ir_memory_source(w->f, o->in[n]).id == v.id) return true;
    }
    return false;
}

/* Something of the first pass is read, and nothing but rows of the block's own columns. */
static bool reads_own_columns(const Walk *w, const Kernel *first) {
    bool reads = false;
    for (int i = 0; i < w->k->reads.len; i++) {
        const uint32_t id = w->k->reads.data[i];
        if (!writes(first, id)) continue;
        const Buffer *b = w->f->buffers.data[id - 1];
        if (b->kind == BUFFER_FLAG || w->values[b->value.id].span != SPAN_FULL || is_moved(w, b->value)) return false;
        reads = true;
    }
    return reads;
}

bool cuda_is_next_pass(const Walk *w, const CudaBody *body, const CudaPass *first, const Kernel *const *passes,
                       int count) {
    const Kernel *k = w->k;
    if (count == MOST_PASSES || first->sizes + body->sizes.len > CUDA_MOST_SIZES) return false;
    if (k->kind != KERNEL_COLUMN || k->segment || k->pred.id != first->k->pred.id) return false;
    if (!dim_equal(w->rows, first->rows) || !dim_equal(w->cols, first->cols)) return false;
    if (body->launch.block[0] != first->threads || first->operands + w->operands.len > CUDA_PARAM_OPERANDS)
        return false;
    for (int i = 0; i < count; i++) /* other blocks may still read what it would write */
        if (cuda_touches_written(w->f, k, passes[i]) || (i && cuda_touches_written(w->f, passes[i], k))) return false;
    return reads_own_columns(w, first->k);
}

/* ---- the function around them ------------------------------------------------------------------------------------ */

/* Parameters and arguments, b%d_%d, are named by pass, from 1, and operand, from 0. */
static void put_parameters(Text *t, const CudaBody *passes, int count, bool predicate) {
    for (int p = 0; p < count; p++)
        for (int i = 0; i < passes[p].pointers.len; i++)
            text_printf(t, "%sb%d_%d, ", passes[p].pointers.data[i], p + 1, i);
    if (predicate) text_puts(t, "const int32_t *predicate, ");
    text_puts(t, "int64_t n");
    for (int p = 0; p < count; p++)
        for (int i = 0; i < passes[p].sizes.len; i++)
            text_printf(t, ", int64_t %s%d", passes[p].size_names.data[i], p + 1);
    text_puts(t, ", uint32_t *tickets");
}

static void put_call(Text *t, const CudaBody *pass, int number) {
    text_printf(t, "    @_pass%d(", number);
    for (int i = 0; i < pass->pointers.len; i++) text_printf(t, "b%d_%d, ", number, i);
    text_puts(t, "n");
    for (int i = 0; i < pass->sizes.len; i++) text_printf(t, ", %s%d", pass->size_names.data[i], number);
    text_puts(t, number > 1 ? ", block);\n" : ");\n");
}

void cuda_join_passes(Arena *a, const CudaBody *passes, int count, bool predicate, CudaBody *out) {
    Text t;
    text_init(&t, a);
    *out = passes[0];
    out->sizes = (CudaSizes){0};
    out->how = arena_printf(a, "%s, the last block of a column makes what follows", passes[0].how);
    for (int p = 0; p < count; p++) {
        if (passes[p].min_blocks < out->min_blocks) out->min_blocks = passes[p].min_blocks;
        for (int i = 0; i < passes[p].sizes.len; i++) vec_push(a, &out->sizes, passes[p].sizes.data[i]);
        text_printf(&t, "%s\n", passes[p].source);
    }
    text_puts(&t, "extern \"C\" __global__ void ");
    cuda_put_bounds(&t, out->launch.block[0], out);
    text_puts(&t, " @(");
    put_parameters(&t, passes, count, predicate);
    text_puts(&t, ")\n{\n");
    text_printf(&t, "    const uint32_t blocks = ((uint32_t)cols1 + %d) / %d, block = blockIdx.x %% blocks;\n",
                out->columns - 1, out->columns);
    text_puts(&t, "    await_earlier_launches();\n");
    if (predicate) text_puts(&t, "    if (!*predicate) return;\n");
    put_call(&t, &passes[0], 1);
    text_puts(&t, "    if (!takes_last_ticket(tickets + block, gridDim.x / blocks)) return;\n");
    for (int p = 1; p < count; p++) put_call(&t, &passes[p], p + 1);
    text_puts(&t, "}\n");
    out->source = text_str(&t);
}
