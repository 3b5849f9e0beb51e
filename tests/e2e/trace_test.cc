// amp_trace on planted faults: the op, the kind of fault, forward or gradient.  The models are compiled without fusion,
// as a trace wants them; Exactness holds that the bits are the same as in the fused model.
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "amp/trace.h"
#include "tests/e2e/harness.h"

namespace {

using e2e::Batch;
using e2e::Training;
using TraceTest = e2e::OnDevice;

constexpr int kSamples = 16, kFeatures = 8, kClasses = 4;
constexpr float kNan = std::numeric_limits<float>::quiet_NaN(), kInf = std::numeric_limits<float>::infinity();

// Around |body|, which makes `y`, f32[N, ...], of x.
std::string Model(const std::string &body, const std::string &precision = "fp16",
                  const std::string &optimizer = "sgd(lr = 0.01)") {
    return "amp 1\nmodel m(x: f32[N, 8]) -> y {\n" + body +
           "}\ntrain m {\n    input targets: i32[N]\n    loss = cross_entropy(linear(y; out = 4) as head, targets)\n"
           "    optimizer = " +
           optimizer + "\n}\nprecision " + precision + " { }\n";
}

void SetParam(Training &t, const char *name, size_t at, float value) {
    amp_model_info info;
    amp_model_get_info(t.model, &info);
    for (int i = 0; i < info.param_count; i++) {
        amp_tensor_info tensor;
        ASSERT_EQ(amp_model_param_at(t.model, i, &tensor, &t.err), AMP_OK);
        if (std::string(tensor.name) != name) continue;
        size_t count = 1;
        for (int d = 0; d < tensor.rank; d++) count *= static_cast<size_t>(tensor.dims[d]);
        std::vector<float> data(count);
        ASSERT_EQ(amp_params_get(t.params, name, data.data(), count, &t.err), AMP_OK) << t.err.message;
        data[at] = value;
        ASSERT_EQ(amp_params_set(t.params, name, data.data(), count, &t.err), AMP_OK) << t.err.message;
        return;
    }
    FAIL() << "no parameter " << name;
}

void SetScale(Training &t, float scale) {
    amp_scaler_state state;
    ASSERT_EQ(amp_session_get_scaler(t.session, &state, &t.err), AMP_OK) << t.err.message;
    state.scale = scale;
    ASSERT_EQ(amp_session_set_scaler(t.session, &state, &t.err), AMP_OK) << t.err.message;
}

std::function<void(Training &, Batch &)> Times(float factor) {
    return [factor](Training &, Batch &b) {
        for (float &v : b.x) v *= factor;
    };
}

std::function<void(Training &, Batch &)> Fill(float value) {
    return [value](Training &, Batch &b) { std::fill(b.x.begin(), b.x.end(), value); };
}

std::function<void(Training &, Batch &)> Put(float value) {
    return [value](Training &, Batch &b) { b.x[5 * kFeatures + 3] = value; };
}

struct Fault {
    const char *name;
    std::string model;
    std::function<void(Training &, Batch &)> plant;
    amp_trace_fault fault;
    const char *path;
    bool is_gradient;
};

const char *const kLinear = "    y = relu(linear(x; out = 8) as fc1)\n";
const char *const kAttention = "    q = reshape(linear(x; out = 8) as query; shape = [N, 4, 2])\n"
                               "    k = reshape(linear(x; out = 8) as key; shape = [N, 4, 2])\n"
                               "    v = reshape(x; shape = [N, 4, 2])\n    scores = matmul(q, transpose(k))\n"
                               "    y = reshape(matmul(softmax(scores), v); shape = [N, 8])\n";

const Fault kFaults[] = {
    {"nothing", Model(kLinear), Times(1), AMP_TRACE_NONE, nullptr, false},
    {"attention_scores", Model(kAttention), Times(600), AMP_TRACE_OVERFLOW, "matmul", false},
    {"log_of_zero", Model("    y = log(relu(linear(x; out = 8) as fc1))\n"), Times(1), AMP_TRACE_UNDEFINED, "log",
     false},
    {"log_of_zero_in_fp32", Model("    y = log(relu(linear(x; out = 8) as fc1))\n", "fp32"), Times(1),
     AMP_TRACE_UNDEFINED, "log", false},
    {"weight_beyond_f16", Model(kLinear), [](Training &t, Batch &) { SetParam(t, "fc1.weight", 3, 1e30f); },
     AMP_TRACE_OVERFLOW, "fc1.weight", false},
    {"squares_in_f16",
     Model("    h = linear(x; out = 8) as fc1\n    m = mean(h; dims = 1, keep = true)\n"
           "    y = h * h - m * m\n"),
     Times(2000), AMP_TRACE_OVERFLOW, "mul", false},
    {"constant_feature", Model("    m = mean(x; dims = 0)\n    d = x - m\n    y = d / sqrt(mean(d * d; dims = 0))\n"),
     [](Training &, Batch &b) {
         for (int i = 0; i < kSamples; i++) b.x[static_cast<size_t>(i * kFeatures + 2)] = 0.5f;
     },
     AMP_TRACE_UNDEFINED, "div", false},
    {"nan_in_a_row", Model(kLinear), Put(kNan), AMP_TRACE_DATA, "x", false},
    {"infinity_in_a_row", Model(kLinear, "bf16"), Put(-kInf), AMP_TRACE_DATA, "x", false},
    {"nan_in_a_parameter", Model(kLinear, "bf16"), [](Training &t, Batch &) { SetParam(t, "fc1.bias", 2, kNan); },
     AMP_TRACE_STATE, "fc1.bias", false},
    {"nan_in_a_weight", Model(kLinear), [](Training &t, Batch &) { SetParam(t, "head.weight", 2, kNan); },
     AMP_TRACE_STATE, "head.weight", false},
    {"loss_times_scale",
     "amp 1\nmodel m(x: f32[N, 8]) -> y {\n    y = linear(x; out = 4) as fc1\n}\ntrain m {\n"
     "    input targets: i32[N]\n    loss = 1e34 * cross_entropy(y, targets)\n"
     "    optimizer = sgd(lr = 0.01)\n}\nprecision fp16 { }\n",
     Times(1), AMP_TRACE_OVERFLOW, nullptr, true},
    {"stale_scale", Model(kLinear),
     [](Training &t, Batch &b) {
         SetScale(t, 16777216.0f);
         Times(300)(t, b);
     },
     AMP_TRACE_OVERFLOW, nullptr, true},
    {"subnormal_gradients", Model(kLinear), [](Training &t, Batch &) { SetScale(t, 1e-6f); }, AMP_TRACE_NONE, nullptr,
     false},
    {"empty_mask",
     Model("    m = relu(x - 10.0)\n    y = (sum(m * x; dims = 1, keep = true) / sum(m; dims = 1, keep = "
           "true)) * x\n"),
     Times(1), AMP_TRACE_UNDEFINED, "div", false},
    {"gradient_of_a_root_at_zero",
     Model("    h = linear(x; out = 8, bias = false) as fc1\n    y = sqrt(h * h)\n", "bf16"), Fill(0),
     AMP_TRACE_UNDEFINED, "sqrt.grad_2", true},
    {"exp_in_f32", Model("    y = exp(exp(abs(linear(x; out = 8) as fc1)))\n", "fp32"), Times(20), AMP_TRACE_OVERFLOW,
     "exp_1", false},
    {"exp_into_f16", Model("    y = exp(abs(x) + 11.0)\n"), Times(1), AMP_TRACE_OVERFLOW, "head.linear.cast", false},
    {"all_masked", Model("    y = softmax(where(x > -1000.0, -1e39, x))\n", "fp32"), Times(1), AMP_TRACE_UNDEFINED,
     "softmax", false},
    {"root_of_a_negative", Model("    y = pow(linear(x; out = 8) as fc1; e = 0.5)\n"), Times(1), AMP_TRACE_UNDEFINED,
     "pow", false},
    {"probability_of_zero", Model("    p = sigmoid(linear(x; out = 8) as fc1)\n    y = log(1.0 - p)\n"), Times(100),
     AMP_TRACE_UNDEFINED, "log", false},
    {"negative_variance", Model("    y = x * rsqrt(mean(x; dims = 1, keep = true))\n"), Fill(-1), AMP_TRACE_UNDEFINED,
     "rsqrt", false},
    {"log1p_of_minus_one", Model("    y = log1p(x)\n"), Fill(-1), AMP_TRACE_UNDEFINED, "log1p", false},
    {"reciprocal_of_zero", Model("    y = reciprocal(relu(x))\n"), Fill(0), AMP_TRACE_UNDEFINED, "reciprocal", false},
    {"sum_in_f32", Model("    y = x * sum(x * x; dims = 1, keep = true)\n", "fp32"), Times(1e19f), AMP_TRACE_OVERFLOW,
     nullptr, false},
    {"product_in_f16", Model(kLinear),
     [](Training &t, Batch &b) {
         for (size_t i = 0; i < 8; i++) SetParam(t, "fc1.weight", i, 1.0f);
         std::fill(b.x.begin(), b.x.end(), 30000.0f);
     },
     AMP_TRACE_OVERFLOW, "fc1.linear", false},
    {"input_beyond_f16", Model(kLinear), Put(1e6f), AMP_TRACE_OVERFLOW, "fc1.linear.cast", false},
    {"learning_rate", Model(kLinear, "fp32"),
     [](Training &t, Batch &b) {
         for (float &v : b.x) v *= 1000; // so that the largest rate makes an infinite step
         ASSERT_EQ(amp_session_set_lr(t.session, 0, 3.4e38, &t.err), AMP_OK) << t.err.message;
     },
     AMP_TRACE_OVERFLOW, nullptr, true},
    {"nan_in_a_moment", Model(kLinear, "bf16", "adamw(lr = 0.01)"),
     [](Training &t, Batch &) {
         std::vector<float> v(64, kNan);
         ASSERT_EQ(amp_session_set_moment(t.session, "fc1.weight/v", v.data(), v.size(), &t.err), AMP_OK)
             << t.err.message;
     },
     AMP_TRACE_STATE, "fc1.weight/v", false},
};

// A trace of the model file, and the session's observer.
struct Traced {
    amp_trace *trace = nullptr;
    amp_error err = {};
    Traced(const std::string &path, Training &t) {
        amp_compile_options o = {};
        o.struct_size = sizeof o;
        o.name = path.c_str();
        EXPECT_EQ(amp_trace_create(&o, e2e::device(), &trace, &err), AMP_OK) << err.message;
        EXPECT_EQ(amp_session_observe(t.session, amp_trace_observer(trace), &err), AMP_OK) << err.message;
    }
    ~Traced() { amp_trace_release(trace); }
    amp_trace_finding Find() {
        amp_trace_finding finding = {};
        finding.struct_size = sizeof finding;
        EXPECT_EQ(amp_trace_find(trace, &finding, &err), AMP_OK) << err.message;
        return finding;
    }
};

std::string CompileUnfused(const std::string &text, const std::string &name) {
    amp_compile_options o = {};
    o.no_pass = "fuse";
    return e2e::compile_to_file(text, name, o);
}

// "fc1.linear.cast_2" is a cast for fc1.linear whatever its number.
std::string WithoutNumber(const char *path) {
    const std::string name = path ? path : "";
    const size_t cast = name.rfind(".cast_");
    return cast == std::string::npos ? name : name.substr(0, cast + 5);
}

class PlantedFault : public e2e::OnDevice, public ::testing::WithParamInterface<int> {};

TEST_P(PlantedFault, IsNamed) {
    const Fault &f = kFaults[GetParam()];
    const std::string path = CompileUnfused(f.model, std::string("trace_") + f.name + ".so");
    Training t(path, kSamples);
    ASSERT_TRUE(t.ok());
    Traced traced(path, t);
    Batch batch(kSamples, kFeatures, kClasses, 5);
    f.plant(t, batch);
    amp_step_report report;
    ASSERT_EQ(amp_step(t.session, batch.inputs(), {kSamples, 0}, &report, &t.err), AMP_OK) << t.err.message;
    const amp_trace_finding found = traced.Find();
    EXPECT_STREQ(amp_trace_fault_name(found.fault), amp_trace_fault_name(f.fault)) << (found.path ? found.path : "");
    if (f.path) {
        EXPECT_EQ(WithoutNumber(found.path), f.path);
    }
    if (f.fault) {
        EXPECT_EQ(found.is_gradient != 0, f.is_gradient) << found.path;
        EXPECT_GT(found.result.nans + found.result.infinities, 0);
    }
}

INSTANTIATE_TEST_SUITE_P(Trace, PlantedFault, ::testing::Range(0, static_cast<int>(std::size(kFaults))),
                         [](const ::testing::TestParamInfo<int> &info) { return kFaults[info.param].name; });

// Without fusion the same bits: what is found of the twin holds for the model.
TEST_F(TraceTest, ATwinWithoutFusionHasTheSameBits) {
    for (const std::string precision : {"fp16", "bf16", "fp32"}) {
        const std::string text = e2e::mlp(precision);
        Training fused(e2e::compile_to_file(text, "trace_fused.so"), 45),
            twin(CompileUnfused(text, "trace_twin.so"), 45);
        ASSERT_TRUE(fused.ok() && twin.ok());
        EXPECT_EQ(e2e::train(fused, 3), e2e::train(twin, 3)) << precision;
        EXPECT_TRUE(e2e::same_bits(e2e::all_params(fused), e2e::all_params(twin))) << precision;
    }
}

TEST_F(TraceTest, FindsTheMicroBatchInWhichItWas) {
    const std::string text = "amp 1\nmodel m(x: f32[N, 8]) -> y {\n    y = linear(x; out = 4) as fc1\n}\ntrain m {\n"
                             "    input targets: i32[N]\n    loss = cross_entropy(y, targets)\n    accumulate = 2\n"
                             "    optimizer = sgd(lr = 0.01)\n}\nprecision fp16 { }\n";
    const std::string path = CompileUnfused(text, "trace_micro.so");
    Training t(path, kSamples);
    ASSERT_TRUE(t.ok());
    Traced traced(path, t);
    amp_step_report report;
    Batch clean(kSamples, kFeatures, kClasses, 5), wrong(kSamples, kFeatures, kClasses, 6);
    Put(kNan)(t, wrong);
    ASSERT_EQ(amp_step(t.session, clean.inputs(), {kSamples, 0}, &report, &t.err), AMP_OK) << t.err.message;
    EXPECT_EQ(traced.Find().fault, AMP_TRACE_NONE);
    ASSERT_EQ(amp_step(t.session, wrong.inputs(), {kSamples, 0}, &report, &t.err), AMP_OK) << t.err.message;
    EXPECT_EQ(traced.Find().fault, AMP_TRACE_DATA);
}

// Where kernels are fused the finding is an op of the kernel whose result is in memory.
TEST_F(TraceTest, NamesAnOpOfAFusedModelToo) {
    const std::string path = e2e::compile_to_file(Model(kAttention), "trace_fused_attention.so");
    Training t(path, kSamples);
    ASSERT_TRUE(t.ok());
    Traced traced(path, t);
    amp_step_report report;
    Batch batch(kSamples, kFeatures, kClasses, 5);
    Times(600)(t, batch);
    ASSERT_EQ(amp_step(t.session, batch.inputs(), {kSamples, 0}, &report, &t.err), AMP_OK) << t.err.message;
    const amp_trace_finding found = traced.Find();
    EXPECT_EQ(found.fault, AMP_TRACE_OVERFLOW);
    EXPECT_STREQ(found.path, "matmul");
}

TEST_F(TraceTest, FindsWhatInferenceAndEvaluationLeave) {
    const std::string path = CompileUnfused(Model(kLinear), "trace_infer.so");
    Training t(path, kSamples);
    ASSERT_TRUE(t.ok());
    Traced traced(path, t);
    Batch batch(kSamples, kFeatures, kClasses, 5);
    std::vector<float> y(kSamples * 8);
    void *outputs[] = {y.data()};
    Put(kInf)(t, batch);
    ASSERT_EQ(amp_infer(t.session, batch.inputs(), {kSamples, 0}, outputs, &t.err), AMP_OK) << t.err.message;
    EXPECT_EQ(traced.Find().fault, AMP_TRACE_DATA);
    double loss;
    ASSERT_EQ(amp_eval(t.session, batch.inputs(), {kSamples, 0}, &loss, nullptr, &t.err), AMP_OK) << t.err.message;
    EXPECT_EQ(traced.Find().fault, AMP_TRACE_DATA);
}

TEST_F(TraceTest, RefusesWhatItCannotRead) {
    amp_compile_options o = {};
    amp_trace *trace = nullptr;
    amp_error err = {};
    amp_trace_finding finding = {};
    o.struct_size = sizeof o;
    o.name = "nosuch.so";
    EXPECT_EQ(amp_trace_create(&o, nullptr, &trace, &err), AMP_NOT_FOUND);
    EXPECT_EQ(amp_trace_create(nullptr, nullptr, &trace, &err), AMP_INVALID_ARGUMENT);
    EXPECT_EQ(amp_trace_create(&o, nullptr, nullptr, &err), AMP_INVALID_ARGUMENT);
    const std::string text = Model(kLinear);
    o.name = "m.amp";
    o.text = text.data();
    o.text_size = text.size();
    EXPECT_EQ(amp_trace_create(&o, nullptr, &trace, &err), AMP_BAD_FILE);
    EXPECT_NE(std::string(err.message).find("m.amp: is not a model.so"), std::string::npos) << err.message;
    const std::string path = e2e::compile_to_file(text, "trace_refused.so");
    o.name = path.c_str();
    o.text = nullptr;
    EXPECT_EQ(amp_trace_create(&o, "tpu", &trace, &err), AMP_INVALID_ARGUMENT);
    ASSERT_EQ(amp_trace_create(&o, e2e::device(), &trace, &err), AMP_OK) << err.message;
    EXPECT_EQ(amp_trace_find(trace, nullptr, &err), AMP_INVALID_ARGUMENT);
    EXPECT_EQ(amp_trace_find(trace, &finding, &err), AMP_INVALID_ARGUMENT);
    finding.struct_size = sizeof finding;
    EXPECT_EQ(amp_trace_find(trace, &finding, &err), AMP_WRONG_STATE);
    EXPECT_EQ(amp_trace_observer(nullptr), nullptr);
    amp_trace_release(trace);
    amp_trace_release(nullptr);
}

} // namespace
