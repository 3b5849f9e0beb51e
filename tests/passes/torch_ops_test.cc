// Every op of the language that PyTorch has, with every combination of input dtypes, under FP16 and BF16 autocast, on
// CUDA and on the CPU, and without: in which dtype it computes and what it returns, against PyTorch's own answers
// (tests/parity/oracle).
#include <algorithm>
#include <set>

#include "base/json.h"
#include "passes/training/gradient.h"
#include "passes/precision/policy.h"
#include "tests/ops/pointwise.h"
#include "tests/passes/pass_test.h"

namespace {

// An op of PyTorch as ops of ours.  shapes: of its tensors %0, %1, ... whose dtypes vary; %ids i32[3], %t i32[4] and
// %c bool[4, 6] and %mask bool[16, 16] are there too.
struct Twin {
    const char *name;
    std::vector<const char *> shapes;
    const char *body; // makes %y
};

const Twin kTwins[] = {
    {"matmul", {"[4, 6]", "[6, 5]"}, "%y = matmul(%a, %b) : f32[4, 5]"},
    {"mm", {"[4, 6]", "[6, 5]"}, "%y = matmul(%a, %b) : f32[4, 5]"},
    {"matmul_3d2d", {"[2, 4, 6]", "[6, 5]"}, "%y = matmul(%a, %b) : f32[2, 4, 5]"},
    {"matmul_4d", {"[2, 3, 4, 6]", "[3, 6, 5]"}, "%y = matmul(%a, %b) : f32[2, 3, 4, 5]"},
    {"bmm", {"[2, 4, 6]", "[2, 6, 5]"}, "%y = matmul(%a, %b) : f32[2, 4, 5]"},
    {"linear_nobias", {"[4, 6]", "[5, 6]"}, "%y = linear(%a, %b) : f32[4, 5]"},
    {"linear", {"[4, 6]", "[5, 6]", "[5]"}, "%y = linear(%a, %b, %d) : f32[4, 5]"},
    {"linear_3d", {"[2, 4, 6]", "[5, 6]", "[5]"}, "%y = linear(%a, %b, %d) : f32[2, 4, 5]"},
    {"conv2d", {"[2, 3, 8, 8]", "[4, 3, 3, 3]"}, "%y = conv2d(%a, %b) : f32[2, 4, 6, 6]"},
    {"conv2d_bias", {"[2, 3, 8, 8]", "[4, 3, 3, 3]", "[4]"}, "%y = conv2d(%a, %b, %d) : f32[2, 4, 6, 6]"},
    {"add", {"[4, 6]", "[4, 6]"}, "%y = add(%a, %b) : f32[4, 6]"},
    {"sub", {"[4, 6]", "[4, 6]"}, "%y = sub(%a, %b) : f32[4, 6]"},
    {"mul", {"[4, 6]", "[4, 6]"}, "%y = mul(%a, %b) : f32[4, 6]"},
    {"div", {"[4, 6]", "[4, 6]"}, "%y = div(%a, %b) : f32[4, 6]"},
    {"neg", {"[4, 6]"}, "%y = neg(%a) : f32[4, 6]"},
    {"add_scalar", {"[4, 6]"}, "%k = const(; value = 1.5) : f32 %y = add(%a, %k) : f32[4, 6]"},
    {"mul_scalar", {"[4, 6]"}, "%k = const(; value = 1.5) : f32 %y = mul(%a, %k) : f32[4, 6]"},
    {"rdiv_scalar", {"[4, 6]"}, "%k = const(; value = 1.5) : f32 %y = div(%k, %a) : f32[4, 6]"},
    {"add_0dim_b", {"[4, 6]", ""}, "%y = add(%a, %b) : f32[4, 6]"},
    {"mul_0dim_b", {"[4, 6]", ""}, "%y = mul(%a, %b) : f32[4, 6]"},
    {"sub_0dim_a", {"", "[4, 6]"}, "%y = sub(%a, %b) : f32[4, 6]"},
    {"add_0dim_both", {"", ""}, "%y = add(%a, %b) : f32"},
    {"exp", {"[4, 6]"}, "%y = exp(%a) : f32[4, 6]"},
    {"log", {"[4, 6]"}, "%y = log(%a) : f32[4, 6]"},
    {"sqrt", {"[4, 6]"}, "%y = sqrt(%a) : f32[4, 6]"},
    {"rsqrt", {"[4, 6]"}, "%y = rsqrt(%a) : f32[4, 6]"},
    {"abs", {"[4, 6]"}, "%y = abs(%a) : f32[4, 6]"},
    {"erf", {"[4, 6]"}, "%y = erf(%a) : f32[4, 6]"},
    {"tanh", {"[4, 6]"}, "%y = tanh(%a) : f32[4, 6]"},
    {"sigmoid", {"[4, 6]"}, "%y = sigmoid(%a) : f32[4, 6]"},
    {"relu", {"[4, 6]"}, "%y = relu(%a) : f32[4, 6]"},
    {"gelu", {"[4, 6]"}, "%y = gelu(%a) : f32[4, 6]"},
    {"gelu_tanh", {"[4, 6]"}, "%y = gelu(%a; approximate = tanh) : f32[4, 6]"},
    {"silu", {"[4, 6]"}, "%y = silu(%a) : f32[4, 6]"},
    {"softplus", {"[4, 6]"}, "%y = softplus(%a) : f32[4, 6]"},
    {"leaky_relu", {"[4, 6]"}, "%y = leaky_relu(%a) : f32[4, 6]"},
    {"elu", {"[4, 6]"}, "%y = elu(%a) : f32[4, 6]"},
    {"hardswish", {"[4, 6]"}, "%y = hard_swish(%a) : f32[4, 6]"},
    {"hardsigmoid", {"[4, 6]"}, "%y = hard_sigmoid(%a) : f32[4, 6]"},
    {"mish", {"[4, 6]"}, "%y = mish(%a) : f32[4, 6]"},
    {"reciprocal", {"[4, 6]"}, "%y = reciprocal(%a) : f32[4, 6]"},
    {"sign", {"[4, 6]"}, "%y = sign(%a) : f32[4, 6]"},
    {"floor", {"[4, 6]"}, "%y = floor(%a) : f32[4, 6]"},
    {"expm1", {"[4, 6]"}, "%y = expm1(%a) : f32[4, 6]"},
    {"log1p", {"[4, 6]"}, "%y = log1p(%a) : f32[4, 6]"},
    {"maximum", {"[4, 6]", "[4, 6]"}, "%y = maximum(%a, %b) : f32[4, 6]"},
    {"minimum", {"[4, 6]", "[4, 6]"}, "%y = minimum(%a, %b) : f32[4, 6]"},
    {"prelu", {"[4, 6]", "[1]"}, "%y = prelu(%a, %b) : f32[4, 6]"},
    {"pow_scalar_exp", {"[4, 6]"}, "%y = pow(%a; e = 1.5) : f32[4, 6]"},
    {"x**2", {"[4, 6]"}, "%y = pow(%a; e = 2.0) : f32[4, 6]"},
    {"square", {"[4, 6]"}, "%y = pow(%a; e = 2.0) : f32[4, 6]"},
    {"clamp", {"[4, 6]"}, "%y = clamp(%a; low = 0.0) : f32[4, 6]"},
    {"where", {"[4, 6]", "[4, 6]"}, "%y = where(%c, %a, %b) : f32[4, 6]"},
    {"where_scalar", {"[4, 6]"}, "%k = const(; value = 1.5) : f32 %y = where(%c, %a, %k) : f32[4, 6]"},
    {"where_0dim", {"[4, 6]", ""}, "%y = where(%c, %a, %b) : f32[4, 6]"},
    {"eq", {"[4, 6]", "[4, 6]"}, "%y = eq(%a, %b) : bool[4, 6]"},
    {"ne", {"[4, 6]", "[4, 6]"}, "%y = ne(%a, %b) : bool[4, 6]"},
    {"lt", {"[4, 6]", "[4, 6]"}, "%y = lt(%a, %b) : bool[4, 6]"},
    {"le", {"[4, 6]", "[4, 6]"}, "%y = le(%a, %b) : bool[4, 6]"},
    {"gt", {"[4, 6]", "[4, 6]"}, "%y = gt(%a, %b) : bool[4, 6]"},
    {"ge", {"[4, 6]", "[4, 6]"}, "%y = ge(%a, %b) : bool[4, 6]"},
    {"dropout", {"[4, 6]"}, "%y = dropout(%a) : f32[4, 6]"},
    {"sum", {"[4, 6]"}, "%y = sum(%a) : f32"},
    {"sum_dim", {"[4, 6]"}, "%y = sum(%a; dims = (1)) : f32[4]"},
    {"mean", {"[4, 6]"}, "%y = mean(%a) : f32"},
    {"mean_dim", {"[4, 6]"}, "%y = mean(%a; dims = (1)) : f32[4]"},
    {"var", {"[4, 6]"}, "%y = var(%a) : f32"},
    {"amax", {"[4, 6]"}, "%y = max(%a; dims = (1)) : f32[4]"},
    {"amin", {"[4, 6]"}, "%y = min(%a; dims = (1)) : f32[4]"},
    {"max", {"[4, 6]"}, "%y = max(%a) : f32"},
    {"argmax", {"[24]"}, "%y = argmax(%a) : i32"},
    {"argmax_dim", {"[4, 6]"}, "%y = argmax(%a; dim = 1) : i32[4]"},
    {"softmax", {"[4, 6]"}, "%y = softmax(%a) : f32[4, 6]"},
    {"log_softmax", {"[4, 6]"}, "%y = log_softmax(%a) : f32[4, 6]"},
    {"reshape", {"[4, 6]"}, "%y = reshape(%a) : f32[6, 4]"},
    {"flatten", {"[4, 6]"}, "%y = flatten(%a; from = 0) : f32[24]"},
    {"transpose", {"[4, 6]"}, "%y = transpose(%a) : f32[6, 4]"},
    {"permute", {"[2, 3, 4]"}, "%y = permute(%a; dims = (2, 0, 1)) : f32[4, 2, 3]"},
    {"slice", {"[4, 6]"}, "%y = slice(%a; dim = 1, from = 1, to = 3) : f32[4, 2]"},
    {"pad", {"[4, 6]"}, "%y = pad(%a; dim = 1, before = 1, after = 1) : f32[4, 8]"},
    {"expand", {"[4, 6]"}, "%y = expand(%a) : f32[2, 4, 6]"},
    {"cat", {"[4, 6]", "[4, 6]"}, "%y = concat(%a, %b) : f32[8, 6]"},
    {"stack", {"[4, 6]", "[4, 6]"}, "%y = stack(%a, %b) : f32[2, 4, 6]"},
    {"stack_0dim", {"", ""}, "%y = stack(%a, %b) : f32[2]"},
    {"embedding", {"[10, 4]"}, "%y = embedding(%ids, %a) : f32[3, 4]"},
    {"topk", {"[4, 6]"}, "%y, %w = top_k(%a; k = 2) : f32[4, 2], i32[4, 2]"},
    {"max_pool2d",
     {"[2, 3, 8, 8]"},
     "%y, %w = max_pool2d(%a; kernel = (2, 2), stride = (2, 2)) : f32[2, 3, 4, 4], i32[2, 3, 4, 4]"},
    {"avg_pool2d", {"[2, 3, 8, 8]"}, "%y = avg_pool2d(%a; kernel = (2, 2), stride = (2, 2)) : f32[2, 3, 4, 4]"},
    {"adaptive_avg_pool2d", {"[2, 3, 8, 8]"}, "%y = adaptive_avg_pool2d(%a; out = (2, 2)) : f32[2, 3, 2, 2]"},
    {"interpolate_nearest", {"[2, 3, 8, 8]"}, "%y = upsample(%a) : f32[2, 3, 16, 16]"},
    {"interpolate_bilinear", {"[2, 3, 8, 8]"}, "%y = upsample(%a; mode = bilinear) : f32[2, 3, 16, 16]"},
    {"conv_transpose2d", {"[2, 3, 8, 8]", "[3, 4, 3, 3]"}, "%y = conv_transpose2d(%a, %b) : f32[2, 4, 10, 10]"},
    {"group_norm",
     {"[2, 4, 8, 8]", "[4]", "[4]"},
     "%y, %1, %2 = group_norm(%a, %b, %d; groups = 2) : f32[2, 4, 8, 8], f32[2, 4], f32[2, 4]"},
    {"instance_norm",
     {"[2, 4, 8, 8]", "[4]", "[4]"},
     "%y, %1, %2 = instance_norm(%a, %b, %d) : f32[2, 4, 8, 8], f32[2, 4], f32[2, 4]"},
    {"rms_norm", {"[4, 6]", "[6]"}, "%y, %1 = rms_norm(%a, %b) : f32[4, 6], f32[4, 1]"},
    {"adaptive_avg_pool2d_1", {"[2, 3, 8, 8]"}, "%y = global_avg_pool(%a) : f32[2, 3]"},
    {"batch_norm_train",
     {"[4, 3]", "[3]", "[3]", "[3]", "[3]"},
     "%y, %1, %2, %3 = batch_norm(%a, %b, %d, %e, %f) : f32[4, 3], f32[3], f32[3], f32[3]"},
    {"batch_norm_eval", {"[4, 3]", "[3]", "[3]", "[3]", "[3]"}, "%y = batch_norm_eval(%a, %b, %d, %e, %f) : f32[4, 3]"},
    {"layer_norm", {"[4, 6]", "[6]", "[6]"}, "%y, %1, %2 = layer_norm(%a, %b, %d) : f32[4, 6], f32[4, 1], f32[4, 1]"},
    {"scaled_dot_product_attention",
     {"[2, 4, 16, 64]", "[2, 4, 16, 64]", "[2, 4, 16, 64]"},
     "%y, %1 = attention(%a, %b, %d) : f32[2, 4, 16, 64], f32[2, 4, 16, 1]"},
    {"sdpa_causal",
     {"[2, 4, 16, 64]", "[2, 4, 16, 64]", "[2, 4, 16, 64]"},
     "%y, %1 = attention(%a, %b, %d; causal = true) : f32[2, 4, 16, 64], f32[2, 4, 16, 1]"},
    {"sdpa_float_mask",
     {"[2, 4, 16, 64]", "[2, 4, 16, 64]", "[2, 4, 16, 64]", "[16, 16]"},
     "%y, %1 = attention(%a, %b, %d, %e) : f32[2, 4, 16, 64], f32[2, 4, 16, 1]"},
    {"sdpa_bool_mask",
     {"[2, 4, 16, 64]", "[2, 4, 16, 64]", "[2, 4, 16, 64]"},
     "%y, %1 = attention(%a, %b, %d, %mask) : f32[2, 4, 16, 64], f32[2, 4, 16, 1]"},
    {"cross_entropy",
     {"[4, 6]"},
     "%l = log_softmax(%a) : f32[4, 6] @l layer cross_entropy %y = nll_loss(%l, %t) : f32 @n layer cross_entropy"},
    {"cross_entropy_smooth",
     {"[4, 6]"},
     "%l = log_softmax(%a) : f32[4, 6] @l layer cross_entropy "
     "%y = nll_loss(%l, %t; label_smoothing = 0.1) : f32 @n layer cross_entropy"},
    {"nll_loss", {"[4, 6]"}, "%y = nll_loss(%a, %t) : f32"},
    {"cross_entropy_weight",
     {"[4, 6]", "[6]"},
     "%l = log_softmax(%a) : f32[4, 6] @l layer cross_entropy %y = nll_loss(%l, %t, %b) : f32 @n layer cross_entropy"},
    {"l1_loss", {"[4, 6]", "[4, 6]"}, "%y = l1_loss(%a, %b) : f32"},
    {"smooth_l1_loss", {"[4, 6]", "[4, 6]"}, "%y = smooth_l1_loss(%a, %b) : f32"},
    {"huber_loss", {"[4, 6]", "[4, 6]"}, "%y = huber_loss(%a, %b) : f32"},
    {"kl_div", {"[4, 6]", "[4, 6]"}, "%y = kl_div(%a, %b; reduction = mean) : f32"},
    {"logsumexp", {"[4, 6]"}, "%y = logsumexp(%a; dims = (1)) : f32[4]"},
    {"linalg_vector_norm", {"[4, 6]"}, "%y = norm(%a) : f32"},
    {"cumsum", {"[4, 6]"}, "%y = cumsum(%a; dim = 0) : f32[4, 6]"},
    {"prod", {"[4, 6]"}, "%y = prod(%a) : f32"},
    {"mse_loss", {"[4, 6]", "[4, 6]"}, "%y = mse_loss(%a, %b) : f32"},
    {"bce_with_logits", {"[4, 6]", "[4, 6]"}, "%y = bce_with_logits(%a, %b) : f32"},
};

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

    static std::string Name(size_t i) { return std::string(1, "abdef"[i]); }

    static const Twin *FindTwin(const std::string &name) {
        for (const Twin &t : kTwins)
            if (name == t.name) return &t;
        return nullptr;
    }

    Module *OurModule(const Twin &twin, const std::vector<std::string> &dtypes) {
        std::string inputs =
            "input %c : bool[4, 6]\ninput %mask : bool[16, 16]\ninput %ids : i32[3]\ninput %t : i32[4]\n";
        for (size_t i = 0; i < dtypes.size(); i++)
            inputs += "input %" + Name(i) + " : " + dtypes[i] + twin.shapes[i] + "\n";
        return Run(
            Read("module \"t\" stage elaborate {\n}\nfunc forward {\n" + inputs + twin.body + "\nresult y = %y\n}\n"),
            STAGE_AUTOCAST);
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

    void CheckRow(const amp_json *row) {
        std::string name = amp_json_get(row, "op")->string.data;
        std::string autocast = device_ + amp_json_get(row, "autocast")->string.data,
                    out = amp_json_get(row, "out")->string.data;
        const amp_json *in = amp_json_get(row, "in");
        const Twin *twin = FindTwin(name);
        ASSERT_NE(twin, nullptr) << name;
        ASSERT_EQ(twin->shapes.size(), in->array.count) << name;
        std::vector<std::string> dtypes;
        for (size_t i = 0; i < in->array.count; i++) dtypes.push_back(in->array.items[i].string.data);
        std::string inputs = Joined(dtypes), what = autocast + ": " + name + "(" + inputs + ")";
        seen_.insert(name);
        if (amp_json_get(row, "suspect") || out.rfind("error", 0) == 0) {
            refused_.insert(name);
            return;
        }
        const Func *f = ir_func_find(OurModule(*twin, dtypes), "forward");
        ASSERT_NE(f, nullptr) << what;
        std::vector<std::string> ours = OurSteps(f), theirs = TorchSteps(amp_json_get(row, "aten"), *twin);
        if (theirs.size() > ours.size()) theirs.resize(ours.size()); // label smoothing is inside nll_loss
        std::string result = Kind(amp_dtype_name(ir_dtype(f, f->results.data[0].value)));
        bool same = ours == theirs && result == Kind(out);
        if (same) agreed_++;
        else
            EXPECT_TRUE(IsDeviation(autocast, name, inputs))
                << what << " is " << Joined(ours) << "; PyTorch " << Joined(theirs) << ", returns " << out;
    }

    void CheckFile(const std::string &file) {
        std::istringstream lines(File("tests/parity/oracle/" + file));
        for (std::string line; std::getline(lines, line);) {
            amp_json_document *document = nullptr;
            ASSERT_EQ(amp_json_parse(line.data(), line.size(), nullptr, nullptr, &document, &error_), AMP_OK)
                << error_.message;
            CheckRow(amp_json_root(document));
            amp_json_free(document);
        }
        EXPECT_EQ(seen_.size(), sizeof kTwins / sizeof *kTwins);
    }

    void ExpectDeviationsMet(const std::set<std::string> &autocasts) {
        for (size_t i = 0; i < sizeof kDeviations / sizeof *kDeviations; i++)
            EXPECT_EQ(met_.count(i), autocasts.count(kDeviations[i].autocast)) << kDeviations[i].name;
    }

    std::string device_; // "cpu ": of the rows that are read
    std::set<std::string> seen_, refused_;
    std::set<size_t> met_;
    int agreed_ = 0;
};

TEST_F(TorchOpsTest, EveryDecisionIsPyTorchs) {
    policy_ = "torch-fp16";
    CheckFile("torch_ops_f16.jsonl");
    policy_ = "torch-bf16";
    CheckFile("torch_ops_bf16.jsonl");
    EXPECT_EQ(refused_, kRefused);
    ExpectDeviationsMet({"f16", "bf16"});
    EXPECT_GT(agreed_, 500);
}

TEST_F(TorchOpsTest, EveryDecisionIsPyTorchsOnTheCpu) {
    device_ = "cpu ";
    policy_ = "torch-cpu-fp16";
    CheckFile("torch_cpu_ops_f16.jsonl");
    policy_ = "torch-cpu-bf16";
    CheckFile("torch_cpu_ops_bf16.jsonl");
    EXPECT_EQ(refused_, kRefusedOnTheCpu);
    ExpectDeviationsMet({"cpu f16", "cpu bf16"});
    EXPECT_GT(agreed_, 500);
}

// Without autocast: `follow` is PyTorch's promotion, `first` what its norms do (so does rms_norm before 2.12 with it).
TEST_F(TorchOpsTest, PromotionIsPyTorchs) {
    policies_["p"] = "policy \"p\"\nalgorithm eager\nlow = f16\nop rms_norm, group_norm first\nop * follow\n";
    policy_ = "p";
    CheckFile("torch_ops_off.jsonl");
    EXPECT_EQ(refused_, kRefusedWithoutAutocast);
    ExpectDeviationsMet({"off"});
    EXPECT_GT(agreed_, 200);
}

// Ops that users write and PyTorch has not, that change no number, or that have no tensor of floats to decide by.
const std::set<std::string> kWithoutTwin = {"full", "arange", "detach",   "and",
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
