// near_test.cc: the functions of prelude/near.cuh: their errors in units in the last place, and which results are made
// by them: those that are rounded to 16 bits or added up, and no others.
#include <cmath>
#include <functional>

#include "codegen/cuda/prelude_parts.h"
#include "tests/codegen/cuda/cuda_run.h"

namespace {

class NearTest : public CudaRunTest {
  protected:
    // y[i] = expression of float x.
    std::vector<float> Map(const std::string &expression, const std::vector<float> &x) {
        const std::string kernel = "extern \"C\" __global__ void map(const float *xs, float *ys, int n) {\n"
                                   "    const int i = blockIdx.x * 256 + threadIdx.x;\n    if (i >= n) return;\n"
                                   "    const float x = xs[i];\n    ys[i] = " +
                                   expression + ";\n}\n";
        const std::string source =
            cuda_prelude_for(cuda_prelude_split(&arena_, cuda_prelude), kernel.c_str(), nullptr) + kernel;
        amp_nvrtc_job job = {};
        job.source = source.c_str();
        job.name = "near.cu";
        job.arch = 80;
        amp_nvrtc_result result = {};
        amp_error err = {};
        EXPECT_EQ(amp_nvrtc_compile(nvrtc_, &job, &result, &err), AMP_OK) << err.message;
        std::vector<float> y(x.size());
        if (!result.ptx) return y;
        const LoadedPtx image(result.ptx, 80);
        amp_nvrtc_result_free(nvrtc_, &result);
        if (!image.loaded()) return y;
        KernelDevice *device = image.device();
        uint64_t places[2];
        for (uint64_t &place : places) place = device->Allocate(4 * x.size());
        EXPECT_EQ(device->Write(places[0], x.data(), 4 * x.size()), "");
        KernelLaunch launch = {};
        launch.entry = "map";
        launch.grid[0] = static_cast<uint32_t>((x.size() + 255) / 256);
        launch.block[0] = 256;
        for (int a = 1; a < 3; a++) launch.grid[a] = launch.block[a] = 1;
        launch.params = {places[0], places[1], x.size()};
        ExecCounters counters = {};
        EXPECT_EQ(device->Launch(launch, &counters), "");
        EXPECT_EQ(device->Read(places[1], y.data(), 4 * x.size()), "");
        for (uint64_t place : places) EXPECT_EQ(device->Free(place), "");
        return y;
    }

    void Bound(const std::string &name, double least, double most, double units,
               const std::function<double(double)> &f) {
        std::vector<float> x;
        for (int i = 0; i <= 20000; i++) x.push_back(static_cast<float>(least + (most - least) * i / 20000));
        for (float tiny = 1e-30f; tiny < 1; tiny *= 1.37f) x.insert(x.end(), {tiny, -tiny});
        const std::vector<float> y = Map("near_" + name + "_f32(x)", x);
        double worst = 0;
        for (size_t i = 0; i < x.size(); i++) {
            const double want = f(double(x[i])),
                         unit = std::ldexp(1.0, std::ilogb(std::max(std::abs(want), 0x1p-126)) - 23);
            const double error = std::abs(want) < 0x1p-126 ? 0 : std::abs(double(y[i]) - want) / unit;
            if (!(error <= worst)) worst = error;
            ASSERT_LE(error, units) << name << "(" << x[i] << ") is " << y[i] << ", wanted " << want;
        }
        RecordProperty(name, std::to_string(worst));
    }
};

TEST_F(NearTest, ErrorsAreBounded) {
    Bound("exp", -87, 88, 4, [](double x) { return std::exp(x); });
    Bound("tanh", -10, 10, 4, [](double x) { return std::tanh(x); });
    Bound("erf", -5, 5, 4, [](double x) { return std::erf(x); });
}

TEST_F(NearTest, WhatIsNotFinite) {
    const float inf = INFINITY, nan = NAN;
    const std::vector<float> x = {inf, -inf, nan, 200, -200, 3e38f, -3e38f, 0.0f};
    const std::vector<float> e = Map("near_exp_f32(x)", x), t = Map("near_tanh_f32(x)", x),
                             r = Map("near_erf_f32(x)", x);
    const float powers[] = {inf, 0, nan, inf, 0, inf, 0, 1}, ones[] = {1, -1, nan, 1, -1, 1, -1, 0};
    for (size_t i = 0; i < x.size(); i++) {
        if (std::isnan(x[i])) {
            EXPECT_TRUE(std::isnan(e[i]) && std::isnan(t[i]) && std::isnan(r[i]));
            continue;
        }
        EXPECT_EQ(e[i], powers[i]) << x[i];
        EXPECT_EQ(t[i], ones[i]) << x[i];
        EXPECT_EQ(r[i], ones[i]) << x[i];
    }
}

// Whether the code of a function of |ops| names |word|.
class NearUseTest : public NearTest {
  protected:
    bool Uses(const std::string &ops, const std::string &word) {
        const CudaModule *cuda = Emit(PlannedForCuda("module \"core\" stage lower {\n}\nfunc infer {\n" + ops + "}\n"));
        if (!cuda) return false;
        for (int i = 0; i < cuda->functions.len; i++)
            if (std::string(cuda->functions.data[i].source).find(word + "(") != std::string::npos) return true;
        return false;
    }
};

TEST_F(NearUseTest, ResultsThatAreRounded) {
    const std::string x = "  input %x : f32[N, 64]\n", e = "  %e = exp(%x) : f32[N, 64]\n",
                      low = "  %h = cast(%e) : f16[N, 64]\n  result h = %h\n";
    EXPECT_TRUE(Uses(x + e + low, "near_exp_f32"));
    EXPECT_FALSE(Uses(x + e + low, " exp_f32"));
    EXPECT_TRUE(Uses(x + e + "  result e = %e\n", "exp_f32"));
    EXPECT_FALSE(Uses(x + e + "  result e = %e\n", "near_exp_f32"));
    EXPECT_FALSE(Uses(x + e + low + "  result e = %e\n", "near_exp_f32")) << "it is stored as it is, too";
    for (const char *name : {"tanh", "erf"})
        EXPECT_TRUE(Uses(x + "  %e = " + name + "(%x) : f32[N, 64]\n" + low, std::string("near_") + name + "_f32"));
    const std::string middle = "  %a = mul(%x, %x) : f32[N, 64]\n  %t = exp(%a) : f32[N, 64]\n";
    EXPECT_TRUE(Uses(x + middle + "  %e = add(%t, %x) : f32[N, 64]\n" + low, "near_exp_f32"));
    EXPECT_FALSE(Uses(x + middle + "  %e = sin(%t) : f32[N, 64]\n" + low, "near_exp_f32")) << "its argument is exact";
    EXPECT_FALSE(Uses(x + middle + "  %e = add(%t, %x) : f32[N, 64]\n" + low + "  %q = lt(%t, %x) : bool[N, 64]\n" +
                          "  result q = %q\n",
                      "near_exp_f32"))
        << "it is compared";
}

TEST_F(NearUseTest, ResultsThatAreAddedUp) {
    const std::string x = "  input %x : f32[N, 64]\n  %e = exp(%x) : f32[N, 64]\n";
    EXPECT_TRUE(Uses(x + "  %s = reduce_sum(%e; dims = (1)) : f32[N]\n  result s = %s\n", "near_exp_f32"));
    EXPECT_FALSE(Uses(x + "  %s = reduce_max(%e; dims = (1)) : f32[N]\n  result s = %s\n", "near_exp_f32"));
}

} // namespace
