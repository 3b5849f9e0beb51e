/* ops_rules_test.cc: the ops and layers of docs/language.md: arguments and defaults, types, modes. */
#include "ir/ir.h"
#include "tests/frontend/expect.h"
#include "tests/ops/pointwise.h"

namespace {

// Code grows with k, and so does what a program costs.
TEST(Limits, TopKCostsByItsK) {
    const auto with = [](const char *k) {
        return "model m(x: f32[N, 100000]) -> v, i {\n v, i = top_k(x; k = " + std::string(k) + ")\n}\n";
    };
    EXPECT_HOLDS(Ir(with("300")), "top_k(%x; k = 300");
    const std::string errors = Errors(with("50000"));
    EXPECT_HOLDS(errors,
                 "m.amp:3:22: error: top_k: k may be at most 312 here: each costs as much as 800 of the 250000 ops a "
                 "program may have");
    EXPECT_HOLDS(errors, "--max-ops allows more");
    EXPECT_HOLDS(Ir("model m(x: f32[N, 4]) -> v, i {\n v, i = top_k(x; k = 4)\n}\n"), "top_k(%x; k = 4");
}

/* y = |call| in a model with operands of several shapes. */
std::string With(const std::string &call) {
    return "model m(x: f32[N, 4], u: f32[N, 4], q: f32[N, 3, 4], im: f32[N, 6, 9, 8], i: i32[N], ids: i32[N, 5], b8: "
           "u8[N, 4], "
           "h: f16[N, 4]) -> y, x, u, q, im, i, ids, b8, h {\n y = " +
           call + "\n}\n";
}

std::string Op(const std::string &call) { return Ir(With(call)); }

/* ---- calls ---------------------------------------------------------------------------------------------------- */

struct Call {
    const char *text, *line; /* the op's line holds this */
};

class Calls : public testing::TestWithParam<Call> {};

TEST_P(Calls, Elaborate) { EXPECT_HOLDS(Op(GetParam().text), GetParam().line); }

/* Attributes at their defaults are not printed, but for windows. */
INSTANTIATE_TEST_SUITE_P(
    Table, Calls,
    testing::Values(
        Call{"linear(q; out = 2)", "linear(%q, %linear.weight, %linear.bias) : f32[N, 3, 2]"},
        Call{"linear(x; out = 2, bias = false)", "linear(%x, %linear.weight) : f32[N, 2]"},
        Call{"conv2d(im; out = 5, kernel = 3)", ": f32[N, 5, 7, 6]"},
        Call{"conv2d(im; out = 4, kernel = (3, 1), stride = (2, 1), padding = (1, 0), dilation = (1, 2), groups = 2, "
             "bias = false)",
             "stride = (2, 1), padding = (1, 0), dilation = (1, 2), groups = 2) : f32[N, 4, 5, 8]"},
        Call{"max_pool2d(im; kernel = (3, 2))", "kernel = (3, 2), stride = (3, 2)) : f32[N, 6, 3, 4], i32[N, 6, 3, 4]"},
        Call{"avg_pool2d(im; kernel = 3, stride = 1, padding = 1)", "padding = (1, 1)) : f32[N, 6, 9, 8]"},
        Call{"global_avg_pool(im)", "global_avg_pool(%im) : f32[N, 6]"},
        Call{"batch_norm(im)", "batch_norm(%im, %batch_norm.weight, %batch_norm.bias, %batch_norm.running_mean, "
                               "%batch_norm.running_var) : f32[N, 6, 9, 8]"},
        Call{"batch_norm(x; frozen = true)", "%batch_norm.running_var; frozen = true) : f32[N, 4]"},
        Call{"batch_norm(x; eps = 0.5, momentum = 0.25)", "eps = 0.5) : f32[N, 4]"},
        Call{"layer_norm(q)",
             "layer_norm(%q, %layer_norm.weight, %layer_norm.bias) : f32[N, 3, 4], f32[N, 3, 1], f32[N, 3, 1]"},
        Call{"layer_norm(q; bias = false, eps = 0.5)", "layer_norm(%q, %layer_norm.weight; eps = 0.5)"},
        Call{"group_norm(im; groups = 3)", "group_norm(%im, %group_norm.weight, %group_norm.bias; groups = 3) : f32[N, "
                                           "6, 9, 8], f32[N, 6], f32[N, 6]"},
        Call{"group_norm(im; groups = 2, eps = 0.5, bias = false)",
             "group_norm(%im, %group_norm.weight; groups = 2, eps = 0.5)"},
        Call{"group_norm(im; groups = 2, affine = false)", "full(; value = 1.0) : f32[6]"},
        Call{"instance_norm(im)", ": f32[N, 6, 9, 8], f32[N, 6], f32[N, 6]"},
        Call{"instance_norm(im; affine = true, eps = 0.5)",
             "instance_norm(%im, %instance_norm.weight, %instance_norm.bias; eps = 0.5)"},
        Call{"rms_norm(q)", "rms_norm(%q, %rms_norm.weight) : f32[N, 3, 4], f32[N, 3, 1]"},
        Call{"rms_norm(q; eps = 0.5)", "eps = 0.5) : f32[N, 3, 4], f32[N, 3, 1]"},
        Call{"conv1d(q; out = 5, kernel = 2)", ": f32[N, 5, 1, 3]"},
        Call{"conv1d(q; out = 6, kernel = 3, stride = 2, padding = 1, dilation = 1, groups = 3, bias = false)",
             "stride = (1, 2), padding = (0, 1), groups = 3) : f32[N, 6, 1, 2]"},
        Call{"conv1d(q, zeros(; shape = [5, 3, 2]); stride = 2)", "stride = (1, 2)) : f32[N, 5, 1, 2]"},
        Call{"conv1d(q, zeros(; shape = [6, 1, 3]), zeros(; shape = [6]); padding = 2, dilation = 2, groups = 3)",
             "padding = (0, 2), dilation = (1, 2), groups = 3) : f32[N, 6, 1, 4]"},
        Call{"conv_transpose2d(im; out = 5, kernel = 2, stride = 2)", "stride = (2, 2)) : f32[N, 5, 18, 16]"},
        Call{"conv_transpose2d(im; out = 4, kernel = (3, 1), stride = (2, 3), padding = (1, 0), output_padding = (1, "
             "2), "
             "dilation = (1, 2), groups = 2, bias = false)",
             "output_padding = (1, 2), dilation = (1, 2), groups = 2) : f32[N, 4, 18, 24]"},
        Call{"adaptive_avg_pool2d(im; out = (3, 5))", "adaptive_avg_pool2d(%im; out = (3, 5)) : f32[N, 6, 3, 5]"},
        Call{"upsample(im)", "upsample(%im) : f32[N, 6, 18, 16]"},
        Call{"upsample(im; size = (4, 20))", "upsample(%im; size = (4, 20)) : f32[N, 6, 4, 20]"},
        Call{"upsample1d(q; size = 7, mode = linear)", "size = (1, 7), mode = bilinear) : f32[N, 3, 1, 7]"},
        Call{"upsample1d(q)", "size = (1, 8)) : f32[N, 3, 1, 8]"},
        Call{"max_pool1d(q; kernel = 3)", "kernel = (1, 3), stride = (1, 3)) : f32[N, 3, 1, 1]"},
        Call{"avg_pool1d(q; kernel = 3, stride = 1, padding = 1)", "padding = (0, 1)) : f32[N, 3, 1, 4]"},
        Call{"upsample(im; scale = (1, 3), mode = bilinear, align_corners = true)",
             "upsample(%im; scale = (1, 3), mode = bilinear, align_corners = true) : f32[N, 6, 9, 24]"},
        Call{"self_attention(q; heads = 2)", ": f32[N, 2, 3, 2], f32[N, 2, 3, 1]"},
        Call{"self_attention(q; heads = 4, causal = true, p = 0.5, bias = false, transposed = true)",
             "causal = true, p = 0.5, key = \"self_attention.attention\") : f32[N, 4, 3, 1], f32[N, 4, 3, 1]"},
        Call{"attention(q, q, q; scale = 0.5)",
             "attention(%q, %q, %q; scale = 0.5, key = \"attention\") : f32[N, 3, 4], f32[N, 3, 1]"},
        Call{"attention(q, q, q, zeros(; shape = [3, 3]))",
             "attention(%q, %q, %q, %1; key = \"attention\") : f32[N, 3, 4], f32[N, 3, 1]"},
        Call{"embedding(ids; count = 7, dim = 2)", "embedding(%ids, %embedding.weight) : f32[N, 5, 2]"},
        Call{"dropout(x)", "dropout(%x; key = \"dropout\")"}, Call{"dropout(x; p = 0.25)", "p = 0.25"},
        Call{"clamp(x; low = -1.0, high = 1)", "clamp(%x;"},
        Call{"where(x > u, x, u)", "where(%1, %x, %u) : f32[N, 4]"}, Call{"to_f32(x == u)", "eq(%x, %u) : bool[N, 4]"},
        Call{"to_f32(x != u)", "ne(%x, %u)"}, Call{"to_f32(x < u)", "lt(%x, %u)"}, Call{"to_f32(x <= u)", "le(%x, %u)"},
        Call{"to_f32(x > u)", "gt(%x, %u)"}, Call{"to_f32(x >= u)", "ge(%x, %u)"}, Call{"x + u", "add(%x, %u)"},
        Call{"to_f32(x > u and not x == u or u < 1.0)", "or("},
        Call{"to_f32(x > u and x < u)", "and(%1, %2) : bool[N, 4]"}, Call{"to_f32(not x > u)", "not(%1) : bool[N, 4]"},
        Call{"x - u", "sub(%x, %u)"}, Call{"x * u", "mul(%x, %u)"}, Call{"x / u", "div(%x, %u)"}, Call{"-x", "neg(%x)"},
        Call{"leaky_relu(x)", "leaky_relu(%x)"}, Call{"leaky_relu(x; slope = 0.2)", "leaky_relu(%x; slope = 0.2)"},
        Call{"elu(x; alpha = 2)", "elu(%x; alpha = 2.0)"}, Call{"prelu(x)", "prelu(%x, %prelu.weight) : f32[N, 4]"},
        Call{"prelu(im; count = 6, init = 0.5)", "prelu(%im, %prelu.weight) : f32[N, 6, 9, 8]"},
        Call{"maximum(x, u)", "maximum(%x, %u) : f32[N, 4]"}, Call{"minimum(q, 0.5)", "minimum(%q, %1) : f32[N, 3, 4]"},
        Call{"to_f32(maximum(i, 3))", "maximum(%i, %1) : i32[N]"}, Call{"pow(x; e = 3)", "pow(%x; e = 3.0)"},
        Call{"matmul(q, transpose(q))", "matmul(%q, %1) : f32[N, 3, 3]"},
        Call{"matmul(reshape(x; shape = [N, 1, 4]), permute(q; dims = (0, 2, 1)))", ": f32[N, 1, 3]"},
        Call{"transpose(im; a = 1, b = -1)", "transpose(%im; a = 1) : f32[N, 8, 9, 6]"},
        Call{"permute(im; dims = (0, 2, -1, 1))", "permute(%im; dims = (0, 2, 3, 1)) : f32[N, 9, 8, 6]"},
        Call{"reshape(q; shape = [N * 2, 6])", "reshape(%q) : f32[2 * N, 6]"},
        Call{"detach(x)", "detach(%x) : f32[N, 4]"}, Call{"to_f32(detach(i))", "detach(%i) : i32[N]"},
        Call{"flatten(im)", "flatten(%im) : f32[N, 432]"},
        Call{"flatten(im; from = -2)", "flatten(%im; from = 2) : f32[N, 6, 72]"},
        Call{"concat(x, u; dim = 0)", "%1 = reshape(%x) : f32[1, N, 4]"},
        Call{"concat(x, u; dim = 0)", "%3 = concat(%1, %2) : f32[2, N, 4]"},
        Call{"concat(x, concat(x, u; dim = 0); dim = 0)", ") : f32[3 * N, 4]"},
        Call{"slice(concat(x, u; dim = 0); dim = 0, from = N, to = 2 * N)", "from = 1, to = 2) : f32[1, N, 4]"},
        Call{"concat(x, u, x; dim = -1)", "concat(%x, %u, %x; dim = 1) : f32[N, 12]"},
        Call{"stack(x, u; dim = 1)", "stack(%x, %u; dim = 1) : f32[N, 2, 4]"},
        Call{"stack(x, u; dim = -1)", "dim = 2) : f32[N, 4, 2]"},
        Call{"slice(q; dim = -1, from = -3, to = -1)", "slice(%q; dim = 2, from = 1, to = 3) : f32[N, 3, 2]"},
        Call{"pad(x; dim = 1, before = 1, after = 2)", "pad(%x; dim = 1, before = 1, after = 2) : f32[N, 7]"},
        Call{"pad(x; dim = 1, before = 0, after = 2, value = -1)", "value = -1.0"},
        Call{"zeros(; shape = [N, 3])", "full() : f32[N, 3]"},
        Call{"tensor(0.5, -2, 1.0 / 4.0)", "tensor(; values = [0.5, -2.0, 0.25]) : f32[3]"},
        Call{"tensor(1, 2, 3, 4; shape = [2, 1, 2])", "tensor(; values = [1.0, 2.0, 3.0, 4.0]) : f32[2, 1, 2]"},
        Call{"tensor(7, -2; type = i32)", "tensor(; values = [7.0, -2.0]) : i32[2]"},
        Call{"x * [0.5, 1, 2, 4]", "tensor(; values = [0.5, 1.0, 2.0, 4.0]) : f32[4]"},
        Call{"relu([-0.5, 2.0])", "relu(%1) : f32[2]"},
        Call{"layer_norm(x, [1.0, 1.0, 2.0, 0.5])", "tensor(; values = [1.0, 1.0, 2.0, 0.5]) : f32[4]"},
        Call{"full(; shape = [2, 3], value = 7)", "full(; value = 7.0) : f32[2, 3]"},
        Call{"arange(; count = 6)", "arange() : i32[6]"}, Call{"arange(; count = 2 * N)", "arange() : i32[2 * N]"},
        Call{"matmul(x, transpose(u))", "matmul(%x, %1) : f32[N, N]"},
        Call{"reshape(matmul(x, transpose(u)); shape = [N, 1, N])", "reshape(%2) : f32[N, 1, N]"},
        Call{"sum(matmul(x, transpose(u)); dims = 0)", "sum(%2; dims = (0)) : f32[N]"},
        Call{"sum(x)", "sum(%x) : f32 "},
        Call{"mean(q; dims = (1, -1), keep = true)", "dims = (1, 2), keep = true) : f32[N, 1, 1]"},
        Call{"max(x; dims = 1)", "max(%x; dims = (1)) : f32[N]"}, Call{"min(q; dims = all)", "min(%q) : f32 "},
        Call{"x % 2.5", "remainder(%x, %"},
        Call{"to_i32(clamp(floor(x) * 2.0 - sum(floor(x)); low = 0.0, high = 7.0) % 3.0)", ": i32[N, 4]"},
        Call{"to_i32(where(x > 0.0, floor(x), 1.0))", ": i32[N, 4]"}, Call{"to_i32(x > 0.0)", ": i32[N, 4]"},
        Call{"ids % 3", ": i32[N, 5]"}, Call{"std(x; dims = 1, correction = 0)", "std(%x; dims = (1), correction = 0)"},
        Call{"var(x; dims = 1, correction = 0)", "var(%x; dims = (1), correction = 0)"},
        Call{"argmax(q)", "argmax(%q) : i32[N, 3]"}, Call{"argmax(q; dim = 1)", "argmax(%q; dim = 1) : i32[N, 4]"},
        Call{"norm(q; p = inf)", "norm(%q; p = inf) : f32 "}, Call{"norm(q; p = 0)", "norm(%q; p = 0.0) : f32 "},
        Call{"softmax(q; dim = 1)", "softmax(%q; dim = 1)"}, Call{"log_softmax(x)", "log_softmax(%x)"},
        Call{"cross_entropy(x, i)", "nll_loss(%cross_entropy.l, %i) : f32 "},
        Call{"cross_entropy(q, slice(ids; dim = 1, from = 0, to = 3); label_smoothing = 0.1, ignore = 0)",
             "label_smoothing = 0.1, ignore = 0) : f32 "},
        Call{"cross_entropy(x, i, full(; shape = [4], value = 2); ignore = 1)",
             "nll_loss(%cross_entropy.l, %i, %1; ignore = 1) : f32 "},
        Call{"cumsum(q; dim = -2)", "cumsum(%q; dim = 1) : f32[N, 3, 4]"},
        Call{"one_hot(ids; count = 7)", ": bool[N, 5, 7]"},
        Call{"gather(q, slice(stack(ids, ids, ids; dim = 1); dim = 2, from = 0, to = 2); dim = -1)", ": f32[N, 3, 2]"},
        Call{"scatter_add(x, slice(ids; dim = 1, from = 0, to = 4), u; dim = 1)", "add(%x, "},
        Call{"roll(q; shift = 1, dim = 1)", "concat("}, Call{"tril(q; diagonal = 1)", "le("}, Call{"triu(q)", "ge("},
        Call{"rnn(q; hidden = 5)", "linear(%q, %rnn.weight_ih_l0, %rnn.bias_ih_l0) : f32[N, 3, 5]"},
        Call{"rnn(q; hidden = 5, relu = true)", "relu("},
        Call{"gru(q, zeros(; shape = [1, N, 5]); hidden = 5)",
             "linear(%gru.first, %gru.weight_hh_l0, %gru.bias_hh_l0)"},
        Call{"lstm(q; hidden = 5)", "linear(%q, %lstm.weight_ih_l0, %lstm.bias_ih_l0) : f32[N, 3, 20]"},
        Call{"lstm(q; hidden = 5, layers = 2, bidirectional = true, p = 0.25)",
             "state %lstm.weight_ih_l1_reverse : f32[20, 10]"},
        Call{"lstm(q; hidden = 5, layers = 2, p = 0.25)", "p = 0.25, key = \"lstm.dropout\") : f32[N, 3, 5]"},
        Call{"lstm(q; hidden = 4, bias = false)", "linear(%lstm.h.2, %lstm.weight_hh_l0) : f32[N, 16]"},
        Call{"gru(q; hidden = 5, bidirectional = true)", "state %gru.bias_hh_l0_reverse : f32[15]"},
        Call{"gru_step(linear(x; out = 12), linear(u; out = 12), x)", "mul(%gru_step.z, %x) : f32[N, 4]"},
        Call{"einsum(q, q; equation = \"bij,bkj->bik\")", "matmul(%q, %1) : f32[N, 3, 3]"},
        Call{"einsum(q; equation = \"bij -> bj\")", "sum(%q; dims = (1)) : f32[N, 4]"},
        Call{"einsum(x, u; equation = \"ij,ij\")", "reshape(%3) : f32 "},
        Call{"einsum(x, u; equation = \"ij,ij->ij\")", "mul(%x, %u) : f32[N, 4]"},
        Call{"rotary(q)", "slice(%q; dim = 2, from = 2, to = 4) : f32[N, 3, 2]"},
        Call{"rotary(im; interleaved = true, theta = 50)", "reshape(%im) : f32[N, 6, 9, 4, 2]"},
        Call{"l1_loss(x, u)", "l1_loss(%x, %u) : f32 "},
        Call{"smooth_l1_loss(x, u; beta = 0.5)", "smooth_l1_loss(%x, %u; beta = 0.5) : f32 "},
        Call{"huber_loss(x, u; delta = 2)", "huber_loss(%x, %u; delta = 2.0) : f32 "},
        Call{"kl_div(log_softmax(x), softmax(u))", "kl_div(%1, %2) : f32 "},
        Call{"kl_div(x, u; reduction = mean)", "reduction = mean) : f32 "}, Call{"dice_loss(x, u)", "mul(%x, %u)"},
        Call{"cosine_similarity(x, u)", "norm(%x; dims = (1), keep = true) : f32[N, 1]"},
        Call{"cosine_similarity(q, q; dim = -1)", "dims = (2)) : f32[N, 3]"},
        Call{"logsumexp(q; dims = (1, 2))", "logsumexp(%q; dims = (1, 2)) : f32[N]"},
        Call{"norm(q; p = 1, dims = 1, keep = true)", "norm(%q; dims = (1), keep = true, p = 1.0) : f32[N, 1, 4]"},
        Call{"prod(x; dims = 1)", "prod(%x; dims = (1)) : f32[N]"}, Call{"prod(q)", "prod(%q) : f32 "},
        Call{"mse_loss(x, u)", "mse_loss(%x, %u) : f32 "},
        Call{"bce_with_logits(x, u)", "bce_with_logits(%x, %u) : f32 "},
        Call{"accuracy(x, i)", "accuracy(%x, %i) : f32 "},
        Call{"top_k_accuracy(x, i; k = 2)", "top_k_accuracy(%x, %i; k = 2) : f32 "}));

TEST(Calls, TheNumberOfTensorsDecides) {
    std::string table = "model m(ids: i32[N]) -> y {\n param t: f32[7, 2] = ones()\n y = embedding(ids, t)\n}\n";
    EXPECT_HOLDS(Ir(table), "embedding(%ids, %t)");
    EXPECT_HOLDS(Errors(With("linear(x, x, x, x)")),
                 "linear takes 1 tensor as a layer and 2 to 3 tensors as an op; the call has 4");
    EXPECT_HOLDS(Errors(With("concat(; dim = 0)")), "concat takes 1 or more tensors; the call has 0");
}

TEST(Calls, TheOpFormOfBatchNormGivesItsStatistics) {
    EXPECT_HOLDS(
        Ir("model m(x: f32[N, 3]) -> y, m, v {\n param w: f32[3] = ones()\n y, m, v = batch_norm(x, w, w, w, w)\n}\n"),
        "%y, %m, %v, %4 = batch_norm(");
}

TEST(Calls, NeededArguments) {
    EXPECT_HOLDS(Errors(With("max_pool2d(im)")), "max_pool2d needs the argument 'kernel' (pair)");
    EXPECT_HOLDS(Errors(With("concat(x, u)")), "concat needs the argument 'dim' (int)");
    EXPECT_HOLDS(Errors(With("conv2d(im; out = 3)")), "conv2d needs the argument 'kernel' (pair)");
}

/* ---- types ------------------------------------------------------------------------------------------------------ */

TEST(Types, InputsAreF32F16Bf16I32U8) {
    for (const char *type : {"f32", "f16", "bf16", "i32", "u8"})
        EXPECT_HOLDS(Ir(std::string("model m(x: ") + type + "[N, 4]) -> y { y = to_f32(x) }\n"),
                     std::string(": ") + type + "[N, 4]");
    EXPECT_HOLDS(Errors("model m(x: i64[N]) -> y { y = to_f32(x) }\n"), "an input is f32, f16, bf16, i32 or u8");
    EXPECT_HOLDS(Errors("model m(x: f64[N]) -> y { y = to_f32(x) }\n"), "'f64' is not a tensor type");
}

TEST(Types, IntegersBesideAFloatBecomeF32) {
    EXPECT_HOLDS(Op("b8 * 0.5"), "cast(%b8) : f32[N, 4]");
    EXPECT_HOLDS(Op("b8 + x"), "cast(%b8) : f32[N, 4]");
    EXPECT_HOLDS(Op("to_f32(i > 0.5)"), "cast(%i) : f32[N]");
    EXPECT_HOLDS(Op("where(x > 0.0, b8, x)"), "cast(%b8) : f32[N, 4]");
}

TEST(Types, IntegersAmongThemselves) {
    EXPECT_HOLDS(Op("i + 1"), "add(%i, %1) : i32[N]");
    EXPECT_HOLDS(Op("i * i - 3"), "sub(%1, %2) : i32[N]");
    EXPECT_HOLDS(Op("where(i == 2, 0, i)"), "where(%2, %3, %i) : i32[N]");
    EXPECT_HOLDS(Errors(With("i / 2")), "'/' takes floats; this is i32");
    EXPECT_HOLDS(Errors(With("b8 + b8")), "add takes floats or i32; this is u8[N, 4]");
    EXPECT_HOLDS(Errors(With("b8 + b8")), "convert it: to_f32(b8)");
}

TEST(Types, ProductsNormsAndActivationsRefuseIntegers) {
    EXPECT_HOLDS(Errors(With("matmul(b8, x)")), "a product takes floats; this is u8[N, 4]");
    EXPECT_HOLDS(Errors(With("linear(b8; out = 2)")), "a product takes floats; this is u8[N, 4]");
    EXPECT_HOLDS(Errors(With("linear(b8; out = 2)")), "to_f32(...) converts it");
    EXPECT_HOLDS(Errors(With("layer_norm(b8)")), "layer_norm takes floats; this is u8[N, 4]");
    EXPECT_HOLDS(Errors(With("batch_norm(ids)")), "batch_norm takes floats; this is i32[N, 5]");
    EXPECT_HOLDS(Errors(With("relu(i)")), "convert it: to_f32(i)");
    EXPECT_HOLDS(Errors(With("sum(i)")), "a reduction takes floats; this is i32[N]");
    EXPECT_HOLDS(Errors(With("embedding(x; count = 3, dim = 4)")),
                 "embedding takes indexes of type i32; this is f32[N, 4]");
    EXPECT_HOLDS(Errors(With("cross_entropy(x, u)")), "cross_entropy: labels are i32; this is f32[N, 4]");
    EXPECT_HOLDS(Errors(With("where(x, x, u)")), "where takes a condition of type bool; this is f32[N, 4]");
    EXPECT_HOLDS(Errors(With("(x > 0.0) + x")), "add takes floats or i32; this is bool[N, 4]");
    EXPECT_HOLDS(Errors(With("to_f32(x > 0.0 and u)")), "and takes a condition of type bool; this is f32[N, 4]");
    EXPECT_HOLDS(Errors(With("to_f32(not x)")), "a comparison gives one: x > 0.0");
    EXPECT_HOLDS(Errors(With("to_f32(x > 0.0 or true)")), "a tensor is expected here; this is true");
}

TEST(Types, LiteralsAreWeak) {
    EXPECT_HOLDS(Op("h * 2.0"), "mul(%h, %1) : f32[N, 4]");
    EXPECT_LACKS(Op("h * 2.0"), "cast(");
    EXPECT_HOLDS(Op("linear(h; out = 3)"), "cast(%h) : f32[N, 4]"); /* products take one type */
}

TEST(Pointwise, CallsElaborate) {
    for (const PointwiseRow &row : PointwiseRows()) EXPECT_HOLDS(Op(row.Call("x")), "= " + row.Call("%x") + " :");
}

TEST(Pointwise, WrongCallsAreRefused) {
    for (const PointwiseRow &row : PointwiseRows()) {
        const std::string name = row.name();
        if (row.code != OP_neg && row.code != OP_sqrt) { // these two take counters
            const std::string errors = Errors(With(row.Call("i")));
            EXPECT_HOLDS(errors, "error: " + name + " takes floats; this is i32[N]");
            EXPECT_HOLDS(errors, "help: convert it: to_f32(i)");
        }
        EXPECT_HOLDS(Errors(With(row.Call("x, x"))), "error: " + name + " takes 1 tensor; the call has 2");
        EXPECT_HOLDS(Errors(With(name + "(x; dim = 1)")), "error: " + name + " has no argument 'dim'");
    }
}

/* ---- modes ------------------------------------------------------------------------------------------------------ */

TEST(Modes, TrainingAndEvaluationAreOneGraph) {
    std::string ir = Op("dropout(batch_norm(x); p = 0.1)");
    EXPECT_EQ(ir.find("func "), ir.rfind("func "));
    EXPECT_EQ(ir.find(" = dropout("), ir.rfind(" = dropout("));
    EXPECT_HOLDS(ir, "result update.batch_norm.running_mean");
}

TEST(Modes, BatchNormUpdatesItsStatisticsInPlainSight) {
    std::string ir = Op("batch_norm(x; momentum = 0.25)");
    EXPECT_HOLDS(ir, "const(; value = 0.75)");
    EXPECT_HOLDS(ir, "mul(%5, %batch_norm.running_mean)");
    EXPECT_HOLDS(ir, "increment(%batch_norm.num_batches_tracked)");
    EXPECT_EQ(Op("batch_norm(x; frozen = true)").find("update."), std::string::npos);
}

} // namespace
