/* executor.c: see executor.h.
 *
 * Every thread walks the same list.  A kernel of several tasks is shared out by a counter; kernels of one task are run
 * by thread 0, any number of them in a row without a barrier between.
 */
#include "runtime/device/cpu/executor.h"

#include <stdbool.h>
#include <string.h>

#include "runtime/layout.h"

enum {
    TILE = 32,
    MAX_OPERANDS = 4096,    /* checked when the model is loaded */
    GRAIN = 8 * TILE * TILE /* elements of an elementwise task: a few microseconds */
};

/* A kernel about to run. */
typedef struct Launch {
    const amp_model_kernel *kernel;
    amp_kernel_fn fn;
    amp_kernel_args args;
    int64_t rows, cols;
    int64_t row_blocks, items, grain,
        tasks; /* items: what the model's function is called for; a task is |grain| of them */
    amp_product product;
    const amp_product_kernels *kernels;
    void *operands[MAX_OPERANDS];
} Launch;

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

/* The layouts of docs/design/kernels.md in units of four bytes: a pair of bf16, or one f32. */
static void prepare_product(const amp_executor *e, Launch *l) {
    const amp_model_product *p = &l->kernel->product;
    bool pairs = p->operand == AMP_DT_BF16;
    int64_t k = amp_model_dim_at(&p->k, l->args.n), packed_k = round_up(k) / (pairs ? 2 : 1),
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
    for (uint32_t i = 0; i < l->kernel->update_count && l->product.prefetch_count < AMP_PRODUCT_PREFETCH_MAX; i++) {
        amp_product_prefetch *f = &l->product.prefetch[l->product.prefetch_count++];
        *f = (amp_product_prefetch){l->operands[l->kernel->updates[i]], round_up(l->rows) * TILE * 4, TILE * TILE * 4};
    }
}

/* ---- one kernel -------------------------------------------------------------------------------------------------- */

static void divide(const amp_executor *e, Launch *l) {
    int64_t height = l->rows < TILE ? at_least_one(l->rows) : TILE;
    l->row_blocks = blocks(l->rows);
    l->grain = 1;
    switch (l->kernel->kind) {
    case AMP_KERNEL_PRODUCT:
        prepare_product(e, l);
        l->items = amp_product_tasks(&l->product);
        break;
    case AMP_KERNEL_TILE:
        l->items = l->row_blocks * blocks(l->cols);
        l->grain = at_least_one(GRAIN / (height * TILE));
        break;
    case AMP_KERNEL_ROW:
        l->items = l->row_blocks;
        l->grain = at_least_one(GRAIN / 4 / (height * at_least_one(l->cols)));
        break;
    case AMP_KERNEL_COLUMN:
        l->items = blocks(l->cols);
        l->grain = at_least_one(GRAIN / (at_least_one(l->rows) * TILE));
        break;
    default: l->items = 1; break;
    }
    l->tasks = (l->items + l->grain - 1) / l->grain;
}

static void prepare(const amp_executor *e, Launch *l, const amp_model_kernel *k) {
    const amp_run *run = e->run;
    for (uint32_t i = 0; i < k->operand_count; i++) l->operands[i] = run->buffers[k->operands[i]];
    l->kernel = k;
    l->fn = k->run[e->isa];
    l->args = (amp_kernel_args){.buffer = l->operands, .n = run->n};
    l->rows = amp_model_dim_at(&k->rows, run->n);
    l->cols = amp_model_dim_at(&k->cols, run->n);
    divide(e, l);
}

static void run_item(const Launch *l, int64_t item) {
    amp_kernel_args args = l->args;
    args.rows = l->rows;
    switch (l->kernel->kind) {
    case AMP_KERNEL_TILE: /* down a panel first: that is how it lies in memory */
        args.row0 = item % l->row_blocks * TILE;
        args.col0 = item / l->row_blocks * TILE;
        args.rows = l->rows - args.row0 < TILE ? l->rows - args.row0 : TILE;
        break;
    case AMP_KERNEL_ROW:
        args.row0 = item * TILE;
        args.rows = l->rows - args.row0 < TILE ? l->rows - args.row0 : TILE;
        break;
    case AMP_KERNEL_COLUMN: args.col0 = item * TILE; break;
    default: break;
    }
    l->fn(&args);
}

static void run_task(const amp_executor *e, const Launch *l, int64_t task, int32_t thread) {
    if (l->kernel->kind == AMP_KERNEL_PRODUCT) {
        amp_product_task(l->kernels, &l->product, task, (float *)(e->scratch + e->scratch_stride * (size_t)thread));
        return;
    }
    int64_t end = (task + 1) * l->grain < l->items ? (task + 1) * l->grain : l->items;
    for (int64_t i = task * l->grain; i < end; i++) run_item(l, i);
}

/* ---- a program --------------------------------------------------------------------------------------------------- */

static bool predicate_holds(const amp_run *run, const amp_model_kernel *k) {
    return k->predicate < 0 || *(const int32_t *)run->buffers[k->predicate] != 0;
}

static void wait_for_serial(amp_executor *e, bool *serial) {
    if (*serial) amp_pool_barrier(e->pool);
    *serial = false;
}

/* Run by all threads.  Only thread 0 looks at the predicates of kernels that it runs alone: the others may be far
 * behind, when the predicate's memory already holds something else.  Where all look, nobody leaves before everybody
 * has. */
static void walk(void *ctx, int32_t thread) {
    amp_executor *e = ctx;
    const amp_program *p = e->run->program;
    Launch l;
    bool serial = false; /* thread 0 may have run something since the last barrier */
    for (int32_t i = 0; i < p->kernel_count; i++) {
        const amp_model_kernel *k = &p->kernels[i];
        prepare(e, &l, k);
        if (l.tasks <= 1) {
            if (thread == 0 && l.tasks == 1 && predicate_holds(e->run, k)) run_task(e, &l, 0, 0);
            serial = true;
            continue;
        }
        wait_for_serial(e, &serial);
        if (predicate_holds(e->run, k))
            for (int64_t t; (t = atomic_fetch_add_explicit(&e->next_task[i], 1, memory_order_relaxed)) < l.tasks;)
                run_task(e, &l, t, thread);
        amp_pool_barrier(e->pool);
    }
}

static void clear_flags(const amp_run *run) {
    for (int32_t i = 0; i < run->program->buffer_count; i++)
        if (run->program->buffers[i].kind == AMP_BUFFER_FLAG) memset(run->buffers[i], 0, sizeof(int32_t));
}

void amp_execute(amp_executor *e, const amp_run *run) {
    e->run = run;
    clear_flags(run);
    for (int32_t i = 0; i < run->program->kernel_count; i++)
        atomic_store_explicit(&e->next_task[i], 0, memory_order_relaxed);
    amp_pool_run(e->pool, walk, e);
}
