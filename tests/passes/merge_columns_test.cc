// merge_columns_test.cc: on CUDA, sums down the same columns become one kernel.
#include "passes/fuse/kernel_check.h"
#include "targets/target.h"
#include "tests/passes/core_pass_test.h"

namespace {

// A product of [N, 96] after the products of |kernels|.
std::string Product(const std::string &value, const std::string &of) {
    return "  kernel k" + value + " product \"\" {\n    %" + value + " = contract(%" + of + ", %w) : f32[N, 96]\n  }\n";
}

// "s", "%t = mul(..) : f32[N, 96]": the sum %s of %t.
std::string Sum(const std::string &value, const std::string &made_of, const std::string &more = "") {
    const std::string of = made_of[0] == '%' ? made_of.substr(0, made_of.find(' ')) : "%" + made_of;
    return "  kernel k" + value + " column \"\" {\n" + (made_of[0] == '%' ? "    " + made_of + "\n" : "") + "    %" +
           value + " = reduce_sum(" + of + "; dims = (0)) : f32[96]\n" + more + "  }\n";
}

class MergeColumnsTest : public CorePassTest {
  protected:
    // The columns of the kernels that are left.
    int Columns(const std::string &kernels, const std::string &results, const char *target = "cuda") {
        std::string text = std::string("module \"t\" stage fuse {\n  target ") + target +
                           "\n}\nfunc f {\n  input %a : f32[N, 96]\n  input %w : f32[96, 96]\n" + kernels;
        for (char result : results) text += std::string("  result ") + result + " = %" + result + "\n";
        Module *m = Read(text + "}\n");
        options_.target = target_find(target);
        EXPECT_EQ(nullptr, kernel_check(m->funcs.data[0])) << kernel_check(m->funcs.data[0]);
        EXPECT_TRUE(Run(m, STAGE_MASTERS, STAGE_BUCKETS)) << Diagnostics();
        EXPECT_EQ(nullptr, kernel_check(m->funcs.data[0])) << kernel_check(m->funcs.data[0]) << Print(m);
        int count = 0;
        for (int i = 0; i < m->funcs.data[0]->kernels.len; i++)
            count += m->funcs.data[0]->kernels.data[i]->kind == KERNEL_COLUMN;
        return count;
    }
};

TEST_F(MergeColumnsTest, SumsThatShareAnOperand) {
    const std::string kernels =
        Product("d", "a") + Sum("s", "d") + Product("x", "d") + Sum("u", "%t = mul(%d, %x) : f32[N, 96]");
    EXPECT_EQ(1, Columns(kernels, "su"));
}

TEST_F(MergeColumnsTest, NotEqualSumsThatShareNone) {
    EXPECT_EQ(2, Columns(Product("d", "a") + Sum("s", "d") + Product("x", "d") + Sum("u", "x"), "su"));
}

TEST_F(MergeColumnsTest, SumsThatWouldBeAlone) {
    const std::string kernels =
        Product("d", "a") + Sum("s", "d") + Product("x", "d") + Sum("u", "%t = mul(%x, %x) : f32[N, 96]");
    EXPECT_EQ(1, Columns(kernels, "su"));
}

// The sum of squares around a mean goes over its rows again.
TEST_F(MergeColumnsTest, ASumThatNeedsTheOther) {
    const std::string kernels = Product("x", "a") + Sum("s", "x") +
                                Sum("u", "%q = mul(%x, %s) : f32[N, 96]", "    %v = mul(%u, %s) : f32[96]\n");
    EXPECT_EQ(1, Columns(kernels, "sv"));
}

TEST_F(MergeColumnsTest, NotWhereSomethingBetweenNeedsTheFirst) {
    const std::string scaled = "  kernel k1 tile \"\" {\n    %b = mul(%d, %s) : f32[N, 96]\n  }\n";
    const std::string kernels =
        Product("d", "a") + Sum("s", "d") + scaled + Product("x", "b") + Sum("u", "%t = mul(%d, %x) : f32[N, 96]");
    EXPECT_EQ(2, Columns(kernels, "su"));
}

// Each takes a turn at the memory that threads of a block share.
TEST_F(MergeColumnsTest, AFewSumsAtMost) {
    std::string kernels = Product("a0", "a");
    for (const std::string k : {"p", "q", "r", "s", "t", "u"})
        kernels += Product("x" + k, "a0") + Sum(k, "%t" + k + " = mul(%a0, %x" + k + ") : f32[N, 96]");
    EXPECT_EQ(2, Columns(kernels, "pqrstu"));
}

} // namespace
