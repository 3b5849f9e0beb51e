// checkpoint { }: training with it is training without it, bit for bit, in less memory: a GPT of L layers keeps the
// inputs of L layers and the insides of one.
#include "tests/e2e/harness.h"

namespace {

using e2e::Training;

constexpr int kLength = 24, kWidth = 32;

// |around|: the keyword before the braces of each layer; `if true` is no checkpoint.
std::string Gpt(int layers, const std::string &around, const std::string &precision) {
    const std::string t = std::to_string(kLength), c = std::to_string(kWidth);
    return "amp 1\n"
           "block mlp(x) {\n"
           "    h = dropout(gelu(linear(x; out = 4 * dim(x, -1)) as fc); p = 0.2)\n"
           "    return linear(h; out = dim(x, -1)) as proj\n"
           "}\n"
           "block layer(x) {\n"
           "    x = x + (self_attention(layer_norm(x) as ln_1; heads = 2, causal = true, p = 0.1) as attn)\n"
           "    return x + (mlp(layer_norm(x) as ln_2) as mlp)\n"
           "}\n"
           "model gpt(x: f32[N, " +
           t + ", " + c +
           "]) -> y {\n"
           "    repeat i in 0.." +
           std::to_string(layers) + " { " + around +
           " { x = layer(x) as h[i] } }\n"
           "    y = linear(mean(x; dims = 1); out = 10) as head\n"
           "}\n"
           "train gpt {\n"
           "    input targets: i32[N]\n"
           "    loss = cross_entropy(y, targets)\n"
           "    optimizer = adamw(lr = 0.01)\n"
           "}\n"
           "precision " +
           precision + " { }\n";
}

// Batch norms in checkpoints, one of them in another; two results; a loss that is computed again; micro-batches.
std::string Images(const std::string &around, const std::string &precision) {
    return "amp 1\n"
           "block part(x; out: int) -> y, z {\n"
           "    " +
           around +
           " {\n"
           "        h = relu(batch_norm(conv2d(x; out = out, kernel = 3, padding = 1) as conv) as norm)\n"
           "        " +
           around +
           " { z = dropout(sigmoid(h * h)) }\n"
           "        y = h + z\n"
           "    }\n"
           "}\n"
           "block measure(y, t) {\n"
           "    " +
           around +
           " { loss = cross_entropy(y, t) }\n"
           "    return loss\n"
           "}\n"
           "model images(x: f32[N, 3, 6, 6]) -> y {\n"
           "    " +
           around +
           " {\n"
           "        a, b = part(x; out = 8) as first\n"
           "        c, d = part(max_pool2d(a; kernel = 2); out = 5) as second\n"
           "    }\n"
           "    y = linear(concat(global_avg_pool(c * d), global_avg_pool(b); dim = 1); out = 10) as head\n"
           "}\n"
           "train images {\n"
           "    input targets: i32[N]\n"
           "    loss = measure(y, targets)\n"
           "    optimizer = sgd(0.1, momentum = 0.9)\n"
           "    accumulate = 2\n"
           "}\n"
           "precision " +
           precision + " { }\n";
}

class Checkpoint : public e2e::OnDevice, public ::testing::WithParamInterface<const char *> {
  protected:
    static std::string Compile(const std::string &name, const std::string &text) {
        return e2e::compile_to_file(text, name + "-" + GetParam() + ".so");
    }
    static void ExpectSameTraining(const std::string &with, const std::string &without, int64_t n, int width) {
        Training plain(without, n);
        ASSERT_TRUE(plain.ok());
        const std::vector<double> losses = e2e::train(plain, 4, n, width);
        const std::vector<int> counts = e2e::device() ? std::vector<int>{1} : std::vector<int>{1, 3};
        for (int threads : counts) {
            Training again(with, n, threads);
            ASSERT_TRUE(again.ok());
            EXPECT_EQ(e2e::train(again, 4, n, width), losses) << threads << " threads";
            EXPECT_TRUE(e2e::same_bits(e2e::all_params(plain), e2e::all_params(again))) << threads << " threads";
        }
    }
};

TEST_P(Checkpoint, TrainsAGptBitForBit) {
    ExpectSameTraining(Compile("gpt-with", Gpt(2, "checkpoint", GetParam())),
                       Compile("gpt-without", Gpt(2, "if true", GetParam())), 5, kLength * kWidth);
}

TEST_P(Checkpoint, TrainsOnImagesBitForBit) {
    ExpectSameTraining(Compile("images-with", Images("checkpoint", GetParam())),
                       Compile("images-without", Images("if true", GetParam())), 7, 3 * 6 * 6);
}

INSTANTIATE_TEST_SUITE_P(Precisions, Checkpoint, ::testing::Values("fp32", "bf16", "fp16"));

size_t Activations(int layers, const char *around, int64_t n) {
    const std::string name = std::string("deep-") + around[0] + std::to_string(layers) + ".so";
    Training r(e2e::compile_to_file(Gpt(layers, around, "fp32"), name), n);
    EXPECT_TRUE(r.ok());
    amp_memory_info m = {};
    if (r.ok()) amp_session_get_memory(r.session, &m);
    return m.activations;
}

TEST(CheckpointMemory, IsTheInputsOfLayersAndTheInsidesOfOne) {
    if (getenv("AMP_TEST_SEPARATE")) GTEST_SKIP() << "with separate buffers nothing shares a place";
    const int64_t n = 64; // so that what each layer has of a size of its own is small beside it
    const size_t input = static_cast<size_t>(n) * kLength * kWidth * sizeof(float);
    const int more = e2e::device() ? 2 : 8; // NVRTC compiles the kernels of each layer
    const size_t of_2 = Activations(2, "checkpoint", n), of_all = Activations(2 + more, "checkpoint", n);
    const size_t plain_2 = Activations(2, "if true", n), plain_all = Activations(2 + more, "if true", n);
    const size_t inside = (plain_all - plain_2) / more; // of one layer, its input among it
    EXPECT_LE(of_all - of_2, more * input * 105 / 100);
    EXPECT_LE(of_all, (2 + more) * input + 2 * inside); // what a layer makes, and gradients of that
    EXPECT_GE(inside, 8 * input);                       // so there is something to save
}

} // namespace
