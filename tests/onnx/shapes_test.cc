// shapes_test.cc: shapes with names, arithmetic on shapes, and what the graph says of them.
// tests/checks/full/onnx_ops.sh compares the shapes of the wheel's node tests.
#include <gtest/gtest.h>

#include "tests/onnx/model_of.h"

namespace {

// The shape of |output| of one node.
struct One {
    explicit One(int64_t opset = 17) : m(opset) {}
    GraphOf &graph() { return m.graph(); }
    std::string shape(const char *output = "y") {
        std::string wrong = m.solve();
        if (!wrong.empty()) return wrong;
        std::string text = m.text(output);
        return text.find('[') == std::string::npos ? "unknown" : text.substr(text.find('['));
    }
    ModelOf m;
};

TEST(OnnxShapes, Broadcast) {
    One one;
    one.graph().input("a", ONNX_FLOAT, "N,1,4").input("b", ONNX_FLOAT, "T,1").node("Add", "a b", "y");
    EXPECT_EQ(one.shape(), "[N, T, 4]");
    One names;
    names.graph().input("a", ONNX_FLOAT, "N").input("b", ONNX_FLOAT, "M").node("Add", "a b", "y");
    EXPECT_EQ(names.shape(), "[max(N, M)]");
    One unknown;
    unknown.graph().input("a", ONNX_FLOAT, "N").input("b", ONNX_FLOAT).node("Add", "a b", "y");
    EXPECT_EQ(unknown.shape(), "unknown");
}

TEST(OnnxShapes, Products) {
    One matmul;
    matmul.graph().input("a", ONNX_FLOAT, "N,1,T,8").input("b", ONNX_FLOAT, "H,8,U").node("MatMul", "a b", "y");
    EXPECT_EQ(matmul.shape(), "[N, H, T, U]");
    EXPECT_EQ(onnx_summed(&matmul.m.index, &matmul.m.s, 0), 8);
    One vector;
    vector.graph().input("a", ONNX_FLOAT, "8").input("b", ONNX_FLOAT, "N,8,U").node("MatMul", "a b", "y");
    EXPECT_EQ(vector.shape(), "[N, U]");
    One gemm;
    gemm.graph().input("a", ONNX_FLOAT, "8,N").input("b", ONNX_FLOAT, "6,8").node("Gemm", "a b", "y");
    gemm.graph().with("transA", 1).with("transB", 1);
    EXPECT_EQ(gemm.shape(), "[N, 6]");
    EXPECT_EQ(onnx_summed(&gemm.m.index, &gemm.m.s, 0), 8);
    One einsum;
    einsum.graph().input("a", ONNX_FLOAT, "N,T,8").input("b", ONNX_FLOAT, "8,U").node("Einsum", "a b", "y");
    einsum.graph().with("equation", "ntd, du -> utn");
    EXPECT_EQ(einsum.shape(), "[U, T, N]");
}

TEST(OnnxShapes, ConvolutionsAndPooling) {
    One conv;
    conv.graph().input("x", ONNX_FLOAT, "N,3,H,224").weight("w", ONNX_FLOAT, {64, 3, 7, 7});
    conv.graph().node("Conv", "x w", "y").with("strides", {2, 2}).with("pads", {3, 3, 3, 3});
    EXPECT_EQ(conv.shape(), "[N, 64, floor((H - 1)/(2)) + 1, 112]");
    EXPECT_EQ(onnx_summed(&conv.m.index, &conv.m.s, 0), 147);
    One same;
    same.graph().input("x", ONNX_FLOAT, "N,3,9,8").weight("w", ONNX_FLOAT, {4, 3, 3, 3});
    same.graph().node("Conv", "x w", "y").with("strides", {2, 2}).with("auto_pad", "SAME_UPPER");
    EXPECT_EQ(same.shape(), "[N, 4, 5, 4]");
    One transposed;
    transposed.graph().input("x", ONNX_FLOAT, "N,8,5,5").weight("w", ONNX_FLOAT, {8, 2, 3, 3});
    transposed.graph().node("ConvTranspose", "x w", "y").with("strides", {2, 2}).with("group", 2);
    EXPECT_EQ(transposed.shape(), "[N, 4, 11, 11]");
    EXPECT_EQ(onnx_summed(&transposed.m.index, &transposed.m.s, 0), 36);
    One pool;
    pool.graph().input("x", ONNX_FLOAT, "N,8,6,6").node("MaxPool", "x", "y i").with("kernel_shape", {3, 3});
    pool.graph().with("strides", {2, 2}).with("ceil_mode", 1);
    EXPECT_EQ(pool.shape(), "[N, 8, 3, 3]");
    EXPECT_EQ(pool.shape("i"), "[N, 8, 3, 3]");
    One global;
    global.graph().input("x", ONNX_FLOAT, "N,8,6,6").node("GlobalAveragePool", "x", "y");
    EXPECT_EQ(global.shape(), "[N, 8, 1, 1]");
    EXPECT_EQ(onnx_summed(&global.m.index, &global.m.s, 0), 36);
}

TEST(OnnxShapes, ReshapesKeepTheCount) {
    One heads;
    heads.graph().input("x", ONNX_FLOAT, "N,T,64").ints("s", {0, 0, 4, -1}).node("Reshape", "x s", "y");
    EXPECT_EQ(heads.shape(), "[N, T, 4, 16]");
    One flat;
    flat.graph().input("x", ONNX_FLOAT, "N,T,64").ints("s", {-1, 32}).node("Reshape", "x s", "y");
    EXPECT_EQ(flat.shape(), "[2*N*T, 32]");
    One half;
    half.graph().input("x", ONNX_FLOAT, "N,3").ints("s", {-1, 2}).node("Reshape", "x s", "y");
    EXPECT_EQ(half.shape(), "[3*N/2, 2]");
    One zero;
    zero.graph().input("x", ONNX_FLOAT, "0,3").ints("s", {3, 0}).node("Reshape", "x s", "y").with("allowzero", 1);
    EXPECT_EQ(zero.shape(), "[3, 0]");
    One given;
    given.graph().input("x", ONNX_FLOAT, "N,3").input("s", ONNX_INT64, "2").node("Reshape", "x s", "y");
    EXPECT_EQ(given.shape(), "[?, ?]");
}

// Shape -> Gather -> Concat -> Reshape, as exporters write it.
TEST(OnnxShapes, ShapeArithmeticIsFolded) {
    One one;
    GraphOf &g = one.graph();
    g.input("x", ONNX_FLOAT, "N,T,64").node("Shape", "x", "s").ints("zero", {0}, true).ints("one", {1}, true);
    g.node("Gather", "s zero", "n").node("Gather", "s one", "t").ints("ax", {0}).ints("h", {4});
    g.node("Unsqueeze", "n ax", "n1").node("Unsqueeze", "t ax", "t1").ints("two", {2});
    g.node("Mul", "t1 two", "t2").node("Div", "t2 two", "t3").node("Concat", "n1 t3 h minus", "to").with("axis", 0);
    g.ints("minus", {-1}).node("Reshape", "x to", "r").node("Slice", "s ax two", "front");
    g.node("ConstantOfShape", "front", "z").node("Range", "zero t one", "y");
    EXPECT_EQ(one.shape("r"), "[N, T, 4, 16]");
    EXPECT_EQ(one.shape("z"), "[N, T]");
    EXPECT_EQ(one.shape("y"), "[T]");
}

TEST(OnnxShapes, ExpandByWhere) {
    One one;
    GraphOf &g = one.graph();
    g.input("x", ONNX_FLOAT, "1,8").input("k", ONNX_FLOAT, "N,8").node("Shape", "k", "s").ints("minus", {-1});
    g.node("Equal", "s minus", "is").ints("ones", {1, 1}).node("Where", "is ones s", "to").node("Expand", "x to", "y");
    EXPECT_EQ(one.shape(), "[N, 8]");
}

TEST(OnnxShapes, Pieces) {
    One concat;
    concat.graph()
        .input("a", ONNX_FLOAT, "N,P")
        .input("b", ONNX_FLOAT, "N,T")
        .node("Concat", "a b b", "y")
        .with("axis", 1);
    EXPECT_EQ(concat.shape(), "[N, (T + (P + T))]");
    One split;
    split.graph().input("x", ONNX_FLOAT, "N,7").node("Split", "x", "y z").with("axis", -1);
    EXPECT_EQ(split.shape("y"), "[N, 4]");
    EXPECT_EQ(split.shape("z"), "[N, 3]");
    One slice;
    slice.graph().input("x", ONNX_FLOAT, "N,T,9").ints("b", {1, -4}).ints("e", {9223372036854775807, 100});
    slice.graph().ints("ax", {1, 2}).node("Slice", "x b e ax", "y");
    EXPECT_EQ(slice.shape(), "[N, T - 1, 4]");
    One back;
    back.graph().input("x", ONNX_FLOAT, "10").ints("b", {-1}).ints("e", {INT64_MIN}).ints("ax", {0}).ints("st", {-3});
    back.graph().node("Slice", "x b e ax st", "y");
    EXPECT_EQ(back.shape(), "[4]");
    One pad;
    pad.graph().input("x", ONNX_FLOAT, "N,9").ints("p", {0, 1, 2, 3}).node("Pad", "x p", "y");
    EXPECT_EQ(pad.shape(), "[N + 2, 13]");
}

TEST(OnnxShapes, Dimensions) {
    One moved;
    moved.graph().input("x", ONNX_FLOAT, "N,T,H,8").node("Transpose", "x", "y").with("perm", {0, 2, 1, 3});
    EXPECT_EQ(moved.shape(), "[N, H, T, 8]");
    One squeezed;
    squeezed.graph().input("x", ONNX_FLOAT, "N,1,8").ints("a", {1}).node("Squeeze", "x a", "y");
    EXPECT_EQ(squeezed.shape(), "[N, 8]");
    One attribute(11);
    attribute.graph().input("x", ONNX_FLOAT, "N,8").node("Unsqueeze", "x", "y").with("axes", {0, -1});
    EXPECT_EQ(attribute.shape(), "[1, N, 8, 1]");
    One flat;
    flat.graph().input("x", ONNX_FLOAT, "N,T,8").node("Flatten", "x", "y").with("axis", -1);
    EXPECT_EQ(flat.shape(), "[N*T, 8]");
    One gather;
    gather.graph().input("x", ONNX_FLOAT, "V,8").input("i", ONNX_INT64, "N,T").node("Gather", "x i", "y");
    EXPECT_EQ(gather.shape(), "[N, T, 8]");
    One reduced(18);
    reduced.graph().input("x", ONNX_FLOAT, "N,T,8").ints("a", {-1}).node("ReduceMean", "x a", "y");
    EXPECT_EQ(reduced.shape(), "[N, T, 1]");
    EXPECT_EQ(onnx_summed(&reduced.m.index, &reduced.m.s, 0), 8);
    One dropped(17);
    dropped.graph()
        .input("x", ONNX_FLOAT, "N,T,8")
        .node("ReduceMean", "x", "y")
        .with("axes", {0, 1})
        .with("keepdims", 0);
    EXPECT_EQ(dropped.shape(), "[8]");
    EXPECT_EQ(onnx_summed(&dropped.m.index, &dropped.m.s, 0), 100);
}

TEST(OnnxShapes, Networks) {
    One lstm;
    lstm.graph()
        .input("x", ONNX_FLOAT, "T,N,5")
        .weight("w", ONNX_FLOAT, {2, 28, 5})
        .weight("r", ONNX_FLOAT, {2, 28, 7});
    lstm.graph().node("LSTM", "x w r", "y h").with("hidden_size", 7);
    EXPECT_EQ(lstm.shape("y"), "[T, 2, N, 7]");
    EXPECT_EQ(lstm.shape("h"), "[2, N, 7]");
    One attention(23);
    attention.graph()
        .input("q", ONNX_FLOAT, "N,T,32")
        .input("k", ONNX_FLOAT, "N,S,16")
        .input("p", ONNX_FLOAT, "N,2,P,8");
    attention.graph().node("Attention", "q k k - p p", "y pk pv").with("q_num_heads", 4).with("kv_num_heads", 2);
    EXPECT_EQ(attention.shape("y"), "[N, T, 32]");
    EXPECT_EQ(attention.shape("pk"), "[N, 2, (S + P), 8]");
    One norm;
    norm.graph().input("x", ONNX_FLOAT, "N,T,8").node("LayerNormalization", "x x", "y m");
    EXPECT_EQ(norm.shape("m"), "[N, T, 1]");
    EXPECT_EQ(onnx_summed(&norm.m.index, &norm.m.s, 0), 8);
}

TEST(OnnxShapes, WhatTheGraphSaysCompletes) {
    One one;
    one.m.imports("mine", 1);
    one.graph().input("x", ONNX_FLOAT, "N,4").node("Foo", "x", "f", "mine").info("f", ONNX_FLOAT, "M,?");
    one.graph().node("Relu", "f", "y").node("NonZero", "x", "z").output("z", ONNX_INT64, "2,K");
    EXPECT_EQ(one.shape("y"), "[M, ?]");
    EXPECT_EQ(one.shape("z"), "[2, K]");
    EXPECT_EQ(one.m.s.stale_shapes, 0);
}

TEST(OnnxShapes, StaleStatementsAreCounted) {
    One one;
    one.graph().input("x", ONNX_FLOAT, "N,4").node("Relu", "x", "y").output("y", ONNX_FLOAT, "N,5");
    one.graph().node("Abs", "x", "z").info("z", ONNX_FLOAT, "N").node("Neg", "x", "u").info("u", ONNX_FLOAT, "M,4");
    EXPECT_EQ(one.shape("y"), "[N, 4]");
    EXPECT_EQ(one.shape("z"), "[N, 4]");
    EXPECT_EQ(one.m.s.stale_shapes, 2);
}

TEST(OnnxShapes, WhatIsWrongIsUnknown) {
    One axis;
    axis.graph().input("x", ONNX_FLOAT, "N,4").node("Concat", "x x", "y").with("axis", 7);
    EXPECT_EQ(axis.shape(), "unknown");
    One perm;
    perm.graph().input("x", ONNX_FLOAT, "N,4").node("Transpose", "x", "y").with("perm", {5, INT64_MIN});
    EXPECT_EQ(perm.shape(), "unknown");
    One stride;
    stride.graph().input("x", ONNX_FLOAT, "1,1,9").weight("w", ONNX_FLOAT, {1, 1, 3}).node("Conv", "x w", "y");
    stride.graph().with("strides", {0, INT64_MIN}).with("pads", {INT64_MAX, INT64_MAX}).with("dilations", {INT64_MIN});
    EXPECT_EQ(stride.shape(), "[1, 1, 7]");
}

TEST(OnnxShapes, TypicalSizes) {
    One one;
    one.graph().input("x", ONNX_FLOAT, "N,4").node("Relu", "x", "y").node("Shape", "x", "s").input("u", ONNX_FLOAT);
    one.shape();
    EXPECT_EQ(onnx_typical_elements(&one.m.s, one.m.value("y")), 40);
    EXPECT_EQ(onnx_typical_elements(&one.m.s, one.m.value("u")), -1);
    EXPECT_EQ(onnx_summed(&one.m.index, &one.m.s, 0), 0);
}

} // namespace
