/* next_report.c: reports of steps that no call waited for. */
#include <string.h>

#include "base/error.h"
#include "base/float_environment.h"
#include "runtime/session/session.h"

/* A call's place in the ring stays its own until its copy was taken in, as fewer copies are under way. */
_Static_assert((int)AMP_KEPT_REPORTS >= (int)AMP_READBACKS, "as many reports as copies under way");

/* Metrics of averages are computed only on request. */
static bool finishes(const amp_session *s, const double *metrics) {
    return metrics && s->programs[AMP_RUN_METRICS].program;
}

static bool is_there(const amp_session *s, const double *metrics) {
    const amp_kept_reports *kept = &s->readback->kept;
    return kept->given < (finishes(s, metrics) ? kept->finished : kept->arrived);
}

/* Of all reports that have arrived, as far as their copies need not wait for others. */
static amp_status finish_arrived(const amp_session *s, const double *metrics, amp_error *err) {
    amp_session_readback *r = s->readback;
    amp_kept_reports *kept = &r->kept;
    if (!finishes(s, metrics)) return AMP_OK;
    if (kept->finishing < kept->given) kept->finishing = kept->given;
    while (kept->finishing < kept->arrived && r->pending_count < AMP_READBACKS) {
        AMP_TRY(amp_session_start_metrics(s, kept->finishing, err));
        kept->finishing++;
    }
    return AMP_OK;
}

static amp_status look(const amp_session *s, bool wait, const double *metrics, amp_error *err) {
    const amp_kept_reports *kept = &s->readback->kept;
    AMP_TRY(amp_session_settle(s, false, err));
    AMP_TRY(finish_arrived(s, metrics, err));
    while (wait && kept->given < kept->made && !is_there(s, metrics)) {
        AMP_TRY(amp_session_take_in_oldest(s, err));
        AMP_TRY(finish_arrived(s, metrics, err));
    }
    return AMP_OK;
}

amp_status amp_session_next_report(amp_session *s, int32_t wait, amp_step_report *report, double *losses,
                                   double *metrics, int32_t *there, amp_error *err) {
    AMP_DEFAULT_FLOAT_ENVIRONMENT();
    AMP_TRY(amp_session_check_training(s, "amp_session_next_report", err));
    if (!report || !there)
        return amp_fail(err, AMP_INVALID_ARGUMENT, "amp_session_next_report: %s is NULL", report ? "there" : "report");
    *there = 0;
    if (!is_there(s, metrics)) AMP_TRY(look(s, wait != 0, metrics, err));
    if (!is_there(s, metrics)) return AMP_OK;
    const amp_kept_report *k = &s->readback->kept.calls[s->readback->kept.given++ % AMP_KEPT_REPORTS];
    *report = k->report;
    *there = 1;
    if (losses) memcpy(losses, k->losses, (size_t)amp_loss_count(s->model) * sizeof *losses);
    if (metrics) memcpy(metrics, k->metrics, (size_t)amp_metric_count(s->model) * sizeof *metrics);
    if (!report->at_floor) return AMP_OK;
    return amp_session_at_floor(s, report->iteration, k->scale, k->floor_hits, err);
}
