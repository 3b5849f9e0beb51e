/* errors.c: CUresult by name, in a few words of our own, and which of them end a context; calls that fail on request.
 */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fakecuda/driver/driver.h"

typedef struct Error {
    int code;
    const char *name, *text;
    bool fatal;
} Error;

static const Error errors[] = {
    {0, "CUDA_SUCCESS", "no error", false},
    {1, "CUDA_ERROR_INVALID_VALUE", "invalid argument", false},
    {2, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory", false},
    {3, "CUDA_ERROR_NOT_INITIALIZED", "not initialized: cuInit first", false},
    {4, "CUDA_ERROR_DEINITIALIZED", "driver is shutting down", false},
    {5, "CUDA_ERROR_PROFILER_DISABLED", "profiler disabled", false},
    {6, "CUDA_ERROR_PROFILER_NOT_INITIALIZED", "profiler not initialized", false},
    {7, "CUDA_ERROR_PROFILER_ALREADY_STARTED", "profiler already started", false},
    {8, "CUDA_ERROR_PROFILER_ALREADY_STOPPED", "profiler already stopped", false},
    {34, "CUDA_ERROR_STUB_LIBRARY", "stub library, not a driver", false},
    {36, "CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER", "call requires newer driver", false},
    {46, "CUDA_ERROR_DEVICE_UNAVAILABLE", "device unavailable", false},
    {100, "CUDA_ERROR_NO_DEVICE", "no device", false},
    {101, "CUDA_ERROR_INVALID_DEVICE", "no such device", false},
    {102, "CUDA_ERROR_DEVICE_NOT_LICENSED", "device not licensed", false},
    {200, "CUDA_ERROR_INVALID_IMAGE", "not a module image", false},
    {201, "CUDA_ERROR_INVALID_CONTEXT", "no current context, or not a live one", false},
    {202, "CUDA_ERROR_CONTEXT_ALREADY_CURRENT", "context already current", false},
    {205, "CUDA_ERROR_MAP_FAILED", "map failed", false},
    {206, "CUDA_ERROR_UNMAP_FAILED", "unmap failed", false},
    {207, "CUDA_ERROR_ARRAY_IS_MAPPED", "array is mapped", false},
    {208, "CUDA_ERROR_ALREADY_MAPPED", "already mapped", false},
    {209, "CUDA_ERROR_NO_BINARY_FOR_GPU", "no code in the image for this device", false},
    {210, "CUDA_ERROR_ALREADY_ACQUIRED", "already acquired", false},
    {211, "CUDA_ERROR_NOT_MAPPED", "not mapped", false},
    {212, "CUDA_ERROR_NOT_MAPPED_AS_ARRAY", "not mapped as array", false},
    {213, "CUDA_ERROR_NOT_MAPPED_AS_POINTER", "not mapped as pointer", false},
    {214, "CUDA_ERROR_ECC_UNCORRECTABLE", "ecc uncorrectable", true},
    {215, "CUDA_ERROR_UNSUPPORTED_LIMIT", "unsupported limit", false},
    {216, "CUDA_ERROR_CONTEXT_ALREADY_IN_USE", "context already in use", false},
    {217, "CUDA_ERROR_PEER_ACCESS_UNSUPPORTED", "peer access unsupported", false},
    {218, "CUDA_ERROR_INVALID_PTX", "PTX does not compile", false},
    {219, "CUDA_ERROR_INVALID_GRAPHICS_CONTEXT", "invalid graphics context", false},
    {220, "CUDA_ERROR_NVLINK_UNCORRECTABLE", "nvlink uncorrectable", true},
    {221, "CUDA_ERROR_JIT_COMPILER_NOT_FOUND", "jit compiler not found", false},
    {222, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION", "PTX is newer than this driver", false},
    {223, "CUDA_ERROR_JIT_COMPILATION_DISABLED", "jit compilation disabled", false},
    {224, "CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY", "unsupported exec affinity", false},
    {225, "CUDA_ERROR_UNSUPPORTED_DEVSIDE_SYNC", "unsupported devside sync", false},
    {226, "CUDA_ERROR_CONTAINED", "contained", true},
    {300, "CUDA_ERROR_INVALID_SOURCE", "invalid source", false},
    {301, "CUDA_ERROR_FILE_NOT_FOUND", "file not found", false},
    {302, "CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND", "shared object symbol not found", false},
    {303, "CUDA_ERROR_SHARED_OBJECT_INIT_FAILED", "shared object init failed", false},
    {304, "CUDA_ERROR_OPERATING_SYSTEM", "operating system", false},
    {400, "CUDA_ERROR_INVALID_HANDLE", "not a live handle", false},
    {401, "CUDA_ERROR_ILLEGAL_STATE", "object is in the wrong state", false},
    {402, "CUDA_ERROR_LOSSY_QUERY", "lossy query", false},
    {500, "CUDA_ERROR_NOT_FOUND", "name not found", false},
    {600, "CUDA_ERROR_NOT_READY", "work is not finished", false},
    {700, "CUDA_ERROR_ILLEGAL_ADDRESS", "kernel accessed an illegal address", true},
    {701, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", "launch asks for more resources than there are", false},
    {702, "CUDA_ERROR_LAUNCH_TIMEOUT", "kernel ran too long", true},
    {703, "CUDA_ERROR_LAUNCH_INCOMPATIBLE_TEXTURING", "launch incompatible texturing", false},
    {704, "CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED", "peer access already enabled", false},
    {705, "CUDA_ERROR_PEER_ACCESS_NOT_ENABLED", "peer access not enabled", false},
    {708, "CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE", "primary context active", false},
    {709, "CUDA_ERROR_CONTEXT_IS_DESTROYED", "context is destroyed", false},
    {710, "CUDA_ERROR_ASSERT", "device-side assert", true},
    {711, "CUDA_ERROR_TOO_MANY_PEERS", "too many peers", false},
    {712, "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED", "host memory already registered", false},
    {713, "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED", "host memory not registered", false},
    {714, "CUDA_ERROR_HARDWARE_STACK_ERROR", "device stack error", true},
    {715, "CUDA_ERROR_ILLEGAL_INSTRUCTION", "illegal instruction", true},
    {716, "CUDA_ERROR_MISALIGNED_ADDRESS", "misaligned address", true},
    {717, "CUDA_ERROR_INVALID_ADDRESS_SPACE", "wrong address space", true},
    {718, "CUDA_ERROR_INVALID_PC", "invalid program counter", true},
    {719, "CUDA_ERROR_LAUNCH_FAILED", "kernel failed", true},
    {720, "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE", "cooperative launch too large", false},
    {721, "CUDA_ERROR_TENSOR_MEMORY_LEAK", "tensor memory leak", true},
    {800, "CUDA_ERROR_NOT_PERMITTED", "not permitted", false},
    {801, "CUDA_ERROR_NOT_SUPPORTED", "not supported", false},
    {802, "CUDA_ERROR_SYSTEM_NOT_READY", "system not ready", false},
    {803, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", "system driver mismatch", false},
    {804, "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE", "compat not supported on device", false},
    {805, "CUDA_ERROR_MPS_CONNECTION_FAILED", "mps connection failed", false},
    {806, "CUDA_ERROR_MPS_RPC_FAILURE", "mps rpc failure", false},
    {807, "CUDA_ERROR_MPS_SERVER_NOT_READY", "mps server not ready", false},
    {808, "CUDA_ERROR_MPS_MAX_CLIENTS_REACHED", "mps max clients reached", false},
    {809, "CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED", "mps max connections reached", false},
    {810, "CUDA_ERROR_MPS_CLIENT_TERMINATED", "mps client terminated", false},
    {811, "CUDA_ERROR_CDP_NOT_SUPPORTED", "cdp not supported", false},
    {812, "CUDA_ERROR_CDP_VERSION_MISMATCH", "cdp version mismatch", false},
    {900, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", "not permitted while the stream is in capture", false},
    {901, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED", "an earlier error ended the capture", false},
    {902, "CUDA_ERROR_STREAM_CAPTURE_MERGE", "would merge two captures", false},
    {903, "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED", "capture did not begin in this stream", false},
    {904, "CUDA_ERROR_STREAM_CAPTURE_UNJOINED", "capture holds work of a stream that was not joined", false},
    {905, "CUDA_ERROR_STREAM_CAPTURE_ISOLATION", "dependency on work outside the capture", false},
    {906, "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT", "dependency on a capture through the legacy stream", false},
    {907, "CUDA_ERROR_CAPTURED_EVENT", "event was last recorded in a capture", false},
    {908, "CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD", "capture was begun by another thread", false},
    {909, "CUDA_ERROR_TIMEOUT", "timeout", false},
    {910, "CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE", "graph exec update failure", false},
    {911, "CUDA_ERROR_EXTERNAL_DEVICE", "external device", false},
    {912, "CUDA_ERROR_INVALID_CLUSTER_SIZE", "cluster size is not possible", false},
    {913, "CUDA_ERROR_FUNCTION_NOT_LOADED", "function not loaded", false},
    {914, "CUDA_ERROR_INVALID_RESOURCE_TYPE", "invalid resource type", false},
    {915, "CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION", "invalid resource configuration", false},
    {916, "CUDA_ERROR_KEY_ROTATION", "key rotation", false},
    {999, "CUDA_ERROR_UNKNOWN", "unknown error", false},
};

static const Error *find(CuResult code) {
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (errors[i].code == code) return &errors[i];
    return NULL;
}

const char *error_name(CuResult code) {
    const Error *e = find(code);
    return e ? e->name : NULL;
}

const char *error_text(CuResult code) {
    const Error *e = find(code);
    return e ? e->text : NULL;
}

bool error_is_fatal(CuResult code) {
    const Error *e = find(code);
    return e && e->fatal;
}

/* ---- calls that fail on request ---------------------------------------------------------------------------------- */

typedef struct Plan {
    char call[64]; /* "*": any */
    unsigned long long number, seen;
    CuResult error; /* 0: by call */
} Plan;
enum { MAX_PLANS = 32 };
static Plan plans[MAX_PLANS];
static int plan_count;

static bool known(const char *call) {
    if (strcmp(call, "*") == 0) return true;
    for (int i = 0; i < CALL_COUNT; i++) {
        size_t n = strlen(call);
        if (strncmp(call_names[i], call, n) == 0 && (!call_names[i][n] || strcmp(call_names[i] + n, "_v2") == 0))
            return true;
    }
    return false;
}

/* "CALL:K[:ERROR]" at |*text|, which is advanced past it. */
static bool read_plan(const char **text, Plan *out) {
    const char *colon = strchr(*text, ':');
    if (!colon || colon == *text || (size_t)(colon - *text) >= sizeof out->call) return false;
    *out = (Plan){0};
    memcpy(out->call, *text, (size_t)(colon - *text));
    char *end;
    out->number = strtoull(colon + 1, &end, 10);
    if (end == colon + 1 || out->number == 0 || !known(out->call)) return false;
    if (*end == ':') {
        const char *error = end + 1;
        out->error = (CuResult)strtol(error, &end, 10);
        if (end == error || !error_name(out->error) || out->error == CU_SUCCESS) return false;
    }
    *text = end;
    return true;
}

bool inject_plan(const char *text) {
    plan_count = 0;
    if (!text || !*text) return true;
    for (;; text++) {
        if (plan_count == MAX_PLANS || !read_plan(&text, &plans[plan_count])) break;
        plan_count++;
        if (!*text) return true;
        if (*text != ',') break;
    }
    plan_count = 0;
    return false;
}

static bool matches(const Plan *p, CallId id) {
    if (strcmp(p->call, "*") == 0)
        return id != CALL_cuGetErrorName && id != CALL_cuGetErrorString && id != CALL_cuGetProcAddress_v2;
    return strncmp(call_names[id], p->call, strlen(p->call)) == 0 &&
           (strcmp(call_names[id], p->call) == 0 || strcmp(call_names[id] + strlen(p->call), "_v2") == 0);
}

CuResult inject_next(CallId id) {
    CuResult error = CU_SUCCESS;
    for (int i = 0; i < plan_count; i++) {
        Plan *p = &plans[i];
        if (!matches(p, id) || ++p->seen != p->number) continue;
        bool allocates = id == CALL_cuMemAlloc_v2 || id == CALL_cuMemHostAlloc;
        error = p->error ? p->error : allocates ? CU_OUT_OF_MEMORY : CU_UNKNOWN;
        text_add(&report.injected, "%s: call %llu of %s fails with %s", call_names[id], p->number, p->call,
                 error_name(error));
    }
    return error;
}
