/* product_tile.cuh: tiles of a product's operands: from global memory, where they are lines of a dense row-major
 * matrix, to shared memory.
 *
 * Shared memory has 32 banks of four bytes; what a warp reads at once should lie in different ones. */

enum Order {
    ORDER_SWIZZLED,   /* for ldmatrix, which reads 16 bytes of eight lines: their place depends on the line */
    ORDER_FOUR_LINES, /* words g .. g + 7 of lines q .. q + 3: each line is eight words longer than what it holds */
    ORDER_ALONG       /* 16 bytes for each of eight lanes: four words longer, for those who write down the lines */
};

template <int LINES_, int LINE_BYTES, Order ORDER> struct SharedTile {
    static constexpr int STRIDE = LINE_BYTES + (ORDER == ORDER_FOUR_LINES ? 32 : ORDER == ORDER_ALONG ? 16 : 0);
    static constexpr int LINES = LINES_, BYTES = LINES * STRIDE, CHUNKS = LINE_BYTES / 16;
    static constexpr int LINES_A_ROUND = CHUNKS < 8 ? 8 / CHUNKS : 1; /* lines that fill all banks once */

    static INLINE int swizzle(int line) {
        return ORDER == ORDER_SWIZZLED ? line / LINES_A_ROUND % (CHUNKS < 8 ? CHUNKS : 8) : 0;
    }
    /* The bytes before a chunk. */
    static INLINE int at(int line, int chunk) { return line * STRIDE + (chunk ^ swizzle(line)) * 16; }
    static INLINE int byte_at(int line, int byte) { return at(line, byte / 16) + byte % 16; }
};

/* What a thread moves at once. */
template <int BYTES> struct Part;
template <> struct Part<2> { typedef uint16_t Type; };
template <> struct Part<4> { typedef uint32_t Type; };
template <> struct Part<8> { typedef uint2 Type; };
template <> struct Part<16> { typedef uint4 Type; };

/* What a matrix's lines are in memory. */
enum Lines { LINES_DENSE, LINES_GAPPED, LINES_OF_WINDOWS, LINES_OF_TAPS };

/* Lines |pitch| elements apart. */
struct DenseLines {
    static constexpr Lines KIND = LINES_DENSE;
    static INLINE int64_t lines_before(int64_t) { return 0; }
    static INLINE int64_t elements_before(int64_t) { return 0; }
    static INLINE bool covers(int64_t, int64_t) { return true; }
    static INLINE int64_t place(int64_t line, int64_t element, int64_t pitch) { return line * pitch + element; }
};

/* How elements of an operand stand in global memory: as in shared memory, or they are rounded on the way.  load gives
 * |BYTES| bytes of shared memory. */
template <class T> struct AsStored : DenseLines {
    typedef T Element;
    typedef T Stored;
    static constexpr bool CONVERTS = false;
    template <int BYTES> static INLINE typename Part<BYTES>::Type load(const Stored *p) {
        return *(const typename Part<BYTES>::Type *)p;
    }
};

/* f32 in memory. */
#define DEFINE_ROUNDED(name, element, put, words, round)                                                               \
    struct Rounded##name : DenseLines {                                                                                \
        typedef element Element;                                                                                       \
        typedef float Stored;                                                                                          \
        static constexpr bool CONVERTS = true;                                                                         \
        template <int BYTES> static INLINE typename Part<BYTES>::Type load(const Stored *p) {                          \
            enum { COUNT = BYTES / sizeof(Element) };                                                                  \
            float x[COUNT];                                                                                            \
            typename Part<BYTES>::Type part;                                                                           \
            load_f32(x, p);                                                                                            \
            UNROLL                                                                                                     \
            for (int i = 0; i < COUNT; i++) x[i] = round(x[i]);                                                        \
            if constexpr (BYTES < 4) put((Element *)&part, x[0]);                                                      \
            else {                                                                                                     \
                uint32_t w[BYTES / 4];                                                                                 \
                words(w, x);                                                                                           \
                UNROLL                                                                                                 \
                for (int i = 0; i < BYTES / 4; i++) ((uint32_t *)&part)[i] = w[i];                                     \
            }                                                                                                          \
            return part;                                                                                               \
        }                                                                                                              \
    };

INLINE float unchanged(float x) { return x; } /* where the bits of f16 are made, it is rounded, two at once */

DEFINE_ROUNDED(F16, uint16_t, put_f16, words_f16, unchanged)

DEFINE_ROUNDED(Bf16, uint16_t, put_bf16, words_bf16, round_bf16_f32)

DEFINE_ROUNDED(Tf32, float, put_f32, words_f32, round_tf32_f32)

/* All taps of a convolution's weights, in order. */
struct EveryTap {
    static constexpr bool HAS_ALL = true, HAS_ONE = false;
    static INLINE int tap(int number) { return number; }
};

/* Of every PER lines the first RUN, which are dense; the others are zeros: the weights of a convolution, where each of
 * its pixels has a place for PER channels.  Of: as Taps have it. */
template <class Memory, int RUN_, int PER_, class Of = EveryTap> struct Gapped : Memory {
    static constexpr Lines KIND = LINES_GAPPED;
    static constexpr int RUN = RUN_, PER = PER_;
    Of of;
    INLINE void set(const Of &of_) { of = of_; }
};

/* The copies of an operand's tiles.  |memory| has its sizes, where it has any.  start: the first of |steps| tiles
 * begins at |begin| of k and at |first| of |extent| lines, or columns where k runs down the lines, which are |pitch|
 * elements apart; each fetch starts the copy of the next one, and put ends it where it goes through registers.  All
 * threads of the block call them.  Neighbouring threads move adjacent pieces of global memory, |BYTES| at once.
 * Elements past an edge become zero. */

/* The parts of a tile that a thread moves, one in each turn: the same elements of lines that are LINES_A_TURN apart. */
template <class Memory, int LINES, int ELEMENTS, Order ORDER, int BYTES, int THREADS> struct TileParts {
    typedef typename Memory::Element Element;
    typedef typename Memory::Stored Stored;
    typedef SharedTile<LINES, ELEMENTS * sizeof(Element), ORDER> Tile;
    static constexpr bool ASYNC = HAS_ASYNC_COPIES && BYTES >= 4 && !Memory::CONVERTS;
    static constexpr int PER_PART = BYTES / sizeof(Element), PER_LINE = ELEMENTS / PER_PART, PARTS = LINES * PER_LINE;
    static constexpr int TURNS = (PARTS + THREADS - 1) / THREADS, LINES_A_TURN = THREADS / PER_LINE;
    static_assert(THREADS % PER_LINE == 0, "a thread has the same elements of each of its lines");
    Memory memory;
    typename Part<BYTES>::Type held[ASYNC ? 1 : TURNS];
    unsigned to; /* of the first turn, in shared memory */

    static INLINE int line_of(int turn) { return threadIdx.x / PER_LINE + turn * LINES_A_TURN; }
    static INLINE int element() { return threadIdx.x % PER_LINE * PER_PART; }
    static INLINE bool is_past(int turn) { return PARTS % THREADS && line_of(turn) >= LINES; }
    static INLINE int place(int turn) { /* eight lines have the places of any other eight */
        const int first = LINES_A_TURN % 8 ? turn : 0;
        return Tile::byte_at(line_of(first), element() * sizeof(Element)) +
               (turn - first) * LINES_A_TURN * Tile::STRIDE;
    }
    /* |tile|: the operand's first one in shared memory; |stage|: bytes from it to the one at hand. */
    INLINE void keep_place(const char *tile) {
        if (ASYNC) to = kept(shared_address(tile) + place(0));
    }
    INLINE void move(int turn, int stage, const Stored *from, bool moves) {
        if (ASYNC) copy_async<BYTES>(to + (place(turn) - place(0) + stage), from, moves);
        else if (moves) held[turn] = Memory::template load<BYTES>(from);
        else held[turn] = typename Part<BYTES>::Type();
    }
    INLINE void put(char *tile) {
        UNROLL
        for (int turn = 0; turn < TURNS && !ASYNC; turn++) {
            if (is_past(turn)) break;
            *(typename Part<BYTES>::Type *)(tile + place(turn)) = held[turn];
        }
    }
};

/* Of a dense matrix.  DOWN: k runs down its lines.  A thread keeps the addresses of what it moves: the address of the
 * first turn, from which it goes down, turn by turn and step by step; or, if steps go along the lines, of all turns. */
template <class Memory, int LINES, int ELEMENTS, Order ORDER, int BYTES, int THREADS, bool DOWN>
struct DenseCopy : TileParts<Memory, LINES, ELEMENTS, ORDER, BYTES, THREADS> {
    typedef TileParts<Memory, LINES, ELEMENTS, ORDER, BYTES, THREADS> Parts;
    typedef typename Memory::Stored Stored;
    static constexpr bool KEEPS_ALL = !DOWN && Parts::ASYNC;
    static constexpr int TURNS = Parts::TURNS, PLACES = KEEPS_ALL ? TURNS : 1;
    static constexpr bool ENDS_IN_STEP = LINES < TURNS * Parts::LINES_A_TURN; /* the last turn has not all lines */
    const Stored *from[PLACES];
    int64_t distance;        /* from turn to turn */
    int64_t step;            /* from step to step */
    int inside, inside_last; /* numbers of turns: in all steps but the last one, and in the last */

    INLINE void start(const Stored *matrix, int64_t pitch, int64_t first, int64_t extent, int64_t begin, int64_t k,
                      int64_t steps) {
        const int64_t before = begin + (steps - 1) * (DOWN ? LINES : ELEMENTS);
        unsigned all = 0, last = 0;
        UNROLL
        for (int turn = 0; turn < TURNS; turn++) {
            const int across = DOWN ? Parts::element() : Parts::line_of(turn),
                      along = DOWN ? Parts::line_of(turn) : Parts::element();
            if (first + across < extent) all = turn + 1;
            if (first + across < extent && before + along < k) last = turn + 1;
        }
        inside = (int)kept(all);
        inside_last = (int)kept(last);
        distance = Parts::LINES_A_TURN * pitch;
        step = DOWN ? LINES * pitch : ELEMENTS;
        const int line = Parts::line_of(0);
        from[0] = matrix + Parts::element() + (DOWN ? (begin + line) * pitch + first : (first + line) * pitch + begin);
        UNROLL
        for (int turn = 1; turn < PLACES; turn++) from[turn] = from[turn - 1] + distance;
    }
    INLINE void fetch(int stage, bool last) {
        const int turns = last ? inside_last : inside;
        const Stored *at = from[0];
        UNROLL
        for (int turn = 0; turn < TURNS; turn++) {
            if (Parts::is_past(turn)) break;
            const bool moves = DOWN && Parts::ASYNC && !last ? inside > 0 : turn < turns; /* DOWN: all turns or none */
            this->move(turn, stage, KEEPS_ALL ? from[turn] : at, moves);
            if (KEEPS_ALL) from[turn] += ELEMENTS;
            at += distance;
        }
        if (DOWN && !ENDS_IN_STEP) from[0] = at;
        else if (!KEEPS_ALL) from[0] += step;
    }
};

/* Of a matrix with gaps, k down its lines. */
template <class Memory, int LINES, int ELEMENTS, Order ORDER, int BYTES, int THREADS>
struct GappedCopy : TileParts<Memory, LINES, ELEMENTS, ORDER, BYTES, THREADS> {
    typedef TileParts<Memory, LINES, ELEMENTS, ORDER, BYTES, THREADS> Parts;
    typedef typename Memory::Stored Stored;
    static constexpr int TURNS = Parts::TURNS;
    const Stored *from; /* the first line */
    int64_t pitch;
    int line, end; /* of k: in the first turn, and after the last */

    INLINE void start(const Stored *matrix, int64_t pitch_, int64_t first, int64_t extent, int64_t begin, int64_t k,
                      int64_t) {
        from = matrix + first + Parts::element();
        pitch = pitch_;
        line = (int)begin + Parts::line_of(0);
        end = first + Parts::element() < extent ? (int)k : 0;
    }
    INLINE void fetch(int stage, bool) {
        UNROLL
        for (int turn = 0; turn < TURNS; turn++) {
            if (Parts::is_past(turn)) break;
            const int at = line + turn * Parts::LINES_A_TURN, place = at % Memory::PER;
            this->move(turn, stage, from + (this->memory.of.tap(at / Memory::PER) * Memory::RUN + place) * pitch,
                       at < end && place < Memory::RUN);
        }
        line += LINES;
    }
};

template <Lines KIND, class Memory, int LINES, int ELEMENTS, Order ORDER, int BYTES, int THREADS, bool DOWN>
struct ChooseCopy {
    typedef DenseCopy<Memory, LINES, ELEMENTS, ORDER, BYTES, THREADS, DOWN> Type;
};
template <class Memory, int LINES, int ELEMENTS, Order ORDER, int BYTES, int THREADS>
struct ChooseCopy<LINES_GAPPED, Memory, LINES, ELEMENTS, ORDER, BYTES, THREADS, true> {
    typedef GappedCopy<Memory, LINES, ELEMENTS, ORDER, BYTES, THREADS> Type;
};
/* |EXTENT| lines or columns of an operand, and |STEP| of k, which runs down its lines or along them. */
template <class Memory, bool DOWN, int EXTENT, int STEP, Order ORDER, int BYTES, int THREADS> struct TileCopy {
    typedef typename ChooseCopy<Memory::KIND, Memory, DOWN ? STEP : EXTENT, DOWN ? EXTENT : STEP, ORDER, BYTES, THREADS,
                                DOWN>::Type Type;
};

/* The same of f32, turned: line l of the matrix becomes column l of the tile.  For FP32 products of operands whose k
 * runs along the line.  A warp takes eight elements of four lines, or of sixteen four elements at a time: what it
 * writes at once is in different banks. */
template <class Memory, int LINES, int ELEMENTS, int BYTES, int THREADS> struct TurnedCopy {
    typedef typename Memory::Stored Stored;
    typedef SharedTile<ELEMENTS, LINES * 4, ORDER_ALONG> Tile;
    static constexpr bool ASYNC = false;
    static constexpr int WIDE = BYTES / 4, TURNS = LINES * ELEMENTS / WIDE / THREADS;
    Memory memory;
    alignas(BYTES) float held[TURNS][WIDE]; /* a row is moved at once */
    const Stored *matrix;
    int64_t pitch, line0, lines, element0, elements;

    static INLINE int line_of(int part) {
        return WIDE == 4 ? part / 2 % 16 + part / 64 * 16 : part / 8 % 4 + part / 64 * 4;
    }
    static INLINE int element_of(int part) {
        return WIDE == 4 ? part % 2 * 4 + part / 32 % 2 * 8 : part % 8 + part / 32 % 2 * 8;
    }

    INLINE void start(const Stored *matrix_, int64_t pitch_, int64_t first, int64_t extent, int64_t begin, int64_t k,
                      int64_t) {
        const int64_t before = memory.lines_before(first);
        matrix = matrix_ + memory.elements_before(before);
        pitch = pitch_;
        line0 = first - before;
        lines = extent - before;
        element0 = begin;
        elements = k;
    }
    INLINE void keep_place(const char *) {}
    INLINE void fetch(int, bool) {
        static_assert(ELEMENTS == 16 && LINES % 16 == 0, "the order of parts is made for lines of 16");
        UNROLL
        for (int turn = 0; turn < TURNS; turn++) {
            const int part = turn * THREADS + threadIdx.x, line = line_of(part), e = element_of(part);
            const bool inside =
                line0 + line < lines && element0 + e < elements && memory.covers(line0 + line, element0 + e);
            typename Part<BYTES>::Type x = typename Part<BYTES>::Type();
            if (inside) x = Memory::template load<BYTES>(matrix + memory.place(line0 + line, element0 + e, pitch));
            *(typename Part<BYTES>::Type *)held[turn] = x;
        }
        element0 += ELEMENTS;
    }
    INLINE void put(char *tile) {
        UNROLL
        for (int turn = 0; turn < TURNS; turn++) {
            const int part = turn * THREADS + threadIdx.x, line = line_of(part), e = element_of(part);
            UNROLL
            for (int i = 0; i < WIDE; i++) *(float *)(tile + Tile::byte_at(e + i, line * 4)) = held[turn][i];
        }
    }
};
