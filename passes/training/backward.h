/* backward.h: the backward pass as it is being built: gradients by value, and what the rules of gradient_*.c are
 * made from. */
#ifndef AMP_PASSES_TRAINING_BACKWARD_H
#define AMP_PASSES_TRAINING_BACKWARD_H

#include "passes/passes.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    NAMED_OPERANDS = 3, /* operands of an op that have a name; an op with any number of them counts them */
    OUTPUT = -1         /* stands for dy where an op is named */
};

typedef struct Backward {
    PassContext *context;
    Func *f;
    const char *word; /* of paths: "grad", or "grad.1" where several losses are differentiated */
    bool *wanted;     /* by value id of the forward part: a parameter reaches it */
    Val *gradient;    /* by value id of the forward part: the sum so far, or NO_VAL */

    /* the forward op whose gradient is being made */
    const Op *op;
    Val dy;                      /* gradient of its result */
    Opcode gradient_op;          /* Gradient.op of |op| */
    const char *const *operands; /* their names; NULL entries: it has one operand, or any number */
    int operand;                 /* the one that the next backward ops are for, or OUTPUT */
    int *emitted;                /* backward ops made for dy and for each operand */
} Backward;

/* From here on, ops are for the gradients of |o|. */
void backward_start(Backward *b, const Op *o, Val dy, const char *const *operands);

/* Whether operand |i| needs a gradient.  If so, the ops that follow are for it: "fc1.linear.grad.weight". */
bool backward_wants(Backward *b, int i);

/* Ops of the backward pass, with path, place and reason {gradient, of PATH}. */
Val backward_emit(Backward *b, Opcode code, Dtype t, int n_in, ...);
/* The same in two halves, for ops with attributes. */
Op *backward_op(Backward *b, Opcode code, Val first, Val second);
Op *backward_op3(Backward *b, Opcode code, Val first, Val second, Val third);
Val backward_result(Backward *b, Op *o, Dtype t);
/* For ops whose result has a shape of its own: reshape. */
Val backward_reshape(Backward *b, Val v, Shape s);
/* dy in another dtype: "fc1.linear.grad.output". */
Val backward_dy_as(Backward *b, Dtype t);

/* |g| is the gradient of operand |i|: it is summed to the operand's shape, cast to its dtype and added to what came
 * from other readers. */
void backward_give(Backward *b, int i, Val g);

/* The dtype of a value's gradient: its own, or f32 for tf32. */
Dtype gradient_dtype(const Func *f, Val v);

/* The sum of all gradients of |v|, named after it; NO_VAL: nothing that is differentiated reads it. */
Val backward_gradient(Backward *b, Val v);

#ifdef __cplusplus
}
#endif

#endif
