// The training features of the language, from text to trained weights: accumulation, clipping, groups, schedules,
// several
// losses and train blocks, running statistics, evaluation in FP32.
#include "tests/base/planted.h"
#include "tests/e2e/harness.h"

#include <cmath>
#include <limits>
#include <map>

namespace {

using e2e::Batch;
using e2e::Training;

// A perceptron with what a step may have: statistics, dropout, a schedule, groups, clipping, a metric of averages.
std::string rich(const std::string &precision, const std::string &settings,
                 const std::string &rate = "cosine(peak = 0.01, warmup = 2, steps = 20)") {
    return "amp 1\n"
           "model rich(x: f32[N, 19]) -> logits {\n"
           "    h      = linear(x; out = 37) as fc1\n"
           "    h      = dropout(relu(batch_norm(h) as bn); p = 0.1)\n"
           "    logits = linear(h; out = 10) as fc2\n"
           "}\n"
           "train rich {\n"
           "    input  targets: i32[N]\n"
           "    loss      = cross_entropy(logits, targets)\n"
           "    metric    acc = accuracy(logits, targets)\n"
           "    metric    ppl = exp(loss)\n"
           "    optimizer = adamw(lr = " +
           rate +
           ", weight_decay = 0.1)\n"
           "    group \"*.bias\": weight_decay = 0.0, lr_scale = 0.5\n"
           "    clip_norm = 1.0\n" +
           settings +
           "}\n"
           "precision " +
           precision + "\n";
}

// Compiled once for all tests that ask for it.
const std::string &compiled(const std::string &name, const std::string &text) {
    static std::map<std::string, std::string> paths;
    std::string &path = paths[name];
    if (path.empty()) path = e2e::compile_to_file(text, name + ".so");
    return path;
}

const std::string &rich_model(const std::string &precision) {
    return compiled("rich-" + precision, rich(precision + " { eval_precision = fp32 }", "    accumulate = 4\n"));
}

std::vector<float> param(Training &r, const char *name, size_t count) {
    std::vector<float> data(count);
    EXPECT_EQ(amp_params_get(r.params, name, data.data(), count, &r.err), AMP_OK) << r.err.message;
    return data;
}

amp_step_report step(Training &r, Batch &b) {
    amp_step_report report = {};
    EXPECT_EQ(amp_step(r.session, b.inputs(), {b.n, 0}, &report, &r.err), AMP_OK) << r.err.message;
    return report;
}

// ---- parameters of one row or column
// -----------------------------------------------------------------------------------

// y = x + row: its gradient is a sum over the samples, reduced and applied in one kernel. Two steps of momentum, in
// double.
void expect_row_learns(double rate) {
    Training r(compiled("row", "amp 1\n"
                               "model row(x: f32[N, 4]) -> y {\n"
                               "    param row: f32[1, 4] = normal(std = 1.0)\n"
                               "    param column: f32[3, 1] = normal(std = 1.0)\n"
                               "    y = x + row + sum(column)\n"
                               "}\n"
                               "train row {\n"
                               "    input  t: f32[N, 4]\n"
                               "    loss      = mse_loss(y, t)\n"
                               "    optimizer = sgd(lr = 0.5, momentum = 0.5)\n"
                               "}\n"),
               8);
    ASSERT_TRUE(r.ok());
    Batch x(8, 4, 2, 5), t(8, 4, 2, 6);
    const void *inputs[] = {x.x.data(), t.x.data()};
    std::vector<float> row = param(r, "row", 4), column = param(r, "column", 3);
    std::vector<double> a(row.begin(), row.end()), c(column.begin(), column.end()), va(4), vc(3);
    for (int s = 0; s < 2; s++) {
        double da[4] = {}, dc = 0;
        for (int i = 0; i < 32; i++) {
            double g = 2.0 / 32 * (x.x[i] + a[i % 4] + c[0] + c[1] + c[2] - t.x[i]);
            da[i % 4] += g;
            dc += g;
        }
        for (int j = 0; j < 4; j++) a[j] -= rate * (va[j] = 0.5 * va[j] + da[j]);
        for (int j = 0; j < 3; j++) c[j] -= rate * (vc[j] = 0.5 * vc[j] + dc);
        ASSERT_EQ(amp_step(r.session, inputs, {8, 0}, nullptr, &r.err), AMP_OK) << r.err.message;
    }
    row = param(r, "row", 4), column = param(r, "column", 3);
    for (int j = 0; j < 4; j++) EXPECT_NEAR(row[j], a[j], 1e-6);
    for (int j = 0; j < 3; j++) EXPECT_NEAR(column[j], c[j], 1e-6);
}

TEST(BroadcastParameters, OneRowLearns) { expect_row_learns(0.5); }

TEST(BroadcastParameters, PlantedRateIsFound) {
    ExpectFound("another learning rate", "row[j]", [] { expect_row_learns(0.5001); });
}

// ---- micro-batches
// ---------------------------------------------------------------------------------------------------

TEST(Accumulation, FourMicroBatchesAreOneBatchOfFourTimesTheSize) {
    auto text = [](const char *settings) {
        std::string t = e2e::mlp("fp32", 19, 37, 10, "adamw(lr = 0.01)");
        return t.insert(t.find("    loss "), settings);
    };
    Training parts(compiled("parts", text("    accumulate = 4\n    clip_norm = 0.5\n")), 8);
    Training whole(compiled("whole", text("    clip_norm = 0.5\n")), 32);
    ASSERT_TRUE(parts.ok() && whole.ok());
    amp_model_info info;
    amp_model_get_info(parts.model, &info);
    EXPECT_EQ(info.accumulate, 4);
    for (uint32_t s = 0; s < 6; s++) {
        Batch b(32, 19, 10, 100 + s);
        amp_step_report want = step(whole, b), got = {};
        for (int micro = 0; micro < 4; micro++) {
            const void *inputs[] = {&b.x[size_t(micro) * 8 * 19], &b.y[size_t(micro) * 8]};
            ASSERT_EQ(amp_step(parts.session, inputs, {8, 0}, &got, &parts.err), AMP_OK) << parts.err.message;
            EXPECT_EQ(got.complete, micro == 3);
            EXPECT_EQ(got.iteration, micro == 3 ? s + 1 : s);
            EXPECT_EQ(std::isnan(got.grad_norm), micro != 3);
        }
        EXPECT_EQ(want.complete, 1);
        EXPECT_NEAR(got.loss, want.loss, 1e-5);
        EXPECT_NEAR(got.grad_norm, want.grad_norm, 1e-5);
        double acc[2];
        ASSERT_EQ(amp_session_get_metrics(parts.session, &acc[0], &parts.err), AMP_OK);
        ASSERT_EQ(amp_session_get_metrics(whole.session, &acc[1], &whole.err), AMP_OK);
        EXPECT_NEAR(acc[0], acc[1], 1e-6);
    }
    std::vector<float> a = e2e::all_params(parts), b = e2e::all_params(whole);
    double difference = 0;
    for (size_t i = 0; i < a.size(); i++) difference = std::max(difference, std::fabs(double(a[i]) - b[i]));
    EXPECT_LT(difference, 1e-4); // Adam divides by small numbers: rounding of gradients near 0 is enlarged
}

TEST(Accumulation, AnOverflowInOneMicroBatchSkipsTheStepStatisticsIncluded) {
    Training r(rich_model("fp16"), 45, 2);
    ASSERT_TRUE(r.ok());
    e2e::train(r, 4);
    std::vector<float> before = e2e::all_params(r), moment = param(r, "bn.running_var", 37);
    amp_scaler_state scaler, after;
    ASSERT_EQ(amp_session_get_scaler(r.session, &scaler, &r.err), AMP_OK);
    amp_step_report report;
    for (uint32_t micro = 0; micro < 4; micro++) {
        Batch b(45, 19, 10, 50 + micro);
        if (micro == 2) b.x[7] = std::numeric_limits<float>::infinity();
        report = step(r, b);
    }
    EXPECT_EQ(report.complete, 1);
    EXPECT_EQ(report.skipped, 1);
    EXPECT_EQ(report.step, 1);
    EXPECT_EQ(report.iteration, 2);
    EXPECT_TRUE(e2e::same_bits(before, e2e::all_params(r)));
    ASSERT_EQ(amp_session_get_scaler(r.session, &after, &r.err), AMP_OK);
    EXPECT_EQ(after.scale, scaler.scale / 2);
    // the next step starts from clean sums and statistics
    e2e::train(r, 4, 45, 19, 10, 4);
    std::vector<float> now = e2e::all_params(r);
    EXPECT_FALSE(e2e::same_bits(before, now));
    for (float v : now) ASSERT_TRUE(std::isfinite(v));
    EXPECT_FALSE(e2e::same_bits(moment, param(r, "bn.running_var", 37)));
}

// With a learning rate of 0 the weights stay, so four micro-batches see what four steps see.
TEST(Accumulation, StatisticsGoThroughEveryMicroBatch) {
    Training parts(compiled("still-parts", rich("fp32 { }", "    accumulate = 4\n", "0.0")), 45);
    Training steps(compiled("still-steps", rich("fp32 { }", "", "0.0")), 45);
    ASSERT_TRUE(parts.ok() && steps.ok());
    e2e::train(parts, 8);
    e2e::train(steps, 8);
    EXPECT_TRUE(e2e::same_bits(e2e::all_params(parts), e2e::all_params(steps)));
    EXPECT_EQ(param(parts, "bn.num_batches_tracked", 1)[0], 8.0f);
    EXPECT_NE(param(parts, "bn.running_mean", 37)[0], 0.0f);
}

TEST(Accumulation, EachMicroBatchDrawsItsOwnMask) {
    Training r(rich_model("fp32"), 45);
    ASSERT_TRUE(r.ok());
    Batch b(45, 19, 10, 1);
    double first = step(r, b).loss, mean = step(r, b).loss, second = 2 * mean - first;
    EXPECT_GT(std::fabs(first - second), 1e-6);
}

TEST(Accumulation, NoCheckpointWithinAStep) {
    Training r(rich_model("fp32"), 45), other(rich_model("fp32"), 45, 1, 9);
    ASSERT_TRUE(r.ok() && other.ok());
    std::string path = e2e::temp_path("within.st");
    e2e::train(r, 4);
    ASSERT_EQ(amp_checkpoint_save(r.session, path.c_str(), nullptr, &r.err), AMP_OK) << r.err.message;
    e2e::train(r, 2, 45, 19, 10, 4);
    EXPECT_EQ(amp_checkpoint_save(r.session, path.c_str(), nullptr, &r.err), AMP_WRONG_STATE);
    EXPECT_NE(strstr(r.err.message, "2 of the 4 micro-batches"), nullptr) << r.err.message;
    e2e::train(r, 2, 45, 19, 10, 6);
    // loading drops the micro-batches that were run
    e2e::train(other, 3);
    ASSERT_EQ(amp_checkpoint_load(other.session, path.c_str(), nullptr, 0, &other.err), AMP_OK) << other.err.message;
    e2e::train(other, 4, 45, 19, 10, 4);
    EXPECT_TRUE(e2e::same_bits(e2e::all_params(r), e2e::all_params(other)));
}

class Rich : public ::testing::TestWithParam<const char *> {};

TEST_P(Rich, ThreadsAndInterruptionDoNotChangeBits) {
    std::string checkpoint = e2e::temp_path(std::string("rich-") + GetParam() + ".st");
    Training whole(rich_model(GetParam()), 64), first(rich_model(GetParam()), 64, 2),
        second(rich_model(GetParam()), 64, 2, 99);
    ASSERT_TRUE(whole.ok() && first.ok() && second.ok());
    e2e::train(whole, 20);
    e2e::train(first, 8);
    ASSERT_EQ(amp_checkpoint_save(first.session, checkpoint.c_str(), nullptr, &first.err), AMP_OK) << first.err.message;
    ASSERT_EQ(amp_checkpoint_load(second.session, checkpoint.c_str(), nullptr, 0, &second.err), AMP_OK)
        << second.err.message;
    e2e::train(second, 12, 45, 19, 10, 8);
    EXPECT_TRUE(e2e::same_bits(e2e::all_params(whole), e2e::all_params(second)));
}

TEST(Rich16, FusionAndLayoutDoNotChangeBits) {
    std::string text = rich("fp16 { eval_precision = fp32 }", "    accumulate = 4\n");
    amp_compile_options no_fuse = {}, no_layout = {};
    no_fuse.no_pass = "fuse";
    no_layout.no_pass = "layout";
    Training plain(rich_model("fp16"), 64);
    Training unfused(e2e::compile_to_file(text, "rich-nofuse.so", no_fuse), 64);
    Training rows(e2e::compile_to_file(text, "rich-nolayout.so", no_layout), 64);
    ASSERT_TRUE(plain.ok() && unfused.ok() && rows.ok());
    for (Training *r : {&plain, &unfused, &rows}) e2e::train(*r, 8);
    EXPECT_TRUE(e2e::same_bits(e2e::all_params(plain), e2e::all_params(unfused)));
    EXPECT_TRUE(e2e::same_bits(e2e::all_params(plain), e2e::all_params(rows)));
}

INSTANTIATE_TEST_SUITE_P(Precisions, Rich, ::testing::Values("fp32", "bf16", "fp16"),
                         [](const ::testing::TestParamInfo<const char *> &i) { return std::string(i.param); });

// ---- evaluation
// --------------------------------------------------------------------------------------------------------

TEST(Evaluation, InFp32WhereItWasCompiled) {
    Training half(rich_model("fp16"), 45), single(rich_model("fp32"), 45);
    ASSERT_TRUE(half.ok() && single.ok());
    amp::SessionOptions o;
    o.capacity.n = 45;
    o.precision = "fp32";
    amp_session *in_fp32 = nullptr;
    ASSERT_EQ(amp_session_create(half.model, half.params, &o, &in_fp32, &half.err), AMP_OK) << half.err.message;
    Batch b(45, 19, 10, 3);
    double loss[3], metrics[2];
    ASSERT_EQ(amp_eval(half.session, b.inputs(), {45, 0}, &loss[0], metrics, &half.err), AMP_OK);
    ASSERT_EQ(amp_eval(in_fp32, b.inputs(), {45, 0}, &loss[1], metrics, &half.err), AMP_OK);
    EXPECT_NEAR(metrics[1], std::exp(loss[1]), 1e-5);
    ASSERT_EQ(amp_eval(single.session, b.inputs(), {45, 0}, &loss[2], nullptr, &single.err), AMP_OK);
    EXPECT_EQ(loss[1], loss[2]);
    EXPECT_NE(loss[0], loss[2]);
    amp_session_release(in_fp32);
}

TEST(Evaluation, SaysHowToCompileForFp32) {
    Training r(compiled("plain-fp16", e2e::mlp("fp16")), 45);
    ASSERT_TRUE(r.ok());
    amp::SessionOptions o;
    o.precision = "fp32";
    amp_session *in_fp32 = nullptr;
    EXPECT_EQ(amp_session_create(r.model, r.params, &o, &in_fp32, &r.err), AMP_UNSUPPORTED);
    EXPECT_NE(strstr(r.err.message, "--eval-precision fp32"), nullptr) << r.err.message;
    o.precision = "bf16";
    EXPECT_EQ(amp_session_create(r.model, r.params, &o, &in_fp32, &r.err), AMP_INVALID_ARGUMENT);
}

TEST(Evaluation, PerplexityIsOfTheAverage) {
    Training r(rich_model("fp32"), 45);
    ASSERT_TRUE(r.ok());
    ASSERT_STREQ(amp_model_metric_name(r.model, 1), "ppl");
    double sum = 0, metrics[2], total[2] = {0, 0}, mean;
    ASSERT_EQ(amp_eval_begin(r.session, &r.err), AMP_OK);
    EXPECT_EQ(amp_eval_end(r.session, &mean, total, &r.err), AMP_WRONG_STATE);
    for (uint32_t i = 0; i < 3; i++) {
        Batch b(45, 19, 10, 20 + i);
        double loss;
        ASSERT_EQ(amp_eval(r.session, b.inputs(), {45, 0}, &loss, metrics, &r.err), AMP_OK);
        EXPECT_NEAR(metrics[1], std::exp(loss), 1e-4);
        sum += loss / 3;
        for (int m = 0; m < 2; m++) total[m] += metrics[m] / 3;
    }
    double acc = total[0];
    ASSERT_EQ(amp_eval_end(r.session, &mean, total, &r.err), AMP_OK);
    EXPECT_NEAR(mean, sum, 1e-9);
    EXPECT_NEAR(total[0], acc, 1e-9);
    EXPECT_NEAR(total[1], std::exp(sum), 1e-4);
}

// A loss over labels and one over samples, a metric over labels, one that is a name, a sum, and a root.
std::string parts(int64_t accumulate) {
    return "amp 1\n"
           "model parts(x: f32[N, 19]) -> logits { logits = linear(x; out = 10) as fc }\n"
           "train parts {\n"
           "    input targets: i32[N]\n"
           "    loss fit = cross_entropy(logits, targets)\n"
           "    loss small = 0.1 * mean(logits * logits)\n"
           "    metric acc = accuracy(logits, targets; ignore = -100)\n"
           "    metric total = loss\n"
           "    metric all = sum(logits)\n"
           "    metric root = sqrt(mean(logits * logits))\n"
           "    optimizer = sgd(0.5)\n"
           "    accumulate = " +
           std::to_string(accumulate) + "\n}\n";
}

// However samples are divided, figures and steps are the same as with one batch of all.
TEST(Evaluation, IsThatOfOneBatchOfAll) {
    const int64_t n = 12;
    Training whole(compiled("parts-1", parts(1)), n), split(compiled("parts-3", parts(3)), n);
    ASSERT_TRUE(whole.ok() && split.ok());
    Batch b(n, 19, 10, 7);
    for (int64_t i = 0; i < n; i++)
        if (i < 4 || i % 2) b.y[i] = -100; // the first micro-batch has no label
    double one[5], many[5];
    ASSERT_EQ(amp_eval(whole.session, b.inputs(), {n, 0}, &one[0], &one[1], &whole.err), AMP_OK);
    EXPECT_EQ(one[0], one[4]) << "total";
    for (int64_t size : {1, 4, 5}) {
        ASSERT_EQ(amp_eval_begin(split.session, &split.err), AMP_OK);
        for (int64_t from = 0; from < n; from += size) {
            const void *inputs[] = {&b.x[from * 19], &b.y[from]};
            ASSERT_EQ(amp_eval(split.session, inputs, {std::min(size, n - from), 0}, nullptr, nullptr, &split.err),
                      AMP_OK);
        }
        ASSERT_EQ(amp_eval_end(split.session, &many[0], &many[1], &split.err), AMP_OK) << split.err.message;
        for (int i = 0; i < 5; i++)
            EXPECT_NEAR(many[i], one[i], 2e-6 * std::max(1.0, std::fabs(one[i]))) << i << ", batches of " << size;
    }
    amp_step_report of_whole, of_split;
    ASSERT_EQ(amp_step(whole.session, b.inputs(), {n, 0}, &of_whole, &whole.err), AMP_OK);
    for (int64_t from = 0; from < n; from += 4) {
        const void *inputs[] = {&b.x[from * 19], &b.y[from]};
        ASSERT_EQ(amp_step(split.session, inputs, {4, 0}, &of_split, &split.err), AMP_OK);
    }
    EXPECT_NEAR(of_split.loss, of_whole.loss, 2e-6);
    const std::vector<float> want = e2e::all_params(whole), got = e2e::all_params(split);
    for (size_t i = 0; i < want.size(); i++) EXPECT_NEAR(got[i], want[i], 1e-6) << i;
}

// Samples against samples: b is a part of a, which the towers have to find out.
struct Views {
    std::vector<float> a, b;
    int64_t n;
    Views(int64_t n, uint32_t seed, int64_t width = 7) : a(n * 12), b(n * width), n(n) {
        for (float &v : a) v = static_cast<float>(e2e::Batch::next(seed) >> 8) / 8388608.0f - 1.0f;
        for (int64_t i = 0; i < n * width; i++) b[i] = a[i / width * 12 + i % width];
        for (int64_t i = 0; i < n && width == 12; i++) b[i * 12 + 11] = -b[i * 12 + 11];
    }
};

class ContrastTest : public ::testing::TestWithParam<const char *> {};

TEST_P(ContrastTest, Learns) {
    Training r(e2e::compile_to_file(e2e::contrast(16) + "precision " + GetParam() + " { }\n", "contrast.so"), 50);
    ASSERT_TRUE(r.ok());
    double first = 0, last = 0;
    for (uint32_t i = 0; i < 150; i++) {
        Views v(i % 2 ? 50 : 41, 7 + i);
        const void *inputs[] = {v.a.data(), v.b.data()};
        amp_step_report report = {};
        ASSERT_EQ(amp_step(r.session, inputs, {v.n, 0}, &report, &r.err), AMP_OK) << r.err.message;
        (i ? last : first) = report.loss;
    }
    EXPECT_NEAR(first, std::log(50.0), 1.0); // as good as guessing one of them
    EXPECT_LT(last, 0.5 * first);
    Views one(1, 3); // itself among one
    const void *inputs[] = {one.a.data(), one.b.data()};
    amp_step_report report = {};
    ASSERT_EQ(amp_step(r.session, inputs, {1, 0}, &report, &r.err), AMP_OK) << r.err.message;
    EXPECT_EQ(report.loss, 0.0);
}

TEST_P(ContrastTest, LearnsTwoViewsOfEachSample) {
    Training r(e2e::compile_to_file(e2e::views() + "precision " + GetParam() + " { }\n", "views.so"), 37);
    ASSERT_TRUE(r.ok());
    double first = 0, last = 0;
    for (uint32_t i = 0; i < 100; i++) {
        Views v(i % 2 ? 37 : 20, 7 + i, 12);
        const void *inputs[] = {v.a.data(), v.b.data()};
        amp_step_report report = {};
        ASSERT_EQ(amp_step(r.session, inputs, {v.n, 0}, &report, &r.err), AMP_OK) << r.err.message;
        (i ? last : first) = report.loss;
    }
    EXPECT_LT(last, 0.5 * first);
    Views v(5, 3, 12);
    const void *inputs[] = {v.a.data(), v.b.data()};
    double loss, acc;
    ASSERT_EQ(amp_eval(r.session, inputs, {5, 0}, &loss, &acc, &r.err), AMP_OK) << r.err.message;
    EXPECT_EQ(acc, 1.0);
    std::vector<float> u(10 * 33); // 2 N rows: a's, then b's
    void *outputs[] = {u.data()};
    ASSERT_EQ(amp_infer(r.session, inputs, {5, 0}, outputs, &r.err), AMP_OK) << r.err.message;
    const void *swapped[] = {v.b.data(), v.a.data()};
    std::vector<float> w(10 * 33);
    outputs[0] = w.data();
    ASSERT_EQ(amp_infer(r.session, swapped, {5, 0}, outputs, &r.err), AMP_OK) << r.err.message;
    for (size_t i = 0; i < 5 * 33; i++) {
        ASSERT_EQ(u[i], w[5 * 33 + i]) << i;
        ASSERT_EQ(w[i], u[5 * 33 + i]) << i;
    }
}

INSTANTIATE_TEST_SUITE_P(Precisions, ContrastTest, ::testing::Values("fp32", "bf16", "fp16"));

} // namespace
