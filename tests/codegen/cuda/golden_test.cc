// golden_test.cc: kernels as CUDA C, without the prelude: those of examples/fashion_mnist/mlp.amp in golden/mlp.cu;
// of steps, attention in attention.cu, a convolution in convolution.cu, a layer norm in layer_norm.cu, a batch norm in
// batch_norm.cu; a step of small matrices as a whole in joined.cu.
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

    // Of all functions, or of those whose comment says |kind|.
    static std::string Functions(const CudaModule *cuda, const std::string &kind = "") {
        std::string all;
        for (int i = 0; i < cuda->functions.len; i++) {
            const std::string source = cuda->functions.data[i].source;
            if (source.find(kind) != std::string::npos) all += (all.empty() ? "" : "\n") + source;
        }
        return all;
    }

    Arena arena_;
};

TEST_F(GoldenTest, FashionMnist) {
    if (setjmp(arena_.out_of_memory)) FAIL() << "no memory left";
    const std::string text = golden::Read("examples/fashion_mnist/mlp.amp");
    const CudaModule *cuda = Compile("mlp.amp", text);
    ASSERT_NE(cuda, nullptr);
    golden::Check("tests/codegen/cuda/golden", "mlp", {".cu", Functions(cuda)}, {".cu"});
}

TEST_F(GoldenTest, Attention) {
    if (setjmp(arena_.out_of_memory)) FAIL() << "no memory left";
    const CudaModule *cuda = Compile("attention.amp", R"(amp 1
model attends(x: f32[N, 320, 48]) -> logits {
    h = linear(x; out = 48) as fc
    h = h + (self_attention(h; heads = 3, causal = true, p = 0.1) as attn)
    logits = linear(mean(h; dims = (1)); out = 10) as head
}
train attends {
    input targets: i32[N]
    loss = cross_entropy(logits, targets)
    optimizer = adamw(lr = 0.01)
}
precision fp16 { }
)");
    ASSERT_NE(cuda, nullptr);
    const std::string functions = Functions(cuda, "\n *   attention over ");
    golden::Check("tests/codegen/cuda/golden", "attention", {".cu", functions}, {".cu"});
}

TEST_F(GoldenTest, WholeStep) {
    if (setjmp(arena_.out_of_memory)) FAIL() << "no memory left";
    const CudaModule *cuda = Compile("small.amp", R"(amp 1
model small(x: f32[N, 20]) -> logits {
    h = relu(linear(x; out = 72) as fc1)
    logits = linear(h; out = 6) as fc2
}
train small {
    input targets: i32[N]
    loss = cross_entropy(logits, targets)
    optimizer = sgd(lr = 0.01)
}
precision fp16 { }
)");
    ASSERT_NE(cuda, nullptr);
    golden::Check("tests/codegen/cuda/golden", "joined", {".cu", Functions(cuda, "train_step")}, {".cu"});
}

TEST_F(GoldenTest, ConvolutionAndNorm) {
    if (setjmp(arena_.out_of_memory)) FAIL() << "no memory left";
    const CudaModule *cuda = Compile("image.amp", R"(amp 1
model image(x: f32[N, 8, 16, 16]) -> logits {
    h = relu(conv2d(x; out = 64, kernel = 3, padding = 1) as conv)
    h = layer_norm(mean(h; dims = (2, 3))) as ln
    logits = linear(h; out = 10) as head
}
train image {
    input targets: i32[N]
    loss = cross_entropy(logits, targets)
    optimizer = adamw(lr = 0.01)
}
precision fp16 { }
)");
    ASSERT_NE(cuda, nullptr);
    golden::Check("tests/codegen/cuda/golden", "convolution", {".cu", Functions(cuda, " = conv(")}, {".cu"});
    golden::Check("tests/codegen/cuda/golden", "layer_norm", {".cu", Functions(cuda, ": layer_norm")}, {".cu"});
}

TEST_F(GoldenTest, BatchNorm) {
    if (setjmp(arena_.out_of_memory)) FAIL() << "no memory left";
    const CudaModule *cuda = Compile("image.amp", R"(amp 1
model image(x: f32[N, 8, 16, 16]) -> logits {
    h = relu(batch_norm(conv2d(x; out = 64, kernel = 1)) as bn)
    logits = linear(mean(h; dims = (2, 3)); out = 10) as head
}
train image {
    input targets: i32[N]
    loss = cross_entropy(logits, targets)
    optimizer = adamw(lr = 0.01)
}
precision fp16 { }
)");
    ASSERT_NE(cuda, nullptr);
    golden::Check("tests/codegen/cuda/golden", "batch_norm", {".cu", Functions(cuda, "_pass1(")}, {".cu"});
}

} // namespace
