/* executor.c: see executor.h.
 *
 * The caller walks the list of kernels.  The tasks of a kernel are shared out among the threads; the next kernel begins
 * when they are done.
 */
#include "runtime/device/cpu/executor.h"

#include <stdbool.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/file.h"
#include "runtime/device/cpu/product/attention.h"
#include "runtime/device/cpu/product/batch.h"
#include "runtime/device/cpu/product/conv.h"
#include "runtime/model/matrix_layout.h"

enum {
    TILE = 32,
    MAX_OPERANDS = 4096,    /* checked when the model is loaded */
    GRAIN = 8 * TILE * TILE /* elements of an elementwise task: a few microseconds */
};

/* The kernel that runs. */
struct amp_launch {
    const amp_executor *executor;
    const amp_model_kernel *kernel;
    amp_kernel_fn fn;
    amp_sizes sizes;
    amp_kernel_args args;
    int64_t rows, cols;
    int64_t row_blocks, items, grain,
        tasks;                 /* items: what the model's function is called for; a task is |grain| of them */
    int64_t segment, segments; /* COLUMN: rows of one, and how many */
    int64_t first;             /* TILE, of a share: its first tile of panels, or element of rows */
    bool runs;                 /* TILE, of a share of rows: items are 32 elements of a row */
    int64_t second_tasks;      /* a second phase, when all tasks are done */
    bool is_conv, is_batch;
    amp_conv conv;
    amp_batch batch;
    amp_attention attention;
    amp_product product;
    const amp_product_kernels *kernels;
    void *operands[MAX_OPERANDS];
};
typedef struct amp_launch Launch;

static int64_t blocks(int64_t v) { return (v + TILE - 1) / TILE; }
static int64_t round_up(int64_t v) { return blocks(v) * TILE; }
static int64_t at_least_one(int64_t v) { return v < 1 ? 1 : v; }

/* ---- products ---------------------------------------------------------------------------------------------------- */

static void epilogue(void *ctx, const float *c, int64_t row0, int64_t rows, int64_t col0) {
    const Launch *l = ctx;
    amp_kernel_args args = l->args;
    args.acc = c;
    args.row0 = row0;
    args.rows = rows;
    args.col0 = col0;
    l->fn(&args);
}

static const amp_model_buffer *operand_buffer(const amp_program *p, const amp_model_kernel *k, int32_t operand) {
    return &p->buffers[k->operands[operand]];
}

/* What the epilogue reads and writes tile by tile, the operands of the product aside. */
static int32_t find_tiles(const amp_program *p, const Launch *l, amp_product_prefetch *to) {
    const amp_model_kernel *k = l->kernel;
    int32_t count = 0;
    for (uint32_t i = 0; i < k->operand_count && count < AMP_PRODUCT_PREFETCH_MAX; i++) {
        const amp_model_buffer *b = &p->buffers[k->operands[i]];
        const bool is_factor = (int32_t)i == k->product.a || (int32_t)i == k->product.b;
        if (is_factor || b->layout != AMP_LAYOUT_PANELS || b->kind == AMP_BUFFER_WATCH ||
            amp_model_dim_at(&b->rows, l->sizes) != l->rows || amp_model_dim_at(&b->cols, l->sizes) != l->cols)
            continue;
        const int64_t row = TILE * (int64_t)amp_storage_size(b->storage);
        to[count++] = (amp_product_prefetch){l->operands[i], round_up(l->rows) * row, TILE * row};
    }
    return count;
}

/* The layouts of docs/design/kernels.md in units of four bytes: a pair of bf16, or one f32. */
static void prepare_product(const amp_executor *e, Launch *l) {
    const amp_model_product *p = &l->kernel->product;
    bool pairs = p->operand == AMP_DT_BF16;
    int64_t k = amp_model_dim_at(&p->k, l->sizes), packed_k = round_up(k) / (pairs ? 2 : 1),
            block = pairs ? TILE / 2 : TILE;
    l->kernels = pairs ? e->product_bf16 : e->product_f32;
    l->product = (amp_product){
        .a = l->operands[p->a],
        .b = l->operands[p->b],
        .form = p->a_transposed ? AMP_PRODUCT_TRANSPOSED : AMP_PRODUCT_BLOCKED,
        .m = l->rows,
        .n = l->cols,
        .k = pairs ? (k + 1) / 2 : k,
        .a_block_stride = round_up(l->rows) * block,
        .a_tile_stride = p->a_transposed ? packed_k * TILE : TILE * block,
        .b_panel_stride = packed_k * TILE,
        .epilogue = epilogue,
        .ctx = l,
    };
    const amp_program *program = e->run->program;
    const amp_model_buffer *a = operand_buffer(program, l->kernel, p->a), *b = operand_buffer(program, l->kernel, p->b);
    if (a->layout == AMP_LAYOUT_ROWS) l->product.a_row = amp_model_dim_at(&a->cols, l->sizes);
    if (b->layout == AMP_LAYOUT_ROWS) l->product.b_row = amp_model_dim_at(&b->cols, l->sizes);
    l->product.steps = k;
    l->product.prefetch_count = find_tiles(e->run->program, l, l->product.prefetch);
}

/* ---- image products ---------------------------------------------------------------------------------------------- */

static bool is_conv(const amp_model_kernel *k) {
    return k->kind == AMP_KERNEL_PRODUCT && k->window.kind != AMP_WINDOW_NONE;
}

/* What the division into tasks and the sizes of scratch depend on. */
static amp_conv conv_shape(const amp_executor *e, const amp_program *p, const amp_model_kernel *k, amp_sizes sizes) {
    const amp_model_window *w = &k->window;
    int64_t pixels =
        w->kind == AMP_WINDOW_CONV_DATA ? (int64_t)w->oh * w->ow : (int64_t)w->h * w->w; /* of a sample of A */
    return (amp_conv){
        .kernels = k->product.operand == AMP_DT_BF16 ? e->product_bf16 : e->product_f32,
        .window = *w,
        .n = amp_model_dim_at(&operand_buffer(p, k, k->product.a)->rows, sizes) / pixels,
    };
}

static amp_image image_of(const amp_run *run, const amp_model_kernel *k, int32_t operand) {
    const amp_model_buffer *b = operand_buffer(run->program, k, operand);
    int64_t bytes = (int64_t)amp_storage_size(b->storage), rows = amp_model_dim_at(&b->rows, run->sizes),
            cols = amp_model_dim_at(&b->cols, run->sizes);
    amp_image image = {.data = run->buffers[k->operands[operand]], .pixel_stride = cols * bytes};
    if (b->layout != AMP_LAYOUT_PANELS) return image;
    image.pixel_stride = TILE * bytes;
    image.block_stride = round_up(rows) * TILE * bytes;
    return image;
}

static void prepare_conv(const amp_executor *e, Launch *l) {
    const amp_model_kernel *k = l->kernel;
    const amp_model_window *w = &k->window;
    int64_t channels = w->kind == AMP_WINDOW_CONV_DATA ? w->oc : w->c,
            units = k->product.operand == AMP_DT_BF16 ? 2 : 1;
    l->conv = conv_shape(e, e->run->program, k, l->sizes);
    l->conv.a = image_of(e->run, k, k->product.a);
    if (w->kind == AMP_WINDOW_CONV_WEIGHT) l->conv.dy = image_of(e->run, k, k->product.b);
    else l->conv.b = l->operands[k->product.b];
    l->conv.b_panel_stride = round_up((int64_t)w->kh * w->kw * channels) / units * TILE;
    l->conv.b_transposed = k->product.b_transposed != 0;
    if (l->conv.b_transposed) l->conv.b_panel_stride = round_up(channels) / units * TILE;
    if (w->groups > 1) l->conv.b_panel_stride = round_up((int64_t)w->kh * w->kw * (w->c / w->groups)) * TILE / units;
    l->conv.epilogue = epilogue;
    l->conv.ctx = l;
    l->conv.prefetch_count = find_tiles(e->run->program, l, l->conv.prefetch);
    l->conv.shared = (float *)e->shared;
    l->items = amp_conv_tasks(&l->conv);
    l->second_tasks = amp_conv_second_tasks(&l->conv);
}

/* ---- batches of products ----------------------------------------------------------------------------------------- */

static amp_batch_operand batch_operand(const amp_model_kernel *k, const amp_model_batch_operand *x, const void *data,
                                       bool transposed, amp_sizes sizes) {
    const int64_t size = (int64_t)amp_storage_size(k->product.operand);
    amp_batch_operand to = {.transposed = transposed, .pitch = amp_model_dim_at(&x->pitch, sizes) * size};
    if (data) to.data = (const char *)data + x->offset * size;
    for (uint32_t i = 0; i < k->batch->rank; i++) to.stride[i] = amp_model_dim_at(&x->strides[i], sizes) * size;
    return to;
}

/* Without memory: what the division into tasks and the sizes of scratch depend on. */
static amp_batch batch_of(const amp_executor *e, const amp_model_kernel *k, const void *a, const void *b,
                          amp_sizes sizes) {
    const amp_model_batch *x = k->batch;
    amp_batch batch = {
        .kernels = k->product.operand == AMP_DT_BF16 ? e->product_bf16 : e->product_f32,
        .rank = (int32_t)x->rank,
        .in_columns = (int)x->in_columns,
        .m = amp_model_dim_at(&x->m, sizes),
        .n = amp_model_dim_at(&x->n, sizes),
        .k = amp_model_dim_at(&k->product.k, sizes),
        .a = batch_operand(k, &x->a, a, k->product.a_transposed, sizes),
        .b = batch_operand(k, &x->b, b, k->product.b_transposed, sizes),
    };
    for (uint32_t i = 0; i < x->rank; i++) batch.dims[i] = amp_model_dim_at(&x->dims[i], sizes);
    return batch;
}

static void prepare_batch(const amp_executor *e, Launch *l) {
    const amp_model_product *p = &l->kernel->product;
    l->batch = batch_of(e, l->kernel, l->operands[p->a], l->operands[p->b], l->sizes);
    l->batch.epilogue = epilogue;
    l->batch.ctx = l;
    l->batch.prefetch_count = find_tiles(e->run->program, l, l->batch.prefetch);
    l->items = amp_batch_tasks(&l->batch);
}

/* ---- attention --------------------------------------------------------------------------------------------------- */

static void attention_step(void *ctx, const amp_attention_tile *tile) {
    const Launch *l = ctx;
    amp_kernel_args args = l->args;
    args.attention = tile;
    l->fn(&args);
}

static amp_attention_rows attention_rows(void *const *operands, uint32_t rank, const amp_model_attention_operand *x,
                                         int64_t size, amp_sizes sizes) {
    if (x->operand < 0) return (amp_attention_rows){0};
    amp_attention_rows to = {.pitch = amp_model_dim_at(&x->at.pitch, sizes) * size};
    if (operands && operands[x->operand]) to.data = (char *)operands[x->operand] + x->at.offset * size;
    for (uint32_t i = 0; i < rank; i++) to.stride[i] = amp_model_dim_at(&x->at.strides[i], sizes) * size;
    return to;
}

/* |operands| NULL: what the sizes of scratch depend on. */
static amp_attention attention_of(const amp_executor *e, const amp_program *p, const amp_model_kernel *k,
                                  void *const *operands, amp_sizes sizes) {
    const amp_model_attention *x = k->attention;
    const int64_t size = (int64_t)amp_storage_size(x->storage);
    amp_attention a = {
        .kernels = x->storage == AMP_DT_BF16 ? e->product_bf16 : e->product_f32,
        .backward = x->backward != 0,
        .causal = x->causal != 0,
        .mask_is_one = x->mask.one_step != 0,
        .rank = (int32_t)x->rank,
        .share = x->share,
        .queries = amp_model_dim_at(&x->queries, sizes),
        .keys = amp_model_dim_at(&x->keys, sizes),
        .width = x->width,
        .v_width = x->v_width,
        .q = attention_rows(operands, x->rank, &x->q, size, sizes),
        .k = attention_rows(operands, x->rank, &x->k, size, sizes),
        .v = attention_rows(operands, x->rank, &x->v, size, sizes),
        .mask = attention_rows(operands, x->rank, &x->mask, 4, sizes),
        .dy = attention_rows(operands, x->rank, &x->dy, size, sizes),
        .sums = attention_rows(operands, x->rank, &x->sums, 4, sizes),
    };
    for (uint32_t i = 0; i < x->rank; i++) a.dims[i] = amp_model_dim_at(&x->dims[i], sizes);
    for (int i = 0; i < 3; i++) a.result[i] = attention_rows(operands, x->rank, &x->result[i], 4, sizes);
    if (!operands && x->mask.operand >= 0) a.mask.data = (char *)e; /* there is one */
    if (!operands || x->y < 0) return a;
    const amp_model_buffer *y = operand_buffer(p, k, x->y);
    a.y.data = operands[x->y];
    a.y.in_panels = y->layout == AMP_LAYOUT_PANELS;
    a.y.rows = amp_model_dim_at(&y->rows, sizes);
    a.y.cols = amp_model_dim_at(&y->cols, sizes);
    a.y.element = (int64_t)amp_storage_size(y->storage);
    return a;
}

static void prepare_attention(const amp_executor *e, Launch *l) {
    l->attention = attention_of(e, e->run->program, l->kernel, l->operands, l->sizes);
    l->attention.step = attention_step;
    l->attention.ctx = l;
    l->items = amp_attention_tasks(&l->attention);
    l->second_tasks = amp_attention_second_tasks(&l->attention);
}

static size_t larger(size_t x, size_t y) { return x > y ? x : y; }

amp_executor_needs amp_executor_needs_of(const amp_executor *e, const amp_program *program, amp_sizes sizes) {
    amp_executor_needs needs = {amp_product_scratch_bytes(e->product_f32), 0};
    for (int32_t i = 0; i < program->kernel_count; i++) {
        const amp_model_kernel *k = &program->kernels[i];
        if (k->product.operand == AMP_DT_BF16)
            needs.per_thread = larger(needs.per_thread, amp_product_scratch_bytes(e->product_bf16));
        if (k->kind == AMP_KERNEL_PRODUCT && k->batch) {
            const amp_batch batch = batch_of(e, k, NULL, NULL, sizes);
            needs.per_thread = larger(needs.per_thread, amp_batch_thread_bytes(&batch));
        }
        if (k->kind == AMP_KERNEL_ATTENTION) {
            const amp_attention attention = attention_of(e, program, k, NULL, sizes);
            needs.per_thread = larger(needs.per_thread, amp_attention_thread_bytes(&attention));
        }
        if (!is_conv(k)) continue;
        const amp_conv conv = conv_shape(e, program, k, sizes);
        needs.per_thread = larger(needs.per_thread, amp_conv_thread_bytes(&conv));
        needs.shared = larger(needs.shared, amp_conv_shared_bytes(&conv));
    }
    return needs;
}

/* ---- one kernel -------------------------------------------------------------------------------------------------- */

/* What the kernel updates, if this rank has a share of it alone: of all such operands the same one. */
static const amp_share *share_of(const amp_executor *e, const Launch *l, uint32_t *layout) {
    const amp_run *run = e->run;
    const amp_model_kernel *k = l->kernel;
    for (uint32_t i = 0; run->shares && i < k->operand_count; i++) {
        const amp_model_buffer *b = operand_buffer(run->program, k, (int32_t)i);
        *layout = b->layout;
        if (b->kind == AMP_BUFFER_STATE && run->shares[b->index].end >= 0) return &run->shares[b->index];
    }
    return NULL;
}

static void divide_share(const amp_executor *e, Launch *l) {
    uint32_t layout;
    const amp_share *share = share_of(e, l, &layout);
    if (!share) return;
    l->runs = layout == AMP_LAYOUT_ROWS;
    const int64_t item = l->runs ? TILE : TILE * TILE;
    l->first = l->runs ? share->first : share->first / item;
    l->items = (share->end - share->first + item - 1) / item;
    l->grain = GRAIN / item;
}

enum { PRODUCT, ATTENTION, TILES, ROWS, COLUMNS, ONCE };
static const int walks[] = {
#define KERNEL(id, word, of, walk, ...) [AMP_KERNEL_##id] = walk,
#include "base/kernels.def"
#undef KERNEL
};

static void divide(const amp_executor *e, Launch *l) {
    int64_t height = l->rows < TILE ? at_least_one(l->rows) : TILE;
    l->row_blocks = blocks(l->rows);
    l->grain = 1;
    l->second_tasks = 0;
    l->first = 0;
    l->is_conv = l->is_batch = l->runs = false;
    switch (walks[l->kernel->kind]) {
    case PRODUCT:
        l->is_conv = is_conv(l->kernel);
        l->is_batch = !l->is_conv && l->kernel->batch;
        if (l->is_conv) prepare_conv(e, l);
        else if (l->is_batch) prepare_batch(e, l);
        else {
            prepare_product(e, l);
            l->items = amp_product_tasks(&l->product);
        }
        break;
    case ATTENTION: prepare_attention(e, l); break;
    case TILES:
        l->items = l->row_blocks * blocks(l->cols);
        l->grain = at_least_one(GRAIN / (height * TILE));
        divide_share(e, l);
        break;
    case ROWS:
        l->items = l->row_blocks;
        l->grain = at_least_one(GRAIN / 4 / (height * at_least_one(l->cols)));
        break;
    case COLUMNS:
        l->segment = l->kernel->segment.mul ? amp_model_dim_at(&l->kernel->segment, l->sizes) : l->rows;
        l->segments = l->kernel->segment.mul ? l->rows / l->segment : 1;
        l->items = blocks(l->cols) * l->segments;
        l->grain = at_least_one(GRAIN / (at_least_one(l->segment) * TILE));
        break;
    default: l->items = 1; break;
    }
    l->tasks = (l->items + l->grain - 1) / l->grain;
}

static void prepare(const amp_executor *e, Launch *l, const amp_model_kernel *k) {
    const amp_run *run = e->run;
    for (uint32_t i = 0; i < k->operand_count; i++) l->operands[i] = run->buffers[k->operands[i]];
    l->kernel = k;
    l->fn = amp_kernel_function(k, e->isa);
    l->sizes = run->sizes;
    l->args = (amp_kernel_args){.buffer = l->operands, .n = run->sizes.n, .t = run->sizes.t};
    l->rows = amp_model_dim_at(&k->rows, run->sizes);
    l->cols = amp_model_dim_at(&k->cols, run->sizes);
    divide(e, l);
}

static void run_item(const Launch *l, int64_t item) {
    amp_kernel_args args = l->args;
    args.rows = l->rows;
    switch (walks[l->kernel->kind]) {
    case TILES: /* down a panel first: that is how it is in memory */
        if (l->runs) {
            args.row0 = (l->first + item * TILE) / l->cols;
            args.col0 = (l->first + item * TILE) % l->cols;
            args.rows = 1;
            break;
        }
        item += l->first;
        args.row0 = item % l->row_blocks * TILE;
        args.col0 = item / l->row_blocks * TILE;
        args.rows = l->rows - args.row0 < TILE ? l->rows - args.row0 : TILE;
        break;
    case ROWS:
        args.row0 = item * TILE;
        args.rows = l->rows - args.row0 < TILE ? l->rows - args.row0 : TILE;
        break;
    case COLUMNS: /* one segment after the other, as they are in a panel */
        args.row0 = item % l->segments * l->segment;
        args.rows = l->segment;
        args.col0 = item / l->segments * TILE;
        break;
    default: break;
    }
    l->fn(&args);
}

static void run_items(const Launch *l, int64_t task) {
    const int64_t end = (task + 1) * l->grain < l->items ? (task + 1) * l->grain : l->items;
    for (int64_t i = task * l->grain; i < end; i++) run_item(l, i);
}

/* A model's functions, epilogues of products too, leave the upper halves of vector registers in use: compilers clear
 * them from -O2 on.  Meanwhile SSE code is slow, in the application, too. */
#ifdef __x86_64__
__attribute__((target("avx"))) static void zero_upper_halves(void) { __builtin_ia32_vzeroupper(); }
#else
static void zero_upper_halves(void) {}
#endif

static void clear_upper_halves(const Launch *l) {
    if (l->executor->isa != AMP_ISA_PORTABLE) zero_upper_halves();
}

static void run_task(void *launch, int64_t task, int32_t thread) {
    const Launch *l = launch;
    char *scratch = l->executor->scratch + l->executor->scratch_stride * (size_t)thread;
    if (l->is_conv) amp_conv_task(&l->conv, task, scratch);
    else if (l->is_batch) amp_batch_task(&l->batch, task, scratch);
    else if (l->kernel->kind == AMP_KERNEL_ATTENTION) amp_attention_task(&l->attention, task, scratch);
    else if (l->kernel->kind == AMP_KERNEL_PRODUCT) amp_product_task(l->kernels, &l->product, task, (float *)scratch);
    else run_items(l, task);
    clear_upper_halves(l);
}

static void run_second_task(void *launch, int64_t task, int32_t thread) {
    const Launch *l = launch;
    char *scratch = l->executor->scratch + l->executor->scratch_stride * (size_t)thread;
    if (l->is_conv) amp_conv_second_task(&l->conv, task, scratch);
    else amp_attention_second_task(&l->attention, task, scratch);
    clear_upper_halves(l);
}

/* ---- a program --------------------------------------------------------------------------------------------------- */

static bool predicate_holds(const amp_run *run, const amp_model_kernel *k) {
    return k->predicate < 0 || *(const int32_t *)run->buffers[k->predicate] != 0;
}

static void run_kernel(amp_executor *e, const amp_model_kernel *k) {
    Launch *l = e->launch;
    if (!predicate_holds(e->run, k)) return;
    prepare(e, l, k);
    amp_pool_run(e->pool, run_task, l, l->tasks);
    if (l->second_tasks) amp_pool_run(e->pool, run_second_task, l, l->second_tasks);
}

static amp_status sum_ranks(const amp_run *run, const amp_model_kernel *k, amp_error *err) {
    if (k->kind != AMP_KERNEL_COLLECTIVE || !run->hooks.sum) return AMP_OK;
    return run->hooks.sum(run->hooks.user, k->title, run->buffers[k->operands[1]], (size_t)k->cols.mul, err);
}

static void clear_flags(const amp_run *run) {
    for (int32_t i = 0; i < run->program->buffer_count; i++)
        if (run->program->buffers[i].kind == AMP_BUFFER_FLAG) memset(run->buffers[i], 0, sizeof(int32_t));
}

static amp_status walk(amp_executor *e, const amp_run *run, amp_error *err) {
    e->run = run;
    clear_flags(run);
    for (int32_t i = 0; i < run->program->kernel_count; i++) {
        if (!amp_run_needs(run, i)) continue;
        run_kernel(e, &run->program->kernels[i]);
        AMP_TRY(sum_ranks(run, &run->program->kernels[i], err));
        if (run->hooks.after) AMP_TRY(run->hooks.after(run->hooks.user, i, err));
        if (run->after_kernel) AMP_TRY(run->after_kernel(run->watcher, i, err));
    }
    return AMP_OK;
}

/* ---- on how many threads ----------------------------------------------------------------------------------------- */

/* Of this program, size and kernels; what was asked for longest ago makes room. */
static amp_governor *find_governor(amp_executor *e, const amp_run *run) {
    const amp_sizes sizes = amp_governor_sizes(run->sizes);
    for (int i = 0; i < AMP_GOVERNORS; i++)
        if (e->governors[i].program == run->program && amp_sizes_are_equal(e->governors[i].sizes, sizes) &&
            e->governors[i].selection == run->selection)
            return &e->governors[i];
    amp_governor *g = &e->governors[e->next_governor];
    e->next_governor = (e->next_governor + 1) % AMP_GOVERNORS;
    *g = amp_governor_make(run->program, sizes);
    g->selection = run->selection;
    return g;
}

static amp_status run_on(amp_executor *e, const amp_run *run, int32_t threads, amp_error *err) {
    AMP_TRY(amp_pool_begin(e->pool, threads, err));
    e->runs = true;
    amp_status status = walk(e, run, err);
    e->runs = false;
    amp_pool_end(e->pool);
    return status;
}

static void say_threads(const amp_executor *e, const amp_governor *g, const amp_run *run) {
    int32_t threads = amp_pool_threads(e->pool);
    amp_log_say(e->log, AMP_LOG_INFO,
                "using %d thread%s for %s at %lld samples: faster (%.3f ms a call with 1 thread, %.3f ms with %d)",
                g->prefers_one ? 1 : threads, g->prefers_one ? "" : "s", run->program->name, (long long)run->sizes.n,
                (double)g->one.mean / 1e6, (double)g->all.mean / 1e6, threads);
}

amp_status amp_execute(amp_executor *e, const amp_run *run, amp_error *err) {
    int32_t threads = amp_pool_threads(e->pool);
    if (threads == 1 || amp_pool_is_outside(e->pool) || run->after_kernel) return run_on(e, run, threads, err);
    amp_governor *g = find_governor(e, run);
    bool let_sleep = amp_pool_is_asleep(e->pool) && !amp_governor_is_worth_waking(g);
    bool alone = let_sleep || amp_governor_runs_alone(g);
    int64_t start = amp_nanoseconds();
    AMP_TRY(run_on(e, run, alone ? 1 : threads, err));
    bool preferred_one = g->prefers_one;
    const int64_t ns = amp_governor_time(run->sizes, amp_nanoseconds() - start);
    if (let_sleep) amp_governor_record_let_sleep(g, ns);
    else amp_governor_record(g, alone, ns, threads);
    if (g->prefers_one != preferred_one) say_threads(e, g, run);
    return AMP_OK;
}

/* ---- making ------------------------------------------------------------------------------------------------------ */

amp_status amp_executor_make(amp_executor *e, int32_t threads, const amp_outside_threads *outside,
                             const amp_allocator *allocator, amp_error *err) {
    AMP_TRY(amp_pool_create_outside(threads, outside, allocator, &e->pool, err));
    e->launch = amp_alloc_zeroed(allocator, sizeof *e->launch);
    if (!e->launch) return amp_fail(err, AMP_OUT_OF_MEMORY, "no memory to run kernels");
    e->launch->executor = e;
    return AMP_OK;
}

size_t amp_executor_bytes(const amp_executor *e) { return amp_pool_bytes(e->pool) + sizeof *e->launch; }

void amp_executor_free(amp_executor *e, const amp_allocator *allocator) {
    amp_pool_destroy(e->pool);
    amp_free(allocator, e->launch, sizeof *e->launch);
}
