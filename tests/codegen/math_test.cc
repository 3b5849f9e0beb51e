// math_test.cc: the functions that generated kernels call, compiled from the text that goes into every model:
// elementary functions against long double, roundings against base/numeric.h, bit for bit.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/processor.h"
#include "base/rounding.h"
#include "codegen/emit.h"
#include "tests/ops/pointwise.h"
#include "codegen/emit.h"
#include "tests/ops/pointwise.h"

extern "C" const char cpu_abi[], cpu_prelude[];

namespace {

struct Isa {
    const char *name, *march;
};
#if defined(__x86_64__)
const Isa isas[] = {{"portable", "x86-64"}, {"x86-64-v3", "x86-64-v3"}, {"x86-64-v4", "x86-64-v4"}};
#else
const Isa isas[] = {{"portable", "armv8-a"}};
#endif

bool Runs(const Isa &isa) {
    const unsigned features = amp_cpu_features();
    if (isa.march == std::string("x86-64-v4")) return features & AMP_CPU_X86_64_V4;
    if (isa.march == std::string("x86-64-v3")) return features & AMP_CPU_X86_64_V3;
    return true;
}

const char wrappers[] = R"(
#define MAP(function, name, from, to, expression)                                                      \
    __attribute__((visibility("default"))) void function##_##name(to *q, const from *p, int64_t n)       \
    {                                                                                                    \
        for (int64_t i = 0; i < n; i += W) expression;                                                    \
    }
#define MAP_FLOAT(name) MAP(map, name, float, float, store_f32(q + i, name##_vf(load_f32(p + i))))
MAP_FLOAT(round_f16) MAP_FLOAT(round_bf16) MAP_FLOAT(round_tf32)
#define MAP_POW(name, e) MAP(map, pow_##name, float, float, store_f32(q + i, pow_vf(load_f32(p + i), e)))
MAP_POW(2, 2.0) MAP_POW(3, 3.0) MAP_POW(half, 0.5) MAP_POW(m1, -1.0) MAP_POW(1_7, 1.7) MAP_POW(m2_5, -2.5) MAP_POW(0, 0.0)
__attribute__((visibility("default"))) double get_cos(double x) { return cos_f64(x); }
MAP(narrow, f16, float, uint16_t, store_f16(q + i, round_f16_vf(load_f32(p + i))))
MAP(narrow, bf16, float, uint16_t, store_bf16(q + i, round_bf16_vf(load_f32(p + i))))
MAP(widen, f16, uint16_t, float, store_f32(q + i, load_f16(p + i)))
MAP(widen, bf16, uint16_t, float, store_f32(q + i, load_bf16(p + i)))
float get_max(float a, float b) { return max_vf(splat_f(a), splat_f(b))[0]; }
float get_min(float a, float b) { return min_vf(splat_f(a), splat_f(b))[0]; }
float get_remainder(float a, float b) { return remainder_f32(a, b); }
int32_t get_whole_remainder(int32_t a, int32_t b) { return remainder_vi(splat_i(a), splat_i(b))[0]; }
)";

// Ops of tests/ops/pointwise.def whose core op is a call of the function of its name.
std::vector<PointwiseRow> CoreRows() {
    std::vector<PointwiseRow> rows;
    for (const PointwiseRow &row : PointwiseRows())
        if (ir_op_info[row.code].core && emit_row(row.code) == &emit_function) rows.push_back(row);
    return rows;
}

std::string RowWrappers() {
    std::string text;
    for (const PointwiseRow &row : CoreRows()) text += std::string("MAP_FLOAT(") + row.name() + ")\n";
    return text;
}

// The prelude as a shared object of its own for one instruction set.
class Prelude {
  public:
    explicit Prelude(const Isa &isa) {
        char folder[] = "/tmp/prelude-XXXXXX";
        const std::string at = mkdtemp(folder);
        std::ofstream(at + "/p.c") << cpu_abi << cpu_prelude << wrappers << RowWrappers();
        const std::string command = "cc -std=gnu11 -O2 -Wall -Wextra -Werror -Wno-psabi -fPIC -shared "
                                    "-ffp-contract=off -fno-math-errno -fno-trapping-math -fwrapv "
                                    "-ffreestanding -march=" +
                                    std::string(isa.march) + " -o " + at + "/p.so " + at + "/p.c";
        EXPECT_EQ(system(command.c_str()), 0) << command;
        handle_ = dlopen((at + "/p.so").c_str(), RTLD_NOW | RTLD_LOCAL);
        EXPECT_NE(handle_, nullptr) << dlerror();
        for (const char *file : {"/p.c", "/p.so"}) unlink((at + file).c_str());
        rmdir(at.c_str());
    }
    ~Prelude() { dlclose(handle_); }
    template <typename F> F *Get(const std::string &name) const {
        void *f = dlsym(handle_, name.c_str());
        EXPECT_NE(f, nullptr) << name;
        return reinterpret_cast<F *>(f);
    }

  private:
    void *handle_;
};

float FromBits(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}
uint32_t Bits(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

// Floats of every sign and exponent, in steps, with the special values.
std::vector<float> Everywhere(uint32_t step) {
    std::vector<float> v = {0.0f,     -0.0f,    INFINITY, -INFINITY, NAN,    1.0f,          -1.0f,
                            0.625f,   65504.0f, 65519.9f, 65520.0f,  1e-45f, 5.9604645e-8f, 2.9802322e-8f,
                            88.7228f, 88.73f,   -103.97f, -104.0f,   -87.4f};
    for (uint64_t b = 0; b < (uint64_t{1} << 32); b += step) v.push_back(FromBits(static_cast<uint32_t>(b)));
    while (v.size() % 16) v.push_back(1.0f);
    return v;
}

// |got - want| in units of the last place of a float near |want|.
double Ulps(float got, long double want) {
    if (std::isnan(want)) return std::isnan(got) ? 0 : INFINITY;
    const float nearest = static_cast<float>(want);
    if (std::isinf(nearest) || std::isinf(got))
        return got == nearest ? 0 : std::isinf(nearest) && std::fabs(got) == 3.40282347e38f ? 1 : INFINITY;
    int exponent = 0;
    frexpl(want, &exponent);
    const long double unit = ldexpl(1.0L, std::max(exponent - 24, -149));
    return static_cast<double>(fabsl(static_cast<long double>(got) - want) / unit);
}

struct Function {
    const char *name;
    long double (*exact)(long double);
    double bound; // codegen/README.md
};
const Function powers[] = {{"pow_2", [](long double x) { return powl(x, 2.0L); }, 0.501},
                           {"pow_3", [](long double x) { return powl(x, 3.0L); }, 0.501},
                           {"pow_half", [](long double x) { return powl(x, 0.5L); }, 0.501},
                           {"pow_m1", [](long double x) { return powl(x, -1.0L); }, 0.501},
                           {"pow_1_7", [](long double x) { return powl(x, static_cast<long double>(1.7)); }, 0.501},
                           {"pow_m2_5", [](long double x) { return powl(x, -2.5L); }, 0.501},
                           {"pow_0", [](long double x) { return powl(x, 0.0L); }, 0.0}};

class MathTest : public testing::TestWithParam<Isa> {
  protected:
    void SetUp() override {
        if (!Runs(GetParam())) GTEST_SKIP() << "this machine has no " << GetParam().name;
        prelude_ = std::make_unique<Prelude>(GetParam());
    }
    using Map = void(float *, const float *, int64_t);
    std::unique_ptr<Prelude> prelude_;
};

TEST_P(MathTest, StaysWithinItsBounds) {
    std::vector<float> x = Everywhere(10007);
    std::mt19937 engine(1);
    std::uniform_real_distribution<float> near(-6.0f, 6.0f), around_one(0.5f, 2.0f);
    for (int i = 0; i < 1 << 16; i++) x.push_back(near(engine));
    for (int i = 0; i < 1 << 16; i++) x.push_back(around_one(engine));
    std::vector<Function> functions(std::begin(powers), std::end(powers));
    for (const PointwiseRow &row : CoreRows()) functions.push_back({row.name(), row.exact, row.bounds.of_f32});
    for (const Function &f : functions) {
        std::vector<float> y = x;
        prelude_->Get<Map>(std::string("map_") + f.name)(y.data(), x.data(), static_cast<int64_t>(x.size()));
        double worst = 0;
        float where = 0;
        for (size_t i = 0; i < x.size(); i++) {
            const double e = Ulps(y[i], f.exact(static_cast<long double>(x[i])));
            if (e > worst) worst = e, where = x[i];
        }
        RecordProperty(f.name, std::to_string(worst));
        EXPECT_LE(worst, f.bound) << f.name << " at " << where << " on " << GetParam().name;
    }
}

// Of a double, for schedules.
TEST_P(MathTest, Cosine) {
    auto *cosine = prelude_->Get<double(double)>("get_cos");
    std::mt19937 engine(2);
    std::uniform_real_distribution<double> small(-7.0, 7.0), large(-1e5, 1e5);
    for (int i = 0; i < 1 << 16; i++)
        for (double x : {small(engine), large(engine)})
            ASSERT_NEAR(cosine(x), static_cast<double>(cosl(static_cast<long double>(x))), 3e-16) << x;
    for (int i = 0; i <= 8; i++) ASSERT_NEAR(cosine(i * M_PI / 2), std::cos(i * M_PI / 2), 1e-16) << i;
    EXPECT_TRUE(std::isnan(cosine(NAN)) && std::isnan(cosine(INFINITY)));
}

TEST_P(MathTest, RoundsAsTheBaseDoes) {
    const std::vector<float> x = Everywhere(4001);
    const struct {
        const char *name;
        float (*exact)(float);
    } roundings[] = {
        {"map_round_f16", amp_round_f16}, {"map_round_bf16", amp_round_bf16}, {"map_round_tf32", amp_round_tf32}};
    for (const auto &r : roundings) {
        std::vector<float> y = x;
        prelude_->Get<Map>(r.name)(y.data(), x.data(), static_cast<int64_t>(x.size()));
        for (size_t i = 0; i < x.size(); i++)
            ASSERT_TRUE(Bits(y[i]) == Bits(r.exact(x[i])) || (std::isnan(x[i]) && std::isnan(y[i])))
                << r.name << " of " << x[i] << " gives " << y[i];
    }
    std::vector<uint16_t> f16(x.size()), bf16(x.size());
    prelude_->Get<void(uint16_t *, const float *, int64_t)>("narrow_f16")(f16.data(), x.data(),
                                                                          static_cast<int64_t>(x.size()));
    prelude_->Get<void(uint16_t *, const float *, int64_t)>("narrow_bf16")(bf16.data(), x.data(),
                                                                           static_cast<int64_t>(x.size()));
    for (size_t i = 0; i < x.size(); i++) {
        ASSERT_TRUE(f16[i] == amp_f32_to_f16(x[i]) || (std::isnan(x[i]) && (f16[i] & 0x7FFF) > 0x7C00)) << x[i];
        ASSERT_TRUE(bf16[i] == amp_f32_to_bf16(x[i]) || (std::isnan(x[i]) && (bf16[i] & 0x7FFF) > 0x7F80)) << x[i];
    }
}

TEST_P(MathTest, WidensEverySixteenBitValue) {
    std::vector<uint16_t> h(65536);
    for (size_t i = 0; i < h.size(); i++) h[i] = static_cast<uint16_t>(i);
    std::vector<float> f16(h.size()), bf16(h.size());
    prelude_->Get<void(float *, const uint16_t *, int64_t)>("widen_f16")(f16.data(), h.data(), 65536);
    prelude_->Get<void(float *, const uint16_t *, int64_t)>("widen_bf16")(bf16.data(), h.data(), 65536);
    for (size_t i = 0; i < h.size(); i++) {
        const float want = amp_f16_to_f32(h[i]);
        ASSERT_TRUE(std::isnan(want) ? std::isnan(f16[i]) : Bits(f16[i]) == Bits(want)) << i;
        ASSERT_EQ(Bits(bf16[i]), Bits(amp_bf16_to_f32(h[i]))) << i;
    }
}

// fmod is exact, and a float's rounding of its sum with b, which double holds to 2^-53, is the sum's own.
TEST_P(MathTest, RemaindersAreRoundedOnce) {
    auto *remainder = prelude_->Get<float(float, float)>("get_remainder");
    const std::vector<float> some = Everywhere(0x01e3779b), others = Everywhere(0x0371f053);
    auto check = [&](float a, float b) {
        double want = std::fmod(static_cast<double>(a), static_cast<double>(b));
        if (want != 0 && (want < 0) != (b < 0)) want += static_cast<double>(b);
        const float nearest = static_cast<float>(want), got = remainder(a, b);
        ASSERT_TRUE(std::isnan(nearest) ? std::isnan(got) : Bits(got) == Bits(nearest))
            << a << " % " << b << ": " << got;
    };
    for (const float a : some)
        for (const float b : others) check(a, b);
    for (int n = -70000; n < 70000; n += 7) check(static_cast<float>(n) * 0.1f, 0.1f); // near whole quotients
}

TEST_P(MathTest, RemaindersOfIntegersAreDefined) {
    auto *remainder = prelude_->Get<int32_t(int32_t, int32_t)>("get_whole_remainder");
    const int32_t cases[][3] = {{7, 3, 1},
                                {-7, 3, 2},
                                {7, -3, -2},
                                {-7, -3, -1},
                                {6, 3, 0},
                                {-6, 3, 0},
                                {7, 0, 0},
                                {INT32_MIN, -1, 0},
                                {INT32_MIN, INT32_MAX, INT32_MAX - 1},
                                {5, INT32_MIN, 5 + INT32_MIN}};
    for (const auto &c : cases) EXPECT_EQ(remainder(c[0], c[1]), c[2]) << c[0] << " % " << c[1];
}

TEST_P(MathTest, LargestAndSmallestKeepNaN) {
    auto *max = prelude_->Get<float(float, float)>("get_max"), *min = prelude_->Get<float(float, float)>("get_min");
    EXPECT_TRUE(std::isnan(max(NAN, 1.0f)) && std::isnan(max(1.0f, NAN)) && std::isnan(min(NAN, 1.0f)) &&
                std::isnan(min(1.0f, NAN)));
    EXPECT_EQ(max(1.0f, 2.0f), 2.0f);
    EXPECT_EQ(min(1.0f, -INFINITY), -INFINITY);
}

INSTANTIATE_TEST_SUITE_P(Isa, MathTest, testing::ValuesIn(isas), [](const auto &info) {
    return std::string(info.param.name).substr(0, 3) == "por" ? "portable" : std::string(info.param.name).substr(7);
});

} // namespace
