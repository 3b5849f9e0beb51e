// Models that ampc compiled, on the stand-in for NVIDIA's driver: training, evaluation and inference follow the CPU's
// for
// every way of placing memory; a step without a question for its results is one graph and waits for nothing.
#include "tests/base/planted.h"
#include "tests/e2e/harness.h"

#include <algorithm>
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

    OnOne(const std::string &path, const char *device, int64_t capacity, bool separate,
          int32_t amp_cuda_options::*inputs = nullptr) {
        amp_params_options p = {sizeof p, 3, 0};
        amp::SessionOptions o;
        o.capacity.n = capacity;
        o.threads = 1;
        o.seed = 3;
        o.device = device;
        o.inspect.separate_buffers = separate;
        if (inputs) o.cuda.*inputs = 1;
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
    // Steps, evaluation and inference of both. |planted|: added to a number that CUDA alone is given.
    static void ExpectFollows(OnOne &cpu, OnOne &cuda, double bound, float planted = 0);
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

void CudaEndToEnd::ExpectFollows(OnOne &cpu, OnOne &cuda, double bound, float planted) {
    const int64_t sizes[] = {45, 1, 33, 64, 70, 5};
    for (int i = 0; i < 6; i++) {
        e2e::Batch batch(sizes[i], 19, 10, 100u + static_cast<uint32_t>(i));
        amp_step_report a, b;
        ASSERT_EQ(amp_step(cpu.session, batch.inputs(), {batch.n, 0}, &a, &cpu.err), AMP_OK) << cpu.err.message;
        batch.x[0] += planted;
        ASSERT_EQ(amp_step(cuda.session, batch.inputs(), {batch.n, 0}, &b, &cuda.err), AMP_OK) << cuda.err.message;
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
        ASSERT_EQ(amp_eval(both[i]->session, batch.inputs(), {64, 0}, &loss[i], &metric[i], &both[i]->err), AMP_OK);
        ASSERT_EQ(amp_infer(both[i]->session, batch.inputs(), {64, 0}, outputs, &both[i]->err), AMP_OK);
    }
    EXPECT_NEAR(loss[0], loss[1], bound * loss[0]);
    EXPECT_NEAR(metric[0], metric[1], 1.0 / 64 + 1e-6);
    for (size_t i = 0; i < logits[0].size(); i++) EXPECT_NEAR(logits[0][i], logits[1][i], 5 * bound) << i;
}

TEST_F(CudaEndToEnd, PlantedNumberIsFound) {
    const std::string path = e2e::compile_to_file(e2e::mlp("fp32"), "probe.so");
    OnOne cpu(path, "cpu", 70, false), cuda(path, "cuda", 70, false);
    ASSERT_EQ(cuda.status, AMP_OK) << cuda.err.message;
    ExpectFound("another input", "step 1", [&] { ExpectFollows(cpu, cuda, 1e-5, 0.1f); });
}

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
        ExpectFollows(cpu, cuda, bound);
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
    for (const char *precision : {"fp16", "fp32", "bf16", "tf32"}) {
        if (!getenv("AMP_CUDA_ARCHS") && *precision != 'f') break; // full/cuda.sh
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
        ASSERT_EQ(amp_step(cuda.session, batch.inputs(), {16, 0}, nullptr, &cuda.err), AMP_OK)
            << cuda.err.message; // makes its graph
        reset_counters();
        const int steps = 3;
        for (int i = 0; i < steps - 1; i++)
            ASSERT_EQ(amp_step(cuda.session, batch.inputs(), {16, 0}, nullptr, &cuda.err), AMP_OK);
        {
            Report r = report();
            EXPECT_EQ(r.total("host_synchronisations"), 0) << "two upload buffers are free";
            EXPECT_EQ(r.calls("cuLaunchKernel"), 0);
            EXPECT_EQ(r.calls("cuLaunchKernelEx"), 0);
            EXPECT_EQ(r.calls("cuMemAlloc_v2"), 0);
            EXPECT_EQ(r.calls("cuMemcpyHtoDAsync_v2"), steps - 1);
        }
        amp_step_report last;
        ASSERT_EQ(amp_step(cuda.session, batch.inputs(), {16, 0}, &last, &cuda.err), AMP_OK) << cuda.err.message;
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

// Rows of 484 floats are stored longer on CUDA, where they may be; but not the rows of a gradient, which users read.
TEST_F(CudaEndToEnd, GradientsOfOddLongRows) {
    for (const char *precision : {"fp32", "fp16", "bf16"}) {
        SCOPED_TRACE(precision);
        amp_compile_options options = {};
        options.precision = precision;
        const std::string path = e2e::compile_to_file(e2e::mlp("fp32", 484, 260), "rows.so", options);
        OnOne cuda(path, "cuda", 16, false);
        ASSERT_EQ(cuda.status, AMP_OK) << cuda.err.message;
        e2e::Batch batch(16, 484, 10, 5);
        EXPECT_EQ(amp_step(cuda.session, batch.inputs(), {16, 0}, nullptr, &cuda.err), AMP_OK) << cuda.err.message;
    }
}

// A model for several ranks adds them up apart from the step, also where it trains alone.
TEST_F(CudaEndToEnd, RunningStatisticsOfAModelForRanksFollowTheCpu) {
    for (const char *accumulate : {"1", "3"}) {
        SCOPED_TRACE(accumulate);
        const std::string path =
            e2e::compile_to_file("amp 1\nmodel m(x: f32[N, 19]) -> logits {\n"
                                 "    logits = linear(relu(batch_norm(linear(x; out = 24)) as bn); out = 4)\n}\n"
                                 "train m {\n    input targets: i32[N]\n    loss = cross_entropy(logits, targets)\n"
                                 "    optimizer = sgd(0.1)\n    data_parallel = true\n    accumulate = " +
                                     std::string(accumulate) + "\n}\nprecision fp32 { }\n",
                                 "statistics.so");
        OnOne cpu(path, "cpu", 600, false), cuda(path, "cuda", 600, true); // blocks share rows
        ASSERT_EQ(cpu.status, AMP_OK) << cpu.err.message;
        ASSERT_EQ(cuda.status, AMP_OK) << cuda.err.message;
        for (uint32_t i = 0; i < 6; i++) {
            e2e::Batch batch(i == 4 ? 7 : 600, 19, 4, 30 + i);
            for (OnOne *one : {&cpu, &cuda})
                ASSERT_EQ(amp_step(one->session, batch.inputs(), {batch.n, 0}, nullptr, &one->err), AMP_OK)
                    << one->err.message;
        }
        for (const char *name : {"bn.running_mean", "bn.running_var"}) {
            std::vector<float> values[2] = {std::vector<float>(24), std::vector<float>(24)};
            OnOne *both[] = {&cpu, &cuda};
            for (int i = 0; i < 2; i++)
                ASSERT_EQ(amp_params_get(both[i]->params, name, values[i].data(), 24, &both[i]->err), AMP_OK)
                    << both[i]->err.message;
            for (size_t i = 0; i < 24; i++) EXPECT_NEAR(values[0][i], values[1][i], 1e-5) << name << ' ' << i;
        }
    }
    ExpectClean();
}

// Ids of a table, micro-batches, dropout and a metric of averages.
std::string IdsModel() {
    return e2e::compile_to_file(
        "amp 1\nmodel m(ids: i32[N, 3], x: f32[N, 5]) -> logits {\n"
        "    words = flatten(embedding(ids; count = 7, dim = 4)) as table\n"
        "    h = dropout(relu(linear(concat(words, x; dim = 1); out = 16) as fc1); p = 0.25)\n"
        "    logits = linear(h; out = 4) as fc2\n}\n"
        "train m {\n    input targets: i32[N]\n    loss = cross_entropy(logits, targets)\n"
        "    metric ppl = exp(loss)\n    optimizer = sgd(0.1)\n    accumulate = 2\n}\nprecision fp16 { }\n",
        "ids.so");
}

TEST_F(CudaEndToEnd, InputsInDeviceMemoryGiveTheSameBits) {
    const std::string path = IdsModel();
    begin({{"ARCH", "90"}});
    {
        OnOne host(path, "cuda", 12, false), device(path, "cuda", 12, false, &amp_cuda_options::device_inputs);
        ASSERT_EQ(host.status, AMP_OK) << host.err.message;
        ASSERT_EQ(device.status, AMP_OK) << device.err.message;
        CuContext context, popped;
        OK(cu.primary_retain(&context, 0));
        OK(cu.context_push(context));
        const void *there[] = {reinterpret_cast<void *>(alloc(12 * 3 * 4)), reinterpret_cast<void *>(alloc(12 * 5 * 4)),
                               reinterpret_cast<void *>(alloc(12 * 4))};
        auto at = [&](int i) { return reinterpret_cast<CuPointer>(there[i]); };
        std::vector<int32_t> ids(12 * 3), targets(12);
        std::vector<float> x(12 * 5);
        const void *here[] = {ids.data(), x.data(), targets.data()};
        uint32_t state = 3;
        auto send = [&] {
            OK(cu.copy_in(at(0), ids.data(), ids.size() * 4, nullptr));
            OK(cu.copy_in(at(1), x.data(), x.size() * 4, nullptr));
            OK(cu.copy_in(at(2), targets.data(), targets.size() * 4, nullptr));
            OK(cu.context_sync()); // and what reads the arrays
        };
        amp_step_report a, b;
        for (int i = 0; i < 8; i++) {
            for (int32_t &v : ids) v = static_cast<int32_t>(e2e::Batch::next(state) >> 8) % 7;
            for (float &v : x) v = static_cast<float>(e2e::Batch::next(state) >> 8) / 8388608.0f - 1.0f;
            for (int32_t &v : targets) v = static_cast<int32_t>(e2e::Batch::next(state) >> 8) % 4;
            send();
            const int64_t n = i < 4 ? 12 : 7;
            ASSERT_EQ(amp_step(host.session, here, {n, 0}, &a, &host.err), AMP_OK) << host.err.message;
            ASSERT_EQ(amp_step(device.session, there, {n, 0}, &b, &device.err), AMP_OK) << device.err.message;
            EXPECT_EQ(a.loss, b.loss) << i;
            EXPECT_EQ(a.complete, b.complete);
        }
        double loss[2], ppl[2];
        std::vector<float> logits[2] = {std::vector<float>(12 * 4), std::vector<float>(12 * 4)};
        void *outputs[2][1] = {{logits[0].data()}, {logits[1].data()}};
        ASSERT_EQ(amp_eval(host.session, here, {12, 0}, &loss[0], &ppl[0], &host.err), AMP_OK) << host.err.message;
        ASSERT_EQ(amp_eval(device.session, there, {12, 0}, &loss[1], &ppl[1], &device.err), AMP_OK)
            << device.err.message;
        ASSERT_EQ(amp_infer(host.session, here, {12, 0}, outputs[0], &host.err), AMP_OK) << host.err.message;
        ASSERT_EQ(amp_infer(device.session, there, {12, 0}, outputs[1], &device.err), AMP_OK) << device.err.message;
        EXPECT_EQ(loss[0], loss[1]);
        EXPECT_EQ(ppl[0], ppl[1]);
        EXPECT_TRUE(e2e::same_bits(logits[0], logits[1]));
        // an id past the table: nothing is read there, and inference says so
        ids[4 * 3 + 1] = 1 << 28;
        send();
        EXPECT_EQ(amp_infer(device.session, there, {12, 0}, outputs[1], &device.err), AMP_INVALID_ARGUMENT);
        EXPECT_STREQ(device.err.message, "input ids, sample 4: index 268435456 is not in 0 .. 6; it was in device "
                                         "memory, and its call computed with 0 in its place");
        EXPECT_TRUE(e2e::same_bits(logits[0], logits[1])) << "no result is written";
        // and so does a step, of the micro-batch that ends it
        for (const int32_t id : {3, 1 << 28}) {
            ids[4 * 3 + 1] = id;
            send();
            EXPECT_EQ(amp_step(device.session, there, {12, 0}, &b, &device.err),
                      id < 7 ? AMP_OK : AMP_INVALID_ARGUMENT);
        }
        EXPECT_STREQ(device.err.message, "input ids, sample 4: index 268435456 is not in 0 .. 6; it was in device "
                                         "memory, and its call computed with 0 in its place");
        for (int i = 0; i < 3; i++) OK(cu.mem_free(at(i)));
        OK(cu.context_pop(&popped));
        OK(cu.primary_release(0));
    }
    ExpectClean();
}

// Three sets of arrays take turns, and no step waits: reports come later.
TEST_F(CudaEndToEnd, InputsInPageLockedMemoryGiveTheSameBits) {
    const std::string path = IdsModel();
    begin({{"ARCH", "90"}});
    {
        OnOne pageable(path, "cuda", 12, false), locked(path, "cuda", 12, false, &amp_cuda_options::pinned_inputs);
        ASSERT_EQ(pageable.status, AMP_OK) << pageable.err.message;
        ASSERT_EQ(locked.status, AMP_OK) << locked.err.message;
        CuContext context, popped;
        OK(cu.primary_retain(&context, 0));
        OK(cu.context_push(context));
        uint32_t *sets[3][3]; // ids, x, targets
        for (auto &set : sets) set[0] = pinned(12 * 3), set[1] = pinned(12 * 5), set[2] = pinned(12);
        uint32_t state = 3;
        auto fill = [&](uint32_t **set) {
            for (int i = 0; i < 12 * 3; i++) set[0][i] = (e2e::Batch::next(state) >> 8) % 7;
            for (int i = 0; i < 12; i++) set[2][i] = (e2e::Batch::next(state) >> 8) % 4;
            for (int i = 0; i < 12 * 5; i++) {
                float v = static_cast<float>(e2e::Batch::next(state) >> 8) / 8388608.0f - 1.0f;
                memcpy(&set[1][i], &v, sizeof v);
            }
        };
        std::vector<amp_step_report> a(8), b;
        std::vector<double> ppl_a(8), ppl_b;
        for (int i = 0; i < 8; i++) {
            uint32_t **set = sets[i % 3];
            fill(set);
            const void *inputs[] = {set[0], set[1], set[2]};
            const int64_t n = i < 4 ? 12 : 7;
            ASSERT_EQ(amp_step(pageable.session, inputs, {n, 0}, &a[i], &pageable.err), AMP_OK) << pageable.err.message;
            ASSERT_EQ(amp_session_get_metrics(pageable.session, &ppl_a[i], &pageable.err), AMP_OK);
            ASSERT_EQ(amp_step(locked.session, inputs, {n, 0}, nullptr, &locked.err), AMP_OK) << locked.err.message;
        }
        for (int32_t there = 1; there;) {
            amp_step_report report;
            double ppl;
            ASSERT_EQ(amp_session_next_report(locked.session, 1, &report, nullptr, &ppl, &there, &locked.err), AMP_OK);
            if (there) b.push_back(report), ppl_b.push_back(ppl);
        }
        ASSERT_EQ(b.size(), 8u);
        for (int i = 0; i < 8; i++) {
            EXPECT_EQ(a[i].loss, b[i].loss) << i;
            EXPECT_EQ(a[i].complete, b[i].complete);
        }
        EXPECT_EQ(ppl_a, ppl_b);
        const void *inputs[] = {sets[0][0], sets[0][1], sets[0][2]};
        double loss[2], ppl[2];
        std::vector<float> logits[2] = {std::vector<float>(12 * 4), std::vector<float>(12 * 4)};
        OnOne *both[] = {&pageable, &locked};
        for (int i = 0; i < 2; i++) {
            void *outputs[] = {logits[i].data()};
            ASSERT_EQ(amp_eval(both[i]->session, inputs, {12, 0}, &loss[i], &ppl[i], &both[i]->err), AMP_OK);
            ASSERT_EQ(amp_infer(both[i]->session, inputs, {12, 0}, outputs, &both[i]->err), AMP_OK);
        }
        EXPECT_EQ(loss[0], loss[1]);
        EXPECT_EQ(ppl[0], ppl[1]);
        EXPECT_TRUE(e2e::same_bits(logits[0], logits[1]));
        sets[0][0][4 * 3 + 1] = 1 << 28;
        EXPECT_EQ(amp_eval(locked.session, inputs, {12, 0}, &loss[1], nullptr, &locked.err), AMP_INVALID_ARGUMENT);
        EXPECT_STREQ(locked.err.message, "input ids, sample 4: index 268435456 is not in 0 .. 6");
        OK(cu.context_sync());
        for (auto &set : sets)
            for (uint32_t *array : set) OK(cu.host_free(array));
        OK(cu.context_pop(&popped));
        OK(cu.primary_release(0));
    }
    ExpectClean();
}

// ---- lengths -------------------------------------------------------------------------------------------------------

// A graph is made for each new (n, t); 16 are kept, and the one that was unused the longest goes first.
TEST_F(CudaEndToEnd, AGraphForEachNewNAndT) {
    const std::string path =
        e2e::compile_to_file("amp 1\nsize T = 12\nmodel m(x: f32[N, T, 8]) -> y {\n"
                             "    y = linear(mean(gelu(linear(x; out = 8) as up); dims = (1)); out = 4) as down\n}\n"
                             "precision fp32 { }\n",
                             "lengths.so");
    OnOne cpu(path, "cpu", 3, false), cuda(path, "cuda", 3, false);
    ASSERT_EQ(cuda.status, AMP_OK) << cuda.err.message;
    std::vector<std::pair<int64_t, int64_t>> kept; // the one that was used last at the end
    const int runs = getenv("AMP_FULL") ? 10000 : 100;
    uint32_t random = 11;
    int64_t made = 0;
    reset_counters();
    for (int i = 0; i < runs; i++) {
        const int64_t n = 1 + e2e::Batch::next(random) / 65536 % 3, t = 1 + e2e::Batch::next(random) / 65536 % 12;
        const std::pair<int64_t, int64_t> sizes(n, t);
        const auto at = std::find(kept.begin(), kept.end(), sizes);
        if (at == kept.end()) made++;
        else kept.erase(at);
        kept.push_back(sizes);
        if (kept.size() > 16) kept.erase(kept.begin());
        e2e::Batch batch(n, t * 8, 4, static_cast<uint32_t>(i));
        std::vector<float> want(static_cast<size_t>(n * 4)), got(want.size());
        void *expected[] = {want.data()}, *computed[] = {got.data()};
        ASSERT_EQ(amp_infer(cpu.session, batch.inputs(), {n, t}, expected, &cpu.err), AMP_OK) << cpu.err.message;
        ASSERT_EQ(amp_infer(cuda.session, batch.inputs(), {n, t}, computed, &cuda.err), AMP_OK) << cuda.err.message;
        for (size_t j = 0; j < want.size(); j++) ASSERT_NEAR(got[j], want[j], 2e-6) << n << ", " << t;
    }
    Report r = report();
    EXPECT_EQ(r.calls("cuGraphInstantiateWithFlags"), made);
    EXPECT_EQ(r.calls("cuGraphExecDestroy"), made - static_cast<int64_t>(kept.size()));
    EXPECT_EQ(r.calls("cuModuleLoadDataEx"), 0);
    EXPECT_EQ(r.calls("cuMemAlloc_v2"), 0);
}

} // namespace
