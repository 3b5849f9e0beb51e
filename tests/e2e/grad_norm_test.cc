// The norm of the gradients of a session that was created for it, beside the gradients that another session keeps.
#include <cmath>
#include <functional>
#include <limits>

#include "tests/e2e/harness.h"

namespace {

using namespace e2e;

class GradNorm : public OnDevice {};

enum { kSamples = 12 };

// A session of |model| (it keeps what it needs of it) with other options.
struct Session {
    amp_params *params = nullptr;
    amp_session *session = nullptr;
    amp_error err = {};
    Session(const Training &of, const std::function<void(amp::SessionOptions &)> &change) {
        amp_params_options p = {};
        p.struct_size = sizeof p, p.seed = 3;
        amp::SessionOptions o;
        o.capacity.n = kSamples, o.threads = 2, o.seed = 3, o.device = device();
        o.inspect.separate_buffers = getenv("AMP_TEST_SEPARATE") != nullptr;
        change(o);
        EXPECT_EQ(amp_params_create(of.model, &p, &params, &err), AMP_OK) << err.message;
        EXPECT_EQ(amp_session_create(of.model, params, &o, &session, &err), AMP_OK) << err.message;
    }
    Session(const Session &) = delete;
    ~Session() { amp_session_release(session), amp_params_release(params); }
    double Norm() {
        double norm = -1;
        EXPECT_EQ(amp_session_get_grad_norm(session, &norm, &err), AMP_OK) << err.message;
        return norm;
    }
    uint64_t Bytes() const {
        amp_memory_info memory;
        amp_session_get_memory(session, &memory);
        return memory.total;
    }
};

double FromValues(const amp_session *s) {
    double squares = 0;
    for (int32_t i = 0; const char *name = amp_session_value_name(s, i); i++) {
        if (strncmp(name, "grad.", 5)) continue;
        amp_tensor_info info = {};
        EXPECT_EQ(amp_session_get_value(s, name, &info, nullptr, 0, nullptr), AMP_OK);
        size_t count = 1;
        for (int d = 0; d < info.rank; d++) count *= (size_t)info.dims[d];
        std::vector<float> g(count);
        EXPECT_EQ(amp_session_get_value(s, name, nullptr, g.data(), count * sizeof(float), nullptr), AMP_OK);
        for (float v : g) squares += (double)v * v;
    }
    return std::sqrt(squares);
}

std::string Two(const char *precision, const char *setting = "") {
    return std::string("amp 1\nmodel two(x: f32[N, 7]) -> a, b {\n    h = relu(linear(x; out = 40) as left)\n"
                       "    a = linear(h; out = 3) as left2\n    b = linear(x; out = 3) as right\n}\n"
                       "train two for \"left*\" {\n    input t: i32[N]\n    loss = cross_entropy(a, t)\n"
                       "    optimizer = sgd(lr = 0.1, momentum = 0.9)\n") +
           setting +
           "}\ntrain two for \"right.*\" {\n    input t: i32[N]\n    loss = cross_entropy(b, t)\n"
           "    optimizer = adamw(lr = 0.01)\n" +
           setting + "}\nprecision " + precision + " { }\n";
}

std::string Mlp(const char *precision, const char *optimizer, const char *setting = "") {
    std::string text = mlp(precision, 7, 40, 3, optimizer);
    return text.insert(text.find("    loss "), setting);
}

// Steps of both sessions on the same batches; after each, |asked| evaluates, so that its norm survives that.
void Compare(const std::string &text, int calls) {
    SCOPED_TRACE(text);
    Training t(compile_to_file(text, "norm.so"), kSamples);
    ASSERT_TRUE(t.ok());
    Session plain(t, [](auto &) {}), kept(t, [](auto &o) { o.inspect.keep_values = 1; });
    Session asked(t, [](auto &o) { o.inspect.grad_norm = 1; });
    double norm;
    EXPECT_EQ(amp_session_get_grad_norm(asked.session, &norm, &asked.err), AMP_WRONG_STATE) << "no step yet";
    amp_model_info info;
    amp_model_get_info(t.model, &info);
    for (unsigned step = 0; step < 3; step++) {
        for (int call = 0; call < calls; call++) {
            Batch b(kSamples, 7, 3, 10 * step + (unsigned)call + 1);
            for (Session *s : {&plain, &kept, &asked}) {
                ASSERT_EQ(amp_step(s->session, b.inputs(), {kSamples, 0}, nullptr, &s->err), AMP_OK) << s->err.message;
            }
        }
        Batch other(kSamples, 7, 3, 99);
        double loss, want = FromValues(kept.session);
        ASSERT_EQ(amp_eval(asked.session, other.inputs(), {kSamples, 0}, &loss, nullptr, &asked.err), AMP_OK);
        EXPECT_GT(want, 0);
        EXPECT_NEAR(asked.Norm(), want, 1e-12 * want);
        EXPECT_NEAR(kept.Norm(), want, 1e-12 * want);
    }
    for (const char *name : {"fc1.weight", "left.weight"}) {
        std::vector<float> a(40 * 7), b(40 * 7);
        if (amp_params_get(plain.params, name, a.data(), a.size(), nullptr)) continue;
        ASSERT_EQ(amp_params_get(asked.params, name, b.data(), b.size(), nullptr), AMP_OK);
        EXPECT_TRUE(same_bits(a, b)) << "training is the same";
    }
    if (!getenv("AMP_TEST_SEPARATE")) { // where nothing shares a place gradients have one of their own in any case
        EXPECT_GT(asked.Bytes(), plain.Bytes());
    }
}

TEST_F(GradNorm, IsThatOfTheGradients) {
    Compare(Two("fp16"), 1);
    if (device()) return;
    Compare(Mlp("fp32", "sgd(lr = 0.1)"), 1); // weights are updated where the gradient is made
    Compare(Mlp("bf16", "adamw(lr = 0.01)"), 1);
}

TEST_F(GradNorm, IsThatOfTheWholeStep) {
    if (device()) GTEST_SKIP() << "the same on the device";
    Compare(Mlp("fp16", "sgd(lr = 0.1)", "    accumulate = 2\n"), 2);
}

// Without the option: an error that says what to do, and no memory.
TEST_F(GradNorm, IsAskedFor) {
    if (device()) GTEST_SKIP() << "the same on the device";
    Training t(compile_to_file(Mlp("fp32", "sgd(lr = 0.1)"), "plain.so"), kSamples);
    ASSERT_TRUE(t.ok());
    Session plain(t, [](auto &) {}), inference(t, [](auto &o) { o.program = "infer", o.inspect.grad_norm = 1; });
    Session without(t, [](auto &o) { o.program = "infer"; });
    EXPECT_EQ(inference.Bytes(), without.Bytes());
    Batch b(kSamples, 7, 3, 1);
    amp_step_report report;
    ASSERT_EQ(amp_step(plain.session, b.inputs(), {kSamples, 0}, &report, &plain.err), AMP_OK) << plain.err.message;
    EXPECT_TRUE(std::isnan(report.grad_norm));
    double norm;
    EXPECT_EQ(amp_session_get_grad_norm(plain.session, &norm, &plain.err), AMP_WRONG_STATE);
    EXPECT_NE(strstr(plain.err.message, "create the session with grad_norm = 1"), nullptr) << plain.err.message;
    EXPECT_EQ(amp_session_get_grad_norm(inference.session, &norm, &inference.err), AMP_WRONG_STATE);
}

// Several train blocks that all compute theirs have one of all gradients; the reports hold it.
TEST_F(GradNorm, OfBlocksIsThatOfAll) {
    if (device()) GTEST_SKIP() << "the same on the device";
    Training t(compile_to_file(Two("fp32", "    clip_norm = inf\n"), "both.so"), kSamples);
    ASSERT_TRUE(t.ok());
    Session plain(t, [](auto &) {}), kept(t, [](auto &o) { o.inspect.keep_values = 1; });
    Batch b(kSamples, 7, 3, 1);
    amp_step_report report;
    ASSERT_EQ(amp_step(kept.session, b.inputs(), {kSamples, 0}, nullptr, &kept.err), AMP_OK) << kept.err.message;
    ASSERT_EQ(amp_step(plain.session, b.inputs(), {kSamples, 0}, &report, &plain.err), AMP_OK) << plain.err.message;
    EXPECT_NEAR(report.grad_norm, FromValues(kept.session), 1e-6 * report.grad_norm);
    EXPECT_EQ(plain.Norm(), report.grad_norm);
    EXPECT_GT(report.grad_norm, 0);
}

TEST_F(GradNorm, OfASkippedStepIsNotFinite) {
    if (device()) GTEST_SKIP() << "the same on the device";
    Training t(compile_to_file(Mlp("fp16", "sgd(lr = 0.1)"), "skipped.so"), kSamples);
    ASSERT_TRUE(t.ok());
    Session asked(t, [](auto &o) { o.inspect.grad_norm = 1; });
    Batch b(kSamples, 7, 3, 1);
    b.x[0] = INFINITY;
    ASSERT_EQ(amp_step(asked.session, b.inputs(), {kSamples, 0}, nullptr, &asked.err), AMP_OK) << asked.err.message;
    EXPECT_FALSE(std::isfinite(asked.Norm()));
}

// ---- of numbers whose squares f32 does not hold ---------------------------------------------------------

enum { kFeatures = 40, kOut = 3, kWeights = kFeatures * kOut };

std::string Linear(const std::string &precision, const std::string &settings) {
    return "amp 1\nmodel m(x: f32[N, 40]) -> y {\n    param w: f32[40, 3] = zeros()\n    param b: f32[3] = zeros()\n"
           "    y = matmul(x, w) + b\n}\ntrain m {\n    input t: f32[N, 3]\n    loss = mean(y * t)\n"
           "    optimizer = sgd(1.0)\n" +
           settings + "}\nprecision " + precision + " { }\n";
}

// The gradients of w and b at 0 in float64, of samples whose targets are |size| and less.
struct LargeGradients {
    std::vector<float> x = std::vector<float>(kSamples * kFeatures), t = std::vector<float>(kSamples * kOut);
    std::vector<double> g = std::vector<double>(kWeights + kOut);
    double norm = 0;
    explicit LargeGradients(double size, bool equal) {
        for (size_t i = 0; i < x.size(); i++) x[i] = equal ? 1 : 0.125f * (float)((i * 7) % 9) - 0.25f;
        for (size_t i = 0; i < t.size(); i++) t[i] = (float)(equal ? size : size * (1 + (double)(i % 4)) / 4);
        for (size_t i = 0; i < t.size(); i++) {
            const double dy = (double)t[i] / (double)t.size();
            for (size_t j = 0; j < kFeatures; j++) g[j * kOut + i % kOut] += dy * x[i / kOut * kFeatures + j];
            g[kWeights + i % kOut] += dy;
        }
        for (double v : g) norm += v * v;
        norm = std::sqrt(norm);
    }
    // After |calls| micro-batches of one step, which are all the same.
    amp_step_report Step(amp_session *s, int calls = 1) const {
        const void *inputs[] = {x.data(), t.data()};
        amp_step_report report = {};
        amp_error err = {};
        for (int i = 0; i < calls; i++)
            EXPECT_EQ(amp_step(s, inputs, {kSamples, 0}, &report, &err), AMP_OK) << err.message;
        return report;
    }
    void ExpectClipped(amp_params *params, double to, double bound, double most = INFINITY) const {
        std::vector<float> got(kWeights), b(kOut);
        ASSERT_EQ(amp_params_get(params, "w", got.data(), got.size(), nullptr), AMP_OK);
        ASSERT_EQ(amp_params_get(params, "b", b.data(), b.size(), nullptr), AMP_OK);
        got.insert(got.end(), b.begin(), b.end());
        const double factor = std::fmin(1, to / norm), largest = std::fmin(most, to);
        for (size_t i = 0; i < got.size(); i++) {
            const double want = -std::fmax(-most, std::fmin(most, g[i] * factor));
            ASSERT_NEAR(got[i] / largest, want / largest, bound) << i;
        }
    }
};

void ExpectNorm(double reported, double norm, double bound) {
    if (norm > std::numeric_limits<float>::max()) EXPECT_EQ(reported, INFINITY);
    else EXPECT_NEAR(reported / norm, 1, bound);
}

TEST_F(GradNorm, LargeGradientsAreClippedToTheNorm) {
    for (const char *precision : {"fp32", "bf16"}) {
        const double bound = strcmp(precision, "fp32") ? 1e-2 : 1e-6;
        for (const char *clip : {"1.0", "1e-20", "1e25"}) {
            if (device() && strcmp(clip, "1.0")) continue;
            Training t(compile_to_file(Linear(precision, std::string("    clip_norm = ") + clip + "\n"), "large.so"),
                       kSamples);
            ASSERT_TRUE(t.ok());
            for (double size : {1e10, 3e19, 1e30, 3e38})
                for (bool equal : {false, true}) {
                    SCOPED_TRACE(testing::Message() << precision << " " << clip << " " << size << " " << equal);
                    LargeGradients large(size, equal);
                    Session s(t, [](auto &) {});
                    ExpectNorm(large.Step(s.session).grad_norm, large.norm, bound);
                    large.ExpectClipped(s.params, std::atof(clip),
                                        bound * std::fmax(1, size / std::atof(clip) * 1e-30));
                }
        }
    }
}

// clip_value after clip_norm, micro-batches, and kept gradients, whose norm the runtime adds up.
TEST_F(GradNorm, LargeGradientsOfSettings) {
    const LargeGradients large(3e30, false);
    Training by_value(compile_to_file(Linear("fp32", "    clip_norm = 2.0\n    clip_value = 0.1\n"), "v.so"), kSamples);
    Training parts(compile_to_file(Linear("fp32", "    clip_norm = 2.0\n    accumulate = 2\n"), "a.so"), kSamples);
    Training inf(compile_to_file(Linear("fp32", "    clip_norm = inf\n"), "inf.so"), kSamples);
    ASSERT_TRUE(by_value.ok() && parts.ok() && inf.ok());
    large.Step(by_value.session), large.ExpectClipped(by_value.params, 2, 1e-6, 0.1);
    ExpectNorm(large.Step(parts.session, 2).grad_norm, large.norm, 1e-6);
    large.ExpectClipped(parts.params, 2, 1e-6);
    ExpectNorm(large.Step(inf.session).grad_norm, large.norm, 1e-6);
    large.ExpectClipped(inf.params, large.norm, 1e-6);
    if (device()) return;
    Session kept(by_value, [](auto &o) { o.inspect.keep_values = 1; });
    large.Step(kept.session);
    EXPECT_NEAR(kept.Norm() / large.norm, 1, 1e-6);
}

// Each block has a norm of its own.
TEST_F(GradNorm, LargeGradientsOfBlocks) {
    Training t(compile_to_file("amp 1\nmodel m(x: f32[N, 4]) -> y, z {\n    param a: f32[4, 1] = zeros()\n"
                               "    param b: f32[4, 1] = zeros()\n    y = matmul(x, a)\n    z = matmul(x, b)\n}\n"
                               "train m for \"a\" {\n    input t: f32[N, 1]\n    loss = mean(y * t)\n"
                               "    optimizer = sgd(1.0)\n    clip_norm = 1.0\n}\n"
                               "train m for \"b\" {\n    input u: f32[N, 1]\n    loss = mean(z * u)\n"
                               "    optimizer = sgd(1.0)\n    clip_norm = 4.0\n}\nprecision fp32 { }\n",
                               "blocks.so"),
               kSamples);
    ASSERT_TRUE(t.ok());
    const std::vector<float> x(kSamples * 4, 1), huge(kSamples, 3e38f), small(kSamples, 1);
    const void *inputs[] = {x.data(), huge.data(), small.data()};
    ASSERT_EQ(amp_step(t.session, inputs, {kSamples, 0}, nullptr, &t.err), AMP_OK) << t.err.message;
    for (float w : all_params(t)) EXPECT_TRUE(std::fabs(w + 0.5f) < 1e-6 || std::fabs(w + 1) < 1e-6) << w;
}

// Without a loss scale nothing skips the step; the report has it, and no weight of the block looks like a number that
// was trained.
TEST_F(GradNorm, InfiniteGradientsAreReported) {
    Training t(compile_to_file(Linear("fp32", "    clip_norm = 1.0\n"), "infinite.so"), kSamples);
    ASSERT_TRUE(t.ok());
    LargeGradients bad(1, true);
    bad.t[0] = INFINITY;
    EXPECT_FALSE(std::isfinite(bad.Step(t.session).grad_norm));
}

// ---- norm -----------------------------------------------------------------------------------------------------------

// Of x + w, where w is 0: its gradient is x / |x|, whatever the size of x.
TEST_F(GradNorm, NormOfLargeAndTinyNumbers) {
    const float rows[4][4] = {{3e25f, 4e25f, 0, 0}, {3e-25f, 0, -4e-25f, 0}, {0, 3, 4, 12}, {-2e38f, 1e38f, 0, 1}};
    for (const char *dims : {"; dims = 2", "; dims = 1", ""}) {
        SCOPED_TRACE(dims);
        const bool by_row = strstr(dims, "2"), by_column = strstr(dims, "1");
        Training t(compile_to_file(std::string("amp 1\nmodel m(x: f32[N, 4, 4]) -> y {\n"
                                               "    param w: f32[4, 4] = zeros()\n    y = norm(x + w") +
                                       dims +
                                       ")\n}\ntrain m {\n    loss = sum(y)\n    optimizer = sgd(1.0)\n}\n"
                                       "precision fp32 { }\n",
                                   "norm.so"),
                   1, 1, 3, true);
        ASSERT_TRUE(t.ok());
        for (int scale : {0, -1, -20}) { // whole columns, and all numbers, are tiny, too
            float x[16], g[16];
            double squares[16] = {0}, loss = 0;
            const auto group = [&](int i) { return by_row ? i / 4 : by_column ? i % 4 : 0; };
            for (int i = 0; i < 16; i++) {
                x[i] = scale == -20 ? std::ldexp(rows[2][i % 4] + (float)(i / 4), -140)
                       : scale      ? rows[1][i % 4] * (float)(1 + i / 4)
                                    : rows[i / 4][i % 4];
                squares[group(i)] += (double)x[i] * x[i];
            }
            const void *inputs[] = {x};
            amp_step_report report = {};
            ASSERT_EQ(amp_step(t.session, inputs, {1, 0}, &report, &t.err), AMP_OK) << t.err.message;
            ASSERT_EQ(amp_session_get_value(t.session, "grad.w", nullptr, g, sizeof g, &t.err), AMP_OK)
                << t.err.message;
            for (int i = 0; i < (by_row || by_column ? 4 : 1); i++) loss += std::sqrt(squares[i]);
            EXPECT_NEAR(report.loss / loss, 1, scale == -20 ? 1e-2 : 1e-6);
            for (int i = 0; i < 16; i++) {
                const double norm = std::sqrt(squares[group(i)]);
                EXPECT_NEAR(g[i], norm > 0 ? x[i] / norm : 0, scale == -20 ? 1e-2 : 1e-6) << scale << " " << i;
            }
            std::vector<float> zeros(16);
            ASSERT_EQ(amp_params_set(t.params, "w", zeros.data(), zeros.size(), &t.err), AMP_OK) << t.err.message;
        }
    }
}

} // namespace
