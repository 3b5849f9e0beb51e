// Every op of the language that PyTorch has, with every combination of input dtypes, under FP16 and BF16 autocast, on
// CUDA and on the CPU, and without: in which dtype it computes and what it returns, against PyTorch's own answers
// (tests/parity/oracle).
#include <algorithm>
#include <set>

#include "base/json.h"
#include "passes/training/gradient.h"
#include "precision/policy.h"
#include "tests/base/planted.h"
#include "tests/ops/pointwise.h"
#include "tests/passes/pass_test.h"
#include "tests/passes/torch_twins.h"

namespace {

// Where we differ on purpose.  inputs: "f32, f16", or NULL for all.
struct Deviation {
    const char *autocast, *name, *inputs, *why;
};

const Deviation kDeviations[] = {
    {"bf16", "softmax", "bf16", "PyTorch casts first; we read bf16 and compute the same in f32"},
    {"bf16", "log_softmax", "bf16", "PyTorch casts first; we read bf16 and compute the same in f32"},
    {"f16", "rdiv_scalar", "f16", "Python's 1.5 / x is a reciprocal and a product; the language has a division"},
    {"bf16", "rdiv_scalar", "bf16", "Python's 1.5 / x is a reciprocal and a product; the language has a division"},
    {"off", "sdpa_float_mask", "f16, f16, f16, f32", "PyTorch rounds the mask to f16; we promote"},
    {"off", "rms_norm", "f16, f32", "both return f16; PyTorch by a cast of what is f32 until then, we from the op"},
    {"cpu f16", "rms_norm", "f16, f16", "PyTorch makes it of f32 parts and casts at the end; the op computes in f32"},
    {"cpu f16", "rms_norm", "f16, f32", "PyTorch makes it of f32 parts and casts at the end; the op computes in f32"},
    {"cpu bf16", "rms_norm", "bf16, bf16",
     "PyTorch makes it of f32 parts and casts at the end; the op computes in f32"},
    {"cpu bf16", "rms_norm", "bf16, f32", "PyTorch makes it of f32 parts and casts at the end; the op computes in f32"},
    {"off", "bce_with_logits", "f32, f16", "PyTorch returns the dtype of the targets; we the promoted one"},
};

// What PyTorch refuses in some combination of input dtypes, and we do not: factors of a product are promoted, and the
// weights and statistics of a normalisation may have any float dtype.
const std::set<std::string> kRefused = {"batch_norm_eval", "batch_norm_train", "instance_norm"};
const std::set<std::string> kRefusedWithoutAutocast = {"batch_norm_eval",
                                                       "batch_norm_train",
                                                       "bmm",
                                                       "conv2d",
                                                       "conv2d_bias",
                                                       "conv_transpose2d",
                                                       "group_norm",
                                                       "instance_norm",
                                                       "layer_norm",
                                                       "linear",
                                                       "linear_3d",
                                                       "linear_nobias",
                                                       "mm",
                                                       "matmul",
                                                       "matmul_3d2d",
                                                       "matmul_4d",
                                                       "scaled_dot_product_attention",
                                                       "sdpa_causal",
                                                       "sdpa_float_mask",
                                                       "sdpa_bool_mask",
                                                       "prelu",
                                                       "cross_entropy_weight",
                                                       "huber_loss"};

const std::set<std::string> kRefusedOnTheCpu = {"batch_norm_eval", "batch_norm_train", "group_norm", "instance_norm",
                                                "layer_norm"};

class TorchOpsTest : public PassTest {
  protected:
    // An op of tests/ops/pointwise.def that PyTorch's autocast has no rule for: it runs in the dtype that it is given,
    // as ops of a policy's `*` line do (ThePointwiseOpsThatAutocastLeavesAlone).
    static bool IsLeftAlone(const std::string &op) {
        const std::vector<PointwiseRow> rows = PointwiseRows();
        const bool is_row =
            std::any_of(rows.begin(), rows.end(), [&](const PointwiseRow &row) { return row.name() == op; });
        const std::string table = File("tests/parity/oracle/torch_autocast_table.jsonl");
        const bool is_listed = table.find("\"aten::" + op + "\"") != std::string::npos ||
                               table.find("\"aten::" + op + ".") != std::string::npos;
        return is_row && !is_listed;
    }

    Module *OurModule(const Twin &twin, const std::vector<std::string> &dtypes) {
        return Run(Read(TwinsModule({&twin}, {dtypes})), STAGE_AUTOCAST);
    }

    static bool IsFloat(const std::string &dtype) { return dtype == "f32" || dtype == "f16" || dtype == "bf16"; }
    static std::string Kind(const std::string &dtype) { return dtype == "i32" || dtype == "i64" ? "int" : dtype; }

    static std::string Promoted(const std::vector<std::string> &dtypes) {
        std::string widest;
        for (const std::string &t : dtypes)
            if (IsFloat(t)) widest = widest.empty() || widest == t ? t : "f32";
        return widest;
    }

    // "f16 -> f16": the dtype in which an op computes, what it returns.
    static std::string Step(const std::vector<std::string> &reads, const std::string &out) {
        return Promoted(reads) + " -> " + Kind(out);
    }

    static std::vector<std::string> OurSteps(const Func *f) {
        std::vector<std::string> steps;
        for (int i = 0; i < f->body.len; i++) {
            const Op *o = ir_op_at(f, i);
            if (o->code == OP_cast || o->code == OP_const) continue;
            std::vector<std::string> reads;
            for (int j = 0; j < o->n_in; j++) {
                const Op *def = ir_def(f, o->in[j]);
                if (!def || def->code != OP_const) reads.push_back(amp_dtype_name(ir_dtype(f, o->in[j])));
            }
            steps.push_back(Step(reads, amp_dtype_name(ir_dtype(f, o->out[0]))));
        }
        return steps;
    }

    static std::vector<std::string> Split(const std::string &list) {
        std::vector<std::string> words;
        std::istringstream in(list);
        for (std::string word; std::getline(in, word, ',');) words.push_back(word);
        return words;
    }

    static bool MovesOnly(const std::string &op) {
        static const std::set<std::string> names = {"_to_copy",  "view",          "_unsafe_view", "t",
                                                    "transpose", "expand",        "permute",      "clone",
                                                    "empty",     "scalar_tensor", "repeat"};
        return names.count(op);
    }

    // "add(f16,f32)->f16".  A tensor of rank 0 decides nothing beside one that has dimensions.
    static std::string TorchStep(const std::string &call, const Twin &twin) {
        size_t open = call.find('('), close = call.find(')');
        std::vector<std::string> reads = Split(call.substr(open + 1, close - open - 1)), counted;
        bool has_dims = false, has_scalars = false;
        for (const char *shape : twin.shapes) (*shape ? has_dims : has_scalars) = true;
        size_t floats = 0;
        for (const std::string &t : reads) {
            if (!IsFloat(t)) continue;
            bool scalar = floats < twin.shapes.size() && !*twin.shapes[floats];
            floats++;
            if (!(has_dims && has_scalars && scalar)) counted.push_back(t);
        }
        return Step(counted, Split(call.substr(close + 3))[0]);
    }

    static std::vector<std::string> TorchSteps(const amp_json *aten, const Twin &twin) {
        std::vector<std::string> steps;
        std::string last;
        for (size_t i = 0; i < aten->array.count; i++) {
            last = aten->array.items[i].string.data;
            if (!MovesOnly(last.substr(0, last.find('(')))) steps.push_back(TorchStep(last, twin));
        }
        if (steps.empty()) steps.push_back(TorchStep(last, twin)); // the op itself moves
        return steps;
    }

    static std::string Joined(const std::vector<std::string> &words) {
        std::string text;
        for (const std::string &w : words) text += (text.empty() ? "" : ", ") + w;
        return text;
    }

    bool IsDeviation(const std::string &autocast, const std::string &name, const std::string &inputs) {
        for (size_t i = 0; i < sizeof kDeviations / sizeof *kDeviations; i++) {
            const Deviation &d = kDeviations[i];
            if (autocast != d.autocast || name != d.name || (d.inputs && inputs != d.inputs)) continue;
            met_.insert(i);
            return true;
        }
        return false;
    }

    // A field of a row of the table in |mode|, which may say otherwise; null: the field is left out.
    static const amp_json *Field(const amp_json *row, const std::string &mode, const char *key) {
        const amp_json *otherwise = amp_json_get(row, mode.c_str());
        const amp_json *value = otherwise ? amp_json_get(otherwise, key) : nullptr;
        if (!value) value = amp_json_get(row, key);
        return value && value->kind == AMP_JSON_NULL ? nullptr : value;
    }

    void CheckRow(const amp_json *row, const std::string &autocast) {
        std::string name = amp_json_get(row, "op")->string.data, out = Field(row, autocast, "out")->string.data;
        const amp_json *in = amp_json_get(row, "in");
        const Twin *twin = FindTwin(name);
        ASSERT_NE(twin, nullptr) << name;
        ASSERT_EQ(twin->shapes.size(), in->array.count) << name;
        std::vector<std::string> dtypes;
        for (size_t i = 0; i < in->array.count; i++) dtypes.push_back(in->array.items[i].string.data);
        std::string inputs = Joined(dtypes), what = autocast + ": " + name + "(" + inputs + ")";
        seen_.insert(name);
        if (Field(row, autocast, "suspect") || out.rfind("error", 0) == 0) {
            refused_.insert(name);
            return;
        }
        const Func *f = ir_func_find(OurModule(*twin, dtypes), "forward");
        ASSERT_NE(f, nullptr) << what;
        std::vector<std::string> ours = OurSteps(f), theirs = TorchSteps(Field(row, autocast, "aten"), *twin);
        if (theirs.size() > ours.size()) theirs.resize(ours.size()); // label smoothing is inside nll_loss
        std::string result = Kind(amp_dtype_name(ir_dtype(f, f->results.data[0].value)));
        bool same = ours == theirs && result == Kind(out);
        if (same) agreed_++;
        else
            EXPECT_TRUE(IsDeviation(autocast, name, inputs))
                << what << " is " << Joined(ours) << "; PyTorch " << Joined(theirs) << ", returns " << out;
    }

    // Every row of the table in |mode|: "$" in it is the low type.
    void CheckOps(const std::string &mode, const std::string &low) {
        std::istringstream lines(File("tests/parity/oracle/torch_ops.jsonl"));
        for (std::string line; std::getline(lines, line);) {
            for (size_t at = 0; (at = line.find('$', at)) != std::string::npos;) line.replace(at, 1, low);
            amp_json_document *document = nullptr;
            ASSERT_EQ(amp_json_parse(line.data(), line.size(), nullptr, nullptr, &document, &error_), AMP_OK)
                << error_.message;
            CheckRow(amp_json_root(document), mode);
            amp_json_free(document);
        }
        EXPECT_EQ(seen_.size(), sizeof kTwins / sizeof *kTwins);
    }

    void ExpectDeviationsMet(const std::set<std::string> &autocasts) {
        for (size_t i = 0; i < sizeof kDeviations / sizeof *kDeviations; i++)
            EXPECT_EQ(met_.count(i), autocasts.count(kDeviations[i].autocast)) << kDeviations[i].name;
    }

    std::set<std::string> seen_, refused_;
    std::set<size_t> met_;
    int agreed_ = 0;
};

TEST_F(TorchOpsTest, EveryDecisionIsPyTorchs) {
    policy_ = "torch-fp16";
    CheckOps("f16", "f16");
    policy_ = "torch-bf16";
    CheckOps("bf16", "bf16");
    EXPECT_EQ(refused_, kRefused);
    ExpectDeviationsMet({"f16", "bf16"});
    EXPECT_GT(agreed_, 500);
}

TEST_F(TorchOpsTest, PlantedLineIsFound) {
    policies_["p"] = policy_builtin(&arena_, "torch-fp16")->text;
    std::string &text = policies_["p"];
    text.replace(text.find("op exp,"), 7, "op exp follow\nop");
    policy_ = "p";
    ExpectFound("exp that follows", "f16: exp(f16) is f16 -> f16; PyTorch f32 -> f32",
                [this] { CheckOps("f16", "f16"); });
}

TEST_F(TorchOpsTest, EveryDecisionIsPyTorchsOnTheCpu) {
    policy_ = "torch-cpu-fp16";
    CheckOps("cpu f16", "f16");
    policy_ = "torch-cpu-bf16";
    CheckOps("cpu bf16", "bf16");
    EXPECT_EQ(refused_, kRefusedOnTheCpu);
    ExpectDeviationsMet({"cpu f16", "cpu bf16"});
    EXPECT_GT(agreed_, 500);
}

// Without autocast: `follow` is PyTorch's promotion, `first` what its norms do (so does rms_norm before 2.12 with it).
TEST_F(TorchOpsTest, PromotionIsPyTorchs) {
    policies_["p"] = "policy \"p\"\nalgorithm eager\nlow = f16\nop rms_norm, group_norm first\nop * follow\n";
    policy_ = "p";
    CheckOps("off", "f16");
    EXPECT_EQ(refused_, kRefusedWithoutAutocast);
    ExpectDeviationsMet({"off"});
    EXPECT_GT(agreed_, 200);
}

// Ops that users write and PyTorch has not, that change no number, or that have no tensor of floats to decide by.
const std::set<std::string> kWithoutTwin = {"full", "tensor", "arange",   "detach",        "and",
                                            "or",   "not",    "accuracy", "top_k_accuracy"};

TEST_F(TorchOpsTest, EveryOpHasATwin) {
    std::set<std::string> ours = kWithoutTwin;
    for (const Twin &twin : kTwins) {
        const Func *f = ir_func_find(OurModule(twin, std::vector<std::string>(twin.shapes.size(), "f32")), "forward");
        for (int i = 0; i < f->body.len; i++) ours.insert(ir_op_info[ir_op_at(f, i)->code].name);
    }
    for (int code = OP_NONE + 1; code < OP_COUNT; code++) {
        const OpInfo *info = &ir_op_info[code];
        EXPECT_TRUE(!(info->flags & WRITTEN) || ours.count(info->name) || IsLeftAlone(info->name)) << info->name;
    }
}

TEST_F(TorchOpsTest, ThePointwiseOpsThatAutocastLeavesAlone) {
    for (const char *name : {"torch-fp16", "torch-bf16"}) {
        const Policy *p = policy_read(&arena_, &diags_, policy_builtin(&arena_, name));
        ASSERT_NE(p, nullptr);
        for (const PointwiseRow &row : PointwiseRows()) {
            if (!IsLeftAlone(row.name())) continue;
            EXPECT_EQ(policy_line(p, row.name(), nullptr)->op_class, policy_line(p, "abs", nullptr)->op_class)
                << row.name();
        }
    }
}

} // namespace
