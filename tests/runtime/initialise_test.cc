// First values: their distributions, the words that they come from, and the same bits for ever.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "base/hash.h"
#include "base/random.h"
#include "tests/runtime/runtime_c.h"

namespace {

amp_model_state State(const char *init, std::vector<int64_t> dims, std::vector<double> args = {}) {
    amp_model_state s = {};
    s.name = "fc1.weight";
    s.init = init;
    s.rank = (uint32_t)dims.size();
    std::copy(dims.begin(), dims.end(), s.dims);
    std::copy(args.begin(), args.end(), s.init_args);
    s.init_arg_count = (uint32_t)args.size();
    return s;
}

std::vector<float> Draw(const amp_model_state &s, uint64_t seed = 7) {
    size_t count = 1;
    for (uint32_t i = 0; i < s.rank; i++) count *= (size_t)s.dims[i];
    std::vector<float> out(count);
    amp_error err = {};
    EXPECT_EQ(amp_initialiser_check(&s, &err), AMP_OK) << err.message;
    amp_initialise(&s, seed, out.data());
    return out;
}

struct Moments {
    double mean = 0, variance = 0, kurtosis = 0, low = 1e9, high = -1e9;
};

Moments MomentsOf(const std::vector<float> &v) {
    Moments m;
    for (float x : v)
        m.mean += x / (double)v.size(), m.low = std::min<double>(m.low, x), m.high = std::max<double>(m.high, x);
    double fourth = 0;
    for (float x : v) {
        double d = (x - m.mean) * (x - m.mean);
        m.variance += d / (double)v.size();
        fourth += d * d / (double)v.size();
    }
    m.kurtosis = fourth / (m.variance * m.variance);
    return m;
}

// Of n numbers the mean is off by less than 5 sigma / sqrt(n), the variance by less than 5 sqrt((kurtosis - 1) / n).
void ExpectDistribution(const amp_model_state &s, double mean, double variance, double kurtosis) {
    std::vector<float> v = Draw(s);
    Moments m = MomentsOf(v);
    double n = (double)v.size();
    EXPECT_NEAR(m.mean, mean, 5 * std::sqrt(variance / n)) << s.init;
    EXPECT_NEAR(m.variance / variance, 1, 5 * std::sqrt((kurtosis - 1) / n)) << s.init;
    EXPECT_NEAR(m.kurtosis, kurtosis, 0.1) << s.init;
}

TEST(Initialise, Distributions) {
    const double u = 9.0 / 5; // kurtosis of the uniform distribution
    ExpectDistribution(State("uniform", {200, 500}, {-1, 3}), 1, 16.0 / 12, u);
    ExpectDistribution(State("normal", {200, 500}, {0.5}), 0, 0.25, 3);
    ExpectDistribution(State("normal", {200, 500}, {2, -1}), -1, 4, 3);
    // Variance and kurtosis of a standard normal cut at two: 1 - 4 phi(2) / (2 Phi(2) - 1), and by integration.
    ExpectDistribution(State("trunc_normal", {200, 500}, {0.1}), 0, 0.01 * 0.7737413, 2.3655);
    // fan_in 300 * 3 * 3, fan_out 100 * 3 * 3
    ExpectDistribution(State("kaiming_uniform", {100, 300, 3, 3}), 0, 2.0 / 2700, u);
    ExpectDistribution(State("kaiming_uniform", {100, 300, 3, 3}, {std::sqrt(5.0)}), 0, 2.0 / 6 / 2700, u);
    ExpectDistribution(State("kaiming_normal", {100, 300, 3, 3}), 0, 2.0 / 2700, 3);
    ExpectDistribution(State("xavier_uniform", {100, 300, 3, 3}), 0, 2.0 / 3600, u);
    ExpectDistribution(State("xavier_normal", {100, 300, 3, 3}), 0, 2.0 / 3600, 3);
}

TEST(Initialise, Bounds) {
    Moments m = MomentsOf(Draw(State("trunc_normal", {1000, 1000}, {0.5})));
    EXPECT_GE(m.low, -1);
    EXPECT_LE(m.high, 1);
    EXPECT_GT(m.high, 0.99);
    m = MomentsOf(Draw(State("uniform", {1000, 1000}, {-2, 5})));
    EXPECT_GE(m.low, -2);
    EXPECT_LE(m.high, 5);
}

TEST(Initialise, Constants) {
    EXPECT_EQ(Draw(State(nullptr, {2})), (std::vector<float>{0, 0}));
    EXPECT_EQ(Draw(State("zeros", {2})), (std::vector<float>{0, 0}));
    EXPECT_EQ(Draw(State("ones", {2})), (std::vector<float>{1, 1}));
    EXPECT_EQ(Draw(State("constant", {}, {65536})), (std::vector<float>{65536}));
}

// The word of element e is Philox(seed; hash of the name, 0, 0, e / 4)[e % 4].
TEST(Initialise, UniformComesFromPhiloxByElement) {
    std::vector<float> v = Draw(State("uniform", {3, 3}, {0, 1}), 99);
    for (uint64_t e = 0; e < 9; e++)
        EXPECT_EQ(v[e], amp_random_unit(amp_random_u32(99, amp_hash32("fc1.weight"), 0, 0, e)));
}

// Against the distribution function of the C library: Phi(x) must give back the word.
TEST(Initialise, NormalIsTheInverseOfTheDistributionFunction) {
    std::vector<float> v = Draw(State("normal", {100000}, {1}), 3);
    for (uint64_t e = 0; e < v.size(); e++) {
        double p = ((double)amp_random_u32(3, amp_hash32("fc1.weight"), 0, 0, e) + 0.5) * 0x1p-32;
        double phi = 0.5 * std::erfc(-v[e] / std::sqrt(2.0)),
               density = std::exp(-0.5 * v[e] * v[e]) / 2.5066282746310002;
        ASSERT_NEAR(phi, p, std::abs(v[e]) * density * 0x1p-23 + 1e-12) << e;
    }
}

// Bits that must never change: a seed is part of a published result.
TEST(Initialise, GoldenBits) {
    const struct {
        amp_model_state state;
        float values[3];
    } golden[] = {
        {State("kaiming_uniform", {3, 4}, {std::sqrt(5.0)}), {-0x1.265cd4p-2f, 0x1.dd8e28p-3f, 0x1.872b78p-3f}},
        {State("normal", {3}, {0.02}), {-0x1.055fcep-6f, 0x1.97fp-7f, 0x1.46d236p-7f}},
        {State("trunc_normal", {3}, {0.02}), {-0x1.edb92ap-7f, 0x1.82fd1ap-7f, 0x1.36c05ep-7f}},
    };
    for (const auto &g : golden) {
        std::vector<float> v = Draw(g.state);
        EXPECT_EQ(memcmp(v.data(), g.values, sizeof g.values), 0)
            << g.state.init << std::hexfloat << ": " << v[0] << "f, " << v[1] << "f, " << v[2] << "f";
    }
}

TEST(Initialise, DependsOnSeedAndName) {
    amp_model_state s = State("normal", {8}, {1});
    std::vector<float> a = Draw(s, 1), b = Draw(s, 2);
    s.name = "fc2.weight";
    EXPECT_NE(a, b);
    EXPECT_NE(a, Draw(s, 1));
}

TEST(Initialise, Refuses) {
    amp_error err = {};
    const amp_model_state bad[] = {State("glorot", {2, 2}), State("constant", {2}), State("normal", {2}, {1, 2, 3}),
                                   State("kaiming_uniform", {2}), State("zeros", {2}, {1})};
    for (const amp_model_state &s : bad) EXPECT_NE(amp_initialiser_check(&s, &err), AMP_OK) << s.init;
}

} // namespace
