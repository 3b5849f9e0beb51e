/* amp/cpu.h: sessions on the CPU: which instructions they use, and whose threads.
 *
 * Objects, threads, errors and options as in amp/amp.h.
 */
#ifndef AMP_CPU_H
#define AMP_CPU_H

#include "amp/amp.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A piece of a session's work: index i of those that run_tasks was given. */
typedef void (*amp_task)(void *ctx, int32_t i);

typedef struct amp_cpu_options { /* of amp_session_options.cpu */
    size_t struct_size;
    const char *isa; /* "portable", "v3", "v4"; NULL: the best of this machine */
    /* The application's own pool in place of threads of the session (NULL: those).  Called many times within a call of
     * the session, from its thread: task(ctx, i) has to be called exactly once for each i below |count|, on any
     * threads, at once or one after the other.  run_tasks returns when all have returned; what a task wrote is then
     * visible to the caller, as with any join.  Tasks wait for nothing and need 64 KiB of stack.  |count| is at most
     * |threads| of the session (0: one per processor); with |threads| = 1 it is not called.  The bits are the same for
     * any number of threads.  It must not call the session, throw or jump out. */
    void (*run_tasks)(void *user, amp_task task, void *ctx, int32_t count);
    void *user;
} amp_cpu_options;

/* The instruction sets that the CPU's kernels were compiled for, the smallest first: "portable", "v3", "v4"; NULL past
 * the end.  A processor that lacks the first cannot run them: amp_session_create says so (ampc --isa native). */
AMP_API const char *amp_model_isa_name(const amp_model *model, int32_t index);

#ifdef __cplusplus
}
#endif
#endif
