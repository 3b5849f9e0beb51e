// Memory that runs out: every allocation of compiling, explaining, loading and training fails in turn, once and from
// then on, and what is given back is overwritten.  Each time there is an error, nothing leaks, what exists still
// works, and what failed changed nothing.
#include <cstring>
#include <unordered_map>

#include "amp/amp.hpp"
#include "amp/analyze.h"
#include "amp/compile.h"
#include "tests/base/planted.h"
#include "tests/base/sanitizer.h"
#include "tests/robustness/damage.h"

namespace {

using namespace robustness;

const char kModel[] = "amp 1\n"
                      "model net(x: f32[N, 7]) -> y {\n"
                      "    h = relu(linear(x; out = 9) as a)\n"
                      "    y = linear(h; out = 4) as b\n"
                      "}\n"
                      "train net {\n"
                      "    input  t: i32[N]\n"
                      "    loss      = cross_entropy(y, t)\n"
                      "    metric    acc = accuracy(y, t)\n"
                      "    optimizer = adamw(lr = 0.01)\n    ema = 0.5\n"
                      "}\n"
                      "precision fp16 { }\n";

// Fails the allocation number |index| (from 0): once, or with all that follow.
class Torture {
  public:
    Torture(long index, bool forever) : index_(index), forever_(forever) {}
    ~Torture() { EXPECT_EQ(live_.size(), 0u) << "allocations were not freed"; }
    amp_allocator get() { return {this, Alloc, Free}; }
    long calls() const { return calls_; }
    bool hit() const { return index_ >= 0 && calls_ > index_; }
    void FailFromNow(long index, bool forever) { index_ = index, forever_ = forever, calls_ = 0; }
    void Heal() { index_ = -1; } // memory is there again

  private:
    static void *Alloc(void *user, size_t size, size_t align) {
        auto *self = static_cast<Torture *>(user);
        long call = self->calls_++;
        if (self->index_ >= 0 && (call == self->index_ || (self->forever_ && call > self->index_))) return nullptr;
        void *p = aligned_alloc(std::max<size_t>(align, 16), (size + align + 15) & ~(std::max<size_t>(align, 16) - 1));
        self->live_[p] = size;
        return p;
    }
    static void Free(void *user, void *p, size_t size, size_t) {
        auto *self = static_cast<Torture *>(user);
        auto found = self->live_.find(p);
        ASSERT_NE(found, self->live_.end()) << "freed what is not allocated";
        EXPECT_EQ(found->second, size) << "freed with another size";
        self->live_.erase(found);
        memset(p, 0xdb, size); // so that whoever still reads it gets nonsense
        free(p);
    }
    long index_, calls_ = 0;
    bool forever_;
    std::unordered_map<void *, size_t> live_;
};

// Runs |body| with no failure, then with each allocation failing.  |body| returns the status of what failed.  Where one
// run makes very many allocations (each piece of an arena is one under the address sanitizer), the first 100 and about
// |most| of the others are failed with AMP_MUTATIONS, half of that without, and an eighth under the sanitizer.
void FailEach(const char *what, const std::function<amp_status(Torture &)> &body, long most, long from = 0) {
    long count;
    {
        Torture none(-1, false);
        ASSERT_EQ(body(none), AMP_OK) << what;
        count = none.calls();
    }
    ASSERT_GT(count, 0);
    if (MutationCount() > 2000) most *= 10;
    long first = 100;
    if (!FromEnvironment("AMP_MUTATIONS", 0)) first /= 2, most = most / 2 + 1;
    if (Stride() > 1) first /= 4, most = std::max(most / 4, 5L);
    long stride = count / most + 1;
    for (bool forever : {false, true})
        for (long i = from; i < count && !testing::Test::HasFailure(); i += i - from < first ? 1 : stride) {
            Torture torture(i, forever);
            amp_status status = body(torture);
            EXPECT_TRUE(torture.hit()) << what << ": allocation " << i;
            EXPECT_EQ(status, AMP_OUT_OF_MEMORY)
                << what << ": allocation " << i << " of " << count << (forever ? " and all after it" : "");
        }
    printf("%s: %ld allocations, every %ld-th failed\n", what, count, stride);
}

amp_status TakeOne(Torture &torture, bool says, bool frees) {
    const amp_allocator a = torture.get();
    void *p = a.alloc(a.user, 8, 8);
    if (p && frees) a.free(a.user, p, 8, 8);
    return p || !says ? AMP_OK : AMP_OUT_OF_MEMORY;
}

TEST(PlantedAllocation, IsFound) {
    if (amp_test_address_sanitizer) GTEST_SKIP() << "it would find the planted leak, too";
    const auto fail = [](bool says, bool frees) {
        return [=] {
            FailEach(
                "planted", [=](Torture &t) { return TakeOne(t, says, frees); }, 10);
        };
    };
    fail(true, true)();
    ExpectFound("a failure that is not said", "planted: allocation 0 of 1", fail(false, true));
    ExpectFound("memory that is not freed", "allocations were not freed", fail(true, false));
}

// ---- the compiler
// ----------------------------------------------------------------------------------------------------

amp_compile_options Options(const amp_allocator *a, amp_emit emit) {
    amp_compile_options o = {};
    o.struct_size = sizeof o;
    o.name = "net.amp", o.text = kModel, o.text_size = sizeof kModel - 1;
    o.emit = emit, o.allocator = a;
    o.target = "both";
    if (emit == AMP_EMIT_SO) o.isa = "portable"; // a third of the C compiler's time
    return o;
}

amp_status Compile(Torture &torture, amp_emit emit, const char *output = nullptr) {
    amp_allocator a = torture.get();
    amp_compile_options o = Options(&a, emit);
    o.output = output;
    amp_compile_result *result = nullptr;
    amp_error err = {};
    amp_status status = amp_compile(&o, &result, &err);
    EXPECT_EQ(result == nullptr, status != AMP_OK);
    EXPECT_TRUE(!status || strstr(err.message, "net.")) << err.message;
    amp_compile_result_release(result);
    return status;
}

TEST(Compile, ToIr) {
    FailEach(
        "compile to IR", [](Torture &t) { return Compile(t, AMP_EMIT_IR); }, 150);
}

TEST(Compile, Analyze) {
    const auto body = [](Torture &t) {
        amp_allocator a = t.get();
        const amp_compile_options o = Options(&a, AMP_EMIT_IR);
        amp_analysis *analysis = nullptr;
        amp_error err = {};
        amp_status status = amp_analyze(&o, nullptr, &analysis, &err);
        EXPECT_EQ(analysis == nullptr, status != AMP_OK);
        amp_analysis_release(analysis);
        return status;
    };
    FailEach("analyze", body, 150);
}

TEST(Compile, ToCInAFile) {
    std::string path = Temporary("net.c");
    Write("net.c", "old");
    FailEach(
        "compile to C",
        [&](Torture &t) {
            amp_status status = Compile(t, AMP_EMIT_C, path.c_str());
            EXPECT_TRUE(!status || Read(path) == "old");
            Write("net.c", "old");
            return status;
        },
        150);
}

// A C compiler runs for each: only the allocations that emitting C does not have.
TEST(Compile, ToSo) {
    Torture none(-1, false);
    ASSERT_EQ(Compile(none, AMP_EMIT_C), AMP_OK);
    FailEach(
        "compile to model.so", [](Torture &t) { return Compile(t, AMP_EMIT_SO); }, 20, none.calls() - 1);
}

TEST(Compile, Explain) {
    for (int json : {0, 1})
        FailEach(
            json ? "explain as JSON" : "explain",
            [json](Torture &t) {
                amp_allocator a = t.get();
                amp_compile_options o = Options(&a, AMP_EMIT_IR);
                amp_compile_result *result = nullptr;
                amp_error err = {};
                amp_explain_options which = {};
                which.struct_size = sizeof which, which.form = json ? AMP_EXPLAIN_JSON : AMP_EXPLAIN_TEXT;
                amp_status status = amp_explain(&o, &which, &result, &err);
                EXPECT_EQ(result == nullptr, status != AMP_OK);
                amp_compile_result_release(result);
                return status;
            },
            150);
}

TEST(Compile, Report) {
    FailEach(
        "explain as a report",
        [](Torture &t) {
            amp_allocator a = t.get();
            amp_compile_options o = Options(&a, AMP_EMIT_IR);
            const amp_report_part part = {"lint", "{\"findings\":[]}", 15};
            amp_explain_options which = {};
            which.struct_size = sizeof which, which.form = AMP_EXPLAIN_HTML, which.parts = &part, which.part_count = 1;
            amp_compile_result *result = nullptr;
            amp_error err = {};
            amp_status status = amp_explain(&o, &which, &result, &err);
            EXPECT_EQ(result == nullptr, status != AMP_OK);
            amp_compile_result_release(result);
            return status;
        },
        50);
}

TEST(Compile, Compare) {
    for (int json : {0, 1})
        FailEach(
            json ? "compare as JSON" : "compare",
            [json](Torture &t) {
                amp_allocator a = t.get();
                amp_compile_options after = Options(&a, AMP_EMIT_IR), before = after;
                before.precision = "fp32";
                amp_explain_options which = {};
                which.struct_size = sizeof which, which.form = json ? AMP_EXPLAIN_JSON : AMP_EXPLAIN_TEXT;
                amp_compile_result *result = nullptr;
                amp_error err = {};
                amp_status status = amp_compare(&before, &after, &which, &result, &err);
                EXPECT_EQ(result == nullptr, status != AMP_OK);
                amp_compile_result_release(result);
                return status;
            },
            50);
}

TEST(Compile, Policies) {
    for (int json : {0, 1})
        FailEach(
            json ? "policies as JSON" : "policies",
            [json](Torture &t) {
                amp_allocator a = t.get();
                amp_policy_options o = {};
                o.struct_size = sizeof o, o.json = json, o.allocator = &a;
                amp_compile_result *result = nullptr;
                amp_error err = {};
                amp_status status = amp_policy_diff("fp32", "tf32", &o, &result, &err);
                EXPECT_EQ(result == nullptr, status != AMP_OK);
                amp_compile_result_release(result);
                if (status) return status;
                status = amp_policy_check("fp32", &o, &result, &err);
                EXPECT_EQ(result == nullptr, status != AMP_OK);
                amp_compile_result_release(result);
                return status;
            },
            10);
}

TEST(Compile, Lint) {
    for (int json : {0, 1})
        FailEach(
            json ? "lint as JSON" : "lint",
            [json](Torture &t) {
                amp_allocator a = t.get();
                amp_compile_options o = Options(&a, AMP_EMIT_IR);
                o.policy = "pure-fp16";
                amp_lint_options which = {};
                which.struct_size = sizeof which, which.json = json;
                amp_compile_result *result = nullptr;
                amp_error err = {};
                amp_status status = amp_lint(&o, &which, nullptr, &result, &err);
                EXPECT_EQ(result == nullptr, status != AMP_OK);
                amp_compile_result_release(result);
                return status;
            },
            50);
}

// ---- the runtime
// -----------------------------------------------------------------------------------------------------

std::string ModelPath() {
    static const std::string path = [] {
        std::string made = Temporary("net.so");
        amp_compile_options o = Options(nullptr, AMP_EMIT_SO);
        o.output = made.c_str();
        amp_compile_result *result = nullptr;
        amp_error err = {};
        EXPECT_EQ(amp_compile(&o, &result, &err), AMP_OK) << err.message;
        amp_compile_result_release(result);
        return made;
    }();
    return path;
}

// A model with what is made from it; whatever could not be made stays NULL, and all of it is released.
struct Life {
    amp_model *model = nullptr;
    amp_params *params = nullptr;
    amp_session *session = nullptr;
    amp_error err = {};

    amp_status Make(const amp_allocator *a, bool keep_values = false) {
        amp_model_options m = {sizeof m, a};
        amp_status status = amp_model_load(ModelPath().c_str(), &m, &model, &err);
        amp_params_options seed = {sizeof seed, 5, 0};
        if (!status) status = amp_params_create(model, &seed, &params, &err);
        amp::SessionOptions o;
        o.capacity.n = 6, o.threads = 2, o.seed = 5, o.inspect.keep_values = keep_values;
        if (!status) status = amp_session_create(model, params, &o, &session, &err);
        return status;
    }
    ~Life() {
        amp_model_release(model);
        amp_params_release(params);
        amp_session_release(session);
    }
};

struct Data {
    float x[6][7];
    int32_t t[6];
    const void *inputs[2] = {x, t};
    Data() {
        for (int i = 0; i < 6; i++) {
            t[i] = i % 4;
            for (int k = 0; k < 7; k++) x[i][k] = 0.1f * (float)(i - k);
        }
    }
};

// Weights and moments, to see that a call that failed changed nothing.
std::vector<float> Everything(const Life &l) {
    std::vector<float> all;
    amp_error err;
    amp_model_info info;
    amp_model_get_info(l.model, &info);
    for (int i = 0; i < info.param_count; i++) {
        amp_tensor_info t;
        EXPECT_EQ(amp_model_param_at(l.model, i, &t, &err), AMP_OK);
        size_t count = 1, at = all.size();
        for (int d = 0; d < t.rank; d++) count *= (size_t)t.dims[d];
        all.resize(at + 2 * count);
        EXPECT_EQ(amp_params_get(l.params, t.name, &all[at], count, &err), AMP_OK);
        EXPECT_EQ(
            amp_session_get_moment(l.session, (std::string(t.name) + "/m").c_str(), &all[at + count], count, &err),
            AMP_OK)
            << err.message;
    }
    return all;
}

bool SameBits(const std::vector<float> &a, const std::vector<float> &b) {
    return a.size() == b.size() && !memcmp(a.data(), b.data(), a.size() * sizeof(float));
}

TEST(Runtime, CreatingEverything) {
    FailEach(
        "load, params, session",
        [](Torture &t) {
            amp_allocator a = t.get();
            Life life;
            return life.Make(&a);
        },
        150);
}

// Two versions; the second shares all tensors but one, and a session that reads the second.
amp_status Publish(Life &l, const Data &data) {
    float bias[9], other[9] = {1}, y[6][4];
    void *out[] = {y};
    amp_session *reader = nullptr;
    amp::SessionOptions o;
    o.capacity.n = 6, o.threads = 1, o.published = 1;
    amp_status status = amp_params_get(l.params, "a.bias", bias, 9, &l.err);
    if (!status) status = amp_params_publish(l.params, nullptr, &l.err);
    if (!status) status = amp_params_set(l.params, "a.bias", other, 9, &l.err);
    if (!status) status = amp_params_publish(l.params, nullptr, &l.err);
    if (!status) status = amp_session_create(l.model, l.params, &o, &reader, &l.err);
    if (!status) status = amp_infer(reader, data.inputs, {6, 0}, out, &l.err);
    EXPECT_EQ(status ? 0u : 2u, status ? 0u : amp_session_version(reader));
    amp_session_release(reader);
    amp_error ignored;
    EXPECT_EQ(amp_params_set(l.params, "a.bias", bias, 9, &ignored), AMP_OK);
    return status;
}

// Each call of a living session: it fails or does its whole work, and with memory again training goes on as if nothing
// had been.
TEST(Runtime, EveryCallOfALife) {
    Data data;
    std::string params = Temporary("life.params"), checkpoint = Temporary("life.ckpt");
    Life reference;
    amp_step_report report;
    ASSERT_EQ(reference.Make(nullptr), AMP_OK) << reference.err.message;
    ASSERT_EQ(amp_params_save(reference.params, params.c_str(), nullptr, &reference.err), AMP_OK);
    ASSERT_EQ(amp_step(reference.session, data.inputs, {6, 0}, &report, &reference.err), AMP_OK);
    ASSERT_EQ(amp_checkpoint_save(reference.session, checkpoint.c_str(), "x", &reference.err), AMP_OK);
    std::vector<float> stepped = Everything(reference);
    std::string saved_params = Read(params), saved_checkpoint = Read(checkpoint), second = Temporary("second");

    struct Call {
        const char *name;
        std::function<amp_status(Life &)> run;
    };
    const Call calls[] = {
        {"step",
         [&](Life &l) {
             return amp_step(l.session, data.inputs, {6, 0}, nullptr, &l.err);
         }},
        {"eval",
         [&](Life &l) {
             double loss, metric;
             return amp_eval(l.session, data.inputs, {5, 0}, &loss, &metric, &l.err);
         }},
        {"infer",
         [&](Life &l) {
             float y[6][4];
             void *out[] = {y};
             return amp_infer(l.session, data.inputs, {6, 0}, out, &l.err);
         }},
        {"save params", [&](Life &l) { return amp_params_save(l.params, second.c_str(), nullptr, &l.err); }},
        {"save checkpoint", [&](Life &l) { return amp_checkpoint_save(l.session, second.c_str(), "y", &l.err); }},
        {"load params", [&](Life &l) { return amp_params_load(l.params, params.c_str(), nullptr, nullptr, &l.err); }},
        {"load checkpoint",
         [&](Life &l) {
             char extra[8];
             return amp_checkpoint_load(l.session, checkpoint.c_str(), extra, 8, &l.err);
         }},
        {"publish", [&](Life &l) { return Publish(l, data); }},
        {"snapshot and copy",
         [&](Life &l) {
             amp_params *copy = nullptr;
             amp_status status = amp_params_snapshot(l.params, &copy, &l.err);
             if (!status) status = amp_params_copy(copy, l.params, &l.err);
             if (!status) status = amp_params_blend(copy, l.params, 0.5, &l.err);
             if (!status) status = amp_session_get_averages(l.session, copy, &l.err);
             amp_params_release(copy);
             return status;
         }},
        {"load partial",
         [&](Life &l) {
             amp_weights_options o = {};
             o.struct_size = sizeof o, o.partial = 1;
             return amp_params_load(l.params, params.c_str(), &o, nullptr, &l.err);
         }},
        {"load weights", [&](Life &l) { return amp_params_load(l.params, params.c_str(), nullptr, nullptr, &l.err); }},
        {"save weights",
         [&](Life &l) {
             amp_weights_options o = {};
             o.struct_size = sizeof o, o.like = params.c_str();
             return amp_params_save(l.params, second.c_str(), &o, &l.err);
         }},
    };
    for (const Call &call : calls)
        for (bool forever : {false, true})
            for (long i = 0;; i++) {
                Torture torture(-1, false);
                amp_allocator a = torture.get();
                Life life;
                ASSERT_EQ(life.Make(&a), AMP_OK) << life.err.message;
                std::vector<float> before = Everything(life);
                unlink(second.c_str());
                torture.FailFromNow(i, forever);
                amp_status status = call.run(life);
                bool hit = torture.hit();
                torture.Heal();
                if (hit) {
                    ASSERT_EQ(status, AMP_OUT_OF_MEMORY)
                        << call.name << ", allocation " << i << ": " << life.err.message;
                    ASSERT_TRUE(SameBits(before, Everything(life)))
                        << call.name << ", allocation " << i << " changed the weights";
                    ASSERT_EQ(access(second.c_str(), F_OK), -1) << call.name << ", allocation " << i << " left a file";
                }
                ASSERT_EQ(amp_params_load(life.params, params.c_str(), nullptr, nullptr, &life.err), AMP_OK)
                    << life.err.message;
                if (hit) {
                    ASSERT_EQ(amp_step(life.session, data.inputs, {6, 0}, nullptr, &life.err), AMP_OK)
                        << life.err.message;
                    ASSERT_TRUE(SameBits(stepped, Everything(life)))
                        << call.name << ", allocation " << i << ": the step after it differs";
                }
                if (!hit) {
                    ASSERT_EQ(status, AMP_OK) << life.err.message;
                    printf("%s: %ld allocations\n", call.name, i);
                    break;
                }
            }
}

} // namespace
