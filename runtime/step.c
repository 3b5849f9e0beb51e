/* step.c: amp_step and amp_session_metrics. */
#include <string.h>

#include "base/error.h"
#include "runtime/metric.h"
#include "runtime/session.h"

static int64_t counter(const amp_session *s, const char *name) {
    const int64_t *value = amp_session_counter(s, name);
    return value ? *value : 0;
}

/* A training step without a finite check always updates.  A device that computes nothing has not skipped. */
static bool was_skipped(const amp_session *s) {
    int32_t ok = amp_program_result_index(s->train_step.program, "ok");
    return ok >= 0 && s->device->type->computes && amp_bound_program_scalar(&s->train_step, ok) == 0;
}

static bool at_floor(const amp_session *s) {
    const int32_t *hits = amp_session_floor_hits(s);
    return hits && *hits != 0;
}

static void fill_report(const amp_session *s, float scale, amp_step_report *report) {
    *report = (amp_step_report){
        .loss = amp_bound_program_scalar(&s->train_step, amp_program_result_index(s->train_step.program, "loss")),
        .scale = scale,
        .skipped = was_skipped(s),
        .step = counter(s, "step"),
        .iteration = counter(s, "iteration"),
        .at_floor = at_floor(s),
    };
}

static amp_status floor_status(const amp_session *s, amp_error *err) {
    if (!at_floor(s)) return AMP_OK;
    return amp_fail(
        err, AMP_SCALE_AT_FLOOR,
        "iteration %lld: gradients overflow %s though the loss scale is at its floor of %g, so steps are "
        "skipped (%d so far at the floor); look for a NaN in the data, a learning rate that is too high, or an op "
        "that needs f32 (precision block); amp_session_set_scaler goes on from another scale",
        (long long)counter(s, "iteration"), s->model->desc.low ? s->model->desc.low : "f16",
        (double)*amp_session_scale(s), *amp_session_floor_hits(s));
}

amp_status amp_step(amp_session *session, const void *const *inputs, int64_t n, amp_step_report *report,
                    amp_error *err) {
    AMP_TRY(amp_session_check_training(session, "amp_step", err));
    const float *scale = amp_session_scale(session);
    float used = scale ? *scale : 1;
    AMP_TRY(amp_session_run(session, &session->train_step, inputs, n, err));
    session->last_n = n;
    if (report) fill_report(session, used, report);
    return floor_status(session, err);
}

amp_status amp_session_metrics(const amp_session *session, double *metrics, amp_error *err) {
    AMP_TRY(amp_session_check_training(session, "amp_session_metrics", err));
    if (!metrics) return amp_fail(err, AMP_INVALID_ARGUMENT, "amp_session_metrics: metrics is NULL");
    if (!session->last_n) return amp_fail(err, AMP_WRONG_STATE, "amp_session_metrics: no step yet");
    amp_metrics_read(&session->train_step, session->model, metrics);
    return AMP_OK;
}
