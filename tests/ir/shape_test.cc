// The types of results: for each op what its operands and attributes give, and what is refused, with the exact message.
#include "tests/ir/ir_test.h"

namespace {

class ShapeTest : public IrTest {
  protected:
    // "%y, %z = OP : TYPES" over inputs a, b, c, ... of |types|; the result of the verifier, "" where all is well.
    std::string Check(const std::string &stage, const std::string &types, const std::string &op,
                      const std::string &results) {
        std::string lines, names;
        char name = 'a';
        std::stringstream each(types);
        for (std::string type; std::getline(each, type, ';');)
            lines += std::string("input %") + name++ + " : " + type + "\n";
        int count = ir_op_arity(ir_opcode(op.substr(0, op.find('(')).c_str())).out;
        for (int i = 0; i < count; i++) names += (i ? ", %y" : "%y") + std::to_string(i);
        return Verify("module \"m\" stage " + stage + " { }\nfunc f {\n" + lines + names + " = " + op + " : " +
                      results + "\n}\n");
    }

    // What |op| makes must have exactly these types: so has none that differs in one dimension.
    void Gives(const std::string &stage, const std::string &types, const std::string &op, const std::string &results) {
        SCOPED_TRACE(types + " " + op);
        EXPECT_EQ(Check(stage, types, op, results), "");
        size_t bracket = results.rfind(']');
        if (bracket == std::string::npos) return;
        std::string wrong = results;
        wrong.insert(bracket, "9");
        EXPECT_NE(Check(stage, types, op, wrong), "") << wrong;
    }
};

struct Case {
    const char *types, *op, *results;
};

TEST_F(ShapeTest, GraphOps) {
    const Case cases[] = {
        // products
        {"f32[N, 7, 4];f32[3, 4];f32[3]", "linear(%a, %b, %c)", "f32[N, 7, 3]"},
        {"f32[4];f32[4, 3]", "linear(%a, %b; transposed = true)", "f32[3]"},
        {"f32[N, 5, 4];f32[4, 3]", "matmul(%a, %b)", "f32[N, 5, 3]"},
        {"f32[N, 2, 5, 4];f32[2, 3, 4]", "matmul(%a, %b; tb = true)", "f32[N, 2, 5, 3]"},
        {"f32[N, 4];f32[N, 4]", "matmul(%a, %b; tb = true)", "f32[N, N]"},
        {"f32[2 * N, N]", "reshape(%a)", "f32[N, 1, 2 * N]"},
        {"f32[1, 4, 5];f32[N, 4, 3]", "matmul(%a, %b; ta = true)", "f32[N, 5, 3]"},
        {"f32[N, 3, 28, 28];f32[8, 3, 3, 3];f32[8]", "conv2d(%a, %b, %c)", "f32[N, 8, 26, 26]"},
        {"f32[N, 3, 28, 28];f32[8, 3, 3, 3]", "conv2d(%a, %b; stride = (2, 1), padding = (1, 1))", "f32[N, 8, 14, 28]"},
        {"f32[N, 4, 9, 9];f32[6, 2, 3, 2]", "conv2d(%a, %b; groups = 2, dilation = (2, 3))", "f32[N, 6, 5, 6]"},
        {"f16[N, 8, 14, 28];f16[8, 3, 3, 3];f16[N, 3, 28, 28]",
         "conv2d_input_grad(%a, %b, %c; stride = (2, 1), padding = (1, 1))", "f16[N, 3, 28, 28]"},
        {"f16[N, 8, 14, 28];f16[N, 3, 28, 28];f32[8, 3, 3, 3]",
         "conv2d_weight_grad(%a, %b, %c; stride = (2, 1), padding = (1, 1))", "f32[8, 3, 3, 3]"},
        {"f32[N, 3, 4, 5];f32[3, 8, 2, 2];f32[8]", "conv_transpose2d(%a, %b, %c; stride = (2, 2))", "f32[N, 8, 8, 10]"},
        {"f16[N, 4, 4, 5];f16[4, 3, 3, 2]",
         "conv_transpose2d(%a, %b; stride = (2, 3), padding = (1, 0), output_padding = (1, 2), groups = 2)",
         "f16[N, 6, 8, 16]"},
        // elementwise
        {"f16[N, 3]", "silu(%a)", "f16[N, 3]"},
        {"f32[N, 3]", "clamp(%a; low = 0.0)", "f32[N, 3]"},
        {"bool[N, 1];f32[3];f32", "where(%a, %b, %c)", "f32[N, 3]"},
        {"i32[N, 1];i32[3]", "ge(%a, %b)", "bool[N, 3]"},
        {"f32[N, 3];f32[N, 3]", "abs_grad(%a, %b)", "f32[N, 3]"},
        {"f32[N, 3];bool[3]", "where_grad(%a, %b)", "f32[N, 3], f32[N, 3]"},
        {"f32[3];f64", "clip_by_norm(%a, %b)", "f32[3]"},
        // movement and making
        {"f16[N, 12]", "reshape(%a)", "f16[N, 3, 4]"},
        {"u8[N, 12]", "reshape(%a)", "u8[3 * N, 4]"},
        {"f32[N / 2, 12]", "reshape(%a)", "f32[N, 6]"},
        {"f32[N, 3, 4, 5]", "flatten(%a)", "f32[N, 60]"},
        {"f32[N, 3, 4, 5]", "flatten(%a; from = -2)", "f32[N, 3, 20]"},
        {"f32[N, 3, 4]", "flatten(%a; from = 0)", "f32[12 * N]"},
        {"i32[N, 3, 4]", "transpose(%a)", "i32[N, 4, 3]"},
        {"f32[N, 3, 4]", "transpose(%a; a = 0, b = 2)", "f32[4, 3, N]"},
        {"f32[N, 3, 4]", "permute(%a; dims = (1, 2, 0))", "f32[3, 4, N]"},
        {"f32[N, 3, 4]", "slice(%a; dim = -1, from = 1, to = 4)", "f32[N, 3, 3]"},
        {"f32[N, 3, 4]", "pad(%a; dim = 1, before = 2, after = 1)", "f32[N, 6, 4]"},
        {"f32[N, 3];f16[N, 4];f32[N, 1]", "concat(%a, %b, %c; dim = 1)", "f32[N, 8]"},
        {"i32[3];i32[4]", "concat(%a, %b)", "i32[7]"},
        {"f32[N, 3];f32[N, 3]", "stack(%a, %b)", "f32[2, N, 3]"},
        {"f32[N, 3];f32[N, 3]", "stack(%a, %b; dim = -1)", "f32[N, 3, 2]"},
        {"f32[3, 4]", "expand(%a)", "f32[N, 3, 4]"},
        {"i32[N, 5];f16[100, 8]", "embedding(%a, %b)", "f16[N, 5, 8]"},
        {"f32[N, 5, 8];i32[N, 5];f32[100, 8]", "embedding_grad(%a, %b, %c)", "f32[100, 8]"},
        {"f32[N, 8];i32[N]", "embedding_grad(%a, %b, %a)", "f32[N, 8]"},
        {"i32[N, 1];f16[100, 8]", "distinct_rows(%a, %b)", "i32[N], i32[N], i32[100]"},
        // pooling
        {"f32[N, 3, 9, 8]", "max_pool2d(%a; kernel = (3, 2), stride = (3, 2))", "f32[N, 3, 3, 4], i32[N, 3, 3, 4]"},
        {"f16[N, 3, 9, 8]", "avg_pool2d(%a; kernel = (3, 3), padding = (1, 1))", "f16[N, 3, 9, 8]"},
        {"f32[N, 3, 9, 8]", "global_avg_pool(%a)", "f32[N, 3]"},
        {"f32[N, 3, 3, 4];i32[N, 3, 3, 4];f32[N, 3, 9, 8]",
         "max_pool2d_grad(%a, %b, %c; kernel = (3, 2), stride = (3, 2))", "f32[N, 3, 9, 8]"},
        {"f32[N, 3, 3, 4];f32[N, 3, 9, 8]", "avg_pool2d_grad(%a, %b; kernel = (3, 2), stride = (3, 2))",
         "f32[N, 3, 9, 8]"},
        {"f32[N, 3];f32[N, 3, 9, 8]", "global_avg_pool_grad(%a, %b)", "f32[N, 3, 9, 8]"},
        // attention
        {"f16[N, 6, 5, 8];f16[N, 2, 7, 8];f16[N, 2, 7, 3]", "attention(%a, %b, %c)",
         "f16[N, 6, 5, 3], f32[N, 6, 5, 1]"},
        {"f32[N, 5, 8];f32[N, 7, 8];f32[N, 7, 3];f32[5, 1]", "attention(%a, %b, %c, %d)", "f32[N, 5, 3], f32[N, 5, 1]"},
        {"f32[N, 5, 3];f32[N, 5, 8];f32[N, 7, 8];f32[N, 7, 3];f32[N, 5, 3];f32[N, 5, 1]",
         "attention_grad(%a, %b, %c, %d, %e, %f)", "f32[N, 5, 8], f32[N, 7, 8], f32[N, 7, 3]"},
        // normalisation
        {"f16[N, 5, 7];f32[5];f32[5];f32[5];f32[5]", "batch_norm(%a, %b, %c, %d, %e)",
         "f16[N, 5, 7], f32[5], f32[5], f32[5]"},
        {"f32[N, 5];f32[5];f32[5];f32[5];f32[5]", "batch_norm_eval(%a, %b, %c, %d, %e)", "f32[N, 5]"},
        {"f32[N, 5, 7];f32[N, 5, 7];f32[5];f32[5];f32[5]", "batch_norm_eval_grad(%a, %b, %c, %d, %e)",
         "f32[N, 5, 7], f32[5], f32[5]"},
        {"f32[N, 5, 7];f32[N, 5, 7];f32[5];f32[5];f32[5]", "batch_norm_grad(%a, %b, %c, %d, %e)",
         "f32[N, 5, 7], f32[5], f32[5]"},
        {"f16[N, 5, 7];f32[7];f32[7]", "layer_norm(%a, %b, %c)", "f16[N, 5, 7], f32[N, 5, 1], f32[N, 5, 1]"},
        {"f32[7];f32[7]", "layer_norm(%a, %b)", "f32[7], f32[1], f32[1]"},
        {"f32[N, 5, 7];f32[N, 5, 7];f32[7];f32[N, 5, 1];f32[N, 5, 1]", "layer_norm_grad(%a, %b, %c, %d, %e)",
         "f32[N, 5, 7], f32[7], f32[7]"},
        {"f16[N, 3, 5, 7]", "adaptive_avg_pool2d(%a; out = (2, 9))", "f16[N, 3, 2, 9]"},
        {"f32[N, 3, 2, 9];f32[N, 3, 5, 7]", "adaptive_avg_pool2d_grad(%a, %b; out = (2, 9))", "f32[N, 3, 5, 7]"},
        {"f16[N, 3, 5, 7]", "upsample(%a; scale = (2, 3))", "f16[N, 3, 10, 21]"},
        {"f16[N, 3, 5, 7]", "upsample(%a; size = (2, 9))", "f16[N, 3, 2, 9]"},
        {"f32[N, 3, 10, 21];f32[N, 3, 5, 7]", "upsample_grad(%a, %b; scale = (2, 3))", "f32[N, 3, 5, 7]"},
        {"f16[N, 6, 7];f32[6];f32[6]", "group_norm(%a, %b, %c; groups = 3)", "f16[N, 6, 7], f32[N, 6], f32[N, 6]"},
        {"f32[N, 6];f32[6]", "group_norm(%a, %b)", "f32[N, 6], f32[N, 6], f32[N, 6]"},
        {"f32[N, 6, 2, 2];f32[6]", "instance_norm(%a, %b)", "f32[N, 6, 2, 2], f32[N, 6], f32[N, 6]"},
        {"f32[N, 6, 7];f32[N, 6, 7];f32[6];f32[N, 6];f32[N, 6]", "group_norm_grad(%a, %b, %c, %d, %e; groups = 3)",
         "f32[N, 6, 7], f32[6], f32[6]"},
        {"f16[N, 5, 7];f32[7]", "rms_norm(%a, %b)", "f16[N, 5, 7], f32[N, 5, 1]"},
        {"f32[N, 5, 7];f32[N, 5, 7];f32[7];f32[N, 5, 1]", "rms_norm_grad(%a, %b, %c, %d)", "f32[N, 5, 7], f32[7]"},
        // reductions, losses, metrics
        {"f32[N, 3, 4]", "max(%a; dims = (0, 2))", "f32[3]"},
        {"f32[N, 3, 4]", "min(%a; dims = (-1), keep = true)", "f32[N, 3, 1]"},
        {"f32[N, 3, 4]", "var(%a)", "f32"},
        {"f32[N, 3, 4]", "argmax(%a; dim = 1)", "i32[N, 4]"},
        {"bf16[N, 3, 4]", "top_k(%a; k = 2, dim = 1)", "bf16[N, 2, 4], i32[N, 2, 4]"},
        {"f32[N, 2, 4];i32[N, 2, 4];f32[N, 3, 4]", "top_k_grad(%a, %b, %c; dim = 1)", "f32[N, 3, 4]"},
        {"f32[N, 1];f32[N, 4];f32[N]", "extreme_grad(%a, %b, %c; dims = (1))", "f32[N, 4]"},
        {"i32[N, 1];i32[4]", "remainder(%a, %b)", "i32[N, 4]"},
        {"f32;f32[N, 4]", "var_grad(%a, %b)", "f32[N, 4]"},
        {"f32[N, 3, 4]", "std(%a; dims = (1), keep = true)", "f32[N, 1, 4]"},
        {"f32[N, 1];f32[N, 4];f32[N]", "std_grad(%a, %b, %c; dims = (1))", "f32[N, 4]"},
        {"f32[N, 4];f32[N, 4]", "mse_loss(%a, %b)", "f32"},
        {"f32;f32[N, 4];f32[N, 4]", "mse_loss_grad(%a, %b, %c)", "f32[N, 4], f32[N, 4]"},
        {"f32[N];f32[N]", "bce_with_logits(%a, %b)", "f32"},
        {"f32;f32[N];f32[N]", "bce_with_logits_grad(%a, %b, %c)", "f32[N], f32[N]"},
        {"f32[N, 5, 9];i32[N, 5]", "top_k_accuracy(%a, %b; k = 2)", "f32"},
        {"f16[3];f32[N, 4]", "global_norm(%a, %b)", "f64"},
        // schedules
        {"", "constant_rate(; v = 0.1)", "f64"},
        {"i64", "cosine_rate(%a)", "f64"},
        {"i64", "step_rate(%a)", "f64"},
        {"i64", "linear_rate(%a)", "f64"},
        {"i64", "one_cycle_rate(%a)", "f64"},
        {"f64", "settable_rate(%a)", "f64"},
    };
    for (const auto &c : cases) Gives("simplify", c.types, c.op, c.results);
}

// Whose result may have any shape of a kind.
TEST_F(ShapeTest, GivenShapes) {
    EXPECT_EQ(Check("simplify", "f32[3, 1]", "expand(%a)", "f32[N, 3, 4]"), "");
    EXPECT_EQ(Check("simplify", "", "full(; value = 2.0)", "f16[N, 3]"), "");
    EXPECT_EQ(Check("simplify", "", "arange()", "i32[2 * N]"), "");
    EXPECT_EQ(Check("simplify", "", "full(; value = 2.0)", "i32"), "");
    EXPECT_EQ(Check("simplify", "", "arange()", "i32[7]"), "");
    EXPECT_NE(Check("simplify", "", "arange()", "f32[7]"), "");
    EXPECT_EQ(Check("simplify", "", "tensor(; values = [0.5, -1.0])", "f16[2, 1]"), "");
    EXPECT_NE(Check("simplify", "", "tensor(; values = [0.5, -1.0])", "f32[3]"), "");
    EXPECT_NE(Check("simplify", "", "tensor(; values = [0.5, -1.0])", "f32[N]"), "");
    EXPECT_NE(Check("simplify", "", "tensor(; values = [0.5, -1.0])", "i32[2]"), "");
    EXPECT_NE(Check("simplify", "", "tensor()", "f32[1]"), "");
}

TEST_F(ShapeTest, CoreOps) {
    const Case cases[] = {
        {"f32[N, 9, 9, 4];f32[4, 3]", "contract(%a, %b)", "f32[N, 9, 9, 3]"},
        {"f32[N, 9, 4];f32[3, 4]", "contract(%a, %b; tb = true)", "f32[N, 9, 3]"},
        {"f32[N, 9, 4];f32[9 * N, 3]", "contract(%a, %b; ta = true)", "f32[4, 3]"},
        {"f32[5, 4];f32[3, 5]", "contract(%a, %b; ta = true, tb = true)", "f32[4, 3]"},
        {"f32[N, 9, 4];f32[9 * N, 3]", "contract(%a, %b; ta = true, parts = 5)", "f32[5, 4, 3]"},
        {"f32[N, 5, 4];f32[4, 3]", "contract(%a, %b; parts = 2)", "f32[2, N, 5, 3]"},
        {"f32[N, 4];f32[3, 4]", "contract(%a, %b; tb = true, parts = 2)", "f32[2, N, 3]"},
        {"f32[4, N];f32[4, 3]", "contract(%a, %b; ta = true, parts = 2)", "f32[2, N, 3]"},
        {"f32[4, N];f32[3, 4]", "contract(%a, %b; ta = true, tb = true, parts = 2)", "f32[2, N, 3]"},
        {"f32[7, 3, 8]", "sum_parts(%a)", "f32[3, 8]"},
        {"f32[7, N, 8]", "sum_parts(%a)", "f32[N, 8]"},
        {"f32[N, 2, 5, 4];f32[N, 2, 3, 4]", "batch_contract(%a, %b; tb = true)", "f32[N, 2, 5, 3]"},
        {"f32[N, 28, 28, 3];f32[3, 3, 3, 8]", "conv(%a, %b; padding = (1, 1))", "f32[N, 28, 28, 8]"},
        {"f32[N, 9, 9, 4];f32[3, 2, 2, 6]", "conv(%a, %b; groups = 2)", "f32[N, 7, 8, 6]"},
        {"f32[N, 14, 28, 8];f32[3, 3, 8, 3]", "conv_data(%a, %b; stride = (2, 1), padding = (1, 1))",
         "f32[N, 28, 28, 3]"},
        {"f32[N, 7, 8, 6];f32[3, 2, 3, 4]", "conv_data(%a, %b; groups = 2)", "f32[N, 9, 9, 4]"},
        {"f32[N, 28, 28, 3];f32[N, 14, 28, 8]", "conv_weight(%a, %b; stride = (2, 1), padding = (1, 1))",
         "f32[3, 3, 3, 8]"},
        {"f32[N, 28, 28, 3];f32[N, 14, 28, 8]", "conv_weight(%a, %b; stride = (2, 1), padding = (1, 1), parts = 7)",
         "f32[7, 3, 3, 3, 8]"},
        {"f16[N, 6, 5, 8];f16[N, 2, 70, 8];f16[N, 2, 70, 3];i64", "attend_drop(%a, %b, %c, %d, %d; p = 0.5)",
         "f32[N, 5, 18], f32[N, 6, 5, 1], i32[N, 6, 4, 5]"},
        {"f32[N, 9, 8, 3]", "window_max(%a; kernel = (3, 2), stride = (3, 2))", "f32[N, 3, 4, 3], i32[N, 3, 4, 3]"},
        {"f32[N, 5, 4, 3]", "resample(%a)", "f32[N, 2, 9, 3]"},
        {"f32[N, 2, 9, 3]", "resample_grad(%a; mode = bilinear)", "f32[N, 5, 4, 3]"},
        {"f32[N, 9, 8, 3]", "window_sum(%a; kernel = (3, 2), stride = (3, 2))", "f32[N, 3, 4, 3]"},
        {"f32[N, 3, 4, 3];i32[N, 3, 4, 3]", "window_max_grad(%a, %b; kernel = (3, 2), stride = (3, 2))",
         "f32[N, 9, 8, 3]"},
        {"f32[N, 3, 4, 3]", "window_sum_grad(%a; kernel = (3, 2), stride = (3, 2))", "f32[N, 9, 8, 3]"},
        {"f32[50, 8];i32[N, 5]", "gather(%a, %b)", "f32[N, 5, 8]"},
        {"f32[N, 5, 8];i32[N, 5]", "scatter(%a, %b)", "f32[50, 8]"},
        {"f32[N, 8];i32[N]", "scatter(%a, %b)", "f32[N, 8]"},
        {"f32[N, 3];i64;i64;i64", "random(%a, %b, %c, %d; key = \"k\")", "f32[N, 3]"},
        {"f64", "cos(%a)", "f64"},
        {"f32[N, 3]", "pow(%a; e = 2.0)", "f32[N, 3]"},
    };
    for (const auto &c : cases) Gives("lower", c.types, c.op, c.results);
}

// The message without what each operand is.
struct Wrong {
    const char *types, *op, *results, *message;
};

TEST_F(ShapeTest, RefusedGraphOps) {
    const Wrong cases[] = {
        {"f32[4];f32[4, 3]", "matmul(%a, %b)", "f32[3]",
         "needs operands of rank 2 or more; reshape a vector to one row or one column"},
        {"f32[2, 5, 4];f32[3, 4, 3]", "matmul(%a, %b)", "f32[2, 5, 3]", "leading dimensions do not broadcast"},
        {"f32[2, 5, 4];f32[2, 5, 3]", "matmul(%a, %b)", "f32[2, 5, 3]", "inner dimensions differ, [4, 5]"},
        {"f32[N, 3, 28];f32[8, 3, 3, 3]", "conv2d(%a, %b)", "f32[1]", "needs images and a weight of rank 4"},
        {"f32[N, 3, 9, 9];f32[8, 4, 3, 3]", "conv2d(%a, %b)", "f32[1]", "input channels per group differ, [3, 4]"},
        {"f32[N, 3, 9, 9];f32[8, 3, 3, 3]", "conv2d(%a, %b; groups = 2)", "f32[1]",
         "2 groups do not divide 3 input and 8 output channels"},
        {"f32[N, 4, 9, 9];f32[7, 2, 3, 3]", "conv2d(%a, %b; groups = 2)", "f32[1]",
         "2 groups do not divide 4 input and 7 output channels"},
        {"f32[N, 3, 9, 9];f32[8, 3, 3, 3]", "conv2d(%a, %b; groups = 0)", "f32[1]", "groups must be at least 1"},
        {"f32[N, 3, 9, 9];f32[8, 3, 3, 3]", "conv2d(%a, %b; stride = (0, 1))", "f32[1]", "stride must be at least 1"},
        {"f32[N, 3, 9, 9];f32[8, 3, 3, 3]", "conv2d(%a, %b; dilation = (1, 0))", "f32[1]",
         "dilation must be at least 1"},
        {"f32[N, 3, 9, 9];f32[8, 3, 3, 3]", "conv2d(%a, %b; padding = (1, -1))", "f32[1]",
         "padding must be at least 0"},
        {"f32[N, 3, 9, 9];f32[8, 3, 3, 3]", "conv2d(%a, %b; padding = (1))", "f32[1]", "padding is not a pair"},
        {"f32[N, 3, 9, 9];f32[8, 3, 3, 3]", "conv2d(%a, %b; dilation = (1, 5), padding = (0, 0))", "f32[1]",
         "the kernel does not fit: its width is 11, the padded image's 9"},
        {"f32[2, 3, N, 9];f32[8, 3, 3, 3]", "conv2d(%a, %b)", "f32[1]", "the height of an image may not depend on N"},
        {"f32[2, N, 9, 9];f32[8, 3, 3, 3]", "conv2d(%a, %b)", "f32[1]", "the channels of an image may not depend on N"},
        {"f32[N, 3, 9, 9];f32[8, 3, 3, 3];f32[3]", "conv2d(%a, %b, %c)", "f32[1]", "the bias is [3], not [8]"},
        {"f32[N, 8, 9, 9];f32[8, 3, 3, 3];f32[N, 3, 9, 9]", "conv2d_input_grad(%a, %b, %c)", "f32[1]",
         "the gradient is [N, 8, 9, 9], not [N, 8, 7, 7]"},
        {"f32[N, 3];f32[3]", "pow_grad(%a, %b; e = 2.0)", "f32[N, 3]", "shapes differ"},
        {"f32[3];f32[3];i64;f64;f64;f32[3]", "rmsprop(%a, %b, %c, %d, %e, %f; centered = true)",
         "f32[3], f32[3], f32[3], f32[3]", "v, m where centered, and a buffer for momentum are needed"},
        {"f32[3, 2];f32[3, 2];i64;f64;f64;f32[2];f32[3]", "adafactor(%a, %b, %c, %d, %e, %f, %g)",
         "f32[3, 2], f32[3], f32[2]", "the states are not rows and cols of a matrix, or v of a vector"},
        {"f32[3, 2];f32[3, 2];i64;f64;f64;f32[3, 2]", "adafactor(%a, %b, %c, %d, %e, %f)",
         "f32[3, 2], f32[3, 2], f32[3, 2]", "the states are not rows and cols of a matrix, or v of a vector"},
        {"f32[3, 2, 2];f32[3, 2, 2];i64;f64;f64;f32[3]", "adafactor(%a, %b, %c, %d, %e, %f)",
         "f32[3, 2, 2], f32[3, 2, 2], f32[3, 2, 2]", "the parameter is neither a matrix nor a vector"},
        {"f32[3];f32[2];i64;f64;f64;f32[3]", "adafactor(%a, %b, %c, %d, %e, %f)", "f32[3], f32[3], f32[3]",
         "shapes differ"},
        {"f32[3];f32[3];i64;f64;f64;f32[3]", "muon(%a, %b, %c, %d, %e, %f)", "f32[3], f32[3]",
         "the parameter is no matrix"},
        {"f32[3, 2];f32[3, 2];i64;f64;f64;f32[3, 2]", "muon(%a, %b, %c, %d, %e, %f; ns_steps = 100)",
         "f32[3, 2], f32[3, 2]", "ns_steps is not from 1 to 99"},
        {"f32[3];bool[N, 3]", "where_grad(%a, %b)", "f32[3], f32[3]",
         "the condition does not broadcast to the gradient"},
        {"f32[3];f64[3]", "clip_by_norm(%a, %b)", "f32[3]", "operand 2 is not a scalar"},
        {"f32[N, 12]", "reshape(%a)", "f32[N, 3, 5]", "counts of elements differ, [12 * N, 15 * N]"},
        {"f32[N, 12]", "reshape(%a)", "f32[12]", "counts of elements differ, [12 * N, 12]"},
        {"f32[N, 3]", "flatten(%a; from = 2)", "f32[N, 3]", "from is not one of the operand's dimensions"},
        {"f32[N, 3]", "transpose(%a; a = 2)", "f32[N, 3]", "a or b is not one of the operand's dimensions"},
        {"f32[N, 3]", "permute(%a; dims = (0, 0))", "f32[N, 3]", "dims must hold each of 0 to 1 once"},
        {"f32[N, 3]", "permute(%a; dims = (0))", "f32[N, 3]", "dims has 1 numbers, the operand 2 dimensions"},
        {"f32[N, 3]", "slice(%a; dim = 1, from = 2, to = 4)", "f32[N, 2]",
         "from 2 to 4 is not within dim 1, which has 3"},
        {"f32[N, 3]", "slice(%a; dim = 1, from = 2, to = 2)", "f32[N, 2]",
         "from 2 to 2 is not within dim 1, which has 3"},
        {"f32[N, 3]", "slice(%a; dim = 0, from = 0, to = 1)", "f32[1, 3]", "dim 0 depends on N"},
        {"f32[N, 3]", "pad(%a; dim = 1, before = -1)", "f32[N, 2]", "before and after must be at least 0"},
        {"f32[N, 3]", "pad(%a; dim = 1, before = 9223372036854775807)", "f32[N, 2]", "is too large"},
        {"f32[N, 3]", "pad(%a; dim = 2, before = 1)", "f32[N, 2]", "dim 2 is not one of the operand's"},
        {"f32[N, 3];f32[2, 3]", "concat(%a, %b; dim = 1)", "f32[N, 6]", "dimensions differ, [N, 2]"},
        {"f32[N, 3];f32[3]", "concat(%a, %b; dim = 1)", "f32[N, 6]", "ranks differ"},
        {"f32[3];f32[N]", "concat(%a, %b)", "f32[N]", "dim 0 depends on N"},
        {"f32[3];f32[4]", "stack(%a, %b)", "f32[2, 3]", "shapes differ"},
        {"f32[3]", "stack(%a; dim = 2)", "f32[1, 3]", "dim is not one of the result's"},
        {"f32[1, 1, 1, 1, 1, 1, 1, 1]", "stack(%a)", "f32[1]", "the result would have more than 8 dimensions"},
        {"f32[3, 2]", "expand(%a)", "f32[N, 3, 4]", "does not broadcast to the result, [N, 3, 4]"},
        {"f32[3, 1]", "expand(%a)", "f32[4]", "does not broadcast to the result, [4]"},
        {"i32[N];f32[9]", "embedding(%a, %b)", "f32[N]", "needs a table [count, dim] that does not depend on N or T"},
        {"f32[N, 8];i32[N, 5];f32[100, 8]", "embedding_grad(%a, %b, %c)", "f32[100, 8]",
         "the gradient is [N, 8], not [N, 5, 8]"},
        {"f32[8, N];i32[8]", "embedding_grad(%a, %b, %a)", "f32[8, N]",
         "needs a table [count, dim] that does not depend on N or T"},
        {"i32[N];f32[9, 4]", "distinct_rows(%a, %b)", "i32[N], i32[N], i32[9]", "the ids are not a column"},
        {"i32[N, 1];f32[9]", "distinct_rows(%a, %b)", "i32[N], i32[N], i32[9]",
         "needs a table [count, dim] that does not depend on N or T"},
        {"f32[N, 9]", "max_pool2d(%a)", "f32[N, 9], i32[N, 9]", "needs images of rank 4"},
        {"f32[N, 3, 9, 9]", "avg_pool2d(%a; kernel = (2, 3), padding = (1, 2))", "f32[1]",
         "padding is more than half the kernel"},
        {"f32[N, 3, 9, 9]", "avg_pool2d(%a; kernel = (0, 3))", "f32[1]", "kernel must be at least 1"},
        {"f32[N, 3, 3, 4];i32[N, 3, 3, 3];f32[N, 3, 9, 8]",
         "max_pool2d_grad(%a, %b, %c; kernel = (3, 2), stride = (3, 2))", "f32[N, 3, 9, 8]",
         "the chosen elements is [N, 3, 3, 3], not [N, 3, 3, 4]"},
        {"f32[N, 8];f32[N, 8];f32[N, 8]", "attention(%a, %b, %c)", "f32[N, 8], f32[N, 1]",
         "needs queries, keys and values [..., heads, length, width] of one rank"},
        {"f32[N, 4, 5, 8];f32[N, 3, 5, 8];f32[N, 3, 5, 8]", "attention(%a, %b, %c)", "f32[N, 4, 5, 8], f32[N, 4, 5, 1]",
         "the number of query heads must be a multiple of the number of key heads"},
        {"f32[N, 4, 5, 8];f32[N, 4, 6, 8];f32[N, 4, 5, 8]", "attention(%a, %b, %c)", "f32[N, 4, 5, 8], f32[N, 4, 5, 1]",
         "lengths of keys and values differ, [6, 5]"},
        {"f32[N, 4, 5, 8];f32[N, 4, 5, 9];f32[N, 4, 5, 8]", "attention(%a, %b, %c)", "f32[N, 4, 5, 8], f32[N, 4, 5, 1]",
         "widths of queries and keys differ, [8, 9]"},
        {"f32[N, 4, 5, 8];f32[N, 4, 5, 8];f32[N, 4, 5, 8];f32[6]", "attention(%a, %b, %c, %d)",
         "f32[N, 4, 5, 8], f32[N, 4, 5, 1]", "the mask does not broadcast to the scores [N, 4, 5, 5]"},
        {"f32[N, 5, 8];f32[N, 5, 8];f32[N, 5, 8];f32[N, 5, 8];f32[N, 5, 8];f32[N, 5]",
         "attention_grad(%a, %b, %c, %d, %e, %f)", "f32[N, 5, 8], f32[N, 5, 8], f32[N, 5, 8]",
         "the logarithm of the sums is [N, 5], not [N, 5, 1]"},
        {"f32[N];f32[N];f32[N];f32[N];f32[N]", "batch_norm_eval(%a, %b, %c, %d, %e)", "f32[N]", "needs x [N, C, ...]"},
        {"f32[N, 5];f32[5];f32[4];f32[5];f32[5]", "batch_norm_eval(%a, %b, %c, %d, %e)", "f32[N, 5]",
         "operand 3 is [4], not [5]"},
        {"f32[N, 3, 5]", "adaptive_avg_pool2d(%a; out = (2, 2))", "f32[N, 3, 2, 2]", "needs images of rank 4"},
        {"f32[N, 3, 5, 5]", "adaptive_avg_pool2d(%a; out = (2, 0))", "f32[N, 3, 2, 2]", "out must be at least 1"},
        {"f32[2, 3, 5, N]", "upsample(%a)", "f32[2, 3, 10, 2 * N]", "the width of an image may not depend on N"},
        {"f32[N, 3, 5, 5]", "upsample(%a; scale = (0, 1))", "f32[N, 3, 5, 5]", "scale must be at least 1"},
        {"f32[N, 3, 5, 5]", "upsample(%a; size = (0, 1))", "f32[N, 3, 5, 5]", "size must be at least 1"},
        {"f32[N, 3, 5, 5]", "upsample(%a; scale = (1, 900000000))", "f32[N, 3, 5, 5]", "is too large"},
        {"f32[N, 3, 5, 5]", "upsample(%a; align_corners = true)", "f32[N, 3, 10, 10]",
         "align_corners is for mode = bilinear"},
        {"f32[N, 3, 5, 5];f32[N, 3, 5, 5]", "upsample_grad(%a, %b)", "f32[N, 3, 5, 5]",
         "the gradient is [N, 3, 5, 5], not [N, 3, 10, 10]"},
        {"f32[N];f32[1]", "group_norm(%a, %b)", "f32[N], f32[N, 1], f32[N, 1]", "needs x [N, C, ...]"},
        {"f32[N, 6, 2];f32[6]", "group_norm(%a, %b; groups = 4)", "f32[N, 6, 2], f32[N, 6], f32[N, 6]",
         "4 groups do not divide 6 channels"},
        {"f32[N, 6, 2];f32[6]", "group_norm(%a, %b; groups = 0)", "f32[N, 6, 2], f32[N, 6], f32[N, 6]",
         "groups must be at least 1"},
        {"f32[N, 6, 2];f32[2]", "group_norm(%a, %b; groups = 2)", "f32[N, 6, 2], f32[N, 6], f32[N, 6]",
         "operand 2 is [2], not [6]"},
        {"f32[N, 6, 1];f32[6]", "instance_norm(%a, %b)", "f32[N, 6, 1], f32[N, 6], f32[N, 6]",
         "needs more than one element in each channel of a sample"},
        {"f32[N, 6, 7];f32[N, 6, 7];f32[6];f32[N, 6];f32[N, 6]", "group_norm_grad(%a, %b, %c, %d, %e; groups = 4)",
         "f32[N, 6, 7], f32[6], f32[6]", "4 groups do not divide 6 channels"},
        {"f32[N, 6, 7];f32[N, 6, 7];f32[6];f32[N, 2];f32[N, 6]", "group_norm_grad(%a, %b, %c, %d, %e)",
         "f32[N, 6, 7], f32[6], f32[6]", "the mean is [N, 2], not [N, 6]"},
        {"f32[N, 5];f32[4]", "rms_norm(%a, %b)", "f32[N, 5], f32[N, 1]", "operand 2 is [4], not [5]"},
        {"f32[N, 3, 4, 4];f32[2, 8, 2, 2]", "conv_transpose2d(%a, %b)", "f32[N, 8, 5, 5]",
         "channels of image and weight differ, [2, 3]"},
        {"f32[N, 3, 4, 4];f32[3, 8, 2, 2]", "conv_transpose2d(%a, %b; output_padding = (1, 0))", "f32[N, 8, 6, 5]",
         "output_padding 1 must be at least 0 and less than stride 1 or dilation 1"},
        {"f32[N, 3, 1, 4];f32[3, 8, 2, 2]", "conv_transpose2d(%a, %b; padding = (1, 0))", "f32[N, 8, 1, 5]",
         "the result would have a height of 0: padding 1 takes all of it away"},
        {"f32[N, 5];f32[4]", "layer_norm(%a, %b)", "f32[N, 5], f32[N, 1], f32[N, 1]", "operand 2 is [4], not [5]"},
        {"f32[5, N];f32[5]", "layer_norm(%a, %b)", "f32[5, N], f32[5, 1], f32[5, 1]",
         "the last dimension may not depend on N"},
        {"f32[N, 5];f32[N, 5];f32[5];f32[N];f32[N, 1]", "layer_norm_grad(%a, %b, %c, %d, %e)",
         "f32[N, 5], f32[5], f32[5]", "the mean is [N], not [N, 1]"},
        {"f32", "argmax(%a; dim = 0)", "i32", "needs a dimension to search"},
        {"f32[N, 3]", "argmax(%a; dim = 2)", "i32[N]", "dim 2 is not one of the operand's"},
        {"f32", "top_k(%a)", "f32, i32", "needs a dimension to search"},
        {"f32[N, 3]", "top_k(%a; k = 4)", "f32[N, 4], i32[N, 4]", "k is 4, not one of 1 .. 3"},
        {"f32[N, 3]", "top_k(%a; dim = 0)", "f32[1, 3], i32[1, 3]", "the dimension may not depend on N"},
        {"f32[N, 2];i32[N, 2];f32[N, 3, 4]", "top_k_grad(%a, %b, %c)", "f32[N, 3, 4]",
         "the gradient is not of x's rank"},
        {"f32[N, 2];i32[N, 3];f32[N, 3]", "top_k_grad(%a, %b, %c)", "f32[N, 3]",
         "the tensor of indexes is [N, 3], not [N, 2]"},
        {"f32[3];f32[N, 4];f32[N]", "extreme_grad(%a, %b, %c; dims = (1))", "f32[N, 4]",
         "the gradient is not a reduction of x"},
        {"f32[N];f32[N, 1]", "mse_loss(%a, %b)", "f32", "shapes differ"},
        {"f32[N];f32[N];f32[N]", "mse_loss_grad(%a, %b, %c)", "f32[N], f32[N]", "operand 1 is not a scalar"},
        {"f32[N, 4];i32[N, 4]", "top_k_accuracy(%a, %b)", "f32", "the targets are not one per row"},
        {"f32[N, 4];i32[N]", "top_k_accuracy(%a, %b; k = 0)", "f32", "k must be at least 1"},
        {"i64[2]", "cosine_rate(%a)", "f64", "operand 1 is not a scalar"},
    };
    for (const auto &c : cases) {
        std::string name = std::string(c.op).substr(0, std::string(c.op).find('('));
        std::string got = Check("simplify", c.types, c.op, c.results), want = "f: " + name + ": " + c.message;
        EXPECT_EQ(got.substr(0, want.size()), want) << c.types << " " << c.op;
        EXPECT_TRUE(got.size() == want.size() || got[want.size()] == ':') << got;
    }
}

TEST_F(ShapeTest, RefusedCoreOps) {
    const Wrong cases[] = {
        {"f32[N, 4];f32[5, 3]", "contract(%a, %b)", "f32[N, 3]", "inner dimensions differ, [4, 5]"},
        {"f32[N, 4];f32[2, 4, 3]", "contract(%a, %b)", "f32[N, 3]", "needs [..., k] and [k, c]"},
        {"f32[N, 9, 4];f32[N, 3]", "contract(%a, %b; ta = true)", "f32[4, 3]", "inner dimensions differ, [9 * N, N]"},
        {"f32[N, 4];f32[N, 3]", "contract(%a, %b; ta = true, parts = 0)", "f32[4, 3]", "0 parts are not 1 to 1024"},
        {"f32[3]", "sum_parts(%a)", "f32", "needs [parts, ...]"},
        {"f32[N, 3]", "sum_parts(%a)", "f32[3]", "the number of parts may not depend on N"},
        {"f32[N, 1, 5, 8];f32[N, 5, 8];f32[N, 1, 5, 1];i32[N, 1, 5, 2]",
         "attend_grad(%a, %a, %a, %a, %b, %c, %d; p = 0.5)", "f32[N, 5, 8], f32[N, 5, 8], f32[N, 5, 8]",
         "the last operand is [N, 1, 5, 2], not [N, 1, 2, 5]"},
        {"f32[1, 5, 4];f32[N, 4, 3]", "batch_contract(%a, %b)", "f32[N, 5, 3]", "leading dimensions differ"},
        {"f32[N, 14, 27, 8];f32[3, 3, 8, 3]", "conv_data(%a, %b; stride = (2, 1), padding = (1, 1))",
         "f32[N, 28, 28, 3]", "the gradient is [N, 14, 27, 8], not [N, 14, 28, 8]"},
        {"f32[N, 7, 7, 8];f32[3, 3, 8, 4]", "conv_data(%a, %b)", "f32[N, 9, 9, 3]",
         "channels of image and weight differ, [4, 3]"},
        {"f32[N, 9, 9, 3];f32[N, 7, 7, 8]", "conv_weight(%a, %b)", "f32[3, 3, 4, 8]",
         "input channels per group differ, [3, 4]"},
        {"f32[N, 9, 9, 3];f32[N, 7, 7, 8]", "conv_weight(%a, %b)", "f32[4, 3, 3, 8]",
         "the gradient is [N, 7, 7, 8], not [N, 6, 7, 8]"},
        {"f32[N, 9, 9, 4];f32[N, 7, 7, 8]", "conv_weight(%a, %b; groups = 2, parts = 2)", "f32[2, 3, 3, 2, 8]",
         "parts need a convolution with groups = 1"},
        {"f32[N, 9, 9, 3];f32[N, 7, 7, 8]", "conv_weight(%a, %b; parts = 2)", "f32[3, 3, 3, 8]",
         "needs images and a weight of rank 4"},
        {"f32[N, 5, 4, 3]", "resample(%a)", "f32[N, 2, 9, 2]", "channels differ, [3, 2]"},
        {"f32[N, 5, 4, 3]", "resample(%a)", "f32[4, 2, 9, 3]", "samples differ, [N, 4]"},
        {"f32[N, 5, 4, 3]", "resample_grad(%a)", "f32[N, 5, 3]", "needs images of rank 4"},
        {"f32[N, 5, 4, 3]", "resample(%a)", "f32[N, N, 9, 3]", "a height or width is out of range"},
        {"f32[N, 3, 4, 3]", "window_sum_grad(%a; kernel = (3, 2), stride = (3, 2))", "f32[N, 9, 10, 3]",
         "the gradient is [N, 3, 4, 3], not [N, 3, 5, 3]"},
        {"f32[50];i32[N]", "gather(%a, %b)", "f32[N]", "needs a table [count, dim] that does not depend on N or T"},
        {"f32[N, 7];i32[N]", "scatter(%a, %b)", "f32[50, 8]", "the gradient is [N, 7], not [N, 8]"},
        {"f32[N];i64;i64;i64[1]", "random(%a, %b, %c, %d)", "f32[N]", "operand 4 is not a scalar"},
    };
    for (const auto &c : cases) {
        std::string name = std::string(c.op).substr(0, std::string(c.op).find('('));
        std::string want = "f: " + name + ": " + c.message + ":", got = Check("lower", c.types, c.op, c.results);
        EXPECT_EQ(got.substr(0, want.size()), want) << c.types << " " << c.op;
    }
}

TEST_F(ShapeTest, OpsWhoseResultIsGivenNeedIt) {
    Module *m = ir_module_new(&arena_, "m");
    Func *f = ir_func_new(m, "f");
    Dim d[] = {dim_n(1, 1), dim_const(4)};
    Val x = ir_add_input(f, "x", AMP_DT_F32, shape_of(2, d));
    Op *o = ir_op_new(f, OP_reshape, &x, 1);
    InferredTypes types;
    EXPECT_STREQ(ir_infer(f, o, AMP_DT_F32, &types), "reshape: needs its result's type: %x is f32[N, 4]");
    d[0] = dim_n(2, 1), d[1] = dim_const(2);
    Val y = ir_result(f, o, "y", AMP_DT_F32, shape_of(2, d));
    EXPECT_EQ(ir_infer(f, o, AMP_DT_F32, &types), nullptr);
    EXPECT_EQ(ir_make_results(f, o, AMP_DT_F32, "z").id, y.id); /* the given one stays the only one */
    EXPECT_EQ(o->n_out, 1);
    EXPECT_EQ(ir_verify(m), nullptr);
}

} // namespace
