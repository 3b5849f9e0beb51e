/* checkpoint.h: blocks `checkpoint { }` of the model: what the backward pass reads of them is computed again. */
#ifndef AMP_PASSES_TRAINING_CHECKPOINT_H
#define AMP_PASSES_TRAINING_CHECKPOINT_H

#include "passes/passes.h"

typedef struct Checkpoints Checkpoints;

/* Of a backward pass that is about to begin; |word| is added to the paths of copies.  NULL: the function has none. */
Checkpoints *checkpoints_new(Func *f, int forward_ops, const char *word);
/* The gradients of |o| come next.  |gradient|: those so far, by value id; the result of |o| has one. */
void checkpoints_reach(Checkpoints *c, const Op *o, const Val *gradient);
/* What a backward op of |o| reads in place of the forward value |v|. */
Val checkpoints_read(Checkpoints *c, const Op *o, Val v);
/* Nothing is in a checkpoint any more. */
void checkpoints_forget(Module *m);

#endif
