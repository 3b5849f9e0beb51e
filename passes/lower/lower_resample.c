/* lower_resample.c: images in another size: adaptive pooling, upsampling, and their gradients.  If all windows are
 * equal, the op is a pooling; else `resample` finds out what belongs to each element. */
#include "passes/lower/lower.h"

typedef struct ImageSizes {
    const Shape *small, *large; /* [N, H, W, C]: x and y, or y and x */
    Dims ratio;                 /* where the small one divides the large one */
    bool divides;
} ImageSizes;

static ImageSizes sizes_of(const Shape *a, const Shape *b) {
    ImageSizes z = {.small = a, .large = b, .ratio = {.count = 2}, .divides = true};
    for (int axis = 0; axis < 2; axis++) {
        int64_t small = a->d[1 + axis].mul, large = b->d[1 + axis].mul;
        z.divides = z.divides && large % small == 0;
        z.ratio.at[axis] = large / small;
    }
    return z;
}

/* The sums of windows beside each other, or with |back| each element of a window what that has. */
static Val windows(Lowering *l, Val v, const ImageSizes *z, bool back) {
    Op *o = lower_op_of(l, back ? OP_window_sum_grad : OP_window_sum, &v, 1);
    ir_attr(o, "kernel")->dims = ir_attr(o, "stride")->dims = z->ratio;
    return lower_result_of(l, o, AMP_DT_F32, back ? z->large : z->small);
}

static Val resample(Lowering *l, Opcode code, Val v, const char *how, bool align_corners, const Shape *s) {
    Op *o = lower_op_of(l, code, &v, 1);
    ir_attr(o, "mode")->s = how;
    ir_attr(o, "align_corners")->b = align_corners;
    return lower_result_of(l, o, AMP_DT_F32, s);
}

/* The op's operand and result in its form. */
static Val image(Lowering *l, Shape *result) {
    *result = lower_shape_in_form(l, ir_shape(l->f, l->op->out[0]));
    return lower_operand(l, 0);
}

/* ---- adaptive pooling -------------------------------------------------------------------------------------------- */

static Val window_size(Lowering *l, const ImageSizes *z) {
    return lower_number(l, (double)(z->ratio.at[0] * z->ratio.at[1]));
}

static bool is_one_window(const Shape *s) { return dim_is_one(s->d[1]) && dim_is_one(s->d[2]); }

static void lower_adaptive_avg_pool2d(Lowering *l) {
    static const bool height_and_width[MAX_RANK] = {false, true, true, false};
    Shape y;
    Val x = image(l, &y), mean;
    const Shape from = *ir_shape(l->f, x);
    ImageSizes z = sizes_of(&y, &from);
    if (is_one_window(&y)) mean = lower_mean_of(l, x, height_and_width, true);
    else if (z.divides) mean = lower_divide_by_count(l, windows(l, x, &z, false), window_size(l, &z));
    else mean = resample(l, OP_resample, x, "area", false, &y);
    lower_give(l, 0, mean);
}

static void lower_adaptive_avg_pool2d_grad(Lowering *l) {
    Shape x;
    Val dy = image(l, &x);
    const Shape from = *ir_shape(l->f, dy);
    ImageSizes z = sizes_of(&from, &x);
    if (z.divides) lower_give(l, 0, lower_divide_by_count(l, windows(l, dy, &z, true), window_size(l, &z)));
    else lower_give(l, 0, resample(l, OP_resample_grad, dy, "area", false, &x));
}

/* ---- upsampling -------------------------------------------------------------------------------------------------- */

static const char *mode(const Lowering *l) { return ir_attr(l->op, "mode")->s; }
static bool is_nearest(const Lowering *l) { return !strcmp(mode(l), "nearest"); }
static bool corners(const Lowering *l) { return lower_bool(l, "align_corners"); }

static void lower_upsample(Lowering *l) {
    Shape y;
    Val x = image(l, &y);
    const Shape from = *ir_shape(l->f, x);
    ImageSizes z = sizes_of(&from, &y);
    lower_give(l, 0,
               is_nearest(l) && z.divides ? windows(l, x, &z, true)
                                          : resample(l, OP_resample, x, mode(l), corners(l), &y));
}

static void lower_upsample_grad(Lowering *l) {
    Shape x;
    Val dy = image(l, &x);
    const Shape from = *ir_shape(l->f, dy);
    ImageSizes z = sizes_of(&x, &from);
    lower_give(l, 0,
               is_nearest(l) && z.divides ? windows(l, dy, &z, false)
                                          : resample(l, OP_resample_grad, dy, mode(l), corners(l), &x));
}

const LowerRow lower_resample_ops[OP_COUNT] = {
    [OP_adaptive_avg_pool2d] = {lower_adaptive_avg_pool2d, TAKES_LAST},
    [OP_adaptive_avg_pool2d_grad] = {lower_adaptive_avg_pool2d_grad, TAKES_LAST},
    [OP_upsample] = {lower_upsample, TAKES_LAST},
    [OP_upsample_grad] = {lower_upsample_grad, TAKES_LAST},
};
