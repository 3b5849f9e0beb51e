/* device_inputs.h: inputs of runs that the application has in page-locked or in device memory: whose memory an array
 * is, and the copy within the device that replaces what is no index. */
#ifndef AMP_RUNTIME_DEVICE_CUDA_DEVICE_INPUTS_H
#define AMP_RUNTIME_DEVICE_CUDA_DEVICE_INPUTS_H

#include "runtime/device/cuda/context.h"
#include "runtime/device/device.h"

/* AMP_INVALID_ARGUMENT, naming input |name|, where |array| does not begin and end in page-locked memory, or in memory
 * of the context's device. */
amp_status amp_cuda_check_array(amp_cuda_context *context, amp_input_memory memory, const char *name, const void *array,
                                size_t bytes, amp_error *err);

/* Zeroed: nothing is loaded. */
typedef struct amp_cuda_indices {
    CuModule module;
    CuFunction function;
} amp_cuda_indices;

/* All of these inside the context. */
amp_status amp_cuda_indices_load(amp_cuda_indices *indices, amp_cuda_context *context, amp_error *err);
void amp_cuda_indices_free(amp_cuda_indices *indices, amp_cuda_context *context);

typedef struct amp_cuda_index_copy {
    CuPointer from, to;
    uint64_t count;
    const amp_model_input *input; /* its bound, and what is ignored */
    CuPointer fault;              /* an amp_index_fault, which was 0 */
} amp_cuda_index_copy;

/* Starts a copy of indices on |stream|. */
amp_status amp_cuda_copy_indices(const amp_cuda_indices *indices, amp_cuda_context *context,
                                 const amp_cuda_index_copy *copy, CuStream stream, amp_error *err);

#endif
