/* shares.h: which weights ranks divide among them (zero1), and what apply_step knows of their whole gradients. */
#ifndef AMP_PASSES_TRAINING_SHARES_H
#define AMP_PASSES_TRAINING_SHARES_H

#include "ir/ir.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Shares are runs of elements as they are in memory, which tiles of 32 columns have to fit.  |gradient|: of |param|, in
 * micro_step.  |tiles|: matrices will be stored in tiles, where products make them. */
bool shares_fit(const Func *f, const State *param, Val gradient, bool tiles);
/* Whether ranks divide it; false before pass distribute. */
bool shares_have(const Module *m, const State *param);

/* |finite|, bool: whether the rank's shares are.  Whether all shares are; |finite| itself where there are none. */
Val shares_all(Func *f, Val finite, const char *path);
/* The norm of all gradients, f64, from that of the rank's shares, and that of gradients that every rank has; either may
 * be NO_VAL. */
Val shares_norm(Func *f, Val of_share, Val of_whole, const char *path);

#ifdef __cplusplus
}
#endif

#endif
