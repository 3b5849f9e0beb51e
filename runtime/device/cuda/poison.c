/* poison.c: see poison.h. */
#include "runtime/device/cuda/poison.h"

#include "runtime/device/cuda/context.h"
#include "runtime/model/layout.h"

/* In rows; without the padding of the allocation. */
static size_t bytes_of(const amp_run *run, int32_t buffer) {
    const amp_model_buffer *b = &run->program->buffers[buffer];
    return (size_t)(amp_model_dim_at(&b->rows, run->n) * amp_model_dim_at(&b->cols, run->n)) *
           amp_storage_size(b->storage);
}

static bool is_temporary(const amp_run *run, int32_t buffer) {
    return run->program->buffers[buffer].kind == AMP_BUFFER_TEMP;
}

amp_status amp_cuda_poison_make(amp_cuda_poison *u, amp_cuda_context *context, const amp_run *run, amp_error *err) {
    size_t most = 0;
    *u = (amp_cuda_poison){0};
    for (int32_t i = 0; run->poisons_temporaries && i < run->program->buffer_count; i++)
        if (is_temporary(run, i) && bytes_of(run, i) > most) most = bytes_of(run, i);
    return most ? AMP_CUDA(context, err, mem_alloc, (&u->memory, most)) : AMP_OK;
}

void amp_cuda_poison_free(amp_cuda_poison *u, amp_cuda_context *context) {
    if (u->memory) AMP_CUDA_FREE(context, mem_free, (u->memory));
    *u = (amp_cuda_poison){0};
}

amp_status amp_cuda_poison_temporaries(const amp_cuda_poison *u, amp_cuda_context *context, const amp_run *run,
                                       int32_t kernel, CuStream stream, amp_error *err) {
    for (int32_t i = 0; u->memory && i < run->program->buffer_count; i++) {
        if (!is_temporary(run, i) || run->program->buffers[i].last_kernel != kernel || !bytes_of(run, i)) continue;
        AMP_TRY(AMP_CUDA(context, err, copy, (amp_cuda_pointer(run->buffers[i]), u->memory, bytes_of(run, i), stream)));
    }
    return AMP_OK;
}
