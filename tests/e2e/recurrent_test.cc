// A recurrent cell that a model writes itself, by repeat, sharing and concat, learns as the layer of the prelude does.
#include "tests/e2e/harness.h"

namespace {

const char kOwn[] = R"(
block place(x; t: int) { return reshape(slice(x; dim = 1, from = t, to = t + 1); shape = [dim(x, 0), dim(x, 2)]) }
block cell(x, h, c; size: int, bound: float) -> next, state {
    param w as weight_ih_l0: f32[4 * size, dim(x, 1)] = uniform(low = -bound, high = bound)
    param u as weight_hh_l0: f32[4 * size, size] = uniform(low = -bound, high = bound)
    param a as bias_ih_l0: f32[4 * size] = uniform(low = -bound, high = bound)
    param b as bias_hh_l0: f32[4 * size] = uniform(low = -bound, high = bound)
    gates = linear(x, w, a) + linear(h, u, b)
    i = sigmoid(slice(gates; dim = 1, from = 0, to = size))
    f = sigmoid(slice(gates; dim = 1, from = size, to = 2 * size))
    g = tanh(slice(gates; dim = 1, from = 2 * size, to = 3 * size))
    o = sigmoid(slice(gates; dim = 1, from = 3 * size, to = 4 * size))
    state = f * c + i * g
    next = o * tanh(state)
}
block layer(x; hidden: int) -> y {
    zero = zeros(; shape = [dim(x, 0), hidden])
    h, c = cell(place(x; t = 0), zero, zero; size = hidden, bound = 1.0 / sqrt(hidden)) as rnn
    y = stack(h; dim = 1)
    repeat t in 1..dim(x, 1) {
        h, c = cell(place(x; t = t), h, c) sharing rnn
        y = concat(y, stack(h; dim = 1); dim = 1)
    }
}
)";

std::string Model(const std::string &blocks, const std::string &call) {
    return "amp 1\n" + blocks + "model m(x: f32[N, 114]) -> logits {\n    y = " + call +
           "\n    logits = linear(y; out = 10) as head\n}\n"
           "train m {\n    input targets: i32[N]\n"
           "    loss = cross_entropy(mean(logits; dims = 1), targets)\n    optimizer = sgd(lr = 0.5)\n}\n";
}

TEST(Recurrent, ACellOfTheModelIsTheLayer) {
    const std::string x = "(reshape(x; shape = [N, 19, 6]); hidden = 24)";
    const std::string own = e2e::compile_to_file(Model(kOwn, "layer" + x), "own-cell.so");
    const std::string layer = e2e::compile_to_file(Model("", "lstm" + x + " as layer.rnn"), "lstm-layer.so");
    e2e::Training a(own, 45), b(layer, 45);
    ASSERT_TRUE(a.ok() && b.ok());
    ASSERT_TRUE(e2e::same_bits(e2e::all_params(a), e2e::all_params(b)));
    const std::vector<double> of_own = e2e::train(a, 5, 45, 114), of_layer = e2e::train(b, 5, 45, 114);
    const std::vector<float> p = e2e::all_params(a), q = e2e::all_params(b);
    for (size_t i = 0; i < of_own.size(); i++) EXPECT_NEAR(of_own[i], of_layer[i], 1e-5) << i;
    ASSERT_EQ(p.size(), q.size());
    for (size_t i = 0; i < p.size(); i++) ASSERT_NEAR(p[i], q[i], 1e-5) << i;
}

} // namespace
