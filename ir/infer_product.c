/* infer_product.c: shapes of products of matrices and convolutions, of pooling, which walks over
 * windows as they do, and of their gradients. */
#include "ir/infer.h"
#include "ir/operands.h"

/* ---- products of matrices ---------------------------------------------------------------------------------------- */

const char *infer_linear(Inferring *c) {
    const Shape *x = infer_in(c, 0), *w = infer_in(c, 1);
    if (x->rank < 1 || w->rank != 2) return infer_mismatch(c, "needs x [..., in] and a weight of rank 2");
    bool transposed = ir_attr(c->o, "transposed")->b;
    Dim in = w->d[transposed ? 0 : 1], out = w->d[transposed ? 1 : 0];
    if (!dim_equal(x->d[x->rank - 1], in)) return infer_differing(c, "inner dimensions", x->d[x->rank - 1], in);
    if (c->o->n_in == 3) {
        const Shape *bias = infer_in(c, 2);
        if (bias->rank != 1) return infer_mismatch(c, "needs a bias of rank 1");
        if (!dim_equal(bias->d[0], out)) return infer_differing(c, "bias and output", bias->d[0], out);
    }
    Shape s = *x;
    s.d[s.rank - 1] = out;
    return infer_result(c, c->t, s);
}

/* The last two dims of a (M, K) and b (K, N), as they are stored. */
typedef struct Matrices {
    Dim m, k_of_a, k_of_b, n;
} Matrices;

static Matrices last_two(const Inferring *c) {
    const Shape *a = infer_in(c, 0), *b = infer_in(c, 1);
    bool ta = ir_attr(c->o, "ta")->b, tb = ir_attr(c->o, "tb")->b;
    return (Matrices){.m = a->d[a->rank - (ta ? 1 : 2)],
                      .k_of_a = a->d[a->rank - (ta ? 2 : 1)],
                      .k_of_b = b->d[b->rank - (tb ? 1 : 2)],
                      .n = b->d[b->rank - (tb ? 2 : 1)]};
}

static Shape leading(const Shape *s) {
    Shape out = *s;
    out.rank -= 2;
    return out;
}

static const char *batched(Inferring *c, Shape s, const Matrices *p) {
    if (!dim_equal(p->k_of_a, p->k_of_b)) return infer_differing(c, "inner dimensions", p->k_of_a, p->k_of_b);
    s.d[s.rank++] = p->m;
    s.d[s.rank++] = p->n;
    return infer_result(c, c->t, s);
}

/* As NumPy: the leading dimensions broadcast.  Vectors are no operands: which side they stand on is for the model
 * to say. */
const char *infer_matmul(Inferring *c) {
    const Shape *a = infer_in(c, 0), *b = infer_in(c, 1);
    if (a->rank < 2 || b->rank < 2)
        return infer_mismatch(c, "needs operands of rank 2 or more; reshape a vector to one row or one column");
    Matrices p = last_two(c);
    Shape outer_a = leading(a), outer_b = leading(b), s;
    if (!shape_broadcast(&outer_a, &outer_b, &s)) return infer_mismatch(c, "leading dimensions do not broadcast");
    return batched(c, s, &p);
}

const char *infer_batch_contract(Inferring *c) {
    const Shape *a = infer_in(c, 0), *b = infer_in(c, 1);
    if (a->rank < 2 || b->rank < 2) return infer_mismatch(c, "needs operands of rank 2 or more");
    Matrices p = last_two(c);
    Shape outer_a = leading(a), outer_b = leading(b);
    if (!shape_equal(&outer_a, &outer_b)) return infer_mismatch(c, "leading dimensions differ");
    if (ir_attr(c->o, "merged")->b) {
        if (!outer_a.rank || !dim_mul(outer_a.d[--outer_a.rank], p.n, &p.n))
            return infer_mismatch(c, "has no columns to put beside each other");
    }
    return batched(c, outer_a, &p);
}

/* A result |s| in parts is that often. */
static const char *in_parts(Inferring *c, Shape s) {
    const int64_t parts = ir_attr(c->o, "parts")->i;
    if (parts < 1 || parts > PART_COUNT_MAX)
        return infer_mismatch(c, "%lld parts are not 1 to %d", (long long)parts, PART_COUNT_MAX);
    if (parts == 1) return infer_result(c, AMP_DT_F32, s);
    if (s.rank == MAX_RANK) return infer_mismatch(c, "has no room for parts");
    Shape whole = {.rank = s.rank + 1, .d = {dim_const(parts)}};
    for (int i = 0; i < s.rank; i++) whole.d[i + 1] = s.d[i];
    return infer_result(c, AMP_DT_F32, whole);
}

/* [P, ...] -> [...] */
const char *infer_sum_parts(Inferring *c) {
    const Shape *parts = infer_in(c, 0);
    if (parts->rank < 2) return infer_mismatch(c, "needs [parts, ...]");
    if (dim_varies(parts->d[0])) return infer_varies(c, parts->d[0], "the number of parts");
    return infer_result(c, AMP_DT_F32, shape_of(parts->rank - 1, &parts->d[1]));
}

/* [..., m] and [..., c], summed over all rows: [m, c]. */
static const char *contract_rows(Inferring *c) {
    const Shape *a = infer_in(c, 0), *b = infer_in(c, 1);
    Dim rows_a, rows_b, m, n;
    if (a->rank < 2 || b->rank < 2) return infer_mismatch(c, "needs [..., m] and [..., c]");
    if (!shape_matrix(a, &rows_a, &m) || !shape_matrix(b, &rows_b, &n)) return infer_mismatch(c, "is too large");
    if (!dim_equal(rows_a, rows_b)) return infer_differing(c, "inner dimensions", rows_a, rows_b);
    return in_parts(c, shape_of(2, (Dim[]){m, n}));
}

/* The operands are matrices: [..., k] x [k, C] gives [..., C].  With both transposed, two of rank 2. */
const char *infer_contract(Inferring *c) {
    const Shape *a = infer_in(c, 0), *b = infer_in(c, 1);
    bool ta = ir_attr(c->o, "ta")->b, tb = ir_attr(c->o, "tb")->b;
    if (ta && !tb) return contract_rows(c);
    if (a->rank < 1 || b->rank != 2 || (ta && a->rank != 2)) return infer_mismatch(c, "needs [..., k] and [k, c]");
    Dim k_of_a = a->d[ta ? 0 : a->rank - 1], k_of_b = b->d[tb ? 1 : 0], n = b->d[tb ? 0 : 1];
    if (!dim_equal(k_of_a, k_of_b)) return infer_differing(c, "inner dimensions", k_of_a, k_of_b);
    if (ta) return in_parts(c, shape_of(2, (Dim[]){a->d[1], n}));
    Shape s = *a;
    s.d[s.rank - 1] = n;
    return in_parts(c, s);
}

/* ---- windows along one dimension --------------------------------------------------------------------------------- */

/* How a window of convolution or pooling walks over one image dimension. */
typedef struct WindowSteps {
    int64_t kernel, stride, padding, dilation;
} WindowSteps;

/* Beyond this no size is meant: sums and products of two stay far from overflow. */
static const int64_t LARGEST = (int64_t)1 << 30;

/* Windows along a dimension of |size|; 0 where not one fits. */
static int64_t count_windows(int64_t size, WindowSteps w) {
    int64_t reach = w.dilation * (w.kernel - 1) + 1, room = size + 2 * w.padding;
    return room < reach ? 0 : (room - reach) / w.stride + 1;
}

static int64_t pair_at(const Op *o, const char *name, int axis, int64_t otherwise) {
    const AttrValue *v = ir_attr(o, name);
    return v ? v->dims.at[axis] : otherwise;
}

static bool is_between(int64_t v, int64_t low) { return v >= low && v <= LARGEST; }

static const char *check_step(const Inferring *c, const char *name, int64_t v, int64_t low) {
    if (v > LARGEST) return infer_mismatch(c, "%s %lld is too large", name, (long long)v);
    return v < low ? infer_mismatch(c, "%s must be at least %lld", name, (long long)low) : NULL;
}

static const char *check_pairs(const Inferring *c) {
    static const char *const names[] = {"kernel", "stride", "padding", "dilation"};
    for (int i = 0; i < 4; i++) {
        const AttrValue *v = ir_attr(c->o, names[i]);
        if (v && v->dims.count != 2) return infer_mismatch(c, "%s is not a pair", names[i]);
    }
    return NULL;
}

/* The height (axis 0) or width (axis 1) after convolution or pooling, from the op's attributes and the kernel's
 * size there. */
static const char *window_dim(const Inferring *c, int axis, Dim size, int64_t kernel, Dim *out) {
    const char *wrong = check_pairs(c), *side = axis ? "width" : "height";
    if (wrong) return wrong;
    WindowSteps w = {kernel, pair_at(c->o, "stride", axis, 1), pair_at(c->o, "padding", axis, 0),
                     pair_at(c->o, "dilation", axis, 1)};
    if (dim_varies(size)) return infer_varies(c, size, axis ? "the width of an image" : "the height of an image");
    wrong = check_step(c, "kernel", w.kernel, 1);
    if (!wrong) wrong = check_step(c, "stride", w.stride, 1);
    if (!wrong) wrong = check_step(c, "dilation", w.dilation, 1);
    if (!wrong) wrong = check_step(c, "padding", w.padding, 0);
    if (wrong) return wrong;
    if (!is_between(size.mul, 1))
        return infer_mismatch(c, "an image of %s %lld is out of range", side, (long long)size.mul);
    int64_t count = count_windows(size.mul, w);
    if (count < 1)
        return infer_mismatch(c, "the kernel does not fit: its %s is %lld, the padded image's %lld", side,
                              (long long)(w.dilation * (w.kernel - 1) + 1), (long long)(size.mul + 2 * w.padding));
    *out = dim_const(count);
    return NULL;
}

/* ---- convolution ------------------------------------------------------------------------------------------------- */

/* Where the parts of an image and of a weight stand. */
typedef struct Places {
    int channels, height; /* of an image; the width follows the height */
    int out, in, kernel;  /* of a weight; KW follows KH */
    bool is_transposed;   /* `in` holds O / groups and `out` C: conv_data's weight */
} Places;

static const Places graph = {.channels = 1, .height = 2, .out = 0, .in = 1, .kernel = 2};
static const Places core = {.channels = 3, .height = 1, .out = 3, .in = 2, .kernel = 0};
static const Places core_data = {.channels = 3, .height = 1, .out = 3, .in = 2, .kernel = 0, .is_transposed = true};

static const char *check_ranks(const Inferring *c, const Shape *x, const Shape *w) {
    if (x->rank != 4 || w->rank != 4) return infer_mismatch(c, "needs images and a weight of rank 4");
    for (int i = 0; i < 4; i++)
        if (dim_varies(w->d[i])) return infer_varies(c, w->d[i], "a weight");
    return NULL;
}

/* groups divides the channels of both sides. */
static const char *check_groups(const Inferring *c, int64_t channels, int64_t outputs) {
    int64_t groups = ir_attr(c->o, "groups")->i;
    if (groups < 1) return infer_mismatch(c, "groups must be at least 1");
    if (channels % groups || outputs % groups)
        return infer_mismatch(c, "%lld groups do not divide %lld input and %lld output channels", (long long)groups,
                              (long long)channels, (long long)outputs);
    return NULL;
}

/* The channels on both sides of a weight, checked against x. */
static const char *conv_channels(const Inferring *c, const Places *p, const Shape *x, const Shape *w,
                                 int64_t *outputs) {
    int64_t groups = ir_attr(c->o, "groups")->i, per_group = w->d[p->in].mul;
    Dim channels = x->d[p->channels];
    if (dim_varies(channels)) return infer_varies(c, channels, "the channels of an image");
    if (groups < 1) return infer_mismatch(c, "groups must be at least 1");
    int64_t wanted = p->is_transposed ? w->d[p->out].mul : channels.mul / groups;
    if (__builtin_mul_overflow(per_group, groups, outputs)) return infer_mismatch(c, "is too large");
    if (!p->is_transposed) *outputs = w->d[p->out].mul;
    const char *wrong = check_groups(c, channels.mul, *outputs);
    if (wrong) return wrong;
    Dim given = p->is_transposed ? channels : dim_const(per_group);
    return given.mul == wanted
               ? NULL
               : infer_differing(c, p->is_transposed ? "channels of image and weight" : "input channels per group",
                                 dim_const(wanted), given);
}

/* y's shape from x and w. */
static const char *conv_shape(const Inferring *c, const Places *p, const Shape *x, const Shape *w, Shape *y) {
    int64_t outputs = 0;
    const char *wrong = check_ranks(c, x, w);
    if (!wrong) wrong = conv_channels(c, p, x, w, &outputs);
    if (wrong) return wrong;
    *y = *x;
    y->d[p->channels] = dim_const(outputs);
    for (int axis = 0; axis < 2 && !wrong; axis++)
        wrong = window_dim(c, axis, x->d[p->height + axis], w->d[p->kernel + axis].mul, &y->d[p->height + axis]);
    return wrong;
}

const char *infer_conv2d(Inferring *c) {
    Shape y;
    const char *wrong = conv_shape(c, &graph, infer_in(c, 0), infer_in(c, 1), &y);
    if (!wrong && c->o->n_in == 3) {
        Shape bias = shape_of(1, &y.d[1]);
        wrong = infer_check_like(c, 2, "the bias", &bias);
    }
    return wrong ? wrong : infer_result(c, c->t, y);
}

/* The height (axis 0) or width (axis 1) of the image that conv2d turns into |size|, plus output_padding. */
static const char *transposed_dim(const Inferring *c, int axis, Dim size, int64_t kernel, Dim *out) {
    const char *side = axis ? "width" : "height";
    int64_t stride = pair_at(c->o, "stride", axis, 1), padding = pair_at(c->o, "padding", axis, 0);
    int64_t dilation = pair_at(c->o, "dilation", axis, 1), more = pair_at(c->o, "output_padding", axis, 0);
    if (dim_varies(size)) return infer_varies(c, size, axis ? "the width of an image" : "the height of an image");
    const char *wrong = check_step(c, "stride", stride, 1);
    if (!wrong) wrong = check_step(c, "dilation", dilation, 1);
    if (!wrong) wrong = check_step(c, "padding", padding, 0);
    if (wrong) return wrong;
    if (!is_between(more, 0) || (more >= stride && more >= dilation))
        return infer_mismatch(c, "output_padding %lld must be at least 0 and less than stride %lld or dilation %lld",
                              (long long)more, (long long)stride, (long long)dilation);
    if (!is_between(size.mul, 1) || !is_between(kernel, 1))
        return infer_mismatch(c, "an image of %s %lld is out of range", side, (long long)size.mul);
    int64_t whole, window;
    if (__builtin_mul_overflow(size.mul - 1, stride, &whole) || __builtin_mul_overflow(dilation, kernel - 1, &window) ||
        __builtin_add_overflow(whole, window + 1 + more - 2 * padding, &whole))
        return infer_mismatch(c, "is too large");
    if (whole < 1)
        return infer_mismatch(c, "the result would have a %s of %lld: padding %lld takes all of it away", side,
                              (long long)whole, (long long)padding);
    *out = dim_const(whole);
    return NULL;
}

/* (x, weight [C, O / groups, KH, KW], bias): the y from which conv2d makes x's shape.  With output_padding of a stride
 * or more, conv2d makes a larger shape: then x has zeros after it. */
const char *infer_conv_transpose2d(Inferring *c) {
    const Shape *x = infer_in(c, 0), *w = infer_in(c, 1);
    int64_t groups = ir_attr(c->o, "groups")->i, outputs;
    const Dims *more = &ir_attr(c->o, "output_padding")->dims;
    const char *wrong = check_ranks(c, x, w);
    if (!wrong) wrong = check_pairs(c);
    if (!wrong && more->count != 2) wrong = infer_mismatch(c, "output_padding is not a pair");
    if (wrong) return wrong;
    if (dim_varies(x->d[1])) return infer_varies(c, x->d[1], "the channels of an image");
    if (groups < 1) return infer_mismatch(c, "groups must be at least 1");
    if (!dim_equal(x->d[1], w->d[0])) return infer_differing(c, "channels of image and weight", w->d[0], x->d[1]);
    if (__builtin_mul_overflow(w->d[1].mul, groups, &outputs)) return infer_mismatch(c, "is too large");
    wrong = check_groups(c, x->d[1].mul, outputs);
    Shape y = *x;
    y.d[1] = dim_const(outputs);
    for (int axis = 0; axis < 2 && !wrong; axis++)
        wrong = transposed_dim(c, axis, x->d[2 + axis], w->d[2 + axis].mul, &y.d[2 + axis]);
    if (!wrong && c->o->n_in == 3) {
        Shape bias = shape_of(1, &y.d[1]);
        wrong = infer_check_like(c, 2, "the bias", &bias);
    }
    return wrong ? wrong : infer_result(c, c->t, y);
}

/* (dy, weight, x) */
const char *infer_conv2d_input_grad(Inferring *c) {
    Shape y;
    const char *wrong = conv_shape(c, &graph, infer_in(c, 2), infer_in(c, 1), &y);
    if (!wrong) wrong = infer_check_like(c, 0, "the gradient", &y);
    return wrong ? wrong : infer_result(c, c->t, *infer_in(c, 2));
}

/* (dy, x, weight) */
const char *infer_conv2d_weight_grad(Inferring *c) {
    Shape y;
    const char *wrong = conv_shape(c, &graph, infer_in(c, 1), infer_in(c, 2), &y);
    if (!wrong) wrong = infer_check_like(c, 0, "the gradient", &y);
    return wrong ? wrong : infer_result(c, c->t, *infer_in(c, 2));
}

/* ---- core -------------------------------------------------------------------------------------------------------- */

const char *infer_conv(Inferring *c) {
    Shape y;
    const char *wrong = conv_shape(c, &core, infer_in(c, 0), infer_in(c, 1), &y);
    return wrong ? wrong : infer_result(c, AMP_DT_F32, y);
}

/* (dy, w [KH, KW, O / groups, C], tb: [KH, KW, C, O]) -> x, whose shape its maker gave. */
const char *infer_conv_data(Inferring *c) {
    const Shape *x = &infer_given(c, 0)->shape;
    const bool tb = ir_attr(c->o, "tb")->b;
    Shape y;
    const char *wrong = conv_shape(c, tb ? &core : &core_data, x, infer_in(c, 1), &y);
    if (!wrong) wrong = infer_check_like(c, 0, "the gradient", &y);
    return wrong ? wrong : infer_result(c, AMP_DT_F32, *x);
}

/* (x, dy) -> w, or parts of it, whose shape its maker gave. */
const char *infer_conv_weight(Inferring *c) {
    const Shape *given = &infer_given(c, 0)->shape;
    const bool is_split = ir_attr(c->o, "parts")->i != 1;
    Shape w = *given, y;
    if (is_split && ir_attr(c->o, "groups")->i != 1)
        return infer_mismatch(c, "parts need a convolution with groups = 1");
    if (is_split && given->rank > 1) w = shape_of(given->rank - 1, &given->d[1]);
    const char *wrong = conv_shape(c, &core, infer_in(c, 0), &w, &y);
    if (!wrong) wrong = infer_check_like(c, 1, "the gradient", &y);
    return wrong ? wrong : in_parts(c, w);
}

/* ---- pooling ----------------------------------------------------------------------------------------------------- */

/* |x| with its height and width, dims |at| and |at| + 1, after pooling. */
static const char *pooled(const Inferring *c, const Shape *x, int at, Shape *out) {
    if (x->rank != 4) return infer_mismatch(c, "needs images of rank 4");
    *out = *x;
    const char *wrong = check_pairs(c);
    for (int axis = 0; axis < 2 && !wrong; axis++) {
        int64_t kernel = pair_at(c->o, "kernel", axis, 1), padding = pair_at(c->o, "padding", axis, 0);
        wrong = window_dim(c, axis, x->d[at + axis], kernel, &out->d[at + axis]);
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

/* ---- other sizes ------------------------------------------------------------------------------------------------- */

/* |x| with its height and width, dims 2 and 3, as the op makes them. */
static const char *resized(const Inferring *c, const Shape *x, Shape *out) {
    const AttrValue *given = ir_attr(c->o, "out"), *scale = ir_attr(c->o, "scale"), *size_of = ir_attr(c->o, "size");
    const char *name = given ? "out" : "scale";
    if (!given && (size_of->dims.count != 2 || size_of->dims.at[0] || size_of->dims.at[1]))
        given = size_of, scale = NULL, name = "size";
    const Dims *sizes = given ? &given->dims : &scale->dims;
    if (x->rank != 4) return infer_mismatch(c, "needs images of rank 4");
    if (sizes->count != 2) return infer_mismatch(c, "%s is not a pair", name);
    *out = *x;
    for (int axis = 0; axis < 2; axis++) {
        int64_t size = x->d[2 + axis].mul, to = sizes->at[axis];
        if (dim_varies(x->d[2 + axis]))
            return infer_varies(c, x->d[2 + axis], axis ? "the width of an image" : "the height of an image");
        if (to < 1) return infer_mismatch(c, "%s must be at least 1", name);
        if (to > LARGEST || size > LARGEST || (scale && to > LARGEST / size)) return infer_mismatch(c, "is too large");
        out->d[2 + axis] = dim_const(scale ? to * size : to);
    }
    bool aligns = size_of && ir_attr(c->o, "align_corners")->b;
    return aligns && strcmp(ir_attr(c->o, "mode")->s, "bilinear")
               ? infer_mismatch(c, "align_corners is for mode = bilinear")
               : NULL;
}

static const char *resize(Inferring *c) {
    Shape s;
    const char *wrong = resized(c, infer_in(c, 0), &s);
    return wrong ? wrong : infer_result(c, infer_dtype(c, 0), s);
}

/* (dy, x) */
static const char *resize_grad(Inferring *c) {
    Shape s;
    const char *wrong = resized(c, infer_in(c, 1), &s);
    if (!wrong) wrong = infer_check_like(c, 0, "the gradient", &s);
    return wrong ? wrong : infer_result(c, c->t, *infer_in(c, 1));
}

const char *infer_adaptive_pool(Inferring *c) { return resize(c); }
const char *infer_upsample(Inferring *c) { return resize(c); }
const char *infer_adaptive_pool_grad(Inferring *c) { return resize_grad(c); }
const char *infer_upsample_grad(Inferring *c) { return resize_grad(c); }

static bool is_size(Dim d) { return !dim_varies(d) && d.mul >= 1 && d.mul <= LARGEST; }

/* [N, H, W, C] to the height and width that the op's maker gave, either way. */
const char *infer_resample(Inferring *c) {
    const Shape *x = infer_in(c, 0), *y = &infer_given(c, 0)->shape;
    if (x->rank != 4 || y->rank != 4) return infer_mismatch(c, "needs images of rank 4");
    bool sizes = is_size(x->d[1]) && is_size(x->d[2]) && is_size(y->d[1]) && is_size(y->d[2]);
    if (!sizes) return infer_mismatch(c, "a height or width is out of range");
    if (!dim_equal(x->d[0], y->d[0])) return infer_differing(c, "samples", x->d[0], y->d[0]);
    if (!dim_equal(x->d[3], y->d[3])) return infer_differing(c, "channels", x->d[3], y->d[3]);
    return infer_result(c, AMP_DT_F32, *y);
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
