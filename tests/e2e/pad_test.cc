// `pad = true`: on CUDA rows that tensor cores multiply are longer in memory; numbers, shapes and files are those of
// the model without it. On the CPU nothing changes.
#include <cmath>
#include <fstream>
#include <iterator>

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

// Pixels of 28, 20, 3 and 12 channels, windows of which products read; their weights.
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
    EXPECT_EQ(amp_infer(r.session, batch.inputs(), kBatch, outputs, &r.err), AMP_OK) << r.err.message;
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

// On the stand-in BF16 is the next test's, whose masters are bf16 too; the long tests have it alone as well.
TEST_F(Pad, StepsOfRowsHaveTheSameBits) {
    for (const std::string precision : {"fp16", "bf16", "tf32"}) {
        if (e2e::device() && precision == "bf16" && !getenv("AMP_CUDA_ARCHS")) continue;
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
    ASSERT_EQ(amp_params_save(a.params, weights.c_str(), &a.err), AMP_OK) << a.err.message;
    ASSERT_EQ(amp_params_save(b.params, other.c_str(), &b.err), AMP_OK) << b.err.message;
    EXPECT_EQ(Bytes(weights), Bytes(other));
    ASSERT_EQ(amp_params_load(c.params, weights.c_str(), &c.err), AMP_OK) << c.err.message;
    EXPECT_TRUE(e2e::same_bits(e2e::all_params(a), e2e::all_params(c)));

    ASSERT_EQ(amp_checkpoint_save(a.session, checkpoint.c_str(), nullptr, &a.err), AMP_OK) << a.err.message;
    ASSERT_EQ(amp_checkpoint_load(c.session, checkpoint.c_str(), nullptr, 0, &c.err), AMP_OK) << c.err.message;
    e2e::train(a, 2, kBatch, kIn, 10, 2);
    e2e::train(c, 2, kBatch, kIn, 10, 2);
    EXPECT_TRUE(e2e::same_bits(e2e::all_params(a), e2e::all_params(c)));
}

// On the CPU the model has no more memory than without; on CUDA its copies of weights and its temporaries have.
TEST_F(Pad, WeighsWhatItAdds) {
    auto memory = [](const std::string &name, bool pad) {
        Training r(Compile(name, Rows(Block("fp16", pad))), kBatch);
        amp_memory_info m = {};
        if (r.ok()) amp_session_memory(r.session, &m);
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
