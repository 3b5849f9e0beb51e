/* work.c: running one piece of work, when its turn has come. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fakecuda/driver/driver.h"

Marker *marker_new(void) {
    Marker *m = must_alloc(sizeof *m);
    m->references = 1;
    return m;
}

Marker *marker_hold(Marker *m) {
    if (m) m->references++;
    return m;
}

void marker_drop(Marker *m) {
    if (m && --m->references == 0) free(m);
}

void work_free(Work *w) {
    free(w->staged);
    free(w->params);
    if (w->graph) graph_drop(w->graph);
    *w = (Work){0};
}

Work work_copy(const Work *w) {
    Work copy = *w;
    if (w->params) {
        copy.params = must_alloc(w->bytes);
        memcpy(copy.params, w->params, w->bytes);
    }
    return copy;
}

/* Orders of magnitude of a large device: bytes per nanosecond over the bus and in memory, and what anything takes at
 * least. */
enum { BUS = 25, MEMORY = 2000, LEAST = 1000, WARP_INSTRUCTIONS = 500 };

/* The host's memory behind |pointer| as it is now.  Work in queues is run before pinned memory goes, so only a graph
 * can come too late. */
static bool host_gone(Context *c, const void *pointer, uint64_t bytes) {
    if (host_kind(pointer, bytes) == HOST_PINNED) return false;
    char message[MESSAGE_SIZE];
    snprintf(message, sizeof message, "a graph copies %llu bytes of host memory at %p, which was freed since",
             (unsigned long long)bytes, pointer);
    context_fail(c, CU_ILLEGAL_ADDRESS, message);
    return true;
}

static void run_copy_in(Context *c, Work *w) {
    char why[256] = "";
    if (!w->staged && host_gone(c, w->host_from, w->bytes)) return;
    c->nanoseconds += w->bytes / BUS;
    if (exec_write(c->memory, w->to, w->staged ? w->staged : w->host_from, w->bytes, why)) report.bytes_in += w->bytes;
    else context_fail(c, CU_ILLEGAL_ADDRESS, why);
}

static void run_copy_out(Context *c, Work *w) {
    char why[256] = "";
    /* Pageable memory is written before the call returns; pinned memory must be there still. */
    if (w->pinned && host_gone(c, w->host_to, w->bytes)) return;
    c->nanoseconds += w->bytes / BUS;
    if (exec_read(c->memory, w->from, w->host_to, w->bytes, why)) report.bytes_out += w->bytes;
    else context_fail(c, memory_inside(c, w->from, w->bytes) ? CU_LAUNCH_FAILED : CU_ILLEGAL_ADDRESS, why);
}

static void run_copy(Context *c, Work *w) {
    char why[256] = "";
    c->nanoseconds += w->bytes / MEMORY;
    if (exec_copy(c->memory, w->to, w->from, w->bytes, why)) report.bytes_inside += w->bytes;
    else context_fail(c, CU_ILLEGAL_ADDRESS, why);
}

static void run_fill(Context *c, Work *w) {
    char why[256] = "";
    c->nanoseconds += w->count * (uint64_t)w->width / MEMORY;
    if (exec_fill(c->memory, w->to, w->value, w->width, w->count, why))
        report.bytes_filled += w->count * (uint64_t)w->width;
    else context_fail(c, CU_ILLEGAL_ADDRESS, why);
}

static void run_kernel(Context *c, Work *w) {
    static const CuResult results[] = {[EXEC_OK] = CU_SUCCESS,
                                       [EXEC_ILLEGAL_ADDRESS] = CU_ILLEGAL_ADDRESS,
                                       [EXEC_MISALIGNED] = CU_MISALIGNED_ADDRESS,
                                       [EXEC_ILLEGAL_INSTRUCTION] = CU_ILLEGAL_INSTRUCTION,
                                       [EXEC_LAUNCH_FAILED] = CU_LAUNCH_FAILED,
                                       [EXEC_INVALID_LAUNCH] = CU_LAUNCH_FAILED,
                                       [EXEC_OUT_OF_MEMORY] = CU_LAUNCH_FAILED,
                                       [EXEC_ASSERT] = CU_ASSERT};
    Function *f = handle_object(HANDLE_FUNCTION, w->function);
    if (!f) {
        context_fail(c, CU_LAUNCH_FAILED, "a graph launches a kernel of a module that was unloaded");
        return;
    }
    ExecLaunch launch = {.module = f->module->code,
                         .entry = f->ptx->name,
                         .dynamic_shared = w->dynamic_shared,
                         .params = w->params,
                         .seed = w->seed,
                         .threads = driver.settings.threads};
    for (int i = 0; i < 3; i++) {
        launch.grid[i] = w->grid[i];
        launch.block[i] = w->block[i];
        launch.cluster[i] = (uint32_t)f->ptx->cluster[i];
    }
    ExecCounters counters = {0};
    char message[MESSAGE_SIZE] = "";
    ExecFault fault = exec_launch(&launch, &counters, message, sizeof message);
    f->row->launches++;
    if ((int)w->dynamic_shared > f->row->dynamic_shared) f->row->dynamic_shared = (int)w->dynamic_shared;
    exec_counters_add(&f->row->counters, &counters);
    c->nanoseconds += counters.warp_instructions / WARP_INSTRUCTIONS;
    if (fault != EXEC_OK) context_fail(c, results[fault], message);
}

static void run_graph(Context *c, Work *w) {
    report.graph_launches++;
    graph_run(c, w->graph, w->seed);
}

static void run_nothing(Context *c, Work *w) { (void)c, (void)w; }

void work_run(Context *c, Work *w) {
    static void (*const run[])(Context *, Work *) = {
        [WORK_NOTHING] = run_nothing, [WORK_COPY_IN] = run_copy_in, [WORK_COPY_OUT] = run_copy_out,
        [WORK_COPY] = run_copy,       [WORK_FILL] = run_fill,       [WORK_KERNEL] = run_kernel,
        [WORK_GRAPH] = run_graph};
    c->nanoseconds += w->kind == WORK_NOTHING ? 0 : LEAST;
    run[w->kind](c, w);
}
