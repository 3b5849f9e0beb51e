// simplify_test.cc: each rule before and after, and what must not be touched.
#include "tests/passes/core_pass_test.h"

namespace {

struct Case {
    std::string name, before, after; /* ops after simplification and compaction */
};

const std::string kPooledRelu =
    "input %x : f32[N, 2, 4, 5]\ninput %dp : f32[N, 2, 2, 3]\n%r = relu(%x) : f32[N, 2, 4, 5]\n"
    "%p, %w = max_pool2d(%r; kernel = (3, 3), stride = (2, 2), padding = (1, 1)) : f32[N, 2, 2, 3], i32[N, 2, 2, 3]\n"
    "%dr = max_pool2d_grad(%dp, %w, %r; kernel = (3, 3), stride = (2, 2), padding = (1, 1)) : f32[N, 2, 4, 5]\n"
    "%dx = relu_grad(%dr, %r) : f32[N, 2, 4, 5]\n";

const Case kCases[] = {
    {"cast_to_own_dtype", "input %x : f32[N, 4]\n%1 = cast(%x) : f32[N, 4]\n%y = neg(%1) : f32[N, 4]\nresult y = %y\n",
     "%y = neg(%x)\n"},
    {"widen_then_narrow_to_another",
     "input %x : bf16[N, 4]\n%1 = cast(%x) : f32[N, 4]\n%y = cast(%1) : f16[N, 4]\nresult y = %y\n", "%y = cast(%x)\n"},
    {"widen_then_narrow_back",
     "input %x : f16[N, 4]\n%1 = cast(%x) : f32[N, 4]\n%2 = cast(%1) : f16[N, 4]\n%y = neg(%2) : f16[N, 4]\nresult y = "
     "%y\n",
     "%y = neg(%x)\n"},
    {"widen_twice",
     "input %x : bf16[N, 4]\n%1 = cast(%x) : tf32[N, 4]\n%2 = cast(%1) : f32[N, 4]\n%y = neg(%2) : f32[N, 4]\nresult y "
     "= %y\n",
     "%2 = cast(%x)\n%y = neg(%2)\n"},
    {"a_rounding_is_a_meaning",
     "input %x : f32[N, 4]\n%1 = cast(%x) : f16[N, 4]\n%2 = cast(%1) : f32[N, 4]\n%y = neg(%2) : f32[N, 4]\nresult y = "
     "%y\n",
     "%1 = cast(%x)\n%2 = cast(%1)\n%y = neg(%2)\n"},
    {"bf16_is_not_held_by_f16",
     "input %x : bf16[N, 4]\n%1 = cast(%x) : f16[N, 4]\n%2 = cast(%1) : f32[N, 4]\n%y = neg(%2) : f32[N, 4]\nresult y "
     "= %y\n",
     "%1 = cast(%x)\n%2 = cast(%1)\n%y = neg(%2)\n"},
    {"i32_is_not_held_by_f32",
     "input %x : i32[N, 4]\n%1 = cast(%x) : f32[N, 4]\n%2 = cast(%1) : f16[N, 4]\n%y = neg(%2) : f16[N, 4]\nresult y = "
     "%y\n",
     "%1 = cast(%x)\n%2 = cast(%1)\n%y = neg(%2)\n"},
    {"same_cast_before",
     "input %x : f32[N, 4]\n%1 = cast(%x) : f16[N, 4]\n%2 = cast(%x) : f16[N, 4]\n%3 = cast(%x) : bf16[N, 4]\n"
     "%y = add(%1, %2) : f16[N, 4]\nresult y = %y\nresult z = %3\n",
     "%1 = cast(%x)\n%3 = cast(%x)\n%y = add(%1, %1)\n"},
    {"add_negative_zero",
     "input %x : f32[N, 4]\n%1 = const(; value = -0.0) : f32\n%2 = add(%1, %x) : f32[N, 4]\n%y = neg(%2) : f32[N, "
     "4]\nresult y = %y\n",
     "%y = neg(%x)\n"},
    {"adding_zero_changes_negative_zero",
     "input %x : f32[N, 4]\n%1 = const(; value = 0.0) : f32\n%y = add(%x, %1) : f32[N, 4]\nresult y = %y\n",
     "%1 = const()\n%y = add(%x, %1)\n"},
    {"subtract_zero",
     "input %x : f32[N, 4]\n%1 = const(; value = 0.0) : f32\n%2 = sub(%x, %1) : f32[N, 4]\n%y = neg(%2) : f32[N, "
     "4]\nresult y = %y\n",
     "%y = neg(%x)\n"},
    {"subtracting_from_zero_stays",
     "input %x : f32[N, 4]\n%1 = const(; value = 0.0) : f32\n%y = sub(%1, %x) : f32[N, 4]\nresult y = %y\n",
     "%1 = const()\n%y = sub(%1, %x)\n"},
    {"multiply_by_one",
     "input %x : f16[N, 4]\n%1 = const(; value = 1.0) : f16\n%2 = mul(%1, %x) : f16[N, 4]\n%y = neg(%2) : f16[N, "
     "4]\nresult y = %y\n",
     "%y = neg(%x)\n"},
    {"multiplying_by_one_may_convert",
     "input %x : f16[N, 4]\n%1 = const(; value = 1.0) : f32\n%y = mul(%1, %x) : f32[N, 4]\nresult y = %y\n",
     "%1 = const(; value = 1.0)\n%y = mul(%1, %x)\n"},
    {"multiplying_by_zero_keeps_nan",
     "input %x : f32[N, 4]\n%1 = const(; value = 0.0) : f32\n%y = mul(%x, %1) : f32[N, 4]\nresult y = %y\n",
     "%1 = const()\n%y = mul(%x, %1)\n"},
    {"divide_by_one",
     "input %x : f32[N, 4]\n%1 = const(; value = 1.0) : f32\n%2 = div(%x, %1) : f32[N, 4]\n%y = neg(%2) : f32[N, "
     "4]\nresult y = %y\n",
     "%y = neg(%x)\n"},
    {"one_divided_stays",
     "input %x : f32[N, 4]\n%1 = const(; value = 1.0) : f32\n%y = div(%1, %x) : f32[N, 4]\nresult y = %y\n",
     "%1 = const(; value = 1.0)\n%y = div(%1, %x)\n"},
    {"negate_twice",
     "input %x : f32[N, 4]\n%1 = neg(%x) : f32[N, 4]\n%2 = neg(%1) : f32[N, 4]\n%y = exp(%2) : f32[N, 4]\nresult y = "
     "%y\n",
     "%y = exp(%x)\n"},
    {"move_nothing",
     "input %x : f32[N, 4]\n%1 = reshape(%x) : f32[N, 4]\n%2 = slice(%1; dim = 1, to = 4) : f32[N, 4]\n%3 = pad(%2; "
     "dim = "
     "1) : f32[N, 4]\n%4 = concat(%3; dim = 1) : f32[N, 4]\n%5 = expand(%4) : f32[N, 4]\n%6 = flatten(%5) : f32[N, "
     "4]\n%y = neg(%6) : f32[N, 4]\nresult y = %y\n",
     "%y = neg(%x)\n"},
    {"reshape_again",
     "input %x : f32[N, 4]\n%1 = reshape(%x) : f32[N, 2, 2]\n%2 = reshape(%1) : f32[2 * N, 2]\n%y = neg(%2) : f32[2 * "
     "N, "
     "2]\nresult y = %y\n",
     "%2 = reshape(%x)\n%y = neg(%2)\n"},
    {"flatten_and_back",
     "input %x : f32[N, 2, 2]\n%1 = flatten(%x) : f32[N, 4]\n%2 = reshape(%1) : f32[N, 2, 2]\n%y = neg(%2) : f32[N, 2, "
     "2]\nresult y = %y\n",
     "%y = neg(%x)\n"},
    {"transpose_back",
     "input %x : f32[N, 3, 3]\n%1 = transpose(%x; a = 1, b = 2) : f32[N, 3, 3]\n%2 = transpose(%1; a = -1, b = -2) : "
     "f32[N, 3, 3]\n%y = neg(%2) : f32[N, 3, 3]\nresult y = %y\n",
     "%y = neg(%x)\n"},
    {"a_square_that_is_transposed_moves",
     "input %x : f32[N, 3, 3]\n%1 = transpose(%x) : f32[N, 3, 3]\n%2 = permute(%1; dims = (0, 2, 1)) : f32[N, 3, "
     "3]\n%y = "
     "neg(%2) : f32[N, 3, 3]\nresult y = %y\n",
     "%1 = transpose(%x)\n%2 = permute(%1; dims = (0, 2, 1))\n%y = neg(%2)\n"},
    {"two_pieces_stay",
     "input %x : f32[N, 4]\n%1 = slice(%x; dim = 1, to = 2) : f32[N, 2]\n%2 = concat(%1, %1; dim = 1) : f32[N, 4]\n%y "
     "= "
     "neg(%2) : f32[N, 4]\nresult y = %y\n",
     "%1 = slice(%x; dim = 1, to = 2)\n%2 = concat(%1, %1; dim = 1)\n%y = neg(%2)\n"},
    {"relu_behind_max_pooling", kPooledRelu + "result y = %p\nresult dx = %dx\n",
     "%1, %w = max_pool2d(%x; kernel = (3, 3), stride = (2, 2), padding = (1, 1))\n%p = relu(%1)\n"
     "%4 = relu_grad(%dp, %p)\n"
     "%dx = max_pool2d_grad(%4, %w, %x; kernel = (3, 3), stride = (2, 2), padding = (1, 1))\n"},
    {"a_relu_that_others_read_stays", kPooledRelu + "result y = %p\nresult dx = %dx\nresult r = %r\n",
     "%r = relu(%x)\n%p, %w = max_pool2d(%r; kernel = (3, 3), stride = (2, 2), padding = (1, 1))\n"
     "%dr = max_pool2d_grad(%dp, %w, %r; kernel = (3, 3), stride = (2, 2), padding = (1, 1))\n"
     "%dx = relu_grad(%dr, %r)\n"},
    {"a_gradient_that_others_read_stays", kPooledRelu + "result y = %p\nresult dx = %dx\nresult dr = %dr\n",
     "%r = relu(%x)\n%p, %w = max_pool2d(%r; kernel = (3, 3), stride = (2, 2), padding = (1, 1))\n"
     "%dr = max_pool2d_grad(%dp, %w, %r; kernel = (3, 3), stride = (2, 2), padding = (1, 1))\n"
     "%dx = relu_grad(%dr, %r)\n"},
    {"a_relu_that_is_pooled_twice_stays",
     "input %x : f32[N, 2, 4, 4]\n%r = relu(%x) : f32[N, 2, 4, 4]\n"
     "%p, %w = max_pool2d(%r; kernel = (2, 2), stride = (2, 2)) : f32[N, 2, 2, 2], i32[N, 2, 2, 2]\n"
     "%q, %v = max_pool2d(%r; kernel = (1, 2), stride = (1, 2)) : f32[N, 2, 4, 2], i32[N, 2, 4, 2]\n"
     "result p = %p\nresult q = %q\n",
     "%r = relu(%x)\n%p, %w = max_pool2d(%r; kernel = (2, 2), stride = (2, 2))\n"
     "%q, %v = max_pool2d(%r; kernel = (1, 2), stride = (1, 2))\n"},
    {"pooling_that_keeps_the_size_gains_nothing",
     "input %x : f32[N, 2, 4, 4]\n%r = relu(%x) : f32[N, 2, 4, 4]\n"
     "%p, %w = max_pool2d(%r; kernel = (3, 3), padding = (1, 1)) : f32[N, 2, 4, 4], i32[N, 2, 4, 4]\n"
     "result y = %p\n",
     "%r = relu(%x)\n%p, %w = max_pool2d(%r; kernel = (3, 3), padding = (1, 1))\n"},
    {"a_result_may_become_an_input", "input %x : f32[N, 4]\n%y = cast(%x) : f32[N, 4]\nresult y = %y\n", ""},
};

class SimplifyTest : public CorePassTest {};

TEST_F(SimplifyTest, EachRule) {
    for (const Case &c : kCases) {
        SCOPED_TRACE(c.name);
        Module *before = ReadFunc("optimizer", c.before), *m = ReadFunc("optimizer", c.before);
        ASSERT_TRUE(m && before);
        ASSERT_TRUE(Run(m, pass_simplify));
        EXPECT_EQ(c.after, Ops(m->funcs.data[0]));
        EXPECT_EQ(0, m->removed.len);
        for (unsigned seed = 0; seed < 3; seed++)
            ExpectEqual(Interpret(before->funcs.data[0], 5, true, seed), Interpret(m->funcs.data[0], 5, true, seed), 0);
    }
}

TEST_F(SimplifyTest, IsSkippedOnRequest) {
    options_.no_simplify = true;
    Module *m = ReadFunc("optimizer", kCases[0].before);
    ASSERT_TRUE(Run(m, pass_simplify));
    EXPECT_EQ(STAGE_SIMPLIFY, m->stage);
    EXPECT_EQ("%1 = cast(%x)\n%y = neg(%1)\n", Ops(m->funcs.data[0]));
}

// ---- the one rule that changes bits ---------------------------------------------------------------------------------

const char kWeight[] = "state %w : f32[4, 3] param = zeros()\nstate %step : i64 counter\n";

std::string WithGradient(const std::string &maker, const std::string &users) {
    return "input %x : f16[N, 3]\ninput %dy : f16[N, 4]\nstate %w : f32[4, 3]\nstate %step : i64\n" + maker +
           "%d = cast(%d.h) : f32[4, 3] @fc.linear.grad because {gradient, of fc.linear}\n" + users;
}

const char kProduct[] =
    "%d.h = matmul(%dy, %x; ta = true) : f16[4, 3] @fc.linear.grad.weight because {gradient, of fc.linear}\n";
const char kUpdate[] = "%lr = const(; value = 0.1) : f64\n%decay = const() : f64\n"
                       "%w.next, %b = sgd(%w, %d, %step, %lr, %decay) : f32[4, 3], f32[4, 3]\nassign(%w, %w.next)\n";

TEST_F(SimplifyTest, AProductWritesItsWeightGradientInF32) {
    Module *m = ReadFunc("optimizer", WithGradient(kProduct, std::string(kUpdate) + "result grad.w = %d\n"), kWeight);
    ASSERT_TRUE(Run(m, pass_simplify));
    const Func *f = m->funcs.data[0];
    EXPECT_EQ("%d = matmul(%dy, %x; ta = true)\n%lr = const(; value = 0.1)\n%decay = const()\n"
              "%w.next, %b = sgd(%w, %d, %step, %lr, %decay)\nassign(%w, %w.next)\n",
              Ops(f));
    EXPECT_EQ(AMP_DT_F32, ir_dtype(f, ir_op_at(f, 0)->out[0]));
    ASSERT_EQ(1, m->removed.len);
    EXPECT_STREQ("f", m->removed.data[0].func);
    EXPECT_STREQ("d", m->removed.data[0].value);
    EXPECT_STREQ("f16 rounding of a weight gradient: the product writes f32", m->removed.data[0].what);
    EXPECT_STREQ("weight_gradient", ir_op_at(f, 0)->reason->rule);
    EXPECT_STREQ("fc.linear", ir_op_at(f, 0)->reason->neighbour);
}

TEST_F(SimplifyTest, ARoundingThatOthersSeeStays) {
    const std::string update = kUpdate;
    const std::string cases[] = {
        WithGradient(kProduct, update + "%n = neg(%d) : f32[4, 3]\nresult n = %n\n"),   // read beside the update
        WithGradient(kProduct, update + "result y = %d\n"),                             // a result that is no gradient
        WithGradient(kProduct, update + "%n = neg(%d.h) : f16[4, 3]\nresult n = %n\n"), // the rounded value is read
        WithGradient(kProduct, "result grad.w = %d\n"),                                 // updates nothing
        WithGradient("%p = matmul(%dy, %x; ta = true) : f16[4, 3]\n%d.h = neg(%p) : f16[4, 3]\n", update),
    };
    for (const std::string &text : cases) {
        Module *m = ReadFunc("optimizer", text, kWeight);
        ASSERT_TRUE(Run(m, pass_simplify));
        EXPECT_EQ(0, m->removed.len) << text;
        EXPECT_NE(std::string::npos, Ops(m->funcs.data[0]).find("%d = cast(%d.h)")) << text;
    }
}

TEST_F(SimplifyTest, AnMlpLosesTheRoundingsOfItsGradientsOnly) {
    Module *m = Read(Golden("mlp_f16.optimizer.ir"));
    ASSERT_TRUE(Run(m, pass_simplify));
    ASSERT_EQ(4, m->removed.len);
    EXPECT_STREQ("d.fc2.weight", m->removed.data[0].value);
    EXPECT_STREQ("f16 rounding of a weight gradient: the sum writes f32", m->removed.data[1].what);
    // The forward pass keeps every cast.
    Module *before = Read(Golden("mlp_f16.optimizer.ir"));
    EXPECT_EQ(Ops(ir_func_find(before, "infer")), Ops(ir_func_find(m, "infer")));
    Module *f32 = Read(Golden("mlp_f32.optimizer.ir"));
    ASSERT_TRUE(Run(f32, pass_simplify));
    EXPECT_EQ(0, f32->removed.len);
}

} // namespace
