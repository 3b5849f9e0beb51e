/* batch_statistics.c: what micro-batches make of running statistics, in a model for several ranks.
 *
 *   micro_step        leaves what its micro-batch adds, in states
 *   a message         gathers the statistics of all micro-batches of all ranks
 *   statistics_step   once for each of them, in their order: so all ranks have the same statistics
 */
#include "base/error.h"
#include "runtime/ranks/rank_exchange.h"

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
