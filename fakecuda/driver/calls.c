/* calls.c: what every call does before and after its work: the lock, counting, injected failures, what it needs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fakecuda/driver/driver.h"

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
    [CALL_cuMemcpyHtoDAsync_v2] = CONTEXT,
    [CALL_cuMemcpyDtoHAsync_v2] = CONTEXT,
    [CALL_cuMemcpyDtoDAsync_v2] = CONTEXT,
    [CALL_cuMemsetD8Async] = CONTEXT,
    [CALL_cuMemsetD32Async] = CONTEXT,
    [CALL_cuStreamCreate] = CONTEXT,
    [CALL_cuStreamDestroy_v2] = CONTEXT | GIVES,
    [CALL_cuStreamSynchronize] = CONTEXT,
    [CALL_cuStreamQuery] = CONTEXT,
    [CALL_cuStreamWaitEvent] = CONTEXT,
    [CALL_cuStreamGetCtx] = CONTEXT,
    [CALL_cuEventCreate] = CONTEXT,
    [CALL_cuEventDestroy_v2] = CONTEXT | GIVES,
    [CALL_cuEventRecord] = CONTEXT,
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

/* What stands in the way of a call with a context; the device goes on with its work before. */
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
