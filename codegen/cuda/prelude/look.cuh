/* look.cuh: what an op makes before it is rounded to f16, in a run that is looked at (runtime/session/look.c): how many
 * numbers become infinities or zeros there, and the largest.  In any other run a kernel reads |on| once.
 *
 * Counts alone go to memory: the numbers would take more of it than a device has to spare, and a run that is looked at
 * is the same launches, so the same graph, as any other. */
struct Look {            /* amp_model_look_counts */
    uint32_t on;         /* this run is looked at */
    uint32_t largest;    /* the bits of it, of those that are finite */
    unsigned long long lost, infinite;
};

/* Bits of f32: the least that does not become zero in f16, the least that becomes infinite, and infinity. */
enum { F16_KEPT_FROM = 0x33000001, F16_INFINITE_FROM = 0x477FF000, F32_INFINITE = 0x7F800000 };

INLINE uint32_t largest_of(const Look *at) { return *(const volatile uint32_t *)&at->largest; }

/* Counts the first |left| numbers of v.  Ordinary numbers cost one read: few are larger than the largest so far. */
template <int V> INLINE void look(Look *at, const float (&v)[V], int32_t left = V) {
    uint32_t largest = 0, lost = 0, infinite = 0;
    UNROLL
    for (int i = 0; i < V; i++) {
        const uint32_t bits = i < left ? bits_of(v[i]) & 0x7FFFFFFF : 0;
        if (bits < F32_INFINITE && bits > largest) largest = bits;
        lost += bits - 1 < F16_KEPT_FROM - 1;
        infinite += bits - F16_INFINITE_FROM < F32_INFINITE - F16_INFINITE_FROM;
    }
    if (largest > largest_of(at)) atomicMax(&at->largest, largest);
    if (lost) atomicAdd(&at->lost, (unsigned long long)lost);
    if (infinite) atomicAdd(&at->infinite, (unsigned long long)infinite);
}

INLINE void look(Look *at, float v) {
    const float one[1] = {v};
    look(at, one);
}
