// The op table is complete and consistent.
#include <algorithm>
#include <set>

#include "ir/interp/ops.h"
#include "ir/legal.h"
#include "tests/ir/ir_test.h"

namespace {

int AttrCount(const OpInfo &info) {
    int n = 0;
    while (n < MAX_ATTRS && info.attrs[n].type != ATTR_END) n++;
    return n;
}

template <typename F> void ForEachOp(F f) {
    for (int code = OP_NONE + 1; code < OP_COUNT; code++) {
        SCOPED_TRACE(ir_op_info[code].name);
        f(static_cast<Opcode>(code), ir_op_info[code]);
    }
}

TEST(Ops, NamesAreUniqueAndFound) {
    std::set<std::string> names;
    ForEachOp([&](Opcode code, const OpInfo &info) {
        EXPECT_TRUE(names.insert(info.name).second);
        EXPECT_EQ(ir_opcode(info.name), code);
    });
    EXPECT_EQ(ir_opcode("no_such_op"), OP_NONE);
}

TEST(Ops, EveryEntryIsComplete) {
    ForEachOp([](Opcode, const OpInfo &info) {
        ASSERT_NE(info.doc, nullptr);
        EXPECT_GT(strlen(info.doc), 0u);
        EXPECT_NE(info.levels & (GRAPH | CORE), 0);
        EXPECT_LE(info.in_min, info.in_max);
        EXPECT_LE(info.out, 4);
        EXPECT_NE(info.shape, SHAPE_NONE);
        EXPECT_EQ(info.emit != EMIT_NONE, (info.levels & CORE) != 0);
        EXPECT_EQ(info.lower != LOWER_NONE, (info.levels & GRAPH) != 0);
        bool written = (info.levels & GRAPH) && !(info.flags & (BACKWARD | EFFECT));
        if (!written) {
            EXPECT_EQ(info.grad, GRAD_UNDEFINED);
        }
    });
}

TEST(Ops, AttributesAreUniqueInTheirOp) {
    ForEachOp([](Opcode, const OpInfo &info) {
        std::set<std::string> names;
        for (int i = 0; i < AttrCount(info); i++) {
            ASSERT_NE(info.attrs[i].name, nullptr);
            EXPECT_TRUE(names.insert(info.attrs[i].name).second) << info.attrs[i].name;
            bool is_text = info.attrs[i].type == ATTR_SYMBOL || info.attrs[i].type == ATTR_STRING;
            EXPECT_TRUE(!is_text || info.attrs[i].initial.s != nullptr);
        }
    });
}

TEST(Ops, EveryRuleIdIsUsed) {
    std::set<int> shape, grad, lower, emit;
    ForEachOp([&](Opcode, const OpInfo &info) {
        shape.insert(info.shape);
        grad.insert(info.grad);
        lower.insert(info.lower);
        emit.insert(info.emit);
    });
    shape.insert(SHAPE_NONE);
    lower.insert(LOWER_NONE);
    emit.insert(EMIT_NONE);
    EXPECT_EQ(shape.size(), static_cast<size_t>(SHAPE_RULE_COUNT));
    EXPECT_EQ(grad.size(), static_cast<size_t>(GRAD_RULE_COUNT));
    EXPECT_EQ(lower.size(), static_cast<size_t>(LOWER_RULE_COUNT));
    EXPECT_EQ(emit.size(), static_cast<size_t>(EMIT_RULE_COUNT));
}

TEST(Ops, TheLegalityTableHasARowForEveryLevelOfEveryOp) {
    ForEachOp([](Opcode code, const OpInfo &info) {
        EXPECT_EQ(legal_signatures(code, GRAPH) != nullptr, (info.levels & GRAPH) != 0);
        EXPECT_EQ(legal_signatures(code, CORE) != nullptr, (info.levels & CORE) != 0);
    });
}

TEST(Ops, TheInterpreterHasEveryOpOnce) {
    ForEachOp([](Opcode code, const OpInfo &) {
        EXPECT_EQ(std::count_if(interp_tables, interp_tables + INTERP_TABLES,
                                [&](const InterpFn *table) { return table[code] != nullptr; }),
                  1);
    });
}

TEST(Ops, StagesHaveNames) {
    for (const char *name : ir_stage_names) EXPECT_NE(name, nullptr);
}

std::string Escaped(std::string signatures) {
    for (size_t at = 0; (at = signatures.find('|', at)) != std::string::npos; at += 2) signatures.insert(at, "\\");
    return "`" + signatures + "`";
}

// docs/ir.md lists every op with its attributes, its signatures and the doc string of ops.def.
TEST(Ops, TheManualSaysWhatTheTableSays) {
    std::ifstream file("docs/ir.md");
    std::stringstream text;
    text << file.rdbuf();
    ForEachOp([&](Opcode code, const OpInfo &info) {
        std::string row = std::string("| `") + info.name + "` |";
        size_t at = text.str().find(row);
        ASSERT_NE(at, std::string::npos) << "docs/ir.md has no row " << row;
        std::string line = text.str().substr(at, text.str().find('\n', at) - at);
        EXPECT_NE(line.find(info.doc), std::string::npos) << line;
        for (int i = 0; i < AttrCount(info); i++)
            EXPECT_NE(line.find(std::string(info.attrs[i].name) + " = "), std::string::npos) << line;
        for (int level : {GRAPH, CORE}) {
            const char *signatures = legal_signatures(code, level);
            EXPECT_TRUE(!signatures || line.find(Escaped(signatures)) != std::string::npos) << line;
        }
    });
}

} // namespace
