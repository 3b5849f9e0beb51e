// Races in global memory between blocks of one launch, and what orders them. Blocks run in an order of the seed's: what
// is found must be found in all of them.
#include "fakecuda/exec/checks.h"

namespace {

// Before the rest: %r1 = ctaid.x, %p1: block 0, %p2: thread 0.
const std::string kBlock = kStart + "mov.u32 %r1, %ctaid.x; setp.eq.u32 %p1, %r1, 0; setp.eq.u32 %p2, %r0, 0;\n";

struct RaceGlobal : Checks {
    void SetUp() override {
        data = numbers(256);
        other = numbers(256);
    }
    std::vector<uint64_t> params() { return {data, other}; }
    void race(const std::string &body, const std::vector<std::string> &parts, Dim grid = {2}, Dim block = {1}) {
        std::vector<std::string> all = {"race in global memory at 0x",
                                        " into an allocation of 1024 bytes: ", "of the same launch",
                                        "with nothing that orders the two blocks"};
        all.insert(all.end(), parts.begin(), parts.end());
        bad(kBlock + body, block, params(), EXEC_LAUNCH_FAILED, all, grid);
    }
    void fine(const std::string &body, Dim grid = {2}, Dim block = {1}) { good(kBlock + body, block, params(), grid); }
    uint64_t data, other;
};

// ---- without an order

// Whichever block runs first.
TEST_F(RaceGlobal, OneWritesAndTheOtherReads) {
    race("@%p1 st.global.u32 [%d0+8], 5;\n@!%p1 ld.global.u32 %r2, [%d0+8]; ret;",
         {"8 into an allocation", "block (0,0,0)", "block (1,0,0)", "at ptx line ", "(st.global.u32 [%d0+8], 5)",
          "(ld.global.u32 %r2, [%d0+8])"});
    fine("@%p1 st.global.u32 [%d0+8], 5;\n@!%p1 ld.global.u32 %r2, [%d0+12]; ret;");
    fine("@%p1 st.global.u32 [%d0+8], 5;\n@%p1 ld.global.u32 %r2, [%d0+8]; ret;"); // both block 0
}

TEST_F(RaceGlobal, AWriteFollowsTheReadOfManyBlocks) {
    race("ld.global.u32 %r2, [%d0]; setp.eq.u32 %p3, %r1, 5; @%p3 st.global.u32 [%d0], 0; ret;", {}, {8});
    fine("ld.global.u32 %r2, [%d0]; st.global.u32 [%d4], 1; ret;", {8});
    // In place, each its own word.
    std::string own = "mul.wide.u32 %d5, %r1, 4; add.s64 %d6, %d0, %d5; ld.global.u32 %r2, [%d6]; add.s32 %r2, %r2, "
                      "1; st.global.u32 [%d6], %r2;";
    fine(own + "ret;", {8});
    race(own + "ld.global.u32 %r2, [%d0+12]; ret;", {"12 into an allocation"}, {8});
}

TEST_F(RaceGlobal, AsynchronousCopiesRead) {
    race(".shared .align 16 .b8 s[16]; @%p1 st.global.u32 [%d0+4], 5;\n@!%p1 cp.async.ca.shared.global [s], [%d0], 16; "
         "cp.async.wait_all; ret;",
         {"4 into an allocation", "reads"});
}

TEST_F(RaceGlobal, TwoWrite) {
    race("st.global.u32 [%d0], %r1; ret;", {"writes another value over what block", "wrote at ptx line "});
    fine("st.global.u32 [%d0], 7; ret;", {8}, {64});
    race("st.global.u32 [%d0], 7; ld.global.u32 %r2, [%d0]; ret;", {"reads"}, {8}); // a read beside is not fine
    race("@%p1 ld.global.u32 %r2, [%d0]; st.global.u32 [%d0], 7; ret;", {"block (0,0,0)"}, {2});
}

TEST_F(RaceGlobal, BytesOfOneWord) {
    std::string halves = "and.b32 %r2, %r1, 1; mul.wide.u32 %d5, %r2, 2; add.s64 %d6, %d0, %d5; cvt.u16.u32 %h1, %r1; "
                         "st.global.u16 [%d6], %h1;";
    fine(halves + "ld.global.u16 %h2, [%d6]; ret;");
    race(halves + "ld.global.u16 %h2, [%d0]; ret;", {"reads"});
    race(halves + "ret;", {"writes another value"}, {3});
}

TEST_F(RaceGlobal, LaunchesAreOrdered) {
    std::string body = kBlock + "ld.global.u32 %r2, [%d3]; add.s32 %r2, %r2, 1; st.global.u32 [%d3], %r2; ret;";
    for (int k = 0; k < 3; k++) good(body, {32}, params(), {1});
}

TEST_F(RaceGlobal, SeveralHostThreads) {
    gpu.threads = 4;
    fine("mul.wide.u32 %d5, %r1, 4; add.s64 %d6, %d0, %d5; st.global.u32 [%d6], %r1; st.global.u32 [%d1], 1; ret;",
         {128});
    race("st.global.u32 [%d0], %r1; ret;", {"writes another value over what block"}, {64});
}

// ---- atomics

TEST_F(RaceGlobal, AtomicsDoNotRaceWithEachOther) {
    fine("red.global.add.u32 [%d0], 1; atom.global.max.u32 %r2, [%d0], %r1; ld.volatile.global.u32 %r3, [%d0]; "
         "st.relaxed.gpu.global.u32 [%d0], %r1; ret;",
         {8}, {32});
    race("red.global.add.u32 [%d0], 1;\n@%p1 ld.global.u32 %r2, [%d0]; ret;", {"(red.global.add.u32 [%d0], 1)"});
    race("red.global.add.u32 [%d0], 1;\n@%p1 st.global.u32 [%d0], 3; ret;", {});
    race("red.cta.global.add.u32 [%d0], 1; ret;", {}); // of a scope that the other block is not in
}

// ---- order: the last block reads what all have written

// p0: one word of each block; p1: the ticket at 0, the result at 4.
std::string last_block(const std::string &before, const std::string &ticket, const std::string &after) {
    return ".shared .align 4 .b8 last[4]; mul.wide.u32 %d5, %r1, 4; add.s64 %d6, %d0, %d5;\n"
           "@%p2 st.global.u32 [%d6], %r1;\n" +
           before + "\n@!%p2 bra MEET; mov.u32 %r5, %nctaid.x; sub.s32 %r5, %r5, 1;\n" + ticket +
           "\nset.eq.u32.u32 %r6, %r4, %r5; st.shared.u32 [last], %r6; MEET: bar.sync 0; ld.shared.u32 %r6, [last]; "
           "setp.eq.u32 %p3, %r6, 0; @%p3 bra END;\n" +
           after + "\nmov.u32 %r7, 0; mov.u32 %r8, 0; mov.u64 %d7, %d0;\n" +
           "LOOP: ld.global.u32 %r9, [%d7]; add.s32 %r8, %r8, %r9; add.s64 %d7, %d7, 4; add.s32 %r7, %r7, 1; "
           "setp.le.u32 %p4, %r7, %r5; @%p4 bra LOOP; @%p2 st.global.u32 [%d1+4], %r8;\n"
           "mov.u32 %r5, 0; @%p2 st.global.u32 [%d1], 0; END: ret;";
}

const char *const kTicket = "atom.global.inc.u32 %r4, [%d1], %r5;";

struct LastBlock : RaceGlobal {
    enum { BLOCKS = 40 };
    // %r5 must be the number of blocks - 1 in all threads of the last block.
    std::string after(const std::string &fence) { return fence + "mov.u32 %r5, %nctaid.x; sub.s32 %r5, %r5, 1;"; }
    void fine_sum(const std::string &body, Dim block = {64}) {
        for (gpu.seed = 1; gpu.seed <= 6; gpu.seed++) {
            other = gpu.put(std::vector<uint32_t>(256));
            Result r = run(kBlock + body, block, params(), {BLOCKS});
            ASSERT_EQ(r.fault, EXEC_OK) << r.message;
            EXPECT_EQ(gpu.get<uint32_t>(other, 2)[1], BLOCKS * (BLOCKS - 1) / 2u);
        }
    }
    void race_sum(const std::string &body, const std::vector<std::string> &parts = {}, Dim block = {64}) {
        other = gpu.put(std::vector<uint32_t>(256));
        for (gpu.seed = 1; gpu.seed <= 6; gpu.seed++) {
            gpu.load_body(kBlock + body);
            Result r = gpu.launch({BLOCKS}, block, params());
            EXPECT_EQ(r.fault, EXEC_LAUNCH_FAILED) << r.message;
            for (const std::string &part : parts) expect_in(r.message, part);
            other = gpu.put(std::vector<uint32_t>(256));
        }
    }
    const std::vector<std::string> reads = {"race in global memory", "reads what block", "wrote at ptx line ",
                                            "(st.global.u32 [%d6], %r1)"};
};

TEST_F(LastBlock, Right) {
    fine_sum(last_block("membar.gl;", kTicket, after("membar.gl;")));
    fine_sum(last_block("bar.sync 0;", std::string("membar.gl;") + kTicket + "membar.gl;", after("")));
    fine_sum(last_block("fence.sc.sys; bar.sync 0;", kTicket, after("membar.sys;")));
    fine_sum(last_block("", "atom.acq_rel.gpu.global.inc.u32 %r4, [%d1], %r5;", after("")));
    gpu.threads = 3;
    fine_sum(last_block("membar.gl;", kTicket, after("membar.gl;")));
}

TEST_F(LastBlock, NoFenceBeforeTheTicket) {
    race_sum(last_block("", kTicket, after("membar.gl;")), reads);
    race_sum(last_block("bar.sync 0;", kTicket, after("membar.gl;")), reads);
    race_sum(last_block("membar.cta;", kTicket, after("membar.gl;")), reads); // a fence for the block only
    race_sum(last_block("", "atom.acquire.gpu.global.inc.u32 %r4, [%d1], %r5;", after("")), reads);
}

TEST_F(LastBlock, NoFenceBehindTheTicket) {
    race_sum(last_block("membar.gl;", kTicket, after("")), reads);
    race_sum(last_block("", "atom.release.gpu.global.inc.u32 %r4, [%d1], %r5;", after("")), reads);
}

// What is written after the fence is not released.
TEST_F(LastBlock, FenceTooEarly) {
    std::string body = last_block("", kTicket, after("membar.gl;"));
    body.replace(body.find("@%p2 st.global"), 0, "membar.gl; ");
    race_sum(body, reads);
}

// Of thread 0 after a barrier, for all. Another thread of its warp writes, or one of another warp.
struct OneFence : LastBlock {
    const std::string fence = "fence.acq_rel.gpu;", back = "setp.eq.u32 %p2, %r0, 0;";
    std::string written_by(int thread, const std::string &before, const std::string &ticket, const std::string &last) {
        return "setp.eq.u32 %p2, %r0, " + std::to_string(thread) + ";" + last_block(back + before, ticket, after(last));
    }
};

TEST_F(OneFence, IsEnough) {
    const std::string release = "atom.release.gpu.global.inc.u32 %r4, [%d1], %r5;";
    for (int thread : {0, 5, 32}) {
        fine_sum(written_by(thread, "bar.sync 0;", fence + kTicket + fence, ""));
        fine_sum(written_by(thread, "bar.sync 0;", release + fence, ""));
        fine_sum(written_by(thread, "bar.sync 0;", release, "@%p2 fence.acq_rel.gpu; bar.sync 0;"));
    }
    fine_sum(written_by(0, fence + "bar.sync 0;", kTicket + fence, "")); // its own
}

TEST_F(OneFence, BeforeTheBarrier) {
    for (int thread : {5, 32}) {
        race_sum(written_by(thread, "@%p2 fence.acq_rel.gpu; bar.sync 0;", kTicket + fence, ""), reads);
        race_sum(written_by(thread, "", fence + kTicket + fence, ""), {"race in global memory"}); // no barrier
        // What each thread fences is in no release of thread 0's, but by the order of fence.sc.
        race_sum(written_by(thread, fence + "bar.sync 0;", kTicket + fence, ""), reads);
        fine_sum(written_by(thread, "fence.sc.gpu; bar.sync 0;", kTicket, "fence.sc.gpu;"));
    }
}

TEST_F(OneFence, AfterTheTicket) {
    const std::string ticket = fence + kTicket;
    race_sum(written_by(5, "bar.sync 0;", ticket, ""), reads);
    race_sum(written_by(5, "bar.sync 0;", ticket, "@%p2 fence.acq_rel.gpu;"), reads); // no barrier
    race_sum(written_by(5, "bar.sync 0;", ticket, "setp.eq.u32 %p5, %r0, 1; @%p5 " + fence + "bar.sync 0;"), reads);
    fine_sum(written_by(5, "bar.sync 0;", ticket, "setp.eq.u32 %p5, %r0, 1; @%p5 fence.sc.gpu; bar.sync 0;"));
}

// Another warp writes, and no barrier comes before the fence.
TEST_F(LastBlock, NoBarrierBeforeTheFence) {
    std::string write = "setp.eq.u32 %p2, %r0, 32;", back = "setp.eq.u32 %p2, %r0, 0;",
                fenced = std::string("membar.gl;") + kTicket;
    fine_sum(write + last_block(back + "bar.sync 0;", fenced, after("membar.gl;")));
    race_sum(write + last_block(back, fenced, after("membar.gl;")), {"race in global memory"});
}

// The stamps of block 0's warp begin again between what it writes and the ticket.
TEST_F(LastBlock, ManyClocks) {
    std::string turn = "mov.u32 %r20, 0; TURN: ";
    for (int k = 0; k < 16; k++) turn += "bar.warp.sync -1; ";
    turn += "add.s32 %r20, %r20, 1; setp.lt.u32 %p5, %r20, 70000; and.pred %p5, %p5, %p1; @%p5 bra TURN;\n";
    fine_sum(last_block(turn + "membar.gl;", kTicket, after("membar.gl;")), {32});
    fine_sum(last_block("membar.gl;" + turn, kTicket, after("membar.gl;")), {32});
    race_sum(last_block(turn, kTicket, after("membar.gl;")), {"race in global memory", "reads what block"}, {32});
}

// ---- order through other blocks, and locks

// Block k adds its number under a lock to what the others left.
TEST_F(RaceGlobal, Lock) {
    auto lock = [](const std::string &take, const std::string &give) {
        return "AGAIN: " + take + " setp.ne.u32 %p3, %r2, 0; @%p3 bra AGAIN;\n" +
               "ld.global.u32 %r3, [%d0]; add.s32 %r3, %r3, %r1; st.global.u32 [%d0], %r3;\n" + give + " ret;";
    };
    std::string relaxed = "atom.global.cas.b32 %r2, [%d1], 0, 1;", exchange = "atom.global.exch.b32 %r4, [%d1], 0;";
    std::string acquire = "atom.acquire.gpu.global.cas.b32 %r2, [%d1], 0, 1;",
                release = "st.release.gpu.global.u32 [%d1], 0;";
    for (const std::string &right : {lock(acquire, release), lock(relaxed + "membar.gl;", "membar.gl;" + exchange),
                                     lock(acquire, "membar.gl; st.volatile.global.u32 [%d1], 0;")}) {
        data = gpu.put(std::vector<uint32_t>(256));
        other = gpu.put(std::vector<uint32_t>(256));
        fine(right, {20});
        EXPECT_EQ(gpu.get<uint32_t>(data, 1)[0], 3 * 190u); // three seeds
    }
    for (const std::string &wrong : {lock(relaxed, release), lock(acquire, exchange), lock(relaxed, exchange),
                                     lock(acquire, "st.volatile.global.u32 [%d1], 0;")}) {
        for (gpu.seed = 1; gpu.seed <= 3; gpu.seed++) {
            other = gpu.put(std::vector<uint32_t>(256));
            Result r = run(kBlock + wrong, {1}, params(), {20});
            EXPECT_EQ(r.fault, EXEC_LAUNCH_FAILED) << wrong;
            expect_in(r.message, "race in global memory");
        }
    }
}

// The counter at p1 gives each block its turn; in turn k a block sets flag k after flag k - 1. What the first wrote is
// known to the last through all between.
std::string chain(const std::string &fence) {
    return "atom.global.add.u32 %r2, [%d1], 1; mul.wide.u32 %d5, %r2, 4; add.s64 %d6, %d1, %d5;\n"
           "setp.ne.u32 %p3, %r2, 0; @%p3 bra WAIT; st.global.u32 [%d0], 9; bra GIVE;\n"
           "WAIT: ld.volatile.global.u32 %r3, [%d6+16]; setp.eq.u32 %p4, %r3, 0; @%p4 bra WAIT;\n" +
           fence +
           "\nsetp.ne.u32 %p5, %r2, 15; @%p5 bra GIVE; ld.global.u32 %r4, [%d0];\n"
           "GIVE: membar.gl; st.volatile.global.u32 [%d6+20], 1; ret;";
}

TEST_F(RaceGlobal, OrderThroughOthers) {
    for (gpu.seed = 1; gpu.seed <= 3; gpu.seed++) {
        other = gpu.put(std::vector<uint32_t>(256));
        Result r = run(kBlock + chain("membar.gl;"), {1}, params(), {16});
        EXPECT_EQ(r.fault, EXEC_OK) << r.message;
        other = gpu.put(std::vector<uint32_t>(256));
        r = run(kBlock + chain(""), {1}, params(), {16});
        EXPECT_EQ(r.fault, EXEC_LAUNCH_FAILED);
        expect_in(r.message, "reads what block");
    }
}

} // namespace
