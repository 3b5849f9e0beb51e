/* graph.c: see graph.h. */
#include "runtime/device/cuda/graph.h"

#include "base/error.h"
#include "runtime/device/cuda/context.h"

amp_status amp_cuda_graphs_make(amp_cuda_graphs *g, const amp_cuda_launching *launching, amp_error *err) {
    *g = (amp_cuda_graphs){.launching = *launching};
    return AMP_CUDA(launching->context, err, stream_create, (&g->capturing, CU_STREAM_NON_BLOCKING));
}

static void free_graph(amp_cuda_graphs *g, amp_cuda_graph *graph) {
    amp_cuda_context *c = g->launching.context;
    if (graph->exec) AMP_CUDA_FREE(c, graph_exec_destroy, (graph->exec));
    amp_cuda_tables_free(&graph->tables, c);
    amp_cuda_poison_free(&graph->poison, c);
    *graph = (amp_cuda_graph){0};
}

void amp_cuda_graphs_free(amp_cuda_graphs *g) {
    for (int i = 0; i < AMP_CUDA_GRAPHS; i++)
        if (g->graphs[i].program) free_graph(g, &g->graphs[i]);
    if (g->capturing) AMP_CUDA_FREE(g->launching.context, stream_destroy, (g->capturing));
    *g = (amp_cuda_graphs){0};
}

size_t amp_cuda_graphs_bytes(const amp_cuda_graphs *g) {
    size_t bytes = 0;
    for (int i = 0; i < AMP_CUDA_GRAPHS; i++) bytes += g->graphs[i].tables.bytes;
    return bytes;
}

/* ---- capturing --------------------------------------------------------------------------------------------------- */

static amp_status enqueue(const amp_cuda_graphs *g, const amp_run *run, const amp_cuda_graph *graph, amp_error *err) {
    const amp_cuda_launching *l = &g->launching;
    CuPointer tables = graph->tables.memory;
    if (run->flag_bytes)
        AMP_TRY(AMP_CUDA(l->context, err, fill32,
                         (amp_cuda_pointer(run->flags), 0, run->flag_bytes / sizeof(uint32_t), g->capturing)));
    for (int32_t i = 0; i < run->program->kernel_count; i++) {
        AMP_TRY(amp_cuda_launch(l, run, i, &tables, g->capturing, err));
        AMP_TRY(amp_cuda_poison_temporaries(&graph->poison, l->context, run, i, g->capturing, err));
    }
    return AMP_OK;
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

static amp_cuda_graph *find(amp_cuda_graphs *g, const amp_run *run) {
    for (int i = 0; i < AMP_CUDA_GRAPHS; i++)
        if (g->graphs[i].program == run->program && g->graphs[i].n == run->n) return &g->graphs[i];
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

static amp_status make(amp_cuda_graphs *g, const amp_run *run, CuStream compute, const amp_allocator *allocator,
                       amp_cuda_graph **out, amp_error *err) {
    amp_cuda_context *c = g->launching.context;
    amp_cuda_graph *place = choose_place(g, run->program), made = {.program = run->program, .n = run->n};
    if (place->program) { /* it may be running */
        AMP_TRY(AMP_CUDA(c, err, stream_sync, (compute)));
        free_graph(g, place);
    }
    AMP_TRY(amp_cuda_tables_make(&made.tables, &g->launching, run, compute, allocator, err));
    amp_status status = amp_cuda_poison_make(&made.poison, c, run, err);
    if (!status) status = instantiate(g, &made, run, err);
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
    *out = graph->exec;
    return AMP_OK;
}
