// convert.cc: cvt between all widths and kinds, and moves that pack.
#include <algorithm>

#include "fakecuda/isa/lanes.h"

namespace isa {
namespace {

constexpr int kNearest = FE_TONEAREST, kZero = FE_TOWARDZERO, kUp = FE_UPWARD, kDown = FE_DOWNWARD;

// Float to integer: rounded, clamped to the type; NaN gives 0, or the top bit where either side has 64 bits.
template <class T> T to_integer(int mode, double x, bool from_double) {
    if (std::isnan(x)) return from_double || sizeof(T) == 8 ? static_cast<T>(uint64_t(1) << (sizeof(T) * 8 - 1)) : 0;
    double r = integral(mode, x);
    double low = static_cast<double>(std::numeric_limits<T>::min());
    double high = std::ldexp(1.0, std::numeric_limits<T>::digits); // one too many
    if (r < low) return std::numeric_limits<T>::min();
    if (r >= high) return std::numeric_limits<T>::max();
    return static_cast<T>(r);
}

template <class T> int64_t clamped(int64_t x) {
    return std::min<int64_t>(std::max<int64_t>(x, std::numeric_limits<T>::min()), std::numeric_limits<T>::max());
}

uint32_t u(int64_t x) { return static_cast<uint32_t>(x); }
uint64_t U(int64_t x) { return static_cast<uint64_t>(x); }
uint16_t h(int64_t x) { return static_cast<uint16_t>(x); }
Want half(double x, int mode = kNearest) { return std::isnan(x) ? nan(Format::kF16) : bits(shortened(kHalf, x, mode)); }
Want bfloat(double x, int mode = kNearest) {
    return std::isnan(x) ? nan(Format::kBf16) : bits(shortened(kBfloat, x, mode));
}
double positive(double x) { return x > 0 ? x : std::isnan(x) ? x : 0; }

const std::vector<uint64_t> kIntegers = {0,
                                         1,
                                         0x7f,
                                         0x80,
                                         0xff,
                                         0x100,
                                         0x7fff,
                                         0x8000,
                                         0xffff,
                                         0x10001,
                                         0x7fffffff,
                                         0x80000000,
                                         0xffffffff,
                                         0x1000000ff,
                                         0x7fffffffffffffff,
                                         0x8000000000000000,
                                         0xffffffffffffff80,
                                         0xffffffffffffffff};
const std::vector<float> kFloats = {0.f,           -0.f,         0.25f,          0.5f,           -0.5f,
                                    0.75f,         1.f,          1.5f,           -1.5f,          2.5f,
                                    -2.5f,         127.5f,       128.f,          -128.5f,        255.6f,
                                    32767.5f,      65535.5f,     8388607.5f,     2147483520.f,   2147483648.f,
                                    -2147483648.f, 4294967040.f, 4294967296.f,   9.2e18f,        9.3e18f,
                                    1.85e19f,      -1e30f,       1e-40f,         -1e-40f,        1e-45f,
                                    65504.f,       65519.9f,     65520.f,        6.1e-5f,        5.96e-8f,
                                    2.98e-8f,      2.99e-8f,     1.00048828125f, 1.00146484375f, 3.4e38f,
                                    1.00390625f,   1.01171875f,  INFINITY,       -INFINITY,      NAN};

std::vector<In> list(const std::vector<uint64_t> &values) {
    std::vector<In> all;
    for (uint64_t v : values) all.emplace_back(v, 0, 0);
    return all;
}

std::vector<In> float_list() {
    std::vector<In> all;
    for (size_t k = 0; k < kFloats.size(); k++)
        all.push_back(floats(kFloats[k], kFloats[(k * 7 + 3) % kFloats.size()], 0));
    return all;
}

uint32_t pack(uint16_t low, uint16_t high) { return low | static_cast<uint32_t>(high) << 16; }

// Packed results hold no NaN here: their bits are not said.
std::vector<In> pairs_without_nan() {
    std::vector<In> all;
    for (const In &i : float_list())
        if (!std::isnan(i.fa) && !std::isnan(i.fb)) all.push_back(i);
    return all;
}

} // namespace

std::vector<Case> convert_cases() {
    std::vector<Case> all;
    all.push_back(lanes("convert_integers", 75, list(kIntegers),
                        {
                            {'D', "cvt.u64.u32 D, a;", WANT(bits(i.a))},
                            {'D', "cvt.s64.s32 D, a;", WANT(bits(U(i.sa)))},
                            {'d', "cvt.u32.u64 d, A;", WANT(bits(i.a))},
                            {'h', "cvt.u16.u32 h, a;", WANT(bits(i.ha))},
                            {'d', "cvt.u32.u16 d, ha;", WANT(bits(i.ha))},
                            {'d', "cvt.s32.s16 d, ha;", WANT(bits(u(int16_t(i.ha))))},
                            {'d', "cvt.s32.s8 d, a;", WANT(bits(u(int8_t(i.a))))},
                            {'d', "cvt.u32.u8 d, a;", WANT(bits(i.a & 0xff))},
                            {'h', "cvt.s16.s8 h, ha;", WANT(bits(h(int8_t(i.ha))))},
                            {'D', "cvt.s64.s8 D, A;", WANT(bits(U(int8_t(i.A))))},
                            {'D', "cvt.u64.s32 D, a;", WANT(bits(U(i.sa)))},
                            // a narrow result in a wider register is extended by the type it was converted to
                            {'d', "cvt.s8.s32 d, a;", WANT(bits(u(int8_t(i.a))))},
                            {'d', "cvt.u8.s32 d, a;", WANT(bits(i.a & 0xff))},
                            {'d', "cvt.sat.s8.s32 d, a;", WANT(bits(u(clamped<int8_t>(i.sa))))},
                            {'d', "cvt.sat.u8.s32 d, a;", WANT(bits(u(clamped<uint8_t>(i.sa))))},
                            {'h', "cvt.sat.s16.s32 h, a;", WANT(bits(h(clamped<int16_t>(i.sa))))},
                            {'h', "cvt.sat.u16.u32 h, a;", WANT(bits(std::min(i.a, 65535u)))},
                            {'d', "cvt.sat.s32.s64 d, A;", WANT(bits(u(clamped<int32_t>(i.sA))))},
                            {'d', "cvt.sat.u32.s32 d, a;", WANT(bits(i.sa < 0 ? 0 : i.a))},
                            {'d', "cvt.sat.s32.u32 d, a;", WANT(bits(std::min(i.a, 0x7fffffffu)))},
                        }));
    all.push_back(
        lanes("convert_float_to_integer", 75, float_list(),
              {
                  {'d', "cvt.rni.s32.f32 d, fa;", WANT(bits(u(to_integer<int32_t>(kNearest, i.fa, false))))},
                  {'d', "cvt.rzi.s32.f32 d, fa;", WANT(bits(u(to_integer<int32_t>(kZero, i.fa, false))))},
                  {'d', "cvt.rmi.s32.f32 d, fa;", WANT(bits(u(to_integer<int32_t>(kDown, i.fa, false))))},
                  {'d', "cvt.rpi.s32.f32 d, fa;", WANT(bits(u(to_integer<int32_t>(kUp, i.fa, false))))},
                  {'d', "cvt.rpi.ftz.s32.f32 d, fa;", WANT(bits(u(to_integer<int32_t>(kUp, flushed(i.fa), false))))},
                  {'d', "cvt.rzi.u32.f32 d, fa;", WANT(bits(to_integer<uint32_t>(kZero, i.fa, false)))},
                  {'d', "cvt.rni.u32.f32 d, fa;", WANT(bits(to_integer<uint32_t>(kNearest, i.fa, false)))},
                  {'D', "cvt.rzi.s64.f32 D, fa;", WANT(bits(U(to_integer<int64_t>(kZero, i.fa, false))))},
                  {'D', "cvt.rzi.u64.f32 D, fa;", WANT(bits(to_integer<uint64_t>(kZero, i.fa, false)))},
                  {'h', "cvt.rzi.s16.f32 h, fa;", WANT(bits(h(to_integer<int16_t>(kZero, i.fa, false))))},
                  {'h', "cvt.rni.u16.f32 h, fa;", WANT(bits(to_integer<uint16_t>(kNearest, i.fa, false)))},
                  {'d', "cvt.rzi.s8.f32 d, fa;", WANT(bits(u(to_integer<int8_t>(kZero, i.fa, false))))},
                  {'d', "cvt.rni.u8.f32 d, fa;", WANT(bits(to_integer<uint8_t>(kNearest, i.fa, false)))},
              }));
    std::vector<In> doubles_in;
    for (float x : kFloats) doubles_in.push_back(doubles(x));
    for (double x :
         {0.1, -2147483648.5, 2147483647.5, 4294967295.5, 9007199254740993.0, 1e300, 1e-310, 1.0000000596046448})
        doubles_in.push_back(doubles(x));
    all.push_back(lanes("convert_double_to_integer", 75, doubles_in,
                        {
                            {'d', "cvt.rzi.s32.f64 d, ea;", WANT(bits(u(to_integer<int32_t>(kZero, i.ea, true))))},
                            {'d', "cvt.rni.u32.f64 d, ea;", WANT(bits(to_integer<uint32_t>(kNearest, i.ea, true)))},
                            {'D', "cvt.rmi.s64.f64 D, ea;", WANT(bits(U(to_integer<int64_t>(kDown, i.ea, true))))},
                            {'D', "cvt.rzi.u64.f64 D, ea;", WANT(bits(to_integer<uint64_t>(kZero, i.ea, true)))},
                        }));
    all.push_back(lanes("convert_integer_to_float", 75,
                        list({0, 1, 3, 0xffffff, 0x1000001, 0x1000003, 0x7fffffff, 0x80000000, 0xffffffff, 0xffffff80,
                              2049, 2051, 65519, 65520, 0x20000000000001, 0x7fffffffffffffff, 0x8000000000000000,
                              0xffffffffffffffff, 0x123456789abcdef1}),
                        {
                            {'f', "cvt.rn.f32.s32 f, a;", WANT(exact(convert<float>(kNearest, i.sa)))},
                            {'f', "cvt.rz.f32.s32 f, a;", WANT(exact(convert<float>(kZero, i.sa)))},
                            {'f', "cvt.rp.f32.u32 f, a;", WANT(exact(convert<float>(kUp, double(i.a))))},
                            {'f', "cvt.rm.f32.u32 f, a;", WANT(exact(convert<float>(kDown, double(i.a))))},
                            {'f', "cvt.rn.f32.u32 f, a;", WANT(exact(convert<float>(kNearest, i.a)))},
                            {'f', "cvt.rn.f32.s64 f, A;", WANT(exact(convert<float>(kNearest, i.sA)))},
                            {'f', "cvt.rn.f32.u64 f, A;", WANT(exact(static_cast<float>(i.A)))},
                            {'f', "cvt.rn.f32.s16 f, ha;", WANT(exact(float(int16_t(i.ha))))},
                            {'f', "cvt.rn.f32.u8 f, a;", WANT(exact(float(i.a & 0xff)))},
                            {'e', "cvt.rn.f64.s32 e, a;", WANT(exact(double(i.sa)))},
                            {'e', "cvt.rn.f64.u64 e, A;", WANT(exact(static_cast<double>(i.A)))},
                            {'e', "cvt.rz.f64.s64 e, A;", WANT(exact(convert<double>(kZero, i.sA)))},
                            {'h', "cvt.rn.f16.s32 h, a;", WANT(half(i.sa))},
                            {'h', "cvt.rn.f16.u16 h, ha;", WANT(half(i.ha))},
                        }));
    all.push_back(
        lanes("convert_float_to_float", 75, float_list(),
              {
                  {'e', "cvt.f64.f32 e, fa;", WANT(exact(double(i.fa)))},
                  {'e', "cvt.ftz.f64.f32 e, fa;", WANT(exact(double(flushed(i.fa))))},
                  {'h', "cvt.rn.f16.f32 h, fa;", WANT(half(i.fa))},
                  {'h', "cvt.rz.f16.f32 h, fa;", WANT(half(i.fa, kZero))},
                  {'f', "cvt.rni.f32.f32 f, fa;", WANT(exact(integral(kNearest, i.fa)))},
                  {'f', "cvt.rzi.f32.f32 f, fa;", WANT(exact(integral(kZero, i.fa)))},
                  {'f', "cvt.rmi.f32.f32 f, fa;", WANT(exact(integral(kDown, i.fa)))},
                  {'f', "cvt.rpi.f32.f32 f, fa;", WANT(exact(integral(kUp, i.fa)))},
                  {'f', "cvt.rpi.ftz.f32.f32 f, fa;", WANT(exact(integral(kUp, flushed(i.fa))))},
                  {'f', "cvt.sat.f32.f32 f, fa;", WANT(i.fa == 0 ? either(0, 0x80000000) : exact(saturated(i.fa)))},
                  {'f', "cvt.ftz.sat.f32.f32 f, fa;",
                   WANT(flushed(i.fa) == 0 ? either(0, 0x80000000) : exact(saturated(flushed(i.fa))))},
              }));
    all.push_back(lanes("convert_double_to_float", 75, doubles_in,
                        {
                            {'f', "cvt.rn.f32.f64 f, ea;", WANT(exact(convert<float>(kNearest, i.ea)))},
                            {'f', "cvt.rz.f32.f64 f, ea;", WANT(exact(convert<float>(kZero, i.ea)))},
                            {'f', "cvt.rm.f32.f64 f, ea;", WANT(exact(convert<float>(kDown, i.ea)))},
                            {'f', "cvt.rp.f32.f64 f, ea;", WANT(exact(convert<float>(kUp, i.ea)))},
                            {'e', "cvt.rni.f64.f64 e, ea;", WANT(exact(integral(kNearest, i.ea)))},
                            {'e', "cvt.rzi.f64.f64 e, ea;", WANT(exact(integral(kZero, i.ea)))},
                            {'h', "cvt.rn.f16.f64 h, ea;", WANT(half(i.ea))},
                        }));
    std::vector<uint64_t> halves;
    for (uint64_t b = 0; b < 0x10000; b += 0x1ff) halves.push_back(b);
    for (uint64_t b : {0x0001, 0x03ff, 0x0400, 0x3c00, 0x7bff, 0x7c00, 0x7e00, 0x8001, 0xfbff, 0xfc00})
        halves.push_back(b);
    all.push_back(
        lanes("convert_half_to_others", 75, list(halves),
              {
                  {'f', "cvt.f32.f16 f, ha;", WANT(exact(float(f16_value(i.ha))))},
                  {'e', "cvt.f64.f16 e, ha;", WANT(exact(f16_value(i.ha)))},
                  {'d', "cvt.rni.s32.f16 d, ha;", WANT(bits(u(to_integer<int32_t>(kNearest, f16_value(i.ha), false))))},
                  {'h', "cvt.rmi.f16.f16 h, ha;", WANT(half(integral(kDown, f16_value(i.ha))))},
              }));
    all.push_back(lanes("convert_bfloat", 80, float_list(),
                        {
                            {'h', "cvt.rn.bf16.f32 h, fa;", WANT(bfloat(i.fa))},
                            {'h', "cvt.rz.bf16.f32 h, fa;", WANT(bfloat(i.fa, kZero))},
                            {'h', "cvt.rn.relu.bf16.f32 h, fa;", WANT(bfloat(positive(i.fa)))},
                            {'h', "cvt.rn.relu.f16.f32 h, fa;", WANT(half(positive(i.fa)))},
                        }));
    // The first source goes to the upper half.
    all.push_back(lanes(
        "convert_packed", 80, pairs_without_nan(),
        {
            {'d', "cvt.rn.f16x2.f32 d, fa, fb;", WANT(bits(pack(shortened(kHalf, i.fb), shortened(kHalf, i.fa))))},
            {'d', "cvt.rz.f16x2.f32 d, fa, fb;",
             WANT(bits(pack(shortened(kHalf, i.fb, kZero), shortened(kHalf, i.fa, kZero))))},
            {'d', "cvt.rn.bf16x2.f32 d, fa, fb;", WANT(bits(pack(shortened(kBfloat, i.fb), shortened(kBfloat, i.fa))))},
            {'d', "cvt.rn.relu.f16x2.f32 d, fa, fb;",
             WANT(bits(pack(shortened(kHalf, positive(i.fb)), shortened(kHalf, positive(i.fa)))))},
        }));
    std::vector<In> finite;
    for (const In &i : float_list())
        if (std::isfinite(i.fa)) finite.push_back(i);
    for (uint32_t b : {0x3f800fffu, 0x3f801000u, 0x3f801001u, 0x3f803000u, 0xbf801000u, 0x7f7fefffu})
        finite.emplace_back(b, 0, 0);
    // The 19 bits of tf32 (those below are left to the implementation): nearest, ties away from zero.
    all.push_back(
        lanes("convert_tf32", 80, finite,
              {{'d', "cvt.rna.tf32.f32 d, fa; and.b32 d, d, 0xffffe000;", WANT(bits((i.a + 0x1000) & 0xffffe000))}}));
    all.push_back(
        lanes("move_packs", 75, list(kIntegers),
              {
                  {'D', "mov.b64 {t, u}, A; mov.b64 D, {u, t};", WANT(bits(i.A >> 32 | i.A << 32))},
                  {'D', "mov.b64 D, {a, 7};", WANT(bits(i.a | uint64_t(7) << 32))},
                  {'d', "{ .reg .b16 x, y; mov.b32 {x, y}, a; mov.b32 d, {y, x}; }", WANT(bits(i.a >> 16 | i.a << 16))},
                  {'D', "{ .reg .b16 x, y, z, w; mov.b64 {x, y, z, w}, A; mov.b64 D, {w, z, y, x}; }",
                   WANT(bits(uint64_t(h(i.sA)) << 48 | uint64_t(h(i.sA >> 16)) << 32 | uint64_t(h(i.sA >> 32)) << 16 |
                             h(i.sA >> 48)))},
                  {'d', "mov.b64 {_, d}, A;", WANT(bits(i.A >> 32))},
                  {'f', "mov.b32 f, a;", WANT(bits(i.a))},
                  {'e', "mov.b64 e, A;", WANT(bits(i.A))},
                  {'d', "mov.u32 d, 0x80000000;", WANT(bits(0x80000000))},
              }));
    return all;
}

} // namespace isa
