// types_test.cc: types of values, what a model says wrong of them, and what nothing says.
#include "onnx/types.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>

#include "tests/onnx/model_of.h"

namespace {

TEST(OnnxTypes, FollowFromInputsThroughSchemas) {
    ModelOf m(17);
    m.graph().input("x", ONNX_FLOAT, "N,4").weight("w", ONNX_FLOAT, {4, 8});
    m.graph().node("MatMul", "x w", "a").node("Relu", "a", "b").node("Shape", "b", "c").node("Greater", "b b", "d");
    m.graph().node("Cast", "b", "e").with("to", ONNX_FLOAT16).output("e");
    ASSERT_EQ(m.solve(), "");
    EXPECT_EQ(m.text("a"), "float32[N, 8]");
    EXPECT_EQ(m.text("c"), "int64[2]");
    EXPECT_EQ(m.text("d"), "bool[N, 8]");
    EXPECT_EQ(m.text("e"), "float16[N, 8]");
}

TEST(OnnxTypes, AreStatedByAttributes) {
    ModelOf m(21);
    m.graph().input("x", ONNX_FLOAT, "2,2").input("n", ONNX_INT64, "");
    m.graph()
        .node("Constant", "", "i")
        .with("value_int", 3)
        .node("Constant", "", "t")
        .with_tensor("value", ONNX_DOUBLE, {});
    m.graph().node("ConstantOfShape", "sh", "f").node("ConstantOfShape", "sh", "g").with_ints("value", {7});
    m.graph().ints("sh", {2, 3});
    m.graph().node("EyeLike", "x", "e").node("EyeLike", "x", "e6").with("dtype", ONNX_INT32);
    m.graph().node("RandomNormal", "", "r").with("shape", std::vector<int64_t>{5}).node("HannWindow", "n", "h");
    m.graph().node("LayerNormalization", "x x", "l mean").with("stash_type", ONNX_BFLOAT16);
    m.graph().node("QuantizeLinear", "x s", "q").node("QuantizeLinear", "x s", "q8").with("output_dtype", ONNX_INT8);
    m.graph().weight("s", ONNX_FLOAT, {}).node("DequantizeLinear", "q s", "dq").node("Multinomial", "x", "mu");
    ASSERT_EQ(m.solve(), "");
    EXPECT_EQ(m.text("i"), "int64[]");
    EXPECT_EQ(m.text("t"), "float64[]");
    EXPECT_EQ(m.text("f"), "float32[2, 3]");
    EXPECT_EQ(m.text("g"), "int64[2, 3]");
    EXPECT_EQ(m.text("e"), "float32[2, 2]");
    EXPECT_EQ(m.text("e6"), "int32[2, 2]");
    EXPECT_EQ(m.text("r"), "float32[5]");
    EXPECT_EQ(m.text("h"), "float32");
    EXPECT_EQ(m.text("mean"), "bfloat16[2, 1]");
    EXPECT_EQ(m.text("q"), "uint8[2, 2]");
    EXPECT_EQ(m.text("q8"), "int8[2, 2]");
    EXPECT_EQ(m.text("dq"), "float32[2, 2]");
    EXPECT_EQ(m.text("mu"), "int32");
}

TEST(OnnxTypes, SequencesAndOptionalsPassThrough) {
    ModelOf m(18);
    m.graph().input("x", ONNX_FLOAT, "2").ints("i", {0}, true);
    m.graph().node("SequenceConstruct", "x x", "s").node("Identity", "s", "t").node("SequenceAt", "t i", "y");
    m.graph().node("SequenceInsert", "t x", "u").node("SequenceLength", "u", "n").node("ConcatFromSequence", "u", "c");
    m.graph()
        .with("axis", 0)
        .node("Optional", "u", "o")
        .node("OptionalGetElement", "o", "v")
        .node("SequenceEmpty", "", "z");
    m.graph().node("SplitToSequence", "x", "w").node("OptionalHasElement", "o", "has");
    ASSERT_EQ(m.solve(), "");
    EXPECT_EQ(m.text("s"), "a sequence of float32");
    EXPECT_EQ(m.text("y"), "float32");
    EXPECT_EQ(m.text("n"), "int64");
    EXPECT_EQ(m.text("o"), "an optional sequence of float32");
    EXPECT_EQ(m.text("v"), "a sequence of float32");
    EXPECT_EQ(m.text("z"), "a sequence of float32");
    EXPECT_EQ(m.text("has"), "bool");
}

TEST(OnnxTypes, MapsAndStringsOfClassicModels) {
    ModelOf m(17);
    m.imports("ai.onnx.ml", 3);
    m.graph().input("x", ONNX_FLOAT, "0,5");
    m.graph().node("LinearClassifier", "x", "label p", "ai.onnx.ml").with_strings("classlabels_strings", 2);
    m.graph().node("ZipMap", "p", "z", "ai.onnx.ml").with_strings("classlabels_strings", 2);
    m.graph().node("LinearClassifier", "x", "number q", "ai.onnx.ml");
    m.graph().node("LabelEncoder", "label", "code", "ai.onnx.ml").with("values_int64s", {1, 2}).output("z");
    ASSERT_EQ(m.solve(), "");
    EXPECT_EQ(m.text("label"), "string[?0]");
    EXPECT_EQ(m.text("number"), "int64[?0]");
    EXPECT_EQ(m.text("z"), "a sequence of maps to float32");
    EXPECT_EQ(m.text("code"), "int64[?0]");
    EXPECT_EQ(m.text("x"), "float32[?0, 5]") << "a batch that was written as 0";
}

TEST(OnnxTypes, GraphsSeeWhatIsAround) {
    ModelOf m(17);
    GraphOf &then = m.inner("then"), &other = m.inner("else");
    then.node("Relu", "a", "t").output("t");
    other.node("Neg", "a", "e").output("e");
    m.graph().input("x", ONNX_DOUBLE, "N").input("c", ONNX_BOOL, "").node("Abs", "x", "a");
    m.graph().node("If", "c", "y").with("then_branch", then).with("else_branch", other).output("y");
    ASSERT_EQ(m.solve(), "");
    EXPECT_EQ(m.text("y"), "float64[N]");
    EXPECT_EQ(m.text("t", 1), "float64[N]");
}

TEST(OnnxTypes, LoopsGiveTheirGraphTypes) {
    ModelOf m(17);
    GraphOf &body = m.inner("body");
    body.input("i", 0).input("go", 0).input("v", 0).node("Add", "v w", "v2").node("Identity", "go", "go2");
    body.node("Cast", "v2", "half").with("to", ONNX_FLOAT16).output("go2").output("v2").output("half");
    m.graph().input("x", ONNX_FLOAT, "N").weight("w", ONNX_FLOAT, {1}).ints("count", {3}, true);
    m.graph().node("Loop", "count - x", "last all").with("body", body).output("last").output("all");
    ASSERT_EQ(m.solve(), "");
    EXPECT_EQ(m.text("i", 1), "int64[]");
    EXPECT_EQ(m.text("last"), "float32");
    EXPECT_EQ(m.text("all"), "float16");
}

TEST(OnnxTypes, ScansGiveSlices) {
    ModelOf m(17);
    GraphOf &body = m.inner("body");
    body.input("state", 0).input("one", 0).node("Add", "state one", "next").node("Identity", "next", "out");
    body.output("next").output("out");
    m.graph().input("s0", ONNX_FLOAT, "4").input("xs", ONNX_FLOAT, "T,4");
    m.graph().node("Scan", "s0 xs", "s1 ys").with("body", body).with("num_scan_inputs", 1).output("ys");
    ASSERT_EQ(m.solve(), "");
    EXPECT_EQ(m.text("one", 1), "float32[4]");
    EXPECT_EQ(m.text("s1"), "float32[4]");
    EXPECT_EQ(m.text("ys"), "float32[T, 4]");
}

// ---- local functions ------------------------------------------------------------------------------------------------

TEST(OnnxTypes, FunctionsHaveTypesPerCall) {
    ModelOf m(17);
    GraphOf &body = m.inner("body");
    body.node("Mul", "a a", "b").node("Cast", "b", "c").refers("to", "kind");
    m.function("square", "a", "c", body);
    m.imports("local", 1);
    m.graph().input("x", ONNX_FLOAT).input("i", ONNX_INT64);
    m.graph().node("square", "x", "p", "local").with("kind", ONNX_DOUBLE);
    m.graph().node("square", "i", "q", "local").with("kind", ONNX_FLOAT16);
    m.graph().node("square", "x", "r", "local").with("kind", ONNX_DOUBLE);
    ASSERT_EQ(m.solve(), "");
    EXPECT_EQ(m.text("p"), "float64");
    EXPECT_EQ(m.text("q"), "float16");
    EXPECT_EQ(m.text("r"), "float64");
    EXPECT_EQ(m.text("b", 1), "unknown") << "calls differ";
}

TEST(OnnxTypes, FunctionsThatDoubleAreSolvedOnce) {
    ModelOf m(17);
    m.imports("local", 1);
    for (int i = 0; i < 60; i++) {
        GraphOf &body = m.inner("body");
        std::string below = "f" + std::to_string(i - 1), name = "f" + std::to_string(i);
        const char *op = i ? arena_strdup(&m.arena, below.c_str()) : "Abs", *domain = i ? "local" : "";
        body.node(op, "a", "b", domain).node(op, "b", "c", domain);
        m.function(arena_strdup(&m.arena, name.c_str()), "a", "c", body);
    }
    m.graph().input("x", ONNX_FLOAT).node("f59", "x", "y", "local");
    ASSERT_EQ(m.solve(), "");
    EXPECT_EQ(m.text("y"), "float32");
}

// ---- what is wrong --------------------------------------------------------------------------------------------------

TEST(OnnxTypes, InputsOfOneTypeVariable) {
    ModelOf m(17);
    m.graph().input("x", ONNX_FLOAT).input("h", ONNX_FLOAT16).node("Add", "x h", "y");
    EXPECT_EQ(m.solve(),
              "m.onnx: node 0 'y' (Add): its inputs 'x' and 'h' must have one type, and are float32 and float16; "
              "cast one of them");
}

TEST(OnnxTypes, ATypeThatTheOpsetLacks) {
    ModelOf m(17);
    m.graph().input("x", ONNX_BFLOAT16).node("Cos", "x", "y");
    EXPECT_EQ(m.solve(),
              "m.onnx: node 0 'y' (Cos): its input 'x' is bfloat16, and Cos (of opset 1) takes float32, float16, "
              "float64; cast it, or convert the model to an opset that takes it");
    ModelOf newer(22);
    newer.graph().input("x", ONNX_BFLOAT16).node("Cos", "x", "y");
    EXPECT_EQ(newer.solve(), "");
}

TEST(OnnxTypes, AnInputThatIsAlwaysOfOneType) {
    ModelOf m(17);
    m.graph().input("x", ONNX_FLOAT).input("s", ONNX_FLOAT16).node("Resize", "x - s", "y");
    EXPECT_EQ(m.solve(),
              "m.onnx: node 0 'y' (Resize): its input 's' is float16, and Resize (of opset 13) takes float32; "
              "cast it, or convert the model to an opset that takes it");
}

TEST(OnnxTypes, AStatedTypeThatIsWrong) {
    ModelOf m(17);
    m.graph().input("x", ONNX_FLOAT16).node("Cast", "x", "y").with("to", ONNX_FLOAT).output("y", ONNX_FLOAT16);
    EXPECT_EQ(m.solve(),
              "m.onnx: node 0 'y' (Cast): its output 'y' is float32, but the graph says float16; correct the type "
              "that the graph says, or the node's inputs and attributes");
    ModelOf w(17);
    w.graph().input("w", ONNX_FLOAT16).weight("w", ONNX_FLOAT, {2}).node("Abs", "w", "y");
    EXPECT_EQ(w.solve(), "m.onnx: 'w' is float32, but the graph says float16; correct one of them");
}

TEST(OnnxTypes, TooManyAndTooFew) {
    ModelOf m(17);
    m.graph().input("x", ONNX_FLOAT).node("Relu", "x x", "y");
    EXPECT_EQ(m.solve(), "m.onnx: node 0 'y' (Relu): it has 2 inputs, and Relu (of opset 14) has at most 1");
    ModelOf few(17);
    few.graph().input("x", ONNX_FLOAT).node("Conv", "x", "y");
    EXPECT_EQ(few.solve(), "m.onnx: node 0 'y' (Conv): it has 1 inputs, and Conv (of opset 11) needs more");
    ModelOf out(17);
    out.graph().input("x", ONNX_FLOAT).node("Add", "x -", "y");
    EXPECT_EQ(out.solve(), "m.onnx: node 0 'y' (Add): its input 1 is left out, and Add (of opset 14) needs it");
    ModelOf outputs(17);
    outputs.graph().input("x", ONNX_FLOAT).node("Relu", "x", "y z");
    EXPECT_EQ(outputs.solve(), "m.onnx: node 0 'y' (Relu): it has 2 outputs, and Relu (of opset 14) has at most 1");
}

TEST(OnnxTypes, GraphsThatDisagree) {
    ModelOf m(17);
    GraphOf &then = m.inner("then"), &other = m.inner("else");
    then.node("Relu", "x", "t").output("t");
    other.node("Cast", "x", "e").with("to", ONNX_FLOAT16).output("e");
    m.graph().input("x", ONNX_FLOAT).input("c", ONNX_BOOL);
    m.graph().node("If", "c", "y").with("then_branch", then).with("else_branch", other);
    EXPECT_EQ(m.solve(),
              "m.onnx: node 0 'y' (If): its branches give float32 and float16 as output 0; cast one of them");

    ModelOf loop(17);
    GraphOf &body = loop.inner("body");
    body.input("i", 0).input("go", 0).input("v", 0).node("Cast", "v", "v2").with("to", ONNX_FLOAT16);
    body.node("Identity", "go", "go2").output("go2").output("v2");
    loop.graph().input("x", ONNX_FLOAT).ints("count", {3}, true).node("Loop", "count - x", "y").with("body", body);
    EXPECT_EQ(loop.solve(),
              "m.onnx: node 0 'y' (Loop): 'v' of its graph 'body' is float32 before an iteration, and float16 "
              "after it");

    ModelOf stated(17);
    GraphOf &says = stated.inner("body");
    says.input("i", ONNX_INT32).input("go", 0).node("Identity", "go", "go2").output("go2");
    stated.graph().ints("count", {3}, true).node("Loop", "count -", "").with("body", says);
    EXPECT_EQ(stated.solve(),
              "m.onnx: node 0 '' (Loop): the input 'i' of its graph 'body' is said to be int32, and gets "
              "int64");
}

TEST(OnnxTypes, AScanOfMoreThanItHas) {
    ModelOf m(17);
    GraphOf &body = m.inner("body");
    body.input("one", 0).node("Relu", "one", "out").output("out");
    m.graph().input("xs", ONNX_FLOAT, "T,4").node("Scan", "xs", "ys").with("body", body).with("num_scan_inputs", 7);
    EXPECT_EQ(m.solve(), "m.onnx: node 0 'ys' (Scan): its num_scan_inputs is 7, and it has 1 inputs");
}

TEST(OnnxTypes, OpsetsBeyondTheTable) {
    ModelOf old(10), newer(29);
    EXPECT_EQ(old.solve(),
              "m.onnx: opset 10 of ai.onnx; ampc knows 11 to 28; convert the model by onnx.version_converter, or "
              "export it again");
    EXPECT_EQ(newer.solve(), "m.onnx: opset 29 of ai.onnx; ampc knows 11 to 28; export the model with an older opset");
}

// ---- what nothing says ----------------------------------------------------------------------------------------------

TEST(OnnxTypes, UnknownOpsHaveTheTypeThatIsStatedOrAssumed) {
    const char *wanted =
        "m.onnx: node 0 'y' (Foo): nothing says the type of its output 'y': ampc does not know this op, "
        "and the graph has no value info of it; give it by --assume y=float32, or export the model with "
        "value infos";
    ModelOf m(17);
    m.imports("mine", 1);
    m.graph().input("x", ONNX_FLOAT).node("Foo", "x", "y", "mine").node("Relu", "y", "z");
    EXPECT_EQ(m.solve(), wanted);
    m.assume("y", ONNX_DOUBLE);
    EXPECT_EQ(m.solve(), "");
    EXPECT_EQ(m.text("z"), "float64");
    m.graph().info("y", ONNX_FLOAT16, "N");
    EXPECT_EQ(m.solve(), "");
    EXPECT_EQ(m.text("z"), "float16[N]");
}

TEST(OnnxTypes, AnOpOfALaterOpset) {
    ModelOf m(17);
    m.graph().input("x", ONNX_FLOAT).node("Gelu", "x", "y");
    EXPECT_EQ(m.solve(),
              "m.onnx: node 0 'y' (Gelu): nothing says the type of its output 'y': ampc knows it from opset 20 on, "
              "which the model is not of, and the graph has no value info of it; give it by --assume y=float32, "
              "or export the model with value infos");
}

TEST(OnnxTypes, InputsWithoutAType) {
    ModelOf m(17);
    m.graph().input("x", 0).node("Relu", "x", "y");
    EXPECT_EQ(m.solve(),
              "m.onnx: nothing says the type of the input 'x' of graph 'main'; give it by --assume x=float32");
    m.assume("x", ONNX_FLOAT);
    EXPECT_EQ(m.solve(), "");
}

// ---- size -----------------------------------------------------------------------------------------------------------

TEST(OnnxTypes, AChainOfAMillionNodes) {
    enum { NODES = 1000000, NAME = 12 };
    ModelOf m(17);
    m.graph().input("v0", ONNX_FLOAT, "N,4");
    auto *names = arena_array(&m.arena, char, (NODES + 1) * NAME);
    auto *ends = arena_array(&m.arena, const char *, 2 * NODES);
    auto *nodes = arena_array(&m.arena, OnnxNode, NODES);
    OnnxNode relu = onnx_node(&m.arena, "Relu", "");
    for (int i = 0; i <= NODES; i++) snprintf(names + i * NAME, NAME, "v%d", i);
    for (int i = 0; i < NODES; i++) {
        ends[2 * i] = names + i * NAME;
        ends[2 * i + 1] = names + (i + 1) * NAME;
        nodes[i] = relu;
        nodes[i].inputs = {&ends[2 * i], 1, 1};
        nodes[i].outputs = {&ends[2 * i + 1], 1, 1};
    }
    m.model.graph->nodes = {nodes, NODES, NODES};
    auto begin = std::chrono::steady_clock::now();
    ASSERT_EQ(m.solve(), "");
    std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    EXPECT_EQ(m.text("v1000000"), "float32[N, 4]");
    EXPECT_EQ(m.s.group_count, NODES + 1);
    EXPECT_LT(seconds.count(), 30) << "about 1";
}

} // namespace
