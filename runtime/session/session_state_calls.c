/* session_state_calls.c: reading and setting the loss scaler, the counters, and optimizer state. */
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "runtime/session/session_device_memory.h"
#include "runtime/model/state.h"

amp_status amp_session_get_scaler(const amp_session *s, amp_scaler_state *out, amp_error *err) {
    AMP_TRY(amp_session_check_training(s, "amp_session_get_scaler", err));
    if (!out) return amp_fail(err, AMP_INVALID_ARGUMENT, "amp_session_get_scaler: out is NULL");
    AMP_TRY(amp_session_settle(s, true, err));
    const float *scale = amp_session_scale(s);
    const int32_t *tracker = amp_session_growth_tracker(s), *hits = amp_session_floor_hits(s);
    const int64_t *step = amp_session_counter(s, "step"), *iteration = amp_session_counter(s, "iteration");
    *out = (amp_scaler_state){
        .scale = scale ? *scale : 1,
        .growth_tracker = tracker ? *tracker : 0,
        .floor_hits = hits ? *hits : 0,
        .step = step ? *step : 0,
        .iteration = iteration ? *iteration : 0,
    };
    return AMP_OK;
}

static amp_status check_scaler(const amp_session *s, const amp_scaler_state *state, amp_error *err) {
    if (isnan(state->scale) || state->scale < 0)
        return amp_fail(err, AMP_INVALID_ARGUMENT, "scale %g: must be a number that is not negative",
                        (double)state->scale);
    if (state->growth_tracker < 0 || state->floor_hits < 0 || state->step < 0 || state->iteration < 0)
        return amp_fail(err, AMP_INVALID_ARGUMENT, "a counter of the scaler state is negative");
    if (!amp_session_scale(s) && (state->scale != 1 || state->growth_tracker || state->floor_hits))
        return amp_fail(err, AMP_WRONG_STATE, "%s trains unscaled (%s); set scale 1, growth_tracker 0, floor_hits 0",
                        s->model->desc.name, s->model->desc.precision);
    return AMP_OK;
}

amp_status amp_session_set_scaler(amp_session *s, const amp_scaler_state *state, amp_error *err) {
    AMP_TRY(amp_session_check_training(s, "amp_session_set_scaler", err));
    if (!state) return amp_fail(err, AMP_INVALID_ARGUMENT, "amp_session_set_scaler: state is NULL");
    AMP_TRY(check_scaler(s, state, err));
    AMP_TRY(amp_session_settle(s, true, err));
    float *scale = amp_session_scale(s);
    int32_t *tracker = amp_session_growth_tracker(s), *hits = amp_session_floor_hits(s);
    int64_t *step = amp_session_counter(s, "step"), *iteration = amp_session_counter(s, "iteration");
    if (scale) *scale = state->scale;
    if (tracker) *tracker = state->growth_tracker;
    if (hits) *hits = state->floor_hits;
    if (step) *step = state->step;
    if (iteration) *iteration = state->iteration;
    s->step.micro = 0;
    return amp_session_write_scalars(s, err);
}

/* ---- optimizer state --------------------------------------------------------------------------------------------- */

static amp_status find_moment(const amp_session *s, const char *name, const void *data, size_t count, int32_t *index,
                              amp_error *err) {
    AMP_TRY(amp_session_check_training(s, "amp_session_get and _set", err));
    if (!name || !data) return amp_fail(err, AMP_INVALID_ARGUMENT, "optimizer state: name or data is NULL");
    *index = amp_model_state_index(s->model, name);
    if (*index < 0 || s->model->states[*index].role != AMP_STATE_MOMENT)
        return amp_fail(err, AMP_NOT_FOUND, "%s has no optimizer state %s; names are PARAMETER/SLOT, slots those of %s",
                        s->model->desc.name, name,
                        s->model->desc.optimizer ? s->model->desc.optimizer : "its optimizer");
    return amp_state_check_count(&s->model->states[*index], "optimizer state", count, err);
}

amp_status amp_session_get(const amp_session *session, const char *name, float *data, size_t count, amp_error *err) {
    int32_t i;
    AMP_TRY(find_moment(session, name, data, count, &i, err));
    return amp_session_get_state(session, i, data, err);
}

amp_status amp_session_set(amp_session *session, const char *name, const float *data, size_t count, amp_error *err) {
    int32_t i;
    AMP_TRY(find_moment(session, name, data, count, &i, err));
    return amp_session_set_state(session, i, data, err);
}
