/* accumulate.h: a step as two functions: one for each micro-batch, and one that ends the step. */
#ifndef AMP_PASSES_TRAINING_ACCUMULATE_H
#define AMP_PASSES_TRAINING_ACCUMULATE_H

#include "passes/common/buckets.h"
#include "passes/training/train_step.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct StepMean StepMean;
typedef struct TreeLevel TreeLevel;

/* The gradient of a term of a loss, added up. */
typedef struct Added {
    const State *param;
    int term;
    bool first; /* of the parameter */
    Val total;  /* in apply_step */
} Added;

typedef struct Split {
    Module *m;
    Func *micro_step, *apply_step; /* NULL: the step is one function */
    Val micro;                     /* the number of the micro-batch */
    Val first;                     /* it is the first of its step; NO_VAL: each is */
    TreeLevel *level;              /* of the tree in which micro-batches are added; accumulate_tree.h */
    int levels;                    /* 0: they are added from left to right */
    StepMean *mean;
    VEC(Added) added;
    /* Of models that train on several ranks: */
    StateList batch;  /* what micro_step leaves for statistics_step */
    StateList synced; /* buffers that become the same on all ranks by themselves (sync.h) */
} Split;

/* Where the module's steps accumulate, or are divided over ranks, `train_step`, which ends with gradients, becomes
 * `micro_step` and `apply_step`; the latter starts from the summed gradients. */
Split accumulate_split(Module *m);

/* The state "NAME/SLOT" of a step, like |of|; made where there is none. */
State *accumulate_state(Split *s, const State *of, StateRole role, const char *slot);
/* |sum| holds the sum of |v| over the step's micro-batches; the sum, in apply_step. */
Val accumulate_add(Split *s, const State *sum, Val v, const char *path);
/* Says of the op in micro_step that makes |v| where it comes from; returns |v|. */
Val accumulate_explain(Split *s, Val v, const char *path);
Val accumulate_number(Func *f, Dtype t, double value, const char *path);
/* |state| becomes |next|, at the end of |f|. */
void accumulate_assign(Split *s, Func *f, Val state, Val next);
/* Moves the last |count| ops of the body to |at|. */
void accumulate_move_last(Func *f, int count, int at);

#ifdef __cplusplus
}
#endif

#endif
