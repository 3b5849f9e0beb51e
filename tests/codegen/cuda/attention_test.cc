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
                  const std::vector<int64_t> &batches = {1}, int f16_arch = 90) {
        for (Case &c : cases) c.type = type, c.keeps = c.drops;
        CudaRunTest::Check(Text(Sorted(attention::All(cases))), batches, tolerance, false,
                           type == "f16" ? f16_arch : 80);
    }
};

// What each type's bound is: units in the last place of its significand, for sums of weights that are about 1.
struct Type {
    const char *name;
    double tolerance;
};
const std::vector<Type> types = {{"f16", 4e-3}, {"bf16", 4e-2}, {"tf32", 4e-3}};

// One of them, or, in long tests, all.
std::vector<Type> TypesFrom(size_t first) {
    return InLongTests() ? types : std::vector<Type>{types[first % types.size()]};
}

TEST_F(CudaAttentionTest, TilesAndWidths) {
    for (const Type &t : TypesFrom(0)) {
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
    for (const Type &t : TypesFrom(1)) {
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
    for (const Type &t : TypesFrom(2)) {
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

// As ir/ops.def places them: a word of four keys of each eight, from 64 on.
TEST_F(CudaAttentionTest, BitsOfDropout) {
    const std::string text = "module \"core\" stage lower {\n}\nfunc infer {\n  input %q : f16[N, 2, 192, 8]\n"
                             "  input %s : i64\n  %y, %l, %b = attend_drop(%q, %q, %q, %s, %s; p = 0.3, key = \"k\")"
                             " : f32[N, 192, 16], f32[N, 2, 192, 1], i32[N, 2, 6, 192]\n  result b = %b\n}\n";
    CudaRunTest::Check(text, {2}, 0);
}

// A user reads f32, which attention does not make of what it rounds.
TEST_F(CudaAttentionTest, ARoundedResultOfTheFunction) {
    const std::string text = "module \"core\" stage lower {\n}\nfunc infer {\n  input %q : f16[N, 2, 37, 8]\n"
                             "  %y, %l = attend(%q, %q, %q; scale = 0.3) : f32[N, 37, 16], f32[N, 2, 37, 1]\n"
                             "  %r = cast(%y) : f16[N, 37, 16]\n  result r = %r\n}\n";
    CudaRunTest::Check(text, {2}, 4e-3);
}

// Sizes, types and attributes by chance: a few, and in long tests many.
class Chooser {
  public:
    explicit Chooser(uint32_t seed) : engine_(seed) {}
    template <class T> T From(const std::vector<T> &all) { return all[engine_() % all.size()]; }
    bool OneOf(uint32_t count) { return engine_() % count == 0; }

    Case Draw() {
        const int share = From<int>({1, 1, 2, 3}), key_heads = From<int>({1, 2}), width = From(widths_);
        const int length = From(lengths_);
        Case c;
        c.s = {share * key_heads,
               key_heads,
               length,
               OneOf(2) ? length : From(lengths_),
               width,
               OneOf(3) ? From(widths_) : width};
        c.attrs = "; scale = " + std::to_string(1.0 / std::sqrt(static_cast<double>(width)));
        if (OneOf(2)) c.attrs += ", causal = true";
        if (OneOf(3)) c.mask = Mask(c.s);
        c.drops = OneOf(3);
        if (c.drops) c.attrs += ", p = 0.2, key = \"k\"";
        return c;
    }

  private:
    std::string Mask(const Sizes &s) {
        const std::string q = std::to_string(s.queries), k = std::to_string(s.keys), h = std::to_string(s.heads);
        return From<std::string>({"f32[" + q + ", " + k + "]", "f32[N, 1, 1, " + k + "]", "bool[N, 1, 1, " + k + "]",
                                  "bool[" + h + ", 1, " + k + "]", "f32[N, " + h + ", " + q + ", " + k + "]"});
    }

    const std::vector<int> widths_ = {16, 32, 64, 64, 128, 256, 80, 33, 7};
    const std::vector<int> lengths_ = {1, 15, 16, 63, 64, 65, 100, 129, 150};
    std::mt19937 engine_;
};

TEST_F(CudaAttentionTest, ByChance) {
    Chooser chooser(11);
    for (size_t i = 0; i < (InLongTests() ? 72u : 3u) && !HasFailure(); i++) {
        const Type &t = types[i % types.size()];
        const Case c = chooser.Draw();
        SCOPED_TRACE(std::to_string(i) + " " + t.name + " " + std::to_string(c.s.heads) + " of " +
                     std::to_string(c.s.key_heads) + " heads, " + std::to_string(c.s.queries) + " x " +
                     std::to_string(c.s.keys) + ", " + std::to_string(c.s.width) + " and " +
                     std::to_string(c.s.v_width) + c.attrs + ", mask " + c.mask);
        CheckAll({c}, t.name, t.tolerance, {static_cast<int64_t>(1 + i % 2)}, i % 2 ? 90 : 75);
    }
}

// No kernel of usual heads spills: their machine code for each architecture, of forward and backward.
TEST_F(CudaAttentionTest, NothingSpills) {
    for (const Type &t : types)
        for (int width : SomeOf({128, 64})) {
            Case c = {{2, 1, 200, 200, width, width}, "; scale = 0.1, causal = true"};
            c.type = t.name;
            const Module *m = PlannedForCuda(Text(Sorted(attention::All({c}))));
            ASSERT_NE(m, nullptr);
            const CudaModule *cuda = Emit(m);
            ASSERT_NE(cuda, nullptr);
            for (int arch : InLongTests() ? std::vector<int>{80, 89, 90, 120} : std::vector<int>{90}) Ptx(cuda, arch);
        }
}

} // namespace
