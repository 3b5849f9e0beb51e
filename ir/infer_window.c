/* infer_window.c: shapes of windows that walk over images, and of pooling. */
#include "ir/infer.h"

/* ---- along one dimension ----------------------------------------------------------------------------------------- */

/* Beyond this no size is meant: sums and products of two stay far from overflow. */
static const int64_t LARGEST = (int64_t)1 << 30;

int64_t infer_window_count(int64_t size, WindowSteps w) {
    int64_t reach = w.dilation * (w.kernel - 1) + 1, room = size + 2 * w.padding;
    return room < reach ? 0 : (room - reach) / w.stride + 1;
}

static int64_t pair_at(const Op *o, const char *name, int axis, int64_t otherwise) {
    const AttrValue *v = ir_attr(o, name);
    return v ? v->dims.at[axis] : otherwise;
}

static bool is_between(int64_t v, int64_t low) { return v >= low && v <= LARGEST; }

static const char *check_pairs(const Inferring *c) {
    static const char *const names[] = {"kernel", "stride", "padding", "dilation"};
    for (int i = 0; i < 4; i++) {
        const AttrValue *v = ir_attr(c->o, names[i]);
        if (v && v->dims.count != 2) return infer_mismatch(c, "%s is not a pair", names[i]);
    }
    return NULL;
}

const char *infer_window_dim(const Inferring *c, int axis, Dim size, int64_t kernel, Dim *out) {
    const char *wrong = check_pairs(c), *side = axis ? "width" : "height";
    if (wrong) return wrong;
    WindowSteps w = {kernel, pair_at(c->o, "stride", axis, 1), pair_at(c->o, "padding", axis, 0),
                     pair_at(c->o, "dilation", axis, 1)};
    if (size.n) return infer_mismatch(c, "the %s of an image may not depend on N", side);
    if (!is_between(w.kernel, 1)) return infer_mismatch(c, "kernel must be at least 1");
    if (!is_between(w.stride, 1)) return infer_mismatch(c, "stride must be at least 1");
    if (!is_between(w.dilation, 1)) return infer_mismatch(c, "dilation must be at least 1");
    if (!is_between(w.padding, 0)) return infer_mismatch(c, "padding must be at least 0");
    if (!is_between(size.mul, 1))
        return infer_mismatch(c, "an image of %s %lld is out of range", side, (long long)size.mul);
    int64_t count = infer_window_count(size.mul, w);
    if (count < 1)
        return infer_mismatch(c, "the kernel does not fit: its %s is %lld, the padded image's %lld", side,
                              (long long)(w.dilation * (w.kernel - 1) + 1), (long long)(size.mul + 2 * w.padding));
    *out = dim_const(count);
    return NULL;
}

/* ---- pooling ----------------------------------------------------------------------------------------------------- */

/* |x| with its height and width, dims |at| and |at| + 1, after pooling. */
static const char *pooled(const Inferring *c, const Shape *x, int at, Shape *out) {
    if (x->rank != 4) return infer_mismatch(c, "needs images of rank 4");
    *out = *x;
    const char *wrong = check_pairs(c);
    for (int axis = 0; axis < 2 && !wrong; axis++) {
        int64_t kernel = pair_at(c->o, "kernel", axis, 1), padding = pair_at(c->o, "padding", axis, 0);
        wrong = infer_window_dim(c, axis, x->d[at + axis], kernel, &out->d[at + axis]);
        if (!wrong && padding > kernel / 2) /* else a window could lie in the padding alone */
            wrong = infer_mismatch(c, "padding is more than half the kernel");
    }
    return wrong;
}

static const char *pool_at(Inferring *c, int at, bool which) {
    Shape s;
    const char *wrong = pooled(c, infer_in(c, 0), at, &s);
    if (wrong) return wrong;
    infer_result(c, infer_dtype(c, 0), s);
    return which ? infer_result(c, AMP_DT_I32, s) : NULL;
}

/* In a graph H and W are dims 2 and 3, in core IR 1 and 2. */
const char *infer_max_pool(Inferring *c) { return pool_at(c, 2, true); }
const char *infer_pool(Inferring *c) { return pool_at(c, 2, false); }
const char *infer_window_max(Inferring *c) { return pool_at(c, 1, true); }
const char *infer_window(Inferring *c) { return pool_at(c, 1, false); }

const char *infer_global_pool(Inferring *c) {
    const Shape *x = infer_in(c, 0);
    if (x->rank != 4) return infer_mismatch(c, "needs images of rank 4");
    return infer_result(c, infer_dtype(c, 0), shape_of(2, x->d));
}

/* ---- gradients of pooling ---------------------------------------------------------------------------------------- */

/* dy, and with two of them which, have the shape that |x| has after pooling. */
static const char *pool_grad(Inferring *c, const Shape *x, int at, int count) {
    Shape s;
    const char *wrong = pooled(c, x, at, &s);
    for (int i = 0; i < count && !wrong; i++)
        wrong = infer_check_like(c, i, i ? "the chosen elements" : "the gradient", &s);
    return wrong ? wrong : infer_result(c, c->t, *x);
}

const char *infer_max_pool_grad(Inferring *c) { return pool_grad(c, infer_in(c, 2), 2, 2); }
const char *infer_avg_pool_grad(Inferring *c) { return pool_grad(c, infer_in(c, 1), 2, 1); }
const char *infer_window_max_grad(Inferring *c) { return pool_grad(c, &infer_given(c, 0)->shape, 1, 2); }
const char *infer_window_sum_grad(Inferring *c) { return pool_grad(c, &infer_given(c, 0)->shape, 1, 1); }

const char *infer_global_pool_grad(Inferring *c) {
    const Shape *x = infer_in(c, 1);
    if (x->rank != 4) return infer_mismatch(c, "needs images of rank 4");
    Shape s = shape_of(2, x->d);
    const char *wrong = infer_check_like(c, 0, "the gradient", &s);
    return wrong ? wrong : infer_result(c, c->t, *x);
}
