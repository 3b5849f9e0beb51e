/* device_memory.h: the memory of a device that has memory of its own.  NULL is the host's, which needs none of this. */
#ifndef AMP_RUNTIME_MEMORY_DEVICE_MEMORY_H
#define AMP_RUNTIME_MEMORY_DEVICE_MEMORY_H

#include <stdatomic.h>
#include <stdbool.h>

#include "amp/base.h"

typedef struct amp_device_memory amp_device_memory;

/* |bytes| from one place of a memory to another: f32 become to + t (from - to), each operation rounded. */
typedef struct amp_memory_blend {
    void *to;
    const void *from;
    size_t bytes;
    bool copies; /* whatever they are, as they are */
} amp_memory_blend;

typedef struct amp_device_memory_type {
    void (*destroy)(amp_device_memory *memory);
    /* At least AMP_DEVICE_MEMORY_ALIGN aligned, with any content.  After a fatal error of the device release is a
     * no-op. */
    amp_status (*allocate)(amp_device_memory *memory, size_t bytes, void **out, amp_error *err);
    void (*release)(amp_device_memory *memory, void *address);
    amp_status (*clear)(amp_device_memory *memory, void *address, size_t bytes, amp_error *err); /* to zeros */
    /* These wait for runs that write params here, and return when the copy is done. */
    amp_status (*copy_in)(amp_device_memory *memory, void *to, const void *from, size_t bytes, amp_error *err);
    amp_status (*copy_out)(amp_device_memory *memory, void *to, const void *from, size_t bytes, amp_error *err);
    /* Whether an address of one is an address of the other. */
    bool (*same)(const amp_device_memory *a, const amp_device_memory *b);
    /* Waits for runs that write params here or in |other|, which is the same memory, and returns when all is done. */
    amp_status (*blend)(amp_device_memory *memory, const amp_device_memory *other, const amp_memory_blend *list,
                        int32_t count, float t, amp_error *err);
} amp_device_memory_type;

struct amp_device_memory { /* the head of every such memory */
    const amp_device_memory_type *type;
    atomic_int references;
    char name[112]; /* "cuda:0 (NVIDIA ...)" */
};

enum { AMP_DEVICE_MEMORY_ALIGN = 256 };

void amp_device_memory_retain(amp_device_memory *memory); /* NULL is a no-op */
void amp_device_memory_release(amp_device_memory *memory);
bool amp_device_memory_same(const amp_device_memory *a, const amp_device_memory *b);
const char *amp_device_memory_name(const amp_device_memory *memory); /* "the host's memory" for NULL */

/* ---- arenas
 * ----------------------------------------------------------------------------------------------------------
 *
 * Addresses in device memory: all in one allocation, or each in one of its own so that an overrun is seen.  The same
 * calls of amp_device_arena_take are made twice: first they count (and give NULL), then, after
 * amp_device_arena_allocate, they give addresses. */

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
