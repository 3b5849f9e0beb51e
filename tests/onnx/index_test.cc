// index_test.cc: values and nodes by numbers, and graphs that are none.
#include <gtest/gtest.h>

#include "tests/onnx/onnx_bytes.h"

using namespace onnx_test;

namespace {

std::string Said(const Bytes &model) {
    Reading r(model.text);
    EXPECT_EQ(r.status, AMP_OK) << r.Message();
    r.Index();
    EXPECT_EQ(r.status, r.err.message[0] ? AMP_BAD_FILE : AMP_OK);
    return r.Message();
}

Bytes Chain(const std::vector<Bytes> &nodes) { return Model(Graph(nodes)); }
Bytes W(const std::string &name = "w") { return Tensor(name, {1}, "1234"); }

const Bytes kRelu = Node("Relu", {"x"}, {"y"}, "relu");

// An If with one branch, which makes `inner` = Relu(|reads|).
Bytes If(const std::string &reads, const std::string &output = "inner") {
    Bytes branch = Bytes().Put(1, Node("Relu", {reads}, {"inner"}, "deep")).Text(2, "branch");
    branch.Put(12, Info(output, ONNX_FLOAT, {}));
    return Node("If", {"c"}, {"z"}, "if").Put(5, GraphAttribute("then_branch", branch));
}

TEST(OnnxIndex, NumbersAndUses) {
    Reading r(Model(Graph({Node("Add", {"x", "w", ""}, {"a", "", "b"}, "add"), Node("Mul", {"a", "x"}, {"y"}, "mul")},
                          {"x", "w"}, {"y", "a"}, {W()})
                        .Put(13, Info("a", ONNX_FLOAT, {"N"}))
                        .Put(13, Info("stale", ONNX_FLOAT, {})))
                  .text);
    ASSERT_EQ(r.Index(), AMP_OK) << r.Message();
    const OnnxIndex &x = r.index;
    ASSERT_EQ(x.value_count, 5);
    ASSERT_EQ(x.node_count, 2);
    const int a = onnx_find(&x, 0, "a"), w = onnx_find(&x, 0, "w"), in = onnx_find(&x, 0, "x");
    EXPECT_EQ(onnx_find(&x, 0, "nothing"), ONNX_NONE);
    const int32_t *operands = x.operands + x.nodes[0].first_input;
    EXPECT_EQ(std::vector<int32_t>(operands, operands + 6),
              (std::vector<int32_t>{in, w, ONNX_NONE, a, ONNX_NONE, onnx_find(&x, 0, "b")}));
    EXPECT_EQ(x.operands[x.graphs[0].first_output + 1], a);
    EXPECT_TRUE(x.values[w].is_input);
    EXPECT_STREQ(x.values[w].initializer->name, "w");
    EXPECT_EQ(x.values[a].producer, 0);
    EXPECT_EQ(x.values[a].output, 0);
    EXPECT_TRUE(x.values[a].is_output);
    EXPECT_STREQ(x.values[a].info->name, "a");
    EXPECT_EQ(x.values[a].info, &r.model.graph->outputs.data[1]);
    ASSERT_EQ(x.values[a].uses, 2);
    const OnnxUse *uses = x.uses + x.values[a].first_use;
    EXPECT_EQ(uses[0].node, 1);
    EXPECT_EQ(uses[0].input, 0);
    EXPECT_EQ(uses[1].node, ONNX_NONE);
    EXPECT_STREQ(onnx_node_text(&x, &r.arena, 1), "node 1 'mul' (Mul)");
}

TEST(OnnxIndex, InnerGraphsSeeValuesAround) {
    Reading r(Model(Graph({Node("Abs", {"x"}, {"c"}), If("c"), Node("Add", {"z", "x"}, {"y"})}, {"x"})).text);
    ASSERT_EQ(r.Index(), AMP_OK) << r.Message();
    const OnnxIndex &x = r.index;
    ASSERT_EQ(x.graph_count, 2);
    EXPECT_EQ(x.graphs[1].parent, 0);
    EXPECT_EQ(x.graphs[1].parent_node, 1);
    EXPECT_EQ(x.nodes[1].first_graph, 1);
    EXPECT_EQ(x.nodes[1].graph_count, 1);
    EXPECT_EQ(x.graphs[1].first_node, 3);
    const int c = onnx_find(&x, 1, "c");
    EXPECT_EQ(c, onnx_find(&x, 0, "c"));
    EXPECT_EQ(onnx_find(&x, 0, "inner"), ONNX_NONE);
    EXPECT_EQ(x.values[c].uses, 2);
    EXPECT_EQ(x.uses[x.values[c].first_use + 1].node, 3);
    EXPECT_STREQ(onnx_node_text(&x, &r.arena, 3), "node 1 'if' (If), node 0 'deep' (Relu)");
}

TEST(OnnxIndex, ANameInsideHidesOneOutside) {
    Bytes branch = Bytes().Put(1, Node("Relu", {"x"}, {"c"}, "c1")).Put(1, Node("Relu", {"c"}, {"d"})).Text(2, "b");
    branch.Put(12, Info("d", ONNX_FLOAT, {}));
    const Bytes node = Node("If", {"c"}, {"y"}, "if").Put(5, GraphAttribute("then_branch", branch));
    Reading r(Model(Graph({Node("Abs", {"x"}, {"c"}), node})).text);
    ASSERT_EQ(r.Index(), AMP_OK) << r.Message();
    EXPECT_NE(onnx_find(&r.index, 1, "c"), onnx_find(&r.index, 0, "c"));
    EXPECT_EQ(r.index.values[onnx_find(&r.index, 0, "c")].uses, 1);
}

TEST(OnnxIndex, FunctionsThatAreCalled) {
    Reading r(Everything().text);
    ASSERT_EQ(r.Index(), AMP_OK) << r.Message();
    EXPECT_EQ(r.index.nodes[0].function, ONNX_NONE);
    EXPECT_EQ(r.index.nodes[1].function, 0);
    EXPECT_EQ(r.index.graphs[1].function, &r.model.functions.data[0]);
    EXPECT_EQ(r.index.nodes[0].graph_count, 3);
    EXPECT_NE(onnx_find(&r.index, 1, "a"), ONNX_NONE);
    EXPECT_EQ(onnx_find(&r.index, 1, "x"), ONNX_NONE);
    EXPECT_STREQ(onnx_node_text(&r.index, &r.arena, r.index.graphs[1].first_node),
                 "function 'Double', node 0 '' (Add)");
}

TEST(OnnxIndex, GraphsThatAreNone) {
    EXPECT_EQ(Said(Chain({kRelu})), "");
    EXPECT_EQ(Said(Chain({Node("Relu", {"q"}, {"y"}, "r")})),
              "m.onnx: node 0 'r' (Relu): reads 'q', which nothing makes: no input, initializer or node has this name");
    EXPECT_EQ(Said(Chain({Node("Relu", {"x"}, {"z"})})),
              "m.onnx: graph 'main': has output 'y', which nothing makes: no input, initializer or node has this name");
    EXPECT_EQ(
        Said(Chain({kRelu, Node("Abs", {"x"}, {"y"}, "abs")})),
        "m.onnx: node 1 'abs' (Abs): output 'y' has the name of an output of node 0 'relu' (Relu); a name has one "
        "value");
    EXPECT_EQ(Said(Chain({Node("Abs", {"x"}, {"x"})})),
              "m.onnx: node 0 '' (Abs): output 'x' has the name of an input of the graph; a name has one value");
    EXPECT_EQ(Said(Chain({Node("Abs", {"x"}, {"y", "y"})})),
              "m.onnx: node 0 '' (Abs): output 'y' has the name of an output of node 0 '' (Abs); a name has one value");
    EXPECT_EQ(Said(Chain({Node("", {"x"}, {"y"})})), "m.onnx: node 0 '' (): has no op_type");
    const std::vector<std::string> y = {"y"};
    EXPECT_EQ(Said(Model(Graph({kRelu}, {"x", "x"}, y))), "m.onnx: graph 'main': two inputs have the name 'x'");
    EXPECT_EQ(Said(Model(Graph({kRelu}, {"x", ""}, y))), "m.onnx: graph 'main': input 1 has no name");
    EXPECT_EQ(Said(Model(Graph({kRelu}, {"x"}, y, {W(), W()}))),
              "m.onnx: graph 'main': two initializers have the name 'w'");
    EXPECT_EQ(Said(Model(Graph({kRelu}, {"x"}, y, {W("")}))), "m.onnx: graph 'main': initializer 0 has no name");
    EXPECT_EQ(Said(Model(Graph({kRelu}, {"x"}, y, {W("y")}))),
              "m.onnx: node 0 'relu' (Relu): output 'y' has the name of an initializer; a name has one value");
    EXPECT_EQ(Said(Model(Graph({kRelu}).Put(15, Bytes()))), "m.onnx: graph 'main': sparse initializer 0 has no name");
}

TEST(OnnxIndex, OrderAndCycles) {
    EXPECT_EQ(Said(Chain({Node("Abs", {"a"}, {"y"}, "late"), Node("Relu", {"x"}, {"a"}, "early")})),
              "m.onnx: node 0 'late' (Abs): reads 'a', which node 1 'early' (Relu) makes later; nodes must come after "
              "those that they read: sort them");
    EXPECT_EQ(Said(Chain({Node("Abs", {"a"}, {"y"}, "p"), Node("Relu", {"b"}, {"a"}, "q"), Node("Neg", {"y"}, {"b"})})),
              "m.onnx: node 0 'p' (Abs): reads 'a', which node 1 'q' (Relu) makes, which reads what it makes in turn: "
              "the graph has a cycle");
    EXPECT_EQ(Said(Chain({Node("Abs", {"y"}, {"y"}, "p")})),
              "m.onnx: node 0 'p' (Abs): reads 'y', which node 0 'p' (Abs) makes, which reads what it makes in turn: "
              "the graph has a cycle");
    const Bytes c = Node("Abs", {"x"}, {"c"});
    EXPECT_EQ(Said(Model(Graph({c, If("y"), Node("Add", {"z", "x"}, {"y"}, "add")}))),
              "m.onnx: node 1 'if' (If), node 0 'deep' (Relu): reads 'y', which node 2 'add' (Add) makes, which reads "
              "what it makes in turn: the graph has a cycle");
    EXPECT_EQ(Said(Model(Graph({c, If("x", "z"), Node("Add", {"z", "x"}, {"y"}, "add")}))),
              "m.onnx: node 1 'if' (If): reads 'z', which node 1 'if' (If) makes, which reads what it makes in turn: "
              "the graph has a cycle");
    EXPECT_EQ(Said(Model(Graph({c, If("nothing"), Node("Add", {"z", "x"}, {"y"}, "add")}))),
              "m.onnx: node 1 'if' (If), node 0 'deep' (Relu): reads 'nothing', which nothing makes: no input, "
              "initializer or node has this name");
}

Bytes Function(const std::string &name, const std::string &calls, const std::string &domain = "local") {
    Bytes f = Bytes().Text(1, name).Text(4, "a").Text(5, "b");
    return f.Put(7, Node(calls, {"a"}, {"b"}).Text(7, "local")).Text(10, domain);
}

TEST(OnnxIndex, FunctionsThatAreWrong) {
    const Bytes call = Model(Graph({Node("F", {"x"}, {"y"}).Text(7, "local")}));
    EXPECT_EQ(Said(Bytes(call).Put(25, Function("F", "G")).Put(25, Function("G", "H"))), "");
    EXPECT_EQ(Said(Bytes(call).Put(25, Function("F", "F"))),
              "m.onnx: functions: 'F' is called by functions that call each other in a circle");
    EXPECT_EQ(Said(Bytes(call).Put(25, Function("F", "G")).Put(25, Function("G", "F"))),
              "m.onnx: functions: 'F' is called by functions that call each other in a circle");
    EXPECT_EQ(Said(Bytes(call).Put(25, Function("F", "G")).Put(25, Function("F", "H"))),
              "m.onnx: functions: two have the name 'F' of domain 'local'");
    EXPECT_EQ(Said(Bytes(call).Put(25, Function("F", "G")).Put(25, Function("F", "H", "other"))), "");
    Bytes unknown = Bytes().Text(1, "F").Text(4, "a").Text(5, "q").Text(10, "local");
    EXPECT_EQ(
        Said(Bytes(call).Put(25, unknown)),
        "m.onnx: function 'F', graph: has output 'q', which nothing makes: no input, initializer or node has this "
        "name");
}

// Long chains, deep graphs, many outputs: in time that grows with the model.
TEST(OnnxIndex, LargeGraphs) {
    const int many = 100000;
    Bytes graph;
    for (int i = 0; i < many; i++)
        graph.Put(
            1, Node("Relu", {i ? "v" + std::to_string(i) : "x"}, {i + 1 < many ? "v" + std::to_string(i + 1) : "y"}));
    graph.Text(2, "main").Put(11, Info("x", 1, {})).Put(12, Info("y", 1, {}));
    Reading r(Model(graph).text);
    ASSERT_EQ(r.status, AMP_OK) << r.Message();
    ASSERT_EQ(r.Index(), AMP_OK) << r.Message();
    EXPECT_EQ(r.index.value_count, many + 1);
    EXPECT_LT(r.arena.used, 1100u * many);
    Bytes inner = Bytes().Put(1, Node("Relu", {"x"}, {"y"})).Put(12, Info("y", 1, {}));
    for (int i = 0; i < 31; i++)
        inner = Bytes().Put(1, Node("If", {"x"}, {"y"}).Put(5, GraphAttribute("g", inner))).Put(12, Info("y", 1, {}));
    Reading deep(Model(inner.Put(11, Info("x", 1, {}))).text);
    ASSERT_EQ(deep.status, AMP_OK) << deep.Message();
    ASSERT_EQ(deep.Index(), AMP_OK) << deep.Message();
    EXPECT_EQ(deep.index.graphs[31].depth, 31);
}

} // namespace
