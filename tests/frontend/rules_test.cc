/* rules_test.cc: the numbered rules of docs/language.md, one or more tests each, named after them. */
#include "tests/frontend/expect.h"

namespace {

/* ---- 1: names and values ---------------------------------------------------------------------------------- */

TEST(Rule1_Names, RebindingIsANewValue) {
    std::string ir = Ir(Model("y = x + 1.0\ny = y * y"));
    EXPECT_HOLDS(ir, "%y = add(%x, %1)");
    EXPECT_HOLDS(ir, "%y.1 = mul(%y, %y)");
    EXPECT_HOLDS(ir, "result y = %y.1");
}

TEST(Rule1_Names, RepeatCarriesOuterNames) {
    std::string ir = Ir(Model("y = x\nrepeat i in 0..3 { y = relu(y) }"));
    EXPECT_HOLDS(ir, "%y.2 = relu(%y.1)");
    EXPECT_LACKS(ir, "%y.3");
}

TEST(Rule1_Names, InnerNamesAreLocalToATurn) {
    std::string errors = Errors(Model("y = x\nrepeat i in 0..2 { inner = relu(y)\n y = inner }\ny = y + inner"));
    EXPECT_HOLDS(errors, "there is no 'inner' here");
    EXPECT_HOLDS(errors, "local to one iteration of its repeat");
}

TEST(Rule1_Names, TheEndOfARangeIsExcluded) {
    std::string ir = Ir(Model("y = x\nrepeat i in 2..4 { y = y * i }"));
    EXPECT_HOLDS(ir, "const(; value = 2.0)");
    EXPECT_HOLDS(ir, "const(; value = 3.0)");
    EXPECT_LACKS(ir, "const(; value = 4.0)");
}

TEST(Rule1_Names, WhatIsNeverReadIsAnError) {
    EXPECT_HOLDS(Errors(Model("unused = relu(x)\ny = x + 1.0")), "m.amp:3:1: error: 'unused' is never read");
    EXPECT_HOLDS(Errors("block f(x, unused) { return relu(x) }\n" + Model("y = f(x, x)")), "'unused' is never read");
    EXPECT_HOLDS(Errors("block f(x; unused: int) { return relu(x) }\n" + Model("y = f(x; unused = 1)")),
                 "'unused' is never read");
    EXPECT_HOLDS(Errors(Model("param w: f32[4] = ones()\ny = relu(x)")), "'w' is never read");
}

TEST(Rule1_Names, IndexConstAndCarriedValueNeedNoReader) {
    Ir("const UNREAD = 3\n" + Model("last = 0.0\ny = x\nrepeat i in 0..2 { y = y + last\n last = 1.0 }"));
}

TEST(Rule1_Names, UnknownNamesAndArguments) {
    EXPECT_HOLDS(Errors(Model("y = relu(z)")), "there is no 'z' here");
    EXPECT_HOLDS(Errors(Model("y = softmax(x; dims = 1)")), "softmax has no argument 'dims'");
    EXPECT_HOLDS(Errors(Model("y = softmax(x; dims = 1)")), "did you mean 'dim'?");
}

TEST(Rule1_Names, TooManyOpsAreRefusedBeforeExpansion) {
    CompileSettings small;
    small.max_ops = 10;
    std::string errors = Errors(Model("y = x\nrepeat i in 0..1000000000 { y = relu(y) }"), small);
    EXPECT_HOLDS(errors,
                 "m.amp:4:1: error: 999999999 more iterations of 2 ops each exceed the 10 ops a program may have");
    EXPECT_HOLDS(errors, "--max-ops allows more");
}

TEST(Rule1_Names, SeveralErrorsInOneRun) {
    std::string errors = Errors(Model("a = relu(b)\nc = relu(d)\ny = relu(x; e = 1)"));
    EXPECT_HOLDS(errors, "m.amp:3:10: error: there is no 'b' here");
    EXPECT_HOLDS(errors, "m.amp:4:10: error: there is no 'd' here");
    EXPECT_HOLDS(errors, "m.amp:5:13: error: relu has no argument 'e'");
}

TEST(Rule1_Names, BothPlacesOfShapesThatDisagree) {
    std::string errors = Errors(Model("a = linear(x; out = 3)\nb = linear(x; out = 5)\ny = a + b"));
    EXPECT_HOLDS(errors, "m.amp:5:5: error: add: shapes do not broadcast");
    EXPECT_HOLDS(errors, "m.amp:3:1: a is f32[N, 3]");
    EXPECT_HOLDS(errors, "m.amp:4:1: b is f32[N, 5]");
}

/* ---- 2: text ------------------------------------------------------------------------------------------------ */

TEST(Rule2_Text, ANewlineEndsAStatementOutsideParentheses) {
    Ir(Model("y = relu(\n  x\n)"));
    EXPECT_HOLDS(Errors(Model("y = x +\n 1.0")), "unexpected end of line");
}

TEST(Rule2_Text, AFloatHasDigitsOnBothSides) {
    EXPECT_HOLDS(Errors(Model("y = x * .5")), "a float needs digits on both sides of its dot");
    EXPECT_HOLDS(Errors(Model("y = x * 5.")), "a float needs digits on both sides of its dot");
    EXPECT_HOLDS(Ir(Model("y = x * 6e-4")), "const(; value = 0.0006)");
}

TEST(Rule2_Text, CommentsAndUtf8) {
    Ir(Model("y = relu(x) # größer als 0"));
    EXPECT_HOLDS(Errors(Model("gr\xc3\xb6\xc3\x9f"
                              "er = x")),
                 "only comments and strings can hold characters outside ASCII");
}

TEST(Rule2_Text, ReservedWordsMayBeArgumentsAndParts) {
    EXPECT_HOLDS(Errors(Model("y = relu(x; in = 3)")), "relu has no argument 'in'");
    EXPECT_HOLDS(Ir(Model("y = linear(x; out = 2) as if.in.N")), "state %if.in.N.weight");
    EXPECT_HOLDS(Errors(Model("in = relu(x)\ny = in")), "unexpected 'in'");
}

TEST(Rule2_Text, OtherWordsAreKeywordsOnlyWhereStatementsBegin) {
    std::string ir = Ir(Model("init = relu(x)\nloss = init + 1.0\nstate, model = two(loss)\ny = state + model") +
                        "block two(x) -> a, b { a = relu(x)\n b = exp(x) }\n");
    EXPECT_HOLDS(ir, "%init = relu(%x)");
    EXPECT_HOLDS(ir, "%y = add(%state, %model)");
}

/* ---- 3: arguments -------------------------------------------------------------------------------------------- */

TEST(Rule3_Arguments, TensorsByPositionStaticsByName) {
    EXPECT_HOLDS(Errors(Model("y = softmax(x, dim = 1)")), "softmax: named arguments come after ';'");
    Ir("block pos(; count: int) { return to_f32(arange(; count = count)) }\n" + Model("y = x + pos(; count = 4)"));
}

TEST(Rule3_Arguments, EveryStaticType) {
    std::string block = "block f(x; i: int, f: float, b: bool, s: symbol, t: string, p: pair, d: dims, sh: shape) {\n"
                        " y = reshape(sum(x; dims = d, keep = b); shape = sh) * i * f * dim(p, 0)\n"
                        " if s == tanh and t == \"text\" { y = gelu(y; approximate = s) }\n return y\n}\n";
    std::string ir = Ir(block + Model("y = f(x; i = 2, f = 0.5, b = true, s = tanh, t = \"text\", p = (3, 5), d = (1), "
                                      "sh = [N, 1])"));
    EXPECT_HOLDS(ir, "sum(%x; dims = (1), keep = true) : f32[N, 1]");
    EXPECT_HOLDS(ir, "gelu(");
    EXPECT_HOLDS(ir, "const(; value = 3.0)");
}

TEST(Rule3_Arguments, AnIntStandsForAFloatAPairAndDims) {
    std::string image = "model m(x: f32[N, 2, 4, 4]) -> y { y = ";
    EXPECT_HOLDS(Ir(image + "max_pool2d(x; kernel = 2) }\n"), "kernel = (2, 2)");
    EXPECT_HOLDS(Ir(Model("y = sum(x; dims = 1)")), "dims = (1)");
    EXPECT_HOLDS(Ir(Model("y = sum(x; dims = (1))")), "dims = (1)");
    EXPECT_HOLDS(Ir(Model("y = pow(x; e = 2)")), "e = 2.0");
    EXPECT_HOLDS(Errors(image + "max_pool2d(x; kernel = (1, 2, 3)) }\n"), "kernel must be of type pair");
    EXPECT_HOLDS(Errors(image + "max_pool2d(x; kernel = 2.0) }\n"), "kernel must be of type pair");
}

TEST(Rule3_Arguments, ANameIsAParameterOrConstElseASymbol) {
    std::string block = "block act(x; approximate: symbol = none) { return gelu(x; approximate = approximate) }\n";
    EXPECT_HOLDS(Ir(block + Model("y = act(x; approximate = tanh)")), "approximate = tanh");
    EXPECT_HOLDS(Errors("const tanh = 3\n" + block + Model("y = act(x; approximate = tanh)")),
                 "approximate must be of type symbol; this is the int 3");
}

TEST(Rule3_Arguments, OptionalTensors) {
    std::string block = "block f(x, mask = none) { y = relu(x)\n if given(mask) { y = y * mask }\n return y }\n";
    EXPECT_LACKS(Ir(block + Model("y = f(x)")), "mul(");
    EXPECT_HOLDS(Ir(block + Model("y = f(x, x)")), "mul(");
    EXPECT_LACKS(Ir(block + Model("y = f(x, none)")), "mul(");
    EXPECT_HOLDS(Errors(block + Model("y = f(none)")), "f: 'x' is not optional and cannot be none");
}

TEST(Rule3_Arguments, CallsWithoutTensorsTakeNamesOrPositions) {
    std::string model = "model m(x: f32[N, 4]) -> y { param w: f32[4] = INIT\n y = x * w }\n";
    auto with = [&model](const std::string &init) { return Replaced(model, "INIT", init); };
    EXPECT_HOLDS(Ir(with("normal(0.1, mean = 2)")), "normal(std = 0.1, mean = 2.0)");
    EXPECT_HOLDS(Errors(with("zeros")), "an initialiser is expected here, for example zeros()");
    EXPECT_HOLDS(Errors(with("normal(std = 0.1, 2)")), "positional arguments come before named ones");
    EXPECT_HOLDS(Errors(with("normal(; std = 0.1)")), "normal takes neither ';' nor 'as'");
}

TEST(Rule3_Arguments, InfIsAFloat) {
    EXPECT_HOLDS(Ir(Model("y = clamp(x; low = 0, high = inf)")), "clamp(%x; low = 0.0");
}

/* ---- 4: if and several results ------------------------------------------------------------------------------- */

TEST(Rule4_If, ChoosesStatementsAndParams) {
    std::string block = "block f(x; scaled: bool) {\n if scaled {\n param w: f32[4] = ones()\n y = x * w\n } else {\n"
                        " y = relu(x)\n }\n return y\n}\n";
    EXPECT_HOLDS(Ir(block + Model("y = f(x; scaled = true) as a")), "state %a.w : f32[4] param");
    EXPECT_LACKS(Ir(block + Model("y = f(x; scaled = false) as a")), "state %a.w");
}

TEST(Rule4_If, ConditionsAreStatic) {
    for (const char *yes : {"2 > 1 and not false", "1 == 1 or 1 != 1", "1 <= 1", "2.5 >= 2", "1 < 2"})
        EXPECT_HOLDS(Ir(Model(std::string("if ") + yes + " { y = exp(x) } else { y = relu(x) }")), "exp(") << yes;
    EXPECT_HOLDS(Errors(Model("if x > 0.0 { y = exp(x) } else { y = relu(x) }")),
                 "`if` chooses at compile time and needs a condition; this is bool[N, 4]");
    EXPECT_HOLDS(Errors(Model("if 1 { y = exp(x) } else { y = relu(x) }")), "needs a condition; this is the int 1");
}

TEST(Rule4_If, ElseStandsOnTheLineOfTheBrace) {
    EXPECT_HOLDS(Errors(Model("if true { y = exp(x) }\nelse { y = relu(x) }")), "else must be on the line of its '}'");
}

TEST(Rule4_Results, BlocksReturnSeveral) {
    std::string two = "block two(x) -> a, b { a = relu(x)\n b = exp(x) }\n";
    EXPECT_HOLDS(Ir(two + Model("a, b = two(x) as enc\ny = a + b")), "@enc.relu");
    EXPECT_HOLDS(Errors(two + Model("y = two(x)")), "1 name for 2 values");
    EXPECT_HOLDS(Errors(two + Model("y = 1.0 + two(x)")), "two returns 2 values; bind them: a, b = two(...)");
    EXPECT_HOLDS(Errors("block two(x) -> a { a = relu(x)\n return a }\n" + Model("y = two(x)")), "it has no return");
}

/* ---- 5: static arithmetic ------------------------------------------------------------------------------------ */

TEST(Rule5_Static, DivisionIsExact) {
    EXPECT_HOLDS(Errors(Model("y = x * (7 / 2)")), "7 / 2 leaves a remainder");
    EXPECT_HOLDS(Errors(Model("y = x * (7 / 0)")), "division by zero");
    EXPECT_HOLDS(Ir(Model("y = x * (8 / 2)")), "value = 4.0");
    EXPECT_HOLDS(Ir(Model("y = x * (-7 % 4)")), "value = 1.0");
    EXPECT_HOLDS(Ir(Model("y = x * (7 % -4)")), "value = -1.0");
    EXPECT_HOLDS(Ir(Model("y = x * (2 * 7 % 4)")), "value = 2.0");
    EXPECT_HOLDS(Ir(Model("y = x * (-7.5 % 2)")), "value = 0.5");
}

TEST(Rule5_Static, NumbersOfATensorHaveALimit) {
    std::string most = "1.0", more = ", 1.0";
    for (int i = 1; i < 64; i++) most += ", 1.0";
    EXPECT_HOLDS(Ir(Model("y = x + sum(tensor(" + most + "))")), ": f32[64]");
    EXPECT_HOLDS(Ir(Model("y = x + sum([" + most + "])")), ": f32[64]");
    for (const std::string &call : {"tensor(" + most + more + ")", "([" + most + more + "])"})
        EXPECT_HOLDS(Errors(Model("y = x + sum(" + call + ")")),
                     "a tensor of given numbers has at most 64; these are 65");
    EXPECT_HOLDS(Errors(Model("y = x + sum([" + most + more + "])")),
                 "more come as an input, or as a state that is loaded: state w: f32[65] = zeros()");
}

TEST(Rule5_Static, Builtins) {
    EXPECT_HOLDS(Ir(Model("y = x * dim(x, -1)")), "value = 4.0");
    EXPECT_HOLDS(Ir(Model("y = x * rank(x)")), "value = 2.0");
    EXPECT_HOLDS(Ir(Model("y = x * min(3, 5) + max(0.25, 0.5)")), "value = 3.0");
    EXPECT_HOLDS(Errors(Model("y = x * dim(x, 2)")), "f32[N, 4] has no dimension 2");
}

TEST(Rule5_Static, DimensionsArePositiveOrOfN) {
    EXPECT_HOLDS(Ir("model m(x: f32[N / 2, 4]) -> y { y = reshape(x; shape = [2 * N]) }\n"),
                 "reshape(%x) : f32[2 * N]");
    EXPECT_HOLDS(Errors("model m(x: f32[N, 0]) -> y { y = relu(x) }\n"),
                 "a dimension is a positive int; this is the int 0");
    EXPECT_HOLDS(Errors("model m(x: f32[N, -3]) -> y { y = relu(x) }\n"),
                 "a dimension is a positive int; this is the int -3");
    EXPECT_HOLDS(Errors("model m(x: f32[N, 2.0]) -> y { y = relu(x) }\n"),
                 "a dimension is a positive int; this is the float 2.0");
}

TEST(Rule5_Static, OnlyShapesDependOnN) {
    EXPECT_HOLDS(Errors(Model("y = linear(x; out = N)")),
                 "linear: out cannot depend on the batch N; this is the int N");
    EXPECT_HOLDS(Errors(Model("y = x * dim(x, 0)")), "a tensor is expected here; this is the int N");
    EXPECT_HOLDS(Errors("model m(x: f32[N + 1]) -> y { y = relu(x) }\n"),
                 "a size that depends on N is k * N or N / k; N + 1 is neither");
    EXPECT_HOLDS(Errors("model m(x: f32[N, N]) -> y { y = relu(x) }\n"),
                 "only one dimension of an input may depend on N");
}

/* ---- 6: batch ------------------------------------------------------------------------------------------------- */

TEST(Rule6_Batch, AModelWithoutN) {
    EXPECT_HOLDS(Ir("model m(x: f32[3, 4]) -> y { y = linear(x; out = 2) }\n"), ": f32[3, 2]");
}

TEST(Rule6_Batch, MeansAreOverTheBatch) {
    EXPECT_HOLDS(Ir(Trained("input t: f32[N, 4]\nloss = mse_loss(y, t)\noptimizer = sgd(0.1)")),
                 "mse_loss(%y, %t) : f32");
}

TEST(Rule6_Batch, NIsNoName) { EXPECT_HOLDS(Errors("const N = 3\n" + Model("y = relu(x)")), "unexpected 'N'"); }

} // namespace
