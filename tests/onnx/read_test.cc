// read_test.cc: what is read of a model, and what is refused.
#include <gtest/gtest.h>
#include <unistd.h>

#include <functional>

#include "tests/onnx/onnx_bytes.h"

using namespace onnx_test;

namespace {

std::string MessageOf(const Bytes &model) {
    Reading r(model.text);
    EXPECT_EQ(r.status, r.err.message[0] ? AMP_BAD_FILE : AMP_OK);
    return r.Message();
}

Bytes With(const Bytes &node) { return Model(Graph({node})); }
Bytes WithTensor(const Bytes &tensor) { return Model(Graph({Node("Relu", {"x"}, {"y"})}, {"x"}, {"y"}, {tensor})); }

void ExpectRefused(const Bytes &model, const std::string &text) {
    const std::string message = MessageOf(model);
    EXPECT_NE(message.find(text), std::string::npos) << message << "\nlacks: " << text;
    EXPECT_EQ(message.rfind("m.onnx: ", 0), 0u) << message;
}

TEST(OnnxRead, Everything) {
    Reading r(Everything().text);
    ASSERT_EQ(r.status, AMP_OK) << r.Message();
    const OnnxModel &m = r.model;
    EXPECT_EQ(m.ir_version, 10);
    EXPECT_STREQ(m.producer_name, "maker");
    EXPECT_EQ(onnx_opset(&m.opsets, ""), 17);
    EXPECT_EQ(onnx_opset(&m.opsets, "ai.onnx"), 17);
    EXPECT_EQ(onnx_opset(&m.opsets, "local"), 1);
    EXPECT_EQ(onnx_opset(&m.opsets, "other"), 0);
    EXPECT_TRUE(onnx_rest_has(m.rest, 20));
    EXPECT_TRUE(onnx_rest_has(m.rest, 1002));
    EXPECT_FALSE(onnx_rest_has(m.rest, 21));
    ASSERT_EQ(m.graph->nodes.len, 2);
    const OnnxNode &node = m.graph->nodes.data[0];
    EXPECT_STREQ(node.name, "every");
    EXPECT_STREQ(node.domain, "my.domain");
    ASSERT_EQ(node.inputs.len, 3);
    EXPECT_STREQ(node.inputs.data[1], "");
    EXPECT_EQ(onnx_attribute_int(&node, "i", 7), -1);
    EXPECT_EQ(onnx_attribute_int(&node, "absent", 7), 7);
    EXPECT_EQ(onnx_attribute_int(&node, "ref", 7), 7);
    EXPECT_EQ(onnx_attribute_float(&node, "f", 7), 0.5f);
    const OnnxAttribute *ints = onnx_attribute(&node, "ints");
    ASSERT_EQ(ints->ints.len, 2);
    EXPECT_EQ(ints->ints.data[1], -2);
    EXPECT_EQ(onnx_attribute(&node, "s")->s.size, 3u);
    EXPECT_STREQ(onnx_attribute(&node, "graphs")->graphs.data[1].nodes.data[0].name, "in");
    EXPECT_STREQ(onnx_attribute(&node, "sparses")->sparse_tensors.data[1].values->name, "t");
    const OnnxValueInfos &inputs = m.graph->inputs;
    ASSERT_EQ(inputs.len, 7);
    const OnnxShape &shape = *inputs.data[0].type->tensor->shape;
    EXPECT_STREQ(shape.dims.data[0].name, "N");
    EXPECT_EQ(shape.dims.data[1].value, 2);
    EXPECT_EQ(shape.dims.data[2].kind, ONNX_DIM_UNKNOWN);
    EXPECT_EQ(shape.dims.data[3].kind, ONNX_DIM_VALUE);
    EXPECT_EQ(inputs.data[1].type->kind, ONNX_TYPE_SEQUENCE);
    EXPECT_EQ(inputs.data[2].type->element->key_type, ONNX_INT64);
    EXPECT_EQ(inputs.data[5].type->element->type->kind, ONNX_TYPE_SEQUENCE);
    EXPECT_EQ(inputs.data[6].type->tensor->shape, nullptr);
    EXPECT_STREQ(m.functions.data[0].attributes.data[0], "needed");
    EXPECT_STREQ(m.graph->sparse_initializers.data[0].values->name, "sp");
}

TEST(OnnxRead, ElementsOfEveryField) {
    Reading r(Everything().text);
    const OnnxTensors &t = r.model.graph->initializers;
    int64_t ints[3];
    double doubles[4];
    ASSERT_EQ(onnx_data_doubles(&r.model, &t.data[0], doubles, 4, &r.err), AMP_OK) << r.Message();
    EXPECT_EQ(doubles[3], 4);
    ASSERT_EQ(onnx_data_doubles(&r.model, &t.data[1], doubles, 4, &r.err), AMP_OK) << r.Message();
    EXPECT_EQ(doubles[1], 2);
    ASSERT_EQ(onnx_data_ints(&r.model, &t.data[2], ints, 3, &r.err), AMP_OK) << r.Message();
    EXPECT_EQ(ints[1], 127);
    EXPECT_EQ(ints[2], -128);
    ASSERT_EQ(onnx_data_ints(&r.model, &t.data[4], ints, 3, &r.err), AMP_OK) << r.Message();
    EXPECT_EQ(ints[0], -5);
    ASSERT_EQ(onnx_data_ints(&r.model, &t.data[6], ints, 3, &r.err), AMP_OK) << r.Message();
    EXPECT_EQ(ints[0], -1); // 2^64 - 1
    EXPECT_EQ(onnx_data_ints(&r.model, &t.data[2], ints, 2, &r.err), AMP_INVALID_ARGUMENT);
    EXPECT_EQ(r.Message(), "m.onnx: tensor 'int32' has 3 elements; at most 2 are read here");
    EXPECT_EQ(onnx_data_ints(&r.model, &t.data[0], ints, 2, &r.err), AMP_INVALID_ARGUMENT);
    EXPECT_EQ(r.Message(), "m.onnx: tensor 'w' is of type float32, and not of an integer type");
}

TEST(OnnxRead, SmallElements) {
    int64_t ints[5];
    Reading r(WithTensor(Tensor("w", {5}, "\x21\x8f\x07", ONNX_INT4)).text);
    ASSERT_EQ(r.status, AMP_OK) << r.Message();
    ASSERT_EQ(onnx_data_ints(&r.model, &r.model.graph->initializers.data[0], ints, 5, &r.err), AMP_OK);
    EXPECT_EQ(std::vector<int64_t>(ints, ints + 5), (std::vector<int64_t>{1, 2, -1, -8, 7}));
    Reading u(WithTensor(Tensor("w", {5}, "\xe4\x03", ONNX_UINT2)).text);
    ASSERT_EQ(onnx_data_ints(&u.model, &u.model.graph->initializers.data[0], ints, 5, &u.err), AMP_OK);
    EXPECT_EQ(std::vector<int64_t>(ints, ints + 5), (std::vector<int64_t>{0, 1, 2, 3, 3}));
}

// What protobuf says of readers: packed or not, in pieces, the last of a field counts, inner messages are merged.
TEST(OnnxRead, EveryEncodingOfAList) {
    const Bytes packed = Bytes().Text(1, "a").Text(8, Bytes().Varint(3).Varint(-4).text).Int(8, 5).Int(20, 7);
    Reading r(With(Node("Relu", {"x"}, {"y"}).Put(5, packed)).text);
    ASSERT_EQ(r.status, AMP_OK) << r.Message();
    const OnnxAttribute *a = onnx_attribute(&r.model.graph->nodes.data[0], "a");
    EXPECT_EQ(std::vector<int64_t>(a->ints.data, a->ints.data + a->ints.len), (std::vector<int64_t>{3, -4, 5}));
    const Bytes pieces = Bytes().Int(1, 3).Int(2, 1).Float(4, 1).Text(4, Floats({2, 3})).Text(8, "w");
    Reading f(WithTensor(pieces).text);
    double values[3];
    ASSERT_EQ(f.status, AMP_OK) << f.Message();
    ASSERT_EQ(onnx_data_doubles(&f.model, &f.model.graph->initializers.data[0], values, 3, &f.err), AMP_OK);
    EXPECT_EQ(std::vector<double>(values, values + 3), (std::vector<double>{1, 2, 3}));
}

TEST(OnnxRead, TheLastOfAFieldCounts) {
    Reading r(Model(Graph({Node("Relu", {"x"}, {"y"}, "first").Text(3, "second")})).Int(1, 9).text);
    ASSERT_EQ(r.status, AMP_OK) << r.Message();
    EXPECT_STREQ(r.model.graph->nodes.data[0].name, "second");
    EXPECT_EQ(r.model.ir_version, 9);
    // A second graph goes on with the first.
    Reading two(Model(Graph({Node("Relu", {"x"}, {"y"})})).Put(7, Bytes().Put(1, Node("Abs", {"x"}, {"z"}))).text);
    ASSERT_EQ(two.status, AMP_OK) << two.Message();
    ASSERT_EQ(two.model.graph->nodes.len, 2);
    EXPECT_STREQ(two.model.graph->nodes.data[1].op_type, "Abs");
    EXPECT_STREQ(two.model.graph->name, "main");
    // Of a choice too.
    const Bytes info = Bytes().Text(1, "x").Put(2, Bytes().Put(1, Bytes().Int(1, 1)).Put(4, Bytes()));
    Reading type(Model(Graph({Node("Relu", {"x"}, {"y"})}, {}).Put(11, info)).text);
    ASSERT_EQ(type.status, AMP_OK) << type.Message();
    EXPECT_EQ(type.model.graph->inputs.data[0].type->kind, ONNX_TYPE_SEQUENCE);
    EXPECT_EQ(type.model.graph->inputs.data[0].type->element->type, nullptr);
}

TEST(OnnxRead, WireFormatThatIsWrong) {
    const auto node = [](const Bytes &more) {
        Bytes b = With(Node("Relu", {"x"}, {"y"}, "n").Raw(more.text));
        return b;
    };
    ExpectRefused(node(Bytes().Int(0, 1)), "model.graph.node[0] 'n': a field has number 0; they are from 1 on");
    ExpectRefused(node(Bytes().Varint(1ull << 35)), "a field has number 4294967296");
    ExpectRefused(node(Bytes().Tag(11, 3)), "field 11 is a group");
    ExpectRefused(node(Bytes().Tag(11, 4)), "field 11 is a group");
    ExpectRefused(node(Bytes().Tag(11, 6)), "field 11 is of an unknown wire type");
    ExpectRefused(node(Bytes().Int(3, 1)), "name has wire type 0, not 2");
    ExpectRefused(node(Bytes().Tag(11, 0).Raw(std::string(10, '\xff'))), "field 11: a number has no end");
    ExpectRefused(node(Bytes().Tag(11, 0).Raw(std::string(9, '\xff') + "\x02")), "field 11: a number has no end");
    ExpectRefused(node(Bytes().Tag(11, 2).Varint(5).Raw("1234")), "field 11 has 5 bytes, and 4 are there");
    ExpectRefused(node(Bytes().Tag(11, 2).Varint(~0ull)), "field 11 has 18446744073709551615 bytes");
    ExpectRefused(node(Bytes().Tag(11, 1).Raw("1234567")), "field 11 has 8 bytes, and 7 are there");
    ExpectRefused(node(Bytes().Raw("\xff")), "a field's number has no end");
    ExpectRefused(node(Bytes().Text(1, std::string("a\0b", 3))), "input has a byte 0, which no name has");
    ExpectRefused(node(Bytes().Put(5, Bytes().Text(7, "12345"))), "floats has 5 bytes, no multiple of 4");
    ExpectRefused(node(Bytes().Put(5, Bytes().Text(8, "\xff"))), "packed numbers end in the middle of one");
    ExpectRefused(node(Bytes().Put(5, Bytes().Text(8, std::string(10, '\xff') + "\x01"))), "more than 64 bits");
    ExpectRefused(Model(Graph({})).Raw("\x08"), "model: field 1: a number has no end; the file is cut off here");
    // A number with zeros that it does not need, as writers put that keep its place.
    EXPECT_EQ(MessageOf(node(Bytes().Tag(11, 0).Raw(std::string("\x81\x80\x00", 3)))), "");
}

TEST(OnnxRead, MessagesSayWhere) {
    EXPECT_EQ(MessageOf(With(Node("Relu", {"x"}, {"y"}, "conv1").Put(5, IntAttribute("pads", 1).Int(2, 3)))),
              "m.onnx: byte 38: model.graph.node[0] 'conv1'.attribute[0] 'pads': f has wire type 0, not 5; the file is "
              "damaged");
    EXPECT_EQ(MessageOf(WithTensor(Tensor("w", {2}, "123"))),
              "m.onnx: byte 26: model.graph.initializer[0] 'w': it has 3 bytes of elements, and by its sizes and type "
              "float32 8");
}

TEST(OnnxRead, DepthIsLimited) {
    Bytes type = Bytes().Put(1, Bytes().Int(1, 1));
    for (int i = 0; i < 45; i++) type = Bytes().Put(4, Bytes().Put(1, type));
    EXPECT_EQ(MessageOf(Model(Graph({}, {}, {}).Put(13, Bytes().Text(1, "v").Put(2, type)))), "");
    for (int i = 0; i < 4; i++) type = Bytes().Put(4, Bytes().Put(1, type));
    ExpectRefused(Model(Graph({}, {}, {}).Put(13, Bytes().Text(1, "v").Put(2, type))), "nested more than 100 deep");
}

TEST(OnnxRead, WhatIsNoModel) {
    ExpectRefused(Bytes(), "has no graph; it is no ONNX model, or is empty");
    ExpectRefused(Bytes().Int(1, 8), "has no graph");
    ExpectRefused(Bytes().Put(7, Graph({})), "ir_version is 0");
    ExpectRefused(Bytes().Raw("PK\x03\x04"), "m.onnx: byte 2: model: a field has number 0");
}

TEST(OnnxRead, TensorsThatAreWrong) {
    const std::string w = "model.graph.initializer[0] 'w': ";
    ExpectRefused(WithTensor(Tensor("w", {-1}, "1234")), w + "size 0 is -1; a tensor's sizes are from 0 on");
    ExpectRefused(WithTensor(Tensor("w", {1ll << 40, 1ll << 40}, "")), w + "its sizes multiply to more than 2^63");
    ExpectRefused(WithTensor(Tensor("w", {1ll << 40, 0, 1ll << 40}, "")), w + "its sizes multiply to more than 2^63");
    ExpectRefused(WithTensor(Tensor("w", {1ll << 62}, "")), w + "its sizes multiply to more than 2^63");
    EXPECT_EQ(MessageOf(WithTensor(Tensor("w", {1ll << 62, 0}, ""))), "");
    ExpectRefused(WithTensor(Tensor("w", {2}, "12345678", ONNX_UNDEFINED)), w + "it has elements, and no type of them");
    EXPECT_EQ(MessageOf(WithTensor(Tensor("w", {2}, "12345", 77))), ""); // of a later version
    ExpectRefused(WithTensor(Tensor("w", {2}, "12345", -1)), w + "data_type is -1");
    ExpectRefused(WithTensor(Tensor("w", {2}, "12345", ONNX_STRING)),
                  w + "it is of strings, and has elements that are");
    ExpectRefused(WithTensor(Bytes().Int(1, 2).Int(2, 8).Text(6, "a").Text(8, "w")),
                  w + "it has 1 strings, and by its");
    ExpectRefused(WithTensor(Bytes().Int(1, 1).Int(2, 1).Text(6, "a").Text(8, "w")), w + "it has strings, and type");
    ExpectRefused(WithTensor(Bytes().Int(1, 1).Int(2, 1).Text(7, "a").Text(8, "w")), w + "int64_data cannot have");
    ExpectRefused(WithTensor(Bytes().Int(1, 2).Int(2, 7).Text(7, "a").Text(8, "w")),
                  w + "int64_data has 1 numbers, and");
    ExpectRefused(WithTensor(Tensor("w", {1}, "1234").Text(10, "12345678")), w + "double_data is a second field");
    ExpectRefused(WithTensor(Bytes().Int(1, 2).Int(2, 1).Int(14, 2)), "data_location is 2; it is 0 or 1");
    ExpectRefused(WithTensor(Bytes().Int(2, 1ll << 32)), "data_type is 4294967296, which has more than 32 bits");
}

TEST(OnnxRead, AttributesThatAreWrong) {
    const auto refused = [](const Bytes &attribute, const std::string &text) {
        ExpectRefused(With(Node("Relu", {"x"}, {"y"}).Put(5, attribute)), text);
    };
    refused(IntAttribute("a", 1).Float(2, 1), "'a': it has values in i and in f; an attribute has one");
    refused(Bytes().Text(1, "a").Text(7, Floats({1, 2, 3})).Int(8, 1).Int(20, 7),
            "it has values in floats and in ints");
    refused(Bytes().Text(1, "a").Int(8, 1).Text(7, Floats({1, 2, 3})).Int(20, 7),
            "it has values in ints and in floats");
    refused(Bytes().Text(1, "a").Int(3, 1).Int(20, 1), "'a': it is of type 1, and has its value in i");
    refused(Bytes().Text(1, "a").Int(3, 1).Int(20, 99), "'a': it is of type 99, and has its value in i");
    refused(Bytes().Text(1, "a").Int(20, 5), "'a': it has no value: g is not there");
    // One of IR version 1 has no type; one of a later version, what we do not know.
    Reading r(With(Node("Relu", {"x"}, {"y"}).Put(5, Bytes().Text(1, "a").Int(3, 4)).Put(5, Bytes().Int(20, 99))).text);
    ASSERT_EQ(r.status, AMP_OK) << r.Message();
    EXPECT_EQ(onnx_attribute_int(&r.model.graph->nodes.data[0], "a", 0), 4);
}

TEST(OnnxRead, WhatIsThereTwice) {
    const Bytes a = IntAttribute("a", 1), b = IntAttribute("b", 1);
    const std::string twice = "two attributes have the name 'a'; a name has one value";
    ExpectRefused(With(Node("Relu", {"x"}, {"y"}, "n").Put(5, a).Put(5, b).Put(5, a)),
                  "model.graph.node[0] 'n': " + twice);
    const Bytes good = Model(Graph({Node("Relu", {"x"}, {"y"}).Put(5, a).Put(5, b)})), f = Bytes().Text(1, "f");
    EXPECT_EQ(Reading(good.text).status, AMP_OK);
    ExpectRefused(Bytes(good).Put(25, Bytes(f).Put(11, a).Put(11, a)), "model.functions[0] 'f': " + twice);
    // Versions of a domain, which has two names; the same version again says nothing else.
    const auto imports = [](const char *domain, int64_t version) { return Bytes().Text(1, domain).Int(2, version); };
    EXPECT_EQ(Reading(Bytes(good).Put(8, imports("ai.onnx", 17)).text).status, AMP_OK);
    ExpectRefused(Bytes(good).Put(8, imports("m", 1)).Put(8, imports("ai.onnx", 18)),
                  "domain 'ai.onnx' is imported in versions 17 and 18; state the one that its nodes are of");
    ExpectRefused(Bytes(good).Put(25, Bytes(f).Put(9, imports("m", 2)).Put(9, imports("m", 1))),
                  "model.functions[0] 'f': domain 'm' is imported in versions 2 and 1");
}

TEST(OnnxRead, SizesThatAreWrong) {
    ExpectRefused(Model(Graph({}, {}, {}).Put(11, Info("x", 1, {"-1"}))),
                  "model.graph.input[0] 'x'.type.tensor_type.shape.dim[0]: a size is -1; sizes are from 0 on, and one "
                  "that is not known has a name or nothing");
}

// A file is read by a window; what is larger than it, and what crosses its end, too.
TEST(OnnxRead, FilesAreReadAsMemoryIs) {
    Folder folder;
    std::vector<Bytes> nodes;
    for (int i = 0; i < 3000; i++)
        nodes.push_back(Node("Relu", {i ? "v" + std::to_string(i) : "x"}, {"v" + std::to_string(i + 1)},
                             std::string(100 + i % 97, 'n')));
    nodes.push_back(Node("Relu", {"v3000"}, {"y"}, std::string(600000, 'l')));
    std::string raw(400000, '\0');
    for (size_t i = 0; i < raw.size(); i++) raw[i] = (char)(i / 4 % 4 == 3 ? 0x3f : i);
    Bytes ints = Bytes().Int(1, 200000).Int(2, ONNX_INT64), packed;
    for (int i = 0; i < 200000; i++) packed.Varint((uint64_t)i * 12345);
    ints.Text(7, packed.text).Text(8, "ints");
    const std::string bytes = Model(Graph(nodes, {"x"}, {"y"}, {Tensor("w", {100000}, raw), ints})).text;
    Put(folder / "m.onnx", bytes);
    auto file = Reading::File(folder / "m.onnx");
    ASSERT_EQ(file.status, AMP_OK) << file.Message();
    ASSERT_EQ(file.model.graph->nodes.len, 3001);
    EXPECT_EQ(strlen(file.model.graph->nodes.data[3000].name), 600000u);
    ASSERT_EQ(file.Index(), AMP_OK) << file.Message();
    std::vector<int64_t> values(200000);
    const OnnxTensors &t = file.model.graph->initializers;
    EXPECT_EQ(t.data[0].data.memory, nullptr);
    ASSERT_EQ(onnx_data_ints(&file.model, &t.data[1], values.data(), values.size(), &file.err), AMP_OK)
        << file.Message();
    for (int i = 0; i < 200000; i++) ASSERT_EQ(values[i], (int64_t)i * 12345);
    ASSERT_EQ(file.Write(folder / "same.onnx"), AMP_OK) << file.Message();
    EXPECT_TRUE(Get(folder / "same.onnx") == bytes);
}

TEST(OnnxRead, FilesThatAreNotThere) {
    auto r = Reading::File("/nowhere/m.onnx");
    EXPECT_EQ(r.status, AMP_NOT_FOUND);
    EXPECT_EQ(r.Message(), "/nowhere/m.onnx: cannot open: No such file or directory");
    EXPECT_EQ(Reading::File("/dev/null").status, AMP_IO);
    Folder folder;
    Put(folder / "m.onnx", Everything().text);
    ASSERT_EQ(truncate((folder / "m.onnx").c_str(), 1ll << 31), 0);
    auto large = Reading::File(folder / "m.onnx");
    EXPECT_EQ(large.status, AMP_BAD_FILE);
    EXPECT_EQ(large.Message(), (folder / "m.onnx") +
                                   ": has 2147483648 bytes; a model has at most 2147483647, and larger "
                                   "tensors in external data");
}

} // namespace
