/* infer_conv.c: shapes of convolutions.  In a graph images are [N, C, H, W] and weights [O, C / groups, KH, KW]; in
 * core IR channels come last. */
#include "ir/infer.h"

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
        if (w->d[i].n) return infer_mismatch(c, "a weight may not depend on N");
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
    if (channels.n) return infer_mismatch(c, "the channels of an image may not depend on N");
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
        wrong = infer_window_dim(c, axis, x->d[p->height + axis], w->d[p->kernel + axis].mul, &y->d[p->height + axis]);
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

/* (dy, w [KH, KW, O / groups, C]) -> x, whose shape its maker gave. */
const char *infer_conv_data(Inferring *c) {
    const Shape *x = &infer_given(c, 0)->shape;
    Shape y;
    const char *wrong = conv_shape(c, &core_data, x, infer_in(c, 1), &y);
    if (!wrong) wrong = infer_check_like(c, 0, "the gradient", &y);
    return wrong ? wrong : infer_result(c, AMP_DT_F32, *x);
}

/* (x, dy) -> w, whose shape its maker gave. */
const char *infer_conv_weight(Inferring *c) {
    const Shape *w = &infer_given(c, 0)->shape;
    Shape y;
    const char *wrong = conv_shape(c, &core, infer_in(c, 0), w, &y);
    if (!wrong) wrong = infer_check_like(c, 1, "the gradient", &y);
    return wrong ? wrong : infer_result(c, AMP_DT_F32, *w);
}
