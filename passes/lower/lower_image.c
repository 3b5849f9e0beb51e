/* lower_image.c: convolutions and pooling.  Channels are last in all of them; weights are permuted in plain sight. */
#include "passes/lower/lower.h"

static Val image_op(Lowering *l, Opcode code, const Val *in, int n_in, const Shape *s) {
    Op *o = lower_op_of(l, code, in, n_in);
    lower_copy_attrs(l, o);
    return lower_result_of(l, o, AMP_DT_F32, s);
}

static Shape image_shape(const Lowering *l, Val graph_value) {
    return lower_shape_in_form(l, ir_shape(l->f, graph_value));
}

/* ---- weights ----------------------------------------------------------------------------------------------------- */

/* [O, I, KH, KW] -> [KH, KW, I, O] */
static Val weight_for_conv(Lowering *l, Val w) {
    Val *shared = lower_memo(l, "conv weight %u", w.id);
    if (!shared->id) *shared = lower_permute(l, w, &(Dims){.count = 4, .at = {2, 3, 1, 0}});
    return *shared;
}

/* [G * O, I, KH, KW] -> [KH, KW, O, G * I]: an input channel meets the output channels of its own group. */
static Val weight_for_conv_data(Lowering *l, Val w) {
    int64_t groups = lower_int(l, "groups");
    Val *shared = lower_memo(l, "conv_data weight %u %lld", w.id, (long long)groups);
    if (shared->id) return *shared;
    if (groups == 1) return *shared = lower_permute(l, w, &(Dims){.count = 4, .at = {2, 3, 0, 1}});
    const Dim *d = ir_shape(l->f, w)->d;
    Dim outputs = dim_const(d[0].mul / groups), channels = dim_const(d[1].mul * groups);
    Shape split = shape_of(5, (Dim[]){dim_const(groups), outputs, d[1], d[2], d[3]});
    Shape joined = shape_of(4, (Dim[]){d[2], d[3], outputs, channels});
    Val v = lower_permute(l, lower_reshape(l, w, &split), &(Dims){.count = 5, .at = {3, 4, 1, 0, 2}});
    return *shared = lower_reshape(l, v, &joined);
}

/* ---- convolution ------------------------------------------------------------------------------------------------- */

static void lower_conv2d(Lowering *l) {
    Val x = lower_given(l, 0), w = weight_for_conv(l, lower_plain(l, l->op->in[1]));
    Shape s = image_shape(l, l->op->out[0]);
    Val y = image_op(l, OP_conv, (Val[]){x, w}, 2, &s);
    if (l->op->n_in == 3) y = lower_add(l, y, lower_plain_operand(l, 2));
    lower_give(l, 0, y);
}

static void lower_conv2d_input_grad(Lowering *l) {
    Val dy = lower_given(l, 0), w = weight_for_conv_data(l, lower_plain(l, l->op->in[1]));
    Shape s = image_shape(l, l->op->out[0]);
    lower_give(l, 0, image_op(l, OP_conv_data, (Val[]){dy, w}, 2, &s));
}

/* [KH, KW, I, O] -> [O, I, KH, KW] */
static void lower_conv2d_weight_grad(Lowering *l) {
    Val dy = lower_given(l, 0), x = lower_given(l, 1);
    const Dim *d = ir_shape(l->f, l->op->out[0])->d;
    Shape s = shape_of(4, (Dim[]){d[2], d[3], d[1], d[0]});
    Val dw = image_op(l, OP_conv_weight, (Val[]){x, dy}, 2, &s);
    lower_give_as(l, 0, lower_permute(l, dw, &(Dims){.count = 4, .at = {3, 2, 0, 1}}), FORM_PLAIN);
}

/* ---- pooling ----------------------------------------------------------------------------------------------------- */

static void lower_max_pool2d(Lowering *l) {
    Val x = lower_operand(l, 0);
    Op *o = lower_op_of(l, OP_window_max, &x, 1);
    lower_copy_attrs(l, o);
    ir_make_results(l->f, o, AMP_DT_F32, NULL);
    lower_give(l, 0, o->out[0]);
    lower_give(l, 1, o->out[1]);
}

static void lower_max_pool2d_grad(Lowering *l) {
    Val dy = lower_operand(l, 0), which = lower_given(l, 1);
    Shape s = image_shape(l, l->op->out[0]);
    lower_give(l, 0, image_op(l, OP_window_max_grad, (Val[]){dy, which}, 2, &s));
}

static Val window_size(Lowering *l) {
    const Dims *kernel = &ir_attr(l->op, "kernel")->dims;
    return lower_number(l, (double)(kernel->at[0] * kernel->at[1]));
}

static void lower_avg_pool2d(Lowering *l) {
    Val x = lower_operand(l, 0);
    Shape s = image_shape(l, l->op->out[0]);
    Val total = image_op(l, OP_window_sum, &x, 1, &s);
    lower_give(l, 0, lower_divide_by_count(l, total, window_size(l)));
}

static void lower_avg_pool2d_grad(Lowering *l) {
    Val dy = lower_operand(l, 0);
    Shape s = image_shape(l, l->op->out[0]);
    Val total = image_op(l, OP_window_sum_grad, &dy, 1, &s);
    lower_give(l, 0, lower_divide_by_count(l, total, window_size(l)));
}

static const bool HEIGHT_AND_WIDTH[MAX_RANK] = {false, true, true, false};

static void lower_global_avg_pool(Lowering *l) {
    lower_give(l, 0, lower_mean_of(l, lower_operand(l, 0), HEIGHT_AND_WIDTH, false));
}

static void lower_global_avg_pool_grad(Lowering *l) {
    Shape s = image_shape(l, l->op->out[0]), kept = s;
    kept.d[1] = kept.d[2] = dim_const(1);
    Dim count = dim_const(s.d[1].mul * s.d[2].mul);
    Val dy = lower_plain_operand(l, 0);
    Val share = lower_divide_by_count(l, dy, lower_number(l, (double)count.mul));
    lower_give(l, 0, lower_expand(l, lower_reshape(l, share, &kept), &s));
}

const LowerRow lower_image_ops[OP_COUNT] = {
    [OP_conv2d] = {lower_conv2d, TAKES_LAST},
    [OP_conv2d_input_grad] = {lower_conv2d_input_grad, TAKES_LAST},
    [OP_conv2d_weight_grad] = {lower_conv2d_weight_grad, TAKES_LAST},
    [OP_max_pool2d] = {lower_max_pool2d, TAKES_LAST},
    [OP_max_pool2d_grad] = {lower_max_pool2d_grad, TAKES_LAST},
    [OP_avg_pool2d] = {lower_avg_pool2d, TAKES_LAST},
    [OP_avg_pool2d_grad] = {lower_avg_pool2d_grad, TAKES_LAST},
    [OP_global_avg_pool] = {lower_global_avg_pool, TAKES_LAST},
    [OP_global_avg_pool_grad] = {lower_global_avg_pool_grad, TAKES_LAST},
};
