/* device_arena.h: addresses in a device's own memory: all in one allocation, or each in one of its own so that an overrun is
 * seen.
 *
 * The same calls of amp_blocks_take are made twice: first they count (and give NULL), then, after amp_blocks_allocate,
 * they give addresses. */
#ifndef AMP_RUNTIME_MEMORY_DEVICE_ARENA_H
#define AMP_RUNTIME_MEMORY_DEVICE_ARENA_H

#include "runtime/memory/device_memory.h"

typedef struct amp_blocks {
    amp_memory *memory; /* NULL: nothing was begun */
    bool separate, placing;
    char *base; /* one allocation */
    size_t bytes, taken;
    void **each; /* separate ones */
    size_t count, given;
    amp_status status; /* of the first take that failed */
    amp_error error;
} amp_blocks;

void amp_blocks_begin(amp_blocks *blocks, amp_memory *memory, bool separate); /* keeps a reference to |memory| */
void *amp_blocks_take(amp_blocks *blocks, size_t bytes);
amp_status amp_blocks_allocate(amp_blocks *blocks, const amp_allocator *allocator, amp_error *err);
amp_status amp_blocks_end(const amp_blocks *blocks, amp_error *err); /* what a take ran into */
void amp_blocks_free(amp_blocks *blocks, const amp_allocator *allocator);

#endif
