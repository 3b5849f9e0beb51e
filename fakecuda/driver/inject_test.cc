// inject_test.cc: calls that fail on request.
#include "fakecuda/driver/stand_in.h"

namespace {

class Injection : public StandIn {
  protected:
    // One small program with every call of the table once at least; stops at the first error and gives back what it
    // has.
    CuResult program() {
        CuResult result = CU_SUCCESS;
        auto good = [&](CuResult r) {
            if (result == CU_SUCCESS) result = r;
            return result == CU_SUCCESS;
        };
        int n, option = CU_JIT_INFO_LOG_SIZE;
        size_t bytes, total;
        char name[64];
        CuDevice device;
        CuContext c = nullptr, current = nullptr;
        void *value = nullptr, *h = nullptr;
        CuModule m = nullptr;
        CuFunction f = nullptr;
        CuPointer p = 0;
        CuStream s = nullptr;
        CuEvent a = nullptr, b = nullptr;
        CuGraph g = nullptr;
        CuGraphExec x = nullptr;
        bool pushed = false;
        float ms;
        uint32_t count = 4;
        if (!good(cu.init(0)) || !good(cu.driver_version(&n)) || !good(cu.device_count(&n)) ||
            !good(cu.device_get(&device, 0)) || !good(cu.device_name(name, sizeof name, device)) ||
            !good(cu.device_total_memory(&bytes, device)) || !good(cu.device_attribute(&n, CU_ATTR_WARP_SIZE, device)))
            return result;
        good(cu.primary_retain(&c, device)) && good(cu.context_push(c)) && (pushed = true) &&
            good(cu.context_current(&current)) && good(cu.context_device(&device)) &&
            good(cu.stream_create(&s, CU_STREAM_NON_BLOCKING)) && good(cu.stream_context(s, &current)) &&
            good(cu.event_create(&a, 0)) && good(cu.event_create(&b, 0)) &&
            good(cu.module_load(&m, KERNELS, 1, &option, &value)) && good(cu.module_function(&f, m, "add_one")) &&
            good(cu.function_attribute(&n, 0, f)) &&
            good(cu.function_set_attribute(f, CU_FUNC_MAX_DYNAMIC_SHARED, 1024)) && good(cu.mem_info(&bytes, &total)) &&
            good(cu.mem_alloc(&p, 64)) && good(cu.host_alloc(&h, 64, 0)) && good(cu.event_record(a, s)) &&
            good(cu.fill8(p, 0, 64, s)) && good(cu.fill32(p, 5, 4, s)) && good(cu.fill_lines(p, 8, 0, 1, 2, s)) &&
            good(cu.copy_in(p, h, 16, s)) && good(cu.copy(p + 16, p, 16, s)) &&
            good(cu.pointer_attribute(&n, CU_POINTER_MEMORY_TYPE, p)) && good(cu.stream_wait(s, a, 0)) &&
            good(cu.capture_begin(s, CU_CAPTURE_THREAD_LOCAL));
        if (result == CU_SUCCESS) {
            CuLaunchConfig config = {{1, 1, 1}, {32, 1, 1}, 0, s, nullptr, 0};
            void *params[] = {&p, &count};
            good(launch(f, 32, s, {&p, &count})), good(cu.launch_ex(&config, f, params, nullptr)),
                good(cu.capture_end(s, &g));
            good(cu.graph_node_count(g, nullptr, &bytes)) && good(cu.graph_instantiate(&x, g, 0)) &&
                good(cu.graph_launch(x, s)) && good(cu.event_record_flags(b, s, CU_EVENT_RECORD_DEFAULT)) &&
                good(cu.copy_out(h, p, 64, s)) && good(cu.event_sync(b)) && good(cu.event_query(b)) &&
                good(cu.event_elapsed(&ms, a, b)) && good(cu.stream_sync(s)) && good(cu.stream_query(s)) &&
                good(cu.context_sync());
        }
        if (x) good(cu.graph_exec_destroy(x));
        if (g) good(cu.graph_destroy(g));
        if (a) good(cu.event_destroy(a));
        if (b) good(cu.event_destroy(b));
        if (h) good(cu.host_free(h));
        if (p) good(cu.mem_free(p));
        if (m) good(cu.module_unload(m));
        if (s) good(cu.stream_destroy(s));
        if (pushed) {
            good(cu.context_pop(&current));
            if (current == nullptr) cu.context_pop(&current);
        }
        if (c) good(cu.primary_release(0));
        return result;
    }
};

TEST_F(Injection, EveryCallInTurn) {
    begin();
    OK(program());
    std::set<std::string> called;
    const amp_json *calls;
    int64_t total = 0;
    {
        Report r = report();
        calls = amp_json_get(r.root(), "calls");
        for (size_t i = 0; i < calls->object.count; i++) {
            called.insert(calls->object.members[i].key.data);
            total += calls->object.members[i].value.number.integer;
        }
        EXPECT_TRUE(r.lines("leaks").empty());
        EXPECT_TRUE(r.lines("misuse").empty());
        EXPECT_TRUE(r.lines("faults").empty());
    }
#define EXPECT_CALLED(name, symbol, parameters)                                                                        \
    EXPECT_EQ(strncmp(#symbol, "cuGetError", 10) != 0, called.count(#symbol) == 1) << #symbol;
    CUDA_DRIVER_CALLS(EXPECT_CALLED)
#undef EXPECT_CALLED
    for (CuResult error : {CU_UNKNOWN, CU_OUT_OF_MEMORY, CU_ILLEGAL_ADDRESS})
        for (int64_t k = 1; k <= total; k++) {
            begin({{"FAIL", "*:" + std::to_string(k) + ":" + std::to_string(error)}});
            EXPECT_EQ(error, program()) << k;
            Report r = report();
            ASSERT_EQ(1u, r.lines("injected").size()) << k;
            EXPECT_TRUE(r.lines("leaks").empty()) << k << " " << r.lines("injected")[0] << ": " << r.lines("leaks")[0];
            EXPECT_TRUE(r.lines("misuse").empty())
                << k << " " << r.lines("injected")[0] << ": " << r.lines("misuse")[0];
        }
    begin({{"FAIL", "*:" + std::to_string(total + 1)}});
    OK(program());
}

TEST_F(Injection, ByNameAndNumber) {
    start({{"FAIL", "cuMemAlloc:2,cuEventCreate:1:700"}});
    CuPointer p = alloc(4), q;
    EXPECT_EQ(CU_OUT_OF_MEMORY, cu.mem_alloc(&q, 4)); // an allocation without a number of its own
    OK(cu.mem_alloc(&q, 4));
    OK(cu.mem_free(p));
    CuEvent e;
    EXPECT_EQ(CU_ILLEGAL_ADDRESS, cu.event_create(&e, 0));
    EXPECT_EQ(CU_ILLEGAL_ADDRESS, cu.mem_free(q)); // fatal ones stay
    EXPECT_EQ(2u, report().lines("injected").size());
}

TEST_F(Injection, WhileRunning) {
    start();
    EXPECT_EQ(0, set_fail("cuStreamSynchronize:2:2,cuCtxSynchronize:1"));
    OK(cu.stream_sync(nullptr));
    EXPECT_EQ(CU_OUT_OF_MEMORY, cu.stream_sync(nullptr));
    OK(cu.stream_sync(nullptr));
    EXPECT_EQ(CU_UNKNOWN, cu.context_sync());
    EXPECT_EQ(1, set_fail("cuStreamSynchronize"));
    EXPECT_EQ(1, set_fail("cuStreamSynchronize:0"));
    EXPECT_EQ(1, set_fail("cuStreamSynchronize:1:0"));
    EXPECT_EQ(1, set_fail("cuStreamSynchronize:1,"));
    EXPECT_EQ(0, set_fail("cuCtxSynchronize:1"));
    EXPECT_EQ(0, set_fail(nullptr));
    OK(cu.context_sync());
}

TEST_F(Injection, WhatGivesBackDoesSo) {
    start();
    CuPointer p = alloc(64);
    CuStream s = stream();
    EXPECT_EQ(0, set_fail("cuMemFree:1:719,cuStreamEndCapture:1:2"));
    OK(cu.capture_begin(s, CU_CAPTURE_THREAD_LOCAL));
    CuGraph g = reinterpret_cast<CuGraph>(1);
    EXPECT_EQ(CU_OUT_OF_MEMORY, cu.capture_end(s, &g));
    EXPECT_EQ(nullptr, g);
    OK(cu.stream_sync(s)); // out of capture
    EXPECT_EQ(CU_LAUNCH_FAILED, cu.mem_free(p));
    EXPECT_EQ(CU_LAUNCH_FAILED, cu.context_sync());
}

} // namespace
