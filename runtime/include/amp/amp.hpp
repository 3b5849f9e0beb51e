/* amp/amp.hpp: amp/amp.h and the headers beside it for C++17: objects that release themselves, exceptions, arrays
 * whose sizes are checked.
 *
 *     amp::Model model("mlp.so");
 *     amp::Params params(model, 7);
 *     amp::SessionOptions options;
 *     options.capacity.n = 128;
 *     amp::Session session(model, params, options);
 *     for (;;) amp::StepReport report = session.step({images, labels});
 *
 * Header only: link libamp as in C.  What they say of threads, devices and files holds here too.
 *
 * Objects.   Copying a Model, Params or Session gives another reference to the same object; all are cheap to move.
 *            They can be destroyed in any order.  get() is the C object, for functions of C that are not here.  One
 *            that was moved from can be destroyed or assigned to, nothing else.
 * Errors.    amp::Error, with amp.h's status and message.  After an exception every object is as it was.  Only
 *            AMP_SCALE_AT_FLOOR is none: the step has been done, and its report has at_floor.
 * Arrays.    amp::Input and amp::Output are made from std::vector, std::array, std::span, C arrays, or pointers; sizes
 *            and element types are compared with the model's (of pointers: element types alone).
 * Sizes.     A number of samples; without it as many as the first array of known size holds.
 * Memory.    step, evaluate and infer into the caller's arrays allocate nothing.
 */
#ifndef AMP_AMP_HPP
#define AMP_AMP_HPP

#include <algorithm>
#include <cstring>
#include <exception>
#include <functional>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "amp/amp.h"
#include "amp/base.hpp"
#include "amp/cpu.h"
#include "amp/cuda.h"
#include "amp/data.h"
#include "amp/inspect.h"
#include "amp/serve.h"
#include "amp/train.h"
#include "amp/weights.h"

namespace amp {

using ModelInfo = amp_model_info;
using Decision = amp_decision;
using StepReport = amp_step_report;
using Scaler = amp_scaler_state;
using Memory = amp_memory_info;
using WeightsReport = amp_weights_report;
using PublishReport = amp_publish_report;

/* The options of C with their struct_size; all else is as there, new fields included. */
struct ModelOptions : amp_model_options {
    ModelOptions() noexcept : amp_model_options{} { struct_size = sizeof(amp_model_options); }
};
struct ParamsOptions : amp_params_options {
    ParamsOptions() noexcept : amp_params_options{} { struct_size = sizeof(amp_params_options); }
};
/* Its cpu, cuda and inspect are the options themselves, in place of C's pointers to them. */
struct SessionOptions : amp_session_options {
    amp_cpu_options cpu{};
    amp_cuda_options cuda{};
    amp_inspect_options inspect{};
    SessionOptions() noexcept : amp_session_options{} {
        struct_size = sizeof(amp_session_options);
        cpu.struct_size = sizeof cpu;
        cuda.struct_size = sizeof cuda;
        inspect.struct_size = sizeof inspect;
        point_to_own();
    }
    SessionOptions(const SessionOptions &other) noexcept
        : amp_session_options(other), cpu(other.cpu), cuda(other.cuda), inspect(other.inspect) {
        point_to_own();
    }
    SessionOptions &operator=(const SessionOptions &other) noexcept {
        amp_session_options::operator=(other);
        cpu = other.cpu, cuda = other.cuda, inspect = other.inspect;
        point_to_own();
        return *this;
    }

  private:
    void point_to_own() noexcept {
        amp_session_options::cpu = &cpu;
        amp_session_options::cuda = &cuda;
        amp_session_options::inspect = &inspect;
    }
};

struct DatasetOptions : amp_dataset_options {
    DatasetOptions() noexcept : amp_dataset_options{} { struct_size = sizeof(amp_dataset_options); }
};

/* Sizes of a call; a number converts to that many samples. */
struct Sizes : amp_sizes {
    Sizes(int64_t samples = 0, int64_t length = 0) noexcept : amp_sizes{samples, length} {}
};

/* The rules of amp_weights_options; |like| when saving. */
struct WeightRules {
    std::vector<std::string> ignore, rename, transpose, fresh;
    bool partial = false;
    std::string like;
    bool ema = false; /* of a checkpoint, the averages in place of the parameters */
};

/* The name, type and shape of an input, result, parameter or value.  Compared by value. */
struct TensorInfo : amp_tensor_info {
    TensorInfo() noexcept : amp_tensor_info{} {}
    std::size_t elements() const noexcept {
        std::size_t count = 1;
        for (int32_t i = 0; i < rank; i++) count *= static_cast<std::size_t>(dims[i]);
        return count;
    }
    std::vector<int64_t> shape() const { return {dims, dims + rank}; }
    bool operator==(const TensorInfo &other) const noexcept {
        const bool same_name = name && other.name ? !std::strcmp(name, other.name) : name == other.name;
        return same_name && dtype == other.dtype && rank == other.rank && std::equal(dims, dims + rank, other.dims);
    }
    bool operator!=(const TensorInfo &other) const noexcept { return !(*this == other); }
    std::string text() const { /* "f32[64, 784]" */
        std::string out = std::string(amp_dtype_name(dtype)) + "[";
        for (int32_t i = 0; i < rank; i++) out += (i ? ", " : "") + std::to_string(dims[i]);
        return out + "]";
    }
};

/* A result or a value: its description and its bytes. */
class Tensor {
  public:
    explicit Tensor(const TensorInfo &info, const std::string &name = {})
        : name_(name.empty() && info.name ? info.name : name), info_(info),
          bytes_(info.elements() * amp_dtype_size(info.dtype)) {}
    const std::string &name() const noexcept { return name_; }
    amp_dtype dtype() const noexcept { return info_.dtype; }
    std::vector<int64_t> shape() const { return info_.shape(); }
    std::size_t elements() const noexcept { return info_.elements(); }
    void *data() noexcept { return bytes_.data(); }
    const void *data() const noexcept { return bytes_.data(); }
    /* Its numbers; T must be the type of its dtype. */
    template <class T> std::vector<T> to() const {
        if (!detail::holds(detail::dtype_of<T>(), info_.dtype))
            throw Error(AMP_INVALID_ARGUMENT, name_ + " is " + info_.text() + "; ask for numbers of that type");
        std::vector<T> out(elements());
        if (!out.empty()) std::memcpy(out.data(), bytes_.data(), bytes_.size());
        return out;
    }

  private:
    std::string name_;
    TensorInfo info_;
    std::vector<unsigned char> bytes_;
};

/* ---- model ------------------------------------------------------------------------------------------------------- */

class Model {
  public:
    explicit Model(const std::string &path, const ModelOptions &options = {}) {
        open([&](amp_model **out, amp_error *err) { return amp_model_load(path.c_str(), &options, out, err); });
    }
    /* The bytes of a model.so, which may be freed afterwards. */
    static Model from_memory(const void *bytes, std::size_t size, const std::string &name = "model in memory",
                             const ModelOptions &options = {}) {
        ModelOptions with = options;
        with.bytes = bytes;
        with.size = size;
        return Model(name, with);
    }
    /* A model that is linked into the program, declared by extern "C" { AMP_STATIC_MODEL(NAME); }. */
    static Model from_static(amp_static_model linked, const ModelOptions &options = {}) {
        Model model;
        model.open([&](amp_model **out, amp_error *err) { return amp_model_from_static(linked, &options, out, err); });
        return model;
    }
    /* Takes over the caller's reference to a model of C. */
    static Model adopt(amp_model *model) noexcept {
        Model out;
        out.handle_ = Handle(model);
        return out;
    }
    amp_model *get() const noexcept { return handle_.get(); }

    ModelInfo info() const noexcept {
        ModelInfo out;
        amp_model_get_info(get(), &out);
        return out;
    }
    TensorInfo input(int32_t index, Sizes sizes = 1) const { return describe(amp_model_input_at, index, sizes); }
    TensorInfo result(int32_t index, Sizes sizes = 1) const { return describe(amp_model_result_at, index, sizes); }
    /* How many classes or rows an input of indices takes (amp_model_get_index_range); 0: it is none. */
    int64_t index_count(int32_t index) const {
        int64_t count = 0;
        detail::Call call;
        call.check(amp_model_get_index_range(get(), index, &count, nullptr, call.error()));
        return count;
    }
    /* Throws where this is not the model that the program was written for (amp_model_expect). */
    void expect(const std::string &signature) const {
        detail::Call call;
        call.check(amp_model_expect(get(), signature.c_str(), call.error()));
    }
    TensorInfo param(int32_t index) const {
        TensorInfo out;
        detail::Call call;
        call.check(amp_model_param_at(get(), index, &out, call.error()));
        return out;
    }
    /* How it is trained, and the group lines that decide (as Session::set_lr_scale numbers them). */
    amp_param_training training(int32_t index) const {
        amp_param_training out;
        detail::Call call;
        call.check(amp_model_param_training_at(get(), index, &out, call.error()));
        return out;
    }
    amp_group_info group(int32_t index) const {
        amp_group_info out;
        detail::Call call;
        call.check(amp_model_group_at(get(), index, &out, call.error()));
        return out;
    }
    /* The parameter or buffer of that name. */
    TensorInfo param(const std::string &name) const {
        const int32_t count = info().param_count;
        for (int32_t i = 0; i < count; i++)
            if (TensorInfo found = param(i); name == found.name) return found;
        throw Error(AMP_NOT_FOUND, std::string("the model '") + info().name + "' has no parameter '" + name + "'");
    }
    std::vector<std::string> param_names() const {
        std::vector<std::string> out;
        const int32_t count = info().param_count;
        for (int32_t i = 0; i < count; i++) out.emplace_back(param(i).name);
        return out;
    }
    std::vector<std::string> metric_names() const { return names(amp_model_metric_name); }
    std::vector<std::string> loss_names() const { return names(amp_model_loss_name); }
    std::vector<std::string> instruction_sets() const { return names(amp_model_isa_name); }

    /* Why each op has its dtype: for (const amp::Decision &why : model.decisions()). */
    class Decisions;
    Decisions decisions() const noexcept;

  private:
    using Handle = detail::Handle<amp_model, amp_model_retain, amp_model_release>;
    Model() noexcept = default;
    template <class Open> void open(Open load) {
        amp_model *model = nullptr;
        detail::Call call;
        call.check(load(&model, call.error()));
        handle_ = Handle(model);
    }
    template <class Function> TensorInfo describe(Function *function, int32_t index, Sizes sizes) const {
        TensorInfo out;
        detail::Call call;
        call.check(function(get(), index, sizes, &out, call.error()));
        return out;
    }
    template <class Function> std::vector<std::string> names(Function *function) const {
        std::vector<std::string> out;
        for (int32_t i = 0; const char *name = function(get(), i); i++) out.emplace_back(name);
        return out;
    }
    Handle handle_;
};

class Model::Decisions {
  public:
    class Iterator {
      public:
        using iterator_category = std::input_iterator_tag;
        using value_type = Decision;
        using difference_type = std::ptrdiff_t;
        using pointer = const Decision *;
        using reference = Decision;
        Iterator(const Decisions *of, int32_t index) noexcept : of_(of), index_(index) {}
        Decision operator*() const { return (*of_)[index_]; }
        Iterator &operator++() noexcept { return ++index_, *this; }
        void operator++(int) noexcept { ++index_; }
        bool operator==(const Iterator &other) const noexcept { return index_ == other.index_; }
        bool operator!=(const Iterator &other) const noexcept { return index_ != other.index_; }

      private:
        const Decisions *of_;
        int32_t index_;
    };
    explicit Decisions(const Model &model) noexcept : model_(model) {}
    int32_t size() const noexcept { return model_.info().decision_count; }
    Decision operator[](int32_t index) const {
        Decision out;
        detail::Call call;
        call.check(amp_model_decision_at(model_.get(), index, &out, call.error()));
        return out;
    }
    Iterator begin() const noexcept { return {this, 0}; }
    Iterator end() const noexcept { return {this, size()}; }

  private:
    Model model_;
};

inline Model::Decisions Model::decisions() const noexcept { return Decisions(*this); }

/* ---- params ------------------------------------------------------------------------------------------------------ */

namespace detail {

/* Throws where |array| is not what |tensor| wants. */
template <class View> void check_array(const View &array, const TensorInfo &tensor, const char *what) {
    const auto fail = [&](const std::string &given) {
        throw Error(AMP_INVALID_ARGUMENT, std::string(what) + " '" + tensor.name + "' is " + tensor.text() + ", " +
                                              std::to_string(tensor.elements()) + " numbers; " + given);
    };
    if (!array.data()) fail("a null pointer was given");
    if (array.dtype() != AMP_DT_NONE && !holds(array.dtype(), tensor.dtype))
        fail(std::string("an array of ") + amp_dtype_name(array.dtype()) + " was given");
    if (array.count() != View::unknown && array.count() != tensor.elements())
        fail("an array of " + std::to_string(array.count()) + " was given");
}

/* WeightRules as C has them; they live as long as both. */
class WeightOptions {
  public:
    explicit WeightOptions(const WeightRules &rules)
        : ignore_(list(rules.ignore)), rename_(list(rules.rename)), transpose_(list(rules.transpose)),
          fresh_(list(rules.fresh)) {
        options.struct_size = sizeof options;
        options.ignore = ignore_.data();
        options.rename = rename_.data();
        options.transpose = transpose_.data();
        options.fresh = fresh_.data();
        options.partial = rules.partial;
        options.ema = rules.ema;
        options.like = rules.like.empty() ? nullptr : rules.like.c_str();
    }
    WeightOptions(const WeightOptions &) = delete;
    amp_weights_options options{};

  private:
    static std::vector<const char *> list(const std::vector<std::string> &rules) {
        std::vector<const char *> out;
        for (const std::string &rule : rules) out.push_back(rule.c_str());
        out.push_back(nullptr);
        return out;
    }
    std::vector<const char *> ignore_, rename_, transpose_, fresh_;
};

/* Keeps exceptions of a callback out of C. */
struct Differences {
    const std::function<void(const char *, amp_weights_difference, const char *)> &each;
    std::exception_ptr thrown;
    static void note(void *user, const char *name, amp_weights_difference kind, const char *why) noexcept {
        auto &self = *static_cast<Differences *>(user);
        try {
            if (self.each && !self.thrown) self.each(name, kind, why);
        } catch (...) {
            self.thrown = std::current_exception();
        }
    }
};

} // namespace detail

/* The f32 weights.  Sessions that are made with it share it. */
class Params {
  public:
    /* Initialised: the same seed gives the same weights on every machine. */
    explicit Params(const Model &model, uint64_t seed = 0) : Params(model, with_seed(seed)) {}
    Params(const Model &model, const ParamsOptions &options) : model_(model) {
        amp_params *params = nullptr;
        detail::Call call;
        call.check(amp_params_create(model.get(), &options, &params, call.error()));
        handle_ = Handle(params);
    }
    amp_params *get() const noexcept { return handle_.get(); }
    const Model &model() const noexcept { return model_; }

    std::vector<float> get(const std::string &name) const {
        std::vector<float> out(model_.param(name).elements());
        detail::Call call;
        call.check(amp_params_get(get(), name.c_str(), out.data(), out.size(), call.error()));
        return out;
    }
    void set(const std::string &name, const Input &values) {
        TensorInfo wanted = model_.param(name);
        wanted.dtype = AMP_DT_F32;
        detail::check_array(values, wanted, "parameter");
        detail::Call call;
        call.check(amp_params_set(get(), name.c_str(), static_cast<const float *>(values.data()), wanted.elements(),
                                  call.error()));
    }
    /* As amp_params_load: each tensor of the model and no other, but for |rules|; |each| (or nothing) is called for
     * each difference. */
    using EachDifference = std::function<void(const char *name, amp_weights_difference kind, const char *why)>;
    WeightsReport load(const std::string &path, const WeightRules &rules = {}, const EachDifference &each = {}) {
        return load(nullptr, 0, path, rules, each);
    }
    /* The bytes of such a file, which |name| names in errors. */
    WeightsReport load_memory(const void *bytes, std::size_t size, const std::string &name = "params in memory",
                              const WeightRules &rules = {}, const EachDifference &each = {}) {
        return load(bytes ? bytes : "", size, name, rules, each);
    }
    /* With |rules.like|: with the names and layout of the weights there, which the rules map to the model's. */
    void save(const std::string &path, const WeightRules &rules = {}) const {
        const detail::WeightOptions with(rules);
        detail::Call call;
        call.check(amp_params_save(get(), path.c_str(), &with.options, call.error()));
    }
    /* Every value of |from|, which may be of another model. */
    void assign(const Params &from) {
        detail::Call call;
        call.check(amp_params_copy(get(), from.get(), call.error()));
    }
    /* Each parameter becomes its own + t (|from|'s - its own), and each buffer |from|'s: a target network. */
    void blend(const Params &from, double t) {
        detail::Call call;
        call.check(amp_params_blend(get(), from.get(), t, call.error()));
    }
    /* New params with the values of now (a copy of the object would be the same params). */
    Params snapshot() const {
        amp_params *params = nullptr;
        detail::Call call;
        call.check(amp_params_snapshot(get(), &params, call.error()));
        return Params(model_, Handle(params));
    }
    /* How many numbers are NaN or infinite. */
    int64_t count_nonfinite() const {
        int64_t count = 0;
        detail::Call call;
        call.check(amp_params_count_nonfinite(get(), &count, nullptr, call.error()));
        return count;
    }
    /* The values of now become what sessions with options.published = 1 read from their next call on. */
    PublishReport publish() {
        PublishReport report{};
        detail::Call call;
        call.check(amp_params_publish(get(), &report, call.error()));
        return report;
    }
    /* For programs that only infer: from here on weights are in memory once, as they were published. */
    void drop_masters() {
        detail::Call call;
        call.check(amp_params_drop_masters(get(), call.error()));
    }

  private:
    using Handle = detail::Handle<amp_params, amp_params_retain, amp_params_release>;
    WeightsReport load(const void *bytes, std::size_t size, const std::string &path, const WeightRules &rules,
                       const EachDifference &each) {
        detail::Differences differences{each, nullptr};
        detail::WeightOptions with(rules);
        with.options.bytes = bytes;
        with.options.size = size;
        with.options.user = &differences;
        with.options.difference = detail::Differences::note;
        WeightsReport report{};
        detail::Call call;
        const amp_status status = amp_params_load(get(), path.c_str(), &with.options, &report, call.error());
        if (differences.thrown) std::rethrow_exception(differences.thrown);
        call.check(status);
        return report;
    }
    Params(const Model &model, Handle handle) noexcept : model_(model), handle_(std::move(handle)) {}
    static ParamsOptions with_seed(uint64_t seed) noexcept {
        ParamsOptions options;
        options.seed = seed;
        return options;
    }
    Model model_;
    Handle handle_;
};

/* ---- session ----------------------------------------------------------------------------------------------------- */

/* The arrays of one call, in the model's order: {images, labels}, or a std::vector of them.  A view, as they are. */
template <class View> class Arrays {
  public:
    Arrays(std::initializer_list<View> list) noexcept {
        first_ = list.begin();
        count_ = list.size();
    }
    Arrays(const std::vector<View> &list) noexcept : first_(list.data()), count_(list.size()) {}
    std::size_t size() const noexcept { return count_; }
    const View *begin() const noexcept { return first_; }
    const View &operator[](std::size_t i) const noexcept { return first_[i]; }

  private:
    const View *first_;
    std::size_t count_;
};
using Inputs = Arrays<Input>;
using Outputs = Arrays<Output>;

/* What amp_eval gives; metrics are in the order of Model::metric_names. */
struct Evaluation {
    double loss = 0;
    std::vector<double> metrics;
};

/* What Session::next_report gives: named losses and metrics are in the model's order. */
struct LateReport {
    StepReport report{};
    std::vector<double> losses, metrics;
};

class Session {
  public:
    /* |params| may be of another model with the same parameters and buffers. */
    Session(const Model &model, const Params &params, const SessionOptions &options = {})
        : model_(model), info_(model.info()) {
        amp_session *session = nullptr;
        in_.reserve(static_cast<std::size_t>(info_.input_count));
        out_.reserve(static_cast<std::size_t>(info_.result_count));
        detail::Call call;
        call.check(amp_session_create(model.get(), params.get(), &options, &session, call.error()));
        handle_ = Handle(session);
    }
    amp_session *get() const noexcept { return handle_.get(); }
    const Model &model() const noexcept { return model_; }

    /* One step on the model's inputs, then its train block's. */
    StepReport step(Inputs inputs, Sizes sizes = {}) {
        StepReport report{};
        take(inputs, sizes, info_.input_count);
        detail::Call call;
        const amp_status status = amp_step(get(), in_.data(), sizes, &report, call.error());
        if (status != AMP_SCALE_AT_FLOOR) call.check(status);
        return report;
    }
    /* The same without a report, which on the device "cuda" is not waited for.  False: the scale is at its floor. */
    bool start_step(Inputs inputs, Sizes sizes = {}) {
        take(inputs, sizes, info_.input_count);
        detail::Call call;
        const amp_status status = amp_step(get(), in_.data(), sizes, nullptr, call.error());
        if (status != AMP_SCALE_AT_FLOOR) call.check(status);
        return status == AMP_OK;
    }
    /* The oldest report of start_step that was not given yet, of the last AMP_KEPT_REPORTS.  False: there is none, or,
     * unless |wait|, the device is not done with it (amp_session_next_report).  A scale at its floor is in the report.
     */
    bool next_report(LateReport &out, bool wait = false) {
        int32_t there = 0;
        out.losses.resize(static_cast<std::size_t>(info_.loss_count));
        out.metrics.resize(static_cast<std::size_t>(info_.metric_count));
        detail::Call call;
        const amp_status status = amp_session_next_report(get(), wait, &out.report, out.losses.data(),
                                                          out.metrics.data(), &there, call.error());
        if (status != AMP_SCALE_AT_FLOOR) call.check(status);
        return there != 0;
    }

    /* Loss and metrics in evaluation mode; the second form writes the metrics to the caller's array, or nowhere. */
    Evaluation evaluate(Inputs inputs, Sizes sizes = {}) {
        Evaluation out;
        out.metrics.resize(static_cast<std::size_t>(info_.metric_count));
        out.loss = evaluate(inputs, sizes, out.metrics.data());
        return out;
    }
    double evaluate(Inputs inputs, Sizes sizes, double *metrics) {
        double loss = 0;
        take(inputs, sizes, info_.input_count);
        detail::Call call;
        call.check(amp_eval(get(), in_.data(), sizes, &loss, metrics, call.error()));
        return loss;
    }
    /* The figures of all batches that were evaluated since evaluate_begin, or since the session was made, as if they
     * were one batch (amp_eval_end).  losses() then gives the named ones. */
    void evaluate_begin() {
        detail::Call call;
        call.check(amp_eval_begin(get(), call.error()));
    }
    Evaluation evaluate_end() {
        Evaluation out;
        out.metrics.resize(static_cast<std::size_t>(info_.metric_count));
        detail::Call call;
        call.check(amp_eval_end(get(), &out.loss, out.metrics.data(), call.error()));
        return out;
    }
    /* What they added up; to be added, element by element, to what other sessions, threads or ranks have. */
    std::vector<double> evaluation_sums() const {
        std::vector<double> sums(static_cast<std::size_t>(amp_eval_sums_count(get())));
        detail::Call call;
        call.check(amp_eval_get_sums(get(), sums.data(), call.error()));
        return sums;
    }
    void add_evaluation(const std::vector<double> &sums) {
        count("sum", sums.size(), static_cast<std::size_t>(amp_eval_sums_count(get())));
        detail::Call call;
        call.check(amp_eval_add(get(), sums.data(), call.error()));
    }

    /* The model's results, of its inputs alone: into the caller's arrays (nullptr: not wanted, nor computed), ... */
    void infer(Inputs inputs, Outputs outputs, Sizes sizes = {}) {
        take(inputs, sizes, info_.model_input_count);
        count("result", outputs.size(), static_cast<std::size_t>(info_.result_count));
        out_.clear();
        for (int32_t i = 0; i < info_.result_count; i++) {
            const Output &output = outputs[static_cast<std::size_t>(i)];
            if (output.data() || output.count() != Output::unknown)
                detail::check_array(output, model_.result(i, sizes), "result");
            out_.push_back(output.data());
        }
        detail::Call call;
        call.check(amp_infer(get(), in_.data(), sizes, out_.data(), call.error()));
    }
    /* ..., each as a tensor, ... */
    std::vector<Tensor> infer(Inputs inputs, Sizes sizes = {}) {
        std::vector<Tensor> results;
        take(inputs, sizes, info_.model_input_count);
        out_.clear();
        for (int32_t i = 0; i < info_.result_count; i++) results.emplace_back(model_.result(i, sizes));
        for (Tensor &result : results) out_.push_back(result.data());
        detail::Call call;
        call.check(amp_infer(get(), in_.data(), sizes, out_.data(), call.error()));
        return results;
    }
    /* ..., or the numbers of the first. */
    template <class T = float> std::vector<T> infer_first(Inputs inputs, Sizes sizes = {}) {
        return infer(inputs, sizes).front().template to<T>();
    }

    /* Metrics of the last step; named losses of the last step or evaluation. */
    std::vector<double> metrics() const { return numbers(amp_session_get_metrics, info_.metric_count); }
    std::vector<double> losses() const { return numbers(amp_session_get_losses, info_.loss_count); }
    double metric(const std::string &name) const { return named(metrics(), amp_model_metric_name, "metric", name); }
    double loss(const std::string &name) const { return named(losses(), amp_model_loss_name, "named loss", name); }

    /* With keep_values: the gradients and intermediates of the last step. */
    std::vector<std::string> value_names() const {
        std::vector<std::string> out;
        for (int32_t i = 0; const char *name = amp_session_value_name(get(), i); i++) out.emplace_back(name);
        return out;
    }
    Tensor value(const std::string &name) const {
        TensorInfo info;
        detail::Call call;
        call.check(amp_session_get_value(get(), name.c_str(), &info, nullptr, 0, call.error()));
        const bool is_integer = info.dtype >= AMP_DT_I32;
        if (!is_integer) info.dtype = AMP_DT_F32; /* read as f32, whatever it was computed in */
        Tensor out(info, name);
        call.check(amp_session_get_value(get(), name.c_str(), nullptr, out.data(),
                                         out.elements() * amp_dtype_size(info.dtype), call.error()));
        return out;
    }

    /* The states that kept their value, as the new one was not finite, and the iteration of the first time. */
    std::vector<std::pair<std::string, int64_t>> kept_states() const {
        std::vector<std::pair<std::string, int64_t>> all;
        int64_t first;
        while (const char *name = amp_session_kept_state_name(get(), static_cast<int32_t>(all.size()), &first))
            all.emplace_back(name, first);
        return all;
    }
    /* The norm of all gradients of the last step: with inspect.grad_norm or keep_values, or where the model clips. */
    double grad_norm() const {
        double norm = 0;
        detail::Call call;
        call.check(amp_session_get_grad_norm(get(), &norm, call.error()));
        return norm;
    }
    /* Whether each rank has a share of the moments alone, and all have to save. */
    bool has_shares() const noexcept { return amp_session_has_shares(get()) != 0; }
    /* With published = 1: the version that the last call read. */
    uint64_t version() const noexcept { return amp_session_version(get()); }

    /* The learning rate of a train block, and the factor of a group line (counted from 0 over all train blocks);
     * AMP_LR_OF_MODEL: back to what the model says. */
    double lr(int32_t block = 0) const {
        double rate = 0;
        detail::Call call;
        call.check(amp_session_get_lr(get(), block, &rate, call.error()));
        return rate;
    }
    void set_lr(double rate, int32_t block = 0) {
        detail::Call call;
        call.check(amp_session_set_lr(get(), block, rate, call.error()));
    }
    double lr_scale(int32_t group) const {
        double scale = 0;
        detail::Call call;
        call.check(amp_session_get_lr_scale(get(), group, &scale, call.error()));
        return scale;
    }
    void set_lr_scale(int32_t group, double scale) {
        detail::Call call;
        call.check(amp_session_set_lr_scale(get(), group, scale, call.error()));
    }

    Scaler scaler() const {
        Scaler out{};
        detail::Call call;
        call.check(amp_session_get_scaler(get(), &out, call.error()));
        return out;
    }
    void set_scaler(const Scaler &scaler) {
        detail::Call call;
        call.check(amp_session_set_scaler(get(), &scaler, call.error()));
    }

    /* State of the optimizer by "fc1.weight/m", ...; it has its parameter's shape. */
    std::vector<float> moment(const std::string &state) const {
        std::vector<float> out(state_elements(state));
        detail::Call call;
        call.check(amp_session_get_moment(get(), state.c_str(), out.data(), out.size(), call.error()));
        return out;
    }
    /* |to|: what `ema = ...` keeps in place of the parameters. */
    void averages(Params &to) const {
        detail::Call call;
        call.check(amp_session_get_averages(get(), to.get(), call.error()));
    }
    void set_moment(const std::string &state, const std::vector<float> &values) {
        detail::Call call;
        call.check(amp_session_set_moment(get(), state.c_str(), values.data(), values.size(), call.error()));
    }

    /* Everything that training goes on from.  |extra| is a text that the application gets back. */
    void save_checkpoint(const std::string &path, const std::string &extra = {}) const {
        detail::Call call;
        call.check(amp_checkpoint_save(get(), path.c_str(), extra.c_str(), call.error()));
    }
    std::string load_checkpoint(const std::string &path, std::size_t longest_extra = 65536) {
        std::string extra(longest_extra + 1, '\0');
        detail::Call call;
        call.check(amp_checkpoint_load(get(), path.c_str(), extra.data(), extra.size(), call.error()));
        extra.resize(std::strlen(extra.c_str()));
        return extra;
    }
    /* Goes on where |from| is, which may be of another model with the same parameters and optimizer. */
    void copy_checkpoint(const Session &from) {
        detail::Call call;
        call.check(amp_checkpoint_copy(get(), from.get(), call.error()));
    }

    Memory memory() const noexcept {
        Memory out;
        amp_session_get_memory(get(), &out);
        return out;
    }

  private:
    using Handle = detail::Handle<amp_session, amp_session_retain, amp_session_release>;

    static void count(const char *what, std::size_t given, std::size_t wanted) {
        if (given != wanted)
            throw Error(AMP_INVALID_ARGUMENT, std::string("one array or number for each ") + what +
                                                  " is wanted, which are " + std::to_string(wanted) + "; " +
                                                  std::to_string(given) + " were given");
    }
    /* Checks |inputs|, finds |sizes| where they are 0, and leaves the addresses in |in_|. */
    void take(const Inputs &inputs, Sizes &sizes, int32_t wanted) {
        int64_t &n = sizes.n;
        count("input", inputs.size(), static_cast<std::size_t>(wanted));
        for (std::size_t i = 0; n == 0 && i < inputs.size(); i++)
            if (inputs[i].count() != Input::unknown) {
                const std::size_t each = model_.input(static_cast<int32_t>(i)).elements();
                n = static_cast<int64_t>(each ? inputs[i].count() / each : 0);
            }
        if (n <= 0)
            throw Error(AMP_INVALID_ARGUMENT,
                        "the number of samples is wanted: as n, or by an array whose size is known "
                        "and that holds at least one sample");
        in_.clear();
        for (int32_t i = 0; i < wanted; i++) {
            const Input &input = inputs[static_cast<std::size_t>(i)];
            detail::check_array(input, model_.input(i, sizes), "input");
            in_.push_back(input.data());
        }
    }
    template <class Function> std::vector<double> numbers(Function *function, int32_t size) const {
        std::vector<double> out(static_cast<std::size_t>(size));
        detail::Call call;
        if (size) call.check(function(get(), out.data(), call.error()));
        return out;
    }
    template <class Function>
    double named(const std::vector<double> &of, Function *name_at, const char *what, const std::string &name) const {
        for (std::size_t i = 0; i < of.size(); i++)
            if (name == name_at(model_.get(), static_cast<int32_t>(i))) return of[i];
        throw Error(AMP_NOT_FOUND, std::string("the model '") + info_.name + "' has no " + what + " '" + name + "'");
    }
    /* "fc1.weight/m" has the shape of fc1.weight. */
    std::size_t state_elements(const std::string &state) const {
        return model_.param(state.substr(0, state.rfind('/'))).elements();
    }

    Model model_;
    ModelInfo info_;
    Handle handle_;
    std::vector<const void *> in_; /* of one call; kept, so that a step allocates nothing */
    std::vector<void *> out_;
};

/* ---- data -------------------------------------------------------------------------------------------------------- */

/* Batches that a function fills, on a thread that is some batches ahead (amp_dataset):
 *
 *     amp::Dataset data(model, [&](int64_t index, void *const *arrays, amp::Sizes capacity) { ...; return n; },
 * options);
 *     while (amp::Dataset::Batch batch = data.next()) session.step(batch.inputs, batch.sizes);
 */
class Dataset {
  public:
    /* Fills batch |index|, as amp_fill_batch says, and gives its sizes, 0 where the data end.  What it throws,
     * next throws. */
    using Fill = std::function<Sizes(int64_t index, void *const *arrays, Sizes capacity)>;
    struct Batch {
        const std::vector<Input> &inputs; /* hold until the next call */
        Sizes sizes;
        explicit operator bool() const noexcept { return sizes.n > 0; } /* false: the data have ended */
    };
    Dataset(const Model &model, Fill fill, const DatasetOptions &options = {})
        : source_(new Source{std::move(fill), {}}) {
        DatasetOptions given = options;
        given.fill = Source::call;
        given.user = source_.get();
        amp_dataset *dataset = nullptr;
        detail::Call call;
        call.check(amp_dataset_create(model.get(), &given, &dataset, call.error()));
        handle_ = Handle(dataset);
        const ModelInfo info = model.info();
        inputs_.resize(static_cast<std::size_t>(given.program ? info.model_input_count : info.input_count), nullptr);
    }
    Dataset(Dataset &&) noexcept = default;
    Dataset &operator=(Dataset &&other) noexcept {
        handle_ = std::move(other.handle_); /* first: its thread uses the source */
        source_ = std::move(other.source_);
        inputs_ = std::move(other.inputs_);
        return *this;
    }
    amp_dataset *get() const noexcept { return handle_.get(); }

    Batch next() {
        const void *const *arrays = nullptr;
        Sizes sizes;
        detail::Call call;
        const amp_status status = amp_dataset_next(get(), &arrays, &sizes, call.error());
        if (std::exception_ptr thrown = status ? std::exchange(source_->thrown, nullptr) : nullptr)
            std::rethrow_exception(thrown);
        call.check(status);
        for (std::size_t i = 0; arrays && i < inputs_.size(); i++) inputs_[i] = arrays[i];
        return {inputs_, sizes};
    }
    void seek(int64_t index) {
        detail::Call call;
        call.check(amp_dataset_seek(get(), index, call.error()));
    }
    int64_t position() const noexcept { return amp_dataset_position(get()); }

  private:
    using Handle = detail::Handle<amp_dataset, amp_dataset_retain, amp_dataset_release>;
    struct Source { /* where it is, it stays */
        Fill fill;
        std::exception_ptr thrown;
        static amp_status call(void *user, int64_t index, void *const *arrays, amp_sizes capacity, amp_sizes *sizes,
                               amp_error *) noexcept {
            auto &self = *static_cast<Source *>(user);
            try {
                *sizes = self.fill(index, arrays, Sizes(capacity.n, capacity.t));
                return AMP_OK;
            } catch (...) {
                self.thrown = std::current_exception();
                return AMP_CANCELLED;
            }
        }
    };
    std::unique_ptr<Source> source_; /* after the handle has gone */
    Handle handle_;
    std::vector<Input> inputs_;
};

/* The version of the library that the program runs with. */
inline const char *version() noexcept { return amp_version(); }

} // namespace amp
#endif
