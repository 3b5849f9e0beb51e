// Training, evaluation and inference of the tiny model on CUDA: the numbers of the reference, for every way of placing
// memory; one copy back for each step that is asked about, none and no wait for others.
#include "tests/runtime/device/cuda/child.h"
#include "tests/runtime/device/cuda/on_stand_in.h"

namespace {

struct Setup {
    int arch;
    bool separate, keep;
};

void PrintTo(const Setup &s, std::ostream *out) {
    *out << "sm_" << s.arch << (s.separate ? ", separate" : "") << (s.keep ? ", keep" : "");
}

class CudaTraining : public OnStandIn, public ::testing::WithParamInterface<Setup> {
  protected:
    void SetUp() override {
        OnStandIn::SetUp();
        if (!IsSkipped()) begin({{"ARCH", std::to_string(GetParam().arch)}});
    }
    static amp::SessionOptions Options(int64_t capacity) {
        amp::SessionOptions o = CudaOptions(capacity);
        o.inspect.separate_buffers = GetParam().separate;
        o.inspect.keep_values = GetParam().keep;
        return o;
    }
};

// The driver does not work in a child; a call there must not hang, nor answer for the parent.
TEST_P(CudaTraining, IsRefusedInAForkedChild) {
    TinyOnCuda tiny;
    amp_session *session = tiny.Open(Options(8));
    TinyBatch batch(8, 1);
    amp_step_report report;
    amp_error err = {};
    ASSERT_EQ(amp_step(session, batch.inputs, {batch.n, 0}, &report, &err), AMP_OK) << err.message;
    std::string said = InChild([&] {
        amp_status status = amp_step(session, batch.inputs, {batch.n, 0}, &report, &err);
        return status == AMP_WRONG_STATE ? std::string(err.message) : "status " + std::to_string(status);
    });
    EXPECT_NE(said.find("forked"), std::string::npos) << said;
    EXPECT_EQ(amp_step(session, batch.inputs, {batch.n, 0}, &report, &err), AMP_OK) << err.message;
}

TEST_P(CudaTraining, FollowsTheReference) {
    const int64_t sizes[] = {70, 1, 33, 64, 70, 5, 32, 31};
    TinyOnCuda tiny;
    Tiny start(TinyOptions(1)); // the same seed
    TinyReference reference(start);
    amp_session *session = tiny.Open(Options(70));
    amp_error err = {};
    for (int i = 0; i < 16; i++) {
        TinyBatch batch(sizes[i % 8], (unsigned)i);
        amp_step_report report;
        double metric;
        ASSERT_EQ(amp_step(session, batch.inputs, {batch.n, 0}, &report, &err), AMP_OK) << err.message;
        ASSERT_EQ(amp_session_get_metrics(session, &metric, &err), AMP_OK) << err.message;
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
    ASSERT_EQ(amp_eval(session, batch.inputs, {batch.n, 0}, &loss, &metric, &err), AMP_OK) << err.message;
    EXPECT_NEAR(loss, reference.Gradients(batch), 1e-5);
    EXPECT_NEAR(metric, reference.accuracy, 1e-6);
    std::vector<float> logits(69 * TINY_CLASSES);
    void *outputs[] = {logits.data()};
    ASSERT_EQ(amp_infer(session, batch.inputs, {batch.n, 0}, outputs, &err), AMP_OK) << err.message;
    std::vector<double> expected = reference.Logits(batch);
    for (size_t i = 0; i < logits.size(); i++) // f16 on the device
        ASSERT_NEAR(logits[i], expected[i], 1e-5 + std::fabs(expected[i]) * std::ldexp(1, -11)) << i;
    tiny.Close(session);
}

TEST_P(CudaTraining, StepsThatNobodyAsksAboutGiveTheSameBits) {
    TinyOnCuda asked, unasked;
    amp_session *a = asked.Open(Options(40)), *b = unasked.Open(Options(40));
    amp_error err = {};
    amp_step_report ra, rb;
    for (unsigned i = 0; i < 12; i++) {
        TinyBatch batch(40 - 3 * (i % 4), i);
        ASSERT_EQ(amp_step(a, batch.inputs, {batch.n, 0}, &ra, &err), AMP_OK) << err.message;
        ASSERT_EQ(amp_step(b, batch.inputs, {batch.n, 0}, i < 11 ? nullptr : &rb, &err), AMP_OK) << err.message;
    }
    EXPECT_EQ(ra.loss, rb.loss);
    EXPECT_EQ(ra.scale, rb.scale);
    EXPECT_EQ(rb.iteration, 12);
    EXPECT_EQ(asked.Weight(), unasked.Weight());
    EXPECT_EQ(asked.Bias(), unasked.Bias());
}

TEST_P(CudaTraining, ASkippedStepChangesNothingButTheScaler) {
    TinyOnCuda tiny;
    amp_session *session = tiny.Open(Options(40));
    amp_error err = {};
    TinyBatch good(40, 1), bad(40, 2);
    amp_step_report report;
    ASSERT_EQ(amp_step(session, good.inputs, {40, 0}, &report, &err), AMP_OK) << err.message;
    std::vector<float> w = tiny.Weight(), b = tiny.Bias(), m(w.size()), after(w.size());
    ASSERT_EQ(amp_session_get_moment(session, "fc.weight/momentum", m.data(), m.size(), &err), AMP_OK) << err.message;
    bad.x[TINY_FEATURES * 33 + 5] = INFINITY;
    ASSERT_EQ(amp_step(session, bad.inputs, {40, 0}, &report, &err), AMP_OK) << err.message;
    EXPECT_EQ(report.skipped, 1);
    EXPECT_EQ(report.step, 1);
    EXPECT_EQ(report.iteration, 2);
    EXPECT_EQ(report.scale, TINY_SCALE);
    EXPECT_EQ(tiny.Weight(), w);
    EXPECT_EQ(tiny.Bias(), b);
    ASSERT_EQ(amp_session_get_moment(session, "fc.weight/momentum", after.data(), after.size(), &err), AMP_OK);
    EXPECT_EQ(after, m);
    ASSERT_EQ(amp_step(session, good.inputs, {40, 0}, &report, &err), AMP_OK) << err.message;
    EXPECT_EQ(report.skipped, 0) << "flags are cleared";
    EXPECT_EQ(report.scale, TINY_SCALE / 2);
}

INSTANTIATE_TEST_SUITE_P(Setups, CudaTraining,
                         ::testing::Values(Setup{75, false, false}, Setup{80, true, false}, Setup{90, false, true},
                                           Setup{90, true, true}));

using CudaStep = OnStandIn;

TEST_F(CudaStep, WaitsForNothingWithoutAReport) {
    TinyOnCuda tiny;
    amp_session *session = tiny.Open(CudaOptions(8));
    amp_error err = {};
    TinyBatch batch(8);
    ASSERT_EQ(amp_step(session, batch.inputs, {8, 0}, nullptr, &err), AMP_OK) << err.message; // makes its graphs
    reset_counters();
    for (int i = 0; i < 2; i++)
        ASSERT_EQ(amp_step(session, batch.inputs, {8, 0}, nullptr, &err), AMP_OK) << err.message;
    Report r = report();
    EXPECT_EQ(r.total("host_synchronisations"), 0);
    EXPECT_EQ(r.calls("cuGraphLaunch"), 2);
    EXPECT_EQ(r.calls("cuLaunchKernel"), 0);
    EXPECT_EQ(r.calls("cuLaunchKernelEx"), 0);
    EXPECT_EQ(r.calls("cuMemcpyHtoDAsync_v2"), 2) << "one for all inputs";
    EXPECT_EQ(r.calls("cuMemAlloc_v2"), 0);
    EXPECT_EQ(r.calls("cuStreamSynchronize"), 0);
}

TEST_F(CudaStep, WaitsOnceForOneCopyWithAReport) {
    TinyOnCuda tiny;
    amp_session *session = tiny.Open(CudaOptions(8));
    amp_error err = {};
    TinyBatch batch(8);
    amp_step_report step;
    ASSERT_EQ(amp_step(session, batch.inputs, {8, 0}, &step, &err), AMP_OK) << err.message;
    reset_counters();
    ASSERT_EQ(amp_step(session, batch.inputs, {8, 0}, &step, &err), AMP_OK) << err.message;
    double metric;
    amp_scaler_state scaler;
    ASSERT_EQ(amp_session_get_metrics(session, &metric, &err), AMP_OK);
    ASSERT_EQ(amp_session_get_scaler(session, &scaler, &err), AMP_OK);
    Report r = report();
    EXPECT_EQ(r.total("host_synchronisations"), 1);
    EXPECT_EQ(r.calls("cuMemcpyDtoHAsync_v2"), 1);
    EXPECT_EQ(scaler.step, 2);
}

// The host waits for inputs of two calls before, whether it looks at reports or not.
TEST_F(CudaStep, ReportsWaitForNothing) {
    int64_t waits[2];
    for (bool looks : {false, true}) {
        begin();
        TinyOnCuda tiny;
        amp_session *session = tiny.Open(CudaOptions(8));
        amp_error err = {};
        TinyBatch batch(8);
        const int steps = 100;
        int told = 0;
        amp_step_report r;
        double metric;
        int32_t there = 1;
        ASSERT_EQ(amp_step(session, batch.inputs, {8, 0}, &r, &err), AMP_OK) << err.message; // makes its graphs
        reset_counters();
        for (int i = 0; i < steps; i++) {
            ASSERT_EQ(amp_step(session, batch.inputs, {8, 0}, nullptr, &err), AMP_OK) << err.message;
            for (there = looks; there; told += there) {
                ASSERT_EQ(amp_session_next_report(session, 0, &r, nullptr, &metric, &there, &err), AMP_OK);
                ASSERT_TRUE(!there || r.iteration == told + 2) << "in order, and none is missing";
            }
            EXPECT_LE(i + 1 - told, looks ? AMP_KEPT_REPORTS : steps);
        }
        waits[looks] = report().total("host_synchronisations");
        EXPECT_EQ(report().calls("cuMemcpyDtoHAsync_v2"), steps) << "one copy a step";
        for (there = looks; there; told += there)
            ASSERT_EQ(amp_session_next_report(session, 1, &r, nullptr, &metric, &there, &err), AMP_OK);
        EXPECT_EQ(told, looks ? steps : 0);
    }
    EXPECT_LE(waits[true], waits[false]);
}

TEST_F(CudaStep, AReportIsGivenThoughTheDeviceFailedAfterIt) {
    const std::set<bool> lost = over_seeds([this] {
        TinyOnCuda tiny;
        amp_session *session = tiny.Open(CudaOptions(8));
        amp_error err = {};
        TinyBatch batch(8);
        amp_step_report r = {};
        int32_t there = 0;
        for (int i = 0; i < 4; i++) {
            amp_step_report *asked = i == 2 ? &r : nullptr;
            EXPECT_EQ(amp_step(session, batch.inputs, {8, 0}, asked, &err), AMP_OK) << err.message;
        }
        EXPECT_EQ(set_fail("cuGraphLaunch:1:700"), 0);
        EXPECT_NE(amp_step(session, batch.inputs, {8, 0}, nullptr, &err), AMP_OK);
        for (int i = 1; i <= 2; i++) {
            EXPECT_EQ(amp_session_next_report(session, 1, &r, nullptr, nullptr, &there, &err), AMP_OK) << err.message;
            EXPECT_EQ(there, 1);
            EXPECT_EQ(r.iteration, i);
        }
        // the fourth, if its copy was done before the failure
        const amp_status status = amp_session_next_report(session, 0, &r, nullptr, nullptr, &there, &err);
        EXPECT_EQ(there, status == AMP_OK);
        return status != AMP_OK;
    });
    EXPECT_TRUE(lost.count(true));
}

TEST_F(CudaStep, GraphsAreMadeOncePerNumberOfSamples) {
    TinyOnCuda tiny;
    amp_session *session = tiny.Open(CudaOptions(40));
    amp_error err = {};
    reset_counters();
    for (int round = 0; round < 3; round++)
        for (int64_t n : {40, 7, 1}) {
            TinyBatch batch(n);
            ASSERT_EQ(amp_step(session, batch.inputs, {n, 0}, nullptr, &err), AMP_OK) << err.message;
        }
    EXPECT_EQ(report().calls("cuGraphInstantiateWithFlags"), 3 + 1) << "refresh is one";
    // 16 are kept of each program, the one that was unused the longest goes first
    for (int64_t n = 1; n <= 17; n++) {
        TinyBatch batch(n);
        ASSERT_EQ(amp_eval(session, batch.inputs, {n, 0}, nullptr, nullptr, &err), AMP_OK) << err.message;
    }
    EXPECT_EQ(report().calls("cuGraphInstantiateWithFlags"), 4 + 17);
    EXPECT_EQ(report().calls("cuGraphExecDestroy"), 1);
    TinyBatch two(2), one(1);
    ASSERT_EQ(amp_eval(session, two.inputs, {2, 0}, nullptr, nullptr, &err), AMP_OK);
    EXPECT_EQ(report().calls("cuGraphInstantiateWithFlags"), 4 + 17) << "2 was kept";
    ASSERT_EQ(amp_eval(session, one.inputs, {1, 0}, nullptr, nullptr, &err), AMP_OK);
    EXPECT_EQ(report().calls("cuGraphInstantiateWithFlags"), 4 + 18) << "1 was not";
}

// A ragged last batch: its graph, and the table that its launches read, are made beside the step before it.  That the
// copy of the table is late is too rare for seeds, so waits of streams are counted.
TEST_F(CudaStep, ANewNumberOfSamplesWaitsForNothing) {
    for (int seed = 1; seed <= 8; seed++) {
        begin({{"SEED", std::to_string(seed)}});
        TinyOnCuda tiny;
        amp_session *session = tiny.Open(CudaOptions(8));
        TinyBatch whole(8, 1), ragged(7, 2);
        int64_t waits = 0;
        for (const TinyBatch *batch : {&whole, &whole, &ragged}) {
            const bool is_new = batch == &ragged;
            reset_counters();
            ASSERT_EQ(amp_step(session, batch->inputs, {batch->n, 0}, nullptr, &tiny.err), AMP_OK) << tiny.err.message;
            Report r = report();
            if (is_new) {
                EXPECT_EQ(r.calls("cuGraphInstantiateWithFlags"), 1);
                EXPECT_EQ(r.total("host_synchronisations"), 0);
                EXPECT_EQ(r.calls("cuMemcpyHtoDAsync_v2"), 2) << "inputs and the table";
                EXPECT_EQ(r.calls("cuStreamWaitEvent"), waits + 1) << "for the table";
            }
            waits = r.calls("cuStreamWaitEvent");
        }
        tiny.Weight();
        EXPECT_TRUE(report().lines("faults").empty());
    }
}

TEST_F(CudaStep, TheFloorIsStickyAndSaysWhatToDo) {
    TinyOnCuda tiny;
    amp_session *session = tiny.Open(CudaOptions(8));
    amp_error err = {};
    TinyBatch good(8, 1), bad(8, 2);
    bad.x[0] = NAN;
    amp_scaler_state state = {2, 0, 0, 0, 5, 9};
    ASSERT_EQ(amp_session_set_scaler(session, &state, &err), AMP_OK) << err.message;
    amp_step_report r;
    EXPECT_EQ(amp_step(session, bad.inputs, {8, 0}, &r, &err), AMP_OK);
    EXPECT_EQ(amp_step(session, bad.inputs, {8, 0}, &r, &err), AMP_SCALE_AT_FLOOR);
    ExpectMessage(err, "iteration 11: gradients overflow f16 though the loss scale is at its floor of 1");
    EXPECT_EQ(r.at_floor, 1);
    EXPECT_EQ(r.skipped, 1);
    EXPECT_EQ(r.step, 5);
    EXPECT_EQ(amp_step(session, good.inputs, {8, 0}, &r, &err), AMP_SCALE_AT_FLOOR) << "sticky";
    state = {1024, 0, 0, 0, 6, 12};
    ASSERT_EQ(amp_session_set_scaler(session, &state, &err), AMP_OK);
    EXPECT_EQ(amp_step(session, good.inputs, {8, 0}, &r, &err), AMP_OK) << err.message;
    EXPECT_EQ(r.scale, 1024);
    EXPECT_EQ(r.iteration, 13);
}

TEST_F(CudaStep, ValuesAreThoseOfTheLastStep) {
    TinyOnCuda tiny;
    Tiny start(TinyOptions(1));
    TinyReference reference(start);
    amp::SessionOptions o = CudaOptions(40);
    o.inspect.keep_values = 1;
    amp_session *session = tiny.Open(o);
    TinyBatch batch(33);
    amp_error err = {};
    amp_tensor_info info;
    ASSERT_EQ(amp_step(session, batch.inputs, {33, 0}, nullptr, &err), AMP_OK) << err.message;
    std::vector<double> expected = reference.Logits(batch);
    reference.Gradients(batch);
    ASSERT_EQ(amp_eval(session, batch.inputs, {7, 0}, nullptr, nullptr, &err), AMP_OK) << err.message;
    std::vector<float> logits(33 * TINY_CLASSES), gradient(TINY_CLASSES * TINY_FEATURES);
    ASSERT_EQ(amp_session_get_value(session, "logits", &info, logits.data(), logits.size() * 4, &err), AMP_OK)
        << err.message;
    ExpectNear(logits, expected, 1e-5);
    ASSERT_EQ(amp_session_get_value(session, "grad.fc.weight", &info, gradient.data(), gradient.size() * 4, &err),
              AMP_OK)
        << err.message;
    ExpectNear(gradient, reference.gw, 1e-6);
    unsigned char ok = 9;
    ASSERT_EQ(amp_session_get_value(session, "ok", &info, &ok, 1, &err), AMP_OK) << err.message;
    EXPECT_EQ(ok, 1);
}

TEST_F(CudaStep, MemoryIsWhatTheDriverAndTheAllocatorGave) {
    struct Counter {
        size_t live = 0;
        static void *Alloc(void *user, size_t size, size_t align) {
            ((Counter *)user)->live += size;
            return aligned_alloc(align, (size + align - 1) / align * align);
        }
        static void Free(void *user, void *ptr, size_t size, size_t) {
            ((Counter *)user)->live -= size;
            free(ptr);
        }
    };
    for (bool separate : {false, true}) {
        amp::SessionOptions o = CudaOptions(100);
        o.inspect.separate_buffers = separate;
        Counter counter;
        amp_allocator a = {&counter, Counter::Alloc, Counter::Free};
        {
            TinyOnCuda tiny(&a);
            amp_session *session = tiny.Open(o);
            TinyBatch batch(100);
            ASSERT_EQ(amp_step(session, batch.inputs, {100, 0}, nullptr, &tiny.err), AMP_OK) << tiny.err.message;
            amp_memory_info m;
            amp_session_get_memory(session, &m);
            EXPECT_EQ(m.total, m.params + m.derived + m.moments + m.activations + m.outputs + m.scratch);
            EXPECT_EQ(m.params, 10u * 40 * 4 + 64 /* to 128 */ + 128 + 128);
            EXPECT_EQ(m.derived, 10u * 40 * 4 + 64);
            EXPECT_EQ(m.device, static_cast<uint64_t>(report().total("peak_bytes")));
            size_t after_first = counter.live;
            ASSERT_EQ(amp_step(session, batch.inputs, {100, 0}, nullptr, &tiny.err), AMP_OK);
            EXPECT_EQ(counter.live, after_first) << "a step allocates nothing";
        }
        EXPECT_EQ(counter.live, 0u);
        ExpectNoLeak();
    }
}

} // namespace
