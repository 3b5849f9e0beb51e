// Every device, instruction set, number of threads and way of placing memory computes the same training.
#include <tuple>

#include "tests/runtime/tiny.h"

namespace {

struct Setup {
    const char *isa;
    int threads;
    bool separate, keep;
};

void PrintTo(const Setup &s, std::ostream *out) {
    *out << s.isa << ", " << s.threads << " threads" << (s.separate ? ", separate" : "") << (s.keep ? ", keep" : "");
}

class Training : public ::testing::TestWithParam<Setup> {
  protected:
    static amp_session_options Options(int64_t capacity) {
        amp_session_options o = TinyOptions(capacity);
        o.isa = GetParam().isa;
        o.threads = GetParam().threads;
        o.separate_buffers = GetParam().separate;
        o.keep_values = GetParam().keep;
        return o;
    }
    static bool Runs() {
        amp_session_options o = Options(1);
        amp_params_options seed = {sizeof seed, 0};
        amp_model *model;
        amp_params *params;
        amp_session *session;
        amp_error err = {};
        EXPECT_EQ(amp_model_from_desc(amp_model_query(1, 0), "tiny", nullptr, &model, &err), AMP_OK) << err.message;
        EXPECT_EQ(amp_params_create(model, &seed, &params, &err), AMP_OK) << err.message;
        amp_status status = amp_session_create(model, params, &o, &session, &err);
        EXPECT_TRUE(status == AMP_OK || status == AMP_UNSUPPORTED) << err.message;
        amp_session_release(session);
        amp_params_release(params);
        amp_model_release(model);
        return status == AMP_OK;
    }
};

TEST_P(Training, FollowsTheReference) {
    if (!Runs()) GTEST_SKIP() << "this processor has no " << GetParam().isa;
    const int64_t sizes[] = {70, 1, 33, 64, 70, 5, 32, 31};
    Tiny tiny(Options(70));
    TinyReference reference(tiny);
    amp_error err = {};
    for (int i = 0; i < 24; i++) {
        TinyBatch batch(sizes[i % 8], (unsigned)i);
        amp_step_report report;
        double metric;
        ASSERT_EQ(amp_step(tiny.session, batch.inputs, batch.n, &report, &err), AMP_OK) << err.message;
        ASSERT_EQ(amp_session_metrics(tiny.session, &metric, &err), AMP_OK) << err.message;
        ASSERT_NEAR(report.loss, reference.Step(batch), 1e-5) << "step " << i;
        ASSERT_NEAR(metric, reference.accuracy, 1e-6);
        ASSERT_EQ(report.step, i + 1);
        ASSERT_EQ(report.iteration, i + 1);
        ASSERT_EQ(report.skipped, 0);
        ASSERT_EQ(report.scale, TINY_SCALE * std::ldexp(1.0f, i / TINY_INTERVAL));
    }
    ExpectNear(tiny.Weight(), reference.w, 1e-5);
    ExpectNear(tiny.Bias(), reference.b, 1e-5);
    TinyBatch batch(69, 99);
    double loss, metric;
    ASSERT_EQ(amp_eval(tiny.session, batch.inputs, batch.n, &loss, &metric, &err), AMP_OK) << err.message;
    EXPECT_NEAR(loss, reference.Gradients(batch), 1e-5);
    EXPECT_NEAR(metric, reference.accuracy, 1e-6);
    std::vector<float> logits(69 * TINY_CLASSES);
    void *outputs[] = {logits.data()};
    ASSERT_EQ(amp_infer(tiny.session, batch.inputs, batch.n, outputs, &err), AMP_OK) << err.message;
    ExpectNear(logits, reference.Logits(batch), 1e-4);
}

TEST_P(Training, OneThreadHasTheSameBits) {
    if (!Runs()) GTEST_SKIP() << "this processor has no " << GetParam().isa;
    amp_session_options plain = TinyOptions(300);
    plain.isa = GetParam().isa;
    Tiny one(plain), other(Options(300));
    amp_error err = {};
    for (unsigned i = 0; i < 6; i++) {
        TinyBatch batch(300 - 37 * i, i);
        amp_step_report a, b;
        ASSERT_EQ(amp_step(one.session, batch.inputs, batch.n, &a, &err), AMP_OK) << err.message;
        ASSERT_EQ(amp_step(other.session, batch.inputs, batch.n, &b, &err), AMP_OK) << err.message;
        ASSERT_EQ(a.loss, b.loss);
        ASSERT_EQ(one.Weight(), other.Weight());
        ASSERT_EQ(one.Bias(), other.Bias());
    }
}

TEST_P(Training, ASkippedStepChangesNothingButTheScaler) {
    if (!Runs()) GTEST_SKIP() << "this processor has no " << GetParam().isa;
    Tiny tiny(Options(40));
    amp_error err = {};
    TinyBatch good(40, 1), bad(40, 2);
    amp_step_report report;
    ASSERT_EQ(amp_step(tiny.session, good.inputs, 40, &report, &err), AMP_OK) << err.message;
    std::vector<float> w = tiny.Weight(), b = tiny.Bias(), m(w.size()), after(w.size());
    ASSERT_EQ(amp_session_get(tiny.session, "fc.weight/momentum", m.data(), m.size(), &err), AMP_OK) << err.message;
    bad.x[TINY_FEATURES * 33 + 5] = INFINITY;
    ASSERT_EQ(amp_step(tiny.session, bad.inputs, 40, &report, &err), AMP_OK) << err.message;
    EXPECT_EQ(report.skipped, 1);
    EXPECT_EQ(report.step, 1);
    EXPECT_EQ(report.iteration, 2);
    EXPECT_EQ(report.scale, TINY_SCALE);
    EXPECT_EQ(tiny.Weight(), w);
    EXPECT_EQ(tiny.Bias(), b);
    ASSERT_EQ(amp_session_get(tiny.session, "fc.weight/momentum", after.data(), after.size(), &err), AMP_OK);
    EXPECT_EQ(after, m);
    ASSERT_EQ(amp_step(tiny.session, good.inputs, 40, &report, &err), AMP_OK) << err.message;
    EXPECT_EQ(report.skipped, 0);
    EXPECT_EQ(report.scale, TINY_SCALE / 2);
}

INSTANTIATE_TEST_SUITE_P(Cpu, Training,
                         ::testing::Values(Setup{"portable", 1, false, false}, Setup{"portable", 3, true, false},
                                           Setup{"v3", 1, false, true}, Setup{"v3", 2, false, false},
                                           Setup{"v4", 1, true, false}, Setup{"v4", 2, false, false},
                                           Setup{"v4", 3, true, true}, Setup{"v4", 8, false, false}));

} // namespace
