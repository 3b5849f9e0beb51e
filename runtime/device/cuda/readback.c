/* readback.c: see readback.h. */
#include "runtime/device/cuda/readback.h"

#include "base/error.h"

amp_status amp_cuda_readback_make(amp_cuda_readback *g, amp_cuda_context *context, CuPointer block, size_t bytes,
                                  amp_error *err) {
    void *pinned = NULL;
    *g = (amp_cuda_readback){.context = context, .block = block, .bytes = bytes};
    if (!bytes) return AMP_OK;
    AMP_TRY(AMP_CUDA(context, err, host_alloc, (&pinned, amp_cuda_readback_bytes(g), CU_HOST_PORTABLE)));
    g->pinned = pinned;
    for (int i = 0; i < AMP_CUDA_READBACK_SLOTS; i++)
        AMP_TRY(AMP_CUDA(context, err, event_create, (&g->copied[i], CU_EVENT_DISABLE_TIMING)));
    return AMP_OK;
}

void amp_cuda_readback_free(amp_cuda_readback *g) {
    for (int i = 0; i < AMP_CUDA_READBACK_SLOTS; i++)
        if (g->copied[i]) AMP_CUDA_FREE(g->context, event_destroy, (g->copied[i]));
    if (g->pinned) AMP_CUDA_FREE(g->context, host_free, (g->pinned));
    *g = (amp_cuda_readback){0};
}

size_t amp_cuda_readback_bytes(const amp_cuda_readback *g) { return AMP_CUDA_READBACK_SLOTS * g->bytes; }

static int slot_of(const amp_cuda_readback *g, int at) { return (g->oldest + at) % AMP_CUDA_READBACK_SLOTS; }

amp_status amp_cuda_readback_start(amp_cuda_readback *g, CuStream compute, amp_error *err) {
    int slot = slot_of(g, g->count);
    if (g->bytes) {
        char *to = g->pinned + (size_t)slot * g->bytes;
        AMP_TRY(AMP_CUDA(g->context, err, copy_out, (to, g->block, g->bytes, compute)));
        AMP_TRY(AMP_CUDA(g->context, err, event_record, (g->copied[slot], compute)));
    }
    g->count++;
    return AMP_OK;
}

/* Whether the oldest copy is done, asked without waiting. */
static amp_status ask(const amp_cuda_readback *g, bool *done, amp_error *err) {
    AMP_TRY(amp_cuda_latch_check(&g->context->latch, err));
    CuResult result = g->context->driver.event_query(g->copied[g->oldest]);
    *done = result == CU_SUCCESS;
    if (result == CU_SUCCESS || result == CU_NOT_READY) return AMP_OK;
    return amp_cuda_result(&g->context->driver, &g->context->latch, CUDA_CALL_event_query, result, err);
}

amp_status amp_cuda_readback_finish(amp_cuda_readback *g, bool wait, const void **out, amp_error *err) {
    bool done = true;
    *out = NULL;
    if (g->bytes && wait) AMP_TRY(AMP_CUDA(g->context, err, event_sync, (g->copied[g->oldest])));
    if (g->bytes && !wait) AMP_TRY(ask(g, &done, err));
    if (!done) return AMP_OK;
    *out = g->bytes ? g->pinned + (size_t)g->oldest * g->bytes : (const char *)g;
    g->oldest = slot_of(g, 1);
    g->count--;
    return AMP_OK;
}
