/* alloc.h: the allocator that callers may replace, one that counts, checked sizes. */
#ifndef AMP_BASE_ALLOC_H
#define AMP_BASE_ALLOC_H

#include <stdbool.h>
#include "amp/base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* |allocator| or, where it is NULL or empty, malloc and free. */
amp_allocator amp_allocator_or_default(const amp_allocator *allocator);

enum {
    AMP_ALIGN = 16
}; /* of what is allocated without an alignment of its own: any C type and any vector of 128 bits */

/* NULL when memory is out (also for size 0: returns a unique pointer or NULL, free either). */
void *amp_alloc(const amp_allocator *a, size_t size);
void *amp_alloc_zeroed(const amp_allocator *a, size_t size);
void amp_free(const amp_allocator *a, void *ptr, size_t size); /* NULL is a no-op */

/* With another alignment, a power of two. */
void *amp_alloc_aligned(const amp_allocator *a, size_t size, size_t align);
void *amp_alloc_zeroed_aligned(const amp_allocator *a, size_t size, size_t align);
void amp_free_aligned(const amp_allocator *a, void *ptr, size_t size, size_t align);

/* An allocator that knows how many bytes are out: what amp_session_get_memory reports is what was allocated. */
typedef struct amp_counted_allocator {
    amp_allocator allocator; /* hand this one out; valid while the struct stays where it is */
    amp_allocator inner;
    uint64_t bytes;
} amp_counted_allocator;

void amp_counted_allocator_init(amp_counted_allocator *c, const amp_allocator *inner);
/* Counts an allocation that is not made. */
void amp_counted_allocator_plan(amp_counted_allocator *c, size_t size);

/* false on overflow */
bool amp_size_mul(size_t a, size_t b, size_t *out);
bool amp_size_add(size_t a, size_t b, size_t *out);

#ifdef __cplusplus
}
#endif

#endif
