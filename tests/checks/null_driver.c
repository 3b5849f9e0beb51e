/* null_driver.c: with tiny_driver_rest.c a libcuda.so.1 whose calls succeed and do nothing, to count what the
 * runtime executes between them. */
#include <stdlib.h>
#include <string.h>

#include "runtime/device/cuda/driver_api.h"

#pragma GCC diagnostic ignored "-Wunused-parameter"

#define GIVES(symbol, parameters, ...)                                                                                 \
    CuResult symbol parameters {                                                                                       \
        __VA_ARGS__;                                                                                                   \
        return CU_SUCCESS;                                                                                             \
    }
#define GIVES_HANDLE(symbol, type, ...) GIVES(symbol, (type * out, ##__VA_ARGS__), *out = (type)next())

enum { GAP = 1 << 12 };
static const CuPointer DEVICE_MEMORY = 1ull << 50;

static CuPointer next(void) {
    static CuPointer last;
    return last += GAP;
}

static int attribute_of(int attribute) {
    switch (attribute) {
    case CU_ATTR_CC_MAJOR: return 9;
    case CU_ATTR_CC_MINOR: return 0;
    case CU_ATTR_MULTIPROCESSORS: return 132;
    case CU_ATTR_WARP_SIZE: return 32;
    case CU_ATTR_MAX_THREADS_PER_BLOCK: return 1024;
    default: return 227 << 10; /* shared memory */
    }
}

static CuPointer allocate(size_t bytes) {
    static CuPointer used;
    const CuPointer at = DEVICE_MEMORY + used;
    used += (bytes + GAP - 1) / GAP * GAP;
    return at;
}

GIVES(cuDriverGetVersion, (int *version), *version = 13000)
GIVES(cuDeviceGetCount, (int *count), *count = 1)
GIVES(cuDeviceGet, (CuDevice * device, int ordinal), *device = ordinal)
GIVES(cuDeviceGetName, (char *name, int size, CuDevice device), strncpy(name, "Null", (size_t)size))
GIVES(cuDeviceTotalMem_v2, (size_t * bytes, CuDevice device), *bytes = 1ull << 36)
GIVES(cuDeviceGetAttribute, (int *value, int attribute, CuDevice device), *value = attribute_of(attribute))
GIVES(cuFuncGetAttribute, (int *value, int attribute, CuFunction function), *value = 0)
GIVES(cuMemAlloc_v2, (CuPointer * pointer, size_t bytes), *pointer = allocate(bytes))
GIVES(cuMemHostAlloc, (void **pointer, size_t bytes, unsigned int flags), *pointer = calloc(1, bytes))
GIVES(cuPointerGetAttribute, (void *value, int attribute, CuPointer pointer),
      *(int *)value = attribute != CU_POINTER_MEMORY_TYPE ? 0
                      : pointer >= DEVICE_MEMORY          ? CU_MEMORY_DEVICE
                                                          : CU_MEMORY_HOST)
GIVES(cuEventElapsedTime, (float *milliseconds, CuEvent start, CuEvent end), *milliseconds = 1)
GIVES_HANDLE(cuDevicePrimaryCtxRetain, CuContext, CuDevice device)
GIVES_HANDLE(cuCtxGetCurrent, CuContext)
GIVES_HANDLE(cuStreamCreate, CuStream, unsigned int flags)
GIVES_HANDLE(cuEventCreate, CuEvent, unsigned int flags)
GIVES_HANDLE(cuModuleGetFunction, CuFunction, CuModule module, const char *name)
GIVES(cuModuleLoadDataEx, (CuModule * module, const void *image, unsigned int count, int *options, void **values),
      *module = (CuModule)next())
GIVES(cuStreamGetCtx, (CuStream stream, CuContext *context), *context = (CuContext)next())
GIVES(cuCtxGetDevice, (CuDevice * device), *device = 0)
GIVES(cuStreamEndCapture, (CuStream stream, CuGraph *graph), *graph = (CuGraph)next())
GIVES(cuGraphInstantiateWithFlags, (CuGraphExec * exec, CuGraph graph, unsigned long long flags),
      *exec = (CuGraphExec)next())
