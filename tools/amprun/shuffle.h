/* shuffle.h: the order in which samples are drawn. */
#ifndef AMP_TOOLS_SHUFFLE_H
#define AMP_TOOLS_SHUFFLE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Fills order[0 .. count) with a permutation, a function of (seed, epoch) alone (Fisher and Yates, drawn from
 * Philox). */
void shuffle(int64_t *order, int64_t count, uint64_t seed, int64_t epoch);

#ifdef __cplusplus
}
#endif
#endif
