// planted.h: bugs planted in generated kernels are found.  Each is a small change of the text that codegen wrote or of
// its prelude, as a slip of the pen would make it.  As it is written, the kernel must run and agree with float64; with
// the bug, the interpreter must name fault, kernel, line, block and thread, or the comparison with float64 must fail.
#ifndef AMP_TESTS_CODEGEN_CUDA_PLANTED_H
#define AMP_TESTS_CODEGEN_CUDA_PLANTED_H

#include <functional>

#include "tests/base/pattern.h"
#include "tests/base/planted.h"
#include "tests/codegen/cuda/cuda_run.h"

struct Change {
    std::string text, by;
};

inline const uint64_t seeds[] = {1, 2, 3};

class Planted : public CudaRunTest {
  protected:
    void SetUp() override;

    void Use(const std::string &body, int64_t n, int arch);
    void UseModule(const std::string &text, int64_t n, int arch);

    // The source with |changes|; each text is there.
    std::string Changed(const std::vector<Change> &changes);

    std::unique_ptr<LoadedPtx> Compile(const std::string &source);

    ExecFault Run(const LoadedPtx &ptx, uint64_t seed, std::string *message, Values *got,
                  const std::function<void(CudaRun *)> &prepare = nullptr);

    void CompareAll(const Values &got);

    // A run with another x before the one that is looked at.
    void RunOthersFirst(CudaRun *run);

    // As it is generated, with every seed.
    void ExpectRight();

    // With every seed; the message matches |says| and names the place.
    void ExpectFault(const std::vector<Change> &changes, ExecFault fault, const std::string &says,
                     const std::function<void(CudaRun *)> &prepare = nullptr);

    void ExpectPlace(const std::string &message);

    // No fault, but the comparison fails.
    void ExpectWrong(const std::vector<Change> &changes, const std::function<void(CudaRun *)> &prepare = nullptr);

    // No fault, but some of a result is not there.
    void ExpectUnwritten(const std::vector<Change> &changes);

    double tolerance_ = 2e-3;
    int64_t n_ = 0;
    int arch_ = 0;
    Module *m_ = nullptr;
    const CudaModule *cuda_ = nullptr;
    const Func *func_ = nullptr;
    Values given_, after_, want_;
};

std::string Of(std::string text, const std::string &word, const std::string &by);

#endif
