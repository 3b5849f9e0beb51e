// data_test.cc: samples from IDX and safetensors files become what a model's inputs read, or a message says why not.
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/tools/data_fixture.h"

namespace {

class DataTest : public DataFixture {
  protected:
    // A model with one input of 2 x 2 floats and integer targets, unless a test says otherwise.
    void SetUp() override {
        DataFixture::SetUp();
        inputs.model = "mlp";
        inputs.count = 2;
        inputs.model_inputs = inputs.train_inputs = 1;
        inputs.input[0] = Input("x", AMP_DT_F32, {2, 2});
        inputs.input[1] = Input("targets", AMP_DT_I32, {});
    }
    void WriteImages(const std::string &images, const std::string &labels) {
        Write("train-images-idx3-ubyte", images);
        WriteGzip("train-labels-idx1-ubyte.gz", labels);
    }
    int ReadIdx(Part part = PART_TRAIN) { return data_read(&data, ("idx:" + folder).c_str(), part, &inputs); }
    int ReadTensors(const std::vector<Array> &arrays) {
        return data_read(&data, ("safetensors:" + Write("data", Safetensors(arrays))).c_str(), PART_TRAIN, &inputs);
    }
};

TEST_F(DataTest, IdxPixelsAndLabels) {
    WriteImages(Idx(8, {2, 2, 2}, std::string("\0\x33\xff\x01\x02\x03\x04\x05", 8)), Idx(8, {2}, "\x09\x01"));
    ASSERT_EQ(ReadIdx(), 0);
    EXPECT_EQ(data.count, 2);
    ASSERT_EQ(data.columns, 2);
    EXPECT_EQ(Values<float>(0),
              (std::vector<float>{0, 51 / 255.0f, 1, 1 / 255.0f, 2 / 255.0f, 3 / 255.0f, 4 / 255.0f, 5 / 255.0f}));
    EXPECT_EQ(Values<int32_t>(1), (std::vector<int32_t>{9, 1}));
}

TEST_F(DataTest, IdxIntegerInputsKeepTheirPixels) {
    inputs.input[0] = Input("x", AMP_DT_U8, {4});
    WriteImages(Idx(8, {1, 2, 2}, std::string("\0\x33\xff\x01", 4)), Idx(8, {1}, "\x09"));
    ASSERT_EQ(ReadIdx(), 0);
    EXPECT_EQ(Values<uint8_t>(0), (std::vector<uint8_t>{0, 51, 255, 1}));
}

TEST_F(DataTest, IdxTestPartReadsTheOtherFiles) {
    WriteImages(Idx(8, {1, 2, 2}, "abcd"), Idx(8, {1}, "\1"));
    Write("t10k-images-idx3-ubyte", Idx(8, {3, 2, 2}, std::string(12, '\0')));
    Write("t10k-labels-idx1-ubyte", Idx(8, {3}, "\1\2\3"));
    ASSERT_EQ(ReadIdx(PART_TEST), 0);
    EXPECT_EQ(data.count, 3);
    EXPECT_EQ(Values<int32_t>(1), (std::vector<int32_t>{1, 2, 3}));
}

TEST_F(DataTest, IdxProblemsNameTheFileAndTheInput) {
    WriteImages(Idx(8, {1, 3, 3}, "abcdefghi"), Idx(8, {1}, "\1"));
    ExpectFailure([&] { return ReadIdx(); },
                  folder + "/train-images-idx3-ubyte: 9 numbers per sample; the model's input x takes 4");
    WriteImages(Idx(8, {2, 2, 2}, "abcdefgh"), Idx(8, {3}, "\1\2\3"));
    ExpectFailure([&] { return ReadIdx(); }, folder + "/train-labels-idx1-ubyte: 3 samples, but 2 in the images");
    ExpectFailure([&] { return ReadIdx(PART_TEST); }, folder + "/t10k-images-idx3-ubyte[.gz]: No such file");
    inputs.input[0].dtype = AMP_DT_BOOL;
    ExpectFailure([&] { return ReadIdx(); }, "the model's input x is bool, which is not fed from files");
    inputs.train_inputs = 2;
    ExpectFailure([&] { return ReadIdx(); }, "mlp has 1 and 2: use safetensors:FILE");
}

TEST_F(DataTest, SafetensorsOfEveryTypeBecomeTheInputs) {
    inputs.input[0] = Input("x", AMP_DT_F32, {2});
    const struct {
        const char *type;
        std::string bytes;
    } same[] = {
        {"F32", BytesOf<float>({1.5f, -2, 0, 7})},
        {"F64", BytesOf<double>({1.5, -2, 0, 7})},
        {"F16", BytesOf<uint16_t>({0x3e00, 0xc000, 0, 0x4700})},
        {"BF16", BytesOf<uint16_t>({0x3fc0, 0xc000, 0, 0x40e0})},
    };
    for (const auto &as : same) {
        ASSERT_EQ(ReadTensors({{"x", as.type, {2, 2}, as.bytes}, {"targets", "I64", {2}, BytesOf<int64_t>({3, -100})}}),
                  0)
            << as.type;
        EXPECT_EQ(Values<float>(0), (std::vector<float>{1.5f, -2, 0, 7})) << as.type;
        EXPECT_EQ(Values<int32_t>(1), (std::vector<int32_t>{3, -100})) << as.type;
        data_close(&data);
    }
}

TEST_F(DataTest, SafetensorsRoundToTheInputsType) {
    inputs.count = 1;
    inputs.input[0] = Input("x", AMP_DT_F16, {});
    // 2049 is between 2048 and 2050: ties to even.  65520 is the first number beyond the largest f16.
    ASSERT_EQ(ReadTensors({{"x", "F32", {3}, BytesOf<float>({2049, 65520, -1e-8f})}}), 0);
    EXPECT_EQ(Values<uint16_t>(0), (std::vector<uint16_t>{0x6800, 0x7c00, 0x8000}));
}

TEST_F(DataTest, IntegersThatDoNotFitAreRefusedByPlace) {
    inputs.count = 1;
    const struct {
        amp_dtype dtype;
        const char *message;
        double value;
    } bad[] = {
        {AMP_DT_I32, "x[1] is 0.5, which does not fit i32", 0.5},
        {AMP_DT_I32, "x[1] is 2.14748e+09, which does not fit i32", 2147483648.0},
        {AMP_DT_I32, "x[1] is nan, which does not fit i32", std::numeric_limits<double>::quiet_NaN()},
        {AMP_DT_U8, "x[1] is 256, which does not fit u8", 256},
        {AMP_DT_U8, "x[1] is -1, which does not fit u8", -1},
    };
    for (const auto &b : bad) {
        inputs.input[0] = Input("x", b.dtype, {});
        ExpectFailure([&] { return ReadTensors({{"x", "F64", {2}, BytesOf<double>({0, b.value})}}); }, b.message);
    }
    inputs.input[0] = Input("x", AMP_DT_I32, {});
    ASSERT_EQ(ReadTensors({{"x", "F64", {2}, BytesOf<double>({-2147483648.0, 2147483647.0})}}), 0);
    EXPECT_EQ(Values<int32_t>(0), (std::vector<int32_t>{INT32_MIN, INT32_MAX}));
}

TEST_F(DataTest, SafetensorsProblemsNameTheFileAndTheArray) {
    inputs.input[0] = Input("x", AMP_DT_F32, {2});
    const Array x = {"x", "F32", {2, 2}, BytesOf<float>({1, 2, 3, 4})};
    const std::string file = folder + "/data: ";
    ExpectFailure([&] { return ReadTensors({x}); }, file + "has no array named targets, which the model reads");
    ExpectFailure(
        [&] {
            return ReadTensors({x, {"targets", "I32", {3}, BytesOf<int32_t>({1, 2, 3})}});
        },
        file + "targets has 3 samples, but x has 2");
    ExpectFailure(
        [&] {
            return ReadTensors({{"x", "F32", {1, 3}, BytesOf<float>({1, 2, 3})}});
        },
        file + "x has 3 numbers per sample, the model's input takes 2");
    ExpectFailure([&] { return ReadTensors({{"x", "F32", {}, BytesOf<float>({1})}}); }, file + "x holds no samples");
    ExpectFailure([&] { return ReadTensors({{"x", "F32", {0, 2}, ""}}); }, file + "x holds no samples");
    ExpectFailure([&] { return ReadTensors({{"x", "I8", {2, 2}, "abcd"}}); }, file + "x is I8, which is not read");
}

TEST_F(DataTest, UnknownSpecs) {
    for (const char *spec : {"", "idx", "csv", "/some/folder", "safetensor:f"})
        ExpectFailure([&] { return data_read(&data, spec, PART_TRAIN, &inputs); },
                      std::string("--data ") + spec + ": write idx:DIR, safetensors:FILE, tokens:FILE or csv:FILE");
}

TEST_F(DataTest, GatherTakesSamplesInAnyOrder) {
    WriteImages(Idx(8, {3, 2, 2}, std::string("\0\0\0\0\xff\xff\xff\xff\x33\x33\x33\x33", 12)),
                Idx(8, {3}, "\7\10\11"));
    ASSERT_EQ(ReadIdx(), 0);
    void *const *batch = data_batch_new(&data, 4);
    ASSERT_NE(batch, nullptr);
    const int64_t index[] = {2, 0, 2, 1};
    EXPECT_EQ(data_gather(&data, index, {4, 0}, batch), 0);
    const float *x = static_cast<float *>(batch[0]);
    const int32_t *y = static_cast<int32_t *>(batch[1]);
    EXPECT_EQ((std::vector<float>{x[0], x[4], x[11], x[15]}), (std::vector<float>{0.2f, 0, 0.2f, 1}));
    EXPECT_EQ((std::vector<int32_t>(y, y + 4)), (std::vector<int32_t>{9, 7, 9, 8}));
    data_batch_free(&data, batch);
}

// Arrays of the type that the input reads stay in the file; others are converted once.
TEST_F(DataTest, TensorsAreReadWhereTheyAre) {
    inputs.input[0] = Input("x", AMP_DT_F32, {2});
    const Array x = {"x", "F32", {2, 2}, BytesOf<float>({1, 2, 3, 4})};
    ASSERT_EQ(ReadTensors({x, {"targets", "I64", {2}, BytesOf<int64_t>({5, 6})}}), 0);
    EXPECT_EQ(data.column[0].owned, nullptr);
    EXPECT_EQ(Values<float>(0), (std::vector<float>{1, 2, 3, 4}));
    EXPECT_NE(data.column[1].owned, nullptr);
    EXPECT_EQ(Values<int32_t>(1), (std::vector<int32_t>{5, 6}));
}

TEST_F(DataTest, AFileThatIsCutWhileItIsReadIsAnError) {
    const int64_t rows = 10000, last = rows - 1;
    inputs.count = 1;
    inputs.input[0] = Input("x", AMP_DT_F32, {2});
    ASSERT_EQ(ReadTensors({{"x", "F32", {rows, 2}, std::string(rows * 8, 'x')}}), 0);
    void *const *batch = data_batch_new(&data, 1);
    EXPECT_EQ(data_gather(&data, &last, {1, 0}, batch), 0);
    ASSERT_EQ(truncate((folder + "/data").c_str(), 100), 0);
    testing::internal::CaptureStderr();
    EXPECT_EQ(data_gather(&data, &last, {1, 0}, batch), 1);
    EXPECT_NE(testing::internal::GetCapturedStderr().find("the file has become shorter while it was read"),
              std::string::npos);
    data_batch_free(&data, batch);
}

// Every sample is in one of the two parts, the same ones each time, and errors name its place in the file.
TEST_F(DataTest, ASplitKeepsEverySampleOnce) {
    const int rows = 50;
    std::string x, y;
    for (int i = 0; i < rows; i++) x += BytesOf<float>({float(i), 0}), y += BytesOf<int32_t>({i});
    inputs.input[0] = Input("x", AMP_DT_F32, {2});
    std::vector<int32_t> first;
    for (int run = 0; run < 2; run++) {
        Dataset held = {};
        ASSERT_EQ(ReadTensors({{"x", "F32", {rows, 2}, x}, {"targets", "I32", {rows}, y}}), 0);
        ASSERT_EQ(data_split(&data, 15, &held), 0);
        EXPECT_EQ(data.count, 35);
        EXPECT_EQ(held.count, 15);
        std::vector<int32_t> seen;
        for (Dataset *d : {&held, &data}) {
            void *const *batch = data_batch_new(d, 1);
            for (int64_t i = 0; i < d->count; i++) {
                ASSERT_EQ(data_gather(d, &i, {1, 0}, batch), 0);
                seen.push_back(*static_cast<int32_t *>(batch[1]));
            }
            data_batch_free(d, batch);
        }
        if (run) {
            EXPECT_EQ(seen, first);
        }
        first = seen;
        amp_error err = {};
        snprintf(err.message, sizeof err.message, "input targets, sample 1: index 9");
        int64_t index[] = {3, 7};
        testing::internal::CaptureStderr();
        EXPECT_EQ(data_report(&held, index, 2, &err), 1);
        EXPECT_EQ(testing::internal::GetCapturedStderr(), "amprun: safetensors:" + folder +
                                                              "/data: input targets, sample " +
                                                              std::to_string(seen[7]) + ": index 9\n");
        std::sort(seen.begin(), seen.end());
        for (int i = 0; i < rows; i++) EXPECT_EQ(seen[i], i);
        data_close(&held);
        data_close(&data);
    }
}

} // namespace
