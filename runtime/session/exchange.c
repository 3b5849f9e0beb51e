/* exchange.c: a session that trains together with those of other ranks: before its first step they agree on what they
 * train, and in each step they exchange what the model's collectives say.
 *
 *   micro_step   kernel 0 ... kernel i                          the last one that writes a message: it is started
 *                kernel i + 1 ...                               the message is on its way
 *   apply_step   ... kernel j                                   the first one that reads it waits
 *
 * All ranks start messages in the order of the table, so a message waits for those before it.
 */
#include <stdio.h>
#include <string.h>

#include "amp/version.h"
#include "base/alloc.h"
#include "base/error.h"
#include "base/hash.h"
#include "runtime/device/comm_calls.h"
#include "runtime/model/matrix_layout.h"
#include "runtime/model/state.h"
#include "runtime/session/session.h"

/* ---- what ranks agree on ----------------------------------------------------------------------------------------- */

enum { SHA256_BYTES = 32 };

/* What each rank says of itself; padded with zeros.  The first field never changes, so that any two versions can tell
 * that they differ. */
typedef struct Hello {
    char version[32];
    char model[64], device[16];
    uint8_t source[SHA256_BYTES], policy[SHA256_BYTES], ir[SHA256_BYTES];
    int64_t capacity, seed, accumulate, state_count;
} Hello;

static Hello hello_of(const amp_session *s) {
    const amp_model_desc *d = &s->model->desc;
    const int64_t *seed = amp_session_seed(s);
    Hello h = {.capacity = s->capacity,
               .seed = seed ? *seed : 0,
               .accumulate = s->model->accumulate,
               .state_count = s->model->state_count};
    snprintf(h.version, sizeof h.version, "%s", AMP_VERSION);
    snprintf(h.model, sizeof h.model, "%s", d->name);
    snprintf(h.device, sizeof h.device, "%s", s->device->type->name);
    memcpy(h.source, d->source_sha256, sizeof h.source);
    memcpy(h.policy, d->policy_sha256, sizeof h.policy);
    if (d->ir_text) amp_sha256_of(d->ir_text, d->ir_length, h.ir);
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
    AMP_TRY(check_hash(rank, "compilation of the model (SHA-256 of its IR)", theirs->ir, ours->ir, err));
    AMP_TRY(check_number(rank, "capacity (samples of a micro-batch)", theirs->capacity, ours->capacity, err));
    AMP_TRY(check_number(rank, "seed", theirs->seed, ours->seed, err));
    return check_number(rank, "number of micro-batches", theirs->accumulate, ours->accumulate, err);
}

/* Gathers |size| bytes of each rank; the caller frees them. */
static amp_status gather(amp_session *s, const void *mine, size_t size, const char *what, char **all, amp_error *err) {
    amp_comm *comm = s->exchange->comm;
    const size_t bytes = size * (size_t)comm->size;
    *all = amp_alloc_zeroed(&s->memory.allocator, bytes);
    if (!*all) return amp_fail(err, AMP_OUT_OF_MEMORY, "no memory for what %d ranks say of themselves", comm->size);
    amp_status status = comm->calls->meet(comm, mine, size, *all, what, err);
    if (!status) return AMP_OK;
    amp_free(&s->memory.allocator, *all, bytes);
    return status;
}

static amp_status say_hello(amp_session *s, amp_error *err) {
    const Hello mine = hello_of(s);
    char *all;
    AMP_TRY(gather(s, &mine, sizeof mine, "what ranks train", &all, err));
    amp_status status = AMP_OK;
    Hello first, other;
    memcpy(&first, all, sizeof first);
    for (int32_t r = 1; r < s->exchange->comm->size && !status; r++) {
        memcpy(&other, all + (size_t)r * sizeof other, sizeof other);
        status = check_hello(r, &other, &first, err);
    }
    amp_free(&s->memory.allocator, all, sizeof mine * (size_t)s->exchange->comm->size);
    return status;
}

/* ---- the same weights everywhere --------------------------------------------------------------------------------- */

/* What a checkpoint holds; the number of a rank's first micro-batch is its own. */
static bool is_shared(const amp_session *s, int32_t i) {
    const amp_model_state *state = &s->model->states[i];
    if (!s->states.bound[i] || state->counter == AMP_COUNTER_FIRST_MICRO || state->counter == AMP_COUNTER_MICRO)
        return false;
    return amp_state_is_param(state) || state->role == AMP_STATE_MOMENT || state->role == AMP_STATE_COUNTER ||
           state->role == AMP_STATE_SCALER;
}

static amp_status broadcast(amp_session *s, int32_t i, uint64_t *number, amp_error *err) {
    const amp_model_state *state = &s->model->states[i];
    amp_comm *comm = s->exchange->comm;
    const size_t count = amp_state_bytes(state) / amp_storage_size(state->storage);
    return comm->calls->start(comm, AMP_COLLECTIVE_BROADCAST, (amp_dtype)state->storage, s->states.bound[i], count, 0,
                              state->name, number, err);
}

static amp_status check_equal(amp_session *s, amp_error *err) {
    amp_sha256 hash;
    uint8_t mine[SHA256_BYTES];
    char *all;
    amp_sha256_init(&hash);
    for (int32_t i = 0; i < s->model->state_count; i++)
        if (is_shared(s, i))
            amp_sha256_update(&hash, s->states.bound[i], amp_state_content_bytes(&s->model->states[i]));
    amp_sha256_final(&hash, mine);
    AMP_TRY(gather(s, mine, sizeof mine, "hashes of the weights", &all, err));
    amp_status status = AMP_OK;
    for (int32_t r = 1; r < s->exchange->comm->size && !status; r++)
        if (memcmp(all, all + (size_t)r * sizeof mine, sizeof mine))
            status = amp_fail(err, AMP_MISMATCH,
                              "weights of rank %d differ from rank 0's after its broadcast: the fault is in the "
                              "library that exchanges them, or in memory",
                              r);
    amp_free(&s->memory.allocator, all, sizeof mine * (size_t)s->exchange->comm->size);
    return status;
}

amp_status amp_session_share(amp_session *s, amp_error *err) {
    uint64_t last = 0;
    bool any = false;
    if (!s->exchange) return AMP_OK;
    for (int32_t i = 0; i < s->model->state_count; i++) {
        if (!is_shared(s, i)) continue;
        AMP_TRY(broadcast(s, i, &last, err));
        any = true;
    }
    if (any) AMP_TRY(s->exchange->comm->calls->wait(s->exchange->comm, last, err));
    amp_params_changed_on_host(s->params);
    return check_equal(s, err);
}

/* ---- making ------------------------------------------------------------------------------------------------------ */

static void set_counter(const amp_session *s, uint32_t counter, double value) {
    const int32_t i = amp_model_counter(s->model, counter);
    if (i >= 0 && s->states.host[i]) amp_store_element(s->states.host[i], s->model->states[i].storage, 0, value);
}

static amp_status set_counters(const amp_session *s, amp_error *err) {
    if (amp_model_counter(s->model, AMP_COUNTER_RANKS) < 0) return AMP_OK;
    set_counter(s, AMP_COUNTER_RANKS, s->exchange ? s->exchange->comm->size : 1);
    set_counter(s, AMP_COUNTER_FIRST_MICRO, (double)amp_session_first_micro(s));
    set_counter(s, AMP_COUNTER_FULL_BATCH, (double)s->capacity);
    return amp_session_write_scalars(s, err);
}

int64_t amp_session_first_micro(const amp_session *s) {
    return s->exchange ? s->exchange->comm->rank * s->model->accumulate : 0;
}

/* The kernels of a program between which the message's states are used; -1, -1: none. */
static void find_use(const amp_model *m, const amp_program *p, const amp_model_collective *c, int32_t *first,
                     int32_t *last) {
    *first = *last = -1;
    for (int32_t i = 0; i < p->buffer_count; i++) {
        const amp_model_buffer *b = &p->buffers[i];
        if (b->kind != AMP_BUFFER_STATE || m->blocks[b->index].first != c->states[0] || b->last_kernel < 0) continue;
        if (*first < 0 || b->first_kernel < *first) *first = b->first_kernel;
        if (b->last_kernel > *last) *last = b->last_kernel;
    }
}

static size_t messages_bytes(const amp_model *m) { return (size_t)m->collective_count * sizeof(amp_message); }

static bool is_gather(const amp_model_collective *c) { return c->op == AMP_EXCHANGE_GATHER_BATCHES; }

static size_t block_bytes(const amp_model *m, const amp_model_collective *c) { return m->blocks[c->states[0]].bytes; }

/* Of what each micro-batch of all ranks leaves. */
static size_t slots_bytes(const amp_model *m, const amp_comm *comm, const amp_model_collective *c) {
    return block_bytes(m, c) * (size_t)(comm->size * m->accumulate);
}

static amp_status plan_messages(const amp_session *s, amp_error *err) {
    const amp_model *m = s->model;
    for (int32_t i = 0, ready = -1; i < m->collective_count; i++) {
        const amp_model_collective *c = &m->collectives[i];
        amp_message *to = &s->exchange->messages[i];
        const size_t bytes = is_gather(c) ? slots_bytes(m, s->exchange->comm, c) : block_bytes(m, c);
        int32_t first, last;
        to->data = is_gather(c) ? amp_alloc_zeroed_aligned(&s->memory.allocator, bytes, AMP_MEMORY_ALIGN)
                                : s->states.bound[c->states[0]];
        if (!to->data) return amp_fail(err, AMP_OUT_OF_MEMORY, "no memory for the statistics of all ranks");
        to->block = s->states.bound[c->states[0]];
        to->count = bytes / amp_storage_size(c->dtype);
        find_use(m, m->train_step, c, &first, &last);
        to->ready = ready = last > ready ? last : ready; /* not before the one before it */
        find_use(m, m->apply_step, c, &to->needed, &last);
    }
    return AMP_OK;
}

static amp_status join_ranks(amp_session *s, amp_comm *comm, amp_error *err) {
    const amp_allocator *a = &s->memory.allocator;
    s->exchange = amp_alloc_zeroed(a, sizeof *s->exchange);
    if (s->exchange) s->exchange->messages = amp_alloc_zeroed(a, messages_bytes(s->model));
    if (!s->exchange || !s->exchange->messages)
        return amp_fail(err, AMP_OUT_OF_MEMORY, "%s: no memory for the messages of a step", s->model->desc.name);
    s->exchange->comm = comm;
    s->exchange->model = s->model;
    return plan_messages(s, err);
}

static amp_status check_comm(const amp_session *s, const amp_comm *comm, amp_error *err) {
    const amp_model *owner = s->model->owner ? s->model->owner : s->model;
    if (!owner->collective_count)
        return amp_fail(err, AMP_INVALID_ARGUMENT,
                        "%s was compiled to train alone, and there are %d ranks; compile it with --distribute data, or "
                        "say data_parallel = true in its train block",
                        owner->desc.name, comm->size);
    if (amp_session_has_device_memory(s))
        return amp_fail(err, AMP_UNSUPPORTED,
                        "%s: ranks exchange states in the host's memory only; training on several GPUs is not built "
                        "yet: take the device cpu",
                        owner->desc.name);
    return AMP_OK;
}

amp_status amp_session_make_exchange(amp_session *s, amp_comm *comm, amp_error *err) {
    if (!s->training) return AMP_OK;
    if (comm && comm->size > 1 && s->device->type->computes) {
        AMP_TRY(check_comm(s, comm, err));
        AMP_TRY(join_ranks(s, comm, err));
    }
    AMP_TRY(set_counters(s, err));
    if (!s->exchange) return AMP_OK;
    AMP_TRY(say_hello(s, err));
    return amp_session_share(s, err);
}

void amp_session_free_exchange(amp_session *s) {
    const amp_allocator *a = &s->memory.allocator;
    if (!s->exchange) return;
    for (int32_t i = 0; s->exchange->messages && i < s->model->collective_count; i++) {
        const amp_model_collective *c = &s->model->collectives[i];
        if (is_gather(c))
            amp_free_aligned(a, s->exchange->messages[i].data, slots_bytes(s->model, s->exchange->comm, c),
                             AMP_MEMORY_ALIGN);
    }
    amp_free(a, s->exchange->messages, s->exchange->messages ? messages_bytes(s->model) : 0);
    amp_free(a, s->exchange, sizeof *s->exchange);
}

/* ---- statistics -------------------------------------------------------------------------------------------------- */

/* What micro-batch |batch| of all ranks has left: from its states, or to them for statistics_step. */
static void copy_slot(const amp_exchange *x, int32_t collective, int64_t batch, bool keep) {
    const amp_model_collective *c = &x->model->collectives[collective];
    const size_t bytes = block_bytes(x->model, c);
    amp_message *m = &x->messages[collective];
    char *slot = (char *)m->data + bytes * (size_t)batch;
    memcpy(keep ? slot : m->block, keep ? m->block : slot, bytes);
}

static void copy_slots(const amp_exchange *x, int64_t batch, bool keep) {
    for (int32_t i = 0; i < x->model->collective_count; i++)
        if (is_gather(&x->model->collectives[i])) copy_slot(x, i, batch, keep);
}

static amp_status run_statistics(amp_session *s, int64_t batch, int64_t n, amp_error *err) {
    int64_t *micro = amp_session_micro(s);
    if (micro) *micro = batch;
    return amp_session_run(s, &s->programs[AMP_RUN_STATISTICS], NULL, n, err);
}

/* Of one rank micro-batches are in order; of several they are gathered first. */
amp_status amp_session_add_statistics(amp_session *s, int64_t n, bool complete, amp_error *err) {
    amp_exchange *x = s->exchange;
    if (!s->programs[AMP_RUN_STATISTICS].program) return AMP_OK;
    const int64_t k = s->model->accumulate, here = complete ? k - 1 : s->step.micro - 1;
    if (!x) return run_statistics(s, here, n, err);
    if (!complete) {
        copy_slots(x, x->comm->rank * k + here, true);
        return AMP_OK;
    }
    for (int32_t i = 0; i < x->model->collective_count; i++)
        if (is_gather(&x->model->collectives[i])) AMP_TRY(x->comm->calls->wait(x->comm, x->messages[i].number, err));
    for (int64_t batch = 0; batch < x->comm->size * k; batch++) {
        copy_slots(x, batch, false);
        AMP_TRY(run_statistics(s, batch, n, err));
    }
    return AMP_OK;
}

/* ---- in a step --------------------------------------------------------------------------------------------------- */

/* Those that are complete after |kernel| of the last micro-batch. */
static amp_status start_messages(void *exchange, int32_t kernel, amp_error *err) {
    amp_exchange *x = exchange;
    for (; x->started < x->model->collective_count && x->messages[x->started].ready <= kernel; x->started++) {
        amp_message *m = &x->messages[x->started];
        const amp_model_collective *c = &x->model->collectives[x->started];
        const amp_collective_op op = is_gather(c) ? AMP_COLLECTIVE_ALL_GATHER : AMP_COLLECTIVE_ALL_REDUCE;
        if (is_gather(c))
            copy_slot(x, x->started, x->comm->rank * x->model->accumulate + x->model->accumulate - 1, true);
        AMP_TRY(
            x->comm->calls->start(x->comm, op, (amp_dtype)c->dtype, m->data, m->count, 0, c->what, &m->number, err));
    }
    return AMP_OK;
}

/* Those that |kernel| of apply_step is the first to use. */
static amp_status wait_for_messages(void *exchange, int32_t kernel, amp_error *err) {
    amp_exchange *x = exchange;
    int32_t arrived = x->arrived;
    for (int32_t i = x->arrived; i < x->started; i++)
        if (x->messages[i].needed <= kernel) arrived = i + 1;
    if (arrived == x->arrived) return AMP_OK;
    AMP_TRY(x->comm->calls->wait(x->comm, x->messages[arrived - 1].number, err));
    x->arrived = arrived;
    return AMP_OK;
}

amp_kernel_hooks amp_session_exchange_hooks(const amp_session *s, const amp_bound_program *b) {
    amp_kernel_hooks hooks = {.user = s->exchange};
    if (!s->exchange) return hooks;
    if (b == &s->programs[AMP_RUN_APPLY_STEP]) hooks.before = wait_for_messages;
    if (b == &s->programs[AMP_RUN_TRAIN_STEP] && s->step.micro + 1 == s->model->accumulate) {
        s->exchange->started = s->exchange->arrived = 0;
        hooks.after = start_messages;
    }
    return hooks;
}

amp_status amp_session_finish_exchange(const amp_session *s, amp_error *err) {
    return s->exchange ? wait_for_messages(s->exchange, INT32_MAX, err) : AMP_OK;
}
