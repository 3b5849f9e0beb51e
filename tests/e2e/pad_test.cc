// `pad = true`: on CUDA rows that tensor cores multiply are longer in memory; numbers, shapes and files are the same as
// of the model without it. On the CPU nothing changes.
#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <set>

#include "tests/e2e/harness.h"

namespace {

using e2e::Training;

constexpr int kIn = 30;
constexpr int64_t kBatch = 21;

std::string Block(const std::string &precision, bool pad, const std::string &more = "") {
    return "precision " + precision + " {\n" + more + (pad ? "\npad = true" : "") + "\n}\n";
}

// Widths that are multiples of nothing, made and read by products, rows, elements and sums of columns.
std::string Rows(const std::string &block) {
    return "amp 1\n"
           "model m(x: f32[N, 30]) -> y {\n"
           "    h = layer_norm(relu(linear(x; out = 100) as a)) as norm\n"
           "    h = dropout(gelu(linear(h; out = 197) as b); p = 0.1)\n"
           "    h = softmax(linear(h; out = 300) as c)\n"
           "    h = relu(linear(h; out = 13) as d) * (linear(x; out = 13) as e)\n"
           "    y = linear(h; out = 10) as f\n}\n"
           "train m {\n    input t: i32[N]\n    loss = cross_entropy(y, t)\n    optimizer = adamw(lr = 0.01)\n}\n" +
           block;
}

// Pixels of 28, 20, 3 and 12 channels, whose windows products read; their weights.
std::string Images(const std::string &block) {
    return "amp 1\n"
           "model m(x: f32[N, 28, 5, 6]) -> y {\n"
           "    h = relu(conv2d(x; out = 20, kernel = 3, padding = 1) as a)\n"
           "    h = relu(batch_norm(conv2d(h; out = 30, kernel = 3, stride = 2) as b) as norm)\n"
           "    h = conv2d(h; out = 12, kernel = 1) as c\n"
           "    h = relu(conv2d(h; out = 3, kernel = 2, padding = 1) as d)\n"
           "    y = linear(flatten(h); out = 10) as e\n}\n"
           "train m {\n    input t: i32[N]\n    loss = cross_entropy(y, t)\n    optimizer = adamw(lr = 0.01)\n}\n" +
           block;
}

std::string Compile(const std::string &name, const std::string &text) {
    return e2e::compile_to_file(text, name + ".so");
}

std::vector<float> Infer(Training &r, int in) {
    std::vector<float> y(size_t(kBatch) * 10);
    void *outputs[] = {y.data()};
    e2e::Batch batch(kBatch, in, 10, 7);
    EXPECT_EQ(amp_infer(r.session, batch.inputs(), {kBatch, 0}, outputs, &r.err), AMP_OK) << r.err.message;
    return y;
}

class Pad : public e2e::OnDevice {
  protected:
    // The same bits after each of some steps.
    static void ExpectSame(const std::string &with, const std::string &without) {
        Training a(with, kBatch), b(without, kBatch);
        ASSERT_TRUE(a.ok() && b.ok());
        for (int step = 0; step < 2; step++) {
            EXPECT_EQ(e2e::train(a, 1, kBatch, kIn, 10, step), e2e::train(b, 1, kBatch, kIn, 10, step));
            ASSERT_TRUE(e2e::same_bits(e2e::all_params(a), e2e::all_params(b))) << "step " << step;
        }
        EXPECT_TRUE(e2e::same_bits(Infer(a, kIn), Infer(b, kIn)));
        // weights that are set are copied in the same way
        const std::vector<float> w(size_t(100) * kIn, 0.01f);
        for (Training *r : {&a, &b})
            ASSERT_EQ(amp_params_set(r->params, "a.weight", w.data(), w.size(), &r->err), AMP_OK);
        EXPECT_TRUE(e2e::same_bits(Infer(a, kIn), Infer(b, kIn)));
    }
};

// On the stand-in BF16 is the next test's, whose masters are bf16 too; full/cuda.sh has it alone as well, and TF32.
TEST_F(Pad, StepsOfRowsHaveTheSameBits) {
    for (const std::string precision : {"fp16", "bf16", "tf32"}) {
        if (e2e::device() && precision != "fp16" && !getenv("AMP_CUDA_ARCHS")) continue;
        SCOPED_TRACE(precision);
        ExpectSame(Compile("rows-pad", Rows(Block(precision, true))), Compile("rows", Rows(Block(precision, false))));
    }
}

TEST_F(Pad, MastersInBf16HaveTheSameBits) {
    const std::string low = "masters = bf16\nmoments = bf16";
    ExpectSame(Compile("low-pad", Rows(Block("bf16", true, low))), Compile("low", Rows(Block("bf16", false, low))));
}

// The sums of a convolution have zeros among their terms, so tensor cores group them in another way.
TEST_F(Pad, StepsOfImagesAreClose) {
    const int in = 28 * 5 * 6;
    const double bound = 1e-2;
    Training a(Compile("images-pad", Images(Block("bf16", true))), kBatch),
        b(Compile("images", Images(Block("bf16", false))), kBatch);
    ASSERT_TRUE(a.ok() && b.ok());
    const std::vector<float> first = Infer(a, in), second = Infer(b, in);
    for (size_t i = 0; i < first.size(); i++) ASSERT_NEAR(first[i], second[i], bound) << i;
    const std::vector<double> x = e2e::train(a, 3, kBatch, in), y = e2e::train(b, 3, kBatch, in);
    for (size_t i = 0; i < x.size(); i++) EXPECT_NEAR(x[i], y[i], bound) << "step " << i;
    if (!e2e::device()) {
        EXPECT_TRUE(e2e::same_bits(e2e::all_params(a), e2e::all_params(b)));
    }
}

std::string Bytes(const std::string &path) {
    std::ifstream file(path, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
}

// Exported weights are the same bytes; a checkpoint goes on in a model without padding, bit for bit.
TEST_F(Pad, FilesAreThoseOfTheModel) {
    const std::string with = Compile("files-pad", Rows(Block("fp16", true))),
                      without = Compile("files", Rows(Block("fp16", false)));
    const std::string weights = e2e::temp_path("weights.st"), checkpoint = e2e::temp_path("checkpoint.st"),
                      other = e2e::temp_path("other.st");
    Training a(with, kBatch), b(without, kBatch), c(without, kBatch, 1, 99);
    ASSERT_TRUE(a.ok() && b.ok() && c.ok());
    e2e::train(a, 2, kBatch, kIn);
    e2e::train(b, 2, kBatch, kIn);
    ASSERT_EQ(amp_params_save(a.params, weights.c_str(), nullptr, &a.err), AMP_OK) << a.err.message;
    ASSERT_EQ(amp_params_save(b.params, other.c_str(), nullptr, &b.err), AMP_OK) << b.err.message;
    EXPECT_EQ(Bytes(weights), Bytes(other));
    ASSERT_EQ(amp_params_load(c.params, weights.c_str(), nullptr, nullptr, &c.err), AMP_OK) << c.err.message;
    EXPECT_TRUE(e2e::same_bits(e2e::all_params(a), e2e::all_params(c)));

    ASSERT_EQ(amp_checkpoint_save(a.session, checkpoint.c_str(), nullptr, &a.err), AMP_OK) << a.err.message;
    ASSERT_EQ(amp_checkpoint_load(c.session, checkpoint.c_str(), nullptr, 0, &c.err), AMP_OK) << c.err.message;
    e2e::train(a, 2, kBatch, kIn, 10, 2);
    e2e::train(c, 2, kBatch, kIn, 10, 2);
    EXPECT_TRUE(e2e::same_bits(e2e::all_params(a), e2e::all_params(c)));
}

// Values that are kept have the same shapes and numbers as in the model without padding.
TEST_F(Pad, ValuesHaveNone) {
    Training a(Compile("values-pad", Rows(Block("fp16", true))), kBatch, 1, 3, true),
        b(Compile("values", Rows(Block("fp16", false))), kBatch, 1, 3, true);
    ASSERT_TRUE(a.ok() && b.ok());
    e2e::train(a, 1, kBatch, kIn);
    e2e::train(b, 1, kBatch, kIn);
    int compared = 0;
    const char *name;
    for (int i = 0; (name = amp_session_value_name(a.session, i)); i++) {
        amp_tensor_info of_a = {}, of_b = {};
        ASSERT_EQ(amp_session_get_value(a.session, name, &of_a, nullptr, 0, &a.err), AMP_OK) << a.err.message;
        if (amp_session_get_value(b.session, name, &of_b, nullptr, 0, &b.err)) continue; // a cast of the padded one
        const std::vector<int64_t> dims(of_a.dims, of_a.dims + of_a.rank);
        ASSERT_EQ(dims, std::vector<int64_t>(of_b.dims, of_b.dims + of_b.rank)) << name;
        if (of_a.dtype < AMP_DT_F32 || of_a.dtype > AMP_DT_TF32) continue;
        size_t count = 1;
        for (const int64_t size : dims) count *= static_cast<size_t>(size);
        std::vector<float> x(count), y(count);
        ASSERT_EQ(amp_session_get_value(a.session, name, nullptr, x.data(), count * sizeof(float), &a.err), AMP_OK);
        ASSERT_EQ(amp_session_get_value(b.session, name, nullptr, y.data(), count * sizeof(float), &b.err), AMP_OK);
        EXPECT_TRUE(e2e::same_bits(x, y)) << name;
        compared++;
    }
    EXPECT_GT(compared, 20);
}

// What an observer reads and counts, by name.
struct Seen {
    std::map<std::string, std::vector<float>> read;
    std::map<std::string, amp_number_bins> counted;
};

amp_status See(void *user, const amp_observed_kernel *kernel, amp_error *err) {
    Seen &seen = *static_cast<Seen *>(user);
    amp_operand o;
    for (int32_t i = 0; kernel->operand(kernel, i, &o); i++) {
        if (!o.written || o.dtype < AMP_DT_F32 || o.dtype > AMP_DT_TF32 || seen.read.count(o.name)) continue;
        std::vector<float> &data = seen.read[o.name];
        data.resize(static_cast<size_t>(o.count));
        EXPECT_EQ(kernel->read(kernel, i, data.data(), data.size() * sizeof(float), err), AMP_OK) << err->message;
        EXPECT_EQ(kernel->count_numbers(kernel, i, &seen.counted[o.name], err), AMP_OK) << err->message;
    }
    return AMP_OK;
}

Seen Observe(const std::string &path) {
    Seen seen;
    Training t(path, kBatch);
    amp_observer observer = {};
    observer.struct_size = sizeof observer;
    observer.user = &seen;
    observer.kernel = See;
    EXPECT_EQ(amp_session_observe(t.session, &observer, &t.err), AMP_OK);
    e2e::train(t, 1, kBatch, kIn);
    EXPECT_EQ(amp_session_observe(t.session, nullptr, &t.err), AMP_OK);
    return seen;
}

TEST_F(Pad, ObserversSeeNone) {
    const Seen with = Observe(Compile("seen-pad", Rows(Block("fp16", true))));
    const Seen without = Observe(Compile("seen", Rows(Block("fp16", false))));
    int compared = 0;
    for (const auto &[name, data] : with.read) {
        const auto other = without.read.find(name);
        if (other == without.read.end()) continue;
        EXPECT_TRUE(e2e::same_bits(data, other->second)) << name;
        EXPECT_FALSE(memcmp(&with.counted.at(name), &without.counted.at(name), sizeof(amp_number_bins))) << name;
        compared++;
    }
    EXPECT_GT(compared, 15);
}

// On CUDA what a concat puts side by side is made there: whoever reads or counts one part sees no other.
TEST_F(Pad, PartsOfRowsAreSeenAlone) {
    const std::string text = "amp 1\n"
                             "model m(x: f32[N, 30]) -> y {\n"
                             "    a = linear(x; out = 24) as a\n"
                             "    b = linear(x; out = 8) as b\n"
                             "    y = linear(concat(a, b; dim = 1); out = 10) as c\n}\n"
                             "train m {\n    input t: i32[N]\n    loss = cross_entropy(y, t)\n"
                             "    optimizer = adamw(lr = 0.01)\n}\nprecision fp16 {\n}\n";
    const std::string path = Compile("parts", text);
    const Seen seen = Observe(path);
    for (const auto &[name, data] : seen.read) {
        int64_t counted = 0;
        float largest = 0;
        for (const int64_t count : seen.counted.at(name).count) counted += count;
        for (const float x : data) largest = std::max(largest, std::fabs(x));
        EXPECT_EQ(static_cast<int64_t>(data.size()), counted) << name;
        EXPECT_EQ(0, memcmp(&largest, &seen.counted.at(name).largest, sizeof largest)) << name;
    }
    ASSERT_TRUE(seen.read.count("a") && seen.read.count("b"));
    Training t(path, kBatch, 1, 3, true);
    e2e::train(t, 1, kBatch, kIn);
    for (const auto &[name, width] : {std::pair{"a", 24}, {"b", 8}}) {
        std::vector<float> kept(size_t(kBatch) * size_t(width));
        ASSERT_EQ(amp_session_get_value(t.session, name, nullptr, kept.data(), kept.size() * sizeof(float), &t.err),
                  AMP_OK)
            << t.err.message;
        EXPECT_TRUE(e2e::same_bits(kept, seen.read.at(name))) << name;
    }
}

// On CUDA the weight of flattened images has its columns in the order of the pixels; users count them as channels first
// when they set it and when they read its gradient.
TEST_F(Pad, ColumnsOfImagesAreTheUsers) {
    constexpr int kPixels = 20, kImage = 3 * kPixels;
    const std::string text = "amp 1\n"
                             "model m(x: f32[N, 3, 4, 5]) -> y {\n"
                             "    h = conv2d(x; out = 3, kernel = 1, bias = false) as a\n"
                             "    y = linear(flatten(h); out = 10, bias = false) as b\n}\n"
                             "train m {\n    input t: i32[N]\n    loss = cross_entropy(y, t)\n"
                             "    optimizer = adamw(lr = 0.01)\n}\nprecision fp32 {\n}\n";
    Training r(Compile("columns", text), kBatch, 1, 3, true);
    ASSERT_TRUE(r.ok());
    std::vector<float> same(9), picks(size_t(10) * kImage), read(picks.size());
    const auto column = [](int o) { return size_t(o * 7 % kImage); };
    for (size_t i = 0; i < 3; i++) same[i * 3 + i] = 1;
    for (int o = 0; o < 10; o++) picks[size_t(o) * kImage + column(o)] = 1;
    ASSERT_EQ(amp_params_set(r.params, "a.weight", same.data(), same.size(), &r.err), AMP_OK) << r.err.message;
    ASSERT_EQ(amp_params_set(r.params, "b.weight", picks.data(), picks.size(), &r.err), AMP_OK) << r.err.message;
    const std::vector<float> y = Infer(r, kImage);
    const e2e::Batch batch(kBatch, kImage, 10, 7);
    for (int64_t n = 0; n < kBatch; n++)
        for (int o = 0; o < 10; o++)
            EXPECT_EQ(batch.x[size_t(n) * kImage + column(o)], y[size_t(n * 10 + o)]) << n << ", " << o;
    ASSERT_EQ(amp_params_get(r.params, "b.weight", read.data(), read.size(), &r.err), AMP_OK) << r.err.message;
    EXPECT_TRUE(e2e::same_bits(read, picks));
    e2e::train(r, 1, kBatch, kImage);
    std::vector<float> gradient(picks.size());
    ASSERT_EQ(amp_session_get_value(r.session, "grad.b.weight", nullptr, gradient.data(),
                                    gradient.size() * sizeof(float), &r.err),
              AMP_OK)
        << r.err.message;
    const e2e::Batch seen(kBatch, kImage, 10, 100); // of the step
    std::vector<double> wanted(gradient.size());
    for (size_t n = 0; n < size_t(kBatch); n++) {
        const float *x = &seen.x[n * kImage];
        double sum = 0;
        for (int o = 0; o < 10; o++) sum += std::exp(static_cast<double>(x[column(o)]));
        for (size_t o = 0; o < 10; o++) {
            const double p = std::exp(static_cast<double>(x[column(int(o))])) / sum;
            const double dy = (p - (seen.y[n] == int32_t(o))) / static_cast<double>(kBatch);
            for (size_t k = 0; k < kImage; k++) wanted[o * kImage + k] += dy * static_cast<double>(x[k]);
        }
    }
    for (size_t i = 0; i < gradient.size(); i++) ASSERT_NEAR(wanted[i], static_cast<double>(gradient[i]), 1e-6) << i;
}

// The places of maxima are integers, and on CUDA their rows of 260 have padding without being asked for.
std::string Pooled() {
    return "amp 1\n"
           "model m(x: f32[N, 2, 4, 4]) -> y {\n"
           "    h = max_pool2d(relu(conv2d(x; out = 260, kernel = 1) as a); kernel = 2)\n"
           "    y = linear(flatten(h); out = 10) as b\n}\n"
           "train m {\n    input t: i32[N]\n    loss = cross_entropy(y, t)\n    optimizer = sgd(lr = 0.1)\n}\n" +
           Block("fp16", false);
}

amp_status SeeIntegers(void *user, const amp_observed_kernel *kernel, amp_error *err) {
    std::map<std::string, std::vector<int32_t>> &seen =
        *static_cast<std::map<std::string, std::vector<int32_t>> *>(user);
    amp_operand o;
    for (int32_t i = 0; kernel->operand(kernel, i, &o); i++) {
        if (!o.written || o.dtype != AMP_DT_I32 || !o.count) continue;
        std::vector<int32_t> &data = seen[o.name];
        data.assign(static_cast<size_t>(o.count), -1);
        EXPECT_EQ(kernel->read(kernel, i, data.data(), data.size() * sizeof data[0], err), AMP_OK) << err->message;
    }
    return AMP_OK;
}

TEST_F(Pad, IntegersHaveNone) {
    Training t(Compile("pooled", Pooled()), kBatch);
    ASSERT_TRUE(t.ok());
    std::map<std::string, std::vector<int32_t>> seen;
    amp_observer observer = {};
    observer.struct_size = sizeof observer;
    observer.user = &seen;
    observer.kernel = SeeIntegers;
    ASSERT_EQ(amp_session_observe(t.session, &observer, &t.err), AMP_OK);
    e2e::train(t, 1, kBatch, 4 * 4 * 2);
    int found = 0;
    for (const auto &[name, data] : seen) {
        if (data.size() != size_t(kBatch) * 2 * 2 * 260) continue;
        std::set<int32_t> places(data.begin(), data.end());
        EXPECT_EQ(places, (std::set<int32_t>{0, 1, 2, 3})) << name;
        found++;
    }
    EXPECT_TRUE(found || !e2e::device()); // the CPU finds them again in the backward pass
}

// On the CPU the model has no more memory than without; on CUDA its copies of weights and its temporaries have.
TEST_F(Pad, WeighsWhatItAdds) {
    auto memory = [](const std::string &name, bool pad) {
        Training r(Compile(name, Rows(Block("fp16", pad))), kBatch);
        amp_memory_info m = {};
        if (r.ok()) amp_session_get_memory(r.session, &m);
        return m;
    };
    const amp_memory_info with = memory("weigh-pad", true), without = memory("weigh", false);
    EXPECT_EQ(with.params, without.params);
    EXPECT_EQ(with.moments, without.moments);
    if (!e2e::device()) {
        EXPECT_EQ(with.derived, without.derived);
        EXPECT_EQ(with.total, without.total);
    } else {
        EXPECT_GT(with.derived, without.derived);
        EXPECT_LT(double(with.derived), 1.05 * double(without.derived));
    }
}

} // namespace
