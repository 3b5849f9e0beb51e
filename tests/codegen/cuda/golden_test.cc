// golden_test.cc: four kernels as CUDA C, without the prelude, for a person to read: golden/*.cu.  That code does not
// change unseen is the task of tools/replay, which compares all of it.
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "codegen/codegen.h"
#include "codegen/cuda/cuda.h"
#include "frontend/frontend.h"
#include "passes/passes.h"
#include "targets/target.h"
#include "tests/golden/golden.h"

namespace {

const char folder[] = "tests/codegen/cuda/golden";

// A file, what the comments of its kernels say, and the model that they are of.
struct Case {
    const char *file, *kernels, *model;
};

const Case cases[] = {
    {"product", "  fc2: linear + ", R"(
model perceptron(x: f32[N, 784]) -> logits {
    h = relu(linear(x; out = 256) as fc1)
    h = relu(linear(h; out = 256) as fc2)
    logits = linear(h; out = 10) as fc3
}
)"},
    {"convolution", " = conv(", R"(
model image(x: f32[N, 8, 16, 16]) -> logits {
    h = relu(conv2d(x; out = 64, kernel = 3, padding = 1) as conv)
    logits = linear(mean(h; dims = (2, 3)); out = 10) as head
}
)"},
    {"attention", "\n *   attention over ", R"(
model attends(x: f32[N, 320, 48]) -> logits {
    h = linear(x; out = 48) as fc
    h = h + (self_attention(h; heads = 3, causal = true, p = 0.1) as attn)
    logits = linear(mean(h; dims = (1)); out = 10) as head
}
)"},
    {"norm", "  ln: layer_norm ", R"(
model rows(x: f32[N, 512]) -> logits {
    h = linear(x; out = 512) as fc
    h = layer_norm(h) as ln
    logits = linear(h; out = 10) as head
}
)"},
};

std::string Training(const Case &c) {
    const std::string text = c.model;
    const size_t name = text.find("model ") + 6;
    return "amp 1" + text + "train " + text.substr(name, text.find('(', name) - name) + R"( {
    input targets: i32[N]
    loss = cross_entropy(logits, targets)
    optimizer = adamw(lr = 0.01)
}
precision fp16 { }
)";
}

class GoldenTest : public testing::TestWithParam<Case> {
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
        options.describe = codegen_cuda_describe;
        amp_error err = {};
        const CudaModule *cuda = nullptr;
        EXPECT_EQ(passes_run(m, &diags, &options, STAGE_LAST, nullptr, nullptr, &err), AMP_OK) << err.message;
        EXPECT_EQ(codegen_cuda(m, &cuda, &err), AMP_OK) << err.message;
        return cuda;
    }

    // The step's functions of |kernels|.
    static std::string Functions(const CudaModule *cuda, const std::string &kernels) {
        std::string all;
        for (int i = 0; i < cuda->functions.len; i++) {
            const std::string source = cuda->functions.data[i].source;
            const bool of_step = source.find(" train_step_k") != std::string::npos;
            if (!of_step || source.find(kernels) == std::string::npos) continue;
            all += (all.empty() ? "" : "\n") + source;
        }
        return all;
    }

    Arena arena_;
};

TEST_P(GoldenTest, IsAsWritten) {
    if (setjmp(arena_.out_of_memory)) FAIL() << "no memory left";
    const CudaModule *cuda = Compile(std::string(GetParam().file) + ".amp", Training(GetParam()));
    ASSERT_NE(cuda, nullptr);
    const std::string functions = Functions(cuda, GetParam().kernels);
    EXPECT_NE(functions, "") << "no kernel is of " << GetParam().kernels;
    golden::Check(folder, GetParam().file, {".cu", functions}, {".cu"});
}

INSTANTIATE_TEST_SUITE_P(Cuda, GoldenTest, testing::ValuesIn(cases),
                         [](const testing::TestParamInfo<Case> &info) { return std::string(info.param.file); });

TEST(GoldenFiles, EachHasACase) {
    std::set<std::string> known = {".", ".."};
    for (const Case &c : cases) known.insert(std::string(c.file) + ".cu");
    for (const std::string &file : golden::Cases(folder, ""))
        EXPECT_TRUE(known.count(file)) << folder << "/" << file << " has no case in golden_test.cc";
}

} // namespace
