/* step_report.c: what a step reports: loss, scale, what was skipped; and that the scale is at its floor. */
#include <math.h>

#include "base/error.h"
#include "runtime/session/session.h"

static int64_t count_of(const int64_t *counter) { return counter ? *counter : 0; }

static bool at_floor(const amp_session *s) {
    const int32_t *hits = amp_session_floor_hits(s);
    return hits && *hits != 0;
}

/* The predicate of a block's updates, where there are several. */
static bool is_block_predicate(const amp_model_result *r) {
    return r->kind == AMP_RESULT_OK && r->index != AMP_MODEL_NONE;
}

/* A step without a finite check always updates.  A device that computes nothing has not skipped.  |*all|: no block was
 * updated. */
static int32_t count_skipped(const amp_session *s, bool *all) {
    const amp_bound_program *last = amp_session_last_program(s);
    int32_t ok = amp_program_result(last->program, AMP_RESULT_OK), blocks = 0, skipped = 0;
    *all = false;
    if (ok < 0 || !s->device->type->computes) return 0;
    for (int32_t i = 0; i < last->program->result_count; i++) {
        if (!is_block_predicate(&last->program->results[i])) continue;
        blocks++;
        skipped += amp_bound_program_scalar(last, i) == 0;
    }
    if (!blocks) skipped = amp_bound_program_scalar(last, ok) == 0;
    *all = skipped && skipped >= blocks;
    return skipped;
}

int32_t amp_session_skipped_blocks(const amp_session *s) {
    bool all;
    return count_skipped(s, &all);
}

bool amp_session_skips_all(const amp_session *s) {
    bool all;
    (void)count_skipped(s, &all);
    return all;
}

void amp_session_fill_report(const amp_session *s, bool complete, amp_step_report *report) {
    *report = (amp_step_report){
        .loss = s->readback->measured.figures[0],
        .scale = s->readback->measured.used_scale,
        .skipped = complete ? amp_session_skipped_blocks(s) : 0,
        .step = count_of(amp_session_step(s)),
        .iteration = count_of(amp_session_iteration(s)),
        .at_floor = at_floor(s),
        .complete = complete,
        .states_kept = complete ? s->readback->measured.states_kept : 0,
        .too_few = complete && s->readback->measured.too_few,
        .grad_norm = complete ? amp_computed_norm(s->model, amp_session_last_program(s)) : NAN,
    };
}

amp_status amp_session_at_floor(const amp_session *s, int64_t iteration, float scale, int32_t hits, amp_error *err) {
    return amp_fail(
        err, AMP_SCALE_AT_FLOOR,
        "iteration %lld: gradients overflow %s though the loss scale is at its floor of %g, so steps are "
        "skipped (%d so far at the floor); look for a NaN in the data, a learning rate that is too high, or an op "
        "that needs f32 (precision block); amp_session_set_scaler goes on from another scale",
        (long long)iteration, s->model->desc.low ? s->model->desc.low : "f16", (double)scale, hits);
}

amp_status amp_session_check_floor(const amp_session *s, amp_error *err) {
    if (!at_floor(s)) return AMP_OK;
    return amp_session_at_floor(s, count_of(amp_session_iteration(s)), *amp_session_scale(s),
                                *amp_session_floor_hits(s), err);
}
