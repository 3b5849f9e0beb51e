// Train blocks in the IR: groups, schedules, clipping, several blocks, and steps of micro-batches, which must mean the
// same
// as one step of the whole batch.
#include "tests/passes/training_test.h"

#include <random>

namespace {

class TrainBlocksTest : public TrainingTest {
  protected:
    TrainBlocksTest() { precision_ = "fp32"; }

    // The MLP with other lines for its train block.
    Module *RunTrain(const std::string &lines, Stage last = STAGE_OPTIMIZER) {
        std::string text = File("tests/passes/mlp.ir");
        size_t from = text.find("  train\n"), to = text.find("  metric acc");
        text.replace(from, to - from, lines);
        return Run(Read(text), last);
    }

    // The optimizer's op that makes the next value of a parameter.
    static const Op *UpdateOf(const Func *f, const std::string &param) {
        return ir_def(f, ir_find(f, (param + ".next").c_str()));
    }

    static const Op *Operand(const Func *f, const Op *o, int i) { return ir_def(f, o->in[i]); }

    static int Count(const Func *f, Opcode code) {
        int count = 0;
        for (int i = 0; i < f->body.len; i++) count += ir_op_at(f, i)->code == code;
        return count;
    }
};

enum { kLearningRate = 3, kDecay = 4 };

TEST_F(TrainBlocksTest, OfSeveralGroupsTheLastThatGivesAKeyHolds) {
    const Func *f = Step(RunTrain("  train loss loss\n  optimizer adamw(lr = 0.5, weight_decay = 0.1)\n"
                                  "  group \"*\" lr_scale 0.5 weight_decay 0.2\n  group \"*.bias\" weight_decay 0.0\n"
                                  "  group \"fc2.*\" lr_scale 0.1\n"));
    const struct {
        const char *param;
        double lr, decay;
    } cases[] = {
        {"fc1.weight", 0.25, 0.2}, {"fc1.bias", 0.25, 0.0}, {"fc2.weight", 0.05, 0.2}, {"fc2.bias", 0.05, 0.0}};
    for (const auto &c : cases) {
        EXPECT_EQ(Rate(f, UpdateOf(f, c.param), kLearningRate), c.lr) << c.param;
        EXPECT_EQ(Rate(f, UpdateOf(f, c.param), kDecay), c.decay) << c.param;
    }
}

TEST_F(TrainBlocksTest, GroupsHaveOptimizersWithRatesOfTheirOwn) {
    Module *m = RunTrain("  train loss loss\n  optimizer adamw(lr = 0.5, weight_decay = 0.25)\n"
                         "  group \"*.bias\" lr_scale 0.5\n"
                         "  group \"fc2.*\" optimizer lion(lr = step(base = 0.5, every = 2, gamma = 0.5))\n"
                         "  group \"fc2.weight\" weight_decay 0.125 optimizer sgd(lr = 0.1, momentum = 0.9)\n");
    const Func *f = Step(m);
    const struct {
        const char *param;
        Opcode code;
        double lr, decay;
    } cases[] = {{"fc1.weight", OP_adamw, 0.5, 0.25},
                 {"fc1.bias", OP_adamw, 0.25, 0.25},
                 {"fc2.weight", OP_sgd, 0.1, 0.125},
                 {"fc2.bias", OP_lion, 0, 0}};
    for (const auto &c : cases) {
        const Op *update = UpdateOf(f, c.param);
        EXPECT_EQ(update->code, c.code) << c.param;
        if (c.lr > 0) {
            EXPECT_EQ(Rate(f, update, kLearningRate), c.lr) << c.param;
        }
        EXPECT_EQ(Rate(f, update, kDecay), c.decay) << c.param;
    }
    const Op *lr = Operand(f, UpdateOf(f, "fc2.bias"), kLearningRate);
    EXPECT_EQ(lr->code, OP_mul);
    EXPECT_EQ(Operand(f, lr, 0)->code, OP_step_rate);
    EXPECT_STREQ(ir_state_of(f, lr->in[1])->name, "lr_scale.0");
    EXPECT_EQ(lr->in[1].id, Operand(f, UpdateOf(f, "fc1.bias"), kLearningRate)->in[1].id) << "of both optimizers";
    EXPECT_EQ(States(m, STATE_MOMENT),
              "fc1.weight/m fc1.weight/v fc1.bias/m fc1.bias/v fc2.weight/momentum fc2.bias/m");
    EXPECT_EQ(States(m, STATE_COUNTER), "step iteration learning_rate lr_scale.0");
}

TEST_F(TrainBlocksTest, FrozenParametersHaveNoGradientNoUpdateNoMoments) {
    Module *m = RunTrain("  train loss loss\n  optimizer adamw(lr = 0.5)\n  group \"fc1.*\" frozen\n");
    EXPECT_EQ(UpdateOf(Step(m), "fc1.weight"), nullptr);
    EXPECT_FALSE(HasResult(Step(m), "grad.fc1.weight"));
    EXPECT_EQ(States(m, STATE_MOMENT), "fc2.weight/m fc2.weight/v fc2.bias/m fc2.bias/v");
}

// Groups at random, against a plain reading of the rule: what is frozen, the rates of the others, and their moments.
TEST_F(TrainBlocksTest, EachKeyIsGivenAndTakenBackByLaterGroups) {
    const char *const params[] = {"fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias"};
    const char *const patterns[] = {"*", "fc1.*", "*.bias", "fc2.weight", "fc2.*"};
    const char *const rates[] = {"0.0", "0.5", "1.0"};
    const bool matches[][4] = {{1, 1, 1, 1}, {1, 1, 0, 0}, {0, 1, 0, 1}, {0, 0, 1, 0}, {0, 0, 1, 1}};
    std::mt19937 random(7);
    for (int round = 0; round < 24; round++) {
        std::string lines = "  train loss loss\n  optimizer adamw(lr = 0.5, weight_decay = 0.25)\n";
        double scale[] = {1, 1, 1, 1}, decay[] = {0.25, 0.25, 0.25, 0.25};
        bool frozen[4] = {};
        for (int group = 0; group < 4; group++) {
            const unsigned pattern = random() % 5, factor = random() % 4, rate = random() % 4, freezes = random() % 3;
            lines += std::string("  group \"") + patterns[pattern] + "\"";
            if (factor < 3) lines += std::string(" lr_scale ") + rates[factor];
            if (rate < 3) lines += std::string(" weight_decay ") + rates[rate];
            lines += freezes == 2 ? "\n" : freezes ? " frozen\n" : " frozen false\n";
            for (int i = 0; i < 4; i++) {
                if (!matches[pattern][i]) continue;
                if (factor < 3) scale[i] = factor / 2.0;
                if (rate < 3) decay[i] = rate / 2.0;
                if (freezes < 2) frozen[i] = freezes;
            }
        }
        SCOPED_TRACE(lines);
        Module *m = RunTrain(lines);
        std::string moments;
        for (int i = 0; i < 4; i++) {
            const Op *update = UpdateOf(Step(m), params[i]);
            ASSERT_EQ(update == nullptr, frozen[i]) << params[i];
            EXPECT_EQ(ir_param_training(m, params[i]).frozen != NO_BLOCK, frozen[i]) << params[i];
            EXPECT_EQ(HasResult(Step(m), (std::string("grad.") + params[i]).c_str()), !frozen[i]) << params[i];
            if (frozen[i]) continue;
            EXPECT_EQ(Rate(Step(m), update, kLearningRate), 0.5 * scale[i]) << params[i];
            EXPECT_EQ(Rate(Step(m), update, kDecay), decay[i]) << params[i];
            moments += (moments.empty() ? "" : " ") + (params[i] + std::string("/m ") + params[i] + "/v");
        }
        EXPECT_EQ(States(m, STATE_MOMENT), moments);
    }
}

TEST_F(TrainBlocksTest, AScheduleIsOneOpForAllWhoShareIt) {
    const Func *f =
        Step(RunTrain("  train loss loss\n  optimizer adamw(lr = cosine(peak = 0.5, warmup = 3, steps = 9))\n"
                      "  group \"fc2.*\" lr_scale 0.1\n"));
    EXPECT_EQ(Count(f, OP_cosine_rate), 1);
    const Op *lr = Operand(f, UpdateOf(f, "fc1.bias"), kLearningRate);
    EXPECT_EQ(lr->code, OP_settable_rate);
    EXPECT_EQ(Initial(ir_state_of(f, lr->in[0])), -1) << "the schedule's";
    const Op *schedule = Operand(f, lr, 1);
    EXPECT_EQ(schedule->code, OP_cosine_rate);
    EXPECT_EQ(ir_attr(schedule, "warmup")->i, 3);
    EXPECT_EQ(ir_attr(schedule, "floor")->f, 0.0);
    EXPECT_STREQ(ir_value(f, schedule->in[0])->name, "step"); // updates that were done: from 0
    const Op *scaled = Operand(f, UpdateOf(f, "fc2.bias"), kLearningRate);
    EXPECT_EQ(scaled->code, OP_mul);
    EXPECT_EQ(Operand(f, scaled, 0), lr);
    EXPECT_EQ(Initial(ir_state_of(f, scaled->in[1])), 0.1);
    EXPECT_EQ(scaled, Operand(f, UpdateOf(f, "fc2.weight"), kLearningRate));
}

TEST_F(TrainBlocksTest, AnUnknownScheduleIsNamed) {
    std::string text = File("tests/passes/mlp.ir");
    text.replace(text.find("lr = 0.001"), 10, "lr = exponential(gamma = 0.9)");
    EXPECT_EQ(TryRun(Read(text), STAGE_OPTIMIZER), AMP_BAD_SOURCE);
    EXPECT_NE(Diagnostics().find("schedule exponential is not supported"), std::string::npos) << Diagnostics();
}

TEST_F(TrainBlocksTest, GradientsAreClippedAfterUnscaling) {
    precision_ = "fp16";
    const Func *f = Step(RunTrain("  train loss loss clip_norm 0.5 clip_value 0.1\n  optimizer sgd(lr = 0.5)\n"));
    const Op *by_value = Operand(f, UpdateOf(f, "fc1.weight"), 1), *by_norm = Operand(f, by_value, 0);
    EXPECT_EQ(by_value->code, OP_clamp);
    EXPECT_EQ(ir_attr(by_value, "high")->f, 0.1);
    EXPECT_EQ(by_norm->code, OP_clip_by_norm);
    EXPECT_EQ(ir_attr(by_norm, "max")->f, 0.5);
    EXPECT_EQ(Operand(f, by_norm, 0)->code, OP_unscale);
    const Op *norm = Operand(f, by_norm, 1);
    EXPECT_EQ(norm->code, OP_global_norm);
    EXPECT_EQ(norm->n_in, 4);
    EXPECT_TRUE(HasResult(f, "grad_norm"));
    for (int i = 0; i < f->results.len; i++) {
        bool gradient = !strncmp(f->results.data[i].name, "grad.", 5);
        EXPECT_TRUE(!gradient || ir_def(f, f->results.data[i].value)->code == OP_unscale)
            << "results are before clipping";
    }
}

// ---- several blocks
// --------------------------------------------------------------------------------------------------

const char kTwoBlocks[] = "  train for \"fc1.*\" loss loss\n  optimizer sgd(lr = 0.5)\n"
                          "  train for \"fc2.*\" loss loss clip_norm 1.0\n  optimizer adamw(lr = 0.1)\n";

TEST_F(TrainBlocksTest, BlocksThatSkipAloneCountAlone) {
    precision_ = "fp16";
    Module *m = RunTrain(kTwoBlocks);
    const Func *f = Step(m);
    EXPECT_EQ(States(m, STATE_COUNTER), "step iteration step.0 learning_rate.0 step.1 learning_rate.1");
    EXPECT_EQ(Count(f, OP_all_finite), 3); // of each block, and of all for the scale
    EXPECT_EQ(Count(f, OP_update_scale), 1);
    EXPECT_EQ(Count(f, OP_scale_loss), 2);
    std::map<std::string, std::string> predicates;
    for (int i = 0; i < f->body.len; i++) {
        const Op *o = ir_op_at(f, i);
        if (o->code != OP_assign) continue;
        const Value *pred = ir_value(f, o->pred);
        predicates[ir_value(f, o->in[0])->name] = pred ? pred->name : "";
    }
    EXPECT_EQ(predicates["fc1.weight"], "ok.0");
    EXPECT_EQ(predicates["step.0"], "ok.0");
    EXPECT_EQ(predicates["fc2.bias"], "ok.1");
    EXPECT_EQ(predicates["fc2.bias/v"], "ok.1");
    EXPECT_EQ(predicates["step"], "any.ok");
    EXPECT_EQ(predicates["iteration"], "");
    EXPECT_EQ(predicates["scale"], "");
    EXPECT_STREQ(ir_value(f, UpdateOf(f, "fc2.bias")->in[2])->name, "step.1.next");
    EXPECT_EQ(Operand(f, UpdateOf(f, "fc2.bias"), 1)->code, OP_clip_by_norm);
    EXPECT_EQ(Operand(f, UpdateOf(f, "fc1.bias"), 1)->code, OP_unscale);
}

TEST_F(TrainBlocksTest, UnscaledBlocksShareACounter) {
    Module *m = RunTrain(kTwoBlocks);
    EXPECT_EQ(States(m, STATE_COUNTER), "step iteration learning_rate.0 learning_rate.1");
    EXPECT_STREQ(ir_value(Step(m), UpdateOf(Step(m), "fc2.bias")->in[2])->name, "step.next");
}

TEST_F(TrainBlocksTest, ABlockOfEachKthStepCountsAlone) {
    Module *m = RunTrain("  train for \"fc1.*\" loss loss every 3\n  optimizer sgd(lr = 0.5)\n"
                         "  train for \"fc2.*\" loss loss\n  optimizer adamw(lr = 0.1)\n");
    const Func *f = Step(m);
    EXPECT_EQ(States(m, STATE_COUNTER), "step iteration step.0 learning_rate.0 step.1 learning_rate.1");
    const Op *due = ir_def(f, ir_find(f, "due.0"));
    ASSERT_NE(due, nullptr);
    EXPECT_EQ(due->code, OP_is_due);
    EXPECT_EQ(ir_attr(due, "every")->i, 3);
    std::map<std::string, std::string> predicates;
    for (int i = 0; i < f->body.len; i++) {
        const Op *o = ir_op_at(f, i);
        const Value *pred = o->code == OP_assign ? ir_value(f, o->pred) : nullptr;
        if (pred) predicates[ir_value(f, o->in[0])->name] = pred->name;
    }
    const std::map<std::string, std::string> wanted = {
        {"fc1.weight", "due.0"}, {"fc1.bias", "due.0"}, {"step.0", "due.0"}};
    EXPECT_EQ(predicates, wanted);
    EXPECT_EQ(Print(m), Print(Read(Print(m))));
}

// ---- micro-batches
// -----------------------------------------------------------------------------------------------------

using Values = std::map<std::string, std::vector<double>>;

class AccumulateTest : public TrainBlocksTest {
  protected:
    // What the function leaves in |states|, which it also reads; samples [from, from + n) of a batch of 8.
    void Call(const Func *f, int from, int n, Values *states, Values *results) {
        std::vector<InterpTensor> given;
        for (int i = 0; i < f->inputs.len; i++) {
            const Value *v = ir_value(f, f->inputs.data[i]);
            InterpTensor t = interp_tensor(&arena_, v->name, &v->shape, {n, 1});
            std::vector<double> &kept = (*states)[v->name];
            bool is_input = v->kind == VAL_INPUT;
            if (!is_input && kept.empty())
                for (int64_t j = 0; j < t.count; j++) kept.push_back(First(f->module, v->name, j));
            for (int64_t j = 0; j < t.count; j++)
                t.data[j] = !is_input ? kept[size_t(j)] : Sample(v->name, from * (t.count / n) + j);
            given.push_back(t);
        }
        InterpOptions exact = {};
        std::vector<InterpTensor> out(size_t(f->results.len) + 1);
        ASSERT_EQ(interp_run(f, {n, 1}, &exact, given.data(), int(given.size()), out.data(), &error_), AMP_OK)
            << error_.message;
        for (const InterpTensor &t : given) (*states)[t.name] = {t.data, t.data + t.count};
        for (int i = 0; i < f->results.len; i++)
            (*results)[f->results.data[i].name] = {out[size_t(i)].data, out[size_t(i)].data + out[size_t(i)].count};
    }

    static double First(const Module *m, const char *name, int64_t j) {
        const State *s = ir_state_find(m, name);
        if (!strcmp(name, "scale")) return 1024;
        if (!strcmp(name, "full_batch")) return 2;
        if (s->role == STATE_COUNTER) return Initial(s);
        return s->role == STATE_PARAM ? 0.1 * double((j * 7) % 11 - 5) : s->role == STATE_ACCUMULATOR ? NAN : 0;
    }

    static double Sample(const char *name, int64_t j) {
        return strcmp(name, "x") ? double((j * 3) % 10) : 0.25 * double((j * 5) % 13 - 6);
    }
};

TEST_F(AccumulateTest, FourMicroBatchesAreOneStep) {
    for (const char *precision : {"fp32", "fp16"}) {
        SCOPED_TRACE(precision);
        precision_ = precision;
        const char *block = "  train loss loss clip_norm 0.5\n  optimizer adamw(lr = 0.01, weight_decay = 0.1)\n";
        Module *whole = RunTrain(block), *parts = RunTrain(std::string(block) + "  accumulate 4\n");
        const Func *micro_step = ir_func_find(parts, "micro_step"), *apply_step = ir_func_find(parts, "apply_step");
        ASSERT_TRUE(micro_step && apply_step);
        EXPECT_EQ(ir_func_find(parts, "train_step"), nullptr);
        Values want, got, want_results, got_results;
        for (int step = 0; step < 3; step++) {
            Call(Step(whole), 0, 8, &want, &want_results);
            for (int micro = 0; micro < 4; micro++) {
                EXPECT_EQ(got["micro"].empty() ? 0 : got["micro"][0], micro);
                Call(micro_step, 2 * micro, 2, &got, &got_results);
            }
            Call(apply_step, 0, 8, &got, &got_results);
            EXPECT_NEAR(got_results["grad_norm"][0], want_results["grad_norm"][0], 1e-12);
        }
        for (const char *name :
             {"fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias", "fc1.weight/m", "fc2.bias/v", "step", "iteration"}) {
            ASSERT_EQ(want[name].size(), got[name].size()) << name;
            for (size_t i = 0; i < want[name].size(); i++)
                ASSERT_NEAR(want[name][i], got[name][i], 1e-12) << name << " " << i;
        }
        EXPECT_EQ(got["micro"][0], 0);
        EXPECT_EQ(got["step"][0], 3);
    }
}

TEST_F(AccumulateTest, GradientsOfMicroBatchesKeepTheProductsF32) {
    precision_ = "fp16";
    Module *m = RunTrain("  train loss loss\n  optimizer sgd(lr = 0.1)\n  accumulate 2\n", STAGE_SIMPLIFY);
    ASSERT_EQ(m->removed.len, 4);
    EXPECT_STREQ(m->removed.data[0].func, "micro_step");
}

} // namespace
