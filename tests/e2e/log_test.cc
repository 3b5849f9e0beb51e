// What the libraries say while they work: the log of a session, the progress of a compilation.
#include <pthread.h>
#include <unistd.h>

#include <cmath>
#include <functional>

#include "tests/e2e/harness.h"

namespace {

using namespace e2e;

class Log : public OnDevice {};

// What was said, as "W text" for a warning; from which thread.
struct Heard {
    std::vector<std::string> lines;
    int strangers = 0;
    pthread_t thread = pthread_self();
    static void Hear(void *user, amp_log_level level, const char *text) {
        Heard &h = *static_cast<Heard *>(user);
        h.lines.push_back(std::string(1, "PIWN"[level]) + " " + text);
        h.strangers += !pthread_equal(h.thread, pthread_self());
        EXPECT_EQ(strchr(text, '\n'), nullptr) << text;
    }
    const std::string *Find(const char *part) const {
        for (const std::string &line : lines)
            if (line.find(part) != std::string::npos) return &line;
        return nullptr;
    }
};

struct Session {
    Heard heard;
    amp_params *params = nullptr;
    amp_session *session = nullptr;
    amp_error err = {};
    Session(amp_model *model, const std::function<void(amp::SessionOptions &)> &change) {
        amp::SessionOptions o;
        o.capacity.n = 8, o.threads = 1, o.device = device();
        o.log = Heard::Hear, o.log_user = &heard;
        change(o);
        EXPECT_EQ(amp_params_create(model, nullptr, &params, &err), AMP_OK) << err.message;
        EXPECT_EQ(amp_session_create(model, params, &o, &session, &err), AMP_OK) << err.message;
    }
    Session(const Session &) = delete;
    ~Session() { amp_session_release(session), amp_params_release(params); }
};

TEST_F(Log, SaysWhatASessionChose) {
    if (device()) GTEST_SKIP() << "the CPU's";
    Training t(compile_to_file(mlp("fp32", 7, 9, 3), "log.so"), 8);
    ASSERT_TRUE(t.ok());
    Session one(t.model, [](auto &o) { o.cpu.isa = "portable"; });
    EXPECT_EQ(one.heard.lines, std::vector<std::string>{"I cpu: 1 thread, instruction set portable"});
    Session crowd(t.model, [](auto &o) { o.threads = 1000; });
    ASSERT_NE(crowd.heard.Find("W cpu: 1000 threads share "), nullptr);
    EXPECT_EQ(crowd.heard.strangers, 0);
#ifdef __x86_64__
    const std::string *slow = one.heard.Find("the model has kernels for");
    EXPECT_EQ(slow, nullptr) << "it was asked for";
    if (__builtin_cpu_supports("avx2")) {
        EXPECT_NE(crowd.heard.Find("W cpu: the model has kernels for portable at most"), nullptr);
    }
#endif
}

// Infinities that vanish again: each op once, in steps and evaluations that are looked at, and no bit changes.
TEST_F(Log, NamesWhatAFiniteLossHides) {
    if (device()) GTEST_SKIP() << "the CPU's";
    const std::string text = "amp 1\nmodel m(x: f32[N, 7]) -> y {\n    h = linear(x; out = 8) as fc\n"
                             "    h = tanh(h * h)\n    s = h * 0.0001\n    y = linear(h + s * s; out = 3) as head }\n"
                             "train m { input t: i32[N]\n    loss = cross_entropy(y, t)\n"
                             "    optimizer = sgd(lr = 0.1) }\nprecision fp16 { }\n";
    Training t(compile_to_file(text, "hides.so"), 8);
    ASSERT_TRUE(t.ok());
    Session heard(t.model, [](auto &) {}), deaf(t.model, [](auto &o) { o.log = nullptr; });
    Session each(t.model, [](auto &o) { o.inspect.looks_at_all = 1; });
    heard.heard.lines.clear();
    for (int i = 0; i < 4; i++) {
        Batch b(8, 7, 3, static_cast<uint32_t>(i));
        for (float &x : b.x) x *= i == 2 ? 10000 : 1; // only in the third step, which is not looked at
        for (Session *s : {&heard, &deaf, &each}) {
            amp_step_report report;
            ASSERT_EQ(amp_step(s->session, b.inputs(), {8, 0}, &report, &s->err), AMP_OK) << s->err.message;
            EXPECT_TRUE(std::isfinite(report.loss));
        }
    }
    EXPECT_EQ(heard.heard.Find("makes infinities"), nullptr);
    EXPECT_NE(each.heard.Find("N step 3: mul (mul, "), nullptr);
    ASSERT_NE(heard.heard.Find("N step 1: mul_2 (mul, "), nullptr);
    EXPECT_NE(heard.heard.Find(" loses everything to zero in f16, whatever the loss is: "), nullptr);
    Batch large(8, 7, 3, 9);
    for (float &x : large.x) x *= 10000;
    double loss;
    for (int i = 0; i < 2; i++)
        ASSERT_EQ(amp_eval(heard.session, large.inputs(), {8, 0}, &loss, nullptr, &heard.err), AMP_OK);
    EXPECT_NE(heard.heard.Find("N evaluation 1: mul (mul, "), nullptr);
    EXPECT_NE(heard.heard.Find("in the precision block: \"mul\": f32"), nullptr);
    EXPECT_EQ(heard.heard.lines.size(), 2u) << "each op once";
    for (const char *name : {"fc.weight", "head.weight"}) {
        std::vector<float> a(7 * 8), b(7 * 8);
        const size_t count = (name[0] == 'f' ? 7 : 3) * 8;
        ASSERT_EQ(amp_params_get(heard.params, name, a.data(), count, &heard.err), AMP_OK) << heard.err.message;
        ASSERT_EQ(amp_params_get(deaf.params, name, b.data(), count, &deaf.err), AMP_OK) << deaf.err.message;
        EXPECT_TRUE(same_bits(a, b)) << name;
    }
}

// Once for each, with the scale before and after it; on the device as soon as it is known.
TEST_F(Log, NamesSkippedSteps) {
    const std::string text = "amp 1\nmodel m(x: f32[N, 7]) -> y { y = linear(x; out = 3, bias = false) as fc }\n"
                             "train m { input t: i32[N]\n    loss = cross_entropy(y, t)\n"
                             "    optimizer = sgd(lr = 0.1) }\n"
                             "precision fp16 { loss_scale = dynamic(init = 4.0, min = 2.0) }\n";
    Training t(compile_to_file(text, "skips.so"), 8);
    ASSERT_TRUE(t.ok());
    Session s(t.model, [](auto &) {});
    s.heard.lines.clear();
    for (int i = 0; i < 4; i++) {
        Batch b(8, 7, 3, 1);
        if (i) b.x[0] = INFINITY;
        amp_status status = amp_step(s.session, b.inputs(), {8, 0}, nullptr, &s.err);
        EXPECT_TRUE(status == AMP_OK || status == AMP_SCALE_AT_FLOOR) << s.err.message;
    }
    amp_scaler_state state;
    ASSERT_EQ(amp_session_get_scaler(s.session, &state, nullptr), AMP_OK);
    EXPECT_EQ(state.iteration, 4);
    std::vector<std::string> want = {
        "I iteration 2 skipped: gradients are not finite; the loss scale goes from 4 to 2",
        "W iteration 3 skipped: gradients are not finite, and the loss scale is at its floor of 2",
        "W iteration 4 skipped: gradients are not finite, and the loss scale is at its floor of 2"};
    EXPECT_EQ(s.heard.lines, want);
}

// A program that goes on in another way says so; which way is faster is the machine's affair.
TEST_F(Log, SaysHowManyThreadsGoOn) {
    if (device()) GTEST_SKIP() << "the CPU's";
    Training t(compile_to_file(mlp("fp32", 7, 9, 3), "threads.so"), 8);
    ASSERT_TRUE(t.ok());
    Session s(t.model, [](auto &o) { o.threads = 3; });
    s.heard.lines.clear();
    Batch b(8, 7, 3, 1);
    for (int i = 0; i < 3000; i++) ASSERT_EQ(amp_step(s.session, b.inputs(), {8, 0}, nullptr, &s.err), AMP_OK);
    for (const std::string &line : s.heard.lines) {
        EXPECT_EQ(line.find("I using "), 0u) << line;
    }
    EXPECT_EQ(s.heard.strangers, 0);
}

// NVRTC takes a second for a few.
const char kKernels[] =
    "amp 1\nmodel m(x: f32[N, 5]) -> y, z, w {\n    y = softmax(x; dim = 1)\n    z = sum(x; dims = 0)\n"
    "    w = linear(x; out = 2) as fc\n}\n";

TEST_F(Log, CountsTheKernelsThatAreCompiled) {
    if (!device()) GTEST_SKIP() << "CUDA's";
    std::string before = getenv("AMPC_CACHE_DIR") ? getenv("AMPC_CACHE_DIR") : "";
    setenv("AMPC_CACHE_DIR", temp_path("log-kernels-" + std::to_string(getpid())).c_str(), 1);
    Training t(compile_to_file(kKernels, "kernels.so"), 8); // fills the cache
    ASSERT_TRUE(t.ok());
    Session s(t.model, [](auto &) {});
    EXPECT_NE(s.heard.Find("I the model has no machine code for sm_"), nullptr);
    EXPECT_NE(s.heard.Find(": 0 CUDA kernels compiled by NVRTC, "), nullptr);
    EXPECT_NE(s.heard.Find("taken from the cache in "), nullptr);
    setenv("AMPC_CACHE_LIMIT", "0", 1);
    Session without(t.model, [](auto &o) { o.threads = 1; });
    unsetenv("AMPC_CACHE_LIMIT");
    EXPECT_NE(without.heard.Find("P 1 of "), nullptr) << "one of several kernels";
    EXPECT_NE(without.heard.Find("W there is no cache for CUDA kernels"), nullptr);
    EXPECT_EQ(without.heard.strangers, 0);
    setenv("AMPC_CACHE_DIR", before.c_str(), 1);
}

// ---- progress of a compilation -----------------------------------------------------------------------------------

struct Stages {
    std::vector<std::string> names;
    int last = -1, count = 0;
    std::string end_before;
};

Compiled CompileWith(Stages *stages, const std::string &text, amp_compile_options o = {}, const char *name = "m.amp") {
    o.user = stages;
    o.diagnostic = [](void *, const char *, int32_t) {};
    o.progress = [](void *user, const char *stage, int32_t index, int32_t count) -> int32_t {
        Stages &s = *static_cast<Stages *>(user);
        EXPECT_GT(index, s.last) << stage;
        EXPECT_LT(index, count) << stage;
        EXPECT_GE(count, s.count) << stage;
        s.last = index, s.count = count;
        s.names.push_back(stage);
        return stage == s.end_before;
    };
    return compile(text, o, name);
}

TEST(Progress, NamesEachStageOnce) {
    if (device()) GTEST_SKIP();
    const std::string text = mlp("fp16", 7, 9, 3);
    Stages cpu, both, ir;
    amp_compile_options o = {};
    o.target = "cpu";
    ASSERT_EQ(CompileWith(&cpu, text, o).status, AMP_OK);
    std::vector<std::string> want;
    int of_target = 0; // passes that run for each target
    for (int i = 0; amp_compile_pass(i); i++) {
        if (!want.empty() && (want.back() == "lower" || of_target)) of_target++;
        want.push_back(amp_compile_pass(i));
    }
    const size_t passes = want.size();
    want.push_back("codegen");
    want.push_back("cc");
    EXPECT_EQ(cpu.names, want);
    EXPECT_EQ(cpu.count, int(passes) + 2);
    ASSERT_GT(of_target, 3);
    o.emit = AMP_EMIT_C, o.target = "both";
    ASSERT_EQ(CompileWith(&both, text, o).status, AMP_OK);
    EXPECT_EQ(both.names.size(), passes + of_target + 2);
    EXPECT_EQ(both.count, int(passes) + of_target + 2);
    // IR has passes after it; all are counted.
    o.emit = AMP_EMIT_IR, o.stop_after = "simplify";
    Compiled half = CompileWith(&ir, text, o);
    ASSERT_EQ(half.status, AMP_OK);
    EXPECT_EQ(ir.count, 9);
    for (const char *target : {"cpu", "both"}) {
        Stages rest;
        amp_compile_options whole = {};
        whole.target = target, whole.emit = AMP_EMIT_C;
        ASSERT_EQ(CompileWith(&rest, half.bytes, whole, "m.ir").status, AMP_OK);
        EXPECT_EQ(rest.names[0], "read");
        EXPECT_EQ(rest.names[1], "lower");
        EXPECT_EQ(rest.names.back(), "codegen");
        EXPECT_EQ(rest.last + 1, rest.count) << "the last stage is the last";
    }
}

TEST(Progress, EndsTheCall) {
    if (device()) GTEST_SKIP();
    const std::string text = mlp("fp16", 7, 9, 3);
    for (const char *stage : {"elaborate", "autodiff", "plan", "codegen cuda", "codegen", "cc"}) {
        Stages s;
        amp_compile_options o = {};
        s.end_before = stage;
        o.target = "both";
        Compiled c = CompileWith(&s, text, o);
        EXPECT_EQ(c.status, AMP_CANCELLED) << stage;
        EXPECT_NE(c.message.find(std::string("cancelled before ") + stage), std::string::npos) << c.message;
        EXPECT_EQ(s.names.back(), stage);
        EXPECT_TRUE(c.bytes.empty());
    }
}

// With NVRTC: its kernels are counted once they are known, and the call ends between two of them.
TEST_F(Log, ProgressCountsNvrtcsKernels) {
    if (!device()) GTEST_SKIP() << "where NVRTC is";
    const std::string text = kKernels;
    amp_compile_options o = {};
    o.gpu_arch = "sm_80", o.target = "both";
    Stages all, some;
    ASSERT_EQ(CompileWith(&all, text, o).status, AMP_OK);
    EXPECT_EQ(all.names.back(), "cc");
    EXPECT_EQ(all.last + 1, all.count);
    for (const std::string &name : all.names)
        if (name.find("nvrtc ") == 0) some.end_before = name; // the last of them
    ASSERT_FALSE(some.end_before.empty());
    EXPECT_NE(some.end_before.find(" sm_80"), std::string::npos) << some.end_before;
    Stages first;
    for (const std::string &name : all.names)
        if (first.end_before.empty() && name.find("nvrtc ") == 0) first.end_before = name;
    EXPECT_EQ(first.end_before.find("nvrtc infer_k00 "), 0u) << "the caller's thread takes the first itself";
    EXPECT_EQ(CompileWith(&first, text, o).status, AMP_CANCELLED);
    EXPECT_EQ(first.names.back(), first.end_before);
}

} // namespace
