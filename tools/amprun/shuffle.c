/* shuffle.c: see shuffle.h. */
#include "tools/amprun/shuffle.h"

#include "base/hash.h"
#include "base/random.h"

void shuffle(int64_t *order, int64_t count, uint64_t seed, int64_t epoch) {
    uint32_t path = amp_hash32("data.shuffle");
    for (int64_t i = 0; i < count; i++) order[i] = i;
    for (int64_t i = count - 1; i > 0; i--) {
        uint64_t word = amp_random_u32(seed, path, (uint32_t)epoch, 0, (uint64_t)i);
        int64_t j = (int64_t)((word * (uint64_t)(i + 1)) >>
                              32); /* Lemire 2019, without the rejection: the bias is below 2^-16 */
        int64_t swap = order[i];
        order[i] = order[j];
        order[j] = swap;
    }
}
