/* infer.c: the types of an op's results from its inputs and attributes: the table from ShapeRule to a function of
 * infer_*.c. */
#include "ir/infer.h"

/* ---- rules that differ by op ----------------------------------------------------------------- */

/* The maker gave the result's type; the rule of the op checks it. */
const char *infer_given_rule(Inferring *c) {
    static InferRule *const by_op[OP_COUNT] = {
        [OP_reshape] = infer_reshape,
        [OP_expand] = infer_expand,
        [OP_full] = infer_full,
        [OP_arange] = infer_arange,
        [OP_conv] = infer_conv,
        [OP_conv_data] = infer_conv_data,
        [OP_conv_weight] = infer_conv_weight,
        [OP_window_max_grad] = infer_window_max_grad,
        [OP_window_sum_grad] = infer_window_sum_grad,
        [OP_scatter] = infer_scatter,
    };
    bool can_tell = c->o->code == OP_conv;
    if (!can_tell && !infer_given(c, 0)) return infer_mismatch(c, "needs its result's type");
    return by_op[c->o->code] ? by_op[c->o->code](c) : infer_mismatch(c, "has no rule for its result's type");
}

const char *infer_second_any(Inferring *c) {
    static InferRule *const by_op[OP_COUNT] = {
        [OP_avg_pool2d_grad] = infer_avg_pool_grad,
        [OP_global_avg_pool_grad] = infer_global_pool_grad,
        [OP_extreme_grad] = infer_extreme_grad,
        [OP_var_grad] = infer_var_grad,
    };
    InferRule *rule = by_op[c->o->code];
    return rule ? rule(c) : infer_result(c, c->t, *infer_in(c, 1));
}

const char *infer_third(Inferring *c) {
    static InferRule *const by_op[OP_COUNT] = {
        [OP_embedding_grad] = infer_embedding_grad,
        [OP_max_pool2d_grad] = infer_max_pool_grad,
    };
    InferRule *rule = by_op[c->o->code];
    return rule ? rule(c) : infer_result(c, c->t, *infer_in(c, 2));
}

static InferRule *const rules[SHAPE_RULE_COUNT] = {
    [SHAPE_SAME] = infer_same,
    [SHAPE_SAME_NEW_DTYPE] = infer_same_new_dtype,
    [SHAPE_SECOND] = infer_second,
    [SHAPE_BROADCAST] = infer_broadcast,
    [SHAPE_COMPARE] = infer_compare,
    [SHAPE_SELECT] = infer_select,
    [SHAPE_LINEAR] = infer_linear,
    [SHAPE_MATMUL] = infer_matmul,
    [SHAPE_CONTRACT] = infer_contract,
    [SHAPE_BATCH_CONTRACT] = infer_batch_contract,
    [SHAPE_REDUCE] = infer_reduce,
    [SHAPE_NLL_LOSS] = infer_nll_loss,
    [SHAPE_SCALAR] = infer_scalar,
    [SHAPE_SCALAR_ANY] = infer_scalar,
    [SHAPE_SCALAR_BOOL] = infer_scalar_bool,
    [SHAPE_SCALAR_F32] = infer_scalar_f32,
    [SHAPE_SCALAR_F64] = infer_scalar_f64,
    [SHAPE_UPDATE_SCALE] = infer_update_scale,
    [SHAPE_OPTIMIZER] = infer_optimizer,
    [SHAPE_IOTA] = infer_iota,
    [SHAPE_RANDOM] = infer_random,
    [SHAPE_NOTHING] = infer_nothing,
    [SHAPE_GIVEN] = infer_given_rule,
    [SHAPE_CONV2D] = infer_conv2d,
    [SHAPE_CONV2D_INPUT_GRAD] = infer_conv2d_input_grad,
    [SHAPE_CONV2D_WEIGHT_GRAD] = infer_conv2d_weight_grad,
    [SHAPE_FLATTEN] = infer_flatten,
    [SHAPE_TRANSPOSE] = infer_transpose,
    [SHAPE_PERMUTE] = infer_permute,
    [SHAPE_SLICE] = infer_slice,
    [SHAPE_PAD] = infer_pad,
    [SHAPE_CONCAT] = infer_concat,
    [SHAPE_STACK] = infer_stack,
    [SHAPE_EMBEDDING] = infer_embedding,
    [SHAPE_GATHER] = infer_gather,
    [SHAPE_MAX_POOL] = infer_max_pool,
    [SHAPE_POOL] = infer_pool,
    [SHAPE_GLOBAL_POOL] = infer_global_pool,
    [SHAPE_WINDOW_MAX] = infer_window_max,
    [SHAPE_WINDOW] = infer_window,
    [SHAPE_BATCH_NORM] = infer_batch_norm,
    [SHAPE_LAYER_NORM] = infer_layer_norm,
    [SHAPE_ARGMAX] = infer_argmax,
    [SHAPE_PAIR_LOSS] = infer_pair_loss,
    [SHAPE_PAIR_LOSS_GRAD] = infer_pair_loss_grad,
    [SHAPE_WHERE_GRAD] = infer_where_grad,
    [SHAPE_NORM_GRAD] = infer_norm_grad,
    [SHAPE_SECOND_ANY] = infer_second_any,
    [SHAPE_THIRD] = infer_third,
};

static const char *wrong_count(const OpInfo *info, Arena *a, int has) {
    if (info->in_max == info->in_min)
        return arena_printf(a, "%s: needs %d operands, has %d", info->name, info->in_min, has);
    if (info->in_max == MANY)
        return arena_printf(a, "%s: needs at least %d operands, has %d", info->name, info->in_min, has);
    return arena_printf(a, "%s: needs %d to %d operands, has %d", info->name, info->in_min, info->in_max, has);
}

const char *ir_infer(const Func *f, const Op *o, Dtype t, InferredTypes *out) {
    const OpInfo *info = &ir_op_info[o->code];
    Arena *a = f->module->arena;
    *out = (InferredTypes){0};
    if (!rules[info->shape]) return "no op";
    if (o->n_in < info->in_min || o->n_in > info->in_max) return wrong_count(info, a, o->n_in);
    for (int i = 0; i < o->n_in; i++)
        if (!o->in[i].id || !ir_value(f, o->in[i]))
            return arena_printf(a, "%s: operand %d is not a value of the function", info->name, i + 1);
    Inferring c = {f, o, t, out};
    return rules[info->shape](&c);
}
