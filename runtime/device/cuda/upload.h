/* upload.h: the inputs of runs on their way to the device.
 *
 * Programs read them in one block: first the header (counters that the host writes), then the inputs one behind the
 * other, packed for the number of samples.  A call copies them into pinned memory; a stream of its own copies that to
 * the device, while the run before may still read the block; the last short copy is behind that run.  There are two
 * of each, so a caller waits only for the inputs of two calls before. */
#ifndef AMP_RUNTIME_DEVICE_CUDA_UPLOAD_H
#define AMP_RUNTIME_DEVICE_CUDA_UPLOAD_H

#include "runtime/device/device.h"
#include "runtime/device/cuda/context.h"

enum { AMP_CUDA_STAGES = 2 };

typedef struct amp_cuda_stage {
    char *pinned;
    CuPointer device;
    CuEvent arrived;  /* on the device: |pinned| may be written again */
    CuEvent consumed; /* by the copy into the block: |device| may be */
} amp_cuda_stage;

typedef struct amp_cuda_staging {
    amp_cuda_context *context;
    const void *header;
    size_t header_bytes, bytes; /* of a whole block */
    CuPointer block;
    CuPointer *separate; /* by input of the model; NULL: all lie in the block */
    int32_t separate_count;
    size_t separate_bytes;
    CuStream stream;
    amp_cuda_stage stages[AMP_CUDA_STAGES];
    int next;
} amp_cuda_staging;

/* All of these inside the context. */
amp_status amp_cuda_staging_make(amp_cuda_staging *staging, amp_cuda_context *context, const amp_input_room *room,
                                 const amp_allocator *allocator, amp_error *err);
void amp_cuda_staging_free(amp_cuda_staging *staging, const amp_allocator *allocator);

/* Where a program finds the input that is its buffer |buffer|. */
CuPointer amp_cuda_staging_address(const amp_cuda_staging *staging, const amp_program *program, int32_t buffer,
                                   int64_t n);
/* Copies the inputs of |run|; what |compute| is given afterwards finds them.  A program without inputs: nothing. */
amp_status amp_cuda_staging_send(amp_cuda_staging *staging, const amp_run *run, CuStream compute, amp_error *err);
size_t amp_cuda_staging_bytes(const amp_cuda_staging *staging);

#endif
