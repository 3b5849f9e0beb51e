// What constructs of the language compute: gradients that are cut off.
#include "tests/e2e/harness.h"

#include <cmath>

namespace {

using e2e::Training;

double step(Training &r, const std::vector<float> &x) {
    const void *inputs[] = {x.data()};
    amp_step_report report = {};
    EXPECT_EQ(amp_step(r.session, inputs, static_cast<int64_t>(x.size()), &report, &r.err), AMP_OK) << r.err.message;
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

} // namespace
