// inspect_cuda_test.cc: what amp/inspect.h finds for CUDA.
#include "amp/inspect.h"

#include <dlfcn.h>

#include <cstdlib>
#include <cstring>

#include "tests/runtime/device/cuda/child.h"
#include "tests/runtime/device/cuda/functions.h"
#include "tests/runtime/device/cuda/tiny_cuda.h"
#include "tests/runtime/tiny.h"

namespace {

class InspectCuda : public testing::Test {
  protected:
    void SetUp() override {
        ASSERT_EQ(amp_model_from_desc(tiny_cuda_desc(), "tiny", nullptr, &model_, &err_), AMP_OK) << err_.message;
    }
    ~InspectCuda() override { amp_model_release(model_); }

    amp_model *model_ = nullptr;
    amp_error err_ = {};
};

TEST_F(InspectCuda, Tables) {
    amp_tables tables;
    ASSERT_EQ(amp_model_get_tables(model_, "cuda", &tables, &err_), AMP_OK) << err_.message;
    ASSERT_NE(tables.train_step, nullptr);
    EXPECT_EQ(tables.train_step->kernels, nullptr);
    EXPECT_NE(tables.train_step->cuda_kernels, nullptr);
    EXPECT_GT(tables.function_count, 0);
    std::vector<uint64_t> bytes(static_cast<size_t>(tables.train_step->buffer_count));
    ASSERT_EQ(amp_program_plan(tables.train_step, {8, 0}, nullptr, bytes.data(), &err_), AMP_OK) << err_.message;
    for (uint64_t size : bytes) EXPECT_EQ(size % 256, 0u);
}

// In a process of its own, whose driver is the tiny one, which has two devices.
std::string OnTinyDriver(const std::function<std::string()> &part) {
    return InChild([&]() -> std::string {
        setenv("TINY_DEVICES", "2", 1);
        setenv("TINY_ARCH", "75", 1);
        if (!dlopen("tests/runtime/device/cuda/tiny_driver.so", RTLD_NOW)) return dlerror();
        return part();
    });
}

TEST_F(InspectCuda, TheDriver) {
    EXPECT_EQ(OnTinyDriver([]() -> std::string {
                  amp_error err = {};
                  amp_cuda_found found;
                  if (amp_cuda_find(AMP_CUDA_DRIVER, &found, &err)) return err.message;
                  const std::string path = found.path;
                  return std::to_string(found.version) + ", " + std::to_string(found.devices) + " devices, " +
                         path.substr(path.find_last_of('/') + 1);
              }),
              "12040, 2 devices, tiny_driver.so");
}

TEST_F(InspectCuda, Devices) {
    EXPECT_EQ(OnTinyDriver([]() -> std::string {
                  amp_error err = {};
                  amp_gpu_info gpu;
                  if (amp_gpu_at(1, &gpu, &err)) return err.message;
                  return std::string(gpu.name) + ", " + std::to_string(gpu.index) + ", sm_" + std::to_string(gpu.arch) +
                         ", " + std::to_string(gpu.memory >> 30) + " GiB, " + std::to_string(gpu.multiprocessors);
              }),
              "Tiny 101, 1, sm_75, 101 GiB, 1016");
    EXPECT_EQ(OnTinyDriver([]() -> std::string {
                  amp_error err = {};
                  amp_gpu_info gpu;
                  const amp_status status = amp_gpu_at(2, &gpu, &err);
                  return amp_status_name(status) + std::string(": ") + err.message;
              }),
              "AMP_NOT_FOUND: no CUDA device 2: there are 2, numbered from 0");
}

// The types of the model's products: of the same model in f16 and in bf16.
TEST_F(InspectCuda, WhetherADeviceHasItsTypes) {
    amp_gpu_info gpu = {};
    snprintf(gpu.name, sizeof gpu.name, "Tesla T4");
    gpu.arch = 75;
    for (const char *low : {"f16", "bf16"}) {
        amp_model_desc desc = *tiny_cuda_desc();
        amp_model *model = nullptr;
        desc.low = low;
        ASSERT_EQ(amp_model_from_desc(&desc, "tiny", nullptr, &model, &err_), AMP_OK) << err_.message;
        EXPECT_EQ(amp_model_check_gpu(model, &gpu, &err_) == AMP_OK, !strcmp(low, "f16"));
        amp_model_release(model);
    }
    EXPECT_NE(strstr(err_.message, "CUDA device 0 (Tesla T4) has compute capability 7.5, which has no bf16"), nullptr)
        << err_.message;
}

// A session that cannot be made has its kernels from nowhere.
TEST_F(InspectCuda, AKernelThatOnlyNewerDevicesHave) {
    amp_model_desc desc = *tiny_cuda_desc();
    amp_model_cuda cuda = *desc.cuda;
    const auto *given = static_cast<const amp_model_cuda_function *>(cuda.functions.data);
    std::vector<amp_model_cuda_function> functions(given, given + cuda.functions.count);
    for (amp_model_cuda_function &f : functions) f.min_arch = 80;
    cuda.functions.data = functions.data();
    desc.cuda = &cuda;
    amp_model *model = nullptr;
    amp_kernel_sources sources;
    amp_gpu_info gpu = {};
    snprintf(gpu.name, sizeof gpu.name, "Tesla T4");
    gpu.arch = 75;
    ASSERT_EQ(amp_model_from_desc(&desc, "tiny", nullptr, &model, &err_), AMP_OK) << err_.message;
    EXPECT_EQ(amp_model_kernel_sources(model, &gpu, 0, &sources, &err_), AMP_UNSUPPORTED);
    EXPECT_NE(strstr(err_.message, " needs sm_80, and Tesla T4 is sm_75; compile the model with --precision fp16"),
              nullptr)
        << err_.message;
    amp_model_release(model);
}

TEST_F(InspectCuda, TheCache) {
    OwnCache own;
    amp_cuda_found found;
    ASSERT_EQ(amp_cuda_find(AMP_CUDA_CACHE, &found, &err_), AMP_OK) << err_.message;
    EXPECT_EQ(found.path, own.path());
    setenv("AMPC_CACHE_LIMIT", "0", 1);
    EXPECT_EQ(amp_cuda_find(AMP_CUDA_CACHE, &found, &err_), AMP_NOT_FOUND);
    EXPECT_NE(strstr(err_.message, "no cache of compiled kernels: AMPC_CACHE_LIMIT is 0, or"), nullptr);
    EXPECT_STREQ(found.path, "");
    unsetenv("AMPC_CACHE_LIMIT");
    EXPECT_EQ(amp_cuda_find(static_cast<amp_cuda_software>(9), &found, &err_), AMP_INVALID_ARGUMENT);
}

// No driver is needed for it, and a session does without it.
TEST_F(InspectCuda, Cublaslt) {
    amp_cuda_found found;
    EXPECT_EQ(InChild([&]() -> std::string {
                  setenv("CUBLASLT_PATH", "/nowhere", 1);
                  if (amp_cuda_find(AMP_CUDA_CUBLASLT, &found, &err_) != AMP_NOT_FOUND) return err_.message;
                  return strstr(err_.message, "searched: CUBLASLT_PATH=/nowhere") ? "" : err_.message;
              }),
              "");
    if (amp_cuda_find(AMP_CUDA_CUBLASLT, &found, &err_)) GTEST_SKIP() << "NOT TESTED further: " << err_.message;
    EXPECT_GE(found.version, 11000);
    EXPECT_NE(strstr(found.path, "libcublasLt"), nullptr) << found.path;
}

// Of functions without images: all by NVRTC, and where there is none, by nothing.
TEST_F(InspectCuda, WhereFunctionsComeFrom) {
    OwnCache own;
    amp_tables tables;
    amp_kernel_sources sources;
    amp_gpu_info gpu = {};
    amp_cuda_found nvrtc;
    gpu.arch = 80;
    ASSERT_EQ(amp_model_get_tables(model_, "cuda", &tables, &err_), AMP_OK);
    if (NvrtcIsMissing().empty()) {
        ASSERT_EQ(amp_model_kernel_sources(model_, &gpu, 0, &sources, &err_), AMP_OK) << err_.message;
        EXPECT_EQ(sources.nvrtc, tables.function_count);
        EXPECT_EQ(sources.model + sources.model_ptx + sources.cache, 0);
        ASSERT_EQ(amp_cuda_find(AMP_CUDA_NVRTC, &nvrtc, &err_), AMP_OK) << err_.message;
        EXPECT_GE(nvrtc.version, 12000);
        EXPECT_LT(nvrtc.least_arch, nvrtc.most_arch);
        EXPECT_NE(strstr(nvrtc.path, "libnvrtc"), nullptr) << nvrtc.path;
    }
    EXPECT_EQ(InChild([&]() -> std::string {
                  setenv("NVRTC_PATH", "/nowhere", 1);
                  if (amp_model_kernel_sources(model_, &gpu, 0, &sources, &err_) != AMP_NOT_FOUND) return err_.message;
                  return amp_cuda_find(AMP_CUDA_NVRTC, &nvrtc, &err_) == AMP_NOT_FOUND ? "" : err_.message;
              }),
              "");
}

} // namespace
