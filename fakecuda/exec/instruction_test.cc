// What single instructions do to the lanes of a warp and to memory, from the definitions of the PTX ISA document.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "fakecuda/exec/kernel.h"

namespace {

// One warp; %r0 = tid.x, %d0 = p0, %d4 = p1 + 4 * tid.  The kernel writes one word for each thread.
std::vector<uint32_t> warp(const std::string &body, const std::vector<uint32_t> &in = {0}, int arch = 80,
                           uint32_t threads = 32) {
    std::vector<uint32_t> first;
    for (uint64_t seed = 1; seed <= 3; seed++) {
        Gpu gpu(arch, true);
        gpu.seed = seed;
        gpu.load_body("ld.param.u64 %d0, [p0]; ld.param.u64 %d1, [p1]; mov.u32 %r0, %tid.x; mul.wide.u32 %d2, %r0, 4; "
                      "add.s64 %d4, %d1, %d2;\n" +
                      body);
        uint64_t out = gpu.room(4 * threads);
        Result r = gpu.launch({1}, {threads}, {gpu.put(in), out});
        EXPECT_EQ(r.fault, EXEC_OK) << r.message;
        if (r.fault) return std::vector<uint32_t>(threads);
        std::vector<uint32_t> v = gpu.get<uint32_t>(out, threads);
        if (seed == 1) first = v;
        EXPECT_EQ(v, first);
    }
    return first;
}

// ---- shuffles: every mode, width and distance against the pseudo code of the document

struct ShuffleCase {
    const char *mode;
    int width;
};

struct Shuffles : ::testing::TestWithParam<ShuffleCase> {};

TEST_P(Shuffles, FollowTheDocument) {
    const std::string mode = GetParam().mode;
    int width = GetParam().width, segment = (32 - width) & 31, clamp = mode == "up" ? 0 : 31;
    for (int by = 0; by < 32; by++) {
        std::string c = std::to_string(segment << 8 | clamp);
        std::vector<uint32_t> out =
            warp("mad.lo.s32 %r1, %r0, 10, 3; shfl.sync." + mode + ".b32 %r2|%p1, %r1, " + std::to_string(by) + ", " +
                 c + ", -1; selp.b32 %r3, 1000, 0, %p1; add.s32 %r2, %r2, %r3; st.global.u32 [%d4], %r2; ret;");
        for (int lane = 0; lane < 32; lane++) {
            int most = (lane & segment) | (clamp & ~segment), least = lane & segment, j = 0;
            bool p = false;
            if (mode == "up") j = lane - by, p = j >= most;
            if (mode == "down") j = lane + by, p = j <= most;
            if (mode == "bfly") j = lane ^ by, p = j <= most;
            if (mode == "idx") j = least | (by & ~segment), p = j <= most;
            if (!p) j = lane;
            ASSERT_EQ(out[lane], static_cast<uint32_t>(10 * j + 3 + 1000 * p))
                << mode << " width " << width << " by " << by << " lane " << lane;
        }
    }
}

INSTANTIATE_TEST_SUITE_P(All, Shuffles,
                         ::testing::Values(ShuffleCase{"up", 32}, ShuffleCase{"down", 32}, ShuffleCase{"bfly", 32},
                                           ShuffleCase{"idx", 32}, ShuffleCase{"up", 8}, ShuffleCase{"down", 8},
                                           ShuffleCase{"bfly", 16}, ShuffleCase{"idx", 16}));

TEST(Warps, ShufflesOfTwoGroupsAtOneInstruction) {
    std::vector<uint32_t> out = warp("setp.lt.u32 %p1, %r0, 16; selp.b32 %r1, 0xffff, 0xffff0000, %p1; "
                                     "shfl.sync.bfly.b32 %r2, %r0, 8, 31, %r1; st.global.u32 [%d4], %r2; ret;");
    for (uint32_t l = 0; l < 32; l++) EXPECT_EQ(out[l], l ^ 8);
}

// Lanes come to one shuffle on two ways and meet there.
TEST(Warps, LanesMeetAtAShuffle) {
    std::vector<uint32_t> out =
        warp("setp.lt.u32 %p1, %r0, 7; mov.u32 %r3, 0; @%p1 bra A; LOOP: add.s32 %r3, %r3, 1; setp.lt.u32 %p2, %r3, 3; "
             "@%p2 bra LOOP; A: shfl.sync.idx.b32 %r2, %r3, 31, 31, -1;\n"
             "st.global.u32 [%d4], %r2; ret;");
    EXPECT_EQ(out, std::vector<uint32_t>(32, 3));
}

TEST(Warps, VotesAndBallots) {
    std::vector<uint32_t> out = warp("setp.lt.u32 %p1, %r0, 3; vote.sync.ballot.b32 %r1, %p1, -1; vote.sync.any.pred "
                                     "%p2, %p1, -1; vote.sync.all.pred %p3, %p1, -1; vote.sync.uni.pred %p4, %p1, -1;\n"
                                     "vote.sync.all.pred %p5, !%p1, -1; selp.b32 %r2, 0x100, 0, %p2; selp.b32 %r3, "
                                     "0x200, 0, %p3; selp.b32 %r4, 0x400, 0, %p4; selp.b32 %r5, 0x800, 0, %p5;\n"
                                     "or.b32 %r1, %r1, %r2; or.b32 %r1, %r1, %r3; or.b32 %r1, %r1, %r4; or.b32 %r1, "
                                     "%r1, %r5; st.global.u32 [%d4], %r1; ret;");
    EXPECT_EQ(out, std::vector<uint32_t>(32, 0x107));
}

TEST(Warps, MatchAnyAndAll) {
    std::vector<uint32_t> out =
        warp("rem.u32 %r1, %r0, 3; match.any.sync.b32 %r2, %r1, -1; match.all.sync.b32 %r3|%p1, %r1, -1; "
             "match.all.sync.b32 %r4|%p2, 5, -1; selp.b32 %r5, 1, 0, %p1; selp.b32 %r6, 2, 0, %p2;\n"
             "add.s32 %r3, %r3, %r4; add.s32 %r3, %r3, %r5; add.s32 %r3, %r3, %r6; setp.ne.u32 %p3, %r3, 1; @%p3 "
             "mov.u32 %r2, 0; st.global.u32 [%d4], %r2; ret;");
    for (uint32_t l = 0; l < 32; l++) {
        uint32_t mask = 0;
        for (uint32_t k = 0; k < 32; k++) mask |= static_cast<uint32_t>(k % 3 == l % 3) << k;
        EXPECT_EQ(out[l], mask);
    }
}

TEST(Warps, ReduxAndElect) {
    std::vector<uint32_t> out =
        warp("sub.s32 %r1, %r0, 5; redux.sync.add.s32 %r2, %r1, -1; redux.sync.min.s32 %r3, %r1, -1; "
             "redux.sync.max.u32 %r4, %r1, -1; redux.sync.xor.b32 %r5, %r0, -1; elect.sync %r6|%p1, -1;\n"
             "sub.s32 %r2, %r2, %r3; add.s32 %r2, %r2, %r4; add.s32 %r2, %r2, %r5; add.s32 %r2, %r2, %r6; @%p1 add.s32 "
             "%r2, %r2, 1000; st.global.u32 [%d4], %r2; ret;",
             {0}, 90);
    uint32_t expected = (31 * 32 / 2 - 160) + 5 + 0xffffffffu;
    for (uint32_t l = 0; l < 32; l++) EXPECT_EQ(out[l], expected + (l ? 0 : 1000));
}

// ---- barriers with results

TEST(Barriers, Reductions) {
    std::vector<uint32_t> out = warp("setp.lt.u32 %p1, %r0, 70; bar.red.popc.u32 %r1, 0, %p1; bar.red.and.pred %p2, 1, "
                                     "%p1; bar.red.or.pred %p3, 1, 96, %p1; bar.red.popc.u32 %r2, 0, !%p1;\n"
                                     "shl.b32 %r2, %r2, 8; add.s32 %r1, %r1, %r2; @%p2 add.s32 %r1, %r1, 0x10000; @%p3 "
                                     "add.s32 %r1, %r1, 0x20000; st.global.u32 [%d4], %r1; ret;",
                                     {0}, 80, 96);
    EXPECT_EQ(out, std::vector<uint32_t>(96, 70 + 26 * 256 + 0x20000));
}

// Warp 0 produces, warp 1 consumes: bar.arrive does not wait.
TEST(Barriers, ArriveAndSync) {
    std::vector<uint32_t> out =
        warp(".shared .align 4 .b8 s[128]; mov.u32 %r1, s; and.b32 %r2, %r0, 31; shl.b32 %r2, %r2, 2; add.s32 %r1, "
             "%r1, %r2; setp.lt.u32 %p1, %r0, 32; @!%p1 bra CONSUME;\n"
             "st.shared.u32 [%r1], %r0; bar.arrive 3, 64; st.global.u32 [%d4], 1; ret; CONSUME: bar.sync 3, 64; "
             "xor.b32 %r3, %r1, 4; ld.shared.u32 %r4, [%r3]; st.global.u32 [%d4], %r4; ret;",
             {0}, 80, 64);
    for (uint32_t l = 0; l < 32; l++) EXPECT_EQ(out[32 + l], l ^ 1);
}

// ---- atomics

struct AtomicCase {
    const char *op;
    std::vector<uint32_t> old, b, expected;
};

TEST(Atomics, OneOfEach) {
    const uint32_t one = 0x3f800000, tiny = 0x00000001;
    const std::vector<AtomicCase> cases = {
        {"add.u32", {5}, {7}, {12}},
        {"add.s32", {5}, {static_cast<uint32_t>(-7)}, {static_cast<uint32_t>(-2)}},
        {"and.b32", {0xff0}, {0x0ff}, {0x0f0}},
        {"or.b32", {0xff0}, {0x0ff}, {0xfff}},
        {"xor.b32", {0xff0}, {0x0ff}, {0xf0f}},
        {"exch.b32", {1}, {2}, {2}},
        {"inc.u32", {3}, {3}, {0}},
        {"inc.u32", {2}, {3}, {3}},
        {"dec.u32", {0}, {3}, {3}},
        {"dec.u32", {9}, {3}, {3}},
        {"dec.u32", {2}, {3}, {1}},
        {"min.s32", {1}, {0xffffffff}, {0xffffffff}},
        {"min.u32", {1}, {0xffffffff}, {1}},
        {"max.s32", {1}, {0xffffffff}, {1}},
        {"max.u32", {1}, {0xffffffff}, {0xffffffff}},
        {"add.f32", {one}, {one}, {0x40000000}},
        {"add.f32", {tiny}, {tiny}, {0}}, // flushed in global memory
        {"add.noftz.f16x2", {0x3c003c00}, {0x40004200}, {0x42004400}},
        {"add.noftz.bf16x2", {0x3f803f80}, {0x40004040}, {0x40404080}},
        {"add.u64", {0xffffffff, 1}, {1, 0}, {0, 2}},
        {"max.s64", {5, 0}, {0, 0xffffffff}, {5, 0}},
        {"min.u64", {5, 1}, {0, 1}, {0, 1}},
        {"exch.b64", {5, 1}, {7, 8}, {7, 8}},
        {"add.f64", {0, 0x3ff00000}, {0, 0x3ff00000}, {0, 0x40000000}},
    };
    for (const AtomicCase &c : cases) {
        bool wide = c.old.size() == 2;
        std::string load = wide ? "ld.global.b64 %d5, [%d0+8]; " : "ld.global.b32 %r1, [%d0+8]; ",
                    b = wide ? "%d5" : "%r1", to = wide ? "%d6" : "%r2";
        for (const std::string form : {"atom.global.", "red.global.", "atom.relaxed.gpu.global.", "atom."}) {
            std::vector<uint32_t> in = {c.old[0], wide ? c.old[1] : 0, c.b[0], wide ? c.b[1] : 0};
            bool red = form[0] == 'r';
            std::string body = "ld.param.u64 %d0, [p0]; " + load + form + c.op + " " + (red ? "" : to + ", ") +
                               "[%d0], " + b + "; ret;";
            Gpu gpu(90);
            gpu.load_body(body);
            uint64_t at = gpu.put(in);
            Result r = gpu.launch({1}, {1}, {at, 0});
            ASSERT_EQ(r.fault, EXEC_OK) << r.message;
            std::vector<uint32_t> v = gpu.get<uint32_t>(at, 2);
            EXPECT_EQ(v[0], c.expected[0]) << form << c.op;
            if (wide) {
                EXPECT_EQ(v[1], c.expected[1]) << form << c.op;
            }
        }
    }
}

TEST(Atomics, SharedSumsKeepSubnormals) {
    std::vector<uint32_t> out =
        warp(".shared .align 4 .b8 s[4]; st.shared.u32 [s], 1; mov.b32 %f1, 0f00000001; atom.shared.add.f32 %f0, [s], "
             "%f1; ld.shared.u32 %r1, [s]; st.global.u32 [%d4], %r1; ret;",
             {0}, 80, 1);
    EXPECT_EQ(out[0], 2u);
}

TEST(Atomics, CompareAndSwapLoops) {
    Gpu gpu;
    gpu.load_body(
        "ld.param.u64 %d0, [p0]; ld.volatile.global.u32 %r1, [%d0]; LOOP: add.s32 %r2, %r1, 3; atom.global.cas.b32 "
        "%r3, [%d0], %r1, %r2; setp.ne.u32 %p1, %r3, %r1; mov.u32 %r1, %r3; @%p1 bra LOOP; ret;");
    uint64_t at = gpu.put(std::vector<uint32_t>{0});
    Result r = gpu.launch({3}, {64}, {at, 0});
    ASSERT_EQ(r.fault, EXEC_OK) << r.message;
    EXPECT_EQ(gpu.get<uint32_t>(at, 1)[0], 3u * 3 * 64);
}

// ---- matrices

// s[row][column] of 16-bit elements, row * 8 + column + 64 * matrix; the address of row r of matrix j comes from lane 8
// j + r.
const char *const kMatrices = ".shared .align 16 .b8 s[512]; mov.u32 %r1, s; mad.lo.s32 %r2, %r0, 16, %r1; shl.b32 "
                              "%r3, %r0, 3; mad.lo.s32 %r4, %r3, 0x10001, 0x10000;\n"
                              "add.s32 %r5, %r4, 0x20002; add.s32 %r6, %r5, 0x20002; add.s32 %r7, %r6, 0x20002; "
                              "st.shared.v4.u32 [%r2], {%r4,%r5,%r6,%r7}; bar.warp.sync -1;\n";

TEST(Matrices, LoadPlainAndTransposed) {
    for (bool transposed : {false, true})
        for (int j = 0; j < 4; j++) {
            std::vector<uint32_t> out = warp(
                std::string(kMatrices) + "ldmatrix.sync.aligned.m8n8.x4" + (transposed ? ".trans" : "") +
                ".shared.b16 {%r10,%r11,%r12,%r13}, [%r2]; st.global.u32 [%d4], %r1" + std::to_string(j) + "; ret;");
            for (uint32_t l = 0; l < 32; l++) {
                uint32_t g = l / 4, q = l % 4, step = transposed ? 8 : 1;
                uint32_t low = 64 * j + (transposed ? 16 * q + g : 8 * g + 2 * q);
                ASSERT_EQ(out[l], low | (low + step) << 16) << "matrix " << j << " lane " << l;
            }
        }
}

TEST(Matrices, OneAndTwoUseTheLowLanesOnly) {
    std::vector<uint32_t> out =
        warp(std::string(kMatrices) +
             "setp.ge.u32 %p1, %r0, 16; @%p1 mov.u32 %r2, 0; ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r10,%r11}, "
             "[%r2]; st.global.u32 [%d4], %r11; ret;");
    for (uint32_t l = 0; l < 32; l++) EXPECT_EQ(out[l] & 0xffff, 64 + 2 * l);
}

TEST(Matrices, StoreAndMove) {
    for (bool transposed : {false, true}) {
        std::vector<uint32_t> out =
            warp(std::string(kMatrices) + "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r10}, [%r2]; bar.warp.sync -1;" +
                     (transposed ? "movmatrix.sync.aligned.m8n8.trans.b16 %r10, %r10; " : "") +
                     "stmatrix.sync.aligned.m8n8.x1" + (transposed ? ".trans" : "") +
                     ".shared.b16 [%r2], {%r10}; bar.warp.sync -1; shl.b32 %r11, %r0, 2; add.s32 %r11, %r11, %r1;\n"
                     "ld.shared.u32 %r12, [%r11]; st.global.u32 [%d4], %r12; ret;",
                 {0}, 90);
        for (uint32_t l = 0; l < 32; l++) EXPECT_EQ(out[l], 2 * l | (2 * l + 1) << 16);
    }
}

// C = A * B for small integers, exact: fragments through ldmatrix, as in ptx.md.
TEST(Matrices, Product) {
    Gpu gpu(80);
    gpu.load_body("ld.param.u64 %d0, [p0]; ld.param.u64 %d1, [p1]; mov.u32 %r0, %tid.x; .shared .align 16 .b8 a[512]; "
                  ".shared .align 16 .b8 b[256];\n"
                  // 32 lanes copy A (16 x 16 f16, 512 bytes) and half of them B (16 x 8, 256 bytes)
                  "mov.u32 %r1, a; mov.u32 %r2, b; mul.wide.u32 %d2, %r0, 16; add.s64 %d3, %d0, %d2; mad.lo.s32 %r3, "
                  "%r0, 16, %r1; mad.lo.s32 %r4, %r0, 16, %r2; setp.lt.u32 %p1, %r0, 16;\n"
                  "cp.async.cg.shared.global [%r3], [%d3], 16; @%p1 cp.async.cg.shared.global [%r4], [%d3+512], 16; "
                  "cp.async.commit_group; cp.async.wait_group 0; bar.sync 0;\n"
                  "and.b32 %r5, %r0, 15; shl.b32 %r6, %r5, 5; shr.u32 %r7, %r0, 4; mad.lo.s32 %r6, %r7, 16, %r6; "
                  "add.s32 %r6, %r6, %r1; mad.lo.s32 %r8, %r5, 16, %r2;\n"
                  "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r10,%r11,%r12,%r13}, [%r6]; "
                  "ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%r14,%r15}, [%r8];\n"
                  "mov.f32 %f0, 0f40000000; mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1,%f2,%f3,%f4}, "
                  "{%r10,%r11,%r12,%r13}, {%r14,%r15}, {%f0,%f0,%f0,%f0};\n"
                  "shr.u32 %r20, %r0, 2; and.b32 %r21, %r0, 3; shl.b32 %r22, %r20, 5; mad.lo.s32 %r22, %r21, 8, %r22; "
                  "cvt.u64.u32 %d5, %r22; add.s64 %d6, %d1, %d5;\n"
                  "st.global.v2.f32 [%d6], {%f1,%f2}; st.global.v2.f32 [%d6+256], {%f3,%f4}; ret;");
    std::vector<uint16_t> in(256 + 128);
    std::vector<int> value(in.size());
    for (size_t i = 0; i < in.size(); i++) {
        value[i] = static_cast<int>(i * 7 % 13) - 6;
        in[i] = alu_f32_to_f16(static_cast<float>(value[i]));
    }
    uint64_t out = gpu.room(512);
    Result r = gpu.launch({1}, {32}, {gpu.put(in), out});
    ASSERT_EQ(r.fault, EXEC_OK) << r.message;
    std::vector<float> c = gpu.get<float>(out, 128);
    for (int m = 0; m < 16; m++)
        for (int n = 0; n < 8; n++) {
            int sum = 2;
            for (int k = 0; k < 16; k++) sum += value[m * 16 + k] * value[256 + k * 8 + n];
            ASSERT_EQ(c[m * 8 + n], static_cast<float>(sum)) << m << ", " << n;
        }
}

// ---- asynchronous copies

TEST(Async, SourceSizesFillWithZeros) {
    std::vector<uint32_t> in(16, 0x04030201);
    std::vector<uint32_t> out =
        warp(".shared .align 16 .b8 s[512]; mov.u32 %r1, s; mad.lo.s32 %r2, %r0, 16, %r1; and.b32 %r3, %r0, 15; "
             "cp.async.ca.shared.global [%r2], [%d0], 16, %r3; cp.async.wait_all;\n"
             "ld.shared.v4.u32 {%r4,%r5,%r6,%r7}, [%r2]; xor.b32 %r4, %r4, %r5; shl.b32 %r6, %r6, 1; xor.b32 %r4, %r4, "
             "%r6; shl.b32 %r7, %r7, 2; xor.b32 %r4, %r4, %r7; st.global.u32 [%d4], %r4; ret;",
             in);
    for (uint32_t l = 0; l < 32; l++) {
        uint8_t bytes[16] = {0};
        for (uint32_t k = 0; k < (l & 15); k++) bytes[k] = static_cast<uint8_t>(k % 4 + 1);
        uint32_t w[4];
        memcpy(w, bytes, 16);
        EXPECT_EQ(out[l], w[0] ^ w[1] ^ w[2] << 1 ^ w[3] << 2) << l;
    }
}

TEST(Async, IgnoredSourcesAreNotTouched) {
    std::vector<uint32_t> out = warp(".shared .align 16 .b8 s[512]; mov.u32 %r1, s; mad.lo.s32 %r2, %r0, 4, %r1; "
                                     "setp.gt.u32 %p1, %r0, 0; mul.wide.u32 %d5, %r0, 0x1000; add.s64 %d5, %d5, %d0;\n"
                                     "cp.async.ca.shared.global [%r2], [%d5], 4, %p1; cp.async.wait_all; ld.shared.u32 "
                                     "%r3, [%r2]; st.global.u32 [%d4], %r3; ret;",
                                     {77});
    for (uint32_t l = 0; l < 32; l++) EXPECT_EQ(out[l], l ? 0u : 77u);
}

// Three groups; wait_group 1 finishes the first two.
TEST(Async, GroupsFinishInOrder) {
    std::vector<uint32_t> in = {10, 20, 30, 40};
    std::string body = ".shared .align 16 .b8 s[16]; mov.u32 %r1, s; cp.async.ca.shared.global [%r1], [%d0], 4; "
                       "cp.async.commit_group; cp.async.ca.shared.global [%r1+4], [%d0+4], 4; cp.async.commit_group;\n"
                       "cp.async.ca.shared.global [%r1+8], [%d0+8], 4; cp.async.commit_group; cp.async.wait_group 1; "
                       "ld.shared.u32 %r2, [%r1]; ld.shared.u32 %r3, [%r1+4]; add.s32 %r2, %r2, %r3;\n";
    EXPECT_EQ(warp(body + "st.global.u32 [%d4], %r2; ret;", in, 80, 1)[0], 30u);
    Gpu gpu;
    gpu.load_body("ld.param.u64 %d0, [p0];\n" + body + "ld.shared.u32 %r4, [%r1+8]; ret;");
    EXPECT_EQ(gpu.launch({1}, {1}, {gpu.put(in), 0}).fault, EXEC_LAUNCH_FAILED);
}

TEST(Async, NotBeforeSm80) {
    Gpu gpu(75);
    gpu.load_body("cp.async.wait_all; ret;");
    Result r = gpu.launch({1}, {1}, {0, 0});
    EXPECT_EQ(r.fault, EXEC_ILLEGAL_INSTRUCTION);
    EXPECT_NE(r.message.find("needs sm_80"), std::string::npos) << r.message;
}

// ---- mbarrier

// 64 threads arrive; then each reads what its neighbour in the other warp wrote.  |mode|: how they wait.
std::string mbarrier(const std::string &wait) {
    return ".shared .align 8 .b8 bar[8]; .shared .align 4 .b8 s[256]; mov.u32 %r1, bar; mov.u32 %r2, s; setp.eq.u32 "
           "%p1, %r0, 0; @%p1 mbarrier.init.shared.b64 [%r1], 64; bar.sync 0; mad.lo.s32 %r3, %r0, 4, %r2;\n"
           "st.shared.u32 [%r3], %r0; mbarrier.arrive.shared.b64 %d5, [%r1];\n" +
           wait +
           "\nxor.b32 %r4, %r0, 32; mad.lo.s32 %r5, %r4, 4, %r2; ld.shared.u32 %r6, [%r5]; st.global.u32 [%d4], %r6; "
           "ret;";
}

TEST(Mbarriers, OrderMemory) {
    for (const char *wait : {"LOOP: mbarrier.test_wait.shared.b64 %p2, [%r1], %d5; @!%p2 bra LOOP;",
                             "LOOP: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r1], 0; @!%p2 bra LOOP;"}) {
        std::vector<uint32_t> out = warp(mbarrier(wait), {0}, 90, 64);
        for (uint32_t l = 0; l < 64; l++) EXPECT_EQ(out[l], l ^ 32);
    }
    Gpu gpu(90);
    gpu.load_body("ld.param.u64 %d4, [p1]; mov.u32 %r0, %tid.x;\n" + mbarrier(""));
    Result r = gpu.launch({1}, {64}, {0, gpu.room(256)});
    EXPECT_EQ(r.fault, EXEC_LAUNCH_FAILED);
    EXPECT_NE(r.message.find("shared memory"), std::string::npos) << r.message;
}

TEST(Mbarriers, PhasesAndParity) {
    // One thread: the phase before a fresh barrier's first has parity 1; after one arrival of one, parity 0.
    std::vector<uint32_t> out = warp(
        ".shared .align 8 .b8 bar[8]; mov.u32 %r1, bar; mbarrier.init.shared.b64 [%r1], 1; mov.u32 %r5, 0; "
        "mbarrier.test_wait.parity.shared.b64 %p1, [%r1], 1; @%p1 add.s32 %r5, %r5, 1;\n"
        "mbarrier.test_wait.parity.shared.b64 %p1, [%r1], 0; @%p1 add.s32 %r5, %r5, 10; mbarrier.arrive.shared.b64 "
        "%d5, [%r1]; mbarrier.test_wait.parity.shared.b64 %p1, [%r1], 0; @%p1 add.s32 %r5, %r5, 100;\n"
        "mbarrier.arrive.expect_tx.shared.b64 %d5, [%r1], 16; mbarrier.test_wait.shared.b64 %p1, [%r1], %d5; @%p1 "
        "add.s32 %r5, %r5, 1000; mbarrier.complete_tx.shared.b64 [%r1], 16;\n"
        "mbarrier.test_wait.shared.b64 %p1, [%r1], %d5; @%p1 add.s32 %r5, %r5, 10000; mbarrier.inval.shared.b64 [%r1]; "
        "st.global.u32 [%d4], %r5; ret;",
        {0}, 90, 1);
    EXPECT_EQ(out[0], 10101u);
}

TEST(Mbarriers, ArrivalsOfCopies) {
    for (const char *form : {"", ".noinc"}) {
        std::string wait = std::string("cp.async.mbarrier.arrive") + form + ".shared.b64 [%r1];" +
                           (form[0] ? "" : "mbarrier.arrive.shared.b64 %d5, [%r1];") +
                           "\nLOOP: mbarrier.test_wait.parity.shared.b64 %p2, [%r1], 0; @!%p2 bra LOOP;";
        std::string body =
            ".shared .align 8 .b8 bar[8]; .shared .align 4 .b8 s[256]; mov.u32 %r1, bar; mov.u32 %r2, s; setp.eq.u32 "
            "%p1, %r0, 0; @%p1 mbarrier.init.shared.b64 [%r1], 64; bar.sync 0; mad.lo.s32 %r3, %r0, 4, %r2;\n"
            "add.s64 %d6, %d0, %d2; cp.async.ca.shared.global [%r3], [%d6], 4;\n" +
            wait +
            "\nxor.b32 %r4, %r0, 32; mad.lo.s32 %r5, %r4, 4, %r2; ld.shared.u32 %r6, [%r5]; st.global.u32 [%d4], %r6; "
            "ret;";
        std::vector<uint32_t> in(64);
        for (uint32_t i = 0; i < 64; i++) in[i] = 100 + i;
        std::vector<uint32_t> out = warp(body, in, 80, 64);
        for (uint32_t l = 0; l < 64; l++) EXPECT_EQ(out[l], 100 + (l ^ 32));
    }
}

} // namespace
