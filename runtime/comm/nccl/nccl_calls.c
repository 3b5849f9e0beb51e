/* nccl_calls.c: joining, enqueueing and leaving. */
#define _POSIX_C_SOURCE 200809L /* nanosleep */
#include <stdio.h>
#include <time.h>

#include "base/error.h"
#include "base/file.h"
#include "runtime/comm/nccl/nccl.h"

static void lock(amp_nccl *n) { pthread_mutex_lock(&n->lock); }
static void unlock(amp_nccl *n) { pthread_mutex_unlock(&n->lock); }

static bool failed(NcclResult result) { return result && result != NCCL_IN_PROGRESS; }

static amp_status fail_gone(amp_error *err) {
    return amp_fail(err, AMP_PEER_FAILED, "the NCCL communicator was aborted after an earlier failure");
}

/* ---- joining ----------------------------------------------------------------------------------------------------- */

amp_status amp_nccl_make_id(const amp_nccl *n, NcclId *out, amp_error *err) {
    NcclResult result = n->calls.get_unique_id(out);
    return result ? amp_nccl_fail(n, "ncclGetUniqueId", result, err) : AMP_OK;
}

static amp_status take_given(amp_nccl *n, int32_t rank, int32_t size, amp_error *err) {
    int own = -1, count = -1;
    NcclResult result = n->calls.comm_count(n->given, &count);
    if (failed(result)) return amp_nccl_fail(n, "ncclCommCount", result, err);
    result = n->calls.comm_rank(n->given, &own);
    if (failed(result)) return amp_nccl_fail(n, "ncclCommUserRank", result, err);
    if (own != rank || count != size)
        return amp_fail(err, AMP_MISMATCH,
                        "the program's communicator of NCCL has this process as rank %d of %d, the comm as %d of %d: "
                        "give both the same ranks",
                        own, count, rank, size);
    lock(n);
    n->comm = n->given;
    unlock(n);
    return AMP_OK;
}

static amp_status make_comm(amp_nccl *n, const NcclId *id, int32_t rank, int32_t size, amp_error *err) {
    NcclConfig config = {.size = sizeof config,
                         .magic = NCCL_CONFIG_MAGIC,
                         .version = NCCL_CONFIG_VERSION,
                         .blocking = 0,
                         .cga_cluster_size = NCCL_UNDEFINED,
                         .min_ctas = NCCL_UNDEFINED,
                         .max_ctas = NCCL_UNDEFINED};
    lock(n);
    NcclResult result = n->calls.comm_init(&n->comm, size, *id, rank, &config);
    amp_status status = failed(result) ? amp_nccl_fail(n, "ncclCommInitRankConfig", result, err) : AMP_OK;
    if (!status && !n->comm)
        status = amp_fail(err, AMP_BAD_FILE, "ncclCommInitRankConfig: gave no communicator; %s", n->name);
    unlock(n);
    return status;
}

amp_status amp_nccl_join(amp_nccl *n, const NcclId *id, int32_t rank, int32_t size, amp_error *err) {
    return n->given ? take_given(n, rank, size, err) : make_comm(n, id, rank, size, err);
}

amp_status amp_nccl_poll(amp_nccl *n, const char *after, bool *ready, amp_error *err) {
    char call[64];
    snprintf(call, sizeof call, "ncclCommGetAsyncError%s%s", after ? " after " : "", after ? after : "");
    NcclResult state = NCCL_OK;
    amp_status status = AMP_OK;
    lock(n);
    NcclResult result = n->comm ? n->calls.get_async_error(n->comm, &state) : NCCL_OK;
    if (!n->comm) status = fail_gone(err);
    else if (failed(result)) status = amp_nccl_fail(n, call, result, err);
    else if (failed(state)) status = amp_nccl_fail(n, call, state, err);
    unlock(n);
    *ready = !status && state == NCCL_OK;
    return status;
}

/* ---- collectives ------------------------------------------------------------------------------------------------- */

/* What is not added travels as bytes. */
static int type_of(amp_dtype dtype) {
    switch (dtype) {
    case AMP_DT_F16: return NCCL_FLOAT16;
    case AMP_DT_BF16: return NCCL_BFLOAT16;
    case AMP_DT_F64: return NCCL_FLOAT64;
    default: return NCCL_FLOAT32;
    }
}

/* In place: NCCL wants the own part where it is among all. */
static amp_status add(const amp_nccl *n, const amp_device_collective *c, int32_t rank, int32_t size, void *stream,
                      amp_error *err) {
    const size_t element = amp_dtype_size(c->dtype), part = c->count / (size_t)size;
    char *all = c->data, *own = all + part * element * (size_t)rank;
    const char *call = "";
    NcclResult result = NCCL_INVALID_ARGUMENT;
    switch (c->op) {
    case AMP_COLLECTIVE_ALL_REDUCE:
    case AMP_COLLECTIVE_ALL_REDUCE_TREE: /* of sums that are not ordered, the same */
        call = "ncclAllReduce";
        result =
            n->calls.all_reduce(c->from ? c->from : all, all, c->count, type_of(c->dtype), NCCL_SUM, n->comm, stream);
        break;
    case AMP_COLLECTIVE_REDUCE_SCATTER_TREE:
    case AMP_COLLECTIVE_REDUCE_SCATTER:
        call = "ncclReduceScatter";
        result = n->calls.reduce_scatter(all, own, part, type_of(c->dtype), NCCL_SUM, n->comm, stream);
        break;
    case AMP_COLLECTIVE_ALL_GATHER:
        call = "ncclAllGather";
        result = n->calls.all_gather(own, all, part * element, NCCL_UINT8, n->comm, stream);
        break;
    case AMP_COLLECTIVE_BROADCAST:
        call = "ncclBroadcast";
        result = n->calls.broadcast(all, all, c->count * element, NCCL_UINT8, c->root, n->comm, stream);
        break;
    }
    if (!failed(result)) return AMP_OK;
    amp_error said;
    amp_nccl_fail(n, call, result, &said);
    return amp_fail(err, AMP_PEER_FAILED, "%s: %s", c->what, said.message);
}

/* A group that was begun has to be ended. */
static amp_status enqueue(const amp_nccl *n, const amp_device_collective *list, int32_t count, int32_t rank,
                          int32_t size, void *stream, amp_error *err) {
    amp_status status = AMP_OK;
    NcclResult result = n->calls.group_start();
    if (failed(result)) return amp_nccl_fail(n, "ncclGroupStart", result, err);
    for (int32_t i = 0; i < count && !status; i++) status = add(n, &list[i], rank, size, stream, err);
    result = n->calls.group_end();
    return !status && failed(result) ? amp_nccl_fail(n, "ncclGroupEnd", result, err) : status;
}

amp_status amp_nccl_enqueue(amp_nccl *n, const amp_device_collective *list, int32_t count, int32_t rank, int32_t size,
                            void *stream, amp_error *err) {
    lock(n);
    amp_status status = n->comm ? enqueue(n, list, count, rank, size, stream, err) : fail_gone(err);
    unlock(n);
    return status;
}

/* ---- leaving ----------------------------------------------------------------------------------------------------- */

bool amp_nccl_abort(amp_nccl *n) {
    lock(n);
    const NcclResult result = n->comm ? n->calls.comm_abort(n->comm) : NCCL_OK;
    n->comm = NULL;
    unlock(n);
    return !failed(result);
}

static void give_back(amp_nccl *n) {
    lock(n);
    n->comm = NULL;
    unlock(n);
}

/* No caller is left to hear of what fails here. */
void amp_nccl_leave(amp_nccl *n, int64_t nanoseconds) {
    const struct timespec pause = {.tv_nsec = 200000};
    const int64_t end = amp_nanoseconds() + nanoseconds;
    bool ready = false;
    if (n->given) {
        give_back(n);
        return;
    }
    if (!n->comm || failed(n->calls.comm_finalize(n->comm))) {
        (void)amp_nccl_abort(n);
        return;
    }
    while (!amp_nccl_poll(n, "ncclCommFinalize", &ready, NULL) && !ready && amp_nanoseconds() < end)
        nanosleep(&pause, NULL);
    lock(n);
    if (ready) n->calls.comm_destroy(n->comm);
    else n->calls.comm_abort(n->comm);
    n->comm = NULL;
    unlock(n);
}
