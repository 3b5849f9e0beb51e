// lower_test.cc: every graph op against its core form in the reference interpreter, and what the rules promise besides.
#include <algorithm>
#include <set>

#include "passes/lower/lower.h"
#include "tests/passes/lower_cases.h"
#include "tests/passes/lower_test.h"

namespace {

struct Case {
    Opcode code;
    const char *body;
};

#define XY "input %x : f32[N, 4]\ninput %y : f32[N, 4]\n"
#define LOGP "input %x : f32[N, 5]\ninput %t : i32[N]\n"
#define WEIGHT "input %g : f32[4, 3]\nstate %w : f32[4, 3]\nstate %step : i64\n"
#define RATES(LR, DECAY) "%lr = const(; value = " LR ") : f64\n%wd = const(; value = " DECAY ") : f64\n"
#define MOMENTS "state %m : f32[4, 3]\nstate %v : f32[4, 3]\n"

const char kStates[] = "state %w : f32[4, 3] param = zeros()\nstate %m : f32[4, 3] buffer\nstate %v : f32[4, 3] "
                       "buffer\nstate %step : i64 counter\n"
                       "state %scale : f32 scaler\nstate %growth_tracker : i32 scaler\n";

// At least one line per op with a rule; results are compared to 1e-12 in exact arithmetic.
const Case kCases[] = {
    {OP_linear, "input %x : f32[N, 3]\ninput %w2 : f32[4, 3]\n%r = linear(%x, %w2) : f32[N, 4]\nresult r = %r\n"},
    {OP_linear, "input %x : f16[N, 3]\ninput %w2 : f16[3, 4]\ninput %b : f16[4]\n"
                "%r = linear(%x, %w2, %b; transposed = true) : f16[N, 4]\nresult r = %r\n"},
    {OP_linear, "input %x : tf32[N, 3]\ninput %w2 : tf32[4, 3]\ninput %b : f32[4]\n%r = linear(%x, %w2, %b) : f32[N, "
                "4]\nresult r = %r\n"},
    {OP_matmul, "input %x : f32[N, 3]\ninput %y : f32[3, 4]\n%r = matmul(%x, %y) : f32[N, 4]\nresult r = %r\n"},
    {OP_matmul,
     "input %x : bf16[N, 3]\ninput %y : bf16[N, 4]\n%r = matmul(%x, %y; ta = true) : f32[3, 4]\nresult r = %r\n"},
    {OP_matmul,
     "input %x : f16[N, 3]\ninput %y : f16[4, 3]\n%r = matmul(%x, %y; tb = true) : f16[N, 4]\nresult r = %r\n"},
    {OP_relu, XY "%r = relu(%x) : f32[N, 4]\nresult r = %r\n"},
    {OP_gelu, XY "%r = gelu(%x) : f32[N, 4]\nresult r = %r\n"},
    {OP_gelu, XY "%r = gelu(%x; approximate = tanh) : f32[N, 4]\nresult r = %r\n"},
    {OP_sigmoid, XY "%r = sigmoid(%x) : f32[N, 4]\nresult r = %r\n"},
    {OP_dropout, XY "%r = dropout(%x; p = 0.4, key = \"a.dropout\") : f32[N, 4]\nresult r = %r\n"},
    {OP_dropout, XY "%r = dropout(%x; p = 0.0) : f32[N, 4] @b.dropout\nresult r = %r\n"},
    {OP_sum, XY "%r = sum(%x) : f32\nresult r = %r\n"},
    {OP_sum, XY "%r = sum(%x; dims = (0)) : f32[4]\nresult r = %r\n"},
    {OP_sum, XY "%r = sum(%x; dims = (-1), keep = true) : f32[N, 1]\nresult r = %r\n"},
    {OP_sum, XY "%r = sum(%x; keep = true) : f32[1, 1]\nresult r = %r\n"},
    {OP_sum, "input %x : f16[2, N, 3]\n%r = sum(%x; dims = (0, 1)) : f32[3]\nresult r = %r\n"},
    {OP_sum, "input %x : f16[2, N, 3]\n%r = sum(%x) : f16\nresult r = %r\n"},
    {OP_sum, "input %x : f16[2, N, 3]\n%r = sum(%x; keep = true) : f16[1, 1, 1]\nresult r = %r\n"},
    {OP_sum, "input %x : f32[N]\n%r = sum(%x) : f32\nresult r = %r\n"},
    {OP_mean, XY "%r = mean(%x) : f32\nresult r = %r\n"},
    {OP_mean, XY "%r = mean(%x; dims = (0)) : f32[4]\nresult r = %r\n"},
    {OP_mean, XY "%r = mean(%x; dims = (1)) : f32[N]\nresult r = %r\n"},
    {OP_softmax, XY "%r = softmax(%x) : f32[N, 4]\nresult r = %r\n"},
    {OP_softmax, "input %x : f32[6]\n%r = softmax(%x; dim = 0) : f32[6]\nresult r = %r\n"},
    {OP_log_softmax, XY "%r = log_softmax(%x; dim = 1) : f32[N, 4]\nresult r = %r\n"},
    {OP_nll_loss, LOGP "%r = nll_loss(%x, %t) : f32\nresult r = %r\n"},
    {OP_nll_loss, LOGP "%r = nll_loss(%x, %t; label_smoothing = 0.1) : f32\nresult r = %r\n"},
    {OP_nll_loss, LOGP "%r = nll_loss(%x, %t; ignore = 2) : f32\nresult r = %r\n"},
    {OP_accuracy, LOGP "%r = accuracy(%x, %t) : f32\nresult r = %r\n"},
    {OP_count_samples, "input %i : f32[3, N, 2]\n%r = count_samples(%i) : f64\nresult r = %r\n"},
    {OP_count_labels, LOGP "%r = count_labels(%x, %t; ignore = 1) : f64\nresult r = %r\n"},
    {OP_count_labels, LOGP "input %w3 : f32[5]\n%r = count_labels(%x, %t, %w3; ignore = 1) : f64\nresult r = %r\n"},
    {OP_grad_seed, "%r = grad_seed() : f32\nresult r = %r\n"},
    {OP_relu_grad, XY "%r = relu_grad(%x, %y) : f32[N, 4]\nresult r = %r\n"},
    {OP_gelu_grad, XY "%r = gelu_grad(%x, %y) : f32[N, 4]\nresult r = %r\n"},
    {OP_gelu_grad, XY "%r = gelu_grad(%x, %y; approximate = tanh) : f32[N, 4]\nresult r = %r\n"},
    {OP_sigmoid_grad, XY "%r = sigmoid_grad(%x, %y) : f32[N, 4]\nresult r = %r\n"},
    {OP_tanh_grad, XY "%r = tanh_grad(%x, %y) : f32[N, 4]\nresult r = %r\n"},
    {OP_softmax_grad, XY "%r = softmax_grad(%x, %y) : f32[N, 4]\nresult r = %r\n"},
    {OP_log_softmax_grad, XY "%r = log_softmax_grad(%x, %y) : f32[N, 4]\nresult r = %r\n"},
    {OP_nll_loss_grad, LOGP "input %g : f32\n%r = nll_loss_grad(%g, %x, %t) : f32[N, 5]\nresult r = %r\n"},
    {OP_nll_loss_grad, LOGP
     "input %g : f32\n%r = nll_loss_grad(%g, %x, %t; label_smoothing = 0.2, ignore = 1) : f32[N, 5]\nresult r = %r\n"},
    {OP_sum_to, XY "input %b : f32[4]\n%r = sum_to(%x, %b) : f32[4]\nresult r = %r\n"},
    {OP_sum_to, XY "input %b : f32[N, 1]\n%r = sum_to(%x, %b) : f32[N, 1]\nresult r = %r\n"},
    {OP_sum_to, XY "input %b : f32[1, 4]\n%r = sum_to(%x, %b) : f32[1, 4]\nresult r = %r\n"},
    {OP_sum_to, XY "input %b : f32\n%r = sum_to(%x, %b) : f32\nresult r = %r\n"},
    {OP_sum_to, XY "input %b : f32[1]\n%r = sum_to(%x, %b) : f32[1]\nresult r = %r\n"},
    {OP_sum_to, XY "%r = sum_to(%x, %y) : f16[N, 4]\nresult r = %r\n"},
    {OP_broadcast_to, XY "input %g : f32\n%r = broadcast_to(%g, %x; mean = true) : f32[N, 4]\nresult r = %r\n"},
    {OP_broadcast_to, XY "input %g : f32[N]\n%r = broadcast_to(%g, %x; dims = (1)) : f32[N, 4]\nresult r = %r\n"},
    {OP_broadcast_to,
     XY "input %g : f32[N, 1]\n%r = broadcast_to(%g, %x; dims = (-1), mean = true) : f32[N, 4]\nresult r = %r\n"},
    {OP_broadcast_to,
     XY "input %g : f32[4]\n%r = broadcast_to(%g, %x; dims = (0), mean = true) : f32[N, 4]\nresult r = %r\n"},
    {OP_scale_loss, "input %g : f32\nstate %scale : f32\n%r = scale_loss(%g, %scale) : f32\nresult r = %r\n"},
    {OP_inverse_scale, "state %scale : f32\n%r = inverse_scale(%scale) : f32\nresult r = %r\n"},
    {OP_unscale, XY "input %g : f32\n%r = unscale(%x, %g) : f32[N, 4]\nresult r = %r\n"},
    {OP_all_finite, XY "input %g : f32\ninput %h : f16[3]\n%r = all_finite(%x, %g, %h) : bool\nresult r = %r\n"},
    {OP_update_scale,
     "input %ok : bool\nstate %scale : f32\nstate %growth_tracker : i32\n%r, %s, %u = update_scale(%scale, "
     "%growth_tracker, %ok; "
     "growth = 3.0, interval = 4, min = 0.25) : f32, i32, i32\nresult r = %r\nresult s = %s\nresult u = %u\n"},
    {OP_is_due, "state %step : i64\n%r = is_due(%step; every = 3) : bool\nresult r = %r\n"},
    {OP_is_due, "input %ok : bool\nstate %step : i64\n%r = is_due(%step, %ok; every = 7) : bool\nresult r = "
                "%r\n"},
    {OP_global_norm, XY "input %b : f32[3]\ninput %c : f32\n%r = global_norm(%x, %b, %c) : f64\nresult r = %r\n"},
    {OP_clip_by_norm, XY "input %n : f64\n%r = clip_by_norm(%x, %n; max = 0.5) : f32[N, 4]\nresult r = %r\n"},
    {OP_constant_rate, "%r = constant_rate(; v = 0.5) : f64\nresult r = %r\n"},
    {OP_cosine_rate, "state %step : i64\n%r = cosine_rate(%step; peak = 0.5, warmup = 2, steps = 9) : f64\nresult r = "
                     "%r\n"},
    {OP_step_rate, "state %step : i64\n%r = step_rate(%step; base = 0.5, every = 2, gamma = 0.3) : f64\nresult r = "
                   "%r\n"},
    {OP_linear_rate, "state %step : i64\n%r = linear_rate(%step; peak = 0.5, warmup = 2, steps = 9) : f64\nresult r = "
                     "%r\n"},
    {OP_settable_rate, "input %lr : f64\n%r = settable_rate(%lr; v = 0.5) : f64\nresult r = %r\n"},
    {OP_one_cycle_rate, "state %step : i64\n%r = one_cycle_rate(%step; peak = 0.5, steps = 9) : f64\nresult r = %r\n"},
    {OP_sgd, WEIGHT RATES("0.1", "0.01") "%r, %b = sgd(%w, %g, %step, %lr, %wd) : f32[4, 3], f32[4, 3]\nassign(%w, "
                                         "%r)\nresult b = %b\n"},
    {OP_sgd,
     WEIGHT MOMENTS RATES("0.1", "0.0") "%r, %b = sgd(%w, %g, %step, %lr, %wd, %m; momentum = 0.9) : f32[4, 3], f32[4, "
                                        "3]\nassign(%w, %r)\nassign(%m, %b)\n"},
    {OP_sgd,
     WEIGHT MOMENTS RATES(
         "0.1",
         "0.0") "%r, %b = sgd(%w, %g, %step, %lr, %wd, %m; momentum = 0.9, nesterov = true) : f32[4, 3], f32[4, 3]\n"
                "assign(%w, %r)\nassign(%m, %b)\n"},
    {OP_adam,
     WEIGHT MOMENTS RATES(
         "0.1", "0.1") "%r, %m2, %v2 = adam(%w, %g, %step, %lr, %wd, %m, %v) : f32[4, 3], f32[4, 3], f32[4, 3]\n"
                       "assign(%w, %r)\nassign(%m, %m2)\nassign(%v, %v2)\n"},
    {OP_adamw,
     WEIGHT MOMENTS RATES(
         "0.1", "0.1") "%r, %m2, %v2 = adamw(%w, %g, %step, %lr, %wd, %m, %v) : f32[4, 3], f32[4, 3], f32[4, 3]\n"
                       "assign(%w, %r)\nassign(%m, %m2)\nassign(%v, %v2)\n"},
    {OP_adamw,
     WEIGHT MOMENTS RATES(
         "0.1", "0.0") "%r, %m2, %v2 = adamw(%w, %g, %step, %lr, %wd, %m, %v) : f32[4, 3], f32[4, 3], f32[4, 3]\n"
                       "assign(%w, %r)\nassign(%m, %m2)\nassign(%v, %v2)\n"},
    {OP_adagrad,
     WEIGHT MOMENTS RATES("0.1", "0.1") "%r, %s = adagrad(%w, %g, %step, %lr, %wd, %v; lr_decay = 0.5) : f32[4, 3], "
                                        "f32[4, 3]\nassign(%w, %r)\nassign(%v, %s)\n"},
    {OP_adafactor,
     WEIGHT "input %a : f32[4]\ninput %b : f32[3]\n" RATES(
         "0.1", "0.1") "%r, %s, %u = adafactor(%w, %g, %step, %lr, %wd, %a, %b) : f32[4, 3], f32[4], f32[3]\n"
                       "assign(%w, %r)\nresult s = %s\nresult u = %u\n"},
    {OP_adafactor, "input %w : f32[5]\ninput %g : f32[5]\ninput %m : f32[5]\nstate %step : i64\n" RATES(
                       "0.1", "0.0") "%r, %s, %u = adafactor(%w, %g, %step, %lr, %wd, %m; d = 2.0) : f32[5], f32[5], "
                                     "f32[5]\nresult r = %r\nresult s = %s\nresult u = %u\n"},
    {OP_lamb,
     WEIGHT MOMENTS RATES(
         "0.1", "0.1") "%r, %m2, %v2 = lamb(%w, %g, %step, %lr, %wd, %m, %v) : f32[4, 3], f32[4, 3], f32[4, 3]\n"
                       "assign(%w, %r)\nassign(%m, %m2)\nassign(%v, %v2)\n"},
    {OP_lion, WEIGHT MOMENTS RATES("0.1", "0.1") "%r, %s = lion(%w, %g, %step, %lr, %wd, %m) : f32[4, 3], f32[4, 3]\n"
                                                 "assign(%w, %r)\nassign(%m, %s)\n"},
    {OP_muon,
     WEIGHT MOMENTS RATES("0.1", "0.1") "%r, %s = muon(%w, %g, %step, %lr, %wd, %m; ns_steps = 2) : f32[4, 3], "
                                        "f32[4, 3]\nassign(%w, %r)\nassign(%m, %s)\n"},
    {OP_muon,
     "input %w : f32[3, 4]\ninput %g : f32[3, 4]\ninput %m : f32[3, 4]\nstate %step : i64\n" RATES(
         "0.1", "0.0") "%r, %s = muon(%w, %g, %step, %lr, %wd, %m; ns_steps = 1, nesterov = false, adjust_lr = "
                       "match_rms_adamw) : f32[3, 4], f32[3, 4]\nresult r = %r\nresult s = %s\n"},
    {OP_muon, WEIGHT MOMENTS RATES("0.1", "0.1") "%r, %s = muon(%w, %g, %step, %lr, %wd, %m; ns_steps = 1, adjust_lr = "
                                                 "spectral_unclamped) : f32[4, 3], f32[4, 3]\nresult r = %r\n"
                                                 "result s = %s\n"},
    {OP_rmsprop, WEIGHT MOMENTS RATES("0.1", "0.1") "%r, %v2, %a, %b = rmsprop(%w, %g, %step, %lr, %wd, %v) : "
                                                    "f32[4, 3], f32[4, 3], f32[4, 3], f32[4, 3]\n"
                                                    "assign(%w, %r)\nassign(%v, %v2)\n"},
    {OP_rmsprop, WEIGHT MOMENTS "input %b : f32[4, 3]\n" RATES(
                     "0.1", "0.0") "%r, %v2, %m2, %b2 = rmsprop(%w, %g, %step, %lr, %wd, %v, %m, %b; momentum = 0.9, "
                                   "centered = true) : f32[4, 3], f32[4, 3], f32[4, 3], f32[4, 3]\n"
                                   "assign(%w, %r)\nassign(%v, %v2)\nassign(%m, %m2)\nresult b = %b2\n"},
    {OP_ema, XY "state %step : i64\n%r = ema(%x, %y, %step; decay = 0.75) : f32[N, 4]\nresult r = %r\n"},
    {OP_stochastic_cast, XY "%r = stochastic_cast(%x; key = \"w\", word = 2) : bf16[N, 4]\nresult r = %r\n"},
    {OP_stochastic_cast, XY "%r = stochastic_cast(%x; key = \"w\") : f16[N, 4]\nresult r = %r\n"},
    {OP_stochastic_cast, XY "%r = stochastic_cast(%x; key = \"w\", word = 1) : f8m[N, 4]\nresult r = %r\n"},
    {OP_stochastic_cast,
     XY "%z = mul(%x, %x) : f32[N, 4]\n%r = stochastic_cast(%z; key = \"w\") : f8v[N, 4]\nresult r = %r\n"},
    {OP_increment, "state %step : i64\n%r = increment(%step) : i64\nassign(%step, %r)\n"},
    {OP_assign, WEIGHT "input %ok : bool\nassign(%w, %g) if %ok\n"},
    {OP_cast, XY "%r = cast(%x) : f16[N, 4]\nresult r = %r\n"},
    {OP_const, "%r = const(; value = 0.1) : f16\nresult r = %r\n"},
    {OP_add, XY "%r = add(%x, %y) : f32[N, 4]\nresult r = %r\n"},
    {OP_add, "input %x : f16[N, 4]\ninput %y : f32\n%r = add(%x, %y) : f16[N, 4]\nresult r = %r\n"},
    {OP_sub, XY "%r = sub(%x, %y) : f32[N, 4]\nresult r = %r\n"},
    {OP_mul, XY "input %b : f32[N, 1]\n%r = mul(%x, %b) : f32[N, 4]\nresult r = %r\n"},
    {OP_div, XY "%r = div(%x, %y) : f32[N, 4]\nresult r = %r\n"},
    {OP_neg, XY "%r = neg(%x) : f32[N, 4]\nresult r = %r\n"},
    {OP_exp, XY "%r = exp(%x) : f32[N, 4]\nresult r = %r\n"},
    {OP_log, "input %pos : f32[N, 4]\n%r = log(%pos) : f32[N, 4]\nresult r = %r\n"},
    {OP_sqrt, "input %pos : f32[N, 4]\n%r = sqrt(%pos) : f32[N, 4]\nresult r = %r\n"},
    {OP_tanh, XY "%r = tanh(%x) : f32[N, 4]\nresult r = %r\n"},
};

class LowerTest : public LowerPassTest {
  protected:
    Module *Lower(const std::string &body) { return LowerPassTest::Lower(body, kStates); }

    void ExpectSameAll(const std::vector<LowerCase> &cases) {
        for (const LowerCase &c : cases) ExpectSame(c.body, kStates);
    }
};

TEST_F(LowerTest, EveryOpMeansTheSame) {
    for (const Case &c : kCases) ExpectSame(c.body, kStates);
}

TEST_F(LowerTest, ElementwiseOpsMeanTheSame) { ExpectSameAll(ElementwiseCases()); }
TEST_F(LowerTest, ProductsMeanTheSame) { ExpectSameAll(ProductCases()); }
TEST_F(LowerTest, ImageOpsMeanTheSame) { ExpectSameAll(ImageCases()); }
TEST_F(LowerTest, AttentionMeansTheSame) { ExpectSameAll(AttentionCases()); }
TEST_F(LowerTest, NormsMeanTheSame) { ExpectSameAll(NormCases()); }
TEST_F(LowerTest, MovementMeansTheSame) { ExpectSameAll(MoveCases()); }
TEST_F(LowerTest, ReductionsMeanTheSame) { ExpectSameAll(ReductionCases()); }
TEST_F(LowerTest, OpsAlongADimMeanTheSame) { ExpectSameAll(LineCases()); }
TEST_F(LowerTest, LossesAndMetricsMeanTheSame) { ExpectSameAll(LossCases()); }

TEST_F(LowerTest, EveryRuleHasACase) {
    std::set<int> covered;
    for (const Case &c : kCases) covered.insert(c.code);
    for (const auto &cases : {ElementwiseCases(), ProductCases(), ImageCases(), AttentionCases(), NormCases(),
                              MoveCases(), ReductionCases(), LineCases(), LossCases()})
        for (const LowerCase &c : cases) covered.insert(c.code);
    for (int code = 1; code < OP_COUNT; code++)
        EXPECT_TRUE(!(ir_op_levels(static_cast<Opcode>(code)) & GRAPH) || covered.count(code) ||
                    ir_op_info[code].flags & COLLECTIVE) // they stay: distribute_test.cc
            << ir_op_info[code].name;
}

TEST_F(LowerTest, EveryGraphOpHasARule) {
    for (int code = OP_NONE + 1; code < OP_COUNT; code++) {
        const bool is_graph = ir_op_levels(static_cast<Opcode>(code)) & GRAPH;
        EXPECT_EQ(lower_row(static_cast<Opcode>(code)) != nullptr, is_graph) << ir_op_info[code].name;
        EXPECT_LE(std::count_if(lower_tables, lower_tables + LOWER_TABLES,
                                [&](const LowerRow *table) { return table[code].lower != nullptr; }),
                  1)
            << ir_op_info[code].name;
    }
}

// One rounding per graph op: f32 holds twice the digits of f16 and two more, so rounding to it before changes nothing.
TEST_F(LowerTest, ElementwiseOpsRoundOnce) {
    const char *ops[] = {"add(%x, %y)", "sub(%x, %y)", "mul(%x, %y)",      "div(%x, %y)",
                         "neg(%x)",     "relu(%x)",    "relu_grad(%x, %y)"};
    for (const char *t : {"f16", "bf16"})
        for (const char *op : ops) {
            std::string type = std::string(t) + "[N, 64]";
            std::string body =
                "input %x : " + type + "\ninput %y : " + type + "\n%r = " + op + " : " + type + "\nresult r = %r\n";
            SCOPED_TRACE(body);
            Compare(ReadFunc("simplify", body, kStates), Lower(body), true, 0);
        }
}

TEST_F(LowerTest, AConstantOfAShortTypeIsRounded) {
    Module *m = Lower("%r = const(; value = 0.1) : f16\nresult r = %r\n");
    EXPECT_EQ("%1 = const(; value = 0.1)\n%r = cast(%1)\n", Ops(m->funcs.data[0]));
    EXPECT_EQ(0.0999755859375, Interpret(m->funcs.data[0], 1, true, 0)["r"][0]);
}

TEST_F(LowerTest, ALinearLayerBecomesARegion) {
    Module *m = Read(
        "module \"t\" stage simplify {\n}\nfunc f {\ninput %x : f32[N, 3]\ninput %w : f16[4, 3]\ninput %b : f16[4]\n"
        "%x.h = cast(%x) : f16[N, 3] @fc.linear because {lower, torch-fp16:4, for fc.linear} at m.amp:8:9\n"
        "%y = linear(%x.h, %w, %b) : f16[N, 4] @fc.linear layer linear because {lower, torch-fp16:4} at "
        "m.amp:8:9\nresult y = %y\n}\n");
    ASSERT_TRUE(Run(m, STAGE_LOWER));
    Func *f = m->funcs.data[0];
    EXPECT_EQ("%x.h = cast(%x)\n%1 = contract(%x.h, %w; tb = true)\n%2 = cast(%b)\n%3 = add(%1, %2)\n%y = cast(%3)\n",
              Ops(f));
    EXPECT_STREQ("fc.linear", ir_op_at(f, 0)->reason->neighbour); // the cast of the graph keeps its reason
    EXPECT_EQ(0u, ir_op_at(f, 0)->region);
    EXPECT_STREQ("torch-fp16", ir_op_at(f, 1)->reason->origin); // the product and its rounding have the op's
    EXPECT_EQ(nullptr, ir_op_at(f, 2)->reason);
    EXPECT_EQ(nullptr, ir_op_at(f, 3)->reason);
    EXPECT_STREQ("lower", ir_op_at(f, 4)->reason->rule);
    ASSERT_EQ(1, f->regions.len);
    EXPECT_STREQ("linear", f->regions.data[0].op);
    for (int i = 1; i < f->body.len; i++) {
        EXPECT_EQ(1u, ir_op_at(f, i)->region);
        EXPECT_STREQ("fc.linear", ir_op_at(f, i)->path);
        EXPECT_STREQ("linear", ir_op_at(f, i)->layer);
        EXPECT_EQ(8, ir_op_at(f, i)->pos.line);
    }
    EXPECT_EQ(AMP_DT_F32, ir_dtype(f, ir_op_at(f, 1)->out[0]));
    EXPECT_EQ(STAGE_LOWER, m->stage);
}

// Few columns of large samples are added in chunks, 16 of 32 columns, so that small batches have many blocks; no chunk
// is shorter than 256 rows.
TEST_F(LowerTest, LargeSamplesAreAddedInChunks) {
    for (const auto &[size, sums] : {std::pair<const char *, const char *>{"[N, 32, 64, 64]", "[16 * N, 32]"},
                                     {"[N, 64, 64, 64]", "[8 * N, 64]"},
                                     {"[N, 32, 28, 28]", "[2 * N, 32]"},
                                     {"[N, 64, 14, 14]", "[N, 64]"},
                                     {"[N, 512, 28, 28]", "[2 * N, 512]"}}) {
        const std::string x = std::string("f32") + size;
        const std::string channels = x.substr(x.find("N, ") + 3, x.find(',', x.find("N, ") + 3) - x.find("N, ") - 3);
        const std::string c = "f32[" + channels + "]";
        Module *m = Lower("input %x : " + x + "\ninput %y : " + x + "\ninput %w : " + c + "\ninput %m : " + c +
                          "\ninput %v : " + c + "\n%r, %s, %t = batch_norm_grad(%y, %x, %w, %m, %v) : " + x + ", " + c +
                          ", " + c + "\nresult r = %r\nresult s = %s\nresult t = %t\n");
        ASSERT_NE(m, nullptr);
        const Func *f = m->funcs.data[0];
        int found = 0;
        for (int i = 0; i < f->body.len; i++) {
            const Op *o = ir_op_at(f, i);
            if (o->code != OP_reduce_sum || ir_shape(f, o->out[0])->rank != 2) continue;
            Text t;
            text_init(&t, m->arena);
            shape_print(&t, ir_shape(f, o->out[0]));
            EXPECT_STREQ(sums, text_str(&t)) << size;
            found++;
        }
        EXPECT_EQ(2, found) << size;
    }
}

// ---- losses and metrics on unusual rows -----------------------------------------------------------------------------

InterpTensor Tensor(const char *name, std::vector<int64_t> dims, std::vector<double> *data) {
    InterpTensor t = {};
    t.name = name;
    t.rank = static_cast<int>(dims.size());
    t.count = static_cast<int64_t>(data->size());
    std::copy(dims.begin(), dims.end(), t.dims);
    t.data = data->data();
    return t;
}

// At zeros, at ends of ranges, where exp overflows, and beyond numbers.
TEST_F(LowerTest, UnaryOpsMeanTheSameAtTheEdges) {
    std::vector<double> x = {0.0,  -0.0, 1,  -1,  0.5,     -0.5,     20,  20.5,   -20.5, 88,  -88, 800,
                             -800, 2,    -2, 1e9, -1e-300, INFINITY, NAN, -1e300, 1e-9,  -40, 3,   -INFINITY};
    std::vector<double> one(x.size(), 1.5);
    auto n = static_cast<int64_t>(x.size());
    std::vector<std::string> calls = {"clamp(%x; low = -0.5, high = 0.5)", "clamp(%x; low = 0.5)", "clamp(%x)",
                                      "clamp_grad(%d, %x; low = -0.5, high = 0.5)", "clamp_grad(%d, %x; high = 0.5)"};
    for (const PointwiseRow &row : pointwise::AllRows()) calls.push_back(row.Call(row.is_slope ? "%d, %x" : "%x"));
    for (const char *e : {"0.0", "1.0", "2.0", "3.0", "-1.0", "0.5", "-0.5", "1.7", "-2.0"}) {
        calls.push_back(std::string("pow(%x; e = ") + e + ")");
        calls.push_back(std::string("pow_grad(%d, %x; e = ") + e + ")");
    }
    for (const std::string &call : calls) {
        SCOPED_TRACE(call);
        std::string body = "input %x : f32[N]\ninput %d : f32[N]\n%r = " + call + " : f32[N]\nresult r = %r\n";
        std::vector<InterpTensor> given = {Tensor("x", {n}, &x), Tensor("d", {n}, &one)};
        Outcome want = Interpret(ReadFunc("simplify", body)->funcs.data[0], n, false, given);
        ExpectEqual(want, Interpret(Lower(body)->funcs.data[0], n, false, given), 1e-12);
    }
}

// In f32 arithmetic, where 1 + exp(x) is 1 for most negative x.
TEST_F(LowerTest, SoftplusKeepsItsDigitsFarBelowZero) {
    std::vector<double> x;
    for (double v = -80; v < 25; v += 0.37) x.push_back(static_cast<float>(v));
    std::string body = "input %x : f32[N]\n%r = softplus(%x) : f32[N]\nresult r = %r\n";
    auto n = static_cast<int64_t>(x.size());
    std::vector<double> y = Interpret(Lower(body)->funcs.data[0], n, true, {Tensor("x", {n}, &x)})["r"];
    for (size_t i = 0; i < x.size(); i++) {
        double want = std::log1p(std::exp(x[i]));
        EXPECT_NEAR(1.0, y[i] / want, 4e-7) << x[i];
    }
}

TEST_F(LowerTest, ALossWithoutCountedRowsIsZero) {
    Module *m = Lower("input %x : f32[N, 2]\ninput %t : i32[N]\ninput %g : f32\n%l = nll_loss(%x, %t) : f32\n"
                      "%d = nll_loss_grad(%g, %x, %t) : f32[N, 2]\nresult l = %l\nresult d = %d\n");
    std::vector<double> x = {-1, NAN, -INFINITY, -2}, t = {-100, -100}, g = {3};
    Outcome out =
        Interpret(m->funcs.data[0], 2, true, {Tensor("x", {2, 2}, &x), Tensor("t", {2}, &t), Tensor("g", {}, &g)});
    EXPECT_EQ(std::vector<double>{0}, out["l"]);
    EXPECT_EQ((std::vector<double>{0, 0, 0, 0}), out["d"]);
}

TEST_F(LowerTest, ForwardAndBackwardCountRowsOnce) {
    Module *m = Lower("input %x : f32[N, 2]\ninput %t : i32[N]\ninput %g : f32\n%l = nll_loss(%x, %t) : f32\n"
                      "%d = nll_loss_grad(%g, %x, %t) : f32[N, 2]\nresult l = %l\nresult d = %d\n");
    std::string ops = Ops(m->funcs.data[0]);
    int folds = 0;
    for (size_t at = 0; (at = ops.find("dims = (0)", at)) != std::string::npos; at++) folds++;
    EXPECT_EQ(2, folds) << ops; // the sum of losses and the count
}

TEST_F(LowerTest, AccuracyTakesTheFirstLargestAndDistrustsNan) {
    Module *m = Lower("input %x : f32[N, 3]\ninput %t : i32[N]\n%a = accuracy(%x, %t) : f32\nresult a = %a\n");
    std::vector<double> x = {1, 5, 5, /**/ 1, 5, 5, /**/ NAN, 1, 2, /**/ -INFINITY, -INFINITY, -INFINITY},
                        t = {1, 2, 2, 0};
    Outcome out = Interpret(m->funcs.data[0], 4, true, {Tensor("x", {4, 3}, &x), Tensor("t", {4}, &t)});
    EXPECT_EQ(0.5, out["a"][0]);
}

TEST_F(LowerTest, AllFiniteSeesEveryElementOfEveryOperand) {
    Module *m = Lower("input %x : f32[N, 2]\ninput %y : f16[3]\n%ok = all_finite(%x, %y) : bool\nresult ok = %ok\n");
    for (int bad = 0; bad < 5; bad++)
        for (double v : std::vector<double>{NAN, INFINITY, -INFINITY, 1.0}) {
            std::vector<double> x = {1, -2}, y = {3, 4, 65504};
            (bad < 2 ? x[static_cast<size_t>(bad)] : y[static_cast<size_t>(bad - 2)]) = v;
            Outcome out = Interpret(m->funcs.data[0], 1, true, {Tensor("x", {1, 2}, &x), Tensor("y", {3}, &y)});
            EXPECT_EQ(v == 1.0, out["ok"][0] == 1.0);
        }
}

// ---- the loss scale: bits as in amp_update_scale_cuda_kernel --------------------------------------------------------

struct Scaler {
    float scale;
    int32_t tracker, hit;
};

Scaler UpdateScale(Scaler s, bool ok, double growth, double backoff, int interval, double min, double max) {
    const float least = 0x1p-126f, most = 0x1p126f; // that a step can use
    const float low = std::fmax(static_cast<float>(min), least), high = std::fmin(static_cast<float>(max), most);
    Scaler next = {s.scale, 0, 0};
    if (!ok) {
        next.scale = std::fmax(static_cast<float>(static_cast<double>(s.scale) * backoff), low);
        next.hit = s.scale <= low;
        return next;
    }
    if (s.tracker + 1 != interval) {
        next.tracker = s.tracker + 1;
        return next;
    }
    float grown = static_cast<float>(static_cast<double>(s.scale) * growth);
    if (std::isfinite(grown)) next.scale = std::fmin(grown, high);
    return next;
}

bool IsStep(Outcome out, Scaler want) {
    return out["r"][0] == static_cast<double>(want.scale) && out["s"][0] == want.tracker && out["u"][0] == want.hit;
}

TEST_F(LowerTest, TheLossScaleMovesBitForBit) {
    struct Setting {
        double growth, backoff;
        int interval;
        double min, max;
        float init;
    };
    const Setting settings[] = {
        {2, 0.5, 3, 1, 16777216, 65536},      {2, 0.25, 2, 0, INFINITY, 4},   {1.5, 0.3, 1, 0.1, 1e6, 777.77f},
        {16, 0.5, 1, 0, INFINITY, 1e38f},     {2, 0.5, 2000, 1, 16777216, 8}, {1.0001, 0.999, 2, 1e-30, 1e30, 3e-30f},
        {1.5, 0.001, 3, 0, INFINITY, 1e-30f},
    };
    std::mt19937 rng(7);
    for (const Setting &s : settings) {
        Text t;
        text_init(&t, &arena_);
        text_puts(&t, "input %ok : bool\nstate %scale : f32\nstate %growth_tracker : i32\n%r, %s, %u = "
                      "update_scale(%scale, %growth_tracker, %ok; ");
        const double numbers[] = {s.growth, s.backoff, s.min, s.max};
        const char *names[] = {"growth", "backoff", "min", "max"};
        for (int i = 0; i < 4; i++) {
            text_printf(&t, "%s = ", names[i]);
            text_put_double(&t, numbers[i]);
            text_puts(&t, ", ");
        }
        text_printf(&t, "interval = %d) : f32, i32, i32\nresult r = %%r\nresult s = %%s\nresult u = %%u\n", s.interval);
        std::string text = FuncText("simplify", text_str(&t), kStates);
        Scaler now = {s.init, 0, 0};
        for (int round = 0; round < 17; round++) {
            Arena arena; // the interpreter leaves its values in the module's arena
            arena_init(&arena, nullptr);
            Module *m = ReadIn(&arena, text);
            ASSERT_TRUE(Run(m, STAGE_LOWER));
            for (int step = 0; step < 100; step++) {
                bool ok = rng() % 4 != 0;
                Scaler want = UpdateScale(now, ok, s.growth, s.backoff, s.interval, s.min, s.max);
                std::vector<double> o = {ok ? 1.0 : 0.0}, scale = {now.scale},
                                    tracker = {static_cast<double>(now.tracker)};
                Outcome out = Interpret(
                    m->funcs.data[0], 1, true,
                    {Tensor("ok", {}, &o), Tensor("scale", {}, &scale), Tensor("growth_tracker", {}, &tracker)});
                ASSERT_TRUE(IsStep(out, want)) << "from scale " << now.scale << ", ok " << ok;
                now = want;
            }
            arena_free(&arena);
        }
    }
}

// ---- whole steps ----------------------------------------------------------------------------------------------------

TEST_F(LowerTest, AnMlpTrainsTheSame) {
    for (const char *name : {"mlp_f16.optimizer.ir", "mlp_bf16.optimizer.ir", "mlp_f32.optimizer.ir"}) {
        SCOPED_TRACE(name);
        Module *graph = Read(Golden(name)), *core = Read(Golden(name));
        ASSERT_TRUE(Run(graph, STAGE_SIMPLIFY));
        ASSERT_TRUE(Run(core, STAGE_SIMPLIFY) && Run(core, STAGE_LOWER)) << Diagnostics();
        Compare(graph, core, false, 1e-12);
    }
}

} // namespace
