/* sync.h: batch norm over the batches of all ranks. */
#ifndef AMP_PASSES_TRAINING_SYNC_H
#define AMP_PASSES_TRAINING_SYNC_H

#include "passes/training/accumulate.h"

#ifdef __cplusplus
extern "C" {
#endif

/* In train_step of a model that trains on several ranks: sums over ranks for each batch_norm that is `sync`, and
 * numbers for all of them.  Nothing of it is left in other functions, and where the model trains alone. */
void sync_expand(Module *m);

/* Whether |next|, what micro_step makes of a buffer, is the same on all ranks, as they have added up what it is made
 * of: then there is one for all ranks, and not one for each of their micro-batches. */
bool sync_is_equal(const Split *s, const State *buffer, Val next);

#ifdef __cplusplus
}
#endif

#endif
