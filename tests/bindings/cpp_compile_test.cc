// amp/compile.hpp: diagnostics as exceptions, callbacks, what is emitted.
#include <algorithm>
#include <fstream>
#include <set>

#include "tests/bindings/cpp_test.h"

namespace {

using namespace cpp_test;

amp::CompileOptions ir_only() {
    amp::CompileOptions options = quick();
    options.emit = AMP_EMIT_IR;
    options.stop_after = "autocast";
    return options;
}

TEST(CppCompile, EveryErrorIsInTheException) {
    const std::string text = "amp 1\nmodel m(x: f32[N, 2]) -> y { a = linea(x)\n y = reluu(x) }\n";
    EXPECT_TRUE(Throws(AMP_BAD_SOURCE, "did you mean 'relu'", [&] { amp::compile_text(text, "m.amp", ir_only()); }));
    try {
        amp::compile_text(text, "m.amp", ir_only());
        FAIL();
    } catch (const amp::CompileError &error) {
        ASSERT_EQ(error.diagnostics().size(), 2u);
        EXPECT_NE(error.diagnostics()[0].find("m.amp:2:"), std::string::npos);
        EXPECT_NE(error.diagnostics()[1].find("m.amp:3:"), std::string::npos);
    }
    EXPECT_TRUE(Throws(AMP_NOT_FOUND, "no/such.amp", [] { amp::compile("no/such.amp", ir_only()); }));
}

TEST(CppCompile, ConstantsAndFiles) {
    const std::string path = std::string(::testing::TempDir()) + "/rings.amp";
    std::ofstream(path) << model_text;
    amp::CompileOptions options = ir_only();
    options.constants = {{"HIDDEN", "13"}};
    std::vector<std::string> files;
    options.on_file = [&](const std::string &file) { files.push_back(file); };
    const amp::Compiled ir = amp::compile(path, options);
    EXPECT_NE(ir.text().find("13, 2"), std::string::npos);
    EXPECT_EQ(ir.size(), ir.text().size());
    EXPECT_NE(std::find(files.begin(), files.end(), path), files.end());
    EXPECT_TRUE(ir.warnings().empty());
}

TEST(CppCompile, PassesAndTheirTimes) {
    std::set<std::string> passes, times;
    amp::CompileOptions options = ir_only();
    options.on_pass = [&](const std::string &pass, std::string_view ir) {
        if (!ir.empty()) passes.insert(pass);
    };
    options.on_time = [&](const std::string &pass, double seconds) {
        if (seconds >= 0) times.insert(pass);
    };
    amp::compile_text(model_text, "rings.amp", options);
    EXPECT_TRUE(passes.count("autocast"));
    EXPECT_TRUE(times.count("autocast"));
}

TEST(CppCompile, AnExceptionOfACallbackArrivesAtTheCaller) {
    amp::CompileOptions options = ir_only();
    int calls = 0;
    options.on_pass = [&](const std::string &, std::string_view) {
        calls++;
        throw std::logic_error("enough");
    };
    EXPECT_THROW(amp::compile_text(model_text, "rings.amp", options), std::logic_error);
    EXPECT_EQ(calls, 1);
}

TEST(CppCompile, SaysHowFarItIs) {
    amp::CompileOptions options = quick();
    std::vector<std::string> stages;
    options.on_stage = [&](const std::string &stage, int32_t index, int32_t) {
        EXPECT_EQ(static_cast<std::size_t>(index), stages.size());
        stages.push_back(stage);
        return false;
    };
    amp::compile_text(model_text, "rings.amp", options);
    ASSERT_GT(stages.size(), 3u);
    EXPECT_EQ(stages.front(), "elaborate");
    EXPECT_EQ(stages.back(), "cc");
    options.on_stage = [](const std::string &stage, int32_t, int32_t) { return stage == "fuse"; };
    EXPECT_TRUE(Throws(AMP_CANCELLED, "before fuse", [&] { amp::compile_text(model_text, "rings.amp", options); }));
    options.on_stage = [](const std::string &, int32_t, int32_t) -> bool { throw std::logic_error("enough"); };
    EXPECT_THROW(amp::compile_text(model_text, "rings.amp", options), std::logic_error);
}

TEST(CppCompile, IsEndedWhenAsked) {
    amp::CompileOptions options = quick();
    options.stop_asked = [] { return true; };
    EXPECT_TRUE(Throws(AMP_CANCELLED, "", [&] { amp::compile_text(model_text, "rings.amp", options); }));
    options.stop_asked = []() -> bool { throw std::logic_error("enough"); };
    EXPECT_THROW(amp::compile_text(model_text, "rings.amp", options), std::logic_error);
}

TEST(CppCompile, Explain) {
    amp::ExplainOptions which;
    which.path = "first*";
    const std::string why = amp::explain_text(model_text, "rings.amp", which);
    EXPECT_NE(why.find("first.linear"), std::string::npos);
    EXPECT_EQ(why.find("last.linear"), std::string::npos);
    which.path = nullptr, which.form = AMP_EXPLAIN_JSON;
    EXPECT_EQ(amp::explain_text(model_text, "rings.amp", which).front(), '{');
}

TEST(CppCompile, ExplainsASelectionAndCompares) {
    const std::string path = ::testing::TempDir() + "compared.amp";
    std::ofstream(path) << model_text;
    amp::ExplainOptions which;
    which.op = "linear";
    EXPECT_EQ(amp::explain(path, which).find("\nrelu "), std::string::npos);
    EXPECT_NE(amp::compare(path, path).find("no difference"), std::string::npos);
    amp::CompileOptions low;
    low.precision = "bf16";
    which.form = AMP_EXPLAIN_JSON;
    EXPECT_NE(amp::compare(path, path, which, {}, low).find("\"same\":false"), std::string::npos);
    low.precision = "fp17";
    EXPECT_TRUE(Throws(AMP_BAD_SOURCE, "unknown precision fp17", [&] { amp::compare(path, path, which, low); }));
}

TEST(CppCompile, TheResultIsMovedAndReleasedOnce) {
    amp::Compiled first = amp::compile_text(model_text, "rings.amp", ir_only());
    const std::string text(first.text());
    amp::Compiled second = std::move(first);
    EXPECT_EQ(second.text(), text);
    first = std::move(second);
    EXPECT_EQ(first.text(), text);
}

} // namespace
