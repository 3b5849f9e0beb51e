/* upload_twice.c: see upload_twice.h. */
#include "tests/runtime/device/cuda/upload_twice.h"

#include "base/alloc.h"
#include "runtime/device/cuda/launch.h"

static amp_status send(amp_cuda_upload *upload, const void *array, int64_t between, int64_t seen[2], amp_error *err) {
    amp_cuda_context *c = upload->context;
    amp_model_buffer buffer = {.kind = AMP_BUFFER_INPUT, .storage = AMP_DT_F32, .rows = {1, 1, 0}, .cols = {1, 1, 0}};
    const amp_program takes = {.buffer_count = 1, .buffers = &buffer, .input_end = 1}, adds = {.buffer_count = 0};
    void *buffers[] = {(void *)(uintptr_t)array};
    const amp_run run = {.program = &takes, .buffers = buffers, .sizes.n = 1, .inputs_in = AMP_INPUTS_DEVICE};
    const amp_run other = {.program = &adds,
                           .sizes.n = 1,
                           .inputs_in = AMP_INPUTS_DEVICE,
                           .batches = {.first = between, .count = 1, .number = amp_cuda_address(upload->block)}};
    for (int i = 0; i < 2; i++) {
        AMP_TRY(amp_cuda_upload_send(upload, &run, upload->stream, err));
        AMP_TRY(AMP_CUDA(c, err, copy_out, (&seen[i], upload->block, sizeof seen[i], upload->stream)));
        AMP_TRY(AMP_CUDA(c, err, stream_sync, (upload->stream)));
        AMP_TRY(amp_cuda_upload_send(upload, &other, upload->stream, err));
        AMP_TRY(amp_cuda_set_batch(c, &other, between, upload->stream, err));
    }
    return AMP_CUDA(c, err, stream_sync, (upload->stream));
}

static amp_status make_and_send(amp_cuda_context *c, const void *array, int64_t header, int64_t between,
                                int64_t seen[2], amp_error *err) {
    const amp_model_input input = {.index_bound = 0};
    const amp_input_room room = {
        .header = &header, .header_bytes = sizeof header, .input_bytes = sizeof(float), .count = 1, .inputs = &input};
    amp_cuda_upload upload;
    amp_status status = amp_cuda_upload_make(&upload, c, &room, &c->allocator, err);
    if (!status) status = send(&upload, array, between, seen, err);
    amp_cuda_upload_free(&upload, &c->allocator);
    return status;
}

amp_status upload_twice(const void *array, int64_t header, int64_t between, int64_t seen[2], amp_error *err) {
    const amp_allocator allocator = amp_allocator_or_default(NULL);
    amp_cuda_context *c;
    AMP_TRY(amp_cuda_context_open(&allocator, NULL, 0, &c, err));
    amp_status status = amp_cuda_enter(c, err);
    if (!status) {
        status = make_and_send(c, array, header, between, seen, err);
        amp_cuda_leave(c);
    }
    amp_cuda_context_release(c);
    return status;
}
