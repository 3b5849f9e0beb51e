// amp_analyze: diagnostics as data, what names mean, types of values and why; of whole texts, of texts with errors, and
// of files that include others.
#include <gtest/gtest.h>

#include <cstring>
#include <map>

#include <memory>
#include <string>
#include <vector>

#include "amp/analyze.h"

namespace {

using Analysis = std::unique_ptr<amp_analysis, void (*)(amp_analysis *)>;

Analysis Analyze(const std::string &text, const std::map<std::string, std::string> &open = {}, int32_t all = 0) {
    amp_compile_options o = {};
    o.struct_size = sizeof o;
    o.name = "m.amp", o.text = text.data(), o.text_size = text.size();
    std::vector<amp_source_text> files;
    for (const auto &file : open) files.push_back({file.first.c_str(), file.second.data(), file.second.size()});
    amp_analyze_options which = {};
    which.struct_size = sizeof which;
    which.open = files.data(), which.open_count = files.size();
    which.all_passes = all;
    amp_analysis *analysis = nullptr;
    amp_error err = {};
    EXPECT_EQ(amp_analyze(&o, &which, &analysis, &err), AMP_OK) << err.message;
    return Analysis(analysis, amp_analysis_release);
}

std::string Text(const amp_analysis &a, amp_span span) {
    if (span.file < 0) return "nowhere";
    return std::string(a.files[span.file].text + span.begin, span.end - span.begin);
}

// The symbol that the |index|-th reference written |name| in the main file means.
const amp_symbol *Meaning(const amp_analysis &a, const std::string &name, int index = 0) {
    for (size_t i = 0; i < a.reference_count; i++)
        if (a.references[i].span.file == 0 && Text(a, a.references[i].span) == name && index-- == 0)
            return &a.symbols[a.references[i].symbol];
    ADD_FAILURE() << "no reference " << name;
    static const amp_symbol none = {};
    return &none;
}

const amp_symbol_value *ValueOf(const amp_analysis &a, const amp_symbol *s, size_t index = 0) {
    static const amp_symbol_value none = {};
    EXPECT_LT(index, s->value_count) << s->name;
    return index >= s->value_count ? &none : &a.values[s->first_value + index];
}

const char kModel[] = R"(amp 1
const HIDDEN = 16
# Two products.
inline block pair(x; size: int = 8) {
    a = relu(linear(x; out = size) as first)
    return linear(a; out = size) as second
}
model m(x: f32[N, 4]) -> y {
    h = pair(x; size = HIDDEN) as one
    h = pair(h) as two
    y = softmax(h)
}
precision fp16 { "softmax": f32 because "wide" }
)";

TEST(Analyze, TellsWhatNamesMean) {
    Analysis a = Analyze(kModel);
    ASSERT_EQ(a->diagnostic_count, 0u);
    EXPECT_TRUE(a->is_complete);
    const amp_symbol *pair = Meaning(*a, "pair"), *hidden = Meaning(*a, "HIDDEN"), *size = Meaning(*a, "size");
    EXPECT_EQ(pair->kind, AMP_SYMBOL_BLOCK);
    EXPECT_STREQ(pair->about, "Two products.");
    EXPECT_EQ(Text(*a, pair->whole).substr(0, 18), "inline block pair(" + std::string());
    EXPECT_EQ(Text(*a, pair->whole).back(), '}');
    ASSERT_EQ(pair->argument_count, 2u);
    EXPECT_EQ(pair->arguments[0].type, nullptr);
    EXPECT_STREQ(pair->arguments[1].type, "int");
    EXPECT_STREQ(pair->arguments[1].initial, "8");
    EXPECT_EQ(hidden->kind, AMP_SYMBOL_CONST);
    EXPECT_EQ(size->kind, AMP_SYMBOL_SETTING);
    EXPECT_EQ(&a->symbols[size->parent], pair);
    EXPECT_EQ(Meaning(*a, "linear")->span.file, a->prelude);
    EXPECT_EQ(Meaning(*a, "softmax")->kind, AMP_SYMBOL_OP);
    // the first `h` that is read is from the line before, the second from the second line
    EXPECT_LT(Meaning(*a, "h", 0)->span.begin, Meaning(*a, "h", 1)->span.begin);
}

TEST(Analyze, TellsTypesAndWhy) {
    Analysis a = Analyze(kModel);
    const amp_symbol *h = Meaning(*a, "h", 1), *first = Meaning(*a, "a"), *x = Meaning(*a, "x", 1);
    EXPECT_STREQ(ValueOf(*a, h)->type, "f16[N, 8]");
    EXPECT_STREQ(ValueOf(*a, h)->casts, "f32 for softmax");
    ASSERT_EQ(first->value_count, 2u); // the block is called twice
    EXPECT_STREQ(ValueOf(*a, first, 0)->type, "f16[N, 16]");
    EXPECT_STREQ(ValueOf(*a, first, 1)->type, "f16[N, 8]");
    EXPECT_STREQ(ValueOf(*a, x)->type, "f32[N, 4]");
    EXPECT_STREQ(ValueOf(*a, x)->casts, "f16 for one.first.linear");
    EXPECT_STREQ(ValueOf(*a, Meaning(*a, "HIDDEN"))->type, "the int 16");
    EXPECT_STREQ(ValueOf(*a, Meaning(*a, "size", 0), 1)->type, "the int 8");
    const amp_symbol *y = Meaning(*a, "y");
    ASSERT_GE(ValueOf(*a, y)->decision, 0);
    const amp_op_decision *d = &a->decisions[ValueOf(*a, y)->decision];
    EXPECT_STREQ(d->path, "softmax");
    EXPECT_STREQ(d->types, "f32 -> f32");
    EXPECT_STREQ(d->shape, "[N, 8]");
    EXPECT_EQ(Text(*a, d->span), "softmax");
    EXPECT_EQ(Text(*a, d->override), "\"softmax\"");
    EXPECT_EQ(std::string(d->reason).find("override at m.amp:13 f32"), 0u) << d->reason;
    const amp_op_decision *product = &a->decisions[ValueOf(*a, h)->decision];
    EXPECT_STREQ(product->types, "f16 x f16 x f16 -> f16");
    EXPECT_EQ(std::string(product->reason).find("min-cast.policy:"), 0u) << product->reason;
}

TEST(Analyze, TellsTheSizeT) {
    Analysis a = Analyze(
        "amp 1\nsize T = 64, unit = 8\nmodel m(x: f32[N, T, 4]) -> y {\n    s = matmul(x, transpose(x; a = 1, b = 2))\n"
        "    h = mean(s; dims = 2)\n    y = reshape(h + x; shape = [N, T / 8, 32])\n}\n");
    EXPECT_GT(a->diagnostic_count, 0u); // [N, T] beside [N, T, 4]
    a = Analyze(
        "amp 1\nsize T = 64, unit = 8\nmodel m(x: f32[N, T, 4]) -> y {\n    s = matmul(x, transpose(x; a = 1, b = 2))\n"
        "    h = mean(s; dims = 2, keep = true)\n    y = reshape(h + x; shape = [N, T / 8, 32])\n}\n");
    ASSERT_EQ(a->diagnostic_count, 0u);
    EXPECT_STREQ(ValueOf(*a, Meaning(*a, "x"))->type, "f32[N, T, 4]");
    EXPECT_STREQ(ValueOf(*a, Meaning(*a, "s"))->type, "f32[N, T, T]");
    EXPECT_STREQ(ValueOf(*a, Meaning(*a, "h"))->type, "f32[N, T, 1]");
    EXPECT_STREQ(ValueOf(*a, Meaning(*a, "y"))->type, "f32[N, T / 8, 32]");
    const amp_symbol *t = Meaning(*a, "T");
    EXPECT_EQ(t->kind, AMP_SYMBOL_CONST);
    EXPECT_EQ(Text(*a, t->whole), "size T = 64, unit = 8");
    EXPECT_STREQ(ValueOf(*a, t)->type, "the int T");
}

TEST(Analyze, GivesErrorsAsData) {
    Analysis a = Analyze("amp 1\nmodel m(x: f32[N, 4]) -> y {\n    h = relu(x)\n    y = matmul(h, x)\n}\n");
    EXPECT_FALSE(a->is_complete);
    ASSERT_EQ(a->diagnostic_count, 1u);
    const amp_diagnostic *d = &a->diagnostics[0];
    EXPECT_EQ(d->severity, AMP_SEVERITY_ERROR);
    EXPECT_EQ(std::string(d->text).find("matmul: "), 0u) << d->text;
    EXPECT_EQ(d->span.file, 0);
    EXPECT_EQ(Text(*a, d->span), "matmul(h, x)");
    ASSERT_GE(d->note_count, 2u);
    EXPECT_EQ(Text(*a, d->notes[0].span), "h");
    EXPECT_EQ(Meaning(*a, "h")->kind, AMP_SYMBOL_VALUE);
}

TEST(Analyze, ReadsWhatItCanOfABrokenText) {
    Analysis a = Analyze(
        "amp 1\nmodel m(x: f32[N, 4]) -> y {\n    h = relu(x)\n    y = relu(h)\n    g = relu(h\n    z = abs(h)\n}\n");
    EXPECT_FALSE(a->is_complete);
    ASSERT_EQ(a->diagnostic_count, 1u);
    EXPECT_EQ(Text(*a, Meaning(*a, "h")->span), "h");
    EXPECT_EQ(Meaning(*a, "x")->kind, AMP_SYMBOL_INPUT);
}

TEST(Analyze, AFileOfBlocksIsNoError) {
    Analysis a = Analyze("amp 1\nblock twice(x) {\n    y = x + x\n    return y\n}\n");
    EXPECT_EQ(a->diagnostic_count, 0u);
    EXPECT_FALSE(a->is_complete);
    EXPECT_EQ(Meaning(*a, "y")->kind, AMP_SYMBOL_VALUE);
    EXPECT_EQ(Analyze("amp 1\nblock twice(x) {\n    y = z + x\n", {}, 1)->diagnostic_count, 1u);
}

TEST(Analyze, OpenTextsStandForFiles) {
    const char main[] =
        "amp 1\ninclude \"lib.amp\"\nmodel m(x: f32[N, 4]) -> y {\n    y = twice(x)\n}\nprecision bf16 { }\n";
    const char lib[] = "amp 1\nblock twice(x) {\n    y = x + x\n    return y\n}\n";
    EXPECT_EQ(Analyze(main)->diagnostic_count, 1u);
    Analysis a = Analyze(main, {{"lib.amp", lib}});
    ASSERT_EQ(a->diagnostic_count, 0u);
    const amp_symbol *twice = Meaning(*a, "twice");
    EXPECT_STREQ(a->files[twice->span.file].name, "lib.amp");
    EXPECT_EQ(Meaning(*a, "\"lib.amp\"")->kind, AMP_SYMBOL_FILE);
    a = Analyze(main, {{"lib.amp", "amp 1\nblock twice(x) {\n    y = x + z\n    return y\n}\n"}});
    ASSERT_EQ(a->diagnostic_count, 1u);
    EXPECT_STREQ(a->files[a->diagnostics[0].span.file].name, "lib.amp");
}

TEST(Analyze, AllPassesFindMore) {
    const char text[] = "amp 1\nmodel m(x: f32[N, 4]) -> y {\n    y = linear(x; out = 2)\n}\n"
                        "train m {\n    input t: i32[N]\n    loss = accuracy(y, t)\n    optimizer = sgd(lr = 0.1)\n}\n";
    EXPECT_EQ(Analyze(text)->diagnostic_count, 0u);
    EXPECT_GT(Analyze(text, {}, 1)->diagnostic_count, 0u);
}

TEST(Analyze, RefusesWrongArguments) {
    amp_error err = {};
    amp_analysis *a = nullptr;
    amp_compile_options o = {};
    o.struct_size = sizeof o;
    o.name = "no-such-file.amp";
    EXPECT_EQ(amp_analyze(&o, nullptr, &a, &err), AMP_NOT_FOUND);
    EXPECT_EQ(amp_analyze(&o, nullptr, nullptr, &err), AMP_INVALID_ARGUMENT);
    EXPECT_EQ(amp_analyze(nullptr, nullptr, &a, &err), AMP_INVALID_ARGUMENT);
    o.text = "module \"m\" stage elaborate {", o.text_size = strlen(o.text);
    EXPECT_EQ(amp_analyze(&o, nullptr, &a, &err), AMP_UNSUPPORTED);
    EXPECT_EQ(a, nullptr);
    amp_analysis_release(nullptr);
}

} // namespace
