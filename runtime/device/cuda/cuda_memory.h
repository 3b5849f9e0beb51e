/* cuda_memory.h: the memory of a CUDA context (runtime/memory/device_memory.h). */
#ifndef AMP_RUNTIME_DEVICE_CUDA_CUDA_MEMORY_H
#define AMP_RUNTIME_DEVICE_CUDA_CUDA_MEMORY_H

#include "runtime/device/cuda/context.h"
#include "runtime/memory/device_memory.h"

typedef struct amp_cuda_memory {
    amp_device_memory base;
    amp_cuda_context *context;
    CuStream stream; /* of copies */
    CuEvent written; /* the last run or copy that wrote params that are here */
} amp_cuda_memory;

amp_status amp_cuda_memory_make(amp_cuda_context *context, amp_cuda_memory **out, amp_error *err); /* inside */

static inline void *amp_cuda_address(CuPointer p) { return (void *)(uintptr_t)p; }
static inline CuPointer amp_cuda_pointer(const void *address) { return (CuPointer)(uintptr_t)address; }

#endif
