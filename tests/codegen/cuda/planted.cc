#include "tests/codegen/cuda/planted.h"

void Planted::SetUp() {
    CudaRunTest::SetUp();
    if (TestDriver::Asked()) GTEST_SKIP() << "a GPU would not say what is wrong";
}

void Planted::Use(const std::string &body, int64_t n, int arch) { UseModule(Text(body), n, arch); }

void Planted::UseModule(const std::string &text, int64_t n, int arch) {
    n_ = n, arch_ = arch;
    m_ = PlannedForCuda(text);
    ASSERT_NE(m_, nullptr);
    cuda_ = Emit(m_);
    ASSERT_NE(cuda_, nullptr);
    func_ = m_->funcs.data[0];
    given_ = Draw(m_, func_, n);
    after_ = given_;
    want_ = Interpret(func_, n, &after_);
}

std::string Planted::Changed(const std::vector<Change> &changes) {
    std::string source = Source(cuda_);
    for (const Change &c : changes) {
        const size_t at = source.find(c.text);
        EXPECT_NE(at, std::string::npos) << "the generated source has no more: " << c.text << "\n" << Functions(cuda_);
        if (at != std::string::npos) source.replace(at, c.text.size(), c.by);
    }
    return source;
}

std::unique_ptr<LoadedPtx> Planted::Compile(const std::string &source) {
    amp_nvrtc_job job = {};
    job.source = source.c_str();
    job.name = "planted.cu";
    job.arch = arch_;
    if (quick_) CompileQuickly(nvrtc_, &job);
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

ExecFault Planted::Run(const LoadedPtx &ptx, uint64_t seed, std::string *message, Values *got,
                       const std::function<void(CudaRun *)> &prepare) {
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

void Planted::CompareAll(const Values &got) {
    for (int i = 0; i < func_->results.len; i++) {
        const Result &r = func_->results.data[i];
        Compare(got.at(r.name), want_.at(ir_value(func_, r.value)->name), tolerance_, r.name);
    }
}

void Planted::RunOthersFirst(CudaRun *run) {
    Values others = given_;
    for (double &x : others.at("x")) x += 1;
    run->Set(others);
    EXPECT_EQ(run->RunToFault(1), "");
    run->Set(given_);
}

void Planted::ExpectRight() {
    const auto ptx = Compile(Changed({}));
    ASSERT_NE(ptx, nullptr);
    for (uint64_t seed : seeds) {
        std::string message;
        Values got;
        ASSERT_EQ(Run(*ptx, seed, &message, &got), EXEC_OK) << message;
        CompareAll(got);
    }
}

void Planted::ExpectFault(const std::vector<Change> &changes, ExecFault fault, const std::string &says,
                          const std::function<void(CudaRun *)> &prepare) {
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

void Planted::ExpectPlace(const std::string &message) {
    bool ours = false;
    for (int i = 0; i < cuda_->functions.len; i++)
        ours |= message.find(std::string("kernel ") + cuda_->functions.data[i].entry + ", ptx line ") == 0;
    EXPECT_TRUE(ours) << message;
    EXPECT_TRUE(HasMatch(message, R"(ptx line \d+ \(.+\), block \(\d+,\d+,\d+\), thread \(\d+,0,0\): )")) << message;
}

void Planted::ExpectWrong(const std::vector<Change> &changes, const std::function<void(CudaRun *)> &prepare) {
    const auto ptx = Compile(Changed(changes));
    ASSERT_NE(ptx, nullptr);
    std::string message;
    Values got;
    ASSERT_EQ(Run(*ptx, 1, &message, &got, prepare), EXEC_OK) << message;
    ExpectFound(changes[0].text + " -> " + changes[0].by, "", [&] { CompareAll(got); });
}

void Planted::ExpectUnwritten(const std::vector<Change> &changes) {
    const auto ptx = Compile(Changed(changes));
    ASSERT_NE(ptx, nullptr);
    std::string message;
    Values got;
    ExecFault fault = EXEC_OK;
    ExpectFound(changes[0].text + " -> " + changes[0].by, "never written",
                [&] { fault = Run(*ptx, 1, &message, &got); });
    EXPECT_EQ(fault, EXEC_OK) << message;
}

std::string Of(std::string text, const std::string &word, const std::string &by) {
    for (size_t at; (at = text.find(word)) != std::string::npos;) text.replace(at, word.size(), by);
    return text;
}
