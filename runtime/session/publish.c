/* publish.c: hand-over while serving: params publish versions; published_session.c reads them. */
#include "base/error.h"
#include "runtime/params/published.h"
#include "runtime/session/session.h"

/* What is derived from params that were set or loaded is computed by a program, which takes a session to run. */
static amp_status derive(amp_params *p, amp_error *err) {
    if (!p->model->refresh || !atomic_load(&p->stale)) return AMP_OK;
    const amp_session_options options = {
        .struct_size = sizeof options, .capacity = amp_model_least_sizes(p->model), .threads = 1, .program = "infer"};
    amp_session *session;
    AMP_TRY(amp_session_create(p->model, p, &options, &session, err));
    amp_status status = amp_session_refresh(session, err);
    amp_session_release(session);
    return status;
}

amp_status amp_params_publish(amp_params *params, amp_publish_report *report, amp_error *err) {
    if (!params) return amp_fail(err, AMP_INVALID_ARGUMENT, "amp_params_publish: params is NULL");
    AMP_TRY(amp_params_check_masters(params, "amp_params_publish", err));
    if (params->residency->memory)
        return amp_fail(err, AMP_UNSUPPORTED,
                        "%s: its params live in %s, and versions are published from the host's memory; set them in "
                        "params that a session for the CPU uses, and publish those",
                        params->model->desc.name, amp_device_memory_name(params->residency->memory));
    AMP_TRY(derive(params, err));
    return amp_published_add(params->published, params->states, report, err);
}
