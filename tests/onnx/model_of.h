// model_of.h: small models for tests of what is computed of a model in memory.
//
//     ModelOf m(17);
//     m.graph().input("x", ONNX_FLOAT, "N,3").node("Relu", "x", "y").output("y");
//     EXPECT_EQ(m.solve(), "");
#ifndef AMP_TESTS_ONNX_MODEL_OF_H
#define AMP_TESTS_ONNX_MODEL_OF_H

#include <cstring>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "onnx/types.h"

inline std::vector<std::string> words_of(const std::string &text, char separator) {
    std::vector<std::string> words;
    std::istringstream in(text);
    for (std::string word; std::getline(in, word, separator);) words.push_back(word);
    return words;
}

class GraphOf {
  public:
    GraphOf(Arena *arena, const char *name) : GraphOf(arena, name, arena_new(arena, OnnxGraph)) {}
    GraphOf(Arena *arena, const char *name, OnnxGraph *graph) : arena(arena), g(graph) { g->name = name; }

    // A shape is "2,N,?"; "" is a scalar's, and nullptr says that nothing is known.
    GraphOf &input(const char *name, int dtype, const char *shape = nullptr) {
        return add(&g->inputs, name, dtype, shape);
    }
    GraphOf &output(const char *name, int dtype = 0, const char *shape = nullptr) {
        return add(&g->outputs, name, dtype, shape);
    }
    GraphOf &info(const char *name, int dtype, const char *shape = nullptr) {
        return add(&g->value_infos, name, dtype, shape);
    }
    GraphOf &typed_input(const char *name, OnnxType *type) {
        input(name, 0);
        g->inputs.data[g->inputs.len - 1].type = type;
        return *this;
    }
    GraphOf &weight(const char *name, int dtype, std::vector<int64_t> dims) {
        vec_push(arena, &g->initializers, zeros(name, dtype, dims));
        return *this;
    }
    GraphOf &ints(const char *name, std::vector<int64_t> values, bool scalar = false) {
        OnnxTensor t = tensor(name, values, scalar);
        vec_push(arena, &g->initializers, t);
        return *this;
    }
    // Names are separated by spaces; "-" is one that is left out.
    GraphOf &node(const char *op, const std::string &inputs, const std::string &outputs, const char *domain = "") {
        OnnxNode n = onnx_node(arena, op, "");
        n.domain = domain;
        for (const std::string &word : words_of(inputs, ' ')) vec_push(arena, &n.inputs, name_of(word));
        for (const std::string &word : words_of(outputs, ' ')) vec_push(arena, &n.outputs, name_of(word));
        n.name = n.outputs.len ? n.outputs.data[0] : "";
        vec_push(arena, &g->nodes, n);
        return *this;
    }
    // Attributes of the last node.
    GraphOf &with(const char *name, int64_t value) { return attribute(onnx_attribute_of_int(name, value)); }
    GraphOf &with(const char *name, int value) { return with(name, static_cast<int64_t>(value)); }
    GraphOf &with(const char *name, std::vector<int64_t> values) {
        OnnxAttribute a = named(name, ONNX_ATTR_INTS);
        for (int64_t v : values) vec_push(arena, &a.ints, v);
        return attribute(a);
    }
    GraphOf &with(const char *name, const char *text) {
        OnnxAttribute a = named(name, ONNX_ATTR_STRING);
        a.s = {reinterpret_cast<const uint8_t *>(arena_strdup(arena, text)), strlen(text)};
        return attribute(a);
    }
    GraphOf &with_strings(const char *name, int count) {
        OnnxAttribute a = named(name, ONNX_ATTR_STRINGS);
        for (int i = 0; i < count; i++) vec_push(arena, &a.strings, OnnxBytes{});
        return attribute(a);
    }
    GraphOf &with(const char *name, GraphOf &graph) {
        OnnxAttribute a = named(name, ONNX_ATTR_GRAPH);
        a.g = graph.g;
        return attribute(a);
    }
    GraphOf &with_tensor(const char *name, int dtype, std::vector<int64_t> dims) {
        OnnxAttribute a = named(name, ONNX_ATTR_TENSOR);
        a.t = arena_new(arena, OnnxTensor);
        *a.t = zeros("", dtype, dims);
        return attribute(a);
    }
    GraphOf &with_ints(const char *name, std::vector<int64_t> values, bool scalar = false) {
        OnnxAttribute a = named(name, ONNX_ATTR_TENSOR);
        a.t = arena_new(arena, OnnxTensor);
        *a.t = tensor("", values, scalar);
        return attribute(a);
    }
    GraphOf &refers(const char *name, const char *to, int type = ONNX_ATTR_INT) {
        OnnxAttribute a = named(name, type);
        a.ref_name = to;
        return attribute(a);
    }

    Arena *arena;
    OnnxGraph *g;

  private:
    const char *name_of(const std::string &word) { return word == "-" ? "" : arena_strdup(arena, word.c_str()); }
    static OnnxAttribute named(const char *name, int type) {
        OnnxAttribute a = {};
        a.name = name;
        a.ref_name = "";
        a.type = type;
        return a;
    }
    GraphOf &attribute(const OnnxAttribute &a) {
        vec_push(arena, &g->nodes.data[g->nodes.len - 1].attributes, a);
        return *this;
    }
    OnnxTensor zeros(const char *name, int dtype, const std::vector<int64_t> &dims) {
        size_t count = 1;
        for (int64_t dim : dims) count *= static_cast<size_t>(dim);
        const size_t bytes = count < 4096 ? count * 16 : 0; // large ones are never read
        return onnx_tensor_of(arena, name, dtype, dims.data(), static_cast<int>(dims.size()),
                              arena_alloc(arena, bytes + 1));
    }
    OnnxTensor tensor(const char *name, const std::vector<int64_t> &values, bool scalar) {
        auto *copy = arena_array(arena, int64_t, values.size() + 1);
        for (size_t i = 0; i < values.size(); i++) copy[i] = values[i];
        auto count = static_cast<int64_t>(values.size());
        return onnx_tensor_of(arena, name, ONNX_INT64, &count, scalar ? 0 : 1, copy);
    }
    OnnxShape *shape_of(const char *text) {
        if (!text) return nullptr;
        auto *shape = arena_new(arena, OnnxShape);
        for (const std::string &word : words_of(text, ',')) {
            OnnxDim d = {};
            if (isdigit(static_cast<unsigned char>(word[0]))) {
                d.kind = ONNX_DIM_VALUE;
                d.value = std::stoll(word);
            } else if (word != "?") {
                d.kind = ONNX_DIM_NAME;
                d.name = arena_strdup(arena, word.c_str());
            }
            vec_push(arena, &shape->dims, d);
        }
        return shape;
    }
    GraphOf &add(OnnxValueInfos *infos, const char *name, int dtype, const char *shape) {
        OnnxValueInfo info = {};
        info.name = name;
        if (dtype) info.type = onnx_tensor_type(arena, dtype, shape_of(shape));
        vec_push(arena, infos, info);
        return *this;
    }
};

class ModelOf {
  public:
    explicit ModelOf(int64_t opset) {
        arena_init(&arena, nullptr);
        model.path = "m.onnx";
        main = std::make_unique<GraphOf>(&arena, "main");
        model.graph = main->g;
        imports("", opset);
    }
    ModelOf(const ModelOf &) = delete;
    ModelOf &operator=(const ModelOf &) = delete;
    ~ModelOf() { arena_free(&arena); }

    GraphOf &graph() { return *main; }
    GraphOf &inner(const char *name) {
        graphs.push_back(std::make_unique<GraphOf>(&arena, name));
        return *graphs.back();
    }
    void imports(const char *domain, int64_t version) {
        OnnxOpset opset = {};
        opset.domain = domain;
        opset.version = version;
        vec_push(&arena, &model.opsets, opset);
    }
    // A local function of domain "local" with the nodes of |body|.
    void function(const char *name, const char *inputs, const char *outputs, GraphOf &body) {
        OnnxFunction f = {};
        f.name = name;
        f.domain = "local";
        f.overload = "";
        for (const std::string &w : words_of(inputs, ' ')) vec_push(&arena, &f.inputs, arena_strdup(&arena, w.c_str()));
        for (const std::string &w : words_of(outputs, ' '))
            vec_push(&arena, &f.outputs, arena_strdup(&arena, w.c_str()));
        f.nodes = body.g->nodes;
        f.opsets = model.opsets;
        vec_push(&arena, &model.functions, f);
    }
    void assume(const char *name, int dtype) { assumed.push_back({name, dtype}); }

    // The message of what is wrong, or "".
    std::string solve() {
        amp_error err = {};
        OnnxTypeOptions options = {assumed.data(), static_cast<int>(assumed.size()), 10};
        if (onnx_index(&model, &arena, &index, &err) != AMP_OK) return err.message;
        return onnx_solve_types(&model, &index, &options, &arena, &s, &err) == AMP_OK ? "" : err.message;
    }

    // ---- of a solution ---------------------------------------------------------------------------------------------
    int32_t value(const char *name, int32_t graph = 0) { return onnx_find(&index, graph, name); }
    std::string text(const char *name, int32_t graph = 0) { return onnx_value_text(&s, &arena, value(name, graph)); }
    // Groups of operands: of a node by the name of its first output.
    int32_t node(const char *first_output, int32_t graph = 0) {
        return index.values[value(first_output, graph)].producer;
    }
    int32_t in(const char *first_output, int i, int32_t graph = 0) {
        return s.operand_groups[index.nodes[node(first_output, graph)].first_input + i];
    }
    int32_t out(const char *first_output, int i = 0, int32_t graph = 0) {
        return s.operand_groups[index.nodes[node(first_output, graph)].first_output + i];
    }
    int32_t result(int i, int32_t graph = 0) { return s.operand_groups[index.graphs[graph].first_output + i]; }
    int32_t definition(const char *name, int32_t graph = 0) { return s.value_groups[value(name, graph)]; }
    std::string allowed(int32_t group) {
        std::string text;
        for (int dtype = 1; dtype < ONNX_DTYPES; dtype++)
            if (s.groups[group].allowed >> dtype & 1)
                text += (text.empty() ? "" : " ") + std::string(onnx_dtype_name(dtype));
        return text;
    }

    Arena arena;
    OnnxModel model = {};
    OnnxIndex index = {};
    OnnxSolution s = {};

  private:
    std::unique_ptr<GraphOf> main;
    std::vector<std::unique_ptr<GraphOf>> graphs;
    std::vector<OnnxAssumption> assumed;
};

#endif
