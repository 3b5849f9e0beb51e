/* training_step.h: what the parts of the optimizer pass share: one train block as its updates are built.
 *   optimizer.c  the pass: parameters, buffers, counters
 *   rates.c      learning rates and weight decays, constant or by schedule
 *   clip.c       limits on gradients
 */
#ifndef AMP_PASSES_TRAINING_TRAINING_STEP_H
#define AMP_PASSES_TRAINING_TRAINING_STEP_H

#include "passes/passes.h"
#include "passes/training/train_blocks.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct Rate { /* a number of the call times a group's factor, or "group": the group's own */
    const char *argument;
    double factor;
    Val value; /* f64 scalar */
} Rate;

typedef struct BlockStep {
    PassContext *c;
    Module *m;
    Func *f; /* that ends the step */
    const Train *block;
    int index;  /* of the block */
    Val ok;     /* predicate of its writes; NO_VAL: always */
    Val done;   /* updates before this one (state, i64): what schedules go by */
    Val number; /* of this update, from 1 */
    ParamGradients gradients;
    VEC(Rate) rates;
} BlockStep;

/* Path, place and reason of an op of the block's updates: "fc1.weight", "adamw". */
void step_explain(BlockStep *b, Op *o, const char *of, const char *what);
/* A number of the module's text: an int may stand where a float does. */
double step_number(const CallArg *arg, double otherwise);
/* Every attribute of the op that the call names. */
void step_set_attributes(const Call *call, Op *o);

/* rates.c: argument |name| of the block's optimizer times |factor|, in f64. */
Val step_rate(BlockStep *b, const char *name, double factor);
/* The weight decay of a group. */
Val step_group_decay(BlockStep *b, double value);
/* false: a schedule that is not known is in the diagnostics. */
bool step_check_rates(BlockStep *b);

/* clip.c: the block's gradients as its optimizer takes them, in the order of b->gradients. */
Val *step_clipped_gradients(BlockStep *b);

#ifdef __cplusplus
}
#endif

#endif
