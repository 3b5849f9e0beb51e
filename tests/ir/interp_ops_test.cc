// The interpreter's movement ops, schedules, metrics and edge cases against numbers made by hand.
#include "base/hash.h"
#include "base/random.h"
#include "tests/ir/interp_test.h"

namespace {

const double inf = INFINITY, nan_ = NAN;

TEST_F(Interp, Movement) {
    const Values six = {1, 2, 3, 4, 5, 6}, three = {7, 8, 9};
    const struct {
        const char *types, *op, *result;
        std::vector<Values> in;
        Values want;
    } cases[] = {
        {"f32[2, 3]", "reshape(%a)", "f32[3, 2]", {six}, six},
        {"f32[1, 2, 3]", "flatten(%a)", "f32[1, 6]", {six}, six},
        {"i32[2, 3]", "detach(%a)", "i32[2, 3]", {six}, six},
        {"f32[2, 3]", "transpose(%a)", "f32[3, 2]", {six}, {1, 4, 2, 5, 3, 6}},
        {"i32[1, 2, 3]", "transpose(%a; a = 0, b = 2)", "i32[3, 2, 1]", {six}, {1, 4, 2, 5, 3, 6}},
        {"f32[1, 2, 3]", "permute(%a; dims = (1, 2, 0))", "f32[2, 3, 1]", {six}, six},
        {"f32[1, 2, 3]", "permute(%a; dims = (2, 0, 1))", "f32[3, 1, 2]", {six}, {1, 4, 2, 5, 3, 6}},
        {"f32[2, 3]", "slice(%a; dim = 1, from = 1, to = 3)", "f32[2, 2]", {six}, {2, 3, 5, 6}},
        {"f32[2, 3]", "slice(%a; dim = -2, from = 1, to = 2)", "f32[1, 3]", {six}, {4, 5, 6}},
        {"f32[2, 3]",
         "pad(%a; dim = 1, before = 1, after = 1, value = -1.0)",
         "f32[2, 5]",
         {six},
         {-1, 1, 2, 3, -1, -1, 4, 5, 6, -1}},
        {"f32[2, 3]", "pad(%a; dim = 0, after = 1)", "f32[3, 3]", {six}, {1, 2, 3, 4, 5, 6, 0, 0, 0}},
        {"f32[2, 3];f32[1, 3]", "concat(%a, %b)", "f32[3, 3]", {six, three}, {1, 2, 3, 4, 5, 6, 7, 8, 9}},
        {"f32[1, 3];f32[1, 2];f32[1, 1]", "concat(%a, %b, %c; dim = -1)", "f32[1, 6]", {{1, 2, 3}, {4, 5}, {6}}, six},
        {"f32[3];f32[3]", "stack(%a, %b)", "f32[2, 3]", {{1, 2, 3}, {4, 5, 6}}, six},
        {"f32[3];f32[3]", "stack(%a, %b; dim = 1)", "f32[3, 2]", {{1, 2, 3}, {4, 5, 6}}, {1, 4, 2, 5, 3, 6}},
        {"f32[2, 1]", "expand(%a)", "f32[2, 2, 3]", {{1, 2}}, {1, 1, 1, 2, 2, 2, 1, 1, 1, 2, 2, 2}},
        {"", "full(; value = 2.5)", "f32[3]", {}, {2.5, 2.5, 2.5}},
        {"", "tensor(; values = [0.5, -2.0, 3.0, 0.25])", "f32[2, 2]", {}, {0.5, -2, 3, 0.25}},
        {"", "tensor(; values = [7.0])", "i32", {}, {7}},
        {"", "arange()", "i32[4]", {}, {0, 1, 2, 3}},
        {"i32[3];f32[2, 1]",
         "embedding(%a, %b)",
         "f32[3, 1]",
         {{1, 2, -1}, {5, 6}},
         {6, nan_, nan_}}, /* no such rows */
    };
    for (const auto &c : cases) {
        SCOPED_TRACE(c.op);
        ExpectNear(Op("simplify", c.types, c.op, c.result, c.in), c.want);
    }
    auto two = Run("simplify",
                   "input %a : f32[2]\ninput %b : bool[2]\n%y, %z = where_grad(%a, %b) : f32[2], f32[2]\n"
                   "result y = %y\nresult z = %z",
                   {{3, 4}, {1, 0}});
    EXPECT_EQ(two["y"], (Values{3, 0}));
    EXPECT_EQ(two["z"], (Values{0, 4}));
    auto rows = Run("simplify",
                    "input %a : i32[6, 1]\ninput %b : f32[4, 1]\n"
                    "%y, %z, %m = distinct_rows(%a, %b) : i32[6], i32[6], i32[4]\nresult y = %y\nresult z = %z",
                    {{2, 0, 2, 9, 0, 2}, {1, 2, 3, 4}}); /* there is no row 9 */
    EXPECT_EQ(rows["y"], (Values{0, 1, 0, 3, 1, 0}));
    EXPECT_EQ(rows["z"], (Values{2, 0, -1, -1, -1, -1}));
}

TEST_F(Interp, Comparisons) {
    const Values a = {1, 2, 3, nan_}, b = {2, 2, 2, 2};
    EXPECT_EQ(Op("simplify", "f32[4];f32[4]", "ne(%a, %b)", "bool[4]", {a, b}), (Values{1, 0, 1, 1}));
    EXPECT_EQ(Op("simplify", "f32[4];f32[4]", "gt(%a, %b)", "bool[4]", {a, b}), (Values{0, 0, 1, 0}));
    EXPECT_EQ(Op("simplify", "f32[4];f32[4]", "ge(%a, %b)", "bool[4]", {a, b}), (Values{0, 1, 1, 0}));
    EXPECT_EQ(Op("simplify", "f32[3]", "clamp(%a; low = 0.0, high = 1.0)", "f32[3]", {{-inf, inf, nan_}})[1], 1.0);
    EXPECT_TRUE(std::isnan(Op("simplify", "f32[1]", "clamp(%a; low = 0.0, high = 1.0)", "f32[1]", {{nan_}})[0]));
    ExpectNear(Op("lower", "f64", "cos(%a)", "f64", {{1}}), {std::cos(1.0)});
}

// The schedules of the language, written out.
TEST_F(Interp, Schedules) {
    auto rate = [&](const std::string &call, double s) { return Op("simplify", "i64", call, "f64", {{s}})[0]; };
    const std::string cosine = "cosine_rate(%a; peak = 2.0, warmup = 4, steps = 12, floor = 0.5)";
    const double slope[] = {0.5, 1, 1.5, 2}, middle = 0.5 + 1.5 * (1 + std::cos(M_PI * 2 / 8)) / 2;
    for (int s = 0; s < 4; s++) EXPECT_DOUBLE_EQ(rate(cosine, s), slope[s]);
    EXPECT_DOUBLE_EQ(rate(cosine, 4), 2);
    EXPECT_DOUBLE_EQ(rate(cosine, 6), middle);
    EXPECT_DOUBLE_EQ(rate(cosine, 8), 1.25);
    EXPECT_DOUBLE_EQ(rate(cosine, 12), 0.5);
    EXPECT_DOUBLE_EQ(rate(cosine, 99), 0.5);
    EXPECT_DOUBLE_EQ(rate("cosine_rate(%a; peak = 2.0, warmup = 3, steps = 3)", 3), 0);
    EXPECT_DOUBLE_EQ(rate("step_rate(%a; base = 0.5, every = 3, gamma = 0.1)", 2), 0.5);
    EXPECT_DOUBLE_EQ(rate("step_rate(%a; base = 0.5, every = 3, gamma = 0.1)", 7), 0.5 * 0.1 * 0.1);
    const std::string linear = "linear_rate(%a; peak = 2.0, warmup = 2, steps = 6)";
    const double line[] = {1, 2, 2, 1.5, 1, 0.5, 0, 0};
    for (int s = 0; s < 8; s++) EXPECT_DOUBLE_EQ(rate(linear, s), line[s]) << s;
    EXPECT_DOUBLE_EQ(Run("simplify", "%y = constant_rate(; v = 0.25) : f64\nresult y = %y", {})["y"][0], 0.25);
    EXPECT_DOUBLE_EQ(rate("one_cycle_rate(%a; peak = 1.0, steps = 10)", 50), 1.0 / 25 / 1e4); /* it stays at its end */
}

TEST_F(Interp, Metrics) {
    const Values logits = {0.5, 2, 1, 1, 1, 1, nan_, 3, 2};
    auto top = [&](int k, Values targets) {
        return Op("simplify", "f32[3, 3];i32[3]", "top_k_accuracy(%a, %b; k = " + std::to_string(k) + ")", "f32",
                  {logits, targets})[0];
    };
    EXPECT_DOUBLE_EQ(top(1, {1, 0, 1}), 1); /* 3 beats the NaN, which is larger than nothing here */
    EXPECT_DOUBLE_EQ(top(1, {2, 1, 0}), 0); /* of equals the first counts; a NaN is in no top */
    EXPECT_DOUBLE_EQ(top(2, {2, 1, 2}), 1);
    EXPECT_DOUBLE_EQ(top(3, {0, 2, -100}), 2.0 / 3); /* no class */
    ExpectNear(Op("simplify", "f32[2, 3]", "argmax(%a)", "i32[2]", {{1, 3, 3, 2, nan_, 9}}), {1, 1});
    const char *top_k = "input %x : f32[2, 4]\n%y, %i = top_k(%x; k = 3) : f32[2, 3], i32[2, 3]\n";
    const Values x = {1, 3, 3, 3, inf, nan_, -inf, nan_}; /* of equals the lower index first, a NaN before all */
    ExpectNear(Run("simplify", std::string(top_k) + "result i = %i\n", {x})["i"], {1, 2, 3, 1, 3, 0});
}

TEST_F(Interp, EdgesOfReductions) {
    ExpectNear(Op("simplify", "f32[2]", "max(%a)", "f32", {{-inf, nan_}}), {nan_});
    ExpectNear(Op("simplify", "f32[1]", "var(%a)", "f32", {{3}}), {nan_}); /* nothing is left to divide by */
    auto norm = Run("simplify",
                    "input %x : f32[1, 2]\ninput %w : f32[2]\n%y, %m, %v, %r = batch_norm(%x, %w, %w, %w, %w) : "
                    "f32[1, 2], f32[2], f32[2], f32[2]\nresult y = %y\nresult v = %v",
                    {{3, 4}, {1, 2}});
    /* One value, where PyTorch refuses: by the running statistics; its variance is as var's above. */
    ExpectNear(norm["y"], {(3 - 1) / std::sqrt(1 + 1e-5) * 1 + 1, (4 - 2) / std::sqrt(2 + 1e-5) * 2 + 2});
    ExpectNear(norm["v"], {nan_, nan_});
    ExpectNear(Op("simplify", "f32[2];f64", "clip_by_norm(%a, %b)", "f32[2]", {{1, 2}, {nan_}}), {nan_, nan_});
    ExpectNear(Op("simplify", "f32[2];f64", "clip_by_norm(%a, %b)", "f32[2]", {{1, 2}, {0.5}}), {1, 2});
}

TEST_F(Interp, NaNWinsItsWindow) {
    auto r = Run("simplify",
                 "input %x : f32[1, 1, 2, 2]\n%y, %i = max_pool2d(%x; kernel = (2, 2), stride = (1, 1)) : f32[1, 1, 1, "
                 "1], i32[1, 1, 1, 1]\nresult y = %y\nresult i = %i",
                 {{5, nan_, 7, nan_}});
    EXPECT_TRUE(std::isnan(r["y"][0]));
    EXPECT_EQ(r["i"], Values{1});
    auto least = Run("simplify",
                     "input %x : f32[1, 1, 1, 1]\n%y, %i = max_pool2d(%x; kernel = (2, 2), padding = (1, 1)) : f32[1, "
                     "1, 2, 2], i32[1, 1, 2, 2]\nresult y = %y\nresult i = %i",
                     {{-inf}});
    EXPECT_EQ(least["y"], (Values{-inf, -inf, -inf, -inf})); /* padding never wins */
    EXPECT_EQ(least["i"], (Values{3, 2, 1, 0}));
}

TEST_F(Interp, RandomTakesTheMicroBatch) {
    const std::string lines = "input %x : f32[4]\ninput %s : i64\ninput %i : i64\ninput %m : i64\n%r = random(%x, %s, "
                              "%i, %m; key = \"k\") : f32[4]\nresult r = %r";
    Values r = Run("lower", lines, {Values(4, 0.0), {7}, {3}, {2}})["r"];
    for (int i = 0; i < 4; i++)
        EXPECT_EQ(r[i], amp_random_unit(amp_random_u32(7, amp_hash32("k"), 3, 2, static_cast<uint64_t>(i))));
}

// In the third micro-batch of up to five samples: samples are counted over all; without N nothing is; of pairs of
// samples the micro-batch is.
TEST_F(Interp, DropoutCountsSamples) {
    const struct {
        const char *type;
        uint32_t micro;
        uint64_t first;
    } cases[] = {{"f32[N, 2]", 0, 2 * 5 * 2}, {"f32[2, 2]", 0, 0}, {"f32[N, N]", 2, 0}};
    for (const auto &c : cases) {
        std::string states, graph = std::string("input %x : ") + c.type + "\n";
        for (const char *name : {"seed", "iteration", "micro", "full_batch"}) {
            states += std::string("state %") + name + " : i64 counter ";
            graph += std::string("state %") + name + " : i64\n";
        }
        graph += std::string("%y = dropout(%x; p = 0.5, key = \"k\") : ") + c.type + "\nresult y = %y";
        const Values y = Run("simplify", graph, {Values(4, 1.0), {7}, {3}, {2}, {5}}, 2, false, states)["y"];
        for (uint64_t i = 0; i < 4; i++)
            EXPECT_EQ(y[i],
                      amp_random_unit(amp_random_u32(7, amp_hash32("k"), 3, c.micro, c.first + i)) >= 0.5 ? 2.0 : 0.0)
                << c.type;
    }
}

} // namespace
