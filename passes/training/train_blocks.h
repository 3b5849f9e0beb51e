/* train_blocks.h: what a model's train blocks say about each parameter. */
#ifndef AMP_PASSES_TRAINING_TRAIN_BLOCKS_H
#define AMP_PASSES_TRAINING_TRAIN_BLOCKS_H

#include "ir/ir.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The blocks of the module. */
int train_block_count(const Module *m);
const Train *train_block(const Module *m, int block);

/* The block whose parameters a state of this name belongs to; -1: none. */
int train_block_of(const Module *m, const char *state);

typedef struct ParamSettings { /* of the block's groups: of several that match, the last that gives a key */
    double lr_scale;
    bool has_weight_decay;
    double weight_decay;
} ParamSettings;
ParamSettings train_settings(const Train *block, const char *param);

/* Gradients of a training step, in the order of the parameters: result "grad.NAME" of |f| for each state that has one.
 * |block| -1: of every block. */
typedef struct ParamGradient {
    const State *param;
    int result; /* of f */
} ParamGradient;
typedef VEC(ParamGradient) ParamGradients;
ParamGradients train_gradients(const Func *f, int block);

/* The function that ends a step: apply_step where steps accumulate, else train_step; NULL: nothing is trained. */
Func *train_last_function(const Module *m);
/* The one that runs the model: micro_step or train_step. */
Func *train_first_function(const Module *m);

#ifdef __cplusplus
}
#endif

#endif
