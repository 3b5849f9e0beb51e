/* checkpoint_moments.c: moments of which ranks have shares (zero1), from and to a checkpoint: one at a time is whole,
 * on rank 0 alone.
 *
 * Rank 0 writes them in the order of the file, and says which one is next, or that no more are; so ranks that send
 * their shares need not know the file, and wait for nobody who could not write it.
 */
#include "base/alloc.h"
#include "base/error.h"
#include "runtime/device/comm_calls.h"
#include "runtime/model/matrix_layout.h"
#include "runtime/session/session.h"

enum { NO_MORE = -1, PIECE = 1 << 20 /* bytes of a moment that is read */ };

static amp_status broadcast(const amp_session *s, void *data, size_t bytes, const char *what, amp_error *err) {
    amp_comm *comm = s->exchange->comm;
    uint64_t number;
    AMP_TRY(comm->calls->start(comm, AMP_COLLECTIVE_BROADCAST, AMP_DT_U8, data, bytes, 0, what, &number, err));
    return comm->calls->wait(comm, number, err);
}

static amp_status say_next(const amp_session *s, int32_t *moment, amp_error *err) {
    return broadcast(s, moment, sizeof *moment, "the next moment of a checkpoint", err);
}

static amp_status make_room(const amp_session *s, int32_t moment, size_t bytes, char **out, amp_error *err) {
    *out = amp_alloc_zeroed_aligned(&s->memory.allocator, bytes, AMP_MEMORY_ALIGN);
    if (*out) return AMP_OK;
    return amp_fail(err, AMP_OUT_OF_MEMORY, "%s: no memory for %zu bytes of %s", s->model->desc.name, bytes,
                    s->model->states[moment].name);
}

/* ---- saving ------------------------------------------------------------------------------------------------------ */

static void drop(amp_whole_moment *w) {
    amp_free_aligned(&w->session->memory.allocator, w->memory, w->bytes, AMP_MEMORY_ALIGN);
    w->memory = NULL;
}

amp_status amp_session_fetch_moment(void *whole, int32_t state, const void **memory, amp_error *err) {
    amp_whole_moment *w = whole;
    if (!amp_session_has_share_of(w->session, state)) return AMP_OK;
    drop(w);
    w->bytes = amp_state_bytes(&w->session->model->states[state]);
    AMP_TRY(make_room(w->session, state, w->bytes, &w->memory, err));
    *memory = w->memory;
    AMP_TRY(say_next(w->session, &state, err));
    return amp_session_gather_moment(w->session, state, w->memory, err);
}

amp_status amp_session_fetched_moments(amp_whole_moment *w, amp_error *err) {
    int32_t next = NO_MORE;
    drop(w);
    return w->session->shares.of ? say_next(w->session, &next, err) : AMP_OK;
}

amp_status amp_session_send_moments(const amp_session *s, amp_error *err) {
    for (int32_t next;;) {
        AMP_TRY(say_next(s, &next, err));
        if (next == NO_MORE) return AMP_OK;
        AMP_TRY(amp_session_gather_moment(s, next, NULL, err));
    }
}

/* ---- loading ----------------------------------------------------------------------------------------------------- */

/* As of all other weights and moments, rank 0's are everybody's. */
amp_status amp_session_load_moment(amp_session *s, const amp_state_list *list, int32_t entry,
                                   const amp_safetensors *file, amp_error *err) {
    const bool reads = !s->exchange->comm->rank;
    const int32_t state = list->entries[entry].state;
    const size_t bytes = amp_state_bytes(&s->model->states[state]);
    const size_t room = reads || bytes < PIECE ? bytes : PIECE;
    char *memory;
    AMP_TRY(make_room(s, state, room, &memory, err));
    amp_status status = reads ? amp_state_list_read(list, entry, file, memory, err) : AMP_OK;
    for (size_t at = 0, n; !status && at < bytes; at += n) {
        char *piece = reads ? memory + at : memory;
        n = bytes - at < PIECE ? bytes - at : PIECE;
        status = broadcast(s, piece, n, s->model->states[state].name, err);
        if (!status) status = amp_session_keep_share(s, state, piece, at, n, err);
    }
    amp_free_aligned(&s->memory.allocator, memory, room, AMP_MEMORY_ALIGN);
    return status;
}
