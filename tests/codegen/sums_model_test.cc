// sums_model_test.cc: models under `sums sm_90`, fused and not, with layouts and without: the same bits, near the
// float64 interpreter, within the bounds of all memory.
#include "tests/codegen/core_model.h"

namespace {

class SumsModelTest : public CoreModelTest {
  protected:
    static std::string Under(const std::string &sums, const std::string &body, const std::string &states = "") {
        return "module \"core\" stage lower {\n  sums " + sums + "\n}\n" + states + "func infer {\n" + body + "}\n";
    }
};

// Products of matrices and of a batch, and one of f32 beside them, which the runtime makes.
TEST_F(SumsModelTest, Matrices) {
    Check(Under("sm_90", R"(  input %x : f16[9 * N, 70]
  input %dy : f16[9 * N, 33]
  input %u : f32[9 * N, 40]
  input %v : f32[40, 33]
  state %w : f32[33, 70]
  %w.h = cast(%w) : f16[33, 70]
  %y = contract(%x, %w.h; tb = true) : f32[9 * N, 33]
  %f = contract(%u, %v) : f32[9 * N, 33]
  %z = add(%y, %f) : f32[9 * N, 33]
  %r = cast(%z) : f16[9 * N, 33]
  %dx = contract(%r, %w.h) : f32[9 * N, 70]
  %dw = contract(%dy, %x; ta = true) : f32[33, 70]
  %b = reshape(%x) : f16[N, 9, 70]
  %s = batch_contract(%b, %b; tb = true) : f32[N, 9, 9]
  result z = %z
  result dx = %dx
  result dw = %dw
  result s = %s
)",
                "state %w : f32[33, 70] param = zeros()\n"),
          {1, 5}, 2e-3);
}

TEST_F(SumsModelTest, Images) {
    Check(Under("sm_80", R"(  input %x : bf16[N, 7, 6, 3]
  input %w : bf16[3, 3, 3, 40]
  input %dy : bf16[N, 4, 3, 40]
  %y = conv(%x, %w; stride = (2, 2), padding = (1, 1)) : f32[N, 4, 3, 40]
  %a = abs(%y) : f32[N, 4, 3, 40]
  %t = permute(%w; dims = (0, 1, 3, 2)) : bf16[3, 3, 40, 3]
  %dx = conv_data(%dy, %t; stride = (2, 2), padding = (1, 1)) : f32[N, 7, 6, 3]
  %dw = conv_weight(%x, %dy; stride = (2, 2), padding = (1, 1)) : f32[3, 3, 3, 40]
  result a = %a
  result dx = %dx
  result dw = %dw
)"),
          {1, 4}, 2e-3);
}

// The kernels are the model's own: the runtime has no product to make.
TEST_F(SumsModelTest, TheRuntimeWalksTiles) {
    Module *m = Planned(Under("sm_90", R"(  input %x : f16[N, 40]
  input %w : f16[40, 40]
  %y = contract(%x, %w) : f32[N, 40]
  result y = %y
)"),
                        false, false);
    ASSERT_NE(m, nullptr);
    auto model = Compile(m, kUnoptimised);
    ASSERT_NE(model, nullptr);
    EXPECT_STREQ(model->desc()->sums, "sm_90");
    auto *program = model->Program("infer");
    auto *kernels = static_cast<const amp_model_kernel *>(program->kernels.data);
    bool tile = false;
    for (uint32_t i = 0; i < program->kernels.count; i++) {
        EXPECT_NE(kernels[i].kind, static_cast<uint32_t>(AMP_KERNEL_PRODUCT));
        tile = tile || kernels[i].kind == AMP_KERNEL_TILE;
    }
    EXPECT_TRUE(tile);
}

// Products in parts are made by the function of one kernel: the IR has none.
TEST_F(SumsModelTest, PartsAreOfTheFunction) {
    Module *m = Planned(Under("sm_90", R"(  input %x : f16[64 * N, 40]
  input %dy : f16[64 * N, 40]
  %dw = contract(%dy, %x; ta = true) : f32[40, 40]
  result dw = %dw
)"),
                        false, false);
    ASSERT_NE(m, nullptr);
    EXPECT_EQ(Print(m).find("parts ="), std::string::npos);
    struct Text c;
    text_init(&c, &arena_);
    amp_error err = {};
    ASSERT_EQ(codegen_c(m, nullptr, nullptr, &c, &err), AMP_OK) << err.message;
    EXPECT_NE(std::string(text_str(&c)).find(".k = 64 * n, .part = ((64 * n + 15) / 16 + 63) / 64 * 64"),
              std::string::npos)
        << "4096 rows of an assumed batch, 256 at least a part";
}

} // namespace
