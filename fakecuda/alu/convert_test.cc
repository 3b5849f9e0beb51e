// Conversions: every f16 and bf16 value, every rounding direction at the places where they differ, saturation, NaN.
#include "fakecuda/alu/alu_test.h"

#include <functional>

namespace {

struct Type {
    const char *name;
    int bits;
    bool is_signed;
};
const Type kIntegers[] = {{"u8", 8, false}, {"u16", 16, false}, {"u32", 32, false}, {"u64", 64, false},
                          {"s8", 8, true},  {"s16", 16, true},  {"s32", 32, true},  {"s64", 64, true}};
const char *const kDirections[] = {"rn", "rz", "rm", "rp"};

std::vector<Operands> singles(const std::vector<uint64_t> &v) {
    std::vector<Operands> r;
    for (uint64_t x : v) r.push_back({x, x, 0, 0});
    return r;
}

std::vector<Operands> every_half() {
    std::vector<Operands> r;
    for (uint64_t x = 0; x < 65536; ++x) r.push_back({x, 0, 0, 0});
    return r;
}

S128 clamp(S128 x, const Type &t) {
    S128 lowest = t.is_signed ? -(S128(1) << (t.bits - 1)) : S128(0),
         highest = (S128(1) << (t.is_signed ? t.bits - 1 : t.bits)) - 1;
    return x < lowest ? lowest : x > highest ? highest : x;
}

TEST(Convert, IntegerToInteger) {
    for (const Type &from : kIntegers)
        for (const Type &to : kIntegers)
            for (bool sat : {false, true}) {
                std::vector<Operands> cases =
                    singles(integers(from.bits == 64 ? 64 : 32, 60, 1)); // narrow types sit in wider registers
                Results r =
                    run(context(), std::string("cvt.") + (sat ? "sat." : "") + to.name + "." + from.name, cases);
                for (size_t i = 0; i < cases.size(); ++i) {
                    S128 x = as_integer(cases[i][0], from.bits, from.is_signed);
                    ASSERT_EQ(r.first[i], low(uint64_t(sat ? clamp(x, to) : x), to.bits))
                        << to.name << " " << from.name;
                }
            }
    AluOp op = found(context(), "cvt.s8.s32"); // whoever has the wider register spreads the sign
    EXPECT_EQ(op.dst_bits, 8);
    EXPECT_TRUE(op.dst_signed);
}

// ---- to and from 16 bits --------------------------------------------------------------------------------------------

TEST(Convert, EveryHalfToF32) {
    std::vector<Operands> all = every_half();
    for (const auto &[shape, name] : {std::pair<Shape, const char *>{F16, "f16"}, {BF16, "bf16"}}) {
        Results f32 = run(context(), std::string("cvt.f32.") + name, all),
                f64 = run(context(), std::string("cvt.f64.") + name, all);
        for (uint64_t x = 0; x < 65536; ++x) {
            bool nan = is_nan(shape, x);
            float expected = nan ? 0 : float(value(shape, x));
            ASSERT_EQ(f32.first[x], nan ? 0x7fffffffu : bits_of(expected) | (x >> 15 << 31)) << name << " " << x;
            if (nan) ASSERT_TRUE(std::isnan(f64_of(f64.first[x])));
            else ASSERT_EQ(f64_of(f64.first[x]), double(expected));
            float plain = shape.digits == 11 ? alu_f16_to_f32(uint16_t(x)) : alu_bf16_to_f32(uint16_t(x));
            ASSERT_EQ(bits_of(plain), uint32_t(f32.first[x]));
            uint16_t back = shape.digits == 11 ? alu_f32_to_f16(plain) : alu_f32_to_bf16(plain);
            ASSERT_EQ(back, nan ? 0x7fff : x);
        }
    }
}

// The values of a 16-bit format, the points half-way between them, and what is next to those, as f32.
std::vector<uint64_t> around_halves(const Shape &f) {
    std::vector<uint64_t> v = floats(2000, 2);
    uint64_t inf = uint64_t((1 << (16 - f.digits)) - 1) << (f.digits - 1);
    for (uint64_t x = 0; x < inf; x += f.digits == 11 ? 29 : 23) {
        double a = double(value(f, x)),
               b = x + 1 == inf ? a + double(value(f, 1ull << (f.digits - 1))) : double(value(f, x + 1));
        if (x + 1 == inf) b = 2 * a - double(value(f, x - 1));
        for (float m : {float(a), float((a + b) / 2)})
            for (int step = -1; step <= 1; ++step)
                for (uint32_t sign : {0u, 0x80000000u}) {
                    uint32_t bits = bits_of(m);
                    if (bits || step >= 0) v.push_back((bits + uint32_t(step)) | sign);
                }
    }
    uint64_t largest = bits_of(float(value(f, inf - 1)));
    for (uint64_t k = 0; k < 9000000; k += 4096) v.push_back(largest + k), v.push_back((largest + k) | 0x80000000u);
    return v;
}

void check_to_half(const Shape &f, const std::string &type, const std::vector<std::string> &forms) {
    std::vector<Operands> cases = singles(around_halves(f));
    uint64_t inf = uint64_t((1 << (16 - f.digits)) - 1) << (f.digits - 1);
    for (const std::string &form : forms) {
        std::string mode = form.substr(0, 2);
        Results r = run(context(), "cvt." + form + "." + type + ".f32", cases);
        ASSERT_EQ(r.first.size(), cases.size());
        bool ftz = form.find(".ftz") != std::string::npos, sat = form.find(".sat") + 4 == form.size(),
             finite = form.find("satfinite") != std::string::npos;
        bool relu = form.find("relu") != std::string::npos;
        for (size_t i = 0; i < cases.size(); ++i) {
            uint64_t x = cases[i][0];
            if (ftz && !(x & 0x7f800000)) x &= 0x80000000;
            uint64_t e = is_nan32(x) ? f.nan : rounded(f, F128(f32_of(x)), mode);
            if (x == 0x80000000) e = 0x8000;
            if (finite && low(e, 15) == inf) e -= 1;
            if (relu && e >> 15) e = 0;
            if (sat) e = is_nan(f, e) || e >> 15 ? 0 : std::min(e, uint64_t(1 - f.emin) << (f.digits - 1));
            ASSERT_EQ(r.first[i], e) << form << "." << type << std::hex << " " << x;
        }
    }
}

TEST(Convert, F32ToF16) {
    check_to_half(
        F16, "f16",
        {"rn", "rz", "rm", "rp", "rn.ftz", "rz.sat", "rn.sat", "rn.satfinite", "rn.relu", "rz.relu.satfinite"});
}
TEST(Convert, F32ToBf16) {
    check_to_half(BF16, "bf16", {"rn", "rz", "rm", "rp", "rn.relu", "rn.satfinite", "rz.relu.satfinite"});
}

TEST(Convert, FirstOperandGoesToTheUpperHalf) {
    std::vector<Operands> cases = pairs(floats(20, 3), floats(20, 4));
    for (const char *form : {"rn", "rz", "rn.relu", "rn.satfinite", "rz.relu.satfinite"})
        for (const char *type : {"f16", "bf16"}) {
            Results two = run(context(), std::string("cvt.") + form + "." + type + "x2.f32", cases);
            std::vector<Operands> upper = cases, lower = cases;
            for (Operands &o : lower) o[0] = o[1];
            Results high = run(context(), std::string("cvt.") + form + "." + type + ".f32", upper),
                    under = run(context(), std::string("cvt.") + form + "." + type + ".f32", lower);
            for (size_t i = 0; i < cases.size(); ++i)
                ASSERT_EQ(two.first[i], high.first[i] << 16 | under.first[i]) << form << type;
        }
    EXPECT_EQ(run1(context(), "cvt.rn.f16x2.f32", bits_of(1.f), bits_of(2.f)), 0x3c004000u);
    EXPECT_EQ(run1(context(), "cvt.rn.bf16x2.f32", bits_of(1.f), bits_of(2.f)), 0x3f804000u);
}

TEST(Convert, Tf32) {
    std::vector<Operands> cases = singles(floats(5000, 5));
    std::mt19937_64 g(6);
    for (int i = 0; i < 5000; ++i) { // at and beside ties
        uint64_t x = (low(g(), 18) << 13 | 0x1000) + g() % 3 - 1;
        cases.push_back({x, x, 0, 0});
    }
    for (const char *form : {"rna", "rn", "rz", "rna.satfinite", "rn.relu"}) {
        Results r = run(context(), std::string("cvt.") + form + ".tf32.f32", cases);
        for (size_t i = 0; i < cases.size(); ++i) {
            uint64_t x = cases[i][0];
            std::string mode = form;
            uint64_t e =
                is_nan32(x) ? 0x7fffffffu : rounded(TF32, F128(f32_of(x)), mode.substr(0, mode.find('.'))) << 13;
            if (x == 0x80000000) e = x;
            if (mode == "rna.satfinite" && low(e, 31) == 0x7f800000) e -= 0x2000;
            if (mode == "rn.relu" && !is_nan32(x) && e >> 31) e = 0;
            ASSERT_EQ(r.first[i], e) << form << std::hex << " " << x;
            if (mode == "rna" && (x & 0x7f800000) != 0x7f800000) {
                ASSERT_EQ(r.first[i], (x + 0x1000) & ~0x1fffull);
            } // what other emulations say
        }
    }
}

// ---- integers and floating point ------------------------------------------------------------------------------------

TEST(Convert, IntegerToFloat) {
    for (const Type &from : kIntegers)
        for (const char *mode : kDirections) {
            std::vector<Operands> cases = singles(integers(from.bits, 200, 7));
            Results f32 = run(context(), std::string("cvt.") + mode + ".f32." + from.name, cases),
                    f16 = run(context(), std::string("cvt.") + mode + ".f16." + from.name, cases);
            Results f64 = run(context(), std::string("cvt.") + mode + ".f64." + from.name, cases);
            bool bf16_exists = from.bits > 8;
            Results bf16 = bf16_exists ? run(context(), std::string("cvt.") + mode + ".bf16." + from.name, cases) : f16;
            for (size_t i = 0; i < cases.size(); ++i) {
                F128 x = F128(as_integer(cases[i][0], from.bits, from.is_signed));
                ASSERT_EQ(f32.first[i], rounded(F32, x, mode)) << mode << from.name << cases[i][0];
                ASSERT_EQ(f16.first[i], rounded(F16, x, mode)) << mode << from.name << cases[i][0];
                if (bf16_exists) {
                    ASSERT_EQ(bf16.first[i], rounded(BF16, x, mode)) << mode << from.name << cases[i][0];
                }
                double d = double(x), up = std::nextafter(d, INFINITY), down = std::nextafter(d, -INFINITY),
                       got = f64_of(f64.first[i]);
                if (F128(d) == x || std::string(mode) == "rn") ASSERT_EQ(got, d);
                else if (std::string(mode) == "rm" || (std::string(mode) == "rz" && x > 0))
                    ASSERT_EQ(got, F128(d) < x ? d : down);
                else ASSERT_EQ(got, F128(d) > x ? d : up);
            }
        }
}

const struct Whole {
    const char *mode;
    double (*of)(double);
} kWhole[] = {{"rni", [](double x) { return std::nearbyint(x); }},
              {"rzi", [](double x) { return std::trunc(x); }},
              {"rmi", [](double x) { return std::floor(x); }},
              {"rpi", [](double x) { return std::ceil(x); }}};

// Whole numbers and halves up to the limits of the integer types, and their neighbours.
std::vector<double> near_integers() {
    std::vector<double> v;
    for (double base :
         {0.,     1.,          2.,          3.,          127.,        128.,   255.,   256.,   32767., 32768., 65535.,
          65536., 2147483647., 2147483648., 4294967295., 4294967296., 0x1p52, 0x1p53, 0x1p62, 0x1p63, 0x1p64, 1e30})
        for (double part : {0., 0.25, 0.5, 0.75})
            for (double sign : {1., -1.}) {
                double x = sign * (base + part);
                v.push_back(x), v.push_back(std::nextafter(x, INFINITY)), v.push_back(std::nextafter(x, -INFINITY));
                v.push_back(double(std::nextafterf(float(x), INFINITY))),
                    v.push_back(double(std::nextafterf(float(x), -INFINITY))), v.push_back(double(float(x)));
            }
    for (double x : {double(INFINITY), -double(INFINITY), 1e-310, -1e-310, 1e-40, -1e-40}) v.push_back(x);
    return v;
}

void check_to_integer(const std::string &source, int source_bits, const std::vector<uint64_t> &values,
                      const std::function<double(uint64_t)> &of) {
    std::vector<Operands> cases = singles(values);
    for (const Type &to : kIntegers) {
        if (source == "bf16" && to.bits == 8) continue;
        for (const Whole &w : kWhole) {
            Results r = run(context(), std::string("cvt.") + w.mode + "." + to.name + "." + source, cases);
            for (size_t i = 0; i < cases.size(); ++i) {
                double x = of(values[i]);
                // NaN: zero, but the middle bit where one side has 64 bits.
                uint64_t nan = source_bits == 64 || to.bits == 64 ? 1ull << (to.bits - 1) : 0;
                double d = w.of(x);
                S128 wanted = d > 0x1p100 ? S128(1) << 100 : d < -0x1p100 ? -(S128(1) << 100) : S128(d);
                uint64_t e = std::isnan(x) ? nan : low(uint64_t(clamp(wanted, to)), to.bits);
                ASSERT_EQ(r.first[i], e) << w.mode << to.name << "." << source << " " << x;
            }
        }
    }
}

TEST(Convert, FloatToInteger) {
    std::vector<uint64_t> f32 = floats(300, 8), f64;
    for (double x : near_integers()) f32.push_back(bits_of(float(x))), f64.push_back(bits_of(x));
    f64.push_back(0x7ff8000000000000ull);
    check_to_integer("f32", 32, f32, [](uint64_t x) { return double(f32_of(x)); });
    check_to_integer("f64", 64, f64, [](uint64_t x) { return f64_of(x); });
    std::vector<uint64_t> halves;
    for (uint64_t x = 0; x < 65536; x += 3) halves.push_back(x);
    check_to_integer("f16", 16, halves, [](uint64_t x) { return is_nan(F16, x) ? NAN : double(value(F16, x)); });
    check_to_integer("bf16", 16, halves, [](uint64_t x) { return is_nan(BF16, x) ? NAN : double(value(BF16, x)); });
    EXPECT_EQ(run1(context(), "cvt.rpi.s32.f32", 1), 1u); // a subnormal number is above zero, unless flushed
    EXPECT_EQ(run1(context(), "cvt.rpi.ftz.s32.f32", 1), 0u);
}

TEST(Convert, ToWholeNumbers) {
    std::vector<uint64_t> values = floats(300, 9);
    for (double x : near_integers()) values.push_back(bits_of(float(x)));
    std::vector<Operands> cases = singles(values);
    for (const Whole &w : kWhole)
        for (bool ftz : {false, true}) {
            Results r = run(context(), std::string("cvt.") + w.mode + (ftz ? ".ftz" : "") + ".f32.f32", cases);
            for (size_t i = 0; i < cases.size(); ++i) {
                uint64_t x = cases[i][0];
                if (ftz && !(x & 0x7f800000)) x &= 0x80000000;
                ASSERT_EQ(r.first[i], is_nan32(x) ? 0x7fffffffu : bits_of(float(w.of(double(f32_of(x))))))
                    << w.mode << std::hex << x;
            }
        }
    std::vector<Operands> all = every_half();
    Results f16 = run(context(), "cvt.rmi.f16.f16", all);
    for (uint64_t x = 0; x < 65536; ++x) {
        uint64_t e = is_nan(F16, x) ? 0x7fff
                     : low(x, 15) == 0x7c00
                         ? x
                         : rounded(F16, F128(std::floor(double(value(F16, x)))), "rn") | (x & 0x8000);
        ASSERT_EQ(f16.first[x], e);
    }
}

TEST(Convert, FloatToFloat) {
    std::vector<uint64_t> values;
    std::mt19937_64 g(10);
    for (uint64_t x : floats(500, 11)) {
        double d = double(f32_of(x));
        values.push_back(bits_of(d));
        if (std::isfinite(d))
            values.push_back(bits_of(std::nextafter(d, 10.))), values.push_back(bits_of(d) + (1ull << 28)),
                values.push_back(bits_of(d) + (1ull << 28) - 1 + g() % 3);
    }
    for (double d : {1e-46, 1e-44, 3.5e38, 1e300, -1e300, 1e-320}) values.push_back(bits_of(d));
    std::vector<Operands> cases = singles(values);
    for (const char *mode : kDirections) {
        Results f32 = run(context(), std::string("cvt.") + mode + ".f32.f64", cases),
                ftz = run(context(), std::string("cvt.") + mode + ".ftz.f32.f64", cases);
        Results f16 = run(context(), std::string("cvt.") + mode + ".f16.f64", cases),
                bf16 = run(context(), std::string("cvt.") + mode + ".bf16.f64", cases);
        for (size_t i = 0; i < cases.size(); ++i) {
            double d = f64_of(cases[i][0]);
            uint64_t e = rounded(F32, F128(d), mode);
            ASSERT_EQ(f32.first[i], e) << mode << d;
            ASSERT_EQ(ftz.first[i], e & 0x7f800000 ? e : e & 0x80000000) << mode << d;
            ASSERT_EQ(f16.first[i], rounded(F16, F128(d), mode)) << mode << d;
            ASSERT_EQ(bf16.first[i], rounded(BF16, F128(d), mode)) << mode << d;
        }
    }
    AluContext c = context();
    for (uint64_t x : floats(200, 12)) {
        float f = f32_of(x);
        uint64_t sat = run1(c, "cvt.sat.f32.f32", x);
        ASSERT_EQ(sat, std::isnan(f) || !(f > 0) ? 0 : f > 1 ? 0x3f800000u : x);
        ASSERT_EQ(run1(c, "cvt.ftz.f32.f32", x), is_nan32(x) ? 0x7fffffffu : x & 0x7f800000 ? x : x & 0x80000000);
        if (!std::isnan(f)) {
            ASSERT_EQ(f64_of(run1(c, "cvt.f64.f32", x)), double(f));
        }
        if (!std::isnan(f) && !(x & 0x7f800000)) {
            ASSERT_EQ(run1(c, "cvt.ftz.f64.f32", x), (x & 0x80000000) << 32);
        }
    }
    EXPECT_EQ(run1(c, "cvt.ftz.f32.f16", 1), bits_of(0x1p-24f)); // .ftz is about f32: the subnormal f16 stays
    EXPECT_EQ(run1(c, "cvt.rn.bf16.f16", 0x3c01), 0x3f80u);
}

TEST(Convert, Pack) {
    std::vector<Operands> cases = pairs(integers(32, 30, 13), integers(32, 30, 14));
    for (Operands &o : cases) o[2] = uint32_t(o[0] * 0x9e3779b9u);
    for (const Type &t : kIntegers) {
        if (t.bits > 16) continue;
        Results r = run(context(), std::string("cvt.pack.sat.") + t.name + ".s32" + (t.bits == 8 ? ".b32" : ""), cases);
        for (size_t i = 0; i < cases.size(); ++i) {
            uint64_t a = low(uint64_t(clamp(int32_t(cases[i][0]), t)), t.bits),
                     b = low(uint64_t(clamp(int32_t(cases[i][1]), t)), t.bits);
            ASSERT_EQ(r.first[i], t.bits == 16 ? a << 16 | b : (cases[i][2] << 16 & 0xffffffffu) | a << 8 | b)
                << t.name;
        }
    }
}

} // namespace
