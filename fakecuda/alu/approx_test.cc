// Approximate instructions: within the bounds of the document (PTX ISA, the tables of each instruction) for every seed,
// exact where it says so, and repeatable.
#include "fakecuda/alu/alu_test.h"

#include <functional>

namespace {

using Function = std::function<long double(long double, long double)>;

// How far |got| may be from |exact|: given the argument.
using Bound = std::function<long double(long double exact, double a)>;

double ulp_of(float x) {
    float m = std::fabs(x);
    return double(std::nextafterf(m, INFINITY)) - double(m);
}

Bound ulps(int n) { // of the correctly rounded result, which may itself be half an ulp away
    return [n](long double exact, double) { return (n + 0.5000001L) * (long double)ulp_of(float(exact)); };
}
Bound relative(double r) {
    return [r](long double exact, double) { return r * std::fabs(exact); };
}
Bound absolute(double r) {
    return [r](long double, double) { return (long double)r; };
}

const uint64_t kSeeds[] = {0, 1, 2, 12345};

void check_f32(const std::string &name, const std::vector<Operands> &cases, const Function &f, const Bound &bound) {
    bool ftz = name.find(".ftz") != std::string::npos;
    size_t moved = 0, compared = 0;
    std::vector<uint64_t> plain;
    for (uint64_t seed : kSeeds) {
        Results r = run(context(90, seed), name, cases), again = run(context(90, seed), name, cases);
        ASSERT_EQ(r.first, again.first) << name;
        for (size_t i = 0; i < cases.size(); ++i) {
            float v[2];
            for (int k = 0; k < 2; ++k)
                v[k] = f32_of(ftz && !(cases[i][k] & 0x7f800000) ? cases[i][k] & 0x80000000 : cases[i][k]);
            long double exact = f(v[0], v[1]);
            float got = f32_of(r.first[i]), rounded = float(exact);
            if (ftz && std::fabs(rounded) < 0x1p-126f) rounded = std::copysign(0.f, rounded);
            if (std::isnan(exact)) {
                ASSERT_EQ(r.first[i], 0x7fffffffu) << name << " " << v[0];
                continue;
            }
            if (rounded == 0 || std::isinf(rounded)) {
                // Results at the ends of the range: as rounded, or the neighbour within the bound.
                if (seed == 0) {
                    ASSERT_EQ(r.first[i], bits_of(rounded)) << name << " " << v[0];
                }
                continue;
            }
            ++compared;
            if (seed == 0) plain.resize(cases.size()), plain[i] = r.first[i];
            else moved += plain[i] != r.first[i];
            if (seed == 0) {
                ASSERT_LE(std::fabs((long double)got - exact), 0.50001L * (long double)ulp_of(rounded))
                    << name << " " << v[0] << " is not rounded";
            }
            long double allowed = std::max(bound(exact, double(v[0])), 0.5000001L * (long double)ulp_of(rounded));
            if (ftz && got == 0) continue; // a subnormal neighbour
            ASSERT_LE(std::fabs((long double)got - exact), allowed)
                << name << " seed " << seed << " at " << v[0] << " " << v[1] << ": " << got;
        }
    }
    EXPECT_GT(compared, cases.size()) << name;
    if (bound(1, 1) > 0x1p-23) {
        EXPECT_GT(moved, compared / 8) << name << ": errors are made";
    }
}

std::vector<Operands> spread(float from, float to, int count, uint64_t seed) {
    std::mt19937_64 g(seed);
    std::vector<Operands> v;
    for (int i = 0; i < count; ++i) v.push_back({bits_of(from + (to - from) * float(g() >> 11) * 0x1p-53f), 0, 0, 0});
    return v;
}

std::vector<Operands> any_floats(int count, uint64_t seed, bool positive = false) {
    std::vector<Operands> v;
    for (uint64_t x : floats(count, seed)) v.push_back({positive ? x & 0x7fffffff : x, 0, 0, 0});
    return v;
}

std::vector<Operands> joined(std::vector<Operands> a, const std::vector<Operands> &b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
}

long double inverse(long double a, long double) { return 1 / a; }

TEST(Approximate, Exponential) {
    std::vector<Operands> v = joined(spread(-150, 130, 2000, 1), any_floats(200, 2));
    Function f = [](long double a, long double) { return std::exp2(a); };
    check_f32("ex2.approx.f32", v, f, ulps(2));
    check_f32("ex2.approx.ftz.f32", v, f, ulps(2));
}

TEST(Approximate, Logarithm) {
    std::vector<Operands> v =
        joined(joined(spread(0.4f, 2.1f, 2000, 3), spread(0.999f, 1.001f, 500, 4)), any_floats(400, 5));
    Function f = [](long double a, long double) { return std::log2(a); };
    Bound bound = [](long double exact, double a) { return a > 0.5 && a < 2 ? 0x1p-22L : 0x1p-22L * std::fabs(exact); };
    check_f32("lg2.approx.f32", v, f, bound);
    check_f32("lg2.approx.ftz.f32", v, f, bound);
}

TEST(Approximate, ReciprocalsAndRoots) {
    std::vector<Operands> v = joined(spread(-10, 10, 1000, 6), any_floats(400, 7)),
                          p = joined(spread(0, 10, 1000, 8), any_floats(400, 9));
    Function root = [](long double a, long double) { return std::sqrt(a); },
             inverse_root = [](long double a, long double) { return 1 / std::sqrt(a); };
    for (const char *ftz : {"", ".ftz"}) {
        check_f32(std::string("rcp.approx") + ftz + ".f32", v, inverse, ulps(1));
        check_f32(std::string("sqrt.approx") + ftz + ".f32", p, root, relative(0x1p-23));
        check_f32(std::string("rsqrt.approx") + ftz + ".f32", p, inverse_root, relative(std::exp2(-22.9)));
    }
}

TEST(Approximate, Sines) {
    const float two_pi = 6.2831853f;
    for (const char *ftz : {"", ".ftz"})
        for (const char *name : {"sin", "cos"}) {
            Function f = *name == 's' ? Function([](long double a, long double) { return std::sin(a); })
                                      : Function([](long double a, long double) { return std::cos(a); });
            std::string full = std::string(name) + ".approx" + ftz + ".f32";
            check_f32(full, spread(-two_pi * 0.9999f, two_pi * 0.9999f, 2000, 10), f, absolute(std::exp2(-20.5)));
            check_f32(full, spread(-50 * two_pi, 50 * two_pi, 2000, 11), f, absolute(std::exp2(-14.7)));
        }
    AluContext c = context(90, 7);
    EXPECT_EQ(run1(c, "sin.approx.f32", 0x80000000), 0x80000000u);
    EXPECT_EQ(run1(c, "cos.approx.f32", 0), 0x3f800000u);
    EXPECT_EQ(run1(c, "cos.approx.f32", 0x80000000), 0x3f800000u);
    EXPECT_EQ(run1(c, "sin.approx.f32", 0x7f800000), 0x7fffffffu);
    for (uint64_t seed = 1; seed < 200; ++seed)
        EXPECT_LE(std::fabs(f32_of(run1(context(90, seed), "sin.approx.f32", bits_of(1.5707964f)))), 1.f);
}

TEST(Approximate, HyperbolicTangent) {
    Function f = [](long double a, long double) { return std::tanh(a); };
    check_f32("tanh.approx.f32", joined(spread(-5, 5, 2000, 12), any_floats(200, 13)), f, relative(0x1p-11));
    AluContext c = context(90, 9);
    EXPECT_EQ(run1(c, "tanh.approx.f32", 0x80000000), 0x80000000u);
    EXPECT_EQ(run1(c, "tanh.approx.f32", 0x7f800000), 0x3f800000u);
    EXPECT_EQ(run1(c, "tanh.approx.f32", 0xff800000), 0xbf800000u);
}

TEST(Approximate, Quotients) {
    std::vector<Operands> v = pairs(floats(20, 14), floats(20, 15)), usual;
    for (const Operands &o : v)
        if (double b = std::fabs(f32_of(o[1])); b >= 0x1p-126 && b <= 0x1p126) usual.push_back(o);
    Function f = [](long double a, long double b) { return a / b; };
    for (const char *ftz : {"", ".ftz"}) {
        check_f32(std::string("div.full") + ftz + ".f32", v, f, ulps(2));
        check_f32(std::string("div.approx") + ftz + ".f32", usual, f, ulps(2));
    }
    AluContext c = context(90, 3); // a divisor above 2^126: zero, or NaN of an infinity
    EXPECT_EQ(run1(c, "div.approx.f32", bits_of(1e38f), 0x7f7fffff), 0u);
    EXPECT_EQ(run1(c, "div.approx.f32", 0x7f800000, 0x7f7fffff), 0x7fffffffu);
    EXPECT_EQ(run1(c, "div.approx.f32", bits_of(1.f), 0x7f800000), 0u);
}

TEST(Approximate, SpecialValues) {
    for (uint64_t seed : kSeeds) {
        AluContext c = context(90, seed);
        EXPECT_EQ(run1(c, "ex2.approx.f32", 0xff800000), 0u);
        EXPECT_EQ(run1(c, "ex2.approx.f32", 0x7f800000), 0x7f800000u);
        EXPECT_EQ(run1(c, "ex2.approx.f32", 0), 0x3f800000u);
        EXPECT_EQ(run1(c, "ex2.approx.ftz.f32", 1), 0x3f800000u);
        EXPECT_EQ(run1(c, "ex2.approx.ftz.f32", bits_of(-130.f)), 0u); // a subnormal result
        EXPECT_EQ(run1(c, "lg2.approx.f32", 0), 0xff800000u);
        EXPECT_EQ(run1(c, "lg2.approx.f32", 0x80000000), 0xff800000u);
        EXPECT_EQ(run1(c, "lg2.approx.f32", 0x7f800000), 0x7f800000u);
        EXPECT_EQ(run1(c, "lg2.approx.f32", bits_of(-1.f)), 0x7fffffffu);
        EXPECT_EQ(run1(c, "lg2.approx.ftz.f32", 1), 0xff800000u);
        EXPECT_EQ(run1(c, "rcp.approx.f32", 0x80000000), 0xff800000u);
        EXPECT_EQ(run1(c, "rcp.approx.ftz.f32", 0x80000001), 0xff800000u);
        EXPECT_EQ(run1(c, "rcp.approx.f32", 0xff800000), 0x80000000u);
        EXPECT_EQ(run1(c, "rsqrt.approx.f32", 0x80000000), 0xff800000u);
        EXPECT_EQ(run1(c, "rsqrt.approx.f32", 0x7f800000), 0u);
        EXPECT_EQ(run1(c, "rsqrt.approx.f32", bits_of(-1.f)), 0x7fffffffu);
        EXPECT_EQ(run1(c, "sqrt.approx.f32", 0x80000000), 0x80000000u);
        EXPECT_EQ(run1(c, "sqrt.approx.f32", bits_of(-1.f)), 0x7fffffffu);
        for (const char *op : {"ex2", "lg2", "rcp", "rsqrt", "sqrt", "sin", "cos", "tanh"})
            EXPECT_EQ(run1(c, std::string(op) + ".approx.f32", 0x7fc00001), 0x7fffffffu) << op;
    }
}

void check_halves(const Shape &f, const std::string &name, double bound, bool is_relative, const Function &function) {
    for (uint64_t seed : kSeeds) {
        std::vector<Operands> one, two;
        for (uint64_t x = 0; x < 65536; x += 3)
            one.push_back({x, 0, 0, 0}), two.push_back({x | (x ^ 0x8000) << 16, 0, 0, 0});
        Results r = run(context(90, seed), name, one), pair = run(context(90, seed), name + "x2", two);
        for (size_t i = 0; i < one.size(); ++i) {
            uint64_t x = one[i][0], got = r.first[i];
            if (is_nan(f, x)) {
                ASSERT_EQ(got, 0x7fffu);
                continue;
            }
            bool ftz = name.find("ftz") != std::string::npos;
            long double a = (long double)value(f, x),
                        exact = function(ftz && !low(x >> (f.digits - 1), 15 - f.digits + 1) ? 0 : a, 0);
            uint64_t nearest = rounded(f, F128(exact), "rn"), inf = uint64_t((1 << (16 - f.digits)) - 1)
                                                                    << (f.digits - 1);
            if (low(nearest, 15) == 0 || low(nearest, 15) == inf || (ftz && low(nearest, 15) < (1u << (f.digits - 1))))
                continue;
            long double half = std::fabs((long double)value(f, nearest) - exact),
                        allowed = std::max(is_relative ? bound * std::fabs(exact) : (long double)bound, half);
            ASSERT_LE(std::fabs((long double)value(f, got) - exact), allowed * 1.0000001L) << name << " " << double(a);
            ASSERT_LE(std::fabs((long double)value(f, pair.first[i] & 0xffff) - exact), allowed * 1.0000001L)
                << name << "x2 " << double(a);
        }
    }
}

TEST(Approximate, Halves) {
    Function ex2 = [](long double a, long double) { return std::exp2(a); },
             tanh = [](long double a, long double) { return std::tanh(a); };
    check_halves(F16, "ex2.approx.f16", std::exp2(-9.9), true, ex2);
    check_halves(BF16, "ex2.approx.ftz.bf16", std::exp2(-7), true, ex2);
    check_halves(F16, "tanh.approx.f16", std::exp2(-10.987), false, tanh);
    check_halves(BF16, "tanh.approx.bf16", std::exp2(-8), false, tanh);
}

TEST(Approximate, StartingPointsOfF64) { // from and to the upper halves of the numbers
    std::mt19937_64 g(16);
    for (uint64_t seed : kSeeds)
        for (int i = 0; i < 500; ++i) {
            uint64_t x = low(g(), 52) | (0x3f0 + g() % 32) << 52;
            double a = f64_of(x), r = f64_of(run1(context(90, seed), "rcp.approx.ftz.f64", x)),
                   s = f64_of(run1(context(90, seed), "rsqrt.approx.ftz.f64", x));
            EXPECT_EQ(low(bits_of(r), 32), 0u);
            EXPECT_LE(std::fabs(r * a - 1), 0x1p-18);
            EXPECT_LE(std::fabs(s * std::sqrt(a) - 1), 0x1p-18);
            EXPECT_LE(std::fabs(f64_of(run1(context(90, seed), "rsqrt.approx.f64", x)) * std::sqrt(a) - 1), 0x1p-51);
        }
    EXPECT_EQ(run1(context(), "rcp.approx.ftz.f64", 1), 0x7ff0000000000000ull);
    EXPECT_EQ(run1(context(), "rcp.approx.ftz.f64", 0xfff0000000000000ull), 1ull << 63);
}

TEST(Approximate, SeedsDiffer) {
    std::vector<Operands> v = spread(-5, 5, 320, 17);
    EXPECT_NE(run(context(90, 1), "ex2.approx.f32", v).first, run(context(90, 2), "ex2.approx.f32", v).first);
    EXPECT_EQ(run(context(90, 1), "ex2.approx.f32", v).first, run(context(75, 1), "ex2.approx.f32", v).first);
}

} // namespace
