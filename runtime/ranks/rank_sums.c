/* rank_sums.c: what ranks add up in the middle of micro_step, such as the sums of a batch norm over all their batches.
 *
 * All ranks run the same kernels in the same order, so these messages have a fixed position among the messages of
 * gradients, which may be under way: who waits for one waits for all before it.
 */
#include "base/error.h"
#include "runtime/device/comm_calls.h"
#include "runtime/ranks/rank_exchange.h"

amp_status amp_exchange_sum(void *exchange, const char *what, float *data, size_t count, amp_error *err) {
    const amp_exchange *x = exchange;
    uint64_t number;
    AMP_TRY(x->comm->calls->start(x->comm, AMP_COLLECTIVE_ALL_REDUCE, AMP_DT_F32, data, count, 0, what, &number, err));
    return x->comm->calls->wait(x->comm, number, err);
}
