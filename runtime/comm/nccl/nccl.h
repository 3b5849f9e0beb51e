/* nccl.h: collectives on memory of CUDA devices: NCCL, opened at run time, and what is needed of the driver to see how
 * far a stream is.
 *
 * NCCL's communicator does not block: a call that has to wait for other ranks goes on by itself, and amp_nccl_poll says
 * how.  Its thread and the callers' take turns, because a communicator that is aborted is gone.
 */
#ifndef AMP_RUNTIME_COMM_NCCL_NCCL_H
#define AMP_RUNTIME_COMM_NCCL_NCCL_H

#include <pthread.h>
#include <stdbool.h>

#include "runtime/comm/nccl/nccl_api.h"
#include "runtime/device/comm_calls.h"
#include "runtime/device/cuda/driver_api.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Of the driver: how far streams are, and whose. */
#define AMP_NCCL_CUDA_CALLS(X)                                                                                         \
    X(context_current, cuCtxGetCurrent, (CuContext * context))                                                         \
    X(context_push, cuCtxPushCurrent_v2, (CuContext context))                                                          \
    X(context_pop, cuCtxPopCurrent_v2, (CuContext * context))                                                          \
    X(event_create, cuEventCreate, (CuEvent * event, unsigned int flags))                                              \
    X(event_destroy, cuEventDestroy_v2, (CuEvent event))                                                               \
    X(event_record, cuEventRecord, (CuEvent event, CuStream stream))                                                   \
    X(event_query, cuEventQuery, (CuEvent event))                                                                      \
    X(get_error_name, cuGetErrorName, (CuResult error, const char **text))

enum { AMP_NCCL_LEAST = 21800 }; /* 2.18 */

typedef struct amp_nccl {
    NcclApi calls;
    struct {
#define AMP_NCCL_CUDA_MEMBER(name, symbol, parameters) CuResult(*name) parameters;
        AMP_NCCL_CUDA_CALLS(AMP_NCCL_CUDA_MEMBER)
#undef AMP_NCCL_CUDA_MEMBER
    } cuda;
    void *library;
    int version;       /* 22809 */
    char name[120];    /* file and version, for errors */
    NcclComm given;    /* the program's, by which its devices are joined; NULL: a communicator of ours */
    CuContext context; /* that it was joined in; NULL: not yet */
    pthread_mutex_t lock;
    NcclComm comm; /* under |lock|; NULL: not joined, or gone */
} amp_nccl;

/* ---- nccl_library.c ---------------------------------------------------------------------------------------------- */

/* |file|: NULL: libnccl.so.2.  AMP_NOT_FOUND, AMP_BAD_FILE, AMP_UNSUPPORTED: older than 2.18.  It stays in the process.
 * |lock| is there until amp_nccl_close. */
amp_status amp_nccl_open(amp_nccl *n, const char *file, amp_error *err);
void amp_nccl_close(amp_nccl *n);
/* The driver's calls, once a session has opened the driver. */
amp_status amp_nccl_find_cuda(amp_nccl *n, amp_error *err);
/* "ncclAllReduce: unhandled system error (2): TEXT (libnccl.so.2, NCCL 2.28.9)".  Under |lock|, or before joining. */
amp_status amp_nccl_fail(const amp_nccl *n, const char *call, NcclResult result, amp_error *err);
amp_status amp_nccl_fail_cuda(const amp_nccl *n, const char *call, CuResult result, amp_error *err);

/* ---- nccl_calls.c ------------------------------------------------------------------------------------------------ */

/* On one rank: what the others join by. */
amp_status amp_nccl_make_id(const amp_nccl *n, NcclId *out, amp_error *err);
/* Begins to join the current context's device; done when amp_nccl_poll says so.  Where a communicator is given |id| is
 * not read, and its ranks have to be these. */
amp_status amp_nccl_join(amp_nccl *n, const NcclId *id, int32_t rank, int32_t size, amp_error *err);
/* Whether what was begun is on its way by itself: joined, or on the stream.  |after|: the call that began it, for
 * errors; NULL: no thread waits. */
amp_status amp_nccl_poll(amp_nccl *n, const char *after, bool *ready, amp_error *err);
/* In one group; then poll, of "ncclGroupEnd". */
amp_status amp_nccl_enqueue(amp_nccl *n, const amp_device_collective *list, int32_t count, int32_t rank, int32_t size,
                            void *stream, amp_error *err);
/* All ranks; gives up after |nanoseconds|.  What was given stays with the program. */
void amp_nccl_leave(amp_nccl *n, int64_t nanoseconds);
/* Ends what is under way on the device, whatever the other ranks do; also what was given.  False: NCCL could not. */
bool amp_nccl_abort(amp_nccl *n);

#ifdef __cplusplus
}
#endif
#endif
