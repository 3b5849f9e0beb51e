/* indirect_window.c: pooling over windows of channels-last images: the rows of the result are pixels, and each pixel of a
 * window is a row of the operand: vectors run along the channels. */
#include "codegen/cpu/kernel.h"

static bool always_inside(const Windows *g, int axis) {
    const int64_t inside[] = {g->h, g->w}, outside[] = {g->oh, g->ow}, kernel[] = {g->kh, g->kw};
    return !g->padding[axis] && (outside[axis] - 1) * g->stride[axis] + kernel[axis] <= inside[axis];
}

/* Loops over the elements of the window of result pixel (i1, i2); py, px: the operand's pixel, inside the image. */
static void open_windows(CpuKernel *k, const Windows *g) {
    static const char *const axes[] = {"y", "x"}, *const taps[] = {"kh", "kw"};
    const int64_t inside[] = {g->h, g->w}, kernel[] = {g->kh, g->kw};
    for (int a = 0; a < 2; a++) {
        const char *at = taps[a], *p = axes[a];
        if (kernel[a] <= 4) emit_line(&k->e, "UNROLL");
        emit_open(&k->e, "for (int64_t %s = 0; %s < %lld; %s++)", at, at, (long long)kernel[a], at);
        emit_line(&k->e, "const int64_t p%s = i%d * %lld + %s - %lld;", p, a + 1, (long long)g->stride[a], at,
                  (long long)g->padding[a]);
        if (!always_inside(g, a)) emit_line(&k->e, "if (p%s < 0 || p%s >= %lld) continue;", p, p, (long long)inside[a]);
    }
    emit_line(&k->e, "const int64_t pixel = (i0 * %lld + py) * %lld + px;", (long long)g->h, (long long)g->w);
}

/* Loops over the windows that hold the result's pixel (i1, i2), by its place (kh, kw) in them, ascending: those of rows
 * py with kh = i1 + padding - py * stride inside the window.  Windows that do not overlap hold it once. */
static void open_holders(CpuKernel *k, const Windows *g) {
    static const char *const axes[] = {"y", "x"};
    const int64_t sizes[] = {g->oh, g->ow}, kernel[] = {g->kh, g->kw};
    for (int a = 0; a < 2; a++) {
        const char *at = a ? "kw" : "kh", *p = axes[a];
        long long stride = g->stride[a];
        emit_line(&k->e, "const int64_t t%s = i%d + %lld, l%s = t%s / %lld;", p, a + 1, (long long)g->padding[a], p, p,
                  stride);
        if (kernel[a] <= g->stride[a]) {
            emit_line(&k->e, "const int64_t p%s = l%s, %s = t%s - p%s * %lld;", p, p, at, p, p, stride);
            emit_open(&k->e, "if (%s < %lld && p%s < %lld)", at, (long long)kernel[a], p, (long long)sizes[a]);
            continue;
        }
        emit_open(&k->e, "for (int64_t p%s = l%s; p%s >= 0; p%s--)", p, p, p, p);
        emit_line(&k->e, "const int64_t %s = t%s - p%s * %lld;", at, p, p, stride);
        emit_line(&k->e, "if (%s >= %lld) break;", at, (long long)kernel[a]);
        emit_line(&k->e, "if (p%s >= %lld) continue;", p, (long long)sizes[a]);
    }
    emit_line(&k->e, "const int64_t pixel = (i0 * %lld + py) * %lld + px;", (long long)g->oh, (long long)g->ow);
}

static void close_loops(CpuKernel *k) {
    emit_close(&k->e);
    emit_close(&k->e);
}

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
    bool whole = always_inside(g, 0) && always_inside(g, 1);
    if (!whole) emit_line(&k->e, "vi met = {0};");
    emit_line(&k->e, "v%d = splat_f(-INF), v%d = splat_i(0);", best, which);
    open_windows(k, g);
    AMP_TRY(emit_pixel(k, o));
    emit_line(&k->e, "const vi take = %s~(x <= v%d) & ~nan_vf(v%d);", whole ? "" : "~met | ", best, best);
    if (!whole) emit_line(&k->e, "met = splat_i(-1);");
    emit_line(&k->e, "v%d = select_vf(take, x, v%d);", best, best);
    emit_line(&k->e, "v%d = select_vi(take, splat_i((int32_t)(kh * %lld + kw)), v%d);", which, (long long)g->kw, which);
    close_loops(k);
    return AMP_OK;
}

static amp_status emit_sum(CpuKernel *k, const Op *o, const Windows *g, bool backward) {
    int sum = walk_number(k->w, o->out[0]);
    emit_line(&k->e, "v%d = splat_f(0.0f);", sum);
    if (backward) open_holders(k, g);
    else open_windows(k, g);
    AMP_TRY(emit_pixel(k, o));
    emit_line(&k->e, "v%d = v%d + x;", sum, sum);
    close_loops(k);
    return AMP_OK;
}

static amp_status emit_max_grad(CpuKernel *k, const Op *o, const Windows *g) {
    Memory dy = cpu_memory(k, o, 0), which = cpu_memory(k, o, 1);
    int sum = walk_number(k->w, o->out[0]);
    emit_line(&k->e, "v%d = splat_f(0.0f);", sum);
    open_holders(k, g);
    emit_line(&k->e, "const vi chosen = %s == (int32_t)(kh * %lld + kw);", cpu_vector_at(k, &which, "pixel", "j"),
              (long long)g->kw);
    emit_line(&k->e, "v%d = v%d + keep_vf(%s, chosen);", sum, sum, cpu_vector_at(k, &dy, "pixel", "j"));
    close_loops(k);
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
