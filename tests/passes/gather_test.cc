// gather_test.cc: on CUDA, kernels that may share a launch run one after the other.
#include "passes/fuse/kernel_check.h"
#include "targets/target.h"
#include "tests/passes/core_pass_test.h"

namespace {

class GatherTest : public CorePassTest {
  protected:
    const Func *Plan(const std::string &body) {
        Module *m = ReadFunc("lower", body);
        options_.target = &target_cuda;
        ir_compact(m);
        EXPECT_TRUE(Run(m, STAGE_TARGET, STAGE_PLAN)) << Diagnostics();
        const Func *f = m->funcs.data[0];
        EXPECT_EQ(nullptr, kernel_check(f)) << kernel_check(f);
        return f;
    }

    // The kernel that makes a value.
    static int KernelOf(const Func *f, const std::string &name) {
        for (int i = 0; i < f->kernels.len; i++)
            for (int j = 0; j < f->kernels.data[i]->count; j++) {
                const Op *o = ir_op_at(f, f->kernels.data[i]->first + j);
                if (o->n_out && name == ir_value(f, o->out[0])->name) return i;
            }
        ADD_FAILURE() << "nothing makes " << name;
        return -1;
    }
};

// Two layers, whose results are added up down the rows, and what is |between| them.
std::string Layers(const std::string &between, const std::string &results) {
    return "  input %x : f32[N, 96]\n  input %w1 : f32[96, 96]\n  input %w2 : f32[96, 96]\n"
           "  %y1 = contract(%x, %w1) : f32[N, 96]\n"
           "  %b1 = reduce_sum(%y1; dims = (0)) : f32[96]\n"
           "  %y2 = contract(%y1, %w2) : f32[N, 96]\n" +
           between +
           "  %b2 = reduce_sum(%y2; dims = (0)) : f32[96]\n"
           "  %y3 = contract(%y2, %w1) : f32[N, 96]\n" +
           results + "  result b2 = %b2\n  result y3 = %y3\n";
}

TEST_F(GatherTest, WhatNothingNeedsWaitsForItsEqual) {
    const Func *f = Plan(Layers("", "  result b1 = %b1\n"));
    EXPECT_EQ(KernelOf(f, "b1") + 1, KernelOf(f, "b2"));
    EXPECT_LT(KernelOf(f, "y2"), KernelOf(f, "b1"));
}

TEST_F(GatherTest, WhatIsNeededOnTheWayStays) {
    const Func *f = Plan(Layers("  %z = contract(%y2, %w1) : f32[N, 96]\n  %s = add(%z, %b1) : f32[N, 96]\n"
                                "  %t = contract(%s, %w2) : f32[N, 96]\n  %b3 = reduce_sum(%t; dims = (0)) : f32[96]\n",
                                "  result b3 = %b3\n"));
    EXPECT_LT(KernelOf(f, "b1"), KernelOf(f, "s"));
    EXPECT_LT(KernelOf(f, "t"), KernelOf(f, "b3"));
}

// Columns that have nothing in common wait too, but not for one that follows the sums which it adds up.
TEST_F(GatherTest, ColumnsOfOtherTextWait) {
    for (const bool pair : {false, true}) {
        const std::string last = pair ? "  %1 = reduce_sum(%s; dims = (1)) : f32[N, 64]\n"
                                        "  %b2 = reduce_sum(%1; dims = (0)) : f32[64]\n"
                                      : "  %b2 = reduce_max(%y2; dims = (0)) : f32[64]\n";
        const Func *f = Plan("  input %x : f32[N, 96]\n  input %w1 : f32[96, 96]\n  input %w2 : f32[96, 64]\n"
                             "  input %s : f32[N, 16, 64]\n"
                             "  %y1 = contract(%x, %w1) : f32[N, 96]\n"
                             "  %b1 = reduce_sum(%y1; dims = (0)) : f32[96]\n"
                             "  %y2 = contract(%y1, %w2) : f32[N, 64]\n" +
                             last +
                             "  %y3 = contract(%y2, %w2; tb = true) : f32[N, 96]\n"
                             "  result b1 = %b1\n  result b2 = %b2\n  result y3 = %y3\n");
        if (!pair) EXPECT_EQ(KernelOf(f, "b1") + 1, KernelOf(f, "b2"));
        else EXPECT_EQ(KernelOf(f, "1") + 1, KernelOf(f, "b2"));
        EXPECT_EQ(KernelOf(f, "b1") < KernelOf(f, "y2"), pair);
    }
}

// What the first one reads lives on until the second one runs.
TEST_F(GatherTest, OnlyALittleIsKeptForIt) {
    for (const bool large : {false, true}) {
        const std::string type = large ? "f32[N, 4096, 96]" : "f32[N, 128, 96]";
        const Func *f = Plan(
            "  input %x : " + type + "\n  input %w : f32[96, 96]\n  %y1 = contract(%x, %w) : " + type +
            "\n  %b1 = reduce_sum(%y1; dims = (1)) : f32[N, 96]\n" + "  %y2 = contract(%x, %w; tb = true) : " + type +
            "\n  %b2 = reduce_sum(%y2; dims = (1)) : f32[N, 96]\n" + "  result b1 = %b1\n  result b2 = %b2\n");
        EXPECT_EQ(KernelOf(f, "b1") + 1 < KernelOf(f, "b2"), large);
    }
}

// Where no more is in memory than at the peak, products gather until their blocks fill the waves of 132
// multiprocessors: 66 do not, 132 do.
TEST_F(GatherTest, ProductsFillWavesBelowThePeak) {
    for (const bool peak : {false, true})
        for (const std::string wide : {"768", "1536"}) {
            const std::string rows = "f32[16384 * N, ", type = rows + wide + "]";
            std::string body = "  input %x : " + rows + "1408]\n  input %w : f32[1408, " + wide + "]\n";
            if (peak) body += "  input %u : f32[" + wide + ", 64]\n";
            for (const std::string i : {"1", "2", "3"})
                if (peak) body += "  %p" + i + " = contract(%x, %w) : " + type + "\n";
            if (peak)
                body += "  %a = add(%p1, %p2) : " + type + "\n  %s = add(%a, %p3) : " + type +
                        "\n  %q = contract(%s, %u) : " + rows + "64]\n  result q = %q\n";
            for (const std::string i : {"1", "2"})
                body += "  %y" + i + " = contract(%x, %w) : " + type + "\n  %g" + i + " = contract(%y" + i +
                        ", %x; ta = true) : f32[" + wide + ", 1408]\n";
            const Func *f = Plan(body + "  result g1 = %g1\n  result g2 = %g2\n");
            EXPECT_EQ(KernelOf(f, "g1") + 1 == KernelOf(f, "g2"), peak && wide == "768") << peak << " " << wide;
        }
}

// Who reads it last, once all have moved, is charged for it: not who read it last before.
TEST_F(GatherTest, WhatAnotherReadIsKeptToo) {
    for (const bool large : {false, true}) {
        const std::string rows = large ? "f32[N, 4096, " : "f32[N, 128, ";
        std::string body = "  input %x : " + rows + "96]\n  input %u : f32[96, 8]\n  input %w : f32[96, 96]\n";
        for (const std::string i : {"1", "2"})
            body += "  %y" + i + " = contract(%x, %w; tb = " + (i == "1" ? "true" : "false") + ") : " + rows +
                    "96]\n  %d" + i + " = contract(%y" + i + ", %u) : " + rows + "8]\n  %m" + i + " = reduce_max(%y" +
                    i + "; dims = (2)) : " + rows.substr(0, rows.size() - 2) + "]\n  result d" + i + " = %d" + i +
                    "\n  result m" + i + " = %m" + i + "\n";
        const Func *f = Plan(body);
        EXPECT_EQ(KernelOf(f, "d1") + 1 < KernelOf(f, "d2"), large);
    }
}

TEST_F(GatherTest, ProductsOfOneInput) {
    const Func *f = Plan("  input %x : f16[N, 96]\n  input %u : f16[96, 96]\n  input %v : f16[96, 96]\n"
                         "  %y = contract(%x, %u) : f32[N, 96]\n  %s = reduce_sum(%y; dims = (1)) : f32[N]\n"
                         "  %z = contract(%x, %v) : f32[N, 96]\n  %t = reduce_sum(%z; dims = (1)) : f32[N]\n"
                         "  result s = %s\n  result t = %t\n");
    EXPECT_EQ(KernelOf(f, "y") + 1, KernelOf(f, "z"));
}

// Slices that differ in where they begin are no equals.
TEST_F(GatherTest, OtherShapesAndAttributesAreNoEquals) {
    const Func *f =
        Plan("  input %x : f32[N, 96]\n  input %w : f32[96, 96]\n"
             "  %y1 = contract(%x, %w) : f32[N, 96]\n  %s1 = slice(%y1; dim = 1, to = 8) : f32[N, 8]\n"
             "  %y2 = contract(%y1, %w) : f32[N, 96]\n  %s2 = slice(%y2; dim = 1, from = 8, to = 16) : f32[N, 8]\n"
             "  %y3 = contract(%y2, %w) : f32[N, 96]\n  %s3 = slice(%y3; dim = 1, to = 8) : f32[N, 8]\n"
             "  result s1 = %s1\n  result s2 = %s2\n  result s3 = %s3\n");
    EXPECT_EQ(KernelOf(f, "s1") + 1, KernelOf(f, "s3"));
}

} // namespace
