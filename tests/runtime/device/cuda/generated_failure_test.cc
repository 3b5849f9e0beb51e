// A model that ampc compiled, on the stand-in: every call of the driver that its life makes fails, with every kind of
// error.  The status is clear, within a second; nothing
// leaks; after a fatal error every later call says what was first and asks the driver nothing; teardown ends.
#include <unistd.h>

#include <ctime>
#include <functional>

#include "tests/base/failing_allocator.h"
#include "tests/base/planted.h"
#include "tests/e2e/harness.h"
#include "tests/runtime/device/cuda/on_stand_in.h"

namespace {

// A failure is reported at once.
constexpr double kSecondsToSay = 1;

enum { IN = 11, HIDDEN = 9, CLASSES = 3, N = 8 };

struct Kind {
    int result;
    amp_status status;
    bool fatal;
    const char *name, *remedy; // in the message
    bool is_rare = false;      // left to the long tests: another number on the same way
};
const Kind kinds[] = {
    {2, AMP_OUT_OF_MEMORY, false, "CUDA_ERROR_OUT_OF_MEMORY", ""},
    {100, AMP_NOT_FOUND, false, "CUDA_ERROR_NO_DEVICE", "use the device \"cpu\""},
    {222, AMP_UNSUPPORTED, false, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION", "install a newer driver"},
    {801, AMP_UNSUPPORTED, false, "CUDA_ERROR_NOT_SUPPORTED", "", true},
    {999, AMP_INTERNAL, false, "CUDA_ERROR_UNKNOWN", "", true},
    {700, AMP_DEVICE_FAILED, true, "CUDA_ERROR_ILLEGAL_ADDRESS", ""},
    {702, AMP_DEVICE_FAILED, true, "CUDA_ERROR_LAUNCH_TIMEOUT", "", true},
    {719, AMP_DEVICE_FAILED, true, "CUDA_ERROR_LAUNCH_FAILED", ""},
};

// A model's life, call by call.
class Life {
  public:
    Life(const std::string &model, const std::string &file, const amp_allocator *allocator)
        : model_path_(model), file_(file), allocator_(allocator) {}
    ~Life() {
        amp_model_release(model_);
        amp_params_release(params_);
        amp_session_release(session_);
    }
    Life(const Life &) = delete;

    struct Call {
        const char *name;
        bool asks_device; // where the device has failed, this must fail
        std::function<amp_status(Life &, amp_error *)> run;
    };
    static const std::vector<Call> &Calls() {
        static const std::vector<Call> calls = {
            {"load", false, [](Life &l, amp_error *e) { return l.Load(e); }},
            {"params", false, [](Life &l, amp_error *e) { return l.Params(e); }},
            {"session", true, [](Life &l, amp_error *e) { return l.Open(e); }},
            {"step", true, [](Life &l, amp_error *e) { return l.Step(N, false, e); }},
            {"step, small", true, [](Life &l, amp_error *e) { return l.Step(N - 3, true, e); }},
            {"metrics", false,
             [](Life &l, amp_error *e) { return amp_session_get_metrics(l.session_, &l.metric_, e); }},
            {"report", false,
             [](Life &l, amp_error *e) {
                 return amp_session_next_report(l.session_, 1, &l.report_, nullptr, &l.metric_, &l.there_, e);
             }},
            {"eval", true,
             [](Life &l, amp_error *e) {
                 return amp_eval(l.session_, l.batch_.inputs(), {N, 0}, &l.loss_, &l.metric_, e);
             }},
            {"infer", true,
             [](Life &l, amp_error *e) {
                 return amp_infer(l.session_, l.batch_.inputs(), {N, 0}, l.outputs_, e);
             }},
            {"scaler", false, [](Life &l, amp_error *e) { return amp_session_get_scaler(l.session_, &l.scaler_, e); }},
            {"set scaler", false,
             [](Life &l, amp_error *e) { return amp_session_set_scaler(l.session_, &l.scaler_, e); }},
            {"params get", false, // they are the host's until a step has changed them
             [](Life &l, amp_error *e) {
                 return amp_params_get(l.params_, "fc1.weight", l.weight_.data(), l.weight_.size(), e);
             }},
            {"params set", false,
             [](Life &l, amp_error *e) {
                 return amp_params_set(l.params_, "fc1.weight", l.weight_.data(), l.weight_.size(), e);
             }},
            {"step after", true, [](Life &l, amp_error *e) { return l.Step(N, true, e); }},
            {"save", true,
             [](Life &l, amp_error *e) { return amp_checkpoint_save(l.session_, l.file_.c_str(), nullptr, e); }},
            {"load back", false,
             [](Life &l, amp_error *e) { return amp_checkpoint_load(l.session_, l.file_.c_str(), nullptr, 0, e); }},
            {"step at last", true, [](Life &l, amp_error *e) { return l.Step(N, true, e); }},
        };
        return calls;
    }
    enum { SESSION = 2 }; // the first two make what it needs

  private:
    amp_status Load(amp_error *e) {
        amp_model_options o = {};
        o.struct_size = sizeof o;
        o.allocator = allocator_;
        return amp_model_load(model_path_.c_str(), &o, &model_, e);
    }
    amp_status Params(amp_error *e) {
        amp_params_options o = {sizeof o, 7, 0};
        return amp_params_create(model_, &o, &params_, e);
    }
    amp_status Open(amp_error *e) {
        amp::SessionOptions o;
        o.capacity.n = N;
        o.device = "cuda";
        return amp_session_create(model_, params_, &o, &session_, e);
    }
    amp_status Step(int64_t n, bool ask, amp_error *e) {
        amp_step_report report;
        return amp_step(session_, batch_.inputs(), {n, 0}, ask ? &report : nullptr, e);
    }

    std::string model_path_, file_;
    const amp_allocator *allocator_;
    amp_model *model_ = nullptr;
    amp_params *params_ = nullptr;
    amp_session *session_ = nullptr;
    e2e::Batch batch_{N, IN, CLASSES, 5};
    double loss_ = 0, metric_ = 0;
    amp_step_report report_ = {};
    int32_t there_ = 0;
    amp_scaler_state scaler_ = {};
    std::vector<float> weight_ = std::vector<float>(HIDDEN * IN), logits_ = std::vector<float>(N * CLASSES);
    void *outputs_[1] = {logits_.data()};
};

class Generated : public OnStandIn {
  protected:
    static void SetUpTestSuite() {
        unsetenv("AMPC_CUDA_COMPILE"); // the same few kernels run thousands of times
        OnStandIn::SetUpTestSuite();
        model_path_ = e2e::compile_to_file(e2e::mlp("fp16", IN, HIDDEN, CLASSES),
                                           "cuda-generated-" + std::to_string(getpid()) + ".so");
    }
    static void TearDownTestSuite() { unlink(model_path_.c_str()); }
    // NVRTC has compiled the kernels before the clock runs.
    void SetUp() override {
        OnStandIn::SetUp();
        if (IsSkipped() || HasFatalFailure()) return;
        Life life(model_path_, file_, nullptr);
        const End end = Live(&life);
        ASSERT_EQ(end.status, AMP_OK) << end.err.message;
        healthy_ = end.taken;
    }
    void TearDown() override {
        unlink(file_.c_str());
        for (const char *name : {"DEVICES", "DRIVER_VERSION", "MEMORY"})
            unsetenv((std::string("FAKECUDA_") + name).c_str());
        OnStandIn::TearDown();
    }

    // Of this process's processor time, which a busy machine does not lengthen; what hangs meets the test's time limit.
    static double Now() { return static_cast<double>(clock()) / CLOCKS_PER_SEC; }

    struct End {
        size_t call; // that failed; past the last: none
        amp_status status = AMP_OK;
        amp_error err = {};
        std::vector<double> taken; // seconds of each call up to it
    };
    static End Live(Life *life) {
        End end = {};
        for (; end.call < Life::Calls().size(); end.call++) {
            const double begin = Now();
            end.status = Life::Calls()[end.call].run(*life, &end.err);
            end.taken.push_back(Now() - begin);
            if (end.status) break;
        }
        return end;
    }
    // Beyond what the call takes where nothing fails, on a machine that may be busy.
    void ExpectInTime(const End &end, const std::string &what) {
        EXPECT_LT(end.taken.back(), kSecondsToSay + 4 * healthy_.at(end.call)) << what;
    }

    // How often each call of the driver is made.
    std::vector<std::pair<std::string, int64_t>> Made() {
        std::vector<std::pair<std::string, int64_t>> out;
        Report r = report();
        const amp_json *calls = amp_json_get(r.root(), "calls");
        for (size_t i = 0; i < calls->object.count; i++) {
            const auto &member = calls->object.members[i];
            const std::string name = member.key.data;
            if (name.find("cuGetError") == std::string::npos && member.value.number.integer)
                out.push_back({name, member.value.number.integer});
        }
        return out;
    }

    void ExpectClear(const End &end, const std::string &call, const Kind &kind, const std::string &what) {
        const std::string message = end.err.message;
        EXPECT_EQ(end.status, kind.status) << what << message;
        ExpectInTime(end, what + message);
        if (kind.result == 2 && message.find("has no memory for another ") != std::string::npos) {
            EXPECT_NE(message.find("choose a smaller capacity"), std::string::npos) << what << message;
            return;
        }
        for (const std::string &part :
             {call, std::string(kind.name), "(" + std::to_string(kind.result) + ")", std::string(kind.remedy)})
            EXPECT_NE(message.find(part), std::string::npos) << what << "\"" << message << "\" lacks " << part;
    }

    // Every later call fails at once, with the first cause, and the driver is left alone.
    void ExpectLatched(Life *life, const End &end, const std::string &what) {
        reset_counters();
        const double begin = Now();
        for (size_t i = Life::SESSION + 1; i < Life::Calls().size(); i++) {
            amp_error err = {};
            const Life::Call &c = Life::Calls()[i];
            const amp_status status = c.run(*life, &err);
            if (!c.asks_device) continue;
            EXPECT_EQ(status, AMP_DEVICE_FAILED) << what << c.name << ": " << err.message;
            EXPECT_NE(std::string(err.message).find(end.err.message), std::string::npos)
                << what << c.name << ": \"" << err.message << "\" was first: " << end.err.message;
        }
        EXPECT_LT(Now() - begin, 1.0) << what;
        for (const auto &call : Made()) ADD_FAILURE() << what << "asks the driver: " << call.first;
    }

    // What failed is only for the moment: the same calls work.
    void ExpectRecovers(Life *life, const std::string &what) {
        for (size_t i = Life::SESSION + 1; i < Life::Calls().size(); i++) {
            amp_error err = {};
            const Life::Call &c = Life::Calls()[i];
            EXPECT_EQ(c.run(*life, &err), AMP_OK) << what << "then " << c.name << ": " << err.message;
        }
    }

    // Whose failure changes nothing: it gives something back, or has nothing more to say.
    static bool MayBeIgnored(const std::string &call) {
        for (const char *part : {"Free", "Destroy", "Unload", "Release", "cuCtxPopCurrent"})
            if (call.find(part) != std::string::npos) return true;
        return false;
    }

    void Fail(const std::string &call, int64_t k, const Kind &kind) {
        const std::string plan = call + ":" + std::to_string(k) + ":" + std::to_string(kind.result), what = plan + " ";
        begin();
        ASSERT_EQ(set_fail(plan.c_str()), 0) << plan;
        FailingAllocator counting;
        const amp_allocator a = counting.get();
        bool ignored;
        {
            Life life(model_path_, file_, &a);
            const End end = Live(&life);
            const bool injected = !report().lines("injected").empty();
            ignored = end.status == AMP_OK && (MayBeIgnored(call) || !injected); // else it comes in teardown
            if (end.status) {
                ExpectClear(end, call, kind, what);
                if (kind.fatal && end.call > Life::SESSION) ExpectLatched(&life, end, what);
                if (!kind.fatal && end.call > Life::SESSION) ExpectRecovers(&life, what);
            } else EXPECT_TRUE(ignored) << what << "is not reported";
        }
        set_fail("");
        Report r = report();
        for (const char *list : {"leaks", "misuse", "faults"})
            for (const std::string &line : r.lines(list))
                if (line != "injected") ADD_FAILURE() << what << list << ": " << line;
    }

    void FailEach(int first, int stride) {
        FailingAllocator counting;
        const amp_allocator a = counting.get();
        begin();
        {
            Life life(model_path_, file_, &a);
            const End end = Live(&life);
            ASSERT_EQ(end.status, AMP_OK) << end.err.message;
        }
        ExpectNoLeak();
        const auto made = Made();
        ASSERT_GT(made.size(), 30u);
        for (size_t i = static_cast<size_t>(first); i < made.size(); i += static_cast<size_t>(stride))
            for (const Kind &kind :
                 kinds) { // in some ways at first, in one at last; in the long tests in all, in two, and between
                const int64_t count = made[i].second;
                const bool thorough = getenv("AMP_FAILURES"), later = kind.result == 719 || kind.result == 999;
                if (kind.is_rare && !thorough) continue;
                // 719 of each call; 700, and two of three errors that are not fatal, of every third
                if (!thorough && kind.result != 719 && (i / static_cast<size_t>(stride) + (&kind - kinds)) % 3)
                    continue;
                Fail(made[i].first, 1, kind);
                if (thorough && later && count > 2) Fail(made[i].first, count / 2 + 1, kind);
                if (later && count > 1) Fail(made[i].first, count, kind);
                if (HasFatalFailure()) return;
            }
    }

    std::vector<double> healthy_; // seconds of each call
    std::string file_ = ::testing::TempDir() + "cuda-generated-" + std::to_string(getpid()) + ".st";
    static inline std::string model_path_;
};

enum { PARTS = 6 };
class GeneratedPart : public Generated, public ::testing::WithParamInterface<int> {};
TEST_P(GeneratedPart, EveryCallFailsInEveryWay) { FailEach(GetParam(), PARTS); }
INSTANTIATE_TEST_SUITE_P(Parts, GeneratedPart, ::testing::Range(0, (int)PARTS));

TEST_F(Generated, PlantedFaultsAreFound) {
    begin();
    ASSERT_EQ(set_fail("cuMemAlloc_v2:1:2"), 0);
    Life life(model_path_, file_, nullptr);
    const End end = Live(&life);
    set_fail("");
    ExpectClear(end, "cuMemAlloc_v2", kinds[0], "");
    ExpectFound("another error", "lacks CUDA_ERROR_NO_DEVICE",
                [&] { ExpectClear(end, "cuMemAlloc_v2", kinds[1], ""); });
    Life healthy(model_path_, file_, nullptr);
    const End none = Live(&healthy);
    ExpectFound("a device that works on", "asks the driver: ", [&] { ExpectLatched(&healthy, none, ""); });
}

// The device itself runs out, at every size.
TEST_F(Generated, DeviceMemoryRunsOut) {
    int refused = 0;
    for (int64_t bytes = 4096;; bytes += bytes / 2) {
        ASSERT_LT(bytes, 1 << 24);
        begin({{"MEMORY", std::to_string(bytes)}});
        FailingAllocator counting;
        const amp_allocator a = counting.get();
        End end;
        {
            Life life(model_path_, file_, &a);
            end = Live(&life);
        }
        ExpectNoLeak();
        if (end.status == AMP_OK) break;
        refused++;
        ASSERT_EQ(end.status, AMP_OUT_OF_MEMORY) << end.err.message;
        ExpectMessage(end.err, "memory");
        ExpectInTime(end, std::to_string(bytes));
    }
    EXPECT_GT(refused, 3);
}

TEST_F(Generated, NoDevice) {
    begin({{"DEVICES", "0"}});
    Life life(model_path_, file_, nullptr);
    const End end = Live(&life);
    EXPECT_EQ(end.call, size_t{Life::SESSION});
    EXPECT_EQ(end.status, AMP_NOT_FOUND);
    ExpectMessage(end.err, "cuInit: CUDA_ERROR_NO_DEVICE (100)");
    ExpectMessage(end.err, "is CUDA_VISIBLE_DEVICES set to leave it out?");
    ExpectInTime(end, "no device");
}

// NVRTC writes PTX for its own version of CUDA.
TEST_F(Generated, DriverIsOlderThanNvrtc) {
    begin({{"DRIVER_VERSION", "12000"}});
    Life life(model_path_, file_, nullptr);
    const End end = Live(&life);
    EXPECT_EQ(end.call, size_t{Life::SESSION});
    EXPECT_EQ(end.status, AMP_UNSUPPORTED) << end.err.message;
    ExpectMessage(end.err, "cuModuleLoadDataEx: CUDA_ERROR_UNSUPPORTED_PTX_VERSION (222)");
    ExpectMessage(end.err, "install a newer driver");
}

} // namespace
