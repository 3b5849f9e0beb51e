// The norm of the gradients of a session that was created for it, beside the gradients that another session keeps.
#include <cmath>
#include <functional>

#include "tests/e2e/harness.h"

namespace {

using namespace e2e;

class GradNorm : public OnDevice {};

enum { kSamples = 12 };

// A session of |model| (of which it keeps what it needs) with other options.
struct Session {
    amp_params *params = nullptr;
    amp_session *session = nullptr;
    amp_error err = {};
    Session(const Training &of, const std::function<void(amp_session_options &)> &change) {
        amp_params_options p = {};
        p.struct_size = sizeof p, p.seed = 3;
        amp_session_options o = {};
        o.struct_size = sizeof o, o.capacity = kSamples, o.threads = 2, o.seed = 3, o.device = device();
        o.separate_buffers = getenv("AMP_TEST_SEPARATE") != nullptr;
        change(o);
        EXPECT_EQ(amp_params_create(of.model, &p, &params, &err), AMP_OK) << err.message;
        EXPECT_EQ(amp_session_create(of.model, params, &o, &session, &err), AMP_OK) << err.message;
    }
    Session(const Session &) = delete;
    ~Session() { amp_session_release(session), amp_params_release(params); }
    double Norm() {
        double norm = -1;
        EXPECT_EQ(amp_session_grad_norm(session, &norm, &err), AMP_OK) << err.message;
        return norm;
    }
    uint64_t Bytes() const {
        amp_memory_info memory;
        amp_session_memory(session, &memory);
        return memory.total;
    }
};

double FromValues(const amp_session *s) {
    double squares = 0;
    for (int32_t i = 0; const char *name = amp_session_value_name(s, i); i++) {
        if (strncmp(name, "grad.", 5)) continue;
        amp_tensor_info info = {};
        EXPECT_EQ(amp_session_value(s, name, &info, nullptr, 0, nullptr), AMP_OK);
        size_t count = 1;
        for (int d = 0; d < info.rank; d++) count *= (size_t)info.dims[d];
        std::vector<float> g(count);
        EXPECT_EQ(amp_session_value(s, name, nullptr, g.data(), count * sizeof(float), nullptr), AMP_OK);
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
    Session plain(t, [](auto &) {}), kept(t, [](auto &o) { o.keep_values = 1; });
    Session asked(t, [](auto &o) { o.grad_norm = 1; });
    double norm;
    EXPECT_EQ(amp_session_grad_norm(asked.session, &norm, &asked.err), AMP_WRONG_STATE) << "no step yet";
    amp_model_info info;
    amp_model_get_info(t.model, &info);
    for (unsigned step = 0; step < 3; step++) {
        for (int call = 0; call < calls; call++) {
            Batch b(kSamples, 7, 3, 10 * step + (unsigned)call + 1);
            for (Session *s : {&plain, &kept, &asked}) {
                ASSERT_EQ(amp_step(s->session, b.inputs(), kSamples, nullptr, &s->err), AMP_OK) << s->err.message;
            }
        }
        Batch other(kSamples, 7, 3, 99);
        double loss, want = FromValues(kept.session);
        ASSERT_EQ(amp_eval(asked.session, other.inputs(), kSamples, &loss, nullptr, &asked.err), AMP_OK);
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
    Session plain(t, [](auto &) {}), inference(t, [](auto &o) { o.inference = 1, o.grad_norm = 1; });
    Session without(t, [](auto &o) { o.inference = 1; });
    EXPECT_EQ(inference.Bytes(), without.Bytes());
    Batch b(kSamples, 7, 3, 1);
    amp_step_report report;
    ASSERT_EQ(amp_step(plain.session, b.inputs(), kSamples, &report, &plain.err), AMP_OK) << plain.err.message;
    EXPECT_TRUE(std::isnan(report.grad_norm));
    double norm;
    EXPECT_EQ(amp_session_grad_norm(plain.session, &norm, &plain.err), AMP_WRONG_STATE);
    EXPECT_NE(strstr(plain.err.message, "create the session with grad_norm = 1"), nullptr) << plain.err.message;
    EXPECT_EQ(amp_session_grad_norm(inference.session, &norm, &inference.err), AMP_WRONG_STATE);
}

// Several train blocks that all compute theirs have one of all gradients; the reports hold it.
TEST_F(GradNorm, OfBlocksIsThatOfAll) {
    if (device()) GTEST_SKIP() << "the same on the device";
    Training t(compile_to_file(Two("fp32", "    clip_norm = inf\n"), "both.so"), kSamples);
    ASSERT_TRUE(t.ok());
    Session plain(t, [](auto &) {}), kept(t, [](auto &o) { o.keep_values = 1; });
    Batch b(kSamples, 7, 3, 1);
    amp_step_report report;
    ASSERT_EQ(amp_step(kept.session, b.inputs(), kSamples, nullptr, &kept.err), AMP_OK) << kept.err.message;
    ASSERT_EQ(amp_step(plain.session, b.inputs(), kSamples, &report, &plain.err), AMP_OK) << plain.err.message;
    EXPECT_NEAR(report.grad_norm, FromValues(kept.session), 1e-6 * report.grad_norm);
    EXPECT_EQ(plain.Norm(), report.grad_norm);
    EXPECT_GT(report.grad_norm, 0);
}

TEST_F(GradNorm, OfASkippedStepIsNotFinite) {
    if (device()) GTEST_SKIP() << "the same on the device";
    Training t(compile_to_file(Mlp("fp16", "sgd(lr = 0.1)"), "skipped.so"), kSamples);
    ASSERT_TRUE(t.ok());
    Session asked(t, [](auto &o) { o.grad_norm = 1; });
    Batch b(kSamples, 7, 3, 1);
    b.x[0] = INFINITY;
    ASSERT_EQ(amp_step(asked.session, b.inputs(), kSamples, nullptr, &asked.err), AMP_OK) << asked.err.message;
    EXPECT_FALSE(std::isfinite(asked.Norm()));
}

} // namespace
