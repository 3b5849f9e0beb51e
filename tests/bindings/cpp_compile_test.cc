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

// y = MatMul(x, w) of 2 x 2, as bytes of protobuf.
std::string onnx_file() {
    const auto field = [](int number, const std::string &bytes) {
        return std::string(1, static_cast<char>(number << 3 | 2)) + static_cast<char>(bytes.size()) + bytes;
    };
    const auto dims = field(1, "\x08\x02") + field(1, "\x08\x02"); // of TensorShapeProto
    const auto value = [&](const char *name) {
        return field(1, name) + field(2, field(1, "\x08\x01" + field(2, dims)));
    };
    const std::string weight = "\x08\x02\x08\x02\x10\x01" + field(8, "w") + field(9, std::string(16, '\0'));
    const std::string node = field(1, "x") + field(1, "w") + field(2, "y") + field(3, "product") + field(4, "MatMul");
    const std::string graph =
        field(1, node) + field(2, "g") + field(5, weight) + field(11, value("x")) + field(12, value("y"));
    const std::string path = std::string(::testing::TempDir()) + "/product.onnx";
    std::ofstream(path) << "\x08\x0a" + field(7, graph) + field(8, field(1, "") + "\x10\x12");
    return path;
}

TEST(CppCompile, OnnxModels) {
    const std::string model = onnx_file(), lowered = model + ".f16.onnx";
    amp::OnnxOptions options;
    amp_onnx_counts counts;
    options.output = lowered.c_str();
    options.keep_io = options.force = 1;
    EXPECT_NE(amp::onnx_autocast(model, options, &counts).find("1 of 1 nodes in float16"), std::string::npos);
    EXPECT_EQ(counts.casts, 2);
    EXPECT_NE(amp::onnx_compare(model, lowered).find("casts     2 came, 0 went"), std::string::npos);
    options.kept = {"MatMul"};
    EXPECT_TRUE(Throws(AMP_UNSUPPORTED, "kept by --keep MatMul", [&] { amp::onnx_autocast(model, options); }));
    options.kept.clear();
    options.assumed = {{"y", "float61"}};
    EXPECT_TRUE(Throws(AMP_INVALID_ARGUMENT, "assume y=float61", [&] { amp::onnx_autocast(model, options); }));
    const std::string policy = std::string(::testing::TempDir()) + "/all.policy";
    std::ofstream(policy) << "policy all version 1 low fp16\n";
    amp::OnnxOptions by_file;
    by_file.policy = policy.c_str();
    EXPECT_THROW(amp::onnx_autocast(model, by_file), amp::CompileError);
    by_file.on_file = [](const std::string &path) { throw std::runtime_error(path); };
    EXPECT_THROW(amp::onnx_autocast(model, by_file), std::runtime_error);
}

} // namespace
