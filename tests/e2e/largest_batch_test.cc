// amprun info --batch auto: the batch that is found runs within the limit and the next one does not, to the byte, as an
// allocator counts it; and it is the largest there is, also where a batch takes less than a smaller one.
#include <algorithm>
#include <fstream>
#include <sstream>

#include "tests/base/counted_memory.h"
#include "tests/e2e/harness.h"
#include "tools/amprun/info/info.h"

namespace {

std::string read_file(const std::string &path) {
    std::ifstream in(path);
    EXPECT_TRUE(in) << path;
    std::stringstream text;
    text << in.rdbuf();
    return text.str();
}

// Samples go in pairs.
const char *const PAIRS = "amp 1\n"
                          "model pairs(x: f32[N, 12]) -> logits {\n"
                          "    logits = linear(reshape(x; shape = [N / 2, 24]); out = 5) as fc\n"
                          "}\n"
                          "train pairs {\n"
                          "    input targets: i32[N / 2]\n"
                          "    loss = cross_entropy(logits, targets)\n"
                          "    optimizer = adamw(lr = 0.01)\n"
                          "}\n";

struct Model {
    const char *name, *precision;
    std::string (*text)();
    int64_t multiple;
};

const Model MODELS[] = {
    {"mlp", "fp16", [] { return read_file("examples/fashion_mnist/mlp.amp"); }, 1},
    {"cnn", "bf16", [] { return read_file("examples/fashion_mnist/cnn.amp"); }, 1},
    {"tabular", "bf16", [] { return read_file("examples/tabular/tabular.amp"); }, 1},
    {"contrast", "fp32", [] { return e2e::contrast(8); }, 1}, // memory grows with the square of the batch
    {"pairs", "fp16", [] { return std::string(PAIRS); }, 2},
};

std::string compiled(const Model &m) {
    amp_compile_options options = {};
    options.precision = m.precision;
    return e2e::compile_to_file(m.text(), std::string("largest-") + m.name + ".so", options);
}

amp::SessionOptions options_of(int64_t capacity) {
    amp::SessionOptions o;
    o.threads = 2;
    o.capacity.n = capacity;
    return o;
}

// What is allocated at once, at most, from params to the end of a step.
size_t bytes_to_train(const std::string &path, int64_t batch) {
    Counter counter;
    const amp_allocator allocator = counter.allocator();
    const amp_model_options with = {sizeof with, &allocator};
    amp_error err = {};
    amp_model *model = nullptr;
    amp_params *params = nullptr;
    amp_session *session = nullptr;
    EXPECT_EQ(amp_model_load(path.c_str(), &with, &model, &err), AMP_OK) << err.message;
    const size_t of_model = counter.live;
    counter.most = counter.live;
    const amp::SessionOptions o = options_of(batch);
    EXPECT_EQ(amp_params_create(model, nullptr, &params, &err), AMP_OK) << err.message;
    EXPECT_EQ(amp_session_create(model, params, &o, &session, &err), AMP_OK) << err.message;
    std::vector<std::vector<float>> arrays;
    std::vector<const void *> inputs;
    amp_tensor_info input;
    for (int32_t i = 0; !amp_model_input_at(model, i, {batch, 0}, &input, nullptr); i++) {
        size_t count = 1;
        for (int32_t d = 0; d < input.rank; d++) count *= static_cast<size_t>(input.dims[d]);
        arrays.emplace_back(count); // zeros, of whatever type of four bytes
    }
    for (auto &array : arrays) inputs.push_back(array.data());
    EXPECT_EQ(amp_step(session, inputs.data(), {batch, 0}, nullptr, &err), AMP_OK) << err.message;
    amp_session_release(session);
    amp_params_release(params);
    const size_t most = counter.most - of_model;
    amp_model_release(model);
    return most;
}

class LargestBatchTest : public ::testing::TestWithParam<Model> {};

TEST_P(LargestBatchTest, RunsWithinTheLimitAndTheNextDoesNot) {
    const std::string path = compiled(GetParam());
    amp_error err = {};
    amp_model *model = nullptr;
    ASSERT_EQ(amp_model_load(path.c_str(), nullptr, &model, &err), AMP_OK) << err.message;
    const amp::SessionOptions o = options_of(0);
    LargestBatch smallest;
    ASSERT_EQ(largest_batch(model, &o, 1, &smallest, &err), AMP_OK) << err.message;
    EXPECT_EQ(smallest.batch, 0);
    const uint64_t least = smallest.memory.total;
    for (const uint64_t limit : {least, least + (3 << 20), least + (uint64_t{37} << 20) + 12345}) {
        LargestBatch found;
        ASSERT_EQ(largest_batch(model, &o, limit, &found, &err), AMP_OK) << err.message;
        ASSERT_GT(found.batch, 0);
        EXPECT_EQ(found.batch % GetParam().multiple, 0);
        EXPECT_EQ(found.next, found.batch + GetParam().multiple);
        EXPECT_GE(found.bound, found.batch);
        EXPECT_LE(found.memory.total, limit);
        EXPECT_GT(found.next_total, limit);
        EXPECT_EQ(bytes_to_train(path, found.batch), found.memory.total);
        EXPECT_EQ(bytes_to_train(path, found.next), found.next_total);
    }
    LargestBatch below;
    ASSERT_EQ(largest_batch(model, &o, least - 1, &below, &err), AMP_OK) << err.message;
    EXPECT_EQ(below.batch, 0) << "a byte less than the smallest batch takes";
    amp_model_release(model);
}

INSTANTIATE_TEST_SUITE_P(Models, LargestBatchTest, ::testing::ValuesIn(MODELS),
                         [](const auto &info) { return std::string(info.param.name); });

// Against planning every batch.
TEST(LargestBatch, IsTheLargestWhereMemoryDoesNotGrowWithEveryBatch) {
    const int64_t batches = 260;
    const std::string path = compiled(MODELS[2]);
    amp_error err = {};
    amp_model *model = nullptr;
    ASSERT_EQ(amp_model_load(path.c_str(), nullptr, &model, &err), AMP_OK) << err.message;
    std::vector<uint64_t> total(1, 0), limits;
    for (int64_t n = 1; n <= batches; n++) {
        const amp::SessionOptions o = options_of(n);
        amp_memory_info m;
        ASSERT_EQ(amp_session_plan(model, nullptr, &o, &m, &err), AMP_OK) << err.message;
        if (m.total < total.back()) limits.insert(limits.end(), {m.total - 1, m.total, total.back() - 1, total.back()});
        total.push_back(m.total);
    }
    EXPECT_GT(limits.size(), 0u) << "no batch takes less than a smaller one: this test needs another model";
    limits.insert(limits.end(), {total[1], total[40] - 1, total[40]});
    for (const uint64_t limit : limits) {
        int64_t wanted = batches - 1;
        while (wanted > 0 && total[wanted] > limit) wanted--;
        const amp::SessionOptions o = options_of(0);
        LargestBatch found;
        ASSERT_EQ(largest_batch(model, &o, limit, &found, &err), AMP_OK) << err.message;
        EXPECT_EQ(found.batch, wanted) << limit << " bytes";
        EXPECT_EQ(found.memory.total, total[wanted]);
        EXPECT_EQ(found.next_total, total[wanted + 1]);
    }
    amp_model_release(model);
}

TEST(LargestBatch, EndsAtWhatACallTakes) {
    amp_error err = {};
    amp_model *model = nullptr;
    LargestBatch found;
    const amp::SessionOptions o = options_of(0);
    ASSERT_EQ(amp_model_load(compiled(MODELS[4]).c_str(), nullptr, &model, &err), AMP_OK) << err.message;
    ASSERT_EQ(largest_batch(model, &o, UINT64_C(1) << 52, &found, &err), AMP_OK) << err.message;
    EXPECT_EQ(found.batch, 1 << 24);
    EXPECT_EQ(found.next, 0);
    amp::SessionOptions wrong = o;
    wrong.device = "tpu";
    EXPECT_EQ(largest_batch(model, &wrong, 1 << 30, &found, &err), AMP_NOT_FOUND);
    amp_model_release(model);
}

} // namespace
