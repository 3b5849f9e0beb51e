// alloc_test.cc: the replaceable allocator and checked sizes.
#include "base/alloc.h"

#include <gtest/gtest.h>

#include "tests/base/failing_allocator.h"

TEST(Alloc, DefaultHonoursAlignment) {
    for (size_t align = 1; align <= 4096; align *= 2) {
        for (size_t size : {size_t{1}, size_t{17}, size_t{4097}}) {
            void *p = amp_alloc_aligned(nullptr, size, align);
            ASSERT_NE(p, nullptr);
            EXPECT_EQ(reinterpret_cast<uintptr_t>(p) % align, 0u) << align;
            memset(p, 0xAB, size);
            amp_free_aligned(nullptr, p, size, align);
        }
    }
}

TEST(Alloc, ZeroedIsZero) {
    auto *p = static_cast<char *>(amp_alloc_zeroed_aligned(nullptr, 1000, 64));
    ASSERT_NE(p, nullptr);
    for (int i = 0; i < 1000; i++) EXPECT_EQ(p[i], 0);
    amp_free_aligned(nullptr, p, 1000, 64);
}

TEST(Alloc, SizeZeroIsNotOutOfMemory) {
    FailingAllocator counting;
    amp_allocator a = counting.get();
    void *p = amp_alloc(&a, 0), *q = amp_alloc(&a, 0);
    EXPECT_NE(p, nullptr);
    EXPECT_NE(p, q);
    amp_free(&a, p, 0);
    amp_free(&a, q, 0);
    amp_free(&a, nullptr, 0);
}

TEST(Alloc, EmptyAllocatorMeansDefault) {
    amp_allocator empty = {};
    EXPECT_NE(amp_allocator_or_default(&empty).alloc, nullptr);
    FailingAllocator counting;
    amp_allocator own = counting.get();
    EXPECT_EQ(amp_allocator_or_default(&own).user, &counting);
}

TEST(Alloc, ImpossibleSizesAreRefused) { EXPECT_EQ(amp_alloc_aligned(nullptr, SIZE_MAX - 8, 64), nullptr); }

TEST(Alloc, CheckedSizes) {
    size_t out = 7;
    EXPECT_TRUE(amp_size_mul(0, SIZE_MAX, &out));
    EXPECT_EQ(out, 0u);
    EXPECT_TRUE(amp_size_mul(SIZE_MAX / 3, 3, &out));
    EXPECT_FALSE(amp_size_mul(SIZE_MAX / 3 + 1, 3, &out));
    EXPECT_TRUE(amp_size_add(SIZE_MAX - 1, 1, &out));
    EXPECT_EQ(out, SIZE_MAX);
    EXPECT_FALSE(amp_size_add(SIZE_MAX, 1, &out));
}
