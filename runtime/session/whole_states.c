/* whole_states.c: what a checkpoint holds, where a session has a share of the moments alone: whole moments, which its
 * ranks bring together. */
#include "base/alloc.h"
#include "base/error.h"
#include "runtime/device/comm_calls.h"
#include "runtime/model/matrix_layout.h"
#include "runtime/model/state.h"
#include "runtime/session/session.h"

static size_t list_bytes(const amp_session *s) { return (size_t)s->model->state_count * sizeof(void *); }

void amp_session_drop_whole_states(const amp_session *s, void **states) {
    if (!s->shares.of || amp_session_has_device_memory(s)) {
        amp_session_drop_host_states(s, states);
        return;
    }
    for (int32_t i = 0; states && i < s->model->state_count; i++)
        if (amp_session_has_share_of(s, i))
            amp_free_aligned(&s->memory.allocator, states[i], amp_state_bytes(&s->model->states[i]), AMP_MEMORY_ALIGN);
    amp_free(&s->memory.allocator, states, states ? list_bytes(s) : 0);
}

static amp_status make_whole(const amp_session *s, void **states, amp_error *err) {
    for (int32_t i = 0; i < s->model->state_count; i++) {
        const size_t bytes = amp_state_bytes(&s->model->states[i]);
        states[i] = s->states.bound[i];
        if (!amp_session_has_share_of(s, i)) continue;
        states[i] = amp_alloc_zeroed_aligned(&s->memory.allocator, bytes, AMP_MEMORY_ALIGN);
        if (!states[i])
            return amp_fail(err, AMP_OUT_OF_MEMORY, "%s: no memory for %zu bytes of %s", s->model->desc.name, bytes,
                            s->model->states[i].name);
    }
    return AMP_OK;
}

static amp_status gather_moments(const amp_session *s, void *const *states, amp_error *err) {
    for (int32_t i = 0; i < s->model->state_count; i++)
        if (amp_session_has_share_of(s, i)) AMP_TRY(amp_session_gather_moment(s, i, states ? states[i] : NULL, err));
    return AMP_OK;
}

amp_status amp_session_send_moments(const amp_session *s, amp_error *err) { return gather_moments(s, NULL, err); }

amp_status amp_session_whole_states(const amp_session *s, bool read, void ***out, amp_error *err) {
    if (!s->shares.of || amp_session_has_device_memory(s)) {
        AMP_TRY(amp_session_host_states(s, read, out, err));
        return read && s->shares.of ? gather_moments(s, *out, err) : AMP_OK;
    }
    *out = amp_alloc_zeroed(&s->memory.allocator, list_bytes(s));
    if (!*out) return amp_fail(err, AMP_OUT_OF_MEMORY, "%s: no memory to copy its states", s->model->desc.name);
    AMP_TRY(make_whole(s, *out, err));
    return read ? gather_moments(s, *out, err) : AMP_OK;
}

/* As of all other weights and moments, rank 0's are everybody's. */
amp_status amp_session_take_whole_states(amp_session *s, void *const *states, amp_error *err) {
    uint64_t number;
    AMP_TRY(amp_session_take_states(s, states, err));
    if (!s->shares.of) return AMP_OK;
    amp_comm *comm = s->exchange->comm;
    for (int32_t i = 0; i < s->model->state_count; i++) {
        const amp_model_state *state = &s->model->states[i];
        if (!amp_session_has_share_of(s, i)) continue;
        AMP_TRY(comm->calls->start(comm, AMP_COLLECTIVE_BROADCAST, AMP_DT_U8, states[i], amp_state_bytes(state), 0,
                                   state->name, &number, err));
        AMP_TRY(comm->calls->wait(comm, number, err));
        AMP_TRY(amp_session_keep_share(s, i, states[i], err));
    }
    return AMP_OK;
}
