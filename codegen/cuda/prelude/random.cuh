/* random.cuh: Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011).  key = seed;
 * counter = (hash of the op's key, iteration, micro-batch, element / 4); the element takes word element % 4 of the
 * four.  What element / 4 has above 32 bits is added to the micro-batch. */

/* The four words of each of |N| counters, which go through the rounds side by side and share the rounds' keys. */
template <int N>
INLINE void random_words(uint32_t (&words)[N][4], int64_t seed, int64_t iteration, int64_t micro, uint32_t key_hash,
                         const uint64_t (&quarters)[N]) {
    uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)((uint64_t)seed >> 32);
    UNROLL
    for (int n = 0; n < N; n++) {
        words[n][0] = key_hash;
        words[n][1] = (uint32_t)iteration;
        words[n][2] = (uint32_t)micro + (uint32_t)(quarters[n] >> 32);
        words[n][3] = (uint32_t)quarters[n];
    }
    UNROLL
    for (int round = 0; round < 10; round++, k0 += 0x9E3779B9u, k1 += 0xBB67AE85u) {
        UNROLL
        for (int n = 0; n < N; n++) {
            uint32_t(&w)[4] = words[n];
            const uint64_t by0 = (uint64_t)w[0] * 0xD2511F53u, by1 = (uint64_t)w[2] * 0xCD9E8D57u; /* mul.wide */
            w[0] = (uint32_t)(by1 >> 32) ^ w[1] ^ k0;
            w[1] = (uint32_t)by1;
            w[2] = (uint32_t)(by0 >> 32) ^ w[3] ^ k1;
            w[3] = (uint32_t)by0;
        }
    }
}

/* f32 uniform in [0, 1): 24 bits of the word. */
INLINE float uniform_f32(uint32_t word) { return (float)(word >> 8) * 0x1p-24f; }

/* The largest word whose number is below |p|, in (0, 1]: p <= uniform_f32(word) says the same as
 * word > last_dropped(p). */
INLINE uint32_t last_dropped(float p) { return ((uint32_t)ceilf(p * 0x1p24f) << 8) - 1; }

/* The four words of an element, for up to four draws of it. */
struct RandomWords {
    uint32_t word[4];
};

INLINE RandomWords random_words(int64_t seed, int64_t iteration, int64_t micro, uint32_t key_hash, int64_t element) {
    uint32_t words[1][4];
    random_words<1>(words, seed, iteration, micro, key_hash, {(uint64_t)element});
    return {words[0][0], words[0][1], words[0][2], words[0][3]};
}

INLINE float random_f32(int64_t seed, int64_t iteration, int64_t micro, uint32_t key_hash, int64_t element) {
    const RandomWords w = random_words(seed, iteration, micro, key_hash, (int64_t)((uint64_t)element >> 2));
    const int which = (int)(element & 3);
    return uniform_f32(which < 2 ? (which == 0 ? w.word[0] : w.word[1]) : (which == 2 ? w.word[2] : w.word[3]));
}
