// failing_allocator.h: an allocator that counts, checks that memory is given back as it was taken, overwrites what is,
// and can run out.
#ifndef AMP_TESTS_BASE_FAILING_ALLOCATOR_H
#define AMP_TESTS_BASE_FAILING_ALLOCATOR_H

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <utility>

#include "amp/base.h"

class FailingAllocator {
  public:
    // Fails the allocation number |fail_at| (from 0) and all that follow; -1: never.
    explicit FailingAllocator(int fail_at = -1) : fail_at_(fail_at) {}
    ~FailingAllocator() { EXPECT_TRUE(live_.empty()) << live_.size() << " allocations were not freed"; }

    amp_allocator get() { return {this, Alloc, Free}; }
    // From now on |more| allocations succeed; -1: all.
    void fail_after(int more) { fail_at_ = more < 0 ? -1 : calls_ + more; }
    int calls() const { return calls_; }
    size_t bytes_ever() const { return bytes_ever_; }

  private:
    static void *Alloc(void *user, size_t size, size_t align) {
        auto *self = static_cast<FailingAllocator *>(user);
        if (self->fail_at_ >= 0 && self->calls_ >= self->fail_at_) return nullptr;
        self->calls_++;
        self->bytes_ever_ += size;
        void *ptr = malloc(size);
        self->live_[ptr] = {size, align};
        return ptr;
    }

    static void Free(void *user, void *ptr, size_t size, size_t align) {
        auto *self = static_cast<FailingAllocator *>(user);
        auto found = self->live_.find(ptr);
        ASSERT_NE(found, self->live_.end()) << "freed what was never allocated";
        EXPECT_EQ(found->second, std::make_pair(size, align)) << "freed with another size or alignment";
        self->live_.erase(found);
        memset(ptr, 0xdb, size); // so that whoever still reads it gets nonsense
        free(ptr);
    }

    int fail_at_, calls_ = 0;
    size_t bytes_ever_ = 0;
    std::map<void *, std::pair<size_t, size_t>> live_;
};

#endif
