// twins_test.cc: a network as a module of the IR and as a graph of ONNX gets the same types for the same reasons,
// under every policy that decides forward ops.
#include <fstream>
#include <set>
#include <sstream>

#include "frontend/frontend.h"
#include "passes/passes.h"
#include "tests/onnx/decide_fixture.h"

namespace {

// Ops of the language as nodes; one that is no op of ONNX ends the comparison of what reads it.
const std::map<std::string, std::string> kNodes = {
    {"linear", "Gemm"},
    {"matmul", "MatMul"},
    {"conv2d", "Conv"},
    {"conv_transpose2d", "ConvTranspose"},
    {"attention", "Attention"},
    {"relu", "Relu"},
    {"gelu", "Gelu"},
    {"silu", "Swish"},
    {"sigmoid", "Sigmoid"},
    {"tanh", "Tanh"},
    {"dropout", "Dropout"},
    {"softplus", "Softplus"},
    {"hard_swish", "HardSwish"},
    {"rsqrt", "Reciprocal"},
    {"exp", "Exp"},
    {"log", "Log"},
    {"sin", "Sin"},
    {"cos", "Cos"},
    {"neg", "Neg"},
    {"sqrt", "Sqrt"},
    {"pow", "Pow"},
    {"add", "Add"},
    {"sub", "Sub"},
    {"mul", "Mul"},
    {"div", "Div"},
    {"clamp", "Clip"},
    {"maximum", "Max"},
    {"minimum", "Min"},
    {"reshape", "Reshape"},
    {"flatten", "Flatten"},
    {"transpose", "Transpose"},
    {"permute", "Transpose"},
    {"slice", "Slice"},
    {"concat", "Concat"},
    {"expand", "Expand"},
    {"pad", "Pad"},
    {"embedding", "Gather"},
    {"max_pool2d", "MaxPool"},
    {"avg_pool2d", "AveragePool"},
    {"global_avg_pool", "GlobalAveragePool"},
    {"upsample", "Resize"},
    {"batch_norm", "BatchNormalization"},
    {"layer_norm", "LayerNormalization"},
    {"group_norm", "GroupNormalization"},
    {"rms_norm", "RMSNormalization"},
    {"sum", "ReduceSum"},
    {"mean", "ReduceMean"},
    {"max", "ReduceMax"},
    {"logsumexp", "ReduceLogSumExp"},
    {"softmax", "Softmax"},
    {"log_softmax", "LogSoftmax"},
    {"cumsum", "CumSum"},
    {"ne", "Unlike"}, // of any types
    {"arange", "Range"},
    {"full", "ConstantOfShape"},
    {"cast", "Cast"},
};

class TwinsTest : public DecideTest {
  protected:
    static const Source *Find(void *user, const char *name, const char *beside) {
        const std::string path = beside;
        const size_t slash = path.rfind('/');
        return static_cast<TwinsTest *>(user)->FileSource(path.substr(0, slash + 1) + name);
    }

    const Source *FileSource(const std::string &path) {
        std::ifstream file(path);
        std::stringstream text;
        text << file.rdbuf();
        EXPECT_FALSE(text.str().empty()) << path;
        auto *source = arena_new(&arena_, Source);
        *source = Source{arena_strdup(&arena_, path.c_str()),
                         arena_strndup(&arena_, text.str().data(), text.str().size()), text.str().size()};
        return source;
    }

    // As it infers: no training, no layers (ONNX has none), and nothing beside the model's results.
    Module *Load(const std::string &path) {
        diags_init(&diags_, &arena_);
        FrontendOptions o = {};
        o.find_include = Find;
        o.user = this;
        Module *m = frontend_compile(&arena_, &diags_, FileSource(path), &o);
        if (!m) return nullptr;
        m->has_train = false;
        m->overrides.len = 0;
        Func *f = ir_program(m, PROGRAM_FORWARD);
        int kept = 0;
        for (int i = 0; i < f->results.len; i++)
            if (f->results.data[i].kind == RESULT_MODEL) f->results.data[kept++] = f->results.data[i];
        EXPECT_GT(kept, 0) << path;
        f->results.len = kept;
        std::set<uint32_t> live;
        for (int i = 0; i < kept; i++) live.insert(f->results.data[i].value.id);
        std::vector<OpId> body;
        for (int i = f->body.len - 1; i >= 0; i--) {
            const Op *op = ir_op_at(f, i);
            bool is_live = false;
            for (int k = 0; k < op->n_out; k++) is_live = is_live || live.count(op->out[k].id);
            if (!is_live) continue;
            body.push_back(op->id);
            for (int k = 0; k < op->n_in; k++) live.insert(op->in[k].id);
            ir_op(f, op->id)->layer = nullptr;
        }
        f->body.len = 0;
        for (size_t i = body.size(); i > 0; i--) vec_push(&arena_, &f->body, body[i - 1]);
        return m;
    }

    static OnnxDtype DtypeOf(Dtype t) {
        return t == AMP_DT_F32 ? ONNX_FLOAT : t == AMP_DT_I64 ? ONNX_INT64 : t == AMP_DT_I32 ? ONNX_INT32 : ONNX_BOOL;
    }

    static DimNames ShapeOf(const Func *f, Val v) {
        DimNames dims;
        const Shape *s = ir_shape(f, v);
        for (int i = 0; i < s->rank; i++)
            dims.push_back(s->d[i].n ? "N" + (s->d[i].mul == 1 ? "" : std::to_string(s->d[i].mul))
                                     : std::to_string(s->d[i].mul));
        return dims;
    }

    static std::string NameOf(Val v) { return "v" + std::to_string(v.id); }

    void AddInput(GraphBuilder &g, const Func *f, Val v) {
        const State *s = ir_state_of(f, v);
        if (!s) {
            g.Input(ir_value(f, v)->name, ShapeOf(f, v), DtypeOf(ir_dtype(f, v)));
            names_[v.id] = ir_value(f, v)->name;
            return;
        }
        std::vector<int64_t> dims;
        for (int i = 0; i < s->shape.rank; i++) dims.push_back(s->shape.d[i].mul);
        g.Weight(s->name, dims, DtypeOf(s->dtype));
        g.Input(s->name, ShapeOf(f, v), DtypeOf(s->dtype)); // may be replaced, so that min_cut counts its casts
        names_[v.id] = s->name;
    }

    // Inputs that ONNX wants beside the tensors of the op, or in another order.
    Names InputsOf(GraphBuilder &g, const Func *f, const Op *op, const std::string &node) {
        Names in;
        for (int k = 0; k < op->n_in; k++) in.push_back(names_.at(op->in[k].id));
        const std::string more = std::string(op->path) + ".ints";
        if (node == "Gather") std::swap(in[0], in[1]);
        if (node == "Reshape" || node == "Expand" || node == "Pad") g.Ints(more, {1}), in.push_back(more);
        if (node == "Slice") g.Ints(more, {0}), in.insert(in.end(), {more, more});
        if (node == "Range") {
            g.Weight(more, {}, DtypeOf(ir_dtype(f, op->out[0])));
            in = {more, more, more};
        }
        if (node == "ConstantOfShape") in = {"scales.ints"};
        if (node == "CumSum") g.Ints(more, {1}), in.push_back(more);
        if (node == "Resize") in.insert(in.end(), {"", "scales"});
        return in;
    }

    void AddNode(GraphBuilder &g, const Func *f, const Op *op) {
        const std::string name = ir_op_info[op->code].name;
        if (op->code == OP_const) {
            names_[op->out[0].id] = NameOf(op->out[0]);
            g.Number(NameOf(op->out[0]));
            return;
        }
        const auto node = kNodes.find(name);
        bool has_inputs = node != kNodes.end();
        for (int k = 0; k < op->n_in; k++) has_inputs = has_inputs && names_.count(op->in[k].id);
        if (!has_inputs) {
            missing_.insert(name);
            return;
        }
        names_[op->out[0].id] = NameOf(op->out[0]);
        g.Node(op->path, node->second, InputsOf(g, f, op, node->second), {NameOf(op->out[0])},
               op->code == OP_ne ? "custom" : "");
        if (op->code == OP_cast) g.Int("to", DtypeOf(ir_dtype(f, op->out[0])));
        g.Value(NameOf(op->out[0]), ShapeOf(f, op->out[0]), DtypeOf(ir_dtype(f, op->out[0])));
        ops_++;
    }

    void BuildTwin(const Func *f) {
        GraphBuilder g = Clear(28);
        names_.clear();
        missing_.clear();
        ops_ = 0;
        g.Weight("scales", {4}).Ints("scales.ints", {1});
        for (int i = 0; i < f->inputs.len; i++) AddInput(g, f, f->inputs.data[i]);
        for (int i = 0; i < f->body.len; i++) AddNode(g, f, ir_op_at(f, i));
        for (int i = 0; i < f->results.len; i++)
            if (names_.count(f->results.data[i].value.id)) g.Output(names_.at(f->results.data[i].value.id));
    }

    // The attributes that shapes would follow from are not there.
    void TakeShapes(const Func *f) {
        Solve();
        for (const auto &name : names_) {
            const Shape *s = ir_shape(f, Val{name.first});
            OnnxSize *dims = arena_array(&arena_, OnnxSize, s->rank + 1);
            for (int i = 0; i < s->rank; i++) {
                dims[i] = onnx_size(s->d[i].mul * (s->d[i].t ? ASSUMED_T : 1)); // as decisions count T
                if (s->d[i].n)
                    dims[i] = onnx_size_mul(&solution_.sizes, dims[i], onnx_size_named(&solution_.sizes, "N"));
            }
            if (find_.count(name.second)) solution_.shapes[find_[name.second]] = OnnxValueShape{s->rank, dims};
        }
    }

    void DecideTwin(const Func *f, const std::string &policy) {
        Solve();
        for (int32_t v = 0; v < index_.value_count; v++) find_[index_.values[v].name] = v;
        TakeShapes(f);
        OnnxDecideOptions o = {};
        o.policy = ReadPolicy(policy);
        o.batch_hint = 32;
        ASSERT_EQ(onnx_decide(&model_, &index_, &solution_, &o, &arena_, &d_, &error_), AMP_OK) << error_.message;
    }

    void RunModule(Module *m, const std::string &policy) {
        PassOptions o = {};
        o.policy = policy.c_str();
        o.find_policy = [](void *user, const char *name) { return policy_builtin(static_cast<Arena *>(user), name); };
        o.user = &arena_;
        ASSERT_EQ(passes_run(m, &diags_, &o, STAGE_AUTOCAST, nullptr, nullptr, &error_), AMP_OK) << error_.message;
    }

    static std::string Told(const Reason *r, Arena *arena) {
        Text t;
        text_init(&t, arena);
        ir_print_reason(&t, r);
        return text_str(&t);
    }

    // How many nodes were compared; those that move weights, which are rounded before, are not.
    int Compare(const std::string &path, const std::string &policy) {
        Module *m = Load(path);
        if (!m) return 0;
        Func *f = ir_program(m, PROGRAM_FORWARD);
        BuildTwin(f);
        DecideTwin(f, policy);
        RunModule(m, policy);
        const std::string low = amp_dtype_name(m->low);
        std::map<std::string, int32_t> nodes;
        for (int32_t n = 0; n < index_.node_count; n++) nodes[index_.nodes[n].node->name] = n;
        int compared = 0;
        for (int i = 0; i < m->decisions.len; i++) {
            const Decision &decision = m->decisions.data[i];
            if (!nodes.count(decision.path) || amp_dtype_size(decision.out) == 1) continue;
            const OnnxDecision &twin = d_.nodes[nodes[decision.path]];
            const std::string why = Told(&twin.reason, &arena_);
            if (twin.fate == ONNX_AS_IS || why.find("a weight, and all") != std::string::npos) continue;
            const std::string here = twin.fate == ONNX_LOWER ? low : "f32";
            std::string told = Told(decision.reason, &arena_);
            const size_t length = told.find(", T = 128"); // the twin has a symbol of any name there
            if (length != std::string::npos) told.erase(length, strlen(", T = 128"));
            EXPECT_EQ(here + " " + why, amp_dtype_name(decision.out) + (" " + told))
                << path << ", " << policy << ": " << decision.path << " (" << decision.op << ")";
            compared++;
        }
        return compared;
    }

    Diags diags_;
    std::map<uint32_t, std::string> names_; // of values
    std::map<std::string, int32_t> find_;
    std::set<std::string> missing_;
    int ops_ = 0;
};

TEST_F(TwinsTest, ExamplesAreDecidedAsTheirGraphs) {
    const struct {
        const char *path;
        int ops; // that are compared
    } models[] = {
        {"examples/fashion_mnist/mlp.amp", 5}, {"examples/cnn/cnn.amp", 8},    {"examples/resnet/resnet18.amp", 67},
        {"examples/bert/small.amp", 51},       {"examples/gpt/gpt2.amp", 281}, {"examples/llama/llama.amp", 154},
        {"examples/lstm/lstm.amp", 1214},      {"examples/unet/unet.amp", 67}, {"examples/tabular/tabular.amp", 14},
    };
    for (const auto &model : models)
        for (const char *policy : {"torch-fp16", "torch-bf16", "torch-cpu-fp16", "apex-o1", "apex-o2", "mxnet-fp16",
                                   "keras-mixed-float16", "pure-fp16", "fp32", "min-cast", "min-cast-bf16"}) {
            const int compared = Compare(model.path, policy);
            std::string missing;
            for (const std::string &op : missing_) missing += " " + op;
            EXPECT_EQ(compared, model.ops) << model.path << ", " << policy << "; no nodes:" << missing;
        }
}

} // namespace
