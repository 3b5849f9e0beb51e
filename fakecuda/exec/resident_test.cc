// Kernels whose blocks wait for one another: they end where all that wait and all that are waited for are resident
// together, and are told where not.
#include "fakecuda/exec/checks.h"

namespace {

const std::string kBlock = kStart + "mov.u32 %r1, %ctaid.x; mov.u32 %r2, %nctaid.x; setp.eq.u32 %p2, %r0, 0;\n";

// All blocks of the grid meet at the counter p1[0].
std::string grid_barrier(const std::string &fence) {
    return "bar.sync 0; @!%p2 bra MET;\n" + fence +
           "red.global.add.u32 [%d1], 1;\n"
           "WAIT: ld.volatile.global.u32 %r3, [%d1]; setp.lt.u32 %p3, %r3, %r2; @%p3 bra WAIT;\n" +
           fence + "MET: bar.sync 0;\n";
}

// Each block writes its word of p0, and reads the next block's after all have met.
std::string exchange(const std::string &fence) {
    return kBlock + "mul.wide.u32 %d5, %r1, 4; add.s64 %d6, %d0, %d5; @%p2 st.global.u32 [%d6], %r1;\n" +
           grid_barrier(fence) +
           "add.s32 %r4, %r1, 1; rem.u32 %r4, %r4, %r2; mul.wide.u32 %d5, %r4, 4; add.s64 %d7, %d0, %d5;\n"
           "ld.global.u32 %r5, [%d7]; @%p2 st.global.u32 [%d6+1024], %r5; ret;";
}

struct Resident : Checks {
    // With counters at 0.
    Result start(const std::string &body, uint32_t blocks, uint32_t threads = 64) {
        data = numbers(512);
        return run(body, {threads}, {data, gpu.put(std::vector<uint32_t>(64))}, {blocks});
    }
    void ends(const std::string &body, uint32_t blocks) {
        for (gpu.seed = 1; gpu.seed <= 5; gpu.seed++) {
            Result r = start(body, blocks);
            ASSERT_EQ(r.fault, EXEC_OK) << r.message;
        }
    }
    void fails(const std::string &body, uint32_t blocks, const std::vector<std::string> &parts) {
        for (gpu.seed = 1; gpu.seed <= 5; gpu.seed++) {
            Result r = start(body, blocks);
            ASSERT_EQ(r.fault, EXEC_LAUNCH_FAILED);
            for (const std::string &part : parts) expect_in(r.message, part);
        }
    }
    uint64_t data;
};

TEST_F(Resident, ABarrierOfTheGrid) {
    ends(exchange("membar.gl;"), 16);
    for (uint32_t k = 0; k < 16; k++) EXPECT_EQ(gpu.get<uint32_t>(data + 1024, 16)[k], (k + 1) % 16);
    fails(exchange("membar.gl;"), 17,
          {"deadlock: waits for a block that is not resident: each of 16 resident blocks polls memory that "
           "no block changes, and 1 of 17 blocks have not begun"});
    gpu.resident = 17;
    ends(exchange("membar.gl;"), 17);
    gpu.resident = 4;
    ends(exchange("membar.gl;"), 4);
    fails(exchange("membar.gl;"), 10, {"each of 4 resident blocks", "and 6 of 10 blocks have not begun"});
    gpu.resident = 1; // one after another
    fails(exchange("membar.gl;"), 2, {"each of 1 resident blocks", "and 1 of 2 blocks have not begun"});
}

TEST_F(Resident, ABarrierOfTheGridWithoutAFence) {
    fails(exchange(""), 8, {"race in global memory", "reads what block", "wrote at ptx line "});
    fails(exchange("membar.cta;"), 8, {"race in global memory"});
}

// One that sleeps between its reads leaves its turn to the others: it waits in fewer instructions, and no less.
TEST_F(Resident, WhoSleepsLeavesItsTurn) {
    std::string sleeps = exchange("membar.gl;");
    sleeps.insert(sleeps.find("WAIT: ") + 6, "nanosleep.u32 32; ");
    ends(sleeps, 16);
    for (uint32_t k = 0; k < 16; k++) EXPECT_EQ(gpu.get<uint32_t>(data + 1024, 16)[k], (k + 1) % 16);
    fails(sleeps, 17, {"deadlock: waits for a block that is not resident", "and 1 of 17 blocks have not begun"});
    uint64_t awake = 0, asleep = 0;
    for (gpu.seed = 1; gpu.seed <= 5; gpu.seed++) {
        awake += start(exchange("membar.gl;"), 16).counters.warp_instructions;
        asleep += start(sleeps, 16).counters.warp_instructions;
    }
    EXPECT_LT(2 * asleep, awake);
}

TEST_F(Resident, OnSeveralHostThreads) {
    gpu.threads = 2;
    ends(exchange("membar.gl;"), 16);
}

// Whether the writer comes before those that wait is the seed's; it must not matter.
TEST_F(Resident, AFlag) {
    auto flag = [](const std::string &give, const std::string &wait) {
        return kBlock + "setp.eq.u32 %p1, %r1, 3; @!%p1 bra WAIT; @%p2 st.global.u32 [%d0], 77;\n" + give +
               " ret;\nWAIT: " + wait + " setp.eq.u32 %p3, %r3, 0; @%p3 bra WAIT; ld.global.u32 %r4, [%d0]; ret;";
    };
    std::string release = "@%p2 st.release.gpu.global.u32 [%d1], 1;", acquire = "ld.acquire.gpu.global.u32 %r3, [%d1];";
    ends(flag(release, acquire), 16);
    fails(flag("@%p2 st.relaxed.gpu.global.u32 [%d1], 1;", acquire), 16, {"race in global memory"});
    fails(flag(release, "ld.relaxed.gpu.global.u32 %r3, [%d1];"), 16, {"race in global memory"});
    fails(flag("@%p2 st.global.u32 [%d1], 1;", acquire), 16, {"race in global memory"});
    fails(flag(release, "ld.global.u32 %r3, [%d1];"), 16, {"race in global memory"});
    fails(flag("", acquire), 16, {"deadlock: each of the 15 blocks that have not ended polls memory"});
}

// A lock that is never released: an operation that changes nothing is no progress.
TEST_F(Resident, ALockThatIsKept) {
    fails(kBlock + "@!%p2 ret; AGAIN: atom.acquire.gpu.global.cas.b32 %r3, [%d1], 0, 1; setp.ne.u32 %p3, %r3, 0; @%p3 "
                   "bra AGAIN; "
                   "ret;",
          8, {"deadlock: each of the 7 blocks that have not ended"});
}

// Who reads long and changes nothing does not wait.
TEST_F(Resident, ALongSum) {
    ends(kBlock + "mov.u32 %r4, 0; LOOP: and.b32 %r5, %r4, 255; mul.wide.u32 %d5, %r5, 4; add.s64 %d6, %d0, %d5; "
                  "ld.volatile.global.u32 %r6, [%d6]; add.s32 %r4, %r4, 1; setp.lt.u32 %p3, %r4, 6000; @%p3 bra LOOP; "
                  "ret;",
         2);
}

TEST_F(Resident, SameSeedSameRun) {
    gpu.seed = 7;
    Result a = start(exchange("membar.gl;"), 16), b = start(exchange("membar.gl;"), 16);
    EXPECT_EQ(a.counters.warp_instructions, b.counters.warp_instructions);
    EXPECT_EQ(a.counters.longest_warp, b.counters.longest_warp);
}

} // namespace
