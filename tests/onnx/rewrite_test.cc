// What is written of a model that was decided: casts, weights, types, names, reasons.
#include "onnx/rewrite.h"

#include "onnx/opset.h"
#include "tests/onnx/decide_fixture.h"

namespace {

class RewriteTest : public DecideTest {
  protected:
    void Rewrite(const std::string &policy = "torch-fp16") {
        Decide(policy);
        if (HasFatalFailure()) return;
        r_ = {};
        r_.model = &model_;
        r_.index = &index_;
        r_.solution = &solution_;
        r_.decisions = &d_;
        r_.low = policy == "torch-bf16" ? ONNX_BFLOAT16 : ONNX_FLOAT16;
        r_.policy = "p";
        r_.arena = &arena_;
        ASSERT_EQ(onnx_rewrite(&r_, &error_), AMP_OK) << error_.message;
        amp_error error = {};
        OnnxIndex again = {};
        EXPECT_EQ(onnx_index(&model_, &arena_, &again, &error), AMP_OK) << error.message;
        OnnxSolution types = {};
        EXPECT_EQ(onnx_solve_types(&model_, &again, nullptr, &arena_, &types, &error), AMP_OK) << error.message;
    }

    static std::string Type(const OnnxType *type) {
        return type ? std::string(onnx_dtype_name(type->tensor->elem_type)) : "?";
    }

    static std::string Infos(const OnnxValueInfos &infos) {
        std::string text;
        for (int i = 0; i < infos.len; i++)
            text += std::string(i ? ", " : "") + infos.data[i].name + " " + Type(infos.data[i].type);
        return text;
    }

    static std::string NodeText(const OnnxNode &n) {
        std::string text;
        for (int k = 0; k < n.outputs.len; k++) text += std::string(k ? ", " : "") + n.outputs.data[k];
        text += std::string(" = ") + n.op_type;
        for (int k = 0; k < n.attributes.len; k++) {
            const OnnxAttribute &a = n.attributes.data[k];
            if (a.type == ONNX_ATTR_INT && (!strcmp(a.name, "to") || !strcmp(a.name, "dtype")))
                text += std::string("<") + onnx_dtype_name(static_cast<int>(a.i)) + ">";
            if (a.type == ONNX_ATTR_TENSOR) text += std::string("<") + onnx_dtype_name(a.t->data_type) + ">";
            if (a.type == ONNX_ATTR_GRAPH) text += " {" + GraphText(*a.g) + "}";
        }
        text += "(";
        for (int k = 0; k < n.inputs.len; k++) text += std::string(k ? ", " : "") + n.inputs.data[k];
        return text + ")";
    }

    static std::string GraphText(const OnnxGraph &g) {
        std::string text;
        for (int i = 0; i < g.nodes.len; i++) text += NodeText(g.nodes.data[i]) + "; ";
        return text + "-> " + Infos(g.outputs);
    }

    std::string Nodes() const { return GraphText(*model_.graph); }

    std::string Weights() const {
        std::string text;
        for (int i = 0; i < model_.graph->initializers.len; i++) {
            const OnnxTensor &t = model_.graph->initializers.data[i];
            text += std::string(i ? ", " : "") + t.name + " " + onnx_dtype_name(t.data_type);
        }
        return text;
    }

    OnnxRewrite r_ = {};
};

// ---- casts and weights

TEST_F(RewriteTest, CastsAValueOnceRightAfterItIsMade) {
    Clear()
        .Input("x", {"N", "4"})
        .Output("y")
        .Output("z")
        .Weight("w", {4, 4})
        .Weight("v", {4, 4})
        .Node("e", "Exp", {"x"}, {"t"})
        .Node("a", "MatMul", {"t", "w"}, {"y"})
        .Node("b", "MatMul", {"t", "v"}, {"u"})
        .Node("c", "Exp", {"u"}, {"z"});
    Rewrite();
    EXPECT_EQ(Nodes(), "t = Exp(x); t_f16 = Cast<float16>(t); y = MatMul(t_f16, w); u = MatMul(t_f16, v); "
                       "u_f32 = Cast<float32>(u); z = Exp(u_f32); -> y float16, z float32");
    EXPECT_EQ(Weights(), "w float16, v float16");
    EXPECT_EQ(r_.casts, 2);
    EXPECT_EQ(r_.converted, 2);
    EXPECT_EQ(r_.doubled, 0);
}

TEST_F(RewriteTest, AWeightThatIsReadInTwoTypesIsThereTwice) {
    Clear()
        .Input("x", {"N", "4"})
        .Output("y")
        .Output("z")
        .Weight("w", {4, 4})
        .Node("a", "MatMul", {"x", "w"}, {"y"})
        .Node("e", "Exp", {"w"}, {"z"});
    Rewrite();
    EXPECT_EQ(Weights(), "w float32, w_f16 float16");
    EXPECT_EQ(r_.doubled, 1);
    EXPECT_EQ(Nodes(), "y = MatMul(x, w_f16); z = Exp(w); -> y float16, z float32");
}

TEST_F(RewriteTest, OutputsKeepTheirNames) {
    keep_io_ = true;
    Clear()
        .Input("x", {"N", "4"})
        .Output("y")
        .Weight("w", {4, 4})
        .Node("a", "MatMul", {"x", "w"}, {"y"})
        .Node("b", "Relu", {"y"}, {"u"})
        .Output("u");
    Rewrite();
    EXPECT_EQ(Nodes(), "x_f16 = Cast<float16>(x); y_f16 = MatMul(x_f16, w); y = Cast<float32>(y_f16); "
                       "u_f16 = Relu(y_f16); u = Cast<float32>(u_f16); -> y float32, u float32");
    EXPECT_EQ(Infos(model_.graph->inputs), "x float32");
}

TEST_F(RewriteTest, NamesThatAreTakenAreNotGivenAgain) {
    keep_io_ = true;
    Clear()
        .Input("x", {"N", "4"})
        .Input("x_f16", {"N", "4"})
        .Output("y")
        .Weight("w", {4, 4})
        .Node("x_f16_2_cast", "MatMul", {"x", "w"}, {"t"})
        .Node("b", "Add", {"t", "x_f16"}, {"y"});
    Rewrite();
    EXPECT_EQ(Nodes().substr(0, 60), "x_f16_2 = Cast<float16>(x); t = MatMul(x_f16_2, w); t_f32 = ");
    EXPECT_STREQ(model_.graph->nodes.data[0].name, "x_f16_2_cast_2");
}

// ---- casts that are there

TEST_F(RewriteTest, ACastThatIsThereGoesAndASecondRewritingChangesNothing) {
    keep_io_ = true;
    Clear()
        .Input("x", {"N", "4"})
        .Output("y")
        .Weight("w", {4, 4})
        .Node("c", "Cast", {"x"}, {"h"})
        .Int("to", ONNX_FLOAT16)
        .Node("d", "Cast", {"h"}, {"f"})
        .Int("to", ONNX_FLOAT)
        .Node("e", "Exp", {"f"}, {"g"})
        .Node("a", "MatMul", {"g", "w"}, {"y"});
    Rewrite();
    const std::string first = Nodes();
    EXPECT_EQ(first, "g = Exp(x); g_f16 = Cast<float16>(g); y_f16 = MatMul(g_f16, w); y = Cast<float32>(y_f16); "
                     "-> y float32");
    EXPECT_EQ(r_.dropped, 2);
    Rewrite();
    EXPECT_EQ(Nodes(), first);
    EXPECT_EQ(Weights(), "w float16");
}

TEST_F(RewriteTest, ACastThatMakesAnOutputStays) {
    Clear()
        .Input("x", {"N", "4"})
        .Output("h")
        .Output("y")
        .Node("e", "Exp", {"x"}, {"t"})
        .Node("c", "Cast", {"t"}, {"h"})
        .Int("to", ONNX_FLOAT16)
        .Node("d", "Exp", {"h"}, {"y"});
    model_.graph->outputs.data[0].type->tensor->elem_type = ONNX_FLOAT16;
    model_.graph->outputs.data[1].type->tensor->elem_type = ONNX_FLOAT16;
    Rewrite();
    EXPECT_EQ(Nodes(), "t = Exp(x); h = Cast<float16>(t); h_f32 = Cast<float32>(h); y = Exp(h_f32); "
                       "-> h float16, y float32");
}

// ---- inner graphs

TEST_F(RewriteTest, AValueIsCastOutsideOfTheGraphsThatReadIt) {
    keep_io_ = true;
    GraphBuilder g = Clear();
    g.Input("test", {}, ONNX_BOOL).Input("x", {"N", "4"}).Output("y").Weight("w", {4, 4});
    g.Node("e", "Exp", {"x"}, {"t"}).Node("i", "If", {"test"}, {"y"});
    g.Graph("then_branch").Node("a", "MatMul", {"t", "w"}, {"p"}).Output("p");
    g.Graph("else_branch").Node("b", "Neg", {"t"}, {"q"}).Output("q");
    Rewrite();
    EXPECT_EQ(Nodes(), "t = Exp(x); t_f16 = Cast<float16>(t); y = If {p = MatMul(t_f16, w); p_f32 = Cast<float32>(p); "
                       "-> p_f32 float32} {q = Neg(t); -> q float32}(test); -> y float32");
}

// ---- attributes that state a type

TEST_F(RewriteTest, ConstantsAreConverted) {
    GraphBuilder g = Clear();
    g.Input("x", {"N", "4"}).Output("y").Output("z").Node("k", "Constant", {}, {"c"});
    OnnxAttribute a = {};
    a.name = "value_float";
    a.ref_name = "";
    a.type = ONNX_ATTR_FLOAT;
    a.f = 1.5f;
    vec_push(&arena_, &model_.graph->nodes.data[0].attributes, a);
    g.Weight("w", {4, 4}).Node("m", "MatMul", {"x", "w"}, {"t"}).Node("p", "PRelu", {"t", "c"}, {"y"});
    g.Node("e", "Exp", {"c"}, {"z"});
    Rewrite();
    EXPECT_EQ(Nodes(), "c = Constant(); c_f16 = Constant<float16>(); t = MatMul(x, w); y = PRelu(t, c_f16); "
                       "z = Exp(c); -> y float16, z float32");
    EXPECT_EQ(r_.doubled, 1);
    const OnnxTensor *t = model_.graph->nodes.data[1].attributes.data[0].t;
    EXPECT_EQ(t->data.type, ONNX_FLOAT);
    EXPECT_EQ(t->dims.len, 0);
    EXPECT_EQ(*reinterpret_cast<const float *>(t->data.memory), 1.5f);
}

TEST_F(RewriteTest, WhatIsStatedOfValuesFollows) {
    Clear()
        .Input("x", {"N", "4"})
        .Output("y")
        .Value("t", {"N", "4"})
        .Value("h", {"N", "4"}, ONNX_FLOAT16)
        .Weight("w", {4, 4})
        .Node("m", "MatMul", {"x", "w"}, {"t"})
        .Node("c", "Cast", {"t"}, {"h"})
        .Int("to", ONNX_FLOAT16)
        .Node("r", "Relu", {"h"}, {"y"});
    model_.graph->outputs.data[0].type->tensor->elem_type = ONNX_FLOAT16;
    Rewrite();
    EXPECT_EQ(Infos(model_.graph->value_infos), "t float16");
    EXPECT_EQ(Infos(model_.graph->inputs), "x float16");
}

// ---- reasons

TEST_F(RewriteTest, ReasonsAreInMetadataFromIrVersion10On) {
    for (int64_t version : {9, 10}) {
        Clear().Input("x", {"N", "4"}).Output("y").Weight("w", {4, 4}).Node("m", "MatMul", {"x", "w"}, {"y"});
        model_.ir_version = version;
        Rewrite();
        const OnnxProps &props = model_.graph->nodes.data[model_.graph->nodes.len - 1].metadata;
        ASSERT_EQ(props.len, version < 10 ? 0 : 2);
        EXPECT_STREQ(model_.metadata.data[0].value, "p");
        if (version < 10) continue;
        EXPECT_STREQ(props.data[0].key, "ampc.type");
        EXPECT_STREQ(props.data[0].value, "float16");
        EXPECT_STREQ(props.data[1].value, "{lower, torch-fp16:8}");
    }
}

// ---- a later opset

TEST_F(RewriteTest, ALaterOpsetIsStatedWhereNodesMeanTheSame) {
    Clear(13).Input("x", {"N", "4"}).Output("y").Node("s", "Softmax", {"x"}, {"y"});
    model_.ir_version = 8;
    Solve();
    ASSERT_EQ(onnx_raise_opset(&model_, &index_, 22, &arena_, &error_), AMP_OK) << error_.message;
    EXPECT_EQ(onnx_opset(&model_.opsets, ""), 22);
    EXPECT_EQ(onnx_opset(&model_.opsets, "custom"), 1);
    EXPECT_EQ(model_.ir_version, 10);
    EXPECT_EQ(onnx_raise_opset(&model_, &index_, 21, &arena_, &error_), AMP_INVALID_ARGUMENT);
    EXPECT_STREQ(error_.message, "m.onnx: opset 21: the model has 22; from that to 28 can be written");
    Clear(11).Input("x", {"N", "4"}).Output("y").Node("s", "Softmax", {"x"}, {"y"});
    Solve();
    EXPECT_EQ(onnx_raise_opset(&model_, &index_, 18, &arena_, &error_), AMP_UNSUPPORTED);
    EXPECT_STREQ(error_.message, "m.onnx: node 0 's' (Softmax): means something else from opset 13 on, so it cannot be "
                                 "written in opset 18; export the model with that opset");
}

} // namespace
