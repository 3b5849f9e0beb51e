// memory_test.cc: device memory, page-locked host memory, copies and fills: what is refused.
#include "fakecuda/driver/stand_in.h"

namespace {

class Memory : public StandIn {};

TEST_F(Memory, AllocationsAreCounted) {
    start({{"MEMORY", "1M"}});
    size_t before, after, total;
    OK(cu.mem_info(&before, &total));
    EXPECT_EQ(1u << 20, total);
    EXPECT_EQ(before, total);
    CuPointer p = alloc(1000), q;
    EXPECT_EQ(0u, p % 256);
    OK(cu.mem_info(&after, &total));
    EXPECT_LE(after, before - 1000);
    EXPECT_EQ(CU_OUT_OF_MEMORY, cu.mem_alloc(&q, 1 << 20));
    EXPECT_EQ(CU_INVALID_VALUE, cu.mem_alloc(&q, 0));
    EXPECT_EQ(CU_INVALID_VALUE, cu.mem_alloc(nullptr, 1));
    EXPECT_EQ(CU_INVALID_VALUE, cu.mem_free(p + 4));
    OK(cu.mem_free(p));
    EXPECT_EQ(CU_INVALID_VALUE, cu.mem_free(p));
    EXPECT_EQ(CU_INVALID_VALUE, cu.mem_free(0));
    OK(cu.mem_info(&after, &total));
    EXPECT_EQ(before, after);
    EXPECT_EQ(1, report().total("allocations"));
    EXPECT_GE(report().total("peak_bytes"), 1000);
    finish();
}

TEST_F(Memory, AddressesTellWhoseTheyAre) {
    start({{"DEVICES", "2"}});
    CuContext second, popped;
    OK(cu.primary_retain(&second, 1));
    OK(cu.context_push(second));
    CuPointer there = alloc(64);
    OK(cu.context_pop(&popped));
    CuPointer here = alloc(64), freed = alloc(64);
    OK(cu.mem_free(freed));
    uint32_t *page_locked = pinned(16);
    unsigned type = 0;
    int device = -1;
    for (CuPointer p : {here, here + 63, there + 63}) {
        OK(cu.pointer_attribute(&type, CU_POINTER_MEMORY_TYPE, p));
        EXPECT_EQ(static_cast<unsigned>(CU_MEMORY_DEVICE), type);
        OK(cu.pointer_attribute(&device, CU_POINTER_DEVICE_ORDINAL, p));
        EXPECT_EQ(p == there + 63, device);
    }
    OK(cu.pointer_attribute(&type, CU_POINTER_MEMORY_TYPE, reinterpret_cast<CuPointer>(page_locked + 15)));
    EXPECT_EQ(static_cast<unsigned>(CU_MEMORY_HOST), type);
    for (CuPointer p : {here + 64, freed, CuPointer{0}, reinterpret_cast<CuPointer>(&type)})
        EXPECT_EQ(CU_INVALID_VALUE, cu.pointer_attribute(&type, CU_POINTER_MEMORY_TYPE, p));
    EXPECT_EQ(CU_INVALID_VALUE, cu.pointer_attribute(&type, 1000, here));
    EXPECT_EQ(CU_INVALID_VALUE, cu.pointer_attribute(nullptr, CU_POINTER_MEMORY_TYPE, here));
    OK(cu.context_push(second));
    OK(cu.mem_free(there));
    OK(cu.context_pop(&popped));
    OK(cu.primary_release(1));
    OK(cu.mem_free(here));
    OK(cu.host_free(page_locked));
    finish();
    EXPECT_TRUE(report().lines("misuse").empty());
}

TEST_F(Memory, TheHostMayNotTouchIt) {
    start();
    CuPointer p = alloc(16);
    EXPECT_DEATH({ *reinterpret_cast<volatile int *>(p) = 1; }, "");
    OK(cu.mem_free(p));
    finish();
}

TEST_F(Memory, RangesAreChecked) {
    start();
    CuPointer p = alloc(64), freed = alloc(64);
    OK(cu.mem_free(freed));
    std::vector<char> host(128);
    EXPECT_EQ(CU_INVALID_VALUE, cu.copy_in(p, host.data(), 65, nullptr));
    EXPECT_EQ(CU_INVALID_VALUE, cu.copy_in(p + 1, host.data(), 64, nullptr));
    EXPECT_EQ(CU_INVALID_VALUE, cu.copy_out(host.data(), p + 64, 1, nullptr));
    EXPECT_EQ(CU_INVALID_VALUE, cu.copy_in(freed, host.data(), 4, nullptr));
    EXPECT_EQ(CU_INVALID_VALUE, cu.copy_in(reinterpret_cast<CuPointer>(host.data()), host.data(), 4, nullptr));
    EXPECT_EQ(CU_INVALID_VALUE, cu.copy_in(p, nullptr, 4, nullptr));
    EXPECT_EQ(CU_INVALID_VALUE, cu.copy_in(p, reinterpret_cast<void *>(p), 4, nullptr));
    EXPECT_EQ(CU_INVALID_VALUE, cu.copy(p, p + 4, 8, nullptr)); // overlaps
    EXPECT_EQ(CU_INVALID_VALUE, cu.fill32(p + 2, 0, 1, nullptr));
    EXPECT_EQ(CU_INVALID_VALUE, cu.fill32(p, 0, 17, nullptr));
    EXPECT_EQ(CU_INVALID_VALUE, cu.fill32(p, 0, SIZE_MAX / 2, nullptr));
    OK(cu.copy_in(p, host.data(), 0, nullptr));
    OK(cu.fill8(p, 0, 64, nullptr));
    OK(cu.mem_free(p));
    EXPECT_TRUE(report().mentions("misuse", "go past the end of an allocation of 64 bytes"));
    EXPECT_TRUE(report().mentions("misuse", "is device memory that was freed"));
    EXPECT_TRUE(report().mentions("misuse", "is device memory where host memory is meant"));
    EXPECT_TRUE(report().lines("faults").empty());
    finish();
}

TEST_F(Memory, CopiesAndFillsMoveBytes) {
    start();
    CuPointer p = alloc(64), q = alloc(64);
    CuStream s = stream();
    std::vector<uint32_t> in(16);
    for (uint32_t i = 0; i < 16; i++) in[i] = i * i;
    OK(cu.copy_in(p, in.data(), 64, s));
    OK(cu.copy(q, p, 64, s));
    OK(cu.fill32(q + 8, 0xabcd0123, 2, s));
    OK(cu.fill8(q + 16, 0x7f, 4, s));
    OK(cu.fill_lines(q + 26, 16, 0x5678, 1, 3, s)); // in words 6, 10 and 14 the upper half
    EXPECT_EQ(CU_INVALID_VALUE, cu.fill_lines(q + 26, 16, 0, 1, 4, s)) << "the fourth line is outside";
    EXPECT_EQ(CU_INVALID_VALUE, cu.fill_lines(q, 16, 0, 9, 2, s)) << "lines overlap";
    EXPECT_EQ(CU_INVALID_VALUE, cu.fill_lines(q + 1, 16, 0, 1, 1, s)) << "it is not aligned";
    std::vector<uint32_t> out = read(q, 16, s);
    in[2] = in[3] = 0xabcd0123;
    in[4] = 0x7f7f7f7f;
    for (size_t i : {6, 10, 14}) in[i] = 0x56780000 | in[i];
    EXPECT_EQ(in, out);
    Report r = report();
    EXPECT_EQ(64, r.total("bytes_host_to_device"));
    EXPECT_EQ(64, r.total("bytes_device_to_host"));
    EXPECT_EQ(64, r.total("bytes_device_to_device"));
    EXPECT_EQ(18, r.total("bytes_filled"));
    EXPECT_EQ(1, r.waits("cuMemcpyDtoHAsync_v2"));
    OK(cu.stream_destroy(s));
    OK(cu.mem_free(p));
    OK(cu.mem_free(q));
    finish();
    EXPECT_TRUE(report().lines("leaks").empty());
}

TEST_F(Memory, UninitialisedBytesAreAFault) {
    start();
    CuPointer p = alloc(64);
    std::vector<char> host(64);
    OK(cu.fill8(p, 1, 32, nullptr));
    EXPECT_EQ(CU_LAUNCH_FAILED, cu.copy_out(host.data(), p, 64, nullptr));
    EXPECT_EQ(1u, report().lines("faults").size());
    EXPECT_EQ(CU_LAUNCH_FAILED, cu.context_sync());
}

TEST_F(Memory, PageLocked) {
    start();
    void *h = nullptr;
    EXPECT_EQ(CU_INVALID_VALUE, cu.host_alloc(&h, 0, 0));
    EXPECT_EQ(CU_INVALID_VALUE, cu.host_alloc(&h, 16, 64));
    EXPECT_EQ(CU_INVALID_VALUE, cu.host_alloc(nullptr, 16, 0));
    EXPECT_EQ(CU_OUT_OF_MEMORY, cu.host_alloc(&h, SIZE_MAX - 1, 0));
    uint32_t *words = pinned(16);
    EXPECT_NE(0u, words[3]); // fresh memory need not be zero
    CuPointer p = alloc(4096);
    EXPECT_EQ(CU_INVALID_VALUE, cu.copy_in(p, words + 1, 64, nullptr));
    EXPECT_TRUE(report().mentions("misuse", "past the end of page-locked memory"));
    EXPECT_EQ(CU_INVALID_VALUE, cu.host_free(words + 1));
    EXPECT_EQ(CU_INVALID_VALUE, cu.host_free(nullptr));
    OK(cu.host_free(words));
    EXPECT_EQ(CU_INVALID_VALUE, cu.host_free(words));
    OK(cu.mem_free(p));
    finish();
}

} // namespace
