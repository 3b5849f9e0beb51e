/* cuda_memory.c: see cuda_memory.h. */
#include "runtime/device/cuda/cuda_memory.h"

#include <stdio.h>

#include "base/alloc.h"
#include "base/error.h"

static amp_cuda_memory *of(amp_device_memory *m) { return (amp_cuda_memory *)m; }

static void destroy_inside(amp_cuda_memory *m) {
    if (m->written) AMP_CUDA_FREE(m->context, event_destroy, (m->written));
    if (m->stream) AMP_CUDA_FREE(m->context, stream_destroy, (m->stream));
}

static void free_memory(amp_cuda_memory *m) {
    amp_cuda_context *c = m->context;
    amp_free(&c->allocator, m, sizeof *m);
    amp_cuda_context_release(c);
}

static void memory_destroy(amp_device_memory *memory) {
    amp_cuda_memory *m = of(memory);
    if (amp_cuda_enter_to_free(m->context)) {
        destroy_inside(m);
        amp_cuda_leave(m->context);
    }
    free_memory(m);
}

static amp_status memory_allocate(amp_device_memory *memory, size_t bytes, void **out, amp_error *err) {
    amp_cuda_memory *m = of(memory);
    CuPointer pointer = 0;
    *out = NULL;
    AMP_TRY(amp_cuda_enter(m->context, err));
    amp_status status = AMP_CUDA(m->context, err, mem_alloc, (&pointer, bytes ? bytes : 1));
    amp_cuda_leave(m->context);
    if (status == AMP_OUT_OF_MEMORY)
        return amp_fail(err, AMP_OUT_OF_MEMORY, "%s has no memory for another %zu bytes; choose a smaller capacity",
                        m->base.name, bytes);
    *out = amp_cuda_address(pointer);
    return status;
}

static void memory_release(amp_device_memory *memory, void *address) {
    amp_cuda_memory *m = of(memory);
    if (!address || !amp_cuda_enter_to_free(m->context)) return;
    AMP_CUDA_FREE(m->context, mem_free, (amp_cuda_pointer(address)));
    amp_cuda_leave(m->context);
}

/* ---- copies ------------------------------------------------------------------------------------------------------ */

typedef struct Copy {
    void *to;
    const void *from;
    size_t bytes;
} Copy;

static amp_status start_in(amp_cuda_memory *m, const Copy *c, amp_error *err) {
    return AMP_CUDA(m->context, err, copy_in, (amp_cuda_pointer(c->to), c->from, c->bytes, m->stream));
}

static amp_status start_out(amp_cuda_memory *m, const Copy *c, amp_error *err) {
    return AMP_CUDA(m->context, err, copy_out, (c->to, amp_cuda_pointer(c->from), c->bytes, m->stream));
}

static amp_status start_clear(amp_cuda_memory *m, const Copy *c, amp_error *err) {
    return AMP_CUDA(m->context, err, fill8, (amp_cuda_pointer(c->to), 0, c->bytes, m->stream));
}

typedef amp_status Start(amp_cuda_memory *m, const Copy *c, amp_error *err);

static amp_status copy_inside(amp_cuda_memory *m, Start *start, const Copy *copy, amp_error *err) {
    AMP_TRY(AMP_CUDA(m->context, err, stream_wait, (m->stream, m->written, 0)));
    AMP_TRY(start(m, copy, err));
    if (start != start_out) AMP_TRY(AMP_CUDA(m->context, err, event_record, (m->written, m->stream)));
    return AMP_CUDA(m->context, err, stream_sync, (m->stream));
}

static amp_status run_copy(amp_device_memory *memory, Start *start, const Copy *copy, amp_error *err) {
    amp_cuda_memory *m = of(memory);
    if (!copy->bytes) return AMP_OK;
    AMP_TRY_INSIDE(m->context, err, copy_inside(m, start, copy, err));
    return AMP_OK;
}

static amp_status memory_copy_in(amp_device_memory *m, void *to, const void *from, size_t bytes, amp_error *err) {
    return run_copy(m, start_in, &(Copy){to, from, bytes}, err);
}

static amp_status memory_copy_out(amp_device_memory *m, void *to, const void *from, size_t bytes, amp_error *err) {
    return run_copy(m, start_out, &(Copy){to, from, bytes}, err);
}

static amp_status memory_clear(amp_device_memory *m, void *address, size_t bytes, amp_error *err) {
    return run_copy(m, start_clear, &(Copy){.to = address, .bytes = bytes}, err);
}

static bool memory_same(const amp_device_memory *a, const amp_device_memory *b) {
    return ((const amp_cuda_memory *)a)->context->context == ((const amp_cuda_memory *)b)->context->context;
}

static const amp_device_memory_type type = {memory_destroy, memory_allocate, memory_release, memory_clear,
                                            memory_copy_in, memory_copy_out, memory_same};

/* ---- making ------------------------------------------------------------------------------------------------------ */

static amp_status fill(amp_cuda_memory *m, amp_error *err) {
    amp_cuda_context *c = m->context;
    AMP_TRY(AMP_CUDA(c, err, stream_create, (&m->stream, CU_STREAM_NON_BLOCKING)));
    return AMP_CUDA(c, err, event_create, (&m->written, CU_EVENT_DISABLE_TIMING));
}

amp_status amp_cuda_memory_make(amp_cuda_context *context, amp_cuda_memory **out, amp_error *err) {
    *out = NULL;
    amp_cuda_memory *m = amp_alloc_zeroed(&context->allocator, sizeof *m);
    if (!m) return amp_fail(err, AMP_OUT_OF_MEMORY, "no memory for the CUDA device");
    m->base.type = &type;
    atomic_init(&m->base.references, 1);
    snprintf(m->base.name, sizeof m->base.name, "the memory of cuda:%d (%.80s)", context->info.ordinal,
             context->info.name);
    m->context = amp_cuda_context_retain(context);
    amp_status status = fill(m, err);
    if (status) {
        destroy_inside(m);
        free_memory(m);
    } else *out = m;
    return status;
}
