/* poison.h: the end of temporaries, for sanitizers.  After the last kernel that may use a temporary, its bytes are
 * replaced by those of memory that nobody ever wrote: a kernel that reads it later, because a plan is wrong, reads what
 * is uninitialised, which the stand-in driver and compute-sanitizer report.  Sessions with separate buffers do this. */
#ifndef AMP_RUNTIME_DEVICE_CUDA_POISON_H
#define AMP_RUNTIME_DEVICE_CUDA_POISON_H

#include "runtime/device/cuda/context.h"
#include "runtime/device/device.h"

typedef struct amp_cuda_poison {
    CuPointer memory; /* 0: temporaries are left alone */
} amp_cuda_poison;

/* As long as the longest temporary of |run|, if its temporaries end at all.  All of these inside the context. */
amp_status amp_cuda_poison_make(amp_cuda_poison *poison, amp_cuda_context *context, const amp_run *run, amp_error *err);
void amp_cuda_poison_free(amp_cuda_poison *poison, amp_cuda_context *context);

/* Ends the temporaries of |run| whose last kernel is |kernel|. */
amp_status amp_cuda_poison_temporaries(const amp_cuda_poison *poison, amp_cuda_context *context, const amp_run *run,
                                       int32_t kernel, CuStream stream, amp_error *err);

#endif
