/* device_arena.h: addresses in device memory: all in one allocation, or each in one of its own so that an overrun is
 * seen.
 *
 * The same calls of amp_device_arena_take are made twice: first they count (and give NULL), then, after amp_device_arena_allocate,
 * they give addresses. */
#ifndef AMP_RUNTIME_MEMORY_DEVICE_ARENA_H
#define AMP_RUNTIME_MEMORY_DEVICE_ARENA_H

#include "runtime/memory/device_memory.h"

typedef struct amp_device_arena {
    amp_device_memory *memory; /* NULL: nothing was begun */
    bool separate, placing;
    char *base; /* one allocation */
    size_t bytes, taken;
    void **each; /* separate ones */
    size_t count, given;
    amp_status status; /* of the first take that failed */
    amp_error error;
} amp_device_arena;

void amp_device_arena_begin(amp_device_arena *blocks, amp_device_memory *memory,
                            bool separate); /* keeps a reference to |memory| */
void *amp_device_arena_take(amp_device_arena *blocks, size_t bytes);
amp_status amp_device_arena_allocate(amp_device_arena *blocks, const amp_allocator *allocator, amp_error *err);
amp_status amp_device_arena_end(const amp_device_arena *blocks, amp_error *err); /* what a take ran into */
void amp_device_arena_free(amp_device_arena *blocks, const amp_allocator *allocator);

#endif
