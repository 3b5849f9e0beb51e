// rounding_test.cc: rounding against the compiler's own _Float16 and against double arithmetic.
#include "base/rounding.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

static float Float(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

// Rounding in double, from the definition: the nearest multiple of the spacing at |x|, ties to even.  |digits| is the
// precision with the implicit one, |min_exponent| the smallest normal number's, |largest| the largest finite one.
static double RoundByDefinition(float x, int digits, int min_exponent, double largest) {
    if (x == 0 || !std::isfinite(x)) return x;
    int exponent = std::max(std::ilogb(x), min_exponent);
    double spacing = std::ldexp(1.0, exponent - (digits - 1));
    double rounded = std::nearbyint(x / spacing) * spacing;
    return std::fabs(rounded) > largest ? std::copysign(INFINITY, x) : rounded;
}

// Every exponent and sign, with mantissas that lie on, next to and between the ties.
template <typename Check> static void ForInterestingFloats(Check check) {
    std::mt19937 random(3);
    for (uint32_t top = 0; top < 512; top++) {
        for (uint32_t kept : {0u, 1u, 2u, 0x155u, 0x200u, 0x3FEu, 0x3FFu})
            for (uint32_t dropped : {0u, 1u, 0xFFFu, 0x1000u, 0x1001u, 0x1FFFu})
                check(Float(top << 23 | kept << 13 | dropped));
        for (uint32_t kept : {0u, 1u, 2u, 0x3Fu, 0x7Eu, 0x7Fu})
            for (uint32_t dropped : {0u, 1u, 0x7FFFu, 0x8000u, 0x8001u, 0xFFFFu})
                check(Float(top << 23 | kept << 16 | dropped));
        for (int i = 0; i < 2000; i++) check(Float(top << 23 | (random() & 0x7FFFFF)));
    }
}

TEST(F16, EveryValueRoundTrips) {
    for (uint32_t h = 0; h < 0x10000; h++) {
        float x = amp_f16_to_f32(static_cast<uint16_t>(h));
        if ((h & 0x7FFF) > 0x7C00) {
            ASSERT_TRUE(std::isnan(x)) << h;
            ASSERT_GT(amp_f32_to_f16(x) & 0x7FFF, 0x7C00) << h;
            continue;
        }
        ASSERT_EQ(amp_f32_to_f16(x), h);
    }
}

#ifdef __FLT16_MAX__
static uint32_t Bits(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

TEST(F16, ValuesAreTheCompilers) {
    for (uint32_t h = 0; h < 0x10000; h++) {
        uint16_t half = static_cast<uint16_t>(h);
        _Float16 theirs;
        memcpy(&theirs, &half, sizeof half);
        float x = amp_f16_to_f32(half);
        if (std::isnan(x)) ASSERT_TRUE(static_cast<float>(theirs) != static_cast<float>(theirs));
        else ASSERT_EQ(Bits(x), Bits(static_cast<float>(theirs))) << h;
    }
}

TEST(F16, RoundingIsTheCompilers) {
    ForInterestingFloats([](float x) {
        _Float16 theirs = static_cast<_Float16>(x);
        uint16_t expected;
        memcpy(&expected, &theirs, sizeof expected);
        if (std::isnan(x)) ASSERT_GT(amp_f32_to_f16(x) & 0x7FFF, 0x7C00);
        else ASSERT_EQ(amp_f32_to_f16(x), expected) << x;
    });
}
#endif

TEST(F16, RoundingFollowsTheDefinition) {
    ForInterestingFloats([](float x) {
        if (std::isnan(x)) return;
        ASSERT_EQ(static_cast<double>(amp_round_f16(x)), RoundByDefinition(x, 11, -14, 65504)) << x;
        ASSERT_EQ(std::signbit(amp_round_f16(x)), std::signbit(x));
    });
}

TEST(F16, Edges) {
    EXPECT_EQ(amp_f32_to_f16(65504), 0x7BFF);
    EXPECT_EQ(amp_f32_to_f16(65519.996f), 0x7BFF);
    EXPECT_EQ(amp_f32_to_f16(65520), 0x7C00); /* the tie goes to the even one, infinity */
    EXPECT_EQ(amp_f32_to_f16(-INFINITY), 0xFC00);
    EXPECT_EQ(amp_f32_to_f16(0x1p-24f), 0x0001);
    EXPECT_EQ(amp_f32_to_f16(0x1p-25f), 0x0000);
    EXPECT_EQ(amp_f32_to_f16(0x1.000002p-25f), 0x0001);
    EXPECT_EQ(amp_f32_to_f16(-0.0f), 0x8000);
}

TEST(Bf16, EveryValueRoundTrips) {
    for (uint32_t h = 0; h < 0x10000; h++) {
        float x = amp_bf16_to_f32(static_cast<uint16_t>(h));
        if ((h & 0x7FFF) > 0x7F80) ASSERT_GT(amp_f32_to_bf16(x) & 0x7FFF, 0x7F80) << h;
        else ASSERT_EQ(amp_f32_to_bf16(x), h);
    }
}

TEST(Bf16, RoundingFollowsTheDefinition) {
    ForInterestingFloats([](float x) {
        if (std::isnan(x)) ASSERT_TRUE(std::isnan(amp_round_bf16(x)));
        else ASSERT_EQ(static_cast<double>(amp_round_bf16(x)), RoundByDefinition(x, 8, -126, 0x1.FEp127)) << x;
    });
}

TEST(Bf16, NanWhoseUpperHalfIsEmptyStaysNan) {
    EXPECT_TRUE(std::isnan(amp_round_bf16(Float(0x7F800001))));
    EXPECT_TRUE(std::isnan(amp_round_f16(Float(0xFF800001))));
    EXPECT_TRUE(std::isnan(amp_round_tf32(Float(0x7F800001))));
}

TEST(Tf32, RoundingFollowsTheDefinition) {
    ForInterestingFloats([](float x) {
        if (std::isnan(x)) ASSERT_TRUE(std::isnan(amp_round_tf32(x)));
        else ASSERT_EQ(static_cast<double>(amp_round_tf32(x)), RoundByDefinition(x, 11, -126, 0x1.FFCp127)) << x;
    });
}

// The numbers of a code from the definition: 2^(|exponent| - 1 + (code + 3) / 4), in quarters; no NaN.
static double NumberOf(int code, int exponent) {
    return code == 0 ? 0 : std::ldexp(1.0 + (code + 3) % 4 / 4.0, exponent - 1 + (code + 3) / 4);
}

TEST(F8, EveryCodeIsTheNumberThatIsDefined) {
    for (int code = 0; code < 127; code++) {
        EXPECT_EQ(double(amp_f8m_to_f32(uint8_t(code))), NumberOf(code, -26)) << code;
        EXPECT_EQ(double(amp_f8m_to_f32(uint8_t(code | 128))), -NumberOf(code, -26)) << code;
        EXPECT_EQ(std::signbit(amp_f8m_to_f32(uint8_t(code | 128))), true) << code;
    }
    for (int code = 0; code < 255; code++) EXPECT_EQ(double(amp_f8v_to_f32(uint8_t(code))), NumberOf(code, -52));
    EXPECT_EQ(amp_f8m_to_f32(1), 0x1p-26f);
    EXPECT_EQ(amp_f8m_to_f32(126), 40.0f);
    EXPECT_EQ(amp_f8v_to_f32(1), 0x1p-52f);
    EXPECT_EQ(amp_f8v_to_f32(254), 2560.0f);
    EXPECT_TRUE(std::isnan(amp_f8m_to_f32(127)) && std::isnan(amp_f8m_to_f32(255)) && std::isnan(amp_f8v_to_f32(255)));
}

TEST(F8, EveryCodeRoundTrips) {
    for (int code = 0; code < 256; code++) {
        EXPECT_EQ(amp_f32_to_f8m(amp_f8m_to_f32(uint8_t(code))), code);
        EXPECT_EQ(amp_f32_to_f8v(amp_f8v_to_f32(uint8_t(code))), code);
    }
}

// Against a search of all codes: the nearest, of two the even one; the largest for what is larger.
TEST(F8, RoundingIsToTheNearest) {
    std::vector<double> first, second;
    for (int code = 0; code < 127; code++) first.push_back(NumberOf(code, -26));
    for (int code = 0; code < 255; code++) second.push_back(NumberOf(code, -52));
    auto nearest = [](const std::vector<double> &numbers, double x) {
        size_t at = size_t(std::lower_bound(numbers.begin(), numbers.end(), x) - numbers.begin());
        if (at == numbers.size()) return numbers.back();
        if (at == 0) return numbers[0];
        const double below = x - numbers[at - 1], above = numbers[at] - x;
        const bool even_above = std::fmod(numbers[at] / std::ldexp(1.0, std::ilogb(numbers[at]) - 2), 2) == 0;
        return below < above || (below == above && (at == 1 || !even_above)) ? numbers[at - 1] : numbers[at];
    };
    ForInterestingFloats([&](float x) {
        const float m = amp_round_dtype(AMP_DT_F8M, x), v = amp_round_dtype(AMP_DT_F8V, x);
        if (std::isinf(x)) {
            ASSERT_TRUE(std::isnan(m) && (x < 0 ? v == 0 : std::isnan(v))) << x;
            return;
        }
        if (std::isnan(x)) {
            ASSERT_TRUE(std::isnan(m) && std::isnan(v));
            return;
        }
        ASSERT_EQ(double(m), std::copysign(nearest(first, std::fabs(double(x))), x)) << x;
        ASSERT_EQ(double(v), x <= 0 ? 0 : std::max(nearest(second, double(x)), 0x1p-52)) << x;
    });
}

TEST(RoundDtype, ChoosesByDtype) {
    const float x = 1.0f + 0x1p-9f + 0x1p-20f;
    EXPECT_EQ(amp_round_dtype(AMP_DT_F32, x), x);
    EXPECT_EQ(amp_round_dtype(AMP_DT_I32, x), x);
    EXPECT_EQ(amp_round_dtype(AMP_DT_F16, x), 1.0f + 0x1p-9f);
    EXPECT_EQ(amp_round_dtype(AMP_DT_TF32, x), 1.0f + 0x1p-9f);
    EXPECT_EQ(amp_round_dtype(AMP_DT_BF16, x), 1.0f);
}
