// Loss scaling: where it applies, what it adds, what a skipped step leaves alone.
#include <limits>

#include "tests/passes/training_test.h"

namespace {

using ScaleTest = TrainingTest;

// ---- where ----------------------------------------------------------------------------------------------------------

TEST_F(ScaleTest, OnlyF16GradientsAreScaled) {
    const struct {
        const char *precision, *header;
        bool scaled;
    } cases[] = {
        {"fp16", "", true},
        {"bf16", "", false},
        {"tf32", "", false},
        {"fp32", "", false},
        {"fp16", "  loss_scale none()\n", false},
        {"fp16", "  loss_scale static(v = 1024.0)\n", true},
        {"fp16", "  override op * : f32 at m.amp:1:1\n", false}, // an f16 policy, but no f16 value
        {"fp16", "  override path \"fc1*\" : f32 at m.amp:1:1\n", true},
    };
    for (const auto &c : cases) {
        precision_ = c.precision;
        std::string header = c.header;
        if (header.find("op *") != std::string::npos) header = "  override path \"*\" : f32 at m.amp:1:1\n";
        const Func *f = Step(RunMlp(header));
        EXPECT_EQ(Find(f, OP_scale_loss) != nullptr, c.scaled) << c.precision << c.header;
        EXPECT_EQ(HasResult(f, "ok"), c.scaled) << c.precision << c.header;
        EXPECT_TRUE(HasResult(f, "grad.fc1.weight"));
    }
}

TEST_F(ScaleTest, DynamicScalingHasPyTorchsDefaultsAndAFloor) {
    Module *m = RunMlp();
    const Op *update = Find(Step(m), OP_update_scale);
    ASSERT_NE(update, nullptr);
    EXPECT_EQ(ir_attr(update, "growth")->f, 2.0);
    EXPECT_EQ(ir_attr(update, "backoff")->f, 0.5);
    EXPECT_EQ(ir_attr(update, "interval")->i, 2000);
    EXPECT_EQ(ir_attr(update, "min")->f, 1.0);
    EXPECT_EQ(ir_attr(update, "max")->f, 16777216.0);
    EXPECT_EQ(States(m, STATE_SCALER), "scale growth_tracker floor_hits");
    const State *scale = ir_state_find(m, "scale");
    EXPECT_STREQ(scale->init.name, "constant");
    EXPECT_EQ(ir_call_arg(&scale->init, "v")->value.f, 65536.0);
    EXPECT_STREQ(m->loss_scale.name, "dynamic");
    EXPECT_EQ(m->loss_scale.args.len, 6);
}

TEST_F(ScaleTest, TheModelsNumbersAreUsed) {
    Module *m = RunMlp(
        "  loss_scale dynamic(init = 1024, growth = 4.0, backoff = 0.25, interval = 7, min = 0.25, max = inf)\n");
    const Op *update = Find(Step(m), OP_update_scale);
    EXPECT_EQ(ir_attr(update, "growth")->f, 4.0);
    EXPECT_EQ(ir_attr(update, "backoff")->f, 0.25);
    EXPECT_EQ(ir_attr(update, "interval")->i, 7);
    EXPECT_EQ(ir_attr(update, "min")->f, 0.25);
    EXPECT_EQ(ir_attr(update, "max")->f, std::numeric_limits<double>::infinity());
    EXPECT_EQ(ir_call_arg(&ir_state_find(m, "scale")->init, "v")->value.f, 1024.0);
}

TEST_F(ScaleTest, AStaticScaleIsCheckedButNotUpdated) {
    Module *m = RunMlp("  loss_scale static(v = 1024.0)\n");
    EXPECT_EQ(Find(Step(m), OP_update_scale), nullptr);
    EXPECT_NE(Find(Step(m), OP_all_finite), nullptr);
    EXPECT_EQ(States(m, STATE_SCALER), "scale");
    EXPECT_EQ(ir_call_arg(&ir_state_find(m, "scale")->init, "v")->value.f, 1024.0);
}

TEST_F(ScaleTest, EveryGradientIsCheckedWhileItIsScaledAndThenUnscaled) {
    const Func *f = Step(RunMlp());
    const Op *check = Find(f, OP_all_finite);
    ASSERT_EQ(check->n_in, 4);
    int unscaled = 0;
    for (int i = 0; i < f->body.len; i++) {
        const Op *o = ir_op_at(f, i);
        if (o->code != OP_unscale) continue;
        EXPECT_EQ(o->in[0].id, check->in[unscaled++].id);
    }
    EXPECT_EQ(unscaled, 4);
    for (int i = 0; i < f->body.len; i++) // the unscaled seed goes into scale_loss and nowhere else
        for (int j = 0; j < ir_op_at(f, i)->n_in; j++)
            if (ir_op_at(f, i)->in[j].id == Find(f, OP_grad_seed)->out[0].id) {
                EXPECT_EQ(ir_op_at(f, i)->code, OP_scale_loss);
            }
}

// ---- what a step does -----------------------------------------------------------------------------------------------

TEST_F(ScaleTest, AnOverflowSkipsTheStepAndBacksOff) {
    const Func *f = Step(RunMlp());
    auto before = RunStep(f, {{"scale", 65536}, {"growth_tracker", 5}, {"x", 1}, {"step", 3}, {"iteration", 9}});
    auto after = RunStep(f, {{"scale", 65536}, {"growth_tracker", 5}, {"x", NAN}, {"step", 3}, {"iteration", 9}});
    EXPECT_EQ(before["ok"][0], 1);
    EXPECT_EQ(before["step"][0], 4);
    EXPECT_EQ(before["iteration"][0], 10);
    EXPECT_EQ(before["scale"][0], 65536);
    EXPECT_EQ(before["growth_tracker"][0], 6);
    EXPECT_EQ(after["ok"][0], 0);
    EXPECT_EQ(after["step"][0], 3);
    EXPECT_EQ(after["iteration"][0], 10); // counts attempts
    EXPECT_EQ(after["scale"][0], 32768);
    EXPECT_EQ(after["growth_tracker"][0], 0);
    EXPECT_EQ(after["floor_hits"][0], 0);
    EXPECT_NE(before["fc2.bias"][0], -0.03);
    EXPECT_EQ(after["fc2.bias"][0], -0.03);
    EXPECT_EQ(after["fc1.weight/m"][0], 0);
}

TEST_F(ScaleTest, TheFloorIsCounted) {
    const Func *f = Step(RunMlp());
    auto first = RunStep(f, {{"scale", 1}, {"floor_hits", 0}, {"x", NAN}});
    EXPECT_EQ(first["scale"][0], 1);
    EXPECT_EQ(first["floor_hits"][0], 1);
    EXPECT_EQ(RunStep(f, {{"scale", 1}, {"floor_hits", 4}, {"x", NAN}})["floor_hits"][0], 5);
    EXPECT_EQ(RunStep(f, {{"scale", 1}, {"floor_hits", 4}, {"x", 1}})["floor_hits"][0], 4);
    EXPECT_EQ(RunStep(f, {{"scale", 2}, {"floor_hits", 4}, {"x", NAN}})["floor_hits"][0], 4);
}

// Scales are powers of two, so they change nothing but what would underflow.
TEST_F(ScaleTest, UnscaledGradientsAreThoseOfTheUnscaledLoss) {
    const Func *f = Step(RunMlp());
    auto one = RunStep(f, {{"scale", 1}, {"x", 1}}), large = RunStep(f, {{"scale", 1024}, {"x", 1}});
    for (const char *name : {"grad.fc2.bias", "grad.fc2.weight"})
        for (size_t i = 0; i < one[name].size(); i++)
            EXPECT_NEAR(large[name][i], one[name][i], 1e-3 * std::fabs(one[name][i]) + 1e-6) << name;
}

} // namespace
