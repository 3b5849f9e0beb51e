// Stochastic rounding as it is compiled: unbiased, to a neighbour, the same for the same key, iteration and element.
#include "base/hash.h"
#include "base/random.h"
#include "base/rounding.h"
#include "tests/codegen/core_model.h"

namespace {

constexpr int64_t kRows = 600, kCols = 64;
constexpr uint64_t kSeed = 123456789012345;

class StochasticTest : public CoreModelTest {
  protected:
    StochasticTest() { every_isa_ = true; }

    // Rows of one x, rounded with each of the four words of a Philox.
    static std::string Rounded(const std::string &type) {
        std::string ops, results;
        for (int i = 0; i < 4; i++) {
            const std::string w = std::to_string(i);
            ops += "  %u" + w + " = random(%x, %seed, %iteration; key = \"w\", word = " + w + ") : f32[N, 64]\n  %r" +
                   w + " = dithered_cast(%x, %u" + w + ") : " + type + "[N, 64]\n  %y" + w + " = cast(%r" + w +
                   ") : f32[N, 64]\n";
            results += "  result y" + w + " = %y" + w + "\n  result u" + w + " = %u" + w + "\n";
        }
        return Text("  input %x : f32[N, 64]\n  state %seed : i64\n  state %iteration : i64\n" + ops + results,
                    "state %seed : i64 counter\nstate %iteration : i64 counter\n");
    }

    // y0, .., u0, .. for rows of |x|, of the best instruction set that is here.
    static Values Run(const LoadedModel &model, const std::vector<double> &x, double iteration = 7) {
        int isa = AMP_ISA_COUNT - 1;
        while (!HasIsa(isa)) isa--;
        ProgramRun run(model, "infer", isa, kRows);
        std::vector<double> rows(kRows * kCols);
        for (size_t i = 0; i < rows.size(); i++) rows[i] = x[i % x.size()];
        run.Set({{"x", rows}, {"seed", {double(kSeed)}}, {"iteration", {iteration}}});
        run.Run();
        Values v;
        for (const char *name : {"y0", "y1", "y2", "y3", "u0", "u1", "u2", "u3"}) v[name] = run.Get(name);
        return v;
    }

    std::unique_ptr<LoadedModel> Model(const std::string &type) {
        const Module *m = Planned(Rounded(type), false, false);
        return m ? Compile(m, kUnoptimised, HasIsa(AMP_ISA_V3) ? "native" : nullptr) : nullptr;
    }
};

struct Numbers {
    const char *type;
    double x, below, above; // the neighbours; two zeros: not told
};

// Between neighbours at 1, at other sizes and signs, in the subnormals.
const Numbers kNumbers[] = {
    {"bf16", 1.003, 1.0, 1.0078125},
    {"bf16", -1.003, -1.0, -1.0078125},
    {"bf16", 1.00779, 1.0, 1.0078125},
    {"bf16", 3.1e-39, 0, 0},
    {"bf16", 1e30, 0, 0},
    {"f16", 1.0003, 1.0, 1.0009765625},
    {"f16", -1000.3, -1000.0, -1000.5},
    {"f16", 1e-7, 0x1p-24, 2 * 0x1p-24},
    {"f16", -1e-8, -0.0, -0x1p-24},
    {"f16", 1e-10, 0.0, 0x1p-24},
    {"f8m", 1.07, 1.0, 1.25},
    {"f8m", -3e-6, -0x1.8p-19, -0x1.cp-19},
    {"f8m", 1e-8, 0.0, 0x1p-26},
    {"f8m", -3e-9, 0.0, -0x1p-26},
    {"f8m", 39.0, 32.0, 40.0},
    {"f8v", 1.26, 1.25, 1.5},
    {"f8v", 1e-15, 0x1p-50, 0x1.4p-50},
    {"f8v", 2.3e-16, 0x1p-52, 0x1.4p-52},
    {"f8v", 2333.0, 2048.0, 2560.0},
};

// The mean of many is x, within five standard deviations of what such a mean has.
TEST_F(StochasticTest, MeansAreTheNumbers) {
    for (const std::string type : {"bf16", "f16", "f8m", "f8v"}) {
        auto model = Model(type);
        ASSERT_NE(model, nullptr);
        for (const Numbers &c : kNumbers) {
            if (type != c.type) continue;
            const double x = double(float(c.x));
            const Values got = Run(*model, {x});
            for (const char *name : {"y0", "y1", "y2", "y3"}) {
                const std::vector<double> &y = got.at(name);
                const double low = *std::min_element(y.begin(), y.end()), high = *std::max_element(y.begin(), y.end());
                if (c.above != 0) {
                    EXPECT_EQ(std::min(c.below, c.above), low) << c.x;
                    EXPECT_EQ(std::max(c.below, c.above), high) << c.x;
                }
                const double share = (x - low) / (high - low);
                double sum = 0;
                for (double one : y) {
                    ASSERT_TRUE(one == low || one == high) << c.x << " became " << one;
                    sum += (one - low) / (high - low);
                }
                const double bound = 5 * std::sqrt(share * (1 - share) / double(y.size()));
                EXPECT_NEAR(sum / double(y.size()), share, bound) << type << " " << c.x << " " << name;
            }
        }
    }
}

// What the type holds stays, and so do infinities and NaN; what is larger than all its numbers becomes the largest.
TEST_F(StochasticTest, WhatNeedsNoRoundingStays) {
    struct {
        const char *type;
        double largest, beyond;
    } const types[] = {{"bf16", 0x1.FEp127, 0x1.FFp127}, {"f16", 65504.0, 1e6}};
    for (const auto &t : types) {
        auto model = Model(t.type);
        ASSERT_NE(model, nullptr);
        const std::vector<double> kept = {0.0,      -0.0,      1.0,        -1.5,     0.15625,  0x1p-14,
                                          -0x1p-24, t.largest, -t.largest, INFINITY, -INFINITY};
        for (size_t i = 0; i < kept.size(); i++) {
            const Values got = Run(*model, {kept[i]});
            for (double y : got.at("y1")) {
                ASSERT_EQ(y, kept[i]) << t.type;
                ASSERT_EQ(std::signbit(y), std::signbit(kept[i])) << t.type;
            }
        }
        const Values broken = Run(*model, {NAN}), beyond = Run(*model, {t.beyond, -t.beyond});
        for (double y : broken.at("y2")) ASSERT_TRUE(std::isnan(y)) << t.type;
        for (size_t i = 0; i < beyond.at("y0").size(); i++)
            ASSERT_EQ(beyond.at("y0")[i], i % 2 ? -t.largest : t.largest) << t.type;
    }
}

// All numbers of 8 bits stay; infinities are not among them; a second moment that is not zero stays so.
TEST_F(StochasticTest, NumbersOfEightBitsStay) {
    std::vector<double> first, second;
    for (int code = 0; code < 256; code++) {
        if (code % 128 != 127) first.push_back(double(amp_f8m_to_f32(uint8_t(code))));
        if (code != 255) second.push_back(double(amp_f8v_to_f32(uint8_t(code))));
    }
    auto of_first = Model("f8m"), of_second = Model("f8v");
    ASSERT_TRUE(of_first && of_second);
    const Values m = Run(*of_first, first), v = Run(*of_second, second);
    for (size_t i = 0; i < size_t(kRows * kCols); i++) {
        ASSERT_EQ(m.at("y1")[i], first[i % first.size()]);
        ASSERT_EQ(std::signbit(m.at("y1")[i]), std::signbit(first[i % first.size()]));
        ASSERT_EQ(v.at("y2")[i], second[i % second.size()]);
    }
    const std::vector<double> x = {1e6, -1e6, INFINITY, NAN, 1e-30, -1e-30};
    const Values beyond = Run(*of_first, x), positive = Run(*of_second, x);
    const double largest[] = {40, -40}, of_v[] = {2560, 0};
    for (size_t i = 0; i < size_t(kRows * kCols); i++) {
        const double got = beyond.at("y0")[i], squares = positive.at("y0")[i];
        if (i % 6 < 2) ASSERT_TRUE(got == largest[i % 6] && squares == of_v[i % 6]) << got << " " << squares;
        else if (i % 6 < 4) ASSERT_TRUE(std::isnan(got) && std::isnan(squares)) << got << " " << squares;
        else ASSERT_TRUE(got == 0 && squares == (i % 6 == 4 ? 0x1p-52 : 0.0)) << got << " " << squares;
    }
}

TEST_F(StochasticTest, DrawsAreWordsOfPhilox) {
    auto model = Model("bf16");
    ASSERT_NE(model, nullptr);
    const Values got = Run(*model, {1.003}, 12);
    for (int word = 0; word < 4; word++) {
        const std::vector<double> &u = got.at("u" + std::to_string(word));
        for (size_t i = 0; i < u.size(); i++)
            ASSERT_EQ(u[i],
                      double(amp_random_unit(amp_random_u32(kSeed, amp_hash32("w"), 12, 0, 4 * i + size_t(word)))))
                << word << " " << i;
    }
}

TEST_F(StochasticTest, IterationsDifferAndRunsDoNot) {
    auto model = Model("bf16");
    ASSERT_NE(model, nullptr);
    const Values first = Run(*model, {1.003}, 1), again = Run(*model, {1.003}, 1), next = Run(*model, {1.003}, 2);
    EXPECT_EQ(first.at("y0"), again.at("y0"));
    EXPECT_NE(first.at("y0"), next.at("y0"));
    EXPECT_NE(first.at("y0"), first.at("y1")) << "words are independent";
}

// With and without fusion and layouts, on every instruction set.
TEST_F(StochasticTest, EveryVariantHasTheSameBits) { Check(Rounded("bf16"), {1, 33}, 0); }
TEST_F(StochasticTest, EveryVariantHasTheSameBitsInF16) { Check(Rounded("f16"), {5}, 0); }
TEST_F(StochasticTest, EveryVariantHasTheSameBitsInF8) {
    Check(Rounded("f8m"), {1, 33}, 0);
    Check(Rounded("f8v"), {5}, 0);
}

} // namespace
