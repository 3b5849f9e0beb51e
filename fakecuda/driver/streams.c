/* streams.c: streams and events. */
#include <stdlib.h>

#include "fakecuda/driver/driver.h"

/* ---- streams ----------------------------------------------------------------------------------------------------- */

enum { STREAM_LEGACY = 1, STREAM_PER_THREAD = 2 };

CuResult stream_find(Context *c, CuStream handle, Stream **out) {
    uintptr_t bits = (uintptr_t)handle;
    if (bits == STREAM_PER_THREAD) {
        text_add(&report.unknown, "stream CU_STREAM_PER_THREAD");
        return CU_NOT_SUPPORTED;
    }
    *out = bits <= STREAM_LEGACY ? c->legacy : handle_object(HANDLE_STREAM, handle);
    if (!*out) return CU_INVALID_HANDLE;
    if ((*out)->context == c) return CU_SUCCESS;
    report_misuse("a stream is used with another context than its own");
    return CU_INVALID_HANDLE;
}

CuResult stream_submit(Stream *s, const Work *work) {
    Work w = *work;
    if (s->capture) return capture_add(s, &w);
    CuResult refused = capture_check_legacy(s);
    if (refused != CU_SUCCESS) work_free(&w);
    else queue_add(s, &w, NULL, NULL);
    return refused;
}

CuResult stream_create(Context *c, CuStream *out, unsigned int flags) {
    if (!out || flags & ~(unsigned)CU_STREAM_NON_BLOCKING) return CU_INVALID_VALUE;
    Stream *s = must_alloc(sizeof *s);
    *s = (Stream){.context = c, .next = c->streams, .blocking = !(flags & CU_STREAM_NON_BLOCKING)};
    c->streams = s;
    s->handle = *out = handle_new(HANDLE_STREAM, s, c);
    return CU_SUCCESS;
}

static void free_finished(Context *c) {
    for (Stream **link = &c->streams; *link;) {
        Stream *s = *link;
        if (s->handle || s->legacy || s->head) {
            link = &s->next;
            continue;
        }
        *link = s->next;
        free(s->frontier.nodes);
        free(s);
    }
}

/* Work that is left runs on: the stream without a handle goes when it has run out. */
CuResult stream_destroy(Context *c, CuStream handle) {
    Stream *s;
    if ((uintptr_t)handle <= STREAM_PER_THREAD) return CU_INVALID_HANDLE;
    CuResult found = stream_find(c, handle, &s);
    if (found != CU_SUCCESS) return found;
    if (s->capture) capture_leave(s);
    handle_end(s->handle);
    s->handle = NULL;
    free_finished(c);
    return CU_SUCCESS;
}

static CuResult may_wait(Context *c, CuStream handle, Stream **s) {
    CuResult result = stream_find(c, handle, s);
    if (result == CU_SUCCESS && (*s)->capture) result = capture_refuse(*s);
    if (result == CU_SUCCESS) result = capture_check_legacy(*s);
    return result == CU_SUCCESS ? capture_check_unsafe() : result;
}

/* Whether there is work that the stream's own end waits for: its own and, for the legacy stream, the blocking
 * streams' work. */
static bool is_busy(const Stream *s) {
    bool busy = s->head != NULL;
    if (s->legacy)
        for (const Stream *other = s->context->streams; other; other = other->next)
            busy |= other->blocking && other->head;
    return busy;
}

CuResult stream_sync(Context *c, CuStream handle) {
    Stream *s;
    CuResult result = may_wait(c, handle, &s);
    if (result != CU_SUCCESS) return result;
    report.waits[CALL_cuStreamSynchronize]++;
    queue_run_to(s, UINT64_MAX);
    if (s->legacy)
        for (Stream *other = c->streams; other; other = other->next)
            if (other->blocking) queue_run_to(other, UINT64_MAX);
    return CU_SUCCESS;
}

/* Asking is a call like others, so chance has let the device go on before: who asks often enough gets there. */
CuResult stream_query(Context *c, CuStream handle) {
    Stream *s;
    CuResult result = may_wait(c, handle, &s);
    if (result != CU_SUCCESS) return result;
    return is_busy(s) ? CU_NOT_READY : CU_SUCCESS;
}

CuResult stream_wait(Context *c, CuStream handle, CuEvent event, unsigned int flags) {
    Stream *s;
    Event *e = handle_object(HANDLE_EVENT, event);
    CuResult found = stream_find(c, handle, &s);
    if (found != CU_SUCCESS) return found;
    if (!e) return CU_INVALID_HANDLE;
    if (flags) return CU_INVALID_VALUE;
    if (s->capture || e->capture) return capture_wait(s, e);
    CuResult refused = capture_check_legacy(s);
    if (refused != CU_SUCCESS) return refused;
    s->waits_inside = e->marker && e->marker->inside;
    if (e->marker && !e->marker->done) queue_add(s, &(Work){.kind = WORK_NOTHING}, marker_hold(e->marker), NULL);
    return CU_SUCCESS;
}

CuResult stream_context(CuStream handle, CuContext *out) {
    Stream *s;
    Context *c;
    if (!out) return CU_INVALID_VALUE;
    CuResult found = context_current(&c);
    if (found != CU_SUCCESS) return found;
    if ((uintptr_t)handle <= STREAM_PER_THREAD) {
        *out = c->handle;
        return CU_SUCCESS;
    }
    s = handle_object(HANDLE_STREAM, handle);
    if (!s) return CU_INVALID_HANDLE;
    *out = s->context->handle;
    return CU_SUCCESS;
}

/* ---- events ------------------------------------------------------------------------------------------------------ */

enum { BLOCKING_SYNC = 1, INTERPROCESS = 4 };

CuResult event_create(Context *c, CuEvent *out, unsigned int flags) {
    if (!out || flags & ~(unsigned)(BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | INTERPROCESS)) return CU_INVALID_VALUE;
    if (flags & INTERPROCESS) return CU_NOT_SUPPORTED;
    Event *e = must_alloc(sizeof *e);
    *e = (Event){.context = c, .timing = !(flags & CU_EVENT_DISABLE_TIMING)};
    e->handle = *out = handle_new(HANDLE_EVENT, e, c);
    return CU_SUCCESS;
}

static void forget_record(Event *e) {
    marker_drop(e->marker);
    free(e->frontier.nodes);
    e->marker = NULL;
    e->capture = 0;
    e->frontier = (struct Frontier){0};
}

void event_free(Event *e) {
    forget_record(e);
    handle_end(e->handle);
    free(e);
}

CuResult event_destroy(CuEvent handle) {
    Event *e = handle_object(HANDLE_EVENT, handle);
    if (!e) return CU_INVALID_HANDLE;
    event_free(e);
    return CU_SUCCESS;
}

CuResult event_record(Context *c, CuEvent handle, CuStream stream) {
    Event *e = handle_object(HANDLE_EVENT, handle);
    Stream *s;
    CuResult found = stream_find(c, stream, &s);
    if (found != CU_SUCCESS) return found;
    if (!e || e->context != s->context) return CU_INVALID_HANDLE;
    if (s->capture) {
        forget_record(e);
        return capture_record(s, e);
    }
    CuResult refused = capture_check_legacy(s);
    if (refused != CU_SUCCESS) return refused;
    forget_record(e);
    e->marker = marker_new();
    queue_add(s, &(Work){.kind = WORK_NOTHING}, NULL, marker_hold(e->marker));
    return CU_SUCCESS;
}

CuResult event_record_flags(Context *c, CuEvent handle, CuStream stream, unsigned int flags) {
    Stream *s;
    CuResult found = stream_find(c, stream, &s);
    const Event *e = handle_object(HANDLE_EVENT, handle);
    if (flags == CU_EVENT_RECORD_DEFAULT) return event_record(c, handle, stream);
    if (found != CU_SUCCESS) return found;
    if (!e || e->context != s->context) return CU_INVALID_HANDLE;
    if (flags != CU_EVENT_RECORD_EXTERNAL || !s->capture) return CU_INVALID_VALUE;
    return capture_add(s, &(Work){.kind = WORK_RECORD, .event = handle});
}

/* A launch of a graph records its events anew: who waits from now on waits for this launch. */
CuResult event_record_launch(CuEvent handle, Marker *m) {
    Event *e = handle_object(HANDLE_EVENT, handle);
    if (!e) return CU_INVALID_VALUE;
    forget_record(e);
    e->marker = marker_hold(m);
    return CU_SUCCESS;
}

static CuResult find_recorded(CuEvent handle, Event **e) {
    *e = handle_object(HANDLE_EVENT, handle);
    if (!*e) return CU_INVALID_HANDLE;
    if (!(*e)->capture) return CU_SUCCESS;
    Capture *capture = capture_by_id((*e)->context, (*e)->capture);
    if (capture) capture->invalid = true;
    return CU_CAPTURED_EVENT;
}

CuResult event_sync(CuEvent handle) {
    Event *e;
    CuResult found = find_recorded(handle, &e);
    if (found != CU_SUCCESS) return found;
    report.waits[CALL_cuEventSynchronize]++;
    if (e->marker) queue_run_until(e->marker);
    return CU_SUCCESS;
}

CuResult event_query(CuEvent handle) {
    Event *e;
    CuResult found = find_recorded(handle, &e);
    if (found != CU_SUCCESS) return found;
    return e->marker && !e->marker->done ? CU_NOT_READY : CU_SUCCESS;
}

CuResult event_elapsed(float *milliseconds, CuEvent start, CuEvent end) {
    Event *a, *b;
    if (!milliseconds) return CU_INVALID_VALUE;
    CuResult found = find_recorded(start, &a);
    if (found == CU_SUCCESS) found = find_recorded(end, &b);
    if (found != CU_SUCCESS) return found;
    if (!a->timing || !b->timing || !a->marker || !b->marker || a->context != b->context) return CU_INVALID_HANDLE;
    if (!a->marker->done || !b->marker->done) return CU_NOT_READY;
    *milliseconds = (float)(((double)b->marker->nanoseconds - (double)a->marker->nanoseconds) * 1e-6);
    return CU_SUCCESS;
}
