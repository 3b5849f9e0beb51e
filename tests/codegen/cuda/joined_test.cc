// joined_test.cc: all kernels of a function of small matrices in one launch: the bits of a launch for each.
#include "tests/codegen/cuda/cuda_run.h"

namespace {

// Two layers, a loss, the gradients of both, and the update of a weight where they are finite.
const char perceptron[] = R"(  input %x : f32[ROWS, IN]
  input %target : f32[ROWS, OUT]
  input %w1 : TYPE[MID, IN]
  input %w2 : TYPE[OUT, MID]
  input %bias : TYPE[MID]
  input %rate : f32
  state %w : f32[OUT, MID]
  %x1 = cast(%x) : TYPE[ROWS, IN]
  %a = contract(%x1, %w1; tb = true) : f32[ROWS, MID]
  %b = cast(%bias) : f32[MID]
  %s = add(%a, %b) : f32[ROWS, MID]
  %t = ACTIVATION(%s) : f32[ROWS, MID]
  %h = cast(%t) : TYPE[ROWS, MID]
  %y = contract(%h, %w2; tb = true) : f32[ROWS, OUT]
  %m = reduce_max(%y; dims = (1), keep = true) : f32[ROWS, 1]
  %c = sub(%y, %m) : f32[ROWS, OUT]
  %d = sub(%c, %target) : f32[ROWS, OUT]
  %mean = const(; value = 0.0009765625) : f32
  %e = mul(%d, %mean) : f32[ROWS, OUT]
  %q = mul(%e, %e) : f32[ROWS, OUT]
  %l = reduce_sum(%q; dims = (1)) : f32[ROWS]
  %loss = reduce_sum(%l; dims = (0)) : f32
  %dy = cast(%e) : TYPE[ROWS, OUT]
  %g = contract(%dy, %w2) : f32[ROWS, MID]
  %h1 = cast(%h) : f32[ROWS, MID]
  %gm = mul(%g, %h1) : f32[ROWS, MID]
  %dh = cast(%gm) : TYPE[ROWS, MID]
  %dh1 = cast(%dh) : f32[ROWS, MID]
  %db = reduce_sum(%dh1; dims = (0)) : f32[MID]
  %dw2 = contract(%dy, %h; ta = true) : f32[OUT, MID]
  %dw1 = contract(%dh, %x1; ta = true) : f32[MID, IN]
  %finite = is_finite(%dw2) : bool[OUT, MID]
  %wrong = not(%finite) : bool[OUT, MID]
  %any = reduce_or(%wrong) : bool
  %ok = not(%any) : bool
  %step = mul(%dw2, %rate) : f32[OUT, MID]
  %next = sub(%w, %step) : f32[OUT, MID]
  assign(%w, %next) if %ok
  result loss = %loss
  result y = %y
  result db = %db
  result dw1 = %dw1
)";

class Joined : public CudaRunTest {
  protected:
    struct Sizes {
        std::string in, mid, out, rows = "N";
    };

    static std::string Perceptron(const std::string &type, const Sizes &s, const std::string &activation = "tanh") {
        std::string body = With(With(With(perceptron, "TYPE", type), "ACTIVATION", activation), "ROWS", s.rows);
        return With(With(With(body, "OUT", s.out), "MID", s.mid), "IN", s.in);
    }

    std::string Whole(const std::string &body, const std::string &out, const std::string &mid) {
        return Text(body, "state %w : f32[" + out + ", " + mid + "] param\n");
    }

    // One launch, whose results are the same as with a launch for each kernel.
    void Expect(const std::string &text, const std::vector<int64_t> &batches, int arch) {
        Module *m = PlannedForCuda(text);
        ASSERT_NE(m, nullptr);
        EXPECT_TRUE(m->funcs.data[0]->joined);
        const CudaModule *cuda = Emit(m), *alone = EmitAlone(m);
        ASSERT_EQ(cuda->programs.data[0].kernels.len, 1) << Functions(cuda);
        EXPECT_GT(alone->programs.data[0].kernels.len, 4);
        ExpectTheBitsOf(m, cuda, alone, batches, arch, 1e-2);
    }

    // By part, its supersteps and the kernels that a block of it makes, as the comment of the function says them.
    static std::vector<std::string> Parts(const CudaModule *cuda) {
        std::vector<std::string> parts;
        const std::string all = cuda->functions.data[0].source;
        for (size_t at = all.find(" * part "); at != std::string::npos; at = all.find(" * part ", at + 1))
            parts.push_back(all.substr(at + 3, all.find('\n', at) - at - 3));
        return parts;
    }
};

TEST_F(Joined, APerceptron) {
    Expect(Whole(Perceptron("f16", {"64", "64", "10"}), "10", "64"), {1, 63, 64, 200}, 80);
    Expect(Whole(Perceptron("f16", {"24", "40", "7"}), "7", "40"), {129}, 90);
    Expect(Whole(Perceptron("f16", {"72", "128", "96"}), "96", "128"), {130}, 75);
}

TEST_F(Joined, OddWidths) {
    Expect(Whole(Perceptron("f16", {"33", "100", "3"}), "3", "100"), {70}, 80);
    Expect(Whole(Perceptron("bf16", {"1", "7", "1"}), "1", "7"), {65}, 90);
}

TEST_F(Joined, OtherTypes) {
    Expect(Whole(Perceptron("bf16", {"128", "128", "128"}, "exp"), "128", "128"), {100}, 80);
    Expect(Whole(Perceptron("tf32", {"32", "48", "16"}), "16", "48"), {100}, 90);
}

TEST_F(Joined, RowsOfSamples) {
    Expect(Whole(Perceptron("f16", {"16", "32", "8", "3 * N"}), "8", "32"), {1, 50, 300}, 90);
}

// What follows from what, and which kernels a block makes one after another.
TEST_F(Joined, Supersteps) {
    Module *m = PlannedForCuda(Whole(Perceptron("f16", {"64", "64", "16"}), "16", "64"));
    ASSERT_NE(m, nullptr);
    const CudaModule *cuda = Emit(m);
    EXPECT_EQ(Parts(cuda), (std::vector<std::string>{
                               "part 0, superstep 1: a block makes 64 rows of all that follows",
                               "part 1, superstep 2",
                               "part 2, superstep 2: a block makes all that follows",
                               "part 3, superstep 2",
                               "part 4, superstep 2",
                               "part 5, superstep 3",
                           }))
        << Functions(cuda);
}

// Kernels that do not need one another share a launch without waiting, or have none in common.
TEST_F(Joined, OnlyWhatDepends) {
    const std::string three = R"(  input %x : f16[N, 64]
  input %w : f16[64, 64]
  %a = contract(%x, %w) : f32[N, 64]
  %b = contract(%x, %w; tb = true) : f32[N, 64]
  %c = contract(%x, %x; ta = true) : f32[64, 64]
  result a = %a
  result b = %b
  result c = %c
)";
    const CudaModule *cuda = Emit(PlannedForCuda(Text(three)));
    ASSERT_EQ(cuda->programs.data[0].kernels.len, 1);
    EXPECT_EQ(cuda->programs.data[0].kernels.data[0].tickets, 0) << Functions(cuda);
}

// What has wide matrices, multiply-adds in f32, or no fusion, has a launch for each kernel.
TEST_F(Joined, OnlySmallFunctions) {
    const auto joined = [&](const std::string &body, const std::string &out, const std::string &mid, bool no_fuse) {
        return PlannedForCuda(Whole(body, out, mid), no_fuse)->funcs.data[0]->joined;
    };
    EXPECT_TRUE(joined(Perceptron("f16", {"128", "64", "16"}), "16", "64", false));
    EXPECT_FALSE(joined(Perceptron("f16", {"129", "64", "16"}), "16", "64", false));
    EXPECT_FALSE(joined(Perceptron("f16", {"64", "136", "16"}), "16", "136", false));
    EXPECT_FALSE(joined(Perceptron("f16", {"64", "64", "136"}), "136", "64", false));
    EXPECT_FALSE(joined(Perceptron("f32", {"64", "64", "16"}), "16", "64", false));
    EXPECT_FALSE(joined(Perceptron("f16", {"64", "64", "16"}), "16", "64", true));
}

} // namespace
