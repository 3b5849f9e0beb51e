// on_stand_in.h: sessions of the tiny model on the stand-in for NVIDIA's driver, each test as in a new process.
#ifndef AMP_TESTS_RUNTIME_DEVICE_CUDA_ON_STAND_IN_H
#define AMP_TESTS_RUNTIME_DEVICE_CUDA_ON_STAND_IN_H

#include <string>
#include <vector>

#include "fakecuda/driver/stand_in.h"
#include "tests/runtime/device/cuda/tiny_cuda.h"
#include "tests/runtime/tiny.h"

inline amp::SessionOptions CudaOptions(int64_t capacity) {
    amp::SessionOptions o = TinyOptions(capacity);
    o.device = "cuda";
    return o;
}

// The tiny model with tables that a test changes in |cuda| before it calls Make (seed 7), and a session of it.
struct AlteredTiny {
    AlteredTiny() { desc_.cuda = &cuda; }
    ~AlteredTiny() {
        amp_session_release(session);
        amp_params_release(params);
        amp_model_release(model);
    }
    AlteredTiny(const AlteredTiny &) = delete;

    void Make() {
        amp_params_options seed = {sizeof seed, 7, 0};
        EXPECT_EQ(amp_model_from_desc(&desc_, "tiny", nullptr, &model, &err), AMP_OK) << err.message;
        EXPECT_EQ(amp_params_create(model, &seed, &params, &err), AMP_OK) << err.message;
    }

    amp_model_cuda cuda = *tiny_cuda_code();
    amp_model *model = nullptr;
    amp_params *params = nullptr;
    amp_session *session = nullptr;
    amp_error err = {};

  private:
    amp_model_desc desc_ = *tiny_cuda_desc();
};

// Model and params (seed 7); sessions as they are asked for.  Everything is released at the end.
class TinyOnCuda {
  public:
    explicit TinyOnCuda(const amp_allocator *allocator = nullptr) {
        amp_params_options seed = {sizeof seed, 7, 0};
        EXPECT_EQ(amp_model_from_desc(tiny_cuda_desc(), "tiny", allocator, &model, &err), AMP_OK) << err.message;
        EXPECT_EQ(amp_params_create(model, &seed, &params, &err), AMP_OK) << err.message;
    }
    ~TinyOnCuda() {
        amp_model_release(model); // on purpose first: sessions keep what they need
        amp_params_release(params);
        for (amp_session *s : sessions_) amp_session_release(s);
    }
    TinyOnCuda(const TinyOnCuda &) = delete;
    TinyOnCuda &operator=(const TinyOnCuda &) = delete;

    amp_session *Open(const amp_session_options &options) {
        amp_session *s = nullptr;
        EXPECT_EQ(amp_session_create(model, params, &options, &s, &err), AMP_OK) << err.message;
        sessions_.push_back(s);
        return s;
    }
    void Close(amp_session *session) {
        for (amp_session *&s : sessions_)
            if (s == session) s = nullptr;
        amp_session_release(session);
    }
    std::vector<float> Get(const char *name, size_t count) {
        std::vector<float> out(count);
        EXPECT_EQ(amp_params_get(params, name, out.data(), count, &err), AMP_OK) << err.message;
        return out;
    }
    std::vector<float> Weight() { return Get("fc.weight", TINY_CLASSES * TINY_FEATURES); }
    std::vector<float> Bias() { return Get("fc.bias", TINY_CLASSES); }

    amp_model *model = nullptr;
    amp_params *params = nullptr;
    amp_error err = {};

  private:
    std::vector<amp_session *> sessions_;
};

// NVRTC compiles the tiny model's kernels once for all tests: they stay in a cache of their own.
class OnStandIn : public StandIn {
  protected:
    static void SetUpTestSuite() {
        setenv("AMPC_CACHE_DIR", (::testing::TempDir() + "cuda-session-cache").c_str(), 1);
        unsetenv("AMPC_CACHE_LIMIT");
    }
    void SetUp() override {
        StandIn::SetUp();
        if (HasFatalFailure()) return;
        amp::SessionOptions options = CudaOptions(1);
        amp_session *session;
        TinyOnCuda tiny;
        amp_status status = amp_session_create(tiny.model, tiny.params, &options, &session, &tiny.err);
        if (status == AMP_NOT_FOUND && strstr(tiny.err.message, "NVRTC")) GTEST_SKIP() << tiny.err.message;
        ASSERT_EQ(status, AMP_OK) << tiny.err.message;
        amp_session_release(session);
        begin();
    }
    void ExpectNoLeak() {
        Report r = report();
        for (const char *list : {"leaks", "misuse", "faults"})
            for (const std::string &line : r.lines(list)) ADD_FAILURE() << list << ": " << line;
    }
    static void ExpectMessage(const amp_error &err, const char *part) {
        EXPECT_NE(std::string(err.message).find(part), std::string::npos) << err.message;
    }
};

#endif
