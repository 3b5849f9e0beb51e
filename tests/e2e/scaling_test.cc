// Loss scaling, on the CPU and on the stand-in for a GPU: a skipped step changes nothing but the scaler; the floor is
// sticky; unscaled precisions have no scaler.
#include "tests/base/planted.h"
#include "tests/e2e/harness.h"

#include <cmath>
#include <limits>

namespace {

using e2e::Training;
using Scaling = e2e::OnDevice;

std::vector<float> moments(Training &r) {
    std::vector<float> all;
    for (const char *name : {"fc1.weight", "fc1.bias", "fc2.weight", "fc3.weight", "fc3.bias"}) {
        amp_tensor_info t = {};
        amp_model_info info;
        amp_model_get_info(r.model, &info);
        for (int i = 0; i < info.param_count; i++) {
            EXPECT_EQ(amp_model_param_at(r.model, i, &t, &r.err), AMP_OK);
            if (std::string(t.name) == name) break;
        }
        size_t count = 1;
        for (int d = 0; d < t.rank; d++) count *= static_cast<size_t>(t.dims[d]);
        for (const char *slot : {"/m", "/v"}) {
            std::vector<float> data(count);
            EXPECT_EQ(amp_session_get_moment(r.session, (std::string(name) + slot).c_str(), data.data(), count, &r.err),
                      AMP_OK)
                << r.err.message;
            all.insert(all.end(), data.begin(), data.end());
        }
    }
    return all;
}

TEST_F(Scaling, ASkippedStepChangesNothingButTheScaler) {
    std::string path = e2e::compile_to_file(e2e::mlp("fp16 { loss_scale = dynamic(init = 1024.0) }"), "skip.so");
    Training r(path, 64, 2);
    ASSERT_TRUE(r.ok());
    e2e::train(r, 3);
    std::vector<float> weights = e2e::all_params(r), state = moments(r);
    amp_scaler_state before, after;
    ASSERT_EQ(amp_session_get_scaler(r.session, &before, &r.err), AMP_OK);
    for (float bad : {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
        e2e::Batch b(45, 19, 10, 7);
        b.x[44 * 19 + 18] = bad;
        amp_step_report report;
        ASSERT_EQ(amp_step(r.session, b.inputs(), {45, 0}, &report, &r.err), AMP_OK) << r.err.message;
        EXPECT_EQ(report.skipped, 1);
        EXPECT_EQ(report.step, 3);
    }
    EXPECT_TRUE(e2e::same_bits(weights, e2e::all_params(r)));
    EXPECT_TRUE(e2e::same_bits(state, moments(r)));
    ASSERT_EQ(amp_session_get_scaler(r.session, &after, &r.err), AMP_OK);
    EXPECT_EQ(after.scale, before.scale / 4);
    EXPECT_EQ(after.growth_tracker, 0);
    EXPECT_EQ(after.step, 3);
    EXPECT_EQ(after.iteration, 5);
    // what a skipped step must not do either: spoil the copies that products read
    e2e::Batch b(45, 19, 10, 8);
    double loss, acc;
    ASSERT_EQ(amp_eval(r.session, b.inputs(), {45, 0}, &loss, &acc, &r.err), AMP_OK);
    EXPECT_TRUE(std::isfinite(loss));
    ASSERT_EQ(amp_step(r.session, b.inputs(), {45, 0}, nullptr, &r.err), AMP_OK);
    ExpectFound("a step that is made", "weights", [&] { EXPECT_TRUE(e2e::same_bits(weights, e2e::all_params(r))); });
    ExpectFound("a step that is made", "state", [&] { EXPECT_TRUE(e2e::same_bits(state, moments(r))); });
}

TEST_F(Scaling, TheFloorIsSticky) {
    std::string path = e2e::compile_to_file(e2e::mlp("fp16 { loss_scale = dynamic(init = 4.0) }"), "floor.so");
    Training r(path, 64);
    ASSERT_TRUE(r.ok());
    e2e::Batch bad(45, 19, 10, 7), good(45, 19, 10, 8);
    bad.x[0] = std::numeric_limits<float>::infinity();
    amp_step_report report;
    EXPECT_EQ(amp_step(r.session, bad.inputs(), {45, 0}, &report, &r.err), AMP_OK); // 4 -> 2
    EXPECT_EQ(amp_step(r.session, bad.inputs(), {45, 0}, &report, &r.err), AMP_OK); // 2 -> 1
    EXPECT_EQ(amp_step(r.session, bad.inputs(), {45, 0}, &report, &r.err), AMP_SCALE_AT_FLOOR);
    EXPECT_EQ(report.at_floor, 1);
    EXPECT_EQ(report.scale, 1.0f);
    EXPECT_EQ(amp_step(r.session, good.inputs(), {45, 0}, &report, &r.err), AMP_SCALE_AT_FLOOR);
    amp_scaler_state s;
    ASSERT_EQ(amp_session_get_scaler(r.session, &s, &r.err), AMP_OK);
    EXPECT_EQ(s.scale, 1.0f);
    s.scale = 1024;
    s.floor_hits = 0;
    ASSERT_EQ(amp_session_set_scaler(r.session, &s, &r.err), AMP_OK);
    EXPECT_EQ(amp_step(r.session, good.inputs(), {45, 0}, &report, &r.err), AMP_OK) << r.err.message;
}

// However often gradients overflow, the scale stays one that a good batch survives.
TEST_F(Scaling, TheScaleNeverMakesWeightsNaN) {
    std::string path =
        e2e::compile_to_file(e2e::mlp("fp16 { loss_scale = dynamic(init = 1024.0, min = 1.2e-38) }"), "dive.so");
    Training r(path, 64);
    ASSERT_TRUE(r.ok());
    e2e::Batch bad(45, 19, 10, 7), good(45, 19, 10, 8);
    bad.x[0] = std::numeric_limits<float>::infinity();
    amp_step_report report = {};
    amp_status status = AMP_OK;
    for (int i = 0; i < 145; i++) status = amp_step(r.session, bad.inputs(), {45, 0}, &report, &r.err);
    EXPECT_EQ(status, AMP_SCALE_AT_FLOOR);
    EXPECT_EQ(report.scale, 1.2e-38f);
    EXPECT_EQ(amp_step(r.session, good.inputs(), {45, 0}, &report, &r.err), AMP_SCALE_AT_FLOOR);
    EXPECT_EQ(report.skipped, 0);
    for (float w : e2e::all_params(r)) ASSERT_TRUE(std::isfinite(w));
}

TEST_F(Scaling, GrowsAfterTheInterval) {
    std::string path =
        e2e::compile_to_file(e2e::mlp("fp16 { loss_scale = dynamic(init = 8.0, interval = 3) }"), "grow.so");
    Training r(path, 64);
    ASSERT_TRUE(r.ok());
    e2e::train(r, 7);
    amp_scaler_state s;
    ASSERT_EQ(amp_session_get_scaler(r.session, &s, &r.err), AMP_OK);
    EXPECT_EQ(s.scale, 32.0f);
    EXPECT_EQ(s.growth_tracker, 1);
}

TEST_F(Scaling, TheScaleDoesNotChangeTheUpdateMuch) {
    std::vector<std::vector<float>> results;
    for (const char *scale : {"1.0", "256.0"}) {
        std::string path = e2e::compile_to_file(
            e2e::mlp(std::string("fp16 { loss_scale = static(") + scale + ") }", 19, 37, 10, "sgd(lr = 0.1)"),
            "static.so");
        Training r(path, 64);
        ASSERT_TRUE(r.ok());
        e2e::train(r, 3);
        results.push_back(e2e::all_params(r));
    }
    double difference = 0;
    for (size_t i = 0; i < results[0].size(); i++)
        difference = std::max(difference, std::fabs(double(results[0][i]) - results[1][i]));
    EXPECT_LT(difference, 1e-3);
    EXPECT_GT(difference, 0);
}

TEST_F(Scaling, OnlyFp16IsScaled) {
    for (const char *precision : {"fp32", "tf32", "bf16"}) {
        std::string path = e2e::compile_to_file(e2e::mlp(precision), std::string("unscaled-") + precision + ".so");
        Training r(path, 64);
        ASSERT_TRUE(r.ok());
        amp_model_info info;
        amp_model_get_info(r.model, &info);
        EXPECT_EQ(info.scaler, nullptr) << precision;
    }
}

} // namespace
