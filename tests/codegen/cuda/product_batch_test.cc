// product_batch_test.cc: products of equal text that do not need each other are one launch.
#include "tests/codegen/cuda/cuda_run.h"

namespace {

class ProductBatchTest : public CudaRunTest {
  protected:
    // How many products of one text each launch of products has; products of different text (bundles) count as one
    // each.
    static std::vector<int> Members(const CudaModule *cuda) {
        std::vector<int> members;
        const CudaProgram &p = cuda->programs.data[0];
        for (int i = 0; i < p.kernels.len; i++) {
            const CudaKernelEntry &e = p.kernels.data[i];
            if (e.members.data[0]->kind != KERNEL_PRODUCT) continue;
            if (e.parts.len > 1) members.insert(members.end(), static_cast<size_t>(e.parts.len), 1);
            else members.push_back(e.members.len);
        }
        return members;
    }

    // |body| has |members| products a launch, and is right.
    void Expect(const std::string &body, const std::vector<int> &members,
                const std::vector<int64_t> &batches = {1, 9}) {
        const std::string text = "module \"core\" stage lower {\n}\nfunc infer {\n" + body + "}\n";
        Module *m = PlannedForCuda(text, false);
        ASSERT_NE(m, nullptr);
        const CudaModule *cuda = Emit(m);
        ASSERT_NE(cuda, nullptr);
        EXPECT_EQ(Members(cuda), members) << Functions(cuda);
        Check(text, batches, 2e-3);
    }
};

// Three layers of one input, which each rounds: an operand, a result and what follows are the member's.
TEST_F(ProductBatchTest, LayersOfOneInput) {
    for (const std::string type : {"f16", "f32"}) {
        std::string inputs = "  input %x : f32[15 * N, 40]\n", ops, results;
        for (const std::string k : {"0", "1", "2"}) {
            inputs += "  input %w" + k + " : " + type + "[40, 72]\n  input %b" + k + " : f16[72]\n";
            if (type == "f16") ops += "  %a" + k + " = cast(%x) : f16[15 * N, 40]\n";
            ops += "  %y" + k + " = contract(" + (type == "f16" ? "%a" + k : "%x") + ", %w" + k +
                   ") : f32[15 * N, 72]\n  %c" + k + " = cast(%b" + k + ") : f32[72]\n  %s" + k + " = add(%y" + k +
                   ", %c" + k + ") : f32[15 * N, 72]\n  %r" + k + " = tanh(%s" + k + ") : f32[15 * N, 72]\n";
            results += "  result r" + k + " = %r" + k + "\n";
        }
        Expect(inputs + ops + results, {3});
    }
}

// All blocks of a launch count: by itself, a product of 512 x 512 has too few for large tiles.
TEST_F(ProductBatchTest, AllBlocksCountForTheTile) {
    std::string body;
    for (const char *k : {"0", "1", "2", "3", "4", "5", "6", "7"})
        body += std::string("  input %a") + k + " : f16[512, 16]\n  input %b" + k + " : f16[16, 512]\n";
    for (const int count : {2, 8}) {
        std::string ops, results;
        for (int i = 0; i < count; i++) {
            const std::string k = std::to_string(i);
            ops += "  %y" + k + " = contract(%a" + k + ", %b" + k + ") : f32[512, 512]\n";
            results += "  result y" + k + " = %y" + k + "\n";
        }
        const std::string text = "module \"core\" stage lower {\n}\nfunc infer {\n" + body + ops + results + "}\n";
        Module *m = PlannedForCuda(text, false);
        ASSERT_NE(m, nullptr);
        const CudaModule *cuda = Emit(m);
        ASSERT_NE(cuda, nullptr);
        EXPECT_EQ(Members(cuda), std::vector<int>{count});
        const CudaLaunch &l = cuda->programs.data[0].kernels.data[0].forms.data[0].launch;
        EXPECT_EQ(l.per[0], count == 8 ? 128 : 64);
        EXPECT_EQ(l.extent[2].mul, count);
    }
}

// The functions that are chosen by the number of blocks have the members, too.
TEST_F(ProductBatchTest, EveryFunctionHasThem) {
    const std::string body = "  input %x : f16[70 * N, 16]\n  input %u : f16[16, 136]\n  input %v : f16[16, 136]\n"
                             "  %y = contract(%x, %u) : f32[70 * N, 136]\n  %z = contract(%x, %v) : f32[70 * N, 136]\n"
                             "  result y = %y\n  result z = %z\n";
    Expect(body, {2}, {1, 3});
    Module *m = PlannedForCuda("module \"core\" stage lower {\n}\nfunc infer {\n" + body + "}\n", false);
    const CudaKernelEntry &e = Emit(m)->programs.data[0].kernels.data[0];
    ASSERT_EQ(e.forms.len, 2);
    EXPECT_EQ(e.forms.data[1].launch.extent[2].mul, 2);
}

TEST_F(ProductBatchTest, WeightGradientsInParts) {
    std::string inputs = "  input %x : f16[600 * N, 24]\n", ops, results;
    for (const std::string k : {"0", "1"}) {
        inputs += "  input %d" + k + " : f16[600 * N, 40]\n";
        ops += "  %p" + k + " = contract(%x, %d" + k + "; ta = true, parts = 3) : f32[3, 24, 40]\n  %w" + k +
               " = sum_parts(%p" + k + ") : f32[24, 40]\n";
        results += "  result w" + k + " = %w" + k + "\n";
    }
    Expect(inputs + ops + results, {2});
}

TEST_F(ProductBatchTest, Convolutions) {
    Expect("  input %x : f16[N, 9, 7, 16]\n  input %w : f16[3, 3, 16, 24]\n  input %v : f16[3, 3, 16, 24]\n"
           "  %y = conv(%x, %w; padding = (1, 1)) : f32[N, 9, 7, 24]\n"
           "  %z = conv(%x, %v; padding = (1, 1)) : f32[N, 9, 7, 24]\n  result y = %y\n  result z = %z\n",
           {2});
}

// Blocks follow one another along the rows, then along the batch; or the batch is the grid's third dimension.
TEST_F(ProductBatchTest, BatchedProducts) {
    for (const bool n_in_rows : {false, true}) {
        const std::string a = n_in_rows ? "[6, N, 16]" : "[N, 70, 16]", b = n_in_rows ? "[6, 16, 24]" : "[N, 16, 24]";
        const std::string y = n_in_rows ? "[6, N, 24]" : "[N, 70, 24]";
        Expect("  input %x : f16" + a + "\n  input %v : f16" + b + "\n  input %w : f16" + b +
                   "\n  %y = batch_contract(%x, %v) : f32" + y + "\n  %z = batch_contract(%x, %w) : f32" + y +
                   "\n  result y = %y\n  result z = %z\n",
               n_in_rows ? std::vector<int>{1, 1} : std::vector<int>{2});
    }
}

TEST_F(ProductBatchTest, WhatDiffersOrDependsStaysAlone) {
    const std::string inputs = "  input %x : f16[N, 32]\n  input %v : f16[32, 32]\n  input %w : f16[32, 32]\n"
                               "  input %u : f16[32, 48]\n";
    const std::string y = "  %y = contract(%x, %v) : f32[N, 32]\n  %l = cast(%y) : f16[N, 32]\n";
    Expect(inputs + y + "  %z = contract(%l, %w) : f32[N, 32]\n  %k = cast(%z) : f16[N, 32]\n  result k = %k\n",
           {1, 1});
    Expect(inputs + y + "  %z = contract(%x, %u) : f32[N, 48]\n  %k = cast(%z) : f16[N, 48]\n  result l = %l\n" +
               "  result k = %k\n",
           {1, 1});
    Expect(inputs + y + "  %z = contract(%x, %w) : f32[N, 32]\n  %r = tanh(%z) : f32[N, 32]\n" +
               "  %k = cast(%r) : f16[N, 32]\n  result l = %l\n  result k = %k\n",
           {1, 1});
}

} // namespace
