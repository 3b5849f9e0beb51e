/* step.c: amp_step and what it reports. */
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "runtime/session/session.h"

static int64_t counter(const amp_session *s, const char *name) {
    const int64_t *value = amp_session_counter(s, name);
    return value ? *value : 0;
}

static bool at_floor(const amp_session *s) {
    const int32_t *hits = amp_session_floor_hits(s);
    return hits && *hits != 0;
}

/* ---- the report -------------------------------------------------------------------------------------------------- */

/* The predicate of a block's updates: "ok.0", "ok.1", ... where there are several, else "ok". */
static bool is_block_predicate(const char *result) { return !strncmp(result, "ok.", 3); }

/* A step without a finite check always updates.  A device that computes nothing has not skipped. */
static int32_t skipped_blocks(const amp_session *s) {
    const amp_bound_program *last = amp_session_last_program(s);
    int32_t ok = amp_program_result_index(last->program, "ok"), blocks = 0, skipped = 0;
    if (ok < 0 || !s->device->type->computes) return 0;
    for (int32_t i = 0; i < last->program->result_count; i++) {
        if (!is_block_predicate(last->program->results[i].name)) continue;
        blocks++;
        skipped += amp_bound_program_scalar(last, i) == 0;
    }
    return blocks ? skipped : amp_bound_program_scalar(last, ok) == 0;
}

static double grad_norm(const amp_session *s) {
    const amp_bound_program *last = amp_session_last_program(s);
    int32_t norm = amp_program_result_index(last->program, "grad_norm");
    return norm < 0 ? NAN : amp_bound_program_scalar(last, norm);
}

static void fill_report(const amp_session *s, bool complete, amp_step_report *report) {
    *report = (amp_step_report){
        .loss = s->readback->measured.sums[0] / (double)s->readback->measured.count,
        .scale = s->readback->measured.used_scale,
        .skipped = complete ? skipped_blocks(s) : 0,
        .step = counter(s, "step"),
        .iteration = counter(s, "iteration"),
        .at_floor = at_floor(s),
        .complete = complete,
        .grad_norm = complete ? grad_norm(s) : NAN,
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

/* ---- the step ---------------------------------------------------------------------------------------------------- */

/* Forward and backward; where the step ends, its update.  |*complete| tells whether it did. */
static amp_status run(amp_session *s, const void *const *inputs, int64_t n, bool *complete, amp_error *err) {
    int64_t *micro = amp_session_counter(s, "micro"), k = s->model->accumulate;
    if (micro) *micro = s->step.micro;
    AMP_TRY(amp_session_run(s, &s->programs[AMP_RUN_TRAIN_STEP], inputs, n, err));
    amp_readback_run made = {.step = true, .micro = s->step.micro, .complete = s->step.micro + 1 == k};
    s->step.last_n = n;
    *complete = made.complete;
    s->step.micro = made.complete ? 0 : s->step.micro + 1;
    if (made.complete && k > 1) AMP_TRY(amp_session_run(s, &s->programs[AMP_RUN_APPLY_STEP], NULL, n, err));
    return amp_session_start_readback(s, &made, err);
}

amp_status amp_step(amp_session *session, const void *const *inputs, int64_t n, amp_step_report *report,
                    amp_error *err) {
    bool complete;
    AMP_TRY(amp_session_check_training(session, "amp_step", err));
    const float *scale = amp_session_scale(session);
    session->readback->measured.used_scale = scale ? *scale : 1;
    AMP_TRY(run(session, inputs, n, &complete, err));
    AMP_TRY(amp_session_settle(session, report != NULL, err));
    if (report) fill_report(session, complete, report);
    return floor_status(session, err);
}
