/* lower_product.c: products become `contract`, which accumulates in f32; bias and rounding follow in f32.  Convolutions
 * and pooling: channels are last in all of them; weights are permuted in plain sight. */
#include "ir/operands.h"
#include "passes/lower/lower.h"

/* ---- contract and linear ----------------------------------------------------------------------------------------- */

/* What |v| is a view of, with the same rows and columns: a product that reads that needs no copy of it. */
static Val behind_view(const Lowering *l, Val v) {
    const Op *o = ir_def(l->f, v);
    while (o && o->code == OP_reshape && ir_is_view(l->f, o) && ir_shape(l->f, o->in[0])->rank > 1) {
        v = o->in[0];
        o = ir_def(l->f, v);
    }
    return v;
}

Val lower_contract(Lowering *l, Val a, bool ta, Val b, bool tb) {
    const Val rows = ta == tb && ta ? a : behind_view(l, a);
    Shape s = *ir_shape(l->f, a);
    Op *o = ir_op_new(l->f, OP_contract, (Val[]){rows, ta && !tb ? behind_view(l, b) : b}, 2);
    ir_attr(o, "ta")->b = ta;
    ir_attr(o, "tb")->b = tb;
    const Val y = ir_make_results(l->f, o, AMP_DT_F32, NULL);
    if (ta || rows.id == a.id) return y;
    s.d[s.rank - 1] = ir_shape(l->f, y)->d[ir_shape(l->f, y)->rank - 1];
    return lower_reshape(l, y, &s);
}

/* x w^T + b, or x w + b where the weight is stored transposed; x [..., in] is a matrix of rows. */
static void lower_linear(Lowering *l) {
    Val y = lower_contract(l, l->op->in[0], false, l->op->in[1], !lower_bool(l, "transposed"));
    if (l->op->n_in == 3) y = lower_add(l, y, lower_operand(l, 2));
    lower_give(l, 0, y);
}

/* ---- matmul ------------------------------------------------------------------------------------------------------ */

/* The op that made v by exchanging the dimensions of a matrix, or NULL. */
static const Op *exchange_behind(const Lowering *l, Val v) {
    const Op *o = ir_def(l->f, v);
    bool is_exchange = o && o->code == OP_permute && ir_shape(l->f, v)->rank == 2;
    return is_exchange ? o : NULL;
}

/* A product reads a transposed matrix in place, also through a cast: the matrix, and whether it is transposed. */
static Val untransposed(Lowering *l, Val v, bool *is_transposed) {
    const Op *o = ir_def(l->f, v), *cast = o && o->code == OP_cast ? o : NULL;
    const Op *exchange = exchange_behind(l, cast ? cast->in[0] : v);
    if (!exchange) return v;
    *is_transposed = !*is_transposed;
    if (!cast) return exchange->in[0];
    Val *shared = lower_memo(l, "cast %u of %u", cast->out[0].id, exchange->in[0].id);
    if (!shared->id) {
        *shared = lower_cast(l, exchange->in[0], ir_dtype(l->f, v));
        Op *made = ir_def(l->f, *shared);
        if (made) made->reason = cast->reason;
    }
    return *shared;
}

/* (A B)^T = B^T A^T: the transpose of a product that has no other reader is a product, with the same sums in the
 * same order.  NO_VAL if it cannot be. */
Val lower_transposed_product(Lowering *l, Val v) {
    const Op *o = ir_def(l->f, v);
    if (o && o->code == OP_cast) o = ir_def(l->f, o->in[0]);
    if (!o || o->code != OP_contract || ir_shape(l->f, v)->rank != 2) return NO_VAL;
    if (lower_readers(l, v) > 1 || lower_readers(l, o->out[0]) > 1) return NO_VAL;
    bool ta = !ir_attr(o, "tb")->b, tb = !ir_attr(o, "ta")->b;
    bool matrices = ir_shape(l->f, o->in[0])->rank == 2 && ir_shape(l->f, o->in[1])->rank == 2;
    return matrices || (ta && !tb) ? lower_contract(l, o->in[1], ta, o->in[0], tb) : NO_VAL;
}

/* The operand as [B..., rows, cols] with the result's leading dims B. */
static Val batched(Lowering *l, Val v, bool is_transposed, const Shape *result) {
    if (is_transposed) v = lower_swap_dims(l, 1, v);
    const Shape *own = ir_shape(l->f, v);
    Shape s = *result;
    s.d[s.rank - 2] = own->d[own->rank - 2];
    s.d[s.rank - 1] = own->d[own->rank - 1];
    return lower_expand(l, v, &s);
}

Val lower_batch_product(Lowering *l, Val a, bool ta, Val b, bool tb) {
    if (ta) a = lower_swap_dims(l, 1, a);
    if (tb) b = lower_swap_dims(l, 1, b);
    return ir_emit(l->f, OP_batch_contract, AMP_DT_F32, NULL, 2, a, b);
}

static Val batch_contract(Lowering *l, bool ta, bool tb) {
    const Shape s = *ir_shape(l->f, l->op->out[0]);
    Val a = batched(l, l->op->in[0], ta, &s), b = batched(l, l->op->in[1], tb, &s);
    return ir_emit(l->f, OP_batch_contract, AMP_DT_F32, NULL, 2, a, b);
}

/* Matrices, or rows of any rank times one matrix, are one product; else one for each of the leading dims. */
static void lower_matmul(Lowering *l) {
    bool ta = lower_bool(l, "ta"), tb = lower_bool(l, "tb");
    int rank_a = ir_shape(l->f, l->op->in[0])->rank, rank_b = ir_shape(l->f, l->op->in[1])->rank;
    if (rank_b > 2 || (rank_a > 2 && ta)) {
        lower_give(l, 0, batch_contract(l, ta, tb));
        return;
    }
    Val a = rank_a == 2 ? untransposed(l, l->op->in[0], &ta) : l->op->in[0];
    Val b = untransposed(l, l->op->in[1], &tb);
    lower_give(l, 0, lower_contract(l, a, ta, b, tb));
}

/* ---- images: [N, H, W, C] ---------------------------------------------------------------------------------------- */

static Val image_op(Lowering *l, Opcode code, const Val *in, int n_in, const Shape *s) {
    Op *o = lower_op_of(l, code, in, n_in);
    lower_copy_attrs(l, o);
    return lower_result_of(l, o, AMP_DT_F32, s);
}

static Shape image_shape(const Lowering *l, Val graph_value) {
    return lower_shape_in_form(l, ir_shape(l->f, graph_value));
}

/* ---- weights of convolutions ------------------------------------------------------------------------------------- */

/* [KH, KW, I, G * O] -> [KH, KW, O, G * I]: an input channel meets the output channels of its own group. */
static Val weight_for_conv_data(Lowering *l, Val w) {
    int64_t groups = lower_int(l, "groups");
    Val *shared = lower_memo(l, "conv_data weight %u %lld", w.id, (long long)groups);
    if (shared->id) return *shared;
    if (groups == 1 && !lower_is_hwio(l, w))
        return *shared = lower_permute(l, lower_plain(l, w), &(Dims){.count = 4, .at = {2, 3, 0, 1}});
    w = lower_hwio(l, w);
    if (groups == 1) return *shared = lower_permute(l, w, &(Dims){.count = 4, .at = {0, 1, 3, 2}});
    const Dim *d = ir_shape(l->f, w)->d;
    Dim outputs = dim_const(d[3].mul / groups), channels = dim_const(d[2].mul * groups);
    Shape split = shape_of(5, (Dim[]){d[0], d[1], d[2], dim_const(groups), outputs});
    Shape joined = shape_of(4, (Dim[]){d[0], d[1], outputs, channels});
    Val v = lower_permute(l, lower_reshape(l, w, &split), &(Dims){.count = 5, .at = {0, 1, 4, 3, 2}});
    return *shared = lower_reshape(l, v, &joined);
}

/* ---- convolution ------------------------------------------------------------------------------------------------- */

static void lower_conv2d(Lowering *l) {
    Val x = lower_given(l, 0), w = lower_hwio(l, l->op->in[1]);
    Shape s = image_shape(l, l->op->out[0]);
    Val y = image_op(l, OP_conv, (Val[]){x, w}, 2, &s);
    if (l->op->n_in == 3) y = lower_add(l, y, lower_plain_operand(l, 2));
    lower_give(l, 0, y);
}

/* Where output_padding is not below the stride, y has places that only elements after x would reach: zeros. */
static Val with_zeros_after(Lowering *l, Val x) {
    const Dims *more = &ir_attr(l->op, "output_padding")->dims, *stride = &ir_attr(l->op, "stride")->dims;
    for (int axis = 0; axis < 2; axis++) {
        int64_t after = more->at[axis] / stride->at[axis];
        if (!after) continue;
        Op *o = ir_op_new(l->f, OP_pad, &x, 1);
        ir_attr(o, "dim")->i = 1 + axis;
        ir_attr(o, "after")->i = after;
        x = ir_make_results(l->f, o, ir_dtype(l->f, x), NULL);
    }
    return x;
}

static void lower_conv_transpose2d(Lowering *l) {
    Val x = with_zeros_after(l, lower_given(l, 0)), w = weight_for_conv_data(l, l->op->in[1]);
    Shape s = image_shape(l, l->op->out[0]);
    Val y = image_op(l, OP_conv_data, (Val[]){x, w}, 2, &s);
    if (l->op->n_in == 3) y = lower_add(l, y, lower_plain_operand(l, 2));
    lower_give(l, 0, y);
}

static void lower_conv2d_input_grad(Lowering *l) {
    Val dy = lower_given(l, 0), w = weight_for_conv_data(l, l->op->in[1]);
    Shape s = image_shape(l, l->op->out[0]);
    lower_give(l, 0, image_op(l, OP_conv_data, (Val[]){dy, w}, 2, &s));
}

static void lower_conv2d_weight_grad(Lowering *l) {
    Val dy = lower_given(l, 0), x = lower_again(l, lower_given(l, 1));
    const Dim *d = ir_shape(l->f, l->op->out[0])->d;
    Shape s = shape_of(4, (Dim[]){d[2], d[3], d[1], d[0]});
    Val dw = image_op(l, OP_conv_weight, (Val[]){x, dy}, 2, &s);
    lower_give_as(l, 0, dw, FORM_HWIO);
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

const LowerRow lower_product_ops[OP_COUNT] = {
    [OP_linear] = {lower_linear, TAKES_PLAIN},
    [OP_matmul] = {lower_matmul, TAKES_PLAIN},
    [OP_conv2d] = {lower_conv2d, TAKES_LAST},
    [OP_conv_transpose2d] = {lower_conv_transpose2d, TAKES_LAST},
    [OP_conv2d_input_grad] = {lower_conv2d_input_grad, TAKES_LAST},
    [OP_conv2d_weight_grad] = {lower_conv2d_weight_grad, TAKES_LAST},
    [OP_max_pool2d] = {lower_max_pool2d, TAKES_LAST},
    [OP_max_pool2d_grad] = {lower_max_pool2d_grad, TAKES_LAST},
    [OP_avg_pool2d] = {lower_avg_pool2d, TAKES_LAST},
    [OP_avg_pool2d_grad] = {lower_avg_pool2d_grad, TAKES_LAST},
    [OP_global_avg_pool] = {lower_global_avg_pool, TAKES_LAST},
    [OP_global_avg_pool_grad] = {lower_global_avg_pool_grad, TAKES_LAST},
};
