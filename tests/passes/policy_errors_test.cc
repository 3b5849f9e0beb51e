// Every .policy file of golden/wrong/policies.cases is wrong, and after it is what the reader says; every message says
// what to do.
#include "precision/policy.h"
#include "tests/base/planted.h"
#include "tests/golden/golden.h"
#include "tests/passes/pass_test.h"

namespace {

const char kFolder[] = "tests/passes/golden/wrong";

const std::string &Unpacked() {
    static const std::string folder = golden::Unpack(kFolder);
    return folder;
}

class WrongPolicy : public PassTest, public testing::WithParamInterface<std::string> {};

TEST_P(WrongPolicy, IsExplained) {
    const std::string name = GetParam() + ".policy", path = Unpacked() + "/" + name;
    std::ifstream file(path);
    std::stringstream text;
    text << file.rdbuf();
    EXPECT_TRUE(file.is_open());
    EXPECT_EQ(policy_read(&arena_, &diags_, NewSource(name, text.str())), nullptr);
    golden::CheckUnpacked(kFolder, Unpacked(), GetParam(), {".txt", Diagnostics()}, {".txt"});
    for (int i = 0; i < diags_.list.len; i++) {
        const Diag *diag = diags_.list.data[i];
        Text one;
        text_init(&one, &arena_);
        diag_format(&one, diag);
        const std::string said = text_str(&one);
        EXPECT_EQ(said.rfind(name + ":", 0), 0u) << said;
        const bool says_what_to_do = said.find("  help: ") != std::string::npos ||
                                     said.find("expected policy, version") != std::string::npos ||
                                     said.find("lacks a line such as '") != std::string::npos;
        EXPECT_TRUE(says_what_to_do) << said;
    }
}

// As of each file of frontend/golden, too.
TEST(WrongPolicies, PlantedMessageIsFound) {
    if (!golden::BlessRoot().empty()) GTEST_SKIP() << "files are written";
    const std::string name = golden::Cases(Unpacked(), ".policy")[0];
    const std::string text = golden::Read(Unpacked() + "/" + name + ".txt") + "another line\n";
    ExpectFound("a line more", "actual:   another line", [&] {
        golden::CheckUnpacked(kFolder, Unpacked(), name, {".txt", text}, {".txt"});
    });
}

INSTANTIATE_TEST_SUITE_P(Files, WrongPolicy, testing::ValuesIn(golden::Cases(Unpacked(), ".policy")),
                         [](const testing::TestParamInfo<std::string> &info) { return info.param; });

TEST(WrongPolicyFiles, AreThere) { EXPECT_GE(golden::Cases(Unpacked(), ".policy").size(), 40u); }

} // namespace
