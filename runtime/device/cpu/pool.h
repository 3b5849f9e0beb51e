/* pool.h: the threads of a CPU device.
 *
 * The caller hands out one run after another, each a number of tasks.  Every thread takes tasks from one counter, so a
 * worker that the system does not schedule takes none, and whoever holds no task is never waited for.  Waiting threads
 * spin for microseconds and then sleep on a futex: a processor that spins is one that the thread waited for lacks.
 *
 *     amp_pool_begin(pool, amp_pool_threads(pool), &err);    // or 1: the workers stay out of it
 *     amp_pool_run(pool, task, ctx, 100);
 *     amp_pool_run(pool, other, ctx, 7);                     // after all of the 100
 *     amp_pool_end(pool);
 */
#ifndef AMP_RUNTIME_DEVICE_CPU_POOL_H
#define AMP_RUNTIME_DEVICE_CPU_POOL_H

#include <stdbool.h>

#include "amp/base.h"

typedef struct amp_pool amp_pool;

/* |threads|: the caller and its workers; 0: one per processor.  Workers block signals that other threads can take. */
amp_status amp_pool_create(int32_t threads, const amp_allocator *allocator, amp_pool **out, amp_error *err);

/* The application's threads in place of workers: run(user, share, ctx, count) calls share(ctx, i) for every i below
 * |count|, on whatever threads, and returns when all have returned.  Shares take tasks until none is left and wait for
 * nothing, so that it does not matter how many of them run at a time. */
typedef struct amp_outside_threads {
    void (*run)(void *user, void (*share)(void *ctx, int32_t i), void *ctx, int32_t count); /* NULL: none */
    void *user;
} amp_outside_threads;
/* |threads|: shares at most. */
amp_status amp_pool_create_outside(int32_t threads, const amp_outside_threads *outside, const amp_allocator *allocator,
                                   amp_pool **out, amp_error *err);
bool amp_pool_is_outside(const amp_pool *pool);

void amp_pool_destroy(amp_pool *pool); /* NULL is a no-op */
int32_t amp_pool_threads(const amp_pool *pool);
int32_t amp_pool_processors(void); /* that this process may use */
size_t amp_pool_bytes(const amp_pool *pool);
/* Every worker sleeps: the next run on all threads would have to wake them, which takes longer than a small program. */
bool amp_pool_is_asleep(amp_pool *pool);

/* One caller at a time.  In a process that was forked since the last call the workers, which fork does not copy, are
 * started anew; AMP_WRONG_STATE where it was forked between begin and end. */
amp_status amp_pool_begin(amp_pool *pool, int32_t threads, amp_error *err);
void amp_pool_end(amp_pool *pool);

/* Calls task(ctx, i, thread) for i in 0 .. count - 1, thread 0 being the caller's, and returns when all are done. */
typedef void (*amp_pool_task)(void *ctx, int64_t i, int32_t thread);
void amp_pool_run(amp_pool *pool, amp_pool_task task, void *ctx, int64_t count);

#endif
