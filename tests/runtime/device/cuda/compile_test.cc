// compile_test.cc: which image of a function is taken or made.
#include "runtime/device/cuda/load.h"

#include <fstream>
#include <functional>
#include <set>
#include <thread>

#include "cuda_sdk/nvrtc.h"
#include "tests/runtime/device/cuda/child.h"
#include "tests/runtime/device/cuda/functions.h"

namespace {

struct Images : std::vector<amp_cuda_image> {
    explicit Images(int count) : std::vector<amp_cuda_image>(count) {}
    ~Images() { amp_cuda_images_free(data(), static_cast<int>(size())); }
};

amp_status Compile(const Functions &f, int arch, bool machine_code, Images &images, amp_error *err, int threads = 2,
                   std::string *warnings = nullptr) {
    amp_log log = {[](void *user, amp_log_level level, const char *text) {
                       if (user && level == AMP_LOG_WARNING) *static_cast<std::string *>(user) += text;
                   },
                   warnings};
    amp_cuda_compile_options options = {arch, threads, machine_code, "Some GPU", &log};
    return amp_cuda_compile(&options, f.prelude(), f.data(), f.count(), images.data(), err);
}

amp_cuda_origins Origins(const Functions &f, int arch, amp_status wanted, amp_error *err) {
    amp_cuda_compile_options options = {arch, 1, true, "Some GPU", nullptr};
    amp_cuda_origins found = {};
    EXPECT_EQ(amp_cuda_find_origins(&options, f.prelude(), f.data(), f.count(), &found, err), wanted) << err->message;
    return found;
}

// Where NVRTC is, or is not.
class CudaImages : public testing::Test {
  protected:
    OwnCache cache_;
    amp_error err_ = {};
};

class CudaCompile : public CudaImages {
  protected:
    void SetUp() override {
        std::string missing = NvrtcIsMissing();
        if (!missing.empty()) GTEST_SKIP() << missing;
    }
};

// In a process of its own, where no NVRTC is found.
std::string WithoutNvrtc(const std::function<std::string()> &part) {
    return InChild([&]() -> std::string {
        setenv("NVRTC_PATH", "/nowhere", 1);
        return part();
    });
}

std::string Message(amp_status status, const amp_error &err) {
    return std::string(amp_status_name(status)) + ": " + err.message;
}

} // namespace

// ---- images of the model: no NVRTC is needed ----

TEST_F(CudaImages, TheCubinOfExactlyThisArchitecture) {
    Functions f(1);
    f.AddImage(0, 80, 0, true, "cubin 80");
    f.AddImage(0, 86, 0, false, "ptx 86");
    f.AddImage(0, 86, 0, true, "cubin 86");
    f.AddImage(0, 90, 0, true, "cubin 90");
    f.AddImage(0, 90, 'a', true, "cubin 90a");
    std::string text = WithoutNvrtc([&]() -> std::string {
        std::string taken;
        for (int arch : {80, 86, 90}) {
            Images images(1);
            amp_status status = Compile(f, arch, true, images, &err_);
            if (status) return Message(status, err_);
            taken += Bytes(images[0]) + ", ";
            if (images[0].origin != AMP_CUDA_FROM_MODEL || images[0].owned || !images[0].is_cubin ||
                images[0].arch != arch || images[0].registers != 11 || images[0].shared_bytes != 12 ||
                images[0].spill_bytes != 13 || images[0].stack_bytes != 14)
                return "wrong description";
        }
        return taken;
    });
    EXPECT_EQ(text, "cubin 80, cubin 86, cubin 90a, ");
}

TEST_F(CudaImages, PtxOfAnArchitectureNotAbove) {
    Functions f(1);
    f.AddImage(0, 75, 0, false, "ptx 75");
    f.AddImage(0, 86, 0, false, "ptx 86");
    f.AddImage(0, 80, 0, false, "ptx 80");
    f.AddImage(0, 90, 'a', false, "ptx 90a");
    f.AddImage(0, 90, 0, true, "cubin 90");
    auto taken = [&](int arch, bool machine_code) {
        return WithoutNvrtc([&]() -> std::string {
            Images images(1);
            amp_status status = Compile(f, arch, machine_code, images, &err_);
            return status ? Message(status, err_) : Bytes(images[0]).c_str();
        });
    };
    EXPECT_EQ(taken(75, true), "ptx 75");
    EXPECT_EQ(taken(80, true), "ptx 80");
    EXPECT_EQ(taken(89, true), "ptx 86");
    EXPECT_EQ(taken(90, true), "cubin 90");
    EXPECT_EQ(taken(90, false), "ptx 90a");
    EXPECT_EQ(taken(120, true), "ptx 86") << "sm_90a runs on sm_90 alone";
}

// A function may need a part of the text that all have; the cache keeps them apart.
TEST_F(CudaCompile, PartsOfThePrelude) {
    Functions f(2);
    const auto at = [&](const char *text) { return static_cast<uint32_t>(strstr(f.prelude(), text) - f.prelude()); };
    const auto all = static_cast<uint32_t>(strlen(f.prelude()));
    const amp_model_cuda_range parts[] = {{0, at("#undef")}, {at("#define PLUS"), all - at("#define PLUS")}};
    f[1].prelude = {parts, 2};
    for (int run = 0; run < 2; run++) {
        Images images(2);
        ASSERT_EQ(Compile(f, 90, false, images, &err_), AMP_OK) << err_.message;
        EXPECT_EQ(images[1].origin, run ? AMP_CUDA_FROM_CACHE : AMP_CUDA_FROM_NVRTC);
        EXPECT_EQ(Bytes(images[0]).find("447A0000"), std::string::npos);
        EXPECT_NE(Bytes(images[1]).find("447A0000"), std::string::npos) << "1 * 1000 as hexadecimal f32:\n"
                                                                        << Bytes(images[1]);
    }
}

TEST_F(CudaImages, NothingFitsAndNvrtcIsMissing) {
    Functions f(2);
    f.AddImage(0, 90, 0, true, "cubin 90");
    std::string text = WithoutNvrtc([&]() -> std::string {
        Images images(2);
        return Message(Compile(f, 90, true, images, &err_), err_);
    });
    EXPECT_EQ(text.find("AMP_NOT_FOUND: the model has no code for sm_90 (Some GPU), and it cannot be compiled here: "
                        "compile the model with `ampc --gpu-arch sm_90`, or: NVIDIA's NVRTC ("),
              0u)
        << text;
    EXPECT_NE(text.find("pip install nvidia-cuda-nvrtc"), std::string::npos) << text;
}

TEST_F(CudaImages, AFunctionThatNeedsANewerDeviceIsLeftOut) {
    Functions f(2);
    for (int i = 0; i < 2; i++) f.AddImage(i, 75, 0, true, "cubin 75");
    f[0].min_arch = 80;
    Images images(2);
    ASSERT_EQ(Compile(f, 75, true, images, &err_), AMP_OK) << err_.message;
    EXPECT_EQ(images[0].data, nullptr);
    EXPECT_EQ(Bytes(images[1]), "cubin 75");
    EXPECT_EQ(Origins(f, 75, AMP_OK, &err_).from[AMP_CUDA_FROM_MODEL], 1);
    EXPECT_EQ(Origins(f, 80, AMP_OK, &err_).from[AMP_CUDA_FROM_NVRTC], 2);
}

// ---- NVRTC and the cache ----

TEST_F(CudaCompile, MakesMachineCodeAndKeepsIt) {
    Functions f(5);
    Images made(5), kept(5);
    ASSERT_EQ(Compile(f, 80, true, made, &err_), AMP_OK) << err_.message;
    EXPECT_EQ(cache_.Files().size(), 5u);
    ASSERT_EQ(Compile(f, 80, true, kept, &err_), AMP_OK) << err_.message;
    std::set<std::string> different;
    for (int i = 0; i < 5; i++) {
        EXPECT_EQ(made[i].origin, AMP_CUDA_FROM_NVRTC);
        EXPECT_EQ(kept[i].origin, AMP_CUDA_FROM_CACHE);
        EXPECT_GT(made[i].compile_seconds, 0);
        EXPECT_EQ(kept[i].compile_seconds, 0);
        EXPECT_EQ(Bytes(made[i]).substr(1, 3), "ELF");
        EXPECT_NE(Bytes(made[i]).find("k" + std::to_string(i)), std::string::npos) << "the images are in order";
        EXPECT_EQ(Bytes(made[i]), Bytes(kept[i]));
        EXPECT_TRUE(made[i].is_cubin && kept[i].is_cubin);
        EXPECT_GT(made[i].registers, 3);
        EXPECT_EQ(kept[i].registers, made[i].registers);
        EXPECT_EQ(kept[i].spill_bytes, 0);
        EXPECT_EQ(kept[i].arch, 80);
        different.insert(Bytes(made[i]));
    }
    EXPECT_EQ(different.size(), 5u);
}

TEST_F(CudaCompile, MakesPtxWhereMachineCodeIsNotTaken) {
    Functions f(2);
    f.AddImage(0, 86, 0, true, "cubin 86");
    Images images(2), kept(2);
    ASSERT_EQ(Compile(f, 86, false, images, &err_), AMP_OK) << err_.message;
    ASSERT_EQ(Compile(f, 86, false, kept, &err_), AMP_OK) << err_.message;
    for (int i = 0; i < 2; i++) {
        EXPECT_FALSE(images[i].is_cubin);
        EXPECT_NE(Bytes(images[i]).find(".target sm_86"), std::string::npos);
        EXPECT_EQ(Bytes(images[i]).back(), '\0');
        EXPECT_EQ(images[i].registers, -1) << "ptxas did not run";
        EXPECT_EQ(Bytes(kept[i]), Bytes(images[i]));
        EXPECT_EQ(kept[i].origin, AMP_CUDA_FROM_CACHE);
    }
}

TEST_F(CudaCompile, WhatIsThereAlreadyIsLeftAlone) {
    Functions f(2);
    Images images(2);
    images[1].data = "there", images[1].size = 5;
    ASSERT_EQ(Compile(f, 80, true, images, &err_), AMP_OK) << err_.message;
    EXPECT_EQ(images[0].origin, AMP_CUDA_FROM_NVRTC);
    EXPECT_EQ(Bytes(images[1]), "there");
}

TEST_F(CudaCompile, TheModelsPtxIsTheLastResort) {
    Functions f(2);
    f.AddImage(0, 80, 0, false, "ptx 80");
    f.AddImage(1, 80, 0, false, "ptx 80");
    f.SetSource(1, "this does not compile");
    Images images(2);
    std::string warnings;
    ASSERT_EQ(Compile(f, 86, true, images, &err_, 2, &warnings), AMP_OK) << err_.message;
    EXPECT_EQ(images[0].origin, AMP_CUDA_FROM_NVRTC) << "machine code is better";
    EXPECT_NE(warnings.find("1 CUDA kernel run from the model's PTX, which the driver compiles in every process: k1"),
              std::string::npos)
        << warnings;
    EXPECT_EQ(images[1].origin, AMP_CUDA_FROM_MODEL);
    EXPECT_STREQ(Bytes(images[1]).c_str(), "ptx 80");
}

// What is foretold is what happens, and foretelling compiles nothing.
TEST_F(CudaCompile, OriginsAreThoseOfACompilation) {
    Functions f(3);
    f.AddImage(0, 80, 0, true, "cubin 80");
    f.AddImage(1, 70, 0, false, "ptx 70");
    amp_cuda_origins before = Origins(f, 80, AMP_OK, &err_);
    EXPECT_EQ(before.from[AMP_CUDA_FROM_MODEL], 1);
    EXPECT_EQ(before.from[AMP_CUDA_FROM_NVRTC], 2);
    EXPECT_EQ(before.from[AMP_CUDA_FROM_CACHE] + before.from[AMP_CUDA_FROM_NOWHERE] + before.model_ptx, 0);
    EXPECT_EQ(cache_.Files().size(), 0u);
    Images images(3);
    ASSERT_EQ(Compile(f, 80, true, images, &err_), AMP_OK) << err_.message;
    amp_cuda_origins after = Origins(f, 80, AMP_OK, &err_);
    EXPECT_EQ(after.from[AMP_CUDA_FROM_MODEL], 1);
    EXPECT_EQ(after.from[AMP_CUDA_FROM_CACHE], 2);
}

TEST_F(CudaImages, OriginsWithoutNvrtc) {
    EXPECT_EQ(WithoutNvrtc([&]() -> std::string {
                  Functions f(2);
                  amp_error err = {};
                  f.AddImage(0, 80, 0, true, "cubin 80");
                  f.AddImage(1, 70, 0, false, "ptx 70");
                  amp_cuda_origins found = Origins(f, 80, AMP_OK, &err);
                  if (found.from[AMP_CUDA_FROM_MODEL] != 2 || found.model_ptx != 1) return "not both from the model";
                  found = Origins(f, 75, AMP_NOT_FOUND, &err);
                  return found.from[AMP_CUDA_FROM_NOWHERE] == 1 && strstr(err.message, "`ampc --gpu-arch sm_75`")
                             ? ""
                             : err.message;
              }),
              "");
}

TEST_F(CudaCompile, AnArchitectureThatNvrtcDoesNotKnowGetsPtxOfAnOlderOne) {
    amp_nvrtc *nvrtc;
    ASSERT_EQ(amp_nvrtc_open(nullptr, &nvrtc, &err_), AMP_OK);
    std::vector<int> archs(amp_nvrtc_architectures(nvrtc, nullptr, 0));
    amp_nvrtc_architectures(nvrtc, archs.data(), static_cast<int>(archs.size()));
    amp_nvrtc_close(nvrtc);
    Functions f(1);
    Images images(1);
    std::string warnings;
    ASSERT_EQ(Compile(f, 999, true, images, &err_, 2, &warnings), AMP_OK) << err_.message;
    EXPECT_NE(warnings.find("knows no sm_999: the kernels are PTX for sm_"), std::string::npos) << warnings;
    EXPECT_FALSE(images[0].is_cubin);
    EXPECT_EQ(images[0].arch, archs.back());
    EXPECT_NE(Bytes(images[0]).find(".target sm_" + std::to_string(archs.back())), std::string::npos);
}

TEST_F(CudaCompile, TheFirstErrorNamesTheKernelAndTheLine) {
    Functions f(4);
    f.SetSource(2, "extern \"C\" __global__ void k2(float *x) {\n    x[0] = second;\n}\n");
    f.SetSource(3, "third");
    Images images(4);
    EXPECT_EQ(Compile(f, 80, true, images, &err_), AMP_INTERNAL);
    EXPECT_STREQ(err_.message, "the model's CUDA code does not compile for sm_80: k2, line 6: identifier \"second\" is "
                               "undefined: `x[0] = second;`");
}

TEST_F(CudaCompile, ADamagedCacheIsRebuilt) {
    Functions f(1);
    Images first(1), second(1), third(1);
    ASSERT_EQ(Compile(f, 80, true, first, &err_), AMP_OK) << err_.message;
    ASSERT_EQ(cache_.Files().size(), 1u);
    std::fstream file(cache_.Files()[0], std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(300);
    file.put('\x55');
    file.close();
    ASSERT_EQ(Compile(f, 80, true, second, &err_), AMP_OK) << err_.message;
    EXPECT_EQ(second[0].origin, AMP_CUDA_FROM_NVRTC);
    EXPECT_EQ(Bytes(second[0]), Bytes(first[0]));
    ASSERT_EQ(Compile(f, 80, true, third, &err_), AMP_OK) << err_.message;
    EXPECT_EQ(third[0].origin, AMP_CUDA_FROM_CACHE);
}

TEST_F(CudaCompile, WithoutACache) {
    Functions f(2);
    setenv("AMPC_CACHE_DIR", "/proc/1/fdinfo", 1); // no process can write there
    for (int round = 0; round < 2; round++) {
        Images images(2);
        ASSERT_EQ(Compile(f, 80, true, images, &err_), AMP_OK) << err_.message;
        for (const amp_cuda_image &image : images) EXPECT_EQ(image.origin, AMP_CUDA_FROM_NVRTC);
    }
}

// What is made depends neither on threads nor on processes that work at the same time.
TEST_F(CudaCompile, ProcessesCompileAtOnce) {
    Functions f(6);
    std::string expected;
    Images alone(6);
    ASSERT_EQ(Compile(f, 80, true, alone, &err_, 1), AMP_OK) << err_.message;
    for (const amp_cuda_image &image : alone) expected += std::to_string(std::hash<std::string>()(Bytes(image))) + " ";
    for (const std::string &file : cache_.Files()) std::filesystem::remove(file);
    std::vector<std::string> results(3);
    std::vector<std::thread> waiting;
    for (auto &result : results)
        waiting.emplace_back([&] {
            result = InChild([&]() -> std::string {
                Images images(6);
                amp_error err = {};
                if (Compile(f, 80, true, images, &err, 2)) return err.message;
                std::string text;
                for (const amp_cuda_image &image : images)
                    text += std::to_string(std::hash<std::string>()(Bytes(image))) + " ";
                return text;
            });
        });
    for (std::thread &thread : waiting) thread.join();
    for (const std::string &result : results) EXPECT_EQ(result, expected);
    EXPECT_EQ(cache_.Files().size(), 6u);
}
