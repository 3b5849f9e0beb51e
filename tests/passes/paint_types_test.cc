// paint_types_test.cc: the pass paint: dtypes of forward and backward ops, casts, reasons, evaluation, wrong policies.
#include <ctime>

#include "tests/base/sanitizer.h"
#include "tests/passes/pass_test.h"

namespace {

class PaintTypesTest : public PassTest {
  protected:
    Module *Painted(const std::string &text, const std::string &policy = "tf-fp16") {
        policy_ = policy;
        return Run(Read(text), STAGE_PAINT);
    }

    // "f16" by path, of the ops of a function.
    static std::map<std::string, std::string> Types(const Module *m, const char *func) {
        std::map<std::string, std::string> types;
        const Func *f = ir_func_find(m, func);
        for (int i = 0; f && i < f->body.len; i++) {
            const Op *o = ir_op_at(f, i);
            if (o->path && o->n_out) types[o->path] = amp_dtype_name(ir_dtype(f, o->out[0]));
        }
        return types;
    }

    static int Casts(const Func *f, Dtype to) {
        int count = 0;
        for (int i = 0; i < f->body.len; i++)
            count += ir_op_at(f, i)->code == OP_cast && ir_dtype(f, ir_op_at(f, i)->out[0]) == to;
        return count;
    }
};

TEST_F(PaintTypesTest, AStepOfAnMlp) {
    const Module *m = Painted(File("tests/passes/mlp.ir"));
    const auto decisions = Decisions(m);
    EXPECT_EQ(decisions.at("fc1.linear"), "linear(f16, f16, f16) : f16 {allow, tf-fp16:9}");
    EXPECT_EQ(decisions.at("relu"),
              "relu(f16) : f16 {clear, tf-fp16:26, \"allow in pass 3: between fc1.linear and fc2.linear\"}");
    EXPECT_EQ(decisions.at("cross_entropy.log_softmax"), "log_softmax(f32) : f32 {deny, tf-fp16:20}");
    const auto types = Types(m, "train_step");
    EXPECT_EQ(types.at("relu.grad"), "f16");                      // between two gradients
    EXPECT_EQ(types.at("fc2.linear.grad.weight"), "f16");         // as MatMul
    EXPECT_EQ(types.at("cross_entropy.nll_loss.grad"), "f32");    // as the loss
    EXPECT_EQ(types.at("cross_entropy.log_softmax.grad"), "f32"); // by Sum
    const Func *f = ir_func_find(m, "train_step");
    for (int i = 0; i < f->results.len; i++)
        EXPECT_TRUE(f->results.data[i].kind != RESULT_GRADIENT || ir_dtype(f, f->results.data[i].value) == AMP_DT_F32)
            << f->results.data[i].name;
    // x, two weights and two biases, the gradient of the logits; the logits, and three gradients of parameters: the
    // gradient of the last bias is summed from what is f32
    EXPECT_EQ(Casts(f, AMP_DT_F16), 6);
    EXPECT_EQ(Casts(f, AMP_DT_F32), 4);
}

// Evaluation computes as the step does; what only inference needs is painted there.
TEST_F(PaintTypesTest, EvaluationHasTheTypesOfTheStep) {
    std::string text = File("tests/passes/mlp.ir");
    text.replace(text.find("  result logits"), 0,
                 "  %probs = softmax(%logits) : f32[N, 10] @probs\n"
                 "  %kept = relu(%probs) : f32[N, 10] @kept\n"
                 "  result probs = %kept\n");
    const Module *m = Painted(text);
    const auto step = Types(m, "train_step");
    for (const char *func : {"eval", "infer"}) {
        const auto types = Types(m, func);
        for (const char *path : {"fc1.linear", "relu", "fc2.linear"}) EXPECT_EQ(types.at(path), step.at(path)) << path;
    }
    EXPECT_EQ(Types(m, "infer").at("probs"), "f16");
    EXPECT_EQ(Decisions(m).at("probs"),
              "softmax(f16) : f16 {infer, tf-fp16:15, \"allow in pass 4: after fc2.linear\"}");
    EXPECT_EQ(Decisions(m).at("kept"), "relu(f16) : f16 {clear, tf-fp16:26, \"allow in pass 5: beside probs\"}");
}

const char kChain[] = "module \"t\" stage elaborate {\n}\nstate %w : f32[8, 8] param = zeros()\n"
                      "func forward {\n  input %x : f32[N, 8]\n  state %w : f32[8, 8]\n"
                      "  %e = exp(%x) : f32[N, 8] @e\n  %a = add(%e, %x) : f32[N, 8] @a\n"
                      "  %r = relu(%a) : f32[N, 8] @r\n  %b = mul(%r, %x) : f32[N, 8] @b\n"
                      "  %c = abs(%b) : f32[N, 8] @c\n  %h = matmul(%c, %w) : f32[N, 8] @h\n"
                      "  %s = sin(%h) : f32[N, 8] @s\n  result y = %s\n}\n";

TEST_F(PaintTypesTest, ReasonsNameThePassAndThePath) {
    const auto decisions = Decisions(Painted(kChain));
    EXPECT_EQ(decisions.at("e"), "exp(f32) : f32 {deny, tf-fp16:19}");
    EXPECT_EQ(decisions.at("a"), "add(f32, f32) : f32 {infer, tf-fp16:13, \"deny in pass 2: after e\"}");
    EXPECT_EQ(decisions.at("r"), "relu(f32) : f32 {clear, tf-fp16:26, \"deny in pass 2: after e over a\"}");
    EXPECT_EQ(decisions.at("b"), "mul(f32, f32) : f32 {infer, tf-fp16:13, \"deny in pass 2: after e over r, a\"}");
    EXPECT_EQ(decisions.at("c"), "abs(f16) : f16 {clear, tf-fp16:26, \"allow in pass 5: beside h\"}");
    EXPECT_EQ(decisions.at("s"), "sin(f32) : f32 {none, tf-fp16:32, \"reached by no pass\"}");
}

// `low` and f32 are allow and deny; a path names an op's gradients too.
TEST_F(PaintTypesTest, OverridesAreLists) {
    std::string text = kChain;
    text.replace(
        text.find("{\n}"), 3,
        "{\n  override op exp : clear at m.amp:3:1\n  override path \"h\" : f32 because \"mine\" at m.amp:4:1\n}");
    const auto decisions = Decisions(Painted(text));
    EXPECT_EQ(decisions.at("e"), "exp(f32) : f32 {clear, override m.amp:3:1, \"reached by no pass\"}");
    EXPECT_EQ(decisions.at("h"), "matmul(f32, f32) : f32 {deny, override m.amp:4:1, \"mine\"}");
}

// A layer's line is of its forward op: what adds up the gradients of a linear layer's operand is no product.
TEST_F(PaintTypesTest, AGradientGoesByItsOwnLineBeforeItsLayers) {
    std::string text = File("tests/passes/mlp.ir");
    text.replace(text.find("  %2 "), 0,
                 "  %e = exp(%h) : f32[N, 32] @e\n"
                 "  %t = linear(%e, %fc2.weight, %fc2.bias) : f32[N, 10] @t layer linear\n"
                 "  %both = add(%logits, %t) : f32[N, 10] @both\n");
    text.replace(text.find("log_softmax(%logits)"), 20, "log_softmax(%both)");
    const Module *m = Painted(text);
    const auto types = Types(m, "train_step");
    EXPECT_EQ(types.at("fc2.linear.grad.input"), "f16");
    EXPECT_EQ(types.at("fc2.linear.grad.input_1"), "f32"); // one of its terms is deny
    EXPECT_EQ(types.at("relu.grad"), "f32");
}

// Each result of an op is followed to its readers; a batch norm's statistics are f32 whatever it is.
TEST_F(PaintTypesTest, PaintPassesThroughEveryResult) {
    std::string text = File("tests/passes/mlp.ir");
    text.replace(text.find("  %logits = "), 0,
                 "  %b = linear(%x, %fc3.weight, %fc3.bias) : f32[N, 32] @fc3.linear layer linear\n"
                 "  %m = maximum(%h, %b) : f32[N, 32] @m\n");
    text.replace(text.find("linear(%h,"), 10, "linear(%m,");
    text.replace(text.find("func forward"), 0,
                 "state %fc3.weight : f32[32, 16] param = zeros()\nstate %fc3.bias : f32[32] param = zeros()\n");
    text.replace(text.find("  state %fc1.weight"), 0,
                 "  state %fc3.weight : f32[32, 16]\n  state %fc3.bias : f32[32]\n");
    const auto types = Types(Painted(text), "train_step");
    EXPECT_EQ(types.at("m.grad.a"), "f16");
    EXPECT_EQ(types.at("fc1.linear.grad.bias"), "f16"); // of the first result
    EXPECT_EQ(types.at("fc3.linear.grad.bias"), "f16"); // and of the second
}

// The loss scale, which f16 may not hold, begins the backward pass: the gradient of a loss reads it in f32.
TEST_F(PaintTypesTest, TheScaleOfTheLossIsNotCast) {
    const std::string mlp = File("tests/passes/mlp.ir");
    const size_t loss = mlp.find("  %2 "), accuracy = mlp.find("  %3 ");
    const std::string losses[] = {
        "  %loss = mse_loss(%logits, %k) : f32 @loss\n",
        "  %s = mul(%logits, %k) : f32[N, 10] @s\n  %loss = mean(%s; dims = (0, 1)) : f32 @loss\n",
        "  %s = mul(%logits, %k) : f32[N, 10] @s\n  %loss = sum(%s; dims = (0, 1)) : f32 @loss\n"};
    // TensorFlow divides what it spreads, and spreads what it sums
    const char *const types[] = {"f16", "f32", "f16"}, *const paths[] = {"loss.grad.a", "loss.grad", "loss.grad"};
    for (int i = 0; i < 3; i++) {
        const Module *m =
            Painted(mlp.substr(0, loss) + "  %k = relu(%logits) : f32[N, 10] @k\n" + losses[i] + mlp.substr(accuracy));
        const Func *f = ir_func_find(m, "train_step");
        for (int at = 0; at < f->body.len; at++) {
            const Op *o = ir_op_at(f, at);
            if (o->code != OP_cast) continue;
            EXPECT_NE(ir_def(f, o->in[0]) ? ir_def(f, o->in[0])->code : OP_NONE, OP_grad_seed) << losses[i];
        }
        EXPECT_EQ(Types(m, "train_step").at(paths[i]), types[i]) << losses[i];
    }
}

TEST_F(PaintTypesTest, TheTextSaysThatItIsStillToBePainted) {
    policy_ = "tf-fp16";
    const std::string before = Print(Run(Read(File("tests/passes/mlp.ir")), STAGE_AUTODIFF));
    EXPECT_NE(before.find("low f16 painted"), std::string::npos);
    EXPECT_EQ(Print(Run(Read(before), STAGE_PAINT)), Print(Run(Read(File("tests/passes/mlp.ir")), STAGE_PAINT)));
    diags_init(&diags_, &arena_);
    policy_ = "tf-bf16";
    EXPECT_EQ(TryRun(Read(before), STAGE_PAINT), AMP_BAD_SOURCE);
    EXPECT_EQ(Diagnostics(), "error: module mlp was prepared for policy tf-fp16, but policy tf-bf16 is given now\n");
    policy_ = "torch-fp16";
    EXPECT_EQ(Print(Run(Read(File("tests/passes/mlp.ir")), STAGE_PAINT)).find("painted"), std::string::npos);
}

// A chain of ops in turn.
std::string Chain(const std::vector<std::string> &ops, int count) {
    std::string text = "module \"t\" stage elaborate {\n}\nstate %w : f32[8, 8] param = zeros()\n"
                       "func forward {\n  input %v0 : f32[N, 8]\n  state %w : f32[8, 8]\n";
    for (int i = 0; i < count; i++) {
        std::string call = ops[i % ops.size()];
        while (call.find('@') != std::string::npos) call.replace(call.find('@'), 1, "v" + std::to_string(i));
        text += "  %v" + std::to_string(i + 1) + " = " + call + " : f32[N, 8] @o" + std::to_string(i) + "\n";
    }
    return text + "  result y = %v" + std::to_string(count) + "\n}\n";
}

TEST_F(PaintTypesTest, GraphsOfAHundredThousandOps) {
    const int count = 100000;
    std::vector<std::string> denied(count, "relu(%@)"); // one path, on which every op is told where it ends
    denied[0] = "matmul(%@, %w)", denied[1] = "exp(%@)", denied[count - 1] = "add(%@, %@)";
    const std::vector<std::vector<std::string>> graphs = {
        {"matmul(%@, %w)", "relu(%@)", "add(%@, %@)", "abs(%@)", "gelu(%@)", "exp(%@)", "neg(%@)"}, denied};
    for (const auto &ops : graphs)
        for (const auto &pass :
             {std::make_pair("torch-fp16", STAGE_AUTOCAST), std::make_pair("tf-fp16", STAGE_PAINT)}) {
            policy_ = pass.first;
            Module *m = Run(Read(Chain(ops, count)), static_cast<Stage>(pass.second - 1));
            PassOptions options = {};
            options.policy = pass.first;
            options.find_policy = FindPolicy;
            options.user = this;
            PassContext c = {m, &diags_, &options, nullptr};
            const std::clock_t start = std::clock(); // of the processor: other programs do not count
            EXPECT_TRUE(passes[pass.second].run(&c));
            const double took = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
            EXPECT_LT(took, amp_test_address_sanitizer ? 10.0 : 1.0) << pass.first;
        }
    EXPECT_EQ(Decisions(Run(Read(Chain(denied, 8)), STAGE_PAINT)).size(), 8u);
}

TEST_F(PaintTypesTest, ALongPathIsCutShort) {
    const auto decisions = Decisions(Painted(Chain(
        {"matmul(%@, %w)", "exp(%@)", "abs(%@)", "neg(%@)", "relu(%@)", "abs(%@)", "neg(%@)", "abs(%@)", "add(%@, %@)"},
        9)));
    EXPECT_NE(decisions.at("o8").find("\"deny in pass 2: after o1 over o7, o6, o5 and 3 more\""), std::string::npos)
        << decisions.at("o8");
    EXPECT_NE(decisions.at("o3").find("\"deny in pass 2: after o1 over o2\""), std::string::npos) << decisions.at("o3");
}

} // namespace
