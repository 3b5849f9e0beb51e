#include "tests/e2e/harness.h"

namespace e2e {

std::string mlp(const std::string &precision, int in, int hidden, int classes, const std::string &optimizer) {
    return "amp 1\n"
           "model mlp(x: f32[N, " +
           std::to_string(in) +
           "]) -> logits {\n"
           "    h      = relu(linear(x; out = " +
           std::to_string(hidden) +
           ") as fc1)\n"
           "    h      = relu(linear(h; out = " +
           std::to_string(hidden) +
           ") as fc2)\n"
           "    logits = linear(h; out = " +
           std::to_string(classes) +
           ") as fc3\n"
           "}\n"
           "train mlp {\n"
           "    input  targets: i32[N]\n"
           "    loss      = cross_entropy(logits, targets)\n"
           "    metric    acc = accuracy(logits, targets)\n"
           "    optimizer = " +
           optimizer +
           "\n"
           "}\n"
           "precision " +
           precision + (precision.find('{') == std::string::npos ? " { }\n" : "\n");
}

std::string contrast(int width, const std::string &optimizer) {
    std::string w = std::to_string(width);
    return "amp 1\n"
           "block unit(x) { return x * rsqrt(sum(x * x; dims = 1, keep = true) + 0.000001) }\n"
           "model contrast(a: f32[N, 12], b: f32[N, 7]) -> u {\n"
           "    u = unit(linear(a; out = " +
           w +
           ") as left)\n"
           "    v = unit(linear(b; out = " +
           w +
           ") as right)\n"
           "    param heat: f32 = constant(1.0)\n"
           "    logits = matmul(u, transpose(v)) * exp(heat)\n"
           "}\n"
           "train contrast {\n"
           "    labels = arange(; count = N)\n"
           "    loss = 0.5 * (cross_entropy(logits, labels) + cross_entropy(transpose(logits), labels))\n"
           "    metric acc = accuracy(logits, labels)\n"
           "    optimizer = " +
           optimizer + "\n}\n";
}

std::string views(const std::string &optimizer) {
    return "amp 1\n"
           "block unit(x) { return x * rsqrt(sum(x * x; dims = 1, keep = true) + 0.000001) }\n"
           "model views(a: f32[N, 12], b: f32[N, 12]) -> u {\n"
           "    u = relu(linear(concat(a, b; dim = 0); out = 33) as fc1)\n"
           "    v = unit(linear(u; out = 16) as fc2)\n"
           "}\n"
           "train views {\n"
           "    each = arange(; count = 2 * N)\n"
           "    own = reshape(each; shape = [2 * N, 1]) == each\n"
           "    logits = where(own, -100.0, 10.0 * matmul(v, transpose(v)))\n"
           "    first = slice(each; dim = 0, from = 0, to = N)\n"
           "    second = slice(each; dim = 0, from = N, to = 2 * N)\n"
           "    other = concat(second, first; dim = 0)\n"
           "    loss = cross_entropy(logits, other)\n"
           "    metric acc = accuracy(logits, other)\n"
           "    optimizer = " +
           optimizer + "\n}\n";
}

Compiled compile(const std::string &text, amp_compile_options options, const char *name) {
    Compiled c;
    amp_error err = {};
    amp_compile_result *result = nullptr;
    options.struct_size = sizeof options;
    if (!options.target) options.target = device() ? device() : getenv("AMP_TEST_TARGET");
    if (!options.isa) options.isa = "portable", options.c_compiler = "tests/random/cc_unoptimised";
    options.name = name;
    options.text = text.c_str();
    options.text_size = text.size();
    if (!options.diagnostic) {
        options.user = &c;
        options.diagnostic = [](void *user, const char *line, int32_t) {
            static_cast<Compiled *>(user)->diagnostics += line;
        };
    }
    c.status = amp_compile(&options, &result, &err);
    c.message = err.message;
    if (!c.status) {
        size_t size;
        const void *data = amp_compile_result_data(result, &size);
        c.bytes.assign(static_cast<const char *>(data), size);
    }
    amp_compile_result_release(result);
    return c;
}

std::string compile_to_file(const std::string &text, const std::string &name, amp_compile_options options) {
    std::string path = temp_path(name);
    options.output = path.c_str();
    Compiled c = compile(text, options);
    EXPECT_EQ(c.status, AMP_OK) << c.message << "\n" << c.diagnostics;
    return path;
}

Training::Training(const std::string &path, int64_t capacity, int32_t threads, uint64_t seed, bool keep_values,
                   const char *isa, amp_comm *comm) {
    amp_params_options p = {};
    p.struct_size = sizeof p;
    p.seed = seed;
    amp::SessionOptions o;
    o.capacity.n = capacity;
    o.threads = threads;
    o.seed = seed;
    o.inspect.keep_values = keep_values;
    o.cpu.isa = isa;
    o.comm = comm;
    o.device = device();
    if (device()) setenv("AMPC_CACHE_DIR", temp_path("kernels").c_str(), 0);
    o.inspect.separate_buffers = getenv("AMP_TEST_SEPARATE") != nullptr;
    EXPECT_EQ(amp_model_load(path.c_str(), nullptr, &model, &err), AMP_OK) << err.message;
    if (!model) return;
    EXPECT_EQ(amp_params_create(model, &p, &params, &err), AMP_OK) << err.message;
    EXPECT_EQ(amp_session_create(model, params, &o, &session, &err), AMP_OK) << err.message;
}

Training::~Training() {
    amp_session_release(session);
    amp_params_release(params);
    amp_model_release(model);
}

void OnDevice::SetUp() {
    if (!device()) return;
    static const std::string missing = Missing();
    if (!missing.empty()) GTEST_SKIP() << "NOT TESTED ON CUDA: " << missing;
}

std::string OnDevice::Missing() {
    amp_error err = {};
    amp_model *model = nullptr;
    amp_params *params = nullptr;
    amp_session *session = nullptr;
    amp::SessionOptions o;
    o.capacity.n = 1;
    o.device = device();
    EXPECT_EQ(amp_model_load(compile_to_file(mlp("fp32"), "probe.so").c_str(), nullptr, &model, &err), AMP_OK)
        << err.message;
    EXPECT_EQ(amp_params_create(model, nullptr, &params, &err), AMP_OK) << err.message;
    const amp_status status = amp_session_create(model, params, &o, &session, &err);
    const bool no_nvrtc = status == AMP_NOT_FOUND && strstr(err.message, "NVRTC");
    EXPECT_TRUE(no_nvrtc || !status) << err.message;
    amp_session_release(session);
    amp_params_release(params);
    amp_model_release(model);
    return no_nvrtc ? err.message : "";
}

Batch::Batch(int64_t n, int64_t width, int classes, uint32_t seed) : x(n * width), y(n), n(n) {
    for (float &v : x) v = static_cast<float>(next(seed) >> 8) / 8388608.0f - 1.0f;
    for (int32_t &v : y) v = static_cast<int32_t>(next(seed) >> 8) % classes;
}

const void *const *Batch::inputs() {
    pointers[0] = x.data();
    pointers[1] = y.data();
    return pointers;
}

std::vector<float> values_of(const amp_model *model, const amp_params *params) {
    std::vector<float> all;
    amp_error err;
    amp_model_info info;
    amp_model_get_info(model, &info);
    for (int i = 0; i < info.param_count; i++) {
        amp_tensor_info t;
        EXPECT_EQ(amp_model_param_at(model, i, &t, &err), AMP_OK) << err.message;
        size_t count = 1;
        for (int d = 0; d < t.rank; d++) count *= static_cast<size_t>(t.dims[d]);
        std::vector<float> data(count);
        EXPECT_EQ(amp_params_get(params, t.name, data.data(), count, &err), AMP_OK) << err.message;
        all.insert(all.end(), data.begin(), data.end());
    }
    return all;
}

std::vector<float> all_params(const Training &r) { return values_of(r.model, r.params); }

std::vector<float> averages(Training &r) {
    amp_params *to = nullptr;
    EXPECT_EQ(amp_params_snapshot(r.params, &to, &r.err), AMP_OK) << r.err.message;
    EXPECT_EQ(amp_session_get_averages(r.session, to, &r.err), AMP_OK) << r.err.message;
    std::vector<float> all = values_of(r.model, to);
    amp_params_release(to);
    return all;
}

bool same_bits(const std::vector<float> &a, const std::vector<float> &b) {
    return a.size() == b.size() && !memcmp(a.data(), b.data(), a.size() * sizeof(float));
}

std::vector<double> train(Training &r, int steps, int64_t n, int in, int classes, int from) {
    std::vector<double> losses;
    for (int i = from; i < from + steps; i++) {
        Batch b(n, in, classes, 100u + static_cast<uint32_t>(i));
        amp_step_report report;
        EXPECT_EQ(amp_step(r.session, b.inputs(), {n, 0}, &report, &r.err), AMP_OK) << r.err.message;
        losses.push_back(report.loss);
    }
    return losses;
}

} // namespace e2e
