// nvrtc_test.cc: NVIDIA's runtime compiler: PTX and cubin for every architecture, its messages.
#include "cuda_sdk/nvrtc.h"

#include <gtest/gtest.h>
#include <link.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "tests/base/failing_allocator.h"

namespace fs = std::filesystem;

namespace {

constexpr char kCopy[] = "extern \"C\" __global__ void copy(const float *a, float *b, long long n) {\n"
                         "    long long i = blockIdx.x * 256ll + threadIdx.x;\n"
                         "    if (i < n) b[i] = a[i];\n"
                         "}\n";

class Nvrtc : public testing::Test {
  protected:
    void SetUp() override {
        amp_status status = amp_nvrtc_open(nullptr, &nvrtc_, &err_);
        if (status == AMP_NOT_FOUND) GTEST_SKIP() << "NOT TESTED, because NVRTC is not installed: " << err_.message;
        ASSERT_EQ(status, AMP_OK) << err_.message;
    }
    void TearDown() override { amp_nvrtc_close(nvrtc_); }

    amp_status Compile(const std::string &source, int arch, bool cubin, std::vector<const char *> options = {}) {
        amp_nvrtc_job job = {};
        job.source = source.c_str(), job.name = "test.cu", job.arch = arch, job.cubin = cubin;
        job.options = options.data(), job.option_count = static_cast<int>(options.size());
        amp_nvrtc_result_free(nvrtc_, &result_);
        return amp_nvrtc_compile(nvrtc_, &job, &result_, &err_);
    }
    std::vector<int> Architectures() {
        std::vector<int> archs(amp_nvrtc_architectures(nvrtc_, nullptr, 0));
        amp_nvrtc_architectures(nvrtc_, archs.data(), static_cast<int>(archs.size()));
        return archs;
    }
    std::string Ptx() const { return result_.ptx ? std::string(result_.ptx, result_.ptx_size) : ""; }

    amp_nvrtc *nvrtc_ = nullptr;
    amp_nvrtc_result result_ = {};
    amp_error err_ = {};
};

} // namespace

TEST_F(Nvrtc, TellsVersionPathAndArchitectures) {
    EXPECT_GE(amp_nvrtc_version(nvrtc_), 12000);
    EXPECT_TRUE(fs::exists(amp_nvrtc_path(nvrtc_))) << amp_nvrtc_path(nvrtc_);
    const std::string build = amp_nvrtc_build(nvrtc_), bytes = std::to_string(fs::file_size(amp_nvrtc_path(nvrtc_)));
    EXPECT_EQ(build.find(bytes + " bytes "), 0u) << build;
    EXPECT_EQ(build.find_first_not_of("0123456789abcdef", bytes.size() + 7), std::string::npos) << build;
    EXPECT_GE(build.size(), bytes.size() + 7 + 16) << "a build ID: " << build;
    std::vector<int> archs = Architectures();
    ASSERT_FALSE(archs.empty());
    for (size_t i = 1; i < archs.size(); i++) EXPECT_LT(archs[i - 1], archs[i]);
    for (int needed : {75, 80, 86, 89, 90}) EXPECT_NE(std::find(archs.begin(), archs.end(), needed), archs.end());
    int first = 0;
    EXPECT_EQ(amp_nvrtc_architectures(nvrtc_, &first, 1), static_cast<int>(archs.size()));
    EXPECT_EQ(first, archs[0]);
}

// A copy of the library whose notes say that they are longer than memory is.
TEST_F(Nvrtc, ANoteOfWrongSizeIsNoBuildId) {
    const std::string path = testing::TempDir() + "libnvrtc.so.13";
    fs::copy_file(amp_nvrtc_path(nvrtc_), path, fs::copy_options::overwrite_existing);
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    ElfW(Ehdr) header = {};
    file.read(reinterpret_cast<char *>(&header), sizeof header);
    for (int i = 0; i < header.e_phnum; i++) {
        ElfW(Phdr) part = {};
        file.seekg(static_cast<std::streamoff>(header.e_phoff + i * sizeof part));
        file.read(reinterpret_cast<char *>(&part), sizeof part);
        const ElfW(Nhdr) note = {4, 0xFFFFFFFE, NT_GNU_BUILD_ID};
        file.seekp(static_cast<std::streamoff>(part.p_offset));
        if (part.p_type == PT_NOTE) file.write(reinterpret_cast<const char *>(&note), sizeof note);
    }
    file.close();
    const char *named = getenv("NVRTC_PATH");
    const std::string before = named ? named : "";
    setenv("NVRTC_PATH", path.c_str(), 1);
    amp_nvrtc *copy = nullptr;
    EXPECT_EQ(amp_nvrtc_open(nullptr, &copy, &err_), AMP_OK) << err_.message;
    EXPECT_EQ(copy ? amp_nvrtc_build(copy) : "none", std::to_string(fs::file_size(path)) + " bytes ");
    amp_nvrtc_close(copy);
    if (named) setenv("NVRTC_PATH", before.c_str(), 1);
    else unsetenv("NVRTC_PATH");
    fs::remove(path);
}

TEST_F(Nvrtc, CompilesForEveryArchitecture) {
    for (int arch : Architectures()) {
        SCOPED_TRACE(arch);
        ASSERT_EQ(Compile(kCopy, arch, false), AMP_OK) << err_.message;
        EXPECT_NE(Ptx().find(".target sm_" + std::to_string(arch)), std::string::npos) << Ptx().substr(0, 400);
        EXPECT_NE(Ptx().find(".entry copy("), std::string::npos);
        EXPECT_EQ(Ptx().back(), '\0');
        EXPECT_EQ(result_.cubin, nullptr);
        EXPECT_EQ(result_.use_count, 0);

        ASSERT_EQ(Compile(kCopy, arch, true), AMP_OK) << err_.message;
        ASSERT_GT(result_.cubin_size, 64u);
        EXPECT_EQ(std::string(result_.cubin, 4), "\x7f"
                                                 "ELF");
        EXPECT_NE(Ptx().find(".entry copy("), std::string::npos) << "PTX comes with a cubin, too";
        ASSERT_EQ(result_.use_count, 1) << result_.log;
        EXPECT_STREQ(result_.uses[0].name, "copy");
        EXPECT_GT(result_.uses[0].registers, 3);
        EXPECT_LT(result_.uses[0].registers, 40);
        EXPECT_EQ(result_.uses[0].spill_stores, 0);
        EXPECT_GT(result_.seconds, 0);
    }
    amp_nvrtc_result_free(nvrtc_, &result_);
}

TEST_F(Nvrtc, ArchitecturesWithASuffix) {
    amp_nvrtc_job job = {};
    job.source = kCopy, job.name = "test.cu", job.arch = 90, job.suffix = 'a';
    ASSERT_EQ(amp_nvrtc_compile(nvrtc_, &job, &result_, &err_), AMP_OK) << err_.message;
    EXPECT_NE(Ptx().find(".target sm_90a"), std::string::npos);
    amp_nvrtc_result_free(nvrtc_, &result_);
}

TEST_F(Nvrtc, UsesOfSeveralEntries) {
    std::string source = "extern \"C\" __global__ void shared_one(float *x) {\n"
                         "    __shared__ float s[48];\n"
                         "    s[threadIdx.x] = x[threadIdx.x];\n"
                         "    __syncthreads();\n"
                         "    x[threadIdx.x] = s[31 - threadIdx.x];\n"
                         "}\n"
                         "extern \"C\" __global__ __launch_bounds__(1024) void spilling(float *x, int n) {\n"
                         "    float v[100];\n"
                         "    #pragma unroll\n"
                         "    for (int i = 0; i < 100; i++) v[i] = x[i * n];\n"
                         "    for (int j = 0; j < n; j++) {\n"
                         "        #pragma unroll\n"
                         "        for (int i = 0; i < 100; i++) v[i] = v[i] * v[(i + 7) % 100] + j;\n"
                         "    }\n"
                         "    #pragma unroll\n"
                         "    for (int i = 0; i < 100; i++) x[i * n] = v[i];\n"
                         "}\n"
                         "extern \"C\" __global__ void stacked(float *x, int n) {\n"
                         "    float v[64];\n"
                         "    for (int i = 0; i < n; i++) v[i] = x[i];\n"
                         "    for (int i = 0; i < n; i++) x[i] = v[(i * 7) % n];\n"
                         "}\n";
    ASSERT_EQ(Compile(source, 80, true), AMP_OK) << err_.message;
    std::map<std::string, amp_nvrtc_kernel_use> uses;
    for (int i = 0; i < result_.use_count; i++) uses[result_.uses[i].name] = result_.uses[i];
    ASSERT_EQ(uses.size(), 3u) << result_.log;
    EXPECT_EQ(uses["shared_one"].shared_bytes, 192);
    EXPECT_EQ(uses["shared_one"].stack_bytes, 0);
    EXPECT_EQ(uses["spilling"].registers, 64) << "65536 registers for 1024 threads";
    EXPECT_GT(uses["spilling"].spill_stores, 0);
    EXPECT_GT(uses["spilling"].spill_loads, 0);
    EXPECT_GE(uses["spilling"].stack_bytes, 4 * (100 - 64));
    EXPECT_GE(uses["stacked"].stack_bytes, 256);
    EXPECT_EQ(uses["stacked"].spill_stores, 0);
    amp_nvrtc_result_free(nvrtc_, &result_);
}

TEST_F(Nvrtc, ProductsAndSumsAreNotContracted) {
    std::string source = "extern \"C\" __global__ void k(float *x) { x[0] = x[1] * x[2] + x[3]; }\n";
    ASSERT_EQ(Compile(source, 80, false), AMP_OK) << err_.message;
    EXPECT_EQ(Ptx().find("fma"), std::string::npos) << Ptx();
    // The control: with contraction there would be one.  Older versions do not take an option twice.
    if (Compile(source, 80, false, {"--fmad=true"}) == AMP_OK) EXPECT_NE(Ptx().find("fma.rn"), std::string::npos);
    else EXPECT_NE(std::string(err_.message).find("defined more than once"), std::string::npos) << err_.message;
    ASSERT_EQ(Compile("#if WIDTH != 7\n#error no\n#endif\n", 80, false, {"-DWIDTH=7"}), AMP_OK) << err_.message;
    amp_nvrtc_result_free(nvrtc_, &result_);
}

TEST_F(Nvrtc, ErrorsGiveTheFirstMessageWithItsLine) {
    EXPECT_EQ(Compile("extern \"C\" __global__ void k(float *x) {\n  int error = 3;\n  x[0] = yy;\n  x[1] = zz;\n}\n",
                      80, true),
              AMP_BAD_SOURCE);
    EXPECT_STREQ(err_.message, "test.cu, line 3: identifier \"yy\" is undefined: `x[0] = yy;`");
    EXPECT_EQ(result_.log, nullptr);
    EXPECT_EQ(Compile("#include <none.h>\n", 80, true), AMP_BAD_SOURCE);
    EXPECT_EQ(std::string(err_.message).find("test.cu, line 1: "), 0u) << err_.message;
    EXPECT_NE(std::string(err_.message).find("none.h"), std::string::npos);
    EXPECT_EQ(Compile("extern \"C\" __global__ void k() { asm(\"bogus.f32 a;\"); }\n", 80, true), AMP_BAD_SOURCE);
    EXPECT_NE(std::string(err_.message).find("'bogus'"), std::string::npos) << err_.message;
    EXPECT_EQ(
        Compile("extern \"C\" __global__ void k(int *x) { __shared__ int s[100000]; x[0] = s[x[1]]; }\n", 80, true),
        AMP_BAD_SOURCE);
    EXPECT_NE(std::string(err_.message).find("too much shared data"), std::string::npos) << err_.message;
}

TEST_F(Nvrtc, UnknownArchitecturesAndOptions) {
    EXPECT_EQ(Compile(kCopy, 30, true), AMP_UNSUPPORTED);
    EXPECT_NE(std::string(err_.message).find("does not compile for sm_30, but for sm_"), std::string::npos)
        << err_.message;
    EXPECT_EQ(Compile(kCopy, 80, true, {"--no-such-option"}), AMP_UNSUPPORTED);
    EXPECT_NE(std::string(err_.message).find("--no-such-option"), std::string::npos) << err_.message;
}

// 300 numbers a thread are more than it has registers; LEAN leaves 3 of them.
const char kManyNumbers[] = R"(
#ifdef LEAN
#define NUMBERS 3
#else
#define NUMBERS 300
#endif
extern "C" __global__ void k(float *x) {
    float y[NUMBERS];
    for (int i = 0; i < NUMBERS; i++) y[i] = x[i * 64 + threadIdx.x];
    __syncthreads();
    for (int i = 0; i < NUMBERS; i++) x[i * 64 + threadIdx.x] = y[NUMBERS - 1 - i];
}
)";

TEST_F(Nvrtc, CompilesOnceMoreWhatNeedsLocalMemory) {
    amp_nvrtc_job job = {};
    job.source = kManyNumbers, job.name = "many.cu", job.arch = 80, job.cubin = true;
    amp_nvrtc_result plain = {}, lean = {};
    ASSERT_EQ(amp_nvrtc_compile(nvrtc_, &job, &plain, &err_), AMP_OK) << err_.message;
    ASSERT_EQ(plain.use_count, 1);
    EXPECT_GT(plain.uses[0].stack_bytes, 0);
    ASSERT_EQ(amp_nvrtc_compile_lean(nvrtc_, &job, AMP_NVRTC_LEAN, &lean, &err_), AMP_OK) << err_.message;
    ASSERT_EQ(lean.use_count, 1);
    EXPECT_EQ(lean.uses[0].stack_bytes + lean.uses[0].spill_loads + lean.uses[0].spill_stores, 0);
    EXPECT_LT(strlen(lean.ptx), strlen(plain.ptx)); // of the same compilation
    amp_nvrtc_result_free(nvrtc_, &lean);
    // An option that helps nothing, or that NVRTC does not know: what there is.
    for (const char *option : {"--define-macro=OTHER=1", "--no-such-option"}) {
        ASSERT_EQ(amp_nvrtc_compile_lean(nvrtc_, &job, option, &lean, &err_), AMP_OK) << err_.message;
        EXPECT_EQ(std::string(lean.cubin, lean.cubin_size), std::string(plain.cubin, plain.cubin_size));
        amp_nvrtc_result_free(nvrtc_, &lean);
    }
    amp_nvrtc_result_free(nvrtc_, &plain);
}

TEST_F(Nvrtc, SeveralThreadsAtOnce) {
    constexpr int kThreads = 4;
    std::vector<std::string> cubins(kThreads), errors(kThreads);
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; t++)
        threads.emplace_back([&, t] {
            for (int round = 0; round < 3; round++) {
                amp_nvrtc_result result = {};
                amp_error err = {};
                amp_nvrtc_job job = {};
                std::string bad = "extern \"C\" __global__ void k() { thread" + std::to_string(t) + "; }\n";
                job.source = kCopy, job.name = "test.cu", job.arch = 80, job.cubin = true;
                if (amp_nvrtc_compile(nvrtc_, &job, &result, &err) == AMP_OK)
                    cubins[t].assign(result.cubin, result.cubin_size);
                amp_nvrtc_result_free(nvrtc_, &result);
                job.source = bad.c_str();
                if (amp_nvrtc_compile(nvrtc_, &job, &result, &err) == AMP_BAD_SOURCE) errors[t] = err.message;
            }
        });
    for (std::thread &thread : threads) thread.join();
    ASSERT_FALSE(cubins[0].empty());
    for (int t = 0; t < kThreads; t++) {
        EXPECT_EQ(cubins[t], cubins[0]) << "of thread " << t;
        EXPECT_NE(errors[t].find("\"thread" + std::to_string(t) + "\""), std::string::npos) << errors[t];
    }
}

TEST_F(Nvrtc, MemoryRunsOut) {
    int calls = 1000;
    for (int fail_at = 0; fail_at < calls; fail_at++) {
        FailingAllocator failing(fail_at < 100 ? fail_at : -1);
        amp_allocator a = failing.get();
        amp_nvrtc *nvrtc = nullptr;
        amp_nvrtc_job job = {};
        amp_nvrtc_result result = {};
        job.source = kCopy, job.name = "test.cu", job.arch = 80, job.cubin = true;
        amp_status status = amp_nvrtc_open(&a, &nvrtc, &err_);
        if (status == AMP_OK) status = amp_nvrtc_compile(nvrtc, &job, &result, &err_);
        if (status == AMP_OK) {
            amp_nvrtc_result_free(nvrtc, &result);
            calls = failing.calls();
            EXPECT_EQ(fail_at, calls);
        } else {
            EXPECT_EQ(status, AMP_OUT_OF_MEMORY) << err_.message;
        }
        amp_nvrtc_close(nvrtc);
    }
    EXPECT_GT(calls, 3);
    EXPECT_LT(calls, 100);
}

// ---- its log ----

TEST(NvrtcLog, UsesAsCuda12AndCuda13WriteThem) {
    const char *log =
        "ptxas info    : 0 bytes gmem\n"
        "ptxas info    : Compiling entry function 'first' for 'sm_80'\n"
        "ptxas info    : Function properties for helper\n"
        "    800 bytes stack frame, 400 bytes spill stores, 404 bytes spill loads\n"
        "ptxas info    : Function properties for first\n"
        "    16 bytes stack frame, 4 bytes spill stores, 8 bytes spill loads\n"
        "ptxas info    : Used 32 registers, 1024 bytes smem, 360 bytes cmem[0]\n"
        "ptxas info    : Compiling entry function 'second' for 'sm_80'\n"
        "ptxas info    : Function properties for second\n"
        "ptxas         .     1712 bytes stack frame, 964 bytes spill stores, 1372 bytes spill loads\n"
        "ptxas info    : Used 64 registers, used 1 barriers, 2000 bytes cumulative stack size, 364 bytes cmem[0]\n"
        "ptxas info    : Compile time = 2.002 ms";
    amp_nvrtc_kernel_use uses[2] = {};
    ASSERT_EQ(amp_nvrtc_log_uses(log, uses, 2), 2);
    EXPECT_STREQ(uses[0].name, "first");
    EXPECT_EQ(uses[0].registers, 32);
    EXPECT_EQ(uses[0].shared_bytes, 1024);
    EXPECT_EQ(uses[0].spill_stores, 4);
    EXPECT_EQ(uses[0].spill_loads, 8);
    EXPECT_EQ(uses[0].stack_bytes, 16);
    EXPECT_STREQ(uses[1].name, "second");
    EXPECT_EQ(uses[1].registers, 64);
    EXPECT_EQ(uses[1].shared_bytes, 0);
    EXPECT_EQ(uses[1].spill_stores, 964);
    EXPECT_EQ(uses[1].spill_loads, 1372);
    EXPECT_EQ(uses[1].stack_bytes, 2000);
    EXPECT_EQ(amp_nvrtc_log_uses(log, nullptr, 0), 2);
    EXPECT_EQ(amp_nvrtc_log_uses("", nullptr, 0), 0);
    std::string name(300, 'x');
    EXPECT_EQ(amp_nvrtc_log_uses(("Compiling entry function '" + name + "' for 'sm_80'").c_str(), uses, 1), 1);
    EXPECT_EQ(uses[0].name, name.substr(0, sizeof uses[0].name - 1));
}

TEST(NvrtcLog, TheFirstError) {
    const char *source = "one\n\ttwo\nthree";
    auto first = [&](const char *log, size_t size = 200) {
        std::string out(size, '#');
        amp_nvrtc_log_error(log, "k.cu", source, out.data(), size);
        return std::string(out.c_str());
    };
    EXPECT_EQ(first("k.cu(1): warning #177-D: variable \"error: \" was declared\n"
                    "    int error: 3\n"
                    "k.cu(2): error: no\nk.cu(3): error: later\n"),
              "k.cu, line 2: no: `two`");
    EXPECT_EQ(first("k.cu(3): catastrophic error: gone"), "k.cu, line 3: gone: `three`");
    EXPECT_EQ(first("k.cu(9): error: beyond the end"), "k.cu: k.cu(9): error: beyond the end");
    EXPECT_EQ(first("nvrtc: error: invalid value for --gpu-architecture (-arch)\n"),
              "k.cu: nvrtc: error: invalid value for --gpu-architecture (-arch)");
    EXPECT_EQ(first("ptxas fatal   : Memory allocation failure\n"), "k.cu: ptxas fatal   : Memory allocation failure");
    EXPECT_EQ(first("something else\nmore\n"), "something else");
    EXPECT_EQ(first(""), "");
    EXPECT_EQ(first("k.cu(2): error: cut", 12), "k.cu, line ");
}
