/* session_metrics.c: the losses and metrics of the last step, and metrics of averages. */
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "runtime/session/session.h"

/* ---- the last step ------------------------------------------------------------------------------------------------- */

amp_status amp_session_metrics(const amp_session *session, double *metrics, amp_error *err) {
    AMP_TRY(amp_session_check_training(session, "amp_session_metrics", err));
    if (!metrics) return amp_fail(err, AMP_INVALID_ARGUMENT, "amp_session_metrics: metrics is NULL");
    if (!session->step.last_n) return amp_fail(err, AMP_WRONG_STATE, "amp_session_metrics: no step yet");
    AMP_TRY(amp_session_settle(session, true, err));
    const amp_model *m = session->model;
    int32_t losses = amp_loss_count(m), count = amp_metric_count(m);
    double measured = (double)session->readback->measured.count, *sums = session->readback->measured.sums;
    for (int32_t i = 0; i < count; i++) metrics[i] = sums[1 + losses + i] / measured;
    return amp_session_finish_metrics(session, sums[0] / measured, NULL, metrics, err);
}

amp_status amp_session_losses(const amp_session *session, double *losses, amp_error *err) {
    if (!session || !losses)
        return amp_fail(err, AMP_INVALID_ARGUMENT, "amp_session_losses: session or losses is NULL");
    AMP_TRY(amp_session_settle(session, true, err));
    memcpy(losses, session->readback->measured.losses, (size_t)amp_loss_count(session->model) * sizeof *losses);
    return AMP_OK;
}

/* ---- metrics of averages ----------------------------------------------------------------------------------------- */

/* The average that an input of the program "metrics" stands for. */
static double average(const amp_model *m, const char *input, double loss, const double *losses, const double *metrics) {
    int32_t measure = amp_measure_named(m, input), named = amp_loss_count(m);
    if (measure == 0) return loss;
    if (measure > named) return metrics[measure - 1 - named];
    return measure > 0 && losses ? losses[measure - 1] : NAN;
}

static void give_averages(const amp_session *s, double loss, const double *losses, const double *metrics) {
    const amp_bound_program *b = &s->programs[AMP_RUN_METRICS];
    for (int32_t i = 0; i < b->program->buffer_count; i++) {
        const amp_model_buffer *buffer = &b->program->buffers[i];
        if (buffer->kind != AMP_BUFFER_INPUT) continue;
        float *at = &s->readback->measured.averages[buffer->index];
        *at = (float)average(s->model, s->model->inputs[buffer->index].name, loss, losses, metrics);
        b->buffers[i] = at;
    }
}

static amp_status run_metrics(const amp_session *s, amp_error *err) {
    AMP_TRY(amp_session_run_bound(s, &s->programs[AMP_RUN_METRICS], s->model->batch_multiple, err));
    AMP_TRY(amp_session_start_readback(s, &(amp_readback_run){.step = false}, err));
    return amp_session_settle(s, true, err);
}

amp_status amp_session_finish_metrics(const amp_session *s, double loss, const double *losses, double *metrics,
                                      amp_error *err) {
    if (!s || !metrics)
        return amp_fail(err, AMP_INVALID_ARGUMENT, "amp_session_finish_metrics: session or metrics is NULL");
    const amp_bound_program *b = &s->programs[AMP_RUN_METRICS];
    if (!b->program) return AMP_OK;
    give_averages(s, loss, losses, metrics);
    AMP_TRY(run_metrics(s, err));
    for (int32_t i = 0, first = 1 + amp_loss_count(s->model); amp_metric_name(s->model, i); i++) {
        int32_t result = amp_measure_result(s->model, b->program, first + i);
        if (result >= 0) metrics[i] = amp_bound_program_scalar(b, result);
    }
    return AMP_OK;
}
