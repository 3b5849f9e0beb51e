// capture_test.cc: stream capture and graphs, and their misuse.
#include <functional>
#include <thread>

#include "fakecuda/driver/stand_in.h"

namespace {

enum { GLOBAL = 0, THREAD_LOCAL = 1, RELAXED = 2 };

class Captures : public StandIn {
  protected:
    void open() {
        start();
        s = stream();
        p = alloc(64);
    }
    // The capture is over; what the end of it says.
    CuResult end(CuStream of) {
        CuGraph g = nullptr;
        CuResult result = cu.capture_end(of, &g);
        if (result != CU_SUCCESS) EXPECT_EQ(nullptr, g);
        else EXPECT_EQ(CU_SUCCESS, cu.graph_destroy(g));
        return result;
    }
    CuStream s = nullptr;
    CuPointer p = 0;
};

TEST_F(Captures, AGraphDoesTheWorkOfEachLaunch) {
    over_seeds([&] {
        CuStream s = stream();
        CuPointer p = alloc(16), n_at = alloc(4);
        CuModule m = module_of(KERNELS);
        CuFunction add = function_of(m, "add_one");
        uint32_t *in = pinned(4), *out = pinned(4), n = 4;
        EXPECT_EQ(CU_SUCCESS, cu.capture_begin(s, CU_CAPTURE_THREAD_LOCAL));
        EXPECT_EQ(CU_SUCCESS, cu.fill32(n_at, 9, 1, s));
        EXPECT_EQ(CU_SUCCESS, cu.copy_in(p, in, 16, s));
        EXPECT_EQ(CU_SUCCESS, launch(add, 32, s, {&p, &n}));
        n = 2; // taken at the launch
        EXPECT_EQ(CU_SUCCESS, launch(add, 32, s, {&p, &n}));
        EXPECT_EQ(CU_SUCCESS, cu.copy_out(out, p, 16, s));
        CuGraph graph = nullptr;
        EXPECT_EQ(CU_SUCCESS, cu.capture_end(s, &graph));
        EXPECT_EQ(0, report().total("bytes_filled")); // nothing has run
        size_t count = 0;
        EXPECT_EQ(CU_SUCCESS, cu.graph_node_count(graph, nullptr, &count));
        EXPECT_EQ(5u, count);
        CuGraphNode nodes[8];
        count = 8;
        EXPECT_EQ(CU_SUCCESS, cu.graph_node_count(graph, nodes, &count));
        EXPECT_EQ(5u, count);
        EXPECT_EQ(nullptr, nodes[5]);
        CuGraphExec exec = nullptr;
        EXPECT_EQ(CU_SUCCESS, cu.graph_instantiate(&exec, graph, 0));
        EXPECT_EQ(CU_SUCCESS, cu.graph_destroy(graph));
        for (uint32_t round = 0; round < 3; round++) {
            for (uint32_t i = 0; i < 4; i++) in[i] = 10 * i + round;
            EXPECT_EQ(CU_SUCCESS, cu.graph_launch(exec, s));
            EXPECT_EQ(CU_SUCCESS, cu.stream_sync(s));
            for (uint32_t i = 0; i < 4; i++) EXPECT_EQ(10 * i + round + (i < 2 ? 2 : 1), out[i]);
        }
        EXPECT_EQ(CU_SUCCESS, cu.graph_launch(exec, s));
        EXPECT_EQ(CU_SUCCESS, cu.graph_exec_destroy(exec)); // that launch goes on
        EXPECT_EQ(CU_INVALID_VALUE, cu.graph_launch(exec, s));
        EXPECT_EQ(CU_SUCCESS, cu.stream_sync(s));
        Report r = report();
        EXPECT_EQ(4, r.total("graph_launches"));
        EXPECT_EQ(8, r.total("launches"));
        EXPECT_EQ(8, r.number(r.kernel("add_one"), "graph_launches"));
        EXPECT_EQ(64, r.total("bytes_host_to_device"));
        return true;
    });
}

TEST_F(Captures, LaunchesOfOneGraphDoNotOverlap) {
    over_seeds([&] {
        CuStream s = stream(), other = stream();
        CuPointer p = alloc(4), q = alloc(4);
        EXPECT_EQ(CU_SUCCESS, cu.capture_begin(s, GLOBAL));
        EXPECT_EQ(CU_SUCCESS, cu.copy(q, p, 4, s));
        CuGraph graph;
        EXPECT_EQ(CU_SUCCESS, cu.capture_end(s, &graph));
        CuGraphExec exec;
        EXPECT_EQ(CU_SUCCESS, cu.graph_instantiate(&exec, graph, 0));
        EXPECT_EQ(CU_SUCCESS, cu.fill32(p, 1, 1, s));
        EXPECT_EQ(CU_SUCCESS, cu.graph_launch(exec, s));
        EXPECT_EQ(CU_SUCCESS, cu.graph_launch(exec, other));
        EXPECT_EQ(1u, read(q, 1, other)[0]); // the second launch waited for the first, which waited for the fill
        return true;
    });
}

TEST_F(Captures, ForkAndJoin) {
    std::set<bool> order = over_seeds([&] {
        CuStream a = stream(), b = stream();
        CuEvent fork = event(), join = event();
        CuPointer p = alloc(16);
        EXPECT_EQ(CU_SUCCESS, cu.capture_begin(a, CU_CAPTURE_THREAD_LOCAL));
        EXPECT_EQ(CU_SUCCESS, cu.fill32(p, 1, 4, a));
        EXPECT_EQ(CU_SUCCESS, cu.event_record(fork, a));
        EXPECT_EQ(CU_SUCCESS, cu.stream_wait(b, fork, 0));
        EXPECT_EQ(CU_SUCCESS, cu.fill32(p, 2, 1, a));
        EXPECT_EQ(CU_SUCCESS, cu.fill32(p, 3, 1, b)); // beside the one before
        EXPECT_EQ(CU_SUCCESS, cu.event_record(join, b));
        EXPECT_EQ(CU_SUCCESS, cu.stream_wait(a, join, 0));
        EXPECT_EQ(CU_SUCCESS, cu.copy(p + 4, p, 4, a));
        CuGraph graph;
        EXPECT_EQ(CU_SUCCESS, cu.capture_end(a, &graph));
        EXPECT_EQ(CU_SUCCESS, cu.fill32(p, 9, 4, b)); // b works by itself again
        EXPECT_EQ(CU_SUCCESS, cu.stream_sync(b));
        CuGraphExec exec;
        EXPECT_EQ(CU_SUCCESS, cu.graph_instantiate(&exec, graph, 0));
        EXPECT_EQ(CU_SUCCESS, cu.graph_launch(exec, a));
        std::vector<uint32_t> out = read(p, 4, a);
        EXPECT_EQ(out[0], out[1]);
        EXPECT_EQ(1u, out[2]);
        EXPECT_TRUE(out[0] == 2 || out[0] == 3) << out[0];
        return out[0] == 2;
    });
    EXPECT_EQ(2u, order.size());
}

// A graph that fills p, records an event, and then fills q.
class Records : public Captures {
  protected:
    CuGraphExec make(CuEvent e) {
        EXPECT_EQ(CU_SUCCESS, cu.capture_begin(s, CU_CAPTURE_THREAD_LOCAL));
        EXPECT_EQ(CU_SUCCESS, cu.fill32(p, 5, 1, s));
        EXPECT_EQ(CU_SUCCESS, cu.event_record_flags(e, s, CU_EVENT_RECORD_EXTERNAL));
        for (int i = 0; i < 50; i++) EXPECT_EQ(CU_SUCCESS, cu.fill32(q, 6, 1, s));
        CuGraph graph = nullptr;
        EXPECT_EQ(CU_SUCCESS, cu.capture_end(s, &graph));
        CuGraphExec exec = nullptr;
        EXPECT_EQ(CU_SUCCESS, cu.graph_instantiate(&exec, graph, 0));
        EXPECT_EQ(CU_SUCCESS, cu.graph_destroy(graph));
        return exec;
    }
    void open() {
        s = stream(), p = alloc(4), q = alloc(4), r = alloc(4);
        EXPECT_EQ(CU_SUCCESS, cu.fill32(q, 0, 1, s));
    }
    CuPointer q = 0, r = 0;
};

// Who waits for the event waits for what comes before it, of the launch that was the last when it was asked for.
TEST_F(Records, InsideAGraph) {
    std::set<bool> ended = over_seeds([&] {
        open();
        CuStream other = stream();
        CuEvent e = event(), there = event();
        uint32_t *copy = pinned(1);
        CuGraphExec exec = make(e);
        EXPECT_EQ(CU_SUCCESS, cu.event_query(e)); // no launch has recorded it
        for (uint32_t round = 1; round <= 3; round++) {
            EXPECT_EQ(CU_SUCCESS, cu.fill32(p, 0, 1, s));
            EXPECT_EQ(CU_SUCCESS, cu.graph_launch(exec, s));
            EXPECT_EQ(CU_SUCCESS, cu.stream_wait(other, e, 0));
            EXPECT_EQ(CU_SUCCESS, cu.copy_out(copy, p, 4, other));
            EXPECT_EQ(CU_SUCCESS, cu.event_record(there, other));
            EXPECT_EQ(CU_SUCCESS, cu.event_sync(there));
            EXPECT_EQ(5u, *copy);
            EXPECT_EQ(CU_SUCCESS, cu.event_query(e));
            EXPECT_EQ(CU_SUCCESS, cu.event_sync(e));
            if (round == 3) break;
            EXPECT_EQ(CU_SUCCESS, cu.stream_sync(s));
        }
        return report().total("bytes_filled") == 4 * (1 + 3 * (1 + 51));
    });
    EXPECT_EQ(2u, ended.size()); // the other work of the graph may go on meanwhile, and no wait needs it
}

TEST_F(Records, WhatIsRefused) {
    start();
    open();
    CuEvent e = event(), gone = event();
    EXPECT_EQ(CU_INVALID_VALUE, cu.event_record_flags(e, s, CU_EVENT_RECORD_EXTERNAL)); // outside of a capture
    EXPECT_EQ(CU_INVALID_VALUE, cu.event_record_flags(e, s, 2));
    OK(cu.event_record_flags(e, s, CU_EVENT_RECORD_DEFAULT));
    OK(cu.event_sync(e));
    CuGraphExec exec = make(gone);
    OK(cu.event_destroy(gone));
    EXPECT_EQ(CU_INVALID_VALUE, cu.graph_launch(exec, s));
    EXPECT_TRUE(report().mentions("misuse", "a graph records an event that was destroyed"));
}

TEST_F(Captures, AStreamThatWasNotJoined) {
    open();
    CuStream other = stream();
    CuEvent fork = event();
    OK(cu.capture_begin(s, GLOBAL));
    OK(cu.event_record(fork, s));
    OK(cu.stream_wait(other, fork, 0));
    OK(cu.fill32(p, 1, 1, other));
    EXPECT_EQ(CAPTURE_UNJOINED, end(s));
    OK(cu.fill32(p, 1, 1, other)); // both are free again
    OK(cu.fill32(p, 1, 1, s));
    EXPECT_EQ(1u, read(p, 1, other)[0]);
}

TEST_F(Captures, WhatEndsACapture) {
    open();
    CuStream other = stream(), blocking = stream(0);
    CuEvent outside = event(), e = event();
    uint32_t *h = pinned(1), word = 0;
    OK(cu.fill32(p, 0, 16, other));
    OK(cu.event_record(outside, other));
    CuPointer q;
    CuModule m;
    const struct {
        const char *what;
        CuResult expected;
        std::function<CuResult()> call;
    } cases[] = {
        {"stream_sync", CU_STREAM_CAPTURE_UNSUPPORTED, [&] { return cu.stream_sync(s); }},
        {"stream_query", CU_STREAM_CAPTURE_UNSUPPORTED, [&] { return cu.stream_query(s); }},
        {"sync of another stream", CU_STREAM_CAPTURE_UNSUPPORTED, [&] { return cu.stream_sync(other); }},
        {"context_sync", CU_STREAM_CAPTURE_UNSUPPORTED, [&] { return cu.context_sync(); }},
        {"mem_alloc", CU_STREAM_CAPTURE_UNSUPPORTED, [&] { return cu.mem_alloc(&q, 4); }},
        {"mem_free", CU_STREAM_CAPTURE_UNSUPPORTED, [&] { return cu.mem_free(p); }},
        {"host_free", CU_STREAM_CAPTURE_UNSUPPORTED, [&] { return cu.host_free(h); }},
        {"module_load", CU_STREAM_CAPTURE_UNSUPPORTED,
         [&] { return cu.module_load(&m, KERNELS, 0, nullptr, nullptr); }},
        {"event_query", CU_STREAM_CAPTURE_UNSUPPORTED, [&] { return cu.event_query(outside); }},
        {"event_sync", CU_STREAM_CAPTURE_UNSUPPORTED, [&] { return cu.event_sync(outside); }},
        {"pageable copy in", CU_STREAM_CAPTURE_UNSUPPORTED, [&] { return cu.copy_in(p, &word, 4, s); }},
        {"pageable copy out", CU_STREAM_CAPTURE_UNSUPPORTED, [&] { return cu.copy_out(&word, p, 4, s); }},
        {"pageable copy out of another stream", CU_STREAM_CAPTURE_UNSUPPORTED,
         [&] { return cu.copy_out(&word, p, 4, other); }},
        {"work from outside", CAPTURE_ISOLATION, [&] { return cu.stream_wait(s, outside, 0); }},
    };
    for (const auto &c : cases) {
        OK(cu.capture_begin(s, CU_CAPTURE_THREAD_LOCAL));
        OK(cu.fill32(p, 1, 1, s));
        EXPECT_EQ(c.expected, c.call()) << c.what;
        EXPECT_EQ(CU_STREAM_CAPTURE_INVALIDATED, cu.fill32(p, 1, 1, s)) << c.what;
        EXPECT_EQ(CU_STREAM_CAPTURE_INVALIDATED, end(s)) << c.what;
        OK(cu.fill32(p, 1, 1, s)); // out of capture again
        EXPECT_EQ(CU_ILLEGAL_STATE, end(s)) << c.what;
    }
    OK(cu.capture_begin(blocking, CU_CAPTURE_THREAD_LOCAL));
    EXPECT_EQ(CAPTURE_IMPLICIT, cu.fill32(p, 1, 1, nullptr));
    EXPECT_EQ(CU_STREAM_CAPTURE_INVALIDATED, end(blocking));
    OK(cu.capture_begin(s, CU_CAPTURE_THREAD_LOCAL)); // no blocking stream: the legacy one has nothing to do with it
    OK(cu.fill32(p, 1, 1, nullptr));
    OK(cu.event_record(e, s));
    OK(end(s));
    EXPECT_EQ(CAPTURED_EVENT, cu.event_query(e));
    EXPECT_EQ(CAPTURED_EVENT, cu.event_sync(e));
    EXPECT_EQ(CAPTURED_EVENT, cu.stream_wait(other, e, 0));
    OK(cu.event_record(e, s));
    OK(cu.event_sync(e));
}

TEST_F(Captures, RelaxedAllowsWhatIsOnlyUnsafe) {
    open();
    CuStream other = stream();
    OK(cu.capture_begin(s, RELAXED));
    CuPointer q = alloc(4);
    OK(cu.fill32(q, 3, 1, other));
    EXPECT_EQ(3u, read(q, 1, other)[0]);
    EXPECT_EQ(CU_STREAM_CAPTURE_UNSUPPORTED, cu.stream_sync(s));
    EXPECT_EQ(CU_STREAM_CAPTURE_INVALIDATED, end(s));
    OK(cu.capture_begin(s, RELAXED));
    EXPECT_EQ(CU_STREAM_CAPTURE_UNSUPPORTED, cu.context_sync());
    EXPECT_EQ(CU_STREAM_CAPTURE_INVALIDATED, end(s));
}

TEST_F(Captures, OtherThreads) {
    open();
    auto elsewhere = [&](auto call) {
        CuResult result = CU_UNKNOWN;
        std::thread([&] {
            cu.context_push(context);
            result = call();
            cu.context_pop(nullptr);
        }).join();
        return result;
    };
    CuPointer q;
    auto allocate = [&] {
        CuResult result = cu.mem_alloc(&q, 4);
        return result == CU_SUCCESS ? cu.mem_free(q) : result;
    };
    OK(cu.capture_begin(s, CU_CAPTURE_THREAD_LOCAL));
    EXPECT_EQ(CU_SUCCESS, elsewhere(allocate));
    EXPECT_EQ(CU_STREAM_CAPTURE_WRONG_THREAD, elsewhere([&] { return end(s); }));
    OK(end(s));
    OK(cu.capture_begin(s, GLOBAL));
    EXPECT_EQ(CU_STREAM_CAPTURE_UNSUPPORTED, elsewhere(allocate));
    EXPECT_EQ(CU_STREAM_CAPTURE_INVALIDATED, end(s));
    OK(cu.capture_begin(s, RELAXED));
    EXPECT_EQ(CU_SUCCESS, elsewhere([&] { return end(s); }));
}

TEST_F(Captures, BeginsAndEndsThatDoNotFit) {
    open();
    CuStream other = stream();
    CuEvent e = event(), f = event();
    CuGraph g;
    EXPECT_EQ(CU_STREAM_CAPTURE_UNSUPPORTED, cu.capture_begin(nullptr, GLOBAL));
    EXPECT_EQ(CU_INVALID_VALUE, cu.capture_begin(s, 3));
    EXPECT_EQ(CU_ILLEGAL_STATE, cu.capture_end(s, &g));
    OK(cu.capture_begin(s, GLOBAL));
    EXPECT_EQ(CU_ILLEGAL_STATE, cu.capture_begin(s, GLOBAL));
    OK(cu.event_record(e, s));
    OK(cu.stream_wait(other, e, 0));
    EXPECT_EQ(CAPTURE_UNMATCHED, cu.capture_end(other, &g));
    EXPECT_EQ(CU_STREAM_CAPTURE_INVALIDATED, end(s));
    // Two captures do not merge.
    OK(cu.capture_begin(s, GLOBAL));
    OK(cu.capture_begin(other, GLOBAL));
    OK(cu.event_record(f, other));
    EXPECT_EQ(CAPTURE_MERGE, cu.stream_wait(s, f, 0));
    EXPECT_EQ(CU_STREAM_CAPTURE_INVALIDATED, end(s));
    EXPECT_EQ(CU_STREAM_CAPTURE_INVALIDATED, end(other));
    // A stream that goes takes its capture along.
    OK(cu.capture_begin(other, GLOBAL));
    OK(cu.fill32(p, 1, 1, other));
    OK(cu.stream_destroy(other));
    OK(cu.context_sync());
}

TEST_F(Captures, GraphsThatCannotBeLaunched) {
    open();
    CuGraph graph;
    CuGraphExec exec;
    OK(cu.capture_begin(s, GLOBAL));
    OK(cu.capture_end(s, &graph)); // empty
    EXPECT_EQ(CU_NOT_SUPPORTED, cu.graph_instantiate(&exec, graph, 4));
    OK(cu.graph_instantiate(&exec, graph, 0));
    OK(cu.graph_launch(exec, s));
    OK(cu.stream_sync(s));
    OK(cu.graph_destroy(graph));
    EXPECT_EQ(CU_INVALID_VALUE, cu.graph_instantiate(&exec, graph, 0));
    EXPECT_EQ(CU_INVALID_VALUE, cu.graph_destroy(graph));
    size_t count = 0;
    EXPECT_EQ(CU_INVALID_VALUE, cu.graph_node_count(graph, nullptr, &count));
    OK(cu.capture_begin(s, GLOBAL));
    EXPECT_EQ(CU_STREAM_CAPTURE_UNSUPPORTED, cu.graph_launch(exec, s)); // child graphs are not built
    EXPECT_EQ(CU_STREAM_CAPTURE_INVALIDATED, end(s));
    EXPECT_TRUE(report().mentions("unknown", "cuGraphLaunch into a stream in capture"));
    OK(cu.graph_exec_destroy(exec));
    EXPECT_EQ(CU_INVALID_VALUE, cu.graph_exec_destroy(exec));
}

TEST_F(Captures, AGraphThatOutlivesItsModule) {
    open();
    CuModule m = module_of(KERNELS);
    CuFunction add = function_of(m, "add_one");
    uint32_t n = 1;
    OK(cu.fill32(p, 0, 1, s));
    OK(cu.capture_begin(s, GLOBAL));
    OK(launch(add, 1, s, {&p, &n}));
    CuGraph graph;
    OK(cu.capture_end(s, &graph));
    CuGraphExec exec;
    OK(cu.graph_instantiate(&exec, graph, 0));
    OK(cu.module_unload(m));
    EXPECT_EQ(CU_INVALID_VALUE, cu.graph_instantiate(&exec, graph, 0));
    OK(cu.graph_launch(exec, s));
    EXPECT_EQ(CU_LAUNCH_FAILED, cu.stream_sync(s));
    EXPECT_TRUE(report().mentions("faults", "module that was unloaded"));
}

TEST_F(Captures, AGraphThatOutlivesItsHostMemory) {
    open();
    uint32_t *h = pinned(4);
    OK(cu.capture_begin(s, GLOBAL));
    OK(cu.copy_in(p, h, 16, s));
    CuGraph graph;
    OK(cu.capture_end(s, &graph));
    CuGraphExec exec;
    OK(cu.graph_instantiate(&exec, graph, 0));
    OK(cu.host_free(h));
    OK(cu.graph_launch(exec, s));
    EXPECT_EQ(CU_ILLEGAL_ADDRESS, cu.stream_sync(s));
    EXPECT_TRUE(report().mentions("faults", "which was freed since"));
}

} // namespace
