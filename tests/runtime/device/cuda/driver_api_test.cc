// driver_api_test.cc: driver_api.h against the cuda.h of every CUDA toolkit that is installed:
// driver_api_signatures.cc compiles with it.
#include <glob.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <string>
#include <vector>

namespace {

// Folders with a cuda.h: of CUDA_HOME, CUDA_PATH, where NVIDIA's installer puts toolkits, and the compiler's own ("").
std::vector<std::string> header_folders() {
    std::vector<std::string> found;
    auto add = [&](const std::string &folder) {
        if (access((folder + "/cuda.h").c_str(), R_OK) == 0) found.push_back(folder);
    };
    for (const char *name : {"CUDA_HOME", "CUDA_PATH"})
        if (getenv(name)) add(std::string(getenv(name)) + "/include");
    glob_t matches;
    if (glob("/usr/local/cuda*/include", 0, nullptr, &matches) == 0)
        for (size_t i = 0; i < matches.gl_pathc; i++) add(matches.gl_pathv[i]);
    globfree(&matches);
    if (system("echo '#include <cuda.h>' | c++ -x c++ -fsyntax-only - 2>/dev/null") == 0) found.push_back("");
    return found;
}

int compile(const std::string &folder, const std::string &options) {
    std::string include = folder.empty() ? "" : " -isystem '" + folder + "'";
    return system(("c++ -std=c++17 -fsyntax-only -I." + include + " " + options +
                   " tests/runtime/device/cuda/driver_api_signatures.cc")
                      .c_str());
}

TEST(DriverApi, IsThatOfCudaH) {
    if (system("c++ --version >/dev/null 2>&1") != 0) GTEST_SKIP() << "no compiler";
    std::vector<std::string> folders = header_folders();
    if (folders.empty()) GTEST_SKIP() << "no cuda.h";
    for (const std::string &folder : folders) {
        EXPECT_EQ(0, compile(folder, "")) << folder;
        EXPECT_NE(0, compile(folder, "-DMADE_WRONG 2>/dev/null")) << folder;
    }
}

} // namespace
