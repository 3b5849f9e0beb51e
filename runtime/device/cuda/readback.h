/* readback.h: the scalars of runs on their way to the host: copies of one block into pinned memory, several under
 * way. */
#ifndef AMP_RUNTIME_DEVICE_CUDA_READBACK_H
#define AMP_RUNTIME_DEVICE_CUDA_READBACK_H

#include "runtime/device/cuda/context.h"
#include "runtime/device/device.h"

enum { AMP_CUDA_READBACK_SLOTS = AMP_READBACKS + 1 }; /* one is being read */

typedef struct amp_cuda_readback {
    amp_cuda_context *context;
    CuPointer block;
    size_t bytes;
    char *pinned; /* the slots, one after the other */
    CuEvent copied[AMP_CUDA_READBACK_SLOTS];
    int oldest, count; /* under way */
} amp_cuda_readback;

/* All of these inside the context. */
amp_status amp_cuda_readback_make(amp_cuda_readback *readback, amp_cuda_context *context, CuPointer block, size_t bytes,
                                  amp_error *err);
void amp_cuda_readback_free(amp_cuda_readback *readback);

amp_status amp_cuda_readback_start(amp_cuda_readback *readback, CuStream compute, amp_error *err);
/* NULL: the oldest is still under way. */
amp_status amp_cuda_readback_finish(amp_cuda_readback *readback, bool wait, const void **out, amp_error *err);
size_t amp_cuda_readback_bytes(const amp_cuda_readback *readback);

#endif
