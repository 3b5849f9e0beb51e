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
#include "runtime/ranks/rank_exchange.h"

enum { NO_MORE = -1 };

typedef struct Whole {
    const amp_ranks *ranks;
    char *memory; /* of the last moment; NULL: none */
    size_t bytes;
} Whole;

static amp_status broadcast(const amp_ranks *r, void *data, size_t bytes, amp_error *err) {
    amp_comm *comm = r->comm;
    uint64_t number;
    AMP_TRY(comm->calls->start(comm, AMP_COLLECTIVE_BROADCAST, AMP_DT_U8, data, bytes, 0, "moments of a checkpoint",
                               &number, err));
    return comm->calls->wait(comm, number, err);
}

static void drop(Whole *w) {
    amp_free_aligned(&w->ranks->session.memory->allocator, w->memory, w->bytes, AMP_MEMORY_ALIGN);
    w->memory = NULL;
}

/* Zeros, as between rows. */
static amp_status make_room(Whole *w, int32_t moment, amp_error *err) {
    const amp_model *m = w->ranks->session.model;
    drop(w);
    w->bytes = amp_state_bytes(&m->states[moment]);
    w->memory = amp_alloc_zeroed_aligned(&w->ranks->session.memory->allocator, w->bytes, AMP_MEMORY_ALIGN);
    if (w->memory) return AMP_OK;
    return amp_fail(err, AMP_OUT_OF_MEMORY, "%s: no memory for %zu bytes of %s", m->desc.name, w->bytes,
                    m->states[moment].name);
}

/* ---- saving ------------------------------------------------------------------------------------------------------ */

static amp_status gather(Whole *w, int32_t moment, amp_error *err) {
    AMP_TRY(make_room(w, moment, err));
    return amp_ranks_gather(w->ranks, moment, w->memory, err);
}

/* amp_state_fetch, of rank 0: of a moment with shares |*memory| is all of it, until the next; other states stay as they
 * are. */
static amp_status fetch(void *whole, int32_t state, const void **memory, amp_error *err) {
    Whole *w = whole;
    if (!amp_ranks_share_moment(w->ranks, state)) return AMP_OK;
    AMP_TRY(broadcast(w->ranks, &state, sizeof state, err));
    AMP_TRY(gather(w, state, err));
    *memory = w->memory;
    return AMP_OK;
}

/* The other ranks, meanwhile. */
static amp_status send(Whole *w, amp_error *err) {
    int32_t next = 0;
    amp_status status = AMP_OK;
    while (!status && !(status = broadcast(w->ranks, &next, sizeof next, err)) && next != NO_MORE)
        status = gather(w, next, err);
    drop(w);
    return status;
}

amp_status amp_ranks_save(amp_ranks *r, amp_ranks_write *write, void *user, amp_error *err) {
    Whole w = {.ranks = r};
    int32_t next = NO_MORE;
    if (!r->shares) return write(user, NULL, err);
    if (r->comm->rank) return send(&w, err);
    amp_status status = write(user, &(amp_state_source){fetch, &w}, err);
    drop(&w);
    /* The file has all it takes, or could not be written. */
    amp_status ended = broadcast(r, &next, sizeof next, status ? NULL : err);
    return status ? status : ended;
}

/* ---- loading ----------------------------------------------------------------------------------------------------- */

/* As of all other weights and moments, rank 0's are everybody's. */
amp_status amp_ranks_load(amp_ranks *r, const amp_state_list *list, int32_t entry, const amp_safetensors *file,
                          amp_error *err) {
    const int32_t state = list->entries[entry].state;
    Whole w = {.ranks = r};
    amp_status status = make_room(&w, state, err);
    if (!status && !r->comm->rank) status = amp_state_list_read(list, entry, file, w.memory, err);
    if (!status) status = broadcast(r, w.memory, w.bytes, err);
    if (!status) status = amp_ranks_keep(r, state, w.memory, err);
    drop(&w);
    return status;
}
