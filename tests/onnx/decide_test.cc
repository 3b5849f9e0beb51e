// decide_test.cc: what a policy decides for nodes of ONNX, what is cast for it, and what overrules it.
#include "tests/onnx/decide_fixture.h"

namespace {

class OnnxDecideTest : public DecideTest {
  protected:
    void Perceptron(int64_t opset = 18) {
        Clear(opset)
            .Input("x", {"N", "16"})
            .Weight("w1", {16, 32})
            .Weight("b1", {32})
            .Weight("w2", {32, 4})
            .Node("fc1", "Gemm", {"x", "w1", "b1"}, {"h"})
            .Node("relu", "Relu", {"h"}, {"r"})
            .Node("fc2", "MatMul", {"r", "w2"}, {"y"})
            .Node("softmax", "Softmax", {"y"}, {"p"})
            .Output("p");
    }
};

TEST_F(OnnxDecideTest, ClassesOfThePolicyDecide) {
    Perceptron();
    Decide("torch-fp16");
    EXPECT_EQ(Fate("fc1"), "low");
    EXPECT_EQ(Fate("relu"), "low");
    EXPECT_EQ(Fate("fc2"), "low");
    EXPECT_EQ(Fate("softmax"), "f32");
    EXPECT_EQ(Why("fc1"), "{lower, torch-fp16:8}");
    EXPECT_EQ(Why("relu"), "{follow, torch-fp16:24, input fc1}");
    EXPECT_EQ(Why("softmax"), "{f32_out, torch-fp16:10}");
    EXPECT_EQ(Casts(), "y -> float32 for softmax");
    EXPECT_EQ(Stored("x"), "float16") << "all its readers are low";
    EXPECT_EQ(Stored("w1"), "float16");
    EXPECT_EQ(Stored("p"), "float32");
    EXPECT_EQ(d_.lowered, 3);
    EXPECT_EQ(d_.f32, 1);
}

TEST_F(OnnxDecideTest, InputsAndOutputsStayIfTheyAreKept) {
    Perceptron();
    keep_io_ = true;
    keeps_ = {"Softmax"};
    Decide("pure-fp16");
    EXPECT_EQ(Casts(), "x -> float16 for fc1, y -> float32 for softmax");
    EXPECT_EQ(Why("softmax"), "{f32, \"kept by --keep Softmax\"}");
    keeps_ = {};
    Decide("pure-fp16");
    EXPECT_EQ(Casts(), "x -> float16 for fc1, p -> float32 for an output");
    keep_io_ = false;
    Decide("pure-fp16");
    EXPECT_EQ(Casts(), "");
    EXPECT_EQ(Stored("p"), "float16");
}

TEST_F(OnnxDecideTest, AValueIsCastOnceForAllItsReaders) {
    Clear()
        .Input("x", {"N", "4"})
        .Weight("w", {4, 4})
        .Node("exp", "Exp", {"x"}, {"e"})
        .Node("a", "MatMul", {"e", "w"}, {"p"})
        .Node("b", "MatMul", {"e", "w"}, {"q"})
        .Node("log", "Log", {"w"}, {"l"})
        .Node("sum", "Add", {"p", "q"}, {"s"})
        .Node("mixed", "Add", {"s", "l"}, {"m"})
        .Output("m");
    Decide("torch-fp16");
    EXPECT_EQ(Casts(), "w! -> float16 for a, e -> float16 for a, s -> float32 for mixed");
    EXPECT_EQ(Fate("sum"), "low");
    EXPECT_EQ(Why("mixed"), "{follow, torch-fp16:24, input log}");
    EXPECT_EQ(Stored("w"), "float32") << "Log reads it, too";
    EXPECT_EQ(Stored("x"), "float32");
}

TEST_F(OnnxDecideTest, ScalarsRaiseNothing) {
    Clear()
        .Input("x", {"N", "4"})
        .Weight("w", {4, 4})
        .Number("half")
        .Node("a", "MatMul", {"x", "w"}, {"p"})
        .Node("scale", "Mul", {"p", "half"}, {"s"})
        .Output("s");
    Decide("torch-fp16");
    EXPECT_EQ(Fate("scale"), "low");
    EXPECT_EQ(Stored("half"), "float16");
}

TEST_F(OnnxDecideTest, UnknownOpsStayAsTheyAre) {
    Clear()
        .Input("x", {"N", "4"})
        .Weight("w", {4, 4})
        .Node("a", "MatMul", {"x", "w"}, {"p"})
        .Node("own", "Fancy", {"p"}, {"f"}, "custom")
        .Node("b", "MatMul", {"f", "w"}, {"q"})
        .Value("f", {"N", "4"})
        .Output("q");
    Decide("torch-fp16");
    EXPECT_EQ(Fate("own"), "as is");
    EXPECT_EQ(Why("own"), "{kept, \"Fancy is unknown to policies\"}");
    EXPECT_EQ(Casts(), "p -> float32 for own, f -> float16 for b");
}

TEST_F(OnnxDecideTest, FusedOpsOfOnnxruntimeAreKnown) {
    Clear()
        .Input("x", {"N", "4"})
        .Weight("w", {4, 4})
        .Weight("b", {4})
        .Node("a", "FusedMatMul", {"x", "w"}, {"p"}, "com.microsoft")
        .Node("gelu", "BiasGelu", {"p", "b"}, {"g"}, "com.microsoft")
        .Node("own", "FusedMatMul", {"g", "w"}, {"f"}, "custom")
        .Value("f", {"N", "4"})
        .Output("f");
    Decide("torch-fp16");
    EXPECT_EQ(Fate("a"), "low");
    EXPECT_EQ(Fate("gelu"), "low") << "the bias is of the product before";
    EXPECT_EQ(Fate("own"), "as is");
}

// As the optimizer of onnxruntime leaves a block of a transformer, below opset 17.
TEST_F(OnnxDecideTest, BlocksOfOnnxruntimeAreDecided) {
    const std::string ms = "com.microsoft";
    Clear(14)
        .Input("ids", {"N", "T"}, ONNX_INT32)
        .Input("mask", {"N"}, ONNX_INT32)
        .Weight("words", {50, 8})
        .Weight("places", {50, 8})
        .Weight("g", {8})
        .Weight("b", {8})
        .Weight("qkv", {8, 24})
        .Weight("qkv_b", {24})
        .Weight("w", {8, 8})
        .Node("embed", "EmbedLayerNormalization", {"ids", "", "words", "places", "", "g", "b"}, {"e"}, ms)
        .Node("attend", "Attention", {"e", "qkv", "qkv_b", "mask"}, {"a"}, ms)
        .Node("heads", "MultiHeadAttention", {"a", "a", "a"}, {"h"}, ms)
        .Node("norm", "SkipLayerNormalization", {"h", "e", "g", "b"}, {"n", "", "", "sum"}, ms)
        .Node("fc", "GemmFastGelu", {"n", "w", "b"}, {"f"}, ms)
        .Node("rms", "SimplifiedLayerNormalization", {"f", "g"}, {"r"})
        .Node("last", "LayerNormalization", {"r", "g", "b"}, {"l"})
        .Node("group", "GroupQueryAttention", {"l", "l", "l", "", "", "mask", "mask"}, {"y"}, ms)
        .Output("y");
    Decide("torch-fp16");
    const std::map<std::string, std::string> fates = {{"embed", "f32"}, {"attend", "low"}, {"heads", "low"},
                                                      {"norm", "f32"},  {"fc", "low"},     {"rms", "f32"},
                                                      {"last", "f32"},  {"group", "low"}};
    EXPECT_EQ(Fates(), fates);
    for (const char *value : {"e", "a", "h", "n", "sum", "f", "r", "l", "y"})
        EXPECT_EQ(onnx_typical_elements(&solution_, ValueOf(value)), onnx_typical_elements(&solution_, ValueOf("e")))
            << value;
    EXPECT_GT(onnx_typical_elements(&solution_, ValueOf("e")), 0);
    Decide("pure-fp16");
    EXPECT_EQ(d_.lowered, 8) << "norms, too, whatever their scales had";
    EXPECT_EQ(Stored("g"), "float16");
}

TEST_F(OnnxDecideTest, CastsBetweenFloatsAreDecidedAgain) {
    Clear()
        .Input("x", {"N", "4"})
        .Weight("w", {4, 4})
        .Node("down", "Cast", {"x"}, {"x16"})
        .Int("to", ONNX_FLOAT16)
        .Node("up", "Cast", {"x16"}, {"x32"})
        .Int("to", ONNX_FLOAT)
        .Node("exp", "Exp", {"x32"}, {"e"})
        .Node("a", "MatMul", {"e", "w"}, {"p"})
        .Node("wide", "Cast", {"p"}, {"d"})
        .Int("to", ONNX_DOUBLE)
        .Node("last", "Cast", {"p"}, {"y"})
        .Int("to", ONNX_FLOAT)
        .Output("y")
        .Output("d", ONNX_DOUBLE);
    keep_io_ = true;
    Decide("torch-fp16");
    EXPECT_EQ(Fate("down"), "dropped");
    EXPECT_EQ(Fate("up"), "dropped");
    EXPECT_EQ(Fate("wide"), "as is");
    EXPECT_EQ(Fate("last"), "as is") << "somebody knows its result by name";
    EXPECT_EQ(Casts(), "e -> float16 for a");
    EXPECT_EQ(d_.sources[ValueOf("x32")], ValueOf("x"));
    EXPECT_EQ(Stored("p"), "float16");
    EXPECT_EQ(Stored("y"), "float32");
}

TEST_F(OnnxDecideTest, IntegersAndShapesAreNotDecided) {
    Clear()
        .Input("x", {"N", "4"})
        .Input("ids", {"N"}, ONNX_INT64)
        .Weight("w", {4, 4})
        .Node("a", "MatMul", {"x", "w"}, {"p"})
        .Node("shape", "Shape", {"p"}, {"s"})
        .Node("twice", "Add", {"ids", "ids"}, {"t"})
        .Node("float", "Cast", {"ids"}, {"f"})
        .Int("to", ONNX_FLOAT)
        .Output("s", ONNX_INT64)
        .Output("t", ONNX_INT64)
        .Output("f")
        .Output("p");
    Decide("pure-fp16");
    EXPECT_EQ(Fate("shape"), "as is");
    EXPECT_EQ(Fate("twice"), "as is");
    EXPECT_EQ(Fate("float"), "as is");
    EXPECT_EQ(Casts(), "");
    EXPECT_EQ(Stored("f"), "float32");
    for (int32_t n = 0; n < index_.node_count; n++) EXPECT_NE(d_.nodes[n].reason.rule, nullptr);
}

TEST_F(OnnxDecideTest, WhatAWeightIsMovedToIsAWeight) {
    Clear()
        .Input("x", {"N", "4"})
        .Weight("w", {4, 4})
        .Node("turn", "Transpose", {"w"}, {"wt"})
        .Node("a", "MatMul", {"x", "wt"}, {"p"})
        .Output("p");
    Decide("torch-fp16");
    EXPECT_EQ(Fate("turn"), "low");
    EXPECT_EQ(Stored("w"), "float16");
    EXPECT_EQ(Casts(), "");
}

TEST_F(OnnxDecideTest, TypesThatAnOpsetLacksBoundDecisions) {
    Clear(18)
        .Input("x", {"N", "3", "8", "8"})
        .Weight("w", {4, 3, 3, 3})
        .Weight("m", {8, 8})
        .Node("conv", "Conv", {"x", "w"}, {"c"})
        .Node("mul", "MatMul", {"c", "m"}, {"y"})
        .Output("y");
    Decide("torch-bf16");
    EXPECT_EQ(Fate("conv"), "f32");
    EXPECT_EQ(Why("conv"), "{f32, \"bfloat16 is no type of Conv at opset 18\"}");
    EXPECT_EQ(Fate("mul"), "low");
    model_.opsets.data[0].version = 22;
    Decide("torch-bf16");
    EXPECT_EQ(Fate("conv"), "low");
}

TEST_F(OnnxDecideTest, ConvolutionsAreNamedByTheirDims) {
    for (const char *dims : {"8", "8 8", "8 8 8"}) {
        DimNames shape = {"N", "3"};
        std::vector<int64_t> weight = {4, 3};
        for (const char *at = dims; *at; at += at[1] ? 2 : 1) {
            shape.push_back("8");
            weight.push_back(3);
        }
        Clear().Input("x", shape).Weight("w", weight).Node("conv", "Conv", {"x", "w"}, {"y"}).Output("y");
        Decide("torch-fp16");
        EXPECT_EQ(d_.nodes[0].op, "conv" + std::to_string(shape.size() - 2) + "d");
        EXPECT_EQ(Fate("conv"), "low");
        Decide("min-cast");
        EXPECT_EQ(Fate("conv"), "low") << dims;
    }
}

TEST_F(OnnxDecideTest, RangesKeepNodesInF32) {
    Perceptron();
    ranges_ = {{"w1", {1e-3, 7.1e4}}, {"r", {1e-3, 5e4}}};
    Decide("torch-fp16");
    EXPECT_EQ(Fate("fc1"), "f32");
    EXPECT_EQ(Why("fc1"), "{f32, \"range: weight w1 has 7.1e4 > 65504\"}");
    EXPECT_EQ(Fate("fc2"), "low");
    ranges_ = {{"h", {1e-3, 9.96e4}}, {"w2", {1e-12, 1e-9}}};
    Decide("torch-fp16");
    EXPECT_EQ(Why("relu"), "{f32, \"range: value h has 1.0e5 > 65504\"}");
    EXPECT_EQ(Why("fc2"), "{f32, \"range: weight w2 has at most 1.0e-9, which becomes 0\"}");
    Decide("torch-bf16");
    EXPECT_EQ(Fate("fc1"), "low") << "bf16 holds it";
}

TEST_F(OnnxDecideTest, SubgraphsKeepTheTypesOfTheirBorders) {
    GraphBuilder g = Clear();
    g.Input("x", {"4", "4"}).Input("c", {}, ONNX_BOOL).Weight("w", {4, 4});
    g.Node("before", "MatMul", {"x", "w"}, {"p"}).Node("if", "If", {"c"}, {"y"});
    g.Graph("then_branch").Node("inside", "MatMul", {"p", "w"}, {"t"}).Output("t");
    g.Graph("else_branch").Node("other", "Exp", {"p"}, {"e"}).Output("e");
    g.Node("after", "MatMul", {"y", "w"}, {"z"}).Output("z");
    Decide("torch-fp16");
    EXPECT_EQ(Fate("inside"), "low");
    EXPECT_EQ(Fate("other"), "f32");
    EXPECT_EQ(Fate("if"), "as is");
    EXPECT_EQ(Stored("y"), "float32");
    EXPECT_EQ(Casts(), "p -> float32 for other, y -> float16 for after, t -> float32 for an output");
}

TEST_F(OnnxDecideTest, WhatALoopCarriesKeepsItsType) {
    GraphBuilder g = Clear();
    g.Input("x", {"4", "4"}).Input("n", {}, ONNX_INT64).Input("c", {}, ONNX_BOOL).Weight("w", {4, 4});
    g.Node("before", "MatMul", {"x", "w"}, {"p"}).Node("loop", "Loop", {"n", "c", "p"}, {"y", "all"});
    g.Graph("body")
        .Input("i", {}, ONNX_INT64)
        .Input("go", {}, ONNX_BOOL)
        .Input("s", {"4", "4"})
        .Node("inside", "MatMul", {"s", "w"}, {"t"})
        .Node("relu", "Relu", {"t"}, {"r"})
        .Node("same", "Identity", {"go"}, {"on"})
        .Output("on", ONNX_BOOL)
        .Output("r")
        .Output("t");
    g.Node("after", "MatMul", {"y", "w"}, {"z"}).Output("z").Output("all");
    Decide("torch-fp16");
    EXPECT_EQ(Fate("inside"), "low");
    EXPECT_EQ(Fate("relu"), "low");
    EXPECT_EQ(Fate("loop"), "as is");
    EXPECT_EQ(Stored("s"), "float32");
    EXPECT_EQ(Stored("all"), "float32");
    EXPECT_EQ(Casts(), "p -> float32 for loop, y -> float16 for after, s -> float16 for inside, "
                       "t -> float32 for an output, r -> float32 for an output");
}

TEST_F(OnnxDecideTest, SequencesAndQuantisedNodesReadWhatTheyDid) {
    GraphBuilder g = Clear();
    g.Input("x", {"4", "4"}).Weight("w", {4, 4}).Number("scale").Weight("zero", {}, ONNX_INT8).Ints("at", {0});
    g.Node("a", "MatMul", {"x", "w"}, {"p"}).Node("list", "SequenceConstruct", {"p"}, {"s"});
    g.Weight("first", {}, ONNX_INT64).Node("take", "SequenceAt", {"s", "first"}, {"t"});
    g.Node("q", "QuantizeLinear", {"p", "scale", "zero"}, {"i8"});
    g.Node("dq", "DequantizeLinear", {"i8", "scale", "zero"}, {"d"}).Node("b", "MatMul", {"d", "t"}, {"y"}).Output("y");
    Decide("pure-fp16");
    EXPECT_EQ(Fate("list"), "as is");
    EXPECT_EQ(Fate("q"), "as is");
    EXPECT_EQ(Stored("scale"), "float32");
    EXPECT_EQ(Casts(), "p -> float32 for list, t -> float16 for b, d -> float16 for b");
}

TEST_F(OnnxDecideTest, LocalFunctionsStayAsTheyAre) {
    Clear().Input("x", {"4", "4"}).Weight("w", {4, 4});
    GraphBuilder(&arena_, model_.graph)
        .Node("before", "MatMul", {"x", "w"}, {"p"})
        .Node("call", "Twice", {"p", "w"}, {"q"}, "custom")
        .Node("after", "MatMul", {"q", "w"}, {"y"})
        .Output("y");
    OnnxGraph body = {};
    GraphBuilder(&arena_, &body).Node("one", "MatMul", {"a", "b"}, {"c"}).Node("two", "Exp", {"c"}, {"d"});
    OnnxFunction function = {};
    function.name = "Twice";
    function.domain = "custom";
    function.overload = "";
    for (const char *input : {"a", "b"}) vec_push(&arena_, &function.inputs, input);
    const char *output = "d";
    vec_push(&arena_, &function.outputs, output);
    function.nodes = body.nodes;
    function.opsets = model_.opsets;
    vec_push(&arena_, &model_.functions, function);
    Decide("torch-fp16");
    EXPECT_EQ(Fate("call"), "as is");
    EXPECT_EQ(Fate("one"), "as is");
    EXPECT_EQ(Fate("before"), "low");
    EXPECT_EQ(Casts(), "w! -> float16 for before, p -> float32 for call, q -> float16 for after");
}

// What a branch gives is f32: a low node before it saves nothing and needs a cast.
TEST_F(OnnxDecideTest, MinCutCountsTheCastsOfFixedOutputs) {
    GraphBuilder g = Clear();
    g.Input("x", {"4", "4"}).Input("c", {}, ONNX_BOOL).Number("n").Node("if", "If", {"c"}, {"y"}).Output("y");
    GraphBuilder branch = g.Graph("then_branch");
    branch.Node("tanh", "Tanh", {"x"}, {"t"}).Node("mul", "Mul", {"t", "n"}, {"m"}).Output("m");
    g.Graph("else_branch").Node("exp", "Exp", {"x"}, {"e"}).Output("e");
    Decide("min-cast");
    EXPECT_EQ(Fate("mul"), "f32") << Why("mul");
    EXPECT_EQ(Casts(), "");
}

// A low `relu` moves less and needs a cast more, whether its size is known or not.
TEST_F(OnnxDecideTest, MinCutTakesUnknownSizesForLarge) {
    for (const bool is_known : {true, false}) {
        GraphBuilder g = Clear();
        g.Input("x", {"4", "4"}).Weight("w", {4, 4});
        if (!is_known) model_.graph->inputs.data[0].type->tensor->shape = nullptr;
        g.Node("sigmoid", "Sigmoid", {"x"}, {"s"}).Node("relu", "Relu", {"s"}, {"r"});
        g.Node("mul", "MatMul", {"r", "w"}, {"y"}).Node("exp", "Exp", {"r"}, {"z"}).Output("y").Output("z");
        Decide("min-cast");
        EXPECT_EQ(Fate("relu"), "low") << is_known << Why("relu");
    }
}

TEST_F(OnnxDecideTest, WrongChoicesAreNamed) {
    Perceptron();
    keeps_ = {"Sotfmax"};
    EXPECT_EQ(TryDecide("torch-fp16"), AMP_INVALID_ARGUMENT);
    EXPECT_STREQ(error_.message, "m.onnx: --keep Sotfmax names no op and no node; did you mean Softmax?");
    keeps_ = {};
    EXPECT_EQ(TryDecide("tf32"), AMP_UNSUPPORTED);
    EXPECT_STREQ(error_.message, "m.onnx: ONNX has no type tf32, the low one of policy tf32; use one of f16 or bf16");
    const std::string own = "policy \"own\"\nalgorithm eager\nlow = f16\nop relu banned\nop * follow\n";
    EXPECT_EQ(TryDecide(own), AMP_INVALID_ARGUMENT);
    EXPECT_STREQ(error_.message,
                 "m.onnx: node 1 'relu' (Relu): policy own bans relu, in line 4: op relu banned; keep it "
                 "in f32 with --keep Relu, or use another policy");
    keeps_ = {"Relu"};
    EXPECT_EQ(TryDecide(own), AMP_OK) << error_.message;
}

TEST_F(OnnxDecideTest, FullPrecisionRaisesWhatIsLow) {
    Clear()
        .Input("x", {"N", "4"}, ONNX_FLOAT16)
        .Weight("w", {4, 4}, ONNX_FLOAT16)
        .Node("a", "MatMul", {"x", "w"}, {"p"})
        .Output("p", ONNX_FLOAT16);
    keep_io_ = true;
    Decide("fp32");
    EXPECT_EQ(Fate("a"), "f32");
    EXPECT_EQ(Casts(), "x -> float32 for a, w! -> float32 for a, p -> float16 for an output");
    EXPECT_EQ(d_.lowered, 0);
}

TEST_F(OnnxDecideTest, MinCutKeepsAResidualStreamLow) {
    GraphBuilder g = Clear();
    g.Input("ids", {"N", "8"}, ONNX_INT64).Weight("table", {100, 64}).Weight("w", {64, 64});
    g.Node("embed", "Gather", {"table", "ids"}, {"x0"});
    for (int i = 0; i < 3; i++) {
        const std::string k = std::to_string(i), next = std::to_string(i + 1);
        g.Weight("g" + k, {64});
        g.Node("ln" + k, "LayerNormalization", {"x" + k, "g" + k}, {"n" + k});
        g.Node("fc" + k, "MatMul", {"n" + k, "w"}, {"h" + k});
        g.Node("add" + k, "Add", {"x" + k, "h" + k}, {"x" + next});
    }
    g.Output("x3");
    Decide("torch-fp16");
    EXPECT_EQ(Fate("add1"), "f32");
    Decide("min-cast");
    EXPECT_EQ(Fate("add0"), "low");
    EXPECT_EQ(Fate("add1"), "low");
    EXPECT_EQ(Fate("ln1"), "f32");
    EXPECT_EQ(Fate("fc1"), "low");
    EXPECT_EQ(Why("add1").find("{follow, min-cast:23, \"f32 would move "), 0u) << Why("add1");
}

// A weight is converted in the file, so it costs nothing to read it low; one that a caller may replace is cast.
TEST_F(OnnxDecideTest, MinCutStoresTiedTablesOnce) {
    for (const bool is_input : {false, true}) {
        GraphBuilder g = Clear();
        g.Input("ids", {"N", "8"}, ONNX_INT64).Weight("table", {100, 64}).Weight("w", {64, 64});
        if (is_input) g.Input("table", {"100", "64"});
        g.Node("embed", "Gather", {"table", "ids"}, {"x"}).Node("fc", "MatMul", {"x", "w"}, {"h"});
        g.Node("turn", "Transpose", {"table"}, {"t"}).Node("head", "MatMul", {"h", "t"}, {"y"}).Output("y");
        keep_io_ = true;
        Decide("min-cast");
        EXPECT_EQ(Fate("embed"), is_input ? "f32" : "low");
        EXPECT_EQ(Stored("table"), is_input ? "float32" : "float16");
        EXPECT_EQ(Casts(), is_input ? "x -> float16 for fc, t -> float16 for head, y -> float32 for an output"
                                    : "y -> float32 for an output");
        Decide("torch-fp16");
        EXPECT_EQ(Fate("embed"), "f32");
    }
}

TEST_F(OnnxDecideTest, PaintSpreadsFromProducts) {
    Perceptron();
    Decide("tf-fp16");
    EXPECT_EQ(Fate("fc1"), "low");
    EXPECT_EQ(Fate("relu"), "low");
    EXPECT_EQ(Why("relu"), "{clear, tf-fp16:26, \"allow in pass 3\"}");
    EXPECT_EQ(Fate("softmax"), "low") << "infer, after one that is allow";
}

TEST_F(OnnxDecideTest, ALongChain) {
    GraphBuilder g = Clear();
    g.Input("x", {"N", "4"}).Weight("w", {4, 4}).Node("first", "MatMul", {"x", "w"}, {"v0"});
    const int count = 200000;
    for (int i = 0; i < count; i++)
        g.Node("n" + std::to_string(i), "Relu", {"v" + std::to_string(i)}, {"v" + std::to_string(i + 1)});
    g.Output("v" + std::to_string(count));
    Solve();
    const clock_t start = clock();
    OnnxDecideOptions o = {};
    o.policy = ReadPolicy("torch-fp16");
    ASSERT_EQ(onnx_decide(&model_, &index_, &solution_, &o, &arena_, &d_, &error_), AMP_OK);
    EXPECT_LT(static_cast<double>(clock() - start) / CLOCKS_PER_SEC, 5.0);
    EXPECT_EQ(d_.lowered, count + 1);
}

} // namespace
