// embed_cpp.cc: a C++ program that compiles, trains and uses a model with two results, on amp/amp.hpp and
// amp/compile.hpp.
//
//     embed_cpp [FOLDER]       writes its files to FOLDER (.)
//
// The data is made up: points of the plane in three sectors.
#include <array>
#include <cmath>
#include <cstdint>
#include <exception>
#include <iostream>
#include <random>
#include <string>
#include <vector>

#include <amp/amp.hpp>
#include <amp/compile.hpp>

namespace {

constexpr int64_t batch = 64;

// Several results: the classes' scores, and the features that they are made of.
constexpr char model_text[] = R"(amp 1
const WIDTH = 8

model sectors(x: f32[N, 2]) -> logits, features {
    features = tanh(linear(x; out = WIDTH) as hidden)
    logits   = linear(features; out = 3) as head
}

train sectors {
    input targets: i32[N]
    loss = cross_entropy(logits, targets)
    metric acc = accuracy(logits, targets)
    optimizer = adamw(lr = 0.01)
}

precision bf16 {}
)";

struct Data {
    std::vector<std::array<float, 2>> points = std::vector<std::array<float, 2>>(batch);
    std::vector<int32_t> sectors = std::vector<int32_t>(batch);

    void draw(std::mt19937 &random) {
        std::uniform_real_distribution<float> angle(0, 6.2831853f), radius(0.2f, 1);
        for (std::size_t i = 0; i < points.size(); i++) {
            const float a = angle(random), r = radius(random);
            points[i] = {r * std::cos(a), r * std::sin(a)};
            sectors[i] = static_cast<int32_t>(a / 2.0943952f) % 3;
        }
    }
};

amp::Model make_model(const std::string &path) {
    amp::CompileOptions options;
    options.output = path.c_str();
    options.constants = {{"WIDTH", "32"}};
    for (const std::string &warning : amp::compile_text(model_text, "sectors.amp", options).warnings())
        std::cerr << warning;
    return amp::Model(path);
}

void train(const amp::Model &model, const amp::Params &params) {
    std::mt19937 random(1);
    Data data;
    amp::SessionOptions options;
    options.capacity.n = batch;
    amp::Session session(model, params, options);
    for (int step = 1; step <= 400; step++) {
        data.draw(random);
        const amp::StepReport report = session.step({data.points, data.sectors});
        if (step % 100 == 0)
            std::cout << "step " << step << ": loss " << report.loss << ", accuracy " << session.metric("acc") << '\n';
    }
}

void use(const amp::Model &model, const amp::Params &params) {
    const float points[3][2] = {{0.5f, 0.5f}, {-0.7f, 0}, {0.3f, -0.6f}}; // one of each sector
    amp::SessionOptions options;
    options.capacity.n = 3;
    options.program = "infer";
    amp::Session session(model, params, options);
    for (const amp::Tensor &result : session.infer({points}))
        std::cout << result.name() << ": " << result.shape()[0] << " x " << result.shape()[1] << '\n';
    std::vector<float> scores = session.infer_first({points});
    for (std::size_t i = 0; i < 3; i++) {
        std::size_t best = 0;
        for (std::size_t c = 1; c < 3; c++)
            if (scores[3 * i + c] > scores[3 * i + best]) best = c;
        std::cout << "point " << i << " is in sector " << best << '\n';
    }
}

} // namespace

int main(int argc, char **argv) {
    try {
        const std::string folder = argc > 1 ? argv[1] : ".";
        const amp::Model model = make_model(folder + "/sectors.so");
        const amp::Params params(model, 7);
        train(model, params);
        params.save(folder + "/sectors.safetensors");
        use(model, params);
    } catch (const std::exception &error) { // says what was wrong, where, and what to do
        std::cerr << "embed_cpp: " << error.what() << '\n';
        return 1;
    }
}
