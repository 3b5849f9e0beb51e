// Launches that begin before the one before them has ended: what they may not touch before griddepcontrol.wait.
#include "fakecuda/exec/checks.h"

namespace {

enum { NEVER = 0xffffffffu };

struct Dependent : Checks {
    Dependent() : Checks(90), data(numbers(256)), other(numbers(256)) {}
    // A launch that writes |data| by two blocks of 32 threads and ends before the one after it may count on anything.
    ExecBeside first() {
        ExecBeside all_done = {};
        Result r = launch("st.global.u32 [%d3], 7; ld.global.u32 %r2, [%d4]; ret;", &all_done);
        EXPECT_EQ(EXEC_OK, r.fault) << r.message;
        EXPECT_FALSE(all_done.waited);
        EXPECT_GT(all_done.start, 0u);
        return all_done;
    }
    Result launch(const std::string &body, ExecBeside *beside) {
        gpu.beside = beside;
        Result r = run(kStart + body, {32}, {data, other}, {2});
        gpu.beside = nullptr;
        return r;
    }
    static ExecBeside dependent_on(const ExecBeside &before) { return {{before.start, NEVER}, {}, 0, false}; }
    void race(const std::string &body, const std::vector<std::string> &parts) {
        for (gpu.seed = 1; gpu.seed <= 3; gpu.seed++) {
            ExecBeside beside = dependent_on(first());
            Result r = launch(body, &beside);
            EXPECT_EQ(EXEC_LAUNCH_FAILED, r.fault) << body;
            for (const std::string &part : parts) expect_in(r.message, part);
        }
    }
    void fine(const std::string &body, bool waited) {
        ExecBeside beside = dependent_on(first());
        Result r = launch(body, &beside);
        EXPECT_EQ(EXEC_OK, r.fault) << r.message;
        EXPECT_EQ(waited, beside.waited);
    }
    uint64_t data, other;
};

const std::string kWait = "griddepcontrol.wait;\n";

TEST_F(Dependent, MayTouchAnythingOnceItHasWaited) {
    fine(kWait + "ld.global.u32 %r2, [%d3]; ret;", true);
    fine(kWait + "st.global.u32 [%d3], 9; st.global.u32 [%d4], 9; ret;", true);
    fine("griddepcontrol.launch_dependents;\n" + kWait + "ld.global.u32 %r2, [%d3]; ret;", true);
}

TEST_F(Dependent, ReadsBeforeItWaits) {
    const std::string read = "ld.global.u32 %r2, [%d3];\n";
    race(read + kWait + "ret;",
         {"ld.global.u32 %r2, [%d3]", "reads what an earlier launch wrote, which may not have ended",
          "this thread has not executed griddepcontrol.wait", "thread (0,0,0)"});
    race(read + "ret;", {"reads what an earlier launch wrote"});
    race(".shared .align 16 .b8 s[16];\ncp.async.ca.shared.global [s], [%d0], 16; cp.async.wait_all;\n" + kWait +
             "ret;",
         {"reads what an earlier launch wrote"});
    race("ld.global.nc.u32 %r2, [%d3];\n" + kWait + "ret;", {"reads what an earlier launch wrote"});
    race("atom.global.add.u32 %r2, [%d3], 1;\n" + kWait + "ret;", {"what an earlier launch wrote"});
}

TEST_F(Dependent, WritesBeforeItWaits) {
    race("st.global.u32 [%d3], 7;\n" + kWait + "ret;", {"writes what an earlier launch wrote"}); // equal bytes, too
    race("st.global.u32 [%d4], 7;\n" + kWait + "ret;", {"writes what an earlier launch reads"});
}

TEST_F(Dependent, MayTouchWhatNoOtherLaunchDoes) {
    fine("ld.global.u32 %r2, [%d4]; ld.global.u32 %r2, [%d3+256]; st.global.u32 [%d3+512], 1;\n" + kWait + "ret;",
         true);
}

// Half of the threads, or of the blocks, do not count for the others.
TEST_F(Dependent, EveryThreadWaits) {
    race("setp.lt.u32 %p1, %r0, 16;\n@%p1 griddepcontrol.wait;\nld.global.u32 %r2, [%d3]; ret;", {"thread (16,0,0)"});
    fine("setp.lt.u32 %p1, %r0, 16;\n@!%p1 ret;\ngriddepcontrol.wait;\nld.global.u32 %r2, [%d3]; ret;", false);
    fine("mov.u32 %r1, %ctaid.x; setp.eq.u32 %p1, %r1, 0;\n@!%p1 ret;\ngriddepcontrol.wait;\nret;", false);
}

// What the launch before did not wait for may still run when it has ended.
TEST_F(Dependent, CountsOnWhatTheLaunchBeforeWaitedFor) {
    ExecBeside a = first(), b = dependent_on(a);
    EXPECT_EQ(EXEC_OK, launch("ret;", &b).fault);
    EXPECT_FALSE(b.waited);
    ExecBeside c = {{a.start, NEVER}, {a.start, b.start}, 0, false};
    Result r = launch(kWait + "ld.global.u32 %r2, [%d3]; ret;", &c);
    EXPECT_EQ(EXEC_LAUNCH_FAILED, r.fault);
    expect_in(r.message, "a launch between them has not executed griddepcontrol.wait");
}

TEST_F(Dependent, NeedsSm90) {
    Gpu older(80);
    older.load_body(kWait + "ret;");
    expect_in(older.launch({}, {32}, {data, other}).message, "needs sm_90 or higher");
    expect_in(run("griddepcontrol.rest;\nret;", {32}, {data, other}).message, "rest");
}

} // namespace
