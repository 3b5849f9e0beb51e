// numbers.h: arithmetic that results are worked out with: IEEE 754 by the host's unit with its rounding modes, short
// formats by exact doubles.  Nothing of the interpreter.
#ifndef FAKECUDA_ISA_NUMBERS_H
#define FAKECUDA_ISA_NUMBERS_H

#include <cfenv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

namespace isa {

inline uint32_t bits_of(float x) {
    uint32_t b;
    memcpy(&b, &x, sizeof b);
    return b;
}
inline uint64_t bits_of(double x) {
    uint64_t b;
    memcpy(&b, &x, sizeof b);
    return b;
}
inline float float_of(uint32_t b) {
    float x;
    memcpy(&x, &b, sizeof x);
    return x;
}
inline double double_of(uint64_t b) {
    double x;
    memcpy(&x, &b, sizeof x);
    return x;
}

// Results of single operations under a rounding mode of <cfenv>.
template <class T, class F> T rounded(int mode, F operation) {
    fesetround(mode);
    volatile T result = operation();
    fesetround(FE_TONEAREST);
    return result;
}
template <class T> T add(int mode, T a, T b) {
    volatile T x = a, y = b;
    return rounded<T>(mode, [&] { return x + y; });
}
template <class T> T mul(int mode, T a, T b) {
    volatile T x = a, y = b;
    return rounded<T>(mode, [&] { return x * y; });
}
template <class T> T div(int mode, T a, T b) {
    volatile T x = a, y = b;
    return rounded<T>(mode, [&] { return x / y; });
}
template <class T> T fma(int mode, T a, T b, T c) {
    volatile T x = a, y = b, z = c;
    return rounded<T>(mode, [&] { return std::fma(x, y, z); });
}
template <class T> T sqrt(int mode, T a) {
    volatile T x = a;
    return rounded<T>(mode, [&] { return std::sqrt(x); });
}
template <class To, class From> To convert(int mode, From a) {
    volatile From x = a;
    return rounded<To>(mode, [&] { return static_cast<To>(x); });
}
template <class T> T integral(int mode, T a) {
    volatile T x = a;
    return rounded<T>(mode, [&] { return std::nearbyint(x); });
}

inline float flushed(float x) { return std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(0.f, x) : x; }
template <class T> T saturated(T x) { return !(x > 0) ? 0 : x > 1 ? 1 : x; } // NaN: +0

// A binary format with |digits| of precision and exponents from |least| to |most| (of 1.xx).
struct Short {
    int digits, least, most, exponent_bits;
};
constexpr Short kHalf = {11, -14, 15, 5}, kBfloat = {8, -126, 127, 8};

// The bits of the value nearest to |x| in the sense of |mode|; NaN: 0x7fff.
inline uint16_t shortened(const Short &s, double x, int mode = FE_TONEAREST) {
    if (std::isnan(x)) return 0x7fff;
    uint32_t sign = std::signbit(x) ? 0x8000 : 0, infinity = ((1u << s.exponent_bits) - 1) << (s.digits - 1);
    if (std::isinf(x)) return static_cast<uint16_t>(sign | infinity);
    int e = x == 0 ? s.least : std::ilogb(x);
    if (e < s.least) e = s.least;
    double unit = std::ldexp(1.0, e - (s.digits - 1));
    double steps = std::fabs(integral(mode, x / unit));
    double largest = std::ldexp(2.0, s.most) - std::ldexp(1.0, s.most - (s.digits - 1)); // finite
    if (steps * unit > largest) {
        bool to_infinity = mode == FE_TONEAREST || (mode == FE_UPWARD && !sign) || (mode == FE_DOWNWARD && sign);
        return static_cast<uint16_t>(sign | (to_infinity ? infinity : infinity - 1));
    }
    uint32_t field = static_cast<uint32_t>(steps) + (static_cast<uint32_t>(e - s.least) << (s.digits - 1));
    return static_cast<uint16_t>(sign | field); // the leading digit of a normal value is the first step of the exponent
}
inline double lengthened(const Short &s, uint16_t b) {
    uint32_t fraction_bits = static_cast<uint32_t>(s.digits - 1), exponent = (b & 0x7fffu) >> fraction_bits;
    uint32_t fraction = b & ((1u << fraction_bits) - 1);
    double x;
    if (exponent == (1u << s.exponent_bits) - 1)
        x = fraction ? std::numeric_limits<double>::quiet_NaN() : std::numeric_limits<double>::infinity();
    else if (exponent == 0) x = std::ldexp(fraction, s.least - (s.digits - 1));
    else x = std::ldexp(fraction + (1u << fraction_bits), s.least + static_cast<int>(exponent) - 1 - (s.digits - 1));
    return b & 0x8000 ? -x : x;
}
inline double f16_value(uint16_t b) { return lengthened(kHalf, b); }
inline double bf16_value(uint16_t b) { return lengthened(kBfloat, b); }

// a * b + c for products that are exact, rounded to odd: rounding that again to a short format is rounding once (Boldo
// and Melquiond).
inline double odd_fma(double a, double b, double c) {
    double p = a * b, s = p + c;
    if (!std::isfinite(s)) return s;
    double back = s - p, error = (p - (s - back)) + (c - back);
    if (error == 0 || (bits_of(s) & 1)) return s;
    return std::nextafter(s, error > 0 ? std::numeric_limits<double>::infinity()
                                       : -std::numeric_limits<double>::infinity());
}

} // namespace isa

#endif
