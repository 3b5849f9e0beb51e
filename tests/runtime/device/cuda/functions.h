// functions.h: small models of CUDA functions, for the tests that compile and load them.
#ifndef AMP_TESTS_RUNTIME_DEVICE_CUDA_FUNCTIONS_H
#define AMP_TESTS_RUNTIME_DEVICE_CUDA_FUNCTIONS_H

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "amp/model_abi.h"
#include "cuda_sdk/nvrtc.h"
#include "runtime/device/cuda/load.h"

// A cache folder of the test's own.
class OwnCache {
  public:
    OwnCache() {
        std::string name = testing::TempDir() + "amp_compile_test.XXXXXX";
        path_ = mkdtemp(name.data());
        setenv("AMPC_CACHE_DIR", path_.c_str(), 1);
        unsetenv("AMPC_CACHE_LIMIT");
    }
    ~OwnCache() { std::filesystem::remove_all(path_); }
    const std::string &path() const { return path_; }
    std::vector<std::string> Files() const {
        std::vector<std::string> files;
        for (const auto &entry : std::filesystem::directory_iterator(path_)) files.push_back(entry.path());
        return files;
    }

  private:
    std::string path_;
};

// Functions k0, k1, ...; ki adds i to each element.
class Functions {
  public:
    explicit Functions(int count) : sources_(count), names_(count), image_lists_(count), functions_(count) {
        for (int i = 0; i < count; i++) {
            names_[i] = "k" + std::to_string(i);
            sources_[i] = "extern \"C\" __global__ void " + names_[i] + "(float *x) { x[threadIdx.x] += PLUS(" +
                          std::to_string(i) + "); }\n";
            functions_[i] = {names_[i].c_str(), sources_[i].c_str(), {nullptr, 0}, 75, 0, {0, 0, nullptr}};
        }
    }
    // Without its second and third line, which are all between its ends, ki adds 1000 i.
    const char *prelude() const {
        return "#define TIMES 1000.0f\n"
               "#undef TIMES\n#define TIMES 1.0f\n"
               "#define PLUS(i) (float)(i) * TIMES\n";
    }
    int count() const { return static_cast<int>(functions_.size()); }
    const amp_model_cuda_function *data() const { return functions_.data(); }
    amp_model_cuda_function &operator[](int i) { return functions_[i]; }
    void SetSource(int i, const std::string &source) {
        sources_[i] = source;
        functions_[i].source = sources_[i].c_str();
    }
    // Adds an image to function |i|; |bytes| need not be one.
    void AddImage(int i, int arch, char suffix, bool is_cubin, const std::string &bytes) {
        kept_.push_back(std::make_unique<std::string>(bytes));
        image_lists_[i].push_back({static_cast<uint32_t>(arch), static_cast<uint32_t>(suffix), is_cubin,
                                   kept_.back()->data(), kept_.back()->size() + !is_cubin, 11, 12, 13, 14});
        functions_[i].images = {static_cast<uint32_t>(image_lists_[i].size()), sizeof(amp_model_cuda_image),
                                image_lists_[i].data()};
    }

  private:
    std::vector<std::string> sources_, names_;
    std::vector<std::vector<amp_model_cuda_image>> image_lists_;
    std::vector<std::unique_ptr<std::string>> kept_;
    std::vector<amp_model_cuda_function> functions_;
};

inline std::string Bytes(const amp_cuda_image &image) {
    return std::string(static_cast<const char *>(image.data), image.size);
}

// Why tests of compilation cannot run here; "": they can.
inline std::string NvrtcIsMissing() {
    amp_nvrtc *nvrtc = nullptr;
    amp_error err = {};
    amp_status status = amp_nvrtc_open(nullptr, &nvrtc, &err);
    amp_nvrtc_close(nvrtc);
    return status == AMP_NOT_FOUND ? std::string("NOT TESTED, because NVRTC is not installed: ") + err.message : "";
}

#endif
