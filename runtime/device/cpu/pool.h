/* pool.h: the threads of a CPU device.
 *
 * A job is one function that every thread runs, with barriers inside: a training step is one job.  Workers spin for a
 * while after a job, because waking a sleeping one costs hundreds of microseconds, and sleep on a futex when nothing
 * comes.  Where there are more threads than processors, nobody spins for long.
 */
#ifndef AMP_RUNTIME_DEVICE_CPU_POOL_H
#define AMP_RUNTIME_DEVICE_CPU_POOL_H

#include "amp/base.h"

typedef struct amp_pool amp_pool;

/* |threads| >= 1, the caller of amp_pool_run being one of them. */
amp_status amp_pool_create(int32_t threads, const amp_allocator *allocator, amp_pool **out, amp_error *err);
void amp_pool_destroy(amp_pool *pool); /* NULL is a no-op */
int32_t amp_pool_threads(const amp_pool *pool);
size_t amp_pool_bytes(const amp_pool *pool);

/* Runs job(ctx, thread) on every thread, 0 being the caller's, and returns when all are done.  One caller at a time. */
typedef void (*amp_pool_job)(void *ctx, int32_t thread);
void amp_pool_run(amp_pool *pool, amp_pool_job job, void *ctx);
/* Inside a job: waits until every thread is here. */
void amp_pool_barrier(amp_pool *pool);

#endif
