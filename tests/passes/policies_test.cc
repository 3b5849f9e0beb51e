// The built-in policies: what is special in each, and that a line of one decides what it names and nothing else.
#include <set>

#include "precision/policy.h"
#include "tests/base/pattern.h"
#include "tests/base/planted.h"
#include "tests/passes/pass_test.h"
#include "tests/passes/torch_twins.h"

namespace {

class PoliciesTest : public PassTest {
  protected:
    static std::vector<std::string> Split(const std::string &list) {
        std::vector<std::string> words;
        std::istringstream in(list);
        for (std::string word; in >> word;) words.push_back(word);
        return words;
    }

    // "exp(f32) : f32" of each op, in order
    std::vector<std::string> DecisionsInOrder(const Module *m) {
        std::vector<std::string> all;
        for (int i = 0; i < m->decisions.len; i++) {
            const Decision *d = &m->decisions.data[i];
            std::string text = std::string(d->op) + "(";
            for (int k = 0; k < d->operands.len; k++)
                text += std::string(k ? ", " : "") + amp_dtype_name(d->operands.data[k]);
            all.push_back(text + ") : " + amp_dtype_name(d->out));
        }
        return all;
    }
};

// ---- what is special in each ---------------------------------------------------------------------------------------

struct Special {
    const char *policy, *call, *dtypes; // a call of torch_twins.h and its tensors
    const char *decisions;
};

const Special kSpecials[] = {
    {"torch-fp16", "softmax", "f16", "softmax(f16) : f32"},
    {"torch-fp16", "cross_entropy", "f16", "log_softmax(f16) : f16, nll_loss(f32, i32) : f32"},
    {"torch-fp16", "rms_norm", "f16 f32", "rms_norm(f32, f32) : f32"},
    {"torch-fp16@2.11", "rms_norm", "f16 f32", "rms_norm(f16, f32) : f16"},
    {"torch-bf16@2.11", "rms_norm", "bf16 f32", "rms_norm(bf16, f32) : bf16"},
    {"torch-bf16", "exp", "bf16", "exp(f32) : f32"},

    {"torch-cpu-bf16", "conv2d_bias", "f32 f32 f32", "conv2d(bf16, bf16, bf16) : bf16"},
    {"torch-cpu-bf16", "softmax", "bf16", "softmax(bf16) : bf16"},
    {"torch-cpu-bf16", "exp", "bf16", "exp(bf16) : bf16"},
    {"torch-cpu-bf16", "sum", "bf16", "sum(bf16) : bf16"},
    {"torch-cpu-bf16", "prod", "bf16", "prod(f32) : f32"},
    {"torch-cpu-bf16", "layer_norm", "bf16 f32 f32", "layer_norm(bf16, f32, f32) : bf16"},
    {"torch-cpu-bf16", "cross_entropy", "bf16", "log_softmax(f32) : f32, nll_loss(f32, i32) : f32"},
    {"torch-cpu-fp16", "cat", "f16 f32", "concat(f32, f32) : f32"},
    {"torch-cpu-fp16", "scaled_dot_product_attention", "f32 f16 f32", "attention(f16, f16, f16) : f16"},

    {"apex-o1", "linear", "f32 f32 f32", "linear(f16, f16, f16) : f16"},
    {"apex-o1", "prelu", "f32 f32", "prelu(f16, f16) : f16"},
    {"apex-o1", "softmax", "f16", "softmax(f32) : f32"},
    {"apex-o1", "gelu", "f16", "gelu(f32) : f32"},
    {"apex-o1", "var", "f16", "var(f32) : f32"},
    {"apex-o1", "mean", "f16", "mean(f16) : f16"},
    {"apex-o1", "log1p", "f16", "log1p(f16) : f16"},
    {"apex-o1", "huber_loss", "f16 f16", "huber_loss(f16, f16) : f16"},
    {"apex-o1", "cross_entropy", "f16", "log_softmax(f32) : f32, nll_loss(f32, i32) : f32"},
    {"apex-o1", "add", "f16 f16", "add(f16, f16) : f16"},
    {"apex-o1", "add_0dim_b", "f16 f32", "add(f32, f32) : f32"},
    {"apex-o1", "where_0dim", "f16 f32", "where(bool, f16, f16) : f16"},
    {"apex-o1", "cat", "f32 f16", "concat(f32, f32) : f32"},
    {"apex-o1", "rms_norm", "f16 f32", "rms_norm(f16, f32) : f16"},
    {"apex-o1", "scaled_dot_product_attention", "f32 f32 f32", "attention(f32, f32, f32) : f32"},
    {"apex-o1", "batch_norm_eval", "f16 f32 f32 f32 f32", "batch_norm_eval(f16, f32, f32, f32, f32) : f16"},

    {"apex-o2", "add", "f32 f32", "add(f16, f16) : f16"},
    {"apex-o2", "softmax", "f32", "softmax(f16) : f16"},
    {"apex-o2", "embedding", "f32", "embedding(i32, f16) : f16"},
    {"apex-o2", "layer_norm", "f32 f32 f32", "layer_norm(f16, f16, f16) : f16"},
    {"apex-o2", "batch_norm_eval", "f32 f32 f32 f32 f32", "batch_norm_eval(f16, f32, f32, f32, f32) : f16"},
    {"apex-o2", "cross_entropy", "f16", "log_softmax(f32) : f32, nll_loss(f32, i32) : f32"},
    {"apex-o2", "mse_loss", "f16 f32", "mse_loss(f32, f32) : f32"},

    {"pure-fp16", "exp", "f32", "exp(f16) : f16"},
    {"pure-fp16", "cross_entropy", "f32", "log_softmax(f16) : f16, nll_loss(f16, i32) : f16"},
    {"pure-fp16", "batch_norm_eval", "f32 f32 f32 f32 f32", "batch_norm_eval(f16, f32, f32, f32, f32) : f16"},
    {"pure-bf16", "mse_loss", "f32 bf16", "mse_loss(bf16, bf16) : bf16"},

    {"keras-mixed-float16", "softmax", "f32", "softmax(f16) : f16"},
    {"keras-mixed-float16", "layer_norm", "f16 f32 f32", "layer_norm(f16, f32, f32) : f16"},
    {"keras-mixed-float16", "layer_norm", "f32 f32 f32", "layer_norm(f32, f32, f32) : f32"},
    {"keras-mixed-float16", "group_norm", "f16 f32 f32", "group_norm(f16, f32, f32) : f16"},
    {"keras-mixed-float16", "group_norm", "f32 f32 f32", "group_norm(f32, f32, f32) : f32"},
    {"keras-mixed-float16", "instance_norm", "f32 f32 f32", "instance_norm(f32, f32, f32) : f32"},
    {"keras-mixed-float16", "rms_norm", "f32 f32", "rms_norm(f16, f16) : f16"},
    {"keras-mixed-float16@3.14", "group_norm", "f32 f32 f32", "group_norm(f16, f16, f16) : f16"},
    {"keras-mixed-float16@3.14", "instance_norm", "f32 f32 f32", "instance_norm(f16, f32, f32) : f16"},
    {"keras-mixed-float16@3.14", "layer_norm", "f32 f32 f32", "layer_norm(f32, f32, f32) : f32"},
    {"keras-mixed-bfloat16@3.14", "group_norm", "bf16 f32 f32", "group_norm(bf16, bf16, bf16) : bf16"},
    {"keras-mixed-bfloat16", "group_norm", "bf16 f32 f32", "group_norm(bf16, f32, f32) : bf16"},
    {"keras-mixed-float16", "batch_norm_eval", "f32 f32 f32 f32 f32", "batch_norm_eval(f16, f32, f32, f32, f32) : f16"},
    {"keras-mixed-float16", "bce_with_logits", "f16 f16", "bce_with_logits(f32, f32) : f32"},
    {"keras-mixed-bfloat16", "linear", "f32 f32 f32", "linear(bf16, bf16, bf16) : bf16"},
    {"keras-mixed-bfloat16", "cross_entropy", "bf16", "log_softmax(f32) : f32, nll_loss(f32, i32) : f32"},

    {"mxnet-fp16", "linear", "f32 f32 f32", "linear(f16, f16, f16) : f16"},
    {"mxnet-fp16", "mean", "f16", "mean(f32) : f32"},
    {"mxnet-fp16", "elu", "f16", "elu(f32) : f32"},
    {"mxnet-fp16", "softplus", "f16", "softplus(f32) : f32"},
    {"mxnet-fp16", "leaky_relu", "f16", "leaky_relu(f16) : f16"},
    {"mxnet-fp16", "gelu", "f16", "gelu(f16) : f16"},
    {"mxnet-fp16", "square", "f16", "pow(f32) : f32"},
    {"mxnet-fp16", "maximum", "f16 f32", "maximum(f32, f32) : f32"},
    {"mxnet-fp16", "where_0dim", "f16 f32", "where(bool, f32, f32) : f32"},
    {"mxnet-fp16", "topk", "f16", "top_k(f32) : f32"},
    {"mxnet-fp16", "instance_norm", "f16 f32 f32", "instance_norm(f32, f32, f32) : f32"},
    {"mxnet-fp16", "batch_norm_eval", "f16 f32 f32 f32 f32", "batch_norm_eval(f16, f32, f32, f32, f32) : f16"},
    {"mxnet-fp16", "scaled_dot_product_attention", "f16 f16 f16", "attention(f16, f16, f16) : f16"},

    {"min-cast", "linear", "f32 f32 f32", "linear(f16, f16, f16) : f16"},
    {"min-cast", "exp", "f16", "exp(f32) : f32"},
    {"min-cast-bf16", "softmax", "bf16", "softmax(bf16) : f32"},

    {"tf-fp16", "linear", "f32 f32 f32", "linear(f16, f16, f16) : f16"},
    {"tf-fp16", "exp", "f32", "exp(f32) : f32"},
    {"tf-bf16", "matmul", "f32 f32", "matmul(bf16, bf16) : bf16"},
    {"tf-bf16", "softmax", "f32", "softmax(f32) : f32"}, // nothing beside it is low

    {"tf32", "linear", "f32 f32 f32", "linear(tf32, tf32, f32) : f32"},
    {"tf32", "exp", "f32", "exp(f32) : f32"},
    {"fp32", "linear", "f16 f32 f32", "linear(f32, f32, f32) : f32"},
};

TEST_F(PoliciesTest, WhatIsSpecialInEach) {
    std::map<std::string, int> seen;
    for (const Special &c : kSpecials) {
        const Twin *twin = FindTwin(c.call);
        ASSERT_NE(twin, nullptr) << c.call;
        policy_ = c.policy;
        std::string decisions;
        for (const std::string &d : DecisionsInOrder(Run(Read(TwinsModule({twin}, {Split(c.dtypes)})), STAGE_PAINT)))
            decisions += (decisions.empty() ? "" : ", ") + d;
        EXPECT_EQ(decisions, c.decisions) << c.policy << ": " << c.call;
        seen[c.policy]++;
    }
    for (int i = 0; i < policy_file_count; i++) EXPECT_GE(seen[policy_files[i].name], 1) << policy_files[i].name;
}

// Policies of other systems name a release, and say when its source was read.
TEST_F(PoliciesTest, NameTheReleaseThatTheyDescribe) {
    const std::set<std::string> ours = {"fp32", "tf32", "min-cast", "min-cast-bf16", "pure-fp16", "pure-bf16"};
    for (int i = 0; i < policy_file_count; i++) {
        const PolicyFile *file = &policy_files[i];
        const bool is_ours = ours.count(file->name) != 0;
        EXPECT_EQ(HasMatch(file->version, R"(^\d+\.\d+(\.\d+b\d+)?$)"), !is_ours) << file->name;
        const std::string text = Replaced(file->text, "\n# ", " ");
        EXPECT_EQ(HasMatch(text, "[Ll]ast read in [A-Z][a-z]+ 20[0-9]{2}"), !is_ours) << file->name;
    }
}

// ---- one line ------------------------------------------------------------------------------------------------------

// The calls of torch_twins.h beside each other, with dtypes in turn from a list.
class LinesTest : public PoliciesTest {
  protected:
    // A layer's ops, each for itself: of cross_entropy one reads what the other makes.
    static inline const Twin kOfLayers[] = {
        {"", {"[4, 6]"}, "%y = log_softmax(%a) : f32[4, 6] @y layer cross_entropy"},
        {"", {"[4, 6]"}, "%y = nll_loss(%a, %t) : f32 @y layer cross_entropy"},
        {"", {"[4, 6]", "[4, 6]"}, "%y = mul(%a, %b) : f32[4, 6] @y layer einsum"},
        {"", {"[4, 6]"}, "%y = permute(%a; dims = (1, 0)) : f32[6, 4] @y layer einsum"},
        {"", {"[4, 6]"}, "%y = mul(%a, %a) : f32[4, 6] @y layer cosine_similarity"},
        {"", {"[4, 6]"}, "%y = sum(%a) : f32 @y layer gather"},
    };

    static std::string ModuleOf(const std::vector<std::string> &list) {
        std::vector<const Twin *> twins;
        std::vector<std::vector<std::string>> dtypes;
        for (const Twin &twin : kTwins)
            if (!strstr(twin.name, "cross_entropy")) twins.push_back(&twin);
        for (const Twin &twin : kOfLayers) twins.push_back(&twin);
        for (const Twin *twin : twins) {
            dtypes.emplace_back();
            for (size_t i = 0; i < twin->shapes.size(); i++) dtypes.back().push_back(list[i % list.size()]);
        }
        return TwinsModule(twins, dtypes);
    }

    // The decisions of the module by this text of a policy; copies of what they point to are in the arena.
    std::vector<Decision> DecideBy(const std::string &module, const std::string &policy) {
        policies_["edited"] = policy;
        policy_ = "edited";
        const Module *m = Run(Read(module), STAGE_PAINT);
        return std::vector<Decision>(m->decisions.data, m->decisions.data + m->decisions.len);
    }

    static std::string Dtypes(const Decision &d) {
        std::string text = d.op;
        for (int i = 0; i < d.operands.len; i++) text += std::string(" ") + amp_dtype_name(d.operands.data[i]);
        return text + " : " + amp_dtype_name(d.out);
    }

    // The text with another class in its line |at|.
    static std::string WithClass(const std::string &text, const PolicyLine *at, const std::string &word) {
        std::istringstream lines(text);
        std::string edited, line;
        for (int i = 1; std::getline(lines, line); i++) {
            if (i == at->line) {
                line = at->text;
                line = line.substr(0, line.find_last_of(" \t") + 1) + word;
            }
            edited += line + "\n";
        }
        return edited;
    }

    static std::vector<const PolicyLine *> LinesOf(const Policy *p) {
        std::vector<const PolicyLine *> lines;
        for (int i = 0; i < p->entries.len; i++)
            if (lines.empty() || lines.back() != p->entries.data[i].line) lines.push_back(p->entries.data[i].line);
        return lines;
    }

    // Each op that the line decides has the new class for a rule, each other the line and rule that it had.  Under
    // `eager`, which decides each op for itself, the one is as if all were of the class |word|, the other as it was.
    void CheckEdit(const Policy *p, const PolicyLine *line, const std::string &word, const std::string &edited,
                   const std::string &module, const std::vector<Decision> &before, const std::vector<Decision> &alone) {
        const std::vector<Decision> after = DecideBy(module, edited);
        ASSERT_EQ(after.size(), before.size());
        for (size_t i = 0; i < after.size(); i++) {
            const Decision &a = after[i];
            const bool is_named = policy_line_of(p, ir_opcode(a.op), a.layer) == line;
            const std::string what =
                std::string(p->name) + ":" + std::to_string(line->line) + " " + word + ": " + a.path;
            EXPECT_TRUE(p->algorithm != ALGORITHM_EAGER || Dtypes(a) == Dtypes(is_named ? alone[i] : before[i]))
                << what;
            EXPECT_EQ(a.reason->line, before[i].reason->line) << what;
            EXPECT_STREQ(a.reason->rule, is_named ? word.c_str() : before[i].reason->rule) << what;
            changed_ += Dtypes(a) != Dtypes(before[i]);
        }
        edits_++;
    }

    int edits_ = 0, changed_ = 0;
};

TEST_F(LinesTest, AnEditOfOneLineChangesWhatItNamesAndNothingElse) {
    for (int file = 0; file < policy_file_count; file++) {
        const std::string text = policy_files[file].text;
        const Policy *p = policy_read(&arena_, &diags_, policy_builtin(&arena_, policy_files[file].name));
        ASSERT_NE(p, nullptr) << Diagnostics();
        const std::string low = amp_dtype_name(p->low),
                          head = "policy \"all\"\nalgorithm eager\nlow = " + low + "\nop * ";
        const std::string module = ModuleOf({low == "tf32" || low == "f32" ? "f16" : low, "f32"});
        const std::vector<Decision> before = DecideBy(module, text);
        const int edits = edits_, changed = changed_;
        for (int word = 0; word < POLICY_CLASS_COUNT; word++) {
            if (word == POLICY_BANNED || !policy_class_fits(static_cast<PolicyClass>(word), p->algorithm)) continue;
            const std::vector<Decision> alone =
                DecideBy(module, head + (word < POLICY_BANNED ? policy_class_words[word] : "follow") + "\n");
            for (const PolicyLine *line : LinesOf(p)) {
                if (line->op_class == word) continue;
                CheckEdit(p, line, policy_class_words[word], WithClass(text, line, policy_class_words[word]), module,
                          before, alone);
            }
        }
        EXPECT_GE(edits_, edits + 5) << p->name;
        EXPECT_GT(changed_, changed) << p->name;
    }
}

TEST_F(LinesTest, PlantedEditsAreFound) {
    const std::string text = policy_builtin(&arena_, "torch-fp16")->text, module = ModuleOf({"f16", "f32"});
    const Policy *p = policy_read(&arena_, &diags_, policy_builtin(&arena_, "torch-fp16"));
    const std::vector<const PolicyLine *> lines = LinesOf(p);
    const std::vector<Decision> before = DecideBy(module, text);
    const std::vector<Decision> alone = DecideBy(module, "policy \"all\"\nalgorithm eager\nlow = f16\nop * f32\n");
    auto check = [&](const std::string &edited) { CheckEdit(p, lines[0], "f32", edited, module, before, alone); };
    check(WithClass(text, lines[0], "f32"));
    ExpectFound("no edit", "torch-fp16:", [&] { check(text); });
    ExpectFound("an edit of another line", "torch-fp16:", [&] { check(WithClass(text, lines[1], "f32")); });
}

// A line that becomes `banned` refuses each op that it decides, and no other.
TEST_F(LinesTest, ABannedLineRefusesWhatItNames) {
    for (int file = 0; file < policy_file_count; file++) {
        const Policy *p = policy_read(&arena_, &diags_, policy_builtin(&arena_, policy_files[file].name));
        const std::string module = ModuleOf({"f32"});
        const Func *forward = ir_func_find(Read(module), "forward");
        for (const PolicyLine *line : LinesOf(p)) {
            if (line->op_class == POLICY_BANNED) continue;
            policies_["edited"] = WithClass(policy_files[file].text, line, "banned");
            policy_ = "edited";
            int named = 0;
            for (int i = 0; i < forward->body.len; i++) {
                const Op *o = ir_op_at(forward, i);
                named += o->code != OP_const && policy_line_of(p, o->code, o->layer) == line;
            }
            diags_init(&diags_, &arena_);
            EXPECT_EQ(TryRun(Read(module), STAGE_PAINT), named ? AMP_BAD_SOURCE : AMP_OK)
                << p->name << ":" << line->line;
            EXPECT_EQ(diags_.errors, named) << p->name << ":" << line->line << "\n" << Diagnostics();
        }
        diags_init(&diags_, &arena_);
    }
}

} // namespace
