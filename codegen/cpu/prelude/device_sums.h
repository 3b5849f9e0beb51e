/* device_sums.h: products that are added up as tensor cores of a GPU do, block by block (device_block.h).
 *
 * DEVICE_BITS and DEVICE_BLOCK, in elements of 16 bits, are the architecture's (codegen/cpu/cpu_sums.c).
 */

enum { DEVICE_MOST_DIMS = 6 };

/* An operand whose element k of a line is at  k / per * outer + k % per * inner,  which is 0 where k % per >= run. */
typedef struct DeviceLines {
    int operand;
    int64_t offset, line;             /* of line 0; from one line to the next */
    int64_t per, run, outer, inner;   /* along k */
    int64_t stride[DEVICE_MOST_DIMS]; /* from product to product */
} DeviceLines;

/* A convolution's A: the elements that each window meets, |per| places a pixel; the first |run| of them hold data. */
typedef struct DeviceWindows {
    int are, back, down; /* back: of dy for the data's gradient; down: k runs down the windows, for the weight's */
    int64_t height, width, out_height, out_width, kernel[2];
    int64_t stride[2], padding[2], dilation[2];
    int64_t tap_step[2]; /* back: from tap to tap of those that meet a pixel; else 1 */
} DeviceWindows;

/* Products of [m, k] and [k, n], one after another along the rows; |merged|: along the last of |dims| beside each
 * other.  Each is the sum of parts of |part| elements of k, in order. */
typedef struct DeviceProduct {
    int64_t m, n, k, part;
    int rank, merged;

    int64_t dims[DEVICE_MOST_DIMS];
    DeviceLines a, b;
    DeviceWindows windows;
} DeviceProduct;

/* ---- operands ---------------------------------------------------------------------------------------------------- */

static void device_clear(DeviceFactor *to) {
    for (int i = 0; i < DEVICE_STEP; i++)
        for (int j = 0; j < 32; j += W) store_f32(&to->x[i][j], splat_f(0.0f));
}

/* The taps of a convolution that k goes over, every |tap_step|-th from |first| on.  For a data gradient with strides:
 * the taps that meet a phase of its pixels. */
typedef struct DevicePhase {
    int64_t first[2], count[2];
} DevicePhase;

static DevicePhase device_phase(const DeviceWindows *w, int64_t row, int64_t column) {
    DevicePhase f = {{row, column}, {1, INT64_MAX}};
    for (int i = 0; i < 2 && w->are; i++)
        f.count[i] = (w->kernel[i] - f.first[i] + w->tap_step[i] - 1) / w->tap_step[i];
    return f;
}

static int64_t device_tap_number(const DeviceWindows *w, const DevicePhase *f, int64_t i) {
    const int64_t row = f->first[0] + i / f->count[1] * w->tap_step[0];
    return w->are ? row * w->kernel[1] + f->first[1] + i % f->count[1] * w->tap_step[1] : i;
}

/* Lines |first| to |first + count|, elements |k| to |end|. */
static void device_take_lines(DeviceFactor *to, const DeviceWindows *w, const DevicePhase *f, const DeviceLines *x,
                              const float *at, int64_t first, int64_t count, int64_t k, int64_t end) {
    device_clear(to);
    for (int64_t i = 0; i < DEVICE_STEP && k + i < end; i++) {
        const int64_t pixel = device_tap_number(w, f, (k + i) / x->per), element = (k + i) % x->per;
        const float *const from = at + pixel * x->outer + element * x->inner + first * x->line;
        for (int64_t j = 0; j < count && element < x->run; j++) to->x[i][j] = from[j * x->line];
    }
}

typedef struct DeviceWindow {
    int64_t image, row, column;
} DeviceWindow;

typedef struct DeviceTap {
    int64_t row, column, channel;
} DeviceTap;

static DeviceWindow device_window(const DeviceWindows *w, int64_t number) {
    const int64_t row = number / w->out_width;
    return (DeviceWindow){row / w->out_height, row % w->out_height, number % w->out_width};
}

static DeviceTap device_tap(const DeviceWindows *w, const DevicePhase *f, const DeviceLines *x, int64_t place) {
    const int64_t tap = device_tap_number(w, f, place / x->per);
    return (DeviceTap){tap / w->kernel[1], tap % w->kernel[1], place % x->per};
}

/* Where tap |tap| of window |at| meets an image of |size|; negative: nowhere. */
static int64_t device_meets(const DeviceWindows *w, int dim, int64_t size, int64_t at, int64_t tap) {
    const int64_t step = w->stride[dim], shift = w->padding[dim] - tap * w->dilation[dim];
    if (!w->back) return at * step - shift < size ? at * step - shift : -1;
    return at + shift >= 0 && (at + shift) % step == 0 && (at + shift) / step < size ? (at + shift) / step : -1;
}

static float device_pixel(const DeviceWindows *w, const DeviceLines *x, const float *at, DeviceWindow window,
                          DeviceTap tap) {
    const int64_t row = device_meets(w, 0, w->height, window.row, tap.row);
    const int64_t column = device_meets(w, 1, w->width, window.column, tap.column);
    if (row < 0 || column < 0 || tap.channel >= x->run) return 0.0f;
    return at[((window.image * w->height + row) * w->width + column) * x->run + tap.channel];
}

static void device_take_windows(DeviceFactor *to, const DeviceWindows *w, const DevicePhase *f, const DeviceLines *x,
                                const float *at, int64_t first, int64_t count, int64_t k, int64_t end) {
    DeviceWindow windows[32];
    DeviceTap taps[32];
    const int64_t steps = end - k < DEVICE_STEP ? end - k : DEVICE_STEP;
    device_clear(to);
    for (int64_t i = 0; i < (w->down ? steps : count); i++) windows[i] = device_window(w, (w->down ? k : first) + i);
    for (int64_t i = 0; i < (w->down ? count : steps); i++) taps[i] = device_tap(w, f, x, (w->down ? first : k) + i);
    for (int64_t i = 0; i < steps; i++)
        for (int64_t j = 0; j < count; j++)
            to->x[i][j] = device_pixel(w, x, at, windows[w->down ? i : j], taps[w->down ? j : i]);
}

/* ---- tiles ------------------------------------------------------------------------------------------------------- */

/* Adds elements |k| to |end| of a tile's rows and columns to |sums|. */
INLINE void device_chain(float sums[32][32], const DeviceProduct *p, const DevicePhase *f, const float *a,
                         const float *b, int64_t row, int64_t rows, int64_t col, int64_t cols, int64_t k, int64_t end,
                         int lowest, int block) {
    DeviceFactor x, y;
    for (; k < end; k += DEVICE_STEP) {
        if (p->windows.are) device_take_windows(&x, &p->windows, f, &p->a, a, row, rows, k, end);
        else device_take_lines(&x, &p->windows, f, &p->a, a, row, rows, k, end);
        device_take_lines(&y, &p->windows, f, &p->b, b, col, cols, k, end);
        device_split_factor(&x, DEVICE_STEP, 32, lowest);
        device_split_factor(&y, DEVICE_STEP, 32, lowest);
        for (int first = 0; first < DEVICE_STEP; first += block)
            for (int64_t r = 0; r < rows; r++)
                for (int64_t c = 0; c < cols; c += W) {
                    const vf sum = load_f32(&sums[r][c]);
                    const DeviceTerms of_sum = device_split(sum, DEVICE_LOWEST);
                    float *const next = &sums[r][c];
                    double exact[W];
                    device_block(exact, of_sum, &x, &y, first, block, DEVICE_BITS, r, c);
                    for (int l = 0; l < W; l++) next[l] = device_narrow(exact[l]);
                    if (x.special || y.special || any_vi(of_sum.special))
                        store_f32(next, device_specials(load_f32(next), sum, &x, &y, first, block, r, c));
                }
    }
}

typedef float DeviceTile[32][32] __attribute__((aligned(64)));

INLINE void device_fill(DeviceTile tile, float x) {
    for (int r = 0; r < 32; r++)
        for (int c = 0; c < 32; c += W) store_f32(&tile[r][c], splat_f(x));
}

/* The part of a tile that is in one product: its parts one after the other, each starting at 0. */
INLINE void device_parts(DeviceTile total, const DeviceProduct *p, const float *a, const float *b, int64_t row,
                         int64_t rows, int64_t col, int64_t cols, int lowest, int block) {
    DeviceTile part;
    const DevicePhase all = device_phase(&p->windows, 0, 0);
    device_fill(total, p->part < p->k ? 0.0f : -0.0f); /* to which one part is added unchanged, if it is -0 */
    for (int64_t k = 0; k < p->k; k += p->part) {
        const int64_t end = p->k - k < p->part ? p->k : k + p->part;
        device_fill(part, 0.0f);
        device_chain(part, p, &all, a, b, row, rows, col, cols, k, end, lowest, block);
        for (int64_t r = 0; r < rows; r++)
            for (int64_t c = 0; c < cols; c += W)
                store_f32(&total[r][c], load_f32(&total[r][c]) + load_f32(&part[r][c]));
    }
}

/* Whether the taps of |f| meet the pixel. */
static int device_is_in_phase(const DeviceWindows *w, const DevicePhase *f, int64_t pixel) {
    const DeviceWindow at = device_window(w, pixel);
    return (at.row + w->padding[0] - f->first[0] * w->dilation[0]) % w->stride[0] == 0 &&
           (at.column + w->padding[1] - f->first[1] * w->dilation[1]) % w->stride[1] == 0;
}

/* The same of a data gradient with strides: the sum of a pixel is over the taps that meet it. */
INLINE void device_phases(DeviceTile total, const DeviceProduct *p, const float *a, const float *b, int64_t row,
                          int64_t rows, int64_t col, int64_t cols, int lowest, int block) {
    const DeviceWindows *const w = &p->windows;
    DeviceTile part;
    device_fill(total, 0.0f);
    for (int64_t i = 0; i < w->tap_step[0] * w->tap_step[1]; i++) {
        const DevicePhase f = device_phase(w, i / w->tap_step[1], i % w->tap_step[1]);
        if (f.count[0] <= 0 || f.count[1] <= 0) continue;
        device_fill(part, 0.0f);
        device_chain(part, p, &f, a, b, row, rows, col, cols, 0, f.count[0] * f.count[1] * p->a.per, lowest, block);
        for (int64_t r = 0; r < rows; r++)
            for (int64_t c = 0; c < cols && device_is_in_phase(w, &f, row + r); c += W)
                store_f32(&total[r][c], load_f32(&part[r][c]));
    }
}

/* Where product number |at| reads an operand; |last|: its place along the last of |dims|, where they are merged. */
INLINE const float *device_operand(const amp_kernel_args *k, const DeviceProduct *p, const DeviceLines *x, int64_t at,
                                   int64_t last) {
    const float *from = (const float *)k->buffer[x->operand] + x->offset;
    for (int i = p->rank - 1; i >= 0; i--) {
        const int beside = p->merged && i == p->rank - 1;
        from += (beside ? last : at % p->dims[i]) * x->stride[i];
        if (!beside) at /= p->dims[i];
    }
    return from;
}

INLINE int64_t device_least(int64_t a, int64_t b) { return a < b ? a : b; }

/* The kernel's tile, of |cols| columns in all. */
INLINE void device_sums(DeviceTile sums, const amp_kernel_args *k, const DeviceProduct *p, int64_t cols, int lowest,
                        int block) {
    DeviceTile total;
    const int64_t past = device_least(cols - k->col0, 32);
    device_fill(sums, 0.0f);
    for (int64_t r = 0, rows; r < k->rows; r += rows) {
        const int64_t at = (k->row0 + r) / p->m, row = (k->row0 + r) % p->m;
        rows = device_least(k->rows - r, p->m - row);
        for (int64_t c = 0, width; c < past; c += width) {
            const int64_t last = (k->col0 + c) / p->n, col = (k->col0 + c) % p->n;
            width = device_least(past - c, p->n - col);
            const float *const a = device_operand(k, p, &p->a, at, last), *const b =
                                                                              device_operand(k, p, &p->b, at, last);
            if (p->windows.back) device_phases(total, p, a, b, row, rows, col, width, lowest, block);
            else device_parts(total, p, a, b, row, rows, col, width, lowest, block);
            for (int64_t i = 0; i < rows; i++)
                for (int64_t j = 0; j < width; j++) sums[r + i][c + j] = total[i][j];
        }
    }
}

#define DEVICE_SUMS(name, lowest, block)                                                                               \
    static MAYBE_UNUSED __attribute__((noinline)) void name(DeviceTile to, const amp_kernel_args *k,                   \
                                                            const DeviceProduct *p, int64_t cols) {                    \
        device_sums(to, k, p, cols, lowest, block);                                                                    \
    }
DEVICE_SUMS(device_sums_f16, -14, DEVICE_BLOCK)
DEVICE_SUMS(device_sums_bf16, DEVICE_LOWEST, DEVICE_BLOCK)
DEVICE_SUMS(device_sums_tf32, DEVICE_LOWEST, DEVICE_BLOCK / 2)
