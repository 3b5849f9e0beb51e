// graph_builder.h: GraphOf (model_of.h) for tests that name each node, and compose names and shapes.
#ifndef AMP_TESTS_ONNX_GRAPH_BUILDER_H
#define AMP_TESTS_ONNX_GRAPH_BUILDER_H

#include <gtest/gtest.h>

#include "tests/onnx/model_of.h"

// Names of dims are symbols, digits are numbers: "N", "3".
using DimNames = std::vector<std::string>;
using Names = std::vector<std::string>;

class GraphBuilder : GraphOf {
  public:
    GraphBuilder(Arena *arena, OnnxGraph *graph) : GraphOf(arena, "g", graph) {}

    GraphBuilder &Input(const std::string &name, const DimNames &dims, OnnxDtype dtype = ONNX_FLOAT) {
        input(Copy(name), dtype, Joined(dims, ',').c_str());
        return *this;
    }

    GraphBuilder &Output(const std::string &name, OnnxDtype dtype = ONNX_FLOAT) {
        output(Copy(name), dtype);
        return *this;
    }

    // What is known of a value beside its node.
    GraphBuilder &Value(const std::string &name, const DimNames &dims, OnnxDtype dtype = ONNX_FLOAT) {
        info(Copy(name), dtype, Joined(dims, ',').c_str());
        return *this;
    }

    GraphBuilder &Weight(const std::string &name, const std::vector<int64_t> &dims, OnnxDtype dtype = ONNX_FLOAT) {
        weight(Copy(name), dtype, dims);
        return *this;
    }

    GraphBuilder &Ints(const std::string &name, const std::vector<int64_t> &values) {
        ints(Copy(name), values);
        return *this;
    }

    GraphBuilder &Number(const std::string &name) { return Weight(name, {}); }

    GraphBuilder &Node(const std::string &name, const std::string &op, Names inputs, Names outputs,
                       const std::string &domain = "") {
        for (Names *names : {&inputs, &outputs})
            for (std::string &word : *names) word = word.empty() ? "-" : word;
        node(Copy(op), Joined(inputs, ' '), Joined(outputs, ' '), Copy(domain));
        g->nodes.data[g->nodes.len - 1].name = Copy(name);
        return *this;
    }

    // Of the last node.
    GraphBuilder &Int(const std::string &name, int64_t value) {
        with(Copy(name), value);
        return *this;
    }

    GraphBuilder &List(const std::string &name, const std::vector<int64_t> &values) {
        with(Copy(name), values);
        return *this;
    }

    // A graph of the last node, to be filled in.
    GraphBuilder Graph(const std::string &name) {
        GraphBuilder inner(arena, arena_new(arena, OnnxGraph));
        with(Copy(name), inner);
        return inner;
    }

  private:
    const char *Copy(const std::string &text) { return arena_strdup(arena, text.c_str()); }
    static std::string Joined(const std::vector<std::string> &words, char separator) {
        std::string text;
        for (const std::string &word : words) text += (text.empty() ? "" : std::string(1, separator)) + word;
        return text;
    }
};

#endif
