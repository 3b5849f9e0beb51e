// Launches of a step that begin before the one before them has ended: only of functions that say that they wait, on
// devices and drivers that know it, after nothing but a kernel; and what happens if one does not do what it says.
#include "tests/runtime/device/cuda/on_stand_in.h"

namespace {

// The tiny model, whose functions say that they wait from an architecture on; all do but number |liar|.
class Waiting : public AlteredTiny {
  public:
    explicit Waiting(uint32_t from, int liar = -1) {
        const auto *given = static_cast<const amp_model_cuda_function *>(cuda.functions.data);
        functions_.assign(given, given + cuda.functions.count);
        texts_.reserve(functions_.size());
        for (size_t i = 0; i < functions_.size(); i++) {
            std::string text = functions_[i].source;
            if (static_cast<int>(i) != liar) text.insert(text.find('{') + 1, WAIT);
            texts_.push_back(text);
            functions_[i].source = texts_[i].c_str();
            functions_[i].waits_from = from;
        }
        cuda.functions.data = functions_.data();
        Make();
    }

    void Open(bool separate = false) {
        amp::SessionOptions o = CudaOptions(8);
        o.inspect.separate_buffers = separate;
        ASSERT_EQ(amp_session_create(model, params, &o, &session, &err), AMP_OK) << err.message;
    }
    amp_status Step(unsigned seed, amp_step_report *report) {
        TinyBatch batch(8, seed);
        return amp_step(session, batch.inputs, {8, 0}, report, &err);
    }
    // Losses of four steps, of two sizes of batch.
    std::vector<double> Train() {
        std::vector<double> losses;
        amp_step_report report = {};
        for (unsigned i = 0; i < 4; i++) {
            EXPECT_EQ(Step(i, &report), AMP_OK) << err.message;
            losses.push_back(report.loss);
        }
        return losses;
    }

  private:
    static constexpr const char *WAIT = "\n#if __CUDA_ARCH__ >= 900\n    asm volatile(\"griddepcontrol.wait;\" ::: "
                                        "\"memory\");\n#endif\n";
    std::vector<amp_model_cuda_function> functions_;
    std::vector<std::string> texts_;
};

class OverlapSession : public OnStandIn {
  protected:
    // How many of a step's launches need not wait for the one before them, and of all; the losses are the CPU's.
    std::pair<int64_t, int64_t> Launches(uint32_t from, bool separate = false) {
        Waiting waiting(from);
        waiting.Open(separate);
        const std::vector<double> losses = waiting.Train();
        Tiny tiny(TinyOptions(8));
        amp_step_report report = {};
        for (unsigned i = 0; i < losses.size(); i++) {
            TinyBatch batch(8, i);
            EXPECT_EQ(amp_step(tiny.session, batch.inputs, {8, 0}, &report, &waiting.err), AMP_OK)
                << waiting.err.message;
            EXPECT_NEAR(losses[i], report.loss, 1e-5) << i;
        }
        Report r = this->report();
        EXPECT_TRUE(r.lines("faults").empty());
        return {r.calls("cuLaunchKernelEx"), r.calls("cuLaunchKernel")};
    }
};

TEST_F(OverlapSession, AllButTheFirstOfAProgramNeedNotWait) {
    const auto *programs = static_cast<const amp_model_cuda_program *>(tiny_cuda_code()->programs.data);
    const int64_t kernels = programs[0].kernels.count, refresh = programs[3].kernels.count;
    ASSERT_EQ(refresh, 1);
    const std::pair<int64_t, int64_t> none(0, kernels + refresh), most(kernels - 1, 1 + refresh);
    EXPECT_EQ(Launches(90), most);
    begin();
    EXPECT_EQ(Launches(0), none);
    begin();
    EXPECT_EQ(Launches(100), none);
    begin({{"ARCH", "89"}});
    EXPECT_EQ(Launches(80), none); // whatever they say: the stand-in would refuse it
    begin({{"ARCH", "90"}});
    setenv("AMPC_OVERLAP", "0", 1);
    EXPECT_EQ(Launches(90), none);
    unsetenv("AMPC_OVERLAP");
    begin();
    EXPECT_EQ(Launches(90, true), none) << "after each kernel a copy ends a temporary";
}

// Each function in turn; not the first of the step, nor the next, which touches nothing of what that one did.
TEST_F(OverlapSession, AFunctionThatDoesNotWaitIsFound) {
    std::string found;
    const auto *function = static_cast<const amp_model_cuda_function *>(tiny_cuda_code()->functions.data);
    const int functions = static_cast<int>(tiny_cuda_code()->functions.count);
    for (int liar = 0; liar < functions; liar++) {
        begin();
        Waiting waiting(90, liar);
        waiting.Open();
        amp_step_report step;
        if (waiting.Step(0, &step) == AMP_OK) continue;
        found += " " + std::string(function[liar].entry);
        ExpectMessage(waiting.err, "CUDA_ERROR_LAUNCH_FAILED");
        EXPECT_TRUE(report().mentions("faults", "what an earlier launch ")) << found;
    }
    EXPECT_EQ(found, " cross_entropy mean bias_gradient weight_gradient update_scaler update transpose");
}

} // namespace
