/* checkpoint_copy.c: what a checkpoint has, from session to session without a file. */
#include <string.h>

#include "base/error.h"
#include "runtime/files/state_file.h"
#include "runtime/session/session.h"

typedef struct Copy {
    amp_session *to;
    const amp_session *from;
    amp_state_list own, theirs;
    void **states, **from_states; /* on the host */
} Copy;

/* Of ranks a rank may have a share of it alone; all ranks copy. */
static amp_status copy_shared(Copy *c, int32_t there, int32_t here, amp_error *err) {
    AMP_TRY(amp_session_get_state(c->from, there, c->own.rows, err));
    return amp_session_set_state(c->to, here, c->own.rows, err);
}

static amp_status copy_state(Copy *c, int32_t there, int32_t here, amp_error *err) {
    const amp_model_state *from = &c->from->model->states[there], *to = &c->to->model->states[here];
    if (amp_ranks_share_moment(c->from->ranks, there) || amp_ranks_share_moment(c->to->ranks, here))
        return copy_shared(c, there, here, err);
    const void *values = c->from_states[there];
    void *memory = c->states[here];
    if (memory == values) return AMP_OK;
    if (amp_state_is_as_in_text(from, values)) amp_store_element(memory, to->storage, 0, amp_initial_scalar(to));
    else if (amp_state_stored_alike(from, to)) memcpy(memory, values, amp_state_content_bytes(to));
    else {
        amp_state_get_f32(from, values, c->own.rows);
        amp_state_set_f32(to, memory, c->own.rows);
    }
    return AMP_OK;
}

static amp_status copy_states(Copy *c, amp_error *err) {
    for (int32_t i = 0; i < c->own.count; i++) {
        const int32_t at = amp_state_list_find(&c->theirs, c->own.entries[i].name);
        if (at >= 0) AMP_TRY(copy_state(c, c->theirs.entries[at].state, c->own.entries[i].state, err));
    }
    amp_session_forget_kept(c->to);
    return amp_session_take_states(c->to, c->states, err);
}

static amp_status copy(Copy *c, amp_error *err) {
    AMP_TRY(amp_state_lists_check(&c->own, &c->theirs, "the moments and counters", err));
    AMP_TRY(amp_state_list_reserve(&c->own, err));
    AMP_TRY(amp_session_settle(c->from, true, err));
    AMP_TRY(amp_session_settle(c->to, true, err));
    amp_status status = amp_session_host_states(c->from, true, &c->from_states, err);
    if (!status) status = amp_session_host_states(c->to, false, &c->states, err);
    if (!status) status = copy_states(c, err);
    amp_session_drop_host_states(c->to, c->states);
    amp_session_drop_host_states(c->from, c->from_states);
    AMP_TRY(status);
    amp_params_make_stale(c->to->params);
    c->to->step.micro = 0;
    amp_session_is_whole(c->to);
    return AMP_OK;
}

static amp_status check(const amp_session *to, const amp_session *from, amp_error *err) {
    AMP_TRY(amp_session_check_training(to, "amp_checkpoint_copy", err));
    AMP_TRY(amp_session_check_training(from, "amp_checkpoint_copy", err));
    if (from->step.micro)
        return amp_fail(err, AMP_WRONG_STATE,
                        "amp_checkpoint_copy: %lld of the %lld micro-batches of a step of from have been run; copy "
                        "when the step is complete",
                        (long long)from->step.micro, (long long)from->model->accumulate);
    AMP_TRY(amp_params_check_masters(to->params, "amp_checkpoint_copy", err));
    return amp_params_check_masters(from->params, "amp_checkpoint_copy", err);
}

amp_status amp_checkpoint_copy(amp_session *to, const amp_session *from, amp_error *err) {
    Copy c = {.to = to, .from = from};
    AMP_TRY(check(to, from, err));
    if (to == from) return AMP_OK;
    const amp_allocator *a = &to->model->allocator;
    AMP_TRY(amp_state_list_make(&c.own, to->model, AMP_FILE_OF_CHECKPOINT, a, err));
    amp_status status = amp_state_list_make(&c.theirs, from->model, AMP_FILE_OF_CHECKPOINT, a, err);
    if (!status) status = copy(&c, err);
    amp_state_list_free(&c.theirs);
    amp_state_list_free(&c.own);
    return status;
}
