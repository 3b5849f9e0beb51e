/* reduce.cuh: sums, products, maxima and minima over the threads of a warp or a block.  The order is fixed: in a warp
 * lanes l and l ^ 16 are combined, then l ^ 8, 4, 2, 1, the lower lane first, so that all lanes have the same bits; the
 * warps of a block are combined in ascending order. */
struct Plus {
    template <typename T> INLINE static T combine(T a, T b) { return a + b; }
};
struct Times {
    INLINE static float combine(float a, float b) { return a * b; }
};
struct Max {
    INLINE static float combine(float a, float b) { return max_f32(a, b); }
    INLINE static int32_t combine(int32_t a, int32_t b) { return max_i32(a, b); }
};
struct Min {
    INLINE static float combine(float a, float b) { return min_f32(a, b); }
    INLINE static int32_t combine(int32_t a, int32_t b) { return min_i32(a, b); }
};

template <typename By, typename T> INLINE T warp_reduce(T v) {
    UNROLL
    for (int d = 16; d > 0; d /= 2) {
        const T other = __shfl_xor_sync(0xFFFFFFFFu, v, d);
        v = threadIdx.x & d ? By::combine(other, v) : By::combine(v, other);
    }
    return v;
}

/* Of all threads of a block of THREADS. */
template <typename By, int THREADS, typename T> INLINE T block_reduce(T v) {
    __shared__ T partial[THREADS / 32];
    v = warp_reduce<By>(v);
    __syncthreads(); /* nobody reads an earlier result any more */
    if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = v;
    __syncthreads();
    v = partial[0];
    UNROLL
    for (int i = 1; i < THREADS / 32; i++) v = By::combine(v, partial[i]);
    return v;
}

/* Of the threads of a block of WIDTH columns x HEIGHT that have the same column, threadIdx.x % WIDTH: the upper half
 * is combined with the lower until one is left. */
template <typename By, int WIDTH, int HEIGHT, typename T> INLINE T column_reduce(T v) {
    __shared__ T partial[WIDTH * HEIGHT];
    __syncthreads();
    partial[threadIdx.x] = v;
    UNROLL
    for (int half = HEIGHT / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < WIDTH * half)
            partial[threadIdx.x] = By::combine(partial[threadIdx.x], partial[threadIdx.x + WIDTH * half]);
    }
    __syncthreads();
    return partial[threadIdx.x % WIDTH];
}

/* Whether all others of |blocks| blocks have taken a ticket before this one: then it may read what they have stored.
 * Each of its threads calls it, after it has stored its part.  The last ticket sets the counter back to zero. */
INLINE bool takes_last_ticket(uint32_t *counter, uint32_t blocks) {
    __shared__ bool last;
    __threadfence(); /* what this thread has stored comes before the ticket */
    __syncthreads();
    if (threadIdx.x == 0) last = atomicInc(counter, blocks - 1) == blocks - 1;
    __syncthreads();
    __threadfence(); /* what the others have stored comes before it is read */
    return last;
}
