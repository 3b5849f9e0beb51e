/* device_inputs.c: inputs that the application has in page-locked memory, or in device memory.
 *
 * Of the latter the host cannot look at indices before a run.  The device replaces those that are out of range as it
 * takes them, so that no kernel reads past a table, and keeps the first; it is told of when its run is read back. */
#include <stdio.h>

#include "base/error.h"
#include "runtime/model/matrix_layout.h"
#include "runtime/session/session.h"

amp_status amp_session_bad_index(const amp_model_input *in, int64_t sample, int32_t index, amp_error *err) {
    char ignored[48] = "";
    if (in->index_ignore != INT64_MIN)
        snprintf(ignored, sizeof ignored, " nor %lld (ignored)", (long long)in->index_ignore);
    return amp_fail(err, AMP_INVALID_ARGUMENT, "input %s, sample %lld: index %d is %sin 0 .. %lld%s", in->name,
                    (long long)sample, index, *ignored ? "neither " : "not ", (long long)in->index_bound - 1, ignored);
}

/* Metrics of averages take numbers of the session's own. */
amp_input_memory amp_session_inputs_of(const amp_session *s, const amp_bound_program *b) {
    const bool own = b == &s->programs[AMP_RUN_METRICS] || b == &s->programs[AMP_RUN_FIGURES];
    return own ? AMP_INPUTS_HOST : s->inputs_in;
}

amp_status amp_session_check_memory(const amp_session *s, const amp_model_buffer *b, const void *array, amp_sizes sizes,
                                    amp_error *err) {
    const amp_model_input *in = &s->model->inputs[b->index];
    const uint64_t count = (uint64_t)(amp_model_dim_at(&b->rows, sizes) * amp_model_dim_at(&b->cols, sizes));
    if (s->inputs_in == AMP_INPUTS_DEVICE && in->index_bound && count > UINT32_MAX) /* of an amp_index_fault */
        return amp_fail(err, AMP_UNSUPPORTED, "input %s: %llu indices in device memory; at most %u can be checked",
                        in->name, (unsigned long long)count, UINT32_MAX);
    return s->device->type->device_memory->check_array(s->device, s->inputs_in, in->name, array,
                                                       (size_t)count * amp_storage_size(b->storage), err);
}

amp_status amp_session_alloc_pinned(amp_session *s, size_t bytes, void **out, amp_error *err) {
    if (out) *out = NULL;
    if (!s || !out) return amp_fail(err, AMP_INVALID_ARGUMENT, "amp_session_alloc_pinned: session or out is NULL");
    const amp_device_type *type = s->device->type;
    if (!type->device_memory || !type->device_memory->alloc_pinned)
        return amp_fail(err, AMP_UNSUPPORTED, "amp_session_alloc_pinned: sessions on %s read any memory", type->name);
    return type->device_memory->alloc_pinned(s->device, bytes ? bytes : 1, out, err);
}

void amp_session_free_pinned(amp_session *s, void *memory) {
    const amp_device_memory_calls *calls = s && memory ? s->device->type->device_memory : NULL;
    if (calls && calls->free_pinned) calls->free_pinned(s->device, memory);
}

void amp_session_note_fault(const amp_session *s, const amp_readback_run *run) {
    amp_session_readback *r = s->readback;
    const amp_index_fault *faults = (const amp_index_fault *)(const void *)(r->host + r->faults_at);
    for (int32_t i = 0; run->sizes.n && !r->fault.first && i < s->model->all_input_count; i++) {
        r->fault.first = faults[i];
        r->fault.input = i;
        r->fault.sizes = run->sizes;
    }
}

amp_status amp_session_tell_fault(const amp_session *s, amp_error *err) {
    amp_session_readback *r = s->readback;
    if (!r->fault.first) return AMP_OK;
    const amp_model_input *in = &s->model->inputs[r->fault.input];
    const uint64_t first = ~r->fault.first;
    int64_t per_sample = 1;
    for (uint32_t i = 1; i < in->rank; i++) per_sample *= amp_model_dim_at(&in->dims[i], r->fault.sizes);
    r->fault.first = 0;
    amp_error said;
    const amp_status status =
        amp_session_bad_index(in, (int64_t)(first >> 32) / per_sample, (int32_t)(uint32_t)first, &said);
    return amp_fail(err, status, "%s; it was in device memory, and its call computed with %d in its place",
                    said.message, amp_index_instead(in));
}
