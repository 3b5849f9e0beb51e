/* gradient_rules.h: what the gradients of gradient_*.c are made from.
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
