/* counted_allocator.h: an allocator that knows how many bytes are out: what amp_session_memory reports is what was
 * allocated. */
#ifndef AMP_RUNTIME_MEMORY_COUNTED_ALLOCATOR_H
#define AMP_RUNTIME_MEMORY_COUNTED_ALLOCATOR_H

#include "amp/base.h"

typedef struct amp_counted_allocator {
    amp_allocator allocator; /* hand this one out; valid while the struct stays where it is */
    amp_allocator inner;
    uint64_t bytes;
} amp_counted_allocator;

void amp_counted_allocator_init(amp_counted_allocator *c, const amp_allocator *inner);

#endif
