// check.cc: see check.h.
#include "tests/random/check.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <unistd.h>

#include "amp/amp.hpp"
#include "amp/compile.h"
#include "ir/interp/interp.h"
#include "ir/ir.h"

namespace random_programs {

namespace {

// Relative to the norm of each tensor; what is small beside the largest tensor's numbers may be off by a share of
// those.
constexpr double kFloat64Bound = 1e-3, kFloorOfNorms = 1e-5;
constexpr double kSimplifyBound[] = {1e-4, 8e-2, 2e-2}; // fp32, bf16, fp16: simplify leaves roundings out

using Tensor = std::vector<double>;
using Results = std::map<std::string, Tensor>; // "loss", "out", "grad.NAME"

struct Data { // the same for every way of running a program
    std::map<std::string, std::vector<float>> params;
    std::map<std::string, std::vector<float>> inputs;
    std::vector<int32_t> targets;
};

struct Failure {
    std::string text;
};

[[noreturn]] void Fail(const std::string &text) { throw Failure{text}; }

// ---- compiling ----

amp_compile_options Options(const std::string &text, const Settings &settings) {
    amp_compile_options o = {};
    o.struct_size = sizeof o;
    o.name = "random.amp";
    o.text = text.c_str();
    o.text_size = text.size();
    o.isa = "portable";
    if (!settings.c_compiler.empty()) o.c_compiler = settings.c_compiler.c_str();
    return o;
}

std::string Compile(const amp_compile_options &o, const char *what) {
    amp_error err = {};
    amp_compile_result *result = nullptr;
    if (amp_compile(&o, &result, &err)) Fail(std::string(what) + ": does not compile: " + err.message);
    size_t size;
    auto bytes = static_cast<const char *>(amp_compile_result_data(result, &size));
    std::string copy(bytes, size);
    amp_compile_result_release(result);
    return copy;
}

// The CPU's code; the two ways make the same model where it is the same.
std::string Code(amp_compile_options o, const char *what) {
    o.emit = AMP_EMIT_C;
    o.target = "cpu";
    return Compile(o, what);
}

// ---- running the compiled model ----

struct Session {
    amp_model *model = nullptr;
    amp_params *params = nullptr;
    amp_session *session = nullptr;
    ~Session() {
        amp_session_release(session);
        amp_params_release(params);
        amp_model_release(model);
    }
};

int64_t Count(const amp_tensor_info &t) {
    int64_t count = 1;
    for (int i = 0; i < t.rank; i++) count *= t.dims[i];
    return count;
}

void Need(amp_status status, const amp_error &err, const char *what) {
    if (status) Fail(std::string(what) + ": " + err.message);
}

Data MakeData(const Session &s, int n, uint64_t seed) {
    Random r{seed};
    Data d;
    amp_error err = {};
    amp_model_info info;
    amp_model_get_info(s.model, &info);
    for (int i = 0; i < info.param_count; i++) {
        amp_tensor_info t;
        Need(amp_model_param_at(s.model, i, &t, &err), err, "param");
        if (t.dtype != AMP_DT_F32) continue;
        std::vector<float> values(Count(t));
        bool is_variance = std::strstr(t.name, "running_var") != nullptr;
        double fan = t.rank > 1 ? double(values.size()) / double(t.dims[0]) : 1;
        for (float &v : values)
            v = is_variance ? 1.0f + 0.25f * r.Uniform()
                            : static_cast<float>(r.Uniform() / std::sqrt(fan) * (t.rank > 1 ? 1.7 : 0.7));
        d.params[t.name] = values;
    }
    for (int i = 0; i < info.model_input_count; i++) {
        amp_tensor_info t;
        Need(amp_model_input_at(s.model, i, {n, 0}, &t, &err), err, "input");
        std::vector<float> values(Count(t));
        for (float &v : values) v = 1.5f * r.Uniform();
        d.inputs[t.name] = values;
    }
    return d;
}

constexpr uint64_t kSessionSeed = 5;

struct Place { // where a session runs
    const char *device = nullptr;
    bool separate = false; // nothing shares memory
};

// Compiled with |o|; the batch is made on the first call.
Results Run(const amp_compile_options &options, const Program &p, const Settings &settings, uint64_t seed, Data *data,
            const char *what, const Place &place = {}) {
    std::string path = settings.folder + "/random-" + std::to_string(getpid()) + ".so";
    amp_compile_options o = options;
    o.output = path.c_str();
    Compile(o, what);
    Session s;
    amp_error err = {};
    amp::SessionOptions with;
    with.capacity.n = p.n;
    with.threads = 1;
    with.seed = kSessionSeed;
    with.inspect.keep_values = 1;
    with.device = place.device;
    with.inspect.separate_buffers = place.separate;
    amp_status status = amp_model_load(path.c_str(), nullptr, &s.model, &err);
    unlink(path.c_str());
    Need(status, err, what);
    amp_model_info about;
    amp_model_get_info(s.model, &about);
    if (place.device && !about.has_cuda) throw Skipped{about.cuda_missing};
    Need(amp_params_create(s.model, nullptr, &s.params, &err), err, what);
    if (data->inputs.empty()) {
        *data = MakeData(s, p.n, seed);
        Random r{seed + 1};
        for (int i = 0; i < p.n; i++) data->targets.push_back(r.Below(p.classes));
    }
    for (auto &[name, values] : data->params)
        Need(amp_params_set(s.params, name.c_str(), values.data(), values.size(), &err), err, what);
    Need(amp_session_create(s.model, s.params, &with, &s.session, &err), err, what);

    std::vector<const void *> inputs;
    amp_model_info info;
    amp_model_get_info(s.model, &info);
    for (int i = 0; i < info.model_input_count; i++) {
        amp_tensor_info t;
        Need(amp_model_input_at(s.model, i, {p.n, 0}, &t, &err), err, what);
        inputs.push_back(data->inputs[t.name].data());
    }
    inputs.push_back(data->targets.data());
    Results out;
    std::vector<float> result(size_t(p.n) * p.classes);
    void *outputs[] = {result.data()};
    Need(amp_infer(s.session, inputs.data(), {p.n, 0}, outputs, &err), err, what);
    out["out"] = Tensor(result.begin(), result.end());
    amp_step_report report;
    Need(amp_step(s.session, inputs.data(), {p.n, 0}, &report, &err), err, what);
    out["loss"] = {report.loss};
    for (int i = 0; const char *name = amp_session_value_name(s.session, i); i++) {
        if (std::strncmp(name, "grad.", 5)) continue;
        amp_tensor_info t;
        Need(amp_session_get_value(s.session, name, &t, nullptr, 0, &err), err, what);
        std::vector<float> values(Count(t));
        Need(amp_session_get_value(s.session, name, &t, values.data(), values.size() * sizeof(float), &err), err, what);
        out[name] = Tensor(values.begin(), values.end());
    }
    for (auto &[name, values] : data->params) { // running statistics: the learning rate is 0
        std::vector<float> now(values.size());
        Need(amp_params_get(s.params, name.c_str(), now.data(), now.size(), &err), err, what);
        out["after." + name] = Tensor(now.begin(), now.end());
    }
    return out;
}

// ---- the float64 interpreter ----

void Fill(InterpTensor *t, const Data &data, const Val *, const Func *f, const Value *v) {
    std::string name = v->name;
    (void)f;
    auto copy = [&](const auto &from) {
        for (int64_t i = 0; i < t->count; i++) t->data[i] = double(from[size_t(i)]);
    };
    if (name == "targets") copy(data.targets);
    else if (data.params.count(name)) copy(data.params.at(name));
    else if (data.inputs.count(name)) copy(data.inputs.at(name));
    else if (name == "seed") t->data[0] = double(kSessionSeed);
    else if (name == "scale") t->data[0] = 1;
}

void Interpret(const Module *m, const char *func, const Program &p, const Data &data, Results *out) {
    const Func *f = ir_func_find(m, func);
    if (!f) Fail(std::string("float64: no function ") + func);
    Arena *a = m->arena;
    std::vector<InterpTensor> given;
    for (int i = 0; i < f->inputs.len; i++) {
        const Value *v = ir_value(f, f->inputs.data[i]);
        given.push_back(interp_tensor(a, v->name, &v->shape, {p.n, 1}));
        Fill(&given.back(), data, nullptr, f, v);
    }
    Shape scalar = shape_scalar();
    given.push_back(interp_tensor(a, "seed", &scalar, {p.n, 1}));
    given.back().data[0] = double(kSessionSeed);
    std::vector<InterpTensor> results(size_t(f->results.len) + 1);
    InterpOptions exact = {};
    amp_error err = {};
    Need(interp_run(f, {p.n, 1}, &exact, given.data(), int(given.size()), results.data(), &err), err, "float64");
    for (int i = 0; i < f->results.len; i++) {
        std::string name = f->results.data[i].name;
        Tensor values(results[i].data, results[i].data + results[i].count);
        if (name == "loss" && !std::strcmp(func, "train_step")) (*out)["loss"] = values;
        if (!name.rfind("grad.", 0)) (*out)[name] = values;
        if (!std::strcmp(func, "infer")) (*out)["out"] = values;
    }
    if (std::strcmp(func, "train_step")) return;
    for (const InterpTensor &t : given)
        if (data.params.count(t.name)) (*out)[std::string("after.") + t.name] = Tensor(t.data, t.data + t.count);
}

Results Float64(const std::string &text, const Program &p, const Settings &settings, const Data &data) {
    amp_compile_options o = Options(text, settings);
    o.emit = AMP_EMIT_IR;
    o.stop_after = "simplify";
    std::string ir = Compile(o, "float64");
    Arena arena;
    arena_init(&arena, nullptr);
    if (setjmp(arena.out_of_memory)) std::abort();
    Diags diags;
    diags_init(&diags, &arena);
    Source source = {};
    source.name = "random.ir";
    source.text = ir.c_str();
    source.len = ir.size();
    Module *m = ir_read(&arena, &diags, &source);
    Results out;
    try {
        if (!m) Fail("float64: the IR does not read back");
        Interpret(m, "infer", p, data, &out);
        Interpret(m, "train_step", p, data, &out);
    } catch (...) {
        arena_free(&arena);
        throw;
    }
    arena_free(&arena);
    return out;
}

// ---- comparing ----

double Norm(const Tensor &t) {
    double sum = 0;
    for (double v : t) sum += v * v;
    return std::sqrt(sum);
}

bool SameNumber(double a, double b) {
    return std::isnan(a) ? std::isnan(b) : a == b && std::signbit(a) == std::signbit(b);
}

std::string SameBits(const char *what, const Results &a, const Results &b) {
    for (auto &[name, t] : a) {
        if (!b.count(name) || b.at(name).size() != t.size())
            return std::string(what) + ": " + name + " is missing or has another size";
        for (size_t i = 0; i < t.size(); i++)
            if (!SameNumber(t[i], b.at(name)[i])) {
                char text[200];
                std::snprintf(text, sizeof text, "%s: %s[%zu] is %.9g, not %.9g", what, name.c_str(), i, b.at(name)[i],
                              t[i]);
                return text;
            }
    }
    return "";
}

bool Finite(const Tensor &t) {
    return std::all_of(t.begin(), t.end(), [](double v) { return std::isfinite(v); });
}

bool Overflowed(const Results &r) {
    return !std::all_of(r.begin(), r.end(), [](auto &named) { return Finite(named.second); });
}

double LargestNorm(const Results &r) {
    double largest = 0;
    for (auto &[name, t] : r)
        if (Finite(t)) largest = std::max(largest, Norm(t));
    return largest;
}

// Where both overflow, which is FP16 doing what it does, the tensors that this reaches have no norm to compare; where
// only one does, they differ.
std::string Within(const char *what, const Results &ours, const Results &reference, double bound) {
    double floor = kFloorOfNorms * (bound / kFloat64Bound) * LargestNorm(reference);
    bool overflow = Overflowed(ours) && Overflowed(reference);
    for (auto &[name, t] : reference) {
        if (!ours.count(name) || ours.at(name).size() != t.size())
            return std::string(what) + ": " + name + " is missing or has another size";
        if (overflow && !(Finite(t) && Finite(ours.at(name)))) continue;
        Tensor difference(t.size());
        for (size_t i = 0; i < t.size(); i++) difference[i] = ours.at(name)[i] - t[i];
        if (!(Norm(difference) <= bound * Norm(t) + floor)) {
            char text[200];
            std::snprintf(text, sizeof text, "%s: %s is off by %.3g of %.3g (bound %g)", what, name.c_str(),
                          Norm(difference), Norm(t), bound);
            return text;
        }
    }
    return "";
}

double SimplifyBound(const Program &p) { return kSimplifyBound[p.Half("bf16") ? 1 : p.Half("fp16") ? 2 : 0]; }

std::string CheckOnCuda(const Program &p, const std::string &text, const Settings &settings, uint64_t seed) {
    Data data;
    amp_compile_options o = Options(text, settings), fused = o;
    o.target = "cpu";
    fused.target = "both";
    Results cpu = Run(o, p, settings, seed, &data, "on the CPU");
    Results cuda = Run(fused, p, settings, seed, &data, "on CUDA", {"cuda"});
    std::string wrong = Within("on CUDA", cuda, cpu, SimplifyBound(p));
    if (!wrong.empty()) return wrong;
    wrong =
        SameBits("on CUDA, separate", cuda, Run(fused, p, settings, seed, &data, "on CUDA, separate", {"cuda", true}));
    if (!wrong.empty()) return wrong;
    const std::string again = p.Text(seed);
    amp_compile_options with = fused;
    with.text = again.c_str(), with.text_size = again.size();
    wrong = SameBits("on CUDA with checkpoints", cuda,
                     Run(with, p, settings, seed, &data, "on CUDA with checkpoints", {"cuda"}));
    if (!wrong.empty()) return wrong;
    fused.no_pass = "fuse";
    return Within("on CUDA without fuse", Run(fused, p, settings, seed, &data, "on CUDA without fuse", {"cuda"}), cpu,
                  SimplifyBound(p));
}

// What is computed again in the backward pass has the same bits, with fuse and without.
std::string CheckCheckpoints(const Program &p, amp_compile_options o, const Results &base, const Settings &settings,
                             uint64_t seed, Data *data) {
    const std::string text = p.Text(seed);
    o.text = text.c_str(), o.text_size = text.size();
    Results again;
    try {
        again = Run(o, p, settings, seed, data, "with checkpoints");
    } catch (const Failure &f) { // a run of statements that come to nothing: a roll of one element
        if (f.text.find("this checkpoint computes no tensor") == std::string::npos) throw;
        return "";
    }
    std::string wrong = SameBits("with checkpoints", base, again);
    if (!wrong.empty()) return wrong + "\n" + text;
    o.no_pass = "fuse";
    wrong = SameBits("with checkpoints, without fuse", base,
                     Run(o, p, settings, seed, data, "with checkpoints, without fuse"));
    return wrong.empty() ? wrong : wrong + "\n" + text;
}

// With one set of numbers.  |*exact|: the difference needs no second look.
std::string CheckOnce(const Program &p, const std::string &text, const Settings &settings, uint64_t seed, bool *exact) {
    Data data;
    amp_compile_options o = Options(text, settings);
    Results base = Run(o, p, settings, seed, &data, "as it is");
    const std::string code = Code(o, "as it is");
    *exact = true;
    o.target = "cpu"; // CUDA code is made of the program as it is
    o.no_pass = "fuse";
    std::string wrong = SameBits("without fuse", base, Run(o, p, settings, seed, &data, "without fuse"));
    if (!wrong.empty()) return wrong;
    o.no_pass = "layout";
    wrong = SameBits("without layout", base, Run(o, p, settings, seed, &data, "without layout"));
    if (!wrong.empty()) return wrong;
    o.no_pass = nullptr;
    wrong = CheckCheckpoints(p, o, base, settings, seed, &data);
    if (!wrong.empty()) return wrong;
    *exact = false;
    o.no_pass = "simplify";
    if (Code(o, "without simplify") != code)
        wrong =
            Within("without simplify", base, Run(o, p, settings, seed, &data, "without simplify"), SimplifyBound(p));
    if (!wrong.empty() || p.precision != "fp32") return wrong;
    return Within("float64", base, Float64(text, p, settings, data), kFloat64Bound);
}

} // namespace

std::string Check(const Program &p, const Settings &settings) {
    std::string text = p.Text(), wrong;
    try {
        for (uint64_t seed : {11, 22, 33}) {
            bool exact = false;
            wrong = settings.cuda ? CheckOnCuda(p, text, settings, seed) : CheckOnce(p, text, settings, seed, &exact);
            if (wrong.empty() || exact) return wrong;
        }
        return wrong;
    } catch (const Failure &f) {
        return f.text;
    }
}

} // namespace random_programs
