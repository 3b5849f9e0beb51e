/* session_run.c: runs of programs on the caller's arrays: amp_eval and amp_infer; session_step.c has amp_step. */
#include "runtime/session/session.h"

#include <string.h>

#include "base/error.h"
#include "base/float_environment.h"

/* ---- checks: before anything changes ----------------------------------------------------------------------------- */

static amp_status check_n(const amp_session *s, int64_t n, amp_error *err) {
    if (n < 1 || n > s->capacity)
        return amp_fail(err, AMP_INVALID_ARGUMENT, "n is %lld; this session takes 1 to %lld samples (its capacity)",
                        (long long)n, (long long)s->capacity);
    if (n % s->model->batch_multiple)
        return amp_fail(err, AMP_INVALID_ARGUMENT, "n is %lld; %s takes multiples of %lld samples", (long long)n,
                        s->model->desc.name, (long long)s->model->batch_multiple);
    return AMP_OK;
}

/* Indices address tables, and classes: one that is out of range would read elsewhere, or give a wrong loss in silence.
 */
static amp_status check_indices(const amp_model_input *in, const int32_t *index, int64_t n, amp_error *err) {
    int64_t per_sample = 1;
    for (uint32_t i = 1; i < in->rank; i++) per_sample *= amp_model_dim_at(&in->dims[i], n);
    int64_t count = per_sample * (in->rank ? amp_model_dim_at(&in->dims[0], n) : 1);
    for (int64_t i = 0; i < count; i++) {
        if (index[i] == in->index_ignore || (index[i] >= 0 && index[i] < in->index_bound)) continue;
        return amp_session_bad_index(in, i / per_sample, index[i], err);
    }
    return AMP_OK;
}

/* Kernels are C: they read numbers where a number can be. */
static amp_status check_alignment(const char *what, const char *name, const void *array, size_t align, amp_error *err) {
    if ((uintptr_t)array % align == 0) return AMP_OK;
    return amp_fail(err, AMP_INVALID_ARGUMENT,
                    "%s %s: the array at %p is not aligned to its elements of %zu bytes; copy it", what, name, array,
                    align);
}

static amp_status check_input(const amp_session *s, const amp_model_buffer *buffer, const void *array, int64_t n,
                              amp_error *err) {
    const amp_model_input *in = &s->model->inputs[buffer->index];
    if (!array) return amp_fail(err, AMP_INVALID_ARGUMENT, "input %s is NULL", in->name);
    AMP_TRY(check_alignment("input", in->name, array, amp_dtype_size((amp_dtype)in->dtype), err));
    if (s->inputs_in) AMP_TRY(amp_session_check_memory(s, buffer, array, n, err));
    return in->index_bound && s->inputs_in != AMP_INPUTS_DEVICE ? check_indices(in, array, n, err) : AMP_OK;
}

static amp_status check_inputs(const amp_session *s, const amp_bound_program *b, const void *const *inputs, int64_t n,
                               amp_error *err) {
    for (int32_t i = 0; i < b->program->buffer_count; i++) {
        const amp_model_buffer *buffer = &b->program->buffers[i];
        if (buffer->kind != AMP_BUFFER_INPUT) continue;
        if (!inputs) return amp_fail(err, AMP_INVALID_ARGUMENT, "inputs is NULL");
        AMP_TRY(check_input(s, buffer, inputs[buffer->index], n, err));
    }
    return AMP_OK;
}

/* ---- running ----------------------------------------------------------------------------------------------------- */

/* The ABI's buffers are not const because most are written; inputs are only read. */
static void bind_inputs(amp_bound_program *b, const void *const *inputs) {
    for (int32_t i = 0; i < b->program->buffer_count; i++)
        if (b->program->buffers[i].kind == AMP_BUFFER_INPUT)
            b->buffers[i] = (void *)(uintptr_t)inputs[b->program->buffers[i].index];
}

/* Masters and saved buffers; "refresh" writes what is derived from them. */
static bool writes_params(const amp_session *s, const amp_bound_program *b) {
    return b == &s->programs[AMP_RUN_TRAIN_STEP] || b == &s->programs[AMP_RUN_APPLY_STEP];
}

/* What derives weights, and metrics of averages, is no part of what an application computes. */
static bool is_observed(const amp_session *s, const amp_bound_program *b) {
    return s->observer.kernel && b != &s->programs[AMP_RUN_REFRESH] && b != &s->programs[AMP_RUN_METRICS] &&
           b != &s->programs[AMP_RUN_FIGURES] && b != &s->programs[AMP_RUN_STATISTICS];
}

amp_status amp_session_run_bound(const amp_session *s, const amp_bound_program *b, int64_t n, amp_error *err) {
    amp_run run = {.program = b->program,
                   .buffers = b->buffers,
                   .n = n,
                   .inputs_in = amp_session_inputs_of(s, b),
                   .flags = b->flags,
                   .flag_bytes = b->flag_bytes,
                   .params = s->params->residency->memory,
                   .writes_params = writes_params(s, b) || b == &s->programs[AMP_RUN_REFRESH],
                   .poisons_temporaries = b->options.sharing == AMP_OWN_ALLOCATIONS && !b->options.watch};
    run.hooks = amp_session_exchange_hooks(s, b);
    if (b == &s->programs[AMP_RUN_APPLY_STEP]) run.shares = s->shares.of;
    if (b == &s->programs[AMP_RUN_STATISTICS]) run.batches = s->batches;
    if (b == &s->programs[AMP_RUN_TRAIN_STEP]) amp_session_masters_leave(s);
    const amp_observed_run observed = {s, b, n};
    if (is_observed(s, b) || amp_session_looks_at_kernels(s)) {
        run.after_kernel = amp_session_observe_kernel;
        run.watcher = &observed;
        run.watcher_waits = s->observer.kernel && !s->observer.does_not_wait;
    }
    if (s->device->type->device_memory && writes_params(s, b)) amp_params_changed_on_device(s->params);
    return s->device->type->run(s->device, &run, err);
}

amp_status amp_session_refresh(amp_session *s, amp_error *err) {
    amp_params *p = s->params;
    if (!s->device->type->computes || !atomic_load(&p->stale)) return AMP_OK;
    pthread_mutex_lock(&p->refreshing);
    if (amp_params_set_on_host(p)) s->shares.current = false;
    amp_status status = amp_params_reach_device(p, err);
    if (!status) status = amp_session_take_masters(s, err);
    if (!status && s->programs[AMP_RUN_REFRESH].program && atomic_load(&p->stale))
        status = amp_session_run_bound(s, &s->programs[AMP_RUN_REFRESH], s->model->batch_multiple, err);
    if (!status) atomic_store(&p->stale, false);
    pthread_mutex_unlock(&p->refreshing);
    return status;
}

amp_status amp_session_run(amp_session *s, amp_bound_program *b, const void *const *inputs, int64_t n, amp_error *err) {
    AMP_TRY(check_n(s, n, err));
    AMP_TRY(check_inputs(s, b, inputs, n, err));
    if (s->published) amp_session_read_newest(s);
    else AMP_TRY(amp_session_refresh(s, err));
    bind_inputs(b, inputs);
    amp_session_begin_look(s, b, n);
    const amp_status status = amp_session_run_bound(s, b, n, err);
    amp_session_end_look(s, n, status);
    return status;
}

/* ---- inference: results are computed into the caller's arrays ---------------------------------------------------- */

static bool is_output(const amp_bound_program *b, int32_t result) {
    return b->program->buffers[b->program->results[result].buffer].kind == AMP_BUFFER_OUTPUT;
}

/* Two results may share a buffer: the later one is where it is computed, the other is copied. */
static void bind_outputs(amp_bound_program *b, void *const *outputs) {
    for (int32_t i = 0; i < b->program->result_count; i++)
        if (is_output(b, i)) b->buffers[b->program->results[i].buffer] = outputs[i];
}

static amp_status copy_others(amp_session *s, int64_t n, void *const *outputs, amp_error *err) {
    const amp_bound_program *b = &s->programs[AMP_RUN_INFER];
    for (int32_t i = 0; i < b->program->result_count; i++) {
        int32_t buffer = b->program->results[i].buffer;
        if (b->buffers[buffer] != outputs[i]) AMP_TRY(amp_session_read_buffer(s, b, buffer, n, outputs[i], err));
    }
    return AMP_OK;
}

static amp_status check_outputs(const amp_program *p, void *const *outputs, amp_error *err) {
    for (int32_t i = 0; i < p->result_count; i++) {
        const amp_model_result *r = &p->results[i];
        if (!outputs || !outputs[i])
            return amp_fail(err, AMP_INVALID_ARGUMENT, "amp_infer: the array for result %s is NULL", r->name);
        AMP_TRY(check_alignment("result", r->name, outputs[i], amp_dtype_size(amp_readable_dtype(r->dtype)), err));
    }
    return AMP_OK;
}

amp_status amp_infer(amp_session *session, const void *const *inputs, int64_t n, void *const *outputs, amp_error *err) {
    AMP_DEFAULT_FLOAT_ENVIRONMENT();
    if (!session) return amp_fail(err, AMP_INVALID_ARGUMENT, "amp_infer: session is NULL");
    amp_bound_program *infer = &session->programs[AMP_RUN_INFER];
    if (!infer->program)
        return amp_fail(err, AMP_WRONG_STATE, "amp_infer: %s was compiled without infer", session->model->desc.name);
    AMP_TRY(check_outputs(infer->program, outputs, err));
    if (!amp_session_has_device_memory(session)) bind_outputs(infer, outputs);
    AMP_TRY(amp_session_run(session, infer, inputs, n, err));
    if (session->inputs_in == AMP_INPUTS_DEVICE) {
        AMP_TRY(amp_session_start_readback(session, &(amp_readback_run){.n = n}, err));
        AMP_TRY(amp_session_settle(session, true, err));
    }
    return copy_others(session, n, outputs, err);
}
