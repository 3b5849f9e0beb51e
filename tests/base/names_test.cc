// names_test.cc: names become kinds and back: every kind in each of its forms, and names that no kind has.
#include "base/names.h"

#include <gtest/gtest.h>

#include <string>

#include "base/text.h"

namespace {

class Names : public testing::Test {
  protected:
    void SetUp() override { arena_init(&arena_, nullptr); }
    void TearDown() override { arena_free(&arena_); }

    void ExpectResult(const char *name, ResultKind kind, int block, const char *of) {
        const ResultName n = amp_result_name(name);
        EXPECT_EQ(n.kind, kind) << name;
        EXPECT_EQ(n.block, block) << name;
        EXPECT_STREQ(n.of, of) << name;
        if (kind == RESULT_MODEL) return;
        EXPECT_STREQ(amp_result_text(&arena_, n.kind, n.block, n.of), name);
    }
    void ExpectCounter(const char *name, CounterKind kind, int block) {
        const CounterName n = amp_counter_name(name);
        EXPECT_EQ(n.kind, kind) << name;
        EXPECT_EQ(n.block, block) << name;
        if (kind == COUNTER_NONE) return;
        EXPECT_STREQ(amp_counter_text(&arena_, n.kind, n.block), name);
    }

    Arena arena_;
};

TEST_F(Names, ResultsOfEveryKind) {
    ExpectResult("loss", RESULT_LOSS, NO_BLOCK, nullptr);
    ExpectResult("loss.0", RESULT_LOSS, 0, "0");
    ExpectResult("loss.17", RESULT_LOSS, 17, "17");
    ExpectResult("loss.critic", RESULT_NAMED_LOSS, NO_BLOCK, "critic");
    ExpectResult("metric.acc", RESULT_METRIC, NO_BLOCK, "acc");
    ExpectResult("metric.0", RESULT_METRIC, NO_BLOCK, "0");
    ExpectResult("grad.fc1.weight", RESULT_GRADIENT, NO_BLOCK, "fc1.weight");
    ExpectResult("ok", RESULT_OK, NO_BLOCK, nullptr);
    ExpectResult("ok.1", RESULT_OK, 1, "1");
    ExpectResult("grad_norm", RESULT_NORM, NO_BLOCK, nullptr);
    ExpectResult("grad_norm.2", RESULT_NORM, 2, "2");
    ExpectResult("count.loss", RESULT_COUNT, NO_BLOCK, "loss");
    ExpectResult("sum.metric.hits", RESULT_SUM, NO_BLOCK, "metric.hits");
    ExpectResult("mean.2", RESULT_MEAN, 2, "2");
    ExpectResult("term.1.fc1.weight", RESULT_TERM, NO_BLOCK, "1.fc1.weight");
    ExpectResult("update.bn.running_mean", RESULT_UPDATE, NO_BLOCK, "bn.running_mean");
}

TEST_F(Names, OtherResultsAreTheModels) {
    for (const char *name : {"", "logits", "los", "lossy", "loss_0", "metric", "grad", "update", "okay", "ok.", "ok.x",
                             "ok.-1", "grad_norm.x", "Loss", " loss", ".loss"})
        ExpectResult(name, RESULT_MODEL, NO_BLOCK, nullptr);
}

// What is printed for a block must be read as that block: "loss.01" is no block's, as block 1 is "loss.1".
TEST_F(Names, NumbersOfBlocksHaveOneForm) {
    ExpectResult("loss.01", RESULT_NAMED_LOSS, NO_BLOCK, "01");
    ExpectResult("loss.1e3", RESULT_NAMED_LOSS, NO_BLOCK, "1e3");
    ExpectResult("ok.007", RESULT_MODEL, NO_BLOCK, nullptr);
    ExpectResult("ok.999999999", RESULT_OK, 999999999, "999999999");
    ExpectResult("ok.1000000000", RESULT_MODEL, NO_BLOCK, nullptr);
    ExpectResult("ok.99999999999999999999", RESULT_MODEL, NO_BLOCK, nullptr);
}

TEST_F(Names, EveryProgramAndBack) {
    for (int kind = 1; kind < PROGRAM_KINDS; kind++)
        EXPECT_EQ(amp_program_kind(amp_program_word(ProgramKind(kind))), kind);
    EXPECT_EQ(amp_program_kind("train_step"), PROGRAM_TRAIN_STEP);
    EXPECT_EQ(amp_program_kind("infer_fp32"), PROGRAM_INFER_FP32);
    EXPECT_EQ(amp_program_kind("forward"), PROGRAM_FORWARD);
    for (const char *name : {"", "f", "train", "train_step.0", "eval_fp16", "eval2", "infer_", "Forward"})
        EXPECT_EQ(amp_program_kind(name), PROGRAM_OTHER) << name;
    EXPECT_EQ(amp_program_word(PROGRAM_OTHER), nullptr);
}

TEST_F(Names, EveryCounterAndBack) {
    for (int kind = 1; kind < COUNTER_KINDS; kind++) {
        const bool numbered = kind == COUNTER_LR_SCALE || kind == COUNTER_STATES_KEPT; // of a group, of a buffer
        const std::string word = amp_counter_word(CounterKind(kind));
        ExpectCounter((word + (numbered ? ".2" : "")).c_str(), CounterKind(kind), numbered ? 2 : NO_BLOCK);
    }
    ExpectCounter("lr_scale", COUNTER_NONE, NO_BLOCK);
    ExpectCounter("step", COUNTER_STEP, NO_BLOCK);
    ExpectCounter("step.3", COUNTER_STEP, 3);
    for (const char *name : {"", "steps", "step.", "step.x", "iteration.0", "seed.1", "scale.0", "fc1.weight"})
        ExpectCounter(name, COUNTER_NONE, NO_BLOCK);
}

TEST_F(Names, WordsOfResults) {
    for (int kind = 1; kind < RESULT_KINDS; kind++) {
        const std::string word = amp_result_word(ResultKind(kind));
        const ResultName alone = amp_result_name(word.c_str()),
                         named = amp_result_name(arena_printf(&arena_, "%s.x", word.c_str())),
                         numbered = amp_result_name(arena_printf(&arena_, "%s.3", word.c_str()));
        EXPECT_TRUE(alone.kind == kind || named.kind == kind || numbered.kind == kind) << word;
    }
    EXPECT_EQ(amp_result_word(RESULT_MODEL), nullptr);
}

TEST_F(Names, EveryInitialiserAndBack) {
    for (int kind = 0; kind < INITIALISER_KINDS; kind++) {
        const Initialiser *i = &amp_initialisers[kind];
        EXPECT_EQ(amp_initialiser(i->name), i);
        EXPECT_LE(i->args_min, i->args_max) << i->name;
        for (uint32_t n = 0; n < 2; n++) EXPECT_EQ(i->args[n] != nullptr, n < i->args_max) << i->name;
    }
    EXPECT_EQ(amp_initialiser("uniform"), &amp_initialisers[INIT_uniform]);
    for (const char *name : {"", "zero", "Zeros", "uniform_", "magic"})
        EXPECT_EQ(amp_initialiser(name), nullptr) << name;
}

} // namespace
