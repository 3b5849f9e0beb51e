// Tables whose rows that a step reads are updated: against the formulas of torch.optim.SparseAdam, Adagrad and SGD in
// double.
#include "tests/base/planted.h"
#include "tests/e2e/harness.h"

#include <cmath>
#include <functional>
#include <limits>

namespace {

using e2e::Training;

constexpr int kRows = 40, kCols = 70, kPlaces = 3, kSteps = 6;
constexpr int64_t kBatch = 17; // of more places than the table has rows
constexpr size_t kCount = size_t(kRows) * kCols;

struct Case {
    const char *name, *call;
    std::vector<const char *> slots;
    std::function<double(int step, double w, double g, double *s)> update;
};

double SparseAdam(int step, double w, double g, double *s, double eps) {
    s[0] = 0.9 * s[0] + 0.1 * g;
    s[1] = 0.999 * s[1] + 0.001 * g * g;
    const double size = 0.01 * std::sqrt(1 - std::pow(0.999, step)) / (1 - std::pow(0.9, step));
    return w - size * s[0] / (std::sqrt(s[1]) + eps);
}

const Case kCases[] = {
    {"adam",
     "adam(lr = 0.01, eps = 0.01)",
     {"m", "v"},
     [](int step, double w, double g, double *s) { return SparseAdam(step, w, g, s, 0.01); }},
    {"adagrad",
     "adagrad(lr = 0.1, initial_accumulator_value = 0.25)",
     {"squares"},
     [](int, double w, double g, double *s) {
         *s += g * g;
         return w - 0.1 * g / (std::sqrt(*s) + 1e-10);
     }},
    {"sgd", "sgd(lr = 0.5)", {}, [](int, double w, double g, double *) { return w - 0.5 * g; }},
};

// The gradient of a row is the sum of x at its places, over N; |twice|: and at a second read's.
std::string Text(const std::string &optimizer, const std::string &group = "lazy = true", bool twice = false,
                 const std::string &precision = "fp32 { }") {
    const std::string more = twice ? " + sum(embedding(other, table); dims = (1))" : "";
    return "amp 1\nmodel lazy(ids: i32[N, 3], x: f32[N, 3, 70]" + std::string(twice ? ", other: i32[N]" : "") +
           ") -> y {\n    param table: f32[40, 70] = normal(std = 1.0)\n"
           "    y = sum(embedding(ids, table) * x; dims = (1, 2))" +
           more + "\n}\ntrain lazy {\n    loss = mean(y)\n    optimizer = " + optimizer +
           "\n    group \"table\": " + group + "\n}\nprecision " + precision + "\n";
}

// With a parameter that is not in the group.
std::string Scaled(std::string text) {
    text.replace(text.find("    y = sum("), 12, "    param gain: f32[1] = ones()\n    y = gain * sum(");
    return text;
}

struct Places {
    std::vector<int32_t> ids, other;
    std::vector<float> x;
    // Of the first 30 rows, some of them many times.
    explicit Places(uint32_t seed) : ids(size_t(kBatch) * kPlaces), other(kBatch), x(ids.size() * kCols) {
        for (int32_t &id : ids) id = Id(seed);
        for (int32_t &id : other) id = Id(seed);
        for (float &v : x) v = static_cast<float>(e2e::Batch::next(seed) >> 8) / 8388608.0f - 1.0f;
    }
    static int32_t Id(uint32_t &seed) {
        const int32_t id = static_cast<int32_t>(e2e::Batch::next(seed) >> 8) % 30;
        return id % 3 ? id : id / 10;
    }
    std::vector<double> Gradient(bool twice) const {
        std::vector<double> g(kCount);
        for (size_t p = 0; p < ids.size(); p++)
            for (int c = 0; c < kCols; c++) g[size_t(ids[p]) * kCols + c] += x[p * kCols + c] / double(kBatch);
        for (int64_t n = 0; n < kBatch && twice; n++)
            for (int c = 0; c < kCols; c++) g[size_t(other[n]) * kCols + c] += 1.0 / double(kBatch);
        return g;
    }
    bool Reads(size_t row, bool twice) const {
        for (int32_t id : ids)
            if (size_t(id) == row) return true;
        for (int32_t id : other)
            if (twice && size_t(id) == row) return true;
        return false;
    }
};

amp_step_report Step(Training &r, const Places &p) {
    const void *inputs[] = {p.ids.data(), p.x.data(), p.other.data()};
    amp_step_report report = {};
    EXPECT_EQ(amp_step(r.session, inputs, {kBatch, 0}, &report, &r.err), AMP_OK) << r.err.message;
    return report;
}

std::vector<float> Table(Training &r) {
    std::vector<float> data(kCount);
    EXPECT_EQ(amp_params_get(r.params, "table", data.data(), kCount, &r.err), AMP_OK) << r.err.message;
    return data;
}

std::vector<float> Moment(Training &r, const std::string &slot) {
    std::vector<float> data(kCount);
    EXPECT_EQ(amp_session_get_moment(r.session, ("table/" + slot).c_str(), data.data(), kCount, &r.err), AMP_OK)
        << r.err.message;
    return data;
}

std::vector<std::vector<float>> States(Training &r, const Case &c) {
    std::vector<std::vector<float>> all = {Table(r)};
    for (const char *slot : c.slots) all.push_back(Moment(r, slot));
    return all;
}

class Lazy : public e2e::OnDevice, public ::testing::WithParamInterface<Case> {};

// |rate|: of what the formula changes.
void Follow(const Case &c, bool twice, double rate = 1) {
    const std::string name = std::string("lazy_") + c.name + (twice ? "_twice.so" : ".so");
    Training r(e2e::compile_to_file(Text(c.call, "lazy = true", twice), name), kBatch);
    ASSERT_TRUE(r.ok());
    for (int step = 1; step <= kSteps; step++) {
        const Places p(static_cast<uint32_t>(step));
        const auto before = States(r, c);
        Step(r, p);
        const auto after = States(r, c);
        const std::vector<double> g = p.Gradient(twice);
        for (size_t i = 0; i < kCount; i++) {
            double s[2] = {};
            for (size_t k = 1; k < before.size(); k++) s[k - 1] = before[k][i];
            if (!p.Reads(i / kCols, twice)) {
                for (size_t k = 0; k < before.size(); k++) ASSERT_EQ(after[k][i], before[k][i]) << step << " " << i;
                continue;
            }
            const double moved = rate * (c.update(step, before[0][i], g[i], s) - before[0][i]);
            ASSERT_NEAR(after[0][i] - before[0][i], moved, 4e-7 + std::fabs(moved) * 1e-5)
                << "moved " << step << " " << i;
            for (size_t k = 1; k < before.size(); k++)
                ASSERT_NEAR(after[k][i], s[k - 1], std::fabs(s[k - 1]) * 1e-5 + 1e-8) << c.slots[k - 1] << step;
        }
    }
}

TEST_P(Lazy, UpdatesTheRowsThatAStepReads) { Follow(GetParam(), false); }

INSTANTIATE_TEST_SUITE_P(All, Lazy, ::testing::ValuesIn(kCases),
                         [](const ::testing::TestParamInfo<Case> &info) { return std::string(info.param.name); });

TEST(LazyTables, AddUpAllTheirReads) { Follow(kCases[0], true); }

TEST(LazyTables, PlantedRateIsFound) {
    ExpectFound("another learning rate", "moved", [] { Follow(kCases[0], false, 1.0001); });
}

TEST(LazyTables, HaveTheSameBitsForAnyThreads) {
    const std::string path = e2e::compile_to_file(Text(kCases[0].call), "lazy_threads.so");
    std::vector<std::vector<float>> one;
    for (int threads : {1, 2, 5}) {
        Training r(path, kBatch, threads);
        ASSERT_TRUE(r.ok());
        for (uint32_t step = 0; step < 3; step++) Step(r, Places(step));
        if (threads == 1) one = States(r, kCases[0]);
        const auto all = States(r, kCases[0]);
        for (size_t k = 0; k < all.size(); k++) EXPECT_TRUE(e2e::same_bits(all[k], one[k])) << threads << " threads";
    }
}

// 16-bit states of the rows alone; the step that resumes draws the same random numbers.
TEST(LazyTables, GoOnFromACheckpointBitForBit) {
    for (const char *states : {"fp32 { }", "fp16 {\n masters = bf16\n moments = bf16\n}", "fp16 {\n moments = f8\n}"}) {
        const std::string path = e2e::compile_to_file(Text(kCases[0].call, "lazy = true", false, states),
                                                      "lazy_states.so"),
                          file = e2e::temp_path("lazy.safetensors");
        Training whole(path, kBatch), first(path, kBatch), second(path, kBatch, 1, 4);
        ASSERT_TRUE(whole.ok() && first.ok() && second.ok());
        const auto start = Table(whole);
        for (uint32_t step = 0; step < 4; step++) Step(whole, Places(step));
        for (uint32_t step = 0; step < 2; step++) Step(first, Places(step));
        ASSERT_EQ(amp_checkpoint_save(first.session, file.c_str(), nullptr, &first.err), AMP_OK) << first.err.message;
        ASSERT_EQ(amp_checkpoint_load(second.session, file.c_str(), nullptr, 0, &second.err), AMP_OK)
            << second.err.message;
        for (uint32_t step = 2; step < 4; step++) Step(second, Places(step));
        EXPECT_TRUE(e2e::same_bits(Table(second), Table(whole))) << states;
        const auto end = Table(whole);
        for (size_t i = size_t(30) * kCols; i < kCount; i++) ASSERT_EQ(start[i], end[i]);
        EXPECT_FALSE(e2e::same_bits(start, end));
    }
}

// y is of f16, so gradients are scaled: what is not finite leaves every row as it is.
TEST(LazyTables, KeepAllRowsInASkippedStep) {
    std::string text = Text(kCases[0].call, "lazy = true", false, "fp16 { }");
    text.replace(text.find("    y = sum("), 12, "    y = sum(relu(linear(");
    text.replace(text.find(" * x; dims"), 4, " * x; out = 8)) ");
    text.replace(text.find("\"table\""), 7, "\"*table\"");
    Training r(e2e::compile_to_file(text, "lazy_skipped.so"), kBatch);
    ASSERT_TRUE(r.ok());
    EXPECT_FALSE(Step(r, Places(1)).skipped);
    const auto before = States(r, kCases[0]);
    Places p(2);
    for (float &v : p.x) v = std::numeric_limits<float>::infinity();
    EXPECT_TRUE(Step(r, p).skipped);
    const auto after = States(r, kCases[0]);
    for (size_t k = 0; k < after.size(); k++) EXPECT_TRUE(e2e::same_bits(after[k], before[k]));
    EXPECT_FALSE(Step(r, Places(3)).skipped);
    EXPECT_FALSE(e2e::same_bits(Table(r), before[0]));
}

// The gradient has a row for each place, and the norm of the whole one, be it kept or computed.
TEST(LazyTables, HaveTheNormOfAllPlaces) {
    const Places p(5);
    double squares = 0;
    for (double g : p.Gradient(false)) squares += g * g;
    for (const char *clip : {"", "\n    clip_norm = inf"}) {
        Training r(e2e::compile_to_file(Text(std::string("sgd(lr = 0.5)") + clip), "lazy_norm.so"), kBatch, 1, 3,
                   !*clip);
        ASSERT_TRUE(r.ok());
        Step(r, p);
        double norm = 0;
        ASSERT_EQ(amp_session_get_grad_norm(r.session, &norm, &r.err), AMP_OK) << r.err.message;
        EXPECT_NEAR(norm, std::sqrt(squares), 1e-5);
        if (*clip) continue;
        amp_tensor_info info = {};
        std::vector<float> rows(size_t(kBatch) * kPlaces * kCols);
        ASSERT_EQ(
            amp_session_get_value(r.session, "grad.table", &info, rows.data(), rows.size() * sizeof(float), &r.err),
            AMP_OK)
            << r.err.message;
        EXPECT_EQ(info.dims[0], kBatch * kPlaces);
    }
}

// ---- what is refused ---------------------------------------------------------------------------------------------

std::string Refused(const std::string &text) {
    const e2e::Compiled c = e2e::compile(text, {}, "lazy.amp");
    EXPECT_NE(c.status, AMP_OK);
    return c.diagnostics;
}

TEST(LazyTables, AreRefusedWhereOtherRowsWouldChange) {
    const struct {
        std::string text, says, help;
    } cases[] = {
        {Text("adamw(lr = 0.1)"), "lazy: adamw changes rows that a step did not read",
         "adam, adagrad and sgd without momentum are supported"},
        {Text("sgd(lr = 0.1, momentum = 0.9)"), "lazy: sgd with momentum changes rows", "sgd without momentum"},
        {Text("lion(lr = 0.1)"), "lazy: lion changes rows", "adagrad"},
        {Text("adam(lr = 0.1, weight_decay = 0.1)"), "lazy: weight decay changes rows that a step did not read",
         "write `weight_decay = 0.0` in the group of table"},
        {Text("adam(lr = 0.1)", "lazy = true, weight_decay = 0.1"), "lazy: weight decay changes rows", "0.0"},
        {Scaled(Text("adam(lr = 0.1)", "lazy = true, optimizer = adamw(lr = 0.1)")), "lazy: adamw changes rows",
         "a group may have an optimizer of its own"},
        {Text("adam(lr = 0.1)\n    ema = 0.9"), "lazy: averages (`ema`) change rows that a step did not read",
         "leave `ema` out of the train block, or `lazy`"},
        {Text("adam(lr = 0.1)\n    accumulate = 2"), "lazy: a step of several micro-batches or ranks is not supported",
         "leave `accumulate` and --distribute out, or `lazy`"},
    };
    for (const auto &c : cases) {
        const std::string said = Refused(c.text);
        EXPECT_NE(said.find("group: " + c.says), std::string::npos) << said;
        EXPECT_NE(said.find(c.help), std::string::npos) << said;
    }
    EXPECT_EQ(e2e::compile(Text("adam(lr = 0.1, weight_decay = 0.1)", "lazy = true, weight_decay = 0")).status, AMP_OK);
    EXPECT_EQ(e2e::compile(Scaled(Text("lion(lr = 0.1)", "lazy = true, optimizer = adam(lr = 0.1)"))).status, AMP_OK);
    EXPECT_EQ(e2e::compile(Text("lion(lr = 0.1)", "lazy = true\n    group \"*\": lazy = false")).status, AMP_OK);
    EXPECT_EQ(e2e::compile(Text("lion(lr = 0.1)", "lazy = true\n    group \"*\": frozen = true\n"
                                                  "    group \"*\": frozen = false, lazy = false"))
                  .status,
              AMP_OK);
}

TEST(LazyTables, AreReadByEmbeddingAlone) {
    std::string tied = Text("adam(lr = 0.1)");
    tied.replace(tied.find("\n}\n"), 3, " + mean(table)\n}\n");
    const std::string said = Refused(tied);
    EXPECT_NE(said.find("group: lazy: table is read by mean (mean)"), std::string::npos) << said;
    EXPECT_NE(said.find("a lazy table is read by embedding alone; take the parameter out of the group"),
              std::string::npos)
        << said;
}

} // namespace
