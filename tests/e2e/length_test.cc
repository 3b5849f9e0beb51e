// A model whose T is known at run time gives, at each T, the bits of the same model compiled for that T: losses,
// results and weights after steps, on any number of threads.
#include <regex>

#include "tests/e2e/harness.h"

namespace {

using e2e::Training;

const int64_t kMark = 9973; // stands for T while the text is elaborated: no other number is a multiple of it

// The IR of |text|, whose T is kMark, with |length| in place of it: "T", or a number.
std::string with_length(const std::string &ir, const std::string &header, int64_t length) {
    static const std::regex number("([0-9]+)( \\* N)?");
    std::string out;
    size_t at = 0;
    for (std::sregex_iterator i(ir.begin(), ir.end(), number), end; i != end; ++i) {
        int64_t value = i->str(1).size() < 18 ? std::stoll(i->str(1)) : 0, power = 0;
        for (; value && value % kMark == 0; value /= kMark) power++;
        out += ir.substr(at, static_cast<size_t>(i->position()) - at);
        at = static_cast<size_t>(i->position() + i->length());
        if (!power) {
            out += i->str();
            continue;
        }
        std::string sizes = i->str(2);
        for (int64_t p = 0; p < power; p++) {
            sizes += length ? " * T=" + std::to_string(length) : " * T";
        }
        out += value == 1 ? sizes.substr(3) : std::to_string(value) + sizes;
    }
    out += ir.substr(at);
    const size_t line = out.find("  const T = ");
    return out.replace(line, out.find('\n', line) - line, header);
}

struct Lengths { // one model, for T and for numbers
    std::string name, ir;
    int64_t most, unit;

    Lengths(const std::string &name, const std::string &text, int64_t most, int64_t unit = 1)
        : name(name), most(most), unit(unit) {
        amp_compile_options o = {};
        o.emit = AMP_EMIT_IR, o.stop_after = "simplify", o.target = "cpu";
        const e2e::Compiled c = e2e::compile(text, o, (name + ".amp").c_str());
        EXPECT_EQ(c.status, AMP_OK) << c.message << c.diagnostics;
        ir = c.bytes;
    }
    // |length| 0: T.
    std::string compile(int64_t length) const {
        const std::string header =
            "  length " + (length ? std::to_string(length) : std::to_string(most) + " unit " + std::to_string(unit));
        const std::string text = with_length(ir, length ? "" : header, length);
        amp_compile_options o = {};
        o.target = "cpu";
        const e2e::Compiled c = e2e::compile(text, o, (name + ".ir").c_str());
        EXPECT_EQ(c.status, AMP_OK) << c.message << c.diagnostics;
        const std::string path = e2e::temp_path(name + std::to_string(length) + ".so");
        FILE *f = fopen(path.c_str(), "wb");
        fwrite(c.bytes.data(), 1, c.bytes.size(), f);
        fclose(f);
        return path;
    }
};

std::string text_of(const std::string &body, const std::string &precision) {
    return "amp 1\nconst T = 9973\nmodel m(x: f32[N, T, 24]) -> logits {\n" + body +
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

void compare(const Lengths &model, std::initializer_list<int64_t> lengths, int64_t n = 3) {
    const std::string any = model.compile(0);
    for (int64_t t : lengths) {
        const Made fixed = run(model.compile(t), n, t, false, 1);
        for (int threads : {1, 2, 8})
            expect_equal(fixed, run(any, n, t, true, threads),
                         model.name + " at " + std::to_string(t) + ", " + std::to_string(threads) + " threads");
    }
}

TEST(Length, HasTheBitsOfEachFixedLength) {
    for (const char *precision : {"fp32", "bf16", "fp16"})
        compare(Lengths(std::string("encoder-") + precision, encoder(precision), 64), {1, 7, 8, 16, 33, 64});
}

} // namespace
