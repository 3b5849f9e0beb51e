// life_cycle_test.cc: initialisation, devices, contexts.
#include <thread>

#include "fakecuda/driver/stand_in.h"

namespace {

class LifeCycle : public StandIn {};

TEST_F(LifeCycle, NothingWorksBeforeInit) {
    int n = 0;
    CuContext c;
    EXPECT_EQ(CU_NOT_INITIALIZED, cu.device_count(&n));
    EXPECT_EQ(CU_NOT_INITIALIZED, cu.primary_retain(&c, 0));
    EXPECT_EQ(CU_NOT_INITIALIZED, cu.context_sync());
    CuPointer p;
    EXPECT_EQ(CU_NOT_INITIALIZED, cu.mem_alloc(&p, 4));
    EXPECT_EQ(CU_SUCCESS, cu.driver_version(&n));
    EXPECT_EQ(13000, n);
    EXPECT_EQ(CU_INVALID_VALUE, cu.init(1));
    EXPECT_EQ(CU_NOT_INITIALIZED, cu.device_count(&n));
    OK(cu.init(0));
    OK(cu.init(0));
    OK(cu.device_count(&n));
    EXPECT_EQ(1, n);
}

TEST_F(LifeCycle, NoDevice) {
    begin({{"DEVICES", "0"}});
    int n;
    EXPECT_EQ(CU_NO_DEVICE, cu.init(0));
    EXPECT_EQ(CU_NOT_INITIALIZED, cu.device_count(&n));
}

TEST_F(LifeCycle, DamagedSettingsGiveNoDevice) {
    for (auto &bad : std::vector<std::pair<std::string, std::string>>{{"ARCH", "91"},
                                                                      {"ARCH", "sm_90"},
                                                                      {"SEED", "-1"},
                                                                      {"MEMORY", "4Q"},
                                                                      {"DEVICES", "17"},
                                                                      {"RESIDENT", "1025"},
                                                                      {"DRIVER_VERSION", "9000"},
                                                                      {"FAIL", "cuMemAlloc"},
                                                                      {"FAIL", "cuNothing:1"},
                                                                      {"FAIL", "*:1:12345"}}) {
        begin({bad});
        EXPECT_EQ(CU_SYSTEM_NOT_READY, cu.init(0)) << bad.first << "=" << bad.second;
        unsetenv(("FAKECUDA_" + bad.first).c_str());
    }
}

TEST_F(LifeCycle, ErrorsHaveNames) {
    const char *text = nullptr;
    OK(cu.get_error_name(CU_ILLEGAL_ADDRESS, &text));
    EXPECT_STREQ("CUDA_ERROR_ILLEGAL_ADDRESS", text);
    OK(cu.get_error_string(CU_OUT_OF_MEMORY, &text));
    EXPECT_STREQ("out of memory", text);
    EXPECT_EQ(CU_INVALID_VALUE, cu.get_error_name(12345, &text));
    EXPECT_EQ(nullptr, text);
    EXPECT_EQ(CU_INVALID_VALUE, cu.get_error_name(0, nullptr));
}

TEST_F(LifeCycle, DevicesByArchitecture) {
    const struct {
        int arch, optin, multiprocessors;
    } expected[] = {{75, 65536, 40},   {80, 166912, 108}, {86, 101376, 84},
                    {89, 101376, 142}, {90, 232448, 132}, {120, 101376, 188}};
    for (const auto &e : expected) {
        begin({{"ARCH", std::to_string(e.arch)}});
        OK(cu.init(0));
        CuDevice device;
        OK(cu.device_get(&device, 0));
        auto attribute = [&](int which) {
            int value = -1;
            EXPECT_EQ(CU_SUCCESS, cu.device_attribute(&value, which, device));
            return value;
        };
        EXPECT_EQ(e.arch, 10 * attribute(CU_ATTR_CC_MAJOR) + attribute(CU_ATTR_CC_MINOR));
        EXPECT_EQ(e.optin, attribute(CU_ATTR_MAX_SHARED_PER_BLOCK_OPTIN));
        EXPECT_EQ(e.multiprocessors, attribute(CU_ATTR_MULTIPROCESSORS));
        EXPECT_EQ(49152, attribute(CU_ATTR_MAX_SHARED_PER_BLOCK));
        EXPECT_EQ(1024, attribute(CU_ATTR_MAX_THREADS_PER_BLOCK));
        EXPECT_EQ(32, attribute(CU_ATTR_WARP_SIZE));
        char name[100];
        OK(cu.device_name(name, sizeof name, device));
        EXPECT_TRUE(strstr(name, "fakecuda")) << name;
        char three[4];
        OK(cu.device_name(three, 4, device));
        EXPECT_EQ(3u, strlen(three));
    }
    int value;
    EXPECT_EQ(CU_INVALID_VALUE, cu.device_attribute(&value, 9999, 0));
    EXPECT_TRUE(report().mentions("unknown", "device attribute 9999"));
    EXPECT_EQ(CU_INVALID_DEVICE, cu.device_attribute(&value, CU_ATTR_WARP_SIZE, 1));
    CuDevice device;
    EXPECT_EQ(CU_INVALID_DEVICE, cu.device_get(&device, 1));
    EXPECT_EQ(CU_INVALID_DEVICE, cu.device_get(&device, -1));
    EXPECT_EQ(CU_INVALID_VALUE, cu.device_get(nullptr, 0));
}

TEST_F(LifeCycle, MemoryAndVersionAreSettings) {
    begin({{"MEMORY", "3M"}, {"DRIVER_VERSION", "12040"}, {"DEVICES", "2"}});
    OK(cu.init(0));
    size_t bytes;
    OK(cu.device_total_memory(&bytes, 1));
    EXPECT_EQ(3u << 20, bytes);
    int n;
    OK(cu.driver_version(&n));
    EXPECT_EQ(12040, n);
    OK(cu.device_count(&n));
    EXPECT_EQ(2, n);
}

TEST_F(LifeCycle, PrimaryContextIsCounted) {
    OK(cu.init(0));
    CuContext a, b, current;
    CuPointer p;
    OK(cu.context_current(&current));
    EXPECT_EQ(nullptr, current);
    EXPECT_EQ(CU_INVALID_CONTEXT, cu.mem_alloc(&p, 4));
    EXPECT_EQ(CU_INVALID_CONTEXT, cu.context_pop(&current));
    OK(cu.primary_retain(&a, 0));
    OK(cu.primary_retain(&b, 0));
    EXPECT_EQ(a, b);
    OK(cu.context_push(a));
    OK(cu.context_push(b));
    OK(cu.context_current(&current));
    EXPECT_EQ(a, current);
    CuDevice device = -1;
    OK(cu.context_device(&device));
    EXPECT_EQ(0, device);
    OK(cu.primary_release(0));
    OK(cu.mem_alloc(&p, 4)); // still held once
    OK(cu.mem_free(p));
    OK(cu.primary_release(0));
    EXPECT_EQ(CONTEXT_IS_DESTROYED, cu.mem_alloc(&p, 4));
    EXPECT_EQ(CU_INVALID_CONTEXT, cu.context_push(a));
    EXPECT_EQ(CU_INVALID_CONTEXT, cu.primary_release(0));
    OK(cu.context_pop(&current));
    OK(cu.context_pop(nullptr));
    EXPECT_EQ(CU_INVALID_CONTEXT, cu.context_pop(&current));
    EXPECT_EQ(CU_INVALID_DEVICE, cu.primary_retain(&a, 1));
    EXPECT_TRUE(report().lines("leaks").empty());
}

TEST_F(LifeCycle, EachThreadHasItsOwnStack) {
    start();
    CuContext seen = context;
    CuResult result = CU_SUCCESS;
    std::thread([&] {
        cu.context_current(&seen);
        CuPointer p;
        result = cu.mem_alloc(&p, 4);
    }).join();
    EXPECT_EQ(nullptr, seen);
    EXPECT_EQ(CU_INVALID_CONTEXT, result);
    finish();
}

TEST_F(LifeCycle, HandlesOfTwoDevicesDoNotMix) {
    start({{"DEVICES", "2"}});
    CuContext other;
    OK(cu.primary_retain(&other, 1));
    EXPECT_NE(context, other);
    CuStream s = stream();
    OK(cu.context_push(other));
    CuPointer p = alloc(4);
    CuDevice device;
    OK(cu.context_device(&device));
    EXPECT_EQ(1, device);
    EXPECT_EQ(CU_INVALID_HANDLE, cu.fill8(p, 0, 4, s));
    CuContext of;
    OK(cu.stream_context(s, &of));
    EXPECT_EQ(context, of);
    OK(cu.mem_free(p));
    OK(cu.context_pop(nullptr));
    OK(cu.primary_release(1));
    OK(cu.stream_destroy(s));
    finish();
}

TEST_F(LifeCycle, ByName) {
    CuResult (*get)(const char *, void **, int, uint64_t, int *);
    load("cuGetProcAddress_v2", &get);
    void *found = nullptr;
    int status = -1;
    OK(get("cuMemAlloc", &found, 12000, 0, &status));
    EXPECT_EQ(0, status);
    EXPECT_EQ(dlsym(library_, "cuMemAlloc_v2"), found);
    OK(get("cuStreamBeginCapture", &found, 12000, 0, nullptr));
    EXPECT_EQ(dlsym(library_, "cuStreamBeginCapture_v2"), found);
    OK(get("cuMemAllocAsync", &found, 12000, 0, &status));
    EXPECT_EQ(nullptr, found);
    EXPECT_EQ(1, status);
    EXPECT_TRUE(report().mentions("unknown", "cuMemAllocAsync"));
    EXPECT_EQ(CU_INVALID_VALUE, get("cuInit", &found, 14000, 0, &status));
    EXPECT_EQ(CU_INVALID_VALUE, get(nullptr, &found, 12000, 0, &status));
}

TEST_F(LifeCycle, NothingElseIsExported) {
    for (const char *name :
         {"handle_object", "ptx_parse", "exec_launch", "alu_find", "amp_json_parse", "report_json", "driver"})
        EXPECT_EQ(nullptr, dlsym(library_, name)) << name;
}

} // namespace
