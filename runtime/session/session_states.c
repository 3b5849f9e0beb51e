/* session_states.c: states and buffers between the host and device memory; the calls that get and set them. */
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/scale_range.h"
#include "runtime/model/matrix_layout.h"
#include "runtime/model/state.h"
#include "runtime/session/session.h"

static const amp_device_memory_calls *calls_of(const amp_session *s) { return s->device->type->device_memory; }

static amp_status no_memory(const amp_session *s, size_t bytes, amp_error *err) {
    return amp_fail(err, AMP_OUT_OF_MEMORY, "%s: no memory for %zu bytes to copy", s->model->desc.name, bytes);
}

/* ---- one state --------------------------------------------------------------------------------------------------- */

amp_status amp_session_get_state(const amp_session *s, int32_t i, float *to, amp_error *err) {
    const amp_model_state *state = &s->model->states[i];
    size_t bytes = amp_state_bytes(state);
    const bool shared = amp_ranks_share_moment(s->ranks, i);
    if (!amp_session_has_device_memory(s) && !shared) {
        amp_state_get_f32(state, s->states.bound[i], to);
        return AMP_OK;
    }
    void *copy = amp_alloc_aligned(&s->memory.allocator, bytes, AMP_MEMORY_ALIGN);
    if (!copy) return no_memory(s, bytes, err);
    amp_status status =
        shared ? amp_ranks_gather(s->ranks, i, copy, err)
               : calls_of(s)->read(s->device, copy, s->states.bound[i], amp_state_content_bytes(state), err);
    if (!status) amp_state_get_f32(state, copy, to);
    amp_free_aligned(&s->memory.allocator, copy, bytes, AMP_MEMORY_ALIGN);
    return status;
}

amp_status amp_session_set_state(amp_session *s, int32_t i, const float *from, amp_error *err) {
    const amp_model_state *state = &s->model->states[i];
    size_t bytes = amp_state_bytes(state);
    const bool shared = amp_ranks_share_moment(s->ranks, i);
    if (!amp_session_has_device_memory(s) && !shared) {
        amp_state_set_f32(state, s->states.bound[i], from);
        return AMP_OK;
    }
    void *copy = amp_alloc_aligned(&s->memory.allocator, bytes, AMP_MEMORY_ALIGN);
    if (!copy) return no_memory(s, bytes, err);
    amp_state_set_f32(state, copy, from);
    amp_status status =
        shared ? amp_ranks_keep(s->ranks, i, copy, err)
               : calls_of(s)->write(s->device, s->states.bound[i], copy, amp_state_content_bytes(state), err);
    amp_free_aligned(&s->memory.allocator, copy, bytes, AMP_MEMORY_ALIGN);
    return status;
}

/* ---- all that a file holds --------------------------------------------------------------------------------------- */

static bool is_of_files(const amp_session *s, int32_t i) {
    const amp_model_state *state = &s->model->states[i];
    return amp_state_is_param(state) || state->role == AMP_STATE_MOMENT;
}

static size_t list_bytes(const amp_session *s) { return (size_t)s->model->state_count * sizeof(void *); }

void amp_session_drop_host_states(const amp_session *s, void **states) {
    if (!states || states == s->states.bound) return;
    for (int32_t i = 0; i < s->model->state_count; i++)
        if (is_of_files(s, i))
            amp_free_aligned(&s->memory.allocator, states[i], amp_state_bytes(&s->model->states[i]), AMP_MEMORY_ALIGN);
    amp_free(&s->memory.allocator, states, list_bytes(s));
}

/* Params may have been written by another session: their memory knows, this session's device does not. */
static amp_status fetch(const amp_session *s, int32_t i, void *to, amp_error *err) {
    amp_device_memory *m = s->params->residency->memory;
    size_t bytes = amp_state_content_bytes(&s->model->states[i]);
    if (amp_state_is_param(&s->model->states[i])) return m->type->copy_out(m, to, s->states.bound[i], bytes, err);
    return calls_of(s)->read(s->device, to, s->states.bound[i], bytes, err);
}

static amp_status store(amp_session *s, int32_t i, const void *from, amp_error *err) {
    amp_device_memory *m = s->params->residency->memory;
    size_t bytes = amp_state_content_bytes(&s->model->states[i]);
    if (amp_state_is_param(&s->model->states[i])) return m->type->copy_in(m, s->states.bound[i], from, bytes, err);
    return calls_of(s)->write(s->device, s->states.bound[i], from, bytes, err);
}

static amp_status copy_states(const amp_session *s, bool read, void **states, amp_error *err) {
    for (int32_t i = 0; i < s->model->state_count; i++) {
        const amp_model_state *state = &s->model->states[i];
        size_t bytes = amp_state_bytes(state);
        states[i] = s->states.host[i];
        if (!is_of_files(s, i) || !s->states.bound[i] || amp_ranks_share_moment(s->ranks, i)) continue;
        states[i] = amp_alloc_aligned(&s->memory.allocator, bytes, AMP_MEMORY_ALIGN);
        if (!states[i]) return no_memory(s, bytes, err);
        if (read) AMP_TRY(fetch(s, i, states[i], err));
    }
    return AMP_OK;
}

amp_status amp_session_host_states(const amp_session *s, bool read, void ***out, amp_error *err) {
    *out = s->states.bound;
    if (!amp_session_has_device_memory(s)) return AMP_OK;
    *out = amp_alloc_zeroed(&s->memory.allocator, list_bytes(s));
    if (!*out) return no_memory(s, list_bytes(s), err);
    AMP_TRY(amp_session_settle(s, true, err));
    if (read) AMP_TRY(amp_params_reach_device(s->params, err));
    return copy_states(s, read, *out, err);
}

amp_status amp_session_take_states(amp_session *s, void *const *states, amp_error *err) {
    if (!amp_session_has_device_memory(s)) return AMP_OK;
    for (int32_t i = 0; i < s->model->state_count; i++)
        if (is_of_files(s, i) && states[i] && !amp_ranks_share_moment(s->ranks, i))
            AMP_TRY(store(s, i, states[i], err));
    amp_params_changed_on_device(s->params);
    return amp_session_write_scalars(s, err);
}

amp_status amp_session_change_states(amp_session *s, amp_states_change *change, void *user, amp_error *err) {
    void **states;
    AMP_TRY(amp_session_host_states(s, true, &states, err));
    amp_status status = change(user, states, err);
    if (!status) amp_params_changed_on_host(s->params);
    if (!status) status = amp_session_take_states(s, states, err);
    amp_session_drop_host_states(s, states);
    return status;
}

/* ---- loss scaler and counters ------------------------------------------------------------------------------------ */

amp_status amp_session_get_scaler(const amp_session *s, amp_scaler_state *out, amp_error *err) {
    AMP_TRY(amp_session_check_training(s, "amp_session_get_scaler", err));
    if (!out) return amp_fail(err, AMP_INVALID_ARGUMENT, "amp_session_get_scaler: out is NULL");
    AMP_TRY(amp_session_settle(s, true, err));
    const float *scale = amp_session_scale(s);
    const int32_t *tracker = amp_session_growth_tracker(s), *hits = amp_session_floor_hits(s);
    const int64_t *step = amp_session_step(s), *iteration = amp_session_iteration(s);
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
    if (!amp_scale_is_usable(state->scale))
        return amp_fail(err, AMP_INVALID_ARGUMENT, "scale %g: a loss scale is a number " AMP_SCALE_RANGE,
                        (double)state->scale);
    if (!amp_short_count_is_usable(state->growth_tracker) || !amp_short_count_is_usable(state->floor_hits))
        return amp_fail(err, AMP_INVALID_ARGUMENT,
                        "growth_tracker %ld, floor_hits %ld: they count from 0 to at most 2^30",
                        (long)state->growth_tracker, (long)state->floor_hits);
    if (!amp_count_is_usable(state->step) || !amp_count_is_usable(state->iteration))
        return amp_fail(err, AMP_INVALID_ARGUMENT, "step %lld, iteration %lld: they count from 0 to at most 2^53",
                        (long long)state->step, (long long)state->iteration);
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
    int64_t *step = amp_session_step(s), *iteration = amp_session_iteration(s);
    if (scale) *scale = state->scale;
    if (tracker) *tracker = state->growth_tracker;
    if (hits) *hits = state->floor_hits;
    if (step) *step = state->step;
    if (iteration) *iteration = state->iteration;
    amp_session_forget_kept(s);
    s->step.micro = 0;
    return amp_session_write_scalars(s, err);
}

/* ---- optimizer state --------------------------------------------------------------------------------------------- */

static amp_status find_moment(const amp_session *s, const char *name, const void *data, size_t count, int32_t *index,
                              amp_error *err) {
    AMP_TRY(amp_session_check_training(s, "amp_session_get_moment and _set", err));
    if (!name || !data) return amp_fail(err, AMP_INVALID_ARGUMENT, "optimizer state: name or data is NULL");
    *index = amp_model_state_index(s->model, name);
    if (*index < 0 || s->model->states[*index].role != AMP_STATE_MOMENT)
        return amp_fail(err, AMP_NOT_FOUND, "%s has no optimizer state %s; names are PARAMETER/SLOT, slots those of %s",
                        s->model->desc.name, name,
                        s->model->desc.optimizer ? s->model->desc.optimizer : "its optimizer");
    return amp_state_check_count(&s->model->states[*index], "optimizer state", count, err);
}

amp_status amp_session_get_moment(const amp_session *session, const char *name, float *data, size_t count,
                                  amp_error *err) {
    int32_t i;
    AMP_TRY(find_moment(session, name, data, count, &i, err));
    return amp_session_get_state(session, i, data, err);
}

amp_status amp_session_set_moment(amp_session *session, const char *name, const float *data, size_t count,
                                  amp_error *err) {
    int32_t i;
    AMP_TRY(find_moment(session, name, data, count, &i, err));
    return amp_session_set_state(session, i, data, err);
}
