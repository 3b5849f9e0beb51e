/* context.c: primary contexts, each thread's stack of current ones, and their end. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fakecuda/driver/driver.h"

enum { MAX_DEPTH = 64 };
static _Thread_local CuContext current[MAX_DEPTH];
static _Thread_local int depth;

static Context *context_new(CuDevice device) {
    ExecMemory *memory = exec_memory_new(driver.settings.memory);
    if (!memory) {
        fprintf(stderr, "fakecuda: no address space for a device of %llu bytes; see FAKECUDA_MEMORY\n",
                (unsigned long long)driver.settings.memory);
        return NULL;
    }
    Context *c = must_alloc(sizeof *c);
    c->device = device;
    c->memory = memory;
    c->alu = (AluContext){.arch = driver.settings.arch, .seed = driver.settings.seed, .exact = driver.settings.exact};
    c->legacy = must_alloc(sizeof *c->legacy);
    *c->legacy = (Stream){.context = c, .legacy = true};
    c->streams = c->legacy;
    c->handle = handle_new(HANDLE_CONTEXT, c, c);
    return c;
}

CuResult context_retain(CuContext *out, CuDevice device) {
    if (!out) return CU_INVALID_VALUE;
    if (device < 0 || device >= driver.settings.devices) return CU_INVALID_DEVICE;
    Context **c = &driver.primary[device];
    if (!*c) *c = context_new(device);
    if (!*c) return CU_OUT_OF_MEMORY;
    (*c)->references++;
    *out = (*c)->handle;
    return CU_SUCCESS;
}

/* ---- the end ------------------------------------------------------------------------------------- */

static void tell_leak(HandleKind kind, void *object, void *user) {
    (void)object, (void)user;
    if (kind == HANDLE_CONTEXT || kind == HANDLE_FUNCTION || kind == HANDLE_GRAPH_NODE)
        return; /* these go with what they belong to */
    report_leak("%s", handle_kind_names[kind]);
}

static void tell_leaks(Context *c) {
    if (c->sticky) return; /* nothing could be given back any more */
    for (int i = 0; i < c->allocation_count; i++) {
        const Allocation *a = &c->allocations[i];
        report_leak("device memory: allocation %llu, of %llu bytes", (unsigned long long)a->number,
                    (unsigned long long)a->bytes);
    }
    host_leaks(c);
    handle_each(c, tell_leak, NULL);
}

static void end_object(HandleKind kind, void *object, void *user) {
    (void)user;
    switch (kind) {
    case HANDLE_MODULE: module_free(object); break;
    case HANDLE_EVENT: event_free(object); break;
    case HANDLE_GRAPH: graph_forget(object); break;
    case HANDLE_GRAPH_EXEC: graph_exec_free(object); break;
    case HANDLE_CONTEXT: handle_end(((Context *)object)->handle); break;
    case HANDLE_STREAM: handle_end(((Stream *)object)->handle); break;
    default: break; /* functions and nodes went with their owners */
    }
}

static void context_end(Context *c) {
    report.unfinished += (uint64_t)queue_length(c);
    queue_drop_all(c);
    capture_free_all(c);
    handle_each(c, end_object, NULL);
    host_free_all(c);
    for (Stream *s = c->streams, *next; s; s = next) {
        next = s->next;
        free(s->frontier.nodes);
        free(s);
    }
    exec_memory_free(c->memory);
    free(c->allocations);
    driver.primary[c->device] = NULL;
    free(c);
}

CuResult context_release(CuDevice device) {
    if (device < 0 || device >= driver.settings.devices) return CU_INVALID_DEVICE;
    Context *c = driver.primary[device];
    if (!c) {
        report_misuse("the primary context of device %d is given back more often than it was taken", device);
        return CU_INVALID_CONTEXT;
    }
    if (--c->references) return CU_SUCCESS;
    queue_run_all(c);
    tell_leaks(c);
    context_end(c);
    return CU_SUCCESS;
}

void contexts_leaks(void) {
    for (int i = 0; i < MAX_DEVICES; i++) {
        Context *c = driver.primary[i];
        if (!c) continue;
        if (!c->sticky) report_leak("primary context of device %d, taken %d times", i, c->references);
        tell_leaks(c);
        report.unfinished += (uint64_t)queue_length(c);
    }
}

void contexts_abandon(void) {
    for (int i = 0; i < MAX_DEVICES; i++)
        if (driver.primary[i]) context_end(driver.primary[i]);
    depth = 0;
}

void context_fail(Context *c, CuResult error, const char *message) {
    if (c->sticky) return;
    c->sticky = error;
    report_fault(error, message);
    queue_drop_all(c);
}

/* ---- the current one ----------------------------------------------------------------------------- */

CuResult context_push(CuContext handle) {
    if (!handle_object(HANDLE_CONTEXT, handle)) return CU_INVALID_CONTEXT;
    if (depth == MAX_DEPTH) {
        report_misuse("more than %d contexts are pushed on one thread", MAX_DEPTH);
        return CU_INVALID_VALUE;
    }
    current[depth++] = handle;
    return CU_SUCCESS;
}

CuResult context_pop(CuContext *out) {
    if (depth == 0) return CU_INVALID_CONTEXT;
    depth--;
    if (out) *out = current[depth];
    return CU_SUCCESS;
}

CuResult context_get_current(CuContext *out) {
    if (!out) return CU_INVALID_VALUE;
    *out = depth ? current[depth - 1] : NULL;
    return CU_SUCCESS;
}

CuResult context_current(Context **out) {
    if (depth == 0) return CU_INVALID_CONTEXT;
    *out = handle_object(HANDLE_CONTEXT, current[depth - 1]);
    return *out ? CU_SUCCESS : CU_CONTEXT_IS_DESTROYED;
}

CuResult context_sync(Context *c, CallId id) {
    if (c->captures) { /* in relaxed mode too: the wait could never end */
        for (Capture *capture = c->captures; capture; capture = capture->next) capture->invalid = true;
        return CU_STREAM_CAPTURE_UNSUPPORTED;
    }
    report.waits[id]++;
    queue_run_all(c);
    return CU_SUCCESS;
}
