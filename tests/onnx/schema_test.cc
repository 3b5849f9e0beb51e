// schema_test.cc: the table of ops, as it is read. tests/checks/full/onnx_ops.sh compares it with the onnx wheel.
#include "onnx/schema.h"

#include <gtest/gtest.h>

#include <string>

namespace {

class Schema : public ::testing::Test {
  protected:
    Schema() {
        arena_init(&arena, nullptr);
        onnx_schemas_init(&s, &arena);
    }
    ~Schema() override { arena_free(&arena); }

    const OnnxSchema *find(const char *op, int64_t opset, const char *domain = "") {
        return onnx_schema(&s, domain, op, opset);
    }
    std::string types(const OnnxSchema *schema, int variable) {
        Text t;
        text_init(&t, &arena);
        onnx_set_print(&t, &schema->variable[variable].allowed);
        return text_str(&t);
    }
    Arena arena;
    OnnxSchemas s;
};

TEST_F(Schema, TypesGrowWithTheOpset) {
    const OnnxSchema *old = find("Conv", 21), *now = find("Conv", 22);
    ASSERT_NE(old, nullptr);
    ASSERT_NE(now, nullptr);
    EXPECT_EQ(types(old, 0), "float32, float16, float64");
    EXPECT_EQ(types(now, 0), "float32, float16, float64, bfloat16");
    EXPECT_EQ(old->since, 11);
    EXPECT_EQ(now->since, 22);
    EXPECT_EQ(find("Conv", 28), find("Conv", 28)) << "read once";
}

TEST_F(Schema, SignaturesChange) {
    EXPECT_EQ(find("BatchNormalization", 13)->variables, 1);
    EXPECT_EQ(find("BatchNormalization", 14)->variables, 2);
    EXPECT_EQ(find("BatchNormalization", 15)->variables, 3);
    EXPECT_EQ(find("Split", 12)->inputs, 1);
    EXPECT_EQ(find("Split", 13)->inputs, 2);
    EXPECT_EQ(find("Gelu", 19), nullptr);
    EXPECT_NE(find("Gelu", 20), nullptr);
    EXPECT_EQ(onnx_schema_first(&s, "", "Gelu"), 20);
    EXPECT_EQ(onnx_schema_first(&s, "", "Gulu"), 0);
}

TEST_F(Schema, ParametersAreFixedOptionalOrMany) {
    const OnnxSchema *resize = find("Resize", 19), *concat = find("Concat", 13), *loop = find("Loop", 16);
    EXPECT_EQ(resize->input[2].variable, -1);
    EXPECT_EQ(resize->input[2].dtype, ONNX_FLOAT);
    EXPECT_TRUE(resize->input[2].optional);
    EXPECT_NE(resize->input[0].variable, resize->input[1].variable);
    EXPECT_TRUE(concat->input[0].any_number);
    EXPECT_FALSE(concat->input[0].mixed);
    EXPECT_EQ(onnx_param(concat->input, concat->inputs, 7), &concat->input[0]);
    EXPECT_TRUE(loop->input[2].mixed);
    EXPECT_EQ(onnx_param(resize->input, resize->inputs, 4), nullptr);
}

TEST_F(Schema, SetsAreAddedAndTakenAway) {
    const OnnxSchema *cast = find("Cast", 19), *identity = find("Identity", 16);
    EXPECT_TRUE(onnx_type_in({ONNX_KIND_TENSOR, ONNX_STRING, 0}, &cast->variable[0].allowed));
    EXPECT_FALSE(onnx_type_in({ONNX_KIND_TENSOR, ONNX_COMPLEX64, 0}, &cast->variable[0].allowed));
    EXPECT_STREQ(cast->variable[1].attribute, "to");
    EXPECT_TRUE(onnx_type_in({ONNX_KIND_SEQUENCE, ONNX_FLOAT, 0}, &identity->variable[0].allowed));
    EXPECT_FALSE(onnx_type_in({ONNX_KIND_SEQUENCE, ONNX_BFLOAT16, 0}, &identity->variable[0].allowed));
    EXPECT_FALSE(onnx_type_in({ONNX_KIND_MAP, ONNX_FLOAT, 0}, &identity->variable[0].allowed));
    EXPECT_TRUE(onnx_type_in({ONNX_KIND_MAP_SEQUENCE, ONNX_FLOAT, ONNX_INT64},
                             &find("ZipMap", 1, "ai.onnx.ml")->variable[0].allowed));
}

TEST_F(Schema, WhatNoInputSaysIsStated) {
    const OnnxSchema *eye = find("EyeLike", 11), *dequantize = find("DequantizeLinear", 23);
    EXPECT_STREQ(eye->variable[1].attribute, "dtype");
    EXPECT_EQ(eye->variable[1].default_variable, 0);
    EXPECT_STREQ(dequantize->variable[2].attribute, "output_dtype");
    EXPECT_EQ(dequantize->variable[2].default_variable, 1);
    EXPECT_EQ(find("QuantizeLinear", 11)->variable[1].default_dtype, ONNX_UINT8);
}

TEST_F(Schema, EveryRowReads) {
    for (int i = 0; i < s.ops.entries.len; i++) {
        std::string key = s.ops.entries.data[i].key;
        size_t colon = key.find(':');
        const OnnxSchema *schema = find(key.substr(colon + 1).c_str(), 28, key.substr(0, colon).c_str());
        ASSERT_NE(schema, nullptr) << key;
        for (int k = 0; k < schema->variables; k++) EXPECT_NE(types(schema, k), "") << key << schema->variable[k].name;
        EXPECT_LE(schema->inputs, ONNX_PARAMS) << key;
    }
}

} // namespace
