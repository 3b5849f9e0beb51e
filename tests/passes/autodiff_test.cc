// Autodiff: gradients against central differences in double, dtypes and order against PyTorch, the three functions,
// what cannot be differentiated.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <set>

#include "base/json.h"
#include "ir/interp/interp.h"
#include "passes/training/gradient.h"
#include "tests/passes/pass_test.h"

namespace {

class AutodiffTest : public PassTest {
  protected:
    // Inputs %x f32[N, 4] and %t i32[N]; parameters %w f32[3, 4], %b f32[4] and %s f32.
    static std::string Model(const std::string &body) {
        return "module \"t\" stage elaborate {\n  train\n}\n"
               "state %w : f32[3, 4] param = zeros()\nstate %b : f32[4] param = zeros()\nstate %s : f32 param = "
               "zeros()\n"
               "func forward {\n  input %x : f32[N, 4]\n  input %t : i32[N]\n"
               "  state %w : f32[3, 4]\n  state %b : f32[4]\n  state %s : f32\n" +
               body + "  result loss = %loss\n}\n";
    }

    // Adds every parameter to what the body makes as %y : f32[N, 4], so that all reach the loss, with weights that
    // differ by element.
    static std::string Loss(const std::string &body) {
        return Model(
            body +
            "  %q1 = mul(%y, %x) : f32[N, 4]\n  %q2 = sum(%q1) : f32\n  %q3 = sum(%w) : f32\n  %q4 = sum(%b) : f32\n"
            "  %q5 = add(%q3, %q4) : f32\n  %q6 = add(%q5, %s) : f32\n  %loss = add(%q2, %q6) : f32\n");
    }

    static constexpr int64_t kBatch = 5;

    std::vector<InterpTensor> Numbers(const Func *f) {
        std::vector<InterpTensor> given;
        std::mt19937 rng(7);
        for (int i = 0; i < f->inputs.len; i++) {
            const Value *v = ir_value(f, f->inputs.data[i]);
            InterpTensor t = interp_tensor(&arena_, v->name, &v->shape, {kBatch, 1});
            for (int64_t j = 0; j < t.count; j++)
                t.data[j] = v->dtype == AMP_DT_I32 ? (j == 2 ? -100 : double(j % 4))
                                                   : std::uniform_real_distribution<double>(0.4, 1.6)(rng);
            given.push_back(t);
        }
        return given;
    }

    std::map<std::string, std::vector<double>> Evaluate(const Func *f, std::vector<InterpTensor> given) {
        InterpOptions exact = {};
        std::vector<InterpTensor> results(size_t(f->results.len) + 1);
        EXPECT_EQ(interp_run(f, {kBatch, 1}, &exact, given.data(), int(given.size()), results.data(), &error_), AMP_OK)
            << error_.message;
        std::map<std::string, std::vector<double>> out;
        for (int i = 0; i < f->results.len; i++)
            out[f->results.data[i].name] = {results[i].data, results[i].data + results[i].count};
        return out;
    }

    void CheckGradients(const std::string &text) {
        const Func *f = ir_func_find(Run(Read(text), STAGE_AUTODIFF), "train_step");
        ASSERT_NE(f, nullptr) << text;
        std::vector<InterpTensor> given = Numbers(f);
        auto gradients = Evaluate(f, given);
        const double step = 1e-5;
        for (InterpTensor &t : given) {
            auto g = gradients.find("grad." + std::string(t.name));
            if (g == gradients.end()) continue;
            for (int64_t j = 0; j < t.count; j++) {
                double at = t.data[j];
                t.data[j] = at + step;
                double above = Evaluate(f, given)["loss"][0];
                t.data[j] = at - step;
                double below = Evaluate(f, given)["loss"][0];
                t.data[j] = at;
                double slope = (above - below) / (2 * step);
                EXPECT_NEAR(g->second[size_t(j)], slope, 1e-6 * (1 + std::fabs(slope)))
                    << t.name << "[" << j << "] of\n"
                    << text;
            }
        }
    }

    std::string ErrorsOf(const std::string &text) {
        diags_init(&diags_, &arena_);
        EXPECT_EQ(TryRun(Read(text), STAGE_AUTODIFF), AMP_BAD_SOURCE) << text;
        return Diagnostics();
    }
};

// ---- values ---------------------------------------------------------------------------------------------------------

TEST_F(AutodiffTest, GradientsAreTheSlopes) {
    const char *const bodies[] = {
        "%h = linear(%x, %w) : f32[N, 3]\n%y = linear(%h, %w, %b; transposed = true) : f32[N, 4]\n",
        "%h = matmul(%x, %w; tb = true) : f32[N, 3]\n%y = matmul(%h, %w) : f32[N, 4]\n",
        "%h = matmul(%w, %x; tb = true) : f32[3, N]\n%y = matmul(%h, %w; ta = true) : f32[N, 4]\n",
        "%h = matmul(%x, %w; tb = true) : f32[N, 3]\n%g = matmul(%w, %h; ta = true, tb = true) : f32[4, N]\n"
        "%y0 = matmul(%g, %g; tb = true) : f32[4, 4]\n%y = matmul(%x, %y0) : f32[N, 4]\n",
        "%h = sub(%x, %b) : f32[N, 4]\n%y = relu(%h) : f32[N, 4]\n",
        "%h = mul(%x, %b) : f32[N, 4]\n%y = gelu(%h) : f32[N, 4]\n",
        "%h = mul(%x, %b) : f32[N, 4]\n%y = gelu(%h; approximate = tanh) : f32[N, 4]\n",
        "%h = mul(%b, %x) : f32[N, 4]\n%y = sigmoid(%h) : f32[N, 4]\n",
        "%h = mul(%x, %s) : f32[N, 4]\n%y = tanh(%h) : f32[N, 4]\n",
        "%h = div(%x, %b) : f32[N, 4]\n%y = exp(%h) : f32[N, 4]\n",
        "%h = div(%s, %x) : f32[N, 4]\n%y = log(%h) : f32[N, 4]\n",
        "%h = div(%b, %s) : f32[4]\n%g = sqrt(%h) : f32[4]\n%y = mul(%x, %g) : f32[N, 4]\n",
        "%h = neg(%b) : f32[4]\n%g = sub(%s, %h) : f32[4]\n%y = sub(%g, %x) : f32[N, 4]\n",
        "%h = mul(%x, %b) : f32[N, 4]\n%g = sum(%h; dims = (1), keep = true) : f32[N, 1]\n%y = mul(%g, %h) : f32[N, "
        "4]\n",
        "%h = mul(%x, %b) : f32[N, 4]\n%g = sum(%h; dims = (0)) : f32[4]\n%y = mul(%g, %x) : f32[N, 4]\n",
        "%h = mul(%x, %b) : f32[N, 4]\n%g = mean(%h) : f32\n%y = mul(%x, %g) : f32[N, 4]\n",
        "%h = mul(%x, %b) : f32[N, 4]\n%g = mean(%h; dims = (0), keep = true) : f32[1, 4]\n%y = mul(%h, %g) : f32[N, "
        "4]\n",
        "%h = mul(%x, %b) : f32[N, 4]\n%y = softmax(%h) : f32[N, 4]\n",
        "%h = mul(%x, %b) : f32[N, 4]\n%y = log_softmax(%h) : f32[N, 4]\n",
        "%h = mul(%x, %b) : f32[N, 4]\n%y = dropout(%h; p = 0.5, key = \"drop\") : f32[N, 4] @drop\n",
        "%h = mul(%x, %b) : f32[N, 4]\n%g = dropout(%h; p = 0.3) : f32[N, 4] @drop\n%y = dropout(%g; p = 0.3) : f32[N, "
        "4] @drop_1\n",
        "%c = const(; value = 0.7) : f32\n%h = mul(%b, %c) : f32[4]\n%g = add(%h, %h) : f32[4]\n%y = add(%g, %x) : "
        "f32[N, 4]\n", // read twice
        "%h = mul(%x, %b) : f32[N, 4]\n%y = cast(%h) : f32[N, 4]\n",
    };
    for (const char *body : bodies) CheckGradients(Loss(body));
}

TEST_F(AutodiffTest, LossesHaveTheirSlopes) {
    for (const char *attrs : {"", "; ignore = 1", "; label_smoothing = 0.2"}) {
        std::string body = "%h = mul(%x, %b) : f32[N, 4]\n%l = log_softmax(%h) : f32[N, 4]\n%n = nll_loss(%l, %t" +
                           std::string(attrs) +
                           ") : f32\n%q = sum(%w) : f32\n%p = mul(%q, %s) : f32\n%loss = add(%n, %p) : f32\n";
        CheckGradients(Model(body));
    }
}

TEST_F(AutodiffTest, MixedDtypesHaveTheSameSlopes) { // without rounding, casts change nothing
    for (const char *precision : {"fp16", "bf16", "tf32"}) {
        precision_ = precision;
        CheckGradients(Loss("%h = linear(%x, %w) : f32[N, 3]\n%g = softmax(%h) : f32[N, 3]\n%y = linear(%g, %w, %b; "
                            "transposed = true) : f32[N, 4]\n"));
        CheckGradients(Loss("%h = linear(%x, %w) : f32[N, 3]\n%g = sum(%h; dims = (1), keep = true) : f32[N, 1]\n%y = "
                            "mul(%x, %g) : f32[N, 4]\n"));
    }
}

TEST_F(AutodiffTest, ClassesThatOnlyReturnF32HaveTheSameSlopes) {
    policies_["p"] = "policy \"p\"\nalgorithm eager\nlow = f16\nop linear lower\nop * f32_out\n";
    policy_ = "p";
    for (const char *op : {"relu", "gelu", "sigmoid", "tanh", "softmax", "log_softmax", "exp", "log", "sqrt", "neg"})
        CheckGradients(Loss("%h = linear(%x, %w) : f32[N, 3]\n%g = " + std::string(op) +
                            "(%h) : f32[N, 3]\n%y = linear(%g, %w, %b; transposed = true) : f32[N, 4]\n"));
    policies_["p"] = "policy \"p\"\nalgorithm eager\nlow = f16\nop relu lower\nop * f32_out\n";
    CheckGradients(Loss("%z = mul(%x, %b) : f32[N, 4]\n%h = relu(%z) : f32[N, 4]\n%y = mul(%h, %h) : f32[N, 4]\n"));
}

TEST_F(AutodiffTest, EveryOpThatUsersWriteHasAGradientOrNone) {
    for (int code = OP_NONE + 1; code < OP_COUNT; code++) {
        const int flags = ir_op_info[code].flags;
        const bool has_one = gradient_of(static_cast<Opcode>(code)) != nullptr;
        const bool added = code == OP_cast || code == OP_sum_ranks || code == OP_batch_norm_eval; // by passes
        EXPECT_EQ(has_one, (flags & WRITTEN && !(flags & NO_GRADIENT)) || added) << ir_op_info[code].name;
        EXPECT_LE(std::count_if(gradient_tables, gradient_tables + GRADIENT_TABLES,
                                [&](const Gradient *table) { return table[code].make != nullptr; }),
                  1)
            << ir_op_info[code].name;
    }
}

// ---- dtypes ---------------------------------------------------------------------------------------------------------

// The gradient of a value has the value's dtype; of a tf32 value it is f32.
TEST_F(AutodiffTest, GradientsOfParametersAreF32) {
    for (const char *precision : {"fp16", "bf16", "tf32", "fp32"}) {
        precision_ = precision;
        const Func *f = ir_func_find(Run(ReadFile("tests/passes/mlp.ir"), STAGE_AUTODIFF), "train_step");
        int gradients = 0;
        for (int i = 0; i < f->results.len; i++) {
            if (strncmp(f->results.data[i].name, "grad.", 5)) continue;
            EXPECT_EQ(ir_dtype(f, f->results.data[i].value), AMP_DT_F32);
            gradients++;
        }
        EXPECT_EQ(gradients, 4);
    }
}

TEST_F(AutodiffTest, EveryOpSaysWhy) {
    const Func *f = ir_func_find(Run(ReadFile("tests/passes/mlp.ir"), STAGE_AUTODIFF), "train_step");
    std::map<std::string, std::string> why;
    for (int i = 0; i < f->body.len; i++) {
        const Op *o = ir_op_at(f, i);
        ASSERT_NE(o->reason, nullptr) << o->path;
        Text t;
        text_init(&t, &arena_);
        ir_print_reason(&t, o->reason);
        why[o->path] += text_str(&t);
    }
    EXPECT_EQ(why["fc1.linear.grad.weight"], "{gradient, of fc1.linear}");
    EXPECT_EQ(why["fc1.linear.cast_1.grad"], "{gradient, of fc1.linear}");
    EXPECT_EQ(why["relu.grad"], "{gradient, of relu}");
    EXPECT_EQ(why["fc1.linear.cast"], "{lower, min-cast:7, for fc1.linear}");
    EXPECT_EQ(why.size(), size_t(f->body.len)) << "paths are unique";
}

// ---- PyTorch --------------------------------------------------------------------------------------------------------

// "linear(f16, f16, f16) : f16", one for each op and cast in order.
using Steps = std::vector<std::string>;

class ParityTest : public AutodiffTest {
  protected:
    ParityTest() {
        std::string text = File("tests/parity/aten_ops.json");
        EXPECT_EQ(amp_json_parse(text.data(), text.size(), nullptr, nullptr, &table_, &error_), AMP_OK)
            << error_.message;
    }
    ~ParityTest() override { amp_json_free(table_); }

    bool IsListed(const char *list, const std::string &name) {
        const amp_json *names = amp_json_get(amp_json_root(table_), list);
        for (size_t i = 0; i < names->array.count; i++)
            if (name == names->array.items[i].string.data) return true;
        return false;
    }

    static std::string Type(const std::string &dtype) {
        return dtype == "i64" || dtype == "i32" ? "int" : dtype;
    } // class indices

    static const amp_json *Item(const amp_json *array, size_t i) { return &array->array.items[i]; }

    static std::string Step(const amp_json *entry, const amp_json *in, const amp_json *out, size_t result) {
        const amp_json *operands = amp_json_get(entry, "operands");
        std::string reads;
        for (size_t i = 0; i < operands->array.count; i++) {
            size_t at = size_t(Item(operands, i)->number.integer);
            if (at < in->array.count) reads += (i ? ", " : "") + Type(Item(in, at)->string.data);
        }
        return std::string(amp_json_get(entry, "op")->string.data) + "(" + reads +
               ") : " + Type(Item(out, result)->string.data);
    }

    // What a line of the oracle is in our ops; nothing for views, running statistics and the end.
    Steps TorchSteps(const amp_json *row) {
        std::string name = amp_json_get(row, "op")->string.data;
        const amp_json *entry = amp_json_get(amp_json_get(amp_json_root(table_), "ops"), name.c_str());
        const amp_json *in = amp_json_get(row, "in"), *out = amp_json_get(row, "out");
        if (IsListed("views", name) || IsListed("no_tensor_op", name) || name == "oracle.result" ||
            amp_json_get(row, "inplace"))
            return {};
        if (!entry) return {"no entry for " + name};
        if (entry->kind != AMP_JSON_ARRAY) return {Step(entry, in, out, 0)};
        Steps parts;
        const amp_json *mask = amp_json_get(amp_json_get(row, "attrs"), "output_mask");
        for (size_t i = 0; i < entry->array.count; i++)
            if (Item(mask, i)->boolean) parts.push_back(Step(Item(entry, i), in, out, parts.size()));
        return parts;
    }

    Steps Torch(const std::string &oracle) {
        Steps steps;
        std::istringstream lines(File("tests/parity/oracle/" + oracle));
        for (std::string line; std::getline(lines, line);) {
            amp_json_document *row = nullptr;
            EXPECT_EQ(amp_json_parse(line.data(), line.size(), nullptr, nullptr, &row, &error_), AMP_OK)
                << error_.message;
            for (const std::string &step : TorchSteps(amp_json_root(row))) steps.push_back(step);
            amp_json_free(row);
        }
        return steps;
    }

    // Ops that the loss and the gradients are computed from: no metrics, no running statistics.
    static std::set<uint32_t> Needed(const Func *f) {
        std::set<uint32_t> values;
        for (int i = 0; i < f->results.len; i++) {
            std::string name = f->results.data[i].name;
            if (name == "loss" || name.rfind("grad.", 0) == 0) values.insert(f->results.data[i].value.id);
        }
        for (int i = f->body.len - 1; i >= 0; i--) {
            const Op *o = ir_op_at(f, i);
            bool needed = false;
            for (int r = 0; r < o->n_out; r++) needed = needed || values.count(o->out[r].id);
            for (int j = 0; needed && j < o->n_in; j++) values.insert(o->in[j].id);
        }
        return values;
    }

    Steps Ours(const Module *m) {
        Steps steps;
        const Func *f = ir_func_find(m, "train_step");
        std::set<uint32_t> needed = Needed(f);
        for (int i = 0; i < f->body.len; i++) {
            const Op *o = ir_op_at(f, i);
            std::string reads, name = ir_op_info[o->code].name;
            bool counts = false;
            for (int r = 0; r < o->n_out; r++) counts = counts || needed.count(o->out[r].id);
            if (!counts || IsListed("ours_only", name) || IsListed("our_views", name)) continue;
            for (int j = 0; j < o->n_in; j++) reads += (j ? ", " : "") + Type(amp_dtype_name(ir_dtype(f, o->in[j])));
            steps.push_back(name + "(" + reads + ") : " + Type(amp_dtype_name(ir_dtype(f, o->out[0]))));
        }
        return steps;
    }

    Steps OursAt(const char *policy, const std::string &model = "mlp") {
        policy_ = policy;
        return Ours(Run(ReadFile("tests/passes/" + model + ".ir"), STAGE_AUTODIFF));
    }

    // tests/parity/compare_autocast.py: which values each op reads, and that every op says why.
    int Compare(const Module *m, const std::string &oracle) {
        std::string dump = testing::TempDir() + "/autodiff.ir";
        std::ofstream(dump) << Print(m);
        std::string command = "python3 tests/parity/compare_autocast.py " + dump + " tests/parity/oracle/" + oracle +
                              " > " + dump + ".out";
        int status = std::system(command.c_str());
        return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    }

    amp_json_document *table_ = nullptr;
};

TEST_F(ParityTest, EveryDecisionAndCastComesInPyTorchsOrder) {
    EXPECT_EQ(OursAt("torch-fp16"), Torch("torch_graph_mlp_f16.jsonl"));
    EXPECT_EQ(OursAt("torch-bf16"), Torch("torch_graph_mlp_bf16.jsonl"));
    EXPECT_EQ(OursAt("torch-fp16").size(), 25u);
    EXPECT_NE(OursAt("torch-bf16"), Torch("torch_graph_mlp_f16.jsonl"));
    EXPECT_NE(OursAt("fp32"), Torch("torch_graph_mlp_f16.jsonl"));
}

TEST_F(ParityTest, SoWithConvolutionsAndBatchNorm) {
    EXPECT_EQ(OursAt("torch-fp16", "cnn_16"), Torch("torch_graph_cnn_f16.jsonl"));
    EXPECT_EQ(OursAt("torch-bf16", "cnn_16"), Torch("torch_graph_cnn_bf16.jsonl"));
    EXPECT_EQ(OursAt("torch-fp16", "cnn_16").size(), 40u);
    EXPECT_NE(OursAt("fp32", "cnn_16"), Torch("torch_graph_cnn_f16.jsonl"));
}

TEST_F(ParityTest, EveryOpReadsWhatPyTorchsReads) {
    const std::string models[][2] = {{"mlp", "mlp"}, {"cnn_16", "cnn"}}; // ours, the oracle's
    for (auto &model : models)
        for (std::string low : {"f16", "bf16"}) {
            policy_ = low == "f16" ? "torch-fp16" : "torch-bf16";
            EXPECT_EQ(Compare(Run(ReadFile("tests/passes/" + model[0] + ".ir"), STAGE_AUTODIFF),
                              "torch_graph_" + model[1] + "_" + low + ".jsonl"),
                      0);
        }
}

// Planted: each decision of the model changed in turn, by an override.
TEST_F(ParityTest, AChangedDecisionIsSeen) {
    policy_ = "torch-fp16";
    Steps torch = Torch("torch_graph_mlp_f16.jsonl");
    EXPECT_EQ(Ours(Run(ReadFile("tests/passes/mlp.ir"), STAGE_AUTODIFF)), torch);
    const char *const overrides[] = {"path fc1.linear : f32",
                                     "path fc2.linear : f32",
                                     "op relu : f32",
                                     "op cross_entropy.log_softmax : f32",
                                     "op cross_entropy.log_softmax : f32_out",
                                     "op nll_loss : lower"};
    for (const char *line : overrides) {
        std::string text = File("tests/passes/mlp.ir");
        text.replace(text.find("  train\n"), 8, std::string("  override ") + line + " at mlp.amp:3:5\n  train\n");
        Module *m = Run(Read(text), STAGE_AUTODIFF);
        EXPECT_NE(Ours(m), torch) << line;
        EXPECT_EQ(Compare(m, "torch_graph_mlp_f16.jsonl"), 1) << line;
    }
}

// ---- the functions --------------------------------------------------------------------------------------------------

std::string Names(const Func *f) {
    std::string names;
    for (int i = 0; i < f->inputs.len; i++) names += std::string(i ? " " : "") + ir_value(f, f->inputs.data[i])->name;
    names += " ->";
    for (int i = 0; i < f->results.len; i++) names += std::string(" ") + f->results.data[i].name;
    return names;
}

TEST_F(AutodiffTest, ForwardBecomesThreeFunctions) {
    Module *m = Run(ReadFile("tests/passes/mlp.ir"), STAGE_AUTODIFF);
    EXPECT_EQ(ir_func_find(m, "forward"), nullptr);
    EXPECT_EQ(Names(ir_func_find(m, "train_step")),
              "x targets fc1.weight fc1.bias fc2.weight fc2.bias -> loss metric.acc grad.fc1.weight "
              "grad.fc1.bias grad.fc2.weight grad.fc2.bias");
    EXPECT_EQ(Names(ir_func_find(m, "eval")),
              "x targets fc1.weight fc1.bias fc2.weight fc2.bias -> logits loss metric.acc count.loss");
    EXPECT_EQ(Names(ir_func_find(m, "infer")), "x fc1.weight fc1.bias fc2.weight fc2.bias -> logits");
}

TEST_F(AutodiffTest, WithoutTrainThereIsOnlyInference) {
    Module *m = Run(Read("module \"t\" stage elaborate {\n}\nfunc forward {\ninput %x : f32[N]\n%y = relu(%x) : f32[N] "
                         "@relu\nresult y = %y\n}\n"),
                    STAGE_OPTIMIZER);
    ASSERT_EQ(m->funcs.len, 1);
    EXPECT_STREQ(m->funcs.data[0]->name, "infer");
    EXPECT_EQ(m->states.len, 0);
}

int Count(const Func *f, Opcode code) {
    int n = 0;
    for (int i = 0; i < f->body.len; i++) n += ir_op_at(f, i)->code == code;
    return n;
}

TEST_F(AutodiffTest, DropoutDropsInTrainingOnly) {
    Module *m = Run(Read(Loss("%h = mul(%x, %b) : f32[N, 4] @mul\n%y = dropout(%h; p = 0.25) : f32[N, 4] @drop\n")),
                    STAGE_AUTODIFF);
    const Func *f = ir_func_find(m, "train_step");
    EXPECT_EQ(Count(f, OP_dropout), 2);
    EXPECT_EQ(Count(ir_func_find(m, "eval"), OP_dropout), 0);
    for (int i = 0; i < f->body.len; i++) {
        const Op *o = ir_op_at(f, i);
        if (o->code != OP_dropout || strcmp(o->path, "drop.grad")) continue;
        EXPECT_EQ(ir_attr(o, "p")->f, 0.25);
        EXPECT_STREQ(ir_attr(o, "key")->s, "drop"); // the forward op's path is its key
    }
}

// Statistics of the batch in training, running ones elsewhere; what an update writes is computed in training alone.
TEST_F(AutodiffTest, BatchNormUsesTheBatchInTrainingOnly) {
    Module *m = Run(ReadFile("tests/passes/cnn_16.ir"), STAGE_AUTODIFF);
    const Func *step = ir_func_find(m, "train_step");
    EXPECT_EQ(Count(step, OP_batch_norm), 2);
    EXPECT_EQ(Count(step, OP_increment), 2);
    EXPECT_NE(Names(step).find(" update.bn1.running_mean update.bn1.running_var update.bn1.num_batches_tracked "),
              std::string::npos)
        << Names(step);
    for (const char *name : {"eval", "infer"}) {
        const Func *f = ir_func_find(m, name);
        EXPECT_EQ(Count(f, OP_batch_norm), 0);
        EXPECT_EQ(Count(f, OP_batch_norm_eval), 2);
        EXPECT_EQ(Count(f, OP_increment), 0);
        EXPECT_EQ(Names(f).find("update."), std::string::npos) << Names(f);
        EXPECT_EQ(Names(f).find("num_batches_tracked"), std::string::npos) << Names(f);
    }
}

// A frozen one uses the running ones in training too, and its gradient takes them as numbers.
TEST_F(AutodiffTest, FrozenBatchNormUsesRunningStatistics) {
    std::string text = File("tests/passes/cnn_16.ir");
    const size_t call = text.find("= batch_norm("), end = text.find(")", call);
    text.insert(end, text.rfind(";", end) > call ? ", frozen = true" : "; frozen = true");
    const Func *step = ir_func_find(Run(Read(text), STAGE_AUTODIFF), "train_step");
    EXPECT_EQ(Count(step, OP_batch_norm_eval), 1);
    EXPECT_EQ(Count(step, OP_batch_norm_eval_grad), 1);
    EXPECT_EQ(Count(step, OP_batch_norm_grad), 1);
}

// Its own statistics are still the batch's where evaluation reads them.
TEST_F(AutodiffTest, StatisticsOfTheBatchAreLeftWhereTheyAreRead) {
    const std::string head = "module \"t\" stage elaborate {\n}\nstate %w : f32[3] param = ones()\nfunc forward {\n"
                             "input %x : f32[N, 3]\nstate %w : f32[3]\n%y, %m, %v, %r = batch_norm(%x, %w, %w, %w, %w) "
                             ": f32[N, 3], f32[3], f32[3], f32[3] @bn\n";
    const Func *f = ir_func_find(Run(Read(head + "result y = %y\nresult m = %m\n}\n"), STAGE_AUTODIFF), "infer");
    EXPECT_EQ(Count(f, OP_batch_norm), 1);
    EXPECT_EQ(Count(f, OP_batch_norm_eval), 1);
    EXPECT_EQ(ir_def(f, f->results.data[0].value)->code, OP_batch_norm_eval);
}

const char kTwoBlocks[] = "module \"t\" stage elaborate {\n  train for \"g.*\" loss loss.0\n  optimizer sgd(lr = 0.1)\n"
                          "  group \"g.frozen\" frozen\n  train for \"d.*\" loss loss.1\n  optimizer sgd(lr = 0.2)\n}\n"
                          "state %g.w : f32[4] param = ones()\nstate %g.frozen : f32[4] param = ones()\n"
                          "state %d.w : f32[4] param = ones()\nfunc forward {\n  input %x : f32[N, 4]\n"
                          "  state %g.w : f32[4]\n  state %g.frozen : f32[4]\n  state %d.w : f32[4]\n"
                          "  %a = mul(%x, %g.w) : f32[N, 4] @a\n  %b = mul(%a, %d.w) : f32[N, 4] @b\n"
                          "  %c = mul(%b, %g.frozen) : f32[N, 4] @c\n"
                          "  %l0 = mean(%c) : f32 @l0\n  %e = exp(%c) : f32[N, 4] @e\n  %l1 = mean(%e) : f32 @l1\n"
                          "  %l = add(%l0, %l1) : f32 @l\n  result y = %c\n  result loss = %l\n  result loss.0 = %l0\n"
                          "  result loss.1 = %l1\n}\n";

TEST_F(AutodiffTest, EachTrainBlockDifferentiatesItsOwnLoss) {
    const Func *f = ir_func_find(Run(Read(kTwoBlocks), STAGE_AUTODIFF), "train_step");
    EXPECT_EQ(Names(f), "x g.w g.frozen d.w -> loss loss.0 loss.1 grad.g.w grad.d.w");
    EXPECT_EQ(Count(f, OP_grad_seed), 2);
    std::set<std::string> paths;
    for (int i = 0; i < f->body.len; i++) paths.insert(ir_op_at(f, i)->path);
    EXPECT_EQ(paths.size(), size_t(f->body.len)) << "paths are unique";
    EXPECT_EQ(paths.count("b.grad.0.a") + paths.count("b.grad.1.b"), 2u);
    EXPECT_EQ(paths.count("b.grad.1.a"), 0u) << "the second block does not train what is below it";

    std::vector<InterpTensor> given = Numbers(f);
    auto gradients = Evaluate(f, given);
    const double step = 1e-6;
    const char *const trained[][2] = {{"g.w", "loss.0"}, {"d.w", "loss.1"}};
    for (InterpTensor &t : given)
        for (auto &block : trained) {
            if (strcmp(t.name, block[0])) continue;
            for (int64_t j = 0; j < t.count; j++) {
                t.data[j] += step;
                double above = Evaluate(f, given)[block[1]][0];
                t.data[j] -= 2 * step;
                double below = Evaluate(f, given)[block[1]][0];
                t.data[j] += step;
                EXPECT_NEAR(gradients["grad." + std::string(t.name)][size_t(j)], (above - below) / (2 * step), 1e-6);
            }
        }
}

TEST_F(AutodiffTest, BlocksThatTrainTheSameAreAnError) {
    std::string text = kTwoBlocks;
    text.replace(text.find("for \"d.*\""), 9, "for \"*.w\"");
    text.replace(text.find("%g.w : f32[4] param = ones()"), 28, "%g.w : f32[4] param = ones() from m.amp:3:9");
    EXPECT_EQ(ErrorsOf(text), "error: m.amp:3:9: g.w is trained by two train blocks\n");
}

// Evaluation in f32 is another form of the same model: no casts, the same values where nothing is rounded.
TEST_F(AutodiffTest, EvaluationInF32HasNoCasts) {
    std::string text = File("tests/passes/cnn_16.ir");
    text.replace(text.find("  precision fp16\n"), 17, "  precision fp16\n  eval_precision fp32\n");
    Module *m = Run(Read(text), STAGE_AUTODIFF);
    ASSERT_EQ(m->funcs.len, 5);
    for (const char *name : {"eval", "infer"}) {
        const Func *low = ir_func_find(m, name), *f = ir_func_find(m, (std::string(name) + "_fp32").c_str());
        ASSERT_NE(f, nullptr);
        EXPECT_EQ(Names(f), Names(low));
        EXPECT_EQ(Count(f, OP_cast), 0);
        EXPECT_GT(Count(low, OP_cast), 0);
        EXPECT_EQ(Count(f, OP_batch_norm_eval), 2);
        for (int i = 0; i < f->body.len; i++) {
            EXPECT_NE(ir_op_at(f, i)->reason, nullptr);
            EXPECT_NE(ir_dtype(f, ir_op_at(f, i)->out[0]), AMP_DT_F16);
        }
        std::vector<InterpTensor> given = Numbers(low);
        auto rounded = Evaluate(low, given), exact = Evaluate(f, given);
        for (const auto &result : exact)
            for (size_t j = 0; j < result.second.size(); j++)
                EXPECT_DOUBLE_EQ(result.second[j], rounded[result.first][j]) << name << " " << result.first;
    }
    EXPECT_EQ(Decisions(m).at("conv1.conv2d"), "conv2d(f16, f16, f16) : f16 {lower, min-cast:7}");
    EXPECT_EQ(ir_func_find(Run(ReadFile("tests/passes/cnn_16.ir"), STAGE_AUTODIFF), "eval_fp32"), nullptr);
}

// An f16 input is read in f32 there.
TEST_F(AutodiffTest, EvaluationInF32WidensItsInputs) {
    precision_ = "fp16";
    const Func *f = ir_func_find(
        Run(Read("module \"t\" stage elaborate {\n  eval_precision fp32\n}\nstate %w : f32[3, 4] param = ones()\nfunc "
                 "forward {\n  input %x : f16[N, 4]\n  state %w : f32[3, 4]\n  %y = linear(%x, %w) : f32[N, 3] @fc\n"
                 "  result y = %y\n}\n"),
            STAGE_AUTODIFF),
        "infer_fp32");
    ASSERT_NE(f, nullptr);
    EXPECT_EQ(Count(f, OP_cast), 1);
    EXPECT_EQ(ir_dtype(f, f->results.data[0].value), AMP_DT_F32);
}

TEST_F(AutodiffTest, WhatIsReadTwiceIsAddedInItsDtype) {
    precision_ = "fp16";
    const Func *f = ir_func_find(Run(Read(Loss("%h = linear(%x, %w) : f32[N, 3] @first\n%y = linear(%h, %w, %b; "
                                               "transposed = true) : f32[N, 4] @second\n")),
                                     STAGE_AUTODIFF),
                                 "train_step");
    int sums = 0;
    for (int i = 0; i < f->body.len; i++) { // the two products' gradients of %w.f16 meet in f16, then there is one cast
        const Op *o = ir_op_at(f, i);
        if (o->code != OP_add || ir_dtype(f, o->out[0]) != AMP_DT_F16) continue;
        EXPECT_STREQ(o->path, "first.grad.weight_1");
        EXPECT_EQ(ir_def(f, o->in[0])->code, OP_matmul);
        EXPECT_EQ(ir_def(f, o->in[1])->code, OP_matmul);
        sums++;
    }
    EXPECT_EQ(sums, 1);
}

// ---- errors ---------------------------------------------------------------------------------------------------------

TEST_F(AutodiffTest, AParameterThatDoesNotReachTheLossIsAnError) {
    EXPECT_EQ(ErrorsOf("module \"t\" stage elaborate {\ntrain\n}\nstate %w : f32[4] param = zeros() from m.amp:3:9\n"
                       "state %v : f32[4] param = zeros() from m.amp:4:9\nfunc forward {\nstate %w : f32[4]\n%loss = "
                       "sum(%w) : f32\n"
                       "result loss = %loss\n}\n"),
              "error: m.amp:4:9: v does not reach the loss, so it cannot be trained\n");
}

TEST_F(AutodiffTest, WhatCannotBeTrainedIsNamed) {
    const std::string head = "module \"t\" stage elaborate {\ntrain\n}\nstate %w : f32[2, 3] param = zeros() from "
                             "m.amp:3:9\nfunc forward {\n"
                             "input %x : f32[N, 5, 3]\nstate %w : f32[2, 3]\n";
    EXPECT_EQ(ErrorsOf(head + "}\n"), "error: module t has a train block but no result \"loss\"\n");
    EXPECT_EQ(ErrorsOf(head + "result loss = %w\n}\n"), "error: module t: the loss is not a scalar\n");
    EXPECT_EQ(ErrorsOf(head +
                       "%q = expand(%x) : f32[N, N, 5, 3]\n%h = linear(%q, %w) : f32[N, N, 5, 2] @fc at m.amp:7:1\n"
                       "%loss = sum(%h) : f32 @sum\nresult loss = %loss\n}\n"),
              "error: m.amp:7:1: fc: the number of rows of an operand is too large, or depends on N twice\n");
    EXPECT_EQ(ErrorsOf(head + "%h = relu_grad(%w, %w) : f32[2, 3] @odd at m.amp:7:1\n%loss = sum(%h) : f32 "
                              "@sum\nresult loss = %loss\n}\n"),
              "error: m.amp:7:1: odd: relu_grad has no gradient\n");
    EXPECT_EQ(
        ErrorsOf("module \"t\" stage elaborate {\ntrain\n}\nstate %scale : f32 param = zeros() from m.amp:3:9\nfunc "
                 "forward {\n"
                 "state %scale : f32\n%loss = exp(%scale) : f32 @exp\nresult loss = %loss\n}\n"),
        "error: m.amp:3:9: scale is reserved for training state; name it differently, with `as`\n");
}

} // namespace
