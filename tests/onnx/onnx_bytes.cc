// onnx_bytes.cc: see onnx_bytes.h.
#include "tests/onnx/onnx_bytes.h"

#include <csetjmp>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>

namespace onnx_test {

Bytes &Bytes::Varint(uint64_t value) {
    for (; value > 0x7F; value >>= 7) text += (char)(value | 0x80);
    text += (char)value;
    return *this;
}

Bytes &Bytes::Float(unsigned field, float value) {
    Tag(field, 5);
    return Raw(Floats({value}));
}

Bytes &Bytes::Text(unsigned field, const std::string &bytes) {
    Tag(field, 2).Varint(bytes.size());
    return Raw(bytes);
}

std::string Floats(const std::vector<float> &values) {
    return std::string((const char *)values.data(), values.size() * sizeof(float));
}

Bytes Prop(const std::string &key, const std::string &value) { return Bytes().Text(1, key).Text(2, value); }

Bytes Node(const std::string &op, const std::vector<std::string> &inputs, const std::vector<std::string> &outputs,
           const std::string &name) {
    Bytes b;
    for (const auto &input : inputs) b.Text(1, input);
    for (const auto &output : outputs) b.Text(2, output);
    if (!name.empty()) b.Text(3, name);
    return b.Text(4, op);
}

Bytes IntAttribute(const std::string &name, int64_t value) { return Bytes().Text(1, name).Int(3, value).Int(20, 2); }

Bytes GraphAttribute(const std::string &name, const Bytes &graph) {
    return Bytes().Text(1, name).Put(6, graph).Int(20, 5);
}

Bytes Tensor(const std::string &name, const std::vector<int64_t> &dims, const std::string &raw, int type) {
    Bytes b;
    for (int64_t dim : dims) b.Int(1, dim);
    return b.Int(2, type).Text(8, name).Text(9, raw);
}

Bytes External(const std::string &name, const std::vector<int64_t> &dims, const std::vector<Bytes> &props) {
    Bytes b;
    for (int64_t dim : dims) b.Int(1, dim);
    b.Int(2, ONNX_FLOAT).Text(8, name);
    for (const auto &prop : props) b.Put(13, prop);
    return b.Int(14, 1);
}

Bytes Info(const std::string &name, int type, const std::vector<std::string> &dims) {
    Bytes shape;
    for (const auto &dim : dims) {
        Bytes d;
        if (!dim.empty() && (isdigit(dim[0]) || dim[0] == '-')) d.Int(1, atoll(dim.c_str()));
        else if (!dim.empty()) d.Text(2, dim);
        shape.Put(1, d);
    }
    return Bytes().Text(1, name).Put(2, Bytes().Put(1, Bytes().Int(1, type).Put(2, shape)));
}

Bytes Model(const Bytes &graph, int64_t opset) {
    return Bytes().Int(1, 8).Put(7, graph).Put(8, Bytes().Text(1, "").Int(2, opset));
}

Bytes Graph(const std::vector<Bytes> &nodes, const std::vector<std::string> &inputs,
            const std::vector<std::string> &outputs, const std::vector<Bytes> &initializers) {
    Bytes b;
    for (const auto &node : nodes) b.Put(1, node);
    b.Text(2, "main");
    for (const auto &tensor : initializers) b.Put(5, tensor);
    for (const auto &input : inputs) b.Put(11, Info(input, ONNX_FLOAT, {"N", "2"}));
    for (const auto &output : outputs) b.Put(12, Info(output, ONNX_FLOAT, {"N", "2"}));
    return b;
}

// ---- a model with everything ----------------------------------------------------------------------------------------

static Bytes EveryAttribute() {
    const Bytes tensor = Tensor("t", {1}, Floats({3})), inner = Graph({Node("Relu", {"x"}, {"i"}, "in")}, {}, {"i"});
    const Bytes type = Bytes().Put(1, Bytes().Int(1, 1));
    const Bytes sparse =
        Bytes().Put(1, tensor).Put(2, Tensor("at", {1, 1}, std::string(8, '\0'), ONNX_INT64)).Int(3, 9);
    Bytes node = Node("Every", {"x", "", "w"}, {"e", ""}, "every");
    node.Put(5, Bytes().Text(1, "f").Float(2, 0.5f).Int(20, 1));
    node.Put(5, Bytes().Text(1, "zero").Float(2, 0).Int(20, 1));
    node.Put(5, IntAttribute("i", -1)).Put(5, IntAttribute("none", 0));
    node.Put(5, Bytes().Text(1, "s").Text(4, std::string("a\0b", 3)).Int(20, 3));
    node.Put(5, Bytes().Text(1, "t").Put(5, tensor).Int(20, 4));
    node.Put(5, GraphAttribute("g", inner));
    node.Put(5, Bytes().Text(1, "floats").Float(7, 1).Float(7, -2).Text(13, "documented").Int(20, 6));
    node.Put(5, Bytes().Text(1, "ints").Int(8, 1).Int(8, -2).Int(20, 7));
    node.Put(5, Bytes().Text(1, "strings").Text(9, "a").Text(9, "").Int(20, 8));
    node.Put(5, Bytes().Text(1, "tensors").Put(10, tensor).Put(10, tensor).Int(20, 9));
    node.Put(5, Bytes().Text(1, "graphs").Put(11, inner).Put(11, inner).Int(20, 10));
    node.Put(5, Bytes().Text(1, "tp").Put(14, type).Int(20, 13));
    node.Put(5, Bytes().Text(1, "types").Put(15, type).Int(20, 14));
    node.Put(5, Bytes().Text(1, "ref").Int(20, 2).Text(21, "outer"));
    node.Put(5, Bytes().Text(1, "sparse").Int(20, 11).Put(22, sparse));
    node.Put(5, Bytes().Text(1, "sparses").Int(20, 12).Put(23, sparse).Put(23, sparse));
    return node.Text(6, "doc")
        .Text(7, "my.domain")
        .Text(8, "over")
        .Put(9, Prop("k", "v"))
        .Put(10, Bytes().Text(1, "d"));
}

static Bytes EveryType(const std::string &name) {
    const Bytes f32 = Bytes().Put(1, Bytes().Int(1, 1).Put(2, Bytes()));
    if (name == "seq") return Bytes().Put(4, Bytes().Put(1, f32));
    if (name == "map") return Bytes().Put(5, Bytes().Int(1, 7).Put(2, f32));
    if (name == "opaque") return Bytes().Put(7, Bytes().Text(1, "d").Text(2, "n"));
    if (name == "sparse") return Bytes().Put(8, Bytes().Int(1, 1).Put(2, Bytes().Put(1, Bytes().Int(1, 3))));
    if (name == "opt") return Bytes().Text(6, "noted").Put(9, Bytes().Put(1, Bytes().Put(4, Bytes().Put(1, f32))));
    return Bytes().Put(1, Bytes().Int(1, 1)); // no shape
}

static Bytes EveryTensor(const std::string &name, const std::string &field) {
    const Bytes named = Bytes().Text(8, name);
    const std::string one(8, '\0');
    if (field == "float") return Bytes().Int(1, 2).Int(2, 1).Text(4, Floats({1, 2})).Raw(named.text);
    if (field == "int32")
        return Bytes().Int(1, 3).Int(2, 3).Text(5, Bytes().Varint(1).Varint(127).Varint(-128).text).Raw(named.text);
    if (field == "string")
        return Bytes().Int(1, 2).Int(2, 8).Text(6, "a").Text(6, std::string("\0", 1)).Raw(named.text);
    if (field == "int64") return Bytes().Int(1, 1).Int(2, 7).Text(7, Bytes().Varint(-5).text).Raw(named.text);
    if (field == "double") return Bytes().Int(1, 1).Int(2, 11).Raw(named.text).Text(10, one);
    if (field == "uint64") return Bytes().Int(1, 1).Int(2, 13).Raw(named.text).Text(11, Bytes().Varint(~0ull).text);
    if (field == "empty") return Bytes().Int(1, 0).Int(2, 1).Raw(named.text).Text(9, "");
    return Tensor(name, {2, 2}, Floats({1, 2, 3, 4})).Text(12, "doc").Put(16, Prop("a", "b"));
}

Bytes Everything() {
    Bytes graph;
    graph.Put(1, EveryAttribute()).Put(1, Node("Double", {"e"}, {"y"}, "call").Text(7, "local"));
    graph.Text(2, "main");
    for (const char *field : {"raw", "float", "int32", "string", "int64", "double", "uint64", "empty"})
        graph.Put(5, EveryTensor(field == std::string("raw") ? "w" : field, field));
    graph.Text(10, "documentation");
    graph.Put(11, Info("x", ONNX_FLOAT, {"N", "2", "", "0"}));
    for (const char *name : {"seq", "map", "opaque", "sparse", "opt", "plain"})
        graph.Put(11, Bytes().Text(1, name).Put(2, EveryType(name)).Text(3, "doc").Put(4, Prop("m", "")));
    graph.Put(12, Info("y", ONNX_FLOAT, {"N", "2"})).Put(13, Info("e", ONNX_FLOAT, {"N", "2"}));
    graph.Put(14, Bytes().Text(1, "w").Put(2, Prop("SCALE_TENSOR", "s")));
    graph.Put(15, Bytes()
                      .Put(1, Tensor("sp", {1}, Floats({1})))
                      .Put(2, Tensor("", {1}, std::string(8, '\0'), ONNX_INT64))
                      .Int(3, 4));
    graph.Put(16, Prop("graph", "prop"));
    const Bytes function = Bytes()
                               .Text(1, "Double")
                               .Text(4, "a")
                               .Text(5, "b")
                               .Text(6, "needed")
                               .Put(7, Node("Add", {"a", "a"}, {"b"}))
                               .Text(8, "doc")
                               .Put(9, Bytes().Text(1, "").Int(2, 17))
                               .Text(10, "local")
                               .Put(11, IntAttribute("other", 4))
                               .Put(12, Info("b", 1, {}))
                               .Put(14, Prop("f", "p"));
    Bytes model;
    model.Int(1, 10).Text(2, "maker").Text(3, "1").Text(4, "").Int(5, 0).Text(6, "doc").Put(7, graph);
    model.Put(8, Bytes().Text(1, "").Int(2, 17)).Put(8, Bytes().Text(1, "local").Int(2, 1));
    model.Put(14, Prop("author", "one")).Put(20, Bytes().Put(1, Bytes().Text(2, "init"))).Put(25, function);
    return model.Put(26, Bytes().Text(1, "device")).Int(1000, 7).Tag(1001, 1).Raw("12345678").Tag(1002, 5).Raw("1234");
}

// ---- reading --------------------------------------------------------------------------------------------------------

Reading::Reading(const std::string &bytes, const std::string &path) : bytes_(bytes), path_(path) {
    arena_init(&arena, nullptr);
    if (setjmp(arena.out_of_memory)) abort();
    status = onnx_read_memory(bytes_.data(), bytes_.size(), path_.c_str(), &arena, &model, &err);
}

Reading::Reading(const std::string &path, std::nullptr_t) : path_(path) {
    arena_init(&arena, nullptr);
    if (setjmp(arena.out_of_memory)) abort();
    status = onnx_read(path_.c_str(), &arena, &model, &err);
}

Reading::~Reading() {
    onnx_close(&model);
    arena_free(&arena);
}

amp_status Reading::Index() {
    if (setjmp(arena.out_of_memory)) abort();
    return status = onnx_index(&model, &arena, &index, &err);
}

amp_status Reading::Write(const std::string &path, OnnxWriteOptions options) {
    return status = onnx_write(&model, path.c_str(), &options, &err);
}

// ---- files ----------------------------------------------------------------------------------------------------------

Folder::Folder(const std::string &where) : path(where + "onnx_test.XXXXXX") {
    EXPECT_NE(mkdtemp(path.data()), nullptr);
}
Folder::~Folder() { EXPECT_EQ(system(("rm -rf '" + path + "'").c_str()), 0); }

std::string Get(const std::string &path) {
    std::ifstream in(path, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(in), {});
}

void Put(const std::string &path, const std::string &content) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << content;
}

} // namespace onnx_test
