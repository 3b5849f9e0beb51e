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

/* How elements of an operand stand in global memory: as in shared memory, or narrower, and are widened one by one. */
template <class T> struct AsStored {
    typedef T Element;
    typedef T Stored;
    static constexpr bool WIDENS = false;
    template <int BYTES> static INLINE typename Part<BYTES>::Type load(const Stored *p) {
        return *(const typename Part<BYTES>::Type *)p;
    }
};
struct WidenedF16 {
    typedef float Element;
    typedef uint16_t Stored;
    static constexpr bool WIDENS = true;
    template <int BYTES> static INLINE uint32_t load(const Stored *p) { return bits_of(f32_of_f16(*p)); }
};
struct WidenedBf16 {
    typedef float Element;
    typedef uint16_t Stored;
    static constexpr bool WIDENS = true;
    template <int BYTES> static INLINE uint32_t load(const Stored *p) { return bits_of(f32_of_bf16(*p)); }
};

/* |LINES| lines of |ELEMENTS| elements, |BYTES| bytes at a time: what neighbouring threads move lies side by side in
 * global memory.
 * fetch starts the copy of a tile, put ends it where it went through registers; both are called by all threads of the
 * block.  What is past the edge becomes zero. */
template <class Memory, int LINES, int ELEMENTS, Order ORDER, int BYTES, int THREADS> struct TileCopy {
    typedef typename Memory::Element Element;
    typedef typename Memory::Stored Stored;
    typedef SharedTile<LINES, ELEMENTS * sizeof(Element), ORDER> Tile;
    static constexpr bool ASYNC = HAS_ASYNC_COPIES && BYTES >= 4 && !Memory::WIDENS;
    static constexpr int PER_PART = BYTES / sizeof(Element), PER_LINE = ELEMENTS / PER_PART, PARTS = LINES * PER_LINE;
    static constexpr int TURNS = (PARTS + THREADS - 1) / THREADS;
    typename Part<BYTES>::Type held[ASYNC ? 1 : TURNS];

    /* The tile at (line0, element0) of a matrix of |lines| x |elements|. */
    INLINE void fetch(char *tile, const Stored *matrix, int64_t line0, int64_t lines, int64_t element0,
                      int64_t elements) {
        const unsigned to = shared_address(tile);
        UNROLL
        for (int turn = 0; turn < TURNS; turn++) {
            const int part = turn * THREADS + threadIdx.x, line = part / PER_LINE, e = part % PER_LINE * PER_PART;
            if (PARTS % THREADS && part >= PARTS) break;
            const bool inside = line0 + line < lines && element0 + e < elements;
            const Stored *const from = matrix + (inside ? (line0 + line) * elements + element0 + e : 0);
            if (ASYNC) copy_async<BYTES>(to + Tile::byte_at(line, e * sizeof(Element)), from, inside);
            else if (inside) held[turn] = Memory::template load<BYTES>(from);
            else held[turn] = typename Part<BYTES>::Type();
        }
    }
    INLINE void put(char *tile) {
        UNROLL
        for (int turn = 0; turn < TURNS && !ASYNC; turn++) {
            const int part = turn * THREADS + threadIdx.x, line = part / PER_LINE, e = part % PER_LINE * PER_PART;
            if (PARTS % THREADS && part >= PARTS) break;
            *(typename Part<BYTES>::Type *)(tile + Tile::byte_at(line, e * sizeof(Element))) = held[turn];
        }
    }
};

/* The same of f32, turned: line l of the matrix becomes column l of the tile.  For FP32 products of operands whose k
 * runs along the line.  A warp takes eight elements of four lines, or of sixteen four elements at a time: what it
 * writes at once lies in different banks. */
template <class Memory, int LINES, int ELEMENTS, int BYTES, int THREADS> struct TurnedCopy {
    typedef typename Memory::Stored Stored;
    typedef SharedTile<ELEMENTS, LINES * 4, ORDER_ALONG> Tile;
    static constexpr int WIDE = BYTES / 4, TURNS = LINES * ELEMENTS / WIDE / THREADS;
    float held[TURNS][WIDE];

    static INLINE int line_of(int part) {
        return WIDE == 4 ? part / 2 % 16 + part / 64 * 16 : part / 8 % 4 + part / 64 * 4;
    }
    static INLINE int element_of(int part) {
        return WIDE == 4 ? part % 2 * 4 + part / 32 % 2 * 8 : part % 8 + part / 32 % 2 * 8;
    }

    INLINE void fetch(char *, const Stored *matrix, int64_t line0, int64_t lines, int64_t element0, int64_t elements) {
        static_assert(ELEMENTS == 16 && LINES % 16 == 0, "the order of parts is made for lines of 16");
        UNROLL
        for (int turn = 0; turn < TURNS; turn++) {
            const int part = turn * THREADS + threadIdx.x, line = line_of(part), e = element_of(part);
            const bool inside = line0 + line < lines && element0 + e < elements;
            typename Part<BYTES>::Type x = typename Part<BYTES>::Type();
            if (inside) x = Memory::template load<BYTES>(matrix + (line0 + line) * elements + element0 + e);
            *(typename Part<BYTES>::Type *)held[turn] = x;
        }
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
