/* lower.h: what the files of the lower pass share.
 *   lower.c             the pass: regions, names, the walk over the body
 *   lower_rules.c       the table from LowerRule to function, and the helpers below
 *   lower_elementwise.c, _product.c, _reduce.c, _loss.c, _scale.c, _optimizer.c   the rules, by theme
 *
 * A rule emits core ops for Lowering.op and says with lower_give which value stands for each of its results.  All
 * arithmetic is in f32, whatever the dtypes of the graph op: operands are widened, the result is rounded once.  The
 * order of calls is the order of ops, so no two arguments of a call emit.
 */
#ifndef AMP_PASSES_LOWER_H
#define AMP_PASSES_LOWER_H

#include "passes/place.h"
#include "passes/rewrite.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct Memo {
    const char *key;
    Val value;
} Memo;

typedef struct Lowering {
    Func *f;
    PassContext *c;
    Op *op;         /* the graph op; its inputs are core values already */
    Val *given;     /* core values of the op's results */
    Val wide[2][4]; /* operands widened already: from, to */
    int wide_count;
    VEC(Memo *) memos; /* scalars that several graph ops share */
    bool failed;
} Lowering;

typedef void (*LowerFn)(Lowering *l);
LowerFn lower_rule(LowerRule rule); /* NULL: there is none */

/* ---- helpers for rules ------------------------------------------------------------------------------------------- */

/* Operand |i| of the graph op in f32. */
Val lower_operand(Lowering *l, int i);
Val lower_cast(Lowering *l, Val v, Dtype t);
/* Elementwise core ops; floats stay in the dtype of the first operand. */
Val lower_unary(Lowering *l, Opcode code, Val a);
Val lower_binary(Lowering *l, Opcode code, Val a, Val b);
Val lower_select(Lowering *l, Val c, Val a, Val b);
/* A scalar constant: f32, or of type |t|. */
Val lower_number(Lowering *l, double value);
Val lower_number_of(Lowering *l, double value, Dtype t);
/* Folds the last dimension and keeps it, with size 1. */
Val lower_reduce_row(Lowering *l, Opcode code, Val v);
/* Folds the dims |folded| of v; those in |kept| stay with size 1.  NO_VAL and a diagnostic where it is no chain of row
 * and column folds. */
Val lower_reduce(Lowering *l, Opcode code, Val v, const bool *folded, const bool *kept);
/* v repeated along |dims| of |like|'s shape. */
Val lower_broadcast(Lowering *l, Val v, Val like, const Dims *dims);
/* f32 scalar: how many elements |like| has along |dims| (all where none are given). */
Val lower_extent(Lowering *l, Val like, const Dims *dims);
/* The index of each element of |like| along its last dimension, as i32. */
Val lower_iota(Lowering *l, Val like);
/* Core value |v|, rounded to the dtype of result |i| of the graph op, stands for that result. */
void lower_give(Lowering *l, int i, Val v);
/* A place for a value that is computed once for all graph ops that ask with the same key; id 0 the first time. */
Val *lower_memo(Lowering *l, const char *fmt, ...) AMP_PRINTF(2, 3);
/* An op that is valid but that core IR cannot say yet; the message starts with the op's place and path. */
void lower_unsupported(Lowering *l, const char *fmt, ...) AMP_PRINTF(2, 3);
/* Attributes of the graph op. */
double lower_float(const Lowering *l, const char *name);
bool lower_bool(const Lowering *l, const char *name);
/* Checks that attribute "dim" is the last one. */
bool lower_dim_is_last(Lowering *l);

/* ---- rules ------------------------------------------------------------------------------------------------------- */

#define LOWER_RULES(X)                                                                                                 \
    X(LOWER_KEEP, lower_keep)                                                                                          \
    X(LOWER_ELEMENTWISE, lower_elementwise)                                                                            \
    X(LOWER_LINEAR, lower_linear)                                                                                      \
    X(LOWER_MATMUL, lower_matmul) X(LOWER_RELU, lower_relu) X(LOWER_GELU, lower_gelu) X(LOWER_SIGMOID, lower_sigmoid)  \
        X(LOWER_DROPOUT, lower_dropout) X(LOWER_SUM, lower_sum) X(LOWER_MEAN, lower_mean) X(                           \
            LOWER_SOFTMAX, lower_softmax) X(LOWER_LOG_SOFTMAX, lower_log_softmax) X(LOWER_NLL_LOSS, lower_nll_loss)    \
            X(LOWER_ACCURACY, lower_accuracy) X(LOWER_GRAD_SEED, lower_grad_seed) X(LOWER_RELU_GRAD, lower_relu_grad)  \
                X(LOWER_GELU_GRAD, lower_gelu_grad) X(LOWER_SIGMOID_GRAD, lower_sigmoid_grad)                          \
                    X(LOWER_TANH_GRAD, lower_tanh_grad) X(LOWER_SOFTMAX_GRAD, lower_softmax_grad)                      \
                        X(LOWER_LOG_SOFTMAX_GRAD, lower_log_softmax_grad) X(LOWER_NLL_LOSS_GRAD, lower_nll_loss_grad)  \
                            X(LOWER_SUM_TO, lower_sum_to) X(LOWER_BROADCAST_TO, lower_broadcast_to)                    \
                                X(LOWER_SCALE_LOSS, lower_scale_loss) X(LOWER_INVERSE_SCALE, lower_inverse_scale)      \
                                    X(LOWER_UNSCALE, lower_unscale) X(LOWER_ALL_FINITE, lower_all_finite)              \
                                        X(LOWER_UPDATE_SCALE, lower_update_scale)                                      \
                                            X(LOWER_GLOBAL_NORM, lower_global_norm)                                    \
                                                X(LOWER_CLIP_BY_NORM, lower_clip_by_norm)                              \
                                                    X(LOWER_SCHEDULE, lower_schedule) X(LOWER_SGD, lower_sgd)          \
                                                        X(LOWER_ADAM, lower_adam) X(LOWER_ADAMW, lower_adamw)

#define DECLARE(id, function) void function(Lowering *l);
LOWER_RULES(DECLARE)
#undef DECLARE

#ifdef __cplusplus
}
#endif

#endif
