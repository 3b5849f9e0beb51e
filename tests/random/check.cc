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
constexpr int kWords = 7;                               // that an embedding of ids has: length.cc
constexpr double kSimplifyBound[] = {1e-4, 8e-2, 2e-2}; // fp32, bf16, fp16: simplify leaves roundings out

using Tensor = std::vector<double>;
using Results = std::map<std::string, Tensor>; // "loss", "out", "grad.NAME"

struct Data { // the same for every way of running a program
    std::map<std::string, std::vector<float>> params;
    std::map<std::string, std::vector<float>> inputs;
    std::map<std::string, std::vector<int32_t>> indexes; // targets, words
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

// All inputs of the training step, in their order.
std::vector<amp_tensor_info> Inputs(const Session &s, amp_sizes at) {
    std::vector<amp_tensor_info> all;
    amp_error err = {};
    amp_model_info info;
    amp_model_get_info(s.model, &info);
    for (int i = 0; i < info.input_count; i++) {
        amp_tensor_info t;
        Need(amp_model_input_at(s.model, i, at, &t, &err), err, "input");
        all.push_back(t);
    }
    return all;
}

Data MakeData(const Session &s, const Program &p, amp_sizes at, uint64_t seed) {
    Random r{seed}, indexes{seed + 1};
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
    for (const amp_tensor_info &t : Inputs(s, at)) {
        if (t.dtype == AMP_DT_I32) {
            std::vector<int32_t> &values = d.indexes[t.name];
            for (int64_t i = Count(t); i > 0; i--)
                values.push_back(indexes.Below(std::strcmp(t.name, "targets") ? kWords : p.classes));
            continue;
        }
        std::vector<float> values(Count(t));
        for (float &v : values) v = 1.5f * r.Uniform();
        d.inputs[t.name] = values;
    }
    return d;
}

constexpr uint64_t kSessionSeed = 5;

// A compiled model, in a file.
struct Built {
    std::string path;
    Built(amp_compile_options o, const Settings &settings, const char *what) {
        static int count = 0;
        path = settings.folder + "/random-" + std::to_string(getpid()) + "-" + std::to_string(count++) + ".so";
        o.output = path.c_str();
        Compile(o, what);
    }
    ~Built() { unlink(path.c_str()); }
};

struct Place { // where a session runs
    const char *device = nullptr;
    bool separate = false; // nothing shares memory
    int64_t t = 0;         // of the call; 0: the model has no T
};

std::vector<const void *> Given(const std::vector<amp_tensor_info> &inputs, const Data &data) {
    std::vector<const void *> given;
    for (const amp_tensor_info &t : inputs)
        given.push_back(t.dtype == AMP_DT_I32 ? static_cast<const void *>(data.indexes.at(t.name).data())
                                              : data.inputs.at(t.name).data());
    return given;
}

// What the session's memory holds of a call of the largest T changes nothing.
void CallTheLongest(const Session &s, const Program &p, void **outputs, const char *what) {
    const amp_sizes most = {p.n, p.most};
    const Data data = MakeData(s, p, most, 77);
    amp_error err = {};
    Need(amp_infer(s.session, Given(Inputs(s, most), data).data(), most, outputs, &err), err, what);
}

// The batch is made on the first call.
Results Run(const Built &built, const Program &p, uint64_t seed, Data *data, const char *what,
            const Place &place = {}) {
    Session s;
    amp_error err = {};
    const amp_sizes at = {p.n, place.t};
    amp::SessionOptions with;
    with.capacity = {p.n, place.t ? p.most : 0};
    with.threads = 1;
    with.seed = kSessionSeed;
    with.inspect.keep_values = 1;
    with.device = place.device;
    with.inspect.separate_buffers = place.separate;
    Need(amp_model_load(built.path.c_str(), nullptr, &s.model, &err), err, what);
    amp_model_info about;
    amp_model_get_info(s.model, &about);
    if (place.device && !about.has_cuda) throw Skipped{about.cuda_missing};
    Need(amp_params_create(s.model, nullptr, &s.params, &err), err, what);
    if (data->indexes.empty()) *data = MakeData(s, p, at, seed);
    for (auto &[name, values] : data->params)
        Need(amp_params_set(s.params, name.c_str(), values.data(), values.size(), &err), err, what);
    Need(amp_session_create(s.model, s.params, &with, &s.session, &err), err, what);

    const std::vector<const void *> inputs = Given(Inputs(s, at), *data);
    Results out;
    amp_tensor_info made;
    Need(amp_model_result_at(s.model, 0, {p.n, place.t ? p.most : 0}, &made, &err), err, what);
    std::vector<float> result(Count(made));
    void *outputs[] = {result.data()};
    if (place.t) CallTheLongest(s, p, outputs, what);
    Need(amp_infer(s.session, inputs.data(), at, outputs, &err), err, what);
    Need(amp_model_result_at(s.model, 0, at, &made, &err), err, what);
    out["out"] = Tensor(result.begin(), result.begin() + Count(made));
    amp_step_report report;
    Need(amp_step(s.session, inputs.data(), at, &report, &err), err, what);
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

Results Run(const amp_compile_options &options, const Program &p, const Settings &settings, uint64_t seed, Data *data,
            const char *what, const Place &place = {}) {
    return Run(Built(options, settings, what), p, seed, data, what, place);
}

// ---- the float64 interpreter ----

void Fill(InterpTensor *t, const Data &data, const Value *v) {
    std::string name = v->name;
    auto copy = [&](const auto &from) {
        for (int64_t i = 0; i < t->count; i++) t->data[i] = double(from[size_t(i)]);
    };
    if (data.indexes.count(name)) copy(data.indexes.at(name));
    else if (data.params.count(name)) copy(data.params.at(name));
    else if (data.inputs.count(name)) copy(data.inputs.at(name));
    else if (name == "seed") t->data[0] = double(kSessionSeed);
    else if (name == "scale") t->data[0] = 1;
}

void Interpret(const Module *m, const char *func, Sizes at, const Data &data, Results *out) {
    const Func *f = ir_func_find(m, func);
    if (!f) Fail(std::string("float64: no function ") + func);
    Arena *a = m->arena;
    std::vector<InterpTensor> given;
    for (int i = 0; i < f->inputs.len; i++) {
        const Value *v = ir_value(f, f->inputs.data[i]);
        given.push_back(interp_tensor(a, v->name, &v->shape, at));
        Fill(&given.back(), data, v);
    }
    Shape scalar = shape_scalar();
    given.push_back(interp_tensor(a, "seed", &scalar, at));
    given.back().data[0] = double(kSessionSeed);
    std::vector<InterpTensor> results(size_t(f->results.len) + 1);
    InterpOptions exact = {};
    amp_error err = {};
    Need(interp_run(f, at, &exact, given.data(), int(given.size()), results.data(), &err), err, "float64");
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

Results Float64(const std::string &text, Sizes at, const Settings &settings, const Data &data) {
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
        Interpret(m, "infer", at, data, &out);
        Interpret(m, "train_step", at, data, &out);
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
    return Within("float64", base, Float64(text, {p.n, 1}, settings, data), kFloat64Bound);
}

// ---- programs with a T ----

// The smallest T, the largest, and one between, which is prime if each T is taken.
std::vector<int64_t> Lengths(const Program &p, uint64_t seed) {
    Random r{seed};
    int64_t t = p.unit * (1 + r.Below(p.most / p.unit));
    auto prime = [](int64_t v) {
        for (int64_t i = 2; i * i <= v; i++)
            if (v % i == 0) return false;
        return v > 1;
    };
    while (p.unit == 1 && t > 2 && !prime(t)) t--;
    return {p.unit, t, p.most};
}

// The same bits without a pass, or with checkpoints: one of these for a program.
std::string CheckAnother(const Program &p, amp_compile_options o, const Results &base, const Settings &settings,
                         uint64_t seed, Data *data, const Place &place) {
    static const char *const kPasses[] = {"fuse", "layout", nullptr};
    o.no_pass = kPasses[p.statements.size() % 3];
    const std::string text = p.Text(seed), what = o.no_pass ? std::string("without ") + o.no_pass : "with checkpoints";
    if (!o.no_pass) o.text = text.c_str(), o.text_size = text.size();
    try {
        std::string wrong = SameBits(what.c_str(), base, Run(o, p, settings, seed, data, what.c_str(), place));
        return wrong.empty() || o.no_pass ? wrong : wrong + "\n" + text;
    } catch (const Failure &f) {
        if (f.text.find("this checkpoint computes no tensor") == std::string::npos) throw;
        return "";
    }
}

std::string CheckLength(const Program &p, const std::string &text, const Settings &settings, uint64_t seed,
                        bool *exact) {
    const std::vector<int64_t> lengths = Lengths(p, p.statements.size());
    const int64_t one = lengths[p.statements.size() / 3 % 3];
    const std::string number = std::to_string(one);
    const amp_define define = {"T", number.c_str()};
    amp_compile_options any = Options(text, settings);
    any.target = settings.cuda ? "both" : "cpu";
    amp_compile_options fixed = any;
    fixed.defines = &define, fixed.define_count = 1;
    const Built built(any, settings, "any T");
    std::string wrong;
    for (int64_t t : lengths) {
        Data data;
        const std::string at = " at T = " + std::to_string(t);
        *exact = true;
        const Results cpu = Run(built, p, seed, &data, ("any T" + at).c_str(), {nullptr, false, t});
        Results made = cpu;
        const Place place = {settings.cuda ? "cuda" : nullptr, false, t};
        if (settings.cuda) made = Run(built, p, seed, &data, ("on CUDA" + at).c_str(), place);
        if (t == one) {
            wrong = SameBits(("any T, -D T" + at).c_str(),
                             Run(fixed, p, settings, seed, &data, ("-D T" + at).c_str(), {place.device}), made);
            if (wrong.empty()) wrong = CheckAnother(p, any, made, settings, seed, &data, place);
        }
        if (!wrong.empty()) return wrong;
        *exact = false;
        if (settings.cuda) wrong = Within(("on CUDA" + at).c_str(), made, cpu, SimplifyBound(p));
        else if (p.precision == "fp32")
            wrong = Within(("float64" + at).c_str(), made, Float64(text, {p.n, t}, settings, data), kFloat64Bound);
        if (!wrong.empty()) return wrong;
    }
    return wrong;
}

} // namespace

std::string Check(const Program &p, const Settings &settings) {
    std::string text = p.Text(), wrong;
    try {
        for (uint64_t seed : {11, 22, 33}) {
            bool exact = false;
            wrong = p.most          ? CheckLength(p, text, settings, seed, &exact)
                    : settings.cuda ? CheckOnCuda(p, text, settings, seed)
                                    : CheckOnce(p, text, settings, seed, &exact);
            if (wrong.empty() || exact) return wrong;
        }
        return wrong;
    } catch (const Failure &f) {
        return f.text;
    }
}

} // namespace random_programs
