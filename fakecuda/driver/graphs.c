/* graphs.c: graphs, which only stream capture makes, and their launches. */
#include <stdlib.h>
#include <string.h>

#include "fakecuda/driver/driver.h"

/* ---- graphs ------------------------------------------------------------------------------------------------------ */

enum { AUTO_FREE_ON_LAUNCH = 1, USE_NODE_PRIORITY = 8 }; /* have no effect on what a graph can hold here */

Graph *graph_new(Context *c) {
    Graph *g = must_alloc(sizeof *g);
    *g = (Graph){.references = 1, .context = c};
    return g;
}

Graph *graph_hold(Graph *g) {
    g->references++;
    return g;
}

void graph_drop(Graph *g) {
    if (--g->references) return;
    for (int i = 0; i < g->count; i++) {
        work_free(&g->nodes[i].work);
        free(g->nodes[i].after.nodes);
    }
    free(g->nodes);
    free(g);
}

void graph_publish(Graph *g) {
    g->handle = handle_new(HANDLE_GRAPH, g, g->context);
    for (int i = 0; i < g->count; i++) g->nodes[i].handle = handle_new(HANDLE_GRAPH_NODE, g, g->context);
}

void graph_forget(Graph *g) {
    handle_end(g->handle);
    for (int i = 0; i < g->count; i++) handle_end(g->nodes[i].handle);
    graph_drop(g);
}

void graph_add(Graph *g, const Work *work, const struct Frontier *after) {
    if (g->count == g->room) {
        g->room = g->room ? 2 * g->room : 16;
        g->nodes = must_grow(g->nodes, (size_t)g->room * sizeof *g->nodes);
    }
    GraphNode *n = &g->nodes[g->count++];
    *n = (GraphNode){.work = *work};
    n->after.count = after->count;
    if (after->count == 0) return;
    n->after.nodes = must_alloc((size_t)after->count * sizeof *after->nodes);
    memcpy(n->after.nodes, after->nodes, (size_t)after->count * sizeof *after->nodes);
}

static bool may_run(const Graph *g, const bool *done, int node) {
    bool may = !done[node];
    for (int i = 0; i < g->nodes[node].after.count; i++) may = may && done[g->nodes[node].after.nodes[i]];
    return may;
}

/* One node: of those whose predecessors have run, any.  Nodes of one stream are in a chain, so the search from the
 * first one left is short. */
static int pick(const Graph *g, const bool *done, int first) {
    int found = -1;
    enum { WIDTH = 64 };
    uint64_t candidates = 0;
    for (int i = first; i < g->count && i < first + WIDTH; i++)
        if (may_run(g, done, i) && chance(++candidates) == 0) found = i;
    return found;
}

/* A kernel begins beside the one before it where it comes after nothing else. */
static void find_beside(const Graph *g, GraphRun *r, int node) {
    const struct Frontier *after = &g->nodes[node].after;
    const bool alone = after->count == 1 && g->nodes[after->nodes[0]].work.kind == WORK_KERNEL;
    if (g->nodes[node].work.programmatic && alone) overlap_depend(&r->beside[node], &r->beside[after->nodes[0]]);
    else
        for (int i = 0; i < after->count; i++) overlap_wait(&r->beside[node], &r->beside[after->nodes[i]]);
}

/* False: it waits for others. */
static bool run_node(Context *c, Graph *g, GraphRun *r, int node, uint64_t seed) {
    Work *w = &g->nodes[node].work;
    w->seed = seed * 0x9e3779b97f4a7c15ull + (uint64_t)node;
    find_beside(g, r, node);
    w->beside = &r->beside[node];
    if (!work_run(c, w)) return false;
    LoadedFunction *f = w->kind == WORK_KERNEL && !c->sticky ? handle_object(HANDLE_FUNCTION, w->function) : NULL;
    if (f) f->row->graph_launches++;
    if (r->records[node]) {
        r->records[node]->done = true;
        r->records[node]->nanoseconds = c->nanoseconds;
    }
    r->done[node] = true;
    while (r->first < g->count && r->done[r->first]) r->first++;
    return true;
}

bool graph_run(Context *c, Work *launch, int most, bool *waits) {
    Graph *g = launch->graph;
    GraphRun *r = launch->running;
    if (!r->begun) report.graph_launches++;
    r->begun = true;
    for (int i = 0; i < most && r->first < g->count && !c->sticky; i++)
        if (!run_node(c, g, r, pick(g, r->done, r->first), launch->seed)) {
            *waits = i == 0;
            break;
        }
    return r->first == g->count || c->sticky;
}

bool graph_records(const Work *launch) {
    bool records = false;
    for (int i = 0; launch->kind == WORK_GRAPH && i < launch->graph->count; i++)
        records |= launch->running->records[i] != NULL;
    return records;
}

/* Ends every wait for work that will never run. */
void graph_run_free(Graph *g, GraphRun *r) {
    for (int i = 0; i < g->count; i++) {
        if (r->records[i]) r->records[i]->done = true;
        marker_drop(r->records[i]);
    }
    free(r->records);
    free(r->beside);
    free(r->done);
    free(r);
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

CuResult graph_nodes(CuGraph graph, CuGraphNode *nodes, size_t *count) {
    const Graph *g = handle_object(HANDLE_GRAPH, graph);
    if (!g || !count) return CU_INVALID_VALUE;
    for (size_t i = 0; nodes && i < *count; i++) nodes[i] = i < (size_t)g->count ? g->nodes[i].handle : NULL;
    if (!nodes || *count > (size_t)g->count) *count = (size_t)g->count;
    return CU_SUCCESS;
}

CuResult graph_instantiate(Context *c, CuGraphExec *out, CuGraph graph, unsigned long long flags) {
    Graph *g = handle_object(HANDLE_GRAPH, graph);
    if (!g || !out) return CU_INVALID_VALUE;
    if (flags & ~(unsigned long long)(AUTO_FREE_ON_LAUNCH | USE_NODE_PRIORITY)) return CU_NOT_SUPPORTED;
    for (int i = 0; i < g->count; i++)
        if (g->nodes[i].work.kind == WORK_KERNEL && !handle_object(HANDLE_FUNCTION, g->nodes[i].work.function))
            return CU_INVALID_VALUE;
    GraphExec *x = must_alloc(sizeof *x);
    x->graph = graph_hold(g);
    x->handle = *out = handle_new(HANDLE_GRAPH_EXEC, x, c);
    return CU_SUCCESS;
}

/* Whether there is work that comes neither before |node| nor with it. */
static bool has_other_work(const Graph *g, int node) {
    bool *before = must_alloc((size_t)g->count * sizeof *before), other = false;
    before[node] = true;
    for (int i = g->count; i-- > 0;) { /* nodes come after those that they depend on */
        for (int j = 0; before[i] && j < g->nodes[i].after.count; j++) before[g->nodes[i].after.nodes[j]] = true;
        other |= !before[i] && g->nodes[i].work.kind != WORK_RECORD;
    }
    free(before);
    return other;
}

static GraphRun *new_run(const Graph *g, Stream *s) {
    GraphRun *r = must_alloc(sizeof *r);
    *r = (GraphRun){.done = must_alloc((size_t)g->count * sizeof *r->done),
                    .records = must_alloc((size_t)g->count * sizeof(Marker *)),
                    .beside = must_alloc((size_t)g->count * sizeof *r->beside)};
    for (int i = 0; i < g->count; i++) {
        if (g->nodes[i].work.kind != WORK_RECORD) continue;
        r->records[i] = marker_new();
        r->records[i]->stream = s;
        r->records[i]->inside = has_other_work(g, i);
    }
    return r;
}

static CuResult record_events(const Graph *g, const GraphRun *r) {
    CuResult result = CU_SUCCESS;
    for (int i = 0; i < g->count && result == CU_SUCCESS; i++)
        if (r->records[i]) result = event_record_launch(g->nodes[i].work.event, r->records[i]);
    return result;
}

/* Launches of one executable graph never overlap: each waits for the one before. */
CuResult graph_launch(Context *c, CuGraphExec exec, CuStream stream) {
    GraphExec *x = handle_object(HANDLE_GRAPH_EXEC, exec);
    Stream *s;
    CuResult found = stream_find(c, stream, &s);
    if (found != CU_SUCCESS) return found;
    if (!x || x->graph->context != c) return CU_INVALID_VALUE;
    if (s->capture) {
        text_add(&report.unknown, "cuGraphLaunch into a stream in capture");
        return capture_refuse(s);
    }
    CuResult refused = capture_check_legacy(s);
    if (refused != CU_SUCCESS) return refused;
    GraphRun *running = new_run(x->graph, s);
    refused = record_events(x->graph, running);
    if (refused != CU_SUCCESS) {
        report_misuse("a graph records an event that was destroyed");
        graph_run_free(x->graph, running);
        return refused;
    }
    Work work = {.kind = WORK_GRAPH,
                 .graph = graph_hold(x->graph),
                 .running = running,
                 .seed = driver.settings.seed + ++driver.launches};
    Marker *before = x->last && !x->last->done ? marker_hold(x->last) : NULL;
    marker_drop(x->last);
    x->last = marker_new();
    queue_add(s, &work, before, marker_hold(x->last));
    return CU_SUCCESS;
}

void graph_exec_free(GraphExec *x) {
    handle_end(x->handle);
    marker_drop(x->last);
    graph_drop(x->graph);
    free(x);
}

CuResult graph_exec_destroy(CuGraphExec exec) {
    GraphExec *x = handle_object(HANDLE_GRAPH_EXEC, exec);
    if (!x) return CU_INVALID_VALUE;
    graph_exec_free(x); /* launches in queues hold the nodes */
    return CU_SUCCESS;
}

CuResult graph_destroy(CuGraph graph) {
    Graph *g = handle_object(HANDLE_GRAPH, graph);
    if (!g) return CU_INVALID_VALUE;
    graph_forget(g);
    return CU_SUCCESS;
}

/* ---- stream capture ---------------------------------------------------------------------------------------------- */

/* What is asked of a stream in capture becomes a node of a graph, which depends on the stream's last nodes (its
 * frontier). */

static void frontier_set(struct Frontier *f, const int *nodes, int count) {
    int *copy = count ? must_alloc((size_t)count * sizeof *copy) : NULL;
    if (count) memcpy(copy, nodes, (size_t)count * sizeof *copy);
    free(f->nodes);
    *f = (struct Frontier){copy, count};
}

static void frontier_add(struct Frontier *f, const struct Frontier *other) {
    for (int i = 0; i < other->count; i++) {
        bool there = false;
        for (int j = 0; j < f->count; j++) there |= f->nodes[j] == other->nodes[i];
        if (there) continue;
        f->nodes = must_grow(f->nodes, (size_t)(f->count + 1) * sizeof *f->nodes);
        f->nodes[f->count++] = other->nodes[i];
    }
}

static CuResult lose(Capture *capture, CuResult why) {
    capture->invalid = true;
    return why;
}

Capture *capture_by_id(Context *c, uint64_t id) {
    Capture *capture = c->captures;
    while (capture && capture->id != id) capture = capture->next;
    return capture;
}

/* ---- begin, end -------------------------------------------------------------------------------------------------- */

CuResult capture_begin(Context *c, CuStream handle, int mode) {
    Stream *s;
    CuResult found = stream_find(c, handle, &s);
    if (found != CU_SUCCESS) return found;
    if (mode < CAPTURE_GLOBAL || mode > CAPTURE_RELAXED) return CU_INVALID_VALUE;
    if (s->legacy) return CU_STREAM_CAPTURE_UNSUPPORTED;
    if (s->capture) return CU_ILLEGAL_STATE;
    Capture *capture = must_alloc(sizeof *capture);
    *capture = (Capture){.next = c->captures,
                         .id = ++driver.captures,
                         .origin = s,
                         .graph = graph_new(c),
                         .mode = mode,
                         .thread = pthread_self()};
    c->captures = s->capture = capture;
    return CU_SUCCESS;
}

/* The streams of the capture go back to work of their own; its graph goes to the caller. */
static Graph *capture_finish(Capture *capture) {
    Context *c = capture->origin->context;
    for (Stream *s = c->streams; s; s = s->next)
        if (s->capture == capture) {
            s->capture = NULL;
            frontier_set(&s->frontier, NULL, 0);
        }
    Capture **link = &c->captures;
    while (*link != capture) link = &(*link)->next;
    *link = capture->next;
    Graph *graph = capture->graph;
    free(capture);
    return graph;
}

/* Whether every node comes before the end of the origin stream: the other streams have been joined. */
static bool joined(const Capture *capture) {
    const Graph *g = capture->graph;
    bool *before = must_alloc((size_t)g->count * sizeof *before);
    const struct Frontier *end = &capture->origin->frontier;
    for (int i = 0; i < end->count; i++) before[end->nodes[i]] = true;
    bool all = true;
    for (int i = g->count; i-- > 0;) {
        all = all && before[i];
        for (int j = 0; before[i] && j < g->nodes[i].after.count; j++) before[g->nodes[i].after.nodes[j]] = true;
    }
    free(before);
    return all;
}

CuResult capture_end(Context *c, CuStream handle, CuGraph *out, CuResult injected) {
    Stream *s;
    CuResult result = stream_find(c, handle, &s);
    if (result != CU_SUCCESS) return result;
    if (!out) return CU_INVALID_VALUE;
    *out = NULL;
    Capture *capture = s->capture;
    if (!capture) return CU_ILLEGAL_STATE;
    if (capture->mode != CAPTURE_RELAXED && !pthread_equal(capture->thread, pthread_self()))
        return CU_STREAM_CAPTURE_WRONG_THREAD;
    if (s != capture->origin) return lose(capture, CU_CAPTURE_UNMATCHED);
    if (capture->invalid) result = CU_STREAM_CAPTURE_INVALIDATED;
    else if (!joined(capture)) result = CU_CAPTURE_UNJOINED;
    Graph *graph = capture_finish(capture);
    if (result != CU_SUCCESS || injected != CU_SUCCESS) {
        graph_drop(graph);
        return result;
    }
    graph_publish(graph);
    *out = graph->handle;
    return CU_SUCCESS;
}

void capture_leave(Stream *s) {
    Capture *capture = s->capture;
    if (s != capture->origin) {
        capture->invalid = true;
        s->capture = NULL;
        return;
    }
    graph_drop(capture_finish(capture));
}

void capture_free_all(Context *c) {
    while (c->captures) graph_drop(capture_finish(c->captures));
}

/* ---- work -------------------------------------------------------------------------------------------------------- */

CuResult capture_add(Stream *s, const Work *work) {
    Capture *capture = s->capture;
    Work w = *work;
    if (capture->invalid) {
        work_free(&w);
        return CU_STREAM_CAPTURE_INVALIDATED;
    }
    int node = capture->graph->count;
    graph_add(capture->graph, work, &s->frontier);
    frontier_set(&s->frontier, &node, 1);
    return CU_SUCCESS;
}

CuResult capture_record(Stream *s, Event *e) {
    if (s->capture->invalid) return CU_STREAM_CAPTURE_INVALIDATED;
    e->capture = s->capture->id;
    frontier_set(&e->frontier, s->frontier.nodes, s->frontier.count);
    return CU_SUCCESS;
}

CuResult capture_wait(Stream *s, Event *e) {
    if (s->capture && s->capture->invalid) return CU_STREAM_CAPTURE_INVALIDATED;
    if (!e->capture) return e->marker ? lose(s->capture, CU_CAPTURE_ISOLATION) : CU_SUCCESS;
    Capture *capture = capture_by_id(e->context, e->capture);
    if (!capture) return s->capture ? lose(s->capture, CU_CAPTURED_EVENT) : CU_CAPTURED_EVENT;
    if (capture->invalid) return CU_STREAM_CAPTURE_INVALIDATED;
    if (s->legacy) return lose(capture, CU_CAPTURE_IMPLICIT);
    if (s->context != e->context) return lose(capture, CU_NOT_SUPPORTED);
    if (s->capture && s->capture != capture) {
        lose(s->capture, CU_CAPTURE_MERGE);
        return lose(capture, CU_CAPTURE_MERGE);
    }
    s->capture = capture;
    frontier_add(&s->frontier, &e->frontier);
    return CU_SUCCESS;
}

/* ---- what may not be done beside a capture ----------------------------------------------------------------------- */

CuResult capture_refuse(Stream *s) {
    return s->capture->invalid ? CU_STREAM_CAPTURE_INVALIDATED : lose(s->capture, CU_STREAM_CAPTURE_UNSUPPORTED);
}

CuResult capture_check_legacy(Stream *s) {
    CuResult result = CU_SUCCESS;
    if (!s->legacy) return result;
    for (Stream *other = s->context->streams; other; other = other->next)
        if (other->capture && other->blocking) result = lose(other->capture, CU_CAPTURE_IMPLICIT);
    return result;
}

/* The rule of cuThreadExchangeStreamCaptureMode's page for a thread of the default mode; the captures of all contexts
 * count. */
CuResult capture_check_unsafe(void) {
    CuResult result = CU_SUCCESS;
    for (int i = 0; i < MAX_DEVICES; i++)
        for (Capture *capture = driver.primary[i] ? driver.primary[i]->captures : NULL; capture;
             capture = capture->next) {
            bool own = pthread_equal(capture->thread, pthread_self());
            if (own ? capture->mode != CAPTURE_RELAXED : capture->mode == CAPTURE_GLOBAL)
                result = lose(capture, CU_STREAM_CAPTURE_UNSUPPORTED);
        }
    return result;
}
