/* statistics.h: running statistics of models that train on several ranks. */
#ifndef AMP_PASSES_TRAINING_STATISTICS_H
#define AMP_PASSES_TRAINING_STATISTICS_H

#include "passes/training/accumulate.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Moves what makes |next| of the buffer's old value from micro_step to statistics_step, and appends the states through
 * which micro_step gives it the rest to |batch|.  false: it cannot be moved, and nothing has changed. */
bool statistics_move(Split *s, const State *buffer, Val next, StateList *batch);

/* Whether the op reads what a micro-batch before it made of a buffer.  batch_norm has the running statistics for its
 * form in evaluation, and for a batch of one value a channel: there those from before the step, as ranks have them. */
bool statistics_reads(const Op *o, int operand);

#ifdef __cplusplus
}
#endif

#endif
