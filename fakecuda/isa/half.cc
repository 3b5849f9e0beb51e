// half.cc: arithmetic on f16, f16x2, bf16, bf16x2.  Sums and products are worked out exactly and rounded once.
#include "fakecuda/isa/lanes.h"

namespace isa {
namespace {

Want want(const Short &s, double x) {
    return std::isnan(x) ? nan(s.digits == 11 ? Format::kF16 : Format::kBf16) : bits(shortened(s, x));
}
double a(const Short &s, uint16_t x) { return lengthened(s, x); }
Want sum(const Short &s, const In &i, double sign) { return want(s, odd_fma(1, a(s, i.ha), sign * a(s, i.hb))); }
Want product(const Short &s, const In &i) { return want(s, a(s, i.ha) * a(s, i.hb)); }
Want both(const Short &s, const In &i) { return want(s, odd_fma(a(s, i.ha), a(s, i.hb), a(s, i.hc))); }
double flushed_half(uint16_t x) { return (x & 0x7c00) ? f16_value(x) : std::copysign(0.0, x & 0x8000 ? -1 : 1); }
Want flushed_half_want(double x) {
    if (std::isnan(x)) return nan(Format::kF16);
    uint16_t b = shortened(kHalf, x);
    return bits((b & 0x7c00) ? b : b & 0x8000);
}

double least(double x, double y) {
    if (std::isnan(x)) return y;
    if (std::isnan(y)) return x;
    if (x == y) return std::signbit(x) ? x : y;
    return x < y ? x : y;
}

const std::vector<uint64_t> kHalves = {0,      0x8000, 0x3c00, 0xbc00, 0x3555, 0x3c01, 0x4500, 0x7bff,
                                       0xfbff, 0x0001, 0x83ff, 0x0400, 0x5400, 0x7c00, 0xfc00, 0x7e00};
const std::vector<uint64_t> kBfloats = {0,      0x8000, 0x3f80, 0xbf80, 0x3eab, 0x3f81, 0x40a0, 0x7f7f,
                                        0xff7f, 0x0001, 0x0080, 0x4380, 0x7f80, 0xff80, 0x7fc0};

// Two values at once: no NaN among the results, whose bits the document leaves open.
std::vector<In> packed(const std::vector<uint64_t> &values) {
    std::vector<In> all;
    for (uint64_t x : values)
        for (uint64_t y : values)
            for (uint64_t z : {0x3c00ull, 0x3f80ull}) {
                bool is_special = false;
                for (uint64_t v : {x, y}) is_special = is_special || (v & 0x7c00) == 0x7c00 || (v & 0x7f80) == 0x7f80;
                if (!is_special) all.emplace_back(x | y << 16, y | z << 16, z | x << 16);
            }
    return all;
}
Want packs(const Short &s, const In &i, double (*f)(double, double, double)) {
    uint16_t low = shortened(s, f(a(s, i.ha), a(s, i.hb), a(s, i.hc)));
    uint16_t high = shortened(s, f(a(s, i.a >> 16), a(s, i.b >> 16), a(s, i.c >> 16)));
    return bits(low | static_cast<uint32_t>(high) << 16);
}
double add2(double x, double y, double) { return odd_fma(1, x, y); }
double sub2(double x, double y, double) { return odd_fma(1, x, -y); }
double mul2(double x, double y, double) { return x * y; }
double fma2(double x, double y, double z) { return odd_fma(x, y, z); }
double relu2(double x, double y, double z) { return std::fmax(odd_fma(x, y, z), 0.0); }
double least2(double x, double y, double) { return least(x, y); }
double greatest2(double x, double y, double) { return -least(-x, -y); }

} // namespace

std::vector<Case> half_cases() {
    std::vector<Case> all;
    all.push_back(
        lanes("half_arithmetic", 75, pairs(kHalves, {0x3c00, 0x8001, 0x6400}),
              {
                  {'h', "add.f16 h, ha, hb;", WANT(sum(kHalf, i, 1))},
                  {'h', "add.rn.f16 h, ha, hb;", WANT(sum(kHalf, i, 1))},
                  {'h', "sub.f16 h, ha, hb;", WANT(sum(kHalf, i, -1))},
                  {'h', "mul.rn.f16 h, ha, hb;", WANT(product(kHalf, i))},
                  {'h', "fma.rn.f16 h, ha, hb, hc;", WANT(both(kHalf, i))},
                  {'h', "add.ftz.f16 h, ha, hb;",
                   WANT(flushed_half_want(odd_fma(1, flushed_half(i.ha), flushed_half(i.hb))))},
                  {'h', "neg.f16 h, ha;", WANT(std::isnan(f16_value(i.ha)) ? nan(Format::kF16) : bits(i.ha ^ 0x8000u))},
                  {'h', "abs.f16 h, ha;", WANT(std::isnan(f16_value(i.ha)) ? nan(Format::kF16) : bits(i.ha & 0x7fffu))},
              }));
    all.push_back(lanes("half_arithmetic_packed", 75, packed(kHalves),
                        {
                            {'d', "add.f16x2 d, a, b;", WANT(packs(kHalf, i, add2))},
                            {'d', "sub.rn.f16x2 d, a, b;", WANT(packs(kHalf, i, sub2))},
                            {'d', "mul.f16x2 d, a, b;", WANT(packs(kHalf, i, mul2))},
                            {'d', "fma.rn.f16x2 d, a, b, c;", WANT(packs(kHalf, i, fma2))},
                        }));
    all.push_back(lanes("half_least_greatest", 80, pairs(kHalves),
                        {
                            {'h', "min.f16 h, ha, hb;", WANT(want(kHalf, least(f16_value(i.ha), f16_value(i.hb))))},
                            {'h', "max.f16 h, ha, hb;", WANT(want(kHalf, -least(-f16_value(i.ha), -f16_value(i.hb))))},
                            {'h', "min.NaN.f16 h, ha, hb;",
                             WANT(std::isnan(f16_value(i.ha)) || std::isnan(f16_value(i.hb))
                                      ? nan(Format::kF16)
                                      : want(kHalf, least(f16_value(i.ha), f16_value(i.hb))))},
                        }));
    all.push_back(lanes("half_packed_more", 80, packed(kHalves),
                        {
                            {'d', "fma.rn.relu.f16x2 d, a, b, c;", WANT(packs(kHalf, i, relu2))},
                            {'d', "min.f16x2 d, a, b;", WANT(packs(kHalf, i, least2))},
                            {'d', "max.f16x2 d, a, b;", WANT(packs(kHalf, i, greatest2))},
                        }));
    all.push_back(
        lanes("bfloat_fma", 80, pairs(kBfloats, {0x3f80, 0xbf81, 0x0001}),
              {
                  {'h', "fma.rn.bf16 h, ha, hb, hc;", WANT(both(kBfloat, i))},
                  {'h', "max.bf16 h, ha, hb;", WANT(want(kBfloat, -least(-bf16_value(i.ha), -bf16_value(i.hb))))},
              }));
    all.push_back(lanes("bfloat_arithmetic", 90, pairs(kBfloats),
                        {
                            {'h', "add.rn.bf16 h, ha, hb;", WANT(sum(kBfloat, i, 1))},
                            {'h', "sub.rn.bf16 h, ha, hb;", WANT(sum(kBfloat, i, -1))},
                            {'h', "mul.rn.bf16 h, ha, hb;", WANT(product(kBfloat, i))},
                            {'f', "cvt.f32.bf16 f, ha;", WANT(exact(float(bf16_value(i.ha))))},
                        }));
    all.push_back(lanes("bfloat_packed", 90, packed(kBfloats),
                        {
                            {'d', "add.rn.bf16x2 d, a, b;", WANT(packs(kBfloat, i, add2))},
                            {'d', "mul.rn.bf16x2 d, a, b;", WANT(packs(kBfloat, i, mul2))},
                            {'d', "fma.rn.bf16x2 d, a, b, c;", WANT(packs(kBfloat, i, fma2))},
                        }));
    return all;
}

} // namespace isa
