/* executor.h: walking a program's kernels on the threads of a pool. */
#ifndef AMP_RUNTIME_DEVICE_CPU_EXECUTOR_H
#define AMP_RUNTIME_DEVICE_CPU_EXECUTOR_H

#include "runtime/device/cpu/governor.h"
#include "runtime/device/cpu/pool.h"
#include "runtime/device/cpu/product/product.h"
#include "runtime/device/device.h"

enum { AMP_GOVERNORS = 16 };

typedef struct amp_launch amp_launch;

typedef struct amp_executor {
    const amp_log *log;
    amp_pool *pool;
    int isa; /* AMP_ISA_* */
    const amp_product_kernels *product_f32, *product_bf16;
    char *scratch; /* of products: |scratch_stride| bytes per thread */
    size_t scratch_stride;
    char *shared; /* of products: partial sums */
    const amp_run *run;
    bool runs;          /* a program: the pool's threads are there */
    amp_launch *launch; /* apart: it is large, and stacks may be small */
    amp_governor governors[AMP_GOVERNORS];
    int next_governor;
} amp_executor;

/* Bytes of scratch that products of |program| take for up to |n| samples; aligned to 64. */
typedef struct amp_executor_needs {
    size_t per_thread, shared;
} amp_executor_needs;
amp_executor_needs amp_executor_needs_of(const amp_executor *executor, const amp_program *program, amp_sizes sizes);

/* Makes pool and launch; |threads| and |outside|: amp_pool_create_outside.  After a failure too: amp_executor_free.
 * The executor must not move. */
amp_status amp_executor_make(amp_executor *executor, int32_t threads, const amp_outside_threads *outside,
                             const amp_allocator *allocator, amp_error *err);
void amp_executor_free(amp_executor *executor, const amp_allocator *allocator);
size_t amp_executor_bytes(const amp_executor *executor); /* of pool and launch */

/* Runs every kernel of run->program whose predicate holds.  Work is divided by shape only, so the bits do not depend on
 * the number of threads, which may change from call to call. */
amp_status amp_execute(amp_executor *executor, const amp_run *run, amp_error *err);

#endif
