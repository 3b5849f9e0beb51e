/* shares.c: a session of a rank that updates its share of the weights, and has the moments of that share alone (zero1).
 *
 *   reduce_step   the sums of the share; the rest of a gradient becomes zeros
 *   apply_step    kernels that update a weight run for the share (amp_run.shares)
 *   gather_step   the other shares of the weights come from their ranks
 *
 * A state that is split in shares is bound to where all of it would begin, so that kernels find an element where
 * they find it in a whole one.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "runtime/device/comm_calls.h"
#include "runtime/model/matrix_layout.h"
#include "runtime/model/state.h"
#include "runtime/session/session.h"

/* ---- which ------------------------------------------------------------------------------------------------------- */

static size_t of_bytes(const amp_model *m) { return (size_t)m->state_count * sizeof(amp_share); }
static size_t blocks_bytes(const amp_model *m) { return (size_t)m->state_count * sizeof(amp_state_block); }

bool amp_session_has_share_of(const amp_session *s, int32_t state) {
    return s->shares.of && s->model->states[state].role == AMP_STATE_MOMENT && s->shares.of[state].end >= 0;
}

static size_t bytes_in(const amp_session *s, int32_t state, amp_share share) {
    return (size_t)(share.end - share.first) * amp_storage_size(s->model->states[state].storage);
}

static void set_share(amp_session *s, int32_t i, amp_share share) {
    const size_t bytes = bytes_in(s, i, share), align = AMP_MEMORY_ALIGN;
    s->shares.of[i] = share;
    s->shares.blocks[i] = (amp_state_block){.first = i,
                                            .at = -share.first * (int64_t)amp_storage_size(s->model->states[i].storage),
                                            .bytes = (bytes + align - 1) / align * align};
}

static void plan_collective(amp_session *s, const amp_model_collective *c, const amp_comm *comm) {
    const amp_model *m = s->model;
    for (uint32_t j = 0; j < c->state_count; j++) {
        const int32_t param = m->states[c->states[j]].of;
        const amp_share share = amp_collective_share(m, c, j, comm->rank, comm->size);
        s->shares.blocks[c->states[j]].bytes = amp_collective_bytes(m, c, comm->size);
        for (int32_t i = 0; i < m->state_count; i++)
            if (m->states[i].role == AMP_STATE_MOMENT && m->states[i].of == param) set_share(s, i, share);
    }
}

static bool any_scattered(const amp_model *m) {
    for (int32_t i = 0; i < m->collective_count; i++)
        if (amp_collective_is_scattered(&m->collectives[i])) return true;
    return false;
}

amp_status amp_session_plan_shares(amp_session *s, const amp_comm *comm, amp_error *err) {
    const amp_model *m = s->model;
    if (!comm || comm->size < 2 || !s->training || !s->device->type->computes || !any_scattered(m)) return AMP_OK;
    if (amp_session_has_device_memory(s) && !comm->calls->enqueue)
        return amp_fail(err, AMP_UNSUPPORTED,
                        "%s: on device %s ranks have shares of the moments (zero1) only where they exchange on the "
                        "device itself: take the engine \"nccl\" (--dist nccl), or compile it with --distribute data",
                        m->desc.name, s->device->type->name);
    if (s->keeps_gradients)
        return amp_fail(err, AMP_UNSUPPORTED,
                        "%s: keep_values and grad_norm need whole gradients, of which ranks have shares (zero1); write "
                        "`clip_norm = inf` in its train blocks for the norm, or compile it with --distribute data",
                        m->desc.name);
    s->shares.of = amp_alloc(&s->memory.allocator, of_bytes(m));
    s->shares.blocks = amp_alloc(&s->memory.allocator, blocks_bytes(m));
    if (!s->shares.of || !s->shares.blocks)
        return amp_fail(err, AMP_OUT_OF_MEMORY, "%s: no memory to divide it among ranks", m->desc.name);
    for (int32_t i = 0; i < m->state_count; i++) s->shares.of[i] = (amp_share){0, -1};
    memcpy(s->shares.blocks, m->blocks, blocks_bytes(m));
    for (int32_t i = 0; i < m->collective_count; i++)
        if (amp_collective_is_scattered(&m->collectives[i])) plan_collective(s, &m->collectives[i], comm);
    return AMP_OK;
}

void amp_session_free_shares(amp_session *s) {
    amp_free(&s->memory.allocator, s->shares.of, s->shares.of ? of_bytes(s->model) : 0);
    amp_free(&s->memory.allocator, s->shares.blocks, s->shares.blocks ? blocks_bytes(s->model) : 0);
}

int32_t amp_session_has_shares(const amp_session *session) { return session && session->shares.of; }

/* ---- gradients --------------------------------------------------------------------------------------------------- */

amp_status amp_session_clear_other_shares(const amp_session *s, amp_error *err) {
    const amp_exchange *x = s->exchange;
    for (int32_t i = 0; i < x->model->collective_count; i++) {
        const amp_message *m = &x->messages[i];
        if (!amp_collective_is_scattered(&x->model->collectives[i])) continue;
        const size_t part = m->bytes / (size_t)x->comm->size, before = part * (size_t)x->comm->rank;
        AMP_TRY(amp_session_clear_bytes(s, m->data, before, err));
        AMP_TRY(amp_session_clear_bytes(s, (char *)m->data + before + part, m->bytes - before - part, err));
    }
    return AMP_OK;
}

/* ---- weights ----------------------------------------------------------------------------------------------------- */

/* A share of weight |j| of the message |gather|, of |ranks| that divide it; the message has 4 bytes for each element,
 * whatever a weight takes. */
static amp_status copy_share(const amp_exchange *x, int32_t gather, uint32_t j, int32_t rank, int32_t ranks,
                             bool to_message, amp_error *err) {
    const amp_session *s = x->session;
    const amp_model_collective *c = &x->model->collectives[gather];
    const int32_t i = c->states[j];
    const amp_share share = amp_collective_share(x->model, c, j, rank, ranks);
    char *message =
        (char *)x->messages[gather].data + (size_t)(amp_collective_place(x->model, c, j) + share.first) * sizeof(float);
    char *state = (char *)s->states.bound[i] + (size_t)share.first * amp_storage_size(s->model->states[i].storage);
    return amp_session_copy_bytes(s, to_message ? message : state, to_message ? state : message, bytes_in(s, i, share),
                                  err);
}

/* The rank's share of each into the message; and all that have come.  States of 4 bytes an element have their shares
 * one after the other, so that all is copied at once; masters that are split in shares are whole in the message. */
static amp_status copy_weights(const amp_exchange *x, int32_t gather, bool to_message, amp_error *err) {
    const amp_session *s = x->session;
    const amp_model_collective *c = &x->model->collectives[gather];
    for (uint32_t j = 0; j < c->state_count; j++) {
        const int32_t i = c->states[j];
        const bool is_wide = amp_storage_size(s->model->states[i].storage) == sizeof(float);
        const int32_t ranks = is_wide && !to_message ? 1 : x->comm->size;
        if (amp_session_shares_master(s, i)) {
            if (to_message) AMP_TRY(amp_session_give_master(s, i, err));
            continue;
        }
        for (int32_t r = 0; r < ranks; r++)
            if (!to_message || r == x->comm->rank) AMP_TRY(copy_share(x, gather, j, r, ranks, to_message, err));
    }
    return AMP_OK;
}

static amp_status start_gathers(amp_exchange *x, amp_error *err) {
    for (int32_t i = 0; i < x->model->collective_count; i++) {
        amp_message *m = &x->messages[i];
        if (x->model->collectives[i].op != AMP_EXCHANGE_ALL_GATHER) continue;
        AMP_TRY(copy_weights(x, i, true, err));
        if (x->enqueued) continue; /* all at once */
        AMP_TRY(x->comm->calls->start(x->comm, AMP_COLLECTIVE_ALL_GATHER, AMP_DT_F32, m->data, m->count, 0,
                                      x->model->collectives[i].what, &m->number, err));
    }
    return x->enqueued ? amp_exchange_enqueue_gathers(x, err) : AMP_OK;
}

amp_status amp_session_gather_weights(amp_session *s, amp_error *err) {
    amp_exchange *x = s->exchange;
    if (!s->shares.of) return AMP_OK;
    AMP_TRY(start_gathers(x, err));
    for (int32_t i = 0; i < x->model->collective_count; i++) {
        if (x->model->collectives[i].op != AMP_EXCHANGE_ALL_GATHER) continue;
        if (!x->enqueued) AMP_TRY(x->comm->calls->wait(x->comm, x->messages[i].number, err));
        AMP_TRY(copy_weights(x, i, false, err));
    }
    amp_session_masters_come(s);
    if (!x->enqueued) {
        amp_params_changed_on_host(s->params);
        return AMP_OK;
    }
    s->shares.current = true;
    atomic_store(&s->params->stale, true); /* the newest ones are on the device */
    return s->device->type->device_memory->wrote_params(s->device, s->params->residency->memory, err);
}

/* ---- moments ----------------------------------------------------------------------------------------------------- */

/* From rank to rank. */
amp_status amp_session_gather_moment(const amp_session *s, int32_t i, char *whole, amp_error *err) {
    amp_comm *comm = s->exchange->comm;
    const amp_model_state *moment = &s->model->states[i];
    uint32_t at;
    const amp_model_collective *c = amp_collective_scattering(s->model, moment->of, &at);
    uint64_t number;
    for (int32_t r = 0; r < comm->size; r++) {
        const amp_share share = amp_collective_share(s->model, c, at, r, comm->size);
        const int64_t first = share.first * (int64_t)amp_storage_size(moment->storage);
        char *to = whole + first;
        const char *own = (char *)s->states.bound[i] + first;
        if (share.first == share.end) continue;
        if (r == comm->rank) AMP_TRY(amp_session_read_bytes(s, to, own, bytes_in(s, i, share), err));
        AMP_TRY(comm->calls->start(comm, AMP_COLLECTIVE_BROADCAST, AMP_DT_U8, to, bytes_in(s, i, share), r,
                                   moment->name, &number, err));
        AMP_TRY(comm->calls->wait(comm, number, err));
    }
    return AMP_OK;
}

amp_status amp_session_keep_share(amp_session *s, int32_t i, const char *whole, amp_error *err) {
    const amp_share share = s->shares.of[i];
    const int64_t at = share.first * (int64_t)amp_storage_size(s->model->states[i].storage);
    const size_t bytes = bytes_in(s, i, share);
    return bytes ? amp_session_write_bytes(s, (char *)s->states.bound[i] + at, whole + at, bytes, err) : AMP_OK;
}
