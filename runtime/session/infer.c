/* infer.c: amp_infer: results are computed into the caller's arrays. */
#include "base/error.h"
#include "runtime/session/session_device_memory.h"

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

amp_status amp_infer(amp_session *session, const void *const *inputs, int64_t n, void *const *outputs, amp_error *err) {
    if (!session) return amp_fail(err, AMP_INVALID_ARGUMENT, "amp_infer: session is NULL");
    amp_bound_program *infer = &session->programs[AMP_RUN_INFER];
    if (!infer->program)
        return amp_fail(err, AMP_WRONG_STATE, "amp_infer: %s was compiled without infer", session->model->desc.name);
    for (int32_t i = 0; i < infer->program->result_count; i++)
        if (!outputs || !outputs[i])
            return amp_fail(err, AMP_INVALID_ARGUMENT, "amp_infer: the array for result %s is NULL",
                            infer->program->results[i].name);
    if (!amp_session_has_device_memory(session)) bind_outputs(infer, outputs);
    AMP_TRY(amp_session_run(session, infer, inputs, n, err));
    return copy_others(session, n, outputs, err);
}
