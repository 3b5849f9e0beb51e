/* params_rules_test.cc: rules 7 to 11 of docs/language.md: parameters, states, scopes, files, initialisers. */
#include "tests/frontend/expect.h"

namespace {

const char kCounted[] = "block counted(x) {\n state seen: i64 = zeros()\n state last as last.mean: f32 = zeros()\n"
                        " update seen = seen + 1\n update last = mean(x)\n return x * last\n}\n";

/* ---- 7 -------------------------------------------------------------------------------------------------------- */

TEST(Rule7_Params, ParamIsTrainedStateIsSaved) {
    std::string ir = Ir(kCounted + Model("param w as scale.w: f32[4] = ones()\ny = counted(x * w) as c"));
    EXPECT_HOLDS(ir, "state %scale.w : f32[4] param = ones()");
    EXPECT_HOLDS(ir, "state %c.seen : i64 buffer = zeros()");
    EXPECT_HOLDS(ir, "state %c.last.mean : f32 buffer = zeros()");
}

TEST(Rule7_Params, UpdateIsTheNextValue) {
    std::string ir = Ir(kCounted + Model("y = counted(x) as c"));
    EXPECT_HOLDS(ir, "%1 = increment(%c.seen) : i64");
    EXPECT_HOLDS(ir, "result update.c.seen = %1");
    EXPECT_HOLDS(ir, "result update.c.last.mean = %2");
    EXPECT_LT(ir.find("result y"), ir.find("result update.c.seen")); /* after the model's own */
}

TEST(Rule7_Params, OnlyStatesAreUpdated) {
    EXPECT_HOLDS(Errors(Model("param w: f32[4] = ones()\nupdate w = w\ny = x * w")),
                 "update writes a state; 'w' is a parameter, which training writes");
    EXPECT_HOLDS(Errors(Model("h = relu(x)\nupdate h = x\ny = h")), "update writes a state; 'h' is f32[N, 4]");
    EXPECT_HOLDS(Errors(Model("update z = x\ny = x * 2.0")), "there is no 'z' here");
}

TEST(Rule7_Params, AnUpdateFitsAndComesOnce) {
    std::string state = "state s: f32[4] = zeros()\n";
    EXPECT_HOLDS(Errors(Model(state + "update s = x\ny = x * s")), "state 's' is f32[4]; its next value is f32[N, 4]");
    std::string twice = Errors(Model(state + "update s = s + 1.0\nupdate s = s * 2.0\ny = x * s"));
    EXPECT_HOLDS(twice, "m.amp:5:8: error: state 's' is updated twice");
    EXPECT_HOLDS(twice, "m.amp:4:1: first here");
    EXPECT_HOLDS(Errors(Trained(std::string(kLoss) + "update w = w")), "update is not allowed in train");
}

TEST(Rule7_Params, TypesOfParamsAndStates) {
    EXPECT_HOLDS(Errors(Model("param w: i32[4] = ones()\ny = x * w")), "a parameter is f32, not i32");
    EXPECT_HOLDS(Errors(Model("state s: u8 = ones()\ny = x * s")), "a state is f32 or i64, not u8");
    EXPECT_HOLDS(Errors(Model("state s: f32[N] = ones()\ny = x * s")), "the shape of a state cannot depend on N");
    EXPECT_HOLDS(Errors(Model("state s: i64 = normal(0.1)\ny = x * to_f32(s)")),
                 "an i64 is initialised with zeros() or ones(), not with normal(...)");
    EXPECT_HOLDS(Errors(Model("state s: i64 = zeros()\ny = x * s")),
                 "an i64 is a counter; its only operation is `counter + 1`");
}

TEST(Rule7_Params, OnePathOnce) {
    std::string errors = Errors(Model("a = linear(x; out = 4) as fc\ny = linear(a; out = 4) as fc"));
    EXPECT_HOLDS(errors, "there is already a parameter or state 'fc.weight'");
    EXPECT_HOLDS(errors, "to share a parameter, use the same param");
    EXPECT_HOLDS(Ir(Model("param w: f32[4] = ones()\ny = x * w + w")), "add(%1, %w)");
}

/* ---- 8 -------------------------------------------------------------------------------------------------------- */

TEST(Rule8_Scopes, AsNamesTheScopeOfACall) {
    EXPECT_HOLDS(Ir(Model("y = x + linear(x; out = 4) as fc * 2.0")), "state %fc.weight");
    EXPECT_HOLDS(Ir(Model("y = -linear(x; out = 4) as self.query")), "state %self.query.weight");
    EXPECT_HOLDS(Ir(Model("y = x\nrepeat i in 0..2 { y = linear(y; out = 4) as h[i + 1].fc }")),
                 "state %h.2.fc.weight");
    EXPECT_HOLDS(Errors(Model("y = linear(x; out = 4) as h[0 - 1]")),
                 "an index in a path is an int of at least 0; this is the int -1");
}

TEST(Rule8_Scopes, ArgumentsBelongToTheCaller) {
    std::string outer = "block outer(x) { return relu(x) }\n";
    EXPECT_HOLDS(Ir(outer + Model("y = outer(linear(x; out = 4) as fc) as o")), "state %fc.weight");
}

TEST(Rule8_Scopes, WithoutAsTheBlocksName) {
    std::string ir = Ir(Model("y = linear(linear(x; out = 3); out = 4)"));
    EXPECT_HOLDS(ir, "state %linear.weight : f32[3, 4]");
    EXPECT_HOLDS(ir, "state %linear_1.weight : f32[4, 3]");
    EXPECT_HOLDS(Ir("block plain(x) { return relu(x) }\n" + Model("y = plain(x)")), "@relu ");
}

TEST(Rule8_Scopes, IncludesOnceAndSeesItsOwnConsts) {
    CompileSettings settings;
    settings.files["a.amp"] = "amp 1\ninclude \"b.amp\"\nconst W = 3\nblock a(x) { return b(x) * W }\n";
    settings.files["b.amp"] = "amp 1\ninclude \"a.amp\"\nconst W = 5\nblock b(x) { return x * W }\n";
    std::string ir = Ir("include \"a.amp\"\ninclude \"b.amp\"\n" + Model("y = a(x)"), settings);
    EXPECT_HOLDS(ir, "value = 5.0");
    EXPECT_HOLDS(ir, "value = 3.0");
    EXPECT_HOLDS(Errors("include \"a.amp\"\n" + Model("y = a(x) * W"), settings), "there is no 'W' here");
    EXPECT_HOLDS(Errors("include \"c.amp\"\n" + Model("y = relu(x)"), settings), "cannot read the file \"c.amp\"");
}

TEST(Rule8_Scopes, NoRecursion) {
    EXPECT_HOLDS(Errors("block f(x) { return g(x) }\nblock g(x) { return f(x) }\n" + Model("y = f(x)")),
                 "a block cannot call itself: f -> g -> f");
}

/* ---- 9, 10 ------------------------------------------------------------------------------------------------------ */

TEST(Rule9_OpPaths, ScopeAndNameNumberedWhenRepeated) {
    std::string ir =
        Ir("block mlp(x) { return relu(relu(x)) }\n" + Model("y = x\nrepeat i in 0..1 { y = mlp(y) as h[i].mlp }"));
    EXPECT_HOLDS(ir, "@h.0.mlp.relu ");
    EXPECT_HOLDS(ir, "@h.0.mlp.relu_1 ");
}

TEST(Rule10_Layouts, AreThoseOfPyTorch) {
    EXPECT_HOLDS(Ir(Model("y = linear(x; out = 3) as fc")), "%fc.weight : f32[3, 4]");
    EXPECT_HOLDS(Ir(Model("y = linear(x; out = 3, transposed = true) as fc")), "%fc.weight : f32[4, 3]");
    EXPECT_HOLDS(Ir("model m(x: f32[N, 6, 8, 8]) -> y { y = conv2d(x; out = 4, kernel = (3, 5), groups = 2) as c }\n"),
                 "%c.weight : f32[4, 3, 3, 5]");
}

/* ---- 11 --------------------------------------------------------------------------------------------------------- */

TEST(Rule11_Initialisers, All) {
    for (const char *init : {"zeros()", "ones()", "constant(v = 0.5)", "uniform(low = -1.0, high = 1.0)",
                             "normal(std = 0.1, mean = 0.0)", "trunc_normal(std = 0.02)", "kaiming_uniform(a = 1.0)",
                             "kaiming_normal()", "xavier_uniform()", "xavier_normal()"}) {
        std::string printed = Replaced(std::string(init), "low", "\"low\"");
        EXPECT_HOLDS(Ir(Model(std::string("param w: f32[4, 4] = ") + init + "\ny = matmul(x, w)")),
                     "param = " + printed);
    }
    EXPECT_HOLDS(Errors(Model("param w: f32[4] = kaiming_normal()\ny = x * w")),
                 "kaiming_normal needs two dimensions for its fans; w has 1");
}

TEST(Rule11_Initialisers, InitByPathLastWins) {
    std::string ir = Ir(Model("init \"*.weight\" = ones()\ninit \"h.1.*\" = normal(std = 0.5)\ny = x\n"
                              "repeat i in 0..2 { y = linear(y; out = 4) as h[i] }"));
    EXPECT_HOLDS(ir, "%h.0.weight : f32[4, 4] param = ones()");
    EXPECT_HOLDS(ir, "%h.1.weight : f32[4, 4] param = normal(std = 0.5");
    EXPECT_HOLDS(Errors(Model("init \"g.*\" = ones()\ny = linear(x; out = 4) as fc")), "no parameter matches \"g.*\"");
}

TEST(Rule11_Initialisers, InitLeavesStatesAlone) {
    std::string images = "model m(x: f32[N, 3]) -> y {\n init \"*\" = normal(std = 0.5)\n y = batch_norm(x) as bn\n}\n";
    EXPECT_HOLDS(Ir(images), "%bn.running_var : f32[3] buffer = ones()");
}

/* The bounds are the same as in torch.nn.Conv2d(6, 4, (3, 5), groups=2): 1 / sqrt(3 * 3 * 5) = 0.14907119849998599. */
TEST(Rule11_Initialisers, LayersDrawAsPyTorchs) {
    std::string ir = Ir("model m(x: f32[N, 6, 8, 8], ids: i32[N]) -> y, z {\n"
                        " y = batch_norm(conv2d(x; out = 4, kernel = (3, 5), groups = 2) as c) as bn\n"
                        " z = layer_norm(embedding(ids; count = 10, dim = 4) as e) as ln\n}\n");
    EXPECT_HOLDS(ir, "%c.weight : f32[4, 3, 3, 5] param = kaiming_uniform(a = 2.23606797749979)");
    EXPECT_HOLDS(ir, "%c.bias : f32[4] param = uniform(\"low\" = -0.149071198499985");
    EXPECT_HOLDS(ir, "%bn.weight : f32[4] param = ones()");
    EXPECT_HOLDS(ir, "%bn.bias : f32[4] param = zeros()");
    EXPECT_HOLDS(ir, "%bn.running_mean : f32[4] buffer = zeros()");
    EXPECT_HOLDS(ir, "%bn.running_var : f32[4] buffer = ones()");
    EXPECT_HOLDS(ir, "%bn.num_batches_tracked : i64 buffer = zeros()");
    EXPECT_HOLDS(ir, "%ln.weight : f32[4] param = ones()");
    EXPECT_HOLDS(ir, "%ln.bias : f32[4] param = zeros()");
    EXPECT_HOLDS(ir, "%e.weight : f32[10, 4] param = normal(std = 1.0, mean = 0.0)");
}

} // namespace
