/* least_batch.h: how many samples a batch needs. */
#ifndef AMP_PASSES_TRAINING_LEAST_BATCH_H
#define AMP_PASSES_TRAINING_LEAST_BATCH_H

#include "passes/training/train_step.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Sets |m->least_batch| of train_step. */
void least_batch_find(Module *m);

#ifdef __cplusplus
}
#endif

#endif
