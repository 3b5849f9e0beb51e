/* product.cuh: sums of products: a block walks along k, tile by tile, through a ring of tiles in shared memory. */

/* The tile of block |x|, |y| of a grid of |down| by |across| blocks.  Blocks that run at once are neighbours along x;
 * their tiles are a stripe of 16 rows of tiles, column by column, so that they read little of both operands, and that
 * from the L2 cache. */
INLINE uint2 tile_in_stripe(uint32_t x, uint32_t y, uint32_t down, uint32_t across) {
    const uint32_t number = y * down + x, stripe = number / (16 * across), in = number % (16 * across);
    const uint32_t rows = down - 16 * stripe < 16 ? down - 16 * stripe : 16;
    return make_uint2(16 * stripe + in % rows, in / rows);
}

/* Prefetches a tile of ROWS rows of ROW_BYTES, of a matrix with |rows| and |row_bytes| left, so that it is in the L2
 * cache when the block has its sums: it reads what it needs beside them with few loads in flight. */
template <int ROWS, int ROW_BYTES>
INLINE void prefetch_tile(const void *first, int64_t pitch, int64_t rows, int64_t row_bytes) {
    constexpr int LINE = 128, LINES = (ROW_BYTES + LINE - 1) / LINE;
    NO_UNROLL
    for (int i = threadIdx.x; i < ROWS * LINES; i += blockDim.x) {
        const int row = i / LINES, at = i % LINES * LINE;
        const char *const line = (const char *)first + row * pitch + at;
        if (row < rows && at < row_bytes)
            asm volatile("prefetch.global.L2 [%0];" ::"l"(__cvta_generic_to_global(line)));
    }
}

/* Sums: TensorSums or FmaSums; A and B: TensorOperand or FmaOperand. */
template <class Sums_, class A, class B> struct Product {
    typedef Sums_ Sums;
    typedef typename A::Copy CopyA;
    typedef typename B::Copy CopyB;
    static constexpr int BYTES_A = CopyA::Tile::BYTES, BYTES_B = CopyB::Tile::BYTES, STAGE = BYTES_A + BYTES_B;
    /* Tiles in shared memory: one that is read, the others on their way.  A kernel may declare 48 KiB. */
    static constexpr int STAGES = Sums::STAGES * STAGE <= 49152 ? Sums::STAGES : 2;
    static constexpr int SHARED = STAGES * STAGE;
    /* Whether there are steps that neither wait for what they bring nor ask whether it is there. */
    static constexpr bool AHEAD = STAGES > 2 && CopyA::ASYNC &&CopyB::ASYNC;
    /* Whether they are written out for each tile of the ring, so that all places are constants. */
    static constexpr bool WRITTEN_OUT = AHEAD && !LEAN;

    CopyA copy_a;
    CopyB copy_b;
    int steps;
    typename Sums::template Reader<A, B> reader;

    /* The next tiles of both. */
    INLINE void fetch(int stage, bool last) {
        copy_a.fetch(stage, last);
        copy_b.fetch(stage, last);
        close_copies();
    }
    INLINE void put(char *stage) {
        copy_a.put(stage);
        copy_b.put(stage + BYTES_A);
    }
    static INLINE int after(int stage) { return stage == SHARED - STAGE ? 0 : stage + STAGE; }
    /* Adds the products of the tiles at |now|, and fetches the tiles of a later step to |next|. */
    INLINE void step(Sums &sums, char *shared, int now, int next, bool more, bool last) {
        await_copies<STAGES - 2>();
        __syncthreads();
        if (more) fetch(next, last);
        else close_copies();
        sums.template add<A, B>(reader, now);
        if (more) put(shared + next);
    }

    /* Waits for earlier launches, and asks for the first tiles at |row0| and |col0| of |a| (rows x k) and |b| (k x
     * cols), from |begin| of k on, which is a whole number of steps.  Their lines in memory, which k runs along or
     * down, are |pitch_a| and |pitch_b| elements apart. */
    template <class TA, class TB>
    INLINE void start(char *shared, const TA *a, int64_t pitch_a, const TB *b, int64_t pitch_b, int64_t row0,
                      int64_t rows, int64_t col0, int64_t cols, int64_t k, int64_t begin = 0) {
        steps = (int)((k - begin + A::STEP - 1) / A::STEP);
        copy_a.start(a, pitch_a, row0, rows, begin, k, steps);
        copy_b.start(b, pitch_b, col0, cols, begin, k, steps);
        copy_a.keep_place(shared);
        copy_b.keep_place(shared + BYTES_A);
        reader.start(shared, shared + BYTES_A);
        await_earlier_launches();
        UNROLL
        for (int s = 0; s < STAGES - 1; s++) {
            if (s < steps) {
                fetch(s * STAGE, s + 1 == steps);
                put(shared + s * STAGE);
            } else close_copies();
        }
    }

    /* Their product, after start. */
    INLINE void run(Sums &sums, char *shared) {
        int left = steps, now = 0, next = (STAGES - 1) * STAGE;
        /* As long as the last tile is not on its way. */
        if (WRITTEN_OUT) {
            NO_UNROLL
            for (; left >= 2 * STAGES; left -= STAGES) {
                UNROLL
                for (int s = 0; s < STAGES; s++)
                    step(sums, shared, s * STAGE, (s + STAGES - 1) % STAGES * STAGE, true, false);
            }
        } else if (AHEAD) {
            NO_UNROLL
            for (; left > STAGES; left--) {
                step(sums, shared, now, next, true, false);
                now = after(now);
                next = after(next);
            }
        }
        NO_UNROLL
        for (; left > 0; left--) {
            step(sums, shared, now, next, left >= STAGES, left == STAGES);
            now = after(now);
            next = after(next);
        }
        __syncthreads(); /* shared memory is free */
    }
};
