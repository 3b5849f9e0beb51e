// What a host program may do around the library: foreign rounding modes, fork, threads with little stack.
#ifdef __x86_64__
#include <cpuid.h>
#endif
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cfenv>
#include <functional>

#include "tests/e2e/harness.h"

namespace {

using e2e::Training;

std::string model() {
    static std::string path = e2e::compile_to_file(e2e::mlp("fp16", 40, 70), "host.so");
    return path;
}

// ---- floating point -------------------------------------------------------------------------------------------------

// Rounds up; on x86-64 subnormal operands and results become zero, too.
void SetForeignMode() {
    fesetround(FE_UPWARD);
#ifdef __x86_64__
    __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | 0x8040);
#endif
}

bool IsForeignMode() {
#ifdef __x86_64__
    if ((__builtin_ia32_stmxcsr() & 0x8040) != 0x8040) return false;
#endif
    return fegetround() == FE_UPWARD;
}

struct Outcome {
    std::vector<float> params, logits;
    double loss, metric;
};

enum class Foreign { kNever, kFromTheStart, kAfterCreation };

// Weights of 1e-39 make subnormal products, which flush-to-zero would show.
Outcome TrainIn(Foreign mode, int threads) {
    Outcome run = {};
    if (mode == Foreign::kFromTheStart) SetForeignMode();
    Training r(model(), 200, threads);
    if (mode == Foreign::kAfterCreation) SetForeignMode();
    if (!r.ok()) return run;
    e2e::train(r, 4, 150, 40);
    run.params = e2e::all_params(r);
    e2e::Batch b(150, 40, 10, 3);
    run.logits.resize(1500);
    void *outputs[] = {run.logits.data()};
    EXPECT_EQ(amp_eval(r.session, b.inputs(), {150, 0}, &run.loss, &run.metric, &r.err), AMP_OK) << r.err.message;
    std::vector<float> w(40 * 70);
    EXPECT_EQ(amp_params_get(r.params, "fc1.weight", w.data(), w.size(), &r.err), AMP_OK) << r.err.message;
    for (float &v : w) v = v < 0 ? -1e-39f : 1e-39f;
    EXPECT_EQ(amp_params_set(r.params, "fc1.weight", w.data(), w.size(), &r.err), AMP_OK) << r.err.message;
    EXPECT_EQ(amp_infer(r.session, b.inputs(), {150, 0}, outputs, &r.err), AMP_OK) << r.err.message;
    EXPECT_EQ(IsForeignMode(), mode != Foreign::kNever) << "the program's own mode";
    return run;
}

TEST(Host, ItsFloatingPointModeChangesNothing) {
    fenv_t before;
    fegetenv(&before);
    Outcome plain = TrainIn(Foreign::kNever, 1);
    for (int threads : {1, 2})
        for (Foreign mode : {Foreign::kFromTheStart, Foreign::kAfterCreation}) {
            Outcome run = TrainIn(mode, threads);
            fesetenv(&before);
            EXPECT_TRUE(e2e::same_bits(plain.params, run.params)) << threads << " threads";
            EXPECT_TRUE(e2e::same_bits(plain.logits, run.logits)) << threads << " threads";
            EXPECT_EQ(plain.loss, run.loss);
            EXPECT_EQ(plain.metric, run.metric);
        }
}

TEST(Host, ItsFloatingPointModeDoesNotChangeWhatIsCompiled) {
    std::string text = e2e::mlp("fp16", 9, 11, 3, "adamw(lr = cosine(peak = 0.1, warmup = 7, steps = 37))");
    amp_compile_options options = {};
    options.emit = AMP_EMIT_C;
    options.target = "both";
    std::string plain = e2e::compile(text, options).bytes;
    fenv_t before;
    fegetenv(&before);
    SetForeignMode();
    std::string foreign = e2e::compile(text, options).bytes;
    bool kept = IsForeignMode();
    fesetenv(&before);
    EXPECT_TRUE(plain == foreign);
    EXPECT_FALSE(plain.empty());
    EXPECT_TRUE(kept);
}

// ---- fork -----------------------------------------------------------------------------------------------------------

int InChild(const std::function<bool()> &part) {
    pid_t child = fork();
    if (child == 0) {
        alarm(60);
        _exit(part() ? 0 : 1);
    }
    int status = -1;
    waitpid(child, &status, 0);
    return status;
}

#ifdef __x86_64__
// The upper halves of AVX's and AVX-512's registers that hold numbers: SSE code is several times slower meanwhile.
unsigned UpperHalvesInUse() {
    unsigned low, high;
    __asm__ volatile(".byte 0x0f, 0x01, 0xd0" : "=a"(low), "=d"(high) : "c"(1)); // xgetbv
    return low & 0x44;
}

TEST(Host, AStepClearsTheUpperHalvesOfRegisters) {
    unsigned a = 0, b, c, d;
    if (!__builtin_cpu_supports("avx2") || !__get_cpuid_count(13, 1, &a, &b, &c, &d) || !(a & 4))
        GTEST_SKIP() << "needs AVX2, and a processor that says which registers are in use";
    amp_compile_options options = {};
    options.isa = "v4";
    Training r(e2e::compile_to_file(e2e::mlp("fp32", 40, 70), "upper.so", options), 16, 1);
    ASSERT_TRUE(r.ok());
    e2e::Batch batch(16, 40, 10, 3);
    __asm__ volatile("vpcmpeqd %%ymm15, %%ymm15, %%ymm15" ::: "xmm15");
    EXPECT_NE(UpperHalvesInUse(), 0u);
    __asm__ volatile("vzeroupper" ::: "xmm15");
    EXPECT_EQ(amp_step(r.session, batch.inputs(), {16, 0}, nullptr, &r.err), AMP_OK) << r.err.message;
    EXPECT_EQ(UpperHalvesInUse(), 0u);
    std::vector<float> logits(16 * 10);
    void *outputs[] = {logits.data()}; // by a product with a bias, the last kernel
    EXPECT_EQ(amp_infer(r.session, batch.inputs(), {16, 0}, outputs, &r.err), AMP_OK) << r.err.message;
    EXPECT_EQ(UpperHalvesInUse(), 0u);
}
#endif

TEST(Host, ASessionGoesOnInAForkedChild) {
    Training r(model(), 64, 2), whole(model(), 64, 2);
    ASSERT_TRUE(r.ok() && whole.ok());
    e2e::train(whole, 6, 45, 40);
    e2e::train(r, 3, 45, 40);
    std::vector<float> expected = e2e::all_params(whole);
    auto go_on = [&] {
        e2e::train(r, 3, 45, 40, 10, 3);
        return e2e::same_bits(e2e::all_params(r), expected);
    };
    EXPECT_EQ(InChild(go_on), 0);
    EXPECT_TRUE(go_on());
}

// ---- stacks ---------------------------------------------------------------------------------------------------------

void OnSmallStack(const std::function<void()> &part) {
    pthread_attr_t attributes;
    pthread_t thread;
    pthread_attr_init(&attributes);
    ASSERT_EQ(pthread_attr_setstacksize(&attributes, 128 << 10), 0);
    auto call = [](void *f) -> void * {
        (*static_cast<const std::function<void()> *>(f))();
        return nullptr;
    };
    ASSERT_EQ(pthread_create(&thread, &attributes, call, const_cast<std::function<void()> *>(&part)), 0);
    pthread_join(thread, nullptr);
    pthread_attr_destroy(&attributes);
}

TEST(Host, SessionsWorkOnASmallStack) {
    std::vector<float> expected, here;
    {
        Training r(model(), 64, 2);
        e2e::train(r, 3, 45, 40);
        expected = e2e::all_params(r);
    }
    OnSmallStack([&] {
        Training r(model(), 64, 2);
        e2e::train(r, 3, 45, 40);
        here = e2e::all_params(r);
    });
    EXPECT_TRUE(e2e::same_bits(expected, here));
}

TEST(Host, CompilesDeeplyNestedCallsOnASmallStack) {
    std::string nested = "x";
    for (int i = 0; i < 190; i++) nested = "relu(" + nested + ")";
    std::string text = "amp 1\nmodel deep(x: f32[N, 4]) -> y {\n    y = " + nested + "\n}\n";
    amp_compile_options options = {};
    options.emit = AMP_EMIT_IR;
    e2e::Compiled large = e2e::compile(text, options), small;
    OnSmallStack([&] { small = e2e::compile(text, options); });
    EXPECT_EQ(large.status, AMP_OK) << large.message << large.diagnostics;
    EXPECT_EQ(small.status, AMP_OK) << small.message << small.diagnostics;
    EXPECT_EQ(small.bytes, large.bytes);
}

TEST(Host, ExplainsOnASmallStack) {
    std::string text = e2e::mlp("fp16");
    amp_status status = AMP_INTERNAL;
    OnSmallStack([&] {
        amp_compile_options options = {};
        options.struct_size = sizeof options;
        options.name = "mlp.amp";
        options.text = text.c_str();
        options.text_size = text.size();
        amp_compile_result *result = nullptr;
        amp_error err = {};
        status = amp_explain(&options, nullptr, &result, &err);
        amp_compile_result_release(result);
    });
    EXPECT_EQ(status, AMP_OK);
}

} // namespace
