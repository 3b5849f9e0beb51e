/* published_session.c: sessions that read the newest version of their params; publish.c makes versions. */
#include "base/error.h"
#include "runtime/params/published.h"
#include "runtime/session/session.h"

amp_status amp_session_check_published(const amp_params *params, const amp_device_type *type, amp_error *err) {
    if (type->device_memory)
        return amp_fail(err, AMP_UNSUPPORTED,
                        "%s: published versions are in the host's memory, the device %s reads its own; use the device "
                        "cpu for sessions with published = 1",
                        params->model->desc.name, type->name);
    if (atomic_load(&params->published->number)) return AMP_OK;
    return amp_fail(err, AMP_WRONG_STATE,
                    "%s: published = 1, and nothing was published; call amp_params_publish before",
                    params->model->desc.name);
}

static void bind_version(amp_session *s, amp_bound_program *b) {
    for (int32_t i = 0; b->program && i < b->program->buffer_count; i++)
        if (b->program->buffers[i].kind == AMP_BUFFER_STATE)
            b->buffers[i] = s->states.bound[b->program->buffers[i].index];
}

void amp_session_read_newest(amp_session *s) {
    amp_params_version *newest = amp_published_newest(s->params->published, s->version);
    if (newest == s->version) return;
    s->version = newest;
    for (int32_t i = 0; i < s->model->state_count; i++)
        if (newest->tensors[i]) s->states.bound[i] = newest->tensors[i]->memory;
    for (int i = 0; i < AMP_SESSION_PROGRAMS; i++) bind_version(s, &s->programs[i]);
}

uint64_t amp_session_version(const amp_session *session) {
    return session && session->version ? session->version->number : 0;
}
