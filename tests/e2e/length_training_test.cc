// Training with a size T: micro-batches and ranks whose lengths differ, and checkpoints between lengths.
#include "tests/e2e/ranks.h"

namespace {

using e2e::Training;

constexpr int kWords = 20;
const amp_sizes kSizes[] = {{3, 5}, {2, 16}, {1, 1}, {3, 12}};

std::string text_of(const std::string &precision, const std::string &more) {
    return "amp 1\nsize T = 16\nmodel m(tokens: i32[N, T]) -> logits {\n"
           "    x = embedding(tokens; count = 20, dim = 16) as words\n"
           "    x = x + (self_attention(layer_norm(x) as ln; heads = 2, causal = true) as attn)\n"
           "    logits = linear(x; out = 20) as head\n}\ntrain m {\n    input targets: i32[N, T]\n"
           "    loss = cross_entropy(logits, targets)\n    metric acc = accuracy(logits, targets)\n"
           "    optimizer = sgd(lr = 0.1, momentum = 0.9)\n" +
           more + "}\nprecision " + precision + " { }\n";
}

std::string compile(const std::string &name, const std::string &precision, const std::string &more,
                    const char *distribute = nullptr) {
    amp_compile_options o = {};
    o.target = "cpu", o.distribute = distribute;
    return e2e::compile_to_file(text_of(precision, more), "length-" + name + precision + ".so", o);
}

// Texts of |at.t| words, padded to |padded| with words whose labels are ignored; so are some of the others.
struct Texts {
    std::vector<int32_t> tokens, labels;
    const void *inputs[2] = {};
    Texts() = default;
    Texts(amp_sizes at, uint32_t seed) { add(at, at.t, seed); }
    void add(amp_sizes at, int64_t padded, uint32_t seed) {
        for (int64_t i = 0; i < at.n; i++) {
            for (int64_t j = 0; j < padded; j++) {
                uint32_t state = seed * 7919 + static_cast<uint32_t>(i * 31 + j);
                const int32_t word = static_cast<int32_t>(e2e::Batch::next(state) / 65536 % kWords);
                const bool counts = j < at.t && ((i + j) % 4 || at.t == 1);
                tokens.push_back(j < at.t ? word : 0);
                labels.push_back(counts ? (word * 3 + 1) % kWords : -100);
            }
        }
        inputs[0] = tokens.data(), inputs[1] = labels.data();
    }
};

amp_step_report step(Training &r, const Texts &texts, amp_sizes sizes) {
    amp_step_report report = {};
    EXPECT_EQ(amp_step(r.session, texts.inputs, sizes, &report, &r.err), AMP_OK) << r.err.message;
    return report;
}

// A step of two micro-batches is the step of one batch that is padded to the longer: the loss is the mean over the
// labels that count in both.
TEST(LengthTraining, MicroBatchesOfOtherLengths) {
    Training parts(compile("parts", "fp32", "    accumulate = 2\n"), 3), whole(compile("whole", "fp32", ""), 6);
    ASSERT_TRUE(parts.ok() && whole.ok());
    for (uint32_t s = 0; s < 6; s++) {
        const amp_sizes a = kSizes[s % 4], b = kSizes[(s + 1) % 4];
        const int64_t longest = std::max(a.t, b.t);
        EXPECT_EQ(step(parts, Texts(a, 2 * s), a).complete, 0);
        const double loss = step(parts, Texts(b, 2 * s + 1), b).loss;
        Texts both;
        both.add(a, longest, 2 * s), both.add(b, longest, 2 * s + 1);
        EXPECT_NEAR(loss, step(whole, both, {a.n + b.n, longest}).loss, 2e-6) << s;
    }
    const std::vector<float> got = e2e::all_params(parts), want = e2e::all_params(whole);
    ASSERT_EQ(got.size(), want.size());
    for (size_t i = 0; i < got.size(); i++) EXPECT_NEAR(got[i], want[i], 2e-6) << i;
}

// Ranks whose n and T differ make the steps of one rank with as many micro-batches, bit for bit.
TEST(LengthTraining, RanksOfOtherLengths) {
    const std::string twin = compile("twin", "fp16", "    accumulate = 2\n", "data");
    for (const char *distribute : {"data", "zero1"}) {
        const std::string path = compile(distribute, "fp16", "", distribute);
        Training one(twin, 3);
        std::vector<double> losses, of_ranks;
        for (uint32_t s = 0; s < 8; s++) {
            const amp_step_report report = step(one, Texts(kSizes[s * 3 % 4], s), kSizes[s * 3 % 4]);
            if (report.complete) losses.push_back(report.loss);
        }
        e2e::Network network(2);
        std::vector<float> params[2];
        e2e::on_ranks(2, [&](int32_t rank) {
            Training r(path, 3, 1, 3, false, nullptr, network.Comm(rank));
            ASSERT_TRUE(r.ok()) << r.err.message;
            for (uint32_t s = static_cast<uint32_t>(rank); s < 8; s += 2) {
                const amp_step_report report = step(r, Texts(kSizes[s * 3 % 4], s), kSizes[s * 3 % 4]);
                if (!rank) of_ranks.push_back(report.loss);
            }
            params[rank] = e2e::all_params(r);
        });
        EXPECT_EQ(of_ranks, losses) << distribute;
        for (const std::vector<float> &p : params) EXPECT_TRUE(e2e::same_bits(p, e2e::all_params(one))) << distribute;
    }
}

TEST(LengthTraining, GoesOnAfterACheckpointBitForBit) {
    const std::string path = compile("resumed", "bf16", ""), file = e2e::temp_path("lengths.st");
    Training straight(path, 3), first(path, 3), then(path, 3, 2, 9);
    for (uint32_t s = 0; s < 8; s++) {
        const amp_sizes at = kSizes[s % 4];
        const double loss = step(straight, Texts(at, s), at).loss;
        EXPECT_EQ(step(s < 3 ? first : then, Texts(at, s), at).loss, loss) << s;
        if (s != 2) continue;
        ASSERT_EQ(amp_checkpoint_save(first.session, file.c_str(), "", &first.err), AMP_OK) << first.err.message;
        ASSERT_EQ(amp_checkpoint_load(then.session, file.c_str(), nullptr, 0, &then.err), AMP_OK) << then.err.message;
    }
    EXPECT_TRUE(e2e::same_bits(e2e::all_params(then), e2e::all_params(straight)));
}

} // namespace
