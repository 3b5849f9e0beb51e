/* count_param.c: how large the numbers of a parameter are. */
#include "base/error.h"
#include "runtime/model/matrix_layout.h"
#include "runtime/model/state.h"
#include "runtime/session/session.h"

amp_status amp_session_count_param(amp_session *session, const char *name, amp_number_bins *to, amp_error *err) {
    AMP_TRY(amp_session_check_training(session, "amp_session_count_param", err));
    if (!name || !to)
        return amp_fail(err, AMP_INVALID_ARGUMENT, "amp_session_count_param: %s is NULL", name ? "to" : "name");
    const int32_t i = amp_model_state_index(session->model, name);
    if (i < 0 || !amp_state_is_param(&session->model->states[i]))
        return amp_fail(err, AMP_NOT_FOUND, "%s has no parameter %s; amp_model_param_at lists those that it has",
                        session->model->desc.name, name);
    AMP_TRY(amp_params_reach_device(session->params, err));
    const amp_model_state *state = &session->model->states[i];
    amp_counted what = {.memory = session->states.bound[i], .layout = state->layout, .storage = state->storage};
    amp_state_matrix(state, &what.rows, &what.cols);
    return amp_session_count(session, name, &what, to, err);
}
