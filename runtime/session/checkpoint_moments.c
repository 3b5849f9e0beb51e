/* checkpoint_moments.c: moments that are split in shares of ranks (zero1), from and to a checkpoint: one at a time is
 * whole.
 *
 * Rank 0 writes them in the order of the file, and says which one is next, or that no more are; so ranks that send
 * their shares need not know the file, and do not wait for a rank that could not write it.
 */
#include "base/alloc.h"
#include "base/error.h"
#include "runtime/device/comm_calls.h"
#include "runtime/model/matrix_layout.h"
#include "runtime/session/session.h"

enum { NO_MORE = -1 };

static amp_status broadcast(const amp_session *s, void *data, size_t bytes, amp_error *err) {
    amp_comm *comm = s->exchange->comm;
    uint64_t number;
    AMP_TRY(comm->calls->start(comm, AMP_COLLECTIVE_BROADCAST, AMP_DT_U8, data, bytes, 0, "moments of a checkpoint",
                               &number, err));
    return comm->calls->wait(comm, number, err);
}

static void drop(amp_whole_moment *w) {
    amp_free_aligned(&w->session->memory.allocator, w->memory, w->bytes, AMP_MEMORY_ALIGN);
    w->memory = NULL;
}

/* Zeros, as between rows. */
static amp_status make_room(amp_whole_moment *w, int32_t moment, amp_error *err) {
    const amp_model *m = w->session->model;
    drop(w);
    w->bytes = amp_state_bytes(&m->states[moment]);
    w->memory = amp_alloc_zeroed_aligned(&w->session->memory.allocator, w->bytes, AMP_MEMORY_ALIGN);
    if (w->memory) return AMP_OK;
    return amp_fail(err, AMP_OUT_OF_MEMORY, "%s: no memory for %zu bytes of %s", m->desc.name, w->bytes,
                    m->states[moment].name);
}

/* ---- saving ------------------------------------------------------------------------------------------------------ */

static amp_status gather(amp_whole_moment *w, int32_t moment, amp_error *err) {
    AMP_TRY(make_room(w, moment, err));
    return amp_session_gather_moment(w->session, moment, w->memory, err);
}

amp_status amp_session_fetch_moment(void *whole, int32_t state, const void **memory, amp_error *err) {
    amp_whole_moment *w = whole;
    if (!amp_session_has_share_of(w->session, state)) return AMP_OK;
    AMP_TRY(broadcast(w->session, &state, sizeof state, err));
    AMP_TRY(gather(w, state, err));
    *memory = w->memory;
    return AMP_OK;
}

amp_status amp_session_fetched_moments(amp_whole_moment *w, amp_error *err) {
    int32_t next = NO_MORE;
    drop(w);
    return w->session->shares.of ? broadcast(w->session, &next, sizeof next, err) : AMP_OK;
}

amp_status amp_session_send_moments(const amp_session *s, amp_error *err) {
    amp_whole_moment w = {.session = s};
    int32_t next = 0;
    amp_status status = AMP_OK;
    while (!status && !(status = broadcast(s, &next, sizeof next, err)) && next != NO_MORE)
        status = gather(&w, next, err);
    drop(&w);
    return status;
}

/* ---- loading ----------------------------------------------------------------------------------------------------- */

/* As of all other weights and moments, rank 0's are everybody's. */
amp_status amp_session_load_moment(amp_session *s, const amp_state_list *list, int32_t entry,
                                   const amp_safetensors *file, amp_error *err) {
    const int32_t state = list->entries[entry].state;
    amp_whole_moment w = {.session = s};
    amp_status status = make_room(&w, state, err);
    if (!status && !s->exchange->comm->rank) status = amp_state_list_read(list, entry, file, w.memory, err);
    if (!status) status = broadcast(s, w.memory, w.bytes, err);
    if (!status) status = amp_session_keep_share(s, state, w.memory, err);
    drop(&w);
    return status;
}
