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

static amp_status take(const amp_session *s, amp_params *to, float *rows, amp_error *err) {
    for (int32_t i = 0; i < s->model->state_count; i++) {
        const int32_t param = s->model->states[i].of;
        if (!is_average(&s->model->states[i]) || !updates_of(s, param)) continue;
        AMP_TRY(amp_session_get_state(s, i, rows, err));
        const int32_t there = amp_model_state_index(to->model, s->model->states[param].name);
        amp_state_set_f32(&to->model->states[there], to->states[there], rows);
    }
    return AMP_OK;
}

amp_status amp_session_get_averages(const amp_session *s, amp_params *to, amp_error *err) {
    AMP_TRY(amp_session_check_training(s, "amp_session_get_averages", err));
    if (!to) return amp_fail(err, AMP_INVALID_ARGUMENT, "amp_session_get_averages: to is NULL");
    if (!has_averages(s->model))
        return amp_fail(err, AMP_WRONG_STATE, "%s keeps no averages; write `ema = 0.999` in its train block",
                        s->model->desc.name);
    AMP_TRY(amp_params_copy(to, s->params, err));
    AMP_TRY(amp_session_settle(s, true, err));
    AMP_TRY(amp_params_reach_host(to, err));
    const size_t bytes = amp_states_largest(s->model) * sizeof(float);
    float *rows = amp_alloc_aligned(&s->model->allocator, bytes, AMP_MEMORY_ALIGN);
    if (!rows) return amp_fail(err, AMP_OUT_OF_MEMORY, "%s: no memory to read its averages", s->model->desc.name);
    const amp_status status = take(s, to, rows, err);
    amp_free_aligned(&s->model->allocator, rows, bytes, AMP_MEMORY_ALIGN);
    amp_params_changed_on_host(to);
    return status;
}
