// columns_test.cc: values whose last dimension depends on N, for which there is no CUDA code yet.
#include "tests/codegen/core_model.h"

namespace {

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

} // namespace
