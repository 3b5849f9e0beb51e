// attention_test.cc: attention and its gradient on tensor cores, through the real NVRTC and the PTX interpreter,
// against the float64 interpreter: sizes about the edges of tiles, masks, dropout, heads that share keys, operands at
// strides.
#include "tests/codegen/attention_cases.h"
#include "tests/codegen/cuda/cuda_run.h"

namespace {

using attention::Case;
using attention::Sizes;

class CudaAttentionTest : public CudaRunTest {
  protected:
    // Weights and slopes are rounded to the type of the products, which the interpreter does not do here.
    void CheckAll(std::vector<Case> cases, const std::string &type, double tolerance,
                  const std::vector<int64_t> &batches = {1}) {
        for (Case &c : cases) c.type = type;
        CudaRunTest::Check(Text(Sorted(attention::All(cases))), batches, tolerance, false, type == "f16" ? 90 : 80);
    }
};

// What each type's bound is: units in the last place of its significand, for sums of weights that are about 1.
struct Type {
    const char *name;
    double tolerance;
};
const Type types[] = {{"f16", 4e-3}, {"bf16", 4e-2}, {"tf32", 4e-3}};

TEST_F(CudaAttentionTest, TilesAndWidths) {
    for (const Type &t : types) {
        CheckAll({{{2, 2, 3, 5, 4, 2}, "; scale = 0.5"},
                  {{1, 1, 70, 130, 40, 24}, "; scale = 0.15"},
                  {{1, 1, 130, 70, 64, 64}, "; scale = 0.12"},
                  {{1, 1, 17, 33, 128, 128}, "; scale = 0.08"},
                  {{1, 1, 18, 20, 256, 256}, "; scale = 0.06"},
                  {{1, 1, 33, 40, 1, 33}, "; scale = 1.0"},
                  {{1, 1, 1, 1, 7, 3}, "; scale = 1.0"}},
                 t.name, t.tolerance);
        if (HasFailure()) return;
    }
}

TEST_F(CudaAttentionTest, CausalAndHeadsThatShareKeys) {
    for (const Type &t : types) {
        CheckAll({{{2, 2, 140, 140, 16, 16}, "; scale = 0.25, causal = true"},
                  {{1, 1, 40, 70, 8, 8}, "; scale = 0.3, causal = true"},
                  {{1, 1, 70, 33, 8, 8}, "; scale = 0.3, causal = true"},
                  {{1, 1, 65, 65, 72, 80}, "; scale = 0.1, causal = true"},
                  {{1, 1, 33, 33, 160, 144}, "; scale = 0.08, causal = true"},
                  {{6, 2, 35, 66, 8, 12}, "; scale = 0.3"},
                  {{4, 1, 35, 66, 16, 24}, "; scale = 0.3, causal = true"}},
                 t.name, t.tolerance, {2});
        if (HasFailure()) return;
    }
}

// Of the last two masks one leaves queries without keys.
TEST_F(CudaAttentionTest, MasksAndDropout) {
    const Sizes s = {2, 1, 37, 70, 8, 8};
    const std::string scale = "; scale = 0.3", causal = "; scale = 0.3, causal = true";
    for (const Type &t : types) {
        CheckAll({{s, scale, "f32[N, 2, 37, 70]"},
                  {s, causal, "f32[37, 70]"},
                  {s, scale, "f32[N, 1, 1, 70]"},
                  {s, scale, "f32[37, 1]"},
                  {s, scale, "f32"},
                  {s, "; scale = -0.3"},
                  {s, scale, "bool[N, 1, 37, 70]"},
                  {s, causal, "bool[N, 1, 1, 70]"},
                  {s, scale, "bool[2, 37, 1]"},
                  {{2, 2, 37, 68, 8, 8}, scale + ", p = 0.25, key = \"k\"", "", "", true},
                  {{2, 1, 37, 67, 8, 8}, causal + ", p = 0.5, key = \"k\"", "f32[37, 67]", "", true}},
                 t.name, t.tolerance, {2});
        if (HasFailure()) return;
    }
}

} // namespace
