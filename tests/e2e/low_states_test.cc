// Parameters and moments in bf16, parameters in f16, moments in 8 bits: steps against AdamW step by step, files, bits,
// what they weigh.
#include <cmath>

#include "tests/e2e/harness.h"

namespace {

using e2e::Training;

constexpr int kIn = 19, kHidden = 37;
constexpr int64_t kBatch = 45;

float Bf16(double x) { // to nearest even
    const float f = static_cast<float>(x);
    uint32_t bits;
    memcpy(&bits, &f, 4);
    bits = (bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000u;
    float rounded;
    memcpy(&rounded, &bits, 4);
    return rounded;
}

std::string Compile(const std::string &name, const std::string &precision, const std::string &optimizer) {
    return e2e::compile_to_file(e2e::mlp(precision, kIn, kHidden, 10, optimizer), name + ".so");
}

std::string Both(const std::string &precision, const std::string &masters, const std::string &moments) {
    return precision + " { masters = " + masters + "\nmoments = " + moments + " }";
}

// w, m and v of one step in double, before they are rounded.
struct Exact {
    double w, m, v;
};

Exact AdamW(int step, double w, double m, double v, double g) {
    const double lr = 0.01, decay = 0.01;
    Exact e;
    e.m = 0.9 * m + 0.1 * g;
    e.v = 0.999 * v + 0.001 * g * g;
    const double denom = std::sqrt(e.v / (1 - std::pow(0.999, step))) + 1e-8;
    e.w = w * (1 - lr * decay) - lr * (e.m / (1 - std::pow(0.9, step))) / denom;
    return e;
}

// The distance of two neighbours of |x|: 8 bits of bf16; 11 of f16, 2^-24 at least.
double UnitAt(const std::string &type, double x) {
    const int exponent = std::ilogb(x == 0 ? 1.0 : x);
    return std::ldexp(1.0, type == "bf16" ? exponent - 7 : std::max(exponent - 10, -24));
}

// |x| is of a type and a neighbour of |exact|, which f32 arithmetic may miss by |slack|.
bool IsNeighbour(const std::string &type, float x, double exact, double slack) {
    const double unit = UnitAt(type, exact), units = x / UnitAt(type, x);
    return units == std::floor(units) && std::fabs(x - exact) < unit + slack;
}

class LowStates : public e2e::OnDevice {
  protected:
    static constexpr size_t kCount = size_t(kHidden) * kIn;

    static std::vector<float> Param(Training &r) {
        std::vector<float> data(kCount);
        EXPECT_EQ(amp_params_get(r.params, "fc1.weight", data.data(), kCount, &r.err), AMP_OK) << r.err.message;
        return data;
    }
    static std::vector<float> State(Training &r, const char *name) {
        std::vector<float> data(kCount);
        EXPECT_EQ(amp_session_get_moment(r.session, name, data.data(), kCount, &r.err), AMP_OK) << r.err.message;
        return data;
    }
    static std::vector<float> Gradient(Training &r) {
        std::vector<float> data(kCount);
        EXPECT_EQ(
            amp_session_get_value(r.session, "grad.fc1.weight", nullptr, data.data(), kCount * sizeof(float), &r.err),
            AMP_OK)
            << r.err.message;
        return data;
    }

    // Each step from the session's own states: w, m and v are the f32 results, rounded as asked.
    static void FollowAdamW(const std::string &masters, const std::string &rounding) {
        Training r(Compile("steps-" + masters + rounding,
                           Both("fp32", masters + "(" + rounding + ")", "bf16(rounding = " + rounding + ")"),
                           "adamw(lr = 0.01)"),
                   kBatch, 1, 3, true);
        ASSERT_TRUE(r.ok());
        size_t up = 0, all = 0;
        for (int step = 1; step <= 12; step++) {
            const std::vector<float> w = Param(r), m = State(r, "fc1.weight/m"), v = State(r, "fc1.weight/v");
            e2e::train(r, 1, kBatch, kIn, 10, step);
            const std::vector<float> g = Gradient(r), w1 = Param(r), m1 = State(r, "fc1.weight/m"),
                                     v1 = State(r, "fc1.weight/v");
            for (size_t i = 0; i < kCount; i++) {
                const Exact e = AdamW(step, w[i], m[i], v[i], g[i]);
                ASSERT_TRUE(IsNeighbour(masters, w1[i], e.w, 1e-6))
                    << rounding << " " << step << ": " << w1[i] << ", " << e.w;
                ASSERT_TRUE(IsNeighbour("bf16", m1[i], e.m, std::fabs(e.m) * 1e-5)) << m1[i] << ", " << e.m;
                ASSERT_TRUE(IsNeighbour("bf16", v1[i], e.v, std::fabs(e.v) * 1e-5)) << v1[i] << ", " << e.v;
                const double half = std::ldexp(1.0, std::ilogb(e.v) - 8);
                const double most = rounding == "nearest" ? half * 1.001 : 2 * half * 1.001;
                ASSERT_LE(std::fabs(v1[i] - e.v), most) << v1[i] << ", " << e.v;
                up += v1[i] > e.v;
                all++;
            }
        }
        EXPECT_NEAR(double(up) / double(all), 0.5, 0.03) << rounding;
    }
};

TEST_F(LowStates, StepsAreAdamWsRounded) {
    for (const std::string rounding : {"nearest", "stochastic"}) FollowAdamW("bf16", rounding);
    FollowAdamW("f16", "stochastic");
    if (!e2e::device()) FollowAdamW("f16", "nearest"); /* a cast, which tests of kernels have */
}

// |x| is a number of two bits after the point, or the least one, or 0; and a neighbour of |exact|.
bool IsNeighbourOfEightBits(float x, double exact, double least) {
    const double size = std::fabs(exact);
    if (size < least) return x == 0 || std::fabs(x) == least;
    const double unit = std::ldexp(1.0, std::ilogb(size) - 2), steps = std::fabs(double(x)) / unit;
    return steps == std::floor(steps) && std::fabs(x - exact) < unit * 1.0001;
}

// The mean of what rounding adds, in steps between neighbours, is 0.
TEST_F(LowStates, StepsOfEightBitsAreAdamWsRounded) {
    Training r(Compile("steps-f8", "fp32 { moments = f8 }", "adamw(lr = 0.01)"), kBatch, 1, 3, true);
    ASSERT_TRUE(r.ok());
    double of_m = 0, of_v = 0, all = 0;
    for (int step = 1; step <= 12; step++) {
        const std::vector<float> w = Param(r), m = State(r, "fc1.weight/m"), v = State(r, "fc1.weight/v");
        e2e::train(r, 1, kBatch, kIn, 10, step);
        const std::vector<float> g = Gradient(r), w1 = Param(r), m1 = State(r, "fc1.weight/m"),
                                 v1 = State(r, "fc1.weight/v");
        for (size_t i = 0; i < kCount; i++) {
            const Exact e = AdamW(step, w[i], m[i], v[i], g[i]);
            ASSERT_NEAR(w1[i], e.w, 1e-6 + std::fabs(e.w) * 1e-6);
            ASSERT_TRUE(IsNeighbourOfEightBits(m1[i], e.m, 0x1p-26)) << m1[i] << ", " << e.m;
            ASSERT_TRUE(IsNeighbourOfEightBits(v1[i], e.v, 0x1p-52)) << v1[i] << ", " << e.v;
            if (std::fabs(e.m) < 0x1p-26 || e.v < 0x1p-52) continue;
            of_m += (m1[i] - e.m) / std::ldexp(1.0, std::ilogb(e.m) - 2);
            of_v += (v1[i] - e.v) / std::ldexp(1.0, std::ilogb(e.v) - 2);
            all++;
        }
    }
    ASSERT_GT(all, 4000);
    EXPECT_NEAR(of_m / all, 0, 2.5 / std::sqrt(all));
    EXPECT_NEAR(of_v / all, 0, 2.5 / std::sqrt(all));
}

// v under gradients of zero: it sinks by 0.999 a step, which a rounding to nearest undoes each time.
TEST_F(LowStates, StochasticRoundingLetsTheSecondMomentSink) {
    for (const std::string type : {"bf16(nearest)", "bf16(stochastic)", "f8"}) {
        const bool nearest = type == "bf16(nearest)";
        // the loss is 0 times the logits: all gradients are 0
        const std::string text = "amp 1\nmodel m(x: f32[N, 19]) -> y { y = linear(x; out = 37, bias = false) as fc1 }\n"
                                 "train m { input targets: i32[N]\n"
                                 "loss = 0.0 * sum(y) + 0.0 * cross_entropy(y, targets)\n"
                                 "optimizer = adamw(lr = 0.01) }\nprecision fp32 { moments = " +
                                 type + " }\n";
        Training r(e2e::compile_to_file(text, "sink.so"), kBatch);
        ASSERT_TRUE(r.ok());
        std::vector<float> ones(kCount, 1.0f);
        ASSERT_EQ(amp_session_set_moment(r.session, "fc1.weight/v", ones.data(), kCount, &r.err), AMP_OK)
            << r.err.message;
        e2e::train(r, 200, kBatch, kIn);
        double mean = 0;
        for (float v : State(r, "fc1.weight/v")) mean += v / double(kCount);
        EXPECT_NEAR(mean, nearest ? 1.0 : std::pow(0.999, 200), nearest ? 1e-9 : type == "f8" ? 0.035 : 0.01);
    }
}

TEST_F(LowStates, BitsDependOnNeitherThreadsNorInterruptions) {
    const struct {
        std::string precision, masters, moments;
    } cases[] = {{"bf16", "bf16", "bf16"},
                 {"fp16", "f16", "bf16"},
                 {"fp32", "bf16", "bf16"},
                 {"bf16", "bf16", "f8"},
                 {"fp16", "bf16", "f8"}};
    for (const auto &c : cases) {
        const std::string precision = c.precision + "-" + c.moments;
        const std::string path =
            Compile("bits-" + precision, Both(c.precision, c.masters, c.moments), "adamw(lr = 0.01)");
        const std::string checkpoint = e2e::temp_path("bits-" + precision + ".st");
        Training whole(path, kBatch), first(path, kBatch, 3), second(path, kBatch, 2, 99);
        ASSERT_TRUE(whole.ok() && first.ok() && second.ok());
        e2e::train(whole, 8, kBatch);
        e2e::train(first, 4, kBatch);
        ASSERT_EQ(amp_checkpoint_save(first.session, checkpoint.c_str(), nullptr, &first.err), AMP_OK)
            << first.err.message;
        ASSERT_EQ(amp_checkpoint_load(second.session, checkpoint.c_str(), nullptr, 0, &second.err), AMP_OK)
            << second.err.message;
        e2e::train(second, 4, kBatch, kIn, 10, 4);
        EXPECT_TRUE(e2e::same_bits(e2e::all_params(whole), e2e::all_params(second))) << precision;
        EXPECT_TRUE(e2e::same_bits(State(whole, "fc1.weight/v"), State(second, "fc1.weight/v"))) << precision;
    }
}

// Weights beyond 65504 are no f16: what brings them says so, and the params stay as they were.
TEST_F(LowStates, WeightsTooLargeForF16) {
    const std::string wide = Compile("large-wide", "fp16", "sgd(lr = 0.1)");
    Training from(wide, kBatch), to(Compile("large-f16", "fp16 { masters = f16 }", "sgd(lr = 0.1)"), kBatch);
    ASSERT_TRUE(from.ok() && to.ok());
    const std::vector<float> before = Param(to);
    std::vector<float> w = Param(from);
    w[5] = -65504.0f;
    ASSERT_EQ(amp_params_set(to.params, "fc1.weight", w.data(), kCount, &to.err), AMP_OK) << to.err.message;
    ASSERT_EQ(amp_params_set(to.params, "fc1.weight", before.data(), kCount, &to.err), AMP_OK) << to.err.message;
    w[7] = 70000.0f;
    EXPECT_EQ(amp_params_set(to.params, "fc1.weight", w.data(), kCount, &to.err), AMP_MISMATCH);
    EXPECT_STREQ(to.err.message, "parameter fc1.weight: element 7 is 70000, but it is stored in f16, which ends at "
                                 "65504; compile the model with masters = bf16 or f32 in its precision block");
    const std::string file = e2e::temp_path("large.st");
    ASSERT_EQ(amp_params_set(from.params, "fc1.weight", w.data(), kCount, &from.err), AMP_OK) << from.err.message;
    ASSERT_EQ(amp_params_save(from.params, file.c_str(), nullptr, &from.err), AMP_OK) << from.err.message;
    EXPECT_EQ(amp_params_load(to.params, file.c_str(), nullptr, nullptr, &to.err), AMP_MISMATCH);
    EXPECT_NE(std::string(to.err.message)
                  .find("large.st: tensor fc1.weight: its element 7 is 70000, but f16 ends at "
                        "65504, and the model keeps it so: compile it with masters = bf16"),
              std::string::npos)
        << to.err.message;
    EXPECT_TRUE(e2e::same_bits(Param(to), before));
    amp_weights_options partial = {};
    partial.struct_size = sizeof partial, partial.partial = 1;
    EXPECT_EQ(amp_params_load(to.params, file.c_str(), &partial, nullptr, &to.err), AMP_MISMATCH);
    EXPECT_TRUE(e2e::same_bits(Param(to), before));
}

// Convolutions, whose weights are stored as [KH, KW, I, O], norms, a table whose rows are looked up.
void ExpectSameBits(const std::string &precision, const std::string &masters, const std::string &moments) {
    const std::string text = "amp 1\nmodel m(x: f32[N, 3, 6, 6], ids: i32[N]) -> y {\n"
                             "    h = relu(batch_norm(conv2d(x; out = 33, kernel = 3, padding = 1) as conv) as norm)\n"
                             "    h = conv2d(h; out = 8, kernel = 2, stride = 2, groups = 1, bias = false) as next\n"
                             "    h = flatten(h) + (embedding(ids; count = 10, dim = 72) as table)\n"
                             "    y = linear(layer_norm(h) as ln; out = 10) as fc\n}\n"
                             "train m { loss = cross_entropy(y, ids)\n optimizer = adamw(lr = 0.01) }\n"
                             "precision " +
                             Both(precision, masters, moments) + "\n";
    std::vector<float> first;
    for (int variant = 0; variant < (e2e::device() ? 1 : 3); variant++) {
        amp_compile_options options = {};
        options.no_pass = variant == 1 ? "fuse" : variant == 2 ? "layout" : nullptr;
        const std::string name = precision + "-" + moments + "-" + std::to_string(variant) + ".so";
        Training r(e2e::compile_to_file(text, name, options), kBatch, 2);
        ASSERT_TRUE(r.ok());
        const std::vector<double> losses = e2e::train(r, 6, kBatch, 3 * 6 * 6);
        EXPECT_LT(losses.back(), losses.front());
        if (variant == 0) first = e2e::all_params(r);
        else EXPECT_TRUE(e2e::same_bits(first, e2e::all_params(r))) << variant;
    }
}

TEST_F(LowStates, FusionAndLayoutDoNotChangeBits) {
    ExpectSameBits("bf16", "bf16", "f8");
    ExpectSameBits("fp16", "f16", "bf16");
}

TEST_F(LowStates, SeedsDiffer) {
    const std::string path = Compile("seeds", Both("bf16", "bf16", "bf16"), "adamw(lr = 0.01)");
    Training a(path, kBatch, 1, 3), b(path, kBatch, 1, 4);
    ASSERT_TRUE(a.ok() && b.ok());
    const std::vector<float> start = Param(a);
    ASSERT_EQ(amp_params_copy(b.params, a.params, &b.err), AMP_OK) << b.err.message;
    e2e::train(a, 2, kBatch);
    e2e::train(b, 2, kBatch);
    EXPECT_FALSE(e2e::same_bits(Param(a), Param(b)));
    EXPECT_FALSE(e2e::same_bits(Param(a), start));
}

// Batches are summed in f32; the sum is rounded nowhere.
TEST_F(LowStates, MicroBatches) {
    for (const std::string moments : {"bf16", "f8"}) {
        const std::string text = e2e::mlp(Both("bf16", "bf16", moments), kIn, kHidden, 10,
                                          "sgd(lr = 0.1, momentum = 0.9)\n    accumulate = 3");
        const std::string path = e2e::compile_to_file(text, "micro-" + moments + ".so");
        Training one(path, kBatch), three(path, kBatch, 3);
        ASSERT_TRUE(one.ok() && three.ok());
        e2e::train(one, 9, kBatch);
        e2e::train(three, 9, kBatch);
        EXPECT_TRUE(e2e::same_bits(e2e::all_params(one), e2e::all_params(three)));
    }
}

size_t SizeOf(const std::string &path) {
    FILE *file = fopen(path.c_str(), "rb");
    if (!file) return 0;
    fseek(file, 0, SEEK_END);
    const long size = ftell(file);
    fclose(file);
    return static_cast<size_t>(size);
}

// Files hold states in their own types; weights of any float are taken, checkpoints of another type are not.
TEST_F(LowStates, Files) {
    const std::string low = Compile("files-low", Both("bf16", "bf16", "bf16"), "adamw(lr = 0.01)");
    const std::string wide = Compile("files-wide", "bf16", "adamw(lr = 0.01)");
    Training a(low, kBatch), b(wide, kBatch);
    ASSERT_TRUE(a.ok() && b.ok());
    e2e::train(a, 2, kBatch);
    e2e::train(b, 2, kBatch);
    const std::string of_low = e2e::temp_path("low.st"), of_wide = e2e::temp_path("wide.st");
    ASSERT_EQ(amp_checkpoint_save(a.session, of_low.c_str(), nullptr, &a.err), AMP_OK) << a.err.message;
    ASSERT_EQ(amp_checkpoint_save(b.session, of_wide.c_str(), nullptr, &b.err), AMP_OK) << b.err.message;
    const size_t weights = size_t(kIn * kHidden + kHidden * kHidden + 10 * kHidden);
    EXPECT_NEAR(double(SizeOf(of_wide) - SizeOf(of_low)), double(weights * 3 * 2), 300);
    EXPECT_EQ(amp_checkpoint_load(a.session, of_wide.c_str(), nullptr, 0, &a.err), AMP_MISMATCH);
    EXPECT_NE(std::string(a.err.message).find("the file has f32[37, 19], the model bf16[37, 19]"), std::string::npos)
        << a.err.message;

    ASSERT_EQ(amp_params_save(b.params, of_wide.c_str(), nullptr, &b.err), AMP_OK) << b.err.message;
    ASSERT_EQ(amp_params_load(a.params, of_wide.c_str(), nullptr, nullptr, &a.err), AMP_OK) << a.err.message;
    const std::vector<float> exact = Param(b), rounded = Param(a);
    for (size_t i = 0; i < kCount; i++) ASSERT_EQ(rounded[i], Bf16(exact[i]));
    ASSERT_EQ(amp_params_save(a.params, of_low.c_str(), nullptr, &a.err), AMP_OK) << a.err.message;
    ASSERT_EQ(amp_params_load(b.params, of_low.c_str(), nullptr, nullptr, &b.err), AMP_OK) << b.err.message;
    EXPECT_TRUE(e2e::same_bits(Param(b), rounded));
}

// Moments of 8 bits are in files as their codes; moments of another type are not taken for them.
TEST_F(LowStates, FilesOfEightBits) {
    const std::string low = Compile("files-f8", "bf16 { moments = f8 }", "adamw(lr = 0.01)");
    const std::string wide = Compile("files-f32", "bf16", "adamw(lr = 0.01)");
    Training a(low, kBatch), b(wide, kBatch), again(low, kBatch);
    ASSERT_TRUE(a.ok() && b.ok() && again.ok());
    std::vector<float> given(kCount);
    for (size_t i = 0; i < kCount; i++) given[i] = float(std::ldexp(1.25, int(i % 32) - 26)) * (i % 3 ? 1.0f : -1.0f);
    ASSERT_EQ(amp_session_set_moment(a.session, "fc1.weight/m", given.data(), kCount, &a.err), AMP_OK) << a.err.message;
    EXPECT_TRUE(e2e::same_bits(State(a, "fc1.weight/m"), given));
    e2e::train(a, 2, kBatch);
    const std::string of_low = e2e::temp_path("f8.st"), of_wide = e2e::temp_path("f32.st");
    ASSERT_EQ(amp_checkpoint_save(a.session, of_low.c_str(), nullptr, &a.err), AMP_OK) << a.err.message;
    ASSERT_EQ(amp_checkpoint_save(b.session, of_wide.c_str(), nullptr, &b.err), AMP_OK) << b.err.message;
    const size_t weights = size_t(kIn * kHidden + kHidden * kHidden + 10 * kHidden);
    EXPECT_NEAR(double(SizeOf(of_wide) - SizeOf(of_low)), double(weights * 2 * 3), 300);
    ASSERT_EQ(amp_checkpoint_load(again.session, of_low.c_str(), nullptr, 0, &again.err), AMP_OK) << again.err.message;
    for (const char *name : {"fc1.weight/m", "fc1.weight/v"})
        EXPECT_TRUE(e2e::same_bits(State(a, name), State(again, name))) << name;
    EXPECT_EQ(amp_checkpoint_load(a.session, of_wide.c_str(), nullptr, 0, &a.err), AMP_MISMATCH);
    EXPECT_NE(std::string(a.err.message).find("the file has f32[37, 19], the model f8m[37, 19]"), std::string::npos)
        << a.err.message;
    EXPECT_EQ(amp_checkpoint_load(b.session, of_low.c_str(), nullptr, 0, &b.err), AMP_MISMATCH);
    EXPECT_NE(std::string(b.err.message).find("the file has u8[37, 19], the model f32[37, 19]"), std::string::npos)
        << b.err.message;
}

TEST_F(LowStates, WeighWhatTheirTypesDo) {
    auto memory = [](const std::string &name, const std::string &precision) {
        Training r(Compile(name, precision, "adamw(lr = 0.01)"), kBatch);
        amp_memory_info m = {};
        if (r.ok()) amp_session_get_memory(r.session, &m);
        return m;
    };
    const amp_memory_info wide = memory("weigh-wide", "bf16"), low = memory("weigh-low", Both("bf16", "bf16", "bf16"));
    EXPECT_GT(double(wide.moments), 1.8 * double(low.moments));
    EXPECT_GT(double(wide.params), 1.8 * double(low.params));
    const amp_memory_info eight = memory("weigh-f8", "bf16 { moments = f8 }");
    EXPECT_GT(double(wide.moments), 3 * double(eight.moments));
}

// Weights that are not finite are found in bf16, too.
TEST_F(LowStates, BrokenWeightsAreCounted) {
    Training r(Compile("broken", Both("bf16", "bf16", "bf16"), "adamw(lr = 0.01)"), kBatch);
    ASSERT_TRUE(r.ok());
    std::vector<float> w = Param(r);
    w[5] = NAN;
    w[7] = INFINITY;
    ASSERT_EQ(amp_params_set(r.params, "fc1.weight", w.data(), kCount, &r.err), AMP_OK) << r.err.message;
    int64_t count = 0;
    const char *first = nullptr;
    ASSERT_EQ(amp_params_count_nonfinite(r.params, &count, &first, &r.err), AMP_OK) << r.err.message;
    EXPECT_EQ(count, 2);
    EXPECT_STREQ(first, "fc1.weight");
}

} // namespace
