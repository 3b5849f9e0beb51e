// Device memory: ranges, host copies, what was written.
#include <gtest/gtest.h>

#include "fakecuda/exec/kernel.h"

namespace {

struct Memory : ::testing::Test {
    ExecMemory *m = exec_memory_new(1 << 20);
    char why[256] = "";
    ~Memory() override { exec_memory_free(m); }
};

TEST_F(Memory, AllocationsAreAlignedApartAndCounted) {
    uint64_t a = exec_alloc(m, 100), b = exec_alloc(m, 1);
    ASSERT_NE(a, 0u);
    EXPECT_EQ(a % 512, 0u);
    EXPECT_NE(a % 1024, 0u) << "more aligned than promised hides errors";
    EXPECT_GE(b - a, 4096u);
    EXPECT_EQ(exec_bytes_in_use(m), 101u);
    EXPECT_TRUE(exec_release(m, a));
    EXPECT_FALSE(exec_release(m, a));
    EXPECT_FALSE(exec_release(m, b + 1));
    EXPECT_EQ(exec_bytes_in_use(m), 1u);
    uint64_t start, bytes;
    bool freed;
    ASSERT_TRUE(exec_range(m, a + 99, &start, &bytes, &freed));
    EXPECT_EQ(start, a);
    EXPECT_EQ(bytes, 100u);
    EXPECT_TRUE(freed);
    EXPECT_FALSE(exec_range(m, a + 100, &start, &bytes, &freed));
}

TEST_F(Memory, CapacityIsALimit) {
    EXPECT_EQ(exec_alloc(m, (1 << 20) + 1), 0u);
    uint64_t a = exec_alloc(m, 1 << 20);
    ASSERT_NE(a, 0u);
    EXPECT_EQ(exec_alloc(m, 1), 0u);
    EXPECT_TRUE(exec_release(m, a));
    EXPECT_NE(exec_alloc(m, 1), 0u);
}

TEST_F(Memory, CopiesStayInsideOneAllocation) {
    uint64_t a = exec_alloc(m, 16);
    char bytes[32] = "0123456789abcdef";
    EXPECT_TRUE(exec_write(m, a, bytes, 16, why));
    EXPECT_FALSE(exec_write(m, a + 8, bytes, 9, why));
    EXPECT_NE(std::string(why).find("1 of them past the end of an allocation of 16 bytes"), std::string::npos) << why;
    char back[16];
    EXPECT_TRUE(exec_read(m, a + 4, back, 12, why));
    EXPECT_EQ(std::string(back, 12), "456789abcdef");
    EXPECT_FALSE(exec_read(m, reinterpret_cast<uint64_t>(bytes), back, 4, why));
    EXPECT_NE(std::string(why).find("no address of the device"), std::string::npos) << why;
    exec_release(m, a);
    EXPECT_FALSE(exec_read(m, a, back, 4, why));
    EXPECT_NE(std::string(why).find("has been freed"), std::string::npos) << why;
}

TEST_F(Memory, UninitialisedBytesAreKnown) {
    uint64_t a = exec_alloc(m, 16), b = exec_alloc(m, 16);
    uint32_t value = 7, back[4];
    EXPECT_TRUE(exec_write(m, a + 4, &value, 4, why));
    EXPECT_FALSE(exec_read(m, a + 4, back, 5, why));
    EXPECT_NE(std::string(why).find("byte 4 of them was never written"), std::string::npos) << why;
    EXPECT_TRUE(exec_copy(m, b, a, 16, why)) << why;
    EXPECT_TRUE(exec_read(m, b + 4, back, 4, why));
    EXPECT_EQ(back[0], 7u);
    EXPECT_FALSE(exec_read(m, b, back, 4, why));
    EXPECT_TRUE(exec_fill(m, b, 0x01020304, 4, 4, why));
    EXPECT_TRUE(exec_read(m, b, back, 16, why));
    EXPECT_EQ(back[3], 0x01020304u);
    EXPECT_FALSE(exec_fill(m, b, 0, 4, 5, why));
    EXPECT_FALSE(exec_fill(m, b + 2, 0, 4, 1, why));
    EXPECT_FALSE(exec_fill(m, b, 0, 3, 1, why));
}

TEST_F(Memory, TheHostCannotTouchIt) {
    uint64_t a = exec_alloc(m, 16);
    EXPECT_DEATH(*reinterpret_cast<volatile char *>(a) = 1, "");
}

} // namespace
