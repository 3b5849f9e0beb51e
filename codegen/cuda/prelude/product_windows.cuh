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

/* Images [N, height, width, C] as a matrix: a line for each pixel of the images [N, out_height, out_width] on the other
 * side of a convolution, and along it the KH x KW x C elements that its window meets.  BACK: windows of the other side
 * meet a pixel of this one.  CHANNELS: C; 0: a parameter, no less than a step has elements.  PIXEL: elements from pixel
 * to pixel; 0: C.  FEW: in the images of a tile's windows, offsets fit an int, and windows (rows) times windows of a
 * row (rows of an image) are below 2^31.
 * SEAMLESS: the rows of windows go on from image to image at the same distance, and 64 windows are in two images at
 * most. */
template <class Memory, int CHANNELS, int KH_, int KW_, int STRIDE_Y_, int STRIDE_X_, int PAD_Y_, int PAD_X_,
          int DILATION_Y_, int DILATION_X_, bool BACK_, bool FEW_, bool SEAMLESS_, int PIXEL = 0>
struct Windows : Memory {
    static constexpr Lines KIND = LINES_OF_WINDOWS;
    static constexpr bool BACK = BACK_, FEW = FEW_, SEAMLESS = SEAMLESS_;
    static constexpr int KH = KH_, KW = KW_, STRIDE_Y = STRIDE_Y_, STRIDE_X = STRIDE_X_, PAD_Y = PAD_Y_;
    static constexpr int PAD_X = PAD_X_, DILATION_Y = DILATION_Y_, DILATION_X = DILATION_X_;
    static constexpr int LEAST_CHANNELS = CHANNELS ? CHANNELS : 1 << 16;
    int height, width, channels, out_height, out_width;

    INLINE void set(int64_t height_, int64_t width_, int64_t channels_, int64_t out_height_, int64_t out_width_) {
        height = (int)height_;
        width = (int)width_;
        channels = CHANNELS ? CHANNELS : (int)channels_;
        out_height = (int)out_height_;
        out_width = (int)out_width_;
    }
    INLINE int pixel_elements() const { return PIXEL ? PIXEL : channels; }
    INLINE int64_t image_elements() const { return (int64_t)height * width * pixel_elements(); }
    INLINE int windows() const { return out_height * out_width; } /* of an image */

    /* Of whole images before a window. */
    INLINE int64_t lines_before(int64_t line) const { return line / windows() * windows(); }
    INLINE int64_t elements_before(int64_t line) const { return line / windows() * image_elements(); }
    /* Where tap |k| of the window at |o| meets this image; negative: nowhere. */
    template <int STRIDE, int PAD, int DILATION> static INLINE int meets(int size, int o, int k) {
        const int at = BACK ? o + PAD - k * DILATION : o * STRIDE - PAD + k * DILATION;
        if (!BACK) return at < size ? at : -1;
        return at >= 0 && at % STRIDE == 0 && at / STRIDE < size ? at / STRIDE : -1;
    }
    /* Of a line after lines_before; negative: none. */
    INLINE int64_t pixel(int64_t line, int64_t element) const {
        const WindowDigits<Windows> at(*this, (int)line + 1);
        const int tap = (int)element / channels;
        const int y = meets<STRIDE_Y, PAD_Y, DILATION_Y>(height, at.row, tap / KW);
        const int x = meets<STRIDE_X, PAD_X, DILATION_X>(width, at.column, tap % KW);
        return y < 0 || x < 0 ? -1 : ((int64_t)at.image * height + y) * width + x;
    }
    INLINE bool covers(int64_t line, int64_t element) const { return pixel(line, element) >= 0; }
    INLINE int64_t place(int64_t line, int64_t element, int64_t) const {
        return pixel(line, element) * pixel_elements() + (int)element % channels;
    }
};

/* Weights [KH, KW, C, O] as a matrix: a line for each of C, and along it the KH x KW x O elements that it has, O of
 * each tap.  OUT: O; 0: a parameter, no less than a step has elements. */
template <class Memory, int OUT> struct Taps : Memory {
    static constexpr Lines KIND = LINES_OF_TAPS;
    static constexpr int LEAST_OUT = OUT ? OUT : 1 << 16;
    int lines, out; /* C, O */

    INLINE void set(int64_t lines_, int64_t out_) {
        lines = (int)lines_;
        out = OUT ? OUT : (int)out_;
    }
    INLINE int64_t place(int64_t line, int64_t element, int64_t) const {
        const int tap = (int)element / out;
        return (tap * (int64_t)lines + line) * out + ((int)element - tap * out);
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
    static constexpr int TURNS = Parts::TURNS, SIGN = M::BACK ? -1 : 1;
    /* Whether neighbouring taps are at the same distance everywhere. */
    static constexpr bool EVEN = !M::BACK || (M::STRIDE_Y == 1 && M::STRIDE_X == 1);
    typedef typename Count<M::FEW>::Type Place;
    const Stored *images; /* the image of the tile's first window, and the images after it */
    Place from[TURNS];    /* there; EVEN: of the window's begin; else of its image */
    static constexpr bool HAS_BITS = EVEN && M::KH * M::KW <= 32;
    unsigned taps_inside[TURNS]; /* HAS_BITS */
    int y[TURNS], x[TURNS];      /* else: of the window's begin */
    int tap_y, tap_x, channel;
    bool ends; /* whether the last step has this thread's elements */

    /* What a step adds to the channel and to the tap's column is no more than one row of them. */
    static constexpr bool CARRIES_ONE_TAP = ELEMENTS <= M::LEAST_CHANNELS;
    static constexpr bool CARRIES_ONE_ROW = (ELEMENTS - 1) / M::LEAST_CHANNELS < M::KW;

    INLINE void go_to_tap() {
        carry<CARRIES_ONE_TAP>(this->memory.channels, channel, tap_x);
        carry<CARRIES_ONE_ROW>(M::KW, tap_x, tap_y);
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
            y[turn] = M::BACK ? digits.row + M::PAD_Y : digits.row * M::STRIDE_Y - M::PAD_Y;
            x[turn] = M::BACK ? digits.column + M::PAD_X : digits.column * M::STRIDE_X - M::PAD_X;
            from[turn] = digits.image * image_elements;
            if (EVEN) from[turn] += ((Place)y[turn] * memory.width + x[turn]) * memory.pixel_elements();
            if (first + Parts::line_of(turn) >= extent) y[turn] = NOWHERE;
            if (HAS_BITS) taps_inside[turn] = find_inside(y[turn], x[turn]);
        }
    }
    INLINE unsigned find_inside(int y, int x) const {
        const unsigned height = this->memory.height, width = this->memory.width;
        unsigned row = 0, all = 0;
        UNROLL
        for (int tap = 0; tap < M::KW; tap++)
            row |= (unsigned)((unsigned)(x + SIGN * tap * M::DILATION_X) < width) << tap;
        UNROLL
        for (int tap = 0; tap < M::KH; tap++)
            all |= (unsigned)(y + SIGN * tap * M::DILATION_Y) < height ? row << tap * M::KW : 0;
        return all;
    }
    INLINE void fetch(int stage, bool last) {
        const M &memory = this->memory;
        const unsigned height = memory.height, width = memory.width;
        const int down = SIGN * tap_y * M::DILATION_Y, across = SIGN * tap_x * M::DILATION_X;
        const Place tap = ((Place)down * memory.width + across) * memory.pixel_elements() + channel;
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
                this->move(turn, stage, images + (from[turn] + tap), any && at_y < height && at_x < width);
                continue;
            }
            const bool meets = at_y % M::STRIDE_Y == 0 && at_x % M::STRIDE_X == 0;
            const unsigned row = at_y / M::STRIDE_Y, column = at_x / M::STRIDE_X;
            const bool inside = any && meets && row < height && column < width;
            const Place place = ((Place)row * memory.width + (int)column) * memory.pixel_elements() + channel;
            this->move(turn, stage, images + (from[turn] + (inside ? place : 0)), inside);
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
    const Stored *from; /* in the first turn */
    int element;        /* of the tap */
    int64_t distance;   /* from turn to turn */
    int inside;         /* number of turns */
    bool ends;          /* whether the last step has this thread's elements */

    INLINE void start(const Stored *matrix, int64_t, int64_t first, int64_t extent, int64_t, int64_t k, int64_t steps) {
        const M &memory = this->memory;
        int tap = 0;
        unsigned all = 0;
        element = Parts::element();
        carry<ELEMENTS <= M::LEAST_OUT>(memory.out, element, tap);
        ends = (steps - 1) * ELEMENTS + Parts::element() < k;
        UNROLL
        for (int turn = 0; turn < TURNS; turn++)
            if (first + Parts::line_of(turn) < extent) all = turn + 1;
        inside = (int)kept(all);
        distance = (int64_t)Parts::LINES_A_TURN * memory.out;
        from = matrix + ((int64_t)tap * memory.lines + first + Parts::line_of(0)) * memory.out + element;
    }
    INLINE void fetch(int stage, bool last) {
        const int turns = last && !ends ? 0 : inside;
        const Stored *at = from;
        UNROLL
        for (int turn = 0; turn < TURNS; turn++) {
            if (Parts::is_past(turn)) break;
            this->move(turn, stage, at, turn < turns);
            at += distance;
        }
        int taps = 0;
        element += ELEMENTS;
        carry<ELEMENTS <= M::LEAST_OUT>(this->memory.out, element, taps);
        from += ELEMENTS + taps * ((int64_t)(this->memory.lines - 1) * this->memory.out);
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
