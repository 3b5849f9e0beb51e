/* count.c: see count.h.
 *
 * Padding is not counted.  A task is a block of a panel: its lines are 32 elements side by side, or fewer in the last
 * panel.  A matrix in rows is one line, which tasks take pieces of.
 */
#include "runtime/device/cpu/count.h"

#include <pthread.h>
#include <string.h>

#include "runtime/model/matrix_layout.h"

enum {
    PANEL = 32,
    BLOCK_LINES = 512,
    BLOCK = BLOCK_LINES * PANEL,
    PIECE = 256,
    TABLES = 4, /* taken in turn: numbers of one size after another do not wait for one sum */
    EXPONENTS = 256
};

typedef struct BinsOfExponent { /* |first| and how many bounds are at most m; no exponent has more than two */
    uint32_t first, bound[2];
} BinsOfExponent;

typedef struct Counting {
    const amp_counted *what;
    int64_t lines, width, blocks; /* of a panel; of all panels; of a panel */
    bool in_panels, in_pairs;
    BinsOfExponent bins[EXPONENTS];
    pthread_mutex_t adding;
    amp_number_bins *to;
} Counting;

static void fill_bins(BinsOfExponent *bins) {
#define AS_ELEMENT(bound) bound,
    static const uint32_t bounds[] = {AMP_BIN_BOUNDS(AS_ELEMENT)};
#undef AS_ELEMENT
    enum { BOUNDS = sizeof bounds / sizeof *bounds };
    for (uint32_t e = 0, below = 0; e < EXPONENTS; e++) {
        int here = 0;
        bins[e] = (BinsOfExponent){e + below, {UINT32_MAX, UINT32_MAX}};
        while (below < BOUNDS && bounds[below] >> 23 == e) bins[e].bound[here++] = bounds[below++];
    }
}

/* ---- numbers ----------------------------------------------------------------------------------------------------- */

typedef struct Counts { /* of a task */
    uint32_t count[TABLES][AMP_NUMBER_BINS], largest;
} Counts;

static void count_floats(const BinsOfExponent *bins, Counts *c, const float *data, int64_t count) {
    enum { INFINITE = 0x7F800000 };
    uint32_t largest = c->largest;
    for (int64_t i = 0; i < count; i++) {
        uint32_t m;
        memcpy(&m, &data[i], sizeof m);
        m &= INT32_MAX;
        const BinsOfExponent *b = &bins[m >> 23];
        c->count[i % TABLES][b->first + (m >= b->bound[0]) + (m >= b->bound[1])]++;
        const uint32_t finite = m < INFINITE ? m : 0;
        largest = finite > largest ? finite : largest;
    }
    c->largest = largest;
}

/* Elements side by side. */
static void count_run(const Counting *k, Counts *c, int64_t index, int64_t count) {
    float piece[PIECE];
    for (int64_t done = 0; done < count; done += PIECE) {
        const int64_t n = count - done < PIECE ? count - done : PIECE;
        amp_load_run(k->what->memory, k->what->storage, index + done, n, piece);
        count_floats(k->bins, c, piece, n);
    }
}

/* ---- blocks ------------------------------------------------------------------------------------------------------ */

static void count_lines(const Counting *k, Counts *c, int64_t panel, int64_t first, int64_t count) {
    const int64_t width = k->width - panel * PANEL < PANEL ? k->width - panel * PANEL : PANEL;
    const int64_t lines = (k->lines + PANEL - 1) / PANEL * PANEL, begin = (panel * lines + first) * PANEL;
    if (width == PANEL && (!k->in_pairs || count % 2 == 0)) {
        count_run(k, c, begin, count * PANEL);
        return;
    }
    for (int64_t i = 0; i < count; i++)
        if (!k->in_pairs) count_run(k, c, begin + i * PANEL, width);
        else
            for (int64_t j = 0; j < width; j++) count_run(k, c, begin + i / 2 * 2 * PANEL + j * 2 + i % 2, 1);
}

static void add(Counting *k, const Counts *c) {
    pthread_mutex_lock(&k->adding);
    for (int t = 0; t < TABLES; t++)
        for (int b = 0; b < AMP_NUMBER_BINS; b++) k->to->count[b] += c->count[t][b];
    if (c->largest > k->to->largest) k->to->largest = c->largest;
    pthread_mutex_unlock(&k->adding);
}

static void run_task(void *counting, int64_t task, int32_t thread) {
    Counting *k = counting;
    Counts c = {0};
    (void)thread;
    if (k->in_panels) {
        const int64_t first = task % k->blocks * BLOCK_LINES, left = k->lines - first;
        count_lines(k, &c, task / k->blocks, first, left < BLOCK_LINES ? left : BLOCK_LINES);
    } else {
        const int64_t first = task * BLOCK, left = k->width - first;
        count_run(k, &c, first, left < BLOCK ? left : BLOCK);
    }
    add(k, &c);
}

void amp_count_numbers(amp_pool *pool, const amp_counted *what, amp_number_bins *to) {
    const uint32_t layout = what->layout;
    const bool is_turned = layout == AMP_LAYOUT_PANELS_T || layout == AMP_LAYOUT_PAIRS_T;
    Counting k = {.what = what, .to = to, .adding = PTHREAD_MUTEX_INITIALIZER};
    int64_t tasks;
    fill_bins(k.bins);
    k.in_panels = layout != AMP_LAYOUT_ROWS;
    k.in_pairs = layout == AMP_LAYOUT_PAIRS || layout == AMP_LAYOUT_PAIRS_T;
    if (k.in_panels) {
        k.lines = is_turned ? what->cols : what->rows;
        k.width = is_turned ? what->rows : what->cols;
        k.blocks = (k.lines + BLOCK_LINES - 1) / BLOCK_LINES;
        tasks = (k.width + PANEL - 1) / PANEL * k.blocks;
    } else {
        k.width = what->rows * what->cols;
        tasks = (k.width + BLOCK - 1) / BLOCK;
    }
    amp_pool_run(pool, run_task, &k, tasks);
}
