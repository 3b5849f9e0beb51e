// stand_in_test.cc: opening, devices and loading with the stand-in driver of fakecuda, each part in a process of
// its own.
#include <dlfcn.h>

#include <functional>
#include <map>

#include "base/error.h"
#include "runtime/device/cuda/load.h"
#include "tests/runtime/device/cuda/child.h"
#include "tests/runtime/device/cuda/functions.h"

namespace {

using Settings = std::map<std::string, std::string>;

std::string Failed(amp_status status, const amp_error &err) {
    return std::string(amp_status_name(status)) + ": " + err.message;
}

// The loader knows the library by its soname once it is open.
std::string OpenStandIn(const Settings &settings, CudaDriver *driver) {
    for (const auto &[name, value] : settings) setenv(name.c_str(), value.c_str(), 1);
    if (!dlopen("fakecuda/libcuda.so.1", RTLD_NOW | RTLD_GLOBAL)) return dlerror();
    amp_error err = {};
    amp_status status = amp_cuda_driver_open(driver, &err);
    return status ? Failed(status, err) : "";
}

// What is said of device 0: "sm_90, takes 10 of 15 .."
std::string Device(const Settings &settings) {
    return InChild([&]() -> std::string {
        CudaDriver driver;
        amp_cuda_device_info info;
        amp_error err = {};
        std::string failed = OpenStandIn(settings, &driver);
        if (!failed.empty()) return failed;
        amp_status status = amp_cuda_device_find(&driver, 0, &info, &err);
        if (status) return Failed(status, err);
        bool sound = info.warp_size == 32 && info.max_threads_per_block == 1024 && info.multiprocessors > 0 &&
                     info.max_shared_bytes >= 48 << 10 && info.max_shared_optin_bytes >= info.max_shared_bytes &&
                     info.memory_bytes > 0 && *info.name;
        bool has_bf16 = amp_cuda_check_precision(&info, AMP_DT_BF16, &err) == AMP_OK;
        return "sm_" + std::to_string(info.arch) + (has_bf16 ? " bf16" : "") + (sound ? "" : " but unsound");
    });
}

// A context with |f| loaded into it.
struct Loaded {
    CudaDriver driver;
    amp_cuda_latch latch = {};
    amp_cuda_device_info info;
    CuContext context = nullptr;
    std::vector<amp_cuda_loaded> functions;
    amp_error err = {};

    std::string Load(Functions &f, const Settings &settings) {
        std::string failed = OpenStandIn(settings, &driver);
        if (!failed.empty()) return failed;
        amp_status status = amp_cuda_device_find(&driver, 0, &info, &err);
        if (!status) status = CUDA_CHECKED(&driver, &latch, &err, primary_retain, (&context, info.device));
        if (!status) status = CUDA_CHECKED(&driver, &latch, &err, context_push, (context));
        functions.resize(f.count());
        amp_cuda_loader loader = {&driver, &latch, &info, nullptr, 2, nullptr, false, false};
        if (!status) status = amp_cuda_load(&loader, f.prelude(), f.data(), f.count(), functions.data(), &err);
        return status ? Failed(status, err) : "";
    }
    void Unload() { amp_cuda_unload(&driver, &latch, functions.data(), static_cast<int>(functions.size())); }

    // x[i] = i, then function |i| on it; the sum of x.
    std::string Run(int i) {
        float x[32], sum = 0;
        for (int k = 0; k < 32; k++) x[k] = static_cast<float>(k);
        CuPointer memory = 0;
        void *params[] = {&memory};
        auto run = [&]() -> amp_status {
            AMP_TRY(CUDA_CHECKED(&driver, &latch, &err, mem_alloc, (&memory, sizeof x)));
            AMP_TRY(CUDA_CHECKED(&driver, &latch, &err, copy_in, (memory, x, sizeof x, nullptr)));
            AMP_TRY(CUDA_CHECKED(&driver, &latch, &err, launch,
                                 (functions[i].function, 1, 1, 1, 32, 1, 1, 0, nullptr, params, nullptr)));
            AMP_TRY(CUDA_CHECKED(&driver, &latch, &err, copy_out, (x, memory, sizeof x, nullptr)));
            return CUDA_CHECKED(&driver, &latch, &err, context_sync, ());
        };
        amp_status status = run();
        if (memory) driver.mem_free(memory);
        for (float element : x) sum += element;
        return status ? Failed(status, err) : std::to_string(static_cast<int>(sum));
    }
};

class StandIn : public testing::Test {
  protected:
    void SetUp() override {
        std::string missing = NvrtcIsMissing();
        if (!missing.empty()) GTEST_SKIP() << missing;
    }
    OwnCache cache_;
};

} // namespace

TEST(StandInDevice, OfEveryArchitecture) {
    EXPECT_EQ(Device({}), "sm_90 bf16");
    EXPECT_EQ(Device({{"FAKECUDA_ARCH", "75"}}), "sm_75");
    for (std::string arch : {"80", "86", "89", "90", "120"})
        EXPECT_EQ(Device({{"FAKECUDA_ARCH", arch}}), "sm_" + arch + " bf16");
}

TEST(StandInDevice, None) {
    std::string text = Device({{"FAKECUDA_DEVICES", "0"}});
    EXPECT_EQ(text.find("AMP_NOT_FOUND: "), 0u) << text;
}

TEST(StandInDevice, EveryCallFails) {
    const std::map<std::string, std::string> expected = {
        {"cuInit:1:803", "AMP_UNSUPPORTED: cuInit: "},
        {"cuInit:1:100", "AMP_NOT_FOUND: cuInit: "},
        {"cuDriverGetVersion:1:1", "AMP_INTERNAL: cuDriverGetVersion: "},
        {"cuDeviceGetCount:1:3", "AMP_INTERNAL: cuDeviceGetCount: "},
        {"cuDeviceGet:1:101", "AMP_NOT_FOUND: cuDeviceGet: "},
        {"cuDeviceGetName:1:1", "AMP_INTERNAL: cuDeviceGetName: "},
        {"cuDeviceTotalMem_v2:1:999", "AMP_INTERNAL: cuDeviceTotalMem_v2: "},
        {"cuDeviceGetAttribute:3:719", "AMP_DEVICE_FAILED: cuDeviceGetAttribute: "},
    };
    for (const auto &[fault, begin] : expected) {
        std::string text = Device({{"FAKECUDA_FAIL", fault}});
        EXPECT_EQ(text.find(begin), 0u) << fault << ": " << text;
        EXPECT_NE(text.find("CUDA_ERROR_"), std::string::npos) << text;
    }
}

// The stand-in refuses machine code, as a driver refuses code for another architecture.
TEST_F(StandIn, RunsWhatWasCompiled) {
    for (const char *arch : {"75", "80", "90", "120"}) {
        std::string text = InChild([&]() -> std::string {
            Functions f(3);
            Loaded loaded;
            std::string failed = loaded.Load(f, {{"FAKECUDA_ARCH", arch}}), sums;
            if (!failed.empty()) return failed;
            for (int i = 0; i < 3; i++) sums += loaded.Run(i) + (loaded.functions[i].is_cubin ? " cubin " : " ptx ");
            loaded.Unload();
            return sums;
        });
        EXPECT_EQ(text, "496 ptx 528 ptx 560 ptx ") << "on sm_" << arch;
    }
}

TEST_F(StandIn, RunsTheModelsPtxWithoutNvrtc) {
    Functions f(1);
    std::vector<amp_cuda_image> images(1);
    amp_cuda_compile_options options = {80, 1, false, nullptr, nullptr};
    amp_error err = {};
    ASSERT_EQ(amp_cuda_compile(&options, f.prelude(), f.data(), 1, images.data(), &err), AMP_OK) << err.message;
    f.AddImage(0, 80, 0, false, static_cast<const char *>(images[0].data));
    f.AddImage(0, 90, 0, true,
               "\x7f"
               "ELF of another machine");
    f.SetSource(0, "no source");
    amp_cuda_images_free(images.data(), 1);
    auto sum = [&](const char *arch) {
        return InChild([&]() -> std::string {
            Loaded loaded;
            std::string failed = loaded.Load(f, {{"FAKECUDA_ARCH", arch}, {"NVRTC_PATH", "/nowhere"}});
            return failed.empty() ? loaded.Run(0) : failed;
        });
    };
    EXPECT_EQ(sum("80"), "496");
    EXPECT_EQ(sum("90"), "496") << "the cubin is refused";
    EXPECT_EQ(sum("75").find("AMP_NOT_FOUND: the model has no code for sm_75"), 0u) << sum("75");
}

TEST_F(StandIn, EveryCallOfLoadingFails) {
    const std::map<std::string, std::string> expected = {
        {"cuModuleLoadDataEx:1:2", "AMP_OUT_OF_MEMORY: kernel k0: cuModuleLoadDataEx: "},
        {"cuModuleLoadDataEx:2:222", "AMP_UNSUPPORTED: kernel k0: cuModuleLoadDataEx: "},
        {"cuModuleLoadDataEx:3:218", "AMP_BAD_FILE: kernel k1: cuModuleLoadDataEx: "},
        {"cuModuleGetFunction:2:500", "AMP_INTERNAL: cuModuleGetFunction: "},
        {"cuFuncGetAttribute:4:719", "AMP_DEVICE_FAILED: cuFuncGetAttribute: "},
    };
    for (const auto &[fault, begin] : expected) {
        std::string text = InChild([&, fault = fault]() -> std::string {
            Functions f(2);
            Loaded loaded;
            std::string failed = loaded.Load(f, {{"FAKECUDA_FAIL", fault}});
            if (failed.find("719") == std::string::npos) return failed;
            // Latched: the next call fails at once, with the first cause.
            amp_error err = {};
            amp_status status = CUDA_CHECKED(&loaded.driver, &loaded.latch, &err, context_sync, ());
            bool same =
                status == AMP_DEVICE_FAILED && std::string(err.message).find("cuFuncGetAttribute") != std::string::npos;
            return same ? failed : "not latched: " + Failed(status, err);
        });
        EXPECT_EQ(text.find(begin), 0u) << fault << ": " << text;
    }
}

// The kernel reads past its memory: the stand-in reports what a GPU would.
TEST_F(StandIn, AFatalErrorIsLatched) {
    std::string text = InChild([]() -> std::string {
        Functions f(1);
        f.SetSource(0, "extern \"C\" __global__ void k0(float *x) { x[threadIdx.x] += x[threadIdx.x + (1 << 28)]; }\n");
        Loaded loaded;
        std::string failed = loaded.Load(f, {});
        if (!failed.empty()) return failed;
        std::string first = loaded.Run(0), later = loaded.Run(0);
        loaded.Unload();
        if (first.find("AMP_DEVICE_FAILED: cu") != 0) return "first: " + first;
        const std::string begin = "AMP_DEVICE_FAILED: ";
        return later == begin + "the device failed earlier: " + first.substr(begin.size()) ? "latched"
                                                                                           : "later: " + later;
    });
    EXPECT_EQ(text, "latched");
}
