/* shapes.h: what the rules of shapes share.  A rule reads the shapes and known integers of a node's inputs, and says
 * what it can of its outputs; what it does not say stays unknown.  No rule fails. */
#ifndef AMP_ONNX_SHAPES_H
#define AMP_ONNX_SHAPES_H

#include "onnx/solve.h"

/* Elements of integer tensors that are followed, and dimensions that a rule makes, at most. */
enum { ONNX_KNOWN_INTS = 16, ONNX_RANK = 16 };

typedef struct OnnxRule {
    const char *ops; /* names, separated by spaces */
    void (*say)(OnnxSolver *s, int32_t node);
} OnnxRule;

/* Up to one without ops: of shapes, and of integers that are known. */
extern const OnnxRule onnx_rules_move[], onnx_rules_nn[], onnx_rules_fold[];

/* ---- reading ----------------------------------------------------------------------------------------------------- */

int32_t onnx_input(const OnnxSolver *s, int32_t node, int i);  /* the value; ONNX_NONE */
int32_t onnx_output(const OnnxSolver *s, int32_t node, int i); /* the value; ONNX_NONE */
OnnxValueShape onnx_input_shape(const OnnxSolver *s, int32_t node, int i);
/* data is NULL if they are not known, or there is no such input. */
OnnxKnownInts onnx_input_ints(const OnnxSolver *s, int32_t node, int i);
/* An attribute of ints, or else input |i|, as in ops that changed from one to the other.  As onnx_input_ints. */
OnnxKnownInts onnx_ints_of(const OnnxSolver *s, int32_t node, const char *attribute, int i);
/* The only element of such; false if it is not a number. */
bool onnx_number(OnnxKnownInts ints, int k, int64_t *out);
int64_t onnx_int_of(const OnnxSolver *s, int32_t node, const char *attribute, int64_t otherwise);
/* -2 as an axis of |rank| dimensions; -1: it is none. */
int onnx_axis(int64_t axis, int rank);
/* Axes as a set, of numbers; false if one is not known or none. */
bool onnx_axis_set(OnnxKnownInts axes, int rank, bool set[ONNX_RANK]);
OnnxSize onnx_count(OnnxSolver *s, OnnxValueShape shape, int from, int to); /* the product of dimensions */

const OnnxSize *onnx_copy_sizes(OnnxSolver *s, const OnnxSize *from, int count);

/* ---- saying ------------------------------------------------------------------------------------------------------ */

void onnx_say_shape(OnnxSolver *s, int32_t node, int i, int rank, const OnnxSize *dims); /* which are copied */
void onnx_say_same(OnnxSolver *s, int32_t node, int i, OnnxValueShape shape);            /* which is shared */
void onnx_say_rank(OnnxSolver *s, int32_t node, int i, int rank);                        /* of unknown dimensions */
void onnx_say_ints(OnnxSolver *s, int32_t node, int i, const OnnxSize *data, int count); /* which are copied */
/* The elements of a small tensor of integers or bool. */
void onnx_ints_of_tensor(OnnxSolver *s, const OnnxTensor *t, OnnxKnownInts *out);
bool onnx_broadcast(OnnxSolver *s, OnnxValueShape a, OnnxValueShape b, OnnxValueShape *out);

#endif
