// Equal layers share their code: the C functions of a model do not grow with its depth, with dropout too, whose masks
// differ by a number of each layer.
#include <regex>

#include "tests/e2e/harness.h"

namespace {

// Functions with loops of their own in the C text; those that only hand their random keys on have none.
size_t Functions(int layers, const char *precision) {
    amp_compile_options options = {};
    options.emit = AMP_EMIT_C;
    options.target = "cpu";
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
    const e2e::Compiled c = e2e::compile(text, options);
    EXPECT_EQ(c.status, AMP_OK) << c.message;
    const std::regex function("\n(static )?[^\n]*void K\\([^\n]*\\)\n\\{\n(?!    K\\()");
    return static_cast<size_t>(
        std::distance(std::sregex_iterator(c.bytes.begin(), c.bytes.end(), function), std::sregex_iterator()));
}

// The first and last layers differ from those between.
TEST(EqualLayers, ShareTheirFunctions) {
    for (const char *precision : {"fp32", "bf16"}) {
        const size_t of_4 = Functions(4, precision);
        EXPECT_GT(of_4, 20u);
        EXPECT_EQ(Functions(9, precision), of_4) << precision;
    }
}

} // namespace
