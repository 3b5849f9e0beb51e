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
#include "runtime/ranks/rank_exchange.h"

/* ---- which ------------------------------------------------------------------------------------------------------- */

static size_t of_bytes(const amp_model *m) { return (size_t)m->state_count * sizeof(amp_share); }
static size_t blocks_bytes(const amp_model *m) { return (size_t)m->state_count * sizeof(amp_state_block); }

static size_t bytes_in(const amp_ranks *r, int32_t state, amp_share share) {
    return (size_t)(share.end - share.first) * amp_storage_size(r->session.model->states[state].storage);
}

static void set_share(amp_ranks *r, int32_t i, amp_share share) {
    const size_t bytes = bytes_in(r, i, share), align = AMP_MEMORY_ALIGN;
    r->shares[i] = share;
    r->session.states->blocks[i] =
        (amp_state_block){.first = i,
                          .at = -share.first * (int64_t)amp_storage_size(r->session.model->states[i].storage),
                          .bytes = (bytes + align - 1) / align * align};
}

static void plan_collective(amp_ranks *r, const amp_model_collective *c) {
    const amp_model *m = r->session.model;
    for (uint32_t j = 0; j < c->state_count; j++) {
        const int32_t param = m->states[c->states[j]].of;
        const amp_share share = amp_collective_share(m, c, j, r->comm->rank, r->comm->size);
        r->session.states->blocks[c->states[j]].bytes = amp_collective_bytes(m, c, r->comm->size);
        for (int32_t i = 0; i < m->state_count; i++)
            if (m->states[i].role == AMP_STATE_MOMENT && m->states[i].of == param) set_share(r, i, share);
    }
}

static bool any_scattered(const amp_model *m) {
    for (int32_t i = 0; i < m->collective_count; i++)
        if (amp_collective_is_scattered(&m->collectives[i])) return true;
    return false;
}

amp_status amp_ranks_plan_shares(amp_ranks *r, amp_error *err) {
    const amp_model *m = r->session.model;
    if (!any_scattered(m)) return AMP_OK;
    if (amp_ranks_on_device(r) && !r->comm->calls->enqueue)
        return amp_fail(err, AMP_UNSUPPORTED,
                        "%s: on device %s ranks have shares of the moments (zero1) only where they exchange on the "
                        "device itself: take the engine \"nccl\" (--dist nccl), or compile it with --distribute data",
                        m->desc.name, r->session.device->type->name);
    if (r->session.keeps_gradients)
        return amp_fail(err, AMP_UNSUPPORTED,
                        "%s: keep_values and grad_norm need whole gradients, of which ranks have shares (zero1); write "
                        "`clip_norm = inf` in its train blocks for the norm, or compile it with --distribute data",
                        m->desc.name);
    r->shares = amp_alloc(&r->session.memory->allocator, of_bytes(m));
    r->session.states->blocks = amp_alloc(&r->session.memory->allocator, blocks_bytes(m));
    if (!r->shares || !r->session.states->blocks)
        return amp_fail(err, AMP_OUT_OF_MEMORY, "%s: no memory to divide it among ranks", m->desc.name);
    for (int32_t i = 0; i < m->state_count; i++) r->shares[i] = (amp_share){0, -1};
    memcpy(r->session.states->blocks, m->blocks, blocks_bytes(m));
    for (int32_t i = 0; i < m->collective_count; i++)
        if (amp_collective_is_scattered(&m->collectives[i])) plan_collective(r, &m->collectives[i]);
    return AMP_OK;
}

void amp_ranks_free_shares(amp_ranks *r) {
    amp_free(&r->session.memory->allocator, r->shares, r->shares ? of_bytes(r->session.model) : 0);
}

/* ---- gradients --------------------------------------------------------------------------------------------------- */

amp_status amp_ranks_clear_other_shares(const amp_ranks *r, amp_error *err) {
    const amp_exchange *x = r->exchange;
    for (int32_t i = 0; i < x->model->collective_count; i++) {
        const amp_message *m = &x->messages[i];
        if (!amp_collective_is_scattered(&x->model->collectives[i])) continue;
        const size_t part = m->bytes / (size_t)x->comm->size, before = part * (size_t)x->comm->rank;
        AMP_TRY(amp_ranks_clear_bytes(r, m->data, before, err));
        AMP_TRY(amp_ranks_clear_bytes(r, (char *)m->data + before + part, m->bytes - before - part, err));
    }
    return AMP_OK;
}

/* ---- weights ----------------------------------------------------------------------------------------------------- */

/* A share of weight |j| of the message |gather|, of |ranks| that divide it; the message has 4 bytes for each element,
 * whatever a weight takes. */
static amp_status copy_share(const amp_exchange *x, int32_t gather, uint32_t j, int32_t rank, int32_t ranks,
                             bool to_message, amp_error *err) {
    const amp_ranks *r = x->ranks;
    const amp_model_collective *c = &x->model->collectives[gather];
    const int32_t i = c->states[j];
    const amp_share share = amp_collective_share(x->model, c, j, rank, ranks);
    char *message =
        (char *)x->messages[gather].data + (size_t)(amp_collective_place(x->model, c, j) + share.first) * sizeof(float);
    char *state = (char *)r->session.states->bound[i] +
                  (size_t)share.first * amp_storage_size(r->session.model->states[i].storage);
    return amp_ranks_copy_bytes(r, to_message ? message : state, to_message ? state : message, bytes_in(r, i, share),
                                err);
}

/* The rank's share of each into the message; and all that have come.  States of 4 bytes an element have their shares
 * one after the other, so that all is copied at once; masters that are split in shares are whole in the message. */
static amp_status copy_weights(const amp_exchange *x, int32_t gather, bool to_message, amp_error *err) {
    const amp_ranks *r = x->ranks;
    const amp_model_collective *c = &x->model->collectives[gather];
    for (uint32_t j = 0; j < c->state_count; j++) {
        const int32_t i = c->states[j];
        const bool is_wide = amp_storage_size(r->session.model->states[i].storage) == sizeof(float);
        const int32_t ranks = is_wide && !to_message ? 1 : x->comm->size;
        if (amp_ranks_share_master(r, i)) {
            if (to_message) AMP_TRY(amp_ranks_give_master(r, i, err));
            continue;
        }
        for (int32_t k = 0; k < ranks; k++)
            if (!to_message || k == x->comm->rank) AMP_TRY(copy_share(x, gather, j, k, ranks, to_message, err));
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

amp_status amp_ranks_gather_weights(amp_ranks *r, amp_error *err) {
    amp_exchange *x = r->exchange;
    if (!r->shares) return AMP_OK;
    AMP_TRY(start_gathers(x, err));
    for (int32_t i = 0; i < x->model->collective_count; i++) {
        if (x->model->collectives[i].op != AMP_EXCHANGE_ALL_GATHER) continue;
        if (!x->enqueued) AMP_TRY(x->comm->calls->wait(x->comm, x->messages[i].number, err));
        AMP_TRY(copy_weights(x, i, false, err));
    }
    amp_ranks_masters_come(r);
    if (!x->enqueued) {
        amp_params_changed_on_host(r->session.params);
        return AMP_OK;
    }
    r->are_current = true;
    amp_params_make_stale(r->session.params); /* the newest ones are on the device */
    return r->session.device->type->device_memory->wrote_params(r->session.device, r->session.params->residency->memory,
                                                                err);
}

/* ---- moments ----------------------------------------------------------------------------------------------------- */

/* From rank to rank. */
amp_status amp_ranks_gather(const amp_ranks *r, int32_t i, char *whole, amp_error *err) {
    amp_comm *comm = r->comm;
    const amp_model_state *moment = &r->session.model->states[i];
    uint32_t at;
    const amp_model_collective *c = amp_collective_scattering(r->session.model, moment->of, &at);
    uint64_t number;
    for (int32_t k = 0; k < comm->size; k++) {
        const amp_share share = amp_collective_share(r->session.model, c, at, k, comm->size);
        const int64_t first = share.first * (int64_t)amp_storage_size(moment->storage);
        char *to = whole + first;
        const char *own = (char *)r->session.states->bound[i] + first;
        if (share.first == share.end) continue;
        if (k == comm->rank) AMP_TRY(amp_ranks_read_bytes(r, to, own, bytes_in(r, i, share), err));
        AMP_TRY(comm->calls->start(comm, AMP_COLLECTIVE_BROADCAST, AMP_DT_U8, to, bytes_in(r, i, share), k,
                                   moment->name, &number, err));
        AMP_TRY(comm->calls->wait(comm, number, err));
    }
    return AMP_OK;
}

amp_status amp_ranks_keep(amp_ranks *r, int32_t i, const char *whole, amp_error *err) {
    const amp_share share = r->shares[i];
    const int64_t at = share.first * (int64_t)amp_storage_size(r->session.model->states[i].storage);
    const size_t bytes = bytes_in(r, i, share);
    return bytes ? amp_ranks_write_bytes(r, (char *)r->session.states->bound[i] + at, whole + at, bytes, err) : AMP_OK;
}
