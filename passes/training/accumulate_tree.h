/* accumulate_tree.h: sums over the micro-batches of a step in the order of a balanced tree. */
#ifndef AMP_PASSES_TRAINING_ACCUMULATE_TREE_H
#define AMP_PASSES_TRAINING_ACCUMULATE_TREE_H

#include "passes/training/accumulate.h"

#ifdef __cplusplus
extern "C" {
#endif

/* When the module asks for it and it is another order than from left to right: what all sums of micro_step read, at
 * the end of its body.  |first|: the number of this rank's first micro-batch. */
void accumulate_tree_begin(Split *s, Val first);
/* What |sum|, a state, becomes in a micro-batch that adds |v|. */
Val accumulate_tree_next(Split *s, const State *sum, Val v, const char *path);

#ifdef __cplusplus
}
#endif
#endif
