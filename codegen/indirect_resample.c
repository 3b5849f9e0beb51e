/* indirect_resample.c: images in another size.  Each side by itself says which elements of x an element of y is made
 * of, and the share of each; a pixel's share is the product of both.  Vectors go along the channels.
 *
 * i0, i1, i2 are sample, row and column of the result's pixel; py, px: the operand's; wy, wx: the share along each
 * side.
 */
#include "codegen/indirect.h"

#include <string.h>

/* One side: |in| elements of x, |out| of y.  Bilinear: y's element i is at max(i * step + start, 0) / unit in x. */
typedef struct Side {
    int64_t in, out, step, start, unit;
    bool area, nearest;
} Side;

static Side side_of(const Op *o, int64_t in, int64_t out) {
    bool corners = ir_attr(o, "align_corners")->b;
    Side s = {.in = in, .out = out, .step = 2 * in, .start = in - out, .unit = 2 * out};
    s.area = !strcmp(ir_attr(o, "mode")->s, "area");
    s.nearest = !strcmp(ir_attr(o, "mode")->s, "nearest");
    if (corners) s.step = in - 1, s.start = 0, s.unit = out > 1 ? out - 1 : 1;
    return s;
}

static const char *const axes[] = {"y", "x"};

static const char *quotient(const Emitter *e, const char *number, int64_t divisor) {
    const char *how = e->per_thread ? "quotient(%s, %lld)" : "(%s) / %lld";
    return arena_printf(e->w->arena, how, number, (long long)divisor);
}

/* The elements of x, first to before end, whose mean element |i| of y is. */
static void put_window(Emitter *e, const Side *s, const char *p, const char *i) {
    Arena *a = e->w->arena;
    const char *from = arena_printf(a, "%s * %lld", i, (long long)s->in);
    const char *to = arena_printf(a, "%s + %lld", from, (long long)(s->in + s->out - 1));
    emit_line(e, "const int64_t first%s = %s, end%s = %s;", p, quotient(e, from, s->out), p, quotient(e, to, s->out));
}

/* Element |i| of y: the first of its two elements of x, and the share of the second one. */
static void put_place(Emitter *e, const Side *s, const char *p, const char *i) {
    emit_line(e, "const int64_t a%s = %s * %lld + %lld, t%s = a%s < 0 ? 0 : a%s;", p, i, (long long)s->step,
              (long long)s->start, p, p, p);
    emit_line(e, "const int64_t first%s = %s;", p, quotient(e, arena_printf(e->w->arena, "t%s", p), s->unit));
    emit_line(e, "const float second%s = (float)(t%s - first%s * %lld) / %lld.0f;", p, p, p, (long long)s->unit,
              (long long)s->unit);
}

/* The share of x's element |j|, one of y's two; the last element of x has no neighbour. */
static void put_bilinear_share(Emitter *e, const Side *s, const char *p, const char *j) {
    emit_line(e, "const float w%s = %s > first%s ? second%s : %s < %lld ? 1.0f - second%s : 1.0f;", p, j, p, p, j,
              (long long)(s->in - 1), p);
}

/* Of the elements |i| of y whose nearest is x's, first to before end: i in / out is in [j, j + 1). */
static void put_nearest_wholes(Emitter *e, const Side *s, const char *p, const char *j) {
    Arena *a = e->w->arena;
    const char *from = arena_printf(a, "%s * %lld + %lld", j, (long long)s->out, (long long)(s->in - 1));
    const char *to = arena_printf(a, "%s * %lld + %lld", j, (long long)s->out, (long long)(s->out + s->in - 1));
    emit_line(e, "const int64_t first%s = %s, end%s = %s;", p, quotient(e, from, s->in), p, quotient(e, to, s->in));
    emit_line(e, "const float w%s = 1.0f;", p);
}

static void put_area_share(Emitter *e, const char *p) {
    emit_line(e, "const float w%s = 1.0f / (float)(end%s - first%s);", p, p, p);
}

/* Loops over the elements of x that make the result's pixel. */
static void open_parts(Emitter *e, const Side *s, int axis) {
    const char *p = axes[axis], *i = axis ? "i2" : "i1";
    if (s->nearest) {
        const char *at = arena_printf(e->w->arena, "%s * %lld", i, (long long)s->in);
        emit_line(e, "const int64_t first%s = %s;", p, quotient(e, at, s->out));
        emit_line(e, "const float w%s = 1.0f;", p);
        emit_open(e, "for (int64_t p%s = first%s; p%s <= first%s; p%s++)", p, p, p, p, p); /* of one */
        return;
    }
    if (s->area) put_window(e, s, p, i);
    else put_place(e, s, p, i);
    if (s->area) emit_open(e, "for (int64_t p%s = first%s; p%s < end%s; p%s++)", p, p, p, p, p);
    else
        emit_open(e, "for (int64_t p%s = first%s; p%s <= first%s + 1 && p%s < %lld; p%s++)", p, p, p, p, p,
                  (long long)s->in, p);
    if (s->area) put_area_share(e, p);
    else put_bilinear_share(e, s, p, arena_printf(e->w->arena, "p%s", p));
}

/* Loops over the elements of y that the result's pixel, one of x, is part of. */
static void open_wholes(Emitter *e, const Side *s, int axis) {
    Arena *a = e->w->arena;
    const char *p = axes[axis], *j = axis ? "i2" : "i1", *i = arena_printf(a, "p%s", p);
    if (s->nearest) {
        put_nearest_wholes(e, s, p, j);
        emit_open(e, "for (int64_t p%s = first%s; p%s < end%s; p%s++)", p, p, p, p, p);
        return;
    }
    if (s->area) { /* windows of y over x are windows of x over y */
        Side back = {.in = s->out, .out = s->in};
        put_window(e, &back, arena_printf(a, "_%s", p), j);
        emit_open(e, "for (int64_t p%s = first_%s; p%s < end_%s; p%s++)", p, p, p, p, p);
        put_window(e, s, p, i);
        put_area_share(e, p);
        return;
    }
    long long step = s->step ? (long long)s->step : 1, unit = (long long)s->unit;
    emit_line(e, "const int64_t from%s = ((%s - 1) * %lld - %lld) / %lld, to%s = ((%s + 1) * %lld - %lld) / %lld;", p,
              j, unit, (long long)s->start, step, p, j, unit, (long long)s->start, step);
    emit_open(e, "for (int64_t p%s = from%s < 0 ? 0 : from%s; p%s <= to%s && p%s < %lld; p%s++)", p, p, p, p, p, p,
              (long long)s->out, p);
    put_place(e, s, p, i);
    emit_line(e, "if (%s < first%s || %s > first%s + 1) continue;", j, p, j, p);
    put_bilinear_share(e, s, p, j);
}

amp_status indirect_emit_resample(Emitter *e, const Op *o) {
    const Shape *from = ir_shape(e->w->f, o->in[0]), *to = ir_shape(e->w->f, o->out[0]);
    bool back = o->code == OP_resample_grad;
    Memory m = indirect_memory(e, o, 0);
    int sum = walk_number(e->w, o->out[0]);
    indirect_put_zero(e, o);
    for (int axis = 0; axis < 2; axis++) {
        int64_t own = to->d[1 + axis].mul, other = from->d[1 + axis].mul;
        Side s = back ? side_of(o, own, other) : side_of(o, other, own);
        (back ? open_wholes : open_parts)(e, &s, axis);
    }
    emit_line(e, "const int64_t pixel = (i0 * %lld + py) * %lld + px;", (long long)from->d[1].mul,
              (long long)from->d[2].mul);
    const char *share = arena_printf(e->w->arena, e->spelling->splat, "wy * wx");
    const char *x = indirect_read(e, &m, "pixel", e->spelling->column);
    indirect_open_lanes(e, o);
    emit_line(e, "v%d = fma_%s(%s, %s, v%d);", sum, emit_suffix(AMP_DT_F32, !e->per_thread), share, x, sum);
    indirect_close_lanes(e);
    emit_close(e);
    emit_close(e);
    return AMP_OK;
}
