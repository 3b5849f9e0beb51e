/* pass_launch.c: the function of a single-pass reduction (passes/launch/single_pass.c): each block is one of the first
 * pass, and the one that takes the last ticket of its columns makes the further passes of them. */
#include "codegen/cuda/cuda_kernel.h"

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
