/* infer.h: what the shape rules share: the op in question, messages, results.  The rules that ops.def names are
 * in infer_*.c, by theme; infer.c has the table. */
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

/* ---- infer_common.c: messages ------------------------------------------------------------------------------------ */

/* "linear: WHAT: %x is f32[N, 784], %w is f32[512, 10]" */
const char *infer_mismatch(const Inferring *c, const char *fmt, ...) AMP_PRINTF(2, 3);
/* "... WHAT differ, [784, 512]: ..." */
const char *infer_differing(const Inferring *c, const char *what, Dim a, Dim b);
const char *infer_shape_text(const Inferring *c, const Shape *s);
/* "... WHAT is [3, 4], not [3, 5]: ..." */
const char *infer_other_shape(const Inferring *c, const char *what, const Shape *is, const Shape *wanted);

/* ---- operands and results ---------------------------------------------------------------------------------------- */

const Shape *infer_in(const Inferring *c, int i);
/* Adds a result; NULL, so that a rule may end with it. */
const char *infer_result(Inferring *c, Dtype t, Shape s);
/* Integers, booleans and f64 stay what they are; other floats give the wanted float type. */
Dtype infer_dtype(const Inferring *c, int operand);
/* The type that the op's maker gave result |i| (GIVEN); NULL where it has none. */
const Value *infer_given(const Inferring *c, int i);

/* ---- checks: NULL where all is well ------------------------------------------------------------------------------ */

/* The attribute "dim", where the op has one, is a dimension of operand 0. */
const char *infer_check_dim(const Inferring *c);
const char *infer_check_scalars(const Inferring *c, int first, int end);
/* Operand |i| has shape |wanted|. */
const char *infer_check_like(const Inferring *c, int i, const char *what, const Shape *wanted);
/* Logits or log-probabilities [..., C], operand |i|, and targets [...], the next one. */
const char *infer_check_targets(const Inferring *c, int i);
/* The dims gone or, with |keep|, 1; none given: all.  Sets |wrong| where a dim is not the operand's or comes twice. */
Shape infer_without_dims(const Shape *s, const Dims *dims, bool keep, const char **wrong);

/* ---- windows (infer_image.c) ------------------------------------------------------------------------------------ */

/* How a window of convolution or pooling walks over one image dimension. */
typedef struct WindowSteps {
    int64_t kernel, stride, padding, dilation;
} WindowSteps;

/* Windows along a dimension of |size|; 0 where not one fits. */
int64_t infer_window_count(int64_t size, WindowSteps w);
/* The height (axis 0) or width (axis 1) after convolution or pooling, from the op's attributes and the kernel's
 * size there. */
const char *infer_window_dim(const Inferring *c, int axis, Dim size, int64_t kernel, Dim *out);

/* ---- rules ------------------------------------------------------------------------------------------------------- */

/* Ops with the same rule declare it again. */
#define OP(name, shape, ...) InferRule infer_##shape;
#include "ir/ops.def"

#endif
