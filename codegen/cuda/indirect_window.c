/* indirect_window.c: pooling over windows of channels-last images: the rows of the result are pixels, and each pixel of a window is a
 * row of the operand. */
#include "codegen/cuda/kernel.h"

static bool always_inside(const Windows *g, int axis) {
    const int64_t inside[] = {g->h, g->w}, outside[] = {g->oh, g->ow}, kernel[] = {g->kh, g->kw};
    return !g->padding[axis] && (outside[axis] - 1) * g->stride[axis] + kernel[axis] <= inside[axis];
}

/* Loops over the elements of the window of result pixel (i1, i2); py, px: the operand's pixel, inside the image. */
static void open_windows(CudaKernel *k, const Windows *g) {
    static const char *const axes[] = {"y", "x"}, *const taps[] = {"kh", "kw"};
    const int64_t inside[] = {g->h, g->w}, kernel[] = {g->kh, g->kw};
    for (int a = 0; a < 2; a++) {
        const char *at = taps[a], *p = axes[a];
        emit_open(&k->e, "for (int32_t %s = 0; %s < %lld; %s++)", at, at, (long long)kernel[a], at);
        emit_line(&k->e, "const int64_t p%s = i%d * %lld + %s - %lld;", p, a + 1, (long long)g->stride[a], at,
                  (long long)g->padding[a]);
        if (!always_inside(g, a)) emit_line(&k->e, "if (p%s < 0 || p%s >= %lld) continue;", p, p, (long long)inside[a]);
    }
    emit_line(&k->e, "const int64_t pixel = (i0 * %lld + py) * %lld + px;", (long long)g->h, (long long)g->w);
}

/* Loops over the windows that hold the result's pixel (i1, i2), by its place (kh, kw) in them, ascending: those of rows
 * py with kh = i1 + padding - py * stride inside the window.  Windows that do not overlap hold it once. */
static void open_holders(CudaKernel *k, const Windows *g) {
    static const char *const axes[] = {"y", "x"}, *const taps[] = {"kh", "kw"};
    const int64_t sizes[] = {g->oh, g->ow}, kernel[] = {g->kh, g->kw};
    for (int a = 0; a < 2; a++) {
        const char *at = taps[a], *p = axes[a];
        long long stride = g->stride[a];
        emit_line(&k->e, "const int64_t t%s = i%d + %lld, l%s = quotient(t%s, %lld);", p, a + 1,
                  (long long)g->padding[a], p, p, stride);
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

static void close_loops(CudaKernel *k) {
    emit_close(&k->e);
    emit_close(&k->e);
}

/* x = what the op reads at (pixel, c): from memory, or computed from what lies there. */
static amp_status emit_pixel(CudaKernel *k, const Op *o) {
    if (k->w->values[o->in[0].id].inlined) {
        AMP_TRY(cuda_emit_inlined(k, o->in[0], "pixel", "c"));
        emit_line(&k->e, "const float x = %s;", emit_operand(&k->e, o->in[0], false));
        return AMP_OK;
    }
    CudaMemory x = cuda_memory(k, o, 0);
    emit_line(&k->e, "const float x = %s;", cuda_element_at(k, &x, "pixel", "c"));
    return AMP_OK;
}

/* The first of equals wins, and a NaN wins over all that come after it.  Where padding may come first, the first element
 * that is met wins over the start also where it is -INF. */
static amp_status emit_max(CudaKernel *k, const Op *o, const Windows *g) {
    int best = walk_number(k->w, o->out[0]), which = walk_number(k->w, o->out[1]);
    bool whole = always_inside(g, 0) && always_inside(g, 1);
    if (!whole) emit_line(&k->e, "bool met = false;");
    emit_line(&k->e, "v%d = -INF, v%d = 0;", best, which);
    open_windows(k, g);
    AMP_TRY(emit_pixel(k, o));
    emit_open(&k->e, "if (%s(!(x <= v%d) && v%d == v%d))", whole ? "" : "!met || ", best, best, best);
    emit_line(&k->e, "v%d = x, v%d = kh * %lld + kw;", best, which, (long long)g->kw);
    emit_close(&k->e);
    if (!whole) emit_line(&k->e, "met = true;");
    close_loops(k);
    return AMP_OK;
}

static amp_status emit_sum(CudaKernel *k, const Op *o, const Windows *g, bool backward) {
    int sum = walk_number(k->w, o->out[0]);
    emit_line(&k->e, "v%d = 0.0f;", sum);
    if (backward) open_holders(k, g);
    else open_windows(k, g);
    AMP_TRY(emit_pixel(k, o));
    emit_line(&k->e, "v%d = v%d + x;", sum, sum);
    close_loops(k);
    return AMP_OK;
}

static amp_status emit_max_grad(CudaKernel *k, const Op *o, const Windows *g) {
    CudaMemory dy = cuda_memory(k, o, 0), which = cuda_memory(k, o, 1);
    int sum = walk_number(k->w, o->out[0]);
    emit_line(&k->e, "v%d = 0.0f;", sum);
    open_holders(k, g);
    emit_line(&k->e, "const bool chosen = %s == kh * %lld + kw;", cuda_element_at(k, &which, "pixel", "c"),
              (long long)g->kw);
    emit_line(&k->e, "v%d = v%d + (chosen ? %s : 0.0f);", sum, sum, cuda_element_at(k, &dy, "pixel", "c"));
    close_loops(k);
    return AMP_OK;
}

amp_status cuda_emit_window(CudaKernel *k, const Op *o) {
    Windows g = ir_windows(k->w->f, o);
    switch (o->code) {
    case OP_window_max: return emit_max(k, o, &g);
    case OP_window_sum: return emit_sum(k, o, &g, false);
    case OP_window_sum_grad: return emit_sum(k, o, &g, true);
    default: return emit_max_grad(k, o, &g);
    }
}
