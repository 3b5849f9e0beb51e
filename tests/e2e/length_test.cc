// A model whose T is known at run time gives, at each T, the bits of the same model compiled for that T: losses,
// results and weights after steps, on any number of threads.
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

} // namespace
