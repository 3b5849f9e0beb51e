/* drift.c: in each step ranks compare what they have to have in common: loss scale, counters and learning rates, and in
 * the host's memory a piece of their weights, another one in each step.  What differs, because a program sets it on one
 * rank alone, or a library adds differently, would otherwise be seen in the loss, much later. */
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "runtime/device/comm_calls.h"
#include "runtime/model/state.h"
#include "runtime/ranks/rank_exchange.h"

enum { PIECE = 4096 }; /* bytes */

static uint64_t hash_of(amp_sha256 *h) {
    uint8_t bytes[32];
    uint64_t first;
    amp_sha256_final(h, bytes);
    memcpy(&first, bytes, sizeof first);
    return first;
}

/* A device's scale and counters are in its memory: there only what programs set is compared. */
static uint64_t hash_scalars(const amp_ranks *r) {
    const bool on_device = amp_ranks_on_device(r);
    amp_sha256 h;
    amp_sha256_init(&h);
    for (int32_t i = 0; i < r->session.model->state_count; i++) {
        const amp_model_state *state = &r->session.model->states[i];
        const bool is_set = state->counter == AMP_COUNTER_LEARNING_RATE || state->counter == AMP_COUNTER_LR_SCALE;
        const void *at = on_device ? r->session.states->host[i] : r->session.states->bound[i];
        if (at && amp_ranks_share_scalar(r, i) && (is_set || !on_device))
            amp_sha256_update(&h, at, amp_state_content_bytes(state));
    }
    return hash_of(&h);
}

/* Of a weight whose masters are away, as ranks have shares of them, its copies. */
static bool is_compared(const amp_ranks *r, int32_t i) {
    const amp_model_state *state = &r->session.model->states[i];
    if (state->role == AMP_STATE_DERIVED) return amp_ranks_share_master(r, state->of);
    return amp_state_is_param(state) && r->session.states->bound[i] && !amp_ranks_share_master(r, i);
}

/* The next weight in each step, and when all had their turn the next piece of each. */
static uint64_t hash_weights(const amp_ranks *r) {
    const amp_model *m = r->session.model;
    const int64_t *iteration = amp_ranks_iteration(r);
    int64_t params = 0, turn;
    amp_sha256 h;
    amp_sha256_init(&h);
    for (int32_t i = 0; i < m->state_count; i++) params += is_compared(r, i);
    if (!params || !iteration || amp_ranks_on_device(r)) return hash_of(&h);
    turn = *iteration % params;
    for (int32_t i = 0; i < m->state_count; i++) {
        if (!is_compared(r, i) || turn--) continue;
        const size_t bytes = amp_state_bytes(&m->states[i]), pieces = (bytes + PIECE - 1) / PIECE;
        const size_t at = (size_t)(*iteration / params) % (pieces ? pieces : 1) * PIECE;
        amp_sha256_update(&h, (const char *)r->session.states->bound[i] + at, bytes - at < PIECE ? bytes - at : PIECE);
    }
    return hash_of(&h);
}

amp_status amp_ranks_compare(const amp_ranks *r, uint64_t *number, amp_error *err) {
    const amp_exchange *x = r->exchange;
    x->prints[x->comm->rank] = (amp_fingerprint){hash_scalars(r), hash_weights(r)};
    return x->comm->calls->start(x->comm, AMP_COLLECTIVE_ALL_GATHER, AMP_DT_U8, x->prints,
                                 sizeof *x->prints * (size_t)x->comm->size, 0, "what ranks have in common", number,
                                 err);
}

amp_status amp_ranks_check_drift(const amp_ranks *r, amp_error *err) {
    const amp_exchange *x = r->exchange;
    const int64_t *iteration = amp_ranks_iteration(r);
    for (int32_t i = 1; i < x->comm->size; i++) {
        const bool scalars = x->prints[i].scalars != x->prints[0].scalars;
        if (!scalars && x->prints[i].weights == x->prints[0].weights) continue;
        return amp_fail(err, AMP_MISMATCH, "step %lld: rank %d has drifted from rank 0: %s",
                        iteration ? (long long)*iteration + 1 : 0, i,
                        scalars ? "another loss scale, step number or learning rate; all ranks have to set the same"
                                : "other weights; all ranks have to set the same, or the library that exchanges "
                                  "gradients does not give all ranks the same sums");
    }
    return AMP_OK;
}

amp_status amp_ranks_compare_in_passing(const amp_ranks *r, amp_error *err) {
    amp_exchange *x = r->exchange;
    if (x->compares) {
        AMP_TRY(x->comm->calls->wait(x->comm, x->compared, err));
        AMP_TRY(amp_ranks_check_drift(r, err));
    }
    AMP_TRY(amp_ranks_compare(r, &x->compared, err));
    x->compares = true;
    return AMP_OK;
}
