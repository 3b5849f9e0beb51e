/* batch_statistics.c: what micro-batches make of running statistics, in a model for several ranks.
 *
 *   micro_step        leaves what its micro-batch adds, in states
 *   a message         gathers the statistics of all micro-batches of all ranks
 *   statistics_step   once for each of them, in their order: so all ranks have the same statistics
 */
#include "runtime/session/session.h"

#include "base/error.h"

/* The only one (model_check_collectives.c); -1: none. */
static int32_t gathering_message(const amp_exchange *x) {
    for (int32_t i = 0; i < x->model->collective_count; i++)
        if (amp_exchange_gathers(&x->model->collectives[i])) return i;
    return -1;
}

static amp_status run(amp_session *s, const amp_micro_batches *batches, int64_t n, amp_error *err) {
    s->batches = *batches;
    s->batches.number = s->states.bound[amp_model_counter(s->model, AMP_COUNTER_MICRO)];
    return amp_session_run(s, &s->programs[AMP_RUN_STATISTICS], NULL, n, err);
}

/* One after the other, as each comes from the host. */
static amp_status run_each(amp_session *s, int32_t message, int64_t n, amp_error *err) {
    const amp_exchange *x = s->exchange;
    const amp_message *m = &x->messages[message];
    for (int64_t batch = 0; batch < x->comm->size * s->model->accumulate; batch++) {
        AMP_TRY(amp_session_write_bytes(s, amp_exchange_block(x, message), amp_message_batch(m, batch), m->block_bytes,
                                        err));
        AMP_TRY(run(s, &(amp_micro_batches){.first = batch, .count = 1}, n, err));
    }
    return AMP_OK;
}

static amp_status run_all(amp_session *s, int32_t message, int64_t n, amp_error *err) {
    const amp_exchange *x = s->exchange;
    amp_micro_batches all = {.count = x->comm->size * s->model->accumulate};
    if (message >= 0) {
        all.to = amp_exchange_block(x, message);
        all.from = x->messages[message].data;
        all.bytes = x->messages[message].block_bytes;
    }
    return run(s, &all, n, err);
}

/* Of one rank they are in order as they come. */
amp_status amp_session_add_statistics(amp_session *s, int64_t n, bool complete, amp_error *err) {
    const amp_exchange *x = s->exchange;
    if (!s->programs[AMP_RUN_STATISTICS].program) return AMP_OK;
    const int64_t k = s->model->accumulate, here = complete ? k - 1 : s->step.micro - 1;
    if (!x) return run(s, &(amp_micro_batches){.first = here, .count = 1}, n, err);
    const int32_t message = gathering_message(x);
    if (!complete) return message < 0 ? AMP_OK : amp_exchange_keep_batch(x, message, x->comm->rank * k + here, err);
    return message >= 0 && amp_exchange_is_apart(x) ? run_each(s, message, n, err) : run_all(s, message, n, err);
}
