// driver_test.cc: opening the driver, what is said where it or a device is missing or too old.  The drivers here are
// small libraries of our own; each is loaded in a process of its own.
#include "runtime/device/cuda/cuda_driver.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <string>

#include "tests/runtime/device/cuda/child.h"

namespace {

const std::string kFolder = "tests/runtime/device/cuda/";
using Settings = std::map<std::string, std::string>;

// Opens |library| as libcuda.so.1 (by its soname, which the loader then knows), and gives "STATUS: message", or what
// |then| makes of the open driver.
template <typename Then> std::string WithDriver(const std::string &library, const Settings &settings, Then then) {
    return InChild([&]() -> std::string {
        for (const auto &[name, value] : settings) setenv(name.c_str(), value.c_str(), 1);
        if (!dlopen((kFolder + library).c_str(), RTLD_NOW)) return dlerror();
        CudaDriver driver;
        amp_error err = {};
        amp_status status = amp_cuda_driver_open(&driver, &err);
        if (status == AMP_OK) return then(driver);
        if (driver.library || driver.launch) return "a driver that failed to open is not empty";
        return std::string(amp_status_name(status)) + ": " + err.message;
    });
}

std::string Opened(const std::string &library, const Settings &settings) {
    return WithDriver(library, settings, [](CudaDriver &driver) {
        std::string text = "open, version " + std::to_string(driver.version);
        amp_cuda_driver_close(&driver);
        return driver.library ? "not closed" : text;
    });
}

std::string Found(int ordinal, const Settings &settings) {
    return WithDriver("tiny_driver.so", settings, [&](CudaDriver &driver) -> std::string {
        amp_cuda_device_info info;
        amp_error err = {};
        amp_status status = amp_cuda_device_find(&driver, ordinal, &info, &err);
        if (status) return std::string(amp_status_name(status)) + ": " + err.message;
        return std::string(info.name) + ", sm_" + std::to_string(info.arch) + ", " +
               std::to_string(info.memory_bytes >> 30) + " GiB, " + std::to_string(info.multiprocessors) + ", warp " +
               std::to_string(info.warp_size) + ", shared " + std::to_string(info.max_shared_bytes) + " or " +
               std::to_string(info.max_shared_optin_bytes) + ", threads " + std::to_string(info.max_threads_per_block);
    });
}

} // namespace

TEST(CudaDriver, Opens) { EXPECT_EQ(Opened("tiny_driver.so", {}), "open, version 12040"); }

TEST(CudaDriver, IsMissing) {
    std::string text = InChild([]() -> std::string {
        CudaDriver driver;
        amp_error err = {};
        amp_status status = amp_cuda_driver_open(&driver, &err);
        return std::string(amp_status_name(status)) + ": " + err.message;
    });
    if (text.rfind("AMP_NOT_FOUND: no NVIDIA driver", 0) != 0)
        GTEST_SKIP() << "NOT TESTED, because there is a driver on this machine: " << text;
    EXPECT_NE(text.find("install NVIDIA's driver (525 or newer)"), std::string::npos) << text;
    EXPECT_NE(text.find("\"cpu\""), std::string::npos) << text;
}

TEST(CudaDriver, IsTooOld) {
    EXPECT_EQ(Opened("tiny_driver.so", {{"TINY_VERSION", "11080"}}),
              "AMP_UNSUPPORTED: the NVIDIA driver is too old: it is for CUDA 11.8; CUDA 12.0 is needed (driver 525 or "
              "newer)");
    EXPECT_EQ(
        Opened("tiny_driver_without_launch.so", {{"TINY_VERSION", "11040"}}),
        "AMP_UNSUPPORTED: the NVIDIA driver is too old: it has no cuLaunchKernel and is for CUDA 11.4; CUDA 12.0 is "
        "needed (driver 525 or newer)");
}

TEST(CudaDriver, IsSomethingElse) {
    EXPECT_EQ(Opened("tiny_driver_without_all.so", {}),
              "AMP_BAD_FILE: libcuda.so.1 is not NVIDIA's driver: it has no cuGetErrorName");
}

TEST(CudaDriver, DoesNotStart) {
    EXPECT_EQ(Opened("tiny_driver.so", {{"TINY_INIT", "34"}}),
              "AMP_UNSUPPORTED: cuInit: CUDA_ERROR_STUB_LIBRARY (34): as the test asked for; the libcuda.so.1 that was "
              "found is the toolkit's stub: take its folder out of LD_LIBRARY_PATH and install NVIDIA's driver");
    EXPECT_EQ(
        Opened("tiny_driver.so", {{"TINY_INIT", "100"}}),
        "AMP_NOT_FOUND: cuInit: an error without a name (100): the driver has no text for it; the NVIDIA driver finds "
        "no GPU: is CUDA_VISIBLE_DEVICES set to leave it out? else use the device \"cpu\"");
    EXPECT_EQ(Opened("tiny_driver.so", {{"TINY_INIT", "803"}}),
              "AMP_UNSUPPORTED: cuInit: CUDA_ERROR_TINY (803): as the test asked for; restart the machine after "
              "installing a driver");
}

TEST(CudaDevice, IsFound) {
    EXPECT_EQ(Found(0, {}), "Tiny 100, sm_80, 100 GiB, 1016, warp 1010, shared 1008 or 1097, threads 1001");
    EXPECT_EQ(Found(1, {{"TINY_DEVICES", "2"}, {"TINY_ARCH", "120"}}),
              "Tiny 101, sm_120, 101 GiB, 1016, warp 1010, shared 1008 or 1097, threads 1001");
    EXPECT_EQ(Found(0, {{"TINY_ARCH", "75"}}).substr(0, 15), "Tiny 100, sm_75");
}

TEST(CudaDevice, IsNotThere) {
    EXPECT_EQ(Found(0, {{"TINY_DEVICES", "0"}}),
              "AMP_NOT_FOUND: no CUDA device: the NVIDIA driver (CUDA 12.4) finds none; is CUDA_VISIBLE_DEVICES set to "
              "leave one out?");
    EXPECT_EQ(Found(1, {}), "AMP_NOT_FOUND: no CUDA device 1: there is 1, numbered from 0");
    EXPECT_EQ(Found(-1, {{"TINY_DEVICES", "2"}}), "AMP_NOT_FOUND: no CUDA device -1: there are 2, numbered from 0");
}

TEST(CudaDevice, IsTooOld) {
    EXPECT_EQ(
        Found(0, {{"TINY_ARCH", "70"}}),
        "AMP_UNSUPPORTED: CUDA device 0 (Tiny 100) has compute capability 7.0, and 7.5 or newer is needed; use the "
        "device \"cpu\"");
}

TEST(CudaDevice, PrecisionsThatItLacks) {
    amp_cuda_device_info info = {};
    snprintf(info.name, sizeof info.name, "Tesla T4");
    amp_error err = {};
    info.arch = 75;
    for (amp_dtype low : {AMP_DT_F16, AMP_DT_F32}) EXPECT_EQ(amp_cuda_check_precision(&info, low, &err), AMP_OK);
    for (amp_dtype low : {AMP_DT_BF16, AMP_DT_TF32}) {
        EXPECT_EQ(amp_cuda_check_precision(&info, low, &err), AMP_UNSUPPORTED);
        EXPECT_EQ(std::string(err.message),
                  "CUDA device 0 (Tesla T4) has compute capability 7.5, which has no " +
                      std::string(amp_dtype_name(low)) +
                      "; compile the model with --precision fp16, or use a device of 8.0 or newer");
    }
    info.arch = 80;
    for (amp_dtype low : {AMP_DT_F16, AMP_DT_F32, AMP_DT_BF16, AMP_DT_TF32})
        EXPECT_EQ(amp_cuda_check_precision(&info, low, &err), AMP_OK);
}
