// sums_test.cc: under `sums sm_80` and `sm_90` the CPU's products have the bits of the CUDA code's, which the
// interpreter of fakecuda runs: every product of the IR, on every instruction set.
#include "tests/codegen/cuda/cuda_run.h"

namespace {

class SumsTest : public CudaRunTest {
  protected:
    static std::string Under(int arch, const std::string &body) {
        return "module \"core\" stage lower {\n  sums sm_" + std::to_string(arch) + "\n}\nfunc infer {\n" + body +
               "}\n";
    }

    // |body| with TYPE in place of a type.
    void ExpectTheBitsOfCuda(const std::string &body, const std::vector<int64_t> &batches,
                             const std::vector<std::string> &types = {"f16", "bf16", "tf32"},
                             const std::vector<int> &archs = {80, 90}) {
        for (const std::string &type : types)
            for (int arch : ArchsOf(type + body, archs))
                ExpectTheBits(Under(arch, With(body, "TYPE", type)), arch, batches, type);
    }

    // A device has its own sums alone.
    static bool AddsAs(int arch) {
        if (!TestDriver::Asked()) return true;
        const int device = TestDriver::Get().info.arch;
        return device >= 80 && (device >= 90) == (arch >= 90);
    }

    void ExpectTheBits(const std::string &text, int arch, const std::vector<int64_t> &batches,
                       const std::string &type) {
        if (HasFailure() || !AddsAs(arch)) return;
        Module *cpu = Planned(text, false, false);
        ASSERT_NE(cpu, nullptr);
        EXPECT_EQ(cpu->sums, arch == 80 ? SUMS_SM_80 : SUMS_SM_90);
        const Built cuda = Build(text, false, arch);
        ASSERT_NE(cuda.ptx, nullptr);
        EXPECT_EQ(cuda.m->sums, SUMS_IEEE) << "sums are the CPU's";
        auto model = Compile(cpu, InLongTests() || TestDriver::Asked() ? nullptr : kUnoptimised);
        ASSERT_NE(model, nullptr);
        for (int64_t n : batches) {
            const Func *f = cpu->funcs.data[0];
            const Values given = Draw(cpu, f, n), want = RunOnCuda(cuda.cuda, *cuda.ptx, n, given);
            for (int isa = 0; isa < AMP_ISA_COUNT && !HasFailure(); isa++) {
                if (!HasIsa(isa)) continue;
                Values got;
                ProgramRun run(*model, f->name, isa, n);
                run.Set(given);
                run.Run();
                auto *program = model->Program(f->name);
                auto *results = static_cast<const amp_model_result *>(program->results.data);
                for (uint32_t i = 0; i < program->results.count; i++)
                    got[results[i].name] = run.Get(static_cast<uint32_t>(results[i].buffer));
                ExpectSame(want, got,
                           type + " sm_" + std::to_string(arch) + " isa " + std::to_string(isa) + " n " +
                               std::to_string(n) + " ");
            }
        }
    }
};

// The three products of a layer, with what follows them; the weight's gradient in parts.
TEST_F(SumsTest, Matrices) {
    ExpectTheBitsOfCuda(R"(  input %x : TYPE[32 * N, 70]
  input %w : TYPE[33, 70]
  input %dy : TYPE[32 * N, 33]
  input %b : f32[33]
  %y = contract(%x, %w; tb = true) : f32[32 * N, 33]
  %z = add(%y, %b) : f32[32 * N, 33]
  %dx = contract(%dy, %w) : f32[32 * N, 70]
  %dw = contract(%dy, %x; ta = true) : f32[33, 70]
  result z = %z
  result dx = %dx
  result dw = %dw
)",
                        {1, 21});
}

// Of a long k in parts: rows of either weight.
TEST_F(SumsTest, LongRows) {
    ExpectTheBitsOfCuda(R"(  input %x : TYPE[N, 1100]
  input %w : TYPE[9, 1100]
  input %v : TYPE[1100, 5]
  %y = contract(%x, %w; tb = true) : f32[N, 9]
  %z = contract(%x, %v) : f32[N, 5]
  result y = %y
  result z = %z
)",
                        {1, 21});
}

// Heads of one matrix, and what puts them together again; a batch of whole matrices.
TEST_F(SumsTest, Batches) {
    ExpectTheBitsOfCuda(R"(  input %x : TYPE[N, 37, 48]
  input %w : TYPE[2, 40, 24]
  %r = reshape(%x) : TYPE[N, 37, 2, 24]
  %q = permute(%r; dims = (0, 2, 1, 3)) : TYPE[N, 2, 37, 24]
  %s = batch_contract(%q, %q; tb = true) : f32[N, 2, 37, 37]
  %t = cast(%s) : TYPE[N, 2, 37, 37]
  %u = batch_contract(%t, %q; ta = true) : f32[N, 2, 37, 24]
  %p = permute(%u; dims = (0, 2, 1, 3)) : f32[N, 37, 2, 24]
  %y = reshape(%p) : f32[N, 37, 48]
  %e = expand(%w) : TYPE[N, 2, 40, 24]
  %v = batch_contract(%q, %e; tb = true) : f32[N, 2, 37, 40]
  result s = %s
  result y = %y
  result v = %v
)",
                        {1, 3});
}

// Windows over pixels that CUDA stores in four places, and over ones that it does not; a stride, gradients, and
// what is a gradient in form alone (conv_transpose2d).
TEST_F(SumsTest, Convolutions) {
    const std::string body = R"(  input %x : f32[N, CH, 11, 9]
  input %w : TYPE[3, 3, CH, 20]
  input %dy : TYPE[N, 6, 9, 20]
  input %p : TYPE[1, 1, CH, 10]
  input %k : TYPE[2, 2, CH, 5]
  %c = cast(%x) : TYPE[N, CH, 11, 9]
  %i = permute(%c; dims = (0, 2, 3, 1)) : TYPE[N, 11, 9, CH]
  %y = conv(%i, %w; stride = (2, 1), padding = (1, 1)) : f32[N, 6, 9, 20]
  %z = conv(%i, %p) : f32[N, 11, 9, 10]
  %u = conv_data(%i, %k) : f32[N, 12, 10, 5]
  %t = permute(%w; dims = (0, 1, 3, 2)) : TYPE[3, 3, 20, CH]
  %dx = conv_data(%dy, %t; stride = (2, 1), padding = (1, 1)) : f32[N, 11, 9, CH]
  %dw = conv_weight(%i, %dy; stride = (2, 1), padding = (1, 1)) : f32[3, 3, CH, 20]
  result y = %y
  result z = %z
  result u = %u
  result dx = %dx
  result dw = %dw
)";
    ExpectTheBitsOfCuda(With(body, "CH", "3"), {2, 40}, {"f16"}, {80, 90});
    ExpectTheBitsOfCuda(With(body, "CH", "3"), {2}, {"tf32"}, {80});
    ExpectTheBitsOfCuda(With(body, "CH", "8"), {40}, {"bf16"}, {90});
    ExpectTheBitsOfCuda(With(body, "CH", "1"), {2}, {"f16"}, {90});
}

// With dilated windows over 32 channels, whose weights the data's gradient reads transposed.
TEST_F(SumsTest, TransposedWeights) {
    ExpectTheBitsOfCuda(R"(  input %w : TYPE[3, 2, 32, 20]
  input %dy : TYPE[N, 4, 7, 20]
  %t = permute(%w; dims = (0, 1, 3, 2)) : TYPE[3, 2, 20, 32]
  %dx = conv_data(%dy, %t; dilation = (2, 1)) : f32[N, 8, 8, 32]
  result dx = %dx
)",
                        {3}, {"f16"});
}

} // namespace
