// Policy files: the reader with every error that it gives, which line an op gets, and the built-in files against
// PyTorch's own table.
#include "tests/passes/pass_test.h"

#include <set>

#include "base/json.h"
#include "ir/state_type.h"
#include "precision/policy.h"

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

TEST_F(PolicyTest, SaysHowStatesAreStored) {
    const Policy *p =
        ReadPolicy(std::string(kHead) + "op * lower\nmasters = f16 nearest # as model.half()\nmoments=bf16\n");
    ASSERT_NE(p, nullptr) << Diagnostics();
    StateType masters, moments;
    ASSERT_TRUE(ir_state_type(&p->masters, &masters) && ir_state_type(&p->moments, &moments));
    EXPECT_EQ(masters.dtype, AMP_DT_F16);
    EXPECT_FALSE(masters.stochastic);
    EXPECT_EQ(moments.dtype, AMP_DT_BF16);
    EXPECT_TRUE(moments.stochastic);
    EXPECT_EQ(p->masters.pos.line, 5);
    EXPECT_STREQ(p->masters.pos.file, "p.policy");
    p = ReadPolicy(std::string(kHead) + "op * lower\n");
    EXPECT_EQ(p->masters.name, nullptr);
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

// What is no text at all has no golden file.
TEST_F(PolicyTest, OtherFilesAreNamed) {
    EXPECT_EQ(ErrorsOf(std::string("policy \"p\"\n\0ELF", 15)),
              "p.policy:2:1: error: byte 0x00 is not text\n   2 | ?ELF\n     | ^\n"
              "  help: a policy is a text file: is this another file?\n");
    EXPECT_EQ(ErrorsOf(std::string((1 << 20) + 1, '#')),
              "error: p.policy: 1048577 bytes are too many for a policy, which has at most 1048576\n");
}

TEST_F(PolicyTest, WhatEditorsLeaveIsRead) {
    const std::string lines = "policy \"p\"\r\nalgorithm eager\r\nlow = f16 # low\r\nop exp\tf32\r\nop * follow";
    for (const std::string &text : {lines, "\xef\xbb\xbf" + lines, lines + "\r\n\r\n", "# \xc3\xa9\n" + lines}) {
        const Policy *p = ReadPolicy(text);
        ASSERT_NE(p, nullptr) << Diagnostics();
        EXPECT_STREQ(p->name, "p");
        EXPECT_EQ(ClassOf(p, "exp"), "f32");
        EXPECT_EQ(policy_line(p, "exp", nullptr)->line, text[0] == '#' ? 5 : 4);
        EXPECT_STREQ(policy_line(p, "exp", nullptr)->text, "op exp\tf32");
    }
}

TEST_F(PolicyTest, AnyBytesGiveAnAnswer) {
    std::string good = File("precision/policies/torch-fp16.policy");
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

// Each algorithm has classes of its own, and only one decides the backward pass.
TEST_F(PolicyTest, ClassesAreOfTheAlgorithm) {
    const auto errors = [&](const std::string &lines) {
        diags_init(&diags_, &arena_);
        EXPECT_EQ(ReadPolicy("policy \"p\"\nlow = f16\n" + lines), nullptr);
        return Diagnostics();
    };
    EXPECT_EQ(errors("algorithm eager\nop relu, gelu infer\nop * follow\n"),
              "p.policy:4:15: error: class infer does not belong to algorithm eager\n   4 | op relu, gelu infer\n"
              "     |               ^~~~~\n  help: one of lower, f32_out, f32, widest, first, follow, banned\n");
    EXPECT_EQ(
        errors("algorithm paint\nop * lower\n"),
        "p.policy:4:6: error: class lower does not belong to algorithm paint\n   4 | op * lower\n     |      ^~~~~\n"
        "  help: one of banned, allow, infer, deny, clear, none\n");
    EXPECT_EQ(errors("algorithm min_cut\nop relu_grad f32\nop * follow\n"),
              "p.policy:4:4: error: relu_grad is an op of the backward pass\n   4 | op relu_grad f32\n"
              "     |    ^~~~~~~~~\n"
              "  help: only algorithm paint decides it; under min_cut it has the type of its forward op\n");
    EXPECT_EQ(errors("algorithm paint\nop relu clear\n"),
              "p.policy:1:1: error: the policy lacks a line such as 'op * none'\n   1 | policy \"p\"\n     | ^\n");
    const Policy *p = ReadPolicy("policy \"p\"\nlow = f16\nalgorithm paint\nop conv2d allow\nop conv2d.sum infer\n"
                                 "op softmax infer\nop softmax_grad deny\nop * none\n");
    ASSERT_NE(p, nullptr) << Diagnostics();
    EXPECT_EQ(policy_line_of(p, OP_conv2d_weight_grad, nullptr)->op_class, POLICY_ALLOW);
    EXPECT_EQ(policy_line_of(p, OP_sum, "conv2d")->op_class, POLICY_INFER);
    EXPECT_EQ(policy_line_of(p, OP_softmax_grad, nullptr)->op_class, POLICY_DENY);
    EXPECT_EQ(policy_line_of(p, OP_gelu_grad, nullptr)->op_class, POLICY_NONE);
    // a layer's line speaks of its forward op
    EXPECT_EQ(policy_line_of(p, OP_add, "conv2d")->op_class, POLICY_ALLOW);
    EXPECT_EQ(policy_line_of_gradient(p, OP_add, "conv2d")->op_class, POLICY_ALLOW); // without a line of its own
    EXPECT_EQ(policy_line_of_gradient(p, OP_softmax, "conv2d")->op_class, POLICY_INFER);
    EXPECT_EQ(policy_line_of_gradient(p, OP_conv2d_weight_grad, "softmax")->op_class, POLICY_ALLOW);
    EXPECT_EQ(policy_line_of_gradient(p, OP_sum, "conv2d")->op_class, POLICY_INFER);
    EXPECT_EQ(policy_line_of_gradient(p, OP_sum, nullptr)->op_class, POLICY_NONE);
}

TEST_F(PolicyTest, BuiltInPoliciesAreTheFiles) {
    ASSERT_EQ(policy_file_count, 21);
    for (int i = 0; i < policy_file_count; i++) {
        const Source *text = policy_builtin(&arena_, policy_files[i].name);
        ASSERT_NE(text, nullptr);
        EXPECT_EQ(std::string(text->text), File(std::string("precision/policies/") + text->name));
        const Policy *p = policy_read(&arena_, &diags_, text);
        ASSERT_NE(p, nullptr) << Diagnostics();
        EXPECT_STREQ(p->name, policy_files[i].name);
    }
    EXPECT_EQ(policy_builtin(&arena_, "torch-fp8"), nullptr);
}

// The newest has the plain name and may be named with its version; each file says which it is.
struct Versions {
    const char *name, *newest, *older, *nearly; // nearly: names that have no version
    std::set<std::string> changed;              // the ops
};
const Versions kVersions[] = {
    {"torch-fp16", "2.12", "2.11", "2.1", {"rms_norm"}},
    {"torch-bf16", "2.12", "2.11", "2.1", {"rms_norm"}},
    {"keras-mixed-float16", "3.15", "3.14", "3", {"group_norm", "instance_norm"}},
    {"keras-mixed-bfloat16", "3.15", "3.14", "3", {"group_norm", "instance_norm"}},
};

TEST_F(PolicyTest, VersionsOfAPolicy) {
    for (const Versions &v : kVersions) {
        const std::string name = v.name;
        const Source *newest = policy_builtin(&arena_, v.name);
        const Source *named = policy_builtin(&arena_, (name + "@" + v.newest).c_str());
        const Source *older = policy_builtin(&arena_, (name + "@" + v.older).c_str());
        ASSERT_TRUE(newest && named && older) << name;
        EXPECT_EQ(newest->text, named->text);
        const std::string nearly = std::string("@") + v.nearly, twice = std::string("@") + v.older + "@" + v.older;
        for (const std::string &other :
             {std::string("@2.13"), std::string("@"), nearly, nearly + "20", twice, "-" + nearly})
            EXPECT_EQ(policy_builtin(&arena_, (name + other).c_str()), nullptr) << name << other;
        const Policy *now = policy_read(&arena_, &diags_, newest), *then = policy_read(&arena_, &diags_, older);
        ASSERT_TRUE(now && then) << Diagnostics();
        EXPECT_STREQ(now->version, v.newest);
        EXPECT_STREQ(then->version, v.older);
        EXPECT_EQ(then->low, now->low);
        int count;
        const char *const *ops = policy_op_names(&arena_, &count);
        for (int i = 0; i < count; i++)
            EXPECT_EQ(policy_line(now, ops[i], nullptr)->op_class != policy_line(then, ops[i], nullptr)->op_class,
                      v.changed.count(ops[i]) != 0)
                << name << ": " << ops[i];
    }
    const Policy *torch = policy_read(&arena_, &diags_, policy_builtin(&arena_, "torch-fp16@2.11"));
    EXPECT_EQ(policy_line(torch, "rms_norm", nullptr)->op_class, POLICY_FIRST);
    EXPECT_EQ(policy_builtin(&arena_, "fp32@2.12"), nullptr) << "fp32 has no versions";
    EXPECT_EQ(ReadPolicy("policy \"p\"\nversion 1\nversion 2\nalgorithm eager\nlow = f16\nop * follow\n"), nullptr);
    EXPECT_NE(Diagnostics().find("a second line 'version'"), std::string::npos) << Diagnostics();
}

TEST_F(PolicyTest, EveryOpThatUsersWriteHasAName) {
    for (int code = OP_NONE + 1; code < OP_COUNT; code++) {
        const OpInfo *info = &ir_op_info[code];
        EXPECT_TRUE(!(info->flags & WRITTEN) || policy_knows(&arena_, info->name, nullptr)) << info->name;
    }
}

// PyTorch's names of ops that have another name in this language.
const std::map<std::string, std::string> kOurNames = {
    {"scaled_dot_product_attention", "attention"},
    {"binary_cross_entropy_with_logits", "bce_with_logits"},
    {"linalg_vector_norm", "norm"},
    {"upsample_nearest2d", "upsample"},
    {"cat", "concat"},
    {"cross_entropy_loss", "cross_entropy"},
    {"upsample_bilinear2d", "upsample"},
};
const std::map<std::string, std::string> kTorchClasses = {
    {"lower_precision_fp", "lower"},  {"fp32", "f32"},       {"fp32_set_opt_dtype", "f32_out"},
    {"fp32_append_dtype", "f32_out"}, {"promote", "widest"}, {"banned", "banned"},
};
// Those that are on none of the lists of PyTorch's header: what happens when they are called (autocast_classes.py; of
// cuDNN's LSTM, what its source says).
const std::map<std::string, std::string> kOutsideTheHeader = {
    {"_cudnn_rnn", "lower"},
    {"cudnn_convolution", "lower"},
    {"cudnn_convolution_transpose", "lower"},
    {"linalg_matrix_sqrth", "f32"},
};

class TorchTableTest : public PolicyTest {
  protected:
    // "aten::upsample_bilinear2d.vec" by our name
    static std::string OurName(const std::string &torch) {
        const std::string name = torch.substr(6, torch.find('.') - 6);
        auto ours = kOurNames.find(name);
        return ours == kOurNames.end() ? name : ours->second;
    }

    // class by our name, of the rows whose column |key| is true (none: of all)
    std::map<std::string, std::string> TorchTable(const std::string &file, const char *key) {
        std::map<std::string, std::string> table;
        std::istringstream lines(File("tests/parity/oracle/" + file));
        for (std::string line; std::getline(lines, line);) {
            amp_json_document *document = nullptr;
            EXPECT_EQ(amp_json_parse(line.data(), line.size(), nullptr, nullptr, &document, &error_), AMP_OK)
                << error_.message;
            const amp_json *root = amp_json_root(document);
            const std::string name = OurName(amp_json_get(root, "op")->string.data);
            if (!key || amp_json_get(root, key)->boolean) {
                auto listed = kTorchClasses.find(amp_json_get(root, "policy")->string.data);
                const std::string op_class =
                    listed == kTorchClasses.end() ? kOutsideTheHeader.at(name) : listed->second;
                EXPECT_TRUE(!table.count(name) || table[name] == op_class) << name;
                table[name] = op_class;
            }
            amp_json_free(document);
        }
        return table;
    }

    static bool HasLine(const Policy *p, const std::string &name) {
        for (int i = 0; i < p->entries.len; i++)
            if (name == p->entries.data[i].name) return true;
        return false;
    }

    // Each op of the table has a line of its own and its class; |otherwise|: where the policy differs, and why not.
    void ExpectLines(const Policy *p, const std::map<std::string, std::string> &table,
                     const std::map<std::string, std::string> &otherwise) {
        for (const auto &row : table) {
            auto other = otherwise.find(row.first);
            if (other != otherwise.end() && other->second == "no line") {
                EXPECT_FALSE(HasLine(p, row.first)) << p->name << ": " << row.first;
                continue;
            }
            EXPECT_TRUE(HasLine(p, row.first)) << p->name << ": " << row.first;
            EXPECT_EQ(ClassOf(p, row.first.c_str()), other == otherwise.end() ? row.second : other->second)
                << p->name << ": " << row.first;
        }
    }

    // No op of the language that the table lacks is treated, but for |others|.
    void ExpectNoMore(const Policy *p, const std::map<std::string, std::string> &table,
                      const std::map<std::string, std::string> &others) {
        int count = 0;
        const char *const *names = policy_op_names(&arena_, &count);
        for (int i = 0; i < count; i++) {
            const std::string op = names[i];
            if (table.count(op)) continue;
            auto other = others.find(op);
            EXPECT_EQ(ClassOf(p, op.c_str()), other == others.end() ? "follow" : other->second)
                << p->name << ": " << op;
        }
    }
};

const std::map<std::string, std::string> kMetrics = {{"accuracy", "f32_out"}, {"top_k_accuracy", "f32_out"}};

TEST_F(TorchTableTest, TheTorchPoliciesSayWhatPyTorchSays) {
    auto table = TorchTable("torch_autocast_table.jsonl", "AutocastCUDA");
    ASSERT_EQ(table.size(), 111u);
    const std::map<std::string, std::string> as_of_2_11 = {{"rms_norm", "first"}, {"linalg_matrix_sqrth", "no line"}};
    for (const std::string name : {"torch-fp16", "torch-bf16", "torch-fp16@2.11", "torch-bf16@2.11"}) {
        const Policy *p = policy_read(&arena_, &diags_, policy_builtin(&arena_, name.c_str()));
        ASSERT_NE(p, nullptr) << Diagnostics();
        const bool is_newest = name.find('@') == std::string::npos;
        ExpectLines(p, table, is_newest ? std::map<std::string, std::string>() : as_of_2_11);
        ExpectNoMore(p, table, kMetrics);
        EXPECT_EQ(ClassOf(p, "log_softmax", "cross_entropy"), "follow");
        EXPECT_EQ(ClassOf(p, "nll_loss", "cross_entropy"), "f32");
    }
}

// The table of the CPU was found by calling each op (autocast_classes.py).
TEST_F(TorchTableTest, TheCpuPoliciesSayWhatPyTorchSays) {
    auto table = TorchTable("torch_autocast_cpu_table.jsonl", nullptr);
    ASSERT_EQ(table.size(), 114u);
    auto others = kMetrics;
    for (const char *norm : {"layer_norm", "group_norm", "rms_norm"}) others[norm] = "first";
    for (const char *name : {"torch-cpu-fp16", "torch-cpu-bf16"}) {
        const Policy *p = policy_read(&arena_, &diags_, policy_builtin(&arena_, name));
        ASSERT_NE(p, nullptr) << Diagnostics();
        ExpectLines(p, table, {});
        ExpectNoMore(p, table, others);
        EXPECT_EQ(ClassOf(p, "log_softmax", "cross_entropy"), "f32");
    }
}

// A name that the language has, as an op or a layer, must not be listed as one that it lacks, nor one that no built-in
// policy uses.
TEST_F(TorchTableTest, ForeignOpsAreForeignAndListed) {
    static const char *const kNames[] = {
#define FOREIGN(name) #name,
#include "precision/foreign_ops.def"
    };
    const std::string prelude = File("frontend/prelude.amp");
    EXPECT_NE(prelude.find("\nblock conv1d("), std::string::npos);
    std::set<std::string> listed;
    for (int i = 0; i < policy_file_count; i++) {
        const Policy *p = policy_read(&arena_, &diags_, policy_builtin(&arena_, policy_files[i].name));
        ASSERT_NE(p, nullptr) << Diagnostics();
        for (int k = 0; k < p->entries.len; k++) listed.insert(p->entries.data[k].name);
    }
    std::string last;
    for (const std::string name : kNames) {
        EXPECT_FALSE(policy_knows(&arena_, name.c_str(), nullptr)) << name;
        EXPECT_EQ(prelude.find("\nblock " + name + "("), std::string::npos) << name;
        EXPECT_TRUE(listed.count(name)) << name;
        EXPECT_TRUE(policy_is_foreign(name.c_str()));
        EXPECT_LT(last, name);
        last = name;
    }
    EXPECT_FALSE(policy_is_foreign("lstm_cel"));
}

} // namespace
