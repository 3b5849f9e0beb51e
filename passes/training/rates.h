/* rates.h: learning rates and weight decays of a train block, as scalars of the step. */
#ifndef AMP_PASSES_TRAINING_RATES_H
#define AMP_PASSES_TRAINING_RATES_H

#include "passes/common/common.h"
#include "passes/training/train_step.h"

typedef struct MadeRate { /* a learning rate or weight decay that has been emitted */
    const char *argument; /* of the optimizer */
    int group;            /* of the block; NO_BLOCK: the block's */
    Val value;            /* f64 scalar */
} MadeRate;

typedef struct BlockRates { /* those of one train block while its updates are built */
    PassContext *c;
    Func *f;
    const Train *block;
    int index; /* of the block */
    Val done;  /* i64 state: updates so far, the step of schedules */
    VEC(MadeRate) made;
} BlockRates;

/* The schedules are known, and the names of their states are free. */
bool rates_check(BlockRates *b);

/* f64 scalars, made once for all parameters that share them. */
Val rate_of_param(BlockRates *b, const ParamTraining *settings);
Val decay_of_param(BlockRates *b, const ParamTraining *settings);

#endif
