/* conv_winograd_weight.c: CONV_WEIGHT of 3 x 3 windows without stride by Winograd's products F(3 x 3, 2 x 2):
 *
 *     dg = A^T [(G dy G^T) * (B^T d B)] A    d: 4 x 4 pixels of x, dy: 2 x 2 pixels of the gradient, dg: 3 x 3 taps
 *
 * Summed over squares, each of the 16 numbers in brackets is a matrix product, [channels of x, squares] by [squares,
 * channels of y], and dg is made of them once, at the end.  A task has a few blocks of 32 channels of x and panels of
 * dy, and the samples of a split.
 *
 * Where x or dy has many zeros, an element of dg may be a sum of products that are all 0.  Made of sums that cancel it
 * would be a rounding error, which an optimizer that divides a gradient by its own size (Adam) takes for a gradient.
 * So a task also notes, bit by bit, which elements have a product that is not 0, and the others become 0.
 */
#include <string.h>

#include "runtime/device/cpu/product/conv_parts.h"

enum {
    TILE = AMP_PRODUCT_ROWS * AMP_PRODUCT_COLS,
    TOGETHER = 64,   /* squares: fewer would load and store sums more often, more do not stay in the cache */
    MOST_BLOCKS = 2, /* of a task: each transformed number of x serves all its panels, and of dy all its blocks */
    MOST_PANELS = 2,
    ENOUGH_TASKS = 32
};

typedef struct plan {
    int64_t blocks, panels; /* of x, of dy */
    int64_t task_blocks, task_panels, block_groups, panel_groups;
    int64_t splits;
    int64_t channels;       /* of x: rows of a tap */
    bool aligned;           /* each block of a tap is a tile of C */
    bool single;            /* the first phase is all */
    int64_t lines, columns; /* squares of a sample */
    conv_squares x, dy;
} plan;

static plan plan_of(const amp_conv *c) {
    const amp_model_window *w = &c->window;
    plan p = {.blocks = conv_blocks(w->c),
              .channels = w->c,
              .aligned = w->c % CONV_BLOCK == 0,
              .panels = conv_blocks(w->oc),
              .lines = (w->oh + 1) / 2,
              .columns = (w->ow + 1) / 2};
    p.x = (conv_squares){&c->a, w->h, w->w, w->padding[0], w->padding[1], 4};
    p.dy = (conv_squares){&c->dy, w->oh, w->ow, 0, 0, 2};
    p.task_blocks = conv_min(p.blocks, MOST_BLOCKS);
    p.task_panels = conv_min(p.panels, MOST_PANELS);
    p.block_groups = (p.blocks + p.task_blocks - 1) / p.task_blocks;
    p.panel_groups = (p.panels + p.task_panels - 1) / p.task_panels;
    p.splits = conv_min(c->n, (ENOUGH_TASKS - 1) / (p.block_groups * p.panel_groups) + 1);
    p.single = p.splits == 1 && p.aligned;
    return p;
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

enum {
    STEP = TOGETHER * CONV_BLOCK + WINOGRAD_APART, /* floats from a number of the squares to the next */
    SQUARES = WINOGRAD_NUMBERS * STEP,             /* of 32 channels */
    SUMS = WINOGRAD_NUMBERS * TILE,                /* of a block and a panel */
    MARKS = WINOGRAD_TAPS * AMP_PRODUCT_ROWS,      /* words of 32 columns, after the sums */
    TASK_SQUARES = SQUARES * (MOST_BLOCKS + MOST_PANELS),
    TASK_SUMS = (SUMS + MARKS) * MOST_BLOCKS * MOST_PANELS
};

static int64_t row_tiles(const plan *p) { return conv_blocks(WINOGRAD_TAPS * p->channels); }

/* Of a task: squares of x by block, squares of dy by panel, sums by block and panel, where there is one split.  In
 * their place, where tiles of C are of two taps: a panel of C.  Then taps. */
static int64_t taps_at(const amp_conv *c) {
    const plan p = plan_of(c);
    return conv_max(TASK_SQUARES + TASK_SUMS, p.aligned ? 0 : row_tiles(&p) * TILE);
}

size_t conv_winograd_weight_thread_bytes(const amp_conv *c) {
    return (size_t)(taps_at(c) + WINOGRAD_TAPS * TILE) * sizeof(float);
}

static float *taps_in(const amp_conv *c, char *scratch) { return (float *)scratch + taps_at(c); }

size_t conv_winograd_weight_shared_bytes(const amp_conv *c) {
    const plan p = plan_of(c);
    return p.single ? 0 : (size_t)(p.splits * p.blocks * p.panels) * (SUMS + MARKS) * sizeof(float);
}

static float *partial_of(const amp_conv *c, const plan *p, int64_t split, int64_t block, int64_t panel) {
    return c->shared + ((split * p->blocks + block) * p->panels + panel) * (SUMS + MARKS);
}

/* ---- which elements have a product that is not 0 ----------------------------------------------------------------- */

/* By tap and channel of x, a bit for each column of the panel. */
typedef uint32_t marks[WINOGRAD_TAPS][AMP_PRODUCT_ROWS];

static marks *marks_of(float *sums) { return (marks *)(void *)(sums + SUMS); }

/* Of 32 channels of an image: all bits where one has a number that is not 0 in the pixels so far, else none. */
typedef struct seen {
    uint32_t channel[CONV_BLOCK];
} seen;

static void see(const amp_conv *c, seen *any, const void *const *pixels, int count) {
    for (int at = 0; at < count; at++) {
        const float *pixel = pixels[at];
        const uint16_t *bf16 = pixels[at];
        if (conv_is_bf16(c))
            for (int i = 0; i < CONV_BLOCK; i++) any->channel[i] |= (bf16[i] & INT16_MAX) != 0 ? ~0u : 0;
        else
            for (int i = 0; i < CONV_BLOCK; i++) any->channel[i] |= pixel[i] != 0 ? ~0u : 0;
    }
}

static uint32_t columns_of(const seen *any) {
    uint32_t columns = 0;
    for (int i = 0; i < AMP_PRODUCT_COLS; i++) columns |= any->channel[i] & 1u << i;
    return columns;
}

/* Of one square: |x| has 4 x 4 pixels, |dy| 2 x 2. */
static void mark(const amp_conv *c, marks *m, const void *const *x, const void *const *dy) {
    seen in_x[WINOGRAD_NUMBERS] = {0};
    for (int at = 0; at < WINOGRAD_NUMBERS; at++) see(c, &in_x[at], x + at, 1);
    for (int at = 0; at < 4; at++) {
        seen in_dy = {0};
        see(c, &in_dy, dy + at, 1);
        const uint32_t columns = columns_of(&in_dy);
        for (int tap = 0; tap < WINOGRAD_TAPS; tap++) {
            const seen *pixel = &in_x[(at / 2 + tap / 3) * 4 + at % 2 + tap % 3];
            for (int i = 0; i < AMP_PRODUCT_ROWS; i++) (*m)[tap][i] |= pixel->channel[i] & columns;
        }
    }
}

static void add_marks(marks *m, const marks *more) {
    for (int tap = 0; tap < WINOGRAD_TAPS; tap++)
        for (int i = 0; i < AMP_PRODUCT_ROWS; i++) (*m)[tap][i] |= (*more)[tap][i];
}

/* Whether no further square can mark anything. */
static bool is_complete(const marks *m, const seen *x, const seen *dy) {
    const uint32_t columns = columns_of(dy);
    uint32_t missing = 0;
    for (int tap = 0; tap < WINOGRAD_TAPS; tap++)
        for (int i = 0; i < AMP_PRODUCT_ROWS; i++) missing |= x->channel[i] & columns & ~(*m)[tap][i];
    return !missing;
}

static bool are_all_marked(const marks *m) {
    uint32_t all = ~0u;
    for (int tap = 0; tap < WINOGRAD_TAPS; tap++)
        for (int i = 0; i < AMP_PRODUCT_ROWS; i++) all &= (*m)[tap][i];
    return all == ~0u;
}

static void clear_unmarked(float *const *taps, const marks *m) {
    for (int tap = 0; tap < WINOGRAD_TAPS; tap++)
        for (int i = 0; i < TILE; i++)
            if (!((*m)[tap][i / AMP_PRODUCT_COLS] >> i % AMP_PRODUCT_COLS & 1)) taps[tap][i] = 0;
}

/* ---- first phase ------------------------------------------------------------------------------------------------- */

typedef struct task {
    int64_t split, first_block, last_block, first_panel, last_panel; /* last: one past */
    float *x, *dy, *sums;
    conv_square squares[TOGETHER];
    int64_t count; /* of squares */
    bool accumulate;
    seen any_x[MOST_BLOCKS], any_dy[MOST_PANELS];
    bool marked[MOST_BLOCKS][MOST_PANELS]; /* all elements */
} task;

static float *sums_of(const amp_conv *c, const plan *p, const task *t, int64_t block, int64_t panel) {
    if (!p->single) return partial_of(c, p, t->split, block, panel);
    return t->sums + ((block - t->first_block) * MOST_PANELS + panel - t->first_panel) * (SUMS + MARKS);
}

static bool is_marked_throughout(const task *t) {
    for (int64_t i = 0; i < t->last_block - t->first_block; i++)
        for (int64_t j = 0; j < t->last_panel - t->first_panel; j++)
            if (!t->marked[i][j]) return false;
    return true;
}

/* Channels that have been 0 so far are left out: most data mark all else within a few squares. */
static void mark_pair(const amp_conv *c, const plan *p, task *t, int64_t block, int64_t panel) {
    const seen *any_x = &t->any_x[block - t->first_block], *any_dy = &t->any_dy[panel - t->first_panel];
    marks *m = marks_of(sums_of(c, p, t, block, panel));
    const void *x[WINOGRAD_NUMBERS], *dy[4];
    for (int64_t s = 0; s < t->count && !is_complete(m, any_x, any_dy); s++) {
        conv_square_pixels(&p->x, &t->squares[s], block, x);
        conv_square_pixels(&p->dy, &t->squares[s], panel, dy);
        mark(c, m, x, dy);
    }
    t->marked[block - t->first_block][panel - t->first_panel] = are_all_marked(m);
}

static void mark_squares(const amp_conv *c, const plan *p, task *t) {
    const void *pixels[WINOGRAD_NUMBERS];
    if (is_marked_throughout(t)) return;
    for (int64_t s = 0; s < t->count; s++) {
        for (int64_t block = t->first_block; block < t->last_block; block++) {
            conv_square_pixels(&p->x, &t->squares[s], block, pixels);
            see(c, &t->any_x[block - t->first_block], pixels, WINOGRAD_NUMBERS);
        }
        for (int64_t panel = t->first_panel; panel < t->last_panel; panel++) {
            conv_square_pixels(&p->dy, &t->squares[s], panel, pixels);
            see(c, &t->any_dy[panel - t->first_panel], pixels, 4);
        }
    }
    for (int64_t block = t->first_block; block < t->last_block; block++)
        for (int64_t panel = t->first_panel; panel < t->last_panel; panel++) mark_pair(c, p, t, block, panel);
}

static float *x_of(const task *t, int64_t block) { return t->x + (block - t->first_block) * SQUARES; }
static float *dy_of(const task *t, int64_t panel) { return t->dy + (panel - t->first_panel) * SQUARES; }

static void transform_squares(const amp_conv *c, const plan *p, const task *t) {
    const void *pixels[WINOGRAD_NUMBERS];
    for (int64_t s = 0; s < t->count; s++) {
        for (int64_t block = t->first_block; block < t->last_block; block++) {
            conv_square_pixels(&p->x, &t->squares[s], block, pixels);
            c->kernels->winograd->image(pixels, x_of(t, block) + s * CONV_BLOCK, STEP);
        }
        for (int64_t panel = t->first_panel; panel < t->last_panel; panel++) {
            conv_square_pixels(&p->dy, &t->squares[s], panel, pixels);
            c->kernels->winograd->gradient(pixels, dy_of(t, panel) + s * CONV_BLOCK, STEP);
        }
    }
}

static void add_products(const amp_conv *c, const plan *p, const task *t, int64_t block, int64_t panel) {
    for (int64_t i = 0; i < WINOGRAD_NUMBERS; i++) {
        const amp_product_tile product = {
            .a = x_of(t, block) + i * STEP,
            .b = dy_of(t, panel) + i * STEP,
            .c = sums_of(c, p, t, block, panel) + i * TILE,
            .form = AMP_PRODUCT_TRANSPOSED,
            .accumulate = t->accumulate,
            .k = t->count,
            .rows = AMP_PRODUCT_ROWS,
        };
        conv_f32(c)->tile(&product);
    }
}

static void add_squares(const amp_conv *c, const plan *p, task *t) {
    mark_squares(c, p, t);
    transform_squares(c, p, t);
    for (int64_t block = t->first_block; block < t->last_block; block++)
        for (int64_t panel = t->first_panel; panel < t->last_panel; panel++) add_products(c, p, t, block, panel);
    t->accumulate = true;
    t->count = 0;
}

/* [tap][32 channels][32]. */
static void make_taps(const amp_conv *c, float *sums, float *memory) {
    float *taps[WINOGRAD_TAPS];
    for (int i = 0; i < WINOGRAD_TAPS; i++) taps[i] = memory + i * TILE;
    c->kernels->winograd->taps(sums, AMP_PRODUCT_ROWS, TILE, taps);
    if (!are_all_marked(marks_of(sums))) clear_unmarked(taps, marks_of(sums));
}

/* A block of each tap, which is a tile. */
static void hand_on_block(const amp_conv *c, float *sums, int64_t block, int64_t panel, char *scratch) {
    float *taps = taps_in(c, scratch);
    make_taps(c, sums, taps);
    for (int i = 0; i < WINOGRAD_TAPS; i++)
        c->epilogue(c->ctx, taps + i * TILE, i * (int64_t)c->window.c + block * CONV_BLOCK, AMP_PRODUCT_ROWS,
                    panel * AMP_PRODUCT_COLS);
}

int64_t conv_winograd_weight_tasks(const amp_conv *c) {
    const plan p = plan_of(c);
    return p.splits * p.block_groups * p.panel_groups;
}

static task task_of(const amp_conv *c, const plan *p, int64_t index, char *scratch) {
    task t = {.split = index / (p->block_groups * p->panel_groups),
              .first_block = index % p->block_groups * p->task_blocks,
              .first_panel = index / p->block_groups % p->panel_groups * p->task_panels,
              .x = (float *)scratch,
              .dy = (float *)scratch + MOST_BLOCKS * SQUARES,
              .sums = (float *)scratch + TASK_SQUARES};
    t.last_block = conv_min(t.first_block + p->task_blocks, p->blocks);
    t.last_panel = conv_min(t.first_panel + p->task_panels, p->panels);
    for (int64_t block = t.first_block; block < t.last_block; block++)
        for (int64_t panel = t.first_panel; panel < t.last_panel; panel++)
            memset(marks_of(sums_of(c, p, &t, block, panel)), 0, sizeof(marks));
    return t;
}

void conv_winograd_weight_task(const amp_conv *c, int64_t index, char *scratch) {
    const plan p = plan_of(c);
    task t = task_of(c, &p, index, scratch);
    for (int64_t sample = t.split * c->n / p.splits; sample < (t.split + 1) * c->n / p.splits; sample++)
        for (int64_t square = 0; square < p.lines * p.columns; square++) {
            t.squares[t.count++] = (conv_square){sample, square / p.columns, square % p.columns};
            if (t.count == TOGETHER) add_squares(c, &p, &t);
        }
    if (t.count) add_squares(c, &p, &t);
    for (int64_t block = t.first_block; p.single && block < t.last_block; block++)
        for (int64_t panel = t.first_panel; panel < t.last_panel; panel++)
            hand_on_block(c, sums_of(c, &p, &t, block, panel), block, panel, scratch);
}

/* ---- second phase ------------------------------------------------------------------------------------------------ */

int64_t conv_winograd_weight_sum_tasks(const amp_conv *c) {
    const plan p = plan_of(c);
    return p.single ? 0 : p.aligned ? p.blocks * p.panels : p.panels;
}

static float *add_splits(const amp_conv *c, const plan *p, int64_t block, int64_t panel) {
    float *sums = partial_of(c, p, 0, block, panel);
    for (int64_t split = 1; split < p->splits; split++) {
        float *more = partial_of(c, p, split, block, panel);
        conv_add_sums(sums, more, SUMS);
        add_marks(marks_of(sums), marks_of(more));
    }
    return sums;
}

/* Rows of all taps, and then their tiles. */
static void hand_on_panel(const amp_conv *c, const plan *p, int64_t panel, char *scratch) {
    float *rows = (float *)scratch, *taps = taps_in(c, scratch);
    for (int64_t block = 0; block < p->blocks; block++) {
        const int64_t first = block * CONV_BLOCK, count = conv_min(CONV_BLOCK, p->channels - first);
        make_taps(c, add_splits(c, p, block, panel), taps);
        for (int64_t i = 0; i < WINOGRAD_TAPS; i++)
            memcpy(rows + (i * p->channels + first) * AMP_PRODUCT_COLS, taps + i * TILE,
                   (size_t)(count * AMP_PRODUCT_COLS) * sizeof *rows);
    }
    for (int64_t tile = 0; tile < row_tiles(p); tile++) {
        const int64_t row = tile * AMP_PRODUCT_ROWS, left = WINOGRAD_TAPS * p->channels - row;
        c->epilogue(c->ctx, rows + row * AMP_PRODUCT_COLS, row, conv_min(AMP_PRODUCT_ROWS, left),
                    panel * AMP_PRODUCT_COLS);
    }
}

void conv_winograd_weight_sum_task(const amp_conv *c, int64_t index, char *scratch) {
    const plan p = plan_of(c);
    if (!p.aligned) hand_on_panel(c, &p, index, scratch);
    else
        hand_on_block(c, add_splits(c, &p, index / p.panels, index % p.panels), index / p.panels, index % p.panels,
                      scratch);
}
