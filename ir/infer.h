/* infer.h: what the shape rules share: the op in question, messages, results.  The rules lie in infer_*.c, by
 * theme; infer.c has the table. */
#ifndef AMP_IR_INFER_H
#define AMP_IR_INFER_H

#include "ir/ir.h"

typedef struct Inferring {
    const Func *f;
    const Op *o;
    Dtype t; /* of float results */
    InferredTypes *out;
} Inferring;

/* A rule adds the op's results and returns NULL, or returns a message. */
typedef const char *InferRule(Inferring *c);

/* ---- infer_common.c: messages ------------------------------------------------------------------ */

/* "linear: WHAT: %x is f32[N, 784], %w is f32[512, 10]" */
const char *infer_mismatch(const Inferring *c, const char *fmt, ...) AMP_PRINTF(2, 3);
/* "... WHAT differ, [784, 512]: ..." */
const char *infer_differing(const Inferring *c, const char *what, Dim a, Dim b);
const char *infer_shape_text(const Inferring *c, const Shape *s);
/* "... WHAT is [3, 4], not [3, 5]: ..." */
const char *infer_other_shape(const Inferring *c, const char *what, const Shape *is, const Shape *wanted);

/* ---- operands and results ------------------------------------------------------------------------ */

const Shape *infer_in(const Inferring *c, int i);
/* Adds a result; NULL, so that a rule may end with it. */
const char *infer_result(Inferring *c, Dtype t, Shape s);
/* Integers, booleans and f64 stay what they are; other floats give the wanted float type. */
Dtype infer_dtype(const Inferring *c, int operand);
/* The type that the op's maker gave result |i| (SHAPE_GIVEN); NULL where it has none. */
const Value *infer_given(const Inferring *c, int i);

/* ---- checks: NULL where all is well ---------------------------------------------------------------- */

/* The attribute "dim", where the op has one, is a dimension of operand 0. */
const char *infer_check_dim(const Inferring *c);
const char *infer_check_scalars(const Inferring *c, int first, int end);
/* Operand |i| has shape |wanted|. */
const char *infer_check_like(const Inferring *c, int i, const char *what, const Shape *wanted);
/* Logits or log-probabilities [..., C], operand |i|, and targets [...], the next one. */
const char *infer_check_targets(const Inferring *c, int i);
/* The dims gone or, with |keep|, 1; none given: all.  Sets |wrong| where a dim is not the operand's or comes twice. */
Shape infer_without_dims(const Shape *s, const Dims *dims, bool keep, const char **wrong);

/* ---- windows (infer_window.c) ------------------------------------------------------------------------ */

/* How a window of convolution or pooling walks over one image dimension. */
typedef struct WindowSteps {
    int64_t kernel, stride, padding, dilation;
} WindowSteps;

/* Windows along a dimension of |size|; 0 where not one fits. */
int64_t infer_window_count(int64_t size, WindowSteps w);
/* The height (axis 0) or width (axis 1) after convolution or pooling, from the op's attributes and the kernel's
 * size there. */
const char *infer_window_dim(const Inferring *c, int axis, Dim size, int64_t kernel, Dim *out);

/* ---- rules ---------------------------------------------------------------------------------------------- */

InferRule infer_same, infer_same_new_dtype, infer_broadcast, infer_compare, infer_select,
    infer_where_grad;                                                       /* infer_elementwise.c */
InferRule infer_linear, infer_matmul, infer_contract, infer_batch_contract; /* infer_product.c */
InferRule infer_conv2d, infer_conv2d_input_grad, infer_conv2d_weight_grad;  /* infer_conv.c */
InferRule infer_conv, infer_conv_data, infer_conv_weight;
InferRule infer_max_pool, infer_pool, infer_global_pool, infer_window_max, infer_window; /* infer_window.c */
InferRule infer_max_pool_grad, infer_avg_pool_grad, infer_global_pool_grad, infer_window_max_grad,
    infer_window_sum_grad;
InferRule infer_reshape, infer_flatten, infer_transpose, infer_permute, infer_slice, infer_pad, infer_concat,
    infer_stack;                                                            /* infer_move.c */
InferRule infer_expand, infer_full, infer_arange, infer_iota, infer_random; /* infer_make.c */
InferRule infer_embedding, infer_embedding_grad, infer_gather, infer_scatter;
InferRule infer_reduce, infer_argmax, infer_second, infer_extreme_grad, infer_var_grad; /* infer_reduce.c */
InferRule infer_nll_loss, infer_pair_loss, infer_pair_loss_grad;                        /* infer_loss.c */
InferRule infer_scalar, infer_scalar_bool, infer_scalar_f32, infer_scalar_f64;
InferRule infer_batch_norm, infer_layer_norm, infer_norm_grad; /* infer_norm.c */
InferRule infer_update_scale, infer_optimizer, infer_nothing;  /* infer_update.c */
InferRule infer_given_rule, infer_second_any, infer_third;     /* infer.c: by op */

#endif
