// lower_step_test.cc: whole steps of small models, forward, backward and update, as graph and as core IR.
//
// images.ir and tokens.ir are what `ampc --stop-after=elaborate --emit ir` makes of images.amp and tokens.amp, which
// lie beside them.
#include "precision/policy.h"
#include "tests/passes/lower_test.h"

namespace {

const Source *BuiltinPolicy(void *arena, const char *name) { return policy_builtin(static_cast<Arena *>(arena), name); }

class LowerStepTest : public LowerPassTest {
  protected:
    // The model at stage simplify.
    Module *Simplified(const std::string &file, const char *precision) {
        Module *m = Read(File("tests/passes/" + file));
        PassOptions o = {};
        o.precision = precision;
        o.find_policy = BuiltinPolicy;
        o.user = &arena_;
        amp_error err = {};
        EXPECT_EQ(AMP_OK, passes_run(m, &diags_, &o, STAGE_SIMPLIFY, nullptr, nullptr, &err))
            << err.message << Diagnostics();
        return m;
    }

    void ExpectSameSteps(const std::string &file, const char *precision) {
        SCOPED_TRACE(file + " " + precision);
        Module *graph = Simplified(file, precision), *core = Simplified(file, precision);
        ASSERT_TRUE(Run(core, STAGE_LOWER)) << Diagnostics();
        ASSERT_EQ(graph->funcs.len, core->funcs.len);
        for (int i = 0; i < core->funcs.len; i++) {
            SCOPED_TRACE(core->funcs.data[i]->name);
            ExpectWalkable(core->funcs.data[i]);
            Compare(graph->funcs.data[i], core->funcs.data[i]);
        }
    }

    int Kernels(const std::string &body) {
        fused_ = Lower(body);
        EXPECT_TRUE(fused_ && Run(fused_, STAGE_TARGET, STAGE_FUSE));
        return fused_ ? fused_->funcs.data[0]->kernels.len : 0;
    }

    Module *fused_ = nullptr;

    void Compare(const Func *f, const Func *g) {
        for (int64_t n : {3, 1}) {
            std::vector<InterpTensor> a = Inputs(f, n, false, 7), b = Inputs(g, n, false, 7);
            for (const char *name : {"seed", "iteration"})
                for (InterpTensor &t : b)
                    if (!strcmp(t.name, name)) a.push_back(t);
            ExpectEqual(Interpret(f, n, false, a), Interpret(g, n, false, b), 1e-9);
        }
    }
};

TEST_F(LowerStepTest, AConvolutionalNetworkTrainsTheSame) {
    for (const char *precision : {"fp32", "fp16", "bf16"}) ExpectSameSteps("images.ir", precision);
}

TEST_F(LowerStepTest, AttentionOverTokensTrainsTheSame) {
    for (const char *precision : {"fp32", "fp16", "bf16"}) ExpectSameSteps("tokens.ir", precision);
}

// The weight is used as it is stored, by the embedding and by the tied output.
TEST_F(LowerStepTest, ATransposedWeightIsReadWhereItLies) {
    Module *m = Simplified("tokens.ir", "fp16");
    ASSERT_TRUE(Run(m, STAGE_LOWER));
    const Func *f = ir_func_find(m, "infer");
    Val wte = ir_find(f, "wte.weight");
    ASSERT_TRUE(wte.id);
    for (int i = 0; i < f->body.len; i++)
        EXPECT_FALSE(ir_op_at(f, i)->code == OP_permute && ir_op_at(f, i)->in[0].id == wte.id);
}

// A layer norm, the layer's or one that a user writes, is one kernel.
TEST_F(LowerStepTest, ALayerNormIsOneKernelAsIsAWrittenOne) {
    const std::string inputs =
        "input %x : f32[N, 20, 40]\ninput %w : f32[40]\ninput %dy : f32[N, 20, 40]\ninput %m : f32[N, 20, 1]\n";
    EXPECT_EQ(
        1,
        Kernels(inputs +
                "%y, %a, %s = layer_norm(%x, %w, %w) : f32[N, 20, 40], f32[N, 20, 1], f32[N, 20, 1]\nresult y = %y\n"));
    EXPECT_EQ(
        1,
        Kernels(
            inputs +
            "%a = mean(%x; dims = (2), keep = true) : f32[N, 20, 1]\n%d = sub(%x, %a) : f32[N, 20, 40]\n"
            "%q = mul(%d, %d) : f32[N, 20, 40]\n%v = mean(%q; dims = (2), keep = true) : f32[N, 20, 1]\n"
            "%e = const(; value = 1.0e-05) : f32\n%t = add(%v, %e) : f32[N, 20, 1]\n%s = rsqrt(%t) : f32[N, 20, 1]\n"
            "%z = mul(%d, %s) : f32[N, 20, 40]\n%b = mul(%z, %w) : f32[N, 20, 40]\n%y = add(%b, %w) : f32[N, 20, 40]\n"
            "result y = %y\n"));
    // dx; sums by sample; sums over samples
    EXPECT_GE(3,
              Kernels(inputs + "%r, %s, %t = layer_norm_grad(%dy, %x, %w, %m, %m) : f32[N, 20, 40], f32[40], f32[40]\n"
                               "result r = %r\nresult s = %s\nresult t = %t\n"));
}

// Batch norm's gradient: permutes of x, dy and dx, the sums by sample, over samples, and dx.
TEST_F(LowerStepTest, BatchNormKeepsNoDifferences) {
    const std::string body = "input %x : f32[N, 40, 8, 9]\ninput %dy : f32[N, 40, 8, 9]\ninput %w : f32[40]\n"
                             "%r, %s, %t = batch_norm_grad(%dy, %x, %w, %w, %w) : f32[N, 40, 8, 9], f32[40], f32[40]\n"
                             "result r = %r\nresult s = %s\nresult t = %t\n";
    EXPECT_GE(8, Kernels(body));
    const Func *f = fused_->funcs.data[0];
    for (int i = 0; i < f->kernels.len; i++)
        EXPECT_FALSE(f->kernels.data[i]->count == 1 && ir_op_at(f, f->kernels.data[i]->first)->code == OP_sub);
}

// Nor is its gradient transposed: the product writes it as the weight is stored.
TEST_F(LowerStepTest, ATransposedGradientIsTheTransposedProduct) {
    const std::string body = "input %x : f16[N, 3]\ninput %y : f16[N, 4]\n%p = matmul(%x, %y; ta = true) : f16[3, 4]\n"
                             "%t = transpose(%p) : f16[4, 3]\n%r = cast(%t) : f32[4, 3]\nresult r = %r\n";
    EXPECT_EQ("%3 = contract(%y, %x; ta = true)\n%t = cast(%3)\n%r = cast(%t)\n", Ops(ExpectSame(body)->funcs.data[0]));
    Module *read_twice = ExpectSame(body + "result p = %p\n");
    EXPECT_EQ(1, Count(read_twice->funcs.data[0], OP_contract));
    for (const char *flags : {"", "; tb = true", "; ta = true", "; ta = true, tb = true"}) {
        std::string a = strstr(flags, "ta") ? "f32[3, 2]" : "f32[2, 3]",
                    b = strstr(flags, "tb") ? "f32[4, 3]" : "f32[3, 4]";
        Module *m = ExpectSame("input %x : " + a + "\ninput %y : " + b + "\n%p = matmul(%x, %y" + flags +
                               ") : f32[2, 4]\n%r = transpose(%p) : f32[4, 2]\nresult r = %r\n");
        EXPECT_EQ(0, Count(m->funcs.data[0], OP_permute));
    }
}

} // namespace
