/* evaluation.c: losses and metrics of samples that come in several batches.
 *
 * Each is a sum and a count until all batches are in: by samples, by the labels that a loss counts, or a sum alone
 * (passes/training/means.c).  What is computed from such is computed from theirs, by the program FIGURES; then METRICS
 * has what the model computes from losses and metrics by name.
 */
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/float_environment.h"
#include "runtime/session/session.h"

/* A batch without labels: enough that what its loss has besides them is not lost where no batch has any, and nothing
 * beside one label. */
#define NO_LABELS 0x1p-60

typedef struct Sum {
    double sum, count;
} Sum;

static const amp_bound_program *eval_of(const amp_session *s) { return &s->programs[AMP_RUN_EVAL]; }

/* A model has one evaluation's program; its FP32 form has the same results. */
static bool is_sum(const amp_session *s, int32_t measure) {
    return amp_measure_count_result(s->model, eval_of(s)->program, AMP_RESULT_SUM, measure) >= 0;
}

static amp_status check(const amp_session *s, const char *function, amp_error *err) {
    if (!s) return amp_fail(err, AMP_INVALID_ARGUMENT, "%s: session is NULL", function);
    if (eval_of(s)->program) return AMP_OK;
    return amp_fail(err, AMP_WRONG_STATE, "%s: %s has no train block, so no loss and no metrics", function,
                    s->model->desc.name);
}

/* ---- a batch ----------------------------------------------------------------------------------------------------- */

static void add_batch(const amp_session *s, const double *values, int64_t n) {
    const amp_bound_program *eval = eval_of(s);
    double *sums = s->readback->measured.sums;
    const int32_t count = amp_summed_count(s->model);
    sums[0] += (double)n;
    for (int32_t i = 0; i < count; i++) {
        const int32_t labels = amp_measure_count_result(s->model, eval->program, AMP_RESULT_COUNT, i);
        double by = labels >= 0 ? amp_bound_program_scalar(eval, labels) : (double)n;
        if (is_sum(s, i)) by = 1;
        if (by == 0 && !isfinite(values[i])) continue; /* nothing by nothing */
        if (by == 0) by = NO_LABELS;
        sums[1 + 2 * i] += values[i] * by;
        sums[2 + 2 * i] += by;
    }
}

/* |figures|: by measure; those that METRICS computes are not there yet. */
static amp_status give(amp_session *s, double *figures, double *loss, double *metrics, amp_error *err) {
    const int32_t losses = amp_loss_count(s->model), count = amp_measure_count(s->model);
    memcpy(s->readback->measured.losses, &figures[1], (size_t)losses * sizeof *figures);
    if (loss) *loss = figures[0];
    if (!metrics) return AMP_OK;
    AMP_TRY(amp_session_compute_figures(s, AMP_RUN_METRICS, figures, err));
    memcpy(metrics, &figures[1 + losses], (size_t)(count - 1 - losses) * sizeof *figures);
    return AMP_OK;
}

amp_status amp_eval(amp_session *session, const void *const *inputs, amp_sizes sizes, double *loss, double *metrics,
                    amp_error *err) {
    AMP_DEFAULT_FLOAT_ENVIRONMENT();
    AMP_TRY(check(session, "amp_eval", err));
    amp_bound_program *eval = &session->programs[AMP_RUN_EVAL];
    double *values = session->readback->measured.work;
    amp_session_does(session, AMP_RANK_EVALUATES);
    AMP_TRY(amp_session_run(session, eval, inputs, sizes, err));
    AMP_TRY(amp_session_start_readback(session,
                                       &(amp_readback_run){.sizes = amp_session_sizes_to_check(session, sizes)}, err));
    AMP_TRY(amp_session_settle(session, true, err));
    amp_bound_program_measures(eval, session->model, amp_summed_count(session->model), values);
    add_batch(session, values, sizes.n);
    return give(session, values, loss, metrics, err);
}

/* ---- all batches ------------------------------------------------------------------------------------------------- */

amp_status amp_eval_begin(amp_session *session, amp_error *err) {
    AMP_TRY(check(session, "amp_eval_begin", err));
    memset(session->readback->measured.sums, 0, amp_session_sums_count(session) * sizeof(double));
    return AMP_OK;
}

int32_t amp_eval_sums_count(const amp_session *session) {
    return session && eval_of(session)->program ? (int32_t)amp_session_sums_count(session) : 0;
}

amp_status amp_eval_get_sums(const amp_session *session, double *sums, amp_error *err) {
    AMP_TRY(check(session, "amp_eval_get_sums", err));
    if (!sums) return amp_fail(err, AMP_INVALID_ARGUMENT, "amp_eval_get_sums: sums is NULL");
    memcpy(sums, session->readback->measured.sums, amp_session_sums_count(session) * sizeof *sums);
    return AMP_OK;
}

amp_status amp_eval_add(amp_session *session, const double *sums, amp_error *err) {
    AMP_DEFAULT_FLOAT_ENVIRONMENT();
    AMP_TRY(check(session, "amp_eval_add", err));
    if (!sums) return amp_fail(err, AMP_INVALID_ARGUMENT, "amp_eval_add: sums is NULL");
    for (size_t i = 0; i < amp_session_sums_count(session); i++) session->readback->measured.sums[i] += sums[i];
    return AMP_OK;
}

amp_status amp_eval_end(amp_session *session, double *loss, double *metrics, amp_error *err) {
    AMP_DEFAULT_FLOAT_ENVIRONMENT();
    AMP_TRY(check(session, "amp_eval_end", err));
    const double *sums = session->readback->measured.sums;
    double *figures = session->readback->measured.work;
    const int32_t count = amp_summed_count(session->model);
    if (sums[0] == 0)
        return amp_fail(err, AMP_WRONG_STATE, "amp_eval_end: no batch since amp_eval_begin: give amp_eval some");
    for (int32_t i = 0; i < count; i++)
        figures[i] = is_sum(session, i) ? sums[1 + 2 * i] : sums[1 + 2 * i] / sums[2 + 2 * i];
    AMP_TRY(amp_session_compute_figures(session, AMP_RUN_FIGURES, figures, err));
    return give(session, figures, loss, metrics, err);
}
