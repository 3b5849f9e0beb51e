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

#ifdef __cplusplus
}
#endif

#endif
