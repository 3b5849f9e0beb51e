/* executor.h: walking a program's kernels on the threads of a pool. */
#ifndef AMP_RUNTIME_DEVICE_CPU_EXECUTOR_H
#define AMP_RUNTIME_DEVICE_CPU_EXECUTOR_H

#include <stdatomic.h>

#include "runtime/device/cpu/pool.h"
#include "runtime/device/cpu/product/product.h"
#include "runtime/device/device.h"

typedef struct amp_executor {
    amp_pool *pool;
    int isa; /* AMP_ISA_* */
    const amp_product_kernels *product_f32, *product_bf16;
    char *scratch; /* of products: |scratch_stride| bytes per thread */
    size_t scratch_stride;
    char *shared;            /* of products: partial sums */
    atomic_llong *next_task; /* two by kernel: of its tasks, and of those that add up their sums */
    const amp_run *run;
} amp_executor;

/* Bytes of scratch that products of |program| take for up to |n| samples; aligned to 64. */
typedef struct amp_executor_needs {
    size_t per_thread, shared;
} amp_executor_needs;
amp_executor_needs amp_executor_needs_of(const amp_executor *executor, const amp_program *program, int64_t n);

/* Runs every kernel of run->program whose predicate holds.  Work is divided by shape only, so the bits do not depend on
 * the number of threads. */
void amp_execute(amp_executor *executor, const amp_run *run);

#endif
