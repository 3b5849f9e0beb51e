/* learning_rate.c: learning rates that the program sets, of train blocks and of groups (amp/model_abi.h:
 * AMP_COUNTER_LEARNING_RATE, AMP_COUNTER_LR_SCALE). */
#include "base/error.h"
#include "runtime/model/state.h"
#include "runtime/session/session.h"

/* ---- states ------------------------------------------------------------------------------------------------------ */

/* Its state of this kind, of block or group |number|, or -1.  A counter without a number belongs to the only block. */
static int32_t find(const amp_model *m, uint32_t counter, int32_t number) {
    for (int32_t i = 0; number >= 0 && i < m->state_count; i++) {
        const amp_model_state *state = &m->states[i];
        int32_t of = state->counter_block == AMP_MODEL_NONE ? 0 : state->counter_block;
        if (state->counter == counter && of == number) return i;
    }
    return -1;
}

static double *value_of(const amp_session *s, int32_t state) {
    return (amp_session_has_device_memory(s) ? s->states.host : s->states.bound)[state];
}

static amp_status set(amp_session *s, int32_t state, double value, amp_error *err) {
    AMP_TRY(amp_session_settle(s, true, err));
    *value_of(s, state) = value;
    return amp_session_write_scalars(s, err);
}

static amp_status check_factor(const char *what, double value, amp_error *err) {
    if (amp_rate_is_usable(value)) return AMP_OK;
    return amp_fail(err, AMP_INVALID_ARGUMENT, "%s %g: " AMP_RATE_RANGE, what, value);
}

/* ---- train blocks ------------------------------------------------------------------------------------------------ */

static amp_status find_rate(const amp_session *s, int32_t block, int32_t *state, amp_error *err) {
    const amp_model *m = s->model;
    *state = find(m, AMP_COUNTER_LEARNING_RATE, block);
    if (*state >= 0) return AMP_OK;
    return amp_fail(err, AMP_INVALID_ARGUMENT, "%s: train block %d trains nothing, or is none of the model's",
                    m->desc.name, block);
}

amp_status amp_session_get_lr(const amp_session *s, int32_t block, double *lr, amp_error *err) {
    int32_t state;
    AMP_TRY(amp_session_check_training(s, "amp_session_get_lr", err));
    if (!lr) return amp_fail(err, AMP_INVALID_ARGUMENT, "amp_session_get_lr: lr is NULL");
    AMP_TRY(find_rate(s, block, &state, err));
    AMP_TRY(amp_session_settle(s, true, err));
    int32_t schedule = find(s->model, AMP_COUNTER_SCHEDULED_RATE, block);
    bool follows = *value_of(s, state) < 0 && schedule >= 0;
    *lr = *value_of(s, follows ? schedule : state);
    return AMP_OK;
}

amp_status amp_session_set_lr(amp_session *s, int32_t block, double lr, amp_error *err) {
    int32_t state;
    AMP_TRY(amp_session_check_training(s, "amp_session_set_lr", err));
    if (lr != AMP_LR_OF_MODEL) AMP_TRY(check_factor("learning rate", lr, err));
    AMP_TRY(find_rate(s, block, &state, err));
    return set(s, state, lr == AMP_LR_OF_MODEL ? amp_initial_scalar(&s->model->states[state]) : lr, err);
}

/* ---- groups ------------------------------------------------------------------------------------------------------ */

static amp_status find_scale(const amp_session *s, int32_t group, int32_t *state, amp_error *err) {
    const amp_model *m = s->model;
    *state = find(m, AMP_COUNTER_LR_SCALE, group);
    if (*state >= 0) return AMP_OK;
    return amp_fail(err, AMP_INVALID_ARGUMENT,
                    "%s: group %d sets the learning rate of no parameter; write `lr_scale = 1.0` in its line, and "
                    "compile the model again",
                    m->desc.name, group);
}

amp_status amp_session_get_lr_scale(const amp_session *s, int32_t group, double *scale, amp_error *err) {
    int32_t state;
    AMP_TRY(amp_session_check_training(s, "amp_session_get_lr_scale", err));
    if (!scale) return amp_fail(err, AMP_INVALID_ARGUMENT, "amp_session_get_lr_scale: scale is NULL");
    AMP_TRY(find_scale(s, group, &state, err));
    AMP_TRY(amp_session_settle(s, true, err));
    *scale = *value_of(s, state);
    return AMP_OK;
}

amp_status amp_session_set_lr_scale(amp_session *s, int32_t group, double scale, amp_error *err) {
    int32_t state;
    AMP_TRY(amp_session_check_training(s, "amp_session_set_lr_scale", err));
    if (scale != AMP_LR_OF_MODEL) AMP_TRY(check_factor("lr_scale", scale, err));
    AMP_TRY(find_scale(s, group, &state, err));
    return set(s, state, scale == AMP_LR_OF_MODEL ? amp_initial_scalar(&s->model->states[state]) : scale, err);
}
