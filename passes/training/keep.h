/* keep.h: a state whose new value is not finite keeps the one that it has. */
#ifndef AMP_PASSES_TRAINING_KEEP_H
#define AMP_PASSES_TRAINING_KEEP_H

#include "passes/training/train_step.h"

#ifdef __cplusplus
extern "C" {
#endif

/* In train_step, of what each result "update.BUFFER" is. */
void keep_finite(Module *m);
/* In the functions that train_step became: counters of the states that did. */
void keep_count(Module *m);

/* Whether keep_finite has made the op: a question whether values are finite, or the choice by its answer. */
bool keep_made(const Op *o);

#ifdef __cplusplus
}
#endif

#endif
