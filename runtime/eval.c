/* eval.c: amp_eval. */
#include "base/error.h"
#include "runtime/metric.h"
#include "runtime/session.h"

amp_status amp_eval(amp_session *session, const void *const *inputs, int64_t n, double *loss, double *metrics,
                    amp_error *err) {
    if (!session) return amp_fail(err, AMP_INVALID_ARGUMENT, "amp_eval: session is NULL");
    amp_bound_program *eval = &session->eval;
    if (!eval->program)
        return amp_fail(err, AMP_WRONG_STATE, "amp_eval: %s has no train block, so no loss and no metrics",
                        session->model->desc.name);
    AMP_TRY(amp_session_run(session, eval, inputs, n, err));
    if (loss) *loss = amp_bound_program_scalar(eval, amp_program_result_index(eval->program, "loss"));
    if (metrics) amp_metrics_read(eval, session->model, metrics);
    return AMP_OK;
}
