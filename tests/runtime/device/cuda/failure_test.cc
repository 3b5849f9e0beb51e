// Every call of the driver fails in turn: a status and a message, nothing leaks, and after a fatal error every later
// call
// says what was first.
#include <unistd.h>

#include "tests/base/failing_allocator.h"
#include "tests/base/planted.h"
#include "tests/runtime/device/cuda/on_stand_in.h"
#include "tests/runtime/files.h"

namespace {

class Failure : public OnStandIn {
  protected:
    std::string path_ = ::testing::TempDir() + "cuda-failure-" + std::to_string(getpid()) + ".st";
    void TearDown() override {
        unlink(path_.c_str());
        OnStandIn::TearDown();
    }

    // Whatever a session does, up to the first call that is refused.
    amp_status Everything(const amp_allocator *allocator, const amp_session_options &options, amp_error *err) {
        amp_model *model = nullptr;
        amp_params *params = nullptr;
        amp_session *session = nullptr;
        TinyBatch batch(8), small(3);
        amp_step_report report;
        double loss, metric;
        int32_t there;
        amp_scaler_state scaler;
        std::vector<float> logits(8 * TINY_CLASSES), weight(TINY_CLASSES * TINY_FEATURES), bias(TINY_CLASSES);
        void *outputs[] = {logits.data()};
        amp_status s = amp_model_from_desc(tiny_cuda_desc(), "tiny", allocator, &model, err);
        if (!s) s = amp_params_create(model, nullptr, &params, err);
        if (!s) s = amp_session_create(model, params, &options, &session, err);
        if (!s) s = amp_step(session, batch.inputs, {8, 0}, nullptr, err);
        if (!s) s = amp_step(session, small.inputs, {3, 0}, &report, err);
        if (!s) s = amp_session_get_metrics(session, &metric, err);
        if (!s) s = amp_session_next_report(session, 1, &report, nullptr, &metric, &there, err);
        if (!s) s = amp_eval(session, batch.inputs, {8, 0}, &loss, &metric, err);
        if (!s) s = amp_infer(session, batch.inputs, {8, 0}, outputs, err);
        if (!s) s = amp_session_get_scaler(session, &scaler, err);
        if (!s) s = amp_session_set_scaler(session, &scaler, err);
        if (!s) s = amp_session_get_moment(session, "fc.bias/momentum", bias.data(), bias.size(), err);
        if (!s) s = amp_params_get(params, "fc.weight", weight.data(), weight.size(), err);
        if (!s) s = amp_params_set(params, "fc.weight", weight.data(), weight.size(), err);
        if (!s) s = amp_checkpoint_save(session, path_.c_str(), nullptr, err);
        if (!s) s = amp_checkpoint_load(session, path_.c_str(), nullptr, 0, err);
        if (!s) s = amp_step(session, batch.inputs, {8, 0}, nullptr, err);
        amp_model_release(model);
        amp_params_release(params);
        amp_session_release(session);
        return s;
    }

    int64_t CallsOfEverything(const amp_session_options &options) {
        amp_error err = {};
        reset_counters();
        EXPECT_EQ(Everything(nullptr, options, &err), AMP_OK) << err.message;
        const amp_json *calls = nullptr;
        Report r = report();
        calls = amp_json_get(r.root(), "calls");
        int64_t sum = 0;
        for (size_t i = 0; i < calls->object.count; i++) sum += calls->object.members[i].value.number.integer;
        return sum;
    }

    // Each |stride|th call from |first| on.  |result|: the CUresult; "": the call's usual one.
    void FailEachCall(int first, int stride, const std::string &result) {
        amp::SessionOptions options = CudaOptions(8);
        int64_t calls = CallsOfEverything(options);
        ASSERT_GT(calls, 100);
        int refused = 0;
        for (int64_t k = first; k <= calls; k += stride) {
            begin();
            ASSERT_EQ(set_fail(("*:" + std::to_string(k) + result).c_str()), 0);
            FailingAllocator counting;
            amp_allocator a = counting.get();
            amp_error err = {};
            amp_status status = Everything(&a, options, &err);
            set_fail("");
            refused += status != AMP_OK;
            if (status) {
                EXPECT_NE(status, AMP_BAD_FILE) << k << ": " << err.message;
                EXPECT_GT(strlen(err.message), 10u) << k;
            }
            if (result.empty()) {
                Report r = report();
                for (const std::string &line : r.lines("leaks"))
                    ADD_FAILURE() << k << " " << err.message << ": " << line;
                for (const std::string &line : r.lines("misuse"))
                    ADD_FAILURE() << k << " " << err.message << ": " << line;
            }
            if (HasFailure()) break;
        }
        EXPECT_GT(refused, calls / stride / 2) << "most calls matter";
    }
};

// In parts, for several processes.
enum { PARTS = 6 };
class FailurePart : public Failure, public ::testing::WithParamInterface<int> {};
TEST_P(FailurePart, EveryCallMayFail) { FailEachCall(1 + GetParam(), PARTS, ""); }
TEST_P(FailurePart, EveryCallMayFailForGood) { FailEachCall(1 + GetParam(), 2 * PARTS, ":700"); }
INSTANTIATE_TEST_SUITE_P(Parts, FailurePart, ::testing::Range(0, (int)PARTS));

TEST_F(Failure, EveryAllocationMayFail) {
    for (int fail = 0;; fail++) {
        ASSERT_LT(fail, 1000);
        FailingAllocator failing(fail);
        amp_allocator a = failing.get();
        amp::SessionOptions o = CudaOptions(8);
        o.inspect.keep_values = fail % 2, o.inspect.separate_buffers = fail / 2 % 2;
        amp_error err = {};
        begin();
        amp_status status = Everything(&a, o, &err);
        ExpectNoLeak();
        if (!status) break;
        ASSERT_EQ(status, AMP_OUT_OF_MEMORY) << fail << ": " << err.message;
    }
}

TEST_F(Failure, PlantedLeaksAreFound) {
    CuContext context, popped;
    OK(cu.init(0));
    OK(cu.primary_retain(&context, 0));
    OK(cu.context_push(context));
    alloc(64);
    OK(cu.context_pop(&popped));
    OK(cu.primary_release(0));
    ExpectFound("device memory that is not freed", "leaks: device memory", [this] { ExpectNoLeak(); });
    ExpectFound("memory that is not freed", "1 allocations were not freed", [] {
        FailingAllocator counting;
        amp_allocator a = counting.get();
        free(a.alloc(a.user, 8, 8));
    });
}

TEST_F(Failure, AFatalErrorIsKept) {
    TinyOnCuda tiny;
    amp_session *session = tiny.Open(CudaOptions(8));
    TinyBatch batch(8);
    amp_step_report step;
    amp_error err = {};
    ASSERT_EQ(amp_step(session, batch.inputs, {8, 0}, &step, &err), AMP_OK) << err.message;
    ASSERT_EQ(set_fail("cuGraphLaunch:1:700"), 0);
    EXPECT_NE(amp_step(session, batch.inputs, {8, 0}, &step, &err), AMP_OK);
    ExpectMessage(err, "CUDA_ERROR_ILLEGAL_ADDRESS");
    reset_counters();
    double loss;
    std::vector<float> w(TINY_CLASSES * TINY_FEATURES);
    EXPECT_NE(amp_step(session, batch.inputs, {8, 0}, nullptr, &err), AMP_OK);
    ExpectMessage(err, "CUDA_ERROR_ILLEGAL_ADDRESS");
    EXPECT_NE(amp_eval(session, batch.inputs, {8, 0}, &loss, nullptr, &err), AMP_OK);
    EXPECT_NE(amp_params_get(tiny.params, "fc.weight", w.data(), w.size(), &err), AMP_OK) << "what it learned is lost";
    EXPECT_NE(amp_checkpoint_save(session, path_.c_str(), nullptr, &err), AMP_OK);
    ExpectMessage(err, "CUDA_ERROR_ILLEGAL_ADDRESS");
    EXPECT_EQ(report().calls("cuGraphLaunch") + report().calls("cuMemcpyDtoHAsync_v2"), 0) << "the driver is not asked";
    tiny.Close(session);
    // from a file they go on elsewhere
    TinyOnCuda other;
    ASSERT_EQ(amp_params_save(other.params, path_.c_str(), nullptr, &err), AMP_OK) << err.message;
    ASSERT_EQ(amp_params_load(tiny.params, path_.c_str(), nullptr, nullptr, &err), AMP_OK) << err.message;
    amp_session *cpu = tiny.Open(TinyOptions(8));
    EXPECT_EQ(amp_step(cpu, batch.inputs, {8, 0}, &step, &err), AMP_OK) << err.message;
}

// A step that fails after kernels of it were started leaves weights of no step that a counter knows.
class Halfway : public Failure {
  protected:
    static constexpr int STEPS = 4;
    struct Saved {
        std::string checkpoint;
        std::vector<float> weight;
    };
    std::vector<Saved> of_; // by iteration

    static amp_status Step(amp_session *session, int i, amp_error *err) {
        TinyBatch batch(8, (unsigned)i);
        return amp_step(session, batch.inputs, {batch.n, 0}, nullptr, err);
    }
    // Empty: refused, and |err| says why.
    Saved Save(TinyOnCuda *tiny, amp_session *session, amp_error *err) {
        Saved out = {"", std::vector<float>(TINY_CLASSES * TINY_FEATURES)};
        if (amp_params_get(tiny->params, "fc.weight", out.weight.data(), out.weight.size(), err)) out.weight.clear();
        if (!amp_checkpoint_save(session, path_.c_str(), nullptr, err)) out.checkpoint = ReadAll(path_);
        return out;
    }
    void SaveEachStep() {
        TinyOnCuda tiny;
        amp_session *session = tiny.Open(CudaOptions(8));
        amp_error err = {};
        for (int i = 0; i <= STEPS; i++) {
            ASSERT_TRUE(!i || !Step(session, i, &err)) << err.message;
            of_.push_back(Save(&tiny, session, &err));
            ASSERT_FALSE(of_[i].checkpoint.empty()) << err.message;
        }
    }
    void ExpectOfAStep(TinyOnCuda *tiny, amp_session *session, int *refused) {
        amp_error err = {};
        amp_scaler_state at;
        ASSERT_EQ(amp_session_get_scaler(session, &at, &err), AMP_OK) << err.message;
        const Saved is = Save(tiny, session, &err);
        EXPECT_EQ(is.checkpoint.empty(), is.weight.empty());
        if (is.checkpoint.empty()) {
            ++*refused;
            ExpectMessage(err, "a step has failed halfway; load a checkpoint, or make new params");
        } else {
            EXPECT_EQ(is.checkpoint, of_.at((size_t)at.iteration).checkpoint) << at.iteration;
            EXPECT_EQ(is.weight, of_.at((size_t)at.iteration).weight) << at.iteration;
        }
    }
};

TEST_F(Halfway, WhatIsSavedIsOfAWholeStep) {
    SaveEachStep();
    int failed = 0, refused = 0;
    bool planted = true; // else fewer calls are made
    for (int k = 1; planted && !HasFailure(); k++) {
        SCOPED_TRACE("call " + std::to_string(k));
        begin();
        TinyOnCuda tiny;
        amp_session *session = tiny.Open(CudaOptions(8));
        amp_error err = {};
        ASSERT_EQ(set_fail(("*:" + std::to_string(k)).c_str()), 0);
        amp_status status = AMP_OK;
        for (int i = 1; i <= STEPS && !status; i++) status = Step(session, i, &err);
        set_fail("");
        planted = !report().lines("injected").empty();
        failed += status != AMP_OK;
        if (status) ExpectOfAStep(&tiny, session, &refused);
        EXPECT_EQ(Step(session, 9, &err), AMP_OK) << err.message;
        EXPECT_FALSE(Save(&tiny, session, &err).checkpoint.empty()) << err.message; // whole again
    }
    EXPECT_GT(failed, 20);
    EXPECT_GT(refused, 2 * STEPS - 2);
    EXPECT_LT(refused, failed / 2);
}

TEST_F(Halfway, ACheckpointMakesItWhole) {
    SaveEachStep();
    TinyOnCuda tiny;
    amp_session *session = tiny.Open(CudaOptions(8));
    amp_error err = {};
    ASSERT_EQ(Step(session, 1, &err), AMP_OK) << err.message;
    ASSERT_EQ(amp_checkpoint_save(session, path_.c_str(), nullptr, &err), AMP_OK) << err.message;
    ASSERT_EQ(set_fail("cuMemcpyDtoHAsync_v2:1"), 0);
    EXPECT_NE(Step(session, 2, &err), AMP_OK);
    set_fail("");
    EXPECT_EQ(amp_params_publish(tiny.params, nullptr, &err), AMP_WRONG_STATE);
    ExpectMessage(err, "amp_params_publish: the weights of tiny are not here: a step has failed halfway");
    ASSERT_EQ(amp_checkpoint_load(session, path_.c_str(), nullptr, 0, &err), AMP_OK) << err.message;
    EXPECT_EQ(Save(&tiny, session, &err).checkpoint, of_[1].checkpoint);
    ASSERT_EQ(Step(session, 2, &err), AMP_OK) << err.message;
    EXPECT_EQ(Save(&tiny, session, &err).checkpoint, of_[2].checkpoint);
}

// One thread too many reads an input and writes a temporary past their ends.
TEST_F(Failure, OverrunsAreSeenInSeparateBuffers) {
    amp_model_desc desc = *tiny_cuda_desc();
    amp_model_cuda code = *tiny_cuda_code();
    auto first = static_cast<const amp_model_cuda_function *>(code.functions.data);
    std::vector<amp_model_cuda_function> functions(first, first + code.functions.count);
    std::string source;
    for (amp_model_cuda_function &f : functions) {
        if (strcmp(f.entry, "linear")) continue;
        source = f.source;
        source.replace(source.find("i >= n * C"), 10, "i > n * C");
        f.source = source.c_str();
    }
    ASSERT_FALSE(source.empty());
    code.functions.data = functions.data();
    desc.cuda = &code;
    amp_error err = {};
    amp_model *model;
    amp_params *params;
    amp_session *session;
    amp::SessionOptions o = CudaOptions(8);
    o.inspect.separate_buffers = 1;
    ASSERT_EQ(amp_model_from_desc(&desc, "tiny", nullptr, &model, &err), AMP_OK) << err.message;
    ASSERT_EQ(amp_params_create(model, nullptr, &params, &err), AMP_OK);
    ASSERT_EQ(amp_session_create(model, params, &o, &session, &err), AMP_OK) << err.message;
    TinyBatch batch(8);
    amp_step_report step;
    EXPECT_NE(amp_step(session, batch.inputs, {8, 0}, &step, &err), AMP_OK);
    ExpectMessage(err, "CUDA_ERROR_ILLEGAL_ADDRESS");
    EXPECT_TRUE(report().mentions("faults", "linear"));
    amp_session_release(session);
    amp_params_release(params);
    amp_model_release(model);
}

TEST_F(Failure, TooLargeSaysWhatToDo) {
    begin({{"MEMORY", std::to_string(1 << 20)}});
    TinyOnCuda tiny;
    amp::SessionOptions o = CudaOptions(100000);
    amp_session *s;
    EXPECT_EQ(amp_session_create(tiny.model, tiny.params, &o, &s, &tiny.err), AMP_OUT_OF_MEMORY);
    ExpectMessage(tiny.err, "has no memory for another ");
    ExpectMessage(tiny.err, "choose a smaller capacity");
    tiny.Open(CudaOptions(8));
}

} // namespace
