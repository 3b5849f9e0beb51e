/* attention.cuh: what attention and its gradient share.  Both are FlashAttention-2's (Dao, "FlashAttention-2: faster
 * attention with better parallelism and work partitioning", 2023): scores are made tile by tile, in registers.
 *
 * A warp has 16 rows of its own, of queries or of keys, and walks over the rows of the other side, STEP at a time.  Its
 * scores are sums of mma instructions, (16, STEP): of lane g = lane / 4, q = lane % 4, number i of block j is row
 * g + i / 2 * 8 and column 8 j + 2 q + i % 2.  As such they are also operand A of the next product, without being
 * moved. */

/* ---- types ---- */

/* How rows of heads stand in global memory.  What is written is rounded by |before|, then as |write| does. */
#define DEFINE_STORED(name, element, read, write, before, all)                                                         \
    struct Stored##name {                                                                                              \
        typedef element Element;                                                                                       \
        static INLINE float rounded(float x) { return all(x); }                                                        \
        template <int V> static INLINE void load(float (&x)[V], const Element *p) { read(x, p); }                      \
        template <int V> static INLINE void store(Element *p, const float (&x)[V]) {                                   \
            float rounded[V];                                                                                          \
            UNROLL                                                                                                     \
            for (int i = 0; i < V; i++) rounded[i] = before(x[i]);                                                     \
            write(p, rounded);                                                                                         \
        }                                                                                                              \
    };

DEFINE_STORED(F32, float, load_f32, store_f32, unchanged, unchanged)

DEFINE_STORED(Tf32, float, load_f32, store_f32, round_tf32_f32, round_tf32_f32)

DEFINE_STORED(F16, uint16_t, load_f16, store_f16, unchanged, round_f16_f32)

DEFINE_STORED(Bf16, uint16_t, load_bf16, store_bf16, round_bf16_f32, round_bf16_f32)

/* What products of a type do besides multiplying: |PER_STEP| elements of k are two blocks of eight sums, or one. pack
 * makes operand A of them; the k of 32-bit elements is taken in the order 0, 2, 4, 6, 1, 3, 5, 7. */
template <class Mma_, class Stored_, uint32_t (*PAIR)(float, float)> struct Factors16 {
    typedef Mma_ Mma;
    typedef Stored_ Stored;
    static constexpr int PER_STEP = 16;
    template <int BLOCKS> static INLINE void pack(unsigned (&a)[4], const float (&sums)[BLOCKS][4], int step) {
        UNROLL
        for (int i = 0; i < 4; i++) {
            const float(&block)[4] = sums[2 * step + i / 2];
            a[i] = PAIR(block[i % 2 * 2], block[i % 2 * 2 + 1]);
        }
    }
};

typedef Factors16<MmaF16, StoredF16, pack_f16> FactorsF16;

typedef Factors16<MmaBf16, StoredBf16, pack_rounded_bf16> FactorsBf16;

struct FactorsTf32 {
    typedef MmaTf32 Mma;
    typedef StoredTf32 Stored;
    static constexpr int PER_STEP = 8;
    template <int BLOCKS> static INLINE void pack(unsigned (&a)[4], const float (&sums)[BLOCKS][4], int step) {
        UNROLL
        for (int i = 0; i < 4; i++) a[i] = bits_of(round_tf32_f32(sums[step][i % 2 * 2 + i / 2]));
    }
};

/* Sizes of one head; a copy takes |COPY| bytes at once.  A length of 0 is an argument (ScoreRule), a multiple of its
 * unit. */
template <class Factors_, int QUERIES_, int KEYS_, int WIDTH_, int V_WIDTH_, int COPY_, bool CAUSAL_,
          int QUERY_UNIT_ = QUERIES_, int KEY_UNIT_ = KEYS_>
struct AttentionShape {
    typedef Factors_ Factors;
    typedef typename Factors::Stored Stored;
    typedef typename Stored::Element Element;
    static constexpr int QUERIES = QUERIES_, KEYS = KEYS_, WIDTH = WIDTH_, V_WIDTH = V_WIDTH_, COPY = COPY_;
    static constexpr int QUERY_UNIT = QUERY_UNIT_, KEY_UNIT = KEY_UNIT_;
    static constexpr bool CAUSAL = CAUSAL_;
};

/* Rows of a head, |pitch| elements apart. */
template <class T> struct HeadRows {
    T *first;
    int64_t pitch;
};

/* ---- tiles ---- */

/* Zeros if it is not |inside|.  Copies of 4 bytes or more are asynchronous where there are such. */
template <int BYTES> INLINE void copy_part(char *to, const void *from, bool inside) {
    typedef typename Part<BYTES>::Type Moved;
    if (HAS_ASYNC_COPIES && BYTES >= 4) copy_async<BYTES>(shared_address(to), from, inside);
    else *(Moved *)to = inside ? *(const Moved *)from : Moved();
}

/* Rows of a head in shared memory, of WIDTH elements and zeros up to a multiple of 16.  A row is 16 bytes longer than
 * an even number of 16 bytes: eight rows lie in different banks. */
template <class Shape, int ROWS, int WIDTH> struct HeadTile {
    typedef typename Shape::Element Element;
    static constexpr int SIZE = sizeof(Element), PADDED = (WIDTH + 15) / 16 * 16, STRIDE = PADDED * SIZE + 16;
    static constexpr int BYTES = ROWS * STRIDE, STEPS = PADDED * SIZE / 32; /* of mma instructions along it */
    static constexpr int PER_PART = Shape::COPY / SIZE, PER_ROW = PADDED / PER_PART;

    /* Rows from |first| on of |rows|; zeros after them.  By all threads of the block; ends with close_copies. */
    template <int THREADS> static INLINE void copy(char *tile, HeadRows<const Element> head, int first, int rows) {
        UNROLL
        for (int turn = 0; turn < (ROWS * PER_ROW + THREADS - 1) / THREADS; turn++) {
            const int part = turn * THREADS + threadIdx.x;
            const bool even = THREADS % PER_ROW == 0; /* rows of one turn are at a constant distance from the next's */
            const int row = even ? threadIdx.x / PER_ROW + turn * (THREADS / PER_ROW) : part / PER_ROW;
            const int element = (even ? threadIdx.x % PER_ROW : part % PER_ROW) * PER_PART;
            if (ROWS * PER_ROW % THREADS && row >= ROWS) break;
            const bool inside = first + row < rows && element < WIDTH;
            const Element *from = head.first + (inside ? (first + row) * head.pitch + element : 0);
            copy_part<Shape::COPY>(tile + row * STRIDE + element * SIZE, from, inside);
        }
    }
};

/* 16 rows of a tile as operand A; HELD: in registers. */
template <class Tile, bool HELD> struct RowsOfA {
    unsigned at, x[HELD ? Tile::STEPS : 1][4];

    INLINE void start(const char *tile, int first) {
        const int lane = threadIdx.x % 32;
        at = kept(shared_address(tile) + (first + lane % 16) * Tile::STRIDE + lane / 16 * 16);
        UNROLL
        for (int step = 0; step < Tile::STEPS && HELD; step++) load_matrices(x[step], at + step * 32);
    }
    INLINE void get(unsigned (&a)[4], int step) const {
        if (!HELD) load_matrices(a, at + step * 32);
        UNROLL
        for (int i = 0; i < 4 && HELD; i++) a[i] = x[step][i];
    }
};

/* sums += the warp's rows times the first COLUMNS rows of a tile, transposed: k is the width of both. */
template <class Factors, class Tile, int COLUMNS> struct AlongTile {
    unsigned at;

    INLINE void start(const char *tile) {
        const int lane = threadIdx.x % 32;
        at = kept(shared_address(tile) + (lane / 16 * 8 + lane % 8) * Tile::STRIDE + lane / 8 % 2 * 16);
    }
    template <class A> INLINE void add(float (&sums)[COLUMNS / 8][4], const A &rows, int stage) const {
        UNROLL
        for (int step = 0; step < Tile::STEPS; step++) {
            unsigned a[4];
            rows.get(a, step);
            UNROLL
            for (int n = 0; n < COLUMNS / 16; n++) {
                unsigned b[4];
                load_matrices(b, at + (stage + n * 16 * Tile::STRIDE + step * 32));
                const unsigned left[2] = {b[0], b[1]}, right[2] = {b[2], b[3]};
                Factors::Mma::multiply(sums[2 * n], a, left);
                Factors::Mma::multiply(sums[2 * n + 1], a, right);
            }
        }
    }
};

/* sums += factors (16, ROWS) times the first ROWS rows of a tile: k runs down them. */
template <class Factors, class Tile, int ROWS> struct DownTile {
    const char *tile;
    unsigned at;

    INLINE void start(const char *tile_) {
        const int lane = threadIdx.x % 32;
        tile = tile_ + lane % 4 * 2 * Tile::STRIDE + lane / 4 * 4;
        at = kept(shared_address(tile_) + lane % 16 * Tile::STRIDE + lane / 16 * 16);
    }
    /* 16 columns of B. */
    INLINE void load(unsigned (&b)[4], int stage, int step, int n) const {
        const int place = stage + step * Factors::PER_STEP * Tile::STRIDE + n * 16 * Tile::SIZE;
        if (Tile::SIZE == 2) load_matrices_transposed(b, at + place);
        UNROLL
        for (int i = 0; i < 4 && Tile::SIZE == 4; i++)
            b[i] = *(const unsigned *)(tile + place + i % 2 * Tile::STRIDE + i / 2 * 32);
    }
    INLINE void add(float (&sums)[Tile::PADDED / 8][4], const float (&factors)[ROWS / 8][4], int stage) const {
        UNROLL
        for (int step = 0; step < ROWS / Factors::PER_STEP; step++) {
            unsigned a[4];
            Factors::pack(a, factors, step);
            UNROLL
            for (int n = 0; n < Tile::PADDED / 16; n++) {
                unsigned b[4];
                load(b, stage, step, n);
                const unsigned left[2] = {b[0], b[1]}, right[2] = {b[2], b[3]};
                Factors::Mma::multiply(sums[2 * n], a, left);
                Factors::Mma::multiply(sums[2 * n + 1], a, right);
            }
        }
    }
};

template <int BLOCKS> INLINE void clear(float (&sums)[BLOCKS][4]) {
    UNROLL
    for (int j = 0; j < BLOCKS; j++) UNROLL
    for (int i = 0; i < 4; i++) sums[j][i] = 0.0f;
}

/* ---- dropout ---- */

/* Which of a lane's scores in a tile stay, where rows are queries: of rows g and g + 8, bit 4 j + i for score i, or
 * i + 2, of block j.  They are known before there are scores, which leaves the registers to the draws.
 *
 * A draw gives the numbers of four neighbouring keys, which are in two lanes: a lane draws for one row and four of each
 * eight keys, which are the bits of a word (attend_drop in ir/ops.def), and lanes exchange their words. */
struct KeptScores {
    uint32_t words[2];

    INLINE bool keeps(int block, int i) const { return words[i / 2] >> (block * 4 + i % 2) & 1; }

    /* |shift|: of the tile's first key in a word. */
    INLINE void set(uint32_t row, uint32_t below, int shift) {
        words[0] = row >> (shift + threadIdx.x % 2 * 2);
        words[1] = below >> (shift + threadIdx.x % 2 * 2);
    }
    /* Lanes q and q ^ 1 have four keys of rows g and g + 8; the even one draws for row g. */
    INLINE void exchange(uint32_t drawn) {
        const bool odd = threadIdx.x & 1;
        const uint32_t other = __shfl_xor_sync(0xFFFFFFFFu, drawn, 1);
        set(odd ? other : drawn, odd ? drawn : other, 0);
    }
};

/* ---- scores ---- */

/* What score |i| of block |block| of a lane is of, from row |own| and column |other| on.  BY_KEYS: rows are keys. */
struct ScoredPair {
    int query, key;
};

template <bool BY_KEYS> INLINE ScoredPair pair_at(int own, int other, int block, int i) {
    const int down = own + threadIdx.x % 32 / 4 + i / 2 * 8, across = other + block * 8 + threadIdx.x % 4 * 2 + i % 2;
    return {BY_KEYS ? across : down, BY_KEYS ? down : across};
}

enum AttentionMask { MASK_NONE, MASK_ADDED, MASK_CHOOSES };

#define LOG2_E 1.44269504f

/* Constants where they are fixed, which a call would be only after it has been inlined. */
#define QUERIES_OF(rule) (Shape::QUERIES ? Shape::QUERIES : (rule).query_count)
#define KEYS_OF(rule) (Shape::KEYS ? Shape::KEYS : (rule).key_count)

/* What is done to the scores of one head of queries; where they are known, fields are constants.  Numbers that are
 * drawn count keys as NUMBERS and queries as HEAD_NUMBERS (ir/draw_numbers.h). */
template <class Shape, AttentionMask MASK, bool DROPS, int64_t NUMBERS = Shape::KEYS,
          int64_t HEAD_NUMBERS_ = Shape::QUERIES>
struct ScoreRule {
    static constexpr int64_t HEAD_NUMBERS = HEAD_NUMBERS_;
    /* The gradient has bits of dropout, or draws them again: if the number of keys is an argument. */
    static constexpr bool HAS_BITS = DROPS && Shape::KEYS != 0, DRAWS_AGAIN = DROPS && !HAS_BITS;
    int query_count, key_count; /* where they are arguments */
    float scale;
    const float *added; /* the mask; mask_row and mask_column are its strides in elements */
    const int32_t *chooses;
    int64_t mask_row, mask_column;
    float p, kept;                       /* of dropout; kept: 1 / (1 - p) */
    int64_t seed, iteration, micro, first, row; /* first: what comes before the call; row: of the head's first query */
    uint32_t key_hash;
    uint32_t *bits; /* of the head: which scores stay; NULL: nothing reads it */

    INLINE int words() const { return (KEYS_OF(*this) + 63) / 64 * 2; } /* of a query */
    /* A row of a word's queries is |QUERIES_OF| long. */
    INLINE int64_t bits_of_head() const { return (int64_t)words() * QUERIES_OF(*this); }
    /* The word of keys from |key| on for this lane's four of eight, of query |query|. */
    INLINE int64_t place(int query, int key) const {
        return (key / 64 * 2 + threadIdx.x % 4 / 2) * (int64_t)QUERIES_OF(*this) + query;
    }

    /* Scores stay as products give them until the scale goes into the multiply-add before the exponential. */
    INLINE bool scales_late() const { return MASK != MASK_ADDED && scale > 0.0f; }

    /* Of a query and a key that there are. */
    INLINE float seen(float x, int query, int key) const {
        if (!scales_late()) x *= scale;
        if (MASK == MASK_ADDED) x += added[query * mask_row + key * mask_column];
        if (MASK == MASK_CHOOSES) x = chooses[query * mask_row + key * mask_column] ? x : -INF;
        return x;
    }
    INLINE bool sees(int query, int key) const {
        return query < QUERIES_OF(*this) && key < KEYS_OF(*this) && (!Shape::CAUSAL || key <= query);
    }
    /* Makes scores of the products of rows from |own| and columns from |other| on.  BY_KEYS: rows are keys.  ALL:
     * there is a query for each row and a key for each column, or the other way round.  |edge|: some pairs may not be
     * seen. */
    template <bool BY_KEYS, bool ALL, int BLOCKS>
    INLINE void score(float (&s)[BLOCKS][4], int own, int other, bool edge) const {
        UNROLL
        for (int j = 0; j < BLOCKS; j++) {
            UNROLL
            for (int i = 0; i < 4; i++) {
                const ScoredPair of = pair_at<BY_KEYS>(own, other, j, i);
                s[j][i] = seen(s[j][i], ALL ? of.query : min(of.query, QUERIES_OF(*this) - 1),
                               ALL ? of.key : min(of.key, KEYS_OF(*this) - 1));
            }
        }
        if (!edge) return;
        UNROLL
        for (int j = 0; j < BLOCKS; j++) {
            UNROLL
            for (int i = 0; i < 4; i++) {
                const ScoredPair of = pair_at<BY_KEYS>(own, other, j, i);
                s[j][i] = sees(of.query, of.key) ? s[j][i] : -INF;
            }
        }
    }
    /* exp(score - base), of a base that has been prepared. */
    INLINE float weight(float score, float base) const {
        return exp2_near(scales_late() ? fma_f32(score, scale * LOG2_E, -base) : (score - base) * LOG2_E);
    }
    /* A score as a base; the natural logarithm of a sum as one. */
    INLINE float base_of(float score) const { return scales_late() ? score * (scale * LOG2_E) : score; }
    INLINE float base_of_logarithm(float sum) const { return scales_late() ? sum * LOG2_E : sum; }
    INLINE float logarithm_of_base(float base) const { return scales_late() ? base * (1.0f / LOG2_E) : base; }

    /* The four keys from |key| on, a multiple of four, that the lane draws for; by block this many queries and keys
     * further. */
    template <int BLOCKS> INLINE uint32_t draw_fours(int query, int key, int queries_on, int keys_on) const {
        const uint32_t low = ::kept((uint32_t)seed), high = ::kept((uint32_t)((uint64_t)seed >> 32));
        uint32_t drawn = 0;
        UNROLL
        for (int j = 0; j < BLOCKS; j += 2) {
            uint64_t quarters[2];
            uint32_t words[2][4];
            UNROLL
            for (int n = 0; n < 2; n++)
                quarters[n] = (uint64_t)(row + query + (j + n) * queries_on) * (NUMBERS / 4) +
                              (key + (j + n) * keys_on) / 4;
            random_words<2>(words, (int64_t)((uint64_t)high << 32 | low), iteration, micro, key_hash, quarters);
            UNROLL
            for (int i = 0; i < 8; i++) drawn |= (words[i / 4][i % 4] > last_dropped(p) ? 1u : 0u) << (4 * j + i);
        }
        return drawn;
    }
    /* Whether this score stays. */
    INLINE uint32_t drawn_of(int64_t element) const {
        return p <= random_f32(seed, iteration, micro, key_hash, element) ? 1u : 0u;
    }
    /* A draw for each number: four keys of one draw are not neighbours that begin here. */
    template <int BLOCKS> INLINE uint32_t draw_each(int query, int key) const {
        uint32_t drawn = 0;
        NO_UNROLL
        for (int j = 0; j < BLOCKS; j++) {
            UNROLL
            for (int i = 0; i < 4; i++)
                drawn |= drawn_of((row + query) * NUMBERS + key + j * 8 + i) << (4 * j + i);
        }
        return drawn;
    }
    /* For 16 queries from |own| and |BLOCKS| times eight keys from |other| on; |word|: with the tiles before that have
     * keys of the same words. */
    template <int BLOCKS> INLINE void draw(KeptScores &kept_scores, uint32_t &word, int own, int other) const {
        if constexpr (DROPS) {
            const int query = own + threadIdx.x % 32 / 4 + threadIdx.x % 2 * 8, key = other + threadIdx.x % 4 / 2 * 4;
            const uint32_t drawn =
                NUMBERS % 4 == 0 ? draw_fours<BLOCKS>(query, key, 0, 8) : draw_each<BLOCKS>(query, key);
            kept_scores.exchange(drawn);
            word = BLOCKS == 8 || other % 64 == 0 ? drawn : word | drawn << other % 64 / 2;
            if (bits && query < QUERIES_OF(*this)) bits[place(query, other)] = word;
        }
    }
    /* Where rows are keys: for 16 keys from |own| and |BLOCKS| times eight queries from |other| on; bit 4 j + i is of
     * score i of block j.  Lanes of four neighbouring keys draw for one query and four keys each. */
    template <int BLOCKS> INLINE uint32_t draw_by_keys(int own, int other) const {
        const int g = threadIdx.x % 32 / 4, q = threadIdx.x % 4;
        const uint32_t drawn = draw_fours<BLOCKS>(other + q * 2 + g % 2, own + g / 4 * 4 + g / 2 % 2 * 8, 8, 0);
        uint32_t mine = 0;
        UNROLL
        for (int i = 0; i < 4; i++)
            mine |= (__shfl_sync(0xFFFFFFFFu, drawn, (g / 4 * 4 + i) * 4 + q) >> g % 4 & 0x11111111u) << i;
        return mine;
    }
    /* The same as they were drawn. */
    template <int BLOCKS> INLINE void recall(KeptScores &kept_scores, int own, int other) const {
        uint32_t word = 0;
        if constexpr (DRAWS_AGAIN) draw<BLOCKS>(kept_scores, word, own, other);
        if constexpr (HAS_BITS) {
            const int query = own + threadIdx.x % 32 / 4, last = QUERIES_OF(*this) - 1;
            kept_scores.set(bits[place(min(query, last), other)],
                            bits[place(min(query + 8, last), other)], other % 64 / 2);
        }
    }
    /* What dropout multiplies a weight by. */
    INLINE float keep(bool keeps) const { return !DROPS ? 1.0f : keeps ? kept : 0.0f; }
};

/* ---- results ---- */

/* Whether a zero is added to a result, so that none of its zeros is negative. */
enum Zero { NO_ZERO, ZERO_ADDED, ZERO_AFTER_ROUNDING };

/* A result in f32, and rounded for kernels that read it rounded; NULL: none does.  A lane stores |V| columns at a
 * time. */
template <class Rounded, int V> struct HeadResult {
    float *whole;
    typename Rounded::Element *rounded;
    int64_t pitch;
    Zero zero;

    INLINE float cleared(float x) const {
        if (zero == NO_ZERO) return x;
        return (zero == ZERO_ADDED ? x : Rounded::rounded(x)) + 0.0f;
    }
    INLINE void put(int64_t at, const float *x) const {
        float y[V];
        UNROLL
        for (int i = 0; i < V; i++) y[i] = cleared(x[i]);
        if (whole) store_f32(whole + at, y);
        if (rounded) Rounded::store(rounded + at, y);
    }
};

/* Sums of a warp on their way to a result, through its own part of |BYTES| of shared memory that are free: in f32, up
 * to 64 columns at a time.  Rows lie in different banks, as a tile's. */
template <int BYTES, int WARPS> struct SumsOfRows {
    static constexpr int FIT = BYTES / (WARPS * 16) - 16, COLUMNS = FIT >= 64 * 4 ? 64 : FIT >= 32 * 4 ? 32 : 16;
    static constexpr int STRIDE = COLUMNS * 4 + 16;
    static_assert(FIT >= COLUMNS * 4, "");

    /* Columns from |column0| on; |by|: a factor for row g and row g + 8. */
    template <int BLOCKS>
    static INLINE void put(char *part, const float (&sums)[BLOCKS][4], int column0, const float (&by)[2]) {
        const int lane = threadIdx.x % 32;
        UNROLL
        for (int half = 0; half < 2; half++) {
            UNROLL
            for (int j = column0 / 8; j < BLOCKS && j < (column0 + COLUMNS) / 8; j++)
                *(float2 *)(part + (lane / 4 + half * 8) * STRIDE + (j * 8 - column0 + lane % 4 * 2) * 4) =
                    make_float2(sums[j][2 * half] * by[half], sums[j][2 * half + 1] * by[half]);
        }
    }
    /* From row |first| on of |rows|, the first |width| of these columns. */
    template <class Rounded, int V>
    static INLINE void take(const char *part, const HeadResult<Rounded, V> &to, int column0, int first, int rows,
                            int width) {
        const int lane = threadIdx.x % 32;
        UNROLL
        for (int turn = 0; turn < (16 * COLUMNS / V + 31) / 32; turn++) {
            const int at = turn * 32 + lane, row = at / (COLUMNS / V), column = at % (COLUMNS / V) * V;
            float x[V];
            if (row >= 16 || first + row >= rows || column >= width) continue;
            load_f32(x, (const float *)(part + row * STRIDE) + column);
            to.put((first + row) * to.pitch + column0 + column, x);
        }
    }
    /* Rows of |WIDTH| columns, by all threads of the block. */
    template <int WIDTH, class Rounded, int V, int BLOCKS>
    static INLINE void store(char *shared, const HeadResult<Rounded, V> &to, const float (&sums)[BLOCKS][4], int first,
                             int rows, const float (&by)[2]) {
        char *const part = shared + threadIdx.x / 32 * (16 * STRIDE);
        if (!to.whole && !to.rounded) return;
        __syncthreads(); /* the tiles have been read */
        UNROLL
        for (int column0 = 0; column0 < BLOCKS * 8; column0 += COLUMNS) {
            if (column0) __syncwarp(); /* the columns before have been taken */
            put(part, sums, column0, by);
            __syncwarp();
            take(part, to, column0, first, rows, WIDTH - column0);
        }
    }
};
