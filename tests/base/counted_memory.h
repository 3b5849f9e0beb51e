// counted_memory.h: an allocator that counts what is out.
#ifndef AMP_TESTS_BASE_COUNTED_MEMORY_H
#define AMP_TESTS_BASE_COUNTED_MEMORY_H

#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "amp/base.h"

struct Counter {
    size_t live = 0, most = 0, largest = 0; // bytes; |most|: that were live at once
    int64_t calls = 0;                      // allocations
    amp_allocator allocator() { return {this, Alloc, Free}; }

    static void *Alloc(void *self, size_t bytes, size_t align) {
        void *p = nullptr;
        if (posix_memalign(&p, std::max(align, sizeof p), std::max(bytes, size_t{1}))) return nullptr;
        auto counter = static_cast<Counter *>(self);
        counter->calls++;
        counter->live += bytes;
        counter->most = std::max(counter->most, counter->live);
        counter->largest = std::max(counter->largest, bytes);
        return p;
    }
    static void Free(void *self, void *p, size_t bytes, size_t) {
        if (p) static_cast<Counter *>(self)->live -= bytes;
        free(p);
    }
};

#endif
