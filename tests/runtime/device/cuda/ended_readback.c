/* ended_readback.c: see ended_readback.h. */
#include "tests/runtime/device/cuda/ended_readback.h"

#include "runtime/device/cuda/transfer.h"

static amp_cuda_context *asked;

static CuResult fail_and_answer(CuEvent event) {
    amp_error why;
    (void)event;
    (void)amp_fail(&why, AMP_PEER_FAILED, "rank 0: rank 1 says: its data end");
    amp_cuda_latch_set(&asked->latch, &why);
    return CU_SUCCESS;
}

amp_status ended_readback(bool wait, bool *given, amp_error *err) {
    char scalars[8] = {0};
    const void *out;
    amp_cuda_context context = {.driver = {.event_query = fail_and_answer, .event_sync = fail_and_answer}};
    amp_cuda_readback readback = {.context = &context, .bytes = sizeof scalars, .pinned = scalars, .count = 1};
    asked = &context;
    const amp_status status = amp_cuda_readback_finish(&readback, wait, &out, err);
    *given = out != NULL || !readback.count;
    return status;
}
