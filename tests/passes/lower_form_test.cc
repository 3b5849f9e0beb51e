// lower_form_test.cc: channels last: which values have which form, where permutes stand, and whole convolutional steps.
#include "tests/passes/lower_test.h"

namespace {

class LowerFormTest : public LowerPassTest {
  protected:
    // A function over images %x and %y and a weight %w; all of |body|'s results are compared.
    Module *Images(const std::string &body) {
        return ExpectSame("input %x : f32[N, 3, 4, 5]\ninput %y : f32[N, 3, 4, 5]\ninput %w : f32[3, 3, 3, 3]\n" +
                          body);
    }

    static const Func *F(const Module *m) { return m->funcs.data[0]; }
};

const char kConv[] = "%h = conv2d(%x, %w; padding = (1, 1)) : f32[N, 3, 4, 5]\n";

TEST_F(LowerFormTest, OperandsOfLowerRankMeanWhatNumPySays) {
    for (const char *shape : {"", "[5]", "[4, 1]", "[4, 5]", "[3, 4, 1]", "[1, 1, 5]", "[3, 4, 5]", "[N, 1, 1, 1]",
                              "[N, 1, 4, 5]", "[1, 1, 1, 1]"}) {
        std::string b = std::string("f32") + shape;
        ExpectSame("input %x : f32[N, 3, 4, 5]\ninput %w : f32[3, 3, 1, 1]\ninput %b : " + b +
                   "\n%h = conv2d(%x, %w) : f32[N, 3, 4, 5]\n%r = sub(%b, %h) : f32[N, 3, 4, 5]\n%c = gt(%h, %b) : "
                   "bool[N, 3, 4, 5]\n%q = "
                   "where(%c, %b, %r) : f32[N, 3, 4, 5]\n%s = sum_to(%q, %b) : " +
                   b + "\nresult q = %q\nresult s = %s\n");
    }
}

// Reductions, slices, concatenations and softmax over any dims of what has its channels last.
TEST_F(LowerFormTest, DimsAreTheGraphs) {
    const char *calls[] = {
        "%r = sum(%h; dims = (1)) : f32[N, 4, 5]",
        "%r = sum(%h; dims = (2)) : f32[N, 3, 5]",
        "%r = mean(%h; dims = (0)) : f32[3, 4, 5]",
        "%r = mean(%h; dims = (2, 3)) : f32[N, 3]",
        "%r = max(%h; dims = (0, 2)) : f32[3, 5]",
        "%r = min(%h; dims = (0, 2, 3)) : f32[3]",
        "%r = var(%h; dims = (1, 3), keep = true) : f32[N, 1, 4, 1]",
        "%r = sum(%h) : f32",
        "%r = max(%h; keep = true) : f32[1, 1, 1, 1]",
        "%r = sum(%h; dims = (3)) : f32[N, 3, 4]",
        "%r = mean(%h; dims = (1, 2)) : f32[N, 5]",
        "%r = softmax(%h; dim = 1) : f32[N, 3, 4, 5]",
        "%r = log_softmax(%h; dim = 3) : f32[N, 3, 4, 5]",
        "%r = softmax_grad(%h, %y; dim = 2) : f32[N, 3, 4, 5]",
        "%r = argmax(%h; dim = 1) : i32[N, 4, 5]",
        "%r = argmax(%h; dim = 2) : i32[N, 3, 5]",
        "%r, %i = top_k(%h; k = 2, dim = 1) : f32[N, 2, 4, 5], i32[N, 2, 4, 5]",
        "%v, %r = top_k(%h; k = 3, dim = 2) : f32[N, 3, 3, 5], i32[N, 3, 3, 5]",
        "%r = slice(%h; dim = 1, from = 1, to = 3) : f32[N, 2, 4, 5]",
        "%r = slice(%h; dim = -1, from = 0, to = 2) : f32[N, 3, 4, 2]",
        "%r = pad(%h; dim = 2, before = 1) : f32[N, 3, 5, 5]",
        "%r = concat(%h, %y; dim = 1) : f32[N, 6, 4, 5]",
        "%r = concat(%y, %h, %h; dim = 3) : f32[N, 3, 4, 15]",
        "%r = permute(%h; dims = (0, 2, 3, 1)) : f32[N, 4, 5, 3]",
        "%r = permute(%h; dims = (0, 3, 2, 1)) : f32[N, 5, 4, 3]",
        "%r = transpose(%h) : f32[N, 3, 5, 4]",
        "%r = reshape(%h) : f32[N, 20, 3]",
        "%r = stack(%h, %h; dim = 1) : f32[N, 2, 3, 4, 5]",
        "%r = mse_loss(%h, %y) : f32",
        "%r = bce_with_logits(%y, %h) : f32",
        "%r = pow(%h; e = 0.0) : f32[N, 3, 4, 5]",
        "%m = mean(%h; dims = (2, 3)) : f32[N, 3]\n%r = broadcast_to(%m, %h; dims = (2, 3), mean = true) : f32[N, 3, "
        "4, 5]",
        "%m = max(%h; dims = (1)) : f32[N, 4, 5]\n%r = extreme_grad(%m, %h, %m; dims = (1)) : f32[N, 3, 4, 5]",
        "%m = var(%h; dims = (0, 2, 3)) : f32[3]\n%r = var_grad(%m, %h; dims = (0, 2, 3), correction = 0) : f32[N, 3, "
        "4, 5]",
        "%m = sum(%h; dims = (1)) : f32[N, 4, 5]\n%r = tanh(%m) : f32[N, 4, 5]"};
    for (const char *call : calls) Images(std::string(kConv) + call + "\nresult r = %r\n");
}

// A cast keeps its reason in either form, and what a product decides carries the graph op's.
TEST_F(LowerFormTest, ReasonsStayWithCastsAndProducts) {
    Module *m =
        Read("module \"t\" stage simplify {\n}\nfunc f {\ninput %x : f32[N, 3, 4, 5]\ninput %w : f16[3, 3, 1, 1]\n"
             "%x.h = cast(%x) : f16[N, 3, 4, 5] @c.cast because {lower, torch-fp16:4, for c.conv2d} at m.amp:8:9\n"
             "%h = conv2d(%x.h, %w) : f16[N, 3, 4, 5] @c.conv2d because {lower, torch-fp16:4} at m.amp:8:9\n"
             "%g = cast(%h) : f32[N, 3, 4, 5] @g because {f32, torch-fp16:9, for e} at m.amp:9:9\nresult g = %g\n}\n");
    ASSERT_TRUE(Run(m, STAGE_LOWER));
    const Func *f = F(m);
    const Op *cast = ir_def(f, ir_find(f, "g.nhwc"));
    ASSERT_TRUE(cast);
    EXPECT_STREQ("f32", cast->reason->rule);
    EXPECT_EQ(0u, cast->region);
    for (int i = 0; i < f->body.len; i++) {
        const Op *o = ir_op_at(f, i);
        EXPECT_TRUE(o->path && *o->path) << ir_op_info[o->code].name;
        if (o->code != OP_conv) continue;
        ASSERT_TRUE(o->reason);
        EXPECT_STREQ("lower", o->reason->rule);
    }
}

// A layer norm that a user writes is made of what the layer's own is made of.
TEST_F(LowerFormTest, AWrittenLayerNormHasTheSamePrimitives) {
    const std::string inputs = "input %x : f32[N, 6]\ninput %w : f32[6]\ninput %b : f32[6]\n";
    Module *layer =
        ExpectSame(inputs + "%y, %m, %s = layer_norm(%x, %w, %b) : f32[N, 6], f32[N, 1], f32[N, 1]\nresult y = %y\n");
    Module *written = ExpectSame(inputs + "%m = mean(%x; dims = (1), keep = true) : f32[N, 1]\n%d = sub(%x, %m) : "
                                          "f32[N, 6]\n%q = mul(%d, %d) : f32[N, 6]\n%e = "
                                          "mean(%q; dims = (1), keep = true) : f32[N, 1]\n%c = const(; value = "
                                          "1.0e-05) : f32\n%t = add(%e, %c) : f32[N, 1]\n%s = "
                                          "rsqrt(%t) : f32[N, 1]\n%z = mul(%d, %s) : f32[N, 6]\n%u = mul(%z, %w) : "
                                          "f32[N, 6]\n%y = add(%u, %b) : f32[N, 6]\nresult y = %y\n");
    auto codes = [](const Func *f) {
        std::multiset<std::string> names;
        for (int i = 0; i < f->body.len; i++)
            if (ir_op_at(f, i)->code != OP_const) names.insert(ir_op_info[ir_op_at(f, i)->code].name);
        return names;
    };
    EXPECT_EQ(codes(F(layer)), codes(F(written)));
}

} // namespace
