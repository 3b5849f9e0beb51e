/* emit_window.c: see emit_window.h. */
#include "codegen/emit_window.h"

static const char *const axes[] = {"y", "x"}, *const taps[] = {"kh", "kw"};

static bool always_inside(const Windows *g, int axis) {
    const int64_t inside[] = {g->h, g->w}, outside[] = {g->oh, g->ow}, kernel[] = {g->kh, g->kw};
    return !g->padding[axis] && (outside[axis] - 1) * g->stride[axis] + kernel[axis] <= inside[axis];
}

bool emit_is_inside(const Windows *g) { return always_inside(g, 0) && always_inside(g, 1); }

void emit_open_windows(Emitter *e, const Windows *g) {
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

void emit_open_holders(Emitter *e, const Windows *g) {
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

void emit_close_windows(Emitter *e) {
    emit_close(e);
    emit_close(e);
}

void emit_input_pixel(Emitter *e, const Windows *g, const char *sample, const char *oy, const char *ox) {
    emit_line(e, "const int64_t py = %s * %lld + kh * %lld - %lld, px = %s * %lld + kw * %lld - %lld;", oy,
              (long long)g->stride[0], (long long)g->dilation[0], (long long)g->padding[0], ox, (long long)g->stride[1],
              (long long)g->dilation[1], (long long)g->padding[1]);
    emit_line(e, "if (py < 0 || py >= %lld || px < 0 || px >= %lld) continue;", (long long)g->h, (long long)g->w);
    emit_line(e, "const int64_t pixel = (%s * %lld + py) * %lld + px;", sample, (long long)g->h, (long long)g->w);
}

void emit_output_pixel(Emitter *e, const Windows *g) {
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
