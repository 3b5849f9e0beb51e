// fuse_test.cc: which kernels come out, that docs/design/kernels.md allows them, and that they compute the same bits.
#include "ir/words.h"
#include "passes/fuse/fuse.h"
#include "passes/fuse/kernel_check.h"
#include "targets/target.h"
#include "tests/passes/core_pass_test.h"

namespace {

class FuseTest : public CorePassTest {
  protected:
    // From the optimizer's stage to kernels.
    Module *Kernels(const std::string &text, bool fuse = true) {
        Module *m = Read(text);
        options_.without[STAGE_FUSE] = !fuse;
        EXPECT_TRUE(Run(m, STAGE_SIMPLIFY) && Run(m, STAGE_LOWER) && Run(m, STAGE_TARGET, STAGE_FUSE)) << Diagnostics();
        Check(m);
        return m;
    }

    Module *FuseFunc(const std::string &body, const std::string &states = "", bool fuse = true) {
        Module *m = ReadFunc("lower", body, states);
        options_.without[STAGE_FUSE] = !fuse;
        ir_compact(m);
        EXPECT_TRUE(Run(m, STAGE_TARGET, STAGE_FUSE));
        Check(m);
        return m;
    }

    void Check(const Module *m) {
        for (int i = 0; i < m->funcs.len; i++) {
            const char *wrong = kernel_check(m->funcs.data[i]);
            EXPECT_EQ(nullptr, wrong) << wrong << "\n" << Print(m);
        }
    }

    // "product fc1: linear + bias\n..."
    static std::string Titles(const Func *f) {
        std::string text;
        for (int i = 0; i < f->kernels.len; i++) {
            const Kernel *k = f->kernels.data[i];
            EXPECT_EQ("k" + std::string(i < 10 ? "0" : "") + std::to_string(i), k->name);
            text += std::string(ir_kernel_kind_names[k->kind]) + " " + k->title +
                    (k->pred.id ? std::string(" if ") + ir_value(f, k->pred)->name : "") + "\n";
        }
        return text;
    }

    // "product: %1 %2\nscalar: %3\n": what each kernel makes, copied constants and assigns left out.
    static std::string Makes(const Func *f) {
        std::string text;
        for (int i = 0; i < f->kernels.len; i++) {
            text += std::string(ir_kernel_kind_names[f->kernels.data[i]->kind]) + ":";
            for (int j = 0; j < f->kernels.data[i]->count; j++) {
                const Op *o = ir_op_at(f, f->kernels.data[i]->first + j);
                if (o->code == OP_assign) text += std::string(" =") + ir_value(f, o->in[0])->name;
                else if (o->code != OP_const) text += std::string(" ") + ir_value(f, o->out[0])->name;
            }
            text += "\n";
        }
        return text;
    }

    void ExpectSameBits(const Func *a, const Func *b) {
        for (unsigned seed = 0; seed < 2; seed++)
            ExpectEqual(Interpret(a, 5, true, seed), Interpret(b, 5, true, seed), 0);
    }
};

// How many labels count is known before the first product, so that the loss and its gradient stand in one kernel.
const char kStepBf16[] = "scalar step: increment + adamw\n"
                         "column cross_entropy: nll_loss + nll_loss_grad\n"
                         "tile fc1.linear: cast\ntile fc1.linear: cast\ntile fc1.linear: cast\ntile fc2.linear: "
                         "cast\ntile fc2.linear: cast\n"
                         "product fc1: linear + bias + relu\n"
                         "product fc2: linear + bias\n"
                         "row cross_entropy: log_softmax + nll_loss + accuracy + nll_loss_grad + log_softmax_grad\n"
                         "column cross_entropy: nll_loss + accuracy\n"
                         "product fc2.linear.grad.x: matmul + relu_grad\n"
                         "product fc2.weight: gradient + adamw\n"
                         "column fc2.bias: gradient + adamw\n"
                         "product fc1.weight: gradient + adamw\n"
                         "column fc1.bias: gradient + adamw\n";

const char kStepF16[] = "scalar loss.scale: scale_loss + inverse_scale + increment + adamw\n"
                        "column cross_entropy: nll_loss + nll_loss_grad\n"
                        "tile fc1.linear: cast\ntile fc1.linear: cast\ntile fc1.linear: cast\ntile fc2.linear: "
                        "cast\ntile fc2.linear: cast\n"
                        "product fc1: linear + bias + relu\n"
                        "product fc2: linear + bias\n"
                        "row cross_entropy: log_softmax + nll_loss + accuracy + nll_loss_grad + log_softmax_grad\n"
                        "column cross_entropy: nll_loss + accuracy\n"
                        "product fc2.linear.grad.x: matmul + relu_grad\n"
                        "product fc2.linear.grad.weight: matmul + all_finite + unscale\n"
                        "column fc2.linear.grad.bias: sum + all_finite + unscale\n"
                        "product fc1.linear.grad.weight: matmul + all_finite + unscale\n"
                        "column fc1.linear.grad.bias: sum + all_finite + unscale\n"
                        "scalar scaler: all_finite + update_scale\n"
                        "tile fc1.weight: adamw if ok\n"
                        "tile fc1.bias: adamw if ok\n"
                        "tile fc2.weight: adamw if ok\n"
                        "tile fc2.bias: adamw if ok\n"
                        "scalar step: assign if ok\n";

TEST_F(FuseTest, AnUnscaledStepUpdatesWeightsInTheirGradientsKernels) {
    Module *m = Kernels(Golden("mlp_bf16.optimizer.ir"));
    EXPECT_EQ(kStepBf16, Titles(ir_func_find(m, "train_step")));
}

TEST_F(FuseTest, AScaledStepUpdatesBehindTheFiniteCheck) {
    Module *m = Kernels(Golden("mlp_f16.optimizer.ir"));
    EXPECT_EQ(kStepF16, Titles(ir_func_find(m, "train_step")));
    EXPECT_EQ("tile fc1.linear: cast\ntile fc1.linear: cast\ntile fc1.linear: cast\ntile fc2.linear: cast\ntile "
              "fc2.linear: cast\n"
              "product fc1: linear + bias + relu\nproduct fc2: linear + bias\n",
              Titles(ir_func_find(m, "infer")));
}

// A count runs early only where a gradient is divided by it, and only one of small things: a sum over a batch of images
// is no count.
TEST_F(FuseTest, OnlyCountsThatTensorsNeedAreHoisted) {
    const char body[] = R"(  input %x : f32[N, 70]
  input %t : i32[N]
  %e = exp(%x) : f32[N, 70]
  %s = reduce_sum(%e; dims = (1)) : f32[N]
  %sum = reduce_sum(%s; dims = (0)) : f32
  %1 = const(; value = -100.0) : i32
  %2 = eq(%t, %1) : bool[N]
  %3 = const(; value = 1.0) : f32
  %4 = const() : f32
  %5 = select(%2, %4, %3) : f32[N]
  %count = reduce_sum(%5; dims = (0)) : f32
  %mean = div(%sum, %count) : f32
  %y = div(%e, USED) : f32[N, 70]
  %w = mul(%x, %sum) : f32[N, 70]
  result y = %y
  result mean = %mean
  result w = %w
)";
    const auto with = [&](const std::string &used) {
        std::string text = body;
        text.replace(text.find("USED"), 4, used);
        const Func *f = FuseFunc(text)->funcs.data[0];
        ExpectSameBits(FuseFunc(text, "", false)->funcs.data[0], f);
        return Makes(f);
    };
    EXPECT_EQ("column: 2 5 count\nrow: e s y\ncolumn: sum mean\ntile: w\n", with("%count"));
    EXPECT_EQ("row: e s y\ncolumn: sum 2 5 count mean\ntile: w\n", with("%3"));
}

// So a loss over sequences and its gradient share one kernel too.
TEST_F(FuseTest, LabelsOfSequencesAreCountedFirst) {
    const char body[] = R"(  input %x : f32[N, 6, 70]
  input %t : i32[N, 6]
  %e = exp(%x) : f32[N, 6, 70]
  %rows = reshape(%e) : f32[6 * N, 70]
  %s = reduce_sum(%rows; dims = (1)) : f32[6 * N]
  %sum = reduce_sum(%s; dims = (0)) : f32
  %labels = reshape(%t) : i32[6 * N]
  %1 = const(; value = -100.0) : i32
  %2 = eq(%labels, %1) : bool[6 * N]
  %3 = const(; value = 1.0) : f32
  %4 = const() : f32
  %5 = select(%2, %4, %3) : f32[6 * N]
  %count = reduce_sum(%5; dims = (0)) : f32
  %mean = div(%sum, %count) : f32
  %y = div(%e, %count) : f32[N, 6, 70]
  result y = %y
  result mean = %mean
)";
    const Func *f = FuseFunc(body)->funcs.data[0];
    EXPECT_EQ("column: labels 2 5 count\nrow: e rows s y\ncolumn: sum mean\n", Makes(f));
    ExpectSameBits(FuseFunc(body, "", false)->funcs.data[0], f);
}

// %row is movement: it reads %w from memory, so %w may not join the kernel of %y, though %column could read it there.
TEST_F(FuseTest, AVectorBesideItsOwnTransposeIsMadeBefore) {
    const char body[] = R"(  input %x : f32[N, 8]
  input %v : f32[N]
  %w = exp(%v) : f32[N]
  %row = reshape(%w) : f32[1, N]
  %column = reshape(%w) : f32[N, 1]
  %difference = sub(%column, %row) : f32[N, N]
  %z = contract(%x, %x; tb = true) : f32[N, N]
  %m = reduce_max(%z; dims = (1), keep = true) : f32[N, 1]
  %p = sub(%z, %m) : f32[N, N]
  %y = mul(%p, %difference) : f32[N, N]
  result y = %y
)";
    ExpectSameBits(FuseFunc(body, "", false)->funcs.data[0], FuseFunc(body)->funcs.data[0]);
}

// The gradient of a weight sums over rows in any number of dimensions; what was moved and moved back was not moved.
TEST_F(FuseTest, ProductsReadBehindViews) {
    const char body[] = R"(  input %x : f32[N, 5, 40]
  input %y : f32[N, 5, 48]
  %a = exp(%x) : f32[N, 5, 40]
  %b = exp(%y) : f32[N, 5, 48]
  %rows = reshape(%a) : f32[5 * N, 40]
  %c = reshape(%b) : f32[N, 5, 6, 8]
  %d = permute(%c; dims = (0, 2, 1, 3)) : f32[N, 6, 5, 8]
  %e = permute(%d; dims = (0, 2, 1, 3)) : f32[N, 5, 6, 8]
  %f = reshape(%e) : f32[5 * N, 48]
  %w = contract(%rows, %f; ta = true) : f32[40, 48]
  result w = %w
)";
    const Func *f = FuseFunc(body)->funcs.data[0];
    EXPECT_EQ("tile: a\ntile: b\nproduct: w\n", Makes(f));
    ExpectSameBits(FuseFunc(body, "", false)->funcs.data[0], f);
}

// Neither the view of a product's rows nor the one back is needed, be its result rounded between.
TEST_F(FuseTest, ProductsNeedNoViewsAroundThem) {
    const std::string body = R"(  input %x : f32[N, 5, 40]
  input %w : f32[40, 24]
  %a = exp(%x) : f32[N, 5, 40]
  %rows = reshape(%a) : f32[5 * N, 40]
  %y = contract(%rows, %w) : f32[5 * N, 24]
  %h = cast(%y) : f16[5 * N, 24]
  %z = reshape(%h) : f16[N, 5, 24]
  %b = reduce_sum(%rows; dims = (0)) : f32[40]
  %c = cast(%z) : f32[N, 5, 24]
  %d = mul(%c, %c) : f32[N, 5, 24]
  result b = %b
  result d = %d
)";
    const Func *f = FuseFunc(body)->funcs.data[0];
    EXPECT_EQ("tile: a\nproduct: y h c d\ncolumn: rows b\n", Makes(f));
    ExpectSameBits(FuseFunc(body, "", false)->funcs.data[0], f);
    // a reader of what is between wants its rows
    const Func *kept = FuseFunc(body + "  result h = %h\n")->funcs.data[0];
    EXPECT_EQ(ir_shape(kept, ir_op_at(kept, kept->kernels.data[1]->first)->out[0])->rank, 2) << Print(kept->module);
}

TEST_F(FuseTest, AnMlpComputesTheSameBits) {
    for (const char *name : {"mlp_f16.optimizer.ir", "mlp_bf16.optimizer.ir", "mlp_f32.optimizer.ir"}) {
        SCOPED_TRACE(name);
        Module *plain = Read(Golden(name));
        ASSERT_TRUE(Run(plain, STAGE_SIMPLIFY) && Run(plain, STAGE_LOWER));
        Module *fused = Kernels(Golden(name)), *unfused = Kernels(Golden(name), false);
        for (int i = 0; i < plain->funcs.len; i++) {
            ExpectSameBits(plain->funcs.data[i], fused->funcs.data[i]);
            ExpectSameBits(plain->funcs.data[i], unfused->funcs.data[i]);
        }
    }
}

TEST_F(FuseTest, AModelComputesTheSameBitsInEveryPrecision) {
    for (const char *precision : {"fp16", "bf16", "tf32", "fp32"}) {
        SCOPED_TRACE(precision);
        options_.precision = precision;
        Module *plain = Read(File("tests/passes/mlp.ir")), *fused = Read(File("tests/passes/mlp.ir"));
        amp_error err;
        ASSERT_EQ(AMP_OK, passes_run(plain, &diags_, &options_, STAGE_LOWER, nullptr, nullptr, &err)) << err.message;
        ASSERT_EQ(AMP_OK, passes_run(fused, &diags_, &options_, STAGE_FUSE, nullptr, nullptr, &err)) << err.message;
        Check(fused);
        ASSERT_EQ(plain->funcs.len, fused->funcs.len);
        for (int i = 0; i < plain->funcs.len; i++) ExpectSameBits(plain->funcs.data[i], fused->funcs.data[i]);
    }
}

TEST_F(FuseTest, WithoutFusionEveryOpIsAKernel) {
    Module *m = Kernels(Golden("mlp_f16.optimizer.ir"), false);
    const Func *f = ir_func_find(m, "train_step");
    for (int i = 0; i < f->kernels.len; i++) {
        int ops = 0;
        for (int j = 0; j < f->kernels.data[i]->count; j++) {
            Opcode code = ir_op_at(f, f->kernels.data[i]->first + j)->code;
            ops += code != OP_const && code != OP_iota && code != OP_extent;
        }
        EXPECT_LE(ops, 1) << f->kernels.data[i]->name;
    }
}

TEST_F(FuseTest, ReadsBack) {
    Module *m = Kernels(Golden("mlp_f16.optimizer.ir"));
    std::string text = Print(m);
    EXPECT_EQ(text, Print(Read(text)));
}

// Of any length: the C compiler takes more than proportionally long for a long kernel.  One that begins at an input,
// where ops wait for their users, and one after a product.
TEST_F(FuseTest, ALongChainIsSeveralKernels) {
    enum { OPS = 3 * KERNEL_MAX_OPS };
    for (const bool product : {false, true}) {
        std::string body = "  input %x : f32[N, 8]\n  input %w : f32[8, 8]\n", last = "x";
        if (product) body += "  %p = contract(%x, %w) : f32[N, 8]\n", last = "p";
        for (int i = 0; i < OPS; i++) {
            const std::string name = "h" + std::to_string(i);
            body += "  %" + name + " = " + (i % 2 ? "neg" : "tanh") + "(%" + last + ") : f32[N, 8]\n";
            last = name;
        }
        body += "  result y = %" + last + "\n";
        const Func *f = FuseFunc(body)->funcs.data[0];
        ASSERT_LE(f->kernels.len, 4 + product);
        for (int i = 0; i < f->kernels.len; i++) EXPECT_LE(f->kernels.data[i]->count, KERNEL_MAX_OPS);
        ExpectSameBits(FuseFunc(body, "", false)->funcs.data[0], f);
    }
}

// ---- one decision each ----------------------------------------------------------------------------------------------

// Of half an image each: the mean, then the squares around it, in one kernel; over all rows at once it would be two.
TEST_F(FuseTest, SegmentsAreFoldedAgainWithWhatWasFolded) {
    const std::string body =
        "  input %x : f32[N, 8, 40]\n  %m = reduce_sum(%x; dims = (1), keep = true) : f32[N, 1, 40]\n"
        "  %e = expand(%m) : f32[N, 8, 40]\n  %d = sub(%x, %e) : f32[N, 8, 40]\n"
        "  %q = mul(%d, %d) : f32[N, 8, 40]\n  %v = reduce_sum(%q; dims = (1)) : f32[N, 40]\n"
        "  %t = reduce_sum(%v; dims = (0)) : f32[40]\n  result m = %m\n  result t = %t\n";
    Module *m = FuseFunc(body);
    EXPECT_EQ("column: m e d q v\ncolumn: t\n", Makes(m->funcs.data[0]));
    EXPECT_EQ(8, m->funcs.data[0]->kernels.data[0]->segment.mul);
    EXPECT_EQ(0, m->funcs.data[0]->kernels.data[1]->segment.mul);
    Func *f = m->funcs.data[0];
    f->kernels.data[0]->segment.mul = 4; /* the checker sees that sums of 8 rows are no segments of 4 */
    EXPECT_NE(nullptr, kernel_check(f));
    f->kernels.data[0]->segment.mul = 8;
}

// The gradient of batch norm: x - mean for the sums over rows, and again where their results are used, so that it is
// never in memory.
TEST_F(FuseTest, WhatGoesOverTheRowsAgainIsNotMadeWhereTheyAreReduced) {
    Module *m = FuseFunc("  input %a : f32[N, 16]\n  input %u : f32[40, 16]\n  input %v : f32[40, 16]\n"
                         "  input %mean : f32[40]\n  region #1 batch_norm_grad @g\n"
                         "  %x = contract(%a, %u; tb = true) : f32[N, 40]\n"
                         "  %dy = contract(%a, %v; tb = true) : f32[N, 40]\n"
                         "  %s = reduce_sum(%dy; dims = (0)) : f32[40] #1\n"
                         "  %d = sub(%x, %mean) : f32[N, 40] #1\n  %p = mul(%dy, %d) : f32[N, 40] #1\n"
                         "  %w = reduce_sum(%p; dims = (0)) : f32[40] #1\n  %k = mul(%w, %mean) : f32[40] #1\n"
                         "  %e = sub(%x, %mean) : f32[N, 40] #1\n  %q = mul(%e, %k) : f32[N, 40] #1\n"
                         "  %r = add(%q, %s) : f32[N, 40] #1\n  %g = sub(%dy, %r) : f32[N, 40] #1\n"
                         "  result g = %g\n");
    EXPECT_EQ("product: x\nproduct: dy\ncolumn: s d p w k\ntile: e q r g\n", Makes(m->funcs.data[0]));
}

// The gradient of group norm: sums of an image, then of the channels of a group.  What is combined with those is made
// there, and not beside the first sums.
TEST_F(FuseTest, WhatGoesOverTheRowsAgainWaitsForSumsOfSums) {
    Module *m = FuseFunc("  input %a : f32[N, 64, 16]\n  input %u : f32[8, 16]\n  input %v : f32[8, 16]\n"
                         "  region #1 group_norm_grad @g\n  %x = contract(%a, %v; tb = true) : f32[N, 64, 8]\n"
                         "  %mean = reduce_sum(%x; dims = (1), keep = true) : f32[N, 1, 8]\n"
                         "  %dy = contract(%a, %u; tb = true) : f32[N, 64, 8]\n"
                         "  %s = reduce_sum(%dy; dims = (1), keep = true) : f32[N, 1, 8] #1\n"
                         "  %t = reshape(%s) : f32[N, 4, 2] #1\n"
                         "  %of = reduce_sum(%t; dims = (2), keep = true) : f32[N, 4, 1] #1\n"
                         "  %wide = expand(%of) : f32[N, 4, 2] #1\n  %back = reshape(%wide) : f32[N, 1, 8] #1\n"
                         "  %m = expand(%mean) : f32[N, 64, 8] #1\n  %d = sub(%x, %m) : f32[N, 64, 8] #1\n"
                         "  %e = expand(%back) : f32[N, 64, 8] #1\n  %q = mul(%d, %e) : f32[N, 64, 8] #1\n"
                         "  %g = sub(%dy, %q) : f32[N, 64, 8] #1\n  result g = %g\n");
    EXPECT_EQ("product: x\ncolumn: mean\nproduct: dy\ncolumn: s\nrow: t of\ntile: wide\ntile: back\ntile: m d e q g\n",
              Makes(m->funcs.data[0]));
}

// The gradient of pooling is four times as large as what it is made from: no kernel writes it unless some reader needs
// it in memory.
TEST_F(FuseTest, WhatIsSpreadOverALargerImageIsMadeAgain) {
    const std::string spread =
        "  input %dy : f32[N, 2, 3, 40]\n  input %w : i32[N, 2, 3, 40]\n  input %h : f32[N, 4, 6, 40]\n"
        "  %0 = exp(%dy) : f32[N, 2, 3, 40]\n  %e = cast(%0) : f16[N, 2, 3, 40]\n"
        "  %i = cast(%e) : f32[N, 2, 3, 40]\n"
        "  %g = window_max_grad(%i, %w; kernel = (2, 2), stride = (2, 2)) : f32[N, 4, 6, 40]\n"
        "  %d = cast(%g) : f16[N, 4, 6, 40]\n  %f = cast(%d) : f32[N, 4, 6, 40]\n"
        "  %t = mul(%f, %h) : f32[N, 4, 6, 40]\n  %s = reduce_sum(%t; dims = (0, 1, 2)) : f32[40]\n"
        "  %u = sub(%f, %s) : f32[N, 4, 6, 40]\n  result u = %u\n";
    Module *m = FuseFunc(spread);
    const Func *f = m->funcs.data[0];
    std::string makes = Makes(f);
    EXPECT_EQ(std::string::npos, makes.find("tile: g")) << makes;
    for (int i = 0; i < f->kernels.len; i++) { // each has its own, or needs none
        int spreads = 0, reads = 0;
        for (int j = 0; j < f->kernels.data[i]->count; j++) {
            Opcode code = ir_op_at(f, f->kernels.data[i]->first + j)->code;
            spreads += code == OP_window_max_grad;
            reads += code == OP_reduce_sum || code == OP_sub;
        }
        EXPECT_EQ(reads > 0, spreads == 1) << makes;
    }
    ExpectSameBits(ReadFunc("lower", spread)->funcs.data[0], f);

    const std::string others[] = {"  result d = %d\n",
                                  "  %p = permute(%d; dims = (0, 3, 1, 2)) : f16[N, 40, 4, 6]\n  result p = %p\n"};
    for (const std::string &other : others) {
        m = FuseFunc(spread + other);
        f = m->funcs.data[0];
        int spreads = 0;
        for (int i = 0; i < f->body.len; i++) spreads += ir_op_at(f, i)->code == OP_window_max_grad;
        EXPECT_EQ(1, spreads) << Makes(f);
        ExpectSameBits(ReadFunc("lower", spread + other)->funcs.data[0], f);
    }
}

// What is spread over a larger image again reads its operand in memory: that one is kept, not made again.
TEST_F(FuseTest, WhatIsSpreadTwiceIsKeptBetween) {
    const std::string spread =
        "  input %dy : f32[N, 2, 3, 40]\n  input %w : i32[N, 2, 3, 40]\n  input %w2 : i32[N, 4, 6, 40]\n"
        "  input %h : f32[N, 8, 12, 40]\n"
        "  %g = window_max_grad(%dy, %w; kernel = (2, 2), stride = (2, 2)) : f32[N, 4, 6, 40]\n"
        "  %d = cast(%g) : f16[N, 4, 6, 40]\n  %i = cast(%d) : f32[N, 4, 6, 40]\n"
        "  %g2 = window_max_grad(%i, %w2; kernel = (2, 2), stride = (2, 2)) : f32[N, 8, 12, 40]\n"
        "  %d2 = cast(%g2) : f16[N, 8, 12, 40]\n  %f = cast(%d2) : f32[N, 8, 12, 40]\n"
        "  %t = mul(%f, %h) : f32[N, 8, 12, 40]\n  %s = reduce_sum(%t; dims = (0, 1, 2)) : f32[40]\n"
        "  %u = sub(%f, %s) : f32[N, 8, 12, 40]\n  result u = %u\n";
    const Func *f = FuseFunc(spread)->funcs.data[0];
    for (int i = 0; i < f->kernels.len; i++) {
        int spreads = 0;
        for (int j = 0; j < f->kernels.data[i]->count; j++)
            spreads += ir_op_at(f, f->kernels.data[i]->first + j)->code == OP_window_max_grad;
        EXPECT_LE(spreads, 1) << Makes(f);
    }
    ExpectSameBits(ReadFunc("lower", spread)->funcs.data[0], f);
}

const char kPooledNorm[] =
    "  input %x : f32[N, 4, 6, 40]\n  input %m : f32[40]\n  state %c : f32[40]\n"
    "  %h = permute(%x; dims = (0, 2, 1, 3)) : f32[N, 6, 4, 40]\n  %q = exp(%h) : f32[N, 6, 4, 40]\n"
    "  %t = reduce_sum(%q; dims = (0, 1, 2)) : f32[40]\n"
    "  %a = sub(%q, %t) : f32[N, 6, 4, 40]\n  %b = add(%a, %c) : f32[N, 6, 4, 40]\n";
const char kPool[] =
    "  %p, %w = window_max(%b; kernel = (2, 2), stride = (2, 2)) : f32[N, 3, 2, 40], i32[N, 3, 2, 40]\n"
    "  %z = neg(%p) : f32[N, 3, 2, 40]\n  result z = %z\n  result w = %w\n";
const char kColumnState[] = "state %c : f32[40] param = zeros()\n";

TEST_F(FuseTest, WhatOnlyPoolingReadsIsMadeThere) {
    const std::string body = std::string(kPooledNorm) + kPool;
    Module *m = FuseFunc(body, kColumnState);
    const Func *f = m->funcs.data[0];
    EXPECT_EQ("column: h q t\ntile: a b p z\n", Makes(f));
    ExpectSameBits(ReadFunc("lower", body, kColumnState)->funcs.data[0], f);
    Op *neg = ir_op_at(f, f->body.len - 1); // the checker sees a reader that is no pooling
    const Val pooled = neg->in[0];
    for (int i = 0; i < f->body.len; i++)
        if (ir_op_at(f, i)->code == OP_add) neg->in[0] = ir_op_at(f, i)->out[0];
    EXPECT_NE(nullptr, kernel_check(f));
    neg->in[0] = pooled;
    EXPECT_EQ(nullptr, kernel_check(f));
    // but windows that overlap would make elements again and again, and others need it in memory
    std::string overlapping = body;
    overlapping.replace(overlapping.find("kernel = (2, 2)"), 15, "kernel = (3, 2)");
    overlapping.replace(overlapping.find("stride = (2, 2)"), 15, "stride = (1, 2)");
    for (size_t at = overlapping.find("[N, 3, 2, 40]"); at != std::string::npos; at = overlapping.find("[N, 3, 2, 40]"))
        overlapping.replace(at, 13, "[N, 4, 2, 40]");
    const std::string others[] = {
        overlapping, body + "  result b = %b\n", body + "  %r = exp(%b) : f32[N, 6, 4, 40]\n  result r = %r\n",
        body + "  %s = window_sum(%b; kernel = (2, 2), stride = (2, 2)) : f32[N, 3, 2, 40]\n"
               "  result s = %s\n",
        body + "  %r = permute(%b; dims = (0, 3, 1, 2)) : f32[N, 40, 6, 4]\n  result r = %r\n"};
    for (const std::string &other : others) {
        m = FuseFunc(other, kColumnState);
        f = m->funcs.data[0];
        EXPECT_NE(std::string::npos, Makes(f).find("tile: a b")) << Makes(f);
        EXPECT_EQ(std::string::npos, Makes(f).find("a b p")) << Makes(f);
        ExpectSameBits(ReadFunc("lower", other, kColumnState)->funcs.data[0], f);
    }
}

// ---- any graph ------------------------------------------------------------------------------------------------------

// Random core ops over a few shapes, in regions, with states and predicates.
class Graph {
  public:
    explicit Graph(unsigned seed) : rng_(seed) {}

    std::string Text() {
        for (int i = 0; i < 3; i++) Add("input", i == 2 ? "[6, 6]" : "[N, 6]");
        Add("input", "[6]");
        Add("input", "");
        for (int i = 0; i < 3; i++) Add("state", i == 2 ? "[6]" : "[6, 6]");
        text_ += "  input %p : bool\n";
        for (int i = 1; i <= 5; i++)
            text_ += "  region #" + std::to_string(i) + " part @part" + std::to_string(i) + "\n";
        for (int i = 0; i < 25; i++) {
            region_ = " #" + std::to_string(i / 5 + 1);
            AddOp();
        }
        region_ = "";
        for (size_t i = 0; i < values_.size(); i++)
            if (rng_() % 6 == 0 || i + 1 == values_.size())
                results_ += "  result r" + std::to_string(i) + " = %" + values_[i].name + "\n";
        for (const Value &s : states_) AddAssign(s);
        return text_ + results_;
    }

    static const char *States() {
        return "state %s5 : f32[6, 6] buffer\nstate %s6 : f32[6, 6] buffer\nstate %s7 : f32[6] buffer\n";
    }

  private:
    struct Value {
        std::string name, shape, type;
    };

    void Add(const std::string &kind, const std::string &shape) {
        Value v = {(kind == "state" ? "s" : "x") + std::to_string(values_.size()), shape, "f32"};
        text_ += "  " + kind + " %" + v.name + " : f32" + shape + "\n";
        values_.push_back(v);
        if (kind == "state") states_.push_back(v);
    }

    const Value &Pick(const std::string &shape = "*") {
        for (;;) {
            const Value &v = values_[rng_() % values_.size()];
            if (shape == "*" || v.shape == shape) return v;
        }
    }

    void Emit(const std::string &call, const std::string &shape, const std::string &type = "f32") {
        Value v = {"v" + std::to_string(values_.size()), shape, type};
        text_ += "  %" + v.name + " = " + call + " : " + type + shape + region_ + "\n";
        values_.push_back(v);
    }

    std::string Wide(const Value &v) {
        if (v.type == "f32") return v.name;
        Emit("cast(%" + v.name + ")", v.shape);
        return values_.back().name;
    }

    void AddOp() {
        const Value a = Pick();
        std::string wide = Wide(a);
        bool matrix = a.shape == "[N, 6]" || a.shape == "[6, 6]";
        switch (rng_() % 8) {
        case 0: return Emit("cast(%" + wide + ")", a.shape, rng_() % 2 ? "f16" : "bf16");
        case 1: return Emit("tanh(%" + wide + ")", a.shape);
        case 2:
            return matrix ? Emit("reduce_sum(%" + wide + "; dims = (1), keep = true)",
                                 a.shape == "[N, 6]" ? "[N, 1]" : "[6, 1]")
                          : (void)0;
        case 3: return matrix ? Emit("reduce_max(%" + wide + "; dims = (0))", "[6]") : (void)0;
        case 4: return matrix ? Emit("contract(%" + wide + ", %" + Wide(Pick("[6, 6]")) + ")", a.shape) : (void)0;
        case 5: return matrix ? Emit("add(%" + wide + ", %" + Wide(Pick("[6]")) + ")", a.shape) : (void)0;
        case 6: return Emit("mul(%" + wide + ", %" + Wide(Pick("")) + ")", a.shape);
        default: return Emit("sub(%" + wide + ", %" + Wide(Pick(a.shape)) + ")", a.shape);
        }
    }

    void AddAssign(const Value &state) {
        const Value v = Pick(state.shape);
        std::string wide = Wide(v);
        text_ += "  assign(%" + state.name + ", %" + wide + ")" + (rng_() % 2 ? " if %p" : "") + "\n";
    }

    std::mt19937 rng_;
    std::string text_, results_, region_;
    std::vector<Value> values_, states_;
};

TEST_F(FuseTest, AnyGraphComputesTheSameBits) {
    for (unsigned seed = 0; seed < 300; seed++) {
        std::string body = Graph(seed).Text();
        SCOPED_TRACE(seed);
        Module *plain = ReadFunc("lower", body, Graph::States());
        ASSERT_NE(nullptr, plain) << body;
        for (bool fuse : {true, false}) {
            Module *m = FuseFunc(body, Graph::States(), fuse);
            ExpectEqual(Interpret(plain->funcs.data[0], 5, true, seed), Interpret(m->funcs.data[0], 5, true, seed), 0);
            if (HasFailure()) FAIL() << body << Print(m);
        }
        arena_free(&arena_);
        arena_init(&arena_, nullptr);
    }
}

// ---- the checker sees faults ----------------------------------------------------------------------------------------

TEST_F(FuseTest, TheCheckerSeesPlantedFaults) {
    Module *m = Kernels(Golden("mlp_f16.optimizer.ir"));
    Func *f = ir_func_find(m, "train_step");
    ASSERT_EQ(nullptr, kernel_check(f));
    int faults = 0;
    for (int i = 0; i + 1 < f->kernels.len; i++) { /* two kernels become one */
        Kernel *a = f->kernels.data[i], *b = f->kernels.data[i + 1];
        if (a->pred.id || b->pred.id || a->kind == KERNEL_TILE) continue;
        int count = a->count, next = b->count, first = b->first;
        a->count += b->count;
        b->count = 0;
        EXPECT_NE(nullptr, kernel_check(f)) << i;
        a->count = count;
        b->count = next;
        b->first = first;
        faults++;
    }
    EXPECT_GT(faults, 5);
    for (int i = 0; i < f->kernels.len; i++) { /* a kernel loses its predicate */
        Val pred = f->kernels.data[i]->pred;
        if (!pred.id) continue;
        f->kernels.data[i]->pred = NO_VAL;
        EXPECT_NE(nullptr, kernel_check(f)) << i;
        f->kernels.data[i]->pred = pred;
    }
    for (int i = 0; i < f->kernels.len; i++) { /* a kernel of another kind */
        Kernel *k = f->kernels.data[i];
        if (k->kind != KERNEL_PRODUCT && k->kind != KERNEL_ROW) continue;
        KernelKind kind = k->kind;
        k->kind = KERNEL_TILE;
        EXPECT_NE(nullptr, kernel_check(f)) << i;
        k->kind = kind;
    }
    EXPECT_EQ(nullptr, kernel_check(f));
}

// Gradients of attention that are put beside each other are stored so; but not what something else reads.
TEST_F(FuseTest, AttentionJoinsItsGradients) {
    const std::string body = R"(  input %q : f16[N, 2, 5, 8]
  input %y : f32[N, 5, 16]
  input %l : f32[N, 2, 5, 1]
  %a, %b, %c = attend_grad(%q, %q, %q, %q, %y, %l; scale = 1.0) : f32[N, 5, 16], f32[N, 5, 16], f32[N, 5, 16]
  %d = cast(%a) : f16[N, 5, 16]
  %e = cast(%b) : f16[N, 5, 16]
  %j = concat(%d, %e; dim = 2) : f16[N, 5, 32]
  %w = cast(%j) : f32[N, 5, 32]
  %z = const() : f32
  %s = add(%w, %z) : f32[N, 5, 32]
  %h = cast(%s) : f16[N, 5, 32]
  %x = cast(%h) : f32[N, 5, 32]
  %u = exp(%x) : f32[N, 5, 32]
  result u = %u
)";
    options_.target = &target_cuda;
    Module *m = ReadFunc("lower", body);
    ASSERT_TRUE(Run(m, STAGE_TARGET, STAGE_FUSE)) << Diagnostics();
    Func *f = m->funcs.data[0];
    EXPECT_EQ("attention: a d e j w s h\ntile: x u\n", Makes(f));
    EXPECT_EQ(nullptr, kernel_check(f)) << kernel_check(f);
    Op *reader = ir_op_at(f, f->kernels.data[1]->first);
    reader->in[0] = ir_op_at(f, f->kernels.data[0]->first + 3)->out[0]; // %j
    EXPECT_NE(nullptr, kernel_check(f)) << "the kernel stores %h alone";
    m = ReadFunc("lower", body + "  result e = %e\n");
    ASSERT_TRUE(Run(m, STAGE_TARGET, STAGE_FUSE)) << Diagnostics();
    EXPECT_EQ("attention: a d\ntile: e\ntile: j w s h x u\n", Makes(m->funcs.data[0]));
}

// IR from a file may hold what the target has no kernel for, as ops or in kernels.
TEST_F(FuseTest, PartsAreForTargetsThatSplitSums) {
    const std::string body = R"(  input %x : f32[N, 4]
  %p = contract(%x, %x; ta = true, parts = 3) : f32[3, 4, 4]
  %w = sum_parts(%p) : f32[4, 4]
  result w = %w
)";
    Module *m = ReadFunc("lower", body);
    EXPECT_FALSE(Run(m, STAGE_TARGET, STAGE_FUSE));
    EXPECT_NE(Diagnostics().find("f: contract: the target cpu has no kernel for products in parts"), std::string::npos)
        << Diagnostics();
    m = ReadFunc("lower", body);
    options_.target = &target_cuda;
    EXPECT_TRUE(Run(m, STAGE_TARGET, STAGE_FUSE));
    EXPECT_EQ("product: p\ntile: w\n", Makes(m->funcs.data[0]));
    EXPECT_EQ(nullptr, kernel_check(m->funcs.data[0]));
    target_set(m, &target_cpu);
    EXPECT_NE(nullptr, kernel_check(m->funcs.data[0]));
}

} // namespace
