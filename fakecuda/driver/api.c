/* api.c: the calls as applications see them; each is one line: lock and check, then the part that knows. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fakecuda/driver/driver.h"

/* ---- what every call does before and after its work -------------------------------------------------------------- */

/* The lock, counting, injected failures, what it needs. */

Driver driver;

const char *const call_names[CALL_COUNT] = {
#define CALL_NAME(name, symbol, parameters) [CALL_##symbol] = #symbol,
    CUDA_DRIVER_CALLS(CALL_NAME)
#undef CALL_NAME
        [CALL_cuGetProcAddress_v2] = "cuGetProcAddress_v2",
};

enum {
    INIT = 1,    /* cuInit must have been called */
    CONTEXT = 2, /* a current context, alive and without a fatal error */
    UNSAFE = 4,  /* not beside a stream capture */
    GIVES = 8,   /* gives something back: an injected failure comes after the work */
    FREE = 16    /* may be called at any time */
};

/* "Potentially unsafe" calls: what cuThreadExchangeStreamCaptureMode's page calls so names cudaMalloc and
 * cuEventQuery only; the others are those that wait for the device, or change what is loaded or mapped. */
static const unsigned char needs[CALL_COUNT] = {
    [CALL_cuGetErrorName] = FREE,
    [CALL_cuGetErrorString] = FREE,
    [CALL_cuInit] = FREE,
    [CALL_cuDriverGetVersion] = FREE,
    [CALL_cuGetProcAddress_v2] = FREE,
    [CALL_cuDeviceGetCount] = INIT,
    [CALL_cuDeviceGet] = INIT,
    [CALL_cuDeviceGetName] = INIT,
    [CALL_cuDeviceTotalMem_v2] = INIT,
    [CALL_cuDeviceGetAttribute] = INIT,
    [CALL_cuDevicePrimaryCtxRetain] = INIT,
    [CALL_cuDevicePrimaryCtxRelease_v2] = INIT | GIVES,
    [CALL_cuCtxPushCurrent_v2] = INIT,
    [CALL_cuCtxPopCurrent_v2] = INIT,
    [CALL_cuCtxGetCurrent] = INIT,
    [CALL_cuCtxGetDevice] = CONTEXT,
    [CALL_cuCtxSynchronize] = CONTEXT | UNSAFE,
    [CALL_cuModuleLoadDataEx] = CONTEXT | UNSAFE,
    [CALL_cuModuleUnload] = CONTEXT | UNSAFE | GIVES,
    [CALL_cuModuleGetFunction] = CONTEXT,
    [CALL_cuFuncGetAttribute] = CONTEXT,
    [CALL_cuFuncSetAttribute] = CONTEXT,
    [CALL_cuMemGetInfo_v2] = CONTEXT,
    [CALL_cuMemAlloc_v2] = CONTEXT | UNSAFE,
    [CALL_cuMemFree_v2] = CONTEXT | UNSAFE | GIVES,
    [CALL_cuMemHostAlloc] = CONTEXT | UNSAFE,
    [CALL_cuMemFreeHost] = CONTEXT | UNSAFE | GIVES,
    [CALL_cuPointerGetAttribute] = INIT,
    [CALL_cuMemcpyHtoDAsync_v2] = CONTEXT,
    [CALL_cuMemcpyDtoHAsync_v2] = CONTEXT,
    [CALL_cuMemcpyDtoDAsync_v2] = CONTEXT,
    [CALL_cuMemsetD8Async] = CONTEXT,
    [CALL_cuMemsetD32Async] = CONTEXT,
    [CALL_cuMemsetD2D16Async] = CONTEXT,
    [CALL_cuStreamCreate] = CONTEXT,
    [CALL_cuStreamDestroy_v2] = CONTEXT | GIVES,
    [CALL_cuStreamSynchronize] = CONTEXT,
    [CALL_cuStreamQuery] = CONTEXT,
    [CALL_cuStreamWaitEvent] = CONTEXT,
    [CALL_cuStreamGetCtx] = CONTEXT,
    [CALL_cuEventCreate] = CONTEXT,
    [CALL_cuEventDestroy_v2] = CONTEXT | GIVES,
    [CALL_cuEventRecord] = CONTEXT,
    [CALL_cuEventRecordWithFlags] = CONTEXT,
    [CALL_cuEventSynchronize] = CONTEXT | UNSAFE,
    [CALL_cuEventQuery] = CONTEXT | UNSAFE,
    [CALL_cuEventElapsedTime] = CONTEXT,
    [CALL_cuStreamBeginCapture_v2] = CONTEXT,
    [CALL_cuStreamEndCapture] = CONTEXT | GIVES,
    [CALL_cuGraphInstantiateWithFlags] = CONTEXT,
    [CALL_cuGraphLaunch] = CONTEXT,
    [CALL_cuGraphGetNodes] = CONTEXT,
    [CALL_cuGraphExecDestroy] = CONTEXT | GIVES,
    [CALL_cuGraphDestroy] = CONTEXT | GIVES,
    [CALL_cuLaunchKernel] = CONTEXT,
    [CALL_cuLaunchKernelEx] = CONTEXT,
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
void driver_lock(void) { pthread_mutex_lock(&lock); }
void driver_unlock(void) { pthread_mutex_unlock(&lock); }

/* splitmix64 (Steele, Lea, Flood 2014). */
uint64_t chance(uint64_t below) {
    uint64_t z = driver.random += 0x9e3779b97f4a7c15ull;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ z >> 27) * 0x94d049bb133111ebull;
    return (z ^ z >> 31) % below;
}

void *must_alloc(size_t bytes) {
    void *p = calloc(1, bytes ? bytes : 1);
    if (!p) {
        fprintf(stderr, "fakecuda: no memory\n");
        abort();
    }
    return p;
}

void *must_grow(void *old, size_t bytes) {
    void *p = realloc(old, bytes);
    if (!p) {
        fprintf(stderr, "fakecuda: no memory\n");
        abort();
    }
    return p;
}

/* What keeps a call with a context from being made; the device goes on with its work before. */
static CuResult check_context(Call *call, unsigned need) {
    CuResult found = context_current(&call->context);
    if (found != CU_SUCCESS) return found;
    if (!call->context->sticky) queue_progress(call->context);
    if (call->id == CALL_cuCtxGetDevice) return CU_SUCCESS;
    if (call->context->sticky) return call->context->sticky;
    return need & UNSAFE ? capture_check_unsafe() : CU_SUCCESS;
}

static CuResult check(Call *call) {
    unsigned need = needs[call->id];
    if (!(need & FREE) && !driver.initialised) return CU_NOT_INITIALIZED;
    CuResult error = need & CONTEXT ? check_context(call, need) : CU_SUCCESS;
    if (error != CU_SUCCESS) return error;
    CuResult injected = inject_next(call->id);
    if (injected == CU_SUCCESS) return CU_SUCCESS;
    if (need & GIVES) {
        call->after = injected;
        return CU_SUCCESS;
    }
    if (call->context && error_is_fatal(injected)) context_fail(call->context, injected, "injected");
    return injected;
}

bool call_begin(Call *call, CallId id) {
    driver_lock();
    report.calls[id]++;
    *call = (Call){.id = id};
    call->result = check(call);
    return call->result == CU_SUCCESS;
}

CuResult call_end(Call *call, CuResult result) {
    if (call->after != CU_SUCCESS) {
        /* Giving back the primary context ends it, so there is none left to fail. */
        if (call->context && error_is_fatal(call->after)) context_fail(call->context, call->after, "injected");
        result = call->after;
    }
    if (result == CU_SUCCESS && call->context && call->context->sticky && call->id != CALL_cuCtxGetDevice)
        result = call->context->sticky;
    if (result != CU_SUCCESS && result != CU_NOT_READY && driver.settings.verbose)
        fprintf(stderr, "fakecuda: %s gives %s (%s)\n", call_names[call->id], error_name(result), error_text(result));
    driver_unlock();
    return result;
}

#define API __attribute__((visibility("default")))
#define DECLARE(name, symbol, parameters) API CuResult symbol parameters;
CUDA_DRIVER_CALLS(DECLARE)
#undef DECLARE
API CuResult cuGetProcAddress_v2(const char *symbol, void **function, int version, uint64_t flags, int *status);

/* |work| may use `call`. */
#define RUN(symbol, work)                                                                                              \
    do {                                                                                                               \
        Call call;                                                                                                     \
        CuResult ready = call_begin(&call, CALL_##symbol) ? CU_SUCCESS : call.result;                                  \
        return call_end(&call, ready == CU_SUCCESS ? (work) : ready);                                                  \
    } while (0)

/* ---- errors, the driver ------------------------------------------------------------------------------------------ */

static CuResult text_of(const char *text, const char **out) {
    if (!out) return CU_INVALID_VALUE;
    *out = text;
    return text ? CU_SUCCESS : CU_INVALID_VALUE;
}
CuResult cuGetErrorName(CuResult error, const char **text) { RUN(cuGetErrorName, text_of(error_name(error), text)); }
CuResult cuGetErrorString(CuResult error, const char **text) {
    RUN(cuGetErrorString, text_of(error_text(error), text));
}

static CuResult init(unsigned int flags) {
    if (driver.settings.problem[0]) {
        fprintf(stderr, "fakecuda: %s\n", driver.settings.problem);
        return CU_SYSTEM_NOT_READY;
    }
    if (flags) return CU_INVALID_VALUE;
    if (driver.settings.devices == 0) return CU_NO_DEVICE;
    driver.initialised = true;
    return CU_SUCCESS;
}
CuResult cuInit(unsigned int flags) { RUN(cuInit, init(flags)); }

static CuResult version(int *out) {
    if (!out) return CU_INVALID_VALUE;
    *out = driver.settings.driver_version;
    return CU_SUCCESS;
}
CuResult cuDriverGetVersion(int *out) { RUN(cuDriverGetVersion, version(out)); }

/* ---- devices, contexts ------------------------------------------------------------------------------------------- */

CuResult cuDeviceGetCount(int *count) { RUN(cuDeviceGetCount, device_count(count)); }
CuResult cuDeviceGet(CuDevice *device, int ordinal) { RUN(cuDeviceGet, device_get(device, ordinal)); }
CuResult cuDeviceGetName(char *name, int size, CuDevice device) {
    RUN(cuDeviceGetName, device_name(name, size, device));
}
CuResult cuDeviceTotalMem_v2(size_t *bytes, CuDevice device) {
    RUN(cuDeviceTotalMem_v2, device_total_memory(bytes, device));
}
CuResult cuDeviceGetAttribute(int *value, int attribute, CuDevice device) {
    RUN(cuDeviceGetAttribute, device_attribute(value, attribute, device));
}
CuResult cuDevicePrimaryCtxRetain(CuContext *context, CuDevice device) {
    RUN(cuDevicePrimaryCtxRetain, context_retain(context, device));
}
CuResult cuDevicePrimaryCtxRelease_v2(CuDevice device) { RUN(cuDevicePrimaryCtxRelease_v2, context_release(device)); }
CuResult cuCtxPushCurrent_v2(CuContext context) { RUN(cuCtxPushCurrent_v2, context_push(context)); }
CuResult cuCtxPopCurrent_v2(CuContext *context) { RUN(cuCtxPopCurrent_v2, context_pop(context)); }
CuResult cuCtxGetCurrent(CuContext *context) { RUN(cuCtxGetCurrent, context_get_current(context)); }

static CuResult context_device(const Context *c, CuDevice *device) {
    if (!device) return CU_INVALID_VALUE;
    *device = c->device;
    return CU_SUCCESS;
}
CuResult cuCtxGetDevice(CuDevice *device) { RUN(cuCtxGetDevice, context_device(call.context, device)); }
CuResult cuCtxSynchronize(void) { RUN(cuCtxSynchronize, context_sync(call.context, call.id)); }

/* ---- modules, functions ------------------------------------------------------------------------------------------ */

CuResult cuModuleLoadDataEx(CuModule *module, const void *image, unsigned int count, int *options, void **values) {
    RUN(cuModuleLoadDataEx, module_load(call.context, module, image, count, options, values));
}
CuResult cuModuleUnload(CuModule module) { RUN(cuModuleUnload, module_unload(module)); }
CuResult cuModuleGetFunction(CuFunction *function, CuModule module, const char *name) {
    RUN(cuModuleGetFunction, module_function(module, function, name));
}
CuResult cuFuncGetAttribute(int *value, int attribute, CuFunction function) {
    RUN(cuFuncGetAttribute, function_attribute(value, attribute, function));
}
CuResult cuFuncSetAttribute(CuFunction function, int attribute, int value) {
    RUN(cuFuncSetAttribute, function_set_attribute(function, attribute, value));
}
CuResult cuLaunchKernel(CuFunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
                        unsigned int block_x, unsigned int block_y, unsigned int block_z, unsigned int shared_bytes,
                        CuStream stream, void **params, void **extra) {
    const uint32_t grid[3] = {grid_x, grid_y, grid_z}, block[3] = {block_x, block_y, block_z};
    const LaunchShape shape = {grid, block, shared_bytes, false};
    RUN(cuLaunchKernel, launch_kernel(call.context, function, &shape, stream, params, extra));
}
CuResult cuLaunchKernelEx(const CuLaunchConfig *config, CuFunction function, void **params, void **extra) {
    RUN(cuLaunchKernelEx, launch_configured(call.context, config, function, params, extra));
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

CuResult cuMemGetInfo_v2(size_t *free_bytes, size_t *total) {
    RUN(cuMemGetInfo_v2, memory_info(call.context, free_bytes, total));
}
CuResult cuMemAlloc_v2(CuPointer *pointer, size_t bytes) {
    RUN(cuMemAlloc_v2, memory_alloc(call.context, pointer, bytes));
}
CuResult cuMemFree_v2(CuPointer pointer) { RUN(cuMemFree_v2, memory_free(call.context, pointer)); }
CuResult cuMemHostAlloc(void **pointer, size_t bytes, unsigned int flags) {
    RUN(cuMemHostAlloc, host_alloc(call.context, pointer, bytes, flags));
}
CuResult cuMemFreeHost(void *pointer) { RUN(cuMemFreeHost, host_free(call.context, pointer)); }
CuResult cuPointerGetAttribute(void *value, int attribute, CuPointer pointer) {
    RUN(cuPointerGetAttribute, pointer_attribute(value, attribute, pointer));
}
CuResult cuMemcpyHtoDAsync_v2(CuPointer to, const void *from, size_t bytes, CuStream stream) {
    RUN(cuMemcpyHtoDAsync_v2, copy_in(call.context, to, from, bytes, stream));
}
CuResult cuMemcpyDtoHAsync_v2(void *to, CuPointer from, size_t bytes, CuStream stream) {
    RUN(cuMemcpyDtoHAsync_v2, copy_out(call.context, to, from, bytes, stream));
}
CuResult cuMemcpyDtoDAsync_v2(CuPointer to, CuPointer from, size_t bytes, CuStream stream) {
    RUN(cuMemcpyDtoDAsync_v2, copy_inside(call.context, to, from, bytes, stream));
}
CuResult cuMemsetD8Async(CuPointer to, unsigned char value, size_t count, CuStream stream) {
    RUN(cuMemsetD8Async, copy_fill(call.context, to, 0, value, 1, count, 1, stream));
}
CuResult cuMemsetD32Async(CuPointer to, unsigned int value, size_t count, CuStream stream) {
    RUN(cuMemsetD32Async, copy_fill(call.context, to, 0, value, 4, count, 1, stream));
}
CuResult cuMemsetD2D16Async(CuPointer to, size_t pitch, unsigned short value, size_t width, size_t height,
                            CuStream stream) {
    RUN(cuMemsetD2D16Async, copy_fill(call.context, to, pitch, value, 2, width, height, stream));
}

/* ---- streams, events, graphs ------------------------------------------------------------------------------------- */

CuResult cuStreamCreate(CuStream *stream, unsigned int flags) {
    RUN(cuStreamCreate, stream_create(call.context, stream, flags));
}
CuResult cuStreamDestroy_v2(CuStream stream) { RUN(cuStreamDestroy_v2, stream_destroy(call.context, stream)); }
CuResult cuStreamSynchronize(CuStream stream) { RUN(cuStreamSynchronize, stream_sync(call.context, stream)); }
CuResult cuStreamQuery(CuStream stream) { RUN(cuStreamQuery, stream_query(call.context, stream)); }
CuResult cuStreamWaitEvent(CuStream stream, CuEvent event, unsigned int flags) {
    RUN(cuStreamWaitEvent, stream_wait(call.context, stream, event, flags));
}
CuResult cuStreamGetCtx(CuStream stream, CuContext *context) { RUN(cuStreamGetCtx, stream_context(stream, context)); }
CuResult cuEventCreate(CuEvent *event, unsigned int flags) {
    RUN(cuEventCreate, event_create(call.context, event, flags));
}
CuResult cuEventDestroy_v2(CuEvent event) { RUN(cuEventDestroy_v2, event_destroy(event)); }
CuResult cuEventRecord(CuEvent event, CuStream stream) {
    RUN(cuEventRecord, event_record(call.context, event, stream));
}
CuResult cuEventRecordWithFlags(CuEvent event, CuStream stream, unsigned int flags) {
    RUN(cuEventRecordWithFlags, event_record_flags(call.context, event, stream, flags));
}
CuResult cuEventSynchronize(CuEvent event) { RUN(cuEventSynchronize, event_sync(event)); }
CuResult cuEventQuery(CuEvent event) { RUN(cuEventQuery, event_query(event)); }
CuResult cuEventElapsedTime(float *milliseconds, CuEvent start, CuEvent end) {
    RUN(cuEventElapsedTime, event_elapsed(milliseconds, start, end));
}
CuResult cuStreamBeginCapture_v2(CuStream stream, int mode) {
    RUN(cuStreamBeginCapture_v2, capture_begin(call.context, stream, mode));
}
CuResult cuStreamEndCapture(CuStream stream, CuGraph *graph) {
    RUN(cuStreamEndCapture, capture_end(call.context, stream, graph, call.after));
}
CuResult cuGraphInstantiateWithFlags(CuGraphExec *exec, CuGraph graph, unsigned long long flags) {
    RUN(cuGraphInstantiateWithFlags, graph_instantiate(call.context, exec, graph, flags));
}
CuResult cuGraphLaunch(CuGraphExec exec, CuStream stream) {
    RUN(cuGraphLaunch, graph_launch(call.context, exec, stream));
}
CuResult cuGraphGetNodes(CuGraph graph, CuGraphNode *nodes, size_t *count) {
    RUN(cuGraphGetNodes, graph_nodes(graph, nodes, count));
}
CuResult cuGraphExecDestroy(CuGraphExec exec) { RUN(cuGraphExecDestroy, graph_exec_destroy(exec)); }
CuResult cuGraphDestroy(CuGraph graph) { RUN(cuGraphDestroy, graph_destroy(graph)); }

/* ---- by name ----------------------------------------------------------------------------------------------------- */

typedef void AnyFunction(void);
static const struct {
    const char *symbol;
    AnyFunction *function;
} functions[] = {
#define FUNCTION(name, symbol, parameters) {#symbol, (AnyFunction *)symbol},
    CUDA_DRIVER_CALLS(FUNCTION)
#undef FUNCTION
        {"cuGetProcAddress_v2", (AnyFunction *)cuGetProcAddress_v2},
};

/* The base name asks for the newest form: cuMemAlloc for cuMemAlloc_v2. */
static CuResult proc_address(const char *symbol, void **function, int cuda_version, uint64_t flags, int *status) {
    enum { FOUND, NO_SYMBOL, NEWEST_V1 = 3020, ALL_FLAGS = 3 };
    if (!symbol || !function || flags & ~(uint64_t)ALL_FLAGS || cuda_version > driver.settings.driver_version ||
        cuda_version < NEWEST_V1)
        return CU_INVALID_VALUE;
    size_t n = strlen(symbol);
    *function = NULL;
    if (status) *status = NO_SYMBOL;
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        const char *s = functions[i].symbol;
        if (strncmp(s, symbol, n) != 0 || (s[n] && strcmp(s + n, "_v2") != 0)) continue;
        memcpy(function, &functions[i].function, sizeof *function);
        if (status) *status = FOUND;
        return CU_SUCCESS;
    }
    text_add(&report.unknown, "%s", symbol);
    return CU_SUCCESS;
}
CuResult cuGetProcAddress_v2(const char *symbol, void **function, int cuda_version, uint64_t flags, int *status) {
    RUN(cuGetProcAddress_v2, proc_address(symbol, function, cuda_version, flags, status));
}
