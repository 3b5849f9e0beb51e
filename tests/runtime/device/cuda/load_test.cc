// load_test.cc: a model's functions into a driver that takes machine code, or only PTX, or fails.
#include "runtime/device/cuda/load.h"

#include <cstring>
#include <map>

#include "tests/base/failing_allocator.h"
#include "tests/runtime/device/cuda/functions.h"

namespace {

// A driver that keeps what it was given.  Modules and functions are numbers.
struct Driver {
    CuResult cubin_result = CU_SUCCESS; // what loading machine code gives
    CuResult ptx_result = CU_SUCCESS;
    const char *refused = nullptr; // of machine code: only what begins with this after its first four bytes
    const char *log = "";
    int calls = 0, fail_at = -1; // the call of that number fails with |fail_with|
    CuResult fail_with = CU_SUCCESS;
    std::map<intptr_t, std::string> modules;
    int cubins_refused = 0;
    intptr_t next = 1;
};
Driver *driver;

bool Fails() { return driver->calls++ == driver->fail_at; }

CuResult Name(CuResult, const char **text) { return *text = "CUDA_ERROR_SOME", CU_SUCCESS; }
CuResult Text(CuResult, const char **text) { return *text = "some text", CU_SUCCESS; }

CuResult Load(CuModule *module, const void *image, unsigned int count, int *options, void **values) {
    if (Fails()) return driver->fail_with;
    bool is_cubin = !memcmp(image,
                            "\x7f"
                            "ELF",
                            4);
    CuResult result = is_cubin ? driver->cubin_result : driver->ptx_result;
    if (is_cubin && driver->refused && memcmp(static_cast<const char *>(image) + 4, driver->refused, 7))
        result = CU_SUCCESS;
    if (result != CU_SUCCESS) {
        driver->cubins_refused += is_cubin;
        for (unsigned int i = 0; i + 1 < count; i++)
            if (options[i] == CU_JIT_ERROR_LOG_BUFFER && options[i + 1] == CU_JIT_ERROR_LOG_SIZE)
                snprintf(static_cast<char *>(values[i]), reinterpret_cast<uintptr_t>(values[i + 1]), "%s", driver->log);
        return result;
    }
    driver->modules[driver->next] = is_cubin ? "cubin" : static_cast<const char *>(image);
    *module = reinterpret_cast<CuModule>(driver->next++);
    return CU_SUCCESS;
}
CuResult Unload(CuModule module) {
    EXPECT_EQ(driver->modules.erase(reinterpret_cast<intptr_t>(module)), 1u) << "unloaded what is not loaded";
    return CU_SUCCESS;
}
CuResult Function(CuFunction *function, CuModule module, const char *name) {
    if (Fails()) return driver->fail_with;
    *function = reinterpret_cast<CuFunction>(100 * reinterpret_cast<intptr_t>(module) + name[1] - '0');
    return CU_SUCCESS;
}
CuResult Attribute(int *value, int attribute, CuFunction) {
    if (Fails()) return driver->fail_with;
    *value = 1000 + attribute;
    return CU_SUCCESS;
}

class CudaLoad : public testing::Test {
  protected:
    void SetUp() override {
        std::string missing = NvrtcIsMissing();
        if (!missing.empty()) GTEST_SKIP() << missing;
        driver = &driver_;
        table_.get_error_name = Name, table_.get_error_string = Text;
        table_.module_load = Load, table_.module_unload = Unload, table_.module_function = Function;
        table_.function_attribute = Attribute;
        device_.arch = 80;
        snprintf(device_.name, sizeof device_.name, "Some GPU");
    }
    amp_status LoadAll(Functions &f, const amp_allocator *allocator = nullptr) {
        amp_cuda_loader loader = {&table_, &latch_, &device_, allocator, 2, nullptr, false, false};
        loaded_.assign(f.count(), {});
        return amp_cuda_load(&loader, f.prelude(), f.data(), f.count(), loaded_.data(), &err_);
    }
    void UnloadAll() { amp_cuda_unload(&table_, &latch_, loaded_.data(), static_cast<int>(loaded_.size())); }

    OwnCache cache_;
    Driver driver_;
    CudaDriver table_ = {};
    amp_cuda_latch latch_ = {};
    amp_cuda_device_info device_ = {};
    std::vector<amp_cuda_loaded> loaded_;
    amp_error err_ = {};
};

} // namespace

TEST_F(CudaLoad, MachineCode) {
    Functions f(4);
    FailingAllocator counting;
    amp_allocator a = counting.get();
    ASSERT_EQ(LoadAll(f, &a), AMP_OK) << err_.message;
    EXPECT_EQ(driver_.modules.size(), 4u);
    for (int i = 0; i < 4; i++) {
        intptr_t module = reinterpret_cast<intptr_t>(loaded_[i].module);
        EXPECT_EQ(driver_.modules[module], "cubin");
        EXPECT_EQ(reinterpret_cast<intptr_t>(loaded_[i].function), 100 * module + i) << "the entry's own name";
        EXPECT_TRUE(loaded_[i].is_cubin);
        EXPECT_EQ(loaded_[i].origin, AMP_CUDA_FROM_NVRTC);
        EXPECT_GT(loaded_[i].compile_seconds, 0);
        EXPECT_LT(loaded_[i].registers, 100) << "ptxas's figure, not the driver's";
        EXPECT_EQ(loaded_[i].spill_bytes, 0);
    }
    UnloadAll();
    EXPECT_TRUE(driver_.modules.empty());
    EXPECT_EQ(loaded_[0].module, nullptr);
}

// The stand-in is such a driver.
TEST_F(CudaLoad, ADriverThatTakesOnlyPtx) {
    for (CuResult refusal : {CU_NO_BINARY_FOR_GPU, CU_INVALID_IMAGE}) {
        Functions f(4);
        driver_.cubin_result = refusal;
        driver_.cubins_refused = 0;
        ASSERT_EQ(LoadAll(f), AMP_OK) << err_.message;
        EXPECT_EQ(driver_.cubins_refused, 1) << "it is asked once";
        for (int i = 0; i < 4; i++) {
            const std::string &ptx = driver_.modules[reinterpret_cast<intptr_t>(loaded_[i].module)];
            EXPECT_NE(ptx.find(".entry k" + std::to_string(i) + "("), std::string::npos);
            EXPECT_FALSE(loaded_[i].is_cubin);
            EXPECT_EQ(loaded_[i].registers, 1000 + CU_FUNC_REGISTERS) << "the driver's figure";
            EXPECT_EQ(loaded_[i].shared_bytes, 1000 + CU_FUNC_SHARED_BYTES);
            EXPECT_EQ(loaded_[i].stack_bytes, 1000 + CU_FUNC_LOCAL_BYTES);
            EXPECT_EQ(loaded_[i].spill_bytes, -1);
        }
        UnloadAll();
        EXPECT_TRUE(driver_.modules.empty());
    }
}

// Each function is loaded when it is needed: what the driver takes is known then.
TEST_F(CudaLoad, ALaterLoadKnowsWhatTheDriverTakes) {
    Functions f(4);
    for (bool refuses : {false, true}) {
        driver_.cubin_result = refuses ? CU_NO_BINARY_FOR_GPU : CU_SUCCESS;
        driver_.cubins_refused = 0;
        amp_cuda_loader loader = {&table_, &latch_, &device_, nullptr, 2, nullptr, false, false};
        for (int first : {0, 2}) {
            loaded_.assign(2, {});
            ASSERT_EQ(amp_cuda_load(&loader, f.prelude(), f.data() + first, 2, loaded_.data(), &err_), AMP_OK)
                << err_.message;
            for (int i = 0; i < 2; i++) {
                EXPECT_EQ(loaded_[i].is_cubin, !refuses);
                EXPECT_EQ(reinterpret_cast<intptr_t>(loaded_[i].function) % 100, first + i);
            }
            EXPECT_EQ(driver_.cubins_refused, refuses) << "it is asked once";
            UnloadAll();
        }
    }
}

// The first is taken, a later one of the model is not.
TEST_F(CudaLoad, OneImageOfTheModelIsRefused) {
    Functions f(3);
    f.SetSource(1, std::string(f[1].source) + "// so that another one is tried first\n");
    driver_.cubin_result = CU_NO_BINARY_FOR_GPU;
    driver_.refused = "refused";
    f.AddImage(1, 80, 0, true,
               "\x7f"
               "ELFrefused");
    ASSERT_EQ(LoadAll(f), AMP_OK) << err_.message;
    EXPECT_EQ(driver_.cubins_refused, 1);
    EXPECT_EQ(driver_.modules.size(), 3u);
    EXPECT_TRUE(loaded_[0].is_cubin && loaded_[2].is_cubin);
    EXPECT_FALSE(loaded_[1].is_cubin);
    const std::string &ptx = driver_.modules[reinterpret_cast<intptr_t>(loaded_[1].module)];
    EXPECT_NE(ptx.find(".entry k1("), std::string::npos);
    UnloadAll();
}

TEST_F(CudaLoad, ADriverOlderThanNvrtc) {
    Functions f(3);
    driver_.cubin_result = CU_NO_BINARY_FOR_GPU;
    driver_.ptx_result = CU_UNSUPPORTED_PTX_VERSION;
    driver_.log = "ptxas application ptx input, line 9; fatal   : Unsupported .version 9.0\nmore\n";
    EXPECT_EQ(LoadAll(f), AMP_UNSUPPORTED);
    std::string message = err_.message;
    EXPECT_EQ(
        message.find("kernel k0: cuModuleLoadDataEx: CUDA_ERROR_SOME (222): some text; NVRTC or the model's PTX is "
                     "newer than the driver: install"),
        0u)
        << message;
    EXPECT_NE(message.find("Unsupported .version 9.0"), std::string::npos) << message;
    EXPECT_EQ(message.find("more"), std::string::npos) << message;
    EXPECT_TRUE(driver_.modules.empty());
    EXPECT_FALSE(amp_cuda_latch_is_set(&latch_));
}

// Each call of the driver fails in turn: nothing stays loaded.
TEST_F(CudaLoad, EveryCallFailsInTurn) {
    Functions f(3);
    driver_.cubin_result = CU_NO_BINARY_FOR_GPU; // attributes are asked for, too
    ASSERT_EQ(LoadAll(f), AMP_OK) << err_.message;
    UnloadAll();
    const int calls = driver_.calls;
    ASSERT_GE(calls, 1 + 3 * 5);
    for (int i = 0; i < calls; i++) {
        SCOPED_TRACE(i);
        driver_.calls = 0;
        driver_.fail_at = i;
        driver_.fail_with = CU_OUT_OF_MEMORY;
        EXPECT_EQ(LoadAll(f), AMP_OUT_OF_MEMORY);
        EXPECT_TRUE(driver_.modules.empty());
        EXPECT_EQ(loaded_[0].module, nullptr);
        EXPECT_FALSE(amp_cuda_latch_is_set(&latch_));
    }
    driver_.calls = 0;
    driver_.fail_at = 7;
    driver_.fail_with = CU_LAUNCH_FAILED;
    EXPECT_EQ(LoadAll(f), AMP_DEVICE_FAILED);
    EXPECT_TRUE(amp_cuda_latch_is_set(&latch_));
    EXPECT_EQ(driver_.calls, 8) << "nothing is called after a fatal error";
    EXPECT_FALSE(driver_.modules.empty()) << "nor is anything unloaded";
    EXPECT_EQ(LoadAll(f), AMP_DEVICE_FAILED);
    EXPECT_EQ(std::string(err_.message).find("the device failed earlier: "), 0u) << err_.message;
    EXPECT_EQ(driver_.calls, 8);
}

TEST_F(CudaLoad, MemoryRunsOut) {
    Functions f(2);
    FailingAllocator failing(0);
    amp_allocator a = failing.get();
    EXPECT_EQ(LoadAll(f, &a), AMP_OUT_OF_MEMORY);
    Functions none(0);
    EXPECT_EQ(LoadAll(none, &a), AMP_OK) << "a model without functions";
}
