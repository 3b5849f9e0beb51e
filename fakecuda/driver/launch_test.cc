// launch_test.cc: modules, functions, launches: what is refused, and what a fault leaves.
#include "fakecuda/driver/stand_in.h"

namespace {

class Launches : public StandIn {
  protected:
    void open(std::vector<std::pair<std::string, std::string>> environment = {}) {
        start(environment);
        s = stream();
        m = module_of(KERNELS);
    }
    CuStream s = nullptr;
    CuModule m = nullptr;
};

TEST_F(Launches, AKernelRuns) {
    open();
    CuFunction add = function_of(m, "add_one");
    EXPECT_EQ(add, function_of(m, "add_one"));
    CuPointer p = alloc(400);
    uint32_t n = 100;
    OK(cu.fill32(p, 7, 100, s));
    void *params[] = {&p, &n};
    OK(cu.launch(add, 4, 1, 1, 32, 1, 1, 0, s, params, nullptr));
    const CuPointer at = p;
    p = 0; // both were taken at the launch
    n = 0;
    OK(cu.stream_sync(s));
    EXPECT_EQ(std::vector<uint32_t>(100, 8), read(at, 100, s));
    Report r = report();
    EXPECT_EQ(1, r.total("launches"));
    EXPECT_EQ(4, r.number(r.kernel("add_one"), "blocks"));
    EXPECT_EQ(0, r.number(r.kernel("add_one"), "graph_launches"));
    EXPECT_GT(r.number(r.kernel("add_one"), "registers"), 0);
    EXPECT_EQ(12, r.number(r.kernel("add_one"), "param_bytes"));
}

TEST_F(Launches, ParametersInABuffer) {
    open();
    CuFunction add = function_of(m, "add_one");
    CuPointer p = alloc(8);
    OK(cu.fill32(p, 7, 2, s));
    struct {
        CuPointer p;
        uint32_t n;
    } packed = {p, 1};
    size_t size = 12, wrong = 16;
    void *extra[] = {reinterpret_cast<void *>(1), &packed, reinterpret_cast<void *>(2), &size, nullptr};
    OK(cu.launch(add, 1, 1, 1, 32, 1, 1, 0, s, nullptr, extra));
    EXPECT_EQ((std::vector<uint32_t>{8, 7}), read(p, 2, s));
    extra[3] = &wrong;
    EXPECT_EQ(CU_INVALID_VALUE, cu.launch(add, 1, 1, 1, 32, 1, 1, 0, s, nullptr, extra));
    void *params[] = {&p, &packed.n};
    EXPECT_EQ(CU_INVALID_VALUE, cu.launch(add, 1, 1, 1, 32, 1, 1, 0, s, params, extra));
    EXPECT_EQ(CU_INVALID_VALUE, cu.launch(add, 1, 1, 1, 32, 1, 1, 0, s, nullptr, nullptr));
    void *hole[] = {&p, nullptr};
    EXPECT_EQ(CU_INVALID_VALUE, cu.launch(add, 1, 1, 1, 32, 1, 1, 0, s, hole, nullptr));
}

TEST_F(Launches, ShapesAreChecked) {
    open();
    CuFunction f = function_of(m, "limited"), shared = function_of(m, "shared_4k");
    const struct {
        CuResult expected;
        unsigned grid[3], block[3];
    } cases[] = {
        {CU_SUCCESS, {1, 1, 1}, {64, 1, 1}},
        {CU_INVALID_VALUE, {0, 1, 1}, {1, 1, 1}},
        {CU_INVALID_VALUE, {1, 0, 1}, {1, 1, 1}},
        {CU_INVALID_VALUE, {1, 1, 0}, {1, 1, 1}},
        {CU_INVALID_VALUE, {1, 1, 1}, {0, 1, 1}},
        {CU_INVALID_VALUE, {1, 65536, 1}, {1, 1, 1}},
        {CU_INVALID_VALUE, {1, 1, 65536}, {1, 1, 1}},
        {CU_INVALID_VALUE, {2147483648u, 1, 1}, {1, 1, 1}},
        {CU_INVALID_VALUE, {1, 1, 1}, {1, 1, 65}},
        {CU_INVALID_VALUE, {1, 1, 1}, {1025, 1, 1}},
        {CU_INVALID_VALUE, {1, 1, 1}, {1024, 2, 1}},
        {CU_LAUNCH_OUT_OF_RESOURCES, {1, 1, 1}, {65, 1, 1}},
        {CU_LAUNCH_OUT_OF_RESOURCES, {1, 1, 1}, {8, 8, 2}},
    };
    for (const auto &c : cases)
        EXPECT_EQ(c.expected, cu.launch(f, c.grid[0], c.grid[1], c.grid[2], c.block[0], c.block[1], c.block[2], 0, s,
                                        nullptr, nullptr))
            << c.grid[0] << " " << c.block[0] << " " << c.block[1];
    EXPECT_EQ(CU_INVALID_HANDLE, cu.launch(nullptr, 1, 1, 1, 1, 1, 1, 0, s, nullptr, nullptr));
    EXPECT_EQ(CU_INVALID_HANDLE, cu.launch(reinterpret_cast<CuFunction>(m), 1, 1, 1, 1, 1, 1, 0, s, nullptr, nullptr));
    // 4096 of its own: up to 48 KB together without asking.
    OK(cu.launch(shared, 1, 1, 1, 32, 1, 1, 45056, s, nullptr, nullptr));
    EXPECT_EQ(CU_INVALID_VALUE, cu.launch(shared, 1, 1, 1, 32, 1, 1, 45057, s, nullptr, nullptr));
    EXPECT_TRUE(report().mentions("misuse", "dynamic shared memory"));
    EXPECT_EQ(CU_INVALID_VALUE, cu.function_set_attribute(shared, CU_FUNC_MAX_DYNAMIC_SHARED, 232448 - 4095));
    EXPECT_EQ(CU_INVALID_VALUE, cu.function_set_attribute(shared, CU_FUNC_MAX_DYNAMIC_SHARED, -1));
    EXPECT_EQ(CU_INVALID_VALUE, cu.function_set_attribute(shared, CU_FUNC_REGISTERS, 1));
    OK(cu.function_set_attribute(shared, CU_FUNC_MAX_DYNAMIC_SHARED, 232448 - 4096));
    OK(cu.launch(shared, 1, 1, 1, 32, 1, 1, 232448 - 4096, s, nullptr, nullptr));
    OK(cu.stream_sync(s));
    Report r = report();
    EXPECT_EQ(4096, r.number(r.kernel("shared_4k"), "static_shared"));
    EXPECT_EQ(232448 - 4096, r.number(r.kernel("shared_4k"), "dynamic_shared"));
}

TEST_F(Launches, FunctionAttributes) {
    open();
    CuFunction limited = function_of(m, "limited"), shared = function_of(m, "shared_4k");
    auto attribute = [&](CuFunction f, int which) {
        int value = -1;
        EXPECT_EQ(CU_SUCCESS, cu.function_attribute(&value, which, f));
        return value;
    };
    EXPECT_EQ(64, attribute(limited, CU_FUNC_MAX_THREADS));
    EXPECT_EQ(1024, attribute(shared, CU_FUNC_MAX_THREADS));
    EXPECT_EQ(4096, attribute(shared, CU_FUNC_SHARED_BYTES));
    EXPECT_EQ(45056, attribute(shared, CU_FUNC_MAX_DYNAMIC_SHARED));
    EXPECT_EQ(0, attribute(shared, CU_FUNC_LOCAL_BYTES));
    EXPECT_EQ(70, attribute(shared, 5)); // PTX version
    EXPECT_EQ(90, attribute(shared, 6)); // compiled for
    int value;
    EXPECT_EQ(CU_INVALID_VALUE, cu.function_attribute(&value, 1000, shared));
    EXPECT_EQ(CU_INVALID_VALUE, cu.function_attribute(nullptr, 0, shared));
    CuFunction f;
    EXPECT_EQ(CU_NOT_FOUND, cu.module_function(&f, m, "nothing"));
    EXPECT_EQ(CU_INVALID_VALUE, cu.module_function(&f, m, nullptr));
    OK(cu.module_unload(m));
    EXPECT_EQ(CU_INVALID_HANDLE, cu.module_function(&f, m, "limited"));
    EXPECT_EQ(CU_INVALID_HANDLE, cu.function_attribute(&value, 0, limited));
    EXPECT_EQ(CU_INVALID_HANDLE, cu.module_unload(m));
    EXPECT_EQ(CU_INVALID_HANDLE, launch(limited, 1, s, {}));
}

// What module_load says of |image|, and its log.
struct Loaded {
    CuResult result;
    std::string log;
    size_t written;
};

class Images : public StandIn {
  protected:
    Loaded load_image(const std::string &image, size_t room = 500) {
        std::vector<char> log(room ? room : 1, 'x');
        int options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_SIZE};
        void *values[] = {log.data(), reinterpret_cast<void *>(room)};
        CuModule m = nullptr;
        CuResult result = cu.module_load(&m, image.c_str(), 2, options, values);
        if (result == CU_SUCCESS) {
            EXPECT_EQ(CU_SUCCESS, cu.module_unload(m));
        }
        return {result, room ? std::string(log.data()) : "", reinterpret_cast<size_t>(values[1])};
    }
    static std::string ptx(const std::string &version, const std::string &target) {
        return "// a comment\n/* and\nanother */ .version " + version + "\n.target " + target +
               "\n.address_size 64\n.visible .entry k()\n{\n ret;\n}\n";
    }
};

TEST_F(Images, ByDriverAndDevice) {
    const struct {
        const char *arch, *driver, *version, *target;
        CuResult expected;
    } cases[] = {
        {"90", "13000", "9.0", "sm_90", CU_SUCCESS},        {"90", "13000", "7.0", "sm_75", CU_SUCCESS},
        {"90", "13000", "9.0", "sm_90a", CU_SUCCESS},       {"90", "13000", "9.1", "sm_90", CU_UNSUPPORTED_PTX_VERSION},
        {"90", "12040", "8.4", "sm_90", CU_SUCCESS},        {"90", "12040", "9.0", "sm_90", CU_UNSUPPORTED_PTX_VERSION},
        {"90", "13000", "9.0", "sm_100", CU_INVALID_PTX},   {"80", "13000", "9.0", "sm_90", CU_INVALID_PTX},
        {"80", "13000", "9.0", "sm_86", CU_INVALID_PTX},    {"120", "13000", "9.0", "sm_90a", CU_INVALID_PTX},
        {"120", "13000", "9.0", "sm_120a", CU_SUCCESS},     {"120", "13000", "9.0", "sm_120f", CU_SUCCESS},
        {"120", "13000", "9.0", "sm_100f", CU_INVALID_PTX}, {"75", "13000", "9.0", "sm_75", CU_SUCCESS},
    };
    for (const auto &c : cases) {
        start({{"ARCH", c.arch}, {"DRIVER_VERSION", c.driver}});
        Loaded l = load_image(ptx(c.version, c.target));
        EXPECT_EQ(c.expected, l.result) << c.arch << " " << c.driver << " " << c.version << " " << c.target << ": "
                                        << l.log;
        EXPECT_EQ(c.expected == CU_SUCCESS, l.log.empty());
        EXPECT_EQ(l.log.size(), l.written);
    }
}

TEST_F(Images, MachineCodeIsRefused) {
    start();
    EXPECT_EQ(CU_NO_BINARY_FOR_GPU, load_image("\x7f"
                                               "ELF\x02\x01")
                                        .result);
    EXPECT_EQ(CU_NO_BINARY_FOR_GPU, load_image("\x50\xed\x55\xba").result);
    EXPECT_EQ(CU_INVALID_IMAGE, load_image("nonsense").result);
    EXPECT_EQ(CU_INVALID_IMAGE, load_image("").result);
    Loaded wrong =
        load_image(".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry k()\n{\n what.is.this %r1;\n}\n");
    EXPECT_EQ(CU_INVALID_PTX, wrong.result);
    EXPECT_NE(std::string::npos, wrong.log.find("6")) << wrong.log; // the line
    EXPECT_TRUE(report().mentions("misuse", "module refused"));
    Loaded cut = load_image("nonsense", 8);
    EXPECT_EQ(7u, cut.log.size());
    EXPECT_EQ(7u, cut.written);
    EXPECT_EQ(0u, load_image("nonsense", 0).written);
    Loaded big = load_image(".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry k()\n{\n.shared .align 4 "
                            ".b8 s[49156];\n.reg .b32 %r1;\n mov.u32 %r1, s;\n ret;\n}\n");
    EXPECT_EQ(CU_INVALID_PTX, big.result);
    EXPECT_NE(std::string::npos, big.log.find("49156 bytes of static shared memory")) << big.log;
}

TEST_F(Images, Arguments) {
    start();
    CuModule m;
    int options[] = {7}, unknown[] = {1000};
    void *values[] = {reinterpret_cast<void *>(3)};
    EXPECT_EQ(CU_INVALID_VALUE, cu.module_load(nullptr, KERNELS, 0, nullptr, nullptr));
    EXPECT_EQ(CU_INVALID_VALUE, cu.module_load(&m, nullptr, 0, nullptr, nullptr));
    EXPECT_EQ(CU_INVALID_VALUE, cu.module_load(&m, KERNELS, 1, nullptr, nullptr));
    EXPECT_EQ(CU_INVALID_VALUE, cu.module_load(&m, KERNELS, 1, unknown, values));
    OK(cu.module_load(&m, KERNELS, 1, options, values)); // an optimisation level: nothing to do
    OK(cu.module_unload(m));
}

// A fault stays with the context, whatever is called, until the context is gone.
class Faults : public StandIn {
  protected:
    void expect_stuck(CuResult error) {
        CuPointer p;
        CuStream s;
        CuDevice device;
        CuContext current;
        EXPECT_EQ(error, cu.context_sync());
        EXPECT_EQ(error, cu.context_sync());
        EXPECT_EQ(error, cu.mem_alloc(&p, 4));
        EXPECT_EQ(error, cu.stream_create(&s, 0));
        EXPECT_EQ(error, cu.stream_query(nullptr));
        CuModule m;
        EXPECT_EQ(error, cu.module_load(&m, KERNELS, 0, nullptr, nullptr));
        OK(cu.context_device(&device));
        OK(cu.context_current(&current));
        EXPECT_EQ(1u, report().lines("faults").size());
        EXPECT_TRUE(report().lines("misuse").empty());
        finish();
        EXPECT_TRUE(report().lines("leaks").empty()); // nothing could be given back
        OK(cu.primary_retain(&context, 0));           // a new one is well
        OK(cu.context_push(context));
        OK(cu.mem_alloc(&p, 4));
        OK(cu.mem_free(p));
        finish();
    }
};

TEST_F(Faults, IllegalAddress) {
    start();
    CuFunction f = function_of(module_of(KERNELS), "store_at");
    CuStream s = stream();
    CuPointer p = alloc(64), past = p + 64;
    OK(launch(f, 1, s, {&p}));
    OK(launch(f, 1, s, {&past}));
    OK(cu.fill32(p, 1, 1, s)); // never runs
    EXPECT_EQ(CU_ILLEGAL_ADDRESS, cu.stream_sync(s));
    EXPECT_EQ(0, report().total("bytes_filled"));
    EXPECT_TRUE(report().mentions("faults", "store_at"));
    expect_stuck(CU_ILLEGAL_ADDRESS);
}

TEST_F(Faults, AnyLaterCallMayTell) {
    over_seeds([&] {
        CuFunction f = function_of(module_of(KERNELS), "store_at");
        CuPointer host = 4096, p;
        EXPECT_EQ(CU_SUCCESS, launch(f, 1, nullptr, {&host}));
        CuResult result = CU_SUCCESS;
        for (int i = 0; i < 1000 && result == CU_SUCCESS; i++) result = cu.mem_alloc(&p, 4);
        EXPECT_EQ(CU_ILLEGAL_ADDRESS, result);
        return true;
    });
}

TEST_F(Faults, FreedMemory) {
    start();
    CuFunction f = function_of(module_of(KERNELS), "store_at");
    CuPointer p = alloc(64);
    OK(cu.mem_free(p));
    OK(launch(f, 1, nullptr, {&p}));
    EXPECT_EQ(CU_ILLEGAL_ADDRESS, cu.context_sync());
    expect_stuck(CU_ILLEGAL_ADDRESS);
}

TEST_F(Faults, Misaligned) {
    start();
    CuFunction f = function_of(module_of(KERNELS), "store_at");
    CuPointer p = alloc(64) + 2;
    OK(launch(f, 1, nullptr, {&p}));
    expect_stuck(CU_MISALIGNED_ADDRESS);
}

TEST_F(Faults, Trap) {
    start();
    OK(launch(function_of(module_of(KERNELS), "trap_now"), 1, nullptr, {}));
    EXPECT_EQ(CU_LAUNCH_FAILED, cu.stream_sync(nullptr));
    expect_stuck(CU_LAUNCH_FAILED);
}

TEST_F(Faults, InAGraph) {
    start();
    CuStream s = stream();
    CuFunction f = function_of(module_of(KERNELS), "trap_now");
    OK(cu.capture_begin(s, CU_CAPTURE_THREAD_LOCAL));
    OK(launch(f, 1, s, {}));
    CuGraph g;
    OK(cu.capture_end(s, &g));
    CuGraphExec x;
    OK(cu.graph_instantiate(&x, g, 0));
    OK(cu.graph_launch(x, s));
    EXPECT_EQ(CU_LAUNCH_FAILED, cu.stream_sync(s));
    expect_stuck(CU_LAUNCH_FAILED);
}

TEST_F(Faults, OneDeviceDoesNotHarmTheOther) {
    start({{"DEVICES", "2"}});
    OK(launch(function_of(module_of(KERNELS), "trap_now"), 1, nullptr, {}));
    EXPECT_EQ(CU_LAUNCH_FAILED, cu.context_sync());
    CuContext other;
    OK(cu.primary_retain(&other, 1));
    OK(cu.context_push(other));
    OK(cu.context_sync());
    OK(cu.context_pop(nullptr));
    OK(cu.primary_release(1));
}

// Block 0 waits until all have counted themselves: they must be resident together.
TEST_F(Faults, BlocksThatWaitNeedToBeResident) {
    const char *text = R"(
.version 7.0
.target sm_75
.address_size 64
.visible .entry meet(.param .u64 p)
{
    .reg .pred %p<3>;
    .reg .b32 %r<4>;
    .reg .b64 %rd<3>;
    ld.param.u64 %rd1, [p];
    cvta.to.global.u64 %rd2, %rd1;
    mov.u32 %r1, %nctaid.x;
    red.global.add.u32 [%rd2], 1;
WAIT:
    ld.volatile.global.u32 %r2, [%rd2];
    setp.lt.u32 %p1, %r2, %r1;
    @%p1 bra WAIT;
    ret;
}
)";
    for (const char *resident : {"8", "7"}) {
        start({{"RESIDENT", resident}});
        CuFunction f = function_of(module_of(text), "meet");
        CuPointer p = alloc(4);
        OK(cu.fill32(p, 0, 1, nullptr));
        void *params[] = {&p};
        OK(cu.launch(f, 8, 1, 1, 1, 1, 1, 0, nullptr, params, nullptr));
        bool all = *resident == '8';
        EXPECT_EQ(all ? CU_SUCCESS : CU_LAUNCH_FAILED, cu.context_sync());
        EXPECT_EQ(!all,
                  report().mentions("faults", "waits for a block that is not resident: each of 7 resident blocks"));
    }
}

} // namespace
