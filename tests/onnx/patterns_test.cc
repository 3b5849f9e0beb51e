// patterns_test.cc: ops that an exporter spelled out are decided as one, and what only looks like them is not.
#include "tests/onnx/decide_fixture.h"

namespace {

class OnnxPatternsTest : public DecideTest {
  protected:
    // A product before and after, so that what is between reads and feeds low values.
    GraphBuilder Begin() {
        GraphBuilder g = Clear(17);
        g.Input("in", {"N", "8", "16"}).Weight("w", {16, 16}).Node("before", "MatMul", {"in", "w"}, {"x"});
        for (const char *c : {"two", "three", "half", "one", "eps", "c"}) g.Number(c);
        return g;
    }

    void End(GraphBuilder g) {
        g.Node("after", "MatMul", {"y", "w"}, {"out"}).Output("out");
        Decide("torch-fp16");
    }

    GraphBuilder LayerNorm(bool twice, bool by_reciprocal) {
        GraphBuilder g = Begin();
        g.Weight("gain", {16}).Weight("bias", {16});
        g.Node("m", "ReduceMean", {"x"}, {"mean"}).List("axes", {-1});
        g.Node("s", "Sub", {"x", "mean"}, {"d"});
        if (twice) g.Node("s2", "Sub", {"x", "mean"}, {"d2"});
        g.Node("p", "Pow", {"d", "two"}, {"square"});
        g.Node("v", "ReduceMean", {"square"}, {"var"}).List("axes", {-1});
        g.Node("a", "Add", {"var", "eps"}, {"sum"});
        g.Node("r", "Sqrt", {"sum"}, {"root"});
        if (by_reciprocal) {
            g.Node("i", "Reciprocal", {"root"}, {"inverse"});
            g.Node("q", "Mul", {twice ? "d2" : "d", "inverse"}, {"norm"});
        } else {
            g.Node("q", "Div", {twice ? "d2" : "d", "root"}, {"norm"});
        }
        g.Node("g", "Mul", {"norm", "gain"}, {"scaled"});
        g.Node("b", "Add", {"scaled", "bias"}, {"y"});
        return g;
    }

    // All nodes of the model that are in a pattern have |fate|.
    void ExpectAll(const std::string &fate) {
        for (int i = 0; i < d_.patterns.len; i++)
            for (int k = 0; k < d_.patterns.data[i].nodes.len; k++) {
                const char *name = index_.nodes[d_.patterns.data[i].nodes.data[k]].node->name;
                EXPECT_EQ(Fate(name), fate) << name;
                EXPECT_EQ(Why(name), Why(index_.nodes[d_.patterns.data[i].nodes.data[0]].node->name)) << name;
            }
    }
};

TEST_F(OnnxPatternsTest, LayerNorm) {
    End(LayerNorm(false, false));
    EXPECT_EQ(Patterns(), "layer_norm: m s p v a r q g b");
    ExpectAll("f32");
    EXPECT_EQ(Why("g"), "{f32, torch-fp16:13}");
    EXPECT_STREQ(d_.nodes[NodeOf("g")].op, "layer_norm");
    EXPECT_EQ(Casts(), "x -> float32 for m, y -> float16 for after");
    End(LayerNorm(true, true));
    EXPECT_EQ(Patterns(), "layer_norm: m s s2 p v a r i q g b");
}

TEST_F(OnnxPatternsTest, WhatIsReadFromOutsideIsNoPattern) {
    GraphBuilder g = LayerNorm(false, false);
    g.Output("var");
    End(g);
    EXPECT_EQ(Patterns(), "");
}

TEST_F(OnnxPatternsTest, RmsNorm) {
    GraphBuilder g = Begin();
    g.Weight("gain", {16});
    g.Node("up", "Cast", {"x"}, {"x32"}).Int("to", ONNX_FLOAT);
    g.Node("p", "Mul", {"x32", "x32"}, {"square"});
    g.Node("v", "ReduceMean", {"square"}, {"mean"}).List("axes", {-1});
    g.Node("a", "Add", {"mean", "eps"}, {"sum"});
    g.Node("r", "Sqrt", {"sum"}, {"root"});
    g.Node("i", "Div", {"one", "root"}, {"inverse"});
    g.Node("q", "Mul", {"x32", "inverse"}, {"norm"});
    g.Node("g", "Mul", {"gain", "norm"}, {"y"});
    End(g);
    EXPECT_EQ(Patterns(), "rms_norm: p v a r i q g");
    ExpectAll("f32");
    EXPECT_EQ(Fate("up"), "dropped");
}

TEST_F(OnnxPatternsTest, GroupNorm) {
    GraphBuilder g = Begin();
    g.Weight("ones", {2}).Weight("zeros", {2}).Weight("gain", {8, 1}).Weight("bias", {8, 1});
    g.Ints("groups", {0, 2, -1}).Ints("back", {-1, 8, 16});
    g.Node("r", "Reshape", {"x", "groups"}, {"grouped"});
    g.Node("n", "InstanceNormalization", {"grouped", "ones", "zeros"}, {"normal"});
    g.Node("u", "Reshape", {"normal", "back"}, {"plain"});
    g.Node("g", "Mul", {"plain", "gain"}, {"scaled"});
    g.Node("b", "Add", {"scaled", "bias"}, {"y"});
    End(g);
    EXPECT_EQ(Patterns(), "group_norm: r n u g b");
    ExpectAll("f32");
}

TEST_F(OnnxPatternsTest, Softmax) {
    GraphBuilder g = Begin();
    g.Node("m", "ReduceMax", {"x"}, {"max"}).List("axes", {-1});
    g.Node("s", "Sub", {"x", "max"}, {"d"});
    g.Node("e", "Exp", {"d"}, {"exp"});
    g.Ints("last", {-1});
    g.Node("t", "ReduceSum", {"exp", "last"}, {"sum"});
    g.Node("q", "Div", {"exp", "sum"}, {"y"});
    End(g);
    EXPECT_EQ(Patterns(), "softmax: m s e t q");
    ExpectAll("f32");
    EXPECT_EQ(Why("m"), "{f32_out, torch-fp16:10}");
}

TEST_F(OnnxPatternsTest, Gelu) {
    for (int form = 0; form < 3; form++) {
        GraphBuilder g = Begin();
        g.Node("d", "Div", {"x", "c"}, {"part"}).Node("e", "Erf", {"part"}, {"erf"});
        g.Node("a", "Add", {"erf", "one"}, {"sum"});
        if (form == 0) g.Node("m", "Mul", {"x", "sum"}, {"p"}).Node("h", "Mul", {"p", "half"}, {"y"});
        if (form == 1) g.Node("m", "Mul", {"sum", "half"}, {"p"}).Node("h", "Mul", {"x", "p"}, {"y"});
        if (form == 2) g.Node("m", "Mul", {"x", "half"}, {"p"}).Node("h", "Mul", {"p", "sum"}, {"y"});
        End(g);
        EXPECT_EQ(Patterns(), "gelu: d e a m h") << form;
        ExpectAll("low");
        EXPECT_EQ(Why("e"), "{follow, torch-fp16:24, input before}");
        Decide("apex-o1");
        ExpectAll("f32");
    }
}

// PyTorch's autocast keeps a power in f32, and what follows it.
TEST_F(OnnxPatternsTest, AGeluByTanhIsDecidedInPartsIfItHasAPower) {
    for (const bool has_power : {true, false}) {
        GraphBuilder g = Begin();
        if (has_power) g.Node("p", "Pow", {"x", "three"}, {"cube"});
        else g.Node("p2", "Mul", {"x", "x"}, {"square"}).Node("p", "Mul", {"square", "x"}, {"cube"});
        g.Node("k", "Mul", {"cube", "c"}, {"term"}).Node("i", "Add", {"x", "term"}, {"inner"});
        g.Node("f", "Mul", {"inner", "c"}, {"scaled"}).Node("t", "Tanh", {"scaled"}, {"tanh"});
        g.Node("a", "Add", {"tanh", "one"}, {"sum"}).Node("h", "Mul", {"x", "half"}, {"part"});
        g.Node("m", "Mul", {"part", "sum"}, {"y"});
        End(g);
        EXPECT_EQ(Patterns(), has_power ? "" : "gelu: p2 p k i f t a h m");
        EXPECT_EQ(Fate("h"), "low");
        for (const char *node : {"p", "k", "i", "f", "t", "a", "m"}) EXPECT_EQ(Fate(node), has_power ? "f32" : "low");
        Decide("min-cast");
        EXPECT_EQ(Patterns(), has_power ? "gelu: p k i f t a h m" : "gelu: p2 p k i f t a h m");
        ExpectAll(has_power ? "f32" : "low");
        EXPECT_EQ(Why("m").find("{f32, min-cast:11}") == 0, has_power) << Why("m");
    }
}

// PyTorch's linear is one product with a bias, whatever its input's dims.
TEST_F(OnnxPatternsTest, ALinearLayerOfManyDims) {
    for (const char *bias_first : {"", "yes"}) {
        GraphBuilder g = Begin();
        g.Weight("bias", {16}).Weight("w2", {16, 16});
        g.Node("t", "Transpose", {"w2"}, {"wt"}).Node("m", "MatMul", {"x", "wt"}, {"p"});
        g.Node("b", "Add", *bias_first ? Names{"bias", "p"} : Names{"p", "bias"}, {"y"});
        End(g);
        EXPECT_EQ(Patterns(), "linear: m b");
        EXPECT_EQ(Fate("b"), "low");
        EXPECT_EQ(Why("b"), "{lower, torch-fp16:8}");
        EXPECT_EQ(Casts(), "");
        EXPECT_EQ(Stored("bias"), "float16");
    }
    GraphBuilder g = Begin();
    g.Weight("bias", {16}).Node("m", "MatMul", {"x", "x"}, {"p"}).Node("b", "Add", {"p", "bias"}, {"y"});
    End(g);
    EXPECT_EQ(Patterns(), "");
    EXPECT_EQ(Fate("b"), "f32") << "a product of two values and a sum";
}

TEST_F(OnnxPatternsTest, SiluAndASigmoidOfSomethingElse) {
    GraphBuilder g = Begin();
    g.Node("s", "Sigmoid", {"x"}, {"sig"}).Node("m", "Mul", {"x", "sig"}, {"z"});
    g.Node("gate", "Sigmoid", {"z"}, {"gated"}).Node("other", "Mul", {"x", "gated"}, {"y"});
    End(g);
    EXPECT_EQ(Patterns(), "silu: s m");
    ExpectAll("low");
}

TEST_F(OnnxPatternsTest, AttentionThatScalesBothFactors) {
    for (const bool guards : {false, true}) {
        GraphBuilder g = Begin();
        g.Weight("mask", {8, 8}).Node("exp", "Exp", {"x"}, {"q"});
        g.Node("t", "Transpose", {"x"}, {"k"}).List("perm", {0, 2, 1});
        g.Node("sq", "Mul", {"q", "c"}, {"qs"}).Node("sk", "Mul", {"k", "c"}, {"ks"});
        g.Node("qk", "MatMul", {"qs", "ks"}, {"scores"}).Node("add", "Add", {"scores", "mask"}, {"masked"});
        g.Node("sm", "Softmax", {"masked"}, {"p"});
        if (guards) {
            g.Node("nan", "IsNaN", {"p"}, {"test"}).Node("where", "Where", {"test", "eps", "p"}, {"clean"});
        }
        g.Node("pv", "MatMul", {guards ? "clean" : "p", "x"}, {"y"});
        End(g);
        EXPECT_EQ(Patterns(), guards ? "attention: sq sk qk add sm nan where pv" : "attention: sq sk qk add sm pv");
        EXPECT_EQ(Fate("sm"), "low") << "PyTorch lowers scaled_dot_product_attention";
        EXPECT_EQ(Why("sm"), "{lower, torch-fp16:8}");
        EXPECT_EQ(Casts(), "x -> float32 for exp, q -> float16 for sq");
        EXPECT_EQ(Stored("mask"), "float16");
        ranges_ = {{"mask", {1, 3.4e38}}};
        Decide("torch-fp16");
        EXPECT_EQ(Fate("sm"), "low") << "a mask becomes minus infinity";
        ranges_ = {{"scores", {1, 1e5}}};
        Decide("torch-fp16");
        EXPECT_EQ(Fate("sm"), "f32");
        ranges_ = {};
    }
}

TEST_F(OnnxPatternsTest, AttentionThatScalesTheProductIsSeparateOps) {
    GraphBuilder g = Begin();
    g.Node("t", "Transpose", {"x"}, {"k"}).List("perm", {0, 2, 1});
    g.Node("qk", "MatMul", {"x", "k"}, {"scores"}).Node("scale", "Mul", {"scores", "c"}, {"scaled"});
    g.Node("sm", "Softmax", {"scaled"}, {"p"}).Node("pv", "MatMul", {"p", "x"}, {"y"});
    End(g);
    EXPECT_EQ(Patterns(), "");
    EXPECT_EQ(Fate("sm"), "f32");
    EXPECT_EQ(Fate("pv"), "low");
}

TEST_F(OnnxPatternsTest, AKeepOfOneNodeKeepsAll) {
    GraphBuilder g = Begin();
    g.Node("s", "Sigmoid", {"x"}, {"sig"}).Node("m", "Mul", {"x", "sig"}, {"y"});
    keeps_ = {"s*"};
    End(g);
    ExpectAll("f32");
    EXPECT_EQ(Why("m"), "{f32, \"kept by --keep s*\"}");
    keeps_ = {"silu"};
    Decide("torch-fp16");
    ExpectAll("f32");
}

} // namespace
