// The pipeline: the table of passes, verification and compaction between them, running the passes that are left.
#include "tests/passes/pass_test.h"

namespace {

class PipelineTest : public PassTest {
  protected:
    struct Seen {
        std::vector<std::string> stages;
        std::vector<std::string> texts;
    };

    static void Observe(void *user, const Module *m, double seconds) {
        auto *seen = static_cast<Seen *>(user);
        EXPECT_GE(seconds, 0.0);
        EXPECT_EQ(ir_verify(m), nullptr);
        Text t;
        text_init(&t, m->arena);
        ir_print(&t, m);
        seen->stages.push_back(ir_stage_names[m->stage]);
        seen->texts.push_back(text_str(&t));
    }

    Seen RunObserved(Module *m, Stage last) {
        PassOptions o = {};
        Seen seen;
        EXPECT_EQ(passes_run(m, &diags_, &o, last, Observe, &seen, &error_), AMP_OK) << error_.message << Diagnostics();
        return seen;
    }
};

TEST_F(PipelineTest, TheTableIsComplete) {
    for (int i = 0; i < STAGE_COUNT; i++) {
        EXPECT_EQ(passes[i].run == nullptr, i == STAGE_ELABORATE);
        EXPECT_NE(passes[i].group, nullptr);
        EXPECT_NE(passes[i].does, nullptr);
    }
}

TEST_F(PipelineTest, EachPassIsSeenOnceInOrder) {
    Seen seen = RunObserved(ReadFile("tests/passes/mlp.ir"), STAGE_BUNDLE);
    ASSERT_EQ(seen.stages.size(), size_t(STAGE_COUNT - 1));
    for (size_t i = 0; i < seen.stages.size(); i++) EXPECT_EQ(seen.stages[i], ir_stage_names[i + 1]);
}

TEST_F(PipelineTest, ItStopsWhereItIsTold) {
    EXPECT_EQ(RunObserved(ReadFile("tests/passes/mlp.ir"), STAGE_SCALE).stages.size(), 6u);
    EXPECT_EQ(RunObserved(ReadFile("tests/passes/mlp.ir"), STAGE_ELABORATE).stages.size(), 0u);
}

// What is printed after a pass reads back, and the passes that are left give the same text.
TEST_F(PipelineTest, FromEveryStageTheRestIsTheSame) {
    Seen whole = RunObserved(ReadFile("tests/passes/mlp.ir"), STAGE_BUNDLE);
    for (size_t from = 0; from + 1 < whole.texts.size(); from++) {
        Seen rest = RunObserved(Read(whole.texts[from]), STAGE_BUNDLE);
        ASSERT_EQ(rest.texts.size(), whole.texts.size() - from - 1) << whole.stages[from];
        for (size_t i = 0; i < rest.texts.size(); i++)
            EXPECT_EQ(rest.texts[i], whole.texts[from + 1 + i])
                << "from " << whole.stages[from] << ", after " << rest.stages[i];
    }
}

TEST_F(PipelineTest, AnInvalidModuleIsTheUsersError) {
    Module *m = Read("module \"t\" stage elaborate {\n}\nfunc forward {\ninput %x : f32[N]\n%y = relu(%x) : f32[N, 2] "
                     "@relu\nresult y = %y\n}\n");
    EXPECT_EQ(TryRun(m, STAGE_AUTOCAST), AMP_BAD_SOURCE);
    EXPECT_NE(Diagnostics().find("module t is not valid at stage elaborate: forward:"), std::string::npos)
        << Diagnostics();
}

TEST_F(PipelineTest, ErrorsOfAPassStopTheRest) {
    precision_ = "fp8";
    Module *m = ReadFile("tests/passes/mlp.ir");
    EXPECT_EQ(TryRun(m, STAGE_PLAN), AMP_BAD_SOURCE);
    EXPECT_STREQ(error_.message, "mlp: pass autocast found errors");
    EXPECT_EQ(m->stage, STAGE_ELABORATE);
}

TEST_F(PipelineTest, AModuleWithoutForwardIsNamed) {
    EXPECT_EQ(TryRun(Read("module \"t\" stage elaborate {\n}\n"), STAGE_AUTOCAST), AMP_BAD_SOURCE);
    EXPECT_EQ(Diagnostics(), "error: module t: there is no function forward\n");
}

} // namespace
