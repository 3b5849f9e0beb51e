/* agreement.c: what the ranks of a training have in common: before the first step they compare what they train, and
 * take the weights of rank 0. */
#include <stdio.h>
#include <string.h>

#include "amp/version.h"
#include "base/alloc.h"
#include "base/error.h"
#include "base/hash.h"
#include "runtime/device/comm_calls.h"
#include "runtime/model/matrix_layout.h"
#include "runtime/model/state.h"
#include "runtime/ranks/rank_exchange.h"

/* ---- what ranks agree on ----------------------------------------------------------------------------------------- */

enum { SHA256_BYTES = 32 };

/* What each rank says of itself; padded with zeros.  The first field never changes, so that any two versions can tell
 * that they differ. */
typedef struct Hello {
    char version[32];
    char model[64], device[16], products[16];
    uint8_t source[SHA256_BYTES], policy[SHA256_BYTES], ir[SHA256_BYTES];
    int64_t capacity, seed, accumulate, state_count;
} Hello;

static Hello hello_of(const amp_ranks *r) {
    const amp_model_desc *d = &r->session.model->desc;
    Hello h = {.capacity = r->session.capacity,
               .seed = (int64_t)r->session.seed,
               .accumulate = r->session.model->accumulate,
               .state_count = r->session.model->state_count};
    snprintf(h.version, sizeof h.version, "%s", AMP_VERSION);
    snprintf(h.model, sizeof h.model, "%s", d->name);
    snprintf(h.device, sizeof h.device, "%s", r->session.device->type->name);
    snprintf(h.products, sizeof h.products, "%s", r->session.products);
    memcpy(h.source, d->source_sha256, sizeof h.source);
    memcpy(h.policy, d->policy_sha256, sizeof h.policy);
    memcpy(h.ir, d->ir_sha256, sizeof h.ir);
    return h;
}

static amp_status differs(int32_t rank, const char *what, const char *theirs, const char *ours, amp_error *err) {
    return amp_fail(
        err, AMP_MISMATCH,
        "rank %d has another %s than rank 0: %s instead of %s; start all ranks with the same model, options "
        "and version",
        rank, what, theirs, ours);
}

static amp_status check_text(int32_t rank, const char *what, const char *theirs, const char *ours, amp_error *err) {
    return strcmp(theirs, ours) ? differs(rank, what, theirs, ours, err) : AMP_OK;
}

static amp_status check_hash(int32_t rank, const char *what, const uint8_t *theirs, const uint8_t *ours,
                             amp_error *err) {
    char a[16], b[16];
    if (!memcmp(theirs, ours, SHA256_BYTES)) return AMP_OK;
    snprintf(a, sizeof a, "%02x%02x%02x%02x..", theirs[0], theirs[1], theirs[2], theirs[3]);
    snprintf(b, sizeof b, "%02x%02x%02x%02x..", ours[0], ours[1], ours[2], ours[3]);
    return differs(rank, what, a, b, err);
}

static amp_status check_number(int32_t rank, const char *what, int64_t theirs, int64_t ours, amp_error *err) {
    char a[24], b[24];
    snprintf(a, sizeof a, "%lld", (long long)theirs);
    snprintf(b, sizeof b, "%lld", (long long)ours);
    return theirs == ours ? AMP_OK : differs(rank, what, a, b, err);
}

static amp_status check_hello(int32_t rank, const Hello *theirs, const Hello *ours, amp_error *err) {
    AMP_TRY(check_text(rank, "version of ampc", theirs->version, ours->version, err));
    AMP_TRY(check_text(rank, "model", theirs->model, ours->model, err));
    AMP_TRY(check_hash(rank, "model text (SHA-256)", theirs->source, ours->source, err));
    AMP_TRY(check_hash(rank, "policy (SHA-256)", theirs->policy, ours->policy, err));
    AMP_TRY(check_text(rank, "device", theirs->device, ours->device, err));
    AMP_TRY(check_text(rank, "choice of products", theirs->products, ours->products, err));
    AMP_TRY(check_hash(rank, "compilation of the model (SHA-256 of its IR)", theirs->ir, ours->ir, err));
    AMP_TRY(check_number(rank, "capacity (samples of a micro-batch)", theirs->capacity, ours->capacity, err));
    AMP_TRY(check_number(rank, "seed", theirs->seed, ours->seed, err));
    return check_number(rank, "number of micro-batches", theirs->accumulate, ours->accumulate, err);
}

/* Gathers |size| bytes of each rank; the caller frees them. */
static amp_status gather(const amp_ranks *r, const void *mine, size_t size, const char *what, char **all,
                         amp_error *err) {
    amp_comm *comm = r->comm;
    const size_t bytes = size * (size_t)comm->size;
    *all = amp_alloc_zeroed(&r->session.memory->allocator, bytes);
    if (!*all) return amp_fail(err, AMP_OUT_OF_MEMORY, "no memory for what %d ranks say of themselves", comm->size);
    amp_status status = comm->calls->meet(comm, mine, size, *all, what, err);
    if (!status) return AMP_OK;
    amp_free(&r->session.memory->allocator, *all, bytes);
    return status;
}

static amp_status say_hello(amp_ranks *r, amp_error *err) {
    const Hello mine = hello_of(r);
    char *all;
    AMP_TRY(gather(r, &mine, sizeof mine, "what ranks train", &all, err));
    amp_status status = AMP_OK;
    Hello first, other;
    memcpy(&first, all, sizeof first);
    for (int32_t i = 1; i < r->comm->size && !status; i++) {
        memcpy(&other, all + (size_t)i * sizeof other, sizeof other);
        status = check_hello(i, &other, &first, err);
    }
    amp_free(&r->session.memory->allocator, all, sizeof mine * (size_t)r->comm->size);
    return status;
}

/* ---- the same weights everywhere --------------------------------------------------------------------------------- */

static bool is_scalar(const amp_model_state *s) { return s->role == AMP_STATE_COUNTER || s->role == AMP_STATE_SCALER; }

/* What a checkpoint holds; the number of a rank's first micro-batch is its own, and so is what it kept. */
static bool is_shared(const amp_ranks *r, int32_t i) {
    const amp_model_state *state = &r->session.model->states[i];
    if (!r->session.states->bound[i] || state->counter == AMP_COUNTER_FIRST_MICRO ||
        state->counter == AMP_COUNTER_MICRO || state->counter == AMP_COUNTER_STATES_KEPT)
        return false;
    if (amp_ranks_share_moment(r, i)) return false;
    return amp_state_is_param(state) || state->role == AMP_STATE_MOMENT || is_scalar(state);
}

bool amp_ranks_share_scalar(const amp_ranks *r, int32_t state) {
    return is_scalar(&r->session.model->states[state]) && is_shared(r, state);
}

static amp_status broadcast(const amp_ranks *r, void *const *states, amp_error *err) {
    amp_comm *comm = r->comm;
    uint64_t last = 0;
    bool any = false;
    for (int32_t i = 0; i < r->session.model->state_count; i++) {
        const amp_model_state *state = &r->session.model->states[i];
        const size_t count = amp_state_bytes(state) / amp_storage_size(state->storage);
        if (!is_shared(r, i) || !states[i]) continue;
        AMP_TRY(comm->calls->start(comm, AMP_COLLECTIVE_BROADCAST, (amp_dtype)state->storage, states[i],
                                   is_scalar(state) ? 1 : count, 0, state->name, &last, err));
        any = true;
    }
    return any ? comm->calls->wait(comm, last, err) : AMP_OK;
}

static amp_status check_equal(const amp_ranks *r, void *const *states, amp_error *err) {
    amp_sha256 hash;
    uint8_t mine[SHA256_BYTES];
    char *all;
    amp_sha256_init(&hash);
    for (int32_t i = 0; i < r->session.model->state_count; i++)
        if (is_shared(r, i) && states[i])
            amp_sha256_update(&hash, states[i], amp_state_content_bytes(&r->session.model->states[i]));
    amp_sha256_final(&hash, mine);
    AMP_TRY(gather(r, mine, sizeof mine, "hashes of the weights", &all, err));
    amp_status status = AMP_OK;
    for (int32_t i = 1; i < r->comm->size && !status; i++)
        if (memcmp(all, all + (size_t)i * sizeof mine, sizeof mine))
            status = amp_fail(err, AMP_MISMATCH,
                              "weights of rank %d differ from rank 0's after its broadcast: the fault is in the "
                              "library that exchanges them, or in memory",
                              i);
    amp_free(&r->session.memory->allocator, all, sizeof mine * (size_t)r->comm->size);
    return status;
}

static amp_status share(void *ranks, void *const *states, amp_error *err) {
    AMP_TRY(broadcast(ranks, states, err));
    return check_equal(ranks, states, err);
}

amp_status amp_ranks_share(amp_ranks *r, amp_error *err) {
    return r->session.change_states(r->session.session, share, r, err);
}

/* Ordered sums promise the bits of one rank with the micro-batches of all. */
static amp_status check_order(const amp_exchange *x, amp_error *err) {
    const amp_model *m = x->model;
    const int64_t k = m->accumulate;
    if (!x->comm->ordered || k == 1) return AMP_OK;
    if (k & (k - 1))
        return amp_fail(err, AMP_INVALID_ARGUMENT,
                        "%s: sums of ranks cannot be ordered where each has %lld micro-batches: bits depend on the "
                        "number of ranks unless it is a power of two; train without --reduce ordered",
                        m->desc.name, (long long)k);
    if (m->collectives[0].op != AMP_EXCHANGE_ALL_REDUCE && m->collectives[0].op != AMP_EXCHANGE_REDUCE_SCATTER)
        return AMP_OK;
    return amp_fail(
        err, AMP_INVALID_ARGUMENT,
        "%s: sums of ranks cannot be ordered where each adds its %lld micro-batches from left to right: bits "
        "would depend on the number of ranks; compile the model with --accumulate-order tree",
        m->desc.name, (long long)k);
}

amp_status amp_ranks_agree(amp_ranks *r, amp_error *err) {
    AMP_TRY(say_hello(r, err));
    return check_order(r->exchange, err);
}
