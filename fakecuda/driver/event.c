/* event.c: events. */
#include <stdlib.h>

#include "fakecuda/driver/driver.h"

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
    if (e->marker && !e->marker->done) queue_run_to(e->marker->stream, e->marker->sequence);
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
