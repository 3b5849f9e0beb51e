// simplify_test.cc: whole models, and what is left out on request. Each rule by itself: cases/simplify.ir.
#include "tests/passes/core_pass_test.h"

namespace {

class SimplifyTest : public CorePassTest {};

TEST_F(SimplifyTest, IsSkippedOnRequest) {
    options_.without[STAGE_SIMPLIFY] = true;
    Module *m = ReadFunc("optimizer",
                         "input %x : f32[N, 4]\n%1 = cast(%x) : f32[N, 4]\n%y = neg(%1) : f32[N, 4]\nresult y = %y\n");
    ASSERT_TRUE(Run(m, STAGE_SIMPLIFY));
    EXPECT_EQ(STAGE_SIMPLIFY, m->stage);
    EXPECT_EQ("%1 = cast(%x)\n%y = neg(%1)\n", Ops(m->funcs.data[0]));
}

TEST_F(SimplifyTest, AnMlpLosesTheRoundingsOfItsGradientsOnly) {
    Module *m = Read(Golden("mlp_f16.optimizer.ir"));
    ASSERT_TRUE(Run(m, STAGE_SIMPLIFY));
    ASSERT_EQ(4, m->removed.len);
    EXPECT_STREQ("d.fc2.weight", m->removed.data[0].value);
    EXPECT_STREQ("f16 rounding of a weight gradient: the sum writes f32", m->removed.data[1].what);
    // The forward pass keeps every cast.
    Module *before = Read(Golden("mlp_f16.optimizer.ir"));
    EXPECT_EQ(Ops(ir_func_find(before, "infer")), Ops(ir_func_find(m, "infer")));
    Module *f32 = Read(Golden("mlp_f32.optimizer.ir"));
    ASSERT_TRUE(Run(f32, STAGE_SIMPLIFY));
    EXPECT_EQ(0, f32->removed.len);
}

} // namespace
