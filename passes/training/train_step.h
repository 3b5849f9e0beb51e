/* train_step.h: what the passes of a training step share: the model's train blocks and the functions of a step. */
#ifndef AMP_PASSES_TRAINING_TRAIN_STEP_H
#define AMP_PASSES_TRAINING_TRAIN_STEP_H

#include "ir/ir.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- train blocks ----------------------------------------------------------------------------------------------- */

int train_block_count(const Module *m);
const Train *train_block(const Module *m, int block);

/* The block that trains parameters of this name; -1: none. */
int train_block_of(const Module *m, const char *state);

/* Path, place and reason of an op of an update: "fc1.weight.adamw". */
void train_explain_update(Module *m, const Train *block, Op *o, const char *of, const char *what);
/* A number of the model text; an int may be written where a float is expected. */
double train_number(const CallArg *arg, double otherwise);
/* Every attribute of the op that the call names. */
void train_set_attributes(const Call *call, Op *o);

/* Gradients of a training step, in the order of the parameters: the results of kind GRADIENT of |f|.
 * |block| -1: of every block. */
typedef struct ParamGradient {
    const State *param;
    int result; /* of f */
} ParamGradient;
typedef VEC(ParamGradient) ParamGradients;
ParamGradients train_gradients(const Func *f, int block);

/* ---- the functions of a step ------------------------------------------------------------------------------------ */

/* The function that ends a step: apply_step if steps accumulate, else train_step; NULL: nothing is trained. */
Func *train_last_function(const Module *m);
/* The one that runs the model: micro_step or train_step. */
Func *train_first_function(const Module *m);

#ifdef __cplusplus
}
#endif

#endif
