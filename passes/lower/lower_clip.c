/* lower_clip.c: torch.nn.utils.clip_grad_norm_: the norm of all gradients together, and the factor that shortens them.
 */
#include "passes/lower/lower.h"

static Val sum_of_squares(Lowering *l, Val g) {
    return lower_reduce_all(l, OP_reduce_sum, lower_binary(l, OP_mul, g, g));
}

static void lower_global_norm(Lowering *l) {
    Val total = NO_VAL;
    for (int i = 0; i < l->op->n_in; i++) {
        Val part = sum_of_squares(l, lower_cast(l, l->op->in[i], AMP_DT_F32));
        total = total.id ? lower_binary(l, OP_add, total, part) : part;
    }
    lower_give(l, 0, lower_unary(l, OP_sqrt, total));
}

/* min(1, max / (norm + 1e-6)); PyTorch divides a number by a tensor as number * (1 / tensor). */
static Val factor(Lowering *l, Val norm) {
    double max = lower_float(l, "max");
    Val *shared = lower_memo(l, "clip %u %a", norm.id, max);
    if (!shared->id) {
        Val one = lower_number(l, 1.0), limit = lower_number(l, max);
        Val inverse = lower_binary(l, OP_div, one, lower_binary(l, OP_add, norm, lower_number(l, 1e-6)));
        Val share = lower_binary(l, OP_mul, inverse, limit);
        *shared = lower_binary(l, OP_minimum, share, one);
    }
    return *shared;
}

static void lower_clip_by_norm(Lowering *l) {
    Val f = factor(l, l->op->in[1]), g = l->op->in[0];
    lower_give(l, 0, lower_binary(l, OP_mul, g, f));
}

const LowerRow lower_clip_ops[OP_COUNT] = {
    [OP_global_norm] = {lower_global_norm, TAKES_PLAIN},
    [OP_clip_by_norm] = {lower_clip_by_norm, TAKES_PLAIN},
};
