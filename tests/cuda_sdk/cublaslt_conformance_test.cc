// cublaslt_conformance_test.cc: each algorithm that cuBLASLt proposes for a product, against float64: types, orders of
// operands, bias, batches, pitches.  It takes the driver and the library that it finds: Bazel runs it on the stand-ins;
// started by hand on a machine with a GPU it tests NVIDIA's.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <climits>
#include <cmath>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "base/rounding.h"
#include "cuda_sdk/cublaslt.h"
#include "runtime/device/cuda/driver_api.h"
#include "tests/cuda_sdk/lt_product.h"

namespace {

#define OK(call) ASSERT_EQ(0, (call)) << #call

enum { STAND_IN_WRONG = 2, STAND_IN_FAILING = 4 }; // of fakecuda/cublaslt

struct Case {
    const char *name;
    LtShape shape;
    bool bias;
    float beta;
};
void PrintTo(const Case &c, std::ostream *out) { *out << c.name; }

LtShape Shape(int type, int out, bool a_turned, bool b_turned, int32_t batch = 1, int64_t gap = 0) {
    LtShape s;
    s.m = 40, s.n = 24, s.k = 72;
    s.type = type, s.out = out, s.a_turned = a_turned, s.b_turned = b_turned, s.batch = batch, s.gap = gap;
    return s;
}

LtShape InF32(LtShape s) {
    s.tf32 = false;
    return s;
}

// As products of attention have them: lines of heads are beside each other.
LtShape Beside(LtShape s) {
    s.beside = true;
    return s;
}

LtShape SharingB(LtShape s) {
    s.b_shared = true;
    return s;
}

// Numbers on the device with what they are.
struct Numbers {
    CuPointer at = 0;
    std::vector<float> values;
};

size_t BytesOf(int type) { return type == LT_F32 ? 4 : 2; }

float Load(int type, const unsigned char *from) {
    float f;
    uint16_t half;
    if (type == LT_F32) return memcpy(&f, from, 4), f;
    memcpy(&half, from, 2);
    return type == LT_F16 ? amp_f16_to_f32(half) : amp_bf16_to_f32(half);
}

class CublasLtConformance : public testing::TestWithParam<Case> {
  protected:
    void SetUp() override {
        amp_error err = {};
        amp_cublaslt found;
        void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
        if (!driver) GTEST_SKIP() << "NOT TESTED, because there is no driver: " << dlerror();
#define FIND(name, symbol, parameters)                                                                                 \
    if (void *address = dlsym(driver, #symbol)) memcpy(&cu.name, &address, sizeof address);
        CUDA_DRIVER_CALLS(FIND)
#undef FIND
        int version = 0;
        if (cu.init(0)) GTEST_SKIP() << "NOT TESTED, because the driver does not start";
        OK(cu.driver_version(&version));
        const amp_status status = amp_cublaslt_open(&found, version, &err);
        if (status == AMP_NOT_FOUND) GTEST_SKIP() << "NOT TESTED, because cuBLASLt is not installed: " << err.message;
        ASSERT_EQ(status, AMP_OK) << err.message;
        lt = found.calls;
        char device[96] = "";
        OK(cu.device_name(device, sizeof device, 0));
        stand_in = strstr(device, "(fakecuda)") != nullptr;
        OK(cu.primary_retain(&context, 0));
        OK(cu.context_push(context));
        OK(cu.stream_create(&stream, CU_STREAM_NON_BLOCKING));
        OK(lt.create(&handle));
    }
    void TearDown() override {
        if (!handle) return;
        EXPECT_EQ(LT_OK, lt.destroy(handle));
        for (CuPointer p : memory) EXPECT_EQ(CU_SUCCESS, cu.mem_free(p));
        EXPECT_EQ(CU_SUCCESS, cu.stream_destroy(stream));
        CuContext popped;
        EXPECT_EQ(CU_SUCCESS, cu.context_pop(&popped));
        EXPECT_EQ(CU_SUCCESS, cu.primary_release(0));
    }

    CuPointer Alloc(size_t bytes) {
        CuPointer p = 0;
        EXPECT_EQ(CU_SUCCESS, cu.mem_alloc(&p, bytes));
        memory.push_back(p);
        return p;
    }
    // Normal numbers, as halves have them; where |type| is bf16, as that has them.
    Numbers Random(int type, int64_t count) {
        Numbers n;
        std::normal_distribution<float> normal;
        std::vector<unsigned char> bytes(static_cast<size_t>(count) * BytesOf(type));
        for (int64_t i = 0; i < count; i++) {
            const uint16_t half = type == LT_BF16 ? amp_f32_to_bf16(normal(random_)) : amp_f32_to_f16(normal(random_));
            const float value = type == LT_BF16 ? amp_bf16_to_f32(half) : amp_f16_to_f32(half);
            n.values.push_back(value);
            if (type == LT_F32) memcpy(&bytes[static_cast<size_t>(i) * 4], &value, 4);
            else memcpy(&bytes[static_cast<size_t>(i) * 2], &half, 2);
        }
        n.at = Alloc(bytes.size());
        EXPECT_EQ(CU_SUCCESS, cu.copy_in(n.at, bytes.data(), bytes.size(), stream));
        EXPECT_EQ(CU_SUCCESS, cu.stream_sync(stream));
        return n;
    }

    // How many elements of |got|, laid out as D, are further from float64 than rounding explains.
    int Beyond(const Case &c, const Numbers &a, const Numbers &b, const Numbers &bias, const Numbers &before,
               const std::vector<unsigned char> &got) {
        const LtShape &s = c.shape;
        const double half_unit = s.out == LT_F32 ? 0x1p-24 : s.out == LT_F16 ? 0x1p-11 : 0x1p-8;
        int beyond = 0;
        for (int64_t i = 0; i < s.size_d(); i++) {
            const int64_t line = i / s.pitch_d(), in_line = i % s.pitch_d();
            const int64_t batch = s.beside ? in_line / s.n : line / s.m, row = line % s.m;
            const int64_t column = s.beside ? in_line % s.n : in_line;
            const double found = Load(s.out, &got[static_cast<size_t>(i) * BytesOf(s.out)]);
            const float old = before.values[static_cast<size_t>(i)];
            if (column >= s.n || batch >= s.batch) {
                beyond += found != old; // between lines nothing is written
                continue;
            }
            double sum = 0, size = 0;
            for (int64_t k = 0; k < s.k; k++) {
                const double product =
                    static_cast<double>(a.values[static_cast<size_t>(
                        batch * s.stride_a() + (s.a_turned ? k * s.pitch_a() + row : row * s.pitch_a() + k))]) *
                    b.values[static_cast<size_t>(batch * s.stride_b() +
                                                 (s.b_turned ? column * s.pitch_b() + k : k * s.pitch_b() + column))];
                sum += product, size += std::fabs(product);
            }
            sum += static_cast<double>(c.beta) * old;
            if (c.bias) sum += bias.values[static_cast<size_t>(column)];
            const double steps = static_cast<double>(s.k) / 8 + 4;
            beyond += !(std::fabs(found - sum) <= steps * 0x1p-22 * size + 1.01 * half_unit * std::fabs(sum) + 0x1p-24);
        }
        return beyond;
    }

    CudaDriver cu = {};
    CublasLtApi lt = {};
    CublasLtHandle handle = nullptr;
    CuContext context = nullptr;
    CuStream stream = nullptr;
    bool stand_in = false;
    std::vector<CuPointer> memory;
    std::mt19937 random_{11};
};

TEST_P(CublasLtConformance, EachAlgorithmMultiplies) {
    const Case &c = GetParam();
    const LtShape &s = c.shape;
    constexpr uint64_t kWorkspace = 4 << 20;
    const Numbers a = Random(s.type, s.size_a()), b = Random(s.type, s.size_b());
    const Numbers bias = Random(s.out, s.n), before = Random(s.out, s.size_d());
    const size_t bytes = before.values.size() * BytesOf(s.out);
    const CuPointer d = Alloc(bytes), workspace = Alloc(kWorkspace);
    LtProduct product(lt, s, c.bias ? LtProduct::At(bias.at) : nullptr);
    std::vector<CublasLtFound> found;
    OK(product.Ask(handle, &found, kWorkspace));
    int tried = 0;
    for (const CublasLtFound &f : found) {
        if (f.state) continue;
        int32_t id = -1;
        OK(lt.algo_config(&f.algo, LT_ALGO_ID, &id, sizeof id, nullptr));
        OK(cu.copy(d, before.at, bytes, stream));
        const CublasLtResult result =
            product.Run(handle, f.algo, a.at, b.at, d, stream, c.beta, workspace, f.workspace);
        if (stand_in && id == STAND_IN_FAILING) {
            EXPECT_EQ(result, LT_EXECUTION_FAILED);
            continue;
        }
        ASSERT_EQ(result, LT_OK) << "algorithm " << id;
        std::vector<unsigned char> got(bytes);
        OK(cu.copy_out(got.data(), d, bytes, stream));
        OK(cu.stream_sync(stream));
        EXPECT_EQ(Beyond(c, a, b, bias, before, got), stand_in && id == STAND_IN_WRONG ? s.batch : 0)
            << "algorithm " << id;
        tried++;
    }
    EXPECT_GE(tried, stand_in ? 4 : 1) << "of " << found.size();
}

const Case kCases[] = {
    {"f16_to_f32", Shape(LT_F16, LT_F32, false, false), false, 0},
    {"f16_to_f32_a_turned", Shape(LT_F16, LT_F32, true, false), false, 0},
    {"f16_to_f32_b_turned", Shape(LT_F16, LT_F32, false, true), false, 0},
    {"f16_to_f16_both_turned", Shape(LT_F16, LT_F16, true, true), false, 0},
    {"bf16_to_bf16", Shape(LT_BF16, LT_BF16, false, true), false, 0},
    {"bf16_to_f32", Shape(LT_BF16, LT_F32, true, false), false, 0},
    {"tf32", Shape(LT_F32, LT_F32, false, true), false, 0},
    {"tf32_a_turned", Shape(LT_F32, LT_F32, true, false), false, 0},
    {"f16_bias", Shape(LT_F16, LT_F16, false, true), true, 0},
    {"f16_to_f32_bias", Shape(LT_F16, LT_F32, false, false), true, 0},
    {"bf16_bias", Shape(LT_BF16, LT_BF16, false, true), true, 0},
    {"batch", Shape(LT_F16, LT_F16, false, true, 3), false, 0},
    {"batch_in_f32", Shape(LT_BF16, LT_F32, false, false, 2), false, 0},
    {"batch_beside", Beside(Shape(LT_F16, LT_F16, false, true, 3)), false, 0},
    {"batch_beside_turned", Beside(Shape(LT_BF16, LT_BF16, true, false, 4, 8)), false, 0},
    {"batch_of_one_b", SharingB(Shape(LT_F16, LT_F16, false, false, 3)), true, 0},
    {"batch_beside_f32", Beside(InF32(Shape(LT_F32, LT_F32, false, true, 3))), false, 0},
    {"batch_tf32", Shape(LT_F32, LT_F32, true, false, 5), false, 0},
    {"f32", InF32(Shape(LT_F32, LT_F32, false, true)), true, 0},
    {"f32_turned", InF32(Shape(LT_F32, LT_F32, true, false, 1, 8)), false, 1},
    {"pitch", Shape(LT_F16, LT_F16, false, true, 1, 8), false, 0},
    {"batch_pitch_bias", Shape(LT_F16, LT_F32, true, false, 2, 8), true, 0},
    {"added_to_c", Shape(LT_F16, LT_F32, false, false), false, 1},
};
INSTANTIATE_TEST_SUITE_P(All, CublasLtConformance, testing::ValuesIn(kCases),
                         [](const testing::TestParamInfo<Case> &info) { return std::string(info.param.name); });

// It does not run on the driver.
TEST(CublasLt, ALibraryOfANewerCudaThanTheDriversIsPassedOver) {
    amp_cublaslt cublaslt;
    amp_error err = {};
    const amp_status status = amp_cublaslt_open(&cublaslt, 0, &err);
    if (status == AMP_NOT_FOUND) GTEST_SKIP() << "NOT TESTED, because cuBLASLt is not installed: " << err.message;
    ASSERT_EQ(status, AMP_OK) << err.message;
    const int major = cublaslt.version / 1000;
    char found[4096], path[PATH_MAX];
    amp_library_path(cublaslt.library, found, sizeof found);
    ASSERT_NE(realpath(found, path), nullptr) << found; // the error names the file, not a link to it
    setenv("CUBLASLT_PATH", path, 1);
    EXPECT_EQ(amp_cublaslt_open(&cublaslt, major * 1000, &err), AMP_OK) << err.message;
    EXPECT_EQ(amp_cublaslt_open(&cublaslt, major * 1000 - 500, &err), AMP_BAD_FILE);
    const std::string wanted = std::string(path) + " cannot be used as NVIDIA's cuBLASLt (libcublasLt.so.13, .12 or " +
                               ".11): it is of CUDA " + std::to_string(major) + ", and one of CUDA 11 to " +
                               std::to_string(major - 1) + " is needed: install that, or a newer driver";
    EXPECT_EQ(err.message, wanted);
}

} // namespace
