// What a train block sets: schedules, groups, clipping, several losses and blocks; inputs that are indexes or bytes.
#include "tests/base/planted.h"
#include "tests/e2e/harness.h"

#include <cmath>
#include <functional>
#include <limits>

namespace {

using e2e::Training;

amp_step_report step(Training &r, const std::vector<const void *> &inputs, int64_t n) {
    amp_step_report report = {};
    EXPECT_EQ(amp_step(r.session, inputs.data(), {n, 0}, &report, &r.err), AMP_OK) << r.err.message;
    return report;
}

std::vector<float> param(Training &r, const char *name, size_t count) {
    std::vector<float> data(count);
    EXPECT_EQ(amp_params_get(r.params, name, data.data(), count, &r.err), AMP_OK) << r.err.message;
    return data;
}

std::vector<float> gradient(Training &r, const char *param, size_t count) {
    std::vector<float> data(count);
    std::string name = std::string("grad.") + param;
    EXPECT_EQ(amp_session_get_value(r.session, name.c_str(), nullptr, data.data(), count * sizeof(float), &r.err),
              AMP_OK)
        << r.err.message;
    return data;
}

// Three numbers whose loss is the mean of x times their sum: every gradient is the mean of x.
std::string weights(const std::string &optimizer, const std::string &settings = "") {
    return "amp 1\n"
           "model three(x: f32[N]) -> y {\n"
           "    param a: f32[1] = constant(1.0)\n"
           "    param b: f32[1] = constant(1.0)\n"
           "    param c: f32[1] = constant(1.0)\n"
           "    y = x * (a + b + c)\n"
           "}\n"
           "train three {\n"
           "    loss = mean(y)\n"
           "    optimizer = " +
           optimizer + "\n" + settings + "}\n";
}

// ---- schedules
// -----------------------------------------------------------------------------------------------------------

const double kPi = 3.14159265358979323846;

double half_cosine(double from, double to, double done) { return to + (from - to) * (1 + std::cos(kPi * done)) / 2; }

struct Schedule {
    const char *name, *call;
    std::function<double(double)> rate;
};

void expect_rates(const Schedule &c) {
    SCOPED_TRACE(c.name);
    Training r(e2e::compile_to_file(weights(std::string("sgd(lr = ") + c.call + ")"), std::string(c.name) + ".so"), 4);
    ASSERT_TRUE(r.ok());
    const std::vector<float> x = {1, 2, 3, 4};
    double want = 1;
    for (int s = 0; s < 12; s++) {
        step(r, {x.data()}, 4);
        want -= c.rate(s) * 2.5;
        EXPECT_NEAR(param(r, "a", 1)[0], want, 2e-6) << "after step " << s;
    }
}

TEST(Schedules, MoveTheLearningRateFromStepToStep) {
    const Schedule cases[] = {
        {"cosine", "cosine(peak = 0.1, warmup = 3, steps = 10, floor = 0.01)",
         [](double s) { return s < 3    ? 0.1 * (s + 1) / 3
                               : s < 10 ? half_cosine(0.1, 0.01, (s - 3) / 7)
                                        : 0.01; }},
        {"step", "step(base = 0.1, every = 3, gamma = 0.5)",
         [](double s) { return 0.1 * std::pow(0.5, std::floor(s / 3)); }},
        {"linear", "linear(peak = 0.1, warmup = 2, steps = 9)",
         [](double s) { return s < 2   ? 0.1 * (s + 1) / 2
                               : s < 9 ? 0.1 * (9 - s) / 7
                                       : 0.0; }},
        {"one_cycle", "one_cycle(peak = 0.1, steps = 12)",
         [](double s) {
             return s <= 2.6 ? half_cosine(0.004, 0.1, s / 2.6) : half_cosine(0.1, 0.004 / 1e4, (s - 2.6) / 8.4);
         }},
    };
    for (const Schedule &c : cases) expect_rates(c);
    const Schedule planted = {"planted", "step(base = 0.1, every = 3, gamma = 0.5)",
                              [&](double s) { return cases[1].rate(s + 1); }};
    ExpectFound("a rate a step early", "after step 2", [&] { expect_rates(planted); });
}

// ---- groups
// --------------------------------------------------------------------------------------------------------------

TEST(Groups, ScaleDecayAndFreeze) {
    std::string settings = "    group \"b\": lr_scale = 0.1, weight_decay = 0.5\n    group \"c\": frozen = true\n"
                           "    group \"*\": lr_scale = 1.0\n    group \"b\": lr_scale = 0.2\n";
    Training r(e2e::compile_to_file(weights("sgd(lr = 0.1)", settings), "groups.so"), 4);
    ASSERT_TRUE(r.ok());
    const std::vector<float> x = {1, 2, 3, 4};
    double a = 1, b = 1;
    for (int s = 0; s < 5; s++) {
        step(r, {x.data()}, 4);
        a -= 0.1 * 2.5;
        b -= 0.02 * (2.5 + 0.5 * b);
        EXPECT_NEAR(param(r, "a", 1)[0], a, 1e-6);
        EXPECT_NEAR(param(r, "b", 1)[0], b, 1e-6);
        EXPECT_EQ(param(r, "c", 1)[0], 1.0f);
    }
    float none;
    EXPECT_EQ(amp_session_get_moment(r.session, "c/momentum", &none, 1, &r.err), AMP_NOT_FOUND);
}

// What a model says of its parameters is what a session does with them: two blocks, the keys given and taken back.
TEST(Groups, TakeBackWhatAnEarlierOneGives) {
    const std::string text =
        "amp 1\nblock pair() -> y {\n"
        "    param a: f32[1] = constant(1.0)\n    param b: f32[1] = constant(1.0)\n    y = a + b\n}\n"
        "model two(x: f32[N]) -> y {\n    y = x * ((pair() as l) + (pair() as r))\n}\n"
        "train two for \"l.*\" {\n    loss = mean(y)\n    optimizer = sgd(0.1, momentum = 0.5)\n"
        "    group \"*\": frozen = true, lr_scale = 0.0\n    group \"*.b\": frozen = false, lr_scale = 1\n}\n"
        "train two for \"r.*\" {\n    loss = mean(y)\n    optimizer = sgd(0.1, momentum = 0.5)\n"
        "    group \"*\": frozen = false, weight_decay = 1\n    group \"*.a\": weight_decay = 0\n"
        "    group \"r.b\": frozen = true\n    group \"r.a\": frozen = true\n    group \"*.a\": frozen = false\n}\n";
    Training r(e2e::compile_to_file(text, "taken_back.so"), 4);
    ASSERT_TRUE(r.ok());
    const std::vector<float> x = {1, 2, 3, 4};
    step(r, {x.data()}, 4);
    amp_tensor_info info;
    for (int i = 0; !amp_model_param_at(r.model, i, &info, nullptr); i++) {
        amp_param_training how;
        ASSERT_EQ(amp_model_param_training_at(r.model, i, &how, &r.err), AMP_OK) << r.err.message;
        const std::string name = info.name;
        const bool trained = name == "l.b" || name == "r.a";
        EXPECT_EQ(how.trained, trained) << name;
        EXPECT_EQ(how.frozen_group < 0, trained) << name;
        EXPECT_FLOAT_EQ(param(r, info.name, 1)[0], trained ? 0.75f : 1.0f) << name;
        float moment;
        EXPECT_EQ(amp_session_get_moment(r.session, (name + "/momentum").c_str(), &moment, 1, &r.err),
                  trained ? AMP_OK : AMP_NOT_FOUND)
            << name;
    }
}

// ---- clipping
// ------------------------------------------------------------------------------------------------------------

// Gradients of every rank are part of the norm.
TEST(Clipping, WeightsOfConvolutions) {
    const char text[] = "amp 1\n"
                        "model m(x: f32[N, 2, 6, 6]) -> y {\n"
                        "    param gain: f32[1, 4, 1, 1] = constant(1.0)\n"
                        "    h = conv2d(x; out = 4, kernel = 3) as c\n"
                        "    y = linear(flatten(h * gain); out = 3) as head\n"
                        "}\n"
                        "train m {\n"
                        "    input t: i32[N]\n"
                        "    loss = cross_entropy(y, t)\n"
                        "    optimizer = sgd(lr = 1.0)\n"
                        "    clip_norm = 0.05\n"
                        "}\n"
                        "precision fp32 { }\n";
    Training r(e2e::compile_to_file(text, "clip_conv.so"), 5, 2, 3, true);
    ASSERT_TRUE(r.ok());
    const struct {
        const char *name;
        size_t count;
    } params[] = {{"gain", 4}, {"c.weight", 4 * 2 * 9}, {"c.bias", 4}, {"head.weight", 3 * 64}, {"head.bias", 3}};
    e2e::Batch b(5, 72, 3, 5);
    std::vector<std::vector<float>> before;
    for (const auto &p : params) before.push_back(param(r, p.name, p.count));
    amp_step_report report = step(r, {b.x.data(), b.y.data()}, 5);
    double squares = 0;
    for (const auto &p : params)
        for (float g : gradient(r, p.name, p.count)) squares += double(g) * g;
    double norm = std::sqrt(squares);
    EXPECT_NEAR(report.grad_norm, norm, 1e-5 * norm);
    ASSERT_GT(norm, 0.05);
    for (size_t i = 0; i < before.size(); i++) {
        std::vector<float> g = gradient(r, params[i].name, params[i].count),
                           w = param(r, params[i].name, params[i].count);
        for (size_t j = 0; j < g.size(); j++)
            ASSERT_NEAR(w[j], before[i][j] - g[j] * 0.05 / (norm + 1e-6), 1e-6) << params[i].name << " " << j;
    }
}

TEST(Clipping, ByNormThenByValue) {
    std::string text = e2e::mlp("fp32", 19, 37, 10, "sgd(lr = 1.0)");
    text.insert(text.find("    loss "), "    clip_norm = 0.05\n    clip_value = 0.01\n");
    Training r(e2e::compile_to_file(text, "clip.so"), 45, 2, 3, true);
    ASSERT_TRUE(r.ok());
    const struct {
        const char *name;
        size_t count;
    } params[] = {{"fc1.weight", 37 * 19}, {"fc1.bias", 37},        {"fc2.weight", 37 * 37},
                  {"fc2.bias", 37},        {"fc3.weight", 10 * 37}, {"fc3.bias", 10}};
    e2e::Batch b(45, 19, 10, 5);
    for (int s = 0; s < 3; s++) {
        std::vector<std::vector<float>> before;
        for (const auto &p : params) before.push_back(param(r, p.name, p.count));
        amp_step_report report = step(r, {b.x.data(), b.y.data()}, 45);
        double squares = 0, clipped = 0;
        for (const auto &p : params)
            for (float g : gradient(r, p.name, p.count)) squares += double(g) * g;
        double norm = std::sqrt(squares), factor = std::fmin(1, 0.05 / (norm + 1e-6));
        EXPECT_NEAR(report.grad_norm, norm, 1e-5 * norm);
        EXPECT_LT(factor, 1);
        for (size_t i = 0; i < before.size(); i++) {
            std::vector<float> g = gradient(r, params[i].name, params[i].count),
                               w = param(r, params[i].name, params[i].count);
            for (size_t j = 0; j < g.size(); j++) {
                double move = std::fmax(-0.01, std::fmin(0.01, g[j] * factor));
                clipped += std::fabs(move) == 0.01;
                ASSERT_NEAR(w[j], before[i][j] - move, 1e-6) << params[i].name << " " << j;
            }
        }
        EXPECT_TRUE(s || clipped > 0) << "the limit of the test is never reached";
    }
}

// inf clips nothing, to the bit, and has the norm reported.
TEST(Clipping, ByAnInfiniteNormReportsIt) {
    for (const char *precision : {"fp32", "fp16"}) {
        std::string text = e2e::mlp(precision, 19, 37, 10, "sgd(lr = 0.1)"), clipped = text;
        clipped.insert(clipped.find("    loss "), "    clip_norm = inf\n");
        Training plain(e2e::compile_to_file(text, "plain.so"), 45, 2, 3, true);
        Training r(e2e::compile_to_file(clipped, "clip-inf.so"), 45, 2, 3, true);
        ASSERT_TRUE(plain.ok() && r.ok());
        e2e::Batch b(45, 19, 10, 5);
        for (int s = 0; s < 3; s++) {
            amp_step_report report = step(r, {b.x.data(), b.y.data()}, 45);
            EXPECT_TRUE(std::isnan(step(plain, {b.x.data(), b.y.data()}, 45).grad_norm));
            double squares = 0;
            for (auto [name, count] : {std::pair{"fc1.weight", 37 * 19},
                                       {"fc1.bias", 37},
                                       {"fc2.weight", 37 * 37},
                                       {"fc2.bias", 37},
                                       {"fc3.weight", 10 * 37},
                                       {"fc3.bias", 10}})
                for (float g : gradient(r, name, (size_t)count)) squares += double(g) * g;
            EXPECT_NEAR(report.grad_norm, std::sqrt(squares), 1e-5 * std::sqrt(squares));
            EXPECT_GT(report.grad_norm, 0);
            EXPECT_TRUE(e2e::same_bits(e2e::all_params(plain), e2e::all_params(r))) << precision << " step " << s;
        }
    }
}

// ---- losses and blocks
// ---------------------------------------------------------------------------------------------------

TEST(Losses, AreSummedAndReportedApart) {
    std::string text = weights("sgd(lr = 0.1)");
    text.replace(text.find("    loss = mean(y)\n"), 19, "    loss near = mean(y)\n    loss far = mean(y * y)\n");
    Training r(e2e::compile_to_file(text, "losses.so"), 4);
    ASSERT_TRUE(r.ok());
    amp_model_info info;
    amp_model_get_info(r.model, &info);
    ASSERT_EQ(info.loss_count, 2);
    EXPECT_STREQ(amp_model_loss_name(r.model, 0), "near");
    EXPECT_STREQ(amp_model_loss_name(r.model, 1), "far");
    EXPECT_EQ(amp_model_loss_name(r.model, 2), nullptr);
    const std::vector<float> x = {1, 2, 3, 4};
    double losses[2], loss;
    const void *inputs[] = {x.data()};
    ASSERT_EQ(amp_eval(r.session, inputs, {4, 0}, &loss, nullptr, &r.err), AMP_OK);
    ASSERT_EQ(amp_session_get_losses(r.session, losses, &r.err), AMP_OK);
    EXPECT_NEAR(losses[0], 2.5 * 3, 1e-5);
    EXPECT_NEAR(losses[1], 7.5 * 9, 1e-4);
    EXPECT_NEAR(loss, losses[0] + losses[1], 1e-4);
    amp_step_report report = step(r, {x.data()}, 4);
    EXPECT_NEAR(report.loss, loss, 1e-4);
    // d/da = mean(x) + mean(2 x^2 (a + b + c))
    EXPECT_NEAR(param(r, "a", 1)[0], 1 - 0.1 * (2.5 + 2 * 7.5 * 3), 1e-5);
}

// Two networks side by side; the second one's target can be made to overflow alone.
std::string two_blocks(const std::string &precision) {
    return "amp 1\n"
           "model pair(x: f32[N, 8]) -> p, q {\n"
           "    p = linear(x; out = 4) as left.fc\n"
           "    q = linear(x; out = 4) as right.fc\n"
           "}\n"
           "train pair for \"left.*\" {\n"
           "    input  t: f32[N, 4]\n"
           "    loss = mse_loss(p, t)\n"
           "    optimizer = sgd(lr = 0.1)\n"
           "}\n"
           "train pair for \"right.*\" {\n"
           "    input  u: f32[N, 4]\n"
           "    loss = mse_loss(q, u)\n"
           "    optimizer = adam(lr = step(base = 0.1, every = 1, gamma = 0.5))\n"
           "}\n"
           "precision " +
           precision + " { }\n";
}

struct Pair {
    std::vector<float> x, t, u;
    Pair() : x(5 * 8), t(5 * 4, 0.5f), u(5 * 4, -0.5f) {
        uint32_t seed = 4;
        for (float &v : x) v = static_cast<float>(e2e::Batch::next(seed) >> 8) / 8388608.0f - 1.0f;
    }
    std::vector<const void *> inputs() const { return {x.data(), t.data(), u.data()}; }
};

TEST(Blocks, EachSkipsAlone) {
    Training r(e2e::compile_to_file(two_blocks("fp16"), "pair-fp16.so"), 5);
    ASSERT_TRUE(r.ok());
    Pair good, bad;
    bad.u[3] = std::numeric_limits<float>::infinity();
    amp_scaler_state before, after;
    ASSERT_EQ(amp_session_get_scaler(r.session, &before, &r.err), AMP_OK);
    std::vector<float> left = param(r, "left.fc.weight", 32), right = param(r, "right.fc.weight", 32);
    amp_step_report report = step(r, bad.inputs(), 5);
    EXPECT_EQ(report.skipped, 1);
    EXPECT_EQ(report.step, 1);
    EXPECT_FALSE(e2e::same_bits(left, param(r, "left.fc.weight", 32)));
    EXPECT_TRUE(e2e::same_bits(right, param(r, "right.fc.weight", 32)));
    ASSERT_EQ(amp_session_get_scaler(r.session, &after, &r.err), AMP_OK);
    EXPECT_EQ(after.scale, before.scale / 2);
    // the right one's first update has the first rate of its schedule, and Adam's first step is that rate
    report = step(r, good.inputs(), 5);
    EXPECT_EQ(report.skipped, 0);
    EXPECT_EQ(report.step, 2);
    std::vector<float> moved = param(r, "right.fc.weight", 32);
    for (size_t i = 0; i < moved.size(); i++) EXPECT_NEAR(std::fabs(moved[i] - right[i]), 0.1, 1e-3);
    Pair both = bad;
    both.t[1] = std::numeric_limits<float>::quiet_NaN();
    report = step(r, both.inputs(), 5);
    EXPECT_EQ(report.skipped, 2);
    EXPECT_EQ(report.step, 2);
    EXPECT_EQ(report.iteration, 3);
    // both counters go through a checkpoint
    std::string path = e2e::temp_path("pair.st");
    ASSERT_EQ(amp_checkpoint_save(r.session, path.c_str(), nullptr, &r.err), AMP_OK) << r.err.message;
    Training other(e2e::temp_path("pair-fp16.so"), 5, 1, 8);
    ASSERT_EQ(amp_checkpoint_load(other.session, path.c_str(), nullptr, 0, &other.err), AMP_OK) << other.err.message;
    step(r, good.inputs(), 5);
    step(other, good.inputs(), 5);
    EXPECT_TRUE(e2e::same_bits(e2e::all_params(r), e2e::all_params(other)));
}

TEST(Blocks, GoTogetherWhereNothingIsScaled) {
    Training r(e2e::compile_to_file(two_blocks("fp32"), "pair-fp32.so"), 5);
    ASSERT_TRUE(r.ok());
    Pair good;
    amp_step_report report = {};
    for (int i = 0; i < 3; i++) report = step(r, good.inputs(), 5);
    EXPECT_EQ(report.step, 3);
    double losses[2];
    ASSERT_EQ(amp_session_get_losses(r.session, losses, &r.err), AMP_OK);
    EXPECT_NEAR(report.loss, losses[0] + losses[1], 1e-6);
}

// The left one is updated in each third step: the bits of a rate of 0 in the others.  Adam counts its own updates.
TEST(Blocks, UpdateInEachKthStep) {
    for (const char *precision : {"fp32", "fp16"}) {
        SCOPED_TRACE(precision);
        const std::string text = two_blocks(precision), path = std::string("pair-third-") + precision + ".so";
        std::string third = text, swapped = text;
        third.replace(third.find("lr = 0.1)"), 9, "lr = 0.1)\n    every = 3");
        Training r(e2e::compile_to_file(third, path), 5), all(e2e::compile_to_file(text, "pair-each.so"), 5);
        ASSERT_TRUE(r.ok() && all.ok());
        Pair good;
        for (int i = 1; i <= 7; i++) {
            SCOPED_TRACE(i);
            ASSERT_EQ(amp_session_set_lr(all.session, 0, i % 3 ? 0.0 : 0.1, &all.err), AMP_OK) << all.err.message;
            step(all, good.inputs(), 5);
            amp_step_report report = step(r, good.inputs(), 5);
            EXPECT_EQ(report.step, i);
            EXPECT_EQ(report.skipped, 0);
            EXPECT_TRUE(e2e::same_bits(e2e::all_params(r), e2e::all_params(all)));
            if (i != 4) continue;
            const std::string saved = e2e::temp_path("pair-third.st");
            ASSERT_EQ(amp_checkpoint_save(r.session, saved.c_str(), nullptr, &r.err), AMP_OK) << r.err.message;
            Training other(e2e::temp_path(path), 5, 1, 8);
            ASSERT_EQ(amp_checkpoint_load(other.session, saved.c_str(), nullptr, 0, &other.err), AMP_OK);
            for (int k = 0; k < 2; k++) step(other, good.inputs(), 5);
            Training same(e2e::temp_path(path), 5);
            for (int k = 0; k < 6; k++) step(same, good.inputs(), 5);
            EXPECT_TRUE(e2e::same_bits(e2e::all_params(other), e2e::all_params(same))) << "after a checkpoint";
        }
        // the other way round: bias corrections and schedule of the block's own updates
        swapped.replace(swapped.find("gamma = 0.5))"), 13, "gamma = 0.5))\n    every = 2");
        Training late(e2e::compile_to_file(swapped, "pair-second.so"), 5);
        std::vector<float> before = param(late, "right.fc.weight", 32);
        step(late, good.inputs(), 5);
        EXPECT_TRUE(e2e::same_bits(before, param(late, "right.fc.weight", 32)));
        step(late, good.inputs(), 5);
        std::vector<float> moved = param(late, "right.fc.weight", 32);
        for (size_t i = 0; i < moved.size(); i++) EXPECT_NEAR(std::fabs(moved[i] - before[i]), 0.1, 1e-3);
    }
}

// Named losses of several blocks: no sums of the blocks beside them, unless a metric is computed from one.
TEST(Blocks, ReportNamedLossesOnly) {
    for (bool metric : {false, true}) {
        std::string text = two_blocks("fp32");
        text.replace(text.find("loss = mse_loss(p"), 4, "loss l_fit");
        std::string second =
            metric ? "loss = mse_loss(q, u)\n    metric size = exp(loss)" : "loss r_fit = mse_loss(q, u)";
        text.replace(text.find("loss = mse_loss(q, u)"), 21, second);
        Training r(e2e::compile_to_file(text, "pair-named.so"), 5);
        ASSERT_TRUE(r.ok());
        amp_model_info info;
        amp_model_get_info(r.model, &info);
        std::vector<std::string> names;
        for (int32_t i = 0; amp_model_loss_name(r.model, i); i++) names.push_back(amp_model_loss_name(r.model, i));
        EXPECT_EQ(info.loss_count, (int32_t)names.size());
        std::vector<std::string> wanted = {"l_fit", "r_fit"};
        std::vector<double> losses(names.size()), metrics(1);
        Pair good;
        double loss;
        ASSERT_EQ(amp_eval(r.session, good.inputs().data(), {5, 0}, &loss, metrics.data(), &r.err), AMP_OK)
            << r.err.message;
        ASSERT_EQ(amp_session_get_losses(r.session, losses.data(), &r.err), AMP_OK);
        double sum = 0;
        for (size_t i = 0; i < names.size(); i++)
            if (metric || names[i].find("_fit") != std::string::npos) sum += losses[i];
        EXPECT_NEAR(loss, sum, 1e-5);
        EXPECT_EQ(names, metric ? (std::vector<std::string>{"l_fit", "1"}) : wanted);
        if (!metric) continue;
        ASSERT_EQ(amp_eval_end(r.session, &loss, metrics.data(), &r.err), AMP_OK);
        EXPECT_TRUE(std::isfinite(metrics[0])) << "the loss that it is computed from is not known";
    }
}

// ---- inputs
// --------------------------------------------------------------------------------------------------------------

TEST(Inputs, IdsAreCheckedAgainstTheirTable) {
    std::string text =
        "amp 1\n"
        "model bag(ids: i32[N, 3]) -> logits {\n"
        "    logits = linear(mean(embedding(ids; count = 7, dim = 4) as table; dims = (1)); out = 2) as fc\n"
        "}\n"
        "train bag {\n"
        "    input targets: i32[N]\n"
        "    loss = cross_entropy(logits, targets)\n"
        "    optimizer = sgd(lr = 0.1)\n"
        "}\n";
    Training r(e2e::compile_to_file(text, "bag.so"), 4);
    ASSERT_TRUE(r.ok());
    std::vector<int32_t> ids = {0, 6, 1, 2, 3, 4}, targets = {1, 0};
    std::vector<float> before = param(r, "table.weight", 28);
    step(r, {ids.data(), targets.data()}, 2);
    std::vector<float> after = param(r, "table.weight", 28);
    for (int row = 0; row < 7; row++)
        EXPECT_EQ(!memcmp(&before[size_t(row) * 4], &after[size_t(row) * 4], 16), row == 5) << row;
    for (int32_t bad : {-1, 7, 1 << 30, -100}) {
        ids[4] = bad;
        const void *inputs[] = {ids.data(), targets.data()};
        std::vector<float> logits(4);
        void *outputs[] = {logits.data()};
        EXPECT_EQ(amp_step(r.session, inputs, {2, 0}, nullptr, &r.err), AMP_INVALID_ARGUMENT) << bad;
        EXPECT_NE(strstr(r.err.message, "input ids, sample 1: index "), nullptr) << r.err.message;
        EXPECT_EQ(amp_infer(r.session, inputs, {2, 0}, outputs, &r.err), AMP_INVALID_ARGUMENT) << bad;
    }
    EXPECT_TRUE(e2e::same_bits(after, param(r, "table.weight", 28)));
}

TEST(Inputs, IdsThatNobodyCanCheckAreRefused) {
    e2e::Compiled c =
        e2e::compile("amp 1\nmodel m(ids: i32[N]) -> y {\n    y = embedding(ids + 1; count = 7, dim = 4) as t\n}\n");
    EXPECT_NE(c.status, AMP_OK);
    EXPECT_NE(c.message.find("its ids are computed"), std::string::npos) << c.message;
}

// Ids of floats, kept within the table: by a remainder, or between 0 and its last row.
TEST(Inputs, IdsThatStayWithinTheTable) {
    auto text = [](const std::string &ids) {
        return "amp 1\nmodel m(x: f32[N]) -> y {\n    at = to_i32(floor(x))\n    y = embedding(" + ids +
               "; count = 3, dim = 1) as codes\n}\n";
    };
    for (const char *ids : {"at % 4", "at % -3", "maximum(at, 0)", "minimum(at, 2)", "minimum(maximum(at, -1), 2)",
                            "minimum(maximum(at, 0), 3)", "(at + 1) % 3 + 1", "at * tensor(0, 3, 1; type = i32)"})
        EXPECT_NE(e2e::compile(text(ids)).status, AMP_OK) << ids;
    EXPECT_NE(e2e::compile(text("at % 4")).message.find("its ids may be outside of the table; "), std::string::npos);
    const std::string given = "amp 1\nmodel m(x: f32[N]) -> y {\n    table = embedding(tensor(0, 2, ROW; type = i32); "
                              "count = 3, dim = 1) as codes\n    y = x * sum(table)\n}\n";
    auto with = [&](const char *row) { return std::string(given).replace(given.find("ROW"), 3, row); };
    EXPECT_EQ(e2e::compile(with("1")).status, AMP_OK) << e2e::compile(with("1")).message;
    EXPECT_NE(e2e::compile(with("3")).message.find("its ids may be outside of the table"), std::string::npos);
    const struct {
        const char *ids;
        int rows[5];
    } cases[] = {{"at % 3", {2, 0, 2, 1, 1}}, {"minimum(maximum(at, 0), 2)", {0, 0, 2, 2, 0}}};
    for (const auto &c : cases) {
        Training r(e2e::compile_to_file(text(c.ids), "within.so"), 5);
        ASSERT_TRUE(r.ok());
        const float x[] = {-0.5f, 0.25f, 2.0f, 7.5f, -INFINITY}; /* -inf is -2^31 */
        std::vector<float> y(5), table = param(r, "codes.weight", 3);
        const void *inputs[] = {x};
        void *outputs[] = {y.data()};
        ASSERT_EQ(amp_infer(r.session, inputs, {5, 0}, outputs, &r.err), AMP_OK) << r.err.message;
        for (size_t i = 0; i < 5; i++) EXPECT_EQ(y[i], table[static_cast<size_t>(c.rows[i])]) << c.ids << " " << i;
    }
}

// The nearest row of a code book: argmax has as many places as the table has rows, or it may not be looked up.
TEST(Inputs, PlacesOfArgmaxAreIds) {
    const std::string text =
        "amp 1\nmodel m(x: f32[N, 5, 3]) -> y {\n    y = embedding(argmax(x; dim = DIM); count = 3, "
        "dim = 2) as codes\n}\n";
    auto along = [&](const char *dim) { return std::string(text).replace(text.find("DIM"), 3, dim); };
    EXPECT_NE(e2e::compile(along("1")).message.find("argmax looks among more places"), std::string::npos);
    EXPECT_NE(e2e::compile(along("0")).message.find("argmax looks among samples"), std::string::npos);
    Training r(e2e::compile_to_file(along("2"), "codes.so"), 1);
    ASSERT_TRUE(r.ok());
    const std::vector<float> x = {0, 1, 2, 2, 1, 0, 0, 3, 1, 0, NAN, 9, NAN, NAN, NAN};
    const int places[] = {2, 0, 1, 1, 0};
    std::vector<float> y(10), table = param(r, "codes.weight", 6);
    const void *inputs[] = {x.data()};
    void *outputs[] = {y.data()};
    ASSERT_EQ(amp_infer(r.session, inputs, {1, 0}, outputs, &r.err), AMP_OK) << r.err.message;
    for (size_t i = 0; i < 5; i++) EXPECT_FALSE(memcmp(&y[2 * i], &table[2 * size_t(places[i])], 8)) << i;
}

TEST(Inputs, PlacesOfTheLargestAreIds) {
    auto text = [](int rows) {
        return "amp 1\nmodel m(x: f32[N, 4]) -> y {\n    v, at = top_k(x; k = 2)\n    y = embedding(at; count = " +
               std::to_string(rows) + ", dim = 1) as codes\n    y = y + 0.0 * reshape(v; shape = [N, 2, 1])\n}\n";
    };
    EXPECT_NE(e2e::compile(text(3)).message.find("top_k looks among more places"), std::string::npos);
    Training r(e2e::compile_to_file(text(4), "largest.so"), 2);
    ASSERT_TRUE(r.ok());
    const std::vector<float> x = {1, 3, 3, 2, 9, 0, 8, 7}, table = param(r, "codes.weight", 4);
    std::vector<float> y(4);
    const void *inputs[] = {x.data()};
    void *outputs[] = {y.data()};
    ASSERT_EQ(amp_infer(r.session, inputs, {2, 0}, outputs, &r.err), AMP_OK) << r.err.message;
    EXPECT_EQ(y, (std::vector<float>{table[1], table[2], table[0], table[2]}));
}

TEST(Inputs, BytesAndHalvesAreTheNumbersThatTheyAre) {
    auto text = [](const char *type, const char *x) {
        return std::string("amp 1\nmodel m(x: ") + type + "[N, 6]) -> y {\n    y = linear(" + x +
               "; out = 5) as fc\n}\n";
    };
    Training bytes(e2e::compile_to_file(text("u8", "to_f32(x)"), "bytes.so"), 3);
    Training halves(e2e::compile_to_file(text("f16", "to_f32(x)"), "halves.so"), 3);
    Training floats(e2e::compile_to_file(text("f32", "x"), "floats.so"), 3);
    ASSERT_TRUE(bytes.ok() && halves.ok() && floats.ok());
    std::vector<uint8_t> u8(18);
    std::vector<uint16_t> f16(18);
    std::vector<float> f32(18), got(15), want(15);
    for (size_t i = 0; i < 18; i++) {
        u8[i] = static_cast<uint8_t>(i * 15);
        f32[i] = u8[i];
        int exponent;
        float fraction =
            std::frexp(f32[i], &exponent); // [0.5, 1): f16 has the exponent's bias 15 and 10 bits after the 1
        f16[i] = f32[i] == 0 ? uint16_t(0) : uint16_t((exponent + 14) << 10 | (int(std::ldexp(fraction, 11)) & 1023));
    }
    const void *in_u8[] = {u8.data()}, *in_f16[] = {f16.data()}, *in_f32[] = {f32.data()};
    void *out[] = {got.data()}, *out_want[] = {want.data()};
    ASSERT_EQ(amp_infer(floats.session, in_f32, {3, 0}, out_want, &floats.err), AMP_OK) << floats.err.message;
    ASSERT_EQ(amp_infer(bytes.session, in_u8, {3, 0}, out, &bytes.err), AMP_OK) << bytes.err.message;
    EXPECT_TRUE(e2e::same_bits(got, want));
    std::fill(got.begin(), got.end(), 0.0f);
    ASSERT_EQ(amp_infer(halves.session, in_f16, {3, 0}, out, &halves.err), AMP_OK) << halves.err.message;
    EXPECT_TRUE(e2e::same_bits(got, want));
}

} // namespace
