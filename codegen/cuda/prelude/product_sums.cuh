/* product_sums.cuh: FP32 products: a fused multiply-add for each term, k ascending, one chain an element: the sum that
 * the CPU makes.  A thread makes 8 rows, in a tile of 32 x 32 two, of 4 columns or of twice 4; 16 threads stand side by
 * side, there 8. */

enum { SUMS_STEP = 16 };

template <class Memory, bool K_INNER, int EXTENT, int BYTES, int THREADS> struct FmaOperand {
    static constexpr int STEP = SUMS_STEP;
    template <bool INNER, int UNUSED> struct Choose { typedef TurnedCopy<Memory, EXTENT, STEP, BYTES, THREADS> Type; };
    template <int UNUSED> struct Choose<false, UNUSED> {
        typedef typename TileCopy<Memory, true, EXTENT, STEP, ORDER_ALONG, BYTES, THREADS>::Type Type;
    };
    typedef typename Choose<K_INNER, 0>::Type Copy;
};

template <int TILE_M, int TILE_N, int THREADS> struct FmaSums {
    static constexpr int STAGES = 2; /* a step is long: one tile on its way is enough */
    static constexpr int ACROSS = TILE_N < 64 ? TILE_N / 4 : 16, RUNS_ACROSS = TILE_N / (4 * ACROSS);
    static constexpr int RUNS_DOWN = TILE_M / (THREADS / ACROSS), AT_ONCE = RUNS_DOWN < 4 ? 2 : 4;
    float sums[RUNS_DOWN][RUNS_ACROSS][4];

    INLINE void clear() {
        UNROLL
        for (int m = 0; m < RUNS_DOWN; m++) UNROLL
        for (int n = 0; n < RUNS_ACROSS; n++) UNROLL
        for (int i = 0; i < 4; i++) sums[m][n][i] = 0.0f;
    }
    static INLINE int row(int down) { return threadIdx.x / ACROSS * RUNS_DOWN + down; }
    static INLINE int column(int across) { return threadIdx.x % ACROSS * 4 + across * 64; }

    template <class A, class B> struct Reader {
        const char *a, *b;
        INLINE void start(const char *tile_a, const char *tile_b) {
            a = tile_a;
            b = tile_b;
        }
    };

    static INLINE void load_down(float *to, const char *from) {
        if constexpr (AT_ONCE == 2) *(float2 *)to = *(const float2 *)from;
        else *(float4 *)to = *(const float4 *)from;
    }
    template <class A, class B> INLINE void add(const Reader<A, B> &reader, int stage) {
        const char *const tile_a = reader.a + stage, *const tile_b = reader.b + stage;
        UNROLL
        for (int k = 0; k < SUMS_STEP; k++) {
            float down[RUNS_DOWN];
            float4 b[RUNS_ACROSS];
            UNROLL
            for (int m = 0; m < RUNS_DOWN; m += AT_ONCE)
                load_down(down + m, tile_a + A::Copy::Tile::byte_at(k, row(m) * 4));
            UNROLL
            for (int n = 0; n < RUNS_ACROSS; n++)
                b[n] = *(const float4 *)(tile_b + B::Copy::Tile::at(k, column(n) / 4));
            UNROLL
            for (int n = 0; n < RUNS_ACROSS; n++) {
                const float across[4] = {b[n].x, b[n].y, b[n].z, b[n].w};
                UNROLL
                for (int m = 0; m < RUNS_DOWN; m++) {
                    UNROLL
                    for (int i = 0; i < 4; i++) sums[m][n][i] = fma_f32(down[m], across[i], sums[m][n][i]);
                }
            }
        }
    }

    /* Runs as in TensorSums; a thread already holds its own. */
    template <int WIDTH, int BYTES> struct Runs {
        static_assert(WIDTH == 4, "");
        static constexpr int PASSES = 1, COUNT = RUNS_DOWN * RUNS_ACROSS, DOWN = RUNS_DOWN;
        static INLINE int row(int, int run) { return FmaSums::row(run % RUNS_DOWN); }
        static INLINE int column(int run) { return FmaSums::column(run / RUNS_DOWN); }
        static INLINE void put(const FmaSums &, char *, int) {}
        static INLINE void take(float (&x)[4], const FmaSums &of, char *, int run) {
            UNROLL
            for (int i = 0; i < 4; i++) x[i] = of.sums[run % RUNS_DOWN][run / RUNS_DOWN][i];
        }
    };
};
