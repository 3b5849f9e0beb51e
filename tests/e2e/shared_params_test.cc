// Several models on one set of params: what each computes, trains and publishes is what one model would have.

#include "tests/e2e/harness.h"

namespace {

std::string text_of(const std::string &precision, const std::string &optimizer = "adamw(lr = 0.01)", int out = 10) {
    return "amp 1\nsize T = 16\nmodel m(x: f32[N, T, 24]) -> logits {\n"
           "    h = dropout(x + gelu(linear(x; out = 24) as up); p = 0.1)\n"
           "    logits = linear(mean(h; dims = (1)); out = " +
           std::to_string(out) +
           ") as head\n}\ntrain m {\n    input targets: i32[N]\n    loss = cross_entropy(logits, targets)\n"
           "    optimizer = " +
           optimizer + "\n}\nprecision " + precision + " { }\n";
}

std::string without_training(const std::string &text) {
    return text.substr(0, text.find("train m")) + text.substr(text.find("precision"));
}

// |length| 0: for any T.
amp_model *load(const std::string &text, int64_t length = 0) {
    const std::string number = std::to_string(length);
    const amp_define define = {"T", number.c_str()};
    amp_compile_options o = {};
    if (!e2e::device()) o.target = "cpu";
    if (length) o.defines = &define, o.define_count = 1;
    const std::string bytes = e2e::compile(text, o, "m.amp").bytes;
    amp_model_options memory = {};
    memory.struct_size = sizeof memory, memory.bytes = bytes.data(), memory.size = bytes.size();
    amp_model *model = nullptr;
    amp_error err = {};
    EXPECT_EQ(amp_model_load("m.so", &memory, &model, &err), AMP_OK) << err.message;
    return model;
}

amp_params *fresh(amp_model *model) {
    amp_params *params = nullptr;
    amp_error err = {};
    const amp_params_options o = {sizeof o, 3, 0};
    EXPECT_EQ(amp_params_create(model, &o, &params, &err), AMP_OK) << err.message;
    return params;
}

struct On { // a session of a model on params, which it keeps alive
    amp_session *session = nullptr;
    amp_error err = {};
    amp_status status;
    int64_t t; // of its calls
    On(amp_model *model, amp_params *params, int64_t t = 0, const char *program = nullptr, int32_t published = 0)
        : t(t) {
        amp_session_options o = {};
        o.struct_size = sizeof o, o.capacity = {3, 0}, o.threads = 1, o.seed = 5, o.program = program;
        o.published = published, o.device = e2e::device();
        if (e2e::device()) setenv("AMPC_CACHE_DIR", e2e::temp_path("kernels").c_str(), 0);
        status = amp_session_create(model, params, &o, &session, &err);
    }
    ~On() { amp_session_release(session); }
    On(const On &) = delete;

    double step(int64_t length, uint32_t seed) {
        e2e::Batch batch(3, length * 24, 10, seed);
        amp_step_report report = {};
        EXPECT_EQ(amp_step(session, batch.inputs(), {3, t ? length : 0}, &report, &err), AMP_OK) << err.message;
        return report.loss;
    }
    std::vector<float> infer(int64_t length) {
        e2e::Batch batch(3, length * 24, 10, 7);
        std::vector<float> logits(30);
        void *outputs[] = {logits.data()};
        EXPECT_EQ(amp_infer(session, batch.inputs(), {3, t ? length : 0}, outputs, &err), AMP_OK) << err.message;
        return logits;
    }
};

class SharedParams : public e2e::OnDevice {};

// Models of three lengths, in turn, with the moments handed over, have the bits of one model of any length.
TEST_F(SharedParams, TrainInTurn) {
    for (const char *precision : {"fp16", "bf16", "fp32"}) {
        if (precision != std::string("fp16") && !getenv("AMP_FULL")) continue;
        amp_model *any = load(text_of(precision)), *eight = load(text_of(precision), 8),
                  *sixteen = load(text_of(precision), 16), *served = load(without_training(text_of(precision)));
        amp_params *alone = fresh(any), *shared = fresh(eight);
        {
            On one(any, alone, 1), a(eight, shared);
            amp_memory_info before, after;
            amp_session_get_memory(a.session, &before);
            On b(sixteen, shared);
            amp_session_get_memory(a.session, &after);
            EXPECT_LT(after.total - before.total, before.params / 8) << "masters and low copies are there once";
            On c(served, shared, 1, "infer");
            ASSERT_TRUE(a.session && b.session && c.session) << a.err.message << b.err.message << c.err.message;
            On *last = &a;
            for (uint32_t i = 0; i < 6; i++) {
                On &next = i % 3 ? b : a;
                ASSERT_EQ(amp_checkpoint_copy(next.session, last->session, &next.err), AMP_OK) << next.err.message;
                const int64_t t = i % 3 ? 16 : 8;
                EXPECT_EQ(next.step(t, i), one.step(t, i)) << precision << " step " << i;
                last = &next;
                EXPECT_TRUE(e2e::same_bits(c.infer(5), one.infer(5))) << precision << " step " << i;
                EXPECT_TRUE(e2e::same_bits(a.infer(8), one.infer(8))) << precision << " step " << i;
            }
            EXPECT_TRUE(e2e::same_bits(e2e::values_of(any, alone), e2e::values_of(any, shared))) << precision;
        }
        for (amp_params *p : {alone, shared}) amp_params_release(p);
        for (amp_model *m : {any, eight, sixteen, served}) amp_model_release(m);
    }
}

// Values that are set, and a model whose session is made when the first one's are gone.
TEST_F(SharedParams, AreReadAgain) {
    amp_model *low = load(text_of("bf16"), 8), *full = load(text_of("fp32"), 8);
    amp_params *params = fresh(low), *other = fresh(full);
    {
        On b(full, params), expected(full, other);
        ASSERT_TRUE(b.session) << b.err.message;
        EXPECT_TRUE(e2e::same_bits(b.infer(8), expected.infer(8)));
        for (amp_params *p : {params, other}) {
            const std::vector<float> bias(10, 0.5f);
            EXPECT_EQ(amp_params_set(p, "head.bias", bias.data(), bias.size(), &b.err), AMP_OK) << b.err.message;
            EXPECT_EQ(amp_params_blend(p, p == params ? other : params, 0.0, &b.err), AMP_OK) << b.err.message;
        }
        EXPECT_TRUE(e2e::same_bits(b.infer(8), expected.infer(8)));
        EXPECT_EQ(b.step(8, 1), expected.step(8, 1));
    }
    On again(low, params), expected(low, other);
    amp_model_release(full);
    EXPECT_TRUE(e2e::same_bits(again.infer(8), expected.infer(8)));
    amp_model_release(low);
    amp_params_release(params);
    amp_params_release(other);
}

TEST(SharedParamsOfOthers, AreRefused) {
    amp_model *ours = load(text_of("bf16"), 8), *wide = load(text_of("bf16", "adamw(lr = 0.01)", 12), 8),
              *slow = load(text_of("bf16", "sgd(lr = 0.01)"), 8);
    amp_params *params = fresh(ours);
    On first(ours, params), refused(wide, params), other(slow, params);
    EXPECT_EQ(refused.status, AMP_MISMATCH);
    EXPECT_STREQ(refused.err.message, "the params of m do not fit m: head.bias is f32[10], not f32[12]; "
                                      "head.weight is f32[10, 24], not f32[12, 24]");
    ASSERT_TRUE(other.session) << other.err.message;
    EXPECT_EQ(amp_checkpoint_copy(other.session, first.session, &other.err), AMP_MISMATCH);
    EXPECT_STREQ(other.err.message,
                 "the moments and counters of m do not fit m: optim/head.bias/m is f32[10], not none; "
                 "optim/head.bias/v is f32[10], not none; optim/head.weight/m is f32[10, 24], not none; "
                 "and 5 more");
    amp_params_release(params);
    for (amp_model *m : {ours, wide, slow}) amp_model_release(m);
}

// A table whose rows are updated is stored by rows.
TEST(SharedParamsOfOthers, AreInTheSameLayout) {
    const std::string text = "amp 1\nmodel m(ids: i32[N, 4]) -> y {\n"
                             "    y = linear(mean(embedding(ids; count = 20, dim = 16) as words; dims = (1)); out = 3) "
                             "as head\n}\ntrain m {\n    input targets: i32[N]\n"
                             "    loss = cross_entropy(y, targets)\n    optimizer = adagrad(lr = 0.1)\n",
                      lazy = "    group \"words.*\": lazy = true\n";
    amp_model *dense = load(text + "}\n"), *by_rows = load(text + lazy + "}\n");
    amp_params *params = fresh(dense);
    On session(dense, params), refused(by_rows, params);
    EXPECT_EQ(session.status, AMP_OK) << session.err.message;
    EXPECT_EQ(refused.status, AMP_UNSUPPORTED);
    EXPECT_STREQ(refused.err.message,
                 "m: it stores words.weight in another layout than m, whose params these are; give it params of its "
                 "own, and copy the values (amp_params_copy)");
    amp_params_release(params);
    for (amp_model *m : {dense, by_rows}) amp_model_release(m);
}

TEST(SharedParamsOfOthers, ArePublished) {
    amp_model *ours = load(text_of("bf16"), 8), *any = load(without_training(text_of("bf16"))),
              *full = load(text_of("fp32"), 8);
    amp_params *params = fresh(ours);
    amp_error err = {};
    On trains(ours, params);
    ASSERT_EQ(amp_params_publish(params, nullptr, &err), AMP_OK) << err.message;
    On reads(any, params, 1, nullptr, 1), direct(any, params, 1), refused(full, params, 0, nullptr, 1);
    ASSERT_TRUE(reads.session) << reads.err.message;
    EXPECT_EQ(refused.status, AMP_UNSUPPORTED) << refused.err.message;
    EXPECT_TRUE(e2e::same_bits(reads.infer(8), direct.infer(8)));
    const std::vector<float> before = reads.infer(8);
    trains.step(8, 1);
    EXPECT_TRUE(e2e::same_bits(reads.infer(8), before));
    ASSERT_EQ(amp_params_publish(params, nullptr, &err), AMP_OK) << err.message;
    EXPECT_TRUE(e2e::same_bits(reads.infer(8), direct.infer(8)));
    EXPECT_FALSE(e2e::same_bits(reads.infer(8), before));
    amp_params_release(params);
    for (amp_model *m : {ours, any, full}) amp_model_release(m);
}

} // namespace
