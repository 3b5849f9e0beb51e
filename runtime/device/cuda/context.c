/* context.c: see context.h. */
#define _POSIX_C_SOURCE 200809L /* getpid */
#include "runtime/device/cuda/context.h"

#include <stdio.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "runtime/device/cuda/blend.h"

/* Which of the devices that amp_cuda_device_find counts |device| is. */
static amp_status find_ordinal(amp_cuda_context *c, CuDevice device, int *ordinal, amp_error *err) {
    int count = 0;
    CuDevice other;
    AMP_TRY(AMP_CUDA(c, err, device_count, (&count)));
    for (*ordinal = 0; *ordinal < count; ++*ordinal) {
        AMP_TRY(AMP_CUDA(c, err, device_get, (&other, *ordinal)));
        if (other == device) return AMP_OK;
    }
    return amp_fail(err, AMP_NOT_FOUND, "the stream is on a device that is not among the %d visible to this process",
                    count);
}

/* The driver asks for a current context even if the answer does not depend on it; a thread without one gets the context
 * of device |ordinal| for the question. */
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
    c->process = getpid();
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

amp_status amp_cuda_enter(amp_cuda_context *c, amp_error *err) {
    if (c->process != getpid())
        return amp_fail(err, AMP_WRONG_STATE,
                        "CUDA does not work in a process forked after it was used: fork first and make sessions in the "
                        "child, or use the session in the process that made it");
    return AMP_CUDA(c, err, context_push, (c->context));
}

bool amp_cuda_enter_to_free(amp_cuda_context *c) { return !amp_cuda_enter(c, NULL) || !amp_cuda_enter(c, NULL); }

/* Also after a fatal error: the caller's context is to be current again. */
void amp_cuda_leave(amp_cuda_context *c) {
    CuContext context;
    (void)c->driver.context_pop(&context);
}

/* ---- kernels of PTX text ----------------------------------------------------------------------------------------- */

amp_status amp_cuda_load_text(amp_cuda_context *context, const char *text, const char *name, CuModule *module,
                              CuFunction *function, amp_error *err) {
    if (!*module) AMP_TRY(AMP_CUDA(context, err, module_load, (module, text, 0, NULL, NULL)));
    return AMP_CUDA(context, err, module_function, (function, *module, name));
}

unsigned amp_cuda_blocks(const amp_cuda_context *context, uint64_t wanted) {
    enum { BLOCKS_OF_MULTIPROCESSOR = 8 };
    const uint64_t most = (uint64_t)context->info.multiprocessors * BLOCKS_OF_MULTIPROCESSOR;
    return (unsigned)(wanted < most ? wanted : most);
}

/* ---- its memory -------------------------------------------------------------------------------------------------- */

static amp_cuda_memory *memory_of(amp_device_memory *m) { return (amp_cuda_memory *)m; }

static void destroy_inside(amp_cuda_memory *m) {
    amp_cuda_blending_free(&m->blending, m->context);
    if (m->written) AMP_CUDA_FREE(m->context, event_destroy, (m->written));
    if (m->stream) AMP_CUDA_FREE(m->context, stream_destroy, (m->stream));
}

static void free_memory(amp_cuda_memory *m) {
    amp_cuda_context *c = m->context;
    amp_free(&c->allocator, m, sizeof *m);
    amp_cuda_context_release(c);
}

static void memory_destroy(amp_device_memory *memory) {
    amp_cuda_memory *m = memory_of(memory);
    if (amp_cuda_enter_to_free(m->context)) {
        destroy_inside(m);
        amp_cuda_leave(m->context);
    }
    free_memory(m);
}

static amp_status memory_allocate(amp_device_memory *memory, size_t bytes, void **out, amp_error *err) {
    amp_cuda_memory *m = memory_of(memory);
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
    amp_cuda_memory *m = memory_of(memory);
    if (!address || !amp_cuda_enter_to_free(m->context)) return;
    AMP_CUDA_FREE(m->context, mem_free, (amp_cuda_pointer(address)));
    amp_cuda_leave(m->context);
}

/* ---- copies of memory -------------------------------------------------------------------------------------------- */

typedef struct MemoryCopy {
    void *to;
    const void *from;
    size_t bytes;
} MemoryCopy;

static amp_status start_in(amp_cuda_memory *m, const MemoryCopy *c, amp_error *err) {
    return AMP_CUDA(m->context, err, copy_in, (amp_cuda_pointer(c->to), c->from, c->bytes, m->stream));
}

static amp_status start_out(amp_cuda_memory *m, const MemoryCopy *c, amp_error *err) {
    return AMP_CUDA(m->context, err, copy_out, (c->to, amp_cuda_pointer(c->from), c->bytes, m->stream));
}

static amp_status start_clear(amp_cuda_memory *m, const MemoryCopy *c, amp_error *err) {
    return AMP_CUDA(m->context, err, fill8, (amp_cuda_pointer(c->to), 0, c->bytes, m->stream));
}

typedef amp_status Start(amp_cuda_memory *m, const MemoryCopy *c, amp_error *err);

amp_status amp_cuda_memory_wrote(amp_cuda_memory *m, const void *user, CuStream stream, amp_error *err) {
    m->writer = user;
    return AMP_CUDA(m->context, err, event_record, (m->written, stream));
}

amp_status amp_cuda_memory_await(amp_cuda_memory *m, const void *user, CuStream stream, amp_error *err) {
    if (!m->writer || m->writer == user) return AMP_OK;
    return AMP_CUDA(m->context, err, stream_wait, (stream, m->written, 0));
}

static amp_status copy_inside(amp_cuda_memory *m, Start *start, const MemoryCopy *copy, amp_error *err) {
    AMP_TRY(amp_cuda_memory_await(m, m, m->stream, err));
    AMP_TRY(start(m, copy, err));
    if (start != start_out) AMP_TRY(amp_cuda_memory_wrote(m, m, m->stream, err));
    return AMP_CUDA(m->context, err, stream_sync, (m->stream));
}

static amp_status run_copy(amp_device_memory *memory, Start *start, const MemoryCopy *copy, amp_error *err) {
    amp_cuda_memory *m = memory_of(memory);
    if (!copy->bytes) return AMP_OK;
    AMP_TRY_INSIDE(m->context, err, copy_inside(m, start, copy, err));
    return AMP_OK;
}

static amp_status memory_copy_in(amp_device_memory *m, void *to, const void *from, size_t bytes, amp_error *err) {
    return run_copy(m, start_in, &(MemoryCopy){to, from, bytes}, err);
}

static amp_status memory_copy_out(amp_device_memory *m, void *to, const void *from, size_t bytes, amp_error *err) {
    return run_copy(m, start_out, &(MemoryCopy){to, from, bytes}, err);
}

static amp_status memory_clear(amp_device_memory *m, void *address, size_t bytes, amp_error *err) {
    return run_copy(m, start_clear, &(MemoryCopy){.to = address, .bytes = bytes}, err);
}

static bool memory_same(const amp_device_memory *a, const amp_device_memory *b) {
    return ((const amp_cuda_memory *)a)->context->context == ((const amp_cuda_memory *)b)->context->context;
}

/* ---- blends ------------------------------------------------------------------------------------------------------ */

typedef struct Blends {
    amp_cuda_memory *other;
    const amp_memory_blend *list;
    int32_t count;
    float t;
} Blends;

static amp_status blend_inside(amp_cuda_memory *m, const Blends *b, amp_error *err) {
    AMP_TRY(amp_cuda_memory_await(m, m, m->stream, err));
    if (b->other != m) AMP_TRY(amp_cuda_memory_await(b->other, m, m->stream, err));
    for (int32_t i = 0; i < b->count; i++)
        AMP_TRY(amp_cuda_blend(&m->blending, m->context, &b->list[i], b->t, m->stream, err));
    AMP_TRY(amp_cuda_memory_wrote(m, m, m->stream, err));
    return AMP_CUDA(m->context, err, stream_sync, (m->stream));
}

static amp_status memory_blend(amp_device_memory *memory, const amp_device_memory *other, const amp_memory_blend *list,
                               int32_t count, float t, amp_error *err) {
    amp_cuda_memory *m = memory_of(memory);
    const Blends blends = {(amp_cuda_memory *)other, list, count, t};
    AMP_TRY_INSIDE(m->context, err, blend_inside(m, &blends, err));
    return AMP_OK;
}

static const amp_device_memory_type memory_type = {memory_destroy, memory_allocate, memory_release, memory_clear,
                                                   memory_copy_in, memory_copy_out, memory_same,    memory_blend};

/* ---- making memory ----------------------------------------------------------------------------------------------- */

static amp_status fill_memory(amp_cuda_memory *m, amp_error *err) {
    amp_cuda_context *c = m->context;
    AMP_TRY(AMP_CUDA(c, err, stream_create, (&m->stream, CU_STREAM_NON_BLOCKING)));
    return AMP_CUDA(c, err, event_create, (&m->written, CU_EVENT_DISABLE_TIMING));
}

amp_status amp_cuda_memory_make(amp_cuda_context *context, amp_cuda_memory **out, amp_error *err) {
    *out = NULL;
    amp_cuda_memory *m = amp_alloc_zeroed(&context->allocator, sizeof *m);
    if (!m) return amp_fail(err, AMP_OUT_OF_MEMORY, "no memory for the CUDA device");
    m->base.type = &memory_type;
    atomic_init(&m->base.references, 1);
    snprintf(m->base.name, sizeof m->base.name, "the memory of cuda:%d (%.80s)", context->info.ordinal,
             context->info.name);
    m->context = amp_cuda_context_retain(context);
    amp_status status = fill_memory(m, err);
    if (status) {
        destroy_inside(m);
        free_memory(m);
    } else *out = m;
    return status;
}
