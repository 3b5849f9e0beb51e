/* capture.c: stream capture.  What is asked of a stream in capture becomes a node of a graph, which depends on the
 * stream's last nodes (its frontier). */
#include <stdlib.h>
#include <string.h>

#include "fakecuda/driver/driver.h"

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

/* ---- begin, end ---------------------------------------------------------------------------------- */

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

/* ---- work ---------------------------------------------------------------------------------------- */

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

/* ---- what may not be done beside a capture ------------------------------------------------------- */

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
