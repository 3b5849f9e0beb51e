// random_types_test.cc: graphs of any ops with any inputs and attributes are solved or refused by a message, and what
// is solved agrees with itself.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <random>

#include "tests/onnx/model_of.h"

namespace {

class Random {
  public:
    explicit Random(unsigned seed) : generator(seed) {}
    int below(int n) { return static_cast<int>(generator() % static_cast<unsigned>(n)); }
    template <class T> T one_of(std::initializer_list<T> list) {
        return list.begin()[below(static_cast<int>(list.size()))];
    }
    int64_t number() {
        return one_of<int64_t>({0, 1, 2, 3, 7, -1, -2, 64, 1000000, INT32_MAX, INT64_MAX, INT64_MIN, 1LL << 62, -4});
    }
    std::vector<int64_t> numbers(int most) {
        std::vector<int64_t> list(static_cast<size_t>(below(most + 1)));
        for (int64_t &n : list) n = number();
        return list;
    }

  private:
    std::mt19937 generator;
};

const char *const kInts[] = {"axis",        "to",
                             "dtype",       "keepdims",
                             "start",       "end",
                             "group",       "transA",
                             "transB",      "block",
                             "blocksize",   "allowzero",
                             "batch_dims",  "hidden_size",
                             "layout",      "num_scan_inputs",
                             "q_num_heads", "kv_num_heads",
                             "ceil_mode",   "output_dtype",
                             "stash_type",  "noop_with_empty_axes",
                             "n_targets"};
const char *const kLists[] = {"axes",  "perm",         "pads",  "strides",        "dilations",       "kernel_shape",
                              "shape", "output_shape", "split", "output_padding", "scan_input_axes", "value_ints"};

void add_attributes(Random &r, GraphOf &g) {
    for (const char *name : kInts)
        if (r.below(3) == 0) g.with(name, r.below(2) ? r.number() : r.below(18));
    for (const char *name : kLists)
        if (r.below(3) == 0) g.with(name, r.numbers(5));
    if (r.below(8) == 0) g.with_ints("value", r.numbers(3));
    if (r.below(8) == 0) g.with_tensor("value", r.below(20), {r.below(4)});
    if (r.below(8) == 0)
        g.with("equation", r.one_of({"ab,bc->ac", "a", ",,->", "a->aaaaaaaaaaaaaaaaaaaaaaaa", "->", "a.b"}));
    if (r.below(8) == 0) g.with("auto_pad", r.one_of({"SAME_UPPER", "VALID", ""}));
}

class Filler {
  public:
    Filler(Random &r, ModelOf &m) : r(r), m(m) { onnx_schemas_init(&schemas, &m.arena); }

    const char *text(const std::string &s) { return arena_strdup(&m.arena, s.c_str()); }
    const char *add() { return text("v" + std::to_string(next++)); }
    const char *any(const std::vector<const char *> &seen) { return seen[r.below(static_cast<int>(seen.size()))]; }

    // A graph of an op, with inputs and outputs.
    void inner(GraphOf &g, const char *attribute, std::vector<const char *> seen, int depth) {
        GraphOf &graph = m.inner("inner");
        for (int k = strcmp(attribute, "body") == 0 ? r.below(4) : 0; k > 0; k--) {
            seen.push_back(add());
            graph.input(seen.back(), r.below(2) ? r.below(12) : 0);
        }
        size_t around = seen.size();
        fill(graph, seen, depth);
        for (int k = r.below(4); k > 0 && seen.size() > around; k--) graph.output(seen[seen.size() - 1 - r.below(1)]);
        g.with(attribute, graph);
    }

    // Adds nodes, and what they make to |seen|.
    void fill(GraphOf &g, std::vector<const char *> &seen, int depth) {
        for (int i = r.below(3); i >= 0; i--) {
            std::string key = schemas.ops.entries.data[r.below(schemas.ops.entries.len)].key, inputs, outputs;
            if (depth < 2 && r.below(6) == 0) key = r.one_of({":If", ":Loop", ":Scan", ":SequenceMap"});
            size_t colon = key.find(':');
            const OnnxSchema *schema =
                onnx_schema(&schemas, text(key.substr(0, colon)), text(key.substr(colon + 1)), 17);
            int count = schema && r.below(8) ? schema->inputs : r.below(6), results = 1 + r.below(2) * r.below(3);
            std::vector<const char *> made;
            for (int k = 0; k < count; k++) inputs += (k ? " " : "") + std::string(r.below(12) ? any(seen) : "-");
            for (int k = 0; k < results; k++) {
                made.push_back(add());
                outputs += (k ? " " : "") + std::string(made.back());
            }
            g.node(text(key.substr(colon + 1)), inputs, outputs, text(key.substr(0, colon)));
            add_attributes(r, g);
            if (key == ":If") {
                inner(g, "then_branch", seen, depth + 1);
                inner(g, "else_branch", seen, depth + 1);
            } else if (key == ":Loop" || key == ":Scan" || key == ":SequenceMap") {
                inner(g, "body", seen, depth + 1);
            }
            for (const char *name : made)
                if (r.below(20) == 0) g.info(name, 1 + r.below(16), "N,?,3");
            seen.insert(seen.end(), made.begin(), made.end());
        }
    }

  private:
    Random &r;
    ModelOf &m;
    OnnxSchemas schemas;
    int next = 0; // number of the next value
};

void check_shapes(ModelOf &m) {
    for (int32_t v = 0; v < m.index.value_count; v++) {
        EXPECT_GE(m.s.shapes[v].rank, -1);
        EXPECT_FALSE(std::string(onnx_value_text(&m.s, &m.arena, v)).empty());
        EXPECT_FALSE(std::isnan(onnx_typical_elements(&m.s, v)));
    }
    for (int32_t n = 0; n < m.index.node_count; n++) onnx_summed(&m.index, &m.s, n);
}

void check_groups(ModelOf &m) {
    for (int32_t i = 0; i < m.index.operand_count; i++) {
        int32_t group = m.s.operand_groups[i], v = m.index.operands[i];
        if (group == ONNX_NONE) continue;
        ASSERT_NE(v, ONNX_NONE);
        EXPECT_EQ(m.s.groups[group].dtype, m.s.types[v].dtype);
        EXPECT_TRUE(m.s.groups[group].allowed >> m.s.types[v].dtype & 1 || m.s.groups[group].allowed == 0);
        EXPECT_TRUE(m.s.types[v].kind == ONNX_KIND_TENSOR || group == m.s.value_groups[v]);
    }
}

TEST(OnnxTypes, RandomGraphsAreSolvedOrRefused) {
    const char *count = getenv("AMP_MUTATIONS");
    int solved = 0, models = count ? atoi(count) : 1000;
    for (int i = 0; i < models && !HasFailure(); i++) {
        Random r(static_cast<unsigned>(i));
        ModelOf m(11 + r.below(18));
        m.imports("ai.onnx.ml", 1 + r.below(5));
        m.imports("com.microsoft", 1);
        Filler filler(r, m);
        std::vector<const char *> seen;
        for (int k = 0; k < 8; k++) {
            seen.push_back(filler.add());
            if (k < 4)
                m.graph().input(
                    seen[k], r.below(8) ? ONNX_FLOAT : r.one_of<int>({7, 9, 10, 16, 11}),
                    r.one_of({"N,3,224,224", "N,T", "", "4", "0,5", "1,1,1,1,1", static_cast<const char *>(nullptr)}));
            else if (k < 6) m.graph().ints(seen[k], r.numbers(4));
            else m.graph().weight(seen[k], ONNX_FLOAT, {3, 3});
        }
        filler.fill(m.graph(), seen, 0);
        m.graph().output(seen.back());
        std::string wrong = m.solve();
        if (!wrong.empty()) {
            EXPECT_EQ(wrong.rfind("m.onnx: ", 0), 0u) << wrong;
            continue;
        }
        solved++;
        check_shapes(m);
        check_groups(m);
    }
    EXPECT_GT(solved, models / 100);
    RecordProperty("solved", solved);
}

} // namespace
