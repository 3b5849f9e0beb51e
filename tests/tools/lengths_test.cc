// lengths_test.cc: samples of different lengths become padded batches: texts between separators, and arrays with their
// lengths; how they are cut into batches, and in which order.
#include <algorithm>
#include <map>
#include <numeric>
#include <random>
#include <set>

#include "tests/tools/data_fixture.h"

namespace {

constexpr int32_t IGNORED = -100;

class LengthsTest : public DataFixture {
  protected:
    // A model that reads up to 16 ids, in units of 4, and predicts as many.
    void SetUp() override {
        DataFixture::SetUp();
        inputs.model = "gpt";
        inputs.count = 2;
        inputs.model_inputs = inputs.train_inputs = 1;
        inputs.length = 16, inputs.unit = 4;
        Take(0, "ids", AMP_DT_I32, {16}, {4});
        Take(1, "next", AMP_DT_I32, {16}, {4});
        inputs.bound[0] = inputs.bound[1] = 256;
        inputs.ignored[0] = INT64_MIN, inputs.ignored[1] = IGNORED;
    }
    void TearDown() override {
        batch_list_free(&list);
        DataFixture::TearDown();
    }
    void Take(int i, const char *name, amp_dtype dtype, std::initializer_list<int64_t> whole,
              std::initializer_list<int64_t> unit) {
        inputs.input[i] = Input(name, dtype, whole);
        inputs.at_unit[i] = Input(name, dtype, unit);
    }
    int Read(const std::string &bytes, const std::string &options = ",split=10,held=0", Part part = PART_TRAIN) {
        return data_read(&data, ("tokens:" + Write("text", bytes) + options).c_str(), part, &inputs);
    }
    int ReadTensors(const std::vector<Array> &arrays) {
        return data_read(&data, ("safetensors:" + Write("data", Safetensors(arrays))).c_str(), PART_TRAIN, &inputs);
    }
    // What input |c| gets of a batch at T = |t|.
    template <typename T> std::vector<T> Batch(int c, const std::vector<int64_t> &samples, int64_t t, int64_t numbers) {
        const int64_t n = static_cast<int64_t>(samples.size());
        void *const *batch = data_batch_new(&data, n);
        EXPECT_EQ(data_gather(&data, samples.data(), {n, t}, batch), 0);
        const T *at = static_cast<const T *>(batch[c]);
        std::vector<T> out(at, at + n * numbers);
        data_batch_free(&data, batch);
        return out;
    }
    std::vector<int64_t> Order(uint64_t seed, int64_t epoch) {
        std::vector<int64_t> order(static_cast<size_t>(data.count));
        data_order(&data, seed, epoch, order.data());
        return order;
    }
    std::vector<int64_t> Turns(uint64_t seed, int64_t epoch) {
        std::vector<int64_t> order(static_cast<size_t>(list.count));
        batch_list_order(&list, seed, epoch, order.data());
        return order;
    }
    // |count| lines of 1 to |longest| letters.
    std::string Lines(int count, int longest) {
        std::mt19937 random(5);
        std::string text;
        for (int i = 0; i < count; i++)
            text += std::string(1 + random() % longest, static_cast<char>('a' + i % 26)) + "\n";
        return text;
    }

    BatchList list = {};
};

// A text is read after a separator and predicted with the one that ends it; what follows is padding.
TEST_F(LengthsTest, TextsBetweenSeparators) {
    ASSERT_EQ(Read("abc\n\nde\nfghij"), 0);
    ASSERT_EQ(data.count, 3) << "an empty text is none";
    EXPECT_EQ(std::vector<int64_t>(data.lengths, data.lengths + 3), (std::vector<int64_t>{4, 3, 6}));
    EXPECT_EQ(Batch<int32_t>(0, {0, 1}, 4, 4), (std::vector<int32_t>{10, 'a', 'b', 'c', 10, 'd', 'e', 0}));
    EXPECT_EQ(Batch<int32_t>(1, {0, 1}, 4, 4), (std::vector<int32_t>{'a', 'b', 'c', 10, 'd', 'e', 10, IGNORED}));
    EXPECT_EQ(Batch<int32_t>(1, {2}, 8, 8), (std::vector<int32_t>{'f', 'g', 'h', 'i', 'j', 10, IGNORED, IGNORED}))
        << "the last text needs no separator";
    char place[64];
    EXPECT_STREQ(data_place(&data, 2, place), "the text from token 8");
}

TEST_F(LengthsTest, ATextThatIsTooLongGoesOnInAnotherSample) {
    std::string text;
    for (int i = 0; i < 20; i++) text += static_cast<char>('a' + i);
    ASSERT_EQ(Read("x\n" + text + "\n"), 0);
    ASSERT_EQ(data.count, 3);
    EXPECT_EQ(std::vector<int64_t>(data.lengths, data.lengths + 3), (std::vector<int64_t>{2, 16, 5}));
    EXPECT_EQ(Batch<int32_t>(1, {1}, 16, 16).back(), 'p');
    EXPECT_EQ(Batch<int32_t>(0, {2}, 8, 8), (std::vector<int32_t>{'p', 'q', 'r', 's', 't', 0, 0, 0}));
    EXPECT_EQ(Batch<int32_t>(1, {2}, 8, 8)[4], 10);
}

// A model of one length has its samples padded to it.
TEST_F(LengthsTest, TextsOfAModelOfOneLength) {
    inputs.length = inputs.unit = 0;
    ASSERT_EQ(Read("abc\nde\n"), 0);
    EXPECT_EQ(Batch<int32_t>(1, {1}, 0, 16)[3], IGNORED);
    const BatchLimits limits = {2, 0, 0};
    ASSERT_EQ(batch_list_cut(&list, &data, &limits), 0);
    ASSERT_EQ(list.count, 1);
    EXPECT_EQ(list.at[0].sizes.t, 0);
}

TEST_F(LengthsTest, TheLastTextsAreHeldOut) {
    const std::string text = "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\n";
    ASSERT_EQ(Read(text, ",split=10,held=0.2"), 0);
    EXPECT_TRUE(data.has_test);
    EXPECT_EQ(data.count, 8);
    data_close(&data);
    ASSERT_EQ(Read(text, ",split=10,held=3", PART_TEST), 0);
    EXPECT_EQ(data.count, 3);
    EXPECT_EQ(Batch<int32_t>(0, {0}, 4, 4)[1], 'h');
    data_close(&data);
    ExpectFailure([&] { return Read(text, ",split=10,held=10"); }, "of its 10 texts 10 would be held out");
}

TEST_F(LengthsTest, TextsThatAreNone) {
    ExpectFailure([&] { return Read("abc"); }, "text: is one text: no token is the separator 10 (split=10)");
    for (const char *split : {"", "x", "-1", "1.5", "256"})
        ExpectFailure([&] { return Read("a\nb", std::string(",split=") + split); },
                      std::string("split=") + split + ": the id of the token that ends a text is wanted");
    inputs.ignored[1] = INT64_MIN;
    ExpectFailure([&] { return Read("a\nb"); },
                  "the loss would count the padding of next; write cross_entropy(...; ignore = -100) in the model");
}

// ids [3, 6], mask f32 [3, 1, 6], labels [3].
TEST_F(LengthsTest, ArraysWithLengths) {
    inputs.count = 3, inputs.model_inputs = 2;
    Take(1, "mask", AMP_DT_F32, {1, 16}, {1, 4});
    Take(2, "label", AMP_DT_I32, {}, {});
    inputs.bound[1] = 0, inputs.ignored[1] = INT64_MIN;
    std::string ids, mask;
    for (int i = 0; i < 18; i++) ids += BytesOf<int64_t>({i}), mask += BytesOf<float>({1.0f + float(i)});
    const Array labels = {"label", "I32", {3}, BytesOf<int32_t>({7, 8, 9})};
    const std::vector<Array> arrays = {{"ids", "I64", {3, 6}, ids},
                                       {"mask", "F32", {3, 1, 6}, mask},
                                       labels,
                                       {"lengths", "I32", {3}, BytesOf<int32_t>({2, 6, 4})}};
    ASSERT_EQ(ReadTensors(arrays), 0);
    EXPECT_EQ(data_length(&data, 0), 4);
    EXPECT_EQ(data_length(&data, 1), 8);
    EXPECT_EQ(Batch<int32_t>(0, {2, 0}, 4, 4), (std::vector<int32_t>{12, 13, 14, 15, 0, 1, 0, 0}));
    EXPECT_EQ(Batch<float>(1, {0, 1}, 8, 8), (std::vector<float>{1, 2, 0, 0, 0, 0, 0, 0, 7, 8, 9, 10, 11, 12, 0, 0}));
    EXPECT_EQ(Batch<int32_t>(2, {2, 0}, 8, 1), (std::vector<int32_t>{9, 7}));
    data_close(&data);
    const auto with = [&](size_t i, const Array &a) {
        std::vector<Array> other = arrays;
        other[i] = a;
        return [this, other] { return ReadTensors(other); };
    };
    ExpectFailure(with(3, {"lengths", "I32", {3}, BytesOf<int32_t>({2, 7, 4})}),
                  "data: lengths[1] is 7, but ids has 6 numbers in dimension 1");
    ExpectFailure(with(3, {"lengths", "I32", {3}, BytesOf<int32_t>({2, 17, 4})}),
                  "lengths[1] is 17; T is from 1 to 16 (--length, and `size T` of the model)");
    ExpectFailure(with(3, {"lengths", "I32", {3}, BytesOf<int32_t>({0, 6, 4})}), "lengths[0] is 0; T is from 1 to 16");
    ExpectFailure(with(3, {"lengths", "I32", {2}, BytesOf<int32_t>({2, 6})}), "ids has 3 samples, but lengths 2");
    ExpectFailure(with(3, {"lengths", "F32", {3}, BytesOf<float>({2, 6, 4})}),
                  "lengths is to have one I32 or I64 for each sample");
    ExpectFailure(with(1, {"mask", "F32", {3, 6}, mask}), "mask has 2 dimensions, the model's input 3");
    ExpectFailure(with(3, {"other", "I32", {3}, labels.bytes}),
                  "ids has 6 numbers per sample, the model's input takes 16: say what T is with "
                  "--length, or what each sample's is in an array `lengths`");
}

// Where T has another dimension before and after it.
TEST_F(LengthsTest, EachDimensionIsPadded) {
    inputs.count = 1;
    Take(0, "x", AMP_DT_F32, {32, 2, 16}, {8, 2, 4}); /* [N, 2 * T, 2, T] */
    std::string bytes;
    for (int i = 0; i < 4 * 2 * 2; i++) bytes += BytesOf<float>({float(i + 1)});
    const std::vector<Array> arrays = {{"x", "F32", {1, 4, 2, 2}, bytes},
                                       {"lengths", "I64", {1}, BytesOf<int64_t>({2})}};
    ASSERT_EQ(ReadTensors(arrays), 0);
    std::vector<float> wanted(8 * 2 * 4);
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 2; j++)
            for (int k = 0; k < 2; k++) wanted[(i * 2 + j) * 4 + k] = float((i * 2 + j) * 2 + k + 1);
    EXPECT_EQ(Batch<float>(0, {0}, 4, 64), wanted);
    data_close(&data);
    Take(0, "x", AMP_DT_F32, {256}, {16});
    ExpectFailure(
        [&] {
            return ReadTensors({{"x", "F32", {1, 16}, bytes}, arrays[1]});
        },
        "the model's input x is not fed from samples with lengths: a dimension of it is T * T");
}

TEST_F(LengthsTest, BatchesHaveEachSampleOnceAndFewTokens) {
    ASSERT_EQ(Read(Lines(500, 15)), 0);
    for (int64_t tokens : {0, 16, 100, 512})
        for (int64_t n : {1, 20, 1000}) {
            const BatchLimits limits = {n, tokens, 0};
            ASSERT_EQ(batch_list_cut(&list, &data, &limits), 0);
            const std::vector<int64_t> order = Order(3, 1);
            int64_t next = 0, partial = 0;
            for (int64_t i = 0; i < list.count; i++) {
                const ::Batch *b = &list.at[i];
                EXPECT_EQ(b->from, next);
                EXPECT_LE(b->sizes.n, n);
                EXPECT_TRUE(!tokens || b->sizes.n * b->sizes.t <= tokens);
                int64_t longest = 0;
                for (int64_t k = 0; k < b->sizes.n; k++)
                    longest = std::max(longest, data_length(&data, order[static_cast<size_t>(b->from + k)]));
                EXPECT_EQ(longest, b->sizes.t);
                const int64_t room = tokens ? std::min(n, tokens / b->sizes.t) : n;
                partial += b->sizes.n < room;
                next += b->sizes.n;
            }
            EXPECT_EQ(next, 500);
            EXPECT_LE(partial, 1);
            batch_list_free(&list);
        }
    const BatchLimits limits = {1000, 15, 0};
    ExpectFailure([&] { return batch_list_cut(&list, &data, &limits); }, "has 16; give as many");
}

// Statistics need two samples: the last two batches share theirs.
TEST_F(LengthsTest, TheLastBatchesShare) {
    std::string text;
    for (int i = 0; i < 9; i++) text += "a\n";
    ASSERT_EQ(Read(text), 0);
    const BatchLimits limits = {4, 0, 2};
    ASSERT_EQ(batch_list_cut(&list, &data, &limits), 0);
    ASSERT_EQ(list.count, 3);
    EXPECT_EQ(list.at[1].sizes.n, 3);
    EXPECT_EQ(list.at[2].sizes.n, 2);
    EXPECT_EQ(list.at[2].from, 7);
}

TEST_F(LengthsTest, AnEpochShufflesBatchesAndSamplesOfALength) {
    ASSERT_EQ(Read(Lines(300, 15)), 0);
    const BatchLimits limits = {1000, 64, 0};
    ASSERT_EQ(batch_list_cut(&list, &data, &limits), 0);
    EXPECT_EQ(Order(1, 0), Order(1, 0));
    EXPECT_NE(Order(1, 0), Order(2, 0));
    EXPECT_NE(Order(1, 0), Order(1, 1));
    EXPECT_EQ(Turns(1, 0), Turns(1, 0));
    EXPECT_NE(Turns(1, 0), Turns(2, 0));
    EXPECT_NE(Turns(1, 0), Turns(1, 1));
    std::vector<int64_t> turns = Turns(1, 0), order = Order(1, 0);
    std::sort(turns.begin(), turns.end());
    for (int64_t i = 0; i < list.count; i++) EXPECT_EQ(turns[static_cast<size_t>(i)], i);
    EXPECT_EQ(std::set<int64_t>(order.begin(), order.end()).size(), 300u);
    std::map<int64_t, std::set<int64_t>> companions; /* of sample 0, over epochs */
    for (int64_t epoch = 0; epoch < 40; epoch++) {
        const std::vector<int64_t> drawn = Order(1, epoch);
        const int64_t at = std::find(drawn.begin(), drawn.end(), 0) - drawn.begin();
        companions[0].insert(drawn[static_cast<size_t>(at ? at - 1 : at + 1)]);
    }
    EXPECT_GT(companions[0].size(), 20u);
}

// A run of today must be repeatable tomorrow.
TEST_F(LengthsTest, GoldenOrder) {
    ASSERT_EQ(Read("aaaaaa\nb\nc\nddddd\neeeee\nf\n"), 0);
    const BatchLimits limits = {2, 0, 0};
    ASSERT_EQ(batch_list_cut(&list, &data, &limits), 0);
    EXPECT_EQ(Order(0, DATA_IN_ORDER), (std::vector<int64_t>{0, 3, 4, 1, 2, 5}));
    EXPECT_EQ(Order(0, 0), (std::vector<int64_t>{4, 3, 0, 5, 1, 2}));
    EXPECT_EQ(Turns(0, 0), (std::vector<int64_t>{0, 2, 1}));
}

} // namespace
