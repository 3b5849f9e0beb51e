/* indirect_window.c: pooling over windows of channels-last images: the rows of the result are pixels, and each pixel of a
 * window is a row of the operand: vectors run along the channels. */
#include "codegen/cpu/kernel.h"
#include "codegen/emit_window.h"

/* x = what the op reads at (pixel, j): from memory, or computed from what lies there. */
static amp_status emit_pixel(CpuKernel *k, const Op *o) {
    if (k->w->values[o->in[0].id].inlined) {
        AMP_TRY(cpu_emit_inlined(k, o->in[0], "pixel", "j"));
        emit_line(&k->e, "const vf x = %s;", emit_operand(&k->e, o->in[0], true));
        return AMP_OK;
    }
    Memory x = cpu_memory(k, o, 0);
    emit_line(&k->e, "const vf x = %s;", cpu_vector_at(k, &x, "pixel", "j"));
    return AMP_OK;
}

/* The first of equals wins, and a NaN wins over all that come after it.  Where padding may come first, the first element
 * that is met wins over the start also where it is -INF. */
static amp_status emit_max(CpuKernel *k, const Op *o, const Windows *g) {
    int best = walk_number(k->w, o->out[0]), which = walk_number(k->w, o->out[1]);
    bool whole = emit_is_inside(g);
    if (!whole) emit_line(&k->e, "vi met = {0};");
    emit_line(&k->e, "v%d = splat_f(-INF), v%d = splat_i(0);", best, which);
    emit_open_windows(&k->e, g);
    AMP_TRY(emit_pixel(k, o));
    emit_line(&k->e, "const vi take = %s~(x <= v%d) & ~nan_vf(v%d);", whole ? "" : "~met | ", best, best);
    if (!whole) emit_line(&k->e, "met = splat_i(-1);");
    emit_line(&k->e, "v%d = select_vf(take, x, v%d);", best, best);
    emit_line(&k->e, "v%d = select_vi(take, splat_i((int32_t)(kh * %lld + kw)), v%d);", which, (long long)g->kw, which);
    emit_close_windows(&k->e);
    return AMP_OK;
}

static amp_status emit_sum(CpuKernel *k, const Op *o, const Windows *g, bool backward) {
    int sum = walk_number(k->w, o->out[0]);
    emit_line(&k->e, "v%d = splat_f(0.0f);", sum);
    if (backward) emit_open_holders(&k->e, g);
    else emit_open_windows(&k->e, g);
    AMP_TRY(emit_pixel(k, o));
    emit_line(&k->e, "v%d = v%d + x;", sum, sum);
    emit_close_windows(&k->e);
    return AMP_OK;
}

static amp_status emit_max_grad(CpuKernel *k, const Op *o, const Windows *g) {
    Memory dy = cpu_memory(k, o, 0), which = cpu_memory(k, o, 1);
    int sum = walk_number(k->w, o->out[0]);
    emit_line(&k->e, "v%d = splat_f(0.0f);", sum);
    emit_open_holders(&k->e, g);
    emit_line(&k->e, "const vi chosen = %s == (int32_t)(kh * %lld + kw);", cpu_vector_at(k, &which, "pixel", "j"),
              (long long)g->kw);
    emit_line(&k->e, "v%d = v%d + keep_vf(%s, chosen);", sum, sum, cpu_vector_at(k, &dy, "pixel", "j"));
    emit_close_windows(&k->e);
    return AMP_OK;
}

amp_status cpu_emit_window(CpuKernel *k, const Op *o) {
    Windows g = ir_windows(k->w->f, o);
    switch (o->code) {
    case OP_window_max: return emit_max(k, o, &g);
    case OP_window_sum: return emit_sum(k, o, &g, false);
    case OP_window_sum_grad: return emit_sum(k, o, &g, true);
    default: return emit_max_grad(k, o, &g);
    }
}
