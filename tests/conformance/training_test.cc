// Every device, instruction set, number of threads and way of placing memory computes the same training. A new device
// is a row of the list at the end.
#include <tuple>

#include "tests/base/planted.h"
#include "tests/conformance/skeleton_device.h"
#include "tests/runtime/device/cuda/tiny_cuda.h"
#include "tests/runtime/tiny.h"

namespace {

struct Setup {
    const char *device, *isa; // isa: of the CPU's kernels; NULL: the device has none
    int threads;
    bool separate, keep;
    double logits; // tolerance
};

void PrintTo(const Setup &s, std::ostream *out) {
    *out << s.device << ", " << (s.isa ? s.isa : "-") << ", " << s.threads << " threads"
         << (s.separate ? ", separate" : "") << (s.keep ? ", keep" : "");
}

class Training : public ::testing::TestWithParam<Setup> {
  protected:
    // Its kernels are the device's.
    static const amp_model_desc *Desc() {
        return strcmp(GetParam().device, "cuda") ? amp_model_query() : tiny_cuda_desc();
    }
    static amp::SessionOptions Options(int64_t capacity) {
        amp::SessionOptions o = TinyOptions(capacity);
        o.device = GetParam().device;
        o.cpu.isa = GetParam().isa;
        o.threads = GetParam().threads;
        o.inspect.separate_buffers = GetParam().separate;
        o.inspect.keep_values = GetParam().keep;
        return o;
    }
    // What this machine lacks; "": nothing.
    static std::string Missing() {
        amp::SessionOptions o = Options(1);
        amp_params_options seed = {sizeof seed, 0, 0};
        amp_model *model;
        amp_params *params;
        amp_session *session;
        amp_error err = {};
        EXPECT_EQ(amp_model_from_desc(Desc(), "tiny", nullptr, &model, &err), AMP_OK) << err.message;
        EXPECT_EQ(amp_params_create(model, &seed, &params, &err), AMP_OK) << err.message;
        amp_status status = amp_session_create(model, params, &o, &session, &err);
        const bool no_nvrtc = status == AMP_NOT_FOUND && strstr(err.message, "NVRTC");
        EXPECT_TRUE(status == AMP_OK || status == AMP_UNSUPPORTED || no_nvrtc) << err.message;
        amp_session_release(session);
        amp_params_release(params);
        amp_model_release(model);
        return status ? err.message : "";
    }
    static void SetUpTestSuite() { setenv("AMPC_CACHE_DIR", (::testing::TempDir() + "kernels").c_str(), 1); }
    void SetUp() override {
        const std::string missing = Missing();
        if (!missing.empty()) GTEST_SKIP() << missing;
        blocks_ = skeleton_blocks();
    }
    static void ExpectFollows(const Tiny &tiny, TinyReference *reference);
    static void ExpectSameBits(float planted);
    void TearDown() override { EXPECT_EQ(skeleton_blocks(), blocks_) << "device memory was not released"; }

  private:
    int blocks_ = 0;
};

void Training::ExpectFollows(const Tiny &tiny, TinyReference *reference) {
    const int64_t sizes[] = {70, 1, 33, 64, 70, 5, 32, 31};
    amp_error err = {};
    for (int i = 0; i < 24; i++) {
        TinyBatch batch(sizes[i % 8], (unsigned)i);
        amp_step_report report;
        double metric;
        ASSERT_EQ(amp_step(tiny.session, batch.inputs, {batch.n, 0}, &report, &err), AMP_OK) << err.message;
        ASSERT_EQ(amp_session_get_metrics(tiny.session, &metric, &err), AMP_OK) << err.message;
        ASSERT_NEAR(report.loss, reference->Step(batch), 1e-5) << "step " << i;
        ASSERT_NEAR(metric, reference->accuracy, 1e-6);
        ASSERT_EQ(report.step, i + 1);
        ASSERT_EQ(report.iteration, i + 1);
        ASSERT_EQ(report.skipped, 0);
        ASSERT_EQ(report.scale, TINY_SCALE * std::ldexp(1.0f, i / TINY_INTERVAL));
    }
    ExpectNear(tiny.Weight(), reference->w, 1e-5);
    ExpectNear(tiny.Bias(), reference->b, 1e-5);
    TinyBatch batch(69, 99);
    double loss, metric;
    ASSERT_EQ(amp_eval(tiny.session, batch.inputs, {batch.n, 0}, &loss, &metric, &err), AMP_OK) << err.message;
    EXPECT_NEAR(loss, reference->Gradients(batch), 1e-5);
    EXPECT_NEAR(metric, reference->accuracy, 1e-6);
    std::vector<float> logits(69 * TINY_CLASSES);
    void *outputs[] = {logits.data()};
    ASSERT_EQ(amp_infer(tiny.session, batch.inputs, {batch.n, 0}, outputs, &err), AMP_OK) << err.message;
    ExpectNear(logits, reference->Logits(batch), GetParam().logits);
}

TEST_P(Training, FollowsTheReference) {
    Tiny tiny(Options(70), nullptr, Desc());
    TinyReference reference(tiny);
    ExpectFollows(tiny, &reference);
}

TEST_P(Training, PlantedMomentIsFound) {
    Tiny tiny(Options(70), nullptr, Desc());
    TinyReference reference(tiny);
    reference.mw[0] = 0.05;
    ExpectFound("another moment", "step ", [&] { ExpectFollows(tiny, &reference); });
}

// The CPU with one thread where the kernels are the CPU's, whatever the device; else the device itself.
// |planted|: added to a number that the other session alone is given.
void Training::ExpectSameBits(float planted) {
    amp::SessionOptions plain = TinyOptions(300);
    plain.device = GetParam().isa ? "cpu" : GetParam().device;
    plain.cpu.isa = GetParam().isa;
    Tiny one(plain, nullptr, Desc()), other(Options(300), nullptr, Desc());
    amp_error err = {};
    for (unsigned i = 0; i < 6; i++) {
        TinyBatch batch(300 - 37 * i, i);
        amp_step_report a, b;
        ASSERT_EQ(amp_step(one.session, batch.inputs, {batch.n, 0}, &a, &err), AMP_OK) << err.message;
        batch.x[0] += planted;
        ASSERT_EQ(amp_step(other.session, batch.inputs, {batch.n, 0}, &b, &err), AMP_OK) << err.message;
        ASSERT_EQ(a.loss, b.loss);
        ASSERT_EQ(one.Weight(), other.Weight());
        ASSERT_EQ(one.Bias(), other.Bias());
    }
}

TEST_P(Training, HasTheBitsOfOneThread) { ExpectSameBits(0); }

TEST_P(Training, PlantedNumberIsFound) {
    ExpectFound("another input", "a.loss", [] { ExpectSameBits(0.01f); });
}

TEST_P(Training, ASkippedStepChangesNothingButTheScaler) {
    Tiny tiny(Options(40), nullptr, Desc());
    amp_error err = {};
    TinyBatch good(40, 1), bad(40, 2);
    amp_step_report report;
    ASSERT_EQ(amp_step(tiny.session, good.inputs, {40, 0}, &report, &err), AMP_OK) << err.message;
    std::vector<float> w = tiny.Weight(), b = tiny.Bias(), m(w.size()), after(w.size());
    ASSERT_EQ(amp_session_get_moment(tiny.session, "fc.weight/momentum", m.data(), m.size(), &err), AMP_OK)
        << err.message;
    bad.x[TINY_FEATURES * 33 + 5] = INFINITY;
    ASSERT_EQ(amp_step(tiny.session, bad.inputs, {40, 0}, &report, &err), AMP_OK) << err.message;
    EXPECT_EQ(report.skipped, 1);
    EXPECT_EQ(report.step, 1);
    EXPECT_EQ(report.iteration, 2);
    EXPECT_EQ(report.scale, TINY_SCALE);
    EXPECT_EQ(tiny.Weight(), w);
    EXPECT_EQ(tiny.Bias(), b);
    ASSERT_EQ(amp_session_get_moment(tiny.session, "fc.weight/momentum", after.data(), after.size(), &err), AMP_OK);
    EXPECT_EQ(after, m);
    ASSERT_EQ(amp_step(tiny.session, good.inputs, {40, 0}, &report, &err), AMP_OK) << err.message;
    EXPECT_EQ(report.skipped, 0);
    EXPECT_EQ(report.scale, TINY_SCALE / 2);
}

// A device with memory of its own starts as a copy of skeleton_device.c.
const Setup kCpu[] = {{"cpu", "portable", 1, false, false, 1e-4}, {"cpu", "portable", 3, true, false, 1e-4},
                      {"cpu", "v3", 1, false, true, 1e-4},        {"cpu", "v3", 2, false, false, 1e-4},
                      {"cpu", "v4", 1, true, false, 1e-4},        {"cpu", "v4", 2, false, false, 1e-4},
                      {"cpu", "v4", 3, true, true, 1e-4},         {"cpu", "v4", 8, false, false, 1e-4},
                      {"cpu", "neon", 1, false, false, 1e-4},     {"cpu", "neon", 3, true, true, 1e-4}};
const Setup kSkeleton[] = {{"skeleton", "portable", 1, false, false, 1e-4},
                           {"skeleton", "v3", 1, false, true, 1e-4},
                           {"skeleton", "v4", 2, false, false, 1e-4},
                           {"skeleton", "neon", 2, false, false, 1e-4}};
// On the stand-in for its driver; logits are stored in f16.
const Setup kCuda[] = {{"cuda", nullptr, 1, false, false, 4e-3}, {"cuda", nullptr, 1, true, true, 4e-3}};

INSTANTIATE_TEST_SUITE_P(Cpu, Training, ::testing::ValuesIn(kCpu));
INSTANTIATE_TEST_SUITE_P(Skeleton, Training, ::testing::ValuesIn(kSkeleton));
INSTANTIATE_TEST_SUITE_P(Cuda, Training, ::testing::ValuesIn(kCuda));

} // namespace
