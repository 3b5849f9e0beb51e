/* call.c: what a call of the library runs in: enough stack, and the default floating-point environment. */
#include "compiler/compile_session.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/float_environment.h"
#include "base/thread.h"

enum { ENOUGH = 2 << 20, STACK = 16 << 20 };

typedef struct OnStack {
    CompilerCall call;
    void *ctx;
    amp_error *err;
    amp_status status;
} OnStack;

static void *make(void *arg) {
    OnStack *c = arg;
    amp_float_environment before = amp_float_environment_enter();
    c->status = c->call(c->ctx, c->err);
    amp_float_environment_leave(before);
    return NULL;
}

/* Where nothing is known of the stack, it is taken to be large. */
static bool has_enough_stack(void) {
    pthread_attr_t attributes;
    void *lowest = NULL;
    size_t size = 0;
    char here;
    if (pthread_getattr_np(pthread_self(), &attributes)) return true;
    int unknown = pthread_attr_getstack(&attributes, &lowest, &size);
    pthread_attr_destroy(&attributes);
    return unknown || (uintptr_t)&here - (uintptr_t)lowest >= ENOUGH;
}

amp_status compiler_call(CompilerCall call, void *ctx, amp_error *err) {
    OnStack c = {call, ctx, err, AMP_OK};
    pthread_t thread;
    if (has_enough_stack()) {
        make(&c);
        return c.status;
    }
    int failed = amp_thread_start(&thread, STACK, make, &c);
    if (failed)
        return amp_fail_errno(err, AMP_OUT_OF_MEMORY, failed,
                              "the calling thread has less than 2 MiB of stack, and no thread with more could be "
                              "started: call from a thread with a larger stack");
    pthread_join(thread, NULL);
    return c.status;
}
