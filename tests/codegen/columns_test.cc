// columns_test.cc: values whose last dimension depends on N, for which there is no CUDA code yet; sums of long columns.

#include "tests/base/pattern.h"
#include "tests/base/planted.h"
#include "tests/codegen/core_model.h"

namespace {

// Of every comparison here and beside: another bit of one variant, another op in the interpreter.
TEST_F(CoreModelTest, PlantedFaultsAreFound) {
    const std::string body = "  input %x : f32[N, 7]\n  %y = exp(%x) : f32[N, 7]\n  result y = %y\n";
    Module *m = Planned(Text(body), false, false);
    auto model = Compile(m, kUnoptimised);
    ASSERT_NE(model, nullptr);
    Values first;
    auto check = [&](int variant) {
        const Values given = Draw(m, m->funcs.data[0], 5);
        Values after = given;
        const Values want = Interpret(m->funcs.data[0], 5, &after);
        CheckRun(m, *model, 5, AMP_ISA_PORTABLE, 1e-5, variant, given, want, &first);
    };
    check(0);
    double &bit = first["y"][3];
    bit = static_cast<double>(std::nextafter(static_cast<float>(bit), INFINITY));
    ExpectFound("another bit", "y[3] differs in variant 1", [&] { check(1); });
    ir_op_at(m->funcs.data[0], 0)->code = OP_neg;
    ExpectFound("another op", "y, isa 0, variant 0", [&] { check(0); });
}

// N inside: rows, columns, and what is summed over.
TEST_F(CoreModelTest, BatchedProductsWithNInside) {
    Check(Text(R"(  input %a : f32[4, N, 6]
  input %b : f32[4, 6, 5]
  %s = batch_contract(%a, %a; tb = true) : f32[4, N, N]
  %y = batch_contract(%a, %b) : f32[4, N, 5]
  %g = batch_contract(%a, %y; ta = true) : f32[4, 6, 5]
  %z = batch_contract(%s, %y) : f32[4, N, 5]
  result s = %s
  result y = %y
  result g = %g
  result z = %z
)"),
          {1, 3, 40}, 1e-4);
}

// A chain of 30,000 additions would be 4e-6 off.
TEST_F(CoreModelTest, SumsOfLongColumns) {
    Check(Text(R"(  input %x : f32[N, 3]
  input %i : i32[N, 3]
  %a = abs(%x) : f32[N, 3]
  %s = reduce_sum(%a; dims = (0)) : f32[3]
  %f = cast(%i) : f32[N, 3]
  %q = div(%a, %f) : f32[N, 3]
  %v = reduce_sum(%q; dims = (0)) : f32[3]
  result s = %s
  result v = %v
)"),
          {64, 65, 129, 30000}, 5e-7);
}

// The mean of equal numbers is that number, so what is left of them is 0, and no sum grows less exact with its line:
// rows and columns within a block, of several, and cut short.
std::string MeansOfEqualNumbers(int columns) {
    const std::string text = R"(  input %x : f32[N, C]
  %none = const(; value = 0) : f32
  %number = const(; value = 100.1) : f32
  %z = mul(%x, %none) : f32[N, C]
  %e = add(%z, %number) : f32[N, C]
  %m = reduce_mean(%e; dims = (1), keep = true) : f32[N, 1]
  %d = sub(%e, %m) : f32[N, C]
  %r = reduce_max(%d; dims = (1)) : f32[N]
  %n = reduce_mean(%e; dims = (0)) : f32[C]
  %g = sub(%n, %number) : f32[C]
  %a = abs(%x) : f32[N, C]
  %s = reduce_mean(%a; dims = (1)) : f32[N]
  %t = reduce_mean(%a; dims = (0)) : f32[C]
  result r = %r
  result g = %g
  result s = %s
  result t = %t
)";
    return Replaced(text, "C\\]", std::to_string(columns) + "]");
}

TEST_F(CoreModelTest, MeansOfEqualNumbers) {
    Check(Text(MeansOfEqualNumbers(47)), {3, 300}, 1.2e-7);
    Check(Text(MeansOfEqualNumbers(10001)), {3}, 1.2e-7);
}

// A sum of all rows of one column, seen as a matrix of one element and as a scalar.
TEST_F(CoreModelTest, SumsOfOneColumnBroadcast) {
    Check(Text(R"(  input %x : f32[N, 1]
  input %t : f32[1, 1]
  %s = reduce_sum(%x; dims = (0)) : f32[1]
  %a = reshape(%s) : f32[1, 1]
  %b = mul(%a, %t) : f32[1, 1]
  %c = reshape(%b) : f32
  %d = broadcast(%c, %t; dims = (0, 1)) : f32[1, 1]
  %e = add(%d, %b) : f32[1, 1]
  result e = %e
)"),
          {1, 5, 130}, 1e-5);
}

} // namespace
