/* random.c: see random.h. */
#include "base/random.h"

/* Philox4x32 round and key schedule with the constants of Salmon et al., SC 2011, table 2 and section 3.3. */
enum { PHILOX_ROUNDS = 10 };
static const uint32_t philox_m0 = 0xD2511F53, philox_m1 = 0xCD9E8D57;
static const uint32_t philox_w0 = 0x9E3779B9, philox_w1 = 0xBB67AE85;

void amp_philox4x32(uint64_t key, const uint32_t counter[4], uint32_t out[4]) {
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
    for (int round = 0; round < PHILOX_ROUNDS; round++, k0 += philox_w0, k1 += philox_w1) {
        uint64_t p0 = (uint64_t)philox_m0 * c0, p1 = (uint64_t)philox_m1 * c2;
        c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c1 = (uint32_t)p1;
        c3 = (uint32_t)p0;
    }
    out[0] = c0, out[1] = c1, out[2] = c2, out[3] = c3;
}

uint32_t amp_random_u32(uint64_t seed, uint32_t path_hash, uint32_t iteration, uint32_t micro, uint64_t element) {
    const uint32_t counter[4] = {path_hash, iteration, micro + (uint32_t)(element >> 34), (uint32_t)(element / 4)};
    uint32_t words[4];
    amp_philox4x32(seed, counter, words);
    return words[element % 4];
}

float amp_random_unit(uint32_t word) { return (float)(word >> 8) * 0x1p-24f; }
