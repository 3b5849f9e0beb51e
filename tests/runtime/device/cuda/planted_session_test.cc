// Memory plans that are wrong: a temporary whose place is given to another while it is still read.  In the shared arena
// the numbers
// are wrong; with separate buffers it is a fault that names kernel, line, block and thread.
#include <regex>

#include "tests/runtime/device/cuda/on_stand_in.h"

namespace {

// The tiny model with a training program whose buffers can be changed.
class PlannedModel {
  public:
    PlannedModel() {
        auto first = static_cast<const amp_model_cuda_program *>(cuda_.programs.data);
        programs_.assign(first, first + cuda_.programs.count);
        const amp_model_table &table = programs_[0].buffers;
        auto buffer = static_cast<const amp_model_buffer *>(table.data);
        buffers_.assign(buffer, buffer + table.count);
        programs_[0].buffers.data = buffers_.data();
        cuda_.programs.data = programs_.data();
        desc_.cuda = &cuda_;
    }
    PlannedModel(const PlannedModel &) = delete;
    ~PlannedModel() {
        amp_session_release(session);
        amp_params_release(params);
        amp_model_release(model);
    }
    amp_model_buffer *Buffer(const char *name) {
        for (amp_model_buffer &b : buffers_)
            if (!strcmp(b.name, name)) return &b;
        ADD_FAILURE() << "the model has no buffer " << name;
        return &buffers_[0];
    }
    void Open(bool separate) {
        amp_session_options o = CudaOptions(8);
        o.separate_buffers = separate;
        amp_params_options seed = {sizeof seed, 7, 0};
        ASSERT_EQ(amp_model_from_desc(&desc_, "tiny", nullptr, &model, &err), AMP_OK) << err.message;
        ASSERT_EQ(amp_params_create(model, &seed, &params, &err), AMP_OK) << err.message;
        ASSERT_EQ(amp_session_create(model, params, &o, &session, &err), AMP_OK) << err.message;
    }
    amp_status Step(unsigned seed, amp_step_report *report) {
        TinyBatch batch(8, seed);
        return amp_step(session, batch.inputs, 8, report, &err);
    }
    std::vector<float> Weight() {
        std::vector<float> w(TINY_CLASSES * TINY_FEATURES);
        EXPECT_EQ(amp_params_get(params, "fc.weight", w.data(), w.size(), &err), AMP_OK) << err.message;
        return w;
    }

    amp_model *model = nullptr;
    amp_params *params = nullptr;
    amp_session *session = nullptr;
    amp_error err = {};

  private:
    amp_model_desc desc_ = *tiny_cuda_desc();
    amp_model_cuda cuda_ = *tiny_cuda_code();
    std::vector<amp_model_cuda_program> programs_;
    std::vector<amp_model_buffer> buffers_;
};

struct Plant {
    const char *buffer;
    int32_t first, last;           // kernels of its life, by the wrong plan
    const char *kernel, *function; // that reads what is gone
};

void PrintTo(const Plant &p, std::ostream *out) { *out << p.buffer << " read by " << p.kernel; }

class PlantedSession : public OnStandIn, public ::testing::WithParamInterface<Plant> {
  protected:
    static void Bury(PlannedModel *m) {
        amp_model_buffer *b = m->Buffer(GetParam().buffer);
        ASSERT_NE(b->last_kernel, GetParam().last) << "the plan is already so";
        b->first_kernel = GetParam().first, b->last_kernel = GetParam().last;
    }
    // Losses of six steps, and the weights afterwards.
    static std::vector<float> Train(PlannedModel *m) {
        std::vector<float> out;
        amp_step_report report = {};
        for (unsigned i = 0; i < 6; i++) {
            EXPECT_EQ(m->Step(i, &report), AMP_OK) << m->err.message;
            out.push_back(static_cast<float>(report.loss));
        }
        for (float w : m->Weight()) out.push_back(w);
        return out;
    }
    static std::vector<float> Reference() {
        TinyOnCuda start;
        Tiny tiny(TinyOptions(8));
        amp_error err = {};
        amp_step_report report = {};
        std::vector<float> out;
        for (unsigned i = 0; i < 6; i++) {
            TinyBatch batch(8, i);
            EXPECT_EQ(amp_step(tiny.session, batch.inputs, 8, &report, &err), AMP_OK) << err.message;
            out.push_back(static_cast<float>(report.loss));
        }
        std::vector<float> w(TINY_CLASSES * TINY_FEATURES);
        EXPECT_EQ(amp_params_get(tiny.params, "fc.weight", w.data(), w.size(), &err), AMP_OK) << err.message;
        out.insert(out.end(), w.begin(), w.end());
        return out;
    }
};

// As it is planned, both ways of placing memory give the CPU's numbers.
TEST_P(PlantedSession, AsItIsPlannedItRuns) {
    const std::vector<float> want = Reference();
    for (bool separate : {false, true}) {
        PlannedModel m;
        m.Open(separate);
        const std::vector<float> got = Train(&m);
        ASSERT_EQ(got.size(), want.size());
        for (size_t i = 0; i < got.size(); i++) ASSERT_NEAR(got[i], want[i], 1e-5) << i << " separate " << separate;
    }
    ExpectNoLeak();
}

TEST_P(PlantedSession, UseAfterTheEndIsAFaultInSeparateBuffers) {
    for (const char *seed : {"1", "2", "3"}) {
        begin({{"SEED", seed}});
        PlannedModel m;
        Bury(&m);
        m.Open(true);
        amp_step_report report;
        EXPECT_EQ(m.Step(0, &report), AMP_DEVICE_FAILED) << "seed " << seed;
        ExpectMessage(m.err, "CUDA_ERROR_LAUNCH_FAILED");
        const std::vector<std::string> faults = this->report().lines("faults");
        ASSERT_EQ(faults.size(), 1u) << m.err.message;
        const std::regex says(
            std::string("kernel ") + GetParam().function +
            R"(, ptx line \d+ \(ld.*\), block \(\d+,\d+,0\), thread \(\d+,0,0\): reads .*uninitialised.*)");
        EXPECT_TRUE(std::regex_search(faults[0], says)) << faults[0];
    }
    unsetenv("FAKECUDA_SEED");
}

INSTANTIATE_TEST_SUITE_P(Plans, PlantedSession,
                         ::testing::Values(Plant{"d.logits", 2, 4, "k04", "bias_gradient"},
                                           Plant{"d.logits", 2, 5, "k05", "weight_gradient"},
                                           Plant{"logits", 1, 1, "k01", "cross_entropy"},
                                           Plant{"hits", 2, 3, "k03", "mean"},
                                           Plant{"d.fc.weight", 6, 7, "k07", "update"},
                                           Plant{"d.fc.bias", 5, 5, "k07", "update"}));

// In the shared arena another tensor takes the place, and the numbers differ from the CPU's.
using PlantedArena = PlantedSession;
TEST_P(PlantedArena, UseAfterTheEndGivesOtherNumbers) {
    PlannedModel m;
    Bury(&m);
    m.Open(false);
    const std::vector<float> want = Reference(), got = Train(&m);
    double worst = 0;
    for (size_t i = 0; i < got.size(); i++)
        worst = std::max(worst, std::isnan(got[i]) ? INFINITY : std::fabs(double{got[i]} - want[i]));
    EXPECT_GT(worst, 1e-3);
}
INSTANTIATE_TEST_SUITE_P(Plans, PlantedArena, ::testing::Values(Plant{"d.fc.bias", 5, 5, "k07", "update"}));

} // namespace
