// groups_test.cc: which inputs and outputs change their type together, and to what.
#include <gtest/gtest.h>

#include "tests/onnx/model_of.h"

namespace {

const char all[] = "float32 float16 bfloat16", two[] = "float32 float16";

TEST(OnnxGroups, AVariableOfANodeIsOne) {
    ModelOf m(17);
    m.graph().input("x", ONNX_FLOAT).weight("w", ONNX_FLOAT, {4, 4}).node("MatMul", "x w", "a").node("Cos", "a", "b");
    m.graph().output("b");
    ASSERT_EQ(m.solve(), "");
    EXPECT_EQ(m.in("a", 0), m.in("a", 1));
    EXPECT_EQ(m.in("a", 0), m.out("a"));
    EXPECT_NE(m.out("a"), m.in("b", 0)) << "a cast can be between them";
    EXPECT_NE(m.definition("w"), m.in("a", 1));
    EXPECT_NE(m.definition("x"), m.in("a", 0));
    EXPECT_NE(m.out("b"), m.result(0));
    EXPECT_EQ(m.definition("a"), m.out("a"));
    EXPECT_EQ(m.allowed(m.out("a")), all);
    EXPECT_EQ(m.allowed(m.out("b")), two) << "bfloat16 from opset 22 on";
    EXPECT_EQ(m.allowed(m.definition("w")), all);
    EXPECT_EQ(m.s.groups[m.out("a")].node, 0);
    EXPECT_STREQ(m.s.groups[m.out("a")].variable, "T");
    EXPECT_EQ(m.s.groups[m.out("a")].dtype, ONNX_FLOAT);
    EXPECT_EQ(m.s.group_count, 5) << "x, w, two nodes, the output";
}

TEST(OnnxGroups, WhatIsNoFloatOrFixedHasNone) {
    ModelOf m(17);
    m.imports("mine", 1);
    m.graph().input("x", ONNX_FLOAT).weight("s", ONNX_FLOAT, {4}).weight("r", ONNX_FLOAT, {8});
    m.graph().node("Resize", "x r s", "y").node("Shape", "x", "sh").node("Foo", "y", "z", "mine").info("z", ONNX_FLOAT);
    m.graph().node("Cast", "y", "d").with("to", ONNX_DOUBLE).node("NonMaxSuppression", "y y", "n");
    m.graph().node("Celu", "y", "c").node("CastLike", "d y", "l");
    ASSERT_EQ(m.solve(), "");
    EXPECT_NE(m.in("y", 0), ONNX_NONE);
    EXPECT_NE(m.in("y", 1), ONNX_NONE) << "roi has a variable of its own";
    EXPECT_NE(m.in("y", 0), m.in("y", 1));
    EXPECT_EQ(m.allowed(m.in("y", 1)), two);
    EXPECT_EQ(m.in("y", 2), ONNX_NONE) << "scales are always float32";
    EXPECT_EQ(m.out("sh"), ONNX_NONE);
    EXPECT_NE(m.in("sh", 0), ONNX_NONE);
    EXPECT_EQ(m.in("z", 0), ONNX_NONE) << "an unknown op keeps its types";
    EXPECT_EQ(m.out("z"), ONNX_NONE);
    EXPECT_EQ(m.out("d"), ONNX_NONE);
    EXPECT_EQ(m.in("n", 0), ONNX_NONE);
    EXPECT_EQ(m.in("c", 0), ONNX_NONE) << "Celu takes float32 alone before opset 28";
    EXPECT_EQ(m.in("l", 0), ONNX_NONE);
    EXPECT_EQ(m.in("l", 1), m.out("l"));
}

TEST(OnnxGroups, AttributesSayWhichTypesChangeWithThem) {
    ModelOf m(23);
    m.graph().input("x", ONNX_FLOAT).input("q", ONNX_INT8).weight("s", ONNX_FLOAT, {}).ints("sh", {2});
    m.graph()
        .node("Cast", "x", "c")
        .with("to", ONNX_FLOAT)
        .node("Constant", "", "k")
        .with_tensor("value", ONNX_FLOAT, {});
    m.graph()
        .node("ConstantOfShape", "sh", "f")
        .node("RandomNormalLike", "x", "r")
        .node("DequantizeLinear", "q s", "dq");
    m.graph().node("RandomNormalLike", "x", "r2").with("dtype", ONNX_FLOAT).node("EyeLike", "x", "e");
    m.graph().node("DequantizeLinear", "q s", "dq2").with("output_dtype", ONNX_FLOAT);
    m.graph().node("LayerNormalization", "x x", "l mean");
    ASSERT_EQ(m.solve(), "");
    EXPECT_NE(m.in("c", 0), m.out("c"));
    EXPECT_STREQ(m.s.groups[m.out("c")].attribute, "to");
    EXPECT_EQ(m.s.groups[m.in("c", 0)].attribute, nullptr);
    EXPECT_STREQ(m.s.groups[m.out("k")].attribute, "value");
    EXPECT_STREQ(m.s.groups[m.out("f")].attribute, "value");
    EXPECT_EQ(m.in("r", 0), m.out("r")) << "no dtype: as its input";
    EXPECT_EQ(m.in("e", 0), m.out("e"));
    EXPECT_STREQ(m.s.groups[m.out("r2")].attribute, "dtype");
    EXPECT_EQ(m.in("dq", 1), m.out("dq"));
    EXPECT_NE(m.in("dq2", 1), m.out("dq2"));
    EXPECT_STREQ(m.s.groups[m.out("dq2")].attribute, "output_dtype");
    EXPECT_STREQ(m.s.groups[m.out("l", 1)].attribute, "stash_type");
    EXPECT_EQ(m.allowed(m.out("l", 1)), "float32 bfloat16");
}

TEST(OnnxGroups, StatisticsOfBatchNormalisation) {
    for (int opset : {13, 14, 15}) {
        ModelOf m(opset);
        m.graph().input("x", ONNX_FLOAT).weight("s", ONNX_FLOAT, {4}).node("BatchNormalization", "x s s s s", "y");
        ASSERT_EQ(m.solve(), "");
        EXPECT_EQ(m.in("y", 0) == m.in("y", 1), opset < 15) << opset;
        EXPECT_EQ(m.in("y", 0) == m.in("y", 3), opset < 14) << opset;
        EXPECT_EQ(m.in("y", 3), m.in("y", 4)) << opset;
        EXPECT_EQ(m.in("y", 0), m.out("y"));
        EXPECT_EQ(m.allowed(m.out("y")), opset < 14 ? two : all) << opset;
    }
}

TEST(OnnxGroups, BranchesGiveWhatTheNodeGives) {
    ModelOf m(17);
    GraphOf &then = m.inner("then"), &other = m.inner("else");
    then.node("Relu", "x", "t").output("t");
    other.node("Cos", "x", "e").output("e");
    m.graph().input("x", ONNX_FLOAT).input("c", ONNX_BOOL);
    m.graph().node("If", "c", "y").with("then_branch", then).with("else_branch", other).output("y");
    ASSERT_EQ(m.solve(), "");
    EXPECT_EQ(m.out("y"), m.result(0, 1));
    EXPECT_EQ(m.out("y"), m.result(0, 2));
    EXPECT_NE(m.out("t", 0, 1), m.result(0, 1)) << "a cast can be before the branch's output";
    EXPECT_EQ(m.allowed(m.out("y")), all);
}

TEST(OnnxGroups, WhatGoesRoundInALoop) {
    ModelOf m(17);
    GraphOf &body = m.inner("body");
    body.input("i", 0).input("go", 0).input("v", 0).node("Add", "v w", "v2").node("Identity", "go", "go2");
    body.output("go2").output("v2").output("v");
    m.graph().input("x", ONNX_FLOAT).weight("w", ONNX_FLOAT, {1}).ints("count", {3}, true);
    m.graph().node("Loop", "count - x", "last all").with("body", body).output("last").output("all");
    ASSERT_EQ(m.solve(), "");
    EXPECT_EQ(m.in("last", 2), m.definition("v", 1));
    EXPECT_EQ(m.in("last", 2), m.result(1, 1));
    EXPECT_EQ(m.in("last", 2), m.out("last"));
    EXPECT_NE(m.in("last", 2), m.out("last", 1));
    EXPECT_EQ(m.out("last", 1), m.result(2, 1));
}

TEST(OnnxGroups, StatesOfAScan) {
    ModelOf m(17);
    GraphOf &body = m.inner("body");
    body.input("state", 0).input("one", 0).node("Add", "state one", "next").output("next").output("one");
    m.graph().input("s0", ONNX_FLOAT).input("xs", ONNX_FLOAT);
    m.graph().node("Scan", "s0 xs", "s1 ys").with("body", body).with("num_scan_inputs", 1);
    ASSERT_EQ(m.solve(), "");
    EXPECT_EQ(m.in("s1", 0), m.out("s1"));
    EXPECT_EQ(m.in("s1", 0), m.definition("state", 1));
    EXPECT_EQ(m.in("s1", 1), m.definition("one", 1));
    EXPECT_NE(m.in("s1", 1), m.out("s1", 1)) << "the body can cast between them";
}

TEST(OnnxGroups, ASequenceAndAllThatReadsIt) {
    ModelOf m(18);
    m.imports("mine", 1);
    m.graph()
        .input("x", ONNX_FLOAT)
        .ints("i", {0}, true)
        .node("SequenceConstruct", "x", "s")
        .node("Identity", "s", "t");
    m.graph().node("SequenceAt", "t i", "y").node("Relu", "y", "z").output("t");
    ASSERT_EQ(m.solve(), "");
    EXPECT_EQ(m.in("s", 0), m.out("y"));
    EXPECT_EQ(m.out("s"), m.result(0));
    EXPECT_NE(m.out("y"), m.in("z", 0));
    EXPECT_EQ(m.allowed(m.out("s")), two) << "no sequences of bfloat16";
    m.graph().node("Foo", "t", "f", "mine").info("f", ONNX_INT64);
    ASSERT_EQ(m.solve(), "");
    EXPECT_EQ(m.in("s", 0), ONNX_NONE) << "an unknown op reads it";
}

TEST(OnnxGroups, CallsOfFunctionsKeepTheirTypes) {
    ModelOf m(17);
    GraphOf &body = m.inner("body");
    body.node("Relu", "a", "b");
    m.function("f", "a", "b", body);
    m.imports("local", 1);
    m.graph().input("x", ONNX_FLOAT).node("Abs", "x", "y").node("f", "y", "z", "local").node("Abs", "z", "u");
    ASSERT_EQ(m.solve(), "");
    EXPECT_NE(m.out("y"), ONNX_NONE);
    EXPECT_EQ(m.in("z", 0), ONNX_NONE);
    EXPECT_EQ(m.out("z"), ONNX_NONE);
    EXPECT_EQ(m.definition("b", 1), ONNX_NONE);
    EXPECT_NE(m.in("u", 0), ONNX_NONE);
}

TEST(OnnxGroups, AnInputWithADefaultIsOne) {
    ModelOf m(17);
    m.graph().input("w", ONNX_FLOAT, "2").weight("w", ONNX_FLOAT, {2}).node("Relu", "w", "y");
    ASSERT_EQ(m.solve(), "");
    EXPECT_EQ(m.definition("w"), m.s.operand_groups[m.index.graphs[0].first_input]);
    EXPECT_EQ(m.s.group_count, 2);
}

} // namespace
