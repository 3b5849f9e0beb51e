/* step_mean.h: the mean over all micro-batches of a step, of all ranks, however many samples or labels each has. */
#ifndef AMP_PASSES_TRAINING_STEP_MEAN_H
#define AMP_PASSES_TRAINING_STEP_MEAN_H

#include "passes/training/accumulate.h"

#ifdef __cplusplus
extern "C" {
#endif

/* In micro_step, what losses and metrics are means over, counted.  Sets Split.mean. */
void step_mean_count(Split *s);
/* Where that is what has to be weighed: the seed of each term. */
void step_mean_weigh_seeds(Split *s);
/* What a micro-batch adds to the sum of a gradient of |term|. */
Val step_mean_weigh(Split *s, int term, Val gradient, const char *path);
/* The mean of a sum over ranks, in apply_step. */
Val step_mean_of_ranks(Split *s, Val sum, const char *of);
/* Adds losses, metrics and counts up; apply_step gets their means, and the gradients as results.  The states that hold
 * the sums: ranks exchange them. */
StateList step_mean_finish(Split *s);

#ifdef __cplusplus
}
#endif

#endif
