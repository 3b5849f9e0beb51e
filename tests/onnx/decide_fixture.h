// decide_fixture.h: a model, and what onnx_decide says of it, as text.
#ifndef AMP_TESTS_ONNX_DECIDE_FIXTURE_H
#define AMP_TESTS_ONNX_DECIDE_FIXTURE_H

#include <map>

#include "onnx/decide.h"
#include "tests/onnx/graph_builder.h"

class DecideTest : public testing::Test {
  protected:
    DecideTest() {
        arena_init(&arena_, nullptr);
        Clear();
    }
    ~DecideTest() override { arena_free(&arena_); }

    // A new model of one opset.
    GraphBuilder Clear(int64_t opset = 18) {
        model_ = {};
        model_.path = "m.onnx";
        model_.ir_version = 10;
        model_.graph = arena_new(&arena_, OnnxGraph);
        for (const char *domain : {"", "custom", "com.microsoft"}) {
            OnnxOpset o = {};
            o.domain = domain;
            o.version = *domain ? 1 : opset;
            vec_push(&arena_, &model_.opsets, o);
        }
        return GraphBuilder(&arena_, model_.graph);
    }

    const Policy *ReadPolicy(const std::string &name) {
        Diags diags;
        diags_init(&diags, &arena_);
        const Source *text = policy_builtin(&arena_, name.c_str());
        if (!text) {
            auto *source = arena_new(&arena_, Source);
            *source = Source{"own.policy", arena_strdup(&arena_, name.c_str()), name.size()};
            text = source;
        }
        const Policy *p = policy_read(&arena_, &diags, text);
        EXPECT_NE(p, nullptr) << name;
        return p;
    }

    void Solve() {
        ASSERT_EQ(onnx_index(&model_, &arena_, &index_, &error_), AMP_OK) << error_.message;
        ASSERT_EQ(onnx_solve_types(&model_, &index_, nullptr, &arena_, &solution_, &error_), AMP_OK) << error_.message;
    }

    amp_status TryDecide(const std::string &policy) {
        Solve();
        if (HasFatalFailure()) return AMP_INTERNAL;
        OnnxDecideOptions o = {};
        o.policy = ReadPolicy(policy);
        o.keep_io = keep_io_;
        std::vector<const char *> keeps;
        for (const std::string &keep : keeps_) keeps.push_back(keep.c_str());
        o.keeps = keeps.data();
        o.keep_count = static_cast<int>(keeps.size());
        o.batch_hint = 32;
        std::vector<OnnxMagnitude> ranges(static_cast<size_t>(index_.value_count) + 1);
        for (const auto &r : ranges_)
            for (int32_t v = 0; v < index_.value_count; v++)
                if (index_.values[v].name == r.first) ranges[static_cast<size_t>(v)] = r.second;
        if (!ranges_.empty()) o.ranges = ranges.data();
        return onnx_decide(&model_, &index_, &solution_, &o, &arena_, &d_, &error_);
    }

    void Decide(const std::string &policy) { ASSERT_EQ(TryDecide(policy), AMP_OK) << error_.message; }

    int32_t NodeOf(const std::string &name) const {
        for (int32_t n = 0; n < index_.node_count; n++)
            if (index_.nodes[n].node->name == name) return n;
        ADD_FAILURE() << "no node " << name;
        return 0;
    }

    int32_t ValueOf(const std::string &name) const {
        for (int32_t v = 0; v < index_.value_count; v++)
            if (index_.values[v].name == name) return v;
        ADD_FAILURE() << "no value " << name;
        return 0;
    }

    // "low", "f32", "as is", "dropped"
    std::string Fate(const std::string &node) const {
        static const char *const words[] = {"as is", "low", "f32", "dropped"};
        return words[d_.nodes[NodeOf(node)].fate];
    }

    std::map<std::string, std::string> Fates() const {
        std::map<std::string, std::string> all;
        for (int32_t n = 0; n < index_.node_count; n++)
            all[index_.nodes[n].node->name] = Fate(index_.nodes[n].node->name);
        return all;
    }

    std::string Why(const std::string &node) {
        Text t;
        text_init(&t, &arena_);
        ir_print_reason(&t, &d_.nodes[NodeOf(node)].reason);
        return text_str(&t);
    }

    std::string Stored(const std::string &value) const { return onnx_dtype_name(d_.stored[ValueOf(value)]); }

    // "x -> float16 for fc1, w! -> float16 for fc1": ! is a weight.
    std::string Casts() const {
        std::string text;
        for (int i = 0; i < d_.casts.len; i++) {
            const OnnxCast &c = d_.casts.data[i];
            text += std::string(i ? ", " : "") + index_.values[c.value].name + (c.is_weight ? "!" : "") + " -> " +
                    onnx_dtype_name(c.dtype) + " for " +
                    (c.wanted_by == ONNX_NONE ? "an output" : index_.nodes[c.wanted_by].node->name);
        }
        return text;
    }

    // "gelu: d e s m h" of all patterns.
    std::string Patterns() const {
        std::string text;
        for (int i = 0; i < d_.patterns.len; i++) {
            text += std::string(i ? "; " : "") + d_.patterns.data[i].op + ":";
            for (int k = 0; k < d_.patterns.data[i].nodes.len; k++)
                text += std::string(" ") + index_.nodes[d_.patterns.data[i].nodes.data[k]].node->name;
        }
        return text;
    }

    Arena arena_;
    amp_error error_ = {};
    OnnxModel model_;
    OnnxIndex index_ = {};
    OnnxSolution solution_ = {};
    OnnxDecisions d_ = {};
    bool keep_io_ = false;
    std::vector<std::string> keeps_;
    std::map<std::string, OnnxMagnitude> ranges_;
};

#endif
