// A model whose T is known at run time gives, at each T, the bits of the same model compiled for that T: losses,
// results and weights after steps, on any number of threads.
#include <cmath>

#include "tests/base/counted_memory.h"
#include "tests/e2e/harness.h"

namespace {

using e2e::Training;

const char *const kPrecisions[] = {"fp32", "bf16", "fp16"};

// |length| 0: for any T.
std::string compile(const std::string &name, const std::string &text, int64_t length) {
    const std::string number = std::to_string(length);
    const amp_define define = {"T", number.c_str()};
    amp_compile_options o = {};
    o.target = "cpu";
    if (length) o.defines = &define, o.define_count = 1;
    return e2e::compile_to_file(text, name + std::to_string(length) + ".so", o);
}

std::string text_of(const std::string &body, const std::string &precision) {
    return "amp 1\nsize T = 64\nmodel m(x: f32[N, T, 24]) -> logits {\n" + body +
           "}\ntrain m {\n    input targets: i32[N]\n    loss = cross_entropy(logits, targets)\n"
           "    metric acc = accuracy(logits, targets)\n    optimizer = adamw(lr = 0.01)\n}\nprecision " +
           precision + " { }\n";
}

std::string encoder(const std::string &precision, const std::string &attention = "causal = true, p = 0.2") {
    return text_of("    h = x + (self_attention(layer_norm(x) as ln; heads = 2, " + attention +
                       ") as attn)\n"
                       "    h = h + (linear(gelu(linear(layer_norm(h) as ln2; out = 40) as up); out = 24) as down)\n"
                       "    logits = linear(mean(h; dims = (1)); out = 10) as head\n",
                   precision);
}

struct Made {
    std::vector<double> losses;
    std::vector<float> weights, logits;
    double eval = 0;
};

Made run(const std::string &path, int64_t n, int64_t t, bool symbolic, int threads) {
    Made made;
    Training r(path, n, threads);
    EXPECT_TRUE(r.ok()) << r.err.message;
    if (!r.ok()) return made;
    const amp_sizes sizes = {n, symbolic ? t : 0};
    for (int i = 0; i < 3; i++) {
        e2e::Batch batch(n, t * 24, 10, 100 + static_cast<uint32_t>(i));
        amp_step_report report = {};
        EXPECT_EQ(amp_step(r.session, batch.inputs(), sizes, &report, &r.err), AMP_OK) << r.err.message;
        made.losses.push_back(report.loss);
    }
    e2e::Batch batch(n, t * 24, 10, 7);
    EXPECT_EQ(amp_eval(r.session, batch.inputs(), sizes, &made.eval, nullptr, &r.err), AMP_OK) << r.err.message;
    made.logits.resize(static_cast<size_t>(n * 10));
    void *outputs[] = {made.logits.data()};
    EXPECT_EQ(amp_infer(r.session, batch.inputs(), sizes, outputs, &r.err), AMP_OK) << r.err.message;
    made.weights = e2e::all_params(r);
    return made;
}

void expect_equal(const Made &a, const Made &b, const std::string &what) {
    EXPECT_EQ(a.losses, b.losses) << what;
    EXPECT_EQ(a.eval, b.eval) << what;
    EXPECT_TRUE(e2e::same_bits(a.logits, b.logits)) << what;
    EXPECT_TRUE(e2e::same_bits(a.weights, b.weights)) << what;
}

void compare(const std::string &name, const std::string &text, std::initializer_list<int64_t> lengths, int64_t n = 3) {
    const std::string any = compile(name, text, 0);
    for (int64_t t : lengths) {
        const Made fixed = run(compile(name, text, t), n, t, false, 1);
        for (int threads : {1, 2, 8})
            expect_equal(fixed, run(any, n, t, true, threads),
                         name + " at " + std::to_string(t) + ", " + std::to_string(threads) + " threads");
    }
}

TEST(Length, OfAnEncoder) {
    for (const char *precision : kPrecisions)
        compare(std::string("encoder-") + precision, encoder(precision), {1, 7, 16, 33, 64});
}

TEST(Length, OfAttentionThatSeesAll) {
    const std::string body = "    h = dropout(self_attention(x; heads = 2) as attn; p = 0.2)\n"
                             "    logits = linear(mean(h; dims = (1)); out = 10) as head\n";
    compare("sees-all", text_of(body, "fp32"), {1, 8, 64});
}

// Products of samples, whose inner dimension is T.
TEST(Length, OfProductsOfSamples) {
    const std::string body =
        "    r = mean(x; dims = 2)\n    h = matmul(softmax(matmul(r, transpose(r)); dim = -1), r)\n"
        "    logits = linear(reshape(max(h; dims = 1); shape = [N, 1]); out = 10) as head\n";
    compare("samples", text_of(body, "bf16"), {8, 64});
}

// A T of 1 is no dimension of 1, which reductions leave out.
TEST(Length, OfOne) {
    const std::string body = "    h = transpose(reshape(x; shape = [N, T, 3, 8]); a = 1, b = 2)\n"
                             "    logits = linear(flatten(sum(layer_norm(h) as ln; dims = 2)); out = 10) as head\n";
    compare("one", text_of(body, "fp32"), {1}, 13);
    const std::string down = "    r = prelu(mean(x; dims = 2))\n"
                             "    h = matmul(r, softmax(matmul(transpose(r), r); dim = -2))\n"
                             "    logits = linear(reshape(max(h; dims = 1); shape = [N, 1]); out = 10) as head\n";
    compare("one-down", text_of(down, "bf16"), {1}, 13);
}

// ---- dropout -------------------------------------------------------------------------------------------------------

// Places that are not |seen| count nowhere, so the loss is of the samples alone.
std::string padded(int accumulate, const std::string &p = "0.3") {
    return "amp 1\nsize T = 64\nmodel m(x: f32[N, T, 24], seen: f32[N, T]) -> logits {\n"
           "    h = dropout(linear(x; out = 24) as fc; p = " +
           p +
           ")\n"
           "    q = reshape(h; shape = [N, 1, T, 24])\n"
           "    y = attention(q, q, q, reshape(seen; shape = [N, 1, 1, T]) != 0.0; p = " +
           p +
           ")\n"
           "    y = reshape(y; shape = [N, T, 24]) * reshape(seen; shape = [N, T, 1])\n"
           "    logits = linear(sum(y; dims = (1)); out = 10) as head\n}\n"
           "train m {\n    input targets: i32[N]\n    loss = cross_entropy(logits, targets)\n"
           "    optimizer = sgd(lr = 0.1)\n    accumulate = " +
           std::to_string(accumulate) + "\n}\nprecision fp32 { }\n";
}

enum { kSamples = 4, kPlaces = 8, kWidth = 24 };

// Of a step on the samples, which are kPlaces long: their padding makes them |t|.
double loss_of(const std::string &path, int64_t t, int accumulate, bool symbolic) {
    const int64_t n = kSamples / accumulate;
    Training r(path, n);
    EXPECT_TRUE(r.ok()) << r.err.message;
    if (!r.ok()) return 0.0;
    e2e::Batch all(kSamples, kPlaces * kWidth, 10, 5);
    amp_step_report report = {};
    for (int micro = 0; micro < accumulate; micro++) {
        std::vector<float> x(static_cast<size_t>(n * t * kWidth)), seen(static_cast<size_t>(n * t));
        for (int64_t i = 0; i < n; i++) {
            const float *sample = all.x.data() + (micro * n + i) * kPlaces * kWidth;
            std::copy(sample, sample + kPlaces * kWidth, x.begin() + i * t * kWidth);
            std::fill_n(seen.begin() + i * t, int{kPlaces}, 1.0f);
        }
        const void *inputs[] = {x.data(), seen.data(), all.y.data() + micro * n};
        EXPECT_EQ(amp_step(r.session, inputs, {n, symbolic ? t : 0}, &report, &r.err), AMP_OK) << r.err.message;
    }
    EXPECT_TRUE(report.complete);
    return report.loss;
}

TEST(Length, ASampleHasOneMaskInBatchesOfAnyLength) {
    const std::string path = compile("padded", padded(1), 0);
    const double loss = loss_of(path, kPlaces, 1, true);
    for (int64_t t : {9, 16, 64}) EXPECT_NEAR(loss_of(path, t, 1, true), loss, 2e-6) << t;
    EXPECT_NEAR(loss_of(compile("padded", padded(1), 13), 13, 1, false), loss, 2e-6);
    EXPECT_GT(std::fabs(loss_of(compile("kept", padded(1, "0.0"), 0), kPlaces, 1, true) - loss), 1e-4);
}

TEST(Length, ASampleHasOneMaskInMicroBatches) {
    const double loss = loss_of(compile("whole", padded(1), 0), kPlaces, 1, true);
    EXPECT_NEAR(loss_of(compile("micro", padded(2), 0), kPlaces, 2, true), loss, 2e-6);
}

// ---- calls ---------------------------------------------------------------------------------------------------------

TEST(Length, OfACallIsChecked) {
    std::string text = encoder("fp32");
    text.replace(text.find("size T = 64"), 11, "size T = 64, unit = 8");
    const std::string path = compile("unit-", text, 0);
    Training r(path, 2);
    ASSERT_TRUE(r.ok());
    amp_model_info info;
    amp_model_get_info(r.model, &info);
    EXPECT_EQ(info.length_most, 64);
    EXPECT_EQ(info.length_unit, 8);
    e2e::Batch batch(2, 64 * 24, 10, 1);
    for (int64_t t : {0, 4, 12, 65, 72, -8}) {
        EXPECT_EQ(amp_step(r.session, batch.inputs(), {2, t}, nullptr, &r.err), AMP_INVALID_ARGUMENT);
        EXPECT_EQ(std::string(r.err.message), "a call of this session: t is " + std::to_string(t) +
                                                  "; it must be from 8 to 64 and a multiple of 8");
    }
    EXPECT_EQ(amp_step(r.session, batch.inputs(), {2, 56}, nullptr, &r.err), AMP_OK) << r.err.message;
    amp_tensor_info input;
    ASSERT_EQ(amp_model_input_at(r.model, 0, {2, 16}, &input, &r.err), AMP_OK) << r.err.message;
    EXPECT_EQ(input.dims[1], 16);
    EXPECT_EQ(amp_model_input_at(r.model, 0, {2, 15}, &input, &r.err), AMP_INVALID_ARGUMENT);
    EXPECT_EQ(amp_model_expect(r.model, "x: f32[N, T, 24], targets: i32[N] -> logits: f32[N, 10]", &r.err), AMP_OK)
        << r.err.message;
}

// Of the encoder; compiled once.
const std::string &any_length() {
    static const std::string path = compile("any-", encoder("fp32"), 0);
    return path;
}

TEST(Length, OfASessionMayBeLess) {
    const std::string path = any_length();
    amp_model *model = nullptr;
    amp_error err = {};
    ASSERT_EQ(amp_model_load(path.c_str(), nullptr, &model, &err), AMP_OK) << err.message;
    amp_session_options o = {};
    o.struct_size = sizeof o;
    uint64_t before = 0;
    for (int64_t t : {1, 16, 40, 64, 0}) {
        o.capacity = {3, t};
        amp_memory_info memory;
        ASSERT_EQ(amp_session_plan(model, nullptr, &o, &memory, &err), AMP_OK) << err.message;
        if (t) EXPECT_GT(memory.activations, before);
        else EXPECT_EQ(memory.activations, before) << "0 is the model's largest";
        before = memory.activations;
    }
    o.capacity = {3, 65};
    amp_memory_info memory;
    EXPECT_EQ(amp_session_plan(model, nullptr, &o, &memory, &err), AMP_INVALID_ARGUMENT);
    EXPECT_EQ(std::string(err.message),
              "amp_session_options: capacity: t is 65; it must be from 1 to 64 and a multiple of 1");
    amp_model_release(model);
}

amp_model *load(const std::string &path, Counter *counter) {
    amp_allocator allocator = counter->allocator();
    amp_model_options with = {sizeof with, &allocator};
    amp_error err = {};
    amp_model *model = nullptr;
    EXPECT_EQ(amp_model_load(path.c_str(), &with, &model, &err), AMP_OK) << err.message;
    return model;
}

// What a session for some n, T and tokens takes is known before it is made, to the byte, and no call takes more.
TEST(Length, MemoryOfTwentyMaximaIsWhatIsAllocated) {
    const std::string path = any_length();
    Counter counter;
    amp_error err = {};
    amp_model *model = load(path, &counter);
    ASSERT_NE(model, nullptr);
    const size_t of_model = counter.live;
    uint32_t random = 3;
    for (int i = 0; i < 20; i++) {
        amp_session_options o = {};
        o.struct_size = sizeof o, o.threads = 1 + i % 3;
        o.capacity = {1 + e2e::Batch::next(random) / 65536 % 32, 1 + e2e::Batch::next(random) / 65536 % 64};
        if (i % 4 == 3) o.tokens = o.capacity.t + e2e::Batch::next(random) / 65536 % 500;
        amp_memory_info planned;
        amp_params *params = nullptr;
        amp_session *session = nullptr;
        ASSERT_EQ(amp_session_plan(model, nullptr, &o, &planned, &err), AMP_OK) << err.message;
        ASSERT_EQ(amp_params_create(model, nullptr, &params, &err), AMP_OK) << err.message;
        ASSERT_EQ(amp_session_create(model, params, &o, &session, &err), AMP_OK) << err.message;
        const auto expect_total = [&] {
            EXPECT_EQ(planned.total, counter.live - of_model) << o.capacity.n << " x " << o.capacity.t;
        };
        expect_total();
        e2e::Batch batch(o.capacity.n, o.capacity.t * 24, 10, 1);
        const amp_sizes sizes = {o.tokens ? 1 : o.capacity.n, o.capacity.t};
        EXPECT_EQ(amp_step(session, batch.inputs(), sizes, nullptr, &err), AMP_OK) << err.message;
        expect_total();
        amp_session_release(session);
        amp_params_release(params);
    }
    amp_model_release(model);
    EXPECT_EQ(counter.live, 0u);
}

// A session for few tokens takes less memory, and its calls have the bits of a session for all sizes: the longest
// calls, and the calls of most samples, too.
TEST(Length, OfASessionWithFewTokens) {
    const std::string path = any_length();
    amp_error err = {};
    amp_model *model = nullptr;
    ASSERT_EQ(amp_model_load(path.c_str(), nullptr, &model, &err), AMP_OK) << err.message;
    amp_session_options o = {};
    o.struct_size = sizeof o, o.capacity = {32, 64}, o.threads = 2;
    amp_params *params[2] = {};
    amp_session *session[2] = {};
    amp_memory_info memory[2];
    for (int i = 0; i < 2; i++) {
        o.tokens = i ? 128 : 0;
        amp_memory_info planned;
        ASSERT_EQ(amp_params_create(model, nullptr, &params[i], &err), AMP_OK) << err.message;
        ASSERT_EQ(amp_session_create(model, params[i], &o, &session[i], &err), AMP_OK) << err.message;
        ASSERT_EQ(amp_session_plan(model, nullptr, &o, &planned, &err), AMP_OK) << err.message;
        amp_session_get_memory(session[i], &memory[i]);
        EXPECT_EQ(planned.total, memory[i].total);
    }
    EXPECT_LT(memory[1].activations * 8, memory[0].activations);
    for (amp_sizes sizes : {amp_sizes{2, 64}, {32, 4}, {3, 42}, {18, 7}, {1, 1}}) {
        e2e::Batch batch(sizes.n, sizes.t * 24, 10, static_cast<uint32_t>(sizes.t));
        std::vector<float> logits[2];
        double loss[2];
        for (int i = 0; i < 2; i++) {
            amp_step_report report = {};
            logits[i].resize(static_cast<size_t>(sizes.n * 10));
            void *outputs[] = {logits[i].data()};
            ASSERT_EQ(amp_step(session[i], batch.inputs(), sizes, &report, &err), AMP_OK) << err.message;
            ASSERT_EQ(amp_infer(session[i], batch.inputs(), sizes, outputs, &err), AMP_OK) << err.message;
            loss[i] = report.loss;
        }
        EXPECT_EQ(loss[0], loss[1]);
        EXPECT_EQ(logits[0], logits[1]);
    }
    e2e::Batch batch(32, 64 * 24, 10, 1);
    EXPECT_EQ(amp_step(session[1], batch.inputs(), {3, 43}, nullptr, &err), AMP_INVALID_ARGUMENT);
    EXPECT_EQ(std::string(err.message), "n * t is 3 * 43 = 129; this session takes 128 at most (tokens): give it fewer "
                                        "samples, or create one for more");
    o.tokens = -1;
    EXPECT_EQ(amp_session_plan(model, nullptr, &o, &memory[0], &err), AMP_INVALID_ARGUMENT);
    EXPECT_EQ(std::string(err.message),
              "amp_session_options: tokens is -1; it must be 0 (any n * t) or at least 1, the unit of T");
    for (int i = 0; i < 2; i++) {
        amp_session_release(session[i]);
        amp_params_release(params[i]);
    }
    amp_model_release(model);
}

TEST(Length, CallsOfAnySizesAllocateNothing) {
    const std::string path = any_length();
    Counter counter;
    amp_error err = {};
    amp_model *model = load(path, &counter);
    ASSERT_NE(model, nullptr);
    amp_params *params = nullptr;
    amp_session *session = nullptr;
    ASSERT_EQ(amp_params_create(model, nullptr, &params, &err), AMP_OK) << err.message;
    amp_session_options o = {};
    o.struct_size = sizeof o, o.capacity = {4, 24}, o.threads = 2, o.tokens = 60;
    ASSERT_EQ(amp_session_create(model, params, &o, &session, &err), AMP_OK) << err.message;
    e2e::Batch batch(4, 24 * 24, 10, 1);
    std::vector<float> logits(40);
    void *outputs[] = {logits.data()};
    ASSERT_EQ(amp_step(session, batch.inputs(), {2, 24}, nullptr, &err), AMP_OK) << err.message;
    const int64_t before = counter.calls;
    uint32_t random = 7;
    for (int i = 0; i < 10000; i++) {
        const int64_t n = 1 + e2e::Batch::next(random) / 65536 % 4;
        const int64_t t = 1 + e2e::Batch::next(random) / 65536 % (60 / n < 24 ? 60 / n : 24);
        const amp_status status = i % 4 ? amp_infer(session, batch.inputs(), {n, t}, outputs, &err)
                                        : amp_step(session, batch.inputs(), {n, t}, nullptr, &err);
        ASSERT_EQ(status, AMP_OK) << err.message;
    }
    EXPECT_EQ(counter.calls, before);
    amp_session_release(session);
    amp_params_release(params);
    amp_model_release(model);
}

} // namespace
