/* product_tensor.cuh: products in tensor cores: a block makes TILE_M x TILE_N sums, each of its warps a part of them.
 *
 * A step takes STEP_BYTES of k: 32 elements of 16 bits.  mma instructions take 32 bytes of k at a time, so that
 * everything is counted in bytes and ldmatrix serves
 * 32-bit elements too.  The sum of an element is one ascending chain of mma instructions over k. */

/* How a warp reads blocks of 16 lines (A) or columns (B) of an operand in shared memory, whose first one is |first|: a
 * thread keeps the places of its own, which are the same in each tile.  k runs along the lines. */
template <class Tile, int BLOCKS, bool OF_B> struct AlongK {
    unsigned at[Tile::CHUNKS / 2]; /* of each 32 bytes of k */

    INLINE void start(const char *tile, int first, int lane) {
        const int line = OF_B ? lane / 16 * 8 + lane % 8 : lane % 16, chunk = OF_B ? lane / 8 % 2 : lane / 16;
        UNROLL
        for (int step = 0; step < Tile::CHUNKS / 2; step++)
            at[step] = kept(shared_address(tile) + first * Tile::STRIDE + Tile::at(line, 2 * step + chunk));
    }
    INLINE void load(unsigned (&x)[4], int stage, int block, int step) const {
        load_matrices(x, at[step] + (stage + block * 16 * Tile::STRIDE));
    }
};

/* k runs down the lines, 16 bits an element: ldmatrix transposes. */
template <class Tile, int BLOCKS, bool OF_B> struct DownK16 {
    unsigned at[BLOCKS];

    INLINE void start(const char *tile, int first, int lane) {
        const int line = OF_B ? lane % 16 : lane / 16 * 8 + lane % 8, chunk = OF_B ? lane / 16 : lane / 8 % 2;
        UNROLL
        for (int block = 0; block < BLOCKS; block++)
            at[block] = kept(shared_address(tile) + Tile::at(line, first / 8 + 2 * block + chunk));
    }
    INLINE void load(unsigned (&x)[4], int stage, int block, int step) const {
        load_matrices_transposed(x, at[block] + (stage + step * 16 * Tile::STRIDE));
    }
};

/* k runs down the lines, 32 bits an element: word by word. */
template <class Tile, int BLOCKS, bool OF_B> struct DownK32 {
    const char *at;

    INLINE void start(const char *tile, int first, int lane) {
        at = tile + Tile::byte_at(lane % 4, (first + lane / 4) * 4);
    }
    INLINE void load(unsigned (&x)[4], int stage, int block, int step) const {
        UNROLL
        for (int i = 0; i < 4; i++) {
            const int down = OF_B ? i % 2 : i / 2, across = OF_B ? i / 2 : i % 2; /* of four lines, of eight columns */
            x[i] =
                *(const unsigned *)(at + stage + (8 * step + 4 * down) * Tile::STRIDE + (16 * block + 8 * across) * 4);
        }
    }
};

/* How the copy and the fragments of an operand fit together: |K_INNER|: k runs along its lines in global memory. */
template <class Memory, bool K_INNER, int EXTENT, int STEP_BYTES, int BYTES, int THREADS> struct TensorOperand {
    static constexpr int SIZE = sizeof(typename Memory::Element), STEP = STEP_BYTES / SIZE;
    static constexpr Order ORDER = K_INNER || SIZE == 2 ? ORDER_SWIZZLED : ORDER_FOUR_LINES;
    typedef typename TileCopy<Memory, !K_INNER, EXTENT, STEP, ORDER, BYTES, THREADS>::Type Copy;
    template <bool INNER, int S, class Tile, int BLOCKS, bool OF_B> struct Choose {
        typedef AlongK<Tile, BLOCKS, OF_B> Type;
    };
    template <class Tile, int BLOCKS, bool OF_B> struct Choose<false, 2, Tile, BLOCKS, OF_B> {
        typedef DownK16<Tile, BLOCKS, OF_B> Type;
    };
    template <class Tile, int BLOCKS, bool OF_B> struct Choose<false, 4, Tile, BLOCKS, OF_B> {
        typedef DownK32<Tile, BLOCKS, OF_B> Type;
    };
    template <int BLOCKS, bool OF_B> struct Fragments {
        typedef typename Choose<K_INNER, SIZE, typename Copy::Tile, BLOCKS, OF_B>::Type Type;
    };
};

template <class Mma, int TILE_M, int TILE_N, int WARPS_M, int WARPS_N, int STEP_BYTES> struct TensorSums {
    static constexpr int STAGES = HAS_ASYNC_COPIES ? 3 : 2;
    static constexpr int WARP_M = TILE_M / WARPS_M, WARP_N = TILE_N / WARPS_N;
    static constexpr int BLOCKS_M = WARP_M / 16, BLOCKS_N = WARP_N / 8;
    float sums[BLOCKS_M][BLOCKS_N][4];

    INLINE void clear() {
        UNROLL
        for (int m = 0; m < BLOCKS_M; m++) UNROLL
        for (int n = 0; n < BLOCKS_N; n++) UNROLL
        for (int i = 0; i < 4; i++) sums[m][n][i] = 0.0f;
    }
    static INLINE int warp_m() { return threadIdx.x / 32 / WARPS_N * WARP_M; }
    static INLINE int warp_n() { return threadIdx.x / 32 % WARPS_N * WARP_N; }

    template <class A, class B> struct Reader {
        typename A::template Fragments<BLOCKS_M, false>::Type a;
        typename B::template Fragments<BLOCKS_N / 2, true>::Type b;
        INLINE void start(const char *tile_a, const char *tile_b) {
            a.start(tile_a, warp_m(), threadIdx.x % 32);
            b.start(tile_b, warp_n(), threadIdx.x % 32);
        }
    };

    template <class A, class B> INLINE void add(const Reader<A, B> &reader, int stage) {
        UNROLL
        for (int step = 0; step < STEP_BYTES / 32; step++) {
            unsigned a[4], b[BLOCKS_N / 2][4];
            UNROLL
            for (int n = 0; n < BLOCKS_N / 2; n++) reader.b.load(b[n], stage, n, step);
            UNROLL
            for (int m = 0; m < BLOCKS_M; m++) {
                reader.a.load(a, stage, m, step);
                UNROLL
                for (int n = 0; n < BLOCKS_N; n++) {
                    const unsigned pair[2] = {b[n / 2][n % 2 * 2], b[n / 2][n % 2 * 2 + 1]};
                    Mma::multiply(sums[m][n], a, pair);
                }
            }
        }
    }

    /* Runs of WIDTH neighbouring columns: the sums go through shared memory, |BYTES| that are free; each warp has
     * a part of it.  A warp takes some of its rows at a time, in passes; a lane has COUNT runs of each, DOWN after one
     * another in the same columns. */
    template <int WIDTH, int BYTES> struct Runs {
        static constexpr int FIT = BYTES / (WARPS_M * WARPS_N) / (16 * WARP_N * 4);
        static constexpr int BLOCKS = FIT >= BLOCKS_M ? BLOCKS_M : FIT >= 2 ? 2 : 1, ROWS = BLOCKS * 16;
        static constexpr int PASSES = BLOCKS_M / BLOCKS, LANES = WARP_N / WIDTH, ROWS_AT_ONCE = 32 / LANES;
        static constexpr int COUNT = ROWS / ROWS_AT_ONCE, DOWN = COUNT;
        static_assert(FIT >= 1 && BLOCKS_M % BLOCKS == 0 && ROWS % ROWS_AT_ONCE == 0, "");
        static_assert(DOWN < 4 || DOWN % 4 == 0, ""); /* epilogues load four at a time */

        static INLINE int lane() { return threadIdx.x % 32; }
        static INLINE int row(int pass, int run) {
            return warp_m() + pass * ROWS + run * ROWS_AT_ONCE + lane() / LANES;
        }
        static INLINE int column(int) { return warp_n() + lane() % LANES * WIDTH; }
        static INLINE float *part(char *shared) { return (float *)shared + threadIdx.x / 32 * (ROWS * WARP_N); }
        /* The index of four columns of a row: lanes write or read different banks at once. */
        static INLINE int chunk(int row, int number) {
            constexpr int CHUNKS = WARP_N / 4, ROWS_OF_BANKS = CHUNKS < 8 ? 8 / CHUNKS : 1;
            const int turn = row / ROWS_OF_BANKS % (CHUNKS < 8 ? CHUNKS / 2 : 4);
            return (number ^ number / 8 ^ (turn * 2 + turn % 2)) * 4;
        }

        /* The rows of a pass; by all lanes of the warp. */
        static INLINE void put(const TensorSums &of, char *shared, int pass) {
            const int first = lane() / 4, pair = lane() % 4;
            float *const to = part(shared) + first * WARP_N + pair % 2 * 2;
            __syncwarp(); /* the runs of the pass before have been taken */
            UNROLL
            for (int p = 0; p < PASSES; p++) {
                if (p != pass) continue;
                UNROLL
                for (int down = 0; down < BLOCKS * 2; down++) {
                    UNROLL
                    for (int n = 0; n < BLOCKS_N; n++) {
                        const float *const two = &of.sums[p * BLOCKS + down / 2][n][down % 2 * 2];
                        *(float2 *)(to + down * 8 * WARP_N + chunk(first, n * 2 + pair / 2)) =
                            make_float2(two[0], two[1]);
                    }
                }
            }
            __syncwarp();
        }
        static INLINE void take(float (&x)[WIDTH], const TensorSums &, char *shared, int run) {
            const int first = lane() / LANES;
            const int row = run * ROWS_AT_ONCE + first;
            const float *const from = part(shared) + row * WARP_N;
            UNROLL
            for (int i = 0; i < WIDTH; i += 4)
                load_shared(x + i, from + chunk(row, (lane() % LANES * WIDTH + i) / 4));
        }
    };
};
