// The op table is complete and consistent.
#include <algorithm>
#include <set>

#include "ir/interp/ops.h"
#include "ir/operands.h"
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
    ForEachOp([](Opcode code, const OpInfo &info) {
        ASSERT_NE(info.doc, nullptr);
        EXPECT_GT(strlen(info.doc), 0u);
        EXPECT_NE(ir_op_levels(code), 0);
        const OpArity arity = ir_op_arity(code);
        EXPECT_LE(arity.in_min, arity.in_max);
        EXPECT_LE(arity.out, 4);
        const bool written = (ir_op_levels(code) & GRAPH) && !(info.flags & (BACKWARD | EFFECT));
        EXPECT_TRUE(written || !(info.flags & (WRITTEN | NO_GRADIENT)));
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

// The same number of operands and results in every signature, but for operands that one of them leaves out.
TEST(Ops, SignaturesGiveTheNumbersOfOperandsAndResults) {
    const OpArity linear = ir_op_arity(OP_linear), concat = ir_op_arity(OP_concat), sgd = ir_op_arity(OP_sgd);
    EXPECT_TRUE(linear.in_min == 2 && linear.in_max == 3 && linear.out == 1);
    EXPECT_TRUE(concat.in_min == 1 && concat.in_max == MANY && concat.out == 1);
    EXPECT_TRUE(sgd.in_min == 5 && sgd.in_max == 6 && sgd.out == 2);
    EXPECT_EQ(ir_op_arity(OP_const).in_max, 0);
    EXPECT_EQ(ir_op_arity(OP_batch_norm).out, 4);
    EXPECT_EQ(ir_op_arity(OP_assign).out, 0);
    ForEachOp([](Opcode code, const OpInfo &) {
        for (int level : {GRAPH, CORE}) {
            const char *signatures = legal_signatures(code, level);
            if (!signatures) continue;
            std::stringstream all(signatures);
            for (std::string one; std::getline(all, one, '|');) {
                EXPECT_EQ(one.size() - one.find('>') - 1, static_cast<size_t>(ir_op_arity(code).out)) << one;
                EXPECT_EQ(one.find_first_not_of("FPTfdilb*?+>"), std::string::npos) << one;
            }
        }
    });
}

TEST(Ops, TheInterpreterHasEveryOp) {
    ForEachOp([](Opcode code, const OpInfo &info) { EXPECT_NE(interp_ops[code], nullptr) << info.name; });
}

TEST(Ops, StagesHaveNames) {
    for (const char *name : ir_stage_names) EXPECT_NE(name, nullptr);
}

// docs/ir.md explains every letter and sign of the types in ops.def.
TEST(Ops, TheManualExplainsTypes) {
    std::ifstream file("docs/ir.md");
    std::stringstream text;
    text << file.rdbuf();
    const size_t from = text.str().find("\n## Ops\n");
    ASSERT_NE(from, std::string::npos);
    const std::string section = text.str().substr(from, text.str().find("\n## ", from + 1) - from);
    EXPECT_NE(section.find("OPERANDS>RESULTS"), std::string::npos);
    EXPECT_NE(section.find("(../ir/ops.def)"), std::string::npos);
    ForEachOp([&](Opcode code, const OpInfo &) {
        for (int level : {GRAPH, CORE}) {
            const char *signatures = legal_signatures(code, level);
            for (const char *c = signatures ? signatures : ""; *c; c++)
                EXPECT_TRUE(*c == '>' || section.find(std::string("`") + *c + "`") != std::string::npos) << *c;
        }
    });
}

} // namespace
