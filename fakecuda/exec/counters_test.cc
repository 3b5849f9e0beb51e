// Counters on access patterns whose cost is known.
#include <gtest/gtest.h>

#include <algorithm>

#include "fakecuda/exec/kernel.h"

namespace {

ExecCounters count(const std::string &body, Dim block = {32}, uint64_t room = 1 << 16) {
    Gpu gpu;
    gpu.load_body("ld.param.u64 %d0, [p0]; mov.u32 %r0, %tid.x;\n" + body);
    std::vector<uint8_t> zeros(room);
    Result r = gpu.launch({1}, block, {gpu.put(zeros), 0});
    EXPECT_EQ(r.fault, EXEC_OK) << r.message;
    return r.counters;
}

// Lane l loads |type| at l * stride.
ExecCounters load(const std::string &type, int stride) {
    return count("mul.wide.u32 %d1, %r0, " + std::to_string(stride) + "; add.s64 %d2, %d0, %d1; ld.global." + type +
                 ", [%d2]; ret;");
}

TEST(Counters, SectorsOfGlobalLoads) {
    ExecCounters c = load("u32 %r1", 4);
    EXPECT_EQ(c.global_loads, 1u);
    EXPECT_EQ(c.global_load_bytes, 128u);
    EXPECT_EQ(c.sectors, 4u);
    EXPECT_EQ(c.ideal_sectors, 4u);
    c = load("u32 %r1", 8); // every second word
    EXPECT_EQ(c.sectors, 8u);
    EXPECT_EQ(c.ideal_sectors, 4u);
    c = load("u32 %r1", 128); // a column
    EXPECT_EQ(c.sectors, 32u);
    EXPECT_EQ(c.ideal_sectors, 4u);
    c = load("u32 %r1", 0); // all the same
    EXPECT_EQ(c.sectors, 1u);
    EXPECT_EQ(c.ideal_sectors, 1u);
    c = load("v4.u32 {%r1,%r2,%r3,%r4}", 16);
    EXPECT_EQ(c.global_load_bytes, 512u);
    EXPECT_EQ(c.sectors, 16u);
    EXPECT_EQ(c.ideal_sectors, 16u);
    c = load("u16 %h1", 2);
    EXPECT_EQ(c.sectors, 2u);
}

TEST(Counters, StoresOfSomeLanes) {
    ExecCounters c = count("mul.wide.u32 %d1, %r0, 4; add.s64 %d2, %d0, %d1; setp.lt.u32 %p1, %r0, 9; @%p1 "
                           "st.global.u32 [%d2+4], %r0; ret;");
    EXPECT_EQ(c.global_stores, 1u);
    EXPECT_EQ(c.global_store_bytes, 36u);
    EXPECT_EQ(c.sectors, 2u);
    EXPECT_EQ(c.ideal_sectors, 2u);
    EXPECT_EQ(c.global_loads, 0u);
}

// Lane l stores at l * stride of shared memory.
uint64_t conflicts(const std::string &type, int stride, int mask = 31) {
    ExecCounters c =
        count(".shared .align 16 .b8 s[16384]; and.b32 %r1, %r0, " + std::to_string(mask) + "; mul.lo.s32 %r1, %r1, " +
              std::to_string(stride) + "; mov.u32 %r2, s; add.s32 %r2, %r2, %r1; st.shared." + type + "; ret;");
    EXPECT_EQ(c.shared_accesses, 1u);
    return c.bank_conflicts;
}

TEST(Counters, BankConflicts) {
    EXPECT_EQ(conflicts("u32 [%r2], 1", 4), 0u);
    EXPECT_EQ(conflicts("u32 [%r2], 1", 8), 1u);
    EXPECT_EQ(conflicts("u32 [%r2], 1", 128), 31u);
    EXPECT_EQ(conflicts("u32 [%r2], 1", 132), 0u); // padded
    EXPECT_EQ(conflicts("u32 [%r2], 1", 0), 0u);   // one word
    EXPECT_EQ(conflicts("u32 [%r2], 1", 4, 15), 0u);
    EXPECT_EQ(conflicts("u8 [%r2], 1", 1), 0u);
    EXPECT_EQ(conflicts("v2.u32 [%r2], {1,1}", 8), 0u);
    EXPECT_EQ(conflicts("v2.u32 [%r2], {1,1}", 16), 2u); // of each half
    EXPECT_EQ(conflicts("v4.u32 [%r2], {1,1,1,1}", 16), 0u);
    EXPECT_EQ(conflicts("v4.u32 [%r2], {1,1,1,1}", 32), 4u);
    EXPECT_EQ(conflicts("v4.u32 [%r2], {1,1,1,1}", 128), 28u);
}

// A 32 x 32 tile: written by rows, read by columns.
ExecCounters transpose(int pitch) {
    return count(
        ".shared .align 4 .b8 s[8192]; mov.u32 %r1, %tid.y; mov.u32 %r2, s; mul.lo.s32 %r3, %r1, " +
            std::to_string(pitch) + "; shl.b32 %r4, %r0, 2; add.s32 %r5, %r2, %r3; add.s32 %r5, %r5, %r4;\n" +
            "st.shared.u32 [%r5], %r0; bar.sync 0; mul.lo.s32 %r6, %r0, " + std::to_string(pitch) +
            "; shl.b32 %r7, %r1, 2; add.s32 %r8, %r2, %r6; add.s32 %r8, %r8, %r7; ld.shared.u32 %r9, [%r8]; ret;",
        {32, 32});
}

TEST(Counters, TransposedTileWithAndWithoutPadding) {
    EXPECT_EQ(transpose(128).bank_conflicts, 32u * 31);
    EXPECT_EQ(transpose(132).bank_conflicts, 0u);
    EXPECT_EQ(transpose(132).shared_accesses, 64u);
    EXPECT_EQ(transpose(132).barriers, 32u);
}

TEST(Counters, MatrixRows) {
    auto rows = [](int pitch) {
        return count(".shared .align 16 .b8 s[8192]; mov.u32 %r1, s; mad.lo.s32 %r2, %r0, " + std::to_string(pitch) +
                     ", %r1; st.shared.v4.u32 [%r2], {1,2,3,4}; bar.warp.sync -1; "
                     "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r4,%r5,%r6,%r7}, [%r2]; ret;");
    };
    EXPECT_EQ(rows(16).bank_conflicts, 0u);
    EXPECT_EQ(rows(80).bank_conflicts, 0u);
    EXPECT_EQ(rows(128).bank_conflicts, 2 * 28u); // of the stores and of the four matrices
}

TEST(Counters, InstructionsByKind) {
    ExecCounters c = count("cvt.rn.f32.u32 %f0, %r0; fma.rn.f32 %f1, %f0, %f0, %f0; add.rn.f32 %f2, %f1, %f0; "
                           "setp.lt.u32 %p1, %r0, 8; @%p1 mul.rn.f32 %f3, %f2, %f2; ret;",
                           {48});
    EXPECT_EQ(c.other_flops, 48u * 3 + 8);
    EXPECT_EQ(c.warp_instructions, 2u * 8);
    EXPECT_EQ(c.thread_instructions, 48u * 7 + 8);
    uint64_t sum = 0, f32 = 0;
    for (int k = 0; k < 16; k++) {
        sum += c.by_kind[k];
        if (exec_kind_names[k] && std::string(exec_kind_names[k]) == "f32") f32 = c.by_kind[k];
    }
    EXPECT_EQ(sum, c.thread_instructions);
    EXPECT_EQ(f32, 48u * 2 + 8);
    ExecCounters twice = c;
    exec_counters_add(&twice, &c);
    EXPECT_EQ(twice.thread_instructions, 2 * c.thread_instructions);
    EXPECT_EQ(twice.warps, 4u);
}

// Block b has 4 warps; the last one runs a loop b times: 4 instructions an iteration beside 6 of every warp.
TEST(Counters, LongestWarp) {
    for (int threads : {1, 2}) {
        Gpu gpu;
        gpu.threads = threads;
        gpu.load_body("mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x; mov.u32 %r2, 0; setp.lt.u32 %p1, %r0, 96;\n"
                      "@%p1 bra END; LOOP: setp.ge.u32 %p2, %r2, %r1; @%p2 bra END; add.s32 %r2, %r2, 1; bra LOOP; "
                      "END: ret;");
        Result r = gpu.launch({8}, {128}, {0, 0});
        ASSERT_EQ(r.fault, EXEC_OK) << r.message;
        EXPECT_EQ(r.counters.blocks, 8u);
        EXPECT_EQ(r.counters.warps, 32u);
        EXPECT_EQ(r.counters.longest_warp, 6u + 2 + 4 * 7);
        uint64_t turns = 0 + 1 + 2 + 3 + 4 + 5 + 6 + 7;
        EXPECT_EQ(r.counters.warp_instructions, 32u * 6 + 8 * 2 + 4 * turns);
        Result none = gpu.launch({1}, {128}, {0, 0});
        ExecCounters both = none.counters;
        exec_counters_add(&both, &r.counters);
        EXPECT_EQ(none.counters.longest_warp, 8u);
        EXPECT_EQ(both.longest_warp, 36u);
        EXPECT_EQ(both.blocks, 9u);
    }
}

TEST(Counters, TensorCores) {
    ExecCounters c = count("mov.f32 %f0, 0f00000000; mov.b32 %r1, 0; mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
                           "{%f0,%f0,%f0,%f0}, {%r1,%r1,%r1,%r1}, {%r1,%r1}, {%f0,%f0,%f0,%f0}; ret;");
    EXPECT_EQ(c.tensor_ops, 1u);
    EXPECT_EQ(c.tensor_flops, 2u * 16 * 8 * 16);
    EXPECT_EQ(c.other_flops, 0u);
}

TEST(Counters, AsynchronousBytes) {
    ExecCounters c =
        count(".shared .align 16 .b8 s[512]; mov.u32 %r1, s; mad.lo.s32 %r2, %r0, 16, %r1; mul.wide.u32 %d1, %r0, 16; "
              "add.s64 %d2, %d0, %d1; cp.async.cg.shared.global [%r2], [%d2], 16; cp.async.wait_all; ret;");
    EXPECT_EQ(c.async_bytes, 512u);
    EXPECT_EQ(c.sectors, 16u);
    EXPECT_EQ(c.bank_conflicts, 0u);
}

} // namespace
