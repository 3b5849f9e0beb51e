// chain_test.cc: products that add to one another, which a block makes one after another: which are one launch, and
// that the bits are the same as with a launch for each.
#include "tests/codegen/cuda/cuda_run.h"

namespace {

// Three gradients of one value, as attention's queries, keys and values have them.
const char three[] = R"(  input %a : TYPE[N, OUT]
  input %b : TYPE[N, OUT]
  input %c : TYPE[N, OUT]
  input %u : TYPE[IN, OUT]
  input %v : TYPE[IN, OUT]
  input %w : TYPE[IN, OUT]
  input %r : TYPE[N, IN]
  %1 = contract(%a, %u; tb = true) : f32[N, IN]
  %2 = cast(%1) : TYPE[N, IN]
  %3 = add(%2, %r) : TYPE[N, IN]
  %4 = contract(%b, %v; tb = true) : f32[N, IN]
  %5 = cast(%4) : TYPE[N, IN]
  %6 = add(%5, %3) : TYPE[N, IN]
  %7 = contract(%c, %w; tb = true) : f32[N, IN]
  %8 = cast(%7) : TYPE[N, IN]
  %9 = add(%8, %6) : TYPE[N, IN]
  result x = %9
)";

class Chain : public CudaRunTest {
  protected:
    static std::string Three(const std::string &type, const std::string &in, const std::string &out) {
        return With(With(With(three, "TYPE", type), "IN", in), "OUT", out);
    }

    // By launch: the kernels of a chain, or 0.
    static std::vector<int> Chains(const CudaModule *cuda) {
        std::vector<int> chains;
        const CudaProgram &p = cuda->programs.data[0];
        for (int i = 0; i < p.kernels.len; i++)
            chains.push_back(p.kernels.data[i].parts.data[0].in_turn ? p.kernels.data[i].members.len : 0);
        return chains;
    }

    // Whatever the order of blocks: the same bits as with a launch for each kernel, near the interpreter's.
    void Expect(const std::string &body, const std::vector<int> &chains, const std::vector<int64_t> &batches,
                int arch) {
        Module *m = PlannedForCuda(Text(body));
        ASSERT_NE(m, nullptr);
        const CudaModule *cuda = Emit(m), *alone = EmitAlone(m);
        ASSERT_EQ(Chains(cuda), chains) << Functions(cuda);
        for (int count : Chains(alone)) EXPECT_EQ(count, 0);
        ExpectTheBitsOf(m, cuda, alone, batches, arch, 1e-2);
    }
};

TEST_F(Chain, GradientsOfOneValue) {
    Expect(Three("f16", "136", "72"), {3}, {1, 70, 300}, 80);
    Expect(Three("bf16", "72", "40"), {3}, {130}, 90);
    Expect(Three("f16", "72", "40"), {3}, {70}, 75);
    Expect(Three("f32", "40", "24"), {3}, {70}, 80); // by multiply-adds
}

// The second reads a result of the first as an operand, which other blocks make.
TEST_F(Chain, NotOfProductsThatNeedAllOfOneAnother) {
    Expect(R"(  input %x : f16[N, 72]
  input %w : f16[72, 72]
  input %v : f16[72, 72]
  input %r : f16[N, 72]
  %1 = contract(%x, %w) : f32[N, 72]
  %2 = cast(%1) : f16[N, 72]
  %3 = add(%2, %r) : f16[N, 72]
  %4 = contract(%3, %v) : f32[N, 72]
  %5 = cast(%4) : f16[N, 72]
  %6 = add(%5, %3) : f16[N, 72]
  result y = %6
)",
           {0, 0}, {70}, 80);
}

// Another number of terms is a size of a product whose weights have rows of n.
TEST_F(Chain, NotOfOtherText) {
    Expect(R"(  input %a : f16[N, 40]
  input %b : f16[N, 72]
  input %u : f16[136, 40]
  input %v : f16[136, 72]
  input %r : f16[N, 136]
  %1 = contract(%a, %u; tb = true) : f32[N, 136]
  %2 = cast(%1) : f16[N, 136]
  %3 = add(%2, %r) : f16[N, 136]
  %4 = contract(%b, %v; tb = true) : f32[N, 136]
  %5 = cast(%4) : f16[N, 136]
  %6 = add(%5, %3) : f16[N, 136]
  result x = %6
)",
           {0, 0}, {70}, 80);
}

// What is between two of them, and needs neither, goes after them.
TEST_F(Chain, IsGathered) {
    Expect(R"(  input %a : f16[N, 40]
  input %b : f16[N, 40]
  input %u : f16[136, 40]
  input %v : f16[136, 40]
  input %r : f16[N, 136]
  %1 = contract(%a, %u; tb = true) : f32[N, 136]
  %2 = cast(%1) : f16[N, 136]
  %3 = add(%2, %r) : f16[N, 136]
  %s = reduce_sum(%r; dims = (0)) : f16[136]
  %g = contract(%a, %r; ta = true) : f32[40, 136]
  %4 = contract(%b, %v; tb = true) : f32[N, 136]
  %5 = cast(%4) : f16[N, 136]
  %6 = add(%5, %3) : f16[N, 136]
  result x = %6
  result s = %s
  result g = %g
)",
           {2, 0, 0}, {70}, 80);
}

} // namespace
