// golden_test.cc: the kernels of examples/fashion_mnist/mlp.amp as CUDA C, without the prelude: golden/mlp.cu.
#include <gtest/gtest.h>

#include "codegen/codegen.h"
#include "codegen/cuda/cuda.h"
#include "frontend/frontend.h"
#include "passes/passes.h"
#include "targets/target.h"
#include "tests/golden/golden.h"

namespace {

class GoldenTest : public testing::Test {
  protected:
    GoldenTest() { arena_init(&arena_, nullptr); }
    ~GoldenTest() override { arena_free(&arena_); }

    const CudaModule *Compile(const std::string &name, const std::string &text) {
        Diags diags;
        diags_init(&diags, &arena_);
        const Source source = {name.c_str(), text.c_str(), text.size()};
        const FrontendOptions frontend = {};
        Module *m = frontend_compile(&arena_, &diags, &source, &frontend);
        if (!m) return nullptr;
        PassOptions options = {};
        options.target = &target_cuda;
        amp_error err = {};
        const CudaModule *cuda = nullptr;
        EXPECT_EQ(passes_run(m, &diags, &options, STAGE_PLAN, nullptr, nullptr, &err), AMP_OK) << err.message;
        EXPECT_EQ(codegen_cuda(m, &cuda, &err), AMP_OK) << err.message;
        return cuda;
    }

    Arena arena_;
};

TEST_F(GoldenTest, FashionMnist) {
    if (setjmp(arena_.out_of_memory)) FAIL() << "no memory left";
    const std::string text = golden::Read("examples/fashion_mnist/mlp.amp");
    const CudaModule *cuda = Compile("mlp.amp", text);
    ASSERT_NE(cuda, nullptr);
    std::string functions;
    for (int i = 0; i < cuda->functions.len; i++)
        functions += std::string(i ? "\n" : "") + cuda->functions.data[i].source;
    golden::Check("tests/codegen/cuda/golden", "mlp", {".cu", functions}, {".cu"});
}

} // namespace
