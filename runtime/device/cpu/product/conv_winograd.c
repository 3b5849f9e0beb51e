/* conv_winograd.c: CONV and CONV_DATA of 3 x 3 windows without stride by Winograd's products F(2 x 2, 3 x 3): 16
 * multiplications for four numbers of the result instead of 36 (Lavin and Gray, "Fast algorithms for convolutional
 * neural networks", CVPR 2016).
 *
 *     Y = A^T [(G g G^T) * (B^T d B)] A      d: 4 x 4 pixels of the image, g: 3 x 3 weights, Y: 2 x 2 pixels of C
 *
 * Summed over channels, each of the 16 numbers in brackets is a matrix product, [squares, channels] by [channels,
 * columns].  A first phase transforms the weights; the tasks of the second one take some row tiles of C each.  They
 * gather the squares that these meet, 32 at a time, and keep what is between the transforms in the cache.  CONV_DATA is
 * CONV with the taps in the opposite order.
 *
 * Errors are no larger than in the windows' own sums: every number is below 2.25 times the products it replaces,
 * but the chains of additions are nine times as short.  So bf16 go this way, too, where they are multiplied as f32:
 * transformed, they stay f32.
 */
#include "runtime/device/cpu/product/conv_parts.h"

enum {
    TILE = AMP_PRODUCT_ROWS * AMP_PRODUCT_COLS,
    LEAST_CHANNELS = 32,
    LEAST_PIXELS = 64,      /* CONV: an answer to one sample transforms all weights, too */
    LEAST_PIXELS_BACK = 16, /* CONV_DATA, CONV_WEIGHT: in training, of many samples */
    WIDEST_UNEVEN = 64,     /* pixels of a line, where tasks cut squares in two */
    MOST_ROW_TILES = 16,    /* of a task, */
    USUAL_ROW_TILES = 8,    /* where any number is as good, */
    LEAST_ROW_TILES = 2,    /* and while there are few tasks */
    ENOUGH_TASKS = 16,
    TOGETHER = AMP_PRODUCT_ROWS,    /* squares, the rows of 16 matrix products */
    MOST_PANELS = 4,                /* of C of a task */
    BLOCKS = 2,                     /* of 32 channels that go by together */
    WEIGHT_ROWS = 32,               /* of a task of the first phase */
    TAP_STEP = AMP_PRODUCT_COLS * 4 /* bytes of a step of k */
};

/* ---- squares ----------------------------------------------------------------------------------------------------- */

static const float zeros[CONV_BLOCK] __attribute__((aligned(64)));

void conv_square_pixels(const conv_squares *from, const conv_square *at, int64_t block, const void **pixels) {
    const amp_image *image = from->image;
    const int64_t y0 = 2 * at->y - from->lead_h, x0 = 2 * at->x - from->lead_w;
    const uintptr_t data = (uintptr_t)image->data + (uintptr_t)(block * image->block_stride);
    for (int64_t i = 0; i < from->size; i++)
        for (int64_t j = 0; j < from->size; j++) {
            const int64_t y = y0 + i, x = x0 + j;
            const bool inside = (uint64_t)y < (uint64_t)from->h && (uint64_t)x < (uint64_t)from->w;
            const int64_t pixel = (at->sample * from->h + y) * from->w + x;
            *pixels++ = inside ? (const void *)(data + (uintptr_t)(pixel * image->pixel_stride)) : zeros;
        }
}

/* ---- how a product is divided ------------------------------------------------------------------------------------ */

typedef struct plan {
    int64_t h, w, rows, row_tiles; /* of C */
    int64_t inner, blocks, panels; /* channels that are summed over, and their blocks; columns of C */
    int64_t task_tiles, task_panels, row_groups, panel_groups;
    conv_squares squares; /* of the image that is read */
} plan;

/* As many row tiles as whole pairs of lines have, 0: such a number is too large. */
static int64_t whole_pairs(int64_t width) {
    for (int64_t tiles = USUAL_ROW_TILES; tiles >= USUAL_ROW_TILES / 2; tiles--)
        if (tiles * AMP_PRODUCT_ROWS % (2 * width) == 0) return tiles;
    for (int64_t tiles = USUAL_ROW_TILES + 1; tiles <= MOST_ROW_TILES; tiles++)
        if (tiles * AMP_PRODUCT_ROWS % (2 * width) == 0) return tiles;
    return 0;
}

static plan plan_of(const amp_conv *c) {
    const amp_model_window *w = &c->window;
    const bool data = w->kind == AMP_WINDOW_CONV_DATA;
    plan p = {.h = data ? w->h : w->oh, .w = data ? w->w : w->ow, .inner = data ? w->oc : w->c};
    p.squares = (conv_squares){.image = &c->a,
                               .h = data ? w->oh : w->h,
                               .w = data ? w->ow : w->w,
                               .lead_h = data ? 2 - w->padding[0] : w->padding[0],
                               .lead_w = data ? 2 - w->padding[1] : w->padding[1],
                               .size = 4};
    p.rows = c->n * p.h * p.w;
    p.row_tiles = conv_blocks(p.rows);
    p.blocks = conv_blocks(p.inner);
    p.panels = conv_blocks(data ? w->c : w->oc);
    p.task_tiles = whole_pairs(p.w);
    if (!p.task_tiles) p.task_tiles = MOST_ROW_TILES;
    p.task_panels = conv_min(p.panels, MOST_PANELS);
    for (;;) {
        p.row_groups = (p.row_tiles + p.task_tiles - 1) / p.task_tiles;
        p.panel_groups = (p.panels + p.task_panels - 1) / p.task_panels;
        if (p.row_groups * p.panel_groups >= ENOUGH_TASKS) break;
        if (p.task_panels > 1) p.task_panels = (p.task_panels + 1) / 2;
        else if (p.task_tiles / 2 >= LEAST_ROW_TILES) p.task_tiles /= 2;
        else break;
    }
    return p;
}

bool conv_is_winograd(const amp_conv *c) {
    const amp_model_window *w = &c->window;
    const bool data = w->kind == AMP_WINDOW_CONV_DATA, forward = w->kind == AMP_WINDOW_CONV;
    const int64_t width = data ? w->w : w->ow;
    if (!c->kernels->winograd || conv_groups(c) > 1 || w->kh != 3 || w->kw != 3) return false;
    if (w->stride[0] != 1 || w->stride[1] != 1 || w->dilation[0] != 1 || w->dilation[1] != 1) return false;
    if (w->c < LEAST_CHANNELS || w->oc < LEAST_CHANNELS) return false;
    if ((int64_t)w->oh * w->ow < (forward ? LEAST_PIXELS : LEAST_PIXELS_BACK)) return false;
    return w->kind == AMP_WINDOW_CONV_WEIGHT || width <= WIDEST_UNEVEN || whole_pairs(width) > 0;
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

enum {
    IMAGE_STEP = BLOCKS * TOGETHER * CONV_BLOCK + WINOGRAD_APART, /* floats from a number of the tiles to the next */
    SUMS_STEP = TILE + WINOGRAD_APART
};

/* Squares of the image, sums of the products, pixels of C, and where pixels outside of the task go. */
static size_t image_bytes(void) { return WINOGRAD_NUMBERS * IMAGE_STEP * sizeof(float); }
static size_t sums_bytes(void) { return MOST_PANELS * WINOGRAD_NUMBERS * SUMS_STEP * sizeof(float); }
static size_t pixels_bytes(void) { return (size_t)MOST_PANELS * MOST_ROW_TILES * TILE * sizeof(float); }

size_t conv_winograd_thread_bytes(const amp_conv *c) {
    (void)c;
    return image_bytes() + sums_bytes() + pixels_bytes() + CONV_BLOCK * sizeof(float);
}

static int64_t weight_step(const plan *p) { return p->inner * AMP_PRODUCT_COLS + WINOGRAD_APART; }

/* By panel and number: [inner][32]. */
static float *weights_of(const amp_conv *c, const plan *p, int64_t panel, int64_t number) {
    return c->shared + (panel * WINOGRAD_NUMBERS + number) * weight_step(p);
}

size_t conv_winograd_shared_bytes(const amp_conv *c) {
    const plan p = plan_of(c);
    return (size_t)(p.panels * WINOGRAD_NUMBERS * weight_step(&p)) * sizeof(float);
}

/* ---- first phase: the weights ------------------------------------------------------------------------------------ */

static int64_t weight_parts(const plan *p) { return (p->inner + WEIGHT_ROWS - 1) / WEIGHT_ROWS; }

int64_t conv_winograd_tasks(const amp_conv *c) {
    const plan p = plan_of(c);
    return p.panels * weight_parts(&p);
}

void conv_winograd_task(const amp_conv *c, int64_t index, char *scratch) {
    const plan p = plan_of(c);
    const bool opposite = c->window.kind == AMP_WINDOW_CONV_DATA;
    const int64_t panel = index / weight_parts(&p), first = index % weight_parts(&p) * WEIGHT_ROWS,
                  rows = conv_min(WEIGHT_ROWS, p.inner - first), tap_steps = conv_whole(c).tap_steps;
    const char *weights =
        (const char *)c->b + panel * c->b_panel_stride * 4 + first * TAP_STEP / 4 * conv_element_bytes(c);
    const float *taps[WINOGRAD_TAPS];
    for (int i = 0; i < WINOGRAD_TAPS; i++) {
        const char *tap = weights + (opposite ? WINOGRAD_TAPS - 1 - i : i) * tap_steps * TAP_STEP;
        float *widened = (float *)scratch + i * TILE;
        taps[i] = c->kernels->widening ? widened : (const float *)tap;
        if (c->kernels->widening) c->kernels->widening->steps(tap, rows / 2, 1, widened);
    }
    c->kernels->winograd->weights(taps, rows, weights_of(c, &p, panel, 0) + first * AMP_PRODUCT_COLS, weight_step(&p));
}

/* ---- second phase ------------------------------------------------------------------------------------------------ */

typedef struct task {
    int64_t first_tile, last_tile, first_panel, last_panel; /* last: one past */
    int64_t first_row, last_row;
    float *image, *sums, *pixels, *outside;
    conv_square squares[TOGETHER];
    int64_t count; /* of squares */
} task;

static task task_of(const plan *p, int64_t index, char *scratch) {
    task t = {.first_tile = index % p->row_groups * p->task_tiles,
              .first_panel = index / p->row_groups * p->task_panels,
              .image = (float *)scratch,
              .sums = (float *)(scratch + image_bytes()),
              .pixels = (float *)(scratch + image_bytes() + sums_bytes()),
              .outside = (float *)(scratch + image_bytes() + sums_bytes() + pixels_bytes())};
    t.last_tile = conv_min(t.first_tile + p->task_tiles, p->row_tiles);
    t.last_panel = conv_min(t.first_panel + p->task_panels, p->panels);
    t.first_row = t.first_tile * AMP_PRODUCT_ROWS;
    t.last_row = conv_min(t.last_tile * AMP_PRODUCT_ROWS, p->rows);
    return t;
}

/* Blocks first .. last of the channels: B^T d B of all squares, and their products, which are added to the sums. */
static void add_blocks(const amp_conv *c, const plan *p, task *t, int64_t first, int64_t last) {
    const void *pixels[WINOGRAD_NUMBERS];
    for (int64_t s = 0; s < t->count; s++)
        for (int64_t block = first; block < last; block++) {
            conv_square_pixels(&p->squares, &t->squares[s], block, pixels);
            float *out = t->image + ((block - first) * TOGETHER + s) * CONV_BLOCK;
            c->kernels->winograd->image(pixels, out, IMAGE_STEP);
        }
    for (int64_t panel = t->first_panel; panel < t->last_panel; panel++)
        for (int64_t i = 0; i < WINOGRAD_NUMBERS; i++) {
            const amp_product_tile product = {
                .a = t->image + i * IMAGE_STEP,
                .b = weights_of(c, p, panel, i) + first * CONV_BLOCK * AMP_PRODUCT_COLS,
                .c = t->sums + ((panel - t->first_panel) * WINOGRAD_NUMBERS + i) * SUMS_STEP,
                .form = AMP_PRODUCT_BLOCKED,
                .accumulate = first > 0,
                .a_block_stride = TOGETHER * CONV_BLOCK,
                .k = conv_min(last * CONV_BLOCK, p->inner) - first * CONV_BLOCK,
                .rows = t->count,
            };
            conv_f32(c)->tile(&product);
        }
}

/* The 2 x 2 pixels of each square; other tasks compute the pixels of other row tiles. */
static void write_pixels(const amp_conv *c, const plan *p, const task *t, int64_t panel) {
    const int64_t held = panel - t->first_panel;
    float *to = t->pixels + held * MOST_ROW_TILES * TILE, *pixels[4];
    for (int64_t s = 0; s < t->count; s++) {
        const conv_square *at = &t->squares[s];
        for (int64_t i = 0; i < 4; i++) {
            const int64_t y = 2 * at->y + i / 2, x = 2 * at->x + i % 2, row = (at->sample * p->h + y) * p->w + x;
            const bool wanted = y < p->h && x < p->w && row >= t->first_row && row < t->last_row;
            pixels[i] = wanted ? to + (row - t->first_row) * AMP_PRODUCT_COLS : t->outside;
        }
        const float *sums = t->sums + held * WINOGRAD_NUMBERS * SUMS_STEP + s * AMP_PRODUCT_COLS;
        c->kernels->winograd->result(sums, SUMS_STEP, pixels);
    }
}

static void run_squares(const amp_conv *c, const plan *p, task *t) {
    for (int64_t first = 0; first < p->blocks; first += BLOCKS)
        add_blocks(c, p, t, first, conv_min(first + BLOCKS, p->blocks));
    for (int64_t panel = t->first_panel; panel < t->last_panel; panel++) write_pixels(c, p, t, panel);
    t->count = 0;
}

/* Whether one of the square's pixels is in the task's rows. */
static bool meets(const plan *p, const task *t, const conv_square *at) {
    const int64_t first = (at->sample * p->h + 2 * at->y) * p->w + 2 * at->x, beside = 2 * at->x + 1 < p->w,
                  below = 2 * at->y + 1 < p->h ? p->w : 0;
    const bool above = first < t->last_row && first + beside >= t->first_row;
    return above || (below && first + below < t->last_row && first + below + beside >= t->first_row);
}

static void run_lines(const amp_conv *c, const plan *p, task *t, int64_t sample, int64_t first_y, int64_t last_y) {
    for (int64_t y = first_y; y <= last_y; y++)
        for (int64_t x = 0; x < (p->w + 1) / 2; x++) {
            t->squares[t->count] = (conv_square){sample, y, x};
            if (!meets(p, t, &t->squares[t->count])) continue;
            if (++t->count == TOGETHER) run_squares(c, p, t);
        }
}

int64_t conv_winograd_second_tasks(const amp_conv *c) {
    const plan p = plan_of(c);
    return p.row_groups * p.panel_groups;
}

void conv_winograd_second_task(const amp_conv *c, int64_t index, char *scratch) {
    const plan p = plan_of(c);
    task t = task_of(&p, index, scratch);
    const int64_t pixels = p.h * p.w;
    for (int64_t sample = t.first_row / pixels; sample * pixels < t.last_row; sample++) {
        const int64_t first = conv_max(t.first_row - sample * pixels, 0),
                      last = conv_min(t.last_row - sample * pixels, pixels) - 1;
        run_lines(c, &p, &t, sample, first / p.w / 2, last / p.w / 2);
    }
    if (t.count) run_squares(c, &p, &t);
    for (int64_t tile = t.first_tile; tile < t.last_tile; tile++)
        for (int64_t panel = t.first_panel; panel < t.last_panel; panel++) {
            const int64_t row = tile * AMP_PRODUCT_ROWS;
            const float *sums =
                t.pixels + (panel - t.first_panel) * MOST_ROW_TILES * TILE + (row - t.first_row) * AMP_PRODUCT_COLS;
            c->epilogue(c->ctx, sums, row, conv_min(AMP_PRODUCT_ROWS, p.rows - row), panel * AMP_PRODUCT_COLS);
        }
}
