// Autocast: promotion, classes, casts and their reasons, which policy a compilation uses, overrides and their order.
#include "tests/passes/pass_test.h"

namespace {

using Types = std::map<std::string, std::string>;

class AutocastTest : public PassTest {
  protected:
    // One op of two inputs under `op * CLASS` with low = f16.
    Module *RunOp(const std::string &a, const std::string &b, const std::string &op, const std::string &shape,
                  const std::string &op_class, const std::string &low = "f16") {
        policies_["p"] = "policy \"p\"\nalgorithm eager\nlow = " + low + "\nop * " + op_class + "\n";
        policy_ = "p";
        return Run(Read("module \"t\" stage elaborate {\n}\nfunc forward {\n" + Given("a", a) + Given("b", b) +
                        "%c = const(; value = 0.1) : f32\n" + "%y = " + op + " : f32" + shape +
                        " @op\nresult y = %y\n}\n"),
                   STAGE_AUTOCAST);
    }

    static std::string Given(const std::string &name, const std::string &type) {
        return type == "-" ? "" : "input %" + name + " : " + type + "\n";
    }

    std::string ResultType(const Module *m) {
        return amp_dtype_name(ir_dtype(m->funcs.data[0], m->funcs.data[0]->results.data[0].value));
    }

    // "a: f16 -> f32, b: ..." of the last decision
    std::string Casts(const Module *m) {
        std::string text;
        if (!m->decisions.len) return "no decision";
        const Decision &d = m->decisions.data[m->decisions.len - 1];
        for (int i = 0; i < d.casts.len; i++) {
            const CastNote &c = d.casts.data[i];
            text +=
                std::string(i ? ", " : "") + c.value + ": " + amp_dtype_name(c.from) + " -> " + amp_dtype_name(c.to);
        }
        return text;
    }

    Module *RunMlp(const std::string &header = "", Stage last = STAGE_AUTOCAST) {
        std::string text = File("tests/passes/mlp.ir");
        if (!header.empty()) text.replace(text.find("  train\n"), 8, header + "  train\n");
        return Run(Read(text), last);
    }

    std::string ErrorsOfMlp(const std::string &header) {
        diags_init(&diags_, &arena_);
        std::string text = File("tests/passes/mlp.ir");
        text.replace(text.find("  train\n"), 8, header + "  train\n");
        EXPECT_EQ(TryRun(Read(text), STAGE_AUTOCAST), AMP_BAD_SOURCE) << header;
        return Diagnostics();
    }

    // Paths whose decision differs.
    static std::vector<std::string> Changed(const Types &before, const Types &after) {
        std::vector<std::string> paths;
        for (const auto &d : before)
            if (after.at(d.first) != d.second) paths.push_back(d.first);
        return paths;
    }
};

// ---- dtypes ---------------------------------------------------------------------------------------------------------

struct Promotion {
    const char *a, *b, *op, *shape, *out, *casts;
};

// The dtypes are the same as in PyTorch for the same operands (its add, add_0dim_b, add_scalar).
TEST_F(AutocastTest, FollowPromotesAsPyTorchDoes) {
    const Promotion cases[] = {
        {"f16[4]", "f16[4]", "add(%a, %b)", "[4]", "f16", ""},
        {"f16[4]", "f32[4]", "add(%a, %b)", "[4]", "f32", "a: f16 -> f32"},
        {"f32[4]", "f16[4]", "add(%a, %b)", "[4]", "f32", "b: f16 -> f32"},
        {"f16[4]", "bf16[4]", "add(%a, %b)", "[4]", "f32", "a: f16 -> f32, b: bf16 -> f32"},
        {"f16[4]", "f32", "add(%a, %b)", "[4]", "f16", "b: f32 -> f16"}, // rank 0 raises nothing that has dimensions
        {"f32[4]", "f16", "add(%a, %b)", "[4]", "f32", "b: f16 -> f32"},
        {"f16", "f32", "add(%a, %b)", "", "f32", "a: f16 -> f32"},
        {"f16[4]", "-", "mul(%a, %c)", "[4]", "f16", ""}, // numbers are weak, and stay exact
        {"f32[4]", "-", "mul(%c, %a)", "[4]", "f32", ""},
        {"-", "-", "add(%c, %c)", "", "f32", ""},
        {"f16[N]", "-", "relu(%a)", "[N]", "f16", ""},
    };
    for (const Promotion &c : cases) {
        Module *m = RunOp(c.a, c.b, c.op, c.shape, "follow");
        EXPECT_EQ(ResultType(m), c.out) << c.a << " " << c.b;
        EXPECT_EQ(Casts(m), c.casts) << c.a << " " << c.b;
    }
}

struct ClassCase {
    const char *op_class, *low, *a, *b, *op, *shape, *out, *casts;
};

TEST_F(AutocastTest, ClassesCastOperandsAndResults) {
    const ClassCase cases[] = {
        {"lower", "f16", "f32[2, 3]", "f32[3, 4]", "matmul(%a, %b)", "[2, 4]", "f16", "a: f32 -> f16, b: f32 -> f16"},
        {"lower", "bf16", "f16[2, 3]", "f16[3, 4]", "matmul(%a, %b)", "[2, 4]", "bf16",
         "a: f16 -> bf16, b: f16 -> bf16"},
        {"lower", "f32", "f16[2, 3]", "f16[3, 4]", "matmul(%a, %b)", "[2, 4]", "f32", "a: f16 -> f32, b: f16 -> f32"},
        {"lower", "tf32", "f32[2, 3]", "f32[3, 4]", "matmul(%a, %b)", "[2, 4]", "f32",
         "a: f32 -> tf32, b: f32 -> tf32"},
        {"lower", "tf32", "f16[4]", "f32[4]", "add(%a, %b)", "[4]", "f32", "a: f16 -> f32"}, // only products read tf32
        {"lower", "f16", "f32[4]", "-", "relu(%a)", "[4]", "f16", "a: f32 -> f16"},
        {"lower", "f16", "f32[4]", "-", "mul(%a, %c)", "[4]", "f16", "a: f32 -> f16"},
        {"f32_out", "f16", "f16[4]", "-", "softmax(%a)", "[4]", "f32", ""},
        {"f32_out", "f16", "f16[2, 3]", "f16[3, 4]", "matmul(%a, %b)", "[2, 4]", "f32", ""},
        {"f32", "f16", "f16[4]", "-", "exp(%a)", "[4]", "f32", "a: f16 -> f32"},
        {"widest", "f16", "f16[4]", "f16[4]", "add(%a, %b)", "[4]", "f16", ""},
        {"widest", "f16", "f16[4]", "f32", "add(%a, %b)", "[4]", "f32", "a: f16 -> f32"},   // rank does not count
        {"widest", "f16", "f32[2, 3]", "f32[3, 4]", "matmul(%a, %b)", "[2, 4]", "f32", ""}, // never lowers
        {"first", "f16", "f16[2, 3]", "f32[3]", "add(%a, %b)", "[2, 3]", "f16", ""},
        {"first", "f16", "f32[2, 3]", "f16[3]", "add(%a, %b)", "[2, 3]", "f32", ""},
        {"first", "f16", "f16[2, 3]", "f32[3, 4]", "matmul(%a, %b)", "[2, 4]", "f16", "a: f16 -> f32"},
        {"first", "f16", "f32[4]", "-", "mul(%c, %a)", "[4]", "f32", ""}, // a number of the model decides nothing
        {"first", "f16", "i32[4]", "f16[8, 3]", "embedding(%a, %b)", "[4, 3]", "f16", ""},
        {"follow", "f16", "f16[4, 5]", "i32[4]", "nll_loss(%a, %b)", "", "f16", ""}, // integers stay what they are
        {"lower", "f16", "f32[4, 5]", "i32[4]", "accuracy(%a, %b)", "", "f16", "a: f32 -> f16"},
    };
    for (const ClassCase &c : cases) {
        Module *m = RunOp(c.a, c.b, c.op, c.shape, c.op_class, c.low);
        EXPECT_EQ(ResultType(m), c.out) << c.op_class << " " << c.op;
        EXPECT_EQ(Casts(m), c.casts) << c.op_class << " " << c.op;
    }
}

TEST_F(AutocastTest, OnlyTheFactorsOfALinearLayerAreTf32) {
    precision_ = "tf32";
    Module *m = RunMlp();
    EXPECT_EQ(Decisions(m)["fc1.linear"], "linear(tf32, tf32, f32) : f32 {lower, tf32:7}");
}

TEST_F(AutocastTest, FactorsOfAProductAreMadeEqual) {
    Module *m = RunMlp("override op linear : f32_out at mlp.amp:3:5\noverride op relu : \"low\" at mlp.amp:4:5\n");
    EXPECT_EQ(Decisions(m)["fc2.linear"], "linear(f32, f32, f32) : f32 {f32_out, override mlp.amp:3:5}");
}

// ---- casts and reasons ----------------------------------------------------------------------------------------------

TEST_F(AutocastTest, AValueIsCastOnceAtItsFirstUse) {
    Module *m = Run(
        Read("module \"t\" stage elaborate {\nprecision fp16\n}\nstate %w : f32[3, 3] param = zeros()\nfunc forward {\n"
             "input %x : f32[N, 3]\nstate %w : f32[3, 3]\n"
             "%a = matmul(%x, %w) : f32[N, 3] @first\n%b = matmul(%a, %w) : f32[N, 3] @second\nresult y = %b\n}\n"),
        STAGE_AUTOCAST);
    const Func *f = m->funcs.data[0];
    ASSERT_EQ(f->body.len, 4);
    EXPECT_STREQ(ir_value(f, ir_op_at(f, 0)->out[0])->name, "w.f16"); // the last operand first, as PyTorch
    EXPECT_STREQ(ir_value(f, ir_op_at(f, 1)->out[0])->name, "x.f16");
    EXPECT_EQ(ir_op_at(f, 3)->in[1].id, ir_op_at(f, 0)->out[0].id);
    EXPECT_STREQ(ir_op_at(f, 0)->reason->neighbour, "first");
    EXPECT_STREQ(ir_op_at(f, 0)->path, "first.cast");
    EXPECT_STREQ(ir_op_at(f, 1)->path, "first.cast_1");
    EXPECT_EQ(m->decisions.len, 2);
    EXPECT_EQ(m->decisions.data[1].casts.len, 1); // the operand is read as f16, whoever made the cast
}

TEST_F(AutocastTest, EveryDecisionHasItsReason) {
    policy_ = "torch-fp16";
    Types d = Decisions(RunMlp());
    EXPECT_EQ(d["fc1.linear"], "linear(f16, f16, f16) : f16 {lower, torch-fp16:8}");
    EXPECT_EQ(d["relu"], "relu(f16) : f16 {follow, torch-fp16:24, input fc1.linear}");
    EXPECT_EQ(d["cross_entropy.log_softmax"], "log_softmax(f16) : f16 {follow, torch-fp16:19, input fc2.linear}");
    EXPECT_EQ(d["cross_entropy.nll_loss"], "nll_loss(f32, i32) : f32 {f32, torch-fp16:14}");
    EXPECT_EQ(d["accuracy"], "accuracy(f16, i32) : f32 {f32_out, torch-fp16:22}");
    EXPECT_EQ(d.size(), 6u);
}

TEST_F(AutocastTest, ADecisionQuotesThePolicy) {
    policy_ = "torch-fp16";
    Module *m = RunMlp();
    EXPECT_STREQ(m->policy_name, "torch-fp16");
    EXPECT_STREQ(m->policy_origin, "torch-fp16.policy");
    EXPECT_EQ(m->low, AMP_DT_F16);
    std::istringstream lines(File("precision/policies/torch-fp16.policy"));
    std::string line;
    for (int i = 0; i < m->decisions.data[0].reason->line; i++) std::getline(lines, line);
    EXPECT_EQ(line.compare(0, strlen(m->decisions.data[0].policy_text), m->decisions.data[0].policy_text), 0) << line;
}

TEST_F(AutocastTest, EveryOpHasAReason) {
    for (const char *precision : {"fp16", "bf16", "tf32", "fp32"}) {
        precision_ = precision;
        const Func *f = RunMlp()->funcs.data[0];
        for (int i = 0; i < f->body.len; i++) EXPECT_NE(ir_op_at(f, i)->reason, nullptr) << precision << " " << i;
    }
}

TEST_F(AutocastTest, NumbersAndWrittenConversionsAreNotDecided) {
    Module *m = RunOp("i32[4]", "-", "cast(%a)", "[4]", "lower");
    EXPECT_EQ(ResultType(m), "f32");
    EXPECT_EQ(m->decisions.len, 0);
    EXPECT_STREQ(ir_op_at(m->funcs.data[0], 0)->reason->rule, "written");
}

// ---- which policy ---------------------------------------------------------------------------------------------------

TEST_F(AutocastTest, OneChangedLineChangesTheDecisionsThatItNames) {
    policy_ = "torch-fp16";
    Types before = Decisions(RunMlp());
    policies_["mine"] = File("precision/policies/torch-fp16.policy") + "op relu f32\n";
    policy_ = "mine";
    Types after = Decisions(RunMlp());
    EXPECT_EQ(Changed(before, after), std::vector<std::string>{"relu"});
    EXPECT_EQ(after["relu"], "relu(f32) : f32 {f32, torch-fp16:48}");
    policies_["mine"] = File("precision/policies/torch-fp16.policy") + "op cross_entropy.nll_loss follow\n";
    EXPECT_EQ(Changed(before, Decisions(RunMlp())), std::vector<std::string>{"cross_entropy.nll_loss"});
}

struct Selection {
    const char *header, *precision, *policy, *chosen;
};

TEST_F(AutocastTest, OptionsReplaceTheModelsWord) {
    policies_["my.policy"] = "policy \"mine\"\nalgorithm eager\nlow = bf16\nop * lower\n";
    const Selection cases[] = {
        {"", "", "", "fp32"},
        {"  precision fp16\n", "", "", "min-cast"},
        {"  precision bf16\n", "", "", "min-cast-bf16"},
        {"  precision tf32\n", "", "", "tf32"},
        {"  precision fp32\n", "", "", "fp32"},
        {"  precision file torch-bf16\n", "", "", "torch-bf16"},
        {"  precision file my.policy\n", "", "", "mine"},
        {"  precision fp16\n", "bf16", "", "min-cast-bf16"},
        {"  precision file my.policy\n", "fp32", "", "fp32"},
        {"  precision fp16\n", "", "torch-bf16", "torch-bf16"},
        {"  precision fp16\n", "bf16", "my.policy", "mine"},
    };
    std::string text = File("tests/passes/mlp.ir");
    const std::string word = "  precision fp16\n";
    for (const Selection &c : cases) {
        precision_ = c.precision;
        policy_ = c.policy;
        std::string changed = text;
        changed.replace(changed.find(word), word.size(), c.header);
        EXPECT_STREQ(Run(Read(changed), STAGE_AUTOCAST)->policy_name, c.chosen) << c.header << c.precision << c.policy;
    }
}

TEST_F(AutocastTest, WrongChoicesAreNamed) {
    precision_ = "fp8";
    EXPECT_EQ(ErrorsOfMlp(""), "error: unknown precision fp8; use fp16, bf16, tf32 or fp32\n");
    precision_ = "bf16";
    policy_ = "torch-fp16";
    EXPECT_EQ(ErrorsOfMlp(""),
              "error: precision bf16 and policy torch-fp16 do not agree: the policy's low type is f16\n");
    precision_ = "";
    policy_ = "bf16";
    EXPECT_EQ(ErrorsOfMlp(""),
              "error: there is no policy bf16: neither a built-in one nor a file\n"
              "  help: built-in policies: apex-o1, apex-o2, fp32, keras-mixed-bfloat16, keras-mixed-bfloat16@3.14, "
              "keras-mixed-float16, keras-mixed-float16@3.14, min-cast-bf16, min-cast, mxnet-fp16, pure-bf16, "
              "pure-fp16, tf-bf16, tf-fp16, tf32, torch-bf16, "
              "torch-bf16@2.11, torch-cpu-bf16, torch-cpu-fp16, torch-fp16, torch-fp16@2.11\n"
              "  help: bf16 is a precision; its policy is min-cast-bf16\n");
    policies_["bad"] = "low = f16\n";
    policy_ = "bad";
    EXPECT_NE(ErrorsOfMlp("").find("bad:1:1: error: the policy lacks a line such as"), std::string::npos);
}

// ---- overrides ------------------------------------------------------------------------------------------------------

struct OverrideCase {
    const char *lines, *path, *decision;
};

TEST_F(AutocastTest, PathBeatsOpBeatsPolicyAndTheLastOfEqualsWins) {
    const OverrideCase cases[] = {
        {"override op relu : f32 at mlp.amp:3:5\n", "relu", "relu(f32) : f32 {f32, override mlp.amp:3:5}"},
        {"override op relu : f32 because \"measured\" at mlp.amp:3:5\n", "relu",
         "relu(f32) : f32 {f32, override mlp.amp:3:5, \"measured\"}"},
        {"override op relu : f32 at mlp.amp:3:5\noverride op relu : \"low\" at mlp.amp:4:5\n", "relu",
         "relu(f16) : f16 {lower, override mlp.amp:4:5}"},
        {"override path relu : f16 at mlp.amp:3:5\noverride op relu : f32 at mlp.amp:4:5\n", "relu",
         "relu(f16) : f16 {lower, override mlp.amp:3:5}"},
        {"override path relu : f32 at mlp.amp:3:5\noverride path \"re*\" : follow at mlp.amp:4:5\n", "relu",
         "relu(f16) : f16 {follow, override mlp.amp:4:5, input fc1.linear}"},
        {"override path fc1 : f32 at mlp.amp:3:5\n", "fc1.linear",
         "linear(f32, f32, f32) : f32 {f32, override mlp.amp:3:5}"}, // all below it
        {"override path \"fc*\" : f32 at mlp.amp:3:5\n", "fc2.linear",
         "linear(f32, f32, f32) : f32 {f32, override mlp.amp:3:5}"},
        {"override op cross_entropy : f32 at mlp.amp:3:5\n", "cross_entropy.log_softmax",
         "log_softmax(f32) : f32 {f32, override mlp.amp:3:5}"},
        {"override op cross_entropy.log_softmax : f32_out at mlp.amp:3:5\n", "cross_entropy.log_softmax",
         "log_softmax(f16) : f32 {f32_out, override mlp.amp:3:5}"},
        {"override op conv2d : f32 at mlp.amp:3:5\n", "relu",
         "relu(f16) : f16 {follow, torch-fp16:24, input fc1.linear}"}, // known, not there
    };
    policy_ = "torch-fp16";
    for (const OverrideCase &c : cases) EXPECT_EQ(Decisions(RunMlp(c.lines))[c.path], c.decision) << c.lines;
}

TEST_F(AutocastTest, WrongOverridesAreNamed) {
    policy_ = "torch-fp16";
    EXPECT_EQ(ErrorsOfMlp("override op relo : f32 at mlp.amp:3:5\n"),
              "error: mlp.amp:3:5: unknown op relo\n  help: did you mean relu?\n  help: a path is written in quotes: "
              "\"relo\"\n");
    EXPECT_EQ(
        ErrorsOfMlp("override op lstm_cell : f32 at mlp.amp:3:5\n"),
        "error: mlp.amp:3:5: the language has no op lstm_cell\n  help: only policies may list ops of other systems: "
        "remove the line\n");
    EXPECT_EQ(ErrorsOfMlp("override path fc1.liner : f32 at mlp.amp:3:5\n"),
              "error: mlp.amp:3:5: no op's path matches \"fc1.liner\"\n  help: did you mean \"fc1.linear\"?\n");
    EXPECT_EQ(ErrorsOfMlp("override op relu : bf16 at mlp.amp:3:5\n"),
              "error: mlp.amp:3:5: bf16 is not the low type of policy torch-fp16, which is f16\n"
              "  help: write low, or choose another precision\n");
    EXPECT_EQ(
        ErrorsOfMlp("override op relu : half at mlp.amp:3:5\n"),
        "error: mlp.amp:3:5: unknown precision half for relu\n  help: one of low, lower, f32_out, f32, widest, first, "
        "follow\n");
}

TEST_F(AutocastTest, ABannedOpIsAnError) {
    policies_["p"] = "policy \"p\"\nalgorithm eager\nlow = f16\nop relu   banned   # why\nop * follow\n";
    policy_ = "p";
    EXPECT_EQ(ErrorsOfMlp(""),
              "error: mlp.amp:9:9: policy p bans relu, in line 4: op relu   banned\n"
              "  help: use another op, or give it a class in the precision block, such as 'relu: f32'\n");
    EXPECT_EQ(Decisions(RunMlp("override op relu : f32 at mlp.amp:3:5\n"))["relu"],
              "relu(f32) : f32 {f32, override mlp.amp:3:5}");
    EXPECT_EQ(ErrorsOfMlp("override op relu : banned at mlp.amp:3:5\n"),
              "error: mlp.amp:3:5: unknown precision banned for relu\n  help: one of low, lower, f32_out, f32, widest, "
              "first, follow\n");
}

TEST_F(AutocastTest, AnErrorPointsIntoTheModelText) {
    Module *m = Read("module \"t\" stage elaborate {\n source \"m.amp\"\n override op relo : f32 at m.amp:2:3\n}\nfunc "
                     "forward {\n}\n");
    m->source_text = "amp 1\n  relo: f32\n";
    EXPECT_EQ(TryRun(m, STAGE_AUTOCAST), AMP_BAD_SOURCE);
    EXPECT_EQ(Diagnostics(),
              "m.amp:2:3: error: unknown op relo\n   2 |   relo: f32\n     |   ^~~~\n  help: did you mean relu?\n"
              "  help: a path is written in quotes: \"relo\"\n");
}

// ---- operands that decide nothing
// ------------------------------------------------------------------------------------

// Batch norm follows its first operand; its parameters and statistics stay f32 in every class.
TEST_F(AutocastTest, BatchNormReadsItsParametersAsTheyAre) {
    for (const char *op : {"batch_norm", "batch_norm_eval"})
        for (const char *op_class : {"lower", "follow", "widest", "first", "f32", "f32_out"}) {
            std::string results = strcmp(op, "batch_norm") ? "%y" : "%y, %m, %v, %r";
            policies_["p"] = std::string("policy \"p\"\nalgorithm eager\nlow = f16\nop * ") + op_class + "\n";
            policy_ = "p";
            Module *m =
                Run(Read("module \"t\" stage elaborate {\n}\nfunc forward {\n" + Given("a", "f16[4, 3]") +
                         Given("b", "f32[3]") + results + " = " + op + "(%a, %b, %b, %b, %b) : f32[4, 3]" +
                         (strcmp(op, "batch_norm") ? "" : ", f32[3], f32[3], f32[3]") + " @op\nresult y = %y\n}\n"),
                    STAGE_AUTOCAST);
            bool f32 = !strncmp(op_class, "f32", 3), cast = !strcmp(op_class, "f32");
            EXPECT_EQ(ResultType(m), f32 ? "f32" : "f16") << op << " " << op_class;
            EXPECT_EQ(Casts(m), cast ? "a: f16 -> f32" : "") << op << " " << op_class;
        }
}

TEST_F(AutocastTest, IntegersAndBooleansAreNotCast) {
    for (const char *op_class : {"lower", "follow", "widest", "f32", "f32_out"}) {
        EXPECT_EQ(Casts(RunOp("i32[4]", "f32[8, 3]", "embedding(%a, %b)", "[4, 3]", op_class)),
                  strcmp(op_class, "lower") ? "" : "b: f32 -> f16");
        EXPECT_EQ(Casts(RunOp("bool[4]", "f16[4]", "where(%a, %b, %b)", "[4]", op_class)),
                  strcmp(op_class, "f32") ? "" : "b: f16 -> f32, b: f16 -> f32");
    }
    policies_["p"] = "policy \"p\"\nalgorithm eager\nlow = f16\nop * lower\n";
    Module *m = Run(Read("module \"t\" stage elaborate {\n}\nfunc forward {\ninput %a : i32[4]\n%y = add(%a, %a) : "
                         "i32[4] @op\nresult y = %y\n}\n"),
                    STAGE_AUTOCAST);
    EXPECT_EQ(ResultType(m), "i32");
}

// ---- updates and metrics
// ---------------------------------------------------------------------------------------------

TEST_F(AutocastTest, AnUpdateHasTheDtypeOfItsBuffer) {
    precision_ = "fp16";
    Module *m =
        Run(Read("module \"t\" stage elaborate {\n  train\n}\nstate %w : f32[4, 4] param = ones()\nstate %last : "
                 "f32[4, 4] buffer = ones() from m.amp:2:3\nfunc forward {\nstate %w : f32[4, 4]\n%y = "
                 "matmul(%w, %w) : f32[4, 4] @op\n%l = sum(%y) : f32 @sum\nresult loss = %l\nresult "
                 "update.last = %y\n}\n"),
            STAGE_AUTOCAST);
    const Func *f = m->funcs.data[0];
    const Op *cast = ir_def(f, f->results.data[1].value);
    ASSERT_EQ(cast->code, OP_cast);
    EXPECT_EQ(ir_dtype(f, cast->out[0]), AMP_DT_F32);
    EXPECT_STREQ(cast->path, "last.cast");
    EXPECT_STREQ(cast->reason->rule, "update");
}

TEST_F(AutocastTest, MetricsStayF32AndSaySo) {
    precision_ = "fp16";
    Module *m = Run(Read("module \"t\" stage elaborate {\n  train\n  metric ppl\n}\nstate %w : f32[4] param = ones()\n"
                         "func forward {\nstate %w : f32[4]\n%l = sum(%w) : f32 @sum\nresult loss = %l\n}\n"
                         "func metrics {\ninput %loss : f32\n%p = exp(%loss) : f32 @ppl.exp\nresult metric.ppl = "
                         "%p\n}\n"),
                    STAGE_AUTODIFF);
    const Func *f = ir_func_find(m, "metrics");
    ASSERT_NE(f, nullptr);
    EXPECT_EQ(ir_dtype(f, f->results.data[0].value), AMP_DT_F32);
    EXPECT_STREQ(ir_op_at(f, 0)->reason->rule, "metric");
}

} // namespace
