// Planted bugs: each must be found, named and located; beside each the same kernel without the bug must run.
#include <gtest/gtest.h>

#include "fakecuda/exec/checks.h"

namespace {

// ---- addresses

TEST_F(Checks, OffByOne) {
    std::string body = kStart + "ld.global.u32 %r1, [%d3];\n//@ %12 = relu\nst.global.u32 [%d4], %r1; ret;";
    good(body, {64}, {numbers(64), gpu.room(256)});
    bad(body, {65}, {numbers(65), gpu.room(256)}, EXEC_ILLEGAL_ADDRESS,
        {"kernel k", "ptx line ", "(st.global.u32 [%d4], %r1)", "block (0,0,0)", "thread (64,0,0)", "writes 4 bytes",
         "0 past the end of an allocation of 256 bytes", "made from: %12 = relu"});
    bad(body, {65}, {numbers(64), gpu.room(260)}, EXEC_ILLEGAL_ADDRESS,
        {"reads 4 bytes", "(ld.global.u32 %r1, [%d3])"});
}

TEST_F(Checks, NullAndHostPointers) {
    std::string body = kStart + "ld.global.u32 %r1, [%d0]; st.global.u32 [%d4], %r1; ret;";
    uint32_t host = 5;
    bad(body, {1}, {reinterpret_cast<uint64_t>(&host), gpu.room(4)}, EXEC_ILLEGAL_ADDRESS,
        {"no address of the device (a host pointer?)"});
    bad(body, {1}, {0, gpu.room(4)}, EXEC_ILLEGAL_ADDRESS, {"null pointer"});
}

TEST_F(Checks, UseAfterFree) {
    std::string body = kStart + "ld.global.u32 %r1, [%d0]; st.global.u32 [%d4], %r1; ret;";
    uint64_t freed = numbers(8);
    good(body, {1}, {freed, gpu.room(4)});
    EXPECT_TRUE(exec_release(gpu.memory, freed));
    bad(body, {1}, {freed, gpu.room(4)}, EXEC_ILLEGAL_ADDRESS, {"has been freed"});
}

TEST_F(Checks, Misaligned) {
    std::string body = kStart + "ld.global.v4.u32 {%r1,%r2,%r3,%r4}, [%d0]; st.global.u32 [%d1], %r1; ret;";
    uint64_t in = numbers(8);
    good(body, {1}, {in, gpu.room(4)});
    bad(body, {1}, {in + 8, gpu.room(4)}, EXEC_MISALIGNED, {"not aligned to 16 bytes"});
    std::string shared = ".shared .align 16 .b8 s[64]; mov.u32 %r1, s; st.shared.u16 [%r1+1], %h0; ret;";
    bad(shared, {1}, {0, 0}, EXEC_MISALIGNED, {"of shared memory", "not aligned to 2 bytes"});
}

TEST_F(Checks, SharedOutOfBounds) {
    std::string body = ".shared .align 4 .b8 s[64]; mov.u32 %r0, %tid.x; shl.b32 %r1, %r0, 2; mov.u32 %r2, s; add.s32 "
                       "%r2, %r2, %r1; st.shared.u32 [%r2], %r0; ret;";
    good(body, {16}, {0, 0});
    bad(body, {17}, {0, 0}, EXEC_ILLEGAL_ADDRESS, {"thread (16,0,0)", "4 past the end of its 64 bytes"});
    bad("st.shared.u32 [%r0], %r1; ret;", {1}, {0, 0}, EXEC_ILLEGAL_ADDRESS, {"before the first"});
}

// Bytes of the last word, which may be cut short, have a record each.
TEST_F(Checks, LastByteOfSharedMemory) {
    for (int size : {1, 5, 6, 7, 21}) {
        const std::string last = std::to_string(size - 1);
        good(".shared .b8 s[" + std::to_string(size) + "]; st.shared.u8 [s+" + last +
                 "], 1; bar.sync 0; ld.shared.u8 "
                 "%r1, [s+" +
                 last + "]; ret;",
             {33}, {0, 0});
    }
}

// ---- uninitialised memory

TEST_F(Checks, UninitialisedMemory) {
    std::string load = kStart + "ld.global.u32 %r1, [%d3]; st.global.u32 [%d4], %r1; ret;";
    bad(load, {4}, {gpu.room(16), gpu.room(16)}, EXEC_LAUNCH_FAILED, {"uninitialised", "byte 0"});
    std::string shared = ".shared .align 4 .b8 s[64]; ld.shared.u32 %r1, [s+4]; ret;";
    bad(shared, {1}, {0, 0}, EXEC_LAUNCH_FAILED, {"of shared memory: uninitialised"});
    good(".shared .align 4 .b8 s[64]; st.shared.u32 [s+4], 1; ld.shared.u32 %r1, [s+4]; ret;", {1}, {0, 0});
    std::string local = ".local .align 4 .b8 l[16]; mov.u64 %d5, l; st.local.u32 [%d5], 1; ld.local.u16 %h1, [%d5+2]; "
                        "ld.local.u32 %r1, [%d5+4]; ret;";
    bad(local, {1}, {0, 0}, EXEC_LAUNCH_FAILED, {"ld.local.u32", "of local memory: uninitialised"});
}

TEST_F(Checks, SharedMemoryOfABlockIsNotThatOfTheLast) {
    std::string body = ".shared .align 4 .b8 s[4]; mov.u32 %r0, %ctaid.x; setp.eq.u32 %p1, %r0, 0; @%p1 st.shared.u32 "
                       "[s], 1; ld.shared.u32 %r1, [s]; ret;";
    good(body, {1}, {0, 0});
    bad(body, {1}, {0, 0}, EXEC_LAUNCH_FAILED, {"uninitialised", "block (1,0,0)"}, {2});
}

// ---- races

// Each thread writes its word and reads the next thread's.
std::string neighbour(const std::string &between) {
    return kStart +
           ".shared .align 4 .b8 s[1024]; mov.u32 %r2, s; shl.b32 %r3, %r0, 2; add.s32 %r4, %r2, %r3; st.shared.u32 "
           "[%r4], %r0;\n" +
           between +
           "\nadd.s32 %r5, %r0, 1; mov.u32 %r6, %ntid.x; rem.u32 %r5, %r5, %r6; shl.b32 %r5, %r5, 2; add.s32 %r7, %r2, "
           "%r5; ld.shared.u32 %r8, [%r7]; st.global.u32 [%d4], %r8; ret;";
}

TEST_F(Checks, MissingBarrier) {
    uint64_t out = gpu.room(1024);
    good(neighbour("bar.sync 0;"), {256}, {0, out});
    good(neighbour("bar.sync 1, 256;"), {256}, {0, out});
    good(neighbour("barrier.cta.sync 0;"), {96}, {0, out});
    EXPECT_EQ(gpu.get<uint32_t>(out, 2)[0], 1u);
    bad(neighbour(""), {256}, {0, out}, EXEC_LAUNCH_FAILED, {"shared memory"}); // a race, or not even written
    bad(neighbour("bar.sync %r1;").replace(0, 0, "mov.u32 %r1, %tid.x; shr.u32 %r1, %r1, 5; "), {64}, {0, out},
        EXEC_LAUNCH_FAILED, {"barrier"});
}

TEST_F(Checks, BarrierBehindTheReadIsMissing) {
    // Read, no barrier, write again: the write may overtake the read of another warp.
    std::string again = ".shared .align 4 .b8 s[4]; mov.u32 %r0, %tid.x; setp.eq.u32 %p1, %r0, 0;\n"
                        "@%p1 st.shared.u32 [s], 1; bar.sync 0; ld.shared.u32 %r1, [s];\n";
    good(again + "bar.sync 0; @%p1 st.shared.u32 [s], 2; ret;", {64}, {0, 0});
    bad(again + "@%p1 st.shared.u32 [s], 2; ret;", {64}, {0, 0}, EXEC_LAUNCH_FAILED,
        {"race in shared memory", "with no barrier between"});
}

TEST_F(Checks, LanesOfOneWarpNeedABarrierToo) {
    uint64_t out = gpu.room(1024);
    good(neighbour("bar.warp.sync 0xffffffff;"), {32}, {0, out});
    bad(neighbour(""), {32}, {0, out}, EXEC_LAUNCH_FAILED, {"race in shared memory", "bar.warp.sync orders them"});
    bad(neighbour("bar.warp.sync 0xffffffff;"), {64}, {0, out}, EXEC_LAUNCH_FAILED, {"shared memory"});
}

TEST_F(Checks, AtomicsDoNotRace) {
    std::string start = ".shared .align 4 .b8 s[4]; mov.u32 %r0, %tid.x; setp.eq.u32 %p1, %r0, 0; @%p1 st.shared.u32 "
                        "[s], 0; bar.sync 0;\n";
    good(start + "atom.shared.add.u32 %r1, [s], 1; bar.sync 0; ld.shared.u32 %r2, [s]; ret;", {128}, {0, 0});
    bad(start + "ld.shared.u32 %r1, [s]; add.s32 %r1, %r1, %r0; add.s32 %r1, %r1, 1; st.shared.u32 [s], %r1; ret;",
        {128}, {0, 0}, EXEC_LAUNCH_FAILED, {"race"});
    bad(start + "atom.shared.add.u32 %r1, [s], 1; ld.shared.u32 %r2, [s]; ret;", {128}, {0, 0}, EXEC_LAUNCH_FAILED,
        {"race"});
}

TEST_F(Checks, NonCoherentLoadsAreForConstants) {
    std::string body = kStart + "st.global.u32 [%d3], %r0; ld.global.nc.u32 %r1, [%d3]; ret;";
    bad(body, {1}, {numbers(4), 0}, EXEC_LAUNCH_FAILED,
        {"reads with .nc what was written in the same launch, by block (0,0,0)"});
}

// ---- asynchronous copies

std::string async(const std::string &between) {
    return kStart +
           ".shared .align 16 .b8 s[1024]; mov.u32 %r2, s; shl.b32 %r3, %r0, 2; add.s32 %r4, %r2, %r3; "
           "cp.async.ca.shared.global [%r4], [%d3], 4;\n" +
           between + "\nld.shared.u32 %r8, [%r4]; st.global.u32 [%d4], %r8; ret;";
}

TEST_F(Checks, MissingWaitForAnAsynchronousCopy) {
    uint64_t in = numbers(64), out = gpu.room(256);
    good(async("cp.async.commit_group; cp.async.wait_group 0;"), {64}, {in, out});
    EXPECT_EQ(gpu.get<uint32_t>(out, 64)[63], 190u);
    good(async("cp.async.wait_all;"), {64}, {in, out});
    bad(async(""), {64}, {in, out}, EXEC_LAUNCH_FAILED, {"a cp.async is in flight", "cp.async.wait_group"});
    bad(async("bar.sync 0;"), {64}, {in, out}, EXEC_LAUNCH_FAILED, {"a cp.async is in flight"});
    bad(async("cp.async.commit_group; cp.async.wait_group 1;"), {64}, {in, out}, EXEC_LAUNCH_FAILED,
        {"a cp.async is in flight"});
    bad(async("cp.async.wait_group 0;"), {64}, {in, out}, EXEC_LAUNCH_FAILED,
        {"a cp.async is in flight"}); // never committed
    bad(async("st.shared.u32 [%r4], 1; cp.async.wait_all;"), {64}, {in, out}, EXEC_LAUNCH_FAILED,
        {"writes 4 bytes", "in flight"});
}

TEST_F(Checks, WaitWithoutBarrierIsForTheOwnThreadOnly) {
    std::string start = kStart + ".shared .align 16 .b8 s[1024]; mov.u32 %r2, s; shl.b32 %r3, %r0, 2; add.s32 %r4, "
                                 "%r2, %r3; cp.async.ca.shared.global [%r4], [%d3], 4; cp.async.wait_all;\n";
    std::string end = "xor.b32 %r5, %r0, 1; shl.b32 %r5, %r5, 2; add.s32 %r6, %r2, %r5; ld.shared.u32 %r8, [%r6]; "
                      "st.global.u32 [%d4], %r8; ret;";
    uint64_t in = numbers(64), out = gpu.room(256);
    good(start + "bar.sync 0;" + end, {64}, {in, out});
    bad(start + end, {64}, {in, out}, EXEC_LAUNCH_FAILED, {"race in shared memory"});
}

// ---- barriers and convergence

TEST_F(Checks, BarrierInADivergentBranch) {
    std::string body = "mov.u32 %r0, %tid.x; setp.lt.u32 %p1, %r0, LIMIT; @!%p1 bra END; bar.sync 0; END: ret;";
    auto with = [&](const char *limit) { return std::string(body).replace(body.find("LIMIT"), 5, limit); };
    good(with("64"), {64}, {0, 0});
    bad(with("16"), {64}, {0, 0}, EXEC_LAUNCH_FAILED, {"in a divergent branch", "0xffff0000"});
    bad(with("32"), {64}, {0, 0}, EXEC_LAUNCH_FAILED,
        {"not all threads of the block reach it", "barrier 0 has 32 of 64 threads", "32 have left the kernel"});
}

TEST_F(Checks, DeadlockOfBarriers) {
    std::string body =
        "mov.u32 %r0, %tid.x; setp.lt.u32 %p1, %r0, 32; @%p1 bra A; bar.sync 1; ret; A: bar.sync 2; ret;";
    bad(body, {64}, {0, 0}, EXEC_LAUNCH_FAILED, {"deadlock", "32 wait elsewhere"});
    gpu.limit = 5000;
    bad("A: bra A;", {1}, {0, 0}, EXEC_LAUNCH_FAILED, {"deadlock: the limit of 5000 instructions"});
}

TEST_F(Checks, ShuffleFromAnInactiveLane) {
    std::string start = "mov.u32 %r0, %tid.x; setp.lt.u32 %p1, %r0, 16;\n";
    good(start + "shfl.sync.down.b32 %r1|%p2, %r0, 16, 31, -1; ret;", {32}, {0, 0});
    good(start + "@%p1 shfl.sync.down.b32 %r1|%p2, %r0, 8, 0x100f, 0xffff; ret;", {32}, {0, 0}); // segments of 16
    bad(start + "@%p1 shfl.sync.down.b32 %r1|%p2, %r0, 8, 31, 0xffff; ret;", {32}, {0, 0}, EXEC_LAUNCH_FAILED,
        {"reads lane 16", "inactive or outside the mask"});
    bad(start + "@%p1 shfl.sync.down.b32 %r1|%p2, %r0, 1, 31, -1; ret;", {32}, {0, 0}, EXEC_LAUNCH_FAILED,
        {"names lanes 0xffff0000"});
    bad(start + "@!%p1 bra END; shfl.sync.bfly.b32 %r1|%p2, %r0, 1, 31, -1; END: ret;", {32}, {0, 0},
        EXEC_LAUNCH_FAILED, {"waits for lanes 0xffff0000", "never come"});
    bad(start + "shfl.sync.bfly.b32 %r1|%p2, %r0, 1, 31, 0xffff; ret;", {32}, {0, 0}, EXEC_LAUNCH_FAILED,
        {"not in the mask"});
    bad(start + "shfl.sync.idx.b32 %r1|%p2, %r0, 20, 31, -1; ret;", {16}, {0, 0}, EXEC_LAUNCH_FAILED,
        {"reads lane 20"});
}

TEST_F(Checks, AlignedInstructionsNeedTheWholeWarp) {
    std::string body = ".shared .align 16 .b8 s[128]; mov.u32 %r0, %tid.x; setp.lt.u32 %p1, %r0, 16; mov.u32 %r1, s; "
                       "@%p1 ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r2}, [%r1]; ret;";
    bad(body, {32}, {0, 0}, EXEC_LAUNCH_FAILED, {"in a divergent branch"});
    bad(body, {16}, {0, 0}, EXEC_LAUNCH_FAILED, {"needs all 32 threads"});
}

// ---- what is not known, what stops by itself, what is too large

TEST_F(Checks, UnknownInstructionsStopWhenReached) {
    std::string body = "mov.u32 %r0, %tid.x; setp.eq.u32 %p1, %r0, 5; @%p1 setmaxnreg.inc.sync.aligned.u32 128; ret;";
    good(body, {4}, {0, 0});
    bad(body, {8}, {0, 0}, EXEC_ILLEGAL_INSTRUCTION, {"setmaxnreg.inc.sync.aligned.u32 128", "not supported"});
    bad("frobnicate.u32 %r0, %r1; ret;", {1}, {0, 0}, EXEC_ILLEGAL_INSTRUCTION,
        {"frobnicate.u32 %r0, %r1", "not known"});
    bad("ld.global.strange.u32 %r0, [%d0]; ret;", {1}, {0, 0}, EXEC_ILLEGAL_INSTRUCTION, {".strange"});
}

TEST_F(Checks, TrapStops) { bad("trap;", {1}, {0, 0}, EXEC_LAUNCH_FAILED, {"(trap)"}); }

TEST_F(Checks, AssertSaysItsText) {
    const char *text =
        ".extern .func __assertfail (.param .b64 a, .param .b64 b, .param .b32 c, .param .b64 d, .param .b64 e) ;\n"
        ".global .align 1 .b8 what[6] = {120, 32, 62, 32, 48, 0};\n.global .align 1 .b8 file[4] = {97, 46, 99, "
        "0};\n.global .align 1 .b8 func[2] = {102, 0};\n";
    std::string body = "{ .param .b64 a0; .param .b64 a1; .param .b32 a2; .param .b64 a3; .param .b64 a4;\n"
                       "mov.u64 %d0, what; cvta.global.u64 %d0, %d0; st.param.b64 [a0+0], %d0; mov.u64 %d1, file; "
                       "st.param.b64 [a1+0], %d1; st.param.b32 [a2+0], 42;\n"
                       "mov.u64 %d2, func; st.param.b64 [a3+0], %d2; st.param.b64 [a4+0], 1; call.uni __assertfail, "
                       "(a0, a1, a2, a3, a4); } ret;";
    gpu.load(module_text(text + kernel(body, 0), 80));
    Result r = gpu.launch({1}, {1}, {});
    EXPECT_EQ(r.fault, EXEC_ASSERT);
    expect_in(r.message, "a.c:42: f: assertion `x > 0` failed");
}

TEST_F(Checks, Limits) {
    gpu.load_body(".shared .align 4 .b8 s[49156]; st.shared.u32 [s], 1; ret;");
    Result r = gpu.launch({1}, {1}, {0, 0});
    EXPECT_EQ(r.fault, EXEC_INVALID_LAUNCH);
    expect_in(r.message, "49156 bytes of static shared memory");
    gpu.load(module_text(".extern .shared .align 16 .b8 dyn[];\n" + kernel("st.shared.u32 [dyn], 1; ret;"), 80));
    EXPECT_EQ(gpu.launch({1}, {1}, {0, 0}, 163 * 1024).fault, EXEC_OK);
    EXPECT_EQ(gpu.launch({1}, {1}, {0, 0}, 163 * 1024 + 1).fault, EXEC_INVALID_LAUNCH);
    EXPECT_EQ(gpu.launch({1}, {1025}, {0, 0}, 4).fault, EXEC_INVALID_LAUNCH);
    EXPECT_EQ(gpu.launch({1}, {1, 1, 65}, {0, 0}, 4).fault, EXEC_INVALID_LAUNCH);
    EXPECT_EQ(gpu.launch({0}, {1}, {0, 0}, 4).fault, EXEC_INVALID_LAUNCH);
    EXPECT_EQ(gpu.launch({1}, {1}, {0, 0}, 4, "missing").fault, EXEC_INVALID_LAUNCH);
    EXPECT_EQ(gpu.launch({1}, {1}, {0, 0}, 0).fault, EXEC_ILLEGAL_ADDRESS); // no dynamic shared memory at all
}

} // namespace
