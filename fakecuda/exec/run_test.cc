// Kernels that are right: branches, calls, spaces, widths, special registers; the same for every seed and number of
// host threads.
#include <gtest/gtest.h>

#include <cstring>

#include "fakecuda/exec/kernel.h"

namespace {

// %r3 = index of the thread, %d3 = p0 + 4 * index, %d4 = p1 + 4 * index
const std::string kIndex =
    "ld.param.u64 %d0, [p0]; ld.param.u64 %d1, [p1];\n"
    "mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mad.lo.s32 %r3, %r1, %r2, %r0;\n"
    "mul.wide.u32 %d2, %r3, 4; add.s64 %d3, %d0, %d2; add.s64 %d4, %d1, %d2;\n";

std::vector<uint32_t> run(const std::string &body, uint32_t threads, const std::vector<uint32_t> &in = {0},
                          uint32_t blocks = 1, int arch = 80) {
    std::vector<uint32_t> first;
    for (uint64_t seed = 1; seed <= 3; seed++) {
        Gpu gpu(arch);
        gpu.seed = seed;
        gpu.load_body(kIndex + body);
        uint64_t out = gpu.room(4 * threads * blocks);
        Result r = gpu.launch({blocks}, {threads}, {gpu.put(in), out});
        EXPECT_EQ(r.fault, EXEC_OK) << r.message;
        if (r.fault) return std::vector<uint32_t>(threads * blocks);
        std::vector<uint32_t> v = gpu.get<uint32_t>(out, threads * blocks);
        if (seed == 1) first = v;
        EXPECT_EQ(v, first) << "seed " << seed;
    }
    return first;
}

TEST(Kernels, CopyAndAdd) {
    std::vector<float> in(256);
    for (int i = 0; i < 256; i++) in[i] = 0.5f * static_cast<float>(i);
    std::vector<uint32_t> bits(256);
    memcpy(bits.data(), in.data(), 1024);
    std::vector<uint32_t> out =
        run("ld.global.f32 %f0, [%d3]; add.rn.f32 %f1, %f0, 0f3F800000; st.global.f32 [%d4], %f1; ret;", 64, bits, 4);
    for (int i = 0; i < 256; i++) {
        float f;
        memcpy(&f, &out[i], 4);
        ASSERT_EQ(f, in[i] + 1);
    }
}

// Collatz steps: every lane loops a different number of times, with a branch inside.
TEST(Kernels, DivergentLoop) {
    std::vector<uint32_t> out = run("add.s32 %r4, %r3, 1; mov.u32 %r5, 0;\n"
                                    "LOOP: setp.eq.u32 %p1, %r4, 1; @%p1 bra DONE; add.s32 %r5, %r5, 1; and.b32 %r6, "
                                    "%r4, 1; setp.eq.u32 %p2, %r6, 0; @%p2 bra EVEN;\n"
                                    "mad.lo.s32 %r4, %r4, 3, 1; bra LOOP; EVEN: shr.u32 %r4, %r4, 1; bra LOOP;\n"
                                    "DONE: st.global.u32 [%d4], %r5; ret;",
                                    96);
    for (uint32_t i = 0; i < 96; i++) {
        uint32_t steps = 0;
        for (uint32_t n = i + 1; n != 1; steps++) n = n % 2 ? 3 * n + 1 : n / 2;
        ASSERT_EQ(out[i], steps) << i;
    }
}

// After a branch the lanes are together again: activemask says so.
TEST(Kernels, LanesMeetAgainBehindABranch) {
    std::vector<uint32_t> out = run("and.b32 %r4, %r0, 3; setp.eq.u32 %p1, %r4, 0; @%p1 bra A; setp.eq.u32 %p2, %r4, "
                                    "1; @%p2 bra B; mov.u32 %r5, 100; bra END;\n"
                                    "A: mov.u32 %r5, 200; bra END; B: activemask.b32 %r5; END: activemask.b32 %r6; "
                                    "setp.eq.u32 %p3, %r6, 0xffffffff;\n"
                                    "@!%p3 mov.u32 %r5, 0; st.global.u32 [%d4], %r5; ret;",
                                    32);
    for (uint32_t i = 0; i < 32; i++) ASSERT_EQ(out[i], i % 4 == 0 ? 200 : i % 4 == 1 ? 0x22222222u : 100) << i;
}

// The two halves wait for each other: one must not run to its end first.
TEST(Kernels, LanesOfAWarpMakeProgress) {
    std::vector<uint32_t> out = run(".shared .align 4 .b8 flag[4]; setp.eq.u32 %p1, %r0, 0; @%p1 "
                                    "st.volatile.shared.u32 [flag], 0; bar.warp.sync -1; @%p1 bra WAIT;\n"
                                    "st.volatile.shared.u32 [flag], 1; mov.u32 %r5, 1; bra END;\n"
                                    "WAIT: ld.volatile.shared.u32 %r5, [flag]; setp.eq.u32 %p2, %r5, 0; @%p2 bra WAIT; "
                                    "END: st.global.u32 [%d4], %r5; ret;",
                                    32);
    EXPECT_EQ(out, std::vector<uint32_t>(32, 1));
}

// Lanes of two branches meet at one bar.warp.sync-like instruction in a loop, at different iterations of their own.
TEST(Kernels, EarlyExitsDoNotHoldTheOthers) {
    std::vector<uint32_t> out = run("st.global.u32 [%d4], 7; setp.lt.u32 %p1, %r0, 5; @%p1 bra OUT; "
                                    "vote.sync.ballot.b32 %r5, %p1, 0xffffffe0; not.b32 %r5, %r5;\n"
                                    "st.global.u32 [%d4], %r5; OUT: ret;",
                                    32);
    for (uint32_t i = 0; i < 32; i++) ASSERT_EQ(out[i], i < 5 ? 7 : 0xffffffffu);
}

TEST(Kernels, IndirectBranch) {
    std::vector<uint32_t> out =
        run("and.b32 %r4, %r0, 3; ts: .branchtargets A, B, C, D; brx.idx %r4, ts;\n"
            "A: mov.u32 %r5, 10; bra END; B: mov.u32 %r5, 11; bra END; C: mov.u32 %r5, 12; bra END; D: mov.u32 %r5, "
            "13; bra END;\n"
            "END: activemask.b32 %r6; setp.ne.u32 %p1, %r6, -1; @%p1 mov.u32 %r5, 0; st.global.u32 [%d4], %r5; ret;",
            32);
    for (uint32_t i = 0; i < 32; i++) ASSERT_EQ(out[i], 10 + i % 4) << i;
}

// ---- calls

const std::string kFactorial =
    ".visible .func (.param .b32 result) factorial(.param .b32 n)\n"
    "{ .reg .pred %p<3>; .reg .b32 %r<8>; .local .align 4 .b8 keep[4]; .reg .b64 %d<2>;\n"
    "ld.param.u32 %r1, [n]; mov.u64 %d0, keep; st.local.u32 [%d0], %r1; setp.gt.u32 %p1, %r1, 1; @%p1 bra MORE; "
    "st.param.b32 [result+0], 1; ret;\n"
    "MORE: sub.s32 %r2, %r1, 1; { .param .b32 param0; st.param.b32 [param0+0], %r2; .param .b32 retval0;\n"
    "call.uni (retval0), factorial, (param0); ld.param.b32 %r3, [retval0+0]; }\n"
    "ld.local.u32 %r5, [%d0]; mul.lo.s32 %r4, %r3, %r5; st.param.b32 [result+0], %r4; ret; }\n";

TEST(Kernels, RecursionOfDivergentLanes) {
    Gpu gpu;
    gpu.load(
        module_text(kFactorial + kernel(kIndex + "rem.u32 %r4, %r0, 11; { .param .b32 param0; st.param.b32 [param0+0], "
                                                 "%r4; .param .b32 retval0; call (retval0), factorial, (param0); "
                                                 "ld.param.b32 %r5, [retval0+0]; } activemask.b32 %r6; setp.ne.u32 "
                                                 "%p1, %r6, -1; @%p1 mov.u32 %r5, 0; st.global.u32 [%d4], %r5; ret;"),
                    80));
    uint64_t out = gpu.room(256);
    Result r = gpu.launch({1}, {64}, {0, out});
    ASSERT_EQ(r.fault, EXEC_OK) << r.message;
    std::vector<uint32_t> v = gpu.get<uint32_t>(out, 64);
    for (uint32_t i = 0; i < 64; i++) {
        uint32_t f = 1;
        for (uint32_t k = 2; k <= i % 11; k++) f *= k;
        ASSERT_EQ(v[i], f) << i;
    }
    gpu.load(module_text(kFactorial + kernel(kIndex + "{ .param .b32 param0; st.param.b32 [param0+0], 100000; .param "
                                                      ".b32 retval0; call (retval0), factorial, (param0); } ret;"),
                         80));
    r = gpu.launch({1}, {1}, {0, out});
    EXPECT_EQ(r.fault, EXEC_ILLEGAL_ADDRESS);
    EXPECT_NE(r.message.find("stack overflow"), std::string::npos) << r.message;
}

TEST(Kernels, IndirectCallsOfDifferentFunctions) {
    std::string functions;
    for (int k = 0; k < 2; k++)
        functions += ".visible .func (.param .b32 r) f" + std::to_string(k) +
                     "(.param .b32 x) { .reg .b32 %r<4>; ld.param.b32 %r0, [x]; mad.lo.s32 %r1, %r0, 10, " +
                     std::to_string(k) + "; st.param.b32 [r], %r1; ret; }\n";
    functions += ".global .align 8 .u64 table[2] = {f0, f1};\n";
    Gpu gpu;
    gpu.load(
        module_text(functions + kernel(kIndex + "and.b32 %r4, %r0, 1; mul.wide.u32 %d5, %r4, 8; mov.u64 %d6, table; "
                                                "add.s64 %d5, %d5, %d6; ld.global.u64 %d7, [%d5];\n"
                                                "{ .param .b32 param0; st.param.b32 [param0+0], %r0; .param .b32 "
                                                "retval0; proto: .callprototype (.param .b32 _) _ (.param .b32 _);\n"
                                                "call (retval0), %d7, (param0), proto; ld.param.b32 %r5, [retval0+0]; "
                                                "} st.global.u32 [%d4], %r5; ret;"),
                    80));
    uint64_t out = gpu.room(128);
    Result r = gpu.launch({1}, {32}, {0, out});
    ASSERT_EQ(r.fault, EXEC_OK) << r.message;
    std::vector<uint32_t> v = gpu.get<uint32_t>(out, 32);
    for (uint32_t i = 0; i < 32; i++) ASSERT_EQ(v[i], 10 * i + i % 2);
}

// ---- spaces and widths

TEST(Kernels, NarrowLoadsAndWideRegisters) {
    std::vector<uint32_t> in = {0x8180ff7fu};
    std::vector<uint32_t> out =
        run("ld.global.s8 %h1, [%d0+1]; cvt.s32.s16 %r4, %h1;\n"                        // -1
            "ld.global.s8 %r5, [%d0+2]; add.s32 %r4, %r4, %r5;\n"                       // + -128
            "ld.global.u8 %d5, [%d0+3]; cvt.u32.u64 %r6, %d5; add.s32 %r4, %r4, %r6;\n" // + 0x81
            "ld.global.s16 %d6, [%d0+2]; st.global.u16 [%d4+2], %d6; st.global.u16 [%d4], %r4; ret;",
            1, in);
    EXPECT_EQ(out[0], 0x81800000u); // -1 - 128 + 129 = 0
}

TEST(Kernels, GenericAddresses) {
    std::vector<uint32_t> out =
        run(".shared .align 8 .b8 s[512]; .local .align 8 .b8 l[8]; mov.u64 %d5, s; cvta.shared.u64 %d6, %d5; "
            "cvt.u64.u32 %d7, %r0; shl.b64 %d7, %d7, 3; add.s64 %d6, %d6, %d7;\n"
            "st.u32 [%d6], %r0; mov.u64 %d8, l; cvta.local.u64 %d9, %d8; ld.u32 %r4, [%d6]; add.s32 %r4, %r4, 1; "
            "st.u32 [%d9+4], %r4; ld.local.u32 %r5, [%d8+4];\n"
            "isspacep.shared %p1, %d6; isspacep.local %p2, %d9; isspacep.global %p3, %d4; isspacep.shared %p4, %d4; "
            "not.pred %p4, %p4;\n"
            "and.pred %p1, %p1, %p2; and.pred %p1, %p1, %p3; and.pred %p1, %p1, %p4; selp.b32 %r6, %r5, 0, %p1; "
            "cvta.to.shared.u64 %d10, %d6; ld.shared.u32 %r7, [%d10];\n"
            "add.s32 %r6, %r6, %r7; cvta.to.global.u64 %d11, %d4; st.global.u32 [%d11], %r6; ret;",
            64);
    for (uint32_t i = 0; i < 64; i++) ASSERT_EQ(out[i], 2 * i + 1);
}

TEST(Kernels, VectorsPackAndUnpack) {
    std::vector<uint32_t> out = run(
        "ld.global.v4.u32 {%r4,_,%r6,%r7}, [%d0]; mov.b64 %d5, {%r4,%r6}; mov.b64 {%r8,%r9}, %d5; mov.b32 {%h1,%h2}, "
        "%r7; mov.b32 %r10, {%h2,%h1};\n"
        "sub.s32 %r11, %r9, %r8; st.global.v2.u32 [%d1], {%r11,%r10}; st.global.v2.b32 [%d1+8], {7, 0f3F800000}; ret;",
        4, {1, 2, 3, 0x00050006});
    EXPECT_EQ(out, (std::vector<uint32_t>{2, 0x00060005, 7, 0x3f800000}));
}

TEST(Kernels, ConstantsAndVariablesOfTheModule) {
    Gpu gpu;
    gpu.load(module_text(".const .align 4 .b8 table[8] = {1,0,0,0,2};\n.global .align 4 .u32 counter = 40;\n.global "
                         ".align 8 .u64 where = generic(counter);\n" +
                             kernel(kIndex + "ld.const.u32 %r4, [table+4]; mov.u64 %d5, where; ld.global.u64 %d6, "
                                             "[%d5]; atom.add.u32 %r5, [%d6], %r4; st.global.u32 [%d4], %r5; ret;"),
                         80));
    uint64_t out = gpu.room(4), bytes = 0;
    Result r = gpu.launch({1}, {1}, {0, out});
    ASSERT_EQ(r.fault, EXEC_OK) << r.message;
    EXPECT_EQ(gpu.get<uint32_t>(out, 1)[0], 40u);
    uint64_t counter = exec_module_variable(gpu.module, "counter", &bytes);
    EXPECT_EQ(bytes, 4u);
    EXPECT_EQ(gpu.get<uint32_t>(counter, 1)[0], 42u);
    EXPECT_EQ(exec_module_variable(gpu.module, "missing", nullptr), 0u);
}

TEST(Kernels, ParametersOfAllTypes) {
    Gpu gpu;
    gpu.load(module_text(".visible .entry k(.param .u64 p, .param .f32 f, .param .align 8 .b8 s[24], .param .u8 c) { "
                         ".reg .b32 %r<8>; .reg .b64 %d<8>; .reg .f32 %f<4>; .reg .b16 %h<2>;\n"
                         "ld.param.u64 %d0, [p]; ld.param.f32 %f0, [f]; mov.b64 %d1, s; ld.param.u32 %r0, [%d1+8]; "
                         "ld.param.v2.u32 {%r1,%r2}, [s+16]; ld.param.s8 %h0, [c]; cvt.s32.s16 %r3, %h0;\n"
                         "st.global.v4.b32 [%d0], {%f0, %r0, %r2, %r3}; ret; }",
                         80));
    struct {
        uint64_t p;
        float f;
        uint32_t pad, s[6];
        int8_t c;
    } params = {gpu.room(512), 1.5f, 0, {1, 2, 3, 4, 5, 6}, -9};
    ExecKernelInfo info;
    ASSERT_TRUE(exec_kernel_info(gpu.module, "k", &info));
    EXPECT_EQ(info.param_bytes, 41);
    std::vector<uint64_t> packed(sizeof params / 8);
    memcpy(packed.data(), &params, sizeof params);
    ASSERT_NE(params.p % 1024, 0u);
    Result r = gpu.launch({1}, {1}, packed);
    ASSERT_EQ(r.fault, EXEC_OK) << r.message;
    EXPECT_EQ(gpu.get<uint32_t>(params.p, 4), (std::vector<uint32_t>{0x3fc00000, 3, 6, static_cast<uint32_t>(-9)}));
}

TEST(Kernels, SpecialRegisters) {
    Gpu gpu;
    gpu.load_body("ld.param.u64 %d0, [p0]; mov.u32 %r0, %tid.x; mov.u32 %r1, %tid.y; mov.u32 %r2, %tid.z; mov.u32 %r3, "
                  "%ntid.x; mov.u32 %r4, %ntid.y; mad.lo.s32 %r5, %r2, %r4, %r1; mad.lo.s32 %r5, %r5, %r3, %r0;\n"
                  "mov.u32 %r6, %laneid; mov.u32 %r7, %warpid; shl.b32 %r7, %r7, 5; add.s32 %r7, %r7, %r6; sub.s32 "
                  "%r8, %r7, %r5; mov.u32 %r9, %lanemask_lt; popc.b32 %r10, %r9; sub.s32 %r10, %r10, %r6;\n"
                  "or.b32 %r8, %r8, %r10; mov.u32 %r11, %ctaid.y; mov.u32 %r12, %nctaid.y; mad.lo.s32 %r8, %r11, %r12, "
                  "%r8; mul.wide.u32 %d2, %r5, 4; add.s64 %d3, %d0, %d2;\n"
                  "mov.u32 %r13, %ctaid.x; mul.wide.u32 %d4, %r13, 240; add.s64 %d3, %d3, %d4; mul.wide.u32 %d4, %r11, "
                  "480; add.s64 %d3, %d3, %d4; st.global.u32 [%d3], %r8; ret;",
                  1);
    uint64_t out = gpu.room(240 * 6);
    Result r = gpu.launch({2, 3}, {5, 3, 4}, {out});
    ASSERT_EQ(r.fault, EXEC_OK) << r.message;
    std::vector<uint32_t> v = gpu.get<uint32_t>(out, 360);
    for (uint32_t i = 0; i < 360; i++) ASSERT_EQ(v[i], i / 120 * 3) << i;
}

TEST(Kernels, DynamicSharedMemoryComesBehindTheStatic) {
    Gpu gpu;
    gpu.load(module_text(".extern .shared .align 128 .b8 dyn[];\n" +
                             kernel(".shared .align 4 .b8 s[20]; mov.u32 %r0, %tid.x; mov.u64 %d0, dyn; mov.u64 %d1, "
                                    "s; sub.s64 %d2, %d0, %d1; ld.param.u64 %d3, [p0];\n"
                                    "st.shared.u32 [s+16], 1; st.shared.u32 [dyn], 2; ld.shared.u32 %r1, [s+16]; "
                                    "mov.u32 %r2, %dynamic_smem_size; st.global.u64 [%d3], %d2; "
                                    "st.global.u32 [%d3+8], %r1; st.global.u32 [%d3+12], %r2; ret;"),
                         80));
    uint64_t out = gpu.room(16);
    Result r = gpu.launch({1}, {1}, {out, 0}, 256);
    ASSERT_EQ(r.fault, EXEC_OK) << r.message;
    EXPECT_EQ(gpu.get<uint32_t>(out, 4), (std::vector<uint32_t>{128, 0, 1, 256}));
    ExecKernelInfo info;
    ASSERT_TRUE(exec_kernel_info(gpu.module, "k", &info));
    EXPECT_EQ(info.static_shared, 20);
}

TEST(Kernels, InfoOfAKernel) {
    Gpu gpu;
    gpu.load(module_text(".visible .entry k(.param .u64 p) .maxntid 128, 2, 1 { .local .align 8 .b8 l[40]; .reg .b32 "
                         "%r<8>; .reg .b64 %d<4>;\n"
                         "ld.param.u64 %d0, [p]; ld.global.v4.u32 {%r0,%r1,%r2,%r3}, [%d0]; st.global.v4.u32 [%d0+16], "
                         "{%r3,%r2,%r1,%r0}; ret; }",
                         80));
    ExecKernelInfo info;
    ASSERT_TRUE(exec_kernel_info(gpu.module, "k", &info));
    EXPECT_EQ(info.max_threads, 256);
    EXPECT_EQ(info.registers, 6); // four numbers and an address
    EXPECT_EQ(info.local_bytes, 48);
    EXPECT_FALSE(exec_kernel_info(gpu.module, "other", &info));
    EXPECT_NE(gpu.load_error(module_text("", 90)).find("cannot run on sm_80"), std::string::npos);
    EXPECT_NE(gpu.load_error("this is no PTX").find("ptx:1:1"), std::string::npos);
}

// A block sum in shared memory, then one atomic per block.
TEST(Kernels, SameResultsAndCountersForAllSeedsAndThreads) {
    std::string body =
        kIndex +
        ".shared .align 4 .b8 s[512]; ld.global.u32 %r4, [%d3]; mov.u32 %r5, s; shl.b32 %r6, %r0, 2; add.s32 %r5, %r5, "
        "%r6; st.shared.u32 [%r5], %r4; mov.u32 %r7, 64;\n"
        "LOOP: bar.sync 0; setp.ge.u32 %p1, %r0, %r7; @%p1 bra NEXT; shl.b32 %r8, %r7, 2; add.s32 %r9, %r5, %r8; "
        "ld.shared.u32 %r10, [%r9]; ld.shared.u32 %r11, [%r5]; add.s32 %r10, %r10, %r11;\n"
        "st.shared.u32 [%r5], %r10; NEXT: shr.u32 %r7, %r7, 1; setp.ne.u32 %p2, %r7, 0; @%p2 bra LOOP;\n"
        "setp.ne.u32 %p3, %r0, 0; @%p3 bra END; ld.shared.u32 %r12, [s]; red.global.add.u32 [%d1], %r12; END: ret;";
    std::vector<uint32_t> in(128 * 20);
    uint32_t sum = 0;
    for (size_t i = 0; i < in.size(); i++) sum += in[i] = static_cast<uint32_t>(i * i);
    ExecCounters first = {};
    for (int threads = 1; threads <= 4; threads++)
        for (uint64_t seed = 0; seed < 4; seed++) {
            Gpu gpu;
            gpu.seed = seed;
            gpu.threads = threads;
            gpu.load_body(body);
            uint64_t out = gpu.put(std::vector<uint32_t>{0});
            Result r = gpu.launch({20}, {128}, {gpu.put(in), out});
            ASSERT_EQ(r.fault, EXEC_OK) << r.message;
            EXPECT_EQ(gpu.get<uint32_t>(out, 1)[0], sum);
            if (threads == 1 && seed == 0) first = r.counters;
            EXPECT_EQ(memcmp(&first, &r.counters, sizeof first), 0) << "seed " << seed << ", threads " << threads;
        }
    EXPECT_EQ(first.barriers, 20u * 4 * 7);
    EXPECT_EQ(first.atomics, 20u);
}

} // namespace
