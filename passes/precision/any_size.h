/* any_size.h: which ops the algorithm `min_cut` leaves in f32 because what they read may be of any size.
 *
 * A number that a caller gives, or that an op of the f32 list made, may be more than the low type holds: a price,
 * a sum, an exponential.  What is computed from it stays f32 up to the next op that is lowered by the lists or whose
 * result is bounded, as under `eager`.  What products, embeddings and parameters make is taken to be of the size that
 * training keeps it in.
 */
#ifndef AMP_PASSES_PRECISION_ANY_SIZE_H
#define AMP_PASSES_PRECISION_ANY_SIZE_H

#include "passes/precision/policy.h"

#ifdef __cplusplus
extern "C" {
#endif

/* By op id: of class `follow`, `widest` or `first`, and f32 for that reason.  |classes|: by op id. */
bool *any_size_find(Arena *a, const Func *f, const PolicyClass *classes);

#ifdef __cplusplus
}
#endif

#endif
