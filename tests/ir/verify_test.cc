// One broken module per rule of the verifier, with its exact message.
#include "tests/ir/ir_test.h"

namespace {

using Verify_ = IrTest;

std::string At(const std::string &stage, const std::string &lines, const std::string &states = "") {
    return "module \"m\" stage " + stage + " { }\n" + states + "\nfunc f {\n" + lines + "\n}\n";
}

std::string Graph(const std::string &lines) {
    return At("simplify",
              "input %x : f32[N, 4]\ninput %h : f16[N, 4]\ninput %w : f32[3, 4]\ninput %t : i32[N]\n"
              "input %ok : bool\nstate %s : f32\n" +
                  lines,
              "state %s : f32 param");
}

std::string Core(const std::string &lines) {
    return At("lower",
              "input %x : f32[N, 4]\ninput %h : f16[N, 4]\ninput %i : i32[N]\ninput %b : bool[N, 4]\n"
              "input %d : f64\ninput %l : i64\nstate %s : f32\n" +
                  lines,
              "state %s : f32 param");
}

// A scalar's and two matrices' buffers, touched by two kernels.
std::string Places(const std::string &buffers) {
    return At("plan", "input %x : f32[4, 2]\ninput %s : f32\nkernel j tile \"\" {\n%1 = neg(%x) : f32[4, 2]\n}\nkernel "
                      "k tile \"\" {\n%2 = neg(%1) : f32[4, 2]\n}\n" +
                          buffers);
}

// A copy of a weight, stored so, and its buffer, which a kernel reads.
std::string Copy(const std::string &stored, const std::string &buffer) {
    return At("plan",
              "state %a : f32[2, 3]\nstate %a.h : f32[2, 3]\nkernel k tile \"\" {\n%1 = neg(%a.h) : f32[2, 3]\n}\n" +
                  buffer,
              "state %a : f32[2, 3] param\nstate %a.h : f32[2, 3] derived of a stored f32 rows" + stored);
}

TEST_F(Verify_, Rules) {
    const struct {
        std::string text, message;
    } cases[] = {
        // states
        {"module \"m\" stage lower { } state %a : f32[N] param", "state a depends on N"},
        {"module \"m\" stage lower { } state %a : f32 moment m", "state a does not name the state that it belongs to"},
        {"module \"m\" stage lower { } state %a : f32 derived of b",
         "state a does not name the state that it belongs to"},
        {At("lower", "state %a : f32"), "f: %a: the module has no such state"},
        {At("lower", "state %a : f32", "state %a : f32[4] param"), "f: %a is f32, the state f32[4]"},
        {At("lower", "state %a : f32", "state %a : f16 param"), "f: %a is f32, the state f16"},
        // calls
        {"module \"m\" stage lower { } state %a : f32 param = normal(std = x)",
         "initialiser normal: argument std has the wrong type"},
        {"module \"m\" stage lower { train optimizer sgd(lr = 0.1, nesterov = yes) }",
         "optimizer sgd: argument nesterov has the wrong type"},
        {"module \"m\" stage lower { train optimizer sgd(lr = step(base = 0.1, every = 0.5, gamma = 0.1)) }",
         "schedule step: argument every has the wrong type"},
        {"module \"m\" stage lower { loss_scale static(v = 1e-46) }",
         "loss scale static: v must be from 2^-126 (1.2e-38) to 2^126 (8.5e37)"},
        {"module \"m\" stage lower { loss_scale dynamic(init = 8.0, min = 0.0) }",
         "loss scale dynamic: min must be from 2^-126 (1.2e-38) to 2^126 (8.5e37)"},
        {"module \"m\" stage lower { masters f64() }",
         "masters f64: it must be bf16 or f16, with rounding = stochastic or nearest, or f8"},
        {"module \"m\" stage lower { moments bf16(rounding = up) }",
         "moments bf16: it must be bf16 or f16, with rounding = stochastic or nearest, or f8"},
        {"module \"m\" stage lower { moments bf16(rounding = 1) }",
         "moments bf16: it must be bf16 or f16, with rounding = stochastic or nearest, or f8"},
        {"module \"m\" stage lower { } state %scale : f32 scaler = constant(v = inf)",
         "state scale: initialiser constant: v must be from 2^-126 (1.2e-38) to 2^126 (8.5e37)"},
        // levels
        {Core("%1 = relu(%x) : f32[N, 4] @a.relu"), "f: %1 = relu (a.relu): may not appear at stage lower"},
        {Graph("%1 = is_finite(%x) : bool[N, 4]"), "f: %1 = is_finite: may not appear at stage simplify"},
        // operand types
        {Graph("%1 = linear(%x, %w) : f16[N, 3]"), ""},
        {Graph("%1 = cast(%w) : f16[3, 4]\n%2 = linear(%x, %1) : f16[N, 3]"),
         "f: %2 = linear: not legal at stage simplify with (f32, f16) -> f16"},
        {Graph("%1 = relu(%t) : f32[N]"), "f: %1 = relu: not legal at stage simplify with (i32) -> f32"},
        {Graph("%1 = add(%x, %h) : f32[N, 4]"), ""},
        {Graph("%1 = all_finite(%x, %h, %w) : bool"), ""},
        {Graph("%1 = all_finite(%x, %t) : bool"),
         "f: %1 = all_finite: not legal at stage simplify with (f32, i32) -> bool"},
        {Core("%1 = add(%x, %h) : f32[N, 4]"), "f: %1 = add: not legal at stage lower with (f32, f16) -> f32"},
        {Core("%1 = cast(%x) : f8m[N, 4]"), "f: %1 = cast: cannot make f8m, which stochastic_cast makes"},
        {Core("%1 = add(%h, %h) : f16[N, 4]"), "f: %1 = add: not legal at stage lower with (f16, f16) -> f16"},
        {Core("%1 = add(%x, %x) : f64[N, 4]"), "f: %1 = add: not legal at stage lower with (f32, f32) -> f64"},
        {Core("%1 = contract(%x, %h; tb = true) : f32[N, N]"),
         "f: %1 = contract: not legal at stage lower with (f32, f16) -> f32"},
        {Core("%1 = contract(%h, %h; tb = true) : f16[N, N]"),
         "f: %1 = contract: not legal at stage lower with (f16, f16) -> f16"},
        {Core("%1 = contract(%h, %h; ta = true) : f32[4, 4]"), ""},
        {Core("%1 = select(%b, %x, %h) : f32[N, 4]"),
         "f: %1 = select: not legal at stage lower with (bool, f32, f16) -> f32"},
        {Core("%1 = broadcast(%d, %x) : f64[N, 4]"),
         "f: %1 = broadcast: %1 is f64[N, 4]: this type is for scalars only"},
        {Core("%1 = cast(%h) : bf16[N, 4]\n%2 = cast(%d) : f32\n%3 = cast(%l) : f32"), ""},
        // shapes
        {Graph("%1 = relu(%x) : f32[N, 5]"), "f: %1 = relu: %1 is f32[N, 5], its operands make it f32[N, 4]"},
        {Graph("%1 = matmul(%x, %w) : f32[N, 4]"),
         "f: matmul: inner dimensions differ, [4, 3]: %x is f32[N, 4], %w is f32[3, 4]"},
        {Graph("%1 = linear(%w, %x) : f32[3, N]\n%2 = linear(%x, %w, %w) : f32[N, 3] @fc"),
         "f: fc: linear: needs a bias of rank 1: %x is f32[N, 4], %w is f32[3, 4], %w is f32[3, 4]"},
        {Graph("%1 = add(%x, %w) : f32[N, 4]"), "f: add: shapes do not broadcast: %x is f32[N, 4], %w is f32[3, 4]"},
        {Graph("%1 = relu(%x, %x) : f32[N, 4]"), "f: relu: needs 1 operands, has 2"},
        {Graph("%1 = linear(%x) : f32[N, 4]"), "f: linear: needs 2 to 3 operands, has 1"},
        {Graph("%1 = all_finite() : bool"), "f: all_finite: needs at least 1 operands, has 0"},
        {Graph("%1 = softmax(%x; dim = 2) : f32[N, 4]"),
         "f: softmax: dim 2 is not one of the operand's: %x is f32[N, 4]"},
        {Graph("%1 = sum(%x; dims = (2)) : f32[N]"),
         "f: sum: a dim in dims is not one of the operand's: %x is f32[N, 4]"},
        {Graph("%1 = sum(%x; dims = (1, -1)) : f32[N]"), "f: sum: a dim appears twice in dims: %x is f32[N, 4]"},
        {Graph("%1 = nll_loss(%x, %w) : f32"),
         "f: nll_loss: the targets are not one per row: %x is f32[N, 4], %w is f32[3, 4]"},
        {Graph("%1 = relu_grad(%x, %s) : f32[N, 4]"), "f: relu_grad: shapes differ: %x is f32[N, 4], %s is f32"},
        {Graph("%1 = sum_to(%w, %x) : f32[N, 4]"),
         "f: sum_to: the second does not broadcast to the first: %w is f32[3, 4], %x is f32[N, 4]"},
        {Graph("%1 = broadcast_to(%x, %w) : f32[3, 4]"),
         "f: broadcast_to: the first is not a reduction of the second: %x is f32[N, 4], %w is f32[3, 4]"},
        {Graph("%1 = inverse_scale(%x) : f32"), "f: inverse_scale: operand 1 is not a scalar: %x is f32[N, 4]"},
        // attributes
        {Graph("%1 = dropout(%x; p = 1.0) : f32[N, 4]"), "f: %1 = dropout: p must be at least 0 and less than 1"},
        {Graph("%1 = gelu(%x; approximate = erf) : f32[N, 4]"), "f: %1 = gelu: approximate must be none or tanh"},
        // checkpoints and barriers
        {At("autocast", "input %x : f32\n%1 = neg(%x) : f32 checkpoint \"1\"\n%2 = neg(%1) : f32 checkpoint \"1.2\""),
         ""},
        {At("autocast", "input %x : f32\n%1 = neg(%x) : f32 checkpoint \"1.a\""),
         "f: %1 = neg: checkpoint \"1.a\": it is a number, or numbers with dots between"},
        {At("autocast", "input %x : f32\n%1 = neg(%x) : f32 checkpoint \"1.2\"\n%2 = neg(%1) : f32 checkpoint \"1\"\n"
                        "%3 = neg(%2) : f32 checkpoint \"1.2\""),
         "f: %3 = neg: is in checkpoint \"1.2\", which has ended before it"},
        {Graph("%1 = neg(%x) : f32[N, 4] checkpoint \"1\""),
         "f: %1 = neg: is in a checkpoint, for which the pass autodiff has made copies"},
        {Core("%1 = barrier(%x, %s) : f32[N, 4]"), ""},
        {At("fuse", "input %x : f32\nkernel k tile \"\" {\n%1 = barrier(%x, %x) : f32\n}"),
         "f: %1 = barrier: may not appear at stage fuse"},
        // predicates and assigns
        {Graph("assign(%s, %s) if %ok"), ""},
        {Graph("%1 = relu(%x) : f32[N, 4]\n%2 = neg(%1) if %ok : f32[N, 4]"),
         "f: %2 = neg: has a predicate, but no effect"},
        {Graph("assign(%s, %s) if %s"), "f: assign: its predicate %s is not a bool scalar"},
        {Graph("assign(%x, %x)"), "f: assign: %x is not a state"},
        {Graph("assign(%s, %x)"), "f: assign: shapes differ: %s is f32, %x is f32[N, 4]"},
        {Graph("%1 = cast(%s) : f16\nassign(%s, %1)"), "f: assign: not legal at stage simplify with (f32, f16) ->"},
        {Graph("assign(%s, %s)\nassign(%s, %s)"), "f: assign: %s is written twice"},
        // results
        {Graph("result a = %x\nresult a = %x"), "f: two results are called a"},
        // kernels
        {Core("kernel k tile \"\" {\n%1 = neg(%x) : f32[N, 4]\n}"), "f: has kernels at stage lower"},
        {Core("buffer b temp %x f32 rows"), "f: has buffers at stage lower"},
        {At("fuse", "input %x : f32\n%1 = neg(%x) : f32"), "f: op 1 of the body is in no kernel"},
        {At("fuse", "input %x : f32\nkernel k tile \"\" {\n}"),
         "f: kernel k does not begin where the one before it ends, or is empty"},
        {At("fuse",
            "input %x : f32\nkernel k tile \"\" {\n%1 = neg(%x) : f32\n}\nkernel k tile \"\" {\n%2 = neg(%x) : f32\n}"),
         "f: two kernels are called k"},
        {At("fuse", "input %x : f32[2, 2]\nkernel k product \"\" {\n%1 = neg(%x) : f32[2, 2]\n}"),
         "f: kernel k is of kind product and has 0 products"},
        {At("fuse", "input %x : f32[2, 2]\nkernel k tile \"\" {\n%1 = contract(%x, %x) : f32[2, 2]\n}"),
         "f: kernel k is of kind tile and has 1 products"},
        {At("fuse", "input %x : f32[2, 2, 2, 2]\nkernel k tile \"\" {\n"
                    "%1 = conv(%x, %x; groups = 2) : f32[2, 1, 1, 2]\n}"),
         "f: conv: input channels per group differ, [1, 2]: %x is f32[2, 2, 2, 2], %x is f32[2, 2, 2, 2]"},
        {At("fuse", "input %x : f32[2, 2, 2, 2]\ninput %w : f32[2, 2, 1, 2]\nkernel k tile \"\" {\n"
                    "%1 = conv(%x, %w; groups = 2) : f32[2, 1, 1, 2]\n}"),
         ""}, /* with groups it is made in the tile */
        {At("fuse", "input %x : f32[2, 4]\ninput %i : i32[2]\nkernel k tile \"\" {\n"
                    "%1 = scatter(%x, %i) : f32[9, 4]\n}"),
         "f: kernel k is of kind tile and has 1 scatters"},
        {At("fuse", "input %x : f32[4]\nkernel k tile \"\" segment 4 {\n%1 = neg(%x) : f32[4]\n}"),
         "f: kernel k has a segment, but is not a column kernel"},
        {At("fuse",
            "input %x : f32[8, 4]\nkernel k column \"\" segment 4 {\n%1 = reduce_sum(%x; dims = (0)) : f32[4]\n}"),
         ""},
        {"module \"m\" stage lower { } state %a : f32 staged of b",
         "state a does not name the state that it belongs to"},
        {At("fuse", "input %x : f32\nkernel k tile \"\" if %x {\n%1 = neg(%x) : f32\n}"),
         "f: kernel k: its predicate is not a bool scalar defined before it"},
        {At("fuse",
            "input %ok : bool\nstate %a : f32\nstate %b : f32\nkernel k tile \"\" {\nassign(%a, %a) if %ok\nassign(%b, "
            "%b)\n}",
            "state %a : f32 param state %b : f32 param"),
         "f: assign: kernel k has effects with different predicates"},
        {At("fuse",
            "state %a : f32\nkernel j tile \"\" {\nassign(%a, %a)\n}\nkernel k tile \"\" {\n%1 = neg(%a) : f32\n}",
            "state %a : f32 param"),
         "f: %1 = neg: reads state %a in kernel k, after a kernel that writes it"},
        {At("plan", "input %x : f32\nkernel k tile \"\" {\n%1 = neg(%x) : f32\n}\nbuffer b state %x f32 rows"),
         "f: buffer b: exactly the buffers of kind state must name a state"},
        {At("plan",
            "input %x : f32\nkernel k tile \"\" {\n%1 = neg(%x) : f32\n}\nbuffer b temp %x f32 rows live 0 to 1"),
         "f: buffer b lives from kernel 0 to 1 of 1"},
        {Places("buffer a temp %1 f32 rows live 0 to 1\nbuffer b temp %2 f32 rows live 1 to 1 in a"), ""},
        {Places("buffer a temp %1 f32 rows pitch 4 live 0 to 1\nbuffer b temp %2 f32 rows live 1 to 1 in a"),
         "f: buffer b may only reuse the memory of an earlier temporary of its size, type and layout"},
        {Places("buffer a temp %1 f32 rows pitch 4 live 0 to 1\nbuffer b temp %2 f32 rows pitch 4 live 1 to 1 in a"),
         ""},
        {Places("buffer a temp %1 f32 rows pitch 2 live 0 to 1"), "f: buffer a may not have rows of 2 elements"},
        {Places("buffer a output %1 f32 rows pitch 4 live 0 to 1"), "f: buffer a may not have rows of 4 elements"},
        {Places("buffer a temp %1 f32 panels pitch 4 live 0 to 1"), "f: buffer a may not have rows of 4 elements"},
        {Copy(" pitch 8", "buffer b state of a.h %a.h f32 rows pitch 8"), ""},
        {Copy(" pitch 8", "buffer b state of a.h %a.h f32 rows"),
         "f: buffer b and state a.h have rows of different lengths"},
        {Copy(" pitch 3", "buffer b state of a.h %a.h f32 rows pitch 3"), "state a.h may not have rows of 3 elements"},
        {"module \"m\" stage plan { } state %a : f32[2, 3] param stored f32 rows pitch 8",
         "state a may not have rows of 8 elements"},
        {Places("buffer a output %1 f32 rows live 0 to 1\nbuffer b temp %2 f32 rows live 1 to 1 in a"),
         "f: buffer b may only reuse the memory of an earlier temporary of its size, type and layout"},
        {Places("buffer a temp %1 f32 rows live 0 to 1\nbuffer b output %2 f32 rows live 1 to 1 in a"),
         "f: buffer b may only reuse the memory of an earlier temporary of its size, type and layout"},
        {Places("buffer a temp %1 f16 rows live 0 to 1\nbuffer b temp %2 f32 rows live 1 to 1 in a"),
         "f: buffer b may only reuse the memory of an earlier temporary of its size, type and layout"},
        {Places("buffer a temp %1 f32 rows live 1 to 1\nbuffer b temp %2 f32 rows live 1 to 1 in a"),
         "f: buffer b may only reuse the memory of an earlier temporary of its size, type and layout"},
        {Places("buffer a temp %s f32 rows live 0 to 1\nbuffer b temp %2 f32 rows live 1 to 1 in a"),
         "f: buffer b may only reuse the memory of an earlier temporary of its size, type and layout"},
        {Places("buffer a temp %x f32 rows live 0 to 0\nbuffer b temp %1 f32 rows live 1 to 1 in a\n"
                "buffer c temp %2 f32 rows live 1 to 1 in b"),
         "f: buffer c may only reuse the memory of an earlier temporary of its size, type and layout"},
    };
    for (const auto &c : cases) EXPECT_EQ(Verify(c.text), c.message) << c.text;
}

// What text cannot say.
class VerifyBroken : public IrTest {
  protected:
    VerifyBroken() {
        m_ = ir_module_new(&arena_, "m");
        f_ = ir_func_new(m_, "f");
        x_ = ir_add_input(f_, "x", AMP_DT_F32, shape_scalar());
        y_ = ir_emit(f_, OP_relu, AMP_DT_F32, "y", 1, x_);
        z_ = ir_emit(f_, OP_relu, AMP_DT_F32, "z", 1, y_);
        EXPECT_STREQ(ir_verify(m_), nullptr);
    }
    Module *m_;
    Func *f_;
    Val x_, y_, z_;
};

TEST_F(VerifyBroken, UseBeforeDefinition) {
    std::swap(f_->body.data[0], f_->body.data[1]);
    EXPECT_STREQ(ir_verify(m_), "f: %z = relu: %y is used before it is defined");
}

TEST_F(VerifyBroken, NoSuchOperand) {
    ir_def(f_, z_)->in[0] = Val{99};
    EXPECT_STREQ(ir_verify(m_), "f: %z = relu: operand 1 is not a value");
}

TEST_F(VerifyBroken, ResultOfAnotherOp) {
    ir_def(f_, z_)->out[0] = y_;
    EXPECT_STREQ(ir_verify(m_), "f: %y = relu: %y is not marked as result 1 of this op");
}

TEST_F(VerifyBroken, OpTwiceInTheBody) {
    f_->body.data[1] = f_->body.data[0];
    EXPECT_STREQ(ir_verify(m_), "f: %y is defined twice");
}

TEST_F(VerifyBroken, TwoValuesOfOneName) {
    ir_value(f_, z_)->name = "y";
    EXPECT_STREQ(ir_verify(m_), "f: %y: the name belongs to another value");
}

TEST_F(VerifyBroken, MissingOp) {
    f_->body.data[1] = OpId{99};
    EXPECT_STREQ(ir_verify(m_), "f: op 2 of the body does not exist");
}

TEST_F(VerifyBroken, ResultsAndInputsMustExist) {
    ir_add_result(f_, "r", Val{99});
    EXPECT_STREQ(ir_verify(m_), "f: result r is not a value of the function");
    f_->inputs.data[0] = y_;
    EXPECT_STREQ(ir_verify(m_), "f: %y is the result of an op, not an input");
    f_->inputs.data[0] = NO_VAL;
    EXPECT_STREQ(ir_verify(m_), "f: input 1 is not a value");
}

TEST_F(VerifyBroken, FunctionsAndStatesHaveTheirOwnNames) {
    ir_state_new(m_, "s", STATE_PARAM, AMP_DT_F32, shape_scalar());
    ir_state_new(m_, "s", STATE_PARAM, AMP_DT_F32, shape_scalar());
    EXPECT_STREQ(ir_verify(m_), "two states are called s");
    m_->states.len = 0;
    ir_func_new(m_, "f");
    EXPECT_STREQ(ir_verify(m_), "two functions are called f");
}

TEST_F(VerifyBroken, RegionsExist) {
    ir_def(f_, z_)->region = 3;
    EXPECT_STREQ(ir_verify(m_), "f: %z = relu: region #3 does not exist");
}

} // namespace
