/* alloc.c: see alloc.h. */
#include "base/alloc.h"

#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

static void *system_alloc(void *user, size_t size, size_t align) {
    (void)user;
    if (align <= alignof(max_align_t)) return malloc(size);
    /* aligned_alloc wants a multiple of the alignment (C11 7.22.3.1). */
    size_t padded;
    if (!amp_size_add(size, align - 1, &padded)) return NULL;
    return aligned_alloc(align, padded & ~(align - 1));
}

static void system_free(void *user, void *ptr, size_t size, size_t align) {
    (void)user, (void)size, (void)align;
    free(ptr);
}

amp_allocator amp_allocator_or_default(const amp_allocator *allocator) {
    if (allocator && allocator->alloc) return *allocator;
    return (amp_allocator){.alloc = system_alloc, .free = system_free};
}

/* NULL always means that memory is out, so size 0 asks for one byte; amp_free says the same size. */
static size_t at_least_one(size_t size) { return size ? size : 1; }

void *amp_alloc_aligned(const amp_allocator *a, size_t size, size_t align) {
    amp_allocator allocator = amp_allocator_or_default(a);
    return allocator.alloc(allocator.user, at_least_one(size), align);
}

void *amp_alloc_zeroed_aligned(const amp_allocator *a, size_t size, size_t align) {
    void *ptr = amp_alloc_aligned(a, size, align);
    return ptr ? memset(ptr, 0, at_least_one(size)) : NULL;
}

void amp_free_aligned(const amp_allocator *a, void *ptr, size_t size, size_t align) {
    amp_allocator allocator = amp_allocator_or_default(a);
    if (ptr && allocator.free) allocator.free(allocator.user, ptr, at_least_one(size), align);
}

void *amp_alloc(const amp_allocator *a, size_t size) { return amp_alloc_aligned(a, size, AMP_ALIGN); }

void *amp_alloc_zeroed(const amp_allocator *a, size_t size) { return amp_alloc_zeroed_aligned(a, size, AMP_ALIGN); }

void amp_free(const amp_allocator *a, void *ptr, size_t size) { amp_free_aligned(a, ptr, size, AMP_ALIGN); }

/* ---- counting ---------------------------------------------------------------------------------------------------- */

static void *counted_alloc(void *user, size_t size, size_t align) {
    amp_counted_allocator *c = user;
    void *ptr = amp_alloc_aligned(&c->inner, size, align);
    if (ptr) c->bytes += size;
    return ptr;
}

static void counted_free(void *user, void *ptr, size_t size, size_t align) {
    amp_counted_allocator *c = user;
    c->bytes -= size;
    amp_free_aligned(&c->inner, ptr, size, align);
}

void amp_counted_allocator_init(amp_counted_allocator *c, const amp_allocator *inner) {
    *c = (amp_counted_allocator){.allocator = {.user = c, .alloc = counted_alloc, .free = counted_free},
                                 .inner = amp_allocator_or_default(inner)};
}

/* ---- sizes ------------------------------------------------------------------------------------------------------- */

bool amp_size_mul(size_t a, size_t b, size_t *out) {
    if (b && a > SIZE_MAX / b) return false;
    *out = a * b;
    return true;
}

bool amp_size_add(size_t a, size_t b, size_t *out) {
    if (a > SIZE_MAX - b) return false;
    *out = a + b;
    return true;
}
