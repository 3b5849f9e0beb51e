/* transfer.h: what goes between host and device with each run: inputs, and scalars on their way back. */
#ifndef AMP_RUNTIME_DEVICE_CUDA_TRANSFER_H
#define AMP_RUNTIME_DEVICE_CUDA_TRANSFER_H

#include "runtime/device/cuda/context.h"
#include "runtime/device/cuda/device_inputs.h"
#include "runtime/device/device.h"

/* ---- upload: the inputs of runs ---------------------------------------------------------------------------------- */

/* Programs read them in one block: first the header (counters that the host writes), then the inputs one after the
 * other, packed for the number of samples.  A call copies them into pinned memory; a stream of its own copies that to
 * the device, while the run before may still read the block; the last short copy is after that run.  There are two
 * of each, so a caller waits only for the inputs of two calls before.
 * Inputs in pinned memory of the application go from there; the header alone is copied by the call.
 * Inputs in device memory are copied into the block by the stream of the runs, which also sets the words of the header
 * that have changed.  They are not read where they are, because a graph keeps the addresses of its kernels. */

enum { AMP_CUDA_UPLOAD_SLOTS = 2 };

typedef struct amp_cuda_upload_slot {
    char *pinned; /* NULL: nothing comes through it */
    CuPointer device;
    CuEvent arrived;  /* on the device: |pinned| may be written again */
    CuEvent consumed; /* by the copy into the block: |device| may be */
} amp_cuda_upload_slot;

typedef struct amp_cuda_upload {
    amp_cuda_context *context;
    const void *header;
    size_t header_bytes;
    uint32_t *sent; /* the header in |block| after all that was enqueued; NULL: the session takes arrays of the host */
    size_t bytes;   /* of a whole block */
    size_t slot_bytes;   /* of what the host may send of one */
    size_t staged_bytes; /* of that, what it copies into pinned memory */
    CuPointer block;
    CuPointer *separate; /* by input of the model; NULL: all are in the block */
    size_t separate_bytes;
    int32_t input_count;           /* of the model */
    const amp_model_input *inputs; /* NULL: none are in device memory */
    CuPointer faults;
    amp_cuda_indices indices;
    CuStream stream;
    amp_cuda_upload_slot slots[AMP_CUDA_UPLOAD_SLOTS];
    int next;
} amp_cuda_upload;

/* All of these inside the context. */
amp_status amp_cuda_upload_make(amp_cuda_upload *upload, amp_cuda_context *context, const amp_input_room *room,
                                const amp_allocator *allocator, amp_error *err);
void amp_cuda_upload_free(amp_cuda_upload *upload, const amp_allocator *allocator);

/* Where a program finds the input that is its buffer |buffer|. */
CuPointer amp_cuda_upload_address(const amp_cuda_upload *upload, const amp_program *program, int32_t buffer,
                                  amp_sizes sizes);
/* Copies the inputs of |run|; what |compute| is given afterwards finds them.  A program without inputs: nothing. */
amp_status amp_cuda_upload_send(amp_cuda_upload *upload, const amp_run *run, CuStream compute, amp_error *err);
size_t amp_cuda_upload_bytes(const amp_cuda_upload *upload);  /* of the device */
size_t amp_cuda_upload_pinned(const amp_cuda_upload *upload); /* of the host */

/* ---- readback: the scalars of runs ------------------------------------------------------------------------------- */

/* Copies of one block into pinned memory, several under way. */

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
size_t amp_cuda_readback_bytes(const amp_cuda_readback *readback); /* of the host */

#endif
