/* context.c: see context.h. */
#include "runtime/device/cuda/context.h"

#include "base/alloc.h"
#include "base/error.h"

/* Which of the devices that amp_cuda_device_find counts |device| is. */
static amp_status find_ordinal(amp_cuda_context *c, CuDevice device, int *ordinal, amp_error *err) {
    int count = 0;
    CuDevice other;
    AMP_TRY(AMP_CUDA(c, err, device_count, (&count)));
    for (*ordinal = 0; *ordinal < count; ++*ordinal) {
        AMP_TRY(AMP_CUDA(c, err, device_get, (&other, *ordinal)));
        if (other == device) return AMP_OK;
    }
    return amp_fail(err, AMP_NOT_FOUND, "the device of cuda_stream is none of the %d that this process sees", count);
}

/* The driver asks for a current context even where the answer does not depend on it; a thread without one gets that of
 * device |ordinal| for the question. */
static amp_status find_context(amp_cuda_context *c, CuStream stream, int ordinal, amp_error *err) {
    CuContext current = NULL;
    CuDevice device;
    AMP_TRY(AMP_CUDA(c, err, context_current, (&current)));
    if (current) return AMP_CUDA(c, err, stream_context, (stream, &c->context));
    AMP_TRY(AMP_CUDA(c, err, device_get, (&device, ordinal)));
    AMP_TRY(AMP_CUDA(c, err, primary_retain, (&c->context, device)));
    amp_status status = amp_cuda_enter(c, err);
    if (!status) {
        status = AMP_CUDA(c, err, stream_context, (stream, &c->context));
        amp_cuda_leave(c);
    }
    AMP_CUDA_FREE(c, primary_release, (device));
    return status;
}

static amp_status use_stream(amp_cuda_context *c, CuStream stream, int ordinal, amp_error *err) {
    CuDevice device;
    AMP_TRY(find_context(c, stream, ordinal, err));
    AMP_TRY_INSIDE(c, err, AMP_CUDA(c, err, context_device, (&device)));
    AMP_TRY(find_ordinal(c, device, &ordinal, err));
    return amp_cuda_device_find(&c->driver, ordinal, &c->info, err);
}

static amp_status use_primary(amp_cuda_context *c, int ordinal, amp_error *err) {
    AMP_TRY(amp_cuda_device_find(&c->driver, ordinal, &c->info, err));
    AMP_TRY(AMP_CUDA(c, err, primary_retain, (&c->context, c->info.device)));
    c->retained = true;
    return AMP_OK;
}

amp_status amp_cuda_context_open(const amp_allocator *allocator, CuStream stream, int ordinal, amp_cuda_context **out,
                                 amp_error *err) {
    *out = NULL;
    amp_cuda_context *c = amp_alloc_zeroed(allocator, sizeof *c);
    if (!c) return amp_fail(err, AMP_OUT_OF_MEMORY, "no memory for the CUDA device");
    atomic_init(&c->references, 1);
    c->allocator = *allocator;
    amp_status status = amp_cuda_driver_open(&c->driver, err);
    if (!status) status = stream ? use_stream(c, stream, ordinal, err) : use_primary(c, ordinal, err);
    if (status) amp_cuda_context_release(c);
    else *out = c;
    return status;
}

amp_cuda_context *amp_cuda_context_retain(amp_cuda_context *c) {
    atomic_fetch_add_explicit(&c->references, 1, memory_order_relaxed);
    return c;
}

void amp_cuda_context_release(amp_cuda_context *c) {
    if (!c || atomic_fetch_sub_explicit(&c->references, 1, memory_order_acq_rel) != 1) return;
    amp_allocator a = c->allocator;
    if (c->retained) AMP_CUDA_FREE(c, primary_release, (c->info.device));
    amp_cuda_driver_close(&c->driver);
    amp_free(&a, c, sizeof *c);
}

amp_status amp_cuda_enter(amp_cuda_context *c, amp_error *err) { return AMP_CUDA(c, err, context_push, (c->context)); }

bool amp_cuda_enter_to_free(amp_cuda_context *c) { return !amp_cuda_enter(c, NULL) || !amp_cuda_enter(c, NULL); }

/* Also after a fatal error: the caller's context is to be current again. */
void amp_cuda_leave(amp_cuda_context *c) {
    CuContext context;
    (void)c->driver.context_pop(&context);
}
