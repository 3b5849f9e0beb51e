/* nccl_numbers.c: our declarations of NCCL against its header; compiled where nccl.h is installed. */
#include <nccl.h>
#include <stddef.h>

#include "runtime/comm/nccl/nccl_api.h"

#define SAME(ours, theirs) _Static_assert((int)(ours) == (int)(theirs), #theirs)
SAME(NCCL_OK, ncclSuccess);
SAME(NCCL_UNHANDLED_CUDA_ERROR, ncclUnhandledCudaError);
SAME(NCCL_SYSTEM_ERROR, ncclSystemError);
SAME(NCCL_INTERNAL_ERROR, ncclInternalError);
SAME(NCCL_INVALID_ARGUMENT, ncclInvalidArgument);
SAME(NCCL_INVALID_USAGE, ncclInvalidUsage);
SAME(NCCL_REMOTE_ERROR, ncclRemoteError);
SAME(NCCL_IN_PROGRESS, ncclInProgress);
SAME(NCCL_SUM, ncclSum);
SAME(NCCL_UINT8, ncclUint8);
SAME(NCCL_INT32, ncclInt32);
SAME(NCCL_INT64, ncclInt64);
SAME(NCCL_FLOAT16, ncclFloat16);
SAME(NCCL_FLOAT32, ncclFloat32);
SAME(NCCL_FLOAT64, ncclFloat64);
SAME(NCCL_BFLOAT16, ncclBfloat16);
SAME(NCCL_UNDEFINED, NCCL_CONFIG_UNDEF_INT);
SAME(sizeof(NcclId), sizeof(ncclUniqueId));
SAME(sizeof(int), sizeof(ncclResult_t));
SAME(sizeof(int), sizeof(ncclDataType_t));
SAME(sizeof(int), sizeof(ncclRedOp_t));

/* Today's form begins with the form of 2.17. */
#define FIELD(ours, theirs) _Static_assert(offsetof(NcclConfig, ours) == offsetof(ncclConfig_t, theirs), #theirs)
FIELD(size, size);
FIELD(magic, magic);
FIELD(version, version);
FIELD(blocking, blocking);
FIELD(cga_cluster_size, cgaClusterSize);
FIELD(min_ctas, minCTAs);
FIELD(max_ctas, maxCTAs);
FIELD(net_name, netName);
_Static_assert(sizeof(NcclConfig) == offsetof(ncclConfig_t, splitShare), "splitShare came with 2.18");

_Static_assert(NCCL_CONFIG_MAGIC == 0xcafebeefu, "NCCL_CONFIG_INITIALIZER has it, which is no constant expression");

/* Each call with our parameters: no conversion but of what replaces the library's own types. */
typedef ncclDataType_t Type;
typedef ncclRedOp_t Op;
typedef cudaStream_t Stream;

int nccl_numbers(NcclComm, const void *, void *, size_t, int, int, int, void *);
int nccl_numbers(NcclComm comm, const void *send, void *receive, size_t count, int type, int op, int root,
                 void *stream) {
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclUniqueId id;
    ncclResult_t state;
    int version, failed = config.magic != NCCL_CONFIG_MAGIC;
    failed |= ncclGetVersion(&version) | ncclGetUniqueId(&id) | ncclGroupStart() | ncclGroupEnd();
    failed |= ncclCommInitRankConfig(&comm, 2, id, 0, &config);
    failed |= ncclCommCount(comm, &version) | ncclCommUserRank(comm, &version);
    failed |= ncclCommGetAsyncError(comm, &state);
    failed |= ncclAllReduce(send, receive, count, (Type)type, (Op)op, comm, (Stream)stream);
    failed |= ncclReduceScatter(send, receive, count, (Type)type, (Op)op, comm, (Stream)stream);
    failed |= ncclAllGather(send, receive, count, (Type)type, comm, (Stream)stream);
    failed |= ncclBroadcast(send, receive, count, (Type)type, root, comm, (Stream)stream);
    failed |= ncclCommFinalize(comm) | ncclCommDestroy(comm) | ncclCommAbort(comm);
    return failed || !ncclGetErrorString(state) || !ncclGetLastError(comm);
}
