/* count.h: counts how many numbers of a matrix are how large (amp/observe.h), by the threads of a pool. */
#ifndef AMP_RUNTIME_DEVICE_CPU_COUNT_H
#define AMP_RUNTIME_DEVICE_CPU_COUNT_H

#include "runtime/device/cpu/pool.h"
#include "runtime/device/device.h"

/* Between amp_pool_begin and amp_pool_end.  |what->storage|: f32, tf32, f16 or bf16. */
void amp_count_numbers(amp_pool *pool, const amp_counted *what, amp_number_bins *to);

#endif
