/* random.cuh: Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011).  key = seed;
 * counter = (hash of the op's key, iteration, micro-batch, element / 4); the element takes word element % 4 of the
 * four.  What element / 4 has above 32 bits is added to the micro-batch. */

/* The four words of a counter. */
INLINE void random_words(uint32_t (&words)[4], int64_t seed, int64_t iteration, int64_t micro, uint32_t key_hash,
                         uint64_t quarter) {
    uint32_t c0 = key_hash, c1 = (uint32_t)iteration, c2 = (uint32_t)micro + (uint32_t)(quarter >> 32);
    uint32_t c3 = (uint32_t)quarter;
    uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)((uint64_t)seed >> 32);
    UNROLL
    for (int round = 0; round < 10; round++, k0 += 0x9E3779B9u, k1 += 0xBB67AE85u) {
        const uint32_t high0 = __umulhi(c0, 0xD2511F53u), high1 = __umulhi(c2, 0xCD9E8D57u);
        const uint32_t low0 = c0 * 0xD2511F53u, low1 = c2 * 0xCD9E8D57u;
        c0 = high1 ^ c1 ^ k0;
        c2 = high0 ^ c3 ^ k1;
        c1 = low1;
        c3 = low0;
    }
    words[0] = c0, words[1] = c1, words[2] = c2, words[3] = c3;
}

/* f32 uniform in [0, 1): 24 bits of the word. */
INLINE float uniform_f32(uint32_t word) { return (float)(word >> 8) * 0x1p-24f; }

/* The four words of an element, for up to four draws of it. */
struct RandomWords {
    uint32_t word[4];
};

INLINE RandomWords random_words(int64_t seed, int64_t iteration, int64_t micro, uint32_t key_hash, int64_t element) {
    RandomWords w;
    random_words(w.word, seed, iteration, micro, key_hash, (uint64_t)element);
    return w;
}

INLINE float random_f32(int64_t seed, int64_t iteration, int64_t micro, uint32_t key_hash, int64_t element) {
    uint32_t w[4];
    random_words(w, seed, iteration, micro, key_hash, (uint64_t)element >> 2);
    const int which = (int)(element & 3);
    return uniform_f32(which < 2 ? (which == 0 ? w[0] : w[1]) : (which == 2 ? w[2] : w[3]));
}
