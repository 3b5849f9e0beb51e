// torch_twins.h: calls of PyTorch as ops of ours, by the names that tests/parity/oracle/single_ops.py gives them.
#ifndef AMP_TESTS_PASSES_TORCH_TWINS_H
#define AMP_TESTS_PASSES_TORCH_TWINS_H

#include <string>
#include <vector>

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
    {"remainder", {"[4, 6]", "[4, 6]"}, "%y = remainder(%a, %b) : f32[4, 6]"},
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
    {"std", {"[4, 6]"}, "%y = std(%a) : f32"},
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

const Twin *FindTwin(const std::string &name) {
    for (const Twin &t : kTwins)
        if (name == t.name) return &t;
    return nullptr;
}

// The body's names with a prefix of their own: "%y = exp(%a)" as "%3.y = exp(%3.a)".
std::string WithPrefix(const std::string &prefix, const std::string &text) {
    std::string renamed;
    for (char c : text) {
        renamed += c;
        if (c == '%' || c == '@') renamed += prefix;
    }
    return renamed;
}

// A module of these calls; none reads what another makes; dtypes: of each one's tensors.
std::string TwinsModule(const std::vector<const Twin *> &twins, const std::vector<std::vector<std::string>> &dtypes) {
    std::string inputs, body, results;
    for (size_t t = 0; t < twins.size(); t++) {
        std::string own = "input %c : bool[4, 6]\ninput %mask : bool[16, 16]\ninput %ids : i32[3]\ninput %t : i32[4]\n";
        for (size_t i = 0; i < dtypes[t].size(); i++)
            own += "input %" + std::string(1, "abdef"[i]) + " : " + dtypes[t][i] + twins[t]->shapes[i] + "\n";
        const std::string prefix = "t" + std::to_string(t) + "_";
        inputs += WithPrefix(prefix, own);
        body += WithPrefix(prefix, twins[t]->body) + "\n";
        results += "result " + prefix + "y = %" + prefix + "y\n";
    }
    return "module \"t\" stage elaborate {\n}\nfunc forward {\n" + inputs + body + results + "}\n";
}

} // namespace

#endif
