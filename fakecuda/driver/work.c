/* work.c: streams' queues, and running one piece of work when its turn has come. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fakecuda/driver/driver.h"

/* ---- one piece of work ------------------------------------------------------------------------------------------- */

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
    if (w->running) graph_run_free(w->graph, w->running);
    if (w->graph) graph_drop(w->graph);
    if (w->outside.drop) w->outside.drop(w->outside.user);
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

/* The host's memory at |pointer| as it is now.  Work in queues is run before pinned memory goes, so only a graph
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
    for (uint64_t i = 0; i < w->lines; i++) {
        c->nanoseconds += w->count * (uint64_t)w->width / MEMORY;
        if (!exec_fill(c->memory, w->to + i * w->pitch, w->value, w->width, w->count, why)) {
            context_fail(c, CU_ILLEGAL_ADDRESS, why);
            return;
        }
        report.bytes_filled += w->count * (uint64_t)w->width;
    }
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
    LoadedFunction *f = handle_object(HANDLE_FUNCTION, w->function);
    if (!f) {
        context_fail(c, CU_LAUNCH_FAILED, "a graph launches a kernel of a module that was unloaded");
        return;
    }
    ExecLaunch launch = {.module = f->module->code,
                         .entry = f->ptx->name,
                         .dynamic_shared = w->dynamic_shared,
                         .params = w->params,
                         .seed = w->seed,
                         .threads = driver.settings.threads,
                         .resident = driver.settings.resident,
                         .beside = w->beside};
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
    c->nanoseconds += settings_time(f->ptx->name, counters.warp_instructions / WARP_INSTRUCTIONS);
    if (fault != EXEC_OK) context_fail(c, results[fault], message);
}

/* ---- work from outside ---- */

bool fakecuda_read(void *context, uint64_t from, void *to, uint64_t bytes) {
    Context *c = context;
    char why[256] = "";
    if (exec_read(c->memory, from, to, bytes, why)) return true;
    context_fail(c, memory_inside(c, from, bytes) ? CU_LAUNCH_FAILED : CU_ILLEGAL_ADDRESS, why);
    return false;
}

bool fakecuda_write(void *context, uint64_t to, const void *from, uint64_t bytes) {
    Context *c = context;
    char why[256] = "";
    if (exec_write(c->memory, to, from, bytes, why)) return true;
    context_fail(c, CU_ILLEGAL_ADDRESS, why);
    return false;
}

static CuResult add_outside(Context *c, CuStream stream, const FakecudaOutside *outside, const char *name,
                            bool *captured) {
    Stream *s;
    CuResult found = stream_find(c, stream, &s);
    if (found != CU_SUCCESS) return found;
    if (s->capture && s->capture->invalid) return CU_STREAM_CAPTURE_INVALIDATED;
    *captured = s->capture != NULL;
    return stream_submit(s, &(Work){.kind = WORK_OUTSIDE, .outside = *outside, .outside_name = name});
}

static bool waits_inside(Context *c, CuStream stream) {
    Stream *s;
    return stream_find(c, stream, &s) == CU_SUCCESS && s->waits_inside;
}

int fakecuda_enqueue(void *stream, const FakecudaOutside *work, const char *name, uint64_t bytes, bool *captured) {
    Context *c;
    driver_lock();
    CuResult result = context_current(&c);
    if (result == CU_SUCCESS) result = c->sticky ? c->sticky : add_outside(c, stream, work, name, captured);
    if (result == CU_SUCCESS) report_outside(name, bytes, waits_inside(c, stream), *captured);
    driver_unlock();
    return result;
}

bool fakecuda_is_capturing(void) {
    Context *c;
    driver_lock();
    const bool captures = context_current(&c) == CU_SUCCESS && c->captures;
    driver_unlock();
    return captures;
}

void fakecuda_misuse(const char *what) {
    driver_lock();
    report_misuse("%s", what);
    driver_unlock();
}

/* ---- any work ---- */

static void run_nothing(Context *c, Work *w) { (void)c, (void)w; }

static bool run_outside(Context *c, Work *w) {
    const char *name = w->outside_name;
    if (!w->outside.run(w->outside.user, c)) return false;
    c->nanoseconds += settings_time(name, 0);
    return true;
}

bool work_run(Context *c, Work *w) {
    static void (*const run[])(Context *, Work *) = {
        [WORK_NOTHING] = run_nothing, [WORK_COPY_IN] = run_copy_in, [WORK_COPY_OUT] = run_copy_out,
        [WORK_COPY] = run_copy,       [WORK_FILL] = run_fill,       [WORK_KERNEL] = run_kernel,
        [WORK_RECORD] = run_nothing};
    if (w->kind == WORK_OUTSIDE) return run_outside(c, w);
    c->nanoseconds += run[w->kind] == run_nothing ? 0 : LEAST;
    run[w->kind](c, w);
    return true;
}

/* ---- queues ------------------------------------------------------------------------------------------------------ */

/* Nothing runs when it is asked for: at every later call chance runs a little of what could run, and a call that waits
 * runs exactly what it waits for.  So a host or a stream that does not wait sees, with some seed, the bytes of before.
 */

uint64_t queue_add(Stream *s, const Work *work, Marker *after, Marker *done) {
    Op *op = must_alloc(sizeof *op);
    *op = (Op){.sequence = ++driver.sequence, .after = after, .done = done, .work = *work};
    if (done) {
        done->stream = s;
        done->sequence = op->sequence;
    }
    if (s->tail) s->tail->next = op;
    else s->head = op;
    s->tail = op;
    return op->sequence;
}

static void finish(Stream *s, Op *op) {
    if (op->done) {
        op->done->done = true;
        op->done->nanoseconds = s->context->nanoseconds;
    }
    marker_drop(op->after);
    marker_drop(op->done);
    work_free(&op->work);
    free(op);
}

static Op *take(Stream *s) {
    Op *op = s->head;
    s->head = op->next;
    if (!s->head) s->tail = NULL;
    return op;
}

static void put_back(Stream *s, Op *op) {
    op->next = s->head;
    s->head = op;
    if (!op->next) s->tail = op;
}

/* What is asked of a stream waits for all before it, but for a kernel that need not. */
static void begin_next(Stream *s, Work *w) {
    const ExecBeside last = s->beside;
    s->beside = (ExecBeside){0};
    if (w->programmatic && s->after_kernel) overlap_depend(&s->beside, &last);
    s->after_kernel = w->kind == WORK_KERNEL;
    w->beside = &s->beside;
}

/* Of a graph |most| nodes at most.  False: nothing of it could be done, as it waits for others.  Work that has ended
 * the context is gone. */
static bool run_head(Stream *s, int most) {
    Op *op = s->head;
    if (op->work.kind == WORK_OUTSIDE) {
        begin_next(s, &op->work);
        if (!work_run(s->context, &op->work)) return s->head != op;
        if (s->head == op) finish(s, take(s));
        return true;
    }
    take(s);
    begin_next(s, &op->work);
    if (op->work.kind == WORK_GRAPH) {
        bool waits = false;
        if (!graph_run(s->context, &op->work, most, &waits)) {
            put_back(s, op);
            return !waits;
        }
    } else work_run(s->context, &op->work);
    finish(s, op);
    return true;
}

/* Others may call the driver while a host waits for work that others have to bring on. */
static void pause_host(void) {
    const struct timespec t = {.tv_nsec = 100000};
    driver_unlock();
    nanosleep(&t, NULL);
    driver_lock();
}

/* Whether the work of one waits for earlier work of the other: the legacy stream and the blocking streams do. */
static bool ordered(const Stream *a, const Stream *b) {
    return a != b && ((a->legacy && b->blocking) || (b->legacy && a->blocking));
}

/* The head, or the next node of it, and what it waits for. */
static void advance(Stream *s) {
    Context *c = s->context;
    Op *op = s->head;
    if (op->after) queue_run_until(op->after);
    for (Stream *other = c->streams; other; other = other->next)
        if (ordered(s, other)) queue_run_to(other, op->sequence - 1);
    if (!c->sticky && s->head == op && !run_head(s, 1)) pause_host();
}

void queue_run_to(Stream *s, uint64_t sequence) {
    while (!s->context->sticky && s->head && s->head->sequence <= sequence) advance(s);
}

void queue_run_until(Marker *m) {
    marker_hold(m);
    while (!m->done && !m->stream->context->sticky && m->stream->head) advance(m->stream);
    marker_drop(m);
}

void queue_run_all(Context *c) {
    for (Stream *s = c->streams; s; s = s->next) queue_run_to(s, UINT64_MAX);
}

static bool ready(const Stream *s) {
    if (!s->head || (s->head->after && !s->head->after->done)) return false;
    for (const Stream *other = s->context->streams; other; other = other->next)
        if (ordered(s, other) && other->head && other->head->sequence < s->head->sequence) return false;
    return true;
}

/* Half of the time nothing; else one to four pieces, each of any stream that could go on.  Of a graph with events
 * inside a piece is some nodes, so that who waits for them goes on beside it. */
void queue_progress(Context *c) {
    enum { NODES = 32 };
    if (queue_length(c) == 0 || chance(2)) return;
    for (uint64_t left = 1 + chance(4); left && !c->sticky; left--) {
        uint64_t candidates = 0;
        for (const Stream *s = c->streams; s; s = s->next) candidates += ready(s);
        if (candidates == 0) return;
        uint64_t pick = chance(candidates);
        for (Stream *s = c->streams; s; s = s->next)
            if (ready(s) && pick-- == 0) {
                run_head(s, graph_records(&s->head->work) ? 1 + (int)chance(NODES) : INT_MAX);
                break;
            }
    }
}

void queue_drop_all(Context *c) {
    for (Stream *s = c->streams; s; s = s->next)
        while (s->head) finish(s, take(s));
}

int queue_length(const Context *c) {
    int count = 0;
    for (const Stream *s = c->streams; s; s = s->next)
        for (const Op *op = s->head; op; op = op->next) count++;
    return count;
}
