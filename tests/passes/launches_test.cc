// launches_test.cc: launches as text: what is written is read again, and what no pass makes is refused.
#include <cstring>

#include "codegen/codegen.h"
#include "targets/target.h"
#include "tests/passes/pass_test.h"

namespace {

// Two tile kernels of equal code, two of another, and one that reads the first.
const char kText[] = R"(module "m" stage lower {
}
func infer {
  input %x : f32[64, 32]
  input %y : f32[16, 8]
  input %u : f32[64, 32]
  input %v : f32[16, 8]
  %1 = neg(%x) : f32[64, 32]
  %2 = neg(%y) : f32[16, 8]
  %3 = exp(%u) : f32[64, 32]
  %4 = exp(%v) : f32[16, 8]
  %5 = permute(%1; dims = (1, 0)) : f32[32, 64]
  result b = %2
  result c = %3
  result d = %4
  result e = %5
}
)";

class Launches : public PassTest {
  protected:
    Launches() {
        options_.target = &target_cuda;
        options_.describe = codegen_cuda_describe;
    }

    std::string Made() {
        Module *m = Read(kText);
        amp_error err = {};
        EXPECT_EQ(AMP_OK, passes_run(m, &diags_, &options_, STAGE_BUNDLE, nullptr, nullptr, &err)) << err.message;
        return Print(m);
    }

    std::string Refusal(const std::string &text) {
        Module *m = Read(text);
        amp_error err = {};
        const amp_status status = passes_run(m, &diags_, &options_, STAGE_BUNDLE, nullptr, nullptr, &err);
        EXPECT_EQ(status, status ? AMP_BAD_SOURCE : AMP_OK);
        return err.message;
    }

    PassOptions options_ = {};
};

const char kLaunch[] = "launch { stage { part k00, k01 part k02, k03 } }";

TEST_F(Launches, AreReadAsTheyAreWritten) {
    const std::string made = Made();
    ASSERT_NE(std::string::npos, made.find(kLaunch)) << made;
    EXPECT_EQ(made, Print(Read(made)));
    EXPECT_EQ("", Refusal(made));
}

// Fewer kernels than the passes would take are a launch too; other ones are not.
TEST_F(Launches, ThatNoPassMakesAreRefused) {
    const std::string made = Made();
    const size_t at = made.find(kLaunch);
    ASSERT_NE(std::string::npos, at);
    for (const auto &[launch, says] :
         {std::pair{"launch { stage { part k00, k01 } }", ""},
          {"launch { stage { part k01 part k02 } }", ""},
          {"launch { stage { part k01, k02 } }", "may not share one"},
          {"launch { stage { chain k00, k01 } }", "may not share one"},
          {"launch { stage { rows k00, k01 } }", "may not share one"},
          {"launch { stage { block k00, k01 } }", "may not share one"},
          {"launch { stage { part k00 } stage { part k01 } }", "may not share one"},
          {"launch by_columns { stage { part k00 } stage { part k01 } }", "may not share one"},
          {"launch { stage { part k00, k01 part k02, k03 part k04 } }", "may not share one"},
          {"launch { stage { part k00 part k01 part k02 } }", ""},
          {"launch { stage { part k00 part k02 } }", "several neighbours"},
          {"launch { stage { part k00, k01 part k01 } }", "several neighbours"},
          {"launch { stage { part k00 } }", "several neighbours"}}) {
        const std::string why = Refusal(std::string(made).replace(at, strlen(kLaunch), launch));
        if (*says) EXPECT_NE(std::string::npos, why.find(says)) << launch << ": " << why;
        else EXPECT_EQ("", why) << launch;
    }
}

TEST_F(Launches, AreOfLaterStages) {
    std::string made = Made();
    const std::string stage = "stage bundle {";
    made.replace(made.find(stage), stage.size(), "stage plan {");
    const Source source = {"m.ir", made.c_str(), made.size()};
    Module *m = ir_read(&arena_, &diags_, &source);
    ASSERT_NE(nullptr, m);
    const char *wrong = ir_verify(m);
    ASSERT_NE(nullptr, wrong);
    EXPECT_NE(nullptr, strstr(wrong, "has launches at stage plan"));
}

TEST_F(Launches, NameKernels) {
    std::string made = Made();
    made.replace(made.find(kLaunch), strlen(kLaunch), "launch { stage { part k00, k77 } }");
    const Source source = {"m.ir", made.c_str(), made.size()};
    EXPECT_EQ(nullptr, ir_read(&arena_, &diags_, &source));
    EXPECT_NE(std::string::npos, Diagnostics().find("no kernel before this line is called k77")) << Diagnostics();
}

} // namespace
