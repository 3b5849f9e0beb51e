// decimal_test.cc: doubles as text and back, checked against the C++ library's shortest conversion.
#include "base/text.h"

#include <gtest/gtest.h>

#include <charconv>
#include <clocale>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>

static std::string Format(double v) {
    char buffer[DECIMAL_MAX];
    return decimal_format(v, buffer);
}

static bool SameBits(double a, double b) { return memcmp(&a, &b, sizeof a) == 0; }

// Significant digits, zeros at either end left out.
static size_t CountDigits(std::string s) {
    s = s.substr(0, s.find('e'));
    std::string digits;
    for (char c : s)
        if (c >= '0' && c <= '9') digits += c;
    size_t first = digits.find_first_not_of('0'), last = digits.find_last_not_of('0');
    return first == std::string::npos ? 1 : last - first + 1;
}

static void CheckRoundTrip(double v) {
    std::string s = Format(v);
    double back = 0;
    ASSERT_TRUE(decimal_parse(s.data(), s.size(), &back)) << s;
    ASSERT_TRUE(SameBits(back, v)) << s;
    ASSERT_NE(s.find('.'), std::string::npos) << s;
    char shortest[64];
    auto end = std::to_chars(shortest, shortest + sizeof shortest, v, std::chars_format::scientific).ptr;
    ASSERT_EQ(CountDigits(s), CountDigits(std::string(shortest, end))) << s;
}

TEST(DecimalFormat, Table) {
    const struct {
        double v;
        const char *text;
    } table[] = {
        {0.0, "0.0"},
        {-0.0, "-0.0"},
        {1, "1.0"},
        {-1, "-1.0"},
        {0.001, "0.001"},
        {65536, "65536.0"},
        {1e-8, "1.0e-08"},
        {0.1, "0.1"},
        {0.0001, "0.0001"},
        {0.00001, "1.0e-05"},
        {123.456, "123.456"},
        {1e15, "1000000000000000.0"},
        {1e16, "1.0e+16"},
        {1.5e300, "1.5e+300"},
        {5e-324, "5.0e-324"},
        {-1.25e-7, "-1.25e-07"},
        {INFINITY, "inf"},
        {-INFINITY, "-inf"},
        {NAN, "nan"},
        {-NAN, "nan"},
        {1.7976931348623157e308, "1.7976931348623157e+308"},
        {-2.2250738585072014e-308, "-2.2250738585072014e-308"},
    };
    for (const auto &row : table) EXPECT_EQ(Format(row.v), row.text);
}

TEST(DecimalFormat, RandomBitPatternsRoundTripShortest) {
    std::mt19937_64 random(1);
    for (int i = 0; i < 100000; i++) {
        uint64_t bits = random();
        double v;
        memcpy(&v, &bits, sizeof v);
        if (std::isfinite(v)) CheckRoundTrip(v);
    }
}

TEST(DecimalFormat, PowersOfTwoAndFloatsRoundTripShortest) {
    for (int e = -1074; e <= 1023; e++) CheckRoundTrip(std::ldexp(1.0, e));
    for (int e = -1074; e <= 1023; e++) CheckRoundTrip(std::nextafter(std::ldexp(1.0, e), 0));
    std::mt19937 random(2);
    for (int i = 0; i < 10000; i++) CheckRoundTrip(static_cast<float>(random()) * 0x1p-16f);
}

TEST(DecimalParse, AcceptsAndRejects) {
    double v = 0;
    for (const char *good : {"0", "1", "-1", "+1", "1.", ".5", "1.5e3", "1E+3", "1e-03", "00012"})
        EXPECT_TRUE(decimal_parse(good, strlen(good), &v)) << good;
    for (const char *bad :
         {"", ".", "-", "e5", "1e", "1e+", "0x10", "inf", "nan", " 1", "1 ", "1,5", "1.5.2", "--1", "1_0"})
        EXPECT_FALSE(decimal_parse(bad, strlen(bad), &v)) << bad;
    EXPECT_FALSE(decimal_parse("1\0", 2, &v));
}

TEST(DecimalParse, RangeAndLength) {
    double v = 0;
    EXPECT_TRUE(decimal_parse("1e999", 5, &v));
    EXPECT_EQ(v, INFINITY);
    EXPECT_TRUE(decimal_parse("-1e-999", 7, &v));
    EXPECT_TRUE(SameBits(v, -0.0));
    std::string longest(DECIMAL_LONGEST, '1');
    EXPECT_TRUE(decimal_parse(longest.data(), longest.size(), &v));
    longest += '1';
    EXPECT_FALSE(decimal_parse(longest.data(), longest.size(), &v));
}

// An application may have set a locale whose decimal point is a comma; none may be installed where this test runs.
TEST(Decimal, DoesNotFollowTheLocale) {
    const char *set = nullptr;
    for (const char *name : {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "fr_FR.utf8"})
        if (!set) set = setlocale(LC_NUMERIC, name);
    if (!set) GTEST_SKIP() << "no locale with a decimal comma is installed";
    EXPECT_EQ(Format(1.5), "1.5");
    double v = 0;
    EXPECT_TRUE(decimal_parse("2.25", 4, &v));
    EXPECT_EQ(v, 2.25);
    EXPECT_STREQ(setlocale(LC_NUMERIC, nullptr), set);
    setlocale(LC_NUMERIC, "C");
}
