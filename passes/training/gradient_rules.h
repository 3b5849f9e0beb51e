/* gradient_rules.h: the gradients by theme, one function per GradRule, and what they are made from.
 *
 * x, a, b: operands; y: result; dy: gradient of the result.  Each backward op runs in the dtype that its forward op was
 * given: dy has the dtype of y.  Formulas and the order of operands' gradients are PyTorch's
 * (tools/autograd/derivatives.yaml; it sorts an op's operands by name, so that the second of mul, div, mm and where
 * comes first), because gradients of a value that several ops read are added in the order in which they are made.
 */
#ifndef AMP_PASSES_TRAINING_GRADIENT_RULES_H
#define AMP_PASSES_TRAINING_GRADIENT_RULES_H

#include "passes/training/gradient.h"

#ifdef __cplusplus
extern "C" {
#endif

/* X(GradRule, function, names of the operands) */
#define GRADIENT_RULES(X)                                                                                              \
    /* gradient_product.c */                                                                                           \
    X(LINEAR, linear, "input", "weight", "bias")                                                                       \
    X(MATMUL, matmul, "a", "b")                                                                                        \
    X(CONV2D, conv2d, "input", "weight", "bias")                                                                       \
    /* gradient_elementwise.c */                                                                                       \
    X(CAST, cast, 0)                                                                                                   \
    X(ADD, add, "a", "b")                                                                                              \
    X(SUB, sub, "a", "b")                                                                                              \
    X(MUL, mul, "a", "b")                                                                                              \
    X(DIV, div, "a", "b")                                                                                              \
    X(NEG, neg, 0)                                                                                                     \
    X(EXP, exp, 0)                                                                                                     \
    X(LOG, log, 0)                                                                                                     \
    X(SQRT, sqrt, 0)                                                                                                   \
    X(POW, pow, 0)                                                                                                     \
    X(ABS, abs, 0)                                                                                                     \
    X(RSQRT, rsqrt, 0)                                                                                                 \
    X(ERF, erf, 0)                                                                                                     \
    X(CLAMP, clamp, 0)                                                                                                 \
    X(WHERE, where, "c", "a", "b")                                                                                     \
    X(RELU, relu, 0)                                                                                                   \
    X(GELU, gelu, 0)                                                                                                   \
    X(SIGMOID, sigmoid, 0)                                                                                             \
    X(TANH, tanh, 0)                                                                                                   \
    X(SILU, silu, 0)                                                                                                   \
    X(SOFTPLUS, softplus, 0)                                                                                           \
    X(DROPOUT, dropout, 0)                                                                                             \
    /* gradient_move.c */                                                                                              \
    X(RESHAPE, reshape, 0)                                                                                             \
    X(TRANSPOSE, transpose, 0)                                                                                         \
    X(PERMUTE, permute, 0)                                                                                             \
    X(SLICE, slice, 0)                                                                                                 \
    X(PAD, pad, 0)                                                                                                     \
    X(CONCAT, concat, 0)                                                                                               \
    X(STACK, stack, 0)                                                                                                 \
    X(EXPAND, expand, 0)                                                                                               \
    X(EMBEDDING, embedding, "ids", "table")                                                                            \
    /* gradient_image.c */                                                                                             \
    X(MAX_POOL2D, max_pool2d, 0)                                                                                       \
    X(AVG_POOL2D, avg_pool2d, 0)                                                                                       \
    X(GLOBAL_AVG_POOL, global_avg_pool, 0)                                                                             \
    /* gradient_norm.c */                                                                                              \
    X(BATCH_NORM, batch_norm, "input", "weight", "bias")                                                               \
    X(LAYER_NORM, layer_norm, "input", "weight", "bias")                                                               \
    X(SOFTMAX, softmax, 0)                                                                                             \
    X(LOG_SOFTMAX, log_softmax, 0)                                                                                     \
    /* gradient_reduce.c */                                                                                            \
    X(SUM, sum, 0)                                                                                                     \
    X(MEAN, mean, 0)                                                                                                   \
    X(EXTREME, extreme, 0)                                                                                             \
    X(VAR, var, 0)                                                                                                     \
    X(NLL_LOSS, nll_loss, 0)                                                                                           \
    X(MSE_LOSS, mse_loss, "a", "b")                                                                                    \
    X(BCE_WITH_LOGITS, bce_with_logits, "logits", "targets")

#define DECLARE(rule, function, ...) bool gradient_##function(Backward *b);
GRADIENT_RULES(DECLARE)
#undef DECLARE

/* ---- what rules are made from ------------------------------------------------------------------------------------ */

static inline Val grad_operand(const Backward *b, int i) { return b->op->in[i]; }
static inline Val grad_y(const Backward *b) { return b->op->out[0]; }
static inline Dtype grad_type(const Backward *b, Val v) { return ir_dtype(b->f, v); }
/* Of an operand's gradient. */
static inline Dtype grad_type_of(const Backward *b, int i) { return gradient_dtype(b->f, b->op->in[i]); }
static inline const Shape *grad_shape(const Backward *b, Val v) { return ir_shape(b->f, v); }

/* A backward op gets the forward op's attribute. */
static inline void grad_copy_attr(const Backward *b, Op *to, const char *name) {
    *ir_attr(to, name) = *ir_attr(b->op, name);
}

/* The gradients of operands 0 and 1; NO_VAL: not wanted.  PyTorch makes both before it adds either. */
static inline void grad_give_pair(Backward *b, Val first, Val second) {
    if (first.id) backward_give(b, 0, first);
    if (second.id) backward_give(b, 1, second);
}

/* The results of the op that makes |first_result| are the gradients of the operands from |operand| on. */
static inline bool grad_give_each(Backward *b, Val first_result, int operand) {
    const Op *o = ir_def(b->f, first_result);
    for (int i = 0; i < o->n_out; i++)
        if (backward_wants(b, operand + i)) backward_give(b, operand + i, o->out[i]);
    return true;
}

/* Makes the results of |o|, all of dtype |t|, and gives the first to operand 0. */
static inline bool grad_give_first(Backward *b, Op *o, Dtype t) {
    backward_give(b, 0, backward_result(b, o, t));
    return true;
}

#ifdef __cplusplus
}
#endif

#endif
