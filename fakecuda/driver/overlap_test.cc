// overlap_test.cc: kernels that need not wait for the one before them (programmatic dependent launch), in streams and
// in graphs, and what is found when one counts on what it did not wait for.
#include "fakecuda/driver/stand_in.h"

namespace {

// write(p): *p = 5.  waits(p, q): waits, *q = *p + 1.  late(p, q): the same, but it reads *p first.
// never(p, q): *q = 1 and no wait.
const char *const OVERLAPPING = R"(
.version 8.0
.target sm_90
.address_size 64
.visible .entry write(.param .u64 p)
{
    .reg .b32 %r<4>;
    .reg .b64 %d<4>;
    ld.param.u64 %d1, [p];
    griddepcontrol.wait;
    griddepcontrol.launch_dependents;
    mov.u32 %r1, 5;
    st.global.u32 [%d1], %r1;
    ret;
}
.visible .entry waits(.param .u64 p, .param .u64 q)
{
    .reg .b32 %r<4>;
    .reg .b64 %d<4>;
    ld.param.u64 %d1, [p];
    ld.param.u64 %d2, [q];
    griddepcontrol.wait;
    ld.global.u32 %r1, [%d1];
    add.u32 %r1, %r1, 1;
    st.global.u32 [%d2], %r1;
    ret;
}
.visible .entry late(.param .u64 p, .param .u64 q)
{
    .reg .b32 %r<4>;
    .reg .b64 %d<4>;
    ld.param.u64 %d1, [p];
    ld.param.u64 %d2, [q];
    ld.global.u32 %r1, [%d1];
    griddepcontrol.wait;
    add.u32 %r1, %r1, 1;
    st.global.u32 [%d2], %r1;
    ret;
}
.visible .entry never(.param .u64 p, .param .u64 q)
{
    .reg .b32 %r<4>;
    .reg .b64 %d<4>;
    ld.param.u64 %d2, [q];
    mov.u32 %r1, 1;
    st.global.u32 [%d2], %r1;
    ret;
}
)";

class Overlap : public StandIn {
  protected:
    void open(std::vector<std::pair<std::string, std::string>> environment = {}) {
        start(environment);
        s = stream();
        m = module_of(OVERLAPPING);
        p = alloc(4), q = alloc(4), r = alloc(4);
        EXPECT_EQ(CU_SUCCESS, cu.fill32(p, 0, 1, s));
        EXPECT_EQ(CU_SUCCESS, cu.fill32(q, 0, 1, s));
        EXPECT_EQ(CU_SUCCESS, cu.fill32(r, 0, 1, s));
    }
    CuResult put(const char *name, std::vector<void *> params, bool programmatic = true) {
        CuLaunchAttribute attribute = {};
        attribute.id = CU_LAUNCH_PROGRAMMATIC_SERIALIZATION;
        attribute.value.flag = programmatic;
        CuLaunchConfig config = {{1, 1, 1}, {1, 1, 1}, 0, s, &attribute, 1};
        return cu.launch_ex(&config, function_of(m, name), params.data(), nullptr);
    }
    // What |enqueue| puts into the stream, there and in a graph. What is in *|result|; a race: what its message says.
    template <class F> void run(F enqueue, uint32_t wanted, const std::string &race = "", bool in_streams = true) {
        for (bool captured : {false, true}) {
            if (!captured && !in_streams) continue;
            open();
            CuGraph graph = nullptr;
            CuGraphExec exec = nullptr;
            if (captured) cu.capture_begin(s, CU_CAPTURE_THREAD_LOCAL);
            enqueue();
            if (captured) {
                EXPECT_EQ(CU_SUCCESS, cu.capture_end(s, &graph));
                EXPECT_EQ(CU_SUCCESS, cu.graph_instantiate(&exec, graph, 0));
                EXPECT_EQ(CU_SUCCESS, cu.graph_launch(exec, s));
            }
            EXPECT_EQ(race.empty() ? CU_SUCCESS : CU_LAUNCH_FAILED, cu.stream_sync(s)) << captured;
            if (race.empty()) {
                EXPECT_EQ(wanted, read(r, 1, s)[0]);
            } else {
                EXPECT_TRUE(report().mentions("faults", race)) << race;
            }
        }
    }
    CuStream s = nullptr;
    CuModule m = nullptr;
    CuPointer p = 0, q = 0, r = 0;
};

TEST_F(Overlap, WhoWaitsSeesWhatWasWritten) {
    run(
        [&] {
            EXPECT_EQ(CU_SUCCESS, put("write", {&p}));
            EXPECT_EQ(CU_SUCCESS, put("waits", {&p, &q}));
            EXPECT_EQ(CU_SUCCESS, put("waits", {&q, &r})); // of both before it
            EXPECT_EQ(CU_SUCCESS, put("waits", {&p, &r}));
        },
        6);
}

TEST_F(Overlap, AWaitThatIsMissingOrLate) {
    const std::string race = "reads what an earlier launch wrote, which may not have ended";
    run([&] { put("write", {&p}), put("late", {&p, &r}); }, 0, race);
    run([&] { put("write", {&p}), put("waits", {&p, &q}), put("late", {&p, &r}); }, 0, race); // the first of three
    run([&] { put("write", {&p}), put("never", {&p, &p}); }, 0, "writes what an earlier launch wrote");
}

TEST_F(Overlap, OneWithoutAWaitHandsOnWhatItDidNotWaitFor) {
    const std::string race = "a launch between them has not executed griddepcontrol.wait";
    run([&] { put("write", {&p}), put("never", {&q, &q}), put("waits", {&p, &r}); }, 0, race);
    run([&] { put("write", {&p}), put("never", {&q, &q}), put("waits", {&p, &r}, false); }, 0, race, false);
}

TEST_F(Overlap, FullDependenceNeedsNoWait) {
    run([&] { put("write", {&p}), put("late", {&p, &r}, false); }, 6);
    run( // after a fill every launch waits
        [&] {
            put("write", {&p});
            EXPECT_EQ(CU_SUCCESS, cu.fill32(q, 0, 1, s));
            put("late", {&p, &r});
        },
        6);
    run([&] { put("late", {&q, &r}); }, 1); // the first of a graph
}

TEST_F(Overlap, WhereItIsNotKnown) {
    start({{"ARCH", "89"}});
    CuModule old = module_of(KERNELS);
    CuLaunchAttribute attribute = {};
    attribute.id = CU_LAUNCH_PROGRAMMATIC_SERIALIZATION;
    attribute.value.flag = 1;
    CuStream stream = this->stream();
    CuLaunchConfig config = {{1, 1, 1}, {1, 1, 1}, 0, stream, &attribute, 1};
    CuPointer at = alloc(4);
    void *params[] = {&at};
    EXPECT_EQ(CU_NOT_SUPPORTED, cu.launch_ex(&config, function_of(old, "store_at"), params, nullptr));
    attribute.id = 2; // cooperative
    EXPECT_EQ(CU_NOT_SUPPORTED, cu.launch_ex(&config, function_of(old, "store_at"), params, nullptr));
    config.attribute_count = 0;
    EXPECT_EQ(CU_SUCCESS, cu.launch_ex(&config, function_of(old, "store_at"), params, nullptr));
    EXPECT_EQ(CU_INVALID_VALUE, cu.launch_ex(nullptr, function_of(old, "store_at"), params, nullptr));

    open({{"ARCH", "90"}, {"DRIVER_VERSION", "12020"}}); // graphs take it from 12.3 on
    EXPECT_EQ(CU_SUCCESS, put("write", {&p}));
    EXPECT_EQ(CU_SUCCESS, cu.capture_begin(s, CU_CAPTURE_THREAD_LOCAL));
    EXPECT_EQ(CU_NOT_SUPPORTED, put("waits", {&p, &q}));
}

} // namespace
