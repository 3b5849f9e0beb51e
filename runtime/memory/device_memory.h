/* device_memory.h: the memory of a device that has some of its own.  NULL stands for the host's, which needs none of this. */
#ifndef AMP_RUNTIME_MEMORY_DEVICE_MEMORY_H
#define AMP_RUNTIME_MEMORY_DEVICE_MEMORY_H

#include <stdatomic.h>
#include <stdbool.h>

#include "amp/base.h"

typedef struct amp_memory amp_memory;

typedef struct amp_memory_type {
    void (*destroy)(amp_memory *memory);
    /* At least AMP_OWN_MEMORY_ALIGN aligned, with any content.  After a fatal error of the device release is a no-op. */
    amp_status (*allocate)(amp_memory *memory, size_t bytes, void **out, amp_error *err);
    void (*release)(amp_memory *memory, void *address);
    amp_status (*clear)(amp_memory *memory, void *address, size_t bytes, amp_error *err); /* to zeros */
    /* These wait for runs that write params here, and return when the copy is done. */
    amp_status (*copy_in)(amp_memory *memory, void *to, const void *from, size_t bytes, amp_error *err);
    amp_status (*copy_out)(amp_memory *memory, void *to, const void *from, size_t bytes, amp_error *err);
    /* Whether an address of one is an address of the other. */
    bool (*same)(const amp_memory *a, const amp_memory *b);
} amp_memory_type;

struct amp_memory { /* the head of every such memory */
    const amp_memory_type *type;
    atomic_int references;
    char name[112]; /* "cuda:0 (NVIDIA ...)" */
};

enum { AMP_OWN_MEMORY_ALIGN = 256 };

void amp_memory_retain(amp_memory *memory); /* NULL is a no-op */
void amp_memory_release(amp_memory *memory);
bool amp_memory_same(const amp_memory *a, const amp_memory *b);
const char *amp_memory_name(const amp_memory *memory); /* "the host's memory" for NULL */

#endif
