// diff_test.cc: what `ampc diff` prints, by files: golden/NAME.txt.  The numbers of a step are its kernels': a
// change of the compiler may change them, and lines of a policy move when it is edited.  To write the files anew:
//
//     AMP_BLESS=1 bazel run //tests/tools:diff_test
#include <stdio.h>
#include <sys/wait.h>

#include <string>

#include "gtest/gtest.h"
#include "tests/golden/golden.h"

namespace {

const char kFolder[] = "tests/tools/golden";

struct Case {
    const char *name, *arguments;
};

const Case kCases[] = {
    {"cnn", "examples/cnn/cnn.amp torch-fp16 min-cast"},
    {"versions", "tests/tools/golden/norm.amp torch-fp16@2.11 torch-fp16 --batch 4096 --gpu A100"},
    {"dtypes", "tests/tools/golden/norm.amp fp32 torch-bf16 --gpu T4"},
    {"one_policy", "tests/tools/golden/norm.amp torch-fp16"},
    {"models", "tests/tools/golden/norm.amp tests/tools/golden/other.amp --precision fp16"},
    {"same", "tests/tools/golden/norm.amp tests/tools/golden/norm.amp"},
};

class Diff : public testing::TestWithParam<Case> {};

TEST_P(Diff, Prints) {
    const std::string command = std::string("tools/ampc diff ") + GetParam().arguments + " 2>&1";
    FILE *told = popen(command.c_str(), "r");
    ASSERT_NE(told, nullptr);
    std::string text;
    char piece[4096];
    for (size_t n; (n = fread(piece, 1, sizeof piece, told)) > 0;) text.append(piece, n);
    const int status = pclose(told);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status << "\n" << text;
    golden::Check(kFolder, GetParam().name, {".txt", text}, {".txt"});
}

INSTANTIATE_TEST_SUITE_P(Files, Diff, testing::ValuesIn(kCases),
                         [](const testing::TestParamInfo<Case> &info) { return std::string(info.param.name); });

} // namespace
