/* gradient.h: the gradient of each op, and the backward pass while it is built: gradients by value, and what rules are
 * made from.
 *
 * x, a, b: operands; y: result; dy: gradient of the result.  Each backward op runs in the dtype that its forward op was
 * given: dy has the dtype of y.  Formulas and the order of operands' gradients are PyTorch's
 * (tools/autograd/derivatives.yaml; it sorts an op's operands by name, so that the second of mul, div, mm and where
 * comes first), because gradients of a value that several ops read are added in the order in which they are made.
 */
#ifndef AMP_PASSES_TRAINING_GRADIENT_H
#define AMP_PASSES_TRAINING_GRADIENT_H

#include "passes/passes.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- the backward pass ------------------------------------------------------------------------------------------- */

enum {
    NAMED_OPERANDS = 4, /* operands of an op that have a name; an op with any number of them counts them */
    OUTPUT = -1         /* means dy if an op is named */
};

typedef struct Backward {
    PassContext *context;
    Func *f;
    const char *word;                /* of paths: "grad", or "grad.1" where several losses are differentiated */
    bool *wanted;                    /* by value id of the forward part: a parameter reaches it */
    Val *gradient;                   /* by value id of the forward part: the sum so far, or NO_VAL */
    struct Checkpoints *checkpoints; /* NULL: the model has none */
    const bool *left_out;            /* by value id of the forward part: a term of the loss that another pass is for */
    const bool *splits;              /* by value id: it is computed from terms; NULL, both: the pass is for the loss */

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
Op *backward_op_of(Backward *b, Opcode code, const Val *in, int n_in);
Op *backward_op3(Backward *b, Opcode code, Val first, Val second, Val third);
Val backward_result(Backward *b, Op *o, Dtype t);
/* For ops whose result has a shape of its own: reshape. */
Val backward_reshape(Backward *b, Val v, Shape s);
/* dy in another dtype: "fc1.linear.grad.output". */
Val backward_dy_as(Backward *b, Dtype t);

/* Zeros of a shape: the gradient of what does not change. */
Val backward_zeros(Backward *b, Dtype t, const Shape *s);

/* |g| is the gradient of operand |i|: it is summed to the operand's shape, cast to its dtype and added to what came
 * from other readers. */
void backward_give(Backward *b, int i, Val g);

/* The dtype of a value's gradient: its own, or f32 for tf32. */
Dtype gradient_dtype(const Func *f, Val v);

/* The sum of all gradients of |v|, named after it; NO_VAL: nothing that is differentiated reads it. */
Val backward_gradient(Backward *b, Val v);

/* ---- rules by op ------------------------------------------------------------------------------------------------- */

typedef struct Gradient {
    /* Gives Backward.op's operands their gradients; false: an error is in the diagnostics. */
    bool (*make)(Backward *b);
    /* Their names in paths of backward ops; none where there is one operand, or any number. */
    const char *operands[NAMED_OPERANDS];
    Opcode op; /* of (dy, x) or (dy, y), that gives dx; where that is all */
} Gradient;

/* By opcode, one table a file; an op is in one of them. */
extern const Gradient gradient_ops[OP_COUNT], gradient_loss_ops[OP_COUNT], gradient_pointwise_ops[OP_COUNT],
    gradient_attention_ops[OP_COUNT];
enum { GRADIENT_TABLES = 4 };
extern const Gradient *const gradient_tables[GRADIENT_TABLES];
const Gradient *gradient_of(Opcode code); /* NULL: the op has none, or NO_GRADIENT */

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

/* All attributes of |to|, which the forward op has too. */
static inline void grad_copy_attrs(const Backward *b, Op *to) {
    const AttrSpec *specs = ir_op_info[to->code].attrs;
    for (int i = 0; i < ir_attr_count(to->code); i++) grad_copy_attr(b, to, specs[i].name);
}

/* The same for an op that draws the forward op's random numbers again: the same key at the same iteration. */
static inline void grad_copy_draw(const Backward *b, Op *to) {
    grad_copy_attrs(b, to);
    AttrValue *key = ir_attr(to, "key");
    if (!key->s || !*key->s) key->s = b->op->path;
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
