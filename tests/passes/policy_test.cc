// Policy files: the reader with every error that it gives, which line an op gets, and the built-in files against
// PyTorch's own table.
#include "tests/passes/pass_test.h"

#include "base/json.h"
#include "passes/precision/policy_files.h"

namespace {

class PolicyTest : public PassTest {
  protected:
    const Policy *ReadPolicy(const std::string &text) {
        return policy_read(&arena_, &diags_, NewSource("p.policy", text));
    }

    std::string ErrorsOf(const std::string &text) {
        diags_init(&diags_, &arena_);
        EXPECT_EQ(ReadPolicy(text), nullptr) << text;
        return Diagnostics();
    }

    std::string ClassOf(const Policy *p, const char *op, const char *layer = nullptr) {
        return policy_class_words[policy_line(p, op, layer)->op_class];
    }
};

const char kHead[] = "policy \"p\"\nalgorithm eager\nlow = f16\n";

TEST_F(PolicyTest, Reads) {
    const Policy *p = ReadPolicy(
        "# comment\r\n\n policy \"my own\"   # name\nalgorithm eager\nlow=bf16\n"
        "\top  linear , matmul   lower  # why\nop softmax f32_out\nop exp f32\nop bilinear widest\nop * follow");
    ASSERT_NE(p, nullptr) << Diagnostics();
    EXPECT_STREQ(p->name, "my own");
    EXPECT_EQ(p->low, AMP_DT_BF16);
    EXPECT_EQ(strlen(p->sha256), 64u);
    EXPECT_EQ(ClassOf(p, "linear"), "lower");
    EXPECT_EQ(ClassOf(p, "softmax"), "f32_out");
    EXPECT_EQ(ClassOf(p, "exp"), "f32");
    EXPECT_EQ(ClassOf(p, "bilinear"), "widest");
    EXPECT_EQ(ClassOf(p, "relu"), "follow");
    EXPECT_EQ(policy_line(p, "matmul", nullptr)->line, 6);
    EXPECT_STREQ(policy_line(p, "matmul", nullptr)->text, "op  linear , matmul   lower");
}

TEST_F(PolicyTest, TheMostSpecificNameWins) {
    const Policy *p = ReadPolicy(std::string(kHead) +
                                 "op cross_entropy.log_softmax follow\nop cross_entropy f32\nop log_softmax f32_out\n"
                                 "op * lower\n");
    ASSERT_NE(p, nullptr) << Diagnostics();
    EXPECT_EQ(ClassOf(p, "log_softmax", "cross_entropy"), "follow");
    EXPECT_EQ(ClassOf(p, "nll_loss", "cross_entropy"), "f32");
    EXPECT_EQ(ClassOf(p, "log_softmax", "log_softmax"), "f32_out");
    EXPECT_EQ(ClassOf(p, "log_softmax"), "f32_out");
    EXPECT_EQ(ClassOf(p, "nll_loss"), "lower");
}

struct BadPolicy {
    const char *text, *errors;
};

TEST_F(PolicyTest, NamesWhatIsWrong) {
    const BadPolicy cases[] = {
        {"op softmx f32\n", "p.policy:4:4: error: unknown op softmx\n   4 | op softmx f32\n     |    ^~~~~~\n  help: "
                            "did you mean softmax?\n"},
        {"op cross_entrpy.log_softmax f32\n",
         "p.policy:4:4: error: unknown op cross_entrpy.log_softmax\n   4 | op cross_entrpy.log_softmax f32\n"
         "     |    ^~~~~~~~~~~~~~~~~~~~~~~~\n  help: did you mean cross_entropy.log_softmax?\n"},
        {"op zzz f32\n", "p.policy:4:4: error: unknown op zzz\n   4 | op zzz f32\n     |    ^~~\n"},
        {"op exp lowr\n", "p.policy:4:8: error: unknown class lowr\n   4 | op exp lowr\n     |        ^~~~\n  help: "
                          "did you mean lower?\n"},
        {"op exp xyzzyx\n", "p.policy:4:8: error: unknown class xyzzyx\n   4 | op exp xyzzyx\n     |        ^~~~~~\n"
                            "  help: one of lower, f32_out, f32, widest, first, follow\n"},
        {"op exp, log f32\nop exp follow\n", "p.policy:5:4: error: exp is listed twice\n   5 | op exp follow\n     |   "
                                             " ^~~\n  p.policy:4:4: here it is f32\n"},
        {"op exp\n",
         "p.policy:4:7: error: expected ',' or a class, found the end of the line\n   4 | op exp\n     |       ^\n"},
        {"op , f32\n", "p.policy:4:4: error: expected the name of an op, found ','\n   4 | op , f32\n     |    ^\n"},
        {"op exp f32 now\n", "p.policy:4:12: error: expected the end of the line, found 'now'\n   4 | op exp f32 now\n "
                             "    |            ^~~\n"},
        {"op exp f32 !\n", "p.policy:4:12: error: expected the end of the line, found a character that no policy has\n"
                           "   4 | op exp f32 !\n     |            ^\n"},
        {"lo = f16\n",
         "p.policy:4:1: error: a policy has no line 'lo'\n   4 | lo = f16\n     | ^~\n  help: did you mean low?\n"},
        {"= f16\n",
         "p.policy:4:1: error: expected policy, version, algorithm, low or op, found '='\n   4 | = f16\n     | ^\n"},
        {"low = f16\n",
         "p.policy:4:1: error: a second line 'low'\n   4 | low = f16\n     | ^~~\n  p.policy:3:1: the first is here\n"},
        {"policy \"q\"\n", "p.policy:4:1: error: a second line 'policy'\n   4 | policy \"q\"\n     | ^~~~~~\n  "
                           "p.policy:1:1: the first is here\n"},
        {"algorithm eager\n", "p.policy:4:1: error: a second line 'algorithm'\n   4 | algorithm eager\n     | "
                              "^~~~~~~~~\n  p.policy:2:1: the first is here\n"},
        {"op exp f32\n",
         "p.policy:1:1: error: the policy lacks a line such as 'op * follow'\n   1 | policy \"p\"\n     | ^\n"},
    };
    for (const BadPolicy &c : cases) EXPECT_EQ(ErrorsOf(std::string(kHead) + c.text), c.errors);
}

TEST_F(PolicyTest, NamesWhatIsWrongInTheHead) {
    const BadPolicy cases[] = {
        {"", "p.policy:1:1: error: the policy lacks a line such as 'policy \"NAME\"'\n   1 |\n     | ^\n"
             "p.policy:1:1: error: the policy lacks a line such as 'algorithm eager'\n   1 |\n     | ^\n"
             "p.policy:1:1: error: the policy lacks a line such as 'low = f16'\n   1 |\n     | ^\n"
             "p.policy:1:1: error: the policy lacks a line such as 'op * follow'\n   1 |\n     | ^\n"},
        {"policy fp16", "p.policy:1:8: error: expected the policy's name in quotes, found 'fp16'\n   1 | policy fp16\n "
                        "    |        ^~~~\n"},
        {"policy \"\"", "p.policy:1:8: error: the policy's name is empty\n   1 | policy \"\"\n     |        ^~\n"},
        {"policy \"x", "p.policy:1:8: error: expected the policy's name in quotes, found '\"x'\n   1 | policy \"x\n    "
                       " |        ^~\n"},
        {"algorithm paint", "p.policy:1:11: error: algorithm paint is not supported\n   1 | algorithm paint\n     |    "
                            "       ^~~~~\n  help: use eager or min_cut\n"},
        {"algorithm eagr", "p.policy:1:11: error: unknown algorithm eagr\n   1 | algorithm eagr\n     |           "
                           "^~~~\n  help: did you mean eager?\n"},
        {"low f16", "p.policy:1:5: error: expected '=', found 'f16'\n   1 | low f16\n     |     ^~~\n"},
        {"low = f8", "p.policy:1:7: error: unknown low type f8\n   1 | low = f8\n     |       ^~\n  help: one of f16, "
                     "bf16, tf32, f32\n"},
    };
    for (const BadPolicy &c : cases) EXPECT_EQ(ErrorsOf(c.text), c.errors) << c.text;
}

TEST_F(PolicyTest, AllErrorsAreReportedAtOnce) {
    EXPECT_EQ(ReadPolicy("low = f8\nop exq f32\nop log lowr\n"), nullptr);
    EXPECT_EQ(diags_.errors, 3);
}

TEST_F(PolicyTest, AnyBytesGiveAnAnswer) {
    std::string good = File("passes/precision/policies/torch-fp16.policy");
    for (size_t i = 0; i < good.size(); i += 3) {
        diags_init(&diags_, &arena_);
        ReadPolicy(good.substr(0, i));
        std::string flipped = good;
        flipped[i] = static_cast<char>(flipped[i] ^ (1 << (i % 8)));
        ReadPolicy(flipped);
        flipped[i] = '\0';
        ReadPolicy(flipped);
    }
}

TEST_F(PolicyTest, BuiltInPoliciesAreTheFiles) {
    ASSERT_EQ(policy_file_count, 8);
    for (int i = 0; i < policy_file_count; i++) {
        const Source *text = policy_builtin(&arena_, policy_files[i].name);
        ASSERT_NE(text, nullptr);
        EXPECT_EQ(std::string(text->text), File(std::string("passes/precision/policies/") + text->name));
        const Policy *p = policy_read(&arena_, &diags_, text);
        ASSERT_NE(p, nullptr) << Diagnostics();
        EXPECT_STREQ(p->name, policy_files[i].name);
    }
    EXPECT_EQ(policy_builtin(&arena_, "torch-fp8"), nullptr);
}

// The newest has the plain name and may be named with its version; each file says which it is.
TEST_F(PolicyTest, VersionsOfAPolicy) {
    for (const std::string name : {"torch-fp16", "torch-bf16"}) {
        const Source *newest = policy_builtin(&arena_, name.c_str());
        const Source *named = policy_builtin(&arena_, (name + "@2.12").c_str());
        const Source *older = policy_builtin(&arena_, (name + "@2.11").c_str());
        ASSERT_TRUE(newest && named && older);
        EXPECT_EQ(newest->text, named->text);
        for (const char *other : {"@2.13", "@", "@2.1", "@2.120", "@2.11@2.11", "-2.11"})
            EXPECT_EQ(policy_builtin(&arena_, (name + other).c_str()), nullptr) << other;
        const Policy *now = policy_read(&arena_, &diags_, newest), *then = policy_read(&arena_, &diags_, older);
        ASSERT_TRUE(now && then) << Diagnostics();
        EXPECT_STREQ(now->version, "2.12");
        EXPECT_STREQ(then->version, "2.11");
        EXPECT_EQ(then->low, now->low);
        int count;
        const char *const *ops = policy_op_names(&arena_, &count);
        for (int i = 0; i < count; i++) {
            const PolicyClass a = policy_line(now, ops[i], nullptr)->op_class,
                              b = policy_line(then, ops[i], nullptr)->op_class;
            if (!strcmp(ops[i], "rms_norm")) EXPECT_TRUE(a == POLICY_F32 && b == POLICY_FIRST);
            else EXPECT_EQ(a, b) << ops[i];
        }
    }
    EXPECT_EQ(policy_builtin(&arena_, "fp32@2.12"), nullptr) << "of which there are no versions";
    EXPECT_EQ(ReadPolicy("policy \"p\"\nversion 1\nversion 2\nalgorithm eager\nlow = f16\nop * follow\n"), nullptr);
    EXPECT_NE(Diagnostics().find("a second line 'version'"), std::string::npos) << Diagnostics();
}

TEST_F(PolicyTest, EveryOpThatUsersWriteHasAName) {
    for (int code = OP_NONE + 1; code < OP_COUNT; code++) {
        const OpInfo *info = &ir_op_info[code];
        EXPECT_TRUE(!(info->flags & WRITTEN) || policy_knows(&arena_, info->name, nullptr)) << info->name;
    }
}

// What PyTorch registers for CUDA, by the name that the op has in this language.
const std::map<std::string, std::string> kTorchNames = {
    {"aten::linear", "linear"},
    {"aten::matmul", "matmul"},
    {"aten::conv2d", "conv2d"},
    {"aten::conv_transpose2d.input", "conv_transpose2d"},
    {"aten::scaled_dot_product_attention", "attention"},
    {"aten::softmax.int", "softmax"},
    {"aten::log_softmax.int", "log_softmax"},
    {"aten::sum", "sum"},
    {"aten::exp", "exp"},
    {"aten::log", "log"},
    {"aten::rsqrt", "rsqrt"},
    {"aten::pow.Tensor_Scalar", "pow"},
    {"aten::softplus", "softplus"},
    {"aten::prelu", "prelu"},
    {"aten::expm1", "expm1"},
    {"aten::log1p", "log1p"},
    {"aten::reciprocal", "reciprocal"},
    {"aten::l1_loss", "l1_loss"},
    {"aten::smooth_l1_loss", "smooth_l1_loss"},
    {"aten::huber_loss", "huber_loss"},
    {"aten::kl_div", "kl_div"},
    {"aten::logsumexp", "logsumexp"},
    {"aten::linalg_vector_norm", "norm"},
    {"aten::prod", "prod"},
    {"aten::cumsum", "cumsum"},
    {"aten::layer_norm", "layer_norm"},
    {"aten::rms_norm", "rms_norm"},
    {"aten::group_norm", "group_norm"},
    {"aten::upsample_bilinear2d", "upsample"},
    {"aten::nll_loss", "nll_loss"},
    {"aten::mse_loss", "mse_loss"},
    {"aten::binary_cross_entropy_with_logits", "bce_with_logits"},
    {"aten::bilinear", "bilinear"},
    {"aten::scatter_add", "scatter_add"},
};
const std::map<std::string, std::string> kTorchClasses = {
    {"lower_precision_fp", "lower"},
    {"fp32", "f32"},
    {"fp32_set_opt_dtype", "f32_out"},
    {"promote", "widest"},
};

class TorchTableTest : public PolicyTest {
  protected:
    // class by our name
    std::map<std::string, std::string> TorchTable() {
        std::map<std::string, std::string> table;
        std::istringstream lines(File("tests/parity/oracle/torch_autocast_table.jsonl"));
        for (std::string line; std::getline(lines, line);) {
            amp_json_document *document = nullptr;
            EXPECT_EQ(amp_json_parse(line.data(), line.size(), nullptr, nullptr, &document, &error_), AMP_OK)
                << error_.message;
            const amp_json *root = amp_json_root(document);
            auto name = kTorchNames.find(amp_json_get(root, "op")->string.data);
            if (name != kTorchNames.end() && amp_json_get(root, "AutocastCUDA")->boolean)
                table[name->second] = kTorchClasses.at(amp_json_get(root, "policy")->string.data);
            amp_json_free(document);
        }
        return table;
    }
};

TEST_F(TorchTableTest, TheTorchPoliciesSayWhatPyTorchSays) {
    auto table = TorchTable();
    ASSERT_EQ(table.size(), kTorchNames.size());
    for (const char *name : {"torch-fp16", "torch-bf16"}) {
        const Policy *p = policy_read(&arena_, &diags_, policy_builtin(&arena_, name));
        ASSERT_NE(p, nullptr);
        int count = 0;
        const char *const *names = policy_op_names(&arena_, &count);
        for (int i = 0; i < count; i++) {
            std::string op = names[i];
            if (op == "accuracy" || op == "top_k_accuracy") continue; // not PyTorch's
            auto torch = table.find(op);
            EXPECT_EQ(ClassOf(p, op.c_str()), torch == table.end() ? "follow" : torch->second) << name << ": " << op;
        }
        EXPECT_EQ(ClassOf(p, "log_softmax", "cross_entropy"), "follow");
        EXPECT_EQ(ClassOf(p, "nll_loss", "cross_entropy"), "f32");
    }
}

} // namespace
