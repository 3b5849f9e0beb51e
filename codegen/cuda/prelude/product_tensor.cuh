/* product_tensor.cuh: products in tensor cores: a block makes TILE_M x TILE_N sums, each of its warps a part of them.
 *
 * A step takes STEP_BYTES of k: 32 elements of 16 bits.  mma instructions take 32 bytes of k at a time, so that
 * everything is counted in bytes and ldmatrix serves
 * 32-bit elements too.  The sum of an element is one ascending chain of mma instructions over k. */

/* An operand in shared memory.  k runs along the lines: line m (A) or n (B). */
template <class Tile> struct AlongK {
    static INLINE void load_a(unsigned (&a)[4], const char *tile, int m, int step, int lane) {
        load_matrices(a, shared_address(tile) + Tile::at(m + lane % 16, 2 * step + lane / 16));
    }
    /* Of two neighbouring blocks of 8 columns. */
    static INLINE void load_b(unsigned (&b)[4], const char *tile, int n, int step, int lane) {
        load_matrices(b, shared_address(tile) + Tile::at(n + lane / 16 * 8 + lane % 8, 2 * step + lane / 8 % 2));
    }
};

/* k runs down the lines, 16 bits an element: ldmatrix transposes. */
template <class Tile> struct DownK16 {
    static INLINE void load_a(unsigned (&a)[4], const char *tile, int m, int step, int lane) {
        load_matrices_transposed(
            a, shared_address(tile) + Tile::at(16 * step + lane / 16 * 8 + lane % 8, m / 8 + lane / 8 % 2));
    }
    static INLINE void load_b(unsigned (&b)[4], const char *tile, int n, int step, int lane) {
        load_matrices_transposed(b, shared_address(tile) + Tile::at(16 * step + lane % 16, n / 8 + lane / 16));
    }
};

/* k runs down the lines, 32 bits an element: word by word. */
template <class Tile> struct DownK32 {
    static INLINE unsigned word(const char *tile, int k, int at) {
        return *(const unsigned *)(tile + Tile::byte_at(k, at * 4));
    }
    static INLINE void load_a(unsigned (&a)[4], const char *tile, int m, int step, int lane) {
        UNROLL
        for (int i = 0; i < 4; i++) a[i] = word(tile, 8 * step + lane % 4 + i / 2 * 4, m + lane / 4 + i % 2 * 8);
    }
    static INLINE void load_b(unsigned (&b)[4], const char *tile, int n, int step, int lane) {
        UNROLL
        for (int i = 0; i < 4; i++) b[i] = word(tile, 8 * step + lane % 4 + i % 2 * 4, n + lane / 4 + i / 2 * 8);
    }
};

/* How the copy and the fragments of an operand fit together: |K_INNER|: k runs along its lines in global memory. */
template <class Memory, bool K_INNER, int EXTENT, int STEP_BYTES, int BYTES, int THREADS> struct TensorOperand {
    static constexpr int SIZE = sizeof(typename Memory::Element), STEP = STEP_BYTES / SIZE;
    static constexpr Order ORDER = K_INNER || SIZE == 2 ? ORDER_SWIZZLED : ORDER_FOUR_LINES;
    typedef TileCopy<Memory, K_INNER ? EXTENT : STEP, K_INNER ? STEP : EXTENT, ORDER, BYTES, THREADS> Copy;
    template <bool INNER, int S, class Tile> struct Choose { typedef AlongK<Tile> Type; };
    template <class Tile> struct Choose<false, 2, Tile> { typedef DownK16<Tile> Type; };
    template <class Tile> struct Choose<false, 4, Tile> { typedef DownK32<Tile> Type; };
    typedef typename Choose<K_INNER, SIZE, typename Copy::Tile>::Type Fragments;
    static INLINE void fetch(Copy &copy, char *tile, const typename Memory::Stored *matrix, int64_t first,
                             int64_t extent, int64_t k0, int64_t k) {
        if (K_INNER) copy.fetch(tile, matrix, first, extent, k0, k);
        else copy.fetch(tile, matrix, k0, k, first, extent);
    }
};

template <class Mma, int TILE_M, int TILE_N, int WARPS_M, int WARPS_N, int STEP_BYTES> struct TensorSums {
    static constexpr int STAGES = HAS_ASYNC_COPIES ? 3 : 2;
    static constexpr int WARP_M = TILE_M / WARPS_M, WARP_N = TILE_N / WARPS_N;
    static constexpr int BLOCKS_M = WARP_M / 16, BLOCKS_N = WARP_N / 8;
    float sums[BLOCKS_M][BLOCKS_N][4];

    INLINE void clear() {
        UNROLL
        for (int m = 0; m < BLOCKS_M; m++)
            UNROLL
            for (int n = 0; n < BLOCKS_N; n++)
                UNROLL
                for (int i = 0; i < 4; i++) sums[m][n][i] = 0.0f;
    }
    static INLINE int warp_m() { return threadIdx.x / 32 / WARPS_N * WARP_M; }
    static INLINE int warp_n() { return threadIdx.x / 32 % WARPS_N * WARP_N; }

    template <class A, class B> INLINE void add(const char *tile_a, const char *tile_b) {
        const int lane = threadIdx.x % 32;
        UNROLL
        for (int step = 0; step < STEP_BYTES / 32; step++) {
            unsigned a[BLOCKS_M][4], b[BLOCKS_N / 2][4];
            UNROLL
            for (int m = 0; m < BLOCKS_M; m++) A::Fragments::load_a(a[m], tile_a, warp_m() + 16 * m, step, lane);
            UNROLL
            for (int n = 0; n < BLOCKS_N / 2; n++) B::Fragments::load_b(b[n], tile_b, warp_n() + 16 * n, step, lane);
            UNROLL
            for (int m = 0; m < BLOCKS_M; m++) {
                UNROLL
                for (int n = 0; n < BLOCKS_N; n++) {
                    const unsigned pair[2] = {b[n / 2][n % 2 * 2], b[n / 2][n % 2 * 2 + 1]};
                    Mma::multiply(sums[m][n], a[m], pair);
                }
            }
        }
    }

    /* Runs of four neighbouring columns: two lanes exchange halves of two blocks, so that four lanes hold 16 columns
     * of a row. */
    static constexpr int RUNS_DOWN = BLOCKS_M * 2, RUNS_ACROSS = BLOCKS_N / 2;
    static INLINE int row(int down) { return warp_m() + down / 2 * 16 + down % 2 * 8 + threadIdx.x % 32 / 4; }
    static INLINE int column(int across) {
        return warp_n() + across * 16 + threadIdx.x % 2 * 8 + threadIdx.x % 4 / 2 * 4;
    }
    INLINE void run(float (&x)[4], int down, int across) const { /* by all lanes of the warp */
        const float *const left = &sums[down / 2][2 * across][down % 2 * 2];
        const float *const right = &sums[down / 2][2 * across + 1][down % 2 * 2];
        const bool odd = threadIdx.x % 2;
        const float other0 = __shfl_xor_sync(0xFFFFFFFFu, odd ? left[0] : right[0], 1);
        const float other1 = __shfl_xor_sync(0xFFFFFFFFu, odd ? left[1] : right[1], 1);
        x[0] = odd ? other0 : left[0];
        x[1] = odd ? other1 : left[1];
        x[2] = odd ? right[0] : other0;
        x[3] = odd ? right[1] : other1;
    }
};
