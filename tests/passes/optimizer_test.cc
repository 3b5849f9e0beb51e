// The optimizer: moments, attributes, counters, and which writes a skipped step leaves out.
#include "tests/passes/training_test.h"

namespace {

class OptimizerTest : public TrainingTest {
  protected:
    // tests/passes/mlp.ir with another optimizer.
    static std::string MlpBy(const std::string &optimizer) {
        std::string text = File("tests/passes/mlp.ir");
        return text.replace(text.find("adamw(lr = 0.001)"), 17, optimizer);
    }
};

// Operands of an optimizer's op.
enum { kLearningRate = 3, kDecay = 4 };

TEST_F(OptimizerTest, EachOptimizerHasItsMoments) {
    precision_ = "fp32";
    const struct {
        const char *call;
        Opcode code;
        const char *moments;
    } cases[] = {
        {"adamw(lr = 0.001, beta2 = 0.95, weight_decay = 0.1)", OP_adamw, "fc1.weight/m fc1.weight/v"},
        {"adam(lr = 1)", OP_adam, "fc1.weight/m fc1.weight/v"},
        {"sgd(lr = 0.1, momentum = 0.9, nesterov = true)", OP_sgd, "fc1.weight/momentum fc1.bias/momentum"},
        {"sgd(lr = 0.1, momentum = 0.0)", OP_sgd, ""},
        {"sgd(lr = 0.1)", OP_sgd, ""},
        {"adagrad(lr = 0.1)", OP_adagrad, "fc1.weight/squares fc1.bias/squares"},
        {"adafactor(lr = 0.1)", OP_adafactor, "fc1.weight/rows fc1.weight/cols fc1.bias/v fc2.weight/rows"},
        {"lamb(lr = 0.1)", OP_lamb, "fc1.weight/m fc1.weight/v fc1.bias/m"},
        {"lion(lr = 0.1)", OP_lion, "fc1.weight/m fc1.bias/m"},
        {"muon(lr = 0.1)\n  group \"*.bias\" optimizer sgd(lr = 0.1)", OP_muon,
         "fc1.weight/momentum fc2.weight/momentum"},
        {"rmsprop(lr = 0.1)", OP_rmsprop, "fc1.weight/v fc1.bias/v"},
        {"rmsprop(lr = 0.1, momentum = 0.9)", OP_rmsprop, "fc1.weight/v fc1.weight/momentum fc1.bias/v"},
        {"rmsprop(lr = 0.1, momentum = 0.9, centered = true)", OP_rmsprop,
         "fc1.weight/v fc1.weight/m fc1.weight/momentum fc1.bias/v"},
    };
    for (const auto &c : cases) {
        Module *m = RunMlp("", c.call);
        EXPECT_NE(Find(Step(m), c.code), nullptr) << c.call;
        EXPECT_EQ(States(m, STATE_MOMENT).substr(0, strlen(c.moments)), c.moments) << c.call;
        EXPECT_EQ(States(m, STATE_MOMENT).empty(), !*c.moments) << c.call;
        EXPECT_EQ(States(m, STATE_COUNTER), "step iteration learning_rate") << c.call;
    }
    const Func *step = Step(RunMlp("", cases[0].call));
    const Op *adamw = Find(step, OP_adamw);
    EXPECT_EQ(ir_attr(adamw, "beta2")->f, 0.95);
    EXPECT_EQ(Rate(step, adamw, kDecay), 0.1);
    EXPECT_EQ(ir_attr(adamw, "eps")->f, 1e-8);
    step = Step(RunMlp("", cases[1].call));
    EXPECT_EQ(Rate(step, Find(step, OP_adam), kLearningRate), 1.0); // a whole number is a float there
    EXPECT_TRUE(ir_attr(Find(Step(RunMlp("", cases[2].call)), OP_sgd), "nesterov")->b);
    const State *sum =
        ir_state_find(RunMlp("", "adagrad(lr = 0.1, initial_accumulator_value = 0.5)"), "fc1.weight/squares");
    EXPECT_STREQ(sum->init.name, "constant");
    EXPECT_EQ(ir_call_arg(&sum->init, "v")->value.f, 0.5);
    Module *factored = RunMlp("", "adafactor(lr = 0.1)");
    EXPECT_STREQ(shape_text(factored->arena, &ir_state_find(factored, "fc1.weight/rows")->shape), "[32]");
    EXPECT_STREQ(shape_text(factored->arena, &ir_state_find(factored, "fc1.weight/cols")->shape), "[16]");
    const State *moment = ir_state_find(RunMlp(), "fc1.weight/m");
    EXPECT_STREQ(moment->of, "fc1.weight");
    EXPECT_STREQ(moment->slot, "m");
}

TEST_F(OptimizerTest, WritesArePredicatedOnlyWhereStepsCanBeSkipped) {
    for (const char *precision : {"fp16", "fp32"}) {
        precision_ = precision;
        const Func *f = Step(RunMlp());
        for (int i = 0; i < f->body.len; i++) {
            const Op *o = ir_op_at(f, i);
            if (o->code != OP_assign) continue;
            const State *s = ir_state_of(f, o->in[0]);
            bool always = s->role == STATE_SCALER || !strcmp(s->name, "iteration") || precision_ == "fp32";
            EXPECT_EQ(o->pred.id == 0, always) << s->name;
        }
    }
}

// One AdamW step by hand (Loshchilov and Hutter 2019), from zero moments: m/bc1 = g, sqrt(v/bc2) = |g|.
TEST_F(OptimizerTest, AStepMovesAParameterByItsLearningRate) {
    precision_ = "fp32";
    const Func *f = Step(RunMlp("", "adamw(lr = 0.01, weight_decay = 0.1)"));
    auto after = RunStep(f, {{"x", 1}, {"step", 0}, {"fc2.bias", 0.5}});
    for (size_t i = 0; i < after["fc2.bias"].size(); i++) {
        double g = after["grad.fc2.bias"][i], w = 0.5 * (1 - 0.01 * 0.1);
        EXPECT_NEAR(after["fc2.bias"][i], w - 0.01 * g / (std::fabs(g) + 1e-8), 1e-6);
    }
}

// Of the parameter's next value: all of it in the first step.  Skipped with it.
TEST_F(OptimizerTest, AnAverageFollowsItsParameter) {
    train_ = " loss loss ema 0.75";
    const Func *f = Step(RunMlp("", "sgd(lr = 0.01)"));
    EXPECT_EQ(States(f->module, STATE_MOMENT).substr(0, 29), "fc1.weight/ema fc1.bias/ema f");
    for (const int step : {0, 1}) {
        auto after = RunStep(f, {{"x", 1}, {"step", step}, {"fc2.bias", 0.5}, {"fc2.bias/ema", step * 3}});
        for (size_t i = 0; i < after["fc2.bias"].size(); i++) {
            const double w = after["fc2.bias"][i];
            EXPECT_NEAR(after["fc2.bias/ema"][i], step ? 0.75 * 3 + 0.25 * w : w, 1e-6);
        }
    }
    int skipped = 0;
    for (int i = 0; i < f->body.len; i++) {
        const Op *o = ir_op_at(f, i);
        const State *s = o->code == OP_assign ? ir_state_of(f, o->in[0]) : nullptr;
        skipped += s && s->slot && !strcmp(s->slot, "ema") && o->pred.id;
    }
    EXPECT_EQ(skipped, 4);
}

TEST_F(OptimizerTest, MatricesAloneAreTrainedByMuon) {
    std::string text = MlpBy("muon(lr = 0.02)");
    EXPECT_EQ(TryRun(Read(text), STAGE_OPTIMIZER), AMP_BAD_SOURCE);
    EXPECT_EQ(Diagnostics(),
              "error: mlp.amp:20:17: optimizer: muon trains matrices, and the shape of fc1.bias is [32]\n"
              "  help: give it another: group \"*.bias\": optimizer = adamw(lr = 0.001)\n");
}

TEST_F(OptimizerTest, AGlobThatMatricesMatchIsNoRemedy) {
    std::string text = MlpBy("muon(lr = 0.02)");
    for (size_t at; (at = text.find("fc1.bias")) != std::string::npos;) text.replace(at, 8, "fc1.side.weight");
    EXPECT_EQ(TryRun(Read(text), STAGE_OPTIMIZER), AMP_BAD_SOURCE);
    EXPECT_NE(Diagnostics().find("help: give it another: group \"fc1.side.weight\": optimizer"), std::string::npos)
        << Diagnostics();
}

TEST_F(OptimizerTest, AnUnknownOptimizerIsNamed) {
    std::string text = MlpBy("adadelta(lr = 1)");
    EXPECT_EQ(TryRun(Read(text), STAGE_OPTIMIZER), AMP_BAD_SOURCE);
    EXPECT_EQ(Diagnostics(),
              "error: mlp.amp:20:17: optimizer adadelta is not supported\n"
              "  help: sgd, adam, adamw, adafactor, adagrad, lamb, lion, muon and rmsprop are supported\n");
}

} // namespace
