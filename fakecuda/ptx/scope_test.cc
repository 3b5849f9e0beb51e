// Names, scopes, labels, lines and where instructions come from.
#include "fakecuda/ptx/parse_ptx.h"

using namespace ptx_test;

namespace {

TEST(Scopes, LabelsPointToInstructions) {
    Module m = parse_body("bra END;\nL1: L2: ret;\n@%p1 bra.uni L2;\nbra L1;\nEND:");
    ASSERT_TRUE(m) << last_message();
    EXPECT_EQ(shown(m, 0), "to 4");
    EXPECT_EQ(shown(m, 2), "to 1");
    EXPECT_EQ(shown(m, 3), "to 1");
    EXPECT_EQ(kernel(m).count, 4);
}

TEST(Scopes, BracesShadowRegistersAndLabels) {
    Module m = parse_body("mov.u32 %r1, 0;\n"
                          "{ .reg .b32 %r1, q; mov.u32 %r1, 1; bra DONE; DONE: }\n"
                          "{ .reg .f32 %r1; bra DONE; mov.f32 %r1, 0f00000000; }\n"
                          "mov.u32 %r1, 2;\nDONE: ret;");
    ASSERT_TRUE(m) << last_message();
    const PtxFunction &f = kernel(m);
    EXPECT_EQ(f.code[0].operands[0].index, f.code[5].operands[0].index);
    EXPECT_NE(f.code[0].operands[0].index, f.code[1].operands[0].index);
    EXPECT_NE(f.code[1].operands[0].index, f.code[4].operands[0].index);
    EXPECT_EQ(f.registers[f.code[4].operands[0].index].type, PTX_F32);
    EXPECT_EQ(shown(m, 2), "to 3") << "the label of the same braces";
    EXPECT_EQ(shown(m, 3), "to 6") << "the label of the function";
}

TEST(Scopes, InnerLabelBehindHidesOuterLabelBefore) {
    Module m = parse_body("L: ret;\n{ bra L; ret; L: ret; }\nbra L;");
    ASSERT_TRUE(m) << last_message();
    EXPECT_EQ(shown(m, 1), "to 3");
    EXPECT_EQ(shown(m, 4), "to 0");
}

TEST(Scopes, MissingAndDoubledNamesAreErrors) {
    EXPECT_FALSE(parse_body("bra NOWHERE;"));
    EXPECT_EQ(last_message(), "ptx:7:1: there is no label 'NOWHERE'");
    EXPECT_FALSE(parse_body("{ L: ret; }\nbra L;"));
    EXPECT_FALSE(parse_body("L: ret;\nL: ret;"));
    EXPECT_FALSE(parse_body(".reg .b32 %r1;"));
    EXPECT_FALSE(parse_body("{ .reg .b32 q; }\nmov.u32 q, 0;"));
    EXPECT_EQ(last_message(), "ptx:8:9: 'q' is not declared");
    EXPECT_FALSE(parse_body("bra %r1;"));
    EXPECT_FALSE(parse_body("mov.u32 L, 0;\nL: ret;"));
}

TEST(Scopes, TargetsOfIndirectBranches) {
    Module m = parse_body("ts: .branchtargets L1, L2, L1;\nbrx.idx %r1, ts;\nL1: ret;\nL2: ret;");
    ASSERT_TRUE(m) << last_message();
    EXPECT_EQ(shown(m, 0), "%r1#9, (to 1, to 2, to 1)");
    EXPECT_FALSE(parse_body("ts: .branchtargets L1, L3;\nbrx.idx %r1, ts;\nL1: ret;"));
}

TEST(Scopes, LinesAndOrigins) {
    Module m = parse_body(
        "ret;\n//@ %12 = relu  \n.loc 1 34 5\nret;\n.loc 1 35 1, function_name $L__info_string0, inlined_at 1 "
        "20 3\nret;\n// begin inline asm\n\t//@ b\n// end inline asm\nret;");
    ASSERT_TRUE(m) << last_message();
    EXPECT_EQ(instruction(m, 0).line, 7);
    EXPECT_EQ(instruction(m, 0).origin, nullptr);
    EXPECT_EQ(instruction(m, 0).source_line, 0);
    EXPECT_STREQ(instruction(m, 1).origin, "%12 = relu");
    EXPECT_EQ(instruction(m, 1).source_line, 34);
    EXPECT_EQ(instruction(m, 1).line, 10);
    EXPECT_EQ(instruction(m, 2).source_line, 35);
    EXPECT_STREQ(instruction(m, 3).origin, "b");
}

TEST(Scopes, OriginsDoNotCrossFunctions) {
    Module m = parse_items(".entry a() {\n//@ x\nret; }\n.entry k() { ret; }");
    ASSERT_TRUE(m) << last_message();
    EXPECT_EQ(instruction(m, 0).origin, nullptr);
}

} // namespace
