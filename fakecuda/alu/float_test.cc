// Arithmetic that IEEE 754 defines.  f32 and f64 in all directions against the processor's own, whose rounding
// direction is set; 16-bit formats against exact sums in 113 digits, rounded from the definition.
#include "fakecuda/alu/alu_test.h"

#include <cfenv>
#include <functional>

namespace {

const struct Direction {
    const char *name;
    int mode;
} kDirections[] = {{"rn", FE_TONEAREST}, {"rz", FE_TOWARDZERO}, {"rm", FE_DOWNWARD}, {"rp", FE_UPWARD}};

template <class T> using Host = std::function<T(T, T, T)>;

template <class T> __attribute__((noinline)) T in_direction(int mode, const Host<T> &f, T a, T b, T c) {
    volatile T x = a, y = b, z = c;
    fesetround(mode);
    volatile T r = f(x, y, z);
    fesetround(FE_TONEAREST);
    return r;
}

uint32_t flushed(uint64_t x) { return x & 0x7f800000 ? uint32_t(x) : uint32_t(x & 0x80000000); }

std::vector<Operands> triples(const std::vector<uint64_t> &v, int count, uint64_t seed) {
    std::vector<Operands> r;
    std::mt19937_64 g(seed);
    for (uint64_t a : v)
        for (int k = 0; k < count; ++k) r.push_back({a, v[g() % v.size()], v[g() % v.size()], 0});
    return r;
}

void check_f32(const std::string &opcode, const std::vector<Operands> &cases, const Host<float> &host, bool sat) {
    for (const Direction &d : kDirections)
        for (int form = 0; form < (sat ? 4 : 2); ++form) {
            bool ftz = form & 1, clamp = form & 2;
            std::string name = opcode + "." + d.name + (ftz ? ".ftz" : "") + (clamp ? ".sat" : "") + ".f32";
            Results r = run(context(), name, cases);
            ASSERT_EQ(r.first.size(), cases.size());
            for (size_t i = 0; i < cases.size(); ++i) {
                float v[3];
                for (int k = 0; k < 3; ++k) v[k] = f32_of(ftz ? flushed(cases[i][k]) : uint32_t(cases[i][k]));
                float x = in_direction<float>(d.mode, host, v[0], v[1], v[2]);
                uint32_t expected = std::isnan(x) ? 0x7fffffffu : ftz ? flushed(bits_of(x)) : bits_of(x);
                if (clamp) expected = std::isnan(x) || !(x > 0) ? 0u : x > 1 ? 0x3f800000u : expected;
                ASSERT_EQ(r.first[i], expected)
                    << name << std::hex << " " << cases[i][0] << " " << cases[i][1] << " " << cases[i][2];
            }
        }
}

void check_f64(const std::string &opcode, const std::vector<Operands> &cases, const Host<double> &host) {
    for (const Direction &d : kDirections) {
        std::string name = opcode + "." + d.name + ".f64";
        Results r = run(context(), name, cases);
        ASSERT_EQ(r.first.size(), cases.size());
        for (size_t i = 0; i < cases.size(); ++i) {
            double x =
                in_direction<double>(d.mode, host, f64_of(cases[i][0]), f64_of(cases[i][1]), f64_of(cases[i][2]));
            if (std::isnan(x)) ASSERT_TRUE(std::isnan(f64_of(r.first[i]))) << name;
            else
                ASSERT_EQ(r.first[i], bits_of(x))
                    << name << std::hex << " " << cases[i][0] << " " << cases[i][1] << " " << cases[i][2];
        }
    }
}

std::vector<uint64_t> doubles(int random, uint64_t seed) {
    std::vector<uint64_t> v;
    for (uint64_t x : {0ull, 1ull, 0x000fffffffffffffull, 0x0010000000000000ull, 0x3ff0000000000000ull,
                       0x3ff0000000000001ull, 0x3fefffffffffffffull, 0x7fefffffffffffffull, 0x7ff0000000000000ull,
                       0x7ff8000000000000ull, 0x4330000000000000ull, 0x3ca0000000000000ull})
        v.push_back(x), v.push_back(x | 1ull << 63);
    std::mt19937_64 g(seed);
    for (int i = 0; i < random; ++i)
        v.push_back(g()), v.push_back(low(g(), 52) | (0x3fe + g() % 4) << 52 | (g() & 1) << 63);
    return v;
}

TEST(Float, F32InEveryDirection) {
    std::vector<Operands> all = triples(floats(300, 1), 6, 2);
    check_f32(
        "add", all, [](float a, float b, float) { return a + b; }, true);
    check_f32(
        "sub", all, [](float a, float b, float) { return a - b; }, true);
    check_f32(
        "mul", all, [](float a, float b, float) { return a * b; }, true);
    check_f32(
        "div", all, [](float a, float b, float) { return a / b; }, false);
    check_f32(
        "fma", all, [](float a, float b, float c) { return std::fma(a, b, c); }, true);
    check_f32(
        "rcp", all, [](float a, float, float) { return 1 / a; }, false);
    check_f32(
        "sqrt", all, [](float a, float, float) { return std::sqrt(a); }, false);
}

TEST(Float, F64InEveryDirection) {
    std::vector<Operands> all = triples(doubles(300, 3), 6, 4);
    check_f64("add", all, [](double a, double b, double) { return a + b; });
    check_f64("sub", all, [](double a, double b, double) { return a - b; });
    check_f64("mul", all, [](double a, double b, double) { return a * b; });
    check_f64("div", all, [](double a, double b, double) { return a / b; });
    check_f64("fma", all, [](double a, double b, double c) { return std::fma(a, b, c); });
    check_f64("rcp", all, [](double a, double, double) { return 1 / a; });
    check_f64("sqrt", all, [](double a, double, double) { return std::sqrt(a); });
}

// Products that cancel against the third operand, or end just below the smallest normal number.
TEST(Float, FmaAtItsEdges) {
    std::mt19937_64 g(5);
    std::vector<Operands> near, wide;
    for (int i = 0; i < 3000; ++i) {
        float a = f32_of(low(g(), 23) | 0x3f800000u), b = f32_of(low(g(), 23) | 0x3f000000u | uint32_t(g() & 1) << 31);
        float c = i % 3 ? -(a * b) : f32_of(bits_of(a * b) ^ 0x80000000u ^ uint32_t(g() % 3));
        if (i % 4 == 0)
            a = std::ldexp(a, -100), b = std::ldexp(b, -26),
            c = i % 8 ? f32_of(g() % 4 | uint32_t(g() & 1) << 31) : 0.f;
        near.push_back({bits_of(a), bits_of(b), bits_of(c), 0});
        double p = f64_of(low(g(), 52) | 0x3ff0000000000000ull), q = f64_of(low(g(), 52) | 0x3ff0000000000000ull),
               r = -(p * q);
        if (i % 4 == 0) p = std::ldexp(p, -600), q = std::ldexp(q, -422), r = f64_of(g() % 4);
        wide.push_back({bits_of(p), bits_of(q), bits_of(r), 0});
    }
    check_f32(
        "fma", near, [](float a, float b, float c) { return std::fma(a, b, c); }, true);
    check_f64("fma", wide, [](double a, double b, double c) { return std::fma(a, b, c); });
}

// ---- 16 bits --------------------------------------------------------------------------------------------------------

std::vector<uint64_t> halves(const Shape &f, int random, uint64_t seed) {
    uint64_t one = uint64_t(1 - f.emin) << (f.digits - 1), inf = uint64_t((1 << (16 - f.digits)) - 1) << (f.digits - 1),
             smallest = 1ull << (f.digits - 1);
    std::vector<uint64_t> v;
    for (uint64_t x : {uint64_t(0), uint64_t(1), smallest - 1, smallest, smallest + 1, one, one - 1, one + 1, inf - 1,
                       inf, inf + 1, uint64_t(0x7fff)})
        v.push_back(x), v.push_back(x | 0x8000);
    std::mt19937_64 g(seed);
    for (int i = 0; i < random; ++i)
        v.push_back(low(g(), 16)), v.push_back(low(g(), f.digits) + one - smallest),
            v.push_back(low(g(), f.digits + 1));
    return v;
}

// -1 where the exact result does not fit 113 digits.
int64_t expected_half(const Shape &f, const std::string &opcode, const uint64_t v[3]) {
    F128 x[3];
    for (int i = 0; i < 3; ++i) x[i] = is_nan(f, v[i]) ? F128(NAN) : value(f, v[i]);
    F128 a = opcode == "fma" ? x[0] * x[1] : x[0], b = opcode == "fma" ? x[2] : opcode == "sub" ? -x[1] : x[1];
    F128 r = opcode == "mul" ? x[0] * x[1] : a + b;
    if (opcode != "mul" && r - r == 0) {
        F128 back = r - a, lost = (a - (r - back)) + (b - back);
        if (lost != 0) return -1;
    }
    return int64_t(rounded(f, r, "rn"));
}

void check_halves(const Shape &f, const std::string &type, const std::string &opcode,
                  const std::vector<std::string> &forms) {
    std::vector<Operands> cases = triples(halves(f, 200, 6), 8, 7), packed;
    for (size_t i = 0; i + 1 < cases.size(); ++i) {
        Operands o{};
        for (int k = 0; k < 3; ++k) o[k] = cases[i + 1][k] << 16 | cases[i][k];
        packed.push_back(o);
    }
    size_t compared = 0;
    for (const std::string &form : forms) {
        std::string name = opcode + form + "." + type;
        Results one = run(context(), name, cases), two = run(context(), name + "x2", packed);
        bool ftz = form.find(".ftz") != std::string::npos, sat = form.find(".sat") != std::string::npos,
             relu = form.find(".relu") != std::string::npos;
        uint64_t normal = 1ull << (f.digits - 1), one_bits = uint64_t(1 - f.emin) << (f.digits - 1);
        for (size_t i = 0; i < cases.size(); ++i) {
            uint64_t v[3];
            for (int k = 0; k < 3; ++k)
                v[k] = ftz && low(cases[i][k], 15) < normal ? cases[i][k] & 0x8000 : cases[i][k];
            int64_t wanted = expected_half(f, opcode, v);
            if (wanted < 0) continue;
            ++compared;
            uint64_t e = uint64_t(wanted);
            if (ftz && low(e, 15) < normal) e &= 0x8000;
            if (sat) e = is_nan(f, e) || e >> 15 ? 0 : std::min(e, one_bits);
            if (relu && e >> 15) e = 0;
            ASSERT_EQ(one.first[i], e) << name << std::hex << " " << cases[i][0] << " " << cases[i][1] << " "
                                       << cases[i][2];
            if (i + 1 < cases.size()) {
                ASSERT_EQ(two.first[i] & 0xffff, e) << name << "x2";
            }
            if (i > 0) {
                ASSERT_EQ(two.first[i - 1] >> 16, e) << name << "x2";
            }
        }
    }
    EXPECT_GT(compared, cases.size() * forms.size() / 2);
}

TEST(Float, F16) {
    for (const char *opcode : {"add", "sub", "mul"})
        check_halves(F16, "f16", opcode, {"", ".rn", ".ftz", ".sat", ".rn.ftz.sat"});
    check_halves(F16, "f16", "fma", {".rn", ".rn.ftz", ".rn.sat", ".rn.relu"});
}

TEST(Float, Bf16) {
    for (const char *opcode : {"add", "sub", "mul"}) check_halves(BF16, "bf16", opcode, {"", ".rn"});
    check_halves(BF16, "bf16", "fma", {".rn", ".rn.relu"});
}

TEST(Float, PairsOfF32) {
    AluContext c = context(120);
    uint64_t a = uint64_t(bits_of(3.5f)) << 32 | bits_of(1.25f), b = uint64_t(bits_of(-2.f)) << 32 | bits_of(8.f),
             e = uint64_t(bits_of(1.f)) << 32 | bits_of(-10.f);
    EXPECT_EQ(run1(c, "fma.rn.f32x2", a, b, e), uint64_t(bits_of(-6.f)) << 32 | bits_of(0.f));
    EXPECT_EQ(run1(c, "add.rm.f32x2", a, b), uint64_t(bits_of(1.5f)) << 32 | bits_of(9.25f));
}

// ---- extremes -------------------------------------------------------------------------------------------------------

template <class T> T less(T a, T b) { // -0 is below +0; a number wins over NaN
    if (std::isnan(a)) return b;
    if (std::isnan(b)) return a;
    if (a == b) return std::signbit(a) ? a : b;
    return a < b ? a : b;
}

void check_extremes(const std::string &type, const Shape &f, const std::vector<uint64_t> &v, bool ftz_exists) {
    std::vector<Operands> cases = triples(v, 12, 8);
    for (int form = 0; form < (ftz_exists ? 8 : 4); ++form) {
        bool nan = form & 1, xorsign = form & 2, ftz = form & 4;
        std::string mods = std::string(ftz ? ".ftz" : "") + (nan ? ".NaN" : "") + (xorsign ? ".xorsign.abs." : ".");
        Results min = run(context(), "min" + mods + type, cases), max = run(context(), "max" + mods + type, cases);
        for (size_t i = 0; i < cases.size(); ++i) {
            uint64_t top = 1ull << (f.bits - 1), normal = 1ull << (f.digits - 1);
            double d[2];
            uint64_t x[2] = {cases[i][0], cases[i][1]};
            for (int k = 0; k < 2; ++k) {
                if (ftz && low(x[k], f.bits - 1) < normal) x[k] &= top;
                d[k] = is_nan(f, x[k]) ? NAN : double(value(f, x[k]));
                if (xorsign) d[k] = std::fabs(d[k]);
                if (d[k] == 0) d[k] = !xorsign && x[k] & top ? -0.0 : 0.0;
            }
            for (bool larger : {false, true}) {
                double r = larger ? -less(-d[0], -d[1]) : less(d[0], d[1]);
                if (nan && (std::isnan(d[0]) || std::isnan(d[1]))) r = NAN;
                uint64_t e = std::isnan(r) ? f.nan : rounded(f, F128(r), "rn");
                if (r == 0) e = std::signbit(r) ? top : 0;
                if (xorsign && !std::isnan(r)) e |= (x[0] ^ x[1]) & top;
                ASSERT_EQ((larger ? max : min).first[i], e)
                    << (larger ? "max" : "min") << mods << type << std::hex << " " << cases[i][0] << " " << cases[i][1];
            }
        }
    }
}

TEST(Float, Extremes) {
    check_extremes("f32", F32, floats(40, 9), true);
    check_extremes("f16", F16, halves(F16, 20, 10), true);
    check_extremes("bf16", BF16, halves(BF16, 20, 11), false);
    std::vector<uint64_t> v = doubles(40, 12);
    std::vector<Operands> cases = triples(v, 10, 13);
    Results min = run(context(), "min.f64", cases);
    for (size_t i = 0; i < cases.size(); ++i) {
        double r = less(f64_of(cases[i][0]), f64_of(cases[i][1]));
        if (!std::isnan(r)) ASSERT_EQ(min.first[i], bits_of(r));
        else ASSERT_TRUE(std::isnan(f64_of(min.first[i])));
    }
    EXPECT_EQ(run1(context(), "min.f16x2", 0x3c00c000, 0x4000bc00), 0x3c00c000u);
    EXPECT_EQ(run1(context(), "max.bf16x2", 0x3f80c000, 0x4000bf80), 0x4000bf80u);
}

// ---- signs and classes ----------------------------------------------------------------------------------------------

TEST(Float, Signs) {
    for (uint64_t x : floats(50, 14)) {
        AluContext c = context();
        bool nan = is_nan32(x), subnormal = !(x & 0x7f800000);
        EXPECT_EQ(run1(c, "neg.f32", x), nan ? 0x7fffffffu : x ^ 0x80000000u);
        EXPECT_EQ(run1(c, "abs.f32", x), nan ? 0x7fffffffu : x & 0x7fffffffu);
        EXPECT_EQ(run1(c, "neg.ftz.f32", x), nan ? 0x7fffffffu : (subnormal ? x & 0x80000000u : x) ^ 0x80000000u);
        EXPECT_EQ(run1(c, "abs.ftz.f32", x), nan ? 0x7fffffffu : subnormal ? 0 : x & 0x7fffffffu);
        EXPECT_EQ(run1(c, "copysign.f32", 0x80000000u, x), x | 0x80000000u);
        EXPECT_EQ(run1(c, "copysign.f32", x, 0xc0490fdbu), 0x40490fdbu | (x & 0x80000000u));
    }
    EXPECT_EQ(run1(context(), "neg.f64", 0x3ff0000000000000ull), 0xbff0000000000000ull);
    EXPECT_EQ(run1(context(), "abs.f64", 0xbff0000000000000ull), 0x3ff0000000000000ull);
    EXPECT_EQ(run1(context(), "copysign.f64", 1ull << 63, 5), 5 | 1ull << 63);
    EXPECT_EQ(run1(context(), "neg.f16x2", 0x3c008000u), 0xbc000000u);
    EXPECT_EQ(run1(context(), "abs.bf16x2", 0xbf80ffffu), 0x3f807fffu);
    EXPECT_EQ(run1(context(), "neg.ftz.f16", 0x0001), 0x8000u);
}

TEST(Float, Properties) {
    for (uint64_t x : floats(50, 15)) {
        float f = f32_of(x);
        AluContext c = context();
        EXPECT_EQ(run1(c, "testp.finite.f32", x), uint64_t(std::isfinite(f)));
        EXPECT_EQ(run1(c, "testp.infinite.f32", x), uint64_t(std::isinf(f)));
        EXPECT_EQ(run1(c, "testp.number.f32", x), uint64_t(!std::isnan(f)));
        EXPECT_EQ(run1(c, "testp.notanumber.f32", x), uint64_t(std::isnan(f)));
        EXPECT_EQ(run1(c, "testp.normal.f32", x), uint64_t(std::isnormal(f) || f == 0)); // zeros count as normal
        EXPECT_EQ(run1(c, "testp.subnormal.f32", x), uint64_t(std::fpclassify(f) == FP_SUBNORMAL));
    }
    EXPECT_EQ(run1(context(), "testp.subnormal.f64", 1), 1u);
}

TEST(Float, Flops) {
    AluContext c = context();
    EXPECT_EQ(found(c, "fma.rn.f32").flops, 2);
    EXPECT_EQ(found(c, "add.f32").flops, 1);
    EXPECT_EQ(found(c, "fma.rn.f16x2").flops, 4);
    EXPECT_EQ(found(c, "add.s32").flops, 0);
    EXPECT_EQ(found(c, "neg.f32").flops, 0);
}

} // namespace
