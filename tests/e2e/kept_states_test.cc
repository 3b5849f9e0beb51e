// kept_states_test.cc: a state whose new value is not finite keeps the one that it has, in steps that are not skipped;
// and a batch of one value a channel leaves running statistics as they are.
#include "tests/e2e/harness.h"

#include <cmath>
#include <limits>

namespace {

using e2e::Training;
using KeptStates = e2e::OnDevice;

const float kInfinity = std::numeric_limits<float>::infinity();

std::vector<float> Values(Training &r, const char *name, size_t count) {
    std::vector<float> v(count, NAN);
    EXPECT_EQ(amp_params_get(r.params, name, v.data(), count, &r.err), AMP_OK) << r.err.message;
    return v;
}

amp_step_report Step(Training &r, const std::vector<const void *> &inputs, int64_t n) {
    amp_step_report report = {};
    EXPECT_EQ(amp_step(r.session, inputs.data(), {n, 0}, &report, &r.err), AMP_OK) << r.err.message;
    return report;
}

// ---- states that gradients do not pass ------------------------------------------------------------------------------

// What x makes is cut off, clamped, or read by no loss; w alone is trained, of s.
std::string Tracked(const std::string &precision, const std::string &more = "") {
    return "amp 1\nblock tracked(h) {\n state avg: f32[2] = zeros()\n state seen: i64 = zeros()\n"
           " update avg = 0.5 * avg + 0.5 * mean(h; dims = 0)\n update seen = seen + 1\n"
           " return clamp(h; low = 0.0, high = 6.0)\n}\n"
           "model m(x: f32[N, 2], s: f32[N, 2]) -> y, q {\n param w: f32[2] = ones()\n"
           " a = tracked(x) as a\n b = tracked(s) as b\n y = s * w + detach(a) + b\n"
           " q = batch_norm(x) as bn\n}\ntrain m {\n loss = mean(y * y)\n optimizer = sgd(0.125)\n" +
           more + "}\nprecision " + precision + "\n";
}

// bn has parameters that the loss does not reach.
std::string Trained(const std::string &precision, const std::string &more = "") {
    std::string text = Tracked(precision, more);
    return text.replace(text.find("train m {"), 9, "train m for \"w\" {");
}

std::vector<std::string> Precisions() {
    return {"fp32 { }", "bf16 { }", "fp16 { loss_scale = dynamic(init = 256.0) }"};
}

TEST_F(KeptStates, AreThoseWhoseNewValueIsNotFinite) {
    for (const std::string &precision : Precisions()) {
        SCOPED_TRACE(precision);
        Training r(e2e::compile_to_file(Trained(precision), "kept.so"), 2);
        ASSERT_TRUE(r.ok());
        const std::vector<float> x = {1, 2, 3, 6}, bad = {1, 2, kInfinity, 6}, s = {1, 0, 1, 2};
        amp_step_report report = Step(r, {x.data(), s.data()}, 2);
        EXPECT_EQ(report.states_kept, 0);
        EXPECT_EQ(Values(r, "a.avg", 2), (std::vector<float>{1, 2}));
        EXPECT_EQ(Values(r, "bn.running_mean", 2), (std::vector<float>{0.1f * 2, 0.1f * 4}));
        report = Step(r, {bad.data(), s.data()}, 2);
        EXPECT_EQ(report.skipped, 0);
        EXPECT_EQ(report.step, 2);
        EXPECT_TRUE(std::isfinite(report.loss));
        EXPECT_EQ(report.states_kept, 3); // a.avg, bn.running_mean and .running_var
        EXPECT_EQ(report.too_few, 0);
        EXPECT_EQ(Values(r, "a.avg", 2), (std::vector<float>{1, 2})) << "all of it";
        EXPECT_EQ(Values(r, "a.seen", 1), (std::vector<float>{2})) << "a state by itself";
        EXPECT_EQ(Values(r, "b.avg", 2), (std::vector<float>{0.75f, 0.75f}));
        EXPECT_EQ(Values(r, "bn.running_mean", 2), (std::vector<float>{0.1f * 2, 0.1f * 4}));
        EXPECT_EQ(Values(r, "bn.running_var", 2), (std::vector<float>{0.9f + 0.1f * 2, 0.9f + 0.1f * 8}));
        EXPECT_EQ(Values(r, "bn.num_batches_tracked", 1), (std::vector<float>{1})) << "batches that count";
        report = Step(r, {x.data(), s.data()}, 2);
        EXPECT_EQ(report.states_kept, 0);
        EXPECT_EQ(Values(r, "a.avg", 2), (std::vector<float>{1.5f, 3}));
        int64_t first = 0;
        EXPECT_STREQ(amp_session_kept_state_name(r.session, 0, &first), "a.avg");
        EXPECT_EQ(first, 2);
        EXPECT_STREQ(amp_session_kept_state_name(r.session, 2, nullptr), "bn.running_var");
        EXPECT_EQ(amp_session_kept_state_name(r.session, 3, nullptr), nullptr);
    }
}

// Iterations begin again at a checkpoint's: what was kept in a step of the same number is over.
TEST_F(KeptStates, AreForgottenWhereACheckpointIsLoaded) {
    const std::string path = ::testing::TempDir() + "/kept_states.st";
    Training r(e2e::compile_to_file(Trained("fp32 { }"), "kept_load.so"), 2);
    ASSERT_TRUE(r.ok());
    const std::vector<float> x = {1, 2, 3, 6}, bad = {1, 2, kInfinity, 6}, s = {1, 0, 1, 2};
    (void)Step(r, {x.data(), s.data()}, 2);
    ASSERT_EQ(amp_checkpoint_save(r.session, path.c_str(), nullptr, &r.err), AMP_OK) << r.err.message;
    EXPECT_EQ(Step(r, {bad.data(), s.data()}, 2).states_kept, 3);
    ASSERT_EQ(amp_checkpoint_load(r.session, path.c_str(), nullptr, 0, &r.err), AMP_OK) << r.err.message;
    const amp_step_report report = Step(r, {x.data(), s.data()}, 2);
    EXPECT_EQ(report.step, 2);
    EXPECT_EQ(report.states_kept, 0);
    EXPECT_EQ(Step(r, {bad.data(), s.data()}, 2).states_kept, 3);
}

// The micro-batches after it go on from those before it.
TEST_F(KeptStates, LoseTheMicroBatchAlone) {
    for (const std::string &precision : Precisions()) {
        SCOPED_TRACE(precision);
        Training r(e2e::compile_to_file(Trained(precision, " accumulate = 3\n"), "kept_micro.so"), 2);
        ASSERT_TRUE(r.ok());
        const std::vector<float> x = {1, 2, 3, 6}, bad = {1, 2, NAN, 6}, s = {1, 0, 1, 2};
        (void)Step(r, {x.data(), s.data()}, 2);
        (void)Step(r, {bad.data(), s.data()}, 2);
        const amp_step_report report = Step(r, {x.data(), s.data()}, 2);
        EXPECT_EQ(report.step, 1);
        EXPECT_EQ(report.states_kept, 3);
        EXPECT_EQ(Values(r, "a.avg", 2), (std::vector<float>{1.5f, 3}));
        EXPECT_EQ(Values(r, "a.seen", 1), (std::vector<float>{3}));
        EXPECT_EQ(Values(r, "bn.num_batches_tracked", 1), (std::vector<float>{2}));
    }
}

// A step that is skipped for its gradients changes no state, and is no news of one.
TEST_F(KeptStates, AreNotCountedInASkippedStep) {
    std::string text = Trained("fp16 { loss_scale = dynamic(init = 256.0) }");
    text.replace(text.find("s * w"), 5, "linear(s * w; out = 2, bias = false) as fc"); // in f16
    Training r(e2e::compile_to_file(text, "kept_skip.so"), 2);
    ASSERT_TRUE(r.ok());
    const std::vector<float> bad = {1, 2, kInfinity, 6}, s = {1, 0, kInfinity, 2};
    const amp_step_report report = Step(r, {bad.data(), s.data()}, 2);
    EXPECT_EQ(report.skipped, 1);
    EXPECT_EQ(report.states_kept, 0);
    EXPECT_EQ(amp_session_kept_state_name(r.session, 0, nullptr), nullptr);
}

// ---- one value a channel --------------------------------------------------------------------------------------------

std::string Norm(const std::string &shape, const std::string &more = "") {
    return "amp 1\nmodel m(x: f32[" + shape +
           "]) -> y {\n param w: f32[1] = ones()\n y = batch_norm(x * w) as bn\n}\n"
           "train m {\n loss = sum(y * y)\n optimizer = sgd(0.125)\n" +
           more + "}\nprecision fp32 { }\n";
}

// In float64: y = (w x - rm) / sqrt(rv + eps) g + b, and the gradients of sum(y^2), statistics being numbers.
TEST_F(KeptStates, NormaliseABatchOfOneValue) {
    for (const char *shape : {"N, 2", "N, 2, 1, 1"}) {
        SCOPED_TRACE(shape);
        Training r(e2e::compile_to_file(Norm(shape), "one.so"), 4);
        ASSERT_TRUE(r.ok());
        amp_model_info info;
        amp_model_get_info(r.model, &info);
        EXPECT_EQ(info.least_batch, 2);
        const std::vector<float> x = {3, -1};
        const float mean[] = {1, 0.5f}, variance[] = {4, 0.25f}, weight[] = {2, 3}, bias[] = {0.5f, -1};
        ASSERT_EQ(amp_params_set(r.params, "bn.running_mean", mean, 2, &r.err), AMP_OK);
        ASSERT_EQ(amp_params_set(r.params, "bn.running_var", variance, 2, &r.err), AMP_OK);
        ASSERT_EQ(amp_params_set(r.params, "bn.weight", weight, 2, &r.err), AMP_OK);
        ASSERT_EQ(amp_params_set(r.params, "bn.bias", bias, 2, &r.err), AMP_OK);
        double loss = 0, dw = 0;
        float after[2], after_bias[2];
        for (int c = 0; c < 2; c++) {
            const double rstd = 1 / std::sqrt((double)variance[c] + 1e-5), h = ((double)x[c] - mean[c]) * rstd;
            const double y = h * weight[c] + bias[c];
            loss += y * y;
            dw += 2 * y * weight[c] * rstd * x[c];
            after[c] = static_cast<float>(weight[c] - 0.125 * 2 * y * h);
            after_bias[c] = static_cast<float>(bias[c] - 0.125 * 2 * y);
        }
        const amp_step_report report = Step(r, {x.data()}, 1);
        EXPECT_NEAR(report.loss, loss, 1e-5);
        EXPECT_EQ(report.states_kept, 1); // the variance
        EXPECT_EQ(report.too_few, 1);
        EXPECT_EQ(amp_session_kept_state_name(r.session, 0, nullptr), nullptr);
        EXPECT_NEAR(Values(r, "w", 1)[0], 1 - 0.125 * dw, 1e-5);
        for (size_t c = 0; c < 2; c++) {
            EXPECT_NEAR(Values(r, "bn.weight", 2)[c], after[c], 1e-5);
            EXPECT_NEAR(Values(r, "bn.bias", 2)[c], after_bias[c], 1e-5);
        }
        EXPECT_EQ(Values(r, "bn.running_mean", 2), (std::vector<float>{mean[0], mean[1]}));
        EXPECT_EQ(Values(r, "bn.running_var", 2), (std::vector<float>{variance[0], variance[1]}));
        EXPECT_EQ(Values(r, "bn.num_batches_tracked", 1), (std::vector<float>{0}));
    }
}

// One micro-batch of a step has one sample; the others count.
TEST_F(KeptStates, LeaveOutAMicroBatchOfOneValue) {
    Training r(e2e::compile_to_file(Norm("N, 2", " accumulate = 2\n"), "one_micro.so"), 4);
    ASSERT_TRUE(r.ok());
    const std::vector<float> x = {1, 2, 3, 6};
    (void)Step(r, {x.data()}, 1);
    const amp_step_report report = Step(r, {x.data()}, 2);
    EXPECT_EQ(report.too_few, 1);
    EXPECT_EQ(Values(r, "bn.running_mean", 2), (std::vector<float>{0.1f * 2, 0.1f * 4}));
    EXPECT_EQ(Values(r, "bn.num_batches_tracked", 1), (std::vector<float>{1}));
}

TEST_F(KeptStates, NeedNoMoreSamplesOfImages) {
    Training r(e2e::compile_to_file(Norm("N, 2, 1, 2"), "two.so"), 4);
    ASSERT_TRUE(r.ok());
    amp_model_info info;
    amp_model_get_info(r.model, &info);
    EXPECT_EQ(info.least_batch, 1);
    const std::vector<float> x = {1, 3, 2, 6};
    EXPECT_EQ(Step(r, {x.data()}, 1).states_kept, 0);
    EXPECT_EQ(Values(r, "bn.running_mean", 2), (std::vector<float>{0.1f * 2, 0.1f * 4}));
}

} // namespace
