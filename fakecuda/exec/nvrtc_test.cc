// Kernels in CUDA C, compiled by the real NVRTC for all its code generators: what it emits runs, with the right
// results; and how fast.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <ctime>

#include "cuda_sdk/nvrtc.h"
#include "fakecuda/exec/kernel.h"

namespace {

class Compiler {
  public:
    Compiler() {
        amp_error error;
        if (amp_nvrtc_open(nullptr, &nvrtc_, &error) != AMP_OK) nvrtc_ = nullptr;
    }
    ~Compiler() { amp_nvrtc_close(nvrtc_); }
    bool here() const { return nvrtc_ != nullptr; }
    std::string ptx(const std::string &source, int arch, std::vector<const char *> options = {}) {
        amp_nvrtc_job job = {};
        job.source = source.c_str();
        job.name = "kernel.cu";
        job.arch = arch;
        job.options = options.data();
        job.option_count = static_cast<int>(options.size());
        amp_nvrtc_result result = {};
        amp_error error;
        amp_status status = amp_nvrtc_compile(nvrtc_, &job, &result, &error);
        EXPECT_EQ(status, AMP_OK) << error.message;
        std::string text = status == AMP_OK ? std::string(result.ptx) : "";
        amp_nvrtc_result_free(nvrtc_, &result);
        return text;
    }

  private:
    amp_nvrtc *nvrtc_ = nullptr;
};

const int kArchitectures[] = {75, 80, 90, 120};

#define NEED_NVRTC(compiler)                                                                                           \
    Compiler compiler;                                                                                                 \
    if (!compiler.here()) GTEST_SKIP() << "NVRTC is not installed"

const char *const kSoftmax = R"(
extern "C" __global__ void softmax(const float *x, float *y, long long columns) {
    __shared__ float part[32];
    const float *row = x + blockIdx.x * columns;
    float most = __int_as_float(0xff800000), sum = 0;
    for (int c = threadIdx.x; c < columns; c += blockDim.x) most = fmaxf(most, row[c]);
    for (int s = 16; s; s /= 2) most = fmaxf(most, __shfl_xor_sync(~0u, most, s));
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = most;
    __syncthreads();
    for (int w = 0; w < blockDim.x / 32; w++) most = fmaxf(most, part[w]);
    __syncthreads();
    for (int c = threadIdx.x; c < columns; c += blockDim.x) sum += expf(row[c] - most);
    for (int s = 16; s; s /= 2) sum += __shfl_xor_sync(~0u, sum, s);
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = sum;
    __syncthreads();
    sum = 0;
    for (int w = 0; w < blockDim.x / 32; w++) sum += part[w];
    for (int c = threadIdx.x; c < columns; c += blockDim.x) y[blockIdx.x * columns + c] = expf(row[c] - most) / sum;
})";

TEST(Nvrtc, Softmax) {
    NEED_NVRTC(compiler);
    const int rows = 3, columns = 200;
    std::vector<float> x(rows * columns);
    for (size_t i = 0; i < x.size(); i++) x[i] = std::sin(static_cast<float>(i)) * 5;
    for (int arch : kArchitectures) {
        Gpu gpu(arch);
        gpu.load(compiler.ptx(kSoftmax, arch));
        uint64_t out = gpu.room(x.size() * 4);
        Result r = gpu.launch({rows}, {128}, {gpu.put(x), out, columns}, 0, "softmax");
        ASSERT_EQ(r.fault, EXEC_OK) << r.message;
        std::vector<float> y = gpu.get<float>(out, x.size());
        for (int row = 0; row < rows; row++) {
            double sum = 0;
            for (int c = 0; c < columns; c++) sum += std::exp(static_cast<double>(x[row * columns + c]));
            for (int c = 0; c < columns; c++) {
                double expected = std::exp(static_cast<double>(x[row * columns + c])) / sum;
                ASSERT_NEAR(y[row * columns + c], expected, 4e-6 * expected) << "sm_" << arch;
            }
        }
    }
}

TEST(Nvrtc, AMissingSyncthreadsIsFound) {
    NEED_NVRTC(compiler);
    std::string source = kSoftmax;
    size_t at = source.find("__syncthreads();");
    source.erase(at, 16); // after the first partial results
    Gpu gpu(80);
    std::vector<float> x(256, 1.0f);
    gpu.load(compiler.ptx(source, 80, {"-lineinfo"}));
    Result r = gpu.launch({1}, {128}, {gpu.put(x), gpu.room(1024), 256}, 0, "softmax");
    EXPECT_EQ(r.fault, EXEC_LAUNCH_FAILED);
    EXPECT_NE(r.message.find("shared memory"), std::string::npos) << r.message;
}

// The last block that has written its part adds them up: "Memory Fence Functions" of the CUDA C++ Programming Guide.
const char *const kLastBlock = R"(
extern "C" __global__ void sum(const float *x, float *parts, float *y, unsigned *ticket) {
    __shared__ bool last;
    parts[blockIdx.x * blockDim.x + threadIdx.x] = x[blockIdx.x * blockDim.x + threadIdx.x];
    __threadfence(); // before
    __syncthreads();
    if (threadIdx.x == 0) last = atomicInc(ticket, gridDim.x - 1) == gridDim.x - 1;
    __syncthreads();
    if (!last) return;
    __threadfence(); // after
    float all = 0;
    for (int b = 0; b < gridDim.x; b++) all += parts[b * blockDim.x + threadIdx.x];
    y[threadIdx.x] = all;
})";

TEST(Nvrtc, TheLastBlockNeedsItsFences) {
    NEED_NVRTC(compiler);
    const uint32_t blocks = 40, threads = 96;
    for (int arch : kArchitectures)
        for (const char *missing : {"", "__threadfence(); // before", "__threadfence(); // after"}) {
            std::string source = kLastBlock;
            if (*missing) source.erase(source.find(missing), strlen(missing));
            Gpu gpu(arch);
            gpu.load(compiler.ptx(source, arch));
            uint64_t out = gpu.room(4 * threads);
            Result r = gpu.launch({blocks}, {threads},
                                  {gpu.put(std::vector<float>(blocks * threads, 0.5f)), gpu.room(4 * blocks * threads),
                                   out, gpu.put(std::vector<uint32_t>(1))},
                                  0, "sum");
            if (*missing) {
                EXPECT_EQ(r.fault, EXEC_LAUNCH_FAILED) << missing;
                EXPECT_NE(r.message.find("race in global memory"), std::string::npos) << r.message;
                EXPECT_NE(r.message.find("wrote at ptx line"), std::string::npos) << r.message;
            } else {
                ASSERT_EQ(r.fault, EXEC_OK) << r.message;
                EXPECT_EQ(gpu.get<float>(out, threads), std::vector<float>(threads, 0.5f * blocks));
            }
        }
}

const char *const kOdds = R"(
struct Item { short tag; double weight; };
__device__ __noinline__ long long power(long long base, int n) { return n == 0 ? 1 : base * power(base, n - 1); }
__device__ int pick(int i) {
    switch (i % 5) {
    case 0: return 11;
    case 1: return -7;
    case 2: return i * i;
    case 3: return i / 3;
    default: return __popc(i);
    }
}
extern "C" __global__ void odds(const Item *items, long long *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int local[8];
    for (int k = 0; k < 8; k++) local[(k * 3 + i) % 8] = k + pick(i + k);
    long long sum = 0;
    for (int k = 0; k < 8; k++) sum = sum * 31 + local[(k + i) % 8];
    sum += power(items[i].tag, i % 6) + (long long)(items[i].weight * 4);
    if (i % 7 == 3) { out[i] = -sum; return; }
    unsigned mask = __activemask();
    sum += __popc(mask) > 0;
    out[i] = sum / (i + 1) + sum % (i + 1);
})";

struct Item {
    int16_t tag;
    double weight;
};

int64_t power(int64_t base, int n) { return n == 0 ? 1 : base * power(base, n - 1); }
int pick(int i) {
    switch (i % 5) {
    case 0: return 11;
    case 1: return -7;
    case 2: return i * i;
    case 3: return i / 3;
    default: return __builtin_popcount(static_cast<unsigned>(i));
    }
}

TEST(Nvrtc, StructsLocalArraysRecursionAndDivision) {
    NEED_NVRTC(compiler);
    const int n = 150;
    std::vector<Item> items(n);
    for (int i = 0; i < n; i++) items[i] = {static_cast<int16_t>(i % 9 - 4), i * 0.75};
    for (int arch : kArchitectures) {
        Gpu gpu(arch);
        gpu.load(compiler.ptx(kOdds, arch));
        uint64_t out = gpu.room(n * 8);
        Result r = gpu.launch({3}, {64}, {gpu.put(items), out, n}, 0, "odds");
        ASSERT_EQ(r.fault, EXEC_OK) << r.message;
        std::vector<int64_t> v = gpu.get<int64_t>(out, n);
        for (int i = 0; i < n; i++) {
            int local[8];
            for (int k = 0; k < 8; k++) local[(k * 3 + i) % 8] = k + pick(i + k);
            int64_t sum = 0;
            for (int k = 0; k < 8; k++) sum = sum * 31 + local[(k + i) % 8];
            sum += power(items[i].tag, i % 6) + static_cast<int64_t>(items[i].weight * 4);
            int64_t expected = i % 7 == 3 ? -sum : (sum + 1) / (i + 1) + (sum + 1) % (i + 1);
            ASSERT_EQ(v[i], expected) << "sm_" << arch << ", thread " << i;
        }
    }
}

// ---- speed, for a reader: only a kernel that hardly moves fails

void report(const char *name, const ExecCounters &c, double seconds) {
    double millions = static_cast<double>(c.thread_instructions) / seconds / 1e6;
    std::printf("[ SPEED    ] %-24s %8.1f million thread instructions a second (%.0f million in %.2f s)\n", name,
                millions, static_cast<double>(c.thread_instructions) / 1e6, seconds);
    EXPECT_GT(millions, 2) << name;
}

Result timed(Gpu &gpu, const char *name, Dim grid, Dim block, const std::vector<uint64_t> &params, uint32_t shared = 0,
             const char *entry = "k") {
    std::clock_t start = std::clock(); // of the processor: others may be at work
    Result r = gpu.launch(grid, block, params, shared, entry);
    EXPECT_EQ(r.fault, EXEC_OK) << r.message;
    report(name, r.counters, static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC);
    return r;
}

TEST(Speed, Arithmetic) {
    Gpu gpu;
    gpu.load_body("mov.u32 %r0, %tid.x; mov.u32 %r1, 0; cvt.rn.f32.u32 %f0, %r0; mov.f32 %f1, 0f3F800000;\n"
                  "LOOP: fma.rn.f32 %f1, %f1, %f0, %f0; mul.rn.f32 %f2, %f1, %f1; add.s32 %r2, %r2, %r0; xor.b32 %r3, "
                  "%r2, %r1; add.s32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, 2000; @%p1 bra LOOP; ret;");
    timed(gpu, "plain arithmetic", {4}, {256}, {0, 0});
}

TEST(Speed, Memory) {
    Gpu gpu;
    gpu.load_body(
        "ld.param.u64 %d0, [p0]; ld.param.u64 %d1, [p1]; mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x; mad.lo.s32 %r2, "
        "%r1, 256, %r0; mul.wide.u32 %d2, %r2, 16; add.s64 %d3, %d0, %d2; add.s64 %d4, %d1, %d2;\n"
        "ld.global.v4.f32 {%f0,%f1,%f2,%f3}, [%d3]; add.rn.f32 %f0, %f0, %f1; st.global.v4.f32 [%d4], "
        "{%f0,%f1,%f2,%f3}; ret;");
    std::vector<float> x(256 * 4 * 400, 1.0f);
    timed(gpu, "copies of 16 bytes", {400}, {256}, {gpu.put(x), gpu.room(x.size() * 4)});
}

const char *const kProduct = R"(
extern "C" __global__ void product(const float *a, const float *b, float *c, long long n) {
    __shared__ float x[16][17], y[16][17];
    int r = blockIdx.y * 16 + threadIdx.y, k0 = threadIdx.x, col = blockIdx.x * 16 + threadIdx.x;
    float sum = 0;
    for (int k = 0; k < n; k += 16) {
        x[threadIdx.y][k0] = a[r * n + k + k0];
        y[threadIdx.y][k0] = b[(k + threadIdx.y) * n + col];
        __syncthreads();
        for (int i = 0; i < 16; i++) sum = fmaf(x[threadIdx.y][i], y[i][k0], sum);
        __syncthreads();
    }
    c[r * n + col] = sum;
})";

TEST(Speed, ProductThroughSharedMemory) {
    NEED_NVRTC(compiler);
    Gpu gpu(80);
    gpu.load(compiler.ptx(kProduct, 80));
    const int n = 96;
    std::vector<float> a(n * n), b(n * n);
    for (int i = 0; i < n * n; i++) a[i] = static_cast<float>(i % 7), b[i] = static_cast<float>(i % 5);
    uint64_t out = gpu.room(n * n * 4);
    timed(gpu, "product, shared memory", {n / 16, n / 16}, {16, 16}, {gpu.put(a), gpu.put(b), out, n}, 0, "product");
    std::vector<float> c = gpu.get<float>(out, n * n);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            float sum = 0;
            for (int k = 0; k < n; k++) sum += a[i * n + k] * b[k * n + j];
            ASSERT_EQ(c[i * n + j], sum);
        }
}

} // namespace
