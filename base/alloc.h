/* alloc.h: the allocator that callers may replace, checked sizes. */
#ifndef AMP_BASE_ALLOC_H
#define AMP_BASE_ALLOC_H

#include <stdbool.h>
#include "amp/base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* |allocator| or, where it is NULL or empty, malloc and free. */
amp_allocator amp_allocator_or_default(const amp_allocator *allocator);

/* NULL when memory is out (also for size 0: returns a unique pointer or NULL, free either). */
void *amp_alloc(const amp_allocator *a, size_t size, size_t align);
void *amp_alloc_zeroed(const amp_allocator *a, size_t size, size_t align);
void amp_free(const amp_allocator *a, void *ptr, size_t size, size_t align); /* NULL is a no-op */

/* false on overflow */
bool amp_size_mul(size_t a, size_t b, size_t *out);
bool amp_size_add(size_t a, size_t b, size_t *out);

#ifdef __cplusplus
}
#endif

#endif
