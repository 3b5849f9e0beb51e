/* sharing_test.cc: a block applied again with the parameters of an earlier call. */
#include "tests/frontend/expect.h"

namespace {

int Count(const std::string &text, const std::string &what) {
    int count = 0;
    for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) count++;
    return count;
}

TEST(Sharing, ReadsTheSameParameters) {
    std::string ir = Ir(Model("h = linear(x; out = 4) as fc\ny = linear(h) sharing fc"));
    EXPECT_HOLDS(ir, "%h = linear(%x, %fc.weight, %fc.bias) : f32[N, 4] @fc.linear ");
    EXPECT_HOLDS(ir, "%y = linear(%h, %fc.weight, %fc.bias) : f32[N, 4] @fc.linear_1 ");
    EXPECT_EQ(Count(ir, "f32[4, 4] param"), 1);
}

TEST(Sharing, OfACallWithoutAs) {
    std::string ir = Ir(Model("h = linear(linear(x; out = 4); out = 4)\ny = linear(h) sharing linear_1"));
    EXPECT_HOLDS(ir, "%y = linear(%h, %linear_1.weight, %linear_1.bias)");
}

/* Scopes inside are numbered as in the first call, however often, in nested blocks and in `repeat`. */
TEST(Sharing, OfUnnamedCallsInsideTheBlock) {
    const char blocks[] = "block two(x) { return linear(relu(linear(x; out = 4)); out = 4) }\n"
                          "block net(x) {\n h = two(x) as a\n h = two(h) sharing a\n return two(h)\n}\n";
    std::string ir = Ir(blocks + Model("y = net(x) as n\nrepeat i in 0..2 { y = net(y) sharing n }"));
    EXPECT_EQ(Count(ir, " param = "), 8);
    for (const char *param : {"n.a.linear", "n.a.linear_1", "n.two.linear", "n.two.linear_1"}) {
        int uses = param[2] == 'a' ? 6 : 3;
        EXPECT_EQ(Count(ir, std::string("%") + param + ".weight, "), uses) << param;
    }
}

TEST(Sharing, StaticArgumentsAreThoseOfTheFirstCallUnlessGiven) {
    const char block[] = "block f(x; width: int, scale: float = 1.0, act: symbol = none) {\n"
                         " y = linear(x; out = width) as fc\n if act == tanh { y = tanh(y) }\n return y * scale\n}\n";
    std::string ir = Ir(block + Model("h = f(x; width = 4, scale = 3.0, act = tanh) as g\n"
                                      "h = f(h) sharing g\ny = f(h; scale = 7.0) sharing g"));
    EXPECT_EQ(Count(ir, "tanh("), 3);
    EXPECT_EQ(Count(ir, "value = 3.0"), 2);
    EXPECT_EQ(Count(ir, "value = 7.0"), 1);
}

TEST(Sharing, OverAnotherShapeOfTheInput) {
    std::string ir = Ir(Model("h = linear(reshape(x; shape = [N, 2, 2]); out = 2) as fc\n"
                              "y = linear(reshape(h; shape = [2 * N, 2])) sharing fc\ny = reshape(y; shape = [N, 4])"));
    EXPECT_HOLDS(ir, "%fc.weight, %fc.bias) : f32[2 * N, 2]");
}

/* As PyTorch's running statistics do when a batch norm is called twice. */
TEST(Sharing, UpdatesFollowEachOther) {
    const char block[] = "block counted(x) {\n state seen: i64 = zeros()\n state s: f32[4] = zeros()\n"
                         " update seen = seen + 1\n update s = s * 0.5 + mean(x; dims = 0)\n return x - s\n}\n";
    std::string ir = Ir(block + Model("h = counted(x) as c\ny = counted(h) sharing c"));
    EXPECT_HOLDS(ir, "%1 = increment(%c.seen) : i64");
    EXPECT_HOLDS(ir, " = increment(%1) : i64");
    EXPECT_EQ(Count(ir, "result update.c.seen"), 1);
    EXPECT_EQ(Count(ir, "result update.c.s "), 1);
    EXPECT_EQ(Count(ir, "mul(%c.s, "), 1) << "the second goes on from the first";
    EXPECT_HOLDS(ir, "%h = sub(%x, %c.s)");
    EXPECT_HOLDS(ir, "%y = sub(%h, %c.s)");
}

TEST(Sharing, DropoutMasksAreDrawnApart) {
    const char block[] = "block f(x) { return dropout(linear(x; out = 4) as fc) }\n";
    std::string ir = Ir(block + Model("h = f(x) as g\ny = f(h) sharing g"));
    EXPECT_HOLDS(ir, "key = \"g.dropout\"");
    EXPECT_HOLDS(ir, "key = \"g.dropout_1\"");
}

TEST(Sharing, InATrainBlock) {
    EXPECT_HOLDS(Ir("model m(x: f32[N, 4]) -> y { y = linear(x; out = 4) as fc }\n"
                    "train m {\n input u: f32[N, 4]\n loss = mse_loss(y, linear(u) sharing fc)\n"
                    " optimizer = sgd(0.1)\n}\n"),
                 "linear(%u, %fc.weight, %fc.bias)");
}

TEST(Sharing, IsANameWhereNoCallEnds) {
    EXPECT_HOLDS(Ir(Model("sharing = relu(x)\ny = linear(sharing; out = 4) as sharing")), "%sharing.weight");
}

} // namespace
