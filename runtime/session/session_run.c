/* session_run.c: one run of a program on the caller's arrays. */
#include <stdio.h>

#include "base/error.h"
#include "runtime/session/session.h"

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

static amp_status bad_index(const amp_model_input *in, int64_t sample, int32_t index, amp_error *err) {
    char ignored[48] = "";
    if (in->index_ignore != INT64_MIN)
        snprintf(ignored, sizeof ignored, " nor %lld (ignored)", (long long)in->index_ignore);
    return amp_fail(err, AMP_INVALID_ARGUMENT, "input %s, sample %lld: index %d is %sin 0 .. %lld%s", in->name,
                    (long long)sample, index, *ignored ? "neither " : "not ", (long long)in->index_bound - 1, ignored);
}

/* Indices address tables, and classes: one that is out of range would read elsewhere, or give a wrong loss in silence.
 */
static amp_status check_indices(const amp_model_input *in, const int32_t *index, int64_t n, amp_error *err) {
    int64_t per_sample = 1;
    for (uint32_t i = 1; i < in->rank; i++) per_sample *= amp_model_dim_at(&in->dims[i], n);
    int64_t count = per_sample * (in->rank ? amp_model_dim_at(&in->dims[0], n) : 1);
    for (int64_t i = 0; i < count; i++) {
        if (index[i] == in->index_ignore || (index[i] >= 0 && index[i] < in->index_bound)) continue;
        return bad_index(in, i / per_sample, index[i], err);
    }
    return AMP_OK;
}

static amp_status check_input(const amp_model_input *in, const void *array, int64_t n, amp_error *err) {
    if (!array) return amp_fail(err, AMP_INVALID_ARGUMENT, "input %s is NULL", in->name);
    return in->index_bound ? check_indices(in, array, n, err) : AMP_OK;
}

static amp_status check_inputs(const amp_session *s, const amp_bound_program *b, const void *const *inputs, int64_t n,
                               amp_error *err) {
    for (int32_t i = 0; i < b->program->buffer_count; i++) {
        const amp_model_buffer *buffer = &b->program->buffers[i];
        if (buffer->kind != AMP_BUFFER_INPUT) continue;
        if (!inputs) return amp_fail(err, AMP_INVALID_ARGUMENT, "inputs is NULL");
        AMP_TRY(check_input(&s->model->inputs[buffer->index], inputs[buffer->index], n, err));
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

amp_status amp_session_run_bound(const amp_session *s, const amp_bound_program *b, int64_t n, amp_error *err) {
    amp_run run = {.program = b->program,
                   .buffers = b->buffers,
                   .n = n,
                   .flags = b->flags,
                   .flag_bytes = b->flag_bytes,
                   .params = s->params->residency->memory,
                   .writes_params = writes_params(s, b) || b == &s->programs[AMP_RUN_REFRESH],
                   .poisons_temporaries = b->options.sharing == AMP_OWN_ALLOCATIONS && !b->options.watch};
    if (s->device->type->device_memory && writes_params(s, b)) amp_params_changed_on_device(s->params);
    return s->device->type->run(s->device, &run, err);
}

static amp_status refresh(amp_session *s, amp_error *err) {
    amp_params *p = s->params;
    if (!s->device->type->computes || !atomic_load(&p->stale)) return AMP_OK;
    pthread_mutex_lock(&p->refreshing);
    amp_status status = amp_params_reach_device(p, err);
    if (!status && s->programs[AMP_RUN_REFRESH].program && atomic_load(&p->stale))
        status = amp_session_run_bound(s, &s->programs[AMP_RUN_REFRESH], s->model->batch_multiple, err);
    if (!status) atomic_store(&p->stale, false);
    pthread_mutex_unlock(&p->refreshing);
    return status;
}

amp_status amp_session_run(amp_session *s, amp_bound_program *b, const void *const *inputs, int64_t n, amp_error *err) {
    AMP_TRY(check_n(s, n, err));
    AMP_TRY(check_inputs(s, b, inputs, n, err));
    AMP_TRY(refresh(s, err));
    bind_inputs(b, inputs);
    return amp_session_run_bound(s, b, n, err);
}
