// inline_test.cc: local functions put in where they are called.
#include "onnx/inline.h"

#include <gtest/gtest.h>

#include "tests/onnx/model_of.h"

namespace {

std::string nodes_of(const OnnxNodes &nodes) {
    std::string text;
    for (int i = 0; i < nodes.len; i++) {
        const OnnxNode &n = nodes.data[i];
        text += i ? "; " : "";
        for (int k = 0; k < n.outputs.len; k++) text += std::string(k ? "," : "") + n.outputs.data[k];
        text += std::string("=") + n.op_type + "(";
        for (int k = 0; k < n.inputs.len; k++) text += std::string(k ? "," : "") + n.inputs.data[k];
        text += ")";
        for (int k = 0; k < n.attributes.len; k++)
            if (n.attributes.data[k].type == ONNX_ATTR_GRAPH) {
                text += "{" + nodes_of(n.attributes.data[k].g->nodes) + "->";
                for (int j = 0; j < n.attributes.data[k].g->outputs.len; j++)
                    text += n.attributes.data[k].g->outputs.data[j].name;
                text += "}";
            }
    }
    return text;
}

std::string inlined(ModelOf &m) {
    amp_error err = {};
    if (onnx_inline_functions(&m.model, &m.arena, &err) != AMP_OK) return err.message;
    return nodes_of(m.model.graph->nodes);
}

TEST(OnnxInline, ABodyTakesTheNamesOfItsCall) {
    ModelOf m(17);
    GraphOf &body = m.inner("body");
    body.node("Relu", "a", "b").node("Add", "b w", "c");
    m.function("f", "a w", "c", body);
    m.imports("local", 1);
    m.graph()
        .input("x", ONNX_FLOAT)
        .input("y/b", ONNX_FLOAT)
        .node("f", "x y/b", "y", "local")
        .node("f", "y x", "z", "local");
    EXPECT_EQ(inlined(m), "y/b_1=Relu(x); y=Add(y/b_1,y/b); z/b=Relu(y); z=Add(z/b,x)");
    EXPECT_EQ(m.model.functions.len, 0);
    EXPECT_EQ(m.solve(), "");
    EXPECT_EQ(m.text("z"), "float32");
    EXPECT_NE(m.out("z"), ONNX_NONE) << "it can be lowered now";
}

TEST(OnnxInline, FunctionsCallFunctions) {
    ModelOf m(17);
    GraphOf &inner = m.inner("inner"), &outer = m.inner("outer");
    inner.node("Abs", "a", "b");
    outer.node("g", "a", "t", "local").node("g", "t", "c", "local");
    m.function("f", "a", "c", outer);
    m.function("g", "a", "b", inner);
    m.imports("local", 1);
    m.graph().input("x", ONNX_FLOAT).node("f", "x", "y", "local");
    EXPECT_EQ(inlined(m), "y/t=Abs(x); y=Abs(y/t)");
}

TEST(OnnxInline, OutputsThatAreInputsOrLeftOut) {
    ModelOf m(17);
    GraphOf &body = m.inner("body");
    body.node("Relu", "a", "b");
    m.function("f", "a o", "a b b", body);
    m.imports("local", 1);
    m.graph().input("x", ONNX_FLOAT).node("f", "x", "p q r", "local").node("f", "x", "s", "local");
    EXPECT_EQ(inlined(m), "q=Relu(x); p=Identity(x); r=Identity(q); s/b=Relu(x); s=Identity(x)");
    EXPECT_EQ(m.solve(), "");
}

TEST(OnnxInline, AttributesComeFromTheCallOrAreDefaults) {
    ModelOf m(17);
    GraphOf &body = m.inner("body");
    body.node("Cast", "a", "b").refers("to", "kind").node("Softmax", "b", "c").refers("axis", "along");
    m.function("f", "a", "c", body);
    OnnxAttribute along = onnx_attribute_of_int("along", 2);
    vec_push(&m.arena, &m.model.functions.data[0].defaults, along);
    m.imports("local", 1);
    m.graph().input("x", ONNX_FLOAT).node("f", "x", "y", "local").with("kind", ONNX_DOUBLE);
    EXPECT_EQ(inlined(m), "y/b=Cast(x); y=Softmax(y/b)");
    EXPECT_EQ(onnx_attribute_int(&m.model.graph->nodes.data[0], "to", 0), ONNX_DOUBLE);
    EXPECT_EQ(onnx_attribute_int(&m.model.graph->nodes.data[1], "axis", 0), 2);
    EXPECT_EQ(m.solve(), "");
    EXPECT_EQ(m.text("y"), "float64");
}

TEST(OnnxInline, GraphsInBodiesAndCallsInGraphs) {
    ModelOf m(17);
    GraphOf &then = m.inner("then"), &other = m.inner("else"), &body = m.inner("body"), &square = m.inner("square");
    square.node("Mul", "a a", "b");
    m.function("square", "a", "b", square);
    then.node("square", "t", "u", "local").output("u");
    other.node("Neg", "a", "v").output("v");
    body.node("Abs", "a", "t").node("If", "c", "r").with("then_branch", then).with("else_branch", other);
    m.function("f", "a c", "r", body);
    m.imports("local", 1);
    m.graph()
        .input("x", ONNX_FLOAT)
        .input("c", ONNX_BOOL)
        .node("f", "x c", "y", "local")
        .node("f", "y c", "z", "local");
    GraphOf &a = m.inner("a"), &b = m.inner("b");
    a.node("square", "z", "k", "local").output("k");
    b.node("Identity", "z", "l").output("l");
    m.graph().node("If", "c", "w").with("then_branch", a).with("else_branch", b);
    EXPECT_EQ(inlined(m), "y/t=Abs(x); y=If(c){y/u=Mul(y/t,y/t)->y/u}{y/v=Neg(x)->y/v}; z/t=Abs(y); "
                          "z=If(c){z/u=Mul(z/t,z/t)->z/u}{z/v=Neg(y)->z/v}; w=If(c){k=Mul(z,z)->k}{l=Identity(z)->l}");
    EXPECT_EQ(m.solve(), "");
}

TEST(OnnxInline, WhatAFunctionSaysOfItsValuesIsKept) {
    ModelOf m(17);
    m.imports("local", 1);
    m.imports("mine", 1);
    GraphOf &body = m.inner("body");
    body.node("Foo", "a", "b", "mine").node("Relu", "b", "c").info("b", ONNX_FLOAT16).info("c", ONNX_FLOAT16);
    m.function("f", "a", "c", body);
    m.model.functions.data[0].value_infos = body.g->value_infos;
    m.graph().input("x", ONNX_FLOAT).node("f", "x", "y", "local");
    EXPECT_EQ(inlined(m), "y/b=Foo(x); y=Relu(y/b)");
    EXPECT_EQ(m.model.graph->value_infos.len, 1);
    EXPECT_EQ(m.solve(), "");
    EXPECT_EQ(m.text("y"), "float16");
}

// A model of opset |of| that calls a function of opset |function| with |op|, in a graph of If.
std::string inlined_across(int64_t of, int64_t function, const char *op) {
    ModelOf m(of);
    m.imports("local", 1);
    GraphOf &body = m.inner("body"), &then = m.inner("then"), &other = m.inner("else");
    then.node(op, "a", "t").output("t");
    other.node("Relu", "a", "e").output("e");
    body.node("If", "c", "b").with("then_branch", then).with("else_branch", other);
    m.function("f", "a c", "b", body);
    OnnxFunction &f = m.model.functions.data[0];
    f.opsets = {};
    OnnxOpset own = {};
    own.domain = "";
    own.version = function;
    vec_push(&m.arena, &f.opsets, own);
    m.graph().input("x", ONNX_FLOAT).input("c", ONNX_BOOL).node("f", "x c", "y", "local");
    const std::string text = inlined(m);
    EXPECT_EQ(m.model.functions.len, text[2] == 'f') << text;
    EXPECT_EQ(m.solve(), "");
    return text;
}

TEST(OnnxInline, AnEarlierOpsetIsPutInIfItMeansTheSame) {
    EXPECT_EQ(inlined_across(18, 17, "Relu"), "y=If(c){y/t=Relu(x)->y/t}{y/e=Relu(x)->y/e}");
    EXPECT_EQ(inlined_across(18, 12, "Softmax"), "y=f(x,c)");
    EXPECT_EQ(inlined_across(18, 13, "Softmax"), "y=If(c){y/t=Softmax(x)->y/t}{y/e=Relu(x)->y/e}");
    EXPECT_EQ(inlined_across(17, 18, "Relu"), "y=f(x,c)");
}

TEST(OnnxInline, WhatGrowsWithoutEndIsRefused) {
    ModelOf m(17);
    m.imports("local", 1);
    for (int i = 0; i < 60; i++) {
        GraphOf &body = m.inner("body");
        const char *below = arena_printf(&m.arena, "f%d", i - 1);
        body.node(i ? below : "Abs", "a", "b", i ? "local" : "").node(i ? below : "Abs", "b", "c", i ? "local" : "");
        m.function(arena_printf(&m.arena, "f%d", i), "a", "c", body);
    }
    m.graph().input("x", ONNX_FLOAT).node("f59", "x", "y", "local");
    EXPECT_EQ(inlined(m), "m.onnx: with its local functions put in it has more than 200001 nodes");
}

} // namespace
