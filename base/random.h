/* random.h: the random numbers of initialisers, dropout and shuffles: a function of what is drawn, never of when.
 *
 * Philox4x32-10: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
 */
#ifndef AMP_BASE_RANDOM_H
#define AMP_BASE_RANDOM_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* key = seed; counter = (amp_hash32 of a path, iteration, micro-batch, element / 4): out[element % 4].  What element
 * / 4 has above 32 bits is added to the micro-batch. */
void amp_philox4x32(uint64_t key, const uint32_t counter[4], uint32_t out[4]);
/* The random word of one element. */
uint32_t amp_random_u32(uint64_t seed, uint32_t path_hash, uint32_t iteration, uint32_t micro, uint64_t element);
/* In [0, 1): the top 24 bits of a word times 2^-24. */
float amp_random_unit(uint32_t word);

#ifdef __cplusplus
}
#endif

#endif
