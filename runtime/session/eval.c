/* eval.c: amp_eval. */
#include <string.h>

#include "base/error.h"
#include "runtime/session/session.h"

/* Loss, named losses, metrics: the layout of amp_measures_add. */
static amp_status read_measures(amp_session *s, double *loss, double *metrics, amp_error *err) {
    int32_t losses = amp_loss_count(s->model), count = amp_measure_count(s->model);
    double *measures = s->readback->measured.sums + count; /* behind those of the step */
    memset(measures, 0, (size_t)count * sizeof *measures);
    amp_bound_program_add_measures(&s->programs[AMP_RUN_EVAL], s->model, measures);
    memcpy(s->readback->measured.losses, &measures[1], (size_t)losses * sizeof *measures);
    if (loss) *loss = measures[0];
    if (!metrics) return AMP_OK;
    memcpy(metrics, &measures[1 + losses], (size_t)(count - 1 - losses) * sizeof *measures);
    return amp_session_finish_metrics(s, measures[0], s->readback->measured.losses, metrics, err);
}

amp_status amp_eval(amp_session *session, const void *const *inputs, int64_t n, double *loss, double *metrics,
                    amp_error *err) {
    if (!session) return amp_fail(err, AMP_INVALID_ARGUMENT, "amp_eval: session is NULL");
    amp_bound_program *eval = &session->programs[AMP_RUN_EVAL];
    if (!eval->program)
        return amp_fail(err, AMP_WRONG_STATE, "amp_eval: %s has no train block, so no loss and no metrics",
                        session->model->desc.name);
    AMP_TRY(amp_session_run(session, eval, inputs, n, err));
    AMP_TRY(amp_session_start_readback(session, &(amp_readback_run){.step = false}, err));
    AMP_TRY(amp_session_settle(session, true, err));
    return read_measures(session, loss, metrics, err);
}
