// Where params live: on the host, on a device, shared by sessions there; what moves them, and files of either.
#include <unistd.h>

#include "tests/runtime/device/cuda/on_stand_in.h"

namespace {

using Home = OnStandIn;

std::string File(const char *name) { return ::testing::TempDir() + "cuda-home-" + std::to_string(getpid()) + name; }

void Step(amp_session *session, unsigned seed, amp_step_report *report = nullptr) {
    TinyBatch batch(8, seed);
    amp_error err = {};
    ASSERT_EQ(amp_step(session, batch.inputs, {8, 0}, report, &err), AMP_OK) << err.message;
}

double Loss(amp_session *session) {
    TinyBatch batch(8, 77);
    amp_error err = {};
    double loss = NAN;
    EXPECT_EQ(amp_eval(session, batch.inputs, {8, 0}, &loss, nullptr, &err), AMP_OK) << err.message;
    return loss;
}

TEST_F(Home, ASessionElsewhereIsRefusedWhileOneIsAlive) {
    TinyOnCuda tiny;
    amp_session *cuda = tiny.Open(CudaOptions(8)), *other;
    amp::SessionOptions on_cpu = TinyOptions(8);
    EXPECT_EQ(amp_session_create(tiny.model, tiny.params, &on_cpu, &other, &tiny.err), AMP_WRONG_STATE);
    EXPECT_EQ(other, nullptr);
    ExpectMessage(tiny.err, "tiny: its params live in the memory of cuda:0 (");
    ExpectMessage(tiny.err, "where a session for training with capacity 8 is alive; release it before making one in "
                            "the host's memory");
    Step(cuda, 1);
    tiny.Close(cuda);

    amp_session *cpu = tiny.Open(on_cpu);
    on_cpu.program = "infer";
    amp_session *second = tiny.Open(on_cpu); // what is on the host may go on there
    amp::SessionOptions on_cuda = CudaOptions(8);
    EXPECT_EQ(amp_session_create(tiny.model, tiny.params, &on_cuda, &other, &tiny.err), AMP_WRONG_STATE);
    ExpectMessage(tiny.err, "its params live in the host's memory, where a session for inference with capacity 8 is "
                            "alive (and 1 more)");
    tiny.Close(second);
    tiny.Close(cpu);
    tiny.Open(on_cuda);
}

TEST_F(Home, ParamsMoveWithWhatTheyLearned) {
    TinyOnCuda tiny;
    amp_session *cuda = tiny.Open(CudaOptions(8));
    for (unsigned i = 0; i < 3; i++) Step(cuda, i);
    double on_cuda = Loss(cuda);
    tiny.Close(cuda);
    amp_session *cpu = tiny.Open(TinyOptions(8)); // panels, another derived copy
    EXPECT_NEAR(Loss(cpu), on_cuda, 1e-5);
    std::vector<float> before = tiny.Weight();
    Step(cpu, 9);
    std::vector<float> after = tiny.Weight();
    EXPECT_NE(before, after);
    tiny.Close(cpu);
    cuda = tiny.Open(CudaOptions(8));
    EXPECT_EQ(tiny.Weight(), after);
    Step(cuda, 10);
    EXPECT_NE(tiny.Weight(), after);
}

TEST_F(Home, GetAndSetReachTheDevice) {
    TinyOnCuda tiny;
    amp_session *session = tiny.Open(CudaOptions(8));
    std::vector<float> zero(TINY_CLASSES * TINY_FEATURES), bias(TINY_CLASSES), first = tiny.Weight();
    for (int i = 0; i < TINY_CLASSES; i++) bias[i] = 0.25f * (float)i;
    Step(session, 1);
    EXPECT_NE(tiny.Weight(), first) << "what the device has is newer";
    ASSERT_EQ(amp_params_set(tiny.params, "fc.weight", zero.data(), zero.size(), &tiny.err), AMP_OK);
    ASSERT_EQ(amp_params_set(tiny.params, "fc.bias", bias.data(), bias.size(), &tiny.err), AMP_OK);
    TinyBatch batch(8);
    std::vector<float> logits(8 * TINY_CLASSES);
    void *outputs[] = {logits.data()};
    ASSERT_EQ(amp_infer(session, batch.inputs, {8, 0}, outputs, &tiny.err), AMP_OK) << tiny.err.message;
    for (size_t i = 0; i < logits.size(); i++) ASSERT_EQ(logits[i], bias[i % TINY_CLASSES]);
    // one set of two, after steps whose results were not asked for: the other keeps what it learned
    Step(session, 2), Step(session, 3);
    std::vector<float> learned = tiny.Weight();
    Step(session, 4);
    ASSERT_EQ(amp_params_set(tiny.params, "fc.bias", bias.data(), bias.size(), &tiny.err), AMP_OK);
    EXPECT_NE(tiny.Weight(), learned);
    learned = tiny.Weight();
    Loss(session);
    EXPECT_EQ(tiny.Weight(), learned);
    EXPECT_EQ(tiny.Bias(), bias);
}

TEST_F(Home, ReadingCopiesOnce) {
    TinyOnCuda tiny;
    amp_session *session = tiny.Open(CudaOptions(8));
    Step(session, 1);
    reset_counters();
    tiny.Weight(), tiny.Bias(), tiny.Weight();
    EXPECT_EQ(report().calls("cuMemcpyDtoHAsync_v2"), 3) << "each param and buffer once";
    Loss(session);
    reset_counters();
    tiny.Weight();
    EXPECT_EQ(report().calls("cuMemcpyDtoHAsync_v2"), 0) << "an evaluation changes none";
}

TEST_F(Home, SessionsShareParams) {
    for (const char *seed : {"1", "2", "3", "4"}) {
        begin({{"SEED", seed}});
        TinyOnCuda tiny;
        amp::SessionOptions o = CudaOptions(8);
        amp_session *a = tiny.Open(o), *b = tiny.Open(o);
        o.program = "infer";
        amp_session *eval = tiny.Open(o);
        // on streams of their own, and no call waits: each must come after what wrote before
        for (unsigned i = 0; i < 4; i++) Step(i % 2 ? a : b, i);
        double loss = Loss(eval);
        EXPECT_EQ(Loss(a), loss);
        EXPECT_EQ(Loss(b), loss);
        std::vector<float> zero(TINY_CLASSES * TINY_FEATURES);
        ASSERT_EQ(amp_params_set(tiny.params, "fc.weight", zero.data(), zero.size(), &tiny.err), AMP_OK);
        double none = Loss(b);
        EXPECT_NE(none, loss);
        EXPECT_EQ(Loss(eval), none);
    }
}

TEST_F(Home, ParamsOutliveTheirSessions) {
    TinyOnCuda tiny;
    amp_session *session = tiny.Open(CudaOptions(8));
    Step(session, 1);
    std::vector<float> learned = tiny.Weight();
    Step(session, 2);
    tiny.Close(session);
    EXPECT_NE(tiny.Weight(), learned);
    learned = tiny.Weight();
    session = tiny.Open(CudaOptions(4));
    EXPECT_EQ(tiny.Weight(), learned);
}

// ---- files ----------------------------------------------------------------------------------------------------------

TEST_F(Home, FilesOfParamsAreTheSame) {
    TinyOnCuda tiny, other;
    amp_session *session = tiny.Open(CudaOptions(8));
    Step(session, 1);
    std::string path = File("params.st");
    ASSERT_EQ(amp_params_save(tiny.params, path.c_str(), nullptr, &tiny.err), AMP_OK) << tiny.err.message;
    ASSERT_EQ(amp_params_load(other.params, path.c_str(), nullptr, nullptr, &tiny.err), AMP_OK)
        << tiny.err.message; // on the host
    EXPECT_EQ(other.Weight(), tiny.Weight());
    Step(session, 2);
    ASSERT_EQ(amp_params_load(tiny.params, path.c_str(), nullptr, nullptr, &tiny.err), AMP_OK)
        << tiny.err.message; // on the device
    EXPECT_EQ(other.Weight(), tiny.Weight());
    amp_session *cpu = other.Open(TinyOptions(8));
    EXPECT_NEAR(Loss(session), Loss(cpu), 1e-5);
    unlink(path.c_str());
}

TEST_F(Home, ACheckpointGoesOnBitForBit) {
    std::string path = File("checkpoint.st");
    TinyOnCuda one, two;
    amp_session *a = one.Open(CudaOptions(8)), *b = two.Open(CudaOptions(8));
    amp_step_report ra, rb;
    char extra[32];
    for (unsigned i = 0; i < 5; i++) Step(a, i);
    ASSERT_EQ(amp_checkpoint_save(a, path.c_str(), "position 5", &one.err), AMP_OK) << one.err.message;
    Step(b, 50);
    ASSERT_EQ(amp_checkpoint_load(b, path.c_str(), extra, sizeof extra, &two.err), AMP_OK) << two.err.message;
    EXPECT_STREQ(extra, "position 5");
    for (unsigned i = 5; i < 9; i++) {
        Step(a, i, &ra), Step(b, i, &rb);
        EXPECT_EQ(ra.loss, rb.loss);
        EXPECT_EQ(ra.scale, rb.scale);
        EXPECT_EQ(ra.step, rb.step);
        EXPECT_EQ(ra.iteration, i + 1);
    }
    EXPECT_EQ(one.Weight(), two.Weight());
    // the CPU goes on from it, and CUDA from the CPU's
    TinyOnCuda three;
    amp_session *cpu = three.Open(TinyOptions(8));
    ASSERT_EQ(amp_checkpoint_save(a, path.c_str(), nullptr, &one.err), AMP_OK);
    ASSERT_EQ(amp_checkpoint_load(cpu, path.c_str(), nullptr, 0, &one.err), AMP_OK) << one.err.message;
    EXPECT_EQ(three.Weight(), one.Weight());
    Step(cpu, 9, &ra);
    EXPECT_EQ(ra.iteration, 10);
    ASSERT_EQ(amp_checkpoint_save(cpu, path.c_str(), nullptr, &one.err), AMP_OK);
    ASSERT_EQ(amp_checkpoint_load(b, path.c_str(), nullptr, 0, &one.err), AMP_OK) << one.err.message;
    EXPECT_EQ(three.Weight(), two.Weight());
    Step(b, 10, &rb);
    EXPECT_EQ(rb.iteration, 11);
    unlink(path.c_str());
}

TEST_F(Home, OptimizerStateGetAndSet) {
    TinyOnCuda tiny;
    amp_session *session = tiny.Open(CudaOptions(8));
    std::vector<float> m(TINY_CLASSES), read(TINY_CLASSES);
    for (int i = 0; i < TINY_CLASSES; i++) m[i] = 0.25f * (float)i;
    Step(session, 1);
    ASSERT_EQ(amp_session_set_moment(session, "fc.bias/momentum", m.data(), m.size(), &tiny.err), AMP_OK);
    ASSERT_EQ(amp_session_get_moment(session, "fc.bias/momentum", read.data(), read.size(), &tiny.err), AMP_OK);
    EXPECT_EQ(m, read);
}

TEST_F(Home, NothingIsLeftBehind) {
    {
        TinyOnCuda tiny;
        amp_session *session = tiny.Open(CudaOptions(8));
        Step(session, 1);
        tiny.Open(CudaOptions(4));
    }
    ExpectNoLeak();
}

// Versions are the host's.
TEST_F(Home, PublishingIsRefused) {
    TinyOnCuda tiny;
    amp::SessionOptions on_cuda = CudaOptions(8);
    amp_session *other;
    ASSERT_EQ(amp_params_publish(tiny.params, nullptr, &tiny.err), AMP_OK) << tiny.err.message;
    on_cuda.published = 1;
    EXPECT_EQ(amp_session_create(tiny.model, tiny.params, &on_cuda, &other, &tiny.err), AMP_UNSUPPORTED);
    EXPECT_EQ(other, nullptr);
    ExpectMessage(tiny.err, "the device cuda reads its own; use the device cpu for sessions with published = 1");
    amp_session *cuda = tiny.Open(CudaOptions(8));
    Step(cuda, 1);
    EXPECT_EQ(amp_params_publish(tiny.params, nullptr, &tiny.err), AMP_UNSUPPORTED);
    ExpectMessage(tiny.err, "its params live in the memory of cuda:0 (");
    tiny.Close(cuda);
}

} // namespace
