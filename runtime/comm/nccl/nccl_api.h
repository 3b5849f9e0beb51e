/* nccl_api.h: the calls of NCCL that are made, declared here so that nothing of it is needed to build.  Types and
 * values follow NVIDIA's NCCL document, for 2.18 and newer; tests/runtime/comm/nccl_numbers.c compares them with
 * nccl.h where one is installed.  fakecuda/nccl implements the same table. */
#ifndef AMP_RUNTIME_COMM_NCCL_NCCL_API_H
#define AMP_RUNTIME_COMM_NCCL_NCCL_API_H

#include <limits.h>
#include <stddef.h>

typedef int NcclResult; /* ncclResult_t */
typedef struct ncclComm *NcclComm;

enum { NCCL_ID_BYTES = 128 };
typedef struct NcclId { /* ncclUniqueId */
    char internal[NCCL_ID_BYTES];
} NcclId;

enum {
    NCCL_OK = 0,
    NCCL_UNHANDLED_CUDA_ERROR = 1,
    NCCL_SYSTEM_ERROR = 2,
    NCCL_INTERNAL_ERROR = 3,
    NCCL_INVALID_ARGUMENT = 4,
    NCCL_INVALID_USAGE = 5,
    NCCL_REMOTE_ERROR = 6,
    NCCL_IN_PROGRESS = 7
};
enum { NCCL_SUM = 0 }; /* ncclRedOp_t */
enum {                 /* ncclDataType_t */
       NCCL_UINT8 = 1,
       NCCL_INT32 = 2,
       NCCL_INT64 = 4,
       NCCL_FLOAT16 = 6,
       NCCL_FLOAT32 = 7,
       NCCL_FLOAT64 = 8,
       NCCL_BFLOAT16 = 9
};

/* ncclConfig_t as it was in 2.17: a newer library takes its own defaults for what came later. */
typedef struct NcclConfig {
    size_t size;
    unsigned int magic, version;
    int blocking, cga_cluster_size, min_ctas, max_ctas;
    const char *net_name;
} NcclConfig;
enum { NCCL_CONFIG_VERSION = 21700, NCCL_UNDEFINED = INT_MIN };
#define NCCL_CONFIG_MAGIC 0xcafebeefu

/* X(name, symbol, parameters): `NcclResult name parameters`.  A stream is a CUstream. */
#define NCCL_CALLS(X)                                                                                                  \
    X(get_version, ncclGetVersion, (int *version))                                                                     \
    X(get_unique_id, ncclGetUniqueId, (NcclId * id))                                                                   \
    X(comm_init, ncclCommInitRankConfig, (NcclComm * comm, int ranks, NcclId id, int rank, NcclConfig *config))        \
    X(comm_count, ncclCommCount, (NcclComm comm, int *ranks))                                                          \
    X(comm_rank, ncclCommUserRank, (NcclComm comm, int *rank))                                                         \
    X(get_async_error, ncclCommGetAsyncError, (NcclComm comm, NcclResult * state))                                     \
    X(group_start, ncclGroupStart, (void))                                                                             \
    X(group_end, ncclGroupEnd, (void))                                                                                 \
    X(all_reduce, ncclAllReduce,                                                                                       \
      (const void *send, void *receive, size_t count, int type, int op, NcclComm comm, void *stream))                  \
    X(reduce_scatter, ncclReduceScatter,                                                                               \
      (const void *send, void *receive, size_t receive_count, int type, int op, NcclComm comm, void *stream))          \
    X(all_gather, ncclAllGather,                                                                                       \
      (const void *send, void *receive, size_t send_count, int type, NcclComm comm, void *stream))                     \
    X(broadcast, ncclBroadcast,                                                                                        \
      (const void *send, void *receive, size_t count, int type, int root, NcclComm comm, void *stream))                \
    X(comm_finalize, ncclCommFinalize, (NcclComm comm))                                                                \
    X(comm_destroy, ncclCommDestroy, (NcclComm comm))                                                                  \
    X(comm_abort, ncclCommAbort, (NcclComm comm))

/* The same of those that give a text. */
#define NCCL_TEXTS(X)                                                                                                  \
    X(get_error_string, ncclGetErrorString, (NcclResult result))                                                       \
    X(get_last_error, ncclGetLastError, (NcclComm comm))

typedef struct NcclApi {
#define NCCL_MEMBER(name, symbol, parameters) NcclResult(*name) parameters;
    NCCL_CALLS(NCCL_MEMBER)
#undef NCCL_MEMBER
#define NCCL_MEMBER(name, symbol, parameters) const char *(*name)parameters;
    NCCL_TEXTS(NCCL_MEMBER)
#undef NCCL_MEMBER
} NcclApi;

#endif
