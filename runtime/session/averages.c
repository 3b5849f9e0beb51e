/* averages.c: the averages of weights that `ema = ...` of a train block keeps, as params. */
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/names.h"
#include "runtime/model/matrix_layout.h"
#include "runtime/model/state.h"
#include "runtime/session/session.h"

static bool is_average(const amp_model_state *s) {
    return s->role == AMP_STATE_MOMENT && s->slot && !strcmp(s->slot, AMP_SLOT_EMA);
}

static bool has_averages(const amp_model *m) {
    for (int32_t i = 0; i < m->state_count; i++)
        if (is_average(&m->states[i])) return true;
    return false;
}

/* The updates of the parameter's block: blocks count their own, or all count together. */
static int64_t updates_of(const amp_session *s, int32_t param) {
    const amp_model *m = s->model;
    const int64_t *together = amp_session_step(s), *own = NULL;
    for (int32_t i = 0; i < m->state_count; i++)
        if (m->states[i].counter == AMP_COUNTER_STEP &&
            (int64_t)m->states[i].counter_block + 1 == (int64_t)m->states[param].train_block)
            own = s->states.host[i];
    return own ? *own : together ? *together : 0;
}

/* What a parameter or buffer becomes: a state of the session's model. */
static int32_t source_of(const amp_session *s, int32_t param) {
    for (int32_t i = 0; i < s->model->state_count; i++) {
        const amp_model_state *state = &s->model->states[i];
        if (is_average(state) && state->of == param && updates_of(s, param)) return i;
    }
    return param;
}

/* ---- on the host ------------------------------------------------------------------------------------------------- */

static amp_status take_one(const amp_session *s, int32_t average, amp_params *to, float *rows, amp_error *err) {
    const amp_model_state *state = &s->model->states[average];
    const int32_t there = amp_model_state_index(to->model, s->model->states[state->of].name);
    const amp_model_state *own = &to->model->states[there];
    const bool here = !amp_session_has_device_memory(s) && !amp_ranks_share_moment(s->ranks, average);
    if (here && amp_state_stored_alike(own, state)) {
        memcpy(to->states[there], s->states.bound[average], amp_state_bytes(own));
        return AMP_OK;
    }
    AMP_TRY(amp_session_get_state(s, average, rows, err));
    amp_state_set_f32(own, to->states[there], rows);
    return AMP_OK;
}

static amp_status take_all(const amp_session *s, amp_params *to, float *rows, amp_error *err) {
    for (int32_t i = 0; i < s->model->state_count; i++) {
        const amp_model_state *state = &s->model->states[i];
        if (is_average(state) && source_of(s, state->of) == i) AMP_TRY(take_one(s, i, to, rows, err));
    }
    return AMP_OK;
}

static amp_status take_on_host(const amp_session *s, amp_params *to, amp_error *err) {
    AMP_TRY(amp_params_copy(to, s->params, err));
    AMP_TRY(amp_params_reach_host(to, err));
    const size_t bytes = amp_states_largest(s->model) * sizeof(float);
    float *rows = amp_alloc_aligned(&s->model->allocator, bytes, AMP_MEMORY_ALIGN);
    if (!rows) return amp_fail(err, AMP_OUT_OF_MEMORY, "%s: no memory to read its averages", s->model->desc.name);
    const amp_status status = take_all(s, to, rows, err);
    amp_free_aligned(&s->model->allocator, rows, bytes, AMP_MEMORY_ALIGN);
    amp_params_changed_on_host(to);
    return status;
}

/* ---- in the memory of a device ----------------------------------------------------------------------------------- */

/* 0: one of them is stored in another way there. */
static int32_t list_copies(const amp_session *s, const amp_params_residency *to, amp_memory_blend *list) {
    int32_t count = 0;
    for (int32_t i = 0; i < to->model->state_count; i++) {
        const amp_model_state *own = &to->model->states[i];
        if (!amp_state_is_param(own)) continue;
        const int32_t from = source_of(s, amp_model_state_index(s->model, own->name));
        if (!amp_state_stored_alike(own, &s->model->states[from])) return 0;
        if (to->states[i] == s->states.bound[from]) continue;
        list[count++] = (amp_memory_blend){to->states[i], s->states.bound[from], amp_state_content_bytes(own), true};
    }
    return count;
}

/* |*done| false: |to| does not live where the session does, or ranks have shares. */
static amp_status take_on_device(const amp_session *s, amp_params *to, bool *done, amp_error *err) {
    amp_device_memory *memory = to->residency->memory, *own = s->params->residency->memory;
    *done = false;
    if (!memory || !amp_session_has_device_memory(s) || amp_session_has_shares(s)) return AMP_OK;
    if (!amp_device_memory_same(memory, own)) return AMP_OK;
    const size_t bytes = (size_t)to->residency->model->state_count * sizeof(amp_memory_blend);
    amp_memory_blend *list = amp_alloc(&s->model->allocator, bytes);
    if (!list) return amp_fail(err, AMP_OUT_OF_MEMORY, "%s: no memory to list its averages", s->model->desc.name);
    const int32_t count = list_copies(s, to->residency, list);
    amp_status status = count ? amp_params_reach_device(s->params, err) : AMP_OK;
    if (count && !status) status = memory->type->blend(memory, own, list, count, 1, err);
    *done = count && !status;
    amp_free(&s->model->allocator, list, bytes);
    if (!*done) return status;
    amp_params_changed_on_device(to);
    amp_params_make_stale(to);
    return AMP_OK;
}

amp_status amp_session_get_averages(const amp_session *s, amp_params *to, amp_error *err) {
    bool done;
    AMP_TRY(amp_session_check_training(s, "amp_session_get_averages", err));
    AMP_TRY(amp_params_check_pair(to, s->params, "amp_session_get_averages", err));
    if (!has_averages(s->model))
        return amp_fail(err, AMP_WRONG_STATE, "%s keeps no averages; write `ema = 0.999` in its train block",
                        s->model->desc.name);
    AMP_TRY(amp_session_settle(s, true, err));
    AMP_TRY(take_on_device(s, to, &done, err));
    return done ? AMP_OK : take_on_host(s, to, err);
}
