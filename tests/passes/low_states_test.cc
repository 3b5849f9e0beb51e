// Parameters and moments in 16 bits: which states become low, what reads and rounds them, what is refused.
#include "base/rounding.h"
#include "tests/passes/training_test.h"

namespace {

class LowStatesTest : public TrainingTest {
  protected:
    Dtype TypeOf(const Module *m, const char *state) {
        const State *s = ir_state_find(m, state);
        EXPECT_NE(s, nullptr) << state;
        return s ? s->dtype : AMP_DT_NONE;
    }

    // What is assigned to a state.
    const Op *Written(const Func *f, const std::string &state) {
        for (int i = 0; i < f->body.len; i++) {
            const Op *o = ir_op_at(f, i);
            if (o->code == OP_assign && ir_value(f, o->in[0])->name == state) return ir_def(f, o->in[1]);
        }
        ADD_FAILURE() << state << " is not written";
        return nullptr;
    }

    std::string ErrorsOf(const std::string &header, const std::string &optimizer) {
        std::string text = File("tests/passes/mlp.ir");
        const std::string written = "adamw(lr = 0.001)";
        text.replace(text.find(written), written.size(), optimizer);
        text.replace(text.find("  train\n"), 8, header + "  train" + train_ + "\n");
        EXPECT_EQ(TryRun(Read(text), STAGE_OPTIMIZER), AMP_BAD_SOURCE);
        return Diagnostics();
    }
};

TEST_F(LowStatesTest, MomentsOfMatricesAreStoredAsAsked) {
    precision_ = "fp32";
    Module *m = RunMlp("  moments bf16(rounding = nearest)\n");
    for (const char *name : {"fc1.weight/m", "fc1.weight/v", "fc2.weight/v"}) EXPECT_EQ(TypeOf(m, name), AMP_DT_BF16);
    for (const char *name : {"fc1.weight", "fc1.bias", "fc1.bias/m", "fc1.bias/v"})
        EXPECT_EQ(TypeOf(m, name), AMP_DT_F32);
    const Op *cast = Written(Step(m), "fc1.weight/m");
    EXPECT_EQ(cast->code, OP_cast);
    EXPECT_EQ(ir_dtype(Step(m), cast->out[0]), AMP_DT_BF16);
    EXPECT_STREQ(cast->reason->rule, "update");
    EXPECT_STREQ(cast->reason->neighbour, "fc1.weight/m");
    EXPECT_EQ(Find(Step(m), OP_stochastic_cast), nullptr);
    EXPECT_EQ(Written(Step(m), "fc1.bias/m")->code, OP_adamw);
}

TEST_F(LowStatesTest, AParameterAndItsMomentsDrawWordsOfOneKey) {
    precision_ = "fp32";
    const Module *m = RunMlp("  masters bf16(rounding = stochastic)\n  moments bf16()\n");
    const struct {
        const char *state;
        int64_t word;
    } states[] = {{"fc2.weight", 0}, {"fc2.weight/m", 1}, {"fc2.weight/v", 2}};
    for (const auto &s : states) {
        const Op *cast = Written(Step(m), s.state);
        ASSERT_EQ(cast->code, OP_stochastic_cast) << s.state;
        EXPECT_STREQ(ir_attr(cast, "key")->s, "fc2.weight");
        EXPECT_EQ(ir_attr(cast, "word")->i, s.word) << s.state;
    }
    m = RunMlp("  moments f16(rounding = stochastic)\n", "sgd(lr = 0.1, momentum = 0.9)");
    EXPECT_EQ(TypeOf(m, "fc2.weight/momentum"), AMP_DT_F16);
    EXPECT_EQ(ir_attr(Written(Step(m), "fc2.weight/momentum"), "word")->i, 1);
}

TEST_F(LowStatesTest, MomentsOfEightBitsHaveTwoTypes) {
    precision_ = "bf16";
    Module *m = RunMlp("  masters bf16()\n  moments f8()\n");
    EXPECT_EQ(TypeOf(m, "fc1.weight"), AMP_DT_BF16);
    EXPECT_EQ(TypeOf(m, "fc1.weight/m"), AMP_DT_F8M);
    EXPECT_EQ(TypeOf(m, "fc1.weight/v"), AMP_DT_F8V);
    EXPECT_EQ(TypeOf(m, "fc1.bias/v"), AMP_DT_F32);
    const struct {
        const char *state;
        Dtype type;
        int64_t word;
    } states[] = {{"fc2.weight/m", AMP_DT_F8M, 1}, {"fc2.weight/v", AMP_DT_F8V, 2}};
    for (const auto &s : states) {
        const Op *cast = Written(Step(m), s.state);
        ASSERT_EQ(cast->code, OP_stochastic_cast) << s.state;
        EXPECT_EQ(ir_dtype(Step(m), cast->out[0]), s.type);
        EXPECT_EQ(ir_attr(cast, "word")->i, s.word) << s.state;
    }
    m = RunMlp("  moments f8()\n", "sgd(lr = 0.1, momentum = 0.9)");
    EXPECT_EQ(TypeOf(m, "fc2.weight/momentum"), AMP_DT_F8M);
}

// Where the policy's low type is the masters', products read them as they are, and nothing is left of the casts.
TEST_F(LowStatesTest, LowProductsReadLowMasters) {
    precision_ = "bf16";
    Module *m = RunMlp("  masters bf16(rounding = stochastic)\n", "adamw(lr = 0.001)", STAGE_SIMPLIFY);
    for (const char *name : {"train_step", "eval", "infer"}) {
        const Func *f = ir_func_find(m, name);
        for (int i = 0; i < f->body.len; i++) {
            const Op *o = ir_op_at(f, i);
            EXPECT_TRUE(o->code != OP_linear || ir_state_of(f, o->in[1])->dtype == AMP_DT_BF16) << name;
            EXPECT_FALSE(o->code == OP_cast && ir_state_of(f, o->in[0]) && ir_dtype(f, o->in[0]) == AMP_DT_BF16)
                << name;
        }
    }
    precision_ = "fp32";
    m = RunMlp("  masters bf16(rounding = nearest)\n", "adamw(lr = 0.001)", STAGE_SIMPLIFY);
    const Func *f = ir_func_find(m, "infer");
    const Op *linear = Find(f, OP_linear), *wide = ir_def(f, linear->in[1]);
    ASSERT_NE(wide, nullptr);
    EXPECT_EQ(ir_dtype(f, wide->in[0]), AMP_DT_BF16);
    EXPECT_EQ(ir_dtype(f, wide->out[0]), AMP_DT_F32);
    EXPECT_STREQ(wide->reason->rule, "storage");
}

TEST_F(LowStatesTest, RowsOfATableAreWidenedWhenTheyAreTaken) {
    precision_ = "fp32";
    Module *m = Run(Read(R"(module "t" stage elaborate {
  precision fp32
  masters bf16(rounding = stochastic)
  train
  optimizer sgd(lr = 0.1)
}
state %table : f32[50, 8] param = zeros()
func forward {
  input %ids : i32[N]
  state %table : f32[50, 8]
  %y = embedding(%ids, %table) : f32[N, 8]
  %loss = sum(%y) : f32
  result y = %y
  result loss = %loss
}
)"),
                    STAGE_SIMPLIFY);
    ASSERT_NE(m, nullptr);
    const Func *f = ir_func_find(m, "infer");
    const Op *rows = Find(f, OP_embedding);
    EXPECT_EQ(ir_state_of(f, rows->in[1])->dtype, AMP_DT_BF16);
    EXPECT_EQ(ir_dtype(f, rows->out[0]), AMP_DT_BF16);
    EXPECT_EQ(ir_dtype(f, f->results.data[0].value), AMP_DT_F32);
}

TEST_F(LowStatesTest, AStepRoundsToANeighbourOfEightBits) {
    precision_ = "fp32";
    const Func *f = Step(RunMlp("  moments f8()\n", "adamw(lr = 0.01, beta2 = 0.99)"));
    const double m0 = 0.0078125, v0 = 0.00390625;
    auto after = RunStep(f, {{"x", 1}, {"step", 3}, {"fc2.weight/m", m0}, {"fc2.weight/v", v0}});
    for (size_t i = 0; i < after["fc2.weight"].size(); i++) {
        const double g = after["grad.fc2.weight"][i], m = after["fc2.weight/m"][i], v = after["fc2.weight/v"][i];
        const double exact = 0.9 * m0 + 0.1 * g, square = 0.99 * v0 + 0.01 * g * g;
        ASSERT_LT(std::fabs(m - exact), std::max(std::fabs(exact) / 4, 0x1p-26)) << i;
        ASSERT_LT(std::fabs(v - square), square / 4) << i;
        ASSERT_EQ(m, double(amp_round_dtype(AMP_DT_F8M, float(m))));
        ASSERT_EQ(v, double(amp_round_dtype(AMP_DT_F8V, float(v))));
    }
}

// Of what is stored: the first average is the parameter, to the bit.
TEST_F(LowStatesTest, AnAverageStaysInF32) {
    precision_ = "fp32";
    train_ = " loss loss ema 0.5";
    const Module *m = RunMlp("  masters bf16(rounding = nearest)\n  moments f8()\n", "adamw(lr = 0.1)");
    EXPECT_EQ(TypeOf(m, "fc2.weight"), AMP_DT_BF16);
    EXPECT_EQ(TypeOf(m, "fc2.weight/ema"), AMP_DT_F32);
    auto after = RunStep(Step(m), {{"x", 1}, {"step", 0}, {"fc2.weight", 0.5}});
    EXPECT_NE(after["fc2.weight"], std::vector<double>(after["fc2.weight"].size(), 0.5));
    EXPECT_EQ(after["fc2.weight/ema"], after["fc2.weight"]);
    EXPECT_EQ(ErrorsOf("  moments bf16() at mlp.amp:22:5\n", "sgd(lr = 0.1)").substr(0, 97),
              "error: mlp.amp:22:5: moments = bf16, but no optimizer of the model has moments\n  help: remove the");
}

// One AdamW step of a moment that is not zero, in double, rounded once.
TEST_F(LowStatesTest, AStepRoundsWhatItStores) {
    precision_ = "fp32";
    const Func *f = Step(RunMlp("  moments bf16(rounding = nearest)\n", "adamw(lr = 0.01, beta2 = 0.99)"));
    const double m0 = 0.0078125, v0 = 0.00390625;
    auto after = RunStep(f, {{"x", 1}, {"step", 3}, {"fc2.weight/m", m0}, {"fc2.weight/v", v0}});
    for (size_t i = 0; i < after["fc2.weight"].size(); i++) {
        const double g = after["grad.fc2.weight"][i];
        const double m = 0.9 * m0 + 0.1 * g, v = 0.99 * v0 + 0.01 * g * g;
        ASSERT_NEAR(after["fc2.weight/m"][i], m, std::fabs(m) / 256) << i;
        ASSERT_NEAR(after["fc2.weight/v"][i], v, std::fabs(v) / 256) << i;
        ASSERT_EQ(after["fc2.weight/m"][i], double(amp_round_dtype(AMP_DT_BF16, float(after["fc2.weight/m"][i]))));
    }
}

TEST_F(LowStatesTest, WhatIsRefused) {
    precision_ = "fp32";
    EXPECT_EQ(ErrorsOf("  moments f16(rounding = stochastic) at mlp.amp:22:5\n", "adam(lr = 0.001)"),
              "error: mlp.amp:22:5: moments = f16: v holds squares of gradients, and f16 has none below 6e-8, the "
              "square of 2.4e-4\n  help: moments = bf16 has the range of f32; f16 is for sgd's and muon's momentum and "
              "lion's m\n");
}

TEST_F(LowStatesTest, RmsPropWithoutItsMean) {
    precision_ = "fp32";
    const Module *m = RunMlp("  moments f8()\n", "rmsprop(lr = 0.001, momentum = 0.9)");
    EXPECT_EQ(TypeOf(m, "fc2.weight/v"), AMP_DT_F8V);
    EXPECT_EQ(TypeOf(m, "fc2.weight/momentum"), AMP_DT_F8M);
    EXPECT_EQ(ErrorsOf("  moments bf16() at mlp.amp:22:5\n", "rmsprop(lr = 0.001, centered = true)"),
              "error: mlp.amp:22:5: moments = bf16: rmsprop with centered divides by the root of v - m * m, which may "
              "be smaller than the rounding of v\n  help: remove the line, or remove centered = true\n");
}

TEST_F(LowStatesTest, AdagradsSum) {
    precision_ = "fp32";
    const Module *m = RunMlp("  moments bf16()\n", "adagrad(lr = 0.1)");
    EXPECT_EQ(TypeOf(m, "fc2.weight/squares"), AMP_DT_BF16);
    EXPECT_EQ(ErrorsOf("  moments f8() at mlp.amp:22:5\n", "adagrad(lr = 0.1)"),
              "error: mlp.amp:22:5: moments = f8: adagrad's sum of squares grows from step to step, and f8 ends at "
              "2560\n  help: moments = bf16 has the range of f32\n");
}

TEST_F(LowStatesTest, AdagradsSumInF16) {
    precision_ = "fp32";
    EXPECT_EQ(
        ErrorsOf("  moments f16() at mlp.amp:22:5\n", "adagrad(lr = 0.1)"),
        "error: mlp.amp:22:5: moments = f16: squares holds squares of gradients, and f16 has none below 6e-8, the "
        "square of 2.4e-4\n  help: moments = bf16 has the range of f32; f16 is for sgd's and muon's momentum and "
        "lion's m\n");
}

// What is f32 anyway refuses no type: vectors, and the lines of adafactor.
TEST_F(LowStatesTest, VectorsAndLinesStayF32) {
    precision_ = "fp32";
    const Module *m =
        RunMlp("  moments f16()\n", "sgd(lr = 0.1, momentum = 0.9)\n  group \"*.bias\" optimizer adam(lr = 0.1)");
    EXPECT_EQ(TypeOf(m, "fc2.weight/momentum"), AMP_DT_F16);
    EXPECT_EQ(TypeOf(m, "fc2.bias/v"), AMP_DT_F32);
    m = RunMlp("  moments f8()\n", "adafactor(lr = 0.1)\n  group \"fc1.weight\" optimizer lion(lr = 0.1)");
    EXPECT_EQ(TypeOf(m, "fc1.weight/m"), AMP_DT_F8M);
    EXPECT_EQ(TypeOf(m, "fc2.weight/rows"), AMP_DT_F32);
    EXPECT_EQ(TypeOf(m, "fc2.weight/cols"), AMP_DT_F32);
}

TEST_F(LowStatesTest, MomentsThatAreNotThere) {
    precision_ = "fp32";
    EXPECT_EQ(ErrorsOf("  moments bf16() at mlp.amp:22:5\n", "sgd(lr = 0.1)"),
              "error: mlp.amp:22:5: moments = bf16, but no optimizer of the model has moments\n"
              "  help: remove the line, or give sgd a momentum\n");
}

TEST_F(LowStatesTest, MastersInF8) {
    precision_ = "fp32";
    EXPECT_EQ(ErrorsOf("  masters f8() at mlp.amp:22:5\n", "sgd(lr = 0.1)"),
              "error: mlp.amp:22:5: masters = f8: two bits of mantissa are for moments, not for weights\n"
              "  help: masters = bf16 halves them\n");
}

TEST_F(LowStatesTest, MastersInF16) {
    precision_ = "fp16";
    const Module *m = RunMlp("  masters f16()\n", "adamw(lr = 0.001)", STAGE_SIMPLIFY);
    EXPECT_EQ(TypeOf(m, "fc2.weight"), AMP_DT_F16);
    EXPECT_EQ(TypeOf(m, "fc2.weight/m"), AMP_DT_F32);
    const Func *f = Step(m);
    for (int i = 0; i < f->body.len; i++) {
        const Op *o = ir_op_at(f, i);
        EXPECT_TRUE(o->code != OP_linear || ir_state_of(f, o->in[1])) << "a product reads a copy";
    }
}

// A policy of a system that keeps weights low; what the model says goes before.
TEST_F(LowStatesTest, ByThePolicy) {
    policy_ = "pure-fp16";
    const Module *m = RunMlp("");
    EXPECT_EQ(TypeOf(m, "fc2.weight"), AMP_DT_F16);
    EXPECT_EQ(TypeOf(m, "fc2.bias"), AMP_DT_F32);
    EXPECT_EQ(TypeOf(m, "fc2.weight/m"), AMP_DT_F32);
    EXPECT_EQ(Written(Step(m), "fc2.weight")->code, OP_cast); /* to nearest */
    EXPECT_STREQ(m->masters.pos.file, "pure-fp16.policy");
    policy_ = "pure-bf16";
    EXPECT_EQ(TypeOf(RunMlp(""), "fc2.weight/v"), AMP_DT_BF16);
    EXPECT_EQ(TypeOf(RunMlp("", "sgd(lr = 0.1)"), "fc2.weight"), AMP_DT_BF16); /* no moments, and no error */
    m = RunMlp("  masters f32()\n  moments bf16(rounding = stochastic)\n");
    EXPECT_EQ(TypeOf(m, "fc2.weight"), AMP_DT_F32);
    EXPECT_EQ(Written(Step(m), "fc2.weight/v")->code, OP_stochastic_cast);
}

} // namespace
