// float.cc: IEEE arithmetic on f32 and f64 in all rounding modes, flushing, saturation, minimum and maximum, signs,
// classes.
#include "fakecuda/isa/lanes.h"

namespace isa {
namespace {

constexpr int kNearest = FE_TONEAREST, kZero = FE_TOWARDZERO, kUp = FE_UPWARD, kDown = FE_DOWNWARD;
float f(float x) { return flushed(x); }

// Clamped to [0, 1]; of -0 the document does not say which zero.
Want clamped(float x) { return x == 0 ? either(0, 0x80000000) : exact(saturated(x)); }

// NaN gives way to a number; -0 is less than +0.
template <class T> T least(T a, T b) {
    if (std::isnan(a)) return b;
    if (std::isnan(b)) return a;
    if (a == b) return std::signbit(a) ? a : b;
    return a < b ? a : b;
}
template <class T> T greatest(T a, T b) { return -least(-a, -b); }
template <class T> T least_or_nan(T a, T b) { return std::isnan(a) || std::isnan(b) ? T(NAN) : least(a, b); }

const float kThird = 1.f / 3;
const std::vector<float> kValues = {0.f,      -0.f,   1.f,        -1.f,     kThird,    1.0000001f,
                                    3.f,      -2.5f,  16777216.f, 1e-20f,   3e38f,     -3e38f,
                                    1.2e-38f, 1e-39f, -3e-45f,    INFINITY, -INFINITY, NAN};

} // namespace

std::vector<Case> float_cases() {
    std::vector<Case> all;
    const std::vector<In> two = float_pairs(kValues);
    all.push_back(lanes("float_add_multiply", 75, two,
                        {
                            {'f', "add.f32 f, fa, fb;", WANT(exact(add(kNearest, i.fa, i.fb)))},
                            {'f', "add.rn.f32 f, fa, fb;", WANT(exact(add(kNearest, i.fa, i.fb)))},
                            {'f', "add.rz.f32 f, fa, fb;", WANT(exact(add(kZero, i.fa, i.fb)))},
                            {'f', "add.rm.f32 f, fa, fb;", WANT(exact(add(kDown, i.fa, i.fb)))},
                            {'f', "add.rp.f32 f, fa, fb;", WANT(exact(add(kUp, i.fa, i.fb)))},
                            {'f', "add.sat.f32 f, fa, fb;", WANT(clamped(add(kNearest, i.fa, i.fb)))},
                            {'f', "add.ftz.f32 f, fa, fb;", WANT(exact(f(add(kNearest, f(i.fa), f(i.fb)))))},
                            {'f', "sub.rn.f32 f, fa, fb;", WANT(exact(add(kNearest, i.fa, -i.fb)))},
                            {'f', "sub.rm.f32 f, fa, fb;", WANT(exact(add(kDown, i.fa, -i.fb)))},
                            {'f', "mul.rn.f32 f, fa, fb;", WANT(exact(mul(kNearest, i.fa, i.fb)))},
                            {'f', "mul.rz.f32 f, fa, fb;", WANT(exact(mul(kZero, i.fa, i.fb)))},
                            {'f', "mul.rp.f32 f, fa, fb;", WANT(exact(mul(kUp, i.fa, i.fb)))},
                            {'f', "mul.ftz.f32 f, fa, fb;", WANT(exact(f(mul(kNearest, f(i.fa), f(i.fb)))))},
                            {'f', "mul.sat.f32 f, fa, fb;", WANT(clamped(mul(kNearest, i.fa, i.fb)))},
                            {'f', "mul.f32 f, fa, 0fBF000000;", WANT(exact(mul(kNearest, i.fa, -0.5f)))},
                        }));
    all.push_back(
        lanes("float_fma", 75, float_pairs(kValues, {1.f, -kThird, 1e-20f, -3e38f, INFINITY}),
              {
                  {'f', "fma.rn.f32 f, fa, fb, fc;", WANT(exact(fma(kNearest, i.fa, i.fb, i.fc)))},
                  {'f', "fma.rz.f32 f, fa, fb, fc;", WANT(exact(fma(kZero, i.fa, i.fb, i.fc)))},
                  {'f', "fma.rm.f32 f, fa, fb, fc;", WANT(exact(fma(kDown, i.fa, i.fb, i.fc)))},
                  {'f', "fma.rp.f32 f, fa, fb, fc;", WANT(exact(fma(kUp, i.fa, i.fb, i.fc)))},
                  {'f', "fma.rn.ftz.f32 f, fa, fb, fc;", WANT(exact(f(fma(kNearest, f(i.fa), f(i.fb), f(i.fc)))))},
                  {'f', "fma.rn.sat.f32 f, fa, fb, fc;", WANT(clamped(fma(kNearest, i.fa, i.fb, i.fc)))},
                  {'f', "mad.rn.f32 f, fa, fb, fc;", WANT(exact(fma(kNearest, i.fa, i.fb, i.fc)))},
              }));
    all.push_back(lanes("float_divide_root", 75, two,
                        {
                            {'f', "div.rn.f32 f, fa, fb;", WANT(exact(div(kNearest, i.fa, i.fb)))},
                            {'f', "div.rz.f32 f, fa, fb;", WANT(exact(div(kZero, i.fa, i.fb)))},
                            {'f', "div.rm.f32 f, fa, fb;", WANT(exact(div(kDown, i.fa, i.fb)))},
                            {'f', "div.rp.f32 f, fa, fb;", WANT(exact(div(kUp, i.fa, i.fb)))},
                            {'f', "div.rn.ftz.f32 f, fa, fb;", WANT(exact(f(div(kNearest, f(i.fa), f(i.fb)))))},
                            {'f', "rcp.rn.f32 f, fa;", WANT(exact(div(kNearest, 1.f, i.fa)))},
                            {'f', "rcp.rz.f32 f, fa;", WANT(exact(div(kZero, 1.f, i.fa)))},
                            {'f', "sqrt.rn.f32 f, fa;", WANT(exact(isa::sqrt(kNearest, i.fa)))},
                            {'f', "sqrt.rp.f32 f, fa;", WANT(exact(isa::sqrt(kUp, i.fa)))},
                            {'f', "sqrt.rn.ftz.f32 f, fa;", WANT(exact(isa::sqrt(kNearest, f(i.fa))))},
                        }));
    std::vector<double> values(kValues.begin(), kValues.end());
    for (double x : {0.1, 1e300, -1e-300, 5e-324, 1.0000000000000002}) values.push_back(x);
    all.push_back(lanes("double_arithmetic", 75, double_pairs(values, {-0.1}),
                        {
                            {'e', "add.f64 e, ea, eb;", WANT(exact(add(kNearest, i.ea, i.eb)))},
                            {'e', "add.rm.f64 e, ea, eb;", WANT(exact(add(kDown, i.ea, i.eb)))},
                            {'e', "sub.rn.f64 e, ea, eb;", WANT(exact(add(kNearest, i.ea, -i.eb)))},
                            {'e', "mul.rn.f64 e, ea, eb;", WANT(exact(mul(kNearest, i.ea, i.eb)))},
                            {'e', "mul.rz.f64 e, ea, eb;", WANT(exact(mul(kZero, i.ea, i.eb)))},
                            {'e', "fma.rn.f64 e, ea, eb, ec;", WANT(exact(fma(kNearest, i.ea, i.eb, i.ec)))},
                            {'e', "fma.rp.f64 e, ea, eb, ec;", WANT(exact(fma(kUp, i.ea, i.eb, i.ec)))},
                            {'e', "div.rn.f64 e, ea, eb;", WANT(exact(div(kNearest, i.ea, i.eb)))},
                            {'e', "div.rp.f64 e, ea, eb;", WANT(exact(div(kUp, i.ea, i.eb)))},
                            {'e', "rcp.rn.f64 e, ea;", WANT(exact(div(kNearest, 1., i.ea)))},
                            {'e', "sqrt.rn.f64 e, ea;", WANT(exact(isa::sqrt(kNearest, i.ea)))},
                            {'e', "min.f64 e, ea, eb;", WANT(exact(least(i.ea, i.eb)))},
                            {'e', "max.f64 e, ea, eb;", WANT(exact(greatest(i.ea, i.eb)))},
                            {'e', "neg.f64 e, ea;", WANT(exact(-i.ea))},
                            {'e', "abs.f64 e, ea;", WANT(exact(std::fabs(i.ea)))},
                            {'e', "copysign.f64 e, ea, eb;", WANT(exact(std::copysign(i.eb, i.ea)))},
                        }));
    all.push_back(lanes("float_least_greatest", 75, two,
                        {
                            {'f', "min.f32 f, fa, fb;", WANT(exact(least(i.fa, i.fb)))},
                            {'f', "max.f32 f, fa, fb;", WANT(exact(greatest(i.fa, i.fb)))},
                            {'f', "min.ftz.f32 f, fa, fb;", WANT(exact(least(f(i.fa), f(i.fb))))},
                            {'f', "max.ftz.f32 f, fa, fb;", WANT(exact(greatest(f(i.fa), f(i.fb))))},
                        }));
    all.push_back(lanes("float_least_greatest_nan", 80, two,
                        {
                            {'f', "min.NaN.f32 f, fa, fb;", WANT(exact(least_or_nan(i.fa, i.fb)))},
                            {'f', "max.NaN.f32 f, fa, fb;", WANT(exact(-least_or_nan(-i.fa, -i.fb)))},
                        }));
    // The sign of a NaN may be dropped.
    std::vector<In> numbers;
    for (const In &i : two)
        if (!std::isnan(i.fa) && !std::isnan(i.fb)) numbers.push_back(i);
    all.push_back(
        lanes("float_signs_classes", 75, numbers,
              {
                  {'f', "neg.f32 f, fa;", WANT(exact(-i.fa))},
                  {'f', "neg.ftz.f32 f, fa;", WANT(exact(-f(i.fa)))},
                  {'f', "abs.f32 f, fa;", WANT(exact(std::fabs(i.fa)))},
                  {'f', "abs.ftz.f32 f, fa;", WANT(exact(std::fabs(f(i.fa))))},
                  {'f', "copysign.f32 f, fa, fb;", WANT(exact(std::copysign(i.fb, i.fa)))}, // the sign of the first
                  {'p', "testp.finite.f32 p, fa;", WANT(bits(std::isfinite(i.fa)))},
                  {'p', "testp.infinite.f32 p, fa;", WANT(bits(std::isinf(i.fa)))},
                  // both zeros count as normal numbers
                  {'p', "testp.normal.f32 p, fa;", WANT(bits(std::isnormal(i.fa) || i.fa == 0))},
                  {'p', "testp.subnormal.f32 p, fa;", WANT(bits(std::fpclassify(i.fa) == FP_SUBNORMAL))},
              }));
    all.push_back(lanes("float_number_tests", 75, float_pairs(kValues, {0}),
                        {
                            {'p', "testp.number.f32 p, fa;", WANT(bits(!std::isnan(i.fa)))},
                            {'p', "testp.notanumber.f32 p, fa;", WANT(bits(std::isnan(i.fa)))},
                            {'p', "testp.finite.f32 p, fb;", WANT(bits(std::isfinite(i.fb)))},
                        }));
    return all;
}

} // namespace isa
