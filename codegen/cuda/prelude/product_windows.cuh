/* product_windows.cuh: tiles of a convolution's operands: windows over images, and the weights of a data gradient.
 *
 * Sizes of images are parameters, so that convolutions of one kind of window share a function. */

/* Division of x by a number; |x1| is x + 1.  EXACT: by a multiplication; x1 times the number is at most 2^32.  After
 * Granlund and Montgomery, "Division by Invariant Integers using Multiplication", 1994; the reciprocal is rounded
 * down. */
template <bool EXACT> struct Divisor {
    unsigned number, reciprocal;
    INLINE void set(int number_) {
        number = number_;
        reciprocal = 0xffffffffu / number;
    }
    INLINE int quotient(int x1) const { return EXACT ? (int)__umulhi(x1, reciprocal) : (int)((x1 - 1u) / number); }
};

/* Where a window is: in which image, and there.  |window1|: its number, from the first image on, and one. */
template <class M> struct WindowDigits {
    Divisor<M::FEW> by_width, by_height;
    int minus_width, minus_height; /* kept, or the compiler negates them anew for each window */
    int rows;                      /* of windows before its own, from the first image on */
    int image, row, column;

    INLINE WindowDigits() {}
    INLINE WindowDigits(const M &memory) {
        by_width.set(memory.out_width);
        by_height.set(memory.out_height);
        minus_width = -memory.out_width;
        minus_height = -memory.out_height;
    }
    INLINE WindowDigits(const M &memory, int window1) {
        *this = WindowDigits(memory);
        find(window1);
    }
    INLINE void find_row(int window1) {
        rows = by_width.quotient(window1);
        column = window1 + rows * minus_width - 1;
    }
    INLINE void find(int window1) {
        find_row(window1);
        image = by_height.quotient(rows + 1);
        row = rows + image * minus_height;
    }
    /* In the first image, or in the one after it. */
    INLINE void find_near(int window1) {
        find_row(window1);
        row = (int)smaller(rows, rows + minus_height); /* below 0: a large number */
        image = rows > row;
    }
    /* One instruction; the compiler makes two of a < b ? a : b. */
    static INLINE unsigned smaller(unsigned a, unsigned b) {
        unsigned x;
        asm("min.u32 %0, %1, %2;" : "=r"(x) : "r"(a), "r"(b));
        return x;
    }
};

template <int A, int B> struct CommonDivisor { static constexpr int VALUE = CommonDivisor<B, A % B>::VALUE; };
template <int A> struct CommonDivisor<A, 0> { static constexpr int VALUE = A; };

/* A phase of a data gradient along an axis: every STRIDE-th of |size| pixels.  The same taps meet all of them, every
 * TAP_STEP-th.  Phases are in the order of their first tap, so the most taps come first; phases without taps are last.
 */
template <int TAPS_, int STRIDE_, int PAD, int DILATION> struct PhaseAlong {
    static constexpr int TAPS = TAPS_, STRIDE = STRIDE_, COMMON = CommonDivisor<STRIDE, DILATION>::VALUE;
    static constexpr int TAP_STEP = STRIDE / COMMON;
    static constexpr int DISTANCE = DILATION / COMMON; /* of what a pixel meets, from tap to tap */
    static constexpr int MOST = (TAPS + TAP_STEP - 1) / TAP_STEP, LEAST = TAPS >= TAP_STEP ? TAPS / TAP_STEP : 1;
    static constexpr int PAST_PAD = (PAD + STRIDE - 1) / STRIDE * STRIDE - PAD;
    int size, pixels, taps;
    int first_pixel, first_tap;
    int begin; /* where the first tap meets the first pixel, on the other side */

    INLINE void set(int number, int size_) {
        const int without = number / TAP_STEP; /* above 0: no tap meets the phase */
        first_tap = number % TAP_STEP;
        first_pixel = (first_tap * DILATION + without + PAST_PAD) % STRIDE;
        begin = (first_pixel + PAD - first_tap * DILATION) / STRIDE;
        size = size_;
        pixels = STRIDE == 1 ? size : first_pixel < size ? (size - first_pixel - 1) / STRIDE + 1 : 0;
        taps = without || first_tap >= TAPS ? 0 : (TAPS - 1 - first_tap) / TAP_STEP + 1;
    }
    INLINE int tap(int number) const { return first_tap + number * TAP_STEP; }
};

INLINE int at_least_one(int x) { return x > 0 ? x : 1; }

/* The same of images [height, width]. */
template <class Y, class X> struct Phase {
    static constexpr bool HAS_ALL = Y::STRIDE * X::STRIDE == 1;
    static constexpr bool HAS_ONE = Y::MOST * X::MOST == 1; /* or none */
    Y y;
    X x;
    Divisor<true> by_row; /* taps */

    INLINE void set(int number, int height, int width) {
        y.set(number / X::STRIDE, height);
        x.set(number % X::STRIDE, width);
        by_row.set(at_least_one(x.taps));
    }
    INLINE int pixels() const { return y.pixels * x.pixels; }
    INLINE int taps() const { return y.taps * x.taps; }
    /* The number of the phase's tap |i| among all taps. */
    INLINE int tap(int i) const {
        const int row = by_row.quotient(i + 1);
        return y.tap(row) * X::TAPS + x.tap(i - row * x.taps);
    }
    /* The number of an image's first pixel in the phase, and how much larger it is |image| images, |row| rows and
     * |column| columns of the phase later. */
    INLINE int64_t first(int64_t image) const { return (image * y.size + y.first_pixel) * x.size + x.first_pixel; }
    INLINE int distance(int image, int row, int column) const {
        return (image * y.size + row * Y::STRIDE) * x.size + column * X::STRIDE;
    }
};

/* Images [N, height, width, C] as a matrix: a line for each pixel of the images [N, out_height, out_width] on the other
 * side of a convolution, and along it the KH x KW x C elements that its window meets.  BACK: windows of the other side
 * meet a pixel of this one, and the lines are the pixels of one phase, with its taps alone.  CHANNELS: C; 0: a
 * parameter, no less than a step has elements.  PIXEL: elements from pixel to pixel; 0: C.  FEW: in the images of a
 * tile's windows, offsets fit an int, and windows (rows) times windows of a row (rows of an image) are below 2^31.
 * SEAMLESS: the rows of windows go on from image to image at the same distance, and 64 windows are in two images at
 * most. */
template <class Memory, int CHANNELS, int KH_, int KW_, int STRIDE_Y_, int STRIDE_X_, int PAD_Y_, int PAD_X_,
          int DILATION_Y_, int DILATION_X_, bool BACK_, bool FEW_, bool SEAMLESS_, int PIXEL = 0>
struct Windows : Memory {
    static constexpr Lines KIND = LINES_OF_WINDOWS;
    static constexpr bool BACK = BACK_, FEW = FEW_, SEAMLESS = SEAMLESS_;
    static constexpr int KH = KH_, KW = KW_, STRIDE_Y = STRIDE_Y_, STRIDE_X = STRIDE_X_, PAD_Y = PAD_Y_;
    static constexpr int PAD_X = PAD_X_, DILATION_Y = DILATION_Y_, DILATION_X = DILATION_X_;
    typedef PhaseAlong<KH, STRIDE_Y, PAD_Y, DILATION_Y> PhaseY;
    typedef PhaseAlong<KW, STRIDE_X, PAD_X, DILATION_X> PhaseX;
    typedef Phase<PhaseY, PhaseX> Pixels;
    static constexpr bool HAS_PHASES = BACK && !Pixels::HAS_ALL;
    /* Of pixels, from a tap of a window to the next; of taps, down and along a row. */
    static constexpr int TAP_Y = BACK ? -PhaseY::DISTANCE : DILATION_Y, TAP_X = BACK ? -PhaseX::DISTANCE : DILATION_X;
    static constexpr int MOST_Y = BACK ? PhaseY::MOST : KH, MOST_X = BACK ? PhaseX::MOST : KW;
    static constexpr int LEAST_X = BACK ? PhaseX::LEAST : KW;
    static constexpr bool HAS_ONE_TAP = MOST_Y * MOST_X == 1; /* that k goes over */
    static constexpr int LEAST_CHANNELS = CHANNELS ? CHANNELS : 1 << 16;
    int height, width, channels, out_height, out_width; /* BACK: out_ of the phase; at least 1 */
    Pixels phase;

    INLINE void set(int64_t height_, int64_t width_, int64_t channels_, int64_t out_height_, int64_t out_width_,
                    uint32_t number = 0) {
        height = (int)height_;
        width = (int)width_;
        channels = CHANNELS ? CHANNELS : (int)channels_;
        out_height = (int)out_height_;
        out_width = (int)out_width_;
        if (BACK) phase.set((int)number, out_height, out_width);
        if (HAS_PHASES) {
            out_height = at_least_one(phase.y.pixels);
            out_width = at_least_one(phase.x.pixels);
        }
    }
    INLINE int taps_x() const { return HAS_PHASES ? at_least_one(phase.x.taps) : KW; }
    INLINE int pixel_elements() const { return PIXEL ? PIXEL : channels; }
    INLINE int64_t image_elements() const { return (int64_t)height * width * pixel_elements(); }
    INLINE int windows() const { return out_height * out_width; } /* of an image */

    /* Of whole images before a window. */
    INLINE int64_t lines_before(int64_t line) const { return line / windows() * windows(); }
    INLINE int64_t elements_before(int64_t line) const { return line / windows() * image_elements(); }
    /* Where the first tap of the window at |row|, |column| meets this image. */
    INLINE int begin_y(int row) const { return BACK ? row + phase.y.begin : row * STRIDE_Y - PAD_Y; }
    INLINE int begin_x(int column) const { return BACK ? column + phase.x.begin : column * STRIDE_X - PAD_X; }
    /* Of a line after lines_before; negative: none. */
    INLINE int64_t pixel(int64_t line, int64_t element) const {
        const WindowDigits<Windows> at(*this, (int)line + 1);
        const int tap = (int)element / channels;
        const int y = begin_y(at.row) + tap / taps_x() * TAP_Y, x = begin_x(at.column) + tap % taps_x() * TAP_X;
        const bool inside = (unsigned)y < (unsigned)height && (unsigned)x < (unsigned)width;
        return inside ? ((int64_t)at.image * height + y) * width + x : -1;
    }
    INLINE bool covers(int64_t line, int64_t element) const { return pixel(line, element) >= 0; }
    INLINE int64_t place(int64_t line, int64_t element, int64_t) const {
        return pixel(line, element) * pixel_elements() + (int)element % channels;
    }
};

/* Which rows of a result the lines of a tile are, of the pixels of a phase; |row0|: the first of the phase's. */
template <class M> struct RowsOfPhase {
    WindowDigits<M> digits;
    const M &memory;
    int64_t first; /* in the image that has row0 */
    int before1;

    INLINE RowsOfPhase(const M &memory_, int64_t row0) : digits(memory_), memory(memory_) {
        const int64_t image = row0 / memory.windows();
        before1 = (int)(row0 - image * memory.windows()) + 1;
        first = memory.phase.first(image);
    }
    INLINE int64_t row(int line) {
        digits.find(before1 + line);
        return first + memory.phase.distance(digits.image, digits.row, digits.column);
    }
};

/* prefetch_tile of such rows: ROW_BYTES from |first| on in each. */
template <int ROWS, int ROW_BYTES, class M>
INLINE void prefetch_rows(RowsOfPhase<M> of, const void *first, int64_t pitch, int64_t rows, int64_t row_bytes) {
    constexpr int LINE = 128, LINES = (ROW_BYTES + LINE - 1) / LINE;
    NO_UNROLL
    for (int i = threadIdx.x; i < ROWS * LINES; i += blockDim.x) {
        const int row = i / LINES, at = i % LINES * LINE;
        if (row >= rows || at >= row_bytes) continue;
        const char *const line = (const char *)first + of.row(row) * pitch + at;
        asm volatile("prefetch.global.L2 [%0];" ::"l"(__cvta_generic_to_global(line)));
    }
}

/* Weights [KH, KW, C, O] as a matrix: a line for each of C, and along it the KH x KW x O elements that it has, O of
 * each tap.  OUT: O; 0: a parameter, no less than a step has elements.  Of: Phase, whose taps alone are there; or
 * EveryTap. */
template <class Memory, int OUT, class Of_ = EveryTap> struct Taps : Memory {
    typedef Of_ Of;
    static constexpr Lines KIND = LINES_OF_TAPS;
    static constexpr int LEAST_OUT = OUT ? OUT : 1 << 16;
    int lines, out; /* C, O */
    Of of;

    INLINE void set(int64_t lines_, int64_t out_, const Of &of_ = Of()) {
        lines = (int)lines_;
        out = OUT ? OUT : (int)out_;
        of = of_;
    }
    INLINE int64_t place(int64_t line, int64_t element, int64_t) const {
        const int tap = (int)element / out;
        return (of.tap(tap) * (int64_t)lines + line) * out + ((int)element - tap * out);
    }
};

/* Digits of a number in mixed radix: |low| keeps what is below |radix|; ONCE: it is below twice as much. */
template <bool ONCE> INLINE void carry(int radix, int &low, int &high) {
    if (ONCE) {
        high += low >= radix;
        low -= low >= radix ? radix : 0;
    } else {
        high += low / radix;
        low %= radix;
    }
}

/* The address |count| times |bytes| after |p|. */
template <class T> INLINE const T *after(const T *p, int count, int bytes) {
    int64_t distance;
    asm("mul.wide.s32 %0, %1, %2;" : "=l"(distance) : "r"(count), "r"(bytes));
    return (const T *)((const char *)p + distance);
}

/* The type of a count of elements: int if FEW. */
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
    static constexpr int TURNS = Parts::TURNS;
    typedef typename Count<M::FEW>::Type Place;
    const Stored *images; /* the image of the tile's first window, and the images after it */
    Place from[TURNS];    /* there: of the window's begin */
    static constexpr bool HAS_BITS = M::MOST_Y * M::MOST_X <= 32;
    unsigned taps_inside[TURNS]; /* HAS_BITS */
    int y[TURNS], x[TURNS];      /* else: of the window's begin */
    int tap_y, tap_x, channel;
    bool ends; /* whether the last step has this thread's elements */

    /* What a step adds to the channel and to the tap's column is no more than one row of them. */
    static constexpr bool CARRIES_ONE_TAP = ELEMENTS <= M::LEAST_CHANNELS;
    static constexpr bool CARRIES_ONE_ROW = (ELEMENTS - 1) / M::LEAST_CHANNELS < M::LEAST_X;

    INLINE void go_to_tap() {
        if (M::HAS_ONE_TAP) return; /* past it is the end */
        carry<CARRIES_ONE_TAP>(this->memory.channels, channel, tap_x);
        carry<CARRIES_ONE_ROW>(this->memory.taps_x(), tap_x, tap_y);
    }
    INLINE void start(const Stored *matrix, int64_t, int64_t first, int64_t extent, int64_t, int64_t k, int64_t steps) {
        const M &memory = this->memory;
        channel = Parts::element();
        tap_y = tap_x = 0;
        go_to_tap();
        ends = (steps - 1) * ELEMENTS + Parts::element() < k;
        const int64_t first_image = first / memory.windows();
        WindowDigits<M> digits(memory);
        const Place image_elements = (Place)memory.image_elements();
        images = kept(matrix + first_image * memory.image_elements());
        UNROLL
        for (int turn = 0; turn < TURNS; turn++) {
            digits.find((int)(first - first_image * memory.windows()) + Parts::line_of(turn) + 1);
            y[turn] = memory.begin_y(digits.row);
            x[turn] = memory.begin_x(digits.column);
            from[turn] = digits.image * image_elements +
                         ((Place)y[turn] * memory.width + x[turn]) * memory.pixel_elements();
            if (first + Parts::line_of(turn) >= extent) y[turn] = NOWHERE;
            if (HAS_BITS) taps_inside[turn] = find_inside(y[turn], x[turn]);
        }
    }
    INLINE unsigned find_inside(int y, int x) const {
        const unsigned height = this->memory.height, width = this->memory.width;
        unsigned row = 0, all = 0;
        UNROLL
        for (int tap = 0; tap < M::MOST_X; tap++) row |= (unsigned)((unsigned)(x + tap * M::TAP_X) < width) << tap;
        UNROLL
        for (int tap = 0; tap < M::MOST_Y; tap++)
            all |= (unsigned)(y + tap * M::TAP_Y) < height ? row << tap * M::MOST_X : 0;
        return all;
    }
    INLINE void fetch(int stage, bool last) {
        const M &memory = this->memory;
        const unsigned height = memory.height, width = memory.width;
        const int down = tap_y * M::TAP_Y, across = tap_x * M::TAP_X;
        const Place tap = ((Place)down * memory.width + across) * memory.pixel_elements() + channel;
        const bool any = !last || ends;
        UNROLL
        for (int turn = 0; turn < TURNS; turn++) {
            if (Parts::is_past(turn)) break;
            if (HAS_BITS) {
                const bool inside = any && taps_inside[turn] >> (tap_y * M::MOST_X + tap_x) & 1;
                this->move(turn, stage, images + (from[turn] + tap), inside);
                continue;
            }
            const unsigned at_y = y[turn] + down, at_x = x[turn] + across; /* outside below 0: a large number */
            this->move(turn, stage, images + (from[turn] + tap), any && at_y < height && at_x < width);
        }
        channel += ELEMENTS;
        go_to_tap();
    }
};

/* Of windows, k down the pixels that they are at.  A thread has one tap and channel of the windows that it moves. */
template <class Memory, int LINES, int ELEMENTS, Order ORDER, int BYTES, int THREADS>
struct WindowsDown : TileParts<Memory, LINES, ELEMENTS, ORDER, BYTES, THREADS> {
    typedef Memory M;
    typedef TileParts<Memory, LINES, ELEMENTS, ORDER, BYTES, THREADS> Parts;
    typedef typename Memory::Stored Stored;
    static_assert(!M::BACK, "weights have no windows of the other side");
    static constexpr int TURNS = Parts::TURNS;
    static_assert(LINES <= 64, "see SEAMLESS");
    /* Whether columns are counted in pixels from the first, so that no window's is multiplied by the stride. */
    static constexpr bool IN_PIXELS = M::STRIDE_X > 1 && M::KW > 1;
    const Stored *images; /* the image of a step's first window, and later ones, at the channel and the tap's row */
    int window1;          /* the number of the first turn's window in the first image, plus one */
    int tap_y, tap_x;
    unsigned height; /* of an image; 0 in threads past the last column */
    int row_pitch;   /* pixels from a row of windows to the next */
    int pixel_bytes;
    int next_image;  /* SEAMLESS: windows of a step minus windows of an image */
    int row_back;    /* IN_PIXELS: of a row of windows, below 0 */
    int inside_last; /* turns that the last step has */
    WindowDigits<M> digits;

    INLINE void start(const Stored *matrix, int64_t, int64_t first, int64_t extent, int64_t begin, int64_t k,
                      int64_t steps) {
        const M &memory = this->memory;
        const int64_t image = begin / memory.windows(), before = begin + (steps - 1) * LINES;
        const int element = (int)first + Parts::element(), tap = element / memory.channels;
        digits = WindowDigits<M>(memory);
        tap_y = tap / M::KW * M::DILATION_Y - M::PAD_Y;
        tap_x = tap % M::KW * M::DILATION_X - M::PAD_X;
        window1 = (int)(begin - image * memory.windows()) + Parts::line_of(0) + 1;
        height = kept(element < extent ? memory.height : 0);
        row_pitch = (int)kept((unsigned)(M::STRIDE_Y * memory.width));
        pixel_bytes = memory.pixel_elements() * (int)sizeof(Stored);
        if (M::SEAMLESS) next_image = (int)kept((unsigned)(LINES - memory.windows()));
        if (IN_PIXELS) row_back = (int)kept((unsigned)(-memory.out_width * M::STRIDE_X));
        images = matrix + image * memory.image_elements() + (int64_t)tap_y * memory.width * memory.pixel_elements() +
                 element % memory.channels;
        inside_last = 0;
        UNROLL
        for (int turn = 0; turn < TURNS; turn++)
            if (before + Parts::line_of(turn) < k) inside_last = turn + 1;
    }
    INLINE void fetch(int stage, bool last) {
        const M &memory = this->memory;
        int passed = 0; /* images */
        const int column0 = window1 * M::STRIDE_X + tap_x - M::STRIDE_X;
        UNROLL
        for (int turn = 0; turn < TURNS; turn++) {
            if (Parts::is_past(turn)) break;
            if (M::SEAMLESS) digits.find_near(window1 + turn * Parts::LINES_A_TURN);
            else digits.find(window1 + turn * Parts::LINES_A_TURN);
            if (turn == 0) passed = digits.image;
            const int y = digits.row * M::STRIDE_Y + tap_y;
            const int x = IN_PIXELS ? digits.rows * row_back + (column0 + turn * Parts::LINES_A_TURN * M::STRIDE_X)
                                    : digits.column * M::STRIDE_X + tap_x;
            const bool inside = (unsigned)y < height && (unsigned)x < (unsigned)memory.width;
            const int pixel = M::SEAMLESS ? digits.rows * row_pitch + x
                                          : digits.row * row_pitch + digits.image * memory.height * memory.width + x;
            this->move(turn, stage, after(images, pixel, pixel_bytes), inside && (!last || turn < inside_last));
        }
        images = after(images, passed * memory.height, memory.width * pixel_bytes);
        if (M::SEAMLESS) window1 += passed ? next_image : LINES;
        else window1 += LINES - passed * memory.windows();
    }
};

/* Of taps, k along them, from its beginning on.  In a step all of a thread's lines are at the same tap and element. */
template <class Memory, int LINES, int ELEMENTS, Order ORDER, int BYTES, int THREADS>
struct TapsAlong : TileParts<Memory, LINES, ELEMENTS, ORDER, BYTES, THREADS> {
    typedef Memory M;
    typedef TileParts<Memory, LINES, ELEMENTS, ORDER, BYTES, THREADS> Parts;
    typedef typename Memory::Stored Stored;
    static constexpr int TURNS = Parts::TURNS;
    static constexpr bool JUMPS = !M::Of::HAS_ALL && !M::Of::HAS_ONE; /* from tap to tap */
    const Stored *from; /* in the first turn; JUMPS: of all taps the first one's begin */
    int element;        /* of the tap */
    int tap;            /* JUMPS: its number in the phase */
    int64_t distance;   /* from turn to turn */
    int inside;         /* number of turns */
    bool ends;          /* whether the last step has this thread's elements */

    INLINE void start(const Stored *matrix, int64_t, int64_t first, int64_t extent, int64_t, int64_t k, int64_t steps) {
        const M &memory = this->memory;
        unsigned all = 0;
        tap = 0;
        element = Parts::element();
        carry<ELEMENTS <= M::LEAST_OUT>(memory.out, element, tap);
        ends = (steps - 1) * ELEMENTS + Parts::element() < k;
        UNROLL
        for (int turn = 0; turn < TURNS; turn++)
            if (first + Parts::line_of(turn) < extent) all = turn + 1;
        inside = (int)kept(all);
        distance = (int64_t)Parts::LINES_A_TURN * memory.out;
        from = matrix + (first + Parts::line_of(0)) * memory.out;
        if (!JUMPS) from += (int64_t)memory.of.tap(tap) * memory.lines * memory.out + element;
    }
    INLINE void fetch(int stage, bool last) {
        const int turns = last && !ends ? 0 : inside;
        const Stored *at = from;
        if (JUMPS) at += this->memory.of.tap(tap) * ((int64_t)this->memory.lines * this->memory.out) + element;
        UNROLL
        for (int turn = 0; turn < TURNS; turn++) {
            if (Parts::is_past(turn)) break;
            this->move(turn, stage, at, turn < turns);
            at += distance;
        }
        int taps = 0;
        element += ELEMENTS;
        carry<ELEMENTS <= M::LEAST_OUT>(this->memory.out, element, taps);
        tap += taps;
        if (!JUMPS) from += ELEMENTS + taps * ((int64_t)(this->memory.lines - 1) * this->memory.out);
    }
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
