/* rank_mean.h: the mean over all micro-batches of all ranks, however many samples or labels each has. */
#ifndef AMP_PASSES_TRAINING_RANK_MEAN_H
#define AMP_PASSES_TRAINING_RANK_MEAN_H

#include "passes/training/accumulate.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Before the backward pass: what each loss is a mean of, counted.  Sets Split.mean. */
void rank_mean_count(Split *s);
/* f32: the micro-batches of a step on all ranks; |k|: on one. */
Val rank_mean_batches(Split *s, Val k);
/* |share| of the block's loss, times what the micro-batch has of what a full one has. */
Val rank_mean_share(Split *s, Val share, int block);
/* The mean of a sum over ranks, in apply_step. */
Val rank_mean_of_ranks(Split *s, Val sum, const char *of);
/* Adds losses, metrics and counts up; apply_step gets their means over all ranks, and gradients the factor that makes
 * sums over ranks means.  The states that hold the sums: ranks exchange them. */
StateList rank_mean_measures(Split *s);

#ifdef __cplusplus
}
#endif

#endif
