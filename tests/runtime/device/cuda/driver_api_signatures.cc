// driver_api_signatures.cc: compiles only where driver_api.h and the cuda.h in the include path agree: every call has
// the same signature, types differing by name only
// (enums are ints there), and every constant the same value.  Compiled by driver_api_test.cc.
#include <stddef.h>
#include <stdint.h>

#include <type_traits>

namespace ours {
#include "runtime/device/cuda/driver_api.h"
}
#include <cuda.h>

namespace {

// A type of either side as the table writes it.
template <class T, bool = std::is_enum<T>::value> struct Plain { using type = T; };
template <class T> struct Plain<T, true> {
    static_assert(sizeof(T) == sizeof(int), "an enum of another size");
    using type = int;
};
template <class T> struct Plain<T *, false> { using type = typename Plain<T>::type *; };
template <class T> struct Plain<const T, false> { using type = const typename Plain<T>::type; };
#define HANDLE(tag)                                                                                                    \
    template <> struct Plain<::tag, false> { using type = ours::tag; };
HANDLE(CUctx_st)
HANDLE(CUmod_st)
HANDLE(CUfunc_st)
HANDLE(CUstream_st)
HANDLE(CUevent_st)
HANDLE(CUgraph_st)
HANDLE(CUgraphExec_st)
HANDLE(CUgraphNode_st)

template <> struct Plain<::CUlaunchConfig_st, false> { using type = ours::CuLaunchConfig; };

// Structs of the same fields at the same places.
#define FIELD(our_struct, our_field, theirs, field)                                                                    \
    static_assert(offsetof(ours::our_struct, our_field) == offsetof(::theirs, field), #field);
static_assert(sizeof(ours::CuLaunchConfig) == sizeof(::CUlaunchConfig), "");
FIELD(CuLaunchConfig, grid, CUlaunchConfig, gridDimX)
FIELD(CuLaunchConfig, block, CUlaunchConfig, blockDimX)
FIELD(CuLaunchConfig, shared_bytes, CUlaunchConfig, sharedMemBytes)
FIELD(CuLaunchConfig, stream, CUlaunchConfig, hStream)
FIELD(CuLaunchConfig, attributes, CUlaunchConfig, attrs)
FIELD(CuLaunchConfig, attribute_count, CUlaunchConfig, numAttrs)
static_assert(sizeof(ours::CuLaunchAttribute) == sizeof(::CUlaunchAttribute), "");
FIELD(CuLaunchAttribute, id, CUlaunchAttribute, id)
FIELD(CuLaunchAttribute, value.flag, CUlaunchAttribute, value.programmaticStreamSerializationAllowed)

template <class F> struct Signature;
template <class R, class... P> struct Signature<R(P...)> {
    using type = typename Plain<R>::type(typename Plain<P>::type...);
};

namespace table {
using namespace ours;
#define SAME(name, symbol, parameters)                                                                                 \
    static_assert(std::is_same<CuResult parameters, Signature<decltype(::symbol)>::type>::value, #symbol);
CUDA_DRIVER_CALLS(SAME)
#ifdef MADE_WRONG // a signature other than in cuda.h must not compile
SAME(mem_alloc, cuMemAlloc_v2, (CuPointer * pointer, unsigned int bytes))
#endif
} // namespace table

#define VALUE(our_name, theirs) static_assert(static_cast<int>(ours::our_name) == static_cast<int>(theirs), #our_name);
#define RESULT(name) VALUE(CU_##name, CUDA_ERROR_##name)
VALUE(CU_SUCCESS, CUDA_SUCCESS)
RESULT(INVALID_VALUE)
RESULT(OUT_OF_MEMORY)
RESULT(NOT_INITIALIZED)
VALUE(CU_DEINITIALIZED, CUDA_ERROR_DEINITIALIZED)
RESULT(STUB_LIBRARY)
RESULT(NO_DEVICE)
RESULT(INVALID_DEVICE)
RESULT(INVALID_IMAGE)
RESULT(INVALID_CONTEXT)
RESULT(NO_BINARY_FOR_GPU)
RESULT(INVALID_PTX)
RESULT(UNSUPPORTED_PTX_VERSION)
RESULT(INVALID_HANDLE)
RESULT(ILLEGAL_STATE)
RESULT(NOT_FOUND)
RESULT(NOT_READY)
RESULT(ILLEGAL_ADDRESS)
RESULT(LAUNCH_OUT_OF_RESOURCES)
RESULT(LAUNCH_TIMEOUT)
RESULT(ASSERT)
RESULT(HARDWARE_STACK_ERROR)
RESULT(ILLEGAL_INSTRUCTION)
RESULT(MISALIGNED_ADDRESS)
RESULT(INVALID_ADDRESS_SPACE)
RESULT(INVALID_PC)
RESULT(LAUNCH_FAILED)
RESULT(NOT_PERMITTED)
RESULT(NOT_SUPPORTED)
RESULT(SYSTEM_NOT_READY)
VALUE(CU_SYSTEM_DRIVER_MISMATCH, CUDA_ERROR_SYSTEM_DRIVER_MISMATCH)
RESULT(STREAM_CAPTURE_UNSUPPORTED)
RESULT(STREAM_CAPTURE_INVALIDATED)
RESULT(STREAM_CAPTURE_WRONG_THREAD)
RESULT(UNKNOWN)
VALUE(CU_ATTR_MAX_THREADS_PER_BLOCK, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK)
VALUE(CU_ATTR_MAX_SHARED_PER_BLOCK, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK)
VALUE(CU_ATTR_WARP_SIZE, CU_DEVICE_ATTRIBUTE_WARP_SIZE)
VALUE(CU_ATTR_MULTIPROCESSORS, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)
VALUE(CU_ATTR_CC_MAJOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)
VALUE(CU_ATTR_CC_MINOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)
VALUE(CU_ATTR_MAX_SHARED_PER_BLOCK_OPTIN, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)
VALUE(CU_POINTER_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_MEMORY_TYPE)
VALUE(CU_POINTER_DEVICE_ORDINAL, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL)
VALUE(CU_MEMORY_HOST, CU_MEMORYTYPE_HOST)
VALUE(CU_MEMORY_DEVICE, CU_MEMORYTYPE_DEVICE)
VALUE(CU_FUNC_MAX_THREADS, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK)
VALUE(CU_FUNC_SHARED_BYTES, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES)
VALUE(CU_FUNC_LOCAL_BYTES, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES)
VALUE(CU_FUNC_REGISTERS, CU_FUNC_ATTRIBUTE_NUM_REGS)
VALUE(CU_FUNC_MAX_DYNAMIC_SHARED, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)
VALUE(CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER)
VALUE(CU_JIT_INFO_LOG_SIZE, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES)
VALUE(CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER)
VALUE(CU_JIT_ERROR_LOG_SIZE, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES)
VALUE(CU_STREAM_NON_BLOCKING, CU_STREAM_NON_BLOCKING)
VALUE(CU_EVENT_DISABLE_TIMING, CU_EVENT_DISABLE_TIMING)
VALUE(CU_EVENT_DEFAULT, CU_EVENT_DEFAULT)
VALUE(CU_CAPTURE_THREAD_LOCAL, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL)
VALUE(CU_HOST_PORTABLE, CU_MEMHOSTALLOC_PORTABLE)
VALUE(CU_LAUNCH_PROGRAMMATIC_SERIALIZATION, CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION)
VALUE(CU_CTX_SCHED_BLOCKING_SYNC, CU_CTX_SCHED_BLOCKING_SYNC)

} // namespace
