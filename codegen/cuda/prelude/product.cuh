/* product.cuh: sums of products: a block walks along k, tile by tile, through a ring of tiles in shared memory. */

/* Sums: TensorSums or FmaSums; A and B: TensorOperand or FmaOperand. */
template <class Sums_, class A, class B> struct Product {
    typedef Sums_ Sums;
    typedef typename A::Copy CopyA;
    typedef typename B::Copy CopyB;
    static constexpr int BYTES_A = CopyA::Tile::BYTES, BYTES_B = CopyB::Tile::BYTES, STAGE = BYTES_A + BYTES_B;
    /* Tiles in shared memory: one that is read, the others on their way.  A kernel may declare 48 KiB. */
    static constexpr int STAGES = Sums::STAGES * STAGE <= 49152 ? Sums::STAGES : 2;
    static constexpr int SHARED = STAGES * STAGE;

    CopyA copy_a;
    CopyB copy_b;

    /* The tile of |a| (rows x k) and |b| (k x cols) at |k0|. */
    template <class TA, class TB>
    INLINE void fetch(char *stage, const TA *a, const TB *b, int64_t row0, int64_t rows, int64_t col0, int64_t cols,
                      int64_t k0, int64_t k) {
        A::fetch(copy_a, stage, a, row0, rows, k0, k);
        B::fetch(copy_b, stage + BYTES_A, b, col0, cols, k0, k);
        close_copies();
    }
    INLINE void put(char *stage) {
        copy_a.put(stage);
        copy_b.put(stage + BYTES_A);
    }

    template <class TA, class TB>
    INLINE void run(Sums &sums, char *shared, const TA *a, const TB *b, int64_t row0, int64_t rows, int64_t col0,
                    int64_t cols, int64_t k) {
        const int64_t steps = (k + A::STEP - 1) / A::STEP;
        UNROLL
        for (int s = 0; s < STAGES - 1; s++) {
            if (s < steps) {
                fetch(shared + s * STAGE, a, b, row0, rows, col0, cols, s * A::STEP, k);
                put(shared + s * STAGE);
            } else close_copies();
        }
        int now = 0, next = STAGES - 1;
        _Pragma("unroll 1")
        for (int64_t s = 0; s < steps; s++) {
            const bool more = s + STAGES - 1 < steps;
            await_copies<STAGES - 2>();
            __syncthreads();
            if (more) fetch(shared + next * STAGE, a, b, row0, rows, col0, cols, (s + STAGES - 1) * A::STEP, k);
            else close_copies();
            sums.template add<A, B>(shared + now * STAGE, shared + now * STAGE + BYTES_A);
            if (more) put(shared + next * STAGE);
            now = now + 1 == STAGES ? 0 : now + 1;
            next = next + 1 == STAGES ? 0 : next + 1;
        }
    }
};
