// Damaged texts: models, policies and IR of each stage, through the compiler's public call, up to a plan and its C.
#include <cctype>
#include <iterator>
#include <sstream>
#include <tuple>

#include "amp/compile.h"
#include "tests/base/pattern.h"
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
    const char *stop_after = nullptr, *policy = nullptr, *target = nullptr;
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
    o.target = asked.target ? asked.target : "both";
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
    f.header = 0, f.stride = f.good.size() / (FromEnvironment("AMP_MUTATIONS", 0) ? 2000 : 700) + 1;
    CutAnywhere(f);
}
TEST_P(Ir, RandomMutations) { RandomMutations(IrFormat(GetParam()), 23); }

INSTANTIATE_TEST_SUITE_P(Stages, Ir, testing::Values("elaborate", "autodiff", "simplify", "lower", "fuse", "plan"),
                         [](const auto &info) { return std::string(info.param); });

// One edit of the plan in IR of kernels: the lists of what each kernel reads and writes, and the lines of buffers.
class PlanMutator {
  public:
    PlanMutator(const std::string &ir, uint64_t seed) : random_(seed) {
        std::istringstream in(ir);
        for (std::string line; std::getline(in, line);) {
            std::istringstream words(line);
            lines_.emplace_back(std::istream_iterator<std::string>(words), std::istream_iterator<std::string>());
            const std::string first = lines_.back().empty() ? "" : lines_.back()[0];
            if (first == "kernel") kernels_.push_back(lines_.size() - 1);
            if (first == "buffer") buffers_.push_back(lines_.size() - 1);
        }
    }

    std::string Next(std::string *what) {
        const bool kernel = buffers_.empty() || random_.Below(2);
        const std::vector<size_t> &lines = kernel ? kernels_ : buffers_;
        const size_t at = lines[random_.Below(lines.size())];
        const std::vector<std::string> good = lines_[at];
        if (kernel) EditKernel(&lines_[at]);
        else EditBuffer(&lines_[at]);
        *what = Join(good) + " -> " + Join(lines_[at]);
        const std::string text = Text();
        lines_[at] = good;
        return text;
    }
    std::string Text() const { // one space between words, in strings too
        std::string text;
        for (const auto &line : lines_) text += Join(line) + "\n";
        return text;
    }

  private:
    static std::string Join(const std::vector<std::string> &words) {
        std::string s;
        for (const std::string &w : words) s += (s.empty() ? "" : " ") + w;
        return s;
    }

    std::string SomeBuffer() { return lines_[buffers_[random_.Below(buffers_.size())]][1]; }
    static std::vector<std::string> TakeList(std::vector<std::string> *line, const std::string &word) {
        std::vector<std::string> list;
        auto at = std::find(line->begin(), line->end(), word);
        if (at == line->end()) return list;
        auto end = at + 1;
        for (bool more = true; more && end != line->end(); ++end) {
            more = end->back() == ',';
            list.push_back(more ? end->substr(0, end->size() - 1) : *end);
        }
        line->erase(at, end);
        return list;
    }

    void EditList(std::vector<std::string> *list, std::vector<std::string> *other) {
        const size_t at = random_.Below(list->size());
        switch (random_.Below(6)) {
        case 0:
            if (!list->empty()) list->erase(list->begin() + (long)at);
            break;
        case 1:
            if (!list->empty()) list->push_back((*list)[at]);
            break;
        case 2: list->insert(list->begin() + (long)at, SomeBuffer()); break;
        case 3:
            if (!list->empty()) (*list)[at] = SomeBuffer();
            break;
        case 4:
            if (!list->empty()) other->push_back((*list)[at]);
            break;
        default: list->swap(*other); break;
        }
    }

    void EditKernel(std::vector<std::string> *line) {
        std::vector<std::string> reads = TakeList(line, "reads"), writes = TakeList(line, "writes");
        if (random_.Below(2)) EditList(&reads, &writes);
        else EditList(&writes, &reads);
        auto at = std::find(line->begin(), line->end(), "at");
        if (at == line->end()) at = line->end() - 1;
        auto put = [&](const std::string &word, const std::vector<std::string> &list) {
            for (size_t i = 0; i < list.size(); i++) {
                if (!i) at = line->insert(at, word) + 1;
                at = line->insert(at, list[i] + (i + 1 < list.size() ? "," : "")) + 1;
            }
        };
        put("reads", reads);
        put("writes", writes);
    }

    // Another word of the same set: kinds, types, layouts; another number; another state; without its place.
    void EditBuffer(std::vector<std::string> *line) {
        static const std::vector<std::vector<std::string>> sets = {{"temp", "flag", "input", "output", "watch"},
                                                                   {"f32", "f16", "i32", "bool"},
                                                                   {"rows", "panels", "pairs", "panels_t", "pairs_t"}};
        for (int tries = 0; tries < 20; tries++) {
            std::string &word = (*line)[2 + random_.Below(line->size() - 2)];
            for (const auto &set : sets)
                if (std::find(set.begin(), set.end(), word) != set.end()) {
                    word = set[random_.Below(set.size())];
                    return;
                }
            if (isdigit(word[0])) {
                word = std::to_string(std::max(0, atoi(word.c_str()) + (int)random_.Below(7) - 3));
                return;
            }
            const std::string &of = (*line)[3], &state = (*line)[4];
            if (&word == &state && of == "of") {
                const auto &other = lines_[buffers_[random_.Below(buffers_.size())]];
                if (other[3] == "of") word = other[4];
                return;
            }
            if (word == "in" || word == "live") {
                line->erase(line->begin() + (&word - line->data()), line->end());
                return;
            }
        }
    }

    std::vector<std::vector<std::string>> lines_;
    std::vector<size_t> kernels_, buffers_;
    Random random_;
};

class Plans : public testing::TestWithParam<std::tuple<const char *, const char *, const char *>> {};

// A plan is refused, or the same code comes of it: nothing that runs gives other results.
TEST_P(Plans, AreRefusedOrGiveTheSameCode) {
    const auto [model, pass, target] = GetParam();
    const amp_emit emit = target == std::string("cuda") ? AMP_EMIT_CU : AMP_EMIT_C;
    std::string ir, good;
    const std::string text = *model ? Read(std::string("tests/fuzz/corpus/language/") + model) : kModel;
    ASSERT_EQ(Compile({"model.amp", AMP_EMIT_IR, pass, nullptr, target}, text, &ir).status, AMP_OK);
    PlanMutator mutator(ir, 25);
    Outcome o = Compile({"damaged.ir", emit}, mutator.Text(), &good);
    ASSERT_EQ(o.status, AMP_OK) << o.message;
    int refused = 0;
    for (long i = 0; i < MutationCount() / 10 && !HasFailure(); i++) {
        std::string what, code;
        const std::string changed = mutator.Next(&what);
        o = Compile({"damaged.ir", emit}, changed, &code);
        EXPECT_NE(o.status, AMP_INTERNAL) << what << ": " << o.message;
        if (o.status) refused++;
        else EXPECT_TRUE(code == good) << what;
        if (HasFailure()) Write("failed.plan.ir", changed);
    }
    EXPECT_GT(refused, 0);
}

std::string PlanName(const testing::TestParamInfo<Plans::ParamType> &info) {
    const auto [model, pass, target] = info.param;
    return (*model ? std::string(model).substr(0, 6) : "net") + "_" + pass + "_" + target;
}

INSTANTIATE_TEST_SUITE_P(Cpu, Plans,
                         testing::Combine(testing::Values("", "images.amp", "tokens.amp"),
                                          testing::Values("buckets", "plan"), testing::Values("cpu")),
                         PlanName);
INSTANTIATE_TEST_SUITE_P(Cuda, Plans,
                         testing::Combine(testing::Values("images.amp"), testing::Values("plan"),
                                          testing::Values("cuda")),
                         PlanName);

// One edit in a plan or in what stages hold, and a part of the message.
struct PlanEdit {
    const char *name, *stage, *pattern, *replacement, *message;
};
const PlanEdit kPlanEdits[] = {
    {"ShorterLife", "plan", "live (\\d+) to \\d\\d", "live $1 to $1", "is live"},
    {"WatchedTemp", "plan", "buffer (\\S+ +)temp", "buffer $1watch", "but the ops need `temp"},
    {"FlagAsTemp", "plan", "buffer (\\S+ +)flag", "buffer $1temp", "but the ops need `flag"},
    {"OtherState", "plan", "state of fc.0.weight ", "state of fc.1.weight ", "but the ops need `state of fc.0.weight"},
    {"NothingRead", "buckets", "reads \\S+ writes", "writes", "reads nothing, but its ops need"},
    {"NoRefresh", "plan", "func refresh", "func another", "no function `refresh` that writes them"},
    {"RefreshBefore", "lower", "func infer ", "func refresh ", "pass weight_copies adds it, after stage lower"},
    {"MomentBefore", "autodiff", "(state %fc.0.bias .*) param", "$1 moment m of fc.1.bias",
     "pass optimizer adds states"},
};

TEST(PlanEdits, AreRefusedWithTheReason) {
    for (const PlanEdit &edit : kPlanEdits) {
        std::string ir = IrAfter(edit.stage), code;
        const std::string changed = ReplacedOnce(ir, edit.pattern, edit.replacement);
        ASSERT_NE(changed, ir) << edit.name;
        Outcome o = Compile({"damaged.ir", AMP_EMIT_C}, changed, &code);
        EXPECT_EQ(o.status, AMP_BAD_SOURCE) << edit.name;
        EXPECT_NE(o.message.find(edit.message), std::string::npos) << edit.name << ": " << o.message;
    }
}

} // namespace
