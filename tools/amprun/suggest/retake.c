/* retake.c: see suggesting.h. */
#include "tools/amprun/suggest/suggesting.h"

#include <string.h>

/* Statistics name values of the model's IR.  An observer of the same model sees the same names, with their ops. */
int retake_before(Retake *r, const Args *a, const Run *run) {
    amp_error err = {0};
    const amp_compile_options from = {.struct_size = sizeof from, .name = a->model};
    if (r->count || r->trace) return 0;
    if (amp_trace_create(&from, run_target(a), &r->trace, &err)) return report(&err);
    r->session = run->session;
    return amp_session_observe(run->session, amp_trace_observer(r->trace), &err) ? report(&err) : 0;
}

static int take_names(Retake *r) {
    amp_error err = {0};
    const bool failed =
        evidence_add_recorded(r->evidence, r->trace, r->recorded, &err) || amp_session_observe(r->session, NULL, &err);
    amp_trace_release(r->trace);
    r->trace = NULL;
    r->session = NULL;
    return failed ? report(&err) : 0;
}

/* A log has nine digits of each number, enough for any f32. */
static bool is_same(double taken, double logged) {
    char a[32], b[32];
    snprintf(a, sizeof a, "%.9g", taken);
    snprintf(b, sizeof b, "%.9g", logged);
    return !strcmp(a, b) || (taken != taken && logged != logged);
}

int retake_after(Retake *r, const amp_step_report *report) {
    const RecordedStep *logged = &r->recorded->step[r->count++];
    const bool is = is_same(report->loss, logged->loss) && is_same((double)report->scale, logged->scale) &&
                    (report->skipped != 0) == logged->skipped;
    if (!is && !r->differs_at) {
        r->differs_at = r->count;
        r->loss = report->loss;
        r->scale = (double)report->scale;
    }
    return r->trace ? take_names(r) : 0;
}

void retake_end(Retake *r) {
    amp_error ignored;
    if (r->session && amp_session_observe(r->session, NULL, &ignored)) r->count = 0;
    amp_trace_release(r->trace);
    r->trace = NULL;
    r->session = NULL;
}
