// Sessions: what they refuse and in which words, scaler, values, memory, lifetimes.
#include <cmath>
#include <cstring>

#include "tests/base/failing_allocator.h"
#include "tests/runtime/tiny.h"

namespace {

void ExpectMessage(const amp_error &err, const char *part) {
    EXPECT_NE(std::string(err.message).find(part), std::string::npos) << err.message;
}

TEST(Session, RefusesBadOptions) {
    Tiny tiny(TinyOptions(8));
    amp_session *s;
    const struct {
        const char *message;
        amp_status status;
        void (*change)(amp::SessionOptions *);
    } cases[] = {
        {"struct_size is 0", AMP_INVALID_ARGUMENT, [](amp::SessionOptions *o) { o->struct_size = 0; }},
        {"capacity -1", AMP_INVALID_ARGUMENT, [](amp::SessionOptions *o) { o->capacity.n = -1; }},
        {"capacity 99999999", AMP_INVALID_ARGUMENT, [](amp::SessionOptions *o) { o->capacity.n = 99999999; }},
        {"threads -1", AMP_INVALID_ARGUMENT, [](amp::SessionOptions *o) { o->threads = -1; }},
        {"device gpu", AMP_NOT_FOUND, [](amp::SessionOptions *o) { o->device = "gpu"; }},
        {"isa v9", AMP_NOT_FOUND, [](amp::SessionOptions *o) { o->cpu.isa = "v9"; }},
    };
    for (const auto &c : cases) {
        amp::SessionOptions o = TinyOptions(8);
        c.change(&o);
        EXPECT_EQ(amp_session_create(tiny.model, tiny.params, &o, &s, &tiny.err), c.status) << c.message;
        EXPECT_EQ(s, nullptr);
        ExpectMessage(tiny.err, c.message);
    }
}

// tests/e2e/shared_params_test.cc has models that differ.
TEST(Session, TakesParamsOfTheSameModelLoadedAgain) {
    Tiny tiny(TinyOptions(8)), other(TinyOptions(8));
    TinyBatch batch(8);
    const amp::SessionOptions o = TinyOptions(8);
    amp_session *s = nullptr;
    ASSERT_EQ(amp_session_create(tiny.model, other.params, &o, &s, &tiny.err), AMP_OK) << tiny.err.message;
    ASSERT_EQ(amp_step(s, batch.inputs, {8, 0}, nullptr, &tiny.err), AMP_OK) << tiny.err.message;
    EXPECT_NE(other.Weight(), tiny.Weight());
    ASSERT_EQ(amp_step(tiny.session, batch.inputs, {8, 0}, nullptr, &tiny.err), AMP_OK) << tiny.err.message;
    EXPECT_EQ(other.Weight(), tiny.Weight());
    amp_session_release(s);
}

TEST(Session, AnOlderCallersOptionsAreShorter) {
    Tiny tiny(TinyOptions(8));
    amp::SessionOptions o = TinyOptions(8);
    o.struct_size = offsetof(amp_session_options, threads);
    o.threads = -5; // past the end: not read
    amp_session *s;
    ASSERT_EQ(amp_session_create(tiny.model, tiny.params, &o, &s, &tiny.err), AMP_OK) << tiny.err.message;
    amp_session_release(s);
}

TEST(Session, RefusesBadCalls) {
    Tiny tiny(TinyOptions(8));
    TinyBatch batch(8);
    amp_step_report r;
    const void *missing[] = {batch.x.data(), nullptr};
    EXPECT_EQ(amp_step(nullptr, batch.inputs, {1, 0}, &r, &tiny.err), AMP_INVALID_ARGUMENT);
    EXPECT_EQ(amp_step(tiny.session, batch.inputs, {0, 0}, &r, &tiny.err), AMP_INVALID_ARGUMENT);
    EXPECT_EQ(amp_step(tiny.session, batch.inputs, {9, 0}, &r, &tiny.err), AMP_INVALID_ARGUMENT);
    ExpectMessage(tiny.err, "n is 9; this session takes 1 to 8 samples");
    EXPECT_EQ(amp_step(tiny.session, missing, {8, 0}, &r, &tiny.err), AMP_INVALID_ARGUMENT);
    ExpectMessage(tiny.err, "input targets is NULL");
    EXPECT_EQ(amp_step(tiny.session, nullptr, {8, 0}, &r, &tiny.err), AMP_INVALID_ARGUMENT);
    EXPECT_EQ(amp_infer(tiny.session, batch.inputs, {8, 0}, nullptr, &tiny.err), AMP_INVALID_ARGUMENT);
    ExpectMessage(tiny.err, "amp_infer: outputs is NULL");
    double metric;
    EXPECT_EQ(amp_session_get_metrics(tiny.session, &metric, &tiny.err), AMP_WRONG_STATE);
    EXPECT_EQ(amp_step(tiny.session, batch.inputs, {8, 0}, nullptr, nullptr), AMP_OK);
}

TEST(Session, ClassIndicesAreChecked) {
    Tiny tiny(TinyOptions(8));
    TinyBatch batch(8);
    std::vector<float> before = tiny.Weight();
    for (int bad : {-1, (int)TINY_CLASSES, -101, 1 << 30}) {
        batch.targets[5] = bad;
        EXPECT_EQ(amp_step(tiny.session, batch.inputs, {8, 0}, nullptr, &tiny.err), AMP_INVALID_ARGUMENT);
        ExpectMessage(tiny.err, ("input targets, sample 5: index " + std::to_string(bad)).c_str());
        EXPECT_EQ(amp_eval(tiny.session, batch.inputs, {8, 0}, nullptr, nullptr, &tiny.err), AMP_INVALID_ARGUMENT);
    }
    EXPECT_EQ(amp_step(tiny.session, batch.inputs, {5, 0}, nullptr, &tiny.err), AMP_OK) << "sample 5 is not part of it";
    EXPECT_NE(tiny.Weight(), before);
}

TEST(Session, InferenceSessionsHoldNoTrainingState) {
    amp::SessionOptions o = TinyOptions(8);
    Tiny training(o);
    o.program = "infer";
    Tiny tiny(o);
    TinyBatch batch(8);
    amp_scaler_state scaler;
    amp_memory_info with, without;
    amp_session_get_memory(training.session, &with);
    amp_session_get_memory(tiny.session, &without);
    EXPECT_LT(without.moments, with.moments);
    EXPECT_LT(without.total, with.total);
    EXPECT_EQ(amp_step(tiny.session, batch.inputs, {8, 0}, nullptr, &tiny.err), AMP_WRONG_STATE);
    ExpectMessage(tiny.err, "amp_step: the session was created with program = \"infer\"");
    EXPECT_EQ(amp_session_get_scaler(tiny.session, &scaler, &tiny.err), AMP_WRONG_STATE);
    double a, b;
    EXPECT_EQ(amp_eval(training.session, batch.inputs, {8, 0}, &a, nullptr, &tiny.err), AMP_OK) << tiny.err.message;
    EXPECT_EQ(amp_eval(tiny.session, batch.inputs, {8, 0}, &b, nullptr, &tiny.err), AMP_OK) << tiny.err.message;
    EXPECT_EQ(a, b);
}

TEST(Session, SessionsShareParams) {
    Tiny tiny(TinyOptions(8));
    amp::SessionOptions o = TinyOptions(8);
    o.program = "infer";
    amp_session *eval;
    ASSERT_EQ(amp_session_create(tiny.model, tiny.params, &o, &eval, &tiny.err), AMP_OK);
    TinyBatch batch(8);
    double a, b;
    ASSERT_EQ(amp_step(tiny.session, batch.inputs, {8, 0}, nullptr, &tiny.err), AMP_OK);
    ASSERT_EQ(amp_eval(tiny.session, batch.inputs, {8, 0}, &a, nullptr, &tiny.err), AMP_OK);
    ASSERT_EQ(amp_eval(eval, batch.inputs, {8, 0}, &b, nullptr, &tiny.err), AMP_OK);
    EXPECT_EQ(a, b);
    amp_session_release(eval);
}

TEST(Session, SetParamsReachDerivedStates) {
    Tiny tiny(TinyOptions(8));
    std::vector<float> zero(TINY_CLASSES * TINY_FEATURES), bias(TINY_CLASSES);
    for (int i = 0; i < TINY_CLASSES; i++) bias[i] = (float)i;
    TinyBatch batch(8);
    std::vector<float> logits(8 * TINY_CLASSES);
    void *outputs[] = {logits.data()};
    ASSERT_EQ(amp_infer(tiny.session, batch.inputs, {8, 0}, outputs, &tiny.err), AMP_OK) << tiny.err.message;
    ASSERT_EQ(amp_params_set(tiny.params, "fc.weight", zero.data(), zero.size(), &tiny.err), AMP_OK);
    ASSERT_EQ(amp_params_set(tiny.params, "fc.bias", bias.data(), bias.size(), &tiny.err), AMP_OK);
    ASSERT_EQ(amp_infer(tiny.session, batch.inputs, {8, 0}, outputs, &tiny.err), AMP_OK) << tiny.err.message;
    for (size_t i = 0; i < logits.size(); i++) ASSERT_EQ(logits[i], bias[i % TINY_CLASSES]);
    EXPECT_EQ(amp_params_set(tiny.params, "fc.bias", bias.data(), 3, &tiny.err), AMP_INVALID_ARGUMENT);
    ExpectMessage(tiny.err, "parameter fc.bias: has 10 elements, the call says 3");
    EXPECT_EQ(amp_params_set(tiny.params, "fc.bais", bias.data(), 10, &tiny.err), AMP_NOT_FOUND);
    EXPECT_EQ(amp_params_get(tiny.params, "step", bias.data(), 1, &tiny.err), AMP_NOT_FOUND);
}

TEST(Session, OptimizerStateGetAndSet) {
    Tiny tiny(TinyOptions(8));
    std::vector<float> m(TINY_CLASSES), read(TINY_CLASSES);
    for (int i = 0; i < TINY_CLASSES; i++) m[i] = 0.25f * (float)i;
    ASSERT_EQ(amp_session_set_moment(tiny.session, "fc.bias/momentum", m.data(), m.size(), &tiny.err), AMP_OK);
    ASSERT_EQ(amp_session_get_moment(tiny.session, "fc.bias/momentum", read.data(), read.size(), &tiny.err), AMP_OK);
    EXPECT_EQ(m, read);
    EXPECT_EQ(amp_session_get_moment(tiny.session, "fc.bias/v", read.data(), read.size(), &tiny.err), AMP_NOT_FOUND);
    EXPECT_EQ(amp_session_get_moment(tiny.session, "fc.bias", read.data(), read.size(), &tiny.err), AMP_NOT_FOUND);
}

// Kernels read arrays as arrays of C: an address between two elements is refused.
TEST(Session, ArraysAreAligned) {
    Tiny tiny(TinyOptions(8));
    TinyBatch batch(8);
    std::vector<char> x(8 * TINY_FEATURES * 4 + 8), y(8 * TINY_CLASSES * 4 + 8);
    char *aligned = x.data() + (8 - (uintptr_t)x.data() % 8) % 8,
         *result = y.data() + (8 - (uintptr_t)y.data() % 8) % 8;
    for (int off = 0; off < 5; off++) {
        const void *inputs[] = {aligned + off, batch.inputs[1]}, *targets[] = {batch.inputs[0], aligned + off};
        void *outputs[] = {result}, *shifted[] = {result + off};
        amp_status wanted = off % 4 ? AMP_INVALID_ARGUMENT : AMP_OK;
        EXPECT_EQ(amp_step(tiny.session, inputs, {8, 0}, nullptr, &tiny.err), wanted) << off;
        if (off % 4) ExpectMessage(tiny.err, "is not aligned to its elements of 4 bytes");
        EXPECT_EQ(amp_eval(tiny.session, targets, {8, 0}, nullptr, nullptr, &tiny.err), wanted) << off;
        EXPECT_EQ(amp_infer(tiny.session, inputs, {8, 0}, outputs, &tiny.err), wanted) << off;
        EXPECT_EQ(amp_infer(tiny.session, batch.inputs, {8, 0}, shifted, &tiny.err), wanted) << off;
    }
}

TEST(Scaler, FloorIsStickyAndSaysWhatToDo) {
    Tiny tiny(TinyOptions(8));
    TinyBatch good(8, 1), bad(8, 2);
    bad.x[0] = NAN;
    amp_scaler_state state = {2, 0, 0, 0, 5, 9};
    ASSERT_EQ(amp_session_set_scaler(tiny.session, &state, &tiny.err), AMP_OK) << tiny.err.message;
    amp_step_report r;
    EXPECT_EQ(amp_step(tiny.session, bad.inputs, {8, 0}, &r, &tiny.err), AMP_OK);
    EXPECT_EQ(r.at_floor, 0);
    EXPECT_EQ(amp_step(tiny.session, bad.inputs, {8, 0}, &r, &tiny.err), AMP_SCALE_AT_FLOOR);
    ExpectMessage(tiny.err, "iteration 11: gradients overflow f16 though the loss scale is at its floor of 1");
    EXPECT_EQ(r.at_floor, 1);
    EXPECT_EQ(r.skipped, 1);
    EXPECT_EQ(r.step, 5);
    EXPECT_EQ(amp_step(tiny.session, good.inputs, {8, 0}, &r, &tiny.err), AMP_SCALE_AT_FLOOR) << "sticky";
    EXPECT_EQ(r.skipped, 0);
    EXPECT_EQ(r.step, 6);
    state = {1024, 0, 0, 0, 6, 12};
    ASSERT_EQ(amp_session_set_scaler(tiny.session, &state, &tiny.err), AMP_OK);
    EXPECT_EQ(amp_step(tiny.session, good.inputs, {8, 0}, &r, &tiny.err), AMP_OK) << tiny.err.message;
    ASSERT_EQ(amp_session_get_scaler(tiny.session, &state, &tiny.err), AMP_OK);
    EXPECT_EQ(state.iteration, 13);
}

// A scale at which 1 / scale overflows makes every weight NaN in the next step; at inf no step is ever applied.
TEST(Scaler, OnlyUsableNumbersAreSet) {
    Tiny tiny(TinyOptions(8));
    amp_scaler_state state;
    for (float scale : {-1.0f, NAN, 0.0f, 1e-45f, 1e-40f, 0x1.fffffep126f, INFINITY}) {
        state = {scale, 0, 0, 0, 6, 12};
        EXPECT_EQ(amp_session_set_scaler(tiny.session, &state, &tiny.err), AMP_INVALID_ARGUMENT) << scale;
        ExpectMessage(tiny.err, "a loss scale is a number from 2^-126 (1.2e-38) to 2^126 (8.5e37)");
    }
    const amp_scaler_state wrong[] = {{1, -1, 0, 0, 0, 0},        {1, INT32_MAX, 0, 0, 0, 0},
                                      {1, 0, -1, 0, 0, 0},        {1, 0, INT32_MAX, 0, 0, 0},
                                      {1, 0, 0, 0, -1, 0},        {1, 0, 0, 0, (INT64_C(1) << 53) + 1, 0},
                                      {1, 0, 0, 0, 0, INT64_MAX}, {1, 0, 0, 0, 0, -1}};
    for (const amp_scaler_state &s : wrong)
        EXPECT_EQ(amp_session_set_scaler(tiny.session, &s, &tiny.err), AMP_INVALID_ARGUMENT);
    ASSERT_EQ(amp_session_get_scaler(tiny.session, &state, &tiny.err), AMP_OK);
    EXPECT_EQ(state.scale, TINY_SCALE);
    for (float scale : {0x1p-126f, 0x1p126f}) {
        state = {scale, 0, 0, 0, INT64_C(1) << 53, INT64_C(1) << 53};
        EXPECT_EQ(amp_session_set_scaler(tiny.session, &state, &tiny.err), AMP_OK) << tiny.err.message;
    }
}

TEST(Values, OfTheLastStep) {
    amp::SessionOptions o = TinyOptions(40);
    Tiny plain(o);
    o.inspect.keep_values = 1;
    Tiny tiny(o);
    TinyReference reference(tiny);
    TinyBatch batch(33);
    amp_tensor_info info;
    EXPECT_EQ(amp_session_get_value(tiny.session, "logits", &info, nullptr, 0, &tiny.err), AMP_WRONG_STATE);
    ASSERT_EQ(amp_step(tiny.session, batch.inputs, {33, 0}, nullptr, &tiny.err), AMP_OK);
    ASSERT_EQ(amp_step(plain.session, batch.inputs, {33, 0}, nullptr, &tiny.err), AMP_OK);
    EXPECT_EQ(amp_session_get_value(plain.session, "logits", &info, nullptr, 0, &tiny.err), AMP_WRONG_STATE);
    std::vector<double> expected = reference.Logits(batch);
    reference.Gradients(batch);
    // an evaluation must not disturb them
    ASSERT_EQ(amp_eval(tiny.session, batch.inputs, {7, 0}, nullptr, nullptr, &tiny.err), AMP_OK);

    std::vector<float> logits(33 * TINY_CLASSES), gradient(TINY_CLASSES * TINY_FEATURES);
    ASSERT_EQ(amp_session_get_value(tiny.session, "logits", &info, logits.data(), logits.size() * 4, &tiny.err), AMP_OK)
        << tiny.err.message;
    EXPECT_EQ(info.rank, 2);
    EXPECT_EQ(info.dims[0], 33);
    EXPECT_EQ(info.dims[1], TINY_CLASSES);
    ExpectNear(logits, expected, 1e-5);
    ASSERT_EQ(
        amp_session_get_value(tiny.session, "grad.fc.weight", &info, gradient.data(), gradient.size() * 4, &tiny.err),
        AMP_OK)
        << tiny.err.message;
    ExpectNear(gradient, reference.gw, 1e-6);
    ASSERT_EQ(amp_session_get_value(tiny.session, "d.logits", &info, nullptr, 0, &tiny.err), AMP_OK)
        << tiny.err.message;
    EXPECT_EQ(info.rank, 3) << "its own shape, not the shape of the matrix in memory";
    EXPECT_EQ(info.dims[0], 33);
    EXPECT_EQ(info.dims[1], 2);
    EXPECT_EQ(info.dims[2], 5);
    unsigned char ok = 9;
    ASSERT_EQ(amp_session_get_value(tiny.session, "ok", &info, &ok, 1, &tiny.err), AMP_OK) << tiny.err.message;
    EXPECT_EQ(info.dtype, AMP_DT_BOOL);
    EXPECT_EQ(info.rank, 0);
    EXPECT_EQ(ok, 1);
    EXPECT_EQ(amp_session_get_value(tiny.session, "ok", &info, &ok, 4, &tiny.err), AMP_INVALID_ARGUMENT);
    EXPECT_EQ(amp_session_get_value(tiny.session, "nothing", &info, nullptr, 0, &tiny.err), AMP_NOT_FOUND);
    int count = 0;
    for (const char *name, *last = ""; (name = amp_session_value_name(tiny.session, count)); last = name, count++)
        EXPECT_LT(strcmp(last, name), 0);
    EXPECT_EQ(count, 14);
    EXPECT_EQ(amp_session_value_name(plain.session, 0), nullptr);
}

TEST(NullDevice, PlansEverythingAndChangesNothing) {
    amp::SessionOptions o = TinyOptions(64);
    Tiny cpu(o);
    o.device = "null";
    Tiny tiny(o);
    TinyBatch batch(64);
    amp_memory_info a, b;
    amp_session_get_memory(cpu.session, &a);
    amp_session_get_memory(tiny.session, &b);
    EXPECT_EQ(a.activations, b.activations);
    EXPECT_EQ(a.moments, b.moments);
    std::vector<float> before = tiny.Weight();
    amp_step_report r;
    ASSERT_EQ(amp_step(tiny.session, batch.inputs, {64, 0}, &r, &tiny.err), AMP_OK) << tiny.err.message;
    EXPECT_EQ(r.loss, 0);
    EXPECT_EQ(r.skipped, 0);
    EXPECT_EQ(tiny.Weight(), before);
    // its session does not count as having refreshed the derived states
    amp_session *other;
    amp::SessionOptions options = TinyOptions(64);
    ASSERT_EQ(amp_session_create(tiny.model, tiny.params, &options, &other, &tiny.err), AMP_OK);
    double x, y;
    ASSERT_EQ(amp_eval(other, batch.inputs, {64, 0}, &x, nullptr, &tiny.err), AMP_OK);
    ASSERT_EQ(amp_eval(cpu.session, batch.inputs, {64, 0}, &y, nullptr, &tiny.err), AMP_OK);
    EXPECT_EQ(x, y);
    amp_session_release(other);
}

// An allocator that knows how many bytes are out now.
struct Counter {
    size_t live = 0;
    static void *Alloc(void *user, size_t size, size_t align) {
        ((Counter *)user)->live += size;
        return aligned_alloc(align, (size + align - 1) / align * align);
    }
    static void Free(void *user, void *ptr, size_t size, size_t) {
        ((Counter *)user)->live -= size;
        free(ptr);
    }
};

TEST(Memory, ReportIsWhatWasAllocated) {
    for (int kind = 0; kind < 4; kind++) {
        Counter counter;
        amp_allocator a = {&counter, Counter::Alloc, Counter::Free};
        amp::SessionOptions o = TinyOptions(100);
        o.inspect.separate_buffers = kind & 1, o.inspect.keep_values = kind >> 1, o.threads = 2;
        amp_model *model;
        amp_params *params;
        amp_session *session;
        amp_error err = {};
        ASSERT_EQ(amp_model_from_desc(amp_model_query(), "tiny", &a, &model, &err), AMP_OK);
        size_t of_model = counter.live;
        ASSERT_EQ(amp_params_create(model, nullptr, &params, &err), AMP_OK);
        ASSERT_EQ(amp_session_create(model, params, &o, &session, &err), AMP_OK);
        TinyBatch batch(100);
        ASSERT_EQ(amp_step(session, batch.inputs, {100, 0}, nullptr, &err), AMP_OK);
        amp_memory_info m;
        amp_session_get_memory(session, &m);
        EXPECT_EQ(m.total, counter.live - of_model);
        EXPECT_EQ(m.total, m.params + m.derived + m.moments + m.activations + m.outputs + m.scratch);
        EXPECT_EQ(m.params, 2u * 32 * 32 * 4 + 128 + 128); // panels of 10 x 40, bias, one i64
        size_t after_first = counter.live;
        ASSERT_EQ(amp_step(session, batch.inputs, {90, 0}, nullptr, &err), AMP_OK);
        EXPECT_EQ(counter.live, after_first) << "a step allocates nothing";
        amp_model_release(model);
        amp_params_release(params);
        amp_session_release(session);
        EXPECT_EQ(counter.live, 0u);
    }
}

// Every allocation of load, params, session, step and files fails in turn: an error, and nothing leaks.
TEST(Memory, EveryAllocationMayFail) {
    std::string path = ::testing::TempDir() + "oom.st";
    for (int fail = 0;; fail++) {
        ASSERT_LT(fail, 1000);
        FailingAllocator failing(fail);
        amp_allocator a = failing.get();
        amp::SessionOptions o = TinyOptions(8);
        o.inspect.keep_values = fail % 2, o.inspect.separate_buffers = fail / 2 % 2, o.threads = 2;
        amp_model *model = nullptr;
        amp_params *params = nullptr;
        amp_session *session = nullptr;
        amp_error err = {};
        TinyBatch batch(8);
        amp_status status = amp_model_from_desc(amp_model_query(), "tiny", &a, &model, &err);
        if (!status) status = amp_params_create(model, nullptr, &params, &err);
        if (!status) status = amp_session_create(model, params, &o, &session, &err);
        if (!status) status = amp_step(session, batch.inputs, {8, 0}, nullptr, &err);
        if (!status) status = amp_checkpoint_save(session, path.c_str(), "x", &err);
        if (!status) status = amp_checkpoint_load(session, path.c_str(), nullptr, 0, &err);
        if (!status) status = amp_params_load(params, path.c_str(), nullptr, nullptr, &err);
        amp_session_release(session);
        amp_params_release(params);
        amp_model_release(model);
        if (!status) break;
        ASSERT_EQ(status, AMP_OUT_OF_MEMORY) << fail << ": " << err.message;
    }
}

} // namespace
