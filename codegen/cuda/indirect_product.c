/* indirect_product.c: sums of products that are no tiles of a matrix product: batch_contract, and convolutions in groups.  A thread makes one
 * element; the chain of its sum is ascending, as on the CPU. */
#include "codegen/cuda/kernel.h"
#include "codegen/emit_window.h"

/* ---- batch_contract ---------------------------------------------------------------------------------------------- */

/* result [B.., M, N]: r = b * M + m */
static amp_status emit_batch(CudaKernel *k, const Op *o) {
    Arena *a = k->w->arena;
    CudaMemory x = cuda_memory(k, o, 0), y = cuda_memory(k, o, 1);
    bool ta = ir_attr(o, "ta")->b, tb = ir_attr(o, "tb")->b;
    const Shape *s = ir_shape(k->w->f, o->out[0]);
    const char *m = emit_dim(a, s->d[s->rank - 2]), *depth = emit_dim(a, x.shape.d[x.shape.rank - (ta ? 2 : 1)]);
    int sum = walk_number(k->w, o->out[0]);
    emit_line(&k->e, "MAYBE_UNUSED const int64_t batch = quotient(r, %s), m = modulo(r, %s);", m, m);
    emit_line(&k->e, "v%d = 0.0f;", sum);
    const char *by_k = arena_printf(a, "batch * (%s) + i", depth);
    const char *left = ta ? cuda_element_at(k, &x, by_k, "m") : cuda_element_at(k, &x, "r", "i");
    const char *by_column = arena_printf(a, "batch * %lld + c", (long long)s->d[s->rank - 1].mul);
    const char *right = tb ? cuda_element_at(k, &y, by_column, "i") : cuda_element_at(k, &y, by_k, "c");
    emit_line(&k->e, "for (int64_t i = 0; i < %s; i++) v%d = fma_f32(%s, %s, v%d);", depth, sum, left, right, sum);
    return AMP_OK;
}

/* ---- convolutions in groups -------------------------------------------------------------------------------------- */

/* Channel i of the group of column c, at |pixel| of |m|: the groups have |width| columns each, and |depth| channels of |m|. */
static const char *group_channel(CudaKernel *k, const CudaMemory *m, int64_t width, int64_t depth) {
    const char *channel = arena_printf(k->w->arena, "c / %lld * %lld + i", (long long)width, (long long)depth);
    return cuda_element_at(k, m, "pixel", channel);
}

/* conv and conv_data: sums over taps and the channels of the group. */
static void emit_pixels(CudaKernel *k, const Op *o, const Windows *g) {
    CudaMemory image = cuda_memory(k, o, 0), weights = cuda_memory(k, o, 1);
    bool forward = o->code == OP_conv;
    int64_t depth = (forward ? g->c : g->oc) / g->groups, width = (forward ? g->oc : g->c) / g->groups;
    int sum = walk_number(k->w, o->out[0]);
    emit_line(&k->e, "v%d = 0.0f;", sum);
    emit_line(&k->e, "for (int64_t kh = 0; kh < %lld; kh++)", (long long)g->kh);
    emit_open(&k->e, "for (int64_t kw = 0; kw < %lld; kw++)", (long long)g->kw);
    if (forward) emit_input_pixel(&k->e, g, "i0", "i1", "i2");
    else emit_output_pixel(&k->e, g);
    const char *row = arena_printf(k->w->arena, "(kh * %lld + kw) * %lld + i", (long long)g->kw, (long long)depth);
    emit_line(&k->e, "for (int64_t i = 0; i < %lld; i++) v%d = fma_f32(%s, %s, v%d);", (long long)depth, sum,
              group_channel(k, &image, width, depth), cuda_element_at(k, &weights, row, "c"), sum);
    emit_close(&k->e);
}

/* conv_weight: result [KH, KW, C / groups, O], row (kh, kw, i), summed over the pixels of y. */
static void emit_weights(CudaKernel *k, const Op *o, const Windows *g) {
    CudaMemory image = cuda_memory(k, o, 0), dy = cuda_memory(k, o, 1);
    int sum = walk_number(k->w, o->out[0]);
    emit_line(&k->e, "const int64_t kh = i0, kw = i1, i = i2;");
    emit_line(&k->e, "v%d = 0.0f;", sum);
    emit_line(&k->e, "for (int64_t s = 0; s < %s; s++)", emit_dim(k->w->arena, image.shape.d[0]));
    emit_line(&k->e, "for (int64_t oy = 0; oy < %lld; oy++)", (long long)g->oh);
    emit_open(&k->e, "for (int64_t ox = 0; ox < %lld; ox++)", (long long)g->ow);
    emit_input_pixel(&k->e, g, "s", "oy", "ox");
    const char *row = arena_printf(k->w->arena, "(s * %lld + oy) * %lld + ox", (long long)g->oh, (long long)g->ow);
    emit_line(&k->e, "v%d = fma_f32(%s, %s, v%d);", sum, group_channel(k, &image, g->oc / g->groups, g->c / g->groups),
              cuda_element_at(k, &dy, row, "c"), sum);
    emit_close(&k->e);
}

amp_status cuda_emit_sums(CudaKernel *k, const Op *o) {
    if (o->code == OP_batch_contract) return emit_batch(k, o);
    Windows g = ir_windows(k->w->f, o);
    if (o->code == OP_conv_weight) emit_weights(k, o, &g);
    else emit_pixels(k, o, &g);
    return AMP_OK;
}
