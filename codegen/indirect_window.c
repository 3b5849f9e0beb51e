/* indirect_window.c: loops over the windows of channels-last images, and pooling over them: the rows of the result are
 * pixels, and each pixel of a window is a row of the operand: vectors go along the channels.
 *
 * i0, i1, i2 are sample, row and column of the result's pixel; `pixel` is the row of the operand that a loop body
 * reads.
 */
#include "codegen/indirect.h"

/* ---- loops over windows ------------------------------------------------------------------------------------------ */

static const char *const axes[] = {"y", "x"}, *const taps[] = {"kh", "kw"};

static bool always_inside(const Windows *g, int axis) {
    const int64_t inside[] = {g->h, g->w}, outside[] = {g->oh, g->ow}, kernel[] = {g->kh, g->kw};
    return !g->padding[axis] && (outside[axis] - 1) * g->stride[axis] + kernel[axis] <= inside[axis];
}

/* Whether every window is inside the image: no element of one is padding. */
static bool is_inside(const Windows *g) { return always_inside(g, 0) && always_inside(g, 1); }

/* Loops over the elements (kh, kw) of the window of result pixel (i1, i2); py, px: the operand's pixel, inside the
 * image. */
static void open_windows(Emitter *e, const Windows *g) {
    const int64_t inside[] = {g->h, g->w}, kernel[] = {g->kh, g->kw};
    for (int a = 0; a < 2; a++) {
        const char *at = taps[a], *p = axes[a];
        if (!e->per_thread && kernel[a] <= 4) emit_line(e, "UNROLL");
        emit_open(e, "for (%s %s = 0; %s < %lld; %s++)", e->per_thread ? "int32_t" : "int64_t", at, at,
                  (long long)kernel[a], at);
        emit_line(e, "const int64_t p%s = i%d * %lld + %s - %lld;", p, a + 1, (long long)g->stride[a], at,
                  (long long)g->padding[a]);
        if (!always_inside(g, a)) emit_line(e, "if (p%s < 0 || p%s >= %lld) continue;", p, p, (long long)inside[a]);
    }
    emit_line(e, "const int64_t pixel = (i0 * %lld + py) * %lld + px;", (long long)g->h, (long long)g->w);
}

/* Loops over the windows that hold the result's pixel (i1, i2), by its offset (kh, kw) in them, ascending: the windows
 * in rows py with kh = i1 + padding - py * stride inside the window.  If windows do not overlap, one holds it. */
static void open_holders(Emitter *e, const Windows *g) {
    const int64_t sizes[] = {g->oh, g->ow}, kernel[] = {g->kh, g->kw};
    for (int a = 0; a < 2; a++) {
        const char *at = taps[a], *p = axes[a];
        long long stride = g->stride[a];
        emit_line(e,
                  e->per_thread ? "const int64_t t%s = i%d + %lld, l%s = quotient(t%s, %lld);"
                                : "const int64_t t%s = i%d + %lld, l%s = t%s / %lld;",
                  p, a + 1, (long long)g->padding[a], p, p, stride);
        if (kernel[a] <= g->stride[a]) {
            emit_line(e, "const int64_t p%s = l%s, %s = t%s - p%s * %lld;", p, p, at, p, p, stride);
            emit_open(e, "if (%s < %lld && p%s < %lld)", at, (long long)kernel[a], p, (long long)sizes[a]);
            continue;
        }
        emit_open(e, "for (int64_t p%s = l%s; p%s >= 0; p%s--)", p, p, p, p);
        emit_line(e, "const int64_t %s = t%s - p%s * %lld;", at, p, p, stride);
        emit_line(e, "if (%s >= %lld) break;", at, (long long)kernel[a]);
        emit_line(e, "if (p%s >= %lld) continue;", p, (long long)sizes[a]);
    }
    emit_line(e, "const int64_t pixel = (i0 * %lld + py) * %lld + px;", (long long)g->oh, (long long)g->ow);
}

static void close_windows(Emitter *e) {
    emit_close(e);
    emit_close(e);
}

/* ---- in a loop over taps ----------------------------------------------------------------------------------------- */

void indirect_input_pixel(Emitter *e, const Windows *g, const char *sample, const char *oy, const char *ox) {
    emit_line(e, "const int64_t py = %s * %lld + kh * %lld - %lld, px = %s * %lld + kw * %lld - %lld;", oy,
              (long long)g->stride[0], (long long)g->dilation[0], (long long)g->padding[0], ox, (long long)g->stride[1],
              (long long)g->dilation[1], (long long)g->padding[1]);
    emit_line(e, "if (py < 0 || py >= %lld || px < 0 || px >= %lld) continue;", (long long)g->h, (long long)g->w);
    emit_line(e, "const int64_t pixel = (%s * %lld + py) * %lld + px;", sample, (long long)g->h, (long long)g->w);
}

void indirect_output_pixel(Emitter *e, const Windows *g) {
    const int64_t sizes[] = {g->oh, g->ow};
    for (int a = 0; a < 2; a++) {
        const char *p = axes[a];
        emit_line(e, "const int64_t t%s = i%d + %lld - %s * %lld, p%s = t%s / %lld;", p, a + 1,
                  (long long)g->padding[a], taps[a], (long long)g->dilation[a], p, p, (long long)g->stride[a]);
        emit_line(e, "if (t%s < 0 || t%s %% %lld || p%s >= %lld) continue;", p, p, (long long)g->stride[a], p,
                  (long long)sizes[a]);
    }
    emit_line(e, "const int64_t pixel = (i0 * %lld + py) * %lld + px;", (long long)g->oh, (long long)g->ow);
}

/* ---- pooling ----------------------------------------------------------------------------------------------------- */

static const char *read_pixel(Emitter *e, const Memory *m) { return indirect_read(e, m, "pixel", e->spelling->column); }

/* x = what the op reads at `pixel`: from memory, or computed from what is there; in the op's lanes, which are left
 * open. */
static amp_status open_pixel(Emitter *e, const Op *o) {
    const char *type = emit_type(AMP_DT_F32, !e->per_thread);
    if (e->w->values[o->in[0].id].inlined) {
        AMP_TRY(indirect_emit_inlined(e, o, o->in[0], "pixel", e->spelling->column));
        emit_line(e, "const %s x = %s;", type, emit_operand(e, o->in[0], !e->per_thread));
        return AMP_OK;
    }
    Memory m = indirect_memory(e, o, 0);
    const char *x = read_pixel(e, &m);
    indirect_open_lanes(e, o);
    emit_line(e, "const %s x = %s;", type, x);
    return AMP_OK;
}

/* Takes x where it is larger.  The first of equals wins, and a NaN wins over all that come after it.  Where padding may
 * come first (not |whole|), the first element that is met wins over the start also where it is -INF. */
static void take_larger_lanes(Emitter *e, int best, int which, bool whole, long long width) {
    emit_line(e, "const vi take = %s~(x <= v%d) & ~nan_vf(v%d);", whole ? "" : "~met | ", best, best);
    if (!whole) emit_line(e, "met = splat_i(-1);");
    emit_line(e, "v%d = select_vf(take, x, v%d);", best, best);
    emit_line(e, "v%d = select_vi(take, splat_i((int32_t)(kh * %lld + kw)), v%d);", which, width, which);
}

static void take_larger(Emitter *e, int best, int which, bool whole, long long width) {
    emit_open(e, "if (%s(!(x <= v%d) && v%d == v%d))", whole ? "" : "!met || ", best, best, best);
    emit_line(e, "v%d = x, v%d = kh * %lld + kw;", best, which, width);
    emit_close(e);
}

static amp_status emit_max(Emitter *e, const Op *o, const Windows *g) {
    int best = walk_number(e->w, o->out[0]), which = walk_number(e->w, o->out[1]);
    bool whole = is_inside(g);
    if (!whole) emit_line(e, e->per_thread ? "bool met = false;" : "vi met = {0};");
    indirect_open_lanes(e, o);
    emit_line(e, e->per_thread ? "v%d = -INF, v%d = 0;" : "v%d = splat_f(-INF), v%d = splat_i(0);", best, which);
    indirect_close_lanes(e);
    open_windows(e, g);
    AMP_TRY(open_pixel(e, o));
    (e->per_thread ? take_larger : take_larger_lanes)(e, best, which, whole, (long long)g->kw);
    indirect_close_lanes(e);
    if (!whole && e->per_thread) emit_line(e, "met = true;");
    close_windows(e);
    return AMP_OK;
}

static amp_status emit_sum(Emitter *e, const Op *o, const Windows *g, bool backward) {
    int sum = walk_number(e->w, o->out[0]);
    indirect_put_zero(e, o);
    if (backward) open_holders(e, g);
    else open_windows(e, g);
    AMP_TRY(open_pixel(e, o));
    emit_line(e, "v%d = v%d + x;", sum, sum);
    indirect_close_lanes(e);
    close_windows(e);
    return AMP_OK;
}

static amp_status emit_max_grad(Emitter *e, const Op *o, const Windows *g) {
    Memory dy = indirect_memory(e, o, 0), which = indirect_memory(e, o, 1);
    int sum = walk_number(e->w, o->out[0]);
    indirect_put_zero(e, o);
    open_holders(e, g);
    const char *at = read_pixel(e, &which), *x = read_pixel(e, &dy);
    indirect_open_lanes(e, o);
    emit_line(e,
              e->per_thread ? "const bool chosen = %s == kh * %lld + kw;"
                            : "const vi chosen = %s == (int32_t)(kh * %lld + kw);",
              at, (long long)g->kw);
    emit_line(e, e->per_thread ? "v%d = v%d + (chosen ? %s : 0.0f);" : "v%d = v%d + keep_vf(%s, chosen);", sum, sum, x);
    indirect_close_lanes(e);
    close_windows(e);
    return AMP_OK;
}

amp_status indirect_emit_window(Emitter *e, const Op *o) {
    Windows g = ir_windows(e->w->f, o);
    switch (o->code) {
    case OP_window_max: return emit_max(e, o, &g);
    case OP_window_sum: return emit_sum(e, o, &g, false);
    case OP_window_sum_grad: return emit_sum(e, o, &g, true);
    default: return emit_max_grad(e, o, &g);
    }
}
