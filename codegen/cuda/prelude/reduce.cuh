/* reduce.cuh: sums, products, maxima and minima over the threads of a warp or a block.  The order is fixed: in a warp
 * lanes l and l ^ 16 are combined, then l ^ 8, 4, 2, 1, the lower lane first, so that all lanes have the same bits; the
 * warps of a block are combined in ascending order.
 *
 * Sums of floats keep what their additions lose, so that the error does not grow with the row. */
struct KeptSum {
    float sum, lost;
};

/* All that is lost where |to| is the larger one, else but for an error of the last place of |x| (Fast2Sum: Dekker, A
 * floating-point technique for extending the available precision, 1971). */
INLINE void plus_kept(KeptSum &to, float x) {
    const float s = to.sum + x;
    to.lost += (to.sum - s) + x;
    to.sum = s;
}

/* Infinite sums lose what is no number. */
INLINE float sum_kept(KeptSum k) { return k.lost == k.lost ? k.sum + k.lost : k.sum; }

/* A quotient, and what it leaves divided: of equal numbers that number. */
INLINE float mean_kept(KeptSum k, float count) {
    const float q = k.sum / count, more = (fma_f32(-q, count, k.sum) + k.lost) / count;
    return more == more ? q + more : q;
}

struct Plus {
    template <typename T> INLINE static T combine(T a, T b) { return a + b; }
    /* TwoSum: Knuth, The Art of Computer Programming 2, 4.2.2 */
    INLINE static KeptSum combine(KeptSum a, KeptSum b) {
        const float s = a.sum + b.sum, y = s - a.sum;
        return {s, ((a.sum - (s - y)) + (b.sum - y)) + (a.lost + b.lost)};
    }
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

template <typename T> INLINE T of_lane_xor(T v, int d) { return __shfl_xor_sync(0xFFFFFFFFu, v, d); }
INLINE KeptSum of_lane_xor(KeptSum v, int d) { return {of_lane_xor(v.sum, d), of_lane_xor(v.lost, d)}; }

template <typename By, typename T> INLINE T warp_reduce(T v) {
    UNROLL
    for (int d = 16; d > 0; d /= 2) {
        const T other = of_lane_xor(v, d);
        v = threadIdx.x & d ? By::combine(other, v) : By::combine(v, other);
    }
    return v;
}

/* Results that the threads of a block leave for one another, in shared memory.  The halves of kept sums lie apart, so
 * that neighbours are in banks of their own. */
template <typename T, int COUNT> struct SharedResults {
    T of[COUNT];
    INLINE void put(int i, T v) { of[i] = v; }
    INLINE T get(int i) const { return of[i]; }
};
template <int COUNT> struct SharedResults<KeptSum, COUNT> {
    float sum[COUNT], lost[COUNT];
    INLINE void put(int i, KeptSum v) { sum[i] = v.sum, lost[i] = v.lost; }
    INLINE KeptSum get(int i) const { return {sum[i], lost[i]}; }
};

/* Of all threads of a block of THREADS. */
template <typename By, int THREADS, typename T> INLINE T block_reduce(T v) {
    __shared__ SharedResults<T, THREADS / 32> partial;
    v = warp_reduce<By>(v);
    __syncthreads(); /* no thread reads an earlier result any more */
    if (threadIdx.x % 32 == 0) partial.put(threadIdx.x / 32, v);
    __syncthreads();
    v = partial.get(0);
    UNROLL
    for (int i = 1; i < THREADS / 32; i++) v = By::combine(v, partial.get(i));
    return v;
}

/* For a block of WIDTH columns, where each thread holds V neighbours in one of HEIGHT rows: returns to each thread the
 * result of column threadIdx.x % WIDTH.  The rows of a warp are combined first: l and l ^ 16, ..; then the warps. */
template <typename By, int WIDTH, int HEIGHT, typename T, int V> INLINE T column_reduce(const T (&v)[V]) {
    constexpr int LANES = WIDTH / V, WARPS = LANES * HEIGHT / 32;
    __shared__ SharedResults<T, WARPS * WIDTH> partial;
    const int lane = threadIdx.x % 32;
    T own[V];
    UNROLL
    for (int i = 0; i < V; i++) {
        own[i] = v[i];
        UNROLL
        for (int d = 16; d >= LANES; d /= 2) {
            const T other = of_lane_xor(own[i], d);
            own[i] = lane & d ? By::combine(other, own[i]) : By::combine(own[i], other);
        }
    }
    __syncthreads(); /* earlier sums have been read */
    UNROLL
    for (int i = 0; i < V; i++)
        if (lane < LANES && threadIdx.x < WARPS * 32) partial.put(threadIdx.x / 32 * WIDTH + lane * V + i, own[i]);
    __syncthreads();
    T all = partial.get(threadIdx.x % WIDTH);
    UNROLL
    for (int w = 1; w < WARPS; w++) all = By::combine(all, partial.get(w * WIDTH + threadIdx.x % WIDTH));
    return all;
}

/* A number of each column, held by the thread of column threadIdx.x % WIDTH: gives each thread the numbers of its V. */
template <int WIDTH, typename T, int V> INLINE void spread_columns(T (&x)[V], T v) {
    UNROLL
    for (int i = 0; i < V; i++) x[i] = __shfl_sync(0xFFFFFFFFu, v, threadIdx.x % (WIDTH / V) * V + i);
}
