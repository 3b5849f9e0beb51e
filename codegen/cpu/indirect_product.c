/* indirect_product.c: sums of products that are no 32 x 32 tiles: batch_contract, and convolutions in groups.  A vector
 * runs along the columns of the result; the chain of each sum is ascending, as in the runtime's products. */
#include "codegen/cpu/kernel.h"
#include "codegen/emit_window.h"

/* ---- batch_contract ---------------------------------------------------------------------------------------------- */

/* result [B.., M, N]: row = b * M + m */
static amp_status emit_batch(CpuKernel *k, const Op *o) {
    Arena *a = k->w->arena;
    Memory x = cpu_memory(k, o, 0), y = cpu_memory(k, o, 1);
    bool ta = ir_attr(o, "ta")->b, tb = ir_attr(o, "tb")->b;
    const Shape *s = ir_shape(k->w->f, o->out[0]);
    Dim inner = x.shape.d[x.shape.rank - (ta ? 2 : 1)], rows = s->d[s->rank - 2];
    const char *m = emit_dim(a, rows), *depth = emit_dim(a, inner);
    int sum = walk_number(k->w, o->out[0]);
    emit_line(&k->e, "MAYBE_UNUSED const int64_t batch = (int64_t)row / (%s), m = (int64_t)row %% (%s);", m, m);
    emit_line(&k->e, "v%d = splat_f(0.0f);", sum);
    emit_open(&k->e, "for (int64_t i = 0; i < %s; i++)", depth);
    const char *by_k = arena_printf(a, "batch * (%s) + i", depth);
    const char *left = ta ? cpu_element_at(k, &x, by_k, "m") : cpu_element_at(k, &x, "(int64_t)row", "i");
    if (tb) {
        const char *lane =
            cpu_element_at(k, &y, arena_printf(a, "(batch * %lld + j + l)", (long long)s->d[s->rank - 1].mul), "i");
        emit_line(&k->e, "float y[W] = {0};");
        emit_line(&k->e, "for (int64_t l = 0; l < %s; l++) y[l] = %s;", cpu_lanes(k), lane);
    }
    emit_line(&k->e, "v%d = fma_vf(splat_f(%s), %s, v%d);", sum, left,
              tb ? "load_f32(y)" : cpu_vector_at(k, &y, by_k, "j"), sum);
    emit_close(&k->e);
    return AMP_OK;
}

/* ---- convolutions in groups -------------------------------------------------------------------------------------- */

/* `const vf x`: channel i of the group of each lane, at pixel |pixel| of |m|; the lanes' groups have |width| columns each,
 * and |depth| channels of |m|. */
static void put_group_channels(CpuKernel *k, const Memory *m, int64_t width, int64_t depth) {
    if (width == 1 && depth == 1) {
        emit_line(&k->e, "const vf x = %s;", cpu_vector_at(k, m, "pixel", "j"));
        return;
    }
    if (width % 16 == 0) { /* all lanes are of one group */
        const char *column = arena_printf(k->w->arena, "j / %lld * %lld + i", (long long)width, (long long)depth);
        emit_line(&k->e, "const vf x = splat_f(%s);", cpu_element_at(k, m, "pixel", column));
        return;
    }
    const char *column = arena_printf(k->w->arena, "(j + l) / %lld * %lld + i", (long long)width, (long long)depth);
    emit_line(&k->e, "float lanes[W] = {0};");
    emit_line(&k->e, "for (int64_t l = 0; l < %s; l++) lanes[l] = %s;", cpu_lanes(k),
              cpu_element_at(k, m, "pixel", column));
    emit_line(&k->e, "const vf x = load_f32(lanes);");
}

/* conv and conv_data: sums over taps and the channels of the group. */
static void emit_pixels(CpuKernel *k, const Op *o, const Windows *g) {
    Memory image = cpu_memory(k, o, 0), weights = cpu_memory(k, o, 1);
    bool forward = o->code == OP_conv;
    int64_t depth = (forward ? g->c : g->oc) / g->groups, width = (forward ? g->oc : g->c) / g->groups;
    int sum = walk_number(k->w, o->out[0]);
    emit_line(&k->e, "v%d = splat_f(0.0f);", sum);
    emit_line(&k->e, "for (int64_t kh = 0; kh < %lld; kh++)", (long long)g->kh);
    emit_open(&k->e, "for (int64_t kw = 0; kw < %lld; kw++)", (long long)g->kw);
    if (forward) emit_input_pixel(&k->e, g, "i0", "i1", "i2");
    else emit_output_pixel(&k->e, g);
    emit_open(&k->e, "for (int64_t i = 0; i < %lld; i++)", (long long)depth);
    put_group_channels(k, &image, width, depth);
    const char *row = arena_printf(k->w->arena, "(kh * %lld + kw) * %lld + i", (long long)g->kw, (long long)depth);
    emit_line(&k->e, "v%d = fma_vf(x, %s, v%d);", sum, cpu_vector_at(k, &weights, row, "j"), sum);
    emit_close(&k->e);
    emit_close(&k->e);
}

/* conv_weight: result [KH, KW, C / groups, O], row (kh, kw, i), summed over the pixels of y. */
static void emit_weights(CpuKernel *k, const Op *o, const Windows *g) {
    Memory image = cpu_memory(k, o, 0), dy = cpu_memory(k, o, 1);
    int64_t depth = g->c / g->groups, width = g->oc / g->groups;
    int sum = walk_number(k->w, o->out[0]);
    emit_line(&k->e, "const int64_t kh = i0, kw = i1, i = i2;");
    emit_line(&k->e, "v%d = splat_f(0.0f);", sum);
    emit_line(&k->e, "for (int64_t s = 0; s < %s; s++)", emit_dim(k->w->arena, image.shape.d[0]));
    emit_line(&k->e, "for (int64_t oy = 0; oy < %lld; oy++)", (long long)g->oh);
    emit_open(&k->e, "for (int64_t ox = 0; ox < %lld; ox++)", (long long)g->ow);
    emit_input_pixel(&k->e, g, "s", "oy", "ox");
    put_group_channels(k, &image, width, depth);
    const char *row = arena_printf(k->w->arena, "(s * %lld + oy) * %lld + ox", (long long)g->oh, (long long)g->ow);
    emit_line(&k->e, "v%d = fma_vf(x, %s, v%d);", sum, cpu_vector_at(k, &dy, row, "j"), sum);
    emit_close(&k->e);
}

amp_status cpu_emit_sums(CpuKernel *k, const Op *o) {
    if (o->code == OP_batch_contract) return emit_batch(k, o);
    Windows g = ir_windows(k->w->f, o);
    if (o->code == OP_conv_weight) emit_weights(k, o, &g);
    else emit_pixels(k, o, &g);
    return AMP_OK;
}
