// tokens_test.cc: a text of tokens becomes windows: which, in what order, and what is said of files that give none.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <numeric>
#include <csignal>
#include <set>
#include <thread>

#include "tests/tools/data_fixture.h"

namespace {

class TokensTest : public DataFixture {
  protected:
    // A model that reads T = 4 ids and predicts as many.
    void SetUp() override {
        DataFixture::SetUp();
        inputs.model = "gpt";
        inputs.count = 2;
        inputs.model_inputs = inputs.train_inputs = 1;
        inputs.input[0] = Input("ids", AMP_DT_I32, {4});
        inputs.input[1] = Input("next", AMP_DT_I32, {4});
        inputs.ignored[0] = inputs.ignored[1] = INT64_MIN;
    }
    std::string Counting(int count) {
        std::string text;
        for (int i = 0; i < count; i++) text += static_cast<char>(i);
        return text;
    }
    int Read(const std::string &bytes, const std::string &options = "", Part part = PART_TRAIN) {
        return data_read(&data, ("tokens:" + Write("text", bytes) + options).c_str(), part, &inputs);
    }
    // The windows of |samples|: what the first input gets, then the second.
    std::vector<std::vector<int32_t>> Windows(const std::vector<int64_t> &samples) {
        const int64_t n = static_cast<int64_t>(samples.size());
        void *const *batch = data_batch_new(&data, n);
        EXPECT_EQ(data_gather(&data, samples.data(), {n, 0}, batch), 0);
        std::vector<std::vector<int32_t>> out;
        for (int64_t i = 0; i < n; i++) {
            out.emplace_back();
            for (int c = 0; c < data.columns; c++) {
                const int32_t *at = static_cast<int32_t *>(batch[c]) + 4 * i;
                out.back().insert(out.back().end(), at, at + 4);
            }
        }
        data_batch_free(&data, batch);
        return out;
    }
    std::vector<int64_t> InOrder() { return Epoch(0, DATA_IN_ORDER); }
    std::vector<int64_t> Epoch(uint64_t seed, int64_t epoch) {
        std::vector<int64_t> order(static_cast<size_t>(data.count));
        data_order(&data, seed, epoch, order.data());
        return order;
    }
};

// What a pipe gives is read from its one opening.
TEST_F(TokensTest, APipeIsOpenedOnce) {
    alarm(20);
    const std::string pipe = Path("pipe"), bytes = Counting(40);
    ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
    std::thread writer([&] {
        signal(SIGPIPE, SIG_IGN);
        FILE *to = fopen(pipe.c_str(), "wb");
        EXPECT_EQ(fwrite(bytes.data(), 1, bytes.size(), to), bytes.size());
        EXPECT_EQ(fclose(to), 0);
    });
    EXPECT_EQ(data_read(&data, ("tokens:" + pipe + ",type=u8,held=0").c_str(), PART_TRAIN, &inputs), 0);
    writer.join();
    alarm(0);
}

TEST_F(TokensTest, AWindowIsReadAndPredicted) {
    ASSERT_EQ(Read(Counting(13), ",held=0", PART_TEST), 0);
    EXPECT_EQ(data.count, 3);
    EXPECT_EQ(Windows(InOrder()),
              (std::vector<std::vector<int32_t>>{
                  {0, 1, 2, 3, 1, 2, 3, 4}, {4, 5, 6, 7, 5, 6, 7, 8}, {8, 9, 10, 11, 9, 10, 11, 12}}));
}

TEST_F(TokensTest, IdsOfEveryType) {
    inputs.count = 1;
    ASSERT_EQ(Read(BytesOf<uint16_t>({1, 256, 65535, 7, 8}), ",type=u16,held=0"), 0);
    EXPECT_EQ(Windows({0}), (std::vector<std::vector<int32_t>>{{1, 256, 65535, 7}}));
    data_close(&data);
    ASSERT_EQ(Read(BytesOf<uint32_t>({1, 70000, INT32_MAX, 7, 8}), ",held=0,type=u32"), 0);
    EXPECT_EQ(Windows({0}), (std::vector<std::vector<int32_t>>{{1, 70000, INT32_MAX, 7}}));
    data_close(&data);
    inputs.input[0].dtype = AMP_DT_U8;
    ASSERT_EQ(Read("\xff\x01\x80zz", ",type=u8,held=0"), 0);
    void *const *batch = data_batch_new(&data, 1);
    const int64_t first = 0;
    ASSERT_EQ(data_gather(&data, &first, {1, 0}, batch), 0);
    EXPECT_EQ(std::string(static_cast<char *>(batch[0]), 4), "\xff\x01\x80z");
    data_batch_free(&data, batch);
    data_close(&data);
    inputs.input[0].dtype = AMP_DT_I64;
    ASSERT_EQ(Read(BytesOf<uint32_t>({UINT32_MAX, 2, 3, 4, 5}), ",type=u32,held=0"), 0);
    batch = data_batch_new(&data, 1);
    ASSERT_EQ(data_gather(&data, &first, {1, 0}, batch), 0);
    EXPECT_EQ(static_cast<int64_t *>(batch[0])[0], int64_t{UINT32_MAX});
    data_batch_free(&data, batch);
}

// No window of training reaches into the tail, and the tail is evaluated whole.
TEST_F(TokensTest, TheTailIsHeldOut) {
    for (const char *held : {"", ",held=0.1", ",held=0.25", ",held=3"}) {
        ASSERT_EQ(Read(Counting(200), held), 0);
        EXPECT_TRUE(data.has_test);
        int32_t largest = 0;
        for (int64_t epoch = 0; epoch < 60; epoch++)
            for (const auto &window : Windows(Epoch(1, epoch))) largest = std::max(largest, window.back());
        data_close(&data);
        ASSERT_EQ(Read(Counting(200), held, PART_TEST), 0);
        const int32_t first = Windows(InOrder()).front().front(), last = Windows(InOrder()).back().back();
        EXPECT_EQ(largest, first - 1) << held << ": the last token of the trained part is predicted in some epoch";
        EXPECT_GT(last, 199 - 4) << held;
        EXPECT_EQ(first, !*held || held[6] == '0' ? (held[8] == '2' ? 150 : 180) : 200 - 13) << held;
        data_close(&data);
    }
}

TEST_F(TokensTest, OptionsOfTheCallDecideWhereTheSpecSaysNothing) {
    inputs.options.whole = true;
    ASSERT_EQ(Read(Counting(200)), 0);
    EXPECT_FALSE(data.has_test);
    EXPECT_EQ(data.tokens.count, 200);
    data_close(&data);
    inputs.options.held = 0.5;
    ASSERT_EQ(Read(Counting(200)), 0);
    EXPECT_EQ(data.tokens.count, 100);
    data_close(&data);
    ExpectFailure([&] { return Read(Counting(200), ",held=0.1"); }, "held= and --eval-split both say");
}

// Each epoch predicts each token once, but fewer than two windows' at the ends; seeds and epochs cut in other places.
TEST_F(TokensTest, AnEpochTakesEachTokenOnce) {
    ASSERT_EQ(Read(Counting(103), ",held=0"), 0);
    std::set<int64_t> starts;
    for (int64_t epoch = 0; epoch < 60; epoch++) {
        const std::vector<int64_t> order = Epoch(7, epoch);
        EXPECT_EQ(order, Epoch(7, epoch)) << "the same each time";
        EXPECT_NE(order, Epoch(8, epoch));
        std::vector<int32_t> predicted;
        for (const auto &window : Windows(order)) predicted.insert(predicted.end(), window.begin() + 4, window.end());
        std::sort(predicted.begin(), predicted.end());
        EXPECT_EQ(std::adjacent_find(predicted.begin(), predicted.end()), predicted.end()) << "twice";
        EXPECT_EQ(predicted.back() - predicted.front(), static_cast<int>(predicted.size()) - 1) << "a gap";
        EXPECT_GE(predicted.size(), 103u - 8);
        starts.insert(*std::min_element(order.begin(), order.end()));
    }
    EXPECT_EQ(starts, (std::set<int64_t>{0, 1, 2, 3, 4, 5, 6}));
}

// A run of today must be repeatable tomorrow.
TEST_F(TokensTest, GoldenOrder) {
    ASSERT_EQ(Read(Counting(44), ",held=0"), 0);
    EXPECT_EQ(data.count, 10);
    EXPECT_EQ(Epoch(0, 0), (std::vector<int64_t>{15, 19, 3, 31, 7, 39, 27, 35, 23, 11}));
}

TEST_F(TokensTest, OneWindowIsEnough) {
    ASSERT_EQ(Read("abcde", ",held=0"), 0);
    EXPECT_EQ(data.count, 1);
    for (int64_t epoch = 0; epoch < 5; epoch++) EXPECT_EQ(Epoch(3, epoch), std::vector<int64_t>{0});
    data_close(&data);
    ASSERT_EQ(Read("abcdefghij", ",held=1"), 0);
    EXPECT_EQ(data.tokens.count, 5);
}

TEST_F(TokensTest, TooFewTokens) {
    const std::string file = folder + "/text: ";
    ExpectFailure([&] { return Read("abcd", ",held=0"); },
                  file + "holds 4 tokens; one window takes 5, 4 to read and the next to predict");
    ExpectFailure([&] { return Read(""); }, file + "is empty");
    ExpectFailure([&] { return Read(Counting(20)); },
                  file + "of its 20 tokens 2 would be held out, and 18 trained; a window takes 5");
    ExpectFailure([&] { return Read(Counting(20), ",held=4"); }, "17 would be held out, and 3 trained");
    ExpectFailure([&] { return Read(Counting(20), ",held=2000000"); }, "8000001 would be held out, and 0 trained");
}

TEST_F(TokensTest, FilesThatAreNone) {
    ExpectFailure([&] { return Read(Counting(21), ",type=u16"); },
                  "text: 21 bytes are no whole number of ids of 2 bytes: the file is cut off, or of another type");
    ExpectFailure([&] { return Read(Counting(22), ",type=u32"); }, "22 bytes are no whole number of ids of 4 bytes");
    const auto read = [&](const std::string &spec) {
        return [this, spec] { return data_read(&data, spec.c_str(), PART_TRAIN, &inputs); };
    };
    ExpectFailure(read("tokens:" + folder), folder + ": cannot read: Is a directory");
    ExpectFailure(read("tokens:" + folder + "/none"), folder + "/none: cannot open: No such file");
    ExpectFailure(read("tokens:"), "names no file");
    if (!geteuid()) return; /* may read everything */
    const std::string secret = Write("secret", Counting(50));
    ASSERT_EQ(chmod(secret.c_str(), 0), 0);
    ExpectFailure(read("tokens:" + secret), secret + ": cannot open: Permission denied");
}

TEST_F(TokensTest, OptionsThatAreNone) {
    ExpectFailure([&] { return Read(Counting(50), ",type=u64"); }, "type=u64: u8 (bytes), u16 or u32 are read");
    ExpectFailure([&] { return Read(Counting(50), ",kind=u16"); }, "there is no option kind; there are type=, held=");
    ExpectFailure([&] { return Read(Counting(50), ",type=u8,type=u8"); }, "type= is given twice");
    for (const char *held : {"", "x", "-0.1", "1.5", "nan", "1e99"})
        ExpectFailure([&] { return Read(Counting(50), std::string(",held=") + held); },
                      std::string("held=") + held + ": a part such as 0.1, a number of samples, or 0");
}

// A comma is part of a name where no option follows it, or where there is such a file.
TEST_F(TokensTest, CommasInNames) {
    for (const char *name : {"a,b", "a,mode=1", "a,b,type=3d"}) {
        const std::string spec = "tokens:" + Write(name, Counting(50));
        if (std::string(name) == "a,b,type=3d") {
            ExpectFailure([&] { return data_read(&data, spec.c_str(), PART_TRAIN, &inputs); }, "type=3d");
            continue;
        }
        ASSERT_EQ(data_read(&data, spec.c_str(), PART_TRAIN, &inputs), 0) << spec;
        data_close(&data);
        ASSERT_EQ(data_read(&data, (spec + ",held=0").c_str(), PART_TRAIN, &inputs), 0) << spec;
        data_close(&data);
    }
}

TEST_F(TokensTest, IdsThatTheModelDoesNotTake) {
    inputs.bound[0] = 60;
    inputs.bound[1] = 50;
    ExpectFailure(
        [&] {
            return Read(BytesOf<uint16_t>({1, 2, 59, 60, 3, 61, 4}), ",type=u16,held=0");
        },
        "text: token 3 (byte 6) is 60, but the model's input ids takes ids from 0 to 59; the largest here is "
        "61: give the model a vocabulary of 62");
    ExpectFailure(
        [&] {
            return Read(BytesOf<uint16_t>({1, 2, 59, 58, 3, 51, 4}), ",type=u16,held=0");
        },
        "token 2 (byte 4) is 59, but the model's input next takes ids from 0 to 49");
    inputs.ignored[1] = 59;
    inputs.bound[1] = 58;
    ASSERT_EQ(Read(BytesOf<uint16_t>({1, 2, 59, 57, 3, 51, 4}), ",type=u16,held=0"), 0);
    data_close(&data);
    inputs.bound[0] = inputs.bound[1] = 0;
    ExpectFailure(
        [&] {
            return Read(BytesOf<uint32_t>({1, 2, 3, 4, 5, UINT32_MAX}), ",type=u32,held=0");
        },
        "token 5 (byte 20) is 4294967295");
}

TEST_F(TokensTest, ModelsThatReadNoTokens) {
    inputs.input[1] = Input("label", AMP_DT_I32, {});
    ExpectFailure([&] { return Read(Counting(50)); }, "input ids takes 4 ids per sample, and label takes 1");
    inputs.input[0] = inputs.input[1] = Input("x", AMP_DT_F32, {4});
    ExpectFailure([&] { return Read(Counting(50)); }, "input x is f32; tokens are fed to inputs of i32");
    inputs.model_inputs = 2;
    ExpectFailure([&] { return Read(Counting(50)); }, "gpt has 2 and 1: use safetensors:FILE");
}

TEST_F(TokensTest, AFileThatIsCutWhileItIsRead) {
    ASSERT_EQ(Read(std::string(100000, 'x'), ",held=0"), 0);
    ASSERT_EQ(truncate((folder + "/text").c_str(), 100), 0);
    const int64_t last = 99990;
    void *const *batch = data_batch_new(&data, 1);
    testing::internal::CaptureStderr();
    EXPECT_EQ(data_gather(&data, &last, {1, 0}, batch), 1);
    EXPECT_NE(testing::internal::GetCapturedStderr().find("the file has become shorter"), std::string::npos);
    data_batch_free(&data, batch);
}

TEST_F(TokensTest, ErrorsNameTheWindow) {
    ASSERT_EQ(Read(Counting(50), ",held=0"), 0);
    amp_error err = {};
    snprintf(err.message, sizeof err.message, "input ids, sample 1: index 9");
    const int64_t index[] = {3, 17};
    testing::internal::CaptureStderr();
    EXPECT_EQ(data_report(&data, index, 2, &err), 1);
    EXPECT_EQ(testing::internal::GetCapturedStderr(),
              "amprun: tokens:" + folder + "/text,held=0: input ids, the window from token 17: index 9\n");
}

// A pipe has no place to map: it is read.
TEST_F(TokensTest, APipeIsRead) {
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    ASSERT_EQ(write(ends[1], "abcdefghij", 10), 10);
    close(ends[1]);
    const std::string spec = "tokens:/dev/fd/" + std::to_string(ends[0]) + ",held=0";
    ASSERT_EQ(data_read(&data, spec.c_str(), PART_TEST, &inputs), 0);
    EXPECT_EQ(data.count, 2);
    close(ends[0]);
}

} // namespace
