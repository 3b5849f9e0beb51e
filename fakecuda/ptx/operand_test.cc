// Instructions and operands, form by form.
#include "fakecuda/ptx/parse_ptx.h"

using namespace ptx_test;

namespace {

struct Case {
    const char *statement, *operands;
};

// Registers of parse_body: %p0 is #0, %h0 #4, %r0 #8, %f0 #16, %rd0 #24, %fd0 #32.
TEST(Operands, EveryForm) {
    const Case cases[] = {
        {"mov.u32 %r1, %r2;", "%r1#9, %r2#10"},
        {"mov.u32 %r1, -2147483648;", "%r1#9, -2147483648"},
        {"mov.u32 %r1, 0xFFu;", nullptr},
        {"mov.u32 %r1, 0xFFU;", "%r1#9, 255"},
        {"mov.u32 %r1, 0b101;", "%r1#9, 5"},
        {"mov.u32 %r1, 017;", "%r1#9, 15"},
        {"mov.b64 %rd1, 0xffffffffffffffff;", "%rd1#25, -1"},
        {"mov.b64 %rd1, 0x10000000000000000;", nullptr},
        {"mov.u32 %r1, WARP_SZ - 1;", "%r1#9, 31"},
        {"mov.u32 %r1, (1 << 4 | 3) * 2 + ~0;", "%r1#9, 37"},
        {"mov.u32 %r1, 7 > 3 ? 10 : 20;", "%r1#9, 10"},
        {"mov.u32 %r1, -7 / 2 % 2 - 1 >> 1;", "%r1#9, -1"},
        {"mov.u32 %r1, (.u64)-1 > 0 && !0 || 0;", "%r1#9, 1"},
        {"mov.u32 %r1, 1 / 0;", nullptr},
        {"mov.u32 %r1, 1.5 + 1;", nullptr},
        {"mov.f32 %f1, 0f3F800000;", "%f1#17, 0f3f800000"},
        {"mov.f32 %f1, 0F7fc00000;", "%f1#17, 0f7fc00000"},
        {"mov.f32 %f1, 0f3F80000;", nullptr},
        {"mov.f32 %f1, 1.5;", "%f1#17, 0f3fc00000"},
        {"mov.f32 %f1, -1.5e1;", "%f1#17, 0fc1700000"},
        {"mov.f32 %f1, 0d3FF0000000000000;", "%f1#17, 0f3f800000"},
        {"mov.f64 %fd1, 0d3FF0000000000000;", "%fd1#33, 0d3ff0000000000000"},
        {"mov.f64 %fd1, -2.0;", "%fd1#33, 0dc000000000000000"},
        {"add.f64 %fd1, %fd1, 0f3F800000;", "%fd1#33, %fd1#33, 0d3ff0000000000000"},
        {"mov.u32 %r1, %tid.x;", "%r1#9, special 0"},
        {"mov.u32 %r1, %nctaid.z;", "%r1#9, special 11"},
        {"mov.u32 %r1, %tid.w;", nullptr},
        {"mov.u64 %rd1, p;", "%rd1#25, p"},
        {"mov.u64 %rd1, smem+16;", "%rd1#25, smem+16"},
        {"mov.u64 %rd1, words[3];", "%rd1#25, words+12"},
        {"ld.shared.u32 %r1, words[3];", "%r1#9, [words+12]"},
        {"ld.param.u64 %rd1, [p];", "%rd1#25, [p]"},
        {"ld.param.u32 %r1, [p+4];", "%r1#9, [p+4]"},
        {"ld.shared.u32 %r1, [smem - 4];", "%r1#9, [smem-4]"},
        {"ld.global.u32 %r1, [%rd1];", "%r1#9, [%rd1#25]"},
        {"ld.global.u32 %r1, [%rd1+32];", "%r1#9, [%rd1#25+32]"},
        {"ld.global.u32 %r1, [%rd1+-32];", "%r1#9, [%rd1#25-32]"},
        {"ld.global.u32 %r1, [%rd1-0x20];", "%r1#9, [%rd1#25-32]"},
        {"ld.shared.u32 %r1, [64];", "%r1#9, [64]"},
        {"ld.shared.u32 %r1, [%tid.x];", nullptr},
        {"ld.global.nc.v4.f32 {%f1,%f2, %f3 ,_}, [%rd1];", "{%f1#17, %f2#18, %f3#19, _}, [%rd1#25]"},
        {"st.global.v4.f32 [%rd1], {%f1, 0f3F800000, 1.0, -0f3F800000};",
         "[%rd1#25], {%f1#17, 0f3f800000, 0f3f800000, 0fbf800000}"},
        {"mov.b64 {%r1, %r2}, %rd1;", "{%r1#9, %r2#10}, %rd1#25"},
        {"mov.b64 {_, %r2}, %rd1;", "{_, %r2#10}, %rd1#25"},
        {"shfl.sync.bfly.b32 %r1|%p1, %r2, 16, 31, -1;", "%r1#9|%p1#1, %r2#10, 16, 31, -1"},
        {"elect.sync _|%p1, -1;", "_|%p1#1, -1"},
        {"elect.sync 3|%p1, -1;", nullptr},
        {"setp.lt.and.f32 %p1|%p2, %f1, %f2, !%p3;", "%p1#1|%p2#2, %f1#17, %f2#18, !%p3#3"},
        {"mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [%r1], 16;", "_, [%r1#9], 16"},
        {"cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1, {%r2, %r3}], "
         "[%r4];",
         "[%r1#9], ([%rd1#25], {%r2#10, %r3#11}), [%r4#12]"},
        {"cp.async.ca.shared.global [%r1], [%rd1], 16, %r2;", "[%r1#9], [%rd1#25], 16, %r2#10"},
        {"bar.sync 0;", "0"},
        {"ret;", ""},
        {"call nowhere;", nullptr},
        {"mov.u32 %r9, 0;", nullptr},
        {"mov.u32 %r01, 0;", nullptr},
        {"1 + 2;", nullptr},
        {"mov.u32 %r1 %r2;", nullptr},
        {"mov.u32 %r1, ;", nullptr},
        {"%r1 %r2;", nullptr},
    };
    for (const Case &c : cases) {
        Module m = parse_body(".shared .align 16 .b8 smem[128]; .shared .u32 words[8];\n" + std::string(c.statement));
        if (c.operands) {
            ASSERT_TRUE(m) << c.statement << ": " << last_message();
            EXPECT_EQ(shown(m, 0), c.operands) << c.statement;
        } else EXPECT_FALSE(m) << c.statement;
    }
}

TEST(Operands, OpcodesHaveModifiersAndTypes) {
    Module m = parse_body("cvt.rn.f16x2.f32 %r1, %f1, %f2;\nld .global .shared::cta.u32 %r1, [%rd1];");
    ASSERT_TRUE(m) << last_message();
    const PtxInstruction &cvt = instruction(m, 0), &ld = instruction(m, 1);
    EXPECT_STREQ(cvt.opcode, "cvt");
    EXPECT_STREQ(cvt.full, "cvt.rn.f16x2.f32");
    ASSERT_EQ(cvt.modifier_count, 3);
    EXPECT_STREQ(cvt.modifiers[0], "rn");
    ASSERT_EQ(cvt.type_count, 2);
    EXPECT_EQ(cvt.types[0], PTX_F16X2);
    EXPECT_EQ(cvt.types[1], PTX_F32);
    EXPECT_TRUE(ptx_has(&cvt, "rn"));
    EXPECT_FALSE(ptx_has(&cvt, "rz"));
    EXPECT_STREQ(ld.full, "ld.global.shared::cta.u32");
    EXPECT_TRUE(ptx_has(&ld, "shared::cta"));
}

TEST(Operands, TextIsOneLine) {
    Module m = parse_body("@!%p1\tadd.s32   %r1, // a comment\n\t %r2, /* another\none */ 5 ;");
    ASSERT_TRUE(m) << last_message();
    EXPECT_STREQ(instruction(m, 0).text, "add.s32 %r1, %r2, 5");
    EXPECT_EQ(instruction(m, 0).guard, 1);
    EXPECT_TRUE(instruction(m, 0).guard_negated);
}

TEST(Operands, GuardsBelongToOneInstruction) {
    Module m = parse_body("@%p2 ret;\nret;");
    ASSERT_TRUE(m) << last_message();
    EXPECT_EQ(instruction(m, 0).guard, 2);
    EXPECT_FALSE(instruction(m, 0).guard_negated);
    EXPECT_EQ(instruction(m, 1).guard, -1);
    EXPECT_FALSE(parse_body("@%r1 ret;"));
    EXPECT_FALSE(parse_body("@%p9 ret;"));
}

TEST(Operands, VectorRegistersHaveComponents) {
    Module m = parse_body(".reg .v4 .f32 v;\nmov.f32 v.y, v.w;\nmov.f32 v.r, 0f00000000;\nld.global.v4.f32 v, [%rd1];");
    ASSERT_TRUE(m) << last_message();
    EXPECT_EQ(shown(m, 0), "v.y#37, v.w#39");
    EXPECT_EQ(shown(m, 1), "v.x#36, 0f00000000");
    EXPECT_EQ(shown(m, 2), "{v.x#36, v.y#37, v.z#38, v.w#39}, [%rd1#25]");
    EXPECT_FALSE(parse_body(".reg .v2 .f32 v;\nmov.f32 v.z, 0f00000000;"));
}

TEST(Operands, MoreThanEightAreRefused) { EXPECT_FALSE(parse_body("x.y %r0,%r1,%r2,%r3,%r4,%r5,%r6,%r7,%r0;")); }

} // namespace
