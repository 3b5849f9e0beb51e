/* counted_allocator.c: see counted_allocator.h. */
#include "runtime/memory/counted_allocator.h"

#include "base/alloc.h"

static void *counted_alloc(void *user, size_t size, size_t align) {
    amp_counted_allocator *c = user;
    void *ptr = amp_alloc(&c->inner, size, align);
    if (ptr) c->bytes += size;
    return ptr;
}

static void counted_free(void *user, void *ptr, size_t size, size_t align) {
    amp_counted_allocator *c = user;
    c->bytes -= size;
    amp_free(&c->inner, ptr, size, align);
}

void amp_counted_allocator_init(amp_counted_allocator *c, const amp_allocator *inner) {
    *c = (amp_counted_allocator){.allocator = {.user = c, .alloc = counted_alloc, .free = counted_free},
                                 .inner = amp_allocator_or_default(inner)};
}
