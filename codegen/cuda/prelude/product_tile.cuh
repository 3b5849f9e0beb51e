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

/* Of every PER lines the first RUN, which are dense; the others are zeros: the weights of a convolution, where each of
 * its pixels has a place for PER channels. */
template <class Memory, int RUN_, int PER_> struct Gapped : Memory {
    static constexpr Lines KIND = LINES_GAPPED;
    static constexpr int RUN = RUN_, PER = PER_;
};

/* Images [N, H, W, C] as a matrix: a line for each pixel of the images [N, OH, OW] on the other side of a convolution,
 * and along it the KH x KW x C elements that its window meets.  BACK: windows of the other side meet a pixel of this
 * one. */
template <class Memory, int H_, int W_, int C_, int OH_, int OW_, int KH_, int KW_, int STRIDE_Y_, int STRIDE_X_,
          int PAD_Y_, int PAD_X_, int DILATION_Y_, int DILATION_X_, bool BACK_>
struct Windows : Memory {
    static constexpr Lines KIND = LINES_OF_WINDOWS;
    static constexpr bool BACK = BACK_;
    static constexpr int H = H_, W = W_, C = C_, OH = OH_, OW = OW_, KH = KH_, KW = KW_, STRIDE_Y = STRIDE_Y_;
    static constexpr int STRIDE_X = STRIDE_X_, PAD_Y = PAD_Y_, PAD_X = PAD_X_, DILATION_Y = DILATION_Y_;
    static constexpr int DILATION_X = DILATION_X_;
    /* Where tap |k| of the window at |o| meets this image; negative: nowhere. */
    template <int SIZE, int STRIDE, int PAD, int DILATION> static INLINE int meets(int o, int k) {
        const int at = BACK ? o + PAD - k * DILATION : o * STRIDE - PAD + k * DILATION;
        if (!BACK) return at < SIZE ? at : -1;
        return at >= 0 && at % STRIDE == 0 && at / STRIDE < SIZE ? at / STRIDE : -1;
    }
    static INLINE int row(int64_t line, int64_t element) {
        return meets<H, STRIDE_Y, PAD_Y, DILATION_Y>((int)(line % (OH * OW)) / OW, (int)element / C / KW);
    }
    static INLINE int column(int64_t line, int64_t element) {
        return meets<W, STRIDE_X, PAD_X, DILATION_X>((int)(line % (OH * OW)) % OW, (int)element / C % KW);
    }
    static INLINE bool covers(int64_t line, int64_t element) {
        return row(line, element) >= 0 && column(line, element) >= 0;
    }
    static INLINE int64_t place(int64_t line, int64_t element, int64_t) {
        return ((line / (OH * OW) * H + row(line, element)) * W + column(line, element)) * C + (int)element % C;
    }
};

/* Weights [KH, KW, C, O] as a matrix: a line for each of C, and along it the KH x KW x O elements that it has, O of
 * each tap. */
template <class Memory, int C_, int O_> struct Taps : Memory {
    static constexpr Lines KIND = LINES_OF_TAPS;
    static constexpr int C = C_, O = O_;
    static INLINE int64_t place(int64_t line, int64_t element, int64_t) {
        return (element / O * C + line) * O + element % O;
    }
};

/* The copies of an operand's tiles.  start: the first of |steps| tiles begins at |begin| of k and at |first| of
 * |extent| lines, or columns where k runs down the lines, which are |pitch| elements apart; each fetch starts the copy
 * of the next one, and put ends it where it goes through registers.  All threads of the block call them.  What
 * neighbouring threads move, |BYTES| at once, lies side by side in global memory.  What is past an edge becomes
 * zero. */

/* The parts of a tile that a thread moves, one in each turn: the same elements of lines that are LINES_A_TURN apart. */
template <class Memory, int LINES, int ELEMENTS, Order ORDER, int BYTES, int THREADS> struct TileParts {
    typedef typename Memory::Element Element;
    typedef typename Memory::Stored Stored;
    typedef SharedTile<LINES, ELEMENTS * sizeof(Element), ORDER> Tile;
    static constexpr bool ASYNC = HAS_ASYNC_COPIES && BYTES >= 4 && !Memory::CONVERTS;
    static constexpr bool HAS_WINDOWS = Memory::KIND == LINES_OF_WINDOWS;
    static constexpr int PER_PART = BYTES / sizeof(Element), PER_LINE = ELEMENTS / PER_PART, PARTS = LINES * PER_LINE;
    static constexpr int TURNS = (PARTS + THREADS - 1) / THREADS, LINES_A_TURN = THREADS / PER_LINE;
    static_assert(THREADS % PER_LINE == 0, "a thread has the same elements of each of its lines");
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

/* Of a dense matrix.  DOWN: k runs down its lines.  A thread keeps the places of what it moves: that of the first turn,
 * from which it goes down, turn by turn and step by step; or, where steps go along the lines, those of all turns. */
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
    int inside, inside_last; /* so many turns: in all steps but the last one, and in that */

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
    int line, end; /* of k: in the first turn, and behind the last */

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
            this->move(turn, stage, from + (at / Memory::PER * Memory::RUN + place) * pitch,
                       at < end && place < Memory::RUN);
        }
        line += LINES;
    }
};

/* Digits of a number in mixed radix: |low|, at most MOST, keeps what is below RADIX. */
template <int RADIX, int MOST> INLINE void carry(int &low, int &high) {
    if (MOST < RADIX) return;
    if (MOST < 2 * RADIX) {
        high += low >= RADIX;
        low -= low >= RADIX ? RADIX : 0;
    } else {
        high += low / RADIX;
        low %= RADIX;
    }
}

/* What counts elements of so many. */
template <bool FEW> struct Count { typedef int Type; };
template <> struct Count<false> { typedef int64_t Type; };

enum { NOWHERE = -(1 << 29) }; /* a coordinate outside of every image, whatever a tap adds to it */

/* Of windows, k along them, from its beginning on.  In a step all of a thread's windows are at the same tap and
 * channel: it keeps where each window begins, and adds the tap's distance; and which of its taps are inside of the
 * image, a bit for each, where a register has room for them. */
template <class Memory, int LINES, int ELEMENTS, Order ORDER, int BYTES, int THREADS>
struct WindowsAlong : TileParts<Memory, LINES, ELEMENTS, ORDER, BYTES, THREADS> {
    typedef Memory M;
    typedef TileParts<Memory, LINES, ELEMENTS, ORDER, BYTES, THREADS> Parts;
    typedef typename Memory::Stored Stored;
    static constexpr int TURNS = Parts::TURNS, SIGN = M::BACK ? -1 : 1;
    /* Whether neighbouring taps are at the same distance everywhere. */
    static constexpr bool EVEN = !M::BACK || (M::STRIDE_Y == 1 && M::STRIDE_X == 1);
    /* Elements of all images that a tile's windows may be at: places among them take a register each. */
    static constexpr int64_t ELEMENTS_AT_MOST = (LINES / (M::OH * M::OW) + 2) * (int64_t)M::H * M::W * M::C;
    typedef typename Count<(ELEMENTS_AT_MOST < 1LL << 31)>::Type Place;
    const Stored *images; /* that of the tile's first window, and those after it */
    Place from[TURNS];    /* there; EVEN: of the window's begin; else of its image */
    static constexpr bool HAS_BITS = EVEN && M::KH * M::KW <= 32;
    unsigned taps_inside[TURNS]; /* HAS_BITS */
    int y[TURNS], x[TURNS];      /* else: of the window's begin */
    int tap_y, tap_x, channel;
    bool ends; /* whether the last step has this thread's elements */

    INLINE void start(const Stored *matrix, int64_t, int64_t first, int64_t extent, int64_t, int64_t k, int64_t steps) {
        channel = Parts::element();
        tap_y = tap_x = 0;
        carry<M::C, ELEMENTS - 1>(channel, tap_x);
        carry<M::KW, (ELEMENTS - 1) / M::C>(tap_x, tap_y);
        ends = (steps - 1) * ELEMENTS + Parts::element() < k;
        const int64_t first_image = first / (M::OH * M::OW);
        const int first_pixel = (int)(first % (M::OH * M::OW));
        images = kept(matrix + first_image * (M::H * M::W * M::C));
        UNROLL
        for (int turn = 0; turn < TURNS; turn++) {
            const int line = first_pixel + Parts::line_of(turn), pixel = line % (M::OH * M::OW);
            const Place image = line / (M::OH * M::OW);
            y[turn] = M::BACK ? pixel / M::OW + M::PAD_Y : pixel / M::OW * M::STRIDE_Y - M::PAD_Y;
            x[turn] = M::BACK ? pixel % M::OW + M::PAD_X : pixel % M::OW * M::STRIDE_X - M::PAD_X;
            from[turn] = image * (M::H * M::W * M::C);
            if (EVEN) from[turn] += (y[turn] * M::W + x[turn]) * M::C;
            if (first + Parts::line_of(turn) >= extent) y[turn] = NOWHERE;
            if (HAS_BITS) taps_inside[turn] = find_inside(y[turn], x[turn]);
        }
    }
    static INLINE unsigned find_inside(int y, int x) {
        unsigned row = 0, all = 0;
        UNROLL
        for (int tap = 0; tap < M::KW; tap++)
            row |= (unsigned)((unsigned)(x + SIGN * tap * M::DILATION_X) < M::W) << tap;
        UNROLL
        for (int tap = 0; tap < M::KH; tap++)
            all |= (unsigned)(y + SIGN * tap * M::DILATION_Y) < M::H ? row << tap * M::KW : 0;
        return all;
    }
    INLINE void fetch(int stage, bool last) {
        const int down = SIGN * tap_y * M::DILATION_Y, across = SIGN * tap_x * M::DILATION_X;
        const int tap = (down * M::W + across) * M::C + channel;
        const bool any = !last || ends;
        UNROLL
        for (int turn = 0; turn < TURNS; turn++) {
            if (Parts::is_past(turn)) break;
            if (HAS_BITS) {
                const bool inside = any && taps_inside[turn] >> (tap_y * M::KW + tap_x) & 1;
                this->move(turn, stage, images + (from[turn] + tap), inside);
                continue;
            }
            const unsigned at_y = y[turn] + down, at_x = x[turn] + across; /* outside below 0: a large number */
            if (EVEN) {
                this->move(turn, stage, images + (from[turn] + tap), any && at_y < M::H && at_x < M::W);
                continue;
            }
            const bool meets = at_y % M::STRIDE_Y == 0 && at_x % M::STRIDE_X == 0;
            const unsigned row = at_y / M::STRIDE_Y, column = at_x / M::STRIDE_X;
            const bool inside = any && meets && row < M::H && column < M::W;
            this->move(turn, stage, images + (from[turn] + (inside ? (int)(row * M::W + column) * M::C + channel : 0)),
                       inside);
        }
        channel += ELEMENTS;
        carry<M::C, M::C - 1 + ELEMENTS>(channel, tap_x);
        carry<M::KW, M::KW - 1 + (M::C - 1 + ELEMENTS) / M::C>(tap_x, tap_y);
    }
};

/* Of windows, k down the pixels that they are at.  A thread has one tap and channel, and goes from window to window,
 * those of one step and then of the next. */
template <class Memory, int LINES, int ELEMENTS, Order ORDER, int BYTES, int THREADS>
struct WindowsDown : TileParts<Memory, LINES, ELEMENTS, ORDER, BYTES, THREADS> {
    typedef Memory M;
    typedef TileParts<Memory, LINES, ELEMENTS, ORDER, BYTES, THREADS> Parts;
    typedef typename Memory::Stored Stored;
    static_assert(!M::BACK, "weights have no windows of the other side");
    static constexpr int TURNS = Parts::TURNS, A_TURN = Parts::LINES_A_TURN;
    const Stored *from; /* the pixel under the tap */
    int y, x;           /* of it */
    int end_y, end_x;   /* where the windows of an image, of a row have passed */
    unsigned height;    /* of the image; 0 in threads past the last column */
    int inside_last;    /* turns that the last step has */

    INLINE void start(const Stored *matrix, int64_t, int64_t first, int64_t extent, int64_t begin, int64_t k,
                      int64_t steps) {
        const int64_t image = begin / (M::OH * M::OW), before = begin + (steps - 1) * LINES;
        const int64_t element = first + Parts::element();
        const int tap = (int)(element / M::C), tap_y = tap / M::KW * M::DILATION_Y - M::PAD_Y,
                  tap_x = tap % M::KW * M::DILATION_X - M::PAD_X;
        const int line = (int)(begin % (M::OH * M::OW)) + Parts::line_of(0), pixel = line % (M::OH * M::OW);
        height = element < extent ? M::H : 0;
        end_y = tap_y + M::OH * M::STRIDE_Y;
        end_x = tap_x + M::OW * M::STRIDE_X;
        y = pixel / M::OW * M::STRIDE_Y + tap_y;
        x = pixel % M::OW * M::STRIDE_X + tap_x;
        from = matrix + (image + line / (M::OH * M::OW)) * (M::H * M::W * M::C) + (y * M::W + x) * M::C +
               (int)(element % M::C);
        inside_last = 0;
        UNROLL
        for (int turn = 0; turn < TURNS; turn++)
            if (before + Parts::line_of(turn) < k) inside_last = turn + 1;
    }
    INLINE void fetch(int stage, bool last) {
        UNROLL
        for (int turn = 0; turn < TURNS; turn++) {
            const bool inside = (unsigned)y < height && (unsigned)x < M::W;
            if (!Parts::is_past(turn)) this->move(turn, stage, from, inside && (!last || turn < inside_last));
            if (turn < TURNS - 1) go_on<A_TURN>();
            else go_on<LINES - (TURNS - 1) * A_TURN>();
        }
    }
    template <int WINDOWS> INLINE void go_on() {
        constexpr int ON_X = WINDOWS % M::OW, ON_Y = WINDOWS / M::OW % M::OH, ON_IMAGE = WINDOWS / M::OW / M::OH;
        int64_t distance =
            ON_IMAGE * (int64_t)(M::H * M::W * M::C) + (ON_Y * M::STRIDE_Y * M::W + ON_X * M::STRIDE_X) * M::C;
        x += ON_X * M::STRIDE_X;
        y += ON_Y * M::STRIDE_Y;
        if (ON_X && x >= end_x) {
            x -= M::OW * M::STRIDE_X;
            y += M::STRIDE_Y;
            distance += (M::STRIDE_Y * M::W - M::OW * M::STRIDE_X) * M::C;
        }
        if ((ON_X || ON_Y) && y >= end_y) {
            y -= M::OH * M::STRIDE_Y;
            distance += (M::H - M::OH * M::STRIDE_Y) * M::W * M::C;
        }
        from += distance;
    }
};

/* Of taps, k along them, from its beginning on.  In a step all of a thread's lines are at the same tap and element. */
template <class Memory, int LINES, int ELEMENTS, Order ORDER, int BYTES, int THREADS>
struct TapsAlong : TileParts<Memory, LINES, ELEMENTS, ORDER, BYTES, THREADS> {
    typedef Memory M;
    typedef TileParts<Memory, LINES, ELEMENTS, ORDER, BYTES, THREADS> Parts;
    typedef typename Memory::Stored Stored;
    static constexpr int TURNS = Parts::TURNS;
    const Stored *from; /* in the first turn */
    int element;        /* of the tap, where steps may cross its end */
    int left;           /* of the tap, where it is whole steps */
    int inside;         /* so many turns */
    bool ends;          /* whether the last step has this thread's elements */

    INLINE void start(const Stored *matrix, int64_t, int64_t first, int64_t extent, int64_t, int64_t k, int64_t steps) {
        int tap = 0;
        element = Parts::element();
        left = M::O;
        carry<M::O, ELEMENTS - 1>(element, tap);
        ends = (steps - 1) * ELEMENTS + Parts::element() < k;
        inside = 0;
        UNROLL
        for (int turn = 0; turn < TURNS; turn++)
            if (first + Parts::line_of(turn) < extent) inside = turn + 1;
        from = matrix + (tap * M::C + first + Parts::line_of(0)) * M::O + element;
    }
    INLINE void fetch(int stage, bool last) {
        UNROLL
        for (int turn = 0; turn < TURNS; turn++) {
            if (Parts::is_past(turn)) break;
            this->move(turn, stage, from + turn * Parts::LINES_A_TURN * M::O, turn < inside && (!last || ends));
        }
        go_on();
    }
    INLINE void go_on() {
        int taps = 0;
        if (M::O % ELEMENTS == 0) { /* all threads come to the next tap in the same step */
            left -= ELEMENTS;
            from += ELEMENTS + (left ? 0 : (M::C - 1) * M::O);
            left = left ? left : M::O;
            return;
        }
        element += ELEMENTS;
        carry<M::O, M::O - 1 + ELEMENTS>(element, taps);
        from += ELEMENTS + taps * ((M::C - 1) * M::O);
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
template <class Memory, int LINES, int ELEMENTS, Order ORDER, int BYTES, int THREADS>
struct ChooseCopy<LINES_OF_WINDOWS, Memory, LINES, ELEMENTS, ORDER, BYTES, THREADS, false> {
    typedef WindowsAlong<Memory, LINES, ELEMENTS, ORDER, BYTES, THREADS> Type;
};
template <class Memory, int LINES, int ELEMENTS, Order ORDER, int BYTES, int THREADS>
struct ChooseCopy<LINES_OF_WINDOWS, Memory, LINES, ELEMENTS, ORDER, BYTES, THREADS, true> {
    typedef WindowsDown<Memory, LINES, ELEMENTS, ORDER, BYTES, THREADS> Type;
};
template <class Memory, int LINES, int ELEMENTS, Order ORDER, int BYTES, int THREADS>
struct ChooseCopy<LINES_OF_TAPS, Memory, LINES, ELEMENTS, ORDER, BYTES, THREADS, false> {
    typedef TapsAlong<Memory, LINES, ELEMENTS, ORDER, BYTES, THREADS> Type;
};

/* |EXTENT| lines or columns of an operand, and |STEP| of k, which runs down its lines or along them. */
template <class Memory, bool DOWN, int EXTENT, int STEP, Order ORDER, int BYTES, int THREADS> struct TileCopy {
    typedef typename ChooseCopy<Memory::KIND, Memory, DOWN ? STEP : EXTENT, DOWN ? EXTENT : STEP, ORDER, BYTES, THREADS,
                                DOWN>::Type Type;
};

/* The same of f32, turned: line l of the matrix becomes column l of the tile.  For FP32 products of operands whose k
 * runs along the line.  A warp takes eight elements of four lines, or of sixteen four elements at a time: what it
 * writes at once lies in different banks. */
template <class Memory, int LINES, int ELEMENTS, int BYTES, int THREADS> struct TurnedCopy {
    typedef typename Memory::Stored Stored;
    typedef SharedTile<ELEMENTS, LINES * 4, ORDER_ALONG> Tile;
    static constexpr bool ASYNC = false, HAS_WINDOWS = false;
    static constexpr int WIDE = BYTES / 4, TURNS = LINES * ELEMENTS / WIDE / THREADS;
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
        matrix = matrix_;
        pitch = pitch_;
        line0 = first;
        lines = extent;
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
                line0 + line < lines && element0 + e < elements && Memory::covers(line0 + line, element0 + e);
            typename Part<BYTES>::Type x = typename Part<BYTES>::Type();
            if (inside) x = Memory::template load<BYTES>(matrix + Memory::place(line0 + line, element0 + e, pitch));
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
