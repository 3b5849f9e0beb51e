// Optimizers against their formulas in double, step by step from the session's own states, and resumed in the middle.
#include "base/rounding.h"
#include "tests/base/planted.h"
#include "tests/e2e/harness.h"

#include <cmath>
#include <functional>

namespace {

using e2e::Training;

constexpr int kIn = 19, kHidden = 37, kSteps = 6, kResumed = 3;
constexpr int64_t kBatch = 45;
constexpr size_t kCount = size_t(kHidden) * kIn;

using Tensor = std::vector<double>;

struct Case {
    const char *name, *call;
    std::vector<const char *> slots;
    // The next w from the gradient; |s| are the moments before it and after it.  Steps count from 1.
    std::function<double(int step, double w, double g, double *s)> update;
    // The same of a whole tensor.
    std::function<void(int step, Tensor &w, const Tensor &g, std::vector<Tensor> &s)> whole;
    double bound = 0; // of the error of an element, of the largest step; 0: as exact as f32
};

// torch.optim.RMSprop
double RmsProp(double lr, double alpha, double eps, double decay, double momentum, bool centered, double w, double g,
               double *s) {
    g += decay * w;
    *s = alpha * *s + (1 - alpha) * g * g;
    double spread = *s++;
    if (centered) {
        *s = alpha * *s + (1 - alpha) * g;
        spread -= *s * *s;
        s++;
    }
    double step = g / (std::sqrt(spread) + eps);
    if (momentum > 0) step = *s = momentum * *s + step;
    return w - lr * step;
}

// torch.optim.Adagrad
double Adagrad(int step, double lr, double lr_decay, double decay, double w, double g, double *s) {
    g += decay * w;
    *s += g * g;
    return w - lr / (1 + (step - 1) * lr_decay) * g / (std::sqrt(*s) + 1e-10);
}

double Norm(const Tensor &v) {
    double sum = 0;
    for (double x : v) sum += x * x;
    return std::sqrt(sum);
}

// You et al. 2019, algorithm 2.
void Lamb(int step, double lr, double eps, double decay, Tensor &w, const Tensor &g, std::vector<Tensor> &s) {
    Tensor r(w.size());
    for (size_t i = 0; i < w.size(); i++) {
        double &m = s[0][i], &v = s[1][i];
        m = 0.9 * m + 0.1 * g[i];
        v = 0.99 * v + 0.01 * g[i] * g[i];
        r[i] = m / (1 - std::pow(0.9, step)) / (std::sqrt(v / (1 - std::pow(0.99, step))) + eps) + decay * w[i];
    }
    const double ratio = Norm(w) / Norm(r);
    for (size_t i = 0; i < w.size(); i++) w[i] -= lr * ratio * r[i];
}

// torch.optim.Adafactor, of a matrix.
void Adafactor(int step, double lr, double decay, double eps2, double d, double weight_decay, Tensor &w,
               const Tensor &g, std::vector<Tensor> &s) {
    const double share = std::pow(step, decay), rate = std::min(lr, 1 / std::sqrt(step));
    for (double &v : s[0]) v *= 1 - share;
    for (double &v : s[1]) v *= 1 - share;
    for (size_t i = 0; i < kCount; i++) {
        s[0][i / kIn] += share * g[i] * g[i] / kIn;
        s[1][i % kIn] += share * g[i] * g[i] / kHidden;
    }
    double mean = 0;
    for (double v : s[0]) mean += v / kHidden;
    Tensor u(kCount);
    for (size_t i = 0; i < kCount; i++)
        u[i] = g[i] / std::sqrt(std::max(s[0][i / kIn] * s[1][i % kIn] / std::max(mean, 0x1p-23), 0x1p-46));
    const double root = std::sqrt(double(kCount)), clip = std::max(1.0, Norm(u) / root / d);
    const double size = std::max(eps2, Norm(w) / root);
    for (size_t i = 0; i < kCount; i++) w[i] = w[i] * (1 - lr * weight_decay) - rate * size / clip * u[i];
}

double Bf16(double x) { return amp_round_dtype(AMP_DT_BF16, float(x)); }

// |factor| a b + |more| c, of n x k and k x m elements; a transposed in memory: k x n.
Tensor Product(double factor, const Tensor &a, bool transposed, const Tensor &b, int n, int k, int m, double more,
               const Tensor &c) {
    Tensor y(size_t(n * m));
    for (int i = 0; i < n; i++)
        for (int j = 0; j < m; j++) {
            double sum = 0;
            for (int x = 0; x < k; x++) sum += a[size_t(transposed ? x * n + i : i * k + x)] * b[size_t(x * m + j)];
            y[size_t(i * m + j)] = Bf16(factor * sum + (c.empty() ? 0 : more * c[size_t(i * m + j)]));
        }
    return y;
}

// torch.optim.Muon, of a matrix with more rows than columns.
void Muon(double lr, double momentum, double decay, bool nesterov, Tensor &w, const Tensor &g, std::vector<Tensor> &s) {
    Tensor x(kCount);
    for (size_t i = 0; i < kCount; i++) {
        double &m = s[0][i];
        m = momentum * m + (1 - momentum) * g[i];
        x[i] = Bf16(nesterov ? momentum * m + (1 - momentum) * g[i] : m);
    }
    const double norm = Bf16(Norm(x));
    for (double &v : x) v = Bf16(v / norm);
    for (int i = 0; i < 5; i++) {
        const Tensor gram = Product(1, x, true, x, kIn, kHidden, kIn, 0, {});
        x = Product(1, x, false, Product(2.0315, gram, false, gram, kIn, kIn, kIn, -4.775, gram), kHidden, kIn, kIn,
                    3.4445, x);
    }
    const double rate = lr * std::sqrt(double(kHidden) / kIn);
    for (size_t i = 0; i < kCount; i++) w[i] = w[i] * (1 - lr * decay) - rate * x[i];
}

const Case kCases[] = {
    {"adafactor",
     "adafactor(lr = 0.05)",
     {"rows", "cols"},
     {},
     [](int step, Tensor &w, const Tensor &g, std::vector<Tensor> &s) {
         Adafactor(step, 0.05, -0.8, 1e-3, 1, 0, w, g, s);
     }},
    {"adafactor_clipped",
     "adafactor(lr = 0.7, beta2_decay = -0.5, eps2 = 0.5, d = 1.5, weight_decay = 0.1)",
     {"rows", "cols"},
     {},
     [](int step, Tensor &w, const Tensor &g, std::vector<Tensor> &s) {
         Adafactor(step, 0.7, -0.5, 0.5, 1.5, 0.1, w, g, s);
     }},
    {"adagrad",
     "adagrad()",
     {"squares"},
     [](int step, double w, double g, double *s) { return Adagrad(step, 0.01, 0, 0, w, g, s); }},
    {"adagrad_decay",
     "adagrad(lr = 0.1, lr_decay = 0.5, weight_decay = 0.1, initial_accumulator_value = 0.25)",
     {"squares"},
     [](int step, double w, double g, double *s) { return Adagrad(step, 0.1, 0.5, 0.1, w, g, s); }},
    {"group",
     "adamw(lr = 1)\n    group \"*.weight\": optimizer = rmsprop(lr = constant(0.02), momentum = 0.5), lr_scale = 0.5",
     {"v", "momentum"},
     [](int, double w, double g, double *s) { return RmsProp(0.01, 0.99, 1e-8, 0, 0.5, false, w, g, s); }},
    {"lamb",
     "lamb(lr = 0.01, beta2 = 0.99, eps = 0.001, weight_decay = 0.1)",
     {"m", "v"},
     {},
     [](int step, Tensor &w, const Tensor &g, std::vector<Tensor> &s) { Lamb(step, 0.01, 0.001, 0.1, w, g, s); }},
    {"lion",
     "lion(lr = 0.001, beta1 = 0.8, weight_decay = 0.1)",
     {"m"},
     [](int, double w, double g, double *s) {
         const double c = 0.8 * *s + (1 - 0.8) * g, sign = c > 0 ? 1 : c < 0 ? -1 : 0;
         *s = 0.99 * *s + (1 - 0.99) * g;
         return w * (1 - 0.001 * 0.1) - 0.001 * sign;
     }},
    {"muon",
     "muon(lr = 0.01)\n    group \"*.bias\": optimizer = adamw(lr = 0.01)",
     {"momentum"},
     {},
     [](int, Tensor &w, const Tensor &g, std::vector<Tensor> &s) { Muon(0.01, 0.95, 0.1, true, w, g, s); },
     0.03},
    {"muon_plain",
     "muon(lr = 0.01, momentum = 0.5, weight_decay = 0.0, nesterov = false)\n"
     "    group \"*.bias\": optimizer = lion(lr = 0.01)",
     {"momentum"},
     {},
     [](int, Tensor &w, const Tensor &g, std::vector<Tensor> &s) { Muon(0.01, 0.5, 0, false, w, g, s); },
     0.03},
    {"rmsprop",
     "rmsprop(lr = 0.01)",
     {"v"},
     [](int, double w, double g, double *s) { return RmsProp(0.01, 0.99, 1e-8, 0, 0, false, w, g, s); }},
    {"rmsprop_momentum",
     "rmsprop(lr = 0.01, alpha = 0.9, eps = 0.001, weight_decay = 0.1, momentum = 0.5)",
     {"v", "momentum"},
     [](int, double w, double g, double *s) { return RmsProp(0.01, 0.9, 0.001, 0.1, 0.5, false, w, g, s); }},
    {"rmsprop_centered",
     "rmsprop(lr = 0.01, weight_decay = 0.1, momentum = 0.9, centered = true)",
     {"v", "m", "momentum"},
     [](int, double w, double g, double *s) { return RmsProp(0.01, 0.99, 1e-8, 0.1, 0.9, true, w, g, s); }},
};

std::vector<float> Param(Training &r) {
    std::vector<float> data(kCount);
    EXPECT_EQ(amp_params_get(r.params, "fc1.weight", data.data(), kCount, &r.err), AMP_OK) << r.err.message;
    return data;
}

std::vector<float> Moment(Training &r, const std::string &slot) {
    std::vector<float> data(slot == "rows" ? size_t(kHidden) : slot == "cols" ? size_t(kIn) : kCount);
    const std::string name = "fc1.weight/" + slot;
    EXPECT_EQ(amp_session_get_moment(r.session, name.c_str(), data.data(), data.size(), &r.err), AMP_OK)
        << r.err.message;
    return data;
}

std::vector<std::vector<float>> Moments(Training &r, const Case &c) {
    std::vector<std::vector<float>> all;
    for (const char *slot : c.slots) all.push_back(Moment(r, slot));
    return all;
}

std::vector<float> Gradient(Training &r) {
    std::vector<float> data(kCount);
    EXPECT_EQ(amp_session_get_value(r.session, "grad.fc1.weight", nullptr, data.data(), kCount * sizeof(float), &r.err),
              AMP_OK)
        << r.err.message;
    return data;
}

std::string Compile(const Case &c, const std::string &precision, const std::string &settings = "") {
    return e2e::compile_to_file(e2e::mlp(precision, kIn, kHidden, 10, c.call + settings), std::string(c.name) + ".so");
}

class Optimizers : public e2e::OnDevice, public ::testing::WithParamInterface<Case> {};

void Update(const Case &c, int step, Tensor &w, const Tensor &g, std::vector<Tensor> &s) {
    if (c.whole) return c.whole(step, w, g, s);
    for (size_t i = 0; i < w.size(); i++) {
        double own[3] = {};
        for (size_t k = 0; k < s.size(); k++) own[k] = s[k][i];
        w[i] = c.update(step, w[i], g[i], own);
        for (size_t k = 0; k < s.size(); k++) s[k][i] = own[k];
    }
}

void Follow(const Case &c, double lr = 1) {
    Training r(Compile(c, "fp32"), kBatch, 1, 3, true);
    ASSERT_TRUE(r.ok());
    for (int step = 1; step <= kSteps; step++) {
        const auto w = Param(r);
        const auto before = Moments(r, c);
        e2e::train(r, 1, kBatch, kIn, 10, step);
        const auto g = Gradient(r), w1 = Param(r);
        const auto after = Moments(r, c);
        Tensor next(w.begin(), w.end());
        std::vector<Tensor> s;
        for (const auto &moment : before) s.emplace_back(moment.begin(), moment.end());
        Update(c, step, next, Tensor(g.begin(), g.end()), s);
        double most = 0;
        for (size_t i = 0; i < kCount; i++) most = std::max(most, std::fabs(next[i] - w[i]));
        for (size_t i = 0; i < kCount; i++) {
            const double moved = next[i] - w[i];
            ASSERT_NEAR(w1[i] - w[i], lr * moved, 1e-7 + std::fabs(moved) * 1e-5 + most * c.bound)
                << c.slots[0] << step << " " << i;
        }
        for (size_t k = 0; k < s.size(); k++)
            for (size_t i = 0; i < s[k].size(); i++)
                ASSERT_NEAR(after[k][i], s[k][i], (std::fabs(s[k][i]) + std::fabs(before[k][i])) * 1e-5 + 1e-12)
                    << c.slots[k] << step << " " << i;
    }
}

TEST_P(Optimizers, StepsAreTheFormulas) { Follow(GetParam()); }

TEST(AdagradsSum, HasItsFirstValue) {
    Training r(Compile(kCases[3], "fp32 { moments = bf16 }"), kBatch);
    ASSERT_TRUE(r.ok());
    EXPECT_EQ(Moment(r, "squares"), std::vector<float>(kCount, 0.25f));
}

TEST_P(Optimizers, GoOnFromACheckpointBitForBit) {
    if (e2e::device()) GTEST_SKIP() << "the same on the device";
    const std::string path = Compile(GetParam(), "fp16 { }", "\n    accumulate = 2"),
                      file = e2e::temp_path(std::string(GetParam().name) + ".safetensors");
    Training whole(path, kBatch), first(path, kBatch), second(path, kBatch, 1, 4);
    ASSERT_TRUE(whole.ok() && first.ok() && second.ok());
    const std::vector<double> losses = e2e::train(whole, 2 * kSteps, kBatch, kIn);
    e2e::train(first, 2 * kResumed, kBatch, kIn);
    ASSERT_EQ(amp_checkpoint_save(first.session, file.c_str(), nullptr, &first.err), AMP_OK) << first.err.message;
    ASSERT_EQ(amp_checkpoint_load(second.session, file.c_str(), nullptr, 0, &second.err), AMP_OK) << second.err.message;
    const std::vector<double> rest = e2e::train(second, 2 * (kSteps - kResumed), kBatch, kIn, 10, 2 * kResumed);
    EXPECT_EQ(rest, std::vector<double>(losses.begin() + 2 * kResumed, losses.end()));
    EXPECT_TRUE(e2e::same_bits(e2e::all_params(second), e2e::all_params(whole)));
}

INSTANTIATE_TEST_SUITE_P(All, Optimizers, ::testing::ValuesIn(kCases),
                         [](const ::testing::TestParamInfo<Case> &info) { return std::string(info.param.name); });

TEST(OptimizersPlanted, ARateIsFound) {
    ExpectFound("another learning rate", "moved", [] { Follow(kCases[2], 1.0001); });
}

} // namespace
