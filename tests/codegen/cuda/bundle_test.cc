// bundle_test.cc: independent kernels of different text in one launch: the bits of each alone.
#include "tests/codegen/cuda/cuda_run.h"

namespace {

// The gradients of a layer of IN and OUT units: of its data and of its weight.
const char layer[] = R"(  input %x : TYPE[N, IN]
  input %dy : TYPE[N, OUT]
  input %w : TYPE[IN, OUT]
  %dx = contract(%dy, %w; tb = true) : f32[N, IN]
  %dw = contract(%x, %dy; ta = true) : f32[IN, OUT]
  result dx = %dx
  result dw = %dw
)";

class Bundle : public CudaRunTest {
  protected:
    static std::string Layer(const std::string &type, const std::string &in, const std::string &out) {
        return With(With(With(layer, "TYPE", type), "IN", in), "OUT", out);
    }

    // By launch: its parts, or 0 where there is one.
    static std::vector<int> Parts(const CudaModule *cuda) {
        std::vector<int> parts;
        const CudaProgram &p = cuda->programs.data[0];
        for (int i = 0; i < p.kernels.len; i++) {
            const int count = p.kernels.data[i].parts.len;
            parts.push_back(count > 1 ? count : 0);
        }
        return parts;
    }

    // By launch that has several parts: the members of each.
    static std::vector<std::vector<int>> Members(const CudaModule *cuda) {
        std::vector<std::vector<int>> members;
        const CudaProgram &p = cuda->programs.data[0];
        for (int i = 0; i < p.kernels.len; i++) {
            const CudaKernelEntry &e = p.kernels.data[i];
            if (e.parts.len > 1) members.emplace_back();
            for (int part = 0; part < e.parts.len && e.parts.len > 1; part++)
                members.back().push_back(e.parts.data[part].members);
        }
        return members;
    }

    // Launches with |parts| parts each; near the interpreter, and the bits of launches for each kernel.
    void Expect(const std::string &body, const std::vector<int> &parts, const std::vector<int64_t> &batches, int arch) {
        Module *m = PlannedForCuda(Text(body));
        ASSERT_NE(m, nullptr);
        const CudaModule *cuda = Emit(m), *alone = EmitAlone(m);
        ASSERT_EQ(Parts(cuda), parts) << Functions(cuda);
        for (int count : Parts(alone)) EXPECT_EQ(count, 0);
        ExpectTheBitsOf(m, cuda, alone, batches, arch, 2e-3);
    }
};

TEST_F(Bundle, GradientsOfALayer) {
    Expect(Layer("f16", "136", "72"), {2}, {1, 70, 300}, 80);
    Expect(Layer("f16", "72", "200"), {2}, {130}, 75);
    Expect(Layer("bf16", "200", "264"), {2}, {130}, 90);
}

// Long sums begin, whatever the order of the kernels.
TEST_F(Bundle, WeightGradientIsFirst) {
    Module *m = PlannedForCuda(Text(Layer("f16", "136", "72")));
    ASSERT_NE(m, nullptr);
    const CudaKernelEntry &e = Emit(m)->programs.data[0].kernels.data[0];
    ASSERT_EQ(e.members.len, 2);
    const Op *first = ir_op_at(m->funcs.data[0], e.members.data[0]->first);
    EXPECT_TRUE(ir_attr(first, "ta")->b) << Print(m);
}

// Operands in f32, which each product rounds as it loads them.
TEST_F(Bundle, RoundedOperands) {
    const std::string model = R"(  input %x : f32[N, 136]
  input %dy : f32[N, 72]
  input %w : f32[136, 72]
  %x1 = cast(%x) : LOW[N, 136]
  %dy1 = cast(%dy) : LOW[N, 72]
  %w1 = cast(%w) : LOW[136, 72]
  %dx = contract(%dy1, %w1; tb = true) : f32[N, 136]
  %dw = contract(%x1, %dy1; ta = true) : f32[136, 72]
  result dx = %dx
  result dw = %dw
)";
    for (const char *low : {"f16", "tf32"}) Expect(With(model, "LOW", low), {2}, {70}, 80);
}

// The product of ten columns has tiles of its own.
TEST_F(Bundle, NarrowProduct) { Expect(Layer("f16", "136", "10"), {2}, {1, 150}, 90); }

// Blocks of multiply-adds have one size for each tile.
TEST_F(Bundle, MultiplyAdds) {
    Expect(Layer("f32", "40", "24"), {2}, {1, 70}, 80);
    Expect(Layer("f32", "136", "72"), {0, 0}, {70}, 80);
}

// Of a batch and of parts of a sum, blocks stand along the third dimension too.
TEST_F(Bundle, GridsOfThreeDimensions) {
    Expect(R"(  input %x : f16[3, 40 * N, 24]
  input %w : f16[3, 24, 88]
  input %a : f16[64 * N, 72]
  input %b : f16[64 * N, 40]
  %y = batch_contract(%x, %w) : f32[3, 40 * N, 88]
  %p = contract(%a, %b; ta = true, parts = 3) : f32[3, 72, 40]
  %s = sum_parts(%p) : f32[72, 40]
  result y = %y
  result s = %s
)",
           {2, 0}, {1, 3}, 80);
}

// Sums along rows of 50 columns, a warp a row, and of 1500, a block a row; and of one row, where most blocks have
// none.
TEST_F(Bundle, Rows) {
    Expect(R"(  input %x : f32[N, 50]
  input %y : f32[N, 1500]
  input %z : f16[3, 200]
  %1 = reduce_sum(%x; dims = (1)) : f32[N]
  %2 = reduce_max(%y; dims = (1)) : f32[N]
  %3 = cast(%z) : f32[3, 200]
  %4 = reduce_sum(%3; dims = (1)) : f32[3]
  result a = %1
  result b = %2
  result c = %4
)",
           {3}, {1, 37}, 80);
}

// Sums down rows: different numbers of columns of one text, another text, and segments.
TEST_F(Bundle, Columns) {
    Expect(R"(  input %x : f32[N, 50]
  input %y : f32[N, 700]
  input %z : f16[N, 40]
  input %s : f32[N, 16, 72]
  %1 = reduce_sum(%x; dims = (0)) : f32[50]
  %2 = reduce_sum(%y; dims = (0)) : f32[700]
  %3 = cast(%z) : f32[N, 40]
  %4 = reduce_max(%3; dims = (0)) : f32[40]
  %5 = reduce_sum(%s; dims = (1)) : f32[N, 72]
  result a = %1
  result b = %2
  result c = %4
  result d = %5
)",
           {4}, {1, 37}, 90);
}

// Sums of equal columns beside sums of others: a batch is a part.
TEST_F(Bundle, BatchesOfColumns) {
    const std::string model = R"(  input %x : f32[N, 50]
  input %y : f32[N, 50]
  input %z : f16[N, 700]
  input %w : f16[N, 700]
  input %v : f16[N, 700]
  input %u : f32[N, 9]
  %1 = reduce_sum(%x; dims = (0)) : f32[50]
  %zf = cast(%z) : f32[N, 700]
  %3 = reduce_max(%zf; dims = (0)) : f32[700]
  %2 = reduce_sum(%y; dims = (0)) : f32[50]
  %wf = cast(%w) : f32[N, 700]
  %4 = reduce_max(%wf; dims = (0)) : f32[700]
  %6 = reduce_min(%u; dims = (0)) : f32[9]
  %vf = cast(%v) : f32[N, 700]
  %5 = reduce_max(%vf; dims = (0)) : f32[700]
  result a = %1
  result b = %2
  result c = %3
  result d = %4
  result e = %5
  result f = %6
)";
    Expect(model, {3}, {1, 37}, 80);
    Module *m = PlannedForCuda(Text(model));
    ASSERT_NE(m, nullptr);
    EXPECT_EQ(Members(Emit(m)), (std::vector<std::vector<int>>{{2, 3, 1}}));
}

// Batches whose blocks follow one another, or have a dimension of the grid to themselves, and scalars beside them.
TEST_F(Bundle, BatchesOfElements) {
    const std::string model = R"(  input %x : f32[70, 40]
  input %y : f32[1000]
  input %z : f32[33, 24]
  input %w : f32[5000]
  input %p : f32[3, 5, 7]
  input %q : f32[3, 5, 7]
  input %s : f32
  input %n : f32[N, 6]
  %1 = exp(%x) : f32[70, 40]
  %2 = exp(%y) : f32[1000]
  %3 = neg(%z) : f32[33, 24]
  %4 = neg(%w) : f32[5000]
  %5 = permute(%p; dims = (0, 2, 1)) : f32[3, 7, 5]
  %6 = permute(%q; dims = (0, 2, 1)) : f32[3, 7, 5]
  %7 = tanh(%s) : f32
  %8 = tanh(%n) : f32[N, 6]
  result a = %1
  result b = %2
  result c = %3
  result d = %4
  result e = %5
  result f = %6
  result g = %7
  result h = %8
)";
    Module *m = PlannedForCuda(Text(model));
    ASSERT_NE(m, nullptr);
    const std::vector<std::vector<int>> members = Members(Emit(m));
    ASSERT_EQ(members.size(), 1u) << Functions(Emit(m));
    Expect(model, {(int)members[0].size()}, {1, 37}, 90);
    int kernels = 0;
    for (int count : members[0]) kernels += count;
    EXPECT_EQ(kernels, m->funcs.data[0]->kernels.len);
    EXPECT_EQ(std::count(members[0].begin(), members[0].end(), 2), 3) << Functions(Emit(m));
}

// More operands than parameters: they come out of a table, though no part is a batch.
TEST_F(Bundle, ManyOperands) {
    std::string inputs, ops, results;
    for (int part = 0; part < 3; part++) {
        const std::string shape = "f32[" + std::to_string(20 + part) + ", " + std::to_string(6 + part) + "]",
                          name = std::to_string(part);
        for (int i = 0; i < 28; i++) {
            const std::string in = "%x" + name + "_" + std::to_string(i), out = "%s" + name + "_" + std::to_string(i);
            inputs += "  input " + in + " : " + shape + "\n";
            if (!i) continue;
            const std::string before = i == 1 ? "%x" + name + "_0" : "%s" + name + "_" + std::to_string(i - 1);
            ops += "  " + out + " = " +
                   (part == 1   ? "sub"
                    : part == 2 ? "maximum"
                                : "add") +
                   "(" + before + ", " + in + ") : " + shape + "\n";
        }
        results += "  result r" + name + " = %s" + name + "_27\n";
    }
    Expect("  input %n : f32[N]\n" + inputs + ops + results + "  result n = %n\n", {4}, {1}, 80); // one copies %n
}

// Segments of few rows, which fewer threads add, beside all rows: some threads have none.
TEST_F(Bundle, ColumnsOfFewerThreads) {
    Expect(R"(  input %x : f32[N, 50]
  input %s : f32[N, 3, 72]
  input %t : f16[N, 33, 64]
  %1 = reduce_sum(%x; dims = (0)) : f32[50]
  %2 = reduce_sum(%s; dims = (1)) : f32[N, 72]
  %f = cast(%t) : f32[N, 33, 64]
  %3 = reduce_max(%f; dims = (1)) : f32[N, 64]
  result a = %1
  result b = %2
  result c = %3
)",
           {3}, {1, 37}, 80);
}

// Rows beside columns.
TEST_F(Bundle, NotOfBlocksThatDiffer) {
    Expect(R"(  input %x : f32[N, 50]
  %1 = reduce_sum(%x; dims = (0)) : f32[50]
  %2 = reduce_sum(%x; dims = (1)) : f32[N]
  result a = %1
  result b = %2
)",
           {0, 0}, {1, 37}, 80);
}

// One reads what the other makes; both have one text.
TEST_F(Bundle, NotOfKernelsThatNeedEachOther) {
    Expect(R"(  input %x : f16[N, 72]
  input %w : f16[72, 72]
  input %v : f16[40, 72]
  %y = contract(%x, %w) : f32[N, 72]
  %h = cast(%y) : f16[N, 72]
  %z = contract(%h, %v; tb = true) : f32[N, 40]
  result z = %z
)",
           {0, 0}, {70}, 90);
    Expect(R"(  input %x : f16[N, 72]
  input %v : f16[72, 40]
  input %w : f16[72, 40]
  %y = contract(%x, %v) : f32[N, 40]
  %z = contract(%x, %w) : f32[N, 40]
  result y = %y
  result z = %z
)",
           {0}, {70}, 90); // a batch
}

} // namespace
