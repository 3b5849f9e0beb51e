// What constructs of the language compute: gradients that are cut off, blocks that are applied again, conditions.
#include "tests/e2e/harness.h"

#include <cmath>

namespace {

using e2e::Training;

double step(Training &r, const std::vector<float> &x) {
    const void *inputs[] = {x.data()};
    amp_step_report report = {};
    EXPECT_EQ(amp_step(r.session, inputs, {static_cast<int64_t>(x.size()), 0}, &report, &r.err), AMP_OK)
        << r.err.message;
    return report.loss;
}

float number(Training &r, const char *name) {
    float v = NAN;
    EXPECT_EQ(amp_params_get(r.params, name, &v, 1, &r.err), AMP_OK) << r.err.message;
    return v;
}

// ---- detach ---------------------------------------------------------------------------------------------------------

const std::vector<float> kTwo = {1.0f, 3.0f}; // of mean 2 and of mean square 5

// d/dw of mean(y * y) is 2 w mean(x^2); where one of the factors is detached, half of that.
TEST(Detach, IsTheValueAndNoGradient) {
    for (const char *precision : {"fp32", "fp16"}) {
        SCOPED_TRACE(precision);
        std::string text = "amp 1\nmodel m(x: f32[N]) -> y {\n param w: f32[1] = constant(1.5)\n y = x * w\n}\n"
                           "train m {\n loss = mean(y * detach(y))\n optimizer = sgd(0.125)\n}\nprecision ";
        Training r(e2e::compile_to_file(text + precision + " { }\n", "detach.so"), 2);
        ASSERT_TRUE(r.ok());
        EXPECT_NEAR(step(r, kTwo), 1.5 * 1.5 * 5, 1e-6);
        EXPECT_NEAR(number(r, "w"), 1.5 - 0.125 * 1.5 * 5, 1e-6);
    }
}

// A generator and a critic under one loss: what the critic thinks of detached fakes trains the critic alone.
TEST(Detach, TheCriticsLossLeavesTheGeneratorAlone) {
    const std::string model = "amp 1\nmodel gan(z: f32[N]) -> made, of_made {\n"
                              " param gen: f32[1] = constant(0.5)\n param critic: f32[1] = constant(2.0)\n"
                              " made = z * gen\n of_made = MADE * critic\n}\n"
                              "train gan {\n loss thinks = mean(of_made)\n loss size = mean(made)\n"
                              " optimizer = sgd(0.25)\n}\nprecision fp32 { }\n";
    for (bool detached : {true, false}) {
        std::string text = model;
        text.replace(text.find("MADE"), 4, detached ? "detach(made)" : "made");
        Training r(e2e::compile_to_file(text, "detach_gan.so"), 2);
        ASSERT_TRUE(r.ok());
        EXPECT_NEAR(step(r, kTwo), 2 * 0.5 * 2.0 + 2 * 0.5, 1e-6);
        EXPECT_NEAR(number(r, "gen"), 0.5 - 0.25 * (2 + (detached ? 0 : 2 * 2.0)), 1e-6);
        EXPECT_NEAR(number(r, "critic"), 2.0 - 0.25 * 2 * 0.5, 1e-6);
    }
}

TEST(Detach, OfAnInputAndOfAParameterIsAResult) {
    const char text[] = "amp 1\nmodel m(x: f32[N]) -> same, w {\n param p as w: f32[1] = constant(4.0)\n"
                        " same = detach(x)\n w = detach(p)\n}\nprecision fp32 { }\n";
    amp_compile_options options = {};
    e2e::Compiled c = e2e::compile(text, options);
    EXPECT_EQ(c.status, AMP_OK) << c.message << c.diagnostics;
}

// Not one kernel more than without it.
TEST(Detach, CostsNoKernel) {
    const std::string model = "amp 1\nmodel m(x: f32[N, 8]) -> y {\n h = relu(linear(x; out = 8) as a)\n"
                              " y = linear(H; out = 8) as b\n}\nprecision fp16 { }\n";
    auto kernels = [&](const char *h) {
        std::string text = model;
        text.replace(text.find("(H"), 2, std::string("(") + h);
        amp_compile_options options = {};
        options.emit = AMP_EMIT_IR;
        e2e::Compiled c = e2e::compile(text, options);
        EXPECT_EQ(c.status, AMP_OK) << c.message << c.diagnostics;
        int count = 0;
        for (size_t at = c.bytes.find("  kernel "); at != std::string::npos; at = c.bytes.find("  kernel ", at + 1))
            count++;
        EXPECT_GT(count, 0);
        return count;
    };
    EXPECT_EQ(kernels("detach(h)"), kernels("h"));
}

// ---- sharing --------------------------------------------------------------------------------------------------------

std::vector<float> trained(const std::string &text) {
    Training r(e2e::compile_to_file(text, "sharing.so"), 5);
    if (!r.ok()) return {};
    std::vector<float> x(20);
    for (size_t i = 0; i < x.size(); i++) x[i] = std::sin(static_cast<float>(i));
    const void *inputs[] = {x.data()};
    amp_step_report report;
    for (int i = 0; i < 3; i++)
        EXPECT_EQ(amp_step(r.session, inputs, {5, 0}, &report, &r.err), AMP_OK) << r.err.message;
    return e2e::all_params(r);
}

// Gradients of both applications reach the parameter, as if it had been written out.
TEST(Sharing, TrainsAsTheSameParamUsedTwice) {
    const std::string train = "train m {\n loss = mean(y * y)\n optimizer = adam(0.01)\n}\n";
    for (const char *precision : {"precision fp32 { }\n", "precision fp16 { }\n"}) {
        std::string shared = "amp 1\nmodel m(x: f32[N, 4]) -> y {\n h = tanh(linear(x; out = 4) as fc)\n"
                             " y = linear(h) sharing fc\n init \"fc.*\" = constant(0.5)\n}\n",
                    written = "amp 1\nmodel m(x: f32[N, 4]) -> y {\n param w as fc.weight: f32[4, 4] = constant(0.5)\n"
                              " param b as fc.bias: f32[4] = constant(0.5)\n h = tanh(linear(x, w, b))\n"
                              " y = linear(h, w, b)\n}\n";
        std::vector<float> a = trained(shared + train + precision), b = trained(written + train + precision);
        ASSERT_EQ(a.size(), 20u);
        EXPECT_NE(a[0], 0.5f);
        EXPECT_TRUE(e2e::same_bits(a, b)) << precision;
    }
}

// Momentum 0.5: the running mean goes from 0 to m1 / 2, and on to m1 / 4 + m2 / 2.
TEST(Sharing, RunningStatisticsFollowBothApplications) {
    for (const char *settings : {"", " accumulate = 2\n"}) {
        std::string text = std::string("amp 1\nmodel m(x: f32[N, 1], z: f32[N, 1]) -> y {\n"
                                       " a = batch_norm(x; momentum = 0.5) as bn\n b = batch_norm(z) sharing bn\n"
                                       " y = a + b\n}\ntrain m {\n loss = mean(y * y)\n optimizer = sgd(0.1)\n") +
                           settings + "}\nprecision fp32 { }\n";
        Training r(e2e::compile_to_file(text, "sharing_bn.so"), 2);
        ASSERT_TRUE(r.ok());
        const float x[] = {1, 3}, z[] = {10, 20};
        const void *inputs[] = {x, z};
        amp_step_report report;
        double mean = 0;
        for (int i = 0; i < (*settings ? 2 : 1); i++) {
            ASSERT_EQ(amp_step(r.session, inputs, {2, 0}, &report, &r.err), AMP_OK) << r.err.message;
            mean = (mean * 0.5 + 2 * 0.5) * 0.5 + 15 * 0.5;
        }
        EXPECT_NEAR(number(r, "bn.running_mean"), mean, 1e-5);
    }
}

// y is w (x - 2) / sqrt(4 + eps) + b by statistics that stay what they are; what is not frozen is trained.
TEST(Frozen, NormsKeepTheirStatistics) {
    const std::string norm = " y = batch_norm(x; eps = 0.0, frozen = true) as bn\n}\n",
                      train = "train m {\n loss = mean(y)\n optimizer = sgd(0.5)\n";
    for (const char *group : {"", " group \"bn.weight\": frozen = true\n"}) {
        Training r(e2e::compile_to_file("amp 1\nmodel m(x: f32[N, 1]) -> y {\n" + norm + train + group +
                                            "}\nprecision fp32 { }\n",
                                        "frozen_bn.so"),
                   2);
        ASSERT_TRUE(r.ok());
        const float mean = 2, variance = 4, x[] = {1, 5};
        ASSERT_EQ(amp_params_set(r.params, "bn.running_mean", &mean, 1, &r.err), AMP_OK) << r.err.message;
        ASSERT_EQ(amp_params_set(r.params, "bn.running_var", &variance, 1, &r.err), AMP_OK);
        const void *inputs[] = {x};
        amp_step_report report;
        ASSERT_EQ(amp_step(r.session, inputs, {2, 0}, &report, &r.err), AMP_OK) << r.err.message;
        EXPECT_NEAR(report.loss, (-0.5 + 1.5) / 2, 1e-6);
        EXPECT_EQ(number(r, "bn.running_mean"), 2);
        EXPECT_EQ(number(r, "bn.running_var"), 4);
        EXPECT_EQ(number(r, "bn.weight"), *group ? 1.0f : 0.75f);
        EXPECT_EQ(number(r, "bn.bias"), -0.5f);
    }
}

// ---- conditions -----------------------------------------------------------------------------------------------------

// By element and broadcast, in the forward and the backward pass.
// Losses written out over targets, and masks by large numbers, under the policies of `fp16` and of PyTorch.
TEST(AnySize, StaysFinite) {
    for (const char *precision : {"fp16", "\"torch-fp16\""}) {
        SCOPED_TRACE(precision);
        const std::string text = "amp 1\nmodel m(x: f32[N, 3], mask: f32[N, 3], t: f32[N]) -> y {\n"
                                 " h = linear(x; out = 3) as fc\n p = softmax(h + (mask - 1.0) * 1000000000.0)\n"
                                 " y = sum(p * h; dims = (1))\n}\n"
                                 "train m {\n d = y - t\n loss = mean(d * d)\n optimizer = sgd(0.0)\n}\nprecision ";
        Training r(e2e::compile_to_file(text + precision + " { loss_scale = static(1.0) }\n", "any_size.so"), 2);
        ASSERT_TRUE(r.ok());
        const float x[] = {0.5f, -2.0f, 3.0f, 1.0f, 4.0f, -8.0f}, mask[] = {1, 0, 1, 0, 0, 0},
                    t[] = {1000.0f, 90000.0f};
        const void *inputs[] = {x, mask, t};
        amp_step_report report = {};
        ASSERT_EQ(amp_step(r.session, inputs, {2, 0}, &report, &r.err), AMP_OK) << r.err.message;
        EXPECT_NEAR(report.loss, (1e6 + 8.1e9) / 2, 1e7);
    }
}

TEST(Conditions, AreCombinedByElement) {
    for (const char *precision : {"fp32", "fp16"}) {
        SCOPED_TRACE(precision);
        std::string text = "amp 1\nmodel m(x: f32[N, 3], low: f32[N]) -> y {\n param w: f32[3] = ones()\n"
                           " h = x * w\n inside = h > -1.0 and not h > 1.0\n"
                           " some = inside or reshape(low; shape = [N, 1]) < 0.0\n y = where(some, h, 0.0)\n}\n"
                           "train m {\n loss = sum(where(y != 0.0 and (y > 0.0 or y < 0.0), y, 0.0))\n"
                           " optimizer = sgd(0.5)\n}\nprecision ";
        Training r(e2e::compile_to_file(text + precision + " { }\n", "conditions.so"), 2);
        ASSERT_TRUE(r.ok());
        const float x[] = {0.5f, -2.0f, 3.0f, 1.0f, 4.0f, -8.0f}, low[] = {1.0f, -1.0f};
        const void *inputs[] = {x, low};
        amp_step_report report;
        ASSERT_EQ(amp_step(r.session, inputs, {2, 0}, &report, &r.err), AMP_OK) << r.err.message;
        EXPECT_EQ(report.loss, 0.5 + 1 + 4 - 8);
        EXPECT_EQ(e2e::all_params(r), (std::vector<float>{1 - 0.5f * 1.5f, 1 - 0.5f * 4, 1 + 0.5f * 8}));
    }
}

} // namespace
