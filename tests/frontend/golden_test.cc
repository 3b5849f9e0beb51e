/* golden_test.cc: every .amp file of golden/ gives its .ir, the elaborated module, printed. */
#include "gtest/gtest.h"
#include "tests/frontend/compile_model.h"
#include "tests/golden/golden.h"

namespace {

const char kFolder[] = "tests/frontend/golden";

/* -D NAME=VALUE, as `ampc` takes it. */
CompileSettings SettingsOf(const std::string &text) {
    CompileSettings settings;
    std::vector<std::string> words = golden::Options(text);
    for (size_t i = 0; i + 1 < words.size(); i += 2) {
        size_t equals = words[i + 1].find('=');
        EXPECT_EQ(words[i], "-D");
        settings.defines.push_back({words[i + 1].substr(0, equals), words[i + 1].substr(equals + 1)});
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
    EXPECT_TRUE(model.good) << model.text;
    EXPECT_EQ(model.broken, "");
    EXPECT_EQ(model.reread, model.text);
    golden::Check(kFolder, name, {".ir", model.text}, {".ir"});
}

INSTANTIATE_TEST_SUITE_P(Files, Golden, testing::ValuesIn(golden::Cases(kFolder, ".amp")),
                         [](const testing::TestParamInfo<std::string> &info) { return info.param; });

TEST(GoldenFiles, AreThere) { EXPECT_GE(golden::Cases(kFolder, ".amp").size(), 24u); }

} // namespace
