/* driver_api.h: the calls of the CUDA driver that the runtime makes, declared here so that nothing of CUDA is needed to
 * build.  Types and values follow NVIDIA's CUDA Driver API document; tests/runtime/device/cuda/driver_api_test
 * compares every signature with cuda.h where one is installed.  CUDA 12 and 13 both have these symbols.
 * fakecuda/driver implements the same table. */
#ifndef AMP_RUNTIME_DEVICE_CUDA_DRIVER_API_H
#define AMP_RUNTIME_DEVICE_CUDA_DRIVER_API_H

#include <stddef.h>
#include <stdint.h>

typedef int CuResult; /* CUresult */
typedef int CuDevice;
typedef struct CUctx_st *CuContext;
typedef struct CUmod_st *CuModule;
typedef struct CUfunc_st *CuFunction;
typedef struct CUstream_st *CuStream;
typedef struct CUevent_st *CuEvent;
typedef struct CUgraph_st *CuGraph;
typedef struct CUgraphExec_st *CuGraphExec;
typedef struct CUgraphNode_st *CuGraphNode;
typedef unsigned long long CuPointer; /* CUdeviceptr */

enum {
    CU_SUCCESS = 0,
    CU_INVALID_VALUE = 1,
    CU_OUT_OF_MEMORY = 2,
    CU_NOT_INITIALIZED = 3,
    CU_DEINITIALIZED = 4,
    CU_STUB_LIBRARY = 34,
    CU_NO_DEVICE = 100,
    CU_INVALID_DEVICE = 101,
    CU_INVALID_IMAGE = 200,
    CU_INVALID_CONTEXT = 201,
    CU_NO_BINARY_FOR_GPU = 209,
    CU_INVALID_PTX = 218,
    CU_UNSUPPORTED_PTX_VERSION = 222,
    CU_INVALID_HANDLE = 400,
    CU_ILLEGAL_STATE = 401,
    CU_NOT_FOUND = 500,
    CU_NOT_READY = 600,
    CU_ILLEGAL_ADDRESS = 700,
    CU_LAUNCH_OUT_OF_RESOURCES = 701,
    CU_LAUNCH_TIMEOUT = 702,
    CU_ASSERT = 710,
    CU_HARDWARE_STACK_ERROR = 714,
    CU_ILLEGAL_INSTRUCTION = 715,
    CU_MISALIGNED_ADDRESS = 716,
    CU_INVALID_ADDRESS_SPACE = 717,
    CU_INVALID_PC = 718,
    CU_LAUNCH_FAILED = 719,
    CU_NOT_PERMITTED = 800,
    CU_NOT_SUPPORTED = 801,
    CU_SYSTEM_NOT_READY = 802,
    CU_SYSTEM_DRIVER_MISMATCH = 803,
    CU_STREAM_CAPTURE_UNSUPPORTED = 900,
    CU_STREAM_CAPTURE_INVALIDATED = 901,
    CU_STREAM_CAPTURE_WRONG_THREAD = 908,
    CU_UNKNOWN = 999
};

/* CUdevice_attribute */
enum {
    CU_ATTR_MAX_THREADS_PER_BLOCK = 1,
    CU_ATTR_MAX_SHARED_PER_BLOCK = 8,
    CU_ATTR_WARP_SIZE = 10,
    CU_ATTR_MULTIPROCESSORS = 16,
    CU_ATTR_CC_MAJOR = 75,
    CU_ATTR_CC_MINOR = 76,
    CU_ATTR_MAX_SHARED_PER_BLOCK_OPTIN = 97
};
/* CUpointer_attribute, and what the first of them answers (CUmemorytype) */
enum { CU_POINTER_MEMORY_TYPE = 2, CU_POINTER_DEVICE_ORDINAL = 9 };
enum { CU_MEMORY_HOST = 1, CU_MEMORY_DEVICE = 2 };
/* CUfunction_attribute */
enum {
    CU_FUNC_MAX_THREADS = 0,
    CU_FUNC_SHARED_BYTES = 1,
    CU_FUNC_LOCAL_BYTES = 3,
    CU_FUNC_REGISTERS = 4,
    CU_FUNC_MAX_DYNAMIC_SHARED = 8,
    CU_FUNC_PREFERRED_CARVEOUT = 9
};
/* CUjit_option */
enum { CU_JIT_INFO_LOG_BUFFER = 3, CU_JIT_INFO_LOG_SIZE = 4, CU_JIT_ERROR_LOG_BUFFER = 5, CU_JIT_ERROR_LOG_SIZE = 6 };
enum {
    CU_STREAM_NON_BLOCKING = 1,
    CU_EVENT_DISABLE_TIMING = 2,
    CU_EVENT_DEFAULT = 0,
    CU_EVENT_RECORD_DEFAULT = 0,
    CU_EVENT_RECORD_EXTERNAL = 1, /* in a capture: a node of the graph, and nothing that the capture depends on */
    CU_CAPTURE_THREAD_LOCAL = 1,
    CU_HOST_PORTABLE = 1,
    CU_CTX_SCHED_BLOCKING_SYNC = 4
};

/* CUlaunchAttributeID */
enum { CU_LAUNCH_PROGRAMMATIC_SERIALIZATION = 6 };

typedef struct CuLaunchAttribute { /* CUlaunchAttribute */
    int id, pad;
    union {
        uint64_t words[8];
        int flag;
    } value;
} CuLaunchAttribute;

typedef struct CuLaunchConfig { /* CUlaunchConfig */
    unsigned int grid[3], block[3], shared_bytes;
    CuStream stream;
    CuLaunchAttribute *attributes;
    unsigned int attribute_count;
} CuLaunchConfig;

/* X(name, symbol, parameters): `CuResult name parameters`. */
#define CUDA_DRIVER_CALLS(X)                                                                                           \
    X(get_error_name, cuGetErrorName, (CuResult error, const char **text))                                             \
    X(get_error_string, cuGetErrorString, (CuResult error, const char **text))                                         \
    X(init, cuInit, (unsigned int flags))                                                                              \
    X(driver_version, cuDriverGetVersion, (int *version))                                                              \
    X(device_count, cuDeviceGetCount, (int *count))                                                                    \
    X(device_get, cuDeviceGet, (CuDevice * device, int ordinal))                                                       \
    X(device_name, cuDeviceGetName, (char *name, int size, CuDevice device))                                           \
    X(device_total_memory, cuDeviceTotalMem_v2, (size_t * bytes, CuDevice device))                                     \
    X(device_attribute, cuDeviceGetAttribute, (int *value, int attribute, CuDevice device))                            \
    X(primary_retain, cuDevicePrimaryCtxRetain, (CuContext * context, CuDevice device))                                \
    X(primary_release, cuDevicePrimaryCtxRelease_v2, (CuDevice device))                                                \
    X(context_push, cuCtxPushCurrent_v2, (CuContext context))                                                          \
    X(context_pop, cuCtxPopCurrent_v2, (CuContext * context))                                                          \
    X(context_current, cuCtxGetCurrent, (CuContext * context))                                                         \
    X(context_device, cuCtxGetDevice, (CuDevice * device))                                                             \
    X(context_sync, cuCtxSynchronize, (void))                                                                          \
    X(module_load, cuModuleLoadDataEx,                                                                                 \
      (CuModule * module, const void *image, unsigned int count, int *options, void **values))                         \
    X(module_unload, cuModuleUnload, (CuModule module))                                                                \
    X(module_function, cuModuleGetFunction, (CuFunction * function, CuModule module, const char *name))                \
    X(function_attribute, cuFuncGetAttribute, (int *value, int attribute, CuFunction function))                        \
    X(function_set_attribute, cuFuncSetAttribute, (CuFunction function, int attribute, int value))                     \
    X(mem_info, cuMemGetInfo_v2, (size_t * free_bytes, size_t * total))                                                \
    X(mem_alloc, cuMemAlloc_v2, (CuPointer * pointer, size_t bytes))                                                   \
    X(mem_free, cuMemFree_v2, (CuPointer pointer))                                                                     \
    X(host_alloc, cuMemHostAlloc, (void **pointer, size_t bytes, unsigned int flags))                                  \
    X(host_free, cuMemFreeHost, (void *pointer))                                                                       \
    X(pointer_attribute, cuPointerGetAttribute, (void *value, int attribute, CuPointer pointer))                       \
    X(copy_in, cuMemcpyHtoDAsync_v2, (CuPointer to, const void *from, size_t bytes, CuStream stream))                  \
    X(copy_out, cuMemcpyDtoHAsync_v2, (void *to, CuPointer from, size_t bytes, CuStream stream))                       \
    X(copy, cuMemcpyDtoDAsync_v2, (CuPointer to, CuPointer from, size_t bytes, CuStream stream))                       \
    X(fill8, cuMemsetD8Async, (CuPointer to, unsigned char value, size_t count, CuStream stream))                      \
    X(fill32, cuMemsetD32Async, (CuPointer to, unsigned int value, size_t count, CuStream stream))                     \
    X(fill_lines, cuMemsetD2D16Async,                                                                                  \
      (CuPointer to, size_t pitch, unsigned short value, size_t width, size_t height, CuStream stream))                \
    X(stream_create, cuStreamCreate, (CuStream * stream, unsigned int flags))                                          \
    X(stream_destroy, cuStreamDestroy_v2, (CuStream stream))                                                           \
    X(stream_sync, cuStreamSynchronize, (CuStream stream))                                                             \
    X(stream_query, cuStreamQuery, (CuStream stream))                                                                  \
    X(stream_wait, cuStreamWaitEvent, (CuStream stream, CuEvent event, unsigned int flags))                            \
    X(stream_context, cuStreamGetCtx, (CuStream stream, CuContext * context))                                          \
    X(event_create, cuEventCreate, (CuEvent * event, unsigned int flags))                                              \
    X(event_destroy, cuEventDestroy_v2, (CuEvent event))                                                               \
    X(event_record, cuEventRecord, (CuEvent event, CuStream stream))                                                   \
    X(event_record_flags, cuEventRecordWithFlags, (CuEvent event, CuStream stream, unsigned int flags))                \
    X(event_sync, cuEventSynchronize, (CuEvent event))                                                                 \
    X(event_query, cuEventQuery, (CuEvent event))                                                                      \
    X(event_elapsed, cuEventElapsedTime, (float *milliseconds, CuEvent start, CuEvent end))                            \
    X(capture_begin, cuStreamBeginCapture_v2, (CuStream stream, int mode))                                             \
    X(capture_end, cuStreamEndCapture, (CuStream stream, CuGraph * graph))                                             \
    X(graph_instantiate, cuGraphInstantiateWithFlags, (CuGraphExec * exec, CuGraph graph, unsigned long long flags))   \
    X(graph_launch, cuGraphLaunch, (CuGraphExec exec, CuStream stream))                                                \
    X(graph_node_count, cuGraphGetNodes, (CuGraph graph, CuGraphNode * nodes, size_t * count))                         \
    X(graph_exec_destroy, cuGraphExecDestroy, (CuGraphExec exec))                                                      \
    X(graph_destroy, cuGraphDestroy, (CuGraph graph))                                                                  \
    X(launch, cuLaunchKernel,                                                                                          \
      (CuFunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z, unsigned int block_x,       \
       unsigned int block_y, unsigned int block_z, unsigned int shared_bytes, CuStream stream, void **params,          \
       void **extra))                                                                                                  \
    X(launch_ex, cuLaunchKernelEx, (const CuLaunchConfig *config, CuFunction function, void **params, void **extra))

typedef struct CudaDriver { /* every call, opened at run time: cuda_driver.c */
#define CUDA_DRIVER_MEMBER(name, symbol, parameters) CuResult(*name) parameters;
    CUDA_DRIVER_CALLS(CUDA_DRIVER_MEMBER)
#undef CUDA_DRIVER_MEMBER
    void *library;
    int version; /* 13000 */
} CudaDriver;

#endif
