// graph_builder.h: ONNX models as tests write them, in memory: nodes by names, weights of zeros, or of none.
#ifndef AMP_TESTS_ONNX_GRAPH_BUILDER_H
#define AMP_TESTS_ONNX_GRAPH_BUILDER_H

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "onnx/onnx.h"

// Names of dims are symbols, digits are numbers: "N", "3".
using DimNames = std::vector<std::string>;
using Names = std::vector<std::string>;

class GraphBuilder {
  public:
    GraphBuilder(Arena *arena, OnnxGraph *graph) : arena_(arena), graph_(graph) { graph->name = Copy("g"); }

    GraphBuilder &Input(const std::string &name, const DimNames &dims, OnnxDtype dtype = ONNX_FLOAT) {
        vec_push(arena_, &graph_->inputs, Info(name, dims, dtype));
        return *this;
    }

    GraphBuilder &Output(const std::string &name, OnnxDtype dtype = ONNX_FLOAT) {
        OnnxValueInfo info = {};
        info.name = Copy(name);
        info.type = onnx_tensor_type(arena_, dtype, nullptr);
        vec_push(arena_, &graph_->outputs, info);
        return *this;
    }

    // What is known of a value beside its node.
    GraphBuilder &Value(const std::string &name, const DimNames &dims, OnnxDtype dtype = ONNX_FLOAT) {
        vec_push(arena_, &graph_->value_infos, Info(name, dims, dtype));
        return *this;
    }

    GraphBuilder &Weight(const std::string &name, const std::vector<int64_t> &dims, OnnxDtype dtype = ONNX_FLOAT,
                         const std::vector<int64_t> &ints = {}) {
        size_t elements = 1;
        for (int64_t d : dims) elements *= static_cast<size_t>(d);
        char *data = arena_array(arena_, char, elements < 64 ? elements * 8 + 1 : 1); // large ones are never read
        if (!ints.empty()) memcpy(data, ints.data(), ints.size() * 8);
        vec_push(arena_, &graph_->initializers,
                 onnx_tensor_of(arena_, Copy(name), dtype, dims.data(), static_cast<int>(dims.size()), data));
        return *this;
    }

    GraphBuilder &Ints(const std::string &name, const std::vector<int64_t> &ints) {
        return Weight(name, {static_cast<int64_t>(ints.size())}, ONNX_INT64, ints);
    }

    GraphBuilder &Number(const std::string &name) { return Weight(name, {}); }

    GraphBuilder &Node(const std::string &name, const std::string &op, const Names &inputs, const Names &outputs,
                       const std::string &domain = "") {
        OnnxNode node = onnx_node(arena_, Copy(op), Copy(name));
        node.domain = Copy(domain);
        for (const std::string &input : inputs) vec_push(arena_, &node.inputs, Copy(input));
        for (const std::string &output : outputs) vec_push(arena_, &node.outputs, Copy(output));
        vec_push(arena_, &graph_->nodes, node);
        return *this;
    }

    // Of the last node.
    GraphBuilder &Int(const std::string &name, int64_t value) {
        vec_push(arena_, &Last().attributes, onnx_attribute_of_int(Copy(name), value));
        return *this;
    }

    GraphBuilder &List(const std::string &name, const std::vector<int64_t> &values) {
        OnnxAttribute a = {};
        a.name = Copy(name);
        a.ref_name = Copy("");
        a.type = ONNX_ATTR_INTS;
        for (int64_t v : values) vec_push(arena_, &a.ints, v);
        vec_push(arena_, &Last().attributes, a);
        return *this;
    }

    // A graph of the last node, to be filled in.
    GraphBuilder Graph(const std::string &name) {
        OnnxAttribute a = {};
        a.name = Copy(name);
        a.ref_name = Copy("");
        a.type = ONNX_ATTR_GRAPH;
        a.g = arena_new(arena_, OnnxGraph);
        vec_push(arena_, &Last().attributes, a);
        return GraphBuilder(arena_, a.g);
    }

  private:
    const char *Copy(const std::string &text) { return arena_strdup(arena_, text.c_str()); }
    OnnxNode &Last() { return graph_->nodes.data[graph_->nodes.len - 1]; }

    OnnxValueInfo Info(const std::string &name, const DimNames &dims, OnnxDtype dtype) {
        OnnxShape *shape = arena_new(arena_, OnnxShape);
        for (const std::string &d : dims) {
            OnnxDim dim = {};
            const bool is_number = isdigit(d[0]);
            dim.kind = is_number ? ONNX_DIM_VALUE : ONNX_DIM_NAME;
            dim.value = is_number ? std::stoll(d) : 0;
            dim.name = Copy(is_number ? "" : d);
            vec_push(arena_, &shape->dims, dim);
        }
        OnnxValueInfo info = {};
        info.name = Copy(name);
        info.type = onnx_tensor_type(arena_, dtype, shape);
        return info;
    }

    Arena *arena_;
    OnnxGraph *graph_;
};

#endif
