// planted.h: bugs planted in generated kernels are found.  Each is a small change of the text that codegen wrote or of
// its prelude, as a slip of the pen would make it.  As it is written, the kernel must run and agree with float64; with
// the bug, the interpreter must name fault, kernel, line, block and thread, or the comparison with float64 must fail.
#ifndef AMP_TESTS_CODEGEN_CUDA_PLANTED_H
#define AMP_TESTS_CODEGEN_CUDA_PLANTED_H

#include <gtest/gtest-spi.h>

#include <functional>

#include "tests/base/pattern.h"
#include "tests/codegen/cuda/cuda_run.h"

struct Change {
    std::string text, by;
};

inline const uint64_t seeds[] = {1, 2, 3};

class Planted : public CudaRunTest {
  protected:
    void SetUp() override {
        CudaRunTest::SetUp();
        if (TestDriver::Asked()) GTEST_SKIP() << "a GPU would not say what is wrong";
    }

    void Use(const std::string &body, int64_t n, int arch) {
        n_ = n, arch_ = arch;
        m_ = PlannedForCuda(Text(body));
        ASSERT_NE(m_, nullptr);
        cuda_ = Emit(m_);
        ASSERT_NE(cuda_, nullptr);
        func_ = m_->funcs.data[0];
        given_ = Draw(m_, func_, n);
        after_ = given_;
        want_ = Interpret(func_, n, &after_);
    }

    // The source with |changes|; each text is there.
    std::string Changed(const std::vector<Change> &changes) {
        std::string source = Source(cuda_);
        for (const Change &c : changes) {
            const size_t at = source.find(c.text);
            EXPECT_NE(at, std::string::npos) << "the generated source has no more: " << c.text << "\n"
                                             << Functions(cuda_);
            if (at != std::string::npos) source.replace(at, c.text.size(), c.by);
        }
        return source;
    }

    std::unique_ptr<LoadedPtx> Compile(const std::string &source) {
        amp_nvrtc_job job = {};
        job.source = source.c_str();
        job.name = "planted.cu";
        job.arch = arch_;
        amp_nvrtc_result result = {};
        amp_error err = {};
        if (amp_nvrtc_compile(nvrtc_, &job, &result, &err)) {
            ADD_FAILURE() << err.message;
            return nullptr;
        }
        auto ptx = std::make_unique<LoadedPtx>(result.ptx, arch_);
        amp_nvrtc_result_free(nvrtc_, &result);
        return ptx;
    }

    ExecFault Run(const LoadedPtx &ptx, uint64_t seed, std::string *message, Values *got,
                  const std::function<void(CudaRun *)> &prepare = nullptr) {
        CudaRun run(cuda_, ptx, func_->name, n_);
        run.Set(given_);
        if (prepare) prepare(&run);
        *message = run.RunToFault(seed);
        int fault = EXEC_OK, text = 0; // "fault 4: kernel .."
        if (!message->empty() && sscanf(message->c_str(), "fault %d: %n", &fault, &text) == 1) message->erase(0, text);
        for (int i = 0; !fault && got && i < func_->results.len; i++)
            (*got)[func_->results.data[i].name] = run.Get(run.BufferOf(func_->results.data[i].value));
        return static_cast<ExecFault>(fault);
    }

    void CompareAll(const Values &got) {
        for (int i = 0; i < func_->results.len; i++) {
            const Result &r = func_->results.data[i];
            Compare(got.at(r.name), want_.at(ir_value(func_, r.value)->name), tolerance_, r.name);
        }
    }

    // A run with another x before the one that is looked at.
    void RunOthersFirst(CudaRun *run) {
        Values others = given_;
        for (double &x : others.at("x")) x += 1;
        run->Set(others);
        EXPECT_EQ(run->RunToFault(1), "");
        run->Set(given_);
    }

    // As it is generated, with every seed.
    void ExpectRight() {
        const auto ptx = Compile(Changed({}));
        ASSERT_NE(ptx, nullptr);
        for (uint64_t seed : seeds) {
            std::string message;
            Values got;
            ASSERT_EQ(Run(*ptx, seed, &message, &got), EXEC_OK) << message;
            CompareAll(got);
        }
    }

    // With every seed; the message matches |says| and names the place.
    void ExpectFault(const std::vector<Change> &changes, ExecFault fault, const std::string &says,
                     const std::function<void(CudaRun *)> &prepare = nullptr) {
        const auto ptx = Compile(Changed(changes));
        ASSERT_NE(ptx, nullptr);
        const std::string what = changes.empty() ? "" : changes[0].text + " -> " + changes[0].by + "\n";
        for (uint64_t seed : seeds) {
            std::string message;
            EXPECT_EQ(Run(*ptx, seed, &message, nullptr, prepare), fault) << what << message;
            EXPECT_TRUE(HasMatch(message, says)) << what << message;
            ExpectPlace(message);
        }
    }

    void ExpectPlace(const std::string &message) {
        bool ours = false;
        for (int i = 0; i < cuda_->functions.len; i++)
            ours |= message.find(std::string("kernel ") + cuda_->functions.data[i].entry + ", ptx line ") == 0;
        EXPECT_TRUE(ours) << message;
        EXPECT_TRUE(HasMatch(message, R"(ptx line \d+ \(.+\), block \(\d+,\d+,\d+\), thread \(\d+,0,0\): )"))
            << message;
    }

    // No fault, but the comparison fails.
    void ExpectWrong(const std::vector<Change> &changes, const std::function<void(CudaRun *)> &prepare = nullptr) {
        const auto ptx = Compile(Changed(changes));
        ASSERT_NE(ptx, nullptr);
        std::string message;
        Values got;
        ASSERT_EQ(Run(*ptx, 1, &message, &got, prepare), EXEC_OK) << message;
        ::testing::TestPartResultArray failures;
        {
            ::testing::ScopedFakeTestPartResultReporter aside(
                ::testing::ScopedFakeTestPartResultReporter::INTERCEPT_ONLY_CURRENT_THREAD, &failures);
            CompareAll(got);
        }
        EXPECT_GT(failures.size(), 0) << "not noticed: " << changes[0].text << " -> " << changes[0].by;
    }

    // No fault, but some of a result is not there.
    void ExpectUnwritten(const std::vector<Change> &changes) {
        const auto ptx = Compile(Changed(changes));
        ASSERT_NE(ptx, nullptr);
        std::string message;
        Values got;
        ExecFault fault = EXEC_OK;
        ::testing::TestPartResultArray failures;
        {
            ::testing::ScopedFakeTestPartResultReporter aside(
                ::testing::ScopedFakeTestPartResultReporter::INTERCEPT_ONLY_CURRENT_THREAD, &failures);
            fault = Run(*ptx, 1, &message, &got);
        }
        EXPECT_EQ(fault, EXEC_OK) << message;
        ASSERT_GT(failures.size(), 0) << "not noticed: " << changes[0].text << " -> " << changes[0].by;
        EXPECT_NE(std::string(failures.GetTestPartResult(0).message()).find("never written"), std::string::npos)
            << failures.GetTestPartResult(0).message();
    }

    double tolerance_ = 2e-3;
    int64_t n_ = 0;
    int arch_ = 0;
    Module *m_ = nullptr;
    const CudaModule *cuda_ = nullptr;
    const Func *func_ = nullptr;
    Values given_, after_, want_;
};

inline std::string Of(std::string text, const std::string &word, const std::string &by) {
    for (size_t at; (at = text.find(word)) != std::string::npos;) text.replace(at, word.size(), by);
    return text;
}

#endif
