// A kernel whose choices differ in shared memory alone: each device launches the largest that it has, having asked the
// driver for it; and choices whose function needs a newer device.
#include "tests/runtime/device/cuda/on_stand_in.h"

namespace {

// The tiny model, where kernel |name| of each program may have more shared memory.  Its first |newer| choices have a
// function of their own, for sm_90.
class Choosing : public AlteredTiny {
  public:
    explicit Choosing(const std::string &name, size_t newer = 0) : newer_(newer) {
        const auto *written = static_cast<const amp_model_cuda_function *>(cuda.functions.data);
        functions_.assign(written, written + cuda.functions.count);
        const auto *given = static_cast<const amp_model_cuda_program *>(cuda.programs.data);
        programs_.assign(given, given + cuda.programs.count);
        kernels_.resize(programs_.size());
        for (size_t i = 0; i < programs_.size(); i++) {
            const auto *of = static_cast<const amp_model_cuda_kernel *>(programs_[i].kernels.data);
            kernels_[i].assign(of, of + programs_[i].kernels.count);
            for (amp_model_cuda_kernel &k : kernels_[i])
                if (k.name == name) Widen(&k);
            programs_[i].kernels.data = kernels_[i].data();
        }
        cuda.programs.data = programs_.data();
        cuda.functions.data = functions_.data();
        cuda.functions.count = static_cast<uint32_t>(functions_.size());
        Make();
    }

    amp_status Step() {
        amp::SessionOptions o = CudaOptions(8);
        const amp_status status = amp_session_create(model, params, &o, &session, &err);
        TinyBatch batch(8, 1);
        amp_step_report report = {};
        return status ? status : amp_step(session, batch.inputs, {8, 0}, &report, &err);
    }

  private:
    void Widen(amp_model_cuda_kernel *k) {
        const uint32_t bytes[] = {200 << 10, 160 << 10, 98 << 10, 63 << 10};
        choices_.assign(4, k->choices.at[0]);
        grids_.assign(4, k->parts.at->grids[0]);
        for (size_t i = 0; i < 4; i++) choices_[i].shared_bytes = bytes[i];
        for (size_t i = 0; i < newer_; i++) choices_[i].function = static_cast<uint32_t>(functions_.size());
        if (newer_) {
            functions_.push_back(functions_[k->choices.at[0].function]);
            functions_.back().min_arch = 90;
        }
        part_ = *k->parts.at;
        part_.grids = grids_.data();
        k->parts.at = &part_;
        k->choices = {choices_.data(), 4};
    }
    const size_t newer_;
    std::vector<amp_model_cuda_function> functions_;
    std::vector<amp_model_cuda_program> programs_;
    std::vector<std::vector<amp_model_cuda_kernel>> kernels_;
    std::vector<amp_model_cuda_choice> choices_;
    std::vector<amp_model_cuda_grid> grids_;
    amp_model_cuda_part part_ = {};
};

class SharedSession : public OnStandIn {
  protected:
    // so much shared memory; |newer|: of Choosing
    void StepTakes(int64_t kilobytes, const char *arch, size_t newer = 0) {
        begin({{"ARCH", arch}});
        {
            Choosing choosing("k01", newer);
            ASSERT_EQ(choosing.Step(), AMP_OK) << "sm_" << arch << ": " << choosing.err.message;
            const Report r = report();
            const amp_json *kernel = r.kernel("cross_entropy");
            ASSERT_NE(kernel, nullptr);
            EXPECT_EQ(Report::number(kernel, "dynamic_shared"), kilobytes << 10) << "sm_" << arch;
        }
        ExpectNoLeak();
    }
};

TEST_F(SharedSession, ADeviceLaunchesTheChoiceThatItHasSharedMemoryFor) {
    const std::pair<const char *, int64_t> archs[] = {{"75", 63}, {"80", 160}, {"86", 98}, {"89", 98}, {"90", 200}};
    for (const auto &[arch, kilobytes] : archs) StepTakes(kilobytes, arch);
}

TEST_F(SharedSession, AFunctionForNewerDevicesIsLeftOutWhereThereIsAnother) {
    StepTakes(63, "86", 3);
    StepTakes(200, "90", 3);
    begin({{"ARCH", "86"}});
    {
        Choosing choosing("k01", 4);
        EXPECT_EQ(choosing.Step(), AMP_UNSUPPORTED);
        ExpectMessage(choosing.err, "tiny: the kernel ");
        ExpectMessage(choosing.err, " needs sm_90, and ");
        ExpectMessage(choosing.err, " is sm_86; compile the model with --precision fp16");
    }
    ExpectNoLeak();
}

} // namespace
