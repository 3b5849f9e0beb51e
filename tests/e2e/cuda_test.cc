// Models that ampc compiled, on the stand-in for NVIDIA's driver: training, evaluation and inference follow the CPU's
// for
// every way of placing memory; a step that nobody asks about is one graph and waits for nothing.
#include "tests/e2e/harness.h"

#include <cmath>
#include <fstream>
#include <sstream>
#include <tuple>

#include "fakecuda/driver/stand_in.h"

namespace {

// A model in one session on one device.
struct OnOne {
    amp_model *model = nullptr;
    amp_params *params = nullptr;
    amp_session *session = nullptr;
    amp_error err = {};
    amp_status status;

    OnOne(const std::string &path, const char *device, int64_t capacity, bool separate) {
        amp_params_options p = {sizeof p, 3, 0};
        amp_session_options o = {};
        o.struct_size = sizeof o;
        o.capacity = capacity;
        o.threads = 1;
        o.seed = 3;
        o.device = device;
        o.separate_buffers = separate;
        status = amp_model_load(path.c_str(), nullptr, &model, &err);
        if (!status) status = amp_params_create(model, &p, &params, &err);
        if (!status) status = amp_session_create(model, params, &o, &session, &err);
    }
    OnOne(const OnOne &) = delete;
    ~OnOne() {
        amp_session_release(session);
        amp_params_release(params);
        amp_model_release(model);
    }
};

class CudaEndToEnd : public StandIn {
  protected:
    static void SetUpTestSuite() { setenv("AMPC_CACHE_DIR", e2e::temp_path("cuda-cache").c_str(), 1); }
    void SetUp() override {
        StandIn::SetUp();
        if (HasFatalFailure()) return;
        OnOne probe(e2e::compile_to_file(e2e::mlp("fp32"), "probe.so"), "cuda", 1, false);
        if (probe.status == AMP_NOT_FOUND && strstr(probe.err.message, "NVRTC"))
            GTEST_SKIP() << "NOT TESTED ON CUDA: " << probe.err.message;
        ASSERT_EQ(probe.status, AMP_OK) << probe.err.message;
    }
    void ExpectClean() {
        Report r = report();
        for (const char *list : {"faults", "misuse", "leaks", "unknown"})
            for (const std::string &line : r.lines(list)) ADD_FAILURE() << list << ": " << line;
    }
};

std::string ReadText(const char *path) {
    std::ifstream file(path);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
}

struct Way {
    const char *precision;
    int arch;
    bool separate;
};
void PrintTo(const Way &s, std::ostream *out) {
    *out << s.precision << " sm_" << s.arch << (s.separate ? ", separate" : "");
}

class Follows : public CudaEndToEnd, public ::testing::WithParamInterface<Way> {};

TEST_P(Follows, TheCpu) {
    const Way &way = GetParam();
    const std::string precision = way.precision;
    begin({{"ARCH", std::to_string(way.arch)}, {"SEED", std::to_string(way.arch)}});
    const std::string path = e2e::compile_to_file(
        e2e::mlp(precision == "fp16" ? "fp16 { loss_scale = dynamic(init = 65536.0, interval = 3) }" : precision),
        "follow.so");
    const double bound = precision == "fp32" || precision == "tf32" ? 1e-5 : 2e-3;
    {
        OnOne cpu(path, "cpu", 70, false), cuda(path, "cuda", 70, way.separate);
        ASSERT_EQ(cpu.status, AMP_OK) << cpu.err.message;
        ASSERT_EQ(cuda.status, AMP_OK) << cuda.err.message;
        const int64_t sizes[] = {45, 1, 33, 64, 70, 5};
        for (int i = 0; i < 6; i++) {
            e2e::Batch batch(sizes[i], 19, 10, 100u + static_cast<uint32_t>(i));
            amp_step_report a, b;
            ASSERT_EQ(amp_step(cpu.session, batch.inputs(), batch.n, &a, &cpu.err), AMP_OK) << cpu.err.message;
            ASSERT_EQ(amp_step(cuda.session, batch.inputs(), batch.n, &b, &cuda.err), AMP_OK) << cuda.err.message;
            EXPECT_NEAR(a.loss, b.loss, bound * a.loss) << "step " << i;
            EXPECT_EQ(a.scale, b.scale);
            EXPECT_EQ(a.skipped, b.skipped);
            EXPECT_EQ(a.step, b.step);
            EXPECT_EQ(a.iteration, b.iteration);
        }
        e2e::Batch batch(64, 19, 10, 9);
        double loss[2], metric[2];
        std::vector<float> logits[2];
        OnOne *both[] = {&cpu, &cuda};
        for (int i = 0; i < 2; i++) {
            logits[i].resize(64 * 10);
            void *outputs[] = {logits[i].data()};
            ASSERT_EQ(amp_eval(both[i]->session, batch.inputs(), 64, &loss[i], &metric[i], &both[i]->err), AMP_OK);
            ASSERT_EQ(amp_infer(both[i]->session, batch.inputs(), 64, outputs, &both[i]->err), AMP_OK);
        }
        EXPECT_NEAR(loss[0], loss[1], bound * loss[0]);
        EXPECT_NEAR(metric[0], metric[1], 1.0 / 64 + 1e-6);
        for (size_t i = 0; i < logits[0].size(); i++) EXPECT_NEAR(logits[0][i], logits[1][i], 5 * bound) << i;
    }
    ExpectClean();
}

// FP16 of the oldest and of the newest in the long tests: tests/checks/cuda.sh follows it there, too.
std::vector<Way> Ways() {
    std::vector<Way> ways = {{"fp16", 80, true}, {"bf16", 80, false}, {"tf32", 90, true}, {"fp32", 80, true}};
    ways.push_back({"bf16 { masters = bf16\nmoments = bf16 }", 80, true});
    ways.push_back({"fp16 { masters = f16\nmoments = f8 }", 80, false});
    ways.push_back({"bf16 { moments = f8 }", 80, true});
    if (getenv("AMP_CUDA_ARCHS")) ways.insert(ways.end(), {{"fp16", 75, false}, {"fp16", 90, false}});
    return ways;
}

INSTANTIATE_TEST_SUITE_P(Short, Follows, ::testing::ValuesIn(Ways()));

// The MLP of the examples, smaller.
TEST_F(CudaEndToEnd, AStepIsOneGraphAndWaitsForNothing) {
    for (const char *precision : {"fp16", "bf16", "tf32", "fp32"}) {
        SCOPED_TRACE(precision);
        amp_compile_options options = {};
        const amp_define defines[] = {{"HIDDEN", "64"}};
        options.precision = precision;
        options.defines = defines;
        options.define_count = 1;
        const std::string path = e2e::compile_to_file(ReadText("examples/fashion_mnist/mlp.amp"), "mlp.so", options);
        begin();
        OnOne cuda(path, "cuda", 16, false);
        ASSERT_EQ(cuda.status, AMP_OK) << cuda.err.message;
        e2e::Batch batch(16, 784, 10, 5);
        ASSERT_EQ(amp_step(cuda.session, batch.inputs(), 16, nullptr, &cuda.err), AMP_OK)
            << cuda.err.message; // makes its graph
        reset_counters();
        const int steps = 3;
        for (int i = 0; i < steps - 1; i++)
            ASSERT_EQ(amp_step(cuda.session, batch.inputs(), 16, nullptr, &cuda.err), AMP_OK);
        {
            Report r = report();
            EXPECT_EQ(r.total("host_synchronisations"), 0) << "two upload buffers are free";
            EXPECT_EQ(r.calls("cuLaunchKernel"), 0);
            EXPECT_EQ(r.calls("cuMemAlloc_v2"), 0);
            EXPECT_EQ(r.calls("cuMemcpyHtoDAsync_v2"), steps - 1);
        }
        amp_step_report last;
        ASSERT_EQ(amp_step(cuda.session, batch.inputs(), 16, &last, &cuda.err), AMP_OK) << cuda.err.message;
        EXPECT_EQ(last.iteration, steps + 1);
        Report r = report();
        EXPECT_EQ(r.calls("cuGraphLaunch"), steps);
        EXPECT_EQ(r.total("graph_launches"), steps);
        EXPECT_EQ(r.calls("cuGraphInstantiateWithFlags"), 0);
        EXPECT_LE(r.total("host_synchronisations"), 2) << "its scalars, and the inputs of two steps before";
        EXPECT_EQ(r.total("launches") % steps, 0);
        std::printf("mlp %s: %lld kernels in a training step\n", precision,
                    static_cast<long long>(r.total("launches") / steps));
        EXPECT_LE(r.total("launches") / steps, 24);
    }
}

// Rows of 484 floats are stored longer on CUDA, where they may be; not those of a gradient, which users read.
TEST_F(CudaEndToEnd, GradientsOfOddLongRows) {
    for (const char *precision : {"fp32", "fp16", "bf16"}) {
        SCOPED_TRACE(precision);
        amp_compile_options options = {};
        options.precision = precision;
        const std::string path = e2e::compile_to_file(e2e::mlp("fp32", 484, 260), "rows.so", options);
        OnOne cuda(path, "cuda", 16, false);
        ASSERT_EQ(cuda.status, AMP_OK) << cuda.err.message;
        e2e::Batch batch(16, 484, 10, 5);
        EXPECT_EQ(amp_step(cuda.session, batch.inputs(), 16, nullptr, &cuda.err), AMP_OK) << cuda.err.message;
    }
}

} // namespace
