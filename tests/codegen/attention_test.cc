// attention_test.cc: attention by tiles, forward and backward, against the float64 interpreter: sizes about the edges
// of tiles and blocks, masks, dropout, heads that share keys, operands at strides, 16-bit types.
#include "tests/codegen/attention_cases.h"
#include "tests/codegen/core_model.h"

namespace {

using attention::Case;
using attention::Sizes;

class AttentionTest : public CoreModelTest {
  protected:
    void CheckAll(const std::vector<Case> &cases, double tolerance = 2e-5) {
        Check(Text(Sorted(attention::All(cases))), {1, 3}, tolerance);
    }
};

TEST_F(AttentionTest, TilesAndBlocks) {
    CheckAll({{{2, 2, 3, 5, 4, 2}, "; scale = 0.5"},
              {{2, 2, 70, 600, 40, 24}, "; scale = 0.15"},
              {{1, 1, 150, 150, 8, 8}, "; scale = 0.3"},
              {{1, 1, 33, 40, 256, 256}, "; scale = 0.06"},
              {{1, 1, 33, 40, 1, 33}, "; scale = 1.0"},
              {{1, 1, 1, 1, 7, 3}, "; scale = 1.0"}});
}

// 18 heads are enough for one walk that makes all three gradients.
TEST_F(AttentionTest, CausalAndHeadsThatShareKeys) {
    CheckAll({{{2, 2, 290, 290, 16, 16}, "; scale = 0.25, causal = true"},
              {{1, 1, 40, 70, 8, 8}, "; scale = 0.3, causal = true"},
              {{1, 1, 70, 33, 8, 8}, "; scale = 0.3, causal = true"},
              {{18, 18, 150, 150, 8, 8}, "; scale = 0.3, causal = true"},
              {{6, 2, 35, 66, 8, 12}, "; scale = 0.3"},
              {{36, 18, 35, 66, 8, 12}, "; scale = 0.3, causal = true"}});
}

// Of the last two masks one leaves queries without keys.
TEST_F(AttentionTest, MasksAndDropout) {
    const Sizes s = {2, 1, 37, 70, 8, 8};
    const std::string scale = "; scale = 0.3", causal = "; scale = 0.3, causal = true";
    CheckAll({{s, scale, "f32[N, 2, 37, 70]"},
              {s, causal, "f32[37, 70]"},
              {s, scale, "f32[N, 1, 1, 70]"},
              {s, scale, "f32[37, 1]"},
              {s, scale, "f32"},
              {s, scale, "bool[N, 1, 37, 70]"},
              {s, causal, "bool[N, 1, 1, 70]"},
              {s, scale, "bool[2, 37, 1]"},
              {{2, 2, 37, 68, 8, 8}, scale + ", p = 0.25, key = \"k\"", "", "f32", true},
              {{2, 1, 37, 67, 8, 8}, causal + ", p = 0.5, key = \"k\"", "f32[37, 67]", "f32", true}});
}

// Weights and gradients of scores are rounded to bf16, which the interpreter does not do here.
TEST_F(AttentionTest, SixteenBits) {
    CheckAll({{{2, 2, 37, 70, 16, 32}, "; scale = 0.25, causal = true", "", "bf16"},
              {{18, 6, 35, 67, 9, 5}, "; scale = 0.3", "", "bf16"},
              {{2, 2, 37, 70, 16, 16}, "; scale = 0.25, p = 0.5, key = \"k\"", "bool[N, 1, 37, 70]", "bf16", true}},
             4e-2);
    CheckAll(
        {{{2, 2, 37, 71, 16, 16}, "; scale = 0.25", "", "f16"}, {{2, 2, 37, 71, 16, 16}, "; scale = 0.25", "", "tf32"}},
        2e-3);
}

// A mask that is widened, and then seen with one more dimension.
TEST_F(AttentionTest, MaskThatIsAView) {
    Check(Text(R"(  input %q : f32[N, 1, 5, 8]
  input %x : f32[N, 5, 5]
  %h = cast(%x) : f16[N, 5, 5]
  %m = cast(%h) : f32[N, 5, 5]
  %v = reshape(%m) : f32[N, 1, 5, 5]
  %y, %l = attend(%q, %q, %q, %v; scale = 0.3) : f32[N, 5, 8], f32[N, 1, 5, 1]
  result y = %y
  result l = %l
)"),
          {1, 3}, 2e-5);
}

// Parts of a row, heads side by side, and a mask that is repeated: nothing is copied, and results that are moved to
// heads and back are not moved at all.
TEST_F(AttentionTest, OperandsThatAreMoved) {
    const std::string text = Text(R"(  input %x : f32[N, 40, 72]
  input %m : f32[40]
  %q = slice(%x; dim = 2, from = 0, to = 24) : f32[N, 40, 24]
  %k = slice(%x; dim = 2, from = 24, to = 48) : f32[N, 40, 24]
  %v = slice(%x; dim = 2, from = 48, to = 72) : f32[N, 40, 24]
  %q4 = reshape(%q) : f32[N, 40, 3, 8]
  %k4 = reshape(%k) : f32[N, 40, 3, 8]
  %v4 = reshape(%v) : f32[N, 40, 3, 8]
  %qh = permute(%q4; dims = (0, 2, 1, 3)) : f32[N, 3, 40, 8]
  %kh = permute(%k4; dims = (0, 2, 1, 3)) : f32[N, 3, 40, 8]
  %vh = permute(%v4; dims = (0, 2, 1, 3)) : f32[N, 3, 40, 8]
  %me = expand(%m) : f32[N, 3, 40, 40]
  %y, %l = attend(%qh, %kh, %vh, %me; scale = 0.3) : f32[N, 40, 24], f32[N, 3, 40, 1]
  %y4 = reshape(%y) : f32[N, 40, 3, 8]
  %yh = permute(%y4; dims = (0, 2, 1, 3)) : f32[N, 3, 40, 8]
  %yp = permute(%yh; dims = (0, 2, 1, 3)) : f32[N, 40, 3, 8]
  %yr = reshape(%yp) : f32[N, 40, 24]
  %z = add(%yr, %yr) : f32[N, 40, 24]
  %dq, %dk, %dv = attend_grad(%vh, %qh, %kh, %vh, %yr, %l, %me; scale = 0.3) : f32[N, 40, 24], f32[N, 40, 24], )"
                                  R"(f32[N, 40, 24]
  result z = %z
  result dq = %dq
  result dk = %dk
  result dv = %dv
)");
    Check(text, {1, 3}, 2e-5);
    const Func *f = Planned(text, false, false)->funcs.data[0];
    EXPECT_EQ(f->kernels.len, 3); // forward, z, backward
}

} // namespace
