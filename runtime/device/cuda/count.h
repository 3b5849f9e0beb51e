/* count.h: counts how many numbers of a matrix are how large (amp/observe.h), on the device.
 *
 * Each matrix has a place of its own in device memory, where a kernel adds to its bins.  They come to the host when
 * somebody asks, or when all places are taken. */
#ifndef AMP_RUNTIME_DEVICE_CUDA_COUNT_H
#define AMP_RUNTIME_DEVICE_CUDA_COUNT_H

#include "runtime/device/cuda/context.h"
#include "runtime/device/device.h"

/* Zeroed: nothing was counted yet, and nothing is allocated. */
typedef struct amp_cuda_counting {
    CuModule module;
    CuFunction function;
    CuPointer memory;     /* AMP_CUDA_COUNTED places */
    amp_number_bins **to; /* of each place that is taken; the callers' */
    int taken;
} amp_cuda_counting;

/* Inside.  What is counted is in rows, of f32, f16 or bf16; |stream|: of the runs. */
amp_status amp_cuda_count(amp_cuda_counting *c, amp_cuda_context *context, const amp_counted *what, amp_number_bins *to,
                          CuStream stream, const amp_allocator *allocator, amp_error *err);
/* Adds what was counted to where its callers said, and waits for that. */
amp_status amp_cuda_finish_counts(amp_cuda_counting *c, amp_cuda_context *context, CuStream stream,
                                  const amp_allocator *allocator, amp_error *err);
size_t amp_cuda_counting_bytes(const amp_cuda_counting *c); /* of the device */
void amp_cuda_counting_free(amp_cuda_counting *c, amp_cuda_context *context, const amp_allocator *allocator);

#endif
