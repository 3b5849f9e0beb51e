/* indirect_window.c: pooling over windows of channels-last images: the rows of the result are pixels, and each pixel of a window is a
 * row of the operand. */
#include "codegen/cuda/kernel.h"
#include "codegen/emit_window.h"

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
    bool whole = emit_is_inside(g);
    if (!whole) emit_line(&k->e, "bool met = false;");
    emit_line(&k->e, "v%d = -INF, v%d = 0;", best, which);
    emit_open_windows(&k->e, g);
    AMP_TRY(emit_pixel(k, o));
    emit_open(&k->e, "if (%s(!(x <= v%d) && v%d == v%d))", whole ? "" : "!met || ", best, best, best);
    emit_line(&k->e, "v%d = x, v%d = kh * %lld + kw;", best, which, (long long)g->kw);
    emit_close(&k->e);
    if (!whole) emit_line(&k->e, "met = true;");
    emit_close_windows(&k->e);
    return AMP_OK;
}

static amp_status emit_sum(CudaKernel *k, const Op *o, const Windows *g, bool backward) {
    int sum = walk_number(k->w, o->out[0]);
    emit_line(&k->e, "v%d = 0.0f;", sum);
    if (backward) emit_open_holders(&k->e, g);
    else emit_open_windows(&k->e, g);
    AMP_TRY(emit_pixel(k, o));
    emit_line(&k->e, "v%d = v%d + x;", sum, sum);
    emit_close_windows(&k->e);
    return AMP_OK;
}

static amp_status emit_max_grad(CudaKernel *k, const Op *o, const Windows *g) {
    CudaMemory dy = cuda_memory(k, o, 0), which = cuda_memory(k, o, 1);
    int sum = walk_number(k->w, o->out[0]);
    emit_line(&k->e, "v%d = 0.0f;", sum);
    emit_open_holders(&k->e, g);
    emit_line(&k->e, "const bool chosen = %s == kh * %lld + kw;", cuda_element_at(k, &which, "pixel", "c"),
              (long long)g->kw);
    emit_line(&k->e, "v%d = v%d + (chosen ? %s : 0.0f);", sum, sum, cuda_element_at(k, &dy, "pixel", "c"));
    emit_close_windows(&k->e);
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
