/* trace.c: amp_trace: the module of a model.so, and what an observer saw of its functions (amp/trace.h). */
#include <string.h>

#include "amp/model_abi.h"
#include "base/error.h"
#include "compiler/compile_session.h"
#include "compiler/trace/trace.h"

struct amp_trace {
    Session session; /* whose arena everything is in */
    amp_allocator allocator;
    amp_observer observer;
    const Module *m;
    const char *const *reasons;
    TraceValues *values;   /* by function */
    TraceSearch *searches; /* by function */
    bool *is_seen;         /* by function: it ran in the last call of the session */
};

static const char *const fault_names[] = {"none", "data", "state", "overflow", "undefined"};

const char *amp_trace_fault_name(amp_trace_fault fault) {
    return (size_t)fault < sizeof fault_names / sizeof *fault_names ? fault_names[fault] : NULL;
}

/* ---- observing --------------------------------------------------------------------------------------------------- */

static int function_named(const Module *m, const char *name) {
    for (int i = 0; i < m->funcs.len; i++)
        if (!strcmp(m->funcs.data[i]->name, name)) return i;
    return -1;
}

/* What ends a step goes on with what the step's micro-batch left; every other program begins a call. */
static void begin_program(amp_trace *t, int function) {
    if (t->m->funcs.data[function]->kind != PROGRAM_APPLY_STEP)
        memset(t->is_seen, 0, (size_t)t->m->funcs.len * sizeof *t->is_seen);
    trace_values_clear(&t->values[function]);
    t->is_seen[function] = true;
}

static amp_status see_kernel(void *user, const amp_observed_kernel *kernel, amp_error *err) {
    amp_trace *t = user;
    const int function = function_named(t->m, kernel->program);
    if (function < 0)
        return amp_fail(err, AMP_MISMATCH, "the trace is for %s, which has no program %s: it belongs to another model",
                        t->m->name, kernel->program);
    if (kernel->index == 0) begin_program(t, function);
    return trace_values_note(&t->values[function], kernel, &t->allocator, err);
}

const amp_observer *amp_trace_observer(const amp_trace *trace) { return trace ? &trace->observer : NULL; }

/* ---- making ------------------------------------------------------------------------------------------------------ */

static amp_status read_model(amp_trace *t, const char *device, amp_error *err) {
    Session *s = &t->session;
    const bool is_cuda = device && !strcmp(device, "cuda");
    Module *m = NULL;
    if (device && !is_cuda && strcmp(device, "cpu") != 0)
        return amp_fail(err, AMP_INVALID_ARGUMENT, "unknown device '%s'; use cpu or cuda", device);
    AMP_TRY(session_open(s, err));
    if (!model_so_is(s->source))
        return amp_fail(err, AMP_BAD_FILE, "%s: is not a model.so; give the one that the session was created from",
                        s->source->name);
    AMP_TRY(model_so_module(s, is_cuda ? AMP_MODEL_CUDA_IR_SECTION : AMP_MODEL_IR_SECTION, &m, err));
    t->m = m;
    t->reasons = trace_reasons_new(m);
    t->values = arena_array(&s->arena, TraceValues, m->funcs.len + 1);
    t->searches = arena_array(&s->arena, TraceSearch, m->funcs.len + 1);
    t->is_seen = arena_array(&s->arena, bool, m->funcs.len + 1);
    for (int i = 0; i < m->funcs.len; i++) {
        t->values[i] = trace_values_new(m->funcs.data[i]);
        t->searches[i] = trace_search_new(m->funcs.data[i]);
    }
    return AMP_OK;
}

typedef struct CreateArguments {
    const char *device;
    amp_trace *t;
} CreateArguments;

static amp_status create(void *arguments, amp_error *err) {
    const CreateArguments *a = arguments;
    amp_trace *t = a->t;
    amp_status status;
    if (setjmp(t->session.arena.out_of_memory)) status = session_out_of_memory(&t->session, err);
    else status = read_model(t, a->device, err);
    if (status) session_close(&t->session);
    return status;
}

amp_status amp_trace_create(const amp_compile_options *options, const char *device, amp_trace **out, amp_error *err) {
    Session probe;
    if (!out) return amp_fail(err, AMP_INVALID_ARGUMENT, "amp_trace_create: out is NULL");
    *out = NULL;
    AMP_TRY(session_init(&probe, options, err));
    const amp_allocator allocator = amp_allocator_or_default(probe.options.allocator);
    amp_trace *t = amp_alloc_zeroed(&allocator, sizeof *t);
    if (!t) return amp_fail(err, AMP_OUT_OF_MEMORY, "amp_trace_create: no memory");
    t->allocator = allocator;
    t->observer = (amp_observer){.struct_size = sizeof t->observer, .user = t, .kernel = see_kernel};
    amp_status status = session_init(&t->session, options, err);
    if (!status) status = compiler_call(create, &(CreateArguments){device, t}, err);
    if (status) amp_free(&allocator, t, sizeof *t);
    else *out = t;
    return status;
}

void amp_trace_release(amp_trace *trace) {
    if (!trace) return;
    const amp_allocator allocator = trace->allocator;
    session_close(&trace->session);
    amp_free(&allocator, trace, sizeof *trace);
}

/* ---- finding ----------------------------------------------------------------------------------------------------- */

/* In the first of the programs that ran in which there is something; false: none ran. */
static bool find(const amp_trace *t, amp_trace_finding *out) {
    bool ran = false;
    for (int i = 0; i < t->m->funcs.len && !out->fault; i++) {
        if (!t->is_seen[i]) continue;
        const Val origin = trace_origin(&t->values[i], &t->searches[i]);
        ran = true;
        out->program = t->m->funcs.data[i]->name;
        if (origin.id) trace_describe(&t->values[i], &t->searches[i], t->reasons, origin, out);
    }
    return ran;
}

amp_status amp_trace_find(const amp_trace *trace, amp_trace_finding *out, amp_error *err) {
    amp_trace_finding found = {0};
    if (!trace || !out) return amp_fail(err, AMP_INVALID_ARGUMENT, "amp_trace_find: trace or out is NULL");
    const size_t size = out->struct_size < sizeof found ? out->struct_size : sizeof found;
    if (size < sizeof size)
        return amp_fail(err, AMP_INVALID_ARGUMENT, "amp_trace_find: struct_size is %zu; set it to sizeof",
                        out->struct_size);
    if (!find(trace, &found))
        return amp_fail(err, AMP_WRONG_STATE,
                        "amp_trace_find: the trace has observed no program yet: run a step first");
    found.struct_size = size;
    memcpy(out, &found, size);
    return AMP_OK;
}

amp_status amp_trace_op_at(const amp_trace *trace, int32_t index, amp_trace_op *out, amp_error *err) {
    amp_trace_op found = {0};
    bool ran = false;
    int32_t count = 0;
    if (!trace || !out) return amp_fail(err, AMP_INVALID_ARGUMENT, "amp_trace_op_at: trace or out is NULL");
    const size_t size = out->struct_size < sizeof found ? out->struct_size : sizeof found;
    if (size < sizeof size)
        return amp_fail(err, AMP_INVALID_ARGUMENT, "amp_trace_op_at: struct_size is %zu; set it to sizeof",
                        out->struct_size);
    for (int i = 0; i < trace->m->funcs.len; i++) {
        ran |= trace->is_seen[i];
        for (int place = 0; trace->is_seen[i] && place < trace->m->funcs.data[i]->body.len; place++) {
            if (!trace_describe_op(&trace->values[i], &trace->searches[i], place, &found) || count++ != index) continue;
            found.struct_size = size;
            memcpy(out, &found, size);
            return AMP_OK;
        }
    }
    if (!ran)
        return amp_fail(err, AMP_WRONG_STATE,
                        "amp_trace_op_at: the trace has observed no program yet: run a step first");
    return amp_fail(err, AMP_NOT_FOUND, "amp_trace_op_at: there is no op %d among %d", index, count);
}
