/* infer.h: what the shape rules share: the op in question, messages, results.  The rules that ops.def names are
 * in infer.c, which has the table, infer_product.c and infer_reduce.c, by theme. */
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
/* "the width of an image may not depend on N", or on T; NULL where |d| is a number. */
const char *infer_varies(const Inferring *c, Dim d, const char *what);
const char *infer_mismatch(const Inferring *c, const char *fmt, ...) AMP_PRINTF(2, 3);
/* "... WHAT differ, [784, 512]: ..." */
const char *infer_differing(const Inferring *c, const char *what, Dim a, Dim b);
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

/* ---- rules ------------------------------------------------------------------------------------------------------- */

/* Ops with the same rule declare it again. */
#define OP(name, shape, ...) InferRule infer_##shape;
#include "ir/ops.def"

#endif
