/* nccl.c: NCCL's calls, as applications find them by name. */
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "fakecuda/nccl/stand_in.h"

enum { VERSION = 22809 };

#define API __attribute__((visibility("default")))
#define DECLARE(name, symbol, parameters) API NcclResult symbol parameters;
NCCL_CALLS(DECLARE)
#undef DECLARE
API const char *ncclGetErrorString(NcclResult result);
API const char *ncclGetLastError(NcclComm comm);

/* ---- errors ------------------------------------------------------------------------------------------------------ */

static char text[TEXT];
void last_error(const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
}

static NcclResult fail(NcclResult result, const char *why) {
    last_error("%s", why);
    return result;
}

/* What a call does first. */
#define BEGIN(call)                                                                                                    \
    do {                                                                                                               \
        if (faults_problem()) return fail(NCCL_SYSTEM_ERROR, faults_problem());                                        \
        if (fault_call(call)) return fail(NCCL_SYSTEM_ERROR, "planted");                                               \
    } while (0)

const char *ncclGetErrorString(NcclResult result) {
    static const char *const texts[] = {"no error",
                                        "unhandled cuda error (run with NCCL_DEBUG=INFO for details)",
                                        "unhandled system error (run with NCCL_DEBUG=INFO for details)",
                                        "internal error - please report this issue to the NCCL developers",
                                        "invalid argument",
                                        "invalid usage",
                                        "remote process exited or there was a network error",
                                        "NCCL operation in progress"};
    return result >= 0 && result < (int)(sizeof texts / sizeof *texts) ? texts[result] : "unknown result code";
}
const char *ncclGetLastError(NcclComm comm) {
    (void)comm;
    return text;
}

NcclResult ncclGetVersion(int *version) {
    BEGIN("ncclGetVersion");
    *version = VERSION;
    return NCCL_OK;
}

/* ---- joining ----------------------------------------------------------------------------------------------------- */

NcclResult ncclGetUniqueId(NcclId *id) {
    struct timespec t;
    BEGIN("ncclGetUniqueId");
    clock_gettime(CLOCK_REALTIME, &t);
    memset(id, 0, sizeof *id);
    snprintf(id->internal, sizeof id->internal, "/fakecuda-nccl-%ld-%lld-%ld", (long)getpid(), (long long)t.tv_sec,
             t.tv_nsec);
    return NCCL_OK;
}

static NcclResult map(struct ncclComm *c) {
    c->bytes = sizeof(Segment) + (size_t)c->ranks * PIECE;
    int file = shm_open(c->name, O_RDWR | O_CREAT, 0600);
    if (file < 0 || ftruncate(file, (off_t)c->bytes)) return fail(NCCL_SYSTEM_ERROR, "no shared memory");
    c->segment = mmap(NULL, c->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (c->segment != MAP_FAILED) return NCCL_OK;
    c->segment = NULL;
    return fail(NCCL_SYSTEM_ERROR, "no shared memory");
}

/* As NCCL does, it keeps the device's primary context. */
static NcclResult take_context(struct ncclComm *c) {
    CuContext current = NULL;
    if (cuCtxGetDevice(&c->device) || cuDevicePrimaryCtxRetain(&c->context, c->device))
        return fail(NCCL_UNHANDLED_CUDA_ERROR, "no CUDA context is current");
    if (!cuCtxGetCurrent(&current) && current == c->context) return NCCL_OK;
    return fail(NCCL_INVALID_USAGE, "the current context is no primary context");
}

static NcclResult join(struct ncclComm *c) {
    NcclResult result = take_context(c);
    if (!result) result = map(c);
    if (result) return result;
    Place *p = &c->segment->places[c->rank];
    p->device = c->device;
    p->ranks = c->ranks;
    atomic_store(&p->joined, 1);
    return NCCL_OK;
}

void comm_drop(struct ncclComm *c) {
    if (atomic_fetch_sub(&c->references, 1) != 1) return;
    if (c->segment) munmap(c->segment, c->bytes);
    free(c);
}

static void let_go(struct ncclComm *c) {
    shm_unlink(c->name);
    while (c->pending) {
        Asked *a = c->pending;
        c->pending = a->next;
        asked_drop(a);
    }
    if (c->context) (void)cuDevicePrimaryCtxRelease_v2(c->device);
    comm_drop(c);
}

NcclResult ncclCommInitRankConfig(NcclComm *comm, int ranks, NcclId id, int rank, NcclConfig *config) {
    BEGIN("ncclCommInitRankConfig");
    if (!comm || ranks < 1 || ranks > MOST_RANKS || rank < 0 || rank >= ranks)
        return fail(NCCL_INVALID_ARGUMENT, "ranks");
    if (!config || config->magic != NCCL_CONFIG_MAGIC || config->size != sizeof *config || config->blocking != 0)
        return fail(NCCL_INVALID_ARGUMENT, "the stand-in takes the configuration of 2.17, with blocking = 0");
    struct ncclComm *c = calloc(1, sizeof *c);
    if (!c) return fail(NCCL_SYSTEM_ERROR, "no memory");
    c->rank = rank;
    c->ranks = ranks;
    c->references = 1;
    memcpy(c->name, id.internal, sizeof c->name);
    NcclResult result = join(c);
    if (result) let_go(c);
    else *comm = c;
    return result ? result : NCCL_IN_PROGRESS;
}

NcclResult ncclCommCount(NcclComm c, int *ranks) {
    BEGIN("ncclCommCount");
    if (!c || !ranks) return fail(NCCL_INVALID_ARGUMENT, "comm");
    *ranks = c->ranks;
    return NCCL_OK;
}

NcclResult ncclCommUserRank(NcclComm c, int *rank) {
    BEGIN("ncclCommUserRank");
    if (!c || !rank) return fail(NCCL_INVALID_ARGUMENT, "comm");
    *rank = c->rank;
    return NCCL_OK;
}

static NcclResult refuse_place(struct ncclComm *c, int32_t rank) {
    const Place *p = c->segment->places, *other = &p[rank];
    if (other->ranks != c->ranks) return fail(NCCL_INVALID_USAGE, "ranks were given different numbers of ranks");
    for (int32_t r = 0; r < rank; r++) {
        if (p[r].device != other->device) continue;
        last_error("Duplicate GPU detected : rank %d and rank %d both on CUDA device %d", (int)r, (int)rank,
                   (int)other->device);
        return NCCL_INVALID_USAGE;
    }
    return NCCL_OK;
}

static NcclResult joining(struct ncclComm *c) {
    for (int32_t r = 0; r < c->ranks; r++) {
        if (!atomic_load(&c->segment->places[r].joined)) return NCCL_IN_PROGRESS;
        NcclResult refused = refuse_place(c, r);
        if (refused) return refused;
    }
    c->joined = true;
    shm_unlink(c->name); /* no other rank is to join */
    return NCCL_OK;
}

/* ---- collectives ------------------------------------------------------------------------------------------------- */

/* What is asked for is in its stream some polls later: whoever goes on before goes past it. */
static NcclResult launch(struct ncclComm *c) {
    CuContext popped;
    NcclResult result = NCCL_OK;
    if (c->delay-- > 0) return NCCL_IN_PROGRESS;
    if (cuCtxPushCurrent_v2(c->context)) return fail(NCCL_UNHANDLED_CUDA_ERROR, "cuCtxPushCurrent");
    while (c->pending && !result) {
        Asked *a = c->pending;
        const FakecudaOutside work = {asked_run, asked_drop, a};
        c->pending = a->next;
        bool captured = false;
        if (!fakecuda_enqueue(a->stream, &work, a->name, asked_bytes(a), &captured)) {
            if (captured) asked_stays(a);
            continue;
        }
        asked_drop(a);
        result = fail(NCCL_UNHANDLED_CUDA_ERROR, "the stream does not take it");
    }
    (void)cuCtxPopCurrent_v2(&popped);
    return result;
}

NcclResult ncclCommGetAsyncError(NcclComm c, NcclResult *state) {
    BEGIN("ncclCommGetAsyncError");
    if (!c || !state) return fail(NCCL_INVALID_ARGUMENT, "comm");
    *state = atomic_load(&c->error);
    if (!*state && !c->joined) *state = joining(c);
    if (!*state && c->pending) *state = launch(c);
    return NCCL_OK;
}

static int depth;                     /* of groups */
static Asked *first, **last = &first; /* of the open one */

static void begin_group(void) { depth++; }

static NcclResult end_group(void) {
    enum { POLLS = 2 };
    if (!depth) return fail(NCCL_INVALID_USAGE, "no group was begun");
    if (--depth || !first) return NCCL_OK;
    struct ncclComm *c = first->comm;
    if (c->pending) return fail(NCCL_INVALID_USAGE, "the group before has not been polled to its end");
    c->pending = first;
    c->delay = POLLS;
    first = NULL;
    last = &first;
    return NCCL_IN_PROGRESS;
}

NcclResult ncclGroupStart(void) {
    BEGIN("ncclGroupStart");
    begin_group();
    return NCCL_OK;
}
NcclResult ncclGroupEnd(void) {
    const bool planted = fault_call("ncclGroupEnd");
    NcclResult result = end_group();
    return planted ? fail(NCCL_SYSTEM_ERROR, "planted") : result;
}

static NcclResult check(const struct ncclComm *c, int type, int op, int root) {
    if (!c || !c->joined || c->finalized) return fail(NCCL_INVALID_ARGUMENT, "the communicator is not ready");
    if (!type_size(type)) return fail(NCCL_INVALID_ARGUMENT, "type");
    if (op != NCCL_SUM) return fail(NCCL_INVALID_ARGUMENT, "op");
    return root < 0 || root >= c->ranks ? fail(NCCL_INVALID_ARGUMENT, "root") : NCCL_OK;
}

static NcclResult ask(const char *name, Asked what, int op) {
    NcclResult refused = check(what.comm, what.type, op, what.root);
    if (refused) return refused;
    Asked *a = malloc(sizeof *a);
    if (!a) return fail(NCCL_SYSTEM_ERROR, "no memory");
    begin_group();
    *a = what;
    a->name = name;
    a->comm->references++;
    *last = a;
    last = &a->next;
    return end_group();
}

static uint64_t address(const void *p) { return (uint64_t)(uintptr_t)p; }

NcclResult ncclAllReduce(const void *send, void *receive, size_t count, int type, int op, NcclComm c, void *stream) {
    BEGIN("ncclAllReduce");
    return ask("ncclAllReduce",
               (Asked){.comm = c,
                       .stream = stream,
                       .kind = ALL_REDUCE,
                       .type = type,
                       .send = address(send),
                       .receive = address(receive),
                       .count = count},
               op);
}
NcclResult ncclReduceScatter(const void *send, void *receive, size_t count, int type, int op, NcclComm c,
                             void *stream) {
    BEGIN("ncclReduceScatter");
    return ask("ncclReduceScatter",
               (Asked){.comm = c,
                       .stream = stream,
                       .kind = REDUCE_SCATTER,
                       .type = type,
                       .send = address(send),
                       .receive = address(receive),
                       .count = count},
               op);
}
NcclResult ncclAllGather(const void *send, void *receive, size_t count, int type, NcclComm c, void *stream) {
    BEGIN("ncclAllGather");
    return ask("ncclAllGather",
               (Asked){.comm = c,
                       .stream = stream,
                       .kind = ALL_GATHER,
                       .type = type,
                       .send = address(send),
                       .receive = address(receive),
                       .count = count},
               NCCL_SUM);
}
NcclResult ncclBroadcast(const void *send, void *receive, size_t count, int type, int root, NcclComm c, void *stream) {
    BEGIN("ncclBroadcast");
    return ask("ncclBroadcast",
               (Asked){.comm = c,
                       .stream = stream,
                       .kind = BROADCAST,
                       .type = type,
                       .root = root,
                       .send = address(send),
                       .receive = address(receive),
                       .count = count},
               NCCL_SUM);
}

/* ---- leaving ----------------------------------------------------------------------------------------------------- */

/* NCCL would wait for them for ever. */
NcclResult ncclCommFinalize(NcclComm c) {
    BEGIN("ncclCommFinalize");
    if (!c || c->finalized) return fail(NCCL_INVALID_ARGUMENT, "comm");
    if (c->captured) fakecuda_misuse("ncclCommFinalize while graphs hold collectives of the communicator");
    c->finalized = true;
    return NCCL_IN_PROGRESS;
}

NcclResult ncclCommDestroy(NcclComm c) {
    BEGIN("ncclCommDestroy");
    if (!c || !c->finalized) return fail(NCCL_INVALID_ARGUMENT, "comm");
    let_go(c);
    return NCCL_OK;
}

NcclResult ncclCommAbort(NcclComm c) {
    BEGIN("ncclCommAbort");
    if (!c) return fail(NCCL_INVALID_ARGUMENT, "comm");
    atomic_store(&c->aborted, true);
    let_go(c);
    return NCCL_OK;
}
