/* random.h: Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011) on vectors.
 * key = seed; counter = (hash of the op's key, iteration, micro-batch, element / 4); the element takes word element
 * % 4 of the four.  What element / 4 has above 32 bits is added to the micro-batch. */

/* Low and high 32 bits of a * m, lane by lane. */
typedef struct WideProduct {
    vu low, high;
} WideProduct;

INLINE vq product_of_even_lanes(vu a, uint32_t m) {
    const vu v = m + (vu){0};
#if GCC_X86 && W == 16
    typedef long long vs __attribute__((vector_size(64)));
    return (vq)__builtin_ia32_pmuludq512_mask((vi)a, (vi)v, (vs){0}, -1);
#elif GCC_X86 && W == 8
    return (vq)__builtin_ia32_pmuludq256((vi)a, (vi)v);
#elif GCC_X86
    return (vq)__builtin_ia32_pmuludq128((vi)a, (vi)v);
#else
    return ((vq)a & 0xFFFFFFFFu) * ((vq)v & 0xFFFFFFFFu);
#endif
}

INLINE WideProduct wide_product(vu a, uint32_t m) {
    const vq even = product_of_even_lanes(a, m), odd = product_of_even_lanes((vu)((vq)a >> 32), m);
    const vq low_half = 0xFFFFFFFFu + (vq){0};
    return (WideProduct){(vu)((even & low_half) | (odd << 32)), (vu)((even >> 32) | (odd & ~low_half))};
}

/* The four words of each lane's counter, whose last two are |c2| and |c3|. */
INLINE void philox_of(int64_t seed, int64_t iteration, uint32_t key_hash, vu c2, vu c3, vu *word) {
    vu c0 = key_hash + (vu){0}, c1 = (uint32_t)iteration + (vu){0};
    uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)((uint64_t)seed >> 32);
    for (int round = 0; round < 10; round++, k0 += 0x9E3779B9u, k1 += 0xBB67AE85u) {
        const WideProduct p0 = wide_product(c0, 0xD2511F53u), p1 = wide_product(c2, 0xCD9E8D57u);
        c0 = p1.high ^ c1 ^ k0;
        c2 = p0.high ^ c3 ^ k1;
        c1 = p1.low;
        c3 = p0.low;
    }
    word[0] = c0;
    word[1] = c1;
    word[2] = c2;
    word[3] = c3;
}

/* Of |first| + |lane|, an element divided by 4. */
INLINE void philox(int64_t seed, int64_t iteration, int64_t micro, uint32_t key_hash, uint64_t first, vu lane,
                   vu *word) {
    const vu c3 = lane + (uint32_t)first;
    const vu carry = (vu)(c3 < (uint32_t)first + (vu){0}); /* -1 */
    philox_of(seed, iteration, key_hash, (uint32_t)micro + (uint32_t)(first >> 32) - carry, c3, word);
}

/* In [0, 1): 24 bits of each word. */
INLINE vf uniform_vf(vu word) { return float_vi((vi)(word >> 8)) * 0x1p-24f; }

INLINE vu word_of_four(const vu *c, vu which) {
    return (vu)select_vi((vi)(which < 2), select_vi((vi)(which == 0), (vi)c[0], (vi)c[1]),
                         select_vi((vi)(which == 2), (vi)c[2], (vi)c[3]));
}

/* f32 uniform in [0, 1) for the elements first, first + 1, ... */
INLINE vf random_vf(int64_t seed, int64_t iteration, int64_t micro, uint32_t key_hash, int64_t first) {
    const vu element_low = (vu)lane_index() + (uint32_t)(first & 3);
    vu c[4];
    philox(seed, iteration, micro, key_hash, (uint64_t)first >> 2, element_low >> 2, c);
    return uniform_vf(word_of_four(c, element_low & 3));
}

/* The same for elements of any numbers. */
INLINE vf random_lanes_vf(int64_t seed, int64_t iteration, int64_t micro, uint32_t key_hash, const uint64_t *element) {
    vu high, low, which, c[4];
    for (int l = 0; l < W; l++) {
        high[l] = (uint32_t)(element[l] >> 34);
        low[l] = (uint32_t)(element[l] >> 2);
        which[l] = (uint32_t)element[l] & 3;
    }
    philox_of(seed, iteration, key_hash, (uint32_t)micro + high, low, c);
    return uniform_vf(word_of_four(c, which));
}

/* The four words of each of the elements first, first + 1, ..., for up to four draws of an element. */
typedef struct RandomWords {
    vu word[4];
} RandomWords;

INLINE RandomWords random_words(int64_t seed, int64_t iteration, int64_t micro, uint32_t key_hash, int64_t first) {
    RandomWords w;
    philox(seed, iteration, micro, key_hash, (uint64_t)first, (vu)lane_index(), w.word);
    return w;
}
