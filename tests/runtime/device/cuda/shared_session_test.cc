// A kernel whose choices differ in shared memory alone: each device launches the largest that it has, having asked the
// driver for it.
#include "tests/runtime/device/cuda/on_stand_in.h"

namespace {

// The tiny model, where kernel |name| of each program may have more shared memory.
class Choosing : public AlteredTiny {
  public:
    explicit Choosing(const std::string &name) {
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
        part_ = *k->parts.at;
        part_.grids = grids_.data();
        k->parts.at = &part_;
        k->choices = {choices_.data(), 4};
    }
    std::vector<amp_model_cuda_program> programs_;
    std::vector<std::vector<amp_model_cuda_kernel>> kernels_;
    std::vector<amp_model_cuda_choice> choices_;
    std::vector<amp_model_cuda_grid> grids_;
    amp_model_cuda_part part_ = {};
};

class SharedSession : public OnStandIn {};

TEST_F(SharedSession, ADeviceLaunchesTheChoiceThatItHasSharedMemoryFor) {
    const std::pair<const char *, int64_t> archs[] = {{"75", 63}, {"80", 160}, {"86", 98}, {"89", 98}, {"90", 200}};
    for (const auto &[arch, kilobytes] : archs) {
        begin({{"ARCH", arch}});
        {
            Choosing choosing("k01");
            ASSERT_EQ(choosing.Step(), AMP_OK) << "sm_" << arch << ": " << choosing.err.message;
            const Report r = report();
            const amp_json *kernel = r.kernel("cross_entropy");
            ASSERT_NE(kernel, nullptr);
            EXPECT_EQ(Report::number(kernel, "dynamic_shared"), kilobytes << 10) << "sm_" << arch;
        }
        ExpectNoLeak();
    }
}

} // namespace
