// policy_names_test.cc: the table of what ops of ONNX are to policies: in order, of ops and names that exist.
#include <set>
#include <sstream>

#include "onnx/deciding.h"
#include "tests/onnx/decide_fixture.h"

namespace {

const char *const kOps[] = {
#define NAME(op, names, traits) #op,
#include "onnx/policy_names.def"
};

class PolicyNamesTest : public DecideTest {};

TEST_F(PolicyNamesTest, EachOpIsFoundAndIsOneOfOnnx) {
    OnnxSchemas schemas;
    onnx_schemas_init(&schemas, &arena_);
    for (size_t i = 0; i < sizeof kOps / sizeof *kOps; i++) {
        EXPECT_TRUE(!i || strcmp(kOps[i - 1], kOps[i]) < 0) << kOps[i];
        ASSERT_NE(onnx_row(kOps[i]), nullptr) << kOps[i];
        EXPECT_TRUE(onnx_schema_first(&schemas, "", kOps[i]) || onnx_schema_first(&schemas, "com.microsoft", kOps[i]))
            << kOps[i];
    }
    for (const char *op : {"", "Abss", "relu", "Loop", "QuantizeLinear"}) EXPECT_EQ(onnx_row(op), nullptr) << op;
}

// Where a policy cannot list an op, '*' decides.
TEST_F(PolicyNamesTest, NamesAreKnownToPolicies) {
    const std::set<std::string> unlisted = {"acosh", "asinh", "atan", "atanh", "avg_pool1d", "cast", "const", "shape"};
    for (const char *op : kOps) {
        std::istringstream names(onnx_row(op)->names);
        for (std::string name; names >> name;) {
            const size_t digit = name.find('#');
            if (digit != std::string::npos) name[digit] = '3';
            if (unlisted.count(name)) continue;
            EXPECT_TRUE(policy_is_foreign(name.c_str()) || policy_knows(&arena_, name.c_str(), nullptr)) << name;
        }
    }
}

TEST_F(PolicyNamesTest, TheFirstNameWithALineDecides) {
    const Policy *torch = ReadPolicy("torch-fp16"), *min_cast = ReadPolicy("min-cast");
    const OnnxNamed lstm = onnx_named(&arena_, torch, onnx_row("LSTM")->names, 0);
    EXPECT_STREQ(lstm.name, "_cudnn_rnn");
    EXPECT_EQ(lstm.line->op_class, POLICY_LOWER);
    EXPECT_EQ(lstm.code, OP_linear);
    EXPECT_STREQ(onnx_named(&arena_, min_cast, onnx_row("LSTM")->names, 0).name, "linear");
    EXPECT_STREQ(onnx_named(&arena_, torch, onnx_row("Conv")->names, 3).name, "conv3d");
    EXPECT_STREQ(onnx_named(&arena_, min_cast, onnx_row("Conv")->names, 3).name, "conv2d");
    const OnnxNamed relu = onnx_named(&arena_, torch, onnx_row("Relu")->names, 0);
    EXPECT_STREQ(relu.name, "relu");
    EXPECT_EQ(relu.line, policy_line(torch, "*", nullptr));
}

} // namespace
