// Between which numbers values are: weights exactly, others as a file of JSON says.
#include "onnx/ranges.h"

#include <cmath>
#include <limits>

#include "tests/onnx/decide_fixture.h"

namespace {

class RangesTest : public DecideTest {
  protected:
    void Look(const std::vector<float> &numbers, int low) {
        GraphBuilder g = Clear();
        const int64_t count = static_cast<int64_t>(numbers.size());
        vec_push(&arena_, &model_.graph->initializers,
                 onnx_tensor_of(&arena_, "w", ONNX_FLOAT, &count, 1, numbers.data()));
        g.Input("x", {"N", "4"}).Output("y").Node("a", "Add", {"x", "w"}, {"y"});
        Solve();
        found_.assign(static_cast<size_t>(index_.value_count), OnnxMagnitude{});
        losses_.assign(static_cast<size_t>(index_.value_count), OnnxLoss{});
        ASSERT_EQ(onnx_weight_ranges(&model_, &index_, low, found_.data(), losses_.data(), &error_), AMP_OK)
            << error_.message;
    }

    amp_status Read(const std::string &text) {
        unknown_ = -1;
        return onnx_read_ranges(text.data(), text.size(), "r.json", &index_, found_.data(), &unknown_, &error_);
    }

    OnnxMagnitude Of(const std::string &name) const { return found_[static_cast<size_t>(ValueOf(name))]; }
    OnnxLoss LossOf(const std::string &name) const { return losses_[static_cast<size_t>(ValueOf(name))]; }

    std::vector<OnnxMagnitude> found_;
    std::vector<OnnxLoss> losses_;
    int64_t unknown_ = 0;
};

TEST_F(RangesTest, WeightsAreCountedAsF16RoundsThem) {
    const float infinity = std::numeric_limits<float>::infinity();
    // 65520 is halfway to the number after 65504, and rounds to infinity; 2^-25 is halfway to zero, and rounds to it
    Look({0.0f, -65519.99f, 65520.0f, 0x1p-25f, 0x1.000002p-25f, -3.0f, infinity, std::nanf("")}, ONNX_FLOAT16);
    EXPECT_EQ(Of("w").largest, 65520.0);
    EXPECT_EQ(Of("w").smallest, 0x1p-25);
    EXPECT_EQ(LossOf("w").over, 1u);
    EXPECT_EQ(LossOf("w").under, 1u);
    EXPECT_EQ(Of("x").largest, 0.0);
}

TEST_F(RangesTest, AndAsBf16Does) {
    Look({0x1.fep127f, 0x1.ffp127f, -0x1.fep127f, 0x1p-133f, 0x1p-134f, 65520.0f}, ONNX_BFLOAT16);
    EXPECT_EQ(LossOf("w").over, 1u);
    EXPECT_EQ(LossOf("w").under, 1u);
}

TEST_F(RangesTest, ZerosHaveNoMagnitude) {
    Look({0.0f, -0.0f}, ONNX_FLOAT16);
    EXPECT_EQ(Of("w").largest, 0.0);
    EXPECT_EQ(Of("w").smallest, 0.0);
}

TEST_F(RangesTest, AFileSaysWhatValuesAre) {
    Look({1.0f, 2.0f}, ONNX_FLOAT16);
    ASSERT_EQ(Read("{\"x\": [-7e4, 12], \"y\": [0.5, 3], \"w\": [0, 9e9], \"gone\": [1, 2]}"), AMP_OK)
        << error_.message;
    EXPECT_EQ(Of("x").largest, 7e4);
    EXPECT_EQ(Of("x").smallest, 0.0) << "zero is between the two";
    EXPECT_EQ(Of("y").smallest, 0.5);
    EXPECT_EQ(Of("w").largest, 2.0) << "of a weight more is known";
    EXPECT_EQ(unknown_, 1);
}

TEST_F(RangesTest, WrongFilesSayWhere) {
    Look({1.0f}, ONNX_FLOAT16);
    const struct {
        const char *text, *message;
    } cases[] = {
        {"[1]", "r.json: is array; an object is wanted: {\"VALUE\": [SMALLEST, LARGEST], ...}"},
        {"{\"x\": 3}", "r.json: byte 6: \"x\" is to be [SMALLEST, LARGEST], two numbers"},
        {"{\"x\": [1]}", "r.json: byte 6: \"x\" is to be [SMALLEST, LARGEST], two numbers"},
        {"{\"x\": [2, 1]}", "r.json: byte 6: the smallest number of \"x\", 2, is larger than the largest, 1"},
        {"{\"gone\": [1, 2]}", "r.json: no name in it is of a value of the model: the first is \"gone\""},
    };
    for (const auto &c : cases) {
        EXPECT_EQ(Read(c.text), AMP_BAD_FILE) << c.text;
        EXPECT_STREQ(error_.message, c.message);
    }
    EXPECT_EQ(Read("{\"x\": [1, 2"), AMP_BAD_FILE);
    EXPECT_EQ(std::string(error_.message).substr(0, 13), "r.json: byte ");
}

} // namespace
