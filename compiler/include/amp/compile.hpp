/* amp/compile.hpp: amp/compile.h and amp/onnx.h for C++17.
 *
 *     amp::CompileOptions options;
 *     options.output = "mlp.so";
 *     options.constants = {{"HIDDEN", "64"}};
 *     amp::Compiled model = amp::compile("mlp.amp", options);
 *
 * Header only: link libampc as in C.  Nothing is printed; any number of threads may compile at the same time.
 */
#ifndef AMP_COMPILE_HPP
#define AMP_COMPILE_HPP

#include <exception>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "amp/base.hpp"
#include "amp/compile.h"
#include "amp/onnx.h"

namespace amp {

/* Errors in the model, its policy or the IR: what() has them all, with carets; diagnostics() has each, then the
 * warnings. */
class CompileError : public Error {
  public:
    CompileError(amp_status status, const std::string &message, std::vector<std::string> diagnostics)
        : Error(status, message), diagnostics_(std::move(diagnostics)) {}
    const std::vector<std::string> &diagnostics() const noexcept { return diagnostics_; }

  private:
    std::vector<std::string> diagnostics_;
};

/* The options of C with their struct_size, new ones included.  The model, |defines|, |user| and the callbacks of C are
 * set by compile and explain: use these instead.  An exception that a callback throws ends the call when the compiler
 * is done, and is thrown again. */
struct CompileOptions : amp_compile_options {
    CompileOptions() noexcept : amp_compile_options{} { struct_size = sizeof(amp_compile_options); }
    std::vector<std::pair<std::string, std::string>> constants;                /* const NAME = VALUE */
    std::function<void(const std::string &pass, std::string_view ir)> on_pass; /* the module after each pass */
    std::function<void(const std::string &pass, double seconds)> on_time;
    std::function<void(const std::string &path)> on_file; /* each file that is read */
    /* Before each stage, |index| of |count|; true ends the call with AMP_CANCELLED. */
    std::function<bool(const std::string &stage, int32_t index, int32_t count)> on_stage;
    std::function<bool()> stop_asked; /* true ends the call with AMP_CANCELLED, while C compilers run */
};

/* What was made: the bytes of the model.so (or C, or IR, or the text of explain), and what the compiler warned of. */
class Compiled {
  public:
    Compiled(amp_compile_result *adopted, std::vector<std::string> warnings) noexcept
        : result_(adopted), warnings_(std::move(warnings)) {}
    Compiled(Compiled &&other) noexcept
        : result_(std::exchange(other.result_, nullptr)), warnings_(std::move(other.warnings_)) {}
    Compiled &operator=(Compiled &&other) noexcept {
        std::swap(result_, other.result_);
        warnings_.swap(other.warnings_);
        return *this;
    }
    ~Compiled() { amp_compile_result_release(result_); }
    /* They live as long as this object. */
    const void *data() const noexcept { return amp_compile_result_data(result_, &size_); }
    std::size_t size() const noexcept { return data(), size_; }
    std::string_view text() const noexcept { return {static_cast<const char *>(data()), size_}; }
    const std::vector<std::string> &warnings() const noexcept { return warnings_; }

  private:
    amp_compile_result *result_;
    mutable std::size_t size_ = 0;
    std::vector<std::string> warnings_;
};

namespace detail {

/* Keeps what the first callback throws until the call of C has returned. */
class Guarded {
  protected:
    template <class Callback> void guard(Callback callback) noexcept {
        try {
            if (!thrown_) callback();
        } catch (...) {
            thrown_ = std::current_exception();
        }
    }
    std::exception_ptr thrown_;
};

/* One call of the compiler: collects what it says, and keeps exceptions of callbacks out of C. */
class Compilation : Guarded {
  public:
    explicit Compilation(const CompileOptions &options) : options_(options), call_(options) {
        for (const auto &[name, value] : options.constants) defines_.push_back({name.c_str(), value.c_str()});
        call_.defines = defines_.data();
        call_.define_count = defines_.size();
        call_.user = this;
        call_.diagnostic = [](void *user, const char *text, int32_t is_error) {
            auto &self = *static_cast<Compilation *>(user);
            self.guard([&] { (is_error ? self.errors_ : self.warnings_).emplace_back(text); });
        };
        call_.dump = nullptr;
        call_.timing = nullptr;
        call_.dependency = nullptr;
        call_.cancelled = [](void *user) -> int32_t {
            auto &self = *static_cast<Compilation *>(user);
            bool stop = false;
            self.guard([&] { stop = self.options_.stop_asked && self.options_.stop_asked(); });
            return stop || self.thrown_;
        };
        if (options.on_pass)
            call_.dump = [](void *user, const char *pass, const char *text, std::size_t size) {
                auto &self = *static_cast<Compilation *>(user);
                self.guard([&] { self.options_.on_pass(pass, std::string_view(text, size)); });
            };
        if (options.on_stage)
            call_.progress = [](void *user, const char *stage, int32_t index, int32_t count) -> int32_t {
                auto &self = *static_cast<Compilation *>(user);
                bool stop = false;
                self.guard([&] { stop = self.options_.on_stage(stage, index, count); });
                return stop || self.thrown_;
            };
        if (options.on_time)
            call_.timing = [](void *user, const char *pass, double seconds) {
                auto &self = *static_cast<Compilation *>(user);
                self.guard([&] { self.options_.on_time(pass, seconds); });
            };
        if (options.on_file)
            call_.dependency = [](void *user, const char *path) {
                auto &self = *static_cast<Compilation *>(user);
                self.guard([&] { self.options_.on_file(path); });
            };
    }
    Compilation(const Compilation &) = delete;
    Compilation &operator=(const Compilation &) = delete;

    template <class Run> Compiled run(const std::string &name, const std::string *text, Run run_it) {
        amp_compile_result *result = nullptr;
        amp_error error{};
        call_.name = name.c_str();
        call_.text = text ? text->data() : nullptr;
        call_.text_size = text ? text->size() : 0;
        const amp_status status = run_it(&call_, &result, &error);
        Compiled out(result, std::move(warnings_));
        if (thrown_) std::rethrow_exception(thrown_);
        if (status == AMP_OK) return out;
        std::string message;
        for (const std::string &each : errors_) message += each;
        errors_.insert(errors_.end(), out.warnings().begin(), out.warnings().end());
        throw CompileError(status, message.empty() ? error.message : message, std::move(errors_));
    }

    /* The options of a call that another Compilation runs, whose callbacks it gets. */
    amp_compile_options beside(const amp_compile_options &other, const std::string &name) {
        amp_compile_options call = call_;
        call.name = name.c_str();
        call.user = other.user;
        call.diagnostic = other.diagnostic;
        call.dump = other.dump;
        call.timing = other.timing;
        call.dependency = other.dependency;
        call.cancelled = other.cancelled;
        return call;
    }

  private:
    const CompileOptions &options_;
    amp_compile_options call_;
    std::vector<amp_define> defines_;
    std::vector<std::string> errors_, warnings_;
};

inline auto explaining(const amp_explain_options &which) {
    return [&which](const amp_compile_options *options, amp_compile_result **out, amp_error *error) {
        return amp_explain(options, &which, out, error);
    };
}

} // namespace detail

/* The model (or IR) in the file |path|; options.output is written where it is set. */
inline Compiled compile(const std::string &path, const CompileOptions &options = {}) {
    return detail::Compilation(options).run(path, nullptr, amp_compile);
}
/* The model |text|, which messages call |name|; includes are looked for beside |name|. */
inline Compiled compile_text(const std::string &text, const std::string &name, const CompileOptions &options = {}) {
    return detail::Compilation(options).run(name, &text, amp_compile);
}

/* Of which ops explain and compare tell, and in which form, with its struct_size: amp_explain_options says what the
 * fields mean. */
struct ExplainOptions : amp_explain_options {
    ExplainOptions() noexcept : amp_explain_options{} { struct_size = sizeof(amp_explain_options); }
};
/* What `ampc explain` tells; |path| may be a model, an IR file or a model.so. */
inline std::string explain(const std::string &path, const ExplainOptions &which = {},
                           const CompileOptions &options = {}) {
    return std::string(detail::Compilation(options).run(path, nullptr, detail::explaining(which)).text());
}
inline std::string explain_text(const std::string &text, const std::string &name, const ExplainOptions &which = {},
                                const CompileOptions &options = {}) {
    return std::string(detail::Compilation(options).run(name, &text, detail::explaining(which)).text());
}

/* What `ampc explain AFTER --against BEFORE` tells: ops whose dtype differs, casts, totals.  Callbacks: those of
 * |after_options|. */
inline std::string compare(const std::string &before, const std::string &after, const ExplainOptions &which = {},
                           const CompileOptions &before_options = {}, const CompileOptions &after_options = {}) {
    detail::Compilation first(before_options);
    const auto call = [&](const amp_compile_options *of, amp_compile_result **out, amp_error *error) {
        const amp_compile_options other = first.beside(*of, before);
        return amp_compare(&other, of, &which, out, error);
    };
    return std::string(detail::Compilation(after_options).run(after, nullptr, call).text());
}

/* ---- ONNX models ------------------------------------------------------------------------------------------------- */

/* The options of C with their struct_size.  |keep|, |assume|, |user| and the callbacks of C are set by the calls: use
 * these instead. */
struct OnnxOptions : amp_onnx_options {
    OnnxOptions() noexcept : amp_onnx_options{} { struct_size = sizeof(amp_onnx_options); }
    std::vector<std::string> kept;                            /* ops and globs of nodes that stay in f32 */
    std::vector<std::pair<std::string, std::string>> assumed; /* {"VALUE", "float16"} */
    std::function<void(const std::string &path)> on_file;     /* each policy and file of ranges that is read */
};

namespace detail {

/* The words of C, as long as the call lasts. */
class OnnxCall : Guarded {
  public:
    explicit OnnxCall(const OnnxOptions &options) : options_(options), call_(options) {
        for (const std::string &word : options.kept) keep_.push_back(word.c_str());
        for (const auto &[value, type] : options.assumed) types_.push_back(value + "=" + type);
        for (const std::string &word : types_) assume_.push_back(word.c_str());
        call_.keep = keep_.data();
        call_.keep_count = keep_.size();
        call_.assume = assume_.data();
        call_.assume_count = assume_.size();
        call_.user = this;
        call_.diagnostic = [](void *user, const char *text, int32_t is_error) {
            auto &self = *static_cast<OnnxCall *>(user);
            self.guard([&] { (is_error ? self.errors_ : self.warnings_).emplace_back(text); });
        };
        call_.dependency = [](void *user, const char *path) {
            auto &self = *static_cast<OnnxCall *>(user);
            self.guard([&] { self.options_.on_file ? self.options_.on_file(path) : void(); });
        };
    }
    OnnxCall(const OnnxCall &) = delete;
    OnnxCall &operator=(const OnnxCall &) = delete;

    template <class Run> std::string run(Run run_it) {
        amp_compile_result *result = nullptr;
        amp_error error{};
        const amp_status status = run_it(&call_, &result, &error);
        const Compiled out(result, std::move(warnings_));
        if (thrown_) std::rethrow_exception(thrown_);
        if (status == AMP_OK) return std::string(out.text());
        std::string message;
        for (const std::string &each : errors_) message += each;
        throw CompileError(status, message.empty() ? error.message : message, std::move(errors_));
    }

  private:
    const OnnxOptions &options_;
    amp_onnx_options call_;
    std::vector<const char *> keep_, assume_;
    std::vector<std::string> types_, errors_, warnings_;
};

} // namespace detail

/* What `ampc autocast` prints; options.output is written if it is set.  |counts|, unless it is null, has its
 * struct_size set. */
inline std::string onnx_autocast(const std::string &model, const OnnxOptions &options = {},
                                 amp_onnx_counts *counts = nullptr) {
    if (counts) *counts = {}, counts->struct_size = sizeof *counts;
    return detail::OnnxCall(options).run([&](const amp_onnx_options *of, amp_compile_result **out, amp_error *error) {
        return amp_onnx_autocast(model.c_str(), of, counts, out, error);
    });
}
/* What `ampc diff BEFORE.onnx AFTER.onnx` prints. */
inline std::string onnx_compare(const std::string &before, const std::string &after, const OnnxOptions &options = {}) {
    return detail::OnnxCall(options).run([&](const amp_onnx_options *of, amp_compile_result **out, amp_error *error) {
        return amp_onnx_compare(before.c_str(), after.c_str(), of, out, error);
    });
}

} // namespace amp
#endif
