// Equal layers share their code: the C functions of a model do not grow with its depth, with dropout too, whose masks
// differ by a number of each layer.
#include <sstream>

#include "tests/e2e/harness.h"

namespace {

// Functions with loops of their own in the C text; those that only hand random keys and offsets on have none.
size_t FunctionsOf(const std::string &text) {
    amp_compile_options options = {};
    options.emit = AMP_EMIT_C;
    options.target = "cpu";
    const e2e::Compiled c = e2e::compile(text, options);
    EXPECT_EQ(c.status, AMP_OK) << c.message;
    size_t count = 0;
    std::istringstream lines(c.bytes);
    for (std::string line, body; std::getline(lines, line);) {
        if (line.compare(0, 7, "void K(") && (line.compare(0, 7, "static ") || line.find(" void K(") == line.npos))
            continue;
        std::getline(lines, body); // {
        std::getline(lines, body);
        count += body.compare(0, 6, "    K(") != 0;
    }
    return count;
}

size_t Functions(int layers, const char *precision) {
    const std::string text = "amp 1\n"
                             "block layer(x) {\n"
                             "    h = dropout(gelu(linear(layer_norm(x) as norm; out = 48) as fc); p = 0.1)\n"
                             "    x = x + (self_attention(x; heads = 2, p = 0.2) as attn)\n"
                             "    return x + dropout(linear(h; out = 24) as proj; p = 0.3)\n"
                             "}\n"
                             "model deep(x: f32[N, 6, 24]) -> y {\n"
                             "    repeat i in 0.." +
                             std::to_string(layers) +
                             " { x = layer(x) as h[i] }\n"
                             "    y = linear(mean(x; dims = 1); out = 10) as head\n"
                             "}\n"
                             "train deep {\n"
                             "    input targets: i32[N]\n"
                             "    loss = cross_entropy(y, targets)\n"
                             "    optimizer = adamw(lr = 0.01)\n"
                             "}\n"
                             "precision " +
                             std::string(precision) + " { }\n";
    return FunctionsOf(text);
}

// The first and last layers differ from those between.
TEST(EqualLayers, ShareTheirFunctions) {
    for (const char *precision : {"fp32", "bf16"}) {
        const size_t of_4 = Functions(4, precision);
        EXPECT_GT(of_4, 20u);
        EXPECT_EQ(Functions(9, precision), of_4) << precision;
    }
}

// Both lengths leave as many steps in the last kernel of slices.
TEST(EqualLayers, StepsOverTimeShareTheirFunctions) {
    for (const char *layer : {"lstm", "gru"})
        for (const char *precision : {"fp32", "fp16"}) {
            auto of = [&](int steps) {
                const std::string text = "amp 1\nmodel m(x: f32[N, " + std::to_string(steps) +
                                         ", 12]) -> y {\n    x = " + layer +
                                         "(x; hidden = 32, bidirectional = true) as layer\n"
                                         "    y = linear(x; out = 8) as head\n}\n"
                                         "train m {\n    input t: f32[N, " +
                                         std::to_string(steps) +
                                         ", 8]\n    loss = mse_loss(y, t)\n    optimizer = adamw(lr = 0.01)\n}\n"
                                         "precision " +
                                         precision + " { }\n";
                return FunctionsOf(text);
            };
            const size_t of_40 = of(40);
            EXPECT_GT(of_40, 20u);
            EXPECT_EQ(of(72), of_40) << layer << " " << precision;
        }
}

} // namespace
