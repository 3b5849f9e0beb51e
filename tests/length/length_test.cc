/* length_test.cc: whole models: with any T passes decide as with one, and in float64 they compute the same. */
#include "tests/length/length.h"

namespace {

const char *const kModels[] = {"bert", "first", "gpt", "llama", "norms", "pool"};

class Length : public LengthTest, public testing::WithParamInterface<const char *> {
  protected:
    std::string Model() { return File(std::string("tests/length/") + GetParam() + ".amp"); }
};

TEST_P(Length, PassesDecideAsForOneLength) {
    for (int64_t t : {16, 48, 64, 256}) ExpectSameDecisions(Model(), t);
}

TEST_P(Length, ComputesWhatTheModelOfOneLengthDoes) {
    for (Stage stage : {STAGE_AUTODIFF, STAGE_LOWER})
        for (int64_t t : {16, 32}) ExpectSameNumbers(Model(), t, stage);
}

INSTANTIATE_TEST_SUITE_P(Models, Length, testing::ValuesIn(kModels),
                         [](const testing::TestParamInfo<const char *> &info) { return std::string(info.param); });

} // namespace
