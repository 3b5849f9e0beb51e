/* context.h: a CUDA context with what every part of the device needs to call the driver in it, and its memory. */
#ifndef AMP_RUNTIME_DEVICE_CUDA_CONTEXT_H
#define AMP_RUNTIME_DEVICE_CUDA_CONTEXT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"
#include "runtime/device/cuda/cuda_driver.h"
#include "runtime/memory/device_memory.h"

typedef struct amp_cuda_context {
    atomic_int references;
    amp_allocator allocator;
    CudaDriver driver;
    amp_cuda_device_info info;
    CuContext context;
    bool retained; /* the device's primary context; else it is the application's */
    amp_cuda_latch latch;
    pid_t process; /* that it was made in: the driver does not work in a child that fork made */
} amp_cuda_context;

/* |stream|: the application's, whose context is used; NULL: the primary context of device |ordinal|. */
amp_status amp_cuda_context_open(const amp_allocator *allocator, CuStream stream, int ordinal, amp_cuda_context **out,
                                 amp_error *err);
amp_cuda_context *amp_cuda_context_retain(amp_cuda_context *context);
void amp_cuda_context_release(amp_cuda_context *context); /* NULL is a no-op */

/* Between these the context is the calling thread's current one; afterwards its own is again.  leave only where enter
 * gave AMP_OK. */
amp_status amp_cuda_enter(amp_cuda_context *context, amp_error *err);
void amp_cuda_leave(amp_cuda_context *context);
/* Enters, evaluates |expr|, leaves; a failure of either is what the function around it returns. */
#define AMP_TRY_INSIDE(context, err, expr)                                                                             \
    do {                                                                                                               \
        AMP_TRY(amp_cuda_enter((context), (err)));                                                                     \
        amp_status inside_status_ = (expr);                                                                            \
        amp_cuda_leave(context);                                                                                       \
        if (inside_status_) return inside_status_;                                                                     \
    } while (0)
/* Enters for cleanup: retries once, because what is not freed now leaks.  false: leave all of it. */
bool amp_cuda_enter_to_free(amp_cuda_context *context);

/* A call of the driver inside, as an amp_status: AMP_CUDA(context, err, stream_sync, (stream)). */
#define AMP_CUDA(context, err, name, arguments)                                                                        \
    CUDA_CHECKED(&(context)->driver, &(context)->latch, (err), name, arguments)

/* Giving things back, inside: a failure changes nothing, unless it is fatal (work before it may have caused it);
 * after a fatal error the driver is left alone. */
#define AMP_CUDA_FREE(context, name, arguments) ((void)AMP_CUDA(context, NULL, name, arguments))

/* A kernel that is PTX text, so that a machine without NVRTC has it too.  Inside; |*module| stays if it is there. */
amp_status amp_cuda_load_text(amp_cuda_context *context, const char *text, const char *name, CuModule *module,
                              CuFunction *function, amp_error *err);
/* Of a kernel whose blocks go on until all is done: |wanted|, but no more than keep the device busy. */
unsigned amp_cuda_blocks(const amp_cuda_context *context, uint64_t wanted);

/* ---- its memory (runtime/memory/device_memory.h) ----------------------------------------------------------------- */

typedef struct amp_cuda_blending { /* blend.h */
    CuModule module;
    CuFunction function;
} amp_cuda_blending;

typedef struct amp_cuda_memory {
    amp_device_memory base;
    amp_cuda_context *context;
    CuStream stream;    /* of copies */
    CuEvent written;    /* the last run or copy that wrote params that are here */
    const void *writer; /* whose stream that was on; NULL: there is none yet */
    amp_cuda_blending blending;
} amp_cuda_memory;

/* Both inside the context.  A |user| writes and waits on one stream only, and that stream is waited for before the user
 * is freed, because another one may get its address.
 * |user| has enqueued a write of params on |stream|. */
amp_status amp_cuda_memory_wrote(amp_cuda_memory *memory, const void *user, CuStream stream, amp_error *err);
/* What is enqueued on |stream| from now on runs after the last write.  If |user| made it, no wait is enqueued. */
amp_status amp_cuda_memory_await(amp_cuda_memory *memory, const void *user, CuStream stream, amp_error *err);

amp_status amp_cuda_memory_make(amp_cuda_context *context, amp_cuda_memory **out, amp_error *err); /* inside */

static inline void *amp_cuda_address(CuPointer p) { return (void *)(uintptr_t)p; }
static inline CuPointer amp_cuda_pointer(const void *address) { return (CuPointer)(uintptr_t)address; }

#endif
