/* golden_test.cc: every .amp file of golden/ gives its .ir (the elaborated module, printed) or its .err (the
 * diagnostics). */
#include "gtest/gtest.h"
#include "tests/frontend/compile_model.h"
#include "tests/golden/golden.h"

namespace {

const char kFolder[] = "tests/frontend/golden";

/* -D NAME=VALUE and --max-ops COUNT, as `ampc` takes them. */
CompileSettings SettingsOf(const std::string &text) {
    CompileSettings settings;
    std::vector<std::string> words = golden::Options(text);
    for (size_t i = 0; i + 1 < words.size(); i += 2) {
        size_t equals = words[i + 1].find('=');
        if (words[i] == "-D")
            settings.defines.push_back({words[i + 1].substr(0, equals), words[i + 1].substr(equals + 1)});
        else if (words[i] == "--max-ops") settings.max_ops = std::stoll(words[i + 1]);
        else ADD_FAILURE() << "unknown option " << words[i];
    }
    return settings;
}

class Golden : public testing::TestWithParam<std::string> {};

TEST_P(Golden, Elaborates) {
    std::string name = GetParam(), text = golden::Read(std::string(kFolder) + "/" + name + ".amp");
    CompileSettings settings = SettingsOf(text);
    for (const std::string &include : golden::Cases(kFolder, ".inc.amp"))
        settings.files[include + ".inc.amp"] = golden::Read(std::string(kFolder) + "/" + include + ".inc.amp");
    CompiledModel model = CompileModel(name + ".amp", text, settings);
    EXPECT_EQ(model.broken, "");
    EXPECT_EQ(model.good, model.errors == 0);
    if (model.good) {
        EXPECT_EQ(model.reread, model.text);
    }
    golden::Check(kFolder, name, {model.good ? ".ir" : ".err", model.text}, {".ir", ".err"});
}

INSTANTIATE_TEST_SUITE_P(Files, Golden, testing::ValuesIn(golden::Cases(kFolder, ".amp")),
                         [](const testing::TestParamInfo<std::string> &info) { return info.param; });

TEST(GoldenFiles, AreThere) { EXPECT_GE(golden::Cases(kFolder, ".amp").size(), 60u); }

} // namespace
