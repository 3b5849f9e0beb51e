/* launch.c: see launch.h. */
#include "runtime/device/cuda/launch.h"

#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "runtime/device/cuda/context.h"
#include "runtime/device/cuda/library_products.h"
#include "runtime/model/cuda_launch.h"
#include "runtime/model/matrix_layout.h"

enum {
    MAX_PARAMETERS = 320 /* what model_cuda.c lets pass: operands, n, sizes, a batch, tickets or parts */
};

CuPointer amp_cuda_address_of(const amp_cuda_launching *l, const amp_run *run, uint32_t buffer) {
    const amp_model_buffer *b = &run->program->buffers[buffer];
    if (l->addresses) return l->addresses[buffer];
    if (b->kind == AMP_BUFFER_INPUT)
        return amp_cuda_upload_address(l->upload, run->program, (int32_t)buffer, run->sizes);
    return amp_cuda_pointer(run->buffers[buffer]) + (b->part ? b->part - 1 : 0) * amp_storage_size(b->storage);
}

/* ---- shares ------------------------------------------------------------------------------------------------------ */

/* The elements of |member| of a kernel that can run for a share: the rank's share, or all; of other kernels all. */
static amp_share elements_of(const amp_run *run, const amp_model_cuda_kernel *k, uint32_t member) {
    const uint32_t each = k->elements.count ? k->operands.count / k->elements.count : k->operands.count;
    const amp_model_dim *all = k->elements.count ? &k->elements.at[member] : &k->sizes.at[0];
    for (uint32_t i = member * each; run->shares && k->shares && i < (member + 1) * each; i++) {
        const amp_model_buffer *b = &run->program->buffers[k->operands.at[i]];
        if (b->kind == AMP_BUFFER_STATE && run->shares[b->index].end >= 0) return run->shares[b->index];
    }
    return (amp_share){0, amp_model_dim_at(all, run->sizes)};
}

/* Along the first axis. */
static int64_t blocks_of_shares(const amp_run *run, const amp_model_cuda_kernel *k, int64_t per) {
    int64_t blocks = 0;
    for (uint32_t i = 0; i < (k->elements.count ? k->elements.count : 1); i++) {
        const amp_share s = elements_of(run, k, i);
        blocks += (s.end - s.first + per - 1) / per;
    }
    return blocks ? blocks : 1;
}

/* ---- tables ------------------------------------------------------------------------------------------------------ */

static size_t aligned(size_t bytes) { return (bytes + AMP_ALIGN - 1) / AMP_ALIGN * AMP_ALIGN; }

static size_t operand_table_bytes(const amp_model_cuda_kernel *k) {
    return k->operand_table ? aligned(k->operands.count * sizeof(CuPointer)) : 0;
}

/* How many elements each member has and, where they can be a share, the first of them. */
static size_t batch_table_bytes(const amp_model_cuda_kernel *k) {
    return aligned((k->shares ? 2 : 1) * k->elements.count * sizeof(int64_t));
}

static size_t table_bytes(const amp_model_cuda_kernel *k) {
    return operand_table_bytes(k) + batch_table_bytes(k) + aligned(k->waits.tickets * sizeof(uint32_t));
}

/* Of the tables of a launch, and of the one that follows calls in its place. */
static size_t all_table_bytes(const amp_model_cuda_kernel *k) {
    return table_bytes(k) + (k->then ? table_bytes(k->then) : 0);
}

static int64_t grid_blocks(const int64_t grid[3]) { return grid[0] * grid[1] * grid[2]; }

/* What is launched on the device: the last choice in place of one for newer devices. */
static amp_cuda_used choose(const amp_cuda_launching *l, const amp_run *run, const amp_model_cuda_kernel *k) {
    const amp_cuda_device_info *device = &l->context->info;
    amp_cuda_used used = amp_cuda_launch_choose(k, run->sizes, device->multiprocessors, device->max_shared_optin_bytes);
    if (!amp_cuda_function_suits(&l->functions->model->functions[used.choice->function], device->arch))
        used = amp_cuda_launch_choose(k, run->sizes, INT32_MAX, 0);
    return used;
}

amp_status amp_cuda_need(const amp_cuda_launching *l, const amp_run *run, bool measured, amp_error *err) {
    amp_cuda_functions *f = l->functions;
    memset(f->wanted, 0, (size_t)f->model->function_count * sizeof *f->wanted);
    for (int32_t i = 0; i < run->program->kernel_count; i++) {
        const amp_model_cuda_kernel *k = &run->program->cuda_kernels[i];
        if (!amp_run_needs(run, i)) continue;
        f->wanted[choose(l, run, k).choice->function] = true;
        if (k->then && (amp_cuda_products_find(l, run, i) || (measured && amp_cuda_products_may_take(l, run, i))))
            f->wanted[choose(l, run, k->then).choice->function] = true;
    }
    return amp_cuda_functions_load(f, err);
}

/* Of a kernel whose blocks keep something for one another. */
static size_t blocks_of(const amp_cuda_launching *l, const amp_run *run, const amp_model_cuda_kernel *k) {
    return k->waits.partial_bytes ? (size_t)grid_blocks(choose(l, run, k).grid) : 0;
}

static void fill_table(const amp_cuda_launching *l, const amp_run *run, const amp_model_cuda_kernel *k, char *at) {
    CuPointer *operands = (CuPointer *)(void *)at;
    int64_t *elements = (int64_t *)(void *)(at + operand_table_bytes(k));
    for (uint32_t o = 0; k->operand_table && o < k->operands.count; o++)
        operands[o] = amp_cuda_address_of(l, run, k->operands.at[o]);
    for (uint32_t b = 0; b < k->elements.count; b++) {
        const amp_share s = elements_of(run, k, b);
        elements[b] = s.end - s.first;
        if (k->shares) elements[k->elements.count + b] = s.first;
    }
}

/* Tickets stay zero. */
static void fill_tables(const amp_cuda_launching *l, const amp_run *run, char *at) {
    for (int32_t i = 0; i < run->program->kernel_count; at += all_table_bytes(&run->program->cuda_kernels[i++])) {
        const amp_model_cuda_kernel *k = &run->program->cuda_kernels[i];
        fill_table(l, run, k, at);
        if (k->then) fill_table(l, run, k->then, at + table_bytes(k));
    }
}

/* Parts of the memory, one after the other. */
typedef struct Sizes {
    size_t tables, tickets, partials;
} Sizes;

static Sizes measure(const amp_cuda_launching *l, const amp_run *run) {
    Sizes s = {0};
    for (int32_t i = 0; i < run->program->kernel_count; i++) {
        const amp_model_cuda_kernel *k = &run->program->cuda_kernels[i];
        const size_t blocks = blocks_of(l, run, k), tickets = aligned(blocks * sizeof(uint32_t));
        s.tables += all_table_bytes(k);
        if (tickets > s.tickets) s.tickets = tickets;
        if (blocks * k->waits.partial_bytes > s.partials) s.partials = blocks * k->waits.partial_bytes;
    }
    return s;
}

static amp_status upload(amp_cuda_tables *t, const amp_cuda_launching *l, const amp_run *run, amp_error *err) {
    if (!t->host_bytes) return AMP_OK;
    t->host = amp_alloc_zeroed(t->allocator, t->host_bytes);
    if (!t->host) return amp_fail(err, AMP_OUT_OF_MEMORY, "%s: no memory for its tables", run->program->name);
    fill_tables(l, run, t->host);
    return AMP_CUDA(l->context, err, copy_in, (t->memory, t->host, t->host_bytes, t->stream));
}

static amp_status fill(amp_cuda_tables *t, const amp_cuda_launching *l, const amp_run *run, size_t ticket_bytes,
                       amp_error *err) {
    AMP_TRY(AMP_CUDA(l->context, err, mem_alloc, (&t->memory, t->bytes)));
    AMP_TRY(upload(t, l, run, err));
    if (!ticket_bytes) return AMP_OK;
    t->tickets = t->memory + t->host_bytes;
    t->partials = t->tickets + ticket_bytes;
    return AMP_CUDA(l->context, err, fill32, (t->tickets, 0, ticket_bytes / sizeof(uint32_t), t->stream));
}

amp_status amp_cuda_tables_make(amp_cuda_tables *t, const amp_cuda_launching *l, const amp_run *run, CuStream stream,
                                const amp_allocator *allocator, amp_error *err) {
    const Sizes s = measure(l, run);
    *t = (amp_cuda_tables){
        .bytes = s.tables + s.tickets + s.partials, .host_bytes = s.tables, .stream = stream, .allocator = allocator};
    if (!t->bytes) return AMP_OK;
    amp_status status = fill(t, l, run, s.tickets, err);
    if (status) amp_cuda_tables_free(t, l->context);
    return status;
}

void amp_cuda_tables_free(amp_cuda_tables *t, amp_cuda_context *context) {
    if (t->host) AMP_CUDA_FREE(context, stream_sync, (t->stream));
    if (t->memory) AMP_CUDA_FREE(context, mem_free, (t->memory));
    amp_free(t->allocator, t->host, t->host_bytes);
    *t = (amp_cuda_tables){0};
}

/* ---- launches ---------------------------------------------------------------------------------------------------- */

typedef struct Parameters {
    uint64_t values[MAX_PARAMETERS];
    void *pointers[MAX_PARAMETERS];
    uint32_t count;
} Parameters;

static void add(Parameters *p, uint64_t value) {
    p->values[p->count] = value;
    p->pointers[p->count] = &p->values[p->count];
    p->count++;
}

static void add_sizes(Parameters *p, const amp_run *run, const amp_model_cuda_kernel *k) {
    uint32_t i = 0;
    if (k->shares && !k->elements.count) {
        const amp_share s = elements_of(run, k, 0);
        add(p, (uint64_t)s.end);
        add(p, (uint64_t)s.first);
        i = 2;
    }
    for (; i < k->sizes.count; i++) add(p, (uint64_t)amp_model_dim_at(&k->sizes.at[i], run->sizes));
}

static void fill_parameters(Parameters *p, const amp_cuda_launching *l, const amp_run *run,
                            const amp_model_cuda_kernel *k, uint32_t choice, const amp_cuda_tables *at) {
    const CuPointer tables = at->memory;
    p->count = 0;
    if (k->operand_table) add(p, tables);
    for (uint32_t i = 0; !k->operand_table && i < k->operands.count; i++)
        add(p, amp_cuda_address_of(l, run, k->operands.at[i]));
    add(p, (uint64_t)run->sizes.n);
    add_sizes(p, run, k);
    if (k->elements.count) add(p, tables + operand_table_bytes(k));
    if (k->waits.tickets) add(p, tables + operand_table_bytes(k) + batch_table_bytes(k));
    if (k->waits.partial_bytes) {
        add(p, at->tickets);
        add(p, at->partials);
    }
    for (uint32_t i = 0; amp_cuda_places_parts(k) && i < k->parts.count; i++) {
        const amp_cuda_part_place place = amp_cuda_place_part(k, choice, i, run->sizes);
        add(p, (uint64_t)place.first);
        add(p, (uint64_t)place.x);
        add(p, (uint64_t)place.y);
    }
}

/* CUDA's limits of a grid. */
static const int64_t grid_limits[3] = {INT32_MAX, 65535, 65535};

static amp_status check_grid(const amp_run *run, const amp_model_cuda_kernel *k, const int64_t grid[3],
                             amp_error *err) {
    for (int axis = 0; axis < 3; axis++)
        if (grid[axis] > grid_limits[axis])
            return amp_fail(err, AMP_UNSUPPORTED, "%s: kernel %s takes %lld blocks at n = %lld; CUDA has %lld at most",
                            run->program->name, k->name, (long long)grid[axis], (long long)run->sizes.n,
                            (long long)grid_limits[axis]);
    return AMP_OK;
}

/* Programmatic dependent launch: graphs have had edges that are no full dependence since CUDA 12.3. */
enum { OVERLAP_DRIVER = 12030 };

static amp_status launch_overlapping(const amp_cuda_launching *l, const amp_cuda_used *used, Parameters *p,
                                     CuStream stream, amp_error *err) {
    CuLaunchAttribute allowed = {.id = CU_LAUNCH_PROGRAMMATIC_SERIALIZATION, .value = {.flag = 1}};
    CuLaunchConfig config = {
        .shared_bytes = used->choice->shared_bytes, .stream = stream, .attributes = &allowed, .attribute_count = 1};
    for (int axis = 0; axis < 3; axis++) {
        config.grid[axis] = (unsigned)used->grid[axis];
        config.block[axis] = used->choice->block[axis];
    }
    return AMP_CUDA(l->context, err, launch_ex,
                    (&config, l->functions->loaded[used->choice->function].function, p->pointers, NULL));
}

/* |at|: its tables. */
static amp_status launch_function(const amp_cuda_launching *l, const amp_run *run, const amp_model_cuda_kernel *k,
                                  const amp_cuda_tables *at, bool overlaps, CuStream stream, amp_error *err) {
    amp_cuda_used used = choose(l, run, k);
    const uint32_t *block = used.choice->block;
    const int64_t *grid = used.grid;
    Parameters p;
    if (k->shares) used.grid[0] = blocks_of_shares(run, k, k->parts.at->grids->per[0]);
    AMP_TRY(check_grid(run, k, grid, err));
    fill_parameters(&p, l, run, k, used.index, at);
    if (overlaps && l->functions->loaded[used.choice->function].waits && l->context->driver.version >= OVERLAP_DRIVER)
        return launch_overlapping(l, &used, &p, stream, err);
    return AMP_CUDA(l->context, err, launch,
                    (l->functions->loaded[used.choice->function].function, (unsigned)grid[0], (unsigned)grid[1],
                     (unsigned)grid[2], block[0], block[1], block[2], used.choice->shared_bytes, stream, p.pointers,
                     NULL));
}

amp_status amp_cuda_launch(const amp_cuda_launching *l, const amp_run *run, int32_t kernel, amp_cuda_tables *tables,
                           bool overlaps, CuStream stream, amp_error *err) {
    const amp_model_cuda_kernel *k = &run->program->cuda_kernels[kernel];
    amp_cuda_choice *choice = amp_cuda_products_find(l, run, kernel);
    amp_cuda_tables at = *tables;
    bool done = false;
    tables->memory += all_table_bytes(k);
    if (choice) AMP_TRY(amp_cuda_products_enqueue(l, run, kernel, choice, stream, &done, err));
    if (!done) return launch_function(l, run, k, &at, overlaps && !choice, stream, err);
    at.memory += table_bytes(k);
    return k->then ? launch_function(l, run, k->then, &at, false, stream, err) : AMP_OK;
}

/* ---- the end of temporaries -------------------------------------------------------------------------------------- */

/* In rows; without the padding of the allocation. */
static size_t bytes_of(const amp_run *run, int32_t buffer) {
    const amp_model_buffer *b = &run->program->buffers[buffer];
    return (size_t)(amp_model_dim_at(&b->rows, run->sizes) * amp_model_dim_at(&b->cols, run->sizes)) *
           amp_storage_size(b->storage);
}

static bool is_temporary(const amp_run *run, int32_t buffer) {
    return run->program->buffers[buffer].kind == AMP_BUFFER_TEMP;
}

amp_status amp_cuda_poison_make(amp_cuda_poison *u, amp_cuda_context *context, const amp_run *run, amp_error *err) {
    size_t most = 0;
    *u = (amp_cuda_poison){0};
    for (int32_t i = 0; run->poisons_temporaries && i < run->program->buffer_count; i++)
        if (is_temporary(run, i) && bytes_of(run, i) > most) most = bytes_of(run, i);
    if (most) AMP_TRY(AMP_CUDA(context, err, mem_alloc, (&u->memory, most)));
    u->bytes = most;
    return AMP_OK;
}

void amp_cuda_poison_free(amp_cuda_poison *u, amp_cuda_context *context) {
    if (u->memory) AMP_CUDA_FREE(context, mem_free, (u->memory));
    *u = (amp_cuda_poison){0};
}

amp_status amp_cuda_poison_temporaries(const amp_cuda_poison *u, amp_cuda_context *context, const amp_run *run,
                                       int32_t kernel, CuStream stream, amp_error *err) {
    for (int32_t i = 0; u->memory && i < run->program->buffer_count; i++) {
        if (!is_temporary(run, i) || run->program->buffers[i].last_kernel != kernel || !bytes_of(run, i)) continue;
        AMP_TRY(AMP_CUDA(context, err, copy, (amp_cuda_pointer(run->buffers[i]), u->memory, bytes_of(run, i), stream)));
    }
    return AMP_OK;
}

/* ---- graphs ------------------------------------------------------------------------------------------------------ */

amp_status amp_cuda_graphs_make(amp_cuda_graphs *g, const amp_cuda_launching *launching, amp_error *err) {
    *g = (amp_cuda_graphs){.launching = *launching};
    AMP_TRY(AMP_CUDA(launching->context, err, event_create, (&g->filled, CU_EVENT_DISABLE_TIMING)));
    return AMP_CUDA(launching->context, err, stream_create, (&g->capturing, CU_STREAM_NON_BLOCKING));
}

static void free_graph(amp_cuda_graphs *g, amp_cuda_graph *graph) {
    amp_cuda_context *c = g->launching.context;
    if (graph->exec) AMP_CUDA_FREE(c, graph_exec_destroy, (graph->exec));
    amp_cuda_tables_free(&graph->tables, c);
    amp_cuda_poison_free(&graph->poison, c);
    *graph = (amp_cuda_graph){0};
}

void amp_cuda_graphs_forget(amp_cuda_graphs *g) {
    for (int i = 0; i < AMP_CUDA_GRAPHS; i++)
        if (g->graphs[i].program) free_graph(g, &g->graphs[i]);
}

void amp_cuda_graphs_free(amp_cuda_graphs *g) {
    amp_cuda_graphs_forget(g);
    if (g->filled) AMP_CUDA_FREE(g->launching.context, event_destroy, (g->filled));
    if (g->capturing) AMP_CUDA_FREE(g->launching.context, stream_destroy, (g->capturing));
    *g = (amp_cuda_graphs){0};
}

size_t amp_cuda_graphs_bytes(const amp_cuda_graphs *g) {
    size_t bytes = 0;
    for (int i = 0; i < AMP_CUDA_GRAPHS; i++) bytes += g->graphs[i].tables.bytes + g->graphs[i].poison.bytes;
    return bytes;
}

/* ---- capturing --------------------------------------------------------------------------------------------------- */

static amp_status clear_flags(const amp_cuda_launching *l, const amp_run *run, CuStream stream, amp_error *err) {
    if (!run->flag_bytes) return AMP_OK;
    return AMP_CUDA(l->context, err, fill32,
                    (amp_cuda_pointer(run->flags), 0, run->flag_bytes / sizeof(uint32_t), stream));
}

static amp_status start_kernel(const amp_cuda_launching *l, const amp_run *run, int32_t kernel, amp_cuda_tables *tables,
                               bool overlaps, CuStream stream, amp_error *err) {
    const uint32_t *operands = run->program->cuda_kernels[kernel].operands.at;
    if (!amp_run_needs(run, kernel)) {
        tables->memory += all_table_bytes(&run->program->cuda_kernels[kernel]);
        return AMP_OK;
    }
    if (amp_cuda_exchange_sums(l->exchange, run, kernel))
        return amp_cuda_exchange_sum(l->exchange, run, kernel, amp_cuda_address_of(l, run, operands[0]),
                                     amp_cuda_address_of(l, run, operands[1]), stream, err);
    return amp_cuda_launch(l, run, kernel, tables, overlaps, stream, err);
}

/* Whether nothing of ranks, or of a library, is enqueued in place of the kernel, or after it. */
static bool is_last_enqueued(const amp_cuda_launching *l, const amp_run *run, int32_t kernel) {
    return !amp_cuda_exchange_sums(l->exchange, run, kernel) && !amp_cuda_exchange_marks(l->exchange, run, kernel) &&
           !amp_cuda_products_find(l, run, kernel);
}

static amp_status enqueue_kernels(const amp_cuda_graphs *g, const amp_run *run, const amp_cuda_graph *graph,
                                  amp_error *err) {
    const amp_cuda_launching *l = &g->launching;
    amp_cuda_tables tables = graph->tables;
    bool overlaps = false;
    AMP_TRY(clear_flags(l, run, g->capturing, err));
    for (int32_t i = 0; i < run->program->kernel_count; i++) {
        AMP_TRY(start_kernel(l, run, i, &tables, overlaps, g->capturing, err));
        if (!amp_run_needs(run, i)) continue;
        overlaps = !graph->poison.memory && is_last_enqueued(l, run, i);
        AMP_TRY(amp_cuda_poison_temporaries(&graph->poison, l->context, run, i, g->capturing, err));
        AMP_TRY(amp_cuda_exchange_mark(l->exchange, l->context, run, i, g->capturing, true, err));
    }
    return AMP_OK;
}

amp_status amp_cuda_set_batch(amp_cuda_context *c, const amp_run *run, int64_t number, CuStream stream,
                              amp_error *err) {
    if (!run->batches.number) return AMP_OK;
    /* its upper half is zero */
    return AMP_CUDA(c, err, fill32, (amp_cuda_pointer(run->batches.number), (unsigned)number, 1, stream));
}

static amp_status begin_batch(const amp_cuda_graphs *g, const amp_run *run, int64_t i, amp_error *err) {
    const amp_micro_batches *b = &run->batches;
    amp_cuda_context *c = g->launching.context;
    if (i) AMP_TRY(amp_cuda_set_batch(c, run, b->first + i, g->capturing, err));
    if (!b->to) return AMP_OK;
    const CuPointer from = amp_cuda_pointer(b->from) + (size_t)i * b->bytes;
    return AMP_CUDA(c, err, copy, (amp_cuda_pointer(b->to), from, b->bytes, g->capturing));
}

static amp_status enqueue(const amp_cuda_graphs *g, const amp_run *run, const amp_cuda_graph *graph, amp_error *err) {
    for (int64_t i = 0; i < run->batches.count; i++) {
        AMP_TRY(begin_batch(g, run, i, err));
        AMP_TRY(enqueue_kernels(g, run, graph, err));
    }
    return run->batches.count ? AMP_OK : enqueue_kernels(g, run, graph, err);
}

/* A capture that was begun is ended whatever happens in it. */
static amp_status capture(const amp_cuda_graphs *g, const amp_run *run, const amp_cuda_graph *graph, CuGraph *out,
                          amp_error *err) {
    amp_cuda_context *c = g->launching.context;
    AMP_TRY(AMP_CUDA(c, err, capture_begin, (g->capturing, CU_CAPTURE_THREAD_LOCAL)));
    amp_status status = enqueue(g, run, graph, err);
    if (!status) return AMP_CUDA(c, err, capture_end, (g->capturing, out));
    AMP_CUDA_FREE(c, capture_end, (g->capturing, out));
    return status;
}

static amp_status instantiate(amp_cuda_graphs *g, amp_cuda_graph *graph, const amp_run *run, amp_error *err) {
    amp_cuda_context *c = g->launching.context;
    CuGraph captured = NULL;
    amp_status status = capture(g, run, graph, &captured, err);
    if (!status) status = AMP_CUDA(c, err, graph_instantiate, (&graph->exec, captured, 0));
    if (captured) AMP_CUDA_FREE(c, graph_destroy, (captured));
    return status;
}

/* ---- the cache --------------------------------------------------------------------------------------------------- */

/* Whether |run| has launches of its own where other runs of the program have a library's. */
static bool is_apart(const amp_cuda_graphs *g, const amp_run *run) {
    if (!run->looked_at) return false; /* as most runs are */
    amp_run other = *run;
    other.looked_at = false;
    for (int32_t i = 0; i < run->program->kernel_count; i++)
        if (amp_cuda_products_find(&g->launching, &other, i) && !amp_cuda_products_find(&g->launching, run, i))
            return true;
    return false;
}

static bool is_of(const amp_cuda_graph *graph, const amp_run *run, bool apart) {
    return graph->program == run->program && amp_sizes_are_equal(graph->sizes, run->sizes) &&
           graph->selection == run->selection && graph->apart == apart;
}

static amp_cuda_graph *find(amp_cuda_graphs *g, const amp_run *run) {
    const bool apart = is_apart(g, run);
    if (is_of(&g->graphs[g->last], run, apart)) return &g->graphs[g->last];
    for (int i = 0; i < AMP_CUDA_GRAPHS; i++)
        if (is_of(&g->graphs[i], run, apart)) return &g->graphs[i];
    return NULL;
}

/* A free place; where the program, or all of them, have no more, the place of the one that was unused the longest. */
static amp_cuda_graph *choose_place(amp_cuda_graphs *g, const amp_program *program) {
    amp_cuda_graph *empty = NULL, *oldest = NULL, *oldest_of_program = NULL;
    int count = 0;
    for (int i = 0; i < AMP_CUDA_GRAPHS; i++) {
        amp_cuda_graph *at = &g->graphs[i];
        if (!at->program) {
            empty = at;
            continue;
        }
        if (!oldest || at->used < oldest->used) oldest = at;
        if (at->program != program) continue;
        count++;
        if (!oldest_of_program || at->used < oldest_of_program->used) oldest_of_program = at;
    }
    if (count >= AMP_CUDA_GRAPHS_OF_PROGRAM) return oldest_of_program;
    return empty ? empty : oldest;
}

/* The tables are filled while earlier runs are under way: later runs wait for them, the host does not. */
static amp_status make_tables(amp_cuda_graphs *g, amp_cuda_graph *graph, const amp_run *run, CuStream compute,
                              const amp_allocator *allocator, amp_error *err) {
    amp_cuda_context *c = g->launching.context;
    AMP_TRY(amp_cuda_tables_make(&graph->tables, &g->launching, run, g->capturing, allocator, err));
    if (!graph->tables.bytes) return AMP_OK;
    AMP_TRY(AMP_CUDA(c, err, event_record, (g->filled, g->capturing)));
    return AMP_CUDA(c, err, stream_wait, (compute, g->filled, 0));
}

static amp_status make(amp_cuda_graphs *g, const amp_run *run, CuStream compute, const amp_allocator *allocator,
                       amp_cuda_graph **out, amp_error *err) {
    amp_cuda_context *c = g->launching.context;
    amp_cuda_graph *place = choose_place(g, run->program),
                   made = {.program = run->program, .sizes = run->sizes, .selection = run->selection};
    AMP_TRY(amp_cuda_products_choose(&g->launching, run, false, err));
    made.apart = is_apart(g, run);
    AMP_TRY(amp_cuda_need(&g->launching, run, false, err));
    if (place->program) { /* it may be running */
        AMP_TRY(AMP_CUDA(c, err, stream_sync, (compute)));
        free_graph(g, place);
    }
    amp_status status = make_tables(g, &made, run, compute, allocator, err);
    if (!status) status = amp_cuda_poison_make(&made.poison, c, run, err);
    if (!status) status = instantiate(g, &made, run, err);
    amp_cuda_products *products = g->launching.products;
    if (status && products && products->failed && !amp_cuda_latch_check(&c->latch, err))
        status = instantiate(g, &made, run, err); /* without the call that failed */
    if (products) products->failed = false;
    if (status) {
        free_graph(g, &made);
        return status;
    }
    *place = made;
    *out = place;
    return AMP_OK;
}

amp_status amp_cuda_graphs_find(amp_cuda_graphs *g, const amp_run *run, CuStream compute,
                                const amp_allocator *allocator, CuGraphExec *out, amp_error *err) {
    amp_cuda_graph *graph = find(g, run);
    if (!graph) AMP_TRY(make(g, run, compute, allocator, &graph, err));
    graph->used = ++g->runs;
    g->last = graph - g->graphs;
    *out = graph->exec;
    return AMP_OK;
}

/* ---- one kernel after the other ---------------------------------------------------------------------------------- */

/* What ranks add up in the host's memory. */
static amp_status sum_by_host(const amp_cuda_launching *l, const amp_run *run, int32_t kernel, float *host,
                              size_t count, CuStream stream, amp_error *err) {
    const amp_model_cuda_kernel *k = &run->program->cuda_kernels[kernel];
    const size_t bytes = count * sizeof *host;
    AMP_TRY(AMP_CUDA(l->context, err, copy_out, (host, amp_cuda_address_of(l, run, k->operands.at[0]), bytes, stream)));
    AMP_TRY(AMP_CUDA(l->context, err, stream_sync, (stream)));
    AMP_TRY(run->hooks.sum(run->hooks.user, k->title, host, count, err));
    AMP_TRY(AMP_CUDA(l->context, err, copy_in, (amp_cuda_address_of(l, run, k->operands.at[1]), host, bytes, stream)));
    return AMP_CUDA(l->context, err, stream_sync, (stream));
}

static amp_status add_by_host(const amp_cuda_launching *l, const amp_run *run, int32_t kernel, CuStream stream,
                              const amp_allocator *allocator, amp_error *err) {
    const uint32_t operand = run->program->cuda_kernels[kernel].operands.at[0];
    const size_t count = (size_t)run->program->buffers[operand].cols.mul;
    float *host = amp_alloc(allocator, count * sizeof *host);
    if (!host) return amp_fail(err, AMP_OUT_OF_MEMORY, "%s: no memory for %zu sums", run->program->name, count);
    amp_status status = sum_by_host(l, run, kernel, host, count, stream, err);
    amp_free(allocator, host, count * sizeof *host);
    return status;
}

static amp_status run_alone(const amp_cuda_launching *l, const amp_run *run, int32_t kernel, amp_cuda_tables *tables,
                            CuStream stream, const amp_allocator *allocator, amp_error *err) {
    if (run->hooks.sum && run->program->cuda_kernels[kernel].parts.at->kind == AMP_KERNEL_COLLECTIVE)
        AMP_TRY(add_by_host(l, run, kernel, stream, allocator, err));
    else AMP_TRY(start_kernel(l, run, kernel, tables, false, stream, err));
    AMP_TRY(amp_cuda_exchange_mark(l->exchange, l->context, run, kernel, stream, false, err));
    if (run->watcher_waits) AMP_TRY(AMP_CUDA(l->context, err, stream_sync, (stream)));
    return run->after_kernel && amp_run_needs(run, kernel) ? run->after_kernel(run->watcher, kernel, err) : AMP_OK;
}

static amp_status run_each(const amp_cuda_launching *l, const amp_run *run, amp_cuda_tables tables, CuStream stream,
                           const amp_allocator *allocator, amp_error *err) {
    AMP_TRY(clear_flags(l, run, stream, err));
    for (int32_t i = 0; i < run->program->kernel_count; i++)
        AMP_TRY(run_alone(l, run, i, &tables, stream, allocator, err));
    return AMP_OK;
}

bool amp_cuda_runs_one_by_one(const amp_run *run) {
    return run->after_kernel || (run->hooks.sum && amp_program_sums_on_device(run->program));
}

amp_status amp_cuda_run_one_by_one(const amp_cuda_launching *l, const amp_run *run, CuStream stream,
                                   const amp_allocator *allocator, amp_error *err) {
    amp_cuda_tables tables;
    AMP_TRY(amp_cuda_products_choose(l, run, false, err));
    AMP_TRY(amp_cuda_need(l, run, false, err));
    AMP_TRY(amp_cuda_tables_make(&tables, l, run, stream, allocator, err));
    amp_status status = run_each(l, run, tables, stream, allocator, err);
    amp_cuda_tables_free(&tables, l->context);
    return status;
}
