// cuda_model.h: core IR through fuse, layout, plan and code generation for CUDA, and its source through the real NVRTC.
#ifndef AMP_TESTS_CODEGEN_CUDA_CUDA_MODEL_H
#define AMP_TESTS_CODEGEN_CUDA_CUDA_MODEL_H

#include "cuda_sdk/nvrtc.h"
#include "codegen/cuda/cuda.h"
#include "passes/launch/plan_check.h"
#include "targets/target.h"
#include "tests/codegen/core_model.h"
#include "tests/codegen/cuda/quick_compile.h"

class CudaModelTest : public CoreModelTest {
  protected:
    static void SetUpTestSuite();
    void SetUp() override;

    Module *PlannedForCuda(const std::string &text, bool no_fuse = false);

    const CudaModule *Emit(const Module *m);

    // With a launch for each kernel, but for batches.
    const CudaModule *EmitAlone(const Module *m);

    void AddBatch(const LaunchPart &part, decltype(Func::launches) *to);

    std::string Source(const CudaModule *cuda);

    // Functions after the prelude.
    std::string Functions(const CudaModule *cuda);

    // PTX of the whole module for one architecture; warnings and spills are failures.
    std::string Ptx(const CudaModule *cuda, int arch, bool cubin = true);

    void CompileForAll(const std::string &text);

    // As CoreModelTest::Check: of what is built.
    void Check(const std::string &text, const std::vector<int64_t> &batches, double tolerance);

    bool quick_ = true; // see quick_compile.h; false for what runs long
    static inline amp_nvrtc *nvrtc_ = nullptr;
    static inline std::string why_;
};

#endif
