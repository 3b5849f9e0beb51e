// The reference interpreter: every op against hand-computed values, and every *_grad op against central differences of
// its forward op.
#include "base/hash.h"
#include "base/random.h"
#include "base/rounding.h"
#include "tests/ir/interp_test.h"
#include "tests/ops/pointwise.h"

namespace {

const double inf = INFINITY, nan_ = NAN;

// ---- elementwise --------------------------------------------------------------------------------

// The rows of tests/ops/pointwise.def: over their numbers and, where an op is defined there, its edges.
TEST_F(Interp, PointwiseOpsAreWhatTheirRowsSay) {
    for (const PointwiseRow &row : pointwise::AllRows()) {
        SCOPED_TRACE(row.Call("%a"));
        const double low = row.is_slope ? -2 : row.low, high = row.is_slope ? 2 : row.high;
        Values x, want;
        for (int i = 0; i <= 64; i++) x.push_back(low + (high - low) * i / 64);
        if (low < 0) x.insert(x.end(), {0.0, -0.0, 21.0, -21.0, 30.5});
        for (double v : x) want.push_back(static_cast<double>(row.exact(static_cast<long double>(v))));
        const std::string type = "f32[" + std::to_string(x.size()) + "]";
        const Values one(x.size(), 1.0);
        ExpectNear(row.is_slope ? Op("simplify", type + ";" + type, row.Call("%a, %b"), type, {one, x})
                                : Op("simplify", type, row.Call("%a"), type, {x}),
                   want);
    }
}

TEST_F(Interp, CoreElementwise) {
    const struct {
        const char *types, *op, *result;
        std::vector<Values> in;
        Values want;
    } cases[] = {
        {"f32[3];f32[3]", "add(%a, %b)", "f32[3]", {{1, 2, 3}, {4, 5, inf}}, {5, 7, inf}},
        {"f32[2, 2];f32[2]", "sub(%a, %b)", "f32[2, 2]", {{1, 2, 3, 4}, {10, 20}}, {-9, -18, -7, -16}},
        {"f32[2, 1];f32[1, 2]", "mul(%a, %b)", "f32[2, 2]", {{2, 3}, {5, 7}}, {10, 14, 15, 21}},
        {"f32[2];f32", "div(%a, %b)", "f32[2]", {{1, -1}, {0}}, {inf, -inf}},
        {"f32[3];f32[3]", "maximum(%a, %b)", "f32[3]", {{1, nan_, 3}, {2, 1, nan_}}, {2, nan_, nan_}},
        {"f32[3];f32[3]", "minimum(%a, %b)", "f32[3]", {{1, nan_, 3}, {2, 1, nan_}}, {1, nan_, nan_}},
        {"f32[4];f32[4]", "remainder(%a, %b)", "f32[4]", {{5.5, -5.5, 5.5, 1}, {2, 2, -2, 0}}, {1.5, 0.5, -0.5, nan_}},
        {"i32[4];i32[4]", "remainder(%a, %b)", "i32[4]", {{7, -7, 7, 7}, {3, 3, -3, 0}}, {1, 2, -2, 0}},
        {"f32[2]", "neg(%a)", "f32[2]", {{1, -2}}, {-1, 2}},
        {"f32[2]", "exp(%a)", "f32[2]", {{0, 1}}, {1, M_E}},
        {"f32[2]", "log(%a)", "f32[2]", {{1, 0}}, {0, -inf}},
        {"f32[2]", "sqrt(%a)", "f32[2]", {{4, -1}}, {2, nan_}},
        {"f32[1]", "tanh(%a)", "f32[1]", {{0.5}}, {0.46211715726000973}},
        {"f32[1]", "erf(%a)", "f32[1]", {{0.5}}, {0.5204998778130465}},
        {"f32[3];f32[3]", "lt(%a, %b)", "bool[3]", {{1, 2, nan_}, {2, 2, 2}}, {1, 0, 0}},
        {"f32[3];f32[3]", "le(%a, %b)", "bool[3]", {{1, 2, 3}, {2, 2, 2}}, {1, 1, 0}},
        {"i32[3];i32[3]", "eq(%a, %b)", "bool[3]", {{1, 2, 3}, {2, 2, 2}}, {0, 1, 0}},
        {"bool[4];bool[4]", "and(%a, %b)", "bool[4]", {{0, 0, 1, 1}, {0, 1, 0, 1}}, {0, 0, 0, 1}},
        {"bool[4];bool[4]", "or(%a, %b)", "bool[4]", {{0, 0, 1, 1}, {0, 1, 0, 1}}, {0, 1, 1, 1}},
        {"bool[2]", "not(%a)", "bool[2]", {{0, 1}}, {1, 0}},
        {"f32[3]", "is_finite(%a)", "bool[3]", {{1, inf, nan_}}, {1, 0, 0}},
        {"bool[2];f32;f32[2]", "select(%a, %b, %c)", "f32[2]", {{1, 0}, {5}, {6, 7}}, {5, 7}},
        {"i64", "increment(%a)", "i64", {{41}}, {42}},
        {"i64", "power(%a; base = 0.9)", "f64", {{3}}, {0.729}},
        {"f32[2, 3]", "iota(%a)", "i32[2, 3]", {{0, 0, 0, 0, 0, 0}}, {0, 1, 2, 0, 1, 2}},
        {"f32[2, 3]", "iota(%a; dim = 0)", "i32[2, 3]", {{0, 0, 0, 0, 0, 0}}, {0, 0, 0, 1, 1, 1}},
        {"f32[2];f32[2, 3]",
         "broadcast(%a, %b; dims = (1))",
         "f32[2, 3]",
         {{1, 2}, {0, 0, 0, 0, 0, 0}},
         {1, 1, 1, 2, 2, 2}},
        {"i32[1, 3];f32[2, 3]",
         "broadcast(%a, %b; dims = (0))",
         "i32[2, 3]",
         {{1, 2, 3}, {0, 0, 0, 0, 0, 0}},
         {1, 2, 3, 1, 2, 3}},
        {"f32[2, 3]", "extent(%a)", "f32", {{0, 0, 0, 0, 0, 0}}, {6}},
        {"f32[2, 3]", "extent(%a; dims = (1))", "f32", {{0, 0, 0, 0, 0, 0}}, {3}},
        {"f32[2, 3]", "reduce_sum(%a; dims = (0))", "f32[3]", {{1, 2, 3, 4, 5, 6}}, {5, 7, 9}},
        {"f32[2, 3]", "reduce_sum(%a; dims = (-1), keep = true)", "f32[2, 1]", {{1, 2, 3, 4, 5, 6}}, {6, 15}},
        {"f32[2, 2]", "reduce_max(%a; dims = (1))", "f32[2]", {{1, 5, nan_, 9}}, {5, nan_}},
        {"f32[2, 2]", "reduce_min(%a; dims = (1))", "f32[2]", {{1, 5, 9, nan_}}, {1, nan_}},
        {"bool[3]", "reduce_or(%a)", "bool", {{0, 0, 1}}, {1}},
        {"f32[2, 2];f32[2, 2]", "contract(%a, %b)", "f32[2, 2]", {{1, 2, 3, 4}, {5, 6, 7, 8}}, {19, 22, 43, 50}},
        {"f32[2, 2];f32[2, 2]",
         "contract(%a, %b; ta = true)",
         "f32[2, 2]",
         {{1, 3, 2, 4}, {5, 6, 7, 8}},
         {19, 22, 43, 50}},
        {"f32[2, 2];f32[2, 2]",
         "contract(%a, %b; tb = true)",
         "f32[2, 2]",
         {{1, 2, 3, 4}, {5, 7, 6, 8}},
         {19, 22, 43, 50}},
        // chunks of whole 64 rows; of four parts one is past the end
        {"f32[130, 1];f32[130, 1]",
         "contract(%a, %b; ta = true, parts = 4)",
         "f32[4, 1, 1]",
         {std::vector<double>(130, 2), std::vector<double>(130, 1)},
         {128, 128, 4, 0}},
        {"f32[2, 130];f32[130, 1]",
         "contract(%a, %b; parts = 3)",
         "f32[3, 2, 1]",
         {std::vector<double>(260, 2), std::vector<double>(130, 1)},
         {128, 128, 128, 128, 4, 4}},
        {"f32[2, 5, 13, 1];f32[2, 5, 13, 1]",
         "conv_weight(%a, %b; parts = 3)",
         "f32[3, 1, 1, 1, 1]",
         {std::vector<double>(130, 2), std::vector<double>(130, 1)},
         {128, 128, 4}},
        {"f32[3, 2]", "sum_parts(%a)", "f32[2]", {{1, 2, 3, 4, 5, 6}}, {9, 12}},
    };
    for (const auto &c : cases) {
        SCOPED_TRACE(c.op);
        ExpectNear(Op("lower", c.types, c.op, c.result, c.in), c.want);
    }
}

TEST_F(Interp, GraphOps) {
    const double e1 = std::exp(1), softmax[] = {1 / (1 + e1), e1 / (1 + e1)};
    const struct {
        const char *types, *op, *result;
        std::vector<Values> in;
        Values want;
    } cases[] = {
        {"f32[1, 2];f32[3, 2];f32[3]",
         "linear(%a, %b, %c)",
         "f32[1, 3]",
         {{1, 2}, {1, 2, 3, 4, 5, 6}, {10, 20, 30}},
         {15, 31, 47}},
        {"f32[1, 2];f32[2, 3]",
         "linear(%a, %b; transposed = true)",
         "f32[1, 3]",
         {{1, 2}, {1, 3, 5, 2, 4, 6}},
         {5, 11, 17}},
        {"f32[2, 2];f32[2, 1]", "matmul(%a, %b)", "f32[2, 1]", {{1, 2, 3, 4}, {5, 6}}, {17, 39}},
        {"f32[3]", "relu(%a)", "f32[3]", {{-1, 2, nan_}}, {0, 2, nan_}},
        {"f32[2]", "gelu(%a)", "f32[2]", {{1, -2}}, {0.8413447460685429, -0.04550026389635842}},
        {"f32[1]", "gelu(%a; approximate = tanh)", "f32[1]", {{1}}, {0.8411919906082768}},
        {"f32[1]", "sigmoid(%a)", "f32[1]", {{1}}, {0.7310585786300049}},
        {"f32[2, 2]", "sum(%a)", "f32", {{1, 2, 3, 4}}, {10}},
        {"f32[2, 2]", "mean(%a; dims = (0))", "f32[2]", {{1, 2, 3, 4}}, {2, 3}},
        {"f32[1, 2]", "softmax(%a)", "f32[1, 2]", {{1000, 1001}}, {softmax[0], softmax[1]}},
        {"f32[2, 1]", "softmax(%a; dim = 0)", "f32[2, 1]", {{1, 2}}, {softmax[0], softmax[1]}},
        {"f32[1, 2]", "log_softmax(%a)", "f32[1, 2]", {{0, 1}}, {std::log(softmax[0]), std::log(softmax[1])}},
        {"f32[2, 2];i32[2]", "nll_loss(%a, %b)", "f32", {{-1, -2, -3, -4}, {0, 1}}, {2.5}},
        {"f32[2, 2];i32[2]", "nll_loss(%a, %b; ignore = 1)", "f32", {{-1, -2, -3, -4}, {0, 1}}, {1}},
        {"f32[2, 2];i32[2]", "nll_loss(%a, %b)", "f32", {{-1, -2, -3, -4}, {-100, -100}}, {0}},
        {"f32[1, 2];i32[1]", "nll_loss(%a, %b; label_smoothing = 0.5)", "f32", {{-1, -2}, {0}}, {0.5 * 1 + 0.25 * 3}},
        {"f32[1, 2];i32[1]", "nll_loss(%a, %b)", "f32", {{-1, -inf}, {0}}, {1}},
        {"f32[3, 2];i32[3]", "accuracy(%a, %b)", "f32", {{1, 2, 3, 3, nan_, 1}, {1, 0, 1}}, {2.0 / 3}},
        {"f32[2];f32[2]", "relu_grad(%a, %b)", "f32[2]", {{5, 6}, {0, 1}}, {0, 6}},
        {"f32[2, 3];f32[3]", "sum_to(%a, %b)", "f32[3]", {{1, 2, 3, 4, 5, 6}, {0, 0, 0}}, {5, 7, 9}},
        {"f32[2, 3];f32[2, 1]", "sum_to(%a, %b)", "f32[2, 1]", {{1, 2, 3, 4, 5, 6}, {0, 0}}, {6, 15}},
        {"f32[2];f32[2, 3]",
         "broadcast_to(%a, %b; dims = (1), mean = true)",
         "f32[2, 3]",
         {{3, 6}, {0, 0, 0, 0, 0, 0}},
         {1, 1, 1, 2, 2, 2}},
        {"f32;f32", "scale_loss(%a, %b)", "f32", {{1}, {65536}}, {65536}},
        {"f32", "inverse_scale(%a)", "f32", {{4}}, {0.25}},
        {"f32[2];f32", "unscale(%a, %b)", "f32[2]", {{4, 8}, {0.25}}, {1, 2}},
        {"f32[2];f32", "all_finite(%a, %b)", "bool", {{4, 8}, {inf}}, {0}},
        {"f32[2];f16", "all_finite(%a, %b)", "bool", {{4, 8}, {1}}, {1}},
        {"i64", "is_due(%a; every = 3)", "bool", {{2}}, {1}},
        {"f32[2];f32[2];i64", "ema(%a, %b, %c; decay = 0.75)", "f32[2]", {{4, -4}, {0, 8}, {2}}, {1, 5}},
        {"f32[2];f32[2];i64", "ema(%a, %b, %c; decay = 0.75)", "f32[2]", {{4, -4}, {0, 8}, {1}}, {4, -4}},
        {"i64;bool", "is_due(%a, %b; every = 3)", "bool", {{5}, {0}}, {0}},
    };
    for (const auto &c : cases) {
        SCOPED_TRACE(c.op);
        ExpectNear(Op("simplify", c.types, c.op, c.result, c.in), c.want);
    }
    ExpectNear(Run("simplify", "%y = grad_seed() : f32\nresult y = %y", {})["y"], {1});
}

// ---- gradients ----------------------------------------------------------------------------------

TEST_F(Interp, GradientsAreCentralDifferences) {
    const struct {
        const char *forward, *backward;
        bool of_input; /* the gradient reads x, else y */
    } cases[] = {
        {"relu(%a)", "relu_grad(%a, %b)", false},
        {"gelu(%a)", "gelu_grad(%a, %b)", true},
        {"gelu(%a; approximate = tanh)", "gelu_grad(%a, %b; approximate = tanh)", true},
        {"sigmoid(%a)", "sigmoid_grad(%a, %b)", false},
        {"tanh(%a)", "tanh_grad(%a, %b)", false},
        {"softmax(%a)", "softmax_grad(%a, %b)", false},
        {"softmax(%a; dim = 0)", "softmax_grad(%a, %b; dim = 0)", false},
        {"log_softmax(%a)", "log_softmax_grad(%a, %b)", false},
    };
    const Values x = {0.3, -1.2, 2.1, 0.7, -0.4, 1.9}, dy = {1.5, -0.5, 0.25, -2, 0.75, 1};
    for (const auto &c : cases) {
        SCOPED_TRACE(c.backward);
        auto forward = [&](const Values &at) { return Op("simplify", "f32[2, 3]", c.forward, "f32[2, 3]", {at}); };
        Values second = c.of_input ? x : forward(x);
        Values slope = Op("simplify", "f32[2, 3];f32[2, 3]", c.backward, "f32[2, 3]", {dy, second});
        ExpectNear(slope, Differences(forward, x, dy), 1e-8);
    }
}

TEST_F(Interp, LossGradientIsCentralDifferences) {
    const Values logp = {-0.3, -1.2, -2.1, -0.7, -0.4, -1.9}, targets = {2, -100};
    const std::string attrs = "; label_smoothing = 0.1)";
    auto forward = [&](const Values &at) {
        return Op("simplify", "f32[2, 3];i32[2]", "nll_loss(%a, %b" + attrs, "f32", {at, targets});
    };
    Values slope =
        Op("simplify", "f32;f32[2, 3];i32[2]", "nll_loss_grad(%a, %b, %c" + attrs, "f32[2, 3]", {{3}, logp, targets});
    ExpectNear(slope, Differences(forward, logp, {3}), 1e-8);
}

TEST_F(Interp, ReductionGradientsAreCentralDifferences) {
    const Values x = {0.3, -1.2, 2.1, 0.7, -0.4, 1.9}, dy = {1.5, -0.5};
    auto mean = [&](const Values &at) { return Op("simplify", "f32[2, 3]", "mean(%a; dims = (1))", "f32[2]", {at}); };
    ExpectNear(
        Op("simplify", "f32[2];f32[2, 3]", "broadcast_to(%a, %b; dims = (1), mean = true)", "f32[2, 3]", {dy, x}),
        Differences(mean, x, dy), 1e-8);
    const Values bias = {1, 2, 3}, wide = {1, -2, 3, -4, 5, -6};
    auto add = [&](const Values &at) {
        return Op("simplify", "f32[2, 3];f32[3]", "add(%a, %b)", "f32[2, 3]", {x, at});
    };
    ExpectNear(Op("simplify", "f32[2, 3];f32[3]", "sum_to(%a, %b)", "f32[3]", {wide, bias}),
               Differences(add, bias, wide), 1e-8);
}

// ---- random numbers -----------------------------------------------------------------------------

TEST_F(Interp, DropoutDrawsFromPhilox) {
    const std::string lines = "input %x : f32[N, 4]\nstate %seed : i64\nstate %iteration : i64\n%y = dropout(%x; p = "
                              "0.25, key = \"a.b\") : f32[N, 4]\n"
                              "result y = %y",
                      states = "state %seed : i64 counter state %iteration : i64 counter";
    Values ones(64, 1.0), y = Run("simplify", lines, {ones, {7}, {3}}, 16, false, states)["y"];
    int dropped = 0;
    for (int i = 0; i < 64; i++) {
        bool keep = amp_random_unit(amp_random_u32(7, amp_hash32("a.b"), 3, 0, static_cast<uint64_t>(i))) >= 0.25f;
        dropped += !keep;
        EXPECT_EQ(y[i], keep ? 1 / 0.75 : 0.0) << i;
    }
    EXPECT_GT(dropped, 4);
    EXPECT_LT(dropped, 32);
    EXPECT_NE(y, Run("simplify", lines, {ones, {7}, {4}}, 16, false, states)["y"]);
}

// The core ops that dropout lowers to draw the same numbers.
TEST_F(Interp, RandomIsTheSameInCore) {
    const std::string core = "input %x : f32[N, 4]\ninput %s : i64\ninput %i : i64\n%r = random(%x, %s, %i; key = "
                             "\"a.b\") : f32[N, 4]\nresult r = %r";
    Values r = Run("lower", core, {Values(8, 0.0), {7}, {3}}, 2)["r"];
    for (int i = 0; i < 8; i++)
        EXPECT_EQ(r[i], amp_random_unit(amp_random_u32(7, amp_hash32("a.b"), 3, 0, static_cast<uint64_t>(i))));
}

// ---- loss scale and optimizers ------------------------------------------------------------------

// (scale, tracker, ok) -> the next scale, tracker and floor hit, by the vectors of PyTorch's own tests.
TEST_F(Interp, UpdateScale) {
    const struct {
        const char *attrs;
        double scale, tracker, ok;
        Values want;
    } cases[] = {
        {"backoff = 0.25, interval = 2", 4, 0, 1, {4, 1, 0}},
        {"backoff = 0.25, interval = 2", 4, 1, 1, {8, 0, 0}},
        {"backoff = 0.25, interval = 2", 8, 0, 0, {2, 0, 0}},
        {"growth = 16.0, interval = 1, max = inf", 1e38, 0, 1, {1e38, 0, 0}}, /* the product is not finite in f32 */
        {"interval = 2000", 65536, 1999, 1, {131072, 0, 0}},
        {"interval = 1", 16777216, 0, 1, {16777216, 0, 0}}, /* kept at max */
        {"interval = 1", 1.5, 5, 0, {1, 0, 0}},
        {"interval = 1", 1, 5, 0, {1, 0, 1}}, /* stood at min already */
        /* Below the least scale that a step can use, that one is the floor; above the greatest, that one the top. */
        {"min = 0.0", 0, 5, 0, {0x1p-126, 0, 1}},
        {"min = 0.0", 0x1p-125, 5, 0, {0x1p-126, 0, 0}},
        {"min = 1e-60", 0x1p-126, 5, 0, {0x1p-126, 0, 1}},
        {"growth = 4.0, interval = 1, max = inf", 0x1p125, 0, 1, {0x1p126, 0, 0}},
        {"growth = 4.0, interval = 1, max = 1e39", 0x1p126, 0, 1, {0x1p126, 0, 0}},
    };
    for (const auto &c : cases) {
        auto r = Run(
            "simplify",
            std::string("input %s : f32\ninput %t : i32\ninput %ok : bool\n%a, %b, %c = update_scale(%s, %t, %ok; ") +
                c.attrs + ") : f32, i32, i32\nresult a = %a\nresult b = %b\nresult c = %c",
            {{c.scale}, {c.tracker}, {c.ok}}, 1, true);
        Values got = {r["a"][0], r["b"][0], r["c"][0]};
        Values want = c.want;
        want[0] = static_cast<float>(want[0]);
        EXPECT_EQ(got[1], want[1]) << c.attrs << " " << c.scale;
        EXPECT_EQ(got[2], want[2]) << c.attrs << " " << c.scale;
        EXPECT_EQ(static_cast<float>(got[0]), want[0]) << c.attrs << " " << c.scale;
    }
}

// Rates are operands: %r the learning rate, %d the weight decay.
TEST_F(Interp, Sgd) {
    const std::string
        in = "input %w : f32\ninput %g : f32\ninput %t : i64\ninput %r : f64\ninput %d : f64\ninput %b : f32\n",
        out = " : f32, f32\nresult w = %x\nresult b = %y";
    auto plain = Run("simplify", in + "%x, %y = sgd(%w, %g, %t, %r, %d)" + out, {{2}, {3}, {1}, {0.1}, {0.5}, {0}});
    ExpectNear(plain["w"], {2 - 0.1 * (3 + 0.5 * 2)});
    EXPECT_EQ(plain["b"], plain["w"]);
    auto momentum = Run("simplify", in + "%x, %y = sgd(%w, %g, %t, %r, %d, %b; momentum = 0.9)" + out,
                        {{2}, {3}, {2}, {0.1}, {0}, {5}});
    ExpectNear(momentum["b"], {7.5});
    ExpectNear(momentum["w"], {2 - 0.75});
    auto nesterov = Run("simplify", in + "%x, %y = sgd(%w, %g, %t, %r, %d, %b; momentum = 0.9, nesterov = true)" + out,
                        {{2}, {3}, {2}, {0.1}, {0}, {5}});
    ExpectNear(nesterov["w"], {2 - 0.1 * (3 + 0.9 * 7.5)});
}

// At the first step with zero moments Adam moves by lr * sign(g), whatever g; further steps by the formula written out.
TEST_F(Interp, AdamAndAdamW) {
    const std::string in = "input %w : f32\ninput %g : f32\ninput %t : i64\ninput %r : f64\ninput %d : f64\n"
                           "input %m : f32\ninput %v : f32\n",
                      operands = "(%w, %g, %t, %r, %d, %m, %v",
                      out = ") : f32, f32, f32\nresult w = %x\nresult m = %y\nresult v = %z";
    auto first = Run("simplify", in + "%x, %y, %z = adam" + operands + "; eps = 0.0" + out,
                     {{2}, {-3}, {1}, {0.1}, {0}, {0}, {0}});
    ExpectNear(first["w"], {2.1});
    double g = -3 + 0.5 * 2, m = 0.9 * 0.25 + 0.1 * g, v = 0.999 * 4 + 0.001 * g * g, t = 5;
    double step = 0.1 / (1 - std::pow(0.9, t)) * m / (std::sqrt(v) / std::sqrt(1 - std::pow(0.999, t)) + 1e-8);
    auto adam = Run("simplify", in + "%x, %y, %z = adam" + operands + out, {{2}, {-3}, {5}, {0.1}, {0.5}, {0.25}, {4}});
    ExpectNear(adam["w"], {2 - step});
    ExpectNear(adam["m"], {m});
    ExpectNear(adam["v"], {v});
    auto adamw =
        Run("simplify", in + "%x, %y, %z = adamw" + operands + out, {{2}, {-2}, {5}, {0.1}, {0.5}, {0.25}, {4}});
    ExpectNear(adamw["w"], {2 * (1 - 0.1 * 0.5) - step});
}

TEST_F(Interp, Adagrad) {
    auto r = Run("simplify",
                 "input %w : f32\ninput %g : f32\ninput %t : i64\ninput %r : f64\ninput %d : f64\ninput %s : f32\n"
                 "%x, %y = adagrad(%w, %g, %t, %r, %d, %s; lr_decay = 0.5, eps = 0.25) : f32, f32\n"
                 "result w = %x\nresult s = %y",
                 {{2}, {-3}, {5}, {0.3}, {0.5}, {12}});
    ExpectNear(r["s"], {16});
    ExpectNear(r["w"], {2 + 0.1 * 2 / 4.25});
}

TEST_F(Interp, Lamb) {
    const std::string model =
        "input %w : f32[2]\ninput %g : f32[2]\ninput %t : i64\ninput %r : f64\ninput %d : f64\n"
        "input %m : f32[2]\ninput %v : f32[2]\n"
        "%x, %y, %z = lamb(%w, %g, %t, %r, %d, %m, %v; beta1 = 0.5, beta2 = 0.5, eps = 0.0) : f32[2], f32[2], f32[2]\n"
        "result w = %x\nresult m = %y\nresult v = %z";
    // The first step is the gradient's sign, (1, -1), and with half of w (4, 0), whose norm is 4.
    auto r = Run("simplify", model, {{6, 2}, {3, -3}, {1}, {0.1}, {0.5}, {0, 0}, {0, 0}});
    const double ratio = std::sqrt(40.0) / 4;
    ExpectNear(r["w"], {6 - 0.1 * ratio * 4, 2});
    ExpectNear(r["m"], {1.5, -1.5});
    ExpectNear(r["v"], {4.5, 4.5});
    ExpectNear(Run("simplify", model, {{0, 0}, {3, -3}, {1}, {0.1}, {0.5}, {0, 0}, {0, 0}})["w"], {-0.1, 0.1});
    auto still = Run("simplify", model, {{6, 2}, {2, 2}, {1}, {0.1}, {0}, {-2, -2}, {1, 1}});
    ExpectNear(still["w"], {6, 2});
}

TEST_F(Interp, Lion) {
    auto r = Run("simplify",
                 "input %w : f32[3]\ninput %g : f32[3]\ninput %t : i64\ninput %r : f64\ninput %d : f64\n"
                 "input %m : f32[3]\n"
                 "%x, %y = lion(%w, %g, %t, %r, %d, %m; beta1 = 0.75, beta2 = 0.5) : f32[3], f32[3]\n"
                 "result w = %x\nresult m = %y",
                 {{2, 2, 2}, {-3, 3, 3}, {5}, {0.1}, {0.5}, {-1, -1, -0.5}});
    ExpectNear(r["w"], {1.9 + 0.1, 1.9, 1.9 - 0.1});
    ExpectNear(r["m"], {-2, 1, 1.25});
}

// At the first step the states are the means of squares; g = a b' has the estimate g g, so that the step is its signs.
TEST_F(Interp, Adafactor) {
    const std::string rates = "input %t : i64\ninput %r : f64\ninput %d : f64\n",
                      of_vector =
                          "input %w : f32[2]\ninput %g : f32[2]\n" + rates +
                          "input %v : f32[2]\n%x, %y, %z = adafactor(%w, %g, %t, %r, %d, %v; beta2_decay = -0.5, "
                          "eps2 = 0.5",
                      vectors = ") : f32[2], f32[2], f32[2]\nresult w = %x\nresult v = %y\nresult z = %z";
    auto first = Run("simplify",
                     "input %w : f32[2, 3]\ninput %g : f32[2, 3]\n" + rates +
                         "input %a : f32[2]\ninput %b : f32[3]\n%x, %y, %z = adafactor(%w, %g, %t, %r, %d, %a, %b) : "
                         "f32[2, 3], f32[2], f32[3]\nresult w = %x\nresult rows = %y\nresult cols = %z",
                     {{3, 3, 3, 3, 3, 3}, {1, 2, -2, -2, -4, 4}, {1}, {0.1}, {0.5}, {7, 7}, {7, 7, 7}});
    ExpectNear(first["rows"], {3, 12});
    ExpectNear(first["cols"], {2.5, 10, 10});
    const double kept = 3 * 0.95, step = 0.1 * 3;
    ExpectNear(first["w"], {kept - step, kept - step, kept + step, kept + step, kept + step, kept - step});
    // share 1 / 2, least rate 1 / 2, size eps2: v = (8, 2), u = (4 / sqrt(8), 0)
    const std::vector<Values> fourth = {{0.1, 0.1}, {4, 0}, {4}, {1}, {0}, {0, 4}};
    auto plain = Run("simplify", of_vector + ", d = 2.0" + vectors, fourth);
    ExpectNear(plain["v"], {8, 2});
    ExpectNear(plain["w"], {0.1 - 0.25 * std::sqrt(2.0), 0.1});
    EXPECT_EQ(plain["z"], plain["w"]);
    const std::vector<Values> large = {{0.1, 0.1}, {4, 4}, {4}, {0.1}, {0}, {0, 0}}; // u = sqrt(2), twice
    ExpectNear(Run("simplify", of_vector + vectors, large)["w"], {0.05, 0.05});
}

// Of a matrix with orthogonal rows a step goes along its rows, each by the polynomial of its share of the norm.
TEST_F(Interp, Muon) {
    const std::string in =
                          "input %w : f32[2, 3]\ninput %g : f32[2, 3]\ninput %t : i64\ninput %r : f64\ninput %d : f64\n"
                          "input %m : f32[2, 3]\n%x, %y = muon(%w, %g, %t, %r, %d, %m; momentum = 0.5",
                      out = ") : f32[2, 3], f32[2, 3]\nresult w = %x\nresult m = %y";
    const auto polynomial = [](double x) { return 3.4445 * x - 4.775 * x * x * x + 2.0315 * std::pow(x, 5); };
    const std::vector<Values> given = {{1, 0, 0, 0, 2, 0}, {6, 0, 0, 0, 8, 0}, {1}, {0.1}, {0.5}, {0, 0, 0, 0, 0, 0}};
    auto once = Run("simplify", in + ", nesterov = false, ns_steps = 1" + out, given);
    ExpectNear(once["m"], {3, 0, 0, 0, 4, 0});
    ExpectNear(once["w"], {0.95 - 0.1 * polynomial(0.6), 0, 0, 0, 1.9 - 0.1 * polynomial(0.8), 0});
    auto twice = Run("simplify", in + ", ns_steps = 2, adjust_lr = match_rms_adamw" + out, given);
    const double rate = 0.1 * 0.2 * std::sqrt(3.0);
    ExpectNear(twice["w"],
               {0.95 - rate * polynomial(polynomial(0.6)), 0, 0, 0, 1.9 - rate * polynomial(polynomial(0.8)), 0});
    const std::string tall =
        "input %w : f32[2, 1]\ninput %g : f32[2, 1]\ninput %t : i64\ninput %r : f64\ninput %d : f64\n"
        "input %m : f32[2, 1]\n%x, %y = muon(%w, %g, %t, %r, %d, %m; momentum = 0.5, ns_steps = 1";
    const std::string of_tall = ") : f32[2, 1], f32[2, 1]\nresult w = %x";
    for (const char *how : {"original", "spectral_unclamped"}) {
        auto column =
            Run("simplify", tall + ", adjust_lr = " + how + of_tall, {{1, 1}, {6, 8}, {1}, {0.1}, {0}, {0, 0}});
        const double step = 0.1 * std::sqrt(2.0) * polynomial(1);
        ExpectNear(column["w"], {1 - step * 0.6, 1 - step * 0.8});
    }
}

TEST_F(Interp, RmsProp) {
    const std::string
        in = "input %w : f32\ninput %g : f32\ninput %t : i64\ninput %r : f64\ninput %d : f64\n"
             "input %v : f32\ninput %m : f32\ninput %b : f32\n%x, %y, %z, %u = rmsprop(%w, %g, %t, %r, %d, ",
        out = ") : f32, f32, f32, f32\nresult w = %x\nresult v = %y\nresult m = %z\nresult b = %u";
    const double g = -3 + 0.5 * 2, v = 0.99 * 4 + 0.01 * g * g, m = 0.99 * 0.25 + 0.01 * g;
    const std::vector<Values> given = {{2}, {-3}, {5}, {0.1}, {0.5}, {4}, {0.25}, {7}};
    auto plain = Run("simplify", in + "%v; eps = 0.5" + out, given);
    ExpectNear(plain["w"], {2 - 0.1 * g / (std::sqrt(v) + 0.5)});
    ExpectNear(plain["v"], {v});
    EXPECT_EQ(plain["b"], plain["w"]);
    auto both = Run("simplify", in + "%v, %m, %b; momentum = 0.9, centered = true" + out, given);
    const double buffer = 0.9 * 7 + g / (std::sqrt(v - m * m) + 1e-8);
    ExpectNear(both["w"], {2 - 0.1 * buffer});
    ExpectNear(both["m"], {m});
    ExpectNear(both["b"], {buffer});
    auto rounded = Run("simplify", in + "%v, %m; centered = true" + out, {{2}, {1}, {5}, {0.1}, {0}, {0.5}, {1}, {7}});
    ExpectNear(rounded["w"], {2 - 0.1 * 1e8});
}

// ---- states, rounding, errors -------------------------------------------------------------------

TEST_F(Interp, StatesAreWrittenAtTheEndWhereThePredicateHolds) {
    const std::string states = "state %a : f32 param state %b : f32 param state %c : f32 param";
    auto r = Run(
        "simplify",
        "input %ok : bool\nstate %a : f32\nstate %b : f32\nstate %c : f32\n%y = add(%a, %b) : f32\n"
        "assign(%a, %b)\nassign(%b, %a)\nassign(%c, %y) if %ok\n%z = add(%a, %c) : f32\nresult z = %z\nresult old = %a",
        {{0}, {1}, {2}, {3}}, 1, false, states);
    EXPECT_EQ(r["z"], Values{4}); /* the old values */
    EXPECT_EQ(r["old"], Values{1});
    EXPECT_EQ(r["after a"], Values{2});
    EXPECT_EQ(r["after b"], Values{1});
    EXPECT_EQ(r["after c"], Values{3});
}

TEST_F(Interp, RoundingFollowsTheTypes) {
    const std::string lines =
        "input %x : f32[1]\n%h = cast(%x) : f16[1]\n%b = cast(%x) : bf16[1]\n%t = cast(%x) : tf32[1]\n%i = cast(%x) : "
        "i32[1]\n"
        "%f = add(%x, %x) : f32[1]\nresult h = %h\nresult b = %b\nresult t = %t\nresult i = %i\nresult f = %f";
    auto exact = Run("lower", lines, {{2.1}}), rounded = Run("lower", lines, {{2.1}}, 1, true);
    EXPECT_EQ(exact["h"][0], 2.1);
    EXPECT_EQ(exact["i"][0], 2.0); /* integers always */
    EXPECT_EQ(rounded["h"][0], amp_round_f16(2.1f));
    EXPECT_EQ(rounded["b"][0], amp_round_bf16(2.1f));
    EXPECT_EQ(rounded["t"][0], amp_round_tf32(2.1f));
    EXPECT_EQ(rounded["f"][0], static_cast<float>(4.2));
    EXPECT_EQ(exact["f"][0], 4.2);
}

TEST_F(Interp, BadCallsAreErrorsThatNameTheInput) {
    Module *m =
        Read("module \"m\" stage lower { } func f { input %x : f32[N, 2] \n%1 = neg(%x) : f32[N, 2]\nresult y = %1 }");
    ASSERT_NE(m, nullptr) << error_;
    const Func *f = m->funcs.data[0];
    InterpTensor result, given = interp_tensor(&arena_, "x", ir_shape(f, f->inputs.data[0]), {3, 1});
    InterpOptions options = {};
    amp_error err = {};
    EXPECT_EQ(interp_run(f, {3, 1}, &options, nullptr, 0, &result, &err), AMP_INVALID_ARGUMENT);
    EXPECT_STREQ(err.message, "f: input %x is not given");
    EXPECT_EQ(interp_run(f, {4, 1}, &options, &given, 1, &result, &err), AMP_INVALID_ARGUMENT);
    EXPECT_STREQ(err.message, "f: input %x must have shape [N, 2] at N = 4");
    EXPECT_EQ(interp_run(f, {0, 1}, &options, &given, 1, &result, &err), AMP_INVALID_ARGUMENT);
    EXPECT_STREQ(err.message, "f: N must be at least 1");
    std::swap(ir_op_at(f, 0)->in[0], ir_op_at(f, 0)->out[0]);
    EXPECT_EQ(interp_run(f, {3, 1}, &options, &given, 1, &result, &err), AMP_INVALID_ARGUMENT);
    EXPECT_STREQ(err.message, "f: neg (no path): reads a value that is not computed before it");
}

} // namespace
