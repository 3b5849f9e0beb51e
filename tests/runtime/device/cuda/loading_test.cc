// Which functions a session compiles and loads, and when: of what it is made for at its capacity, when it is created;
// of other programs, and of forms that another n takes, at the first run of them.
#include "tests/runtime/device/cuda/on_stand_in.h"

namespace {

// The tiny model, whose inference has tiles of 64 and of 128.
class TwoForms : public AlteredTiny {
  public:
    TwoForms() {
        const auto *given = static_cast<const amp_model_cuda_function *>(cuda.functions.data);
        functions.assign(given, given + cuda.functions.count);
        const auto *programs = static_cast<const amp_model_cuda_program *>(cuda.programs.data);
        programs_.assign(programs, programs + cuda.programs.count);
        for (amp_model_cuda_program &p : programs_)
            if (p.kind == AMP_PROGRAM_INFER) GiveForms(&p);
        cuda.functions.data = functions.data();
        cuda.functions.count = static_cast<uint32_t>(functions.size());
        cuda.programs.data = programs_.data();
    }
    amp_status Open(int64_t capacity, const char *program) {
        amp::SessionOptions o = CudaOptions(capacity);
        o.program = program;
        return amp_session_create(model, params, &o, &session, &err);
    }
    std::vector<float> Infer(int64_t n) {
        TinyBatch batch(n);
        std::vector<float> logits(static_cast<size_t>(n) * TINY_CLASSES);
        void *outputs[] = {logits.data()};
        EXPECT_EQ(amp_infer(session, batch.inputs, {n, 0}, outputs, &err), AMP_OK) << err.message;
        return logits;
    }

    std::vector<amp_model_cuda_function> functions;

  private:
    void GiveForms(amp_model_cuda_program *infer) {
        kernel_ = *static_cast<const amp_model_cuda_kernel *>(infer->kernels.data);
        part_ = *kernel_.parts.at;
        work_.instruction = AMP_INSTRUCTION_MMA_F16;
        work_.operations = 2;
        work_.elements = part_.grids->extent[0];
        work_.terms.mul = TINY_FEATURES;
        for (int i = 0; i < 2; i++) {
            const int side = i ? 128 : 64;
            grids_[i] = *part_.grids;
            grids_[i].extent[1] = {side, 1, 0, 0};
            grids_[i].per[0] = grids_[i].per[1] = side;
        }
        choices_[1] = *kernel_.choices.at;
        choices_[0] = {static_cast<uint32_t>(functions.size()), {64, 1, 1}, 0};
        functions.push_back(functions[choices_[1].function]);
        part_.grids = grids_;
        part_.work_count = 1;
        kernel_.work = {&work_, 1};
        kernel_.parts.at = &part_;
        kernel_.choices = {choices_, 2};
        infer->kernels.data = &kernel_;
    }
    std::vector<amp_model_cuda_program> programs_;
    amp_model_cuda_kernel kernel_;
    amp_model_cuda_part part_;
    amp_model_cuda_grid grids_[2];
    amp_model_cuda_work work_ = {};
    amp_model_cuda_choice choices_[2];
};

class CudaLoading : public OnStandIn {
  protected:
    enum { REFUSED = 1 }; // a session's first image: the stand-in takes no machine code
    int64_t Loaded() {
        const int64_t count = report().calls("cuModuleLoadDataEx");
        reset_counters();
        return count;
    }
};

TEST_F(CudaLoading, WhatASessionIsMadeForIsLoadedAtItsCreation) {
    TwoForms tiny;
    tiny.Make();
    TinyBatch batch(8);
    double loss;
    ASSERT_EQ(tiny.Open(8, nullptr), AMP_OK) << tiny.err.message;
    EXPECT_EQ(Loaded(), REFUSED + 9) << "all of a step, and the copy of the weight";
    for (int i = 0; i < 2; i++)
        ASSERT_EQ(amp_step(tiny.session, batch.inputs, {8, 0}, nullptr, &tiny.err), AMP_OK) << tiny.err.message;
    EXPECT_EQ(Loaded(), 0);
    ASSERT_EQ(amp_eval(tiny.session, batch.inputs, {8, 0}, &loss, nullptr, &tiny.err), AMP_OK) << tiny.err.message;
    EXPECT_EQ(Loaded(), 0) << "its functions are the step's";
    tiny.Infer(8);
    EXPECT_EQ(Loaded(), 1);
    tiny.Infer(7);
    EXPECT_EQ(Loaded(), 0);
    ExpectNoLeak();
}

TEST_F(CudaLoading, ASessionThatOnlyInfersLoadsNoMore) {
    TwoForms tiny;
    tiny.Make();
    double loss;
    TinyBatch batch(8);
    ASSERT_EQ(tiny.Open(8, "infer"), AMP_OK) << tiny.err.message;
    EXPECT_EQ(Loaded(), REFUSED + 2) << "the product, and the copy of its weight";
    tiny.Infer(8);
    EXPECT_EQ(Loaded(), 0);
    ASSERT_EQ(amp_eval(tiny.session, batch.inputs, {8, 0}, &loss, nullptr, &tiny.err), AMP_OK) << tiny.err.message;
    EXPECT_EQ(Loaded(), 3);
}

TEST_F(CudaLoading, AFormThatAnotherNumberOfSamplesTakesIsLoadedThen) {
    TwoForms tiny;
    tiny.Make();
    ASSERT_EQ(tiny.Open(1000, "infer"), AMP_OK) << tiny.err.message;
    EXPECT_EQ(Loaded(), REFUSED + 2) << "tiles of 128: 79 blocks on 132 multiprocessors, for 157 in two waves";
    const std::vector<float> many = tiny.Infer(1000);
    EXPECT_EQ(Loaded(), 0);
    tiny.Infer(8);
    EXPECT_EQ(Loaded(), 1);
    tiny.Infer(800);
    EXPECT_EQ(Loaded(), 0);
    EXPECT_EQ(tiny.Infer(1000), many);
}

// To measure whether launches overlap more then.
TEST_F(CudaLoading, FunctionsPreferEqualPartsOfAMultiprocessorsMemoryIfAsked) {
    for (const char *overlap : {"", "equal"}) {
        setenv("AMPC_OVERLAP", overlap, 1);
        TwoForms tiny;
        tiny.Make();
        ASSERT_EQ(tiny.Open(8, nullptr), AMP_OK) << tiny.err.message;
        EXPECT_EQ(report().calls("cuFuncSetAttribute"), *overlap ? 9 : 0);
        unsetenv("AMPC_OVERLAP");
        reset_counters();
    }
}

// What does not compile is an error of the call that first needs it, and later calls can be made.
TEST_F(CudaLoading, AnErrorComesFromTheCallThatNeedsTheFunction) {
    const std::string broken = "KERNEL linear_half(broken) {}\n";
    TwoForms tiny;
    for (amp_model_cuda_function &f : tiny.functions)
        if (!strcmp(f.entry, "linear_half")) f.source = broken.c_str();
    tiny.Make();
    EXPECT_EQ(tiny.Open(8, "infer"), AMP_INTERNAL);
    ExpectMessage(tiny.err, "the model's CUDA code does not compile for sm_90: ");
    EXPECT_EQ(tiny.session, nullptr);
    ASSERT_EQ(tiny.Open(8, nullptr), AMP_OK) << tiny.err.message;
    TinyBatch batch(8);
    std::vector<float> logits(8 * TINY_CLASSES);
    void *outputs[] = {logits.data()};
    for (int i = 0; i < 2; i++) {
        ASSERT_EQ(amp_step(tiny.session, batch.inputs, {8, 0}, nullptr, &tiny.err), AMP_OK) << tiny.err.message;
        EXPECT_EQ(amp_infer(tiny.session, batch.inputs, {8, 0}, outputs, &tiny.err), AMP_INTERNAL);
        ExpectMessage(tiny.err, "the model's CUDA code does not compile for sm_90: ");
        ExpectMessage(tiny.err, "linear_half");
    }
}

} // namespace
