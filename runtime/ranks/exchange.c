/* exchange.c: a session that trains together with other ranks' sessions: in each step they exchange what the model's
 * collectives say.
 *
 *   micro_step   kernel 0 ... kernel i                          the last one that writes a message: it is started
 *                kernel i + 1 ...                               the message is on its way
 *                                                               all have arrived
 *   apply_step
 *
 * All ranks start messages in the order of the table, so a message waits for those before it.
 */
#include "base/alloc.h"
#include "base/error.h"
#include "runtime/model/matrix_layout.h"
#include "runtime/model/messages.h"
#include "runtime/model/state.h"
#include "runtime/ranks/rank_exchange.h"

/* ---- making ------------------------------------------------------------------------------------------------------ */

static bool is_after_step(const amp_model_collective *c) { return c->op == AMP_EXCHANGE_ALL_GATHER; }

/* Where the states are in the host's memory a message may start before micro_step has ended. */
static void plan_time(const amp_exchange *x, int32_t i) {
    const amp_model_collective *c = &x->model->collectives[i];
    amp_message *to = &x->messages[i];
    if (x->on_device || is_after_step(c)) return;
    const int32_t last = amp_collective_last_use(x->model, c);
    to->ready = i && x->messages[i - 1].ready > last ? x->messages[i - 1].ready : last; /* not before the one before */
}

/* Weights are gathered in the memory of their gradients, where an element of these takes as much. */
static void *memory_of_gradients(const amp_exchange *x, int32_t i) {
    if (!amp_collective_in_place(x->model, i)) return NULL;
    return x->messages[amp_collective_of_gradients(x->model, i)].data;
}

static amp_status plan_message(const amp_exchange *x, int32_t i, amp_error *err) {
    const amp_ranks *r = x->ranks;
    const amp_model_collective *c = &x->model->collectives[i];
    amp_message *to = &x->messages[i];
    to->block_bytes = amp_collective_block_bytes(x->model, c);
    to->bytes = amp_collective_bytes(x->model, c, x->comm->size);
    to->count = to->bytes / (is_after_step(c) ? sizeof(float) : amp_storage_size(c->dtype));
    if (x->enqueued) return amp_exchange_place(x, i, err);
    void *shared = is_after_step(c) ? memory_of_gradients(x, i) : r->session.states->bound[c->states[0]];
    to->is_owned = amp_exchange_gathers(c) || x->on_device || !shared;
    to->data =
        to->is_owned ? amp_alloc_zeroed_aligned(&r->session.memory->allocator, to->bytes, AMP_MEMORY_ALIGN) : shared;
    plan_time(x, i);
    if (to->data) return AMP_OK;
    return amp_fail(err, AMP_OUT_OF_MEMORY, "%s: no memory for %zu bytes that ranks exchange", x->model->desc.name,
                    to->bytes);
}

size_t amp_fingerprints_bytes(int32_t ranks) { return (size_t)ranks * sizeof(amp_fingerprint); }
static size_t messages_bytes(const amp_model *m) { return (size_t)m->collective_count * sizeof(amp_message); }

/* What amp_ranks_make_exchange allocates. */
uint64_t amp_exchange_bytes(const amp_model *m, int32_t message, int32_t ranks) {
    if (message < 0) return sizeof(amp_exchange) + amp_fingerprints_bytes(ranks);
    const amp_model_collective *c = &m->collectives[message];
    const bool owned = is_after_step(c) ? !amp_collective_in_place(m, message) : amp_exchange_gathers(c);
    return sizeof(amp_message) + (m->owner || owned ? amp_collective_bytes(m, c, ranks) : 0);
}

amp_status amp_ranks_make_exchange(amp_ranks *r, amp_error *err) {
    const amp_allocator *a = &r->session.memory->allocator;
    const amp_model *m = r->session.model;
    amp_exchange *x = r->exchange = amp_alloc_zeroed(a, sizeof *x);
    if (!x) return amp_fail(err, AMP_OUT_OF_MEMORY, "%s: no memory to join ranks", m->desc.name);
    *x = (amp_exchange){.comm = r->comm, .ranks = r, .model = m, .on_device = amp_ranks_on_device(r)};
    x->messages = amp_alloc_zeroed(a, messages_bytes(m));
    x->prints = amp_alloc_zeroed(a, amp_fingerprints_bytes(r->comm->size));
    if (!x->messages || !x->prints)
        return amp_fail(err, AMP_OUT_OF_MEMORY, "%s: no memory for the messages of a step", m->desc.name);
    AMP_TRY(amp_exchange_on_device(x, err));
    for (int32_t i = 0; i < m->collective_count; i++) AMP_TRY(plan_message(x, i, err));
    return AMP_OK;
}

void amp_ranks_free_exchange(amp_ranks *r) {
    const amp_allocator *a = &r->session.memory->allocator;
    amp_exchange *x = r->exchange;
    if (!x) return;
    if (x->enqueued) amp_exchange_leave_device(x);
    for (int32_t i = 0; x->messages && i < x->model->collective_count; i++)
        if (x->messages[i].is_owned) amp_free_aligned(a, x->messages[i].data, x->messages[i].bytes, AMP_MEMORY_ALIGN);
    amp_free(a, x->prints, x->prints ? amp_fingerprints_bytes(x->comm->size) : 0);
    amp_free(a, x->messages, x->messages ? messages_bytes(x->model) : 0);
    amp_free(a, x, sizeof *x);
}

/* ---- the states of a message and the host's memory --------------------------------------------------------------- */

/* |to_host|: from the states to |block|, one after the other; else back.  With |enqueued| the block is on the device.
 */
static amp_status copy_block(const amp_exchange *x, int32_t collective, char *block, bool to_host, amp_error *err) {
    const amp_ranks *r = x->ranks;
    const amp_model_collective *c = &x->model->collectives[collective];
    for (uint32_t j = 0; j < c->state_count; j++) {
        void *state = r->session.states->bound[c->states[j]];
        const size_t bytes = amp_state_bytes(&r->session.model->states[c->states[j]]);
        if (!x->on_device || x->enqueued)
            AMP_TRY(amp_ranks_copy_bytes(r, to_host ? block : state, to_host ? state : block, bytes, err));
        else if (to_host) AMP_TRY(amp_ranks_read_bytes(r, block, state, bytes, err));
        else AMP_TRY(amp_ranks_write_bytes(r, state, block, bytes, err));
        block += bytes;
    }
    return AMP_OK;
}

void *amp_exchange_block(const amp_exchange *x, int32_t message) {
    return x->ranks->session.states->bound[x->model->collectives[message].states[0]];
}

/* What micro-batch |micro| of this rank has left there. */
static amp_status keep_batch(const amp_exchange *x, int32_t message, int64_t micro, amp_error *err) {
    const amp_message *m = &x->messages[message];
    char *to = amp_message_batch(m, x->comm->rank * x->model->accumulate + micro);
    return (amp_exchange_is_apart(x) ? amp_ranks_read_bytes : amp_ranks_copy_bytes)(
        x->ranks, to, amp_exchange_block(x, message), m->block_bytes, err);
}

amp_status amp_exchange_keep(const amp_exchange *x, int64_t micro, amp_error *err) {
    const int32_t message = amp_exchange_gathering(x);
    return message < 0 ? AMP_OK : keep_batch(x, message, micro, err);
}

/* ---- in a step --------------------------------------------------------------------------------------------------- */

static amp_status keep_last_batch(const amp_exchange *x, int32_t i, amp_error *err) {
    if (!amp_exchange_gathers(&x->model->collectives[i])) return AMP_OK;
    return keep_batch(x, i, x->model->accumulate - 1, err);
}

/* Those that are complete after |kernel| of the last micro-batch. */
static amp_status start_messages(void *exchange, int32_t kernel, amp_error *err) {
    amp_exchange *x = exchange;
    for (; x->started < x->model->collective_count && x->messages[x->started].ready <= kernel; x->started++) {
        amp_message *m = &x->messages[x->started];
        const amp_model_collective *c = &x->model->collectives[x->started];
        if (is_after_step(c)) continue; /* the last ones */
        const amp_collective_op op = amp_exchange_engine_op(c);
        AMP_TRY(keep_last_batch(x, x->started, err));
        if (x->on_device && !amp_exchange_gathers(c)) AMP_TRY(copy_block(x, x->started, m->data, true, err));
        AMP_TRY(
            x->comm->calls->start(x->comm, op, (amp_dtype)c->dtype, m->data, m->count, 0, c->what, &m->number, err));
    }
    return AMP_OK;
}

amp_kernel_hooks amp_exchange_hooks(amp_exchange *x, const amp_program *program, int64_t micro) {
    const bool is_step = program == x->model->train_step;
    amp_kernel_hooks hooks = {.user = x};
    if (x->enqueued) return hooks;
    if (is_step || program == x->model->apply_step) hooks.sum = amp_exchange_sum;
    if (is_step && !x->on_device && micro + 1 == x->model->accumulate) {
        x->started = 0;
        hooks.after = start_messages;
    }
    return hooks;
}

static amp_status exchange_on_device(const amp_exchange *x, amp_error *err) {
    AMP_TRY(amp_ranks_compare_in_passing(x->ranks, err));
    for (int32_t i = 0; i < x->model->collective_count; i++) AMP_TRY(keep_last_batch(x, i, err));
    AMP_TRY(amp_exchange_enqueue(x, err));
    return amp_ranks_clear_other_shares(x->ranks, err);
}

amp_status amp_exchange_finish(amp_exchange *x, amp_error *err) {
    const amp_ranks *r = x->ranks;
    if (x->enqueued) {
        const amp_status status = exchange_on_device(x, err);
        if (status) (void)amp_exchange_use(x, NULL);
        return status;
    }
    if (x->on_device) {
        x->started = 0;
        AMP_TRY(start_messages(x, INT32_MAX, err));
    }
    uint64_t last;
    AMP_TRY(amp_ranks_compare(r, &last, err));
    AMP_TRY(x->comm->calls->wait(x->comm, last, err));
    AMP_TRY(amp_ranks_check_drift(r, err));
    AMP_TRY(amp_ranks_clear_other_shares(r, err));
    for (int32_t i = 0; x->on_device && i < x->model->collective_count; i++)
        if (!amp_exchange_gathers(&x->model->collectives[i]))
            AMP_TRY(copy_block(x, i, x->messages[i].data, false, err));
    return AMP_OK;
}

/* ---- running statistics ------------------------------------------------------------------------------------------ */

/*   micro_step        leaves what its micro-batch adds, in states
 *   a message         gathers the statistics of all micro-batches of all ranks
 *   statistics_step   once for each of them, in their order: so all ranks have the same statistics
 */

/* The only one (model_check_collectives.c). */
int32_t amp_exchange_gathering(const amp_exchange *x) {
    for (int32_t i = 0; i < x->model->collective_count; i++)
        if (amp_exchange_gathers(&x->model->collectives[i])) return i;
    return -1;
}

/* All at once, or one after the other, as each comes from the host. */
amp_status amp_exchange_give_batches(const amp_exchange *x, amp_micro_batches *batches, amp_error *err) {
    const int32_t message = amp_exchange_gathering(x);
    if (message < 0) return AMP_OK;
    const amp_message *m = &x->messages[message];
    void *to = amp_exchange_block(x, message);
    if (amp_exchange_is_apart(x))
        return amp_ranks_write_bytes(x->ranks, to, amp_message_batch(m, batches->first), m->block_bytes, err);
    batches->to = to;
    batches->from = m->data;
    batches->bytes = m->block_bytes;
    return AMP_OK;
}
