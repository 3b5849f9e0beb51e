// Memory plans that are wrong: a temporary whose place is given to another while it is still read.  In the shared arena
// the numbers
// are wrong; with separate buffers it is a fault that names kernel, line, block and thread.

#include "tests/base/pattern.h"
#include "tests/runtime/device/cuda/on_stand_in.h"

namespace {

struct Plant {
    const char *buffer;
    int32_t first, last;           // kernels of its life, by the wrong plan
    const char *kernel, *function; // that reads what is gone
};

void PrintTo(const Plant &p, std::ostream *out) { *out << p.buffer << " read by " << p.kernel; }

amp_model_buffer *Find(amp_model_buffer *buffers, size_t count, const char *name) {
    for (size_t i = 0; i < count; i++)
        if (!strcmp(buffers[i].name, name)) return &buffers[i];
    ADD_FAILURE() << "the model has no buffer " << name;
    return buffers;
}

// The tiny model, whose plan for training is made wrong after it has been loaded: loading refuses it.
class PlannedModel {
  public:
    PlannedModel() = default;
    PlannedModel(const PlannedModel &) = delete;
    ~PlannedModel() {
        amp_session_release(session);
        amp_params_release(params);
        amp_model_release(model);
    }
    void Open(bool separate, const Plant *plant) {
        amp::SessionOptions o = CudaOptions(8);
        o.inspect.separate_buffers = separate;
        amp_params_options seed = {sizeof seed, 7, 0};
        ASSERT_EQ(amp_model_from_desc(tiny_cuda_desc(), "tiny", nullptr, &model, &err), AMP_OK) << err.message;
        if (plant) Bury(*plant);
        ASSERT_EQ(amp_params_create(model, &seed, &params, &err), AMP_OK) << err.message;
        ASSERT_EQ(amp_session_create(model, params, &o, &session, &err), AMP_OK) << err.message;
    }
    amp_status Step(unsigned seed, amp_step_report *report) {
        TinyBatch batch(8, seed);
        return amp_step(session, batch.inputs, {8, 0}, report, &err);
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
    void Bury(const Plant &plant) {
        amp_model *cuda = nullptr;
        ASSERT_EQ(amp_model_for(model, "cuda", &cuda, &err), AMP_OK) << err.message;
        amp_program *p = &cuda->programs[0];
        buried_.assign(p->buffers, p->buffers + p->buffer_count);
        p->buffers = buried_.data();
        amp_model_buffer *b = Find(buried_.data(), buried_.size(), plant.buffer);
        ASSERT_NE(b->last_kernel, plant.last) << "the plan is already so";
        b->first_kernel = plant.first, b->last_kernel = plant.last;
    }
    std::vector<amp_model_buffer> buried_;
};

class PlantedSession : public OnStandIn, public ::testing::WithParamInterface<Plant> {
  protected:
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
            EXPECT_EQ(amp_step(tiny.session, batch.inputs, {8, 0}, &report, &err), AMP_OK) << err.message;
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
        m.Open(separate, nullptr);
        const std::vector<float> got = Train(&m);
        ASSERT_EQ(got.size(), want.size());
        for (size_t i = 0; i < got.size(); i++) ASSERT_NEAR(got[i], want[i], 1e-5) << i << " separate " << separate;
    }
    ExpectNoLeak();
}

TEST_P(PlantedSession, LoadingRefusesIt) {
    amp_model_desc desc = *tiny_cuda_desc();
    amp_model_cuda cuda = *tiny_cuda_code();
    auto first = static_cast<const amp_model_cuda_program *>(cuda.programs.data);
    std::vector<amp_model_cuda_program> programs(first, first + cuda.programs.count);
    auto buffer = static_cast<const amp_model_buffer *>(programs[0].buffers.data);
    std::vector<amp_model_buffer> buffers(buffer, buffer + programs[0].buffers.count);
    amp_model_buffer *b = Find(buffers.data(), buffers.size(), GetParam().buffer);
    b->first_kernel = GetParam().first, b->last_kernel = GetParam().last;
    programs[0].buffers.data = buffers.data();
    cuda.programs.data = programs.data();
    desc.cuda = &cuda;
    amp_model *model = nullptr;
    amp_error err = {};
    EXPECT_EQ(amp_model_from_desc(&desc, "tiny", nullptr, &model, &err), AMP_BAD_FILE);
    ExpectMessage(err, (std::string("uses buffer ") + GetParam().buffer + ", which lives from kernel").c_str());
}

TEST_P(PlantedSession, UseAfterTheEndIsAFaultInSeparateBuffers) {
    for (const char *seed : {"1", "2", "3"}) {
        begin({{"SEED", seed}});
        PlannedModel m;
        m.Open(true, &GetParam());
        amp_step_report report;
        EXPECT_EQ(m.Step(0, &report), AMP_DEVICE_FAILED) << "seed " << seed;
        ExpectMessage(m.err, "CUDA_ERROR_LAUNCH_FAILED");
        const std::vector<std::string> faults = this->report().lines("faults");
        ASSERT_EQ(faults.size(), 1u) << m.err.message;
        const std::string says =
            std::string("kernel ") + GetParam().function +
            R"(, ptx line \d+ \(ld.*\), block \(\d+,\d+,0\), thread \(\d+,0,0\): reads .*uninitialised.*)";
        EXPECT_TRUE(HasMatch(faults[0], says)) << faults[0];
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
    m.Open(false, &GetParam());
    const std::vector<float> want = Reference(), got = Train(&m);
    double worst = 0;
    for (size_t i = 0; i < got.size(); i++)
        worst = std::max(worst, std::isnan(got[i]) ? INFINITY : std::fabs(double{got[i]} - want[i]));
    EXPECT_GT(worst, 1e-3);
}
INSTANTIATE_TEST_SUITE_P(Plans, PlantedArena, ::testing::Values(Plant{"d.fc.bias", 5, 5, "k07", "update"}));

} // namespace
