/* compile_test.cc: what files cannot show: limits, damaged input, allocation failures, the prelude, the example. */
#include <cstdlib>

#include "gtest/gtest.h"
#include "tests/frontend/compile_model.h"
#include "tests/golden/golden.h"

namespace {

const char kGolden[] = "tests/frontend/golden";

std::string Repeat(const std::string &s, int count) {
    std::string out;
    for (int i = 0; i < count; i++) out += s;
    return out;
}

std::string Model(const std::string &body) { return "amp 1\nmodel m(x: f32[N, 4]) -> y {\n" + body + "\n}\n"; }

/* ---- limits ---- */

TEST(Limits, ParenthesesNest) {
    EXPECT_TRUE(CompileModel("m.amp", Model("y = " + Repeat("(", 190) + "x" + Repeat(")", 190) + " + 1.0")).good);
    CompiledModel deep = CompileModel("m.amp", Model("y = " + Repeat("(", 100000) + "x" + Repeat(")", 100000)));
    EXPECT_EQ(deep.errors, 1);
    EXPECT_NE(deep.text.find("error: nested more than 200 levels deep"), std::string::npos) << deep.text;
}

TEST(Limits, OperatorsNest) {
    for (const char *expression : {"- ", "not "}) {
        CompiledModel deep = CompileModel("m.amp", Model("y = " + Repeat(expression, 100000) + "x"));
        EXPECT_EQ(deep.errors, 1);
        EXPECT_NE(deep.text.find("nested more than 200 levels deep"), std::string::npos) << deep.text.substr(0, 200);
    }
    CompiledModel sum = CompileModel("m.amp", Model("y = x" + Repeat(" + x", 100000)));
    EXPECT_EQ(sum.errors, 1);
    EXPECT_NE(sum.text.find("nested more than 200 levels deep"), std::string::npos) << sum.text.substr(0, 200);
}

TEST(Limits, BlocksNest) {
    std::string text = "amp 1\nblock b0(x) { return relu(x) }\n";
    for (int i = 1; i <= 2000; i++)
        text += "block b" + std::to_string(i) + "(x) { return b" + std::to_string(i - 1) + "(x) }\n";
    std::string shallow = text + "model m(x: f32[N, 4]) -> y { y = b100(x) }\n";
    EXPECT_TRUE(CompileModel("m.amp", shallow).good);
    CompiledModel deep = CompileModel("m.amp", text + "model m(x: f32[N, 4]) -> y { y = b2000(x) }\n");
    EXPECT_EQ(deep.errors, 1);
    EXPECT_NE(deep.text.find("nested more than"), std::string::npos) << deep.text.substr(0, 400);
}

TEST(Limits, RepeatsThatMakeNothingEnd) {
    CompiledModel iterations =
        CompileModel("m.amp", Model("k = 0\nrepeat i in 0..9000000000000000000 { k = i }\ny = x * k"));
    EXPECT_EQ(iterations.errors, 1);
    EXPECT_NE(iterations.text.find("more iterations"), std::string::npos) << iterations.text;
    CompiledModel nested = CompileModel(
        "m.amp",
        Model("k = 0\nrepeat i in 0..3000 { repeat j in 0..3000 { repeat l in 0..3000 { k = l } } }\ny = x * k"));
    EXPECT_EQ(nested.errors, 1);
}

TEST(Limits, MaxOpsIsExact) {
    CompileSettings settings;
    settings.max_ops = 3;
    EXPECT_TRUE(CompileModel("m.amp", Model("y = relu(relu(relu(x)))"), settings).good);
    settings.max_ops = 2;
    EXPECT_FALSE(CompileModel("m.amp", Model("y = relu(relu(relu(x)))"), settings).good);
}

TEST(Limits, FileSize) {
    CompiledModel large = CompileModel("m.amp", "amp 1\n# " + std::string(5 << 20, 'x'));
    EXPECT_EQ(large.errors, 1);
    EXPECT_NE(large.text.find("bytes; a model may have at most 4194304"), std::string::npos)
        << large.text.substr(0, 200);
}

TEST(Limits, ManyErrorsAreCounted) {
    std::string body;
    for (int i = 0; i < 100; i++) body += "y = relu(unknown" + std::to_string(i) + ")\n";
    EXPECT_EQ(CompileModel("m.amp", Model(body)).errors, 100);
}

/* ---- damaged input ---- */

TEST(Damage, BytesThatAreNoText) {
    std::string nul = Model("y = relu(x)");
    nul[10] = '\0';
    CompiledModel with_nul = CompileModel("m.amp", nul);
    EXPECT_EQ(with_nul.text.substr(0, with_nul.text.find('\n')), "m.amp:2:5: error: a NUL byte; the file is not text");
    CompiledModel latin1 = CompileModel("m.amp", "amp 1\n# gr\xfc\xdf"
                                                 "e\n");
    EXPECT_EQ(latin1.text.substr(0, latin1.text.find('\n')),
              "m.amp:2:5: error: byte 0xfc is not UTF-8; save the file as UTF-8");
}

TEST(Damage, CarriageReturnsAreNoContent) {
    std::string text = Model("y = relu(x)"), with_returns;
    for (char c : text) with_returns += c == '\n' ? "\r\n" : std::string(1, c);
    EXPECT_TRUE(CompileModel("m.amp", with_returns).good);
}

/* ---- memory ---- */

struct Failing {
    int left; /* allocations that still succeed */
};

void *FailingAlloc(void *user, size_t size, size_t align) {
    Failing *failing = static_cast<Failing *>(user);
    return failing->left-- > 0 ? aligned_alloc(align, (size + align - 1) / align * align) : nullptr;
}

void FailingFree(void *, void *ptr, size_t, size_t) { free(ptr); }

TEST(Memory, EveryFailedAllocationEndsInAnAnswer) {
    std::string text = golden::Read(std::string(kGolden) + "/mlp.amp");
    bool finished = false;
    for (int n = 0; n < 100000 && !finished;
         n += 1 + n / 50) { /* under ASan every piece of the arena is an allocation */
        Failing failing = {n};
        amp_allocator allocator = {&failing, FailingAlloc, FailingFree};
        CompileSettings settings;
        settings.allocator = &allocator;
        CompiledModel model = CompileModel("mlp.amp", text, settings);
        finished = model.good;
        EXPECT_NE(model.good, model.out_of_memory);
    }
    EXPECT_TRUE(finished);
}

/* ---- what is shipped ---- */

TEST(Shipped, ExampleCompiles) {
    CompileSettings settings;
    settings.defines = {{"HIDDEN", "64"}};
    CompiledModel model = CompileModel("mlp.amp", golden::Read("examples/fashion_mnist/mlp.amp"), settings);
    EXPECT_TRUE(model.good) << model.text;
    for (const char *name : {"%fc1.weight : f32[64, 784]", "%fc2.weight : f32[64, 64]", "%fc3.bias   : f32[10]"})
        EXPECT_NE(model.text.find(name), std::string::npos) << name << "\n" << model.text;
}

TEST(Shipped, PreludeIsTheFile) { EXPECT_EQ(golden::Read("frontend/prelude.amp"), frontend_prelude_text); }

/* torch.nn.Linear(5, 2): both distributions are uniform within 1 / sqrt(5) = 0.4472135954999579. */
TEST(Shipped, LinearIsInitialisedAsInPyTorch) {
    CompiledModel model = CompileModel("m.amp", "amp 1\nmodel m(x: f32[N, 5]) -> y { y = linear(x; out = 2) as fc }\n");
    EXPECT_NE(model.text.find("%fc.weight : f32[2, 5] param = kaiming_uniform(a = 2.23606797749979)"),
              std::string::npos)
        << model.text;
    EXPECT_NE(model.text.find("= -0.4472135954999579, high = 0.4472135954999579)"), std::string::npos) << model.text;
}

TEST(Shipped, CompilingTwiceGivesTheSame) {
    std::string text = golden::Read(std::string(kGolden) + "/mlp.amp");
    EXPECT_EQ(CompileModel("mlp.amp", text).text, CompileModel("mlp.amp", text).text);
}

} // namespace
