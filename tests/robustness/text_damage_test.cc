// Damaged texts: models, policies and IR of each stage, through the compiler's public call, up to a plan and its C.
#include "amp/compile.h"
#include "tests/robustness/damage.h"

namespace {

using namespace robustness;

// Small, for IR, which is forty times as long; the models of the corpus use the whole language.
const char kModel[] = R"(amp 1
const classes = 10
model net(x: f32[N, 12]) -> logits {
    h = x
    repeat i in 0..2 { h = relu(linear(h; out = 9) as fc[i]) }
    logits = linear(h * 0.5 + 1.0; out = classes) as head
}
train net {
    input  targets: i32[N]
    loss      = cross_entropy(logits, targets)
    metric    acc = accuracy(logits, targets)
    optimizer = adamw(lr = 0.01, weight_decay = 0.1)
}
precision fp16 { }
)";

const char kPolicy[] = R"(policy "mine"
algorithm eager
low = f16
# products
op linear, matmul                   lower
op cross_entropy.log_softmax, sum   f32
op softmax, exp                     f32
op add, mul                         widest
op *                                follow
)";

const std::vector<std::string> kModelWords = {"model ",
                                              "train ",
                                              "block ",
                                              "repeat i in 0..",
                                              "param ",
                                              "loss = ",
                                              "{",
                                              "}",
                                              "(",
                                              ")",
                                              "[",
                                              "]",
                                              ";",
                                              " as ",
                                              "-> ",
                                              "linear(",
                                              "1e999",
                                              "99999999999999999999",
                                              "0..1000000000",
                                              "/ 0",
                                              "\"",
                                              "#",
                                              "\n",
                                              "\xff",
                                              "\xe2\x82",
                                              "relu(relu(relu(",
                                              "const a = a\n",
                                              "N",
                                              "if ",
                                              "else ",
                                              "state ",
                                              "update ",
                                              "group ",
                                              "precision fp16 {",
                                              " = f32 because \"",
                                              "include \"model.amp\"\n",
                                              "%",
                                              "!!"};
const std::vector<std::string> kPolicyWords = {"policy", "op ", "*",  "lower", "f32", "low = ", "algorithm ",
                                               ",",      "\n",  "\"", "\xff",  ".",   "#"};
const std::vector<std::string> kIrWords = {
    "module ", "func ",      "kernel ",   "%",      "%0 = ",  "f16", "f32[N, 3]",   "[",       "]",    "{",   "}",
    "\"",      "state ",     "because {", "@",      "-",      "N",   "99999999999", "-1",      "nan",  "inf", " at ",
    "matmul",  "reduce_sum", "cast",      "assign", "return", "\n",  "\xff",        "buffer ", "temp", "0..3"};

constexpr size_t kMost = (size_t)64 << 20; // of any compilation here

struct Told {
    int messages = 0, errors = 0;
    std::string first;
};

void Tell(void *user, const char *text, int32_t is_error) {
    Told *told = static_cast<Told *>(user);
    told->messages++;
    told->errors += is_error;
    if (told->first.empty()) told->first = text;
}

struct Asked {
    const char *name;
    amp_emit emit = AMP_EMIT_IR;
    const char *stop_after = nullptr, *policy = nullptr;
};

// Compiles; the message is what the caller of the library gets, the first line of the first diagnostic for bad sources.
Outcome Compile(const Asked &asked, const std::string &text, std::string *out = nullptr) {
    PeakAllocator allocator;
    amp_allocator a = allocator.get();
    Told told;
    amp_compile_options o = {};
    o.struct_size = sizeof o;
    o.name = asked.name, o.text = text.data(), o.text_size = text.size();
    o.emit = asked.emit, o.stop_after = asked.stop_after, o.policy = asked.policy;
    o.max_ops = 2000, o.allocator = &a, o.diagnostic = Tell, o.user = &told;
    amp_compile_result *result = nullptr;
    amp_error err = {};
    amp_status status = amp_compile(&o, &result, &err);
    size_t size;
    const void *data = amp_compile_result_data(result, &size);
    if (out) out->assign((const char *)data, data ? size : 0);
    amp_compile_result_release(result);
    EXPECT_EQ(result != nullptr, status == AMP_OK);
    EXPECT_TRUE(status != AMP_BAD_SOURCE || told.errors > 0) << err.message;
    return {status, err.message, allocator.peak()};
}

std::string IrAfter(const char *pass) {
    std::string ir;
    Outcome o = Compile({"model.amp", AMP_EMIT_IR, pass}, kModel, &ir);
    EXPECT_EQ(o.status, AMP_OK) << pass << ": " << o.message;
    return ir;
}

Format ModelFormat(const std::string &name) {
    std::string text = Read("tests/fuzz/corpus/language/" + name);
    return {"model.amp",
            text,
            text.size(),
            kModelWords,
            [](const std::string &s) { return Compile({"model.amp"}, s); },
            [](size_t) { return kMost; },
            1,
            false,
            2};
}

Format PolicyFormat() {
    return {"mine.policy",
            kPolicy,
            sizeof kPolicy - 1,
            kPolicyWords,
            [](const std::string &s) {
                std::string path = Write("mine.policy", s);
                return Compile({"model.amp", AMP_EMIT_IR, "autocast", path.c_str()}, kModel);
            },
            [](size_t) { return kMost; }};
}

// IR of a stage goes through the passes that are left and into C.
Format IrFormat(const char *pass) {
    std::string ir = IrAfter(pass);
    return {"damaged.ir",
            ir,
            ir.size(),
            kIrWords,
            [](const std::string &s) {
                return Compile({"damaged.ir", AMP_EMIT_C}, s);
            },
            [](size_t) { return kMost; },
            1,
            false,
            6};
}

class Models : public testing::TestWithParam<const char *> {};

TEST_P(Models, GoodIsRead) { GoodIsRead(ModelFormat(GetParam())); }
TEST_P(Models, CutAnywhere) { CutAnywhere(ModelFormat(GetParam())); }
TEST_P(Models, EveryByteFlipped) {
    Format f = ModelFormat(GetParam());
    Random random(24);
    for (size_t i = FirstPlace(); i < f.good.size() && !HasFailure(); i += Stride()) {
        std::string changed = f.good;
        changed[i] = (char)(changed[i] ^ 1 << random.Below(8));
        Check(f, changed, "byte " + std::to_string(i));
    }
}
TEST_P(Models, RandomMutations) { RandomMutations(ModelFormat(GetParam()), 21); }

INSTANTIATE_TEST_SUITE_P(Corpus, Models, testing::Values("images.amp", "tokens.amp"),
                         [](const auto &info) { return std::string(info.param).substr(0, 6); });

TEST(Policies, GoodIsRead) { GoodIsRead(PolicyFormat()); }
TEST(Policies, CutAnywhere) { CutAnywhere(PolicyFormat()); }
TEST(Policies, EveryByte) { HeaderBytes(PolicyFormat()); }
TEST(Policies, RandomMutations) { RandomMutations(PolicyFormat(), 22); }

class Ir : public testing::TestWithParam<const char *> {};

TEST_P(Ir, GoodIsRead) { GoodIsRead(IrFormat(GetParam())); }
TEST_P(Ir, CutAnywhere) {
    Format f = IrFormat(GetParam());
    f.header = 0, f.stride = f.good.size() / 2000 + 1;
    CutAnywhere(f);
}
TEST_P(Ir, RandomMutations) { RandomMutations(IrFormat(GetParam()), 23); }

INSTANTIATE_TEST_SUITE_P(Stages, Ir, testing::Values("elaborate", "autodiff", "simplify", "lower", "fuse", "plan"),
                         [](const auto &info) { return std::string(info.param); });

} // namespace
