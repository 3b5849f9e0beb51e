// approximate.cc: instructions whose error the document bounds.
#include "fakecuda/isa/lanes.h"

namespace isa {
namespace {

// |relative| and |absolute| add up: one of them is 0 in most bounds.
Want within(double value, double relative, double absolute = 0) {
    if (std::isnan(value)) return nan(Format::kF32);
    float nearest = static_cast<float>(value);
    if (std::isinf(nearest) || value == 0) return exact(nearest);
    return near(Format::kF32, value, std::fabs(value) * relative + absolute);
}
// |n| units in the last place of f32, and half a unit for the rounding of the reference.
Want units(double value, double n) {
    if (std::isnan(value)) return nan(Format::kF32);
    float nearest = static_cast<float>(value);
    if (std::isinf(nearest) || value == 0) return exact(nearest);
    double unit = std::ldexp(1.0, std::max(std::ilogb(value), -126) - 23);
    return near(Format::kF32, value, (n + 0.5) * unit);
}
double flushed_result(double x) { return std::fabs(x) < 0x1p-126 ? std::copysign(0.0, x) : x; }

// Results near the edges of the range are left out: there flushing and overflow are a matter of one unit.
std::vector<In> positive() {
    std::vector<In> all;
    for (float x : {1.f, 2.f, 3.f, 0.1f, 0.5f, 0.75f, 1.5f, 0.99999f, 1.00001f, 7.25f, 1e-10f, 1e10f, 1e-30f, 1e30f,
                    123456.f, 3.14159274f, INFINITY, 0.f})
        for (float y : {1.f, 3.f, 0.3f, 1e5f, 1e-5f}) all.push_back(floats(x, y));
    return all;
}
std::vector<In> all_signs() {
    std::vector<In> all;
    for (const In &i : positive()) {
        all.push_back(i);
        all.push_back(floats(-i.fa, i.fb));
    }
    all.push_back(floats(NAN, 1));
    return all;
}
std::vector<In> angles() {
    std::vector<In> all;
    for (int k = -40; k <= 40; k++) all.push_back(floats(static_cast<float>(k) * 0.157f));
    for (float x : {0.f, -0.f, 1e-5f, INFINITY, -INFINITY, NAN}) all.push_back(floats(x));
    return all;
}
std::vector<In> exponents() {
    std::vector<In> all;
    for (int k = -60; k <= 60; k++) all.push_back(floats(static_cast<float>(k) * 2.03f, 0));
    for (float x : {0.f, -0.f, 1e-20f, INFINITY, -INFINITY, NAN, 200.f, -200.f}) all.push_back(floats(x));
    return all;
}

Want logarithm(float x) {
    double y = std::log2(static_cast<double>(x));
    if (std::isinf(y) || std::isnan(y)) return exact(static_cast<float>(y));
    return near(Format::kF32, y, x > 0.5 && x < 2 ? 0x1p-22 : std::fabs(y) * 0x1p-22);
}

} // namespace

std::vector<Case> approximate_cases() {
    std::vector<Case> all;
    all.push_back(lanes("approximate_division", 75, all_signs(),
                        {
                            {'f', "rcp.approx.f32 f, fa;", WANT(units(1 / double(i.fa), 1))},
                            {'f', "rcp.approx.ftz.f32 f, fa;", WANT(units(1 / double(i.fa), 1))},
                            {'f', "div.approx.f32 f, fa, fb;", WANT(units(double(i.fa) / i.fb, 2))},
                            {'f', "div.approx.ftz.f32 f, fa, fb;", WANT(units(double(i.fa) / i.fb, 2))},
                            {'f', "div.full.f32 f, fa, fb;", WANT(units(double(i.fa) / i.fb, 2))},
                        }));
    all.push_back(
        lanes("approximate_roots", 75, positive(),
              {
                  {'f', "sqrt.approx.f32 f, fa;", WANT(within(std::sqrt(double(i.fa)), 0x1p-23))},
                  {'f', "sqrt.approx.ftz.f32 f, fa;", WANT(within(std::sqrt(double(i.fa)), 0x1p-23))},
                  {'f', "rsqrt.approx.f32 f, fa;", WANT(within(1 / std::sqrt(double(i.fa)), std::exp2(-22.9)))},
                  {'f', "rsqrt.approx.ftz.f32 f, fa;", WANT(within(1 / std::sqrt(double(i.fa)), std::exp2(-22.9)))},
              }));
    all.push_back(lanes("approximate_roots_special", 75, {floats(-1.f), floats(-0.f), floats(NAN), floats(-INFINITY)},
                        {
                            {'f', "sqrt.approx.f32 f, fa;", WANT(i.fa == 0 ? exact(-0.f) : nan(Format::kF32))},
                            {'f', "rsqrt.approx.f32 f, fa;", WANT(i.fa == 0 ? exact(-INFINITY) : nan(Format::kF32))},
                            {'f', "lg2.approx.f32 f, fa;", WANT(i.fa == 0 ? exact(-INFINITY) : nan(Format::kF32))},
                        }));
    all.push_back(lanes("approximate_powers", 75, exponents(),
                        {
                            {'f', "ex2.approx.f32 f, fa;", WANT(units(std::exp2(double(i.fa)), 2))},
                            {'f', "ex2.approx.ftz.f32 f, fa;", WANT(units(flushed_result(std::exp2(double(i.fa))), 2))},
                        }));
    all.push_back(lanes("approximate_logarithm", 75, positive(),
                        {{'f', "lg2.approx.f32 f, fa;", WANT(logarithm(i.fa))},
                         {'f', "lg2.approx.ftz.f32 f, fa;", WANT(logarithm(i.fa))}}));
    all.push_back(lanes("approximate_circle", 75, angles(),
                        {
                            {'f', "sin.approx.f32 f, fa;",
                             WANT(std::isfinite(i.fa) ? near(Format::kF32, std::sin(double(i.fa)), std::exp2(-20.5))
                                                      : nan(Format::kF32))},
                            {'f', "cos.approx.ftz.f32 f, fa;",
                             WANT(std::isfinite(i.fa) ? near(Format::kF32, std::cos(double(i.fa)), std::exp2(-20.5))
                                                      : nan(Format::kF32))},
                        }));
    all.push_back(
        lanes("approximate_tanh", 75, angles(),
              {
                  {'f', "tanh.approx.f32 f, fa;",
                   WANT(std::isinf(i.fa) ? exact(std::copysign(1.f, i.fa)) : within(std::tanh(double(i.fa)), 0x1p-11))},
                  {'h', "cvt.rn.f16.f32 h, fa; tanh.approx.f16 h, h;",
                   WANT(std::isnan(i.fa)
                            ? nan(Format::kF16)
                            : near(Format::kF16, std::tanh(f16_value(shortened(kHalf, i.fa))), std::exp2(-10.987)))},
              }));
    // Subnormal operands count with their value, or with .ftz as zeros of their sign.
    all.push_back(
        lanes("approximate_subnormal", 75, {floats(1.1e-38f, 3), floats(5e-39f, 0.5f), floats(1.05e-38f, 1)},
              {
                  {'f', "rcp.approx.f32 f, fa;", WANT(units(1 / double(i.fa), 1))},
                  {'f', "rcp.approx.ftz.f32 f, fa;", WANT(exact(INFINITY))},
                  {'f', "neg.f32 f, fa; rcp.approx.ftz.f32 f, f;", WANT(exact(-INFINITY))},
                  {'f', "sqrt.approx.f32 f, fa;", WANT(within(std::sqrt(double(i.fa)), 0x1p-23))},
                  {'f', "sqrt.approx.ftz.f32 f, fa;", WANT(exact(0.f))},
                  {'f', "rsqrt.approx.f32 f, fa;", WANT(within(1 / std::sqrt(double(i.fa)), std::exp2(-22.9)))},
                  {'f', "rsqrt.approx.ftz.f32 f, fa;", WANT(exact(INFINITY))},
                  {'f', "lg2.approx.f32 f, fa;", WANT(logarithm(i.fa))},
                  {'f', "lg2.approx.ftz.f32 f, fa;", WANT(exact(-INFINITY))},
                  {'f', "div.approx.ftz.f32 f, fb, fa;", WANT(exact(INFINITY))},
                  {'f', "div.full.ftz.f32 f, fa, fb;", WANT(exact(0.f))},
                  {'f', "ex2.approx.f32 f, 0fC2FD0000;", WANT(units(std::exp2(-126.5), 2))},
                  {'f', "ex2.approx.ftz.f32 f, 0fC2FD0000;", WANT(exact(0.f))},
              }));
    return all;
}

} // namespace isa
