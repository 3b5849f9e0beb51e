/* choices.c: who makes the products of a session's launches, on devices that choose (amp/cuda.h). */
#include "amp/inspect.h"
#include "base/error.h"
#include "runtime/session/session.h"

static const amp_device_choice_calls *calls_of(const amp_session *s) {
    return amp_session_has_device_memory(s) ? s->device->type->device_memory->choices : NULL;
}

static amp_status check(const amp_session *s, const char *call, amp_error *err) {
    if (!s) return amp_fail(err, AMP_INVALID_ARGUMENT, "%s: session is NULL", call);
    if (calls_of(s)) return AMP_OK;
    return amp_fail(err, AMP_UNSUPPORTED, "%s: who makes products is chosen on the device cuda, and this is %s", call,
                    s->device->type->name);
}

amp_status amp_session_tune(amp_session *s, int64_t n, amp_error *err) {
    AMP_TRY(check(s, "amp_session_tune", err));
    const int64_t t = s->capacity.t, fits = s->tokens && n > 0 ? s->tokens / n : t;
    const amp_sizes sizes = {n, fits < t ? fits / s->model->desc.length_unit * s->model->desc.length_unit : t};
    AMP_TRY(amp_session_check_sizes(s, sizes, err));
    AMP_TRY(calls_of(s)->prepare(s->device, err));
    for (int i = 0; i < AMP_SESSION_PROGRAMS; i++)
        if (s->programs[i].program) AMP_TRY(s->device->type->reserve(s->device, s->programs[i].program, sizes, err));
    return AMP_OK;
}

amp_status amp_session_save_choices(const amp_session *s, const char *path, amp_error *err) {
    AMP_TRY(check(s, "amp_session_save_choices", err));
    if (!path) return amp_fail(err, AMP_INVALID_ARGUMENT, "amp_session_save_choices: path is NULL");
    return calls_of(s)->save(s->device, path, err);
}

amp_status amp_session_choice_at(const amp_session *s, int32_t index, amp_product_choice *out, amp_error *err) {
    if (out) *out = (amp_product_choice){0};
    if (!s || !out) return amp_fail(err, AMP_INVALID_ARGUMENT, "amp_session_choice_at: session or out is NULL");
    if (calls_of(s) && calls_of(s)->at(s->device, index, out)) return AMP_OK;
    return amp_fail(err, AMP_NOT_FOUND, "amp_session_choice_at: there is no choice %d", index);
}

amp_status amp_session_agree_on_choices(amp_session *s, amp_error *err) {
    const amp_device_choice_calls *calls = calls_of(s);
    *s->choices = 0;
    if (!calls) return AMP_OK;
    if (s->ranks) AMP_TRY(calls->share(s->device, s->ranks->comm, err));
    calls->name(s->device, s->choices);
    return AMP_OK;
}
