/* graph.c: graphs, which only stream capture makes, and their launches. */
#include <stdlib.h>
#include <string.h>

#include "fakecuda/driver/driver.h"

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

void graph_run(Context *c, Graph *g, uint64_t seed) {
    bool *done = must_alloc((size_t)g->count * sizeof *done);
    for (int first = 0; first < g->count && !c->sticky;) {
        int node = pick(g, done, first);
        Work *w = &g->nodes[node].work;
        w->seed = seed * 0x9e3779b97f4a7c15ull + (uint64_t)node;
        work_run(c, w);
        Function *f = w->kind == WORK_KERNEL && !c->sticky ? handle_object(HANDLE_FUNCTION, w->function) : NULL;
        if (f) f->row->graph_launches++;
        done[node] = true;
        while (first < g->count && done[first]) first++;
    }
    free(done);
}

/* ---- calls --------------------------------------------------------------------------------------- */

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
    Work work = {.kind = WORK_GRAPH, .graph = graph_hold(x->graph), .seed = driver.settings.seed + ++driver.launches};
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
