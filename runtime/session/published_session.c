/* published_session.c: sessions that read the newest version of their params; publish.c makes versions. */
#include "base/error.h"
#include "runtime/model/state.h"
#include "runtime/params/published.h"
#include "runtime/session/session.h"

/* What a version has of state |i| of |model|; NULL: nothing. */
static amp_published_tensor *tensor_of(const amp_params *params, const amp_params_version *v, const amp_model *model,
                                       int32_t i) {
    if (params->model == model) return v->tensors[i];
    const amp_model_state *s = &model->states[i];
    const int32_t there = amp_model_state_index(params->model, s->name);
    if (there < 0 || !amp_state_stored_alike(s, &params->model->states[there])) return NULL;
    return v->tensors[there];
}

/* A version has what eval and infer of the params' model read. */
static amp_status check_readers(const amp_params *params, const amp_params_version *v, const amp_model *m,
                                amp_error *err) {
    const amp_program *const readers[] = {m->eval, m->infer, m->eval_fp32, m->infer_fp32};
    for (size_t k = 0; k < sizeof readers / sizeof *readers; k++) {
        for (int32_t i = 0; i < m->state_count; i++) {
            if (!amp_state_lives_in_params(m, i, NULL) || !amp_program_uses_state(readers[k], i)) continue;
            if (!tensor_of(params, v, m, i))
                return amp_fail(err, AMP_UNSUPPORTED,
                                "%s: published = 1, and versions of the params of %s have no %s, which it reads; "
                                "publish params that were made for it",
                                m->desc.name, params->model->desc.name, m->states[i].name);
        }
    }
    return AMP_OK;
}

amp_status amp_session_check_published(const amp_params *params, const amp_model *model, const amp_device_type *type,
                                       amp_error *err) {
    if (type->device_memory)
        return amp_fail(err, AMP_UNSUPPORTED,
                        "%s: published versions are in the host's memory, the device %s reads its own; use the device "
                        "cpu for sessions with published = 1",
                        params->model->desc.name, type->name);
    if (!atomic_load(&params->published->number))
        return amp_fail(err, AMP_WRONG_STATE,
                        "%s: published = 1, and nothing was published; call amp_params_publish before",
                        params->model->desc.name);
    if (params->model == model) return AMP_OK;
    amp_params_version *newest = amp_published_newest(params->published, NULL);
    const amp_status status = check_readers(params, newest, model, err);
    amp_published_drop(params->published, newest);
    return status;
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
    for (int32_t i = 0; i < s->model->state_count; i++) {
        const amp_published_tensor *t = tensor_of(s->params, newest, s->model, i);
        if (t) s->states.bound[i] = t->memory;
    }
    for (int i = 0; i < AMP_SESSION_PROGRAMS; i++) bind_version(s, &s->programs[i]);
}

uint64_t amp_session_version(const amp_session *session) {
    return session && session->version ? session->version->number : 0;
}
